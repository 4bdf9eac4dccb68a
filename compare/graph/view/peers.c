/* SPDX-License-Identifier: MIT
 *
 * peers: groups children by kind, so that each finds its counterparts on the other side
 * quickly.
 *
 *     place   c0 c3 c4 | c1 c5 | c2      children of one kind together, in their order
 *     first   0          3       5  6    by kind: where its children begin in place
 *     free    by place: the place itself if free, else a later place to search from
 *
 * A module may have a hundred thousand children of different kinds, so scanning all of
 * them for each child of the other side would be quadratic.
 */
#include "compare/graph/view/peers.h"

#include "compare/graph/build/graph_name.h"
#include "probe/base/assert.h"

/* Returns the part of a name that decides the kind: the class of a module, the API of an
 * operator. */
static struct ms_str likeness(struct ms_str name, bool api)
{
    unsigned n = probe_name_parts(name), back = api ? 2 : 4;
    if (n >= back && ms_str_all_digits(probe_name_part(name, n - back)))
        back++;
    return n >= back ? probe_name_part(name, n - back) : name;
}

static struct ms_str key_of(struct graph__peers *p, struct ms_str type, struct ms_str name)
{
    ms_buf_clear(&p->text);
    ms_buf_str(&p->text, type);
    ms_buf_putc(&p->text, ' ');
    ms_buf_str(&p->text, likeness(name, ms_str_is(type, "1")));
    return ms_buf_slice(&p->text);
}

enum ms_rc graph__peers_new(struct graph__peers *p, size_t n, struct ms_err *err)
{
    *p = (struct graph__peers){.text.max = 1 << 20};
    p->arena = ms_arena_new(SIZE_MAX);
    p->kind = ms_alloc((n + 1) * sizeof *p->kind);
    p->place = ms_alloc((n + 1) * sizeof *p->place);
    p->free = ms_alloc((n + 1) * sizeof *p->free);
    bool done = p->arena != NULL && p->kind != NULL && p->place != NULL && p->free != NULL;
    return done ? MS_OK : ms_no_memory(err);
}

enum ms_rc graph__peers_add(struct graph__peers *p, struct ms_str type, struct ms_str name,
                            bool taken, struct ms_err *err)
{
    uint32_t kind = MS_MAP_NONE;
    ms_assert(p->first == NULL); /* may not be sorted yet */
    if (!taken) {
        struct ms_str key = key_of(p, type, name);
        MS_TRY(ms_buf_check(&p->text, err));
        kind = ms_map_put_copy(&p->kinds, key, p->arena, NULL);
        if (kind == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    p->kind[p->n++] = kind;
    return MS_OK;
}

enum ms_rc graph__peers_sort(struct graph__peers *p, struct ms_err *err)
{
    size_t kinds = p->kinds.keys.n;
    p->first = ms_calloc(kinds + 2, sizeof *p->first);
    if (p->first == NULL)
        return ms_no_memory(err);
    /* Counting sort: counts are kept one entry further along until the children are placed, which
     * advances the start of each kind. */
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->kind[i] != MS_MAP_NONE)
            p->first[p->kind[i] + 2]++;
    }
    for (size_t k = 2; k < kinds + 2; k++)
        p->first[k] += p->first[k - 1];
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->kind[i] != MS_MAP_NONE)
            p->place[p->first[p->kind[i] + 1]++] = i;
    }
    for (uint32_t i = 0; i <= p->n; i++)
        p->free[i] = i;
    return MS_OK;
}

/* Returns the first free place from `at` on, of any kind. Path halving as in union-find. */
static uint32_t free_from(struct graph__peers *p, uint32_t at)
{
    while (p->free[at] != at) {
        p->free[at] = p->free[p->free[at]];
        at = p->free[at];
    }
    return at;
}

/* Returns the first place in [from, end) of a child after `child`, by binary search. */
static uint32_t behind(const struct graph__peers *p, uint32_t from, uint32_t end, uint32_t child)
{
    while (from < end) {
        uint32_t middle = from + (end - from) / 2;
        if (p->place[middle] <= child)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

uint32_t graph__peers_take(struct graph__peers *p, struct ms_str type, struct ms_str name,
                           uint32_t last)
{
    ms_assert(p->first != NULL);
    uint32_t kind = ms_map_get(&p->kinds, key_of(p, type, name));
    if (kind == MS_MAP_NONE || p->text.bad != MS_OK)
        return MS_MAP_NONE;
    uint32_t from = p->first[kind], end = p->first[kind + 1], at = end;
    if (last != MS_MAP_NONE)
        at = free_from(p, behind(p, from, end, last));
    if (at >= end)
        at = free_from(p, from);
    if (at >= end)
        return MS_MAP_NONE;
    p->free[at] = at + 1;
    return p->place[at];
}

void graph__peers_free(struct graph__peers *p)
{
    ms_map_free(&p->kinds);
    ms_buf_free(&p->text);
    ms_free(p->kind);
    ms_free(p->place);
    ms_free(p->free);
    ms_free(p->first);
    ms_arena_free(p->arena);
    *p = (struct graph__peers){.n = 0};
}
