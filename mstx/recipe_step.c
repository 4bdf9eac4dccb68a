/* SPDX-License-Identifier: MIT
 *
 * recipe_step: what each rank did with its steps, and each stage of a pipeline: the most of any of its
 * ranks; where the ranks were in the parallel layout, and on which hosts.
 *
 * Ranks of one stage are those that meet in collectives.  Groups that hold two ranks of one pipeline, as
 * that of the whole world, tell nothing of stages.
 */
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

enum { RANK_MAX = 1 << 22 };

/* ---- stages ------------------------------------------------------------------------------- */

struct sets {
    MS_VEC(int32_t) of;    /* a rank's neighbour on the way to the first of its set */
    MS_VEC(int32_t) group; /* ranks of the group that is looked at */
};

static int32_t first_of(struct sets *s, int32_t rank)
{
    while (s->of.p[rank] != rank)
        rank = s->of.p[rank] = s->of.p[s->of.p[rank]];
    return rank;
}

static void join(struct sets *s, int32_t a, int32_t b)
{
    a = first_of(s, a);
    b = first_of(s, b);
    s->of.p[a < b ? b : a] = a < b ? a : b;
}

static bool add_up_to(struct sets *s, int32_t rank)
{
    while (s->of.n <= (size_t)rank) {
        int32_t *slot = ms_vec_push(&s->of);
        if (slot == NULL)
            return false;
        *slot = (int32_t)s->of.n - 1;
    }
    return true;
}

/* "(0,4)"; what is no number is passed over. */
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
    bool more;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        if (!read_group(to, ms_stmt_get_str(st, 0)) || !fn(to, pipelines))
            rc = ms_no_memory(err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
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
        join(to, to->group.p[0], to->group.p[i]);
    }
    return true;
}

static int by_number(const void *pa, const void *pb)
{
    const int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    return a < b ? -1 : a > b;
}

/* Two ranks of one pipeline? Destroys nothing but the order of s->group. */
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

/* Ranks that stand in some group of the first table go to the second. */
static enum ms_rc write_stages(struct ms_store *s, struct sets *stages, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, "INSERT INTO Stages VALUES(?,?)", err));
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
    static const char pipes[] = "SELECT rank_set FROM CommunicationGroupMapping"
                                " WHERE type = 'p2p' AND lower(pg_name) LIKE 'pp%'";
    static const char others[] =
        "SELECT rank_set FROM CommunicationGroupMapping WHERE type = 'collective'";
    struct sets pipelines = {0}, stages = {0};
    enum ms_rc rc = each_group(s, pipes, &pipelines, NULL, join_all, err);
    if (rc == MS_OK && pipelines.of.n != 0)
        rc = each_group(s, others, &stages, &pipelines, join_within_stage, err);
    if (rc == MS_OK)
        rc = write_stages(s, &stages, err);
    ms_vec_free(&pipelines.of);
    ms_vec_free(&pipelines.group);
    ms_vec_free(&stages.of);
    ms_vec_free(&stages.group);
    return rc;
}

/* ---- layout --------------------------------------------------------------------------------- */

static const struct mstx_pull arguments = {
    .into = "Arguments",
    .columns = "rank INTEGER, value",
    .optional = true,
    .needs = "META_DATA",
    .sql = "SELECT ?3, value FROM META_DATA WHERE name = 'distributed_args'"};

/* The layout of Megatron counts tensor parallel ranks first, then data parallel ones, then stages. With
 * context parallel ranks the official tool gives up, and so for a layout of other than all ranks. */
#define SIZE(key)                                                                                  \
    "max(1, ifnull((SELECT json_extract(value, '$." key "') FROM a"                                \
    " WHERE json_type(value, '$." key "') = 'integer'), 1))"

static const char
    find_layout[] =
        "CREATE TEMP TABLE Layout AS WITH a AS (SELECT value FROM "
        "Arguments WHERE json_valid(value)"
        " AND json_type(value) = 'object' ORDER BY rank LIMIT 1) "
        "SELECT " SIZE("world_size") " AS world, " SIZE(
            "tensor_model_"
            "parallel_size") " AS tp, " SIZE("pipeline_model_parallel_size") " AS pp, " SIZE("data_"
                                                                                             "paral"
                                                                                             "lel_"
                                                                                             "size") " AS dp, " SIZE("context_parallel_size") " AS cp, " SIZE("expert_model_"
                                                                                                                                                              "parallel_size") " A"
                                                                                                                                                                               "S "
                                                                                                                                                                               "ep"
                                                                                                                                                                               " F"
                                                                                                                                                                               "RO"
                                                                                                                                                                               "M "
                                                                                                                                                                               "a;"
                                                                                                                                                                               "DE"
                                                                                                                                                                               "LE"
                                                                                                                                                                               "TE"
                                                                                                                                                                               " F"
                                                                                                                                                                               "RO"
                                                                                                                                                                               "M "
                                                                                                                                                                               "La"
                                                                                                                                                                               "yo"
                                                                                                                                                                               "ut"
                                                                                                                                                                               " W"
                                                                                                                                                                               "HE"
                                                                                                                                                                               "RE"
                                                                                                                                                                               " w"
                                                                                                                                                                               "or"
                                                                                                                                                                               "ld"
                                                                                                                                                                               " !"
                                                                                                                                                                               "= "
                                                                                                                                                                               "tp"
                                                                                                                                                                               " *"
                                                                                                                                                                               " p"
                                                                                                                                                                               "p "
                                                                                                                                                                               "* "
                                                                                                                                                                               "dp"
                                                                                                                                                                               " O"
                                                                                                                                                                               "R "
                                                                                                                                                                               "dp"
                                                                                                                                                                               " %"
                                                                                                                                                                               " e"
                                                                                                                                                                               "p "
                                                                                                                                                                               "!="
                                                                                                                                                                               " 0"
                                                                                                                                                                               " O"
                                                                                                                                                                               "R "
                                                                                                                                                                               "cp"
                                                                                                                                                                               " !"
                                                                                                                                                                               "= "
                                                                                                                                                                               "1"
                                                                                                                                                                               " O"
                                                                                                                                                                               "R "
                                                                                                                                                                               "wo"
                                                                                                                                                                               "rl"
                                                                                                                                                                               "d "
                                                                                                                                                                               "< "
                                                                                                                                                                               "(S"
                                                                                                                                                                               "EL"
                                                                                                                                                                               "EC"
                                                                                                                                                                               "T "
                                                                                                                                                                               "co"
                                                                                                                                                                               "un"
                                                                                                                                                                               "t("
                                                                                                                                                                               "DI"
                                                                                                                                                                               "ST"
                                                                                                                                                                               "IN"
                                                                                                                                                                               "CT"
                                                                                                                                                                               " r"
                                                                                                                                                                               "an"
                                                                                                                                                                               "k)"
                                                                                                                                                                               " F"
                                                                                                                                                                               "RO"
                                                                                                                                                                               "M "
                                                                                                                                                                               "Tr"
                                                                                                                                                                               "ac"
                                                                                                                                                                               "eR"
                                                                                                                                                                               "ow"
                                                                                                                                                                               "s)"
                                                                                                                                                                               ";";

/* ---- steps ------------------------------------------------------------------------------------ */

#define TIMES                                                                                      \
    "computing, communication_not_overlapped, overlapped, communication, free, stage, bubble,"     \
    " communication_not_overlapped_and_exclude_receive, preparing"

static const struct mstx_pull traces = {.into = "TraceRows",
                                        .columns = "rank INTEGER, step TEXT, " TIMES,
                                        .analysis = true,
                                        .optional = true,
                                        .needs = "StepTraceTime",
                                        .sql = "SELECT ?3, step, " TIMES " FROM StepTraceTime"};

static const char step_tables[] =
    "DROP TABLE IF EXISTS ClusterStepTraceTime;"
    "CREATE TABLE ClusterStepTraceTime(step TEXT, type TEXT, \"index\" TEXT, computing NUMERIC,"
    " communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC,"
    " free NUMERIC, stage NUMERIC, bubble NUMERIC,"
    " communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC,"
    " dp_index INTEGER, pp_index INTEGER, tp_index INTEGER);"
    "INSERT INTO ClusterStepTraceTime SELECT step, 'rank', rank, " TIMES ","
    " ifnull((SELECT rank % (world / pp) / tp FROM Layout), 0),"
    " ifnull((SELECT rank / (world / pp) FROM Layout), 0),"
    " ifnull((SELECT rank % (world / pp) % tp FROM Layout), 0) FROM TraceRows ORDER BY rowid;"
    "INSERT INTO ClusterStepTraceTime SELECT step, 'stage',"
    " '(' || ifnull((SELECT group_concat(rank) FROM (SELECT rank FROM Stages"
    " WHERE first = s.first ORDER BY rank)), '') || ')', max(computing),"
    " max(communication_not_overlapped), max(overlapped), max(communication), max(free), "
    "max(stage),"
    " max(bubble), max(communication_not_overlapped_and_exclude_receive), max(preparing),"
    " CASE WHEN (SELECT count(*) FROM Layout) THEN 'NA' ELSE 0 END,"
    " CASE WHEN (SELECT count(*) FROM Layout) THEN 'NA' ELSE 0 END,"
    " CASE WHEN (SELECT count(*) FROM Layout) THEN 'NA' ELSE 0 END"
    " FROM TraceRows t LEFT JOIN Stages s ON s.rank = t.rank WHERE (SELECT count(*) FROM Stages)"
    " GROUP BY step, s.first ORDER BY min(t.rowid);"
    "DROP TABLE IF EXISTS ClusterBaseInfo;"
    "CREATE TABLE ClusterBaseInfo(key TEXT, value TEXT);"
    "INSERT INTO ClusterBaseInfo SELECT 'distributed_args', json_remove(value, '$.rank')"
    " FROM Arguments WHERE json_valid(value) ORDER BY rank LIMIT 1;"
    "DROP TABLE Layout; DROP TABLE Stages; DROP TABLE Arguments; DROP TABLE TraceRows;";

/* ---- hosts ------------------------------------------------------------------------------------ */

static const struct mstx_pull hosts = {
    .into = "Hosts",
    .columns = "rank INTEGER, rankId INTEGER, deviceId INTEGER, hostUid TEXT, hostName TEXT",
    .optional = true,
    .needs = "HOST_INFO RANK_DEVICE_MAP",
    .sql = "SELECT ?3, rankId, deviceId, hostUid, hostName FROM RANK_DEVICE_MAP,"
           " (SELECT hostUid, hostName FROM HOST_INFO LIMIT 1)"};

/* The profiler's directory, which the one of its output lies in. */
static struct ms_str profile_of(const struct mstx_rank_files *f)
{
    const struct ms_str base = ms_path_base(f->dir);
    return ms_str_is(base, "ASCEND_PROFILER_OUTPUT") ? ms_path_dir(f->dir) : ms_str_of(f->dir);
}

static enum ms_rc put_dirs(struct mstx_recipe_run *r, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_exec(r->s, "CREATE TEMP TABLE Dirs(rank INTEGER PRIMARY KEY, path TEXT)", err));
    MS_TRY(ms_store_prepare(r->s, &st, "INSERT INTO Dirs VALUES(?,?)", err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->ranks.n && rc == MS_OK; i++) {
        ms_stmt_i64(st, 1, r->ranks.p[i].rank);
        ms_stmt_str(st, 2, profile_of(&r->ranks.p[i]));
        rc = ms_stmt_run(st, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_hosts(struct mstx_recipe_run *r, struct ms_err *err)
{
    static const char sql[] =
        "DROP TABLE IF EXISTS HostInfo; DROP TABLE IF EXISTS RankDeviceMap;"
        "CREATE TABLE HostInfo(hostUid TEXT, hostName TEXT);"
        "CREATE TABLE RankDeviceMap(rankId INTEGER, deviceId INTEGER, hostUid TEXT,"
        " profilePath TEXT);"
        "INSERT INTO HostInfo SELECT DISTINCT hostUid, hostName FROM Hosts ORDER BY rank;"
        "INSERT INTO RankDeviceMap SELECT rankId, deviceId, hostUid, path FROM Hosts"
        " JOIN Dirs USING(rank) ORDER BY 1, 2;"
        "DROP TABLE Hosts; DROP TABLE Dirs;";
    MS_TRY(mstx__recipe_pull(r, &hosts, err));
    MS_TRY(put_dirs(r, err));
    return ms_store_exec(r->s, sql, err);
}

static enum ms_rc has_layout(struct ms_store *s, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, "SELECT 1 FROM Layout", err));
    enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__step_tables(struct ms_store *s, bool *layout, struct ms_err *err)
{
    MS_TRY(
        ms_store_exec(s, "CREATE TEMP TABLE Stages(rank INTEGER PRIMARY KEY, first INTEGER)", err));
    MS_TRY(find_stages(s, err));
    MS_TRY(ms_store_exec(s, find_layout, err));
    MS_TRY(has_layout(s, layout, err));
    return ms_store_exec(s, step_tables, err);
}

enum ms_rc mstx__recipe_step_trace(struct mstx_recipe_run *r, struct ms_err *err)
{
    bool layout;
    MS_TRY(mstx__recipe_group_map(r, err));
    MS_TRY(mstx__recipe_pull(r, &traces, err));
    MS_TRY(mstx__recipe_pull(r, &arguments, err));
    MS_TRY(mstx__step_tables(r->s, &layout, err));
    return write_hosts(r, err);
}
