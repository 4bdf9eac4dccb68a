/* SPDX-License-Identifier: MIT
 *
 * time_use: see the header.
 */
#include "mstx/conclude/alike_ranks.h"

#include "probe/base/assert.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

const char *const mstx_use_names[MSTX_USE_PARTS] = {
    "step", "computing", "communication", "exposed", "overlapped",
    "free", "bubble",    "preparing",     "waiting", "blame"};

/* ---- reading -------------------------------------------------------------------- */

static enum ms_rc take_rank(struct mstx_use *u, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_use_rank *r = ms_vec_push(&u->rank);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct mstx_use_rank){.rank = ms_stmt_get_i64(st, 0), .steps = ms_stmt_get_i64(st, 1)};
    for (int i = 0; i < MSTX_USE_PARTS; i++)
        r->ns[i] = ms_stmt_get_f64(st, 2 + i);
    return MS_OK;
}

static enum ms_rc take_memory(struct mstx_use *u, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_use_memory *m = ms_vec_push(&u->memory);
    if (m == NULL)
        return ms_no_memory(err);
    *m = (struct mstx_use_memory){.rank = ms_stmt_get_i64(st, 0),
                                  .name = ms_str_dup(ms_stmt_get_str(st, 1)),
                                  .most = ms_stmt_get_i64(st, 2),
                                  .samples = ms_stmt_get_i64(st, 3)};
    return m->name != NULL ? MS_OK : ms_no_memory(err);
}

typedef enum ms_rc (*visit_fn)(struct mstx_use *u, struct ms_stmt *st, struct ms_err *err);

/* Calls `visit` for each row of a query; no rows when a database of an older version lacks the
 * table. */
static enum ms_rc each_row(struct mstx_tl *tl, const char *sql, visit_fn visit, struct mstx_use *u,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    if (ms_store_prepare(mstx_tl_store(tl), &st, sql, NULL) != MS_OK)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = visit(u, st, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx_use_measure(struct mstx_tl *tl, struct mstx_use *u, struct ms_err *err)
{
    *u = (struct mstx_use){0};
    enum ms_rc rc = each_row(tl, "SELECT * FROM rank_use ORDER BY rank", take_rank, u, err);
    if (rc == MS_OK && u->rank.n == 0) /* a database of an older version */
        rc = each_row(
            tl,
            "SELECT rank, count(*), avg(end_ns - start_ns), avg(computing_ns), "
            "avg(communication_ns),"
            " avg(exposed_ns), avg(overlapped_ns), avg(free_ns), avg(bubble_ns), avg(preparing_ns),"
            " avg(waiting_ns), avg(blame_ns) FROM rank_steps WHERE rank >= 0 GROUP BY rank ORDER "
            "BY 1",
            take_rank, u, err);
    if (rc == MS_OK)
        rc = each_row(tl,
                      "SELECT p.rank, t.name, max(n.max_ns), sum(n.events) FROM tracks t"
                      " JOIN names n ON n.track = t.id JOIN processes p ON p.id = t.process"
                      " WHERE t.kind = 1 AND (lower(t.unit) IN ('b', 'byte', 'bytes') OR"
                      " t.name LIKE '%bytes%') GROUP BY p.rank, t.name ORDER BY p.rank, t.name",
                      take_memory, u, err);
    if (rc != MS_OK)
        mstx_use_free(u);
    return rc;
}

void mstx_use_free(struct mstx_use *u)
{
    for (size_t i = 0; i < u->memory.n; i++)
        ms_free(u->memory.p[i].name);
    ms_vec_free(&u->memory);
    ms_vec_free(&u->rank);
}

static double share_of_peak(const struct mstx_use *u, const struct mstx_use_rank *r, double flops)
{
    const double seconds = r->ns[MSTX_USE_STEP] / 1e9;
    return u->peak > 0 && seconds > 0 ? flops / (seconds * u->peak) : 0;
}

double mstx_use_mfu(const struct mstx_use *u, const struct mstx_use_rank *r)
{
    return share_of_peak(u, r, r->flops.machine > 0 ? r->flops.model : u->flops.model);
}

double mstx_use_hfu(const struct mstx_use *u, const struct mstx_use_rank *r)
{
    return share_of_peak(u, r, r->flops.machine > 0 ? r->flops.machine : u->flops.machine);
}

void mstx_use_flops(struct mstx_tl *tl, const struct mstx_steps *steps, const mstx_step_flops *of,
                    struct mstx_use *u)
{
    ms_assert(of->n == steps->list.n);
    for (size_t k = 0; k < u->rank.n; k++) {
        struct mstx_use_rank *r = &u->rank.p[k];
        struct mstx_flops sum = {0};
        double n = 0;
        for (size_t i = 0; i < of->n; i++) {
            if (mstx_tl_process(tl, steps->list.p[i].process)->rank != r->rank)
                continue;
            sum.model += of->p[i].model;
            sum.machine += of->p[i].machine;
            n++;
        }
        if (n > 0)
            r->flops = (struct mstx_flops){sum.model / n, sum.machine / n};
    }
}

/* ---- showing --------------------------------------------------------------------- */

/* Returns the width of a column: that of its name, at least enough for any time. */
static int width_of(int part)
{
    const int n = (int)strlen(mstx_use_names[part]);
    return n > 10 ? n : 10;
}

/* Writes a row behind its ranks. */
static void text_parts(const struct mstx_use *u, const struct mstx_use_rank *r, struct ms_buf *out)
{
    char time[MS_HUMAN_MAX];
    const double comm = r->ns[MSTX_USE_COMM];
    ms_buf_printf(out, " %6" PRId64, r->steps);
    for (int i = 0; i < MSTX_USE_PARTS; i++)
        ms_buf_printf(out, " %*s", width_of(i), ms_human_time(time, (int64_t)r->ns[i]));
    ms_buf_printf(out, " %6.1f %%", comm > 0 ? 100 * r->ns[MSTX_USE_OVERLAPPED] / comm : 0);
    if (u->peak > 0)
        ms_buf_printf(out, " %6.2f %% %6.2f %%", 100 * mstx_use_mfu(u, r),
                      100 * mstx_use_hfu(u, r));
    ms_buf_putc(out, '\n');
}

static void text_head(const struct mstx_use *u, const char *ranks, int width, struct ms_buf *out)
{
    ms_buf_printf(out, "\n  %*s %6s", width, ranks, "steps");
    for (int i = 0; i < MSTX_USE_PARTS; i++)
        ms_buf_printf(out, " %*s", width_of(i), mstx_use_names[i]);
    ms_buf_printf(out, " %8s%s\n", "overlap", u->peak > 0 ? "      MFU      HFU" : "");
}

static void text_each(const struct mstx_use *u, struct ms_buf *out)
{
    text_head(u, "rank", 4, out);
    for (size_t i = 0; i < u->rank.n; i++) {
        ms_buf_printf(out, "  %4" PRId64, u->rank.p[i].rank);
        text_parts(u, &u->rank.p[i], out);
    }
}

/* Writes a row for each group of ranks that are alike, those of few ranks first. */
static enum ms_rc text_alike(const struct mstx_use *u, size_t most, uint32_t *group,
                             mstx_alike_list *list, struct ms_buf *out)
{
    enum { WIDTH = 32 };
    struct ms_err ignored = {0};
    MS_TRY(mstx_alike_find(u, list, group, &ignored));
    text_head(u, "ranks alike", WIDTH + 6, out);
    for (uint32_t g = 0; g < list->n && g < most; g++) {
        struct ms_buf ranks = {.max = 2 * WIDTH};
        mstx_alike_text(u, group, g, WIDTH, &ranks);
        ms_buf_printf(out, "  %5zu %*s", list->p[g].ranks, WIDTH, ms_buf_z(&ranks));
        ms_buf_free(&ranks);
        text_parts(u, &list->p[g].mean, out);
    }
    if (list->n > most)
        ms_buf_printf(out, "  ... %zu more groups; --most 0 shows each rank\n", list->n - most);
    return MS_OK;
}

static void text_ranks(const struct mstx_use *u, size_t most, struct ms_buf *out)
{
    mstx_alike_list list = {.p = NULL};
    if (u->rank.n == 0)
        return;
    if (most == 0 || u->rank.n <= most) {
        text_each(u, out);
        return;
    }
    uint32_t *group = ms_calloc(u->rank.n, sizeof *group);
    if (group == NULL || text_alike(u, most, group, &list, out) != MS_OK)
        out->bad = MS_E_NOMEM;
    ms_vec_free(&list);
    ms_free(group);
}

void mstx_use_text(const struct mstx_use *u, size_t most, struct ms_buf *out)
{
    char bytes[MS_HUMAN_MAX];
    text_ranks(u, most, out);
    if (u->memory.n != 0)
        ms_buf_printf(out, "\n  %4s  %-32s %10s %9s\n", "rank", "memory", "most", "samples");
    for (size_t i = 0; i < u->memory.n && (most == 0 || i < most); i++) {
        const struct mstx_use_memory *m = &u->memory.p[i];
        ms_buf_printf(out, "  %4" PRId64 "  %-32.32s %10s %9" PRId64 "\n", m->rank, m->name,
                      ms_human_bytes(bytes, m->most > 0 ? (uint64_t)m->most : 0), m->samples);
    }
}

void mstx_use_json(const struct mstx_use *u, struct ms_jwrite *w)
{
    ms_jwrite_key(w, MS_STR("use"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < u->rank.n; i++) {
        const struct mstx_use_rank *r = &u->rank.p[i];
        char name[40];
        ms_jwrite_obj(w);
        ms_jwrite_ki64(w, "rank", r->rank);
        ms_jwrite_ki64(w, "steps", r->steps);
        for (int k = 0; k < MSTX_USE_PARTS; k++) {
            snprintf(name, sizeof name, "%s_ns", mstx_use_names[k]);
            ms_jwrite_kf64(w, name, r->ns[k]);
        }
        if (u->peak > 0) {
            ms_jwrite_kf64(w, "mfu", mstx_use_mfu(u, r));
            ms_jwrite_kf64(w, "hfu", mstx_use_hfu(u, r));
        }
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("memory"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < u->memory.n; i++) {
        ms_jwrite_obj(w);
        ms_jwrite_ki64(w, "rank", u->memory.p[i].rank);
        ms_jwrite_kstr(w, "name", u->memory.p[i].name);
        ms_jwrite_ki64(w, "most_bytes", u->memory.p[i].most);
        ms_jwrite_ki64(w, "samples", u->memory.p[i].samples);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}
