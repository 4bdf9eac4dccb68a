/* SPDX-License-Identifier: MIT
 *
 * name_likeness: how similar the names of operators and of modules are.
 */
#ifndef COMPARE_ALIGN_NAME_LIKENESS_H
#define COMPARE_ALIGN_NAME_LIKENESS_H

#include "probe/base/map.h"
#include "probe/base/vec.h"

struct align__ctx;
struct align__op;
struct align__link;

/* ---- families of operators ----------------------------------------------- */

struct align__family {
    const char *name;
    bool view;
    uint64_t members[3], tails[3], last[3]; /* of a fused family: sets of families */
};

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
bool align__family_is_linear(uint16_t family);     /* linear or matmul */
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

#endif
