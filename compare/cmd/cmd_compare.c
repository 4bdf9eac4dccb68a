/* SPDX-License-Identifier: MIT
 *
 * cmd_compare: `msprobe compare`.
 */
#include "compare/cmd/compare_args.h"
#include "compare/official/advisor.h"
#include "compare/official/atb.h"
#include "compare/official/kernels.h"
#include "compare/official/old_input.h"
#include "compare/official/trees.h"
#include "compare/run/compare_run.h"
#include "probe/base/clock.h"
#include "probe/base/screen.h"
#include "probe/settings/run_settings.h"

extern const struct ms_cmd compare_cmd_compare;

struct job {
    struct compare_args args;
    struct cmp_old_input input;
    struct cmp_run run;
    struct ms_par *par;
    char stamp[16];
};

static void note_line(const char *line)
{
    ms_cmd_note("compare", "%s", line);
}

static void fail_rank(const struct ms_err *err)
{
    ms_cmd_fail(&compare_cmd_compare, err);
}

static const char *output_of(const struct job *j)
{
    return j->args.output != NULL && j->args.output[0] != 0 ? j->args.output : "./output";
}

static void set_mapping(struct cmp_mapping *m, const char *arg)
{
    m->on = arg != NULL;
    m->file = arg != NULL && arg[0] != 0 ? arg : NULL;
}

/* Converts the options into the configuration of one pair of dumps. */
static struct cmp_conf conf_of(const struct job *j)
{
    const struct compare_args *a = &j->args;
    struct cmp_conf conf = {.rules = cmp_rules_of((enum cmp_compat)a->compat),
                            .fuzzy = a->fuzzy || a->align == ALIGN_FUZZY,
                            .matching = a->align == ALIGN_ALWAYS  ? CMP_MATCH_ALWAYS
                                        : a->align == ALIGN_EXACT ? CMP_MATCH_EXACT
                                                                  : CMP_MATCH_AUTO,
                            .consistent =
                                a->consistent ? (enum cmp_consistent)a->backend : CMP_CONSISTENT_NO,
                            .fold_lines = a->xlsx,
                            .pins = a->pins,
                            .config = a->config,
                            .ext = a->ext,
                            .explain = true,
                            .highlight = a->highlight,
                            .stack = j->input.stack,
                            .hide_stack = j->input.stack != NULL && !a->stack_mode,
                            .data_mapping = a->data};
    set_mapping(&conf.api, a->api);
    set_mapping(&conf.cell, a->cell);
    set_mapping(&conf.layer, a->layer);
    return conf;
}

static enum ms_rc run_job(struct job *j, struct ms_err *err)
{
    const struct compare_args *a = &j->args;
    const struct cmp_run_conf conf = {
        .cmp = conf_of(j),
        .target = a->target,
        .golden = a->golden,
        .output = output_of(j),
        .noise = a->noise,
        .explain = a->explain,
        .explain_json = a->format == FORMAT_JSON,
        .most = (size_t)a->most,
        .xlsx = a->xlsx,
        .diff = a->diff,
        .write_mapping = a->write_mapping,
        .write_advice = a->compat == CMP_OLD && !a->compare_only ? cmp_write_advisor : NULL,
        .note = note_line,
        .fail = fail_rank};
    return compare_run(&j->run, &conf, j->par, err);
}

/* Takes the two paths from the command line or from the JSON file of msprobe 1 (-i). */
static enum ms_rc take_paths(struct job *j, struct ms_err *err)
{
    struct compare_args *a = &j->args;
    if (a->input != NULL) {
        if (a->target != NULL || a->golden != NULL)
            return ms_fail(err, MS_E_ARG, "-i names both paths; leave out -tp and -gp beside it");
        MS_TRY(cmp_old_input_read(&j->input, a->input, err));
        a->target = j->input.target;
        a->golden = j->input.golden;
        a->ranks = a->ranks != NULL ? a->ranks : j->input.ranks;
        a->steps = a->steps != NULL ? a->steps : j->input.steps;
    }
    if (a->target == NULL || a->golden == NULL)
        return ms_fail(err, MS_E_ARG, "missing option --%s PATH: %s",
                       a->target == NULL ? "target_path" : "golden_path",
                       a->target == NULL ? "the dump to check"
                                         : "the dump to compare the target with");
    return MS_OK;
}

/* ---- tables without a dump.json ---------------------------------------------- */

/* Tables whose rows are not judged by rules: kernels of graphs, dumps of ATB, trees of .npy
 * files. */
enum sheets { SHEETS_NONE, SHEETS_KERNELS, SHEETS_TREES, SHEETS_ATB };

static enum sheets sheets_wanted(const struct job *j)
{
    if (j->args.mode == MODE_ATB)
        return SHEETS_ATB;
    if (j->input.trees || (j->input.npu_names.keys.n != 0 && j->input.ranks == NULL))
        return SHEETS_TREES;
    return j->args.ranks != NULL || j->args.steps != NULL ? SHEETS_KERNELS : SHEETS_NONE;
}

static enum ms_rc write_sheets(struct job *j, enum sheets what, struct cmp_files *files,
                               struct cmp_sheet_sum *sum, struct ms_err *err)
{
    const char *t = j->args.target, *b = j->args.golden, *out = output_of(j);
    const bool strict = j->args.compat == CMP_STRICT;
    const struct cmp_kernel_conf kernels = {.ranks = j->args.ranks,
                                            .steps = j->args.steps,
                                            .xlsx = j->args.xlsx,
                                            .strict = strict,
                                            .stamp = j->stamp};
    const struct cmp_atb_conf atb = {.strict = strict, .stamp = j->stamp};
    const struct cmp_tree_names names = {&j->input.npu_names, j->input.bench_names.p};
    switch (what) {
    case SHEETS_ATB:
        return cmp_compare_atb(t, b, out, &atb, sum, files, err);
    case SHEETS_TREES:
        return cmp_compare_trees(t, b, out, &names, sum, files, err);
    default:
        return cmp_compare_kernels(t, b, out, &kernels, sum, files, err);
    }
}

static int compare_sheets(struct job *j, enum sheets what)
{
    struct cmp_files files = {0};
    struct cmp_sheet_sum sum = {0};
    struct ms_err err = {0};
    cmp_run_stamp(j->stamp);
    enum ms_rc rc = write_sheets(j, what, &files, &sum, &err);
    for (size_t i = 0; i < sum.notes.n && j->args.format == FORMAT_TEXT; i++)
        ms_cmd_note("compare", "%s", sum.notes.p[i]);
    if (rc == MS_OK)
        rc = cmp_sheet_print(&sum, &files, j->args.format == FORMAT_JSON, &err);
    bool differs = sum.no + sum.rest != 0;
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    return j->args.exit_code && differs ? MS_EXIT_FOUND : MS_EXIT_OK;
}

/* Begins with what the two runs were configured differently in; a damaged record is told, no more. */
static void print_settings(const struct job *j)
{
    struct ms_settings_diff d;
    struct ms_err err = {0};
    struct ms_buf text = {.max = 1 << 20};
    if (ms_settings_differ(&d, j->args.golden, j->args.target, &err) != MS_OK) {
        ms_cmd_note("compare", "%s", err.msg);
        return;
    }
    ms_settings_diff_text(&d, (size_t)j->args.most, &text);
    if (text.n != 0)
        fwrite(text.p, 1, text.n, stdout);
    ms_buf_free(&text);
    ms_settings_diff_free(&d);
}

static int report_job(struct job *j, int64_t start)
{
    struct ms_err err = {0};
    struct cmp_report *report = &j->run.report;
    report->took_ns = ms_clock_ns() - start;
    /* --explain has printed its text already */
    if (j->args.explain == NULL && j->args.format == FORMAT_TEXT) {
        struct ms_screen screen;
        ms_screen_begin(&screen);
        print_settings(j);
        cmp_report_text(report, (size_t)j->args.most);
        ms_screen_end(&screen);
    }
    if (j->args.explain == NULL && j->args.format == FORMAT_JSON &&
        cmp_report_json(report, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    if (cmp_report_broke(report)) /* each was told with its rank */
        return MS_EXIT_FAIL;
    if (!cmp_report_compared(report)) /* the text and the counts say so */
        return MS_EXIT_FAIL;
    return j->args.exit_code && cmp_report_differs(report) ? MS_EXIT_FOUND : MS_EXIT_OK;
}

/* Runs the command in this process. Process 0 prints errors and results, as far as it can. */
static int run_here(struct job *j)
{
    struct ms_err err = {0};
    int64_t start = ms_clock_ns();
    if (compare_args_check(&j->args, &err) != MS_OK || take_paths(j, &err) != MS_OK)
        return ms_par_rank(j->par) == 0 ? ms_cmd_fail(&compare_cmd_compare, &err) : MS_EXIT_USAGE;
    enum sheets sheets = sheets_wanted(j);
    if (sheets != SHEETS_NONE)
        return ms_par_rank(j->par) == 0 ? compare_sheets(j, sheets) : MS_EXIT_OK;
    enum ms_rc rc = run_job(j, &err);
    if (j->run.spread.quiet)
        return MS_EXIT_OK;
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    return ms_par_rank(j->par) == 0 ? report_job(j, start) : MS_EXIT_OK;
}

/* Chooses the rules and the file format. msprobe 1 is called as "msprobe -f pytorch compare ..."
 * and writes workbooks. */
static void choose_version(struct compare_args *a)
{
    bool called_so = ms_globals.framework != NULL;
    if (a->compat == COMPAT_NOT_SAID)
        a->compat = called_so ? CMP_OLD : CMP_CUR;
    a->xlsx = a->xlsx || a->highlight || called_so;
}

static int run_command(int argc, char **argv)
{
    struct job j = {.args = {.compat = COMPAT_NOT_SAID, .most = COMPARE_MOST},
                    .par = ms_globals.par};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&compare_cmd_compare, argc, argv, &j.args, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    if (done)
        return MS_EXIT_OK;
    choose_version(&j.args);
    int code = run_here(&j);
    compare_run_free(&j.run);
    cmp_old_input_free(&j.input);
    return code;
}

const struct ms_cmd compare_cmd_compare = {
    .name = "compare",
    .run = run_command,
    .job = MS_JOB_SHARED,
    .brief = "compare two dumps and name what introduces the difference",
    .opts = compare_opts,
    .usage = "[options] -tp PATH -gp PATH",
    .about =
        "Compares the tensors of a run (the target, \"NPU\") with those of another (the golden "
        "side, \"Bench\"), names the operators that introduce the difference rather than pass "
        "it on, and writes a table with a row for each tensor. Runs of two frameworks need no "
        "mapping. Directories are compared rank by rank.\n"
        "\n"
        "  msprobe compare -tp run/step0/rank0/dump.json -gp ref/step0/rank0/dump.json -o out\n"
        "  msprobe compare -tp run/step0 -gp ref/step0 --xlsx -o out\n",
};
