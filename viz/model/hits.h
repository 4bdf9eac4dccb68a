/* SPDX-License-Identifier: MIT
 *
 * hits: slices of a run that match a line of search terms (terms.h), in order of time.
 *
 * Where the terms ask for no duration the count comes from the totals that a run keeps for each name, and of
 * every lane only the first hits are read. Otherwise every slice of the names is read.
 */
#ifndef VIZ_MODEL_HITS_H
#define VIZ_MODEL_HITS_H

#include "mstx/rundb/run_query.h"
#include "viz/model/terms.h"

struct viz_hit {
    uint32_t track; /* index */
    struct mstx_event ev;
};

struct viz_hits {
    MS_VEC(struct viz_hit) list; /* the earliest ones */
    uint64_t count;              /* all of them */
    bool is_cut;                 /* time ran out: there may be more than `count` */
};

/* Finds slices that start at from_ns or later; of these the list keeps the first `limit`, and `count` has those
 * that start earlier, too. Ends about end_ns of the clock. */
enum ms_rc viz_hits_find(struct viz_hits *h, struct mstx_tl *tl, const struct viz_terms *terms,
                         int64_t from_ns, size_t limit, int64_t end_ns,
                         struct ms_err *err) MS_MUST_USE;
void viz_hits_free(struct viz_hits *h);

#endif
