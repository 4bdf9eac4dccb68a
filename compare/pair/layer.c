/* SPDX-License-Identifier: MIT
 *
 * layer: expands a layer mapping into pairs of row names, and writes an alignment as a layer
 * mapping.
 */
#include "compare/pair/layer.h"
#include "compare/align/align.h"
#include "compare/pair/layer_scope.h"
#include "compare/pair/names.h"
#include "compare/read/yaml_doc.h"

/* Expands a layer mapping into pairs of row names.
 *
 * The mapping gives, for each class, the names that its children have on the other side. The
 * scope of a target operator is walked from the top; each component is replaced by the rule
 * of the class that contains it. The n-th operator with a scope and state is then paired
 * with the n-th one on the golden side. */

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

static struct ms_str suffix_of(struct ms_buf *b, const struct cmp__side *s,
                               const struct cmp__op *op, uint32_t row)
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
        if (ms_str_eq(suffix_of(&b->b, b->side, op, row), want))
            return true;
    }
    return false;
}

static enum ms_rc pair_rows(struct layer__layout *t, struct layer__layout *b,
                            const struct cmp__op *top, const struct cmp__op *bop,
                            struct cmp__pairs *out, struct ms_err *err)
{
    for (uint32_t row = top->first; row < top->first + top->n; row++) {
        struct ms_str want = suffix_of(&t->b, t->side, top, row);
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

/* Opens the stacks of the golden side; *there tells whether there is a stack.json. */
static enum ms_rc open_golden_stacks(const struct cmp_rows *c, struct probe_stacks *s, bool *there,
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

static enum ms_rc expand_rows(struct cmp_rows *c, const struct probe_stacks *stacks,
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
    enum ms_rc rc = open_golden_stacks(c, &stacks, &there, err);
    if (rc == MS_OK)
        rc = expand_rows(c, &stacks, &rules, out, err);
    if (there)
        probe_stacks_close(&stacks);
    cmp__layers_free(&rules);
    return rc;
}

/* ---- writing a layer mapping ------------------------------------------------ */

/* Writes an alignment as a layer mapping, which the official tool reads too.
 *
 *     TopLayer:                          class of the target's module, then
 *       network.model: module            child of it: child of its partner
 *     AttentionCell:
 *       flash_attention_score: core_attention.npu_fusion_attention
 *       add: N/A                         no partner, although the golden side has this name
 *
 * A layer mapping pairs the n-th operator of a place with the n-th of another place. A
 * target place is therefore mapped to a golden place only where this pairs the operators
 * that the alignment pairs, and a place that would be paired wrongly by its name is mapped
 * to N/A. A rule belongs to a class if all modules of the class agree on it. A place whose
 * result is still wrong gets a rule of its own in TopLayer, which takes precedence over all
 * others. */

enum { ROUNDS = 4 };
static const struct ms_str nowhere = {"N/A", 3};

struct line { /* a candidate rule of a class, or a rule for a single place */
    struct ms_str cls, mine, theirs;
    uint32_t modules; /* number of modules that need this rule */
    bool agreed;
};

struct writer {
    const struct cmp_rows *c;
    struct layer__layout t, b;
    struct cmp__layers rules;
    uint32_t *golden_op; /* by golden node: its index in b.ops */
    struct ms_str *wish; /* by target path: the golden path it should map to; empty: none */
    struct ms_map lines; /* "class mine" -> index in list */
    MS_VEC(struct line) list;
    struct ms_buf text;
};

/* ---- wanted places ----------------------------------------------------------- */

static bool is_paired(const struct writer *w, uint32_t target, uint32_t golden)
{
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(w->c->al, target, &pairs);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == golden && pairs[i].how != CMP_ALIGN_PART)
            return true;
    }
    return false;
}

/* Returns the path of the operator's partner if both have the same occurrence number and state. */
static struct ms_str place_of_partner(const struct writer *w, const struct layer__op *op)
{
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(w->c->al, op->node, &pairs);
    uint32_t at =
        n != 0 && pairs[0].how != CMP_ALIGN_PART ? w->golden_op[pairs[0].golden] : MS_MAP_NONE;
    if (at == MS_MAP_NONE)
        return MS_STR("");
    const struct layer__op *mate = &w->b.ops.p[at];
    bool fits = mate->number == op->number && ms_str_eq(mate->state, op->state);
    return fits ? layer__path(mate->scope) : MS_STR("");
}

/* Tells whether mapping to this place would pair the operator with one that is not its partner. */
static bool is_misleading(struct writer *w, const struct layer__op *op, struct ms_str place)
{
    uint32_t at = layer__op_at(&w->b, place, op->state, op->number);
    return at != MS_MAP_NONE && !is_paired(w, op->node, w->b.ops.p[at].node);
}

static enum ms_rc find_wishes(struct writer *w, struct ms_err *err)
{
    w->golden_op = ms_alloc((w->c->b.dump->nodes.n + 1) * sizeof *w->golden_op);
    w->wish = ms_calloc(w->t.classes.keys.n + 1, sizeof *w->wish);
    if (w->golden_op == NULL || w->wish == NULL)
        return ms_no_memory(err);
    memset(w->golden_op, 0xff, (w->c->b.dump->nodes.n + 1) * sizeof *w->golden_op);
    for (uint32_t i = 0; i < w->b.ops.n; i++)
        w->golden_op[w->b.ops.p[i].node] = i;
    for (uint32_t i = 0; i < w->t.ops.n; i++) {
        uint32_t path = ms_map_get(&w->t.classes, layer__path(w->t.ops.p[i].scope));
        if (w->wish[path].n == 0)
            w->wish[path] = place_of_partner(w, &w->t.ops.p[i]);
    }
    for (uint32_t i = 0; i < w->t.ops.n; i++) {
        uint32_t path = ms_map_get(&w->t.classes, layer__path(w->t.ops.p[i].scope));
        if (w->wish[path].n != 0 && is_misleading(w, &w->t.ops.p[i], w->wish[path]))
            w->wish[path] = MS_STR("");
    }
    return MS_OK;
}

/* ---- lines of a class ------------------------------------------------------------ */

/* Returns the part of path below `up`; all of path when `up` is empty, nothing when path lies
 * elsewhere. */
static struct ms_str path_below(struct ms_str path, struct ms_str up)
{
    if (up.n == 0)
        return path;
    bool inside = ms_str_starts(path, up) && path.n > up.n + 1 && path.p[up.n] == '.';
    return inside ? ms_str_sub(path, up.n + 1, path.n) : MS_STR("");
}

static enum ms_rc add_line(struct writer *w, struct ms_str cls, struct ms_str mine,
                           struct ms_str theirs, struct ms_err *err)
{
    bool added;
    ms_buf_clear(&w->text);
    ms_buf_printf(&w->text, "%.*s %.*s", MS_STR_ARG(cls), MS_STR_ARG(mine));
    uint32_t id = ms_map_put_copy(&w->lines, ms_buf_slice(&w->text), w->t.arena, &added);
    if (id == MS_MAP_NONE || w->text.bad != MS_OK)
        return ms_no_memory(err);
    if (!added) {
        w->list.p[id].agreed &= ms_str_eq(w->list.p[id].theirs, theirs);
        w->list.p[id].modules++;
        return MS_OK;
    }
    struct line *l = ms_vec_push(&w->list);
    if (l == NULL)
        return ms_no_memory(err);
    *l = (struct line){cls, mine, theirs, 1, true};
    return MS_OK;
}

/* Adds a rule to the class of the nearest enclosing module whose partner encloses the golden
 * path. */
static enum ms_rc wish_in_class(struct writer *w, uint32_t path, struct ms_err *err)
{
    struct ms_str mine = ms_map_key(&w->t.classes, path), theirs = w->wish[path];
    int64_t dot = mine.n;
    while (dot > 0) {
        dot = ms_str_rfind(ms_str_sub(mine, 0, (uint32_t)dot), '.');
        struct ms_str up = ms_str_sub(mine, 0, dot < 0 ? 0 : (uint32_t)dot), to = MS_STR("");
        uint32_t id = up.n != 0 ? ms_map_get(&w->t.classes, up) : MS_MAP_NONE;
        if (id != MS_MAP_NONE)
            to = w->wish[id];
        if (up.n != 0 && to.n == 0)
            continue;
        struct ms_str rest = path_below(theirs, to);
        if (rest.n != 0)
            return add_line(w, layer__class(&w->t, up), path_below(mine, up), rest, err);
    }
    return MS_OK;
}

/* Adds a rule that maps a place to N/A to the class of the module directly around the place. */
static enum ms_rc nowhere_in_class(struct writer *w, uint32_t path, bool misled, struct ms_err *err)
{
    struct ms_str mine = ms_map_key(&w->t.classes, path);
    int64_t dot = ms_str_rfind(mine, '.');
    struct ms_str up = ms_str_sub(mine, 0, dot < 0 ? 0 : (uint32_t)dot);
    struct ms_str cls = layer__class(&w->t, up);
    if (cls.n == 0 || (!misled && w->wish[path].n == 0))
        return MS_OK;
    return add_line(w, cls, path_below(mine, up), misled ? nowhere : MS_STR(""), err);
}

static void forget_lines(struct writer *w)
{
    ms_map_free(&w->lines);
    w->lines = (struct ms_map){0};
    w->list.n = 0;
}

static enum ms_rc take_lines(struct writer *w, struct ms_err *err)
{
    for (size_t i = 0; i < w->list.n; i++) {
        const struct line *l = &w->list.p[i];
        if (l->agreed && l->theirs.n != 0 && !ms_str_eq(l->mine, l->theirs))
            MS_TRY(cmp__layers_set(&w->rules, l->cls, l->mine, l->theirs, err));
    }
    forget_lines(w);
    return MS_OK;
}

/* ---- check and repair of the rules ------------------------------------------------ */

/* Marks the paths that the rules map wrongly: to a place other than the wanted one, or to one that
 * pairs operators which are no partners. */
static enum ms_rc find_wrong(struct writer *w, bool *wrong, size_t *n, struct ms_err *err)
{
    size_t paths = w->t.classes.keys.n;
    memset(wrong, 0, paths);
    *n = 0;
    for (uint32_t i = 0; i < w->t.ops.n; i++) {
        const struct layer__op *op = &w->t.ops.p[i];
        uint32_t path = ms_map_get(&w->t.classes, layer__path(op->scope));
        layer__map(&w->t, &w->rules, layer__path(op->scope), &w->text);
        bool bad = w->wish[path].n != 0 ? !ms_str_eq(ms_buf_slice(&w->text), w->wish[path])
                                        : is_misleading(w, op, ms_buf_slice(&w->text));
        *n += bad && !wrong[path];
        wrong[path] |= bad;
    }
    return ms_buf_check(&w->text, err);
}

static enum ms_rc mend_in_classes(struct writer *w, const bool *wrong, struct ms_err *err)
{
    for (uint32_t i = 0; i < w->t.classes.keys.n; i++)
        MS_TRY(nowhere_in_class(w, i, wrong[i] && w->wish[i].n == 0, err));
    return take_lines(w, err);
}

static enum ms_rc mend_one_by_one(struct writer *w, const bool *wrong, struct ms_err *err)
{
    for (uint32_t i = 0; i < w->t.classes.keys.n; i++) {
        struct ms_str to = w->wish[i].n != 0 ? w->wish[i] : nowhere;
        if (wrong[i])
            MS_TRY(cmp__layers_set(&w->rules, MS_STR("TopLayer"), ms_map_key(&w->t.classes, i), to,
                                   err));
    }
    return MS_OK;
}

static enum ms_rc make_rules(struct writer *w, bool *wrong, struct ms_err *err)
{
    size_t n = 1;
    MS_TRY(find_wishes(w, err));
    for (uint32_t i = 0; i < w->t.classes.keys.n; i++) {
        if (w->wish[i].n != 0)
            MS_TRY(wish_in_class(w, i, err));
    }
    MS_TRY(take_lines(w, err));
    for (int round = 0; round < ROUNDS && n != 0; round++) {
        MS_TRY(find_wrong(w, wrong, &n, err));
        if (n != 0)
            MS_TRY(round == 0 ? mend_in_classes(w, wrong, err) : mend_one_by_one(w, wrong, err));
    }
    return MS_OK;
}

/* ---- the file -------------------------------------------------------------------- */

static void print(const struct cmp__layers *rules, struct ms_buf *out)
{
    for (uint32_t i = 0; i < rules->classes.keys.n; i++) {
        cmp__yaml_put(out, ms_map_key(&rules->classes, i));
        ms_buf_puts(out, ":\n");
        for (uint32_t k = 0; k < rules->maps.p[i].keys.keys.n; k++) {
            ms_buf_puts(out, "  ");
            cmp__yaml_put(out, ms_map_key(&rules->maps.p[i].keys, k));
            ms_buf_puts(out, ": ");
            cmp__yaml_put(out, rules->maps.p[i].values.p[k]);
            ms_buf_putc(out, '\n');
        }
    }
}

static enum ms_rc write_rules(struct writer *w, const struct probe_stacks *stacks,
                              struct ms_buf *out, struct ms_err *err)
{
    MS_TRY(layer__lay_out(&w->t, w->c, &w->c->t, &w->c->stacks, err));
    MS_TRY(layer__lay_out(&w->b, w->c, &w->c->b, stacks, err));
    bool *wrong = ms_calloc(w->t.classes.keys.n + 1, sizeof *wrong);
    enum ms_rc rc = wrong != NULL ? make_rules(w, wrong, err) : ms_no_memory(err);
    if (rc == MS_OK)
        print(&w->rules, out);
    ms_free(wrong);
    return rc;
}

enum ms_rc cmp__write_layers(const struct cmp_rows *c, struct ms_buf *out, struct ms_err *err)
{
    struct writer w = {.c = c, .text.max = 1 << 20};
    struct probe_stacks stacks = {0};
    bool there = false;
    /* without trees the places of the operators are not known */
    if (!c->has_tree[0] || !c->has_tree[1])
        return MS_OK;
    enum ms_rc rc = cmp__layers_new(&w.rules, err);
    if (rc == MS_OK)
        rc = open_golden_stacks(c, &stacks, &there, err);
    if (rc == MS_OK)
        rc = write_rules(&w, &stacks, out, err);
    if (there)
        probe_stacks_close(&stacks);
    layer__free(&w.t);
    layer__free(&w.b);
    cmp__layers_free(&w.rules);
    forget_lines(&w);
    ms_vec_free(&w.list);
    ms_buf_free(&w.text);
    ms_free(w.golden_op);
    ms_free(w.wish);
    return rc == MS_OK ? ms_buf_check(out, err) : rc;
}
