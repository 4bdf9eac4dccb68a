/* SPDX-License-Identifier: MIT
 *
 * What a writer asks of the system, call by call: these functions stand before those of libc.
 */
#include "tests/support/check.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* In the order in which they came: f a file is synced, d a folder is, n a file gets its name. */
static char calls[32];
static size_t ncalls;
static int interrupts, shorts;
static bool renames_only;

static void note(char c)
{
    if (ncalls + 1 < sizeof calls)
        calls[ncalls++] = c;
}

int fsync(int fd)
{
    struct stat st;
    note(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f');
    return (int)syscall(SYS_fsync, fd);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
    if (renames_only) {
        errno = EPERM;
        return -1;
    }
    note('n');
    return (int)syscall(SYS_linkat, a, from, b, to, flags);
}

int rename(const char *from, const char *to)
{
    note('n');
    return (int)syscall(SYS_renameat2, -100, from, -100, to, 0);
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (interrupts > 0) {
        interrupts--;
        errno = EINTR;
        return -1;
    }
    if (shorts > 0 && n > 1) {
        shorts--;
        n /= 2;
    }
    return syscall(SYS_write, fd, p, n);
}

/* Pages that were given back, and mappings that ended. */
static uintptr_t given;
static size_t given_bytes, unmapped;

int madvise(void *p, size_t n, int advice)
{
    given = (uintptr_t)p;
    given_bytes = n;
    return (int)syscall(SYS_madvise, p, n, advice);
}

int munmap(void *p, size_t n)
{
    unmapped += n;
    return (int)syscall(SYS_munmap, p, n);
}

static void begin(void)
{
    memset(calls, 0, sizeof calls);
    ncalls = 0;
    interrupts = shorts = 0;
    renames_only = false;
}

static void write_text(const char *path, const char *text, bool lazy)
{
    struct ms_err e = {0};
    struct ms_out *o;
    ck_ok(ms_out_create(&o, path, &e), e);
    if (lazy)
        ms_out_lazy(o);
    ms_out_puts(o, text);
    ck_ok(ms_out_commit(o, &e), e);
}

static void ck_holds(const char *path, const char *text)
{
    struct ms_file f;
    struct ms_err e = {0};
    ck_ok(ms_file_map(&f, path, 1 << 20, &e), e);
    ck_assert_uint_eq(f.n, strlen(text));
    ck_assert_int_eq(memcmp(f.p, text, f.n), 0);
    ms_file_unmap(&f);
}

/* A name that reaches the disk before its bytes is an empty file after a crash of the machine; one
 * whose folder does not reach it is no file at all. */
START_TEST(bytes_reach_the_disk_then_the_name_then_the_folder)
{
    char dir[64], path[100];
    snprintf(path, sizeof path, "%s/a", scratch_dir(dir));
    begin();
    write_text(path, "new", false);
    ck_assert_str_eq(calls, "fnd");
    ck_holds(path, "new");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_lazy_file_waits_for_no_disk)
{
    char dir[64], path[100];
    snprintf(path, sizeof path, "%s/a", scratch_dir(dir));
    begin();
    write_text(path, "new", true);
    ck_assert_str_eq(calls, "n");
    ck_holds(path, "new");
    scratch_remove(dir);
}
END_TEST

/* As on file systems that link nothing: the copy has to be on disk before it has the name. */
START_TEST(a_copy_in_place_of_a_link_is_on_disk_first)
{
    char dir[64], path[100];
    snprintf(path, sizeof path, "%s/a", scratch_dir(dir));
    begin();
    renames_only = true;
    write_text(path, "new", false);
    ck_assert_str_eq(calls, "ffnd");
    ck_holds(path, "new");
    scratch_remove(dir);
}
END_TEST

START_TEST(interrupted_and_short_writes_go_on)
{
    char dir[64], path[100];
    snprintf(path, sizeof path, "%s/a", scratch_dir(dir));
    begin();
    interrupts = 3;
    shorts = 4;
    write_text(path, "a text that comes in five pieces", false);
    ck_assert_int_eq(interrupts + shorts, 0);
    ck_holds(path, "a text that comes in five pieces");
    scratch_remove(dir);
}
END_TEST

/* Only whole pages are given back: the others may hold bytes that are still wanted. */
START_TEST(whole_pages_inside_a_part_are_given_back)
{
    char dir[64], path[100], bytes[5 * 4096] = "x";
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct ms_file f;
    struct ms_err e = {0};
    snprintf(path, sizeof path, "%s/a", scratch_dir(dir));
    write_file(path, bytes, sizeof bytes);
    ck_ok(ms_file_map(&f, path, 1 << 20, &e), e);
    const uintptr_t first = (uintptr_t)f.p;
    ms_file_release_part(&f, page, 2 * page);
    ck_assert(given == first + page && given_bytes == 2 * page);
    ms_file_release_part(&f, 1, 3 * page - 1);
    ck_assert(given == first + page && given_bytes == 2 * page);
    ms_file_release_part(&f, page - 1, 2 * page);
    ck_assert(given == first + page && given_bytes == page);
    given_bytes = 0;
    ms_file_release_part(&f, 1, page);
    ms_file_release_part(&f, 4 * page, 2 * page);
    ck_assert_uint_eq(given_bytes, 0);
    ms_file_release(&f);
    ck_assert(given == first && given_bytes == sizeof bytes);
    unmapped = 0;
    ms_file_unmap(&f);
    ck_assert_uint_eq(unmapped, sizeof bytes);
    scratch_remove(dir);
}
END_TEST

static void ck_joined(const char *dir, const char *name, const char *want)
{
    char *p = ms_path_join(dir, name);
    ck_assert_str_eq(p, want);
    ms_free(p);
}

START_TEST(one_slash_joins_a_folder_and_a_name)
{
    ck_joined("a", "b", "a/b");
    ck_joined("a/", "b", "a/b");
    ck_joined("/", "b", "/b");
    ck_joined("a/b", "c", "a/b/c");
    ck_joined("a/b/", "c", "a/b/c");
    ck_joined("a", "/b", "/b");
    ck_joined("", "b", "b");
}
END_TEST

TEST_MAIN("io_calls", whole_pages_inside_a_part_are_given_back, one_slash_joins_a_folder_and_a_name,
          bytes_reach_the_disk_then_the_name_then_the_folder, a_lazy_file_waits_for_no_disk,
          a_copy_in_place_of_a_link_is_on_disk_first, interrupted_and_short_writes_go_on)
