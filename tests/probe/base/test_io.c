/* SPDX-License-Identifier: MIT */
#include "tests/support/io_place.h"

#include "probe/base/mem.h"
#include "tests/support/closes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MIB = 1 << 20 };

/* ---- mapping ---------------------------------------------------------- */

START_TEST(a_file_is_mapped_whole)
{
    setup();
    struct ms_err e = {0};
    struct ms_file f;
    put(in_dir("a"), "hello");
    ck_ok(ms_file_map(&f, in_dir("a"), 5, &e), e);
    ck_assert_uint_eq(f.n, 5);
    ck_assert_mem_eq(f.p, "hello", 5);
    ms_file_unmap(&f);
    ck_assert_uint_eq(f.n, 0);
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

/* Is anything at this address? */
static bool is_mapped(const void *p)
{
    unsigned char present;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return mincore((void *)((uintptr_t)p / page * page), 1, &present) == 0;
}

START_TEST(nothing_stays_mapped)
{
    setup();
    static const char *const texts[] = {"x", "hello"};
    for (int i = 0; i < 2; i++) {
        struct ms_err e = {0};
        struct ms_file f;
        put(in_dir("a"), texts[i]);
        ck_ok(ms_file_map(&f, in_dir("a"), 5, &e), e);
        const char *was = f.p;
        ck_assert(is_mapped(was));
        ms_file_unmap(&f);
        ck_assert(!is_mapped(was));
    }
    scratch_remove(dir);
}
END_TEST

/* Where standard input is closed the first file has descriptor 0. */
START_TEST(a_file_may_have_the_first_descriptor)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    const int kept = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    const enum ms_rc rc = ms_out_create(&o, in_dir("a"), &e);
    ck_ok(rc, e);
    ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFD) >= 0, 1);
    ms_out_puts(o, "x");
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_int_eq(access(in_dir("a"), F_OK), 0);
    ck_assert_int_lt(fcntl(STDIN_FILENO, F_GETFD), 0);
    struct ms_file f;
    ck_ok(ms_file_map(&f, in_dir("a"), 1, &e), e);
    ms_file_unmap(&f);
    ck_assert_int_lt(fcntl(STDIN_FILENO, F_GETFD), 0);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
    scratch_remove(dir);
}
END_TEST

/* A commit opens the first descriptor when it is free, and closes it again. */
START_TEST(a_commit_leaves_no_descriptor_open)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    const int kept = dup(STDIN_FILENO), null = open("/dev/null", O_RDONLY);
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    close(STDIN_FILENO);
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_int_lt(fcntl(STDIN_FILENO, F_GETFD), 0);
    if (null > STDIN_FILENO)
        close(null);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
    scratch_remove(dir);
}
END_TEST

/* Numbers within names count as such, and hidden files are there too. */
START_TEST(a_folder_is_listed_in_natural_order)
{
    static const char *const order[] = {".hidden", "rank1",     "rank2",  "rank9",
                                        "rank10",  "rank10.db", "rank100"};
    static const int made[] = {4, 6, 0, 2, 5, 1, 3};
    enum { N = sizeof order / sizeof *order };
    struct ms_err e = {0};
    struct ms_dir d;
    setup();
    ck_ok(ms_dir_list(&d, dir, &e), e);
    ck_assert_uint_eq(d.names.n, 0);
    ms_dir_free(&d);
    for (int i = 0; i < N; i++)
        put(in_dir(order[made[i]]), "");
    ck_ok(ms_dir_list(&d, dir, &e), e);
    ck_assert_uint_eq(d.names.n, N);
    for (size_t i = 0; i < N; i++)
        ck_assert_str_eq(d.names.p[i].p, order[i]);
    ms_dir_free(&d);
    scratch_remove(dir);
    ck_assert_int_ne(ms_dir_list(&d, dir, &e), MS_OK);
    ck_says(e, dir);
}
END_TEST

START_TEST(a_name_that_is_too_long_leaves_no_memory_behind)
{
    struct ms_err e = {0};
    char *tmp;
    char path[PATH_MAX];
    setup();
    memset(path, 'x', sizeof path - 1);
    const size_t begin = strlen(dir);
    memcpy(path, dir, begin); /* folders on the way are made */
    for (size_t i = begin; i + 100 < sizeof path; i += 100)
        path[i] = '/';
    path[sizeof path - 1] = '\0';
    const size_t before = ms_mem_live();
    ck_assert_int_eq(ms_tmp_new(&tmp, path, &e), MS_E_LIMIT);
    ck_assert_uint_eq(ms_mem_live(), before);
}
END_TEST

START_TEST(what_is_neither_file_nor_directory_is_named)
{
    struct ms_err e = {0};
    setup();
    ck_assert_int_eq(ms_fail_kind(in_dir("absent"), &e), MS_E_NOTFOUND);
    ck_says(e, "No such file");
    ms_err_clear(&e);
    ck_assert_int_eq(ms_fail_kind("/dev/null", &e), MS_E_NOTFOUND);
    ck_assert_str_eq(e.msg, "/dev/null: is neither a file nor a directory");
    ck_ok(ms_want_dir(dir, &e), e);
    ms_err_clear(&e);
    ck_assert_int_eq(ms_want_dir(in_dir("absent"), &e), MS_E_NOTFOUND);
    ck_says(e, "No such file");
    ms_err_clear(&e);
    ck_assert_int_eq(ms_want_dir("/dev/null", &e), MS_E_NOTFOUND);
    ck_says(e, "Not a directory");
    scratch_remove(dir);
}
END_TEST

START_TEST(an_empty_file_has_no_bytes_and_a_valid_address)
{
    setup();
    struct ms_err e = {0};
    struct ms_file f;
    put(in_dir("a"), "");
    ck_ok(ms_file_map(&f, in_dir("a"), 0, &e), e);
    ck_assert_ptr_nonnull(f.p);
    ck_assert_uint_eq(f.n, 0);
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_cannot_be_mapped_is_named_with_the_reason)
{
    setup();
    put(in_dir("large"), "123456");
    ck_assert_int_eq(mkfifo(in_dir("fifo"), 0666), 0);
    ck_assert_int_eq(symlink("loop", in_dir("loop")), 0);
    ck_assert_int_eq(symlink("gone", in_dir("dangling")), 0);
    static const struct {
        const char *name;
        enum ms_rc rc;
        const char *says;
    } table[] = {
        {"", MS_E_UNSUPPORTED, "is a directory"},
        {"fifo", MS_E_UNSUPPORTED, "not a regular file"}, /* and does not wait for a writer */
        {"large", MS_E_LIMIT, "6 bytes, more than the 5 allowed"},
        {"loop", MS_E_IO, "symbolic links"},
        {"dangling", MS_E_NOTFOUND, "No such file"},
        {"absent", MS_E_NOTFOUND, "No such file"},
        {"large/x", MS_E_NOTFOUND, "Not a directory"},
        {"new\nline", MS_E_NOTFOUND, "new\nline"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ms_err e = {0};
        struct ms_file f;
        const char *path = in_dir(table[i].name);
        ck_assert_int_eq(ms_file_map(&f, path, 5, &e), table[i].rc);
        ck_says(e, path);
        ck_says(e, table[i].says);
        ck_assert_uint_eq(f.n, 0);
        ms_file_unmap(&f);
    }
    struct ms_file f;
    ck_assert_int_eq(ms_file_map(&f, "/dev/zero", 5, NULL), MS_E_UNSUPPORTED);
    scratch_remove(dir);
}
END_TEST

static int map_as_nobody(void)
{
    struct ms_err e = {0};
    struct ms_file f;
    enum ms_rc rc = drop_rights() ? ms_file_map(&f, in_dir("a"), 99, &e) : MS_E_INTERNAL;
    return rc == MS_E_IO && strstr(e.msg, "Permission denied") != NULL ? 0 : 1;
}

START_TEST(a_file_that_may_not_be_read_is_refused)
{
    setup();
    put(in_dir("a"), "secret");
    ck_assert_int_eq(chmod(in_dir("a"), 0), 0);
    ck_assert_int_eq(in_child(map_as_nobody), 0);
    scratch_remove(dir);
}
END_TEST

/* ---- writing ---------------------------------------------------------- */

START_TEST(a_file_appears_at_commit_and_not_before)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    put(in_dir("a"), "old");
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    ms_out_puts(o, "new ");
    ms_out_str(o, MS_STR("text"));
    ms_out_str(o, MS_STR_NONE);
    ms_out_putc(o, ' ');
    ms_out_printf(o, "%s %d", "number", 7);
    ck_ok(ms_out_flush(o, &e), e);
    ck_assert_str_eq(text_of(in_dir("a")), "old");
    ck_assert_uint_eq(ms_out_size(o), 17);
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_str_eq(text_of(in_dir("a")), "new text number 7");
    ck_assert_uint_eq(entries(dir), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_abort_leaves_all_as_it_was)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    put(in_dir("a"), "old");
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    ms_out_puts(o, "new");
    ms_out_abort(o);
    ck_assert_str_eq(text_of(in_dir("a")), "old");
    ck_ok(ms_out_create(&o, in_dir("b"), &e), e);
    ms_out_abort(o);
    ms_out_abort(NULL);
    ck_assert_uint_eq(entries(dir), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_empty_file_can_be_written)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_str_eq(text_of(in_dir("a")), "");
    scratch_remove(dir);
}
END_TEST

/* Pieces of every size around the buffer's, by every way in. */
START_TEST(large_text_is_written_in_order)
{
    setup();
    static const size_t sizes[] = {1, 4096, 262143, 1, 262144, 1, 262145, 1000000, 3};
    static char piece[1000000];
    struct ms_err e = {0};
    struct ms_out *o;
    struct ms_file f;
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    size_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(piece, 'a' + (int)i, sizes[i]);
        ms_out_write(o, piece, sizes[i]);
        char *room = ms_out_room(o, 10);
        memcpy(room, "0123456789", 10);
        ms_out_used(o, 10);
        total += sizes[i] + 10;
        ck_assert_uint_eq(ms_out_size(o), total);
    }
    ck_ok(ms_out_commit(o, &e), e);
    ck_ok(ms_file_map(&f, in_dir("a"), total, &e), e);
    ck_assert_uint_eq(f.n, total);
    const char *p = f.p;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; k < sizes[i]; k++, p++) {
            if (*p != 'a' + (int)i)
                ck_abort_msg("piece %zu, byte %zu", i, k);
        }
        ck_assert_mem_eq(p, "0123456789", 10);
        p += 10;
    }
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

START_TEST(parent_directories_are_made)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    ck_ok(ms_out_create(&o, in_dir("x//y/../z/a"), &e), e);
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_int_eq(ms_path_kind(in_dir("x/z/a")), MS_KIND_FILE);
    scratch_remove(dir);
}
END_TEST

/* What the user's mask lets through, and no more. */
START_TEST(directories_and_files_have_the_rights_of_the_user)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    struct stat st;
    const mode_t mask = umask(0027);
    ck_ok(ms_out_create(&o, in_dir("x/y/a"), &e), e);
    ck_ok(ms_out_commit(o, &e), e);
    umask(mask);
    static const char *const made[] = {"x", "x/y", "x/y/a"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const unsigned all = i < 2 ? 0777 : 0666;
        ck_assert_int_eq(stat(in_dir(made[i]), &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, all & ~0027U);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(any_name_can_be_written)
{
    setup();
    static const char *const names[] = {"new\nline", "a b", "-rf", "\xff\xfe", "%s%n", "*"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ms_err e = {0};
        struct ms_out *o;
        ck_ok(ms_out_create(&o, in_dir(names[i]), &e), e);
        ms_out_puts(o, names[i]);
        ck_ok(ms_out_commit(o, &e), e);
        ck_assert_str_eq(text_of(in_dir(names[i])), names[i]);
    }
    ck_assert_uint_eq(entries(dir), sizeof names / sizeof *names);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_place_that_cannot_be_written_is_refused_at_once)
{
    setup();
    put(in_dir("file"), "x");
    char far[300];
    memset(far, 'n', sizeof far);
    far[sizeof far - 1] = '\0';
    const struct {
        const char *name;
        enum ms_rc rc;
        const char *says;
    } table[] = {
        {"", MS_E_ARG, "is a directory"},
        {"file/a", MS_E_IO, "cannot make the directory"},
        {far, MS_E_IO, "File name too long"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ms_err e = {0};
        struct ms_out *o;
        ck_assert_int_eq(ms_out_create(&o, in_dir(table[i].name), &e), table[i].rc);
        ck_says(e, table[i].says);
        ck_assert_ptr_null(o);
    }
    ck_assert_uint_eq(entries(dir), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_full_disk_is_reported_at_commit)
{
    struct ms_err e = {0};
    struct ms_out *o;
    ck_ok(ms_out_create(&o, "/dev/full", &e), e);
    ms_out_puts(o, "text");
    ck_assert_int_eq(ms_out_commit(o, &e), MS_E_IO);
    ck_says(e, "/dev/full: cannot write: No space left on device");

    ms_err_clear(&e);
    ck_ok(ms_out_create(&o, "/dev/full", &e), e);
    ms_out_puts(o, "text");
    ck_assert_int_eq(ms_out_flush(o, NULL), MS_E_IO);
    ms_out_puts(o, "more");
    ck_assert_int_eq(ms_out_commit(o, NULL), MS_E_IO);
}
END_TEST

/* No file may pass 100 kB: the write fails as on a full disk. */
static int write_past_the_limit(void)
{
    struct ms_err e = {0};
    struct ms_out *o;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, 100000}) != 0 ||
        ms_out_create(&o, in_dir("a"), &e) != MS_OK)
        return 2;
    for (int i = 0; i < 100000; i++)
        ms_out_puts(o, "0123456789");
    return ms_out_commit(o, &e) == MS_E_IO && strstr(e.msg, "File too large") != NULL ? 0 : 1;
}

START_TEST(a_write_that_fails_half_way_leaves_the_old_file_alone)
{
    setup();
    put(in_dir("a"), "old");
    ck_assert_int_eq(in_child(write_past_the_limit), 0);
    ck_assert_str_eq(text_of(in_dir("a")), "old");
    ck_assert_uint_eq(entries(dir), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(text_too_long_to_format_is_kept_as_a_failure)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    ms_out_printf(o, "%*s", 2 * MIB, "x");
    ck_assert_int_eq(ms_out_commit(o, &e), MS_E_LIMIT);
    ck_says(e, in_dir("a"));
    ck_assert_uint_eq(entries(dir), 0);
    scratch_remove(dir);
}
END_TEST

static enum ms_rc write_something(struct ms_err *e)
{
    struct ms_out *o;
    MS_TRY(ms_out_create(&o, in_dir("x/a"), e));
    ms_out_printf(o, "%d", 42);
    return ms_out_commit(o, e);
}

START_TEST(out_of_memory_is_reported_and_leaves_nothing)
{
    setup();
    size_t live = ms_mem_live();
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        struct ms_err e = {0};
        ms_mem_fail_at(n);
        enum ms_rc rc = write_something(&e);
        failed = ms_mem_failed();
        ms_mem_fail_at(0);
        /* Without memory the directory is merely not synced, which loses nothing. */
        if (rc != MS_OK) {
            ck_assert_int_eq(rc, MS_E_NOMEM);
            ck_says(e, "out of memory");
            ck_assert_int_eq(ms_path_kind(in_dir("x/a")), MS_KIND_NONE);
        } else if (failed) {
            ck_assert_int_eq(unlink(in_dir("x/a")), 0);
        }
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    ck_assert_uint_gt(n, 5);
    ck_assert_str_eq(text_of(in_dir("x/a")), "42");
    ck_assert_uint_eq(entries(in_dir("x")), 1);
    scratch_remove(dir);
}
END_TEST

/* ---- interrupts ------------------------------------------------------- */

START_TEST(only_registered_names_are_removed)
{
    setup();
    put(in_dir("mine"), "");
    put(in_dir("done"), "");
    put(in_dir("other"), "");
    ck_assert(ms_tmp_register(in_dir("mine")));
    ck_assert(ms_tmp_register(in_dir("done")));
    ms_tmp_forget(in_dir("done"));
    ms_tmp_forget(in_dir("never registered"));
    ms_tmp_unlink_all();
    ms_tmp_forget(in_dir("mine"));
    ck_assert_uint_eq(entries(dir), 2);
    ck_assert_int_eq(ms_path_kind(in_dir("mine")), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_full_table_says_so_and_takes_names_again_later)
{
    char name[32];
    unsigned n = 0;
    for (; n < 1000; n++) {
        snprintf(name, sizeof name, "/nowhere/%u", n);
        if (!ms_tmp_register(name))
            break;
    }
    ck_assert_uint_ge(n, 16);
    ck_assert_uint_lt(n, 1000);
    ms_tmp_forget("/nowhere/3");
    ck_assert(ms_tmp_register("/nowhere/again"));
    ms_tmp_forget("/nowhere/again");
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "/nowhere/%u", i);
        ms_tmp_forget(name);
    }
    static char far[5000];
    memset(far, 'x', sizeof far - 1);
    ck_assert(!ms_tmp_register(far));
}
END_TEST

enum { NAMING = 4, NAMES_EACH = 12, ROUNDS = 3000 };
static char own_name[NAMING][NAMES_EACH][100];

/* Registers the names of one thread and forgets them, again and again; at the end they stay. */
static void *register_names(void *names)
{
    char(*name)[100] = names;
    bool ok = true;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < NAMES_EACH; i++)
            ok &= ms_tmp_register(name[i]);
        for (int i = 0; i < NAMES_EACH && round + 1 < ROUNDS; i++)
            ms_tmp_forget(name[i]);
    }
    return ok ? names : NULL;
}

START_TEST(names_of_several_threads_have_places_of_their_own)
{
    pthread_t thread[NAMING];
    setup();
    for (int t = 0; t < NAMING; t++) {
        for (int i = 0; i < NAMES_EACH; i++) {
            snprintf(own_name[t][i], sizeof own_name[t][i], "%s/%d.%d", dir, t, i);
            put(own_name[t][i], "");
        }
        ck_assert_int_eq(pthread_create(&thread[t], NULL, register_names, own_name[t]), 0);
    }
    for (int t = 0; t < NAMING; t++) {
        void *ok;
        pthread_join(thread[t], &ok);
        ck_assert_ptr_nonnull(ok);
    }
    ck_assert(ms_tmp_unlink_all());
    ck_assert_uint_eq(entries(dir), 0);
    for (int t = 0; t < NAMING; t++)
        for (int i = 0; i < NAMES_EACH; i++)
            ms_tmp_forget(own_name[t][i]);
    ck_assert(!ms_tmp_unlink_all());
    scratch_remove(dir);
}
END_TEST

static int print_to_a_full_disk(void)
{
    struct ms_err e = {0};
    if (dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO) < 0)
        return 2;
    printf("text");
    return ms_stdout_finish(&e) == MS_E_IO && strstr(e.msg, "No space left") != NULL ? 0 : 1;
}

#define DRAWN ".0123456789abcdef0123456789abcdef.tmp"

START_TEST(what_killed_processes_left_long_ago_is_removed)
{
    setup();
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(gone, NULL, 0), gone);
    /* A number that no process has, and that is ours without its first digit. */
    const pid_t like_ours = (pid_t)(getpid() < 1000000 ? 900000000 : 2000000000) + getpid();
    const struct {
        const char *before;
        int64_t pid;
        const char *after;
        bool old, stays;
    } cases[] = {
        {"run.db.", gone, DRAWN, true, false},
        {"run.db.", gone, DRAWN "-journal", true, false},
        {"run.db.", like_ours, DRAWN, true, false},
        {"run.db.", INT32_MAX, DRAWN, true, false}, /* the last number that a process may have */
        {"run.db.", INT32_MAX + INT64_C(1), DRAWN, true, true},
        {"run.db.", gone + (INT64_C(1) << 32), DRAWN, true, true},
        {"run.db.1.7" DRAWN ".", gone, DRAWN, true, false},
        {"run.db.", getppid(), DRAWN, true, true},
        {"run.db.3.", gone, DRAWN, false, true},
        {"run.db2.", gone, DRAWN, true, true},
        {"run.db.mine.", gone, DRAWN, true, true},
        {"run.db.", gone, "", true, true},
        {"run.db.", gone, ".tmp", true, true},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *name[CASES];
    for (int i = 0; i < CASES; i++) {
        ck_assert_int_gt(
            asprintf(&name[i], "%s%" PRId64 "%s", cases[i].before, cases[i].pid, cases[i].after),
            0);
        put(in_dir(name[i]), "x");
        if (cases[i].old)
            ck_assert_int_eq(utimensat(AT_FDCWD, in_dir(name[i]), long_ago, 0), 0);
    }
    struct ms_err e = {0};
    char *tmp;
    ck_ok(ms_tmp_new(&tmp, in_dir("run.db"), &e), e);
    for (int i = 0; i < CASES; i++)
        ck_assert_msg((access(in_dir(name[i]), F_OK) == 0) == cases[i].stays, "%s", name[i]);
    for (int i = 0; i < CASES; i++)
        free(name[i]);
    ms_tmp_forget(tmp);
    ms_free(tmp);
    scratch_remove(dir);
}
END_TEST

START_TEST(standard_output_on_a_full_disk_is_reported)
{
    fflush(stdout);
    ck_assert_int_eq(in_child(print_to_a_full_disk), 0);
    ck_assert_int_eq(ms_stdout_finish(NULL), MS_OK);
}
END_TEST

static int print_early_to_a_full_disk(void)
{
    struct ms_err e = {0};
    if (dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO) < 0)
        return 2;
    printf("text");
    fflush(stdout);
    errno = 0;
    return ms_stdout_finish(&e) == MS_E_IO && strstr(e.msg, "earlier") != NULL ? 0 : 1;
}

START_TEST(an_earlier_failure_of_standard_output_is_reported_too)
{
    fflush(stdout);
    ck_assert_int_eq(in_child(print_early_to_a_full_disk), 0);
}
END_TEST

START_TEST(a_device_is_written_to_and_never_replaced)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    ck_assert_int_eq(symlink("/dev/null", in_dir("null")), 0);
    ck_ok(ms_out_create(&o, in_dir("null"), &e), e);
    ms_out_puts(o, "text");
    ck_ok(ms_out_commit(o, &e), e);
    ck_ok(ms_out_create(&o, in_dir("null"), &e), e);
    ms_out_abort(o);
    ck_assert_int_eq(ms_path_kind(in_dir("null")), MS_KIND_OTHER);
    ck_assert_uint_eq(entries(dir), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_pipe_is_written_to_when_somebody_reads_it)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    char got[8] = "";
    ck_assert_int_eq(mkfifo(in_dir("fifo"), 0666), 0);
    ck_assert_int_eq(ms_out_create(&o, in_dir("fifo"), &e), MS_E_IO); /* and does not wait */
    int fd = open(in_dir("fifo"), O_RDONLY | O_NONBLOCK);
    ms_err_clear(&e);
    ck_ok(ms_out_create(&o, in_dir("fifo"), &e), e);
    ms_out_puts(o, "text");
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_int_eq(read(fd, got, sizeof got), 4);
    ck_assert_str_eq(got, "text");
    close(fd);
    char *tmp;
    ck_assert_int_eq(ms_tmp_new(&tmp, in_dir("fifo"), &e), MS_E_ARG);
    ck_says(e, "not a regular file");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_link_stays_and_its_file_is_replaced)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    struct stat st;
    ck_assert_int_eq(mkdir(in_dir("far"), 0777), 0);
    put(in_dir("far/file"), "old");
    ck_assert_int_eq(symlink("far/file", in_dir("link")), 0);
    ck_ok(ms_out_create(&o, in_dir("link"), &e), e);
    ms_out_puts(o, "new");
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_int_eq(lstat(in_dir("link"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_str_eq(text_of(in_dir("far/file")), "new");
    ck_assert_uint_eq(entries(in_dir("far")), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_replaced_file_keeps_who_may_read_it)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    struct stat st;
    put(in_dir("a"), "secret");
    ck_assert_int_eq(chmod(in_dir("a"), 0600), 0);
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    ms_out_puts(o, "new");
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_int_eq(stat(in_dir("a"), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_link_in_the_way_of_the_temporary_is_not_followed)
{
    setup();
    struct ms_err e = {0};
    struct ms_out *o;
    char name[64];
    put(in_dir("victim"), "untouched");
    snprintf(name, sizeof name, "a.%d.tmp", (int)getpid());
    ck_assert_int_eq(symlink("victim", in_dir(name)), 0);
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    ms_out_puts(o, "new");
    ck_ok(ms_out_commit(o, &e), e);
    ck_assert_str_eq(text_of(in_dir("victim")), "untouched");
    ck_assert_str_eq(text_of(in_dir("a")), "new");
    scratch_remove(dir);
}
END_TEST

/* Commits twenty files and throws as many away; NULL when all went well. */
static void *write_files(void *which)
{
    for (unsigned i = 0; i < 40; i++) {
        char path[128];
        struct ms_out *o;
        snprintf(path, sizeof path, "%s/%u.%u", dir, (unsigned)(uintptr_t)which, i);
        if (ms_out_create(&o, path, NULL) != MS_OK)
            return dir;
        ms_out_puts(o, path);
        if (i % 2 != 0)
            ms_out_abort(o);
        else if (ms_out_commit(o, NULL) != MS_OK)
            return dir;
    }
    return NULL;
}

START_TEST(files_are_written_by_several_threads)
{
    setup();
    pthread_t t[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, write_files, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(t[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_uint_eq(entries(dir), 4 * 20);
    scratch_remove(dir);
}
END_TEST

/* Reads the pipe until its end; the number of bytes. */
START_TEST(a_file_without_a_name_is_refused_at_once)
{
    struct ms_err e = {0};
    struct ms_out *o;
    ck_assert_int_eq(ms_out_create(&o, "", &e), MS_E_ARG);
    ck_says(e, "empty");
    ck_assert_ptr_null(o);
}
END_TEST

START_TEST(short_text_is_formatted_without_memory)
{
    struct ms_err e = {0};
    struct ms_out *o;
    setup();
    ck_ok(ms_out_create(&o, in_dir("a"), &e), e);
    uint64_t calls = ms_mem_calls();
    for (int i = 0; i < 100000; i++)
        ms_out_printf(o, "%9d\n", i);
    ck_assert_uint_eq(ms_mem_calls(), calls);
    ms_out_printf(o, "%*s", 5000, "end"); /* more than the room that is always there */
    ck_assert_uint_eq(ms_out_size(o), 1005000);
    ck_ok(ms_out_commit(o, &e), e);
    struct ms_file f;
    ck_ok(ms_file_map(&f, in_dir("a"), 2 * MIB, &e), e);
    ck_assert_mem_eq(f.p + 999980, "    99998\n    99999\n", 20);
    ck_assert_mem_eq(f.p + 1004997, "end", 3);
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN_AROUND(
    count_open_files, ck_all_closed, "io", a_file_is_mapped_whole, nothing_stays_mapped,
    a_file_may_have_the_first_descriptor, a_name_that_is_too_long_leaves_no_memory_behind,
    what_is_neither_file_nor_directory_is_named, an_empty_file_has_no_bytes_and_a_valid_address,
    what_cannot_be_mapped_is_named_with_the_reason, a_file_that_may_not_be_read_is_refused,
    directories_and_files_have_the_rights_of_the_user, a_file_appears_at_commit_and_not_before,
    an_abort_leaves_all_as_it_was, an_empty_file_can_be_written, large_text_is_written_in_order,
    parent_directories_are_made, any_name_can_be_written,
    a_place_that_cannot_be_written_is_refused_at_once, a_full_disk_is_reported_at_commit,
    a_write_that_fails_half_way_leaves_the_old_file_alone,
    text_too_long_to_format_is_kept_as_a_failure, out_of_memory_is_reported_and_leaves_nothing,
    only_registered_names_are_removed, a_full_table_says_so_and_takes_names_again_later,
    names_of_several_threads_have_places_of_their_own, a_commit_leaves_no_descriptor_open,
    a_folder_is_listed_in_natural_order, standard_output_on_a_full_disk_is_reported,
    an_earlier_failure_of_standard_output_is_reported_too,
    a_device_is_written_to_and_never_replaced, a_pipe_is_written_to_when_somebody_reads_it,
    a_link_stays_and_its_file_is_replaced, a_replaced_file_keeps_who_may_read_it,
    a_link_in_the_way_of_the_temporary_is_not_followed, files_are_written_by_several_threads,
    a_file_without_a_name_is_refused_at_once, short_text_is_formatted_without_memory,
    what_killed_processes_left_long_ago_is_removed)
