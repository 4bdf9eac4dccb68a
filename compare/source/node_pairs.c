/* SPDX-License-Identifier: MIT
 *
 * source_pair: which node of the target is which of the golden side.
 *
 * Runs of one program meet by name as long as their lists of forward operators are
 * equal.  An operator more or less moves the call numbers of all later ones, so
 * other lists are aligned, and backward operators follow their forward ones.  What
 * the user mapped is taken as it is, but that a mapping of layers, cells or apis of
 * two frameworks says too little: the rest is aligned around what it names.
 */
#include "compare/source_int.h"

enum { NEAR = 64 }; /* a moved operator is looked for so far around its place */

static bool is_api(const struct probe_node *n, enum probe_dir dir)
{
    return n->kind == PROBE_NODE_API && n->dir == dir;
}

/* ---- by name ------------------------------------------------------------------- */

static void join(struct source__pairing *q, uint32_t golden, uint32_t target)
{
    q->mate[0][golden] = target;
    q->mate[1][target] = golden;
}

/* The name without the number that goes on counting over the steps of a run. */
static struct ms_str uncounted(const struct probe_dump *d, uint32_t node)
{
    struct ms_str name = probe_node_name(d, node);
    struct ms_str end = MS_STR("parameters_grad");
    int64_t dot = ms_str_rfind(name, '.');
    return dot >= 0 && !ms_str_ends(name, end) ? ms_str_sub(name, 0, (uint32_t)dot) : name;
}

static enum ms_rc pair_gradients(struct source__pairing *q, struct ms_err *err)
{
    struct ms_map names = {0};
    enum ms_rc rc = MS_OK;
    MS_VEC(uint32_t) at = {0}; /* by name: the next golden node of it is behind this one */
    for (uint32_t i = 0; i < q->dump[0]->nodes.n && rc == MS_OK; i++) {
        if (q->dump[0]->nodes.p[i].kind != PROBE_NODE_PGRAD)
            continue;
        bool added;
        uint32_t id = ms_map_put(&names, uncounted(q->dump[0], i), &added);
        uint32_t *slot = id != MS_MAP_NONE && added ? ms_vec_push(&at) : NULL;
        if (slot != NULL)
            *slot = i;
        else if (id == MS_MAP_NONE || added)
            rc = ms_no_memory(err);
    }
    for (uint32_t i = 0; i < q->dump[1]->nodes.n && rc == MS_OK; i++) {
        if (q->dump[1]->nodes.p[i].kind != PROBE_NODE_PGRAD)
            continue;
        struct ms_str name = uncounted(q->dump[1], i);
        uint32_t id = ms_map_get(&names, name), n = (uint32_t)q->dump[0]->nodes.n;
        uint32_t g = id != MS_MAP_NONE ? at.p[id] : n;
        while (g < n && (q->dump[0]->nodes.p[g].kind != PROBE_NODE_PGRAD ||
                         !ms_str_eq(uncounted(q->dump[0], g), name)))
            g++;
        if (g >= n)
            continue;
        join(q, g, i);
        at.p[id] = g + 1;
    }
    ms_vec_free(&at);
    ms_map_free(&names);
    return rc;
}

static void pair_by_name(struct source__pairing *q)
{
    const struct probe_dump *t = q->dump[1], *g = q->dump[0];
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        struct ms_str name = probe_node_name(t, i);
        if (t->nodes.p[i].kind == PROBE_NODE_PGRAD)
            continue;
        bool here = i < g->nodes.n && ms_str_eq(name, probe_node_name(g, i));
        uint32_t at = here ? i : probe_node_find(g, name);
        if (at != MS_MAP_NONE)
            join(q, at, i);
    }
}

static bool next_api(const struct probe_dump *d, uint32_t *at)
{
    while (*at < d->nodes.n && !is_api(&d->nodes.p[*at], PROBE_FORWARD))
        ++*at;
    return *at < d->nodes.n;
}

static bool same_calls(const struct source__pairing *q)
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

/* ---- aligned ---------------------------------------------------------------------- */

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

static enum ms_rc pin(struct pins *pins, const struct source__pairing *q, struct cmp_pairing pair,
                      struct ms_err *err)
{
    struct cmp_align_pin *slot = ms_vec_push(&pins->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct cmp_align_pin){probe_node_name(q->dump[1], pair.target),
                                   probe_node_name(q->dump[0], pair.golden)};
    return MS_OK;
}

/* What a mapping says of nodes: which modules are the same, and which operators where it names
 * them.  What it comes to for the others is a guess from their order, which we make better. */
static enum ms_rc pin_mapped(struct pins *pins, const struct source__pairing *q, struct ms_err *err)
{
    const struct cmp *c = q->c;
    for (size_t i = 0; i < c->named.n; i++)
        MS_TRY(pin(pins, q, c->named.p[i], err));
    for (size_t i = 0; i < cmp_groups(c) && (c->conf.layer.on || c->conf.cell.on); i++) {
        struct cmp_pairing pair = cmp_group_nodes(c, i);
        if (pair.target != MS_MAP_NONE && pair.golden != MS_MAP_NONE &&
            q->dump[1]->nodes.p[pair.target].kind == PROBE_NODE_MODULE)
            MS_TRY(pin(pins, q, pair, err));
    }
    return MS_OK;
}

/* The alignment that paired the rows already, or one of our own around what is mapped. */
static enum ms_rc align(struct source__pairing *q, struct ms_err *err)
{
    q->al = q->c->al;
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

static void take_alignment(struct source__pairing *q, bool forward_apis)
{
    size_t n;
    const struct cmp_align_pair *pairs = cmp_align_pairs(q->al, &n);
    for (size_t k = 0; k < 2 * n; k++) { /* parts take what is left */
        const struct cmp_align_pair *p = &pairs[k % n];
        if ((p->how == CMP_ALIGN_PART) != (k >= n))
            continue;
        if (forward_apis && !is_api(&q->dump[1]->nodes.p[p->target], PROBE_FORWARD))
            continue;
        if (q->mate[1][p->target] == SOURCE__NONE && q->mate[0][p->golden] == SOURCE__NONE)
            join(q, p->golden, p->target);
    }
}

/* ---- what follows the forward operators --------------------------------------------- */

/* The name with its last part replaced. */
static uint32_t find_turned(const struct probe_dump *d, struct ms_str name, const char *end,
                            struct ms_buf *text)
{
    int64_t dot = ms_str_rfind(name, '.');
    ms_buf_clear(text);
    ms_buf_str(text, ms_str_sub(name, 0, (uint32_t)(dot + 1)));
    ms_buf_puts(text, end);
    return text->bad == MS_OK ? probe_node_find(d, ms_buf_slice(text)) : MS_MAP_NONE;
}

static void separate(struct source__pairing *q, uint32_t target)
{
    uint32_t g = q->mate[1][target];
    if (g != SOURCE__NONE)
        q->mate[0][g] = SOURCE__NONE;
    q->mate[1][target] = SOURCE__NONE;
}

static enum ms_rc follow_forward(struct source__pairing *q, struct ms_err *err)
{
    const struct probe_dump *t = q->dump[1], *g = q->dump[0];
    struct ms_buf text = {.max = 1 << 20};
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        if (is_api(&t->nodes.p[i], PROBE_BACKWARD))
            separate(q, i);
    }
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        if (!is_api(&t->nodes.p[i], PROBE_BACKWARD))
            continue;
        struct ms_str name = probe_node_name(t, i);
        uint32_t forward = find_turned(t, name, "forward", &text);
        uint32_t mate = forward != MS_MAP_NONE ? q->mate[1][forward] : SOURCE__NONE;
        uint32_t at = forward == MS_MAP_NONE ? probe_node_find(g, name)
                      : mate != SOURCE__NONE
                          ? find_turned(g, probe_node_name(g, mate), "backward", &text)
                          : MS_MAP_NONE;
        if (at != MS_MAP_NONE && q->mate[0][at] == SOURCE__NONE)
            join(q, at, i);
    }
    enum ms_rc rc = ms_buf_check(&text, err);
    ms_buf_free(&text);
    return rc;
}

/* ---- operators that changed their place ------------------------------------------------ */

static struct ms_str op_of(const struct probe_dump *d, uint32_t node)
{
    struct ms_str name = probe_node_name(d, node);
    struct probe_name n = probe_name_parse(name);
    return ms_str_sub(name, 0, n.prefix.n + 1 + n.path.n);
}

/* Where the golden node should run in the target: behind the mate of the one before it. */
static uint32_t place_of(const struct source__pairing *q, uint32_t golden)
{
    for (uint32_t i = golden; i-- > 0 && golden - i < NEAR;) {
        if (is_api(&q->dump[0]->nodes.p[i], PROBE_FORWARD) && q->mate[0][i] != SOURCE__NONE)
            return q->mate[0][i];
    }
    return 0;
}

/* Of two operators that changed places, the one that the golden side runs first has moved. */
static void mark_moved(struct source__pairing *q, uint32_t golden, uint32_t target)
{
    uint32_t crossed = SOURCE__NONE, n = 0;
    uint32_t from = target > NEAR ? target - NEAR : 0, to = target + NEAR;
    for (uint32_t i = from; i < to && i < q->dump[1]->nodes.n; i++) {
        uint32_t mate = q->mate[1][i];
        if (i == target || mate == SOURCE__NONE ||
            !is_api(&q->dump[1]->nodes.p[i], PROBE_FORWARD) || (i < target) == (mate < golden))
            continue;
        crossed = i;
        n++;
    }
    bool other = n == 1 && q->mate[1][crossed] < golden;
    q->moved[other ? crossed : target] = n != 0;
}

static void pair_moved(struct source__pairing *q)
{
    const struct probe_dump *t = q->dump[1], *g = q->dump[0];
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        if (q->mate[0][i] != SOURCE__NONE || !is_api(&g->nodes.p[i], PROBE_FORWARD))
            continue;
        uint32_t at = place_of(q, i), from = at > NEAR ? at - NEAR : 0;
        struct ms_str op = op_of(g, i);
        for (uint32_t k = from; k < at + NEAR && k < t->nodes.n; k++) {
            if (q->mate[1][k] != SOURCE__NONE || !is_api(&t->nodes.p[k], PROBE_FORWARD) ||
                !ms_str_eq(op, op_of(t, k)))
                continue;
            join(q, i, k);
            mark_moved(q, i, k);
            break;
        }
    }
}

/* ---- mapped by the user ------------------------------------------------------------------ */

static bool is_mapped(const struct cmp_conf *conf)
{
    return conf->data_mapping != NULL || conf->layer.on || conf->cell.on || conf->api.on ||
           conf->fuzzy;
}

static enum ms_rc take_groups(struct source__pairing *q, struct ms_err *err)
{
    const struct cmp *c = q->c;
    size_t rows = c->t.dump->rows.n;
    q->row_mate = ms_alloc((rows + 1) * sizeof *q->row_mate);
    if (q->row_mate == NULL)
        return ms_no_memory(err);
    memset(q->row_mate, 0xff, (rows + 1) * sizeof *q->row_mate);
    for (size_t i = 0; i < c->pairs.n; i++) {
        const struct cmp__pair *p = &c->pairs.p[i];
        if (p->t != MS_MAP_NONE && p->b != MS_MAP_NONE)
            q->row_mate[c->t.order.p[p->t]] = c->b.order.p[p->b];
    }
    for (size_t i = 0; i < cmp_groups(c); i++) {
        struct cmp_pairing pair = cmp_group_nodes(c, i);
        if (pair.target != MS_MAP_NONE && pair.golden != MS_MAP_NONE &&
            q->mate[1][pair.target] == SOURCE__NONE && q->mate[0][pair.golden] == SOURCE__NONE)
            join(q, pair.golden, pair.target);
    }
    return MS_OK;
}

/* ---- one program or two ---------------------------------------------------------------------- */

static bool is_mindspore(const struct probe_dump *d)
{
    return d->framework == PROBE_FW_MINDSPORE;
}

/* Of forward operators: how often each side calls them, by operator. */
struct calls {
    struct ms_map ops;
    MS_VEC(struct { uint32_t n[2]; }) list;
};

static enum ms_rc count_calls(struct calls *calls, const struct probe_dump *d, unsigned side,
                              struct ms_err *err)
{
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        bool added;
        if (!is_api(&d->nodes.p[i], PROBE_FORWARD))
            continue;
        uint32_t id = ms_map_put(&calls->ops, op_of(d, i), &added);
        if (id == MS_MAP_NONE || (added && ms_vec_push(&calls->list) == NULL))
            return ms_no_memory(err);
        if (added)
            memset(&calls->list.p[id], 0, sizeof calls->list.p[id]);
        calls->list.p[id].n[side]++;
    }
    return MS_OK;
}

/* Does a side call many operators that the other never calls, and do both call any? */
static bool have_little_in_common(const struct calls *calls)
{
    enum { FEW = 6, SHARE = 5 };
    uint32_t all[2] = {0}, foreign[2] = {0};
    for (size_t i = 0; i < calls->list.n; i++) {
        const uint32_t *n = calls->list.p[i].n;
        for (unsigned s = 0; s < 2; s++) {
            all[s] += n[s];
            foreign[s] += n[1 - s] == 0 ? n[s] : 0;
        }
    }
    bool others = false;
    for (unsigned s = 0; s < 2; s++)
        others |= foreign[s] >= FEW && foreign[s] > all[s] / SHARE;
    return others && all[0] != 0 && all[1] != 0;
}

enum ms_rc source__is_cross(const struct cmp *c, bool *cross, struct ms_err *err)
{
    struct calls calls = {0};
    enum ms_rc rc = count_calls(&calls, c->b.dump, 0, err);
    if (rc == MS_OK)
        rc = count_calls(&calls, c->t.dump, 1, err);
    *cross = is_mindspore(c->b.dump) != is_mindspore(c->t.dump) || have_little_in_common(&calls);
    ms_map_free(&calls.ops);
    ms_vec_free(&calls.list);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static enum ms_rc make_room(struct source__pairing *q, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        size_t bytes = (q->dump[s]->nodes.n + 1) * sizeof *q->mate[s];
        q->mate[s] = ms_alloc(bytes);
        if (q->mate[s] == NULL)
            return ms_no_memory(err);
        memset(q->mate[s], 0xff, bytes);
    }
    q->moved = ms_calloc(q->dump[1]->nodes.n + 1, sizeof *q->moved);
    q->golden_path = ms_alloc((q->dump[1]->paths.keys.n + 1) * sizeof *q->golden_path);
    if (q->moved == NULL || q->golden_path == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < q->dump[1]->paths.keys.n; i++)
        q->golden_path[i] = ms_map_get(&q->dump[0]->paths, ms_map_key(&q->dump[1]->paths, i));
    return MS_OK;
}

/* Pins of the user go before; programs that have little in common are for the other alignment. */
static enum ms_rc align_calls(struct source__pairing *q, struct ms_err *err)
{
    bool done = false;
    if (q->c->conf.pins == NULL)
        MS_TRY(source__align(q, &done, err));
    if (done)
        return MS_OK;
    MS_TRY(align(q, err));
    take_alignment(q, true);
    return MS_OK;
}

static enum ms_rc pair_one_framework(struct source__pairing *q, struct ms_err *err)
{
    pair_by_name(q);
    if (!same_calls(q)) {
        for (uint32_t i = 0; i < q->dump[1]->nodes.n; i++) {
            if (is_api(&q->dump[1]->nodes.p[i], PROBE_FORWARD))
                separate(q, i);
        }
        MS_TRY(align_calls(q, err));
        pair_moved(q);
        MS_TRY(follow_forward(q, err));
        if (q->al != NULL)
            take_alignment(q, false);
        q->al = NULL; /* rows meet by their paths all the same */
    }
    return pair_gradients(q, err);
}

enum ms_rc source__pair(struct source__pairing *q, const struct cmp *c,
                        const struct source__side side[2], bool cross, struct ms_pool *pool,
                        struct ms_err *err)
{
    *q = (struct source__pairing){
        .c = c, .dump = {c->b.dump, c->t.dump}, .side = {&side[0], &side[1]}, .pool = pool};
    MS_TRY(make_room(q, err));
    if (c->conf.data_mapping != NULL || (is_mapped(&c->conf) && !cross))
        return take_groups(q, err);
    if (!cross)
        return pair_one_framework(q, err);
    MS_TRY(align(q, err));
    take_alignment(q, false);
    return MS_OK;
}

void source__pairing_free(struct source__pairing *q)
{
    for (unsigned s = 0; s < 2; s++)
        ms_free(q->mate[s]);
    ms_free(q->moved);
    ms_free(q->row_mate);
    ms_free(q->golden_path);
    cmp_align_free(q->own);
    *q = (struct source__pairing){0};
}
