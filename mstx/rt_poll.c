/* SPDX-License-Identifier: MIT
 *
 * rt_poll: calls that ask whether something is there, and find nothing: MPI_Test, MPI_Iprobe.
 *
 * A program that asks millions of times a second means one thing: it waits.  So asking again at once
 * makes the range of the question before longer and counts, in place, instead of writing a new one:
 *
 *      CALL COMM │ END PART        the first question, which found nothing
 *                    │   └─ polls  2, 3, 4 ..
 *                    └───── ticks  of the newest answer
 *
 * Progress engines ask several questions in turn, so the newest few are kept.  That holds as long as
 * they are the newest records of the thread: whatever else it does or marks, and every pause, lets the
 * next question begin a range of its own.  A killed process loses nothing.
 */
#include "mstx/rt_comm.h"

#include "mstx/rt.h"

#define API __attribute__((visibility("default")))

/* Whoever pauses longer does something else in between. */
enum { PAUSES_A_SECOND = 100000, QUESTIONS = 4 };
static const uint64_t FASTEST_HZ = 4000000000; /* of a counter, until its rate is known */

struct question {
    const char *name;
    const struct mstx_group *group;
    struct mstx_rec *end; /* the END, with its PART behind it; NULL: none */
};
static __thread struct {
    struct rt_ring *ring;
    uint64_t part; /* of the ring's file they are in */
    uint32_t pos;  /* of the ring behind them */
    uint32_t next; /* whose place the next new one takes */
    struct question *asked;
    struct question q[QUESTIONS];
} last __attribute__((tls_model("initial-exec")));

static bool are_newest(const struct rt_ring *r)
{
    return r != NULL && r == last.ring && r->pos == last.pos && r->part == last.part;
}

static bool is_soon(uint64_t then, uint64_t now)
{
    const uint64_t known =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return now - then <= (known != 0 ? known : FASTEST_HZ) / PAUSES_A_SECOND;
}

static struct question *find(const struct mstx_comm_call *c)
{
    for (int i = 0; i < QUESTIONS; i++) {
        struct question *q = &last.q[i];
        if (q->end != NULL && q->name == c->name && q->group == c->group)
            return q;
    }
    return NULL;
}

API bool mstx_comm_asks_again(const struct mstx_comm_call *c)
{
    const struct rt_ring *r = rt_tls;
    if (!are_newest(r) || r->busy != 0 ||
        atomic_load_explicit(&rt_comm_domain->live, memory_order_relaxed) != RT_RECORD)
        return false;
    last.asked = find(c);
    return last.asked != NULL && is_soon(last.asked->end->ticks, rt_ticks());
}

/* Not more than the field holds; a peer that differs is none. */
static void count_one(struct rt_ring *r, const struct mstx_comm_call *c, bool found)
{
    struct mstx_rec *end = last.asked->end;
    struct mstx_rec_comm_part *p = (struct mstx_rec_comm_part *)(void *)(end + 1);
    rt_bump(&r->busy, 1);
    __atomic_store_n(&end->ticks, rt_ticks(), __ATOMIC_RELAXED);
    p->polls += p->polls != UINT32_MAX;
    p->peer = p->peer == c->peer ? p->peer : -1;
    rt_publish(r);
    if (found)
        last.asked->end = NULL;
}

static void forget(void)
{
    for (int i = 0; i < QUESTIONS; i++)
        last.q[i].end = NULL;
}

static void remember(uint64_t id, const struct mstx_comm_call *c)
{
    struct rt_ring *r = rt_tls;
    struct mstx_rec *end = r != NULL && r->pos >= 2 && r->busy == 0 ? r->rec + r->pos - 2 : NULL;
    struct question *q = find(c);
    if (end == NULL || r->pos > r->cap || end->type != MSTX_REC_END || end->id != id) {
        forget();
        return;
    }
    q = q != NULL ? q : &last.q[last.next++ % QUESTIONS];
    *q = (struct question){c->name, c->group, end};
    last.ring = r;
    last.part = r->part;
    last.pos = r->pos;
}

/* What the first of a row is: CALL, COMM and perhaps its PART. */
static bool is_alone(const struct rt_ring *r, uint64_t id)
{
    const uint32_t n = r->pos - last.pos;
    return r == last.ring && r->part == last.part && n >= 2 && n <= 3 &&
           r->rec[last.pos].type == MSTX_REC_CALL && r->rec[last.pos].id == id;
}

static void ask_once(uint64_t id, const struct mstx_comm_call *c, bool found)
{
    const struct mstx_rec_comm_part part = {
        .peer = c->peer, .type = MSTX_REC_COMM_PART, .tag = -1, .polls = 1};
    struct mstx_rec more;
    if (found || id == 0 || rt_tls == NULL) {
        forget();
        mstx_comm_end(id);
        return;
    }
    if (!is_alone(rt_tls, id))
        forget();
    memcpy(&more, &part, sizeof more);
    rt_range_end_ready(rt_comm_domain, id, &more, 1);
    remember(id, c);
}

API void mstx_comm_asked(uint64_t id, const struct mstx_comm_call *c, bool found)
{
    if (id != MSTX_COMM_AGAIN)
        ask_once(id, c, found);
    else if (are_newest(rt_tls))
        count_one(rt_tls, c, found);
    else /* something was marked from within the call */
        ask_once(mstx_comm_begin(c), c, found);
}
