/* SPDX-License-Identifier: MIT
 *
 * trace_lanes: see the header.
 */
#include "mstx/foreign/trace_lanes.h"

#include "mstx/foreign/kineto.h"
#include "mstx/format/device_work.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

/* ---- processes and lanes ---------------------------------------------------- */

/* A trace with more threads, counters and streams is damaged or made to harm; what is on the others
 * shares one lane of its kind. */
enum { LANES_MOST = 1 << 16, PROCESSES_MOST = 1 << 16 };

/* Returns the number of a key, or of a key that all share once the map is full. */
static uint32_t find_key(struct mstx_trace_lanes *t, struct ms_map *m, struct ms_str key,
                         struct ms_str shared, size_t most, bool *added)
{
    *added = false;
    if (m->keys.n < most)
        return ms_map_put_copy(m, key, t->arena, added);
    const uint32_t at = ms_map_get(m, key);
    if (at != MS_MAP_NONE)
        return at;
    t->is_crowded = true;
    return ms_map_put_copy(m, shared, t->arena, added);
}

struct mstx_trace_process *mstx__trace_lanes_process(struct mstx_trace_lanes *t, struct ms_str pid,
                                                     uint32_t *index)
{
    bool added;
    *index = find_key(t, &t->processes, pid, MS_STR("other processes"), PROCESSES_MOST, &added);
    if (*index == MS_MAP_NONE)
        return NULL;
    if (added) {
        struct mstx_trace_process *p = ms_vec_push(&t->process);
        if (p == NULL)
            return NULL;
        *p = (struct mstx_trace_process){.pid = ms_map_key(&t->processes, *index),
                                         .name = MS_STR("")};
    }
    ms_assert(*index < t->process.n);
    return &t->process.p[*index];
}

/* Finds or adds the lane that is like `fresh` and has the key in t->key. */
static struct mstx_trace_lane *find_lane(struct mstx_trace_lanes *t,
                                         const struct mstx_trace_lane *fresh, uint32_t *index)
{
    bool added;
    static const char *const shared[MSTX_TRACK_KINDS] = {"*thread", "*counter", "*memory",
                                                         "*stream"};
    *index = t->key.bad == MS_OK ? find_key(t, &t->lanes, ms_buf_slice(&t->key),
                                            ms_str_of(shared[fresh->kind]), LANES_MOST, &added)
                                 : MS_MAP_NONE;
    if (*index == MS_MAP_NONE)
        return NULL;
    if (added) {
        struct mstx_trace_lane *l = ms_vec_push(&t->lane);
        if (l == NULL)
            return NULL;
        *l = *fresh;
        l->name = ms_arena_str(t->arena, fresh->name);
        if (l->name.p == NULL)
            return NULL;
    }
    ms_assert(*index < t->lane.n);
    return &t->lane.p[*index];
}

static void begin_key(struct mstx_trace_lanes *t, uint32_t process, char kind, struct ms_str what)
{
    t->key.max = 1 << 24;
    ms_buf_clear(&t->key);
    ms_buf_put(&t->key, &process, sizeof process);
    ms_buf_putc(&t->key, kind);
    ms_buf_str(&t->key, what);
}

/* Returns the number of a process or thread; profilers write the upper half of numbers as negative. */
static uint32_t number_of(struct ms_str text)
{
    int64_t v;
    return ms_str_i64(text, &v) && v >= INT32_MIN && v <= UINT32_MAX ? (uint32_t)v : 0;
}

static struct mstx_trace_lane *find_thread(struct mstx_trace_lanes *t,
                                           const struct mstx_trace_item *it, uint32_t *index)
{
    uint32_t process;
    if (mstx__trace_lanes_process(t, it->pid, &process) == NULL)
        return NULL;
    begin_key(t, process, 't', it->tid);
    const struct mstx_trace_lane fresh = {.process = process,
                                          .kind = MSTX_TRACK_THREAD,
                                          .tid = number_of(it->tid),
                                          .name = MS_STR(""),
                                          .domain = MS_STR("default")};
    return find_lane(t, &fresh, index);
}

/* Returns the place where a thread is remembered. */
static struct mstx_trace_near *near_of(struct mstx_trace_lanes *t, const struct mstx_trace_item *it)
{
    const char end = it->tid.n != 0 ? it->tid.p[it->tid.n - 1] : 0;
    return &t->near[(unsigned char)end % MSTX_TRACE_NEAR];
}

struct mstx_trace_lane *mstx__trace_lanes_thread(struct mstx_trace_lanes *t,
                                                 const struct mstx_trace_item *it, uint32_t *index)
{
    struct mstx_trace_near *near = near_of(t, it);
    if (near->pid.p == NULL || !ms_str_eq(near->tid, it->tid) || !ms_str_eq(near->pid, it->pid)) {
        struct mstx_trace_lane *l = find_thread(t, it, index);
        if (l == NULL)
            return NULL;
        /* The key ends with the text of the thread. */
        const struct ms_str key = ms_map_key(&t->lanes, *index);
        if (!ms_str_ends(key, it->tid)) /* a lane that threads share */
            return l;
        *near = (struct mstx_trace_near){.pid = t->process.p[l->process].pid,
                                         .tid = ms_str_sub(key, key.n - it->tid.n, key.n),
                                         .lane = *index};
    }
    *index = near->lane;
    return &t->lane.p[near->lane];
}

struct mstx_trace_lane *mstx__trace_lanes_counter(struct mstx_trace_lanes *t,
                                                  const struct mstx_trace_item *it, uint32_t *index)
{
    uint32_t process;
    if (mstx__trace_lanes_process(t, it->pid, &process) == NULL)
        return NULL;
    begin_key(t, process, 'c', it->name);
    const struct mstx_trace_lane fresh = {.process = process,
                                          .kind = MSTX_TRACK_COUNTER,
                                          .name = it->name,
                                          .domain = MS_STR("default")};
    return find_lane(t, &fresh, index);
}

struct mstx_trace_lane *mstx__trace_lanes_stream(struct mstx_trace_lanes *t,
                                                 const struct mstx_trace_item *it,
                                                 const char *domain, uint32_t *index)
{
    const struct mstx_trace_lane fresh = {
        .process = MSTX_TRACE_HOST,
        .kind = MSTX_TRACK_STREAM,
        .tid =
            it->stream >= 0 && it->stream <= UINT32_MAX ? (uint32_t)it->stream : number_of(it->tid),
        .device =
            it->device >= 0 && it->device <= UINT32_MAX ? (uint32_t)it->device : number_of(it->pid),
        .name = MS_STR(""),
        .domain = ms_str_of(domain)};
    begin_key(t, fresh.device, 's', ms_str_of(domain));
    ms_buf_put(&t->key, &fresh.tid, sizeof fresh.tid);
    return find_lane(t, &fresh, index);
}

struct mstx_trace_lane *mstx__trace_lanes_tool(struct mstx_trace_lanes *t,
                                               const struct mstx_trace_item *it, uint32_t *index)
{
    begin_key(t, MSTX_TRACE_HOST, 'p', it->tid);
    const struct mstx_trace_lane fresh = {.process = MSTX_TRACE_HOST,
                                          .kind = MSTX_TRACK_THREAD,
                                          .name = it->tid,
                                          .domain = MS_STR(MSTX_TOOL_DOMAIN)};
    return find_lane(t, &fresh, index);
}

/* ---- events and flows -------------------------------------------------------- */

static bool keep_domain(struct mstx_trace_lanes *t, struct mstx_trace_lane *l, struct ms_str domain)
{
    if (domain.n != 0 && !ms_str_eq(l->domain, domain))
        l->domain = ms_arena_str(t->arena, domain);
    return l->domain.p != NULL;
}

struct mstx_event *mstx__trace_lanes_add(struct mstx_trace_lanes *t, struct mstx_trace_lane *l,
                                         const struct mstx_trace_item *it,
                                         enum mstx_event_kind kind)
{
    struct mstx_event *e = ms_vec_push(&l->ev);
    if (e == NULL)
        return NULL;
    *e = (struct mstx_event){
        .start_ns = it->ts,
        .dur_ns = kind != MSTX_EV_MARK && it->dur > 0 ? it->dur : 0,
        .name = mstx__writer_text(t->w, it->name.n != 0 ? it->name : MS_STR("(no name)")),
        .args = it->args_form != MSTX_TEXT_FORMLESS
                    ? mstx__writer_args_runs(t->w, it->args_form, it->args_runs)
                    : mstx__writer_args(t->w, it->args),
        .count = 1,
        .kind = (uint8_t)kind};
    if (it->is_unfinished)
        e->flags |= MSTX_EVF_UNFINISHED;
    if (it->end_tid > 0 && it->end_tid <= UINT32_MAX) {
        e->end_tid = (uint32_t)it->end_tid;
        e->flags |= MSTX_EVF_OTHER_THREAD;
    }
    if (it->category.n != 0 && kind != MSTX_EV_COUNTER) {
        e->arg = mstx__writer_text(t->w, it->category);
        e->flags |= MSTX_EVF_CATEGORY;
    }
    if (it->correlation > 0)
        e->size = (uint64_t)it->correlation;
    t->first_ns = !t->has_first || it->ts < t->first_ns ? it->ts : t->first_ns;
    t->has_first = true;
    t->last_ns = it->ts + e->dur_ns > t->last_ns ? it->ts + e->dur_ns : t->last_ns;
    return keep_domain(t, l, it->domain) ? e : NULL;
}

void mstx__trace_lanes_close(struct mstx_trace_lanes *t, struct mstx_event *e, int64_t ts,
                             bool is_finished)
{
    e->dur_ns = ts > e->start_ns ? ts - e->start_ns : 0;
    if (is_finished)
        e->flags = (uint8_t)(e->flags & ~MSTX_EVF_UNFINISHED);
    t->last_ns = ts > t->last_ns ? ts : t->last_ns;
}

/* Returns the newest flow of an id, or a new one when that has both ends and another begins. */
static struct mstx_trace_flow *flow_of(struct mstx_trace_lanes *t, const struct mstx_trace_item *it,
                                       bool begins)
{
    bool added;
    begin_key(t, 0, 'f', it->category);
    ms_buf_putc(&t->key, '/');
    ms_buf_str(&t->key, it->id);
    const uint32_t at = t->key.bad == MS_OK
                            ? ms_map_put_copy(&t->flows, ms_buf_slice(&t->key), t->arena, &added)
                            : MS_MAP_NONE;
    uint32_t *newest = at == MS_MAP_NONE ? NULL
                       : added           ? ms_vec_push(&t->flow_of)
                                         : &t->flow_of.p[at];
    if (newest == NULL)
        return NULL;
    if (!added) {
        struct mstx_trace_flow *f = &t->flow.p[*newest];
        if (begins ? f->from == UINT32_MAX : f->to == UINT32_MAX)
            return f;
    }
    struct mstx_trace_flow *f = ms_vec_push(&t->flow);
    if (f == NULL)
        return NULL;
    *newest = (uint32_t)t->flow.n - 1;
    *f = (struct mstx_trace_flow){
        .name = mstx__writer_text(t->w, it->category), .from = UINT32_MAX, .to = UINT32_MAX};
    return f;
}

bool mstx__trace_lanes_flow(struct mstx_trace_lanes *t, const struct mstx_trace_item *it,
                            uint32_t lane, bool begins)
{
    struct mstx_trace_flow *f = flow_of(t, it, begins);
    if (f == NULL)
        return false;
    *(begins ? &f->from : &f->to) = lane;
    *(begins ? &f->from_ns : &f->to_ns) = it->ts;
    return true;
}

/* ---- writing ---------------------------------------------------------------- */

/* Returns the traced process: the first with events of its own.  A trace of a device
 * alone gets a process without a pid. */
static struct mstx_trace_process *host_of(struct mstx_trace_lanes *t)
{
    uint32_t first = UINT32_MAX, index;
    for (size_t i = 0; i < t->lane.n; i++) {
        const struct mstx_trace_lane *l = &t->lane.p[i];
        if (l->ev.n != 0 && l->process < first)
            first = l->process;
    }
    return first != UINT32_MAX ? &t->process.p[first]
                               : mstx__trace_lanes_process(t, MS_STR("0"), &index);
}

/* Finds the rank in "rank 3 ...", as mstx__process_label names processes. */
static int32_t rank_of(struct ms_str name)
{
    struct ms_str rest = name, word;
    uint64_t rank;
    if (ms_str_split(&rest, ' ', &word) && ms_str_is(word, "rank") &&
        ms_str_split(&rest, ' ', &word) && ms_str_u64(word, &rank) && rank <= INT32_MAX)
        return (int32_t)rank;
    return -1;
}

/* Counts the events of each process; those of no process are the host's. */
static void count_events(struct mstx_trace_lanes *t, struct mstx_trace_process *host)
{
    for (size_t k = 0; k < t->lane.n; k++) {
        const struct mstx_trace_lane *l = &t->lane.p[k];
        struct mstx_trace_process *p =
            l->process == MSTX_TRACE_HOST ? host : &t->process.p[l->process];
        if (p != NULL)
            p->events += l->ev.n;
    }
}

/* Returns the start of the recording: that of its clock, or its first event where the trace gives none. */
static int64_t start_of(const struct mstx_trace_lanes *t)
{
    return mstx__trace_time(&t->time, t->time.base_ns != 0 ? 0 : t->first_ns);
}

static void write_process(struct mstx_trace_lanes *t, const struct mstx_trace_about *about,
                          struct mstx_trace_process *p, const struct mstx_trace_process *host)
{
    const struct mstx_process_row row = {.rank = about->rank >= 0 ? about->rank : rank_of(p->name),
                                         .pid = number_of(p->pid),
                                         .name = p->name,
                                         .host = MS_STR(""),
                                         .dir = MS_STR(""),
                                         .tool = ms_str_of(about->tool),
                                         .state = MS_STR("finished"),
                                         .start_ns = start_of(t),
                                         .end_ns = mstx__trace_time(&t->time, t->last_ns),
                                         .events = p->events};
    if (row.events == 0 && p != host && about->is_one)
        return;
    p->id = mstx__writer_process_id(t->w);
    mstx__writer_process(t->w, p->id, &row);
}

static void write_lane(struct mstx_trace_lanes *t, struct mstx_trace_lane *l,
                       const struct mstx_trace_process *host)
{
    for (size_t k = 0; k < l->ev.n; k++) {
        struct mstx_event *e = &l->ev.p[k];
        if (e->flags & MSTX_EVF_UNFINISHED && e->dur_ns == 0)
            e->dur_ns = t->last_ns - e->start_ns;
        const int64_t end = mstx__trace_time(&t->time, e->start_ns + e->dur_ns);
        e->start_ns = mstx__trace_time(&t->time, e->start_ns);
        e->dur_ns = end > e->start_ns ? end - e->start_ns : 0;
    }
    ms_assert(l->process != MSTX_TRACE_HOST || host != NULL);
    const struct mstx_track_row row = {
        .process = l->process == MSTX_TRACE_HOST ? host->id : t->process.p[l->process].id,
        .kind = l->kind,
        .tid = l->tid,
        .device = l->device,
        .domain = l->domain,
        .name = l->name,
        .unit = l->unit.p != NULL ? l->unit : MS_STR("")};
    if (l->ev.n == 0)
        return;
    mstx__writer_track(t->w, &row, &l->ev);
    l->track = mstx__writer_totals(t->w).tracks;
}

static enum ms_rc write_flow(struct mstx_trace_lanes *t, struct ms_stmt *add,
                             const struct mstx_trace_flow *f, struct ms_err *err)
{
    if (f->from == UINT32_MAX || f->to == UINT32_MAX)
        return MS_OK;
    ms_assert(f->from < t->lane.n && f->to < t->lane.n);
    ms_stmt_str(add, 1, mstx__writer_text_of(t->w, f->name));
    ms_stmt_i64(add, 2, t->lane.p[f->from].track);
    ms_stmt_i64(add, 3, mstx__trace_time(&t->time, f->from_ns));
    ms_stmt_i64(add, 4, t->lane.p[f->to].track);
    ms_stmt_i64(add, 5, mstx__trace_time(&t->time, f->to_ns));
    return ms_stmt_run(add, err);
}

static enum ms_rc write_flows(struct mstx_trace_lanes *t, struct ms_err *err)
{
    struct ms_stmt *add;
    MS_TRY(ms_store_prepare(mstx__writer_store(t->w), &add, "INSERT INTO flows VALUES(?,?,?,?,?)",
                            err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < t->flow.n && rc == MS_OK; i++)
        rc = write_flow(t, add, &t->flow.p[i], err);
    ms_stmt_free(add);
    return rc;
}

enum ms_rc mstx__trace_lanes_write(struct mstx_trace_lanes *t, const struct mstx_trace_about *about,
                                   uint32_t *host_id, struct ms_err *err)
{
    struct mstx_trace_process *host = about->is_one ? host_of(t) : NULL;
    if (about->is_one && host == NULL)
        return ms_no_memory(err);
    count_events(t, host);
    for (size_t i = 0; i < t->process.n; i++)
        write_process(t, about, &t->process.p[i], host);
    *host_id = host != NULL ? host->id : 0;
    for (size_t i = 0; i < t->lane.n; i++)
        write_lane(t, &t->lane.p[i], host);
    return t->flow.n != 0 ? write_flows(t, err) : MS_OK;
}

void mstx__trace_lanes_free(struct mstx_trace_lanes *t)
{
    for (size_t i = 0; i < t->lane.n; i++) {
        ms_vec_free(&t->lane.p[i].ev);
        ms_vec_free(&t->lane.p[i].open);
    }
    mstx__trace_time_free(&t->time);
    ms_vec_free(&t->lane);
    ms_vec_free(&t->process);
    ms_vec_free(&t->flow);
    ms_vec_free(&t->flow_of);
    ms_map_free(&t->lanes);
    ms_map_free(&t->processes);
    ms_map_free(&t->flows);
    ms_buf_free(&t->key);
}
