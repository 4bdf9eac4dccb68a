/* SPDX-License-Identifier: MIT
 *
 * callsite: where in the program a call came from.
 *
 * A stack is turned into text once.  Afterwards it is known by its return
 * addresses, which a walk along frame pointers gives in some ten nanoseconds.
 * The walk is believed only for stacks where it once gave exactly what the
 * unwinder gave; code without frame pointers pays for the unwinder each time.
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

/* What is known of one stack. */
struct probe__site {
    uint32_t id;     /* the caller's name for the text; MS_MAP_NONE: not told yet */
    bool is_trusted; /* of trails that were walked: the unwinder gave the same */
};

/* Zero it first. */
struct probe__sites {
    struct ms_arena *arena;
    struct ms_map walked, unwound; /* bytes of a trail -> site, -> id */
    MS_VEC(struct probe__site) of_walked;
    MS_VEC(uint32_t) ids;
};

/* Of the calling thread; empty when the system does not tell. */
struct probe__stack_area probe__stack_area_of_thread(void);

/* The trail from the function whose frame address this is: its caller first. */
void probe__trail_walk(struct probe__trail *t, const void *frame,
                       const struct probe__stack_area *area);
/* The same from the unwinder. */
void probe__trail_unwind(struct probe__trail *t, const void *frame);

/* Makes text of a trail and names it: any number but MS_MAP_NONE. */
typedef uint32_t (*probe__name_site)(void *ctx, const char *const *frames, unsigned n);
/* The id of the stack above `frame`; what the walk gave is handed in, so that it can be made
 * outside of a lock.  MS_MAP_NONE when there is no memory. */
uint32_t probe__site_id(struct probe__sites *s, const struct probe__trail *walked,
                        const void *frame, probe__name_site name, void *ctx);
void probe__sites_free(struct probe__sites *s);

/* Text of each frame of a trail, in the words of stack.json, freed with ms_free as one block. */
char **probe__trail_text(const struct probe__trail *t);

#endif
