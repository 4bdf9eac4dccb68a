/* SPDX-License-Identifier: MIT
 *
 * tl_chrome: Chrome trace events, in the plain form and in that of Ascend's
 * trace_view.json.
 *
 * Viewers want slices of one tid to nest, so every track is a tid of its own, and
 * what overlaps becomes a pair of async events.
 */
#include "mstx/tl_export.h"

#include "probe/base/num.h"

#include <inttypes.h>
#include <stdio.h>

enum { HOST_SORT = 6, HOST_LANE = 31 /* of Ascend's synthetic process numbers */ };

struct writer {
    struct mstx_tl *tl;
    struct ms_out *out;
    struct mstx_quoted quoted;
    struct mstx_nest nest;
    const struct mstx_track *track;
    struct ms_str domain; /* quoted */
    int64_t base_ns;
    uint64_t pid, tid, async;
    bool is_ascend, is_first, no_memory;
};

static enum ms_rc fail_memory(struct ms_err *err)
{
    return ms_no_memory(err);
}

/* ---- pieces ----------------------------------------------------------------- */

static void put_u64(struct ms_out *o, uint64_t v)
{
    ms_out_used(o, ms_num_u64(ms_out_room(o, MS_NUM_MAX), v));
}

static void lit(struct writer *w, const char *text)
{
    ms_out_puts(w->out, text);
}

static void begin_event(struct writer *w, struct ms_str name, const char *phase)
{
    lit(w, w->is_first ? "\n{\"name\":" : ",\n{\"name\":");
    w->is_first = false;
    ms_out_str(w->out, name);
    lit(w, ",\"ph\":\"");
    lit(w, phase);
    lit(w, "\",\"pid\":");
    put_u64(w->out, w->pid);
    lit(w, ",\"tid\":");
    put_u64(w->out, w->tid);
}

static void put_ts(struct writer *w, int64_t ns)
{
    lit(w, w->is_ascend ? ",\"ts\":\"" : ",\"ts\":");
    mstx__put_us(w->out, ns - w->base_ns);
    if (w->is_ascend)
        lit(w, "\"");
}

/* ---- names of processes and threads ----------------------------------------- */

static void put_meta(struct writer *w, const char *what, const char *arg, struct ms_str value)
{
    char name[40];
    int n = snprintf(name, sizeof name, "\"%s\"", what);
    begin_event(w, (struct ms_str){name, (uint32_t)n}, "M");
    lit(w, ",\"args\":{\"");
    lit(w, arg);
    lit(w, "\":");
    ms_out_str(w->out, value);
    lit(w, "}}");
}

static uint64_t pid_of(const struct writer *w, uint32_t process)
{
    uint64_t pid = mstx_tl_process(w->tl, process)->pid;
    return w->is_ascend ? pid << 10 | HOST_SORT << 5 | HOST_LANE : process + 1;
}

static void put_process(struct writer *w, size_t i)
{
    char label[MSTX_LABEL_MAX], order[16];
    const struct mstx_process *p = mstx_tl_process(w->tl, i);
    w->pid = pid_of(w, (uint32_t)i);
    w->tid = 0;
    put_meta(w, "process_name", "name", mstx__quote(&w->quoted, mstx__process_label(p, label)));
    if (w->is_ascend)
        put_meta(w, "process_labels", "labels", MS_STR("\"CPU\""));
    int n = snprintf(order, sizeof order, "%d", w->is_ascend ? HOST_SORT : (int)i);
    put_meta(w, "process_sort_index", "sort_index", (struct ms_str){order, (uint32_t)n});
}

static void put_thread(struct writer *w)
{
    struct ms_buf b = {.max = 1 << 22};
    const struct mstx_track *t = w->track;
    if (t->name.n != 0)
        ms_buf_str(&b, t->name);
    else
        ms_buf_printf(&b, "Thread %" PRIu32, t->tid);
    if (!ms_str_is(t->domain, "default"))
        ms_buf_printf(&b, " [%.*s]", MS_STR_ARG(t->domain));
    w->no_memory |= b.bad == MS_E_NOMEM;
    put_meta(w, "thread_name", "name", mstx__quote(&w->quoted, ms_buf_slice(&b)));
    ms_buf_free(&b);
}

/* ---- events ----------------------------------------------------------------- */

static void put_args(struct writer *w, const struct mstx_event *e)
{
    struct ms_str args = mstx_tl_text(w->tl, e->args);
    lit(w, ",\"args\":{\"event_type\":\"");
    lit(w, mstx__event_type_text(e));
    lit(w, "\",\"domain\":");
    ms_out_str(w->out, w->domain);
    if (e->flags & MSTX_EVF_UNFINISHED)
        lit(w, ",\"unfinished\":true");
    if (e->end_tid != 0) {
        lit(w, ",\"end_tid\":");
        put_u64(w->out, e->end_tid);
    }
    if (e->kind == MSTX_EV_REGION) {
        lit(w, ",\"address\":");
        put_u64(w->out, e->arg);
        lit(w, ",\"bytes\":");
        put_u64(w->out, e->size);
    }
    if (args.n > 2) { /* its members, without the braces */
        lit(w, ",");
        ms_out_str(w->out, ms_str_sub(args, 1, args.n - 1));
    }
    lit(w, "}}");
}

static void put_slice(struct writer *w, const struct mstx_event *e)
{
    begin_event(w, mstx__quoted(&w->quoted, e->name), "X");
    put_ts(w, e->start_ns);
    lit(w, ",\"dur\":");
    mstx__put_us(w->out, e->dur_ns);
    put_args(w, e);
}

static void put_async(struct writer *w, const struct mstx_event *e, const char *phase)
{
    begin_event(w, mstx__quoted(&w->quoted, e->name), phase);
    lit(w, ",\"cat\":");
    ms_out_str(w->out, w->domain);
    lit(w, ",\"id\":");
    put_u64(w->out, w->async);
    put_ts(w, phase[0] == 'b' ? e->start_ns : e->start_ns + e->dur_ns);
    if (phase[0] == 'b')
        put_args(w, e);
    else
        lit(w, "}");
}

static void put_mark(struct writer *w, const struct mstx_event *e)
{
    /* Ascend's files show a mark as a slice without a length. */
    if (w->is_ascend) {
        put_slice(w, e);
        return;
    }
    begin_event(w, mstx__quoted(&w->quoted, e->name), "i");
    put_ts(w, e->start_ns);
    lit(w, ",\"s\":\"t\"");
    put_args(w, e);
}

static void put_counter(struct writer *w, const struct mstx_event *e)
{
    double v = mstx_event_value(e);
    begin_event(w, mstx__quoted(&w->quoted, e->name), "C");
    put_ts(w, e->start_ns);
    lit(w, ",\"args\":{\"value\":");
    if (v - v != 0) /* neither NaN nor infinity is JSON */
        lit(w, "null");
    else if (e->flags & MSTX_EVF_FLOAT)
        ms_out_used(w->out, ms_num_f64(ms_out_room(w->out, MS_NUM_MAX), v));
    else
        ms_out_used(w->out, ms_num_i64(ms_out_room(w->out, MS_NUM_MAX), (int64_t)e->arg));
    lit(w, "}}");
}

static void put_range(struct writer *w, const struct mstx_event *e)
{
    unsigned lane;
    int64_t end = e->start_ns + e->dur_ns;
    if (!mstx__nest(&w->nest, e->start_ns, &end, NULL, NULL, &lane))
        w->no_memory = true;
    if (lane == 0) {
        put_slice(w, e);
        return;
    }
    w->async++;
    put_async(w, e, "b");
    put_async(w, e, "e");
}

static enum ms_rc put_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct writer *w = ctx;
    if (e->kind == MSTX_EV_MARK)
        put_mark(w, e);
    else if (e->kind == MSTX_EV_COUNTER)
        put_counter(w, e);
    else
        put_range(w, e);
    return w->no_memory || w->quoted.bad != MS_OK ? fail_memory(err) : MS_OK;
}

/* ---- the whole -------------------------------------------------------------- */

static enum ms_rc put_track(struct writer *w, size_t i, struct ms_err *err)
{
    w->track = mstx_tl_track(w->tl, i);
    w->pid = pid_of(w, w->track->process);
    w->tid = w->track->id;
    w->domain = mstx__quote(&w->quoted, w->track->domain);
    put_thread(w);
    enum ms_rc rc = mstx_tl_walk(w->tl, i, NULL, put_event, w, err);
    mstx__nest_finish(&w->nest, NULL, NULL);
    return rc;
}

static enum ms_rc put_all(struct writer *w, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_process_count(w->tl); i++)
        put_process(w, i);
    for (size_t i = 0; i < mstx_tl_track_count(w->tl); i++)
        MS_TRY(put_track(w, i, err));
    if (w->no_memory || w->quoted.bad != MS_OK)
        return fail_memory(err);
    MS_TRY(mstx__tl_check(w->tl, err));
    return ms_out_flush(w->out, err);
}

static enum ms_rc export_as(struct mstx_tl *tl, struct ms_out *out, bool is_ascend,
                            struct ms_err *err)
{
    struct writer w = {.tl = tl, .out = out, .is_ascend = is_ascend, .is_first = true};
    int64_t start, end;
    MS_TRY(mstx__quoted_new(&w.quoted, tl, err));
    mstx_tl_span(tl, &start, &end);
    if (is_ascend) {
        lit(&w, "[");
    } else {
        w.base_ns = start;
        ms_out_printf(out,
                      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start_unix_ns\":\"%" PRId64
                      "\"},\"traceEvents\":[",
                      start);
    }
    enum ms_rc rc = put_all(&w, err);
    lit(&w, is_ascend ? "\n]\n" : "\n]}\n");
    mstx__quoted_free(&w.quoted);
    return rc;
}

enum ms_rc mstx_export_chrome(struct mstx_tl *tl, struct ms_out *out, struct ms_err *err)
{
    return export_as(tl, out, false, err);
}

enum ms_rc mstx_export_trace_view(struct mstx_tl *tl, struct ms_out *out, struct ms_err *err)
{
    return export_as(tl, out, true, err);
}
