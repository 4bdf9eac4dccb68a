/* SPDX-License-Identifier: MIT
 *
 * mem_from_trace: the memory events of a trace of PyTorch's profiler (profile_memory=True).
 *
 *     {"ph": "i", "name": "[memory]", "args": {"Addr": A, "Bytes": N, "Total Allocated": T, ..}}
 *
 * Bytes are negative for a free. An event belongs to the operators, modules and Python functions
 * that are open on its thread at its time.
 */
#include "mstx/memory/mem_kinds.h"
#include "mstx/memory/mem_read.h"

#include "mstx/foreign/trace_item_fast.h"
#include "mstx/foreign/trace_text.h"

#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <stdio.h>
#include <string.h>

enum role { ROLE_OP, ROLE_FUNCTION, ROLE_NOTE, ROLE_MEMORY };

/* A slice of a thread, or a memory event, whose dur is -1. */
struct item {
    int64_t at, dur;
    uint32_t thread;
    uint32_t what; /* number of a name, or of a memory event */
    uint8_t role;
};
/* What stands in args of a memory event. */
struct told {
    struct mstx_trace_memory m;
    uint32_t space;
};
struct reader {
    struct mstx_mem_log *log;
    struct mstx_trace_text text;
    struct mstx_trace_json json;
    struct ms_map threads, names;
    MS_VEC(struct item) items;
    MS_VEC(struct told) told;
    MS_VEC(struct mstx_mem_step) steps;
    MS_VEC(uint32_t) open; /* items that are open on the current thread */
    struct ms_map stacks;  /* numbers of the names of the open slices, as bytes */
    MS_VEC(uint32_t) site; /* by stack */
    mstx_mem_lists events;
    size_t first_space;
    int32_t rank;
};

/* ---- the file --------------------------------------------------------------------------- */

static uint32_t thread_of(struct reader *r, const struct mstx_trace_item *it)
{
    struct ms_buf b = {.max = 512};
    ms_buf_str(&b, ms_str_sub(it->pid, 0, 200));
    ms_buf_putc(&b, '/');
    ms_buf_str(&b, ms_str_sub(it->tid, 0, 200));
    const uint32_t at = b.bad == MS_OK
                            ? ms_map_put_copy(&r->threads, ms_buf_slice(&b), r->json.arena, NULL)
                            : MS_MAP_NONE;
    ms_buf_free(&b);
    return at;
}

static bool add_item(struct reader *r, const struct mstx_trace_item *it, enum role role,
                     uint32_t what)
{
    const uint32_t thread = thread_of(r, it);
    struct item *slot = ms_vec_push(&r->items);
    if (thread == MS_MAP_NONE || what == MS_MAP_NONE || slot == NULL)
        return false;
    *slot = (struct item){it->ts, role == ROLE_MEMORY ? -1 : it->dur, thread, what, (uint8_t)role};
    return true;
}

static bool add_step(struct reader *r, const struct mstx_trace_item *it)
{
    struct ms_str rest = it->name;
    int64_t number;
    if (!ms_str_skip(&rest, "ProfilerStep#") || !ms_str_i64(rest, &number))
        return true;
    struct mstx_mem_step *step = ms_vec_push(&r->steps);
    if (step == NULL)
        return false;
    *step = (struct mstx_mem_step){number, it->ts, it->ts + it->dur};
    return true;
}

static bool add_slice(struct reader *r, const struct mstx_trace_item *it)
{
    enum role role;
    if (ms_str_is(it->category, "cpu_op") || ms_str_is(it->category, "Operator"))
        role = ROLE_OP;
    else if (ms_str_is(it->category, "python_function"))
        role = ROLE_FUNCTION;
    else if (ms_str_is(it->category, "user_annotation"))
        role = ROLE_NOTE;
    else
        return true;
    return (role != ROLE_NOTE || add_step(r, it)) &&
           add_item(r, it, role, ms_map_put(&r->names, it->name, NULL));
}

/* Finds the space of a device; types are those of c10::DeviceType. */
static bool find_space(struct reader *r, const struct mstx_trace_memory *m, uint32_t *number)
{
    char name[48] = "cpu";
    struct mstx_mem_space *s;
    const bool is_host = m->device_type == 0 || (m->device_type < 0 && m->device < 0);
    if (!is_host)
        snprintf(name, sizeof name, "%s:%d",
                 m->device_type == 1    ? "cuda"
                 : m->device_type == 20 ? "npu"
                                        : "device",
                 (int)(m->device & 0xffff));
    if (mstx__mem_space(r->log, r->rank, ms_str_of(name), &s, NULL) != MS_OK)
        return false;
    for (*number = 0; r->log->spaces.p[*number] != s;)
        ++*number;
    return true;
}

static bool add_memory(struct reader *r, const struct mstx_trace_item *it)
{
    struct told t = {.m = it->memory};
    const int64_t most = (int64_t)MSTX_MEM_BYTES_MAX;
    if (t.m.bytes == 0 || t.m.bytes > most || t.m.bytes < -most)
        return true;
    struct told *slot = find_space(r, &t.m, &t.space) ? ms_vec_push(&r->told) : NULL;
    if (slot == NULL)
        return false;
    *slot = t;
    return add_item(r, it, ROLE_MEMORY, (uint32_t)(r->told.n - 1));
}

static bool take_event(struct reader *r, const struct mstx_trace_item *it)
{
    if (!it->has_ts)
        return true;
    if (ms_str_is(it->name, "[memory]"))
        return add_memory(r, it);
    return !ms_str_is(it->phase, "X") || it->dur < 0 || add_slice(r, it);
}

static enum ms_rc read_events(struct reader *r, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    for (;;) {
        struct mstx_trace_item it;
        const char *p = ms_jread_item(j);
        p = p != NULL && *p == '{' ? mstx__trace_item_fast(&r->json, &it, p, j->end) : NULL;
        if (p != NULL) {
            ms_jread_pass_item(j, p);
        } else {
            const enum ms_jtok t = ms_jread_next(j);
            if (t == MS_J_ARR_END)
                return MS_OK;
            if (t != MS_J_OBJ && ms_jread_skip(j, t) != MS_J_ERR)
                continue;
            if (t != MS_J_OBJ || !mstx__trace_item_read(&r->json, &it))
                return ms_jread_fail(j, err);
        }
        if (!j->truncated && (!take_event(r, &it) || r->json.no_memory))
            return ms_no_memory(err);
    }
}

/* Reads the rank in distributedInfo, whose value follows. */
static enum ms_rc read_rank(struct reader *r, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    enum ms_jtok t = ms_jread_next(j);
    int64_t rank;
    if (t != MS_J_OBJ)
        return ms_jread_skip(j, t) != MS_J_ERR ? MS_OK : ms_jread_fail(j, err);
    while ((t = ms_jread_next(j)) == MS_J_KEY) {
        const bool is_rank = ms_str_is(j->text, "rank");
        t = ms_jread_next(j);
        if (is_rank && t == MS_J_NUM && ms_jread_i64(j, &rank) && rank >= 0 && rank <= INT32_MAX)
            r->rank = (int32_t)rank;
        if (ms_jread_skip(j, t) == MS_J_ERR)
            return ms_jread_fail(j, err);
    }
    return t == MS_J_OBJ_END ? MS_OK : ms_jread_fail(j, err);
}

static enum ms_rc read_member(void *of, struct ms_jread *j, struct ms_buf *scratch,
                              struct ms_err *err)
{
    struct reader *r = of;
    if (ms_str_is(j->text, "distributedInfo"))
        return read_rank(r, err);
    const bool are_events = ms_str_is(j->text, "traceEvents");
    const enum ms_jtok t = ms_jread_next(j);
    (void)scratch;
    if (are_events && t == MS_J_ARR)
        return read_events(r, err);
    return ms_jread_skip(j, t) != MS_J_ERR ? MS_OK : ms_jread_fail(j, err);
}

static enum ms_rc read_text(struct reader *r, struct ms_err *err)
{
    struct ms_jread *j = &r->json.j;
    ms_jread_init(j, r->text.p, r->text.n, MS_JREAD_TOLERANT);
    size_t at = 0;
    while (at < r->text.n && (r->text.p[at] == ' ' || r->text.p[at] == '\n'))
        at++;
    if (at < r->text.n && r->text.p[at] == '[')
        return ms_jread_next(j) == MS_J_ARR ? read_events(r, err) : ms_jread_fail(j, err);
    return ms_jread_members(j, "a trace", read_member, r, err);
}

/* ---- who allocates ---------------------------------------------------------------------- */

static int by_thread(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    /* of one time, the longer slice is the outer one, and memory events lie inside of both */
    return MS_ORDER(
        a->thread, b->thread,
        MS_ORDER(a->at, b->at, MS_ORDER(b->dur, a->dur, MS_ORDER(a->what, b->what, 0))));
}

static struct ms_str name_of(const struct reader *r, uint32_t item)
{
    return ms_map_key(&r->names, r->items.p[item].what);
}

static enum mstx_mem_phase phase_of_op(struct ms_str name)
{
    if (ms_str_has(name, "c10d::") || ms_str_starts(name, MS_STR("nccl:")) ||
        ms_str_starts(name, MS_STR("gloo:")) || ms_str_starts(name, MS_STR("record_param_comms")))
        return MSTX_PHASE_COMMUNICATION;
    if (ms_str_starts(name, MS_STR("Optimizer.")))
        return MSTX_PHASE_OPTIMIZER;
    if (ms_str_starts(name, MS_STR("autograd::engine")) || ms_str_has(name, "run_backward"))
        return MSTX_PHASE_BACKWARD;
    return MSTX_PHASE_NONE;
}

/* Joins the names of the open modules, "Net_0.Linear_1". */
static uint32_t module_path(struct reader *r)
{
    struct ms_buf b = {.max = 1 << 16};
    for (size_t i = 0; i < r->open.n; i++) {
        struct ms_str name = name_of(r, r->open.p[i]);
        if (!ms_str_skip(&name, "nn.Module: "))
            continue;
        if (b.n != 0)
            ms_buf_putc(&b, '.');
        ms_buf_str(&b, name);
    }
    const uint32_t text = b.bad == MS_OK ? mstx__mem_text(r->log, ms_buf_slice(&b)) : MS_MAP_NONE;
    ms_buf_free(&b);
    return text;
}

/* The outermost operator, which is the one that the program called. */
static uint32_t outer_op(struct reader *r)
{
    for (size_t i = 0; i < r->open.n; i++) {
        struct ms_str name = name_of(r, r->open.p[i]);
        if (r->items.p[r->open.p[i]].role != ROLE_OP)
            continue;
        ms_str_skip(&name, "autograd::engine::evaluate_function: ");
        return mstx__mem_text(r->log, name);
    }
    return 0;
}

static enum ms_rc make_site(struct reader *r, uint32_t *number, struct ms_err *err)
{
    struct mstx_mem_site site, ops = {.phase = MSTX_PHASE_NONE};
    MS_VEC(struct mstx_mem_frame) frames = {0};
    bool in_module = false, loads = false;
    for (size_t i = r->open.n; i-- > 0;) { /* the innermost first */
        const struct ms_str name = name_of(r, r->open.p[i]);
        const enum mstx_mem_phase phase = phase_of_op(name);
        if (phase != MSTX_PHASE_NONE && ops.phase != MSTX_PHASE_COMMUNICATION)
            ops.phase = (uint8_t)phase;
        in_module |= ms_str_starts(name, MS_STR("nn.Module: "));
        loads |= ms_str_starts(name, MS_STR("enumerate(DataLoader)"));
        struct mstx_mem_frame *f =
            r->items.p[r->open.p[i]].role == ROLE_FUNCTION ? ms_vec_push(&frames) : NULL;
        if (f != NULL)
            *f = mstx__mem_frame_of_name(name);
    }
    const enum ms_rc rc = mstx__mem_site_of_stack(r->log, frames.p, frames.n, false, &site, err);
    ms_vec_free(&frames);
    MS_TRY(rc);
    site.phase = ops.phase != MSTX_PHASE_NONE ? ops.phase
                 : in_module                  ? (uint8_t)MSTX_PHASE_FORWARD
                                              : site.phase;
    site.kind = loads ? MSTX_MEM_INPUT : MSTX_MEM_UNKNOWN;
    site.op = outer_op(r);
    site.module = module_path(r);
    return mstx__mem_site(r->log, &site, number, err);
}

/* Finds the site of the open slices; equal stacks of names have one. */
static enum ms_rc find_site(struct reader *r, uint32_t *number, struct ms_err *err)
{
    uint32_t names[512];
    bool added;
    uint32_t n = 0;
    for (size_t i = 0; i < r->open.n && n < 512; i++)
        names[n++] = r->items.p[r->open.p[i]].what;
    const struct ms_str key = {(const char *)names, n * (uint32_t)sizeof *names};
    const uint32_t at = ms_map_put_copy(&r->stacks, key, r->json.arena, &added);
    uint32_t *slot = at != MS_MAP_NONE && added ? ms_vec_push(&r->site) : NULL;
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    if (added)
        MS_TRY(make_site(r, slot, err));
    *number = r->site.p[at];
    return MS_OK;
}

static enum ms_rc tell_memory(struct reader *r, const struct item *it, struct ms_err *err)
{
    const struct told *t = &r->told.p[it->what];
    struct mstx_mem_event e = {
        .at_ns = it->at, .address = (uint64_t)t->m.address, .bytes = t->m.bytes};
    MS_TRY(find_site(r, &e.site, err));
    e.phase = r->log->sites.p[e.site].phase;
    return mstx__mem_lists_add(&r->events, t->space, &e, err);
}

/* Walks the slices of all threads and gives each memory event its site. */
static enum ms_rc walk(struct reader *r, struct ms_err *err)
{
    ms_vec_sort(&r->items, by_thread);
    for (uint32_t i = 0; i < r->items.n; i++) {
        const struct item *it = &r->items.p[i];
        while (r->open.n != 0) {
            const struct item *top = &r->items.p[r->open.p[r->open.n - 1]];
            if (top->thread == it->thread && top->at + top->dur >= it->at)
                break;
            r->open.n--;
        }
        if (it->role == ROLE_MEMORY) {
            MS_TRY(tell_memory(r, it, err));
            continue;
        }
        uint32_t *slot = ms_vec_push(&r->open);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = i;
    }
    return MS_OK;
}

/* ---- spaces ------------------------------------------------------------------------------- */

static int by_begin(const void *pa, const void *pb)
{
    const struct mstx_mem_step *a = pa, *b = pb;
    return MS_ORDER(a->begin_ns, b->begin_ns, MS_ORDER(a->number, b->number, 0));
}

/* Copies the steps, each once, though a device has slices of the same names. */
static enum ms_rc copy_steps(const struct reader *r, struct mstx_mem_space *s, struct ms_err *err)
{
    for (size_t i = 0; i < r->steps.n; i++) {
        if (s->steps.n != 0 && s->steps.p[s->steps.n - 1].number >= r->steps.p[i].number)
            continue;
        struct mstx_mem_step *slot = ms_vec_push(&s->steps);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = r->steps.p[i];
    }
    return MS_OK;
}

/* Bytes that were in use before the record: what the profiler says of its first event, less what
 * the blocks of the record account for. */
static void find_earlier(const struct reader *r, size_t space, struct mstx_mem_space *s)
{
    const struct item *first = NULL;
    for (size_t i = 0; i < r->items.n; i++) {
        const struct item *it = &r->items.p[i];
        if (it->role == ROLE_MEMORY && r->told.p[it->what].space == space &&
            (first == NULL || it->at < first->at))
            first = it;
    }
    if (first == NULL)
        return;
    const struct mstx_trace_memory *m = &r->told.p[first->what].m;
    int64_t bytes = m->allocated - m->bytes;
    for (size_t i = 0; i < s->blocks.n && s->blocks.p[i].begin == 0; i++)
        bytes -= (int64_t)s->blocks.p[i].bytes;
    s->earlier = bytes > 0 && bytes < (int64_t)MSTX_MEM_BYTES_MAX ? (uint64_t)bytes : 0;
}

static enum ms_rc add_totals(const struct reader *r, size_t space, struct mstx_mem_space *s,
                             struct ms_err *err)
{
    for (size_t i = 0; i < r->items.n; i++) {
        const struct item *it = &r->items.p[i];
        if (it->role != ROLE_MEMORY || r->told.p[it->what].space != space)
            continue;
        struct mstx_mem_total *slot = ms_vec_push(&s->totals);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = (struct mstx_mem_total){it->at, r->told.p[it->what].m.allocated,
                                        r->told.p[it->what].m.reserved};
    }
    return MS_OK;
}

static enum ms_rc fill_spaces(struct reader *r, struct ms_err *err)
{
    ms_vec_sort(&r->steps, by_begin);
    for (size_t i = r->first_space; i < r->log->spaces.n; i++) {
        struct mstx_mem_space *s = r->log->spaces.p[i];
        MS_TRY(mstx__mem_replay(s, &r->events.p[i], err));
        MS_TRY(copy_steps(r, s, err));
        MS_TRY(add_totals(r, i, s, err));
        find_earlier(r, i, s);
    }
    return MS_OK;
}

static enum ms_rc read_all(struct reader *r, const char *path, struct ms_err *err)
{
    MS_TRY(read_text(r, err));
    if (r->told.n == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no memory events in the trace; record it with profile_memory=True");
    if (r->text.is_cut || r->json.j.truncated)
        MS_TRY(mstx__mem_note(r->log, err, "%s is cut off; its whole events were read", path));
    MS_TRY(mstx__mem_lists_grow(&r->events, r->log, err));
    MS_TRY(walk(r, err));
    return fill_spaces(r, err);
}

static void reader_free(struct reader *r)
{
    mstx__mem_lists_free(&r->events);
    ms_vec_free(&r->items);
    ms_vec_free(&r->told);
    ms_vec_free(&r->steps);
    ms_vec_free(&r->open);
    ms_vec_free(&r->site);
    ms_map_free(&r->threads);
    ms_map_free(&r->names);
    ms_map_free(&r->stacks);
    ms_buf_free(&r->json.args);
    ms_arena_free(r->json.arena);
}

enum ms_rc mstx__mem_from_trace(struct mstx_mem_log *log, const char *path, int32_t rank,
                                struct ms_err *err)
{
    struct reader r = {
        .log = log,
        .rank = rank,
        .first_space = log->spaces.n,
        .json = {.arena = ms_arena_new((size_t)1 << 34), .args = {.max = UINT32_MAX / 2}}};
    enum ms_rc rc =
        r.json.arena != NULL ? mstx__trace_text_open(&r.text, path, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        rc = read_all(&r, path, err);
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", path);
        mstx__trace_text_close(&r.text);
    }
    reader_free(&r);
    return rc;
}
