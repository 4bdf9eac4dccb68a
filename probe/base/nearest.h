/* SPDX-License-Identifier: MIT
 *
 * nearest: finds the known word that is closest to a mistyped one, for "did you mean".
 */
#ifndef PROBE_BASE_NEAREST_H
#define PROBE_BASE_NEAREST_H

/* A search over candidates that are offered one by one. `best` is the nearest so far, NULL while
 * none is near. Start with struct ms_near n = {.word = typed}; */
struct ms_near {
    const char *word;
    const char *best; /* the pointer that was offered */
    unsigned distance;
};
void ms_near_offer(struct ms_near *n, const char *candidate);

/* Returns the entry of a NULL-terminated list that is nearest in spelling, or NULL when none is
 * near. */
const char *ms_nearest(const char *word, const char *const *choices);

#endif
