/* SPDX-License-Identifier: MIT
 *
 * raw_suspects: makes the raw suspects that the rules add.
 */
#include "compare/source/raw_suspects.h"
#include "probe/base/assert.h"

#include <math.h>

enum ms_rc source__add_suspect(struct source__judge *j, uint32_t node, struct source__raw raw,
                               struct ms_err *err)
{
    ms_assert(node < j->p->nodes.n && !isnan(raw.s));
    ms_assert(raw.leaf == OBSERVE__NONE || raw.leaf < j->p->leaves.n);
    const struct observe__node *n = &j->p->nodes.p[node];
    struct source__raw *slot = ms_vec_push(&j->s->raws);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = raw;
    slot->part = j->part;
    slot->node = node;
    slot->seen = j->judged != OBSERVE__NONE ? j->judged : node;
    slot->forward =
        n->dir != PROBE_BACKWARD && n->kind != PROBE_NODE_PGRAD && node < j->after_backward;
    return MS_OK;
}

struct source__raw source__raw_of(const struct observe__node *n, enum cmp_why why,
                                  enum source__class cls, double s)
{
    return (struct source__raw){.leaf = OBSERVE__NONE,
                                .reader = OBSERVE__NONE,
                                .instead = OBSERVE__NONE,
                                .why = (uint8_t)why,
                                .cls = (uint8_t)cls,
                                .s = (float)s,
                                .in = n->in,
                                .out = n->out,
                                .floor = n->floor,
                                .factor = n->rho};
}

uint32_t source__blame_loose(struct source__judge *j, uint32_t node, struct source__raw *raw)
{
    uint32_t loose = j->loose;
    if (loose == OBSERVE__NONE)
        return node;
    ms_assert(loose < node);
    raw->why = j->p->nodes.p[loose].id[0] == OBSERVE__NONE ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    j->loose = OBSERVE__NONE;
    return loose;
}
