/* SPDX-License-Identifier: MIT
 *
 * cluster: the official analyses of all ranks of a run.
 */
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OUTPUTS = 5, STEPS = 4, TOP = 15, TYPE_TEXT = 1, STRICT = 1 };

struct args {
    const char *dir, *output, *ranks, *base, *parallel, *context;
    int64_t step, top;
    int mode, type, compat;
    bool force;
};

static const struct mstx_unit micro = {"Us", 1e3}, milli = {"Ms", 1e6};

enum mode {
    MODE_ALL,
    MODE_COMMUNICATION_TIME,
    MODE_COMMUNICATION_MATRIX,
    MODE_SLOW_RANK,
    MODE_SLOW_LINK,
    MODE_HCCL_SUM,
    MODE_MSTX_SUM,
    MODE_COMMUNICATION_GROUP_MAP,
    MODE_COMMUNICATION_TIME_SUM,
    MODE_COMMUNICATION_MATRIX_SUM,
    MODE_CLUSTER_TIME_SUMMARY,
    MODE_CLUSTER_TIME_COMPARE_SUMMARY,
    MODE_COMPUTATIONAL_OP_MASKING,
    MODE_MSTX2COMMOP,
    MODE_P2P_PAIRING,
    MODE_PP_CHART,
    MODE_MODULE_STATISTIC,
    MODE_OPERATOR_MFU,
    MODE_CANN_API_SUM,
    MODE_COMPUTE_OP_SUM,
    MODE_FREQ_ANALYSIS,
    MODES
};

/* A recipe, its tables and their names as text. */
static const struct recipe {
    mstx_recipe_fn run[STEPS];
    const struct mstx_unit *unit;
    struct {
        const char *table, *csv;
    } out[OUTPUTS];
} recipes[MODES] = {
    [MODE_ALL] = {{mstx__recipe_step_trace, mstx__recipe_comm_time, mstx__recipe_comm_matrix},
                  NULL,
                  {{"ClusterStepTraceTime", "cluster_step_trace_time.csv"},
                   {"CommunicationGroupMapping", "communication_group_mapping.csv"},
                   {"ClusterCommunicationTime", "cluster_communication_time.csv"},
                   {"ClusterCommunicationBandwidth", "cluster_communication_bandwidth.csv"},
                   {"ClusterCommunicationMatrix", "cluster_communication_matrix.csv"}}},
    [MODE_COMMUNICATION_TIME] = {{mstx__recipe_step_trace, mstx__recipe_comm_time},
                                 NULL,
                                 {{"ClusterStepTraceTime", "cluster_step_trace_time.csv"},
                                  {"ClusterCommunicationTime", "cluster_communication_time.csv"},
                                  {"ClusterCommunicationBandwidth",
                                   "cluster_communication_bandwidth.csv"}}},
    [MODE_COMMUNICATION_MATRIX] = {{mstx__recipe_step_trace, mstx__recipe_comm_matrix},
                                   NULL,
                                   {{"ClusterStepTraceTime", "cluster_step_trace_time.csv"},
                                    {"ClusterCommunicationMatrix",
                                     "cluster_communication_matrix.csv"}}},
    [MODE_SLOW_RANK] = {{mstx__recipe_slow_rank},
                        &micro,
                        {{"SlowRank", "rank_stats.csv"}, {"SlowOpStats", "slow_op_stats.csv"}}},
    [MODE_SLOW_LINK] = {{mstx__recipe_slow_link},
                        &micro,
                        {{"SlowLinkSum", "slow_link_sum.csv"},
                         {"SlowLinkOps", "slow_link_ops.csv"}}},
    [MODE_HCCL_SUM] = {{mstx__recipe_hccl_sum},
                       &micro,
                       {{"HcclAllRankStats", "all_stats.csv"},
                        {"HcclPerRankStats", "rank_stats.csv"},
                        {"HcclTopOpStats", "top_op_stats.csv"},
                        {"HcclGroupNameMap", "group_name_map.csv"}}},
    [MODE_MSTX_SUM] = {{mstx__recipe_mstx_sum},
                       &milli,
                       {{"MSTXMarkStats", "mark_stats.csv"},
                        {"MSTXAllFrameworkStats", "all_fwk_stats.csv"},
                        {"MSTXAllCannStats", "all_cann_stats.csv"},
                        {"MSTXAllDeviceStats", "all_device_stats.csv"}}},
    [MODE_COMMUNICATION_GROUP_MAP] = {{mstx__recipe_group_map},
                                      NULL,
                                      {{"CommunicationGroupMapping",
                                        "communication_group_mapping.csv"}}},
    [MODE_COMMUNICATION_TIME_SUM] =
        {{mstx__recipe_comm_time},
         NULL,
         {{"ClusterCommunicationTime", "cluster_communication_time.csv"},
          {"ClusterCommunicationBandwidth", "cluster_communication_bandwidth.csv"}}},
    [MODE_COMMUNICATION_MATRIX_SUM] = {{mstx__recipe_comm_matrix},
                                       NULL,
                                       {{"ClusterCommunicationMatrix",
                                         "cluster_communication_matrix.csv"}}},
    [MODE_CLUSTER_TIME_SUMMARY] = {{mstx__recipe_time_summary},
                                   NULL,
                                   {{"ClusterTimeSummary", "cluster_time_summary.csv"}}},
    [MODE_CLUSTER_TIME_COMPARE_SUMMARY] = {{mstx__recipe_time_compare},
                                           NULL,
                                           {{"ClusterTimeCompareSummary",
                                             "cluster_time_compare_summary.csv"}}},
    [MODE_COMPUTATIONAL_OP_MASKING] = {{mstx__recipe_masking},
                                       NULL,
                                       {{"ComputationalOperatorMaskingLinearity",
                                         "computational_operator_masking_linearity.csv"}}},
    [MODE_MSTX2COMMOP] = {{mstx__recipe_commop}, NULL, {{0}}},
    [MODE_P2P_PAIRING] = {{mstx__recipe_p2p}, NULL, {{0}}},
    [MODE_PP_CHART] = {{mstx__recipe_pp_chart}, NULL, {{0}}},
    [MODE_MODULE_STATISTIC] = {{mstx__recipe_module},
                               NULL,
                               {{"ModuleStatistic", "module_statistic.csv"}}},
    [MODE_OPERATOR_MFU] = {{mstx__recipe_mfu},
                           NULL,
                           {{"OperatorMFU", "operator_mfu_kernel.csv"},
                            {"ModuleMFU", "operator_mfu_module.csv"}}},
    [MODE_CANN_API_SUM] = {{mstx__recipe_cann_api_sum},
                           &micro,
                           {{"CannApiSumRank", "rank_stats.csv"}, {"CannApiSum", "all_stats.csv"}}},
    [MODE_COMPUTE_OP_SUM] = {{mstx__recipe_compute_op_sum},
                             &micro,
                             {{"ComputeOpAllRankStats", "all_stats.csv"},
                              {"ComputeOpPerRankStatsByOpType", "rank_stats_by_optype.csv"},
                              {"ComputeOpPerRankStatsByOpName", "rank_stats_by_opname.csv"}}},
    [MODE_FREQ_ANALYSIS] = {{mstx__recipe_freq},
                            NULL,
                            {{"FreeFrequencyRanks", "free_frequency_ranks.csv"},
                             {"AbnormalFrequencyRanks", "abnormal_frequency_ranks.csv"}}},
};
static const char *const modes[MODES + 1] = {"all",
                                             "communication_time",
                                             "communication_matrix",
                                             "slow_rank",
                                             "slow_link",
                                             "hccl_sum",
                                             "mstx_sum",
                                             "communication_group_map",
                                             "communication_time_sum",
                                             "communication_matrix_sum",
                                             "cluster_time_summary",
                                             "cluster_time_compare_summary",
                                             "computational_op_masking",
                                             "mstx2commop",
                                             "p2p_pairing",
                                             "pp_chart",
                                             "module_statistic",
                                             "operator_mfu",
                                             "cann_api_sum",
                                             "compute_op_sum",
                                             "freq_analysis",
                                             NULL};
static const char *const types[] = {"db", "text", NULL};
static const char *const compat[] = {"cur", "strict", NULL};

static const struct ms_opt opts[] = {
    {"dir", "d", MS_OPT_PATH, offsetof(struct args, dir), "DIR", .required = true,
     .alias = "profiling_path",
     .help = "directory of a run, or one below which profilers left their output"},
    {"mode", "m", MS_OPT_CHOICE, offsetof(struct args, mode), "RECIPE", .dflt = "slow_rank",
     .choices = modes, .help = "what to find out, as listed above"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dflt = "the input's",
     .help = "where to make the directory cluster_analysis_output"},
    {"export_type", NULL, MS_OPT_CHOICE, offsetof(struct args, type), "TYPE", .dflt = "db",
     .choices = types, .help = "db: cluster_analysis.db; text: CSV files"},
    {"rank_list", NULL, MS_OPT_TEXT, offsetof(struct args, ranks), "0,1,...", .dflt = "all",
     .help = "only these ranks"},
    {"step_id", NULL, MS_OPT_INT, offsetof(struct args, step), "N", .dflt = "all", .min = -1,
     .max = INT64_MAX, .help = "only what happened in this step"},
    {"top_num", NULL, MS_OPT_INT, offsetof(struct args, top), "N", .dflt = "15", .min = 1,
     .max = INT32_MAX, .help = "rows of the worst operations and links"},
    {"bp", NULL, MS_OPT_PATH, offsetof(struct args, base), "DIR",
     .help = "of cluster_time_compare_summary: the run to compare with"},
    {"parallel_types", NULL, MS_OPT_TEXT, offsetof(struct args, parallel), "A,B;C",
     .dflt = "dp,edp;edp;dp;ep;pp;mp;tp",
     .help = "of computational_op_masking: kinds of groups, those with a comma taken together"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct args, compat), "WHICH", .dflt = "cur",
     .choices = compat, .help = "strict: as the official tool, defects included"},
    {"parallel_mode", NULL, MS_OPT_TEXT, offsetof(struct args, context), "NAME", .hidden = true},
    {"force", NULL, MS_OPT_FLAG, offsetof(struct args, force), .hidden = true},
    {0}};

extern const struct ms_cmd mstx_cmd_cluster;

/* ---- what is written --------------------------------------------------------------------- */

static enum ms_rc write_texts(struct ms_store *s, const struct recipe *r, const char *dir,
                              struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (int i = 0; i < OUTPUTS && r->out[i].table != NULL && rc == MS_OK; i++) {
        char *path = ms_path_join(dir, r->out[i].csv);
        rc = path != NULL ? mstx__recipe_csv(s, r->out[i].table, r->unit, path, err)
                          : ms_no_memory(err);
        if (rc == MS_OK)
            printf("%s\n", path);
        ms_free(path);
    }
    return rc;
}

static bool is_quiet;

static void show_progress(size_t done, size_t all)
{
    if (!is_quiet)
        fprintf(stderr, done < all ? "\r%zu of %zu ranks" : "\r\033[K", done, all);
}

static void show_written(const char *path)
{
    printf("%s\n", path);
}

static void tell_problems(const struct mstx_recipe_run *r, bool as_text)
{
    if (r->bad != 0)
        fprintf(stderr, "msprobe: %" PRIu64 " problem%s with the input%s\n", r->bad,
                r->bad == 1 ? "" : "s",
                as_text ? "; the database has them in ImportProblem"
                        : "; see the table ImportProblem");
}

static enum ms_rc first_problem(struct ms_store *s, const char *path, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st,
                            "SELECT CASE WHEN instr(text, file) = 1 THEN text ELSE file || ': ' ||"
                            " text END FROM ImportProblem"
                            " ORDER BY rowid DESC LIMIT 1",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK) {
        const struct ms_str text = more ? ms_stmt_get_str(st, 0) : MS_STR("nothing can be read");
        rc = ms_fail(err, MS_E_FORMAT, "%s: no rank can be read: %.*s", path, MS_STR_ARG(text));
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc run_recipe(struct mstx_recipe_run *r, const struct recipe *which,
                             struct ms_err *err)
{
    enum ms_rc rc = mstx__recipe_functions(r->s, err);
    for (int i = 0; i < STEPS && which->run[i] != NULL && rc == MS_OK; i++)
        rc = which->run[i](r, err);
    if (rc == MS_OK && r->good == 0 && r->bad != 0)
        rc = first_problem(r->s, r->path, err);
    return rc;
}

/* Text is made from the same tables, whose database is then thrown away. */
static enum ms_rc write_result(struct mstx_recipe_run *r, const struct args *a, const char *db,
                               struct ms_err *err)
{
    const struct recipe *which = &recipes[a->mode];
    enum ms_rc rc = run_recipe(r, which, err);
    if (rc == MS_OK && a->type == TYPE_TEXT) {
        char *dir = ms_path_join(r->out, modes[a->mode]);
        rc = dir != NULL ? write_texts(r->s, which, dir, err) : ms_no_memory(err);
        ms_free(dir);
    }
    tell_problems(r, a->type == TYPE_TEXT);
    mstx__recipe_forget(r);
    if (rc != MS_OK || a->type == TYPE_TEXT) {
        ms_store_close(r->s);
        return rc;
    }
    rc = ms_store_commit(r->s, err);
    if (rc == MS_OK)
        printf("%s\n", db);
    return rc;
}

/* ---- what is read ------------------------------------------------------------------------ */

static bool has_databases(const struct mstx_recipe_run *r)
{
    bool any = false;
    for (size_t i = 0; i < r->ranks.n; i++)
        any = any || r->ranks.p[i].profiler != NULL || r->ranks.p[i].analysis != NULL;
    return any;
}

/* What a mode writes where its input lies. */
static bool is_in_place(int mode)
{
    return mode == MODE_P2P_PAIRING || mode == MODE_PP_CHART || mode == MODE_MSTX2COMMOP;
}

static enum ms_rc refuse_ranks(const struct args *a, struct ms_err *err)
{
    if (a->ranks != NULL && strcmp(a->ranks, "all") != 0)
        return ms_fail(err, MS_E_NOTFOUND, "%s: has none of the ranks %s", a->dir, a->ranks);
    return ms_fail(err, MS_E_NOTFOUND,
                   "%s: no process of this run had a rank; start them by mpirun, torchrun, or with "
                   "RANK and WORLD_SIZE set",
                   a->dir);
}

/* Without output of profilers there may be a run: then their databases are made of it, in tmp. */
static enum ms_rc find_input(struct mstx_recipe_run *r, const struct args *a, const char *tmp,
                             struct ms_err *err)
{
    MS_TRY(mstx__recipe_find(r, a->ranks, err));
    if (r->ranks.n != 0)
        return MS_OK;
    MS_TRY(mstx__recipe_from_run(a->dir, tmp, err));
    if (is_in_place(a->mode))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: %s is for databases; make them with: msprobe export -f ascend-db",
                       a->dir, modes[a->mode]);
    r->path = tmp;
    MS_TRY(mstx__recipe_find(r, a->ranks, err));
    return r->ranks.n != 0 ? MS_OK : refuse_ranks(a, err);
}

static enum ms_rc analyse_texts(struct mstx_recipe_run *r, const struct args *a, struct ms_err *err)
{
    if (a->mode > MODE_COMMUNICATION_MATRIX)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: has JSON and CSV files only, of which all, communication_time and "
                       "communication_matrix can be made",
                       a->dir);
    enum ms_rc rc = mstx__recipe_from_text(r, a->mode != MODE_COMMUNICATION_MATRIX,
                                           a->mode != MODE_COMMUNICATION_TIME, err);
    tell_problems(r, true);
    return rc;
}

static enum ms_rc analyse(struct mstx_recipe_run *r, const struct args *a, const char *db,
                          const char *tmp, struct ms_err *err)
{
    MS_TRY(ms_store_renew(&r->s, db, db, err));
    enum ms_rc rc = ms_store_exec(r->s, "DROP TABLE IF EXISTS ImportProblem", err);
    if (rc == MS_OK)
        rc = find_input(r, a, tmp, err);
    if (rc == MS_OK && has_databases(r))
        return write_result(r, a, db, err);
    if (rc == MS_OK)
        rc = analyse_texts(r, a, err);
    mstx__recipe_forget(r);
    ms_store_close(r->s);
    return rc;
}

static enum ms_rc start(struct mstx_recipe_run *r, const struct args *a, struct ms_err *err)
{
    struct ms_buf tmp = {.max = 1 << 16};
    MS_TRY(ms_want_dir(a->dir, err));
    if (a->mode == MODE_CLUSTER_TIME_COMPARE_SUMMARY && a->base == NULL)
        return ms_fail(err, MS_E_ARG, "cluster_time_compare_summary needs --bp DIR");
    MS_TRY(ms_mkdirs(r->out, err));
    const char *room = getenv("TMPDIR");
    ms_buf_printf(&tmp, "%s/msprobe-cluster.%ld", room != NULL && *room != '\0' ? room : "/tmp",
                  (long)getpid());
    char *db = ms_path_join(r->out, MSTX_ANALYSIS_DB);
    enum ms_rc rc = db != NULL ? ms_buf_check(&tmp, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        ms_tmp_register(ms_buf_z(&tmp));
        rc = analyse(r, a, db, ms_buf_z(&tmp), err);
        ms_tmp_remove(ms_buf_z(&tmp));
        ms_tmp_forget(ms_buf_z(&tmp));
    }
    ms_buf_free(&tmp);
    ms_free(db);
    return rc;
}

static int run_cluster(int argc, char **argv)
{
    struct args a = {.step = MSTX_ALL_STEPS, .top = TOP, .mode = MODE_SLOW_RANK};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&mstx_cmd_cluster, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_cluster, &err);
    if (done)
        return MS_EXIT_OK;
    is_quiet = !ms_progress_ok(STDERR_FILENO);
    char *out = ms_path_join(a.output != NULL ? a.output : a.dir, MSTX_ANALYSIS_DIR);
    struct mstx_recipe_run r = {.path = a.dir,
                                .out = out,
                                .step = a.step,
                                .top = a.top,
                                .strict = a.compat == STRICT,
                                .base = a.base,
                                .parallel = a.parallel,
                                .progress = show_progress,
                                .wrote = show_written};
    enum ms_rc rc = out != NULL ? start(&r, &a, &err) : ms_no_memory(&err);
    ms_free(out);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&mstx_cmd_cluster, &err);
}

const struct ms_cmd mstx_cmd_cluster = {
    .name = "cluster",
    .run = run_cluster,
    .brief = "analyse all ranks as msprof-analyze does",
    .opts = opts,
    .usage = "[options] -d DIR",
    .about =
        "Reads what all ranks did, from a run or from what Ascend's profilers left, and writes the "
        "tables of an official recipe; msprobe-cluster(1) lists them.\n"
        "\n"
        "  all                           steps, communicators, time and matrix\n"
        "  communication_time            steps, and time and bandwidth of communication\n"
        "  communication_matrix          steps, and what went from rank to rank\n"
        "  slow_rank                     ranks that came too late for chance\n"
        "  slow_link                     transfers far slower than others of their kind\n"
        "  hccl_sum                      durations of communication\n"
        "  mstx_sum                      durations of ranges and pairs of marks\n"
        "  communication_group_map       communicators and their ranks\n"
        "  communication_time_sum        time and bandwidth of each operation\n"
        "  communication_matrix_sum      what went from rank to rank, how fast\n"
        "  cluster_time_summary          where the time of each step went\n"
        "  cluster_time_compare_summary  the same beside that of another run, --bp\n"
        "  computational_op_masking      how much communication kernels hide\n"
        "  mstx2commop                   communication out of marks, in copies\n"
        "  p2p_pairing                   sends and their receives, in place\n"
        "  pp_chart                      passes of a pipeline, in place\n"
        "  module_statistic              kernels of each module of the model\n"
        "  operator_mfu                  share of the cores' peak\n"
        "  cann_api_sum                  durations of calls of CANN\n"
        "  compute_op_sum                durations of kernels\n"
        "  freq_analysis                 cores that did not run at full speed\n"
        "\n"
        "  msprobe cluster -m slow_rank -d run1\n"
        "  msprobe cluster -m all -d profiles -o out --export_type text\n",
};
