/* SPDX-License-Identifier: MIT
 *
 * arguments: finds which rows of one operator correspond to which rows of its partner.
 *
 * Frameworks order arguments differently and pass different numbers of them, by
 * position or by name. Rows of one kind (inputs, parameters, outputs, gradients) are
 * paired greedily, the most similar pair first: by value, then shape, name and
 * position. Where a fused operator is paired with the last of several operators, only
 * inputs of equal value correspond. All pairs of rows together form a mapping that
 * the official tool can read:
 *
 *     Cell.a.B.forward.0.output.0: Module.c.D.forward.0.output.0
 */
#include "compare/align/emit.h"
#include "compare/read/yaml_doc.h"
#include "probe/base/assert.h"

enum { ROWS_MAX = 64 }; /* rows of one kind; longer lists are paired by position */

struct row_view {
    uint32_t row, place;
    bool is_tensor;
    struct align__value value;
    struct align__dim dim;
    struct ms_str name; /* last part of the path: "weight", "0" */
    struct ms_str json; /* text of a plain value */
    uint32_t known_as;  /* number of the value in the alignment, or ALIGN__NONE */
    bool is_inner;      /* the gradient of a value that the forward operator did not read */
};

struct row_list {
    struct row_view v[ROWS_MAX];
    uint32_t n;
};

enum { INPUTS, PARAMETERS, OUTPUTS, GRADIENTS, KINDS };

static unsigned kind_of(const struct probe_row *r)
{
    switch (r->section) {
    case PROBE_SEC_PARAMETERS:
        return PARAMETERS;
    case PROBE_SEC_OUTPUT:
        return OUTPUTS;
    case PROBE_SEC_PGRAD:
        return GRADIENTS;
    default:
        return INPUTS;
    }
}

static void view_row(const struct probe_dump *d, uint32_t row, uint32_t place, struct row_view *v)
{
    struct probe_leaf leaf;
    struct ms_str path = probe_row_path(d, &d->rows.p[row]);
    *v = (struct row_view){.row = row, .place = place, .known_as = ALIGN__NONE};
    v->name = probe_name_last(path);
    v->is_tensor = align__row_value(d, row, &v->value, &v->dim);
    probe_row_leaf(d, &d->rows.p[row], &leaf);
    v->json = leaf.value_json;
}

/* Lists the rows of one kind of a node. Returns false when there are more than ROWS_MAX. */
static bool list_rows(const struct probe_dump *d, uint32_t node, unsigned kind,
                      struct row_list *list)
{
    ms_assert(node < d->nodes.n && kind < KINDS);
    const struct probe_node *nd = &d->nodes.p[node];
    list->n = 0;
    for (uint32_t i = nd->first_row; i < nd->first_row + nd->nrows; i++) {
        if (kind_of(&d->rows.p[i]) != kind)
            continue;
        if (list->n == ROWS_MAX)
            return false;
        view_row(d, i, list->n, &list->v[list->n]);
        list->n++;
    }
    return true;
}

/* Relation of two nodes, known before their rows are compared. */
struct relation {
    const struct cmp_align *al;
    bool by_value; /* only rows with equal values are paired */
    bool is_part;  /* one node is a part of the other: rows of different sizes are not paired */
};

/* Fills in the number that the alignment gives to the value of each row. */
static void recall_values(const struct align__ctx *c, int side, uint32_t op, struct row_list *list)
{
    ms_assert(op == ALIGN__NONE || op < c->side[side].ops.n);
    if (op == ALIGN__NONE)
        return;
    const struct align__op *o = &c->side[side].ops.p[op];
    const struct align__tensor *t = align__ins(&c->side[side], o);
    for (uint32_t i = 0; i < list->n; i++) {
        for (unsigned k = 0; k < (unsigned)o->nin + o->nparam + o->nout; k++) {
            if (t[k].row == list->v[i].row)
                list->v[i].known_as = t[k].value;
        }
    }
}

/* Marks gradients of values that the forward operator did not read. A gradient has the shape of its
 * value; where autograd splits an operator into several nodes, the recorded gradients are those of
 * the first node, whose inputs may have other shapes. */
static void find_inner(const struct align__ctx *c, int side, uint32_t forward,
                       struct row_list *list)
{
    ms_assert(forward == ALIGN__NONE || forward < c->side[side].ops.n);
    if (forward == ALIGN__NONE)
        return;
    const struct align__op *o = &c->side[side].ops.p[forward];
    const struct align__tensor *t = align__ins(&c->side[side], o);
    for (uint32_t i = 0; i < list->n; i++) {
        struct row_view *v = &list->v[i];
        v->is_inner = v->is_tensor;
        for (unsigned k = 0; k < (unsigned)o->nin + o->nparam && v->is_inner; k++)
            v->is_inner = !align__dim_same(&c->dims.list.p[t[k].dims], &v->dim);
    }
}

/* Tells whether earlier pairs identify the two rows' values with each other. */
static bool passed_on(const struct relation *rel, const struct row_view *t,
                      const struct row_view *g)
{
    return t->known_as != ALIGN__NONE && g->known_as != ALIGN__NONE &&
           rel->al->c.vmap[g->known_as] == t->known_as;
}

/* Returns how well two rows match; 0: not at all. */
static float row_score(const struct relation *rel, const struct row_view *t,
                       const struct row_view *g)
{
    float near = t->place == g->place ? 0.1F : 0;
    if (t->is_tensor != g->is_tensor)
        return 0;
    if (!t->is_tensor) {
        bool same = ms_str_eq(t->json, g->json);
        return rel->by_value && !same ? 0 : (same ? 1 : 0.2F) + near;
    }
    float like = align__likeness(align__distance(&g->value, &t->value));
    bool passed = passed_on(rel, t, g);
    bool by_value = rel->by_value || t->is_inner != g->is_inner;
    if (t->value.cls != g->value.cls || (by_value && like < 0.8F && !passed) ||
        (rel->is_part && t->dim.n != g->dim.n))
        return 0;
    bool same_shape = align__dim_same(&t->dim, &g->dim);
    return 0.2F + 2 * (passed && like < 0.5F ? 0.5F : like) +
           (same_shape             ? 0.6F
            : t->dim.n == g->dim.n ? 0.3F
                                   : 0) +
           (ms_str_eq(t->name, g->name) ? 0.3F : 0) + near;
}

/* Pairs rows greedily: the best remaining pair first. partner[i] is the index of the golden row for
 * target row i. */
static void assign_arguments(const struct relation *rel, const struct row_list *t,
                             const struct row_list *g, uint32_t partner[ROWS_MAX],
                             bool taken[ROWS_MAX])
{
    ms_assert(t->n <= ROWS_MAX && g->n <= ROWS_MAX);
    float score[ROWS_MAX][ROWS_MAX];
    for (uint32_t i = 0; i < t->n; i++) {
        partner[i] = CMP_ALIGN_NONE;
        for (uint32_t j = 0; j < g->n; j++)
            score[i][j] = row_score(rel, &t->v[i], &g->v[j]);
    }
    for (uint32_t round = 0; round < t->n; round++) {
        uint32_t bi = CMP_ALIGN_NONE;
        uint32_t bj = 0;
        for (uint32_t i = 0; i < t->n; i++) {
            for (uint32_t j = 0; partner[i] == CMP_ALIGN_NONE && j < g->n; j++) {
                if (!taken[j] && score[i][j] > (bi == CMP_ALIGN_NONE ? 0 : score[bi][bj])) {
                    bi = i;
                    bj = j;
                }
            }
        }
        if (bi == CMP_ALIGN_NONE)
            return;
        partner[bi] = bj;
        taken[bj] = true;
    }
}

/* Pairs rows by position, for lists too long to be compared. */
static size_t zip_rows(const struct probe_dump *const dump[2], const uint32_t node[2],
                       unsigned kind, struct cmp_align_row *out)
{
    ms_assert(node[0] < dump[0]->nodes.n && node[1] < dump[1]->nodes.n);
    const struct probe_node *g = &dump[0]->nodes.p[node[0]];
    const struct probe_node *t = &dump[1]->nodes.p[node[1]];
    uint32_t j = g->first_row;
    uint32_t j_end = g->first_row + g->nrows;
    size_t n = 0;
    for (uint32_t i = t->first_row; i < t->first_row + t->nrows; i++) {
        if (kind_of(&dump[1]->rows.p[i]) != kind)
            continue;
        while (j < j_end && kind_of(&dump[0]->rows.p[j]) != kind)
            j++;
        out[n++] = (struct cmp_align_row){i, j < j_end ? j++ : CMP_ALIGN_NONE};
    }
    for (; j < j_end; j++) {
        if (kind_of(&dump[0]->rows.p[j]) == kind)
            out[n++] = (struct cmp_align_row){CMP_ALIGN_NONE, j};
    }
    return n;
}

/* Tells whether the two operators are of different families, so that their inputs do not
 * correspond. */
static bool is_unlike(const struct cmp_align *al, uint32_t golden, uint32_t target)
{
    if (golden == ALIGN__NONE || target == ALIGN__NONE)
        return false;
    return align__op_likeness(&al->c, &al->c.side[0].ops.p[golden], &al->c.side[1].ops.p[target]) <
           1;
}

/* Returns the kinds of rows that are paired by value alone: the inputs of operators of different
 * families, and the gradients of those inputs. Backward nodes paired because their forward
 * operators read the same value share the gradient of that value and nothing else. */
static unsigned kinds_by_value(const struct cmp_align *al, const struct cmp_align_pair *pair)
{
    if (pair->how == CMP_ALIGN_ENTRY)
        return 1U << INPUTS;
    if (is_unlike(al, al->op_of[0][pair->golden], al->op_of[1][pair->target]))
        return 1U << INPUTS;
    if (is_unlike(al, al->back_of[0][pair->golden], al->back_of[1][pair->target]))
        return 1U << OUTPUTS;
    return 0;
}

static uint32_t forward_of(const struct cmp_align *al, int side, uint32_t node)
{
    uint32_t op = al->op_of[side][node];
    return op != ALIGN__NONE ? op : al->back_of[side][node];
}

/* Tells whether the modules around the two operators are matched as a part and its whole. */
static bool is_part_pair(const struct cmp_align *al, const struct cmp_align_pair *pair)
{
    const struct align__ctx *c = &al->c;
    uint32_t g = forward_of(al, 0, pair->golden), t = forward_of(al, 1, pair->target);
    if (pair->how == CMP_ALIGN_PART)
        return true;
    if (g == ALIGN__NONE || t == ALIGN__NONE)
        return false;
    uint32_t a = c->side[0].ops.p[g].parent, b = c->side[1].ops.p[t].parent;
    return a != ALIGN__NONE && b != ALIGN__NONE && (c->mod[0][a] == b || c->mod[1][b] == a) &&
           c->mod_pair[0][a] != b;
}

static size_t pair_kind(const struct relation *rel, const struct probe_dump *const dump[2],
                        const uint32_t node[2], unsigned kind, struct cmp_align_row *out)
{
    struct row_list t;
    struct row_list g;
    uint32_t partner[ROWS_MAX];
    bool taken[ROWS_MAX] = {false};
    size_t n = 0;
    if (!list_rows(dump[1], node[1], kind, &t) || !list_rows(dump[0], node[0], kind, &g))
        return zip_rows(dump, node, kind, out);
    recall_values(&rel->al->c, 0, rel->al->op_of[0][node[0]], &g);
    recall_values(&rel->al->c, 1, rel->al->op_of[1][node[1]], &t);
    if (kind == OUTPUTS) {
        find_inner(&rel->al->c, 0, rel->al->back_of[0][node[0]], &g);
        find_inner(&rel->al->c, 1, rel->al->back_of[1][node[1]], &t);
    }
    assign_arguments(rel, &t, &g, partner, taken);
    for (uint32_t i = 0; i < t.n; i++)
        out[n++] = (struct cmp_align_row){
            t.v[i].row, partner[i] != CMP_ALIGN_NONE ? g.v[partner[i]].row : CMP_ALIGN_NONE};
    for (uint32_t j = 0; j < g.n; j++) {
        if (!taken[j])
            out[n++] = (struct cmp_align_row){CMP_ALIGN_NONE, g.v[j].row};
    }
    return n;
}

size_t cmp_align_rows(const struct cmp_align *al, const struct cmp_align_pair *pair,
                      struct cmp_align_row *out)
{
    const struct probe_dump *const dump[2] = {al->c.side[0].dump, al->c.side[1].dump};
    const uint32_t node[2] = {pair->golden, pair->target};
    ms_assert(node[0] < dump[0]->nodes.n && node[1] < dump[1]->nodes.n);
    unsigned by_value = kinds_by_value(al, pair);
    struct relation rel = {.al = al, .is_part = is_part_pair(al, pair)};
    size_t n = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        rel.by_value = (by_value >> kind & 1) != 0;
        n += pair_kind(&rel, dump, node, kind, out + n);
    }
    return n;
}

static void print_row(const struct cmp_align *al, const struct cmp_align_row *r,
                      struct ms_buf *scratch, struct ms_buf *out)
{
    if (r->target == CMP_ALIGN_NONE || r->golden == CMP_ALIGN_NONE)
        return;
    for (int side = 1; side >= 0; side--) {
        const struct probe_dump *d = al->c.side[side].dump;
        ms_buf_clear(scratch);
        probe_row_name(d, &d->rows.p[side == 1 ? r->target : r->golden], scratch);
        cmp__yaml_put(out, ms_buf_slice(scratch));
        ms_buf_puts(out, side == 1 ? ": " : "\n");
    }
}

enum ms_rc cmp_align_write_rows(const struct cmp_align *al, struct ms_buf *out, struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 20};
    MS_VEC(struct cmp_align_row) rows = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < al->pairs.n && rc == MS_OK; i++) {
        const struct cmp_align_pair *p = &al->pairs.p[i];
        if (p->more)
            continue;
        size_t most = (size_t)al->c.side[0].dump->nodes.p[p->golden].nrows +
                      al->c.side[1].dump->nodes.p[p->target].nrows;
        if (!ms_vec_reserve(&rows, most + 1)) {
            rc = ms_no_memory(err);
            break;
        }
        size_t n = cmp_align_rows(al, p, rows.p);
        for (size_t k = 0; k < n; k++)
            print_row(al, &rows.p[k], &scratch, out);
    }
    ms_vec_free(&rows);
    ms_buf_free(&scratch);
    return rc == MS_OK ? ms_buf_check(out, err) : rc;
}
