/* SPDX-License-Identifier: MIT
 *
 * to_flight: writes the communication calls of a run as dumps of PyTorch's Flight Recorder, pickled
 * as its analyser reads them, one file "nccl_trace_rank_N" for each rank.
 */
#include "mstx/foreign/to_flight.h"

#include "mstx/foreign/from_flight.h"
#include "mstx/foreign/sql/to_flight.h"
#include "mstx/format/comm.h"
#include "mstx/format/comm_marked.h"

#include "probe/base/mem.h"
#include "probe/base/pickle.h"
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

/* ---- parts -------------------------------------------------------------------------- */

static void write_key(struct ms_out *w, const char *name)
{
    ms_pickle_str(w, ms_str_of(name));
}

static void write_text(struct ms_out *w, const char *name, const char *value)
{
    write_key(w, name);
    write_key(w, value);
}

static void write_number(struct ms_out *w, const char *name, int64_t value)
{
    write_key(w, name);
    ms_pickle_i64(w, value);
}

static enum ms_rc write_groups(struct mstx_tl *tl, struct ms_out *w, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_list_groups, err));
    enum ms_rc rc = MS_OK;
    write_key(w, "pg_config");
    ms_pickle_dict(w);
    while (ms_stmt_next(st, &rc, err)) {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, ms_stmt_get_i64(st, 0));
        write_key(w, id);
        ms_pickle_dict(w);
        write_text(w, "name", id);
        write_key(w, "desc");
        ms_pickle_str(w, ms_stmt_get_str(st, 1));
        write_key(w, "ranks");
        ms_pickle_str(w, ms_stmt_get_str(st, 2));
        ms_pickle_dict_end(w);
    }
    ms_pickle_dict_end(w);
    ms_stmt_free(st);
    return rc;
}

static void write_tensor(struct ms_out *w, const char *sizes, const char *types, int64_t count,
                         const char *type)
{
    write_key(w, sizes);
    ms_pickle_list(w);
    ms_pickle_list(w);
    ms_pickle_i64(w, count);
    ms_pickle_list_end(w);
    ms_pickle_list_end(w);
    write_key(w, types);
    ms_pickle_list(w);
    ms_pickle_str(w, ms_str_of(type));
    ms_pickle_list_end(w);
}

/* Writes the sizes of the input and output of a call with the argument `count`. */
static void write_tensors(struct ms_out *w, uint8_t op, int64_t count, int64_t ranks,
                          const char *type)
{
    const bool spreads = op == MSTX_COMM_REDUCE_SCATTER, joins = op == MSTX_COMM_ALLGATHER;
    const int64_t n = ranks > 0 && count < INT64_MAX / ranks ? ranks : 1;
    write_tensor(w, "input_sizes", "input_dtypes", spreads ? count * n : count, type);
    write_tensor(w, "output_sizes", "output_dtypes", joins ? count * n : count, type);
}

/* Returns the position of a rank in the list of a communicator, "4,5,6"; without a list the rank
 * itself. */
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

/* Writes the name of a call. Always writes a name of NCCL, because PyTorch's analyser accepts no
 * other. */
static void write_name(struct ms_out *w, struct ms_stmt *st, uint8_t op, int64_t rank)
{
    const int64_t peer = ms_stmt_is_null(st, 7) ? -1 : ms_stmt_get_i64(st, 7);
    char name[128];
    const int n = snprintf(name, sizeof name, "nccl:%s", word_of(op));
    if (peer >= 0 && (op == MSTX_COMM_SEND || op == MSTX_COMM_RECV))
        snprintf(name + n, sizeof name - (size_t)n,
                 op == MSTX_COMM_SEND ? " %" PRId64 "->%" PRId64 : " %" PRId64 "<-%" PRId64,
                 place_in(ms_stmt_get_str(st, 8), rank), peer);
    write_text(w, "profiling_name", name);
}

static void write_times(struct ms_out *w, struct ms_stmt *st)
{
    const int64_t start = ms_stmt_get_i64(st, 5), end = ms_stmt_get_i64(st, 6);
    const bool is_done = ms_stmt_get_i64(st, 10) == 0;
    write_number(w, "time_created_ns", start);
    write_text(w, "state", is_done ? "completed" : "started");
    write_number(w, "time_discovered_started_ns", start);
    write_key(w, "time_discovered_completed_ns");
    if (is_done)
        ms_pickle_i64(w, end);
    else
        ms_pickle_none(w);
    write_key(w, "duration_ms");
    if (is_done)
        ms_pickle_f64(w, (double)(end - start) / 1e6);
    else
        ms_pickle_none(w);
    write_key(w, "retired");
    ms_pickle_bool(w, is_done);
}

static void write_entry(struct ms_out *w, struct ms_stmt *st, int64_t rank, int64_t record)
{
    const uint8_t op = mstx__comm_op_find(ms_stmt_get_str(st, 2));
    const int64_t seq = ms_stmt_get_i64(st, 1);
    const bool is_p2p = mstx_comm_op_class(op) == MSTX_CLASS_P2P;
    char id[24];
    snprintf(id, sizeof id, "%" PRId64, ms_stmt_get_i64(st, 0));
    ms_pickle_dict(w);
    write_number(w, "record_id", record);
    write_number(w, "pg_id", ms_stmt_get_i64(st, 0));
    write_key(w, "process_group");
    ms_pickle_tuple(w);
    ms_pickle_str(w, ms_str_of(id));
    ms_pickle_str(w, ms_stmt_get_str(st, 11));
    ms_pickle_tuple_end(w);
    write_number(w, "collective_seq_id", is_p2p ? 0 : seq);
    write_number(w, "p2p_seq_id", is_p2p ? seq : 0);
    write_number(w, "op_id", seq);
    write_name(w, st, op, rank);
    write_tensors(w, op, ms_stmt_get_i64(st, 4), ms_stmt_get_i64(st, 9),
                  mstx__flight_type(mstx__comm_type_find(ms_stmt_get_str(st, 3))));
    write_times(w, st);
    write_number(w, "timeout_ms", 600000);
    write_key(w, "is_p2p");
    ms_pickle_bool(w, is_p2p);
    ms_pickle_dict_end(w);
}

static enum ms_rc write_entries(struct mstx_tl *tl, int64_t rank, struct ms_out *w,
                                struct ms_err *err)
{
    struct ms_stmt *st;
    int64_t record = 0;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_read_calls, err));
    ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = MS_OK;
    write_key(w, "entries");
    ms_pickle_list(w);
    while (ms_stmt_next(st, &rc, err)) {
        if (word_of(mstx__comm_op_find(ms_stmt_get_str(st, 2))) != NULL)
            write_entry(w, st, rank, record++);
    }
    ms_pickle_list_end(w);
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
    ms_pickle_begin(out);
    ms_pickle_dict(out);
    write_text(out, "version", VERSION);
    write_text(out, "comm_lib_version", "");
    rc = write_groups(tl, out, err);
    if (rc == MS_OK)
        rc = write_entries(tl, rank, out, err);
    ms_pickle_dict_end(out);
    ms_pickle_end(out);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

enum ms_rc mstx_export_flight(struct mstx_tl *tl, const char *dir, struct ms_err *err)
{
    struct ms_stmt *st;
    bool any = false;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_list_ranks, err));
    enum ms_rc rc = MS_OK;
    for (; ms_stmt_next(st, &rc, err); any = true)
        rc = write_rank(tl, dir, ms_stmt_get_i64(st, 0), err);
    if (rc == MS_OK && !any)
        rc = ms_fail(err, MS_E_NOTFOUND, "the run has no communication calls with a rank");
    ms_stmt_free(st);
    return rc;
}
