/* SPDX-License-Identifier: MIT
 *
 * The writers of .npy and .pt: drawn tensors of every type, shape and stride read back as they were
 * and have the bytes on record, also where a number of the pickle gets a longer form; entries of a
 * directory for members beyond 4 GiB, which no test can write, follow the specification of zip.
 */
#include "probe/base/le.h"
#include "probe/base/mem.h"
#include "probe/tensor/tensor_write.c"
#include "tests/support/closes.h"
#include "tests/support/recorded.h"

#include <inttypes.h>

enum { TENSORS = 300, BYTES_MAX = 1 << 17 };

static struct ms_err err;
static char dir[64];
static uint64_t state;

#define below(n) recorded_below(&state, (n))

static const char *at(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* ---- drawn tensors ------------------------------------------------------------------- */

static void draw_tensor(struct probe_tensor *t, char *data)
{
    static const uint64_t sizes[] = {1, 1, 2, 3, 5, 7, 16, 257};
    uint64_t shape[6], n = 1;
    const uint32_t ndim = below(6);
    enum ms_dtype type;
    do
        type = (enum ms_dtype)(1 + below(MS_DT_MAX - 1));
    while (ms_dtype_size(type) == 0);
    for (uint32_t d = 0; d < ndim; d++) {
        shape[d] = below(15) == 0 ? 0 : sizes[below(8)];
        n *= shape[d] != 0 ? shape[d] : 1;
        if (n * ms_dtype_size(type) > BYTES_MAX / 2)
            shape[d] = 1, n = 1;
    }
    n = 1;
    *t = (struct probe_tensor){.contiguous = true, .data = data};
    for (uint32_t d = 0; d < ndim; d++)
        if ((n *= shape[d] != 0 ? shape[d] : 1) * ms_dtype_size(type) > BYTES_MAX / 2)
            shape[d] = 1;
    ck_ok(probe__tensor_set(t, type, shape, ndim, &err), err);
    /* The axes in another order. */
    if (ndim >= 2 && below(3) == 0 && t->count != 0) {
        const uint32_t a = below(ndim), b = below(ndim);
        const uint64_t size = t->shape[a], stride = t->stride[a];
        t->shape[a] = t->shape[b];
        t->stride[a] = t->stride[b];
        t->shape[b] = size;
        t->stride[b] = stride;
        t->contiguous = probe__tensor_in_c_order(t);
    }
}

static void fill(char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (char)below(64); /* no NaN, whose bits need not stay when it is widened */
}

static uint32_t crc_of(const char *path, size_t *size)
{
    struct ms_file f;
    ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
    const uint32_t crc = ms_crc32(0, f.p, f.n);
    *size = f.n;
    ms_file_unmap(&f);
    return crc;
}

/* Each element as a double equals that of the original. */
static void check_elements(const struct probe_tensor *t, const struct probe_tensor *r)
{
    static char a[BYTES_MAX], b[BYTES_MAX];
    ck_assert_uint_eq(r->ndim, t->ndim);
    ck_assert_mem_eq(r->shape, t->shape, t->ndim * sizeof *t->shape);
    ck_assert_uint_eq(r->count, t->count);
    if (t->count == 0)
        return;
    const char *x = probe_tensor_elements(t, 0, t->count, a);
    const char *y = probe_tensor_elements(r, 0, r->count, b);
    if (r->dtype == t->dtype) {
        ck_assert_mem_eq(x, y, t->count * ms_dtype_size(t->dtype));
        return;
    }
    const bool is_complex = t->dtype == MS_DT_C32;
    const enum ms_dtype part = is_complex ? MS_DT_F16 : t->dtype;
    for (uint64_t i = 0; i < t->count * (is_complex ? 2 : 1); i++) {
        double v, w;
        ms_dtype_to_f64(part, x + i * ms_dtype_size(part), 1, &v);
        ms_dtype_to_f64(MS_DT_F32, y + i * 4, 1, &w);
        ck_assert_double_eq(v, w);
    }
}

START_TEST(drawn_tensors_read_back)
{
    struct ms_buf b = {.max = 1 << 20};
    scratch_dir(dir);
    for (unsigned seed = 0; seed < TENSORS; seed++) {
        struct probe_tensor t, r;
        char *data = recorded_guarded(0, BYTES_MAX);
        state = seed;
        fill(data, BYTES_MAX);
        draw_tensor(&t, data);
        /* The last element ends where nothing more can be read. */
        t.data = data + BYTES_MAX - t.count * ms_dtype_size(t.dtype);
        ms_buf_printf(&b, "%u: %s", seed, ms_dtype_torch(t.dtype));
        for (int as = PROBE_FILE_NPY; as <= PROBE_FILE_PT; as++) {
            size_t size;
            const char *path = at(as == PROBE_FILE_NPY ? "t.npy" : "t.pt");
            ck_ok((below(2) == 0 ? probe_tensor_write : probe__tensor_write_lazily)(
                      &t, path, (enum probe_file_kind)as, &err),
                  err);
            ck_ok(probe_tensor_open(&r, path, SIZE_MAX, &err), err);
            ck_ok(probe_tensor_verify(&r, &err), err);
            check_elements(&t, &r);
            probe_tensor_close(&r);
            const uint32_t crc = crc_of(path, &size);
            ms_buf_printf(&b, " %zu %08x", size, crc);
        }
        ms_buf_putc(&b, '\n');
    }
    scratch_remove(dir);
    recorded_check(&b, "tensors_written");
}
END_TEST

/* ---- numbers and names ------------------------------------------------------------------ */

/* A tensor without elements may have any sizes: each has the shortest operation of the pickle. */
START_TEST(sizes_of_every_length_are_written)
{
    static const struct {
        uint64_t v;
        const char *as;
        size_t n;
    } cases[] = {{0, "K\0", 2},
                 {255, "K\xff", 2},
                 {256, "M\0\1", 3},
                 {65535, "M\xff\xff", 3},
                 {65536, "J\0\0\1\0", 5},
                 {INT32_MAX, "J\xff\xff\xff\x7f", 5},
                 {(uint64_t)INT32_MAX + 1, "\x8a\5\0\0\0\x80\0", 7},
                 {UINT32_MAX, "\x8a\5\xff\xff\xff\xff\0", 7},
                 {(UINT64_C(1) << 39) - 1, "\x8a\5\xff\xff\xff\xff\x7f", 7},
                 {UINT64_C(1) << 39, "\x8a\6\0\0\0\0\x80\0", 8},
                 {(UINT64_C(1) << 55) - 1, "\x8a\7\xff\xff\xff\xff\xff\xff\x7f", 9},
                 {INT64_MAX, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pickle k = {.b = {.max = 100}};
        put_int(&k, cases[i].v);
        ck_assert_uint_eq(k.b.n, cases[i].n);
        ck_assert_mem_eq(k.b.p, cases[i].as, cases[i].n);
        ms_buf_free(&k.b);
    }
    scratch_dir(dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t shape[] = {cases[i].v / 8, 0};
        struct probe_tensor r;
        ck_ok(probe_pt_write(at("e.pt"), MS_DT_I8, shape, 2, "", &err), err);
        ck_ok(probe_tensor_open(&r, at("e.pt"), SIZE_MAX, &err), err);
        ck_assert_uint_eq(r.shape[0], cases[i].v / 8);
        probe_tensor_close(&r);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(the_folder_in_the_archive_is_the_name_of_the_file)
{
    static const struct {
        const char *path, *prefix;
    } cases[] = {{"/a/b.pt", "b"},
                 {"b.c.pt", "b.c"},
                 {"b", "b"},
                 {".pt", "archive"},
                 {"/a.b/", "a"},
                 {"a b~!.pt", "a b~!"},
                 {"a\x7f.pt", "archive"},
                 {"a\x1f.pt", "archive"},
                 {"\xc3\xa4.pt", "archive"},
                 {"~ .pt", "~ "},
                 {" .pt", " "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ms_str got = prefix_for(cases[i].path);
        ck_assert_msg(ms_str_is(got, cases[i].prefix), "%s: %.*s", cases[i].path, MS_STR_ARG(got));
    }
}
END_TEST

/* Data begins at a multiple of 64 whatever the length of the name; the padding has two forms of
 * length. */
START_TEST(data_is_aligned_after_every_name)
{
    struct ms_buf b = {.max = 1 << 20};
    scratch_dir(dir);
    for (size_t n = 1; n <= 70; n++) {
        char name[80];
        const uint64_t shape[] = {3};
        struct probe_tensor r;
        size_t size;
        memset(name, 'n', n);
        snprintf(name + n, sizeof name - n, ".pt");
        ck_ok(probe_pt_write(at(name), MS_DT_I32, shape, 1, "abcdefghijkl", &err), err);
        ck_ok(probe_tensor_open(&r, at(name), SIZE_MAX, &err), err);
        ck_assert_uint_eq((uintptr_t)r.data % 64, 0);
        ck_assert_mem_eq(r.data, "abcdefghijkl", 12);
        probe_tensor_close(&r);
        const uint32_t crc = crc_of(at(name), &size);
        ms_buf_printf(&b, "%zu: %zu %08x\n", n, size, crc);
    }
    scratch_remove(dir);
    recorded_check(&b, "names_of_pt");
}
END_TEST

/* A header of .npy with a multiple of 64 bytes, whatever the shape. */
START_TEST(headers_of_npy_are_padded)
{
    scratch_dir(dir);
    for (uint32_t ndim = 0; ndim <= PROBE_MAX_DIMS; ndim++) {
        uint64_t shape[PROBE_MAX_DIMS];
        struct probe_tensor r;
        struct ms_file f;
        for (uint32_t d = 0; d < ndim; d++)
            shape[d] = d % 7 == 6 ? 2 : 1;
        char data[64] = "";
        ck_ok(probe_npy_write(at("h.npy"), MS_DT_U8, shape, ndim, data, &err), err);
        ck_ok(ms_file_map(&f, at("h.npy"), SIZE_MAX, &err), err);
        const size_t header = probe__le16(f.p + 8);
        ck_assert_uint_eq((10 + header) % 64, 0);
        ck_assert_int_eq(f.p[9 + header], '\n');
        ck_assert_int_ne(f.p[9 + header - 63], '\n');
        ms_file_unmap(&f);
        ck_ok(probe_tensor_open(&r, at("h.npy"), SIZE_MAX, &err), err);
        ck_assert_uint_eq(r.ndim, ndim);
        ck_assert_mem_eq(r.shape, shape, ndim * sizeof *shape);
        probe_tensor_close(&r);
    }
    scratch_remove(dir);
}
END_TEST

/* Elements of each size that lie apart, the last of them where nothing more can be read, into memory
 * behind which nothing can be written. */
START_TEST(elements_apart_are_gathered_and_no_others)
{
    static const enum ms_dtype types[] = {MS_DT_U8, MS_DT_F16, MS_DT_F32, MS_DT_F64, MS_DT_C128};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t size = ms_dtype_size(types[i]);
        for (uint64_t n = 1; n < 9; n++) {
            for (uint64_t step = 1; step < 5; step++) {
                const size_t bytes = ((n - 1) * step + 1) * size;
                char *from = recorded_guarded(0, bytes), *to = recorded_guarded(1, n * size);
                state = n;
                fill(from, bytes);
                const struct probe_tensor t = {.dtype = types[i],
                                               .ndim = 1,
                                               .shape = {n},
                                               .stride = {step},
                                               .count = n,
                                               .data = from};
                ck_assert_ptr_eq(probe_tensor_elements(&t, 0, n, to), to);
                for (uint64_t k = 0; k < n; k++)
                    ck_assert_mem_eq(to + k * size, from + k * step * size, size);
            }
        }
    }
}
END_TEST

START_TEST(out_of_memory_leaves_no_file)
{
    static const uint64_t shape[] = {2, 3};
    const float data[6] = {1, 2, 3, 4, 5, 6};
    scratch_dir(dir);
    for (int as = PROBE_FILE_NPY; as <= PROBE_FILE_PT; as++) {
        uint64_t n = 1;
        for (bool failed = true; failed; n++) {
            struct ms_err e = {0};
            const size_t live = ms_mem_live();
            ms_mem_fail_at(n);
            const enum ms_rc rc = (as == PROBE_FILE_NPY ? probe_npy_write : probe_pt_write)(
                at("none"), MS_DT_F32, shape, 2, data, &e);
            failed = ms_mem_failed();
            ms_mem_fail_at(0);
            ck_assert_int_eq(rc == MS_OK, ms_path_kind(at("none")) != MS_KIND_NONE);
            if (rc != MS_OK) {
                ck_assert_int_eq(rc, MS_E_NOMEM);
                ck_says(e, "out of memory");
            }
            ck_assert_uint_eq(ms_mem_live(), live);
            unlink(at("none"));
        }
        ck_assert_uint_gt(n, 4);
    }
    scratch_remove(dir);
}
END_TEST

/* ---- beyond 4 GiB ------------------------------------------------------------------------ */

struct entry {
    uint64_t size, packed, begin;
    unsigned fields; /* numbers that are in the extra field */
};

/* Reads an entry of the directory as the specification of zip says. */
static struct entry read_entry(const char *p, size_t n)
{
    struct entry e = {
        .packed = probe__le32(p + 20), .size = probe__le32(p + 24), .begin = probe__le32(p + 42)};
    const size_t name = probe__le16(p + 28), extra = probe__le16(p + 30);
    ck_assert_uint_eq(probe__le32(p), 0x02014b50);
    ck_assert_uint_eq(n, 46 + name + extra);
    const char *x = p + 46 + name;
    if (extra == 0)
        return e;
    ck_assert_uint_eq(probe__le16(x), 1);
    ck_assert_uint_eq(probe__le16(x + 2), extra - 4);
    x += 4;
    if (e.size == UINT32_MAX)
        e.size = probe__le64(x), x += 8, e.fields++;
    if (e.packed == UINT32_MAX)
        e.packed = probe__le64(x), x += 8, e.fields++;
    if (e.begin == UINT32_MAX)
        e.begin = probe__le64(x), x += 8, e.fields++;
    ck_assert_ptr_eq(x, p + n);
    return e;
}

START_TEST(entries_beyond_4_gib_have_their_numbers_behind)
{
    static const uint64_t numbers[] = {
        0, 1, UINT32_MAX - 1, UINT32_MAX, UINT32_MAX + 1ULL, UINT64_C(0x123456789a)};
    for (size_t i = 0; i < 36; i++) {
        const uint64_t size = numbers[i % 6], begin = numbers[i / 6];
        struct archive a = {.prefix = MS_STR("x"), .directory = {.max = 4096}};
        put_entry(&a, "/data/0", begin, 0xabcd, size);
        const struct entry e = read_entry(a.directory.p, a.directory.n);
        ck_assert_uint_eq(e.size, size);
        ck_assert_uint_eq(e.packed, size);
        ck_assert_uint_eq(e.begin, begin);
        ck_assert_uint_eq(e.fields,
                          (size >= UINT32_MAX ? 2U : 0U) + (begin >= UINT32_MAX ? 1U : 0U));
        ck_assert_uint_eq(probe__le16(a.directory.p + 8), size == 0 ? 0x800 : 0x808);
        ck_assert_uint_eq(probe__le32(a.directory.p + 16), 0xabcd);
        ck_assert_uint_eq(a.members, 1);
        ms_buf_free(&a.directory);
    }
}
END_TEST

START_TEST(descriptors_beyond_4_gib_have_long_sizes)
{
    static const uint64_t sizes[] = {7, UINT32_MAX - 1, UINT32_MAX, UINT64_C(0x123456789a)};
    scratch_dir(dir);
    for (size_t i = 0; i < 4; i++) {
        struct archive a = {.prefix = MS_STR("x")};
        struct ms_file f;
        const bool is_long = sizes[i] >= UINT32_MAX;
        ck_ok(ms_out_create(&a.o, at("d"), &err), err);
        put_descriptor(&a, 0x1234, sizes[i]);
        ck_ok(ms_out_commit(a.o, &err), err);
        ck_ok(ms_file_map(&f, at("d"), SIZE_MAX, &err), err);
        ck_assert_uint_eq(f.n, is_long ? 24 : 16);
        ck_assert_uint_eq(probe__le32(f.p), 0x08074b50);
        ck_assert_uint_eq(probe__le32(f.p + 4), 0x1234);
        for (int k = 0; k < 2; k++)
            ck_assert_uint_eq(is_long ? probe__le64(f.p + 8 + 8 * k) : probe__le32(f.p + 8 + 4 * k),
                              sizes[i]);
        ms_file_unmap(&f);
    }
    scratch_remove(dir);
}
END_TEST

/* ---- pieces -------------------------------------------------------------------------------- */

/* Contiguous data is written up to the end of a large page of the file. */
START_TEST(large_tensors_are_written_in_pieces)
{
    const size_t n = (2 << 20) / 4 * 2 + 5;
    float *data = malloc(n * sizeof *data);
    const uint64_t shape[] = {n};
    struct probe_tensor r;
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)i;
    scratch_dir(dir);
    ck_ok(probe_pt_write(at("large.pt"), MS_DT_F32, shape, 1, data, &err), err);
    ck_ok(probe_tensor_open(&r, at("large.pt"), SIZE_MAX, &err), err);
    ck_ok(probe_tensor_verify(&r, &err), err);
    ck_assert_mem_eq(r.data, data, n * sizeof *data);
    probe_tensor_close(&r);
    free(data);
    struct ms_out *o;
    ck_ok(ms_out_create(&o, at("pieces"), &err), err);
    for (size_t size = 1; size <= 16; size *= 2) {
        const uint64_t piece = direct_piece(o, size), end = ms_out_size(o) + piece * size;
        ck_assert_uint_lt(end % (2 << 20), size); /* the first element that ends behind the page */
        ck_assert_uint_ge(piece, 1);
        ck_assert_uint_le(piece * size, (2 << 20) + size);
        ms_out_write(o, "0123456789abcdef0", 17);
    }
    ms_out_abort(o);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_has_no_type_or_place_is_not_written)
{
    const struct probe_tensor t = {.dtype = MS_DT_F32, .count = 0, .contiguous = true};
    struct ms_err e = {0};
    scratch_dir(dir);
    ck_assert_int_eq(probe_tensor_write(&t, at("x"), PROBE_FILE_ATB, &e), MS_E_ARG);
    ck_says(e, "a type or format that is not written");
    ms_err_clear(&e);
    struct probe_tensor none = {.dtype = MS_DT_F32, .ndim = PROBE_MAX_DIMS, .contiguous = true};
    ck_ok(probe_tensor_write(&none, at("zero"), PROBE_FILE_PT, &err), err);
    ck_assert_int_ne(probe_tensor_write(&t, at("zero/under.pt"), PROBE_FILE_PT, &e), MS_OK);
    scratch_remove(dir);
}
END_TEST

RECORDED_MAIN_AROUND(count_open_files, ck_all_closed, "tensor_write", drawn_tensors_read_back,
                     sizes_of_every_length_are_written,
                     the_folder_in_the_archive_is_the_name_of_the_file,
                     data_is_aligned_after_every_name, headers_of_npy_are_padded,
                     elements_apart_are_gathered_and_no_others, out_of_memory_leaves_no_file,
                     entries_beyond_4_gib_have_their_numbers_behind,
                     descriptors_beyond_4_gib_have_long_sizes, large_tensors_are_written_in_pieces,
                     what_has_no_type_or_place_is_not_written)
