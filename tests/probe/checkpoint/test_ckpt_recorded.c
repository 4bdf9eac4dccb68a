/* SPDX-License-Identifier: MIT
 *
 * ckpt_recorded: what the readers of checkpoints make of the files of their corpus and of everything that is
 * one byte away from them: entries, values and elements, or the error with its place.
 */
#include "probe/checkpoint/checkpoint.h"

#include "tests/support/recorded.h"

#include <inttypes.h>

static void put_entry(struct ms_buf *b, const struct probe_ckpt *c,
                      const struct probe_ckpt_entry *e)
{
    enum { MOST = 4096 };
    char shown[MS_STR_SHOWN];
    ms_buf_printf(b, "; %s role %d", ms_str_shown(shown, e->name), e->role);
    if (e->dtype == MS_DT_NONE) {
        ms_buf_puts(b, " ");
        probe_ckpt_value_text(e->value, b, 200);
        return;
    }
    ms_buf_printf(b, " %s", ms_dtype_torch(e->dtype));
    for (uint32_t d = 0; d < e->ndim; d++)
        ms_buf_printf(b, " %" PRIu64, e->shape[d]);
    if (e->count > MOST)
        return;
    const size_t n = (size_t)e->count * ms_dtype_size(e->dtype);
    char *scratch = recorded_guarded(1, n);
    const void *all = probe_ckpt_elements(c, e, 0, e->count, scratch);
    ms_buf_printf(b, " elements %08x", n != 0 ? ms_crc32(0, all, n) : 0);
}

static void answer(struct ms_buf *b, const char *p, size_t n)
{
    struct probe_ckpt *c;
    struct ms_err e = {0};
    if (probe_ckpt_parse(&c, "x", p, n, &e) != MS_OK) {
        ms_buf_printf(b, "%d %s", e.rc, e.msg);
        return;
    }
    ms_buf_puts(b, probe_ckpt_kind(c));
    for (size_t i = 0; i < probe_ckpt_count(c); i++)
        put_entry(b, c, probe_ckpt_entry(c, i));
    probe_ckpt_close(c);
}

START_TEST(files)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "ckpt", answer);
    recorded_check(&b, "ckpt");
}
END_TEST

RECORDED_MAIN("ckpt_recorded", files)
