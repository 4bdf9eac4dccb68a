/* SPDX-License-Identifier: MIT
 *
 * Folding rows whose names differ in numbers alone.
 */
#include "mstx/conclude/alike_rows.h"

#include "tests/support/check.h"

static struct ms_err err;

START_TEST(names_that_differ_in_numbers_are_a_family)
{
    static const char *const name[] = {"data_7", "data_123", "data_", "pipe_7", "a1b2", "a33b4"};
    static const uint32_t family[] = {0, 0, 1, 2, 3, 3};
    struct mstx_families f;
    uint32_t got;
    ck_assert_int_eq(mstx__families_begin(&f, &err), MS_OK);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        ck_assert_int_eq(mstx__family_find(&f, MS_STR("kind"), ms_str_of(name[i]), &got, &err),
                         MS_OK);
        ck_assert_uint_eq(got, family[i]);
    }
    ck_assert_int_eq(mstx__family_find(&f, MS_STR("other"), MS_STR("data_7"), &got, &err), MS_OK);
    ck_assert_uint_eq(got, 4);
    mstx__families_free(&f);
}
END_TEST

/* Folds n rows of one family with these values; returns the number of rows that remain. */
static size_t fold_values(const double *value, size_t n, struct mstx_folds *folds)
{
    struct mstx_foldable row[16] = {{0}};
    ck_assert_uint_le(n, 16);
    for (size_t i = 0; i < n; i++)
        row[i] = (struct mstx_foldable){0, value[i], 1};
    ck_assert_int_eq(mstx__rows_fold(row, n, folds, &err), MS_OK);
    return folds->rows.n;
}

START_TEST(slow_rows_stay_alone_before_those_that_are_alike)
{
    static const double value[] = {1, 1.1, 5, 1, 1.15, 1};
    struct mstx_folds f;
    ck_assert_uint_eq(fold_values(value, 6, &f), 2);
    ck_assert_uint_eq(f.rows.p[0].n, 1);
    ck_assert_uint_eq(f.member[f.rows.p[0].first], 2);
    ck_assert_uint_eq(f.rows.p[1].n, 5);
    mstx__folds_free(&f);
}
END_TEST

START_TEST(few_rows_are_not_folded_and_many_odd_ones_are)
{
    static const double three[] = {1, 1, 1}, four[] = {1, 1, 1, 1};
    static const double half[] = {1, 1, 1, 1, 1, 9, 9, 9, 9};
    struct mstx_folds f;
    ck_assert_uint_eq(fold_values(three, 3, &f), 3);
    mstx__folds_free(&f);
    ck_assert_uint_eq(fold_values(four, 4, &f), 1);
    mstx__folds_free(&f);
    ck_assert_uint_eq(fold_values(half, 9, &f), 1);
    ck_assert_uint_eq(f.rows.p[0].n, 9);
    mstx__folds_free(&f);
    ck_assert_uint_eq(fold_values(three, 0, &f), 0);
    mstx__folds_free(&f);
}
END_TEST

START_TEST(heavy_families_come_first)
{
    const struct mstx_foldable row[] = {{0, 1, 3}, {1, 1, 2}, {1, 1, 2}, {2, 9, 1}};
    struct mstx_folds f;
    ck_assert_int_eq(mstx__rows_fold(row, 4, &f, &err), MS_OK);
    ck_assert_uint_eq(f.rows.n, 4);
    ck_assert_uint_eq(f.member[0], 1);
    ck_assert_uint_eq(f.member[1], 2);
    ck_assert_uint_eq(f.member[2], 0);
    ck_assert_uint_eq(f.member[3], 3);
    mstx__folds_free(&f);
}
END_TEST

TEST_MAIN("alike_rows", names_that_differ_in_numbers_are_a_family,
          slow_rows_stay_alone_before_those_that_are_alike,
          few_rows_are_not_folded_and_many_odd_ones_are, heavy_families_come_first)
