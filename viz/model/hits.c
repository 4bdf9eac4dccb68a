/* SPDX-License-Identifier: MIT
 *
 * hits: tests the names of each lane once, then reads the slices of those that match.
 */
#include "viz/model/hits.h"

#include "probe/base/clock.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <stdlib.h>

enum { CLOCK_EVERY = 4096 };

enum verdict { UNKNOWN, MISSES, MATCHES };

/* A lane with hits. */
struct hit_lane {
    int64_t first_ns; /* no hit begins earlier */
    uint32_t track;
};

struct finder {
    struct viz_hits *out;
    struct mstx_tl *tl;
    const struct viz_terms *terms;
    int64_t from_ns, end_ns;
    int64_t last_ns; /* start of the last hit of a full list: later ones are not wanted */
    size_t limit, tested;
    MS_VEC(uint8_t) named; /* verdict of each name, by its words and expressions */
    struct mstx_names *names;
    /* of the lane that is read */
    uint32_t track;
    const struct mstx_track *lane;
    int64_t rank;
    size_t taken;
    bool counts; /* each slice is counted when it is read */
    MS_VEC(struct hit_lane) hit;
};

static bool is_late(const struct finder *f)
{
    return ms_clock_ns() >= f->end_ns;
}

/* ---- names -------------------------------------------------------------------------- */

static enum ms_rc name_matches(struct finder *f, uint32_t name, bool *yes, struct ms_err *err)
{
    if (name >= f->named.n) {
        const size_t before = f->named.n, want = (size_t)name + name / 2 + 64;
        if (!ms_vec_reserve(&f->named, want))
            return ms_no_memory(err);
        memset(f->named.p + before, UNKNOWN, want - before);
        f->named.n = want;
    }
    uint8_t *v = &f->named.p[name];
    if (*v == UNKNOWN)
        *v = viz_terms_meet_text(f->terms, mstx_tl_text(f->tl, name)) ? MATCHES : MISSES;
    *yes = *v == MATCHES;
    return MS_OK;
}

/* Tells whether a slice of the lane matches. */
static enum ms_rc is_hit(struct finder *f, uint32_t name, int64_t dur_ns, bool *yes,
                         struct ms_err *err)
{
    MS_TRY(name_matches(f, name, yes, err));
    if (!*yes)
        return MS_OK;
    const bool on_stream = f->lane->kind == MSTX_TRACK_STREAM;
    const struct viz_slice s = {
        f->rank, dur_ns, f->lane->domain,
        viz_slice_kind_of(f->lane->domain, mstx_tl_text(f->tl, name), on_stream)};
    *yes = viz_terms_meet_slice(f->terms, &s);
    return MS_OK;
}

/* Adds up the slices of the lane whose names match; *first_ns: the start of the first one, INT64_MAX: there is
 * none. */
static enum ms_rc count_lane(struct finder *f, int64_t *first_ns, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(f->tl), &st,
                            "SELECT name, events, first_ns FROM names WHERE track = ?1", err));
    ms_stmt_i64(st, 1, f->lane->id);
    enum ms_rc rc = MS_OK;
    *first_ns = INT64_MAX;
    while (ms_stmt_next(st, &rc, err)) {
        bool yes = false;
        const uint32_t name = (uint32_t)ms_stmt_get_i64(st, 0);
        rc = f->counts ? name_matches(f, name, &yes, err) : is_hit(f, name, 0, &yes, err);
        const int64_t first = yes ? ms_stmt_get_i64(st, 2) : INT64_MAX;
        *first_ns = first < *first_ns ? first : *first_ns;
        if (yes && !f->counts)
            f->out->count += (uint64_t)ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- slices -------------------------------------------------------------------------- */

/* Ends the walk through a lane without a failure. */
enum { ENOUGH = MS_E_INTERRUPTED };

static enum ms_rc take_hit(struct finder *f, const struct mstx_event *ev, struct ms_err *err)
{
    struct viz_hit *slot = ms_vec_push(&f->out->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct viz_hit){f->track, *ev};
    f->taken++;
    return MS_OK;
}

static enum ms_rc see_event(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    struct finder *f = ctx;
    bool yes = false;
    if (++f->tested % CLOCK_EVERY == 0 && is_late(f)) {
        f->out->is_cut = true;
        return (enum ms_rc)ENOUGH;
    }
    if (!f->counts && ev->start_ns > f->last_ns)
        return (enum ms_rc)ENOUGH;
    MS_TRY(is_hit(f, ev->name, ev->dur_ns, &yes, err));
    if (!yes)
        return MS_OK;
    f->out->count += f->counts;
    if (ev->start_ns >= f->from_ns && f->taken < f->limit)
        return take_hit(f, ev, err);
    return f->counts || f->taken < f->limit ? MS_OK : (enum ms_rc)ENOUGH;
}

static enum ms_rc read_lane(struct finder *f, struct ms_err *err)
{
    f->taken = 0;
    const enum ms_rc rc = mstx_tl_walk(f->tl, f->track, f->names, see_event, f, err);
    return rc == (enum ms_rc)ENOUGH ? MS_OK : rc;
}

static int by_start(const void *pa, const void *pb)
{
    const struct viz_hit *a = pa, *b = pb;
    if (a->ev.start_ns != b->ev.start_ns)
        return a->ev.start_ns < b->ev.start_ns ? -1 : 1;
    return a->track < b->track ? -1 : a->track > b->track;
}

/* Keeps the earliest ones, whenever there are many more than are wanted. */
static void keep_first(struct finder *f, size_t most)
{
    if (f->out->list.n <= most)
        return;
    ms_vec_sort(&f->out->list, by_start);
    f->out->list.n = f->out->list.n < f->limit ? f->out->list.n : f->limit;
    if (f->out->list.n == f->limit && f->limit != 0)
        f->last_ns = f->out->list.p[f->limit - 1].ev.start_ns;
}

static void choose_lane(struct finder *f, uint32_t track)
{
    f->track = track;
    f->lane = mstx_tl_track(f->tl, track);
    f->rank = mstx_tl_process(f->tl, f->lane->process)->rank;
}

/* Adds up the hits of each lane and lists the lanes that have some. */
static enum ms_rc count_lanes(struct finder *f, struct ms_err *err)
{
    for (uint32_t i = 0; i < mstx_tl_track_count(f->tl); i++) {
        int64_t first_ns;
        choose_lane(f, i);
        if (f->lane->kind == MSTX_TRACK_COUNTER || f->lane->kind == MSTX_TRACK_MEMORY ||
            !viz_terms_meet_lane(f->terms, f->rank, f->lane->domain))
            continue;
        MS_TRY(count_lane(f, &first_ns, err));
        struct hit_lane *slot = first_ns != INT64_MAX ? ms_vec_push(&f->hit) : NULL;
        if (slot != NULL)
            *slot = (struct hit_lane){first_ns, i};
        else if (first_ns != INT64_MAX)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static int by_first(const void *pa, const void *pb)
{
    const struct hit_lane *a = pa, *b = pb;
    return MS_ORDER(a->first_ns, b->first_ns, MS_ORDER(a->track, b->track, 0));
}

/* Reads the hits of lanes, those with the earliest hit first, until the list is full of earlier hits than other
 * lanes have. */
static enum ms_rc read_lanes(struct finder *f, struct ms_err *err)
{
    ms_vec_sort(&f->hit, by_first);
    for (size_t i = 0; i < f->hit.n; i++) {
        choose_lane(f, f->hit.p[i].track);
        if (!f->counts && f->hit.p[i].first_ns > f->last_ns)
            return MS_OK;
        if (is_late(f)) {
            f->out->is_cut = true;
            return MS_OK;
        }
        MS_TRY(read_lane(f, err));
        keep_first(f, 2 * f->limit);
    }
    return MS_OK;
}

enum ms_rc viz_hits_find(struct viz_hits *h, struct mstx_tl *tl, const struct viz_terms *terms,
                         int64_t from_ns, size_t limit, int64_t end_ns, struct ms_err *err)
{
    struct finder f = {.out = h,
                       .tl = tl,
                       .terms = terms,
                       .from_ns = from_ns,
                       .end_ns = end_ns,
                       .last_ns = INT64_MAX,
                       .limit = limit,
                       .counts = viz_terms_need_duration(terms)};
    *h = (struct viz_hits){.count = 0};
    MS_TRY(viz_terms_fit(terms, true, err));
    const struct ms_str word = viz_terms_word(terms);
    char *text = word.n != 0 ? ms_str_dup(word) : NULL;
    enum ms_rc rc = word.n == 0 || text != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && text != NULL)
        rc = mstx_tl_find(tl, text, &f.names, err);
    if (rc == MS_OK)
        rc = count_lanes(&f, err);
    if (rc == MS_OK)
        rc = read_lanes(&f, err);
    if (rc == MS_OK)
        keep_first(&f, 0);
    mstx_names_free(f.names);
    ms_free(text);
    ms_vec_free(&f.named);
    ms_vec_free(&f.hit);
    if (rc != MS_OK)
        viz_hits_free(h);
    return rc;
}

void viz_hits_free(struct viz_hits *h)
{
    ms_vec_free(&h->list);
}
