/* SPDX-License-Identifier: MIT
 *
 * alike_results: sorts results by what they have in common and cuts the list where that changes.
 */
#include "compare/run/alike_results.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* Returns the number of binary digits: counts with equally many are called alike. */
static unsigned digits_of(uint64_t n)
{
    unsigned digits = 0;
    for (; n != 0; n >>= 1)
        digits++;
    return digits;
}

/* Returns a number that grows with the largest relative error: 0 below 0.001, where rounding lies,
 * then one more for each factor of ten up to 1. */
static unsigned size_of_error(const struct cmp_result *r)
{
    unsigned size = 0;
    for (double limit = 1e-3; size < 4 && r->nworst != 0 && r->worst[0].score >= limit; limit *= 10)
        size++;
    return size;
}

static int order_levels(const struct cmp_summary *a, const struct cmp_summary *b)
{
    const unsigned error_a = digits_of(a->level[CMP_ERROR]);
    const unsigned error_b = digits_of(b->level[CMP_ERROR]);
    const unsigned warning_a = digits_of(a->level[CMP_WARNING]);
    const unsigned warning_b = digits_of(b->level[CMP_WARNING]);
    return error_a != error_b ? MS_ORDER(error_a, error_b, 0) : MS_ORDER(warning_a, warning_b, 0);
}

static int order_counts(const struct cmp_summary *a, const struct cmp_summary *b)
{
    if (a->rows != b->rows)
        return MS_ORDER(a->rows, b->rows, 0);
    if (a->unmatched_target != b->unmatched_target)
        return MS_ORDER(a->unmatched_target, b->unmatched_target, 0);
    if (a->unmatched_golden != b->unmatched_golden)
        return MS_ORDER(a->unmatched_golden, b->unmatched_golden, 0);
    return order_levels(a, b);
}

/* Orders by what makes results alike; 0: they belong to one group. */
static int order_alike(const struct cmp_result *a, const struct cmp_result *b)
{
    int order = strcmp(a->couple->folder, b->couple->folder);
    if (order == 0)
        order = order_counts(&a->sum, &b->sum);
    if (order == 0)
        order = MS_ORDER(size_of_error(a), size_of_error(b), 0);
    if (order == 0)
        order = (int)a->sum.has_first - (int)b->sum.has_first;
    return order == 0 && a->sum.has_first ? strcmp(a->first.row, b->first.row) : order;
}

static int by_group_then_rank(const void *pa, const void *pb)
{
    const struct cmp_result *const *a = pa, *const *b = pb;
    const int order = order_alike(*a, *b);
    return order != 0 ? order : MS_ORDER((*a)->couple, (*b)->couple, 0);
}

static bool has_equal_counts(const struct cmp_summary *a, const struct cmp_summary *b)
{
    return memcmp(a->level, b->level, sizeof a->level) == 0;
}

static bool add_group(struct cmp_alike_groups *groups, const struct cmp_result **list, size_t n)
{
    struct cmp_alike *g = ms_vec_push(&groups->list);
    if (g == NULL)
        return false;
    const struct cmp_summary *s = &list[0]->sum;
    *g = (struct cmp_alike){.list = list, .n = n, .sum = *s, .is_equal = true};
    g->differs =
        s->level[CMP_ERROR] + s->level[CMP_WARNING] + s->unmatched_target + s->unmatched_golden !=
            0 ||
        size_of_error(list[0]) != 0;
    for (size_t i = 1; i < n; i++)
        g->is_equal = g->is_equal && has_equal_counts(s, &list[i]->sum);
    for (size_t i = 1; i < n && !g->is_equal; i++)
        cmp_summary_join(&g->sum, &list[i]->sum);
    return true;
}

/* Groups with differences come first: larger errors, then more rows with errors and warnings, then
 * fewer ranks. */
static int worst_first(const void *pa, const void *pb)
{
    const struct cmp_alike *a = pa, *b = pb;
    if (a->differs != b->differs)
        return a->differs ? -1 : 1;
    const unsigned size_a = size_of_error(a->list[0]), size_b = size_of_error(b->list[0]);
    if (size_a != size_b)
        return size_a > size_b ? -1 : 1;
    const int order = order_levels(&b->list[0]->sum, &a->list[0]->sum);
    if (order != 0)
        return order;
    if (a->n != b->n)
        return MS_ORDER(a->n, b->n, 0);
    return MS_ORDER(a->list[0]->couple, b->list[0]->couple, 0);
}

static bool cut_into_groups(struct cmp_alike_groups *groups, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && order_alike(groups->results[i], groups->results[end]) == 0)
            end++;
        if (!add_group(groups, &groups->results[i], end - i))
            return false;
    }
    ms_vec_sort(&groups->list, worst_first);
    return true;
}

bool cmp_alike_find(struct cmp_alike_groups *groups, const struct cmp_report *r)
{
    size_t n = 0;
    *groups =
        (struct cmp_alike_groups){.results = ms_calloc(r->list.n + 1, sizeof *groups->results)};
    if (groups->results == NULL)
        return false;
    for (size_t i = 0; i < r->list.n; i++) {
        if (r->list.p[i]->done)
            groups->results[n++] = r->list.p[i];
    }
    qsort(groups->results, n, sizeof *groups->results, by_group_then_rank);
    return cut_into_groups(groups, n);
}

void cmp_alike_free(struct cmp_alike_groups *groups)
{
    ms_vec_free(&groups->list);
    ms_free(groups->results);
    *groups = (struct cmp_alike_groups){.results = NULL};
}
