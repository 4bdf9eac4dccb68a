/* SPDX-License-Identifier: MIT
 *
 * rt_hang: communication calls that do not return, and marks that a device does not come to.
 * They are told once: a line for people on stderr, and a HANG text in the capture, which a
 * reader may see while the program still hangs.  Nothing is done to the program.
 *
 * An operation that was only begun (an Irecv) may wait for long: the call that waits for it is
 * looked at instead.  While that hangs, so do the collectives that its thread had begun and that are
 * still open: they tell who does not come.
 */
#include "mstx/rt_comm.h"

#include "mstx/rt.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* At one look so many are told, the others by the next: a name may have to be searched for. */
enum { STACKS = 64 << 10, CALLS_A_LOOK = 32, WAITS_A_LOOK = 64 };

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

static void tell_people(const struct mstx_hang *h, const char *name, const char *group)
{
    char line[512], who[32] = "this process", call[32] = "";
    if (rt.conf.rank >= 0)
        snprintf(who, sizeof who, "rank %" PRId32, rt.conf.rank);
    if (!h->on_device && h->op != 0 && mstx_comm_op_class(h->op) < MSTX_SEQUENCES)
        snprintf(call, sizeof call, " (call %" PRIu32 ")", h->seq);
    int n =
        snprintf(line, sizeof line,
                 h->on_device ? "mstx: the device of %s has not come to %s on %s%.0s%s for %.1f s\n"
                              : "mstx: %s waits in %s%s%s%s for %.1f s\n",
                 who, name, h->on_device ? group : call,
                 h->on_device       ? ""
                 : group[0] != '\0' ? " of "
                                    : "",
                 h->on_device ? "" : group, (double)h->waited_ns / 1e9);
    if (rt.conf.quiet < 2 && n > 0)
        (void)!write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Caller holds the lock. */
static size_t append(size_t at, const char *text, uint16_t *len)
{
    size_t n = strnlen(text, 250);
    memcpy(hang.text + at, text, n);
    *len = (uint16_t)n;
    return at + n;
}

/* Several calls of a moment share the stacks of the first. */
static void tell(struct mstx_hang *h, uint64_t id, const char *name, const char *group)
{
    rt_lock(&hang.lock);
    size_t at = append(sizeof *h, name, &h->name_len);
    at = append(at, group, &h->group_len);
    uint64_t now = rt_ticks();
    if (hang.stacks_at == 0 || ns_of(now - hang.stacks_at) > 5000000000) {
        hang.stacks_at = now;
        at += rt_stacks(hang.text + at, STACKS);
    }
    memcpy(hang.text, h, sizeof *h);
    rt_text_define(MSTX_HANG, 0, id, hang.text, at);
    tell_people(h, name, group);
    rt_unlock(&hang.lock);
}

/* What a framework says in the text of its range. */
static void tell_as_said(struct mstx_hang *h, const struct mstx_comm_open *o)
{
    char text[1024];
    struct mstx_comm_told said;
    rt_text_copy(o->text, text, sizeof text);
    mstx_comm_message_read(text, &said);
    h->op = said.op;
    h->size = said.size;
    h->uid = said.group[0] != '\0' ? mstx_group_hash(0, said.group, strlen(said.group)) : 0;
    tell(h, o->id, said.name, said.group);
}

struct look {
    uint64_t now;
    uint32_t told, waits;
    struct { /* calls that wait for requests, and hang */
        uint32_t tid;
        uint64_t since;
    } wait[WAITS_A_LOOK];
};

static bool hangs(const struct look *l, const struct mstx_comm_open *o)
{
    return (o->rec.flags & MSTX_CF_ASYNC) == 0 && o->ticks <= l->now &&
           rt_hang_is_long(l->now - o->ticks);
}

static void find_waits(void *arg, const struct mstx_comm_open *o)
{
    struct look *l = arg;
    if (o->rec.op != MSTX_COMM_WAIT || l->waits == WAITS_A_LOOK || !hangs(l, o))
        return;
    l->wait[l->waits].tid = o->tid;
    l->wait[l->waits++].since = o->ticks;
}

/* Since when its thread waits, in a call that hangs, for a collective that it began; 0: it does not. */
static uint64_t waited_since(const struct look *l, const struct mstx_comm_open *o)
{
    if ((o->rec.flags & MSTX_CF_ASYNC) == 0 || mstx_comm_op_class(o->rec.op) != MSTX_CLASS_COLL)
        return 0;
    for (uint32_t i = 0; i < l->waits; i++) {
        if (l->wait[i].tid == o->tid && o->ticks <= l->wait[i].since)
            return l->wait[i].since;
    }
    return 0;
}

static void look_at(void *arg, const struct mstx_comm_open *o)
{
    struct look *l = arg;
    const uint64_t since = hangs(l, o) ? o->ticks : waited_since(l, o);
    if (since == 0 || o->is_told || l->told == CALLS_A_LOOK)
        return;
    struct mstx_hang h = {.uid = o->uid,
                          .waited_ns = ns_of(l->now - since),
                          .seq = o->rec.seq,
                          .tid = o->tid,
                          .size = o->size,
                          .op = o->rec.op};
    l->told++;
    rt_comm_told(o->id);
    if (o->name == NULL)
        tell_as_said(&h, o);
    else
        tell(&h, o->id, o->name, o->group);
}

void rt_hang_look(void)
{
    struct look l = {.now = rt_ticks()};
    if (rt.conf.hang_s <= 0)
        return;
    mstx_comm_each_open(find_waits, &l);
    mstx_comm_each_open(look_at, &l);
}

void rt_hang_on_device(const struct rt_hang_mark *m)
{
    char name[256];
    struct mstx_hang h = {.waited_ns = ns_of(rt_ticks() - m->ticks), .size = -1, .on_device = 1};
    rt_text_copy(m->name, name, sizeof name);
    tell(&h, m->id, name, m->stream);
}
