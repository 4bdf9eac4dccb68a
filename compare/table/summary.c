/* SPDX-License-Identifier: MIT
 *
 * summary: counts rows by verdict and keeps the first marked row and the ten worst.
 */
#include "compare/table/summary.h"

#include <math.h>

/* Returns how different the sides are: the relative difference of the norm for statistics, relL2
 * for tensors. */
static double score_of(const struct cmp *c, const struct cmp_row *row)
{
    if (!row->t.present || !row->b.present || cmp_mode(c) == PROBE_MODE_MD5)
        return 0;
    if (cmp_mode(c) == PROBE_MODE_TENSOR)
        return row->fig.state == CMP_STATE_OK       ? row->fig.ext.rel_l2
               : row->fig.state == CMP_STATE_SCALAR ? row->fig.metric[CMP_MAX_REL]
                                                    : 0;
    const struct cmp_delta *d = &row->delta[PROBE_STAT_NORM];
    return d->rel_inf ? HUGE_VAL : d->rel_value;
}

static void offer_place(struct cmp_summary *s, const struct cmp_place *p)
{
    if (!(p->score > 0))
        return;
    unsigned at = s->nworst;
    while (at > 0 && s->worst[at - 1].score < p->score)
        at--;
    if (at == CMP_WORST)
        return;
    if (s->nworst < CMP_WORST)
        s->nworst++;
    for (unsigned i = s->nworst - 1; i > at; i--)
        s->worst[i] = s->worst[i - 1];
    s->worst[at] = *p;
}

static void add_row(struct cmp_summary *s, const struct cmp *c, const struct cmp_row *row,
                    size_t group, uint32_t i)
{
    struct cmp_place p = {group, i, score_of(c, row)};
    s->rows++;
    s->level[row->level]++;
    s->unmatched_target += !row->b.present;
    s->unmatched_golden += !row->t.present;
    if (!s->has_first && (row->level == CMP_WARNING || row->level == CMP_ERROR)) {
        s->has_first = true;
        s->first = p;
    }
    if (row->t.section == PROBE_SEC_OUTPUT || row->level != CMP_PASS)
        offer_place(s, &p);
}

void cmp_summary_add(struct cmp_summary *s, const struct cmp *c, size_t group,
                     const struct cmp_view *v)
{
    for (uint32_t i = 0; i < v->rows.n; i++)
        add_row(s, c, &v->rows.p[i], group, i);
}

void cmp_summary_join(struct cmp_summary *s, const struct cmp_summary *next)
{
    s->rows += next->rows;
    s->unmatched_target += next->unmatched_target;
    s->unmatched_golden += next->unmatched_golden;
    for (unsigned i = 0; i < CMP_LEVELS; i++)
        s->level[i] += next->level[i];
    if (!s->has_first && next->has_first) {
        s->has_first = true;
        s->first = next->first;
    }
    for (unsigned i = 0; i < next->nworst; i++)
        offer_place(s, &next->worst[i]);
}

enum ms_rc cmp_files_add(struct cmp_files *f, struct ms_str path, struct ms_err *err)
{
    /* an empty path: the caller ran out of memory while making the name */
    char **slot = path.n > 0 ? ms_vec_push(&f->list) : NULL;
    if (slot != NULL)
        *slot = ms_str_dup(path);
    return slot != NULL && *slot != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "out of memory");
}

void cmp_files_free(struct cmp_files *f)
{
    for (size_t i = 0; i < f->list.n; i++)
        ms_free(f->list.p[i]);
    ms_vec_free(&f->list);
}
