/* SPDX-License-Identifier: MIT
 *
 * cmd_bisect: `msprobe bisect`.
 */
#include "compare/bisect/bisect.h"
#include "compare/cmd/show_judge.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <stdio.h>

extern const struct ms_cmd compare_cmd_bisect;

struct args {
    const char *good, *bad, *output;
    int64_t step, memory;
    int format;
};

static const struct ms_opt opts[] = {
    {"good", NULL, MS_OPT_TEXT, offsetof(struct args, good), "COMMAND", .required = true,
     .help = "command line of the program that is right"},
    {"bad", NULL, MS_OPT_TEXT, offsetof(struct args, bad), "COMMAND", .required = true,
     .help = "command line of the one that is wrong"},
    {"output", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dash = MS_DASH_FOLDER,
     .required = true,
     .help = "new directory for dumps, logs and the program that shows the operator"},
    {"step", NULL, MS_OPT_INT, offsetof(struct args, step), "N", .dflt = "0", .min = 0,
     .max = INT32_MAX, .help = "training step that is looked at, from 0"},
    MS_OPT_FORMAT(struct args, format),
    {"memory", NULL, MS_OPT_INT, offsetof(struct args, memory), "GIB", .dflt = "8", .min = 1,
     .max = 4096, .help = "most memory for computing the operator again"},
    {0}};

static void say(const char *line)
{
    ms_cmd_note("bisect", "%s", line);
}

/* ---- text -------------------------------------------------------------------------------------- */

static void show_text(const struct args *a, const struct bisected *b)
{
    if (b->noisy[0] != '\0')
        printf("two runs of --good differ, in %s: fix its seeds, or the answer may be noise\n",
               b->noisy);
    if (b->end == BISECT_EQUAL) {
        puts("nothing differs beyond noise");
        return;
    }
    if (b->end == BISECT_ALONE) {
        printf("%s\n", b->alone);
        return;
    }
    for (size_t i = 1; i < b->n; i++)
        printf("also a suspect: %.*s\n", MS_STR_ARG(b->suspects[i].list.p[0].target));
    judge_show_text(&b->judged.list.p[0], b->blame);
    if (b->has_program)
        printf("written to %s/bug/reproduce.py\n", a->output);
    else
        printf("no program of the operator: %s\n", b->why_not);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static enum ms_rc show_json(const struct args *a, const struct bisected *b, struct ms_err *err)
{
    static const char *const ends[] = {"equal", "one_side", "judged"};
    struct ms_jwrite w;
    struct ms_buf program = {.max = 4096};
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "end", ends[b->end]);
    ms_jwrite_kstr(&w, "noisy", b->noisy);
    ms_jwrite_kstr(&w, "text", b->alone);
    ms_jwrite_key(&w, MS_STR("suspects"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < b->n; i++)
        ms_jwrite_str(&w, b->suspects[i].list.p[0].target);
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("verdict"));
    if (b->blame != NULL)
        judge_show_json(&w, &b->judged.list.p[0], b->blame);
    else
        ms_jwrite_null(&w);
    if (b->has_program)
        ms_buf_printf(&program, "%s/bug/reproduce.py", a->output);
    ms_jwrite_ktext(&w, "program", ms_buf_slice(&program));
    ms_jwrite_obj_end(&w);
    ms_buf_free(&program);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- the command ------------------------------------------------------------------------------- */

static int run_command(int argc, char **argv)
{
    struct args a = {.memory = 8};
    struct bisected b;
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&compare_cmd_bisect, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_bisect, &err);
    if (done)
        return MS_EXIT_OK;
    const struct bisect_how how = {.good = a.good,
                                   .bad = a.bad,
                                   .dir = a.output,
                                   .step = a.step,
                                   .limit = (size_t)a.memory << 30,
                                   .say = say};
    enum ms_rc rc = bisect(&how, &b, &err);
    if (rc == MS_OK && a.format == MS_FORMAT_JSON)
        rc = show_json(&a, &b, &err);
    else if (rc == MS_OK) {
        show_text(&a, &b);
        rc = ms_stdout_finish(&err);
    }
    bisect_free(&b);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&compare_cmd_bisect, &err);
}

const struct ms_cmd compare_cmd_bisect = {
    .name = "bisect",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "narrow two programs down to one operator in a few short runs",
    .opts = opts,
    .usage = "[options] --good COMMAND --bad COMMAND -o DIR",
    .about =
        "Runs a program that is right and one that is wrong, both as they are, and looks at one "
        "training step. Three runs record statistics of all operators, two of them of the good "
        "program, which shows whether it is deterministic. Two more record the tensors of the "
        "suspects alone, at most three operators. The first one is judged as msprobe judge does, "
        "and written as a program of its own.\n"
        "\n"
        "  msprobe bisect --good 'python3 train.py' --bad 'python3 train.py --fused' -o found\n"
        "  msprobe bisect --good ./old.sh --bad ./new.sh --step 12 -o found\n",
};
