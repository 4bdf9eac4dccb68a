/* SPDX-License-Identifier: MIT */
#include "probe/tensor/tensor.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "tests/support/ptmake.h"

#include <math.h>

static struct ms_err error_of(const char *p, size_t n)
{
    /* Exactly as long as it is, so that a sanitizer sees a read past the end. */
    char *copy = calloc(n != 0 ? n : 1, 1);
    struct probe_tensor t;
    struct ms_err e = {0};
    memcpy(copy, p, n);
    if (probe_tensor_parse(&t, "x", copy, n, &e) == MS_OK) {
        struct ms_stats s;
        probe_tensor_stats(&t, &s);
    }
    probe_tensor_close(&t);
    free(copy);
    return e;
}

/* ---- .npy -------------------------------------------------------------------- */

static void npy_make(struct ms_buf *b, const char *header, unsigned version, size_t data_n)
{
    ms_buf_put(b, "\x93NUMPY", 6);
    le(b, version, 2);
    le(b, strlen(header), version == 1 ? 2 : 4);
    ms_buf_puts(b, header);
    for (size_t i = 0; i < data_n; i++)
        ms_buf_putc(b, (char)i);
}

static const struct {
    const char *header;
    unsigned version;
    size_t data_n;
    const char *says;
} npys[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 1, 24, ""},
    {"{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}", 2, 24, ""},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}\n", 3, 24, ""},
    {"{'descr': '>i2', 'fortran_order': False, 'shape': (3,)}\n", 1, 6, ""},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': ()}\n", 1, 1, ""},
    {"{'descr': '<c16', 'fortran_order': False, 'shape': (0, 7)}\n", 1, 0, ""},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 1, 23, "23 bytes of data"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 1, 25, "describes 24"},
    {"{'descr': '<f4', 'fortran_order': False}", 1, 4, "is missing"},
    {"{}", 1, 4, "is missing"},
    {"{'descr': '<f4', 'descr': '<f4', 'shape': ()}", 1, 4, "a key twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", 1, 4, "an unknown key"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", 1, 8, "Python objects are not read"},
    {"{'descr': '<U3', 'fortran_order': False, 'shape': ()}", 1, 12, "text has no numbers"},
    {"{'descr': '|S3', 'fortran_order': False, 'shape': ()}", 1, 3, "text has no numbers"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': ()}", 1, 8, "this type is not read"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 1, 4, "structured type"},
    {"{'descr': 7, 'fortran_order': False, 'shape': ()}", 1, 4, "expected a quoted text"},
    {"{'descr': '<f4", 1, 4, "a text without end"},
    {"{'descr' '<f4'}", 1, 4, "expected ':'"},
    {"{'descr': '<f4' 'shape': ()}", 1, 4, "expected ',' or '}'"},
    {"{'fortran_order': 0, 'descr': '<f4', 'shape': ()}", 1, 4, "expected True or False"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", 1, 4, "expected '('"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 1, 4, "expected a size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", 1, 4, "expected ',' or ')'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}", 1, 4, "expected a size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", 1, 4, "expected a size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 1, 4,
     "expected a size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 1, 4,
     "does not fit"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}", 1, 0,
     "does not fit"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1,1)}",
     1, 4, "too many dimensions"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1)}",
     1, 4, ""},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 9223372036854775807)}", 1, 0, ""},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 9223372036854775808)}", 1, 0,
     "does not fit"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", 1, 4, "expected ',' or ')'"},
    {"{'descr': '<f4", 2, 4, "a text without end"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 1, 4, "something after '}'"},
    {"[1, 2]", 1, 4, "expected '{'"},
    {"", 1, 4, "expected '{'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, 4, "format version 4"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 0, 4, "format version 0"},
};

START_TEST(npy_headers_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof npys / sizeof *npys; i++) {
        struct ms_buf b = {.max = 1 << 20};
        npy_make(&b, npys[i].header, npys[i].version, npys[i].data_n);
        const struct ms_err e = error_of(b.p, b.n);
        if (npys[i].says[0] == '\0')
            ck_assert_msg(e.rc == MS_OK, "%s: %s", npys[i].header, e.msg);
        else
            ck_assert_msg(e.rc != MS_OK && strstr(e.msg, npys[i].says) != NULL,
                          "%s: expected '%s' in '%s'", npys[i].header, npys[i].says, e.msg);
        ms_buf_free(&b);
    }
}
END_TEST

START_TEST(npy_errors_name_the_byte)
{
    struct ms_buf b = {.max = 1 << 20};
    npy_make(&b, "{'descr': '<q9', 'fortran_order': False, 'shape': ()}", 1, 4);
    const struct ms_err e = error_of(b.p, b.n);
    ck_assert_str_eq(e.msg, "x: byte 21: descr '<q9': this type is not read");
    ms_buf_free(&b);
}
END_TEST

START_TEST(npy_headers_of_four_gigabytes_are_refused)
{
    static const char file[] = "\x93NUMPY\x02\0\xff\xff\xff\xff{'descr'";
    struct ms_err e = error_of(file, sizeof file - 1);
    ck_says(e, "a header of 4294967295 bytes");
    /* The longest one, and one byte more. */
    static char large[12 + (64 << 10) + 1 + 4];
    for (int more = 0; more < 2; more++) {
        const uint32_t n = (64 << 10) + (uint32_t)more;
        memset(large, ' ', sizeof large);
        memcpy(large, "\x93NUMPY\x02\0", 8);
        memcpy(large + 8, &n, 4);
        memcpy(large + 12, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 53);
        e = error_of(large, 12 + n + 4);
        ck_assert_int_eq(e.rc, more == 0 ? MS_OK : MS_E_LIMIT);
    }
    e = error_of("\x93NUMPY\x01\0\xff\xff{'descr'", 18);
    ck_says(e, "ends inside the header of 65535 bytes");
}
END_TEST

START_TEST(npy_fortran_order_and_big_endian_read_as_c_order)
{
    static const unsigned char data[] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
    struct ms_buf b = {.max = 1 << 20};
    struct probe_tensor t;
    struct ms_err e = {0};
    int16_t out[6];
    npy_make(&b, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 1, 0);
    ms_buf_put(&b, data, sizeof data);
    ck_ok(probe_tensor_parse(&t, "x", b.p, b.n, &e), e);
    ck_assert(!t.contiguous);
    ck_assert_ptr_eq(probe_tensor_elements(&t, 0, 6, out), out);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(out[i], i + 1);
    ck_assert_ptr_eq(probe_tensor_elements(&t, 4, 2, out), out);
    ck_assert_int_eq(out[0], 5);
    probe_tensor_close(&t);
    ms_buf_free(&b);
}
END_TEST

/* ---- ATB --------------------------------------------------------------------- */

#define ATB_HEAD "$Version=1.0\n$Object.Count=1\n$Object.Length=32\n"
#define ATB_END  "$End=1\n"
#define BYTES_32 "\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7"
#define ATB      ATB_HEAD "format=2\ndtype=0\ndims=2,4\n$Object.data=0,32\n" ATB_END BYTES_32

static const struct {
    struct ms_str file;
    const char *says;
} atbs[] = {
    {PK(ATB), ""},
    {PK(ATB_HEAD "format=0\ndtype=27\ndims=\n$Object.data=4,2\n" ATB_END BYTES_32), ""},
    {PK(ATB_HEAD "dtype=12\ndims=32\n$Object.weight=0,32\nlater=1\n" ATB_END BYTES_32), ""},
    {PK(ATB_HEAD "format=29\ndtype=0\ndims=2,4\n$Object.data=0,32\n" ATB_END BYTES_32),
     "format 29 orders the elements privately"},
    {PK(ATB_HEAD "format=2\ndtype=5\ndims=2,4\n$Object.data=0,32\n" ATB_END BYTES_32),
     "dtype 5 is not read"},
    {PK(ATB_HEAD "format=2\ndtype=99\ndims=2,4\n$Object.data=0,32\n" ATB_END BYTES_32),
     "dtype 99 is not read"},
    {PK(ATB_HEAD "format=2\ndtype=0\ndims=2,-4\n$Object.data=0,32\n" ATB_END BYTES_32),
     "dims is not a list"},
    {PK(ATB_HEAD "format=2\ndtype=0\ndims=2,,4\n$Object.data=0,32\n" ATB_END BYTES_32),
     "dims is not a list"},
    {PK(ATB_HEAD "format=2\ndtype=0\ndims=2,4,\n$Object.data=0,32\n" ATB_END BYTES_32),
     "dims is not a list"},
    {PK(ATB_HEAD "dtype=0\ndims=4294967296,4294967296\n$Object.data=0,32\n" ATB_END BYTES_32),
     "does not fit"},
    {PK(ATB_HEAD "dtype=0\ndims=2,3\n$Object.data=0,32\n" ATB_END BYTES_32),
     "32 bytes of data, but dims and dtype describe 24"},
    {PK(ATB_HEAD "dtype=0\ndims=0,4\n$Object.data=32,0\n" ATB_END BYTES_32), ""},
    {PK(ATB_HEAD "dtype=0\ndims=0,4\n$Object.data=33,0\n" ATB_END BYTES_32), "past the end"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n$Object.data=1,32\n" ATB_END BYTES_32), "past the end"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n$Object.data=0,33\n" ATB_END BYTES_32), "past the end"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n$Object.data=18446744073709551615,32\n" ATB_END BYTES_32),
     "past the end"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n$Object.data=0,18446744073709551615\n" ATB_END BYTES_32),
     "past the end"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n$Object.data=32\n" ATB_END BYTES_32), "OFFSET,LENGTH"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n$Object.a=0,32\n$Object.b=0,32\n" ATB_END BYTES_32),
     "a second object"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\ndata=../0_0/x.bin\n" ATB_END), "is a link to ../0_0/x.bin"},
    {PK(ATB_HEAD "dtype=0\n$Object.data=0,32\n" ATB_END BYTES_32), "is missing in the header"},
    {PK(ATB_HEAD "dims=2,4\n$Object.data=0,32\n" ATB_END BYTES_32), "is missing in the header"},
    {PK(ATB_HEAD "dtype=0\ndims=2,4\n" ATB_END BYTES_32), "is missing in the header"},
    {PK(ATB_HEAD "dtype=0\n=1\n"), "byte 55: expected a line NAME=VALUE"},
    {PK(ATB_HEAD "dtype=0\na=1\ndims=\n$Object.data=28,4\n" ATB_END BYTES_32), ""},
    {PK(ATB_HEAD "dtype=0\nnonsense\n"), "byte 55: expected a line NAME=VALUE"},
    {PK(ATB_HEAD "dtype=0\n"), "no line $End=1"},
};

START_TEST(atb_headers_are_read_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof atbs / sizeof *atbs; i++) {
        const struct ms_err e = error_of(atbs[i].file.p, atbs[i].file.n);
        if (atbs[i].says[0] == '\0')
            ck_assert_msg(e.rc == MS_OK, "case %zu: %s", i, e.msg);
        else
            ck_assert_msg(e.rc != MS_OK && strstr(e.msg, atbs[i].says) != NULL,
                          "case %zu: expected '%s' in '%s'", i, atbs[i].says, e.msg);
    }
}
END_TEST

START_TEST(an_atb_header_without_end_is_not_searched_for_long)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_puts(&b, "$Version=1.0\n");
    while (b.n < 70000)
        ms_buf_puts(&b, "name=value\n");
    ms_buf_puts(&b, "$End=1\n");
    const struct ms_err e = error_of(b.p, b.n);
    ck_assert_int_eq(e.rc, MS_E_FORMAT);
    ms_buf_free(&b);
}
END_TEST

/* ---- all kinds ----------------------------------------------------------------- */

START_TEST(truncated_anywhere_it_is_an_error)
{
    struct ms_buf npy = {.max = 1 << 20};
    npy_make(&npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 1, 24);
    const struct ms_str files[] = {ms_buf_slice(&npy), PK(ATB)};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(error_of(files[i].p, files[i].n).rc, MS_OK);
        for (size_t n = 0; n < files[i].n; n++)
            ck_assert_msg(error_of(files[i].p, n).rc != MS_OK, "file %zu, %zu bytes", i, n);
    }
    ms_buf_free(&npy);
}
END_TEST

START_TEST(what_is_no_tensor_file_says_so)
{
    char dir[64], path[128];
    struct probe_tensor t;
    struct ms_err e = error_of("", 0);
    ck_assert_str_eq(e.msg, "x: is empty; was the dump interrupted?");
    e = error_of("hello, world\n", 13);
    ck_assert_str_eq(e.msg, "x: byte 0: does not begin as .npy, .pt or ATB .bin does");
    char tar[512] = "sys_info";
    memcpy(tar + 257, "ustar", 5);
    e = error_of(tar, sizeof tar);
    ck_says(e, "is a tar archive, the form of torch 0.1");
    e = error_of(tar, 262);
    ck_says(e, "is a tar archive, the form of torch 0.1");
    e = error_of(tar, 261);
    ck_says(e, "does not begin as");
    ms_err_clear(&e);
    ck_assert_int_eq(probe_tensor_open(&t, scratch_dir(dir), SIZE_MAX, &e), MS_E_UNSUPPORTED);
    ck_says(e, "is a directory");
    snprintf(path, sizeof path, "%s/none.pt", dir);
    ms_err_clear(&e);
    ck_assert_int_eq(probe_tensor_open(&t, path, SIZE_MAX, &e), MS_E_NOTFOUND);
    ck_says(e, path);
    write_file(path, ATB, sizeof ATB - 1);
    ms_err_clear(&e);
    ck_assert_int_eq(probe_tensor_open(&t, path, 100, &e), MS_E_LIMIT);
    ck_assert_ptr_null(t.data);
    ms_err_clear(&e);
    ck_ok(probe_tensor_open(&t, path, SIZE_MAX, &e), e);
    ck_assert_int_eq(t.kind, PROBE_FILE_ATB);
    probe_tensor_close(&t);
    probe_tensor_close(&t);
    scratch_remove(dir);
}
END_TEST

/* Every sixth element of a storage turned inside out: slices, transposes, expansion. */
START_TEST(elements_come_in_c_order_whatever_the_strides)
{
    static const struct {
        uint32_t ndim;
        uint64_t shape[3], stride[3];
    } cases[] = {{1, {30}, {2}},
                 {2, {5, 6}, {1, 5}},
                 {2, {7, 4}, {8, 2}},
                 {3, {3, 1, 4}, {12, 0, 1}},
                 {3, {2, 3, 5}, {5, 0, 1}},
                 {3, {4, 3, 2}, {0, 1, 20}},
                 {2, {6, 1}, {10, 99}},
                 {2, {0, 4}, {3, 1}},
                 {0, {0}, {0}}};
    int32_t storage[64], gathered[64];
    for (int i = 0; i < 64; i++)
        storage[i] = i * 3 - 50;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct probe_tensor t = {.dtype = MS_DT_I32, .ndim = cases[k].ndim, .data = storage};
        t.count = 1;
        for (uint32_t d = 0; d < t.ndim; d++) {
            t.shape[d] = cases[k].shape[d];
            t.stride[d] = cases[k].stride[d];
            t.count *= t.shape[d];
        }
        t.contiguous = t.ndim == 0;
        int32_t want[64];
        for (uint64_t i = 0; i < t.count; i++) {
            uint64_t rest = i, at = 0;
            for (uint32_t d = t.ndim; d-- > 0; rest /= t.shape[d])
                at += rest % t.shape[d] * t.stride[d];
            want[i] = storage[at];
        }
        for (uint64_t from = 0; from < t.count; from++) {
            for (uint64_t n = 1; from + n <= t.count; n++) {
                const void *p = probe_tensor_elements(&t, from, n, gathered);
                ck_assert_mem_eq(p, want + from, n * 4);
            }
        }
        struct ms_stats got, plain;
        probe_tensor_stats(&t, &got);
        ms_stats_init(&plain);
        ms_stats_add(&plain, MS_DT_I32, want, t.count);
        ck_assert_mem_eq(&got, &plain, sizeof got);
    }
}
END_TEST

START_TEST(statistics_do_not_depend_on_strides)
{
    enum { ROWS = 130, COLUMNS = 97 };
    static float plain[ROWS * COLUMNS], turned[ROWS * COLUMNS];
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            plain[r * COLUMNS + c] = sinf((float)(r * COLUMNS + c));
            turned[c * ROWS + r] = plain[r * COLUMNS + c];
        }
    }
    const struct probe_tensor t = {.dtype = MS_DT_F32,
                                   .ndim = 2,
                                   .shape = {ROWS, COLUMNS},
                                   .stride = {1, ROWS},
                                   .count = sizeof plain / 4,
                                   .data = turned};
    struct ms_stats got, want;
    probe_tensor_stats(&t, &got);
    ms_stats_init(&want);
    ms_stats_add(&want, MS_DT_F32, plain, t.count);
    ck_assert_mem_eq(&got, &want, sizeof got);
}
END_TEST

/* Whoever writes elements asks first; a large tensor that is all there is written as it is. */
START_TEST(an_expanded_tensor_above_a_gibibyte_is_endless)
{
    static const float one = 1;
    struct probe_tensor t = {.dtype = MS_DT_F32,
                             .ndim = 2,
                             .shape = {1 << 14, 1 << 14},
                             .stride = {0, 0},
                             .count = UINT64_C(1) << 28,
                             .data = &one};
    ck_assert(!probe_tensor_is_endless(&t));
    t.shape[0]++;
    t.count += 1 << 14;
    ck_assert(probe_tensor_is_endless(&t));
    t.stride[0] = 1;
    ck_assert(probe_tensor_is_endless(&t)); /* one of its dimensions repeats */
    t.stride[0] = 1 << 15;
    t.stride[1] = 2;
    ck_assert(!probe_tensor_is_endless(&t));
}
END_TEST

/* ---- writing -------------------------------------------------------------------- */

typedef enum ms_rc (*writer)(const char *, enum ms_dtype, const uint64_t *, uint32_t, const void *,
                             struct ms_err *);

static void write_and_read(writer write, const char *path, enum ms_dtype t, uint32_t ndim,
                           const uint64_t *shape)
{
    static const char data[24 * 16] = "\x12\x34\x56\x38 some bytes, any will do for this";
    struct probe_tensor r;
    struct ms_err e = {0};
    double want[24], got[24];
    ck_ok(write(path, t, shape, ndim, data, &e), e);
    ck_ok(probe_tensor_open(&r, path, SIZE_MAX, &e), e);
    const bool npy = write == probe_npy_write;
    if (!npy || ms_dtype_numpy(t) != NULL)
        ck_assert_int_eq(r.dtype, t);
    ck_assert_uint_eq(r.ndim, ndim);
    for (uint32_t d = 0; d < ndim; d++)
        ck_assert_uint_eq(r.shape[d], shape[d]);
    ck_assert(r.contiguous);
    ms_dtype_to_f64(t, data, r.count, want);
    ms_dtype_to_f64(r.dtype, r.data, r.count, got);
    for (uint64_t i = 0; i < r.count; i++)
        ck_assert(got[i] == want[i] || (isnan(got[i]) && isnan(want[i])));
    /* Where data begins in a file decides whether it can be mapped aligned. */
    if (r.count != 0)
        ck_assert_uint_eq((size_t)((const char *)r.data - r.file.p) % 64, 0);
    ck_assert_int_eq(r.has_crc, !npy && r.count != 0);
    ck_ok(probe_tensor_verify(&r, &e), e);
    probe_tensor_close(&r);
}

/* Elements that are repeated are read once: this one has 2^45 of them. */
START_TEST(statistics_of_an_expanded_tensor_take_no_time)
{
    static const float six[6] = {1, -2, 0, INFINITY, NAN, 3};
    const struct probe_tensor t = {.dtype = MS_DT_F32,
                                   .ndim = 4,
                                   .shape = {UINT64_C(1) << 40, 2, 32, 3},
                                   .stride = {0, 3, 0, 1},
                                   .count = UINT64_C(6) << 45,
                                   .data = six};
    struct ms_stats got;
    probe_tensor_stats(&t, &got);
    ck_assert_uint_eq(got.count, t.count);
    ck_assert_uint_eq(got.nan, UINT64_C(1) << 45);
    ck_assert_uint_eq(got.pinf, UINT64_C(1) << 45);
    ck_assert_uint_eq(got.zero, UINT64_C(1) << 45);
    ck_assert_double_eq(got.min, -2);
    struct probe_tensor three = t;
    three.shape[1] = 1;
    three.count = UINT64_C(3) << 45;
    probe_tensor_stats(&three, &got);
    ck_assert_double_eq(ms_stats_mean(&got), -1.0 / 3);
    ck_assert_double_eq(ms_stats_norm(&got), sqrt(5 * 0x1p45));
    three.shape[3] = 0;
    three.count = 0;
    probe_tensor_stats(&three, &got);
    ck_assert_uint_eq(got.count, 0);
}
END_TEST

START_TEST(what_is_written_reads_back)
{
    static const struct {
        uint32_t ndim;
        uint64_t shape[5];
    } shapes[] = {{0, {0}}, {1, {1}}, {1, {23}}, {2, {4, 6}}, {2, {0, 3}}, {5, {2, 1, 3, 1, 4}}};
    char dir[64], npy[128], pt[128];
    snprintf(npy, sizeof npy, "%s/a/b.npy", scratch_dir(dir));
    snprintf(pt, sizeof pt, "%s/Functional.add.0.forward.output.0.pt", dir);
    for (int t = MS_DT_NONE + 1; t < MS_DT_MAX; t++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            write_and_read(probe_npy_write, npy, (enum ms_dtype)t, shapes[i].ndim, shapes[i].shape);
            write_and_read(probe_pt_write, pt, (enum ms_dtype)t, shapes[i].ndim, shapes[i].shape);
        }
    }
    scratch_remove(dir);
}
END_TEST

/* Length and CRC-32 of files that torch 1.13 wrote from the same numbers. */
START_TEST(pt_files_are_those_of_torch)
{
    static const float eight[8] = {0, 1, 2, 3, 4, 5, 6, 7}, scalar = 2.5F;
    static const struct {
        const char *name;
        enum ms_dtype t;
        uint32_t ndim;
        uint64_t shape[3];
        const void *data;
        size_t size;
        uint32_t crc;
    } cases[] = {
        {"Module.layers.0.fc.Linear.forward.0.input.0.pt",
         MS_DT_F32,
         2,
         {2, 4},
         eight,
         983,
         0x4ce580c8},
        {"empty.pt", MS_DT_F32, 2, {0, 3}, eight, 677, 0xeae7802c},
        {"s.pt", MS_DT_F32, 0, {0}, &scalar, 665, 0x91b6872f},
    };
    char dir[64], path[128];
    scratch_dir(dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ms_err e = {0};
        struct ms_file f;
        snprintf(path, sizeof path, "%s/%s", dir, cases[i].name);
        ck_ok(probe_pt_write(path, cases[i].t, cases[i].shape, cases[i].ndim, cases[i].data, &e),
              e);
        ck_ok(ms_file_map(&f, path, SIZE_MAX, &e), e);
        ck_assert_uint_eq(f.n, cases[i].size);
        ck_assert_uint_eq(ms_crc32(0, f.p, f.n), cases[i].crc);
        ms_file_unmap(&f);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(a_strided_tensor_is_written_in_c_order)
{
    static const int64_t storage[6] = {1, 4, 2, 5, 3, 6};
    const struct probe_tensor t = {.dtype = MS_DT_I64,
                                   .ndim = 2,
                                   .shape = {2, 3},
                                   .stride = {1, 2},
                                   .count = 6,
                                   .data = storage};
    char dir[64], path[128];
    scratch_dir(dir);
    for (int as = PROBE_FILE_NPY; as <= PROBE_FILE_PT; as++) {
        struct probe_tensor r;
        struct ms_err e = {0};
        snprintf(path, sizeof path, "%s/t%d", dir, as);
        ck_ok(probe_tensor_write(&t, path, (enum probe_file_kind)as, &e), e);
        ck_ok(probe_tensor_open(&r, path, SIZE_MAX, &e), e);
        ck_assert_int_eq(r.kind, as);
        ck_assert_mem_eq(r.data, ((const int64_t[]){1, 2, 3, 4, 5, 6}), 48);
        probe_tensor_close(&r);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(writing_what_cannot_be_written_fails)
{
    char dir[64], path[128];
    struct ms_err e = {0};
    const uint64_t huge[2] = {1ULL << 40, 1ULL << 40}, one[33] = {1};
    snprintf(path, sizeof path, "%s/x.npy", scratch_dir(dir));
    ck_assert_int_eq(probe_npy_write(path, MS_DT_NONE, one, 1, "", &e), MS_E_ARG);
    ms_err_clear(&e);
    ck_assert_int_eq(probe_npy_write(path, MS_DT_F32, huge, 2, "", &e), MS_E_FORMAT);
    ck_says(e, path);
    ms_err_clear(&e);
    ck_assert_int_eq(probe_pt_write(path, MS_DT_F32, one, 33, "", &e), MS_E_LIMIT);
    ms_err_clear(&e);
    ck_assert_int_eq(probe_npy_write(dir, MS_DT_U8, one, 1, "", &e), MS_E_ARG);
    ck_says(e, "is a directory");
    ck_assert_int_eq(ms_path_kind(path), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(writing_without_memory_leaves_nothing)
{
    char dir[64], path[128];
    const uint64_t shape[1] = {3};
    const size_t live = ms_mem_live();
    scratch_dir(dir);
    for (int pt = 0; pt < 2; pt++) {
        enum ms_rc rc = MS_E_NOMEM;
        snprintf(path, sizeof path, "%s/x%d", dir, pt);
        for (uint64_t n = 1; rc != MS_OK; n++) {
            struct ms_err e = {0};
            ck_assert_int_eq(ms_path_kind(path), MS_KIND_NONE);
            ms_mem_fail_at(n);
            rc = (pt ? probe_pt_write : probe_npy_write)(path, MS_DT_F32, shape, 1, "123456789012",
                                                         &e);
            /* The directory's name is needed only to make a finished file durable. */
            ck_assert(rc == MS_OK || rc == MS_E_NOMEM || rc == MS_E_LIMIT);
            ck_assert_uint_eq(ms_mem_live(), live);
        }
        ms_mem_fail_at(0);
    }
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("tensor", npy_headers_are_read_or_refused_with_the_reason, npy_errors_name_the_byte,
          npy_headers_of_four_gigabytes_are_refused,
          npy_fortran_order_and_big_endian_read_as_c_order,
          atb_headers_are_read_or_refused_with_the_reason,
          an_atb_header_without_end_is_not_searched_for_long, truncated_anywhere_it_is_an_error,
          what_is_no_tensor_file_says_so, elements_come_in_c_order_whatever_the_strides,
          statistics_do_not_depend_on_strides, an_expanded_tensor_above_a_gibibyte_is_endless,
          statistics_of_an_expanded_tensor_take_no_time, what_is_written_reads_back,
          pt_files_are_those_of_torch, a_strided_tensor_is_written_in_c_order,
          writing_what_cannot_be_written_fails, writing_without_memory_leaves_nothing)
