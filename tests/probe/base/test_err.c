/* SPDX-License-Identifier: MIT */
#include "probe/base/err.h"

#include "tests/support/check.h"

#include <errno.h>
#include <string.h>

START_TEST(first_failure_is_kept)
{
    struct ms_err e = {0};
    ck_assert_int_eq(ms_fail(&e, MS_E_FORMAT, "bad %s", "key"), MS_E_FORMAT);
    ms_fail(&e, MS_E_IO, "later");
    ck_assert_str_eq(e.msg, "bad key");
    ck_assert_int_eq(e.rc, MS_E_FORMAT);
    ck_assert_int_eq(e.off, -1);
}
END_TEST

START_TEST(a_null_error_only_returns_the_code)
{
    ck_assert_int_eq(ms_fail(NULL, MS_E_ARG, "x"), MS_E_ARG);
    errno = ENOENT;
    ck_assert_int_eq(ms_fail_sys(NULL, "x"), MS_E_NOTFOUND);
    ck_assert_int_eq(ms_err_wrap(NULL, "x"), MS_E_INTERNAL);
    ms_err_hint(NULL, "x");
    ms_err_clear(NULL);
}
END_TEST

START_TEST(the_place_is_shown_once_and_next_to_the_innermost_context)
{
    struct ms_err e = {0};
    ms_fail_at(&e, MS_E_FORMAT, 18234, 402113, "expected ','");
    ms_err_wrap(&e, "dump.json");
    ms_err_wrap(&e, "rank%d", 3);
    ck_assert_str_eq(e.msg, "rank3: dump.json: line 18234, byte 402113: expected ','");
}
END_TEST

START_TEST(a_place_without_lines_shows_the_byte)
{
    struct ms_err e = {0};
    ms_fail_at(&e, MS_E_FORMAT, 0, 17, "bad magic");
    ms_err_wrap(&e, "x.npy");
    ck_assert_str_eq(e.msg, "x.npy: byte 17: bad magic");
}
END_TEST

START_TEST(system_failures_name_the_reason)
{
    struct ms_err e = {0};
    errno = ENOSPC;
    ck_assert_int_eq(ms_fail_sys(&e, "out.csv"), MS_E_IO);
    ck_assert_str_eq(e.msg, "out.csv: No space left on device");
    ck_assert_int_eq(e.sys, ENOSPC);
}
END_TEST

START_TEST(a_hint_follows_the_message)
{
    struct ms_err e = {0};
    ms_err_hint(&e, "nothing to hint at");
    ck_assert_str_eq(e.msg, "");
    ms_fail(&e, MS_E_ARG, "no such rank");
    ms_err_hint(&e, "try rank %d", 0);
    ck_assert_str_eq(e.msg, "no such rank; try rank 0");
}
END_TEST

START_TEST(long_text_is_cut_never_overrun)
{
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    struct ms_err e = {0};
    ms_fail(&e, MS_E_ARG, "%s", big);
    ms_err_wrap(&e, "%s", big);
    ms_err_hint(&e, "%s", big);
    ck_assert_uint_eq(strlen(e.msg), sizeof e.msg - 1);
}
END_TEST

START_TEST(every_code_has_its_words)
{
    for (int rc = 0; rc < MS_RC_MAX; rc++)
        ck_assert_str_ne(ms_rc_text((enum ms_rc)rc), "unknown error");
    ck_assert_str_eq(ms_rc_text(MS_RC_MAX), "unknown error");
}
END_TEST

TEST_MAIN("err", first_failure_is_kept, a_null_error_only_returns_the_code,
          the_place_is_shown_once_and_next_to_the_innermost_context,
          a_place_without_lines_shows_the_byte, system_failures_name_the_reason,
          a_hint_follows_the_message, long_text_is_cut_never_overrun, every_code_has_its_words)
