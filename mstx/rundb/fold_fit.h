/* SPDX-License-Identifier: MIT
 *
 * fold_fit: fits models (fold_code.h) to numbers, and chooses among those that were stored.
 *
 * Each number has a class and one or two predictions; a model says for each class which one holds, what
 * to add, and how far off it is.  A model fits whatever repeats the numbers it was made of: later
 * steps, and other ranks.
 */
#ifndef MSTX_RUNDB_FOLD_FIT_H
#define MSTX_RUNDB_FOLD_FIT_H

#include "mstx/rundb/fold_code.h"

#include "probe/base/vec.h"

struct mstx_numbers {
    uint32_t n;
    uint32_t classes;
    const uint16_t *class;
    const int64_t *off;        /* of each number: its difference from the prediction */
    const int64_t *off_leader; /* from that by the leader; NULL: there is none */
};

struct mstx_fitted {
    uint64_t key, part;
    double bits_each; /* that the numbers took which it was made of */
    struct mstx_model model;
    float (*bits)[MSTX_SYMBOLS]; /* by context and symbol */
};

enum { MSTX_FITTED_OF_KEY = 4 };
/* Models by key, the newest ones of each. */
struct mstx_fits {
    MS_VEC(struct mstx_fitted *) list;
    size_t next; /* to be replaced when the list is full */
};
void mstx__fits_free(struct mstx_fits *f);

/* Chooses the stored model that codes the numbers in the fewest bits; when a new one is worth its size,
 * makes it, with part 0, which the caller sets when it has stored it.  Sets the differences that are to be coded, and
 * their contexts. */
enum ms_rc mstx__fit(struct mstx_fits *f, uint64_t key, const struct mstx_numbers *v,
                     struct mstx_fitted **best, int64_t *difference, uint8_t *context,
                     struct ms_err *err) MS_MUST_USE;

#endif
