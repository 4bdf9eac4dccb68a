/* SPDX-License-Identifier: MIT
 *
 * Packed rows: what goes in comes out, what never changes takes no room, and damage is told.
 */
#include "mstx/rundb/packed_rows.h"
#include "tests/support/check.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;
static struct mstx_rows_out out;
static struct mstx_rows rows;
static struct ms_err err;

static void begin(unsigned columns)
{
    ms_err_clear(&err);
    ck_ok(mstx__rows_new(&rows, &err), err);
    ck_ok(mstx__rows_out_new(&out, columns, &err), err);
}

static void end(void)
{
    mstx__rows_out_free(&out);
    mstx__rows_free(&rows);
}

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

enum { CONSTANT, COUNTS, ANY, FEW, NULLS, NOTHING, EXTREMES, WRAPS, ROUND, FORMS };

static int64_t value_of(int form, uint32_t i)
{
    static const int64_t extremes[] = {INT64_MAX, INT64_MIN + 1, -1, 0, 1, MSTX_ROWS_NULL};
    switch (form) {
    case CONSTANT:
        return -77;
    case COUNTS:
        return 1000000000000 + (int64_t)i * 3;
    case ANY:
        return (int64_t)(rnd() >> (rnd() % 64));
    case FEW:
        return (int64_t)(rnd() % 3);
    case NULLS:
        return rnd() % 2 != 0 ? MSTX_ROWS_NULL : (int64_t)(rnd() % 100) - 50;
    case EXTREMES:
        return extremes[rnd() % 6];
    case WRAPS:
        return (int64_t)((uint64_t)i << 63 | 5);
    case ROUND: /* past the last number by steps that are small */
        return (int64_t)((uint64_t)INT64_MAX - 20 + 7 * (uint64_t)i);
    default:
        return MSTX_ROWS_NULL;
    }
}

static void check_column(unsigned column, const int64_t *want, uint32_t n)
{
    const int64_t *cell = mstx__rows_column(&rows, column, &err);
    ck_assert_ptr_nonnull(cell);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_int_eq(cell[i], want[i]);
        if (want[i] != MSTX_ROWS_NULL) {
            ck_assert_int_le(rows.column[column].low, want[i]);
            ck_assert_int_ge(rows.column[column].high, want[i]);
        }
    }
}

START_TEST(rows_read_back_as_they_were)
{
    static const uint32_t sizes[] = {1, 2, 3, 63, 64, 65, 1000, MSTX_ROWS_MAX};
    static int64_t want[FORMS][MSTX_ROWS_MAX];
    begin(FORMS);
    for (size_t s = 0; s < 10 * sizeof sizes / sizeof *sizes; s++) {
        const uint32_t n = sizes[s % (sizeof sizes / sizeof *sizes)];
        for (uint32_t i = 0; i < n; i++, out.n++) {
            for (unsigned c = 0; c < FORMS; c++) {
                want[c][i] = value_of((int)c, i);
                mstx__rows_put(&out, c, want[c][i]);
            }
        }
        ck_ok(mstx__rows_pack(&out, &err), err);
        ck_ok(mstx__rows_look(&rows, ms_buf_slice(&out.packed), FORMS, &err), err);
        ck_assert_uint_eq(rows.n, n);
        for (unsigned c = FORMS; c-- > 0;)
            check_column(c, want[c], n);
    }
    end();
}
END_TEST

START_TEST(what_never_changes_takes_three_bytes)
{
    begin(10);
    for (uint32_t i = 0; i < MSTX_ROWS_MAX; i++, out.n++) {
        for (unsigned c = 0; c < 10; c++)
            mstx__rows_put(&out, c, c % 2 != 0 ? 17 : (int64_t)i);
    }
    ck_ok(mstx__rows_pack(&out, &err), err);
    ck_assert_uint_eq(out.packed.n, 2 + 2 + 10 * 3);
    end();
}
END_TEST

START_TEST(a_column_of_nothing_holds_no_number)
{
    begin(1);
    for (; out.n < 10; out.n++)
        mstx__rows_put(&out, 0, MSTX_ROWS_NULL);
    ck_ok(mstx__rows_pack(&out, &err), err);
    ck_ok(mstx__rows_look(&rows, ms_buf_slice(&out.packed), 1, &err), err);
    ck_assert_int_gt(rows.column[0].low, rows.column[0].high);
    end();
}
END_TEST

START_TEST(damage_is_told)
{
    begin(2);
    for (; out.n < 100; out.n++) {
        mstx__rows_put(&out, 0, (int64_t)rnd() % 1000);
        mstx__rows_put(&out, 1, (int64_t)rnd() % 1000);
    }
    ck_ok(mstx__rows_pack(&out, &err), err);
    struct ms_str blob = ms_buf_slice(&out.packed);
    ck_assert_int_eq(mstx__rows_look(&rows, blob, 3, NULL), MS_E_FORMAT); /* other columns */
    for (uint32_t n = 0; n < blob.n; n++)
        ck_assert_int_eq(mstx__rows_look(&rows, (struct ms_str){blob.p, n}, 2, NULL), MS_E_FORMAT);
    for (uint32_t i = 0; i < blob.n; i++) { /* any answer, but no crash */
        out.packed.p[i] ^= (char)(1 + rnd() % 255);
        if (mstx__rows_look(&rows, blob, 2, NULL) == MS_OK) {
            (void)!mstx__rows_column(&rows, 0, &err);
            (void)!mstx__rows_column(&rows, 1, &err);
        }
    }
    end();
}
END_TEST

TEST_MAIN("packed_rows", rows_read_back_as_they_were, what_never_changes_takes_three_bytes,
          a_column_of_nothing_holds_no_number, damage_is_told)
