/* SPDX-License-Identifier: MIT */
#include "probe/tensor/convert.h"

#include "tests/support/check.h"

#include <sys/stat.h>

static const float values[3] = {1, -2, 0.5F};
static const uint64_t shape[1] = {3};
static const uint16_t bf16[3] = {0x3f80, 0xc000, 0x3f00};

struct seen {
    unsigned failures, progress;
    char last[512];
};

static void on_failure(void *ctx, const struct ms_err *why)
{
    struct seen *s = ctx;
    s->failures++;
    snprintf(s->last, sizeof s->last, "%s", why->msg);
}

static void on_progress(void *ctx, uint64_t done)
{
    struct seen *s = ctx;
    s->progress++;
    ck_assert_uint_eq(done, s->progress);
}

static char dir[64];

/* A path below the scratch directory; four may be in use. */
static const char *in(const char *name)
{
    static char path[4][256];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void make_dump(void)
{
    struct ms_err e = {0};
    scratch_dir(dir);
    ck_ok(probe_pt_write(in("dump/rank0/a.0.forward.pt"), MS_DT_F32, shape, 1, values, &e), e);
    ck_ok(probe_pt_write(in("dump/rank0/b.pt"), MS_DT_BF16, shape, 1, bf16, &e), e);
    ck_ok(probe_npy_write(in("dump/rank1/deep/c.npy"), MS_DT_F32, shape, 1, values, &e), e);
    static const char atb[] = "$Version=1.0\ndtype=27\ndims=3\n$Object.data=0,6\n$End=1\n\x80\x3f"
                              "\x00\xc0\x00\x3f";
    write_file(in("dump/rank1/intensor0.bin"), atb, sizeof atb - 1);
    write_file(in("dump/rank1/weights.bin"), "raw", 3);
    write_file(in("dump/rank0/dump.json"), "{}", 2);
}

static struct probe_converted convert(const char *from, const char *to, enum probe_file_kind as,
                                      struct seen *seen)
{
    const struct probe_convert how = {.from = from,
                                      .to = to,
                                      .as = as,
                                      .on_failure = on_failure,
                                      .on_progress = on_progress,
                                      .ctx = seen};
    struct probe_converted out;
    struct ms_err e = {0};
    *seen = (struct seen){0};
    ck_ok(probe_convert(&how, &out, &e), e);
    ck_assert_uint_eq(seen->failures, out.failed);
    ck_assert_uint_eq(seen->progress, out.failed + out.written);
    return out;
}

static void holds(const char *path, enum probe_file_kind kind, enum ms_dtype dtype)
{
    struct probe_tensor t;
    struct ms_err e = {0};
    double v[3];
    ck_ok(probe_tensor_open(&t, path, SIZE_MAX, &e), e);
    ck_assert_int_eq(t.kind, kind);
    ck_assert_int_eq(t.dtype, dtype);
    ck_assert_uint_eq(t.count, 3);
    ms_dtype_to_f64(t.dtype, t.data, 3, v);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(v[i], (double)values[i]);
    probe_tensor_close(&t);
}

START_TEST(a_tree_keeps_its_names_and_directories)
{
    struct seen seen;
    make_dump();
    struct probe_converted c = convert(in("dump"), in("npy"), PROBE_FILE_NPY, &seen);
    ck_assert_uint_eq(c.written, 4);
    ck_assert_uint_eq(c.failed, 0);
    holds(in("npy/rank0/a.0.forward.npy"), PROBE_FILE_NPY, MS_DT_F32);
    holds(in("npy/rank0/b.npy"), PROBE_FILE_NPY, MS_DT_F32);
    holds(in("npy/rank1/deep/c.npy"), PROBE_FILE_NPY, MS_DT_F32);
    holds(in("npy/rank1/intensor0.npy"), PROBE_FILE_NPY, MS_DT_F32);
    ck_assert_int_eq(ms_path_kind(in("npy/rank1/weights.npy")), MS_KIND_NONE);
    c = convert(in("dump"), in("pt"), PROBE_FILE_PT, &seen);
    ck_assert_uint_eq(c.written, 4);
    holds(in("pt/rank0/b.pt"), PROBE_FILE_PT, MS_DT_BF16);
    holds(in("pt/rank1/intensor0.pt"), PROBE_FILE_PT, MS_DT_BF16);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_single_file_goes_into_the_directory)
{
    struct seen seen;
    make_dump();
    const struct probe_converted c =
        convert(in("dump/rank0/b.pt"), in("out/put"), PROBE_FILE_NPY, &seen);
    ck_assert_uint_eq(c.written, 1);
    holds(in("out/put/b.npy"), PROBE_FILE_NPY, MS_DT_F32);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_unreadable_file_is_named_and_the_rest_goes_on)
{
    struct seen seen;
    make_dump();
    write_file(in("dump/rank0/aa.pt"), "not a tensor", 12);
    const struct probe_converted c = convert(in("dump"), in("out"), PROBE_FILE_NPY, &seen);
    ck_assert_uint_eq(c.written, 4);
    ck_assert_uint_eq(c.failed, 1);
    char want[300];
    snprintf(want, sizeof want, "%s: byte 0: does not begin as", in("dump/rank0/aa.pt"));
    ck_assert_msg(strncmp(seen.last, want, strlen(want)) == 0, "%s", seen.last);
    ck_assert_int_eq(ms_path_kind(in("out/rank0/aa.npy")), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(damaged_data_is_not_converted)
{
    struct seen seen;
    make_dump();
    struct ms_file f;
    struct ms_err e = {0};
    ck_ok(ms_file_map(&f, in("dump/rank0/b.pt"), SIZE_MAX, &e), e);
    char copy[2048];
    ck_assert_uint_lt(f.n, sizeof copy);
    memcpy(copy, f.p, f.n);
    char *data = memmem(copy, f.n, bf16, sizeof bf16);
    ck_assert_ptr_nonnull(data);
    *data ^= 1;
    write_file(in("damaged.pt"), copy, f.n);
    ms_file_unmap(&f);
    const struct probe_converted c = convert(in("damaged.pt"), in("out"), PROBE_FILE_PT, &seen);
    ck_assert_uint_eq(c.failed, 1);
    ck_assert_ptr_nonnull(strstr(seen.last, "damaged.pt: the data has CRC-32"));
    scratch_remove(dir);
}
END_TEST

START_TEST(two_files_never_become_one)
{
    struct seen seen;
    struct ms_err e = {0};
    make_dump();
    ck_ok(probe_npy_write(in("dump/rank0/b.npy"), MS_DT_F32, shape, 1, values, &e), e);
    const struct probe_converted c = convert(in("dump"), in("out"), PROBE_FILE_PT, &seen);
    ck_assert_uint_eq(c.written, 4);
    ck_assert_uint_eq(c.failed, 1);
    ck_assert_ptr_nonnull(strstr(seen.last, "b.pt was already written from another file"));
    scratch_remove(dir);
}
END_TEST

START_TEST(the_output_is_no_input)
{
    struct seen seen;
    make_dump();
    for (int i = 0; i < 3; i++) {
        const struct probe_converted c = convert(in("dump"), in("dump/out"), PROBE_FILE_PT, &seen);
        ck_assert_uint_eq(c.written, 4);
    }
    ck_assert_int_eq(ms_path_kind(in("dump/out/out")), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(links_to_directories_are_not_followed)
{
    struct seen seen;
    make_dump();
    ck_assert_int_eq(symlink("..", in("dump/rank0/up")), 0);
    ck_assert_int_eq(symlink("b.pt", in("dump/rank0/linked.pt")), 0);
    const struct probe_converted c = convert(in("dump"), in("out"), PROBE_FILE_NPY, &seen);
    ck_assert_uint_eq(c.written, 5);
    holds(in("out/rank0/linked.npy"), PROBE_FILE_NPY, MS_DT_F32);
    scratch_remove(dir);
}
END_TEST

START_TEST(directories_have_a_limit_of_depth)
{
    char path[400];
    struct ms_err e = {0};
    struct probe_converted out;
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s", dir);
    for (int i = 0; i < 70; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/d");
    ck_ok(ms_mkdirs(path, &e), e);
    const struct probe_convert how = {.from = in("d"), .to = in("out"), .as = PROBE_FILE_PT};
    ck_assert_int_eq(probe_convert(&how, &out, &e), MS_E_LIMIT);
    ck_says(e, "deeper than 64");
    scratch_remove(dir);
}
END_TEST

START_TEST(nothing_to_convert_is_an_error)
{
    struct ms_err e = {0};
    struct probe_converted out;
    scratch_dir(dir);
    struct probe_convert how = {.from = in("none"), .to = in("out"), .as = PROBE_FILE_PT};
    ck_assert_int_eq(probe_convert(&how, &out, &e), MS_E_NOTFOUND);
    ck_says(e, "No such file or directory");
    ck_assert_int_eq(ms_path_kind(in("out")), MS_KIND_NONE);
    ms_err_clear(&e);
    ck_ok(ms_mkdirs(in("empty"), &e), e);
    how.from = in("empty");
    ms_err_clear(&e);
    ck_assert_int_eq(probe_convert(&how, &out, &e), MS_E_NOTFOUND);
    ck_says(e, "no tensor files");
    ck_assert_int_eq(ms_path_kind(in("out")), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_directory_is_made_for_what_goes_into_it)
{
    struct seen seen;
    struct ms_err e = {0};
    scratch_dir(dir);
    ck_ok(ms_mkdirs(in("bad"), &e), e);
    write_file(in("bad/first.pt"), "not a tensor", 12);
    struct probe_converted c = convert(in("bad"), in("out"), PROBE_FILE_NPY, &seen);
    ck_assert_uint_eq(c.failed, 1);
    c = convert(in("bad/first.pt"), in("out"), PROBE_FILE_NPY, &seen);
    ck_assert_uint_eq(c.failed, 1);
    ck_assert_int_eq(ms_path_kind(in("out")), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(no_place_for_the_output_is_said_once)
{
    struct seen seen = {0};
    struct ms_err e = {0};
    struct probe_converted out;
    make_dump();
    write_file(in("taken"), "", 0);
    const struct probe_convert how = {.from = in("dump"),
                                      .to = in("taken"),
                                      .as = PROBE_FILE_PT,
                                      .on_failure = on_failure,
                                      .ctx = &seen};
    ck_assert_int_ne(probe_convert(&how, &out, &e), MS_OK);
    ck_says(e, "taken");
    ck_assert_uint_eq(seen.failures, 0);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("convert", a_tree_keeps_its_names_and_directories, a_single_file_goes_into_the_directory,
          an_unreadable_file_is_named_and_the_rest_goes_on, damaged_data_is_not_converted,
          two_files_never_become_one, the_output_is_no_input, links_to_directories_are_not_followed,
          directories_have_a_limit_of_depth, nothing_to_convert_is_an_error,
          a_directory_is_made_for_what_goes_into_it, no_place_for_the_output_is_said_once)
