/* SPDX-License-Identifier: MIT
 *
 * whatif: how long the steps of a job would be with other durations.
 *
 * The slowdown S is the mean step with recorded durations divided by the mean step with ideal
 * durations, both replayed.  Each share is found by its own replay, not by adding up excesses along
 * a path.
 */
#ifndef MSTX_CLUSTER_WHATIF_H
#define MSTX_CLUSTER_WHATIF_H

#include "mstx/cluster/op_graph.h"

/* The ideal duration of an operation: the mean or median over all operations of its type (work
 * could be moved between stages), or over those of the same stage (each worker as fast as its
 * peers). */
enum mstx_ideal { MSTX_IDEAL_POOLED, MSTX_IDEAL_PEERS };

/* How operations are grouped into classes. */
enum mstx_share_kind {
    MSTX_BY_RANK,
    MSTX_BY_DP_RANK,
    MSTX_BY_STAGE,
    MSTX_BY_TP_RANK,
    MSTX_BY_OP,
    MSTX_BY_LINK,
    MSTX_SHARE_KINDS
};

struct mstx_share {
    uint32_t class; /* number within its kind */
    double slowdown;
};
typedef MS_VEC(struct mstx_share) mstx_shares;
/* Comparison function of qsort: the largest slowdown first. */
int mstx_share_worst_first(const void *pa, const void *pb);

struct mstx_whatif {
    const struct mstx_ops *o;
    struct mstx_deps deps;
    enum mstx_ideal ideal_kind;
    double *recorded, *ideal;   /* by operation, ns */
    uint32_t *class_of;         /* by operation, of the current kind; NULL: none was asked for */
    double *t;                  /* times of the nodes of a step, for all lanes */
    size_t steps;               /* size of step_ns and ideal_ns */
    double *step_ns, *ideal_ns; /* replayed, by step */
    size_t left_out;            /* number of operations left out because of cycles */
    double record_ns;           /* mean step as recorded */
    double replay_ns, mean_ideal_ns;
    double slowdown, low, high; /* S and its interval: 95 % of bootstraps over the steps */
    double peers_slowdown;      /* S of MSTX_IDEAL_PEERS */
    double model_error;         /* share of the recorded step that the replay misses */
    MS_VEC(char *) op_name;     /* of the classes of MSTX_BY_OP */
};

/* Replays the steps with recorded and ideal durations.  o must outlive w.  Returns false when out
 * of memory. */
bool mstx__whatif_new(struct mstx_whatif *w, const struct mstx_ops *o, enum mstx_graph_kind kind,
                      bool clocks_joined);
/* Replays a job with a given graph, for jobs whose steps depend on each other: the operations of o
 * are all in one step of o.  Takes ownership of deps.  step_of is the step of each operation, below
 * `steps`, or UINT32_MAX for no step. */
bool mstx__whatif_of_graph(struct mstx_whatif *w, const struct mstx_ops *o, struct mstx_deps *deps,
                           const double *recorded, const double *ideal, const uint32_t *step_of,
                           size_t steps);
void mstx__whatif_free(struct mstx_whatif *w);
/* Lists the classes of a kind, worst first, with the slowdown when the operations of a class have
 * their recorded durations and all others their ideal ones.  Returns false when out of memory. */
bool mstx__whatif_shares(struct mstx_whatif *w, enum mstx_share_kind kind, mstx_shares *out);
/* Sets class_of to the classes of the kind and count to their number; an operation without a class has
 * UINT32_MAX.  Returns false when out of memory. */
bool mstx__whatif_classes(struct mstx_whatif *w, enum mstx_share_kind kind, uint32_t *count);
/* Returns the sender and the receiver of a class of MSTX_BY_LINK. */
void mstx__whatif_link(const struct mstx_whatif *w, uint32_t class, int32_t *src, int32_t *dst);
/* Returns the mean step with these weights, ns. */
double mstx__whatif_mean(struct mstx_whatif *w, const double *weight);
/* Sets the weights of marked operations to those of their peers: the median over unmarked
 * operations of the same type and stage, else of the same type.  An operation without peers keeps
 * its weight.  Returns false when out of memory. */
bool mstx__whatif_heal(struct mstx_whatif *w, const bool *marked, double *weight);
/* The part of the slowdown that marked operations explain.  added_ns: mean step when only these
 * have recorded durations; removed_ns: mean step when only these have ideal ones; adds and removes:
 * the resulting changes as shares of the recorded minus the ideal mean step. */
struct mstx_group_share {
    double added_ns, removed_ns, adds, removes;
};
bool mstx__whatif_group(struct mstx_whatif *w, const bool *marked, struct mstx_group_share *g);
/* Marks the workers (data-parallel ranks of a stage) whose operations explain most of the slowdown:
 * the worst 3 per cent, at least one, by the lesser slowdown of their data-parallel rank and their
 * stage.  by_rank has one entry for each rank.  Returns false when out of memory. */
bool mstx__whatif_worst(struct mstx_whatif *w, bool *by_rank);
/* Sets by_rank to the nanoseconds that each rank has on the critical path of the recorded
 * durations, summed over steps.  Returns false when out of memory. */
bool mstx__whatif_critical(struct mstx_whatif *w, double *by_rank);

#endif
