/* SPDX-License-Identifier: MIT
 *
 * to_chrome: writes Chrome trace events, in the plain form and in that of Ascend's trace_view.json.
 *
 * Viewers require the slices of one tid to nest, so every track has a tid of its own and
 * overlapping slices become pairs of async events.
 *
 * In Ascend's form the number of a process combines pid, place and device, streams of a device are
 * threads of a process "Ascend Hardware", and a flow "MsTx" leads from a mark to the point where
 * the device reached it.  The first track of a thread or stream has its number as tid; further
 * domains have numbers greater than any tid of an operating system.
 */
#include "mstx/foreign/to_chrome.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/export_flows.h"

#include "probe/base/num.h"

#include <inttypes.h>
#include <stdio.h>

/* Constants of Ascend's synthetic process numbers, and the first number of a flow. */
enum { HOST_SORT = 6, DEVICE_SORT = 14, HOST_LANE = 31, FURTHER_TIDS = 1 << 30 };
static const uint64_t CONNECTION_FIRST = 4000000001;

struct writer {
    struct mstx_tl *tl;
    struct ms_out *out;
    struct mstx_quoted quoted;
    struct mstx_nest nest;
    const struct mstx_track *track;
    struct ms_str domain; /* quoted */
    int64_t base_ns;
    uint64_t pid, tid, async, tasks;
    bool is_ascend, is_first, no_memory;
};

/* ---- pieces ----------------------------------------------------------------- */

static void write_u64(struct ms_out *o, uint64_t v)
{
    ms_out_used(o, ms_num_u64(ms_out_room(o, MS_NUM_MAX), v));
}

static void write_literal(struct writer *w, const char *text)
{
    ms_out_puts(w->out, text);
}

static void begin_event(struct writer *w, struct ms_str name, const char *phase)
{
    write_literal(w, w->is_first ? "\n{\"name\":" : ",\n{\"name\":");
    w->is_first = false;
    ms_out_str(w->out, name);
    write_literal(w, ",\"ph\":\"");
    write_literal(w, phase);
    write_literal(w, "\",\"pid\":");
    write_u64(w->out, w->pid);
    write_literal(w, ",\"tid\":");
    write_u64(w->out, w->tid);
}

static void write_timestamp(struct writer *w, int64_t ns)
{
    write_literal(w, w->is_ascend ? ",\"ts\":\"" : ",\"ts\":");
    mstx__put_us(w->out, ns - w->base_ns);
    if (w->is_ascend)
        write_literal(w, "\"");
}

/* ---- names of processes and threads ----------------------------------------- */

static void write_meta(struct writer *w, const char *what, const char *arg, struct ms_str value)
{
    char name[40];
    int n = snprintf(name, sizeof name, "\"%s\"", what);
    begin_event(w, (struct ms_str){name, (uint32_t)n}, "M");
    write_literal(w, ",\"args\":{\"");
    write_literal(w, arg);
    write_literal(w, "\":");
    ms_out_str(w->out, value);
    write_literal(w, "}}");
}

static bool is_stream(const struct mstx_track *t)
{
    return t->kind == MSTX_TRACK_STREAM;
}

static uint64_t pid_of(const struct writer *w, const struct mstx_track *t)
{
    uint64_t pid = mstx_tl_process(w->tl, t->process)->pid;
    if (!w->is_ascend)
        return t->process + 1;
    return is_stream(t) ? pid << 10 | DEVICE_SORT << 5 | t->device % HOST_LANE
                        : pid << 10 | HOST_SORT << 5 | HOST_LANE;
}

static void write_process_meta(struct writer *w, struct ms_str name, struct ms_str labels,
                               int place)
{
    char order[16];
    w->tid = 0;
    write_meta(w, "process_name", "name", name);
    if (labels.n != 0)
        write_meta(w, "process_labels", "labels", labels);
    int n = snprintf(order, sizeof order, "%d", place);
    write_meta(w, "process_sort_index", "sort_index", (struct ms_str){order, (uint32_t)n});
}

static void write_process(struct writer *w, size_t i)
{
    char label[MSTX_LABEL_MAX];
    const struct mstx_track host = {.process = (uint32_t)i};
    struct ms_str name = mstx__process_label(mstx_tl_process(w->tl, i), label);
    w->pid = pid_of(w, &host);
    write_process_meta(w, mstx__quote(&w->quoted, name),
                       w->is_ascend ? MS_STR("\"CPU\"") : (struct ms_str){"", 0},
                       w->is_ascend ? HOST_SORT : (int)i);
}

/* Tells whether an earlier track has the same process number, and the same tid. */
static void look_back(const struct writer *w, size_t i, bool *same_pid, bool *same_tid)
{
    const struct mstx_track *t = mstx_tl_track(w->tl, i);
    *same_pid = *same_tid = false;
    for (size_t k = 0; k < i && !*same_tid; k++) {
        const struct mstx_track *b = mstx_tl_track(w->tl, k);
        if (b->process != t->process || is_stream(b) != is_stream(t) || b->device != t->device)
            continue;
        *same_pid = true;
        *same_tid = b->kind == t->kind && b->tid == t->tid;
    }
}

/* Computes pid and tid of a track in Ascend's form; names the device before its first stream. */
static void place_ascend(struct writer *w, size_t i)
{
    const struct mstx_track *t = w->track;
    bool same_pid, same_tid;
    char label[32];
    look_back(w, i, &same_pid, &same_tid);
    if (is_stream(t) && !same_pid) {
        int n = snprintf(label, sizeof label, "\"NPU %" PRIu32 "\"", t->device);
        write_process_meta(w, MS_STR("\"Ascend Hardware\""), (struct ms_str){label, (uint32_t)n},
                           DEVICE_SORT);
    }
    bool has_number = (t->kind == MSTX_TRACK_THREAD || is_stream(t)) && !same_tid;
    w->tid = has_number ? t->tid : (uint64_t)FURTHER_TIDS + t->id;
}

static void write_thread(struct writer *w)
{
    struct ms_buf b = {.max = 1 << 22};
    const struct mstx_track *t = w->track;
    if (w->is_ascend && is_stream(t))
        ms_buf_printf(&b, "Stream %" PRIu32, t->tid);
    else if (t->name.n != 0)
        ms_buf_str(&b, t->name);
    else
        ms_buf_printf(&b, "Thread %" PRIu32, t->tid);
    if (!ms_str_is(t->domain, "default"))
        ms_buf_printf(&b, " [%.*s]", MS_STR_ARG(t->domain));
    w->no_memory |= b.bad == MS_E_NOMEM;
    write_meta(w, "thread_name", "name", mstx__quote(&w->quoted, ms_buf_slice(&b)));
    ms_buf_free(&b);
}

/* ---- events ----------------------------------------------------------------- */

/* Writes the category that the trace of another tool gave to the event. */
static void write_category(struct writer *w, const struct mstx_event *e)
{
    if (!(e->flags & MSTX_EVF_CATEGORY) || w->is_ascend)
        return;
    write_literal(w, ",\"cat\":");
    ms_out_str(w->out, mstx__quoted(&w->quoted, (uint32_t)e->arg));
}

static void write_args(struct writer *w, const struct mstx_event *e)
{
    struct ms_str args = mstx_tl_text(w->tl, e->args);
    write_literal(w, ",\"args\":{\"event_type\":\"");
    write_literal(w, mstx__event_type_text(e));
    write_literal(w, "\",\"domain\":");
    ms_out_str(w->out, w->domain);
    if (e->flags & MSTX_EVF_UNFINISHED)
        write_literal(w, ",\"unfinished\":true");
    if (e->end_tid != 0) {
        write_literal(w, ",\"end_tid\":");
        write_u64(w->out, e->end_tid);
    }
    if (e->kind == MSTX_EV_REGION) {
        write_literal(w, ",\"address\":");
        write_u64(w->out, e->arg);
        write_literal(w, ",\"bytes\":");
        write_u64(w->out, e->size);
    }
    if (args.n > 2) { /* the members of args, without the braces */
        write_literal(w, ",");
        ms_out_str(w->out, ms_str_sub(args, 1, args.n - 1));
    }
    write_literal(w, "}}");
}

static void write_task_args(struct writer *w)
{
    write_literal(w, ",\"args\":{\"Physic Stream Id\":");
    write_u64(w->out, w->track->tid);
    write_literal(w, ",\"Task Id\":");
    write_u64(w->out, ++w->tasks);
    write_literal(w, ",\"domain\":");
    ms_out_str(w->out, w->domain);
    write_literal(w, "}}");
}

/* Writes one end of a flow. An event and its device side have the same size, which is not 0. */
static void write_flow(struct writer *w, const struct mstx_event *e)
{
    char name[32], id[32];
    uint64_t number = CONNECTION_FIRST + ((uint64_t)w->track->process << 32) + e->size;
    int n = snprintf(id, sizeof id, "\"%" PRIu64 "\"", number);
    int m = snprintf(name, sizeof name, "\"MsTx_%" PRIu64 "\"", number);
    begin_event(w, (struct ms_str){name, (uint32_t)m}, is_stream(w->track) ? "f" : "s");
    if (is_stream(w->track))
        write_literal(w, ",\"bp\":\"e\"");
    write_literal(w, ",\"cat\":\"MsTx\",\"id\":");
    ms_out_str(w->out, (struct ms_str){id, (uint32_t)n});
    write_timestamp(w, e->start_ns);
    write_literal(w, "}");
}

static void write_slice(struct writer *w, const struct mstx_event *e)
{
    begin_event(w, mstx__quoted(&w->quoted, e->name), "X");
    write_category(w, e);
    write_timestamp(w, e->start_ns);
    write_literal(w, ",\"dur\":");
    mstx__put_us(w->out, e->dur_ns);
    if (w->is_ascend && is_stream(w->track))
        write_task_args(w);
    else
        write_args(w, e);
}

static void write_async(struct writer *w, const struct mstx_event *e, const char *phase)
{
    begin_event(w, mstx__quoted(&w->quoted, e->name), phase);
    write_literal(w, ",\"cat\":");
    ms_out_str(w->out, w->domain);
    write_literal(w, ",\"id\":");
    write_u64(w->out, w->async);
    write_timestamp(w, phase[0] == 'b' ? e->start_ns : e->start_ns + e->dur_ns);
    if (phase[0] == 'b')
        write_args(w, e);
    else
        write_literal(w, "}");
}

static void write_mark(struct writer *w, const struct mstx_event *e)
{
    /* Ascend's files show a mark as a slice without a length. */
    if (w->is_ascend) {
        write_slice(w, e);
        return;
    }
    begin_event(w, mstx__quoted(&w->quoted, e->name), "i");
    write_category(w, e);
    write_timestamp(w, e->start_ns);
    write_literal(w, ",\"s\":\"t\"");
    write_args(w, e);
}

static void write_counter(struct writer *w, const struct mstx_event *e)
{
    double v = mstx_event_value(e);
    begin_event(w, mstx__quoted(&w->quoted, e->name), "C");
    write_timestamp(w, e->start_ns);
    write_literal(w, ",\"args\":{\"value\":");
    if (v - v != 0) /* JSON has neither NaN nor infinity */
        write_literal(w, "null");
    else if (e->flags & MSTX_EVF_FLOAT)
        ms_out_used(w->out, ms_num_f64(ms_out_room(w->out, MS_NUM_MAX), v));
    else
        ms_out_used(w->out, ms_num_i64(ms_out_room(w->out, MS_NUM_MAX), (int64_t)e->arg));
    write_literal(w, "}}");
}

static void write_range(struct writer *w, const struct mstx_event *e)
{
    unsigned lane;
    int64_t end = e->start_ns + e->dur_ns;
    if (!mstx__nest(&w->nest, e->start_ns, &end, NULL, NULL, &lane))
        w->no_memory = true;
    if (lane == 0) {
        write_slice(w, e);
        return;
    }
    w->async++;
    write_async(w, e, "b");
    write_async(w, e, "e");
}

static enum ms_rc write_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct writer *w = ctx;
    if (e->kind == MSTX_EV_MARK)
        write_mark(w, e);
    else if (e->kind == MSTX_EV_COUNTER)
        write_counter(w, e);
    else
        write_range(w, e);
    bool may_be_linked = e->kind != MSTX_EV_COUNTER && e->kind != MSTX_EV_REGION;
    if (w->is_ascend && may_be_linked && e->size != 0)
        write_flow(w, e);
    return w->no_memory || w->quoted.bad != MS_OK ? ms_no_memory(err) : MS_OK;
}

/* ---- the whole trace -------------------------------------------------------- */

static enum ms_rc write_track(struct writer *w, size_t i, struct ms_err *err)
{
    w->track = mstx_tl_track(w->tl, i);
    w->pid = pid_of(w, w->track);
    w->tid = w->track->id;
    if (w->is_ascend)
        place_ascend(w, i);
    w->domain = mstx__quote(&w->quoted, w->track->domain);
    write_thread(w);
    enum ms_rc rc = mstx_tl_walk(w->tl, i, NULL, write_event, w, err);
    mstx__nest_finish(&w->nest, NULL, NULL);
    return rc;
}

/* Writes one end of an arrow of another tool's trace. */
static void write_arrow(struct writer *w, const struct mstx_flow *f, uint64_t id, bool begins)
{
    const struct ms_str name = mstx__quote(&w->quoted, ms_str_of(f->name));
    w->track = mstx_tl_track(w->tl, begins ? f->from_track : f->to_track);
    w->pid = pid_of(w, w->track);
    w->tid = w->track->id;
    begin_event(w, name, begins ? "s" : "f");
    write_literal(w, ",\"cat\":");
    ms_out_str(w->out, name);
    write_literal(w, ",\"id\":");
    write_u64(w->out, id);
    write_timestamp(w, begins ? f->from_ns : f->to_ns);
    write_literal(w, begins ? "}" : ",\"bp\":\"e\"}");
}

static enum ms_rc write_arrows(struct writer *w, struct ms_err *err)
{
    mstx_flows flows;
    MS_TRY(mstx__flows_read(w->tl, &flows, err));
    for (size_t i = 0; i < flows.n; i++) {
        write_arrow(w, &flows.p[i], i + 1, true);
        write_arrow(w, &flows.p[i], i + 1, false);
    }
    ms_vec_free(&flows);
    return MS_OK;
}

static enum ms_rc write_all(struct writer *w, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_process_count(w->tl); i++)
        write_process(w, i);
    for (size_t i = 0; i < mstx_tl_track_count(w->tl); i++)
        MS_TRY(write_track(w, i, err));
    if (!w->is_ascend)
        MS_TRY(write_arrows(w, err));
    if (w->no_memory || w->quoted.bad != MS_OK)
        return ms_no_memory(err);
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
        write_literal(&w, "[");
    } else {
        w.base_ns = start;
        ms_out_printf(out,
                      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start_unix_ns\":\"%" PRId64
                      "\"},\"traceEvents\":[",
                      start);
    }
    enum ms_rc rc = write_all(&w, err);
    write_literal(&w, is_ascend ? "\n]\n" : "\n]}\n");
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
