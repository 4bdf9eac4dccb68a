/* SPDX-License-Identifier: MIT
 *
 * rank_rows: the rows that queries give for one rank, held in memory.
 *
 * Threads read different ranks at the same time; the recipe then writes the rows in order of rank,
 * so its tables do not depend on the number of threads.
 */
#ifndef MSTX_OFFICIAL_RANK_ROWS_H
#define MSTX_OFFICIAL_RANK_ROWS_H

#include "mstx/official/recipe.h"

struct mstx__cell {
    uint8_t type; /* MS_VALUE_INT and so on */
    uint32_t n;   /* length of a text, which begins at byte i of the texts */
    union {
        int64_t i;
        double f;
    };
};

/* Rows of one query. */
struct mstx__rank_rows {
    enum ms_rc rc;     /* MS_OK, also without rows */
    struct ms_err why; /* of a failure */
    const char *path;  /* the database that was read; NULL: there is none */
    int columns;
    MS_VEC(struct mstx__cell) cells;
    struct ms_buf text;
};

/* Runs n queries on the databases of the rank at place `at` of the recipe's list and sets rows[0]
 * to rows[n - 1], which are empty before. What fails is in their rc. */
void mstx__rank_rows_read(const struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                          size_t at, unsigned worker, struct mstx__rank_rows *rows);
/* Append a cell; false when out of memory. A text whose p is NULL is NULL. */
bool mstx__rank_rows_number(struct mstx__rank_rows *rows, int64_t v);
bool mstx__rank_rows_real(struct mstx__rank_rows *rows, double v);
bool mstx__rank_rows_text(struct mstx__rank_rows *rows, struct ms_str s);
/* Appends a text that many cells have: *at is where it begins, or -1 before the first of them. */
bool mstx__rank_rows_shared_text(struct mstx__rank_rows *rows, struct ms_str s, int64_t *at);
/* Returns the text of a cell; p is NULL when the cell has another type. */
struct ms_str mstx__cell_text(const struct mstx__rank_rows *rows, const struct mstx__cell *cell);
/* Return the number of a cell; 0 and NAN when it has none. */
int64_t mstx__cell_number(const struct mstx__cell *cell);
double mstx__cell_real(const struct mstx__cell *cell);
/* Inserts the rows with a statement that has a parameter for each column. */
enum ms_rc mstx__rank_rows_write(const struct mstx__rank_rows *rows, struct ms_stmt *add,
                                 struct ms_err *err) MS_MUST_USE;
/* Empties the rows and keeps their memory for the next rank. */
void mstx__rank_rows_clear(struct mstx__rank_rows *rows);
void mstx__rank_rows_free(struct mstx__rank_rows *rows);

#endif
