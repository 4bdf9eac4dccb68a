/* SPDX-License-Identifier: MIT
 *
 * mem_from_ascend: the memory tables in databases of Ascend's profilers.
 *
 *     OP_MEMORY      one allocation of PyTorch a row: name, size, allocationTime, releaseTime
 *     NPU_OP_MEM     allocations (size > 0) and releases (size < 0) by address
 *     MEMORY_RECORD  totals at a time: totalAllocated, totalReserved
 *
 * Names are numbers of STRING_IDS, sizes bytes, times nanoseconds.
 */
#include "mstx/memory/mem_read.h"

#include "probe/base/store.h"

#include <stdio.h>
#include <string.h>

struct reader {
    struct mstx_mem_log *log;
    struct ms_store *db;
    int32_t rank;
    mstx_mem_lists events;
};

static enum ms_rc has_table(struct reader *r, const char *table, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(r->db, &st,
                            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1", err));
    ms_stmt_str(st, 1, ms_str_of(table));
    const enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc find_space(struct reader *r, int64_t device, size_t *index,
                             struct mstx_mem_space **s, struct ms_err *err)
{
    char name[32];
    snprintf(name, sizeof name, "NPU:%d", (int)(device & 0xffff));
    MS_TRY(mstx__mem_space(r->log, r->rank, ms_str_of(name), s, err));
    for (*index = 0; r->log->spaces.p[*index] != *s;)
        ++*index;
    return mstx__mem_lists_grow(&r->events, r->log, err);
}

/* Takes a row: name, size, begin, end or NULL, address, device. A row without an end is an
 * allocation or, with a negative size, a release at its address. */
static enum ms_rc take_row(struct reader *r, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_mem_site site = {.op = mstx__mem_text(r->log, ms_stmt_get_str(st, 0))};
    struct mstx_mem_event e = {.at_ns = ms_stmt_get_i64(st, 2),
                               .address = (uint64_t)ms_stmt_get_i64(st, 4),
                               .bytes = ms_stmt_get_i64(st, 1)};
    const int64_t most = (int64_t)MSTX_MEM_BYTES_MAX;
    struct mstx_mem_space *s;
    size_t space;
    if (e.bytes == 0 || e.bytes > most || e.bytes < -most)
        return MS_OK;
    MS_TRY(find_space(r, ms_stmt_get_i64(st, 5), &space, &s, err));
    MS_TRY(mstx__mem_site(r->log, &site, &e.site, err));
    MS_TRY(mstx__mem_lists_add(&r->events, space, &e, err));
    if (ms_stmt_is_null(st, 3) || ms_stmt_get_i64(st, 3) < e.at_ns)
        return MS_OK;
    e.at_ns = ms_stmt_get_i64(st, 3);
    e.bytes = 0;
    return mstx__mem_lists_add(&r->events, space, &e, err);
}

static enum ms_rc take_total(struct reader *r, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_mem_space *s;
    size_t space;
    MS_TRY(find_space(r, ms_stmt_get_i64(st, 3), &space, &s, err));
    struct mstx_mem_total *slot = ms_vec_push(&s->totals);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_mem_total){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1),
                                    ms_stmt_get_i64(st, 2)};
    return MS_OK;
}

typedef enum ms_rc (*take_fn)(struct reader *r, struct ms_stmt *st, struct ms_err *err);

/* Calls `take` for the rows of a table, if the database has it. */
static enum ms_rc read_table(struct reader *r, const char *table, const char *sql, take_fn take,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    bool has;
    MS_TRY(has_table(r, table, &has, err));
    if (!has)
        return MS_OK;
    MS_TRY(ms_store_prepare(r->db, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = take(r, st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_tables(struct reader *r, struct ms_err *err)
{
    MS_TRY(read_table(r, "OP_MEMORY",
                      "SELECT s.value, m.size, m.allocationTime, nullif(m.releaseTime, 0), m.rowid,"
                      " m.deviceId FROM OP_MEMORY m LEFT JOIN STRING_IDS s ON s.id = m.name",
                      take_row, err));
    if (r->events.n == 0)
        MS_TRY(read_table(r, "NPU_OP_MEM",
                          "SELECT s.value, m.size, m.timestampNs, NULL, m.addr, m.deviceId"
                          " FROM NPU_OP_MEM m LEFT JOIN STRING_IDS s ON s.id = m.operatorName",
                          take_row, err));
    MS_TRY(read_table(r, "MEMORY_RECORD",
                      "SELECT timestamp, totalAllocated, totalReserved, deviceId"
                      " FROM MEMORY_RECORD ORDER BY timestamp",
                      take_total, err));
    if (r->log->spaces.n == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "has no rows of memory use; profile with profile_memory=True");
    return mstx__mem_lists_replay(&r->events, r->log, err);
}

enum ms_rc mstx__mem_from_ascend(struct mstx_mem_log *log, const char *path, int32_t rank,
                                 struct ms_err *err)
{
    struct reader r = {.log = log, .rank = rank};
    MS_TRY(ms_store_open(&r.db, path, err));
    const enum ms_rc rc = read_tables(&r, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    mstx__mem_lists_free(&r.events);
    ms_store_close(r.db);
    return rc;
}
