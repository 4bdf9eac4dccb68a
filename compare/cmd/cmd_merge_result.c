/* SPDX-License-Identifier: MIT
 *
 * cmd_merge_result: `msprobe merge_result`.
 */
#include "compare/official/merge.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <time.h>

struct args {
    const char *input, *output, *config;
    int format;
};

static const struct ms_opt opts[] = {
    {"input_dir", "i", MS_OPT_PATH, offsetof(struct args, input), "DIR", .dash = MS_DASH_FOLDER,
     .required = true,
     .help = "directory with compare_result_rankN_TIME.xlsx or .csv of at least two ranks"},
    {"output_dir", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dash = MS_DASH_FOLDER,
     .required = true, .help = "directory for the workbook; created when missing"},
    {"config_path", "config", MS_OPT_PATH, offsetof(struct args, config), "FILE", .required = true,
     .help = "YAML that selects operators and columns: 'api: [names]', 'compare_index: [columns]'"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .choices = ms_formats,
     .dflt = "text", .help = "format of the summary: text for people, json for programs"},
    {0}};

extern const struct ms_cmd compare_cmd_merge_result;

static void tell_text(const struct cmp_merge *m, const char *path)
{
    printf("%zu ranks, %zu row%s, %u sheet%s\n", m->ranks.n, m->names.keys.n,
           m->names.keys.n == 1 ? "" : "s", m->nfigures, m->nfigures == 1 ? "" : "s");
    for (size_t i = 0; i < m->ranks.n; i++)
        printf("  rank%-6llu %8zu rows  %s\n", (unsigned long long)m->ranks.p[i].rank,
               m->ranks.p[i].rows, m->ranks.p[i].paths.p[0]);
    printf("written: %s\n", path);
}

static void json_list(struct ms_jwrite *w, const char *key)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
}

static enum ms_rc tell_json(const struct cmp_merge *m, const char *path, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "file", path);
    json_list(&w, "sheets");
    for (unsigned i = 0; i < m->nfigures; i++)
        ms_jwrite_str(&w, ms_str_of(m->figures[i]));
    ms_jwrite_arr_end(&w);
    json_list(&w, "ranks");
    for (size_t i = 0; i < m->ranks.n; i++) {
        ms_jwrite_obj(&w);
        ms_jwrite_key(&w, MS_STR("rank"));
        ms_jwrite_u64(&w, m->ranks.p[i].rank);
        ms_jwrite_key(&w, MS_STR("rows"));
        ms_jwrite_u64(&w, m->ranks.p[i].rows);
        ms_jwrite_obj_end(&w);
    }
    ms_jwrite_arr_end(&w);
    json_list(&w, "notes");
    for (size_t i = 0; i < m->notes.n; i++)
        ms_jwrite_str(&w, ms_str_of(m->notes.p[i]));
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static enum ms_rc path_of(struct ms_buf *path, const char *dir, struct ms_err *err)
{
    char stamp[16];
    struct tm tm;
    time_t now = time(NULL);
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &tm);
    ms_buf_printf(path, "%s/multi_ranks_compare_merge_%s.xlsx", dir, stamp);
    return ms_buf_check(path, err);
}

static enum ms_rc merge(const struct args *a, struct cmp_merge *m,
                        const struct cmp_merge_conf *conf, struct ms_buf *path, struct ms_err *err)
{
    enum ms_rc rc = cmp_merge_read(m, a->input, conf, err);
    for (size_t i = 0; i < m->notes.n; i++)
        ms_cmd_note("merge_result", "%s", m->notes.p[i]);
    MS_TRY(rc);
    MS_TRY(path_of(path, a->output, err));
    return cmp_merge_write(m, ms_buf_z(path), err);
}

static int run_command(int argc, char **argv)
{
    struct args a = {0};
    struct ms_err err = {0};
    struct cmp_merge m = {0};
    struct cmp_merge_conf conf = {0};
    struct ms_buf path = {.max = 1 << 16};
    bool done;
    if (ms_opt_parse(&compare_cmd_merge_result, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_merge_result, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = cmp_merge_conf_read(&conf, a.config, &err);
    if (rc == MS_OK)
        rc = merge(&a, &m, &conf, &path, &err);
    if (rc == MS_OK && a.format == MS_FORMAT_JSON)
        rc = tell_json(&m, ms_buf_z(&path), &err);
    else if (rc == MS_OK)
        tell_text(&m, ms_buf_z(&path));
    cmp_merge_free(&m);
    cmp_merge_conf_free(&conf);
    ms_buf_free(&path);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&compare_cmd_merge_result, &err);
}

const struct ms_cmd compare_cmd_merge_result = {
    .name = "merge_result",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "put the compare results of several ranks side by side",
    .opts = opts,
    .usage = "[options] -i DIR -o DIR -config FILE",
    .about =
        "Takes the tables that `msprobe compare` wrote for several ranks and makes a workbook of "
        "them: a sheet for each figure, a row for each tensor of the operators that the "
        "configuration names, a column for each rank. Where a figure is not defined the sheet "
        "shows what both sides hold.\n"
        "\n"
        "  msprobe compare -tp run/step0 -gp ref/step0 -o out\n"
        "  msprobe merge_result -i out -o merged -config merge.yaml\n"
        "\n"
        "The configuration:\n"
        "\n"
        "  api: [Distributed.all_reduce, Distributed.all_gather_into_tensor]\n"
        "  compare_index: [Max diff, NormRelativeErr]    # left out: every figure\n",
};
