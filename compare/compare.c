/* SPDX-License-Identifier: MIT
 *
 * compare: opening a pair of dumps, and looking at one op of it.
 */
#include "compare/consistent.h"
#include "compare/match.h"
#include "compare/multiply.h"
#include "compare/source_value.h"

#include "probe/base/trace.h"

#include <math.h>
#include <strings.h>

enum { TEXT_MAX = 1 << 24 };
#define VIEW_MAX ((size_t)1 << 32)

/* ---- can they be compared? ------------------------------------------------ */

static enum ms_rc check_framework(const struct probe_dump *d, struct ms_err *err)
{
    if (d->framework_said.n == 0 ||
        ms_str_is(d->framework_said, probe_framework_text(d->framework)))
        return MS_OK;
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "%s: dumps of '%.*s' cannot be compared; those of pytorch, mindspore and "
                   "mindtorch can",
                   d->path, MS_STR_ARG(d->framework_said));
}

static enum ms_rc check_frameworks(const struct cmp *c, struct ms_err *err)
{
    MS_TRY(check_framework(c->t.dump, err));
    MS_TRY(check_framework(c->b.dump, err));
    const char *t = probe_framework_text(c->t.dump->framework);
    const char *b = probe_framework_text(c->b.dump->framework);
    bool fine = (cmp__is_pytorch(&c->t) && cmp__is_pytorch(&c->b)) ||
                (!cmp__is_pytorch(&c->t) && c->b.dump->framework != PROBE_FW_MINDTORCH);
    if (!fine && cmp__strict(c)) {
        ms_fail(err, MS_E_ARG, "%s: cannot compare %s with %s", c->t.dump->path, t, b);
        ms_err_hint(err, "%sleave out --compat strict: the official tool refuses this pair",
                    cmp__is_pytorch(&c->t) ? "swap target and golden path, or " : "");
        return MS_E_ARG;
    }
    if (c->conf.api.on && cmp__is_pytorch(&c->t))
        return ms_fail(err, MS_E_ARG,
                       "-am translates MindSpore names, but the target is a %s dump; leave it out",
                       t);
    return MS_OK;
}

static enum ms_rc check_modes(struct cmp *c, struct ms_err *err)
{
    enum probe_mode t = c->t.dump->mode, b = c->b.dump->mode;
    const char *path = c->t.dump->path;
    if (t != b)
        return ms_fail(err, MS_E_ARG,
                       "%s holds %s and %s holds %s; both sides must be dumped alike", path,
                       probe_mode_text(t), c->b.dump->path, probe_mode_text(b));
    if (t == PROBE_MODE_STRUCTURE)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: a dump of task '%.*s' has no values; use graph_visualize", path,
                       MS_STR_ARG(c->t.dump->task));
    c->mode = c->conf.summarise && t == PROBE_MODE_TENSOR ? PROBE_MODE_SUMMARY : t;
    return MS_OK;
}

/* ---- opening -------------------------------------------------------------- */

static enum ms_rc join_dir(char **out, struct ms_str dir, const char *name, struct ms_err *err)
{
    char *d = ms_str_dup(dir);
    *out = d != NULL ? ms_path_join(d, name) : NULL;
    ms_free(d);
    return *out != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc open_stacks(struct cmp *c, const char *target, struct ms_err *err)
{
    char *path = NULL;
    if (c->conf.stack != NULL)
        path = ms_str_dup(ms_str_of(c->conf.stack));
    else
        MS_TRY(join_dir(&path, ms_path_dir(target), "stack.json", err));
    if (path == NULL)
        return ms_no_memory(err);
    if (ms_path_kind(path) == MS_KIND_FILE) {
        c->has_stack = true;
        unsigned flags = PROBE_STACK_TOLERANT | (cmp__strict(c) ? PROBE_STACK_OFFICIAL : 0);
        enum ms_rc rc = probe_stacks_open(&c->stacks, path, flags, err);
        ms_free(path);
        return rc;
    }
    ms_free(path);
    return MS_OK;
}

static enum ms_rc open_sides(struct cmp *c, const char *target, const char *golden,
                             struct ms_pool *pool, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("read");
    MS_TRY(cmp__side_init(&c->t, &c->conf, target, pool, err));
    MS_TRY(cmp__side_init(&c->b, &c->conf, golden, pool, err));
    MS_TRY(open_stacks(c, target, err));
    MS_TRY(join_dir(&c->t_dir, ms_path_dir(target), "dump_tensor_data", err));
    MS_TRY(join_dir(&c->b_dir, ms_path_dir(golden), "dump_tensor_data", err));
    ms_span_end(&span);
    return MS_OK;
}

/* Is each row in one pair at most?  Folded ones are in several. */
static enum ms_rc are_pairs_apart(const struct cmp *c, bool *apart, struct ms_err *err)
{
    size_t nt = c->t.order.n, nb = c->b.order.n;
    bool *taken = ms_calloc(nt + nb + 1, sizeof *taken);
    if (taken == NULL)
        return ms_no_memory(err);
    *apart = c->conf.consistent == CMP_CONSISTENT_NO;
    for (size_t i = 0; i < c->pairs.n && *apart; i++) {
        const struct cmp__pair *p = &c->pairs.p[i];
        bool *t = p->t != MS_MAP_NONE ? &taken[p->t] : NULL;
        bool *b = p->b != MS_MAP_NONE ? &taken[nt + p->b] : NULL;
        *apart = (t == NULL || !*t) && (b == NULL || !*b);
        if (t != NULL)
            *t = true;
        if (b != NULL)
            *b = true;
    }
    ms_free(taken);
    return MS_OK;
}

/* Where each row is looked at once, views leave behind what they read. */
static enum ms_rc keep_seen(struct cmp *c, struct ms_err *err)
{
    bool apart = false;
    if (c->conf.explain)
        MS_TRY(are_pairs_apart(c, &apart, err));
    if (!apart)
        return MS_OK;
    c->t.seen = ms_calloc(c->t.dump->rows.n + 1, sizeof *c->t.seen);
    c->b.seen = ms_calloc(c->b.dump->rows.n + 1, sizeof *c->b.seen);
    return c->t.seen != NULL && c->b.seen != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc check_consistent(const struct cmp *c, struct ms_err *err)
{
    if (c->conf.consistent == CMP_CONSISTENT_NO)
        return MS_OK;
    if (!cmp__is_pytorch(&c->t) || !cmp__is_pytorch(&c->b))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: --consistent_check knows training by PyTorch alone", c->t.dump->path);
    return MS_OK;
}

/* What was read all the same, but is not as it should be. */
static enum ms_rc note_damage(struct cmp *c, struct ms_err *err)
{
    const struct probe_dump *const both[] = {c->t.dump, c->b.dump};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < both[k]->problems.n; i++)
            MS_TRY(cmp__problem(c, err, "%s: %.*s", both[k]->path,
                                MS_STR_ARG(both[k]->problems.p[i])));
    }
    for (size_t k = 0; k < 2; k++) {
        if (both[k]->rows.n == 0)
            MS_TRY(cmp__problem(c, err, "%s: has nothing in it that could be compared",
                                both[k]->path));
    }
    return MS_OK;
}

static enum ms_rc fill(struct cmp *c, const char *target, const char *golden, struct ms_pool *pool,
                       struct ms_err *err)
{
    c->arena = ms_arena_new(TEXT_MAX);
    if (c->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(open_sides(c, target, golden, pool, err));
    MS_TRY(check_frameworks(c, err));
    MS_TRY(check_modes(c, err));
    MS_TRY(check_consistent(c, err));
    c->cross = cmp__is_pytorch(&c->t) != cmp__is_pytorch(&c->b);
    MS_TRY(note_damage(c, err));
    struct ms_span span = ms_span_begin("align");
    cmp__settle_sides(c);
    enum ms_rc rc = cmp__align(c, pool, err);
    if (rc == MS_OK)
        rc = cmp__settle_table(c, pool, err);
    ms_span_end(&span);
    if (rc == MS_OK && c->conf.data_mapping != NULL)
        rc = cmp__check_names(c, err);
    if (rc == MS_OK && c->conf.config != NULL && c->mode == PROBE_MODE_TENSOR)
        rc = cmp__factors_read(c, err);
    if (rc == MS_OK)
        rc = keep_seen(c, err);
    if (rc == MS_OK && c->conf.noise_floor != NULL)
        rc = cmp__take_noise(c, pool, err);
    return rc;
}

enum ms_rc cmp_open(struct cmp **out, const struct cmp_conf *conf, const char *target,
                    const char *golden, struct ms_pool *pool, struct ms_err *err)
{
    *out = NULL;
    struct cmp *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return ms_no_memory(err);
    c->conf = *conf;
    enum ms_rc rc = fill(c, target, golden, pool, err);
    if (rc != MS_OK) {
        cmp_close(c);
        return rc;
    }
    *out = c;
    return MS_OK;
}

void cmp_close(struct cmp *c)
{
    if (c == NULL)
        return;
    cmp__match_free(c);
    cmp__side_free(&c->t);
    cmp__side_free(&c->b);
    if (c->has_stack)
        probe_stacks_close(&c->stacks);
    cmp__pairs_free(&c->row_map);
    ms_vec_free(&c->named);
    cmp__factors_free(c->factors);
    ms_vec_free(&c->pairs);
    ms_vec_free(&c->folds);
    ms_vec_free(&c->places);
    ms_vec_free(&c->groups);
    ms_vec_free(&c->figures);
    ms_vec_free(&c->noise);
    ms_vec_free(&c->problems);
    ms_arena_free(c->arena);
    ms_free(c->t_dir);
    ms_free(c->b_dir);
    ms_free(c);
}

enum ms_rc cmp_measure(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    if (c->mode != PROBE_MODE_TENSOR)
        return MS_OK;
    struct ms_span span = ms_span_begin("measure");
    enum ms_rc rc = cmp__measure_tensors(c, pool, err);
    ms_span_end(&span);
    return rc;
}

enum ms_rc cmp__problem(struct cmp *c, struct ms_err *err, const char *fmt, ...)
{
    struct ms_buf b = {.max = 1 << 16};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct ms_str *slot = ms_vec_push(&c->problems);
    enum ms_rc rc = slot != NULL ? ms_buf_check(&b, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        *slot = ms_arena_str(c->arena, ms_buf_slice(&b));
        rc = slot->p != NULL ? MS_OK : ms_arena_fail(c->arena, err);
    }
    ms_buf_free(&b);
    return rc;
}

/* ---- asking ----------------------------------------------------------------- */

enum probe_mode cmp_mode(const struct cmp *c)
{
    return c->mode;
}
enum cmp_compat cmp_compat(const struct cmp *c)
{
    return c->conf.compat;
}
bool cmp_has_stack(const struct cmp *c)
{
    return c->has_stack && !c->conf.hide_stack;
}
bool cmp_maps_layers(const struct cmp *c)
{
    return c->conf.layer.on && c->row_map.arena != NULL;
}
bool cmp_is_debug(const struct cmp *c)
{
    return c->t.is_debug;
}
const struct probe_dump *cmp_dump(const struct cmp *c, bool golden)
{
    return golden ? c->b.dump : c->t.dump;
}
const struct cmp_align *cmp_alignment(const struct cmp *c)
{
    return c->al;
}
size_t cmp_problems(const struct cmp *c, const struct ms_str **list)
{
    *list = c->problems.p;
    return c->problems.n;
}
uint64_t cmp_bytes_read(const struct cmp *c)
{
    return c->bytes_read;
}
bool cmp_is_empty(const struct cmp *c)
{
    return c->t.order.n == 0 || c->b.order.n == 0;
}
size_t cmp_rows(const struct cmp *c)
{
    return c->pairs.n;
}
size_t cmp_groups(const struct cmp *c)
{
    return c->groups.n - 1;
}
size_t cmp_group_rows(const struct cmp *c, size_t group)
{
    return c->groups.p[group + 1].first - c->groups.p[group].first;
}

static uint32_t node_of(const struct cmp__side *s, uint32_t row)
{
    return row != MS_MAP_NONE ? s->ops.p[s->op_of.p[row]].node : MS_MAP_NONE;
}

struct cmp_pairing cmp_group_nodes(const struct cmp *c, size_t group)
{
    struct cmp_pairing found = {MS_MAP_NONE, MS_MAP_NONE};
    for (uint32_t i = c->groups.p[group].first; i < c->groups.p[group + 1].first; i++) {
        if (found.target == MS_MAP_NONE)
            found.target = node_of(&c->t, c->pairs.p[i].t);
        if (found.golden == MS_MAP_NONE)
            found.golden = node_of(&c->b, c->pairs.p[i].b);
    }
    return found;
}

/* ---- looking at a group ------------------------------------------------------- */

enum ms_rc cmp_view_init(struct cmp_view *v, struct ms_err *err)
{
    *v = (struct cmp_view){.scratch.max = TEXT_MAX};
    v->arena = ms_arena_new(VIEW_MAX);
    return v->arena != NULL ? MS_OK : ms_no_memory(err);
}

enum ms_rc cmp_view_renew(struct cmp_view *v, struct ms_err *err)
{
    v->rows.n = 0;
    if (ms_arena_used(v->arena) == 0)
        return MS_OK;
    ms_arena_free(v->arena);
    v->arena = ms_arena_new(VIEW_MAX);
    return v->arena != NULL ? MS_OK : ms_no_memory(err);
}

void cmp_view_free(struct cmp_view *v)
{
    ms_arena_free(v->arena);
    ms_vec_free(&v->rows);
    ms_buf_free(&v->scratch);
    *v = (struct cmp_view){0};
}

/* Floats that the official tool lets meet, of PyTorch or of MindSpore, and by these names alone. */
static int float_family(struct ms_str dtype)
{
    static const char *const names[] = {"torch.float16", "torch.bfloat16", "torch.float32",
                                        "Float16",       "BFloat16",       "Float32"};
    for (int i = 0; i < 6; i++) {
        if (ms_str_is(dtype, names[i]))
            return 1 + i / 3;
    }
    return 0;
}

/* What stands for a type where two frameworks meet; float8 and its like stand for themselves, and so
 * do other names of a type, such as torch.half. */
static enum ms_dtype_kind class_of(const struct cmp_item *item)
{
    const struct ms_str torch = MS_STR("torch.");
    bool prefixed = ms_str_starts(item->dtype, torch);
    struct ms_str name = ms_str_sub(item->dtype, prefixed ? torch.n : 0, item->dtype.n);
    const char *known = ms_dtype_torch(item->type);
    enum ms_dtype_kind kind = ms_dtype_kind(item->type);
    if (name.n != strlen(known) || strncasecmp(name.p, known, name.n) != 0)
        return MS_DTK_NONE;
    if (kind == MS_DTK_FLOAT && ms_dtype_size(item->type) == 1)
        return MS_DTK_NONE;
    return kind == MS_DTK_UINT ? MS_DTK_INT : kind;
}

/* The official tool does not compare rows whose dtypes are far apart. */
static bool dtypes_go_together(const struct cmp *c, const struct cmp_item *t,
                               const struct cmp_item *b)
{
    if (ms_str_eq(t->dtype, b->dtype))
        return true;
    if (!c->cross)
        return float_family(t->dtype) != 0 && float_family(t->dtype) == float_family(b->dtype);
    enum ms_dtype_kind kt = class_of(t);
    return kt != MS_DTK_NONE && kt == class_of(b);
}

static bool is_gated(const struct cmp *c)
{
    return cmp__strict(c) && c->row_map.keys.keys.n == 0 && c->conf.consistent == CMP_CONSISTENT_NO;
}

static enum ms_rc make_row(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                           struct cmp_row *row, struct ms_err *err)
{
    const struct cmp__pair *p = &c->pairs.p[pair];
    *row = (struct cmp_row){.t = cmp__item_none, .b = cmp__item_none, .pair = pair};
    if (p->t != MS_MAP_NONE)
        MS_TRY(cmp__item_make(&c->t, p->t, c->mode, v, &row->t, err));
    if (p->b != MS_MAP_NONE)
        MS_TRY(cmp__item_make(&c->b, p->b, c->mode, v, &row->b, err));
    if (row->t.present && row->b.present)
        MS_TRY(cmp__fold_item(c, v, pair, cmp__folds_target(c) ? &row->t : &row->b, err));
    if (c->mode == PROBE_MODE_MD5 && c->conf.consistent != CMP_CONSISTENT_NO && cmp__strict(c))
        cmp__lose_digests(row);
    if (row->b.present && is_gated(c) && !dtypes_go_together(c, &row->t, &row->b))
        row->b = cmp__item_none;
    if (!row->b.present)
        MS_TRY(cmp__item_show_floats(v, &row->t, c->t.alone_as_float, err));
    row->is_output = cmp__strict(c) ? ms_str_find_str(row->t.name, MS_STR(".output.")) >= 0
                                    : row->t.section == PROBE_SEC_OUTPUT;
    row->grad_same = ms_str_eq(row->t.requires_grad, row->b.requires_grad);
    return MS_OK;
}

enum ms_rc cmp__is_parted(const struct cmp *c, struct cmp_view *v, uint32_t pair, bool *parted,
                          struct ms_err *err)
{
    struct cmp_row row;
    *parted = false;
    if (!is_gated(c))
        return MS_OK;
    MS_TRY(make_row(c, v, pair, &row, err));
    *parted = !row.b.present;
    return MS_OK;
}

static void take_figures(const struct cmp *c, struct cmp_row *row)
{
    if (!row->b.present || !row->t.present)
        row->fig.state = CMP_STATE_UNMATCHED;
    else if (c->figures.n != 0)
        row->fig = c->figures.p[row->pair];
}

static enum ms_rc measure_row(const struct cmp *c, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err)
{
    if (c->mode == PROBE_MODE_TENSOR)
        take_figures(c, row);
    if (c->mode != PROBE_MODE_SUMMARY)
        return MS_OK;
    return c->conf.compat == CMP_OLD ? cmp__measure_stats_old(v, row, err)
                                     : cmp__measure_stats(c, v, row, err);
}

enum ms_rc cmp__view_row(const struct cmp *c, struct cmp_view *v, uint32_t pair, struct ms_err *err)
{
    struct cmp_row *row = ms_vec_push(&v->rows);
    if (row == NULL)
        return ms_no_memory(err);
    MS_TRY(make_row(c, v, pair, row, err));
    return measure_row(c, v, row, err);
}

/* On the first row of its op, which strictly is the first of the dump. */
bool cmp__shows_stack(const struct cmp *c, const struct cmp_view *v, const struct cmp_row *row)
{
    uint32_t t = c->pairs.p[row->pair].t;
    if (v->frames.p == NULL)
        return false;
    if (!cmp__strict(c))
        return row == v->rows.p;
    return t != MS_MAP_NONE && c->t.ops.p[c->t.op_of.p[t]].first == t;
}

enum ms_rc cmp_view_group(const struct cmp *c, size_t group, struct cmp_view *v, struct ms_err *err)
{
    uint32_t first = c->groups.p[group].first, end = c->groups.p[group + 1].first;
    struct cmp_pairing nodes = cmp_group_nodes(c, group);
    v->rows.n = 0;
    if (!ms_vec_reserve(&v->rows, end - first))
        return ms_no_memory(err);
    for (uint32_t i = first; i < end; i++) {
        MS_TRY(cmp__view_row(c, v, i, err));
        struct cmp_row *row = &v->rows.p[i - first];
        row->match = cmp__match_of(c, &nodes, row);
    }
    uint32_t node = nodes.target;
    v->op = node != MS_MAP_NONE ? probe_node_name(c->t.dump, node) : MS_STR("");
    v->frames =
        c->has_stack && node != MS_MAP_NONE ? probe_stack_frames(&c->stacks, v->op) : MS_STR_NONE;
    if (c->places.n != 0)
        return cmp__judge_by_place(c, v, err);
    cmp__judge(c, v);
    return MS_OK;
}
