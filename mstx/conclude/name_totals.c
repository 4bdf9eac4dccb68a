/* SPDX-License-Identifier: MIT
 *
 * name_totals: see the header.
 *
 * The first durations of a name are kept exactly.  When there are too many, they go
 * into a histogram whose classes are 1/128 of a power of two wide, which bounds both
 * the memory and the error of a percentile.
 */
#include "mstx/conclude/name_totals.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

enum { EXACT_MAX = 4096, SUB_BITS = 7, CLASSES = (64 - SUB_BITS + 1) << SUB_BITS };

struct group {
    uint32_t domain; /* index among the domains */
    uint32_t name;
    uint64_t events, marks, unfinished;
    int64_t total, max;
    uint32_t tracks, last_track;
    MS_VEC(int64_t) exact;
    uint32_t *classes; /* histogram, replaces `exact` when there are too many durations */
};

struct measuring {
    struct ms_map domains;
    MS_VEC(struct group) group;
    MS_VEC(uint32_t) group_of; /* by name: 1 + group, for the current track */
    MS_VEC(uint32_t) touched;  /* names that are set in group_of */
    struct ms_map keys;        /* "domain \0 name" as numbers, to find the group of another track */
    struct ms_arena *arena;
    uint32_t domain, track;
    int64_t time_ns; /* of the run or the selection */
};

/* ---- groups ----------------------------------------------------------------- */

static bool reserve_name(struct measuring *m, uint32_t name)
{
    if (name < m->group_of.n)
        return true;
    size_t want = (size_t)name + name / 2 + 64;
    if (!ms_vec_reserve(&m->group_of, want))
        return false;
    memset(m->group_of.p + m->group_of.n, 0, (want - m->group_of.n) * sizeof *m->group_of.p);
    m->group_of.n = want;
    return true;
}

static struct group *add_group(struct measuring *m, uint32_t name)
{
    const uint32_t key[2] = {m->domain, name};
    bool added;
    uint32_t at =
        ms_map_put_copy(&m->keys, (struct ms_str){(const char *)key, sizeof key}, m->arena, &added);
    uint32_t *touched = at != MS_MAP_NONE ? ms_vec_push(&m->touched) : NULL;
    if (touched == NULL)
        return NULL;
    *touched = name;
    if (added) {
        struct group *g = ms_vec_push(&m->group);
        if (g == NULL)
            return NULL;
        *g = (struct group){.domain = m->domain, .name = name, .last_track = UINT32_MAX};
    }
    m->group_of.p[name] = at + 1;
    return &m->group.p[at];
}

static struct group *group_of(struct measuring *m, uint32_t name)
{
    if (!reserve_name(m, name))
        return NULL;
    uint32_t at = m->group_of.p[name];
    return at != 0 ? &m->group.p[at - 1] : add_group(m, name);
}

/* ---- durations -------------------------------------------------------------- */

static uint32_t class_of(int64_t ns)
{
    uint64_t v = (uint64_t)ns;
    if (v < 1u << SUB_BITS)
        return (uint32_t)v;
    unsigned shift = 63u - SUB_BITS - (unsigned)__builtin_clzll(v);
    return (uint32_t)((shift << SUB_BITS) + (v >> shift));
}

/* Returns the middle of a class. */
static int64_t value_of(uint32_t c)
{
    if (c < 2u << SUB_BITS)
        return c;
    unsigned shift = (c >> SUB_BITS) - 1;
    uint64_t low = (uint64_t)((c & ((1u << SUB_BITS) - 1)) | 1u << SUB_BITS) << shift;
    return (int64_t)(low + ((uint64_t)1 << shift >> 1));
}

static bool change_to_classes(struct group *g)
{
    g->classes = ms_calloc(CLASSES, sizeof *g->classes);
    if (g->classes == NULL)
        return false;
    for (size_t i = 0; i < g->exact.n; i++)
        g->classes[class_of(g->exact.p[i])]++;
    ms_vec_free(&g->exact);
    return true;
}

static bool add_duration(struct group *g, int64_t ns)
{
    if (g->classes == NULL && g->exact.n == EXACT_MAX && !change_to_classes(g))
        return false;
    if (g->classes != NULL) {
        g->classes[class_of(ns)]++;
        return true;
    }
    int64_t *slot = ms_vec_push(&g->exact);
    if (slot != NULL)
        *slot = ns;
    return slot != NULL;
}

static enum ms_rc take_event(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    struct measuring *m = ctx;
    struct group *g = group_of(m, ev->name);
    bool ok = g != NULL;
    if (ok) {
        g->events++;
        g->tracks += g->last_track != m->track;
        g->last_track = m->track;
        if (ev->kind == MSTX_EV_MARK) {
            g->marks++;
        } else {
            g->unfinished += (ev->flags & MSTX_EVF_UNFINISHED) != 0;
            if (__builtin_add_overflow(g->total, ev->dur_ns, &g->total))
                g->total = INT64_MAX;
            g->max = ev->dur_ns > g->max ? ev->dur_ns : g->max;
            ok = add_duration(g, ev->dur_ns);
        }
    }
    return ok ? MS_OK : ms_no_memory(err);
}

/* Returns the least duration that is not exceeded by at least this part of all durations. */
static int64_t percentile_of(struct group *g, double part)
{
    uint64_t n = g->events - g->marks, seen = 0;
    if (n == 0)
        return 0;
    uint64_t rank = (uint64_t)(part * (double)n + 0.999999);
    rank = rank < 1 ? 1 : rank > n ? n : rank;
    if (g->classes == NULL) {
        qsort(g->exact.p, g->exact.n, sizeof *g->exact.p, ms_order_i64);
        return g->exact.p[rank - 1];
    }
    uint32_t c = 0;
    while (c + 1 < CLASSES && seen + g->classes[c] < rank)
        seen += g->classes[c++];
    return value_of(c) < g->max ? value_of(c) : g->max;
}

/* ---- rows ------------------------------------------------------------------- */

static enum ms_rc add_row(struct mstx_tl *tl, struct measuring *m, struct group *g,
                          mstx_name_rows *rows, struct ms_err *err)
{
    struct mstx_name_row *r = ms_vec_push(rows);
    if (r == NULL)
        return ms_no_memory(err);
    uint64_t n = g->events - g->marks;
    double time = (double)m->time_ns * g->tracks;
    *r = (struct mstx_name_row){
        .domain = ms_map_key(&m->domains, g->domain),
        .name = mstx_tl_text(tl, g->name),
        .events = g->events,
        .marks = g->marks,
        .unfinished = g->unfinished,
        .total_ns = g->total,
        .mean_ns = n != 0 ? g->total / (int64_t)n : 0,
        .p50_ns = percentile_of(g, 0.5),
        .p99_ns = percentile_of(g, 0.99),
        .max_ns = g->max,
        .share = time > 0 ? (double)g->total / time : 0,
        .tracks = g->tracks,
    };
    return MS_OK;
}

static int row_order(const void *pa, const void *pb)
{
    const struct mstx_name_row *a = pa, *b = pb;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->events != b->events)
        return a->events > b->events ? -1 : 1;
    int order = ms_str_cmp_natural(a->domain, b->domain);
    return order != 0 ? order : ms_str_cmp_natural(a->name, b->name);
}

/* Counts the events of a track that touch the selection, clipped to the selection. */
static enum ms_rc walk_part(struct mstx_tl *tl, struct measuring *m, const struct mstx_part *part,
                            struct ms_err *err)
{
    struct mstx_cursor *c;
    const struct mstx_event *ev;
    MS_TRY(mstx__cursor_new(&c, tl, m->track, err));
    mstx__cursor_seek(c, part->from);
    enum ms_rc rc;
    while ((rc = mstx__cursor_next(c, &ev, err)) == MS_OK && ev != NULL &&
           ev->start_ns <= part->to) {
        struct mstx_event cut = *ev;
        int64_t end = ev->start_ns + ev->dur_ns;
        if (end < part->from)
            continue;
        cut.start_ns = ev->start_ns > part->from ? ev->start_ns : part->from;
        cut.dur_ns = (end < part->to ? end : part->to) - cut.start_ns;
        rc = take_event(m, &cut, err);
        if (rc != MS_OK)
            break;
    }
    mstx__cursor_free(c);
    return rc;
}

/* Measures a track, or with `part` the selected time of it. */
static enum ms_rc measure_track(struct mstx_tl *tl, struct measuring *m, size_t track,
                                const struct mstx_part *part, struct ms_err *err)
{
    m->track = (uint32_t)track;
    m->domain = ms_map_put(&m->domains, mstx_tl_track(tl, track)->domain, NULL);
    if (m->domain == MS_MAP_NONE)
        return ms_no_memory(err);
    enum ms_rc rc = part != NULL ? walk_part(tl, m, part, err)
                                 : mstx_tl_walk(tl, track, NULL, take_event, m, err);
    for (size_t i = 0; i < m->touched.n; i++)
        m->group_of.p[m->touched.p[i]] = 0;
    m->touched.n = 0;
    return rc;
}

static enum ms_rc measure_threads(struct mstx_tl *tl, struct measuring *m, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        if (mstx_tl_track(tl, i)->kind == MSTX_TRACK_THREAD)
            MS_TRY(measure_track(tl, m, i, NULL, err));
    }
    return MS_OK;
}

static enum ms_rc measure_part(struct mstx_tl *tl, struct measuring *m,
                               const struct mstx_part *part, struct ms_err *err)
{
    for (size_t i = 0; i < part->n; i++)
        MS_TRY(measure_track(tl, m, part->tracks[i], part, err));
    return MS_OK;
}

static void free_measuring(struct measuring *m)
{
    for (size_t i = 0; i < m->group.n; i++) {
        ms_vec_free(&m->group.p[i].exact);
        ms_free(m->group.p[i].classes);
    }
    ms_vec_free(&m->group);
    ms_vec_free(&m->group_of);
    ms_vec_free(&m->touched);
    ms_map_free(&m->domains);
    ms_map_free(&m->keys);
    ms_arena_free(m->arena);
}

static enum ms_rc measure_names(struct mstx_tl *tl, const struct mstx_part *part, int64_t time_ns,
                                mstx_name_rows *rows, struct ms_err *err)
{
    struct measuring m = {.arena = ms_arena_new((size_t)1 << 34), .time_ns = time_ns};
    enum ms_rc rc = m.arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = part != NULL ? measure_part(tl, &m, part, err) : measure_threads(tl, &m, err);
    for (size_t i = 0; i < m.group.n && rc == MS_OK; i++)
        rc = add_row(tl, &m, &m.group.p[i], rows, err);
    ms_vec_sort(rows, row_order);
    free_measuring(&m);
    return rc;
}

enum ms_rc mstx_names_measure(struct mstx_tl *tl, mstx_name_rows *rows, struct ms_err *err)
{
    int64_t start, end;
    mstx_tl_span(tl, &start, &end);
    return measure_names(tl, NULL, end - start, rows, err);
}

enum ms_rc mstx_names_measure_part(struct mstx_tl *tl, const struct mstx_part *part,
                                   mstx_name_rows *rows, struct ms_err *err)
{
    return measure_names(tl, part, part->to - part->from, rows, err);
}
