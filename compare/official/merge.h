/* SPDX-License-Identifier: MIT
 *
 * merge: writes the results of many ranks side by side, one sheet for each figure.
 *
 *     compare_result_rank0_*.xlsx ─┐            sheet "Max diff":  NPU Name | rank0 | rank1 | ...
 *     compare_result_rank1_*.csv  ─┼─ merge ─►  sheet "NormRelativeErr": ...
 *     ...                         ─┘
 *
 * Only rows of the configured operators are kept in memory.
 */
#ifndef COMPARE_OFFICIAL_MERGE_H
#define COMPARE_OFFICIAL_MERGE_H

#include "compare/write/out.h"
#include "probe/base/arena.h"
#include "probe/base/map.h"

/* Configuration, for example api: [Distributed.all_reduce], compare_index: [Max diff]. */
struct cmp_merge_conf {
    struct ms_arena *arena;
    MS_VEC(struct ms_str) api, index; /* an empty index: all figures */
};
enum ms_rc cmp_merge_conf_read(struct cmp_merge_conf *c, const char *path,
                               struct ms_err *err) MS_MUST_USE;
enum ms_rc cmp_merge_conf_parse(struct cmp_merge_conf *c, const char *name, struct ms_str text,
                                struct ms_err *err) MS_MUST_USE;
void cmp_merge_conf_free(struct cmp_merge_conf *c);

enum { CMP_MERGE_FIGURES = 16 };

struct cmp_merge_cell {
    struct ms_str text; /* p is NULL: the rank has no such row */
};
/* The latest result of a rank: one file, or its parts. */
struct cmp_merge_rank {
    uint64_t rank, stamp;
    MS_VEC(const char *) paths;
    size_t rows; /* number of rows of the configured operators */
    MS_VEC(struct cmp_merge_cell)
    cells; /* nfigures cells for each name known to this rank */
};
/* Where a name was first seen. */
struct cmp_merge_place {
    uint64_t rank;
    size_t api; /* index of the first configured API that matches the name */
};
struct cmp_merge {
    struct ms_arena *arena;
    MS_VEC(struct cmp_merge_rank) ranks;
    MS_VEC(const char *) notes;            /* files left out, with the reason */
    struct ms_map names;                   /* names of rows */
    MS_VEC(struct cmp_merge_place) places; /* first occurrence by name */
    const char *figures[CMP_MERGE_FIGURES];
    unsigned nfigures;
};

/* Reads the results in dir, of at least two ranks; a file that cannot be used is noted and left
 * out. */
enum ms_rc cmp_merge_read(struct cmp_merge *m, const char *dir, const struct cmp_merge_conf *conf,
                          struct ms_err *err) MS_MUST_USE;
/* Writes one sheet per figure and one column per rank. Rows are ordered by the first rank that has
 * them, then by operator as in the configuration, then by execution. */
enum ms_rc cmp_merge_write(const struct cmp_merge *m, const char *path,
                           struct ms_err *err) MS_MUST_USE;
void cmp_merge_free(struct cmp_merge *m);

/* Parses the file name of a rank's result into rank and timestamp; false for other names. */
bool cmp__merge_name(struct ms_str name, uint64_t *rank, uint64_t *stamp);

#endif
