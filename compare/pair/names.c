/* SPDX-License-Identifier: MIT
 *
 * names: the names of all nodes and rows of a dump, in one map.
 */
#include "compare/pair/names.h"

enum { NAME_BYTES = 1 << 20, TOLD = 10 };

static enum ms_rc put_name(struct cmp__names *n, struct ms_str name, struct cmp__named what,
                           struct ms_err *err)
{
    bool added;
    if (ms_map_put_copy(&n->map, name, n->arena, &added) == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct cmp__named *slot = ms_vec_push(&n->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = what;
    return MS_OK;
}

static enum ms_rc put_rows(struct cmp__names *n, struct ms_err *err)
{
    struct ms_buf name = {.max = NAME_BYTES};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < n->dump->rows.n && rc == MS_OK; i++) {
        const struct probe_row *row = &n->dump->rows.p[i];
        ms_buf_clear(&name);
        probe_row_name(n->dump, row, &name);
        rc = ms_buf_check(&name, err);
        if (rc == MS_OK)
            rc = put_name(n, ms_buf_slice(&name), (struct cmp__named){row->node, i}, err);
    }
    ms_buf_free(&name);
    return rc;
}

enum ms_rc cmp__names_list(struct cmp__names *n, const struct probe_dump *d, bool nodes,
                           struct ms_err *err)
{
    *n = (struct cmp__names){.dump = d, .arena = ms_arena_new((size_t)8 << 30)};
    enum ms_rc rc = n->arena != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; nodes && i < d->nodes.n && rc == MS_OK; i++)
        rc = put_name(n, probe_node_name(d, i), (struct cmp__named){i, MS_MAP_NONE}, err);
    return rc == MS_OK ? put_rows(n, err) : rc;
}

void cmp__names_free(struct cmp__names *n)
{
    ms_map_free(&n->map);
    ms_vec_free(&n->list);
    ms_arena_free(n->arena);
    *n = (struct cmp__names){0};
}

const struct cmp__named *cmp__names_find(const struct cmp__names *n, struct ms_str name)
{
    uint32_t at = ms_map_get(&n->map, name);
    return at != MS_MAP_NONE ? &n->list.p[at] : NULL;
}

void cmp__names_offer(const struct cmp__names *n, struct ms_near *near)
{
    for (uint32_t i = 0; i < n->map.keys.n; i++) /* texts of the arena end with a NUL */
        ms_near_offer(near, n->map.keys.p[i].p);
}

const char *cmp__names_near(const struct cmp__names *n, const char *word)
{
    struct ms_near near = {.word = word};
    cmp__names_offer(n, &near);
    return near.best;
}

/* ---- names that are nowhere --------------------------------------------- */

bool cmp__unknown_is_told(const struct cmp__unknown *u)
{
    return u->n < TOLD;
}

enum ms_rc cmp__unknown_tell(struct cmp__unknown *u, struct ms_str name, const char *near,
                             struct ms_err *err)
{
    if (u->n++ >= TOLD)
        return MS_OK;
    if (near == NULL)
        return cmp__problem(u->problems, err, "%s: the %s has no %s '%.*s'", u->file, u->side,
                            u->what, MS_STR_ARG(name));
    return cmp__problem(u->problems, err, "%s: the %s has no %s '%.*s'; did you mean '%s'?",
                        u->file, u->side, u->what, MS_STR_ARG(name), near);
}

enum ms_rc cmp__unknown_end(const struct cmp__unknown *u, struct ms_err *err)
{
    if (u->n <= TOLD)
        return MS_OK;
    return cmp__problem(u->problems, err, "%s: %zu more names that the %s does not have", u->file,
                        u->n - TOLD, u->side);
}
