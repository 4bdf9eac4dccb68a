/* SPDX-License-Identifier: MIT
 *
 * to_ascend_comm: see the header.
 */
#include "mstx/foreign/to_ascend_comm.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/sql/to_ascend_comm.h"
#include "mstx/format/comm_said.h"

#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALL_STARTS = 2 /* flag of comm_ops: the call only starts an operation */ };

struct group {
    int64_t id;
    int64_t size; /* number of ranks; -1: unknown */
    struct ms_str name;
    char number[4]; /* last three digits of HCCL's number of the name */
};
struct mstx_ascend_groups {
    MS_VEC(struct group) list; /* by id; the first, with id 0, is of calls without a communicator */
    struct ms_arena *arena;
};

/* A row of comm_ops. Rows that start at the same time are held in memory together. */
struct call {
    uint32_t process, tid, group;
    int64_t start, end;
    struct mstx_rec_comm rec;
    uint64_t stream;
    bool is_said; /* marked by a framework, whose text is kept */
    bool starts;
    char op[MSTX_SAID_NAME];
};

struct mstx_ascend_comm {
    struct ms_store *to;
    const struct mstx_ascend_groups *groups;
    struct mstx_ascend_how how;
    struct mstx_own_texts texts;
    struct ms_stmt *from, *add;
    bool more; /* `from` has a current row */
    MS_VEC(struct call) held;
    struct ms_map key; /* process, group and type of calls that are counted together */
    MS_VEC(uint32_t) calls;
    struct ms_arena *arena;
    int64_t rows;
};

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
    struct group *slot = ms_vec_push(&g->list);
    if (slot == NULL)
        return ms_no_memory(err);
    const struct ms_str kept = ms_arena_str(g->arena, ms_str_sub(name, 0, MSTX_SAID_NAME - 1));
    if (kept.p == NULL)
        return ms_no_memory(err);
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, double_hash(kept));
    *slot = (struct group){.id = id, .size = size, .name = kept};
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
    const int64_t a = ((const struct group *)pa)->id, b = ((const struct group *)pb)->id;
    return (a > b) - (a < b);
}

/* Returns the place of a communicator in the list; 0 for none. */
static uint32_t find_group(const struct mstx_ascend_groups *g, int64_t id)
{
    const struct group key = {.id = id};
    const struct group *found = bsearch(&key, g->list.p, g->list.n, sizeof key, by_id);
    return found != NULL ? (uint32_t)(found - g->list.p) : 0;
}

static const struct group *group_of(const struct mstx_ascend_comm *c, const struct call *k)
{
    ms_assert(k->group < c->groups->list.n);
    return &c->groups->list.p[k->group];
}

/* ---- reading ---------------------------------------------------------------- */

static enum ms_rc has_calls(struct mstx_tl *tl, bool *yes, struct ms_err *err)
{
    struct ms_stmt *st;
    *yes = false;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_find_any_call, err));
    enum ms_rc rc = ms_stmt_step(st, yes, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__ascend_groups_write(struct mstx_tl *tl, int32_t rank, struct ms_store *to,
                                     struct ms_err *err)
{
    struct ms_stmt *from, *add = NULL;
    bool more = false;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &from, sql_list_groups, err));
    ms_stmt_i64(from, 1, rank);
    ms_stmt_i64(from, 2, MSTX_ALL_RANKS);
    enum ms_rc rc = ms_store_prepare(to, &add, sql_add_groups, err);
    if (rc == MS_OK)
        rc = ms_stmt_step(from, &more, err);
    if (rc == MS_OK && more && !ms_str_is(ms_stmt_get_str(from, 0), "{}")) {
        ms_stmt_str(add, 1, ms_stmt_get_str(from, 0));
        rc = ms_stmt_run(add, err);
    }
    ms_stmt_free(from);
    ms_stmt_free(add);
    return rc;
}

/* Binds the first and the last process of a rank; run.db counts processes from 1. */
static void bind_processes(struct ms_stmt *st, const struct mstx_tl *tl, int32_t rank)
{
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        const int64_t number = (int64_t)i + 1;
        if (rank != MSTX_ALL_RANKS && mstx_tl_process(tl, i)->rank != rank)
            continue;
        first = number < first ? number : first;
        last = number;
    }
    ms_stmt_i64(st, 1, first);
    ms_stmt_i64(st, 2, last);
}

static enum ms_rc prepare_statements(struct mstx_ascend_comm *c, struct mstx_tl *tl,
                                     struct ms_err *err)
{
    MS_TRY(ms_store_exec(c->to, sql_create_table, err));
    MS_TRY(ms_store_prepare(c->to, &c->add, sql_add_call, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &c->from, sql_read_calls, err));
    bind_processes(c->from, tl, c->how.rank);
    return ms_stmt_step(c->from, &c->more, err);
}

enum ms_rc mstx__ascend_comm_new(struct mstx_ascend_comm **out, struct mstx_tl *tl,
                                 const struct mstx_ascend_groups *groups,
                                 const struct mstx_ascend_how *how, struct ms_store *to,
                                 const struct mstx_own_texts *texts, struct ms_err *err)
{
    bool yes;
    *out = NULL;
    MS_TRY(has_calls(tl, &yes, err));
    if (!yes)
        return MS_OK;
    struct mstx_ascend_comm *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return ms_no_memory(err);
    c->to = to;
    c->groups = groups;
    c->how = *how;
    c->texts = *texts;
    c->arena = ms_arena_new((size_t)1 << 34);
    enum ms_rc rc = c->arena != NULL ? prepare_statements(c, tl, err) : ms_no_memory(err);
    if (rc == MS_OK)
        *out = c;
    else
        mstx__ascend_comm_free(c);
    return rc;
}

void mstx__ascend_comm_free(struct mstx_ascend_comm *c)
{
    if (c == NULL)
        return;
    ms_stmt_free(c->from);
    ms_stmt_free(c->add);
    ms_vec_free(&c->held);
    ms_vec_free(&c->calls);
    ms_map_free(&c->key);
    ms_arena_free(c->arena);
    ms_free(c);
}

static struct call read_call(const struct mstx_ascend_comm *c)
{
    struct ms_stmt *st = c->from;
    struct call k = {
        .process = (uint32_t)ms_stmt_get_i64(st, 0) - 1,
        .tid = (uint32_t)ms_stmt_get_i64(st, 1),
        .start = ms_stmt_get_i64(st, 2),
        .end = ms_stmt_get_i64(st, 3),
        .rec = {.op = mstx__comm_op_find(ms_stmt_get_str(st, 4)),
                .dtype = mstx__comm_type_find(ms_stmt_get_str(st, 5)),
                .count = (uint64_t)ms_stmt_get_i64(st, 6),
                .peer = ms_stmt_is_null(st, 7) ? -1 : (int32_t)ms_stmt_get_i64(st, 7)},
        .stream = (uint64_t)ms_stmt_get_i64(st, 8),
        .group = find_group(c->groups, ms_stmt_get_i64(st, 9)),
        .starts = (ms_stmt_get_i64(st, 12) & CALL_STARTS) != 0,
    };
    k.is_said = ms_str_is(ms_stmt_get_str(st, 11), mstx_comm_lib_text(MSTX_LIB_TORCH));
    if (k.is_said)
        snprintf(k.op, sizeof k.op, "%.*s", MS_STR_ARG(ms_stmt_get_str(st, 10)));
    else
        snprintf(k.op, sizeof k.op, "%s", mstx_comm_op_official(k.rec.op));
    return k;
}

/* Holds the rows that start at t. Earlier rows belong to other ranks and are skipped. */
static enum ms_rc hold_calls_at(struct mstx_ascend_comm *c, int64_t t, struct ms_err *err)
{
    if (c->held.n != 0 && c->held.p[0].start == t)
        return MS_OK;
    c->held.n = 0;
    while (c->more && ms_stmt_get_i64(c->from, 2) <= t) {
        if (ms_stmt_get_i64(c->from, 2) == t) {
            struct call *slot = ms_vec_push(&c->held);
            if (slot == NULL)
                return ms_no_memory(err);
            *slot = read_call(c);
        }
        MS_TRY(ms_stmt_step(c->from, &c->more, err));
    }
    return MS_OK;
}

/* Finds the held row of an event and removes the row, because two calls of a thread may have equal
 * times when the clock is coarse. */
static struct call *find_held_call(struct mstx_ascend_comm *c, const struct mstx_track *t,
                                   const struct mstx_event *ev)
{
    for (size_t i = 0; i < c->held.n; i++) {
        struct call *k = &c->held.p[i];
        if (k->process == t->process && k->tid == t->tid && k->end == ev->start_ns + ev->dur_ns) {
            k->process = UINT32_MAX;
            return k;
        }
    }
    return NULL;
}

/* ---- writing ---------------------------------------------------------------- */

/* Counts the earlier calls of this kind by the process on the communicator. */
static enum ms_rc count_call(struct mstx_ascend_comm *c, uint32_t process, const struct call *k,
                             uint32_t *before, struct ms_err *err)
{
    char text[MSTX_SAID_NAME + 8];
    bool added;
    const size_t n = strlen(k->op);
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

static enum ms_rc find_text_id(struct mstx_ascend_comm *c, const char *text, int64_t *id,
                               struct ms_err *err)
{
    return c->texts.id(c->texts.ctx, ms_str_of(text), id, err);
}

static enum ms_rc add_call_row(struct mstx_ascend_comm *c, uint32_t process, const struct call *k,
                               int64_t connection, struct ms_err *err)
{
    enum { NOT_A_TYPE = 65534 }; /* N/A of ENUM_HCCL_DATA_TYPE */
    char name[MSTX_SAID_NAME + 40], type[MSTX_SAID_NAME + 2];
    const struct group *group = group_of(c, k);
    int64_t name_id, type_id, group_id;
    uint32_t before = 0;
    MS_TRY(count_call(c, process, k, &before, err));
    if (k->starts && c->how.without_starts)
        return MS_OK;
    snprintf(type, sizeof type, "%s_", k->op);
    snprintf(name, sizeof name, "%s_%s_%" PRIu32 "_1", type, group->number, before);
    MS_TRY(find_text_id(c, name, &name_id, err));
    MS_TRY(find_text_id(c, type, &type_id, err));
    MS_TRY(c->texts.id(c->texts.ctx, group->name, &group_id, err));
    const int64_t dtype = k->rec.dtype <= MSTX_TYPE_FP8E8M0 ? k->rec.dtype : NOT_A_TYPE;
    const int64_t column[] = {name_id,  k->start,   k->end, connection,
                              group_id, c->rows++,  dtype,  (int64_t)k->rec.count,
                              type_id,  group->size};
    for (int i = 0; i < 10; i++)
        ms_stmt_i64(c->add, i + 1, column[i]);
    return ms_stmt_run(c->add, err);
}

enum ms_rc mstx__ascend_comm_event(struct mstx_ascend_comm *c, const struct mstx_track *t,
                                   const struct mstx_event *ev, int64_t connection,
                                   int64_t *message, struct ms_err *err)
{
    char text[512];
    MS_TRY(hold_calls_at(c, ev->start_ns, err));
    const struct call *k = find_held_call(c, t, ev);
    if (k == NULL)
        return MS_OK;
    if (!k->is_said) {
        mstx_comm_message(text, sizeof text, &k->rec, group_of(c, k)->name.p, k->stream);
        MS_TRY(find_text_id(c, text, message, err));
    }
    return add_call_row(c, t->process, k, connection, err);
}

enum ms_rc mstx__ascend_comm_all(struct mstx_ascend_comm *c, int64_t connection, struct ms_err *err)
{
    while (c->more) {
        const struct call k = read_call(c);
        MS_TRY(add_call_row(c, k.process, &k, connection++, err));
        MS_TRY(ms_stmt_step(c->from, &c->more, err));
    }
    return MS_OK;
}

enum ms_rc mstx__ascend_comm_finish(struct mstx_ascend_comm *c, struct ms_err *err)
{
    return ms_store_exec(c->to, sql_take_device_times, err);
}
