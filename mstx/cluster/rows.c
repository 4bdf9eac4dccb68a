/* SPDX-License-Identifier: MIT
 *
 * rows: see the header.
 */
#include "mstx/cluster/rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <string.h>

void mstx__cluster_free(struct mstx_cluster *c)
{
    for (size_t i = 0; i < c->group.n; i++) {
        ms_free(c->group.p[i].name);
        ms_vec_free(&c->group.p[i].world);
        ms_vec_free(&c->group.p[i].members);
        ms_vec_free(&c->group.p[i].cost);
    }
    for (size_t i = 0; i < c->host.n; i++)
        ms_free(c->host.p[i]);
    ms_vec_free(&c->group);
    ms_vec_free(&c->process);
    ms_vec_free(&c->step);
    ms_vec_free(&c->coll);
    ms_vec_free(&c->p2p);
    ms_vec_free(&c->join);
    ms_vec_free(&c->link);
    ms_vec_free(&c->open);
    ms_vec_free(&c->quarrel);
    ms_vec_free(&c->missing);
    ms_vec_free(&c->note);
    ms_vec_free(&c->host);
}

static char *group_name(uint32_t id, struct ms_str name)
{
    struct ms_buf b = {.max = 128};
    if (name.n != 0)
        ms_buf_printf(&b, "%.*s", name.n < 48 ? (int)name.n : 48, name.p);
    else
        ms_buf_printf(&b, "communicator %u", id);
    ms_buf_z(&b);
    return b.p;
}

void mstx__cluster_group(struct mstx_cluster *c, uint32_t id, struct ms_str name, int64_t size,
                         const void *world, uint32_t listed)
{
    if (id == 0 || id <= c->group.n)
        return;
    ms_assert(id == c->group.n + 1);
    struct mstx_cl_group *g = ms_vec_push(&c->group);
    if (g == NULL) {
        c->no_memory = true;
        return;
    }
    *g = (struct mstx_cl_group){
        .id = id, .name = group_name(id, name), .size = size, .first_seq = UINT32_MAX};
    c->no_memory |= g->name == NULL;
    if (listed == 0)
        return;
    if (!ms_vec_reserve(&g->world, listed)) {
        c->no_memory = true;
        return;
    }
    memcpy(g->world.p, world, listed * sizeof *g->world.p);
    g->world.n = listed;
}

uint32_t mstx__cluster_host(struct mstx_cluster *c, struct ms_str name)
{
    for (size_t i = c->host.n; i-- > 0;) {
        if (ms_str_is(name, c->host.p[i]))
            return (uint32_t)i;
    }
    char **slot = ms_vec_push(&c->host);
    if (slot == NULL || (*slot = ms_str_dup(name)) == NULL) {
        c->host.n -= slot != NULL;
        c->no_memory = true;
        return 0;
    }
    return (uint32_t)c->host.n - 1;
}

struct mstx_cl_note *mstx__cluster_note(struct mstx_cluster *c, const char *kind,
                                        const char *severity, int32_t rank, double value)
{
    ms_assert(kind != NULL && severity != NULL && rank >= -1);
    struct mstx_cl_note *n = ms_vec_push(&c->note);
    if (n == NULL) {
        c->no_memory = true;
        return NULL;
    }
    *n = (struct mstx_cl_note){.kind = kind,
                               .severity = severity,
                               .rank = rank,
                               .first_step = -1,
                               .last_step = -1,
                               .value = value};
    return n;
}

/* ---- the median ---------------------------------------------------------------- */

/* Quickselect: v[at] becomes the value at this index of the sorted order, with no greater value
 * before and no smaller value after it. */
static void put_in_place(double *v, size_t n, size_t at)
{
    ms_assert(at < n);
    size_t from = 0, last = n - 1; /* the range that holds the value */
    while (from < last) {
        const double pivot = v[from + (last - from) / 2];
        size_t i = from, k = last;
        for (;; i++, k--) {
            while (v[i] < pivot)
                i++;
            while (v[k] > pivot)
                k--;
            if (i >= k)
                break;
            const double kept = v[i];
            v[i] = v[k];
            v[k] = kept;
        }
        if (at <= k)
            last = k;
        else
            from = k + 1;
    }
}

double mstx__median(double *v, size_t n)
{
    ms_assert(n == 0 || v != NULL);
    if (n == 0)
        return 0;
    put_in_place(v, n, n / 2);
    double low = v[n / 2];
    for (size_t i = 0; n % 2 == 0 && i < n / 2; i++)
        low = i == 0 || v[i] > low ? v[i] : low;
    return n % 2 != 0 ? low : (low + v[n / 2]) / 2;
}
