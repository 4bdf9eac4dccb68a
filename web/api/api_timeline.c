/* SPDX-License-Identifier: MIT
 *
 * api_timeline: lanes, slices and selections.
 *
 * Times in requests and answers are nanoseconds from the first event of the run. Slices have the
 * format of slice_pack.h.
 */
#include "mstx/conclude/name_totals.h"
#include "viz/model/hits.h"
#include "viz/model/replay.h"
#include "viz/model/tracks.h"
#include "web/api/api.h"
#include "web/api/slice_pack.h"

#include "probe/base/clock.h"
#include "probe/base/mem.h"

#include <math.h>

enum {
    TRACKS_MAX = 4096,
    PARTS_MAX = 16384,
    SUMS_MAX = 1000,
    PROCESSES_MAX = 12, /* ideal timelines of 26,000 spans each: 150 ms */
    SLICES_BYTES = 1000000,
    SPANS_MOST = 1000000 / 48, /* in an answer, which takes 48 bytes for each at most */
    HITS_MAX = 500,
    HITS_NS = 800000000 /* a person waits for the answer */
};

/* ---- lanes ----------------------------------------------------------------------- */

/* Fields of a lane; the last ones only of tracks.  Rows of values, without the names of the fields,
 * keep the answer short: 12,288 lanes of 4,096 ranks, 1.93 -> 0.85 MB. */
static const char *const lane_fields[] = {"label",  "process", "rank", "track", "kind",
                                          "domain", "events",  "tid",  "rows"};

static void put_lane(struct ms_jwrite *w, struct mstx_tl *tl, const struct viz_lane *l)
{
    static const char *const kinds[MSTX_TRACK_KINDS] = {"thread", "counter", "memory", "stream"};
    ms_jwrite_arr(w);
    ms_jwrite_str(w, l->label);
    ms_jwrite_i64(w, l->process);
    ms_jwrite_i64(w, mstx_tl_process(tl, l->process)->rank);
    if (l->kind == VIZ_LANE_TRACK) {
        const struct mstx_track *t = mstx_tl_track(tl, l->track);
        ms_jwrite_i64(w, l->track);
        ms_jwrite_str(w, ms_str_of(kinds[t->kind]));
        ms_jwrite_str(w, t->domain);
        ms_jwrite_i64(w, (int64_t)t->events);
        ms_jwrite_i64(w, t->tid);
        ms_jwrite_i64(w, t->rows);
    }
    ms_jwrite_arr_end(w);
}

enum ms_rc web_api_lanes(struct web_call *c, struct ms_err *err)
{
    struct ms_jwrite *w = c->json;
    struct viz_tracks t;
    MS_TRY(viz_tracks_make(&t, c->reader->tl, err));
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("fields"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < sizeof lane_fields / sizeof *lane_fields; i++)
        ms_jwrite_str(w, ms_str_of(lane_fields[i]));
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("lanes"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < t.lanes.n; i++)
        put_lane(w, c->reader->tl, &t.lanes.p[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
    viz_tracks_free(&t);
    return MS_OK;
}

/* ---- parameters ------------------------------------------------------------------ */

struct window {
    int64_t first;    /* first event of the run */
    int64_t from, to; /* Unix time */
    int64_t px;
    uint32_t *track;
    size_t n;
};

static enum ms_rc read_window(struct web_call *c, struct window *w, struct ms_err *err)
{
    static const int64_t far = INT64_C(1) << 53;
    int64_t last, from = 0, to;
    mstx_tl_span(c->reader->tl, &w->first, &last);
    to = last - w->first;
    w->px = 1000;
    MS_TRY(web_query_int(c->query, "from", -far, far, &from, err));
    MS_TRY(web_query_int(c->query, "to", -far, far, &to, err));
    MS_TRY(web_query_int(c->query, "px", 1, PARTS_MAX, &w->px, err));
    if (to < from)
        return ms_fail(err, MS_E_ARG, "from must not be later than to");
    w->from = w->first + from;
    w->to = w->first + to;
    return MS_OK;
}

/* Reads the tracks of a request into heap memory. */
static enum ms_rc read_tracks(struct web_call *c, struct window *w, struct ms_err *err)
{
    size_t n = mstx_tl_track_count(c->reader->tl);
    w->track = ms_alloc(TRACKS_MAX * sizeof *w->track);
    if (w->track == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = n != 0 ? web_query_list(c->query, "tracks", (uint32_t)n - 1, TRACKS_MAX,
                                            w->track, &w->n, err)
                           : ms_fail(err, MS_E_NOTFOUND, "the run has no tracks");
    if (rc != MS_OK) {
        ms_free(w->track);
        w->track = NULL;
    }
    return rc;
}

/* ---- slices ----------------------------------------------------------------------- */

static void put_u32(struct ms_buf *b, uint32_t v)
{
    ms_buf_put(b, &v, sizeof v);
}

/* Appends the slices of a track, on a coarser level when they have more than `most` bytes.  *pixel is
 * the width of a pixel to begin with, and then the one that was taken. */
static enum ms_rc put_track(struct web_call *c, const struct window *w, uint32_t track, size_t most,
                            int64_t *pixel, struct web_slices *pack, struct ms_err *err)
{
    const struct mstx_track *t = mstx_tl_track(c->reader->tl, track);
    const size_t before = c->bytes->n;
    mstx_events events = {0};
    enum ms_rc rc;
    for (;; *pixel = 2 * *pixel + 1) {
        c->bytes->n = before;
        rc = mstx_tl_picture(c->reader->tl, track, w->from, w->to, *pixel, &events, err);
        if (rc == MS_OK)
            rc = web_slices_put(pack, c->bytes, track, t->kind == MSTX_TRACK_COUNTER, w->first,
                                &events, err);
        if (rc != MS_OK || c->bytes->n - before <= most || *pixel >= w->to - w->from)
            break;
    }
    ms_vec_free(&events);
    return rc;
}

/* Shares SLICES_BYTES among the tracks; what one does not need the next ones may have. */
static enum ms_rc put_slices(struct web_call *c, const struct window *w, struct web_slices *pack,
                             struct ms_err *err)
{
    const int64_t wanted = (w->to - w->from) / w->px;
    int64_t pixel = wanted;
    enum ms_rc rc = MS_OK;
    web_slices_begin(c->bytes, (uint32_t)w->n);
    for (size_t i = 0; i < w->n && rc == MS_OK; i++) {
        const size_t used = c->bytes->n, left = used < SLICES_BYTES ? SLICES_BYTES - used : 0;
        pixel = pixel / 2 > wanted ? pixel / 2 : wanted;
        rc = put_track(c, w, w->track[i], left / (w->n - i), &pixel, pack, err);
    }
    return rc;
}

enum ms_rc web_api_slices(struct web_call *c, struct ms_err *err)
{
    struct window w = {0};
    struct web_slices pack = {0};
    MS_TRY(read_window(c, &w, err));
    MS_TRY(read_tracks(c, &w, err));
    enum ms_rc rc = put_slices(c, &w, &pack, err);
    web_slices_free(&pack);
    ms_free(w.track);
    return rc;
}

/* ---- load ------------------------------------------------------------------------ */

static size_t lane_of(const struct viz_tracks *t, int64_t process)
{
    size_t i = 0;
    while (i < t->lanes.n &&
           (t->lanes.p[i].kind != VIZ_LANE_PROCESS || t->lanes.p[i].process != process))
        i++;
    return i;
}

/* Answers f32 share[px], then u32 name[px], of a process. */
enum ms_rc web_api_busy(struct web_call *c, struct ms_err *err)
{
    struct window w = {0};
    struct viz_tracks t;
    int64_t process = 0;
    MS_TRY(read_window(c, &w, err));
    MS_TRY(web_query_int(c->query, "process", 0, (int64_t)mstx_tl_process_count(c->reader->tl) - 1,
                         &process, err));
    struct viz_busy *part = ms_calloc((size_t)w.px, sizeof *part);
    if (part == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = viz_tracks_make(&t, c->reader->tl, err);
    if (rc == MS_OK) {
        size_t lane = lane_of(&t, process);
        if (lane < t.lanes.n)
            rc = viz_tracks_busy(&t, c->reader->tl, lane, w.from, w.to, part, (size_t)w.px, err);
        viz_tracks_free(&t);
    }
    for (int64_t i = 0; i < w.px; i++)
        ms_buf_put(c->bytes, &part[i].share, sizeof part[i].share);
    for (int64_t i = 0; i < w.px; i++)
        put_u32(c->bytes, part[i].name);
    ms_free(part);
    return rc == MS_OK ? ms_buf_check(c->bytes, err) : rc;
}

/* ---- replays --------------------------------------------------------------------- */

static void put_spans(struct ms_jwrite *w, const viz_spans *v, int64_t first)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct viz_span *s = &v->p[i];
        ms_jwrite_arr(w);
        ms_jwrite_i64(w, s->process);
        ms_jwrite_i64(w, s->track);
        ms_jwrite_i64(w, s->step);
        ms_jwrite_i64(w, s->kind);
        ms_jwrite_i64(w, s->from - first);
        ms_jwrite_i64(w, s->to - first);
        ms_jwrite_arr_end(w);
    }
}

/* Writes the ideal timeline of a process, coarser when it has more than `most` spans.  *pixel is the width of a
 * pixel to begin with, and then the one that was taken. */
static enum ms_rc put_ideal_of(struct web_call *c, const struct window *w, uint32_t process,
                               size_t most, int64_t *pixel, viz_spans *spans, struct ms_err *err)
{
    for (;; *pixel = 2 * *pixel + 1) {
        MS_TRY(viz_replay_ideal(spans, c->reader->tl, process, w->from, w->to, *pixel, err));
        if (spans->n <= most || *pixel >= w->to - w->from)
            break;
    }
    put_spans(c->json, spans, w->first);
    return MS_OK;
}

static enum ms_rc put_ideal(struct web_call *c, const struct window *w, viz_spans *spans,
                            struct ms_err *err)
{
    int64_t pixel = (w->to - w->from) / w->px;
    const size_t most = mstx_tl_process_count(c->reader->tl);
    uint32_t *process = ms_alloc(PROCESSES_MAX * sizeof *process);
    size_t n = 0;
    if (process == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = most != 0 ? web_query_list(c->query, "processes", (uint32_t)most - 1,
                                               PROCESSES_MAX, process, &n, err)
                              : MS_OK;
    for (size_t i = 0; i < n && rc == MS_OK; i++)
        rc = put_ideal_of(c, w, process[i], SPANS_MOST / n, &pixel, spans, err);
    ms_free(process);
    return rc;
}

/* Answers the spans of the critical path, or with `processes` those of their ideal timelines: process, track
 * (-1: none), step (-1: none), kind (0 work, 1 wait, 2 communication), from, to. */
enum ms_rc web_api_replay(struct web_call *c, struct ms_err *err)
{
    struct window w = {0};
    viz_spans spans = {0};
    MS_TRY(read_window(c, &w, err));
    ms_jwrite_arr(c->json);
    enum ms_rc rc;
    if (web_query_text(c->query, "processes").p != NULL) {
        rc = put_ideal(c, &w, &spans, err);
    } else {
        rc = viz_replay_path(&spans, c->reader->tl, w.from, w.to, (w.to - w.from) / w.px, err);
        put_spans(c->json, &spans, w.first);
    }
    ms_jwrite_arr_end(c->json);
    ms_vec_free(&spans);
    return rc;
}

/* ---- texts ------------------------------------------------------------------------- */

enum ms_rc web_api_strings(struct web_call *c, struct ms_err *err)
{
    uint32_t *id = ms_alloc(TRACKS_MAX * sizeof *id);
    size_t n;
    if (id == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = web_query_list(c->query, "ids", UINT32_MAX - 1, TRACKS_MAX, id, &n, err);
    if (rc == MS_OK) {
        ms_jwrite_arr(c->json);
        for (size_t i = 0; i < n; i++)
            ms_jwrite_str(c->json, mstx_tl_text(c->reader->tl, id[i]));
        ms_jwrite_arr_end(c->json);
    }
    ms_free(id);
    return rc;
}

/* ---- selections -------------------------------------------------------------------- */

static void put_sum(struct ms_jwrite *w, const struct mstx_name_row *r)
{
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("domain"));
    ms_jwrite_str(w, r->domain);
    ms_jwrite_key(w, MS_STR("name"));
    ms_jwrite_str(w, r->name);
    ms_jwrite_ki64(w, "events", (int64_t)r->events);
    ms_jwrite_ki64(w, "total", r->total_ns);
    ms_jwrite_ki64(w, "mean", r->mean_ns);
    ms_jwrite_ki64(w, "p50", r->p50_ns);
    ms_jwrite_ki64(w, "p99", r->p99_ns);
    ms_jwrite_ki64(w, "max", r->max_ns);
    ms_jwrite_kf64(w, "share", r->share);
    ms_jwrite_obj_end(w);
}

enum ms_rc web_api_sum(struct web_call *c, struct ms_err *err)
{
    struct window w = {0};
    mstx_name_rows rows = {0};
    MS_TRY(read_window(c, &w, err));
    MS_TRY(read_tracks(c, &w, err));
    struct mstx_part part = {w.track, w.n, w.from, w.to};
    enum ms_rc rc = mstx_names_measure_part(c->reader->tl, &part, &rows, err);
    if (rc == MS_OK) {
        ms_jwrite_arr(c->json);
        for (size_t i = 0; i < rows.n && i < SUMS_MAX; i++)
            put_sum(c->json, &rows.p[i]);
        ms_jwrite_arr_end(c->json);
    }
    ms_vec_free(&rows);
    ms_free(w.track);
    return rc;
}

/* ---- finding events ------------------------------------------------------------------ */

static void put_event(struct web_call *c, uint32_t track, const struct mstx_event *ev,
                      int64_t first)
{
    struct ms_jwrite *w = c->json;
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "track", track);
    ms_jwrite_ki64(w, "start", ev->start_ns - first);
    ms_jwrite_ki64(w, "duration", ev->dur_ns);
    ms_jwrite_ki64(w, "depth", ev->depth);
    ms_jwrite_ki64(w, "kind", ev->kind);
    ms_jwrite_ki64(w, "flags", ev->flags);
    ms_jwrite_kf64(w, "link", (double)ev->size);
    ms_jwrite_key(w, MS_STR("name"));
    ms_jwrite_str(w, mstx_tl_text(c->reader->tl, ev->name));
    if (ev->args != 0) {
        ms_jwrite_key(w, MS_STR("args"));
        ms_jwrite_raw(w, mstx_tl_text(c->reader->tl, ev->args));
    }
    ms_jwrite_obj_end(w);
}

/* Writes the nearest event of the tracks with one of the names, after or before t. */
static enum ms_rc find_nearest(struct web_call *c, const struct window *w, int64_t t, bool back,
                               const struct mstx_names *names, struct ms_err *err)
{
    struct mstx_event best = {0}, ev;
    uint32_t track = 0;
    bool any = false, found;
    for (size_t i = 0; i < w->n; i++) {
        MS_TRY(back ? mstx_tl_prev(c->reader->tl, w->track[i], t, names, &ev, &found, err)
                    : mstx_tl_next(c->reader->tl, w->track[i], t, names, &ev, &found, err));
        if (found && (!any || (back ? ev.start_ns > best.start_ns : ev.start_ns < best.start_ns))) {
            best = ev;
            track = w->track[i];
            any = true;
        }
    }
    if (any)
        put_event(c, track, &best, w->first);
    else
        ms_jwrite_null(c->json);
    return MS_OK;
}

/* Answers the next (back=1: previous) event after t on the tracks whose name contains q; null:
 * none. */
enum ms_rc web_api_find(struct web_call *c, struct ms_err *err)
{
    struct window w = {0};
    struct mstx_names *names = NULL;
    struct ms_str q = web_query_text(c->query, "q");
    int64_t t = -1;
    bool back;
    MS_TRY(read_window(c, &w, err));
    MS_TRY(web_query_int(c->query, "t", INT64_MIN / 2, INT64_MAX / 2, &t, err));
    MS_TRY(web_query_flag(c->query, "back", &back, err));
    MS_TRY(read_tracks(c, &w, err));
    char *text = q.n != 0 ? ms_str_dup(q) : NULL;
    enum ms_rc rc = q.n == 0 || text != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && text != NULL)
        rc = mstx_tl_find(c->reader->tl, text, &names, err);
    if (rc == MS_OK)
        rc = find_nearest(c, &w, w.first + t, back, names, err);
    mstx_names_free(names);
    ms_free(text);
    ms_free(w.track);
    return rc;
}

static void put_hits(struct web_call *c, const struct viz_hits *h, int64_t first)
{
    struct ms_jwrite *w = c->json;
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "count", (int64_t)h->count);
    ms_jwrite_kbool(w, "cut", h->is_cut);
    ms_jwrite_key(w, MS_STR("rows"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < h->list.n; i++) {
        const struct mstx_event *ev = &h->list.p[i].ev;
        ms_jwrite_arr(w);
        ms_jwrite_i64(w, h->list.p[i].track);
        ms_jwrite_i64(w, ev->start_ns - first);
        ms_jwrite_i64(w, ev->dur_ns);
        ms_jwrite_i64(w, ev->depth);
        ms_jwrite_str(w, mstx_tl_text(c->reader->tl, ev->name));
        ms_jwrite_arr_end(w);
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

/* Answers the slices that match the terms q: their number, and those that start at t or later, the earliest
 * `limit`: track, start, duration, depth, name. */
enum ms_rc web_api_hits(struct web_call *c, struct ms_err *err)
{
    struct viz_terms *terms;
    struct viz_hits hits = {.count = 0};
    int64_t first, last, t = INT64_MIN / 2, limit = HITS_MAX;
    mstx_tl_span(c->reader->tl, &first, &last);
    MS_TRY(web_query_int(c->query, "t", INT64_MIN / 2, INT64_MAX / 2, &t, err));
    MS_TRY(web_query_int(c->query, "limit", 1, HITS_MAX, &limit, err));
    MS_TRY(viz_terms_new(&terms, web_query_text(c->query, "q"), err));
    enum ms_rc rc = viz_hits_find(&hits, c->reader->tl, terms, t == INT64_MIN / 2 ? t : first + t,
                                  (size_t)limit, ms_clock_ns() + HITS_NS, err);
    if (rc == MS_OK)
        put_hits(c, &hits, first);
    viz_hits_free(&hits);
    viz_terms_free(terms);
    return rc;
}
