/* SPDX-License-Identifier: MIT
 *
 * fuzz_ckpt: what must hold for every checkpoint that is opened.
 */
#ifndef TESTS_SUPPORT_FUZZ_CKPT_H
#define TESTS_SUPPORT_FUZZ_CKPT_H

#include "probe/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

#define ckpt_must(cond)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Reads every element in pieces of odd sizes; a sanitizer sees a read past the end. */
static inline void fuzz_ckpt_entry(const struct probe_ckpt *c, const struct probe_ckpt_entry *e)
{
    static char scratch[1000 * 16], one[16];
    const size_t size = ms_dtype_size(e->dtype);
    ckpt_must(size != 0 && e->ndim <= PROBE_CKPT_DIMS);
    uint64_t count = 1;
    for (uint32_t d = 0; d < e->ndim; d++)
        count *= e->shape[d];
    ckpt_must(count == e->count);
    for (uint64_t at = 0; at < e->count && at < 20000; at += 777) {
        const uint64_t n = e->count - at < 777 ? e->count - at : 777;
        const char *p = probe_ckpt_elements(c, e, at, n, scratch);
        for (uint64_t i = 0; i < n; i += 97)
            ckpt_must(memcmp(p + i * size, probe_ckpt_elements(c, e, at + i, 1, one), size) == 0);
    }
    probe_ckpt_release(c, e);
}

static inline void fuzz_ckpt(struct probe_ckpt *c)
{
    struct ms_buf text = {.max = 1 << 20};
    for (size_t i = 0; i < probe_ckpt_count(c); i++) {
        const struct probe_ckpt_entry *e = probe_ckpt_entry(c, i);
        ckpt_must(probe_ckpt_find(c, e->name) == e);
        ms_buf_clear(&text);
        if (e->dtype == MS_DT_NONE)
            probe_ckpt_value_text(e->value, &text, 200);
        else
            fuzz_ckpt_entry(c, e);
    }
    ms_buf_free(&text);
    probe_ckpt_close(c);
}

#endif
