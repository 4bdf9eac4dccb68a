/* SPDX-License-Identifier: MIT
 *
 * overflow_int: what the stages of the overflow search share:
 *
 *     overflow_scan   one rank's dump ──► its communication and the operators that overflow
 *     overflow        communication of all ranks ──► groups in order of time; the three phases
 */
#ifndef PROBE_OVERFLOW_OVERFLOW_INT_H
#define PROBE_OVERFLOW_OVERFLOW_INT_H

#include "probe/overflow/overflow.h"

/* An operator with finite inputs and a bad output, or another record that could be an answer. */
struct probe__origin {
    struct ms_str name;
    uint64_t off;
    uint32_t segment; /* number of earlier communication operators of this rank */
    uint32_t sub;     /* number of operators since the last communication */
    bool asked_for;
    bool communication;
};

/* A communication operator on one rank. */
struct probe__comm {
    struct ms_str name;
    uint64_t off;
    uint32_t sub;             /* number of operators since the previous one */
    uint32_t first_tag, tags; /* range in the rank's tags */
    bool gives;               /* sends its input; false for a pure receiver */
    bool in_bad, out_bad;
};

struct probe__rank {
    const struct probe_place *place;
    struct ms_arena *arena;
    MS_VEC(struct probe__origin) origins;
    MS_VEC(struct probe__comm) comms;
    /* Operators of two ranks that have a tag in common are one event: "all_reduce|0,1|3" is the
     * fourth all_reduce of this group, "p2p|0|1|2" the third message from 0 to 1. */
    MS_VEC(struct ms_str) tags;
    struct ms_map counters; /* kind of call <-> index in counts, while scanning */
    MS_VEC(uint32_t) counts;
    struct probe__origin present; /* first record with NaN or Inf anywhere */
    bool has_present;
    bool read;
    struct ms_err err;
};

struct probe__scan_conf {
    const char *const *ignore;
    size_t nignore;
    unsigned open_flags;
};

/* Reads the dump at r->place. */
enum ms_rc probe__overflow_scan(struct probe__rank *r, const struct probe__scan_conf *conf,
                                struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe__rank_free(struct probe__rank *r);

#endif
