/* SPDX-License-Identifier: MIT
 *
 * time_place: where the time of a step goes: the names of nested ranges, operators and kernels, as one
 * tree that all compared runs share.
 *
 *     step ─► forward ─► aten::linear ─► aten::addmm ─► sgemm (kernel)
 *
 * The same path of names is the same place in every run.
 */
#ifndef MSTX_DIFFER_TIME_PLACE_H
#define MSTX_DIFFER_TIME_PLACE_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

enum mstx_place_kind {
    MSTX_PLACE_STEP,  /* the root */
    MSTX_PLACE_RANGE, /* of a thread: a module, an operator, a function */
    MSTX_PLACE_KERNEL,
    MSTX_PLACE_COPY, /* of memory, by a device */
    MSTX_PLACE_COMM, /* a call or kernel of communication, and what it waits for */
    MSTX_PLACE_GAP, /* before a kernel: it was launched, or its stream was free, and it did not run */
    MSTX_PLACE_LOAD, /* loading data */
    MSTX_PLACE_KINDS
};

struct mstx_place {
    uint32_t parent; /* of the root: itself */
    uint32_t name;   /* number of its text */
    enum mstx_place_kind kind;
};

enum { MSTX_ROOT = 0, MSTX_NO_PLACE = UINT32_MAX };

struct mstx_places {
    MS_VEC(struct mstx_place) list; /* parents before children */
    struct ms_map children, names;
    struct ms_arena *arena;
};

bool mstx__places_new(struct mstx_places *p);
void mstx__places_free(struct mstx_places *p);
/* Returns the number of a name, MSTX_NO_PLACE when out of memory. */
uint32_t mstx__places_name(struct mstx_places *p, struct ms_str text);
/* Returns the place with that name and kind within another, MSTX_NO_PLACE when out of memory. */
uint32_t mstx__places_child(struct mstx_places *p, uint32_t parent, uint32_t name,
                            enum mstx_place_kind kind);
struct ms_str mstx__places_text(const struct mstx_places *p, uint32_t place);
/* Appends the names from below the root to the place, with " > " between them. */
void mstx__places_path(const struct mstx_places *p, uint32_t place, struct ms_buf *out);

#endif
