/* SPDX-License-Identifier: MIT
 *
 * unexplained: a jump of the differences that no rule has explained.
 *
 * Operators without a partner may hide where a difference begins: what stands between the last values
 * that agree and the first that do not is then the answer, although nothing in it can be compared.
 */
#include "compare/source/unexplained.h"
#include "compare/source/border.h"
#include "compare/source/fading.h"
#include "compare/source/raw_suspects.h"

#include <math.h>

/* A value that differs by so much, and by so many times what values before it do. */
static const float jump_least = 1e-2F, jump_times = 100;

static bool is_measured(const struct source__judge *j, uint32_t i)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    return n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD && i < j->after_backward &&
           n->id[0] != OBSERVE__NONE && n->id[1] != OBSERVE__NONE &&
           (n->flags & OBSERVE__OUT_MEASURED) && (n->attrs_out & OBSERVE__SHAPE) == 0 && !n->fades;
}

/* Returns the first operator whose output jumps away, or OBSERVE__NONE. */
static uint32_t find_jump(const struct source__judge *j)
{
    float before = 0;
    for (uint32_t i = 0; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (!is_measured(j, i))
            continue;
        if (n->out > jump_least)
            return n->out > jump_times * fmaxf(before, n->floor) ? i : OBSERVE__NONE;
        before = fmaxf(before, n->out);
    }
    return OBSERVE__NONE;
}

/* Returns the operator of one side alone that made an input of a node that differs: the target's
 * rather than the golden side's. */
static uint32_t maker_alone(const struct source__judge *j, const struct observe__node *n)
{
    uint32_t found = OBSERVE__NONE;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        for (unsigned s = 0; s < 2 && (l->flags & OBSERVE__IS_OUT) == 0; s++) {
            bool is_alone = l->maker[s] != OBSERVE__NONE &&
                            j->p->nodes.p[l->maker[s]].id[1 - s] == OBSERVE__NONE;
            if (is_alone && (s == 1 || found == OBSERVE__NONE))
                found = l->maker[s];
        }
    }
    return found;
}

enum ms_rc source__check_unexplained(struct source__judge *j, size_t known, struct ms_err *err)
{
    if (j->s->raws.n != known || j->low || j->explained || j->p->mode == PROBE_MODE_MD5)
        return MS_OK;
    source__mark_fading(j);
    uint32_t at = find_jump(j);
    if (at == OBSERVE__NONE || source__do_gradients_agree(j))
        return MS_OK;
    const struct observe__node *n = &j->p->nodes.p[at];
    uint32_t alone = maker_alone(j, n);
    enum cmp_why why = alone == OBSERVE__NONE                        ? CMP_WHY_VALUE
                       : j->p->nodes.p[alone].id[1] == OBSERVE__NONE ? CMP_WHY_MISSING
                                                                     : CMP_WHY_EXTRA;
    struct source__raw raw = source__raw_of(n, why, SOURCE__NUM, log10(n->out / n->floor));
    return source__add_suspect(j, alone != OBSERVE__NONE ? alone : at, raw, err);
}
