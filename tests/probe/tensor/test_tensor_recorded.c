/* SPDX-License-Identifier: MIT
 *
 * tensor_recorded: what the readers of .npy, .pt and ATB .bin make of the files of their corpora and
 * of everything that is one byte away from them: the tensor, or the error with its place.
 */
#include "probe/tensor/tensor.h"

#include "tests/support/recorded.h"

#include <inttypes.h>

enum { ELEMENTS_MOST = 4096 };

static void put_tensor(struct ms_buf *b, const struct probe_tensor *t, const char *p)
{
    ms_buf_printf(b, "kind %d %s", t->kind, ms_dtype_torch(t->dtype));
    for (uint32_t d = 0; d < t->ndim; d++)
        ms_buf_printf(b, " %" PRIu64 ":%" PRIu64, t->shape[d], t->stride[d]);
    ms_buf_printf(b, ", %" PRIu64 " at %td%s%s", t->count,
                  t->data == NULL || t->copy != NULL ? -1 : (const char *)t->data - p,
                  t->contiguous ? ", contiguous" : "", t->copy != NULL ? ", copy" : "");
    if (t->has_crc)
        ms_buf_printf(b, ", crc %08x", t->crc);
    if (t->count > ELEMENTS_MOST)
        return;
    struct ms_stats s;
    char *scratch = recorded_guarded(1, t->count * ms_dtype_size(t->dtype));
    const void *all = probe_tensor_elements(t, 0, t->count, scratch);
    const uint32_t crc = t->count == 0 ? 0 : ms_crc32(0, all, t->count * ms_dtype_size(t->dtype));
    probe_tensor_stats(t, &s);
    ms_buf_printf(b, ", elements %08x, %" PRIu64 " zero %" PRIu64 " nan", crc, s.zero, s.nan);
}

static void answer(struct ms_buf *b, const char *p, size_t n)
{
    struct probe_tensor t;
    struct ms_err e = {0};
    if (probe_tensor_parse(&t, "x", p, n, &e) != MS_OK)
        ms_buf_printf(b, "%d %s", e.rc, e.msg);
    else
        put_tensor(b, &t, p);
    if (e.rc == MS_OK && probe_tensor_verify(&t, &e) != MS_OK)
        ms_buf_printf(b, ", %s", e.msg);
    probe_tensor_close(&t);
}

START_TEST(npy_files)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "npy", answer);
    recorded_check(&b, "npy");
}
END_TEST

START_TEST(pt_files)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "pt", answer);
    recorded_check(&b, "pt");
}
END_TEST

START_TEST(atb_files)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "atb", answer);
    recorded_check(&b, "atb");
}
END_TEST

RECORDED_MAIN("tensor_recorded", npy_files, pt_files, atb_files)
