/* SPDX-License-Identifier: MIT
 *
 * fold_put: writes parts and columns of folded blobs (fold_read.h).
 */
#ifndef MSTX_RUNDB_FOLD_PUT_H
#define MSTX_RUNDB_FOLD_PUT_H

#include "mstx/rundb/fold_fit.h"
#include "mstx/rundb/fold_read.h"

#include "probe/base/arena.h"
#include "probe/base/map.h"

enum { MSTX_PUT_SLOTS = 512, MSTX_PUT_KNOWN = 8 };

/* A pattern that was stored. */
struct mstx_known_pattern {
    uint64_t part; /* 0: none */
    uint32_t n;
    int64_t *base, *slope;
};

struct mstx_put {
    struct ms_stmt *add_part;
    struct ms_map digests; /* of parts, numbered from 0: ids less 1 */
    struct ms_arena *arena;
    struct ms_buf part, packed;
    struct mstx_fits fits;
    struct mstx_known_pattern known[MSTX_PUT_SLOTS][MSTX_PUT_KNOWN]; /* by column */
    unsigned next[MSTX_PUT_SLOTS];
    int64_t difference[MSTX_NUMBERS_MAX];
    uint8_t context[MSTX_NUMBERS_MAX];
};

enum ms_rc mstx__put_new(struct mstx_put **out, struct ms_store *to,
                         struct ms_err *err) MS_MUST_USE;
void mstx__put_free(struct mstx_put *p);

/* Returns the id of the part in p->part, which is stored unless it was before. */
enum ms_rc mstx__put_part(struct mstx_put *p, uint64_t *id, struct ms_err *err) MS_MUST_USE;
/* Appends the code of numbers with the best model; its id goes before the code. */
enum ms_rc mstx__put_fitted(struct mstx_put *p, uint64_t key, const struct mstx_numbers *v,
                            uint64_t *model, struct ms_buf *code, struct ms_err *err) MS_MUST_USE;

enum mstx_column_hint {
    MSTX_COLUMN_REPEATS, /* with the period, perhaps with other numbers on other ranks */
    MSTX_COLUMN_LOCAL,   /* a few numbers, which differ between ranks */
    MSTX_COLUMN_VARIES,  /* times */
    MSTX_COLUMN_GROWS    /* times, which grow */
};
struct mstx_put_column {
    unsigned slot; /* of the column among all columns of all tables; times 4 below MSTX_PUT_SLOTS */
    enum mstx_column_hint hint;
    uint32_t period;
    int64_t quantum;          /* of which times are multiples */
    enum mstx_fold_rule rule; /* of the classes of times */
    uint32_t of;              /* column of the rule */
    const int64_t *other;     /* its rows */
};
enum ms_rc mstx__put_column(struct mstx_put *p, struct ms_buf *out,
                            const struct mstx_put_column *how, const int64_t *v, uint32_t n,
                            struct ms_err *err) MS_MUST_USE;

/* Returns the shortest period of the keys, which may end within a period; n when there is none. */
uint32_t mstx__find_period(const uint64_t *key, uint32_t n, uint32_t guess);

#endif
