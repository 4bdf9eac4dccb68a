/* SPDX-License-Identifier: MIT
 *
 * time_use: use of time and memory by rank: parts of a step, utilization of the peak arithmetic
 * rate (MFU, HFU), and memory counters.
 */
#ifndef MSTX_CONCLUDE_TIME_USE_H
#define MSTX_CONCLUDE_TIME_USE_H

#include "mstx/conclude/steps.h"
#include "mstx/rundb/run_query.h"

#include "probe/base/jwrite.h"

/* Parts of a step, as means over the steps of a rank, ns. */
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
/* Floating point operations of one step of one rank: those of the model, and those that the machine
 * executed, including recomputation. */
struct mstx_flops {
    double model, machine;
};
typedef MS_VEC(struct mstx_flops) mstx_step_flops;
struct mstx_use_rank {
    int64_t rank, steps;
    double ns[MSTX_USE_PARTS];
    struct mstx_flops flops; /* mean of its steps; 0: those of all ranks */
};
struct mstx_use_memory {
    int64_t rank;
    char *name; /* on the heap */
    int64_t most, samples;
};

struct mstx_use {
    MS_VEC(struct mstx_use_rank) rank;
    MS_VEC(struct mstx_use_memory) memory;
    struct mstx_flops flops; /* 0: unknown */
    double peak;             /* operations per second of one rank; 0: unknown */
};
/* Reads the use of time and memory; lists are empty when the database has no such rows. */
enum ms_rc mstx_use_measure(struct mstx_tl *tl, struct mstx_use *u, struct ms_err *err) MS_MUST_USE;
void mstx_use_free(struct mstx_use *u);
/* Return the model and the hardware FLOPS utilization in a step, as a share of the peak; 0:
 * unknown. */
double mstx_use_mfu(const struct mstx_use *u, const struct mstx_use_rank *r);
double mstx_use_hfu(const struct mstx_use *u, const struct mstx_use_rank *r);

/* Counts the operations in the dump.json of one rank and one step from its shapes: matrix products,
 * convolutions and attention.  A backward record counts twice its forward record; recomputed
 * records count for the machine only. */
enum ms_rc mstx_flops_of_dump(struct mstx_flops *f, const char *path,
                              struct ms_err *err) MS_MUST_USE;

/* Counts the operations of each step, in the order of the steps, from shapes that PyTorch's profiler
 * recorded.  Fails when no step has any. */
enum ms_rc mstx_flops_of_trace(struct mstx_tl *tl, const struct mstx_steps *steps,
                               mstx_step_flops *to, struct ms_err *err) MS_MUST_USE;
/* Sets the means of ranks, from steps of a run and their operations. */
void mstx_use_flops(struct mstx_tl *tl, const struct mstx_steps *steps, const mstx_step_flops *of,
                    struct mstx_use *u);

void mstx_use_text(const struct mstx_use *u, size_t most, struct ms_buf *out);
void mstx_use_json(const struct mstx_use *u, struct ms_jwrite *w);

#endif
