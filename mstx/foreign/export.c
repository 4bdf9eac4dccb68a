/* SPDX-License-Identifier: MIT
 *
 * export: see the header.
 */
#include "mstx/foreign/export.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <inttypes.h>
#include <stdio.h>

const char *mstx__event_type_text(const struct mstx_event *ev)
{
    return ev->kind == MSTX_EV_MARK      ? "marker"
           : ev->kind == MSTX_EV_PUSHPOP ? "push/pop"
                                         : "start/end";
}

/* Returns at most n bytes of a text and cuts no UTF-8 character in two. */
static struct ms_str shorten_text(struct ms_str s, uint32_t n)
{
    if (s.n <= n)
        return s;
    while (n != 0 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return ms_str_sub(s, 0, n);
}

struct ms_str mstx__process_label(const struct mstx_process *p, char buf[MSTX_LABEL_MAX])
{
    struct ms_str host = shorten_text(p->host, 64), name = shorten_text(p->name, 96);
    int n = 0;
    if (host.n == 0 && p->name.n != 0)
        return shorten_text(p->name, MSTX_LABEL_MAX - 1);
    if (p->rank >= 0)
        n += snprintf(buf, MSTX_LABEL_MAX, "rank %" PRId32 " ", p->rank);
    if (name.n != 0)
        n += snprintf(buf + n, (size_t)(MSTX_LABEL_MAX - n), "%.*s ", MS_STR_ARG(name));
    if (host.n != 0)
        n += snprintf(buf + n, (size_t)(MSTX_LABEL_MAX - n), "%s%.*s:%" PRIu32 "%s",
                      n != 0 ? "(" : "", MS_STR_ARG(host), p->pid, n != 0 ? ")" : "");
    else
        n += snprintf(buf + n, (size_t)(MSTX_LABEL_MAX - n), "process %" PRIu32, p->pid);
    ms_assert(n > 0 && n < MSTX_LABEL_MAX);
    return (struct ms_str){buf, (uint32_t)n};
}

void mstx__put_us(struct ms_out *o, int64_t ns)
{
    char *at = ms_out_room(o, MS_NUM_MAX + 8);
    unsigned n = 0;
    uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (ns < 0)
        at[n++] = '-';
    n += ms_num_u64(at + n, v / 1000);
    unsigned rest = (unsigned)(v % 1000);
    at[n++] = '.';
    at[n++] = (char)('0' + rest / 100);
    at[n++] = (char)('0' + rest / 10 % 10);
    at[n++] = (char)('0' + rest % 10);
    ms_assert(n <= MS_NUM_MAX + 8);
    ms_out_used(o, n);
}

/* ---- merging ---------------------------------------------------------------- */

struct source {
    struct mstx_cursor *cursor;
    size_t track;
    const struct mstx_event *ev;
};
struct merge {
    MS_VEC(struct source) heap; /* the earliest at 0 */
};

static bool is_before(const struct source *a, const struct source *b)
{
    if (a->ev->start_ns != b->ev->start_ns)
        return a->ev->start_ns < b->ev->start_ns;
    return a->track < b->track;
}

static void sift_down(struct merge *m, size_t at)
{
    for (;;) {
        size_t least = at, left = 2 * at + 1;
        for (size_t child = left; child < left + 2 && child < m->heap.n; child++) {
            if (is_before(&m->heap.p[child], &m->heap.p[least]))
                least = child;
        }
        if (least == at)
            return;
        struct source s = m->heap.p[at];
        m->heap.p[at] = m->heap.p[least];
        m->heap.p[least] = s;
        at = least;
    }
}

static enum ms_rc open_sources(struct merge *m, struct mstx_tl *tl, int32_t rank,
                               struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        bool wanted = rank == MSTX_ALL_RANKS || mstx_tl_process(tl, t->process)->rank == rank;
        if (t->kind != MSTX_TRACK_THREAD || !wanted)
            continue;
        struct source *s = ms_vec_push(&m->heap);
        if (s == NULL)
            return ms_no_memory(err);
        *s = (struct source){.track = i};
        MS_TRY(mstx__cursor_new(&s->cursor, tl, i, err));
        MS_TRY(mstx__cursor_next(s->cursor, &s->ev, err));
        if (s->ev == NULL) {
            mstx__cursor_free(s->cursor);
            m->heap.n--;
        }
    }
    for (size_t i = m->heap.n / 2; i-- > 0;)
        sift_down(m, i);
    return MS_OK;
}

static enum ms_rc merge_sources(struct merge *m, mstx_merged_fn fn, void *ctx, struct ms_err *err)
{
    while (m->heap.n != 0) {
        struct source *first = &m->heap.p[0];
        MS_TRY(fn(ctx, first->track, first->ev, err));
        MS_TRY(mstx__cursor_next(first->cursor, &first->ev, err));
        if (first->ev == NULL) {
            mstx__cursor_free(first->cursor);
            *first = m->heap.p[--m->heap.n];
        }
        sift_down(m, 0);
    }
    return MS_OK;
}

enum ms_rc mstx__merge(struct mstx_tl *tl, int32_t rank, mstx_merged_fn fn, void *ctx,
                       struct ms_err *err)
{
    struct merge m = {0};
    enum ms_rc rc = open_sources(&m, tl, rank, err);
    if (rc == MS_OK)
        rc = merge_sources(&m, fn, ctx, err);
    for (size_t i = 0; i < m.heap.n; i++)
        mstx__cursor_free(m.heap.p[i].cursor);
    ms_vec_free(&m.heap);
    return rc;
}

/* ---- nesting ---------------------------------------------------------------- */

static void end_until(struct mstx_nest *n, unsigned lane, int64_t t, mstx_nest_fn fn, void *ctx)
{
    while (n->end[lane].n != 0 && n->end[lane].p[n->end[lane].n - 1] <= t) {
        n->end[lane].n--;
        if (fn != NULL)
            fn(ctx, lane, n->end[lane].p[n->end[lane].n]);
    }
}

bool mstx__nest(struct mstx_nest *n, int64_t start, int64_t *end, mstx_nest_fn fn, void *ctx,
                unsigned *lane)
{
    unsigned at = 0;
    /* Lanes are used in order, so the first unused lane ends the search. */
    for (;; at++) {
        end_until(n, at, start, fn, ctx);
        size_t open = n->end[at].n;
        if (open == 0 || n->end[at].p[open - 1] >= *end)
            break;
        if (at + 1 == MSTX_NEST_LANES) {
            *end = n->end[at].p[open - 1];
            break;
        }
    }
    ms_assert(at < MSTX_NEST_LANES);
    int64_t *slot = ms_vec_push(&n->end[at]);
    if (slot != NULL)
        *slot = *end;
    *lane = at;
    return slot != NULL;
}

void mstx__nest_finish(struct mstx_nest *n, mstx_nest_fn fn, void *ctx)
{
    for (unsigned lane = 0; lane < MSTX_NEST_LANES; lane++) {
        end_until(n, lane, INT64_MAX, fn, ctx);
        ms_vec_free(&n->end[lane]);
    }
}

/* ---- quoting ---------------------------------------------------------------- */

enum ms_rc mstx__quoted_new(struct mstx_quoted *q, struct mstx_tl *tl, struct ms_err *err)
{
    *q = (struct mstx_quoted){.tl = tl, .arena = ms_arena_new((size_t)1 << 34)};
    return q->arena != NULL ? MS_OK : ms_no_memory(err);
}

void mstx__quoted_free(struct mstx_quoted *q)
{
    ms_vec_free(&q->text);
    ms_arena_free(q->arena);
}

struct ms_str mstx__quote(struct mstx_quoted *q, struct ms_str text)
{
    struct ms_jwrite w;
    struct ms_str s = MS_STR_NONE;
    ms_jwrite_init(&w, 0, (size_t)8 * text.n + 64);
    ms_jwrite_str(&w, text);
    if (ms_jwrite_finish(&w, NULL) == MS_OK)
        s = ms_arena_str(q->arena, ms_buf_slice(&w.buf));
    ms_jwrite_free(&w);
    if (s.p == NULL)
        q->bad = MS_E_NOMEM;
    return s.p != NULL ? s : MS_STR("\"\"");
}

struct ms_str mstx__quoted(struct mstx_quoted *q, uint32_t id)
{
    if (id >= q->text.n) {
        /* Grows the table only for ids that have a text, so that a damaged id does not allocate
         * a huge table. */
        size_t want = mstx_tl_text(q->tl, id).n != 0 ? (size_t)id + id / 2 + 64 : 0;
        if (want == 0)
            return MS_STR("\"\"");
        if (!ms_vec_reserve(&q->text, want)) {
            q->bad = MS_E_NOMEM;
            return MS_STR("\"\"");
        }
        memset(q->text.p + q->text.n, 0, (want - q->text.n) * sizeof *q->text.p);
        q->text.n = want;
    }
    ms_assert(id < q->text.n);
    if (q->text.p[id].p == NULL)
        q->text.p[id] = mstx__quote(q, mstx_tl_text(q->tl, id));
    return q->text.p[id];
}
