/* SPDX-License-Identifier: MIT
 *
 * recipes: the official analyses of all ranks of a run, by name.
 */
#ifndef MSTX_OFFICIAL_RECIPES_H
#define MSTX_OFFICIAL_RECIPES_H

#include "probe/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "all", "slow_rank", ...; NULL at the end. A mode is the index of a name. */
extern const char *const mstx_recipe_names[];
enum { MSTX_RECIPE_SLOW_RANK = 3 };

struct ms_par;
struct mstx_cluster_how {
    const char *dir;      /* a run, or a directory with output of profilers below */
    const char *output;   /* where to make cluster_analysis_output; NULL: in dir */
    const char *ranks;    /* "0,3", or NULL for all */
    const char *base;     /* for cluster_time_compare_summary: the run to compare with */
    const char *parallel; /* for computational_op_masking: kinds of groups, or NULL */
    int64_t step, top;    /* step, -1: all; top: rows in lists of the worst, 0: the recipe's */
    int mode;
    unsigned threads;                          /* 0: one per processor */
    struct ms_par *par;                        /* processes that share the work, or NULL */
    bool as_text;                              /* CSV files instead of the database */
    bool strict;                               /* exactly as the official tool, defects included */
    void (*progress)(size_t done, size_t all); /* may be NULL */
    void (*wrote)(const char *path);           /* called for each file that is written */
    void (*answer)(const char *line);          /* called for each line of answer; may be NULL */
    uint64_t *problems;                        /* set to the number of problems with the input */
};
/* Makes the tables of one recipe; all processes call it, and process 0 writes. Notes a problem for a rank that cannot be read; fails when no
 * rank can be read. */
enum ms_rc mstx_cluster_run(const struct mstx_cluster_how *how, struct ms_err *err) MS_MUST_USE;

#endif
