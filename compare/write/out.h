/* SPDX-License-Identifier: MIT
 *
 * out: writers of a comparison's files, and the summary that falls off while they
 * look at every row.
 */
#ifndef COMPARE_OUT_H
#define COMPARE_OUT_H

#include "compare/source.h"

enum { CMP_WORST = 10 };

/* A place in the comparison: row `row` of group `group`. */
struct cmp_place {
    size_t group;
    uint32_t row;
    double score; /* relative error that put it on the list */
};

struct cmp_summary {
    uint64_t rows, level[CMP_LEVELS];
    uint64_t unmatched_target, unmatched_golden;
    bool has_first;
    struct cmp_place first; /* the first warning or error in execution order */
    unsigned nworst;
    struct cmp_place worst[CMP_WORST]; /* largest score first */
};
void cmp_summary_add(struct cmp_summary *s, const struct cmp *c, size_t group,
                     const struct cmp_view *v);
/* Add the summary of the part that follows. */
void cmp_summary_join(struct cmp_summary *s, const struct cmp_summary *next);

/* Paths of the files that were written. */
struct cmp_files {
    MS_VEC(char *) list;
};
enum ms_rc cmp_files_add(struct cmp_files *f, struct ms_str path, struct ms_err *err) MS_MUST_USE;
void cmp_files_free(struct cmp_files *f);

/* Write STEM.csv, or STEM_part_N.csv above a million rows.  pool may be NULL. */
enum ms_rc cmp_write_csv(const struct cmp *c, const char *stem, struct ms_pool *pool,
                         struct cmp_summary *sum, struct cmp_files *files,
                         struct ms_err *err) MS_MUST_USE;
/* Write the pairs of rows that a layer mapping came to, as yaml for -dm. */
enum ms_rc cmp_write_mapping(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err) MS_MUST_USE;
/* Write STEM.xlsx, in several sheets above 1,048,500 rows. */
enum ms_rc cmp_write_xlsx(const struct cmp *c, const char *stem, struct cmp_summary *sum,
                          struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

/* Write the suspects and the role of every node of the target: DIR/suspects_STAMP.csv and
 * DIR/roles_STAMP.csv, or both as sheets of DIR/suspects_STAMP.xlsx. */
enum ms_rc cmp_write_suspects(const struct cmp_source *source, const char *dir, const char *stamp,
                              bool xlsx, struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif
