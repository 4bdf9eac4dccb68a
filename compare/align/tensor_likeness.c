/* SPDX-License-Identifier: MIT
 *
 * align_dims: shapes as sets of sizes, numbered.
 *
 * Layouts differ between frameworks ([batch, sequence, hidden] against
 * [sequence, batch, hidden], [out, in] against [in, out]), so a shape is its sizes
 * in ascending order without ones.
 */
#include "compare/align_int.h"

static uint64_t hash_dim(const struct align__dim *d)
{
    return ms_str_hash((struct ms_str){(const char *)d->d, (uint32_t)(d->nd * sizeof d->d[0])});
}

bool align__dim_same(const struct align__dim *a, const struct align__dim *b)
{
    return a->nd == b->nd && a->n == b->n && memcmp(a->d, b->d, a->nd * sizeof a->d[0]) == 0;
}

struct align__dim align__dim_of(const uint64_t *d, unsigned nd)
{
    struct align__dim out = {.n = 1, .next = ALIGN__NONE};
    for (unsigned i = 0; i < nd; i++) {
        /* An impossible size is as good as any other to tell shapes apart. */
        if (__builtin_mul_overflow(out.n, d[i], &out.n))
            out.n = UINT64_MAX;
        if (d[i] == 1)
            continue;
        unsigned at = out.nd < ALIGN__NDIM ? out.nd++ : 0;
        if (at == 0 && out.nd == ALIGN__NDIM && d[i] <= out.d[0])
            continue;
        out.d[at] = d[i];
        for (; at > 0 && out.d[at - 1] > out.d[at]; at--) {
            uint64_t t = out.d[at - 1];
            out.d[at - 1] = out.d[at];
            out.d[at] = t;
        }
        for (; at + 1 < out.nd && out.d[at + 1] < out.d[at]; at++) {
            uint64_t t = out.d[at + 1];
            out.d[at + 1] = out.d[at];
            out.d[at] = t;
        }
    }
    return out;
}

static enum ms_rc grow(struct align__dims *dims, struct ms_err *err)
{
    uint32_t size = dims->slots == NULL ? 256 : 2 * (dims->mask + 1);
    uint32_t *slots = ms_alloc(size * sizeof *slots);
    if (slots == NULL)
        return ms_no_memory(err);
    ms_free(dims->slots);
    dims->slots = slots;
    dims->mask = size - 1;
    memset(slots, 0xff, size * sizeof *slots);
    for (uint32_t i = 0; i < dims->list.n; i++) {
        uint32_t *slot = &slots[hash_dim(&dims->list.p[i]) & dims->mask];
        dims->list.p[i].next = *slot;
        *slot = i;
    }
    return MS_OK;
}

enum ms_rc align__dims_put(struct align__dims *dims, const struct align__dim *key, uint32_t *id,
                           struct ms_err *err)
{
    if (dims->slots == NULL || dims->list.n > dims->mask)
        MS_TRY(grow(dims, err));
    uint32_t *slot = &dims->slots[hash_dim(key) & dims->mask];
    for (uint32_t i = *slot; i != ALIGN__NONE; i = dims->list.p[i].next) {
        if (align__dim_same(&dims->list.p[i], key)) {
            *id = i;
            return MS_OK;
        }
    }
    struct align__dim *new = ms_vec_push(&dims->list);
    if (new == NULL)
        return ms_no_memory(err);
    *new = *key;
    new->next = *slot;
    *id = *slot = (uint32_t)(dims->list.n - 1);
    return MS_OK;
}

void align__dims_free(struct align__dims *dims)
{
    ms_vec_free(&dims->list);
    ms_free(dims->slots);
}

/* big has one size k times as large as small, the others are equal. */
static bool is_piece(const struct align__dim *small, const struct align__dim *big, uint64_t k)
{
    unsigned i = 0;
    unsigned j = 0;
    uint64_t only_small = 1; /* a size of 1 is not in the list */
    uint64_t only_big = 1;
    while (i < small->nd || j < big->nd) {
        if (i < small->nd && j < big->nd && small->d[i] == big->d[j]) {
            i++, j++;
        } else if (j >= big->nd || (i < small->nd && small->d[i] < big->d[j])) {
            if (only_small != 1)
                return false;
            only_small = small->d[i++];
        } else {
            if (only_big != 1)
                return false;
            only_big = big->d[j++];
        }
    }
    return only_big / k == only_small && only_big % k == 0;
}

uint64_t align__dims_ratio(const struct align__dims *dims, uint32_t a, uint32_t b)
{
    if (a == ALIGN__NONE || b == ALIGN__NONE)
        return 0;
    const struct align__dim *small = &dims->list.p[a];
    const struct align__dim *big = &dims->list.p[b];
    if (small->n > big->n) {
        const struct align__dim *t = small;
        small = big;
        big = t;
    }
    if (small->n == 0 || big->n % small->n != 0 || big->n / small->n < 2)
        return 0;
    return is_piece(small, big, big->n / small->n) ? big->n / small->n : 0;
}

bool align__dims_piece(const struct align__dims *dims, uint32_t a, uint32_t b)
{
    uint64_t k = align__dims_ratio(dims, a, b);
    return k != 0 && k <= 8;
}
