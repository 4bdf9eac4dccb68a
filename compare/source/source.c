/* SPDX-License-Identifier: MIT
 *
 * source: observes parts when they are added, and judges them together, because values
 * that a rank receives are explained by what other ranks sent, and the start of a step
 * by earlier steps.
 */
#include "compare/observe/observe.h"
#include "compare/source/consequences.h"
#include "compare/source/node_rules.h"
#include "compare/source/parting.h"
#include "compare/source/region_notes.h"
#include "compare/source/suspect.h"
#include "probe/base/assert.h"

#include "probe/base/trace.h"

#include <math.h>
#include <stdlib.h>

#define TEXT_MAX ((size_t)1 << 30)

enum ms_rc cmp_source_new(struct cmp_source **out, struct ms_err *err)
{
    struct cmp_source *s = ms_calloc(1, sizeof *s);
    *out = s;
    if (s == NULL)
        return ms_no_memory(err);
    s->arena = ms_arena_new(TEXT_MAX);
    if (s->arena != NULL)
        return MS_OK;
    cmp_source_free(s);
    *out = NULL;
    return ms_no_memory(err);
}

void cmp_source_free(struct cmp_source *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->parts.n; i++)
        observe__part_free(s->parts.p[i]);
    ms_vec_free(&s->parts);
    ms_vec_free(&s->raws);
    ms_vec_free(&s->list);
    ms_vec_free(&s->notes);
    ms_arena_free(s->arena);
    ms_free(s);
}

enum ms_rc cmp_source_add(struct cmp_source *s, const struct cmp *c, int rank, int step,
                          struct ms_pool *pool, struct ms_err *err)
{
    struct observe__part *p = ms_calloc(1, sizeof *p);
    struct observe__part **slot = p != NULL ? ms_vec_push(&s->parts) : NULL;
    if (slot == NULL) {
        ms_free(p);
        return ms_no_memory(err);
    }
    *slot = p;
    p->rank = rank;
    p->step = step;
    p->number = (uint32_t)(s->parts.n - 1);
    enum ms_rc rc = observe__observe_pair(p, c, pool, err);
    if (rc != MS_OK) { /* discard a part that could not be read */
        observe__part_free(p);
        s->parts.n--;
    }
    return rc;
}

/* ---- judging ------------------------------------------------------------- */

/* Sorts parts by step, then by rank. */
static int by_time(const void *a, const void *b)
{
    const struct observe__part *x = *(struct observe__part *const *)a;
    const struct observe__part *y = *(struct observe__part *const *)b;
    if (x->step != y->step)
        return (x->step > y->step) - (x->step < y->step);
    if (x->rank != y->rank)
        return (x->rank > y->rank) - (x->rank < y->rank);
    return (x->number > y->number) - (x->number < y->number);
}

static bool went_wrong(const struct cmp_source *s)
{
    for (size_t i = 0; i < s->raws.n; i++) {
        if (s->raws.p[i].cls == SOURCE__NUM)
            return true;
    }
    return false;
}

/* A side that recorded nothing lacks everything, which says nothing of any operator. */
static bool is_one_sided(const struct observe__part *p)
{
    return p->names[0].n == 0 || p->names[1].n == 0;
}

static enum ms_rc judge_all(struct cmp_source *s, const struct source__comms *comms,
                            struct ms_err *err)
{
    bool explained = false;
    for (uint32_t i = 0; i < s->parts.n; i++) {
        if (i != 0 && s->parts.p[i]->step != s->parts.p[i - 1]->step)
            explained |= went_wrong(s);
        ms_assert(i == 0 || s->parts.p[i]->step >= s->parts.p[i - 1]->step);
        if (is_one_sided(s->parts.p[i]))
            continue;
        MS_TRY(source__judge_part(s, i, comms, explained, err));
        MS_TRY(source__check_parting(s, i, explained, err));
    }
    return MS_OK;
}

enum ms_rc cmp_source_find(struct cmp_source *s, struct ms_err *err)
{
    struct source__comms comms;
    struct ms_span span = ms_span_begin("explain: judge");
    if (s->parts.n > 1)
        qsort(s->parts.p, s->parts.n, sizeof *s->parts.p, by_time);
    enum ms_rc rc = source__gather_comms(s, &comms, err);
    if (rc == MS_OK)
        rc = judge_all(s, &comms, err);
    if (rc == MS_OK)
        rc = source__drop_explained(s, &comms, err);
    source__comms_free(&comms);
    if (rc == MS_OK)
        rc = source__rank_suspects(s, err);
    if (rc == MS_OK)
        rc = source__note(s, err);
    if (rc == MS_OK)
        rc = source__note_regions(s, err);
    ms_span_end(&span);
    return rc;
}

/* ---- queries ------------------------------------------------------------- */

size_t cmp_source_suspects(const struct cmp_source *s, const struct cmp_suspect **list)
{
    *list = s->list.p;
    return s->list.n;
}

size_t cmp_source_undecided(const struct cmp_source *s, const struct ms_str **names)
{
    *names = s->undecided;
    return s->nundecided;
}

size_t cmp_source_notes(const struct cmp_source *s, const struct ms_stored_message **list)
{
    *list = s->notes.p;
    return s->notes.n;
}

static const struct observe__part *part_of(const struct cmp_source *s, uint32_t number)
{
    for (size_t i = 0; i < s->parts.n; i++) {
        if (s->parts.p[i]->number == number)
            return s->parts.p[i];
    }
    return NULL;
}

static struct cmp_verdict verdict_of(const struct observe__node *n)
{
    struct cmp_verdict v = {(enum cmp_role)n->role, NAN, NAN, NAN, n->suspect};
    ms_assert(n->role < CMP_ROLES);
    if (n->flags & OBSERVE__OUT_MEASURED) {
        v.in = n->in;
        v.out = n->out;
        v.floor = n->floor;
    }
    return v;
}

bool cmp_source_next(const struct cmp_source *s, struct cmp_source_place *at,
                     struct cmp_source_node *out)
{
    for (; at->part < s->parts.n; at->part++, at->node = 0) {
        const struct observe__part *p = s->parts.p[at->part];
        while (at->node < p->nodes.n) {
            const struct observe__node *n = &p->nodes.p[at->node++];
            if (n->id[1] == OBSERVE__NONE)
                continue;
            *out = (struct cmp_source_node){observe__name(p, 1, n->id[1]),
                                            observe__name(p, 0, n->id[0]), p->rank, p->step,
                                            verdict_of(n)};
            return true;
        }
    }
    return false;
}

struct cmp_verdict cmp_source_node(const struct cmp_source *s, uint32_t part, uint32_t target_node)
{
    struct cmp_verdict v = {CMP_ROLE_CLEAN, NAN, NAN, NAN, 0};
    const struct observe__part *p = part_of(s, part);
    if (p == NULL || target_node >= p->by_target.n || p->by_target.p[target_node] == OBSERVE__NONE)
        return v;
    return verdict_of(&p->nodes.p[p->by_target.p[target_node]]);
}
