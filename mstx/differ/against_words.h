/* SPDX-License-Identifier: MIT
 *
 * against_words: what the forms of the answer share: sentences, the split, the table of names.
 */
#ifndef MSTX_DIFFER_AGAINST_WORDS_H
#define MSTX_DIFFER_AGAINST_WORDS_H

#include "mstx/differ/against.h"

enum { MSTX_SENTENCE_MAX = 1 << 20 };

/* Appends "+2.96 ms [2.90, 6.00] a step, data loading: NAME takes 3.26 ms instead of 308 us". */
void mstx__against_sentence(const struct mstx_against *a, const struct mstx_cause *c,
                            struct ms_buf *out);

/* Parts of the difference of the mean steps, ns; they add up to it. */
struct mstx_split {
    double causes, alike, below, waiting, disturbed;
};
struct mstx_split mstx__against_split(const struct mstx_against *a);

/* A name in both runs, and its durations with all that lies in it. */
struct mstx_name_change {
    uint32_t name; /* number among the names of places */
    bool on_device;
    uint64_t old_count, new_count;
    double old_ns, new_ns, old_step_ns, new_step_ns;
};
typedef MS_VEC(struct mstx_name_change) mstx_name_changes;
/* Lists the names, those whose time in a step changed most first.  Returns false when out of memory. */
bool mstx__against_names(const struct mstx_against *a, mstx_name_changes *out);
/* Leaves out the steps themselves, of which each has a name of its own; returns how many names are left. */
size_t mstx__against_drop_steps(const struct mstx_against *a, mstx_name_changes *c);

/* Lists the names that take longer on a device without making a step longer: nothing waits for them.
 * Returns false when out of memory. */
bool mstx__against_hidden(const struct mstx_against *a, mstx_name_changes *out);

/* Tells whether the causes add more than the share `gate`; below 0: whether there are any. */
bool mstx__against_fails(const struct mstx_against *a, double gate);
/* Returns the rank of a pair; its number among the pairs where the program has no ranks. */
int32_t mstx__against_rank(const struct mstx_against *a, size_t pair);

#endif
