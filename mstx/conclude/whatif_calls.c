/* SPDX-License-Identifier: MIT
 *
 * whatif_calls: see the header.
 */
#include "mstx/conclude/whatif_calls.h"

#include "mstx/conclude/call_rows.h"
#include "mstx/format/comm.h"

#include "probe/base/mem.h"

#include <stdlib.h>

struct making {
    struct mstx_call_rows rows;
    struct mstx_call_graph g;
    struct mstx_waiters waiters;
    struct mstx_ops *o;
    uint16_t *type; /* by point */
    uint16_t local; /* type of the work between calls */
};

/* Sets the type of each point; an interval is named after the first call that begins with it. */
static void name_points(struct making *m)
{
    m->local = mstx__ops_type(m->o, MS_STR("local work"));
    const uint16_t wait = mstx__ops_type(m->o, MS_STR("Wait"));
    for (size_t i = 0; i < m->g.point.n; i++)
        m->type[i] = m->g.point.p[i].kind == MSTX_POINT_OUT ? wait : m->local;
    for (size_t i = m->rows.calls.n; i-- > 0;) {
        const struct mstx_gcall *c = &m->rows.calls.p[i];
        if (c->begin != MSTX_NO_POINT && c->done == c->begin + 1)
            m->type[c->done] = mstx__ops_type(m->o, ms_str_of(mstx_comm_op_text(c->op)));
    }
}

static void add_ops(struct making *m)
{
    for (size_t r = 0; r < m->rows.rank.n; r++)
        mstx__ops_rank(m->o, m->rows.rank.p[r], -1, -1, -1);
    mstx__ops_begin_step(m->o, 0, m->g.start_ns);
    for (size_t i = 0; i < m->g.point.n; i++) {
        const struct mstx_point *p = &m->g.point.p[i];
        const struct mstx_op op = {.start_ns = p->at_ns - (int64_t)m->g.weight[i],
                                   .end_ns = p->at_ns,
                                   .rank = p->rank,
                                   .meet = MSTX_NO_MEET,
                                   .type = m->type[i]};
        mstx__ops_add(m->o, &op);
    }
    for (size_t k = 0; k < m->o->type.n; k++)
        m->o->type.p[k].is_comm = k != m->local;
    mstx__ops_begin_step(m->o, INT64_MAX, INT64_MAX);
}

static enum ms_rc refuse(const struct making *m, struct ms_err *err)
{
    if (m->rows.calls.n == 0 || m->rows.rank.n < 2)
        return ms_fail(
            err, MS_E_NOTFOUND,
            "the run has no operations of ranks that meet; record communication, or give a "
            "trace of a training");
    if (!m->rows.has_one_clock)
        return ms_fail(
            err, MS_E_NOTFOUND,
            "the clocks of the hosts were never compared, so nobody knows who waited for "
            "whom; record with MPI or a shared folder");
    if (m->rows.has_device)
        return ms_fail(err, MS_E_NOTFOUND,
                       "the communication calls only enqueue work of a device; whatif needs calls "
                       "that wait on the host");
    return MS_OK;
}

static enum ms_rc make_calls(struct making *m, struct mstx_whatif *w, struct ms_err *err)
{
    MS_TRY(refuse(m, err));
    mstx__call_graph(&m->g, &m->rows.calls, (uint32_t)m->rows.rank.n, m->rows.unsure_ns);
    if (m->g.no_memory)
        return ms_no_memory(err);
    mstx__waiters(&m->waiters, &m->g, &m->rows.calls, &m->rows.steps, &m->rows.use);
    m->type = ms_calloc(m->g.point.n + 1, sizeof *m->type);
    if (m->waiters.no_memory || m->type == NULL)
        return ms_no_memory(err);
    if (m->waiters.healed == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "the run has too few calls to tell its steps apart");
    name_points(m);
    add_ops(m);
    return !m->o->no_memory &&
                   mstx__whatif_of_graph(w, m->o, &m->g.deps, m->g.weight, m->waiters.healed,
                                         m->waiters.step, m->waiters.steps)
               ? MS_OK
               : ms_no_memory(err);
}

enum ms_rc mstx__whatif_calls(struct mstx_tl *tl, struct mstx_ops *o, struct mstx_whatif *w,
                              struct ms_err *err)
{
    struct making m = {.o = o};
    struct mstx_steps steps = {0};
    *o = (struct mstx_ops){0};
    enum ms_rc rc = mstx_steps_find(tl, &steps, err);
    if (rc == MS_OK)
        rc = mstx__call_rows_read(tl, &steps, &m.rows, err);
    if (rc == MS_OK)
        rc = make_calls(&m, w, err);
    mstx_steps_free(&steps);
    mstx__waiters_free(&m.waiters);
    mstx__call_graph_free(&m.g);
    mstx__call_rows_free(&m.rows);
    ms_free(m.type);
    if (rc != MS_OK) {
        mstx__ops_free(o);
        *o = (struct mstx_ops){0};
    }
    return rc;
}
