/* SPDX-License-Identifier: MIT
 *
 * layer_int: a dump as a layer mapping sees it, which those share who read such a
 * mapping and who write one.
 *
 *     struct layer__layout l;
 *     layer__lay_out(&l, side, &stacks, err);
 *     layer__map(&l, &rules, path, &out);      where the other side should have it
 *     i = layer__op_at(&other, path, state, n);
 *     layer__free(&l);
 */
#ifndef COMPARE_PAIR_LAYER_INT_H
#define COMPARE_PAIR_LAYER_INT_H

#include "compare/pair/layer.h"

#define LAYER__MAP_MAX ((size_t)8 << 30)

struct layer__op {
    uint32_t node; /* of the dump */
    struct ms_str scope, type, state;
    uint32_t number; /* the how manieth of its scope and state */
};

struct layer__layout {
    const struct cmp__side *side;
    const struct probe_stacks *stacks;
    bool mindspore, official;
    bool bare; /* neither stacks nor a tree */
    struct probe_tree tree;
    struct ms_arena *arena;
    MS_VEC(struct layer__op) ops;
    struct ms_map names;   /* op name -> place in ops */
    struct ms_map classes; /* path -> class */
    MS_VEC(struct ms_str) class_of;
    struct ms_map counts; /* path and state -> how many */
    MS_VEC(uint32_t) count_of;
    struct ms_map slots; /* path, state and number -> op */
    MS_VEC(uint32_t) op_at;
    struct ms_buf a, b;
};

/* Lays out one side of c.  Needs construct.json beside the dump.  To be freed even when it fails. */
enum ms_rc layer__lay_out(struct layer__layout *l, const struct cmp_rows *c,
                          const struct cmp__side *side, const struct probe_stacks *stacks,
                          struct ms_err *err);
void layer__free(struct layer__layout *l);

/* A scope without its first component, which says only Cell, Module or TopLayer. */
struct ms_str layer__path(struct ms_str scope);
/* The class of the module or operator that is there; empty: none is. */
struct ms_str layer__class(const struct layer__layout *l, struct ms_str path);
/* How many ops have this path and state; the n-th of them in ops, or MS_MAP_NONE. */
uint32_t layer__count(struct layer__layout *l, struct ms_str path, struct ms_str state);
uint32_t layer__op_at(struct layer__layout *l, struct ms_str path, struct ms_str state, uint32_t n);
/* The path on the golden side, by the rules and else by the same name.  True when a rule says the
 * last of it. */
bool layer__map(const struct layer__layout *l, const struct cmp__layers *rules, struct ms_str path,
                struct ms_buf *out);
/* Stacks of the golden side; *there: it has some. */
enum ms_rc layer__golden_stacks(const struct cmp_rows *c, struct probe_stacks *s, bool *there,
                                struct ms_err *err);

#endif
