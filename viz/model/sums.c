/* SPDX-License-Identifier: MIT
 *
 * sums: runs SQL statements in slices of time and adds their rows up by key.
 */
#include "viz/model/sums.h"

#include "probe/base/clock.h"
#include "probe/base/store.h"

#include <stdlib.h>

enum { TEXT_MOST = 1 << 28, LOOK_AT_CLOCK = 256 };

typedef enum ms_rc (*add_fn)(struct viz_sums *s, struct ms_err *err);
static enum ms_rc add_name(struct viz_sums *s, struct ms_err *err);
static enum ms_rc add_step(struct viz_sums *s, struct ms_err *err);
static enum ms_rc add_use(struct viz_sums *s, struct ms_err *err);
static enum ms_rc add_call(struct viz_sums *s, struct ms_err *err);
static enum ms_rc add_join(struct viz_sums *s, struct ms_err *err);

/* Statements of each kind, read one after the other. */
static const struct {
    const char *sql;
    add_fn add;
} reads[][3] = {
    [VIZ_SUM_NAMES] = {{"SELECT n.name, n.events, n.total_ns, n.max_ns, t.domain FROM names n"
                        " JOIN tracks t ON t.id = n.track WHERE t.kind IN (0, 3)",
                        add_name}},
    [VIZ_SUM_COLLECTIVES] = {{"SELECT n.name, n.events, n.total_ns, n.max_ns, t.domain"
                              " FROM tracks t JOIN names n ON n.track = t.id"
                              " WHERE t.kind IN (0, 3) AND t.domain = 'communication'",
                              add_name},
                             {"SELECT name, op, bytes, process - 1, start_ns, end_ns - start_ns"
                              " FROM comm_ops",
                              add_call},
                             {"SELECT op, last_rank, waited_ns FROM joins WHERE last_rank >= 0",
                              add_join}},
    [VIZ_SUM_RANKS] = {{"SELECT process - 1, end_ns - start_ns FROM steps", add_step},
                       {"SELECT process - 1, computing_ns, exposed_ns, waiting_ns, blame_ns,"
                        " end_ns - start_ns FROM rank_steps",
                        add_use}},
};
enum { READS = sizeof reads[0] / sizeof reads[0][0] };

void viz_sums_free(struct viz_sums *s)
{
    ms_stmt_free(s->st);
    ms_vec_free(&s->rows);
    ms_map_free(&s->keys);
    ms_map_free(&s->latecomers);
    ms_vec_free(&s->times);
    ms_arena_free(s->arena);
    *s = (struct viz_sums){.done = false};
}

/* Adds a row for every process, also those without steps. */
static enum ms_rc add_processes(struct viz_sums *s, struct mstx_tl *tl, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        struct viz_sum *row = ms_vec_push(&s->rows);
        if (row == NULL)
            return ms_no_memory(err);
        *row = (struct viz_sum){.process = (uint32_t)i, .domain = MS_STR("")};
    }
    return MS_OK;
}

enum ms_rc viz_sums_begin(struct viz_sums *s, struct mstx_tl *tl, enum viz_sums_of of,
                          struct ms_err *err)
{
    viz_sums_free(s);
    s->of = of;
    s->tl = tl;
    s->arena = ms_arena_new(TEXT_MOST);
    enum ms_rc rc = s->arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && of == VIZ_SUM_RANKS)
        rc = add_processes(s, tl, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(mstx_tl_store(tl), &s->st, reads[of][0].sql, err);
    s->done = rc != MS_OK; /* a failure leaves nothing to continue */
    return rc;
}

/* Returns the row of a name in a domain, added when new. */
static struct viz_sum *row_of_name(struct viz_sums *s, uint32_t name, struct ms_str domain)
{
    char text[256];
    uint32_t n = domain.n < sizeof text - sizeof name ? domain.n : sizeof text - sizeof name;
    bool added;
    memcpy(text, &name, sizeof name);
    memcpy(text + sizeof name, domain.p != NULL ? domain.p : "", n);
    struct ms_str key = {text, n + (uint32_t)sizeof name};
    uint32_t i = ms_map_put_copy(&s->keys, key, s->arena, &added);
    if (i == MS_MAP_NONE)
        return NULL;
    if (!added)
        return &s->rows.p[i];
    struct viz_sum *row = ms_vec_push(&s->rows);
    if (row != NULL)
        *row = (struct viz_sum){.name = name,
                                .domain = ms_str_sub(ms_map_key(&s->keys, i), sizeof name, key.n)};
    return row;
}

static void add_times(struct viz_sum *row, int64_t count, int64_t total, int64_t longest)
{
    row->count += count;
    row->total += total;
    row->longest = longest > row->longest ? longest : row->longest;
}

static enum ms_rc add_name(struct viz_sums *s, struct ms_err *err)
{
    uint32_t name = (uint32_t)ms_stmt_get_i64(s->st, 0);
    struct viz_sum *row = row_of_name(s, name, ms_stmt_get_str(s->st, 4));
    if (row == NULL)
        return ms_no_memory(err);
    add_times(row, ms_stmt_get_i64(s->st, 1), ms_stmt_get_i64(s->st, 2), ms_stmt_get_i64(s->st, 3));
    return MS_OK;
}

static enum ms_rc add_step(struct viz_sums *s, struct ms_err *err)
{
    uint64_t process = (uint64_t)ms_stmt_get_i64(s->st, 0);
    int64_t length = ms_stmt_get_i64(s->st, 1);
    (void)err;
    if (process < s->rows.n) /* otherwise the file is damaged: a step without a process */
        add_times(&s->rows.p[process], 1, length, length);
    return MS_OK;
}

/* Adds the use of a step. Waiting time is part of the communication that is not hidden by
 * computing, so it is subtracted there. */
static enum ms_rc add_use(struct viz_sums *s, struct ms_err *err)
{
    uint64_t key = (uint64_t)ms_stmt_get_i64(s->st, 0);
    (void)err;
    if (key >= s->rows.n)
        return MS_OK;
    struct viz_sum *row = &s->rows.p[key];
    int64_t computes = ms_stmt_get_i64(s->st, 1), exposed = ms_stmt_get_i64(s->st, 2);
    int64_t waits = ms_stmt_get_i64(s->st, 3),
            idles = ms_stmt_get_i64(s->st, 5) - computes - exposed;
    waits = waits < exposed ? waits : exposed;
    row->measured++;
    row->blame += ms_stmt_get_i64(s->st, 4);
    row->use[VIZ_COMPUTES] += computes;
    row->use[VIZ_SENDS] += exposed - waits;
    row->use[VIZ_WAITS] += waits;
    row->use[VIZ_IDLES] += idles > 0 ? idles : 0;
    return MS_OK;
}

const struct viz_sum *viz_sums_use(const struct viz_sums *s, size_t process)
{
    for (size_t i = 0; s->done && i < s->rows.n; i++) {
        if (s->rows.p[i].process == process)
            return s->rows.p[i].measured != 0 ? &s->rows.p[i] : NULL;
    }
    return NULL;
}

/* ---- communication -------------------------------------------------------------------- */

/* Returns the row of a name, by linear search: calls have few names. */
static struct viz_sum *row_called(struct viz_sums *s, struct ms_str name)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        if (ms_str_eq(mstx_tl_text(s->tl, s->rows.p[i].name), name))
            return &s->rows.p[i];
    }
    return NULL;
}

/* Adds a row for calls that are kernels of a device: these are in no domain of their own. Calls have few names, so
 * that each is looked up once. */
static enum ms_rc add_row_called(struct viz_sums *s, struct ms_str name, struct viz_sum **row,
                                 struct ms_err *err)
{
    struct ms_stmt *st;
    bool found = false;
    MS_TRY(ms_store_prepare(mstx_tl_store(s->tl), &st, "SELECT id FROM strings WHERE value = ?1",
                            err));
    ms_stmt_str(st, 1, name);
    enum ms_rc rc = ms_stmt_step(st, &found, err);
    *row =
        rc == MS_OK && found ? row_of_name(s, (uint32_t)ms_stmt_get_i64(st, 0), MS_STR("")) : NULL;
    if (found && *row == NULL)
        rc = ms_no_memory(err);
    if (*row != NULL)
        (*row)->is_of_calls = true;
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc add_call(struct viz_sums *s, struct ms_err *err)
{
    const struct ms_str name = ms_stmt_get_str(s->st, 0);
    struct viz_sum *row = row_called(s, name);
    if (row == NULL)
        MS_TRY(add_row_called(s, name, &row, err));
    if (row == NULL)
        return MS_OK;
    row->bytes += ms_stmt_get_i64(s->st, 2);
    const struct viz_longest call = {(size_t)ms_stmt_get_i64(s->st, 3), ms_stmt_get_i64(s->st, 4),
                                     ms_stmt_get_i64(s->st, 5)};
    if (row->is_of_calls)
        add_times(row, 1, call.length_ns, call.length_ns);
    if (call.length_ns > row->call.length_ns)
        row->call = call;
    if (row->op.n == 0)
        row->op = ms_arena_str(s->arena, ms_stmt_get_str(s->st, 1));
    return row->op.p != NULL ? MS_OK : ms_no_memory(err);
}

/* Returns, of all rows of one operation, the one with the most calls. */
static struct viz_sum *row_of_op(struct viz_sums *s, struct ms_str op)
{
    struct viz_sum *best = NULL;
    for (size_t i = 0; i < s->rows.n; i++) {
        struct viz_sum *row = &s->rows.p[i];
        if (ms_str_eq(row->op, op) && (best == NULL || row->count > best->count))
            best = row;
    }
    return best;
}

/* Returns how often the rank arrived last in this row's operation, this time included; 0: out of
 * memory. */
static int64_t count_late(struct viz_sums *s, const struct viz_sum *row, int64_t rank)
{
    int64_t pair[2] = {row - s->rows.p, rank};
    struct ms_str key = {(const char *)pair, sizeof pair};
    bool added;
    uint32_t i = ms_map_put_copy(&s->latecomers, key, s->arena, &added);
    int64_t *times = i == MS_MAP_NONE ? NULL : added ? ms_vec_push(&s->times) : &s->times.p[i];
    if (times == NULL)
        return 0;
    *times = added ? 1 : *times + 1;
    return *times;
}

static enum ms_rc add_join(struct viz_sums *s, struct ms_err *err)
{
    struct viz_sum *row = row_of_op(s, ms_stmt_get_str(s->st, 0));
    int64_t rank = ms_stmt_get_i64(s->st, 1);
    const int64_t waited = ms_stmt_get_i64(s->st, 2);
    if (row == NULL)
        return MS_OK;
    row->joins++;
    row->waited += waited;
    if (waited == 0) /* nobody was late */
        return MS_OK;
    int64_t times = count_late(s, row, rank);
    if (times == 0)
        return ms_no_memory(err);
    if (times > row->times) {
        row->times = times;
        row->last = rank;
    }
    return MS_OK;
}

/* ---- the end -------------------------------------------------------------------------- */

static int order_falling(int64_t a, int64_t b)
{
    return a > b ? -1 : a < b;
}

static int by_total(const void *pa, const void *pb)
{
    const struct viz_sum *a = pa, *b = pb;
    int c = order_falling(a->total, b->total);
    c = c != 0 ? c : order_falling(a->count, b->count);
    return c != 0 ? c : a->name < b->name ? -1 : a->name > b->name;
}

static int by_blame(const void *pa, const void *pb)
{
    const struct viz_sum *a = pa, *b = pb;
    int c = order_falling(a->blame, b->blame);
    c = c != 0 ? c : order_falling(viz_sum_mean(a), viz_sum_mean(b));
    return c != 0 ? c : a->process < b->process ? -1 : a->process > b->process;
}

static void finish(struct viz_sums *s)
{
    ms_stmt_free(s->st);
    s->st = NULL;
    s->done = true;
    if (s->rows.n != 0)
        qsort(s->rows.p, s->rows.n, sizeof *s->rows.p,
              s->of == VIZ_SUM_RANKS ? by_blame : by_total);
    if (s->of != VIZ_SUM_RANKS && s->rows.n > VIZ_SUMS_MOST)
        s->rows.n = VIZ_SUMS_MOST;
}

/* Moves to the next statement, or to the end. */
static enum ms_rc turn_over(struct viz_sums *s, struct ms_err *err)
{
    const char *next = s->statement + 1 < READS ? reads[s->of][s->statement + 1].sql : NULL;
    if (next == NULL) {
        finish(s);
        return MS_OK;
    }
    ms_stmt_free(s->st);
    s->st = NULL;
    s->statement++;
    return ms_store_prepare(mstx_tl_store(s->tl), &s->st, next, err);
}

enum ms_rc viz_sums_work(struct viz_sums *s, int64_t end_ns, struct ms_err *err)
{
    bool more = true;
    while (!s->done) {
        MS_TRY(ms_stmt_step(s->st, &more, err));
        MS_TRY(more ? reads[s->of][s->statement].add(s, err) : turn_over(s, err));
        if (++s->read % LOOK_AT_CLOCK == 0 && ms_clock_ns() >= end_ns)
            return MS_OK;
    }
    return MS_OK;
}
