/* SPDX-License-Identifier: MIT
 *
 * likeness: how similar the names of operators and of modules are.
 */
#ifndef COMPARE_ALIGN_LIKENESS_H
#define COMPARE_ALIGN_LIKENESS_H

#include "probe/base/map.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

struct align__ctx;
struct align__op;
struct align__link;

/* ---- families of operators ----------------------------------------------- */

/* Names of both sides, and what was learned about names in no family. */
struct align__names {
    struct ms_map apis;      /* names as written */
    MS_VEC(uint16_t) family; /* by name; or ALIGN__FAM_UNKNOWN */
    /* by golden name: its usual partner, where either name is in no family */
    MS_VEC(uint32_t) twin;
    MS_VEC(float) twin_share; /* share of both names' pairs that are with each other, 0 to 1 */
};
#define ALIGN__FAM_UNKNOWN UINT16_MAX

enum ms_rc align__names_put(struct align__names *names, struct ms_str api, uint32_t *id,
                            struct ms_err *err);
void align__names_free(struct align__names *names);
/* Returns the family of an api name such as "__add__" or "norm.RmsNorm". */
uint16_t align__family_find(struct ms_str api);
const char *align__family_text(uint16_t family);
bool align__family_is_view(uint16_t family);
bool align__family_is_split(uint16_t family);
/* Returns the family of an operator that reads a parameter: matmul becomes linear, add becomes
 * biasadd. */
uint16_t align__family_with_weight(uint16_t family);
bool align__family_is_collective(uint16_t family); /* a collective of tensor parallelism */
/* Tells whether `tail` can be the last of the operators that run in place of `fused`. */
bool align__family_fuses(uint16_t fused, uint16_t tail);
/* Returns the likeness of two families. 1: the same; 0.7: one is the usual tail of the other; 0.5:
 * a possible tail; 0.1: an inner member; 0: nothing in common. */
float align__family_likeness(uint16_t a, uint16_t b);

/* Returns the likeness of two operators, by the family table or by what was learned. */
float align__op_likeness(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b);
/* Learns from the pairs found so far which names in no family belong together. */
enum ms_rc align__learn_names(struct align__ctx *c, const struct align__link *pairs, size_t n,
                              struct ms_err *err);

/* ---- words of modules ---------------------------------------------------- */

/* Distinct words of a module's name and class, by number. */
enum { ALIGN__WORDS = 8 };
struct align__words {
    uint32_t id[ALIGN__WORDS];
    uint32_t n;
};
enum ms_rc align__words_read(struct align__ctx *c, struct ms_err *err);
/* Returns the weighted share of common words of two modules' names, 0 to 1; rare words weigh
 * more. */
float align__word_likeness(const struct align__ctx *c, uint32_t a, uint32_t b);

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
