/* SPDX-License-Identifier: MIT
 *
 * layer_scope: a dump as a layer mapping sees it: the scope of every operator.
 *
 *     struct layer__layout l;
 *     layer__lay_out(&l, side, &stacks, err);
 *     layer__map(&l, &rules, path, &out);      the path on the other side
 *     i = layer__op_at(&other, path, state, n);
 *     layer__free(&l);
 */
#ifndef COMPARE_PAIR_LAYER_SCOPE_H
#define COMPARE_PAIR_LAYER_SCOPE_H

#include "compare/pair/cmp_rows.h"

#define LAYER__MAP_MAX ((size_t)8 << 30)

struct layer__op {
    uint32_t node; /* number in the dump */
    struct ms_str scope, type, state;
    uint32_t number; /* zero-based occurrence among operators with this scope and state */
};

struct layer__layout {
    const struct cmp__side *side;
    const struct probe_stacks *stacks;
    bool mindspore, official;
    bool bare; /* neither stack.json nor construct.json is there */
    struct probe_tree tree;
    struct ms_arena *arena;
    MS_VEC(struct layer__op) ops;
    struct ms_map names;   /* operator name -> index in ops */
    struct ms_map classes; /* path -> class */
    MS_VEC(struct ms_str) class_of;
    struct ms_map counts; /* path and state -> number of operators */
    MS_VEC(uint32_t) count_of;
    struct ms_map slots; /* path, state and number -> index in ops */
    MS_VEC(uint32_t) op_at;
    struct ms_buf a, b;
};

/* Lays out one side of c from the construct.json beside the dump. The caller frees l even after a
 * failure. */
enum ms_rc layer__lay_out(struct layer__layout *l, const struct cmp_rows *c,
                          const struct cmp__side *side, const struct probe_stacks *stacks,
                          struct ms_err *err);
void layer__free(struct layer__layout *l);

/* Returns a scope without its first component, which is only Cell, Module or TopLayer. */
struct ms_str layer__path(struct ms_str scope);
/* Returns the class of the module or operator at this path; empty when there is none. */
struct ms_str layer__class(const struct layer__layout *l, struct ms_str path);
/* Number of operators with this path and state; index in ops of the n-th of them, or
 * MS_MAP_NONE. */
uint32_t layer__count(struct layer__layout *l, struct ms_str path, struct ms_str state);
uint32_t layer__op_at(struct layer__layout *l, struct ms_str path, struct ms_str state, uint32_t n);
/* Maps a path to the golden side by the rules; a component without a rule keeps its name. Returns
 * whether a rule named the last component. */
bool layer__map(const struct layer__layout *l, const struct cmp__layers *rules, struct ms_str path,
                struct ms_buf *out);

#endif
