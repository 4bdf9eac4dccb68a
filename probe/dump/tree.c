/* SPDX-License-Identifier: MIT
 *
 * tree: reading construct.json.
 *
 *     "child": "parent"            or null, or "" in old files: a root
 *     "child": ["parent", 3]       pipeline runs: parent and micro step
 *     "megatron_micro_step_number": 4
 *
 * A parent may come after its children, or have no entry at all; it is then a root.
 */
#include "probe/dump/tree.h"

#include "probe/base/jread.h"
#include "probe/base/mem.h"

enum { DEPTH_MAX = 500 };

static const char members[] = "child and parent names";

/* Returns the index of the name in the current STR or KEY, which is added as a root when new. */
static enum ms_rc node_of(struct probe_tree *t, const struct ms_jread *r, struct ms_buf *scratch,
                          uint32_t *node, struct ms_err *err)
{
    struct ms_str name;
    bool added;
    MS_TRY(ms_jread_text(r, scratch, &name, err));
    *node = r->escaped ? ms_map_put_copy(&t->names, name, t->arena, &added)
                       : ms_map_put(&t->names, name, &added);
    if (*node == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct probe_tree_node *slot = ms_vec_push(&t->nodes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct probe_tree_node){.parent = MS_MAP_NONE};
    return MS_OK;
}

static enum ms_rc wrong_value(const struct ms_jread *r, struct ms_err *err)
{
    return ms_jread_reject(r, err, "expected a parent's name, null, or [name, micro step]");
}

/* A value of construct.json: `parent` is the reader at the parent's name, if there is one. */
struct entry {
    struct ms_jread parent;
    bool has_parent;
    int64_t micro;
};

static enum ms_rc read_parent(struct entry *e, const struct ms_jread *r, enum ms_jtok tok,
                              struct ms_err *err)
{
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (tok != MS_J_STR && tok != MS_J_NULL && !r->truncated)
        return wrong_value(r, err);
    e->has_parent = tok == MS_J_STR && r->text.n != 0;
    e->parent = *r;
    return MS_OK;
}

/* Reads [parent, micro step], whose opening bracket was the last token. */
static enum ms_rc read_pair(struct entry *e, struct ms_jread *r, struct ms_err *err)
{
    MS_TRY(read_parent(e, r, ms_jread_next(r), err));
    enum ms_jtok tok = ms_jread_next(r);
    if (tok == MS_J_NUM) {
        if (!ms_jread_i64(r, &e->micro) || e->micro < 0 || e->micro > INT32_MAX)
            return ms_jread_reject(r, err, "expected a micro step, 0 or more");
        tok = ms_jread_next(r);
    }
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    return tok == MS_J_ARR_END || r->truncated ? MS_OK : wrong_value(r, err);
}

static enum ms_rc take_micro_steps(struct probe_tree *t, struct ms_jread *r, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(r);
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (r->truncated || (tok == MS_J_NUM && ms_jread_i64(r, &t->micro_steps)))
        return MS_OK;
    return ms_jread_reject(r, err, "expected a number of micro steps");
}

/* Reads an entry, whose key was the last token. An entry that is cut off by the end of the text is
 * dropped. */
static enum ms_rc take_member(void *tree, struct ms_jread *r, struct ms_buf *scratch,
                              struct ms_err *err)
{
    struct probe_tree *t = tree;
    uint32_t child;
    uint32_t parent = MS_MAP_NONE;
    struct ms_jread key = *r;
    struct entry e = {.has_parent = false};
    if (ms_str_is(r->text, "megatron_micro_step_number"))
        return take_micro_steps(t, r, err);
    enum ms_jtok tok = ms_jread_next(r);
    MS_TRY(tok == MS_J_ARR ? read_pair(&e, r, err) : read_parent(&e, r, tok, err));
    if (r->truncated)
        return MS_OK;
    MS_TRY(node_of(t, &key, scratch, &child, err));
    if (t->nodes.p[child].listed)
        return ms_jread_reject(&key, err, "node '%.*s' appears twice", MS_STR_ARG(key.text));
    if (e.has_parent)
        MS_TRY(node_of(t, &e.parent, scratch, &parent, err));
    t->nodes.p[child] = (struct probe_tree_node){parent, (uint32_t)e.micro, true};
    uint32_t *entry = ms_vec_push(&t->entries);
    if (entry == NULL)
        return ms_no_memory(err);
    *entry = child;
    return MS_OK;
}

/* Checks for cycles: follows parents from every node; a node met again on the same walk is its own
 * ancestor. Each node is walked once: `walk` holds the number of the walk that passed it. */
static enum ms_rc check_no_cycle(const struct probe_tree *t, struct ms_err *err)
{
    uint32_t *walk = ms_calloc(t->nodes.n + 1, sizeof *walk);
    if (walk == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < t->nodes.n && rc == MS_OK; i++) {
        uint32_t n = i;
        for (; n != MS_MAP_NONE && walk[n] == 0; n = t->nodes.p[n].parent)
            walk[n] = i + 1;
        if (n != MS_MAP_NONE && walk[n] == i + 1)
            rc = ms_fail(err, MS_E_FORMAT, "node '%.*s' lies inside itself",
                         MS_STR_ARG(probe_tree_name(t, n)));
    }
    ms_free(walk);
    return rc;
}

/* Checks that no node lies deeper than modules of a training do. Its readers list the nodes above
 * each node, so that a chain of 200,000 nodes, a file of 26 MB, would keep them busy for minutes.
 * There is no cycle. */
static enum ms_rc check_depth(const struct probe_tree *t, struct ms_err *err)
{
    uint16_t *depth = ms_calloc(t->nodes.n + 1, sizeof *depth); /* 0: not known yet */
    if (depth == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < t->nodes.n && rc == MS_OK; i++) {
        uint32_t n = i, levels = 0;
        for (; n != MS_MAP_NONE && depth[n] == 0 && levels <= DEPTH_MAX; levels++)
            n = t->nodes.p[n].parent;
        levels += n != MS_MAP_NONE ? depth[n] : 0;
        if (levels > DEPTH_MAX)
            rc = ms_fail(err, MS_E_LIMIT, "node '%.*s' lies in more than %d others",
                         MS_STR_ARG(probe_tree_name(t, i)), DEPTH_MAX - 1);
        for (n = i; rc == MS_OK && n != MS_MAP_NONE && depth[n] == 0; n = t->nodes.p[n].parent)
            depth[n] = (uint16_t)levels--;
    }
    ms_free(depth);
    return rc;
}

static enum ms_rc read_tree(struct probe_tree *t, const char *path, const struct ms_file *text,
                            unsigned flags, struct ms_err *err)
{
    struct ms_jread r;
    t->micro_steps = -1;
    t->arena = ms_arena_new(SIZE_MAX);
    ms_jread_init(&r, text->p, text->n, flags & PROBE_TREE_TOLERANT ? MS_JREAD_TOLERANT : 0);
    enum ms_rc rc =
        t->arena == NULL ? ms_no_memory(err) : ms_jread_members(&r, members, take_member, t, err);
    if (rc == MS_OK)
        rc = check_no_cycle(t, err);
    if (rc == MS_OK)
        rc = check_depth(t, err);
    t->truncated = r.truncated;
    if (rc == MS_OK)
        return MS_OK;
    probe_tree_close(t);
    return ms_err_wrap(err, "%s", path), rc;
}

enum ms_rc probe_tree_parse(struct probe_tree *t, const char *name, struct ms_str text,
                            unsigned flags, struct ms_err *err)
{
    *t = (struct probe_tree){.file = {"", 0}};
    const struct ms_file all = {text.p, text.n};
    return read_tree(t, name, &all, flags, err);
}

enum ms_rc probe_tree_open(struct probe_tree *t, const char *path, unsigned flags,
                           struct ms_err *err)
{
    *t = (struct probe_tree){0};
    MS_TRY(ms_file_map(&t->file, path, MS_JSON_MAX, err));
    return read_tree(t, path, &t->file, flags, err);
}

enum ms_rc probe_tree_add_root(struct probe_tree *t, struct ms_str name, struct ms_err *err)
{
    bool added;
    const uint32_t node = ms_map_put_copy(&t->names, name, t->arena, &added);
    if (node == MS_MAP_NONE)
        return ms_no_memory(err);
    struct probe_tree_node *slot = added ? ms_vec_push(&t->nodes) : NULL;
    uint32_t *entry = slot != NULL ? ms_vec_push(&t->entries) : NULL;
    if (added && entry == NULL)
        return ms_no_memory(err);
    if (added) {
        *slot = (struct probe_tree_node){.parent = MS_MAP_NONE, .listed = true};
        *entry = node;
    }
    return MS_OK;
}

void probe_tree_close(struct probe_tree *t)
{
    ms_map_free(&t->names);
    ms_vec_free(&t->nodes);
    ms_vec_free(&t->entries);
    ms_arena_free(t->arena);
    ms_file_unmap(&t->file);
    *t = (struct probe_tree){.file = {"", 0}};
}
