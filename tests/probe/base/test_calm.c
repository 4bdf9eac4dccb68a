/* SPDX-License-Identifier: MIT
 *
 * A write that would raise a signal raises none while calm, and nothing of the program's own is taken away.
 */
#include "probe/base/calm.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int pipe_without_reader(void)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    return ends[1];
}

static bool is_blocked(int sig)
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, sig) == 1;
}

static bool is_pending(int sig)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, sig) == 1;
}

START_TEST(a_pipe_without_a_reader_is_an_error_alone)
{
    struct ms_calm c;
    const int fd = pipe_without_reader();
    signal(SIGPIPE, SIG_DFL); /* would end this process */
    ms_calm(&c, false);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    ms_calm_end(&c);
    ck_assert_int_eq(errno, EPIPE);
    ck_assert(!is_blocked(SIGPIPE) && !is_pending(SIGPIPE));
}
END_TEST

START_TEST(a_file_past_the_limit_is_an_error_alone)
{
    char name[] = "/tmp/msprobe-calm-XXXXXX";
    const int fd = mkstemp(name);
    struct rlimit old, little;
    struct ms_calm c;
    signal(SIGXFSZ, SIG_DFL);
    getrlimit(RLIMIT_FSIZE, &old);
    little = (struct rlimit){4, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
    ms_calm_file(&c);
    const ssize_t first = write(fd, "four", 4), second = write(fd, "x", 1);
    ms_calm_end(&c);
    const int why = errno;
    setrlimit(RLIMIT_FSIZE, &old);
    unlink(name);
    ck_assert_int_eq(first, 4);
    ck_assert_int_eq(second, -1);
    ck_assert_int_eq(why, EFBIG);
    ck_assert(!is_blocked(SIGXFSZ) && !is_pending(SIGXFSZ));
}
END_TEST

START_TEST(a_signal_of_the_program_stays_pending)
{
    struct ms_calm c;
    sigset_t set, old;
    const int fd = pipe_without_reader();
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    raise(SIGPIPE);
    ms_calm(&c, false);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    ms_calm_end(&c);
    ck_assert(is_blocked(SIGPIPE) && is_pending(SIGPIPE));
    const struct timespec now = {0};
    sigtimedwait(&set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
END_TEST

START_TEST(without_a_limit_a_file_is_written_as_it_is)
{
    struct ms_calm c;
    struct rlimit size;
    getrlimit(RLIMIT_FSIZE, &size);
    ms_calm_file(&c);
    ck_assert_int_eq(c.is_off, size.rlim_cur == RLIM_INFINITY);
    ck_assert_int_eq(is_blocked(SIGXFSZ), size.rlim_cur != RLIM_INFINITY);
    ms_calm_end(&c);
    ms_calm(&c, true);
    ck_assert(is_blocked(SIGTERM));
    ms_calm_end(&c);
    ck_assert(!is_blocked(SIGTERM));
}
END_TEST

TEST_MAIN("calm", a_pipe_without_a_reader_is_an_error_alone,
          a_file_past_the_limit_is_an_error_alone, a_signal_of_the_program_stays_pending,
          without_a_limit_a_file_is_written_as_it_is)
