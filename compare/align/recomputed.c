/* SPDX-License-Identifier: MIT
 *
 * align_repeat: which calls are a recomputation of earlier ones.
 *
 * Older dumps say so.  In others a recomputed call gives itself away: it has the
 * operator, the module, the inputs and the outputs of an earlier call, and the
 * backward that the earlier one lacks.  What lies in one module call with it is
 * recomputed too, also where it has no gradient.  Without statistics it has to come
 * behind the first backward instead.
 */
#include "compare/align_int.h"

struct repeater {
    struct ms_arena *arena;
    const struct probe_dump *d;
    const struct probe_tree *tree;
    bool *again;                    /* by node: the result */
    bool *module_again;             /* by tree node */
    const uint32_t *in_tree, *back; /* by node */
    uint32_t *call;                 /* by node: of calls */
    bool found;                     /* any is */
    uint32_t first_back;            /* node of the first backward */
    struct ms_map calls;            /* operator and module */
    MS_VEC(uint8_t) seen;           /* by call: HAS and LACKS */
    struct ms_map lone;             /* calls without backward, with what they read and write */
    struct ms_buf text;
};
enum { HAS = 1, LACKS = 2 };

static bool is_op(const struct probe_node *n)
{
    return n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD;
}

/* The module call around a node as a node of the tree, or MS_MAP_NONE. */
static uint32_t module_of(const struct repeater *r, uint32_t node)
{
    uint32_t at = r->in_tree[node];
    return at != MS_MAP_NONE ? r->tree->nodes.p[at].parent : MS_MAP_NONE;
}

/* Operator and module, without the numbers of their calls, in r->text. */
static void put_call(struct repeater *r, uint32_t node)
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

/* Put the content of the op's tensors behind the call; false when nothing of it is known. */
static bool put_values(struct repeater *r, uint32_t node)
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

/* Note the calls that there are, and whether some have a backward and others have not. */
static enum ms_rc note_calls(struct repeater *r, struct ms_err *err)
{
    for (uint32_t i = 0; i < r->d->nodes.n; i++) {
        bool added;
        if (!is_op(&r->d->nodes.p[i]))
            continue;
        put_call(r, i);
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

/* A call with a backward that an equal one before it lacks is a recomputation, and so is the module
 * call that it lies in. */
static enum ms_rc judge_call(struct repeater *r, uint32_t node, struct ms_err *err)
{
    bool has = r->back[node] != MS_MAP_NONE;
    if (r->seen.p[r->call[node]] != (HAS | LACKS))
        return MS_OK;
    put_call(r, node);
    if (!put_values(r, node) && has && node < r->first_back)
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

/* What lies in a recomputed module call is recomputed.  Parents may come after their children. */
static void spread(struct repeater *r)
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

static enum ms_rc judge(struct repeater *r, struct ms_err *err)
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
    spread(r);
    return MS_OK;
}

/* The first backward, or MS_MAP_NONE: nothing is recomputed then. */
static uint32_t first_backward(const struct probe_dump *d)
{
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        if (d->nodes.p[i].kind == PROBE_NODE_API && d->nodes.p[i].dir == PROBE_BACKWARD)
            return i;
    }
    return MS_MAP_NONE;
}

enum ms_rc align__repeats(struct ms_arena *arena, const struct cmp_align_input *in,
                          const uint32_t *in_tree, const uint32_t *back, bool **again,
                          struct ms_err *err)
{
    const struct probe_dump *d = in->dump;
    bool said = false;
    *again = ms_arena_calloc(arena, d->nodes.n + 1, sizeof **again);
    if (*again == NULL)
        return ms_arena_fail(arena, err);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        said |= (d->nodes.p[i].flags & PROBE_NODE_RECOMPUTE_SAID) != 0;
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
    if (said || r.first_back == MS_MAP_NONE)
        return MS_OK;
    enum ms_rc rc = judge(&r, err);
    ms_free(r.call);
    ms_free(r.module_again);
    ms_map_free(&r.calls);
    ms_vec_free(&r.seen);
    ms_map_free(&r.lone);
    ms_buf_free(&r.text);
    return rc;
}
