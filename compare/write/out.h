/* SPDX-License-Identifier: MIT
 *
 * out: writes the files of a comparison.
 */
#ifndef COMPARE_WRITE_OUT_H
#define COMPARE_WRITE_OUT_H

#include "compare/source/source.h"
#include "compare/table/summary.h"

/* Writes STEM.csv, or STEM_part_N.csv above a million rows. pool may be NULL. */
enum ms_rc cmp_write_csv(const struct cmp *c, const char *stem, struct ms_pool *pool,
                         struct cmp_summary *sum, struct cmp_files *files,
                         struct ms_err *err) MS_MUST_USE;
/* Writes the pairs of rows that a layer mapping expands to, as yaml for -dm. */
enum ms_rc cmp_write_mapping(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err) MS_MUST_USE;
/* Writes STEM.xlsx, in several sheets above 1,048,500 rows. */
enum ms_rc cmp_write_xlsx(const struct cmp *c, const char *stem, struct cmp_summary *sum,
                          struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

/* Writes the suspects and the role of every node of the target: DIR/suspects_STAMP.csv and
 * DIR/roles_STAMP.csv, or both as sheets of DIR/suspects_STAMP.xlsx. */
enum ms_rc cmp_write_suspects(const struct cmp_source *source, const char *dir, const char *stamp,
                              bool xlsx, struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif
