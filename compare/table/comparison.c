/* SPDX-License-Identifier: MIT
 *
 * comparison: properties of an opened comparison.
 */
#include "compare/table/comparison.h"

#include "probe/base/assert.h"

enum probe_mode cmp_mode(const struct cmp *c)
{
    return c->set.mode;
}
bool cmp_has_stack(const struct cmp *c)
{
    return c->rows.has_stack && !c->set.conf.hide_stack;
}
bool cmp_maps_layers(const struct cmp *c)
{
    return c->set.conf.layer.on && c->rows.row_map.arena != NULL;
}
bool cmp_is_debug(const struct cmp *c)
{
    return c->set.is_debug;
}
const struct probe_dump *cmp_dump(const struct cmp *c, bool golden)
{
    return golden ? c->rows.b.dump : c->rows.t.dump;
}
const struct cmp_align *cmp_alignment(const struct cmp *c)
{
    return c->rows.al;
}
size_t cmp_problems(const struct cmp *c, const struct ms_str **list)
{
    *list = c->rows.problems.list.p;
    return c->rows.problems.list.n;
}
uint64_t cmp_bytes_read(const struct cmp *c)
{
    return c->measured.bytes_read;
}
bool cmp_is_empty(const struct cmp *c)
{
    return c->rows.t.order.n == 0 || c->rows.b.order.n == 0;
}
size_t cmp_rows(const struct cmp *c)
{
    return c->rows.pairs.n;
}
size_t cmp_groups(const struct cmp *c)
{
    return c->rows.groups.n - 1;
}
size_t cmp_group_rows(const struct cmp *c, size_t group)
{
    ms_assert(group < cmp_groups(c));
    return c->rows.groups.p[group + 1].first - c->rows.groups.p[group].first;
}

static uint32_t node_of(const struct cmp__side *s, uint32_t row)
{
    return row != MS_MAP_NONE ? s->ops.p[s->op_of.p[row]].node : MS_MAP_NONE;
}

struct cmp_pairing cmp_group_nodes(const struct cmp *c, size_t group)
{
    struct cmp_pairing found = {MS_MAP_NONE, MS_MAP_NONE};
    ms_assert(group < cmp_groups(c));
    for (uint32_t i = c->rows.groups.p[group].first; i < c->rows.groups.p[group + 1].first; i++) {
        if (found.target == MS_MAP_NONE)
            found.target = node_of(&c->rows.t, c->rows.pairs.p[i].t);
        if (found.golden == MS_MAP_NONE)
            found.golden = node_of(&c->rows.b, c->rows.pairs.p[i].b);
    }
    return found;
}
