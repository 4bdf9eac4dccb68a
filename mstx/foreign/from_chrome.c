/* SPDX-License-Identifier: MIT
 *
 * from_chrome: reads Chrome traces into a run.db, those of PyTorch's profiler with its categories.
 *
 * Every pid is a process, every tid a track; complete, begin/end, instant, async and counter events
 * and flows are imported.  A profiler gives each device a pid of its own; its streams become tracks
 * of the one process that is traced.  A truncated file, as crashed programs leave it, is read up to
 * its end.
 */
#include "mstx/foreign/from_chrome.h"

#include "mstx/foreign/kineto.h"
#include "mstx/foreign/trace_item_fast.h"
#include "mstx/foreign/trace_lanes.h"
#include "mstx/foreign/trace_ranks.h"
#include "mstx/foreign/trace_shapes.h"
#include "mstx/foreign/trace_text.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An open async event. */
struct async {
    uint32_t lane;
    size_t at;
    bool is_open, stays_unfinished;
};

struct reader {
    struct mstx_trace_text text;
    struct mstx_trace_json json;
    struct mstx_trace_shapes shapes;
    struct mstx_trace_lanes lanes;
    struct mstx_trace_rank part;
    struct ms_map asyncs;
    MS_VEC(struct async) async;
    int32_t rank;     /* -1: the trace does not say */
    bool says_rank;   /* rank is that of distributedInfo */
    bool is_alone;    /* the run has no other trace */
    bool is_profiler; /* the trace is one of PyTorch's profiler */
    bool at_events;   /* the list of events comes next */
    uint64_t misplaced;
};

/* ---- the kinds of events ---------------------------------------------------- */

static enum mstx_event_kind kind_of(const struct mstx_trace_item *it, enum mstx_event_kind kind)
{
    if (ms_str_is(it->type, "marker"))
        return MSTX_EV_MARK;
    return ms_str_is(it->type, "push/pop") ? MSTX_EV_PUSHPOP : kind;
}

/* Finds the lane of a slice or mark. */
static struct mstx_trace_lane *lane_of(struct reader *r, const struct mstx_trace_item *it,
                                       enum mstx_kineto_side side, uint32_t *index)
{
    r->is_profiler |= side != MSTX_SIDE_HOST;
    uint64_t pid;
    if (side == MSTX_SIDE_DEVICE)
        return mstx__trace_lanes_stream(&r->lanes, it, MSTX_KERNELS_DOMAIN, index);
    if (side == MSTX_SIDE_BESIDE)
        return mstx__trace_lanes_stream(&r->lanes, it, MSTX_BESIDE_DOMAIN, index);
    if (side == MSTX_SIDE_TOOL || (r->is_profiler && !ms_str_u64(it->pid, &pid)))
        return mstx__trace_lanes_tool(&r->lanes, it, index);
    return mstx__trace_lanes_thread(&r->lanes, it, index);
}

static bool is_profiler_step(const struct mstx_trace_item *it, int64_t *number)
{
    const struct ms_str start = MS_STR("ProfilerStep#");
    uint64_t v;
    if (!ms_str_starts(it->name, start) ||
        !ms_str_u64(ms_str_sub(it->name, start.n, it->name.n), &v) || v > UINT32_MAX)
        return false;
    *number = (int64_t)v;
    return true;
}

/* Takes what a slice of the profiler says of its rank. */
static bool take_part(struct reader *r, const struct mstx_trace_item *it,
                      enum mstx_kineto_side side, uint32_t text)
{
    int64_t number;
    if (side == MSTX_SIDE_HOST)
        return !is_profiler_step(it, &number) ||
               mstx__trace_rank_step(&r->part, number, it->ts, it->ts + it->dur);
    if (side != MSTX_SIDE_DEVICE)
        return true;
    const uint32_t stream = it->stream >= 0 && it->stream <= UINT32_MAX ? (uint32_t)it->stream : 0;
    return mstx__trace_rank_work(&r->part, it, text) && mstx__trace_rank_call(&r->part, it, stream);
}

static bool add_slice(struct reader *r, const struct mstx_trace_item *it, enum mstx_event_kind kind)
{
    uint32_t index;
    const enum mstx_kineto_side side =
        it->category.n != 0 ? mstx__kineto_side(it->category) : MSTX_SIDE_HOST;
    struct mstx_trace_lane *l = lane_of(r, it, side, &index);
    const struct mstx_event *e =
        l != NULL ? mstx__trace_lanes_add(&r->lanes, l, it, kind_of(it, kind)) : NULL;
    return e != NULL && take_part(r, it, side, e->name);
}

static bool add_begin(struct reader *r, const struct mstx_trace_item *it)
{
    uint32_t index;
    struct mstx_trace_lane *l = mstx__trace_lanes_thread(&r->lanes, it, &index);
    struct mstx_event *e =
        l != NULL ? mstx__trace_lanes_add(&r->lanes, l, it, MSTX_EV_PUSHPOP) : NULL;
    size_t *open = e != NULL ? ms_vec_push(&l->open) : NULL;
    if (open == NULL)
        return false;
    e->flags |= MSTX_EVF_UNFINISHED;
    *open = l->ev.n - 1;
    return true;
}

static bool add_end(struct reader *r, const struct mstx_trace_item *it)
{
    uint32_t index;
    struct mstx_trace_lane *l = mstx__trace_lanes_thread(&r->lanes, it, &index);
    if (l == NULL)
        return false;
    if (l->open.n == 0)
        r->misplaced++;
    else
        mstx__trace_lanes_close(&r->lanes, &l->ev.p[l->open.p[--l->open.n]], it->ts, true);
    return true;
}

static struct async *async_of(struct reader *r, const struct mstx_trace_item *it)
{
    struct ms_buf key = {.max = 1 << 24};
    bool added;
    ms_buf_printf(&key, "%.*s/%.*s/%.*s/", MS_STR_ARG(it->pid), MS_STR_ARG(it->id),
                  MS_STR_ARG(it->category));
    ms_buf_str(&key, it->name);
    uint32_t at = key.bad == MS_OK
                      ? ms_map_put_copy(&r->asyncs, ms_buf_slice(&key), r->json.arena, &added)
                      : MS_MAP_NONE;
    ms_buf_free(&key);
    if (at == MS_MAP_NONE)
        return NULL;
    if (added) {
        struct async *a = ms_vec_push(&r->async);
        if (a == NULL)
            return NULL;
        *a = (struct async){0};
    }
    return &r->async.p[at];
}

static bool add_async(struct reader *r, const struct mstx_trace_item *it, bool begins)
{
    struct async *a = async_of(r, it);
    if (a == NULL)
        return false;
    if (!begins) {
        if (a->is_open)
            mstx__trace_lanes_close(&r->lanes, &r->lanes.lane.p[a->lane].ev.p[a->at], it->ts,
                                    !a->stays_unfinished);
        else
            r->misplaced++;
        a->is_open = false;
        return true;
    }
    uint32_t index;
    struct mstx_trace_lane *l = mstx__trace_lanes_thread(&r->lanes, it, &index);
    struct mstx_event *e =
        l != NULL ? mstx__trace_lanes_add(&r->lanes, l, it, MSTX_EV_RANGE) : NULL;
    if (e == NULL)
        return false;
    *a = (struct async){index, l->ev.n - 1, true, it->is_unfinished};
    e->flags |= MSTX_EVF_UNFINISHED;
    return true;
}

/* Adds a value of the counter that has the name of the event; it is whole until the caller says
 * otherwise. */
static struct mstx_event *add_value(struct reader *r, const struct mstx_trace_item *it,
                                    struct ms_str unit)
{
    uint32_t index;
    struct mstx_trace_lane *l = mstx__trace_lanes_counter(&r->lanes, it, &index);
    struct mstx_event *e =
        l != NULL ? mstx__trace_lanes_add(&r->lanes, l, it, MSTX_EV_COUNTER) : NULL;
    if (e == NULL)
        return NULL;
    l->unit = unit;
    e->args = 0;
    e->flags = 0;
    return e;
}

static bool add_counter(struct reader *r, const struct mstx_trace_item *it)
{
    double value = 0;
    int64_t whole;
    if (!ms_num_parse_f64(it->number.p, it->number.n, &value)) {
        r->misplaced++;
        return true;
    }
    struct mstx_event *e = add_value(r, it, MS_STR(""));
    if (e == NULL)
        return false;
    const bool is_whole = ms_str_i64(it->number, &whole);
    e->flags = is_whole ? 0 : MSTX_EVF_FLOAT;
    if (is_whole)
        e->arg = (uint64_t)whole;
    else
        memcpy(&e->arg, &value, sizeof e->arg);
    return true;
}

static bool add_bytes(struct reader *r, const struct mstx_trace_item *it, const char *what,
                      int64_t bytes)
{
    char name[64];
    struct mstx_trace_item counter = *it;
    if (bytes < 0)
        return true;
    if (it->memory.device < 0)
        snprintf(name, sizeof name, "%s memory, host", what);
    else
        snprintf(name, sizeof name, "%s memory, device %" PRId64, what, it->memory.device);
    counter.name = ms_str_of(name);
    struct mstx_event *e = add_value(r, &counter, MS_STR("B"));
    if (e != NULL)
        e->arg = (uint64_t)bytes;
    return e != NULL;
}

/* Adds what PyTorch's allocator told as counters; the host's reserves nothing. */
static bool add_memory(struct reader *r, const struct mstx_trace_item *it)
{
    const struct mstx_trace_memory *m = &it->memory;
    return add_bytes(r, it, "allocated", m->allocated) &&
           (m->device < 0 || add_bytes(r, it, "reserved", m->reserved));
}

/* Launches are known by the correlation of both their events, so their flows say nothing new. */
static bool is_of_launch(const struct mstx_trace_item *it)
{
    return ms_str_is(it->category, "ac2g") || ms_str_is(it->category, "async_cpu_to_gpu");
}

static bool add_flow(struct reader *r, const struct mstx_trace_item *it, bool begins)
{
    uint32_t index;
    if (is_of_launch(it))
        return true;
    return mstx__trace_lanes_thread(&r->lanes, it, &index) != NULL &&
           mstx__trace_lanes_flow(&r->lanes, it, index, begins);
}

static bool add_metadata(struct reader *r, const struct mstx_trace_item *it)
{
    uint32_t index;
    if (ms_str_is(it->name, "process_name")) {
        struct mstx_trace_process *p = mstx__trace_lanes_process(&r->lanes, it->pid, &index);
        if (p != NULL)
            p->name = ms_arena_str(r->json.arena, it->label);
        return p != NULL && p->name.p != NULL;
    }
    if (ms_str_is(it->name, "thread_name")) {
        struct mstx_trace_lane *l = mstx__trace_lanes_thread(&r->lanes, it, &index);
        if (l != NULL)
            l->name = ms_arena_str(r->json.arena, it->label);
        return l != NULL && l->name.p != NULL;
    }
    return true;
}

static bool add_item(struct reader *r, const struct mstx_trace_item *it)
{
    char phase = it->phase.n == 1 ? it->phase.p[0] : 0;
    if (phase == 'M')
        return add_metadata(r, it);
    if (!it->has_ts || strchr("XBEiIRCbesft", phase) == NULL || phase == 0) {
        r->misplaced++;
        return true;
    }
    switch (phase) {
    case 'X':
        return add_slice(r, it, MSTX_EV_RANGE);
    case 'B':
        return add_begin(r, it);
    case 'E':
        return add_end(r, it);
    case 'C':
        return add_counter(r, it);
    case 'b':
    case 'e':
        return add_async(r, it, phase == 'b');
    case 's':
    case 't': /* a point on the way of a flow */
    case 'f':
        return phase == 't' || add_flow(r, it, phase == 's');
    default:
        return add_slice(r, it, MSTX_EV_MARK) &&
               (!ms_str_is(it->name, "[memory]") || add_memory(r, it));
    }
}

/* ---- the file --------------------------------------------------------------- */

/* Bytes that should lie ahead of the reader, which is more than most events have. */
enum { AHEAD = 1 << 14 };

/* Reads another piece of the text, behind what the reader has not read yet. */
static enum ms_rc get_more(struct reader *r, struct ms_err *err)
{
    MS_TRY(mstx__trace_text_more(&r->text, ms_jread_drop(&r->json.j), err));
    ms_jread_moved(&r->json.j, r->text.p, r->text.n);
    const struct mstx_trace_ranks *all = r->part.all;
    ms_progress_part(all->bar, all->bytes_read + mstx__trace_text_taken(&r->text), all->bytes,
                     MS_PACE_BYTES);
    return MS_OK;
}

/* Reads one part of the text: an event, or a member of the outermost object. */
typedef enum ms_rc (*part_fn)(struct reader *r, bool *at_end, struct ms_err *err);

/* Calls fn, again with more of the text where the part ends behind what has been read of that. */
static enum ms_rc read_part(struct reader *r, part_fn fn, bool *at_end, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    if (!r->text.is_whole && j->end - j->at < AHEAD)
        MS_TRY(get_more(r, err));
    for (;;) {
        const struct ms_jread before = *j;
        const enum ms_rc rc = fn(r, at_end, err);
        if (r->text.is_whole || !j->truncated)
            return rc;
        *j = before;
        MS_TRY(get_more(r, err));
    }
}

/* Adds an event, which counts only when it is whole. */
static enum ms_rc take_item(struct reader *r, const struct mstx_trace_item *it, struct ms_err *err)
{
    const bool added = r->json.j.truncated || add_item(r, it);
    return added && !r->json.no_memory ? MS_OK : ms_no_memory(err);
}

/* Reads the object at p, of a known shape or by its keys; NULL where neither can. */
static const char *read_quickly(struct reader *r, struct mstx_trace_item *it, const char *p)
{
    const char *end = r->json.j.end;
    const char *after = mstx__trace_shapes_read(&r->shapes, it, p, end);
    if (after != NULL)
        return after;
    after = mstx__trace_item_fast(&r->json, it, p, end);
    if (after != NULL && mstx__trace_shapes_wants(&r->shapes, it)) {
        const struct mstx_args_form form = mstx__writer_args_form(r->lanes.w, it->args);
        mstx__trace_shapes_learn(&r->shapes, it, &form, p, after);
    }
    return after;
}

static enum ms_rc read_event(struct reader *r, bool *at_end, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    struct mstx_trace_item it;
    const char *p = ms_jread_item(j);
    p = p != NULL && *p == '{' ? read_quickly(r, &it, p) : NULL;
    if (p != NULL) {
        ms_jread_pass_item(j, p);
        return take_item(r, &it, err);
    }
    const enum ms_jtok t = ms_jread_next(j);
    if (t == MS_J_OBJ)
        return mstx__trace_item_read(&r->json, &it) ? take_item(r, &it, err)
                                                    : ms_jread_fail(j, err);
    *at_end = t == MS_J_ARR_END;
    if (*at_end)
        return MS_OK;
    if (ms_jread_skip(j, t) == MS_J_ERR)
        return ms_jread_fail(j, err);
    r->misplaced += !j->truncated;
    return MS_OK;
}

/* Reads the events of an array. The opening bracket has been read. */
static enum ms_rc read_events(struct reader *r, struct ms_err *err)
{
    bool at_end = false;
    while (!at_end)
        MS_TRY(read_part(r, read_event, &at_end, err));
    return MS_OK;
}

/* A number of an object, which is not changed where the object lacks it. */
struct wanted {
    const char *key;
    int64_t most, *out;
};

static void take_number(const struct ms_jread *j, struct ms_str key, enum ms_jtok t,
                        const struct wanted *w, size_t n)
{
    int64_t v;
    for (size_t i = 0; i < n; i++) {
        if (ms_str_is(key, w[i].key) && (t == MS_J_STR || t == MS_J_NUM) &&
            ms_str_i64(j->text, &v) && v >= 0 && v <= w[i].most)
            *w[i].out = v;
    }
}

/* Reads numbers of an object: the start of the run from otherData, where to_chrome.c writes it, or
 * the rank and the number of ranks from distributedInfo. The value has not been read. */
static enum ms_rc read_numbers(struct reader *r, const struct wanted *w, size_t n,
                               struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    enum ms_jtok t = ms_jread_next(j);
    while (t == MS_J_OBJ) {
        enum ms_jtok k = ms_jread_next(j);
        if (k == MS_J_OBJ_END)
            return MS_OK;
        const struct ms_str key = j->text;
        const bool is_key = k == MS_J_KEY;
        k = ms_jread_next(j);
        if (is_key)
            take_number(j, key, k, w, n);
        if (ms_jread_skip(j, k) == MS_J_ERR)
            return ms_jread_fail(j, err);
    }
    return ms_jread_skip(j, t) != MS_J_ERR ? MS_OK : ms_jread_fail(j, err);
}

static enum ms_rc read_distributed(struct reader *r, struct ms_err *err)
{
    int64_t rank = -1, world = -1;
    const struct wanted wanted[] = {{"rank", INT32_MAX, &rank}, {"world_size", INT32_MAX, &world}};
    r->is_profiler = true;
    MS_TRY(read_numbers(r, wanted, 2, err));
    r->rank = rank >= 0 ? (int32_t)rank : r->rank;
    r->says_rank |= rank >= 0;
    r->part.all->world = world > r->part.all->world ? (int32_t)world : r->part.all->world;
    return MS_OK;
}

/* Reads a member of the outermost object that is not the list of events. */
static enum ms_rc read_about(struct reader *r, struct ms_str key, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    int64_t base;
    const struct wanted start = {"start_unix_ns", MSTX_TRACE_TIME_MOST, &r->lanes.time.base_ns};
    if (ms_str_is(key, "otherData"))
        return read_numbers(r, &start, 1, err);
    r->is_profiler |= ms_str_is(key, "schemaVersion") || ms_str_is(key, "deviceProperties");
    if (ms_str_is(key, "distributedInfo"))
        return read_distributed(r, err);
    const enum ms_jtok t = ms_jread_next(j);
    if (t == MS_J_NUM && ms_str_is(key, "baseTimeNanoseconds") && ms_jread_i64(j, &base) &&
        base >= 0 && base <= MSTX_TRACE_TIME_MOST)
        r->lanes.time.base_ns = base;
    return ms_jread_skip(j, t) != MS_J_ERR ? MS_OK : ms_jread_fail(j, err);
}

/* Reads a member of the outermost object; of the list of events only its opening bracket. */
static enum ms_rc read_member(struct reader *r, bool *at_end, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    enum ms_jtok t = ms_jread_next(j);
    *at_end = t == MS_J_OBJ_END;
    r->at_events = false;
    if (*at_end)
        return MS_OK;
    if (t != MS_J_KEY)
        return ms_jread_fail(j, err);
    if (!ms_str_is(j->text, "traceEvents"))
        return read_about(r, j->text, err);
    t = ms_jread_next(j);
    r->at_events = t == MS_J_ARR;
    return r->at_events || ms_jread_skip(j, t) != MS_J_ERR ? MS_OK : ms_jread_fail(j, err);
}

static enum ms_rc read_wrapper(struct reader *r, struct ms_err *err)
{
    bool at_end = false, has_events = false;
    for (;;) {
        MS_TRY(read_part(r, read_member, &at_end, err));
        if (at_end && !has_events && !r->json.j.truncated)
            return ms_jread_reject(&r->json.j, err, "no key \"traceEvents\"");
        if (at_end)
            return MS_OK;
        has_events |= r->at_events;
        if (r->at_events)
            MS_TRY(read_events(r, err));
    }
}

static enum ms_rc read_file(struct reader *r, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(&r->json.j);
    if (t == MS_J_ARR)
        return read_events(r, err);
    if (t == MS_J_OBJ)
        return read_wrapper(r, err);
    return t == MS_J_ERR ? ms_jread_fail(&r->json.j, err)
                         : ms_jread_reject(&r->json.j, err, "expected a list of trace events");
}

/* ---- writing ---------------------------------------------------------------- */

static void report_problems(struct reader *r, const char *path)
{
    char text[96];
    struct mstx_writer *w = r->lanes.w;
    if (r->text.is_cut)
        mstx__writer_problem(
            w, path,
            "the compressed file is cut off or damaged; the whole events before that "
            "place have been read");
    else if (r->json.j.truncated)
        mstx__writer_problem(w, path, "the file is cut off; the whole events have been read");
    if (r->lanes.is_crowded)
        mstx__writer_problem(w, path,
                             "it has more than 65,536 threads or processes; those beyond share a "
                             "track");
    if (r->misplaced == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " events without a place on a time line were left out",
             r->misplaced);
    mstx__writer_problem(w, path, text);
}

/* Writes how the clock of the trace was joined with those of the traces before it. */
static enum ms_rc write_clock(struct reader *r, const char *path, struct ms_err *err)
{
    const struct mstx_host_clock *c = &r->lanes.time.moved;
    const double drift = c->apart.n == 0 ? 0 : mstx__trace_drift(&r->lanes.time);
    struct ms_stmt *add;
    MS_TRY(ms_store_prepare(mstx__writer_store(r->lanes.w), &add,
                            "INSERT INTO clock_offsets VALUES(?,?,?,?,?,'collectives')", err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < c->apart.n && rc == MS_OK; i++) {
        ms_stmt_str(add, 1, ms_path_base(path));
        ms_stmt_i64(add, 2, c->apart.p[i].at_ns);
        ms_stmt_i64(add, 3, c->apart.p[i].offset_ns);
        ms_stmt_i64(add, 4, c->apart.p[i].uncertainty_ns);
        ms_stmt_f64(add, 5, drift * 1e6);
        rc = ms_stmt_run(add, err);
    }
    ms_stmt_free(add);
    return rc;
}

static enum ms_rc join_clock(struct reader *r, const char *path, struct ms_err *err)
{
    struct mstx_trace_joined j;
    char text[240];
    MS_TRY(mstx__trace_rank_clock(&r->part, &r->lanes.time, &j, err));
    if (!j.disagrees)
        return MS_OK;
    if (j.is_joined)
        snprintf(
            text, sizeof text,
            "its clock contradicts the other traces in %zu shared collectives and was moved by "
            "%.6f s, drifting %.1f us a second, to within %.0f us",
            j.shared, (double)j.offset_ns / 1e9, mstx__trace_drift(&r->lanes.time) * 1e6,
            (double)j.unsure_ns / 1e3);
    else
        snprintf(
            text, sizeof text,
            "its clock contradicts the other traces in %zu shared collectives, which no steady "
            "drift explains; it was left as it is",
            j.shared);
    mstx__writer_problem(r->lanes.w, path, text);
    return j.is_joined ? write_clock(r, path, err) : MS_OK;
}

static enum ms_rc write_all(struct reader *r, const char *path, struct ms_err *err)
{
    const int32_t common = r->says_rank ? -1 : mstx__trace_rank_common(&r->part);
    if (common >= 0)
        r->rank = common;
    if (r->rank < 0 && r->is_alone && r->is_profiler)
        r->rank = 0;
    const struct mstx_trace_about about = {.rank = r->rank,
                                           .tool =
                                               r->is_profiler ? MSTX_TOOL_KINETO : "Chrome trace",
                                           .is_one = r->is_profiler};
    uint32_t host;
    report_problems(r, path);
    if (r->is_profiler)
        MS_TRY(join_clock(r, path, err));
    MS_TRY(mstx__trace_lanes_write(&r->lanes, &about, &host, err));
    return r->is_profiler ? mstx__trace_rank_save(&r->part, r->rank, host, &r->lanes.time, err)
                          : MS_OK;
}

/* Tells whether a text is a list of rows, which is no trace, however little a trace may hold. */
static bool starts_rows(const struct mstx_trace_text *text)
{
    size_t at = 0;
    while (at < text->n && isspace((unsigned char)text->p[at]))
        at++;
    return text->n - at > 2 && memcmp(text->p + at, "[[", 2) == 0;
}

static enum ms_rc read_text(struct reader *r, struct ms_err *err)
{
    const bool is_rows = starts_rows(&r->text);
    ms_jread_init(&r->json.j, r->text.p, r->text.n, MS_JREAD_TOLERANT);
    MS_TRY(read_file(r, err));
    if (!is_rows || r->lanes.lane.n != 0)
        return MS_OK;
    return ms_fail(
        err, MS_E_FORMAT,
        "is a list of rows, such as a memory timeline of PyTorch's profiler, and no trace");
}

static enum ms_rc read_and_write(struct reader *r, const char *path, struct ms_err *err)
{
    MS_TRY(mstx__trace_text_begin(&r->text, path, err));
    enum ms_rc rc = read_text(r, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    if (rc == MS_OK)
        rc = write_all(r, path, err);
    r->part.all->bytes_read += mstx__trace_text_taken(&r->text);
    mstx__trace_text_close(&r->text);
    return rc;
}

enum ms_rc mstx__import_chrome(const char *path, bool is_alone, int32_t *rank,
                               struct mstx_trace_ranks *all, struct ms_err *err)
{
    struct reader r = {
        .rank = *rank,
        .is_alone = is_alone,
        .json = {.arena = ms_arena_new((size_t)1 << 34), .args = {.max = UINT32_MAX / 2}},
        .part = {.all = all}};
    if (r.json.arena == NULL)
        return ms_no_memory(err);
    r.lanes = (struct mstx_trace_lanes){.w = all->w, .arena = r.json.arena};
    r.shapes.arena = r.json.arena;
    const enum ms_rc rc = read_and_write(&r, path, err);
    all->files += rc == MS_OK;
    *rank = r.rank;
    mstx__trace_rank_free(&r.part);
    mstx__trace_lanes_free(&r.lanes);
    ms_map_free(&r.asyncs);
    ms_vec_free(&r.async);
    ms_buf_free(&r.json.args);
    ms_arena_free(r.json.arena);
    return rc;
}
