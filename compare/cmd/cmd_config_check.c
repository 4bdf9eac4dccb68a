/* SPDX-License-Identifier: MIT
 *
 * cmd_config_check: `msprobe config_check`.
 */
#include "compare/cmd/show_ckpt.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

#include <unistd.h>

extern const struct ms_cmd compare_cmd_config_check;

struct args {
    struct ms_opt_list dump, compare, verl_compare, verl_verify, slime_compare;
    const char *output;
    int64_t most;
    bool state, exit_code;
};

static const struct ms_opt opts[] = {
    {"compare", "c", MS_OPT_LIST, offsetof(struct args, compare), "PATH", .min = 2, .max = 2,
     .help = "compare two checkpoints: files or folders of PyTorch, safetensors, distributed "
             "checkpoints, Megatron, DeepSpeed or MindSpore"},
    {"output", "o", MS_OPT_PATH, offsetof(struct args, output), "PATH",
     .help = "what is written; ckpt_similarity.json unless given"},
    {"state", NULL, MS_OPT_FLAG, offsetof(struct args, state),
     .help = "compare optimizer states and other tensors of checkpoints too"},
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000, .help = "print at most this many differences; 0: each"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when the two sides differ"},
    {0}};

/* ---- checkpoints ------------------------------------------------------------------------------ */

static bool show_progress(void *ctx, size_t done, size_t all)
{
    const bool *terminal = ctx;
    if (*terminal)
        fprintf(stderr, "\r%zu of %zu weights%s", done, all, done == all ? "\n" : "");
    return true;
}

static bool is_different(const struct ckpt_similarity *s)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        if (!s->rows.p[i].same_shape || !s->rows.p[i].f.equal)
            return true;
    }
    return s->only[0].n != 0 || s->only[1].n != 0;
}

static int compare_checkpoints(const struct args *a)
{
    const char *const paths[2] = {a->compare.items[0], a->compare.items[1]};
    const char *output = a->output != NULL ? a->output : "ckpt_similarity.json";
    bool terminal = ms_progress_ok(2);
    struct ckpt_similarity s;
    struct ms_err err = {0};
    if (ckpt_similarity_new(&s, paths[0], paths[1], a->state, show_progress, &terminal, &err) !=
        MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    enum ms_rc rc = ckpt_similarity_write(&s, output, &err);
    const bool differs = is_different(&s);
    if (rc == MS_OK) {
        ckpt_show_text(&s, paths, (size_t)a->most);
        printf("written to %s\n", output);
        rc = ms_stdout_finish(&err);
    }
    ckpt_similarity_free(&s);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    return a->exit_code && differs ? MS_EXIT_FOUND : MS_EXIT_OK;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.most = 10};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&compare_cmd_config_check, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    if (done)
        return MS_EXIT_OK;
    if (a.compare.n != 0)
        return compare_checkpoints(&a);
    ms_fail(&err, MS_E_ARG, "nothing to do: give -c PATH PATH to compare");
    return ms_cmd_fail(&compare_cmd_config_check, &err);
}

const struct ms_cmd compare_cmd_config_check = {
    .name = "config_check",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "compare configurations and checkpoints of two runs",
    .opts = opts,
    .usage = "[options] -c PATH PATH [-o OUTPUT]",
    .about = "Compares the weights of two checkpoints and writes their distances as JSON. Nothing in a "
             "checkpoint is executed.\n"
             "\n"
             "  msprobe config_check -c run1/iter_0000100 run2/iter_0000100 -o ckpt_similarity.json\n",
};
