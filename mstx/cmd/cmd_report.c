/* SPDX-License-Identifier: MIT
 *
 * report: prints findings, steps and times of a run.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"

#include "viz/model/finding.h"

#include "probe/base/jprint.h"
#include "probe/base/opt.h"

struct args {
    struct ms_opt_list path;
    int format;
    int64_t most;
    double flops, peak;
    const char *structure;
    bool breakdown;
};

enum { AS_TEXT, AS_JSON, AS_PROMETHEUS };
static const char *const formats[] = {"text", "json", "prometheus", NULL};

static const struct ms_opt opts[] = {
    {"DIR", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "directory of a run, or its run.db"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = formats,
     .help = "text for people, json for programs, prometheus for its collectors"},
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .min = 0, .max = INT32_MAX,
     .help = "show this many findings, steps, ranks, communicators and names in text, those alike "
             "as one; 0: each; without it as many as fit one screen"},
    {"breakdown", NULL, MS_OPT_FLAG, offsetof(struct args, breakdown),
     .help = "what the devices did, why they were idle, how kernels were launched, and which took "
             "the time; of traces with kernels"},
    {"flops", NULL, MS_OPT_REAL, offsetof(struct args, flops), "N", .min = 0, .max = INT64_MAX,
     .help = "floating point operations of the model in a step of one rank, as 1.5e15"},
    {"peak", NULL, MS_OPT_REAL, offsetof(struct args, peak), "N", .min = 0, .max = INT64_MAX,
     .help = "operations a second that the device of a rank can do: with it MFU and HFU are shown"},
    {"structure", NULL, MS_OPT_PATH, offsetof(struct args, structure), "DUMP.JSON",
     .help = "dump of one step of one rank whose shapes tell the operations instead of --flops"},
    {0}};

extern const struct ms_cmd mstx_cmd_report;

enum { TEXT_MAX = 1 << 30 };

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
    if (a->format != AS_JSON) {
        struct ms_buf text = {.max = TEXT_MAX};
        if (a->format == AS_PROMETHEUS)
            mstx_report_prometheus(r, &text);
        else
            mstx_report_text(tl, r, path, a->most < 0 ? MSTX_REPORT_SCREEN : (size_t)a->most,
                             &text);
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
    if (is_told != (a->peak > 0))
        return ms_fail(err, MS_E_ARG, "%s",
                       is_told ? "--flops and --structure need --peak"
                               : "--peak needs --flops or --structure");
    return a->structure != NULL ? mstx_flops_of_dump(f, a->structure, err) : MS_OK;
}

static int run_report(int argc, char **argv)
{
    struct args a = {.most = -1};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&mstx_cmd_report, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_report, &err);
    if (done)
        return MS_EXIT_OK;
    struct mstx_tl *tl;
    struct mstx_report r;
    struct mstx_flops flops;
    enum ms_rc rc = find_flops(&a, &flops, &err);
    if (rc == MS_OK)
        rc = mstx_run_open(&tl, a.path.items[0], ms_globals.par, &err);
    if (rc == MS_OK && tl != NULL) {
        rc = mstx_report_read(tl, true, &r, &err);
        if (rc == MS_OK) {
            r.use.flops = flops;
            r.use.peak = a.peak;
            r.has_breakdown = a.breakdown;
            if (a.breakdown)
                rc = mstx_breakdown_measure(tl, &r.breakdown, &err);
            if (rc == MS_OK)
                rc = print_report(tl, &r, &a, &err);
            mstx_report_free(&r);
        }
        mstx_tl_close(tl);
    }
    return ms_cmd_end(&mstx_cmd_report, rc, &err);
}

const struct ms_cmd mstx_cmd_report = {
    .name = "report",
    .run = run_report,
    .job = MS_JOB_SHARED,
    .brief = "say what a run's marks and ranges show: findings, steps, times",
    .opts = opts,
    .usage = "[options] DIR",
    .about = "Shows what is wrong first: ranks that make the others wait, slow links, hangs, lost "
             "records, ranges that never ended, slow steps, files that cannot be read. Then the "
             "steps and, for every name in every domain, how often it occurs and how long it "
             "takes.\n"
             "\n"
             "  msprobe report run1\n"
             "  msprobe report --format json run1\n"
             "  msprobe report --flops 1.5e15 --peak 3.12e14 run1\n",
};
