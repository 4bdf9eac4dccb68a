/* SPDX-License-Identifier: MIT
 *
 * tl_report: steps and findings of a run, made and kept.
 */
#include "mstx/tl_report.h"

#include "mstx/tl_export.h"

#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/store_bulk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOW_STEPS_MAX = 10 };

const char *mstx_severity_text(enum mstx_severity s)
{
    static const char *const text[] = {"info", "warning", "error"};
    return text[s];
}

/* ---- findings --------------------------------------------------------------- */

struct mstx_finding *mstx__finding_add(struct mstx_report *r, const char *kind,
                                       enum mstx_severity severity, int32_t rank, double value)
{
    struct mstx_finding *f = ms_vec_push(&r->findings);
    if (f != NULL)
        *f = (struct mstx_finding){.kind = kind,
                                   .severity = severity,
                                   .rank = rank,
                                   .first_step = -1,
                                   .last_step = -1,
                                   .value = value};
    return f;
}

enum { NAME_SHOWN = 32 };

void mstx__put_who(char out[MSTX_WHO_MAX], int32_t rank, int64_t pid, struct ms_str name)
{
    struct ms_str shown = ms_str_sub(name, 0, name.n < NAME_SHOWN ? name.n : NAME_SHOWN);
    if (rank >= 0)
        snprintf(out, MSTX_WHO_MAX, "rank %" PRId32 " (process %" PRId64 ")", rank, pid);
    else if (name.n != 0)
        snprintf(out, MSTX_WHO_MAX, "%.*s (process %" PRId64 ")", MS_STR_ARG(shown), pid);
    else
        snprintf(out, MSTX_WHO_MAX, "process %" PRId64, pid);
}

static enum ms_rc find_in_process(struct mstx_report *r, struct ms_stmt *st, struct ms_err *err)
{
    char who[MSTX_WHO_MAX];
    int32_t rank = (int32_t)ms_stmt_get_i64(st, 0);
    int64_t dropped = ms_stmt_get_i64(st, 2), unfinished = ms_stmt_get_i64(st, 3);
    int64_t cost = ms_stmt_get_i64(st, 5), time = ms_stmt_get_i64(st, 6);
    struct mstx_finding *f = NULL;
    mstx__put_who(who, rank, ms_stmt_get_i64(st, 1), ms_stmt_get_str(st, 7));
    if (dropped > 0) {
        f = mstx__finding_add(r, "drop", MSTX_WARNING_FINDING, rank, (double)dropped);
        if (f == NULL)
            return ms_no_memory(err);
        snprintf(f->text, sizeof f->text,
                 "%s lost %" PRId64 " record%s while recording; figures of it are too low", who,
                 dropped, dropped == 1 ? "" : "s");
    }
    if (unfinished > 0) {
        f = mstx__finding_add(r, "unfinished", MSTX_INFO_FINDING, rank, (double)unfinished);
        if (f == NULL)
            return ms_no_memory(err);
        snprintf(f->text, sizeof f->text, "%s has %" PRId64 " range%s that never ended", who,
                 unfinished, unfinished == 1 ? "" : "s");
    }
    /* Nothing runs in a process that is killed, and nothing when it leaves by _exit, as the workers
     * of Python's multiprocessing do: those are not worth a warning. */
    if (ms_str_is(ms_stmt_get_str(st, 4), "killed")) {
        bool is_worker = ms_stmt_get_i64(st, 8) != 0;
        f = mstx__finding_add(r, "killed", is_worker ? MSTX_INFO_FINDING : MSTX_WARNING_FINDING,
                              rank, 1);
        if (f == NULL)
            return ms_no_memory(err);
        snprintf(f->text, sizeof f->text,
                 "%s did not close its capture: it was killed, crashed, or left by _exit", who);
    }
    if (time > 0 && cost > 0) {
        r->cost_ns += cost;
        r->costed_ns += time;
    }
    if (time > 0 && (double)cost > 0.01 * (double)time) {
        f = mstx__finding_add(r, "overhead", MSTX_WARNING_FINDING, rank,
                              (double)cost / (double)time);
        if (f == NULL)
            return ms_no_memory(err);
        snprintf(f->text, sizeof f->text,
                 "recording took about %.1f %% of the time of %s; exclude a domain to get less",
                 100 * (double)cost / (double)time, who);
    }
    return MS_OK;
}

static enum ms_rc find_in_processes(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT rank, pid, dropped, unfinished, state, cost_ns,"
                            " end_ns - start_ns, name, EXISTS(SELECT 1 FROM processes q"
                            " WHERE q.pid = p.ppid AND q.host = p.host)"
                            " FROM processes p ORDER BY id",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = find_in_process(r, st, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc find_problems(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT file, text, (SELECT count(*) FROM problems) FROM problems"
                            " LIMIT 20",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        struct mstx_finding *f = mstx__finding_add(r, "problem", MSTX_WARNING_FINDING, -1,
                                                   (double)ms_stmt_get_i64(st, 2));
        if (f == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        struct ms_str file = ms_stmt_get_str(st, 0), text = ms_stmt_get_str(st, 1);
        bool has_place = file.n != 0 && !ms_str_starts(text, file);
        snprintf(f->text, sizeof f->text, "%.*s%s%.*s", has_place ? (int)file.n : 0,
                 has_place ? file.p : "", has_place ? ": " : "", MS_STR_ARG(text));
        rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- all ranks together ------------------------------------------------------ */

/* Kinds are borrowed by findings. */
static const char *const cluster_kinds[] = {"mismatch", "hang", "straggler", "fail_slow",
                                            "slow_link"};

/* The place of a kind among those of all ranks together, behind which the others come. */
static size_t kind_order(const char *kind)
{
    const size_t n = sizeof cluster_kinds / sizeof *cluster_kinds;
    size_t i = 0;
    while (i < n && strcmp(cluster_kinds[i], kind) != 0)
        i++;
    return i;
}

/* A link as viz/model/place.h reads it. */
static void put_place(struct mstx_finding *f, int64_t at_ns, int64_t end_ns)
{
    const int64_t around = 1000000;
    char rank[32] = "", step[32] = "";
    if (f->rank >= 0)
        snprintf(rank, sizeof rank, "rank=%" PRId32 "&", f->rank);
    if (f->first_step >= 0)
        snprintf(step, sizeof step, "step=%" PRId64 "&", f->first_step);
    if (at_ns == 0 && f->rank >= 0)
        snprintf(f->place, sizeof f->place, "cluster?rank=%" PRId32, f->rank);
    else if (at_ns == 0)
        snprintf(f->place, sizeof f->place, "cluster");
    else
        snprintf(f->place, sizeof f->place, "timeline?%s%sfrom=%" PRId64 "&to=%" PRId64, step, rank,
                 at_ns - around, (end_ns > at_ns ? end_ns : at_ns) + around);
}

static void put_evidence(struct mstx_finding *f)
{
    char *to = f->evidence;
    const size_t n = sizeof f->evidence;
    if (f->first_step >= 0 && f->rank >= 0)
        snprintf(to, n,
                 "SELECT * FROM rank_steps WHERE step BETWEEN %" PRId64 " AND %" PRId64
                 " ORDER BY step, rank = %" PRId32 " DESC",
                 f->first_step, f->last_step, f->rank);
    else if (strcmp(f->kind, "mismatch") == 0)
        snprintf(to, n, "SELECT * FROM joins WHERE agrees = 0");
    else if (strcmp(f->kind, "hang") == 0 || strcmp(f->kind, "absent") == 0)
        snprintf(to, n, "SELECT * FROM joins WHERE missing > 0");
    else if (strcmp(f->kind, "slow_link") == 0)
        snprintf(to, n, "SELECT * FROM links ORDER BY z DESC");
}

/* "5, 7 and 3 more" of the ranks that the question gives; how many they are. */
static enum ms_rc put_ranks(struct ms_stmt *st, char *to, size_t room, int64_t *ranks,
                            int32_t *first, struct ms_err *err)
{
    enum { SHOWN = 8 };
    size_t n = 0;
    bool more;
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    for (*ranks = 0; rc == MS_OK && more; ++*ranks) {
        const int32_t rank = (int32_t)ms_stmt_get_i64(st, 0);
        if (*ranks == 0)
            *first = rank;
        if (*ranks < SHOWN)
            n += (size_t)snprintf(to + n, room - n, "%s%" PRId32, *ranks != 0 ? ", " : "", rank);
        rc = ms_stmt_step(st, &more, err);
    }
    if (*ranks > SHOWN)
        snprintf(to + n, room - n, " and %" PRId64 " more", *ranks - SHOWN);
    return rc;
}

/* Ranks that others name as members of their communicators and that left nothing; where no process
 * knows its rank, nothing can be said. */
static enum ms_rc find_absent(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
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
        " AND EXISTS (SELECT 1 FROM processes WHERE rank >= 0) ORDER BY 1",
        err));
    enum ms_rc rc = put_ranks(st, ranks, sizeof ranks, &n, &first, err);
    ms_stmt_free(st);
    if (rc != MS_OK || n == 0)
        return rc;
    struct mstx_finding *f =
        mstx__finding_add(r, "absent", MSTX_WARNING_FINDING, n == 1 ? first : -1, (double)n);
    if (f == NULL)
        return ms_no_memory(err);
    snprintf(f->text, sizeof f->text,
             "rank%s %s left no records, though communicators of others have %s", n == 1 ? "" : "s",
             ranks, n == 1 ? "it as a member" : "them as members");
    put_place(f, 0, 0);
    put_evidence(f);
    return MS_OK;
}

static enum ms_rc take_conclusion(struct mstx_report *r, struct ms_stmt *st, struct ms_err *err)
{
    const struct ms_str kind = ms_stmt_get_str(st, 0);
    for (size_t i = 0; i < sizeof cluster_kinds / sizeof *cluster_kinds; i++) {
        if (!ms_str_is(kind, cluster_kinds[i]))
            continue;
        struct mstx_finding *f = mstx__finding_add(
            r, cluster_kinds[i],
            ms_str_is(ms_stmt_get_str(st, 1), "error") ? MSTX_ERROR_FINDING : MSTX_WARNING_FINDING,
            ms_stmt_is_null(st, 2) ? -1 : (int32_t)ms_stmt_get_i64(st, 2), ms_stmt_get_f64(st, 5));
        if (f == NULL)
            return ms_no_memory(err);
        f->first_step = ms_stmt_is_null(st, 3) ? -1 : ms_stmt_get_i64(st, 3);
        f->last_step = ms_stmt_is_null(st, 4) ? -1 : ms_stmt_get_i64(st, 4);
        snprintf(f->text, sizeof f->text, "%.*s", MS_STR_ARG(ms_stmt_get_str(st, 6)));
        put_place(f, ms_stmt_get_i64(st, 7), ms_stmt_get_i64(st, 8));
        put_evidence(f);
    }
    return MS_OK;
}

/* What the import concluded; a database of an older version has nothing. */
static enum ms_rc find_conclusions(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    if (ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT kind, severity, rank, first_step, last_step, value, text,"
                         " ifnull(at_ns, 0), ifnull((SELECT min(s.end_ns) FROM rank_steps s"
                         " WHERE s.rank = c.rank AND s.step = c.first_step AND"
                         " s.start_ns >= c.at_ns), 0)"
                         " FROM conclusions c ORDER BY rowid LIMIT 1000",
                         NULL) != MS_OK)
        return MS_OK;
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = take_conclusion(r, st, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- slow steps ------------------------------------------------------------- */

static int by_value(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

static enum ms_rc find_median(struct mstx_report *r, struct ms_err *err)
{
    size_t n = r->steps.list.n;
    if (n == 0)
        return MS_OK;
    int64_t *dur = ms_calloc(n, sizeof *dur);
    if (dur == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        dur[i] = r->steps.list.p[i].end_ns - r->steps.list.p[i].start_ns;
    qsort(dur, n, sizeof *dur, by_value);
    r->step_median_ns = dur[(n - 1) / 2];
    ms_free(dur);
    return MS_OK;
}

static int slower_first(const void *pa, const void *pb)
{
    const struct mstx_finding *a = pa, *b = pb;
    return a->value > b->value ? -1 : a->value < b->value;
}

/* A step that takes half as long again as the median is slow; the slowest few are named. */
static enum ms_rc find_slow_steps(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    size_t first = r->findings.n;
    MS_TRY(find_median(r, err));
    for (size_t i = 0; i < r->steps.list.n && r->steps.list.n >= 4; i++) {
        const struct mstx_step *s = &r->steps.list.p[i];
        int64_t dur = s->end_ns - s->start_ns;
        if (dur <= r->step_median_ns + r->step_median_ns / 2 || r->step_median_ns <= 0)
            continue;
        const struct mstx_process *p = mstx_tl_process(tl, s->process);
        double times = (double)dur / (double)r->step_median_ns;
        struct mstx_finding *f =
            mstx__finding_add(r, "slow_step", MSTX_WARNING_FINDING, p->rank, times);
        if (f == NULL)
            return ms_no_memory(err);
        char who[MSTX_WHO_MAX], time[MS_HUMAN_MAX];
        mstx__put_who(who, p->rank, p->pid, p->name);
        f->first_step = f->last_step = s->number;
        snprintf(f->text, sizeof f->text,
                 "step %" PRIu32 " of %s took %s, %.1f times the median of all steps", s->number,
                 who, ms_human_time(time, dur), times);
    }
    size_t found = r->findings.n - first;
    if (found > 1)
        qsort(r->findings.p + first, found, sizeof *r->findings.p, slower_first);
    if (found > SLOW_STEPS_MAX)
        r->findings.n = first + SLOW_STEPS_MAX;
    return MS_OK;
}

static int worst_first(const void *pa, const void *pb)
{
    const struct mstx_finding *a = pa, *b = pb;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    const size_t kind_a = kind_order(a->kind), kind_b = kind_order(b->kind);
    int order = kind_a != kind_b ? (kind_a > kind_b) - (kind_a < kind_b) : strcmp(a->kind, b->kind);
    if (order != 0)
        return order;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank)
                              : strcmp(a->text, b->text);
}

const struct mstx_finding *mstx_report_headline(const struct mstx_report *r)
{
    const struct mstx_finding *f = r->findings.n != 0 ? r->findings.p : NULL;
    return f != NULL && kind_order(f->kind) < sizeof cluster_kinds / sizeof *cluster_kinds ? f
                                                                                           : NULL;
}

enum ms_rc mstx_report_make(struct mstx_tl *tl, bool with_names, struct mstx_report *r,
                            struct ms_err *err)
{
    *r = (struct mstx_report){0};
    enum ms_rc rc = mstx_steps_find(tl, &r->steps, err);
    if (rc == MS_OK)
        rc = find_in_processes(tl, r, err);
    if (rc == MS_OK)
        rc = mstx__find_hangs(tl, r, err);
    if (rc == MS_OK)
        rc = find_conclusions(tl, r, err);
    if (rc == MS_OK)
        rc = find_problems(tl, r, err);
    if (rc == MS_OK)
        rc = find_absent(tl, r, err);
    if (rc == MS_OK)
        rc = find_slow_steps(tl, r, err);
    if (rc == MS_OK && with_names)
        rc = mstx_names_measure(tl, &r->names, err);
    if (rc == MS_OK && with_names)
        rc = mstx_comm_measure(tl, &r->comms, err);
    if (rc == MS_OK && with_names)
        rc = mstx_use_measure(tl, &r->use, err);
    if (rc == MS_OK)
        rc = mstx_clocks_measure(tl, &r->clocks, err);
    if (rc == MS_OK) /* names of steps are texts */
        rc = mstx__tl_check(tl, err);
    if (r->findings.n != 0)
        qsort(r->findings.p, r->findings.n, sizeof *r->findings.p, worst_first);
    if (rc != MS_OK)
        mstx_report_free(r);
    return rc;
}

void mstx_report_free(struct mstx_report *r)
{
    mstx_steps_free(&r->steps);
    ms_vec_free(&r->findings);
    ms_vec_free(&r->names);
    mstx_comm_rows_free(&r->comms);
    mstx_use_free(&r->use);
}

/* ---- keeping ---------------------------------------------------------------- */

static enum ms_rc put_steps(const struct mstx_report *r, struct ms_bulk *to, struct ms_err *err)
{
    for (size_t i = 0; i < r->steps.list.n; i++) {
        const struct mstx_step *p = &r->steps.list.p[i];
        const int64_t column[] = {p->process + 1, p->number, p->name, p->start_ns, p->end_ns};
        MS_TRY(ms_bulk_row(to, column, err));
    }
    return ms_bulk_flush(to, err);
}

static enum ms_rc save_steps(const struct mstx_report *r, struct ms_store *s, struct ms_err *err)
{
    struct ms_bulk *to;
    MS_TRY(ms_bulk_new(&to, s, "INSERT OR REPLACE INTO steps VALUES",
                       "(?,?,(SELECT value FROM strings WHERE id = ?),?,?)", 5, err));
    enum ms_rc rc = put_steps(r, to, err);
    ms_bulk_free(to);
    return rc;
}

static void bind_if(struct ms_stmt *st, int i, int64_t v)
{
    if (v >= 0)
        ms_stmt_i64(st, i, v);
    else
        ms_stmt_null(st, i);
}

static enum ms_rc save_findings(const struct mstx_report *r, struct ms_store *s, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st,
                            "INSERT INTO findings(kind, severity, ranks, first_step, last_step,"
                            " value, text, place) VALUES(?,?,?,?,?,?,?,?)",
                            err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->findings.n && rc == MS_OK; i++) {
        const struct mstx_finding *f = &r->findings.p[i];
        ms_stmt_str(st, 1, ms_str_of(f->kind));
        ms_stmt_str(st, 2, ms_str_of(mstx_severity_text(f->severity)));
        bind_if(st, 3, f->rank);
        bind_if(st, 4, f->first_step);
        bind_if(st, 5, f->last_step);
        ms_stmt_f64(st, 6, f->value);
        ms_stmt_str(st, 7, ms_str_of(f->text));
        ms_stmt_null(st, 8);
        if (f->place[0] != '\0')
            ms_stmt_str(st, 8, ms_str_of(f->place));
        rc = ms_stmt_run(st, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* The database has no name of its own yet, so nothing needs to be rolled back or to outlast the
 * machine, and no journal is left behind when the import is interrupted here. */
enum ms_rc mstx_report_save(const struct mstx_report *r, const char *db, struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_edit(&s, db, err));
    enum ms_rc rc = ms_store_exec(s,
                                  "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN;"
                                  " DELETE FROM steps; DELETE FROM findings",
                                  err);
    if (rc == MS_OK)
        rc = save_steps(r, s, err);
    if (rc == MS_OK)
        rc = save_findings(r, s, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, "COMMIT", err);
    ms_store_close(s);
    return rc;
}
