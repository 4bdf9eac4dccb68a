/* SPDX-License-Identifier: MIT
 *
 * to_perfetto: writes Perfetto's trace format, encoded by hand.
 *
 * A trace is a list of packets, each "field 1, length, bytes".  All packets belong to one sequence,
 * so a name or domain is interned with the first packet that uses it and referred to by number
 * afterwards.  Lengths precede contents: a packet is built from its end to its beginning in a small
 * buffer, so that every length is known when it is written.
 */
#include "mstx/foreign/to_perfetto.h"

#include "mstx/foreign/export.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <assert.h>

enum {
    /* wire types */
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    /* fields of Trace and TracePacket */
    TRACE_PACKET = 1,
    PACKET_CLOCKS = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    /* ClockSnapshot */
    SNAPSHOT_CLOCK = 1,
    CLOCK_ID = 1,
    CLOCK_TIME = 2,
    CLOCK_IS_REALTIME = 1,
    CLOCK_IS_BOOTTIME = 6,
    /* TrackDescriptor */
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    COUNTER_UNIT = 3,
    UNIT_BYTES = 3,
    /* TrackEvent */
    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_COUNTER = 30,
    EVENT_COUNTER_REAL = 44,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48,
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_INSTANT = 3,
    TYPE_COUNTER = 4,
    /* DebugAnnotation */
    ANNOTATION_BOOL = 2,
    ANNOTATION_JSON = 9,
    ANNOTATION_NAME = 10,
    /* InternedData */
    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_IID = 1,
    INTERNED_TEXT = 2,
    /* sequence_flags */
    STATE_CLEARED = 1,
    NEEDS_STATE = 2,
    SEQUENCE = 1,
    PACKET_MAX = 256, /* without texts */
};

struct writer {
    struct mstx_tl *tl;
    struct ms_out *out;
    MS_VEC(uint8_t) known; /* by text id: 1 when the text has been interned */
    struct mstx_nest nest;
    const struct mstx_track *track;
    int64_t base_ns; /* time 0 of the clock of the trace */
    uint64_t track_uuid;
    uint32_t category; /* number of the track's domain */
    bool lane_known[MSTX_NEST_LANES];
    bool state_cleared, no_memory;
};

/* A message that is built backwards, from the end of bytes; `at` is its first byte. */
struct back {
    uint8_t bytes[PACKET_MAX];
    uint8_t *at;
};

static uint8_t *back_end(struct back *b)
{
    return b->bytes + sizeof b->bytes;
}

/* ---- encoding --------------------------------------------------------------- */

static unsigned varint_size(uint64_t v)
{
    return v == 0 ? 1 : (70u - (unsigned)__builtin_clzll(v)) / 7u;
}

static uint8_t *write_varint(uint8_t *at, uint64_t v)
{
    while (v >= 0x80) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

static void back_varint(struct back *b, uint64_t v)
{
    b->at -= varint_size(v);
    assert(b->at >= b->bytes);
    write_varint(b->at, v);
}

static void back_tag(struct back *b, unsigned field, unsigned wire)
{
    back_varint(b, field << 3 | wire);
}

static void back_number(struct back *b, unsigned field, uint64_t v)
{
    back_varint(b, v);
    back_tag(b, field, VARINT);
}

/* Wraps the bytes from b->at up to `from` into a field. */
static void back_wrap(struct back *b, unsigned field, const uint8_t *from)
{
    back_varint(b, (uint64_t)(from - b->at));
    back_tag(b, field, BYTES);
}

static void out_varint(struct ms_out *o, uint64_t v)
{
    uint8_t *room = (uint8_t *)ms_out_room(o, 16);
    ms_out_used(o, (size_t)(write_varint(room, v) - room));
}

/* Writes a finished packet. */
static void write_packet(struct writer *w, struct back *b)
{
    ms_assert(b->at <= back_end(b));
    back_wrap(b, TRACE_PACKET, back_end(b));
    ms_out_write(w->out, b->at, (size_t)(back_end(b) - b->at));
}

/* Begins a packet, from its end, with the fields of every packet of the sequence. */
static void begin_packet(struct writer *w, struct back *b)
{
    b->at = back_end(b);
    back_number(b, PACKET_FLAGS, w->state_cleared ? NEEDS_STATE : STATE_CLEARED | NEEDS_STATE);
    back_number(b, PACKET_SEQUENCE, SEQUENCE);
    w->state_cleared = true;
}

/* ---- texts ------------------------------------------------------------------ */

/* Texts may not fit into the small buffer: their packets are written forwards, with sizes
 * computed first. text_field returns the size of a field that holds n bytes. */
static uint64_t text_field(unsigned field, uint64_t n)
{
    return varint_size(field << 3) + varint_size(n) + n;
}

static void write_text(struct ms_out *o, unsigned field, struct ms_str text)
{
    out_varint(o, field << 3 | BYTES);
    out_varint(o, text.n);
    ms_out_str(o, text);
}

static void write_head(struct ms_out *o, unsigned field, uint64_t n)
{
    out_varint(o, field << 3 | BYTES);
    out_varint(o, n);
}

static void write_number(struct ms_out *o, unsigned field, uint64_t v)
{
    out_varint(o, field << 3 | VARINT);
    out_varint(o, v);
}

static uint64_t number_field(unsigned field, uint64_t v)
{
    return varint_size(field << 3) + varint_size(v);
}

/* Writes a packet that interns one text. */
static void write_interned(struct writer *w, unsigned kind, uint64_t iid, struct ms_str text)
{
    uint64_t flags = w->state_cleared ? NEEDS_STATE : STATE_CLEARED | NEEDS_STATE;
    uint64_t entry = number_field(INTERNED_IID, iid) + text_field(INTERNED_TEXT, text.n);
    uint64_t data = text_field(kind, entry);
    w->state_cleared = true;
    write_head(w->out, TRACE_PACKET,
               number_field(PACKET_SEQUENCE, SEQUENCE) + number_field(PACKET_FLAGS, flags) +
                   text_field(PACKET_INTERNED, data));
    write_number(w->out, PACKET_SEQUENCE, SEQUENCE);
    write_number(w->out, PACKET_FLAGS, flags);
    write_head(w->out, PACKET_INTERNED, data);
    write_head(w->out, kind, entry);
    write_number(w->out, INTERNED_IID, iid);
    write_text(w->out, INTERNED_TEXT, text);
}

/* Returns the number of a text in the sequence, which is its id, after interning it. */
static void intern_name(struct writer *w, uint32_t id)
{
    if (id < w->known.n && w->known.p[id] != 0)
        return;
    struct ms_str text = mstx_tl_text(w->tl, id);
    size_t want = text.n != 0 ? (size_t)id + id / 2 + 64 : 0;
    if (id >= w->known.n && want != 0) {
        if (!ms_vec_reserve(&w->known, want)) {
            w->no_memory = true;
            return;
        }
        memset(w->known.p + w->known.n, 0, want - w->known.n);
        w->known.n = want;
    }
    if (id < w->known.n)
        w->known.p[id] = 1;
    write_interned(w, INTERNED_NAME, id, text);
}

/* ---- tracks ----------------------------------------------------------------- */

enum {
    PROCESS_UUIDS = 1 /* uuid of process i is i + 1; tracks follow, with room for their lanes */
};

static uint64_t uuid_of_track(const struct writer *w, size_t i)
{
    return PROCESS_UUIDS + mstx_tl_process_count(w->tl) + i * MSTX_NEST_LANES;
}

/* Writes a track descriptor; extra holds its fields except uuid and name. */
static void write_descriptor(struct writer *w, uint64_t uuid, struct ms_str name,
                             const struct back *extra, uint64_t extra_n)
{
    uint64_t flags = w->state_cleared ? NEEDS_STATE : STATE_CLEARED | NEEDS_STATE;
    uint64_t body = number_field(TRACK_UUID, uuid) + text_field(TRACK_NAME, name.n) + extra_n;
    w->state_cleared = true;
    write_head(w->out, TRACE_PACKET,
               number_field(PACKET_SEQUENCE, SEQUENCE) + number_field(PACKET_FLAGS, flags) +
                   text_field(PACKET_TRACK, body));
    write_number(w->out, PACKET_SEQUENCE, SEQUENCE);
    write_number(w->out, PACKET_FLAGS, flags);
    write_head(w->out, PACKET_TRACK, body);
    write_number(w->out, TRACK_UUID, uuid);
    write_text(w->out, TRACK_NAME, name);
    ms_out_write(w->out, extra->at, extra_n);
}

static void write_process(struct writer *w, size_t i)
{
    char buf[MSTX_LABEL_MAX];
    struct back b;
    const struct mstx_process *p = mstx_tl_process(w->tl, i);
    struct ms_str label = mstx__process_label(p, buf);
    b.at = back_end(&b);
    b.at -= label.n;
    memcpy(b.at, label.p, label.n);
    back_wrap(&b, PROCESS_NAME, back_end(&b));
    back_number(&b, PROCESS_PID, p->pid);
    back_wrap(&b, TRACK_PROCESS, back_end(&b));
    write_descriptor(w, PROCESS_UUIDS + i, label, &b, (uint64_t)(back_end(&b) - b.at));
}

static void write_track_name(struct writer *w, uint64_t uuid)
{
    struct ms_buf name = {.max = 1 << 22};
    const struct mstx_track *t = w->track;
    struct back b;
    b.at = back_end(&b);
    if (t->kind == MSTX_TRACK_COUNTER) {
        const uint8_t *from = b.at;
        if (ms_str_is(t->unit, "bytes"))
            back_number(&b, COUNTER_UNIT, UNIT_BYTES);
        back_wrap(&b, TRACK_COUNTER, from);
    }
    back_number(&b, TRACK_PARENT, PROCESS_UUIDS + t->process);
    if (t->kind != MSTX_TRACK_THREAD || t->name.n != 0)
        ms_buf_str(&name, t->name);
    else
        ms_buf_printf(&name, "thread %u", (unsigned)t->tid);
    if (!ms_str_is(t->domain, "default"))
        ms_buf_printf(&name, " [%.*s]", MS_STR_ARG(t->domain));
    write_descriptor(w, uuid, ms_buf_slice(&name), &b, (uint64_t)(back_end(&b) - b.at));
    w->no_memory |= name.bad == MS_E_NOMEM;
    ms_buf_free(&name);
}

/* ---- events ----------------------------------------------------------------- */

static void end_slice(void *ctx, unsigned lane, int64_t end_ns)
{
    struct writer *w = ctx;
    struct back b;
    begin_packet(w, &b);
    const uint8_t *from = b.at;
    back_number(&b, EVENT_TRACK, w->track_uuid + lane);
    back_number(&b, EVENT_TYPE, TYPE_END);
    back_wrap(&b, PACKET_TRACK_EVENT, from);
    back_number(&b, PACKET_TIMESTAMP, (uint64_t)(end_ns - w->base_ns));
    write_packet(w, &b);
}

/* Writes the rest of an event with attributes, which are a text and may be long. */
static void write_with_args(struct writer *w, struct back *b, int64_t start, const uint8_t *tail,
                            struct ms_str args)
{
    uint64_t own = (uint64_t)(tail - b->at), behind = (uint64_t)(back_end(b) - tail);
    uint64_t note = text_field(ANNOTATION_NAME, 4) + text_field(ANNOTATION_JSON, args.n);
    uint64_t event = own + text_field(EVENT_ANNOTATION, note);
    write_head(w->out, TRACE_PACKET,
               number_field(PACKET_TIMESTAMP, (uint64_t)start) +
                   text_field(PACKET_TRACK_EVENT, event) + behind);
    write_number(w->out, PACKET_TIMESTAMP, (uint64_t)start);
    write_head(w->out, PACKET_TRACK_EVENT, event);
    write_head(w->out, EVENT_ANNOTATION, note);
    write_text(w->out, ANNOTATION_NAME, MS_STR("args"));
    write_text(w->out, ANNOTATION_JSON, args);
    ms_out_write(w->out, b->at, own);
    ms_out_write(w->out, tail, behind);
}

static void back_fixed64(struct back *b, unsigned field, uint64_t v)
{
    b->at -= 8;
    for (int i = 0; i < 8; i++)
        b->at[i] = (uint8_t)(v >> 8 * i);
    back_tag(b, field, FIXED64);
}

/* Adds a flow from an event to its device side, which has the same size; sizes are unique within
 * a process. */
static void back_flow(const struct writer *w, struct back *b, const struct mstx_event *e)
{
    bool is_stream = w->track->kind == MSTX_TRACK_STREAM;
    if (e->size != 0 && e->kind != MSTX_EV_REGION)
        back_fixed64(b, is_stream ? EVENT_FLOW_END : EVENT_FLOW,
                     ((uint64_t)w->track->process + 1) << 40 | e->size);
}

static void back_unfinished(struct back *b)
{
    static const char name[] = "unfinished";
    const uint8_t *from = b->at;
    const size_t n = sizeof name - 1;
    b->at -= n;
    memcpy(b->at, name, n);
    back_varint(b, n);
    back_tag(b, ANNOTATION_NAME, BYTES);
    back_number(b, ANNOTATION_BOOL, 1);
    back_wrap(b, EVENT_ANNOTATION, from);
}

static void write_named(struct writer *w, const struct mstx_event *e, unsigned type, unsigned lane)
{
    struct back b;
    struct ms_str args = mstx_tl_text(w->tl, e->args);
    intern_name(w, e->name);
    begin_packet(w, &b);
    const uint8_t *from = b.at;
    back_flow(w, &b, e);
    if (e->flags & MSTX_EVF_UNFINISHED)
        back_unfinished(&b);
    back_number(&b, EVENT_TRACK, w->track_uuid + lane);
    back_number(&b, EVENT_NAME, e->name);
    back_number(&b, EVENT_TYPE, type);
    back_number(&b, EVENT_CATEGORY, w->category);
    if (args.n != 0) {
        write_with_args(w, &b, e->start_ns - w->base_ns, from, args);
        return;
    }
    back_wrap(&b, PACKET_TRACK_EVENT, from);
    back_number(&b, PACKET_TIMESTAMP, (uint64_t)(e->start_ns - w->base_ns));
    write_packet(w, &b);
}

static void write_counter(struct writer *w, const struct mstx_event *e)
{
    struct back b;
    begin_packet(w, &b);
    const uint8_t *from = b.at;
    if (e->flags & MSTX_EVF_FLOAT) {
        back_fixed64(&b, EVENT_COUNTER_REAL, e->arg);
    } else {
        back_number(&b, EVENT_COUNTER, e->arg);
    }
    back_number(&b, EVENT_TRACK, w->track_uuid);
    back_number(&b, EVENT_TYPE, TYPE_COUNTER);
    back_wrap(&b, PACKET_TRACK_EVENT, from);
    back_number(&b, PACKET_TIMESTAMP, (uint64_t)(e->start_ns - w->base_ns));
    write_packet(w, &b);
}

static void write_slice(struct writer *w, const struct mstx_event *e)
{
    unsigned lane;
    int64_t end = e->start_ns + e->dur_ns;
    if (!mstx__nest(&w->nest, e->start_ns, &end, end_slice, w, &lane)) {
        w->no_memory = true;
        return;
    }
    if (!w->lane_known[lane])
        write_track_name(w, w->track_uuid + lane);
    w->lane_known[lane] = true;
    write_named(w, e, TYPE_BEGIN, lane);
}

static enum ms_rc write_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct writer *w = ctx;
    if (e->kind == MSTX_EV_COUNTER)
        write_counter(w, e);
    else if (e->kind == MSTX_EV_MARK)
        write_named(w, e, TYPE_INSTANT, 0);
    else
        write_slice(w, e);
    return w->no_memory ? ms_no_memory(err) : MS_OK;
}

static enum ms_rc write_track(struct writer *w, size_t i, struct ms_err *err)
{
    w->track = mstx_tl_track(w->tl, i);
    w->track_uuid = uuid_of_track(w, i);
    w->category = (uint32_t)i + 1;
    memset(w->lane_known, 0, sizeof w->lane_known);
    write_track_name(w, w->track_uuid);
    w->lane_known[0] = true;
    write_interned(w, INTERNED_CATEGORY, w->category, w->track->domain);
    enum ms_rc rc = mstx_tl_walk(w->tl, i, NULL, write_event, w, err);
    if (rc == MS_OK && w->no_memory)
        rc = ms_no_memory(err);
    mstx__nest_finish(&w->nest, rc == MS_OK ? end_slice : NULL, w);
    return rc;
}

static void write_clock(struct back *b, uint64_t id, uint64_t time)
{
    const uint8_t *from = b->at;
    back_number(b, CLOCK_TIME, time);
    back_number(b, CLOCK_ID, id);
    back_wrap(b, SNAPSHOT_CLOCK, from);
}

/* Writes the date of the trace. Times count from the first event, which keeps them short. */
static void write_snapshot(struct writer *w)
{
    struct back b;
    b.at = back_end(&b);
    write_clock(&b, CLOCK_IS_REALTIME, (uint64_t)w->base_ns);
    write_clock(&b, CLOCK_IS_BOOTTIME, 0);
    back_wrap(&b, PACKET_CLOCKS, back_end(&b));
    write_packet(w, &b);
}

enum ms_rc mstx_export_perfetto(struct mstx_tl *tl, struct ms_out *out, struct ms_err *err)
{
    struct writer w = {.tl = tl, .out = out};
    enum ms_rc rc = MS_OK;
    int64_t end;
    mstx_tl_span(tl, &w.base_ns, &end);
    write_snapshot(&w);
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++)
        write_process(&w, i);
    for (size_t i = 0; i < mstx_tl_track_count(tl) && rc == MS_OK; i++)
        rc = write_track(&w, i, err);
    ms_vec_free(&w.known);
    if (rc == MS_OK)
        rc = mstx__tl_check(tl, err);
    return rc == MS_OK ? ms_out_flush(out, err) : rc;
}
