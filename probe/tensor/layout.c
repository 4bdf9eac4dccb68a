/* SPDX-License-Identifier: MIT
 *
 * tensor_layout: shape, strides and data of a tensor, checked against the bytes
 * that a file has for them.  Every reader of a format ends here.
 */
#include "probe/tensor_int.h"

#include "probe/base/mem.h"

/* A stride of 0 lets a small file describe a huge tensor.  Files themselves reach 10 GiB, so beyond
 * this only nonsense lies, and no pass over it would end in reasonable time. */
#define MAX_EXPANDED_BYTES (16ULL << 30)

const char *probe__shown(char buf[PROBE__SHOWN], struct ms_str s)
{
    const uint32_t n = s.n < PROBE__SHOWN ? s.n : PROBE__SHOWN - 1;
    for (uint32_t i = 0; i < n; i++)
        buf[i] = (char)(s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?');
    buf[n] = '\0';
    return buf;
}

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
    /* Sizes of 0 are left out of the product, so that strides fit as well. */
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

/* Distance from the first to the last element; false when it does not fit. */
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
