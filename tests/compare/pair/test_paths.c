/* SPDX-License-Identifier: MIT */
#include "tests/support/io_place.h"

#include "probe/base/mem.h"

START_TEST(the_kind_of_a_path_follows_links)
{
    setup();
    put(in_dir("file"), "");
    ck_assert_int_eq(symlink("file", in_dir("to_file")), 0);
    ck_assert_int_eq(symlink(".", in_dir("to_dir")), 0);
    ck_assert_int_eq(symlink("loop", in_dir("loop")), 0);
    ck_assert_int_eq(mkfifo(in_dir("fifo"), 0666), 0);
    ck_assert_int_eq(ms_path_kind(in_dir("file")), MS_KIND_FILE);
    ck_assert_int_eq(ms_path_kind(in_dir("to_file")), MS_KIND_FILE);
    ck_assert_int_eq(ms_path_kind(dir), MS_KIND_DIR);
    ck_assert_int_eq(ms_path_kind(in_dir("to_dir/to_dir")), MS_KIND_DIR);
    ck_assert_int_eq(ms_path_kind(in_dir("fifo")), MS_KIND_OTHER);
    ck_assert_int_eq(ms_path_kind(in_dir("loop")), MS_KIND_NONE);
    ck_assert_int_eq(ms_path_kind(in_dir("absent")), MS_KIND_NONE);
    ck_assert_int_eq(ms_path_kind(""), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(paths_are_joined_and_taken_apart)
{
    static const struct {
        const char *dir, *name, *joined;
    } joins[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"},
                 {"", "b", "b"},    {"a", "/b", "/b"},  {"a", "", "a/"}};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        char *p = ms_path_join(joins[i].dir, joins[i].name);
        ck_assert_str_eq(p, joins[i].joined);
        ms_free(p);
    }
    ms_mem_fail_at(1);
    ck_assert_ptr_null(ms_path_join("a", "b"));
    ms_mem_fail_at(0);

    static const struct {
        const char *path, *dir, *base;
    } parts[] = {{"a", ".", "a"},     {"a/b", "a", "b"}, {"/a", "/", "a"},    {"/", "/", "/"},
                 {"a/b/", "a", "b"},  {"", ".", ""},     {"/a/b", "/a", "b"}, {"///", "/", "/"},
                 {"a/b//", "a", "b"}, {".", ".", "."}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ck_assert_msg(ms_str_is(ms_path_dir(parts[i].path), parts[i].dir), "%s", parts[i].path);
        ck_assert_msg(ms_str_is(ms_path_base(parts[i].path), parts[i].base), "%s", parts[i].path);
    }
}
END_TEST

START_TEST(directories_are_made_once_and_with_their_parents)
{
    setup();
    struct ms_err e = {0};
    ck_ok(ms_mkdirs(in_dir("a/b//c/"), &e), e);
    ck_assert_int_eq(ms_path_kind(in_dir("a/b/c")), MS_KIND_DIR);
    ck_ok(ms_mkdirs(in_dir("a/b"), &e), e);
    ck_ok(ms_mkdirs("/", &e), e);
    ck_ok(ms_mkdirs(".", &e), e);
    ck_assert_int_eq(symlink("a", in_dir("link")), 0);
    ck_ok(ms_mkdirs(in_dir("link/d"), &e), e);
    ck_assert_int_eq(ms_path_kind(in_dir("a/d")), MS_KIND_DIR);
    put(in_dir("file"), "");
    ck_assert_int_eq(ms_mkdirs(in_dir("file"), &e), MS_E_IO);
    ck_says(e, "file: cannot make the directory: File exists");
    scratch_remove(dir);
}
END_TEST

START_TEST(names_are_listed_in_natural_order)
{
    setup();
    static const char *const sorted[] = {".hidden", "new\nline", "rank0",    "rank1",
                                         "rank2",   "rank10",    "rank10.db"};
    enum { N = sizeof sorted / sizeof *sorted };
    for (size_t i = 0; i < N; i++)
        put(in_dir(sorted[(i * 3) % N]), "");
    struct ms_err e = {0};
    struct ms_dir d;
    ck_ok(ms_dir_list(&d, dir, &e), e);
    ck_assert_uint_eq(d.names.n, N);
    for (size_t i = 0; i < N; i++) {
        ck_assert_str_eq(d.names.p[i].p, sorted[i]);
        ck_assert_uint_eq(d.names.p[i].n, strlen(sorted[i]));
    }
    ms_dir_free(&d);
    ck_assert_uint_eq(d.names.n, 0);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_cannot_be_listed_is_named)
{
    setup();
    put(in_dir("file"), "");
    struct ms_err e = {0};
    struct ms_dir d;
    ck_assert_int_eq(ms_dir_list(&d, in_dir("file"), &e), MS_E_NOTFOUND);
    ck_says(e, "file: Not a directory");
    ms_err_clear(&e);
    ck_assert_int_eq(ms_dir_list(&d, in_dir("absent"), &e), MS_E_NOTFOUND);
    ms_dir_free(&d);
    ck_assert_int_eq(mkdir(in_dir("empty"), 0777), 0);
    ck_ok(ms_dir_list(&d, in_dir("empty"), NULL), e);
    ck_assert_uint_eq(d.names.n, 0);
    ms_dir_free(&d);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_listing_without_memory_leaks_nothing)
{
    setup();
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        put(in_dir(name), "");
    }
    size_t live = ms_mem_live();
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        struct ms_err e = {0};
        struct ms_dir d;
        ms_mem_fail_at(n);
        enum ms_rc rc = ms_dir_list(&d, dir, &e);
        failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert_int_eq(rc, failed ? MS_E_NOMEM : MS_OK);
        ms_dir_free(&d);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    ck_assert_uint_gt(n, 4);
    scratch_remove(dir);
}
END_TEST

START_TEST(no_directory_is_not_a_directory_to_make)
{
    struct ms_err e = {0};
    ck_assert_int_eq(ms_mkdirs("", &e), MS_E_ARG);
    ck_says(e, "empty");
}
END_TEST

static int make_directory_as_nobody(void)
{
    struct ms_err e = {0};
    if (geteuid() != 0)
        chmod(dir, 0555);
    if (!drop_rights())
        return 2;
    return ms_mkdirs(in_dir("new"), &e) == MS_E_IO && strstr(e.msg, "Permission denied") ? 0 : 1;
}

START_TEST(a_directory_that_may_not_be_made_is_refused_with_the_reason)
{
    setup();
    ck_assert_int_eq(in_child(make_directory_as_nobody), 0);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("paths", the_kind_of_a_path_follows_links, paths_are_joined_and_taken_apart,
          directories_are_made_once_and_with_their_parents, names_are_listed_in_natural_order,
          what_cannot_be_listed_is_named, a_listing_without_memory_leaks_nothing,
          no_directory_is_not_a_directory_to_make,
          a_directory_that_may_not_be_made_is_refused_with_the_reason)
