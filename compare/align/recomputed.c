/* SPDX-License-Identifier: MIT
 *
 * recomputed: finds calls that are recomputations of earlier calls.
 *
 * Older dumps mark recomputed calls. In other dumps a recomputed call has the
 * operator, module, inputs and outputs of an earlier call, and the backward that the
 * earlier call lacks. Every call in the same module call is then recomputed, too,
 * even without a gradient. Where a dump has no statistics, a recomputed call must
 * come behind the first backward.
 */
#include "compare/align/recomputed.h"
#include "probe/base/assert.h"

struct repeater {
    struct ms_arena *arena;
    const struct probe_dump *d;
    const struct probe_tree *tree;
    bool *again;                    /* by node: the result */
    bool *module_again;             /* by node of the tree */
    const uint32_t *in_tree, *back; /* by node */
    uint32_t *call;                 /* by node: number of its call key */
    bool found;                     /* a recomputation was found */
    uint32_t first_back;            /* the first backward node */
    struct ms_map calls;            /* operator and module -> call key */
    MS_VEC(uint8_t) seen;           /* by call key: HAS, LACKS or both */
    /* calls without a backward, keyed with the values they read and write */
    struct ms_map lone;
    struct ms_buf text;
};
enum { HAS = 1, LACKS = 2 };

static bool is_op(const struct probe_node *n)
{
    return n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD;
}

/* Returns the module call around a node, as a node of the tree, or MS_MAP_NONE. */
static uint32_t module_of(const struct repeater *r, uint32_t node)
{
    uint32_t at = r->in_tree[node];
    return at != MS_MAP_NONE ? r->tree->nodes.p[at].parent : MS_MAP_NONE;
}

/* Writes the call key of a node to r->text: operator and module without call numbers. */
static void write_call_key(struct repeater *r, uint32_t node)
{
    struct probe_name name = probe_name_parse(probe_node_name(r->d, node));
    uint32_t up = module_of(r, node);
    ms_buf_clear(&r->text);
    ms_buf_str(&r->text, name.prefix);
    ms_buf_putc(&r->text, '.');
    ms_buf_str(&r->text, name.path);
    ms_buf_putc(&r->text, '|');
    if (up != MS_MAP_NONE)
        ms_buf_str(&r->text, probe_name_parse(probe_tree_name(r->tree, up)).path);
}

/* Appends the contents of the operator's tensors to the call key; returns false when none is
 * known. */
static bool append_values(struct repeater *r, uint32_t node)
{
    const struct probe_node *n = &r->d->nodes.p[node];
    bool known = false;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        struct probe_leaf leaf;
        probe_row_leaf(r->d, &r->d->rows.p[i], &leaf);
        if (leaf.kind != PROBE_LEAF_TENSOR)
            continue;
        ms_buf_putc(&r->text, '|');
        ms_buf_str(&r->text, leaf.shape_json);
        ms_buf_str(&r->text, leaf.md5);
        for (unsigned k = 0; k < PROBE_STATS; k++) {
            ms_buf_putc(&r->text, ' ');
            ms_buf_str(&r->text, leaf.stat[k].text);
        }
        known |= leaf.md5.n != 0 || leaf.stat[PROBE_STAT_MAX].kind >= PROBE_NUM_INT;
    }
    return known;
}

/* Numbers the call keys and notes for each whether calls with and without a backward exist. */
static enum ms_rc note_calls(struct repeater *r, struct ms_err *err)
{
    for (uint32_t i = 0; i < r->d->nodes.n; i++) {
        bool added;
        if (!is_op(&r->d->nodes.p[i]))
            continue;
        write_call_key(r, i);
        MS_TRY(ms_buf_check(&r->text, err));
        uint32_t id = ms_map_put_copy(&r->calls, ms_buf_slice(&r->text), r->arena, &added);
        uint8_t *slot = id == MS_MAP_NONE ? NULL : added ? ms_vec_push(&r->seen) : &r->seen.p[id];
        if (slot == NULL)
            return ms_no_memory(err);
        r->call[i] = id;
        *slot = (uint8_t)((added ? 0 : *slot) | (r->back[i] != MS_MAP_NONE ? HAS : LACKS));
    }
    return MS_OK;
}

/* Decides whether a call is a recomputation: it has a backward, and an earlier call with equal
 * values lacks one. The module call around it is then a recomputation, too. */
static enum ms_rc judge_call(struct repeater *r, uint32_t node, struct ms_err *err)
{
    bool has = r->back[node] != MS_MAP_NONE;
    ms_assert(r->call[node] < r->seen.n);
    if (r->seen.p[r->call[node]] != (HAS | LACKS))
        return MS_OK;
    write_call_key(r, node);
    if (!append_values(r, node) && has && node < r->first_back)
        return MS_OK;
    MS_TRY(ms_buf_check(&r->text, err));
    if (!has) {
        uint32_t lone = ms_map_put_copy(&r->lone, ms_buf_slice(&r->text), r->arena, NULL);
        return lone != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
    }
    if (ms_map_get(&r->lone, ms_buf_slice(&r->text)) == MS_MAP_NONE)
        return MS_OK;
    r->again[node] = r->found = true;
    uint32_t up = module_of(r, node);
    if (up != MS_MAP_NONE)
        r->module_again[up] = true;
    return MS_OK;
}

/* Marks everything inside a recomputed module call. The tree may list parents after their
 * children. */
static void mark_inside(struct repeater *r)
{
    enum { UP = 64 };
    for (uint32_t i = 0; r->found && r->tree != NULL && i < r->d->nodes.n; i++) {
        uint32_t at = r->in_tree[i];
        for (unsigned k = 0; at != MS_MAP_NONE && k < UP && !r->again[i]; k++) {
            r->again[i] = r->module_again[at];
            at = r->tree->nodes.p[at].parent;
        }
    }
}

static enum ms_rc judge_calls(struct repeater *r, struct ms_err *err)
{
    size_t in_tree = r->tree != NULL ? r->tree->nodes.n : 0;
    r->call = ms_alloc((r->d->nodes.n + 1) * sizeof *r->call);
    r->module_again = ms_calloc(in_tree + 1, sizeof *r->module_again);
    if (r->call == NULL || r->module_again == NULL)
        return ms_no_memory(err);
    MS_TRY(note_calls(r, err));
    for (uint32_t i = 0; i < r->d->nodes.n; i++) {
        if (is_op(&r->d->nodes.p[i]))
            MS_TRY(judge_call(r, i, err));
    }
    mark_inside(r);
    return MS_OK;
}

/* Returns the first backward node, or MS_MAP_NONE; without one nothing is recomputed. */
static uint32_t first_backward(const struct probe_dump *d)
{
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        if (d->nodes.p[i].kind == PROBE_NODE_API && d->nodes.p[i].dir == PROBE_BACKWARD)
            return i;
    }
    return MS_MAP_NONE;
}

enum ms_rc align__find_repeats(struct ms_arena *arena, const struct cmp_align_input *in,
                               const uint32_t *in_tree, const uint32_t *back, bool **again,
                               struct ms_err *err)
{
    const struct probe_dump *d = in->dump;
    bool is_stated = false;
    *again = ms_arena_calloc(arena, d->nodes.n + 1, sizeof **again);
    if (*again == NULL)
        return ms_arena_fail(arena, err);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        is_stated |= (d->nodes.p[i].flags & PROBE_NODE_RECOMPUTE_SAID) != 0;
        (*again)[i] = (d->nodes.p[i].flags & PROBE_NODE_RECOMPUTE) != 0;
    }
    struct repeater r = {.arena = arena,
                         .d = d,
                         .tree = in->tree,
                         .in_tree = in_tree,
                         .back = back,
                         .again = *again,
                         .first_back = first_backward(d),
                         .text = {.max = 1 << 24}};
    ms_assert(in->tree == NULL || in_tree != NULL);
    if (is_stated || r.first_back == MS_MAP_NONE)
        return MS_OK;
    enum ms_rc rc = judge_calls(&r, err);
    ms_free(r.call);
    ms_free(r.module_again);
    ms_map_free(&r.calls);
    ms_vec_free(&r.seen);
    ms_map_free(&r.lone);
    ms_buf_free(&r.text);
    return rc;
}
