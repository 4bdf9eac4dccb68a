/* SPDX-License-Identifier: MIT
 *
 * frontier: names the operators at which the values of two programs part.
 *
 * On each side, operators that read values which both sides have and make a lasting value that the other
 * side does not have are at the frontier. Both sides have such operators, also where the mistake is an
 * operator too much or too little: `down(1.1 * x)` for `down(x)` parts at the product and, on the golden
 * side, at `down`, whose partner reads a lost value. Functions are whole where they are recorded; a graph
 * has the steps inside them, which are at the frontier as soon as the function's result is lost. The search
 * therefore begins with the frontier of the side that is no graph.
 */
#include "compare/observe/frontier.h"
#include "compare/observe/front_partner.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/lost_values.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

#include <math.h>

static bool is_at_frontier(const struct observe__front *f, unsigned side, uint32_t node)
{
    const unsigned want = OBSERVE__LOST | OBSERVE__LASTS;
    return (f->p->losses[side][node] & (want | OBSERVE__IN_LOST)) == want;
}

/* Tells whether values surely part at an operator of the frontier. An operator of the functions whose result
 * nothing recorded reads may be superfluous, so that no graph runs it. One that reads a lost value from outside
 * the dump stands behind operators that are not recorded. */
static bool is_sure(const struct observe__front *f, unsigned side, uint32_t node)
{
    return (f->p->losses[side][node] & (OBSERVE__ENDS | OBSERVE__OUTSIDE)) == OBSERVE__ENDS;
}

/* Tells whether a side begins to differ at a module that reads another input from outside the dump. */
static bool has_other_input(const struct observe__front *f, unsigned side, uint32_t node)
{
    return (f->p->losses[side][node] & OBSERVE__OUTSIDE) &&
           observe__front_has_parameter(f, side, node);
}

/* Lists the frontier of a side: what is surely part of it, then the rest. */
static void list_side(struct observe__front *f, unsigned side)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0;
             i < observe__front_dump_of(f, side)->nodes.n && f->n[side] < OBSERVE__FRONT_MAX; i++) {
            if (is_at_frontier(f, side, i) && is_sure(f, side, i) == (pass == 0))
                f->list[side][f->n[side]++] = i;
        }
    }
}

/* ---- chains of lost values --------------------------------------------------- */

/* Marks a node and the lost values that it is computed from. */
static void mark_chain(struct observe__front *f, unsigned side, uint32_t node)
{
    const struct observe__side *s = f->q->side[side];
    memset(f->seen, 0, s->dump->nodes.n * sizeof *f->seen);
    f->seen[node] = true;
    for (uint32_t i = node + 1; i-- > 0;) {
        const struct probe_node *n = &s->dump->nodes.p[i];
        for (uint32_t k = n->first_row; k < n->first_row + n->nrows && f->seen[i]; k++) {
            uint32_t maker = s->maker[k];
            if (!observe__is_output(&s->dump->rows.p[k]) && maker < i &&
                (f->p->losses[side][maker] & OBSERVE__LOST))
                f->seen[maker] = true;
        }
    }
}

/* Returns the last operator before a node on the chain of lost values to it; a view only if there is
 * nothing else. A step of the node's own operator, which has the node's parameter, is no other one. */
static uint32_t last_before(struct observe__front *f, unsigned side, uint32_t node, uint32_t whole)
{
    uint32_t view = OBSERVE__NONE;
    mark_chain(f, side, node);
    for (uint32_t i = node; i-- > 0;) {
        bool is_step =
            whole != OBSERVE__NONE && observe__front_share_input(f, side, i, whole, true);
        if (!f->seen[i] || is_step)
            continue;
        if (!observe__front_is_view(f, side, i))
            return i;
        view = view == OBSERVE__NONE ? i : view;
    }
    return view;
}

/* Returns the first step, on the chain of lost values to `last`, of the operator that the other side runs whole:
 * it reads the operator's parameter and no lost value. OBSERVE__NONE: there is none. */
static uint32_t first_step(struct observe__front *f, unsigned side, uint32_t last, uint32_t whole)
{
    mark_chain(f, side, last);
    for (uint32_t i = 0; i <= last; i++) {
        if (f->seen[i] && !observe__front_reads_lost(f, side, i) &&
            observe__front_share_input(f, side, i, whole, true))
            return i;
    }
    return OBSERVE__NONE;
}

/* Returns the maker of one of a node's inputs that is of the same family as an operator of the other side. */
static uint32_t maker_like(const struct observe__front *f, unsigned side, uint32_t node,
                           uint32_t other)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        uint32_t maker = s->maker[i];
        if (observe__front_is_input(f, side, i, false) && maker < node &&
            observe__front_is_same_family(f, side, maker, other))
            return maker;
    }
    return OBSERVE__NONE;
}

/* Returns the operator at which a chain of lost values begins to differ. `other` reads the value that the
 * chain ends with on the other side: while both sides make it by the same operators, these differ only
 * because of what they read. */
static struct observe__parting start_of_change(struct observe__front *f, unsigned side,
                                               uint32_t node, uint32_t other)
{
    uint32_t like = maker_like(f, 1 - side, other, node);
    while (like != OBSERVE__NONE && observe__front_reads_lost(f, side, node)) {
        uint32_t before = last_before(f, side, node, OBSERVE__NONE);
        uint32_t next = before != OBSERVE__NONE ? maker_like(f, 1 - side, like, before) : before;
        node = before != OBSERVE__NONE ? before : node;
        like = next;
    }
    bool is_taken = like != OBSERVE__NONE && f->q->mate[1 - side][like] != OBSERVE__NONE &&
                    f->q->mate[1 - side][like] != node;
    return observe__front_part_at(side, node, is_taken ? OBSERVE__NONE : like);
}

/* Returns the operator of a node's family that makes, from a lost value, what `reader` of the other side reads, and
 * that has no partner; OBSERVE__NONE: there is none. */
static uint32_t lone_maker_like(const struct observe__front *f, unsigned side, uint32_t node,
                                uint32_t reader)
{
    const struct observe__side *s = f->q->side[1 - side];
    const struct probe_node *n = &s->dump->nodes.p[reader];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        uint32_t maker = s->maker[i];
        if (observe__front_is_input(f, 1 - side, i, false) && maker < reader &&
            (f->p->losses[1 - side][maker] & OBSERVE__LOST) &&
            observe__front_reads_lost(f, 1 - side, maker) &&
            f->q->mate[1 - side][maker] == OBSERVE__NONE &&
            observe__front_is_same_family(f, side, node, maker))
            return maker;
    }
    return OBSERVE__NONE;
}

/* Returns the operator of a node's family whose result a reader's partner reads where the reader has the node's;
 * OBSERVE__NONE: there is none. */
static uint32_t partner_by_reader(const struct observe__front *f, unsigned side, uint32_t node)
{
    for (uint32_t i = node + 1; i < observe__front_dump_of(f, side)->nodes.n; i++) {
        bool is_reader =
            observe__front_is_touched(f, side, i) && observe__front_reads_from(f, side, i, node);
        uint32_t reader = is_reader ? observe__front_partner_of(f, side, i) : OBSERVE__NONE;
        uint32_t like =
            reader != OBSERVE__NONE ? lone_maker_like(f, side, node, reader) : OBSERVE__NONE;
        if (like != OBSERVE__NONE)
            return like;
    }
    return OBSERVE__NONE;
}

/* Returns the partner of an operator: its own, or one of its family that reads what the partner of one of
 * its makers has made. `partner` has those of the operators before it. */
static uint32_t partner_behind(const struct observe__front *f, unsigned side, uint32_t node,
                               const uint32_t *partner)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    uint32_t own = observe__front_partner_of(f, side, node);
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows && own == OBSERVE__NONE; i++) {
        uint32_t maker = s->maker[i];
        if (observe__is_output(&s->dump->rows.p[i]) || maker >= node || !f->seen[maker] ||
            partner[maker] == OBSERVE__NONE)
            continue;
        for (uint32_t k = partner[maker] + 1; k < observe__front_dump_of(f, 1 - side)->nodes.n;
             k++) {
            if (observe__front_is_same_family(f, side, node, k) &&
                observe__front_reads_from(f, 1 - side, k, partner[maker]))
                return k;
        }
    }
    return own;
}

/* Returns the last operator before a node, on the chain of lost values to it, that has no partner before `end`,
 * the node's own partner. */
static uint32_t last_alone(struct observe__front *f, unsigned side, uint32_t node, uint32_t end)
{
    uint32_t last = OBSERVE__NONE;
    mark_chain(f, side, node);
    for (uint32_t i = 0; i < node; i++) {
        if (!f->seen[i])
            continue;
        f->partner[i] = partner_behind(f, side, i, f->partner);
        bool is_alone = f->partner[i] == OBSERVE__NONE || f->partner[i] > end;
        if (is_alone && (!observe__front_is_view(f, side, i) || observe__front_is_join(f, side, i)))
            last = i;
    }
    return last != OBSERVE__NONE ? last : last_before(f, side, node, OBSERVE__NONE);
}

/* Returns the last operator that depends on a node, if what reads it is not recorded; else the node. */
static uint32_t last_behind(struct observe__front *f, unsigned side, uint32_t node)
{
    const struct observe__side *s = f->q->side[side];
    uint32_t last = node;
    memset(f->seen, 0, s->dump->nodes.n * sizeof *f->seen);
    f->seen[node] = true;
    for (uint32_t i = node + 1; i < s->dump->nodes.n; i++) {
        const struct probe_node *n = &s->dump->nodes.p[i];
        for (uint32_t k = n->first_row;
             k < n->first_row + n->nrows && observe__front_is_touched(f, side, i); k++) {
            if (!observe__is_output(&s->dump->rows.p[k]) && s->maker[k] < i)
                f->seen[i] |= f->seen[s->maker[k]];
        }
        last = f->seen[i] && !observe__front_is_view(f, side, i) ? i : last;
    }
    return observe__front_partner_of(f, side, last) == OBSERVE__NONE &&
                   last != f->p->last_forward[side]
               ? last
               : node;
}

/* Returns the first operator of the marked chain before `end` that reads a value which an operator of the other
 * side reads; OBSERVE__NONE: there is none. */
static uint32_t first_sharing(const struct observe__front *f, unsigned side, uint32_t end,
                              uint32_t other)
{
    for (uint32_t i = 0; i < end; i++) {
        if (f->seen[i] && observe__front_share_input(f, side, i, other, false))
            return i;
    }
    return OBSERVE__NONE;
}

/* Tells whether a later operator that depends on a node reads another input of an operator of the other side. */
static bool is_read_behind(struct observe__front *f, unsigned side, uint32_t node, uint32_t other)
{
    const struct observe__side *s = f->q->side[1 - side];
    const struct probe_node *n = &s->dump->nodes.p[other];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (!observe__front_is_input(f, 1 - side, i, false) || s->value[i].n < 2 ||
            observe__front_reads_value(f, side, node, &s->value[i], false))
            continue;
        for (uint32_t k = node + 1; k < f->p->last_forward[side]; k++) {
            if (observe__front_is_touched(f, side, k) &&
                observe__front_reads_value(f, side, k, &s->value[i], false) &&
                observe__front_reads_lost(f, side, k))
                return true;
        }
    }
    return false;
}

/* Returns the operator at which a branch joins a value with which an operator of the other side goes on alone: the
 * branch is left out, and this operator is where that shows. OBSERVE__NONE: there is none. `partner` is the
 * partner of that operator, and the marked chain is its. */
static uint32_t join_of_branch(struct observe__front *f, unsigned side, uint32_t partner,
                               uint32_t other)
{
    uint32_t at = first_sharing(f, side, partner, other);
    if (at != OBSERVE__NONE)
        return observe__front_reads_lost(f, side, at) ? at : OBSERVE__NONE;
    bool is_join = observe__front_share_input(f, side, partner, other, false) &&
                   (observe__front_count_inputs(f, 1 - side, other) <
                        observe__front_count_inputs(f, side, partner) ||
                    is_read_behind(f, side, partner, other));
    return is_join ? partner : OBSERVE__NONE;
}

/* Returns the maker of the first input of a node that an operator has made; OBSERVE__NONE: there is none. */
static uint32_t first_maker(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (observe__front_is_input(f, side, i, false) && s->maker[i] < node)
            return s->maker[i];
    }
    return OBSERVE__NONE;
}

/* Returns a node, or the first one before it that is no view. */
static uint32_t past_views(const struct observe__front *f, unsigned side, uint32_t node)
{
    while (node != OBSERVE__NONE && observe__front_is_view(f, side, node))
        node = first_maker(f, side, node);
    return node;
}

/* Tells whether nodes of both sides do to one value the same, with another operand, as a layer of values and one of
 * keys: both are of one family, and so are the nodes before them up to those that read the value. */
static bool are_variants(const struct observe__front *f, unsigned side, uint32_t node,
                         uint32_t other)
{
    enum { STEPS = 4 };
    for (unsigned i = 0; i < STEPS; i++) {
        node = past_views(f, side, node);
        other = past_views(f, 1 - side, other);
        if (node == OBSERVE__NONE || other == OBSERVE__NONE ||
            !observe__front_is_same_family(f, side, node, other))
            return false;
        if (observe__front_share_input(f, side, node, other, false))
            return true;
        node = first_maker(f, side, node);
        other = first_maker(f, 1 - side, other);
    }
    return false;
}

/* Tells whether the marked chain to an operator ends with a variant of a node of the other side. */
static bool ends_with_variant(const struct observe__front *f, unsigned side, uint32_t partner,
                              uint32_t other)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[partner];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const uint32_t end = s->maker[i];
        if (observe__front_is_input(f, side, i, false) && end < partner && f->seen[end] &&
            are_variants(f, side, end, other))
            return true;
    }
    return false;
}

/* Tells whether an operator reads, beside a value that its partner reads, one that both sides have and that nothing on
 * the marked chain to the partner reads: it reads the wrong value, whatever the branch makes that it should read. */
static bool reads_wrong_value(const struct observe__front *f, unsigned side, uint32_t partner,
                              uint32_t other)
{
    const struct observe__side *s = f->q->side[1 - side];
    const struct probe_node *n = &s->dump->nodes.p[other];
    bool is_wrong = false;
    if (!observe__front_is_same_family(f, side, partner, other) ||
        !observe__front_share_input(f, side, partner, other, false) ||
        observe__front_count_inputs(f, side, partner) !=
            observe__front_count_inputs(f, 1 - side, other))
        return false;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct read__value *v = &s->value[i];
        if (!observe__front_is_input(f, 1 - side, i, false) || v->n < 2)
            continue;
        bool is_read = observe__front_reads_value(f, side, partner, v, false);
        for (uint32_t k = 0; k < partner && !is_read; k++)
            is_read = f->seen[k] && observe__front_reads_value(f, side, k, v, false);
        bool is_variant = s->maker[i] < other && ends_with_variant(f, side, partner, s->maker[i]);
        is_wrong |= !is_read && !is_variant;
    }
    return is_wrong;
}

/* Returns the end of a branch that begins at `node` and that the other side does not have: the operator
 * before one whose partner is at the other side's frontier, or else one that reads what an operator of the
 * other side's frontier reads. */
static uint32_t end_of_branch(struct observe__front *f, unsigned side, uint32_t node)
{
    for (uint32_t k = 0; k < f->n[1 - side]; k++) {
        uint32_t partner = observe__front_partner_of(f, 1 - side, f->list[1 - side][k]);
        if (partner == OBSERVE__NONE || partner <= node)
            continue;
        mark_chain(f, side, partner);
        if (!f->seen[node])
            continue;
        if (reads_wrong_value(f, side, partner, f->list[1 - side][k]))
            return partner;
        uint32_t join = join_of_branch(f, side, partner, f->list[1 - side][k]);
        return join != OBSERVE__NONE ? join : last_alone(f, side, partner, f->list[1 - side][k]);
    }
    for (uint32_t i = node + 1; i < observe__front_dump_of(f, side)->nodes.n; i++) {
        for (uint32_t k = 0; k < f->n[1 - side] && observe__front_is_touched(f, side, i); k++) {
            if (!observe__front_share_input(f, side, i, f->list[1 - side][k], false))
                continue;
            mark_chain(f, side, i);
            if (f->seen[node])
                return i;
        }
    }
    return last_behind(f, side, node);
}

/* ---- other inputs -------------------------------------- */

/* Returns the maker of a value that a node reads and its partner does not; OBSERVE__NONE: there is none. `from` is
 * the row of the node to begin with, and becomes the next one. */
static uint32_t next_other_maker(const struct observe__front *f, unsigned side, uint32_t node,
                                 uint32_t other, uint32_t *from)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = *from; i < n->first_row + n->nrows; i++) {
        if (!observe__front_is_input(f, side, i, false) || s->maker[i] == OBSERVE__NONE ||
            s->maker[i] >= node || s->value[i].n < 2 ||
            observe__front_reads_value(f, 1 - side, other, &s->value[i], false))
            continue;
        *from = i + 1;
        return s->maker[i];
    }
    return OBSERVE__NONE;
}

/* Finds operators that have made other inputs of nodes of both sides, do the same, and read one value that both
 * have and another that differs. */
static bool find_choice(const struct observe__front *f, const uint32_t node[2],
                        struct observe__parting *out)
{
    uint32_t t = observe__front_dump_of(f, 1)->nodes.p[node[1]].first_row, target;
    while ((target = next_other_maker(f, 1, node[1], node[0], &t)) != OBSERVE__NONE) {
        uint32_t g = observe__front_dump_of(f, 0)->nodes.p[node[0]].first_row, golden;
        while ((golden = next_other_maker(f, 0, node[0], node[1], &g)) != OBSERVE__NONE) {
            if (observe__front_is_view(f, 1, target) ||
                !observe__front_is_same_family(f, 1, target, golden) ||
                !observe__front_share_input(f, 1, target, golden, false))
                continue;
            *out = observe__front_part_at(1, target, golden);
            return true;
        }
    }
    return false;
}

/* Tells whether an operator reads a value from outside the dump that the other one does not read. */
static bool reads_unknown(const struct observe__front *f, unsigned side, uint32_t node,
                          uint32_t other)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        bool is_outside = s->maker[i] == OBSERVE__NONE && read__is_traceable(&s->value[i]);
        if (observe__front_is_input(f, side, i, false) && is_outside && s->value[i].n > 1 &&
            !observe__front_reads_value(f, 1 - side, other, &s->value[i], false))
            return true;
    }
    return false;
}

/* Both sides may have all values that partners read, as a sine and a cosine, and yet the partners read other
 * ones. Then the operators that chose them are to blame. */
static void blame_choice(struct observe__front *f)
{
    enum { STEPS = 8 };
    struct observe__parting next;
    for (unsigned i = 0; i < STEPS && find_choice(f, f->p->parting.node, &next); i++)
        f->p->parting = next;
}

/* Returns the operator that makes, from a value which the partner reads and the node does not, what the node reads
 * instead; OBSERVE__NONE: there is none. */
static uint32_t maker_between(const struct observe__front *f, unsigned side, uint32_t node,
                              uint32_t other)
{
    uint32_t row = observe__front_dump_of(f, side)->nodes.p[node].first_row, maker;
    while ((maker = next_other_maker(f, side, node, other, &row)) != OBSERVE__NONE) {
        const struct observe__side *s = f->q->side[side];
        const struct probe_node *n = &s->dump->nodes.p[maker];
        for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
            const struct read__value *v = &s->value[i];
            if (observe__front_is_input(f, side, i, false) && v->n > 1 &&
                observe__front_reads_value(f, 1 - side, other, v, false) &&
                !observe__front_reads_value(f, side, node, v, false))
                return maker;
        }
    }
    return OBSERVE__NONE;
}

/* An operator too much or too little may make a value that both sides have: the square of a root is what the root was
 * taken of. It reads what the partner of its reader reads. */
static void blame_between(struct observe__front *f)
{
    const struct observe__parting at = f->p->parting;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned side = 1 - i;
        uint32_t maker = maker_between(f, side, at.node[side], at.node[1 - side]);
        uint32_t mate = maker != OBSERVE__NONE ? f->q->mate[side][maker] : OBSERVE__NONE;
        bool is_on_both =
            mate != OBSERVE__NONE && observe__front_is_same_family(f, side, maker, mate);
        if (maker == OBSERVE__NONE || is_on_both || observe__front_is_view(f, side, maker) ||
            (f->p->losses[side][maker] & OBSERVE__LOST))
            continue;
        f->p->parting = observe__front_part_at(side, maker, OBSERVE__NONE);
        return;
    }
}

/* Tells whether a node takes a part of the elements that it reads. */
static bool is_slice(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    uint64_t in = 0, out = 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        uint64_t *most = observe__is_output(&s->dump->rows.p[i]) ? &out : &in;
        if (read__is_tensor(&s->value[i]) && s->value[i].n > *most)
            *most = s->value[i].n;
    }
    return observe__front_is_view(f, side, node) && out < in;
}

/* Slices are not recorded among functions, but in a graph. Where partners read different values, one of them
 * from outside the dump, the slice that makes the other value is to blame. */
static void blame_slice(struct observe__front *f)
{
    struct observe__parting *at = &f->p->parting;
    for (unsigned s = 0; s < 2; s++) {
        const struct observe__side *side = f->q->side[s];
        const struct probe_node *n = &side->dump->nodes.p[at->node[s]];
        if (!reads_unknown(f, 1 - s, at->node[1 - s], at->node[s]))
            continue;
        for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
            uint32_t maker = side->maker[i];
            if (observe__front_is_input(f, s, i, false) && maker != OBSERVE__NONE &&
                is_slice(f, s, maker) &&
                !observe__front_reads_value(f, 1 - s, at->node[1 - s], &side->value[i], false)) {
                *at = observe__front_part_at(s, maker, OBSERVE__NONE);
                return;
            }
        }
    }
}

/* ---- operators that read the same ---------------------------------------------- */

/* Returns the next tensor that a node reads and that is not the one before; NULL: there is none. A graph lists an
 * input twice where a kernel runs twice. */
static const struct read__value *next_input(const struct observe__front *f, unsigned side,
                                            uint32_t node, const struct read__value *before)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    uint32_t i = before != NULL ? (uint32_t)(before - s->value) + 1 : n->first_row;
    for (; i < n->first_row + n->nrows; i++) {
        const struct read__value *v = &s->value[i];
        if (observe__front_is_input(f, side, i, false) && read__is_tensor(v) && v->n > 1 &&
            (before == NULL || !observe__front_is_alike(f, v, before)))
            return v;
    }
    return NULL;
}

/* Tells whether nodes of both sides read the same values, several of them, in the same order. */
static bool reads_same(const struct observe__front *f, unsigned side, uint32_t node, uint32_t other)
{
    const struct read__value *a = next_input(f, side, node, NULL);
    const struct read__value *b = next_input(f, 1 - side, other, NULL);
    uint32_t n = 0;
    for (; a != NULL && b != NULL && observe__front_is_alike(f, a, b); n++) {
        a = next_input(f, side, node, a);
        b = next_input(f, 1 - side, other, b);
    }
    return a == NULL && b == NULL && n > 1;
}

/* Returns an operator of the other side's frontier that does the same with other values, which operators have made
 * that differ in one input, as by a sine and a cosine that changed places; or OBSERVE__NONE. */
static uint32_t parallel_of(const struct observe__front *f, unsigned side, uint32_t node)
{
    for (uint32_t i = 0; i < f->n[1 - side]; i++) {
        uint32_t pair[2];
        struct observe__parting found;
        pair[side] = node;
        pair[1 - side] = f->list[1 - side][i];
        if (observe__front_is_same_family(f, side, node, pair[1 - side]) &&
            find_choice(f, pair, &found))
            return pair[1 - side];
    }
    return OBSERVE__NONE;
}

/* ---- the verdict ------------------------------------------------------------- */

/* Decides between an operator of the frontier without a partner and one of the other side's frontier. */
static struct observe__parting decide(struct observe__front *f, unsigned side, uint32_t node,
                                      uint32_t other)
{
    uint32_t of_other = observe__front_partner_of(f, 1 - side, other);
    bool is_excused = of_other != OBSERVE__NONE && observe__front_reads_lost(f, side, of_other);
    if (is_excused && observe__front_share_input(f, side, of_other, other, false) &&
        !observe__front_is_same_family(f, side, of_other, other))
        return observe__front_part_at(side, of_other, other); /* max(x, 0.2 * x) for relu(x) */
    if (is_excused)
        return observe__front_part_at(side, end_of_branch(f, side, node), OBSERVE__NONE);
    if (observe__front_is_view(f, 1 - side, other) && !observe__front_is_view(f, side, node))
        return observe__front_part_at(side, node, OBSERVE__NONE);
    if (observe__front_is_view(f, side, node) && !observe__front_is_view(f, 1 - side, other))
        return observe__front_part_at(side, OBSERVE__NONE, other);
    return observe__front_part_at(side, node, other);
}

/* Tells whether a node only repeats the elements of a value that it reads, as a graph does before a product of batches:
 * the extremes and the mean stay. */
static bool repeats_elements(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    const struct read__value *in = NULL, *out = NULL;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct read__value **slot = observe__is_output(&s->dump->rows.p[i]) ? &out : &in;
        if (*slot == NULL && read__is_tensor(&s->value[i]))
            *slot = &s->value[i];
    }
    if (in == NULL || out == NULL || in->kind != READ__FLOAT || out->kind != READ__FLOAT ||
        out->n <= in->n || out->n % in->n != 0)
        return false;
    const double slack = f->p->alike * fabs(in->stat[PROBE_STAT_NORM]);
    return out->stat[PROBE_STAT_MAX] == in->stat[PROBE_STAT_MAX] &&
           out->stat[PROBE_STAT_MIN] == in->stat[PROBE_STAT_MIN] &&
           fabs(out->stat[PROBE_STAT_MEAN] - in->stat[PROBE_STAT_MEAN]) < slack;
}

/* Returns the first operator that differs and reads what a node has made; OBSERVE__NONE: there is none. */
static uint32_t first_reader(const struct observe__front *f, unsigned side, uint32_t node)
{
    for (uint32_t i = node + 1; i < observe__front_dump_of(f, side)->nodes.n; i++) {
        if (observe__front_is_touched(f, side, i) && observe__front_reads_from(f, side, i, node))
            return i;
    }
    return OBSERVE__NONE;
}

/* Tells whether an operator has changed places with the one that reads its result: the other side runs that one before,
 * and the operator's result goes to what reads both. */
static bool is_moved(const struct observe__front *f, unsigned side, uint32_t node, uint32_t partner)
{
    uint32_t next = first_reader(f, side, node), reader = first_reader(f, 1 - side, partner);
    if (next == OBSERVE__NONE || reader == OBSERVE__NONE)
        return false;
    uint32_t behind = observe__front_partner_of(f, 1 - side, reader);
    uint32_t of_next = observe__front_partner_of(f, side, next);
    return behind != OBSERVE__NONE && behind > next &&
           !observe__front_reads_from(f, side, behind, node) &&
           observe__front_reads_from(f, side, behind, next) &&
           (of_next == OBSERVE__NONE || of_next < partner);
}

static struct observe__parting judge_node(struct observe__front *f, unsigned side, uint32_t node)
{
    uint32_t partner = observe__front_partner_of(f, side, node);
    if (partner == OBSERVE__NONE)
        partner = partner_by_reader(f, side, node);
    if (partner != OBSERVE__NONE && (!observe__front_reads_lost(f, 1 - side, partner) ||
                                     observe__front_is_whole(f, side, node, partner)))
        return observe__front_part_at(side, node, partner);
    if (partner != OBSERVE__NONE) {
        uint32_t origin = last_before(f, 1 - side, partner, node);
        bool is_own = origin != OBSERVE__NONE &&
                      (repeats_elements(f, 1 - side, origin) || is_moved(f, side, node, partner));
        if (is_own)
            return observe__front_part_at(side, node, partner);
        return origin != OBSERVE__NONE
                   ? start_of_change(f, 1 - side, origin, node)
                   : observe__front_part_at(side, node, first_step(f, 1 - side, partner, node));
    }
    for (uint32_t i = 0; i < f->n[1 - side]; i++) {
        if (reads_same(f, side, node, f->list[1 - side][i]))
            return decide(f, side, node, f->list[1 - side][i]);
    }
    uint32_t parallel = parallel_of(f, side, node);
    if (parallel != OBSERVE__NONE)
        return observe__front_part_at(side, node, parallel);
    for (uint32_t i = 0; i < f->n[1 - side]; i++) {
        if (observe__front_share_input(f, side, node, f->list[1 - side][i], false))
            return decide(f, side, node, f->list[1 - side][i]);
    }
    return observe__front_part_at(side, end_of_branch(f, side, node), OBSERVE__NONE);
}

static enum ms_rc make_room(struct observe__front *f, struct ms_err *err)
{
    const size_t golden = observe__front_dump_of(f, 0)->nodes.n,
                 target = observe__front_dump_of(f, 1)->nodes.n;
    const size_t most = (golden > target ? golden : target) + 1;
    f->seen = ms_arena_calloc(f->p->arena, most, sizeof *f->seen);
    f->partner = ms_arena_alloc(f->p->arena, most * sizeof *f->partner);
    if (f->seen == NULL || f->partner == NULL)
        return ms_arena_fail(f->p->arena, err);
    return observe__find_weights(f->q->side, f->p->arena, f->weights, err);
}

/* Functions are recorded as a whole, so the search begins with the side that is no graph, unless only the graph
 * shows surely where values part. */
static unsigned leading_side(const struct observe__front *f)
{
    unsigned side =
        observe__front_dump_of(f, 0)->is_graph && !observe__front_dump_of(f, 1)->is_graph;
    bool is_known[2];
    for (unsigned s = 0; s < 2; s++)
        is_known[s] =
            f->n[s] != 0 && (is_sure(f, s, f->list[s][0]) || has_other_input(f, s, f->list[s][0]));
    bool other = f->n[side] == 0 || (is_known[1 - side] && !is_known[side]);
    return other ? 1 - side : side;
}

enum ms_rc observe__find_parting(struct observe__part *p, const struct observe__pairing *q,
                                 struct ms_err *err)
{
    struct observe__front f = {.p = p, .q = q};
    p->parting = (struct observe__parting){{OBSERVE__NONE, OBSERVE__NONE}, false};
    if (!p->ends_differ || p->starts_differ)
        return MS_OK;
    MS_TRY(make_room(&f, err));
    list_side(&f, 0);
    list_side(&f, 1);
    unsigned side = leading_side(&f);
    if (f.n[side] == 0)
        return MS_OK;
    p->parting = judge_node(&f, side, f.list[side][0]);
    if (p->parting.node[0] == OBSERVE__NONE || p->parting.node[1] == OBSERVE__NONE)
        return MS_OK;
    blame_choice(&f);
    blame_slice(&f);
    if (p->parting.node[0] != OBSERVE__NONE && p->parting.node[1] != OBSERVE__NONE)
        blame_between(&f);
    return MS_OK;
}
