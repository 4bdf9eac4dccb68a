/* SPDX-License-Identifier: MIT
 *
 * breakdown: see the header.
 */
#include "mstx/conclude/breakdown.h"

#include "mstx/cluster/rank_part.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* The bounds of HolisticTraceAnalysis, so that its users find their figures again. */
static const int64_t KERNEL_GAP_NS = 30000, SLOW_CALL_NS = 50000, LATE_NS = 100000;

/* ---- collecting the events of a process ------------------------------------------------ */

/* A call of the runtime, or an event of the device, with the number that both have. */
struct half {
    uint64_t number;
    int64_t start, end;
};

struct executed {
    struct half half;
    uint32_t device, stream, name;
};

struct collected {
    struct mstx_tl *tl;
    const struct mstx_track *track;
    MS_VEC(struct half) call;
    MS_VEC(struct executed) work;
    struct mstx_work_memory works; /* by text */
};

static enum ms_rc take_call(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct collected *c = ctx;
    if (e->size == 0 || e->kind > MSTX_EV_PUSHPOP)
        return MS_OK;
    struct half *slot = ms_vec_push(&c->call);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct half){e->size, e->start_ns, e->start_ns + e->dur_ns};
    return MS_OK;
}

static enum ms_rc take_work(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct collected *c = ctx;
    if (e->kind != MSTX_EV_RANGE && e->kind != MSTX_EV_PUSHPOP)
        return MS_OK;
    struct executed *slot = ms_vec_push(&c->work);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct executed){.half = {e->size, e->start_ns, e->start_ns + e->dur_ns},
                              .device = c->track->device,
                              .stream = c->track->tid,
                              .name = e->name};
    return MS_OK;
}

static bool is_kernels(const struct mstx_track *t)
{
    return t->kind == MSTX_TRACK_STREAM && ms_str_is(t->domain, MSTX_KERNELS_DOMAIN);
}

static enum ms_rc collect(struct collected *c, uint32_t process, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(c->tl); i++) {
        c->track = mstx_tl_track(c->tl, i);
        if (c->track->process != process)
            continue;
        if (is_kernels(c->track))
            MS_TRY(mstx_tl_walk(c->tl, i, NULL, take_work, c, err));
        else if (c->track->kind == MSTX_TRACK_THREAD)
            MS_TRY(mstx_tl_walk(c->tl, i, NULL, take_call, c, err));
    }
    return MS_OK;
}

static bool work_of(struct collected *c, uint32_t name, enum mstx_work *work)
{
    return mstx__work_recall(&c->works, name, mstx_tl_text(c->tl, name), work);
}

/* ---- unions ------------------------------------------------------------------------------ */

static int64_t length_of(mstx_cl_spans *s)
{
    int64_t sum = 0;
    mstx__spans_join(s);
    for (size_t i = 0; i < s->n; i++)
        sum += s->p[i].end - s->p[i].start;
    return sum;
}

static bool add_span(mstx_cl_spans *s, const struct half *h)
{
    struct mstx_cl_span *slot = ms_vec_push(s);
    if (slot != NULL)
        *slot = (struct mstx_cl_span){h->start, h->end};
    return slot != NULL;
}

/* Spans of each kind of work, of all work, and of computation with communication. */
enum { ALL = MSTX_WORKS, BOTH, LISTS };

static bool fill_spans(struct collected *c, mstx_cl_spans list[LISTS])
{
    for (size_t i = 0; i < c->work.n; i++) {
        const struct half *h = &c->work.p[i].half;
        enum mstx_work work;
        if (!work_of(c, c->work.p[i].name, &work) || !add_span(&list[work], h) ||
            !add_span(&list[ALL], h) || (work != MSTX_WORK_MEMORY && !add_span(&list[BOTH], h)))
            return false;
    }
    return true;
}

static bool measure_use(struct collected *c, struct mstx_rank_breakdown *r)
{
    mstx_cl_spans list[LISTS] = {{0}};
    const bool ok = fill_spans(c, list);
    if (ok) {
        r->busy_ns = length_of(&list[ALL]);
        r->window_ns =
            list[ALL].n != 0 ? list[ALL].p[list[ALL].n - 1].end - list[ALL].p[0].start : 0;
        for (int k = 0; k < MSTX_WORKS; k++)
            r->work_ns[k] = length_of(&list[k]);
        r->overlap_ns =
            r->work_ns[MSTX_WORK_COMPUTE] + r->work_ns[MSTX_WORK_COMM] - length_of(&list[BOTH]);
    }
    for (int k = 0; k < LISTS; k++)
        ms_vec_free(&list[k]);
    return ok;
}

/* ---- launches and idle time ---------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const struct half *x = a, *y = b;
    return MS_ORDER(x->number, y->number, MS_ORDER(x->start, y->start, 0));
}

/* Finds the call with the number, NULL when there is none. Calls are in order of their numbers. */
static const struct half *call_of(const struct collected *c, uint64_t number)
{
    size_t low = 0, high = c->call.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (c->call.p[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return number != 0 && low < c->call.n && c->call.p[low].number == number ? &c->call.p[low]
                                                                             : NULL;
}

static void count_launch(struct mstx_launches *l, const struct half *call, const struct half *event,
                         int64_t delay)
{
    l->brief += call->end - call->start > event->end - event->start;
    l->slow += call->end - call->start > SLOW_CALL_NS;
    l->late += delay > LATE_NS;
    l->at_once += delay < 0;
    l->most_delay_ns = l->pairs == 0 || delay > l->most_delay_ns ? delay : l->most_delay_ns;
    l->pairs++;
}

static bool measure_launches(const struct collected *c, struct mstx_launches *l)
{
    int64_t *delay = ms_calloc(c->work.n + 1, sizeof *delay);
    if (delay == NULL)
        return false;
    for (size_t i = 0; i < c->work.n; i++) {
        const struct half *event = &c->work.p[i].half, *call = call_of(c, event->number);
        if (call == NULL)
            continue;
        delay[l->pairs] = event->start - call->end;
        count_launch(l, call, event, delay[l->pairs]);
    }
    if (l->pairs != 0) {
        const size_t n = l->pairs;
        qsort(delay, n, sizeof *delay, ms_order_i64);
        l->median_delay_ns = delay[n / 2];
    }
    ms_free(delay);
    return true;
}

static int by_stream(const void *a, const void *b)
{
    const struct executed *x = a, *y = b;
    return MS_ORDER(
        x->device, y->device,
        MS_ORDER(x->stream, y->stream,
                 MS_ORDER(x->half.start, y->half.start, MS_ORDER(x->half.end, y->half.end, 0))));
}

static enum mstx_idle why_idle(const struct collected *c, const struct executed *x,
                               int64_t free_from)
{
    const struct half *call = call_of(c, x->half.number);
    if (call != NULL && call->start > free_from)
        return MSTX_IDLE_HOST;
    return x->half.start - free_from < KERNEL_GAP_NS ? MSTX_IDLE_KERNEL : MSTX_IDLE_OTHER;
}

/* Finds the idle time of each stream. The work is in order of streams. */
static bool measure_idle(const struct collected *c, struct mstx_rank_breakdown *r)
{
    int64_t free_from = 0;
    struct mstx_stream_idle *now = NULL;
    for (size_t i = 0; i < c->work.n; i++) {
        const struct executed *x = &c->work.p[i];
        if (now == NULL || now->device != x->device || now->stream != x->stream) {
            now = ms_vec_push(&r->idle);
            if (now == NULL)
                return false;
            *now = (struct mstx_stream_idle){.device = x->device, .stream = x->stream};
            free_from = x->half.end;
            continue;
        }
        if (x->half.start > free_from)
            now->ns[why_idle(c, x, free_from)] += x->half.start - free_from;
        free_from = x->half.end > free_from ? x->half.end : free_from;
    }
    return true;
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct executed *x = a, *y = b;
    return MS_ORDER(x->name, y->name, 0);
}

static int longer_first(const void *a, const void *b)
{
    const struct mstx_kernel_sum *x = a, *y = b;
    return MS_ORDER(y->total_ns, x->total_ns, MS_ORDER(x->name, y->name, 0));
}

/* Sums up the kernels of each name. Leaves the work in order of names. */
static bool sum_kernels(struct collected *c, struct mstx_rank_breakdown *r)
{
    struct mstx_kernel_sum *k = NULL;
    qsort(c->work.p, c->work.n, sizeof *c->work.p, by_name);
    for (size_t i = 0; i < c->work.n; i++) {
        const struct executed *x = &c->work.p[i];
        const int64_t took = x->half.end - x->half.start;
        if (k == NULL || k->name != x->name) {
            enum mstx_work work;
            k = work_of(c, x->name, &work) ? ms_vec_push(&r->kernel) : NULL;
            if (k == NULL)
                return false;
            *k = (struct mstx_kernel_sum){
                .name = x->name, .work = work, .least_ns = took, .most_ns = took};
        }
        k->count++;
        k->total_ns += took;
        k->least_ns = took < k->least_ns ? took : k->least_ns;
        k->most_ns = took > k->most_ns ? took : k->most_ns;
    }
    if (r->kernel.n > 1)
        qsort(r->kernel.p, r->kernel.n, sizeof *r->kernel.p, longer_first);
    return true;
}

/* ---- all processes ----------------------------------------------------------------------------- */

static enum ms_rc measure(struct collected *c, mstx_breakdown *b, uint32_t process,
                          struct ms_err *err)
{
    MS_TRY(collect(c, process, err));
    if (c->work.n == 0)
        return MS_OK;
    struct mstx_rank_breakdown *r = ms_vec_push(b);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct mstx_rank_breakdown){.rank = mstx_tl_process(c->tl, process)->rank,
                                      .process = process};
    if (c->call.n > 1)
        qsort(c->call.p, c->call.n, sizeof *c->call.p, by_number);
    qsort(c->work.p, c->work.n, sizeof *c->work.p, by_stream);
    const bool ok = measure_use(c, r) && measure_launches(c, &r->launches) && measure_idle(c, r) &&
                    sum_kernels(c, r);
    return ok ? MS_OK : ms_no_memory(err);
}

static bool has_kernels(struct mstx_tl *tl)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        if (is_kernels(mstx_tl_track(tl, i)))
            return true;
    }
    return false;
}

enum ms_rc mstx_breakdown_measure(struct mstx_tl *tl, mstx_breakdown *b, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    *b = (mstx_breakdown){0};
    const size_t processes = has_kernels(tl) ? mstx_tl_process_count(tl) : 0;
    for (size_t i = 0; i < processes && rc == MS_OK; i++) {
        struct collected c = {.tl = tl};
        rc = measure(&c, b, (uint32_t)i, err);
        ms_vec_free(&c.call);
        ms_vec_free(&c.work);
        ms_vec_free(&c.works.of);
    }
    if (rc != MS_OK)
        mstx_breakdown_free(b);
    return rc;
}

void mstx_breakdown_free(mstx_breakdown *b)
{
    for (size_t i = 0; i < b->n; i++) {
        ms_vec_free(&b->p[i].idle);
        ms_vec_free(&b->p[i].kernel);
    }
    ms_vec_free(b);
}
