/* SPDX-License-Identifier: MIT
 *
 * ranks: pairs the dumps of two runs when both paths are directories.
 */
#ifndef COMPARE_PAIR_RANKS_H
#define COMPARE_PAIR_RANKS_H

#include "probe/dump/find.h"

struct cmp_couple {
    const struct probe_place *t, *b;
    const char *suffix; /* suffix of the result's name: "_rank0"; "" for single files */
    const char *folder; /* folder below the output directory: "graph/step0"; "" for none */
};

struct cmp_ranks {
    struct probe_places t, b;
    struct ms_arena *arena;
    MS_VEC(struct cmp_couple) list;
    MS_VEC(const char *) notes; /* problems found, such as dumps without a counterpart */
};

/* Pairs dumps. by_position pairs them in order and requires equal numbers of dumps, as the official
 * tool does; otherwise equal ranks are paired. Returns an error when there is no couple. */
enum ms_rc cmp_ranks_pair(struct cmp_ranks *r, const char *target, const char *golden,
                          bool by_position, struct ms_err *err) MS_MUST_USE;
void cmp_ranks_free(struct cmp_ranks *r);

#endif
