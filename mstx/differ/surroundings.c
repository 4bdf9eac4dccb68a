/* SPDX-License-Identifier: MIT
 *
 * surroundings: see the header.
 */
#include "mstx/differ/surroundings.h"

#include "mstx/rundb/run_query.h"

#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Means of bytes that differ by less are the same traffic. */
static const double SAME_BYTES = 0.01;

/* ---- reading --------------------------------------------------------------------------------- */

struct counter_mean {
    double sum;
    uint64_t n;
};

static enum ms_rc take_value(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct counter_mean *m = ctx;
    (void)err;
    m->sum += mstx_event_value(e);
    m->n++;
    return MS_OK;
}

static enum ms_rc read_batch(struct mstx_run_facts *f, struct mstx_tl *tl, struct ms_err *err)
{
    struct counter_mean batch = {0};
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->kind == MSTX_TRACK_COUNTER && ms_str_is(t->name, "batch elements"))
            MS_TRY(mstx_tl_walk(tl, i, NULL, take_value, &batch, err));
    }
    f->batch = batch.n != 0 ? batch.sum / (double)batch.n : 0;
    return MS_OK;
}

static enum ms_rc add_traffic(struct mstx_run_facts *f, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_traffic *slot = ms_vec_push(&f->traffic);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_traffic){.op = ms_str_dup(ms_stmt_get_str(st, 0)),
                                  .bytes = ms_stmt_get_f64(st, 1)};
    return slot->op != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_traffic(struct mstx_run_facts *f, struct ms_store *store, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = ms_store_prepare(store, &st,
                                     "SELECT op, sum(bytes * 1.0 * calls) / sum(calls) FROM "
                                     "call_sizes WHERE calls > 0 GROUP BY op ORDER BY op",
                                     err);
    if (rc != MS_OK)
        return rc;
    while (ms_stmt_next(st, &rc, err))
        rc = add_traffic(f, st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_hosts(struct mstx_run_facts *f, struct ms_store *store, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = ms_store_prepare(store, &st, "SELECT count(DISTINCT host) FROM processes", err);
    if (rc != MS_OK)
        return rc;
    if (ms_stmt_next(st, &rc, err))
        f->hosts = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__facts_read(struct mstx_run_facts *f, struct mstx_tl *tl,
                            const struct mstx_profile *p, struct ms_err *err)
{
    f->ranks = p->rank.n;
    f->steps = p->rank.p[0].steps;
    f->program = ms_str_dup(mstx_tl_process(tl, p->rank.p[0].process)->name);
    if (f->program == NULL)
        return ms_no_memory(err);
    MS_TRY(read_batch(f, tl, err));
    MS_TRY(read_hosts(f, mstx_tl_store(tl), err));
    return read_traffic(f, mstx_tl_store(tl), err);
}

void mstx__facts_free(struct mstx_run_facts *f)
{
    for (size_t i = 0; i < f->traffic.n; i++)
        ms_free(f->traffic.p[i].op);
    ms_vec_free(&f->traffic);
    ms_free(f->program);
}

/* ---- differences ----------------------------------------------------------------------------- */

static void add_fact(struct mstx_fact *f, size_t *n, const char *what, const char *old,
                     const char *new)
{
    if (strcmp(old, new) == 0 || old[0] == '\0' || new[0] == '\0' || *n == MSTX_FACTS_MAX)
        return;
    snprintf(f[*n].what, sizeof f[*n].what, "%s", what);
    snprintf(f[*n].old, sizeof f[*n].old, "%s", old);
    snprintf(f[*n].new, sizeof f[*n].new, "%s", new);
    ++*n;
}

static void add_number(struct mstx_fact *f, size_t *n, const char *what, double old, double new)
{
    char x[MSTX_FACT_TEXT], y[MSTX_FACT_TEXT];
    snprintf(x, sizeof x, "%.6g", old);
    snprintf(y, sizeof y, "%.6g", new);
    if (old > 0 && new > 0)
        add_fact(f, n, what, x, y);
}

static void add_bytes(struct mstx_fact *f, size_t *n, const struct mstx_traffic *old,
                      const struct mstx_traffic *new)
{
    char what[MSTX_FACT_TEXT], x[MS_HUMAN_MAX], y[MS_HUMAN_MAX];
    if (fabs(old->bytes - new->bytes) <= SAME_BYTES * fmax(old->bytes, new->bytes))
        return;
    snprintf(what, sizeof what, "mean bytes of %s", old->op);
    add_fact(f, n, what, ms_human_bytes(x, (uint64_t)old->bytes),
             ms_human_bytes(y, (uint64_t) new->bytes));
}

size_t mstx__facts_differ(const struct mstx_run_facts *old, const struct mstx_run_facts *new,
                          struct mstx_fact fact[MSTX_FACTS_MAX])
{
    size_t n = 0;
    add_fact(fact, &n, "program", old->program, new->program);
    add_number(fact, &n, "ranks with steps", (double)old->ranks, (double)new->ranks);
    add_number(fact, &n, "hosts", (double)old->hosts, (double)new->hosts);
    add_number(fact, &n, "steps that are compared", (double)old->steps, (double)new->steps);
    add_number(fact, &n, "elements of a batch", old->batch, new->batch);
    for (size_t i = 0, k = 0; i < old->traffic.n && k < new->traffic.n;) {
        const int order = strcmp(old->traffic.p[i].op, new->traffic.p[k].op);
        if (order == 0)
            add_bytes(fact, &n, &old->traffic.p[i], &new->traffic.p[k]);
        i += order <= 0;
        k += order >= 0;
    }
    return n;
}
