/* SPDX-License-Identifier: MIT
 *
 * mem_json: the answers as `msprobe memory --format json`, explained in msprobe-json(5).
 */
#include "mstx/memory/mem_report.h"

static struct ms_str text_of(const struct mstx_mem_report *r, uint32_t text)
{
    return mstx__mem_text_of(r->log, text);
}

static void put_maybe_text(struct ms_jwrite *w, const char *key, struct ms_str s)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (s.n != 0)
        ms_jwrite_str(w, s);
    else
        ms_jwrite_null(w);
}

static void put_shares(struct ms_jwrite *w, const struct mstx_mem_report *r, const char *key,
                       const mstx_mem_shares *shares, size_t most)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < shares->n && (most == 0 || i < most); i++) {
        ms_jwrite_obj(w);
        put_maybe_text(w, "name", text_of(r, shares->p[i].text));
        ms_jwrite_ki64(w, "bytes", (int64_t)shares->p[i].bytes);
        ms_jwrite_ki64(w, "blocks", shares->p[i].blocks);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void put_peak(struct ms_jwrite *w, const struct mstx_mem_report *r,
                     const struct mstx_mem_peak *p, size_t most)
{
    ms_jwrite_key(w, MS_STR("peak"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "bytes", (int64_t)p->bytes);
    ms_jwrite_ki64(w, "blocks", (int64_t)p->blocks);
    ms_jwrite_ki64(w, "event", p->event);
    ms_jwrite_kmaybe(w, "step", p->step);
    ms_jwrite_key(w, MS_STR("kinds"));
    ms_jwrite_obj(w);
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++)
        ms_jwrite_ki64(w, mstx__mem_kind_text((enum mstx_mem_kind)k), (int64_t)p->by_kind[k]);
    ms_jwrite_obj_end(w);
    put_shares(w, r, "modules", &p->modules, most);
    put_shares(w, r, "operators", &p->ops, most);
    put_shares(w, r, "frames", &p->frames, most);
    put_shares(w, r, "stacks", &p->stacks, most);
    ms_jwrite_obj_end(w);
}

static void put_site(struct ms_jwrite *w, const struct mstx_mem_report *r, uint32_t number)
{
    const struct mstx_mem_site *site = &r->log->sites.p[number];
    put_maybe_text(w, "frame", text_of(r, site->frame));
    put_maybe_text(w, "operator", text_of(r, site->op));
    put_maybe_text(w, "module", text_of(r, site->module));
}

static void put_growth(struct ms_jwrite *w, const struct mstx_mem_report *r,
                       const struct mstx_mem_growth *g, size_t most)
{
    ms_jwrite_key(w, MS_STR("growth"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "steps", g->steps);
    ms_jwrite_kf64(w, "bytes_per_step", g->bytes_per_step);
    ms_jwrite_key(w, MS_STR("leaks"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < g->leaks.n && (most == 0 || i < most); i++) {
        ms_jwrite_obj(w);
        ms_jwrite_kf64(w, "bytes_per_step", g->leaks.p[i].bytes_per_step);
        ms_jwrite_ki64(w, "steps", g->leaks.p[i].steps);
        put_site(w, r, g->leaks.p[i].site);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

static void put_allocator(struct ms_jwrite *w, const struct mstx_mem_answer *a)
{
    static const char *const advice[] = {"none", "fragmented", "would_fit"};
    const struct mstx_mem_space *s = a->space;
    ms_jwrite_key(w, MS_STR("allocator"));
    ms_jwrite_obj(w);
    ms_jwrite_kmaybe(w, "reserved_at_peak",
                     a->peak.reserved_most != 0 ? (int64_t)a->peak.reserved_then : -1);
    ms_jwrite_kmaybe(w, "reserved_most",
                     a->peak.reserved_most != 0 ? (int64_t)a->peak.reserved_most : -1);
    ms_jwrite_kmaybe(w, "free_parts", s->has_holes ? (int64_t)s->holes : -1);
    ms_jwrite_kmaybe(w, "free_bytes", s->has_holes ? (int64_t)s->free_bytes : -1);
    ms_jwrite_kmaybe(w, "largest_free", s->has_holes ? (int64_t)s->largest_hole : -1);
    ms_jwrite_kstr(w, "advice", advice[mstx__mem_advice(a)]);
    ms_jwrite_obj_end(w);
}

static void put_failures(struct ms_jwrite *w, const struct mstx_mem_report *r,
                         const struct mstx_mem_space *s)
{
    ms_jwrite_key(w, MS_STR("out_of_memory"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->failures.n; i++) {
        ms_jwrite_obj(w);
        ms_jwrite_ki64(w, "wanted", (int64_t)s->failures.p[i].wanted);
        ms_jwrite_kmaybe(w, "device_free", s->failures.p[i].device_free);
        put_site(w, r, s->failures.p[i].site);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void put_answer(struct ms_jwrite *w, const struct mstx_mem_report *r,
                       const struct mstx_mem_answer *a, size_t most)
{
    ms_jwrite_obj(w);
    ms_jwrite_kmaybe(w, "rank", a->space->rank);
    ms_jwrite_ktext(w, "device", a->space->device);
    ms_jwrite_ki64(w, "events", mstx__mem_events(a->space));
    ms_jwrite_ki64(w, "steps", (int64_t)a->space->steps.n);
    put_peak(w, r, &a->peak, most);
    put_growth(w, r, &a->growth, most);
    put_allocator(w, a);
    put_failures(w, r, a->space);
    ms_jwrite_obj_end(w);
}

static void put_ranks(struct ms_jwrite *w, const struct mstx_mem_report *r)
{
    ms_jwrite_key(w, MS_STR("ranks"));
    if (!r->has_ranks) {
        ms_jwrite_null(w);
        return;
    }
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "most_rank", r->most_rank);
    ms_jwrite_ki64(w, "most", (int64_t)r->most);
    ms_jwrite_ki64(w, "least_rank", r->least_rank);
    ms_jwrite_ki64(w, "least", (int64_t)r->least);
    ms_jwrite_kbool(w, "in_balance", !mstx__mem_ranks_differ(r));
    ms_jwrite_obj_end(w);
}

void mstx__mem_report_json(const struct mstx_mem_report *r, size_t most, struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", r->path);
    ms_jwrite_key(w, MS_STR("devices"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->answers.n; i++)
        put_answer(w, r, &r->answers.p[i], most);
    ms_jwrite_arr_end(w);
    put_ranks(w, r);
    ms_jwrite_key(w, MS_STR("notes"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->log->notes.n; i++)
        ms_jwrite_str(w, r->log->notes.p[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}
