/* SPDX-License-Identifier: MIT
 *
 * from_chrome: reads Chrome traces into a run.db.
 */
#define ZLIB_CONST /* zlib only reads its input */
#include "mstx/foreign/from_chrome.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* ---- text of a file --------------------------------------------------------- */

struct trace_text {
    const char *p;
    size_t n;
    struct ms_file file; /* the mapped file, when it is not compressed */
    char *unpacked;      /* the text on the heap, when it is compressed */
};

/* JSON of traces is compressed by a factor of 10 to 30; a greater factor than GROWTH_MOST means a
 * decompression bomb. */
enum { GROWTH_MOST = 200, GROWTH_FREE = 1 << 26, BLOCK = 1 << 20, GZIP_WINDOW = 15 + 16 };

static bool is_gzip(const struct ms_file *f)
{
    return f->n > 2 && memcmp(f->p, "\x1f\x8b", 2) == 0;
}

/* Unpacks until the end of the stream, the end of the input, or damage. */
static enum ms_rc unpack_stream(struct trace_text *t, z_stream *z, struct ms_err *err)
{
    const size_t most = (size_t)GROWTH_FREE + t->file.n * GROWTH_MOST;
    size_t room = 0;
    for (;;) {
        if (t->n == room && room >= most)
            return ms_fail(err, MS_E_LIMIT, "the compressed file unpacks to more than %zu bytes",
                           most);
        if (t->n == room && !ms_vec_grow(&t->unpacked, &room, room + BLOCK, 1))
            return ms_no_memory(err);
        const size_t left = room - t->n < BLOCK ? room - t->n : BLOCK;
        z->next_out = (unsigned char *)t->unpacked + t->n;
        z->avail_out = (unsigned)left;
        const int rc = inflate(z, Z_NO_FLUSH);
        t->n += left - z->avail_out;
        if (rc != Z_OK)
            return MS_OK;
    }
}

static enum ms_rc unpack(struct trace_text *t, struct ms_err *err)
{
    z_stream z = {0};
    if (t->file.n > UINT32_MAX)
        return ms_fail(err, MS_E_LIMIT,
                       "the compressed file is larger than 4 GiB; unpack it first");
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return ms_no_memory(err);
    z.next_in = (const unsigned char *)t->file.p;
    z.avail_in = (unsigned)t->file.n;
    const enum ms_rc rc = unpack_stream(t, &z, err);
    inflateEnd(&z);
    t->p = t->unpacked;
    return rc;
}

static void trace_text_close(struct trace_text *t)
{
    ms_free(t->unpacked);
    ms_file_unmap(&t->file);
    *t = (struct trace_text){0};
}

/* Maps a file, or unpacks a compressed one into memory.  A compressed file that is cut off gives
 * the text that it holds; a decompression bomb is rejected. */
static enum ms_rc trace_text_open(struct trace_text *t, const char *path, struct ms_err *err)
{
    *t = (struct trace_text){0};
    MS_TRY(ms_file_map(&t->file, path, (size_t)1 << 40, err));
    t->p = t->file.p;
    t->n = t->file.n;
    if (!is_gzip(&t->file))
        return MS_OK;
    t->n = 0;
    enum ms_rc rc = unpack(t, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", path);
        trace_text_close(t);
    }
    return rc;
}

/* ---- events ----------------------------------------------------------------- */

/* Reads Chrome trace events into a run.db.
 *
 * Every pid is a process, every tid a track; complete, begin/end, instant, async and counter events
 * are imported, flows are not.  The args that to_chrome.c writes (domain, kind, unfinished, ending
 * thread) become fields of the event again.  A truncated file, as crashed programs leave it, is
 * read up to its end. */

/* One event of the file; texts are slices of the file. */
struct item {
    struct ms_str name, phase, category, args, id;
    struct ms_str pid, tid;
    int64_t ts, dur;
    bool has_ts, name_escaped;
    struct ms_str label; /* args.name of metadata */
    struct ms_str domain,
        type;           /* args.domain, args.event_type: as to_chrome.c and Ascend write them */
    int64_t end_tid;    /* args.end_tid: as to_chrome.c writes it */
    bool is_unfinished; /* args.unfinished: as to_chrome.c writes it */
    double value;       /* the first number in args */
    bool has_value, value_is_int;
    int64_t value_int;
};

struct lane {
    uint32_t process;
    enum mstx_track_kind kind;
    uint32_t tid;
    struct ms_str name, domain;
    mstx_events ev;
    MS_VEC(size_t) open; /* B events without an E event so far */
};
struct process {
    struct ms_str pid, name;
};
/* An open async event. */
struct async {
    uint32_t lane;
    size_t at;
    bool is_open, stays_unfinished;
};

struct reader {
    struct mstx_writer *w;
    struct ms_jread j;
    struct ms_arena *arena;
    struct ms_map lanes, processes, asyncs;
    MS_VEC(struct lane) lane;
    MS_VEC(struct process) process;
    MS_VEC(struct async) async;
    int64_t base_ns, last_ns;
    uint64_t skipped;
    bool no_memory;
};

/* Greater times are rejected: the sum of two valid times fits, and so does the end of a chunk. */
static const int64_t TIME_MOST = ((int64_t)1 << 61) - 1;

/* ---- values ----------------------------------------------------------------- */

/* Converts microseconds in text to nanoseconds; drops digits after the third decimal. */
static bool parse_us(struct ms_str s, int64_t *ns)
{
    struct ms_str whole = s, rest = MS_STR("");
    int64_t point = ms_str_find(s, '.'), us, part = 0;
    bool minus = s.n != 0 && s.p[0] == '-';
    if (point >= 0) {
        whole = ms_str_sub(s, 0, (uint32_t)point);
        rest = ms_str_sub(s, (uint32_t)point + 1, s.n);
    }
    if (!ms_str_i64(whole, &us) || us >= TIME_MOST / 1000 || us <= -TIME_MOST / 1000)
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        char c = i < rest.n ? rest.p[i] : '0';
        if (c < '0' || c > '9')
            return false;
        part = 10 * part + (c - '0');
    }
    *ns = us * 1000 + (minus ? -part : part);
    return true;
}

/* Reads a time, which may be a number or a text. */
static bool read_time(const struct ms_jread *j, enum ms_jtok t, int64_t *ns)
{
    double us;
    if ((t == MS_J_NUM || t == MS_J_STR) && parse_us(j->text, ns))
        return true;
    if (t != MS_J_NUM || !ms_jread_f64(j, &us) ||
        !(us * 1000 > -(double)TIME_MOST / 2 && us * 1000 < (double)TIME_MOST / 2))
        return false;
    *ns = (int64_t)(us * 1000);
    return true;
}

static struct ms_str keep_text(struct reader *r, struct ms_str s)
{
    if (s.n == 0)
        return MS_STR("");
    s = ms_arena_str(r->arena, s);
    r->no_memory |= s.p == NULL;
    return s.p != NULL ? s : MS_STR("");
}

/* Returns the current string without escapes, copied into the arena. */
static struct ms_str read_text(struct reader *r)
{
    struct ms_buf scratch = {.max = 1 << 24};
    struct ms_str s = MS_STR("");
    if (ms_jread_text(&r->j, &scratch, &s, NULL) == MS_OK)
        s = keep_text(r, s);
    r->no_memory |= scratch.bad == MS_E_NOMEM;
    ms_buf_free(&scratch);
    return s;
}

/* ---- reading one event ------------------------------------------------------ */

/* Reads a member of args that to_chrome.c writes; returns false when it is an attribute of the
 * user. */
static bool read_own_member(struct reader *r, struct item *it, struct ms_str key, enum ms_jtok t)
{
    if (t == MS_J_STR && ms_str_is(key, "domain"))
        it->domain = read_text(r);
    else if (t == MS_J_STR && ms_str_is(key, "event_type"))
        it->type = r->j.text;
    else if (t == MS_J_NUM && ms_str_is(key, "end_tid"))
        ms_jread_i64(&r->j, &it->end_tid);
    else if (t == MS_J_TRUE && ms_str_is(key, "unfinished"))
        it->is_unfinished = true;
    else
        return false;
    return true;
}

static void read_attribute(struct reader *r, struct item *it, struct ms_str key, enum ms_jtok t)
{
    if (t == MS_J_STR && ms_str_is(key, "name"))
        it->label = read_text(r);
    else if (t == MS_J_NUM && !it->has_value) {
        it->has_value = ms_jread_f64(&r->j, &it->value);
        it->value_is_int = ms_jread_i64(&r->j, &it->value_int);
    }
}

/* Reads one member of args; appends the JSON text of an attribute to `kept` unchanged. */
static bool read_args_member(struct reader *r, struct item *it, struct ms_buf *kept)
{
    const char *from = r->j.tok;
    struct ms_str key = r->j.text;
    enum ms_jtok t = ms_jread_next(&r->j);
    bool is_own = read_own_member(r, it, key, t);
    if (!is_own)
        read_attribute(r, it, key, t);
    if (ms_jread_skip(&r->j, t) == MS_J_ERR)
        return false;
    if (!is_own) {
        ms_buf_puts(kept, kept->n == 0 ? "{" : ", ");
        ms_buf_put(kept, from, (size_t)(r->j.at - from));
    }
    return true;
}

static bool read_args(struct reader *r, struct item *it, enum ms_jtok t)
{
    struct ms_buf kept = {.max = UINT32_MAX / 2};
    if (t != MS_J_OBJ)
        return ms_jread_skip(&r->j, t) != MS_J_ERR;
    bool ok = true;
    for (t = ms_jread_next(&r->j); ok && t != MS_J_OBJ_END; t = ms_jread_next(&r->j)) {
        ok = t == MS_J_KEY && read_args_member(r, it, &kept);
        if (!ok)
            break;
    }
    if (kept.n != 0)
        ms_buf_putc(&kept, '}');
    if (ok && kept.bad == MS_OK)
        it->args = keep_text(r, ms_buf_slice(&kept));
    r->no_memory |= kept.bad == MS_E_NOMEM;
    ms_buf_free(&kept);
    return ok;
}

static bool read_member(struct reader *r, struct item *it, struct ms_str key)
{
    enum ms_jtok t = ms_jread_next(&r->j);
    if (t == MS_J_ERR)
        return false;
    if (ms_str_is(key, "args"))
        return read_args(r, it, t);
    if (t != MS_J_STR && t != MS_J_NUM)
        return ms_jread_skip(&r->j, t) != MS_J_ERR;
    if (ms_str_is(key, "ts"))
        it->has_ts = read_time(&r->j, t, &it->ts);
    else if (ms_str_is(key, "dur"))
        read_time(&r->j, t, &it->dur);
    else if (t == MS_J_STR && ms_str_is(key, "name"))
        it->name = r->j.escaped ? read_text(r) : r->j.text;
    else if (t == MS_J_STR && ms_str_is(key, "ph"))
        it->phase = r->j.text;
    else if (t == MS_J_STR && ms_str_is(key, "cat"))
        it->category = r->j.text;
    else if (ms_str_is(key, "pid"))
        it->pid = r->j.text;
    else if (ms_str_is(key, "tid"))
        it->tid = r->j.text;
    else if (ms_str_is(key, "id"))
        it->id = r->j.text;
    return true;
}

/* Reads an event. The opening brace has been read. */
static bool read_item(struct reader *r, struct item *it)
{
    *it = (struct item){
        .name = MS_STR(""), .type = MS_STR(""), .pid = MS_STR("0"), .tid = MS_STR("0")};
    for (;;) {
        enum ms_jtok t = ms_jread_next(&r->j);
        if (t == MS_J_OBJ_END)
            return true;
        if (t != MS_J_KEY || !read_member(r, it, r->j.text))
            return false;
    }
}

/* ---- processes and lanes ---------------------------------------------------- */

static struct process *process_of(struct reader *r, struct ms_str pid, uint32_t *index)
{
    bool added;
    *index = ms_map_put(&r->processes, pid, &added);
    if (*index == MS_MAP_NONE)
        return NULL;
    if (added) {
        struct process *p = ms_vec_push(&r->process);
        if (p == NULL)
            return NULL;
        *p = (struct process){.pid = pid, .name = MS_STR("")};
    }
    ms_assert(*index < r->process.n);
    return &r->process.p[*index];
}

/* Finds or adds the lane of a thread, or of the counter named `what`. */
static struct lane *lane_of(struct reader *r, const struct item *it, enum mstx_track_kind kind,
                            struct ms_str what, uint32_t *index)
{
    struct ms_buf key = {.max = 1 << 24};
    uint32_t process;
    bool added;
    if (process_of(r, it->pid, &process) == NULL)
        return NULL;
    ms_buf_printf(&key, "%u/%d/", process, (int)kind);
    ms_buf_str(&key, what);
    *index = key.bad == MS_OK ? ms_map_put_copy(&r->lanes, ms_buf_slice(&key), r->arena, &added)
                              : MS_MAP_NONE;
    ms_buf_free(&key);
    if (*index == MS_MAP_NONE)
        return NULL;
    if (added) {
        struct lane *l = ms_vec_push(&r->lane);
        uint64_t tid;
        if (l == NULL)
            return NULL;
        *l = (struct lane){.process = process,
                           .kind = kind,
                           .name = kind == MSTX_TRACK_COUNTER ? what : MS_STR(""),
                           .domain = MS_STR("default")};
        if (kind == MSTX_TRACK_THREAD && ms_str_u64(it->tid, &tid) && tid <= UINT32_MAX)
            l->tid = (uint32_t)tid;
    }
    ms_assert(*index < r->lane.n);
    return &r->lane.p[*index];
}

static struct mstx_event *add_event(struct reader *r, struct lane *l, const struct item *it,
                                    enum mstx_event_kind kind)
{
    struct mstx_event *e = ms_vec_push(&l->ev);
    if (e == NULL)
        return NULL;
    int64_t start = it->ts + r->base_ns;
    *e = (struct mstx_event){
        .start_ns = start,
        .dur_ns = kind != MSTX_EV_MARK && it->dur > 0 ? it->dur : 0,
        .name = mstx__writer_text(r->w, it->name.n != 0 ? it->name : MS_STR("(no name)")),
        .args = mstx__writer_text(r->w, it->args),
        .count = 1,
        .kind = (uint8_t)kind};
    if (it->is_unfinished)
        e->flags |= MSTX_EVF_UNFINISHED;
    if (it->end_tid > 0 && it->end_tid <= UINT32_MAX) {
        e->end_tid = (uint32_t)it->end_tid;
        e->flags |= MSTX_EVF_OTHER_THREAD;
    }
    r->last_ns = start + e->dur_ns > r->last_ns ? start + e->dur_ns : r->last_ns;
    if (it->domain.n != 0)
        l->domain = it->domain;
    return e;
}

/* ---- the kinds of events ---------------------------------------------------- */

static enum mstx_event_kind kind_of(const struct item *it, enum mstx_event_kind kind)
{
    if (ms_str_is(it->type, "marker"))
        return MSTX_EV_MARK;
    return ms_str_is(it->type, "push/pop") ? MSTX_EV_PUSHPOP : kind;
}

static bool add_slice(struct reader *r, const struct item *it, enum mstx_event_kind kind)
{
    uint32_t index;
    struct lane *l = lane_of(r, it, MSTX_TRACK_THREAD, it->tid, &index);
    return l != NULL && add_event(r, l, it, kind_of(it, kind)) != NULL;
}

static bool add_begin(struct reader *r, const struct item *it)
{
    uint32_t index;
    struct lane *l = lane_of(r, it, MSTX_TRACK_THREAD, it->tid, &index);
    struct mstx_event *e = l != NULL ? add_event(r, l, it, MSTX_EV_PUSHPOP) : NULL;
    size_t *open = e != NULL ? ms_vec_push(&l->open) : NULL;
    if (open == NULL)
        return false;
    e->flags = MSTX_EVF_UNFINISHED;
    *open = l->ev.n - 1;
    return true;
}

static void close_event(struct reader *r, struct mstx_event *e, int64_t ts, bool is_finished)
{
    int64_t end = ts + r->base_ns;
    e->dur_ns = end > e->start_ns ? end - e->start_ns : 0;
    if (is_finished)
        e->flags = (uint8_t)(e->flags & ~MSTX_EVF_UNFINISHED);
    r->last_ns = end > r->last_ns ? end : r->last_ns;
}

static bool add_end(struct reader *r, const struct item *it)
{
    uint32_t index;
    struct lane *l = lane_of(r, it, MSTX_TRACK_THREAD, it->tid, &index);
    if (l == NULL)
        return false;
    if (l->open.n == 0)
        r->skipped++;
    else
        close_event(r, &l->ev.p[l->open.p[--l->open.n]], it->ts, true);
    return true;
}

static struct async *async_of(struct reader *r, const struct item *it)
{
    struct ms_buf key = {.max = 1 << 24};
    bool added;
    ms_buf_printf(&key, "%.*s/%.*s/%.*s/", MS_STR_ARG(it->pid), MS_STR_ARG(it->id),
                  MS_STR_ARG(it->category));
    ms_buf_str(&key, it->name);
    uint32_t at = key.bad == MS_OK
                      ? ms_map_put_copy(&r->asyncs, ms_buf_slice(&key), r->arena, &added)
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

static bool add_async(struct reader *r, const struct item *it, bool begins)
{
    struct async *a = async_of(r, it);
    if (a == NULL)
        return false;
    if (!begins) {
        if (a->is_open)
            close_event(r, &r->lane.p[a->lane].ev.p[a->at], it->ts, !a->stays_unfinished);
        else
            r->skipped++;
        a->is_open = false;
        return true;
    }
    uint32_t index;
    struct lane *l = lane_of(r, it, MSTX_TRACK_THREAD, it->tid, &index);
    struct mstx_event *e = l != NULL ? add_event(r, l, it, MSTX_EV_RANGE) : NULL;
    if (e == NULL)
        return false;
    *a = (struct async){index, l->ev.n - 1, true, it->is_unfinished};
    e->flags |= MSTX_EVF_UNFINISHED;
    return true;
}

static bool add_counter(struct reader *r, const struct item *it)
{
    uint32_t index;
    if (!it->has_value) {
        r->skipped++;
        return true;
    }
    struct lane *l = lane_of(r, it, MSTX_TRACK_COUNTER, it->name, &index);
    struct mstx_event *e = l != NULL ? add_event(r, l, it, MSTX_EV_COUNTER) : NULL;
    if (e == NULL)
        return false;
    e->args = 0;
    e->flags = it->value_is_int ? 0 : MSTX_EVF_FLOAT;
    if (it->value_is_int)
        e->arg = (uint64_t)it->value_int;
    else
        memcpy(&e->arg, &it->value, sizeof e->arg);
    return true;
}

static bool add_metadata(struct reader *r, const struct item *it)
{
    uint32_t index;
    if (ms_str_is(it->name, "process_name")) {
        struct process *p = process_of(r, it->pid, &index);
        if (p != NULL)
            p->name = it->label;
        return p != NULL;
    }
    if (ms_str_is(it->name, "thread_name")) {
        struct lane *l = lane_of(r, it, MSTX_TRACK_THREAD, it->tid, &index);
        if (l != NULL)
            l->name = it->label;
        return l != NULL;
    }
    return true;
}

static bool add_item(struct reader *r, const struct item *it)
{
    char phase = it->phase.n == 1 ? it->phase.p[0] : 0;
    if (phase == 'M')
        return add_metadata(r, it);
    if (!it->has_ts || strchr("XBEiIRCbe", phase) == NULL || phase == 0) {
        r->skipped++;
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
    default:
        return add_slice(r, it, MSTX_EV_MARK);
    }
}

/* ---- the file --------------------------------------------------------------- */

/* Reads the events of an array. The opening bracket has been read. */
static enum ms_rc read_events(struct reader *r, struct ms_err *err)
{
    for (;;) {
        struct item it;
        enum ms_jtok t = ms_jread_next(&r->j);
        if (t == MS_J_ARR_END)
            return MS_OK;
        if (t == MS_J_ERR)
            return ms_jread_fail(&r->j, err);
        if (t != MS_J_OBJ) {
            r->skipped++;
            if (ms_jread_skip(&r->j, t) == MS_J_ERR)
                return ms_jread_fail(&r->j, err);
            continue;
        }
        if (!read_item(r, &it))
            return ms_jread_fail(&r->j, err);
        if (!add_item(r, &it) || r->no_memory)
            return ms_no_memory(err);
    }
}

/* Reads the start of the run from otherData, where to_chrome.c writes it. */
static enum ms_rc read_other_data(struct reader *r, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(&r->j);
    while (t == MS_J_OBJ) {
        enum ms_jtok k = ms_jread_next(&r->j);
        if (k == MS_J_OBJ_END)
            return MS_OK;
        bool is_start = k == MS_J_KEY && ms_str_is(r->j.text, "start_unix_ns");
        k = ms_jread_next(&r->j);
        int64_t base;
        if (is_start && k == MS_J_STR && ms_str_i64(r->j.text, &base) && base >= 0 &&
            base <= TIME_MOST)
            r->base_ns = base;
        if (ms_jread_skip(&r->j, k) == MS_J_ERR)
            return ms_jread_fail(&r->j, err);
    }
    return ms_jread_skip(&r->j, t) != MS_J_ERR ? MS_OK : ms_jread_fail(&r->j, err);
}

static enum ms_rc read_wrapper(struct reader *r, struct ms_err *err)
{
    bool has_events = false;
    for (;;) {
        enum ms_jtok t = ms_jread_next(&r->j);
        if (t == MS_J_OBJ_END && !has_events && !r->j.truncated)
            return ms_jread_reject(&r->j, err, "no key \"traceEvents\"");
        if (t == MS_J_OBJ_END)
            return MS_OK;
        if (t != MS_J_KEY)
            return ms_jread_fail(&r->j, err);
        bool is_events = ms_str_is(r->j.text, "traceEvents");
        if (ms_str_is(r->j.text, "otherData")) {
            MS_TRY(read_other_data(r, err));
            continue;
        }
        t = ms_jread_next(&r->j);
        is_events = is_events && t == MS_J_ARR;
        has_events |= is_events;
        if (is_events)
            MS_TRY(read_events(r, err));
        else if (ms_jread_skip(&r->j, t) == MS_J_ERR)
            return ms_jread_fail(&r->j, err);
    }
}

static enum ms_rc read_file(struct reader *r, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(&r->j);
    if (t == MS_J_ARR)
        return read_events(r, err);
    if (t == MS_J_OBJ)
        return read_wrapper(r, err);
    return t == MS_J_ERR ? ms_jread_fail(&r->j, err)
                         : ms_jread_reject(&r->j, err, "expected a list of trace events");
}

/* ---- writing ---------------------------------------------------------------- */

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

static void write_processes(struct reader *r)
{
    for (size_t i = 0; i < r->process.n; i++) {
        const struct process *p = &r->process.p[i];
        struct mstx_process_row row = {.rank = rank_of(p->name),
                                       .name = p->name,
                                       .host = MS_STR(""),
                                       .dir = MS_STR(""),
                                       .tool = MS_STR("Chrome trace"),
                                       .state = MS_STR("finished"),
                                       .start_ns = r->base_ns,
                                       .end_ns = r->last_ns};
        uint64_t pid;
        if (ms_str_u64(p->pid, &pid) && pid <= UINT32_MAX)
            row.pid = (uint32_t)pid;
        for (size_t k = 0; k < r->lane.n; k++)
            row.events += r->lane.p[k].process == i ? r->lane.p[k].ev.n : 0;
        mstx__writer_process(r->w, mstx__writer_process_id(r->w), &row);
    }
}

static void write_lanes(struct reader *r)
{
    for (size_t i = 0; i < r->lane.n; i++) {
        struct lane *l = &r->lane.p[i];
        for (size_t k = 0; k < l->ev.n; k++) {
            struct mstx_event *e = &l->ev.p[k];
            if (e->flags & MSTX_EVF_UNFINISHED && e->dur_ns == 0)
                e->dur_ns = r->last_ns - e->start_ns;
        }
        const struct mstx_track_row row = {.process = l->process + 1,
                                           .kind = l->kind,
                                           .tid = l->tid,
                                           .domain = l->domain,
                                           .name = l->name,
                                           .unit = MS_STR("")};
        mstx__writer_track(r->w, &row, &l->ev);
    }
}

static void free_reader(struct reader *r)
{
    for (size_t i = 0; i < r->lane.n; i++) {
        ms_vec_free(&r->lane.p[i].ev);
        ms_vec_free(&r->lane.p[i].open);
    }
    ms_vec_free(&r->lane);
    ms_vec_free(&r->process);
    ms_vec_free(&r->async);
    ms_map_free(&r->lanes);
    ms_map_free(&r->processes);
    ms_map_free(&r->asyncs);
    ms_arena_free(r->arena);
}

static void report_problems(struct reader *r, const char *path)
{
    char text[96];
    if (r->j.truncated)
        mstx__writer_problem(r->w, path, "the file is cut off; what is there has been read");
    if (r->skipped == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " events without a place on a time line were left out",
             r->skipped);
    mstx__writer_problem(r->w, path, text);
}

enum ms_rc mstx__import_chrome(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err)
{
    struct trace_text text;
    struct reader r = {.w = w, .arena = ms_arena_new((size_t)1 << 34)};
    if (r.arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = trace_text_open(&text, path, err);
    if (rc == MS_OK) {
        ms_jread_init(&r.j, text.p, text.n, MS_JREAD_TOLERANT);
        rc = read_file(&r, err);
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", path);
        if (rc == MS_OK) {
            report_problems(&r, path);
            write_processes(&r);
            write_lanes(&r);
            result->files = 1;
        }
        trace_text_close(&text);
    }
    free_reader(&r);
    return rc;
}
