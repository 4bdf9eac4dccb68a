/* SPDX-License-Identifier: MIT
 *
 * cmd_parse: msprobe parse: converts tensor files to .npy or .pt.
 */
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"
#include "probe/tensor/convert.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

struct args {
    const char *from, *to;
    int as, format;
};

static const char *const kinds[] = {"npy", "pt", NULL};

static const struct ms_opt opts[] = {
    {"dump_path", "d", MS_OPT_PATH, offsetof(struct args, from), "PATH", .required = true,
     .help = "tensor file, or directory with tensor files at any depth"},
    {"type", "t", MS_OPT_CHOICE, offsetof(struct args, as), "TYPE", .dflt = "pt", .choices = kinds,
     .help = "what to write; bf16 becomes float32 in npy"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, to), "DIR", .dash = MS_DASH_FOLDER,
     .dflt = "./output", .help = "directory to write into, made when missing"},
    MS_OPT_FORMAT(struct args, format),
    {0},
};

static void show_failure(void *ctx, const struct ms_err *why)
{
    ms_progress_end(ctx);
    ms_cmd_note("parse", "%s", why->msg);
}

static void show_progress(void *ctx, uint64_t done)
{
    ms_progress_show(ctx, &(struct ms_pace){-1, done, MS_PACE_FILES});
}

extern const struct ms_cmd probe_cmd_parse;

static enum ms_rc show_result(const struct args *a, const struct probe_converted *c,
                              struct ms_err *err)
{
    struct ms_jwrite w;
    if (a->format == MS_FORMAT_TEXT) {
        printf("%llu written to %s, %llu failed\n", (unsigned long long)c->written, a->to,
               (unsigned long long)c->failed);
        return ms_stdout_finish(err);
    }
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "directory", a->to);
    ms_jwrite_ki64(&w, "written", (int64_t)c->written);
    ms_jwrite_ki64(&w, "failed", (int64_t)c->failed);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static int run_command(int argc, char **argv)
{
    struct args args = {.to = "./output", .as = 1};
    struct ms_err err = {0};
    bool done = false;
    struct ms_progress bar = {.what = "converting"};
    if (ms_opt_parse(&probe_cmd_parse, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_parse, &err);
    if (done)
        return MS_EXIT_OK;
    const struct probe_convert how = {.from = args.from,
                                      .to = args.to,
                                      .as = args.as == 0 ? PROBE_FILE_NPY : PROBE_FILE_PT,
                                      .on_failure = show_failure,
                                      .on_progress = show_progress,
                                      .ctx = &bar};
    struct probe_converted converted;
    if (probe_convert(&how, &converted, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_parse, &err);
    ms_progress_end(&bar);
    if (show_result(&args, &converted, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_parse, &err);
    return converted.failed != 0 ? MS_EXIT_FAIL : MS_EXIT_OK;
}

const struct ms_cmd probe_cmd_parse = {
    .name = "parse",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "convert tensor files to .npy or .pt",
    .opts = opts,
    .usage = "[options] -d PATH [-t npy|pt] [-o DIR]",
    .about =
        "Converts one tensor file, or every tensor file below a directory, to NumPy's .npy or\n"
        "PyTorch's .pt.  Nothing in a .pt is executed.  Names and sub-directories are kept.\n"
        "A file that cannot be read is named with the reason and the rest is converted; the\n"
        "exit status is then 3.\n"
        "\n"
        "  msprobe parse -d dump/step0/rank0/dump_tensor_data -t npy -o arrays\n",
};
