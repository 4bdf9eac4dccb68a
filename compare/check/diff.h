/* SPDX-License-Identifier: MIT
 *
 * diff: finds the first operator that differs, over all ranks (-da).
 *
 * Each rank has a trail: its operators that differ and those that communicate. Matching
 * communication calls of several ranks tell how a difference can propagate between ranks.
 * The result is the operators that differ without an earlier difference that could have
 * reached them.
 */
#ifndef COMPARE_CHECK_DIFF_H
#define COMPARE_CHECK_DIFF_H

#include "compare/write/out.h"

enum cmp_step_role { CMP_STEP_BOTH, CMP_STEP_GIVES, CMP_STEP_TAKES };

/* An operator that differs or communicates. Trails are sent between processes as bytes. */
struct cmp_step {
    uint64_t meet; /* key that matching calls of other ranks have in common */
    uint32_t group, segment;
    bool differs, communicates;
    uint8_t role; /* enum cmp_step_role */
};
struct cmp_trail {
    MS_VEC(struct cmp_step) steps;
    uint32_t segments; /* number of communication calls of this rank */
    int64_t rank;
};

/* Adds an operator that differs or communicates; v is its view. */
enum ms_rc cmp_trail_add(struct cmp_trail *t, uint32_t group, const struct cmp_view *v,
                         bool differs, bool communicates, struct ms_err *err) MS_MUST_USE;
/* Writes STEM.json, every operator with its rows, and adds to the trail, whose rank is set by the
 * caller. */
enum ms_rc cmp_write_diff(const struct cmp *c, const char *stem, struct cmp_trail *trail,
                          struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

/* Finds for each of n ranks the group to blame, or MS_MAP_NONE; *found is their number. With
 * `earliest`, only groups after the fewest communications. */
enum ms_rc cmp_diff_blame(const struct cmp_trail *trails, size_t n, bool earliest, uint32_t *blamed,
                          size_t *found, struct ms_err *err) MS_MUST_USE;

/* The file that names the operators to blame. */
struct cmp_diff_out;
enum ms_rc cmp_diff_open(struct cmp_diff_out **d, const char *path, struct ms_err *err) MS_MUST_USE;
void cmp_diff_rank(struct cmp_diff_out *d, const char *rank);
enum ms_rc cmp_diff_node(struct cmp_diff_out *d, const struct cmp *c, uint32_t group,
                         struct ms_err *err) MS_MUST_USE;
/* Finishes the file or, with `keep` false, deletes it; frees d. */
enum ms_rc cmp_diff_close(struct cmp_diff_out *d, bool keep, struct ms_err *err) MS_MUST_USE;

#endif
