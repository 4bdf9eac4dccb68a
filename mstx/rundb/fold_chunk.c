/* SPDX-License-Identifier: MIT
 *
 * fold_chunk: unpacks folded columns and chunks of events; the layout is in fold_read.h.  Columns of packed
 * rows may refer to events of chunks, and chunks have columns.
 */
#include "mstx/rundb/fold_int.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

static const uint64_t QUANTUM_MAX = (uint64_t)1 << 40;

/* ---- columns ---------------------------------------------------------------------- */

/* Reads a column; deep: within so many others. */
static enum ms_rc get_column(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                             unsigned deep, struct ms_err *err);
/* Reads the events of a chunk of any version; valid until the next call. */
static enum ms_rc read_chunk(struct mstx_fold *f, int64_t chunk, const struct mstx_event **ev,
                             uint32_t *n, struct ms_err *err);

static enum ms_rc fail_damaged(struct ms_err *err)
{
    return ms_fail(err, MS_E_FORMAT, "a folded blob is damaged; import the capture again");
}

static enum ms_rc get_even(struct mstx_bytes *b, int64_t *cell, uint32_t n)
{
    uint64_t v = mstx_unzigzag(mstx_get_varint(b));
    const uint64_t step = mstx_unzigzag(mstx_get_varint(b));
    for (uint32_t i = 0; i < n; i++, v += step)
        cell[i] = (int64_t)v;
    return MS_OK;
}

static void pattern_values(const struct mstx_part *p, uint64_t first, uint64_t turn, int64_t *cell,
                           uint32_t n)
{
    ms_assert(p->kind == MSTX_PART_PATTERN && p->n >= 1);
    for (uint32_t i = 0; i < n; turn++) {
        const uint32_t some = n - i < p->n ? n - i : p->n;
        for (uint32_t k = 0; k < some; k++)
            cell[i + k] = (int64_t)(first + (uint64_t)p->base[k] +
                                    (p->slope != NULL ? turn * (uint64_t)p->slope[k] : 0));
        i += some;
    }
}

static enum ms_rc get_pattern(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                              struct ms_err *err)
{
    const uint64_t id = mstx_get_varint(b);
    const uint64_t first = mstx_unzigzag(mstx_get_varint(b)), turn = mstx_get_varint(b);
    const struct mstx_part *p =
        b->bad ? NULL : mstx__parts_get(&f->parts, id, MSTX_PART_PATTERN, err);
    if (b->bad)
        return fail_damaged(err);
    if (p == NULL)
        return MS_E_FORMAT;
    pattern_values(p, first, turn, cell, n);
    return MS_OK;
}

static enum ms_rc get_few(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                          unsigned deep, struct ms_err *err)
{
    int64_t value[MSTX_FOLD_FEW_MAX];
    uint64_t v = 0;
    const uint64_t values = mstx_get_below(b, MSTX_FOLD_FEW_MAX + 1);
    for (uint64_t i = 0; i < values; i++) {
        v += mstx_unzigzag(mstx_get_varint(b));
        value[i] = (int64_t)v;
    }
    MS_TRY(get_column(f, b, cell, n, deep + 1, err));
    for (uint32_t i = 0; i < n; i++) {
        if ((uint64_t)cell[i] >= values)
            return fail_damaged(err);
        cell[i] = value[cell[i]];
    }
    return MS_OK;
}

/* Finds the column that the classes of numbers need. */
static enum ms_rc find_other(struct mstx_fold *f, enum mstx_fold_rule rule, uint64_t of, uint32_t n,
                             const int64_t **other, struct ms_err *err)
{
    struct mstx_rows *rows = f->rows;
    *other = NULL;
    if (rule == MSTX_RULE_PERIOD)
        return of != 0 ? MS_OK : fail_damaged(err);
    if (rows == NULL || rule > MSTX_RULE_CHANGE || of >= rows->columns || rows->n != n)
        return fail_damaged(err);
    f->rows = NULL;
    *other = mstx__rows_column(rows, (unsigned)of, err);
    f->rows = rows;
    return *other != NULL ? MS_OK : MS_E_FORMAT;
}

static enum ms_rc get_numbers(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                              struct ms_err *err)
{
    const uint64_t id = mstx_get_varint(b), quantum = mstx_get_varint(b);
    const bool from_before = mstx_get_byte(b) != 0;
    const enum mstx_fold_rule rule = mstx_get_byte(b);
    const uint64_t of = mstx_get_varint(b), bytes = mstx_get_varint(b);
    const int64_t *other;
    if (b->bad || bytes > (uint64_t)(b->end - b->at))
        return fail_damaged(err);
    struct mstx_bytes code = {b->at, b->at + bytes, false};
    b->at += bytes;
    MS_TRY(find_other(f, rule, of, n, &other, err));
    const struct mstx_part *p = mstx__parts_get(&f->parts, id, MSTX_PART_MODEL, err);
    if (p == NULL)
        return MS_E_FORMAT;
    const struct mstx_model *m = &p->model;
    struct mstx_decoder d;
    uint64_t before = 0;
    mstx__decoder_begin(&d, &code);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = mstx__fold_class(rule, of, other, i);
        const struct mstx_class *c = &m->class[k < m->classes ? k : m->classes - 1];
        const uint64_t v = (uint64_t)mstx__decode(&d, &m->context[c->context]) +
                           (uint64_t)c->centre + (from_before ? before : 0);
        before = v;
        cell[i] = (int64_t)(v * quantum);
    }
    return mstx__decoder_ended(&d) ? MS_OK : fail_damaged(err);
}

static enum ms_rc get_nulls(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                            unsigned deep, struct ms_err *err)
{
    uint32_t known = 0;
    MS_TRY(get_column(f, b, cell, n, deep + 1, err));
    for (uint32_t i = 0; i < n; i++) {
        if (cell[i] != 0 && cell[i] != 1)
            return fail_damaged(err);
        known += cell[i] == 1;
    }
    int64_t *value = ms_calloc((size_t)known + 1, sizeof *value);
    if (value == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = known != 0 ? get_column(f, b, value, known, deep + 1, err) : MS_OK;
    for (uint32_t i = 0, k = 0; i < n && rc == MS_OK; i++)
        cell[i] = cell[i] != 0 ? value[k++] : MSTX_ROWS_NULL;
    ms_free(value);
    return rc;
}

/* Copies the starts or durations of a stretch of events. */
static enum ms_rc copy_stretch(struct mstx_fold *f, struct mstx_bytes *b, bool durations,
                               int64_t *cell, uint32_t n, uint32_t *at, struct ms_err *err)
{
    const uint64_t chunk = mstx_get_varint(b), first = mstx_get_varint(b),
                   some = mstx_get_varint(b);
    const struct mstx_event *ev;
    uint32_t events = 0;
    if (b->bad || chunk > INT64_MAX || some > n - *at)
        return fail_damaged(err);
    MS_TRY(read_chunk(f, (int64_t)chunk, &ev, &events, err));
    if (first > events || some > events - first)
        return fail_damaged(err);
    for (uint64_t i = 0; i < some; i++)
        cell[(*at)++] = durations ? ev[first + i].dur_ns : ev[first + i].start_ns;
    return MS_OK;
}

static enum ms_rc get_events(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                             unsigned deep, struct ms_err *err)
{
    const bool durations = mstx_get_byte(b) != 0;
    const uint64_t stretches = mstx_get_varint(b);
    uint32_t at = 0;
    if (stretches > n || deep >= MSTX_FOLD_IN_CHUNK)
        return fail_damaged(err);
    for (uint64_t i = 0; i < stretches; i++)
        MS_TRY(copy_stretch(f, b, durations, cell, n, &at, err));
    return at == n ? MS_OK : fail_damaged(err);
}

static enum ms_rc get_plain(struct mstx_bytes *b, int64_t *cell, uint32_t n)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i++) {
        v += mstx_unzigzag(mstx_get_varint(b));
        cell[i] = (int64_t)v;
    }
    return MS_OK;
}

static enum ms_rc get_kind(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                           unsigned deep, struct ms_err *err)
{
    switch ((enum mstx_fold_column)mstx_get_byte(b)) {
    case MSTX_FOLD_EVEN:
        return get_even(b, cell, n);
    case MSTX_FOLD_PATTERN:
        return get_pattern(f, b, cell, n, err);
    case MSTX_FOLD_FEW:
        return get_few(f, b, cell, n, deep, err);
    case MSTX_FOLD_NUMBERS:
        return get_numbers(f, b, cell, n, err);
    case MSTX_FOLD_NULLS:
        return get_nulls(f, b, cell, n, deep, err);
    case MSTX_FOLD_EVENTS:
        return get_events(f, b, cell, n, deep, err);
    case MSTX_FOLD_PLAIN:
        return get_plain(b, cell, n);
    default:
        return fail_damaged(err);
    }
}

static enum ms_rc get_column(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                             unsigned deep, struct ms_err *err)
{
    if (deep % MSTX_FOLD_IN_CHUNK > MSTX_FOLD_DEEP)
        return fail_damaged(err);
    MS_TRY(get_kind(f, b, cell, n, deep, err));
    return b->bad ? fail_damaged(err) : MS_OK;
}

static enum ms_rc read_column(const struct mstx_folded_columns *from, struct mstx_rows *rows,
                              struct ms_str bytes, int64_t *cell, struct ms_err *err)
{
    struct mstx_fold *f = (struct mstx_fold *)(uintptr_t)from; /* its first field */
    struct mstx_bytes b = mstx_bytes_of(bytes);
    const bool is_outer = f->rows == NULL && !f->is_inner;
    if (is_outer) {
        mstx__parts_rest(&f->parts);
        f->rows = rows;
        f->is_inner = true;
    }
    const enum ms_rc rc = get_column(f, &b, cell, rows->n, 0, err);
    if (is_outer) {
        f->rows = NULL;
        f->is_inner = false;
    }
    MS_TRY(rc);
    return b.at == b.end ? MS_OK : fail_damaged(err);
}

/* ---- points ----------------------------------------------------------------------- */

/* Chunk being read. */
struct reading {
    struct mstx_fold *f;
    struct mstx_bytes b;
    uint32_t n; /* events */
    const struct mstx_part *structure;
    const struct mstx_model *model;
    uint64_t leader, quantum;
    uint32_t points;
};

/* Gives each point its event; false when the structure does not fit. */
static bool place_points(struct reading *r)
{
    struct mstx_fold *f = r->f;
    uint16_t open[MSTX_CHUNK_MAX];
    uint32_t opened = 0, begun = 0, at = 0;
    const uint32_t steps = r->structure->n, all = r->structure->is_periodic ? UINT32_MAX : steps;
    for (uint32_t k = 0; begun < r->n || opened != 0; at++, k = k + 1 == steps ? 0 : k + 1) {
        if (at == all || at == 2 * r->n)
            return false;
        const uint32_t step = r->structure->step[k];
        f->ends[at] = step >= MSTX_POINT_END;
        if (step < MSTX_POINT_END) {
            if (begun == r->n)
                return false;
            f->owner[at] = (uint16_t)begun;
            if (step == MSTX_POINT_BEGIN)
                open[opened++] = (uint16_t)begun;
            begun++;
            continue;
        }
        const uint32_t below = step - MSTX_POINT_END;
        if (below >= opened)
            return false;
        uint16_t *gone = &open[opened - 1 - below];
        f->owner[at] = *gone;
        memmove(gone, gone + 1, below * sizeof *gone);
        opened--;
    }
    r->points = at;
    return r->structure->is_periodic || at == steps;
}

static bool is_same(const struct mstx_fold_point *a, const struct mstx_fold_point *b)
{
    return a->key == b->key && a->ends == b->ends;
}

void mstx__point_classes(const struct mstx_fold_point *point, uint32_t n, uint32_t most,
                         uint16_t *class)
{
    enum { SLOTS = 2 * MSTX_FOLD_POINTS };
    static const struct mstx_fold_point none;
    uint16_t slot[SLOTS] = {0}; /* 1 + the first point of a class */
    uint32_t classes = 0;
    ms_assert(n <= MSTX_FOLD_POINTS && most >= 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct mstx_fold_point *before = i != 0 ? &point[i - 1] : &none;
        const uint64_t h =
            ms_hash_mix(ms_hash_mix(before->key + before->ends, point[i].key), point[i].ends);
        uint32_t at = (uint32_t)(h >> 20) % SLOTS;
        while (slot[at] != 0 && !(is_same(&point[slot[at] - 1], &point[i]) &&
                                  is_same(slot[at] > 1 ? &point[slot[at] - 2] : &none, before)))
            at = (at + 1) % SLOTS;
        if (slot[at] == 0) {
            slot[at] = (uint16_t)(i + 1);
            class[i] = (uint16_t)(classes < most ? classes : most - 1);
            classes++;
        } else {
            class[i] = class[slot[at] - 1];
        }
    }
}

static void find_classes(struct reading *r)
{
    struct mstx_fold *f = r->f;
    const uint32_t most = r->model->classes;
    if (r->structure->is_periodic) {
        const uint32_t steps = r->structure->n;
        for (uint32_t i = 0, k = 0; i < r->points; i++, k = k + 1 == steps ? 0 : k + 1)
            f->class[i] = (uint16_t)(k < most ? k : most - 1);
        return;
    }
    struct mstx_fold_point point[MSTX_FOLD_POINTS];
    for (uint32_t i = 0; i < r->points; i++)
        point[i] = (struct mstx_fold_point){(uint64_t)f->cell[0][f->owner[i]] << 32 |
                                                (uint32_t)f->cell[1][f->owner[i]],
                                            f->ends[i]};
    mstx__point_classes(point, r->points, most, f->class);
}

/* ---- times ------------------------------------------------------------------------- */

static enum ms_rc get_times(struct reading *r, uint64_t first, const int64_t *leader,
                            struct ms_err *err)
{
    struct mstx_fold *f = r->f;
    struct mstx_decoder d;
    uint64_t t = first;
    mstx__decoder_begin(&d, &r->b);
    f->time[0] = (int64_t)t;
    for (uint32_t i = 1; i < r->points; i++) {
        const struct mstx_class *c = &r->model->class[f->class[i]];
        const uint64_t from = c->by_leader && leader != NULL ? (uint64_t)leader[i] : t;
        t = from + (uint64_t)c->centre + (uint64_t)mstx__decode(&d, &r->model->context[c->context]);
        f->time[i] = (int64_t)t;
    }
    return mstx__decoder_ended(&d) ? MS_OK : fail_damaged(err);
}

static enum ms_rc get_head(struct reading *r, struct ms_str blob, struct ms_err *err)
{
    struct mstx_parts *parts = &r->f->parts;
    r->b = mstx_bytes_of(blob);
    r->b.bad |= mstx_get_byte(&r->b) != MSTX_FOLDED;
    r->n = (uint32_t)mstx_get_below(&r->b, MSTX_CHUNK_MAX + 1);
    const uint64_t structure = mstx_get_varint(&r->b), model = mstx_get_varint(&r->b);
    r->leader = mstx_get_below(&r->b, INT64_MAX);
    r->quantum = mstx_get_below(&r->b, QUANTUM_MAX);
    if (r->b.bad || r->n == 0 || r->quantum == 0)
        return fail_damaged(err);
    r->structure = mstx__parts_get(parts, structure, MSTX_PART_STRUCTURE, err);
    const struct mstx_part *m =
        r->structure != NULL ? mstx__parts_get(parts, model, MSTX_PART_MODEL, err) : NULL;
    if (m == NULL)
        return MS_E_FORMAT;
    r->model = &m->model;
    return MS_OK;
}

/* Reads the points of a chunk whose head was read. */
static enum ms_rc get_points(struct reading *r, const int64_t *leader, uint32_t leaders,
                             struct ms_err *err)
{
    struct mstx_fold *f = r->f;
    const uint64_t first = mstx_unzigzag(mstx_get_varint(&r->b));
    for (unsigned c = 0; c < MSTX_FOLD_EVENT_COLUMNS; c++)
        MS_TRY(get_column(f, &r->b, f->cell[c], r->n, MSTX_FOLD_IN_CHUNK, err));
    if (!place_points(r) || (leader != NULL && leaders != r->points))
        return fail_damaged(err);
    find_classes(r);
    return get_times(r, first, leader, err);
}

/* ---- leaders ------------------------------------------------------------------------ */

static enum ms_rc get_blob(struct mstx_fold *f, int64_t chunk, struct ms_str *blob,
                           struct ms_err *err)
{
    bool more = false;
    if (f->get_blob == NULL)
        MS_TRY(ms_store_prepare(f->store, &f->get_blob, "SELECT data FROM blobs WHERE chunk = ?",
                                err));
    ms_stmt_reset(f->get_blob);
    ms_stmt_i64(f->get_blob, 1, chunk);
    MS_TRY(ms_stmt_step(f->get_blob, &more, err));
    if (!more)
        return ms_fail(err, MS_E_FORMAT,
                       "run.db lacks a chunk that others need; import the capture again");
    *blob = ms_stmt_get_blob(f->get_blob, 0);
    return MS_OK;
}

/* Returns the place of a leader, or of the one that was not used for the longest time. */
static struct mstx_leader *leader_slot(struct mstx_fold *f, int64_t chunk)
{
    struct mstx_leader *oldest = &f->leader[0];
    for (int i = 0; i < MSTX_FOLD_LEADERS; i++) {
        if (f->leader[i].chunk == chunk)
            return &f->leader[i];
        if (f->leader[i].used < oldest->used)
            oldest = &f->leader[i];
    }
    return oldest;
}

static enum ms_rc read_leader(struct mstx_fold *f, int64_t chunk, struct mstx_leader *to,
                              struct ms_err *err)
{
    struct reading r = {.f = f};
    struct ms_str blob;
    to->chunk = 0;
    MS_TRY(get_blob(f, chunk, &blob, err));
    MS_TRY(get_head(&r, blob, err));
    if (r.leader != 0) /* leaders follow nobody */
        return fail_damaged(err);
    MS_TRY(get_points(&r, NULL, 0, err));
    memcpy(to->time, f->time, r.points * sizeof *to->time);
    to->n = r.points;
    to->chunk = chunk;
    return MS_OK;
}

enum ms_rc mstx__fold_points(struct mstx_fold *f, int64_t chunk, const int64_t **time, uint32_t *n,
                             struct ms_err *err)
{
    struct mstx_leader *l = leader_slot(f, chunk);
    if (l->chunk != chunk) {
        f->chunk = 0;
        const enum ms_rc rc = read_leader(f, chunk, l, err);
        ms_stmt_reset(f->get_blob);
        MS_TRY(rc);
    }
    l->used = ++f->clock;
    *time = l->time;
    *n = l->n;
    return MS_OK;
}

/* ---- events ------------------------------------------------------------------------- */

/* Tells whether v is within +-2^62. */
static bool is_time(int64_t v)
{
    return v >= -((int64_t)1 << 62) && v <= (int64_t)1 << 62;
}

static bool set_times(const struct reading *r, struct mstx_event *ev)
{
    const struct mstx_fold *f = r->f;
    int64_t before = INT64_MIN, t;
    for (uint32_t i = 0; i < r->points; i++) {
        struct mstx_event *e = &ev[f->owner[i]];
        if (__builtin_mul_overflow(f->time[i], (int64_t)r->quantum, &t) || !is_time(t))
            return false;
        if (f->ends[i]) {
            e->dur_ns = t - e->start_ns;
            if (e->dur_ns < 0)
                return false;
            continue;
        }
        if (t < before)
            return false;
        before = e->start_ns = t;
        e->dur_ns = 0;
    }
    return true;
}

static bool set_fields(const struct reading *r, struct mstx_event *ev)
{
    const int64_t(*cell)[MSTX_CHUNK_MAX] = (const int64_t(*)[MSTX_CHUNK_MAX])r->f->cell;
    int64_t bad = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const int64_t shape = cell[0][i];
        bad |=
            shape >> 32 | cell[1][i] >> 32 | cell[5][i] >> 32 | cell[6][i] >> 32 | cell[7][i] >> 32;
        bad |= (shape >> 8 & 0xFF) >= MSTX_EV_KINDS;
        ev[i].depth = (uint16_t)(shape >> 16);
        ev[i].kind = (uint8_t)(shape >> 8);
        ev[i].flags = (uint8_t)shape;
        ev[i].name = (uint32_t)cell[1][i];
        ev[i].id = (uint64_t)cell[2][i];
        ev[i].arg = (uint64_t)cell[3][i];
        ev[i].size = (uint64_t)cell[4][i];
        ev[i].count = (uint32_t)cell[5][i];
        ev[i].end_tid = (uint32_t)cell[6][i];
        ev[i].args = (uint32_t)cell[7][i];
    }
    return bad == 0;
}

enum ms_rc mstx__fold_events(struct mstx_fold *f, struct ms_str blob, struct mstx_event *ev,
                             uint32_t *n, struct ms_err *err)
{
    struct reading r = {.f = f};
    const int64_t *leader = NULL;
    uint32_t points = 0;
    *n = 0;
    mstx__parts_rest(&f->parts);
    MS_TRY(get_head(&r, blob, err));
    if (r.leader != 0)
        MS_TRY(mstx__fold_points(f, (int64_t)r.leader, &leader, &points, err));
    MS_TRY(get_points(&r, leader, points, err));
    if (!set_fields(&r, ev) || !set_times(&r, ev))
        return fail_damaged(err);
    *n = r.n;
    return MS_OK;
}

bool mstx__fold_has_name(struct mstx_fold *f, struct ms_str blob, mstx_name_test test, void *ctx)
{
    struct reading r = {.f = f};
    struct ms_err ignored = {0};
    int64_t before = -1;
    ms_assert(test != NULL);
    if (get_head(&r, blob, &ignored) != MS_OK)
        return true;
    (void)mstx_get_varint(&r.b);
    for (unsigned c = 0; c < 2; c++) {
        if (get_column(f, &r.b, f->cell[c], r.n, MSTX_FOLD_IN_CHUNK, &ignored) != MS_OK)
            return true;
    }
    for (uint32_t i = 0; i < r.n; i++) {
        if (f->cell[1][i] != before && test(ctx, (uint32_t)f->cell[1][i]))
            return true;
        before = f->cell[1][i];
    }
    return false;
}

static enum ms_rc read_chunk(struct mstx_fold *f, int64_t chunk, const struct mstx_event **ev,
                             uint32_t *n, struct ms_err *err)
{
    struct ms_str blob;
    *ev = f->ev;
    if (f->chunk != chunk) {
        f->chunk = 0;
        MS_TRY(get_blob(f, chunk, &blob, err));
        /* a leader would be fetched by the same statement */
        char *copy = ms_alloc((size_t)blob.n + 1);
        if (copy == NULL)
            return ms_no_memory(err);
        memcpy(copy, blob.p, blob.n);
        blob.p = copy;
        ms_stmt_reset(f->get_blob);
        const enum ms_rc rc = mstx__is_folded(blob) ? mstx__fold_events(f, blob, f->ev, &f->n, err)
                                                    : mstx_unpack(blob, f->ev, &f->n, err);
        ms_free(copy);
        MS_TRY(rc);
        f->chunk = chunk;
    }
    *n = f->n;
    return MS_OK;
}

/* ---- life --------------------------------------------------------------------------- */

enum ms_rc mstx__fold_new(struct mstx_fold **out, struct ms_store *s, struct ms_err *err)
{
    *out = ms_calloc(1, sizeof **out);
    if (*out == NULL)
        return ms_no_memory(err);
    (*out)->columns.read = read_column;
    (*out)->store = (*out)->parts.store = s;
    return MS_OK;
}

void mstx__fold_free(struct mstx_fold *f)
{
    if (f == NULL)
        return;
    mstx__parts_free(&f->parts);
    ms_stmt_free(f->get_blob);
    ms_free(f);
}

const struct mstx_folded_columns *mstx__fold_columns(const struct mstx_fold *f)
{
    return &f->columns;
}
