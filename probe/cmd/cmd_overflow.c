/* SPDX-License-Identifier: MIT
 *
 * overflow_check: finds the operator, and its rank, that first made NaN or infinity.
 *
 * The answer is printed before any file is written: a sentence, then the operator's place and its
 * inputs and outputs.
 */
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/cmd/show_overflow.h"

struct args {
    const char *from, *to;
    struct ms_opt_list ignore;
    bool tolerant, exit_code;
    int format;
    int64_t most;
};

static const struct ms_opt opts[] = {
    {"input_path", "i", MS_OPT_PATH, offsetof(struct args, from), "DIR", .required = true,
     .help = "directory of a step; of a whole dump the first step with an answer is told"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, to), "DIR", .dash = MS_DASH_FOLDER,
     .dflt = "./output", .help = "directory for anomaly_analyze_*.json, made when missing"},
    {"ignore", NULL, MS_OPT_LIST, offsetof(struct args, ignore), "WORD", .dash = MS_DASH_WORD,
     .min = 1, .max = 1000,
     .help = "operators that are allowed to overflow: those whose name holds one of these words"},
    {"tolerant", NULL, MS_OPT_FLAG, offsetof(struct args, tolerant),
     .help = "read what is complete of a file that was cut off"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when a NaN or infinity was found"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "8", .min = 0,
     .max = INT32_MAX,
     .help = "of more ranks with an answer than N, show the first in full and one line for as "
             "many; 0: all in full"},
    {0}};

extern const struct ms_cmd probe_cmd_overflow_check;

struct job {
    struct args args;
    struct ms_pool *pool;
    struct probe_overflow found;
    struct ms_buf file; /* the result file; empty when none was written */
    int64_t took_ns;
};

/* ---- text ------------------------------------------------------------- */

static enum ms_rc show_text(struct job *j, struct ms_err *err)
{
    char count[MS_HUMAN_MAX], took[MS_HUMAN_MAX];
    MS_TRY(overflow_show_answers(&j->found, (size_t)j->args.most, err));
    if (j->found.answers.n == 0)
        printf("no NaN and no Inf\n");
    if (j->file.n != 0)
        printf("written to %s\n", ms_buf_z(&j->file));
    printf("read %s dump%s in %s\n", ms_human_count(count, j->found.read),
           j->found.read == 1 ? "" : "s", ms_human_time(took, j->took_ns));
    return MS_OK;
}

/* ---- JSON ------------------------------------------------------------- */

static enum ms_rc put_report(struct ms_jwrite *w, struct job *j, struct ms_err *err)
{
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("findings"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < j->found.answers.n; i++)
        MS_TRY(probe_overflow_put_finding(w, &j->found, &j->found.answers.p[i], err));
    ms_jwrite_arr_end(w);
    ms_jwrite_ki64(w, "dumps", (int64_t)j->found.read);
    ms_jwrite_kf64(w, "seconds", (double)j->took_ns / 1e9);
    ms_jwrite_key(w, MS_STR("files"));
    ms_jwrite_arr(w);
    if (j->file.n != 0)
        ms_jwrite_str(w, ms_buf_slice(&j->file));
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
    return MS_OK;
}

static enum ms_rc show_json(struct job *j, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    return ms_jprint_end(&w, put_report(&w, j, err), err);
}

/* ---- the command ------------------------------------------------------ */

static void show_notes(const struct job *j)
{
    const size_t most = (size_t)j->args.most;
    const size_t notes = ms_cmd_listed(j->found.places.notes.n, most);
    const size_t failures = ms_cmd_listed(j->found.failures.n, most);
    for (size_t i = 0; i < notes; i++)
        ms_cmd_note("overflow_check", "%s", j->found.places.notes.p[i]);
    ms_cmd_more(stderr, j->found.places.notes.n - notes, "notes");
    for (size_t i = 0; i < failures; i++)
        ms_cmd_fail(&probe_cmd_overflow_check, &j->found.failures.p[i].err);
    ms_cmd_more(stderr, j->found.failures.n - failures, "dumps that cannot be read");
}

/* Tells whether there is an operator at fault. The official file lists only such operators, not
 * values that were already present. */
static bool has_origin(const struct probe_overflow *o)
{
    return o->answers.n != 0 && o->answers.p[0].phase != PROBE_OVERFLOW_PRESENT;
}

static enum ms_rc check_dumps(struct job *j, struct ms_err *err)
{
    const struct probe_overflow_conf conf = {.path = j->args.from,
                                             .tolerant = j->args.tolerant,
                                             .ignore = (const char *const *)j->args.ignore.items,
                                             .nignore = j->args.ignore.n};
    int64_t start = ms_clock_ns();
    MS_TRY(ms_pool_new(&j->pool, (unsigned)ms_globals.threads, err));
    MS_TRY(probe_overflow_find(&j->found, &conf, j->pool, err));
    j->took_ns = ms_clock_ns() - start;
    if (has_origin(&j->found))
        MS_TRY(probe_overflow_write(&j->found, j->args.to, &j->file, err));
    if (j->args.format == MS_FORMAT_JSON)
        MS_TRY(show_json(j, err));
    else
        MS_TRY(show_text(j, err));
    MS_TRY(ms_stdout_finish(err));
    show_notes(j);
    return MS_OK;
}

static int run_overflow_check(int argc, char **argv)
{
    struct job j = {.args = {.to = "./output", .most = 8}, .file = {.max = 1 << 16}};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&probe_cmd_overflow_check, argc, argv, &j.args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_overflow_check, &err);
    if (done)
        return MS_EXIT_OK;
    int code = check_dumps(&j, &err) != MS_OK ? ms_cmd_fail(&probe_cmd_overflow_check, &err)
               : j.found.failures.n != 0      ? MS_EXIT_FAIL
               : j.args.exit_code && j.found.answers.n != 0 ? MS_EXIT_FOUND
                                                            : MS_EXIT_OK;
    probe_overflow_free(&j.found);
    ms_buf_free(&j.file);
    ms_pool_free(j.pool);
    return code;
}

const struct ms_cmd probe_cmd_overflow_check = {
    .name = "overflow_check",
    .run = run_overflow_check,
    .job = MS_JOB_FIRST,
    .brief = "find the operator that first made NaN or infinity",
    .opts = opts,
    .usage = "[options] -i DIR [-o DIR]",
    .about =
        "Reads the dumps of all ranks of a step and names the operator whose inputs are good and "
        "whose output is not: before the first communication, else behind the first bad "
        "communication, else after the last. The result file is that of the official tool.\n"
        "\n"
        "  msprobe overflow_check -i out/step0 -o result\n"
        "  msprobe overflow_check -i out --format json | jq -r '.findings[].text'\n",
};
