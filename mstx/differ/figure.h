/* SPDX-License-Identifier: MIT
 *
 * figure: how long a step is at each place when nothing disturbs it.
 *
 * Other programs make parts of a step longer, never shorter. So the k-th part of a place is compared
 * over all steps, and its quiet time is that which an eighth of the steps do not exceed. What takes
 * its time in every step is in it; what happens to a step now and then is not. A device belongs to
 * one program, but its trail changes between the device and the thread that feeds it: there it is
 * the middle of the steps.
 *
 *     step 1   3.1 ──── 0.8          quiet: 3.0 + 0.8
 *     step 2   3.0 ──── 9.7 (disturbed)
 *     step 3   3.2 ──── 0.8
 */
#ifndef MSTX_DIFFER_FIGURE_H
#define MSTX_DIFFER_FIGURE_H

#include "mstx/differ/trail.h"

enum { MSTX_BLOCKS = 8 };

struct mstx_figure {
    uint32_t place;
    uint32_t rank;             /* number among the ranks of the run */
    double quiet, mean;        /* ns a step, without what lies in the place */
    double block[MSTX_BLOCKS]; /* quiet, of each eighth of the steps */
    double count;              /* parts a step, the most frequent number */
};
typedef MS_VEC(struct mstx_figure) mstx_figures;

/* Which trail it is. */
struct mstx_figure_of {
    const struct mstx_trail *trail; /* sorted */
    uint32_t rank, steps;
    bool has_device;
};

/* Appends the figures of a process.  Returns false when out of memory. */
bool mstx__figures_add(mstx_figures *to, const struct mstx_figure_of *of);

#endif
