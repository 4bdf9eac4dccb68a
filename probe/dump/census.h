/* SPDX-License-Identifier: MIT
 *
 * census: what is in a dump, counted.
 */
#ifndef PROBE_CENSUS_H
#define PROBE_CENSUS_H

#include "probe/dump.h"

enum { PROBE_NODE_KINDS = PROBE_NODE_DEBUG + 1 };

struct probe_census {
    uint64_t nodes[PROBE_NODE_KINDS];
    uint64_t forward, backward;
    struct ms_map prefixes; /* Functional, Module, ...: text is the dump's */
    MS_VEC(uint64_t) prefix_nodes;
    uint64_t tensors, values, nulls;
    uint64_t nan_tensors, inf_tensors; /* with such a Max, Min, Mean or Norm */
    uint64_t unfinished;               /* placeholders that a crash left behind */
    uint64_t files;                    /* tensors that name a data file */
    uint64_t of_dtype[MS_DT_MAX];      /* tensors */
    uint64_t tensor_bytes;             /* of the tensors described, as they were in memory */
    uint32_t first_nan, first_inf;     /* rows, MS_MAP_NONE when there is none */
};

/* Count; pool may be NULL. */
enum ms_rc probe_census_take(struct probe_census *c, const struct probe_dump *d,
                             struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_census_free(struct probe_census *c);

#endif
