/* SPDX-License-Identifier: MIT
 *
 * packed_rows: see the layout in the header.
 */
#include "mstx/rundb/packed_rows.h"

#include "mstx/rundb/fold_read.h"
#include "mstx/rundb/varint.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

enum {
    VERSION = 1,
    EVEN = 0,
    DIFFERENCES = 1,
    WITH_NULL = 2,
    FOLDED = 3,
    HEAD_MAX = 1 + 3 * MSTX_VARINT_MAX
};
enum { STRETCH = 64 }; /* cells that are processed together */

/* ---- writing ---------------------------------------------------------------- */

enum ms_rc mstx__rows_out_new(struct mstx_rows_out *r, unsigned columns, struct ms_err *err)
{
    const size_t most = 16 + (size_t)columns * (HEAD_MAX + (size_t)MSTX_VARINT_MAX * MSTX_ROWS_MAX);
    ms_assert(columns <= MSTX_ROWS_COLUMNS);
    *r = (struct mstx_rows_out){.columns = columns, .packed = {.max = most}};
    r->cell = ms_calloc((size_t)columns * MSTX_ROWS_APART, sizeof *r->cell);
    if (r->cell != NULL && ms_buf_room(&r->packed, most) != NULL)
        return MS_OK;
    mstx__rows_out_free(r);
    return ms_no_memory(err);
}

void mstx__rows_out_free(struct mstx_rows_out *r)
{
    ms_free(r->cell);
    r->cell = NULL;
    ms_buf_free(&r->packed);
}

static bool is_even(const int64_t *v, uint32_t n)
{
    ms_assert(n >= 1);
    const uint64_t step = n > 1 ? (uint64_t)v[1] - (uint64_t)v[0] : 0;
    uint64_t odd = 0;
    uint32_t i = 1;
    for (; i + STRETCH <= n && odd == 0; i += STRETCH) {
        for (uint32_t k = 0; k < STRETCH; k++)
            odd |= ((uint64_t)v[i + k] - (uint64_t)v[i + k - 1]) ^ step;
    }
    for (; i < n && odd == 0; i++)
        odd |= ((uint64_t)v[i] - (uint64_t)v[i - 1]) ^ step;
    return odd == 0;
}

static uint8_t *put_even(uint8_t *at, const int64_t *v, uint32_t n)
{
    const uint64_t step = n > 1 ? (uint64_t)v[1] - (uint64_t)v[0] : 0;
    *at++ = EVEN;
    at = mstx_put_varint(at, mstx_zigzag((uint64_t)v[0]));
    return mstx_put_varint(at, mstx_zigzag(step));
}

/* Returns the code of a number in a column that holds NULLs. */
static uint64_t code_of(int64_t v)
{
    return mstx_zigzag((uint64_t)v) + 1; /* NULL, which is INT64_MIN, becomes 0 */
}

struct range {
    int64_t low, high; /* of the cells that are not NULL */
};

/* Writes the differences of a column and finds its range; the buffer has room for the longest
 * varints. */
static uint8_t *put_body(uint8_t *at, const int64_t *v, uint32_t n, struct range *r)
{
    uint64_t before = 0;
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t code = (uint64_t)v[i];
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
        at = mstx_put_varint_fast(at, mstx_zigzag(code - before));
        before = code;
    }
    *r = (struct range){low, high};
    return at;
}

static uint8_t *put_body_with_null(uint8_t *at, const int64_t *v, uint32_t n, struct range *r)
{
    uint64_t before = 0;
    *r = (struct range){INT64_MAX, INT64_MIN};
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t code = code_of(v[i]);
        r->low = v[i] < r->low && v[i] != MSTX_ROWS_NULL ? v[i] : r->low;
        r->high = v[i] > r->high ? v[i] : r->high;
        at = mstx_put_varint_fast(at, mstx_zigzag(code - before));
        before = code;
    }
    return at;
}

/* Writes the head and the body of a column.  Heads begin at the front of the buffer; bodies begin
 * after the greatest possible size of all heads. */
static uint8_t *put_column(uint8_t *head, uint8_t **body, const int64_t *v, uint32_t n)
{
    ms_assert(n >= 1 && n <= MSTX_ROWS_MAX);
    if (is_even(v, n))
        return put_even(head, v, n);
    struct range r;
    uint8_t *end = put_body(*body, v, n, &r);
    const bool has_null = r.low == MSTX_ROWS_NULL; /* NULL is the least int64_t */
    if (has_null)
        end = put_body_with_null(*body, v, n, &r);
    *head++ = has_null ? WITH_NULL : DIFFERENCES;
    head = mstx_put_varint(head, mstx_zigzag((uint64_t)r.low));
    head = mstx_put_varint(head, (uint64_t)r.high - (uint64_t)r.low);
    head = mstx_put_varint(head, (uint64_t)(end - *body));
    *body = end;
    return head;
}

enum ms_rc mstx__rows_pack(struct mstx_rows_out *r, struct ms_err *err)
{
    ms_assert(r->n >= 1 && r->n <= MSTX_ROWS_MAX);
    ms_buf_clear(&r->packed);
    uint8_t *head = (uint8_t *)ms_buf_room(&r->packed, r->packed.max);
    if (head == NULL)
        return ms_buf_check(&r->packed, err);
    uint8_t *start = head, *bodies = head + 16 + (size_t)r->columns * HEAD_MAX, *body = bodies;
    *head++ = VERSION;
    *head++ = (uint8_t)r->columns;
    head = mstx_put_varint(head, r->n);
    for (unsigned c = 0; c < r->columns; c++)
        head = put_column(head, &body, r->cell + (size_t)c * MSTX_ROWS_APART, r->n);
    memmove(head, bodies, (size_t)(body - bodies));
    r->packed.n = (size_t)(head - start) + (size_t)(body - bodies);
    r->n = 0;
    return MS_OK;
}

/* ---- reading ---------------------------------------------------------------- */

enum ms_rc mstx__rows_new(struct mstx_rows *r, struct ms_err *err)
{
    *r = (struct mstx_rows){0};
    r->cell = ms_calloc((size_t)MSTX_ROWS_COLUMNS * MSTX_ROWS_APART, sizeof *r->cell);
    return r->cell != NULL ? MS_OK : ms_no_memory(err);
}

void mstx__rows_free(struct mstx_rows *r)
{
    ms_free(r->cell);
    r->cell = NULL;
}

static int64_t *cells_of(const struct mstx_rows *r, unsigned column)
{
    ms_assert(column < MSTX_ROWS_COLUMNS);
    return r->cell + (size_t)column * MSTX_ROWS_APART;
}

/* Sets the range of a column with a constant step: empty when all cells are NULL, all values when
 * the numbers overflow 64 bits or only the first one is NULL. */
static void set_range(struct mstx_rows *r, unsigned column, int64_t first, uint64_t step)
{
    ms_assert(r->n >= 1);
    const uint64_t far = (uint64_t)1 << 40;
    const int64_t last = cells_of(r, column)[r->n - 1];
    const bool is_null = first == MSTX_ROWS_NULL && step == 0;
    const bool is_round = step + far > 2 * far || ((int64_t)step < 0 ? last > first : last < first);
    const bool is_any = first == MSTX_ROWS_NULL || is_round;
    r->column[column].low = is_null ? 1 : is_any ? INT64_MIN : first < last ? first : last;
    r->column[column].high = is_null ? 0 : is_any ? INT64_MAX : first < last ? last : first;
}

static void get_even(struct mstx_rows *r, unsigned column, struct mstx_bytes *b)
{
    uint64_t v = mstx_unzigzag(mstx_get_varint(b));
    const uint64_t step = mstx_unzigzag(mstx_get_varint(b));
    const int64_t first = (int64_t)v;
    int64_t *cell = cells_of(r, column);
    for (uint32_t i = 0; i < r->n; i++, v += step)
        cell[i] = (int64_t)v;
    r->column[column].is_known = true;
    set_range(r, column, first, step);
}

/* Reads the head of a folded column; returns the size of the column in bytes. */
static uint64_t get_folded_head(struct mstx_rows *r, unsigned column, struct mstx_bytes *b)
{
    const uint64_t low = mstx_unzigzag(mstx_get_varint(b)), span = mstx_get_varint(b);
    r->column[column].kind = FOLDED;
    r->column[column].is_known = false;
    r->column[column].low = span != 0 ? (int64_t)low : 1;
    r->column[column].high = span != 0 ? (int64_t)(low + span - 1) : 0;
    return mstx_get_varint(b);
}

/* Reads the head of a column; returns the size of its body in bytes. */
static uint64_t get_head(struct mstx_rows *r, unsigned column, struct mstx_bytes *b)
{
    const uint8_t kind = mstx_get_byte(b);
    r->column[column].kind = kind;
    r->column[column].is_known = false;
    b->bad |= kind > WITH_NULL;
    if (kind == EVEN) {
        get_even(r, column, b);
        return 0;
    }
    const uint64_t low = mstx_unzigzag(mstx_get_varint(b));
    r->column[column].low = (int64_t)low;
    r->column[column].high = (int64_t)(low + mstx_get_varint(b));
    return mstx_get_varint(b);
}

static enum ms_rc fail_damaged(struct ms_err *err)
{
    return ms_fail(err, MS_E_FORMAT, "packed rows are damaged; import the capture again");
}

enum ms_rc mstx__rows_look(struct mstx_rows *r, struct ms_str blob, unsigned columns,
                           struct ms_err *err)
{
    ms_assert(columns <= MSTX_ROWS_COLUMNS);
    struct mstx_bytes b = mstx_bytes_of(blob);
    uint64_t bytes[MSTX_ROWS_COLUMNS];
    const bool is_folded = mstx__is_folded(blob) && r->folded != NULL;
    r->n = 0;
    b.bad |= mstx_get_byte(&b) != (is_folded ? MSTX_FOLDED : VERSION);
    r->columns = mstx_get_byte(&b);
    const uint32_t n = (uint32_t)mstx_get_below(&b, MSTX_ROWS_MAX + 1);
    if (b.bad || r->columns != columns || n == 0)
        return fail_damaged(err);
    r->n = n;
    for (unsigned c = 0; c < columns; c++)
        bytes[c] = is_folded ? get_folded_head(r, c, &b) : get_head(r, c, &b);
    for (unsigned c = 0; c < columns && !b.bad; c++) {
        b.bad |= bytes[c] > (uint64_t)(b.end - b.at);
        r->column[c].at = b.at;
        b.at += b.bad ? 0 : bytes[c];
        r->column[c].end = b.at;
    }
    if (!b.bad && b.at == b.end)
        return MS_OK;
    r->n = 0;
    return fail_damaged(err);
}

static void get_body(int64_t *cell, uint32_t n, bool has_null, struct mstx_bytes *b)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        before += mstx_unzigzag(mstx_get_varint(b));
        cell[i] = (int64_t)(has_null ? mstx_unzigzag(before - 1) : before);
    }
}

static struct ms_str bytes_of(const struct mstx_rows *r, unsigned column)
{
    const uint8_t *at = r->column[column].at;
    return (struct ms_str){(const char *)at, (uint32_t)(r->column[column].end - at)};
}

static bool is_other(struct ms_str bytes)
{
    return bytes.n != 0 && bytes.p[0] == MSTX_FOLD_OTHER;
}

/* Unpacks a column that is told by its differences from another one. */
static enum ms_rc get_other(struct mstx_rows *r, unsigned column, struct ms_err *err)
{
    struct mstx_bytes b = mstx_bytes_of(bytes_of(r, column));
    int64_t *cell = cells_of(r, column);
    (void)mstx_get_byte(&b);
    const unsigned from = (unsigned)mstx_get_below(&b, r->columns);
    const bool is_before = mstx_get_byte(&b) != 0;
    if (b.bad || from == column || is_other(bytes_of(r, from)))
        return fail_damaged(err);
    const int64_t *other = mstx__rows_column(r, from, err);
    if (other == NULL)
        return MS_E_FORMAT;
    MS_TRY(r->folded->read(
        r->folded, r, (struct ms_str){(const char *)b.at, (uint32_t)(b.end - b.at)}, cell, err));
    for (uint32_t i = 0; i < r->n; i++) {
        const int64_t v = !is_before ? other[i] : i != 0 ? other[i - 1] : 0;
        cell[i] = (int64_t)((uint64_t)cell[i] + (uint64_t)v);
    }
    return MS_OK;
}

/* Unpacks a folded column; NULL when it is damaged. */
static const int64_t *get_folded(struct mstx_rows *r, unsigned column, struct ms_err *err)
{
    const struct ms_str bytes = bytes_of(r, column);
    int64_t *cell = cells_of(r, column);
    const enum ms_rc rc = is_other(bytes) ? get_other(r, column, err)
                                          : r->folded->read(r->folded, r, bytes, cell, err);
    r->column[column].is_known = rc == MS_OK;
    return rc == MS_OK ? cell : NULL;
}

const int64_t *mstx__rows_column(struct mstx_rows *r, unsigned column, struct ms_err *err)
{
    ms_assert(column < r->columns && r->n >= 1);
    int64_t *cell = cells_of(r, column);
    if (r->column[column].is_known)
        return cell;
    if (r->column[column].kind == FOLDED)
        return get_folded(r, column, err);
    struct mstx_bytes b = {r->column[column].at, r->column[column].end, false};
    get_body(cell, r->n, r->column[column].kind == WITH_NULL, &b);
    r->column[column].is_known = !b.bad && b.at == b.end;
    if (r->column[column].is_known)
        return cell;
    (void)!fail_damaged(err);
    return NULL;
}
