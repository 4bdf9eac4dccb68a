/* SPDX-License-Identifier: MIT
 *
 * search: the state of one alignment, which the steps fill one after the other.
 *
 *     dump, construct ─► side ─┐   anchors: values that are unique on each side
 *                              ├─► modules: those that own parameters, in order, k to 1
 *     dump, construct ─► side ─┘   segments: operators between two anchors, three rounds
 *                                  vote: modules that contain the same pairs
 *                                  emit: members, parts, backward ─► pairs
 *
 * In arrays of two, index 0 is the golden side and 1 the target. Nothing depends on
 * addresses or hash order, so equal input gives equal output.
 */
#ifndef COMPARE_ALIGN_SEARCH_H
#define COMPARE_ALIGN_SEARCH_H

#include "compare/align/forward_ops.h"
#include "compare/align/monotone_path.h"
#include "probe/base/pool.h"

struct align__ctx {
    struct align__side side[2];
    struct align__names names;
    struct align__dims dims;
    struct ms_arena *arena;
    struct ms_pool *pool; /* NULL: only the calling thread works */
    float sigma, strict;  /* noise of equal values; least likeness that counts as equality */
    bool by_value;        /* false: only structure counts */
    uint64_t cut[2];      /* number of shards that each side's tensors are cut into; 1: whole */
    MS_VEC(struct align__link) anchors; /* pairs of operators */
    uint32_t *op[2];                    /* by operator: its partner, or ALIGN__NONE */
    /* by module: its partner, or one of its parts, as context of operators */
    uint32_t *mod[2];
    uint32_t *mod_pair[2]; /* by module: its partner */
    /* by module: its partner by the order of modules with parameters */
    uint32_t *mod_dp[2];
    MS_VEC(struct align__link) parts; /* modules, k to one: a or b repeats */
    uint32_t *vmap;                   /* golden value -> target value */
    uint32_t *vmap_back;
    struct align__words *words[2]; /* by module */
    float *word_weight;            /* by word: rare words weigh more */
    uint64_t cells;
    unsigned round; /* 0 to ALIGN__ROUNDS - 1 */
};
/* With one round instead of three, recall of groups is 0.995 instead of 0.997 and precision 0.996
 * instead of 0.998. */
enum { ALIGN__ROUNDS = 3 };

/* Tells whether the partners of n entries point back to them. Used in contracts. */
static inline bool align__is_mutual(const uint32_t *partner, size_t n, const uint32_t *back)
{
    for (uint32_t i = 0; i < n; i++) {
        if (partner[i] != ALIGN__NONE && back[partner[i]] != i)
            return false;
    }
    return true;
}

/* Tells whether two sizes are equal, or are those of a whole and one rank's shard of it. */
static inline bool align__same_size(const struct align__ctx *c, uint64_t golden, uint64_t target)
{
    return golden == target || golden * c->cut[0] == target * c->cut[1];
}

#endif
