/* SPDX-License-Identifier: MIT
 *
 * mem_growth: see the header.
 */
#include "mstx/memory/mem_growth.h"

#include "mstx/memory/mem_kinds.h"

#include "probe/base/order.h"

/* Steps at both ends that say nothing: the first ones build caches and optimizer states, what the
 * last ones left may only not have been replaced yet. */
enum { FIRST_STEPS = 2, LAST_STEPS = 2, STEPS_LEAST = 4 };
/* Of both halves of the steps, the smaller must have left this share of the larger. */
static const double LEVEL = 0.5;
/* Less than this share of the peak a step is no leak: 100,000 steps add less than a tenth. A loss
 * that is kept for a curve is one number a step. */
static const double SMALLEST = 1e-6;

/* What the steps looked at left behind, by site. */
struct left {
    uint64_t half[2];
    uint32_t steps, last_step; /* last_step: index + 1 of the step counted last */
};

static void count_block(const struct mstx_mem_space *s, const struct mstx_mem_block *b, size_t from,
                        size_t to, struct left *left)
{
    const int64_t step = b->begin != 0 && mstx__mem_is_kept(s, b) && b->begin_ns != MSTX_MEM_NO_TIME
                             ? mstx__mem_step_at(s, b->begin_ns)
                             : -1;
    if (step < (int64_t)from || step >= (int64_t)to)
        return;
    struct left *l = &left[b->site];
    l->half[(size_t)step >= from + (to - from) / 2] += b->bytes;
    l->steps += l->last_step != (uint32_t)step + 1;
    l->last_step = (uint32_t)step + 1;
}

static bool is_leak(const struct left *l, uint32_t steps, uint64_t peak)
{
    const double a = (double)l->half[0], b = (double)l->half[1];
    const double least = a < b ? a : b, most = a < b ? b : a;
    return l->steps >= 3 && 4 * l->steps >= steps && least >= LEVEL * most &&
           a + b > SMALLEST * (double)peak * steps;
}

static int by_bytes(const void *pa, const void *pb)
{
    const struct mstx_mem_leak *a = pa, *b = pb;
    return MS_ORDER(b->bytes, a->bytes, MS_ORDER(a->site, b->site, 0));
}

static enum ms_rc keep_leaks(const struct mstx_mem_log *log, const struct left *left, uint64_t peak,
                             struct mstx_mem_growth *g, struct ms_err *err)
{
    for (uint32_t i = 0; i < log->sites.n; i++) {
        if (!is_leak(&left[i], g->steps, peak))
            continue;
        struct mstx_mem_leak *slot = ms_vec_push(&g->leaks);
        if (slot == NULL)
            return ms_no_memory(err);
        const uint64_t bytes = left[i].half[0] + left[i].half[1];
        *slot = (struct mstx_mem_leak){i, left[i].steps, bytes, (double)bytes / g->steps};
        g->bytes_per_step += slot->bytes_per_step;
    }
    ms_vec_sort(&g->leaks, by_bytes);
    return MS_OK;
}

enum ms_rc mstx__mem_growth_find(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                                 uint64_t peak, struct mstx_mem_growth *growth, struct ms_err *err)
{
    *growth = (struct mstx_mem_growth){0};
    if (s->steps.n < FIRST_STEPS + LAST_STEPS + STEPS_LEAST)
        return MS_OK;
    const size_t from = FIRST_STEPS, to = s->steps.n - LAST_STEPS;
    struct left *left = ms_calloc(log->sites.n, sizeof *left);
    if (left == NULL)
        return ms_no_memory(err);
    growth->steps = (uint32_t)(to - from);
    for (size_t i = 0; i < s->blocks.n; i++)
        count_block(s, &s->blocks.p[i], from, to, left);
    const enum ms_rc rc = keep_leaks(log, left, peak, growth, err);
    ms_free(left);
    if (rc != MS_OK)
        mstx__mem_growth_free(growth);
    return rc;
}

void mstx__mem_growth_free(struct mstx_mem_growth *growth)
{
    ms_vec_free(&growth->leaks);
}
