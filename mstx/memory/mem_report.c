/* SPDX-License-Identifier: MIT
 *
 * mem_report: finds the answers of all spaces.
 */
#include "mstx/memory/mem_report.h"

#include "probe/base/order.h"

/* Ranks are out of balance when the largest peak is greater than the smallest by this share. */
static const double UNEVEN = 0.10;
/* Reserved memory that no block uses is worth a word from this share and from this many bytes on. */
static const double UNUSED = 0.20;
static const uint64_t UNUSED_LEAST = (uint64_t)64 << 20;

static int by_peak(const void *pa, const void *pb)
{
    const struct mstx_mem_answer *a = pa, *b = pb;
    return MS_ORDER(b->peak.bytes, a->peak.bytes, MS_ORDER(a->space->rank, b->space->rank, 0));
}

/* Compares the ranks by the greatest peak of each. The answers are in the order of their peaks, so
 * the first of a rank is its greatest. */
static void compare_ranks(struct mstx_mem_report *r)
{
    for (size_t i = 0; i < r->answers.n; i++) {
        const struct mstx_mem_answer *a = &r->answers.p[i];
        bool first = a->space->rank >= 0;
        for (size_t k = 0; k < i && first; k++)
            first = r->answers.p[k].space->rank != a->space->rank;
        if (!first)
            continue;
        if (r->most_rank < 0) {
            r->most_rank = a->space->rank;
            r->most = a->peak.bytes;
        } else {
            r->has_ranks = true;
        }
        r->least_rank = a->space->rank;
        r->least = a->peak.bytes;
    }
}

static enum ms_rc add_answer(struct mstx_mem_report *r, const struct mstx_mem_space *s,
                             struct ms_err *err)
{
    struct mstx_mem_answer *a = ms_vec_push(&r->answers);
    if (a == NULL)
        return ms_no_memory(err);
    *a = (struct mstx_mem_answer){.space = s};
    MS_TRY(mstx__mem_peak_find(r->log, s, &a->peak, err));
    return mstx__mem_growth_find(r->log, s, a->peak.bytes, &a->growth, err);
}

enum ms_rc mstx__mem_report_make(struct mstx_mem_report *r, const char *path,
                                 const struct mstx_mem_log *log, struct ms_err *err)
{
    *r = (struct mstx_mem_report){.path = path, .log = log, .least_rank = -1, .most_rank = -1};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < log->spaces.n && rc == MS_OK; i++)
        rc = add_answer(r, log->spaces.p[i], err);
    if (rc != MS_OK) {
        mstx__mem_report_free(r);
        return rc;
    }
    ms_vec_sort(&r->answers, by_peak);
    compare_ranks(r);
    return MS_OK;
}

void mstx__mem_report_free(struct mstx_mem_report *r)
{
    for (size_t i = 0; i < r->answers.n; i++) {
        mstx__mem_peak_free(&r->answers.p[i].peak);
        mstx__mem_growth_free(&r->answers.p[i].growth);
    }
    ms_vec_free(&r->answers);
}

bool mstx__mem_ranks_differ(const struct mstx_mem_report *r)
{
    return r->has_ranks && (double)r->most > (1 + UNEVEN) * (double)r->least;
}

enum mstx_mem_advice mstx__mem_advice(const struct mstx_mem_answer *a)
{
    const struct mstx_mem_space *s = a->space;
    const struct mstx_mem_failure *f =
        s->failures.n != 0 ? &s->failures.p[s->failures.n - 1] : NULL;
    if (f != NULL && s->has_holes && f->wanted > s->largest_hole &&
        f->wanted <= s->free_bytes + (f->device_free > 0 ? (uint64_t)f->device_free : 0))
        return MSTX_MEM_WOULD_FIT;
    if (a->peak.reserved_then < a->peak.bytes)
        return MSTX_MEM_FITS;
    const uint64_t unused = a->peak.reserved_then - a->peak.bytes;
    return unused >= UNUSED_LEAST && (double)unused > UNUSED * (double)a->peak.reserved_then
               ? MSTX_MEM_FRAGMENTED
               : MSTX_MEM_FITS;
}

bool mstx__mem_has_findings(const struct mstx_mem_report *r)
{
    bool has = mstx__mem_ranks_differ(r);
    for (size_t i = 0; i < r->answers.n && !has; i++)
        has = r->answers.p[i].growth.leaks.n != 0 || r->answers.p[i].space->failures.n != 0;
    return has;
}
