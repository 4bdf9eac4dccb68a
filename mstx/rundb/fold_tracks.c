/* SPDX-License-Identifier: MIT
 *
 * fold_tracks: folds the events of a track.
 *
 * Events are cut into chunks that hold whole periods, so that chunks of all steps, and of all ranks that do
 * the same, have one structure and one model.
 */
#include "mstx/rundb/fold_write_int.h"

#include "mstx/format/step_name.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>

enum { HELD = 2 * MSTX_CHUNK_MAX, LEADERS_MAX = 1024, LEVEL_SHARE = 64 };

/* A track while it is written. */
struct mstx_folding {
    struct mstx_folder *f;
    uint32_t n; /* events held */
    struct mstx_event ev[HELD];
    uint64_t key[HELD];
    size_t call[HELD]; /* of an event: 1 + its call, 0: none */
    uint32_t period;
    uint64_t leader_structure;
    const struct mstx_fold_leader *leader;
    uint32_t at;     /* chunks of the level written */
    uint32_t folded; /* of these, before the first that is not folded */
    unsigned shift;  /* of the level */
    int64_t level_first;
    uint64_t level_events;
    /* of the chunk being written */
    uint32_t points;
    uint16_t step[MSTX_FOLD_POINTS], owner[MSTX_FOLD_POINTS];
    int64_t time[MSTX_FOLD_POINTS], off[MSTX_FOLD_POINTS], off_leader[MSTX_FOLD_POINTS];
    uint16_t class[MSTX_FOLD_POINTS];
    struct mstx_fold_point point[MSTX_FOLD_POINTS];
    uint32_t classes, steps; /* steps: of a period; 0: not periodic */
    int64_t cell[MSTX_CHUNK_MAX];
};

/* ---- points --------------------------------------------------------------------------- */

static int64_t end_of(const struct mstx_event *e)
{
    return e->start_ns + e->dur_ns;
}

static void add_point(struct mstx_folding *t, uint16_t step, uint32_t owner, int64_t time)
{
    ms_assert(t->points < MSTX_FOLD_POINTS);
    t->step[t->points] = step;
    t->owner[t->points] = (uint16_t)owner;
    t->time[t->points++] = time / t->f->quantum;
}

/* Ends the open event that ends first, the last one to begin among equals, if it ends by `until`. */
static bool end_one(struct mstx_folding *t, uint16_t *open, uint32_t *opened, int64_t until)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < *opened; i++)
        first = end_of(&t->ev[open[i]]) <= end_of(&t->ev[open[first]]) ? i : first;
    if (*opened == 0 || end_of(&t->ev[open[first]]) > until)
        return false;
    add_point(t, (uint16_t)(MSTX_POINT_END + *opened - 1 - first), open[first],
              end_of(&t->ev[open[first]]));
    memmove(&open[first], &open[first + 1], (*opened - 1 - first) * sizeof *open);
    --*opened;
    return true;
}

/* Sorts the begins and ends of the first n events; false when too many are open at once. */
static bool sort_points(struct mstx_folding *t, uint32_t n)
{
    enum { OPEN_MAX = 256 };
    uint16_t open[OPEN_MAX];
    uint32_t opened = 0;
    t->points = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct mstx_event *e = &t->ev[i];
        while (end_one(t, open, &opened, e->start_ns))
            ;
        if (opened == OPEN_MAX)
            return false;
        if (e->kind == MSTX_EV_MARK || e->kind == MSTX_EV_COUNTER) {
            if (e->dur_ns != 0)
                return false;
            add_point(t, MSTX_POINT_AT_ONCE, i, e->start_ns);
            continue;
        }
        add_point(t, MSTX_POINT_BEGIN, i, e->start_ns);
        open[opened++] = (uint16_t)i;
    }
    while (end_one(t, open, &opened, INT64_MAX))
        ;
    return true;
}

/* Finds out whether the steps repeat with the period of the events. */
static uint32_t steps_of_period(const struct mstx_folding *t, uint32_t n)
{
    uint32_t steps = 0;
    if (t->period > n)
        return 0;
    for (uint32_t begun = 0; steps < t->points; steps++) {
        if (t->step[steps] < MSTX_POINT_END && ++begun > t->period)
            break;
    }
    for (uint32_t i = steps; i < t->points; i++) {
        if (t->step[i] != t->step[i - steps])
            return 0;
    }
    return steps < MSTX_CLASSES ? steps : 0;
}

static void set_classes(struct mstx_folding *t)
{
    if (t->steps != 0) {
        for (uint32_t i = 0; i < t->points; i++)
            t->class[i] = (uint16_t)(i % t->steps);
        t->classes = t->steps;
        return;
    }
    enum { CLASSES = 1024 };
    for (uint32_t i = 0; i < t->points; i++) {
        const struct mstx_event *e = &t->ev[t->owner[i]];
        const uint64_t shape = (uint64_t)e->depth << 16 | (uint64_t)e->kind << 8 | e->flags;
        t->point[i] = (struct mstx_fold_point){shape << 32 | e->name, t->step[i] >= MSTX_POINT_END};
    }
    mstx__point_classes(t->point, t->points, CLASSES, t->class);
    t->classes = 1;
    for (uint32_t i = 0; i < t->points; i++)
        t->classes = t->class[i] >= t->classes ? t->class[i] + 1u : t->classes;
}

static enum ms_rc put_structure(struct mstx_folding *t, uint64_t *id, struct ms_err *err)
{
    struct ms_buf *part = &t->f->put->part;
    const uint32_t steps = t->steps != 0 ? t->steps : t->points;
    ms_buf_clear(part);
    ms_buf_putc(part, MSTX_PART_STRUCTURE);
    ms_buf_putc(part, t->steps != 0);
    mstx_buf_varint(part, steps);
    for (uint32_t i = 0; i < steps; i++)
        mstx_buf_varint(part, t->step[i]);
    return mstx__put_part(t->f->put, id, err);
}

/* ---- leaders ---------------------------------------------------------------------------- */

static unsigned bits_of(uint64_t difference)
{
    const uint64_t u = mstx_zigzag(difference);
    return u != 0 ? 64 - (unsigned)__builtin_clzll(u) : 0;
}

/* Returns by how many bits less the ends differ from those of the leader, a period ago, than from the
 * points before them. */
static double gain_of(const struct mstx_folding *t, const struct mstx_fold_leader *l)
{
    const uint32_t steps = t->steps != 0 ? t->steps : 2;
    const uint32_t n = l->n < t->points ? l->n : t->points;
    int64_t gain = 0, ends = 0;
    for (uint32_t i = steps + 1; i < n; i++) {
        if (t->step[i] < MSTX_POINT_END)
            continue;
        const uint64_t own = (uint64_t)(t->time[i] - t->time[i - 1]) -
                             (uint64_t)(t->time[i - steps] - t->time[i - steps - 1]);
        const uint64_t other = (uint64_t)(t->time[i] - l->time[i]) -
                               (uint64_t)(t->time[i - steps] - l->time[i - steps]);
        gain += (int64_t)bits_of(own) - (int64_t)bits_of(other);
        ends++;
    }
    return ends != 0 ? (double)gain / (double)ends : 0;
}

/* Chooses a leader for a track by its first chunk, or makes it one. */
static enum ms_rc choose_leader(struct mstx_folding *t, uint64_t structure, int64_t chunk,
                                struct ms_err *err)
{
    static const double GAIN = 1.5;
    struct mstx_folder *f = t->f;
    double best = GAIN;
    t->leader = NULL;
    t->leader_structure = structure;
    for (size_t i = f->leader.n; i-- > 0;) {
        const struct mstx_fold_leader *l = &f->leader.p[i];
        const double gain = l->structure == structure && l->quantum == f->quantum && l->chunks != 0
                                ? gain_of(t, l)
                                : 0;
        if (gain > best) {
            best = gain;
            t->leader = l;
        }
    }
    if (t->leader != NULL || f->leader.n == LEADERS_MAX)
        return MS_OK;
    struct mstx_fold_leader *own = ms_vec_push(&f->leader);
    if (own == NULL)
        return ms_no_memory(err);
    *own = (struct mstx_fold_leader){
        .structure = structure, .quantum = f->quantum, .first_chunk = chunk};
    own->n = t->points < MSTX_FOLD_SAMPLE ? t->points : MSTX_FOLD_SAMPLE;
    memcpy(own->time, t->time, own->n * sizeof *own->time);
    return MS_OK;
}

/* Returns the chunk of the leader that has the same points as the chunk being written, 0: none. */
static int64_t leader_chunk(const struct mstx_folding *t, uint64_t structure)
{
    const struct mstx_fold_leader *l = t->leader;
    return l != NULL && t->at < l->chunks && structure == t->leader_structure
               ? l->first_chunk + t->at
               : 0;
}

/* ---- chunks ------------------------------------------------------------------------------- */

static enum ms_rc put_times(struct mstx_folding *t, uint64_t structure, int64_t leader,
                            uint64_t *model, struct ms_err *err)
{
    const int64_t *by = NULL;
    uint32_t n = 0;
    if (leader != 0)
        MS_TRY(mstx__fold_points(t->f->read, leader, &by, &n, err));
    ms_assert(leader == 0 || n == t->points);
    for (uint32_t i = 1; i < t->points; i++) {
        t->off[i] = t->time[i] - t->time[i - 1];
        t->off_leader[i] = by != NULL ? t->time[i] - by[i] : 0;
    }
    const struct mstx_numbers v = {t->points - 1, t->classes, t->class + 1, t->off + 1,
                                   by != NULL ? t->off_leader + 1 : NULL};
    ms_buf_clear(&t->f->code);
    return mstx__put_fitted(t->f->put, 2 * structure + (leader != 0), &v, model, &t->f->code, err);
}

static int64_t field_of(const struct mstx_event *e, unsigned column)
{
    switch (column) {
    case 0:
        return (int64_t)e->depth << 16 | (int64_t)e->kind << 8 | e->flags;
    case 1:
        return e->name;
    case 2:
        return (int64_t)e->id;
    case 3:
        return (int64_t)e->arg;
    case 4:
        return (int64_t)e->size;
    case 5:
        return e->count;
    case 6:
        return e->end_tid;
    default:
        return e->args;
    }
}

static enum ms_rc put_columns(struct mstx_folding *t, uint32_t n, struct ms_err *err)
{
    for (unsigned c = 0; c < MSTX_FOLD_EVENT_COLUMNS; c++) {
        const struct mstx_put_column how = {.slot = c, .period = t->period <= n ? t->period : n};
        for (uint32_t i = 0; i < n; i++)
            t->cell[i] = field_of(&t->ev[i], c);
        MS_TRY(mstx__put_column(t->f->put, &t->f->blob, &how, t->cell, n, err));
    }
    return MS_OK;
}

static enum ms_rc put_chunk_blob(struct mstx_folding *t, uint32_t n, struct ms_err *err)
{
    struct mstx_folder *f = t->f;
    uint64_t structure, model;
    t->steps = steps_of_period(t, n);
    set_classes(t);
    MS_TRY(put_structure(t, &structure, err));
    if (t->at == 0 && t->shift == 0)
        MS_TRY(choose_leader(t, structure, f->chunks + 1, err));
    int64_t leader = leader_chunk(t, structure);
    if (leader != 0) { /* the last chunk of a track may be shorter */
        const int64_t *ignored;
        uint32_t points;
        MS_TRY(mstx__fold_points(f->read, leader, &ignored, &points, err));
        leader = points == t->points ? leader : 0;
    }
    MS_TRY(put_times(t, structure, leader, &model, err));
    ms_buf_clear(&f->blob);
    ms_buf_putc(&f->blob, MSTX_FOLDED);
    mstx_buf_varint(&f->blob, n);
    mstx_buf_varint(&f->blob, structure);
    mstx_buf_varint(&f->blob, model);
    mstx_buf_varint(&f->blob, (uint64_t)leader);
    mstx_buf_varint(&f->blob, (uint64_t)f->quantum);
    mstx_buf_varint(&f->blob, mstx_zigzag((uint64_t)t->time[0]));
    MS_TRY(put_columns(t, n, err));
    ms_buf_str(&f->blob, ms_buf_slice(&f->code));
    return ms_buf_check(&f->blob, err);
}

static enum ms_rc store_chunk(struct mstx_folding *t, uint32_t n, struct ms_str blob,
                              struct ms_err *err)
{
    struct mstx_folder *f = t->f;
    int64_t end = INT64_MIN;
    for (uint32_t i = 0; i < n; i++)
        end = end_of(&t->ev[i]) > end ? end_of(&t->ev[i]) : end;
    f->chunks++;
    ms_stmt_i64(f->add_chunk, 1, f->chunks);
    ms_stmt_i64(f->add_chunk, 2, t->ev[0].start_ns);
    ms_stmt_i64(f->add_chunk, 3, end);
    ms_stmt_i64(f->add_chunk, 4, n);
    MS_TRY(ms_stmt_run(f->add_chunk, err));
    ms_stmt_i64(f->add_blob, 1, f->chunks);
    ms_stmt_blob(f->add_blob, 2, blob.p, blob.n);
    t->at++;
    t->level_events += n;
    return ms_stmt_run(f->add_blob, err);
}

/* Writes the first n events that are held as they were: too many overlap. */
static enum ms_rc write_unfolded(struct mstx_folding *t, uint32_t n, struct ms_err *err)
{
    struct mstx_packer *p = mstx_packer_new();
    if (p == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = mstx_pack(p, t->ev, n, err);
    if (rc == MS_OK)
        rc = store_chunk(t, n, ms_buf_slice(&p->out), err);
    mstx_packer_free(p);
    return rc;
}

static enum ms_rc write_chunk(struct mstx_folding *t, uint32_t n, struct ms_err *err)
{
    struct mstx_folder *f = t->f;
    enum ms_rc rc;
    if (sort_points(t, n)) {
        rc = put_chunk_blob(t, n, err);
        t->folded += t->folded == t->at;
        if (rc == MS_OK)
            rc = store_chunk(t, n, ms_buf_slice(&f->blob), err);
    } else {
        rc = write_unfolded(t, n, err);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (t->call[i] != 0) {
            f->call.p[t->call[i] - 1].chunk = f->chunks;
            f->call.p[t->call[i] - 1].place = i;
        }
    }
    return rc;
}

/* Writes a chunk of the events that are held, of whole periods when there are any. */
static enum ms_rc write_some(struct mstx_folding *t, struct ms_err *err)
{
    const uint32_t most = t->n < MSTX_CHUNK_MAX ? t->n : MSTX_CHUNK_MAX;
    t->period = mstx__find_period(t->key, most, t->f->period);
    uint32_t n = most;
    if (t->period <= most / 2) {
        t->f->period = t->period;
        n = t->n <= MSTX_CHUNK_MAX ? t->n : most / t->period * t->period;
    }
    MS_TRY(write_chunk(t, n, err));
    t->n -= n;
    memmove(t->ev, t->ev + n, t->n * sizeof *t->ev);
    memmove(t->key, t->key + n, t->n * sizeof *t->key);
    memmove(t->call, t->call + n, t->n * sizeof *t->call);
    return MS_OK;
}

/* ---- tracks --------------------------------------------------------------------------------- */

/* Returns 1 + the next call when it is this event's, else 0. */
static size_t call_of(struct mstx_folder *f, const struct mstx_event *e)
{
    if (f->calls_met >= f->call.n)
        return 0;
    const struct mstx_folded_call *c = &f->call.p[f->calls_met];
    return c->start == e->start_ns && c->dur == e->dur_ns ? ++f->calls_met : 0;
}

static enum ms_rc hold(struct mstx_folding *t, const struct mstx_event *e, bool has_calls,
                       struct ms_err *err)
{
    const uint64_t shape = (uint64_t)e->depth << 16 | (uint64_t)e->kind << 8 | e->flags;
    struct mstx_event *to = &t->ev[t->n];
    t->call[t->n] = has_calls ? call_of(t->f, e) : 0;
    t->key[t->n] = ms_hash_mix(shape, e->name);
    if (t->call[t->n] != 0)
        t->key[t->n] = ms_hash_mix(t->key[t->n], t->f->call.p[t->call[t->n] - 1].key);
    *to = *e;
    to->start_ns = mstx__fold_round(t->f, e->start_ns);
    to->dur_ns = mstx__fold_round(t->f, end_of(e)) - to->start_ns;
    return ++t->n == HELD ? write_some(t, err) : MS_OK;
}

static void begin_level(struct mstx_folding *t, unsigned shift)
{
    t->at = t->folded = 0;
    t->shift = shift;
    t->level_first = t->f->chunks + 1;
    t->level_events = 0;
    t->leader = NULL;
}

static enum ms_rc end_level(struct mstx_folding *t, size_t track, struct ms_err *err)
{
    struct mstx_folder *f = t->f;
    while (t->n != 0)
        MS_TRY(write_some(t, err));
    const int64_t column[] = {(int64_t)track + 1, t->shift, (int64_t)t->level_events,
                              t->level_first, f->chunks - t->level_first + 1};
    for (int c = 0; c < 5; c++)
        ms_stmt_i64(f->add_level, c + 1, column[c]);
    return ms_stmt_run(f->add_level, err);
}

static enum ms_rc fold_events(struct mstx_folding *t, size_t track, struct ms_err *err)
{
    const struct mstx_track *row = mstx_tl_track(t->f->from, track);
    const bool has_calls = row->kind == MSTX_TRACK_THREAD;
    struct mstx_cursor *c;
    const struct mstx_event *e;
    MS_TRY(mstx__cursor_new(&c, t->f->from, track, err));
    enum ms_rc rc = mstx__cursor_next(c, &e, err);
    while (rc == MS_OK && e != NULL) {
        rc = hold(t, e, has_calls, err);
        if (rc == MS_OK)
            rc = mstx__cursor_next(c, &e, err);
    }
    mstx__cursor_free(c);
    return rc;
}

/* Writes the levels that are much smaller than the track; viewers join events for the others. */
static enum ms_rc fold_levels(struct mstx_folding *t, size_t track, struct ms_err *err)
{
    struct mstx_folder *f = t->f;
    unsigned shift = 0;
    uint64_t events = 0;
    mstx_events ev = {0};
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && mstx__tl_level(f->from, track, shift + 1, &shift, &events)) {
        if (events > mstx_tl_track(f->from, track)->events / LEVEL_SHARE)
            continue;
        ev.n = 0;
        begin_level(t, shift);
        rc = mstx_tl_view(f->from, track, INT64_MIN, INT64_MAX, (int64_t)1 << shift, &ev, err);
        for (size_t i = 0; i < ev.n && rc == MS_OK; i++)
            rc = hold(t, &ev.p[i], false, err);
        if (rc == MS_OK)
            rc = end_level(t, track, err);
    }
    ms_vec_free(&ev);
    return rc;
}

/* Tells whether at least half of the first events of a track are steps. */
static enum ms_rc look_for_steps(struct mstx_folder *f, size_t track, bool *found,
                                 struct ms_err *err)
{
    enum { FIRST = 64 };
    struct mstx_cursor *c;
    const struct mstx_event *e;
    int64_t number;
    unsigned n = 0, steps = 0;
    MS_TRY(mstx__cursor_new(&c, f->from, track, err));
    enum ms_rc rc = mstx__cursor_next(c, &e, err);
    while (rc == MS_OK && e != NULL && n++ < FIRST) {
        steps += mstx_is_step_name(mstx_tl_text(f->from, e->name), &number);
        rc = mstx__cursor_next(c, &e, err);
    }
    mstx__cursor_free(c);
    *found = 2 * steps >= n && steps != 0;
    return rc;
}

enum ms_rc mstx__fold_track(struct mstx_folder *f, size_t track, struct ms_err *err)
{
    if (f->room == NULL)
        f->room = ms_calloc(1, sizeof *f->room);
    struct mstx_folding *t = f->room;
    if (t == NULL)
        return ms_no_memory(err);
    t->f = f;
    t->n = 0;
    begin_level(t, 0);
    const size_t leaders = f->leader.n;
    bool has_steps = false;
    enum ms_rc rc = look_for_steps(f, track, &has_steps, err);
    f->quantum = has_steps ? 1 : mstx__fold_quantum(f); /* steps are figures of reports */
    if (rc == MS_OK)
        rc = fold_events(t, track, err);
    if (rc == MS_OK)
        rc = end_level(t, track, err);
    if (rc == MS_OK && f->leader.n != leaders)
        f->leader.p[f->leader.n - 1].chunks = t->folded;
    if (rc == MS_OK)
        rc = fold_levels(t, track, err);
    return rc;
}
