/* SPDX-License-Identifier: MIT
 *
 * step_times: computes the parts of each step, by rank and by stage of a pipeline (the maximum over
 * its ranks); the place of each rank in the parallel layout and its host; the parts of each step
 * beside those of another run.
 *
 * Ranks that share a collective group are in one stage.  Groups with two ranks of one pipeline,
 * such as the whole world, are ignored for this.
 *
 * The transfer time of an operation is the shortest duration over its ranks; the rest of each
 * rank's duration is waiting.  Copies count as free time only while nothing else runs.
 */
#include "mstx/official/step_times.h"

#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/comm_tables.h"

#include "mstx/official/sql/step_times.h"
#include "mstx/official/step_waits.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <stdlib.h>

enum { RANK_MAX = 1 << 22 };

/* ---- stages ------------------------------------------------------------------------------- */

struct sets {
    MS_VEC(int32_t) of;    /* union-find: parent of each rank, towards the first rank of the set */
    MS_VEC(int32_t) group; /* ranks of the current group */
};

static int32_t first_of(struct sets *s, int32_t rank)
{
    ms_assert(rank >= 0 && (size_t)rank < s->of.n);
    while (s->of.p[rank] != rank)
        rank = s->of.p[rank] = s->of.p[s->of.p[rank]];
    return rank;
}

static void join_sets(struct sets *s, int32_t a, int32_t b)
{
    a = first_of(s, a);
    b = first_of(s, b);
    s->of.p[a < b ? b : a] = a < b ? a : b;
}

static bool add_up_to(struct sets *s, int32_t rank)
{
    ms_assert(rank >= 0);
    while (s->of.n <= (size_t)rank) {
        int32_t *slot = ms_vec_push(&s->of);
        if (slot == NULL)
            return false;
        *slot = (int32_t)s->of.n - 1;
    }
    return true;
}

/* Reads the ranks of a group from "(0,4)"; skips parts that are not numbers. */
static bool read_group(struct sets *s, struct ms_str text)
{
    struct ms_str rest = text.n > 2 ? ms_str_sub(text, 1, text.n - 1) : MS_STR_NONE, part;
    uint64_t rank;
    s->group.n = 0;
    while (ms_str_split(&rest, ',', &part)) {
        if (!ms_str_u64(part, &rank) || rank >= RANK_MAX)
            continue;
        int32_t *slot = ms_vec_push(&s->group);
        if (slot == NULL)
            return false;
        *slot = (int32_t)rank;
    }
    return true;
}

typedef bool (*group_fn)(struct sets *to, const struct sets *pipelines);

static enum ms_rc each_group(struct ms_store *s, const char *sql, struct sets *to,
                             const struct sets *pipelines, group_fn fn, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        if (!read_group(to, ms_stmt_get_str(st, 0)) || !fn(to, pipelines))
            rc = ms_no_memory(err);
    }
    ms_stmt_free(st);
    return rc;
}

static bool join_all(struct sets *to, const struct sets *pipelines)
{
    (void)pipelines;
    for (size_t i = 0; i < to->group.n; i++) {
        if (!add_up_to(to, to->group.p[i]))
            return false;
        join_sets(to, to->group.p[0], to->group.p[i]);
    }
    return true;
}

static int by_number(const void *pa, const void *pb)
{
    const int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    return a < b ? -1 : a > b;
}

/* Tells whether the group has two ranks of one pipeline. */
static bool spans_stages(struct sets *s, const struct sets *pipelines, bool *spans)
{
    MS_VEC(int32_t) seen = {0};
    bool ok = true;
    for (size_t i = 0; i < s->group.n && ok; i++) {
        if ((size_t)s->group.p[i] >= pipelines->of.n)
            continue;
        int32_t *slot = ms_vec_push(&seen);
        ok = slot != NULL;
        if (ok) {
            int32_t rank = s->group.p[i];
            while (pipelines->of.p[rank] != rank)
                rank = pipelines->of.p[rank];
            *slot = rank;
        }
    }
    if (seen.n > 1)
        qsort(seen.p, seen.n, sizeof *seen.p, by_number);
    *spans = false;
    for (size_t i = 1; i < seen.n && ok; i++)
        *spans = *spans || seen.p[i] == seen.p[i - 1];
    ms_vec_free(&seen);
    return ok;
}

static bool join_within_stage(struct sets *to, const struct sets *pipelines)
{
    bool spans;
    if (!spans_stages(to, pipelines, &spans))
        return false;
    return spans || join_all(to, pipelines);
}

/* Adds the ranks in any group of the first table to the second. */
static enum ms_rc write_stages(struct ms_store *s, struct sets *stages, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql_add_stage, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < stages->of.n && rc == MS_OK; i++) {
        ms_stmt_i64(st, 1, (int64_t)i);
        ms_stmt_i64(st, 2, first_of(stages, (int32_t)i));
        rc = ms_stmt_run(st, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc find_stages(struct ms_store *s, struct ms_err *err)
{
    struct sets pipelines = {0}, stages = {0};
    enum ms_rc rc = each_group(s, sql_find_pipelines, &pipelines, NULL, join_all, err);
    if (rc == MS_OK && pipelines.of.n != 0)
        rc = each_group(s, sql_find_collectives, &stages, &pipelines, join_within_stage, err);
    if (rc == MS_OK)
        rc = write_stages(s, &stages, err);
    ms_vec_free(&pipelines.of);
    ms_vec_free(&pipelines.group);
    ms_vec_free(&stages.of);
    ms_vec_free(&stages.group);
    return rc;
}

/* ---- steps ------------------------------------------------------------------------------------ */

#define TIMES                                                                                      \
    "computing, communication_not_overlapped, overlapped, communication, free, stage, bubble,"     \
    " communication_not_overlapped_and_exclude_receive, preparing"

static const struct mstx_rank_query trace_rows[] = {
    {.into = "TraceRows",
     .columns = "rank INTEGER, step TEXT, " TIMES,
     .analysis = true,
     .optional = true,
     .direct = MSTX_READ_STEP_PARTS,
     .needs = "StepTraceTime",
     .sql = sql_read_traces},
    {.into = "Arguments",
     .columns = "rank INTEGER, value",
     .optional = true,
     .no_run = true, /* a run does not know the layout */
     .needs = "META_DATA",
     .sql = sql_read_arguments},
};

/* ---- hosts ------------------------------------------------------------------------------------ */

static const struct mstx_rank_query hosts = {
    .into = "Hosts",
    .columns = "rank INTEGER, rankId INTEGER, deviceId INTEGER, hostUid TEXT, hostName TEXT",
    .optional = true,
    .direct = MSTX_READ_HOST,
    .needs = "HOST_INFO RANK_DEVICE_MAP",
    .sql = sql_read_hosts};

/* Returns the directory of the profiler, which contains its output directory. */
static struct ms_str profile_of(const struct mstx_rank_files *f)
{
    const struct ms_str base = ms_path_base(f->dir);
    return ms_str_is(base, "ASCEND_PROFILER_OUTPUT") ? ms_path_dir(f->dir) : ms_str_of(f->dir);
}

static enum ms_rc add_dirs(struct mstx_recipe *r, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_exec(r->s, sql_make_dirs, err));
    MS_TRY(ms_store_prepare(r->s, &st, sql_add_dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->files.ranks.n && rc == MS_OK; i++) {
        ms_stmt_i64(st, 1, r->files.ranks.p[i].rank);
        ms_stmt_str(st, 2, profile_of(&r->files.ranks.p[i]));
        rc = ms_stmt_run(st, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_hosts(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, &hosts, 1, err));
    MS_TRY(add_dirs(r, err));
    return ms_store_exec(r->s, sql_write_hosts, err);
}

static enum ms_rc has_layout(struct ms_store *s, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql_has_layout, err));
    enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__write_step_tables(struct ms_store *s, bool *layout, struct ms_err *err)
{
    MS_TRY(ms_store_exec(s, sql_make_stages, err));
    MS_TRY(find_stages(s, err));
    MS_TRY(ms_store_exec(s, sql_find_layout, err));
    MS_TRY(has_layout(s, layout, err));
    return ms_store_exec(s, sql_write_step_traces, err);
}

enum ms_rc mstx__trace_steps(struct mstx_recipe *r, struct ms_err *err)
{
    bool layout;
    MS_TRY(mstx__map_groups(r, err));
    MS_TRY(mstx__recipe_read_rows(r, trace_rows, 2, err));
    MS_TRY(mstx__write_step_tables(r->s, &layout, err));
    return write_hosts(r, err);
}

/* ---- input ---------------------------------------------------------------------------------- */

static const struct mstx_rank_query summary_rows[] = {
    {.into = "StepTimes",
     .columns = "rank INTEGER, step INTEGER, time REAL",
     .direct = MSTX_READ_STEP_TIMES,
     .sql = sql_read_step_times},
    {.into = "StepTraces",
     .columns = "rank INTEGER, step INTEGER, computing REAL, exposed REAL, overlapped REAL,"
                " communication REAL, free REAL",
     .analysis = true,
     .direct = MSTX_READ_STEP_PARTS,
     .needs = "StepTraceTime",
     .sql = sql_read_step_traces},
    {.into = "Busy", /* kernels 0, communication 1, copies 4; a run has no copies */
     .columns = "rank INTEGER, start INTEGER, end INTEGER, type INTEGER, step INTEGER",
     .optional = true,
     .no_run = true,
     .needs = "TASK",
     .sql = sql_read_busy},
};

/* ---- copies that are not overlapped --------------------------------------------------------------- */

enum { NOTHING = -1, COPY = 4 };

/* Sweep over the busy intervals of one rank and step in order of start: [start, end) is the part
 * of the newest interval that has not been counted. */
struct sweep {
    int64_t rank, step, start, end, bare;
    int type;
    bool any;
};

static void account_until(struct sweep *w, int64_t until)
{
    ms_assert(w->any);
    if (w->type == COPY && w->start < until)
        w->bare += until - w->start;
}

static void add_interval(struct sweep *w, int64_t start, int64_t end, int type)
{
    account_until(w, start > w->end ? w->end : start);
    if (start > w->end) {
        w->start = start;
        w->end = end;
        w->type = type;
    } else if (end > w->end) {
        w->start = w->end;
        w->end = end;
        w->type = type;
    } else {
        w->start = end;
    }
}

static enum ms_rc finish_sweep(struct sweep *w, struct ms_stmt *add, struct ms_err *err)
{
    if (!w->any)
        return MS_OK;
    if (w->type == COPY)
        w->bare += w->end - w->start;
    ms_stmt_i64(add, 1, w->rank);
    ms_stmt_i64(add, 2, w->step);
    ms_stmt_f64(add, 3, (double)w->bare / 1000);
    return ms_stmt_run(add, err);
}

static enum ms_rc read_busy(struct sweep *w, struct ms_stmt *st, struct ms_stmt *add,
                            struct ms_err *err)
{
    const int64_t rank = ms_stmt_get_i64(st, 0), start = ms_stmt_get_i64(st, 1);
    const int64_t step = ms_stmt_get_i64(st, 4);
    if (!w->any || rank != w->rank || step != w->step) {
        MS_TRY(finish_sweep(w, add, err));
        *w = (struct sweep){rank, step, start, start, 0, NOTHING, true};
    }
    add_interval(w, start, ms_stmt_get_i64(st, 2), (int)ms_stmt_get_i64(st, 3));
    return MS_OK;
}

static enum ms_rc sweep_all(struct ms_store *s, struct ms_stmt *st, struct ms_stmt *add,
                            struct ms_err *err)
{
    struct sweep w = {0};
    (void)s;
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = read_busy(&w, st, add, err);
    return rc == MS_OK ? finish_sweep(&w, add, err) : rc;
}

static enum ms_rc find_bare_copies(struct ms_store *s, struct ms_err *err)
{
    struct ms_stmt *st = NULL, *add = NULL;
    MS_TRY(ms_store_exec(s, sql_make_bare_copies, err));
    enum ms_rc rc = ms_store_prepare(s, &st, sql_find_busy, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(s, &add, sql_add_bare_copy, err);
    if (rc == MS_OK)
        rc = sweep_all(s, st, add, err);
    ms_stmt_free(st);
    ms_stmt_free(add);
    return rc;
}

/* ---- the summary ----------------------------------------------------------------------------------- */

enum ms_rc mstx__summarize_time(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__map_groups(r, err));
    MS_TRY(
        mstx__recipe_read_rows(r, summary_rows, sizeof summary_rows / sizeof *summary_rows, err));
    MS_TRY(ms_store_exec_i64(r->s, sql_make_rule, &r->step, 1, err));
    MS_TRY(find_bare_copies(r->s, err));
    MS_TRY(ms_store_exec(r->s, sql_find_copies, err));
    MS_TRY(mstx__find_step_waits(r, err));
    return ms_store_exec(r->s, sql_write_summary, err);
}

/* ---- two summaries ----------------------------------------------------------------------------------- */

/* Columns of ClusterTimeSummary except rank and step. */
enum { TIME_COLUMNS = 10 };

static enum ms_rc copy_base_row(struct ms_stmt *st, struct ms_stmt *add, struct ms_err *err)
{
    for (int i = 0; i < TIME_COLUMNS + 2; i++)
        ms_stmt_f64(add, i + 1, ms_stmt_get_f64(st, i));
    return ms_stmt_run(add, err);
}

static enum ms_rc copy_base(struct ms_store *from, struct ms_store *to, struct ms_err *err)
{
    struct ms_stmt *st = NULL, *add = NULL;
    enum ms_rc rc = ms_store_prepare(from, &st, sql_find_base, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(to, &add, sql_add_base, err);
    while (ms_stmt_next(st, &rc, err))
        rc = copy_base_row(st, add, err);
    ms_stmt_free(st);
    ms_stmt_free(add);
    return rc;
}

static enum ms_rc read_base(struct mstx_recipe *r, struct ms_err *err)
{
    struct ms_store *base = NULL;
    bool has = false;
    char *dir = ms_path_join(r->base, MSTX_ANALYSIS_DIR);
    char *path = dir != NULL ? ms_path_join(dir, MSTX_ANALYSIS_DB) : NULL;
    enum ms_rc rc = path != NULL ? ms_store_open(&base, path, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        rc = mstx__has_table(base, "ClusterTimeSummary", &has, err);
        if (rc == MS_OK && !has)
            rc = ms_fail(err, MS_E_NOTFOUND, "%s: has no table ClusterTimeSummary", path);
        if (rc == MS_OK)
            rc = copy_base(base, r->s, err);
        ms_store_close(base);
    }
    if (rc != MS_OK)
        ms_err_hint(err, "make it with: msprobe cluster -m cluster_time_summary -d %s", r->base);
    ms_free(dir);
    ms_free(path);
    return rc;
}

enum ms_rc mstx__compare_time(struct mstx_recipe *r, struct ms_err *err)
{
    if (r->base == NULL)
        return ms_fail(err, MS_E_ARG, "--bp names the directory to compare with");
    MS_TRY(ms_store_exec(r->s, sql_make_base, err));
    MS_TRY(read_base(r, err)); /* first, as it may not be there */
    MS_TRY(mstx__summarize_time(r, err));
    return ms_store_exec_i64(r->s, sql_write_comparison, &r->step, 1, err);
}
