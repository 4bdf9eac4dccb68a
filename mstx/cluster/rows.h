/* SPDX-License-Identifier: MIT
 *
 * rows: input and results of the analysis of all ranks, as plain arrays in memory.
 *
 * Calls of all ranks are collected while a run is imported.  Rows refer to each other by index: a
 * call has the indices of its communicator, its process and its step.
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
    uint32_t group; /* index in groups */
    uint32_t seq;
    uint32_t process;
    uint32_t step; /* index in steps, or MSTX_NO_STEP */
    int32_t peer;  /* rank in the communicator, -1: none */
    uint8_t op, dtype;
    uint8_t flags;      /* MSTX_CF_* */
    uint8_t unfinished; /* has not returned */
};
typedef MS_VEC(struct mstx_cl_call) mstx_cl_calls;

struct mstx_cl_group {
    uint32_t id;              /* in comm_groups */
    char *name;               /* "communicator 7" when it was not named */
    int64_t size;             /* number of ranks; -1: unknown */
    MS_VEC(int32_t) world;    /* world rank of each rank of the communicator */
    MS_VEC(uint32_t) members; /* processes that made collective calls, ascending */
    MS_VEC(double) cost;      /* own time minus the median of the others: members x steps */
    double noise, spread;     /* of cost: from step to step, and between members over all steps */
    uint64_t calls;           /* number of collective calls of all members */
    uint32_t first_seq, last_seq;
    uint32_t seqs;  /* valid sequence numbers from first_seq on; greater ones are damaged */
    uint32_t hosts; /* number of hosts of the members; 2 means two or more */
    size_t place;   /* of its first collective among those of all communicators */
};

struct mstx_cl_process {
    int32_t rank;
    uint32_t host;              /* number of its host's name */
    uint32_t clock;             /* index of its host's clock in the import */
    uint32_t first_step, steps; /* first index in steps, and number of steps */
};

/* One step of one rank. */
struct mstx_cl_step {
    uint32_t process, number;
    int64_t start_ns, end_ns;
    int64_t computing_ns, comm_ns, overlapped_ns, free_ns, bubble_ns, preparing_ns;
    int64_t waiting_ns,
        blame_ns; /* in collectives: this rank waiting for others, others waiting for this rank */
};

/* One collective of all its ranks. */
struct mstx_cl_join {
    uint32_t group, seq;
    uint32_t ranks;      /* number of ranks that made the call */
    uint32_t last;       /* process that arrived last; UINT32_MAX: unknown */
    uint32_t step;       /* step number, MSTX_NO_STEP: none */
    int64_t start_ns;    /* of the earliest call, by the rank's own clock */
    int64_t transfer_ns; /* without waiting; -1: unknown */
    int64_t skew_ns;     /* between the first and the last arrival */
    int64_t waited_ns;   /* sum over all ranks */
    uint64_t bytes;      /* for the bandwidth */
    uint8_t op;
    bool agrees; /* all ranks made the same call */
};

/* A kind of transfer on one path: a pair of ranks, or all of a communicator. */
struct mstx_cl_link {
    int32_t src, dst; /* world ranks; -1 for a communicator */
    uint32_t group, ranks;
    uint32_t hosts;
    uint64_t bytes;
    int64_t calls, transfer_ns; /* median */
    size_t first_open;          /* index of its first time in `open` */
    double ratio;               /* of its time to the median of paths that are alike */
    double z;                   /* distance from this median in robust deviations */
    uint8_t op;
    bool is_open; /* other importing processes may hold times of this path */
};

struct mstx_cl_note {
    const char *kind, *severity;
    int32_t rank;                  /* -1: no single rank */
    int64_t first_step, last_step; /* -1: none */
    double value;
    int64_t at_ns;       /* time to show in a viewer; 0: none */
    uint32_t group, seq; /* the collective that the note is about; 0: none */
    struct ms_message message;
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
    size_t from, to;  /* range of places that this process joins */
    int64_t step_ns;  /* median of all steps */
    uint64_t strange; /* calls whose sequence number is damaged */
    bool no_memory;   /* stays set: rows may be missing */
};

void mstx__cluster_free(struct mstx_cluster *c);
/* Adds a communicator by its id in comm_groups; ids count from 1 and must be added in order. */
void mstx__cluster_group(struct mstx_cluster *c, uint32_t id, struct ms_str name, int64_t size,
                         const void *world, uint32_t listed);
/* Returns the number of a host by its name. */
uint32_t mstx__cluster_host(struct mstx_cluster *c, struct ms_str name);
/* Adds a note; returns NULL when out of memory. */
struct mstx_cl_note *mstx__cluster_note(struct mstx_cluster *c, const char *kind,
                                        const char *severity, int32_t rank, double value);
double mstx__median(double *v, size_t n); /* reorders v; returns 0 when n is 0 */

#endif
