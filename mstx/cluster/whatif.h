/* SPDX-License-Identifier: MIT
 *
 * whatif: how long the steps of a job would be with other durations.
 *
 * The slowdown S is the mean step with the recorded durations over the mean step with ideal ones, both
 * replayed.  Every share is found by a replay of its own, not by adding up excesses on a path.
 */
#ifndef MSTX_CLUSTER_WHATIF_H
#define MSTX_CLUSTER_WHATIF_H

#include "mstx/cluster/op_graph.h"

/* What "ideal" means: the duration of a type over all operations of it (work could be moved between
 * stages), or over those of the same stage (each worker as good as its peers). */
enum mstx_ideal { MSTX_IDEAL_POOLED, MSTX_IDEAL_PEERS };

/* By what operations are put together. */
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

struct mstx_whatif {
    const struct mstx_ops *o;
    struct mstx_deps deps;
    enum mstx_ideal ideal_kind;
    double *recorded, *ideal;   /* by operation, ns */
    uint32_t *class_of;         /* by operation, of the kind at hand */
    double *t;                  /* of the nodes of a step, for all lanes */
    size_t steps;               /* of step_ns */
    double *step_ns, *ideal_ns; /* replayed, by step */
    size_t left_out;            /* operations that wait for each other in a circle */
    double record_ns;           /* mean step as recorded */
    double replay_ns, mean_ideal_ns;
    double slowdown, low, high; /* S and its interval: 95 % of bootstraps over the steps */
    double peers_slowdown;      /* S of MSTX_IDEAL_PEERS */
    double model_error;         /* share of the recorded step that the replay misses */
    MS_VEC(char *) op_name;     /* of the classes of MSTX_BY_OP */
};

/* Replays the steps with recorded and ideal durations.  o outlives w.  false: no memory. */
bool mstx__whatif_new(struct mstx_whatif *w, const struct mstx_ops *o, enum mstx_graph_kind kind,
                      bool clocks_joined);
/* The same for a graph that was made elsewhere, whose operations are those of o, all in one step of o: a job
 * whose steps hang together.  It takes over deps.  step_of names the step of each operation, below
 * `steps`; UINT32_MAX: in none. */
bool mstx__whatif_of_graph(struct mstx_whatif *w, const struct mstx_ops *o, struct mstx_deps *deps,
                           const double *recorded, const double *ideal, const uint32_t *step_of,
                           size_t steps);
void mstx__whatif_free(struct mstx_whatif *w);
/* The classes of a kind, worst first: the slowdown when the operations of a class keep their recorded
 * durations and all others have ideal ones.  false: no memory. */
bool mstx__whatif_shares(struct mstx_whatif *w, enum mstx_share_kind kind, mstx_shares *out);
/* Sets class_of to the classes of the kind and returns how many there are; an operation that belongs
 * to none has UINT32_MAX. */
uint32_t mstx__whatif_classes(struct mstx_whatif *w, enum mstx_share_kind kind);
/* The two ranks of a class of MSTX_BY_LINK: sender and receiver. */
void mstx__whatif_link(const struct mstx_whatif *w, uint32_t class, int32_t *src, int32_t *dst);
/* Mean step with these weights, ns. */
double mstx__whatif_mean(struct mstx_whatif *w, const double *weight);
/* Gives the operations that are marked the weight of their peers: the median of the same type and
 * stage, else of the same type, among those that are not marked.  An operation without any peer keeps
 * its weight.  false: no memory. */
bool mstx__whatif_heal(struct mstx_whatif *w, const bool *marked, double *weight);
/* What the marked operations explain of the slowdown: mean steps with ideal durations but theirs, and with
 * recorded durations but theirs; and the shares of recorded minus ideal that these add and remove. */
struct mstx_group_share {
    double added_ns, removed_ns, adds, removes;
};
bool mstx__whatif_group(struct mstx_whatif *w, const bool *marked, struct mstx_group_share *g);
/* Marks the workers (a data-parallel rank of a stage) whose operations explain most: the worst 3 per
 * cent, at least one, by the lesser slowdown of their data-parallel rank and their stage.  by_rank has
 * room for one of each rank.  false: no memory. */
bool mstx__whatif_worst(struct mstx_whatif *w, bool *by_rank);
/* Nanoseconds that each rank has on the critical path of the recorded durations, by place in ranks,
 * summed over steps.  false: no memory. */
bool mstx__whatif_critical(struct mstx_whatif *w, double *by_rank);

#endif
