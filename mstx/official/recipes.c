/* SPDX-License-Identifier: MIT
 *
 * recipes: the table of the official analyses, and the driver of one of them: find the input, read,
 * write.
 */
#include "mstx/official/recipes.h"

#include "mstx/conclude/run_ready.h"
#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/bottlenecks.h"
#include "mstx/official/cluster_texts.h"
#include "mstx/official/comm_sums.h"
#include "mstx/official/comm_tables.h"
#include "mstx/official/database_edits.h"
#include "mstx/official/duration_sums.h"
#include "mstx/official/expert_loads.h"
#include "mstx/official/free_times.h"
#include "mstx/official/mark_sums.h"
#include "mstx/official/masking.h"
#include "mstx/official/modules.h"
#include "mstx/official/recipe_answers.h"
#include "mstx/official/recipe_share.h"
#include "mstx/official/run_as_ascend.h"
#include "mstx/official/slow_links.h"
#include "mstx/official/slow_ranks.h"
#include "mstx/official/sql/recipe_answers.h"
#include "mstx/official/sql/recipes.h"
#include "mstx/official/step_times.h"
#include "mstx/official/summary_files.h"
#include "mstx/official/table_csv.h"
#include "probe/base/exchange.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

enum { OUTPUTS = 5, STEPS = 4 };
enum { WORST = 15, FREE_TIMES = 10 }; /* rows of the worst where the user names no number */

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
    MODE_FREE_ANALYSIS,
    MODE_EP_LOAD_BALANCE,
    MODE_COMMUNICATION_BOTTLENECK,
    MODE_EXPORT_SUMMARY,
    MODES
};

static const struct mstx_unit micro = {"Us", 1e3}, milli = {"Ms", 1e6};

/* Recipes, their tables and the names of the tables in text output. */
static const struct recipe {
    enum ms_rc (*make[STEPS])(struct mstx_recipe *r, struct ms_err *err);
    const struct mstx_unit *unit;
    const char *answer; /* gives the lines of answer; NULL: how many rows there are */
    struct {
        const char *table, *csv;
    } out[OUTPUTS];
} recipes[MODES] = {
    [MODE_ALL] = {{mstx__trace_steps, mstx__sum_comm_time, mstx__sum_comm_matrix},
                  NULL,
                  sql_answer_steps,
                  {{"ClusterStepTraceTime", "cluster_step_trace_time.csv"},
                   {"CommunicationGroupMapping", "communication_group_mapping.csv"},
                   {"ClusterCommunicationTime", "cluster_communication_time.csv"},
                   {"ClusterCommunicationBandwidth", "cluster_communication_bandwidth.csv"},
                   {"ClusterCommunicationMatrix", "cluster_communication_matrix.csv"}}},
    [MODE_COMMUNICATION_TIME] = {{mstx__trace_steps, mstx__sum_comm_time},
                                 NULL,
                                 sql_answer_steps,
                                 {{"ClusterStepTraceTime", "cluster_step_trace_time.csv"},
                                  {"ClusterCommunicationTime", "cluster_communication_time.csv"},
                                  {"ClusterCommunicationBandwidth",
                                   "cluster_communication_bandwidth.csv"}}},
    [MODE_COMMUNICATION_MATRIX] = {{mstx__trace_steps, mstx__sum_comm_matrix},
                                   NULL,
                                   sql_answer_steps,
                                   {{"ClusterStepTraceTime", "cluster_step_trace_time.csv"},
                                    {"ClusterCommunicationMatrix",
                                     "cluster_communication_matrix.csv"}}},
    [MODE_SLOW_RANK] = {{mstx__find_slow_ranks},
                        &micro,
                        sql_answer_slow_rank,
                        {{"SlowRank", "rank_stats.csv"}, {"SlowOpStats", "slow_op_stats.csv"}}},
    [MODE_SLOW_LINK] = {{mstx__find_slow_links},
                        &micro,
                        sql_answer_slow_link,
                        {{"SlowLinkSum", "slow_link_sum.csv"},
                         {"SlowLinkOps", "slow_link_ops.csv"}}},
    [MODE_HCCL_SUM] = {{mstx__sum_hccl},
                       &micro,
                       sql_answer_hccl_sum,
                       {{"HcclAllRankStats", "all_stats.csv"},
                        {"HcclPerRankStats", "rank_stats.csv"},
                        {"HcclTopOpStats", "top_op_stats.csv"},
                        {"HcclGroupNameMap", "group_name_map.csv"}}},
    [MODE_MSTX_SUM] = {{mstx__sum_marks},
                       &milli,
                       sql_answer_marks,
                       {{"MSTXMarkStats", "mark_stats.csv"},
                        {"MSTXAllFrameworkStats", "all_fwk_stats.csv"},
                        {"MSTXAllCannStats", "all_cann_stats.csv"},
                        {"MSTXAllDeviceStats", "all_device_stats.csv"}}},
    [MODE_COMMUNICATION_GROUP_MAP] = {{mstx__map_groups},
                                      NULL,
                                      NULL,
                                      {{"CommunicationGroupMapping",
                                        "communication_group_mapping.csv"}}},
    [MODE_COMMUNICATION_TIME_SUM] =
        {{mstx__sum_comm_time},
         NULL,
         NULL,
         {{"ClusterCommunicationTime", "cluster_communication_time.csv"},
          {"ClusterCommunicationBandwidth", "cluster_communication_bandwidth.csv"}}},
    [MODE_COMMUNICATION_MATRIX_SUM] = {{mstx__sum_comm_matrix},
                                       NULL,
                                       NULL,
                                       {{"ClusterCommunicationMatrix",
                                         "cluster_communication_matrix.csv"}}},
    [MODE_CLUSTER_TIME_SUMMARY] = {{mstx__summarize_time},
                                   NULL,
                                   sql_answer_time_summary,
                                   {{"ClusterTimeSummary", "cluster_time_summary.csv"}}},
    [MODE_CLUSTER_TIME_COMPARE_SUMMARY] = {{mstx__compare_time},
                                           NULL,
                                           NULL,
                                           {{"ClusterTimeCompareSummary",
                                             "cluster_time_compare_summary.csv"}}},
    [MODE_COMPUTATIONAL_OP_MASKING] = {{mstx__measure_masking},
                                       NULL,
                                       NULL,
                                       {{"ComputationalOperatorMaskingLinearity",
                                         "computational_operator_masking_linearity.csv"}}},
    [MODE_MSTX2COMMOP] = {{mstx__write_comm_ops}, NULL, NULL, {{0}}},
    [MODE_P2P_PAIRING] = {{mstx__write_p2p_pairs}, NULL, NULL, {{0}}},
    [MODE_PP_CHART] = {{mstx__write_passes}, NULL, NULL, {{0}}},
    [MODE_MODULE_STATISTIC] = {{mstx__sum_modules},
                               NULL,
                               sql_answer_modules,
                               {{"ModuleStatistic", "module_statistic.csv"}}},
    [MODE_OPERATOR_MFU] = {{mstx__rate_kernels},
                           NULL,
                           NULL,
                           {{"OperatorMFU", "operator_mfu_kernel.csv"},
                            {"ModuleMFU", "operator_mfu_module.csv"}}},
    [MODE_CANN_API_SUM] = {{mstx__sum_cann_calls},
                           &micro,
                           sql_answer_calls,
                           {{"CannApiSumRank", "rank_stats.csv"}, {"CannApiSum", "all_stats.csv"}}},
    [MODE_COMPUTE_OP_SUM] = {{mstx__sum_kernels},
                             &micro,
                             sql_answer_kernels,
                             {{"ComputeOpAllRankStats", "all_stats.csv"},
                              {"ComputeOpPerRankStatsByOpType", "rank_stats_by_optype.csv"},
                              {"ComputeOpPerRankStatsByOpName", "rank_stats_by_opname.csv"}}},
    [MODE_FREQ_ANALYSIS] = {{mstx__find_low_clocks},
                            NULL,
                            NULL,
                            {{"FreeFrequencyRanks", "free_frequency_ranks.csv"},
                             {"AbnormalFrequencyRanks", "abnormal_frequency_ranks.csv"}}},
    [MODE_FREE_ANALYSIS] = {{mstx__explain_free_times},
                            NULL,
                            sql_answer_free,
                            {{"FreeAnalysisText", "free_analysis.csv"}}},
    [MODE_EP_LOAD_BALANCE] = {{mstx__sum_expert_loads},
                              NULL,
                              sql_answer_loads,
                              {{"EPTokensSummary", "ep_tokens_summary.csv"},
                               {"TopEPTokensInfo", "top_ep_tokens_info.csv"}}},
    [MODE_COMMUNICATION_BOTTLENECK] = {{mstx__find_bottlenecks},
                                       NULL,
                                       sql_answer_bottlenecks,
                                       {{"CommunicationBottleneckText",
                                         "communication_bottleneck.csv"}}},
    [MODE_EXPORT_SUMMARY] = {{mstx__write_summaries}, NULL, NULL, {{0}}},
};
const char *const mstx_recipe_names[MODES + 1] = {"all",
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
                                                  "free_analysis",
                                                  "ep_load_balance",
                                                  "communication_bottleneck",
                                                  "export_summary",
                                                  NULL};
/* ---- output ------------------------------------------------------------------------------ */

static enum ms_rc write_texts(const struct mstx_recipe *r, const struct recipe *which,
                              const char *dir, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (int i = 0; i < OUTPUTS && which->out[i].table != NULL && rc == MS_OK; i++) {
        char *path = ms_path_join(dir, which->out[i].csv);
        rc = path != NULL ? mstx__write_table_csv(r->s, which->out[i].table, which->unit, path, err)
                          : ms_no_memory(err);
        if (rc == MS_OK)
            r->wrote(path);
        ms_free(path);
    }
    return rc;
}

static enum ms_rc fail_with_problem(struct ms_store *s, const char *path, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st, sql_find_last_problem, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK) {
        const struct ms_str text = more ? ms_stmt_get_str(st, 0) : MS_STR("nothing can be read");
        rc = ms_fail(err, MS_E_FORMAT, "%s: no rank can be read: %.*s", path, MS_STR_ARG(text));
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc make_tables(struct mstx_recipe *r, const struct recipe *which, struct ms_err *err)
{
    enum ms_rc rc = mstx__ascend_functions(r->s, err);
    for (int i = 0; i < STEPS && which->make[i] != NULL && rc == MS_OK; i++)
        rc = which->make[i](r, err);
    if (rc == MS_OK && r->good == 0 && r->bad != 0)
        rc = fail_with_problem(r->s, r->path, err);
    return rc;
}

/* Tells what the tables say: an answer, or how many rows they have. */
static enum ms_rc tell_answer(struct mstx_recipe *r, const struct recipe *which,
                              void (*answer)(const char *), struct ms_err *err)
{
    if (answer == NULL)
        return MS_OK;
    if (which->answer != NULL)
        return mstx__tell_answer(r->s, which->answer, answer, err);
    for (int i = 0; i < MSTX_ANSWER_LINES && which->out[i].table != NULL; i++)
        MS_TRY(mstx__tell_rows(r->s, which->out[i].table, answer, err));
    return MS_OK;
}

/* Writes text files from the tables; their database is deleted afterwards. */
static enum ms_rc write_result(struct mstx_recipe *r, const struct mstx_cluster_how *how,
                               const char *db, struct ms_err *err)
{
    const struct recipe *which = &recipes[how->mode];
    enum ms_rc rc = make_tables(r, which, err);
    if (rc == MS_OK)
        rc = tell_answer(r, which, how->answer, err);
    if (rc == MS_OK && how->as_text) {
        char *dir = ms_path_join(r->out, mstx_recipe_names[how->mode]);
        rc = dir != NULL ? write_texts(r, which, dir, err) : ms_no_memory(err);
        ms_free(dir);
    }
    *how->problems = r->bad;
    mstx__recipe_free(r);
    if (rc != MS_OK || how->as_text) {
        ms_store_close(r->s);
        return rc;
    }
    rc = ms_store_commit(r->s, err);
    if (rc == MS_OK)
        r->wrote(db);
    return rc;
}

/* ---- input ------------------------------------------------------------------------------- */

static bool has_databases(const struct mstx_recipe *r)
{
    bool any = false;
    for (size_t i = 0; i < r->files.ranks.n; i++)
        any = any || r->files.ranks.p[i].profiler != NULL || r->files.ranks.p[i].analysis != NULL;
    return any;
}

/* Tells whether a mode writes its result below the input. */
static bool is_in_place(int mode)
{
    return mode == MODE_P2P_PAIRING || mode == MODE_PP_CHART || mode == MODE_MSTX2COMMOP;
}

static enum ms_rc refuse_ranks(const struct mstx_cluster_how *how, struct ms_err *err)
{
    if (how->ranks != NULL && strcmp(how->ranks, "all") != 0)
        return ms_fail(err, MS_E_NOTFOUND, "%s: has none of the ranks %s", how->dir, how->ranks);
    return ms_fail(err, MS_E_NOTFOUND,
                   "%s: no process of this run had a rank; start them by mpirun, torchrun, or with "
                   "RANK and WORLD_SIZE set",
                   how->dir);
}

/* Opens a run, which is imported first where it has to be, in all processes. */
static enum ms_rc open_run(struct mstx_recipe *r, const struct mstx_cluster_how *how,
                           struct mstx_run_ranks **run, struct ms_err *err)
{
    char *db;
    MS_TRY(mstx_db_prepare(how->dir, &db, err));
    enum ms_rc rc = mstx__run_ranks_open(run, db, ms_pool_threads(r->pool), err);
    if (rc == MS_OK) {
        mstx__run_ranks_lend(*run, r);
        rc = mstx__share_input(r, db, how->ranks, err);
    }
    ms_free(db);
    return rc;
}

/* Finds the input. An input without output of profilers may be a run of msprobe. */
static enum ms_rc find_input(struct mstx_recipe *r, const struct mstx_cluster_how *how,
                             struct mstx_run_ranks **run, struct ms_err *err)
{
    MS_TRY(mstx__recipe_find_files(r, how->ranks, err));
    if (r->files.ranks.n != 0)
        return mstx__share_input(r, NULL, NULL, err);
    MS_TRY(open_run(r, how, run, err));
    if (is_in_place(how->mode))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: %s is for databases; make them with: msprobe export -f ascend-db",
                       how->dir, mstx_recipe_names[how->mode]);
    MS_TRY(mstx__run_ranks_list(*run, how->ranks, &r->files, err));
    return r->files.ranks.n != 0 ? MS_OK : refuse_ranks(how, err);
}

static enum ms_rc merge_texts(struct mstx_recipe *r, const struct mstx_cluster_how *how,
                              struct ms_err *err)
{
    if (how->mode > MODE_COMMUNICATION_MATRIX)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: has JSON and CSV files only, of which all, communication_time and "
                       "communication_matrix can be made",
                       how->dir);
    enum ms_rc rc = mstx__merge_cluster_texts(r, how->mode != MODE_COMMUNICATION_MATRIX,
                                              how->mode != MODE_COMMUNICATION_TIME, err);
    *how->problems = r->bad;
    return rc;
}

static enum ms_rc analyse_ranks(struct mstx_recipe *r, const struct mstx_cluster_how *how,
                                const char *db, struct mstx_run_ranks **run, struct ms_err *err)
{
    MS_TRY(ms_store_renew(&r->s, db, db, err));
    enum ms_rc rc = ms_store_exec(r->s, "DROP TABLE IF EXISTS ImportProblem", err);
    if (rc == MS_OK)
        rc = find_input(r, how, run, err);
    if (rc == MS_OK && has_databases(r))
        return write_result(r, how, db, err);
    if (rc == MS_OK)
        rc = merge_texts(r, how, err);
    mstx__recipe_free(r);
    ms_store_close(r->s);
    return rc;
}

static enum ms_rc analyse_input(struct mstx_recipe *r, const struct mstx_cluster_how *how,
                                struct ms_err *err)
{
    const enum ms_rc is_dir = ms_want_dir(how->dir, err);
    if (is_dir != MS_OK)
        ms_err_hint(err, "give the directory of a run, or the one with the profiles of all ranks");
    MS_TRY(is_dir);
    if (how->mode == MODE_CLUSTER_TIME_COMPARE_SUMMARY && how->base == NULL)
        return ms_fail(err, MS_E_ARG, "cluster_time_compare_summary needs --bp DIR");
    MS_TRY(ms_want_no_link(r->out, err));
    MS_TRY(ms_mkdirs(r->out, err));
    char *db = ms_path_join(r->out, MSTX_ANALYSIS_DB);
    struct mstx_run_ranks *run = NULL;
    enum ms_rc rc = db != NULL ? ms_want_no_link(db, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = analyse_ranks(r, how, db, &run, err);
    mstx__run_ranks_close(run);
    ms_free(db);
    return rc;
}

static enum ms_rc run_recipe(const struct mstx_cluster_how *how, struct ms_pool *pool,
                             struct ms_err *err)
{
    char *out = ms_path_join(how->output != NULL ? how->output : how->dir, MSTX_ANALYSIS_DIR);
    struct mstx_recipe r = {.path = how->dir,
                            .out = out,
                            .pool = pool,
                            .par = how->par,
                            .step = how->step,
                            .top = how->top != 0 ? how->top
                                   : how->mode == MODE_FREE_ANALYSIS ||
                                           how->mode == MODE_COMMUNICATION_BOTTLENECK
                                       ? FREE_TIMES
                                       : WORST,
                            .strict = how->strict,
                            .base = how->base,
                            .parallel = how->parallel,
                            .progress = how->progress,
                            .wrote = how->wrote};
    enum ms_rc rc = out != NULL ? analyse_input(&r, how, err) : ms_no_memory(err);
    ms_free(out);
    return mstx__share_end_recipe(how->par, rc, err);
}

enum ms_rc mstx_cluster_run(const struct mstx_cluster_how *how, struct ms_err *err)
{
    struct ms_pool *pool;
    ms_assert(how->mode >= 0 && how->mode < MODES && how->wrote != NULL);
    *how->problems = 0;
    enum ms_rc rc = ms_pool_new(&pool, how->threads, err);
    MS_TRY(ms_share_result(how->par, rc, err));
    rc = ms_par_rank(how->par) == 0 ? run_recipe(how, pool, err)
                                    : mstx__share_serve(how->par, pool, err);
    ms_pool_free(pool);
    return rc;
}
