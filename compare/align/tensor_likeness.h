/* SPDX-License-Identifier: MIT
 *
 * tensor_likeness: how similar two tensors are, by their shapes and statistics.
 */
#ifndef COMPARE_ALIGN_TENSOR_LIKENESS_H
#define COMPARE_ALIGN_TENSOR_LIKENESS_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

#define ALIGN__NONE UINT32_MAX

/* ---- shapes without layout ----------------------------------------------- */

enum { ALIGN__NDIM = 8 };
struct align__dim {
    uint64_t n;              /* product of all dimensions */
    uint64_t d[ALIGN__NDIM]; /* ascending, without ones; only the largest if there are more */
    uint32_t nd, next;
};
struct align__dims { /* shapes of both sides */
    MS_VEC(struct align__dim) list;
    uint32_t *slots, mask;
};

struct align__dim align__dim_of(const uint64_t *d, unsigned nd);
bool align__dim_same(const struct align__dim *a, const struct align__dim *b);
enum ms_rc align__dims_put(struct align__dims *dims, const struct align__dim *key, uint32_t *id,
                           struct ms_err *err);
void align__dims_free(struct align__dims *dims);
/* Returns the number of pieces, 2 or more, that one shape makes of the other along one dimension; 0
 * if it makes none. */
uint64_t align__dims_ratio(const struct align__dims *dims, uint32_t a, uint32_t b);
/* Tells whether one shape could be one of 2 to 8 pieces of the other along one dimension. */
bool align__dims_piece(const struct align__dims *dims, uint32_t a, uint32_t b);

/* ---- values -------------------------------------------------------------- */

enum align__class { ALIGN__FLOAT, ALIGN__INT, ALIGN__BOOL, ALIGN__OTHER };

enum { ALIGN__MAX, ALIGN__MIN, ALIGN__MEAN, ALIGN__NORM };
struct align__value { /* all tensors of one side with the same content */
    uint64_t n;
    double stat[4];
    uint64_t digest; /* of the text of the md5; 0: none */
    float ln_norm, ln_peak;
    uint32_t producer;        /* first operator that outputs it, or ALIGN__NONE */
    uint32_t module;          /* owner of the parameter; ALIGN__NONE, ALIGN__MANY */
    uint32_t first_use, uses; /* range in align__side.users */
    uint8_t cls;
    bool known; /* has statistics that can be compared */
};
#define ALIGN__MANY (UINT32_MAX - 1)

/* Returns the distance of two values' statistics; 0: equal; below 0: not comparable. */
float align__distance(const struct align__value *a, const struct align__value *b);
/* Maps a distance to a likeness: 1 for distance 0, falling with a long tail to 0 at distance 1. */
float align__likeness(float distance);

#endif
