/* SPDX-License-Identifier: MIT
 *
 * hang_watch: communication calls that do not return, and marks that a device does not reach.
 * Each is reported once: a line on stderr, and a HANG text in the capture, which a reader may show
 * while the program still hangs.  The program itself is not changed.
 *
 * An asynchronous operation (an Irecv) may stay open for long: the WAIT for it is checked instead.
 * When a WAIT hangs, the operations that it waits for are reported in its place: those of its
 * requests, with their peers, as far as the hook knows them, or else the collectives that its
 * thread had begun and that are still open.
 */
#include "mstx/rt/hang_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "mstx/rt/comm_group.h"
#include "mstx/rt/stacks.h"
#include "mstx/rt/string_file.h"

/* Reports at most CALLS_A_LOOK hung calls in one scan, because resolving a name can be slow.  The next
 * scan reports the rest. */
enum { STACKS = 64 << 10, CALLS_A_LOOK = 32, WAITS_A_LOOK = 64, REQUESTS_A_WAIT = 32 };

static struct {
    struct rt_lock lock;
    uint64_t stacks_at; /* when stacks were written last */
    char text[sizeof(struct mstx_hang) + 512 + STACKS];
} hang;

bool rt_hang_is_long(uint64_t ticks)
{
    const uint64_t hz =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return rt.conf.hang_s > 0 && hz != 0 && (double)ticks > rt.conf.hang_s * (double)hz;
}

static int64_t ns_of(uint64_t ticks)
{
    const uint64_t hz =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return hz != 0 ? (int64_t)((double)ticks / (double)hz * 1e9) : 0;
}

/* Writes the line on stderr. c: the call; c->group: the communicator, or the stream of a device. */
static void tell_people(const struct mstx_hang *h, const struct mstx_comm_told *c)
{
    char line[512], who[32] = "this process", call[MSTX_COMM_SPOKEN];
    const double s = (double)h->waited_ns / 1e9;
    int n;
    if (rt.conf.rank >= 0)
        snprintf(who, sizeof who, "rank %" PRId32, rt.conf.rank);
    mstx_comm_speak(call, c);
    if (h->on_device)
        n = snprintf(line, sizeof line,
                     "mstx: the device of %s has not come to %s on %s for %.1f s\n", who, c->name,
                     c->group, s);
    else
        n = snprintf(line, sizeof line, "mstx: %s waits in %s for %.1f s\n", who, call, s);
    if (rt.conf.quiet < 2 && n > 0)
        (void)!write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Caller holds the lock. */
static size_t append(size_t at, const char *text, uint16_t *len)
{
    ms_assert(atomic_load(&hang.lock.held) == 1 && at + 250 <= sizeof hang.text - STACKS);
    size_t n = strnlen(text, 250);
    memcpy(hang.text + at, text, n);
    *len = (uint16_t)n;
    return at + n;
}

/* Writes the HANG text and the line on stderr. Calls that hang at the same moment share the stacks
 * of the first. */
static void report_hang(struct mstx_hang *h, uint64_t id, const struct mstx_comm_told *c)
{
    rt_lock(&hang.lock);
    h->op = c->op;
    h->seq = c->seq;
    h->size = c->size;
    h->peer_plus_1 = c->peer + 1;
    size_t at = append(sizeof *h, c->name, &h->name_len);
    at = append(at, c->group, &h->group_len);
    uint64_t now = rt_ticks();
    if (hang.stacks_at == 0 || ns_of(now - hang.stacks_at) > 5000000000) {
        hang.stacks_at = now;
        at += rt_stacks(hang.text + at, STACKS);
    }
    memcpy(hang.text, h, sizeof *h);
    rt_text_define(MSTX_HANG, 0, id, hang.text, at);
    tell_people(h, c);
    rt_unlock(&hang.lock);
}

/* Describes a call for messages; the range of a framework is described by its text. */
static void what_is(const struct mstx_comm_open *o, struct mstx_comm_told *c)
{
    char text[1024];
    *c = (struct mstx_comm_told){.op = o->rec.op, .size = o->size, .peer = o->peer};
    if (o->name == NULL) {
        rt_text_copy(o->text, text, sizeof text);
        mstx_comm_message_read(text, c);
    } else {
        snprintf(c->name, sizeof c->name, "%s", o->name);
        snprintf(c->group, sizeof c->group, "%s", o->group);
    }
    c->seq = o->rec.seq;
}

static uint64_t group_of(const struct mstx_comm_open *o, const struct mstx_comm_told *c)
{
    if (o->name != NULL || c->group[0] == '\0')
        return o->uid;
    return mstx_group_hash(0, c->group, strlen(c->group));
}

/* ---- scan of open calls --------------------------------------------------------------------- */

/* A call that waits for requests, and hangs. */
struct wait {
    uint32_t tid, ranges;
    uint64_t since;
    uint64_t range[REQUESTS_A_WAIT]; /* ranges that it waits for, as far as known */
};
struct look {
    uint64_t now;
    uint32_t told, waits;
    struct wait wait[WAITS_A_LOOK];
};

static bool hangs(const struct look *l, const struct mstx_comm_open *o)
{
    ms_assert(l->now != 0);
    return (o->rec.flags & MSTX_CF_ASYNC) == 0 && o->ticks <= l->now &&
           rt_hang_is_long(l->now - o->ticks);
}

/* Finds the ranges that a WAIT waits for. The handles are on the stack of a thread that may return
 * at any moment, so they are read through the kernel. */
static void find_ranges(struct wait *w, const struct mstx_comm_open *o)
{
    mstx_comm_request_fn *range_of = rt_comm_requests_by();
    uint64_t handle[REQUESTS_A_WAIT];
    const size_t n = o->rec.count < REQUESTS_A_WAIT ? o->rec.count : REQUESTS_A_WAIT;
    if (o->requests == NULL || range_of == NULL)
        return;
    const size_t got = rt_read_self((uintptr_t)o->requests, handle, n * sizeof *handle);
    for (size_t i = 0; i < got / sizeof *handle; i++) {
        const uint64_t range = range_of(handle[i]);
        if (range != 0)
            w->range[w->ranges++] = range;
    }
}

static void find_waits(void *arg, const struct mstx_comm_open *o)
{
    struct look *l = arg;
    if (o->rec.op != MSTX_COMM_WAIT || l->waits == WAITS_A_LOOK || !hangs(l, o))
        return;
    struct wait *w = &l->wait[l->waits++];
    w->tid = o->tid;
    w->since = o->ticks;
    find_ranges(w, o);
}

static bool waits_for(const struct wait *w, const struct mstx_comm_open *o)
{
    for (uint32_t i = 0; i < w->ranges; i++) {
        if (w->range[i] == o->id)
            return true;
    }
    return w->ranges == 0 && w->tid == o->tid && o->ticks <= w->since &&
           mstx_comm_op_class(o->rec.op) == MSTX_CLASS_COLL;
}

/* Ticks since which a hung call has waited for this operation; 0: none waits for it. */
static uint64_t waited_since(const struct look *l, const struct mstx_comm_open *o)
{
    for (uint32_t i = 0; (o->rec.flags & MSTX_CF_ASYNC) != 0 && i < l->waits; i++) {
        if (waits_for(&l->wait[i], o))
            return l->wait[i].since;
    }
    return 0;
}

/* Tells whether the ranges that this WAIT waits for are known; they are then reported in its
 * place. */
static bool has_ranges(const struct look *l, const struct mstx_comm_open *o)
{
    for (uint32_t i = 0; o->rec.op == MSTX_COMM_WAIT && i < l->waits; i++) {
        if (l->wait[i].tid == o->tid && l->wait[i].since == o->ticks)
            return l->wait[i].ranges != 0;
    }
    return false;
}

static void look_at(void *arg, const struct mstx_comm_open *o)
{
    struct look *l = arg;
    struct mstx_comm_told c;
    const uint64_t since = hangs(l, o) ? o->ticks : waited_since(l, o);
    if (since == 0 || o->is_told || l->told == CALLS_A_LOOK || has_ranges(l, o))
        return;
    l->told++;
    rt_comm_told(o->id);
    what_is(o, &c);
    struct mstx_hang h = {
        .uid = group_of(o, &c), .waited_ns = ns_of(l->now - since), .tid = o->tid};
    report_hang(&h, o->id, &c);
}

void rt_hang_look(void)
{
    static struct look l; /* used by the helper thread only */
    if (rt.conf.hang_s <= 0)
        return;
    memset(&l, 0, sizeof l);
    l.now = rt_ticks();
    mstx_comm_each_open(find_waits, &l);
    mstx_comm_each_open(look_at, &l);
}

void rt_hang_on_device(const struct rt_hang_mark *m)
{
    struct mstx_hang h = {.waited_ns = ns_of(rt_ticks() - m->ticks), .on_device = 1};
    struct mstx_comm_told c = {.size = -1, .peer = -1};
    rt_text_copy(m->name, c.name, sizeof c.name);
    snprintf(c.group, sizeof c.group, "%s", m->stream);
    report_hang(&h, m->id, &c);
}
