/* SPDX-License-Identifier: MIT
 *
 * merge: the results of many ranks side by side, a sheet for each figure.
 *
 *     compare_result_rank0_*.xlsx ─┐            sheet "Max diff":  NPU Name | rank0 | rank1 | ...
 *     compare_result_rank1_*.csv  ─┼─ merge ─►  sheet "NormRelativeErr": ...
 *     ...                         ─┘
 *
 * Only rows of the operators asked for are kept in memory.
 */
#ifndef COMPARE_OFFICIAL_MERGE_H
#define COMPARE_OFFICIAL_MERGE_H

#include "compare/write/out.h"
#include "probe/base/arena.h"
#include "probe/base/map.h"

/* api: [Distributed.all_reduce], compare_index: [Max diff] */
struct cmp_merge_conf {
    struct ms_arena *arena;
    MS_VEC(struct ms_str) api, index; /* an empty index: all figures there are */
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
    size_t rows; /* of the operators asked for */
    MS_VEC(struct cmp_merge_cell)
    cells; /* nfigures for each name, as far as this rank knows them */
};
/* Where a name was first seen. */
struct cmp_merge_place {
    uint64_t rank;
    size_t api; /* of the configuration, the first that the name belongs to */
};
struct cmp_merge {
    struct ms_arena *arena;
    MS_VEC(struct cmp_merge_rank) ranks;
    MS_VEC(const char *) notes;            /* what was left out, and why */
    struct ms_map names;                   /* of rows */
    MS_VEC(struct cmp_merge_place) places; /* of names */
    const char *figures[CMP_MERGE_FIGURES];
    unsigned nfigures;
};

/* Read the results that lie in dir, of at least two ranks; a file that cannot be used is noted and
 * left out. */
enum ms_rc cmp_merge_read(struct cmp_merge *m, const char *dir, const struct cmp_merge_conf *conf,
                          struct ms_err *err) MS_MUST_USE;
/* One sheet a figure, a column a rank; rows of the first rank that has them, by operator as the
 * configuration names them and then as they ran. */
enum ms_rc cmp_merge_write(const struct cmp_merge *m, const char *path,
                           struct ms_err *err) MS_MUST_USE;
void cmp_merge_free(struct cmp_merge *m);

/* Is it the file of a rank's result?  Then its rank and time. */
bool cmp__merge_name(struct ms_str name, uint64_t *rank, uint64_t *stamp);

#endif
