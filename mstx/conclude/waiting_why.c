/* SPDX-License-Identifier: MIT
 *
 * waiting_why: see the header.
 */
#include "mstx/conclude/waiting_why.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <stdio.h>
#include <stdlib.h>

/* Least share of the excess for a range to be named.  Of nested ranges that explain nearly the same
 * share the innermost, which is the shortest, is named. */
static const double EXPLAINS_LEAST = 0.3, NEARLY = 0.8;

struct comparing {
    const uint32_t *process;
    size_t n, which;
    double excess_ns;
    double *total; /* by process: total time of the current name */
    char name[64]; /* current name */
    struct mstx_why *why;
    double why_total;
};

static int by_value(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return MS_ORDER(*a, *b, 0);
}

/* Returns the median total of the other processes; reorders `total`. */
static double median_of_others(struct comparing *c)
{
    const size_t n = c->n - 1;
    double own = c->total[c->which];
    c->total[c->which] = c->total[n];
    qsort(c->total, n, sizeof *c->total, by_value);
    c->total[n] = own;
    return n != 0 ? (c->total[(n - 1) / 2] + c->total[n / 2]) / 2 : own;
}

static void judge_name(struct comparing *c)
{
    const double own = c->total[c->which];
    const double share = (own - median_of_others(c)) / c->excess_ns;
    const bool is_better =
        share * NEARLY > c->why->share || (share > NEARLY * c->why->share && own < c->why_total);
    if (c->name[0] != 0 && share >= EXPLAINS_LEAST && (c->why->name[0] == 0 || is_better)) {
        snprintf(c->why->name, sizeof c->why->name, "%s", c->name);
        c->why->share = share < 1 ? share : 1;
        c->why_total = own;
    }
    memset(c->total, 0, c->n * sizeof *c->total);
}

static void take_row(struct comparing *c, struct ms_stmt *st)
{
    const struct ms_str name = ms_stmt_get_str(st, 0);
    if (!ms_str_is(name, c->name)) {
        judge_name(c);
        snprintf(c->name, sizeof c->name, "%.*s", MS_STR_ARG(name));
    }
    for (size_t k = 0; k < c->n; k++) {
        if ((int64_t)c->process[k] + 1 == ms_stmt_get_i64(st, 1))
            c->total[k] = ms_stmt_get_f64(st, 2);
    }
}

static enum ms_rc compare_names(struct mstx_tl *tl, struct comparing *c, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT substr(s.value, 1, 60) AS name, t.process, sum(n.total_ns)"
                            " FROM names n JOIN tracks t ON t.id = n.track"
                            " JOIN strings s ON s.id = n.name"
                            " WHERE t.kind = 0 AND t.domain <> 'communication' AND n.total_ns > 0"
                            " GROUP BY 1, 2 ORDER BY 1, 2",
                            err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        take_row(c, st);
    judge_name(c);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__waiting_why(struct mstx_tl *tl, const uint32_t *process, size_t n, size_t which,
                             double excess_ns, struct mstx_why *why, struct ms_err *err)
{
    struct comparing c = {
        .process = process, .n = n, .which = which, .excess_ns = excess_ns, .why = why};
    *why = (struct mstx_why){0};
    if (!(excess_ns > 0))
        return MS_OK;
    c.total = ms_calloc(n + 1, sizeof *c.total);
    if (c.total == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = compare_names(tl, &c, err);
    ms_free(c.total);
    return rc;
}
