/* SPDX-License-Identifier: MIT
 *
 * tensor_write: writes .npy and .pt as a stream. Elements are written piece by piece, so a tensor
 * of any strides is written without a copy. The CRC of a .pt is known only after the data: sizes
 * and CRC are in a data descriptor behind the data and in the central directory, as in torch's
 * files.
 */
#include "probe/base/mem.h"
#include "probe/tensor/tensor_int.h"

#include <stdio.h>

/* ---- elements ------------------------------------------------------------- */

/* Returns the type that a type is written as in .npy. */
static enum ms_dtype numpy_type(enum ms_dtype t)
{
    if (ms_dtype_numpy(t) != NULL)
        return t;
    return ms_dtype_kind(t) == MS_DTK_COMPLEX ? MS_DT_C64 : MS_DT_F32;
}

/* Converts n elements of a narrow type to float32, or of complex32 to complex64; exact for every
 * value. */
static void widen(enum ms_dtype t, const void *from, size_t n, float *to)
{
    enum { CHUNK = 256 };
    double v[CHUNK];
    const bool complex32 = t == MS_DT_C32;
    const enum ms_dtype part = complex32 ? MS_DT_F16 : t;
    const size_t parts = complex32 ? 2 * n : n;
    for (size_t at = 0; at < parts; at += CHUNK) {
        const size_t k = parts - at < CHUNK ? parts - at : CHUNK;
        ms_dtype_to_f64(part, (const char *)from + at * ms_dtype_size(part), k, v);
        for (size_t i = 0; i < k; i++)
            to[at + i] = (float)v[i];
    }
}

/* Returns the number of elements to write next: up to the end of a large page of the file. The page
 * cache then keeps the file in large pages, which are mapped at a fraction of the cost of small
 * ones, and a piece is still in the processor cache between CRC and write. */
static uint64_t direct_piece(const struct ms_out *o, size_t size)
{
    enum { LARGE_PAGE = 2 << 20 };
    return (LARGE_PAGE - ms_out_size(o) % LARGE_PAGE + size - 1) / size;
}

/* Writes all elements as type `as` and returns the CRC of the bytes written. */
static uint32_t write_elements(struct ms_out *o, const struct probe_tensor *t, enum ms_dtype as)
{
    enum { PIECE = 512, LARGEST = 16 }; /* the caller's stack may be small */
    char scratch[PIECE * LARGEST];
    float wide[2 * PIECE];
    uint32_t crc = 0;
    const bool direct = t->contiguous && as == t->dtype; /* written without the buffer */
    for (uint64_t at = 0, n; at < t->count; at += n) {
        const uint64_t left = t->count - at;
        n = direct ? direct_piece(o, ms_dtype_size(as)) : PIECE;
        n = left < n ? left : n;
        const void *p = probe_tensor_elements(t, at, n, scratch);
        if (as != t->dtype) {
            widen(t->dtype, p, n, wide);
            p = wide;
        }
        const size_t bytes = n * ms_dtype_size(as);
        crc = ms_crc32(crc, p, bytes);
        ms_out_write(o, p, bytes);
    }
    return crc;
}

/* ---- .npy ----------------------------------------------------------------- */

enum { NPY_ALIGN = 64, NPY_BEFORE_HEADER = 10 };

static void npy_header(struct ms_buf *b, const struct probe_tensor *t, enum ms_dtype as)
{
    ms_buf_printf(b, "{'descr': '%s', 'fortran_order': False, 'shape': (", ms_dtype_numpy(as));
    for (uint32_t d = 0; d < t->ndim; d++)
        ms_buf_printf(b, d == 0 ? "%llu" : ", %llu", (unsigned long long)t->shape[d]);
    ms_buf_puts(b, t->ndim == 1 ? ",), }" : "), }");
    while ((NPY_BEFORE_HEADER + b->n + 1) % NPY_ALIGN != 0 && b->bad == MS_OK)
        ms_buf_putc(b, ' ');
    ms_buf_putc(b, '\n');
}

static enum ms_rc write_npy(struct ms_out *o, const struct probe_tensor *t, struct ms_err *err)
{
    const enum ms_dtype as = numpy_type(t->dtype);
    struct ms_buf b = {.max = UINT8_MAX}; /* more than 32 sizes with a product of 63 bits need */
    npy_header(&b, t, as);
    const enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK) {
        const char start[NPY_BEFORE_HEADER] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)b.n, 0};
        ms_out_write(o, start, sizeof start);
        ms_out_write(o, b.p, b.n);
        write_elements(o, t, as);
    }
    ms_buf_free(&b);
    return rc;
}

/* ---- the pickle of a .pt -------------------------------------------------- */

/* Bytes of the pickle; memo is the number of memo entries so far, as every pickle writer counts
 * them. */
struct pickle {
    struct ms_buf b;
    unsigned memo;
};

static void remember(struct pickle *k)
{
    ms_buf_putc(&k->b, 'q');
    ms_buf_putc(&k->b, (char)k->memo++);
}

static void put_global(struct pickle *k, const char *module, const char *name)
{
    ms_buf_printf(&k->b, "c%s\n%s\n", module, name);
    remember(k);
}

static void put_le(struct pickle *k, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        ms_buf_putc(&k->b, (char)(v >> (8 * i)));
}

static void put_text(struct pickle *k, const char *z)
{
    const size_t n = strlen(z);
    ms_buf_putc(&k->b, 'X');
    put_le(k, n, 4);
    ms_buf_put(&k->b, z, n);
    remember(k);
}

/* Writes v, which is less than 2^63, with the shortest operation. */
static void put_int(struct pickle *k, uint64_t v)
{
    if (v <= UINT8_MAX) {
        ms_buf_putc(&k->b, 'K');
        put_le(k, v, 1);
    } else if (v <= UINT16_MAX) {
        ms_buf_putc(&k->b, 'M');
        put_le(k, v, 2);
    } else if (v <= INT32_MAX) {
        ms_buf_putc(&k->b, 'J');
        put_le(k, v, 4);
    } else {
        /* Signed: the highest bit of the last byte must be clear. */
        unsigned bytes = 4;
        while (bytes < 8 && v >> (8 * bytes - 1) != 0)
            bytes++;
        ms_buf_putc(&k->b, '\x8a');
        put_le(k, bytes, 1);
        put_le(k, v, bytes);
    }
}

static void put_sizes(struct pickle *k, const uint64_t *v, uint32_t n)
{
    if (n == 0) {
        ms_buf_putc(&k->b, ')');
        return;
    }
    if (n > 3)
        ms_buf_putc(&k->b, '(');
    for (uint32_t i = 0; i < n; i++)
        put_int(k, v[i]);
    ms_buf_putc(&k->b, n > 3 ? 't' : (char)(0x84 + n));
    remember(k);
}

/* Returns the storage class of a type; NULL for newer types, which have none. */
static const char *storage_class(enum ms_dtype t)
{
    static const char *const name[MS_DT_MAX] = {[MS_DT_F64] = "DoubleStorage",
                                                [MS_DT_F32] = "FloatStorage",
                                                [MS_DT_F16] = "HalfStorage",
                                                [MS_DT_BF16] = "BFloat16Storage",
                                                [MS_DT_I64] = "LongStorage",
                                                [MS_DT_I32] = "IntStorage",
                                                [MS_DT_I16] = "ShortStorage",
                                                [MS_DT_I8] = "CharStorage",
                                                [MS_DT_U8] = "ByteStorage",
                                                [MS_DT_BOOL] = "BoolStorage",
                                                [MS_DT_C128] = "ComplexDoubleStorage",
                                                [MS_DT_C64] = "ComplexFloatStorage"};
    return name[t];
}

static void put_storage(struct pickle *k, const struct probe_tensor *t)
{
    const char *class = storage_class(t->dtype);
    ms_buf_putc(&k->b, '(');
    put_text(k, "storage");
    if (class != NULL)
        put_global(k, "torch", class);
    else
        put_global(k, "torch.storage", "UntypedStorage");
    put_text(k, "0");
    put_text(k, "cpu");
    put_int(k, class != NULL ? t->count : t->count * ms_dtype_size(t->dtype));
    ms_buf_putc(&k->b, 't');
    remember(k);
    ms_buf_putc(&k->b, 'Q');
}

/* Writes the pickle of the tensor: contiguous, at the start of a storage of its own. */
static void put_tensor(struct pickle *k, const struct probe_tensor *t)
{
    const bool typed = storage_class(t->dtype) != NULL;
    uint64_t stride[PROBE_MAX_DIMS], step = 1;
    for (uint32_t d = t->ndim; d-- > 0;) {
        stride[d] = step;
        step *= t->shape[d] != 0 ? t->shape[d] : 1;
    }
    ms_buf_puts(&k->b, "\x80\x02");
    put_global(k, "torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    ms_buf_putc(&k->b, '(');
    put_storage(k, t);
    put_int(k, 0);
    put_sizes(k, t->shape, t->ndim);
    put_sizes(k, stride, t->ndim);
    ms_buf_putc(&k->b, '\x89'); /* requires_grad: False */
    put_global(k, "collections", "OrderedDict");
    ms_buf_puts(&k->b, ")R"); /* no backward hooks */
    remember(k);
    if (!typed)
        put_global(k, "torch", ms_dtype_torch(t->dtype));
    ms_buf_putc(&k->b, 't');
    remember(k);
    ms_buf_putc(&k->b, 'R');
    remember(k);
    ms_buf_putc(&k->b, '.');
}

/* ---- the zip of a .pt ----------------------------------------------------- */

enum { PT_ALIGN = 64, LOCAL_SIZE = 30, FLAG_UTF8 = 0x0800, FLAG_DESCRIPTOR = 0x0008 };

struct archive {
    struct ms_out *o;
    struct ms_str prefix;
    struct ms_buf directory;
    uint32_t members;
};

static void le_into(struct ms_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        ms_buf_putc(b, (char)(v >> (8 * i)));
}

static void le_out(struct ms_out *o, uint64_t v, unsigned bytes)
{
    char p[8];
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (char)(v >> (8 * i));
    ms_out_write(o, p, bytes);
}

static uint64_t at_most_32(uint64_t v)
{
    return v < UINT32_MAX ? v : UINT32_MAX;
}

/* Writes a local header, padded so that the data begins at a multiple of 64. */
static void put_local(struct archive *a, const char *name, bool empty)
{
    static const char pad[PT_ALIGN + 1] =
        "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ";
    const size_t name_n = a->prefix.n + strlen(name);
    const uint64_t end = ms_out_size(a->o) + LOCAL_SIZE + name_n + 4;
    const unsigned fill = (unsigned)(-end % PT_ALIGN);
    le_out(a->o, 0x04034b50, 4);
    le_out(a->o, 0, 2); /* version needed */
    le_out(a->o, empty ? FLAG_UTF8 : FLAG_UTF8 | FLAG_DESCRIPTOR, 2);
    le_out(a->o, 0, 6); /* method: stored; time, date */
    le_out(a->o, 0, 8); /* CRC and packed size: in the descriptor */
    le_out(a->o, 0, 4); /* size: there as well */
    le_out(a->o, name_n, 2);
    le_out(a->o, fill + 4, 2);
    ms_out_str(a->o, a->prefix);
    ms_out_puts(a->o, name);
    ms_out_write(a->o, "FB", 2);
    le_out(a->o, fill, 2);
    ms_out_write(a->o, pad, fill);
}

static void put_descriptor(struct archive *a, uint32_t crc, uint64_t size)
{
    const unsigned bytes = size < UINT32_MAX ? 4 : 8;
    le_out(a->o, 0x08074b50, 4);
    le_out(a->o, crc, 4);
    le_out(a->o, size, bytes);
    le_out(a->o, size, bytes);
}

/* Writes a directory entry; values that do not fit 32 bits follow in an extra field. */
static void put_entry(struct archive *a, const char *name, uint64_t begin, uint32_t crc,
                      uint64_t size)
{
    struct ms_buf *d = &a->directory;
    const bool large = size >= UINT32_MAX, far = begin >= UINT32_MAX;
    const unsigned extra = (large ? 16U : 0U) + (far ? 8U : 0U);
    le_into(d, 0x02014b50, 4);
    le_into(d, 0, 4); /* versions made by and needed */
    le_into(d, size == 0 ? FLAG_UTF8 : FLAG_UTF8 | FLAG_DESCRIPTOR, 2);
    le_into(d, 0, 6); /* method, time, date */
    le_into(d, crc, 4);
    le_into(d, at_most_32(size), 4);
    le_into(d, at_most_32(size), 4);
    le_into(d, a->prefix.n + strlen(name), 2);
    le_into(d, extra != 0 ? extra + 4 : 0, 2);
    le_into(d, 0, 8); /* comment, disk, attributes */
    le_into(d, 0, 2); /* attributes, second half */
    le_into(d, at_most_32(begin), 4);
    ms_buf_str(d, a->prefix);
    ms_buf_puts(d, name);
    if (extra != 0) {
        le_into(d, 1, 2);
        le_into(d, extra, 2);
        le_into(d, size, large ? 8 : 0);
        le_into(d, size, large ? 8 : 0);
        le_into(d, begin, far ? 8 : 0);
    }
    a->members++;
}

static void put_member(struct archive *a, const char *name, const void *p, size_t n)
{
    const uint64_t begin = ms_out_size(a->o);
    const uint32_t crc = ms_crc32(0, p, n);
    put_local(a, name, false);
    ms_out_write(a->o, p, n);
    put_descriptor(a, crc, n);
    put_entry(a, name, begin, crc, n);
}

static void put_data(struct archive *a, const struct probe_tensor *t)
{
    static const char name[] = "/data/0";
    const uint64_t begin = ms_out_size(a->o), size = t->count * ms_dtype_size(t->dtype);
    put_local(a, name, size == 0);
    const uint32_t crc = write_elements(a->o, t, t->dtype);
    if (size != 0)
        put_descriptor(a, crc, size);
    put_entry(a, name, begin, crc, size);
}

/* Writes the directory, the zip64 end record and locator, which torch always writes, and the end
 * record. */
static void put_end(struct archive *a)
{
    struct ms_out *o = a->o;
    const uint64_t begin = ms_out_size(o), size = a->directory.n, end64 = begin + size;
    ms_out_str(o, ms_buf_slice(&a->directory));
    le_out(o, 0x06064b50, 4);
    le_out(o, 44, 8);     /* bytes of this record that follow */
    le_out(o, 0x031e, 2); /* made by */
    le_out(o, 45, 2);     /* version needed */
    le_out(o, 0, 8);      /* disks */
    le_out(o, a->members, 8);
    le_out(o, a->members, 8);
    le_out(o, size, 8);
    le_out(o, begin, 8);
    le_out(o, 0x07064b50, 4);
    le_out(o, 0, 4);
    le_out(o, end64, 8);
    le_out(o, 1, 4); /* disks in all */
    le_out(o, 0x06054b50, 4);
    le_out(o, 0, 4);
    le_out(o, a->members, 2);
    le_out(o, a->members, 2);
    le_out(o, size, 4);
    le_out(o, at_most_32(begin), 4);
    le_out(o, 0, 2); /* no comment */
}

/* Returns the directory name inside the archive. As in torch, the name is that of the file without
 * its last extension, or "archive" for a name that is not plain text. */
static struct ms_str prefix_for(const char *path)
{
    const struct ms_str base = ms_path_base(path);
    const int64_t dot = ms_str_rfind(base, '.');
    const struct ms_str stem = dot >= 0 ? ms_str_sub(base, 0, (uint32_t)dot) : base;
    for (uint32_t i = 0; i < stem.n; i++) {
        if (stem.p[i] < ' ' || stem.p[i] > '~')
            return MS_STR("archive");
    }
    return stem.n != 0 ? stem : MS_STR("archive");
}

static enum ms_rc write_pt(struct ms_out *o, const char *path, const struct probe_tensor *t,
                           struct ms_err *err)
{
    struct pickle k = {.b = {.max = 4096}};
    struct archive a = {.o = o, .prefix = prefix_for(path), .directory = {.max = 4096}};
    put_tensor(&k, t);
    enum ms_rc rc = ms_buf_check(&k.b, err);
    if (rc == MS_OK) {
        put_member(&a, "/data.pkl", k.b.p, k.b.n);
        put_data(&a, t);
        put_member(&a, "/version", "3\n", 2);
        rc = ms_buf_check(&a.directory, err);
    }
    if (rc == MS_OK)
        put_end(&a);
    ms_buf_free(&k.b);
    ms_buf_free(&a.directory);
    return rc;
}

/* ---- files ---------------------------------------------------------------- */

static enum ms_rc write_tensor(const struct probe_tensor *t, const char *path,
                               enum probe_file_kind as, bool lazy, struct ms_err *err)
{
    if (ms_dtype_size(t->dtype) == 0 || (as != PROBE_FILE_NPY && as != PROBE_FILE_PT))
        return ms_fail(err, MS_E_ARG, "%s: a type or format that is not written", path);
    struct ms_out *o;
    MS_TRY(ms_out_create(&o, path, err));
    if (lazy)
        ms_out_lazy(o);
    const enum ms_rc rc = as == PROBE_FILE_NPY ? write_npy(o, t, err) : write_pt(o, path, t, err);
    if (rc == MS_OK)
        return ms_out_commit(o, err);
    ms_err_wrap(err, "%s", path);
    ms_out_abort(o);
    return rc;
}

enum ms_rc probe_tensor_write(const struct probe_tensor *t, const char *path,
                              enum probe_file_kind as, struct ms_err *err)
{
    return write_tensor(t, path, as, false, err);
}

enum ms_rc probe__tensor_write_lazily(const struct probe_tensor *t, const char *path,
                                      enum probe_file_kind as, struct ms_err *err)
{
    return write_tensor(t, path, as, true, err);
}

static enum ms_rc write_array(const char *path, enum probe_file_kind as, enum ms_dtype dtype,
                              const uint64_t *shape, uint32_t ndim, const void *data,
                              struct ms_err *err)
{
    struct probe_tensor t = {.kind = as, .contiguous = true, .data = data};
    const enum ms_rc rc = probe__tensor_set(&t, dtype, shape, ndim, err);
    if (rc == MS_OK)
        return probe_tensor_write(&t, path, as, err);
    ms_err_wrap(err, "%s", path);
    return rc;
}

enum ms_rc probe_npy_write(const char *path, enum ms_dtype t, const uint64_t *shape, uint32_t ndim,
                           const void *data, struct ms_err *err)
{
    return write_array(path, PROBE_FILE_NPY, t, shape, ndim, data, err);
}

enum ms_rc probe_pt_write(const char *path, enum ms_dtype t, const uint64_t *shape, uint32_t ndim,
                          const void *data, struct ms_err *err)
{
    return write_array(path, PROBE_FILE_PT, t, shape, ndim, data, err);
}
