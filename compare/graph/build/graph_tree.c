/* SPDX-License-Identifier: MIT
 *
 * graph_tree: the tree of modules of a dump, and its shape.
 */
#include "compare/graph/build/graph_tree.h"
#include "compare/graph/graph_rules.h"
#include "probe/base/assert.h"
#include "probe/base/num.h"

/* ---- nodes ------------------------------------------------------------------ */

void graph__init(struct graph__tree *g, const struct graph_rules *rules)
{
    *g = (struct graph__tree){
        .rules = rules, .micro_steps = 1, .built.file.p = "", .stacks.file.p = ""};
}

void graph__close(struct graph__tree *g)
{
    cmp__side_free(&g->side);
    probe_tree_close(&g->built);
    probe_stacks_close(&g->stacks);
    ms_vec_free(&g->nodes);
    ms_vec_free(&g->order);
    ms_vec_free(&g->about);
    ms_free(g->dir);
    ms_free(g->data_dir);
    graph__init(g, g->rules);
}

/* ---- nodes ---------------------------------------------------------------- */

uint32_t graph__find(const struct graph__tree *g, struct ms_str name)
{
    uint32_t id = ms_map_get(&g->built.names, name);
    return id != GRAPH_NO && id < g->nodes.n && g->nodes.p[id].in_tree ? id : GRAPH_NO;
}

struct graph__node graph__blank_node(enum graph__kind kind)
{
    return (struct graph__node){.parent = GRAPH_NO,
                                .first_child = GRAPH_NO,
                                .last_child = GRAPH_NO,
                                .next = GRAPH_NO,
                                .op = GRAPH_NO,
                                .stack = GRAPH_STACK_EMPTY,
                                .match = GRAPH_NO,
                                .kind = (uint8_t)kind};
}

uint32_t graph__add(struct graph__tree *g, struct ms_str name, enum graph__kind kind)
{
    uint32_t id = ms_map_put_copy(&g->built.names, name, g->built.arena, NULL);
    if (id == GRAPH_NO || !ms_vec_reserve(&g->nodes, (size_t)id + 1))
        return GRAPH_NO;
    if (id < g->nodes.n)
        return id;
    g->nodes.p[g->nodes.n++] = graph__blank_node(kind);
    return id;
}

void graph__append(struct graph__tree *g, uint32_t parent, uint32_t child)
{
    struct graph__node *p = &g->nodes.p[parent];
    struct graph__node *c = &g->nodes.p[child];
    ms_assert(parent < g->nodes.n && child < g->nodes.n && parent != child);
    c->parent = parent;
    c->next = GRAPH_NO;
    c->in_tree = true;
    if (p->last_child == GRAPH_NO)
        p->first_child = child;
    else
        g->nodes.p[p->last_child].next = child;
    p->last_child = child;
}

uint32_t *graph__nodes_of_records(const struct graph__tree *g)
{
    size_t n = g->side.dump->nodes.n;
    uint32_t *list = ms_alloc((n + 1) * sizeof *list);
    if (list == NULL)
        return NULL;
    memset(list, 0xff, (n + 1) * sizeof *list);
    for (size_t i = 0; i < g->order.n; i++) {
        uint32_t node = g->order.p[i];
        uint32_t record = probe_node_find(g->side.dump, graph__name(g, node));
        if (record != GRAPH_NO)
            list[record] = node;
    }
    return list;
}

/* ---- order ------------------------------------------------------------------ */

static uint32_t deepest_first(const struct graph__tree *g, uint32_t n)
{
    while (g->nodes.p[n].first_child != GRAPH_NO)
        n = g->nodes.p[n].first_child;
    return n;
}

enum ms_rc graph__set_order(struct graph__tree *g, struct ms_err *err)
{
    ms_assert(g->order.n == 0 && g->root < g->nodes.n);
    if (!ms_vec_reserve(&g->order, g->nodes.n))
        return ms_no_memory(err);
    uint32_t n = deepest_first(g, g->root);
    for (;;) {
        g->order.p[g->order.n++] = n;
        if (n == g->root)
            return MS_OK;
        uint32_t next = g->nodes.p[n].next;
        n = next != GRAPH_NO ? deepest_first(g, next) : g->nodes.p[n].parent;
    }
}

/* ---- shape ------------------------------------------------------------------ */

/* Moves, joins and numbers the nodes of a tree.
 *
 *     recomputed modules   are found at the root, move below the backward of their parent
 *     loose operators      two or more in a row become Apis_Between_Modules.k
 *     parameter gradients  have no entry in construct.json, are attached to their backward
 *     micro steps          forward, backward, forward: the second forward begins a new one */

enum { NAME_MAX_BYTES = 1 << 20, TWO_PARTS = 2 };

/* ---- recomputation -------------------------------------------------------- */

struct recompute {
    struct graph__tree *g;
    struct ms_map prefixes; /* names without direction and call number */
    /* By prefix, a queue of the nodes that are not at the root, in order, and how many were taken,
     * separately by forward and backward candidates. */
    MS_VEC(struct queue {
        MS_VEC(uint32_t) nodes;
        uint32_t taken[2];
    })
    queues;
    struct ms_buf name, scratch;
    enum ms_rc bad; /* error of the first text that could not be made */
};

/* Returns the text of a buffer and keeps its error, which clearing the buffer would reset. */
static struct ms_str text_in(struct recompute *rc, const struct ms_buf *b)
{
    if (b->bad != MS_OK)
        rc->bad = b->bad;
    return ms_buf_slice(b);
}

static struct ms_str prefix_of(const struct graph__tree *g, uint32_t node)
{
    return probe_name_cut(graph__name(g, node), TWO_PARTS);
}

/* Parsed text of a frame: "File PATH, line N, in FUNCTION, ..." */
struct frame {
    struct ms_str path, function;
};

static struct frame parse_frame(struct ms_str text)
{
    struct frame f = {{"", 0}, {"", 0}};
    int64_t line = ms_str_find_str(text, MS_STR(", line "));
    int64_t in = ms_str_find_str(text, MS_STR(", in "));
    if (!ms_str_starts(text, MS_STR("File ")) || line < 5 || in < line)
        return f;
    f.path = ms_str_sub(text, 5, (uint32_t)line);
    f.function = ms_str_sub(text, (uint32_t)in + 5, text.n);
    int64_t end = ms_str_find(f.function, ',');
    f.function = ms_str_sub(f.function, 0, end < 0 ? f.function.n : (uint32_t)end);
    return f;
}

static bool is_backward_frame(const struct frame *f)
{
    return ms_str_is(f->function, "backward") ||
           (ms_str_is(f->function, "checkpoint_function_backward") &&
            ms_str_find_str(f->path, MS_STR("megatron")) >= 0);
}

/* Returns true when a frame shows that autograd or its checkpoint ran the forward again. */
static bool shows_recompute(struct recompute *rc, struct ms_str frames)
{
    struct ms_jread r;
    struct ms_str text;
    unsigned since_backward = 3;
    ms_jread_init(&r, frames.p, frames.n, 0);
    while (probe_stack_next(&r, &rc->scratch, &text)) {
        struct frame f = parse_frame(text);
        if (ms_str_is(f.function, "recompute_fn") &&
            ms_str_ends(f.path, MS_STR("torch/utils/checkpoint.py")))
            return true;
        if (since_backward < 2 && ms_str_ends(f.path, MS_STR("torch/autograd/function.py")))
            return true;
        since_backward = is_backward_frame(&f) ? 0 : since_backward + 1;
    }
    text_in(rc, &rc->scratch);
    return false;
}

static bool is_recomputed_by_stack(struct recompute *rc, uint32_t node)
{
    struct graph__tree *g = rc->g;
    if (g->side.dump->framework == PROBE_FW_MINDSPORE)
        return true;
    struct ms_str name = graph__name(g, node);
    ms_buf_clear(&rc->name);
    if (probe_name_is_call_of(name, MS_STR("backward")))
        probe_name_put_call(&rc->name, name, MS_STR("forward"));
    else
        ms_buf_str(&rc->name, name);
    struct ms_str frames = probe_stack_frames(&g->stacks, text_in(rc, &rc->name));
    return frames.p != NULL && shows_recompute(rc, frames);
}

/* Returns true for a name with enough parts to be a part of a model, not the model or a chunk of
 * it. */
static bool is_recomputed_by_name(struct ms_str name)
{
    unsigned n = probe_name_parts(name);
    bool first = ms_str_all_digits(probe_name_part(name, 1));
    return n > 7 || (n == 7 && !(first && ms_str_all_digits(probe_name_part(name, 3)))) ||
           (n == 6 && !first);
}

static bool has_twin_at_root(struct recompute *rc, uint32_t node)
{
    struct graph__tree *g = rc->g;
    struct ms_str name = graph__name(g, node);
    bool forward = probe_name_is_call_of(name, MS_STR("forward"));
    if (!forward && !probe_name_is_call_of(name, MS_STR("backward")))
        return false;
    ms_buf_clear(&rc->name);
    probe_name_put_call(&rc->name, name, forward ? MS_STR("backward") : MS_STR("forward"));
    uint32_t twin = graph__find(g, text_in(rc, &rc->name));
    return twin != GRAPH_NO && g->nodes.p[twin].parent == g->root;
}

static bool is_candidate(struct recompute *rc, uint32_t node)
{
    return rc->g->nodes.p[node].kind == GRAPH_MODULE &&
           is_recomputed_by_name(graph__name(rc->g, node)) && has_twin_at_root(rc, node) &&
           is_recomputed_by_stack(rc, node);
}

static enum ms_rc queue_node(struct recompute *rc, uint32_t node, struct ms_err *err)
{
    bool added;
    uint32_t id = ms_map_put(&rc->prefixes, prefix_of(rc->g, node), &added);
    struct queue *q = id == GRAPH_NO ? NULL : added ? ms_vec_push(&rc->queues) : &rc->queues.p[id];
    if (q == NULL)
        return ms_no_memory(err);
    if (added)
        *q = (struct queue){.taken = {0, 0}};
    uint32_t *slot = ms_vec_push(&q->nodes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = node;
    return MS_OK;
}

/* Queues forward nodes that are not at the root, by prefix, in the order of construct.json. */
static enum ms_rc queue_forward(struct recompute *rc, struct ms_err *err)
{
    struct graph__tree *g = rc->g;
    for (size_t i = 0; i < g->built.entries.n; i++) {
        uint32_t node = g->built.entries.p[i];
        uint32_t parent = g->nodes.p[node].parent;
        if (g->nodes.p[node].kind == GRAPH_MODULE && parent != g->root && parent != GRAPH_NO &&
            probe_name_is_call_of(graph__name(g, node), MS_STR("forward")))
            MS_TRY(queue_node(rc, node, err));
    }
    return MS_OK;
}

static bool is_above(const struct graph__tree *g, uint32_t node, uint32_t of)
{
    for (; of != GRAPH_NO; of = g->nodes.p[of].parent) {
        if (of == node)
            return true;
    }
    return false;
}

/* Returns the new parent of a candidate: the backward call of the parent of the next
 * queued node. */
static uint32_t place_for(struct recompute *rc, uint32_t node)
{
    struct graph__tree *g = rc->g;
    uint32_t id = ms_map_get(&rc->prefixes, prefix_of(g, node));
    if (id == GRAPH_NO)
        return GRAPH_NO;
    struct queue *q = &rc->queues.p[id];
    uint32_t *taken = &q->taken[probe_name_is_call_of(graph__name(g, node), MS_STR("backward"))];
    if (*taken >= q->nodes.n)
        return GRAPH_NO;
    uint32_t parent = g->nodes.p[q->nodes.p[(*taken)++]].parent;
    struct ms_str name = graph__name(g, parent);
    if (!probe_name_is_call_of(name, MS_STR("forward")))
        return GRAPH_NO;
    ms_buf_clear(&rc->name);
    probe_name_put_call(&rc->name, name, MS_STR("backward"));
    uint32_t place = graph__find(g, text_in(rc, &rc->name));
    return place != GRAPH_NO && !is_above(g, node, place) ? place : GRAPH_NO;
}

/* Links the children of the root anew, without candidates that move elsewhere. */
static enum ms_rc move_candidates(struct recompute *rc, struct ms_err *err)
{
    struct graph__tree *g = rc->g;
    bool queued = false;
    uint32_t n = g->nodes.p[g->root].first_child;
    for (; n != GRAPH_NO; n = g->nodes.p[n].next) {
        if (!is_candidate(rc, n))
            continue;
        if (!queued)
            MS_TRY(queue_forward(rc, err));
        queued = true;
        /* stored here until the new parents of all candidates are known */
        g->nodes.p[n].match = place_for(rc, n);
    }
    n = g->nodes.p[g->root].first_child;
    g->nodes.p[g->root].first_child = g->nodes.p[g->root].last_child = GRAPH_NO;
    while (n != GRAPH_NO) {
        uint32_t next = g->nodes.p[n].next;
        uint32_t place = g->nodes.p[n].match;
        g->nodes.p[n].match = GRAPH_NO;
        graph__append(g, place != GRAPH_NO ? place : g->root, n);
        n = next;
    }
    return MS_OK;
}

enum ms_rc graph__move_recomputed(struct graph__tree *g, struct ms_err *err)
{
    struct recompute rc = {.g = g, .name.max = NAME_MAX_BYTES, .scratch.max = NAME_MAX_BYTES};
    enum ms_rc result = move_candidates(&rc, err);
    if (result == MS_OK && rc.bad != MS_OK)
        result = ms_fail(err, rc.bad, "%s", ms_rc_text(rc.bad));
    for (size_t i = 0; i < rc.queues.n; i++)
        ms_vec_free(&rc.queues.p[i].nodes);
    ms_vec_free(&rc.queues);
    ms_map_free(&rc.prefixes);
    ms_buf_free(&rc.name);
    ms_buf_free(&rc.scratch);
    return result;
}

/* ---- collections ---------------------------------------------------------- */

/* Returns the number of consecutive operators among the siblings from n on. */
static uint32_t run_length(const struct graph__tree *g, uint32_t n)
{
    uint32_t length = 0;
    for (; n != GRAPH_NO && g->nodes.p[n].kind == GRAPH_API; n = g->nodes.p[n].next)
        length++;
    return length;
}

static uint32_t add_collection(struct graph__tree *g, uint32_t number, uint32_t micro)
{
    struct ms_buf name = {.max = 64};
    ms_buf_printf(&name, "Apis_Between_Modules.%u", number);
    uint32_t id = graph__add(g, ms_buf_slice(&name), GRAPH_COLLECTION);
    ms_buf_free(&name);
    if (id != GRAPH_NO) {
        g->nodes.p[id].kind = GRAPH_COLLECTION;
        g->nodes.p[id].micro = micro;
    }
    return id;
}

enum ms_rc graph__collect_operators(struct graph__tree *g, struct ms_err *err)
{
    uint32_t number = 0, left = 0, into = g->root;
    uint32_t n = g->nodes.p[g->root].first_child;
    g->nodes.p[g->root].first_child = g->nodes.p[g->root].last_child = GRAPH_NO;
    while (n != GRAPH_NO) {
        uint32_t next = g->nodes.p[n].next;
        uint32_t run = left == 0 ? run_length(g, n) : 0;
        if (left == 0)
            into = g->root;
        if (run >= 2) {
            into = add_collection(g, number++, g->nodes.p[n].micro);
            if (into == GRAPH_NO)
                return ms_no_memory(err);
            graph__append(g, g->root, into);
            left = run;
        }
        graph__append(g, into, n);
        left -= left > 0;
        n = next;
    }
    return MS_OK;
}

/* ---- parameter gradients ---------------------------------------------------- */

/* The last backward call of each module, by the module's name before the direction. */
struct last_backward {
    struct ms_map prefixes;
    MS_VEC(struct {
        uint32_t node;
        uint64_t call;
        bool backward;
    })
    last;
};

static enum ms_rc note_module(struct last_backward *lb, const struct graph__tree *g, uint32_t node,
                              struct ms_err *err)
{
    struct ms_str name = graph__name(g, node);
    bool backward = probe_name_is_call_of(name, MS_STR("backward"));
    uint64_t call;
    bool added;
    /* The official tool also accepts a backward module outside the tree, and loses the gradients
     * below it. */
    bool here = g->nodes.p[node].in_tree || (!g->rules->keep_gradients && backward);
    if (!here || (!backward && !probe_name_is_call_of(name, MS_STR("forward"))) ||
        !ms_str_u64(probe_name_last(name), &call))
        return MS_OK;
    uint32_t id = ms_map_put(&lb->prefixes, prefix_of(g, node), &added);
    if (id == GRAPH_NO || (added && ms_vec_push(&lb->last) == NULL))
        return ms_no_memory(err);
    if (added || (backward && (!lb->last.p[id].backward || call >= lb->last.p[id].call))) {
        lb->last.p[id].node = node;
        lb->last.p[id].call = call;
        lb->last.p[id].backward = backward;
    }
    return MS_OK;
}

/* Returns the parent for a module's gradients: its last backward call, else its forward node, else
 * the root. The official tool knows only the first. */
static uint32_t place_for_gradient(const struct graph__tree *g, const struct last_backward *lb,
                                   struct ms_str module)
{
    uint32_t id = ms_map_get(&lb->prefixes, module);
    if (id != GRAPH_NO && (lb->last.p[id].backward || g->rules->keep_gradients))
        return lb->last.p[id].node;
    return g->rules->keep_gradients ? g->root : GRAPH_NO;
}

/* Adds the node of a gradient. op: the operator with its rows, or GRAPH_NO. */
static enum ms_rc add_gradient(struct graph__tree *g, const struct last_backward *lb,
                               uint32_t record, uint32_t op, struct ms_err *err)
{
    struct ms_str name = probe_node_name(g->side.dump, record);
    if (graph__find(g, name) != GRAPH_NO)
        return MS_OK;
    bool counted = probe_name_is_call_of(name, MS_STR("parameters_grad"));
    uint32_t place = place_for_gradient(g, lb, probe_name_cut(name, counted ? 2 : 1));
    if (place == GRAPH_NO) {
        g->dropped++;
        return MS_OK;
    }
    uint32_t node = graph__add(g, name, GRAPH_MODULE);
    if (node == GRAPH_NO)
        return ms_no_memory(err);
    g->nodes.p[node].op = op;
    graph__append(g, place, node);
    return MS_OK;
}

enum ms_rc graph__add_gradients(struct graph__tree *g, struct ms_err *err)
{
    struct last_backward lb = {.prefixes = {.mask = 0}};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; rc == MS_OK && i < g->nodes.n; i++)
        rc = note_module(&lb, g, i, err);
    for (uint32_t i = 0, op = 0; rc == MS_OK && i < g->side.dump->nodes.n; i++) {
        while (op < g->side.ops.n && g->side.ops.p[op].node < i)
            op++;
        bool has_rows = op < g->side.ops.n && g->side.ops.p[op].node == i;
        if (g->side.dump->nodes.p[i].kind == PROBE_NODE_PGRAD)
            rc = add_gradient(g, &lb, i, has_rows ? op : GRAPH_NO, err);
    }
    ms_vec_free(&lb.last);
    ms_map_free(&lb.prefixes);
    return rc;
}

/* ---- micro steps -------------------------------------------------------------- */

/* Returns the next node below `top` in preorder, or GRAPH_NO at the end. */
static uint32_t next_below(const struct graph__tree *g, uint32_t top, uint32_t n)
{
    if (g->nodes.p[n].first_child != GRAPH_NO)
        return g->nodes.p[n].first_child;
    while (n != top && g->nodes.p[n].next == GRAPH_NO)
        n = g->nodes.p[n].parent;
    return n != top ? g->nodes.p[n].next : GRAPH_NO;
}

static void set_micro_step(struct graph__tree *g, uint32_t top, uint32_t micro)
{
    for (uint32_t n = top; n != GRAPH_NO; n = next_below(g, top, n))
        g->nodes.p[n].micro = micro;
}

static void count_micro_steps(struct graph__tree *g)
{
    uint32_t micro = 0;
    bool backward = false;
    for (uint32_t n = g->nodes.p[g->root].first_child; n != GRAPH_NO; n = g->nodes.p[n].next) {
        if (g->nodes.p[n].kind == GRAPH_MODULE) {
            bool forward = ms_str_find_str(graph__name(g, n), MS_STR(".forward.")) >= 0;
            micro += forward && backward;
            backward = !forward;
        }
        set_micro_step(g, n, micro);
    }
    g->micro_steps = micro + 1;
}

void graph__number_micro_steps(struct graph__tree *g)
{
    int64_t stated = g->built.micro_steps;
    ms_assert(g->root < g->nodes.n);
    if (stated < 0)
        count_micro_steps(g);
    else
        g->micro_steps = stated < INT32_MAX ? (uint32_t)stated + 1 : INT32_MAX;
    g->nodes.p[g->root].micro = 0;
}

/* Returns true when the micro step of the partner applies. The official tool uses only partners
 * that are children of the root. */
static bool has_number(const struct graph__tree *t, const struct graph__tree *b, uint32_t n)
{
    uint32_t partner = b->nodes.p[n].match;
    return partner != GRAPH_NO &&
           (b->rules->golden_follows_target || t->nodes.p[partner].parent == t->root);
}

void graph__share_micro_steps(const struct graph__tree *t, struct graph__tree *b)
{
    if (!b->rules->golden_follows_target && t->built.micro_steps >= 0)
        return; /* each side states its own */
    for (uint32_t n = b->nodes.p[b->root].first_child; n != GRAPH_NO; n = b->nodes.p[n].next) {
        struct ms_str name = graph__name(b, n);
        uint64_t number = 0;
        if (has_number(t, b, n))
            number = t->nodes.p[b->nodes.p[n].match].micro;
        else if (!ms_str_u64(probe_name_last(name), &number))
            number = 0;
        set_micro_step(b, n, number < INT32_MAX ? (uint32_t)number : INT32_MAX);
    }
}
