/* SPDX-License-Identifier: MIT
 *
 * source_cross: what of two frameworks' values can be held against each other.
 *
 * Where both cut an operation into pieces they need not cut it alike, so a piece's
 * value may be another's by name and place and still have nothing to do with it.
 * Such a difference ends with the operation: its result agrees again.  One that a
 * fault makes goes on.  So a difference that reaches no later difference is taken
 * for no measurement at all.
 */
#include "compare/source_floor.h"
#include "compare/source_int.h"

static const float unlike = 0.1F;   /* a difference as large does not count as noise */
static const float noise_times = 8; /* a difference above so many times the usual one is one */

/* Values that only a reader's rows compare: of nodes that have no partner themselves. */
static void take_from_readers(struct source__part *p)
{
    for (size_t i = 0; i < p->leaves.n; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        unsigned want = SOURCE__MEASURED | SOURCE__REAL;
        if ((l->flags & want) != want || (l->flags & SOURCE__IS_OUT) ||
            l->maker[1] == SOURCE__NONE || p->nodes.p[l->maker[1]].id[0] != SOURCE__NONE)
            continue;
        struct source__node *n = &p->nodes.p[l->maker[1]];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            struct source__leaf *out = &p->leaves.p[k];
            if ((out->flags & SOURCE__IS_OUT) == 0 || (out->flags & SOURCE__MEASURED) ||
                out->count != l->count)
                continue;
            out->e = l->e;
            out->en = l->en;
            out->scale = l->scale;
            out->dtype[0] = l->dtype[0];
            out->flags |=
                (uint16_t)(SOURCE__MEASURED | SOURCE__REAL | (l->flags & SOURCE__FLAGGED));
        }
    }
}

static bool usual_noise(const struct source__part *p, float *noise)
{
    float *e = ms_alloc((p->leaves.n + 1) * sizeof *e);
    size_t n = 0;
    for (size_t i = 0; e != NULL && i < p->leaves.n; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        if ((l->flags & SOURCE__MEASURED) && (l->flags & SOURCE__REAL) && l->e < unlike)
            e[n++] = l->e;
    }
    *noise = e != NULL ? noise_times * source__quantile(e, n, 0.9) : 0;
    bool fine = e != NULL;
    ms_free(e);
    return fine;
}

enum state { UNKNOWN, AGREES, DIFFERS };

static enum state state_of(const struct source__part *p, const struct source__node *n, float noise)
{
    enum state s = UNKNOWN;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) == 0 || (l->flags & SOURCE__MEASURED) == 0)
            continue;
        if (l->e > noise || (l->flags & SOURCE__FLAGGED))
            return DIFFERS;
        s = AGREES;
    }
    return s;
}

/* From the last node to the first: does the difference of a node reach the end or another that
 * lasts?  Who reads nothing that it made has come to the end. */
static void find_lasting(const struct source__part *p, float noise, bool *lasts, bool *is_read)
{
    for (size_t i = p->nodes.n; i-- > 0;) {
        const struct source__node *n = &p->nodes.p[i];
        enum state s = state_of(p, n, noise);
        bool through = lasts[i] || !is_read[i];
        lasts[i] = s == UNKNOWN ? lasts[i] : s == DIFFERS && through;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct source__leaf *l = &p->leaves.p[k];
            if ((l->flags & SOURCE__IS_OUT) || l->maker[1] == SOURCE__NONE || l->maker[1] >= i)
                continue;
            is_read[l->maker[1]] = true;
            lasts[l->maker[1]] |= lasts[i];
        }
    }
}

static void forget(struct source__leaf *l)
{
    l->flags &= (uint16_t) ~(SOURCE__MEASURED | SOURCE__FLAGGED);
    l->e = l->en = 0;
}

static void forget_passing(struct source__part *p, float noise, const bool *lasts)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct source__node *n = &p->nodes.p[i];
        bool passing = !lasts[i] && state_of(p, n, noise) == DIFFERS;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            struct source__leaf *l = &p->leaves.p[k];
            bool out = (l->flags & SOURCE__IS_OUT) != 0;
            uint32_t maker = l->maker[1];
            bool read = !out && maker != SOURCE__NONE && l->e > noise && !lasts[maker];
            if ((out && passing) || read)
                forget(l);
        }
    }
}

enum ms_rc source__settle_cross(struct source__part *p, struct ms_err *err)
{
    float noise;
    bool *lasts = ms_calloc(p->nodes.n + 1, sizeof *lasts);
    bool *is_read = ms_calloc(p->nodes.n + 1, sizeof *is_read);
    bool fine = lasts != NULL && is_read != NULL;
    if (fine)
        take_from_readers(p);
    fine = fine && usual_noise(p, &noise);
    if (fine) {
        find_lasting(p, noise, lasts, is_read);
        forget_passing(p, noise, lasts);
    }
    ms_free(lasts);
    ms_free(is_read);
    return fine ? MS_OK : ms_no_memory(err);
}
