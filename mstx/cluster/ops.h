/* SPDX-License-Identifier: MIT
 *
 * ops: the recorded operations of a training job, step by step, as the what-if analysis reads them.
 *
 * An operation belongs to one rank, one step and one type.  Operations of one step that meet (a
 * send and its receive, a collective on all its ranks) carry the same number.
 */
#ifndef MSTX_CLUSTER_OPS_H
#define MSTX_CLUSTER_OPS_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

#include <stdint.h>

#define MSTX_NO_MEET UINT32_MAX

/* Role of an operation type in a pipeline-parallel training; MSTX_OP_OTHER: none that matters
 * here. */
enum mstx_op_kind {
    MSTX_OP_OTHER,
    MSTX_OP_FORWARD,
    MSTX_OP_BACKWARD,
    MSTX_OP_FORWARD_SEND,
    MSTX_OP_FORWARD_RECV,
    MSTX_OP_BACKWARD_SEND,
    MSTX_OP_BACKWARD_RECV,
    MSTX_OP_PARAMS_GATHER,
    MSTX_OP_GRADS_SCATTER,
    MSTX_OP_COLLECT, /* garbage collection */
    MSTX_OP_LAYERNORM,
    MSTX_OP_EMBEDDING,
    MSTX_OP_CLIP,
    MSTX_OP_OPTIMIZER,
    MSTX_OP_KINDS
};

struct mstx_op {
    int64_t start_ns, end_ns;
    uint32_t rank; /* index in ranks */
    uint32_t meet; /* number of its meeting; MSTX_NO_MEET: none */
    uint16_t type; /* index in types */
    uint16_t seq;  /* number among the operations of its step, rank and type, in order of time */
};

struct mstx_op_type {
    char *name;
    enum mstx_op_kind kind;
    bool is_comm; /* the ideal duration is the median; for other types it is the mean */
};

struct mstx_op_rank {
    int32_t rank, dp, stage, tp; /* -1: unknown */
};

struct mstx_op_step {
    int64_t number, start_ns;
    size_t first; /* first operation; the operations of a step are contiguous */
};

struct mstx_ops {
    MS_VEC(struct mstx_op) op;
    MS_VEC(struct mstx_op_type) type;
    MS_VEC(struct mstx_op_rank) rank;
    MS_VEC(struct mstx_op_step) step; /* ascending; one more than steps once mstx__ops_ready ran */
    bool has_layout;                  /* dp and stage of all ranks are known */
    bool no_memory;                   /* stays set: rows may be missing */
};

void mstx__ops_free(struct mstx_ops *o);
/* Returns the index of the type with that name, adding it when it is new. */
uint16_t mstx__ops_type(struct mstx_ops *o, struct ms_str name);
/* Returns the index of the rank, adding it when it is new. */
uint32_t mstx__ops_rank(struct mstx_ops *o, int32_t rank, int32_t dp, int32_t stage, int32_t tp);
/* Begins a step, to which later operations belong. */
void mstx__ops_begin_step(struct mstx_ops *o, int64_t number, int64_t start_ns);
void mstx__ops_add(struct mstx_ops *o, const struct mstx_op *op);
/* Sorts the operations of each step by rank and time and numbers them; called after the last
 * operation. */
void mstx__ops_ready(struct mstx_ops *o);
/* Finds the meetings from kinds and layout: the k-th send of a stage with the k-th receive of the
 * next one, and a collective on all its data-parallel ranks.  Operations that share a kernel share
 * its meeting. */
void mstx__ops_find_meets(struct mstx_ops *o);

static inline size_t mstx__ops_steps(const struct mstx_ops *o)
{
    return o->step.n != 0 ? o->step.n - 1 : 0;
}
static inline bool mstx__op_is_transfer(enum mstx_op_kind k)
{
    return k >= MSTX_OP_FORWARD_SEND && k <= MSTX_OP_BACKWARD_RECV;
}
static inline bool mstx__op_is_compute(enum mstx_op_kind k)
{
    return k == MSTX_OP_FORWARD || k == MSTX_OP_BACKWARD;
}
/* Tells whether kinds and layout are known well enough for the staged graph. */
bool mstx__ops_are_staged(const struct mstx_ops *o);
/* Returns the recorded duration of a step, from its start to the end of its last operation, ns. */
double mstx__ops_step_ns(const struct mstx_ops *o, size_t step);
/* Fills weight with the durations of operations without waiting for partners, ns: with joined
 * clocks the end minus the latest start of the meeting, else the shortest duration in the
 * meeting. */
bool mstx__ops_weights(const struct mstx_ops *o, bool clocks_joined, double *weight);

#endif
