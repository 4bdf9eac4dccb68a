/* SPDX-License-Identifier: MIT
 *
 * cmd_judge: `msprobe judge`.
 */
#include "compare/cmd/show_judge.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

extern const struct ms_cmd compare_cmd_judge;

struct args {
    struct ms_opt_list paths;
    int format;
    int64_t most, memory;
    bool all, exit_code;
};

static const struct ms_opt opts[] = {
    {"TARGET GOLDEN [SUSPECT]", NULL, MS_OPT_REST, offsetof(struct args, paths), .min = 2, .max = 3,
     .help = "two tensor dumps, and the number of a suspect of `msprobe compare` or the name of an "
             "operator; without it suspect 1"},
    {"all", "a", MS_OPT_FLAG, offsetof(struct args, all),
     .help = "judge every operator that both sides have, not one suspect"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000, .help = "with --all, print at most this many verdicts as text; 0: each"},
    {"memory", NULL, MS_OPT_INT, offsetof(struct args, memory), "GIB", .dflt = "8", .min = 1,
     .max = 4096, .help = "most memory for computing one side again"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when a side errs, for scripts"},
    {0}};

/* Counts of the verdicts so far, and where they go. */
struct output {
    const struct args *a;
    struct ms_jwrite w;
    size_t count[BLAME_VERDICTS], shown;
};

static struct ms_progress bar = {.what = "computing again"};

/* With --all, operators on which both sides agree are only counted. */
static void show(struct output *o, const struct blame_pick *pick, const struct blame *b)
{
    const bool quiet = o->a->all && (b->verdict == BLAME_NEITHER || b->verdict == BLAME_INPUTS);
    o->count[b->verdict]++;
    if (!quiet)
        ms_progress_end(&bar);
    if (o->a->format == MS_FORMAT_JSON)
        judge_show_json(&o->w, pick, b);
    else if (!quiet && (o->a->most == 0 || !o->a->all || o->shown++ < (size_t)o->a->most))
        judge_show_text(pick, b);
}

static enum ms_rc judge_all(struct output *o, const struct blame_picks *picks, struct ms_err *err)
{
    struct blame *b = ms_alloc(sizeof *b);
    if (b == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < picks->list.n; i++) {
        ms_progress_part(&bar, i, picks->list.n, MS_PACE_OPERATORS);
        rc = blame_judge_pick(&picks->list.p[i], b, (size_t)o->a->memory << 30, err);
        if (rc == MS_OK)
            show(o, &picks->list.p[i], b);
    }
    ms_progress_end(&bar);
    ms_free(b);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------- */

static enum ms_rc pick(const struct args *a, struct blame_picks *picks, struct ms_err *err)
{
    const char *t = a->paths.items[0], *g = a->paths.items[1];
    if (a->all)
        return blame_pick_all(picks, t, g, err);
    const struct ms_str which = a->paths.n > 2 ? ms_str_of(a->paths.items[2]) : MS_STR("1");
    uint64_t place;
    if (ms_str_u64(which, &place))
        return blame_pick_suspect(picks, t, g, place <= UINT32_MAX ? (uint32_t)place : 0, err);
    return blame_pick_name(picks, t, g, which, err);
}

static void print_counts(const struct output *o)
{
    if (o->a->most != 0 && o->shown > (size_t)o->a->most)
        ms_cmd_more(stdout, o->shown - (size_t)o->a->most, "verdicts");
    printf("target errs %zu, golden errs %zu, both err %zu, within bounds %zu, inputs differ %zu, "
           "undecided %zu\n",
           o->count[BLAME_TARGET], o->count[BLAME_GOLDEN], o->count[BLAME_BOTH],
           o->count[BLAME_NEITHER], o->count[BLAME_INPUTS], o->count[BLAME_UNDECIDED]);
}

static enum ms_rc run_judge(struct output *o, struct ms_err *err)
{
    struct blame_picks picks = {0};
    const bool json = o->a->format == MS_FORMAT_JSON;
    enum ms_rc rc = pick(o->a, &picks, err);
    if (rc == MS_OK && json) {
        ms_jprint_begin(&o->w);
        ms_jwrite_obj(&o->w);
        ms_jwrite_key(&o->w, MS_STR("verdicts"));
        ms_jwrite_arr(&o->w);
        rc = judge_all(o, &picks, err);
        ms_jwrite_arr_end(&o->w);
        ms_jwrite_obj_end(&o->w);
        rc = ms_jprint_end(&o->w, rc, err);
    } else if (rc == MS_OK) {
        rc = judge_all(o, &picks, err);
        if (rc == MS_OK && o->a->all)
            print_counts(o);
        if (rc == MS_OK)
            rc = ms_stdout_finish(err);
    }
    blame_picks_free(&picks);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.most = 10, .memory = 8};
    struct output o = {.a = &a};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&compare_cmd_judge, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_judge, &err);
    if (done)
        return MS_EXIT_OK;
    if (run_judge(&o, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_judge, &err);
    const size_t errs = o.count[BLAME_TARGET] + o.count[BLAME_GOLDEN] + o.count[BLAME_BOTH];
    return a.exit_code && errs != 0 ? MS_EXIT_FOUND : MS_EXIT_OK;
}

const struct ms_cmd compare_cmd_judge = {
    .name = "judge",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "say which of two sides computed an operator wrong",
    .opts = opts,
    .usage = "[options] TARGET GOLDEN [SUSPECT]",
    .about = "Computes an operator again in float64 from its recorded inputs, on each side from "
             "its own, "
             "and says how far each recorded result is off, in units in the last place and "
             "relative, and "
             "whether its type and the length of its sums explain that. The dumps must hold "
             "tensors (task "
             "\"tensor\").\n"
             "\n"
             "  msprobe judge run ref\n"
             "  msprobe judge run/step0 ref/step0 Functional.layer_norm.0.forward\n"
             "  msprobe judge run ref --all --format json | jq '.verdicts[].verdict'\n",
};
