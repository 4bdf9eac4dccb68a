/* SPDX-License-Identifier: MIT
 *
 * tl_cluster: what ranks say together.  Calls of all ranks are gathered while a run is imported, one
 * collective is found in all of them by communicator and number, and durations alone tell who waits
 * for whom: who comes last waits least.  So clocks of hosts need not agree.
 *
 *     mstx__cluster_group ..               what communicators there are, in what is zeroed
 *     mstx__cluster_part ..                what one process of the capture brings
 *     mstx__cluster_conclude               all of what follows, in one process of ours
 *
 *     mstx__cluster_share                  who joins what; calls go there
 *     mstx__cluster_join                   one collective in the calls of all its ranks; paths
 *     mstx__cluster_save_joins             joins of run.db, or of our part of it
 *     mstx__cluster_gather                 process 0 has what all found
 *     mstx__cluster_judge                  concludes
 *     mstx__cluster_save                   rank_steps, links, conclusions of run.db
 *
 * Own time of a rank in a step is the step without communication.  A straggler is a rank whose own
 * time is longer than that of its partners in every communicator it has: of a pipeline's slow stage
 * all partners within the stage are as slow, so none of them is one.
 */
#ifndef MSTX_TL_CLUSTER_H
#define MSTX_TL_CLUSTER_H

#include "mstx/comm.h"

#include "probe/base/store.h"
#include "probe/base/vec.h"

#define MSTX_NO_STEP UINT32_MAX

/* One call of one rank. */
struct mstx_cl_call {
    int64_t start_ns, dur_ns;
    uint64_t bytes;
    uint32_t group; /* place in groups */
    uint32_t seq;
    uint32_t process;
    uint32_t step; /* place in steps, or MSTX_NO_STEP */
    int32_t peer;  /* in the communicator, -1: none */
    uint8_t op, dtype;
    uint8_t flags;      /* MSTX_CF_* */
    uint8_t unfinished; /* has not returned */
};
typedef MS_VEC(struct mstx_cl_call) mstx_cl_calls;

struct mstx_cl_group {
    uint32_t id;              /* in comm_groups */
    char *name;               /* "communicator 7" when it has none */
    int64_t size;             /* ranks of it; -1: not known */
    MS_VEC(int32_t) world;    /* ranks of the world, in its order */
    MS_VEC(uint32_t) members; /* processes that made calls that all take part in, ascending */
    MS_VEC(double) cost;      /* own time minus that of the others: members x steps */
    double noise, spread;     /* of cost: from step to step, and between members for good */
    uint64_t calls;           /* of collectives */
    uint32_t first_seq, last_seq;
    uint32_t seqs;  /* from the first one on; what lies behind makes no sense */
    uint32_t hosts; /* distinct ones of the members; 2: or more */
    size_t place;   /* of the first one among those of all communicators */
};

struct mstx_cl_process {
    int32_t rank;
    uint32_t host;              /* number, one for each name */
    uint32_t clock;             /* of its host, as the importer counts them */
    uint32_t first_step, steps; /* places in steps */
};

/* One step of one rank. */
struct mstx_cl_step {
    uint32_t process, number;
    int64_t start_ns, end_ns;
    int64_t computing_ns, comm_ns, overlapped_ns, free_ns, bubble_ns, preparing_ns;
    int64_t waiting_ns, blame_ns; /* in collectives: for others, and of others for this rank */
};

/* One collective of all its ranks. */
struct mstx_cl_join {
    uint32_t group, seq;
    uint32_t ranks;      /* that made the call */
    uint32_t last;       /* process that came last; UINT32_MAX: not known */
    uint32_t step;       /* number, MSTX_NO_STEP */
    int64_t start_ns;    /* of the earliest, by its own clock */
    int64_t transfer_ns; /* without waiting; -1: not known */
    int64_t skew_ns;     /* between first and last to arrive */
    int64_t waited_ns;   /* by all together */
    uint64_t bytes;      /* as bandwidth counts them */
    uint8_t op;
    bool agrees; /* all made the same call */
};

/* A kind of transfer on one path: a pair of ranks, or all of a communicator. */
struct mstx_cl_link {
    int32_t src, dst; /* ranks; of a communicator -1 */
    uint32_t group, ranks;
    uint32_t hosts;
    uint64_t bytes;
    int64_t calls, transfer_ns; /* median */
    size_t first_open;          /* where its times begin in `open` */
    double ratio;               /* to the median of its like */
    double z;                   /* distance from it in robust deviations */
    uint8_t op;
    bool is_open; /* other processes of ours have times of it too */
};

struct mstx_cl_note {
    const char *kind, *severity;
    int32_t rank;                  /* -1: none in particular */
    int64_t first_step, last_step; /* -1: none */
    double value;
    int64_t at_ns;       /* where to look; 0: nowhere */
    uint32_t group, seq; /* of a collective that is told of; else 0 */
    char text[240];
};

struct mstx_cluster {
    MS_VEC(struct mstx_cl_group) group;
    MS_VEC(struct mstx_cl_process) process;
    MS_VEC(struct mstx_cl_step) step;
    mstx_cl_calls coll, p2p;
    MS_VEC(struct mstx_cl_join) join;
    MS_VEC(struct mstx_cl_link) link;
    MS_VEC(int64_t) open; /* times of open paths, ns */
    MS_VEC(struct mstx_cl_note) quarrel, missing, note;
    MS_VEC(char *) host;
    size_t from, to;  /* places that are joined here */
    int64_t step_ns;  /* median of all steps */
    uint64_t strange; /* calls whose number makes no sense */
    bool no_memory;   /* kept: what was not taken is missing */
};

void mstx__cluster_free(struct mstx_cluster *c);

/* A communicator by its id in comm_groups; ids count from 1 and come in their order. */
void mstx__cluster_group(struct mstx_cluster *c, uint32_t id, struct ms_str name, int64_t size,
                         const void *world, uint32_t listed);

/* The number of a host by its name. */
uint32_t mstx__cluster_host(struct mstx_cluster *c, struct ms_str name);

/* Time spans in order of start, joined where they touch; what they cover between two times. */
struct mstx_cl_span {
    int64_t start, end;
};
typedef MS_VEC(struct mstx_cl_span) mstx_cl_spans;
void mstx__spans_join(mstx_cl_spans *s);

/* What one process brings; times of its own clock.  Spans are joined here. */
struct mstx_cl_part {
    int32_t rank;
    uint32_t clock;
    struct ms_str host;
    MS_VEC(struct mstx_cl_step) steps; /* number, start, end; in order */
    mstx_cl_spans comm, work, bubble;  /* communication, computing, waiting to receive */
    mstx_cl_calls calls;               /* group: id in comm_groups, 0: none */
    bool knows_work;                   /* else computing is what is not communication */
};
/* Steps of a part that has none, out of its calls; false: no memory. */
bool mstx__cluster_slice(struct mstx_cl_part *p);
void mstx__cluster_part(struct mstx_cluster *c, struct mstx_cl_part *p);
/* Empty, with its memory. */
void mstx__cluster_part_reset(struct mstx_cl_part *p);
void mstx__cluster_part_free(struct mstx_cl_part *p);

/* Under mpirun, par, all processes of ours call these; without it NULL.  All learn of all ranks and steps,
 * and collectives are dealt out in stretches of (communicator, number), to process 0 a share smaller by
 * `less` of the whole; transfers by who has them with whom. */
struct ms_par;
enum ms_rc mstx__cluster_share(struct mstx_cluster *c, struct ms_par *par, double less,
                               struct ms_err *err) MS_MUST_USE;
/* Where a collective lies among all; SIZE_MAX: its number makes no sense. */
size_t mstx__cluster_place(const struct mstx_cluster *c, const struct mstx_cl_call *k);
/* Ranks of the world at both ends of a transfer; false: the other one is not known. */
bool mstx__cluster_ends(const struct mstx_cluster *c, const struct mstx_cl_call *k, int32_t *src,
                        int32_t *dst);
void mstx__cluster_join(struct mstx_cluster *c);
void mstx__cluster_paths(struct mstx_cluster *c);
enum ms_rc mstx__cluster_gather(struct mstx_cluster *c, struct ms_par *par,
                                struct ms_err *err) MS_MUST_USE;
/* In process 0. */
void mstx__cluster_links(struct mstx_cluster *c);
void mstx__cluster_stragglers(struct mstx_cluster *c);
void mstx__cluster_judge(struct mstx_cluster *c);
/* Everything, in one process. */
enum ms_rc mstx__cluster_conclude(struct mstx_cluster *c, struct ms_err *err) MS_MUST_USE;
/* A new conclusion; NULL: no memory. */
struct mstx_cl_note *mstx__cluster_note(struct mstx_cluster *c, const char *kind,
                                        const char *severity, int32_t rank, double value);

/* Into the tables of run.db. */
enum ms_rc mstx__cluster_save_joins(const struct mstx_cluster *c, struct ms_store *s,
                                    struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__cluster_save(const struct mstx_cluster *c, struct ms_store *s,
                              struct ms_err *err) MS_MUST_USE;

struct mstx_writer;
enum ms_rc mstx__cluster_save_all(const struct mstx_cluster *c, struct mstx_writer *w,
                                  struct ms_err *err) MS_MUST_USE;

/* ---- formulas ----------------------------------------------------------------- */

/* Do all ranks leave only when all have come? */
bool mstx_cl_is_barrier(unsigned op);
/* Bytes that count for the algorithm's bandwidth, and the factor from it to that of the bus, of a
 * call with `bytes` of its own among n ranks. */
double mstx_cl_algorithm_bytes(unsigned op, uint64_t bytes, int64_t n);
double mstx_cl_bus_factor(unsigned op, int64_t n);
double mstx__median(double *v, size_t n); /* v gets another order; 0 of none */

#endif
