/* SPDX-License-Identifier: MIT
 *
 * graph_visualize: writes dumps as a tree into a database, for the TensorBoard plugin and
 * the viewers of msprobe.
 */
#define MS_LOG_DOMAIN "graph"
#include "compare/cmd/graph_args.h"
#include "compare/official/rules_official.h"
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/progress.h"

#include <sys/stat.h>

extern const struct ms_cmd compare_cmd_graph_visualize;

/* ---- progress for the TensorBoard plugin ---------------------------------------- */

static void print_progress(int percent, bool running, const char *error)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, 1 << 16);
    ms_jwrite_obj(&w);
    ms_jwrite_ki64(&w, "current_progress", percent);
    ms_jwrite_kbool(&w, "process_running", running);
    ms_jwrite_key(&w, MS_STR("error_msg"));
    ms_jwrite_arr(&w);
    if (error != NULL)
        ms_jwrite_str(&w, ms_str_of(error));
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    if (ms_jwrite_finish(&w, NULL) == MS_OK)
        printf("PROGRESS: %.*s\n", (int)w.buf.n, w.buf.p);
    fflush(stdout);
    ms_jwrite_free(&w);
}

/* A line of progress for a person. */
static struct ms_progress bar = {.what = "building"};

static void on_progress(void *ctx, int percent)
{
    const struct graph_args *a = ctx;
    if (!a->progress)
        ms_progress_show(&bar, &(struct ms_pace){.share = percent / 100.0});
    else if (percent < 100)
        print_progress(percent, true, NULL);
}

static void on_note(void *ctx, const char *line)
{
    (void)ctx;
    ms_progress_end(&bar);
    ms_cmd_note("graph_visualize", "%s", line);
}

/* ---- text ------------------------------------------------------------------------ */

static void print_made(const struct graph_made *m, bool dual, bool a_dump, int64_t took_ns)
{
    char a[MS_HUMAN_MAX], b[MS_HUMAN_MAX], c[MS_HUMAN_MAX];
    struct stat st;
    printf("%s\n", m->path);
    printf("  nodes       %s", ms_human_count(a, m->nodes[0]));
    if (dual)
        printf(" and %s, %s matched", ms_human_count(b, m->nodes[1]),
               ms_human_count(c, m->matched));
    printf("; %u dump%s of %u step%s\n", m->ranks, m->ranks == 1 ? "" : "s", m->steps,
           m->steps == 1 ? "" : "s");
    if (m->left_out != 0)
        printf("  left out    %u dump%s that could not be read\n", m->left_out,
               m->left_out == 1 ? "" : "s");
    if (dual)
        printf("  states      %s error, %s warning, %s pass\n",
               ms_human_count(a, m->states[GRAPH_ERROR]),
               ms_human_count(b, m->states[GRAPH_WARNING]),
               ms_human_count(c, m->states[GRAPH_PASS]));
    if (m->suspects != 0)
        printf("  suspects    %zu, the first %s\n", m->suspects, m->suspect);
    if (a_dump)
        return;
    uint64_t bytes = stat(m->path, &st) == 0 ? (uint64_t)st.st_size : 0;
    printf("  written     %s in %s\n", ms_human_bytes(a, bytes), ms_human_time(b, took_ns));
}

static enum ms_rc print_json(const struct graph_made *m, int64_t took_ns, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "path", m->path);
    ms_jwrite_ki64(&w, "target_nodes", (int64_t)m->nodes[0]);
    ms_jwrite_ki64(&w, "golden_nodes", (int64_t)m->nodes[1]);
    ms_jwrite_ki64(&w, "matched", (int64_t)m->matched);
    ms_jwrite_ki64(&w, "dumps", m->ranks);
    ms_jwrite_ki64(&w, "steps", m->steps);
    ms_jwrite_ki64(&w, "left_out", m->left_out);
    ms_jwrite_ki64(&w, "error", (int64_t)m->states[GRAPH_ERROR]);
    ms_jwrite_ki64(&w, "warning", (int64_t)m->states[GRAPH_WARNING]);
    ms_jwrite_ki64(&w, "pass", (int64_t)m->states[GRAPH_PASS]);
    ms_jwrite_ki64(&w, "suspects", (int64_t)m->suspects);
    ms_jwrite_kstr(&w, "first_suspect", m->suspects != 0 ? m->suspect : "");
    ms_jwrite_kf64(&w, "seconds", (double)took_ns / 1e9);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- the command ------------------------------------------------------------------- */

static enum ms_rc make_graphs(struct graph_args *a, struct graph_made *made, struct ms_err *err)
{
    struct ms_pool *pool = NULL;
    struct graph_conf conf = {.target = a->target,
                              .golden = a->golden,
                              .out_dir = a->out,
                              .rules = a->compat == 1 ? &graph_rules_official : NULL,
                              .fuzzy = a->fuzzy,
                              .overflow = a->overflow,
                              .matching = a->align == 1   ? CMP_MATCH_ALWAYS
                                          : a->align == 2 ? CMP_MATCH_EXACT
                                                          : CMP_MATCH_AUTO,
                              .map_layers = a->layers != NULL,
                              .layer_file =
                                  a->layers != NULL && a->layers[0] != '\0' ? a->layers : NULL,
                              .suspects = a->suspects == 0,
                              .log_items = a->log_items,
                              .md5_index = a->md5_index,
                              .batch = (enum graph_batch)a->batch,
                              .merge = a->rank_size.n != 0 ? a->merge : NULL,
                              .json = a->file_type == 1,
                              .progress = on_progress,
                              .note = on_note,
                              .ctx = a};
    MS_TRY(ms_pool_new(&pool, (unsigned)ms_globals.threads, err));
    enum ms_rc rc = graph_run(&conf, pool, made, err);
    ms_progress_end(&bar);
    ms_pool_free(pool);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct graph_args a = {0};
    struct graph_made made;
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&compare_cmd_graph_visualize, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_graph_visualize, &err);
    if (done)
        return MS_EXIT_OK;
    int64_t start = ms_clock_ns();
    enum ms_rc rc = graph_args_check(&a, on_note, &err);
    if (rc == MS_OK)
        rc = make_graphs(&a, &made, &err);
    if (a.progress)
        print_progress(rc == MS_OK ? 100 : 0, false, rc == MS_OK ? NULL : err.msg);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_graph_visualize, &err);
    if (!a.progress && a.format == MS_FORMAT_JSON) {
        if (print_json(&made, ms_clock_ns() - start, &err) != MS_OK)
            return ms_cmd_fail(&compare_cmd_graph_visualize, &err);
    } else if (!a.progress)
        print_made(&made, a.golden != NULL && a.golden[0] != '\0', a.file_type == 1,
                   ms_clock_ns() - start);
    return made.left_out != 0 ? MS_EXIT_FAIL : MS_EXIT_OK; /* each was told with its reason */
}

const struct ms_cmd compare_cmd_graph_visualize = {
    .name = "graph_visualize",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "write the graph of a dump, or of two dumps side by side",
    .opts = graph_opts,
    .usage = "[options] -tp PATH [-gp PATH] -o DIR",
    .about =
        "Reads construct.json, dump.json and stack.json of every rank and step and writes the tree "
        "of modules and operators into one database, build_TIME.vis.db or compare_TIME.vis.db. The "
        "TensorBoard plugin of the official tool opens it. With a golden path the nodes of both "
        "sides are matched, and their figures are compared and judged.\n"
        "\n"
        "  msprobe graph_visualize -tp out/step0 -o graphs\n"
        "  msprobe graph_visualize -tp npu/step0 -gp gpu/step0 -o graphs -oc\n",
};
