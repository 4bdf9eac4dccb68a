/* SPDX-License-Identifier: MIT
 *
 * stack: stack.json, where in the source each node was called.
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
    unsigned flags, layout; /* while it is read */
    bool grouped;           /* nodes that share a stack are listed with it */
    struct ms_arena *arena;
};

enum probe_stack_flags {
    PROBE_STACK_TOLERANT = 1 << 0, /* entries that are no stacks are passed over */
    PROBE_STACK_OFFICIAL = 1 << 1, /* all entries have the shape that the one named 0 has */
};

/* MS_E_NOTFOUND when there is no such file. */
enum ms_rc probe_stacks_open(struct probe_stacks *s, const char *path, unsigned flags,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc probe_stacks_parse(struct probe_stacks *s, const char *name, struct ms_str text,
                              unsigned flags, struct ms_err *err) MS_MUST_USE;
void probe_stacks_close(struct probe_stacks *s);

/* The node's frames as a JSON list; p is NULL when it has none. */
struct ms_str probe_stack_frames(const struct probe_stacks *s, struct ms_str node);
/* Walk such a list: init r with it, then each call gives the next frame's text, unescaped in
 * scratch; false at the end. */
bool probe_stack_next(struct ms_jread *r, struct ms_buf *scratch, struct ms_str *frame);

#endif
