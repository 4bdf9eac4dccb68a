/* SPDX-License-Identifier: MIT
 *
 * rank_use: see the header.
 */
#include "mstx/cluster/rank_use.h"

#include "probe/base/assert.h"

enum { SAMPLES_LEAST = 10 };

bool mstx__use_is_known(const struct mstx_thread_use *u, uint32_t ranks)
{
    bool is_known = u->first.n == (size_t)ranks + 1;
    for (uint32_t r = 0; r < ranks && is_known; r++)
        is_known = u->first.p[r + 1] - u->first.p[r] >= SAMPLES_LEAST;
    return is_known;
}

/* Sets `total` to the totals at time t between two of the n samples; before the first and after the last
 * one nothing is used. */
static void use_at(const struct mstx_use_sample *s, uint32_t n, int64_t t, double total[MSTX_USES])
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (s[mid].at_ns < t)
            low = mid + 1;
        else
            high = mid;
    }
    const struct mstx_use_sample *to = &s[low < n ? low : n - 1],
                                 *from = low != 0 ? &s[low - 1] : s;
    const double span = (double)(to->at_ns - from->at_ns);
    const double part = span > 0 && low < n ? (double)(t - from->at_ns) / span : 1;
    for (int k = 0; k < MSTX_USES; k++)
        total[k] = from->total[k] + part * (to->total[k] - from->total[k]);
}

void mstx__use_between(const struct mstx_thread_use *u, uint32_t rank, int64_t from, int64_t to,
                       double used[MSTX_USES])
{
    const struct mstx_use_sample *s = u->sample.p + u->first.p[rank];
    const uint32_t n = u->first.p[rank + 1] - u->first.p[rank];
    double before[MSTX_USES];
    ms_assert(n != 0 && from <= to);
    use_at(s, n, from, before);
    use_at(s, n, to, used);
    for (int k = 0; k < MSTX_USES; k++)
        used[k] = used[k] > before[k] ? used[k] - before[k] : 0;
}

void mstx__use_of_point(const struct mstx_thread_use *u, const struct mstx_call_graph *g,
                        size_t point, double used[MSTX_USES])
{
    const struct mstx_point *p = &g->point.p[point];
    mstx__use_between(u, p->rank, p->at_ns - (int64_t)g->weight[point], p->at_ns, used);
}

void mstx__use_free(struct mstx_thread_use *u)
{
    ms_vec_free(&u->sample);
    ms_vec_free(&u->first);
    ms_vec_free(&u->throttled);
}
