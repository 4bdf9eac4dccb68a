/* SPDX-License-Identifier: MIT */
#define MS_LOG_DOMAIN "here"
#include "probe/base/log.h"

#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

/* What the log wrote since log_to. Settings are kept by the process, and with CK_FORK=no from
 * test to test, so each test uses domains of its own. */
static char dir[64];
static char path[80];

static void log_to(void)
{
    struct ms_err e = {0};
    snprintf(path, sizeof path, "%s/log", scratch_dir(dir));
    setenv("MSPROBE_LOG", path, 1);
    ck_ok(ms_log_from_env(&e), e);
    unsetenv("MSPROBE_LOG");
}

static const char *logged(void)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    scratch_remove(dir);
    return text;
}

static size_t lines_in(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

START_TEST(arguments_of_a_level_that_is_off_are_not_evaluated)
{
    int evaluated = 0;
    ms_log_set_level(MS_LOG_WARN);
    ms_info("%d", ++evaluated);
    ms_debug(1, "%d", ++evaluated);
    ck_assert_int_eq(evaluated, 0);
    log_to();
    ms_warn("%d", ++evaluated);
    ck_assert_int_eq(evaluated, 1);
    ck_assert_uint_eq(lines_in(logged()), 1);
}
END_TEST

START_TEST(a_line_has_time_level_domain_process_and_text)
{
    log_to();
    ms_warn("read %d records", 12);
    double ms;
    char level;
    char domain[16];
    int pid;
    char text[32];
    ck_assert_int_eq(sscanf(logged(), "%lf %c %15s %d: %31[^\n]", &ms, &level, domain, &pid, text),
                     5);
    ck_assert(ms >= 0);
    ck_assert_int_eq(level, 'W');
    ck_assert_str_eq(domain, "here");
    ck_assert_int_eq(pid, getpid());
    ck_assert_str_eq(text, "read 12 records");
}
END_TEST

START_TEST(the_rank_is_shown_once_it_is_known)
{
    log_to();
    ms_warn("first");
    ms_log_set_rank(3);
    ms_warn("second");
    ms_log_set_rank(-1);
    ms_warn("third");
    const char *text = logged();
    const char *rank = strstr(text, " here rank 3 ");
    ck_assert_ptr_nonnull(rank);
    ck_assert(rank > strstr(text, "first") && rank < strstr(text, "second"));
    ck_assert_ptr_null(strstr(strstr(text, "second"), "rank"));
}
END_TEST

START_TEST(the_level_says_what_is_written)
{
    static const struct {
        enum ms_log_level level;
        size_t lines;
    } table[] = {{MS_LOG_ERROR, 1},  {MS_LOG_WARN, 2},   {MS_LOG_INFO, 3},
                 {MS_LOG_DEBUG1, 4}, {MS_LOG_DEBUG2, 5}, {MS_LOG_DEBUG3, 6}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        log_to();
        ms_log_set_level(table[i].level);
        ms_error("e");
        ms_warn("w");
        ms_info("i");
        for (int n = 1; n <= 3; n++)
            ms_debug(n, "%d", n);
        ms_log_set_level(MS_LOG_WARN);
        ck_assert_uint_eq(lines_in(logged()), table[i].lines);
    }
}
END_TEST

START_TEST(a_domain_has_a_level_of_its_own)
{
    struct ms_err e = {0};
    ck_ok(ms_log_configure("two:2,one", &e), e);
    log_to();
    ms_log_write(MS_LOG_DEBUG1, "one", "yes 1");
    ms_log_write(MS_LOG_DEBUG2, "one", "no");
    ms_log_write(MS_LOG_DEBUG2, "two", "yes 2");
    ms_log_write(MS_LOG_DEBUG3, "two", "no");
    ms_log_write(MS_LOG_DEBUG1, "three", "no");
    ms_log_write(MS_LOG_INFO, "twofold", "no");
    const char *text = logged();
    ck_assert_uint_eq(lines_in(text), 2);
    ck_assert_ptr_null(strstr(text, "no"));
}
END_TEST

START_TEST(all_and_a_bare_number_mean_every_domain)
{
    static const char *const specs[] = {"all:2", "2", "somewhere:3,all:2"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct ms_err e = {0};
        ck_ok(ms_log_configure(specs[i], &e), e);
        log_to();
        ms_debug(2, "yes");
        ms_debug(3, "no");
        ms_log_set_level(MS_LOG_WARN);
        ck_assert_uint_eq(lines_in(logged()), 1);
    }
}
END_TEST

START_TEST(a_bad_setting_says_what_is_allowed)
{
    static const struct {
        const char *spec, *says;
    } table[] = {{"", "DOMAIN[:LEVEL]"},
                 {"a:0", "1, 2 or 3"},
                 {"a:4", "1, 2 or 3"},
                 {"a:", "1, 2 or 3"},
                 {"a:x", "'x'"},
                 {"a,", "DOMAIN[:LEVEL]"},
                 {":1", "DOMAIN"},
                 {"7", "1, 2 or 3"},
                 {"99999999999999999999", "1, 2 or 3"},
                 {"a:-1", "1, 2 or 3"},
                 {"a_name_that_is_far_too_long", "a_name_that"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ms_err e = {0};
        ck_assert_int_eq(ms_log_configure(table[i].spec, &e), MS_E_ARG);
        ck_says(e, table[i].says);
    }
}
END_TEST

START_TEST(the_environment_sets_levels_and_file)
{
    struct ms_err e = {0};
    setenv("MSPROBE_DEBUG", "fromenv:3", 1);
    log_to();
    ms_log_write(MS_LOG_DEBUG3, "fromenv", "yes");
    ck_assert_uint_eq(lines_in(logged()), 1);
    setenv("MSPROBE_DEBUG", "", 1);
    setenv("MSPROBE_LOG", "", 1);
    ck_ok(ms_log_from_env(&e), e);
    setenv("MSPROBE_DEBUG", "x:9", 1);
    ck_assert_int_eq(ms_log_from_env(&e), MS_E_ARG);
    ck_says(e, "MSPROBE_DEBUG: bad debug level '9'");
    unsetenv("MSPROBE_DEBUG");
    setenv("MSPROBE_LOG", "/nowhere/at/all", 1);
    ms_err_clear(&e);
    ck_assert_int_eq(ms_log_from_env(&e), MS_E_NOTFOUND);
    ck_says(e, "MSPROBE_LOG: /nowhere/at/all");
    unsetenv("MSPROBE_LOG");
}
END_TEST

START_TEST(a_file_that_exists_is_continued)
{
    log_to();
    write_file(path, "before\n", 7);
    ms_warn("after");
    const char *text = logged();
    ck_assert_uint_eq(lines_in(text), 2);
    ck_assert_int_eq(strncmp(text, "before\n", 7), 0);
}
END_TEST

START_TEST(a_long_line_is_cut_and_stays_a_line)
{
    static char big[5000];
    memset(big, 'x', sizeof big - 1);
    log_to();
    ms_warn("%s", big);
    ms_warn("next");
    const char *text = logged();
    ck_assert_uint_eq(lines_in(text), 2);
    ck_assert_uint_le((size_t)(strchr(text, '\n') - text), 1023);
    ck_assert_ptr_nonnull(strstr(text, "xxxx"));
}
END_TEST

enum { THREADS = 4, LINES = 500 };

static void *write_lines(void *name)
{
    for (int i = 0; i < LINES; i++)
        ms_warn("%s %03d %s", (const char *)name, i, "a text of some length to be torn apart");
    return NULL;
}

START_TEST(lines_of_several_threads_do_not_mix)
{
    static char names[THREADS][4] = {"t0", "t1", "t2", "t3"};
    pthread_t t[THREADS];
    log_to();
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, write_lines, names[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    const char *text = logged();
    ck_assert_uint_eq(lines_in(text), THREADS * LINES);
    for (const char *p = text; *p != '\0'; p = strchr(p, '\n') + 1) {
        const char *at = strstr(p, ": t");
        ck_assert_ptr_nonnull(at);
        ck_assert_int_eq(strncmp(at + 9, "a text of some length to be torn apart\n", 39), 0);
    }
}
END_TEST

START_TEST(the_last_setting_of_a_domain_counts)
{
    struct ms_err e = {0};
    ck_ok(ms_log_configure("again:1,again:3", &e), e);
    log_to();
    ms_log_write(MS_LOG_DEBUG3, "again", "yes");
    for (int i = 0; i < 100; i++)
        ck_ok(ms_log_configure("again:1", &e), e);
    ms_log_write(MS_LOG_DEBUG3, "again", "no");
    ck_assert_uint_eq(lines_in(logged()), 1);
}
END_TEST

START_TEST(too_many_domains_are_refused)
{
    struct ms_err e = {0};
    enum ms_rc rc = MS_OK;
    int n = 0;
    for (; n < 100 && rc == MS_OK; n++) {
        char spec[32];
        snprintf(spec, sizeof spec, "many%d:1", n);
        rc = ms_log_configure(spec, &e);
    }
    ck_assert_int_eq(rc, MS_E_LIMIT);
    ck_says(e, "all:LEVEL");
}
END_TEST

START_TEST(writing_a_line_keeps_errno)
{
    struct ms_err e = {0};
    setenv("MSPROBE_LOG", "/dev/full", 1);
    ck_ok(ms_log_from_env(&e), e);
    unsetenv("MSPROBE_LOG");
    errno = ENOENT;
    ms_warn("nobody reads this");
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(text_cannot_forge_a_line_or_reach_the_terminal)
{
    log_to();
    ms_warn("name %s", "a\n0.1 E here 1: forged\r\x1b[31m\x7f\tend \xc3\xa4");
    const char *text = logged();
    ck_assert_uint_eq(lines_in(text), 1);
    ck_assert_ptr_nonnull(strstr(text, "name a?0.1 E here 1: forged??[31m??end \xc3\xa4\n"));
}
END_TEST

START_TEST(a_cut_line_says_so_and_holds_whole_characters)
{
    static char big[3000];
    log_to();
    for (size_t i = 0; i + 3 < sizeof big; i += 3)
        memcpy(big + i, "\xe2\x86\x92", 3);
    for (int shift = 0; shift < 3; shift++)
        ms_warn("%.*s%s", shift, "aa", big);
    const char *text = logged();
    ck_assert_uint_eq(lines_in(text), 3);
    for (const char *end = strchr(text, '\n'); end != NULL; end = strchr(end + 1, '\n'))
        ck_assert_mem_eq(end - 6, "\xe2\x86\x92...", 6);
}
END_TEST

START_TEST(a_second_file_replaces_the_first)
{
    for (int i = 0; i < 100; i++) {
        log_to();
        ms_warn("one");
        ck_assert_uint_eq(lines_in(logged()), 1);
    }
    int fd = open("/dev/null", O_RDONLY);
    ck_assert_int_lt(fd, 50);
    close(fd);
}
END_TEST

START_TEST(the_code_of_a_failure_does_not_depend_on_who_listens)
{
    setenv("MSPROBE_DEBUG", "x:9", 1);
    ck_assert_int_eq(ms_log_from_env(NULL), MS_E_ARG);
    unsetenv("MSPROBE_DEBUG");
}
END_TEST

TEST_MAIN("log", arguments_of_a_level_that_is_off_are_not_evaluated,
          a_line_has_time_level_domain_process_and_text, the_rank_is_shown_once_it_is_known,
          the_level_says_what_is_written, a_domain_has_a_level_of_its_own,
          all_and_a_bare_number_mean_every_domain, a_bad_setting_says_what_is_allowed,
          the_environment_sets_levels_and_file, a_file_that_exists_is_continued,
          a_long_line_is_cut_and_stays_a_line, lines_of_several_threads_do_not_mix,
          the_last_setting_of_a_domain_counts, too_many_domains_are_refused,
          writing_a_line_keeps_errno, text_cannot_forge_a_line_or_reach_the_terminal,
          a_cut_line_says_so_and_holds_whole_characters, a_second_file_replaces_the_first,
          the_code_of_a_failure_does_not_depend_on_who_listens)
