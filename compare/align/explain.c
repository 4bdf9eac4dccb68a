/* SPDX-License-Identifier: MIT
 *
 * explain: explains why a node is paired as it is, and which candidate came second.
 *
 * The evidence of a pair is computed again and compared with that of the rival on
 * either side: the second-best golden operator for the target's operator, and the
 * second-best target operator for the golden one. Rivals are searched around the
 * partner, where the order of execution allows them. Modules are explained by the
 * pairs inside both.
 */
#include "compare/align/emit.h"
#include "compare/align/score.h"
#include "probe/base/assert.h"

enum { AROUND = 48, UP = 12, NEAR_MODULES = 64 };
enum { SCORE, OPERATOR, SHAPE, MODULES, OUTPUTS, INPUTS, CONSUMERS, PARAMETERS, TERMS };

static const char *const side_names[2] = {"golden side", "target"};

struct weighed { /* a golden and a target operator with their evidence */
    uint32_t op[2];
    struct align__evidence e;
};

struct teller {
    const struct cmp_align *al;
    const struct align__ctx *c;
    struct ms_buf *out;
};

static struct ms_str name_of(const struct align__side *s, uint32_t node)
{
    return probe_node_name(s->dump, node);
}

static struct ms_str op_name(const struct teller *t, int side, uint32_t op)
{
    const struct align__side *s = &t->c->side[side];
    return name_of(s, s->ops.p[op].node);
}

/* ---- operators ----------------------------------------------------------- */

/* Computes the evidence for an operator of `side` and an operator of the other side. */
static struct weighed weigh_ops(const struct align__ctx *c, int side, uint32_t op, uint32_t other)
{
    struct weighed w = {.op = {side == 0 ? op : other, side == 0 ? other : op}};
    align__weigh_pair(c, w.op[0], w.op[1], &w.e);
    return w;
}

/* Returns the position on the other side around which rivals are searched: the partner of the
 * operator, or of the nearest paired operator before it. */
static uint32_t place_of(const struct align__ctx *c, int side, uint32_t op)
{
    for (uint32_t i = op + 1; i-- > 0;) {
        if (c->op[side][i] != ALIGN__NONE)
            return c->op[side][i];
    }
    return 0;
}

/* Finds the second-best candidate for an operator on the other side. Returns false when there is
 * none. */
static bool find_rival(const struct align__ctx *c, int side, uint32_t op, struct weighed *best)
{
    ms_assert(op < c->side[side].ops.n);
    uint32_t n = (uint32_t)c->side[1 - side].ops.n;
    uint32_t at = place_of(c, side, op);
    uint32_t from = at > AROUND ? at - AROUND : 0;
    uint32_t to = n - at > AROUND ? at + AROUND : n;
    bool found = false;
    for (uint32_t i = from; i < to; i++) {
        if (i == c->op[side][op])
            continue;
        struct weighed w = weigh_ops(c, side, op, i);
        if (w.e.veto || (found && w.e.score <= best->e.score))
            continue;
        *best = w;
        found = true;
    }
    return found;
}

/* Lists the terms of a score as they are shown, from 0 to 1; below 0: the term could not be
 * computed. */
static void list_terms(const struct align__ctx *c, const struct align__evidence *e, float v[TERMS])
{
    v[SCORE] = e->score;
    v[OPERATOR] = e->family;
    v[SHAPE] = e->shape;
    v[MODULES] = (float)(e->module + 2) / 4;
    v[OUTPUTS] = c->by_value && !e->blind ? e->out : -1;
    v[INPUTS] = e->in;
    v[CONSUMERS] = e->shared_use;
    v[PARAMETERS] = e->param;
}

static const char *const term_names[TERMS] = {"score",   "operator", "shape",     "modules",
                                              "outputs", "inputs",   "consumers", "parameters"};

/* Returns the term in which the rival is weakest compared with the pair, weighted as in the score;
 * TERMS: the rival is weaker in none. */
static unsigned weak_point(const float pair[TERMS], const float rival[TERMS])
{
    static const float weight[TERMS] = {0, 0.6F, 0.3F, 1, 1, 0.5F, 0.5F, 0.8F};
    unsigned worst = TERMS;
    float most = 0;
    for (unsigned i = 1; i < TERMS; i++) {
        float behind = weight[i] * (pair[i] - (rival[i] > 0 ? rival[i] : 0));
        if (behind > most) {
            most = behind;
            worst = i;
        }
    }
    return worst;
}

static void put_partner_of_rival(const struct teller *t, int side, uint32_t op)
{
    uint32_t partner = t->c->op[side][op];
    if (partner == ALIGN__NONE)
        ms_buf_puts(t->out, "; it has no partner");
    else
        ms_buf_printf(t->out, "; it is paired with %.*s",
                      MS_STR_ARG(op_name(t, 1 - side, partner)));
}

/* Writes "Next for X on the golden side came Y ...". pair is NULL where X has no partner. */
static void put_rival(const struct teller *t, int side, const struct weighed *rival,
                      const struct weighed *pair)
{
    float own[TERMS], theirs[TERMS];
    ms_buf_printf(t->out, "%s for %.*s on the %s came %.*s, score %.2f",
                  pair != NULL ? "Next" : "Nearest", MS_STR_ARG(op_name(t, side, rival->op[side])),
                  side_names[1 - side], MS_STR_ARG(op_name(t, 1 - side, rival->op[1 - side])),
                  (double)rival->e.score);
    if (pair != NULL) {
        list_terms(t->c, &pair->e, own);
        list_terms(t->c, &rival->e, theirs);
        unsigned weak = weak_point(own, theirs);
        ms_buf_printf(t->out, " against %.2f", (double)pair->e.score);
        if (weak != TERMS)
            ms_buf_printf(t->out, ", most behind in %s", term_names[weak]);
    }
    put_partner_of_rival(t, 1 - side, rival->op[1 - side]);
    ms_buf_puts(t->out, ".\n");
}

static void put_cell(struct ms_buf *out, unsigned term, float v)
{
    if (term != SCORE && v < 0)
        ms_buf_printf(out, "%14s", "-");
    else
        ms_buf_printf(out, "%14.2f", (double)v);
}

/* Writes the evidence of up to three pairs side by side; entries of list may be NULL. */
static void put_table(const struct teller *t, const struct weighed *const list[3])
{
    static const char *const heads[3] = {"this pair", "next golden", "next target"};
    float v[3][TERMS];
    ms_buf_printf(t->out, "\n  %-12s", "");
    for (int i = 0; i < 3; i++) {
        if (list[i] == NULL)
            continue;
        ms_buf_printf(t->out, "%14s", heads[i]);
        list_terms(t->c, &list[i]->e, v[i]);
    }
    for (unsigned term = 0; term < TERMS; term++) {
        ms_buf_printf(t->out, "\n  %-12s", term_names[term]);
        for (int i = 0; i < 3; i++) {
            if (list[i] != NULL)
                put_cell(t->out, term, v[i][term]);
        }
    }
    ms_buf_puts(t->out, "\n");
}

static void put_families(const struct teller *t, const struct weighed *w)
{
    const char *g = align__family_text(t->c->side[0].ops.p[w->op[0]].family);
    const char *b = align__family_text(t->c->side[1].ops.p[w->op[1]].family);
    if (strcmp(g, b) == 0)
        ms_buf_printf(t->out, "Both are of the family %s.\n", g);
    else
        ms_buf_printf(t->out, "The golden operator is of the family %s, the target's %s.\n", g, b);
}

static void explain_op(const struct teller *t, int side, uint32_t op)
{
    ms_assert(op < t->c->side[side].ops.n);
    uint32_t partner = t->c->op[side][op];
    struct weighed pair, rival[2];
    bool paired = partner != ALIGN__NONE;
    if (paired) {
        pair = weigh_ops(t->c, side, op, partner);
        put_families(t, &pair);
    }
    /* rival[0] is a golden operator, a rival of the partner of the target's operator; rival[1] is a
     * target operator. */
    uint32_t own[2] = {side == 0 ? op : partner, side == 1 ? op : partner};
    bool has[2] = {own[1] != ALIGN__NONE && find_rival(t->c, 1, own[1], &rival[0]),
                   own[0] != ALIGN__NONE && find_rival(t->c, 0, own[0], &rival[1])};
    for (int i = 0; i < 2; i++) {
        if (has[i])
            put_rival(t, 1 - i, &rival[i], paired ? &pair : NULL);
        else if (own[1 - i] != ALIGN__NONE)
            ms_buf_printf(t->out, "Nothing else on the %s came into question for %.*s.\n",
                          side_names[i], MS_STR_ARG(op_name(t, 1 - i, own[1 - i])));
    }
    if (paired || has[0] || has[1])
        put_table(t,
                  (const struct weighed *const[3]){paired ? &pair : NULL, has[0] ? &rival[0] : NULL,
                                                   has[1] ? &rival[1] : NULL});
}

/* Returns the forward operator whose backward or recomputation a node is, or ALIGN__NONE. */
static uint32_t forward_of(const struct align__side *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->ops.n; i++) {
        uint32_t twin = s->ops.p[i].twin;
        if (s->ops.p[i].back == node || (twin != ALIGN__NONE && s->again.p[twin].back == node) ||
            (twin != ALIGN__NONE && s->again.p[twin].node == node))
            return i;
    }
    return ALIGN__NONE;
}

/* ---- modules ------------------------------------------------------------- */

/* Returns the module whose backward or recomputation a node is, or ALIGN__NONE. */
static uint32_t module_behind(const struct align__side *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->modules.n; i++) {
        uint32_t twin = s->modules.p[i].twin;
        if (s->modules.p[i].back == node ||
            (twin != ALIGN__NONE &&
             (s->modules.p[twin].back == node || s->modules.p[twin].node == node)))
            return i;
    }
    return ALIGN__NONE;
}

struct candidate { /* a module of the other side and the number of pairs it shares */
    uint32_t module, shared, all;
};

static bool contains_op(const struct align__side *s, uint32_t module, uint32_t op)
{
    return s->ops.p[op].parent != ALIGN__NONE && align__inside(s, s->ops.p[op].parent, module);
}

static uint32_t count_pairs(const struct align__ctx *c, int side, uint32_t module)
{
    const struct align__module *m = &c->side[side].modules.p[module];
    uint32_t n = 0;
    for (uint32_t i = m->lo; i <= m->hi && m->lo <= m->hi; i++)
        n += c->op[side][i] != ALIGN__NONE && contains_op(&c->side[side], module, i);
    return n;
}

static unsigned add_candidate(struct candidate list[NEAR_MODULES], unsigned n, uint32_t module)
{
    ms_assert(n <= NEAR_MODULES);
    for (unsigned i = 0; i < n; i++) {
        if (list[i].module == module) {
            list[i].shared++;
            return n;
        }
    }
    if (n < NEAR_MODULES)
        list[n++] = (struct candidate){module, 1, 0};
    return n;
}

/* Lists the modules of the other side that contain partners of the operators inside a module. */
static unsigned list_candidates(const struct align__ctx *c, int side, uint32_t module,
                                struct candidate list[NEAR_MODULES])
{
    ms_assert(module < c->side[side].modules.n);
    const struct align__side *s = &c->side[side], *o = &c->side[1 - side];
    const struct align__module *m = &s->modules.p[module];
    unsigned n = 0;
    for (uint32_t i = m->lo; i <= m->hi && m->lo <= m->hi; i++) {
        uint32_t partner = c->op[side][i];
        if (partner == ALIGN__NONE || !contains_op(s, module, i))
            continue;
        uint32_t up = o->ops.p[partner].parent;
        for (unsigned k = 0; up != ALIGN__NONE && k < UP; k++, up = o->modules.p[up].parent)
            n = add_candidate(list, n, up);
    }
    for (unsigned i = 0; i < n; i++)
        list[i].all = count_pairs(c, 1 - side, list[i].module);
    return n;
}

static void put_candidate(const struct teller *t, int side, bool next, const struct candidate *k,
                          uint32_t own)
{
    struct ms_str name = t->c->side[1 - side].modules.p[k->module].name;
    if (next)
        ms_buf_printf(t->out, "Next came %.*s, which holds", MS_STR_ARG(name));
    else
        ms_buf_printf(t->out, "%.*s holds", MS_STR_ARG(name));
    ms_buf_printf(t->out, " %u of the %u pairs inside it, and %u others.\n", k->shared, own,
                  k->all - k->shared);
}

static void explain_module(const struct teller *t, int side, uint32_t module)
{
    ms_assert(module < t->c->side[side].modules.n);
    struct candidate list[NEAR_MODULES];
    uint32_t partner = t->c->mod_pair[side][module];
    uint32_t own = count_pairs(t->c, side, module);
    unsigned n = list_candidates(t->c, side, module, list);
    const struct candidate *next = NULL;
    if (n == 0)
        ms_buf_puts(t->out,
                    "No operators inside of it are paired: order, sizes and names count.\n");
    for (unsigned i = 0; i < n; i++) {
        if (list[i].module == partner)
            put_candidate(t, side, false, &list[i], own);
        else if (next == NULL || (uint64_t)list[i].shared * (own + next->all) >
                                     (uint64_t)next->shared * (own + list[i].all))
            next = &list[i];
    }
    if (next != NULL)
        put_candidate(t, side, true, next, own);
}

/* ---- pairs --------------------------------------------------------------- */

static void put_list(const struct teller *t, int side, const char *text, const uint32_t *nodes,
                     size_t n)
{
    ms_assert(nodes != NULL || n == 0);
    enum { SHOWN = 12 };
    if (n == 0)
        return;
    ms_buf_puts(t->out, text);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        ms_buf_printf(t->out, "%s%.*s", i == 0 ? " " : ", ",
                      MS_STR_ARG(name_of(&t->c->side[side], nodes[i])));
    ms_buf_printf(t->out, n > SHOWN ? " and %zu more.\n" : ".\n", n - SHOWN);
}

static const char *reason_of(const struct cmp_align_pair *p)
{
    ms_assert((unsigned)p->how < CMP_ALIGN_HOWS);
    static const char *const why[CMP_ALIGN_HOWS] = {"you said so",
                                                    "their values agree",
                                                    "operator, shape and place agree",
                                                    "it is the best there is at this place",
                                                    "one is a part of the other",
                                                    "both read the same value first",
                                                    "it is computed again for backward",
                                                    "the same pairs lie inside both"};
    return why[p->how];
}

/* Writes one pair of the node as a sentence. */
static void put_pair(const struct teller *t, int side, uint32_t node,
                     const struct cmp_align_pair *p, bool first)
{
    const uint32_t *nodes;
    uint32_t other = side == 1 ? p->golden : p->target;
    if (first)
        ms_buf_printf(t->out, "%.*s of the %s is paired with",
                      MS_STR_ARG(name_of(&t->c->side[side], node)), side_names[side]);
    else
        ms_buf_puts(t->out, "It is held against more than one:");
    ms_buf_printf(t->out, " %.*s of the %s, confidence %.2f: %s.\n",
                  MS_STR_ARG(name_of(&t->c->side[1 - side], other)), side_names[1 - side],
                  (double)p->confidence, reason_of(p));
    size_t n = cmp_align_members(t->al, p, true, &nodes);
    put_list(t, 0, "On the golden side these run in its place as well:", nodes, n);
    n = cmp_align_members(t->al, p, false, &nodes);
    put_list(t, 1, "On the target these run in its place as well:", nodes, n);
}

/* Writes all pairs of a node and returns their number. */
static size_t put_pairs(const struct teller *t, int side, uint32_t node)
{
    const struct cmp_align_pair *p;
    size_t n = side == 1 ? cmp_align_of(t->al, node, &p) : 0;
    if (side == 0)
        p = cmp_align_pairs(t->al, &n);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (side == 1 || p[i].golden == node)
            put_pair(t, side, node, &p[i], found++ == 0);
    }
    if (found == 0)
        ms_buf_printf(t->out, "%.*s of the %s has no partner.\n",
                      MS_STR_ARG(name_of(&t->c->side[side], node)), side_names[side]);
    return found;
}

/* Returns the paired operator of which an operator is a member, or ALIGN__NONE. */
static uint32_t head_of(const struct cmp_align *al, int side, uint32_t op)
{
    ms_assert(op < al->c.side[side].ops.n);
    const struct align__ctx *c = &al->c;
    for (uint32_t i = op + 1; i < c->side[side].ops.n; i++) {
        const struct align__members *m = &al->members[side][i];
        for (uint32_t k = 0; k < m->n; k++) {
            if (al->list.p[m->first + k] == c->side[side].ops.p[op].node)
                return i;
        }
        if (c->op[side][i] != ALIGN__NONE)
            break;
    }
    return ALIGN__NONE;
}

static void put_head(const struct teller *t, int side, uint32_t op)
{
    uint32_t head = head_of(t->al, side, op);
    if (head == ALIGN__NONE)
        return;
    struct ms_str other = op_name(t, 1 - side, t->c->op[side][head]);
    ms_buf_printf(t->out, "It runs with %.*s in place of %.*s of the %s.\n",
                  MS_STR_ARG(op_name(t, side, head)), MS_STR_ARG(other), side_names[1 - side]);
}

void cmp_align_explain(const struct cmp_align *al, bool golden, uint32_t node, struct ms_buf *out)
{
    ms_assert(node < al->c.side[golden ? 0 : 1].dump->nodes.n);
    const struct teller t = {al, &al->c, out};
    int side = golden ? 0 : 1;
    uint32_t op = al->op_of[side][node];
    uint32_t module = al->module_of[side][node];
    if (put_pairs(&t, side, node) == 0 && op != ALIGN__NONE)
        put_head(&t, side, op);
    if (op == ALIGN__NONE && module == ALIGN__NONE) {
        op = forward_of(&al->c.side[side], node);
        module = op == ALIGN__NONE ? module_behind(&al->c.side[side], node) : ALIGN__NONE;
        if (op != ALIGN__NONE || module != ALIGN__NONE)
            ms_buf_printf(out, "It goes with its forward, %.*s, of which the rest speaks.\n",
                          MS_STR_ARG(op != ALIGN__NONE ? op_name(&t, side, op)
                                                       : al->c.side[side].modules.p[module].name));
    }
    if (op != ALIGN__NONE)
        explain_op(&t, side, op);
    else if (module != ALIGN__NONE)
        explain_module(&t, side, module);
    if (!al->c.by_value)
        ms_buf_puts(out, "The runs have no values in common: structure alone counts.\n");
}
