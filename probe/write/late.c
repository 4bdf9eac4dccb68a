/* SPDX-License-Identifier: MIT
 *
 * late: finds the placeholders in the text and fills them in.
 */
#include "probe/write/late.h"

#include "probe/base/num.h"
#include "probe/write/leaf_write.h"

enum { TEXT_MAX = 1 << 30, NUMBER_BITS = 4 };

bool probe__late_add(struct probe__late *l, struct ms_str record)
{
    l->text.max = TEXT_MAX;
    const size_t before = l->text.n;
    size_t *end = ms_vec_push(&l->ends);
    if (end == NULL)
        return false;
    ms_buf_str(&l->text, record);
    *end = l->text.n;
    if (l->text.bad == MS_OK)
        return true;
    l->text.bad = MS_OK;
    l->text.n = before;
    l->ends.n--;
    return false;
}

static uint64_t read_hex(const char *p, unsigned digits)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < digits; i++)
        v = v << 4 | (uint64_t)(p[i] <= '9' ? p[i] - '0' : p[i] - 'a' + 10);
    return v;
}

static void put_figure(struct ms_buf *b, const struct probe__figure *f)
{
    char digits[MS_NUM_MAX];
    switch (f->kind) {
    case PROBE_NUM_BOOL:
        ms_buf_puts(b, f->v != 0 ? "true" : "false");
        break;
    case PROBE_NUM_INT:
        ms_buf_put(b, digits, ms_num_i64(digits, f->i));
        break;
    case PROBE_NUM_FLOAT:
        ms_buf_put(b, digits, ms_num_f64(digits, f->v));
        break;
    default:
        ms_buf_puts(b, "null");
        break;
    }
}

static void fill_in(struct ms_buf *out, struct ms_str record, const struct probe__figure *f,
                    size_t n)
{
    static const struct probe__figure none = {.kind = PROBE_NUM_NULL};
    const char *p = record.p;
    const char *end = record.p + record.n;
    ms_buf_clear(out);
    for (const char *at; (at = memchr(p, PROBE__LATER, (size_t)(end - p))) != NULL;
         p = at + PROBE__LATER_BYTES) {
        uint64_t id = read_hex(at + 1, PROBE__LATER_BYTES - 1);
        uint64_t i = ((id >> NUMBER_BITS) - 1) * PROBE_STATS + (id & (PROBE_STATS - 1));
        ms_buf_put(out, p, (size_t)(at - p));
        put_figure(out, i < n ? &f[i] : &none);
    }
    ms_buf_put(out, p, (size_t)(end - p));
}

void probe__late_release(struct probe__late *l, const struct probe__figure *f, size_t nfigures,
                         probe__take_record take, void *ctx)
{
    struct ms_buf out = {.max = TEXT_MAX};
    size_t begin = 0;
    for (size_t i = 0; i < l->ends.n; i++) {
        fill_in(&out, (struct ms_str){l->text.p + begin, (uint32_t)(l->ends.p[i] - begin)}, f,
                nfigures);
        if (out.bad == MS_OK)
            take(ctx, ms_buf_slice(&out));
        out.bad = MS_OK;
        begin = l->ends.p[i];
    }
    l->ends.n = 0;
    ms_buf_clear(&l->text);
    ms_buf_free(&out);
}

void probe__late_free(struct probe__late *l)
{
    ms_buf_free(&l->text);
    ms_vec_free(&l->ends);
}
