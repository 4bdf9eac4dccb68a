/* SPDX-License-Identifier: MIT
 *
 * tensor_likeness: how similar two tensors are, by their shapes and statistics.
 *
 * Layouts differ between frameworks ([batch, sequence, hidden] and [sequence, batch,
 * hidden], [out, in] and [in, out]), so a shape is represented by its dimensions in
 * ascending order without ones. Shapes are numbered; equal shapes have equal numbers.
 */
#include "compare/align/tensor_likeness.h"
#include "probe/base/assert.h"

#include <math.h>
#include <string.h>

static uint64_t hash_dim(const struct align__dim *d)
{
    return ms_str_hash((struct ms_str){(const char *)d->d, (uint32_t)(d->nd * sizeof d->d[0])});
}

bool align__dim_same(const struct align__dim *a, const struct align__dim *b)
{
    return a->nd == b->nd && a->n == b->n && memcmp(a->d, b->d, a->nd * sizeof a->d[0]) == 0;
}

__attribute__((unused)) static bool is_ascending(const struct align__dim *d)
{
    for (uint32_t i = 1; i < d->nd; i++) {
        if (d->d[i - 1] > d->d[i])
            return false;
    }
    return d->nd <= ALIGN__NDIM;
}

struct align__dim align__dim_of(const uint64_t *d, unsigned nd)
{
    struct align__dim out = {.n = 1, .next = ALIGN__NONE};
    for (unsigned i = 0; i < nd; i++) {
        /* A size that overflows still distinguishes shapes. */
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
    ms_assert(is_ascending(&out));
    return out;
}

static enum ms_rc grow_slots(struct align__dims *dims, struct ms_err *err)
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
        MS_TRY(grow_slots(dims, err));
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
    ms_assert(align__dim_same(&dims->list.p[*id], key));
    return MS_OK;
}

void align__dims_free(struct align__dims *dims)
{
    ms_vec_free(&dims->list);
    ms_free(dims->slots);
}

/* Tells whether `big` has one dimension k times as large as `small` and all others equal. */
static bool is_piece(const struct align__dim *small, const struct align__dim *big, uint64_t k)
{
    unsigned i = 0;
    unsigned j = 0;
    uint64_t only_small = 1; /* dimensions of 1 are not in the list */
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
    ms_assert(a < dims->list.n && b < dims->list.n);
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

static float larger_of(float a, float b)
{
    return a > b ? a : b;
}

/* Distance by extremes, for integers and booleans, which have no norm. */
static float range_distance(const struct align__value *a, const struct align__value *b, double peak)
{
    double d = fabs(a->stat[ALIGN__MAX] - b->stat[ALIGN__MAX]) +
               fabs(a->stat[ALIGN__MIN] - b->stat[ALIGN__MIN]);
    return peak > 0 ? (float)(d / peak) : 0;
}

static double peak_of(const struct align__value *v)
{
    return fmax(fabs(v->stat[ALIGN__MAX]), fabs(v->stat[ALIGN__MIN]));
}

float align__distance(const struct align__value *a, const struct align__value *b)
{
    enum { ONE_IS_ZERO = 9 };
    if (!a->known || !b->known || a->n != b->n || a->cls != b->cls)
        return -1;
    if (a->digest != 0 || b->digest != 0)
        return a->digest == b->digest ? 0 : -1;
    double peak = fmax(peak_of(a), peak_of(b));
    if (a->cls != ALIGN__FLOAT)
        return range_distance(a, b, peak);
    double na = a->stat[ALIGN__NORM];
    double nb = b->stat[ALIGN__NORM];
    if (na <= 0 || nb <= 0)
        return na <= 0 && nb <= 0 ? 0 : ONE_IS_ZERO;
    /* A mean is near 0, so its difference is measured in units of the root mean square. */
    double rms = sqrt(na * nb / (double)a->n);
    float d = fabsf(a->ln_norm - b->ln_norm);
    d = larger_of(d, (float)(fabs(a->stat[ALIGN__MAX] - b->stat[ALIGN__MAX]) / peak));
    d = larger_of(d, (float)(fabs(a->stat[ALIGN__MIN] - b->stat[ALIGN__MIN]) / peak));
    return larger_of(d, (float)(fabs(a->stat[ALIGN__MEAN] - b->stat[ALIGN__MEAN]) / rms));
}

float align__likeness(float distance)
{
    /* Differences of 10 to 30 % behind a fault still carry information, hence the long tail. Scales
     * from 0.01 to 0.04 change no figure by more than 0.006 (24 pairs); norm is 1 / ln(1 + 1 /
     * scale). */
    const float scale = 0.02F;
    const float norm = 0.25434F;
    if (!(distance < 1) || distance < 0)
        return 0;
    float like = 1 - logf(1 + distance / scale) * norm;
    ms_assert(like > -1e-4F && like <= 1);
    return like;
}
