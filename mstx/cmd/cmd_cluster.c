/* SPDX-License-Identifier: MIT
 *
 * cluster: runs the official analyses of all ranks of a run.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/official/recipes.h"

#include "probe/base/jprint.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/par.h"
#include "probe/base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { GATHERED_MAX = 1 << 26, ALL_STEPS = -1, TYPE_TEXT = 1, STRICT = 1 };

struct args {
    const char *dir, *output, *ranks, *base, *parallel, *context;
    int64_t step, top;
    int mode, type, compat, format;
    bool force;
};

static const char *const types[] = {"db", "text", NULL};
static const char *const compat[] = {"cur", "strict", NULL};

static const struct ms_opt opts[] = {
    {"dir", "d", MS_OPT_PATH, offsetof(struct args, dir), "DIR", .dash = MS_DASH_FOLDER,
     .required = true, .alias = "profiling_path",
     .help = "directory of a run, or one below which profilers left their output"},
    {"mode", "m", MS_OPT_CHOICE, offsetof(struct args, mode), "RECIPE", .dflt = "slow_rank",
     .choices = mstx_recipe_names, .help = "what to find out, as listed above"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dash = MS_DASH_FOLDER,
     .dflt = "the input's", .help = "where to make the directory cluster_analysis_output"},
    {"export_type", NULL, MS_OPT_CHOICE, offsetof(struct args, type), "TYPE", .dflt = "db",
     .choices = types, .help = "db: cluster_analysis.db; text: CSV files"},
    {"rank_list", NULL, MS_OPT_TEXT, offsetof(struct args, ranks), "0,1,...", .dflt = "all",
     .help = "only these ranks"},
    {"step_id", NULL, MS_OPT_INT, offsetof(struct args, step), "N", .dflt = "all", .min = -1,
     .max = INT64_MAX, .help = "only what happened in this step"},
    {"top_num", NULL, MS_OPT_INT, offsetof(struct args, top), "N",
     .dflt = "15, free_analysis and communication_bottleneck 10", .min = 1, .max = INT32_MAX,
     .help = "rows of the worst operations, links and free times"},
    {"bp", NULL, MS_OPT_PATH, offsetof(struct args, base), "DIR", .dash = MS_DASH_FOLDER,
     .help = "of cluster_time_compare_summary: the run to compare with"},
    {"parallel_types", NULL, MS_OPT_TEXT, offsetof(struct args, parallel), "A,B;C",
     .dflt = "dp,edp;edp;dp;ep;pp;mp;tp",
     .help = "of computational_op_masking: kinds of groups, those with a comma taken together"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct args, compat), "WHICH", .dflt = "cur",
     .choices = compat, .help = "strict: as the official tool, defects included"},
    MS_OPT_FORMAT(struct args, format),
    {"parallel_mode", NULL, MS_OPT_TEXT, offsetof(struct args, context), "NAME", .hidden = true},
    {"force", NULL, MS_OPT_FLAG, offsetof(struct args, force), .hidden = true},
    {0}};

extern const struct ms_cmd mstx_cmd_cluster;

static void show_progress(size_t done, size_t all)
{
    static struct ms_progress bar = {.what = "reading ranks"};
    ms_progress_part(&bar, done, all, MS_PACE_RANKS);
}

/* What is printed while the recipe runs, or gathered for JSON: the paths that were written, and the answer. */
static struct {
    bool is_json;
    struct ms_buf written, answer; /* texts, each ended by NUL */
} shown = {.written = {.max = GATHERED_MAX}, .answer = {.max = GATHERED_MAX}};

static void show_line(struct ms_buf *gathered, const char *before, const char *line)
{
    if (shown.is_json)
        ms_buf_put(gathered, line, strlen(line) + 1);
    else
        printf("%s%s\n", before, line);
}

static void show_written(const char *path)
{
    show_line(&shown.written, "", path);
}

static void show_answer(const char *line)
{
    show_line(&shown.answer, "  ", line);
}

static void put_lines(struct ms_jwrite *w, const char *key, const struct ms_buf *lines)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (size_t at = 0; at < lines->n; at += strlen(lines->p + at) + 1)
        ms_jwrite_str(w, ms_str_of(lines->p + at));
    ms_jwrite_arr_end(w);
}

/* Prints what was gathered, and frees it. */
static enum ms_rc print_gathered(const char *recipe, uint64_t problems, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "recipe", recipe);
    put_lines(&w, "written", &shown.written);
    put_lines(&w, "answer", &shown.answer);
    ms_jwrite_ki64(&w, "problems", (int64_t)problems);
    ms_jwrite_obj_end(&w);
    ms_buf_free(&shown.written);
    ms_buf_free(&shown.answer);
    return ms_jprint_end(&w, MS_OK, err);
}

static void report_problems(uint64_t n, bool as_text)
{
    if (n != 0)
        fprintf(stderr, "msprobe: %" PRIu64 " problem%s with the input%s\n", n, n == 1 ? "" : "s",
                as_text ? "; the database has them in ImportProblem"
                        : "; see the table ImportProblem");
}

/* Imports a capture by all processes of a job, before the first one analyses it. */
static enum ms_rc prepare_run(const char *dir, struct ms_err *err)
{
    char *db;
    bool is_capture = ms_par_size(ms_globals.par) > 1 && ms_par_rank(ms_globals.par) == 0 &&
                      mstx__is_capture(dir);
    MS_TRY(ms_par_share(ms_globals.par, &is_capture, sizeof is_capture, err));
    if (!is_capture)
        return MS_OK;
    MS_TRY(mstx_db_prepare_shared(dir, ms_globals.par, &db, err));
    ms_free(db);
    return MS_OK;
}

static int run_cluster(int argc, char **argv)
{
    struct args a = {.step = ALL_STEPS, .mode = MSTX_RECIPE_SLOW_RANK};
    struct ms_err err = {0};
    uint64_t problems = 0;
    bool done;
    if (ms_opt_parse(&mstx_cmd_cluster, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_cluster, &err);
    if (done)
        return MS_EXIT_OK;
    const struct mstx_cluster_how how = {.dir = a.dir,
                                         .output = a.output,
                                         .ranks = a.ranks,
                                         .base = a.base,
                                         .parallel = a.parallel,
                                         .step = a.step,
                                         .top = a.top,
                                         .mode = a.mode,
                                         .threads = (unsigned)ms_globals.threads,
                                         .par = ms_globals.par,
                                         .as_text = a.type == TYPE_TEXT,
                                         .strict = a.compat == STRICT,
                                         .progress = show_progress,
                                         .wrote = show_written,
                                         .answer = show_answer,
                                         .problems = &problems};
    enum ms_rc rc = prepare_run(a.dir, &err);
    shown.is_json = a.format == MS_FORMAT_JSON;
    if (rc == MS_OK)
        rc = mstx_cluster_run(&how, &err);
    if (rc == MS_OK && shown.is_json && ms_par_rank(ms_globals.par) == 0)
        rc = print_gathered(mstx_recipe_names[a.mode], problems, &err);
    if (ms_par_rank(ms_globals.par) == 0)
        report_problems(problems, how.as_text);
    return ms_cmd_end(&mstx_cmd_cluster, rc, &err);
}

const struct ms_cmd mstx_cmd_cluster = {
    .name = "cluster",
    .run = run_cluster,
    .job = MS_JOB_SHARED,
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
        "  free_analysis                 why devices did nothing, the longest times\n"
        "  ep_load_balance               tokens of the experts of each rank\n"
        "  communication_bottleneck      what the last rank did before the longest operations\n"
        "  export_summary                api_statistic.csv and kernel_details.csv of each rank\n"
        "\n"
        "  msprobe cluster -m slow_rank -d run1\n"
        "  msprobe cluster -m all -d profiles -o out --export_type text\n",
};
