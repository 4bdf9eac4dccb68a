/* SPDX-License-Identifier: MIT
 *
 * dry_plan: the memory of a training step that has not been run, for one way to lay it out.
 *
 * The step is replayed: the forward allocates what operators return and frees what nobody reads
 * again, except what a backward needs; the backward runs in reverse, allocates gradients and frees
 * what was kept; the optimizer needs its states and, on the CPU, two copies of the largest parameter,
 * on a device one copy of all parameters, which it updates together.
 */
#ifndef MSTX_MEMORY_DRY_PLAN_H
#define MSTX_MEMORY_DRY_PLAN_H

#include "mstx/memory/dry_graph.h"
#include "mstx/memory/mem_log.h"

enum dry_recompute { DRY_RECOMPUTE_NONE, DRY_RECOMPUTE_SELECTIVE, DRY_RECOMPUTE_FULL };
enum dry_optimizer { DRY_OPTIMIZER_ADAM, DRY_OPTIMIZER_MOMENTUM, DRY_OPTIMIZER_SGD };

struct dry_layout {
    int64_t tp, pp, dp, zero;
    int64_t micro_batch; /* 0: as in the dump */
    int recompute;       /* enum dry_recompute */
    int optimizer;       /* enum dry_optimizer */
    bool on_cpu;         /* masks and temporaries as PyTorch's kernels of the CPU have them */
    int64_t float_bytes; /* of a parameter and of an activation; 0: as in the dump */
};

struct dry_share {
    uint32_t module;
    uint64_t bytes;
};
struct dry_plan {
    uint64_t peak;
    uint64_t by_kind[MSTX_MEM_KIND_COUNT];
    MS_VEC(struct dry_share) modules; /* of activations at the peak, the largest first */
    struct ms_str phase;              /* in which the peak is: "forward", "backward", "optimizer" */
    struct ms_str op;                 /* at which it is; empty in the optimizer */
    double flops;                     /* of one step of one rank; 0: not known */
};

/* Replays the step. */
enum ms_rc mstx__dry_plan_make(const struct dry_graph *g, const struct dry_layout *layout,
                               struct dry_plan *plan, struct ms_err *err) MS_MUST_USE;
void mstx__dry_plan_free(struct dry_plan *plan);

#endif
