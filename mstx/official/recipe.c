/* SPDX-License-Identifier: MIT
 *
 * recipe_read: rows out of the databases of all ranks, each as it stands there.
 */
#include "mstx/recipe.h"

#include "probe/base/mem.h"
#include "probe/base/store_func.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what SQL knows ---------------------------------------------------------------- */

/* HCCL's number of a text: two hashes side by side, in decimal. */
static void double_hash(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                        struct ms_value *out)
{
    uint32_t high = 0, low = 0;
    if (arg->type != MS_VALUE_TEXT)
        return;
    for (uint32_t i = 0; i < arg->s.n; i++) {
        high = high * 29 + (unsigned char)arg->s.p[i];
        low = low * 131 + (unsigned char)arg->s.p[i];
    }
    const int n = snprintf(scratch, MS_FUNCTION_SCRATCH, "%" PRIu64, (uint64_t)high << 32 | low);
    *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = {scratch, (uint32_t)n}};
}

/* hcom_send__233_58_1 -> 233 */
static void p2p_domain(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                       struct ms_value *out)
{
    static const char *const heads[] = {"hcom_send__", "hcom_Send__",    "hcom_recv__",
                                        "hcom_Recv__", "hcom_receive__", "hcom_Receive__"};
    struct ms_str rest = MS_STR_NONE, domain, number, last;
    (void)scratch;
    for (size_t i = 0; i < sizeof heads / sizeof *heads && arg->type == MS_VALUE_TEXT; i++) {
        if (ms_str_starts(arg->s, ms_str_of(heads[i])))
            rest = ms_str_sub(arg->s, (uint32_t)strlen(heads[i]), arg->s.n);
    }
    if (ms_str_split(&rest, '_', &domain) && ms_str_split(&rest, '_', &number) &&
        ms_str_split(&rest, '_', &last) && rest.p == NULL && ms_str_all_digits(domain) &&
        ms_str_all_digits(number) && ms_str_all_digits(last))
        *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = domain};
}

enum ms_rc mstx__recipe_functions(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(ms_store_add_statistics(s, err));
    MS_TRY(ms_store_add_function(s, "double_hash", 1, double_hash, err));
    return ms_store_add_function(s, "p2p_domain", 1, p2p_domain, err);
}

/* ---- tables that may be missing ------------------------------------------------------ */

static const struct {
    const char *name, *columns;
} known[] = {
    {"META_DATA", "name, value"},
    {"STRING_IDS", "id INTEGER PRIMARY KEY, value"},
    {"RANK_DEVICE_MAP", "rankId, deviceId"},
    {"HOST_INFO", "hostUid, hostName"},
    {"ENUM_HCCL_DATA_TYPE", "id INTEGER PRIMARY KEY, name"},
    {"STEP_TIME", "id, startNs, endNs"},
    {"MSTX_EVENTS", "startNs, endNs, eventType, message, globalTid, domainId, connectionId"},
    {"TASK", "startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId"},
    {"COMPUTE_TASK_INFO",
     "name, globalTaskId INTEGER PRIMARY KEY, taskType, opType, inputDataTypes,"
     " inputShapes, outputShapes"},
    {"COMMUNICATION_OP", "opName, startNs, endNs, connectionId, groupName, opId, dataType, count,"
                         " opType"},
    {"COMMUNICATION_TASK_INFO", "globalTaskId, taskType, groupName, srcRank, dstRank, opId"},
    {"COMMUNICATION_SCHEDULE_TASK_INFO",
     "name, globalTaskId INTEGER PRIMARY KEY, taskType, opType"},
    {"CANN_API", "startNs, endNs, connectionId INTEGER PRIMARY KEY, name"},
    {"PYTORCH_API", "startNs, endNs, connectionId, name"},
    {"CONNECTION_IDS", "id, connectionId"},
    {"AICORE_FREQ", "deviceId, timestampNs, freq"},
    {"CommAnalyzerTime", "hccl_op_name, group_name, start_timestamp, elapse_time, transit_time,"
                         " wait_time, synchronization_time, idle_time, step, type"},
    {"CommAnalyzerBandwidth",
     "hccl_op_name, group_name, transport_type, transit_size, transit_time,"
     " bandwidth, large_packet_ratio, package_size, count, total_duration,"
     " step, type"},
    {"CommAnalyzerMatrix", "hccl_op_name, group_name, src_rank, dst_rank, transport_type,"
                           " transit_size, transit_time, bandwidth, step, type, op_name"},
    {"StepTraceTime", "step, computing, communication_not_overlapped, overlapped, communication,"
                      " free, stage, bubble, communication_not_overlapped_and_exclude_receive,"
                      " preparing"},
};

enum ms_rc mstx__has_table(struct ms_store *s, const char *name, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(
        s, &st, "SELECT 1 FROM main.sqlite_master WHERE type IN ('table', 'view') AND name = ?",
        err));
    ms_stmt_str(st, 1, ms_str_of(name));
    enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__recipe_tables(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(mstx__recipe_functions(s, err));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char sql[512];
        bool has;
        MS_TRY(mstx__has_table(s, known[i].name, &has, err));
        if (has)
            continue;
        snprintf(sql, sizeof sql, "CREATE TEMP TABLE %s(%s)", known[i].name, known[i].columns);
        MS_TRY(ms_store_exec(s, sql, err));
    }
    return MS_OK;
}

/* ---- one rank ------------------------------------------------------------------------ */

struct source {
    struct ms_store *from;
    int64_t rank, start, end;
    bool apis, steps;
};

static enum ms_rc find_step(struct source *f, int64_t step, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    f->start = 0;
    f->end = INT64_MAX;
    if (step == MSTX_ALL_STEPS)
        return MS_OK;
    MS_TRY(
        ms_store_prepare(f->from, &st, "SELECT startNs, endNs FROM STEP_TIME WHERE id = ?", err));
    ms_stmt_i64(st, 1, step);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && !more && f->steps)
        rc = ms_fail(err, MS_E_NOTFOUND, "there is no step %" PRId64, step);
    if (rc == MS_OK && more) {
        f->start = ms_stmt_get_i64(st, 0);
        f->end = ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc open_source(struct source *f, const char *path, int64_t step, struct ms_err *err)
{
    MS_TRY(ms_store_open(&f->from, path, err));
    MS_TRY(mstx__has_table(f->from, "CANN_API", &f->apis, err));
    MS_TRY(mstx__has_table(f->from, "STEP_TIME", &f->steps, err));
    MS_TRY(mstx__recipe_tables(f->from, err));
    return find_step(f, step, err);
}

static enum ms_rc check_needs(struct ms_store *from, const char *needs, bool *all,
                              struct ms_err *err)
{
    struct ms_str rest = needs != NULL ? ms_str_of(needs) : MS_STR_NONE, part;
    *all = true;
    while (*all && ms_str_split(&rest, ' ', &part)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", MS_STR_ARG(part));
        MS_TRY(mstx__has_table(from, name, all, err));
        if (!*all)
            ms_fail(err, MS_E_FORMAT, "has no table %s", name);
    }
    return MS_OK;
}

static void bind(struct ms_stmt *st, const struct source *f)
{
    const int64_t value[] = {f->start, f->end, f->rank, f->apis, f->steps};
    const int n = ms_stmt_params(st);
    for (int i = 0; i < n && i < 5; i++)
        ms_stmt_i64(st, i + 1, value[i]);
}

/* A value of any type goes over as it is. */
static void copy_value(struct ms_stmt *to, int at, struct ms_stmt *from, int i)
{
    if (ms_stmt_is_null(from, i))
        ms_stmt_null(to, at);
    else if (ms_stmt_is_i64(from, i))
        ms_stmt_i64(to, at, ms_stmt_get_i64(from, i));
    else if (ms_stmt_is_f64(from, i))
        ms_stmt_f64(to, at, ms_stmt_get_f64(from, i));
    else
        ms_stmt_str(to, at, ms_stmt_get_str(from, i));
}

static enum ms_rc copy_rows(struct ms_stmt *from, struct ms_stmt *to, struct ms_err *err)
{
    bool more;
    const int n = ms_stmt_columns(from);
    enum ms_rc rc = ms_stmt_step(from, &more, err);
    while (rc == MS_OK && more) {
        for (int i = 0; i < n; i++)
            copy_value(to, i + 1, from, i);
        rc = ms_stmt_run(to, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(from, &more, err);
    }
    return rc;
}

static enum ms_rc pull_rank(struct mstx_recipe_run *r, const struct mstx_pull *p, const char *path,
                            int64_t rank, struct ms_stmt *add, struct ms_err *err)
{
    struct source f = {.rank = rank};
    struct ms_stmt *st = NULL;
    bool all = false;
    enum ms_rc rc = open_source(&f, path, r->step, err);
    if (rc == MS_OK)
        rc = check_needs(f.from, p->needs, &all, err);
    if (rc == MS_OK && all)
        rc = ms_store_prepare(f.from, &st, p->sql, err);
    if (rc == MS_OK && all) {
        bind(st, &f);
        rc = copy_rows(st, add, err);
    } else if (rc == MS_OK && !p->optional) {
        rc = MS_E_FORMAT;
    }
    ms_stmt_free(st);
    ms_store_close(f.from);
    return rc;
}

/* ---- all ranks ------------------------------------------------------------------------- */

static enum ms_rc drop_rank(struct mstx_recipe_run *r, const char *table, int64_t rank,
                            struct ms_err *err)
{
    char sql[160];
    snprintf(sql, sizeof sql, "DELETE FROM %s WHERE rank = %" PRId64, table, rank);
    return ms_store_exec(r->s, sql, err);
}

static enum ms_rc prepare_add(struct mstx_recipe_run *r, const struct mstx_pull *p,
                              struct ms_stmt **add, struct ms_err *err)
{
    char sql[1024];
    int columns = 1;
    for (const char *c = p->columns; *c != '\0'; c++)
        columns += *c == ',';
    snprintf(sql, sizeof sql, "CREATE TEMP TABLE IF NOT EXISTS %s(%s)", p->into, p->columns);
    MS_TRY(ms_store_exec(r->s, sql, err));
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", p->into);
    for (int i = 1; i < columns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    return ms_store_prepare(r->s, add, sql, err);
}

static enum ms_rc pull_or_note(struct mstx_recipe_run *r, const struct mstx_pull *p,
                               const struct mstx_rank_files *f, struct ms_stmt *add,
                               struct ms_err *err)
{
    const char *path = p->analysis ? f->analysis : f->profiler;
    struct ms_err aside = {0};
    if (path == NULL && p->optional)
        return MS_OK;
    if (path == NULL)
        return mstx__recipe_problem(
            r, f->dir,
            p->analysis ? "has no database analysis.db" : "has no database of the profiler", err);
    enum ms_rc rc = pull_rank(r, p, path, f->rank, add, &aside);
    r->good += rc == MS_OK;
    if (rc == MS_OK)
        return MS_OK;
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    ms_stmt_reset(add);
    MS_TRY(drop_rank(r, p->into, f->rank, err));
    return mstx__recipe_problem(r, path, aside.msg, err);
}

enum ms_rc mstx__recipe_pull(struct mstx_recipe_run *r, const struct mstx_pull *p,
                             struct ms_err *err)
{
    struct ms_stmt *add;
    MS_TRY(prepare_add(r, p, &add, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->ranks.n && rc == MS_OK; i++) {
        rc = pull_or_note(r, p, &r->ranks.p[i], add, err);
        if (r->progress != NULL)
            r->progress(i + 1, r->ranks.n);
    }
    ms_stmt_free(add);
    return rc;
}

enum ms_rc mstx__recipe_each(struct mstx_recipe_run *r, mstx_rank_fn fn, struct ms_err *err)
{
    for (size_t i = 0; i < r->ranks.n; i++) {
        const struct mstx_rank_files *f = &r->ranks.p[i];
        struct ms_err aside = {0};
        enum ms_rc rc = f->profiler != NULL
                            ? fn(r, f, &aside)
                            : ms_fail(&aside, MS_E_NOTFOUND, "has no database of the profiler");
        r->good += rc == MS_OK;
        if (rc == MS_E_NOMEM)
            return ms_no_memory(err);
        if (rc != MS_OK)
            MS_TRY(mstx__recipe_problem(r, f->profiler != NULL ? f->profiler : f->dir, aside.msg,
                                        err));
        if (r->progress != NULL)
            r->progress(i + 1, r->ranks.n);
    }
    return MS_OK;
}
