/* SPDX-License-Identifier: MIT
 *
 * fuzz_tensor: what must hold for every tensor file that is accepted, shared by
 * the targets of the formats.
 */
#ifndef TESTS_SUPPORT_FUZZ_TENSOR_H
#define TESTS_SUPPORT_FUZZ_TENSOR_H

#include "probe/tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { FUZZ_MOST = 20000 }; /* elements that are looked at one by one */

/* Element i by its indices, without the code under test. */
static inline const char *fuzz_element(const struct probe_tensor *t, uint64_t i)
{
    uint64_t at = 0;
    for (uint32_t d = t->ndim; d-- > 0; i /= t->shape[d])
        at += i % t->shape[d] * t->stride[d];
    return (const char *)t->data + at * ms_dtype_size(t->dtype);
}

static inline void fuzz_statistics(const struct probe_tensor *t)
{
    struct ms_stats s;
    uint64_t nan = 0, zero = 0;
    double min = (double)INFINITY, max = (double)-INFINITY;
    probe_tensor_stats(t, &s);
    for (uint64_t i = 0; i < t->count; i++) {
        double v;
        ms_dtype_to_f64(t->dtype, fuzz_element(t, i), 1, &v);
        nan += isnan(v) != 0;
        zero += v == 0;
        min = v < min ? v : min;
        max = v > max ? v : max;
    }
    must(s.count == t->count && s.nan == nan && s.zero == zero);
    must(s.min == min && s.max == max);
}

static inline void fuzz_elements(const struct probe_tensor *t)
{
    static char scratch[FUZZ_MOST * 16];
    const size_t size = ms_dtype_size(t->dtype);
    const char *all = probe_tensor_elements(t, 0, t->count, scratch);
    for (uint64_t i = 0; i < t->count; i++)
        must(memcmp(all + i * size, fuzz_element(t, i), size) == 0);
}

/* Written as a .pt it reads back equal. */
static inline void fuzz_write(const struct probe_tensor *t)
{
    static char path[64], all[FUZZ_MOST * 16];
    struct probe_tensor r;
    struct ms_err e = {0};
    snprintf(path, sizeof path, "/tmp/msprobe-fuzz-%d.pt", (int)getpid());
    must(probe_tensor_write(t, path, PROBE_FILE_PT, &e) == MS_OK);
    must(probe_tensor_open(&r, path, SIZE_MAX, &e) == MS_OK);
    must(r.dtype == t->dtype && r.ndim == t->ndim && r.count == t->count);
    must(memcmp(r.shape, t->shape, t->ndim * sizeof *t->shape) == 0);
    must(r.contiguous && probe_tensor_verify(&r, &e) == MS_OK);
    const void *want = probe_tensor_elements(t, 0, t->count, all);
    must(t->count == 0 || memcmp(r.data, want, t->count * ms_dtype_size(t->dtype)) == 0);
    probe_tensor_close(&r);
    must(unlink(path) == 0);
}

static inline int fuzz_tensor(const uint8_t *data, size_t size)
{
    struct probe_tensor t;
    struct ms_err e = {0};
    const enum ms_rc rc = probe_tensor_parse(&t, "f", data, size, &e);
    must((rc == MS_OK) == (e.rc == MS_OK));
    if (rc != MS_OK) {
        must(strncmp(e.msg, "f: ", 3) == 0);
        for (const char *c = e.msg; *c != '\0'; c++)
            must(*c >= ' ' && *c <= '~');
        return 0;
    }
    must(t.ndim <= PROBE_MAX_DIMS && ms_dtype_size(t.dtype) != 0);
    if (t.count <= FUZZ_MOST) {
        fuzz_elements(&t);
        fuzz_statistics(&t);
        if (size % 8 == 0) /* a file takes far longer than all else */
            fuzz_write(&t);
    }
    probe_tensor_close(&t);
    return 0;
}

#endif
