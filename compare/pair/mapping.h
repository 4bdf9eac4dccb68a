/* SPDX-License-Identifier: MIT
 *
 * mapping: the mapping files of the official tool, as they are read.
 */
#ifndef COMPARE_PAIR_MAPPING_H
#define COMPARE_PAIR_MAPPING_H

#include "probe/base/arena.h"
#include "probe/base/err.h"
#include "probe/base/map.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

struct cmp__pairs { /* key: value, in file order */
    struct ms_map keys;
    MS_VEC(struct ms_str) values;
    struct ms_arena *arena;
};
struct cmp__api_rule { /* one entry of an api mapping */
    struct ms_str ms, pt;
    struct cmp__index_list {
        MS_VEC(struct ms_str) ms, pt;
    } part[4]; /* args, output, parameters, parameters_grad */
    bool valid;
};
struct cmp__api_rules {
    MS_VEC(struct cmp__api_rule) list;
    struct ms_arena *arena;
};
struct cmp__layers { /* class: { key: value } */
    struct ms_map classes;
    MS_VEC(struct cmp__pairs) maps; /* by class; they use the arena of this struct */
    struct ms_arena *arena;
};
enum ms_rc cmp__pairs_read(struct cmp__pairs *p, const char *path, struct ms_err *err);
enum ms_rc cmp__pairs_parse(struct cmp__pairs *p, const char *name, struct ms_str text,
                            struct ms_err *err);
void cmp__pairs_free(struct cmp__pairs *p);
enum ms_rc cmp__api_rules_read(struct cmp__api_rules *r, const char *path, struct ms_err *err);
enum ms_rc cmp__api_rules_parse(struct cmp__api_rules *r, const char *name, struct ms_str text,
                                struct ms_err *err);
void cmp__api_rules_free(struct cmp__api_rules *r);
enum ms_rc cmp__layers_new(struct cmp__layers *l, struct ms_err *err);
/* Sets the value of a key in a class and replaces an earlier value. */
enum ms_rc cmp__layers_set(struct cmp__layers *l, struct ms_str cls, struct ms_str key,
                           struct ms_str value, struct ms_err *err);
enum ms_rc cmp__layers_read(struct cmp__layers *l, const char *path, struct ms_err *err);
enum ms_rc cmp__layers_parse(struct cmp__layers *l, const char *name, struct ms_str text,
                             struct ms_err *err);
void cmp__layers_free(struct cmp__layers *l);

/* The official table of MindSpore names and the PyTorch names of the same operators, sorted by
 * ms. */
struct cmp__api_twin {
    const char *ms, *pt;
};
extern const struct cmp__api_twin cmp__api_twins[];
extern const size_t cmp__api_twin_count;

/* Applies the built-in table of -am from MindSpore to PyTorch names. */
void cmp__rename_builtin(struct ms_buf *name, struct ms_buf *scratch);
/* Applies a user's api mapping; `original` is the name before the built-in table was applied.
 * Returns false when the rule of this api does not list the row. whole: the entry of an argument
 * does not cover values nested inside it. */
bool cmp__rename_by_rules(const struct cmp__api_rules *rules, bool whole, struct ms_str original,
                          struct ms_buf *name, struct ms_buf *scratch);
/* Applies -cm; map may be NULL. whole_only: a line of the map replaces whole names only. Returns
 * false when the row does not belong to a module. */
bool cmp__rename_cell(const struct cmp__pairs *map, bool whole_only, struct ms_buf *name,
                      struct ms_buf *scratch, struct ms_buf *cell);
/* Returns the part of a name that a cell mapping maps, between the first dot and the direction; p
 * is NULL when there is none. */
struct ms_str cmp__cell_part(struct ms_str name);
/* Applies -fm: Torch.a.3.forward.input.0 becomes Torch.a.forward.input.0. */
void cmp__rename_fuzzy(struct ms_buf *name, struct ms_buf *scratch);

#endif
