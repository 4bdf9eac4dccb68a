/* SPDX-License-Identifier: MIT
 *
 * diff: the first op that differs, over all ranks (-da).
 *
 * Communication cuts each rank's ops into segments.  What differs in an early segment
 * of one rank explains what differs in later segments of every rank, so the answer is
 * the first differing op of each rank that has one in the earliest such segment.
 */
#ifndef COMPARE_DIFF_H
#define COMPARE_DIFF_H

#include "compare/out.h"

/* A differing op, or one that communicates. */
struct cmp_step {
    uint32_t group, segment;
    bool differs, communicates;
};
struct cmp_trail {
    MS_VEC(struct cmp_step) steps;
    uint32_t segments; /* communications of this rank */
};

/* Write STEM.json, every op with its rows, and note the trail. */
enum ms_rc cmp_write_diff(const struct cmp *c, const char *stem, struct cmp_trail *trail,
                          struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

/* For each of n ranks the group to blame, or MS_MAP_NONE; returns how many are blamed. */
size_t cmp_diff_blame(const struct cmp_trail *trails, size_t n, uint32_t *blamed);

/* The file that names them. */
struct cmp_diff_out;
enum ms_rc cmp_diff_open(struct cmp_diff_out **d, const char *path, struct ms_err *err) MS_MUST_USE;
void cmp_diff_rank(struct cmp_diff_out *d, const char *rank);
enum ms_rc cmp_diff_node(struct cmp_diff_out *d, const struct cmp *c, uint32_t group,
                         struct ms_err *err) MS_MUST_USE;
/* Finish the file, or with `keep` false throw it away; frees d. */
enum ms_rc cmp_diff_close(struct cmp_diff_out *d, bool keep, struct ms_err *err) MS_MUST_USE;

#endif
