/* SPDX-License-Identifier: MIT
 *
 * export: writes a run as files that other tools open.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/foreign/export_run.h"

#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

struct args {
    struct ms_opt_list path;
    int format;
    const char *output;
    bool json;
};

/* In the order of enum mstx_export_format. */
static const char *const formats[] = {"chrome",    "trace-view",      "perfetto", "csv",
                                      "ascend-db", "flight-recorder", NULL};

static const struct ms_opt opts[] = {
    {"DIR", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "directory of a run, or its run.db"},
    {"format", "f", MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .choices = formats,
     .required = true, .help = "whose files to write; trace-view is Ascend's JSON"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "OUT", .dash = MS_DASH_OUTPUT,
     .required = true,
     .help = "file to write; of ascend-db a directory, unless it ends in .db; of flight-recorder "
             "a directory"},
    {"json", NULL, MS_OPT_FLAG, offsetof(struct args, json),
     .help = "say what was written as JSON, for programs"},
    {0}};

extern const struct ms_cmd mstx_cmd_export;

struct watch {
    struct ms_progress bar;
    uint64_t done, all; /* events */
};

static void on_read(void *ctx, uint64_t events)
{
    struct watch *w = ctx;
    w->done += events;
    const double share = w->done < w->all ? (double)w->done / (double)w->all : 1;
    ms_progress_show(&w->bar, &(struct ms_pace){share, w->done, MS_PACE_ROWS});
}

static enum ms_rc export_run(struct mstx_tl *tl, const struct args *a, uint64_t *events,
                             struct ms_err *err)
{
    struct watch w = {.bar = {.what = "writing"}};
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++)
        w.all += mstx_tl_track(tl, i)->events;
    mstx_tl_watch(tl, on_read, &w);
    enum ms_rc rc = mstx_export_run(tl, (enum mstx_export_format)a->format, a->output, err);
    mstx_tl_watch(tl, NULL, NULL);
    ms_progress_end(&w.bar);
    *events = w.all;
    return rc;
}

static enum ms_rc show_written(const struct args *a, uint64_t events, struct ms_err *err)
{
    struct ms_jwrite w;
    const char *shown = ms_opt_shown(a->output);
    if (!a->json) {
        if (shown == a->output)
            puts(shown);
        return MS_OK;
    }
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "path", shown);
    ms_jwrite_kstr(&w, "format", formats[a->format]);
    ms_jwrite_ki64(&w, "events", (int64_t)events);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static int run_export(int argc, char **argv)
{
    struct args a = {0};
    struct ms_err err = {0};
    struct mstx_tl *tl;
    uint64_t events = 0;
    bool done;
    if (ms_opt_parse(&mstx_cmd_export, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_export, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = mstx_run_open(&tl, a.path.items[0], ms_globals.par, &err);
    if (rc == MS_OK && tl != NULL) {
        rc = export_run(tl, &a, &events, &err);
        mstx_tl_close(tl);
    }
    if (rc == MS_OK)
        rc = show_written(&a, events, &err);
    return ms_cmd_end(&mstx_cmd_export, rc, &err);
}

const struct ms_cmd mstx_cmd_export = {
    .name = "export",
    .run = run_export,
    .job = MS_JOB_SHARED,
    .brief = "write a run as Chrome trace, Perfetto trace, CSV or Ascend database",
    .opts = opts,
    .usage = "[options] -f FORMAT -o OUT DIR",
    .about = "Writes what a run recorded for other viewers: chrome and perfetto for "
             "ui.perfetto.dev and chrome://tracing, trace-view and ascend-db for MindStudio "
             "Insight and msprof-analyze, csv for spreadsheets, flight-recorder for analysers of "
             "PyTorch's Flight Recorder.\n"
             "\n"
             "  msprobe export -f perfetto -o run1.pftrace run1\n"
             "  msprobe export -f ascend-db -o profile run1\n",
};
