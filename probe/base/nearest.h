/* SPDX-License-Identifier: MIT
 *
 * nearest: "did you mean": the known word that a mistyped one is closest to.
 */
#ifndef PROBE_BASE_NEAREST_H
#define PROBE_BASE_NEAREST_H

/* Candidates are offered one by one; `best` is the nearest so far, NULL while none is near.
 * Start with struct ms_near n = {.word = typed}; */
struct ms_near {
    const char *word;
    const char *best; /* the pointer that was offered */
    unsigned distance;
};
void ms_near_offer(struct ms_near *n, const char *candidate);

/* The entry of a NULL-terminated list nearest in spelling, or NULL when none is near. */
const char *ms_nearest(const char *word, const char *const *choices);

#endif
