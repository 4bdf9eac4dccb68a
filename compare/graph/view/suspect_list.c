/* SPDX-License-Identifier: MIT
 *
 * suspect_list: see the header.
 */
#include "compare/graph/view/suspect_list.h"

#include "probe/base/order.h"

#include <stdlib.h>

static int by_spot(struct graph_spot a, struct graph_spot b)
{
    if (a.step != b.step)
        return a.step < b.step ? -1 : 1;
    if (a.rank != b.rank)
        return a.rank < b.rank ? -1 : 1;
    return (int)a.golden - (int)b.golden;
}

static int by_name(const void *pa, const void *pb)
{
    const struct graph_suspect_row *a = pa, *b = pb;
    const int spots = by_spot(a->at, b->at);
    return spots != 0 ? spots : ms_str_cmp(a->name, b->name);
}

void graph__suspects_sort(graph_suspect_rows *list)
{
    ms_vec_sort(list, by_name);
}

void graph__suspects_free(graph_suspect_rows *list)
{
    for (size_t i = 0; i < list->n; i++)
        ms_vec_free(&list->p[i].above);
    ms_vec_free(list);
}

bool graph__is_suspect(const graph_suspect_rows *list, struct graph_spot at, struct ms_str name)
{
    const struct graph_suspect_row wanted = {.at = at, .name = name};
    return list->n != 0 && bsearch(&wanted, list->p, list->n, sizeof *list->p, by_name) != NULL;
}

void graph__suspects_of(const graph_suspect_rows *list, struct graph_spot at, size_t *from,
                        size_t *to)
{
    size_t low = 0;
    for (size_t high = list->n; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (by_spot(list->p[middle].at, at) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*from = *to = low; *to < list->n && by_spot(list->p[*to].at, at) == 0;)
        ++*to;
}
