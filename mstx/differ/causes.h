/* SPDX-License-Identifier: MIT
 *
 * causes: why a step of the new run is longer: the places that explain it, worst first.
 *
 * A cause is the innermost place that holds most of an excess; where several within one place have a
 * part in it, each is a cause.
 */
#ifndef MSTX_DIFFER_CAUSES_H
#define MSTX_DIFFER_CAUSES_H

#include "mstx/differ/difference.h"

enum mstx_cause_kind {
    MSTX_CAUSE_MODULE,
    MSTX_CAUSE_OPERATOR,
    MSTX_CAUSE_KERNEL,
    MSTX_CAUSE_COPY,
    MSTX_CAUSE_COMM,
    MSTX_CAUSE_GAP,
    MSTX_CAUSE_LOAD,
    MSTX_CAUSE_STEP, /* all places, or what no range covers */
    MSTX_CAUSE_HOST, /* other programs disturb the run */
    MSTX_CAUSE_KINDS
};

struct mstx_cause {
    enum mstx_cause_kind kind;
    uint32_t place;
    uint32_t others; /* further places that are new in the same one, and are counted with it */
    int64_t pair;    /* of the rank; -1: all ranks */
    double cost_ns, low_ns, high_ns;
    double old_ns, new_ns; /* of the place */
};

struct mstx_causes {
    MS_VEC(struct mstx_cause) list; /* worst first */
};

/* Returns false when out of memory. */
bool mstx__causes_find(struct mstx_causes *c, const struct mstx_difference *d);
void mstx__causes_free(struct mstx_causes *c);
const char *mstx__cause_word(enum mstx_cause_kind kind);

#endif
