/* SPDX-License-Identifier: MIT */
#include "probe/base/human.h"

#include "tests/support/check.h"

#include <math.h>

static char buf[MS_HUMAN_MAX];

START_TEST(counts_have_a_comma_every_three_digits)
{
    static const struct {
        uint64_t n;
        const char *text;
    } table[] = {
        {0, "0"},
        {7, "7"},
        {999, "999"},
        {1000, "1,000"},
        {12345, "12,345"},
        {123456, "123,456"},
        {1284112, "1,284,112"},
        {UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        ck_assert_str_eq(ms_human_count(buf, table[i].n), table[i].text);
}
END_TEST

START_TEST(bytes_have_three_digits_and_a_unit)
{
    static const struct {
        uint64_t n;
        const char *text;
    } table[] = {
        {0, "0 B"},
        {512, "512 B"},
        {999, "999 B"},
        {1000, "1.00 kB"},
        {1400, "1.40 kB"},
        {9994, "9.99 kB"},
        {9995, "10.0 kB"},
        {99949, "99.9 kB"},
        {99950, "100 kB"},
        {999499, "999 kB"},
        {999500, "1.00 MB"}, /* not 1000 kB */
        {86400000, "86.4 MB"},
        {35000000000, "35.0 GB"},
        {UINT64_C(2400000000000), "2.40 TB"},
        {UINT64_C(7000000000000000), "7.00 PB"},
        {UINT64_MAX, "18.4 EB"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        ck_assert_str_eq(ms_human_bytes(buf, table[i].n), table[i].text);
}
END_TEST

START_TEST(times_go_from_nanoseconds_to_minutes)
{
    static const struct {
        int64_t ns;
        const char *text;
    } table[] = {
        {0, "0 ns"},
        {850, "850 ns"},
        {999, "999 ns"},
        {1000, "1.00 us"},
        {3200000, "3.20 ms"},
        {999600000, "1.00 s"},
        {2500000000, "2.50 s"},
        {99400000000, "99.4 s"},
        {99600000000, "1 min 40 s"},
        {119600000000, "2 min 0 s"}, /* not 1 min 60 s */
        {250000000000, "4 min 10 s"},
        {-1500, "-1.50 us"},
        {-250000000000, "-4 min 10 s"},
        {INT64_MAX, "153722867 min 17 s"},
        {INT64_MIN, "-153722867 min 17 s"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        ck_assert_str_eq(ms_human_time(buf, table[i].ns), table[i].text);
}
END_TEST

START_TEST(factors_have_two_digits_and_commas)
{
    ck_assert_str_eq(ms_human_factor(buf, 3.24), "3.2");
    ck_assert_str_eq(ms_human_factor(buf, 47.4), "47");
    ck_assert_str_eq(ms_human_factor(buf, 129167), "130,000");
    ck_assert_str_eq(ms_human_factor(buf, 2791667), "2,800,000");
    ck_assert_str_eq(ms_human_factor(buf, 9.99e11), "1,000,000,000,000");
    ck_assert_str_eq(ms_human_factor(buf, 2e300), "2.0e+300");
    ck_assert_str_eq(ms_human_factor(buf, INFINITY), "inf");
}
END_TEST

START_TEST(the_longest_text_fits)
{
    ck_assert_uint_lt(strlen(ms_human_count(buf, UINT64_MAX)), MS_HUMAN_MAX);
    ck_assert_uint_lt(strlen(ms_human_time(buf, INT64_MIN)), MS_HUMAN_MAX);
    ck_assert_ptr_eq(ms_human_bytes(buf, 5), buf);
}
END_TEST

START_TEST(cells_have_one_width_and_nothing_that_a_terminal_obeys)
{
    static const struct {
        struct ms_str text;
        const char *cell;
    } table[] = {
        {MS_STR("ab"), "ab    "},
        {MS_STR("abcdef"), "abcdef"},
        {MS_STR("abcdefg"), "abc..."},
        {MS_STR("a\x1b[1m"), "a.[1m "},
        {MS_STR("\xc2\x9b"
                "1"),
         ".1    "},
        {MS_STR("\xff"
                "b"),
         ".b    "},
        {MS_STR("\xe5\xb1\x82"), "\xe5\xb1\x82     "},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ms_buf b = {.max = 64};
        ms_human_cell(&b, table[i].text, 6);
        ms_buf_z(&b);
        ck_assert_str_eq(b.p, table[i].cell);
        ms_buf_free(&b);
    }
}
END_TEST

START_TEST(what_is_left_out_is_counted)
{
    struct ms_buf b = {.max = 128};
    ms_human_more(&b, 0, " names");
    ck_assert_uint_eq(b.n, 0);
    ms_human_more(&b, 1284, " names");
    ms_buf_z(&b);
    ck_assert_str_eq(b.p, "  ... 1,284 more names; --most 0 shows all\n");
    ms_buf_free(&b);
}
END_TEST

TEST_MAIN("human", counts_have_a_comma_every_three_digits, bytes_have_three_digits_and_a_unit,
          times_go_from_nanoseconds_to_minutes, factors_have_two_digits_and_commas,
          the_longest_text_fits, cells_have_one_width_and_nothing_that_a_terminal_obeys,
          what_is_left_out_is_counted)
