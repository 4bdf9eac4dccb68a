/* SPDX-License-Identifier: MIT
 *
 * ranks: which dump of the target goes with which of the golden side, when the two
 * paths are directories.
 */
#ifndef COMPARE_PAIR_RANKS_H
#define COMPARE_PAIR_RANKS_H

#include "probe/dump/find.h"

struct cmp_couple {
    const struct probe_place *t, *b;
    const char *suffix; /* of the result's name: "_rank0"; "" for single files */
    const char *folder; /* below the output directory: "graph/step0"; "" for none */
};

struct cmp_ranks {
    struct probe_places t, b;
    struct ms_arena *arena;
    MS_VEC(struct cmp_couple) list;
    MS_VEC(const char *) notes; /* what has no counterpart */
};

/* by_position pairs in order and wants equal numbers, as the official tool does; otherwise rank is
 * paired with the same rank.  At least one couple, or an error. */
enum ms_rc cmp_ranks_pair(struct cmp_ranks *r, const char *target, const char *golden,
                          bool by_position, struct ms_err *err) MS_MUST_USE;
void cmp_ranks_free(struct cmp_ranks *r);

#endif
