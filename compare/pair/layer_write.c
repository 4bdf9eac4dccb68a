/* SPDX-License-Identifier: MIT
 *
 * layer_write: writes an alignment as a layer mapping, which the official tool reads too.
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
 * others.
 */
#include "compare/align/align.h"
#include "compare/pair/layer_int.h"
#include "compare/read/yaml_doc.h"

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
static bool misleads(struct writer *w, const struct layer__op *op, struct ms_str place)
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
        if (w->wish[path].n != 0 && misleads(w, &w->t.ops.p[i], w->wish[path]))
            w->wish[path] = MS_STR("");
    }
    return MS_OK;
}

/* ---- lines of a class ------------------------------------------------------------ */

/* Returns the part of path below `up`; all of path when `up` is empty, nothing when path lies
 * elsewhere. */
static struct ms_str below(struct ms_str path, struct ms_str up)
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
        struct ms_str rest = below(theirs, to);
        if (rest.n != 0)
            return add_line(w, layer__class(&w->t, up), below(mine, up), rest, err);
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
    return add_line(w, cls, below(mine, up), misled ? nowhere : MS_STR(""), err);
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
                                        : misleads(w, op, ms_buf_slice(&w->text));
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
        rc = layer__golden_stacks(c, &stacks, &there, err);
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
