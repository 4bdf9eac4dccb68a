/* SPDX-License-Identifier: MIT
 *
 * report: prints findings, steps and times of a run.
 */
#include "mstx/cmd/report_against.h"
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"

#include "viz/model/finding.h"

#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/screen.h"

struct args {
    struct ms_opt_list path;
    int format;
    int64_t most;
    double flops, peak;
    const char *structure;
    bool breakdown;
    const char *against, *steps, *old_steps, *gate;
    struct ms_opt_list noise;
};

static const char *const formats[] = {"text", "json", "prometheus", "markdown", "junit", NULL};

static const struct ms_opt opts[] = {
    {"DIR", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "directory of a run, or its run.db"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = formats,
     .help =
         "text for people, json for programs, prometheus for its collectors; markdown and junit "
         "with --against"},
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .min = 0, .max = INT32_MAX,
     .help = "show this many findings, steps, ranks, communicators and names in text, those alike "
             "as one; 0: each; without it as many as fit one screen"},
    {"breakdown", NULL, MS_OPT_FLAG, offsetof(struct args, breakdown),
     .help = "what the devices did, why they were idle, how kernels were launched, and which took "
             "the time; of traces with kernels"},
    {"flops", NULL, MS_OPT_REAL, offsetof(struct args, flops), "N", .min = 0, .max = INT64_MAX,
     .help = "floating point operations of the model in a step of one rank, as 1.5e15"},
    {"peak", NULL, MS_OPT_REAL, offsetof(struct args, peak), "N", .min = 0, .max = INT64_MAX,
     .help = "operations a second that the device of a rank can do: with it MFU and HFU are shown; "
             "without --flops and --structure from the shapes in a profiler's trace"},
    {"structure", NULL, MS_OPT_PATH, offsetof(struct args, structure), "DUMP.JSON",
     .help = "dump of one step of one rank whose shapes tell the operations instead of --flops"},
    {.name = "why is it slower than another run?", .kind = MS_OPT_HEAD},
    {"against", NULL, MS_OPT_PATH, offsetof(struct args, against), "OLD",
     .help = "name what makes a step longer than in this run: rank, operator, kernel, loading, "
             "communication, with what it costs a step"},
    {"noise", NULL, MS_OPT_LIST, offsetof(struct args, noise), "OLD2", .min = 1, .max = 64,
     .help = "further runs of the old program: what differs among them is no cause"},
    {"steps", NULL, MS_OPT_TEXT, offsetof(struct args, steps), "N-M",
     .help = "compare steps with these numbers alone"},
    {"old_steps", NULL, MS_OPT_TEXT, offsetof(struct args, old_steps), "N-M",
     .help = "the steps of OLD, where they are others; so two parts of one run are compared"},
    {"gate", NULL, MS_OPT_TEXT, offsetof(struct args, gate), "SHARE",
     .help = "status 1 when the causes make a step longer by more than this: 2% or 0.02"},
    {0}};

extern const struct ms_cmd mstx_cmd_report;

enum { TEXT_MAX = 1 << 30, CAUSES_SHOWN = 10 };

/* Writes the link at which viewers show a finding. */
static void write_where(const struct mstx_finding *f, struct ms_buf *out)
{
    struct viz_place at;
    if (viz_finding_place(&at, ms_str_of(f->kind), f->rank, f->first_step, f->from_ns, f->to_ns))
        viz_place_write(&at, out);
}

static enum ms_rc print_report(struct mstx_tl *tl, const struct mstx_report *r,
                               const struct args *a, struct ms_err *err)
{
    const char *path = a->path.items[0];
    if (a->format != MSTX_REPORT_JSON) {
        struct ms_buf text = {.max = TEXT_MAX};
        if (a->format == MSTX_REPORT_PROMETHEUS)
            mstx_report_prometheus(r, &text);
        else
            mstx_report_text(tl, r, ms_opt_shown(path),
                             a->most < 0 ? MSTX_REPORT_SCREEN : (size_t)a->most, &text);
        if (a->format == MSTX_REPORT_TEXT)
            return ms_screen_print(&text, err);
        enum ms_rc rc = ms_buf_check(&text, err);
        if (rc == MS_OK)
            fwrite(text.p, 1, text.n, stdout);
        ms_buf_free(&text);
        return rc;
    }
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    mstx_report_json(tl, r, path, write_where, &w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* Finds the operations of a step: given by --flops, or counted in a dump. */
static enum ms_rc find_flops(const struct args *a, struct mstx_flops *f, struct ms_err *err)
{
    const bool is_told = a->flops > 0 || a->structure != NULL;
    *f = (struct mstx_flops){a->flops, a->flops};
    if (is_told && a->peak <= 0)
        return ms_fail(err, MS_E_ARG, "--flops and --structure need --peak");
    return a->structure != NULL ? mstx_flops_of_dump(f, a->structure, err) : MS_OK;
}

/* Reports one run. */
static enum ms_rc report_alone(const struct args *a, struct ms_err *err)
{
    struct mstx_tl *tl;
    struct mstx_report r;
    struct mstx_flops flops;
    if (a->format > MSTX_REPORT_PROMETHEUS || a->noise.n != 0 || a->steps != NULL ||
        a->old_steps != NULL || a->gate != NULL)
        return ms_fail(
            err, MS_E_ARG,
            "--noise, --steps, --old_steps, --gate and the formats markdown and junit need "
            "--against OLD");
    MS_TRY(find_flops(a, &flops, err));
    MS_TRY(mstx_run_open(&tl, a->path.items[0], ms_globals.par, err));
    if (tl == NULL)
        return MS_OK;
    enum ms_rc rc = mstx_report_read(tl, true, &r, err);
    if (rc == MS_OK) {
        r.use.flops = flops;
        r.use.peak = a->peak;
        r.has_breakdown = a->breakdown;
        if (a->peak > 0 && flops.machine <= 0)
            rc = mstx_flops_of_trace(tl, &r.steps, &r.flops, err);
        if (rc == MS_OK && r.flops.n != 0)
            mstx_use_flops(tl, &r.steps, &r.flops, &r.use);
        if (rc == MS_OK && a->breakdown)
            rc = mstx_breakdown_measure(tl, &r.breakdown, err);
        if (rc == MS_OK)
            rc = print_report(tl, &r, a, err);
        mstx_report_free(&r);
    }
    mstx_tl_close(tl);
    return rc;
}

static enum ms_rc report_against(const struct args *a, bool *slower, struct ms_err *err)
{
    const struct mstx_report_against how = {.old_path = a->against,
                                            .new_path = a->path.items[0],
                                            .noise = a->noise,
                                            .steps = a->steps,
                                            .old_steps = a->old_steps,
                                            .gate = a->gate,
                                            .form = (enum mstx_report_form)a->format,
                                            .most = a->most < 0 ? CAUSES_SHOWN : (size_t)a->most};
    return mstx__report_against(&how, slower, err);
}

static int run_report(int argc, char **argv)
{
    struct args a = {.most = -1};
    struct ms_err err = {0};
    bool done, slower = false;
    if (ms_opt_parse(&mstx_cmd_report, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_report, &err);
    if (done)
        return MS_EXIT_OK;
    const enum ms_rc rc =
        a.against != NULL ? report_against(&a, &slower, &err) : report_alone(&a, &err);
    return slower ? MS_EXIT_FOUND : ms_cmd_end(&mstx_cmd_report, rc, &err);
}

const struct ms_cmd mstx_cmd_report = {
    .name = "report",
    .run = run_report,
    .job = MS_JOB_SHARED,
    .brief = "say what a run's marks and ranges show: findings, steps, times",
    .opts = opts,
    .usage = "[options] DIR [--against OLD]",
    .about =
        "Shows what is wrong first: ranks that make the others wait, slow links, hangs, lost "
        "records, ranges that never ended, slow steps, files that cannot be read. Then the "
        "steps and, for every name in every domain, how often it occurs and how long it "
        "takes.\n"
        "\n"
        "  msprobe report run1\n"
        "  msprobe report --format json run1\n"
        "  msprobe report --flops 1.5e15 --peak 3.12e14 run1\n"
        "\n"
        "With --against another run is the old one, and the answer is why this one is slower.\n"
        "\n"
        "  msprobe report run2 --against run1 --gate 2%\n",
};
