/* SPDX-License-Identifier: MIT
 *
 * setup: the configuration of a comparison, and what the dumps make of it.
 *
 * It is settled while a comparison is opened; stages behind only read it.
 */
#ifndef COMPARE_READ_SETUP_H
#define COMPARE_READ_SETUP_H

#include "compare/compare.h"
#include "compare/read/rules.h"

struct cmp_setup {
    struct cmp_conf conf; /* rules are set */
    enum probe_mode mode;
    bool merged;             /* ranks that were put together: shapes are those of their parts */
    bool is_graph;           /* its rows are those of nodes that met, not of a table */
    bool is_debug;           /* the target was dumped at level debug */
    bool cross;              /* the two frameworks name dtypes differently */
    bool aligned;            /* rows found partners by alignment, not by name */
    bool whole[PROBE_STATS]; /* columns whose differences are whole numbers */
};

static inline void cmp__progress(const struct cmp_setup *set, const struct cmp_progress *p)
{
    if (set->conf.progress != NULL)
        set->conf.progress(set->conf.progress_ctx, p);
}

#endif
