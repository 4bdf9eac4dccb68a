/* SPDX-License-Identifier: MIT
 *
 * The handlers belong to the program, which no library holds, so their file is
 * taken in here.  Each case runs in a child that is expected to die.
 */
#include "probe/cli/signals.c"

#include "probe/base/mapsafe.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char dir[64], tmp[128], said[8192];

static void set_up(void)
{
    scratch_dir(dir);
    snprintf(tmp, sizeof tmp, "%s/out.1.tmp", dir);
    write_file(tmp, "x", 1);
}

static void tear_down(void)
{
    scratch_remove(dir);
}

static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
static int signal_to_raise;

/* Run `die` in a child that has installed the handlers and a temporary file; its wait status.
 * What it wrote to stderr goes to `said`. */
static int status_of(void (*die)(void))
{
    static char name[] = "msprobe";
    static char word[] = "stat";
    char *argv[] = {name, word, NULL};
    int fd[2];
    int status;
    ck_assert_int_eq(pipe(fd), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], STDERR_FILENO);
        close(fd[0]);
        ms_tmp_register(tmp);
        /* The test runner catches some of them. */
        for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
            signal(stops[i], SIG_DFL);
        signals_install(2, argv, true);
        die();
        _exit(99);
    }
    close(fd[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(fd[0], said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = '\0';
    close(fd[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static void raise_it(void)
{
    raise(signal_to_raise);
}

START_TEST(a_stop_removes_temporaries_and_dies_by_its_signal)
{
    signal_to_raise = stops[_i];
    int status = status_of(raise_it);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), stops[_i]);
    ck_assert_int_ne(access(tmp, F_OK), 0);
    const bool asked = stops[_i] == SIGINT || stops[_i] == SIGTERM;
    const char *words = "msprobe: stopped; what was not finished has been removed\n";
    ck_assert_str_eq(said, asked ? words : "");
}
END_TEST

static void ignore_then_raise(void)
{
    static char name[] = "msprobe";
    char *argv[] = {name, NULL};
    signal(SIGINT, SIG_IGN);
    signals_install(1, argv, true);
    raise(SIGINT);
    _exit(7);
}

START_TEST(what_the_parent_ignores_stays_ignored)
{
    signal(SIGINT, SIG_DFL);
    pid_t child = fork();
    int status;
    if (child == 0)
        ignore_then_raise();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

static void read_a_shortened_file(void)
{
    int fd = open(tmp, O_RDWR);
    if (ftruncate(fd, 1 << 16) != 0)
        return;
    volatile const char *p = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, fd, 0);
    if (ftruncate(fd, 0) != 0)
        return;
    (void)p[1 << 15];
}

/* A sanitizer that was there first keeps its own report. */
static bool handlers_are_ours(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
    return !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
    return true;
#endif
}

START_TEST(input_cut_short_while_it_is_mapped_is_an_error_in_one_line)
{
    if (!handlers_are_ours())
        return;
    int status = status_of(read_a_shortened_file);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), MS_EXIT_FAIL);
    ck_assert_ptr_nonnull(strstr(said, "an input file became shorter while it was read"));
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
    ck_assert_int_ne(access(tmp, F_OK), 0);
}
END_TEST

/* What a file of one page gave, twice its length: a letter, then zero where nothing is any more. */
static int read_safely(bool within)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open(tmp, O_RDWR);
    if (fd < 0 || ftruncate(fd, (off_t)(2 * page)) != 0)
        return 10;
    volatile const char *p = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE, fd, 0);
    ms_mapsafe_begin();
    ms_mapsafe_begin();
    bool torn = ms_mapsafe_end() || p[0] != 'x';
    if (ftruncate(fd, (off_t)page) != 0 || torn)
        return 11;
    if (!within && ms_mapsafe_end())
        return 12;
    char read = p[page];
    return read != 0 || p[0] != 'x' || !ms_mapsafe_end() ? 13 : 0;
}

static void read_within(void)
{
    _exit(read_safely(true));
}

static void read_outside(void)
{
    _exit(read_safely(false));
}

START_TEST(who_asks_for_it_reads_zeros_from_a_file_cut_short)
{
    int status = status_of(read_within);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(who_does_not_ends_as_before)
{
    if (!handlers_are_ours())
        return;
    int status = status_of(read_outside);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), MS_EXIT_FAIL);
    ck_assert_ptr_nonnull(strstr(said, "an input file became shorter while it was read"));
}
END_TEST

static const int crashes[] = {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGBUS};

START_TEST(a_crash_tells_the_command_and_the_stack)
{
    if (!handlers_are_ours())
        return;
    signal_to_raise = crashes[_i];
    int status = status_of(raise_it);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), crashes[_i]);
    ck_assert_ptr_nonnull(strstr(said, "msprobe: crashed, "));
    ck_assert_ptr_nonnull(strstr(said, "\nmsprobe " MS_VERSION ": stat\n"));
    ck_assert_ptr_nonnull(strstr(said, "test_signals("));
    ck_assert_int_ne(access(tmp, F_OK), 0);
}
END_TEST

/* Deeper than any stack, and not a loop to a compiler. */
static unsigned overflow(unsigned depth)
{
    volatile char frame[4096];
    frame[depth % sizeof frame] = (char)depth;
    return depth == UINT32_MAX ? 0 : overflow(depth + 1) + (unsigned)frame[0];
}

static void overflow_the_stack(void)
{
    signal_to_raise = (int)overflow(1);
}

START_TEST(a_stack_that_overflows_is_reported_too)
{
    if (!handlers_are_ours())
        return;
    int status = status_of(overflow_the_stack);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
    ck_assert_ptr_nonnull(strstr(said, "bad memory access"));
}
END_TEST

START_TEST(a_long_command_line_is_cut)
{
    static char text[4000];
    char *argv[] = {text, text, NULL};
    memset(text, 'x', sizeof text - 1);
    note_command_line(2, argv);
    ck_assert_uint_eq(strlen(crash_text), sizeof crash_text - 1);
    ck_assert_int_eq(crash_text[sizeof crash_text - 2], '\n');
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("signals");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 30);
    tcase_add_loop_test(tc, a_stop_removes_temporaries_and_dies_by_its_signal, 0,
                        (int)(sizeof stops / sizeof *stops));
    tcase_add_test(tc, what_the_parent_ignores_stays_ignored);
    tcase_add_test(tc, input_cut_short_while_it_is_mapped_is_an_error_in_one_line);
    tcase_add_test(tc, who_asks_for_it_reads_zeros_from_a_file_cut_short);
    tcase_add_test(tc, who_does_not_ends_as_before);
    tcase_add_loop_test(tc, a_crash_tells_the_command_and_the_stack, 0,
                        (int)(sizeof crashes / sizeof *crashes));
    tcase_add_test(tc, a_stack_that_overflows_is_reported_too);
    tcase_add_test(tc, a_long_command_line_is_cut);
    return run_case("signals", tc);
}
