/* SPDX-License-Identifier: MIT
 *
 * fuzz_quant_ckpt: a checkpoint of codes and scales; each of its tensors is taken for the weight in floats that
 * something in it belongs to.
 */
#include "compare/quantise/quant_ckpt.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 16 };

static void dequantise(const struct probe_ckpt *c, const struct probe_ckpt_entry *e)
{
    struct quant_values v;
    struct ms_err err = {0};
    if (e->dtype == MS_DT_NONE || e->count > MOST)
        return;
    if (quant_ckpt_dequantise(c, e, &v, &err) == MS_OK && v.v != NULL && v.count != e->count)
        __builtin_trap();
    quant_values_free(&v);
    /* A name without its ending is that of packed codes; a shape that they could have. */
    struct probe_ckpt_entry golden = *e;
    const int64_t dot = ms_str_rfind(e->name, '.');
    golden.name = ms_str_sub(e->name, 0, dot > 0 ? (uint32_t)dot : e->name.n);
    golden.ndim = 2;
    for (uint64_t factor = 1; factor <= 8; factor *= 2) {
        golden.shape[0] = e->ndim != 0 ? e->shape[0] : 1;
        golden.count = e->count * factor;
        golden.shape[1] = golden.shape[0] != 0 ? golden.count / golden.shape[0] : 0;
        if (golden.shape[0] * golden.shape[1] == golden.count &&
            quant_ckpt_dequantise(c, &golden, &v, &err) == MS_OK)
            quant_values_free(&v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct probe_ckpt *c;
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return 0;
    if (size != 0)
        memcpy(copy, data, size);
    if (probe_ckpt_parse(&c, "f", copy, size, NULL) == MS_OK) {
        for (size_t i = 0; i < probe_ckpt_count(c) && i < 64; i++)
            dequantise(c, probe_ckpt_entry(c, i));
        probe_ckpt_close(c);
    }
    free(copy);
    return 0;
}
