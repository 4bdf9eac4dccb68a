/* SPDX-License-Identifier: MIT
 *
 * graph_read: reads one step of MindSpore's dump of compiled graphs: its kernels in execution
 * order, and the tensors of each.
 *
 *     rank_0/NET/GRAPH/ITERATION/KERNEL.npy         a tensor each
 *     rank_0/execution_order/ms_execution_order_graph_GRAPH.csv
 *     rank_0/graphs/ms_output_trace_code_graph_GRAPH.ir
 *
 * Every file is read once, for its statistics and for a digest of its bytes.
 */
#ifndef PROBE_DUMP_GRAPH_READ_H
#define PROBE_DUMP_GRAPH_READ_H

#include "probe/base/io.h"
#include "probe/base/map.h"
#include "probe/dump/graph_ir.h"
#include "probe/dump/kernel_name.h"
#include "probe/tensor/tensor.h"

/* What the file of a tensor holds, see graph_views.h. */
enum probe__held {
    PROBE__HELD,
    PROBE__HELD_TURNED, /* its elements in another order */
    PROBE__HELD_NOT     /* other elements */
};

struct probe__kernel_tensor {
    uint64_t slot;
    uint32_t value;     /* see graph_values.h */
    struct ms_str name; /* path of its file below the net's folder */
    enum ms_dtype dtype;
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS];
    enum probe__held held;
    bool is_reshaped; /* the shape comes from the graph's text */
    struct ms_stats stats;
};

struct probe__kernel {
    struct ms_str full; /* "Default/up-Dense/MatMul-op0" */
    struct probe__kernel_scope scope;
    uint64_t graph;
    uint32_t order;                    /* execution order within its graph */
    struct ms_str cells;               /* of the scope, or as graph_shape found them */
    const struct probe__ir_kernel *ir; /* NULL: the graph's text is missing */
    const struct probe__ir *of;
    MS_VEC(struct probe__kernel_tensor) in, out;
};

struct probe__graph {
    struct ms_arena *arena;
    MS_VEC(struct probe__kernel) kernels; /* in execution order */
    MS_VEC(struct probe__ir *) irs;       /* texts of the graphs */
    struct ms_map values;                 /* digest <-> number of equal bytes */
    uint32_t value_count;                 /* all values have lower numbers */
    struct ms_map names;                  /* "NAME#GRAPH" <-> kernel, while reading */
    struct ms_map others;                 /* other names in files <-> index in `renamed` */
    MS_VEC(uint32_t) renamed;
    bool has_optimizer;
    size_t unread; /* files that are damaged or no tensors */
};

/* Lists the runs of a graph by the names of their folders, "0", "1", in order. */
enum ms_rc probe__graph_runs(struct ms_dir *runs, const char *net, struct ms_str graph,
                             struct ms_err *err) MS_MUST_USE;
/* Reads run number `run` of each graph in the folder `net`, rank_R/NET. A graph that only computes
 * gradients numbers its folders from 1 where the forward's begin at 0, so folder numbers differ
 * within a step. */
enum ms_rc probe__graph_read(struct probe__graph *g, const char *net, size_t run,
                             struct ms_err *err) MS_MUST_USE;
void probe__graph_free(struct probe__graph *g);
/* Returns what the graph's text says about a kernel's input; NULL when it says nothing. */
static inline const struct probe__ir_argument *
probe__kernel_argument(const struct probe__kernel *k, const struct probe__kernel_tensor *in)
{
    return k->ir != NULL && in->slot < k->ir->n ? &k->of->arguments.p[k->ir->first + in->slot]
                                                : NULL;
}

#endif
