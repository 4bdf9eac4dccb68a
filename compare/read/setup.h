/* SPDX-License-Identifier: MIT
 *
 * setup: the configuration of a comparison, completed from the dumps when the comparison is
 * opened. Later stages only read it.
 */
#ifndef COMPARE_READ_SETUP_H
#define COMPARE_READ_SETUP_H

#include "compare/compare.h"
#include "compare/read/rules.h"

struct cmp_setup {
    struct cmp_conf conf; /* conf.rules is never NULL */
    enum probe_mode mode;
    bool merged;             /* ranks were merged: shapes are those of the parts */
    bool is_graph;           /* rows are those of paired nodes in a graph, not of a table */
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
