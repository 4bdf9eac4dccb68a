/* SPDX-License-Identifier: MIT
 *
 * node_pairs: finds the golden partner of each target node.
 *
 * Nodes of one program are paired by name as long as both dumps list the same forward
 * operators. One additional operator shifts the call numbers of all later ones; then
 * the lists are aligned, and backward operators follow their forward operators. A
 * mapping by the user is applied as it is, except for a mapping of layers, cells or
 * apis between two frameworks, which names too few nodes: the rest is aligned around
 * the nodes it names.
 */
#include "compare/observe/node_pairs.h"
#include "compare/observe/call_grid.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/repeats.h"
#include "compare/observe/update_order.h"
#include "compare/table/comparison.h"
#include "probe/base/assert.h"

enum { NEAR = 64 }; /* how far around its expected position a moved operator is searched */

/* ---- by name ------------------------------------------------------------- */

static void join_nodes(struct observe__pairing *q, uint32_t golden, uint32_t target)
{
    ms_assert(golden < q->dump[0]->nodes.n && target < q->dump[1]->nodes.n);
    q->mate[0][golden] = target;
    q->mate[1][target] = golden;
}

/* Returns the name without the number that counts up over the steps of a run. */
static struct ms_str uncounted_name(const struct probe_dump *d, uint32_t node)
{
    struct ms_str name = probe_node_name(d, node);
    return ms_str_ends(name, MS_STR("parameters_grad")) ? name : probe_name_cut(name, 1);
}

/* The records of one parameter's gradient on both sides. */
struct gradients {
    uint32_t first[2], last[2], count[2];
};

struct gradient_lists {
    struct ms_map names;
    MS_VEC(struct gradients) list;
    uint32_t *next[2]; /* by node: the next record of the same name */
};

static enum ms_rc list_gradients(struct gradient_lists *l, const struct probe_dump *d,
                                 unsigned side, struct ms_err *err)
{
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        bool added;
        if (d->nodes.p[i].kind != PROBE_NODE_PGRAD)
            continue;
        uint32_t id = ms_map_put(&l->names, uncounted_name(d, i), &added);
        if (id == MS_MAP_NONE || (added && ms_vec_push(&l->list) == NULL))
            return ms_no_memory(err);
        struct gradients *g = &l->list.p[id];
        if (added)
            *g = (struct gradients){0};
        if (g->count[side]++ == 0)
            g->first[side] = i;
        else
            l->next[side][g->last[side]] = i;
        g->last[side] = i;
    }
    return MS_OK;
}

/* Pairs the records of one parameter in order. Where one side has k for each of the other, it
 * accumulates gradients over k micro batches, and the last of them is the sum. */
static void pair_records(struct observe__pairing *q, const struct gradient_lists *l,
                         const struct gradients *g)
{
    unsigned many = g->count[1] > g->count[0], few = 1 - many;
    bool whole = g->count[few] != 0 && g->count[many] % g->count[few] == 0;
    uint32_t k = whole ? g->count[many] / g->count[few] : 1, at[2];
    at[few] = g->first[few];
    at[many] = g->first[many];
    for (uint32_t i = 0; i < g->count[few]; i++) {
        for (uint32_t skip = 1; skip < k; skip++)
            at[many] = l->next[many][at[many]];
        join_nodes(q, at[0], at[1]);
        for (unsigned s = 0; s < 2 && i + 1 < g->count[few]; s++)
            at[s] = l->next[s][at[s]];
    }
}

static enum ms_rc pair_gradients(struct observe__pairing *q, struct ms_err *err)
{
    struct gradient_lists l = {0};
    enum ms_rc rc = MS_OK;
    for (unsigned s = 0; s < 2 && rc == MS_OK; s++) {
        l.next[s] = ms_alloc((q->dump[s]->nodes.n + 1) * sizeof *l.next[s]);
        rc = l.next[s] != NULL ? list_gradients(&l, q->dump[s], s, err) : ms_no_memory(err);
    }
    for (size_t i = 0; i < l.list.n && rc == MS_OK; i++)
        pair_records(q, &l, &l.list.p[i]);
    ms_free(l.next[0]);
    ms_free(l.next[1]);
    ms_vec_free(&l.list);
    ms_map_free(&l.names);
    return rc;
}

static void pair_by_name(struct observe__pairing *q)
{
    const struct probe_dump *t = q->dump[1], *g = q->dump[0];
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        struct ms_str name = probe_node_name(t, i);
        if (t->nodes.p[i].kind == PROBE_NODE_PGRAD)
            continue;
        bool here = i < g->nodes.n && ms_str_eq(name, probe_node_name(g, i));
        uint32_t at = here ? i : probe_node_find(g, name);
        if (at != MS_MAP_NONE)
            join_nodes(q, at, i);
    }
}

static bool next_api(const struct probe_dump *d, uint32_t *at)
{
    while (*at < d->nodes.n && !observe__is_api(&d->nodes.p[*at], PROBE_FORWARD))
        ++*at;
    return *at < d->nodes.n;
}

static bool same_calls(const struct observe__pairing *q)
{
    uint32_t t = 0, g = 0;
    for (;; t++, g++) {
        bool more_t = next_api(q->dump[1], &t), more_g = next_api(q->dump[0], &g);
        if (!more_t || !more_g)
            return more_t == more_g;
        if (!ms_str_eq(probe_node_name(q->dump[1], t), probe_node_name(q->dump[0], g)))
            return false;
    }
}

/* ---- aligned ------------------------------------------------------------- */

static enum ms_rc open_tree(struct probe_tree *tree, bool *there, const char *dump,
                            struct ms_err *err)
{
    char *dir = ms_str_dup(ms_path_dir(dump));
    char *path = dir != NULL ? ms_path_join(dir, "construct.json") : NULL;
    ms_free(dir);
    if (path == NULL)
        return ms_no_memory(err);
    struct ms_err why = {0};
    enum ms_rc rc = probe_tree_open(tree, path, PROBE_TREE_TOLERANT, &why);
    ms_free(path);
    *there = rc == MS_OK;
    if (rc == MS_E_NOMEM)
        *err = why;
    return rc == MS_E_NOMEM ? rc : MS_OK;
}

struct pins {
    MS_VEC(struct cmp_align_pin) list;
};

static enum ms_rc pin_pair(struct pins *pins, const struct observe__pairing *q,
                           struct cmp_pairing pair, struct ms_err *err)
{
    struct cmp_align_pin *slot = ms_vec_push(&pins->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct cmp_align_pin){probe_node_name(q->dump[1], pair.target),
                                   probe_node_name(q->dump[0], pair.golden)};
    return MS_OK;
}

/* Pins the nodes of a user mapping: modules, and operators that it names. The partners it implies
 * for other operators are guesses from their order; the alignment finds better ones. */
static enum ms_rc pin_mapped(struct pins *pins, const struct observe__pairing *q,
                             struct ms_err *err)
{
    const struct cmp *c = q->c;
    for (size_t i = 0; i < c->rows.named.n; i++)
        MS_TRY(pin_pair(pins, q, c->rows.named.p[i], err));
    for (size_t i = 0; i < cmp_groups(c) && (c->set.conf.layer.on || c->set.conf.cell.on); i++) {
        struct cmp_pairing pair = cmp_group_nodes(c, i);
        if (pair.target != MS_MAP_NONE && pair.golden != MS_MAP_NONE &&
            q->dump[1]->nodes.p[pair.target].kind == PROBE_NODE_MODULE)
            MS_TRY(pin_pair(pins, q, pair, err));
    }
    return MS_OK;
}

/* Uses the alignment that paired the rows, or makes one around the mapped nodes. */
static enum ms_rc align_dumps(struct observe__pairing *q, struct ms_err *err)
{
    q->al = q->c->rows.al;
    if (q->al != NULL)
        return MS_OK;
    struct probe_tree tree[2];
    bool there[2] = {false, false};
    struct pins pins = {0};
    enum ms_rc rc = pin_mapped(&pins, q, err);
    for (unsigned s = 0; s < 2 && rc == MS_OK; s++)
        rc = open_tree(&tree[s], &there[s], q->dump[s]->path, err);
    struct cmp_align_input g = {q->dump[0], there[0] ? &tree[0] : NULL};
    struct cmp_align_input t = {q->dump[1], there[1] ? &tree[1] : NULL};
    if (rc == MS_OK)
        rc = cmp_align_new(&q->own, &t, &g, pins.list.p, pins.list.n, q->pool, err);
    q->al = q->own;
    ms_vec_free(&pins.list);
    for (unsigned s = 0; s < 2; s++) {
        if (there[s])
            probe_tree_close(&tree[s]);
    }
    return rc;
}

static void take_alignment(struct observe__pairing *q, bool forward_apis)
{
    size_t n;
    const struct cmp_align_pair *pairs = cmp_align_pairs(q->al, &n);
    for (size_t k = 0; k < 2 * n; k++) { /* parts come second and get the remaining nodes */
        const struct cmp_align_pair *p = &pairs[k % n];
        if ((p->how == CMP_ALIGN_PART) != (k >= n))
            continue;
        if (forward_apis && !observe__is_api(&q->dump[1]->nodes.p[p->target], PROBE_FORWARD))
            continue;
        if (q->mate[1][p->target] == OBSERVE__NONE && q->mate[0][p->golden] == OBSERVE__NONE)
            join_nodes(q, p->golden, p->target);
    }
}

/* Returns the number of nodes up to the last backward one; all nodes when there is none. */
static uint32_t end_of_backward(const struct probe_dump *d)
{
    uint32_t end = (uint32_t)d->nodes.n;
    while (end > 0 && !observe__is_api(&d->nodes.p[end - 1], PROBE_BACKWARD))
        end--;
    return end != 0 ? end : (uint32_t)d->nodes.n;
}

static void separate_unlike(struct observe__pairing *q, uint32_t target)
{
    uint32_t g = q->mate[1][target];
    if (g != OBSERVE__NONE)
        q->mate[0][g] = OBSERVE__NONE;
    q->mate[1][target] = OBSERVE__NONE;
}

/* Separates what the alignment has paired of the updates of two frameworks: they name and cut their steps
 * differently, and visit parameters in another order. */
static void separate_updates(struct observe__pairing *q, bool frameworks)
{
    const uint32_t golden = end_of_backward(q->dump[0]), target = end_of_backward(q->dump[1]);
    for (uint32_t i = 0; i < q->dump[1]->nodes.n; i++) {
        uint32_t g = q->mate[1][i];
        bool is_late =
            g != OBSERVE__NONE && ((i >= target) != (g >= golden) || (frameworks && i >= target));
        if (is_late && (observe__is_api(&q->dump[1]->nodes.p[i], PROBE_FORWARD) ||
                        observe__is_api(&q->dump[0]->nodes.p[g], PROBE_FORWARD)))
            separate_unlike(q, i);
    }
}

/* ---- backward operators -------------------------------------------------- */

/* Finds the node whose name differs only in the last part, `end`. */
static uint32_t find_turned(const struct probe_dump *d, struct ms_str name, const char *end,
                            struct ms_buf *text)
{
    int64_t dot = ms_str_rfind(name, '.');
    ms_buf_clear(text);
    ms_buf_str(text, ms_str_sub(name, 0, (uint32_t)(dot + 1)));
    ms_buf_puts(text, end);
    return text->bad == MS_OK ? probe_node_find(d, ms_buf_slice(text)) : MS_MAP_NONE;
}

static enum ms_rc follow_forward(struct observe__pairing *q, struct ms_err *err)
{
    const struct probe_dump *t = q->dump[1], *g = q->dump[0];
    struct ms_buf text = {.max = 1 << 20};
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        if (observe__is_api(&t->nodes.p[i], PROBE_BACKWARD))
            separate_unlike(q, i);
    }
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        if (!observe__is_api(&t->nodes.p[i], PROBE_BACKWARD))
            continue;
        struct ms_str name = probe_node_name(t, i);
        uint32_t forward = find_turned(t, name, "forward", &text);
        if (forward != MS_MAP_NONE && q->origin[1][forward] != OBSERVE__NONE)
            forward = q->origin[1][forward];
        uint32_t mate = forward != MS_MAP_NONE ? q->mate[1][forward] : OBSERVE__NONE;
        if (mate != OBSERVE__NONE && q->again[0][mate] != OBSERVE__NONE &&
            find_turned(g, probe_node_name(g, mate), "backward", &text) == MS_MAP_NONE)
            mate = q->again[0][mate];
        uint32_t at = forward == MS_MAP_NONE ? probe_node_find(g, name)
                      : mate != OBSERVE__NONE
                          ? find_turned(g, probe_node_name(g, mate), "backward", &text)
                          : MS_MAP_NONE;
        if (at != MS_MAP_NONE && q->mate[0][at] == OBSERVE__NONE)
            join_nodes(q, at, i);
    }
    enum ms_rc rc = ms_buf_check(&text, err);
    ms_buf_free(&text);
    return rc;
}

/* ---- moved operators ----------------------------------------------------- */

/* Returns the expected position of a golden node in the target: after the partner of the node
 * before it. */
static uint32_t place_of(const struct observe__pairing *q, uint32_t golden)
{
    for (uint32_t i = golden; i-- > 0 && golden - i < NEAR;) {
        if (observe__is_api(&q->dump[0]->nodes.p[i], PROBE_FORWARD) &&
            q->mate[0][i] != OBSERVE__NONE)
            return q->mate[0][i];
    }
    return 0;
}

/* Marks a moved operator. Of two operators that changed places, the one that runs first on the
 * golden side counts as moved. */
static void mark_moved(struct observe__pairing *q, uint32_t golden, uint32_t target)
{
    uint32_t crossed = OBSERVE__NONE, n = 0;
    uint32_t from = target > NEAR ? target - NEAR : 0, to = target + NEAR;
    for (uint32_t i = from; i < to && i < q->dump[1]->nodes.n; i++) {
        uint32_t mate = q->mate[1][i];
        if (i == target || mate == OBSERVE__NONE ||
            !observe__is_api(&q->dump[1]->nodes.p[i], PROBE_FORWARD) ||
            (i < target) == (mate < golden))
            continue;
        crossed = i;
        n++;
    }
    bool other = n == 1 && q->mate[1][crossed] < golden;
    q->moved[other ? crossed : target] = n != 0;
}

/* Returns a hash of the shape of the first tensor that a node writes; 0 where it writes none. */
static uint32_t output_shape(const struct observe__side *s, uint32_t node)
{
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (read__is_tensor(&s->value[i]) && observe__is_output(&s->dump->rows.p[i]))
            return s->value[i].shape | 1;
    }
    return 0;
}

static void pair_moved(struct observe__pairing *q)
{
    const struct probe_dump *t = q->dump[1], *g = q->dump[0];
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        if (q->mate[0][i] != OBSERVE__NONE || !observe__is_api(&g->nodes.p[i], PROBE_FORWARD))
            continue;
        uint32_t at = place_of(q, i), from = at > NEAR ? at - NEAR : 0;
        struct ms_str op = observe__op_name(g, i);
        for (uint32_t k = from; k < at + NEAR && k < t->nodes.n; k++) {
            if (q->mate[1][k] != OBSERVE__NONE || !observe__is_api(&t->nodes.p[k], PROBE_FORWARD) ||
                !ms_str_eq(op, observe__op_name(t, k)) ||
                output_shape(q->side[0], i) != output_shape(q->side[1], k))
                continue;
            join_nodes(q, i, k);
            mark_moved(q, i, k);
            break;
        }
    }
}

/* ---- mapped by the user -------------------------------------------------- */

static bool is_mapped(const struct cmp_conf *conf)
{
    return conf->data_mapping != NULL || conf->layer.on || conf->cell.on || conf->api.on ||
           conf->fuzzy;
}

static enum ms_rc take_groups(struct observe__pairing *q, struct ms_err *err)
{
    const struct cmp *c = q->c;
    size_t rows = c->rows.t.dump->rows.n;
    q->row_mate = ms_alloc((rows + 1) * sizeof *q->row_mate);
    if (q->row_mate == NULL)
        return ms_no_memory(err);
    memset(q->row_mate, 0xff, (rows + 1) * sizeof *q->row_mate);
    for (size_t i = 0; i < c->rows.pairs.n; i++) {
        const struct cmp__pair *p = &c->rows.pairs.p[i];
        if (p->t != MS_MAP_NONE && p->b != MS_MAP_NONE)
            q->row_mate[c->rows.t.order.p[p->t]] = c->rows.b.order.p[p->b];
    }
    for (size_t i = 0; i < cmp_groups(c); i++) {
        struct cmp_pairing pair = cmp_group_nodes(c, i);
        if (pair.target != MS_MAP_NONE && pair.golden != MS_MAP_NONE &&
            q->mate[1][pair.target] == OBSERVE__NONE && q->mate[0][pair.golden] == OBSERVE__NONE)
            join_nodes(q, pair.golden, pair.target);
    }
    return MS_OK;
}

/* ---- one program or two -------------------------------------------------- */

static bool is_mindspore(const struct probe_dump *d)
{
    return d->framework == PROBE_FW_MINDSPORE;
}

/* Number of calls of each forward operator, by side. */
struct call_count {
    uint32_t n[2], early[2]; /* early: up to the last backward node */
};

struct calls {
    struct ms_map ops;
    MS_VEC(struct call_count) list;
};

/* Counts the calls of each operator. Calls of the optimizer do not tell programs apart: a fused one
 * makes none of the many that a loop over parameters makes. */
static enum ms_rc count_calls(struct calls *calls, const struct probe_dump *d, unsigned side,
                              struct ms_err *err)
{
    uint32_t end = end_of_backward(d);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        bool added;
        if (!observe__is_api(&d->nodes.p[i], PROBE_FORWARD))
            continue;
        uint32_t id = ms_map_put(&calls->ops, observe__op_name(d, i), &added);
        if (id == MS_MAP_NONE || (added && ms_vec_push(&calls->list) == NULL))
            return ms_no_memory(err);
        if (added)
            memset(&calls->list.p[id], 0, sizeof calls->list.p[id]);
        calls->list.p[id].n[side]++;
        calls->list.p[id].early[side] += i < end;
    }
    return MS_OK;
}

/* Tells whether one side calls many operators that the other never calls, while both call
 * operators. */
static bool have_little_in_common(const struct calls *calls)
{
    enum { FEW = 6, SHARE = 5 };
    uint32_t all[2] = {0}, foreign[2] = {0};
    for (size_t i = 0; i < calls->list.n; i++) {
        const uint32_t *n = calls->list.p[i].n;
        for (unsigned s = 0; s < 2; s++) {
            all[s] += n[s];
            foreign[s] += n[1 - s] == 0 ? calls->list.p[i].early[s] : 0;
        }
    }
    bool others = false;
    for (unsigned s = 0; s < 2; s++)
        others |= foreign[s] >= FEW && foreign[s] > all[s] / SHARE;
    return others && all[0] != 0 && all[1] != 0;
}

enum ms_rc observe__is_cross(const struct cmp *c, bool *cross, struct ms_err *err)
{
    struct calls calls = {0};
    enum ms_rc rc = count_calls(&calls, c->rows.b.dump, 0, err);
    if (rc == MS_OK)
        rc = count_calls(&calls, c->rows.t.dump, 1, err);
    *cross = is_mindspore(c->rows.b.dump) != is_mindspore(c->rows.t.dump) ||
             have_little_in_common(&calls);
    ms_map_free(&calls.ops);
    ms_vec_free(&calls.list);
    return rc;
}

/* ---- pairing ------------------------------------------------------------- */

static enum ms_rc allocate_mates(struct observe__pairing *q, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        size_t bytes = (q->dump[s]->nodes.n + 1) * sizeof *q->mate[s];
        q->mate[s] = ms_alloc(bytes);
        if (q->mate[s] == NULL)
            return ms_no_memory(err);
        memset(q->mate[s], 0xff, bytes);
    }
    for (unsigned s = 0; s < 2; s++) {
        size_t bytes = (q->dump[s]->nodes.n + 1) * sizeof *q->origin[s];
        q->origin[s] = ms_alloc(bytes);
        q->again[s] = ms_alloc(bytes);
        if (q->origin[s] == NULL || q->again[s] == NULL)
            return ms_no_memory(err);
        memset(q->origin[s], 0xff, bytes);
        memset(q->again[s], 0xff, bytes);
    }
    q->moved = ms_calloc(q->dump[1]->nodes.n + 1, sizeof *q->moved);
    q->golden_path = ms_alloc((q->dump[1]->paths.keys.n + 1) * sizeof *q->golden_path);
    if (q->moved == NULL || q->golden_path == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < q->dump[1]->paths.keys.n; i++)
        q->golden_path[i] = ms_map_get(&q->dump[0]->paths, ms_map_key(&q->dump[1]->paths, i));
    return MS_OK;
}

/* Pairs operators by the user's pins, else by sequence; programs with little in common are left to
 * align/. */
static enum ms_rc align_calls(struct observe__pairing *q, struct ms_err *err)
{
    bool done = false;
    if (q->c->set.conf.pins == NULL)
        MS_TRY(observe__align_calls(q, &done, err));
    if (done)
        return MS_OK;
    MS_TRY(align_dumps(q, err));
    take_alignment(q, true);
    return MS_OK;
}

static enum ms_rc pair_one_framework(struct observe__pairing *q, struct ms_err *err)
{
    pair_by_name(q);
    if (!same_calls(q)) {
        for (uint32_t i = 0; i < q->dump[1]->nodes.n; i++) {
            if (observe__is_api(&q->dump[1]->nodes.p[i], PROBE_FORWARD))
                separate_unlike(q, i);
        }
        MS_TRY(align_calls(q, err));
        pair_moved(q);
        for (unsigned s = 0; s < 2; s++)
            MS_TRY(observe__find_repeats(q, s, err));
        MS_TRY(follow_forward(q, err));
        if (q->al != NULL)
            take_alignment(q, false);
        q->al = NULL; /* rows are then paired by path */
    }
    MS_TRY(observe__pair_updates(q, err));
    return pair_gradients(q, err);
}

enum ms_rc observe__pair_nodes(struct observe__pairing *q, const struct cmp *c,
                               const struct observe__side side[2], bool cross, struct ms_pool *pool,
                               struct ms_err *err)
{
    *q = (struct observe__pairing){.c = c,
                                   .dump = {c->rows.b.dump, c->rows.t.dump},
                                   .side = {&side[0], &side[1]},
                                   .pool = pool};
    MS_TRY(allocate_mates(q, err));
    if (c->set.conf.data_mapping != NULL || (is_mapped(&c->set.conf) && !cross))
        return take_groups(q, err);
    if (!cross)
        return pair_one_framework(q, err);
    MS_TRY(align_dumps(q, err));
    take_alignment(q, false);
    separate_updates(q, is_mindspore(q->dump[0]) != is_mindspore(q->dump[1]));
    return MS_OK;
}

void observe__pairing_free(struct observe__pairing *q)
{
    for (unsigned s = 0; s < 2; s++) {
        ms_free(q->mate[s]);
        ms_free(q->origin[s]);
        ms_free(q->again[s]);
    }
    ms_free(q->moved);
    ms_free(q->row_mate);
    ms_free(q->golden_path);
    cmp_align_free(q->own);
    *q = (struct observe__pairing){0};
}
