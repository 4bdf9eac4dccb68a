/* SPDX-License-Identifier: MIT
 *
 * packed_tables: see the header.
 */
#include "mstx/rundb/packed_tables.h"

#include "mstx/format/comm.h"
#include "mstx/format/comm_rates.h"
#include "mstx/format/span_kinds.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/store_vtab.h"

#include <stddef.h>

/* ---- writing ---------------------------------------------------------------- */

static enum ms_rc new_out(struct mstx_packed_out *p, struct ms_store *s, const char *sql,
                          unsigned columns, struct ms_err *err)
{
    *p = (struct mstx_packed_out){.add = NULL};
    MS_TRY(mstx__rows_out_new(&p->rows, columns, err));
    enum ms_rc rc = ms_store_prepare(s, &p->add, sql, err);
    if (rc != MS_OK)
        mstx__packed_free(p);
    return rc;
}

enum ms_rc mstx__packed_calls_new(struct mstx_packed_out *p, struct ms_store *s, struct ms_err *err)
{
    return new_out(p, s, "INSERT INTO packed_calls VALUES(?,?,?)", MSTX_CALL_COLUMNS, err);
}

enum ms_rc mstx__packed_joins_new(struct mstx_packed_out *p, struct ms_store *s, struct ms_err *err)
{
    return new_out(p, s, "INSERT INTO packed_joins VALUES(?,?,?)", MSTX_JOIN_COLUMNS, err);
}

enum ms_rc mstx__packed_spans_new(struct mstx_packed_out *p, struct ms_store *s, struct ms_err *err)
{
    return new_out(p, s, "INSERT INTO packed_spans VALUES(?,?,?)", MSTX_SPAN_COLUMNS, err);
}

enum ms_rc mstx__packed_copy(struct mstx_packed_out *p, int64_t id, uint32_t rows,
                             struct ms_str blob, struct ms_err *err)
{
    ms_assert(id >= 1 && rows >= 1 && rows <= MSTX_ROWS_MAX);
    ms_stmt_i64(p->add, 1, id);
    ms_stmt_i64(p->add, 2, rows);
    ms_stmt_blob(p->add, 3, blob.p, blob.n);
    return ms_stmt_run(p->add, err);
}

enum ms_rc mstx__packed_flush(struct mstx_packed_out *p, int64_t id, struct ms_err *err)
{
    ms_assert(p->rows.n <= MSTX_ROWS_MAX);
    const uint32_t n = p->rows.n;
    if (n == 0)
        return MS_OK;
    MS_TRY(mstx__rows_pack(&p->rows, err));
    return mstx__packed_copy(p, id, n, ms_buf_slice(&p->rows.packed), err);
}

void mstx__packed_free(struct mstx_packed_out *p)
{
    mstx__rows_out_free(&p->rows);
    ms_stmt_free(p->add);
    p->add = NULL;
}

/* ---- scanning --------------------------------------------------------------- */

/* Description of one virtual table. */
struct kind {
    const char *all, *one; /* SQL that returns (id, data) of all blobs, and of one blob by its id */
    size_t index;          /* offset of its index in struct mstx_packed_source */
    unsigned packed;       /* number of packed columns */
    const int8_t *of;      /* by SQL column: the packed column with the same values, -1: none */
    /* Returns the value of an SQL column in a row. */
    enum ms_rc (*give)(const struct mstx_packed_source *from, struct mstx_rows *r, uint32_t at,
                       int column, struct ms_value *v, struct ms_err *err);
};

struct bound {
    unsigned column;
    int64_t low, high;
};

struct scan {
    const struct mstx_packed_source *from;
    const struct kind *kind;
    struct mstx_packed_index *index;
    struct ms_stmt *blobs;
    bool is_indexed; /* the statement `blobs` fetches one blob by its id */
    int64_t held;    /* id of the blob that it fetched last, whose rows are looked at */
    bool is_held;
    size_t place; /* of the next blob */
    struct mstx_rows rows;
    uint32_t at;
    bool at_end;
    unsigned n;
    struct bound bound[MSTX_ROWS_COLUMNS];
    const int64_t *cell[MSTX_ROWS_COLUMNS]; /* columns of the bounds in the current blob */
};

static enum ms_rc open_scan(const struct kind *kind, struct mstx_packed_source *from, void **cursor,
                            struct ms_err *err)
{
    struct scan *s = ms_calloc(1, sizeof *s);
    *cursor = s;
    if (s == NULL)
        return ms_no_memory(err);
    s->from = from;
    s->kind = kind;
    s->index = (struct mstx_packed_index *)((char *)from + kind->index);
    enum ms_rc rc = mstx__rows_new(&s->rows, err);
    s->rows.folded = from->folded;
    if (rc != MS_OK)
        ms_free(s);
    return rc;
}

static void close_scan(void *cursor)
{
    struct scan *s = cursor;
    ms_stmt_free(s->blobs);
    mstx__rows_free(&s->rows);
    ms_free(s);
}

static struct bound *bound_of(struct scan *s, unsigned column)
{
    ms_assert(column < s->kind->packed);
    for (unsigned i = 0; i < s->n; i++) {
        if (s->bound[i].column == column)
            return &s->bound[i];
    }
    s->bound[s->n] = (struct bound){column, INT64_MIN + 1, INT64_MAX}; /* excludes NULL */
    return &s->bound[s->n++];
}

static void set_bounds(struct scan *s, const struct ms_bound *bound, int n)
{
    s->n = 0;
    for (int i = 0; i < n; i++) {
        struct bound *b = bound_of(s, (unsigned)s->kind->of[bound[i].column]);
        const int64_t v = bound[i].value;
        if (bound[i].op != MS_BOUND_LE)
            b->low = v > b->low ? v : b->low;
        if (bound[i].op != MS_BOUND_GE)
            b->high = v < b->high ? v : b->high;
    }
}

static bool may_hold(const struct scan *s, const struct mstx_packed_ranges *r)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct bound *b = &s->bound[i];
        if (r->high[b->column] < b->low || r->low[b->column] > b->high)
            return false;
    }
    return true;
}

static enum ms_rc unpack_bounds(struct scan *s, struct ms_err *err)
{
    ms_assert(s->rows.n >= 1);
    for (unsigned i = 0; i < s->n; i++) {
        s->cell[i] = mstx__rows_column(&s->rows, s->bound[i].column, err);
        if (s->cell[i] == NULL)
            return MS_E_FORMAT;
    }
    return MS_OK;
}

static enum ms_rc read_blob(struct scan *s, struct ms_err *err)
{
    s->at = 0;
    return mstx__rows_look(&s->rows, ms_stmt_get_blob(s->blobs, 1), s->kind->packed, err);
}

/* Fetches the next blob of a full scan and adds it to the index. */
static enum ms_rc stream_blob(struct scan *s, struct ms_err *err)
{
    bool more;
    MS_TRY(ms_stmt_step(s->blobs, &more, err));
    s->at_end = !more;
    s->index->is_complete |= !more;
    if (!more)
        return MS_OK;
    MS_TRY(read_blob(s, err));
    return mstx__packed_index_add(s->index, s->place, ms_stmt_get_i64(s->blobs, 0), &s->rows, err);
}

/* Fetches a blob by its id when it may hold matching rows. */
static enum ms_rc fetch_blob(struct scan *s, struct ms_err *err)
{
    bool more;
    s->at_end = s->place >= s->index->blobs.n;
    if (s->at_end || !may_hold(s, &s->index->blobs.p[s->place]))
        return MS_OK;
    const int64_t id = s->index->blobs.p[s->place].id;
    s->at = 0;
    if (s->is_held && s->held == id)
        return MS_OK;
    s->is_held = false;
    ms_stmt_reset(s->blobs);
    ms_stmt_i64(s->blobs, 1, id);
    MS_TRY(ms_stmt_step(s->blobs, &more, err));
    if (!more)
        return ms_fail(err, MS_E_FORMAT, "a packed table changed while it was read");
    MS_TRY(read_blob(s, err));
    s->held = id;
    s->is_held = true;
    return MS_OK;
}

/* Finds the next blob that may hold matching rows. */
static enum ms_rc next_blob(struct scan *s, struct ms_err *err)
{
    for (;;) {
        MS_TRY(s->is_indexed ? fetch_blob(s, err) : stream_blob(s, err));
        if (s->at_end)
            return MS_OK;
        if (may_hold(s, &s->index->blobs.p[s->place++]))
            return unpack_bounds(s, err);
    }
}

static bool is_wanted(const struct scan *s)
{
    ms_assert(s->at < s->rows.n);
    for (unsigned i = 0; i < s->n; i++) {
        const int64_t v = s->cell[i][s->at];
        if (v < s->bound[i].low || v > s->bound[i].high)
            return false;
    }
    return true;
}

static enum ms_rc find_row(struct scan *s, struct ms_err *err)
{
    for (;;) {
        while (s->at < s->rows.n && !is_wanted(s))
            s->at++;
        if (s->at < s->rows.n || s->at_end)
            return MS_OK;
        MS_TRY(next_blob(s, err));
        if (s->at_end)
            return MS_OK;
    }
}

static enum ms_rc prepare_scan(struct scan *s, const struct ms_bound *bound, int n,
                               struct ms_err *err)
{
    s->at_end = false;
    s->place = 0;
    set_bounds(s, bound, n);
    s->at = s->rows.n; /* no row of the blob that is held, until it is found again */
    if (s->is_held)    /* of lookups one after the other, most are in the same blob */
        return MS_OK;
    ms_stmt_free(s->blobs);
    s->blobs = NULL;
    s->rows.n = s->at = 0;
    s->is_indexed = s->index->is_complete;
    return ms_store_prepare(s->from->store, &s->blobs, s->is_indexed ? s->kind->one : s->kind->all,
                            err);
}

static enum ms_rc start_scan(void *cursor, const struct ms_bound *bound, int n, struct ms_err *err)
{
    MS_TRY(prepare_scan(cursor, bound, n, err));
    return find_row(cursor, err);
}

static enum ms_rc next_row(void *cursor, struct ms_err *err)
{
    struct scan *s = cursor;
    s->at++;
    return find_row(s, err);
}

static bool is_at_end(const void *cursor)
{
    return ((const struct scan *)cursor)->at_end;
}

static enum ms_rc give_column(void *cursor, int column, struct ms_value *v, struct ms_err *err)
{
    struct scan *s = cursor;
    ms_assert(s->at < s->rows.n);
    return s->kind->give(s->from, &s->rows, s->at, column, v, err);
}

/* ---- values ----------------------------------------------------------------- */

/* Returns a cell as an SQL value. */
static enum ms_rc give_cell(struct mstx_rows *r, unsigned column, uint32_t at, struct ms_value *v,
                            struct ms_err *err)
{
    ms_assert(at < r->n);
    const int64_t *cell = mstx__rows_column(r, column, err);
    if (cell == NULL)
        return MS_E_FORMAT;
    v->i = cell[at];
    v->type = v->i != MSTX_ROWS_NULL ? MS_VALUE_INT : MS_VALUE_NULL;
    return MS_OK;
}

static void give_word(struct ms_value *v, const char *word)
{
    v->type = MS_VALUE_TEXT;
    v->s = ms_str_of(word);
}

/* ---- calls ------------------------------------------------------------------ */

enum call_sql {
    NAME = 6,
    OP,
    CLASS,
    LIB,
    TYPE,
    REDUCE,
    COUNT,
    ELEM,
    BYTES,
    SENT,
    START = 21,
    END,
    POLLS = 24
};

static const int8_t call_of[] = {
    MSTX_CALL_ID,     MSTX_CALL_PROCESS,  MSTX_CALL_RANK,  MSTX_CALL_TID,    MSTX_CALL_GROUP,
    MSTX_CALL_SEQ,    MSTX_CALL_NAME,     MSTX_CALL_OP,    MSTX_CALL_OP,     MSTX_CALL_LIB,
    MSTX_CALL_TYPE,   MSTX_CALL_REDUCE,   MSTX_CALL_COUNT, MSTX_CALL_ELEM,   MSTX_CALL_COUNT,
    MSTX_CALL_SENT,   MSTX_CALL_RECEIVED, MSTX_CALL_PEER,  MSTX_CALL_TAG,    MSTX_CALL_FLAGS,
    MSTX_CALL_STREAM, MSTX_CALL_START,    MSTX_CALL_DUR,   MSTX_CALL_DEVICE, MSTX_CALL_SENT,
};

static enum ms_rc give_sum(struct mstx_rows *r, uint32_t at, int column, struct ms_value *v,
                           struct ms_err *err)
{
    struct ms_value other;
    MS_TRY(give_cell(r, column == END ? MSTX_CALL_START : MSTX_CALL_ELEM, at, &other, err));
    const uint64_t a = (uint64_t)v->i, b = (uint64_t)other.i;
    v->i = (int64_t)(column == END ? a + b : a * b);
    return MS_OK;
}

/* Returns the bytes sent or the number of polls, which share a packed column: polls for tests and
 * probes, bytes for other calls. */
static enum ms_rc give_sent_or_polls(struct mstx_rows *r, uint32_t at, int column,
                                     struct ms_value *v, struct ms_err *err)
{
    struct ms_value op;
    MS_TRY(give_cell(r, MSTX_CALL_OP, at, &op, err));
    if (mstx_comm_op_asks((unsigned)op.i) == (column == POLLS))
        return MS_OK;
    v->type = column == POLLS ? MS_VALUE_INT : MS_VALUE_NULL;
    v->i = 1;
    return MS_OK;
}

static enum ms_rc give_call(const struct mstx_packed_source *from, struct mstx_rows *r, uint32_t at,
                            int column, struct ms_value *v, struct ms_err *err)
{
    MS_TRY(give_cell(r, (unsigned)call_of[column], at, v, err));
    const unsigned number = (unsigned)v->i;
    switch (column) {
    case NAME:
        v->type = MS_VALUE_TEXT;
        v->s = from->text(from->ctx, number);
        break;
    case OP:
        give_word(v, mstx_comm_op_text(number));
        break;
    case CLASS:
        v->i = mstx_comm_op_class(number);
        break;
    case LIB:
        give_word(v, mstx_comm_lib_text(number));
        break;
    case TYPE:
        give_word(v, mstx_comm_type_text(number));
        break;
    case REDUCE:
        give_word(v, mstx_comm_reduce_text(number));
        break;
    case SENT:
    case POLLS:
        return give_sent_or_polls(r, at, column, v, err);
    case BYTES:
    case END:
        return give_sum(r, at, column, v, err);
    default:
        break;
    }
    return MS_OK;
}

#define CALL_BLOBS "SELECT id, data FROM packed_calls"
static const struct kind calls = {.all = CALL_BLOBS " ORDER BY id",
                                  .one = CALL_BLOBS " WHERE id = ?",
                                  .index = offsetof(struct mstx_packed_source, calls),
                                  .packed = MSTX_CALL_COLUMNS,
                                  .of = call_of,
                                  .give = give_call};

static enum ms_rc open_calls(void *ctx, void **cursor, struct ms_err *err)
{
    return open_scan(&calls, ctx, cursor, err);
}

static const struct ms_table calls_table = {
    .name = "comm_ops",
    .columns = "id INTEGER, process INTEGER, rank INTEGER, tid INTEGER, comm_group INTEGER,"
               " seq INTEGER, name TEXT, op TEXT, class INTEGER, lib TEXT, type TEXT, reduce TEXT,"
               " count INTEGER, elem_bytes INTEGER, bytes INTEGER, sent INTEGER, received INTEGER,"
               " peer INTEGER, tag INTEGER, flags INTEGER, stream INTEGER, start_ns INTEGER,"
               " end_ns INTEGER, device INTEGER, polls INTEGER",
    .usable = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << START,
    .open = open_calls,
    .close = close_scan,
    .start = start_scan,
    .next = next_row,
    .at_end = is_at_end,
    .column = give_column,
};

/* ---- joins ------------------------------------------------------------------ */

enum join_sql { JOIN_OP = 2, ALGORITHM = 13, BUS };

static const int8_t join_of[] = {
    MSTX_JOIN_GROUP,   MSTX_JOIN_SEQ,    MSTX_JOIN_OP,    MSTX_JOIN_STEP,  MSTX_JOIN_RANKS,
    MSTX_JOIN_MISSING, MSTX_JOIN_AGREES, MSTX_JOIN_BYTES, MSTX_JOIN_START, MSTX_JOIN_TRANSFER,
    MSTX_JOIN_SKEW,    MSTX_JOIN_WAITED, MSTX_JOIN_LAST,  MSTX_JOIN_OP,    MSTX_JOIN_OP,
};

/* Returns the rate in 10^9 bytes per second, 0 when the transfer time is unknown. */
static enum ms_rc give_rate(struct mstx_rows *r, uint32_t at, int column, struct ms_value *v,
                            struct ms_err *err)
{
    const unsigned op = (unsigned)v->i;
    struct ms_value bytes, ranks, transfer;
    MS_TRY(give_cell(r, MSTX_JOIN_BYTES, at, &bytes, err));
    MS_TRY(give_cell(r, MSTX_JOIN_RANKS, at, &ranks, err));
    MS_TRY(give_cell(r, MSTX_JOIN_TRANSFER, at, &transfer, err));
    v->type = MS_VALUE_REAL;
    v->f = 0;
    if (transfer.i > 0)
        v->f = mstx_comm_algorithm_bytes(op, (uint64_t)bytes.i, ranks.i) / (double)transfer.i;
    if (column == BUS)
        v->f *= mstx_comm_bus_factor(op, ranks.i);
    return MS_OK;
}

static enum ms_rc give_join(const struct mstx_packed_source *from, struct mstx_rows *r, uint32_t at,
                            int column, struct ms_value *v, struct ms_err *err)
{
    (void)from;
    MS_TRY(give_cell(r, (unsigned)join_of[column], at, v, err));
    if (column == JOIN_OP)
        give_word(v, mstx_comm_op_text((unsigned)v->i));
    return column >= ALGORITHM ? give_rate(r, at, column, v, err) : MS_OK;
}

#define JOIN_BLOBS "SELECT id, data FROM packed_joins"
static const struct kind joins = {.all = JOIN_BLOBS " ORDER BY id",
                                  .one = JOIN_BLOBS " WHERE id = ?",
                                  .index = offsetof(struct mstx_packed_source, joins),
                                  .packed = MSTX_JOIN_COLUMNS,
                                  .of = join_of,
                                  .give = give_join};

static enum ms_rc open_joins(void *ctx, void **cursor, struct ms_err *err)
{
    return open_scan(&joins, ctx, cursor, err);
}

static const struct ms_table joins_table = {
    .name = "joins",
    .columns = "comm_group INTEGER, seq INTEGER, op TEXT, step INTEGER, ranks INTEGER,"
               " missing INTEGER, agrees INTEGER, bytes INTEGER, start_ns INTEGER,"
               " transfer_ns INTEGER, skew_ns INTEGER, waited_ns INTEGER, last_rank INTEGER,"
               " algorithm_gbs REAL, bus_gbs REAL",
    .usable = 0x1FFFu & ~(1u << JOIN_OP),
    .open = open_joins,
    .close = close_scan,
    .start = start_scan,
    .next = next_row,
    .at_end = is_at_end,
    .column = give_column,
};

/* ---- spans of replays -------------------------------------------------------- */

enum { SPAN_KIND = 5 }; /* column of SQL */

static const char *const span_kinds[MSTX_SPAN_KINDS] = {"work", "wait", "comm"};

static const int8_t span_of[] = {
    MSTX_SPAN_OF,   MSTX_SPAN_PROCESS, MSTX_SPAN_RANK,  MSTX_SPAN_TID,
    MSTX_SPAN_STEP, MSTX_SPAN_KIND,    MSTX_SPAN_START, MSTX_SPAN_END,
};

static enum ms_rc give_span(const struct mstx_packed_source *from, struct mstx_rows *r, uint32_t at,
                            int column, struct ms_value *v, struct ms_err *err)
{
    (void)from;
    MS_TRY(give_cell(r, (unsigned)span_of[column], at, v, err));
    if (column == SPAN_KIND)
        give_word(v, v->i >= 0 && v->i < MSTX_SPAN_KINDS ? span_kinds[v->i] : "");
    return MS_OK;
}

#define SPAN_BLOBS "SELECT id, data FROM packed_spans"
static const struct kind spans = {.all = SPAN_BLOBS " ORDER BY id",
                                  .one = SPAN_BLOBS " WHERE id = ?",
                                  .index = offsetof(struct mstx_packed_source, spans),
                                  .packed = MSTX_SPAN_COLUMNS,
                                  .of = span_of,
                                  .give = give_span};

static enum ms_rc open_spans(void *ctx, void **cursor, struct ms_err *err)
{
    return open_scan(&spans, ctx, cursor, err);
}

static const struct ms_table spans_table = {
    .name = "replay_spans",
    .columns =
        "timeline INTEGER, process INTEGER, rank INTEGER, tid INTEGER, step INTEGER, kind TEXT,"
        " start_ns INTEGER, end_ns INTEGER",
    .usable = 0xFFu & ~(1u << SPAN_KIND),
    .open = open_spans,
    .close = close_scan,
    .start = start_scan,
    .next = next_row,
    .at_end = is_at_end,
    .column = give_column,
};

/* ---- tables of folded databases ------------------------------------------------- */

static const int8_t same_of[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
static_assert((int)MSTX_RANK_STEP_COLUMNS <= (int)sizeof same_of,
              "every column has its packed one");

static enum ms_rc give_same(const struct mstx_packed_source *from, struct mstx_rows *r, uint32_t at,
                            int column, struct ms_value *v, struct ms_err *err)
{
    (void)from;
    return give_cell(r, (unsigned)column, at, v, err);
}

static enum ms_rc give_step(const struct mstx_packed_source *from, struct mstx_rows *r, uint32_t at,
                            int column, struct ms_value *v, struct ms_err *err)
{
    MS_TRY(give_cell(r, (unsigned)column, at, v, err));
    if (column == MSTX_STEP_NAME && v->type == MS_VALUE_INT) {
        v->type = MS_VALUE_TEXT;
        v->s = from->text(from->ctx, (uint32_t)v->i);
    }
    return MS_OK;
}

#define KIND(table, member, columns, how)                                                          \
    {                                                                                              \
        .all = "SELECT id, data FROM " table " ORDER BY id",                                       \
        .one = "SELECT id, data FROM " table " WHERE id = ?",                                      \
        .index = offsetof(struct mstx_packed_source, member), .packed = columns, .of = same_of,    \
        .give = how                                                                                \
    }
static const struct kind names = KIND("packed_names", names, MSTX_NAME_COLUMNS, give_same);
static const struct kind steps = KIND("packed_steps", steps, MSTX_STEP_COLUMNS, give_step);
static const struct kind rank_steps =
    KIND("packed_rank_steps", rank_steps, MSTX_RANK_STEP_COLUMNS, give_same);

static enum ms_rc open_names(void *ctx, void **cursor, struct ms_err *err)
{
    return open_scan(&names, ctx, cursor, err);
}

static enum ms_rc open_steps(void *ctx, void **cursor, struct ms_err *err)
{
    return open_scan(&steps, ctx, cursor, err);
}

static enum ms_rc open_rank_steps(void *ctx, void **cursor, struct ms_err *err)
{
    return open_scan(&rank_steps, ctx, cursor, err);
}

static const struct ms_table names_table = {
    .name = "names",
    .columns = "track INTEGER, name INTEGER, events INTEGER, total_ns INTEGER, min_ns INTEGER,"
               " max_ns INTEGER, first_ns INTEGER, last_ns INTEGER, unfinished INTEGER",
    .usable = 1u << MSTX_NAME_TRACK | 1u << MSTX_NAME_NAME,
    .open = open_names,
    .close = close_scan,
    .start = start_scan,
    .next = next_row,
    .at_end = is_at_end,
    .column = give_column,
};

static const struct ms_table steps_table = {
    .name = "steps",
    .columns = "process INTEGER, number INTEGER, name TEXT, start_ns INTEGER, end_ns INTEGER",
    .usable = 0x1Fu & ~(1u << MSTX_STEP_NAME),
    .open = open_steps,
    .close = close_scan,
    .start = start_scan,
    .next = next_row,
    .at_end = is_at_end,
    .column = give_column,
};

static const struct ms_table rank_steps_table = {
    .name = "rank_steps",
    .columns = "process INTEGER, rank INTEGER, step INTEGER, start_ns INTEGER, end_ns INTEGER,"
               " computing_ns INTEGER, communication_ns INTEGER, exposed_ns INTEGER,"
               " overlapped_ns INTEGER, free_ns INTEGER, bubble_ns INTEGER, preparing_ns INTEGER,"
               " waiting_ns INTEGER, blame_ns INTEGER",
    .usable = 0x1F,
    .open = open_rank_steps,
    .close = close_scan,
    .start = start_scan,
    .next = next_row,
    .at_end = is_at_end,
    .column = give_column,
};

enum ms_rc mstx__packed_tables(struct mstx_packed_source *from, struct ms_err *err)
{
    ms_assert(from->store != NULL && from->text != NULL);
    MS_TRY(ms_store_add_table(from->store, &calls_table, from, err));
    MS_TRY(ms_store_add_table(from->store, &joins_table, from, err));
    MS_TRY(ms_store_add_table(from->store, &spans_table, from, err));
    MS_TRY(ms_store_add_table(from->store, &names_table, from, err));
    MS_TRY(ms_store_add_table(from->store, &steps_table, from, err));
    return ms_store_add_table(from->store, &rank_steps_table, from, err);
}

void mstx__packed_source_free(struct mstx_packed_source *from)
{
    mstx__packed_index_free(&from->calls);
    mstx__packed_index_free(&from->joins);
    mstx__packed_index_free(&from->spans);
    mstx__packed_index_free(&from->names);
    mstx__packed_index_free(&from->steps);
    mstx__packed_index_free(&from->rank_steps);
}

/* ---- blobs of calls -------------------------------------------------------------- */

static enum ms_rc read_blobs(struct ms_stmt *st, struct mstx_rows *rows, unsigned columns,
                             mstx_calls_fn fn, void *ctx, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        MS_TRY(mstx__rows_look(rows, ms_stmt_get_blob(st, 1), columns, err));
        MS_TRY(fn(ctx, rows, err));
    }
    return rc;
}

static enum ms_rc each_blob(struct mstx_packed_source *from, const struct kind *kind,
                            mstx_calls_fn fn, void *ctx, struct ms_err *err)
{
    ms_assert(fn != NULL);
    struct mstx_rows rows;
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(from->store, &st, kind->all, err));
    enum ms_rc rc = mstx__rows_new(&rows, err);
    rows.folded = from->folded;
    if (rc == MS_OK)
        rc = read_blobs(st, &rows, kind->packed, fn, ctx, err);
    mstx__rows_free(&rows);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__packed_each_call(struct mstx_packed_source *from, mstx_calls_fn fn, void *ctx,
                                  struct ms_err *err)
{
    return each_blob(from, &calls, fn, ctx, err);
}

enum ms_rc mstx__packed_each_join(struct mstx_packed_source *from, mstx_calls_fn fn, void *ctx,
                                  struct ms_err *err)
{
    return each_blob(from, &joins, fn, ctx, err);
}

static enum ms_rc scan_blobs(struct scan *s, mstx_calls_fn fn, void *ctx, struct ms_err *err)
{
    MS_TRY(next_blob(s, err));
    while (!s->at_end) {
        MS_TRY(fn(ctx, &s->rows, err));
        MS_TRY(next_blob(s, err));
    }
    return MS_OK;
}

enum ms_rc mstx__packed_calls_of(struct mstx_packed_source *from, int64_t first, int64_t last,
                                 mstx_calls_fn fn, void *ctx, struct ms_err *err)
{
    const struct ms_bound processes[] = {{MSTX_CALL_PROCESS, MS_BOUND_GE, first},
                                         {MSTX_CALL_PROCESS, MS_BOUND_LE, last}};
    void *cursor;
    ms_assert(fn != NULL);
    MS_TRY(open_scan(&calls, from, &cursor, err));
    enum ms_rc rc = prepare_scan(cursor, processes, 2, err);
    if (rc == MS_OK)
        rc = scan_blobs(cursor, fn, ctx, err);
    close_scan(cursor);
    return rc;
}
