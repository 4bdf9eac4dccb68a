/* SPDX-License-Identifier: MIT
 *
 * align_complete: the ops that run in place of a fused one.
 *
 *     golden   matmul ─ div ─ mask ─ softmax ─ matmul        the last matmul is the pair,
 *     target   flash_attention                               the four before it are members
 *
 * What no evidence tells about, as what is written is what was read, keeps the partner
 * of its own name.  A member lies between the pair before and this one, and its result reaches the
 * pair's op through ops without a partner.  What leads nowhere is no member, and a
 * split belongs to the projection before it.
 */
#include "compare/align_int.h"

void align__prune(struct align__ctx *c)
{
    for (uint32_t a = 0; a < c->side[0].ops.n; a++) {
        uint32_t b = c->op[0][a];
        struct align__evidence e;
        if (b == ALIGN__NONE)
            continue;
        align__weigh(c, a, b, &e);
        if (align__accept(c, &e))
            continue;
        c->op[0][a] = ALIGN__NONE;
        c->op[1][b] = ALIGN__NONE;
    }
}

/* Does `later`, which reads `tail`, rather end what runs in place of `fused`?  A bias that is added
 * apart belongs to what has one of its own. */
static bool ends_later(const struct align__op *fused, const struct align__op *tail,
                       const struct align__op *later)
{
    if (!align__family_fuses(fused->family, later->family) || align__family_is_view(later->family))
        return false; /* a view hands on what the tail has computed */
    if (fused->family == tail->family)
        return fused->nparam > tail->nparam && later->nparam != 0;
    return align__family_fuses(fused->family, tail->family) &&
           align__family_likeness(fused->family, later->family) >=
               align__family_likeness(fused->family, tail->family);
}

/* The op without a partner behind `op`, in its module, that is to have its partner. */
static uint32_t later_tail(const struct align__ctx *c, int side, uint32_t op)
{
    const struct align__side *s = &c->side[side];
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
}

enum ms_rc align__same_names(struct cmp_align *al, struct ms_err *err)
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
    return MS_OK;
}

struct walk {
    const struct align__side *s;
    const uint32_t *paired; /* partner by op */
    uint32_t *seen;         /* by op: 1 + the op whose member it is */
    MS_VEC(uint32_t) stack;
};

/* Put the ops that produce op's inputs on the stack when they can be members of `of`. */
static enum ms_rc push_producers(struct walk *w, uint32_t op, uint32_t floor, uint32_t of,
                                 struct ms_err *err)
{
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

/* Members of one op, entered in execution order. */
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
    uint32_t floor = 0; /* first op behind the pair before */
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
    if (!ms_vec_reserve(&al->list, 1)) /* an empty list has an address, too */
        return ms_no_memory(err);
    MS_TRY(find_side(al, 0, err));
    return find_side(al, 1, err);
}
