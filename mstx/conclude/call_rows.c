/* SPDX-License-Identifier: MIT
 *
 * call_rows: see the header.
 */
#include "mstx/conclude/call_rows.h"

#include "mstx/conclude/comm_measure.h"
#include "mstx/conclude/use_rows.h"
#include "mstx/format/comm.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* A communicator with the world rank of each of its ranks. */
struct group {
    int64_t id;
    MS_VEC(int32_t) world;
};

struct ranked {
    int32_t rank;
    uint32_t process;
};

struct reading {
    struct mstx_tl *tl;
    struct mstx_call_rows *to;
    MS_VEC(struct group) group;
    MS_VEC(uint32_t) place;  /* by process: index of its rank, or UINT32_MAX */
    MS_VEC(uint32_t) fences; /* by rank index and group: fences counted so far */
    size_t found;            /* number of calls of all processes */
    int64_t first_ns, last_ns,
        until_ns; /* first and last start; calls after until_ns are skipped */
    const int64_t *column[MSTX_CALL_COLUMNS];
};

/* ---- communicators ----------------------------------------------------------------- */

static enum ms_rc read_group(struct reading *r, struct ms_stmt *st, struct ms_err *err)
{
    struct group *g = ms_vec_push(&r->group);
    struct ms_str rest = ms_stmt_get_str(st, 1), part;
    if (g == NULL)
        return ms_no_memory(err);
    *g = (struct group){.id = ms_stmt_get_i64(st, 0)};
    while (rest.n != 0 && ms_str_split(&rest, ',', &part)) {
        int64_t rank;
        int32_t *slot = ms_vec_push(&g->world);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = ms_str_i64(part, &rank) && rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1;
    }
    return MS_OK;
}

static enum ms_rc read_groups(struct reading *r, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(r->tl), &st,
                            "SELECT id, ranks FROM comm_groups ORDER BY id", err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = read_group(r, st, err);
    ms_stmt_free(st);
    return rc;
}

static const struct group *find_group(const struct reading *r, int64_t id)
{
    size_t low = 0, high = r->group.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (r->group.p[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->group.n && r->group.p[low].id == id ? &r->group.p[low] : NULL;
}

static int32_t place_of_rank(const struct reading *r, int32_t rank)
{
    size_t low = 0, high = r->to->rank.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (r->to->rank.p[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->to->rank.n && r->to->rank.p[low] == rank ? (int32_t)low : -1;
}

/* Returns the rank index of a peer, which a call names by its rank in the communicator; -1:
 * unknown. */
static int32_t place_of_peer(const struct reading *r, int64_t group, int64_t peer)
{
    const struct group *g = find_group(r, group);
    if (peer < 0 || peer > INT32_MAX)
        return -1;
    if (g == NULL || g->world.n == 0)
        return place_of_rank(r, (int32_t)peer);
    return (size_t)peer < g->world.n ? place_of_rank(r, g->world.p[peer]) : -1;
}

/* ---- ranks --------------------------------------------------------------------------- */

static enum ms_rc count_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    struct reading *r = ctx;
    const int64_t *process = mstx__rows_column(rows, MSTX_CALL_PROCESS, err);
    const int64_t *start = process != NULL ? mstx__rows_column(rows, MSTX_CALL_START, err) : NULL;
    for (uint32_t i = 0; start != NULL && i < rows->n; i++) {
        if (process[i] >= 1 && (size_t)process[i] <= r->place.n)
            r->place.p[process[i] - 1] = 0;
        r->first_ns = start[i] < r->first_ns ? start[i] : r->first_ns;
        r->last_ns = start[i] > r->last_ns ? start[i] : r->last_ns;
    }
    r->found += rows->n;
    return start != NULL ? MS_OK : MS_E_FORMAT;
}

/* Marks the processes that made calls, and finds the time until which calls are read. */
static enum ms_rc look_at_calls(struct reading *r, struct ms_err *err)
{
    const size_t processes = mstx_tl_process_count(r->tl);
    if (!ms_vec_reserve(&r->place, processes + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < processes; i++)
        r->place.p[r->place.n++] = UINT32_MAX;
    r->first_ns = INT64_MAX;
    r->last_ns = INT64_MIN;
    MS_TRY(mstx__packed_each_call(mstx__tl_packed(r->tl), count_calls, r, err));
    r->until_ns = INT64_MAX;
    r->to->is_part = r->found > MSTX_CALLS_JUDGED;
    if (r->to->is_part)
        r->until_ns = r->first_ns + (int64_t)((double)(r->last_ns - r->first_ns) *
                                              MSTX_CALLS_JUDGED / (double)r->found);
    return MS_OK;
}

static int by_rank(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, MS_ORDER(a->process, b->process, 0));
}

/* Lists the ranks in order, each with its first process that made calls. */
static enum ms_rc find_places(struct reading *r, struct ms_err *err)
{
    MS_VEC(struct ranked) v = {0};
    bool ok = ms_vec_reserve(&v, r->place.n + 1) &&
              ms_vec_reserve(&r->to->process, r->place.n + 1) &&
              ms_vec_reserve(&r->to->rank, r->place.n + 1);
    for (size_t i = 0; i < r->place.n && ok; i++) {
        const int32_t rank = mstx_tl_process(r->tl, i)->rank;
        if (r->place.p[i] == 0 && rank >= 0)
            v.p[v.n++] = (struct ranked){rank, (uint32_t)i};
        r->place.p[i] = UINT32_MAX;
    }
    if (ok && v.n != 0)
        qsort(v.p, v.n, sizeof *v.p, by_rank);
    for (size_t i = 0; i < v.n && ok; i++) {
        if (i != 0 && v.p[i].rank == v.p[i - 1].rank)
            continue;
        r->place.p[v.p[i].process] = (uint32_t)r->to->rank.n;
        r->to->process.p[r->to->process.n++] = v.p[i].process;
        r->to->rank.p[r->to->rank.n++] = v.p[i].rank;
    }
    ms_vec_free(&v);
    return ok ? MS_OK : ms_no_memory(err);
}

/* ---- calls --------------------------------------------------------------------------- */

static int64_t cell_at(const struct reading *r, unsigned column, uint32_t row)
{
    return r->column[column][row];
}

static uint8_t log_of(int64_t sent, int64_t received)
{
    const int64_t bytes = sent > received ? sent : received;
    return bytes > 0 ? (uint8_t)(64 - __builtin_clzll((uint64_t)bytes)) : 0;
}

/* Returns the sequence number of a fence.  Fences are recorded without one, so they are counted for
 * each rank and communicator. */
static uint32_t count_fence(struct reading *r, uint32_t place, int64_t group, struct ms_err *err,
                            enum ms_rc *rc)
{
    const size_t at = (size_t)place * (r->group.n + 1) + (size_t)group;
    if (group < 0 || (size_t)group > r->group.n)
        return MSTX_NO_SEQ;
    if (r->fences.n == 0) {
        const size_t n = r->to->rank.n * (r->group.n + 1);
        if (!ms_vec_reserve(&r->fences, n + 1)) {
            *rc = ms_no_memory(err);
            return MSTX_NO_SEQ;
        }
        memset(r->fences.p, 0, n * sizeof *r->fences.p);
        r->fences.n = n;
    }
    return r->fences.p[at]++;
}

static uint32_t sequence_of(struct reading *r, uint32_t row, uint32_t place, struct ms_err *err,
                            enum ms_rc *rc)
{
    const int64_t seq = cell_at(r, MSTX_CALL_SEQ, row), group = cell_at(r, MSTX_CALL_GROUP, row);
    if (cell_at(r, MSTX_CALL_OP, row) != MSTX_COMM_WINDOW)
        return seq >= 0 && seq < UINT32_MAX ? (uint32_t)seq : MSTX_NO_SEQ;
    const struct ms_str name = mstx_tl_text(r->tl, (uint32_t)cell_at(r, MSTX_CALL_NAME, row));
    return ms_str_is(name, "MPI_Win_fence") ? count_fence(r, place, group, err, rc) : MSTX_NO_SEQ;
}

static enum ms_rc take_call(struct reading *r, uint32_t row, struct ms_err *err)
{
    const int64_t process = cell_at(r, MSTX_CALL_PROCESS, row) - 1;
    const int64_t group = cell_at(r, MSTX_CALL_GROUP, row), polls = cell_at(r, MSTX_CALL_SENT, row);
    if (process < 0 || (size_t)process >= r->place.n || r->place.p[process] == UINT32_MAX ||
        cell_at(r, MSTX_CALL_START, row) > r->until_ns)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    const uint32_t place = r->place.p[process];
    const uint8_t op = (uint8_t)cell_at(r, MSTX_CALL_OP, row);
    struct mstx_gcall *c = ms_vec_push(&r->to->calls);
    if (c == NULL)
        return ms_no_memory(err);
    *c = (struct mstx_gcall){
        .start_ns = cell_at(r, MSTX_CALL_START, row),
        .end_ns = cell_at(r, MSTX_CALL_START, row) + cell_at(r, MSTX_CALL_DUR, row),
        .rank = place,
        .thread = (uint32_t)cell_at(r, MSTX_CALL_TID, row),
        .group = group > 0 ? (uint32_t)group : 0,
        .seq = sequence_of(r, row, place, err, &rc),
        .peer = place_of_peer(r, group, cell_at(r, MSTX_CALL_PEER, row)),
        .tag = (int32_t)(cell_at(r, MSTX_CALL_TAG, row) >= 0 ? cell_at(r, MSTX_CALL_TAG, row) : -1),
        .polls = polls > 0 && polls < UINT32_MAX ? (uint32_t)polls : 0,
        .op = op,
        .lib = (uint8_t)cell_at(r, MSTX_CALL_LIB, row),
        .flags = (uint8_t)cell_at(r, MSTX_CALL_FLAGS, row),
        .log_bytes = mstx_comm_op_asks(op) ? 0
                                           : log_of(cell_at(r, MSTX_CALL_SENT, row),
                                                    cell_at(r, MSTX_CALL_RECEIVED, row))};
    r->to->has_device |=
        c->lib == MSTX_LIB_NCCL || c->lib == MSTX_LIB_RCCL || c->lib == MSTX_LIB_HCCL;
    return rc;
}

static enum ms_rc take_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    struct reading *r = ctx;
    for (unsigned k = 0; k < MSTX_CALL_COLUMNS; k++) {
        r->column[k] = mstx__rows_column(rows, k, err);
        if (r->column[k] == NULL)
            return MS_E_FORMAT;
    }
    for (uint32_t i = 0; i < rows->n; i++)
        MS_TRY(take_call(r, i, err));
    return MS_OK;
}

/* ---- steps --------------------------------------------------------------------------- */

/* Finds the steps of a process, which are contiguous and in order of time; returns their number. */
static size_t steps_of(const struct mstx_steps *steps, uint32_t process, size_t *first)
{
    size_t n = 0;
    for (size_t i = 0; i < steps->list.n; i++) {
        if (steps->list.p[i].process != process)
            continue;
        if (n == 0)
            *first = i;
        n++;
    }
    return n;
}

static enum ms_rc take_steps(struct reading *r, const struct mstx_steps *steps, struct ms_err *err)
{
    size_t least = SIZE_MAX, most = 0, first = 0;
    for (size_t k = 0; k < r->to->process.n; k++) {
        const size_t n = steps_of(steps, r->to->process.p[k], &first);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    const bool is_named = steps->source == MSTX_STEPS_RANGES || steps->source == MSTX_STEPS_MARKS;
    if (!is_named || least == SIZE_MAX || least < 2 || most > least + 1)
        return MS_OK;
    if (!ms_vec_reserve(&r->to->step_at, r->to->process.n * (least + 1)))
        return ms_no_memory(err);
    for (size_t k = 0; k < r->to->process.n; k++) {
        steps_of(steps, r->to->process.p[k], &first);
        for (size_t s = 0; s < least; s++)
            r->to->step_at.p[r->to->step_at.n++] = steps->list.p[first + s].start_ns;
        r->to->step_at.p[r->to->step_at.n++] = steps->list.p[first + least - 1].end_ns;
    }
    r->to->steps = (struct mstx_step_times){r->to->step_at.p, (uint32_t)least};
    return MS_OK;
}

static bool is_one_host(const struct reading *r)
{
    for (size_t k = 1; k < r->to->process.n; k++) {
        if (!ms_str_eq(mstx_tl_process(r->tl, r->to->process.p[k])->host,
                       mstx_tl_process(r->tl, r->to->process.p[0])->host))
            return false;
    }
    return true;
}

/* Tells whether all hosts of the run are names of one boot, as containers on one machine are: they read one
 * counter.  A boot without an identity may be any. */
static enum ms_rc find_one_boot(struct reading *r, bool *is_one, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(r->tl), &st,
                            "SELECT count(DISTINCT host || '.' || clock) = 1 AND"
                            " max(ltrim(host, '0')) <> '' FROM clock_sync",
                            err));
    const enum ms_rc rc = ms_stmt_step(st, is_one, err);
    *is_one = rc == MS_OK && *is_one && ms_stmt_get_i64(st, 0) == 1;
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_all(struct reading *r, const struct mstx_steps *steps, struct ms_err *err)
{
    struct mstx_clock_summary clocks;
    MS_TRY(read_groups(r, err));
    MS_TRY(look_at_calls(r, err));
    MS_TRY(find_places(r, err));
    const size_t wanted = r->found < MSTX_CALLS_JUDGED ? r->found : MSTX_CALLS_JUDGED;
    if (!ms_vec_reserve(&r->to->calls, wanted))
        return ms_no_memory(err);
    MS_TRY(mstx__packed_each_call(mstx__tl_packed(r->tl), take_calls, r, err));
    MS_TRY(mstx__use_rows_read(r->tl, r->to->process.p, r->to->process.n, &r->to->use, err));
    MS_TRY(mstx_clocks_measure(r->tl, &clocks, err));
    bool is_one_boot;
    MS_TRY(find_one_boot(r, &is_one_boot, err));
    r->to->has_one_clock = clocks.hosts > 1 || is_one_boot || is_one_host(r);
    r->to->unsure_ns = clocks.hosts > 1 ? clocks.uncertainty_ns : 0;
    return take_steps(r, steps, err);
}

enum ms_rc mstx__call_rows_read(struct mstx_tl *tl, const struct mstx_steps *steps,
                                struct mstx_call_rows *to, struct ms_err *err)
{
    struct reading r = {.tl = tl, .to = to};
    *to = (struct mstx_call_rows){0};
    const enum ms_rc rc = read_all(&r, steps, err);
    for (size_t i = 0; i < r.group.n; i++)
        ms_vec_free(&r.group.p[i].world);
    ms_vec_free(&r.group);
    ms_vec_free(&r.place);
    ms_vec_free(&r.fences);
    if (rc != MS_OK)
        mstx__call_rows_free(to);
    return rc;
}

void mstx__call_rows_free(struct mstx_call_rows *r)
{
    ms_vec_free(&r->calls);
    ms_vec_free(&r->process);
    ms_vec_free(&r->rank);
    ms_vec_free(&r->step_at);
    mstx__use_free(&r->use);
}
