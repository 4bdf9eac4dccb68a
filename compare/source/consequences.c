/* SPDX-License-Identifier: MIT
 *
 * source_reach: suspects that an earlier one explains.
 *
 * Statistics tell less than there is: what reached an operator may be as wrong as what
 * an earlier suspect made, though the statistics of its input hardly show it, and then
 * the operator seems to make it worse.  So what suspects made is followed along the
 * data flow, and through communication to other ranks; an operator that reads some of it
 * and whose output is hardly worse than that is no suspect.
 */
#include "compare/source_int.h"

#include "compare/source_judge.h"

#include <math.h>

static const float share = 0.4F;    /* of its strength: one so much weaker explains nothing */
static const float seems_worse = 3; /* times the factor that makes a suspect */

/* What suspects made that comes in at a node. */
struct told {
    float e, s;
};

struct reach {
    struct cmp_source *s;
    const struct source__comms *comms;
    struct told *out;       /* by node of the part: what goes out */
    uint32_t *first, *next; /* raw suspects by node of the part */
    bool *gone;             /* by raw suspect */
};

static void hear(struct told *t, struct told of)
{
    t->e = fmaxf(t->e, of.e);
    t->s = fmaxf(t->s, of.s);
}

static bool is_explained(const struct source__part *p, const struct source__raw *r, struct told in)
{
    const struct source__node *n = &p->nodes.p[r->node];
    bool norm = r->why == CMP_WHY_NORM;
    double limit = norm ? source__rule.norm_forward : source__rule.forward[0];
    bool value = r->why == CMP_WHY_VALUE || norm;
    if (!value || !r->forward || p->mode != PROBE_MODE_SUMMARY || in.s < share * r->s)
        return false;
    bool reads_it = n->in > 3 * n->tiny;
    return reads_it && r->factor <= seems_worse * limit && n->out <= source__rule.forward[0] * in.e;
}

/* What comes in at node i: from those who made what it reads, and what other ranks sent. */
static struct told come_in(const struct reach *r, const struct source__part *p, uint32_t i)
{
    const struct source__node *n = &p->nodes.p[i];
    struct told in = {0, 0};
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct source__leaf *l = &p->leaves.p[k];
        for (unsigned side = 0; side < 2 && (l->flags & SOURCE__IS_OUT) == 0; side++) {
            if (l->maker[side] != SOURCE__NONE && l->maker[side] < i)
                hear(&in, r->out[l->maker[side]]);
        }
    }
    return in;
}

/* Goes once over a part; true when other ranks hear something new. */
static bool follow(struct reach *r, uint32_t part)
{
    const struct source__part *p = r->s->parts.p[part];
    bool news = false;
    for (uint32_t i = 0; i < p->nodes.n; i++) {
        struct told in = come_in(r, p, i);
        struct source__context *c = source__comm_of(r->comms, p, &p->nodes.p[i]);
        if (c != NULL) {
            news |= in.e > c->told_e || in.s > c->told_s;
            hear(&in, (struct told){c->told_e, c->told_s});
            c->told_e = in.e;
            c->told_s = in.s;
        }
        struct told out = in;
        for (uint32_t k = r->first[i]; k != SOURCE__NONE; k = r->next[k]) {
            const struct source__raw *raw = &r->s->raws.p[k];
            r->gone[k] = is_explained(p, raw, in);
            if (raw->cls == SOURCE__NUM)
                hear(&out, (struct told){p->nodes.p[i].out, r->gone[k] ? in.s : raw->s});
        }
        r->out[i] = out;
    }
    return news;
}

static void list_raws(struct reach *r, uint32_t part)
{
    memset(r->first, 0xff, r->s->parts.p[part]->nodes.n * sizeof *r->first);
    for (uint32_t i = (uint32_t)r->s->raws.n; i-- > 0;) {
        const struct source__raw *raw = &r->s->raws.p[i];
        if (raw->part != part)
            continue;
        r->next[i] = r->first[raw->node];
        r->first[raw->node] = i;
    }
}

/* Ranks hear of each other until nobody has news; a chain of them is seldom long. */
static void follow_all(struct reach *r)
{
    enum { ROUNDS = 4 };
    bool news = true;
    for (int round = 0; round < ROUNDS && news; round++) {
        news = false;
        for (uint32_t i = 0; i < r->s->parts.n; i++) {
            list_raws(r, i);
            news |= follow(r, i);
        }
    }
}

static void drop(struct reach *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->s->raws.n; i++) {
        if (!r->gone[i])
            r->s->raws.p[n++] = r->s->raws.p[i];
    }
    r->s->raws.n = n;
}

enum ms_rc source__drop_explained(struct cmp_source *s, const struct source__comms *comms,
                                  struct ms_err *err)
{
    struct reach r = {.s = s, .comms = comms};
    size_t nodes = 0, raws = s->raws.n + 1;
    for (size_t i = 0; i < s->parts.n; i++)
        nodes = s->parts.p[i]->nodes.n > nodes ? s->parts.p[i]->nodes.n : nodes;
    if (s->raws.n < 2)
        return MS_OK;
    r.out = ms_calloc(nodes + 1, sizeof *r.out);
    r.first = ms_alloc((nodes + 1) * sizeof *r.first);
    r.next = ms_alloc(raws * sizeof *r.next);
    r.gone = ms_calloc(raws, sizeof *r.gone);
    bool fine = r.out != NULL && r.first != NULL && r.next != NULL && r.gone != NULL;
    if (fine) {
        follow_all(&r);
        drop(&r);
    }
    ms_free(r.out);
    ms_free(r.first);
    ms_free(r.next);
    ms_free(r.gone);
    return fine ? MS_OK : ms_no_memory(err);
}
