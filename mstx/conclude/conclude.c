/* SPDX-License-Identifier: MIT
 *
 * conclude: see the header.
 */
#include "mstx/conclude/conclude.h"

#include "mstx/conclude/finding_kinds.h"
#include "mstx/conclude/findings.h"
#include "mstx/conclude/hang.h"
#include "mstx/conclude/live.h"
#include "mstx/conclude/rank_sums.h"
#include "mstx/conclude/socket_rows.h"
#include "mstx/conclude/steps.h"
#include "mstx/conclude/waiting.h"
#include "mstx/conclude/waiting_stage.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store_bulk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct conclusions {
    struct mstx_steps steps;
    mstx_findings findings;
    struct mstx_waiting waiting;
    struct mstx_replay_rows spans;
    struct mstx_rank_sums *sums;
    int64_t step_median_ns, missing_after_ns;
};

/* ---- one process ------------------------------------------------------------ */

/* A row of the table processes. */
struct process_row {
    int32_t rank;
    int64_t pid;
    struct ms_str name;
};

static struct mstx_finding *add_for_process(struct conclusions *r, const struct process_row *p,
                                            const struct ms_message_kind *kind,
                                            enum mstx_severity severity, double value)
{
    const bool is_open = kind == &mstx_say_open_ranges;
    struct mstx_finding *f = mstx__finding_add(&r->findings, is_open ? "unfinished" : kind->name,
                                               kind, severity, p->rank, value);
    if (f != NULL)
        mstx__message_process(&f->message, p->rank, p->pid, p->name);
    return f;
}

/* Adds a finding about a count in a process, unless the count is 0. */
static enum ms_rc add_count(struct conclusions *r, const struct process_row *p,
                            const struct ms_message_kind *kind, enum mstx_severity severity,
                            const char *name, int64_t count, struct ms_err *err)
{
    if (count <= 0)
        return MS_OK;
    struct mstx_finding *f = add_for_process(r, p, kind, severity, (double)count);
    if (f == NULL)
        return ms_no_memory(err);
    ms_message_i64(&f->message, name, count);
    return MS_OK;
}

static enum ms_rc find_in_process(struct conclusions *r, struct ms_stmt *st, struct ms_err *err)
{
    const struct process_row p = {(int32_t)ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1),
                                  ms_stmt_get_str(st, 7)};
    const int64_t cost = ms_stmt_get_i64(st, 5), time = ms_stmt_get_i64(st, 6);
    MS_TRY(add_count(r, &p, &mstx_say_drop, MSTX_WARNING_FINDING, "records", ms_stmt_get_i64(st, 2),
                     err));
    const bool may_run = mstx__may_run(ms_stmt_get_str(st, 4));
    MS_TRY(add_count(r, &p, may_run ? &mstx_say_open_ranges : &mstx_say_unfinished,
                     MSTX_INFO_FINDING, "ranges", ms_stmt_get_i64(st, 3), err));
    /* A process that leaves by _exit looks as if it had been killed.  Workers of Python's
     * multiprocessing do so, which is not worth a warning. */
    const bool is_worker = ms_stmt_get_i64(st, 8) != 0;
    if (ms_str_is(ms_stmt_get_str(st, 4), "killed") &&
        add_for_process(r, &p, &mstx_say_killed,
                        is_worker ? MSTX_INFO_FINDING : MSTX_WARNING_FINDING, 1) == NULL)
        return ms_no_memory(err);
    const double share = time > 0 ? (double)cost / (double)time : 0;
    if (share <= 0.01)
        return MS_OK;
    struct mstx_finding *f =
        add_for_process(r, &p, &mstx_say_overhead, MSTX_WARNING_FINDING, share);
    if (f == NULL)
        return ms_no_memory(err);
    ms_message_f64(&f->message, "share", share);
    return MS_OK;
}

static enum ms_rc find_in_processes(struct mstx_tl *tl, struct conclusions *r, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT rank, pid, dropped, unfinished, state, cost_ns,"
                            " end_ns - start_ns, name, EXISTS(SELECT 1 FROM processes q"
                            " WHERE q.pid = p.ppid AND q.host = p.host)"
                            " FROM processes p ORDER BY id",
                            err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = find_in_process(r, st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc find_problems(struct mstx_tl *tl, struct conclusions *r, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT file, text, (SELECT count(*) FROM problems) FROM problems"
                            " LIMIT 20",
                            err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct mstx_finding *f =
            mstx__finding_add(&r->findings, "problem", &mstx_say_problem, MSTX_WARNING_FINDING, -1,
                              (double)ms_stmt_get_i64(st, 2));
        if (f == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        struct ms_str file = ms_stmt_get_str(st, 0), text = ms_stmt_get_str(st, 1);
        if (file.n != 0 && !ms_str_starts(text, file))
            ms_message_str(&f->message, "file", file);
        ms_message_str(&f->message, "text", text);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- all ranks together ------------------------------------------------------ */

enum { RANKS_SHOWN = 8 };

/* Writes the first ranks of a query as "5, 7"; counts all of them. */
static enum ms_rc list_ranks(struct ms_stmt *st, char *to, size_t room, int64_t *ranks,
                             int32_t *first, struct ms_err *err)
{
    size_t n = 0;
    enum ms_rc rc = MS_OK;
    for (*ranks = 0; ms_stmt_next(st, &rc, err); ++*ranks) {
        const int32_t rank = (int32_t)ms_stmt_get_i64(st, 0);
        if (*ranks == 0)
            *first = rank;
        if (*ranks < RANKS_SHOWN)
            n += (size_t)snprintf(to + n, room - n, "%s%" PRId32, *ranks != 0 ? ", " : "", rank);
    }
    return rc;
}

/* Finds ranks that are members of a communicator but recorded nothing; finds none when no process
 * knows its rank, nor for the trace of one rank that a user of PyTorch's profiler chose. */
static enum ms_rc find_absent(struct mstx_tl *tl, struct conclusions *r, struct ms_err *err)
{
    struct ms_stmt *st;
    char ranks[160] = "";
    int64_t n = 0;
    int32_t first = -1;
    MS_TRY(ms_store_prepare(
        mstx_tl_store(tl), &st,
        "SELECT DISTINCT CAST(m.value AS INTEGER) FROM comm_groups g, json_each(CASE"
        " WHEN json_valid('[' || g.ranks || ']') THEN '[' || g.ranks || ']' ELSE '[]' END) m"
        " WHERE m.value NOT IN (SELECT rank FROM processes WHERE rank IS NOT NULL)"
        " AND EXISTS (SELECT 1 FROM processes WHERE rank >= 0)"
        " AND NOT (SELECT count(*) = 1 AND max(tool) = '" MSTX_TOOL_KINETO "' FROM processes)"
        " ORDER BY 1",
        err));
    enum ms_rc rc = list_ranks(st, ranks, sizeof ranks, &n, &first, err);
    ms_stmt_free(st);
    if (rc != MS_OK || n == 0)
        return rc;
    struct mstx_finding *f =
        mstx__finding_add(&r->findings, "absent", &mstx_say_absent, MSTX_WARNING_FINDING,
                          n == 1 ? first : -1, (double)n);
    if (f == NULL)
        return ms_no_memory(err);
    ms_message_str(&f->message, "ranks", ms_str_of(ranks));
    ms_message_i64(&f->message, "count", n);
    if (n > RANKS_SHOWN)
        ms_message_i64(&f->message, "more", n - RANKS_SHOWN);
    return MS_OK;
}

static enum ms_rc take_conclusion(struct mstx_tl *tl, struct conclusions *r, struct ms_stmt *st,
                                  struct ms_err *err)
{
    const char *kind = mstx__finding_kind(ms_stmt_get_str(st, 0));
    const int32_t rank = ms_stmt_is_null(st, 2) ? -1 : (int32_t)ms_stmt_get_i64(st, 2);
    if (kind == NULL || !mstx__finding_is_of_cluster(kind))
        return MS_OK;
    const bool accuses = strcmp(kind, "straggler") == 0 || strcmp(kind, "fail_slow") == 0;
    if (accuses && !mstx__waiting_confirms(&r->waiting, rank))
        return MS_OK;
    struct mstx_finding *f = mstx__finding_add(
        &r->findings, kind, &mstx_say_sentence,
        ms_str_is(ms_stmt_get_str(st, 1), "error") ? MSTX_ERROR_FINDING : MSTX_WARNING_FINDING,
        rank, ms_stmt_get_f64(st, 5));
    if (f == NULL)
        return ms_no_memory(err);
    f->first_step = ms_stmt_is_null(st, 3) ? -1 : ms_stmt_get_i64(st, 3);
    f->last_step = ms_stmt_is_null(st, 4) ? -1 : ms_stmt_get_i64(st, 4);
    f->from_ns = ms_stmt_get_i64(st, 7);
    f->to_ns = ms_stmt_get_i64(st, 8) > f->from_ns ? ms_stmt_get_i64(st, 8) : f->from_ns;
    mstx__finding_set_message(
        f, (struct ms_stored_message){ms_stmt_get_str(st, 9), ms_stmt_get_str(st, 10)},
        ms_stmt_get_str(st, 6));
    return mstx__judge_open(tl, f, r->missing_after_ns, err);
}

/* Turns the conclusions that the import stored into findings; databases of older versions have
 * none. */
static enum ms_rc find_conclusions(struct mstx_tl *tl, struct conclusions *r, struct ms_err *err)
{
    struct ms_stmt *st;
    if (ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT kind, severity, rank, first_step, last_step, value, text,"
                         " ifnull(at_ns, 0), ifnull((SELECT min(s.end_ns) FROM rank_steps s"
                         " WHERE s.rank = c.rank AND s.step = c.first_step AND"
                         " s.start_ns >= c.at_ns), 0), message, args"
                         " FROM conclusions c ORDER BY rowid LIMIT 1000",
                         NULL) != MS_OK)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = take_conclusion(tl, r, st, err);
    ms_stmt_free(st);
    return rc;
}

/* ---- slow steps ------------------------------------------------------------- */

/* A step is slow from this multiple of the median of all steps on. */
static const double SLOW_STEP = 1.5;

static int by_number(const void *pa, const void *pb)
{
    const uint32_t *a = pa, *b = pb;
    return MS_ORDER(*a, *b, 0);
}

/* Adds how many other steps are slow, and the numbers of all slow steps, which are sorted, as "3, 7-9, 12";
 * of many only the first ones. */
static void put_other_steps(struct ms_message *m, const uint32_t *number, size_t n)
{
    struct ms_buf text = {.max = 120};
    int64_t others = 0;
    for (size_t i = 0, last; i < n; i = last + 1) {
        const char *between = text.n != 0 ? ", " : "";
        for (last = i; last + 1 < n && number[last + 1] - number[last] <= 1;)
            last++;
        others += number[last] - number[i] + 1;
        if (text.n + 28 > text.max)
            continue;
        ms_buf_printf(&text, "%s%" PRIu32, between, number[i]);
        if (number[last] != number[i])
            ms_buf_printf(&text, "-%" PRIu32, number[last]);
        if (text.n + 28 > text.max)
            ms_buf_puts(&text, ", ...");
    }
    if (others > 1) {
        ms_message_i64(m, "others", others - 1);
        ms_message_str(m, "steps", ms_buf_slice(&text));
    }
    ms_buf_free(&text);
}

static enum ms_rc add_slow_step(struct mstx_tl *tl, struct conclusions *r,
                                const struct mstx_step *s, const uint32_t *number, size_t n,
                                struct ms_err *err)
{
    const struct mstx_process *p = mstx_tl_process(tl, s->process);
    const double times = (double)(s->end_ns - s->start_ns) / (double)r->step_median_ns;
    struct mstx_finding *f = mstx__finding_add(&r->findings, "slow_step", &mstx_say_slow_step,
                                               MSTX_WARNING_FINDING, p->rank, times);
    if (f == NULL)
        return ms_no_memory(err);
    f->first_step = f->last_step = s->number;
    mstx__message_process(&f->message, p->rank, p->pid, p->name);
    ms_message_i64(&f->message, "step", s->number);
    ms_message_i64(&f->message, "dur_ns", s->end_ns - s->start_ns);
    ms_message_f64(&f->message, "times", times);
    put_other_steps(&f->message, number, n);
    return MS_OK;
}

/* Adds one finding about all slow steps: the slowest one, and the numbers of the slow ones. */
static enum ms_rc find_slow_steps(struct mstx_tl *tl, struct conclusions *r, struct ms_err *err)
{
    const struct mstx_step *slowest = NULL;
    size_t n = 0;
    MS_TRY(mstx__steps_median(&r->steps, &r->step_median_ns, err));
    if (r->steps.list.n < 4 || r->step_median_ns <= 0)
        return MS_OK;
    uint32_t *number = ms_calloc(r->steps.list.n, sizeof *number);
    if (number == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < r->steps.list.n; i++) {
        const struct mstx_step *s = &r->steps.list.p[i];
        if ((double)(s->end_ns - s->start_ns) <= SLOW_STEP * (double)r->step_median_ns)
            continue;
        number[n++] = s->number;
        if (slowest == NULL || s->end_ns - s->start_ns > slowest->end_ns - slowest->start_ns)
            slowest = s;
    }
    qsort(number, n, sizeof *number, by_number);
    const enum ms_rc rc = slowest != NULL ? add_slow_step(tl, r, slowest, number, n, err) : MS_OK;
    ms_free(number);
    return rc;
}

/* ---- all findings ----------------------------------------------------------- */

static enum ms_rc find_all(struct mstx_tl *tl, struct conclusions *r, struct ms_err *err)
{
    MS_TRY(mstx_steps_find(tl, &r->steps, err));
    MS_TRY(find_in_processes(tl, r, err));
    MS_TRY(mstx__find_hangs(tl, &r->findings, err));
    MS_TRY(mstx__find_waiting(tl, &r->steps, r->missing_after_ns, &r->waiting, &r->spans,
                              &r->findings, err));
    MS_TRY(mstx__find_waiting_stage(tl, &r->spans, &r->findings, err));
    MS_TRY(find_conclusions(tl, r, err));
    MS_TRY(mstx__find_slow_connections(tl, &r->findings, err));
    MS_TRY(mstx__find_balance(&r->waiting, &r->findings, err));
    MS_TRY(find_problems(tl, r, err));
    MS_TRY(find_absent(tl, r, err));
    MS_TRY(find_slow_steps(tl, r, err));
    mstx__findings_sort(&r->findings);
    return mstx__tl_check(tl, err); /* names of steps are texts */
}

static enum ms_rc put_steps(const struct mstx_steps *steps, struct ms_bulk *to, struct ms_err *err)
{
    for (size_t i = 0; i < steps->list.n; i++) {
        const struct mstx_step *p = &steps->list.p[i];
        const int64_t column[] = {p->process + 1, p->number, p->name, p->start_ns, p->end_ns};
        MS_TRY(ms_bulk_row(to, column, err));
    }
    return ms_bulk_flush(to, err);
}

static enum ms_rc save_steps(const struct mstx_steps *steps, struct ms_store *s, struct ms_err *err)
{
    struct ms_bulk *to;
    MS_TRY(ms_bulk_new(&to, s, "INSERT OR REPLACE INTO steps VALUES",
                       "(?,?,(SELECT value FROM strings WHERE id = ?),?,?)", 5, err));
    enum ms_rc rc = put_steps(steps, to, err);
    ms_bulk_free(to);
    return rc;
}

static enum ms_rc save_number(struct ms_store *s, const char *key, double value, struct ms_err *err)
{
    char sql[128];
    snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES('%s', '%.15g')", key, value);
    return ms_store_exec(s, sql, err);
}

/* Saves the limit for missing ranks when it is not the default, for the next import. */
static enum ms_rc save_limit(int64_t limit_ns, struct ms_store *s, struct ms_err *err)
{
    if (limit_ns == MSTX_MISSING_AFTER_S * INT64_C(1000000000))
        return MS_OK;
    return save_number(s, "missing_after", (double)limit_ns / 1e9, err);
}

/* Returns how many numbers the steps of all processes have; SIZE_MAX: out of memory. */
static size_t count_numbers(const struct mstx_steps *steps)
{
    const size_t n = steps->list.n;
    size_t found = n != 0;
    uint32_t *number = ms_alloc(n * sizeof *number);
    if (number == NULL)
        return SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        number[i] = steps->list.p[i].number;
    qsort(number, n, sizeof *number, by_number);
    for (size_t i = 1; i < n; i++)
        found += number[i] != number[i - 1];
    ms_free(number);
    return found;
}

/* Saves what the page says of the steps of all processes, which a run of 4,096 ranks has 600,000 of. */
static enum ms_rc save_step_facts(const struct conclusions *r, struct ms_store *s,
                                  struct ms_err *err)
{
    if (r->steps.list.n == 0)
        return MS_OK;
    const size_t numbers = count_numbers(&r->steps);
    if (numbers == SIZE_MAX)
        return ms_no_memory(err);
    MS_TRY(save_number(s, "steps", (double)numbers, err));
    return save_number(s, "step_median_ns", (double)r->step_median_ns, err);
}

/* Saves without a journal: the database still has a temporary name, so neither a rollback nor a
 * crash of the machine matters, and an interrupted import leaves no journal file. */
static enum ms_rc save_all(const struct conclusions *r, const char *db, struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_edit(&s, db, err));
    enum ms_rc rc =
        ms_store_exec(s,
                      "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN;"
                      " DELETE FROM steps; DELETE FROM findings;"
                      " DELETE FROM rank_comm; DELETE FROM rank_pairs;"
                      " DELETE FROM call_sizes; DELETE FROM rank_use;"
                      " CREATE TABLE IF NOT EXISTS " MSTX_SPANS_TABLE "; DELETE FROM packed_spans",
                      err);
    if (rc == MS_OK)
        rc = save_limit(r->missing_after_ns, s, err);
    if (rc == MS_OK)
        rc = save_step_facts(r, s, err);
    if (rc == MS_OK)
        rc = save_steps(&r->steps, s, err);
    if (rc == MS_OK)
        rc = mstx__findings_save(&r->findings, s, err);
    if (rc == MS_OK)
        rc = mstx__replay_save(&r->spans, s, err);
    if (rc == MS_OK)
        rc = mstx__rank_sums_save(r->sums, s, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, "COMMIT", err);
    ms_store_close(s);
    return rc;
}

enum ms_rc mstx__conclude(const char *db, int64_t missing_after_ns, struct ms_err *err)
{
    struct mstx_tl *tl;
    struct conclusions r = {.missing_after_ns = missing_after_ns, .spans = {.db = db}};
    MS_TRY(mstx_tl_open(&tl, db, err));
    /* inside a transaction the file is locked once, not for every query */
    enum ms_rc rc = ms_store_exec(mstx_tl_store(tl), "BEGIN", err);
    if (rc == MS_OK)
        rc = find_all(tl, &r, err);
    if (rc == MS_OK)
        rc = mstx__rank_sums_make(&r.sums, tl, err);
    mstx_tl_close(tl);
    if (rc == MS_OK)
        rc = save_all(&r, db, err);
    mstx_steps_free(&r.steps);
    mstx__waiting_free(&r.waiting);
    mstx__replay_free(&r.spans);
    ms_vec_free(&r.findings);
    mstx__rank_sums_free(r.sums);
    return rc;
}
