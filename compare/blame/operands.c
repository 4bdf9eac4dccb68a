/* SPDX-License-Identifier: MIT
 *
 * operands: tensors and plain values of a record.
 */
#include "compare/blame/operands.h"

#include "compare/measure/tensor_file.h"
#include "probe/base/num.h"

enum { NESTED_MAX = 4, PIECE = 4096 };

struct ms_str blame_operator_of(struct ms_str record)
{
    const struct probe_name name = probe_name_parse(record);
    if (name.kind == PROBE_NODE_MODULE)
        return probe_name_last(name.path);
    /* Primitive.matmul.MatMul: the name of the attribute comes before that of the primitive. */
    return ms_str_is(name.prefix, "Primitive") ? probe_name_last(name.path) : name.path;
}

/* ---- tensors ------------------------------------------------------------------ */

static enum ms_rc shape_of(const struct probe_tensor *f, struct tape_shape *shape,
                           struct ms_err *err)
{
    if (f->ndim > TAPE_DIMS)
        return ms_fail(err, MS_E_UNSUPPORTED, "a tensor of %u axes; %d are recomputed", f->ndim,
                       TAPE_DIMS);
    *shape = (struct tape_shape){.ndim = f->ndim};
    for (unsigned i = 0; i < f->ndim; i++)
        shape->dim[i] = f->shape[i];
    return MS_OK;
}

static void read_elements(const struct probe_tensor *f, double *to)
{
    struct probe_pieces pieces;
    const void *p;
    uint64_t n;
    probe_pieces_start(&pieces, f);
    while ((p = probe_pieces_next(&pieces, &n)) != NULL) {
        ms_dtype_to_f64(f->dtype, p, (size_t)n, to);
        to += n;
    }
    probe_pieces_end(&pieces);
}

/* Opens the data file of a leaf. */
static enum ms_rc open_leaf(const struct blame_record *r, const struct probe_leaf *leaf,
                            struct ms_str path, struct probe_tensor *f, struct ms_err *err)
{
    if (leaf->data_name.n == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "%.*s of %.*s has no data file; dump the operator with the task \"tensor\"",
                       MS_STR_ARG(path), MS_STR_ARG(probe_node_name(r->dump, r->node)));
    MS_TRY(cmp__open_tensor(r->dump, r->tensors, leaf->data_name, f, err));
    if (ms_dtype_kind(f->dtype) == MS_DTK_COMPLEX || f->dtype == MS_DT_NONE ||
        probe_tensor_is_endless(f)) {
        probe_tensor_close(f);
        return ms_fail(err, MS_E_UNSUPPORTED, "%.*s: a tensor of a type that is not recomputed",
                       MS_STR_ARG(leaf->data_name));
    }
    return MS_OK;
}

static bool is_empty(const struct probe_leaf *leaf)
{
    uint64_t dim[TAPE_DIMS];
    unsigned n, empty = 0;
    if (!probe_leaf_shape(leaf, dim, TAPE_DIMS, &n))
        return false;
    for (unsigned i = 0; i < n; i++)
        empty += dim[i] == 0;
    return empty != 0;
}

static enum ms_rc load_leaf(const struct blame_record *r, const struct probe_leaf *leaf,
                            struct ms_str path, struct tape *t, struct rec_value *v,
                            struct ms_err *err)
{
    struct probe_tensor f;
    struct tape_shape shape = {0};
    v->kind = REC_TENSOR;
    v->dtype = leaf->dtype;
    if (leaf->data_name.n == 0 && is_empty(leaf)) { /* such a tensor has no file */
        (void)probe_leaf_shape(leaf, shape.dim, TAPE_DIMS, &shape.ndim);
        v->node = tape_leaf(t, &shape);
    } else {
        MS_TRY(open_leaf(r, leaf, path, &f, err));
        enum ms_rc rc = shape_of(&f, &shape, err);
        v->node = rc == MS_OK ? tape_leaf(t, &shape) : TAPE_NONE;
        if (v->node != TAPE_NONE)
            read_elements(&f, tape_at(t, v->node)->v);
        probe_tensor_close(&f);
        MS_TRY(rc);
    }
    return v->node != TAPE_NONE ? MS_OK : ms_fail(err, t->err.rc, "%s", t->err.msg);
}

/* ---- plain values --------------------------------------------------------------- */

static void add_number(struct rec_value *v, const struct ms_jread *r, struct tape *t)
{
    struct rec_value *grown = ms_arena_calloc(t->arena, v->n + 1, sizeof *grown);
    if (grown == NULL)
        return;
    if (v->n != 0)
        memcpy(grown, v->items, v->n * sizeof *grown);
    grown[v->n].kind = REC_NUMBER;
    grown[v->n].is_int = ms_jread_is_int(r);
    (void)ms_jread_f64(r, &grown[v->n].number);
    v->items = grown;
    v->n++;
}

/* Reads a number, a truth value, a text, or a list of numbers such as a torch.Size. */
static void read_plain(struct ms_str json, struct tape *t, struct rec_value *v)
{
    struct ms_jread r;
    ms_jread_init(&r, json.p, json.n, 0);
    switch (ms_jread_next(&r)) {
    case MS_J_NUM:
        v->kind = REC_NUMBER;
        v->is_int = ms_jread_is_int(&r);
        (void)ms_jread_f64(&r, &v->number);
        break;
    case MS_J_TRUE:
    case MS_J_FALSE:
        v->kind = REC_BOOL;
        v->number = ms_str_is(json, "true");
        break;
    case MS_J_STR:
        v->kind = REC_TEXT;
        v->text = r.text;
        break;
    case MS_J_ARR:
        v->kind = REC_LIST;
        for (enum ms_jtok k = ms_jread_next(&r); k == MS_J_NUM && v->n < 64; k = ms_jread_next(&r))
            add_number(v, &r, t);
        break;
    default:
        break;
    }
}

/* ---- trees of values -------------------------------------------------------------- */

struct reader {
    const struct blame_record *record;
    struct tape *t;
    struct blame_operands *to;
    struct ms_err *err;
};

static struct ms_str path_of(const struct blame_record *r, uint32_t row)
{
    return probe_row_path(r->dump, &r->dump->rows.p[row]);
}

static enum ms_rc read_leaf(struct reader *in, uint32_t row, struct rec_value *v)
{
    struct probe_leaf leaf;
    const struct blame_record *r = in->record;
    probe_row_leaf(r->dump, &r->dump->rows.p[row], &leaf);
    if (leaf.kind == PROBE_LEAF_VALUE)
        read_plain(leaf.value_json, in->t, v);
    v->is_dtype = v->kind == REC_TEXT && ms_str_ends(leaf.type, MS_STR("dtype"));
    if (leaf.kind != PROBE_LEAF_TENSOR)
        return MS_OK;
    const struct ms_str path = path_of(r, row);
    MS_TRY(load_leaf(r, &leaf, path, in->t, v, in->err));
    v->is_parameter = r->dump->rows.p[row].section == PROBE_SEC_PARAMETERS;
    v->path = path;
    in->to->leaves[in->to->nleaves] = v->node;
    in->to->paths[in->to->nleaves++] = path;
    return MS_OK;
}

/* Finds the end of the rows that have the same first `depth + 1` parts of their paths. */
static uint32_t same_part(const struct blame_record *r, uint32_t from, uint32_t end, unsigned depth)
{
    const struct ms_str head = probe_name_head(path_of(r, from), depth + 1);
    uint32_t to = from + 1;
    while (to < end && ms_str_eq(probe_name_head(path_of(r, to), depth + 1), head) &&
           r->dump->rows.p[to].section == r->dump->rows.p[from].section)
        to++;
    return to;
}

static enum ms_rc read_value(struct reader *in, uint32_t from, uint32_t to, unsigned depth,
                             struct rec_value *v);

/* Reads the rows [from, to) as values of one list; position i goes to place i. */
static enum ms_rc read_list(struct reader *in, uint32_t from, uint32_t to, unsigned depth,
                            struct rec_value **list, size_t *n)
{
    *n = 0;
    *list = ms_arena_calloc(in->t->arena, to - from + 64, sizeof **list);
    if (*list == NULL)
        return ms_arena_fail(in->t->arena, in->err);
    for (uint32_t at = from; at < to;) {
        const uint32_t end = same_part(in->record, at, to, depth);
        const struct ms_str part = probe_name_part(path_of(in->record, at), depth);
        uint64_t place = *n;
        /* Values that are not in the dump, such as empty lists, leave gaps. */
        if (ms_str_u64(part, &place) && place > *n)
            *n = place < to - from + 63 ? (size_t)place : *n;
        struct rec_value *v = &(*list)[(*n)++];
        v->name = part;
        MS_TRY(read_value(in, at, end, depth, v));
        at = end;
    }
    return MS_OK;
}

static enum ms_rc read_value(struct reader *in, uint32_t from, uint32_t to, unsigned depth,
                             struct rec_value *v)
{
    if (probe_name_parts(path_of(in->record, from)) <= depth + 1)
        return read_leaf(in, from, v);
    if (depth >= NESTED_MAX)
        return ms_fail(in->err, MS_E_UNSUPPORTED, "arguments that are nested deeper than %d levels",
                       NESTED_MAX);
    v->kind = REC_LIST;
    return read_list(in, from, to, depth + 1, &v->items, &v->n);
}

/* Finds the rows of a section; they lie side by side. */
static uint32_t section_rows(const struct blame_record *r, enum probe_section section,
                             uint32_t *end)
{
    const struct probe_node *node = &r->dump->nodes.p[r->node];
    uint32_t from = node->first_row, last = node->first_row + node->nrows;
    while (from < last && r->dump->rows.p[from].section != section)
        from++;
    *end = from;
    while (*end < last && r->dump->rows.p[*end].section == section)
        ++*end;
    return from;
}

enum ms_rc blame_read_operands(const struct blame_record *r, struct tape *t,
                               struct blame_operands *to, struct ms_err *err)
{
    *to = (struct blame_operands){0};
    struct reader in = {r, t, to, err};
    const size_t rows = r->dump->nodes.p[r->node].nrows;
    struct rec_value *named, *parameters;
    size_t nnamed, nparameters;
    uint32_t end, from;
    to->leaves = ms_arena_calloc(t->arena, rows + 1, sizeof *to->leaves);
    to->paths = ms_arena_calloc(t->arena, rows + 1, sizeof *to->paths);
    if (to->leaves == NULL || to->paths == NULL)
        return ms_arena_fail(t->arena, err);
    from = section_rows(r, PROBE_SEC_INPUT_ARGS, &end);
    MS_TRY(read_list(&in, from, end, 1, &to->args, &to->nargs));
    from = section_rows(r, PROBE_SEC_INPUT_KWARGS, &end);
    MS_TRY(read_list(&in, from, end, 1, &named, &nnamed));
    from = section_rows(r, PROBE_SEC_PARAMETERS, &end);
    MS_TRY(read_list(&in, from, end, 1, &parameters, &nparameters));
    to->named = ms_arena_calloc(t->arena, nnamed + nparameters + 1, sizeof *named);
    if (to->named == NULL)
        return ms_arena_fail(t->arena, err);
    memcpy(to->named, named, nnamed * sizeof *named);
    memcpy(to->named + nnamed, parameters, nparameters * sizeof *named);
    to->nnamed = nnamed + nparameters;
    return MS_OK;
}

/* ---- results ------------------------------------------------------------------------ */

static enum ms_rc read_result(const struct blame_record *r, uint32_t row,
                              const struct probe_leaf *leaf, struct tape *t,
                              struct blame_result *to, struct ms_err *err)
{
    struct rec_value v = {0};
    MS_TRY(load_leaf(r, leaf, path_of(r, row), t, &v, err));
    const struct tape_node *n = tape_at(t, v.node);
    *to = (struct blame_result){.row = row,
                                .path = path_of(r, row),
                                .dtype = leaf->dtype,
                                .shape = n->shape,
                                .v = n->v,
                                .n = n->n};
    return MS_OK;
}

enum ms_rc blame_read_results(const struct blame_record *r, enum probe_section section,
                              struct tape *t, struct blame_results *to, struct ms_err *err)
{
    uint32_t end, from = section_rows(r, section, &end);
    *to =
        (struct blame_results){.list = ms_arena_calloc(t->arena, end - from + 1, sizeof *to->list)};
    if (to->list == NULL)
        return ms_arena_fail(t->arena, err);
    for (uint32_t row = from; row < end; row++) {
        struct probe_leaf leaf;
        probe_row_leaf(r->dump, &r->dump->rows.p[row], &leaf);
        if (leaf.kind == PROBE_LEAF_TENSOR) {
            MS_TRY(read_result(r, row, &leaf, t, &to->list[to->n], err));
            to->list[to->n++].place = to->places;
        }
        to->places++;
    }
    return MS_OK;
}
