/* SPDX-License-Identifier: MIT
 *
 * graph_read: one step of MindSpore's dump of compiled graphs: its kernels in the order in
 * which they ran, and the tensors of each.
 *
 *     rank_0/NET/GRAPH/ITERATION/KERNEL.npy         a tensor each
 *     rank_0/execution_order/ms_execution_order_graph_GRAPH.csv
 *     rank_0/graphs/ms_output_trace_code_graph_GRAPH.ir
 *
 * Every file is read once: for its figures, and for a digest by which a tensor that one kernel gives
 * is known again where another one takes it.
 */
#ifndef PROBE_DUMP_GRAPH_READ_H
#define PROBE_DUMP_GRAPH_READ_H

#include "probe/base/io.h"
#include "probe/base/map.h"
#include "probe/dump/graph_ir.h"
#include "probe/dump/kernel_name.h"
#include "probe/tensor/tensor.h"

struct probe__kernel_tensor {
    uint64_t slot;
    uint32_t value;     /* same number, same bytes */
    struct ms_str name; /* of its file, below the net's folder */
    enum ms_dtype dtype;
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS];
    bool is_reshaped; /* the shape is not that of the file */
    struct ms_stats stats;
};

struct probe__kernel {
    struct ms_str full; /* "Default/up-Dense/MatMul-op0" */
    struct probe__kernel_scope scope;
    uint64_t graph;
    uint32_t order; /* among kernels of its graph */
    struct ms_str
        cells; /* those of the scope, or of the cell that the shape of the graph gives it */
    const struct probe__ir_kernel *ir; /* NULL: the graph's text is not there */
    const struct probe__ir *of;
    MS_VEC(struct probe__kernel_tensor) in, out;
};

struct probe__graph {
    struct ms_arena *arena;
    MS_VEC(struct probe__kernel) kernels; /* in execution order */
    MS_VEC(struct probe__ir *) irs;       /* texts of the graphs */
    struct ms_map values;                 /* digest <-> number of a value */
    struct ms_map names;  /* full name with underscores, and graph <-> kernel, while reading */
    struct ms_map others; /* names that files have for kernels of the csv <-> place in `renamed` */
    MS_VEC(uint32_t) renamed;
    bool has_optimizer;
    size_t unread; /* files that are no tensors, or damaged */
};

/* Runs of a graph, as the names of its folders: "0", "1"; in order. */
enum ms_rc probe__graph_runs(struct ms_dir *runs, const char *net, struct ms_str graph,
                             struct ms_err *err) MS_MUST_USE;
/* `net`: rank_R/NET; the run of this number of each of its graphs.  A graph that only computes gradients
 * counts from 1 where the forward's counts from 0, so numbers of folders differ within a step. */
enum ms_rc probe__graph_read(struct probe__graph *g, const char *net, size_t run,
                             struct ms_err *err) MS_MUST_USE;
void probe__graph_free(struct probe__graph *g);
/* What the graph's text says of the kernel's input; NULL: nothing. */
const struct probe__ir_argument *probe__kernel_argument(const struct probe__kernel *k,
                                                        const struct probe__kernel_tensor *in);

#endif
