/* SPDX-License-Identifier: MIT
 *
 * census: counts what a dump contains.
 */
#ifndef PROBE_DUMP_CENSUS_H
#define PROBE_DUMP_CENSUS_H

#include "probe/dump/dump.h"
#include "probe/dump/find.h"

enum { PROBE_NODE_KINDS = PROBE_NODE_DEBUG + 1 };

struct probe_census {
    uint64_t nodes[PROBE_NODE_KINDS];
    uint64_t forward, backward;
    struct ms_map prefixes; /* Functional, Module, ...; text borrowed from the dump */
    MS_VEC(uint64_t) prefix_nodes;
    uint64_t tensors, values, nulls;
    uint64_t nan_tensors, inf_tensors; /* whose Max, Min, Mean or Norm is NaN or infinite */
    uint64_t masked_tensors;           /* forward, only minus infinity: not in inf_tensors */
    uint64_t unfinished;               /* placeholders left by a crash */
    uint64_t files;                    /* tensors that name a data file */
    uint64_t of_dtype[MS_DT_MAX];      /* tensors */
    uint64_t tensor_bytes;             /* size of the described tensors in memory */
    uint32_t first_nan, first_inf;     /* row index, or MS_MAP_NONE */
};

/* Counts the contents of a dump; pool may be NULL. */
enum ms_rc probe_census_take(struct probe_census *c, const struct probe_dump *d,
                             struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_census_free(struct probe_census *c);

/* ---- all dumps below a path ---------------------------------------------- */

/* The dump of one rank. */
struct probe_stat_rank {
    const struct probe_place *place;
    struct probe_dump *dump; /* NULL: could not be read; see err */
    struct probe_census census;
    struct ms_err err;
};

/* Result of probe_stat_read; zero it first. */
struct probe_stat {
    struct probe_places places;
    struct probe_stat_rank *ranks; /* one for each place */
    uint64_t bytes;                /* of JSON read */
    int64_t took_ns;
    size_t failed; /* ranks that could not be read */
};

/* Reads and counts every dump below path. A rank that cannot be read keeps its failure in `err`,
 * and the other ranks are still read. Several ranks are read in parallel; a single dump is read in
 * parts, in parallel. */
enum ms_rc probe_stat_read(struct probe_stat *s, const char *path, unsigned flags,
                           struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
/* Frees the result, also after a failure. */
void probe_stat_free(struct probe_stat *s);

#endif
