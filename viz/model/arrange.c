/* SPDX-License-Identifier: MIT
 *
 * arrange: sorts siblings; each row moves together with all rows below it.
 */
#include "viz/model/arrange.h"

#include "probe/base/mem.h"

#include <stdlib.h>

enum { DEEPEST = 500 }; /* deeper rows keep their order */

struct block { /* a row and all rows below it */
    size_t from, n;
    int64_t weight; /* sort key, ascending */
    struct ms_str name;
};

struct arranging {
    const struct viz_row *from; /* all rows in their current order */
    struct viz_row *to;
    size_t used;
    enum viz_sort sort;
    bool inverted;
};

/* ---- sort keys ------------------------------------------------------------------------ */

/* Returns the rank of the state in the order E ! W - . and not compared, as in all lists; a
 * closed node has the worst state of its descendants. */
static int64_t badness(const struct viz_row *r)
{
    const struct graph_row *n = r->pair.target.name.n != 0 ? &r->pair.target : &r->pair.golden;
    const struct graph_rollup *b = &r->pair.below;
    return n->state == GRAPH_ERROR || b->error != 0       ? 0
           : n->overflow.n != 0 || b->overflow != 0       ? 1
           : n->state == GRAPH_WARNING || b->warning != 0 ? 2
           : n->unmatched || b->unmatched != 0            ? 3
           : n->state == GRAPH_PASS                       ? 4
                                                          : 5;
}

static int64_t weight_of(const struct viz_row *r, enum viz_sort sort)
{
    switch (sort) {
    case VIZ_SORT_STATE:
        return badness(r);
    case VIZ_SORT_ERRORS:
        return -(r->pair.below.error + (r->pair.target.state == GRAPH_ERROR));
    default:
        return 0;
    }
}

static int compare(const void *pa, const void *pb)
{
    const struct block *a = pa, *b = pb;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    int c = a->name.p != NULL && b->name.p != NULL ? ms_str_cmp_natural(a->name, b->name) : 0;
    return c != 0 ? c : a->from < b->from ? -1 : a->from > b->from;
}

static struct block block_of(const struct arranging *g, size_t i, size_t end)
{
    const struct viz_row *r = &g->from[i];
    struct block b = {i, 1, weight_of(r, g->sort), MS_STR_NONE};
    while (i + b.n < end && g->from[i + b.n].depth > r->depth)
        b.n++;
    if (g->sort == VIZ_SORT_NAME)
        b.name = r->pair.target.name.n != 0 ? r->pair.target.name : r->pair.golden.name;
    return b;
}

/* ---- sorting --------------------------------------------------------------------------- */

static enum ms_rc put_range(struct arranging *g, size_t from, size_t end, int deep,
                            struct ms_err *err);

static enum ms_rc put_block(struct arranging *g, const struct block *b, int deep,
                            struct ms_err *err)
{
    g->to[g->used++] = g->from[b->from];
    return put_range(g, b->from + 1, b->from + b->n, deep + 1, err);
}

static enum ms_rc put_sorted(struct arranging *g, struct block *p, size_t n, int deep,
                             struct ms_err *err)
{
    size_t last = n; /* rows MORE stay at the end */
    while (last > 0 && g->from[p[last - 1].from].kind == VIZ_ROW_MORE)
        last--;
    if (last > 1)
        qsort(p, last, sizeof *p, compare);
    for (size_t i = 0; i < n; i++) {
        size_t at = g->inverted && i < last ? last - 1 - i : i;
        MS_TRY(put_block(g, &p[at], deep, err));
    }
    return MS_OK;
}

static enum ms_rc put_range(struct arranging *g, size_t from, size_t end, int deep,
                            struct ms_err *err)
{
    MS_VEC(struct block) blocks = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = from; i < end && deep > DEEPEST; i++)
        g->to[g->used++] = g->from[i];
    for (size_t i = from; rc == MS_OK && i < end && deep <= DEEPEST;) {
        struct block *b = ms_vec_push(&blocks);
        if (b == NULL)
            rc = ms_no_memory(err);
        else {
            *b = block_of(g, i, end);
            i += b->n;
        }
    }
    if (rc == MS_OK)
        rc = put_sorted(g, blocks.p, blocks.n, deep, err);
    ms_vec_free(&blocks);
    return rc;
}

static void follow(const struct viz_outline *t, uint32_t natural, size_t *at)
{
    for (size_t i = 0; i < t->rows.n; i++) {
        if (t->rows.p[i].natural == natural)
            *at = i;
    }
}

enum ms_rc viz_arrange(struct viz_outline *t, enum viz_sort sort, bool inverted, size_t *at,
                       struct ms_err *err)
{
    size_t n = t->rows.n;
    struct viz_row *copy = ms_alloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        t->rows.p[i].natural = (uint32_t)i;
    memcpy(copy, t->rows.p, n * sizeof *copy);
    struct arranging g = {copy, t->rows.p, 0, sort, inverted};
    enum ms_rc rc = put_range(&g, 0, n, 0, err);
    if (rc != MS_OK)
        memcpy(t->rows.p, copy, n * sizeof *copy);
    else
        follow(t, (uint32_t)*at, at);
    ms_free(copy);
    return rc;
}

enum ms_rc viz_arrange_back(struct viz_outline *t, size_t *at, struct ms_err *err)
{
    size_t n = t->rows.n;
    struct viz_row *copy = ms_alloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return ms_no_memory(err);
    uint32_t here = *at < n ? t->rows.p[*at].natural : 0;
    memcpy(copy, t->rows.p, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        t->rows.p[copy[i].natural] = copy[i];
    *at = here;
    ms_free(copy);
    return MS_OK;
}
