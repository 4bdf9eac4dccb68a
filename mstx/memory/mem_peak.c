/* SPDX-License-Identifier: MIT
 *
 * mem_peak: one pass over the changes finds the event of the peak; one over the blocks finds those
 * that live at it.
 */
#include "mstx/memory/mem_peak.h"

#include "mstx/memory/mem_kinds.h"

#include "probe/base/assert.h"
#include "probe/base/order.h"

/* Bytes in use before event 1. */
static uint64_t bytes_before(const struct mstx_mem_space *s)
{
    uint64_t bytes = s->earlier;
    for (size_t i = 0; i < s->blocks.n && s->blocks.p[i].begin == 0; i++)
        bytes += s->blocks.p[i].bytes;
    return bytes;
}

static void find_event(const struct mstx_mem_space *s, struct mstx_mem_peak *peak)
{
    int64_t now = (int64_t)bytes_before(s), most = now;
    for (size_t i = 0; i < s->changes.n; i++) {
        now += s->changes.p[i];
        if (now > most) {
            most = now;
            peak->event = (uint32_t)i + 1;
        }
    }
    peak->bytes = (uint64_t)most;
}

static void find_reserved(const struct mstx_mem_space *s, struct mstx_mem_peak *peak)
{
    int64_t now = (int64_t)s->pools_earlier;
    peak->reserved_then = peak->reserved_most = s->pools_earlier;
    for (size_t i = 0; i < s->pools.n; i++) {
        now += s->pools.p[i].bytes;
        if (now < 0)
            now = 0;
        /* a pool that is taken for a block is told before the block */
        if (s->pools.p[i].event <= peak->event)
            peak->reserved_then = (uint64_t)now;
        if ((uint64_t)now > peak->reserved_most)
            peak->reserved_most = (uint64_t)now;
    }
}

/* Where a tool tells totals alone, the greatest of them is the peak. */
static void find_in_totals(const struct mstx_mem_space *s, struct mstx_mem_peak *peak)
{
    for (size_t i = 0; i < s->totals.n; i++) {
        const struct mstx_mem_total *t = &s->totals.p[i];
        if (t->reserved > (int64_t)peak->reserved_most)
            peak->reserved_most = (uint64_t)t->reserved;
        if (t->allocated <= (int64_t)peak->bytes)
            continue;
        peak->bytes = (uint64_t)t->allocated;
        peak->at_ns = t->at_ns;
        peak->reserved_then = t->reserved > 0 ? (uint64_t)t->reserved : 0;
    }
}

static bool lives_at(const struct mstx_mem_block *b, uint32_t event)
{
    return b->begin <= event && event < b->end;
}

/* Sums what lives at the peak by kind and by site. */
static void sum_sites(const struct mstx_mem_space *s, struct mstx_mem_peak *peak,
                      struct mstx_mem_share *sites)
{
    for (size_t i = 0; i < s->blocks.n; i++) {
        const struct mstx_mem_block *b = &s->blocks.p[i];
        if (b->begin > peak->event)
            break; /* blocks are in the order of their events */
        if (!lives_at(b, peak->event))
            continue;
        peak->by_kind[b->kind] += b->bytes;
        peak->blocks++;
        sites[b->site].bytes += b->bytes;
        sites[b->site].blocks++;
        if (b->begin == peak->event && peak->event != 0)
            peak->at_ns = b->begin_ns;
    }
    peak->by_kind[MSTX_MEM_EARLIER] += s->earlier;
}

static int by_bytes(const void *pa, const void *pb)
{
    const struct mstx_mem_share *a = pa, *b = pb;
    return MS_ORDER(b->bytes, a->bytes, MS_ORDER(a->text, b->text, 0));
}

static uint32_t field_of(const struct mstx_mem_site *site, int field)
{
    const uint32_t fields[] = {site->module, site->op, site->frame, site->stack};
    return fields[field];
}

/* Joins the sums of sites that have one text in a field. */
static enum ms_rc join_field(const struct mstx_mem_log *log, const struct mstx_mem_share *sites,
                             int field, uint32_t *place, mstx_mem_shares *out, struct ms_err *err)
{
    memset(place, 0, log->texts.keys.n * sizeof *place);
    for (size_t i = 0; i < log->sites.n; i++) {
        if (sites[i].blocks == 0)
            continue;
        const uint32_t text = field_of(&log->sites.p[i], field);
        ms_assert(text < log->texts.keys.n);
        if (place[text] == 0) {
            struct mstx_mem_share *slot = ms_vec_push(out);
            if (slot == NULL)
                return ms_no_memory(err);
            *slot = (struct mstx_mem_share){.text = text};
            place[text] = (uint32_t)out->n;
        }
        struct mstx_mem_share *share = &out->p[place[text] - 1];
        share->bytes += sites[i].bytes;
        share->blocks += sites[i].blocks;
    }
    ms_vec_sort(out, by_bytes);
    return MS_OK;
}

static enum ms_rc find_owners(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                              struct mstx_mem_peak *peak, struct ms_err *err)
{
    struct mstx_mem_share *sites = ms_calloc(log->sites.n, sizeof *sites);
    uint32_t *place = ms_calloc(log->texts.keys.n, sizeof *place);
    enum ms_rc rc = sites != NULL && place != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        sum_sites(s, peak, sites);
    mstx_mem_shares *const to[] = {&peak->modules, &peak->ops, &peak->frames, &peak->stacks};
    for (int i = 0; i < 4 && rc == MS_OK; i++)
        rc = join_field(log, sites, i, place, to[i], err);
    ms_free(sites);
    ms_free(place);
    return rc;
}

enum ms_rc mstx__mem_peak_find(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                               struct mstx_mem_peak *peak, struct ms_err *err)
{
    *peak = (struct mstx_mem_peak){.at_ns = MSTX_MEM_NO_TIME, .step = -1};
    find_event(s, peak);
    find_reserved(s, peak);
    const enum ms_rc rc = find_owners(log, s, peak, err);
    if (rc != MS_OK) {
        mstx__mem_peak_free(peak);
        return rc;
    }
    if (s->changes.n == 0)
        find_in_totals(s, peak);
    const int64_t step = peak->at_ns != MSTX_MEM_NO_TIME ? mstx__mem_step_at(s, peak->at_ns) : -1;
    if (step >= 0)
        peak->step = s->steps.p[step].number;
    return MS_OK;
}

void mstx__mem_peak_free(struct mstx_mem_peak *peak)
{
    ms_vec_free(&peak->modules);
    ms_vec_free(&peak->ops);
    ms_vec_free(&peak->frames);
    ms_vec_free(&peak->stacks);
}
