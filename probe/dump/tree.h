/* SPDX-License-Identifier: MIT
 *
 * tree: reads construct.json, the tree of nodes.
 */
#ifndef PROBE_DUMP_TREE_H
#define PROBE_DUMP_TREE_H

#include "probe/base/io.h"
#include "probe/base/map.h"

struct probe_tree_node {
    uint32_t parent;     /* MS_MAP_NONE: a root */
    uint32_t micro_step; /* of pipeline runs; 0 elsewhere */
    bool listed;         /* has its own entry; false: only named as a parent */
};

struct probe_tree {
    struct ms_file file;
    struct ms_map names; /* node index <-> name, in order of first mention as a child or parent */
    MS_VEC(struct probe_tree_node) nodes;
    MS_VEC(uint32_t) entries; /* listed nodes, in the order of the file */
    int64_t micro_steps;      /* megatron_micro_step_number, -1 when absent */
    bool truncated;           /* the file was truncated; complete entries were read */
    struct ms_arena *arena;
};

enum probe_tree_flags { PROBE_TREE_TOLERANT = 1 << 0 };

/* Opens construct.json; MS_E_NOTFOUND when there is no such file, as in some dumps. A text in which
 * a node is its own ancestor is refused. */
enum ms_rc probe_tree_open(struct probe_tree *t, const char *path, unsigned flags,
                           struct ms_err *err) MS_MUST_USE;
/* Parses text in memory, which must outlive the tree. */
enum ms_rc probe_tree_parse(struct probe_tree *t, const char *name, struct ms_str text,
                            unsigned flags, struct ms_err *err) MS_MUST_USE;
/* Adds a node without a parent behind those of the text; its name is copied. */
enum ms_rc probe_tree_add_root(struct probe_tree *t, struct ms_str name,
                               struct ms_err *err) MS_MUST_USE;
void probe_tree_close(struct probe_tree *t);

static inline struct ms_str probe_tree_name(const struct probe_tree *t, uint32_t node)
{
    return ms_map_key(&t->names, node);
}
static inline uint32_t probe_tree_find(const struct probe_tree *t, struct ms_str name)
{
    uint32_t node = ms_map_get(&t->names, name); /* `names` may have more names than `nodes` */
    return node < t->nodes.n ? node : MS_MAP_NONE;
}

#endif
