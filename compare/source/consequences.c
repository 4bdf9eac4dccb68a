/* SPDX-License-Identifier: MIT
 *
 * consequences: differences that an operator inherits from other ranks and earlier
 * suspects.
 *
 * An output of a collective is as wrong as the worst input on any rank; a received
 * tensor is as wrong as the worst one sent.
 *
 * Statistics hide part of a difference: an input may carry the whole difference of an
 * earlier suspect although its statistics hardly show it, and then the operator seems
 * to amplify it. Therefore the difference of each suspect is propagated along the
 * data flow and through communication to other ranks. An operator that reads such a
 * value, and whose output is hardly worse than it, is no suspect.
 */
#include "compare/source/consequences.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

#include <math.h>

/* ---- other ranks --------------------------------------------------------- */

static void write_key(struct ms_buf *b, const struct observe__part *p,
                      const struct observe__node *n)
{
    unsigned op = p->ops.p[n->op].flags;
    struct ms_str name = observe__name(p, 1, n->id[1]);
    ms_buf_clear(b);
    ms_buf_printf(b, "%d/%u/", p->step, n->dir);
    if (op & (OBSERVE__SEND | OBSERVE__RECEIVE))
        ms_buf_puts(b, "sent");
    else
        ms_buf_str(b, name);
}

static struct source__context *context_at(struct source__comms *c, struct ms_str key)
{
    bool added;
    uint32_t id = ms_map_put_copy(&c->names, key, c->arena, &added);
    if (id == MS_MAP_NONE)
        return NULL;
    if (!added)
        return &c->list.p[id];
    struct source__context *slot = ms_vec_push(&c->list);
    if (slot != NULL)
        *slot = (struct source__context){0};
    return slot;
}

static void add_inputs(const struct observe__part *p, const struct observe__node *n,
                       struct source__context *c)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if (l->flags & OBSERVE__IS_OUT)
            continue;
        c->e = l->e > c->e ? l->e : c->e;
        c->en = l->en > c->en ? l->en : c->en;
        c->flags |= l->flags & OBSERVE__FLAGGED;
        c->attrs |= l->attrs;
    }
}

static bool is_communication(const struct observe__part *p, const struct observe__node *n)
{
    return n->id[1] != OBSERVE__NONE &&
           (p->ops.p[n->op].flags & (OBSERVE__COMM | OBSERVE__SEND)) != 0;
}

enum ms_rc source__gather_comms(const struct cmp_source *s, struct source__comms *c,
                                struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 20};
    *c = (struct source__comms){.arena = ms_arena_new((size_t)1 << 32)};
    enum ms_rc rc = c->arena != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < s->parts.n && rc == MS_OK; i++) {
        const struct observe__part *p = s->parts.p[i];
        for (size_t k = 0; k < p->nodes.n && rc == MS_OK; k++) {
            if (!is_communication(p, &p->nodes.p[k]))
                continue;
            write_key(&key, p, &p->nodes.p[k]);
            struct source__context *at = context_at(c, ms_buf_slice(&key));
            if (at == NULL || key.bad != MS_OK)
                rc = ms_no_memory(err);
            else
                add_inputs(p, &p->nodes.p[k], at);
        }
    }
    ms_buf_free(&key);
    ms_assert(rc != MS_OK || c->list.n == c->names.keys.n);
    return rc;
}

void source__comms_free(struct source__comms *c)
{
    ms_map_free(&c->names);
    ms_vec_free(&c->list);
    ms_arena_free(c->arena);
}

struct source__context *source__comm_of(const struct source__comms *c,
                                        const struct observe__part *p,
                                        const struct observe__node *n)
{
    struct ms_buf key = {.max = 1 << 20};
    if (!is_communication(p, n) || !(p->ops.p[n->op].flags & OBSERVE__COMM))
        return NULL;
    write_key(&key, p, n);
    uint32_t id = key.bad == MS_OK ? ms_map_get(&c->names, ms_buf_slice(&key)) : MS_MAP_NONE;
    ms_buf_free(&key);
    return id != MS_MAP_NONE ? &c->list.p[id] : NULL;
}

/* ---- earlier suspects ---------------------------------------------------- */

/* share of the suspect's strength; a weaker inherited fault does not explain the suspect */
static const float share = 0.4F;
static const float seems_worse = 3; /* multiplies the factor from which a node is a suspect */

/* Strength of the suspects' differences that reach a node. */
struct inherited {
    float e, s;
};

struct reach {
    struct cmp_source *s;
    const struct source__comms *comms;
    struct inherited *out;  /* by node of the part: strength at its outputs */
    uint32_t *first, *next; /* lists of raw suspects by node of the part */
    bool *gone;             /* by raw suspect: explained by an earlier one */
};

static void merge_strongest(struct inherited *t, struct inherited of)
{
    t->e = fmaxf(t->e, of.e);
    t->s = fmaxf(t->s, of.s);
}

static bool is_explained(const struct observe__part *p, const struct source__raw *r,
                         struct inherited in)
{
    const struct observe__node *n = &p->nodes.p[r->node];
    bool norm = r->why == CMP_WHY_NORM;
    double limit = norm ? observe__rule.norm_forward : observe__rule.forward[0];
    bool value = r->why == CMP_WHY_VALUE || norm;
    if (!value || !r->forward || p->mode != PROBE_MODE_SUMMARY || in.s < share * r->s)
        return false;
    bool reads_it = n->in > 3 * n->tiny;
    return reads_it && r->factor <= seems_worse * limit &&
           n->out <= observe__rule.forward[0] * in.e;
}

/* Returns the strength that reaches node i from the makers of its inputs and from other ranks. */
static struct inherited inherited_by(const struct reach *r, const struct observe__part *p,
                                     uint32_t i)
{
    const struct observe__node *n = &p->nodes.p[i];
    struct inherited in = {0, 0};
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &p->leaves.p[k];
        for (unsigned side = 0; side < 2 && (l->flags & OBSERVE__IS_OUT) == 0; side++) {
            if (l->maker[side] != OBSERVE__NONE && l->maker[side] < i)
                merge_strongest(&in, r->out[l->maker[side]]);
        }
    }
    return in;
}

/* Propagates differences through a part once; returns true when other ranks receive a
 * larger one. */
static bool follow_part(struct reach *r, uint32_t part)
{
    const struct observe__part *p = r->s->parts.p[part];
    bool news = false;
    for (uint32_t i = 0; i < p->nodes.n; i++) {
        struct inherited in = inherited_by(r, p, i);
        struct source__context *c = source__comm_of(r->comms, p, &p->nodes.p[i]);
        if (c != NULL) {
            news |= in.e > c->inherited_e || in.s > c->inherited_s;
            merge_strongest(&in, (struct inherited){c->inherited_e, c->inherited_s});
            c->inherited_e = in.e;
            c->inherited_s = in.s;
        }
        struct inherited out = in;
        for (uint32_t k = r->first[i]; k != OBSERVE__NONE; k = r->next[k]) {
            const struct source__raw *raw = &r->s->raws.p[k];
            r->gone[k] = !raw->is_parting && is_explained(p, raw, in);
            if (raw->cls == SOURCE__NUM)
                merge_strongest(&out,
                                (struct inherited){p->nodes.p[i].out, r->gone[k] ? in.s : raw->s});
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
        ms_assert(raw->node < r->s->parts.p[part]->nodes.n);
        r->next[i] = r->first[raw->node];
        r->first[raw->node] = i;
    }
}

/* Repeats over all ranks until none receives anything new; chains of ranks are short. */
static void follow_parts(struct reach *r)
{
    enum { ROUNDS = 4 };
    bool news = true;
    for (int round = 0; round < ROUNDS && news; round++) {
        news = false;
        for (uint32_t i = 0; i < r->s->parts.n; i++) {
            list_raws(r, i);
            news |= follow_part(r, i);
        }
    }
}

static void remove_gone(struct reach *r)
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
        follow_parts(&r);
        remove_gone(&r);
    }
    ms_free(r.out);
    ms_free(r.first);
    ms_free(r.next);
    ms_free(r.gone);
    return fine ? MS_OK : ms_no_memory(err);
}
