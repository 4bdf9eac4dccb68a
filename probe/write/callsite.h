/* SPDX-License-Identifier: MIT
 *
 * callsite: the place in the program that a call came from.
 *
 * A stack is turned into text once. Afterwards it is identified by its return addresses, which a
 * walk along frame pointers yields in some ten nanoseconds. The walk is trusted only for stacks
 * where it once gave exactly the result of the unwinder; code without frame pointers needs the
 * unwinder at each call.
 */
#ifndef PROBE_WRITE_CALLSITE_H
#define PROBE_WRITE_CALLSITE_H

#include "probe/base/arena.h"
#include "probe/base/map.h"

enum { PROBE__FRAMES = 64 };

/* Return addresses, innermost first. */
struct probe__trail {
    uintptr_t pc[PROBE__FRAMES];
    unsigned n;
};

/* The part of a thread's memory that is its stack. */
struct probe__stack_area {
    uintptr_t low, high;
};

/* Cache entry of one walked stack. */
struct probe__site {
    uint32_t id;     /* as the callback numbered the text; MS_MAP_NONE: not yet known */
    bool is_trusted; /* walk and unwinder gave the same frames */
};

/* Zero it first. */
struct probe__sites {
    struct ms_arena *arena;
    struct ms_map walked, unwound; /* bytes of a trail -> index of its site, of its id */
    MS_VEC(struct probe__site) of_walked;
    MS_VEC(uint32_t) ids;
};

/* Returns the stack of the calling thread; empty when the system does not report one. */
struct probe__stack_area probe__stack_area_of_thread(void);

/* Walks the stack from the function with this frame address: its caller first. */
void probe__trail_walk(struct probe__trail *t, const void *frame,
                       const struct probe__stack_area *area);
/* Collects the same trail with the unwinder. */
void probe__trail_unwind(struct probe__trail *t, const void *frame);

/* Stores the text of a trail and returns its id: any number but MS_MAP_NONE. */
typedef uint32_t (*probe__name_site)(void *ctx, const char *const *frames, unsigned n);
/* Returns the id of the stack above `frame`. The caller passes the result of the walk, so that
 * the walk can be done outside of a lock. MS_MAP_NONE when out of memory. */
uint32_t probe__site_id(struct probe__sites *s, const struct probe__trail *walked,
                        const void *frame, probe__name_site name, void *ctx);
void probe__sites_free(struct probe__sites *s);

/* Returns the text of each frame as stack.json has it; one block, freed with ms_free. */
char **probe__trail_text(const struct probe__trail *t);

#endif
