/* SPDX-License-Identifier: MIT
 *
 * align_chain: of links between two sequences, the heaviest set that keeps order.
 *
 * Links go by a ascending; best[b] is the heaviest chain that ends at or before b,
 * kept as a Fenwick tree of maxima, so the whole takes n log n.
 */
#include "compare/align_int.h"

#include <stdlib.h>

struct chain {
    float *total;   /* by link: weight of the chain that ends there */
    uint32_t *prev; /* by link */
    uint32_t *tree; /* by b: link that ends the heaviest chain, or ALIGN__NONE */
    uint32_t size;
};

/* By a; of one a the largest b first, so that no two of them can follow each other. */
static int by_place(const void *p, const void *q)
{
    const struct align__link *x = p;
    const struct align__link *y = q;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b > y->b ? -1 : 1;
    return (x->weight < y->weight) - (x->weight > y->weight);
}

static bool heavier(const struct chain *ch, uint32_t x, uint32_t y)
{
    return x != ALIGN__NONE && (y == ALIGN__NONE || ch->total[x] > ch->total[y]);
}

static uint32_t heaviest_before(const struct chain *ch, uint32_t b)
{
    uint32_t best = ALIGN__NONE;
    for (uint32_t i = b; i > 0; i &= i - 1) {
        if (heavier(ch, ch->tree[i - 1], best))
            best = ch->tree[i - 1];
    }
    return best;
}

static void enter(struct chain *ch, uint32_t b, uint32_t link)
{
    for (uint32_t i = b + 1; i <= ch->size; i += i & -i) {
        if (heavier(ch, link, ch->tree[i - 1]))
            ch->tree[i - 1] = link;
    }
}

/* Move the chain that ends at `last` to the front, ascending; its length. */
static size_t gather(struct align__link *links, const struct chain *ch, uint32_t last)
{
    size_t n = 0;
    for (uint32_t i = last; i != ALIGN__NONE; i = ch->prev[i])
        n++;
    size_t at = n;
    uint32_t *order = ch->tree; /* no longer needed, and long enough: b differs along a chain */
    for (uint32_t i = last; i != ALIGN__NONE; i = ch->prev[i])
        order[--at] = i;
    for (size_t i = 0; i < n; i++)
        links[i] = links[order[i]];
    return n;
}

enum ms_rc align__chain(struct align__link *links, size_t *n, struct ms_err *err)
{
    if (*n == 0)
        return MS_OK;
    qsort(links, *n, sizeof *links, by_place);
    struct chain ch = {.size = 0};
    for (size_t i = 0; i < *n; i++)
        ch.size = links[i].b >= ch.size ? links[i].b + 1 : ch.size;
    ch.total = ms_alloc(*n * sizeof *ch.total);
    ch.prev = ms_alloc(*n * sizeof *ch.prev);
    ch.tree = ms_alloc(((size_t)ch.size + 1) * sizeof *ch.tree);
    enum ms_rc rc = MS_OK;
    if (ch.total == NULL || ch.prev == NULL || ch.tree == NULL) {
        rc = ms_no_memory(err);
    } else {
        memset(ch.tree, 0xff, ((size_t)ch.size + 1) * sizeof *ch.tree);
        for (uint32_t i = 0; i < *n; i++) {
            ch.prev[i] = heaviest_before(&ch, links[i].b);
            ch.total[i] = links[i].weight + (ch.prev[i] != ALIGN__NONE ? ch.total[ch.prev[i]] : 0);
            enter(&ch, links[i].b, i);
        }
        *n = gather(links, &ch, heaviest_before(&ch, ch.size));
    }
    ms_free(ch.total);
    ms_free(ch.prev);
    ms_free(ch.tree);
    return rc;
}
