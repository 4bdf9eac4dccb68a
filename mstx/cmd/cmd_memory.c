/* SPDX-License-Identifier: MIT
 *
 * cmd_memory: `msprobe memory`.
 */
#include "mstx/memory/mem_read.h"
#include "mstx/memory/mem_report.h"

#include "probe/base/io.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"
#include "probe/base/screen.h"

extern const struct ms_cmd mstx_cmd_memory;

struct args {
    struct ms_opt_list path;
    const char *against;
    int64_t most;
    int format;
    bool exit_code;
};

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "a memory snapshot or trace of PyTorch, a table of MindSpore or Ascend, a run, or a "
             "folder with those of all ranks"},
    {"against", NULL, MS_OPT_PATH, offsetof(struct args, against), "OTHER",
     .help = "show what PATH uses more or less than OTHER: another run, or a plan of it"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000, .help = "print at most this many rows of each table; 0: each"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when memory grows from step to step, a request failed, or ranks are out "
             "of balance"},
    {0}};

enum { TEXT_MAX = 1 << 30 };

static enum ms_rc print_report(const struct args *a, const struct mstx_mem_report *r,
                               const struct mstx_mem_report *old, struct ms_err *err)
{
    const size_t most = (size_t)a->most;
    if (a->format == MS_FORMAT_JSON) {
        struct ms_jwrite w;
        ms_jprint_begin(&w);
        if (old != NULL)
            mstx__mem_against_json(r, old, most, &w);
        else
            mstx__mem_report_json(r, most, &w);
        return ms_jprint_end(&w, MS_OK, err);
    }
    struct ms_buf text = {.max = TEXT_MAX};
    if (old != NULL)
        mstx__mem_against_text(r, old, most, &text);
    else
        mstx__mem_report_text(r, most, &text);
    return ms_screen_print(&text, err);
}

/* What is read of one path, and its answers. */
struct side {
    struct mstx_mem_log *log;
    struct mstx_mem_report report;
};

static enum ms_rc read_side(struct side *s, const char *path, struct ms_err *err)
{
    struct ms_progress bar = {.what = "reading"};
    const enum ms_rc rc = mstx__mem_read(&s->log, path, &bar, err);
    ms_progress_end(&bar);
    MS_TRY(rc);
    return mstx__mem_report_make(&s->report, ms_opt_shown(path), s->log, err);
}

static void side_free(struct side *s)
{
    mstx__mem_report_free(&s->report);
    mstx__mem_log_free(s->log);
}

static int run_memory(int argc, char **argv)
{
    struct args a = {.most = 10};
    struct ms_err err = {0};
    struct side now = {0}, old = {0};
    bool done;
    if (ms_opt_parse(&mstx_cmd_memory, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_memory, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = read_side(&now, a.path.items[0], &err);
    if (rc == MS_OK && a.against != NULL)
        rc = read_side(&old, a.against, &err);
    if (rc == MS_OK)
        rc = print_report(&a, &now.report, a.against != NULL ? &old.report : NULL, &err);
    const bool found = rc == MS_OK && a.exit_code && mstx__mem_has_findings(&now.report);
    side_free(&now);
    side_free(&old);
    if (rc != MS_OK)
        return ms_cmd_fail(&mstx_cmd_memory, &err);
    return found ? MS_EXIT_FOUND : MS_EXIT_OK;
}

const struct ms_cmd mstx_cmd_memory = {
    .name = "memory",
    .run = run_memory,
    .job = MS_JOB_FIRST,
    .brief = "say what lived at the peak of memory, who owns it, and what grows",
    .opts = opts,
    .usage = "[options] PATH [--against OTHER]",
    .about =
        "Answers what used the memory at its peak, by kind (parameter, gradient, optimizer state, "
        "activation, temporary), module, operator and line of the program; which line leaves "
        "something behind in every step; how much the allocator holds without using it; whether "
        "ranks are in balance; and what the request that failed would have needed. Reads memory "
        "snapshots of PyTorch (torch.cuda.memory._dump_snapshot; nothing in the pickle is "
        "executed), traces of its profiler with profile_memory=True, and its raw memory "
        "timelines.\n"
        "\n"
        "  msprobe memory snapshot.pickle\n"
        "  msprobe memory traces/                  # one trace a rank\n"
        "  msprobe memory new.pickle --against old.pickle\n",
};
