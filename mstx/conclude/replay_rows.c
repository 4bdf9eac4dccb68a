/* SPDX-License-Identifier: MIT
 *
 * replay_rows: see the header.
 */
#include "mstx/conclude/replay_rows.h"

#include "mstx/conclude/op_rows.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

/* ---- packing ----------------------------------------------------------------------- */

struct packing {
    struct mstx_replay_rows *to;
    struct mstx_rows_out rows;
};

static enum ms_rc keep_blob(struct packing *w, struct ms_err *err)
{
    const uint32_t rows = w->rows.n;
    if (rows == 0)
        return MS_OK;
    MS_TRY(mstx__rows_pack(&w->rows, err));
    const struct ms_str packed = ms_buf_slice(&w->rows.packed);
    struct mstx_replay_blob *slot = ms_vec_push(&w->to->blob);
    if (slot == NULL)
        return ms_no_memory(err);
    if (w->to->file.path == NULL)
        MS_TRY(mstx__side_open(&w->to->file, w->to->db, err));
    *slot = (struct mstx_replay_blob){w->to->file.length, packed.n, rows};
    return mstx__side_append(&w->to->file, packed.p, packed.n, err);
}

static void put_span(struct packing *w, enum mstx_span_of of, const struct mstx_span *s)
{
    const struct mstx_replay_lane *lane = &w->to->lane.p[s->lane];
    const bool has_step = s->step < w->to->step.n;
    const int64_t cell[MSTX_SPAN_COLUMNS] = {
        [MSTX_SPAN_OF] = of,
        [MSTX_SPAN_PROCESS] = (int64_t)lane->process + 1,
        [MSTX_SPAN_RANK] = lane->rank,
        [MSTX_SPAN_TID] = lane->tid,
        [MSTX_SPAN_STEP] = has_step ? w->to->step.p[s->step] : MSTX_ROWS_NULL,
        [MSTX_SPAN_KIND] = s->kind,
        [MSTX_SPAN_START] = s->start_ns,
        [MSTX_SPAN_END] = s->end_ns,
    };
    for (unsigned k = 0; k < MSTX_SPAN_COLUMNS; k++)
        mstx__rows_put(&w->rows, k, cell[k]);
    w->rows.n++;
}

static enum ms_rc put_spans(struct packing *w, enum mstx_span_of of, mstx_spans *v,
                            struct ms_err *err)
{
    for (size_t i = 0; i < v->n; i++) {
        put_span(w, of, &v->p[i]);
        if (w->rows.n == MSTX_ROWS_MAX)
            MS_TRY(keep_blob(w, err));
    }
    v->n = 0;
    return MS_OK;
}

/* Nodes whose lanes are drawn at a time, about: their spans take 8 MB. */
enum { NODES_TOGETHER = 200000 };

static enum ms_rc pack_lanes(struct packing *w, const struct mstx_replayed *r,
                             struct mstx_ideal_replay *ideal, mstx_spans *v, struct ms_err *err)
{
    const size_t passes = mstx__deps_count(r->deps) / NODES_TOGETHER + 1;
    const size_t together = r->lanes / passes + 1;
    for (size_t first = 0; first < r->lanes; first += together) {
        const size_t left = r->lanes - first;
        if (!mstx__ideal_spans(ideal, first, first + (left < together ? left : together), v))
            return ms_no_memory(err);
        MS_TRY(put_spans(w, MSTX_SPAN_IDEAL, v, err));
    }
    return keep_blob(w, err);
}

static enum ms_rc pack_ideal(struct packing *w, const struct mstx_replayed *r, mstx_spans *v,
                             struct ms_err *err)
{
    struct mstx_ideal_replay ideal;
    const enum ms_rc rc =
        mstx__ideal_begin(&ideal, r) ? pack_lanes(w, r, &ideal, v, err) : ms_no_memory(err);
    mstx__ideal_end(&ideal);
    return rc;
}

static enum ms_rc pack_both(struct packing *w, const struct mstx_replayed *r, mstx_spans *v,
                            struct ms_err *err)
{
    if (!mstx__critical_spans(r, v))
        return ms_no_memory(err);
    MS_TRY(put_spans(w, MSTX_SPAN_CRITICAL, v, err));
    MS_TRY(keep_blob(w, err));
    return pack_ideal(w, r, v, err);
}

/* Finds and packs both timelines. */
static enum ms_rc pack_spans(struct mstx_replay_rows *to, const struct mstx_replayed *r,
                             struct ms_err *err)
{
    struct packing w = {.to = to};
    mstx_spans v = {0};
    MS_TRY(mstx__rows_out_new(&w.rows, MSTX_SPAN_COLUMNS, err));
    const enum ms_rc rc = pack_both(&w, r, &v, err);
    mstx__rows_out_free(&w.rows);
    ms_vec_free(&v);
    return rc;
}

/* ---- captures ---------------------------------------------------------------------- */

struct called {
    const struct mstx_call_graph *g;
    const struct mstx_waiters *w;
};

static struct mstx_span_op describe_point(const void *ctx, uint32_t point)
{
    const struct called *c = ctx;
    const struct mstx_point *p = &c->g->point.p[point];
    return (struct mstx_span_op){p->at_ns, p->rank, c->w->step[point], p->kind == MSTX_POINT_OUT};
}

/* Numbers the steps as the program does, when their times come from its marks. */
static bool number_steps(struct mstx_replay_rows *to, const struct mstx_call_rows *rows,
                         const struct mstx_steps *steps, uint32_t count)
{
    size_t first = 0;
    while (first < steps->list.n && steps->list.p[first].process != rows->process.p[0])
        first++;
    if (!ms_vec_reserve(&to->step, count))
        return false;
    for (uint32_t k = 0; k < count; k++)
        to->step.p[k] = rows->steps.steps == count && first + k < steps->list.n
                            ? steps->list.p[first + k].number
                            : k;
    to->step.n = count;
    return true;
}

enum ms_rc mstx__replay_calls(struct mstx_replay_rows *to, const struct mstx_call_rows *rows,
                              const struct mstx_steps *steps, const struct mstx_call_graph *g,
                              const struct mstx_waiters *w, struct ms_err *err)
{
    const struct called c = {g, w};
    const struct mstx_replayed r = {.deps = &g->deps,
                                    .recorded = g->weight,
                                    .ideal = w->healed,
                                    .lanes = rows->rank.n,
                                    .steps = w->steps,
                                    .is_chained = true,
                                    .op = describe_point,
                                    .ctx = &c};
    if (w->healed == NULL)
        return MS_OK;
    ms_assert(g->thread.n == rows->rank.n);
    if (!ms_vec_reserve(&to->lane, rows->rank.n))
        return ms_no_memory(err);
    for (size_t i = 0; i < rows->rank.n; i++)
        to->lane.p[to->lane.n++] =
            (struct mstx_replay_lane){rows->process.p[i], rows->rank.p[i], g->thread.p[i]};
    if (!number_steps(to, rows, steps, w->steps))
        return ms_no_memory(err);
    return pack_spans(to, &r, err);
}

/* ---- traces ------------------------------------------------------------------------ */

/* Returns the step of an operation: the last one that begins with it or before it. */
static uint32_t step_of(const struct mstx_ops *o, uint32_t op)
{
    size_t low = 0, high = mstx__ops_steps(o);
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        if (o->step.p[mid].first <= op)
            low = mid;
        else
            high = mid;
    }
    return (uint32_t)low;
}

static struct mstx_span_op describe_op(const void *ctx, uint32_t number)
{
    const struct mstx_ops *o = ctx;
    const struct mstx_op *op = &o->op.p[number];
    const struct mstx_op_type *t = &o->type.p[op->type];
    return (struct mstx_span_op){op->end_ns, op->rank * MSTX_OP_TRACKS + mstx__op_track(t),
                                 step_of(o, number), t->is_comm};
}

/* Lists the tracks of each rank; the process of a rank is that of its data-parallel rank. */
static bool list_lanes(struct mstx_replay_rows *to, const struct mstx_tl *tl,
                       const struct mstx_ops *o)
{
    if (!ms_vec_reserve(&to->lane, o->rank.n * MSTX_OP_TRACKS))
        return false;
    for (size_t i = 0; i < o->rank.n; i++) {
        const struct mstx_op_rank *r = &o->rank.p[i];
        uint32_t process = 0;
        while (process + 1 < mstx_tl_process_count(tl) &&
               mstx_tl_process(tl, process)->pid != (uint32_t)r->dp)
            process++;
        for (uint32_t k = 0; k < MSTX_OP_TRACKS; k++)
            to->lane.p[to->lane.n++] =
                (struct mstx_replay_lane){process, r->rank, (uint32_t)r->rank * MSTX_OP_TRACKS + k};
    }
    return true;
}

enum ms_rc mstx__replay_ops(struct mstx_replay_rows *to, const struct mstx_tl *tl,
                            const struct mstx_whatif *w, struct ms_err *err)
{
    const struct mstx_ops *o = w->o;
    const struct mstx_replayed r = {.deps = &w->deps,
                                    .recorded = w->recorded,
                                    .ideal = w->ideal,
                                    .lanes = o->rank.n * MSTX_OP_TRACKS,
                                    .steps = mstx__ops_steps(o),
                                    .op = describe_op,
                                    .ctx = o};
    if (!list_lanes(to, tl, o) || !ms_vec_reserve(&to->step, r.steps))
        return ms_no_memory(err);
    for (size_t s = 0; s < r.steps; s++)
        to->step.p[to->step.n++] = o->step.p[s].number;
    return pack_spans(to, &r, err);
}

void mstx__replay_free(struct mstx_replay_rows *r)
{
    mstx__side_close(&r->file);
    ms_vec_free(&r->blob);
    ms_vec_free(&r->lane);
    ms_vec_free(&r->step);
}

/* ---- writing ----------------------------------------------------------------------- */

static enum ms_rc copy_blob(const struct mstx_replay_rows *r, size_t number,
                            struct mstx_packed_out *out, struct ms_err *err)
{
    const struct mstx_replay_blob *b = &r->blob.p[number];
    char *bytes = ms_alloc(b->n);
    if (bytes == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = mstx__side_read(&r->file, b->at, bytes, b->n, err);
    if (rc == MS_OK)
        rc =
            mstx__packed_copy(out, (int64_t)number + 1, b->rows, (struct ms_str){bytes, b->n}, err);
    ms_free(bytes);
    return rc;
}

enum ms_rc mstx__replay_save(const struct mstx_replay_rows *r, struct ms_store *s,
                             struct ms_err *err)
{
    struct mstx_packed_out out;
    enum ms_rc rc = MS_OK;
    if (r->blob.n == 0)
        return MS_OK;
    MS_TRY(mstx__packed_spans_new(&out, s, err));
    for (size_t i = 0; i < r->blob.n && rc == MS_OK; i++)
        rc = copy_blob(r, i, &out, err);
    mstx__packed_free(&out);
    return rc;
}
