/* SPDX-License-Identifier: MIT
 *
 * domain: the domains of the process, and the taps: other tools that receive every mark.
 */
#ifndef MSTX_RT_DOMAIN_H
#define MSTX_RT_DOMAIN_H

#include "mstx/rt/state.h"

enum { RT_DOMAINS = 16384 };

/* Bits of rt_domain.live. */
enum { RT_RECORD = 1, RT_TAP = 2, RT_DEAD = 4 /* destroyed: a mark in it is reported once */ };

struct rt_domain {
    _Atomic uint8_t live; /* 0: a call in this domain costs one load and a branch */
    bool destroyed;
    bool foreign_memory; /* an allocator known to pass uninitialised handles */
    uint16_t number;
    _Atomic uint32_t epoch; /* epoch of the capture whose strings.seg defines this domain */
    const char *name;
    void *next; /* the same domain in the chained tool */
    void *next_nvtx;
    uint8_t pad[24];
};
extern struct rt_domain rt_domains[RT_DOMAINS];

/* Returns the domain of a handle, or NULL when the handle is not one of ours. Number 0 is the
 * default domain. */
static inline struct rt_domain *rt_domain_of(const void *handle)
{
    if (handle == NULL)
        return &rt_domains[0];
    uintptr_t off = (uintptr_t)handle - (uintptr_t)rt_domains;
    if (RT_UNLIKELY(off >= sizeof rt_domains || off % sizeof rt_domains[0] != 0))
        return NULL;
    return &rt_domains[off / sizeof rt_domains[0]];
}
/* Finds or makes a domain; NULL when the name is refused or the table is full. */
struct rt_domain *rt_domain_create(const char *name);
void rt_domain_destroy(struct rt_domain *d);
/* Recomputes `live` of all domains from the filter and the state of recording. */
void rt_domain_refresh(void);
/* Sets the lists of the filter, comma separated; NULL or "" for none. */
void rt_domain_filter(const char *include, const char *exclude);
/* Writes the definitions of all domains into a new strings.seg. */
void rt_domain_define_all(void);
uint32_t rt_domain_count(void);

/* The domain "communication" once a communication hook is loaded, else NULL. */
extern struct rt_domain *rt_comm_domain;

/* ---- taps ------------------------------------------------------------------- */

/* Receiver of marks and ranges: the next tool of the process, or mspti. Called on the marking
 * thread after the record was written. other: a word that a tap may set when a range starts and
 * gets again when it ends. */
enum rt_tap_kind { RT_TAP_MARK, RT_TAP_START, RT_TAP_END };
typedef void rt_tap_fn(enum rt_tap_kind kind, struct rt_domain *d, const char *message,
                       void *stream, uint32_t id, uint64_t *other);
enum { RT_TAP_NEXT, RT_TAP_MSPTI, RT_TAPS };
/* Sets the tap number `which`; NULL: none. */
void rt_set_tap(int which, rt_tap_fn *fn);
void rt_pass_to_taps(enum rt_tap_kind kind, struct rt_domain *d, const char *message, void *stream,
                     uint32_t id, uint64_t *other);

#endif
