/* SPDX-License-Identifier: MIT
 *
 * diff: the first op that differs, over all ranks (-da).
 *
 * Of every rank the ops that differ and those that communicate are noted as a trail.
 * Communications of several ranks that belong together say what could have reached
 * whom, so the answer is what differs with nothing before it that differs too.
 */
#ifndef COMPARE_CHECK_DIFF_H
#define COMPARE_CHECK_DIFF_H

#include "compare/write/out.h"

enum cmp_step_role { CMP_STEP_BOTH, CMP_STEP_GIVES, CMP_STEP_TAKES };

/* A differing op, or one that communicates.  Trails travel between processes as bytes. */
struct cmp_step {
    uint64_t meet; /* what the calls of other ranks that belong to it have too */
    uint32_t group, segment;
    bool differs, communicates;
    uint8_t role; /* enum cmp_step_role */
};
struct cmp_trail {
    MS_VEC(struct cmp_step) steps;
    uint32_t segments; /* communications of this rank */
    int64_t rank;
};

/* Note an op that differs or communicates; v is its view. */
enum ms_rc cmp_trail_add(struct cmp_trail *t, uint32_t group, const struct cmp_view *v,
                         bool differs, bool communicates, struct ms_err *err) MS_MUST_USE;
/* Write STEM.json, every op with its rows, and note the trail, of which rank is filled in. */
enum ms_rc cmp_write_diff(const struct cmp *c, const char *stem, struct cmp_trail *trail,
                          struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

/* For each of n ranks the group to blame, or MS_MAP_NONE, and how many are.  With `earliest` those
 * alone that come after the fewest communications. */
enum ms_rc cmp_diff_blame(const struct cmp_trail *trails, size_t n, bool earliest, uint32_t *blamed,
                          size_t *found, struct ms_err *err) MS_MUST_USE;

/* The file that names them. */
struct cmp_diff_out;
enum ms_rc cmp_diff_open(struct cmp_diff_out **d, const char *path, struct ms_err *err) MS_MUST_USE;
void cmp_diff_rank(struct cmp_diff_out *d, const char *rank);
enum ms_rc cmp_diff_node(struct cmp_diff_out *d, const struct cmp *c, uint32_t group,
                         struct ms_err *err) MS_MUST_USE;
/* Finish the file, or with `keep` false throw it away; frees d. */
enum ms_rc cmp_diff_close(struct cmp_diff_out *d, bool keep, struct ms_err *err) MS_MUST_USE;

#endif
