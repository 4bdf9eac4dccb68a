/* SPDX-License-Identifier: MIT
 *
 * ascend_part: reads the part of one rank in the analysis of all ranks from an Ascend database.
 *
 * Operations are timed on the device, so their durations include waiting.  An operation has the
 * same name on all its ranks, hcom_allReduce__233_58_1, and the n-th operation of a name is the
 * n-th on every rank; an operation gets its sequence number on the communicator when it is first
 * seen.  When communication was not profiled, marks of the framework are used, numbered by their
 * order.
 */
#include "mstx/foreign/ascend_part.h"

#include "mstx/foreign/ascend_tables.h"
#include "mstx/foreign/met_group.h"
#include "mstx/foreign/sql/ascend_part.h"
#include "mstx/format/comm_marked.h"
#include "mstx/import/cluster_save.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_RANKS_MAX = 65536 };

/* One database being read. */
struct rank {
    struct mstx_cl_ascend *a;
    struct ms_store *from;
    struct mstx_cl_part part;
    struct ms_map group; /* names of groups; index + 1 is the number of the group in the process */
    MS_VEC(uint32_t) marked; /* marks so far, by group */
};

typedef enum ms_rc (*row_fn)(struct rank *r, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc read_rows(struct rank *r, const char *sql, row_fn fn, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(r->from, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = fn(r, st, err);
    ms_stmt_free(st);
    return rc;
}

static bool is_time(int64_t start, int64_t end)
{
    return start >= 0 && end >= start && end < INT64_C(1) << 62;
}

/* ---- communicators ----------------------------------------------------------------- */

/* Finds the ranks and the name of a group in the metadata; without metadata only the given name is
 * known. */
static enum ms_rc look_up_group(struct rank *r, struct ms_str name, struct mstx_comm_known *g,
                                int32_t *world, char shown[128], struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *g = (struct mstx_comm_known){
        .uid = ms_str_hash(name), .size = -1, .rank = -1, .world = (const char *)world};
    snprintf(shown, 128, "%.*s", MS_STR_ARG(name));
    MS_TRY(ms_store_prepare(r->from, &st, sql_find_group, err));
    ms_stmt_str(st, 1, name);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more) {
        const struct ms_str kind = ms_stmt_get_str(st, 1);
        g->listed = mstx__comm_ranks(ms_stmt_get_str(st, 0), world, GROUP_RANKS_MAX);
        g->size = g->listed != 0 ? (int32_t)g->listed : -1;
        if (kind.n != 0 && !ms_str_eq(kind, name))
            snprintf(shown, 128, "%.*s %.*s", MS_STR_ARG(kind), MS_STR_ARG(name));
    }
    ms_stmt_free(st);
    g->name = ms_str_of(shown);
    return rc;
}

static enum ms_rc meet_group(struct rank *r, struct ms_str name, uint32_t number,
                             struct ms_err *err)
{
    struct mstx_cl_ascend *a = r->a;
    struct mstx_comm_known g;
    char shown[128];
    int32_t *world = ms_calloc(GROUP_RANKS_MAX, sizeof *world);
    if (world == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = look_up_group(r, name, &g, world, shown, err);
    if (rc == MS_OK)
        rc = mstx__met_group(a->comm, &a->cluster, &g, number, err);
    ms_free(world);
    return rc;
}

/* Finds the number of a group; the empty name has number 0, which is no group. */
static enum ms_rc find_group_number(struct rank *r, struct ms_str name, uint32_t *number,
                                    struct ms_err *err)
{
    bool is_new;
    *number = 0;
    if (name.n == 0)
        return MS_OK;
    const uint32_t at = ms_map_put_copy(&r->group, name, r->a->texts, &is_new);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    *number = at + 1;
    return is_new ? meet_group(r, name, *number, err) : MS_OK;
}

/* ---- calls --------------------------------------------------------------------------- */

static bool count_up(void *counts, uint32_t at, uint32_t *count)
{
    MS_VEC(uint32_t) *v = counts;
    while (v->n <= at) {
        uint32_t *slot = ms_vec_push(v);
        if (slot == NULL)
            return false;
        *slot = 0;
    }
    *count = v->p[at]++;
    return true;
}

/* Finds the operation of hcom_allReduce_, hcom_allReduce__233_58_1 or HcclAllReduce__233_0_1. */
static uint8_t op_of(struct ms_str type)
{
    uint32_t from = 0, to;
    if (ms_str_starts(type, MS_STR("hcom_")))
        from = 5;
    else if (ms_str_starts(type, MS_STR("Hccl")))
        from = 4;
    for (to = from; to < type.n && type.p[to] != '_';)
        to++;
    const struct ms_str name = ms_str_sub(type, from, to);
    if (name.n == 7 && strncasecmp(name.p, "receive", 7) == 0)
        return MSTX_COMM_RECV;
    if (name.n == 11 && strncasecmp(name.p, "alltoallvc", 10) == 0)
        return MSTX_COMM_ALLTOALL_V;
    return mstx__comm_op_find(name);
}

/* Finds the sequence number of an operation on its communicator, the same number on all ranks. */
static enum ms_rc number_call(struct mstx_cl_ascend *a, uint32_t group, struct ms_str name,
                              int64_t again, uint32_t *seq, struct ms_err *err)
{
    char key[512];
    bool is_new;
    const int n = snprintf(key, sizeof key, "%" PRIu32 " %" PRId64 " %.*s", group, again,
                           name.n < 400 ? (int)name.n : 400, name.p);
    const uint32_t at =
        ms_map_put_copy(&a->call, (struct ms_str){key, (uint32_t)n}, a->texts, &is_new);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    if (is_new) {
        uint32_t *slot = ms_vec_push(&a->seq);
        if (slot == NULL || !count_up(&a->next, group, slot))
            return ms_no_memory(err);
    }
    ms_assert(at < a->seq.n);
    *seq = a->seq.p[at];
    return MS_OK;
}

static bool add_span(mstx_cl_spans *s, int64_t start, int64_t end)
{
    struct mstx_cl_span *slot = ms_vec_push(s);
    if (slot != NULL)
        *slot = (struct mstx_cl_span){start, end};
    return slot != NULL;
}

static enum ms_rc add_call(struct rank *r, const struct mstx_rec_comm *rec, struct ms_str name,
                           int64_t start, int64_t end, struct ms_err *err)
{
    const struct mstx_comm_fact fact = {.rec = rec};
    const struct mstx_event ev = {
        .start_ns = start, .dur_ns = end - start, .name = mstx__writer_text(r->a->w, name)};
    ms_assert(is_time(start, end));
    struct mstx_cl_call *k = ms_vec_push(&r->part.calls);
    const bool waits = rec->op == MSTX_COMM_RECV;
    if (k == NULL || !add_span(&r->part.comm, start, end) ||
        (waits && !add_span(&r->part.bubble, start, end)))
        return ms_no_memory(err);
    *k = (struct mstx_cl_call){.start_ns = start,
                               .dur_ns = end - start,
                               .bytes = rec->count * rec->elem,
                               .group = mstx__comm_writer_id(r->a->comm, rec->group),
                               .seq = rec->seq,
                               .peer = rec->peer,
                               .op = rec->op,
                               .dtype = rec->dtype};
    r->a->calls++;
    return mstx__comm_writer_call(r->a->comm, &fact, &ev, 0, err);
}

static int32_t peer_of(struct ms_stmt *st, uint8_t op)
{
    const int column = op == MSTX_COMM_SEND ? 8 : 7;
    const int64_t peer = ms_stmt_get_i64(st, column);
    const bool has = (op == MSTX_COMM_SEND || op == MSTX_COMM_RECV) && !ms_stmt_is_null(st, column);
    return has && peer >= 0 && peer < INT32_MAX ? (int32_t)peer : -1;
}

static enum ms_rc read_call(struct rank *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t start = ms_stmt_get_i64(st, 3), end = ms_stmt_get_i64(st, 4);
    const int64_t count = ms_stmt_get_i64(st, 6);
    const struct ms_str name = ms_stmt_get_str(st, 1);
    struct mstx_rec_comm rec = {.count = count > 0 ? (uint64_t)count : 0,
                                .reduce = MSTX_REDUCE_NONE,
                                .type = MSTX_REC_COMM,
                                .lib = MSTX_LIB_HCCL,
                                .op = op_of(ms_stmt_get_str(st, 2)),
                                .dtype = mstx__comm_type_find(ms_stmt_get_str(st, 5))};
    if (!is_time(start, end))
        return MS_OK;
    rec.elem = mstx_comm_type_bytes(rec.dtype);
    rec.peer = peer_of(st, rec.op);
    MS_TRY(find_group_number(r, ms_stmt_get_str(st, 0), &rec.group, err));
    MS_TRY(number_call(r->a, mstx__comm_writer_id(r->a->comm, rec.group), name,
                       ms_stmt_get_i64(st, 9), &rec.seq, err));
    return add_call(r, &rec, name, start, end, err);
}

static enum ms_rc read_mark(struct rank *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t start = ms_stmt_get_i64(st, 1), end = ms_stmt_get_i64(st, 2);
    struct mstx_comm_marked call;
    if (!is_time(start, end) || !mstx__comm_parse_marked(ms_stmt_get_str(st, 0), &call))
        return MS_OK;
    MS_TRY(find_group_number(r, ms_str_of(call.group), &call.rec.group, err));
    const uint32_t class = mstx_comm_op_class(call.rec.op);
    if (class < MSTX_SEQUENCES &&
        !count_up(&r->marked, call.rec.group * MSTX_SEQUENCES + class, &call.rec.seq))
        return ms_no_memory(err);
    return add_call(r, &call.rec, ms_str_of(call.op), start, end, err);
}

/* ---- work, steps and hosts ---------------------------------------------------------------- */

static enum ms_rc read_work(struct rank *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t start = ms_stmt_get_i64(st, 0), end = ms_stmt_get_i64(st, 1);
    r->part.knows_work = true;
    return !is_time(start, end) || add_span(&r->part.work, start, end) ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_step(struct rank *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t number = ms_stmt_get_i64(st, 0);
    const int64_t start = ms_stmt_get_i64(st, 1), end = ms_stmt_get_i64(st, 2);
    const size_t n = r->part.steps.n;
    const bool follows = n == 0 || start >= r->part.steps.p[n - 1].end_ns;
    if (!is_time(start, end) || end == start || !follows || number < 0 || number >= UINT32_MAX)
        return MS_OK;
    struct mstx_cl_step *slot = ms_vec_push(&r->part.steps);
    if (slot != NULL)
        *slot = (struct mstx_cl_step){.number = (uint32_t)number, .start_ns = start, .end_ns = end};
    return slot != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_rank(struct rank *r, char host[128], struct ms_err *err)
{
    struct ms_stmt *st;
    bool has, more;
    MS_TRY(mstx__has_table(r->from, "COMMUNICATION_OP", &has, err));
    MS_TRY(mstx__ascend_tables(r->from, err));
    MS_TRY(read_rows(r, has ? sql_read_calls : sql_read_marks, has ? read_call : read_mark, err));
    MS_TRY(read_rows(r, sql_read_work, read_work, err));
    MS_TRY(read_rows(r, sql_read_steps, read_step, err));
    MS_TRY(ms_store_prepare(r->from, &st, sql_find_host, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        snprintf(host, 128, "%.*s", MS_STR_ARG(ms_stmt_get_str(st, 0)));
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__cluster_ascend_rank(struct mstx_cl_ascend *a, struct ms_store *from, int32_t rank,
                                     uint32_t process, struct ms_err *err)
{
    struct rank r = {.a = a, .from = from, .part = {.rank = rank}};
    char host[128] = "";
    mstx__comm_writer_process(a->comm, process, rank, a->calls);
    enum ms_rc rc = read_rank(&r, host, err);
    if (rc == MS_OK)
        rc = mstx__comm_writer_flush(a->comm, err);
    if (rc == MS_OK && r.part.steps.n == 0 && !mstx__cluster_slice(&r.part))
        rc = ms_no_memory(err);
    r.part.host = ms_str_of(host);
    if (rc == MS_OK && (r.part.calls.n != 0 || r.part.steps.n != 0))
        mstx__cluster_part(&a->cluster, &r.part);
    mstx__cluster_part_free(&r.part);
    ms_map_free(&r.group);
    ms_vec_free(&r.marked);
    return rc == MS_OK && a->cluster.no_memory ? ms_no_memory(err) : rc;
}

/* ---- all ----------------------------------------------------------------------------------- */

enum ms_rc mstx__cluster_ascend_new(struct mstx_cl_ascend *a, struct mstx_writer *w,
                                    struct ms_err *err)
{
    *a = (struct mstx_cl_ascend){.w = w};
    a->texts = ms_arena_new((size_t)1 << 34);
    if (a->texts == NULL)
        return ms_no_memory(err);
    return mstx__comm_writer_new(&a->comm, w, err);
}

void mstx__cluster_ascend_free(struct mstx_cl_ascend *a)
{
    mstx__comm_writer_free(a->comm);
    mstx__cluster_free(&a->cluster);
    ms_map_free(&a->call);
    ms_arena_free(a->texts);
    ms_vec_free(&a->seq);
    ms_vec_free(&a->next);
}

enum ms_rc mstx__cluster_ascend_save(struct mstx_cl_ascend *a, struct ms_err *err)
{
    MS_TRY(mstx__cluster_conclude(&a->cluster, err));
    return mstx__cluster_save_all(&a->cluster, a->w, err);
}
