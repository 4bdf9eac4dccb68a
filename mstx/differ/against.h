/* SPDX-License-Identifier: MIT
 *
 * against: why is a run slower than another one?
 *
 *     OLD ─► profile ──┐
 *                      ├─► difference ─► causes ─► text, JSON, Markdown, JUnit
 *     NEW ─► profile ──┘
 *
 * This is the door of the room.
 */
#ifndef MSTX_DIFFER_AGAINST_H
#define MSTX_DIFFER_AGAINST_H

#include "mstx/differ/causes.h"
#include "mstx/differ/surroundings.h"

#include "probe/base/jwrite.h"

struct mstx_against {
    struct mstx_places places;
    struct mstx_profile old, new;
    struct mstx_run_facts old_facts, new_facts;
    struct mstx_difference difference;
    struct mstx_causes causes;
    bool is_same; /* both are the same steps of one run */
};

/* How runs are compared. */
struct mstx_against_how {
    const char *old_path, *new_path;
    char *const *noise; /* further runs of the old program */
    size_t noises;
    struct mstx_step_range old_steps, new_steps;
};

/* Reads both runs and finds the causes; the handle is valid after a failure, too. */
enum ms_rc mstx_against_read(struct mstx_against *a, const struct mstx_against_how *how,
                             struct ms_err *err) MS_MUST_USE;
void mstx_against_free(struct mstx_against *a);

/* Returns by how much the causes make a step longer, as a share of the old step. */
double mstx_against_slower(const struct mstx_against *a);

/* Write the answer; at most `most` rows of each table, 0: all. */
void mstx_against_text(const struct mstx_against *a, size_t most, struct ms_buf *out);
void mstx_against_markdown(const struct mstx_against *a, size_t most, struct ms_buf *out);
/* gate: share of a step that causes may add, as for --gate; below 0: none. */
void mstx_against_junit(const struct mstx_against *a, double gate, struct ms_buf *out);
void mstx_against_json(const struct mstx_against *a, double gate, struct ms_jwrite *w);
/* Appends causes and names as one table, CSV; a cause's Result is "warning". */
enum ms_rc mstx_against_table(const struct mstx_against *a, struct ms_buf *out,
                              struct ms_err *err) MS_MUST_USE;
/* Writes the places of a step with their times in both runs; see against_flame.c. */
enum ms_rc mstx_against_flame(const struct mstx_against *a, struct ms_jwrite *w,
                              struct ms_err *err) MS_MUST_USE;

#endif
