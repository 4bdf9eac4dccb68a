/* SPDX-License-Identifier: MIT
 *
 * atb_bin: reads the .bin files of ATB dumps: lines "name=value" up to "$End=1", then bytes.
 *
 *     $Version=1.0
 *     $Object.Count=1
 *     $Object.Length=32
 *     format=2
 *     dtype=0
 *     dims=2,4
 *     $Object.data=0,32          offset (from the byte after $End) and length
 *     $End=1
 */
#include "probe/tensor/tensor_int.h"

enum { MAX_HEADER = 64 << 10 };

struct header {
    enum ms_dtype dtype;
    uint64_t shape[PROBE_MAX_DIMS];
    uint32_t ndim;
    uint64_t offset, length;
    bool has_dims, has_object;
};

/* Maps a type code of the ACL run time, whose numbering is not that of its protobuf files. */
static enum ms_dtype dtype_of(uint64_t code)
{
    static const uint8_t of_code[] = {
        [0] = MS_DT_F32,  [1] = MS_DT_F16,   [2] = MS_DT_I8,   [3] = MS_DT_I32, [4] = MS_DT_U8,
        [6] = MS_DT_I16,  [7] = MS_DT_U16,   [8] = MS_DT_U32,  [9] = MS_DT_I64, [10] = MS_DT_U64,
        [11] = MS_DT_F64, [12] = MS_DT_BOOL, [27] = MS_DT_BF16};
    return code < sizeof of_code ? (enum ms_dtype)of_code[code] : MS_DT_NONE;
}

static enum ms_rc read_dtype(struct header *h, struct ms_str value, struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    uint64_t code;
    h->dtype = ms_str_u64(value, &code) ? dtype_of(code) : MS_DT_NONE;
    if (h->dtype == MS_DT_NONE)
        return ms_fail(err, MS_E_UNSUPPORTED, "dtype %s is not read", ms_str_shown(shown, value));
    return MS_OK;
}

/* Accepts NCHW, NHWC and ND, whose elements are in the order of the dimensions; all other formats
 * have a private order. */
static enum ms_rc check_format(struct ms_str value, struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    uint64_t code;
    if (!ms_str_u64(value, &code) || code > 2)
        return ms_fail(err, MS_E_UNSUPPORTED, "format %s orders the elements privately; dump in ND",
                       ms_str_shown(shown, value));
    return MS_OK;
}

static enum ms_rc read_dims(struct header *h, struct ms_str value, struct ms_err *err)
{
    struct ms_str part;
    h->has_dims = true;
    h->ndim = 0;
    if (value.n == 0)
        return MS_OK;
    while (ms_str_split(&value, ',', &part)) {
        if (h->ndim == PROBE_MAX_DIMS || !ms_str_u64(part, &h->shape[h->ndim]))
            return ms_fail(err, MS_E_FORMAT, "dims is not a list of at most %d sizes",
                           PROBE_MAX_DIMS);
        h->ndim++;
    }
    return MS_OK;
}

static enum ms_rc read_object(struct header *h, struct ms_str value, struct ms_err *err)
{
    struct ms_str offset;
    if (h->has_object)
        return ms_fail(err, MS_E_UNSUPPORTED, "a second object; one tensor is read");
    h->has_object = ms_str_split(&value, ',', &offset) && ms_str_u64(offset, &h->offset) &&
                    value.p != NULL && ms_str_u64(value, &h->length);
    if (!h->has_object)
        return ms_fail(err, MS_E_FORMAT, "expected OFFSET,LENGTH for the object");
    return MS_OK;
}

static enum ms_rc read_attribute(struct header *h, struct ms_str name, struct ms_str value,
                                 struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    if (ms_str_is(name, "dtype"))
        return read_dtype(h, value, err);
    if (ms_str_is(name, "format"))
        return check_format(value, err);
    if (ms_str_is(name, "dims"))
        return read_dims(h, value, err);
    if (ms_str_is(name, "data"))
        return ms_fail(err, MS_E_UNSUPPORTED, "is a link to %s; open that file",
                       ms_str_shown(shown, value));
    const bool object = ms_str_starts(name, MS_STR("$Object."));
    if (object && !ms_str_is(name, "$Object.Count") && !ms_str_is(name, "$Object.Length"))
        return read_object(h, value, err);
    return MS_OK;
}

/* Reads header lines up to the end mark; *at is then the byte behind the mark. */
static enum ms_rc read_header(struct header *h, const char *p, size_t n, size_t *at,
                              struct ms_err *err)
{
    const size_t limit = n < MAX_HEADER ? n : MAX_HEADER;
    for (*at = 0; *at < limit;) {
        const char *line = p + *at;
        const char *end = memchr(line, '\n', limit - *at);
        const struct ms_str whole = {line, end != NULL ? (uint32_t)(end - line) : 0};
        const int64_t equals = ms_str_find(whole, '=');
        if (equals <= 0)
            return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)*at, "expected a line NAME=VALUE");
        *at += whole.n + 1;
        const struct ms_str name = ms_str_sub(whole, 0, (uint32_t)equals);
        const struct ms_str value = ms_str_sub(whole, (uint32_t)equals + 1, whole.n);
        if (ms_str_is(name, "$End"))
            return MS_OK;
        MS_TRY(read_attribute(h, name, value, err));
    }
    return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)limit, "no line $End=1 in the header");
}

enum ms_rc probe__atb_read(struct probe_tensor *t, const char *p, size_t n, struct ms_err *err)
{
    struct header h = {0};
    size_t at;
    MS_TRY(read_header(&h, p, n, &at, err));
    if (h.dtype == MS_DT_NONE || !h.has_dims || !h.has_object)
        return ms_fail(err, MS_E_FORMAT, "dtype, dims or $Object.data is missing in the header");
    MS_TRY(probe__tensor_set(t, h.dtype, h.shape, h.ndim, err));
    if (h.offset > n - at || h.length > n - at - h.offset)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n,
                          "the object's %llu bytes reach past the end of the file",
                          (unsigned long long)h.length);
    if (h.length != t->count * ms_dtype_size(h.dtype))
        return ms_fail(err, MS_E_FORMAT, "%llu bytes of data, but dims and dtype describe %llu",
                       (unsigned long long)h.length,
                       (unsigned long long)(t->count * ms_dtype_size(h.dtype)));
    return probe__tensor_place(t, p + at + h.offset, h.length, 0, false, err);
}
