/* SPDX-License-Identifier: MIT
 *
 * comm_rows: the communication operations of all ranks in memory, 8 bytes each, and 16 with their starts.
 *
 * An operation that several ranks take part in has one entry with its name and its group; a row
 * says when one rank took part in it. Rows of a rank lie together, so a row needs no rank.
 */
#ifndef MSTX_OFFICIAL_COMM_ROWS_H
#define MSTX_OFFICIAL_COMM_ROWS_H

#include "mstx/official/recipe.h"

#include "probe/base/map.h"

#define MSTX_NO_TEXT  UINT32_MAX
#define MSTX_NO_VALUE INT64_MIN /* NULL */

/* Columns of a query whose rows are kept here; the last three are not in the queries of every
 * recipe. */
enum mstx__comm_column {
    MSTX_COMM_GROUP,
    MSTX_COMM_NAME,
    MSTX_COMM_TYPE,
    MSTX_COMM_START,
    MSTX_COMM_DUR,
    MSTX_COMM_DTYPE,
    MSTX_COMM_BYTES,
    MSTX_COMM_STEP,
    MSTX_COMM_COLUMNS
};

struct mstx__comm_row {
    uint32_t op;  /* its place in the map below */
    uint32_t dur; /* mstx__comm_dur */
};
/* The duration of a row that does not fit into 32 bits, or is NULL. */
struct mstx__comm_long {
    size_t row;
    int64_t dur;
};
/* The kind of a row, where it is not that of the first row of its operation. */
struct mstx__comm_other {
    size_t row;
    uint32_t kind;
};
struct mstx__comm_kind {
    uint32_t type, dtype; /* texts, or MSTX_NO_TEXT */
    int64_t bytes, step;
};
/* A text of the rows of the current rank, by where it begins there; texts that rows share need not be looked up
 * again. */
struct mstx__comm_met {
    int64_t at;
    uint32_t text;
};
enum { MSTX_COMM_MET = 256 };
struct mstx__comm_rows {
    MS_VEC(struct mstx__comm_row) row;
    MS_VEC(struct mstx__comm_long) longer; /* by row */
    MS_VEC(uint32_t) kind_of; /* by operation: the kind of its first row; empty unless wanted */
    MS_VEC(struct mstx__comm_other) other; /* by row */
    MS_VEC(int64_t) start;                 /* by row; empty unless wanted */
    unsigned wanted;                       /* MSTX_COMM_KINDS, MSTX_COMM_STARTS */
    MS_VEC(struct mstx__comm_kind) kind;
    MS_VEC(int64_t) rank; /* ranks that have been read */
    MS_VEC(size_t) end;   /* of the rows of each of these ranks */
    struct ms_map text;   /* groups, types of operations, types of data */
    struct ms_map op;     /* the place of the group among the texts, then the name; sealed */
    struct ms_map kind_key;
    struct mstx__comm_met met[MSTX_COMM_MET];
    uint32_t last_kind; /* of the row before */
    struct ms_arena *arena;
};

/* What a recipe wants to know of each row besides its operation and duration. */
enum { MSTX_COMM_KINDS = 1, MSTX_COMM_STARTS = 2 };

/* Reads the operations of all ranks by a query with the columns above. */
enum ms_rc mstx__comm_rows_read(struct mstx_recipe *r, const struct mstx_rank_query *q,
                                unsigned wanted, struct mstx__comm_rows *out,
                                struct ms_err *err) MS_MUST_USE;
void mstx__comm_rows_free(struct mstx__comm_rows *c);

/* Returns a text, or one without bytes (p is NULL) for MSTX_NO_TEXT. */
struct ms_str mstx__comm_text(const struct mstx__comm_rows *c, uint32_t text);
/* Returns the group of an operation, a text or MSTX_NO_TEXT. */
uint32_t mstx__comm_group(const struct mstx__comm_rows *c, uint32_t op);
/* Returns the name of an operation; p is NULL when it has none. */
struct ms_str mstx__comm_name(const struct mstx__comm_rows *c, uint32_t op);
/* Tells whether a name is that of a transfer between two ranks, in whatever case. */
bool mstx__is_transfer(struct ms_str name);
/* Returns the kind of a row, where kinds were wanted. */
const struct mstx__comm_kind *mstx__comm_kind(const struct mstx__comm_rows *c, size_t row);
/* Frees the kinds of all rows. */
void mstx__comm_forget_kinds(struct mstx__comm_rows *c);
/* Returns the duration of a row in ns, or MSTX_NO_VALUE. */
int64_t mstx__comm_dur(const struct mstx__comm_rows *c, size_t row);
/* Returns the rank of a row. */
int64_t mstx__comm_rank(const struct mstx__comm_rows *c, size_t row);

/* Rows by a class of their own, each class in the order of the rows. */
struct mstx__comm_order {
    size_t *first; /* by class: place in rows; one more than there are classes */
    uint32_t *row;
};
/* Orders the rows for which class_of returns less than `classes`, and leaves the others out. */
typedef uint32_t (*mstx__comm_class_fn)(void *ctx, size_t row);
enum ms_rc mstx__comm_order_new(struct mstx__comm_order *out, const struct mstx__comm_rows *c,
                                uint32_t classes, mstx__comm_class_fn class_of, void *ctx,
                                struct ms_err *err) MS_MUST_USE;
void mstx__comm_order_free(struct mstx__comm_order *o);

#endif
