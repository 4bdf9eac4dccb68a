/* SPDX-License-Identifier: MIT
 *
 * layer: expands a layer mapping into pairs of row names.
 *
 * The mapping gives, for each class, the names that its children have on the other side. The
 * scope of a target operator is walked from the top; each component is replaced by the rule
 * of the class that contains it. The n-th operator with a scope and state is then paired
 * with the n-th one on the golden side.
 */
#include "compare/pair/layer_int.h"
#include "compare/pair/map_names.h"

/* ---- rows --------------------------------------------------------------------------- */

static enum ms_rc put_row(struct cmp__pairs *out, struct ms_str t, struct ms_str b,
                          struct ms_err *err)
{
    bool added;
    uint32_t id = ms_map_put_copy(&out->keys, t, out->arena, &added);
    struct ms_str *slot = id == MS_MAP_NONE ? NULL
                          : added           ? ms_vec_push(&out->values)
                                            : &out->values.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(out->arena, b);
    return slot->p != NULL ? MS_OK : ms_arena_fail(out->arena, err);
}

static struct ms_str suffix(struct ms_buf *b, const struct cmp__side *s, const struct cmp__op *op,
                            uint32_t row)
{
    struct ms_str node = probe_node_name(s->dump, op->node);
    ms_buf_clear(b);
    cmp__side_name(s, row, false, b);
    struct ms_str name = ms_buf_slice(b);
    return ms_str_starts(name, node) ? ms_str_sub(name, node.n, name.n) : name;
}

/* Finds the row of the golden operator with the same suffix; leaves its name in b->b. */
static bool twin_row(struct layer__layout *b, const struct cmp__op *op, struct ms_str want)
{
    for (uint32_t row = op->first; row < op->first + op->n; row++) {
        if (ms_str_eq(suffix(&b->b, b->side, op, row), want))
            return true;
    }
    return false;
}

static enum ms_rc pair_rows(struct layer__layout *t, struct layer__layout *b,
                            const struct cmp__op *top, const struct cmp__op *bop,
                            struct cmp__pairs *out, struct ms_err *err)
{
    for (uint32_t row = top->first; row < top->first + top->n; row++) {
        struct ms_str want = suffix(&t->b, t->side, top, row);
        bool found = bop != NULL && twin_row(b, bop, want);
        MS_TRY(put_row(out, ms_buf_slice(&t->b), found ? ms_buf_slice(&b->b) : MS_STR("N/A"), err));
    }
    return MS_OK;
}

/* Returns the operator of a node of the dump by binary search, since operators are in dump order;
 * NULL when the node has no rows. */
static const struct cmp__op *op_of_node(const struct cmp__side *s, uint32_t node)
{
    size_t from = 0, to = s->ops.n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (s->ops.p[mid].node == node)
            return &s->ops.p[mid];
        if (s->ops.p[mid].node < node)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

static const struct cmp__op *mate_of(struct layer__layout *b, const struct layer__op *op,
                                     struct ms_str path)
{
    uint32_t at = layer__op_at(b, path, op->state, op->number);
    return at != MS_MAP_NONE ? op_of_node(b->side, b->ops.p[at].node) : NULL;
}

/* Notes a pair of forward operators that a rule names, if both sides call the operator equally
 * often. */
static enum ms_rc note_named(struct cmp_rows *c, struct layer__layout *t, struct layer__layout *b,
                             const struct layer__op *op, struct ms_str path,
                             const struct cmp__op *mate, struct ms_err *err)
{
    bool forward = c->t.dump->nodes.p[op->node].dir == PROBE_FORWARD &&
                   c->t.dump->nodes.p[op->node].kind == PROBE_NODE_API;
    if (!forward || mate == NULL ||
        layer__count(t, layer__path(op->scope), op->state) != layer__count(b, path, op->state))
        return MS_OK;
    struct cmp_pairing *slot = ms_vec_push(&c->named);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct cmp_pairing){op->node, mate->node};
    return MS_OK;
}

static enum ms_rc pair_ops(struct cmp_rows *c, struct layer__layout *t, struct layer__layout *b,
                           const struct cmp__layers *rules, struct cmp__pairs *out,
                           struct ms_err *err)
{
    for (size_t i = 0; i < t->ops.n; i++) {
        const struct layer__op *op = &t->ops.p[i];
        bool named = layer__map(t, rules, layer__path(op->scope), &t->a);
        struct ms_str path = ms_buf_slice(&t->a);
        const struct cmp__op *mate = mate_of(b, op, path);
        if (named)
            MS_TRY(note_named(c, t, b, op, path, mate, err));
        const struct cmp__op *rows = op_of_node(t->side, op->node);
        if (rows != NULL)
            MS_TRY(pair_rows(t, b, rows, mate, out, err));
    }
    return MS_OK;
}

/* ---- the whole mapping ---------------------------------------------------------------- */

enum ms_rc layer__golden_stacks(const struct cmp_rows *c, struct probe_stacks *s, bool *there,
                                struct ms_err *err)
{
    char *d = ms_str_dup(ms_path_dir(c->b.dump->path));
    char *path = d != NULL ? ms_path_join(d, "stack.json") : NULL;
    enum ms_rc rc = path != NULL ? MS_OK : ms_no_memory(err);
    *there = rc == MS_OK && ms_path_kind(path) == MS_KIND_FILE;
    if (*there)
        rc = probe_stacks_open(s, path, PROBE_STACK_TOLERANT, err);
    ms_free(d);
    ms_free(path);
    return rc;
}

static enum ms_rc check_names(struct cmp_rows *c, const struct cmp__layers *rules,
                              const struct layer__layout *t, const struct layer__layout *b,
                              struct ms_err *err)
{
    const struct cmp__known_layers known = {.target = &t->classes,
                                            .golden = &b->classes,
                                            .classes = t->class_of.p,
                                            .n_classes = t->class_of.n};
    return cmp__check_layers(c, rules, &known, err);
}

/* Fails when this dump has lost its stacks while the other side has stacks. A dump without stacks
 * and construct.json has no layers at all and only causes a warning. */
static enum ms_rc check_files(struct cmp_rows *c, const struct layer__layout *l, bool stacks,
                              bool others, struct ms_err *err)
{
    const char *path = l->side->dump->path;
    if (l->bare)
        return cmp__problem(&c->problems, err,
                            "%s: neither stack.json nor construct.json is beside it, so -lm finds "
                            "no layers in it",
                            path);
    return stacks || !others ? MS_OK
                             : ms_fail(err, MS_E_NOTFOUND,
                                       "-lm needs stack.json beside both dumps; %s has none", path);
}

static enum ms_rc expand(struct cmp_rows *c, const struct probe_stacks *stacks,
                         const struct cmp__layers *rules, struct cmp__pairs *out,
                         struct ms_err *err)
{
    struct layer__layout t, b = {.side = NULL};
    enum ms_rc rc = layer__lay_out(&t, c, &c->t, &c->stacks, err);
    if (rc == MS_OK)
        rc = layer__lay_out(&b, c, &c->b, stacks, err);
    bool there = stacks->arena != NULL;
    if (rc == MS_OK)
        rc = check_files(c, &t, c->has_stack, there, err);
    if (rc == MS_OK)
        rc = check_files(c, &b, there, c->has_stack, err);
    if (rc == MS_OK)
        rc = check_names(c, rules, &t, &b, err);
    if (rc == MS_OK)
        rc = pair_ops(c, &t, &b, rules, out, err);
    layer__free(&t);
    layer__free(&b);
    return rc;
}

enum ms_rc cmp__layer_pairs(struct cmp_rows *c, struct cmp__pairs *out, struct ms_err *err)
{
    struct cmp__layers rules = {0};
    struct probe_stacks stacks = {0};
    bool there = false;
    *out = (struct cmp__pairs){.arena = ms_arena_new(LAYER__MAP_MAX)};
    if (out->arena == NULL)
        return ms_no_memory(err);
    if (c->set->conf.layer.file != NULL)
        MS_TRY(cmp__layers_read(&rules, c->set->conf.layer.file, err));
    enum ms_rc rc = layer__golden_stacks(c, &stacks, &there, err);
    if (rc == MS_OK)
        rc = expand(c, &stacks, &rules, out, err);
    if (there)
        probe_stacks_close(&stacks);
    cmp__layers_free(&rules);
    return rc;
}
