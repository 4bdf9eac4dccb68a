/* SPDX-License-Identifier: MIT
 *
 * delays: how much later a point in time is in the scenarios of many classes, as sorted lists that
 * never change and that many points share.
 *
 * A profile is such a list under a number.  It also knows which profiles it comes from: what is
 * behind a meeting is never earlier than what met there, and need not be merged with it again.
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
struct mstx_delays {
    uint32_t n;
    struct mstx_delay at[]; /* by class */
};
/* Returns the delay of a class in the list, or NULL; the list may be NULL. */
const struct mstx_delay *mstx__delays_find(const struct mstx_delays *l, uint32_t class);

/* A profile is never earlier than `profile` is `ns` later. */
struct mstx_behind {
    uint32_t profile;
    double ns;
};
struct mstx_profile {
    const struct mstx_delays *delays; /* NULL: none */
    const struct mstx_behind *behind; /* by profile */
    uint32_t behinds;
    double least, greatest; /* delay of any class, also of those that are not in the list */
};
struct mstx_profiles {
    struct ms_arena *memory;
    MS_VEC(struct mstx_profile) all; /* number 0 has no delays */
    struct ms_map joined;            /* joins that were made already ... */
    MS_VEC(uint32_t) result;         /* ... and the profile of each */
    size_t work;                     /* delays that were looked at */
};
#define MSTX_NO_PROFILE UINT32_MAX

/* Begins with the profile 0 alone.  Lists and profiles may take `limit` bytes. */
bool mstx__profiles_begin(struct mstx_profiles *p, size_t limit);
void mstx__profiles_end(struct mstx_profiles *p);
/* Returns a list with room for n delays; NULL when out of memory or at the limit. */
struct mstx_delays *mstx__delays_new(struct mstx_profiles *p, size_t n);
/* Returns the profile of the later of two points in each class; the point of profile a is at ta in
 * the base.  The later of ta and tb is its time in the base.  MSTX_NO_PROFILE: as above. */
uint32_t mstx__profiles_join(struct mstx_profiles *p, uint32_t a, double ta, uint32_t b, double tb);
/* Returns a profile with the delays of `own`, and those of profile `rest` for all other classes;
 * behind becomes part of it. */
uint32_t mstx__profiles_overlay(struct mstx_profiles *p, uint32_t rest,
                                const struct mstx_delay *own, size_t n,
                                const struct mstx_behind *behind, size_t behinds);

#endif
