/* SPDX-License-Identifier: MIT
 *
 * Files without a name until they are whole, and what stands in for them where there are none.
 */
#include "tests/support/io_place.h"

#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_access
#define SYS_access SYS_faccessat
#define SYS_rename SYS_renameat
#endif

static bool has_nameless(void)
{
    int fd = open(dir, O_WRONLY | O_TMPFILE, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* From here on the call fails in this process, as under a sandbox.  Of write, what this program opened:
 * a tool that runs it, as valgrind does, keeps its own descriptors above and must go on writing. */
static bool forbid(long call, int why)
{
    const unsigned beyond = call == SYS_write ? 64 : UINT32_MAX;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, beyond, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)why),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

enum { NO_FILTER = 77 };

static bool write_text(const char *path, const char *text, struct ms_err *e)
{
    struct ms_out *o;
    if (ms_out_create(&o, path, e) != MS_OK)
        return false;
    ms_out_puts(o, text);
    return ms_out_commit(o, e) == MS_OK;
}

/* ---- a process that ends in mid-write --------------------------------- */

static void on_term(int sig)
{
    ms_tmp_unlink_all();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Two files half written, one with text already in the kernel, and a database's temporary. */
static int die_of(int sig)
{
    struct ms_err e = {0};
    struct ms_out *a;
    struct ms_out *b;
    char *tmp;
    signal(SIGTERM, on_term);
    if (ms_out_create(&a, in_dir("a"), &e) != MS_OK || ms_out_create(&b, in_dir("b"), &e) != MS_OK)
        return 2;
    ms_out_puts(a, "half");
    ms_out_puts(b, "half");
    if (ms_out_flush(b, &e) != MS_OK || strcmp(text_of(in_dir("a")), "old") != 0)
        return 3;
    if (sig == SIGTERM) {
        if (ms_tmp_new(&tmp, in_dir("db"), &e) != MS_OK)
            return 4;
        put(tmp, "half");
    }
    raise(sig);
    return 5;
}

static int die_of_term(void)
{
    return die_of(SIGTERM);
}

static int die_of_kill(void)
{
    return die_of(SIGKILL);
}

START_TEST(an_interrupt_in_mid_write_leaves_nothing_behind)
{
    setup();
    put(in_dir("a"), "old");
    ck_assert_int_eq(in_child(die_of_term), -SIGTERM);
    ck_assert_uint_eq(entries(dir), 1);
    ck_assert_str_eq(text_of(in_dir("a")), "old");
    scratch_remove(dir);
}
END_TEST

START_TEST(even_a_killed_process_leaves_nothing_behind)
{
    setup();
    put(in_dir("a"), "old");
    bool here = has_nameless();
    ck_assert_int_eq(in_child(die_of_kill), -SIGKILL);
    if (here)
        ck_assert_uint_eq(entries(dir), 1);
    ck_assert_str_eq(text_of(in_dir("a")), "old");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_temporary_folder_goes_with_all_in_it_and_nothing_beyond)
{
    struct ms_err e = {0};
    setup();
    ck_ok(ms_mkdirs(in_dir("made/rank_0"), &e), e);
    ck_ok(ms_mkdirs(in_dir("kept"), &e), e);
    put(in_dir("made/rank_0/x"), "half");
    put(in_dir("made/y"), "half");
    put(in_dir("kept/z"), "whole");
    ck_assert_int_eq(symlink(in_dir("kept"), in_dir("made/link")), 0);
    ck_assert(ms_tmp_register(in_dir("made")));
    ck_assert(ms_tmp_unlink_all());
    ms_tmp_forget(in_dir("made"));
    ck_assert_uint_eq(entries(dir), 1);
    ck_assert_str_eq(text_of(in_dir("kept/z")), "whole");
    ck_assert(!ms_tmp_unlink_all());
    scratch_remove(dir);
}
END_TEST

/* ---- where something is not to be had --------------------------------- */

static int write_without(long call, int why)
{
    struct ms_err e = {0};
    if (!forbid(call, why))
        return NO_FILTER;
    return write_text(in_dir("new"), "one", &e) && write_text(in_dir("old"), "two", &e) ? 0 : 1;
}

static int write_without_links(void)
{
    return write_without(SYS_linkat, EPERM);
}

static int write_without_proc(void)
{
    return write_without(SYS_access, ENOENT);
}

static void both_are_written(int (*how)(void))
{
    setup();
    put(in_dir("old"), "old");
    ck_assert_int_eq(chmod(in_dir("old"), 0640), 0);
    int status = in_child(how);
    struct stat st;
    if (status != NO_FILTER) {
        ck_assert_int_eq(status, 0);
        ck_assert_str_eq(text_of(in_dir("new")), "one");
        ck_assert_str_eq(text_of(in_dir("old")), "two");
        ck_assert_int_eq(stat(in_dir("old"), &st), 0);
        ck_assert_int_eq(st.st_mode & 0777, 0640);
        ck_assert_uint_eq(entries(dir), 2);
    }
    scratch_remove(dir);
}

START_TEST(where_links_are_refused_what_was_written_is_copied)
{
    both_are_written(write_without_links);
}
END_TEST

START_TEST(without_a_way_to_the_file_it_has_a_name_from_the_start)
{
    both_are_written(write_without_proc);
}
END_TEST

static int fail_at(long call, int why, const char *name, const char *says)
{
    struct ms_err e = {0};
    if (!forbid(call, why))
        return NO_FILTER;
    if (write_text(in_dir(name), "new", &e))
        return 1;
    return e.rc == MS_E_IO && strstr(e.msg, says) != NULL ? 0 : 2;
}

static int fail_to_sync(void)
{
    return fail_at(SYS_fsync, EIO, "old", "cannot write: Input/output error");
}

static int fail_to_rename(void)
{
    return fail_at(SYS_rename, ENOSPC, "old", "cannot put in place: No space left on device");
}

static int fail_to_write(void)
{
    return fail_at(SYS_write, ENOSPC, "old", "cannot write: No space left on device");
}

static int fail_by_quota(void)
{
    return fail_at(SYS_write, EDQUOT, "old", "cannot write: Disk quota exceeded");
}

static int fail_by_medium(void)
{
    return fail_at(SYS_write, EIO, "old", "cannot write: Input/output error");
}

static int fail_read_only(void)
{
    return fail_at(SYS_openat, EROFS, "old", "cannot write: Read-only file system");
}

static int fail_to_write_anew(void)
{
    return fail_at(SYS_write, ENOSPC, "new", "cannot write: No space left on device");
}

START_TEST(whatever_fails_the_old_file_stays_and_nothing_is_left)
{
    static int (*const ways[])(void) = {fail_to_sync,      fail_to_rename, fail_to_write,
                                        fail_by_quota,     fail_by_medium, fail_read_only,
                                        fail_to_write_anew};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        setup();
        put(in_dir("old"), "old");
        int status = in_child(ways[i]);
        ck_assert_msg(status == 0 || status == NO_FILTER, "way %zu: %d", i, status);
        ck_assert_uint_eq(entries(dir), 1);
        ck_assert_str_eq(text_of(in_dir("old")), "old");
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(a_name_of_any_length_is_written_or_refused_at_once)
{
    setup();
    char name[257];
    for (size_t n = 200; n < sizeof name; n++) {
        struct ms_err e = {0};
        struct ms_out *o;
        memset(name, 'n', n);
        name[n] = '\0';
        if (ms_out_create(&o, in_dir(name), &e) != MS_OK) {
            ck_says(e, "File name too long");
            ck_assert_uint_gt(n + strlen(".1.tmp"), 255 - 10);
            continue;
        }
        ck_ok(ms_out_commit(o, &e), e);
        ck_ok(ms_out_create(&o, in_dir(name), &e), e);
        ck_ok(ms_out_commit(o, &e), e);
        ck_assert_int_eq(unlink(in_dir(name)), 0);
    }
    ck_assert_uint_eq(entries(dir), 0);
    scratch_remove(dir);
}
END_TEST

/* ---- others that write by the way to the file -------------------------- */

START_TEST(others_write_by_the_way_to_the_file)
{
    setup();
    struct ms_err e = {0};
    char *tmp;
    int fd;
    ck_ok(ms_tmp_open(&fd, &tmp, in_dir("x/a"), &e), e);
    FILE *f = fopen(tmp, "wb");
    ck_assert_ptr_nonnull(f);
    fputs("theirs", f);
    fclose(f);
    if (has_nameless())
        ck_assert_uint_eq(entries(in_dir("x")), 0);
    ck_ok(ms_tmp_publish(fd, tmp, in_dir("x/a"), &e), e);
    ms_free(tmp);
    ck_assert_str_eq(text_of(in_dir("x/a")), "theirs");
    ck_ok(ms_tmp_open(&fd, &tmp, in_dir("x/b"), &e), e);
    ms_tmp_discard(fd, tmp);
    ms_free(tmp);
    ck_assert_uint_eq(entries(in_dir("x")), 1);
    scratch_remove(dir);
}
END_TEST

/* ---- two writers of one file --------------------------------------------- */

START_TEST(temporary_names_are_never_equal)
{
    enum { MANY = 200 };
    char *names[MANY];
    struct ms_err e = {0};
    setup();
    for (int i = 0; i < MANY; i++) {
        ck_ok(ms_tmp_new(&names[i], in_dir("a"), &e), e);
        ms_tmp_forget(names[i]);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(names[k], names[i]);
    }
    for (int i = 0; i < MANY; i++)
        ms_free(names[i]);
    scratch_remove(dir);
}
END_TEST

/* As two processes do that cannot see each other: both begin, one is done first. */
static void second_is_told(bool there)
{
    struct ms_err e = {0};
    struct ms_out *first, *second;
    setup();
    if (there)
        put(in_dir("a"), "old");
    ck_ok(ms_out_create(&second, in_dir("a"), &e), e);
    ck_ok(ms_out_create(&first, in_dir("a"), &e), e);
    ms_out_puts(first, "first");
    ms_out_puts(second, "second");
    ck_ok(ms_out_commit(first, &e), e);
    ck_assert_int_eq(ms_out_commit(second, &e), MS_E_IO);
    ck_says(e, "another process wrote it meanwhile");
    ck_assert_str_eq(text_of(in_dir("a")), "first");
    ck_assert_uint_eq(entries(dir), 1);
    ms_err_clear(&e);
    ck_ok(ms_out_create(&second, in_dir("a"), &e), e);
    ms_out_puts(second, "later");
    ck_ok(ms_out_commit(second, &e), e);
    ck_assert_str_eq(text_of(in_dir("a")), "later");
    scratch_remove(dir);
}

START_TEST(of_two_writers_the_second_is_told_and_leaves_the_file_alone)
{
    second_is_told(false);
    second_is_told(true);
}
END_TEST

START_TEST(a_folder_that_has_gone_is_one_sentence)
{
    struct ms_err e = {0};
    struct ms_out *o;
    setup();
    ck_ok(ms_out_create(&o, in_dir("x/a"), &e), e);
    ms_out_puts(o, "text");
    ck_assert_int_eq(rmdir(in_dir("x")) == 0 || errno == ENOTEMPTY, 1);
    if (has_nameless()) {
        ck_assert_int_ne(ms_out_commit(o, &e), MS_OK);
        ck_says(e, "cannot put in place: No such file or directory");
    } else {
        ms_out_abort(o);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(a_folder_of_ones_own_goes_with_all_in_it)
{
    struct ms_err e = {0};
    char *folder;
    struct stat st;
    setup();
    ck_ok(ms_tmp_folder(&folder, "test", &e), e);
    ck_assert_int_eq(stat(folder, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    char file[PATH_MAX], kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%s", folder);
    snprintf(file, sizeof file, "%s/x", folder);
    put(file, "x");
    ms_tmp_folder_remove(folder);
    ms_tmp_folder_remove(NULL);
    ck_assert_int_ne(stat(kept, &st), 0);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("io_tmp", an_interrupt_in_mid_write_leaves_nothing_behind,
          even_a_killed_process_leaves_nothing_behind,
          a_temporary_folder_goes_with_all_in_it_and_nothing_beyond,
          where_links_are_refused_what_was_written_is_copied,
          without_a_way_to_the_file_it_has_a_name_from_the_start,
          whatever_fails_the_old_file_stays_and_nothing_is_left,
          a_name_of_any_length_is_written_or_refused_at_once, others_write_by_the_way_to_the_file,
          temporary_names_are_never_equal,
          of_two_writers_the_second_is_told_and_leaves_the_file_alone,
          a_folder_that_has_gone_is_one_sentence, a_folder_of_ones_own_goes_with_all_in_it)
