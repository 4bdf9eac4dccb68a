/* SPDX-License-Identifier: MIT
 *
 * export: a run as files that other tools open.
 */
#include "mstx/tl_export.h"

#include "probe/base/opt.h"

enum format {
    FORMAT_CHROME,
    FORMAT_TRACE_VIEW,
    FORMAT_PERFETTO,
    FORMAT_CSV,
    FORMAT_ASCEND_DB,
    FORMAT_FLIGHT
};

struct args {
    struct ms_opt_list path;
    int format;
    const char *output;
};

static const char *const formats[] = {"chrome",    "trace-view",      "perfetto", "csv",
                                      "ascend-db", "flight-recorder", NULL};

static const struct ms_opt opts[] = {
    {"DIR", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "directory of a run, or its run.db"},
    {"format", "f", MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .choices = formats,
     .required = true, .help = "whose files to write; trace-view is Ascend's JSON"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "OUT", .required = true,
     .help = "file to write; of ascend-db a directory, unless it ends in .db; of flight-recorder "
             "a directory"},
    {0}};

extern const struct ms_cmd mstx_cmd_export;

typedef enum ms_rc (*stream_fn)(struct mstx_tl *tl, struct ms_out *out, struct ms_err *err);

static enum ms_rc to_file(struct mstx_tl *tl, const char *path, stream_fn fn, struct ms_err *err)
{
    struct ms_out *out;
    MS_TRY(ms_out_create(&out, path, err));
    enum ms_rc rc = fn(tl, out, err);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

static enum ms_rc export_to(struct mstx_tl *tl, const struct args *a, struct ms_err *err)
{
    switch ((enum format)a->format) {
    case FORMAT_CHROME:
        return to_file(tl, a->output, mstx_export_chrome, err);
    case FORMAT_TRACE_VIEW:
        return to_file(tl, a->output, mstx_export_trace_view, err);
    case FORMAT_PERFETTO:
        return to_file(tl, a->output, mstx_export_perfetto, err);
    case FORMAT_CSV:
        return mstx_export_csv(tl, a->output, err);
    case FORMAT_FLIGHT:
        return mstx_export_flight(tl, a->output, err);
    default:
        return mstx_export_ascend_db(tl, a->output, err);
    }
}

static int run_export(int argc, char **argv)
{
    struct args a = {0};
    struct ms_err err = {0};
    struct mstx_tl *tl;
    bool done;
    if (ms_opt_parse(&mstx_cmd_export, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_export, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = mstx_tl_open(&tl, a.path.items[0], &err);
    if (rc == MS_OK) {
        rc = export_to(tl, &a, &err);
        mstx_tl_close(tl);
    }
    if (rc != MS_OK)
        return ms_cmd_fail(&mstx_cmd_export, &err);
    puts(a.output);
    return MS_EXIT_OK;
}

const struct ms_cmd mstx_cmd_export = {
    .name = "export",
    .run = run_export,
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
