/* SPDX-License-Identifier: MIT
 *
 * fold_column: unpacks the columns of folded blobs; the layout is in fold_read.h.
 */
#include "mstx/rundb/fold_int.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

enum ms_rc mstx__fold_damaged(struct ms_err *err)
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

void mstx__pattern_values(const struct mstx_part *p, uint64_t first, uint64_t turn, int64_t *cell,
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
        return mstx__fold_damaged(err);
    if (p == NULL)
        return MS_E_FORMAT;
    mstx__pattern_values(p, first, turn, cell, n);
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
    MS_TRY(mstx__fold_get_column(f, b, cell, n, deep + 1, err));
    for (uint32_t i = 0; i < n; i++) {
        if ((uint64_t)cell[i] >= values)
            return mstx__fold_damaged(err);
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
        return of != 0 ? MS_OK : mstx__fold_damaged(err);
    if (rows == NULL || rule > MSTX_RULE_CHANGE || of >= rows->columns || rows->n != n)
        return mstx__fold_damaged(err);
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
        return mstx__fold_damaged(err);
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
    return mstx__decoder_ended(&d) ? MS_OK : mstx__fold_damaged(err);
}

static enum ms_rc get_nulls(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell, uint32_t n,
                            unsigned deep, struct ms_err *err)
{
    uint32_t known = 0;
    MS_TRY(mstx__fold_get_column(f, b, cell, n, deep + 1, err));
    for (uint32_t i = 0; i < n; i++) {
        if (cell[i] != 0 && cell[i] != 1)
            return mstx__fold_damaged(err);
        known += cell[i] == 1;
    }
    int64_t *value = ms_calloc((size_t)known + 1, sizeof *value);
    if (value == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc =
        known != 0 ? mstx__fold_get_column(f, b, value, known, deep + 1, err) : MS_OK;
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
    uint32_t events;
    if (b->bad || chunk > INT64_MAX || some > n - *at)
        return mstx__fold_damaged(err);
    MS_TRY(mstx__fold_chunk(f, (int64_t)chunk, &ev, &events, err));
    if (first > events || some > events - first)
        return mstx__fold_damaged(err);
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
        return mstx__fold_damaged(err);
    for (uint64_t i = 0; i < stretches; i++)
        MS_TRY(copy_stretch(f, b, durations, cell, n, &at, err));
    return at == n ? MS_OK : mstx__fold_damaged(err);
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
        return mstx__fold_damaged(err);
    }
}

enum ms_rc mstx__fold_get_column(struct mstx_fold *f, struct mstx_bytes *b, int64_t *cell,
                                 uint32_t n, unsigned deep, struct ms_err *err)
{
    if (deep % MSTX_FOLD_IN_CHUNK > MSTX_FOLD_DEEP)
        return mstx__fold_damaged(err);
    MS_TRY(get_kind(f, b, cell, n, deep, err));
    return b->bad ? mstx__fold_damaged(err) : MS_OK;
}

enum ms_rc mstx__fold_column(struct mstx_fold *f, struct mstx_rows *rows, struct ms_str bytes,
                             int64_t *cell, struct ms_err *err)
{
    struct mstx_bytes b = mstx_bytes_of(bytes);
    const bool is_outer = f->rows == NULL && !f->is_inner;
    if (is_outer) {
        mstx__parts_rest(&f->parts);
        f->rows = rows;
        f->is_inner = true;
    }
    const enum ms_rc rc = mstx__fold_get_column(f, &b, cell, rows->n, 0, err);
    if (is_outer) {
        f->rows = NULL;
        f->is_inner = false;
    }
    MS_TRY(rc);
    return b.at == b.end ? MS_OK : mstx__fold_damaged(err);
}
