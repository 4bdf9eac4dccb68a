/* SPDX-License-Identifier: MIT
 *
 * tl_to_flight: communication calls of a run as dumps of PyTorch's Flight Recorder, JSON, one file
 * "nccl_trace_rank_N" for each rank, for the analysers that read those.
 */
#include "mstx/tl_export.h"

#include "mstx/comm.h"
#include "mstx/tl_comm_said.h"

#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

static const char VERSION[] = "2.10";

static enum ms_rc drain(void *ctx, const char *p, size_t n, struct ms_err *err)
{
    (void)err;
    ms_out_write(ctx, p, n);
    return MS_OK;
}

/* ---- words ------------------------------------------------------------------------- */

static const char *word_of(uint8_t op)
{
    switch (op) {
    case MSTX_COMM_BARRIER:
        return "barrier";
    case MSTX_COMM_BROADCAST:
        return "broadcast";
    case MSTX_COMM_REDUCE:
        return "reduce";
    case MSTX_COMM_ALLREDUCE:
        return "all_reduce";
    case MSTX_COMM_REDUCE_SCATTER:
    case MSTX_COMM_REDUCE_SCATTER_V:
        return "reduce_scatter";
    case MSTX_COMM_ALLGATHER:
    case MSTX_COMM_ALLGATHER_V:
        return "all_gather";
    case MSTX_COMM_GATHER:
    case MSTX_COMM_GATHER_V:
        return "gather";
    case MSTX_COMM_SCATTER:
    case MSTX_COMM_SCATTER_V:
        return "scatter";
    case MSTX_COMM_ALLTOALL:
    case MSTX_COMM_ALLTOALL_V:
    case MSTX_COMM_ALLTOALL_W:
        return "all_to_all";
    case MSTX_COMM_SEND:
        return "send";
    case MSTX_COMM_RECV:
        return "recv";
    default:
        return NULL;
    }
}

static const char *type_name(uint8_t type)
{
    switch (type) {
    case MSTX_TYPE_FP32:
        return "Float";
    case MSTX_TYPE_FP16:
        return "Half";
    case MSTX_TYPE_BFP16:
        return "BFloat16";
    case MSTX_TYPE_FP64:
        return "Double";
    case MSTX_TYPE_INT64:
        return "Long";
    case MSTX_TYPE_INT32:
        return "Int";
    case MSTX_TYPE_INT16:
        return "Short";
    case MSTX_TYPE_INT8:
        return "Char";
    case MSTX_TYPE_BOOL:
        return "Bool";
    default:
        return "Byte";
    }
}

/* ---- parts -------------------------------------------------------------------------- */

static void key(struct ms_jwrite *w, const char *name)
{
    ms_jwrite_key(w, ms_str_of(name));
}

static enum ms_rc put_groups(struct mstx_tl *tl, struct ms_jwrite *w, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT id, name, '[' || replace(ranks, ',', ', ') || ']' FROM"
                            " comm_groups ORDER BY id",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    key(w, "pg_config");
    ms_jwrite_obj(w);
    for (; rc == MS_OK && more; rc = ms_stmt_step(st, &more, err)) {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, ms_stmt_get_i64(st, 0));
        key(w, id);
        ms_jwrite_obj(w);
        ms_jwrite_kstr(w, "name", id);
        key(w, "desc");
        ms_jwrite_str(w, ms_stmt_get_str(st, 1));
        key(w, "ranks");
        ms_jwrite_str(w, ms_stmt_get_str(st, 2));
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_obj_end(w);
    ms_stmt_free(st);
    return rc;
}

static void put_tensor(struct ms_jwrite *w, const char *sizes, const char *types, int64_t count,
                       const char *type)
{
    key(w, sizes);
    ms_jwrite_arr(w);
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, count);
    ms_jwrite_arr_end(w);
    ms_jwrite_arr_end(w);
    key(w, types);
    ms_jwrite_arr(w);
    ms_jwrite_str(w, ms_str_of(type));
    ms_jwrite_arr_end(w);
}

/* What goes in and comes out of a call that was given `count`. */
static void put_tensors(struct ms_jwrite *w, uint8_t op, int64_t count, int64_t ranks,
                        const char *type)
{
    const bool spreads = op == MSTX_COMM_REDUCE_SCATTER, joins = op == MSTX_COMM_ALLGATHER;
    const int64_t n = ranks > 0 && count < INT64_MAX / ranks ? ranks : 1;
    put_tensor(w, "input_sizes", "input_dtypes", spreads ? count * n : count, type);
    put_tensor(w, "output_sizes", "output_dtypes", joins ? count * n : count, type);
}

static void put_name(struct ms_jwrite *w, struct ms_stmt *st, uint8_t op, int64_t rank)
{
    const struct ms_str lib = ms_stmt_get_str(st, 8);
    const int64_t peer = ms_stmt_is_null(st, 7) ? -1 : ms_stmt_get_i64(st, 7);
    char name[128];
    const char *backend = ms_str_is(lib, mstx_comm_lib_text(MSTX_LIB_TORCH)) ? "nccl" : NULL;
    int n = snprintf(name, sizeof name, "%.*s:%s", backend != NULL ? 4 : (int)lib.n,
                     backend != NULL ? backend : lib.p, word_of(op));
    if (peer >= 0 && (op == MSTX_COMM_SEND || op == MSTX_COMM_RECV))
        snprintf(name + n, sizeof name - (size_t)n,
                 op == MSTX_COMM_SEND ? " %" PRId64 "->%" PRId64 : " %" PRId64 "<-%" PRId64, rank,
                 peer);
    ms_jwrite_kstr(w, "profiling_name", name);
}

static void put_times(struct ms_jwrite *w, struct ms_stmt *st)
{
    const int64_t start = ms_stmt_get_i64(st, 5), end = ms_stmt_get_i64(st, 6);
    const bool is_done = ms_stmt_get_i64(st, 10) == 0;
    ms_jwrite_ki64(w, "time_created_ns", start);
    ms_jwrite_kstr(w, "state", is_done ? "completed" : "started");
    ms_jwrite_ki64(w, "time_discovered_started_ns", start);
    key(w, "time_discovered_completed_ns");
    if (is_done)
        ms_jwrite_i64(w, end);
    else
        ms_jwrite_null(w);
    key(w, "duration_ms");
    if (is_done)
        ms_jwrite_f64(w, (double)(end - start) / 1e6);
    else
        ms_jwrite_null(w);
    key(w, "retired");
    ms_jwrite_bool(w, is_done);
}

static void put_entry(struct ms_jwrite *w, struct ms_stmt *st, int64_t rank, int64_t record)
{
    const uint8_t op = mstx__comm_op_find(ms_stmt_get_str(st, 2));
    const int64_t seq = ms_stmt_get_i64(st, 1);
    const bool is_p2p = mstx_comm_op_class(op) == MSTX_CLASS_P2P;
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, ms_stmt_get_i64(st, 0));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "record_id", record);
    ms_jwrite_ki64(w, "pg_id", ms_stmt_get_i64(st, 0));
    key(w, "process_group");
    ms_jwrite_arr(w);
    ms_jwrite_str(w, ms_str_of(id));
    ms_jwrite_str(w, ms_stmt_get_str(st, 11));
    ms_jwrite_arr_end(w);
    ms_jwrite_ki64(w, "collective_seq_id", is_p2p ? 0 : seq);
    ms_jwrite_ki64(w, "p2p_seq_id", is_p2p ? seq : 0);
    ms_jwrite_ki64(w, "op_id", seq);
    put_name(w, st, op, rank);
    put_tensors(w, op, ms_stmt_get_i64(st, 4), ms_stmt_get_i64(st, 9),
                type_name(mstx__comm_type_find(ms_stmt_get_str(st, 3))));
    put_times(w, st);
    ms_jwrite_ki64(w, "timeout_ms", 600000);
    key(w, "is_p2p");
    ms_jwrite_bool(w, is_p2p);
    ms_jwrite_obj_end(w);
}

static enum ms_rc put_entries(struct mstx_tl *tl, int64_t rank, struct ms_jwrite *w,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    int64_t record = 0;
    /* a call that never returned reaches to the end of its process */
    MS_TRY(
        ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT o.comm_group, o.seq, o.op, o.type, o.count, o.start_ns, o.end_ns,"
                         " o.peer, o.lib, g.size, p.unfinished > 0 AND o.end_ns >= p.end_ns,"
                         " g.name FROM comm_ops o JOIN comm_groups g ON g.id = o.comm_group"
                         " JOIN processes p ON p.id = o.process"
                         " WHERE o.rank = ? AND o.class < 2 ORDER BY o.start_ns, o.id",
                         err));
    ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    key(w, "entries");
    ms_jwrite_arr(w);
    for (; rc == MS_OK && more; rc = ms_stmt_step(st, &more, err)) {
        if (word_of(mstx__comm_op_find(ms_stmt_get_str(st, 2))) != NULL)
            put_entry(w, st, rank, record++);
    }
    ms_jwrite_arr_end(w);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_rank(struct mstx_tl *tl, const char *dir, int64_t rank, struct ms_err *err)
{
    struct ms_out *out;
    struct ms_jwrite w;
    char name[48];
    snprintf(name, sizeof name, "nccl_trace_rank_%" PRId64, rank);
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? ms_out_create(&out, path, err) : ms_no_memory(err);
    ms_free(path);
    if (rc != MS_OK)
        return rc;
    ms_jwrite_init(&w, 0, 1 << 20);
    w.drain = drain;
    w.ctx = out;
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "version", VERSION);
    ms_jwrite_kstr(&w, "comm_lib_version", "");
    rc = put_groups(tl, &w, err);
    if (rc == MS_OK)
        rc = put_entries(tl, rank, &w, err);
    ms_jwrite_obj_end(&w);
    if (rc == MS_OK)
        rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

enum ms_rc mstx_export_flight(struct mstx_tl *tl, const char *dir, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT DISTINCT rank FROM comm_ops WHERE rank >= 0 AND class < 2"
                            " ORDER BY rank",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && !more)
        rc = ms_fail(err, MS_E_NOTFOUND, "the run has no communication calls with a rank");
    while (rc == MS_OK && more) {
        rc = write_rank(tl, dir, ms_stmt_get_i64(st, 0), err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}
