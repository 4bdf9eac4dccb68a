/* SPDX-License-Identifier: MIT */
#include "probe/base/progress.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

START_TEST(a_file_and_a_pipe_take_whole_lines)
{
    int null = open("/dev/null", O_WRONLY), ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    setenv("TERM", "xterm", 1);
    ck_assert(!ms_progress_ok(null));
    ck_assert(!ms_progress_ok(ends[1]));
    ck_assert(!ms_progress_ok(-1));
    close(null);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(a_terminal_is_believed_unless_it_is_dumb)
{
    int tty = posix_openpt(O_RDWR | O_NOCTTY);
    if (tty < 0) {
        printf("skip: no pseudo-terminal on this machine\n");
        return;
    }
    setenv("TERM", "xterm", 1);
    ck_assert(ms_progress_ok(tty));
    setenv("TERM", "dumb", 1);
    ck_assert(!ms_progress_ok(tty));
    unsetenv("TERM");
    ck_assert(!ms_progress_ok(tty));
    close(tty);
}
END_TEST

TEST_MAIN("progress", a_file_and_a_pipe_take_whole_lines, a_terminal_is_believed_unless_it_is_dumb)
