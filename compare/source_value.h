/* SPDX-License-Identifier: MIT
 *
 * source_value: one leaf of a dump as numbers, which is all that the error source
 * wants to know of it.
 */
#ifndef COMPARE_SOURCE_VALUE_H
#define COMPARE_SOURCE_VALUE_H

#include "probe/leaf.h"

enum source__kind {
    SOURCE__UNREAD, /* nobody has looked */
    SOURCE__NOTHING,
    SOURCE__PLAIN,
    SOURCE__FLOAT,
    SOURCE__WHOLE,
    SOURCE__BOOL
};

struct source__value {
    double stat[PROBE_STATS];
    uint64_t n;      /* elements; of a plain value what it is, as a hash */
    uint64_t digest; /* of md5; 0: none */
    uint32_t shape;  /* hash of the dimensions */
    uint8_t kind, dtype;
    uint8_t known; /* bits: statistics that are there */
    int8_t grad;   /* -1: not said */
};

void source__take(const struct probe_leaf *leaf, struct source__value *v);
/* Is it one value and no other: can it be followed from writer to reader? */
bool source__is_traceable(const struct source__value *v);
bool source__is_finite(const struct source__value *v);
/* Infinite downwards alone, as what a softmax is kept from seeing is made to be. */
bool source__is_masked(const struct source__value *v);
static inline bool source__is_tensor(const struct source__value *v)
{
    return v->kind >= SOURCE__FLOAT;
}

#endif
