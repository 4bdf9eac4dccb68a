/* SPDX-License-Identifier: MIT
 *
 * names: what a mapping file may call the nodes and rows of a dump.
 */
#ifndef COMPARE_PAIR_NAMES_H
#define COMPARE_PAIR_NAMES_H

#include "compare/pair/cmp_rows.h"
#include "probe/base/nearest.h"

struct cmp__named {
    uint32_t node, row; /* row: MS_MAP_NONE where the name is a node's */
};
struct cmp__names {
    const struct probe_dump *dump;
    struct ms_map map;
    MS_VEC(struct cmp__named) list; /* by number in the map */
    struct ms_arena *arena;
};
/* List the names of a dump's rows, and of its nodes before them if asked to.  Of two things with one
 * name the first has it. */
enum ms_rc cmp__names_list(struct cmp__names *n, const struct probe_dump *d, bool nodes,
                           struct ms_err *err);
void cmp__names_free(struct cmp__names *n);
/* NULL when there is no such name. */
const struct cmp__named *cmp__names_find(const struct cmp__names *n, struct ms_str name);
void cmp__names_offer(const struct cmp__names *n, struct ms_near *near);
/* The name nearest in spelling, NULL when none is near; it ends with a NUL. */
const char *cmp__names_near(const struct cmp__names *n, const char *word);

/* Names in a mapping file that a side does not have: the first few become problems, the others a
 * number. */
struct cmp__unknown {
    struct cmp_problems *problems;
    const char *file, *side, *what; /* "row" and so on */
    size_t n;
};
/* Is the next one still told by its name? */
bool cmp__unknown_is_told(const struct cmp__unknown *u);
/* near: the name it may have been meant for, or NULL. */
enum ms_rc cmp__unknown_tell(struct cmp__unknown *u, struct ms_str name, const char *near,
                             struct ms_err *err);
enum ms_rc cmp__unknown_end(const struct cmp__unknown *u, struct ms_err *err);

#endif
