/* SPDX-License-Identifier: MIT
 *
 * cmd_compare: `msprobe compare`.
 */
#include "compare/advisor.h"
#include "compare/atb.h"
#include "compare/compare.h"
#include "compare/diff.h"
#include "compare/kernels.h"
#include "compare/old_input.h"
#include "compare/out.h"
#include "compare/pace.h"
#include "compare/partners.h"
#include "compare/ranks.h"
#include "compare/report.h"
#include "compare/spread.h"
#include "compare/trees.h"
#include "probe/base/clock.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

#include <time.h>
#include <unistd.h>

extern const struct ms_cmd compare_cmd_compare;

enum { FORMAT_TEXT, FORMAT_JSON };
enum { NOT_SAID = -1 };
enum { MODE_AUTO, MODE_OFFLINE_DATA, MODE_TORCHAIR, MODE_OFFLINE_MODEL, MODE_ATB, MODES };
enum { FOREIGN = 8 }; /* options of modes that only the official tool has */

struct args {
    const char *target, *golden, *output;
    const char *cell, *api, *layer, *data;
    const char *input, *noise;
    const char *pins, *explain, *config;
    int mode, compat, format, align;
    bool fuzzy, xlsx, ext, exit_code, tensor_log, diff, stack_mode, compare_only;
    bool consistent, write_mapping, highlight;
    const char *ranks, *steps;
    int backend; /* enum cmp_consistent */
    const char *foreign[FOREIGN];
};

static const char *const formats[] = {"text", "json", NULL};
static const char *const compats[] = {"cur", "old", "strict", NULL};
static const char *const backends[] = {"none", "fsdp", "megatron", NULL};
enum { ALIGN_AUTO, ALIGN_ALWAYS, ALIGN_EXACT, ALIGN_FUZZY };
static const char *const aligns[] = {"auto", "always", "exact", "fuzzy", NULL};
static const char *const modes[] = {"auto",          "offline_data", "torchair",
                                    "offline_model", "atb",          NULL};

static const struct ms_opt opts[] = {
    {"target_path", "tp", MS_OPT_PATH, offsetof(struct args, target), "PATH",
     .help = "what is to be checked: dump.json, debug.json, or a rank, step or dump directory"},
    {"golden_path", "gp", MS_OPT_PATH, offsetof(struct args, golden), "PATH",
     .help = "what it is held against"},
    {"output_path", "o", MS_OPT_OPTIONAL, offsetof(struct args, output), "DIR", .dflt = "./output",
     .help = "directory for the results, made when missing"},
    {"input_path", "i", MS_OPT_PATH, offsetof(struct args, input), "FILE",
     .help =
         "json with npu_path and bench_path, as msprobe 1 takes them, instead of the two paths"},
    {"xlsx", NULL, MS_OPT_FLAG, offsetof(struct args, xlsx), .help = "write xlsx instead of csv"},
    {"fuzzy_match", "fm", MS_OPT_FLAG, offsetof(struct args, fuzzy),
     .help = "pair rows whatever their call numbers (of modules: their classes)"},
    {"cell_mapping", "cm", MS_OPT_OPTIONAL, offsetof(struct args, cell), "FILE",
     .help = "pair Cell with Module; FILE: yaml of names of cells and modules"},
    {"api_mapping", "am", MS_OPT_OPTIONAL, offsetof(struct args, api), "FILE",
     .help = "pair MindSpore's operators with PyTorch's; FILE: yaml of more of them"},
    {"data_mapping", "dm", MS_OPT_PATH, offsetof(struct args, data), "FILE",
     .help = "yaml of row names that belong together"},
    {"layer_mapping", "lm", MS_OPT_OPTIONAL, offsetof(struct args, layer), "FILE",
     .help = "pair by the place in the model; FILE: yaml of what has another name there"},
    {"align", NULL, MS_OPT_CHOICE, offsetof(struct args, align), "WHICH", .choices = aligns,
     .dflt = "auto",
     .help = "how rows find partners without a mapping: by name when the names are the same and "
             "by alignment else, always by alignment, by name alone, as -fm"},
    {"pins", NULL, MS_OPT_PATH, offsetof(struct args, pins), "FILE",
     .help = "yaml of nodes or rows that belong together, whatever the alignment says"},
    {"explain", NULL, MS_OPT_TEXT, offsetof(struct args, explain), "NODE",
     .help = "say why a node of either side is paired as it is and what came near; no table"},
    {"write_mapping", NULL, MS_OPT_FLAG, offsetof(struct args, write_mapping),
     .help = "write the alignment as mapping files for -lm, -dm and --pins"},
    {"diff_analyze", "da", MS_OPT_FLAG, offsetof(struct args, diff),
     .help = "name the first op that differs, over all ranks; json instead of a table"},
    {"is_print_compare_log", "tensor_log", MS_OPT_FLAG, offsetof(struct args, tensor_log),
     .help = "accepted for scripts; -v says what could not be read"},
    {"fuzzy", "f", MS_OPT_FLAG, offsetof(struct args, fuzzy), .hidden = true,
     .help = "-fm in the spelling of msprobe 1"},
    {"stack_mode", "s", MS_OPT_FLAG, offsetof(struct args, stack_mode), .hidden = true,
     .help = "of msprobe 1: show the stacks of a file that -i names as stack_path"},
    {"compare_only", "c", MS_OPT_FLAG, offsetof(struct args, compare_only),
     .help = "with --compat old: leave out the advice"},
    {"highlight", "hl", MS_OPT_FLAG, offsetof(struct args, highlight),
     .help = "with --compat old: a workbook whose rows are red and yellow as msprobe 1 has them"},
    {"rank", NULL, MS_OPT_TEXT, offsetof(struct args, ranks), "LIST",
     .help = "compare kernels of MindSpore's static graphs, of these ranks: 0,1"},
    {"step", NULL, MS_OPT_TEXT, offsetof(struct args, steps), "LIST",
     .help = "of graph kernels: these steps"},
    {"consistent_check", NULL, MS_OPT_FLAG, offsetof(struct args, consistent),
     .help = "the target is a training run, the golden side the inference that goes with it; "
             "needs --backend"},
    {"backend", NULL, MS_OPT_CHOICE, offsetof(struct args, backend), "NAME", .choices = backends,
     .dflt = "none", .help = "of --consistent_check: what the training runs on"},
    {"config", NULL, MS_OPT_PATH, offsetof(struct args, config), "FILE",
     .help = "yaml of matrices by which tensors are multiplied before they are compared"},
    {"mode", "m", MS_OPT_CHOICE, offsetof(struct args, mode), "MODE", .choices = modes,
     .dflt = "auto",
     .help = "kind of dump: auto, or atb for directories with a statistic.csv of the ATB library"},
    {"compat", NULL, MS_OPT_CHOICE, offsetof(struct args, compat), "WHICH", .choices = compats,
     .dflt = "cur",
     .help = "whose tables: msprobe 26 repaired, msprobe 1, msprobe 26 with its defects"},
    {"ext", NULL, MS_OPT_FLAG, offsetof(struct args, ext),
     .help = "add columns: relative L2 error, SQNR, ULP, pattern and more"},
    {"noise_floor", NULL, MS_OPT_PATH, offsetof(struct args, noise), "PATH",
     .help = "a second run of the golden side, or what calibrate made of several; with --ext the "
             "measure of what is expected"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .choices = formats,
     .dflt = "text", .help = "of the summary: text for people, json for programs"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when a row is not well"},
#define OF_ANOTHER_MODE(i, name, brief)                                                            \
    {                                                                                              \
        name, brief, MS_OPT_TEXT, offsetof(struct args, foreign[i]), "TEXT",                       \
            .hidden = true, .help = "of a mode that only the official tool has"                    \
    }
    OF_ANOTHER_MODE(0, "fusion_rule_file", "fr"),
    OF_ANOTHER_MODE(1, "quant_fusion_rule_file", "qfr"),
    OF_ANOTHER_MODE(2, "close_fusion_rule_file", "cfr"),
    OF_ANOTHER_MODE(3, "input_data", NULL),
    OF_ANOTHER_MODE(4, "input_shape", NULL),
    OF_ANOTHER_MODE(5, "output_size", NULL),
    OF_ANOTHER_MODE(6, "dym_shape_range", NULL),
    OF_ANOTHER_MODE(7, "onnx_fusion_switch", "ofs"),
    {0}};

struct job {
    struct args args;
    struct cmp_conf conf;
    struct cmp_pace bar;
    struct cmp_old_input input;
    struct cmp_ranks ranks;
    struct probe_places noise;
    bool calibrated; /* the noise is a calibration, not a run */
    struct ms_pool *pool;
    struct ms_par *par;
    struct cmp_spread spread;
    struct cmp_source *source;
    struct cmp_report report;
    char stamp[16];
};

static void take_mapping(struct cmp_mapping *m, const char *arg)
{
    m->on = arg != NULL;
    m->file = arg != NULL && arg[0] != 0 ? arg : NULL;
}

static void configure(struct job *j)
{
    const struct args *a = &j->args;
    j->conf = (struct cmp_conf){.compat = (enum cmp_compat)a->compat,
                                .fuzzy = a->fuzzy || a->align == ALIGN_FUZZY,
                                .matching = a->align == ALIGN_ALWAYS  ? CMP_MATCH_ALWAYS
                                            : a->align == ALIGN_EXACT ? CMP_MATCH_EXACT
                                                                      : CMP_MATCH_AUTO,
                                .consistent = a->consistent ? (enum cmp_consistent)a->backend
                                                            : CMP_CONSISTENT_NO,
                                .fold_lines = a->xlsx,
                                .pins = a->pins,
                                .config = a->config,
                                .ext = a->ext,
                                .explain = true,
                                .highlight = a->highlight,
                                .stack = j->input.stack,
                                .hide_stack = j->input.stack != NULL && !a->stack_mode,
                                .data_mapping = a->data};
    if (ms_progress_ok(STDERR_FILENO) && ms_par_rank(j->par) == 0) {
        j->conf.progress = cmp_pace_show;
        j->conf.progress_ctx = &j->bar;
    }
    take_mapping(&j->conf.api, a->api);
    take_mapping(&j->conf.cell, a->cell);
    take_mapping(&j->conf.layer, a->layer);
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(j->stamp, sizeof j->stamp, "%Y%m%d%H%M%S", &tm);
}

static const char *output_of(const struct job *j)
{
    return j->args.output != NULL && j->args.output[0] != 0 ? j->args.output : "./output";
}

/* DIR/FOLDER/compare_result_rank0_20260814102107 */
static char *stem_of(const struct job *j, const struct cmp *c, const struct cmp_couple *couple)
{
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_puts(&b, output_of(j));
    ms_buf_printf(&b, "/%s%s", couple->folder, couple->folder[0] != 0 ? "/" : "");
    ms_buf_printf(&b, "%scompare_result%s_%s", cmp_is_debug(c) ? "debug_" : "", couple->suffix,
                  j->stamp);
    char *stem = b.bad == MS_OK ? ms_str_dup(ms_buf_slice(&b)) : NULL;
    ms_buf_free(&b);
    return stem;
}

enum beside { ADVISOR, ROWS_OF_LAYERS, ALIGNED_ROWS, ALIGNED_LAYERS };

static enum ms_rc write_as(enum beside what, const struct cmp *c, const char *path,
                           struct cmp_files *files, struct ms_err *err)
{
    switch (what) {
    case ADVISOR:
        return cmp_write_advisor(c, path, files, err);
    case ROWS_OF_LAYERS:
        return cmp_write_mapping(c, path, files, err);
    default:
        return cmp_write_alignment(c, what == ALIGNED_LAYERS, path, files, err);
    }
}

/* A file beside the table: DIR/FOLDER/data_mapping_rank0_20260814102107.yaml */
static enum ms_rc write_beside(const struct job *j, const struct cmp *c,
                               const struct cmp_couple *couple, struct cmp_files *files,
                               enum beside what, struct ms_err *err)
{
    static const char *const names[] = {"advisor", "data_mapping", "data_mapping", "layer_mapping"};
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_printf(&b, "%s/%s%s%s%s_%s.%s", output_of(j), couple->folder,
                  couple->folder[0] != 0 ? "/" : "", names[what], couple->suffix, j->stamp,
                  what == ADVISOR ? "txt" : "yaml");
    enum ms_rc rc = write_as(what, c, ms_buf_z(&b), files, err);
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc write_files(struct job *j, const struct cmp *c, const struct cmp_couple *couple,
                              struct cmp_result *r, struct ms_err *err)
{
    char *stem = stem_of(j, c, couple);
    if (stem == NULL)
        return ms_fail(err, MS_E_NOMEM, "out of memory");
    enum ms_rc rc = j->args.xlsx ? cmp_write_xlsx(c, stem, &r->sum, &r->files, err)
                                 : cmp_write_csv(c, stem, j->pool, &r->sum, &r->files, err);
    ms_free(stem);
    if (rc == MS_OK && cmp_maps_layers(c))
        rc = write_beside(j, c, couple, &r->files, ROWS_OF_LAYERS, err);
    for (enum beside what = ALIGNED_ROWS; what <= ALIGNED_LAYERS; what++) {
        if (rc == MS_OK && j->args.write_mapping && cmp_alignment(c) != NULL)
            rc = write_beside(j, c, couple, &r->files, what, err);
    }
    if (rc == MS_OK && j->conf.compat == CMP_OLD && !j->args.compare_only)
        rc = write_beside(j, c, couple, &r->files, ADVISOR, err);
    return rc;
}

/* The second run's dump of the couple's rank. */
static enum ms_rc choose_noise(struct job *j, const struct cmp_couple *couple, struct ms_err *err)
{
    j->conf.noise_step = couple->b->step;
    j->conf.noise_rank = couple->b->rank;
    j->conf.noise_floor = j->calibrated ? j->args.noise : NULL;
    for (size_t i = 0; i < j->noise.list.n; i++) {
        const struct probe_place *p = &j->noise.list.p[i];
        bool same = p->rank == couple->b->rank && strcmp(p->part, couple->b->part) == 0 &&
                    (p->step == couple->b->step || p->step < 0 || couple->b->step < 0);
        if (same || j->noise.list.n == 1)
            j->conf.noise_floor = p->json;
    }
    if (j->args.noise == NULL || j->conf.noise_floor != NULL)
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "%s has no dump to go with %s", j->args.noise,
                   couple->b->json);
}

/* The dumps of a couple, with what else belongs to it. */
static enum ms_rc open_couple(struct job *j, const struct cmp_couple *couple, struct cmp **c,
                              struct ms_err *err)
{
    *c = NULL;
    MS_TRY(choose_noise(j, couple, err));
    return cmp_open(c, &j->conf, couple->t->json, couple->b->json, j->pool, err);
}

/* The first process looks for them; rows that were folded are nothing they know of. */
static bool has_suspects(const struct job *j)
{
    return ms_par_rank(j->par) == 0 && !j->args.consistent;
}

/* Of a dump without rows the official tool only says so. */
static bool has_table(const struct job *j, const struct cmp *c)
{
    return j->conf.compat != CMP_STRICT || !cmp_is_empty(c);
}

static enum ms_rc compare_one(struct job *j, size_t i, struct ms_err *err)
{
    const struct cmp_couple *couple = &j->ranks.list.p[i];
    struct cmp_result *r = j->report.list.p[i];
    struct ms_err opened = {0};
    struct cmp *c;
    if (!cmp_spread_joins(&j->spread, i))
        return MS_OK;
    (void)open_couple(j, couple, &c, &opened);
    enum ms_rc rc = cmp_spread_measure(&j->spread, i, c, &opened, j->pool, err);
    if (rc == MS_OK && cmp_spread_owns(&j->spread, i)) {
        if (has_table(j, c))
            rc = write_files(j, c, couple, r, err);
        if (rc == MS_OK)
            rc = cmp_report_take(r, c, err);
        if (rc == MS_OK && has_suspects(j))
            rc = cmp_source_add(j->source, c, couple->t->rank, couple->t->step, j->pool, err);
    }
    cmp_close(c);
    return rc;
}

typedef enum ms_rc (*couple_fn)(struct job *j, size_t i, struct ms_err *err);

/* What went wrong with single ranks; an error when nothing went right. */
static enum ms_rc tell_failures(const struct job *j, struct ms_err *err)
{
    size_t failed = 0;
    for (size_t i = 0; i < j->report.list.n; i++) {
        const struct ms_err *e = &j->report.list.p[i]->err;
        if (e->rc == MS_OK)
            continue;
        failed++;
        if (j->report.list.n == 1)
            *err = *e;
        else
            ms_cmd_fail(&compare_cmd_compare, e);
    }
    if (failed == 1 && j->report.list.n == 1)
        return err->rc;
    return failed < j->report.list.n
               ? MS_OK
               : ms_fail(err, MS_E_FORMAT, "none of the %zu ranks could be compared", failed);
}

/* Do the couples, of which this process may do a part, and bring what came out to process 0.  A rank
 * that cannot be compared does not stop the others. */
static enum ms_rc do_couples(struct job *j, couple_fn fn, struct ms_err *err)
{
    bool alone = ms_par_size(j->par) == 1;
    for (size_t i = 0; i < j->ranks.list.n; i++) {
        if (cmp_report_add(&j->report, &j->ranks.list.p[i]) == NULL)
            return ms_fail(err, MS_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < j->ranks.list.n; i++) {
        struct ms_err e = {0};
        enum ms_rc rc = fn(j, i, &e);
        if (alone && (rc == MS_E_INTERRUPTED || rc == MS_E_NOMEM)) {
            *err = e;
            return rc;
        }
        if (rc != MS_OK)
            j->report.list.p[i]->err = e;
    }
    MS_TRY(cmp_spread_gather(&j->spread, &j->report, err));
    return ms_par_rank(j->par) == 0 ? tell_failures(j, err) : MS_OK;
}

/* --explain: sentences instead of a table; a rank without the node is passed over. */
static enum ms_rc explain_one(struct job *j, const struct cmp_couple *couple, struct ms_buf *out,
                              struct ms_err *err)
{
    struct cmp *c;
    MS_TRY(cmp_open(&c, &j->conf, couple->t->json, couple->b->json, j->pool, err));
    const struct ms_str *problems;
    for (size_t i = 0, n = cmp_problems(c, &problems); i < n; i++)
        fprintf(stderr, "msprobe compare: %.*s\n", MS_STR_ARG(problems[i]));
    enum ms_rc rc = cmp_explain(c, ms_str_of(j->args.explain), out, err);
    cmp_close(c);
    return rc;
}

static enum ms_rc explain_all(struct job *j, struct ms_err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < j->ranks.list.n; i++) {
        const struct cmp_couple *couple = &j->ranks.list.p[i];
        struct ms_buf text = {.max = 1 << 24};
        struct ms_err why = {0};
        enum ms_rc rc = explain_one(j, couple, &text, &why);
        if (rc == MS_OK && j->ranks.list.n > 1)
            printf("%s%s%s:\n", found++ != 0 ? "\n" : "", couple->folder,
                   couple->suffix + (couple->suffix[0] == '_'));
        if (rc == MS_OK)
            fputs(ms_buf_z(&text), stdout);
        ms_buf_free(&text);
        if (rc == MS_OK && j->ranks.list.n == 1)
            return MS_OK;
        if (rc != MS_OK && (rc != MS_E_NOTFOUND || (i + 1 == j->ranks.list.n && found == 0))) {
            *err = why;
            return rc;
        }
    }
    return MS_OK;
}

/* What another process has compared is observed here, where the suspects of all ranks are found. */
static enum ms_rc observe(struct job *j, size_t i, struct ms_err *err)
{
    const struct cmp_couple *couple = &j->ranks.list.p[i];
    struct cmp *c;
    MS_TRY(open_couple(j, couple, &c, err));
    enum ms_rc rc = cmp_measure(c, j->pool, err);
    if (rc == MS_OK)
        rc = cmp_source_add(j->source, c, couple->t->rank, couple->t->step, j->pool, err);
    cmp_close(c);
    return rc;
}

/* DIR/suspects_20260814102107.csv and so on */
static enum ms_rc write_suspects(struct job *j, struct ms_err *err)
{
    return cmp_write_suspects(j->source, output_of(j), j->stamp, j->args.xlsx,
                              &j->report.list.p[0]->files, err);
}

static enum ms_rc compare_all(struct job *j, struct ms_err *err)
{
    MS_TRY(cmp_source_new(&j->source, err));
    MS_TRY(do_couples(j, compare_one, err));
    if (!has_suspects(j))
        return MS_OK;
    for (size_t i = 0; i < j->report.list.n; i++) {
        if (!cmp_spread_owns(&j->spread, i) && j->report.list.p[i]->err.rc == MS_OK)
            MS_TRY(observe(j, i, err));
    }
    j->report.source = j->source;
    MS_TRY(cmp_source_find(j->source, err));
    return j->args.ext ? write_suspects(j, err) : MS_OK;
}

/* ---- -da -------------------------------------------------------------- */

static enum ms_rc trace_one(struct job *j, size_t i, struct ms_err *err)
{
    const struct cmp_couple *couple = &j->ranks.list.p[i];
    struct cmp_result *r = j->report.list.p[i];
    struct cmp *c;
    if (!cmp_spread_owns(&j->spread, i))
        return MS_OK;
    MS_TRY(cmp_open(&c, &j->conf, couple->t->json, couple->b->json, j->pool, err));
    char *stem = stem_of(j, c, couple);
    r->trail.rank = couple->t->rank < 0 ? 0 : couple->t->rank;
    enum ms_rc rc = stem != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "out of memory");
    if (rc == MS_OK && has_table(j, c))
        rc = cmp_write_diff(c, stem, &r->trail, &r->files, err);
    ms_free(stem);
    if (rc == MS_OK)
        rc = cmp_report_count(r, c, err);
    cmp_close(c);
    return rc;
}

static enum ms_rc name_one(struct job *j, struct cmp_diff_out *d, size_t i, uint32_t group,
                           struct ms_err *err)
{
    const struct cmp_couple *couple = &j->ranks.list.p[i];
    struct cmp *c;
    char rank[32];
    MS_TRY(cmp_open(&c, &j->conf, couple->t->json, couple->b->json, j->pool, err));
    snprintf(rank, sizeof rank, "rank_%lld",
             (long long)(couple->t->rank < 0 ? 0 : couple->t->rank));
    cmp_diff_rank(d, rank);
    enum ms_rc rc = cmp_diff_node(d, c, group, err);
    if (rc == MS_OK)
        rc = cmp_report_blame(j->report.list.p[i], c, group, err);
    cmp_close(c);
    return rc;
}

static enum ms_rc name_all(struct job *j, const uint32_t *blamed, struct ms_err *err)
{
    struct cmp_diff_out *d = NULL;
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_printf(&path, "%s/diff_analyze_%lld.json", output_of(j),
                  (long long)ms_clock_read(CLOCK_REALTIME));
    enum ms_rc rc = cmp_files_add(&j->report.list.p[0]->files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = cmp_diff_open(&d, ms_buf_z(&path), err);
    ms_buf_free(&path);
    MS_TRY(rc);
    for (size_t i = 0; i < j->ranks.list.n && rc == MS_OK; i++) {
        if (blamed[i] != MS_MAP_NONE)
            rc = name_one(j, d, i, blamed[i], err);
    }
    enum ms_rc end = cmp_diff_close(d, rc == MS_OK, err);
    return rc != MS_OK ? rc : end;
}

/* Over the trails of all ranks, which are here now. */
static enum ms_rc name_first(struct job *j, struct ms_err *err)
{
    size_t n = j->report.list.n;
    struct cmp_trail *trails = ms_calloc(n, sizeof *trails);
    uint32_t *blamed = ms_calloc(n, sizeof *blamed);
    enum ms_rc rc = MS_OK;
    if (trails == NULL || blamed == NULL)
        rc = ms_fail(err, MS_E_NOMEM, "out of memory");
    for (size_t i = 0; rc == MS_OK && i < n; i++)
        trails[i] = j->report.list.p[i]->trail;
    size_t found = 0;
    if (rc == MS_OK)
        rc = cmp_diff_blame(trails, n, j->conf.compat != CMP_CUR, blamed, &found, err);
    if (rc == MS_OK && found != 0)
        rc = name_all(j, blamed, err);
    ms_free(trails);
    ms_free(blamed);
    return rc;
}

/* The official tool pairs rows by their names there, whatever else is said. */
static void forget_mappings(struct cmp_conf *conf)
{
    conf->fuzzy = false;
    conf->data_mapping = NULL;
    conf->api = conf->cell = conf->layer = (struct cmp_mapping){0};
    conf->consistent = CMP_CONSISTENT_NO;
}

static enum ms_rc analyze(struct job *j, struct ms_err *err)
{
    j->conf.summarise = true;
    if (j->conf.compat != CMP_CUR)
        forget_mappings(&j->conf);
    MS_TRY(do_couples(j, trace_one, err));
    return ms_par_rank(j->par) == 0 ? name_first(j, err) : MS_OK;
}

/* ---- the command ---------------------------------------------------------- */

static enum ms_rc check_mode(const struct args *a, struct ms_err *err)
{
    static const char *const instead[MODES] = {
        [MODE_OFFLINE_DATA] = "the official tool, which knows dumps of offline models, or, for "
                              "trees of .npy files, -i with \"common\": true",
        [MODE_TORCHAIR] = "the official tool, which knows torchair's files",
        [MODE_OFFLINE_MODEL] = "the official tool, which runs the model"};
    enum { OF_DATA = 3 }; /* the first options are of offline_data, the others of offline_model */
    int mode = a->mode;
    for (size_t i = 0; i < FOREIGN && instead[mode] == NULL; i++) {
        if (a->foreign[i] != NULL)
            mode = i < OF_DATA ? MODE_OFFLINE_DATA : MODE_OFFLINE_MODEL;
    }
    if (instead[mode] == NULL)
        return MS_OK;
    return ms_fail(err, MS_E_UNSUPPORTED, "--mode %s%s is not supported here; use %s", modes[mode],
                   mode != a->mode ? ", to which an option belongs," : "", instead[mode]);
}

static enum ms_rc check_args(const struct args *a, struct ms_err *err)
{
    MS_TRY(check_mode(a, err));
    if (a->consistent && a->backend == CMP_CONSISTENT_NO)
        return ms_fail(err, MS_E_ARG,
                       "--consistent_check needs --backend fsdp or --backend megatron");
    bool mapped = a->data != NULL || a->layer != NULL || a->cell != NULL || a->api != NULL;
    if (a->consistent && (mapped || a->fuzzy || a->align != ALIGN_AUTO || a->pins != NULL))
        return ms_fail(err, MS_E_ARG,
                       "--consistent_check finds partners by itself; leave out mappings, -fm, "
                       "--align and --pins beside it");
    if (a->fuzzy && (a->align == ALIGN_ALWAYS || a->align == ALIGN_EXACT))
        return ms_fail(err, MS_E_ARG, "-fm is --align fuzzy; leave out --align %s beside it",
                       aligns[a->align]);
    if (mapped && (a->align != ALIGN_AUTO || a->pins != NULL))
        return ms_fail(err, MS_E_ARG,
                       "a mapping says itself which names go together; leave out %s beside it",
                       a->pins != NULL ? "--pins" : "--align");
    if (a->pins != NULL && a->align >= ALIGN_EXACT)
        return ms_fail(err, MS_E_ARG, "--pins speaks to the alignment; use --align always");
    if (a->compat != CMP_CUR && (a->align == ALIGN_ALWAYS || a->pins != NULL))
        return ms_fail(err, MS_E_ARG,
                       "the official tool has no alignment; leave out --compat %s beside %s",
                       compats[a->compat], a->pins != NULL ? "--pins" : "--align");
    if (a->highlight && a->compat != CMP_OLD)
        return ms_fail(err, MS_E_ARG,
                       "-hl gives the colours of msprobe 1: add --compat old, or --xlsx alone for "
                       "those of the verdicts");
    if (a->noise != NULL && !a->ext)
        return ms_fail(err, MS_E_ARG, "--noise_floor fills columns of --ext; add it");
    if (a->data != NULL && (a->layer != NULL || a->cell != NULL || a->api != NULL))
        return ms_fail(err, MS_E_ARG,
                       "-dm names the rows themselves; leave out -am, -cm and -lm beside it");
    return MS_OK;
}

/* The two paths, from the command line or from a json of msprobe 1. */
static enum ms_rc take_paths(struct job *j, struct ms_err *err)
{
    struct args *a = &j->args;
    if (a->input != NULL) {
        if (a->target != NULL || a->golden != NULL)
            return ms_fail(err, MS_E_ARG, "-i names both paths; leave out -tp and -gp beside it");
        MS_TRY(cmp_old_input_read(&j->input, a->input, err));
        a->target = j->input.target;
        a->golden = j->input.golden;
        a->ranks = a->ranks != NULL ? a->ranks : j->input.ranks;
        a->steps = a->steps != NULL ? a->steps : j->input.steps;
    }
    if (a->target == NULL || a->golden == NULL)
        return ms_fail(err, MS_E_ARG, "missing option --%s PATH: %s",
                       a->target == NULL ? "target_path" : "golden_path",
                       a->target == NULL ? "what is to be checked" : "what it is held against");
    return MS_OK;
}

/* What is to be done, as far as this process can find it out alone. */
static enum ms_rc prepare(struct job *j, struct ms_err *err)
{
    configure(j);
    MS_TRY(ms_pool_new(&j->pool, (unsigned)ms_globals.threads, err));
    MS_TRY(
        cmp_ranks_pair(&j->ranks, j->args.target, j->args.golden, j->conf.compat != CMP_CUR, err));
    j->calibrated = j->args.noise != NULL && cmp_is_calibration(j->args.noise);
    return j->args.noise != NULL && !j->calibrated ? probe_find(&j->noise, j->args.noise, err)
                                                   : MS_OK;
}

/* With the other processes, of which each says what it has found. */
static enum ms_rc meet(struct job *j, struct ms_err *err)
{
    struct ms_err together = {0};
    enum ms_rc rc = prepare(j, err);
    enum ms_rc met = cmp_spread_init(&j->spread, j->par, rc == MS_OK, &j->ranks, &together);
    if (rc != MS_OK)
        return rc;
    if (met != MS_OK)
        *err = together;
    return met == MS_OK ? ms_par_share(j->par, j->stamp, sizeof j->stamp, err) : met;
}

static enum ms_rc run_job(struct job *j, struct ms_err *err)
{
    MS_TRY(meet(j, err));
    for (size_t i = 0; i < j->ranks.notes.n && ms_par_rank(j->par) == 0; i++)
        fprintf(stderr, "msprobe compare: %s\n", j->ranks.notes.p[i]);
    bool files = ms_path_kind(j->args.target) == MS_KIND_FILE;
    if (j->args.explain != NULL)
        return ms_par_rank(j->par) == 0 ? explain_all(j, err) : MS_OK;
    bool diff = j->args.diff && !(files && j->conf.compat != CMP_CUR);
    return diff ? analyze(j, err) : compare_all(j, err);
}

/* ---- tables without a dump.json ---------------------------------------------- */

/* Kernels of graphs, dumps of ATB and trees of .npy files have no verdicts of rows by rules. */
enum sheets { SHEETS_NONE, SHEETS_KERNELS, SHEETS_TREES, SHEETS_ATB };

static enum sheets sheets_wanted(const struct job *j)
{
    if (j->args.mode == MODE_ATB)
        return SHEETS_ATB;
    if (j->input.trees || (j->input.npu_names.keys.n != 0 && j->input.ranks == NULL))
        return SHEETS_TREES;
    return j->args.ranks != NULL || j->args.steps != NULL ? SHEETS_KERNELS : SHEETS_NONE;
}

static enum ms_rc write_sheets(struct job *j, enum sheets what, struct cmp_files *files,
                               struct cmp_sheet_sum *sum, struct ms_err *err)
{
    const char *t = j->args.target, *b = j->args.golden, *out = output_of(j);
    const bool strict = j->conf.compat == CMP_STRICT;
    const struct cmp_kernel_conf kernels = {.ranks = j->args.ranks,
                                            .steps = j->args.steps,
                                            .xlsx = j->args.xlsx,
                                            .strict = strict,
                                            .stamp = j->stamp};
    const struct cmp_atb_conf atb = {.strict = strict, .stamp = j->stamp};
    const struct cmp_tree_names names = {&j->input.npu_names, j->input.bench_names.p};
    switch (what) {
    case SHEETS_ATB:
        return cmp_compare_atb(t, b, out, &atb, sum, files, err);
    case SHEETS_TREES:
        return cmp_compare_trees(t, b, out, &names, sum, files, err);
    default:
        return cmp_compare_kernels(t, b, out, &kernels, sum, files, err);
    }
}

static int run_sheets(struct job *j, enum sheets what)
{
    struct cmp_files files = {0};
    struct cmp_sheet_sum sum = {0};
    struct ms_err err = {0};
    configure(j);
    enum ms_rc rc = write_sheets(j, what, &files, &sum, &err);
    for (size_t i = 0; i < sum.notes.n && j->args.format == FORMAT_TEXT; i++)
        fprintf(stderr, "msprobe compare: %s\n", sum.notes.p[i]);
    if (rc == MS_OK)
        rc = cmp_sheet_tell(&sum, &files, j->args.format == FORMAT_JSON, &err);
    bool differs = sum.no + sum.rest != 0;
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    return j->args.exit_code && differs ? MS_EXIT_FOUND : MS_EXIT_OK;
}

static int tell(struct job *j, int64_t start)
{
    struct ms_err err = {0};
    j->report.took_ns = ms_clock_ns() - start;
    if (j->args.explain == NULL && j->args.format == FORMAT_TEXT) /* else it has been told */
        cmp_report_text(&j->report);
    if (j->args.explain == NULL && j->args.format == FORMAT_JSON &&
        cmp_report_json(&j->report, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    return j->args.exit_code && cmp_report_differs(&j->report) ? MS_EXIT_FOUND : MS_EXIT_OK;
}

/* Process 0 speaks for all, as long as it can. */
static int run_here(struct job *j)
{
    struct ms_err err = {0};
    int64_t start = ms_clock_ns();
    if (ms_par_open(&j->par, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    if (check_args(&j->args, &err) != MS_OK || take_paths(j, &err) != MS_OK)
        return ms_par_rank(j->par) == 0 ? ms_cmd_fail(&compare_cmd_compare, &err) : MS_EXIT_USAGE;
    enum sheets sheets = sheets_wanted(j);
    if (sheets != SHEETS_NONE)
        return ms_par_rank(j->par) == 0 ? run_sheets(j, sheets) : MS_EXIT_OK;
    enum ms_rc rc = run_job(j, &err);
    if (j->spread.quiet)
        return MS_EXIT_OK;
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    return ms_par_rank(j->par) == 0 ? tell(j, start) : MS_EXIT_OK;
}

/* "msprobe -f pytorch compare ..." is how msprobe 1 is called, and what it wrote are workbooks. */
static void choose_version(struct args *a)
{
    bool called_so = ms_globals.framework != NULL;
    if (a->compat == NOT_SAID)
        a->compat = called_so ? CMP_OLD : CMP_CUR;
    a->xlsx = a->xlsx || a->highlight || called_so;
}

static int run(int argc, char **argv)
{
    struct job j = {0};
    struct ms_err err = {0};
    bool done;
    j.args.compat = NOT_SAID;
    if (ms_opt_parse(&compare_cmd_compare, argc, argv, &j.args, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_compare, &err);
    if (done)
        return MS_EXIT_OK;
    choose_version(&j.args);
    int code = run_here(&j);
    cmp_report_free(&j.report);
    cmp_source_free(j.source);
    cmp_spread_free(&j.spread);
    cmp_ranks_free(&j.ranks);
    if (j.noise.arena != NULL)
        probe_places_free(&j.noise);
    cmp_old_input_free(&j.input);
    ms_pool_free(j.pool);
    ms_par_close(j.par);
    return code;
}

const struct ms_cmd compare_cmd_compare = {
    .name = "compare",
    .run = run,
    .brief = "compare two dumps and name what introduces the difference",
    .opts = opts,
    .usage = "[options] -tp PATH -gp PATH",
    .about =
        "Holds the tensors of a run (the target, \"NPU\") against those of another (the golden "
        "side, \"Bench\"), names the operators that introduce the difference rather than pass "
        "it on, and writes a table with a row for each tensor. Runs of two frameworks need no "
        "mapping. Directories are compared rank by rank.\n"
        "\n"
        "  msprobe compare -tp run/step0/rank0/dump.json -gp ref/step0/rank0/dump.json -o out\n"
        "  msprobe compare -tp run/step0 -gp ref/step0 --xlsx -o out\n",
};
