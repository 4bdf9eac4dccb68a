/* SPDX-License-Identifier: MIT
 *
 * ascend_calls: see the header.
 */
#include "mstx/foreign/ascend_calls.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/sql/ascend_calls.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>

enum { CALL_STARTS = 2 /* flag of comm_ops: the call only starts an operation */ };

/* ---- communicators ---------------------------------------------------------- */

/* Computes the number that HCCL's tools give to the name of a communicator. */
static uint64_t double_hash(struct ms_str text)
{
    uint32_t a = 0, b = 0;
    for (uint32_t i = 0; i < text.n; i++) {
        a = a * 29 + (uint32_t)(signed char)text.p[i];
        b = b * 131 + (uint32_t)(signed char)text.p[i];
    }
    return (uint64_t)a << 32 | b;
}

static enum ms_rc add_group(struct mstx_ascend_groups *g, int64_t id, struct ms_str name,
                            int64_t size, struct ms_err *err)
{
    char digits[24];
    struct mstx_ascend_group *slot = ms_vec_push(&g->list);
    if (slot == NULL)
        return ms_no_memory(err);
    const struct ms_str kept = ms_arena_str(g->arena, ms_str_sub(name, 0, MSTX_MARKED_NAME - 1));
    if (kept.p == NULL)
        return ms_no_memory(err);
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, double_hash(kept));
    *slot = (struct mstx_ascend_group){.id = id, .size = size, .name = kept};
    snprintf(slot->number, sizeof slot->number, "%.3s", n > 3 ? digits + n - 3 : digits);
    return MS_OK;
}

static enum ms_rc read_groups(struct mstx_ascend_groups *g, struct mstx_tl *tl, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(add_group(g, 0, MS_STR(""), -1, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_name_groups, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = add_group(g, ms_stmt_get_i64(st, 0), ms_stmt_get_str(st, 1), ms_stmt_get_i64(st, 2),
                       err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__ascend_groups_read(struct mstx_ascend_groups **out, struct mstx_tl *tl,
                                    struct ms_err *err)
{
    struct mstx_ascend_groups *g = ms_calloc(1, sizeof *g);
    *out = NULL;
    if (g == NULL)
        return ms_no_memory(err);
    g->arena = ms_arena_new((size_t)1 << 30);
    enum ms_rc rc = g->arena != NULL ? read_groups(g, tl, err) : ms_no_memory(err);
    if (rc == MS_OK)
        *out = g;
    else
        mstx__ascend_groups_free(g);
    return rc;
}

void mstx__ascend_groups_free(struct mstx_ascend_groups *g)
{
    if (g == NULL)
        return;
    ms_vec_free(&g->list);
    ms_arena_free(g->arena);
    ms_free(g);
}

static int by_id(const void *pa, const void *pb)
{
    const int64_t a = ((const struct mstx_ascend_group *)pa)->id,
                  b = ((const struct mstx_ascend_group *)pb)->id;
    return (a > b) - (a < b);
}

/* Returns the place of a communicator in the list; 0 for none. */
static uint32_t find_group(const struct mstx_ascend_groups *g, int64_t id)
{
    const struct mstx_ascend_group key = {.id = id};
    const struct mstx_ascend_group *found = bsearch(&key, g->list.p, g->list.n, sizeof key, by_id);
    return found != NULL ? (uint32_t)(found - g->list.p) : 0;
}

/* ---- rows ------------------------------------------------------------------- */

/* Returns the range of the processes of a rank, numbered from 1; it is empty for an unknown rank. */
static void find_processes(const struct mstx_tl *tl, int32_t rank, int64_t *first, int64_t *last)
{
    *first = INT64_MAX;
    *last = 0;
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        const int64_t number = (int64_t)i + 1;
        if (rank != MSTX_ALL_RANKS && mstx_tl_process(tl, i)->rank != rank)
            continue;
        *first = number < *first ? number : *first;
        *last = number;
    }
}

void mstx__bind_processes(struct ms_stmt *st, int at, const struct mstx_tl *tl, int32_t rank)
{
    int64_t first, last;
    find_processes(tl, rank, &first, &last);
    ms_stmt_i64(st, at, first);
    ms_stmt_i64(st, at + 1, last);
}

enum ms_rc mstx__ascend_steps(struct mstx_tl *tl, int32_t rank, struct ms_stmt **st,
                              struct ms_err *err)
{
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), st, sql_find_steps, err));
    mstx__bind_processes(*st, 1, tl, rank);
    ms_stmt_i64(*st, 3, rank);
    ms_stmt_i64(*st, 4, MSTX_ALL_RANKS);
    return MS_OK;
}

/* Gives a call its type: the text of a framework, or the official name of the operation. */
static void set_type(struct mstx_ascend_call *k, struct ms_str type)
{
    const struct ms_str name = k->is_said ? type : ms_str_of(mstx_comm_op_official(k->rec.op));
    const uint32_t n = name.n < sizeof k->op ? name.n : sizeof k->op - 1;
    if (n != 0)
        memcpy(k->op, name.p, n);
    k->op[n] = '\0';
}

struct mstx_ascend_call mstx__ascend_call_of_row(const struct mstx_ascend_groups *g,
                                                 struct ms_stmt *st)
{
    struct mstx_ascend_call k = {
        .process = (uint32_t)ms_stmt_get_i64(st, 0) - 1,
        .tid = (uint32_t)ms_stmt_get_i64(st, 1),
        .start = ms_stmt_get_i64(st, 2),
        .end = ms_stmt_get_i64(st, 3),
        .rec = {.op = mstx__comm_op_find(ms_stmt_get_str(st, 4)),
                .dtype = mstx__comm_type_find(ms_stmt_get_str(st, 5)),
                .count = (uint64_t)ms_stmt_get_i64(st, 6),
                .peer = ms_stmt_is_null(st, 7) ? -1 : (int32_t)ms_stmt_get_i64(st, 7)},
        .stream = (uint64_t)ms_stmt_get_i64(st, 8),
        .group = find_group(g, ms_stmt_get_i64(st, 9)),
        .starts = (ms_stmt_get_i64(st, 12) & CALL_STARTS) != 0,
    };
    k.is_said = ms_str_is(ms_stmt_get_str(st, 11), mstx_comm_lib_text(MSTX_LIB_TORCH));
    set_type(&k, k.is_said ? ms_stmt_get_str(st, 10) : MS_STR_NONE);
    return k;
}

/* ---- names ------------------------------------------------------------------ */

/* Counts the earlier calls of this kind by the process on the communicator. */
static enum ms_rc count_call(struct mstx_ascend_counts *c, uint32_t process,
                             const struct mstx_ascend_call *k, uint32_t *before, struct ms_err *err)
{
    char text[MSTX_MARKED_NAME + 8];
    bool added;
    const size_t n = strlen(k->op);
    if (c->arena == NULL)
        c->arena = ms_arena_new((size_t)1 << 34);
    if (c->arena == NULL)
        return ms_no_memory(err);
    memcpy(text, &process, 4);
    memcpy(text + 4, &k->group, 4);
    memcpy(text + 8, k->op, n);
    uint32_t at =
        ms_map_put_copy(&c->key, (struct ms_str){text, (uint32_t)n + 8}, c->arena, &added);
    uint32_t *slot = at == MS_MAP_NONE ? NULL : added ? ms_vec_push(&c->calls) : &c->calls.p[at];
    if (slot == NULL)
        return ms_no_memory(err);
    if (added)
        *slot = 0;
    ms_assert(c->key.keys.n == c->calls.n);
    *before = (*slot)++;
    return MS_OK;
}

/* Copies a text without its end and returns the place behind it. */
static char *append_text(char *to, const char *text)
{
    const size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

enum ms_rc mstx__ascend_name_call(struct mstx_ascend_names *out, struct mstx_ascend_counts *counts,
                                  const struct mstx_ascend_groups *g, uint32_t process,
                                  const struct mstx_ascend_call *k, struct ms_err *err)
{
    uint32_t before = 0;
    ms_assert(k->group < g->list.n);
    MS_TRY(count_call(counts, process, k, &before, err));
    /* TYPE_, TYPE__NUMBER_BEFORE_1; made by hand, since there is one for each call of a run. */
    char *end = append_text(out->type, k->op);
    *append_text(end, "_") = '\0';
    end = append_text(append_text(out->name, out->type), "_");
    end = append_text(append_text(end, g->list.p[k->group].number), "_");
    *append_text(end + ms_num_u64(end, before), "_1") = '\0';
    return MS_OK;
}

void mstx__ascend_counts_free(struct mstx_ascend_counts *c)
{
    ms_map_free(&c->key);
    ms_vec_free(&c->calls);
    ms_arena_free(c->arena);
}

bool mstx__rank_has_streams(const struct mstx_tl *tl, int32_t rank)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->kind == MSTX_TRACK_STREAM && mstx_tl_process(tl, t->process)->rank == rank)
            return true;
    }
    return false;
}

enum ms_rc mstx__run_has_calls(struct mstx_tl *tl, bool *yes, struct ms_err *err)
{
    struct ms_stmt *st;
    *yes = false;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_find_any_call, err));
    enum ms_rc rc = ms_stmt_step(st, yes, err);
    ms_stmt_free(st);
    return rc;
}

/* ---- calls of a rank -------------------------------------------------------- */

/* Columns of a packed call that are read here. */
static const uint8_t wanted[] = {MSTX_CALL_PROCESS, MSTX_CALL_TID,   MSTX_CALL_START,
                                 MSTX_CALL_DUR,     MSTX_CALL_OP,    MSTX_CALL_TYPE,
                                 MSTX_CALL_COUNT,   MSTX_CALL_GROUP, MSTX_CALL_NAME,
                                 MSTX_CALL_LIB,     MSTX_CALL_FLAGS};
struct packed_cells {
    const int64_t *of[MSTX_CALL_COLUMNS];
};
struct rank_calls {
    struct mstx_tl *tl;
    const struct mstx_ascend_groups *groups;
    int64_t first, last; /* processes */
    MS_VEC(struct mstx_ascend_call) calls;
};

static struct mstx_ascend_call call_of_cells(const struct rank_calls *r,
                                             const struct packed_cells *c, uint32_t i)
{
    const int64_t group = c->of[MSTX_CALL_GROUP][i];
    struct mstx_ascend_call k = {
        .process = (uint32_t)c->of[MSTX_CALL_PROCESS][i] - 1,
        .tid = (uint32_t)c->of[MSTX_CALL_TID][i],
        .start = c->of[MSTX_CALL_START][i],
        .end = (int64_t)((uint64_t)c->of[MSTX_CALL_START][i] + (uint64_t)c->of[MSTX_CALL_DUR][i]),
        .rec = {.op = (uint8_t)c->of[MSTX_CALL_OP][i],
                .dtype = (uint8_t)c->of[MSTX_CALL_TYPE][i],
                .count = (uint64_t)c->of[MSTX_CALL_COUNT][i]},
        .group = find_group(r->groups, group != MSTX_ROWS_NULL ? group : 0),
        .is_said = c->of[MSTX_CALL_LIB][i] == MSTX_LIB_TORCH,
        .starts = (c->of[MSTX_CALL_FLAGS][i] & CALL_STARTS) != 0,
    };
    set_type(&k, k.is_said ? mstx_tl_text(r->tl, (uint32_t)c->of[MSTX_CALL_NAME][i]) : MS_STR_NONE);
    return k;
}

static bool is_of_rank(const struct rank_calls *r, const struct packed_cells *c, uint32_t i)
{
    const int64_t process = c->of[MSTX_CALL_PROCESS][i];
    return process >= r->first && process <= r->last &&
           mstx_comm_op_class((unsigned)c->of[MSTX_CALL_OP][i]) < MSTX_SEQUENCES;
}

static enum ms_rc keep_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    struct rank_calls *r = ctx;
    struct packed_cells cells = {0};
    for (size_t i = 0; i < sizeof wanted; i++) {
        cells.of[wanted[i]] = mstx__rows_column(rows, wanted[i], err);
        if (cells.of[wanted[i]] == NULL)
            return MS_E_FORMAT;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        if (!is_of_rank(r, &cells, i))
            continue;
        struct mstx_ascend_call *slot = ms_vec_push(&r->calls);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = call_of_cells(r, &cells, i);
    }
    return MS_OK;
}

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_ascend_call *a = *(const struct mstx_ascend_call *const *)pa;
    const struct mstx_ascend_call *b = *(const struct mstx_ascend_call *const *)pb;
    return MS_ORDER(a->start, b->start, MS_ORDER(a, b, 0));
}

/* Returns the calls in order of start, those of equal starts as they are stored. */
static const struct mstx_ascend_call **sort_calls(const struct rank_calls *r)
{
    bool is_sorted = true;
    const struct mstx_ascend_call **sorted = ms_alloc((r->calls.n + 1) * sizeof *sorted);
    for (size_t i = 0; i < r->calls.n && sorted != NULL; i++) {
        sorted[i] = &r->calls.p[i];
        is_sorted = is_sorted && (i == 0 || sorted[i - 1]->start <= sorted[i]->start);
    }
    if (sorted != NULL && !is_sorted)
        qsort(sorted, r->calls.n, sizeof *sorted, by_start);
    return sorted;
}

static enum ms_rc name_calls(struct rank_calls *r, mstx_ascend_call_fn fn, void *ctx,
                             struct ms_err *err)
{
    struct mstx_ascend_counts counts = {0};
    struct mstx_ascend_names names;
    const struct mstx_ascend_call **sorted = sort_calls(r);
    enum ms_rc rc = sorted != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < r->calls.n && rc == MS_OK; i++) {
        const struct mstx_ascend_call *k = sorted[i];
        rc = mstx__ascend_name_call(&names, &counts, r->groups, k->process, k, err);
        if (rc == MS_OK && !k->starts)
            rc = fn(ctx, k, &names, err);
    }
    mstx__ascend_counts_free(&counts);
    ms_free(sorted);
    return rc;
}

enum ms_rc mstx__ascend_each_call(struct mstx_tl *tl, const struct mstx_ascend_groups *g,
                                  int32_t rank, mstx_ascend_call_fn fn, void *ctx,
                                  struct ms_err *err)
{
    struct rank_calls r = {.tl = tl, .groups = g};
    find_processes(tl, rank, &r.first, &r.last);
    enum ms_rc rc =
        mstx__packed_calls_of(mstx__tl_packed(tl), r.first, r.last, keep_calls, &r, err);
    if (rc == MS_OK)
        rc = mstx__tl_check(tl, err);
    if (rc == MS_OK)
        rc = name_calls(&r, fn, ctx, err);
    ms_vec_free(&r.calls);
    return rc;
}
