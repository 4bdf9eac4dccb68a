/* SPDX-License-Identifier: MIT
 *
 * layer_scope: the place in the model of every operator of a dump, as a layer mapping needs
 * it.
 */
#include "compare/pair/layer_scope.h"
#include "probe/dump/stack.h"

/* Finds the place in the model of every operator of a dump, as a layer mapping
 * needs it. This place is the operator's scope:
 *
 *     Cell.net.layers.0.fc.Dense.forward.0      net.layers.0.fc       state forward
 *     Functional.add.3.forward, called in it    net.layers.0.fc.add   state forward
 *
 * Scopes are kept as text in hash maps; no tree is built. */

/* ---- frames of a stack ---------------------------------------------------- */

static bool is_end(struct ms_str line, bool mindspore)
{
    return mindspore ? ms_str_has(line, "construct")
                     : ms_str_has(line, "in forward,") || ms_str_has(line, "in backward,");
}

/* Finds the range of lines [*from, *to) of the stack. */
static void find_range(struct ms_str frames, bool mindspore, struct ms_buf *scratch, unsigned *from,
                       unsigned *to)
{
    struct ms_jread r;
    struct ms_str line;
    bool seen = false;
    *from = 0;
    *to = UINT32_MAX;
    ms_jread_init(&r, frames.p, frames.n, 0);
    for (unsigned i = 0; probe_stack_next(&r, scratch, &line); i++) {
        if (ms_str_has(line, "Template")) {
            seen = true;
            *from = i + 1;
        } else if (seen && is_end(line, mindspore)) {
            *to = i;
            return;
        }
    }
    *from = seen ? *from : 0;
}

static struct ms_str file_of(struct ms_str line)
{
    int64_t comma = ms_str_find(line, ',');
    return comma < 0 ? line : ms_str_sub(line, 0, (uint32_t)comma);
}

static struct ms_str function_of(struct ms_str line)
{
    int64_t at = ms_str_find_str(line, MS_STR(", in "));
    if (at < 0)
        return MS_STR("");
    struct ms_str rest = ms_str_sub(line, (uint32_t)at + 5, line.n);
    int64_t comma = ms_str_find(rest, ',');
    return comma < 0 ? rest : ms_str_sub(rest, 0, (uint32_t)comma);
}

static bool is_framework(struct ms_str file)
{
    return ms_str_has(file, "site-packages/torch") || ms_str_has(file, "package/torch") ||
           ms_str_has(file, "site-packages/mindspore") || ms_str_has(file, "package/mindspore");
}

/* Finds the framework function that called the operator. frames is a JSON list of "File F, line N,
 * in FUNC, \n CODE", innermost first. Returns false when the call did not come from inside the
 * framework. *function points into scratch. */
static bool frame_function(struct ms_str frames, bool mindspore, struct ms_buf *scratch,
                           struct ms_str *function)
{
    struct ms_jread r;
    struct ms_str line, found = MS_STR_NONE;
    unsigned from, to;
    if (frames.n == 0)
        return false;
    find_range(frames, mindspore, scratch, &from, &to);
    ms_jread_init(&r, frames.p, frames.n, 0);
    struct ms_buf last = {.max = scratch->max};
    for (unsigned i = 0; i < to && probe_stack_next(&r, scratch, &line); i++) {
        if (i < from)
            continue;
        if (!is_framework(file_of(line)))
            break;
        ms_buf_clear(&last);
        ms_buf_str(&last, line);
        found = ms_buf_slice(&last);
    }
    bool fine = found.p != NULL && !ms_str_has(file_of(found), "msprobe") &&
                !ms_str_has(file_of(found), "MindSpeed");
    if (fine) {
        ms_buf_clear(scratch);
        ms_buf_str(scratch, function_of(found));
        *function = ms_buf_slice(scratch);
        fine = function->n != 0 && !ms_str_has(*function, "construct") &&
               !ms_str_has(*function, "__call__");
    }
    ms_buf_free(&last);
    return fine;
}

enum { TEXT_MAX = 1 << 20 };

/* ---- taking names apart --------------------------------------------------- */

struct parts {
    struct ms_str type, api, state, layer;
    bool called; /* an operator call, whose stack frames become part of its scope */
};

static bool take_apart(const struct layer__layout *l, struct ms_str name, struct parts *p)
{
    struct ms_str last = probe_name_part_back(name, 0), second = probe_name_part_back(name, 1);
    if (probe_name_parts(name) < 4)
        return false;
    *p = (struct parts){0};
    if (ms_str_is(last, "parameters_grad")) {
        *p = (struct parts){probe_name_part_back(name, 1), probe_name_part_back(name, 2), last,
                            probe_name_cut(name, 3), true};
    } else if (ms_str_is(second, "parameters_grad") &&
               ms_str_all_digits(last)) { /* the official scope of this form repeats the name */
        *p = (struct parts){probe_name_part_back(name, 2), probe_name_part_back(name, 3), second,
                            probe_name_cut(name, 3), true};
    } else if (ms_str_starts(name, MS_STR("Cell.")) || ms_str_starts(name, MS_STR("Module."))) {
        *p = (struct parts){probe_name_part_back(name, 2), probe_name_part_back(name, 3), second,
                            probe_name_cut(name, 4), false};
    } else {
        *p = (struct parts){probe_name_part_back(name, 2), probe_name_part_back(name, 2), last,
                            MS_STR("TopLayer"), true};
        uint32_t id = probe_tree_find(&l->tree, name);
        uint32_t parent = id != MS_MAP_NONE ? l->tree.nodes.p[id].parent : MS_MAP_NONE;
        if (parent != MS_MAP_NONE)
            p->layer = probe_name_cut(probe_tree_name(&l->tree, parent), 3);
    }
    return p->api.n != 0;
}

/* ---- scopes ----------------------------------------------------------------- */

static struct ms_str keep_text(struct layer__layout *l, struct ms_buf *b)
{
    struct ms_str s = b->bad == MS_OK ? ms_arena_str(l->arena, ms_buf_slice(b)) : MS_STR_NONE;
    ms_buf_clear(b);
    return s;
}

/* Writes the scope of an operator. The official tool finds no frames where nodes share a stack. */
static void put_scope(struct layer__layout *l, struct ms_str name, const struct parts *p)
{
    struct ms_str function;
    ms_buf_clear(&l->a);
    ms_buf_str(&l->a, p->layer);
    bool plain = ms_str_starts(name, MS_STR("Primitive.")) || ms_str_starts(name, MS_STR("Jit."));
    bool unread = l->official && l->stacks->grouped;
    if (p->called && !plain && !unread &&
        frame_function(probe_stack_frames(l->stacks, name), l->mindspore, &l->b, &function)) {
        ms_buf_putc(&l->a, '.');
        ms_buf_str(&l->a, function);
    }
    ms_buf_putc(&l->a, '.');
    ms_buf_str(&l->a, p->api);
}

static enum ms_rc place_op(struct layer__layout *l, uint32_t node, struct ms_err *err)
{
    struct ms_str name = probe_node_name(l->side->dump, node);
    struct parts p;
    if (!take_apart(l, name, &p))
        return MS_OK;
    put_scope(l, name, &p);
    struct layer__op op = {node, keep_text(l, &l->a), p.type, p.state, 0};
    struct layer__op *slot = ms_vec_push(&l->ops);
    if (op.scope.p == NULL || slot == NULL || ms_map_put(&l->names, name, NULL) == MS_MAP_NONE)
        return ms_no_memory(err);
    *slot = op;
    return MS_OK;
}

/* Gives a backward operator, which has no stack of its own, the scope of its forward operator,
 * whatever their order in the file. */
static void join_forward(struct layer__layout *l)
{
    for (size_t i = 0; i < l->ops.n; i++) {
        struct layer__op *op = &l->ops.p[i];
        ms_buf_clear(&l->a);
        uint32_t twin = probe_name_put_forward(&l->a, probe_node_name(l->side->dump, op->node))
                            ? ms_map_get(&l->names, ms_buf_slice(&l->a))
                            : MS_MAP_NONE;
        if (twin != MS_MAP_NONE)
            op->scope = l->ops.p[twin].scope;
    }
}

/* ---- pipeline stages number their layers in one framework only ---------------- */

/* Returns the component behind "PREFIX.layers." of a scope; false when the scope lies elsewhere. */
static bool layer_part(struct ms_str scope, struct ms_str prefix, struct ms_str *part)
{
    struct ms_str rest = ms_str_sub(scope, prefix.n, scope.n);
    if (!ms_str_starts(scope, prefix) || !ms_str_starts(rest, MS_STR(".layers.")))
        return false;
    rest = ms_str_sub(rest, sizeof ".layers." - 1, rest.n);
    return ms_str_split(&rest, '.', part) && part->n != 0;
}

/* Reads the last number in the component: 7 of "7" and of "block7". */
static bool number_in(struct ms_str part, uint64_t *number)
{
    uint32_t to = part.n;
    while (to > 0 && !ms_str_all_digits(ms_str_sub(part, to - 1, to)))
        to--;
    uint32_t from = to;
    while (from > 0 && ms_str_all_digits(ms_str_sub(part, from - 1, from)))
        from--;
    return ms_str_u64(ms_str_sub(part, from, to), number);
}

static enum ms_rc put_number(struct layer__layout *l, struct ms_str *scope, struct ms_str part,
                             const uint64_t *number, struct ms_err *err)
{
    ms_buf_put(&l->a, scope->p, (size_t)(part.p - scope->p));
    if (number != NULL)
        ms_buf_printf(&l->a, "%llu", (unsigned long long)*number);
    else
        ms_buf_puts(&l->a, "nan");
    ms_buf_put(&l->a, part.p + part.n, (size_t)(scope->p + scope->n - part.p - part.n));
    *scope = keep_text(l, &l->a);
    return scope->p != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc renumber_below(struct layer__layout *l, struct ms_str prefix, struct ms_err *err)
{
    uint64_t least = UINT64_MAX, number = 0;
    struct ms_str part;
    for (size_t i = 0; i < l->ops.n; i++) {
        if (layer_part(l->ops.p[i].scope, prefix, &part) && number_in(part, &number) &&
            number < least)
            least = number;
    }
    bool none = least == UINT64_MAX; /* the official tool numbers all of these "nan" */
    for (size_t i = 0; i < l->ops.n && !(none && !l->official); i++) {
        struct ms_str *scope = &l->ops.p[i].scope;
        if (!layer_part(*scope, prefix, &part) || (!none && !number_in(part, &number)))
            continue;
        number -= none ? 0 : least;
        MS_TRY(put_number(l, scope, part, none ? NULL : &number, err));
    }
    return MS_OK;
}

static enum ms_rc renumber_layers(struct layer__layout *l, struct ms_err *err)
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

struct ms_str layer__path(struct ms_str scope)
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

static enum ms_rc index_op(struct layer__layout *l, uint32_t i, struct ms_err *err)
{
    struct layer__op *op = &l->ops.p[i];
    struct ms_str path = layer__path(op->scope);
    bool added;
    uint32_t id = ms_map_put(&l->classes, path, &added);
    struct ms_str *type = added ? ms_vec_push(&l->class_of) : &l->class_of.p[id];
    uint32_t count = ms_map_put_copy(&l->counts, slot_key(&l->a, path, op->state, MS_MAP_NONE),
                                     l->arena, &added);
    uint32_t *n = added ? ms_vec_push(&l->count_of) : &l->count_of.p[count];
    if (id == MS_MAP_NONE || type == NULL || count == MS_MAP_NONE || n == NULL)
        return ms_no_memory(err);
    *type = op->type;
    op->number = added ? 0 : *n;
    *n = op->number + 1;
    uint32_t slot =
        ms_map_put_copy(&l->slots, slot_key(&l->a, path, op->state, op->number), l->arena, NULL);
    uint32_t *at = ms_vec_push(&l->op_at);
    if (slot == MS_MAP_NONE || at == NULL)
        return ms_no_memory(err);
    *at = i;
    return MS_OK;
}

uint32_t layer__count(struct layer__layout *l, struct ms_str path, struct ms_str state)
{
    uint32_t id = ms_map_get(&l->counts, slot_key(&l->b, path, state, MS_MAP_NONE));
    return id != MS_MAP_NONE ? l->count_of.p[id] : 0;
}

uint32_t layer__op_at(struct layer__layout *l, struct ms_str path, struct ms_str state, uint32_t n)
{
    uint32_t id = ms_map_get(&l->slots, slot_key(&l->b, path, state, n));
    return id != MS_MAP_NONE ? l->op_at.p[id] : MS_MAP_NONE;
}

/* Opens construct.json. A dump with neither stack.json nor construct.json has no layers (bare); one
 * with stacks alone is missing a file, which is an error. */
static enum ms_rc open_tree(struct layer__layout *l, struct ms_err *err)
{
    struct ms_str dir = ms_path_dir(l->side->dump->path);
    char *d = ms_str_dup(dir), *path = d != NULL ? ms_path_join(d, "construct.json") : NULL;
    enum ms_rc rc = path != NULL ? MS_OK : ms_no_memory(err);
    l->bare = rc == MS_OK && l->stacks->arena == NULL && ms_path_kind(path) == MS_KIND_NONE;
    if (rc == MS_OK && !l->bare)
        rc = probe_tree_open(&l->tree, path, PROBE_TREE_TOLERANT, err);
    ms_free(d);
    ms_free(path);
    return rc;
}

/* The official tool places no operator of a dump whose stack.json or construct.json is empty. */
enum ms_rc layer__lay_out(struct layer__layout *l, const struct cmp_rows *c,
                          const struct cmp__side *side, const struct probe_stacks *stacks,
                          struct ms_err *err)
{
    *l = (struct layer__layout){.side = side,
                                .stacks = stacks,
                                .official = c->set->conf.rules->official_layers,
                                .mindspore = side->dump->framework == PROBE_FW_MINDSPORE,
                                .a.max = TEXT_MAX,
                                .b.max = TEXT_MAX};
    l->arena = ms_arena_new(LAYER__MAP_MAX);
    if (l->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(open_tree(l, err));
    bool blind = l->bare || (l->official && (stacks->frames.n == 0 || l->tree.nodes.n == 0));
    for (uint32_t i = 0; i < side->dump->nodes.n && !blind; i++)
        MS_TRY(place_op(l, i, err));
    join_forward(l);
    MS_TRY(renumber_layers(l, err));
    for (uint32_t i = 0; i < l->ops.n; i++)
        MS_TRY(index_op(l, i, err));
    return MS_OK;
}

void layer__free(struct layer__layout *l)
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

/* Finds the rule of the class that covers the most leading components of `rest`. */
static const struct ms_str *rule_for(const struct cmp__layers *rules, struct ms_str type,
                                     struct ms_str rest, uint32_t *taken)
{
    uint32_t id = ms_map_get(&rules->classes, type);
    if (id == MS_MAP_NONE)
        return NULL;
    const struct cmp__pairs *map = &rules->maps.p[id];
    for (int64_t n = rest.n; n > 0; n = ms_str_rfind(ms_str_sub(rest, 0, (uint32_t)n), '.')) {
        uint32_t at = ms_map_get(&map->keys, ms_str_sub(rest, 0, (uint32_t)n));
        *taken = (uint32_t)n;
        if (at != MS_MAP_NONE)
            return &map->values.p[at];
    }
    return NULL;
}

struct ms_str layer__class(const struct layer__layout *l, struct ms_str path)
{
    if (path.n == 0)
        return MS_STR("TopLayer");
    uint32_t id = ms_map_get(&l->classes, path);
    return id != MS_MAP_NONE ? l->class_of.p[id] : MS_STR("");
}

/* Returns the class whose rules apply at this path. A container without a class of its own has its
 * name as class. */
static struct ms_str rules_class(const struct layer__layout *l, struct ms_str path)
{
    struct ms_str cls = layer__class(l, path);
    return cls.n != 0 ? cls : probe_name_part_back(path, 0);
}

bool layer__map(const struct layer__layout *l, const struct cmp__layers *rules, struct ms_str path,
                struct ms_buf *out)
{
    bool is_mapped = false;
    ms_buf_clear(out);
    for (uint32_t done = 0, taken; done < path.n; done += taken + 1) {
        struct ms_str rest = ms_str_sub(path, done, path.n), part = rest, tail = rest;
        struct ms_str above = ms_str_sub(path, 0, done == 0 ? 0 : done - 1);
        const struct ms_str *to = rule_for(rules, rules_class(l, above), rest, &taken);
        ms_str_split(&tail, '.', &part);
        is_mapped = to != NULL;
        taken = is_mapped ? taken : part.n;
        if (done != 0)
            ms_buf_putc(out, '.');
        ms_buf_str(out, is_mapped ? *to : part);
    }
    return is_mapped;
}
