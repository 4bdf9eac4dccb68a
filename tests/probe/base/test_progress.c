/* SPDX-License-Identifier: MIT */
#include "probe/base/progress.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdio.h>
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

/* Shows 0 and, 1.1 s later, 5 of 10 parts on a terminal in place of standard error. Returns what stands there. */
static const char *show_half(struct ms_progress *p, const char *term, char line[256])
{
    const int ours = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0)
        return NULL;
    const int its = open(ptsname(ours), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(its, 0);
    setenv("TERM", term, 1);
    ck_assert_int_eq(dup2(its, STDERR_FILENO), STDERR_FILENO);
    ms_progress_part(p, 0, 10, MS_PACE_RANKS);
    usleep(1100000);
    ms_progress_part(p, 5, 10, MS_PACE_RANKS);
    ms_progress_end(p);
    fputs("|", stderr); /* there is always something to read */
    ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    const ssize_t n = read(ours, line, 255);
    line[n > 0 ? n : 0] = '\0';
    close(its);
    close(saved);
    close(ours);
    return line;
}

START_TEST(parts_are_shown_with_rate_and_remaining_time)
{
    struct ms_progress p = {.what = "reading"};
    char line[256], bar[64] = "", end[64] = "";
    double rate = 0, left = 0;
    if (show_half(&p, "xterm", line) == NULL) {
        printf("skip: no pseudo-terminal on this machine\n");
        return;
    }
    ck_assert_msg(sscanf(line, "\rreading [%60[#]%*[ ]] 50%%, %lf ranks/s, %lf s left%60[^|]|", bar,
                         &rate, &left, end) == 4,
                  "%s", line);
    ck_assert_str_eq(bar, "###############");
    ck_assert_msg(rate > 1 && rate < 4.6, "%g", rate); /* 5 in 1.1 s or, on a busy machine, more */
    ck_assert_msg(left >= 1.1, "%g", left);
    ck_assert_str_eq(end, "\033[K\r\033[K");
}
END_TEST

START_TEST(nothing_is_shown_on_a_dumb_terminal_or_without_a_line)
{
    struct ms_progress p = {.what = "reading"};
    char line[256];
    if (show_half(&p, "dumb", line) != NULL)
        ck_assert_str_eq(line, "|");
    ms_progress_part(NULL, 1, 2, MS_PACE_RANKS);
}
END_TEST

TEST_MAIN("progress", a_file_and_a_pipe_take_whole_lines, a_terminal_is_believed_unless_it_is_dumb,
          parts_are_shown_with_rate_and_remaining_time,
          nothing_is_shown_on_a_dumb_terminal_or_without_a_line)
