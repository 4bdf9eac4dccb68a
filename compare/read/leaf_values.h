/* SPDX-License-Identifier: MIT
 *
 * leaf_values: the leaves of a dump as numbers, all that the error source needs of
 * them.
 *
 * struct read__values owns the numbers of one dump. Parsing the JSON of a leaf is far
 * more expensive than using it, so each leaf is parsed once: a stage that parses a
 * leaf for another purpose stores it with read__values_keep, and
 * read__values_complete parses the remaining ones. Later stages borrow the list.
 */
#ifndef COMPARE_READ_LEAF_VALUES_H
#define COMPARE_READ_LEAF_VALUES_H

#include "probe/dump/dump.h"

enum read__kind {
    READ__UNREAD,  /* the leaf is not parsed yet */
    READ__NOTHING, /* neither a tensor nor a value */
    READ__PLAIN,
    READ__FLOAT,
    READ__WHOLE,
    READ__BOOL
};

enum { READ__SKETCH = 2 };

struct read__value {
    double stat[PROBE_STATS];
    uint64_t n;      /* number of elements; of a plain value the hash of its meaning */
    uint64_t digest; /* hash of the md5; 0: none */
    uint32_t shape;  /* hash of the dimensions */
    uint8_t kind, dtype;
    uint8_t known; /* bit set of the statistics that are present */
    int8_t grad;   /* requires_grad; -1: not recorded */
    float
        sketch[READ__SKETCH]; /* of its elements, see observe/value_sketch.h; zeros: not computed */
};

struct read__values {
    const struct probe_dump *dump;
    struct read__value *list; /* by row of the dump */
};

/* Allocates room for all rows of a dump, which must outlive the values. No leaf is parsed yet. */
enum ms_rc read__values_init(struct read__values *v, const struct probe_dump *dump,
                             struct ms_err *err) MS_MUST_USE;
void read__values_free(struct read__values *v);
/* Stores the leaf of a row that has been parsed. Threads may store different rows at the same
 * time. */
void read__values_keep(struct read__values *v, uint32_t row, const struct probe_leaf *leaf);
/* Parses the leaves that have not been stored, with all threads of the pool. pool may be NULL. */
enum ms_rc read__values_complete(struct read__values *v, struct ms_pool *pool,
                                 struct ms_err *err) MS_MUST_USE;

/* Tells whether the value identifies its tensor, so that it can be followed from writer to
 * reader. */
bool read__is_traceable(const struct read__value *v);
bool read__is_finite(const struct read__value *v);
/* Tells whether the minimum alone is infinite, as in the scores that a mask excludes from a
 * softmax. */
bool read__is_masked(const struct read__value *v);
static inline bool read__is_tensor(const struct read__value *v)
{
    return v->kind >= READ__FLOAT;
}

#endif
