/* SPDX-License-Identifier: MIT
 *
 * emit: turns paired operators and modules into the list of paired nodes.
 *
 * Backward nodes are not searched; they follow their forward nodes by name:
 * A.3.forward with B.5.forward gives A.3.backward with B.5.backward. Where a run
 * recomputes, the backward of the recomputed call takes its place. Two more rules add
 * pairs: small projections are also paired with the split of a large projection's
 * result, and the operators that read a shared value first are paired in backward,
 * where they complete its gradient.
 *
 * Operators that run in place of a fused one are its members:
 *
 *     golden   matmul ─ div ─ mask ─ softmax ─ matmul        the last matmul is the pair,
 *     target   flash_attention                               the four before it are members
 *
 * A member lies between the previous pair and this one, and its result reaches the
 * paired operator through operators without a partner. An operator whose result does
 * not reach it is no member, and a split belongs to the projection before it.
 * Operators without evidence are paired by name.
 */
#include "compare/align/emit.h"
#include "compare/align/score.h"
#include "compare/align/vote.h"
#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <stdlib.h>

struct emit {
    struct cmp_align *al;
    struct align__ctx *c;
};

static enum ms_rc add_pair(struct emit *e, uint32_t golden, uint32_t target, float confidence,
                           enum cmp_align_how how, struct ms_err *err)
{
    if (golden == ALIGN__NONE || target == ALIGN__NONE)
        return MS_OK;
    ms_assert(golden < e->c->side[0].dump->nodes.n && target < e->c->side[1].dump->nodes.n);
    ms_assert(confidence >= 0 && confidence <= 1);
    struct cmp_align_pair *p = ms_vec_push(&e->al->pairs);
    if (p == NULL)
        return ms_no_memory(err);
    *p = (struct cmp_align_pair){target, golden, confidence, (uint8_t)how, false};
    return MS_OK;
}

/* ---- ops ----------------------------------------------------------------- */

static uint32_t backward_of(const struct align__side *s, const struct align__op *op)
{
    if (op->back != ALIGN__NONE || op->twin == ALIGN__NONE)
        return op->back;
    return s->again.p[op->twin].back;
}

/* Adds a pair of forward operators, the pair of their backward nodes, and the pair of their
 * recomputations. */
static enum ms_rc add_op_pair(struct emit *e, uint32_t ia, uint32_t ib, float confidence,
                              enum cmp_align_how how, struct ms_err *err)
{
    ms_assert(ia < e->c->side[0].ops.n && ib < e->c->side[1].ops.n);
    const struct align__side *g = &e->c->side[0];
    const struct align__side *t = &e->c->side[1];
    const struct align__op *a = &g->ops.p[ia];
    const struct align__op *b = &t->ops.p[ib];
    MS_TRY(add_pair(e, a->node, b->node, confidence, how, err));
    MS_TRY(add_pair(e, backward_of(g, a), backward_of(t, b), confidence, how, err));
    if (b->twin == ALIGN__NONE)
        return MS_OK;
    uint32_t again = a->twin != ALIGN__NONE ? g->again.p[a->twin].node : a->node;
    return add_pair(e, again, t->again.p[b->twin].node, confidence, CMP_ALIGN_REPEAT, err);
}

static float confidence_of(const struct align__ctx *c, const struct align__evidence *e,
                           enum cmp_align_how *how)
{
    ms_assert(how != NULL && e->family >= 0 && e->family <= 1);
    *how = CMP_ALIGN_VALUE;
    if (c->by_value && e->out >= c->strict && e->family == 1)
        return 0.99F;
    if (e->out > 0.5F || e->param > 0.5F)
        return 0.95F;
    *how = CMP_ALIGN_STRUCTURE;
    if (e->module == 2 && e->family >= 0.7F)
        return 0.9F;
    *how = CMP_ALIGN_WEAK;
    return 0.6F;
}

static enum ms_rc add_op_pairs(struct emit *e, struct ms_err *err)
{
    for (uint32_t a = 0; a < e->c->side[0].ops.n; a++) {
        uint32_t b = e->c->op[0][a];
        struct align__evidence ev;
        enum cmp_align_how how;
        if (b == ALIGN__NONE)
            continue;
        align__weigh_pair(e->c, a, b, &ev);
        float confidence = confidence_of(e->c, &ev, &how);
        MS_TRY(add_op_pair(e, a, b, confidence, how, err));
    }
    return MS_OK;
}

/* ---- parts: small projections and the split of the large one ------------- */

/* Tells whether the modules around both partners are paired. Where one side has fewer layers, a
 * part may belong to another layer. */
static bool are_in_one_module(const struct align__ctx *c, const struct align__link *l)
{
    uint32_t a = c->side[0].modules.p[l->a].parent, b = c->side[1].modules.p[l->b].parent;
    return a != ALIGN__NONE && b != ALIGN__NONE && c->mod_pair[0][a] == b;
}

static enum ms_rc add_parts(struct emit *e, struct ms_err *err)
{
    const struct align__side *g = &e->c->side[0];
    const struct align__side *t = &e->c->side[1];
    for (size_t i = 0; i < e->c->parts.n; i++) {
        const struct align__link *l = &e->c->parts.p[i];
        uint32_t a = g->modules.p[l->a].direct;
        uint32_t b = t->modules.p[l->b].direct;
        if (a == ALIGN__NONE || b == ALIGN__NONE)
            continue;
        /* Only forward nodes are paired: the gradient of the large module is the sum of the small
         * ones' gradients and has no partner. */
        if (g->ops.p[a].family == t->ops.p[b].family && are_in_one_module(e->c, l))
            MS_TRY(add_pair(e, g->ops.p[a].node, t->ops.p[b].node, 0.85F, CMP_ALIGN_PART, err));
        uint32_t sa = align__split_behind(g, a);
        uint32_t sb = align__split_behind(t, b);
        /* Only one of the two sides has a split of its own. */
        if (sb != ALIGN__NONE && sa == ALIGN__NONE && e->c->op[0][a] != sb)
            MS_TRY(add_op_pair(e, a, sb, 0.9F, CMP_ALIGN_PART, err));
        if (sa != ALIGN__NONE && sb == ALIGN__NONE && e->c->op[1][b] != sa)
            MS_TRY(add_op_pair(e, sa, b, 0.9F, CMP_ALIGN_PART, err));
    }
    return MS_OK;
}

/* ---- entries: the first readers of a shared value ------------------------ */

/* The operators of one side of a pair in execution order: members, then the paired operator
 * itself. */
struct crew {
    const struct align__side *s;
    const uint32_t *nodes, *op_of;
    uint32_t n, tail;
};

static struct crew crew_of(const struct cmp_align *al, int side, uint32_t op)
{
    const struct align__members *m = &al->members[side][op];
    return (struct crew){&al->c.side[side], al->list.p + m->first, al->op_of[side], m->n, op};
}
static uint32_t crew_op(const struct crew *w, uint32_t i)
{
    return i < w->n ? w->op_of[w->nodes[i]] : w->tail;
}
static bool reads_value(const struct align__side *s, uint32_t op, uint32_t value)
{
    const struct align__op *o = &s->ops.p[op];
    for (unsigned i = 0; i < o->nin; i++) {
        if (align__ins(s, o)[i].value == value)
            return true;
    }
    return false;
}
static uint32_t first_reader(const struct crew *w, uint32_t value)
{
    for (uint32_t i = 0; i <= w->n; i++) {
        if (reads_value(w->s, crew_op(w, i), value))
            return crew_op(w, i);
    }
    return ALIGN__NONE;
}

/* Returns the input of crew b that equals the value u, for a value that no recorded operator
 * produced, such as a table of angles or a mask. Such a value is identified by its numbers
 * alone. */
static uint32_t outer_twin(const struct align__ctx *c, const struct crew *a, uint32_t u,
                           const struct crew *b)
{
    ms_assert(u < a->s->values.n);
    const struct align__value *x = &a->s->values.p[u];
    uint32_t best = ALIGN__NONE;
    float most = c->strict;
    for (uint32_t i = 0; c->by_value && x->producer == ALIGN__NONE && i <= b->n; i++) {
        const struct align__op *o = &b->s->ops.p[crew_op(b, i)];
        for (unsigned k = 0; k < o->nin; k++) {
            uint32_t v = align__ins(b->s, o)[k].value;
            const struct align__value *y = &b->s->values.p[v];
            float like =
                y->known && y->producer == ALIGN__NONE ? align__likeness(align__distance(x, y)) : 0;
            if (like > most || (like == most && best == ALIGN__NONE)) {
                most = like;
                best = v;
            }
        }
    }
    return best;
}

static enum ms_rc add_entries_of(struct emit *e, const struct crew *a, const struct crew *b,
                                 struct ms_err *err)
{
    for (uint32_t i = 0; i <= a->n; i++) {
        uint32_t ra = crew_op(a, i);
        const struct align__op *op = &a->s->ops.p[ra];
        for (unsigned k = 0; k < op->nin; k++) {
            uint32_t u = align__ins(a->s, op)[k].value;
            uint32_t v = e->c->vmap[u];
            if (v == ALIGN__NONE)
                v = outer_twin(e->c, a, u, b);
            /* The readers of a value without statistics are unknown. */
            if (v == ALIGN__NONE || !a->s->values.p[u].known || !b->s->values.p[v].known ||
                first_reader(a, u) != ra)
                continue;
            uint32_t rb = first_reader(b, v);
            if (rb == ALIGN__NONE || (ra == a->tail && rb == b->tail))
                continue;
            MS_TRY(add_pair(e, backward_of(a->s, op), backward_of(b->s, &b->s->ops.p[rb]), 0.85F,
                            CMP_ALIGN_ENTRY, err));
        }
    }
    return MS_OK;
}

static enum ms_rc add_entries(struct emit *e, struct ms_err *err)
{
    enum { CREW_MAX = 64 }; /* a longer list is no fused operator */
    for (uint32_t i = 0; i < e->c->side[0].ops.n; i++) {
        if (e->c->op[0][i] == ALIGN__NONE)
            continue;
        struct crew a = crew_of(e->al, 0, i);
        struct crew b = crew_of(e->al, 1, e->c->op[0][i]);
        if (a.n <= CREW_MAX && b.n <= CREW_MAX)
            MS_TRY(add_entries_of(e, &a, &b, err));
    }
    return MS_OK;
}

/* Pairs the backward nodes that complete a shared input's gradient. Several small modules read one
 * value as the large module does; the backward of the first of them runs last and adds the last
 * term of the gradient. */
static enum ms_rc add_part_entries(struct emit *e, struct ms_err *err)
{
    const struct align__link *l = e->c->parts.p;
    const struct align__side *g = &e->c->side[0];
    const struct align__side *t = &e->c->side[1];
    for (size_t i = 0; i < e->c->parts.n; i++) {
        bool goes_on = i != 0 && (l[i].a == l[i - 1].a || l[i].b == l[i - 1].b);
        uint32_t a = g->modules.p[l[i].a].direct;
        uint32_t b = t->modules.p[l[i].b].direct;
        if (goes_on || a == ALIGN__NONE || b == ALIGN__NONE)
            continue;
        MS_TRY(add_pair(e, backward_of(g, &g->ops.p[a]), backward_of(t, &t->ops.p[b]), 0.85F,
                        CMP_ALIGN_ENTRY, err));
    }
    return MS_OK;
}

/* ---- modules ------------------------------------------------------------- */

static uint32_t module_backward(const struct align__side *s, const struct align__module *m)
{
    if (m->back != ALIGN__NONE || m->twin == ALIGN__NONE)
        return m->back;
    return s->modules.p[m->twin].back;
}

static enum ms_rc add_module_pairs(struct emit *e, struct ms_err *err)
{
    const struct align__side *g = &e->c->side[0];
    const struct align__side *t = &e->c->side[1];
    for (uint32_t i = 0; i < g->modules.n; i++) {
        if (e->c->mod_pair[0][i] == ALIGN__NONE)
            continue;
        const struct align__module *a = &g->modules.p[i];
        const struct align__module *b = &t->modules.p[e->c->mod_pair[0][i]];
        MS_TRY(add_pair(e, a->node, b->node, 0.95F, CMP_ALIGN_MODULE, err));
        MS_TRY(add_pair(e, module_backward(g, a), module_backward(t, b), 0.95F, CMP_ALIGN_MODULE,
                        err));
        if (b->twin == ALIGN__NONE)
            continue;
        uint32_t again = a->twin != ALIGN__NONE ? g->modules.p[a->twin].node : a->node;
        MS_TRY(add_pair(e, again, t->modules.p[b->twin].node, 0.95F, CMP_ALIGN_REPEAT, err));
    }
    return MS_OK;
}

/* Builds the name of the golden record of parameter gradients that corresponds to a target
 * record. */
static void grad_name(const struct align__side *g, uint32_t module, struct ms_str target,
                      struct ms_buf *out)
{
    struct probe_name name = probe_name_parse(g->modules.p[module].name);
    int64_t at = ms_str_find_str(target, MS_STR(".parameters_grad"));
    ms_buf_clear(out);
    ms_buf_str(out, name.prefix);
    ms_buf_putc(out, '.');
    ms_buf_str(out, name.path);
    ms_buf_str(out, ms_str_sub(target, (uint32_t)(at < 0 ? 0 : at), target.n));
}

static enum ms_rc add_gradient_pairs(struct emit *e, struct ms_err *err)
{
    const struct align__side *g = &e->c->side[0];
    const struct align__side *t = &e->c->side[1];
    struct ms_map paths = {.slots = NULL}; /* paths of the target modules that have a partner */
    MS_VEC(uint32_t) partner = {0};
    struct ms_buf text = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < t->modules.n && rc == MS_OK; i++) {
        bool added;
        if (e->c->mod_pair[1][i] == ALIGN__NONE)
            continue;
        if (ms_map_put(&paths, probe_name_parse(t->modules.p[i].name).path, &added) == MS_MAP_NONE)
            rc = ms_no_memory(err);
        uint32_t *slot = rc == MS_OK && added ? ms_vec_push(&partner) : NULL;
        if (slot != NULL)
            *slot = e->c->mod_pair[1][i];
        else if (rc == MS_OK && added)
            rc = ms_no_memory(err);
    }
    for (uint32_t i = 0; i < t->dump->nodes.n && rc == MS_OK; i++) {
        if (t->dump->nodes.p[i].kind != PROBE_NODE_PGRAD)
            continue;
        struct ms_str name = probe_node_name(t->dump, i);
        uint32_t at = ms_map_get(&paths, probe_name_parse(name).path);
        if (at == MS_MAP_NONE)
            continue;
        grad_name(g, partner.p[at], name, &text);
        rc = ms_buf_check(&text, err);
        uint32_t node = probe_node_find(g->dump, ms_buf_slice(&text));
        if (rc == MS_OK && node != MS_MAP_NONE)
            rc = add_pair(e, node, i, 0.95F, CMP_ALIGN_MODULE, err);
    }
    ms_map_free(&paths);
    ms_vec_free(&partner);
    ms_buf_free(&text);
    return rc;
}

/* ---- namesakes ----------------------------------------------------------- */

/* Tells whether a node is a gradient whose forward operator was not recorded. Such nodes can only
 * be paired by name. */
static bool is_orphan(const struct cmp_align *al, int side, uint32_t node)
{
    const struct probe_node *n = &al->c.side[side].dump->nodes.p[node];
    bool gradient =
        n->kind == PROBE_NODE_PGRAD || (n->kind == PROBE_NODE_API && n->dir == PROBE_BACKWARD);
    return gradient && al->back_of[side][node] == ALIGN__NONE;
}

static bool have_equal_shapes(const struct probe_dump *const dump[2], uint32_t golden,
                              uint32_t target)
{
    ms_assert(golden < dump[0]->nodes.n && target < dump[1]->nodes.n);
    const struct probe_node *g = &dump[0]->nodes.p[golden], *t = &dump[1]->nodes.p[target];
    bool same = g->nrows == t->nrows;
    for (uint32_t i = 0; same && i < g->nrows; i++) {
        struct align__value x, y;
        struct align__dim p, q;
        bool a = align__row_value(dump[0], g->first_row + i, &x, &p);
        bool b = align__row_value(dump[1], t->first_row + i, &y, &q);
        same = a == b && (!a || align__dim_same(&p, &q));
    }
    return same;
}

static enum ms_rc add_namesakes(struct emit *e, struct ms_err *err)
{
    const struct probe_dump *const dump[2] = {e->c->side[0].dump, e->c->side[1].dump};
    bool *paired[2] = {ms_calloc(dump[0]->nodes.n + 1, 1), ms_calloc(dump[1]->nodes.n + 1, 1)};
    enum ms_rc rc = paired[0] != NULL && paired[1] != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; rc == MS_OK && i < e->al->pairs.n; i++) {
        paired[0][e->al->pairs.p[i].golden] = true;
        paired[1][e->al->pairs.p[i].target] = true;
    }
    for (uint32_t i = 0; rc == MS_OK && i < dump[1]->nodes.n; i++) {
        if (paired[1][i] || !is_orphan(e->al, 1, i))
            continue;
        uint32_t g = probe_node_find(dump[0], probe_node_name(dump[1], i));
        if (g != MS_MAP_NONE && !paired[0][g] && is_orphan(e->al, 0, g) &&
            have_equal_shapes(dump, g, i))
            rc = add_pair(e, g, i, 0.8F, CMP_ALIGN_STRUCTURE, err);
    }
    ms_free(paired[0]);
    ms_free(paired[1]);
    return rc;
}

/* ---- pins and order ------------------------------------------------------ */

static enum ms_rc find_pin(const struct probe_dump *d, struct ms_str name, const char *whose,
                           uint32_t *node, struct ms_err *err)
{
    *node = ALIGN__NONE;
    if (name.n == 0)
        return MS_OK;
    *node = probe_node_find(d, name);
    if (*node != MS_MAP_NONE)
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "the %s dump has no node '%.*s'; pins need whole names",
                   whose, MS_STR_ARG(name));
}

/* Flags of the nodes that pins name, by node: golden, target. */
struct pinned {
    bool *node[2];
};

static bool is_pinned(const struct pinned *p, uint32_t golden, uint32_t target)
{
    return p->node[0][golden] || p->node[1][target];
}

/* Removes the pairs that contradict a pin, then adds the pins. */
static enum ms_rc add_pins(struct emit *e, const struct cmp_align_pin *pins, size_t npins,
                           const struct pinned *pinned, struct ms_err *err)
{
    ms_assert(pins != NULL || npins == 0);
    const struct probe_dump *const dump[2] = {e->c->side[0].dump, e->c->side[1].dump};
    uint32_t golden;
    uint32_t target;
    for (size_t i = 0; i < npins; i++) {
        MS_TRY(find_pin(dump[1], pins[i].target, "target", &target, err));
        MS_TRY(find_pin(dump[0], pins[i].golden, "golden", &golden, err));
        if (target != ALIGN__NONE)
            pinned->node[1][target] = true;
        if (golden != ALIGN__NONE)
            pinned->node[0][golden] = true;
    }
    size_t n = 0;
    for (size_t i = 0; i < e->al->pairs.n; i++) {
        struct cmp_align_pair p = e->al->pairs.p[i];
        if (!is_pinned(pinned, p.golden, p.target))
            e->al->pairs.p[n++] = p;
    }
    e->al->pairs.n = n;
    for (size_t i = 0; i < npins; i++) {
        MS_TRY(find_pin(dump[1], pins[i].target, "target", &target, err));
        MS_TRY(find_pin(dump[0], pins[i].golden, "golden", &golden, err));
        MS_TRY(add_pair(e, golden, target, 1, CMP_ALIGN_PINNED, err));
    }
    return MS_OK;
}

static enum ms_rc apply_pins(struct emit *e, const struct cmp_align_pin *pins, size_t npins,
                             struct ms_err *err)
{
    struct pinned p = {{ms_calloc(e->c->side[0].dump->nodes.n + 1, sizeof(bool)),
                        ms_calloc(e->c->side[1].dump->nodes.n + 1, sizeof(bool))}};
    enum ms_rc rc = p.node[0] != NULL && p.node[1] != NULL ? add_pins(e, pins, npins, &p, err)
                                                           : ms_no_memory(err);
    ms_free(p.node[0]);
    ms_free(p.node[1]);
    return rc;
}

static int by_target(const void *p, const void *q)
{
    const struct cmp_align_pair *x = p;
    const struct cmp_align_pair *y = q;
    return MS_ORDER(x->target, y->target,
                    MS_ORDER(y->confidence, x->confidence, MS_ORDER(x->golden, y->golden, 0)));
}

/* Sorts the pairs and keeps the most confident one of equal pairs. */
static void sort_pairs(struct cmp_align *al)
{
    size_t n = 0;
    if (al->pairs.n != 0)
        qsort(al->pairs.p, al->pairs.n, sizeof *al->pairs.p, by_target);
    for (size_t i = 0; i < al->pairs.n; i++) {
        struct cmp_align_pair p = al->pairs.p[i];
        bool twice = false;
        for (size_t k = n; k-- > 0 && al->pairs.p[k].target == p.target && !twice;)
            twice = al->pairs.p[k].golden == p.golden;
        if (twice)
            continue;
        p.more = n != 0 && al->pairs.p[n - 1].target == p.target;
        ms_assert(!p.more || al->pairs.p[n - 1].confidence >= p.confidence);
        al->pairs.p[n++] = p;
    }
    al->pairs.n = n;
}

/* Chooses the target of each golden node. A target's best pair counts before another target's
 * second pair, and any other pair counts before CMP_ALIGN_PART. */
static void choose_targets(struct cmp_align *al)
{
    const struct cmp_align_pair *p = al->pairs.p;
    for (unsigned pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < al->pairs.n; i++) {
            uint32_t *best = &al->of_golden[p[i].golden];
            unsigned rank = p[i].more ? 2 : p[i].how == CMP_ALIGN_PART;
            if (rank == pass && (*best == ALIGN__NONE || pass == 0))
                *best = p[i].target;
        }
    }
}

static enum ms_rc index_pairs(struct cmp_align *al, struct ms_err *err)
{
    size_t targets = al->c.side[1].dump->nodes.n;
    size_t goldens = al->c.side[0].dump->nodes.n;
    al->first_pair = ms_arena_calloc(al->c.arena, targets + 1, sizeof *al->first_pair);
    al->of_golden = ms_arena_alloc(al->c.arena, (goldens + 1) * sizeof *al->of_golden);
    if (al->first_pair == NULL || al->of_golden == NULL)
        return ms_arena_fail(al->c.arena, err);
    memset(al->of_golden, 0xff, (goldens + 1) * sizeof *al->of_golden);
    for (size_t i = 0; i < al->pairs.n; i++)
        al->first_pair[al->pairs.p[i].target + 1]++;
    for (size_t i = 0; i < targets; i++)
        al->first_pair[i + 1] += al->first_pair[i];
    choose_targets(al);
    ms_assert(al->first_pair[targets] == al->pairs.n);
    return MS_OK;
}

enum ms_rc align__emit_pairs(struct cmp_align *al, const struct cmp_align_pin *pins, size_t npins,
                             struct ms_err *err)
{
    struct emit e = {al, &al->c};
    if (!ms_vec_reserve(&al->pairs, 1)) /* an empty list needs an address, too */
        return ms_no_memory(err);
    MS_TRY(add_op_pairs(&e, err));
    MS_TRY(add_parts(&e, err));
    MS_TRY(add_entries(&e, err));
    MS_TRY(add_part_entries(&e, err));
    MS_TRY(add_module_pairs(&e, err));
    MS_TRY(add_gradient_pairs(&e, err));
    MS_TRY(add_namesakes(&e, err));
    if (npins != 0)
        MS_TRY(apply_pins(&e, pins, npins, err));
    sort_pairs(al);
    return index_pairs(al, err);
}

void align__prune_pairs(struct align__ctx *c)
{
    ms_assert(align__is_mutual(c->op[0], c->side[0].ops.n, c->op[1]));
    for (uint32_t a = 0; a < c->side[0].ops.n; a++) {
        uint32_t b = c->op[0][a];
        struct align__evidence e;
        if (b == ALIGN__NONE)
            continue;
        align__weigh_pair(c, a, b, &e);
        if (align__accept_pair(c, &e))
            continue;
        c->op[0][a] = ALIGN__NONE;
        c->op[1][b] = ALIGN__NONE;
    }
}

/* Tells whether `later`, which reads the output of `tail`, is a better end of the operators that
 * run in place of `fused`. A separate addition of a bias belongs to a fused operator that has a
 * bias. */
static bool ends_later(const struct align__op *fused, const struct align__op *tail,
                       const struct align__op *later)
{
    if (!align__family_fuses(fused->family, later->family) || align__family_is_view(later->family))
        return false; /* a view only passes on the tail's result */
    if (fused->family == tail->family)
        return fused->nparam > tail->nparam && later->nparam != 0;
    return align__family_fuses(fused->family, tail->family) &&
           align__family_likeness(fused->family, later->family) >=
               align__family_likeness(fused->family, tail->family);
}

/* Returns the unpaired operator behind `op` in the same module that should take over the partner of
 * `op`, or ALIGN__NONE. */
static uint32_t later_tail(const struct align__ctx *c, int side, uint32_t op)
{
    const struct align__side *s = &c->side[side];
    ms_assert(c->op[side][op] != ALIGN__NONE);
    const struct align__op *tail = &s->ops.p[op];
    const struct align__op *fused = &c->side[1 - side].ops.p[c->op[side][op]];
    if (tail->nout == 0 || fused->nout == 0)
        return ALIGN__NONE;
    const struct align__value *v = &s->values.p[align__outs(s, tail)->value];
    const struct align__value *whole =
        &c->side[1 - side].values.p[align__outs(&c->side[1 - side], fused)->value];
    if (c->by_value && align__likeness(align__distance(v, whole)) >= c->strict)
        return ALIGN__NONE;
    for (uint32_t i = 0; i < v->uses; i++) {
        uint32_t next = s->users[v->first_use + i];
        const struct align__op *later = &s->ops.p[next];
        if (next > op && c->op[side][next] == ALIGN__NONE && later->parent == tail->parent &&
            later->nout != 0 && s->values.p[align__outs(s, later)->value].n == v->n &&
            ends_later(fused, tail, later))
            return next;
    }
    return ALIGN__NONE;
}

void align__settle_tails(struct align__ctx *c)
{
    for (int side = 0; side < 2; side++) {
        for (uint32_t op = 0; op < c->side[side].ops.n; op++) {
            uint32_t later = c->op[side][op] != ALIGN__NONE ? later_tail(c, side, op) : ALIGN__NONE;
            if (later == ALIGN__NONE)
                continue;
            c->op[side][later] = c->op[side][op];
            c->op[1 - side][c->op[side][op]] = later;
            c->op[side][op] = ALIGN__NONE;
        }
    }
    ms_assert(align__is_mutual(c->op[0], c->side[0].ops.n, c->op[1]));
    ms_assert(align__is_mutual(c->op[1], c->side[1].ops.n, c->op[0]));
}

enum ms_rc align__pair_same_names(struct cmp_align *al, struct ms_err *err)
{
    struct align__ctx *c = &al->c;
    const struct align__side *t = &c->side[1], *g = &c->side[0];
    uint32_t before = ALIGN__NONE;
    uint32_t *behind = ms_arena_alloc(c->arena, (t->ops.n + 1) * sizeof *behind);
    if (behind == NULL)
        return ms_arena_fail(c->arena, err);
    behind[t->ops.n] = ALIGN__NONE;
    for (size_t b = t->ops.n; b-- > 0;)
        behind[b] = c->op[1][b] < behind[b + 1] ? c->op[1][b] : behind[b + 1];
    for (uint32_t b = 0; b < t->ops.n; b++) {
        if (c->op[1][b] == ALIGN__NONE) {
            uint32_t node = probe_node_find(g->dump, probe_node_name(t->dump, t->ops.p[b].node));
            uint32_t a = node != MS_MAP_NONE ? al->op_of[0][node] : ALIGN__NONE;
            bool in_order = a < behind[b] && (before == ALIGN__NONE || a > before);
            if (a == ALIGN__NONE || c->op[0][a] != ALIGN__NONE || !in_order)
                continue;
            c->op[1][b] = a;
            c->op[0][a] = b;
        }
        if (before == ALIGN__NONE || c->op[1][b] > before)
            before = c->op[1][b];
    }
    ms_assert(align__is_mutual(c->op[1], t->ops.n, c->op[0]));
    return MS_OK;
}

struct walk {
    const struct align__side *s;
    const uint32_t *paired; /* by operator: its partner */
    uint32_t *seen;         /* by operator: 1 + the operator whose member it is */
    MS_VEC(uint32_t) stack;
};

/* Pushes the producers of the inputs of `op` that can be members of `of`. */
static enum ms_rc push_producers(struct walk *w, uint32_t op, uint32_t floor, uint32_t of,
                                 struct ms_err *err)
{
    ms_assert(op < w->s->ops.n && floor <= op);
    const struct align__op *o = &w->s->ops.p[op];
    const struct align__tensor *t = align__ins(w->s, o);
    for (unsigned i = 0; i < o->nin; i++) {
        uint32_t p = w->s->values.p[t[i].value].producer;
        if (p == ALIGN__NONE || p >= op || p < floor || w->seen[p] == of + 1 ||
            w->paired[p] != ALIGN__NONE || align__family_is_split(w->s->ops.p[p].family))
            continue;
        w->seen[p] = of + 1;
        uint32_t *slot = ms_vec_push(&w->stack);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = p;
    }
    return MS_OK;
}

/* Appends the members of one operator to the list, in execution order. */
static enum ms_rc walk_back(struct cmp_align *al, int side, struct walk *w, uint32_t op,
                            uint32_t floor, struct ms_err *err)
{
    uint32_t lowest = op;
    w->stack.n = 0;
    MS_TRY(push_producers(w, op, floor, op, err));
    while (w->stack.n != 0) {
        uint32_t p = w->stack.p[--w->stack.n];
        lowest = p < lowest ? p : lowest;
        MS_TRY(push_producers(w, p, floor, op, err));
    }
    ms_assert(lowest >= floor && lowest <= op);
    struct align__members *m = &al->members[side][op];
    m->first = (uint32_t)al->list.n;
    for (uint32_t i = lowest; i < op; i++) {
        if (w->seen[i] != op + 1)
            continue;
        uint32_t *slot = ms_vec_push(&al->list);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = w->s->ops.p[i].node;
        m->n++;
    }
    return MS_OK;
}

static enum ms_rc find_side(struct cmp_align *al, int side, struct ms_err *err)
{
    const struct align__side *s = &al->c.side[side];
    struct walk w = {.s = s, .paired = al->c.op[side]};
    w.seen = ms_calloc(s->ops.n + 1, sizeof *w.seen);
    al->members[side] = ms_arena_calloc(al->c.arena, s->ops.n + 1, sizeof *al->members[side]);
    enum ms_rc rc = w.seen != NULL && al->members[side] != NULL ? MS_OK : ms_no_memory(err);
    uint32_t floor = 0; /* first operator behind the previous pair */
    for (uint32_t i = 0; rc == MS_OK && i < s->ops.n; i++) {
        if (w.paired[i] == ALIGN__NONE)
            continue;
        rc = walk_back(al, side, &w, i, floor, err);
        floor = i + 1;
    }
    ms_free(w.seen);
    ms_vec_free(&w.stack);
    return rc;
}

enum ms_rc align__find_members(struct cmp_align *al, struct ms_err *err)
{
    if (!ms_vec_reserve(&al->list, 1)) /* an empty list needs an address, too */
        return ms_no_memory(err);
    MS_TRY(find_side(al, 0, err));
    return find_side(al, 1, err);
}
