/* SPDX-License-Identifier: MIT
 *
 * check: what every Check program of this folder needs: a main from a list of
 * tests, failure text that shows an ms_err, and a scratch directory.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include "probe/base/err.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The call succeeds; on failure show the error it left in `e`. */
#define ck_ok(call, e)                                                                             \
    do {                                                                                           \
        enum ms_rc ck_rc = (call);                                                                 \
        ck_assert_msg(ck_rc == MS_OK, "%s: %s (%s)", #call, (e).msg, ms_rc_text(ck_rc));           \
    } while (0)

/* The message of e holds the words. */
#define ck_says(e, words)                                                                          \
    ck_assert_msg(strstr((e).msg, (words)) != NULL, "expected '%s' in '%s'", (words), (e).msg)

/* Files that are open, and files of tests that are mapped, in this process. */
static inline unsigned count_held_files(void)
{
    char line[4096];
    unsigned n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        n += strstr(line, "/msprobe-") != NULL || strstr(line, "/tests/data/") != NULL;
    if (maps != NULL)
        fclose(maps);
    DIR *open_ones = opendir("/proc/self/fd");
    while (open_ones != NULL && readdir(open_ones) != NULL)
        n++;
    if (open_ones != NULL)
        closedir(open_ones);
    return n;
}

/* A test in a process of its own runs without standard input, so that a file which it opens gets descriptor 0:
 * that is as good as any, and no error.  In one process Check would use it for a file of its own. */
static inline void free_first_descriptor(void)
{
    close(STDIN_FILENO);
}
static inline void take_first_descriptor(void)
{
    const int fd = open("/dev/null", O_RDONLY);
    if (fd > STDIN_FILENO)
        close(fd);
}

/* Runs all that was added to the case; CK_FORK=no and CK_VERBOSITY work as usual.  The status of main.  With
 * CK_FORK=no and LEFT_OPEN_FAILS in the environment, a file that the tests leave open or mapped is a failure. */
static inline int run_case(const char *name, TCase *tc)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    if (srunner_fork_status(runner) == CK_FORK)
        tcase_add_checked_fixture(tc, free_first_descriptor, take_first_descriptor);
    const unsigned held = count_held_files();
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    const unsigned left = getenv("LEFT_OPEN_FAILS") != NULL ? count_held_files() : held;
    if (failed == 0 && left > held)
        printf("%s: %u files are left open or mapped\n", name, left - held);
    return failed != 0 || left > held;
}

/* main() that runs the tests in the given order, each within so many seconds (a multiple of them on a
 * slow machine) and between set_up and tear_down, if there are such. */
#define TEST_MAIN(name, ...)                 TEST_MAIN_OF(NULL, NULL, 30, name, __VA_ARGS__)
#define TEST_MAIN_WITHIN(seconds, name, ...) TEST_MAIN_OF(NULL, NULL, seconds, name, __VA_ARGS__)
#define TEST_MAIN_AROUND(set_up, tear_down, name, ...)                                             \
    TEST_MAIN_OF(set_up, tear_down, 30, name, __VA_ARGS__)
#define TEST_MAIN_OF(set_up, tear_down, seconds, name, ...)                                        \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const list[] = {__VA_ARGS__};                                                 \
        TCase *tc = tcase_create(name);                                                            \
        tcase_add_checked_fixture(tc, set_up, tear_down);                                          \
        tcase_set_timeout(tc, seconds);                                                            \
        for (size_t i = 0; i < sizeof list / sizeof *list; i++)                                    \
            tcase_add_test(tc, list[i]);                                                           \
        return run_case(name, tc);                                                                 \
    }

/* A new directory for one test under $TMPDIR, kept until scratch_remove. */
static inline char *scratch_dir(char buf[64])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(buf, 64, "%.40s/msprobe-XXXXXX", tmp != NULL ? tmp : "/tmp");
    char *dir = mkdtemp(buf);
    ck_assert_ptr_nonnull(dir);
    return dir;
}
static inline void scratch_remove(const char *dir)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(cmd), 0);
}
static inline void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(p, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

#endif
