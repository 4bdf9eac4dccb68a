/* SPDX-License-Identifier: MIT
 *
 * alike_rows: rows of a table whose names differ in their numbers alone, "data_7" and "data_8", as
 * one row, so that the communicators of thousands of ranks fit one screen and slow ones stand out.
 */
#ifndef MSTX_CONCLUDE_ALIKE_ROWS_H
#define MSTX_CONCLUDE_ALIKE_ROWS_H

#include "probe/base/arena.h"
#include "probe/base/err.h"
#include "probe/base/map.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

/* A row to fold. */
struct mstx_foldable {
    uint32_t family; /* rows of one family may be alike */
    double value;    /* what makes a row odd when it is greater than that of the others */
    double weight;   /* families of greater weight come first */
};

/* Numbers families by their keys. */
struct mstx_families {
    struct ms_map keys;
    struct ms_arena *arena;
};
enum ms_rc mstx__families_begin(struct mstx_families *f, struct ms_err *err) MS_MUST_USE;
/* Sets the family of the rows whose names have these two texts but for numbers in the second. */
enum ms_rc mstx__family_find(struct mstx_families *f, struct ms_str kind, struct ms_str name,
                             uint32_t *family, struct ms_err *err) MS_MUST_USE;
void mstx__families_free(struct mstx_families *f);

/* Rows that are shown as one: n entries of `member` from `first` on. */
struct mstx_folded {
    uint32_t first, n;
};
struct mstx_folds {
    MS_VEC(struct mstx_folded) rows; /* odd ones before those of their family that are alike */
    uint32_t *member;                /* indices of the folded rows */
};
/* Folds the rows of each family of four or more into one. Up to three with more than 1.2 times the
 * median value are odd and stay alone; when there are more, the family varies by nature. */
enum ms_rc mstx__rows_fold(const struct mstx_foldable *row, size_t n, struct mstx_folds *folds,
                           struct ms_err *err) MS_MUST_USE;
void mstx__folds_free(struct mstx_folds *folds);

#endif
