/* SPDX-License-Identifier: MIT
 *
 * layer: a layer mapping, expanded into pairs of row names.
 *
 * Every op gets a scope, its place in the model:
 *
 *     Cell.net.layers.0.fc.Dense.forward.0      net.layers.0.fc       state forward
 *     Functional.add.3.forward, called in it    net.layers.0.fc.add   state forward
 *
 * The mapping says, class by class, what a child is called on the other side.  So a
 * target's scope is walked from the top, each part replaced by the rule of the class
 * it lies in, and the n-th op of a scope and state belongs to the n-th on the golden
 * side.  Scopes are kept as text in hash maps, which do for a tree.
 */
#include "compare/cmp_int.h"
#include "compare/frame.h"
#include "compare/map_names.h"

enum { TEXT_MAX = 1 << 20 };
#define MAP_MAX ((size_t)8 << 30)

struct placed {
    uint32_t node; /* of the dump */
    struct ms_str scope, type, state;
};

struct layout {
    const struct cmp__side *side;
    const struct probe_stacks *stacks;
    bool mindspore;
    struct probe_tree tree;
    struct ms_arena *arena;
    MS_VEC(struct placed) ops;
    struct ms_map names;   /* op name -> place in ops */
    struct ms_map classes; /* scope -> class */
    MS_VEC(struct ms_str) class_of;
    struct ms_map counts; /* scope and state -> how many */
    MS_VEC(uint32_t) count_of;
    struct ms_map slots; /* scope, state and number -> op */
    MS_VEC(uint32_t) op_at;
    struct ms_buf a, b;
};

/* ---- taking names apart --------------------------------------------------- */

/* Position of the n-th dot from the right, or -1. */
static int64_t dot_from_right(struct ms_str s, unsigned n)
{
    int64_t at = s.n;
    while (n-- > 0 && at >= 0)
        at = ms_str_rfind(ms_str_sub(s, 0, (uint32_t)at), '.');
    return at;
}

/* The n-th component from the right, 0 is the last; empty when there is none. */
static struct ms_str from_right(struct ms_str s, unsigned n)
{
    int64_t end = dot_from_right(s, n);
    if (end < 0)
        return MS_STR("");
    struct ms_str head = ms_str_sub(s, 0, (uint32_t)end);
    return ms_str_sub(head, (uint32_t)(ms_str_rfind(head, '.') + 1), head.n);
}

/* Without its last n components; empty when nothing is left. */
static struct ms_str without_last(struct ms_str s, unsigned n)
{
    int64_t at = dot_from_right(s, n);
    return at < 0 ? MS_STR("") : ms_str_sub(s, 0, (uint32_t)at);
}

struct parts {
    struct ms_str type, api, state, layer;
    bool is_api;
};

static bool take_apart(const struct layout *l, struct ms_str name, struct parts *p)
{
    struct ms_str last = from_right(name, 0), second = from_right(name, 1);
    if (dot_from_right(name, 3) < 0)
        return false;
    *p = (struct parts){0};
    if (ms_str_is(last, "parameters_grad")) {
        *p = (struct parts){from_right(name, 1), from_right(name, 2), last, without_last(name, 3),
                            false};
    } else if (ms_str_is(second, "parameters_grad")) { /* this form repeats the name in its scope */
        *p = (struct parts){from_right(name, 2), from_right(name, 3), second, without_last(name, 3),
                            false};
    } else if (ms_str_starts(name, MS_STR("Cell.")) || ms_str_starts(name, MS_STR("Module."))) {
        *p = (struct parts){from_right(name, 2), from_right(name, 3), second, without_last(name, 4),
                            false};
    } else {
        *p = (struct parts){from_right(name, 2), from_right(name, 2), last, MS_STR("TopLayer"),
                            true};
        uint32_t id = probe_tree_find(&l->tree, name);
        uint32_t parent = id != MS_MAP_NONE ? l->tree.nodes.p[id].parent : MS_MAP_NONE;
        if (parent != MS_MAP_NONE)
            p->layer = without_last(probe_tree_name(&l->tree, parent), 3);
    }
    return p->api.n != 0;
}

/* ---- scopes ----------------------------------------------------------------- */

static struct ms_str keep(struct layout *l, struct ms_buf *b)
{
    struct ms_str s = b->bad == MS_OK ? ms_arena_str(l->arena, ms_buf_slice(b)) : MS_STR_NONE;
    ms_buf_clear(b);
    return s;
}

static void put_scope(struct layout *l, struct ms_str name, const struct parts *p)
{
    struct ms_str function;
    ms_buf_clear(&l->a);
    ms_buf_str(&l->a, p->layer);
    bool plain = ms_str_starts(name, MS_STR("Primitive.")) || ms_str_starts(name, MS_STR("Jit."));
    if (p->is_api && !plain &&
        cmp__frame_function(probe_stack_frames(l->stacks, name), l->mindspore, &l->b, &function)) {
        ms_buf_putc(&l->a, '.');
        ms_buf_str(&l->a, function);
    }
    ms_buf_putc(&l->a, '.');
    ms_buf_str(&l->a, p->api);
}

/* Name of the forward op that a backward op belongs to, in l->a. */
static bool forward_name(struct layout *l, struct ms_str name)
{
    struct ms_str last = from_right(name, 0), second = from_right(name, 1);
    const char *from = ms_str_is(last, "backward")     ? last.p
                       : ms_str_is(second, "backward") ? second.p
                                                       : NULL;
    if (from == NULL)
        return false;
    ms_buf_clear(&l->a);
    ms_buf_put(&l->a, name.p, (size_t)(from - name.p));
    ms_buf_puts(&l->a, "forward");
    from += sizeof "backward" - 1;
    ms_buf_put(&l->a, from, (size_t)(name.p + name.n - from));
    return true;
}

static enum ms_rc place_op(struct layout *l, uint32_t node, struct ms_err *err)
{
    struct ms_str name = probe_node_name(l->side->dump, node);
    struct parts p;
    if (!take_apart(l, name, &p))
        return MS_OK;
    uint32_t twin =
        forward_name(l, name) ? ms_map_get(&l->names, ms_buf_slice(&l->a)) : MS_MAP_NONE;
    struct placed op = {.node = node, .type = p.type, .state = p.state};
    if (twin != MS_MAP_NONE) {
        op.scope = l->ops.p[twin].scope;
    } else {
        put_scope(l, name, &p);
        op.scope = keep(l, &l->a);
    }
    struct placed *slot = ms_vec_push(&l->ops);
    if (op.scope.p == NULL || slot == NULL || ms_map_put(&l->names, name, NULL) == MS_MAP_NONE)
        return ms_no_memory(err);
    *slot = op;
    return MS_OK;
}

/* ---- pipeline stages number their layers in one framework only ---------------- */

/* The number behind "PREFIX.layers." in a scope. */
static bool layer_number(struct ms_str scope, struct ms_str prefix, struct ms_str *digits,
                         uint64_t *number)
{
    struct ms_str rest = ms_str_sub(scope, prefix.n, scope.n);
    if (!ms_str_starts(scope, prefix) || !ms_str_starts(rest, MS_STR(".layers.")))
        return false;
    rest = ms_str_sub(rest, sizeof ".layers." - 1, rest.n);
    return ms_str_split(&rest, '.', digits) && ms_str_u64(*digits, number);
}

static enum ms_rc renumber_below(struct layout *l, struct ms_str prefix, struct ms_err *err)
{
    uint64_t least = UINT64_MAX, number;
    struct ms_str digits;
    for (size_t i = 0; i < l->ops.n; i++) {
        if (layer_number(l->ops.p[i].scope, prefix, &digits, &number) && number < least)
            least = number;
    }
    for (size_t i = 0; i < l->ops.n && least != 0; i++) {
        struct ms_str s = l->ops.p[i].scope;
        if (!layer_number(s, prefix, &digits, &number))
            continue;
        ms_buf_put(&l->a, s.p, (size_t)(digits.p - s.p));
        ms_buf_printf(&l->a, "%llu", (unsigned long long)(number - least));
        ms_buf_put(&l->a, digits.p + digits.n, (size_t)(s.p + s.n - digits.p - digits.n));
        l->ops.p[i].scope = keep(l, &l->a);
        if (l->ops.p[i].scope.p == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static enum ms_rc renumber_layers(struct layout *l, struct ms_err *err)
{
    struct ms_map done = {0};
    enum ms_rc rc = MS_OK;
    ms_buf_clear(&l->a);
    for (size_t i = 0; i < l->ops.n && rc == MS_OK; i++) {
        bool added = false;
        if (!ms_str_is(l->ops.p[i].type, "ParallelTransformer"))
            continue;
        if (ms_map_put(&done, l->ops.p[i].scope, &added) == MS_MAP_NONE)
            rc = ms_no_memory(err);
        else if (added)
            rc = renumber_below(l, l->ops.p[i].scope, err);
    }
    ms_map_free(&done);
    return rc;
}

/* ---- the index ------------------------------------------------------------------ */

/* A scope without its first component, which says only Cell, Module or TopLayer. */
static struct ms_str path_of(struct ms_str scope)
{
    int64_t dot = ms_str_find(scope, '.');
    return ms_str_sub(scope, (uint32_t)(dot + 1), scope.n);
}

static struct ms_str slot_key(struct ms_buf *b, struct ms_str path, struct ms_str state,
                              uint32_t number)
{
    ms_buf_clear(b);
    ms_buf_str(b, path);
    ms_buf_putc(b, '\n');
    ms_buf_str(b, state);
    if (number != MS_MAP_NONE)
        ms_buf_printf(b, "\n%u", number);
    return ms_buf_slice(b);
}

static enum ms_rc index_op(struct layout *l, uint32_t i, struct ms_err *err)
{
    const struct placed *op = &l->ops.p[i];
    struct ms_str path = path_of(op->scope);
    bool added;
    uint32_t id = ms_map_put(&l->classes, path, &added);
    struct ms_str *type = added ? ms_vec_push(&l->class_of) : &l->class_of.p[id];
    uint32_t count = ms_map_put_copy(&l->counts, slot_key(&l->a, path, op->state, MS_MAP_NONE),
                                     l->arena, &added);
    uint32_t *n = added ? ms_vec_push(&l->count_of) : &l->count_of.p[count];
    if (id == MS_MAP_NONE || type == NULL || count == MS_MAP_NONE || n == NULL)
        return ms_no_memory(err);
    *type = op->type;
    *n = added ? 0 : *n;
    uint32_t slot =
        ms_map_put_copy(&l->slots, slot_key(&l->a, path, op->state, (*n)++), l->arena, NULL);
    uint32_t *at = ms_vec_push(&l->op_at);
    if (slot == MS_MAP_NONE || at == NULL)
        return ms_no_memory(err);
    *at = i;
    return MS_OK;
}

static enum ms_rc open_tree(struct layout *l, struct ms_err *err)
{
    struct ms_str dir = ms_path_dir(l->side->dump->path);
    char *d = ms_str_dup(dir), *path = d != NULL ? ms_path_join(d, "construct.json") : NULL;
    enum ms_rc rc = path != NULL ? probe_tree_open(&l->tree, path, PROBE_TREE_TOLERANT, err)
                                 : ms_no_memory(err);
    ms_free(d);
    ms_free(path);
    return rc;
}

static enum ms_rc lay_out(struct layout *l, struct ms_err *err)
{
    l->arena = ms_arena_new(MAP_MAX);
    if (l->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(open_tree(l, err));
    for (uint32_t i = 0; i < l->side->ops.n; i++)
        MS_TRY(place_op(l, l->side->ops.p[i].node, err));
    MS_TRY(renumber_layers(l, err));
    for (uint32_t i = 0; i < l->ops.n; i++)
        MS_TRY(index_op(l, i, err));
    return MS_OK;
}

static void layout_free(struct layout *l)
{
    if (l->tree.arena != NULL)
        probe_tree_close(&l->tree);
    ms_map_free(&l->names);
    ms_map_free(&l->classes);
    ms_map_free(&l->counts);
    ms_map_free(&l->slots);
    ms_vec_free(&l->ops);
    ms_vec_free(&l->class_of);
    ms_vec_free(&l->count_of);
    ms_vec_free(&l->op_at);
    ms_buf_free(&l->a);
    ms_buf_free(&l->b);
    ms_arena_free(l->arena);
}

/* ---- from a target's scope to a golden one ------------------------------------------ */

/* Does the rest begin with these whole components? */
static bool begins(struct ms_str rest, struct ms_str key)
{
    return ms_str_starts(rest, key) && (rest.n == key.n || rest.p[key.n] == '.');
}

/* The longest rule of the class for what follows. */
static const struct ms_str *rule_for(const struct cmp__layers *rules, struct ms_str type,
                                     struct ms_str rest, uint32_t *taken)
{
    const struct ms_str *best = NULL;
    uint32_t id = ms_map_get(&rules->classes, type);
    if (id == MS_MAP_NONE)
        return NULL;
    const struct cmp__pairs *map = &rules->maps.p[id];
    *taken = 0;
    for (uint32_t i = 0; i < map->keys.keys.n; i++) {
        struct ms_str key = ms_map_key(&map->keys, i);
        if (key.n > *taken && begins(rest, key)) {
            *taken = key.n;
            best = &map->values.p[i];
        }
    }
    return best;
}

static struct ms_str class_at(const struct layout *l, struct ms_str path)
{
    if (path.n == 0)
        return MS_STR("TopLayer");
    uint32_t id = ms_map_get(&l->classes, path);
    return id != MS_MAP_NONE ? l->class_of.p[id] : MS_STR("");
}

static void map_path(const struct layout *l, const struct cmp__layers *rules, struct ms_str path,
                     struct ms_buf *out)
{
    uint32_t done = 0;
    ms_buf_clear(out);
    while (done < path.n) {
        struct ms_str rest = ms_str_sub(path, done, path.n), part = rest, tail = rest;
        struct ms_str above = ms_str_sub(path, 0, done == 0 ? 0 : done - 1);
        uint32_t taken;
        ms_str_split(&tail, '.', &part);
        const struct ms_str *to = rule_for(rules, class_at(l, above), rest, &taken);
        if (out->n != 0)
            ms_buf_putc(out, '.');
        ms_buf_str(out, to != NULL ? *to : part);
        done += (to != NULL ? taken : part.n) + 1;
    }
}

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

/* Row of the golden op with the same suffix; its name is in b->b then. */
static bool twin_row(struct layout *b, const struct cmp__op *op, struct ms_str want)
{
    for (uint32_t row = op->first; row < op->first + op->n; row++) {
        if (ms_str_eq(suffix(&b->b, b->side, op, row), want))
            return true;
    }
    return false;
}

static enum ms_rc pair_rows(struct layout *t, struct layout *b, const struct cmp__op *top,
                            const struct cmp__op *bop, struct cmp__pairs *out, struct ms_err *err)
{
    for (uint32_t row = top->first; row < top->first + top->n; row++) {
        struct ms_str want = suffix(&t->b, t->side, top, row);
        bool found = bop != NULL && twin_row(b, bop, want);
        MS_TRY(put_row(out, ms_buf_slice(&t->b), found ? ms_buf_slice(&b->b) : MS_STR("N/A"), err));
    }
    return MS_OK;
}

/* Where among the side's ops a record of the dump is; ops are in its order. */
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

static enum ms_rc pair_ops(struct layout *t, struct layout *b, const struct cmp__layers *rules,
                           struct cmp__pairs *out, struct ms_err *err)
{
    struct ms_map seen = {0};
    MS_VEC(uint32_t) count = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < t->ops.n && rc == MS_OK; i++) {
        const struct placed *op = &t->ops.p[i];
        struct ms_str path = path_of(op->scope);
        bool added;
        uint32_t id =
            ms_map_put_copy(&seen, slot_key(&t->a, path, op->state, MS_MAP_NONE), t->arena, &added);
        uint32_t *n = id == MS_MAP_NONE ? NULL : added ? ms_vec_push(&count) : &count.p[id];
        if (n == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        *n = added ? 0 : *n + 1;
        map_path(t, rules, path, &t->a);
        uint32_t slot = ms_map_get(&b->slots, slot_key(&b->a, ms_buf_slice(&t->a), op->state, *n));
        const struct cmp__op *bop =
            slot != MS_MAP_NONE ? op_of_node(b->side, b->ops.p[b->op_at.p[slot]].node) : NULL;
        rc = pair_rows(t, b, op_of_node(t->side, op->node), bop, out, err);
    }
    ms_map_free(&seen);
    ms_vec_free(&count);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------ */

static enum ms_rc golden_stacks(struct cmp *c, struct probe_stacks *s, bool *there,
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

static enum ms_rc check_names(struct cmp *c, const struct cmp__layers *rules,
                              const struct layout *t, const struct layout *b, struct ms_err *err)
{
    const struct cmp__known_layers known = {.target = &t->classes,
                                            .golden = &b->classes,
                                            .classes = t->class_of.p,
                                            .n_classes = t->class_of.n};
    return cmp__check_layers(c, rules, &known, err);
}

static enum ms_rc expand(struct cmp *c, const struct probe_stacks *stacks,
                         const struct cmp__layers *rules, struct cmp__pairs *out,
                         struct ms_err *err)
{
    struct layout t = {.side = &c->t, .stacks = &c->stacks, .a.max = TEXT_MAX, .b.max = TEXT_MAX};
    struct layout b = {.side = &c->b, .stacks = stacks, .a.max = TEXT_MAX, .b.max = TEXT_MAX};
    t.mindspore = c->t.dump->framework == PROBE_FW_MINDSPORE;
    b.mindspore = c->b.dump->framework == PROBE_FW_MINDSPORE;
    enum ms_rc rc = lay_out(&t, err);
    if (rc == MS_OK)
        rc = lay_out(&b, err);
    if (rc == MS_OK)
        rc = check_names(c, rules, &t, &b, err);
    if (rc == MS_OK)
        rc = pair_ops(&t, &b, rules, out, err);
    layout_free(&t);
    layout_free(&b);
    return rc;
}

enum ms_rc cmp__layer_pairs(struct cmp *c, struct cmp__pairs *out, struct ms_err *err)
{
    struct cmp__layers rules = {0};
    struct probe_stacks stacks = {0};
    bool there = false;
    *out = (struct cmp__pairs){.arena = ms_arena_new(MAP_MAX)};
    if (out->arena == NULL)
        return ms_no_memory(err);
    if (c->conf.layer.file != NULL)
        MS_TRY(cmp__layers_read(&rules, c->conf.layer.file, err));
    enum ms_rc rc = golden_stacks(c, &stacks, &there, err);
    if (rc == MS_OK && there != c->has_stack)
        rc = ms_fail(err, MS_E_NOTFOUND, "-lm needs stack.json beside both dumps; %s has none",
                     there ? c->t.dump->path : c->b.dump->path);
    if (rc == MS_OK)
        rc = expand(c, &stacks, &rules, out, err);
    if (there)
        probe_stacks_close(&stacks);
    cmp__layers_free(&rules);
    return rc;
}
