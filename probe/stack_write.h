/* SPDX-License-Identifier: MIT
 *
 * stack_write: stack.json as it is collected: nodes grouped by equal stacks.
 *
 * A group grows as nodes are added, so groups already in the file cannot be
 * appended to.  Each flush appends what is new as groups of its own, which
 * readers accept; closing writes the file once more, each stack one group.
 */
#ifndef PROBE_STACK_WRITE_H
#define PROBE_STACK_WRITE_H

#include "probe/append.h"
#include "probe/base/map.h"

struct probe__stack_group {
    uint32_t first, last; /* nodes of the group, as a list through `next` */
    uint32_t pending;     /* the first of them that is not in the file, MS_MAP_NONE: none */
};
struct probe__stack_node {
    struct ms_str name;
    uint32_t next;
};

struct probe__stack_writer {
    struct probe__append out;
    struct ms_arena *arena;
    struct ms_map stacks; /* JSON text of the frames -> group */
    MS_VEC(struct probe__stack_group) groups;
    MS_VEC(struct probe__stack_node) nodes;
    struct ms_jwrite frames; /* scratch */
    uint32_t written;        /* groups in the file */
    bool split;              /* some stack is in the file as more than one group */
};

enum ms_rc probe__stack_open(struct probe__stack_writer *s, const char *path,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__stack_add(struct probe__stack_writer *s, const char *node,
                            const char *const *frames, unsigned n, struct ms_err *err);
enum ms_rc probe__stack_flush(struct probe__stack_writer *s, struct ms_err *err);
enum ms_rc probe__stack_close(struct probe__stack_writer *s, struct ms_err *err);

#endif
