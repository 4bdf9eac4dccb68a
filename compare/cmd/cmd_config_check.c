/* SPDX-License-Identifier: MIT
 *
 * cmd_config_check: `msprobe config_check`.
 */
#include "compare/cmd/show_ckpt.h"
#include "compare/config/config_checks.h"
#include "compare/config/config_pack.h"
#include "compare/config/log_params.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

#include <unistd.h>

extern const struct ms_cmd compare_cmd_config_check;

enum { COMPAT_CUR, COMPAT_STRICT };
static const char *const compats[] = {"cur", "strict", NULL};

struct args {
    struct ms_opt_list dump, compare, verl, verify, slime;
    const char *output;
    int64_t most;
    int compat, format;
    bool state, exit_code;
};

static const struct ms_opt opts[] = {
    {"dump", "d", MS_OPT_LIST, offsetof(struct args, dump), "FILE", .may_be_empty = true,
     .dash = MS_DASH_WORD, /* a script is known by its name */
     .help = "collect the environment, the Python packages and the hyperparameters of scripts "
             "(.sh, .yaml) into an archive"},
    {"compare", "c", MS_OPT_LIST, offsetof(struct args, compare), "PATH", .min = 2, .max = 2,
     .help = "compare two such archives (.zip), or two checkpoints: files or folders of PyTorch, "
             "safetensors, distributed checkpoints, Megatron, DeepSpeed or MindSpore"},
    {"verl_compare", "vc", MS_OPT_LIST, offsetof(struct args, verl), "LOG", .min = 2, .max = 2,
     .help = "compare the parameters that two trainings of verl printed, the NPU's log first"},
    {"verl_verify", "vv", MS_OPT_LIST, offsetof(struct args, verify), "FILE", .min = 1, .max = 2,
     .help =
         "check a log of verl against the values that a YAML file before it wants, or without one "
         "against those known to change results"},
    {"slime_compare", "sc", MS_OPT_LIST, offsetof(struct args, slime), "LOG", .min = 2, .max = 2,
     .help = "compare the parameters that two trainings of slime printed, the NPU's log first"},
    {"output", "o", MS_OPT_PATH, offsetof(struct args, output), "PATH", .dash = MS_DASH_OUTPUT,
     .help = "what is written: an archive (config_check_pack.zip), a folder (config_check_result), "
             "or the figures of checkpoints (ckpt_similarity.json)"},
    {"state", NULL, MS_OPT_FLAG, offsetof(struct args, state),
     .help = "compare optimizer states and other tensors of checkpoints too"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct args, compat), "WAY", .choices = compats,
     .dflt = "cur",
     .help = "strict: as the official tool, which exchanges the two sides of the environment"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000, .help = "print at most this many differences; 0: each"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when the two sides differ"},
    {0}};

/* ---- checkpoints ------------------------------------------------------------------------------ */

static bool show_progress(void *ctx, size_t done, size_t all)
{
    ms_progress_part(ctx, done, all, MS_PACE_WEIGHTS);
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
    struct ms_progress bar = {.what = "comparing weights"};
    struct ckpt_similarity s;
    struct ms_err err = {0};
    if (ckpt_similarity_new(&s, paths[0], paths[1], a->state, show_progress, &bar, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    enum ms_rc rc = ckpt_similarity_write(&s, output, &err);
    const bool differs = is_different(&s);
    if (rc == MS_OK && a->format == MS_FORMAT_JSON)
        rc = ckpt_show_json(&s, output, &err);
    else if (rc == MS_OK) {
        ckpt_show_text(&s, paths, (size_t)a->most);
        printf("written to %s\n", ms_opt_shown(output));
        rc = ms_stdout_finish(&err);
    }
    ckpt_similarity_free(&s);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    return a->exit_code && differs ? MS_EXIT_FOUND : MS_EXIT_OK;
}

/* ---- archives --------------------------------------------------------------------------------- */

static void put_file(struct ms_jwrite *w, const char *folder, const char *file)
{
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_puts(&path, ms_opt_shown(folder));
    ms_buf_puts(&path, file);
    ms_jwrite_key(w, MS_STR("files"));
    ms_jwrite_arr(w);
    ms_jwrite_str(w, ms_buf_slice(&path));
    ms_jwrite_arr_end(w);
    ms_buf_free(&path);
}

static enum ms_rc print_pack_json(const struct cfg_pack_sum *sum, const char *output,
                                  struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_ki64(&w, "variables", (int64_t)sum->variables);
    ms_jwrite_ki64(&w, "hidden", (int64_t)sum->hidden);
    ms_jwrite_ki64(&w, "packages", (int64_t)sum->packages);
    ms_jwrite_ki64(&w, "parameters", (int64_t)sum->parameters);
    put_file(&w, output, "");
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static int pack(const struct args *a)
{
    const char *output = a->output != NULL ? a->output : "config_check_pack.zip";
    struct cfg_pack_sum sum;
    struct ms_err err = {0};
    if (ms_opt_shown(output) == output && !ms_str_ends(ms_str_of(output), MS_STR(".zip"))) {
        ms_fail(&err, MS_E_ARG, "%s: an archive's name ends in .zip", output);
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    }
    enum ms_rc rc = cfg_pack(output, a->dump.items, a->dump.n, &sum, &err);
    if (rc == MS_OK && a->format == MS_FORMAT_JSON)
        rc = print_pack_json(&sum, output, &err);
    else if (rc == MS_OK) {
        printf("%llu variables, %llu packages, %llu hyperparameters written to %s\n",
               (unsigned long long)sum.variables, (unsigned long long)sum.packages,
               (unsigned long long)sum.parameters, ms_opt_shown(output));
        if (sum.hidden != 0)
            printf("%llu variables left out, whose names look like secrets (MSPROBE_SECRETS lists "
                   "the words)\n",
                   (unsigned long long)sum.hidden);
        rc = ms_stdout_finish(&err);
    }
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&compare_cmd_config_check, &err);
}

static void print_cell(const struct ms_plain *v)
{
    struct ms_buf text = {.max = 1 << 16};
    if (v != NULL)
        cfg_value_str(&text, v);
    struct ms_str s = ms_buf_slice(&text), line = MS_STR("");
    (void)ms_str_split(&s, '\n', &line);
    printf("%.*s", line.n < 60 ? (int)line.n : 60, line.n != 0 ? line.p : "");
    ms_buf_free(&text);
}

static void print_table(const struct cfg_table *t, size_t most)
{
    const size_t rows = cfg_table_rows(t), shown = ms_cmd_listed(rows, most);
    printf("%-16s %s\n", t->name, t->verdict);
    for (size_t i = 0; strcmp(t->verdict, "pass") != 0 && i < shown; i++) {
        printf("  ");
        for (unsigned c = 0; c < t->columns; c++) {
            printf("%s", c != 0 ? "  " : "");
            print_cell(t->cells.p[i * t->columns + c]);
        }
        printf("\n");
    }
    if (strcmp(t->verdict, "pass") != 0)
        ms_cmd_more(stdout, rows - shown, "rows");
}

static enum ms_rc print_result_json(const struct cfg_result *r, const char *output,
                                    struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, MS_STR("checks"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < r->tables.n; i++) {
        ms_jwrite_obj(&w);
        ms_jwrite_kstr(&w, "name", r->tables.p[i].name);
        ms_jwrite_kstr(&w, "verdict", r->tables.p[i].verdict);
        ms_jwrite_ki64(&w, "rows", (int64_t)cfg_table_rows(&r->tables.p[i]));
        ms_jwrite_obj_end(&w);
    }
    ms_jwrite_arr_end(&w);
    put_file(&w, output, "/result.xlsx");
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static int compare_archives(const struct args *a)
{
    const char *output = a->output != NULL ? a->output : "config_check_result";
    struct cfg_result r;
    struct ms_err err = {0};
    if (cfg_compare(&r, a->compare.items[0], a->compare.items[1], a->compat == COMPAT_STRICT,
                    &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    bool differs = false;
    enum ms_rc rc = cfg_result_write(&r, output, &err);
    for (size_t i = 0; rc == MS_OK && i < r.tables.n; i++) {
        if (a->format == MS_FORMAT_TEXT)
            print_table(&r.tables.p[i], (size_t)a->most);
        differs = differs || strcmp(r.tables.p[i].verdict, "pass") != 0;
    }
    if (rc == MS_OK && a->format == MS_FORMAT_JSON)
        rc = print_result_json(&r, output, &err);
    cfg_result_free(&r);
    if (rc == MS_OK && a->format == MS_FORMAT_TEXT) {
        printf("written to %s/result.xlsx\n", output);
        rc = ms_stdout_finish(&err);
    }
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    return a->exit_code && differs ? MS_EXIT_FOUND : MS_EXIT_OK;
}

/* ---- logs ---------------------------------------------------------------------------------------- */

static enum ms_rc print_params_json(const struct cfg_params_sum *sum, const char *dir,
                                    const char *file, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_ki64(&w, "rows", (int64_t)sum->rows);
    ms_jwrite_ki64(&w, "differ", (int64_t)sum->differ);
    put_file(&w, dir, file);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static int compare_logs(const struct args *a)
{
    static const char *const defaults[] = {
        "verl_param_compare_result", "slime_param_compare_result", "verl_param_verify_result"};
    const enum cfg_params_what what = a->verl.n != 0    ? CFG_PARAMS_VERL
                                      : a->slime.n != 0 ? CFG_PARAMS_SLIME
                                                        : CFG_PARAMS_VERIFY;
    const struct ms_opt_list *files = what == CFG_PARAMS_VERL    ? &a->verl
                                      : what == CFG_PARAMS_SLIME ? &a->slime
                                                                 : &a->verify;
    const char *dir = a->output != NULL ? a->output : defaults[what];
    const char *file =
        what == CFG_PARAMS_VERIFY ? "/hyper_params_verify.csv" : "/hyper_params_compare.csv";
    struct cfg_params_sum sum;
    struct ms_err err = {0};
    enum ms_rc rc = cfg_params_compare(what, files->n > 1 ? files->items[0] : NULL,
                                       files->items[files->n - 1], dir, &sum, &err);
    if (rc == MS_OK && a->format == MS_FORMAT_JSON) {
        rc = print_params_json(&sum, dir, file, &err);
    } else if (rc == MS_OK) {
        printf("%llu of %llu parameters differ; written to %s%s\n", (unsigned long long)sum.differ,
               (unsigned long long)sum.rows, dir, file);
        rc = ms_stdout_finish(&err);
    }
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_config_check, &err);
    return a->exit_code && sum.differ != 0 ? MS_EXIT_FOUND : MS_EXIT_OK;
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
        return ms_str_ends(ms_str_of(a.compare.items[0]), MS_STR("zip")) ? compare_archives(&a)
                                                                         : compare_checkpoints(&a);
    if (a.verl.n + a.verify.n + a.slime.n != 0)
        return compare_logs(&a);
    if (a.dump.items != NULL)
        return pack(&a);
    ms_fail(
        &err, MS_E_ARG,
        "nothing to do: give -d to collect, -c PATH PATH to compare, or -vc, -vv or -sc for logs");
    return ms_cmd_fail(&compare_cmd_config_check, &err);
}

const struct ms_cmd compare_cmd_config_check = {
    .name = "config_check",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "compare configurations and checkpoints of two runs",
    .opts = opts,
    .usage = "[options] -d [FILE...] | -c PATH PATH [-o OUTPUT]",
    .about =
        "Answers whether two runs were configured alike and began alike. With -d it collects the "
        "configuration of a run into an archive; ConfigChecker of the Python package adds "
        "weights, inputs and calls of random functions. With -c it compares two archives and "
        "writes result.xlsx, or compares the weights of two checkpoints and writes their "
        "distances as JSON. Nothing in an archive or a checkpoint is executed.\n"
        "\n"
        "  msprobe config_check -d train.sh model.yaml -o run1.zip\n"
        "  msprobe config_check -c run1.zip run2.zip -o compared\n"
        "  msprobe config_check -c run1/iter_0000100 run2/iter_0000100 -o ckpt_similarity.json\n",
};
