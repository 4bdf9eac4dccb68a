/* SPDX-License-Identifier: MIT
 *
 * cmd_quantise: `msprobe quantise`.
 */
#include "compare/cmd/show_quantise.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

extern const struct ms_cmd compare_cmd_quantise;

enum { BOTH, WEIGHTS, INPUTS };
static const char *const parts[] = {"both", "weights", "inputs", NULL};
enum { BY_FORMAT, BY_TENSOR, BY_CHANNEL, BY_ROW };
static const char *const sharings[] = {"format", "tensor", "channel", "row", NULL};
static const char *const powers[] = {"floor", "ceil", "even", "rceil", NULL};

struct args {
    struct ms_opt_list path;
    const char *as, *against;
    int format, only, by, power;
    int64_t most, block, axis;
    bool exit_code;
};

/* Stands for an axis that was not given. */
enum { NO_AXIS = 99 };

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help =
         "a dump with tensors (task tensor), or a checkpoint; with --against the quantised one"},
    {"as", NULL, MS_OPT_TEXT, offsetof(struct args, as), "FORMAT",
     .help =
         "the format to try: mxfp8, mxfp8_e5m2, mxfp6, mxfp6_e3m2, mxfp4, nvfp4, fp8, fp8_e5m2, "
         "fp8_e4m3fnuz, fp8_e5m2fnuz, int8, uint8, int4, uint4 (u: with a zero point)"},
    {"against", NULL, MS_OPT_PATH, offsetof(struct args, against), "GOLDEN",
     .help = "a dump or checkpoint of the same model in floats, to compare PATH with"},
    {"only", NULL, MS_OPT_CHOICE, offsetof(struct args, only), "PART", .choices = parts,
     .dflt = "both", .help = "with --as: quantise weights or inputs of layers alone"},
    {"by", NULL, MS_OPT_CHOICE, offsetof(struct args, by), "SHARING", .choices = sharings,
     .dflt = "format",
     .help =
         "with --as fp8, int8 and others without blocks: the elements that share a scale; channel "
         "means one index of --axis, row all elements along --axis"},
    {"block", NULL, MS_OPT_INT, offsetof(struct args, block), "N", .min = 1, .max = 1 << 20,
     .help = "with --as: neighbours along the axis that share a scale"},
    {"axis", NULL, MS_OPT_INT, offsetof(struct args, axis), "N", .min = -32, .max = 31,
     .help =
         "with --as: the axis of channels or of blocks, counted from the end when below 0; without "
         "it channels are those of axis 0, and blocks lie along the axis that a product sums over"},
    {"power", NULL, MS_OPT_CHOICE, offsetof(struct args, power), "RULE", .choices = powers,
     .dflt = "floor",
     .help = "with --as mx...: how a shared exponent follows from the largest value"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "15", .min = 0,
     .max = 1000000, .help = "print at most this many layers and suspects as text; 0: all"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "with --against: exit with 1 when there is a suspect, for scripts"},
    {0}};

/* ---- what to quantise, and how ------------------------------------------------------------ */

static void share_scales(const struct args *a, struct quant_scheme *s, bool weight, bool own_group)
{
    const bool whole_number = quant_facts(s->number)->is_integer;
    if (a->by == BY_TENSOR)
        s->by = QUANT_BY_TENSOR;
    else if (a->by == BY_CHANNEL || (a->by == BY_FORMAT && weight && whole_number && !own_group))
        s->by = QUANT_BY_CHANNEL;
    else if (a->by == BY_ROW)
        s->by = QUANT_BY_GROUP;
    if (a->by == BY_ROW)
        s->group = 0;
    if (s->by == QUANT_BY_CHANNEL)
        s->axis = 0;
    if (a->block != 0) {
        s->by = QUANT_BY_GROUP;
        s->axis = -1;
        s->group = (uint64_t)a->block;
    }
    if (a->axis != NO_AXIS)
        s->axis = (int)a->axis;
    s->power = (enum quant_power)a->power;
}

static enum ms_rc make_plan(const struct args *a, struct quant_plan *plan, struct ms_err *err)
{
    const struct quant_format *f = quant_format_find(a->as);
    if (f == NULL)
        return ms_fail(err, MS_E_ARG, "--as %s: no such format; see --help for their names", a->as);
    if (a->by != BY_FORMAT && f->scheme.scale != QUANT_SCALE_FLOAT)
        return ms_fail(err, MS_E_ARG, "--by: %s has blocks of its own; --block changes their size",
                       a->as);
    *plan = (struct quant_plan){.weight = f->scheme, .input = f->scheme};
    plan->weights = a->only != INPUTS;
    plan->inputs = a->only != WEIGHTS;
    plan->axis_given = a->axis != NO_AXIS;
    share_scales(a, &plan->weight, true, f->has_own_group);
    share_scales(a, &plan->input, false, f->has_own_group);
    return MS_OK;
}

/* ---- the command --------------------------------------------------------------------------- */

static enum ms_rc survey(const struct args *a, struct ms_err *err)
{
    struct quant_plan plan;
    struct quant_survey s;
    MS_TRY(make_plan(a, &plan, err));
    struct ms_progress bar = {.what = "quantising"};
    enum ms_rc rc = quant_survey_run(&s, a->path.items[0], &plan, &bar, err);
    ms_progress_end(&bar);
    MS_TRY(rc);
    if (a->format == MS_FORMAT_JSON)
        rc = quantise_show_survey_json(&s, &plan, err);
    else
        quantise_show_survey(&s, &plan, (size_t)a->most);
    quant_survey_free(&s);
    return rc == MS_OK ? ms_stdout_finish(err) : rc;
}

static enum ms_rc compare(const struct args *a, bool *found, struct ms_err *err)
{
    struct quant_comparison c;
    struct ms_progress bar = {.what = "comparing"};
    enum ms_rc rc = quant_compare(&c, a->path.items[0], a->against, &bar, err);
    ms_progress_end(&bar);
    MS_TRY(rc);
    if (a->format == MS_FORMAT_JSON)
        rc = quantise_show_comparison_json(&c, err);
    else
        quantise_show_comparison(&c, (size_t)a->most);
    *found = c.faults != 0;
    quant_comparison_free(&c);
    return rc == MS_OK ? ms_stdout_finish(err) : rc;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.most = 15, .axis = NO_AXIS};
    struct ms_err err = {0};
    bool done, found = false;
    if (ms_opt_parse(&compare_cmd_quantise, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_quantise, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc;
    if ((a.as == NULL) == (a.against == NULL))
        rc =
            ms_fail(&err, MS_E_ARG,
                    "give --as FORMAT, to see what it would cost, or --against GOLDEN, to compare");
    else
        rc = a.as != NULL ? survey(&a, &err) : compare(&a, &found, &err);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_quantise, &err);
    return a.exit_code && found ? MS_EXIT_FOUND : MS_EXIT_OK;
}

const struct ms_cmd compare_cmd_quantise = {
    .name = "quantise",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "say what a number format costs, or what a quantised run lost",
    .opts = opts,
    .usage = "[options] PATH --as FORMAT | PATH --against GOLDEN",
    .about = "With --as: quantises the weights and inputs of all layers of a run in floats, or the "
             "weights of "
             "a checkpoint, and lists the layers that would lose most, before anyone trains with "
             "the format.\n"
             "\n"
             "With --against: compares a quantised run or checkpoint with one in floats. Each "
             "layer gets the "
             "signal-to-noise ratio of its output, and the parts of the error that its weight, its "
             "input, the "
             "layers before and its sums add. A tensor that was quantised wrongly is named with "
             "the fault: "
             "scale axis, block size, stale scale, cut off outliers, zero point, rounding, "
             "dequantised twice.\n"
             "\n"
             "  msprobe quantise dump --as mxfp4\n"
             "  msprobe quantise model.safetensors --as int4 --block 64\n"
             "  msprobe quantise dump_fp8 --against dump_bf16 --exit_code\n",
};
