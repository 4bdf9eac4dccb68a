/* SPDX-License-Identifier: MIT
 *
 * tree_build: builds a tree from the three files of a rank.
 *
 * The parents in construct.json are repaired first: a backward module may be attached to
 * the wrong one, and many backward nodes have none. Then cycles that a repair has closed
 * are broken, and only then children are linked, in the order of the file, so no later
 * stage can meet a cycle.
 */
#include "compare/graph/build/graph_tree.h"

#include "compare/graph/graph_rules.h"

#include <limits.h>
#include <stdlib.h>

/* A graph shows every record under its own name. */
static const struct cmp_rules every_record = {.lists_all_records = true};

#define ROOT_NAME MS_STR("DefaultModel")

enum { NAME_MAX_BYTES = 1 << 20 };

struct builder {
    struct graph__tree *g;
    uint32_t *up; /* parent by node; GRAPH_NO: child of the root */
    struct ms_buf name, other;
    enum ms_rc bad; /* error of the first name that could not be made */
};

/* ---- nodes ---------------------------------------------------------------- */

static enum ms_rc make_nodes(struct graph__tree *g, struct ms_err *err)
{
    size_t n = g->built.nodes.n;
    if (!ms_vec_reserve(&g->nodes, n + 1))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        g->nodes.p[i] = graph__blank_node(graph__kind_of(graph__name(g, i)));
        g->nodes.p[i].micro = g->built.nodes.p[i].micro_step;
    }
    g->nodes.n = n;
    g->root = graph__add(g, ROOT_NAME, GRAPH_MODULE);
    if (g->root == GRAPH_NO)
        return ms_no_memory(err);
    g->nodes.p[g->root].in_tree = true;
    return MS_OK;
}

/* ---- parents -------------------------------------------------------------- */

/* Returns the node if the name is a key of construct.json, else GRAPH_NO. */
static uint32_t key_of(struct builder *b, const struct ms_buf *name)
{
    if (name->bad != MS_OK)
        b->bad = name->bad;
    uint32_t id = probe_tree_find(&b->g->built, ms_buf_slice(name));
    return id != GRAPH_NO && id < b->g->built.nodes.n && b->g->built.nodes.p[id].listed ? id
                                                                                        : GRAPH_NO;
}

static uint32_t parent_of(const struct builder *b, uint32_t node)
{
    return b->g->built.nodes.p[node].parent;
}

/* Returns the backward call of a forward node, if construct.json has one, else GRAPH_NO. */
static uint32_t backward_of(struct builder *b, uint32_t module)
{
    struct ms_str name = graph__name(b->g, module);
    ms_buf_clear(&b->other);
    if (probe_name_is_call_of(name, MS_STR("forward")))
        probe_name_put_call(&b->other, name, MS_STR("backward"));
    else
        graph__replace(&b->other, name, MS_STR("forward"), MS_STR("backward"));
    return key_of(b, &b->other);
}

/* Returns the forward call of a backward module, if construct.json has one, else GRAPH_NO. */
static uint32_t forward_of(struct builder *b, struct ms_str backward)
{
    ms_buf_clear(&b->name);
    probe_name_put_call(&b->name, backward, MS_STR("forward"));
    return key_of(b, &b->name);
}

/* Corrects the parent of a backward module: in-place operations can attach it below a module whose
 * name does not contain it. The parent of its forward call is then used. */
static uint32_t fix_in_place(struct builder *b, uint32_t child, uint32_t parent)
{
    struct ms_str c = graph__name(b->g, child);
    struct ms_str p = graph__name(b->g, parent);
    if (!probe_name_is_call_of(c, MS_STR("backward")) || probe_name_parts(c) < 5 ||
        probe_name_parts(p) < 4 || ms_str_eq(probe_name_cut(c, 4), probe_name_cut(p, 3)))
        return parent;
    uint32_t twin = forward_of(b, c);
    if (twin == GRAPH_NO)
        return parent;
    if (parent_of(b, twin) == GRAPH_NO)
        return GRAPH_NO;
    uint32_t better = backward_of(b, parent_of(b, twin));
    return better != GRAPH_NO ? better : parent;
}

/* Finds the parent of a backward node by its forward call: old PyTorch runs no backward hook of
 * modules, so operators there have no parent. */
static uint32_t find_missing(struct builder *b, uint32_t child)
{
    struct ms_str c = graph__name(b->g, child);
    uint32_t twin = GRAPH_NO;
    if (probe_name_is_call_of(c, MS_STR("backward"))) {
        twin = forward_of(b, c);
    } else if (ms_str_ends(c, MS_STR(".backward"))) {
        ms_buf_clear(&b->name);
        graph__replace(&b->name, c, MS_STR("backward"), MS_STR("forward"));
        twin = key_of(b, &b->name);
    }
    if (twin == GRAPH_NO || parent_of(b, twin) == GRAPH_NO)
        return GRAPH_NO;
    return backward_of(b, parent_of(b, twin));
}

static void fix_parents(struct builder *b)
{
    struct graph__tree *g = b->g;
    for (uint32_t i = 0; i < g->nodes.n; i++)
        b->up[i] = GRAPH_NO;
    for (size_t i = 0; i < g->built.entries.n; i++) {
        uint32_t child = g->built.entries.p[i];
        uint32_t parent = parent_of(b, child);
        b->up[child] = parent != GRAPH_NO ? fix_in_place(b, child, parent) : find_missing(b, child);
        if (b->up[child] == child)
            b->up[child] = GRAPH_NO;
    }
    b->up[g->root] = GRAPH_NO;
}

/* Follows parents from every node. A node that is met twice on one walk closes a cycle: the last
 * node of the walk becomes a child of the root. `seq` holds the number of the walk meanwhile. */
static void open_cycles(struct builder *b)
{
    struct graph__node *nodes = b->g->nodes.p;
    for (uint32_t i = 0; i < b->g->nodes.n; i++) {
        uint32_t n = i, last = GRAPH_NO;
        for (; n != GRAPH_NO && nodes[n].seq == 0; last = n, n = b->up[n])
            nodes[n].seq = i + 1;
        if (n != GRAPH_NO && nodes[n].seq == i + 1 && last != GRAPH_NO)
            b->up[last] = GRAPH_NO;
    }
}

/* ---- children ------------------------------------------------------------- */

static void count_seq(struct graph__tree *g, uint32_t node, uint32_t *seq)
{
    if (node != GRAPH_NO && g->nodes.p[node].seq == 0)
        g->nodes.p[node].seq = ++*seq;
}

static void link_children(struct builder *b)
{
    struct graph__tree *g = b->g;
    uint32_t seq = 0;
    for (uint32_t i = 0; i < g->nodes.n; i++)
        g->nodes.p[i].seq = 0;
    for (size_t i = 0; i < g->built.entries.n; i++) {
        uint32_t child = g->built.entries.p[i];
        uint32_t parent = b->up[child] != GRAPH_NO ? b->up[child] : g->root;
        count_seq(g, parent, &seq);
        count_seq(g, child, &seq);
        if (child != g->root)
            graph__append(g, parent, child);
    }
}

/* Attaches nodes without a parent below the root: a parent that is not a key of construct.json has
 * none, and its subtree would be invisible. */
static void attach_detached(struct graph__tree *g)
{
    for (uint32_t i = 0; i < g->built.nodes.n; i++) {
        if (g->nodes.p[i].parent != GRAPH_NO || i == g->root)
            continue;
        g->detached++;
        if (g->rules->attach_detached)
            graph__append(g, g->root, i);
    }
}

/* ---- records and stacks ----------------------------------------------------- */

static enum ms_rc find_records(struct graph__tree *g, struct ms_err *err)
{
    uint32_t *op_of = ms_alloc((g->side.dump->nodes.n + 1) * sizeof *op_of);
    if (op_of == NULL)
        return ms_no_memory(err);
    memset(op_of, 0xff, (g->side.dump->nodes.n + 1) * sizeof *op_of);
    for (uint32_t i = 0; i < g->side.ops.n; i++)
        op_of[g->side.ops.p[i].node] = i;
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        uint32_t record = probe_node_find(g->side.dump, graph__name(g, i));
        g->nodes.p[i].op = record != GRAPH_NO ? op_of[record] : GRAPH_NO;
    }
    ms_free(op_of);
    return MS_OK;
}

static uint32_t own_stack(const struct graph__tree *g, struct ms_str name)
{
    uint32_t id = ms_map_get(&g->stacks.names, name);
    return id != GRAPH_NO ? g->stacks.stack_of.p[id] : GRAPH_NO;
}

/* Returns the stack of the forward call as the stack of a backward node. */
static uint32_t twin_stack(struct builder *b, uint32_t node)
{
    struct graph__tree *g = b->g;
    struct ms_str name = graph__name(g, node);
    if (ms_str_find_str(name, MS_STR("backward")) < 0)
        return GRAPH_STACK_EMPTY;
    ms_buf_clear(&b->name);
    if (probe_name_is_call_of(name, MS_STR("backward"))) {
        ms_buf_str(&b->name, probe_name_cut(name, 2));
        ms_buf_puts(&b->name, ".forward.0");
    } else {
        graph__replace(&b->name, name, MS_STR("backward"), MS_STR("forward"));
    }
    if (b->name.bad != MS_OK)
        b->bad = b->name.bad;
    uint32_t twin = ms_map_get(&g->built.names, ms_buf_slice(&b->name));
    if (twin == GRAPH_NO || twin >= g->nodes.n ||
        (!g->rules->later_forward_stack && g->nodes.p[twin].seq > g->nodes.p[node].seq))
        return GRAPH_STACK_NO_FORWARD;
    uint32_t stack = own_stack(g, ms_buf_slice(&b->name));
    return stack != GRAPH_NO ? stack : GRAPH_STACK_EMPTY;
}

static void find_stacks(struct builder *b)
{
    struct graph__tree *g = b->g;
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        uint32_t own = own_stack(g, graph__name(g, i));
        g->nodes.p[i].stack = own != GRAPH_NO ? own : twin_stack(b, i);
    }
    g->nodes.p[g->root].stack = GRAPH_STACK_EMPTY;
}

/* ---- the whole tree ------------------------------------------------------ */

static enum ms_rc build(struct builder *b, struct ms_err *err)
{
    struct graph__tree *g = b->g;
    MS_TRY(make_nodes(g, err));
    b->up = ms_alloc((g->nodes.n + 1) * sizeof *b->up);
    if (b->up == NULL)
        return ms_no_memory(err);
    fix_parents(b);
    open_cycles(b);
    link_children(b);
    attach_detached(g);
    MS_TRY(find_records(g, err));
    find_stacks(b);
    return b->bad == MS_OK ? MS_OK : ms_fail(err, b->bad, "%s", ms_rc_text(b->bad));
}

static enum ms_rc arrange_children(struct graph__tree *g, struct ms_err *err)
{
    MS_TRY(graph__move_recomputed(g, err));
    MS_TRY(graph__collect_operators(g, err));
    MS_TRY(graph__add_gradients(g, err));
    graph__number_micro_steps(g);
    return graph__set_order(g, err);
}

static enum ms_rc in_dir(const struct graph__tree *g, const char *name, char **path,
                         struct ms_err *err)
{
    *path = ms_path_join(g->dir, name);
    return *path != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_construct(struct graph__tree *g, struct ms_err *err)
{
    char *path;
    MS_TRY(in_dir(g, "construct.json", &path, err));
    enum ms_rc rc = ms_path_kind(path) != MS_KIND_NONE
                        ? probe_tree_open(&g->built, path, 0, err)
                        : ms_fail(err, MS_E_NOTFOUND,
                                  "%s: is missing; it says which module an operator belongs to, "
                                  "and lies beside the dump.json that was written with it",
                                  path);
    ms_free(path);
    return rc;
}

/* Lists the calls of a dump whose level does not say what lies inside what, as L1, in the order in which they were
 * made. */
static enum ms_rc list_calls(struct graph__tree *g, struct ms_err *err)
{
    const struct probe_dump *d = g->side.dump;
    for (uint32_t i = 0; i < d->nodes.n && g->built.entries.n == i; i++)
        MS_TRY(probe_tree_add_root(&g->built, probe_node_name(d, i), err));
    if (g->built.entries.n != 0)
        return MS_OK;
    ms_fail(err, MS_E_ARG, "%s: holds no node", g->dir);
    ms_err_hint(err, "the dump has no record; was a step run while it was on?");
    return MS_E_ARG;
}

static enum ms_rc read_dump(struct graph__tree *g, struct ms_pool *pool, struct ms_err *err)
{
    /* List all records whatever their names are, as the tables of 1.x do. */
    const struct cmp_conf every = {.rules = &every_record};
    char *path;
    MS_TRY(in_dir(g, "dump.json", &path, err));
    enum ms_rc rc = cmp__side_init(&g->side, &every, path, pool, err);
    ms_free(path);
    return rc;
}

static enum ms_rc read_stacks(struct graph__tree *g, struct ms_err *err)
{
    char *path;
    MS_TRY(in_dir(g, "stack.json", &path, err));
    bool there = ms_path_kind(path) != MS_KIND_NONE;
    enum ms_rc rc = there ? probe_stacks_open(&g->stacks, path, 0, err) : MS_OK;
    ms_free(path);
    return rc;
}

/* Stores the absolute path, because the database may be read from another directory. */
static enum ms_rc find_data(struct graph__tree *g, struct ms_err *err)
{
    char full[PATH_MAX];
    if (g->side.dump->mode != PROBE_MODE_TENSOR)
        return MS_OK;
    if (realpath(g->dir, full) == NULL)
        return ms_fail_sys(err, "%s", g->dir);
    g->data_dir = ms_path_join(full, "dump_tensor_data");
    return g->data_dir != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc open_tree(struct graph__tree *g, struct ms_pool *pool, struct ms_err *err)
{
    struct builder b = {.g = g, .name.max = NAME_MAX_BYTES, .other.max = NAME_MAX_BYTES};
    MS_TRY(read_construct(g, err));
    MS_TRY(read_dump(g, pool, err));
    if (g->built.entries.n == 0)
        MS_TRY(list_calls(g, err));
    MS_TRY(find_data(g, err));
    MS_TRY(read_stacks(g, err));
    enum ms_rc rc = build(&b, err);
    ms_free(b.up);
    ms_buf_free(&b.name);
    ms_buf_free(&b.other);
    return rc != MS_OK ? rc : arrange_children(g, err);
}

/* ---- a merged tree --------------------------------------------------------- */

/* Copies the notes of merging to the nodes; notes are in the order of the merged text. */
static enum ms_rc take_notes(struct graph__tree *g, const struct graph__merged *m,
                             struct ms_err *err)
{
    if (!ms_vec_reserve(&g->about, g->nodes.n))
        return ms_no_memory(err);
    for (g->about.n = 0; g->about.n < g->nodes.n; g->about.n++)
        g->about.p[g->about.n] = (struct graph__about){{"", 0}, {"", 0}};
    for (size_t i = 0; i < g->built.entries.n && i < m->notes.n; i++) {
        uint32_t node = g->built.entries.p[i];
        g->nodes.p[node].micro = m->notes.p[i].micro;
        g->nodes.p[node].kind = m->notes.p[i].kind;
        g->nodes.p[node].over = m->notes.p[i].over;
        g->about.p[node] = (struct graph__about){m->notes.p[i].info, m->notes.p[i].children};
    }
    return MS_OK;
}

/* Builds a merged tree. Parents were repaired before ranks were merged. */
static enum ms_rc build_merged(struct builder *b, const struct graph__merged *m, struct ms_err *err)
{
    struct graph__tree *g = b->g;
    MS_TRY(make_nodes(g, err));
    b->up = ms_alloc((g->nodes.n + 1) * sizeof *b->up);
    if (b->up == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < g->nodes.n; i++)
        b->up[i] = i < g->built.nodes.n ? parent_of(b, i) : GRAPH_NO;
    link_children(b);
    MS_TRY(find_records(g, err));
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        uint32_t own = own_stack(g, graph__name(g, i));
        g->nodes.p[i].stack = own != GRAPH_NO ? own : GRAPH_STACK_EMPTY;
    }
    MS_TRY(take_notes(g, m, err));
    return graph__set_order(g, err);
}

static enum ms_rc open_merged(struct graph__tree *g, const struct graph__merged *m,
                              struct ms_err *err)
{
    const struct cmp_conf every = {.rules = &every_record};
    struct builder b = {.g = g, .name.max = NAME_MAX_BYTES, .other.max = NAME_MAX_BYTES};
    struct probe_dump *dump;
    MS_TRY(probe_tree_parse(&g->built, "merged ranks", ms_buf_slice(&m->construct), 0, err));
    MS_TRY(probe_dump_parse(&dump, "merged ranks", ms_buf_slice(&m->dump), 0, NULL, err));
    MS_TRY(cmp__side_of(&g->side, &every, dump, err));
    MS_TRY(probe_stacks_parse(&g->stacks, "merged ranks", ms_buf_slice(&m->stack), 0, err));
    enum ms_rc rc = build_merged(&b, m, err);
    ms_free(b.up);
    return rc;
}

enum ms_rc graph__open_merged(struct graph__tree *g, const struct graph__merged *m,
                              const struct graph_rules *rules, struct ms_err *err)
{
    graph__init(g, rules);
    enum ms_rc rc = open_merged(g, m, err);
    g->built.micro_steps = m->stated;
    g->micro_steps = m->micro_steps;
    if (rc != MS_OK)
        graph__close(g);
    return rc;
}

enum ms_rc graph__open(struct graph__tree *g, const char *dir, const struct graph_rules *rules,
                       struct ms_pool *pool, struct ms_err *err)
{
    graph__init(g, rules);
    g->dir = ms_str_dup(ms_str_of(dir));
    enum ms_rc rc = g->dir != NULL ? open_tree(g, pool, err) : ms_no_memory(err);
    if (rc != MS_OK)
        graph__close(g);
    return rc;
}
