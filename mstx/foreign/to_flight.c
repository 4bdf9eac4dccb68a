/* SPDX-License-Identifier: MIT
 *
 * tl_to_flight: communication calls of a run as dumps of PyTorch's Flight Recorder, pickled as its
 * analyser reads them, one file "nccl_trace_rank_N" for each rank.
 */
#include "mstx/tl_export.h"

#include "mstx/comm.h"
#include "mstx/tl_comm_said.h"
#include "mstx/tl_pickle.h"

#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

static const char VERSION[] = "2.10";

/* ---- words ------------------------------------------------------------------------- */

static const char *word_of(uint8_t op)
{
    switch (op) {
    case MSTX_COMM_BARRIER:
        return "all_reduce_barrier";
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

static void key(struct ms_out *w, const char *name)
{
    mstx__pickle_str(w, ms_str_of(name));
}

static void put_text(struct ms_out *w, const char *name, const char *value)
{
    key(w, name);
    key(w, value);
}

static void put_number(struct ms_out *w, const char *name, int64_t value)
{
    key(w, name);
    mstx__pickle_i64(w, value);
}

static enum ms_rc put_groups(struct mstx_tl *tl, struct ms_out *w, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT id, name, '[' || replace(ranks, ',', ', ') || ']' FROM"
                            " comm_groups ORDER BY id",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    key(w, "pg_config");
    mstx__pickle_dict(w);
    for (; rc == MS_OK && more; rc = ms_stmt_step(st, &more, err)) {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, ms_stmt_get_i64(st, 0));
        key(w, id);
        mstx__pickle_dict(w);
        put_text(w, "name", id);
        key(w, "desc");
        mstx__pickle_str(w, ms_stmt_get_str(st, 1));
        key(w, "ranks");
        mstx__pickle_str(w, ms_stmt_get_str(st, 2));
        mstx__pickle_dict_end(w);
    }
    mstx__pickle_dict_end(w);
    ms_stmt_free(st);
    return rc;
}

static void put_tensor(struct ms_out *w, const char *sizes, const char *types, int64_t count,
                       const char *type)
{
    key(w, sizes);
    mstx__pickle_list(w);
    mstx__pickle_list(w);
    mstx__pickle_i64(w, count);
    mstx__pickle_list_end(w);
    mstx__pickle_list_end(w);
    key(w, types);
    mstx__pickle_list(w);
    mstx__pickle_str(w, ms_str_of(type));
    mstx__pickle_list_end(w);
}

/* What goes in and comes out of a call that was given `count`. */
static void put_tensors(struct ms_out *w, uint8_t op, int64_t count, int64_t ranks,
                        const char *type)
{
    const bool spreads = op == MSTX_COMM_REDUCE_SCATTER, joins = op == MSTX_COMM_ALLGATHER;
    const int64_t n = ranks > 0 && count < INT64_MAX / ranks ? ranks : 1;
    put_tensor(w, "input_sizes", "input_dtypes", spreads ? count * n : count, type);
    put_tensor(w, "output_sizes", "output_dtypes", joins ? count * n : count, type);
}

/* The place of a rank among those of a communicator, "4,5,6"; its own number where they are not told. */
static int64_t place_in(struct ms_str ranks, int64_t rank)
{
    struct ms_str one;
    for (int64_t place = 0; ms_str_split(&ranks, ',', &one); place++) {
        int64_t member;
        if (ms_str_i64(one, &member) && member == rank)
            return place;
    }
    return rank;
}

/* The analyser takes nothing that is not of NCCL, whatever library it was. */
static void put_name(struct ms_out *w, struct ms_stmt *st, uint8_t op, int64_t rank)
{
    const int64_t peer = ms_stmt_is_null(st, 7) ? -1 : ms_stmt_get_i64(st, 7);
    char name[128];
    const int n = snprintf(name, sizeof name, "nccl:%s", word_of(op));
    if (peer >= 0 && (op == MSTX_COMM_SEND || op == MSTX_COMM_RECV))
        snprintf(name + n, sizeof name - (size_t)n,
                 op == MSTX_COMM_SEND ? " %" PRId64 "->%" PRId64 : " %" PRId64 "<-%" PRId64,
                 place_in(ms_stmt_get_str(st, 8), rank), peer);
    put_text(w, "profiling_name", name);
}

static void put_times(struct ms_out *w, struct ms_stmt *st)
{
    const int64_t start = ms_stmt_get_i64(st, 5), end = ms_stmt_get_i64(st, 6);
    const bool is_done = ms_stmt_get_i64(st, 10) == 0;
    put_number(w, "time_created_ns", start);
    put_text(w, "state", is_done ? "completed" : "started");
    put_number(w, "time_discovered_started_ns", start);
    key(w, "time_discovered_completed_ns");
    if (is_done)
        mstx__pickle_i64(w, end);
    else
        mstx__pickle_none(w);
    key(w, "duration_ms");
    if (is_done)
        mstx__pickle_f64(w, (double)(end - start) / 1e6);
    else
        mstx__pickle_none(w);
    key(w, "retired");
    mstx__pickle_bool(w, is_done);
}

static void put_entry(struct ms_out *w, struct ms_stmt *st, int64_t rank, int64_t record)
{
    const uint8_t op = mstx__comm_op_find(ms_stmt_get_str(st, 2));
    const int64_t seq = ms_stmt_get_i64(st, 1);
    const bool is_p2p = mstx_comm_op_class(op) == MSTX_CLASS_P2P;
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, ms_stmt_get_i64(st, 0));
    mstx__pickle_dict(w);
    put_number(w, "record_id", record);
    put_number(w, "pg_id", ms_stmt_get_i64(st, 0));
    key(w, "process_group");
    mstx__pickle_tuple(w);
    mstx__pickle_str(w, ms_str_of(id));
    mstx__pickle_str(w, ms_stmt_get_str(st, 11));
    mstx__pickle_tuple_end(w);
    put_number(w, "collective_seq_id", is_p2p ? 0 : seq);
    put_number(w, "p2p_seq_id", is_p2p ? seq : 0);
    put_number(w, "op_id", seq);
    put_name(w, st, op, rank);
    put_tensors(w, op, ms_stmt_get_i64(st, 4), ms_stmt_get_i64(st, 9),
                type_name(mstx__comm_type_find(ms_stmt_get_str(st, 3))));
    put_times(w, st);
    put_number(w, "timeout_ms", 600000);
    key(w, "is_p2p");
    mstx__pickle_bool(w, is_p2p);
    mstx__pickle_dict_end(w);
}

static enum ms_rc put_entries(struct mstx_tl *tl, int64_t rank, struct ms_out *w,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    int64_t record = 0;
    /* a call that never returned reaches to the end of its process */
    MS_TRY(
        ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT o.comm_group, o.seq, o.op, o.type, o.count, o.start_ns, o.end_ns,"
                         " o.peer, g.ranks, g.size, p.unfinished > 0 AND o.end_ns >= p.end_ns,"
                         " g.name FROM comm_ops o JOIN comm_groups g ON g.id = o.comm_group"
                         " JOIN processes p ON p.id = o.process"
                         " WHERE o.rank = ? AND o.class < 2 ORDER BY o.start_ns, o.id",
                         err));
    ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    key(w, "entries");
    mstx__pickle_list(w);
    for (; rc == MS_OK && more; rc = ms_stmt_step(st, &more, err)) {
        if (word_of(mstx__comm_op_find(ms_stmt_get_str(st, 2))) != NULL)
            put_entry(w, st, rank, record++);
    }
    mstx__pickle_list_end(w);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_rank(struct mstx_tl *tl, const char *dir, int64_t rank, struct ms_err *err)
{
    struct ms_out *out;
    char name[48];
    snprintf(name, sizeof name, "nccl_trace_rank_%" PRId64, rank);
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? ms_out_create(&out, path, err) : ms_no_memory(err);
    ms_free(path);
    if (rc != MS_OK)
        return rc;
    mstx__pickle_begin(out);
    mstx__pickle_dict(out);
    put_text(out, "version", VERSION);
    put_text(out, "comm_lib_version", "");
    rc = put_groups(tl, out, err);
    if (rc == MS_OK)
        rc = put_entries(tl, rank, out, err);
    mstx__pickle_dict_end(out);
    mstx__pickle_end(out);
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
