/* SPDX-License-Identifier: MIT
 *
 * certainty: estimates how sure it is that a suspect is the mistake.
 *
 * The log odds that suspect 1 is right are a sum of what kind of evidence names it and of what the dumps
 * hold. The weights were fitted by maximum likelihood to half of 2,491 lists of suspects of recorded models,
 * of which every mistake is known; on the other half, 92 % were right of what was said to be 92 % sure, 83 % of
 * 83 %, and 28 % of what was below 50 %. Rules were made with some of these models before their eyes, so the
 * weights of dumps with modules, of tensors and of two programs are lower: those with which the models that no
 * rule had seen come out right. Of 2,598 lists, right are 97 % of what says 95 %, 90 % of 86 %, 85 % of 78 % and
 * 35 % of what says less than 50 % (tests/models/certainty.py).
 */
#include "compare/source/certainty.h"
#include "probe/base/assert.h"

#include <math.h>

/* What names a suspect. */
enum evidence {
    EXACT, /* an argument, a parameter or a connection that is another one */
    ALONE, /* an operator of one side alone, NaN out of none */
    VALUE, /* a difference that inputs and noise do not explain */
    INPUT, /* an input that no operator made */
    /* as VALUE, and what it reads may be in another order: right in 31 of 43 lists of the models that the weight was
     * fitted to, and in 6 of 10 of others */
    ORDER,
    GRAD,  /* requires_grad */
    SMALL, /* a difference of less than 300 times what is explained */
    SIGN, /* a shape, type or position without a value, a step that is no longer exact, a checksum */
    EVIDENCES
};
static const double evidence_odds[EVIDENCES] = {
    [EXACT] = 4.0, [ALONE] = 1.4, [VALUE] = 0.7,  [INPUT] = 0.7,
    [ORDER] = 0.2, [GRAD] = 0.2,  [SMALL] = -2.9, [SIGN] = -1.3};
static const double end_odds = -0.6; /* no later node carries the difference on */
static const double small_value = 1, small_input = 2.5; /* log10 */

/* What the dumps hold, as far as it decides. */
static const double tensor_odds = 0.9, both_odds = 0.7, operators_odds = 0.8, modules_odds = 0.6,
                    programs_odds = 0.6, md5_odds = 0.2;

/* Share of lists whose first suspect is wrong in which the second is right, and each later one. */
static const double second_share = 0.33, later_share = 0.15;

static bool is_measured(const struct cmp_suspect *t)
{
    return t->why == CMP_WHY_VALUE || t->why == CMP_WHY_INPUT;
}

static enum evidence evidence_of(const struct cmp_suspect *t, bool programs)
{
    switch (t->why) {
    case CMP_WHY_PARAMETER:
        return t->in == 0 ? INPUT : EXACT; /* of equal statistics another order is inferred */
    case CMP_WHY_SCALAR:
    case CMP_WHY_WIRING:
        return EXACT;
    case CMP_WHY_FLAG:
    case CMP_WHY_MISSING:
    case CMP_WHY_EXTRA:
    case CMP_WHY_UPDATE:
    case CMP_WHY_BRANCH:
        return ALONE;
    case CMP_WHY_GRAD:
        return GRAD;
    case CMP_WHY_MOVED:
        return t->score > small_value ? ALONE : SIGN;
    default:
        break;
    }
    if (!is_measured(t))
        return SIGN;
    if (!programs && t->score < (t->why == CMP_WHY_VALUE ? small_value : small_input))
        return SMALL;
    if (t->why == CMP_WHY_INPUT)
        return INPUT;
    return t->may_read_other_order ? ORDER : VALUE;
}

static bool has_modules(const struct observe__part *p)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        if (p->nodes.p[i].kind == PROBE_NODE_MODULE)
            return true;
    }
    return false;
}

static double odds_of_dumps(const struct observe__part *p)
{
    if (p->mode == PROBE_MODE_MD5)
        return md5_odds;
    if (p->frameworks || p->is_graph)
        return programs_odds;
    if (p->mode == PROBE_MODE_TENSOR)
        return tensor_odds;
    if (!p->has_apis)
        return modules_odds;
    return has_modules(p) ? both_odds : operators_odds;
}

static const struct observe__part *part_of(const struct cmp_source *s, const struct cmp_suspect *t)
{
    for (size_t i = 0; i < s->parts.n; i++) {
        if (s->parts.p[i]->number == t->part)
            return s->parts.p[i];
    }
    return NULL;
}

static double rate_first(const struct cmp_source *s, const struct cmp_suspect *t)
{
    const struct observe__part *p = part_of(s, t);
    ms_assert(p != NULL);
    double odds = evidence_odds[evidence_of(t, p->frameworks || p->is_graph)] + odds_of_dumps(p) +
                  (t->later == 0 ? end_odds : 0);
    return 1 / (1 + exp(-odds));
}

static void rate_all(struct cmp_source *s)
{
    double rest = 1;
    for (size_t i = 0; i < s->list.n; i++) {
        struct cmp_suspect *t = &s->list.p[i];
        double share = i == 0 ? rate_first(s, t) : i == 1 ? second_share : later_share;
        t->certainty = rest * share;
        rest -= t->certainty;
        ms_assert(t->certainty > 0 && rest > 0);
    }
}

/* ---- what would decide ------------------------------------------------------- */

/* Below the first, a suspect is more often wrong than right: the answer says what would decide. Below the
 * second, where 2 of 20 lists named the mistake and 16 were of runs without one, it accuses nobody. */
static const double decided = 0.5, accused = 0.2;

static void name_undecided(struct cmp_source *s, struct ms_str name)
{
    for (size_t i = 0; i < s->nundecided; i++) {
        if (ms_str_eq(s->undecided[i], name))
            return;
    }
    if (s->nundecided < CMP_UNDECIDED && name.p != NULL)
        s->undecided[s->nundecided++] = name;
}

/* Adds the operators of the target that run before suspect 1: a mistake there shows first behind it. */
static void name_those_before(struct cmp_source *s, const struct cmp_suspect *first)
{
    const struct observe__part *p = part_of(s, first);
    uint32_t at = 0;
    while (at < p->nodes.n && p->nodes.p[at].id[1] != first->target_node)
        at++;
    while (at-- > 0) {
        if (p->nodes.p[at].dir == PROBE_FORWARD)
            name_undecided(s, observe__name(p, 1, p->nodes.p[at].id[1]));
    }
}

/* Adds suspect 1 and those that explain it by another order of values: the operators whose tensors tell. */
static void name_those_of_order(struct cmp_source *s, const struct cmp_suspect *first)
{
    name_undecided(s, first->target);
    for (size_t i = 1; i < s->list.n; i++) {
        const struct cmp_suspect *t = &s->list.p[i];
        if (t->part == first->part && t->reader == first->target_node)
            name_undecided(s, t->target);
    }
}

/* Empties the list. */
static void accuse_nobody(struct cmp_source *s)
{
    s->list.n = 0;
    for (size_t i = 0; i < s->parts.n; i++) {
        for (size_t k = 0; k < s->parts.p[i]->nodes.n; k++)
            s->parts.p[i]->nodes.p[k].suspect = 0;
    }
}

void source__rate_suspects(struct cmp_source *s)
{
    const struct cmp_suspect *first = s->list.p;
    rate_all(s);
    if (s->list.n == 0 || part_of(s, first)->mode == PROBE_MODE_TENSOR)
        return;
    if (first->may_read_other_order)
        name_those_of_order(s, first);
    if (first->certainty >= decided)
        return;
    for (size_t i = 0; i < s->list.n; i++)
        name_undecided(s, first[i].target.p != NULL ? first[i].target : first[i].golden);
    if (first->target.p != NULL)
        name_those_before(s, first);
    if (first->certainty < accused)
        accuse_nobody(s);
}
