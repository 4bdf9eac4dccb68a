/* SPDX-License-Identifier: MIT
 *
 * config_checks: one function for each member of the archive; columns, order and verdicts as official.
 */
#include "compare/config/config_checks.h"

#include "compare/config/config_checks_int.h"
#include "compare/config/similar.h"

#include <math.h>
#include <stdlib.h>

/* A table with a level in its last column is as bad as its worst row. */
static void judge_levels(struct cfg_table *t)
{
    t->verdict = "pass";
    for (size_t i = t->columns - 1; i < t->cells.n; i += t->columns) {
        if (ms_str_is(ms_plain_text(t->cells.p[i]), "error"))
            t->verdict = "error";
        else if (strcmp(t->verdict, "pass") == 0)
            t->verdict = "warning";
    }
}

/* A table with a truth in a column fails when one of them is false. */
static void judge_truths(struct cfg_table *t, unsigned column)
{
    t->verdict = "pass";
    for (size_t i = column; i < t->cells.n; i += t->columns) {
        const struct ms_plain *v = t->cells.p[i];
        if (v != NULL && v->kind == MS_PLAIN_BOOL && v->i == 0)
            t->verdict = "error";
    }
}

static bool has_folder(const struct cfg_check *k, int side, const char *folder)
{
    for (size_t i = 0; i < k->sides->zip[side].zip.members.n; i++) {
        struct ms_str name = k->sides->zip[side].zip.members.p[i].name;
        if (ms_str_skip(&name, folder) && (name.n == 0 || name.p[0] == '/'))
            return true;
    }
    return false;
}

/* ---- environment ------------------------------------------------------------------------------- */

/* Variables that decide about numbers, on either kind of device. The kind HCCL_INTRA_PICE_ENABLE looks at
 * HCCL_INTRA_ROCE_ENABLE, as the official list has it. */
static const struct {
    const char *npu, *npu_default, *gpu, *gpu_default;
} variables[] = {
    {"HCCL_DETERMINISTIC", "False", "NCCL_DETERMINISTIC", "False"},
    {"HCCL_ALGO", "None", "NCCL_ALGO", "None"},
    {"HCCL_INTRA_ROCE_ENABLE", "0", NULL, NULL},
    {"HCCL_INTRA_ROCE_ENABLE", "1", NULL, NULL},
    {"ASCEND_LAUNCH_BLOCKING", "0", "CUDA_LAUNCH_BLOCKING", "0"},
    {"ASCEND_RT_VISIBLE_DEVICES", "None", "CUDA_VISIBLE_DEVICES", "None"},
};

/* A default of the list: a truth, a number or a word. */
static struct ms_plain *default_of(struct ms_arena *a, const char *z)
{
    if (strcmp(z, "False") == 0)
        return cfg_bool(a, false);
    if (z[0] >= '0' && z[0] <= '9')
        return cfg_int(a, z[0] - '0');
    return cfg__word(a, z);
}

static bool is_npu(const struct ms_plain *env)
{
    for (uint32_t i = 0; i + 1 < env->n; i += 2) {
        if (ms_str_has(env->item[i]->s, "ASCEND"))
            return true;
    }
    return false;
}

static const struct ms_plain *variable_of(struct ms_arena *a, const struct ms_plain *env,
                                          const char *name, const char *dflt)
{
    const struct ms_plain *v = cfg_get(env, ms_str_of(name));
    return v != NULL ? v : default_of(a, dflt);
}

static enum ms_rc check_environment(struct cfg_check *k)
{
    struct ms_arena *a = k->sides->a;
    const struct ms_plain *env[2];
    for (int side = 0; side < 2; side++)
        MS_TRY(cfg__json(k, k->sides->swaps_env ? 1 - side : side, MS_STR("env"), &env[side]));
    const bool npu[2] = {is_npu(env[0]), is_npu(env[1])};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *name[2], *dflt[2];
        for (int side = 0; side < 2; side++) {
            name[side] = npu[side] ? variables[i].npu : variables[i].gpu;
            dflt[side] = npu[side] ? variables[i].npu_default : variables[i].gpu_default;
        }
        if (name[0] == NULL && name[1] == NULL)
            continue;
        const struct ms_plain *v[2] = {cfg__word(a, ""), cfg__word(a, "")};
        for (int side = 0; side < 2; side++) {
            if (name[side] != NULL)
                v[side] = variable_of(a, env[side], name[side], dflt[side]);
        }
        const bool both = name[0] != NULL && name[1] != NULL;
        if (both && cfg_value_equal(v[0], v[1]))
            continue;
        MS_TRY(cfg__row(k, (const struct ms_plain *[]){
                               cfg__word(a, name[0] != NULL ? name[0] : "only cmp has this env"),
                               cfg__word(a, name[1] != NULL ? name[1] : "only bench has this env"),
                               v[0], v[1], cfg__word(a, both ? "error" : "warning")}));
    }
    judge_levels(k->t);
    return MS_OK;
}

/* ---- packages ----------------------------------------------------------------------------------- */

static const char *const packages[] = {"transformers", "deepspeed", "megatron",  "numpy",
                                       "datasets",     "peft",      "mindspore", "torch"};

/* Returns the version of a package: the text behind "NAME=", empty when there are more signs. */
static bool version_of(struct ms_str text, const char *package, struct ms_str *version)
{
    struct ms_str line, name;
    bool found = false;
    while (ms_str_split(&text, '\n', &line)) {
        while (line.n != 0 && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
            line.n--;
        (void)ms_str_split(&line, '=', &name);
        if (!ms_str_is(name, package))
            continue;
        *version = line.p == NULL || ms_str_find(line, '=') >= 0 ? MS_STR("") : line;
        found = true;
    }
    return found;
}

static enum ms_rc check_packages(struct cfg_check *k)
{
    struct ms_arena *a = k->sides->a;
    struct ms_str text[2];
    for (int side = 0; side < 2; side++)
        MS_TRY(cfg__text(k, side, cfg__member(k, side, MS_STR("pip")), &text[side]));
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        struct ms_str v[2] = {MS_STR(""), MS_STR("")};
        const bool has[2] = {version_of(text[0], packages[i], &v[0]),
                             version_of(text[1], packages[i], &v[1])};
        if (has[0] == has[1] && ms_str_eq(v[0], v[1]))
            continue;
        MS_TRY(cfg__row(
            k, (const struct ms_plain *[]){cfg__word(a, packages[i]),
                                           v[0].n != 0 ? cfg_text(a, v[0]) : cfg__word(a, "None"),
                                           v[1].n != 0 ? cfg_text(a, v[1]) : cfg__word(a, "None"),
                                           cfg__word(a, "error")}));
    }
    judge_levels(k->t);
    return MS_OK;
}

/* ---- statistics of weights and inputs ---------------------------------------------------------- */

static const char *const figures[] = {"max", "min", "mean", "norm"};

/* Relative difference by the benchmark's figure; NULL, an empty cell, when that is zero. */
static const struct ms_plain *difference(struct ms_arena *a, const struct ms_plain *x,
                                         const struct ms_plain *y)
{
    const double bench = ms_plain_real(x, NAN), cmp = ms_plain_real(y, NAN);
    const double d = fabs(bench - cmp) / bench;
    return bench == 0 || isnan(d) ? NULL : cfg_real(a, d);
}

/* Fills four differences; tells whether all figures are equal. */
static bool compare_figures(struct ms_arena *a, const struct ms_plain *x, const struct ms_plain *y,
                            const struct ms_plain *cells[4])
{
    bool equal = true;
    for (int i = 0; i < 4; i++) {
        const struct ms_plain *v = cfg_get(x, ms_str_of(figures[i]));
        const struct ms_plain *w = cfg_get(y, ms_str_of(figures[i]));
        equal = equal && v != NULL && cfg_value_equal(v, w);
        cells[i] = v != NULL && w != NULL ? difference(a, v, w) : NULL;
    }
    return equal;
}

/* Reads the numbers out of "stepN/rankM/FILE". */
static bool read_place(struct ms_str rest, const char *file, int64_t *step, int64_t *rank)
{
    struct ms_str part;
    if (!ms_str_split(&rest, '/', &part) || !ms_str_skip(&part, "step") || !ms_str_i64(part, step))
        return false;
    if (!ms_str_split(&rest, '/', &part) || !ms_str_skip(&part, "rank") || !ms_str_i64(part, rank))
        return false;
    return ms_str_is(rest, file);
}

static enum ms_rc weight_row(struct cfg_check *k, int64_t step, int64_t rank, struct ms_str name,
                             const struct ms_plain *x, const struct ms_plain *y)
{
    struct ms_arena *a = k->sides->a;
    const struct ms_plain *cells[8] = {cfg_int(a, step), cfg_int(a, rank), cfg_text(a, name)};
    if (x == NULL || y == NULL)
        cells[3] = cfg__word(a, x == NULL ? "only cmp have" : "only bench have");
    else
        cells[3] = cfg_bool(a, compare_figures(a, x, y, cells + 4));
    return cfg__row(k, cells);
}

static enum ms_rc compare_weights(struct cfg_check *k, struct ms_str member, int64_t step,
                                  int64_t rank)
{
    const struct ms_plain *v[2] = {NULL, NULL};
    MS_TRY(cfg__json(k, 0, member, &v[0]));
    if (cfg__member(k, 1, member) != NULL)
        MS_TRY(cfg__json(k, 1, member, &v[1]));
    for (uint32_t i = 0; i + 1 < v[0]->n; i += 2)
        MS_TRY(weight_row(k, step, rank, v[0]->item[i]->s, v[0]->item[i + 1],
                          cfg_get(v[1], v[0]->item[i]->s)));
    for (uint32_t i = 0; v[1] != NULL && i + 1 < v[1]->n; i += 2) {
        if (cfg_get(v[0], v[1]->item[i]->s) == NULL)
            MS_TRY(weight_row(k, step, rank, v[1]->item[i]->s, NULL, v[1]->item[i + 1]));
    }
    return MS_OK;
}

static bool is_features(const struct ms_plain *v)
{
    if (v->kind != MS_PLAIN_DICT || v->n != 8)
        return false;
    for (int i = 0; i < 4; i++) {
        if (cfg_get(v, ms_str_of(figures[i])) == NULL)
            return false;
    }
    return true;
}

struct inputs {
    struct cfg_check *k;
    int64_t step, rank;
};

static enum ms_rc input_row(const struct inputs *in, struct ms_str tag, const struct ms_plain *x,
                            const struct ms_plain *y)
{
    struct ms_arena *a = in->k->sides->a;
    const struct ms_plain *cells[8] = {cfg_int(a, in->step), cfg_int(a, in->rank),
                                       cfg_text(a, tag)};
    bool equal = false;
    if (x != NULL && y != NULL)
        equal = compare_figures(a, x, y, cells + 4);
    cells[3] = cfg_bool(a, equal);
    return cfg__row(in->k, cells);
}

static enum ms_rc compare_inputs(const struct inputs *in, struct ms_buf *tag,
                                 const struct ms_plain *x, const struct ms_plain *y, int depth)
{
    const size_t before = tag->n;
    for (uint32_t i = 0; depth > 0 && i + 1 < x->n; i += 2, tag->n = before) {
        const struct ms_plain *v = x->item[i + 1], *w = cfg_get(y, x->item[i]->s);
        ms_buf_puts(tag, before != 0 ? "." : "");
        ms_buf_str(tag, x->item[i]->s);
        MS_TRY(ms_buf_check(tag, in->k->err));
        if (w == NULL || is_features(v))
            MS_TRY(input_row(in, ms_buf_slice(tag), v, w));
        else if (v->kind == MS_PLAIN_DICT && w->kind == MS_PLAIN_DICT)
            MS_TRY(compare_inputs(in, tag, v, w, depth - 1));
        else if (v->kind == MS_PLAIN_DICT)
            MS_TRY(input_row(in, ms_buf_slice(tag), v, NULL));
    }
    for (uint32_t i = 0; i + 1 < y->n; i += 2, tag->n = before) {
        if (cfg_get(x, y->item[i]->s) != NULL)
            continue;
        ms_buf_puts(tag, before != 0 ? "." : "");
        ms_buf_str(tag, y->item[i]->s);
        MS_TRY(ms_buf_check(tag, in->k->err));
        MS_TRY(input_row(in, ms_buf_slice(tag), NULL, y->item[i + 1]));
    }
    return MS_OK;
}

static enum ms_rc compare_dataset(struct cfg_check *k, struct ms_str member, int64_t step,
                                  int64_t rank)
{
    const struct inputs in = {k, step, rank};
    const struct ms_plain *v[2];
    struct ms_buf tag = {.max = 1 << 16};
    if (cfg__member(k, 1, member) == NULL)
        return MS_OK;
    for (int side = 0; side < 2; side++)
        MS_TRY(cfg__json(k, side, member, &v[side]));
    const enum ms_rc rc = compare_inputs(&in, &tag, v[0], v[1], 60);
    ms_buf_free(&tag);
    return rc;
}

/* Members of a folder by step and rank. */
struct place {
    struct ms_str name;
    int64_t step, rank;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum ms_rc check_places(struct cfg_check *k, const char *folder, const char *file,
                               enum ms_rc (*compare)(struct cfg_check *, struct ms_str, int64_t,
                                                     int64_t))
{
    MS_VEC(struct place) all = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < k->sides->zip[0].zip.members.n; i++) {
        struct place p = {.name = k->sides->zip[0].zip.members.p[i].name};
        struct ms_str rest = p.name;
        if (!ms_str_skip(&rest, folder) || !read_place(rest, file, &p.step, &p.rank))
            continue;
        struct place *slot = ms_vec_push(&all);
        if (slot == NULL)
            rc = ms_no_memory(k->err);
        else
            *slot = p;
    }
    if (all.n != 0)
        qsort(all.p, all.n, sizeof *all.p, compare_places);
    for (size_t i = 0; rc == MS_OK && i < all.n; i++)
        rc = compare(k, all.p[i].name, all.p[i].step, all.p[i].rank);
    ms_vec_free(&all);
    judge_truths(k->t, 3);
    return rc;
}

static enum ms_rc check_weights(struct cfg_check *k)
{
    return check_places(k, "weights/", "weight.json", compare_weights);
}

static enum ms_rc check_dataset(struct cfg_check *k)
{
    return check_places(k, "dataset/", "dataset.json", compare_dataset);
}

/* ---- the checks in order ------------------------------------------------------------------------- */

static enum ms_rc check_hyperparameters(struct cfg_check *k)
{
    MS_TRY(cfg__check_hyperparameters(k));
    judge_levels(k->t);
    return MS_OK;
}

static enum ms_rc check_random(struct cfg_check *k)
{
    MS_TRY(cfg__check_random(k));
    judge_truths(k->t, 6);
    return MS_OK;
}

#define DIFFERENCES                                                                                \
    "max_relative_diff", "min_relative_diff", "mean_relative_diff", "norm_relative_diff"

static const struct {
    const char *name;
    enum ms_rc (*check)(struct cfg_check *);
    const char *header[CFG_COLUMNS + 1];
} checks[] = {
    {"env",
     check_environment,
     {"bench_env_name", "cmp_env_name", "bench_value", "cmp_value", "level"}},
    {"pip", check_packages, {"package", "bench version", "cmp version", "level"}},
    {"dataset", check_dataset, {"step", "rank", "tag", "equal", DIFFERENCES}},
    {"weights", check_weights, {"step", "rank", "weight_name", "equal", DIFFERENCES}},
    {"hyperparameters",
     check_hyperparameters,
     {"file_name", "bench_para", "cmp_para", "bench_value", "cmp_value", "matched_with", "level"}},
    {"random",
     check_random,
     {"op", "rank", "bench_stack", "cmp_stack", "bench_count", "cmp_count", "check_result"}},
};

static enum ms_rc run_check(struct cfg_result *r, size_t i, struct ms_err *err)
{
    struct cfg_check k = {.sides = &r->sides, .err = err};
    if (!has_folder(&k, 0, checks[i].name) || !has_folder(&k, 1, checks[i].name))
        return MS_OK;
    struct cfg_table *t = ms_vec_push(&r->tables);
    if (t == NULL)
        return ms_no_memory(err);
    *t = (struct cfg_table){.name = checks[i].name, .verdict = "pass"};
    memcpy(t->header, checks[i].header, sizeof t->header);
    while (t->header[t->columns] != NULL)
        t->columns++;
    k.t = t;
    return checks[i].check(&k);
}

enum ms_rc cfg_compare(struct cfg_result *r, const char *bench, const char *cmp, bool strict,
                       struct ms_err *err)
{
    *r = (struct cfg_result){.sides.swaps_env = strict};
    r->sides.a = ms_arena_new((size_t)4 << 30);
    if (r->sides.a == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = cfg_zip_open(&r->sides.zip[0], bench, err);
    if (rc == MS_OK)
        rc = cfg_zip_open(&r->sides.zip[1], cmp, err);
    for (size_t i = 0; rc == MS_OK && i < sizeof checks / sizeof *checks; i++)
        rc = run_check(r, i, err);
    if (rc != MS_OK)
        cfg_result_free(r);
    return rc;
}

void cfg_result_free(struct cfg_result *r)
{
    for (size_t i = 0; i < r->tables.n; i++)
        ms_vec_free(&r->tables.p[i].cells);
    ms_vec_free(&r->tables);
    cfg_zip_close(&r->sides.zip[0]);
    cfg_zip_close(&r->sides.zip[1]);
    ms_arena_free(r->sides.a);
    *r = (struct cfg_result){0};
}
