/* SPDX-License-Identifier: MIT
 *
 * view: makes the rows of one operator on demand.
 */
#include "compare/judge/judge.h"
#include "compare/measure/fold.h"
#include "compare/measure/measure_stat.h"
#include "compare/table/comparison.h"

#include "probe/base/assert.h"

#include <math.h>
#include <strings.h>

enum { TEXT_MAX = 1 << 24 };
#define VIEW_MAX ((size_t)1 << 32)

/* ---- views ------------------------------------------------------------------- */

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

/* Returns 1 for a PyTorch and 2 for a MindSpore float type, 0 for any other name. The official tool
 * compares floats of one framework with each other, under these names only. */
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

/* Returns the class by which dtypes are compared across frameworks. Eight-bit floats and other
 * names of a type, such as torch.half, have no class and match only themselves. */
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

/* Tells whether two dtypes may be compared; the official tool does not compare rows of different
 * classes. */
static bool dtypes_go_together(const struct cmp *c, const struct cmp_item *t,
                               const struct cmp_item *b)
{
    if (ms_str_eq(t->dtype, b->dtype))
        return true;
    if (!c->set.cross)
        return float_family(t->dtype) != 0 && float_family(t->dtype) == float_family(b->dtype);
    enum ms_dtype_kind kt = class_of(t);
    return kt != MS_DTK_NONE && kt == class_of(b);
}

static bool is_gated(const struct cmp *c)
{
    return c->set.conf.rules->parts_dtypes && c->rows.row_map.keys.keys.n == 0 &&
           c->set.conf.consistent == CMP_CONSISTENT_NO;
}

/* Parses the leaf of a row, keeps the leaf for its owner (v->values), and makes the row's cells. */
static enum ms_rc make_item(const struct cmp *c, struct cmp_view *v, bool golden, uint32_t row,
                            struct cmp_item *item, struct ms_err *err)
{
    const struct cmp__side *s = golden ? &c->rows.b : &c->rows.t;
    struct probe_leaf leaf;
    probe_row_leaf(s->dump, cmp__side_row(s, row), &leaf);
    if (v->values != NULL)
        read__values_keep(&v->values[!golden], s->order.p[row], &leaf);
    return cmp__item_of_leaf(s, row, &leaf, c->set.mode, v, item, err);
}

static enum ms_rc make_row(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                           struct cmp_row *row, struct ms_err *err)
{
    ms_assert(pair < c->rows.pairs.n);
    const struct cmp__pair *p = &c->rows.pairs.p[pair];
    *row = (struct cmp_row){.t = cmp__item_none, .b = cmp__item_none, .pair = pair};
    if (p->t != MS_MAP_NONE)
        MS_TRY(make_item(c, v, false, p->t, &row->t, err));
    if (p->b != MS_MAP_NONE)
        MS_TRY(make_item(c, v, true, p->b, &row->b, err));
    if (row->t.present && row->b.present)
        MS_TRY(
            cmp__fold_item(&c->rows, v, pair, cmp__folds_target(&c->set) ? &row->t : &row->b, err));
    if (c->set.mode == PROBE_MODE_MD5 && c->set.conf.consistent != CMP_CONSISTENT_NO &&
        c->set.conf.rules->loses_digests)
        cmp__lose_digests(row);
    if (row->b.present && is_gated(c) && !dtypes_go_together(c, &row->t, &row->b))
        row->b = cmp__item_none;
    if (!row->b.present)
        MS_TRY(cmp__item_show_floats(v, &row->t, c->rows.t.alone_as_float, err));
    row->is_output = c->set.conf.rules->output_by_name
                         ? ms_str_find_str(row->t.name, MS_STR(".output.")) >= 0
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
    else if (c->measured.figures.n != 0)
        row->fig = c->measured.figures.p[row->pair];
}

static enum ms_rc measure_row(const struct cmp *c, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err)
{
    if (c->set.mode == PROBE_MODE_TENSOR)
        take_figures(c, row);
    if (c->set.mode != PROBE_MODE_SUMMARY)
        return MS_OK;
    return cmp__measure_stats(&c->set, v, row, err);
}

/* Adds a row to the view and measures it. */
static enum ms_rc view_row(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                           struct ms_err *err)
{
    struct cmp_row *row = ms_vec_push(&v->rows);
    if (row == NULL)
        return ms_no_memory(err);
    MS_TRY(make_row(c, v, pair, row, err));
    return measure_row(c, v, row, err);
}

/* Tells whether a row shows the stack: the first row of the group or, by the official rules, of the
 * record. */
bool cmp__shows_stack(const struct cmp *c, const struct cmp_view *v, const struct cmp_row *row)
{
    uint32_t t = c->rows.pairs.p[row->pair].t;
    if (v->frames.p == NULL)
        return false;
    if (!c->set.conf.rules->stack_of_record)
        return row == v->rows.p;
    return t != MS_MAP_NONE && c->rows.t.ops.p[c->rows.t.op_of.p[t]].first == t;
}

/* ---- verdicts -------------------------------------------------------------- */

/* Judges all rows of the operator whose first verdict is at `first`. */
static enum ms_rc judge_op(const struct cmp *c, uint32_t first, struct cmp_view *v,
                           struct ms_err *err)
{
    v->rows.n = 0;
    for (size_t i = first; i < c->places.n && c->places.p[i].first == first; i++)
        MS_TRY(view_row(c, v, c->places.p[i].pair, err));
    v->op = v->rows.p[0].t.name;
    cmp__judge(&c->set, v);
    return MS_OK;
}

/* Gives each row the verdict that the official tool writes at its place. */
static enum ms_rc judge_by_place(const struct cmp *c, struct cmp_view *v, struct ms_err *err)
{
    struct cmp_view op;
    uint32_t first = UINT32_MAX;
    MS_TRY(cmp_view_init(&op, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < v->rows.n && rc == MS_OK; i++) {
        struct cmp_row *row = &v->rows.p[i];
        const struct cmp__place *place = &c->places.p[row->pair];
        if (place->first != first)
            rc = judge_op(c, first = place->first, &op, err);
        if (rc != MS_OK)
            break;
        const struct cmp_row *judged = &op.rows.p[row->pair - first];
        row->level = judged->level;
        row->notes = judged->notes;
    }
    cmp_view_free(&op);
    return rc;
}

/* ---- a group ------------------------------------------------------------------- */

static struct cmp_match match_by_name(const struct cmp *c, const struct cmp_row *row)
{
    if (ms_str_eq(row->t.name, row->b.name))
        return (struct cmp_match){"exact", 1};
    bool mapped = c->rows.row_map.arena != NULL || c->set.conf.api.on || c->set.conf.cell.on ||
                  c->set.conf.fuzzy || c->set.conf.consistent != CMP_CONSISTENT_NO;
    return (struct cmp_match){mapped ? "mapped" : "renumbered", 1};
}

/* Returns how a row of a group with these nodes got its partner. */
static struct cmp_match match_of(const struct cmp *c, const struct cmp_pairing *nodes,
                                 const struct cmp_row *row)
{
    const struct cmp_align_pair *pairs;
    if (!row->t.present || !row->b.present)
        return (struct cmp_match){"none", 0};
    if (c->rows.al == NULL)
        return match_by_name(c, row);
    size_t n = cmp_align_of(c->rows.al, nodes->target, &pairs);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == nodes->golden)
            return (struct cmp_match){cmp_align_how_names[pairs[i].how],
                                      (double)pairs[i].confidence};
    }
    return (struct cmp_match){cmp_align_how_names[CMP_ALIGN_PINNED], 1};
}

enum ms_rc cmp_view_group(const struct cmp *c, size_t group, struct cmp_view *v, struct ms_err *err)
{
    ms_assert(group < cmp_groups(c));
    uint32_t first = c->rows.groups.p[group].first, end = c->rows.groups.p[group + 1].first;
    struct cmp_pairing nodes = cmp_group_nodes(c, group);
    v->rows.n = 0;
    if (!ms_vec_reserve(&v->rows, end - first))
        return ms_no_memory(err);
    for (uint32_t i = first; i < end; i++) {
        MS_TRY(view_row(c, v, i, err));
        struct cmp_row *row = &v->rows.p[i - first];
        row->match = match_of(c, &nodes, row);
    }
    uint32_t node = nodes.target;
    v->op = node != MS_MAP_NONE ? probe_node_name(c->rows.t.dump, node) : MS_STR("");
    v->frames = c->rows.has_stack && node != MS_MAP_NONE
                    ? probe_stack_frames(&c->rows.stacks, v->op)
                    : MS_STR_NONE;
    if (c->places.n != 0)
        return judge_by_place(c, v, err);
    cmp__judge(&c->set, v);
    return MS_OK;
}
