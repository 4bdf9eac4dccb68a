/* SPDX-License-Identifier: MIT
 *
 * stack_write: stack.json as it is collected: nodes grouped by equal stacks.
 *
 * A group grows as nodes are added, so groups already in the file cannot be
 * appended to.  Each flush appends what is new as groups of its own, which
 * readers accept; finishing writes the file once more, each stack one group.
 *
 * Stacks are remembered from one file to the next, so a program that comes by
 * the same places step after step allocates only in the first.
 */
#ifndef PROBE_STACK_WRITE_H
#define PROBE_STACK_WRITE_H

#include "probe/append.h"
#include "probe/base/map.h"

struct probe__stack_group {
    uint32_t first, last; /* nodes of the group, as a list through `next`; NONE: not in this file */
    uint32_t pending;     /* the first of them that is not in the file, MS_MAP_NONE: none */
};
struct probe__stack_node {
    size_t name; /* in `names` */
    uint32_t name_n, next;
};

/* Zero it first. */
struct probe__stack_writer {
    struct probe__append out;
    struct ms_arena *arena;
    struct ms_map stacks; /* JSON text of the frames -> group */
    MS_VEC(struct probe__stack_group) groups;
    MS_VEC(uint32_t) order; /* groups in the order of their first use in this file */
    MS_VEC(struct probe__stack_node) nodes;
    struct ms_buf names;
    struct ms_jwrite frames; /* scratch, as is text */
    struct ms_buf text;
    uint32_t written; /* groups in the file */
    bool split;       /* some stack is in the file as more than one group */
};

enum ms_rc probe__stack_open(struct probe__stack_writer *s, const char *path,
                             struct ms_err *err) MS_MUST_USE;
/* The group of these frames, made when they are new, and good for later files as well;
 * MS_MAP_NONE on failure. */
uint32_t probe__stack_group(struct probe__stack_writer *s, const char *const *frames, unsigned n,
                            struct ms_err *err);
enum ms_rc probe__stack_add(struct probe__stack_writer *s, struct ms_str node, uint32_t group,
                            struct ms_err *err);
enum ms_rc probe__stack_flush(struct probe__stack_writer *s, struct ms_err *err);
/* Flush, and write the file once more when that makes it better; closes it. */
enum ms_rc probe__stack_finish(struct probe__stack_writer *s, struct ms_err *err);
void probe__stack_free(struct probe__stack_writer *s);

#endif
