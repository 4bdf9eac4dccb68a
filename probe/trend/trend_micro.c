/* SPDX-License-Identifier: MIT
 *
 * trend_micro: finds the micro step of a record.
 *
 * Within a step a model runs several times. Each run is a root of construct.json (Module, Cell,
 * optimizer), numbered in the order of the file. All nodes below a root belong to its micro step,
 * and a backward node to that of its forward node. Calls are numbered over the whole step, so they
 * are renumbered within each micro step, in order:
 *
 *     Module.a.A.forward.0  root 0        Functional.f.0.forward in it ─► f.0
 *     Module.a.A.forward.1  root 1        Functional.f.1.forward in it ─► f.0
 */
#include "probe/trend/trend_int.h"

#include "probe/base/mem.h"
#include "probe/dump/name.h"

#include <stdlib.h>

enum { NAME_MAX_BYTES = 1 << 20 };

/* ---- roots ------------------------------------------------------------ */

static bool is_run(struct ms_str name)
{
    return ms_str_find_str(name, MS_STR(".backward")) < 0 &&
           (ms_str_starts(name, MS_STR("Module")) || ms_str_starts(name, MS_STR("Cell")) ||
            ms_str_starts(name, MS_STR("optimizer")));
}

/* Returns the forward node of a backward node, else the node itself. */
static uint32_t twin_of(const struct probe_tree *t, uint32_t node, struct ms_buf *scratch)
{
    struct ms_str name = probe_tree_name(t, node);
    if (ms_str_find_str(name, MS_STR(".backward")) < 0)
        return node;
    ms_buf_clear(scratch);
    probe__put_replaced(scratch, name, MS_STR(".backward"), MS_STR(".forward"));
    return scratch->bad == MS_OK ? probe_tree_find(t, ms_buf_slice(scratch)) : MS_MAP_NONE;
}

/* Follows parents to the root. Links from backward to forward nodes can form a cycle, so the walk
 * is limited to the number of nodes. */
static uint32_t root_of(const struct probe_tree *t, uint32_t node, struct ms_buf *scratch)
{
    for (size_t hops = 0; hops <= t->nodes.n; hops++) {
        node = twin_of(t, node, scratch);
        if (node == MS_MAP_NONE || !t->nodes.p[node].listed)
            return MS_MAP_NONE;
        if (t->nodes.p[node].parent == MS_MAP_NONE)
            return node;
        node = t->nodes.p[node].parent;
    }
    return MS_MAP_NONE;
}

/* Numbers the roots, then gives every node the number of its root. */
static void assign_steps(struct probe__micro *m, struct ms_buf *scratch)
{
    const struct probe_tree *t = &m->tree;
    uint32_t runs = 0;
    uint32_t *run_of = m->number_of.p; /* scratch until calls are counted */
    for (uint32_t i = 0; i < t->nodes.n; i++)
        run_of[i] = m->step_of.p[i] = MS_MAP_NONE;
    for (uint32_t i = 0; i < t->entries.n; i++) {
        uint32_t node = t->entries.p[i];
        if (t->nodes.p[node].parent == MS_MAP_NONE && is_run(probe_tree_name(t, node)))
            run_of[node] = runs++;
    }
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        uint32_t root = t->nodes.p[i].listed ? root_of(t, i, scratch) : MS_MAP_NONE;
        if (root != MS_MAP_NONE)
            m->step_of.p[i] = run_of[root];
    }
    m->steps = runs != 0 ? runs : 1;
}

/* ---- calls ------------------------------------------------------------ */

/* Splits "Functional.f.3.forward" into the part before the call number, the number and the part
 * behind it; false when the name has no call number. */
static bool split_call(struct ms_str name, struct ms_str *before, struct ms_str *call,
                       struct ms_str *behind)
{
    if (!probe_name_find_call(name, call))
        return false;
    uint32_t at = (uint32_t)(call->p - name.p);
    *before = ms_str_sub(name, 0, at);
    *behind = ms_str_sub(name, at + call->n, name.n);
    return true;
}

struct call {
    uint32_t series, place, node;
    uint64_t number;
};

static int by_number(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Finds the series of a call: all calls of one function in one micro step. */
static enum ms_rc find_series(struct ms_map *series, struct ms_arena *arena, struct ms_buf *key,
                              const struct probe__micro *m, struct call *c, struct ms_err *err)
{
    struct ms_str name = probe_tree_name(&m->tree, c->node), before, call, behind;
    ms_buf_clear(key);
    ms_buf_printf(key, "%u|", m->step_of.p[c->node]);
    if (split_call(name, &before, &call, &behind) && ms_str_u64(call, &c->number)) {
        ms_buf_str(key, before);
        ms_buf_str(key, behind);
    } else {
        ms_buf_str(key, name);
    }
    MS_TRY(ms_buf_check(key, err));
    c->series = ms_map_put_copy(series, ms_buf_slice(key), arena, NULL);
    return c->series != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

static enum ms_rc list_calls(const struct probe__micro *m, struct call *calls, size_t *n,
                             struct ms_err *err)
{
    struct ms_map series = {0};
    struct ms_buf key = {.max = NAME_MAX_BYTES};
    struct ms_arena *arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = arena != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t place = 0; rc == MS_OK && place < m->tree.entries.n; place++) {
        uint32_t node = m->tree.entries.p[place];
        if (m->step_of.p[node] == MS_MAP_NONE)
            continue;
        calls[*n] = (struct call){.node = node, .place = place};
        rc = find_series(&series, arena, &key, m, &calls[(*n)++], err);
    }
    ms_map_free(&series);
    ms_buf_free(&key);
    ms_arena_free(arena);
    return rc;
}

static enum ms_rc count_calls(struct probe__micro *m, struct ms_err *err)
{
    size_t n = 0;
    struct call *calls = ms_calloc(m->tree.nodes.n + 1, sizeof *calls);
    if (calls == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = list_calls(m, calls, &n, err);
    if (rc == MS_OK)
        qsort(calls, n, sizeof *calls, by_number);
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        bool first = i == 0 || calls[i].series != calls[i - 1].series;
        m->number_of.p[calls[i].node] = first ? 0 : m->number_of.p[calls[i - 1].node] + 1;
    }
    ms_free(calls);
    return rc;
}

/* ---- all of it -------------------------------------------------------- */

static enum ms_rc work_out(struct probe__micro *m, struct ms_err *err)
{
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    size_t n = m->tree.nodes.n;
    if (!ms_vec_reserve(&m->step_of, n + 1) || !ms_vec_reserve(&m->number_of, n + 1))
        return ms_no_memory(err);
    m->step_of.n = m->number_of.n = n;
    assign_steps(m, &scratch);
    ms_buf_free(&scratch);
    return count_calls(m, err);
}

enum ms_rc probe__micro_open(struct probe__micro *m, const char *dir, unsigned flags,
                             struct ms_err *err)
{
    struct ms_err own = {0};
    *m = (struct probe__micro){.steps = 1};
    char *path = ms_path_join(dir, "construct.json");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe_tree_open(&m->tree, path, flags, &own);
    ms_free(path);
    if (rc == MS_E_NOTFOUND)
        return MS_OK;
    if (rc != MS_OK)
        return ms_fail(err, rc, "%s", own.msg);
    m->open = true;
    rc = work_out(m, err);
    if (rc != MS_OK)
        probe__micro_close(m);
    return rc;
}

void probe__micro_close(struct probe__micro *m)
{
    if (m->open)
        probe_tree_close(&m->tree);
    m->open = false;
    ms_vec_free(&m->step_of);
    ms_vec_free(&m->number_of);
}

bool probe__micro_any(const struct probe__micro *m)
{
    for (size_t i = 0; i < m->step_of.n; i++) {
        if (m->step_of.p[i] != MS_MAP_NONE)
            return true;
    }
    return false;
}

/* Handles gradients of parameters, which construct.json does not list: they belong to the micro
 * step of the forward call with their number, and keep their name. */
static bool name_pgrad(const struct probe__micro *m, struct ms_str record, uint32_t *step,
                       struct ms_buf *out)
{
    if (ms_str_find_str(record, MS_STR("parameters_grad")) < 0)
        return false;
    probe__put_replaced(out, record, MS_STR(".parameters_grad"), MS_STR(".forward"));
    uint32_t node = probe_tree_find(&m->tree, ms_buf_slice(out));
    *step = node != MS_MAP_NONE && m->step_of.p[node] != MS_MAP_NONE ? m->step_of.p[node] : 0;
    ms_buf_clear(out);
    ms_buf_str(out, record);
    return true;
}

bool probe__micro_name(const struct probe__micro *m, struct ms_str record, uint32_t *step,
                       struct ms_buf *out)
{
    struct ms_str before, call, behind;
    uint32_t node = probe_tree_find(&m->tree, record);
    ms_buf_clear(out);
    if (node == MS_MAP_NONE || m->step_of.p[node] == MS_MAP_NONE)
        return name_pgrad(m, record, step, out);
    *step = m->step_of.p[node];
    if (split_call(record, &before, &call, &behind)) {
        ms_buf_str(out, before);
        ms_buf_printf(out, "%u", m->number_of.p[node]);
        ms_buf_str(out, behind);
    } else {
        ms_buf_str(out, record);
    }
    return true;
}
