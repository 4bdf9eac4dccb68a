/* SPDX-License-Identifier: MIT
 *
 * graph_visualize: dumps as a tree in a database, for the TensorBoard plugin and
 * the viewers of this suite.
 */
#define MS_LOG_DOMAIN "graph"
#include "compare/graph.h"
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/jwrite.h"
#include "probe/base/opt.h"

#include <sys/stat.h>

#define ORDER "tp-cp-ep-dp-pp"

struct args {
    const char *target, *golden, *out, *layers;
    bool fuzzy, overflow, progress, md5_index, log_items;
    int compat, suspects, batch, file_type, align;
    struct ms_opt_list rank_size, tp, pp, vpp, order;
    struct graph_param merge[2];
};

static const char *const compats[] = {"cur", "strict", NULL};
static const char *const yes_no[] = {"yes", "no", NULL};
static const char *const aligns[] = {"auto", "always", "exact", NULL};
static const char *const file_types[] = {"db", "json", NULL};
static const char *const batches[] = {"list", "first", "none", NULL};

static const struct ms_opt opts[] = {
    {"target_path", "tp", MS_OPT_PATH, offsetof(struct args, target), "PATH", .required = true,
     .help =
         "the run to look into: a rank's directory, one of ranks, or one of steps; or a .vis file "
         "of an earlier version, which becomes a database"},
    {"golden_path", "gp", MS_OPT_PATH, offsetof(struct args, golden), "PATH",
     .may_be_empty = true, /* so the official plugin says that there is none */
     .help = "the run to compare with; without it the graph of one run is made"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, out), "DIR", .required = true,
     .help = "where the database goes; made when missing"},
    {"layer_mapping", "lm", MS_OPT_OPTIONAL, offsetof(struct args, layers), "FILE",
     .help = "match renamed layers, or two frameworks, by the rules of FILE; without FILE by "
             "names alone"},
    {"fuzzy_match", "fm", MS_OPT_FLAG, offsetof(struct args, fuzzy),
     .help = "match modules by name wherever they are, and their operators by name and order"},
    {"align", NULL, MS_OPT_CHOICE, offsetof(struct args, align), "WHICH", .dflt = "auto",
     .choices = aligns,
     .help = "how nodes find their partners: by name where both sides have the same names and by "
             "alignment else, always by alignment, or by name and place alone"},
    {"overflow_check", "oc", MS_OPT_FLAG, offsetof(struct args, overflow),
     .help = "say for every node where NaN, infinity or an exploding norm comes from"},
    {"suspects", NULL, MS_OPT_CHOICE, offsetof(struct args, suspects), "WHICH", .dflt = "yes",
     .choices = yes_no,
     .help = "find the nodes that introduce the difference, into the table x_findings"},
    {"is_print_compare_log", "tensor_log", MS_OPT_FLAG, offsetof(struct args, log_items),
     .help = "say on standard error which items' tensors were compared"},
    {"is_print_progress_log", "progress_log", MS_OPT_FLAG, offsetof(struct args, progress),
     .help = "print progress on standard output, line by line, as the plugin reads it"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct args, compat), "WHICH", .dflt = "cur",
     .choices = compats,
     .help = "strict: the official tool's database row for row, its defects included"},
    {"compat_md5_index", NULL, MS_OPT_FLAG, offsetof(struct args, md5_index),
     .help = "with digests, show operators that make empty memory as errors, as the official "
             "tool does"},
    {"batch_p2p", NULL, MS_OPT_CHOICE, offsetof(struct args, batch), "HOW", .dflt = "list",
     .choices = batches,
     .help = "how batch_isend_irecv is linked to other ranks: every member in a list, the first "
             "member, or not at all"},
    {.name = "Ranks put together again", .kind = MS_OPT_HEAD},
    {"rank_size", NULL, MS_OPT_LIST, offsetof(struct args, rank_size), "N", .min = 1, .max = 2,
     .help = "merge this many ranks into the model they are parts of: of the target, and of the "
             "golden side"},
    {"tp", NULL, MS_OPT_LIST, offsetof(struct args, tp), "N", .min = 1, .max = 2,
     .help = "how many ranks hold parts of one tensor, for each side"},
    {"pp", NULL, MS_OPT_LIST, offsetof(struct args, pp), "N", .min = 1, .max = 2,
     .help = "how many ranks hold layers of one pipeline, for each side"},
    {"vpp", NULL, MS_OPT_LIST, offsetof(struct args, vpp), "N", .min = 1, .max = 2, .dflt = "1",
     .help = "chunks of a pipeline's ranks, for each side"},
    {"order", NULL, MS_OPT_LIST, offsetof(struct args, order), "ORDER", .min = 1, .max = 2,
     .dflt = ORDER,
     .help = "how ranks are laid out where their communication does not tell, for each side"},
    {"file_type", NULL, MS_OPT_CHOICE, offsetof(struct args, file_type), "TYPE", .dflt = "db",
     .choices = file_types,
     .help = "json: write merged ranks as dumps, step0/rank0/dump.json and so on"},
    {0}};

extern const struct ms_cmd compare_cmd_graph_visualize;

/* ---- what the plugin reads ------------------------------------------------------ */

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

static void on_progress(void *ctx, int percent)
{
    const struct args *a = ctx;
    if (a->progress && percent < 100)
        print_progress(percent, true, NULL);
}

static void on_note(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "msprobe graph_visualize: %s\n", line);
}

/* ---- talk ------------------------------------------------------------------------ */

static void show(const struct graph_made *m, bool dual, bool a_dump, int64_t took_ns)
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

/* ---- ranks to be merged ------------------------------------------------------------ */

static enum ms_rc take_size(const struct ms_opt_list *l, const char *name, unsigned side,
                            uint32_t *out, struct ms_err *err)
{
    uint64_t v;
    if (!ms_str_u64(ms_str_of(l->items[side]), &v) || v == 0 || v > 1 << 20)
        return ms_fail(err, MS_E_ARG, "--%s %s: a whole number from 1 on is wanted", name,
                       l->items[side]);
    *out = (uint32_t)v;
    return MS_OK;
}

/* A number for each side, or none at all where one is not needed. */
static enum ms_rc take_sizes(struct args *a, unsigned sides, struct ms_err *err)
{
    const struct {
        const struct ms_opt_list *list;
        const char *name;
        size_t into;
        bool needed;
    } sizes[] = {{&a->rank_size, "rank_size", offsetof(struct graph_param, rank_size), true},
                 {&a->tp, "tp", offsetof(struct graph_param, tp), true},
                 {&a->pp, "pp", offsetof(struct graph_param, pp), true},
                 {&a->vpp, "vpp", offsetof(struct graph_param, vpp), false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct ms_opt_list *l = sizes[i].list;
        if (l->n == 0 && sizes[i].needed)
            return ms_fail(err, MS_E_ARG, "--rank_size needs --%s", sizes[i].name);
        if (l->n != sides && l->n != 0)
            return ms_fail(err, MS_E_ARG, "--%s takes %s here", sizes[i].name,
                           sides == 1 ? "one number" : "two numbers, target and golden side");
        for (unsigned side = 0; side < l->n; side++)
            MS_TRY(take_size(l, sizes[i].name, side,
                             (uint32_t *)(void *)((char *)&a->merge[side] + sizes[i].into), err));
    }
    return MS_OK;
}

static enum ms_rc take_merge(struct args *a, struct ms_err *err)
{
    unsigned sides = a->golden != NULL && a->golden[0] != '\0' ? 2 : 1;
    bool any = a->tp.n + a->pp.n + a->vpp.n + a->order.n != 0;
    a->merge[0] = a->merge[1] = (struct graph_param){.vpp = 1, .order = ORDER};
    if (a->file_type == 1 && sides == 2)
        return ms_fail(err, MS_E_ARG, "--file_type json writes one run: leave --golden_path out");
    if (a->rank_size.n == 0) {
        if (any)
            return ms_fail(err, MS_E_ARG, "--tp, --pp, --vpp and --order need --rank_size");
        if (a->file_type == 1)
            on_note(NULL, "--file_type json is for merged ranks, see --rank_size; writing a "
                          "database");
        a->file_type = 0;
        return MS_OK;
    }
    if (a->order.n != 0 && a->order.n != sides)
        return ms_fail(err, MS_E_ARG, "--order takes one text for each side");
    for (unsigned side = 0; side < a->order.n; side++)
        a->merge[side].order = a->order.items[side];
    return take_sizes(a, sides, err);
}

static enum ms_rc check_args(struct args *a, struct ms_err *err)
{
    if (a->fuzzy && a->align != 0)
        return ms_fail(err, MS_E_ARG,
                       "-fm says itself how nodes match; leave out --align beside it");
    return take_merge(a, err);
}

static enum ms_rc make(struct args *a, struct graph_made *made, struct ms_err *err)
{
    struct ms_pool *pool = NULL;
    if (ms_str_ends(ms_str_of(a->target), MS_STR(".vis")))
        return graph_convert(a->target, a->out, made, err);
    struct graph_conf conf = {.target = a->target,
                              .golden = a->golden,
                              .out_dir = a->out,
                              .strict = a->compat == 1,
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
    enum ms_rc rc = graph_make(&conf, pool, made, err);
    ms_pool_free(pool);
    return rc;
}

static int run(int argc, char **argv)
{
    struct args a = {0};
    struct graph_made made;
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&compare_cmd_graph_visualize, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_graph_visualize, &err);
    if (done)
        return MS_EXIT_OK;
    int64_t start = ms_clock_ns();
    enum ms_rc rc = check_args(&a, &err);
    if (rc == MS_OK)
        rc = make(&a, &made, &err);
    if (a.progress)
        print_progress(rc == MS_OK ? 100 : 0, false, rc == MS_OK ? NULL : err.msg);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_graph_visualize, &err);
    if (!a.progress)
        show(&made, a.golden != NULL && a.golden[0] != '\0', a.file_type == 1,
             ms_clock_ns() - start);
    return MS_EXIT_OK;
}

const struct ms_cmd compare_cmd_graph_visualize = {
    .name = "graph_visualize",
    .run = run,
    .brief = "make a graph of a dump, or of two side by side",
    .opts = opts,
    .usage = "[options] -tp PATH [-gp PATH] -o DIR",
    .about =
        "Reads construct.json, dump.json and stack.json of every rank and step and writes the tree "
        "of modules and operators into one database, build_TIME.vis.db or compare_TIME.vis.db. The "
        "TensorBoard plugin of the official tool opens it. With a golden path nodes are matched, "
        "their figures compared and judged.\n"
        "\n"
        "  msprobe graph_visualize -tp out/step0 -o graphs\n"
        "  msprobe graph_visualize -tp npu/step0 -gp gpu/step0 -o graphs -oc\n",
};
