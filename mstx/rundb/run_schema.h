/* SPDX-License-Identifier: MIT
 *
 * run_schema: the tables of run.db, explained in msprobe-run.db(5).
 */
#ifndef MSTX_RUNDB_RUN_SCHEMA_H
#define MSTX_RUNDB_RUN_SCHEMA_H

#define MSTX_DB_VERSION "4"
#define MSTX_DB_FOLDED  "5" /* version of folded databases */
#define MSTX_DB_NAME    "run.db"

/* The name in processes.tool of a trace of PyTorch's profiler, whose own steps are the only ones. */
#define MSTX_TOOL_KINETO "PyTorch profiler"
#define MSTX_TOOL_TABLE  "CSV table" /* of a plain table of what ranks did */

#define MSTX_SPANS_TABLE "packed_spans(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB)"

static const char mstx_db_schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE sources(path TEXT PRIMARY KEY, bytes INTEGER, mtime_ns INTEGER) WITHOUT ROWID;"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, path TEXT, start_ns INTEGER, end_ns INTEGER,"
    " world_size INTEGER, processes INTEGER, tracks INTEGER, events INTEGER);"
    "CREATE TABLE ranks(rank INTEGER PRIMARY KEY, host TEXT, processes INTEGER, events INTEGER,"
    " dropped INTEGER);"
    "CREATE TABLE processes(id INTEGER PRIMARY KEY, rank INTEGER, host TEXT, pid INTEGER,"
    " ppid INTEGER, name TEXT, dir TEXT, tool TEXT, state TEXT, start_ns INTEGER, end_ns INTEGER,"
    " records INTEGER, events INTEGER, unfinished INTEGER, dropped INTEGER, cost_ns INTEGER);"
    "CREATE TABLE tracks(id INTEGER PRIMARY KEY, process INTEGER, kind INTEGER, tid INTEGER,"
    " domain TEXT, name TEXT, unit TEXT, events INTEGER, rows INTEGER, start_ns INTEGER,"
    " end_ns INTEGER, device INTEGER);"
    "CREATE TABLE strings(id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE packed_texts(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB);"
    "CREATE TABLE levels(track INTEGER, shift INTEGER, events INTEGER, first_chunk INTEGER,"
    " chunks INTEGER, PRIMARY KEY(track, shift)) WITHOUT ROWID;"
    "CREATE TABLE chunks(id INTEGER PRIMARY KEY, start_ns INTEGER, end_ns INTEGER,"
    " events INTEGER);"
    "CREATE TABLE blobs(chunk INTEGER PRIMARY KEY, data BLOB);"
    "CREATE TABLE names(track INTEGER, name INTEGER, events INTEGER, total_ns INTEGER,"
    " min_ns INTEGER, max_ns INTEGER, first_ns INTEGER, last_ns INTEGER, unfinished INTEGER,"
    " PRIMARY KEY(track, name)) WITHOUT ROWID;"
    "CREATE TABLE clock_sync(host TEXT, clock INTEGER, ticks INTEGER, monotonic_ns INTEGER,"
    " realtime_ns INTEGER, width_ticks INTEGER);"
    "CREATE TABLE clock_offsets(host TEXT, at_ns INTEGER, offset_ns INTEGER,"
    " uncertainty_ns INTEGER, drift_ppm REAL, method TEXT);"
    "CREATE TABLE comm_groups(id INTEGER PRIMARY KEY, name TEXT, key INTEGER, size INTEGER,"
    " ranks TEXT);"
    "CREATE TABLE packed_calls(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB);"
    "CREATE TABLE packed_joins(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB);"
    "CREATE TABLE " MSTX_SPANS_TABLE ";"
    "CREATE TABLE steps(process INTEGER, number INTEGER, name TEXT, start_ns INTEGER,"
    " end_ns INTEGER, PRIMARY KEY(process, start_ns, number)) WITHOUT ROWID;"
    "CREATE TABLE findings(id INTEGER PRIMARY KEY, kind TEXT, severity TEXT, ranks TEXT,"
    " first_step INTEGER, last_step INTEGER, value REAL, text TEXT, place TEXT, message TEXT,"
    " args TEXT, from_ns INTEGER, to_ns INTEGER);"
    "CREATE TABLE hangs(process INTEGER, rank INTEGER, name TEXT, comm TEXT, uid INTEGER,"
    " seq INTEGER, size INTEGER, on_device INTEGER, waited_ns INTEGER, tid INTEGER, op INTEGER,"
    " peer INTEGER, stacks TEXT);"
    "CREATE TABLE rank_steps(process INTEGER, rank INTEGER, step INTEGER, start_ns INTEGER,"
    " end_ns INTEGER, computing_ns INTEGER, communication_ns INTEGER, exposed_ns INTEGER,"
    " overlapped_ns INTEGER, free_ns INTEGER, bubble_ns INTEGER, preparing_ns INTEGER,"
    " waiting_ns INTEGER, blame_ns INTEGER);"
    "CREATE TABLE links(src INTEGER, dst INTEGER, comm_group INTEGER, op TEXT, bytes INTEGER,"
    " between_hosts INTEGER, calls INTEGER, transfer_ns INTEGER, gbs REAL, ratio REAL, z REAL);"
    "CREATE TABLE conclusions(kind TEXT, severity TEXT, rank INTEGER, first_step INTEGER,"
    " last_step INTEGER, value REAL, at_ns INTEGER, text TEXT, message TEXT, args TEXT);"
    "CREATE TABLE rank_comm(rank INTEGER PRIMARY KEY, span_ns INTEGER, comm_ns INTEGER,"
    " wait_ns INTEGER, collectives INTEGER, last INTEGER, blame_ns INTEGER);"
    "CREATE TABLE rank_pairs(kind INTEGER, rank INTEGER, other INTEGER, bytes INTEGER, ns INTEGER,"
    " calls INTEGER);"
    "CREATE TABLE call_sizes(op TEXT, bytes INTEGER, calls INTEGER, ns INTEGER);"
    "CREATE TABLE rank_use(rank INTEGER PRIMARY KEY, steps INTEGER, step_ns REAL,"
    " computing_ns REAL, communication_ns REAL, exposed_ns REAL, overlapped_ns REAL, free_ns REAL,"
    " bubble_ns REAL, preparing_ns REAL, waiting_ns REAL, blame_ns REAL);"
    "CREATE TABLE flows(name TEXT, from_track INTEGER, from_ns INTEGER, to_track INTEGER,"
    " to_ns INTEGER);"
    "CREATE TABLE problems(file TEXT, text TEXT);";

#endif
