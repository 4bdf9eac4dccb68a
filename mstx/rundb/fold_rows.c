/* SPDX-License-Identifier: MIT
 *
 * fold_rows: folds the packed rows of run.db.
 */
#include "mstx/rundb/fold_write_int.h"

#include "mstx/rundb/run_schema.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

enum {
    HELD = 2 * MSTX_ROWS_MAX,
    /* slots of the first columns (fold_put.h) */
    CALLS_AT = MSTX_FOLD_EVENT_COLUMNS,
    JOINS_AT = CALLS_AT + MSTX_CALL_COLUMNS,
    SPANS_AT = JOINS_AT + MSTX_JOIN_COLUMNS,
    NAMES_AT = SPANS_AT + MSTX_SPAN_COLUMNS,
    STEPS_AT = NAMES_AT + MSTX_NAME_COLUMNS,
    RANK_STEPS_AT = STEPS_AT + MSTX_STEP_COLUMNS
};

/* A column that is told by its differences from another one, of the same row or the row before. */
struct other {
    uint8_t column_and_1; /* 0: none */
    bool is_before;
};

/* How the columns of a table are folded. */
struct table {
    const char *add;           /* SQL */
    unsigned columns, slot;    /* slot: of its first column */
    const uint8_t *hint;       /* by column; enum mstx_column_hint */
    uint32_t times;            /* a bit for each column that is a time */
    const struct other *other; /* by column; NULL: none */
    unsigned key;              /* the column by which the period is found */
    enum mstx_fold_rule rule;
    unsigned of; /* column of the rule */
};

/* Rows of a table while they are written. */
struct mstx_rows_room {
    struct mstx_folder *f;
    const struct table *table;
    struct ms_stmt *add;
    int64_t id; /* of the next blob */
    uint32_t n, period;
    int64_t *cell[MSTX_ROWS_COLUMNS]; /* HELD each */
    uint64_t *key;
    struct ms_buf bodies;
    size_t call; /* of the first row: its number in the process */
};

static enum ms_rc new_rows(struct mstx_rows_room **out, struct mstx_folder *f,
                           const struct table *t, struct ms_err *err)
{
    struct mstx_rows_room *r = *out = ms_calloc(1, sizeof *r);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct mstx_rows_room){.f = f, .table = t, .id = 1, .bodies = {.max = (size_t)1 << 26}};
    r->key = ms_calloc(HELD, sizeof *r->key);
    bool ok = r->key != NULL;
    for (unsigned c = 0; c < t->columns && ok; c++) {
        r->cell[c] = ms_calloc(HELD, sizeof *r->cell[c]);
        ok = r->cell[c] != NULL;
    }
    return ok ? ms_store_prepare(f->to, &r->add, t->add, err) : ms_no_memory(err);
}

static void free_rows(struct mstx_rows_room *r)
{
    if (r == NULL)
        return;
    for (unsigned c = 0; c < MSTX_ROWS_COLUMNS; c++)
        ms_free(r->cell[c]);
    ms_free(r->key);
    ms_buf_free(&r->bodies);
    ms_stmt_free(r->add);
    ms_free(r);
}

/* Appends the rows of a blob; times become multiples of the quantum. */
static enum ms_rc take_rows(struct mstx_rows_room *r, struct mstx_rows *from, uint32_t first,
                            uint32_t n, struct ms_err *err)
{
    ms_assert(r->n + n <= HELD);
    for (unsigned c = 0; c < r->table->columns; c++) {
        const int64_t *v = mstx__rows_column(from, c, err);
        if (v == NULL)
            return MS_E_FORMAT;
        memcpy(r->cell[c] + r->n, v + first, n * sizeof *v);
        for (uint32_t i = r->n; i < r->n + n && (r->table->times >> c & 1) != 0; i++) {
            if (r->cell[c][i] != MSTX_ROWS_NULL)
                r->cell[c][i] = mstx__fold_round(r->f, r->cell[c][i]);
        }
    }
    r->n += n;
    return MS_OK;
}

/* ---- columns ------------------------------------------------------------------------------ */

static void put_range(struct ms_buf *out, const int64_t *v, uint32_t n)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (uint32_t i = 0; i < n; i++) {
        low = v[i] != MSTX_ROWS_NULL && v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
    }
    const bool is_null = low > high;
    mstx_buf_varint(out, is_null ? 0 : mstx_zigzag((uint64_t)low));
    mstx_buf_varint(out, is_null ? 0 : (uint64_t)high - (uint64_t)low + 1);
}

/* Appends a stretch of events that follow each other in a chunk. */
static void put_stretch(struct ms_buf *out, const struct mstx_folded_call *c, uint32_t n)
{
    mstx_buf_varint(out, (uint64_t)c->chunk);
    mstx_buf_varint(out, c->place);
    mstx_buf_varint(out, n);
}

static uint32_t length_of(const struct mstx_folded_call *c, uint32_t n)
{
    uint32_t some = 1;
    while (some < n && c[some].chunk == c->chunk && c[some].place == c->place + some)
        some++;
    return some;
}

/* Writes starts or durations of calls as those of their events; false when a call has none. */
static bool put_events(struct mstx_rows_room *r, const struct mstx_folded_call *c, uint32_t n,
                       bool durations)
{
    enum { MOST = 256 };
    uint32_t stretches = 0;
    for (uint32_t i = 0; i < n; stretches++) {
        if (c[i].chunk == 0 || stretches == MOST)
            return false;
        i += length_of(c + i, n - i);
    }
    ms_buf_putc(&r->bodies, MSTX_FOLD_EVENTS);
    ms_buf_putc(&r->bodies, durations);
    mstx_buf_varint(&r->bodies, stretches);
    for (uint32_t i = 0; i < n;) {
        const uint32_t some = length_of(c + i, n - i);
        put_stretch(&r->bodies, c + i, some);
        i += some;
    }
    return true;
}

static enum ms_rc put_other(struct mstx_rows_room *r, unsigned c, const struct mstx_put_column *how,
                            uint32_t n, struct ms_err *err)
{
    const struct other *o = &r->table->other[c];
    const int64_t *other = r->cell[o->column_and_1 - 1];
    int64_t off[MSTX_ROWS_MAX];
    for (uint32_t i = 0; i < n; i++) {
        const int64_t from = !o->is_before ? other[i] : i != 0 ? other[i - 1] : 0;
        if (from == MSTX_ROWS_NULL || r->cell[c][i] == MSTX_ROWS_NULL)
            return mstx__put_column(r->f->put, &r->bodies, how, r->cell[c], n, err);
        off[i] = (int64_t)((uint64_t)r->cell[c][i] - (uint64_t)from);
    }
    ms_buf_putc(&r->bodies, MSTX_FOLD_OTHER);
    mstx_buf_varint(&r->bodies, o->column_and_1 - 1u);
    ms_buf_putc(&r->bodies, o->is_before);
    return mstx__put_column(r->f->put, &r->bodies, how, off, n, err);
}

static enum ms_rc put_column(struct mstx_rows_room *r, unsigned c, uint32_t n, struct ms_err *err)
{
    const struct mstx_folder *f = r->f;
    const bool is_time = (r->table->times >> c & 1) != 0;
    const struct mstx_put_column how = {.slot = r->table->slot + c,
                                        .hint = r->table->hint[c],
                                        .period = r->period <= n ? r->period : n,
                                        .quantum = is_time ? f->quantum : 1,
                                        .rule = r->table->rule,
                                        .of = r->table->of,
                                        .other = r->cell[r->table->of]};
    if (r->table->slot == CALLS_AT && (c == MSTX_CALL_START || c == MSTX_CALL_DUR) &&
        put_events(r, f->call.p + r->call, n, c == MSTX_CALL_DUR))
        return MS_OK;
    if (r->table->other != NULL && r->table->other[c].column_and_1 != 0)
        return put_other(r, c, &how, n, err);
    return mstx__put_column(r->f->put, &r->bodies, &how, r->cell[c], n, err);
}

/* Writes the first n rows that are held as a blob. */
static enum ms_rc write_blob(struct mstx_rows_room *r, uint32_t n, struct ms_err *err)
{
    struct ms_buf *head = &r->f->blob;
    ms_buf_clear(head);
    ms_buf_clear(&r->bodies);
    ms_buf_putc(head, MSTX_FOLDED);
    ms_buf_putc(head, (char)r->table->columns);
    mstx_buf_varint(head, n);
    for (unsigned c = 0; c < r->table->columns; c++) {
        const size_t before = r->bodies.n;
        MS_TRY(put_column(r, c, n, err));
        MS_TRY(ms_buf_check(&r->bodies, err));
        put_range(head, r->cell[c], n);
        mstx_buf_varint(head, r->bodies.n - before);
    }
    ms_buf_str(head, ms_buf_slice(&r->bodies));
    MS_TRY(ms_buf_check(head, err));
    ms_stmt_i64(r->add, 1, r->id);
    ms_stmt_i64(r->add, 2, n);
    ms_stmt_blob(r->add, 3, head->p, head->n);
    MS_TRY(ms_stmt_run(r->add, err));
    r->n -= n;
    for (unsigned c = 0; c < r->table->columns; c++)
        memmove(r->cell[c], r->cell[c] + n, r->n * sizeof *r->cell[c]);
    return MS_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static const uint8_t call_hints[MSTX_CALL_COLUMNS] = {
    [MSTX_CALL_GROUP] = MSTX_COLUMN_LOCAL,  [MSTX_CALL_PEER] = MSTX_COLUMN_LOCAL,
    [MSTX_CALL_STREAM] = MSTX_COLUMN_LOCAL, [MSTX_CALL_TID] = MSTX_COLUMN_LOCAL,
    [MSTX_CALL_START] = MSTX_COLUMN_GROWS,  [MSTX_CALL_DUR] = MSTX_COLUMN_VARIES,
};
static const struct table calls = {.add = "INSERT INTO packed_calls VALUES(?,?,?)",
                                   .columns = MSTX_CALL_COLUMNS,
                                   .slot = CALLS_AT,
                                   .hint = call_hints};

static enum ms_rc note_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    static const uint8_t keys[] = {MSTX_CALL_GROUP, MSTX_CALL_OP, MSTX_CALL_COUNT, MSTX_CALL_PEER,
                                   MSTX_CALL_NAME};
    struct mstx_folder *f = ctx;
    const int64_t *v[sizeof keys], *start = mstx__rows_column(rows, MSTX_CALL_START, err),
                                   *dur = mstx__rows_column(rows, MSTX_CALL_DUR, err);
    for (unsigned k = 0; k < sizeof keys; k++) {
        v[k] = mstx__rows_column(rows, keys[k], err);
        if (v[k] == NULL)
            return MS_E_FORMAT;
    }
    if (start == NULL || dur == NULL)
        return MS_E_FORMAT;
    if (!ms_vec_reserve(&f->call, f->call.n + rows->n))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < rows->n; i++) {
        uint64_t key = 0;
        for (unsigned k = 0; k < sizeof keys; k++)
            key = ms_hash_mix(key, (uint64_t)v[k][i]);
        f->call.p[f->call.n++] = (struct mstx_folded_call){start[i], dur[i], key, 0, 0};
    }
    return MS_OK;
}

enum ms_rc mstx__fold_take_calls(struct mstx_folder *f, size_t process, struct ms_err *err)
{
    f->call.n = f->calls_met = 0;
    return mstx__packed_calls_of(mstx__tl_packed(f->from), (int64_t)process + 1,
                                 (int64_t)process + 1, note_calls, f, err);
}

/* Rounds the times of calls as those of their events are. */
static void round_calls(struct mstx_rows_room *r, uint32_t first)
{
    int64_t *start = r->cell[MSTX_CALL_START], *dur = r->cell[MSTX_CALL_DUR];
    for (uint32_t i = first; i < r->n; i++) {
        const int64_t end = mstx__fold_round(r->f, start[i] + dur[i]);
        start[i] = mstx__fold_round(r->f, start[i]);
        dur[i] = end - start[i];
    }
}

/* Sets the keys of the first n rows. */
static void set_keys(struct mstx_rows_room *r, uint32_t n)
{
    const bool is_calls = r->table->slot == CALLS_AT;
    for (uint32_t i = 0; i < n; i++)
        r->key[i] = is_calls ? r->f->call.p[r->call + i].key : (uint64_t)r->cell[r->table->key][i];
}

/* Writes blobs of whole periods, when there are any. */
static enum ms_rc write_some(struct mstx_rows_room *r, bool all, struct ms_err *err)
{
    while (r->n >= MSTX_ROWS_MAX || (all && r->n != 0)) {
        const uint32_t most = r->n < MSTX_ROWS_MAX ? r->n : MSTX_ROWS_MAX;
        set_keys(r, most);
        r->period = mstx__find_period(r->key, most, r->f->period);
        const bool is_cut = r->period <= most / 2 && r->n > MSTX_ROWS_MAX;
        const uint32_t n = is_cut ? most / r->period * r->period : most;
        r->id = r->table->slot == CALLS_AT ? r->cell[MSTX_CALL_ID][0] : r->id;
        MS_TRY(write_blob(r, n, err));
        r->call += n;
        r->id++;
    }
    return MS_OK;
}

static enum ms_rc take_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    struct mstx_rows_room *r = ctx;
    const uint32_t first = r->n;
    MS_TRY(take_rows(r, rows, 0, rows->n, err));
    round_calls(r, first);
    return write_some(r, false, err);
}

enum ms_rc mstx__fold_calls(struct mstx_folder *f, size_t process, struct ms_err *err)
{
    if (f->calls == NULL)
        MS_TRY(new_rows(&f->calls, f, &calls, err));
    f->calls->n = 0;
    f->calls->call = 0;
    MS_TRY(mstx__packed_calls_of(mstx__tl_packed(f->from), (int64_t)process + 1,
                                 (int64_t)process + 1, take_calls, f->calls, err));
    return write_some(f->calls, true, err);
}

void mstx__fold_calls_end(struct mstx_folder *f)
{
    free_rows(f->calls);
    f->calls = NULL;
}

/* ---- joins ------------------------------------------------------------------------------------ */

static const uint8_t join_hints[MSTX_JOIN_COLUMNS] = {
    [MSTX_JOIN_GROUP] = MSTX_COLUMN_LOCAL,     [MSTX_JOIN_START] = MSTX_COLUMN_GROWS,
    [MSTX_JOIN_TRANSFER] = MSTX_COLUMN_VARIES, [MSTX_JOIN_SKEW] = MSTX_COLUMN_VARIES,
    [MSTX_JOIN_WAITED] = MSTX_COLUMN_VARIES,   [MSTX_JOIN_LAST] = MSTX_COLUMN_VARIES,
};
static const struct table joins = {.add = "INSERT INTO packed_joins VALUES(?,?,?)",
                                   .columns = MSTX_JOIN_COLUMNS,
                                   .slot = JOINS_AT,
                                   .hint = join_hints,
                                   .times = 1u << MSTX_JOIN_START | 1u << MSTX_JOIN_TRANSFER |
                                            1u << MSTX_JOIN_SKEW | 1u << MSTX_JOIN_WAITED,
                                   .rule = MSTX_RULE_CHANGE,
                                   .of = MSTX_JOIN_STEP};

/* ---- spans ------------------------------------------------------------------------------------ */

static const uint8_t span_hints[MSTX_SPAN_COLUMNS] = {
    [MSTX_SPAN_START] = MSTX_COLUMN_VARIES,
    [MSTX_SPAN_END] = MSTX_COLUMN_GROWS,
};
static const struct other span_others[MSTX_SPAN_COLUMNS] = {
    [MSTX_SPAN_START] = {MSTX_SPAN_END + 1, true}};
static const struct table spans = {.add = "INSERT INTO packed_spans VALUES(?,?,?)",
                                   .columns = MSTX_SPAN_COLUMNS,
                                   .slot = SPANS_AT,
                                   .hint = span_hints,
                                   .other = span_others,
                                   .times = 1u << MSTX_SPAN_START | 1u << MSTX_SPAN_END,
                                   .rule = MSTX_RULE_PAIR,
                                   .of = MSTX_SPAN_KIND};

/* Copies each blob as a folded one of the same id. */
static enum ms_rc fold_blobs(struct mstx_folder *f, const struct table *t, const char *sql,
                             struct ms_err *err)
{
    struct mstx_rows_room *r = NULL;
    struct mstx_rows rows;
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(f->from), &st, sql, err));
    enum ms_rc rc = mstx__rows_new(&rows, err);
    if (rc == MS_OK)
        rc = new_rows(&r, f, t, err);
    while (rc == MS_OK && ms_stmt_next(st, &rc, err)) {
        r->id = ms_stmt_get_i64(st, 0);
        rc = mstx__rows_look(&rows, ms_stmt_get_blob(st, 1), t->columns, err);
        if (rc == MS_OK)
            rc = take_rows(r, &rows, 0, rows.n, err);
        r->period = 1;
        if (rc == MS_OK)
            rc = write_blob(r, r->n, err);
    }
    free_rows(r);
    mstx__rows_free(&rows);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__fold_joins(struct mstx_folder *f, struct ms_err *err)
{
    return fold_blobs(f, &joins, "SELECT id, data FROM packed_joins ORDER BY id", err);
}

enum ms_rc mstx__fold_spans(struct mstx_folder *f, struct ms_err *err)
{
    return fold_blobs(f, &spans, "SELECT id, data FROM packed_spans ORDER BY id", err);
}

/* ---- tables that are packed only when they are folded ---------------------------------------- */

static const uint8_t name_hints[MSTX_NAME_COLUMNS] = {
    [MSTX_NAME_TOTAL] = MSTX_COLUMN_VARIES, [MSTX_NAME_MIN] = MSTX_COLUMN_VARIES,
    [MSTX_NAME_MAX] = MSTX_COLUMN_VARIES,   [MSTX_NAME_FIRST] = MSTX_COLUMN_GROWS,
    [MSTX_NAME_LAST] = MSTX_COLUMN_VARIES,
};
static const struct other name_others[MSTX_NAME_COLUMNS] = {
    [MSTX_NAME_MIN] = {MSTX_NAME_TOTAL + 1, false},
    [MSTX_NAME_MAX] = {MSTX_NAME_TOTAL + 1, false},
    [MSTX_NAME_LAST] = {MSTX_NAME_FIRST + 1, false},
};
static const struct table names = {.add = "INSERT INTO packed_names VALUES(?,?,?)",
                                   .columns = MSTX_NAME_COLUMNS,
                                   .slot = NAMES_AT,
                                   .hint = name_hints,
                                   .other = name_others,
                                   .key = MSTX_NAME_NAME,
                                   .rule = MSTX_RULE_PAIR,
                                   .of = MSTX_NAME_EVENTS};

static const uint8_t step_hints[MSTX_STEP_COLUMNS] = {
    [MSTX_STEP_START] = MSTX_COLUMN_VARIES, [MSTX_STEP_END] = MSTX_COLUMN_GROWS};
static const struct other step_others[MSTX_STEP_COLUMNS] = {
    [MSTX_STEP_START] = {MSTX_STEP_END + 1, true}};
static const struct table steps = {.add = "INSERT INTO packed_steps VALUES(?,?,?)",
                                   .columns = MSTX_STEP_COLUMNS,
                                   .slot = STEPS_AT,
                                   .hint = step_hints,
                                   .other = step_others,
                                   .key = MSTX_STEP_NUMBER,
                                   .rule = MSTX_RULE_CHANGE,
                                   .of = MSTX_STEP_PROCESS};

static const uint8_t rank_step_hints[MSTX_RANK_STEP_COLUMNS] = {
    [MSTX_RANK_STEP_START] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_END] = MSTX_COLUMN_GROWS,
    [MSTX_RANK_STEP_COMPUTING] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_COMM] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_EXPOSED] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_OVERLAPPED] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_FREE] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_BUBBLE] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_PREPARING] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_WAITING] = MSTX_COLUMN_VARIES,
    [MSTX_RANK_STEP_BLAME] = MSTX_COLUMN_VARIES,
};
static const struct other rank_step_others[MSTX_RANK_STEP_COLUMNS] = {
    [MSTX_RANK_STEP_START] = {MSTX_RANK_STEP_END + 1, true},
    [MSTX_RANK_STEP_EXPOSED] = {MSTX_RANK_STEP_COMM + 1, false},
};
static const struct table rank_steps = {.add = "INSERT INTO packed_rank_steps VALUES(?,?,?)",
                                        .columns = MSTX_RANK_STEP_COLUMNS,
                                        .slot = RANK_STEPS_AT,
                                        .hint = rank_step_hints,
                                        .other = rank_step_others,
                                        .key = MSTX_RANK_STEP_STEP,
                                        .rule = MSTX_RULE_CHANGE,
                                        .of = MSTX_RANK_STEP_PROCESS};

/* Numbers of texts, by text. */
static enum ms_rc list_texts(struct mstx_folder *f, struct ms_map *text, struct ms_arena *arena,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_store_prepare(mstx_tl_store(f->from), &st,
                            "SELECT id, value FROM strings ORDER BY id", err));
    while (ms_stmt_next(st, &rc, err)) {
        const struct ms_str value = ms_stmt_get_str(st, 1);
        if (ms_stmt_get_i64(st, 0) != (int64_t)text->keys.n + 1)
            rc = ms_fail(err, MS_E_FORMAT, "the texts of run.db are not numbered from 1");
        else if (ms_map_put_copy(text, value, arena, NULL) == MS_MAP_NONE)
            rc = ms_no_memory(err);
    }
    ms_stmt_free(st);
    return rc;
}

/* Appends the current row of a statement; texts become their numbers. */
static enum ms_rc take_row(struct mstx_rows_room *r, struct ms_stmt *st, const struct ms_map *text,
                           struct ms_err *err)
{
    for (unsigned c = 0; c < r->table->columns; c++) {
        const bool is_text = r->table->slot == STEPS_AT && c == MSTX_STEP_NAME;
        int64_t v = MSTX_ROWS_NULL;
        if (!ms_stmt_is_null(st, (int)c))
            v = is_text ? (int64_t)ms_map_get(text, ms_stmt_get_str(st, (int)c)) + 1
                        : ms_stmt_get_i64(st, (int)c);
        if (is_text && v > UINT32_MAX)
            return ms_fail(err, MS_E_FORMAT, "the name of a step is not among the texts of run.db");
        r->cell[c][r->n] = v;
    }
    r->n++;
    return write_some(r, false, err);
}

static enum ms_rc fold_table(struct mstx_folder *f, const struct table *t, const char *sql,
                             const struct ms_map *text, struct ms_err *err)
{
    struct mstx_rows_room *r = NULL;
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(f->from), &st, sql, err));
    enum ms_rc rc = new_rows(&r, f, t, err);
    while (rc == MS_OK && ms_stmt_next(st, &rc, err))
        rc = take_row(r, st, text, err);
    if (rc == MS_OK)
        rc = write_some(r, true, err);
    free_rows(r);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__fold_figures(struct mstx_folder *f, struct ms_err *err)
{
    static const size_t TEXTS_MAX = (size_t)1 << 34;
    struct ms_map text = {0};
    struct ms_arena *arena = ms_arena_new(TEXTS_MAX);
    enum ms_rc rc = arena != NULL ? list_texts(f, &text, arena, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = fold_table(f, &names, "SELECT * FROM names ORDER BY track, name", &text, err);
    if (rc == MS_OK)
        rc = fold_table(f, &steps, "SELECT * FROM steps ORDER BY process, start_ns, number", &text,
                        err);
    if (rc == MS_OK)
        rc = fold_table(f, &rank_steps, "SELECT * FROM rank_steps ORDER BY rowid", &text, err);
    ms_map_free(&text);
    ms_arena_free(arena);
    return rc;
}
