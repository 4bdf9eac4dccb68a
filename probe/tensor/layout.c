/* SPDX-License-Identifier: MIT
 *
 * layout: checks shape, strides and data of a tensor against the bytes of its file, for every
 * format, and returns elements in the order of the shape.
 */
#include "probe/base/mem.h"
#include "probe/tensor/tensor.h"
#include "probe/tensor/tensor_int.h"

/* A stride of 0 lets a small file describe a huge tensor. Files themselves reach 10 GiB, so a
 * larger size is certainly wrong, and a pass over it would not end in reasonable time. */
#define MAX_EXPANDED_BYTES (16ULL << 30)

/* ---- shape and place ------------------------------------------------------ */

static void strides_of_c_order(struct probe_tensor *t)
{
    uint64_t step = 1;
    for (uint32_t d = t->ndim; d-- > 0;) {
        t->stride[d] = step;
        step *= t->shape[d] != 0 ? t->shape[d] : 1;
    }
}

enum ms_rc probe__tensor_set(struct probe_tensor *t, enum ms_dtype dtype, const uint64_t *shape,
                             uint32_t ndim, struct ms_err *err)
{
    if (ndim > PROBE_MAX_DIMS)
        return ms_fail(err, MS_E_LIMIT, "%u dimensions, more than the %d that are read", ndim,
                       PROBE_MAX_DIMS);
    /* Sizes of 0 count as 1 in the product, so that the strides fit as well. */
    uint64_t bytes = ms_dtype_size(dtype), count = 1;
    for (uint32_t d = 0; d < ndim; d++) {
        const uint64_t size = shape[d] != 0 ? shape[d] : 1;
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > INT64_MAX)
            return ms_fail(err, MS_E_FORMAT, "the product of the shape does not fit 63 bits");
        count *= shape[d];
        t->shape[d] = shape[d];
    }
    t->dtype = dtype;
    t->ndim = ndim;
    t->count = count;
    strides_of_c_order(t);
    return MS_OK;
}

bool probe__tensor_in_c_order(const struct probe_tensor *t)
{
    uint64_t step = 1;
    for (uint32_t d = t->ndim; d-- > 0;) {
        if (t->shape[d] != 1 && t->stride[d] != step)
            return false;
        step *= t->shape[d];
    }
    return true;
}

/* Computes the distance from the first to the last element; false when it does not fit 64 bits. */
static bool span_of(const struct probe_tensor *t, uint64_t *span)
{
    *span = 0;
    for (uint32_t d = 0; d < t->ndim; d++) {
        uint64_t step;
        if (__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &step) ||
            __builtin_add_overflow(*span, step, span))
            return false;
    }
    return true;
}

static void swap_bytes(char *p, size_t n, size_t unit)
{
    for (char *const end = p + n; p != end; p += unit) {
        for (size_t i = 0; i < unit / 2; i++) {
            const char c = p[i];
            p[i] = p[unit - 1 - i];
            p[unit - 1 - i] = c;
        }
    }
}

static enum ms_rc copy_swapped(struct probe_tensor *t, const char *from, size_t n,
                               struct ms_err *err)
{
    t->copy = ms_alloc(n);
    if (t->copy == NULL)
        return ms_fail(err, MS_E_NOMEM, "%zu bytes to change the byte order: %s", n,
                       ms_rc_text(MS_E_NOMEM));
    memcpy(t->copy, from, n);
    const size_t size = ms_dtype_size(t->dtype);
    swap_bytes(t->copy, n, ms_dtype_kind(t->dtype) == MS_DTK_COMPLEX ? size / 2 : size);
    t->data = t->copy;
    return MS_OK;
}

enum ms_rc probe__tensor_place(struct probe_tensor *t, const char *storage, size_t n,
                               uint64_t offset, bool swap, struct ms_err *err)
{
    t->contiguous = true;
    t->data = NULL;
    if (t->count == 0)
        return MS_OK;
    const size_t size = ms_dtype_size(t->dtype);
    uint64_t span, last;
    if (!span_of(t, &span) || __builtin_add_overflow(offset, span, &last) || last >= n / size)
        return ms_fail(err, MS_E_FORMAT,
                       "shape, strides and offset %llu reach past the end of the %zu bytes of data",
                       (unsigned long long)offset, n);
    if (t->count * size > MAX_EXPANDED_BYTES && t->count * size > n)
        return ms_fail(err, MS_E_LIMIT, "%llu elements are described but %zu bytes stored",
                       (unsigned long long)t->count, n);
    t->contiguous = probe__tensor_in_c_order(t);
    const char *first = storage + offset * size;
    if (swap && size > 1)
        return copy_swapped(t, first, (span + 1) * size, err);
    t->data = first;
    return MS_OK;
}

/* ---- elements ------------------------------------------------------------- */

/* Gathers n elements that are `step` bytes apart. With a constant size the compiler makes each copy
 * one move. */
static void copy_apart(char *to, const char *from, size_t n, size_t step, size_t size)
{
    switch (size) {
    case 1:
        for (size_t i = 0; i < n; i++)
            to[i] = from[i * step];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 2, from + i * step, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 4, from + i * step, 4);
        break;
    case 8:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 8, from + i * step, 8);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * size, from + i * step, size);
        break;
    }
}

/* Odometer over all dimensions but the last, whose elements are copied as one run. */
struct walk {
    uint64_t index[PROBE_MAX_DIMS];
    uint64_t at; /* in elements from data */
};

static void walk_to(struct walk *w, const struct probe_tensor *t, uint64_t element)
{
    w->at = 0;
    for (uint32_t d = t->ndim; d-- > 0;) {
        w->index[d] = element % t->shape[d];
        element /= t->shape[d];
        w->at += w->index[d] * t->stride[d];
    }
}

static void walk_on(struct walk *w, const struct probe_tensor *t, uint64_t run)
{
    uint32_t d = t->ndim - 1;
    w->index[d] += run;
    w->at += run * t->stride[d];
    while (w->index[d] == t->shape[d] && d != 0) {
        w->at -= w->index[d] * t->stride[d];
        w->index[d] = 0;
        d--;
        w->index[d]++;
        w->at += t->stride[d];
    }
}

static void gather(const struct probe_tensor *t, uint64_t from, uint64_t n, char *to)
{
    const uint32_t last = t->ndim - 1;
    const size_t size = ms_dtype_size(t->dtype);
    struct walk w;
    walk_to(&w, t, from);
    while (n != 0) {
        const uint64_t left = t->shape[last] - w.index[last], run = n < left ? n : left;
        const char *src = (const char *)t->data + w.at * size;
        if (t->stride[last] == 1)
            memcpy(to, src, run * size);
        else
            copy_apart(to, src, run, t->stride[last] * size, size);
        to += run * size;
        n -= run;
        if (n != 0)
            walk_on(&w, t, run);
    }
}

const void *probe_tensor_elements(const struct probe_tensor *t, uint64_t from, uint64_t n,
                                  void *scratch)
{
    if (n == 0)
        return scratch;
    if (t->contiguous)
        return (const char *)t->data + from * ms_dtype_size(t->dtype);
    gather(t, from, n, scratch);
    return scratch;
}

void probe_pieces_start(struct probe_pieces *p, const struct probe_tensor *t)
{
    const size_t size = ms_dtype_size(t->dtype);
    p->t = t;
    p->at = 0;
    p->most = t->count;
    p->scratch = p->few;
    if (t->contiguous || t->count <= sizeof p->few / size)
        return;
    p->most = t->count < MS_STATS_BLOCK ? t->count : MS_STATS_BLOCK;
    p->scratch = ms_alloc(p->most * size);
    if (p->scratch != NULL)
        return;
    p->scratch = p->few;
    p->most = sizeof p->few / size;
}

const void *probe_pieces_next(struct probe_pieces *p, uint64_t *count)
{
    const uint64_t left = p->t->count - p->at;
    *count = left < p->most ? left : p->most;
    if (*count == 0)
        return NULL;
    p->at += *count;
    return probe_tensor_elements(p->t, p->at - *count, *count, p->scratch);
}

void probe_pieces_end(struct probe_pieces *p)
{
    if (p->scratch != p->few)
        ms_free(p->scratch);
}

/* ---- statistics --------------------------------------------------------------------- */

/* Statistics over the elements of a tensor; elements that do not fill their memory
 * without gaps are gathered block by block. */

/* Tells whether the elements fill their memory without gaps in any order, as those of a transposed
 * matrix do. Such memory is processed as it is, since the order does not matter. */
static bool is_dense(const struct probe_tensor *t)
{
    uint64_t dense = 1;
    for (uint32_t placed = 0; placed < t->ndim; placed++) {
        uint32_t d = 0;
        while (d < t->ndim && (t->shape[d] == 1 || t->stride[d] != dense))
            d++;
        if (d == t->ndim)
            break;
        dense *= t->shape[d];
    }
    return dense == t->count;
}

/* Reduces an expanded dimension, which repeats its one element, to that; returns how often what is left
 * stands in the tensor. A mask that is expanded to 10^10 elements would otherwise hold the training up for
 * minutes. */
static uint64_t take_repeats(struct probe_tensor *t)
{
    uint64_t times = 1;
    for (uint32_t d = 0; d < t->ndim && t->count != 0; d++) {
        if (t->stride[d] != 0 || t->shape[d] == 1)
            continue;
        times *= t->shape[d];
        t->count /= t->shape[d];
        t->shape[d] = 1;
    }
    return times;
}

bool probe_tensor_is_endless(const struct probe_tensor *t)
{
    enum { BYTES_MAX = 1 << 30 };
    struct probe_tensor once = *t;
    return !t->contiguous && t->count > BYTES_MAX / ms_dtype_size(t->dtype) &&
           take_repeats(&once) != 1;
}

static void add_pieces(const struct probe_tensor *t, struct ms_stats *s)
{
    struct probe_pieces pieces;
    uint64_t n;
    probe_pieces_start(&pieces, t);
    for (const void *p; (p = probe_pieces_next(&pieces, &n)) != NULL;)
        ms_stats_add(s, t->dtype, p, n);
    probe_pieces_end(&pieces);
}

void probe_tensor_stats(const struct probe_tensor *t, struct ms_stats *s)
{
    struct probe_tensor once = *t;
    uint64_t times = t->contiguous ? 1 : take_repeats(&once);
    ms_stats_init(s);
    if (t->contiguous || is_dense(&once))
        ms_stats_add(s, once.dtype, once.data, once.count);
    else
        add_pieces(&once, s);
    if (times != 1)
        ms_stats_repeat(s, times);
}
