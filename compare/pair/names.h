/* SPDX-License-Identifier: MIT
 *
 * names: the names by which a mapping file may refer to nodes and rows of a dump.
 */
#ifndef COMPARE_PAIR_NAMES_H
#define COMPARE_PAIR_NAMES_H

#include "compare/pair/cmp_rows.h"
#include "probe/base/nearest.h"

struct cmp__named {
    uint32_t node, row; /* row: MS_MAP_NONE for the name of a node */
};
struct cmp__names {
    const struct probe_dump *dump;
    struct ms_map map;
    MS_VEC(struct cmp__named) list; /* by index in the map */
    struct ms_arena *arena;
};
/* Lists the names of a dump's rows and, with nodes, those of its nodes first. A name that occurs
 * twice belongs to its first occurrence. */
enum ms_rc cmp__names_list(struct cmp__names *n, const struct probe_dump *d, bool nodes,
                           struct ms_err *err);
void cmp__names_free(struct cmp__names *n);
/* Returns NULL when there is no such name. */
const struct cmp__named *cmp__names_find(const struct cmp__names *n, struct ms_str name);
void cmp__names_offer(const struct cmp__names *n, struct ms_near *near);
/* Returns the most similar name, which ends with a NUL; NULL when no name is similar enough. */
const char *cmp__names_near(const struct cmp__names *n, const char *word);

/* Unknown names of a mapping file: the first few become problems of the comparison; of the rest
 * only the number is reported. */
struct cmp__unknown {
    struct cmp_problems *problems;
    const char *file, *side, *what; /* "row" and so on */
    size_t n;
};
/* Tells whether the next unknown name is still reported in full. */
bool cmp__unknown_is_reported(const struct cmp__unknown *u);
/* Reports a name; near is a suggestion or NULL. */
enum ms_rc cmp__unknown_report(struct cmp__unknown *u, struct ms_str name, const char *near,
                               struct ms_err *err);
enum ms_rc cmp__unknown_end(const struct cmp__unknown *u, struct ms_err *err);

/* Also invalidates entries of operators that a side does not have, and entries that list different
 * numbers of arguments on the two sides. */
enum ms_rc cmp__check_rules(struct cmp_rows *c, struct cmp__api_rules *rules, struct ms_err *err);
enum ms_rc cmp__check_cells(struct cmp_rows *c, const struct cmp__pairs *cells, struct ms_err *err);
/* Paths of the modules and operators of both sides, such as net.layers.0.fc; classes are those of
 * the target. */
struct cmp__known_layers {
    const struct ms_map *target, *golden;
    const struct ms_str *classes;
    size_t n_classes;
};
/* Reports names of the -dm file that the side they belong to does not have. */
enum ms_rc cmp__check_names(struct cmp_rows *c, struct ms_err *err);
enum ms_rc cmp__check_layers(struct cmp_rows *c, const struct cmp__layers *layers,
                             const struct cmp__known_layers *known, struct ms_err *err);

#endif
