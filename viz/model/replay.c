/* SPDX-License-Identifier: MIT
 *
 * replay: see the header.
 */
#include "viz/model/replay.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <stdlib.h>

#define SPAN        "SELECT process - 1, tid, ifnull(step, -1), kind, start_ns, end_ns FROM replay_spans"
#define SPAN_WITHIN " AND start_ns <= ?1 AND end_ns >= ?2"
static const char path_sql[] = SPAN " WHERE timeline = 0" SPAN_WITHIN;
static const char ideal_sql[] = SPAN " WHERE timeline = 1" SPAN_WITHIN " AND process = ?3";

bool viz_replay_exists(struct mstx_tl *tl)
{
    struct ms_stmt *st;
    bool found = false;
    /* databases of older versions do not have the table */
    if (ms_store_prepare(mstx_tl_store(tl), &st, "SELECT 1 FROM packed_spans LIMIT 1", NULL) !=
        MS_OK)
        return false;
    if (ms_stmt_step(st, &found, NULL) != MS_OK)
        found = false;
    ms_stmt_free(st);
    return found;
}

/* ---- tracks of threads ----------------------------------------------------------------- */

struct thread_track {
    uint32_t process, tid;
    bool is_other; /* not the communication of the thread */
    uint32_t track;
};

static int by_thread(const void *pa, const void *pb)
{
    const struct thread_track *a = pa, *b = pb;
    return MS_ORDER(a->process, b->process,
                    MS_ORDER(a->tid, b->tid,
                             MS_ORDER(a->is_other, b->is_other, MS_ORDER(a->track, b->track, 0))));
}

struct merging {
    viz_spans *to;
    int64_t res_ns;
    bool by_lane;    /* spans of other lanes are not merged */
    int64_t longest; /* length of the longest one merged into the last span */
    struct thread_track *tracks;
    size_t n;
};

static bool list_tracks(struct merging *m, const struct mstx_tl *tl)
{
    const size_t n = mstx_tl_track_count(tl);
    m->tracks = ms_calloc(n + 1, sizeof *m->tracks);
    for (size_t i = 0; i < n && m->tracks != NULL; i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->kind == MSTX_TRACK_THREAD)
            m->tracks[m->n++] = (struct thread_track){
                t->process, t->tid, !ms_str_is(t->domain, "communication"), (uint32_t)i};
    }
    if (m->n > 1)
        qsort(m->tracks, m->n, sizeof *m->tracks, by_thread);
    return m->tracks != NULL;
}

static int64_t track_of(const struct merging *m, uint32_t process, uint32_t tid)
{
    const struct thread_track key = {.process = process, .tid = tid};
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (by_thread(&m->tracks[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    const bool found = low < m->n && m->tracks[low].process == process && m->tracks[low].tid == tid;
    return found ? (int64_t)m->tracks[low].track : -1;
}

/* ---- spans ----------------------------------------------------------------------------- */

static enum mstx_span_kind kind_of(struct ms_str word)
{
    return ms_str_is(word, "comm")   ? MSTX_SPAN_COMM
           : ms_str_is(word, "wait") ? MSTX_SPAN_WAIT
                                     : MSTX_SPAN_WORK;
}

/* Tells whether the span is merged into the last one: both are short and begin in the same pixel. */
static bool is_merged(const struct merging *m, const struct viz_span *s)
{
    if (m->to->n == 0 || m->res_ns <= 0 || s->to - s->from >= m->res_ns)
        return false;
    const struct viz_span *last = &m->to->p[m->to->n - 1];
    const bool same_lane = last->process == s->process && last->tid == s->tid;
    return m->longest < m->res_ns && (same_lane || !m->by_lane) && s->to > last->from &&
           s->to - last->from < m->res_ns;
}

static enum ms_rc add_span(struct merging *m, const struct viz_span *s, struct ms_err *err)
{
    if (is_merged(m, s)) {
        struct viz_span *last = &m->to->p[m->to->n - 1];
        const int64_t from = last->from;
        if (s->to - s->from > m->longest) {
            m->longest = s->to - s->from;
            *last = *s;
        }
        last->from = from;
        last->to = s->to;
        return MS_OK;
    }
    struct viz_span *slot = ms_vec_push(m->to);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *s;
    m->longest = s->to - s->from;
    return MS_OK;
}

static enum ms_rc read_spans(struct merging *m, struct ms_stmt *st, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    m->to->n = 0;
    while (ms_stmt_next(st, &rc, err)) {
        struct viz_span s = {.process = (uint32_t)ms_stmt_get_i64(st, 0),
                             .tid = (uint32_t)ms_stmt_get_i64(st, 1),
                             .step = ms_stmt_get_i64(st, 2),
                             .kind = kind_of(ms_stmt_get_str(st, 3)),
                             .from = ms_stmt_get_i64(st, 4),
                             .to = ms_stmt_get_i64(st, 5)};
        s.track = track_of(m, s.process, s.tid);
        rc = add_span(m, &s, err);
    }
    return rc;
}

static enum ms_rc query_spans(struct merging *m, struct mstx_tl *tl, const char *sql, int64_t from,
                              int64_t end, int64_t process, struct ms_err *err)
{
    struct ms_stmt *st;
    m->to->n = 0;
    if (!viz_replay_exists(tl))
        return MS_OK;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    ms_stmt_i64(st, 1, end);
    ms_stmt_i64(st, 2, from);
    if (process > 0)
        ms_stmt_i64(st, 3, process);
    const enum ms_rc rc = list_tracks(m, tl) ? read_spans(m, st, err) : ms_no_memory(err);
    ms_free(m->tracks);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc viz_replay_path(viz_spans *to, struct mstx_tl *tl, int64_t from, int64_t end,
                           int64_t res_ns, struct ms_err *err)
{
    struct merging m = {.to = to, .res_ns = res_ns};
    return query_spans(&m, tl, path_sql, from, end, 0, err);
}

enum ms_rc viz_replay_ideal(viz_spans *to, struct mstx_tl *tl, uint32_t process, int64_t from,
                            int64_t end, int64_t res_ns, struct ms_err *err)
{
    struct merging m = {.to = to, .res_ns = res_ns, .by_lane = true};
    return query_spans(&m, tl, ideal_sql, from, end, (int64_t)process + 1, err);
}

enum ms_rc viz_replay_tracks(struct mstx_tl *tl, uint8_t *has, struct ms_err *err)
{
    struct merging m = {.by_lane = true};
    struct ms_stmt *st;
    if (!viz_replay_exists(tl))
        return MS_OK;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT DISTINCT process - 1, tid FROM replay_spans WHERE timeline = 1",
                            err));
    enum ms_rc rc = list_tracks(&m, tl) ? MS_OK : ms_no_memory(err);
    while (rc == MS_OK && ms_stmt_next(st, &rc, err)) {
        const int64_t track =
            track_of(&m, (uint32_t)ms_stmt_get_i64(st, 0), (uint32_t)ms_stmt_get_i64(st, 1));
        if (track >= 0)
            has[track] = 1;
    }
    ms_free(m.tracks);
    ms_stmt_free(st);
    return rc;
}
