/* SPDX-License-Identifier: MIT
 *
 * front_partner: where values are lost, the alignment only guesses partners; here they are held against what they read.
 */
#include "compare/observe/front_partner.h"
#include "compare/align/likeness.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/node_facts.h"

/* ---- what nodes read --------------------------------------------------------- */

const struct probe_dump *observe__front_dump_of(const struct observe__front *f, unsigned side)
{
    return f->q->side[side]->dump;
}

struct ms_str observe__front_op_of(const struct observe__front *f, unsigned side, uint32_t node)
{
    return observe__op_name(observe__front_dump_of(f, side), node);
}

bool observe__front_is_view(const struct observe__front *f, unsigned side, uint32_t node)
{
    return (observe__op_flags(observe__front_op_of(f, side, node)) & OBSERVE__VIEW) != 0;
}

/* Tells whether a node joins tensors, which views do not. */
bool observe__front_is_join(const struct observe__front *f, unsigned side, uint32_t node)
{
    return align__family_find(observe__front_op_of(f, side, node)) ==
           align__family_find(MS_STR("Torch.cat"));
}

bool observe__front_reads_lost(const struct observe__front *f, unsigned side, uint32_t node)
{
    return (f->p->losses[side][node] & OBSERVE__IN_LOST) != 0;
}

bool observe__front_has_parameter(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct probe_node *n = &observe__front_dump_of(f, side)->nodes.p[node];
    bool found = false;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++)
        found |= f->weights[side][i];
    return found;
}

/* Tells whether a node differs at all. */
bool observe__front_is_touched(const struct observe__front *f, unsigned side, uint32_t node)
{
    return (f->p->losses[side][node] & (OBSERVE__LOST | OBSERVE__IN_LOST)) != 0;
}

bool observe__front_is_alike(const struct observe__front *f, const struct read__value *a,
                             const struct read__value *b)
{
    return read__is_tensor(a) && read__is_tensor(b) && a->n == b->n && a->kind == b->kind &&
           observe__identity_gap(a, b) < f->p->alike;
}

/* Tells whether a row is an input that is a parameter's value, or one that is none. */
bool observe__front_is_input(const struct observe__front *f, unsigned side, uint32_t row,
                             bool weights)
{
    return !observe__is_output(&observe__front_dump_of(f, side)->rows.p[row]) &&
           f->weights[side][row] == weights;
}

/* Tells whether a row tells of what an operator reads: a single number often equals another one by chance, unless an
 * operator has made it. */
static bool tells(const struct observe__front *f, unsigned side, uint32_t row)
{
    return f->q->side[side]->value[row].n > 1 || f->q->side[side]->maker[row] != OBSERVE__NONE;
}

/* Tells whether a node reads a value. */
bool observe__front_reads_value(const struct observe__front *f, unsigned side, uint32_t node,
                                const struct read__value *v, bool weights)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (observe__front_is_input(f, side, i, weights) && tells(f, side, i) &&
            observe__front_is_alike(f, v, &s->value[i]))
            return true;
    }
    return false;
}

/* Tells whether nodes of both sides read the same value, or the same parameter. */
bool observe__front_share_input(const struct observe__front *f, unsigned side, uint32_t node,
                                uint32_t other, bool weights)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (observe__front_is_input(f, side, i, weights) && tells(f, side, i) &&
            observe__front_reads_value(f, 1 - side, other, &s->value[i], weights))
            return true;
    }
    return false;
}

/* Tells whether a node reads what another one of its side has made. */
bool observe__front_reads_from(const struct observe__front *f, unsigned side, uint32_t node,
                               uint32_t maker)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (!observe__is_output(&s->dump->rows.p[i]) && s->maker[i] == maker)
            return true;
    }
    return false;
}

bool observe__front_is_same_family(const struct observe__front *f, unsigned side, uint32_t node,
                                   uint32_t other)
{
    return align__family_find(observe__front_op_of(f, side, node)) ==
           align__family_find(observe__front_op_of(f, 1 - side, other));
}

struct observe__parting observe__front_part_at(unsigned side, uint32_t node, uint32_t other)
{
    struct observe__parting out = {.is_found = true};
    out.node[side] = node;
    out.node[1 - side] = other;
    return out;
}

/* Counts the tensors of several elements that a node reads. */
unsigned observe__front_count_inputs(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[node];
    unsigned count = 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        bool is_again = false;
        for (uint32_t k = n->first_row; k < i && !is_again; k++)
            is_again = observe__front_is_input(f, side, k, false) && s->maker[k] == s->maker[i] &&
                       s->maker[i] != OBSERVE__NONE &&
                       observe__front_is_alike(f, &s->value[k], &s->value[i]);
        count += observe__front_is_input(f, side, i, false) && read__is_tensor(&s->value[i]) &&
                 s->value[i].n > 1 && s->value[i].kind == READ__FLOAT && !is_again;
    }
    return count;
}

/* ---- partners -------------------------------------------------------------- */

/* Returns the partner of the operator in whose place a node runs with others. */
static uint32_t partner_of_whole(const struct observe__front *f, unsigned side, uint32_t node)
{
    size_t n = 0;
    const struct cmp_align_pair *pairs = cmp_align_pairs(f->q->al, &n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *list;
        size_t many = cmp_align_members(f->q->al, &pairs[i], side == 0, &list);
        for (size_t k = 0; k < many; k++) {
            if (list[k] == node)
                return side == 0 ? pairs[i].target : pairs[i].golden;
        }
    }
    return OBSERVE__NONE;
}

/* Tells whether partners are a function and the last of the steps inside it, as the alignment found them.
 * An operator of the same family, or with the same parameter, has other steps around it too much or too
 * little. */
bool observe__front_is_whole(const struct observe__front *f, unsigned side, uint32_t node,
                             uint32_t other)
{
    const uint32_t of[2] = {side == 0 ? node : other, side == 0 ? other : node};
    const struct cmp_align_pair *pairs;
    if (f->q->al == NULL || observe__front_is_same_family(f, side, node, other) ||
        observe__front_share_input(f, side, node, other, true))
        return false;
    size_t n = cmp_align_of(f->q->al, of[1], &pairs);
    while (n != 0 && pairs[n - 1].golden != of[0])
        n--;
    const uint32_t *list;
    return n != 0 && (cmp_align_members(f->q->al, &pairs[n - 1], true, &list) != 0 ||
                      cmp_align_members(f->q->al, &pairs[n - 1], false, &list) != 0);
}

/* Tells whether operators of both sides have parameters, and not the same one: they are other layers. */
static bool have_other_parameters(const struct observe__front *f, unsigned side, uint32_t node,
                                  uint32_t other)
{
    return observe__front_has_parameter(f, side, node) &&
           observe__front_has_parameter(f, 1 - side, other) &&
           !observe__front_share_input(f, side, node, other, true);
}

/* Returns the first parameter that a node reads; NULL: it has none. */
static const struct read__value *parameter_of(const struct observe__front *f, unsigned side,
                                              uint32_t node)
{
    const struct probe_node *n = &observe__front_dump_of(f, side)->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (observe__front_is_input(f, side, i, true))
            return &f->q->side[side]->value[i];
    }
    return NULL;
}

/* Counts the operators of a side's forward pass that read a parameter, and sets *nth to the one that `before` others
 * precede. */
static uint32_t count_readers(const struct observe__front *f, unsigned side,
                              const struct read__value *v, uint32_t before, uint32_t *nth)
{
    const uint32_t last = f->p->last_forward[side];
    uint32_t n = 0;
    for (uint32_t i = 0; last != OBSERVE__NONE && i <= last; i++) {
        if (!observe__is_api(&observe__front_dump_of(f, side)->nodes.p[i], PROBE_FORWARD) ||
            !observe__front_reads_value(f, side, i, v, true))
            continue;
        *nth = n++ == before ? i : *nth;
    }
    return n;
}

/* Returns the operator of the other side that has the node's parameter and differs, the one at the same place among
 * the calls with it; OBSERVE__NONE: there is none, or the sides have another number of calls. */
static uint32_t partner_by_parameter(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct read__value *v = parameter_of(f, side, node);
    uint32_t own = OBSERVE__NONE, other = OBSERVE__NONE, at = 0;
    if (v == NULL)
        return OBSERVE__NONE;
    uint32_t calls = count_readers(f, side, v, 0, &own);
    while (own != node && at + 1 < calls)
        count_readers(f, side, v, ++at, &own);
    bool is_same = own == node && count_readers(f, 1 - side, v, at, &other) == calls;
    return is_same && observe__front_is_touched(f, 1 - side, other) ? other : OBSERVE__NONE;
}

/* Tells whether an operator of the other side is the partner of another node by a parameter that the node does not
 * have. */
static bool is_of_parameter(const struct observe__front *f, unsigned side, uint32_t node,
                            uint32_t other)
{
    if (observe__front_has_parameter(f, side, node))
        return false;
    uint32_t named = partner_by_parameter(f, 1 - side, other);
    return named != OBSERVE__NONE && named != node;
}

/* Tells whether nodes of both sides read one value and as many tensors: what reads another one besides does
 * something else. */
static bool read_alike(const struct observe__front *f, unsigned side, uint32_t node, uint32_t other)
{
    return observe__front_share_input(f, side, node, other, false) &&
           observe__front_count_inputs(f, side, node) ==
               observe__front_count_inputs(f, 1 - side, other);
}

/* Returns the operator of the other side that does the same with the same value, or OBSERVE__NONE. */
static uint32_t twin_of(const struct observe__front *f, unsigned side, uint32_t node)
{
    const struct probe_dump *d = observe__front_dump_of(f, 1 - side);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        if (observe__front_is_touched(f, 1 - side, i) && read_alike(f, side, node, i) &&
            observe__front_is_same_family(f, side, node, i) &&
            !have_other_parameters(f, side, node, i) && !is_of_parameter(f, side, node, i))
            return i;
    }
    return OBSERVE__NONE;
}

/* Tells whether a node of an operator's family, which reads a lost value as the operator does, makes what the
 * reader's partner reads. */
static bool has_maker_like(const struct observe__front *f, unsigned side, uint32_t reader,
                           uint32_t other)
{
    const struct observe__side *s = f->q->side[side];
    const struct probe_node *n = &s->dump->nodes.p[reader];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const uint32_t maker = s->maker[i];
        if (observe__front_is_input(f, side, i, false) && maker < reader &&
            observe__front_reads_lost(f, side, maker) &&
            observe__front_is_same_family(f, side, maker, other))
            return true;
    }
    return false;
}

/* Tells whether an operator that reads a lost value is another node's partner, as what reads its result shows: a sum at
 * the end is not one at the begin. */
static bool is_read_as_anothers(const struct observe__front *f, unsigned side, uint32_t node,
                                uint32_t other)
{
    const struct probe_dump *d = observe__front_dump_of(f, 1 - side);
    if (observe__front_reads_lost(f, side, node) || !observe__front_reads_lost(f, 1 - side, other))
        return false;
    for (uint32_t i = other + 1; i < d->nodes.n; i++) {
        const uint32_t reader = f->q->mate[1 - side][i];
        if (reader != OBSERVE__NONE && observe__front_is_touched(f, 1 - side, i) &&
            observe__front_reads_from(f, 1 - side, i, other) &&
            observe__front_is_same_family(f, side, reader, i) &&
            !observe__front_reads_from(f, side, reader, node) &&
            has_maker_like(f, side, reader, other))
            return true;
    }
    return false;
}

/* Tells whether an operator of the same family is none of a node's: it reads more or fewer tensors, it is
 * another layer, it reads a value that another node of its family reads, or what another node makes is read instead. */
static bool is_anothers(const struct observe__front *f, unsigned side, uint32_t node,
                        uint32_t other)
{
    uint32_t twin = twin_of(f, 1 - side, other);
    return (twin != OBSERVE__NONE && twin != node) || is_read_as_anothers(f, side, node, other) ||
           observe__front_count_inputs(f, side, node) !=
               observe__front_count_inputs(f, 1 - side, other) ||
           have_other_parameters(f, side, node, other) || is_of_parameter(f, side, node, other);
}

/* Returns the partner of a node if it differs and does the same: it has the same operator, is the last
 * step of it, or reads a value, such as a parameter, that the node reads. Where values are lost, partners
 * are only guessed. */
uint32_t observe__front_partner_of(const struct observe__front *f, unsigned side, uint32_t node)
{
    uint32_t other = f->q->mate[side][node];
    if (other == OBSERVE__NONE && f->q->al != NULL)
        other = partner_of_whole(f, side, node);
    if (other != OBSERVE__NONE && !observe__front_is_touched(f, 1 - side, other))
        other = OBSERVE__NONE;
    bool is_same = other != OBSERVE__NONE && observe__front_is_same_family(f, side, node, other);
    uint32_t twin = twin_of(f, side, node);
    uint32_t named = partner_by_parameter(f, side, node);
    bool by_weight =
        other != OBSERVE__NONE && observe__front_share_input(f, side, node, other, true);
    if (by_weight)
        return other;
    if (named != OBSERVE__NONE)
        return named;
    bool by_value = is_same && read_alike(f, side, node, other) &&
                    !have_other_parameters(f, side, node, other) &&
                    !is_of_parameter(f, side, node, other);
    if (other != OBSERVE__NONE && (by_value || observe__front_is_whole(f, side, node, other)))
        return other;
    if (twin != OBSERVE__NONE)
        return twin;
    return is_same && !is_anothers(f, side, node, other) ? other : OBSERVE__NONE;
}
