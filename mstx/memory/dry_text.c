/* SPDX-License-Identifier: MIT
 *
 * dry_text: see the header.
 */
#include "mstx/memory/dry_text.h"

#include "probe/base/human.h"
#include "probe/base/order.h"

static const char *const recompute_names[] = {"none", "selective", "full"};

/* ---- layouts that fit ------------------------------------------------------------------------ */

/* Layouts that change less come first: fewer devices, then less division of one model, then less
 * that is computed twice. */
static int by_effort(const void *pa, const void *pb)
{
    const struct dry_layout *a = &((const struct dry_choice *)pa)->layout;
    const struct dry_layout *b = &((const struct dry_choice *)pb)->layout;
    return MS_ORDER(
        a->tp * a->pp * a->dp, b->tp * b->pp * b->dp,
        MS_ORDER(a->recompute, b->recompute,
                 MS_ORDER(a->pp, b->pp, MS_ORDER(a->tp, b->tp, MS_ORDER(a->zero, b->zero, 0)))));
}

static enum ms_rc try_layout(struct dry_choices *c, const struct dry_graph *g,
                             const struct dry_layout *l, struct ms_err *err)
{
    struct dry_plan plan;
    MS_TRY(mstx__dry_plan_make(g, l, &plan, err));
    const uint64_t peak = plan.peak;
    mstx__dry_plan_free(&plan);
    if (peak > c->device_memory)
        return MS_OK;
    struct dry_choice *slot = ms_vec_push(&c->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct dry_choice){*l, peak};
    return MS_OK;
}

static bool is_possible(const struct dry_graph *g, const struct dry_layout *l)
{
    return l->pp <= (int64_t)g->layers && (l->zero == 0 || l->dp > 1) &&
           (l->tp == 1 || (g->hidden_size > 0 && (int64_t)g->hidden_size % l->tp == 0));
}

static enum ms_rc try_rest(struct dry_choices *c, const struct dry_graph *g, struct dry_layout l,
                           struct ms_err *err)
{
    for (l.zero = 0; l.zero <= 3; l.zero++) {
        for (l.recompute = 0; l.recompute <= DRY_RECOMPUTE_FULL; l.recompute++) {
            if (is_possible(g, &l))
                MS_TRY(try_layout(c, g, &l, err));
        }
    }
    return MS_OK;
}

enum ms_rc mstx__dry_choices_find(struct dry_choices *c, const struct dry_graph *g,
                                  const struct dry_layout *base, uint64_t device_memory,
                                  struct ms_err *err)
{
    enum { DEVICES = 64, DIVISION = 8 };
    const int64_t asked = base->tp * base->pp * base->dp;
    *c = (struct dry_choices){.device_memory = device_memory};
    if (device_memory == 0)
        return MS_OK;
    struct dry_layout l = *base;
    for (l.tp = 1; l.tp <= DIVISION; l.tp *= 2) {
        for (l.pp = 1; l.pp <= DIVISION; l.pp *= 2) {
            for (l.dp = 1; l.tp * l.pp * l.dp <= DEVICES; l.dp *= 2) {
                if (asked == 1 || l.tp * l.pp * l.dp == asked)
                    MS_TRY(try_rest(c, g, l, err));
            }
        }
    }
    ms_vec_sort(&c->list, by_effort);
    return MS_OK;
}

void mstx__dry_choices_free(struct dry_choices *c)
{
    ms_vec_free(&c->list);
}

/* ---- text ------------------------------------------------------------------------------------ */

static double share_of(uint64_t part, uint64_t all)
{
    return all != 0 ? 100.0 * (double)part / (double)all : 0;
}

static void put_first(const struct dry_graph *g, const struct dry_plan *p,
                      const struct dry_choices *c, struct ms_buf *out)
{
    char n[2][MS_HUMAN_MAX];
    ms_buf_printf(out, "peak: %s, in the %.*s", ms_human_bytes(n[0], p->peak),
                  MS_STR_ARG(p->phase));
    if (p->op.n != 0)
        ms_buf_printf(out, " at %.*s", MS_STR_ARG(p->op));
    ms_buf_printf(out, "; %s parameters", ms_human_count(n[1], g->parameter_elements));
    if (p->flops > 0)
        ms_buf_printf(out, ", %.3g FLOP a step of one rank", p->flops);
    ms_buf_putc(out, '\n');
    if (c->device_memory != 0)
        ms_buf_printf(out, "device: %s, %s\n", ms_human_bytes(n[0], c->device_memory),
                      p->peak <= c->device_memory ? "this layout fits"
                      : c->list.n != 0            ? "this layout does not fit, those below do"
                                                  : "no layout of up to 64 devices fits");
}

static void put_names(struct ms_buf *out, const char *what, const struct ms_map *names)
{
    enum { SHOWN = 4 };
    const size_t n = names->keys.n;
    for (uint32_t i = 0; i < n && i < SHOWN; i++)
        ms_buf_printf(out, "%s%.*s", i == 0 ? what : ", ", MS_STR_ARG(ms_map_key(names, i)));
    if (n > SHOWN)
        ms_buf_printf(out, " and %zu more", n - SHOWN);
    if (n != 0)
        ms_buf_putc(out, '\n');
}

static void put_choices(const struct dry_choices *c, size_t most, struct ms_buf *out)
{
    char n[MS_HUMAN_MAX];
    const size_t shown = most == 0 || c->list.n < most ? c->list.n : most;
    if (c->list.n == 0)
        return;
    ms_buf_puts(out, "\nlayouts that fit\n   tp   pp   dp  zero  recompute        peak\n");
    for (size_t i = 0; i < shown; i++) {
        const struct dry_choice *d = &c->list.p[i];
        ms_buf_printf(out, "  %3d  %3d  %3d     %d  %-9s %11s\n", (int)d->layout.tp,
                      (int)d->layout.pp, (int)d->layout.dp, (int)d->layout.zero,
                      recompute_names[d->layout.recompute], ms_human_bytes(n, d->peak));
    }
    ms_human_more(out, c->list.n - shown, " layouts");
}

static void put_row(struct ms_buf *out, struct ms_str name, uint64_t bytes, uint64_t all)
{
    char n[MS_HUMAN_MAX];
    ms_buf_puts(out, "  ");
    ms_human_cell(out, name, 48);
    ms_buf_printf(out, " %10s  %5.1f %%\n", ms_human_bytes(n, bytes), share_of(bytes, all));
}

void mstx__dry_plan_text(const struct dry_graph *g, const struct dry_plan *p,
                         const struct dry_choices *c, size_t most, struct ms_buf *out)
{
    const size_t shown = most == 0 || p->modules.n < most ? p->modules.n : most;
    put_first(g, p, c, out);
    put_names(out, "not counted, so the peak is higher: no operator was dumped in ",
              &g->silent_modules);
    put_names(out, "not certain: what these operators keep for the backward: ", &g->unknown_ops);
    put_choices(c, most, out);
    ms_buf_puts(out, "\nat the peak, by kind\n");
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++) {
        if (p->by_kind[k] != 0)
            put_row(out, ms_str_of(mstx__mem_kind_text((enum mstx_mem_kind)k)), p->by_kind[k],
                    p->peak);
    }
    if (p->modules.n != 0)
        ms_buf_puts(out, "\nactivations at the peak, by module\n");
    for (size_t i = 0; i < shown; i++) {
        const struct ms_str name = ms_map_key(&g->modules, p->modules.p[i].module);
        put_row(out, name.n != 0 ? name : MS_STR("(outside of all modules)"), p->modules.p[i].bytes,
                p->peak);
    }
    ms_human_more(out, p->modules.n - shown, "");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_layout(struct ms_jwrite *w, const struct dry_layout *l)
{
    ms_jwrite_ki64(w, "tp", l->tp);
    ms_jwrite_ki64(w, "pp", l->pp);
    ms_jwrite_ki64(w, "dp", l->dp);
    ms_jwrite_ki64(w, "zero", l->zero);
    ms_jwrite_kstr(w, "recompute", recompute_names[l->recompute]);
}

static void put_modules(struct ms_jwrite *w, const struct dry_graph *g, const struct dry_plan *p,
                        size_t most)
{
    ms_jwrite_key(w, MS_STR("modules"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < p->modules.n && (most == 0 || i < most); i++) {
        ms_jwrite_obj(w);
        ms_jwrite_ktext(w, "name", ms_map_key(&g->modules, p->modules.p[i].module));
        ms_jwrite_ki64(w, "bytes", (int64_t)p->modules.p[i].bytes);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void put_name_list(struct ms_jwrite *w, const char *key, const struct ms_map *names)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (uint32_t i = 0; i < names->keys.n; i++)
        ms_jwrite_str(w, ms_map_key(names, i));
    ms_jwrite_arr_end(w);
}

static void put_fitting(struct ms_jwrite *w, const struct dry_choices *c, size_t most)
{
    ms_jwrite_key(w, MS_STR("layouts"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < c->list.n && (most == 0 || i < most); i++) {
        ms_jwrite_obj(w);
        put_layout(w, &c->list.p[i].layout);
        ms_jwrite_ki64(w, "peak", (int64_t)c->list.p[i].peak);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

void mstx__dry_plan_json(const struct dry_graph *g, const struct dry_plan *p,
                         const struct dry_layout *l, const struct dry_choices *c, size_t most,
                         struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    put_layout(w, l);
    ms_jwrite_ki64(w, "peak", (int64_t)p->peak);
    ms_jwrite_ktext(w, "phase", p->phase);
    ms_jwrite_ktext(w, "operator", p->op);
    ms_jwrite_ki64(w, "parameters", (int64_t)g->parameter_elements);
    ms_jwrite_kf64(w, "flops", p->flops);
    ms_jwrite_key(w, MS_STR("kinds"));
    ms_jwrite_obj(w);
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++)
        ms_jwrite_ki64(w, mstx__mem_kind_text((enum mstx_mem_kind)k), (int64_t)p->by_kind[k]);
    ms_jwrite_obj_end(w);
    put_modules(w, g, p, most);
    put_name_list(w, "silent_modules", &g->silent_modules);
    put_name_list(w, "unknown_operators", &g->unknown_ops);
    ms_jwrite_kmaybe(w, "device_memory", c->device_memory != 0 ? (int64_t)c->device_memory : -1);
    put_fitting(w, c, most);
    ms_jwrite_obj_end(w);
}
