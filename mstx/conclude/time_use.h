/* SPDX-License-Identifier: MIT
 *
 * time_use: what ranks did with their time and memory: their steps divided, how well the arithmetic
 * was used, and counters of memory.
 */
#ifndef MSTX_CONCLUDE_TIME_USE_H
#define MSTX_CONCLUDE_TIME_USE_H

#include "mstx/rundb/run_query.h"

#include "probe/base/jwrite.h"

/* Means over the steps of a rank, ns. */
enum mstx_use_part {
    MSTX_USE_STEP,
    MSTX_USE_COMPUTING,
    MSTX_USE_COMM,
    MSTX_USE_EXPOSED, /* communication while nothing was computed */
    MSTX_USE_OVERLAPPED,
    MSTX_USE_FREE,
    MSTX_USE_BUBBLE,
    MSTX_USE_PREPARING,
    MSTX_USE_WAITING,
    MSTX_USE_BLAME,
    MSTX_USE_PARTS
};
extern const char *const mstx_use_names[MSTX_USE_PARTS];
struct mstx_use_rank {
    int64_t rank, steps;
    double ns[MSTX_USE_PARTS];
};
struct mstx_use_memory {
    int64_t rank;
    char *name; /* on the heap */
    int64_t most, samples;
};

/* Floating point operations of one step of one rank: of the model, and of what the machine did,
 * recomputation included. */
struct mstx_flops {
    double model, machine;
};
struct mstx_use {
    MS_VEC(struct mstx_use_rank) rank;
    MS_VEC(struct mstx_use_memory) memory;
    struct mstx_flops flops; /* 0: not known */
    double peak;             /* operations a second of one rank; 0: not known */
};
/* Empty where the database has nothing of it. */
enum ms_rc mstx_use_measure(struct mstx_tl *tl, struct mstx_use *u, struct ms_err *err) MS_MUST_USE;
void mstx_use_free(struct mstx_use *u);
/* Share of the peak in a step; 0: not known. */
double mstx_use_mfu(const struct mstx_use *u, const struct mstx_use_rank *r);
double mstx_use_hfu(const struct mstx_use *u, const struct mstx_use_rank *r);

/* From the shapes in the dump.json of one rank and one step: matrix products, convolutions and
 * attention; a backward record counts twice its forward one.  Recomputed records count for the
 * machine alone. */
enum ms_rc mstx_flops_of_dump(struct mstx_flops *f, const char *path,
                              struct ms_err *err) MS_MUST_USE;

void mstx_use_text(const struct mstx_use *u, size_t most, struct ms_buf *out);
void mstx_use_json(const struct mstx_use *u, struct ms_jwrite *w);

#endif
