/* SPDX-License-Identifier: MIT
 *
 * delays: how much later a point in time is in the scenarios of many classes, as lists that never
 * change and that many points share.
 *
 * A profile has a delay for each class, 0 for those that are not in its list.  A point behind
 * several profiles has a list of shifts: in each class it is the latest of them.
 *
 *     delay of a class = max over the shifts (shift.ns + delay of the class in shift.profile)
 */
#ifndef MSTX_CLUSTER_DELAYS_H
#define MSTX_CLUSTER_DELAYS_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"

#include <stdint.h>

struct mstx_delay {
    double ns; /* may be negative */
    uint32_t class;
};
/* A list that several points share; the memory of one that nobody shares any more is used again. */
struct mstx_delays {
    struct mstx_delays *next; /* of the unused ones of its size */
    uint32_t n, shared, size; /* size: logarithm of its room */
    uint32_t latest; /* of the points that met and share it; for the merge of number `merge` */
    uint64_t merge;
    struct mstx_delay at[]; /* by class */
};
/* Returns the delay of a class in the list, or NULL; the list may be NULL. */
const struct mstx_delay *mstx__delays_find(const struct mstx_delays *l, uint32_t class);

/* A profile that begins ns later; -0.0 is not used. */
struct mstx_shift {
    double ns;
    uint64_t profile;
};
struct mstx_shifts {
    uint32_t n, flat;            /* flat: the profile that equals the shifts; 0: not made yet */
    const struct mstx_shift *at; /* by profile, at least one, the latest with ns 0 */
};
struct mstx_profile {
    struct mstx_delays *delays; /* NULL: none */
    /* In every class the profile is as late as each of these, or later: it was made where they met,
     * and need not be compared with them again. */
    const struct mstx_shift *behind; /* by profile */
    uint32_t behinds;
    double least, greatest; /* delay of any class, also of those that are not in the list */
};
struct mstx_profiles {
    struct ms_arena *memory;
    struct mstx_delays *unused[32];    /* by size */
    MS_VEC(struct mstx_profile) all;   /* profile 0 has no delays */
    MS_VEC(struct mstx_shifts) shifts; /* by number; equal lists have one number; 0: profile 0 */
    struct ms_map numbers;             /* of lists of shifts */
    size_t work;                       /* delays and pairs of profiles that were looked at */
};
#define MSTX_NO_PROFILE UINT32_MAX

/* Begins with profile 0 and shifts 0 alone.  Lists may take `limit` bytes. */
bool mstx__profiles_begin(struct mstx_profiles *p, size_t limit);
void mstx__profiles_end(struct mstx_profiles *p);
/* Returns an empty list with room for n delays; NULL when out of memory or at the limit. */
struct mstx_delays *mstx__delays_new(struct mstx_profiles *p, size_t n);
/* One point more, or less, shares the list, which may be NULL. */
struct mstx_delays *mstx__delays_share(struct mstx_delays *l);
void mstx__delays_release(struct mstx_profiles *p, struct mstx_delays *l);
/* Returns a profile with the delays of `own`, and those of profile `rest` for all other classes;
 * behind becomes part of it.  MSTX_NO_PROFILE: as above. */
uint32_t mstx__profiles_overlay(struct mstx_profiles *p, uint32_t rest,
                                const struct mstx_delay *own, size_t n,
                                const struct mstx_shift *behind, size_t behinds);

/* Removes shifts that others are never earlier than; returns how many are left. */
size_t mstx__shifts_prune(struct mstx_profiles *p, struct mstx_shift *v, size_t n);
/* Returns the number of a list of shifts, MSTX_NO_PROFILE as above. */
uint32_t mstx__shifts_number(struct mstx_profiles *p, const struct mstx_shift *v, size_t n);
double mstx__shifts_delay(const struct mstx_profiles *p, uint32_t shifts, uint32_t class);
/* Returns the profile that equals the shifts; MSTX_NO_PROFILE as above. */
uint32_t mstx__shifts_flatten(struct mstx_profiles *p, uint32_t shifts);

#endif
