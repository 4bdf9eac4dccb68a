/* SPDX-License-Identifier: MIT
 *
 * safetensors: a length, a JSON header with the place of each tensor, and the tensors' bytes.
 *
 *     u64 n │ {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} │ bytes
 */
#include "probe/base/jread.h"
#include "probe/base/le.h"
#include "probe/checkpoint/checkpoint_int.h"

enum { MAX_HEADER = 100 << 20 }; /* the limit of the format itself */

struct header {
    struct probe_ckpt *c;
    const struct ckpt_file *f;
    const char *data; /* behind the header */
    uint64_t bytes;   /* there */
};

/* A tensor's member of the header. */
struct place {
    enum ms_dtype dtype;
    uint64_t shape[PROBE_CKPT_DIMS], offset[2];
    uint32_t ndim, offsets;
};

static const struct {
    const char *name;
    enum ms_dtype dtype;
} types[] = {{"F64", MS_DT_F64},        {"F32", MS_DT_F32},        {"F16", MS_DT_F16},
             {"BF16", MS_DT_BF16},      {"I64", MS_DT_I64},        {"I32", MS_DT_I32},
             {"I16", MS_DT_I16},        {"I8", MS_DT_I8},          {"U64", MS_DT_U64},
             {"U32", MS_DT_U32},        {"U16", MS_DT_U16},        {"U8", MS_DT_U8},
             {"BOOL", MS_DT_BOOL},      {"F8_E5M2", MS_DT_F8E5M2}, {"F8_E4M3", MS_DT_F8E4M3},
             {"F8_E8M0", MS_DT_F8E8M0}, {"C64", MS_DT_C64}};

bool ckpt__is_safetensors(const char *p, size_t n)
{
    return n > 9 && probe__le64(p) <= MAX_HEADER && p[8] == '{';
}

static enum ms_rc read_numbers(struct ms_jread *r, uint64_t *out, uint32_t *n, uint32_t most,
                               struct ms_err *err)
{
    *n = 0;
    if (ms_jread_next(r) != MS_J_ARR)
        return ms_jread_reject(r, err, "expected a list of numbers");
    for (;;) {
        const enum ms_jtok tok = ms_jread_next(r);
        int64_t v;
        if (tok == MS_J_ARR_END)
            return MS_OK;
        if (tok != MS_J_NUM || !ms_jread_i64(r, &v) || v < 0)
            return ms_jread_reject(r, err, "expected a number from 0 on");
        if (*n == most)
            return ms_jread_reject(r, err, "more than %u numbers", most);
        out[(*n)++] = (uint64_t)v;
    }
}

static enum ms_rc read_type(struct ms_jread *r, enum ms_dtype *dtype, struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    if (ms_jread_next(r) != MS_J_STR)
        return ms_jread_reject(r, err, "expected the name of a type");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (ms_str_is(r->text, types[i].name)) {
            *dtype = types[i].dtype;
            return MS_OK;
        }
    }
    return ms_jread_reject(r, err, "type %s is not known", ms_str_shown(shown, r->text));
}

static enum ms_rc read_place(struct ms_jread *r, struct place *at, struct ms_err *err)
{
    uint32_t n = 0;
    if (ms_jread_next(r) != MS_J_OBJ)
        return ms_jread_reject(r, err, "expected the object of a tensor");
    for (;;) {
        enum ms_jtok tok = ms_jread_next(r);
        if (tok == MS_J_OBJ_END)
            break;
        if (tok != MS_J_KEY)
            return ms_jread_reject(r, err, "expected a key");
        if (ms_str_is(r->text, "dtype"))
            MS_TRY(read_type(r, &at->dtype, err));
        else if (ms_str_is(r->text, "shape"))
            MS_TRY(read_numbers(r, at->shape, &at->ndim, PROBE_CKPT_DIMS, err));
        else if (ms_str_is(r->text, "data_offsets"))
            MS_TRY(read_numbers(r, at->offset, &n, 2, err));
        else if (ms_jread_skip(r, tok) == MS_J_ERR)
            return ms_jread_fail(r, err);
    }
    at->offsets = n;
    return at->dtype != MS_DT_NONE && n == 2
               ? MS_OK
               : ms_jread_reject(r, err, "a tensor without dtype or data_offsets");
}

static enum ms_rc add_place(struct header *h, struct ms_jread *r, struct ms_str name,
                            const struct place *at, struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    if (at->offset[0] > at->offset[1] || at->offset[1] > h->bytes)
        return ms_jread_reject(
            r, err, "%s is said to lie in bytes %llu to %llu of %llu; the file is cut short",
            ms_str_shown(shown, name), (unsigned long long)at->offset[0],
            (unsigned long long)at->offset[1], (unsigned long long)h->bytes);
    MS_TRY(ckpt__add_plain(h->c, name, at->dtype, at->shape, at->ndim, h->data + at->offset[0],
                           h->f, err));
    const struct probe_ckpt_entry *e = &h->c->entries.p[h->c->entries.n - 1];
    if (e->count * ms_dtype_size(at->dtype) != at->offset[1] - at->offset[0])
        return ms_jread_reject(r, err, "%s has %llu bytes but its shape says %llu",
                               ms_str_shown(shown, name),
                               (unsigned long long)(at->offset[1] - at->offset[0]),
                               (unsigned long long)(e->count * ms_dtype_size(at->dtype)));
    return MS_OK;
}

static enum ms_rc read_member(void *of, struct ms_jread *r, struct ms_buf *scratch,
                              struct ms_err *err)
{
    struct header *h = of;
    struct ms_str name;
    struct place at = {0};
    MS_TRY(ms_jread_text(r, scratch, &name, err));
    if (ms_str_is(name, "__metadata__"))
        return ms_jread_skip(r, MS_J_KEY) != MS_J_ERR ? MS_OK : ms_jread_fail(r, err);
    name = ms_arena_str(h->c->arena, name);
    if (name.p == NULL)
        return ms_arena_fail(h->c->arena, err);
    MS_TRY(read_place(r, &at, err));
    return add_place(h, r, name, &at, err);
}

enum ms_rc ckpt__safetensors_read(struct probe_ckpt *c, const struct ckpt_file *f, const char *p,
                                  size_t n, struct ms_err *err)
{
    struct ms_jread r;
    if (n < 8)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n, "ends before its header");
    const uint64_t size = probe__le64(p);
    if (size > MAX_HEADER || size > n - 8)
        return ms_fail_at(err, MS_E_FORMAT, 0, 0,
                          "a header of %llu bytes in a file of %zu; the file is cut short, or no "
                          "safetensors",
                          (unsigned long long)size, n);
    struct header h = {.c = c, .f = f, .data = p + 8 + size, .bytes = n - 8 - size};
    ms_jread_init(&r, p + 8, (size_t)size, 0);
    r.file = p;
    return ms_jread_members(&r, "the header", read_member, &h, err);
}
