/* SPDX-License-Identifier: MIT
 *
 * columns: how whole numbers of the statistics are written.
 *
 * A column of the official table is an array of pandas. A column of numbers alone has one
 * type, so that 3 next to 1.5 is written 3.0. A column with any text keeps every value as
 * the dump has it. Rows without a partner are filled in separately, so their numbers get one
 * type if they contain no text. The difference of a column is a whole number if the column
 * has whole numbers on both sides.
 */
#include "compare/table/comparison.h"

enum { CHUNK_PAIRS = 1 << 12 };

struct column {
    bool other, whole, real;
    bool negative, large; /* whole numbers below 0; whole numbers beyond int64 */
};

struct columns {
    struct column of[PROBE_STATS];
};

/* pandas has no type for integers beyond uint64, and none for integers beyond int64 next to
 * negative ones. */
static void note_whole(struct column *c, struct ms_str digits)
{
    int64_t i;
    uint64_t u;
    c->whole = true;
    if (ms_str_i64(digits, &i))
        c->negative |= i < 0;
    else if (ms_str_u64(digits, &u))
        c->large = true;
    else
        c->other = true;
}

/* NaN counts as other, because the table has the text "Nan" for it. */
static void note_value(struct column *c, const struct probe_num *n)
{
    struct cmp_value v = cmp__value_of(n);
    if (v.kind == CMP_VALUE_NUMBER && v.is_int)
        note_whole(c, v.text);
    else if (v.kind == CMP_VALUE_NUMBER || v.kind == CMP_VALUE_INF || v.kind == CMP_VALUE_NINF)
        c->real = true;
    else
        c->other = true;
}

/* Notes the values of a row. Returns false when every column has text, so that no further row can
 * change the result. */
static bool note_row(const struct cmp__side *s, uint32_t row, const struct probe_leaf *leaf,
                     struct columns *columns)
{
    struct probe_num stat[PROBE_STATS];
    bool open = false;
    cmp__item_numbers(s, row, leaf, stat);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        note_value(&columns->of[i], &stat[i]);
        open |= !columns->of[i].other;
    }
    return open;
}

static void join(struct column *c, const struct column *more)
{
    c->other |= more->other;
    c->whole |= more->whole;
    c->real |= more->real;
    c->negative |= more->negative;
    c->large |= more->large;
}

static bool has_text(const struct column *c)
{
    return c->other || (c->large && c->negative);
}

static bool is_mixed(const struct column *c)
{
    return c->whole && c->real && !has_text(c);
}

/* Decides which columns are written as floats. pandas gives a column one type, and all four columns
 * one type where none has text. */
static void settle(const struct columns *columns, bool as_float[PROBE_STATS])
{
    bool any_other = false, any_real = false;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        any_other |= has_text(&columns->of[i]);
        any_real |= columns->of[i].real;
    }
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct column *c = &columns->of[i];
        as_float[i] = is_mixed(c) || (c->whole && !any_other && any_real);
    }
}

static void settle_side(struct cmp__side *s)
{
    struct columns columns = {0};
    bool open = true;
    for (uint32_t i = 0; i < s->order.n && open; i++) {
        struct probe_leaf leaf;
        cmp__item_leaf(s, i, &leaf);
        open = note_row(s, i, &leaf, &columns);
    }
    settle(&columns, s->as_float);
}

/* ---- the official table -------------------------------------------------- */

struct table {
    struct columns target, golden, alone; /* alone: target rows that have no partner */
    bool lonely;                          /* there are rows without a partner */
};

/* Notes a pair. Rows with the same dtype are never separated; for others cmp__is_parted decides. */
static enum ms_rc note_pair(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                            struct table *table, struct ms_err *err)
{
    const struct cmp__pair *p = &c->rows.pairs.p[pair];
    struct probe_leaf t, b = {.kind = PROBE_LEAF_NULL};
    bool alone = p->b == MS_MAP_NONE;
    cmp__item_leaf(&c->rows.t, p->t, &t);
    if (!alone)
        cmp__item_leaf(&c->rows.b, p->b, &b);
    if (!alone && (t.dtype_text.n == 0 || !ms_str_eq(t.dtype_text, b.dtype_text)))
        MS_TRY(cmp__is_parted(c, v, pair, &alone, err));
    note_row(&c->rows.t, p->t, &t, &table->target);
    if (alone)
        note_row(&c->rows.t, p->t, &t, &table->alone);
    else
        note_row(&c->rows.b, p->b, &b, &table->golden);
    table->lonely |= alone;
    return MS_OK;
}

struct reading {
    const struct cmp *c;
    struct table *parts; /* one for each chunk of pairs */
};

static enum ms_rc note_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct reading *r = ctx;
    size_t end = (item + 1) * CHUNK_PAIRS;
    struct cmp_view v;
    (void)worker;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = item * CHUNK_PAIRS; i < end && i < r->c->rows.pairs.n && rc == MS_OK; i++)
        rc = note_pair(r->c, &v, (uint32_t)i, &r->parts[item], err);
    cmp_view_free(&v);
    return rc;
}

static void join_columns(struct columns *c, const struct columns *more)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        join(&c->of[i], &more->of[i]);
}

/* Notes all pairs; rows that only the golden side has are not in the official table. */
static enum ms_rc note_table(const struct cmp *c, struct table *table, struct ms_pool *pool,
                             struct ms_err *err)
{
    size_t chunks = (c->rows.pairs.n + CHUNK_PAIRS - 1) / CHUNK_PAIRS;
    struct reading r = {c, ms_calloc(chunks + 1, sizeof *r.parts)};
    if (r.parts == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_pool_run(pool, chunks, note_chunk, &r, err);
    for (size_t i = 0; i < chunks; i++) {
        join_columns(&table->target, &r.parts[i].target);
        join_columns(&table->golden, &r.parts[i].golden);
        join_columns(&table->alone, &r.parts[i].alone);
        table->lonely |= r.parts[i].lonely;
    }
    ms_free(r.parts);
    return rc;
}

static bool is_whole(const struct column *c, bool as_float)
{
    return c->whole && !has_text(c) && !c->large && !as_float;
}

/* With folded rows the official tool reads every number as a float. */
void cmp__settle_sides(struct cmp *c)
{
    bool joined = c->set.conf.rules->joined_as_float && c->set.conf.consistent != CMP_CONSISTENT_NO;
    settle_side(&c->rows.t);
    settle_side(&c->rows.b);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        c->rows.t.as_float[i] |= joined;
        c->rows.b.as_float[i] |= joined;
    }
}

enum ms_rc cmp__settle_table(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    struct table table = {0};
    if (!c->set.conf.rules->column_types || c->set.conf.consistent != CMP_CONSISTENT_NO ||
        c->set.mode == PROBE_MODE_MD5)
        return MS_OK;
    MS_TRY(note_table(c, &table, pool, err));
    settle(&table.target, c->rows.t.as_float);
    settle(&table.golden, c->rows.b.as_float);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        c->rows.t.alone_as_float[i] = is_mixed(&table.alone.of[i]);
        c->rows.b.as_float[i] &= !table.lonely;
        c->set.whole[i] = !table.lonely && is_whole(&table.target.of[i], c->rows.t.as_float[i]) &&
                          is_whole(&table.golden.of[i], c->rows.b.as_float[i]);
    }
    return MS_OK;
}
