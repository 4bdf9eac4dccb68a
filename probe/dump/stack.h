/* SPDX-License-Identifier: MIT
 *
 * stack: reads stack.json, which has the call stack of each node.
 */
#ifndef PROBE_DUMP_STACK_H
#define PROBE_DUMP_STACK_H

#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"

struct probe_stacks {
    struct ms_file file;
    struct ms_map names;          /* node name -> index into stack_of */
    MS_VEC(uint32_t) stack_of;    /* index into frames */
    MS_VEC(struct ms_str) frames; /* JSON list of frames, innermost first, as written */
    bool truncated;
    unsigned flags, layout; /* used while reading */
    bool grouped;           /* nodes that share a stack are listed together */
    struct ms_arena *arena;
};

enum probe_stack_flags {
    PROBE_STACK_TOLERANT = 1 << 0, /* skip entries that are no stacks */
    PROBE_STACK_OFFICIAL = 1 << 1, /* all entries have the layout of the entry named 0 */
};

/* Opens stack.json; MS_E_NOTFOUND when there is no such file. */
enum ms_rc probe_stacks_open(struct probe_stacks *s, const char *path, unsigned flags,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc probe_stacks_parse(struct probe_stacks *s, const char *name, struct ms_str text,
                              unsigned flags, struct ms_err *err) MS_MUST_USE;
void probe_stacks_close(struct probe_stacks *s);

/* Returns the node's frames as a JSON list; p is NULL when the node has none. */
struct ms_str probe_stack_frames(const struct probe_stacks *s, struct ms_str node);
/* Iterates over such a list. Initialise r with the list; each call returns the text of the next
 * frame, unescaped in scratch, and false at the end. */
bool probe_stack_next(struct ms_jread *r, struct ms_buf *scratch, struct ms_str *frame);

#endif
