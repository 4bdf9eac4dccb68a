/* SPDX-License-Identifier: MIT
 *
 * alike_ranks: see the header.
 */
#include "mstx/conclude/alike_ranks.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { GROUPS_MAX = 64 };
static const double ALIKE = 0.03; /* of a step: more than ranks of one stage differ by */

/* Computes how far two ranks are apart: the largest difference of a part, as a share of the step. */
static double distance_of(const struct mstx_use_rank *a, const struct mstx_use_rank *b)
{
    const double step = fmax(a->ns[MSTX_USE_STEP], b->ns[MSTX_USE_STEP]);
    double most = 0;
    for (int i = 0; i < MSTX_USE_PARTS; i++)
        most = fmax(most, fabs(a->ns[i] - b->ns[i]));
    return step > 0 ? most / step : 0;
}

/* Returns the group whose first rank is nearest. */
static size_t find_nearest(const mstx_alike_list *list, const struct mstx_use *u,
                           const uint32_t *first, const struct mstx_use_rank *r, double *apart)
{
    size_t best = list->n;
    *apart = INFINITY;
    for (size_t i = 0; i < list->n; i++) {
        const double d = distance_of(&u->rank.p[first[i]], r);
        if (d < *apart) {
            *apart = d;
            best = i;
        }
    }
    return best;
}

static enum ms_rc sort_into_groups(const struct mstx_use *u, mstx_alike_list *list, uint32_t *group,
                                   struct ms_err *err)
{
    uint32_t first[GROUPS_MAX];
    for (size_t i = 0; i < u->rank.n; i++) {
        double apart;
        size_t g = find_nearest(list, u, first, &u->rank.p[i], &apart);
        if (apart > ALIKE && list->n < GROUPS_MAX) {
            struct mstx_alike *slot = ms_vec_push(list);
            if (slot == NULL)
                return ms_no_memory(err);
            g = list->n - 1;
            first[g] = (uint32_t)i;
            *slot = (struct mstx_alike){.mean = {.rank = u->rank.p[i].rank}};
        }
        group[i] = (uint32_t)g;
    }
    return MS_OK;
}

static void add_up(const struct mstx_use *u, mstx_alike_list *list, const uint32_t *group)
{
    for (size_t i = 0; i < u->rank.n; i++) {
        struct mstx_alike *a = &list->p[group[i]];
        a->ranks++;
        a->mean.steps += u->rank.p[i].steps;
        for (int k = 0; k < MSTX_USE_PARTS; k++)
            a->mean.ns[k] += u->rank.p[i].ns[k];
    }
    for (size_t g = 0; g < list->n; g++) {
        struct mstx_alike *a = &list->p[g];
        ms_assert(a->ranks != 0);
        a->mean.steps /= (int64_t)a->ranks;
        for (int k = 0; k < MSTX_USE_PARTS; k++)
            a->mean.ns[k] /= (double)a->ranks;
    }
}

static int odd_first(const void *pa, const void *pb)
{
    const struct mstx_alike *a = pa, *b = pb;
    const double x = a->mean.ns[MSTX_USE_BLAME], y = b->mean.ns[MSTX_USE_BLAME];
    if (a->ranks != b->ranks)
        return a->ranks < b->ranks ? -1 : 1;
    if (x != y)
        return x > y ? -1 : 1;
    return a->mean.rank < b->mean.rank ? -1 : a->mean.rank > b->mean.rank;
}

/* Puts the groups in order and numbers them anew. */
static void put_in_order(const struct mstx_use *u, mstx_alike_list *list, uint32_t *group)
{
    int64_t lowest[GROUPS_MAX];
    uint32_t place[GROUPS_MAX];
    for (size_t g = 0; g < list->n; g++)
        lowest[g] = list->p[g].mean.rank;
    qsort(list->p, list->n, sizeof *list->p, odd_first);
    for (uint32_t g = 0; g < list->n; g++) {
        for (uint32_t now = 0; now < list->n; now++) {
            if (list->p[now].mean.rank == lowest[g])
                place[g] = now;
        }
    }
    for (size_t i = 0; i < u->rank.n; i++)
        group[i] = place[group[i]];
}

enum ms_rc mstx_alike_find(const struct mstx_use *u, mstx_alike_list *list, uint32_t *group,
                           struct ms_err *err)
{
    ms_assert(list->n == 0);
    MS_TRY(sort_into_groups(u, list, group, err));
    if (list->n == 0)
        return MS_OK;
    add_up(u, list, group);
    put_in_order(u, list, group);
    return MS_OK;
}

void mstx_alike_text(const struct mstx_use *u, const uint32_t *group, uint32_t which, size_t width,
                     struct ms_buf *out)
{
    const size_t begin = out->n;
    for (size_t i = 0; i < u->rank.n; i++) {
        size_t last = i;
        if (group[i] != which)
            continue;
        while (last + 1 < u->rank.n && group[last + 1] == which &&
               u->rank.p[last + 1].rank == u->rank.p[last].rank + 1)
            last++;
        if (out->n - begin + 12 > width) {
            ms_buf_puts(out, ",...");
            return;
        }
        ms_buf_printf(out, "%s%" PRId64, out->n != begin ? "," : "", u->rank.p[i].rank);
        if (last > i)
            ms_buf_printf(out, "%c%" PRId64, last == i + 1 ? ',' : '-', u->rank.p[last].rank);
        i = last;
    }
}
