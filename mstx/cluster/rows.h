/* SPDX-License-Identifier: MIT
 *
 * rows: what the analysis of all ranks reads and concludes, as plain arrays in memory.
 *
 * Calls of all ranks are gathered while a run is imported.  Places in one array name rows of
 * another: a call names its communicator, its process and its step.
 */
#ifndef MSTX_CLUSTER_ROWS_H
#define MSTX_CLUSTER_ROWS_H

#include "mstx/format/comm.h"

#include "probe/base/message.h"
#include "probe/base/str.h"
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
    uint32_t seqs;  /* from the first one on; numbers behind are damaged */
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
    int64_t waiting_ns,
        blame_ns; /* in collectives: by this rank for others, by others for this rank */
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
    bool agrees; /* all ranks made the same call */
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
    bool is_open; /* other importing processes may hold times of it too */
};

struct mstx_cl_note {
    const char *kind, *severity;
    int32_t rank;                  /* -1: none in particular */
    int64_t first_step, last_step; /* -1: none */
    double value;
    int64_t at_ns;       /* where to look; 0: nowhere */
    uint32_t group, seq; /* of the collective that the note is about; else 0 */
    struct ms_message said;
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
    uint64_t strange; /* calls whose sequence number is damaged */
    bool no_memory;   /* stays set: rows may be missing */
};

void mstx__cluster_free(struct mstx_cluster *c);
/* Adds a communicator by its id in comm_groups; ids count from 1 and come in their order. */
void mstx__cluster_group(struct mstx_cluster *c, uint32_t id, struct ms_str name, int64_t size,
                         const void *world, uint32_t listed);
/* The number of a host by its name. */
uint32_t mstx__cluster_host(struct mstx_cluster *c, struct ms_str name);
/* A new conclusion; NULL: no memory. */
struct mstx_cl_note *mstx__cluster_note(struct mstx_cluster *c, const char *kind,
                                        const char *severity, int32_t rank, double value);
double mstx__median(double *v, size_t n); /* v gets another order; 0 of none */

#endif
