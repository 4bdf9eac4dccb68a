/* SPDX-License-Identifier: MIT
 *
 * mem_against: two records beside each other, by kind and by owner.
 *
 * The devices with the greatest peaks are held beside each other. Owners are matched by their
 * names, of lines of the program without the number of the line, which moves when a file is edited.
 */
#include "mstx/memory/mem_report.h"

#include "probe/base/human.h"
#include "probe/base/order.h"

#include <stdlib.h>
#include <string.h>

/* An owner on both sides. */
struct pair {
    struct ms_str name;
    uint64_t now, old;
};
typedef MS_VEC(struct pair) pairs;

static int64_t change_of(const struct pair *p)
{
    return (int64_t)p->now - (int64_t)p->old;
}

static int by_change(const void *pa, const void *pb)
{
    const int64_t a = llabs(change_of(pa)), b = llabs(change_of(pb));
    const struct pair *x = pa, *y = pb;
    return MS_ORDER(b, a, ms_str_cmp(x->name, y->name));
}

/* "train.py:17 step" without the number; other names as they are. */
static struct ms_str key_of(struct ms_str name, struct ms_buf *key)
{
    const int64_t colon = ms_str_find(name, ':');
    const uint32_t digits = colon >= 0 ? ms_str_digits(name, (uint32_t)colon + 1) : 0;
    key->n = 0;
    if (digits == 0)
        return name;
    ms_buf_str(key, ms_str_sub(name, 0, (uint32_t)colon));
    ms_buf_str(key, ms_str_sub(name, (uint32_t)colon + 1 + digits, name.n));
    return ms_buf_slice(key);
}

struct joining {
    struct ms_map names;
    struct ms_arena *arena;
    pairs *out;
};

static enum ms_rc join_side(struct joining *j, const struct mstx_mem_report *r,
                            const mstx_mem_shares *shares, bool is_old, struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < shares->n && rc == MS_OK; i++) {
        const struct ms_str name = mstx__mem_text_of(r->log, shares->p[i].text);
        bool added;
        const uint32_t at = ms_map_put_copy(&j->names, key_of(name, &key), j->arena, &added);
        struct pair *slot = at != MS_MAP_NONE && added ? ms_vec_push(j->out) : NULL;
        if (at == MS_MAP_NONE || (added && slot == NULL)) {
            rc = ms_no_memory(err);
            break;
        }
        if (added)
            *slot = (struct pair){.name = name};
        *(is_old ? &j->out->p[at].old : &j->out->p[at].now) += shares->p[i].bytes;
    }
    ms_buf_free(&key);
    return rc;
}

/* Joins the owners of both sides; the names belong to the logs. */
static enum ms_rc join_shares(const struct mstx_mem_report *r, const mstx_mem_shares *now,
                              const struct mstx_mem_report *o, const mstx_mem_shares *old,
                              pairs *out)
{
    struct joining j = {.arena = ms_arena_new((size_t)1 << 30), .out = out};
    enum ms_rc rc = j.arena != NULL ? join_side(&j, r, now, false, NULL) : MS_E_NOMEM;
    if (rc == MS_OK)
        rc = join_side(&j, o, old, true, NULL);
    ms_map_free(&j.names);
    ms_arena_free(j.arena);
    ms_vec_sort(out, by_change);
    return rc;
}

static void put_change(struct ms_buf *out, const struct pair *p)
{
    char n[3][MS_HUMAN_MAX];
    const int64_t change = change_of(p);
    ms_buf_puts(out, "  ");
    ms_human_cell(out, p->name.n != 0 ? p->name : MS_STR("not known"), 56);
    ms_buf_printf(out, " %10s %10s  %c%s\n", ms_human_bytes(n[0], p->old),
                  ms_human_bytes(n[1], p->now), change < 0 ? '-' : '+',
                  ms_human_bytes(n[2], (uint64_t)llabs(change)));
}

static void put_table(struct ms_buf *out, const char *what, const pairs *rows, size_t most)
{
    size_t n = 0;
    while (n < rows->n && change_of(&rows->p[n]) != 0)
        n++;
    const size_t shown = most == 0 || n < most ? n : most;
    if (n == 0)
        return;
    ms_buf_printf(out, "\nat the peaks, by %s%*s\n", what, 0, "");
    for (size_t i = 0; i < shown; i++)
        put_change(out, &rows->p[i]);
    ms_human_more(out, n - shown, "");
}

static enum ms_rc kind_rows(const struct mstx_mem_peak *now, const struct mstx_mem_peak *old,
                            pairs *out)
{
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++) {
        struct pair *slot = ms_vec_push(out);
        if (slot == NULL)
            return MS_E_NOMEM;
        *slot = (struct pair){ms_str_of(mstx__mem_kind_text((enum mstx_mem_kind)k)),
                              now->by_kind[k], old->by_kind[k]};
    }
    ms_vec_sort(out, by_change);
    return MS_OK;
}

/* The tables of a comparison. */
enum { TABLES = 4 };
static const char *const table_names[TABLES] = {"kind", "module", "operator",
                                                "line of the program"};

static enum ms_rc make_tables(const struct mstx_mem_report *r, const struct mstx_mem_report *o,
                              pairs tables[TABLES])
{
    const struct mstx_mem_peak *now = &r->answers.p[0].peak, *old = &o->answers.p[0].peak;
    memset(tables, 0, TABLES * sizeof *tables);
    MS_TRY(kind_rows(now, old, &tables[0]));
    MS_TRY(join_shares(r, &now->modules, o, &old->modules, &tables[1]));
    MS_TRY(join_shares(r, &now->ops, o, &old->ops, &tables[2]));
    return join_shares(r, &now->frames, o, &old->frames, &tables[3]);
}

static void free_tables(pairs tables[TABLES])
{
    for (int i = 0; i < TABLES; i++)
        ms_vec_free(&tables[i]);
}

static void put_first_line(struct ms_buf *out, const struct mstx_mem_report *r,
                           const struct mstx_mem_report *o, const pairs tables[TABLES])
{
    char n[3][MS_HUMAN_MAX];
    const uint64_t now = r->answers.p[0].peak.bytes, old = o->answers.p[0].peak.bytes;
    const uint64_t change = now > old ? now - old : old - now;
    ms_buf_printf(out, "peak: %s, %s before: ", ms_human_bytes(n[0], now),
                  ms_human_bytes(n[1], old));
    if (change == 0) {
        ms_buf_puts(out, "the same\n");
        return;
    }
    ms_buf_printf(out, "%s %s (%.1f %%)", ms_human_bytes(n[2], change), now > old ? "more" : "less",
                  old != 0 ? 100.0 * (double)change / (double)old : 0);
    if (tables[0].n != 0 && change_of(&tables[0].p[0]) != 0)
        ms_buf_printf(out, ", most of it %.*s", MS_STR_ARG(tables[0].p[0].name));
    if (tables[3].n != 0 && tables[3].p[0].name.n != 0 && change_of(&tables[3].p[0]) != 0)
        ms_buf_printf(out, ", by %.*s", MS_STR_ARG(tables[3].p[0].name));
    ms_buf_putc(out, '\n');
}

void mstx__mem_against_text(const struct mstx_mem_report *r, const struct mstx_mem_report *old,
                            size_t most, struct ms_buf *out)
{
    pairs tables[TABLES];
    if (r->answers.n == 0 || old->answers.n == 0) {
        ms_buf_printf(out, "%s: no memory events\n", r->answers.n == 0 ? r->path : old->path);
        return;
    }
    if (make_tables(r, old, tables) != MS_OK)
        out->bad = MS_E_NOMEM;
    put_first_line(out, r, old, tables);
    for (int i = 0; i < TABLES; i++)
        put_table(out, table_names[i], &tables[i], most);
    free_tables(tables);
}

static void put_json_table(struct ms_jwrite *w, const char *key, const pairs *rows, size_t most)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < rows->n && (most == 0 || i < most); i++) {
        ms_jwrite_obj(w);
        ms_jwrite_ktext(w, "name", rows->p[i].name);
        ms_jwrite_ki64(w, "bytes", (int64_t)rows->p[i].now);
        ms_jwrite_ki64(w, "old_bytes", (int64_t)rows->p[i].old);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

void mstx__mem_against_json(const struct mstx_mem_report *r, const struct mstx_mem_report *old,
                            size_t most, struct ms_jwrite *w)
{
    static const char *const keys[TABLES] = {"kinds", "modules", "operators", "frames"};
    pairs tables[TABLES];
    const bool both = r->answers.n != 0 && old->answers.n != 0;
    memset(tables, 0, sizeof tables);
    if (both && make_tables(r, old, tables) != MS_OK)
        w->buf.bad = MS_E_NOMEM;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", r->path);
    ms_jwrite_kstr(w, "against", old->path);
    ms_jwrite_kmaybe(w, "peak", r->answers.n != 0 ? (int64_t)r->answers.p[0].peak.bytes : -1);
    ms_jwrite_kmaybe(w, "old_peak",
                     old->answers.n != 0 ? (int64_t)old->answers.p[0].peak.bytes : -1);
    for (int i = 0; i < TABLES; i++)
        put_json_table(w, keys[i], &tables[i], most);
    ms_jwrite_obj_end(w);
    free_tables(tables);
}
