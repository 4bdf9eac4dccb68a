/* SPDX-License-Identifier: MIT */
#include "probe/base/str.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <sys/mman.h>
#include <wchar.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

static struct ms_str z(const char *text)
{
    return ms_str_of(text);
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* ---- slices ----------------------------------------------------------- */

START_TEST(equal_means_same_length_and_bytes)
{
    ck_assert(ms_str_eq(z("abc"), MS_STR("abc")));
    ck_assert(!ms_str_eq(z("abc"), z("ab")));
    ck_assert(!ms_str_eq(MS_STR("a\0b"), MS_STR("a\0c")));
    ck_assert(ms_str_eq(MS_STR_NONE, z("")));
    ck_assert(ms_str_is(z("abc"), "abc"));
    ck_assert(!ms_str_is(MS_STR("abc\0"), "abc"));
    ck_assert(ms_str_is(MS_STR_NONE, ""));
}
END_TEST

START_TEST(starts_and_ends_compare_whole_parts)
{
    ck_assert(ms_str_starts(z("rank12"), z("rank")));
    ck_assert(!ms_str_starts(z("ran"), z("rank")));
    ck_assert(ms_str_ends(z("dump.json"), z(".json")));
    ck_assert(!ms_str_ends(z("json"), z(".json")));
    ck_assert(ms_str_starts(z("x"), z("")));
    ck_assert(ms_str_ends(z("x"), z("")));
}
END_TEST

START_TEST(a_part_past_the_end_is_cut)
{
    static const struct {
        uint32_t from, to;
        const char *part;
    } table[] = {
        {0, 6, "abcdef"}, {0, 0, ""},           {2, 4, "cd"}, {4, 99, "ef"},
        {6, 6, ""},       {99, UINT32_MAX, ""}, {4, 2, ""},   {0, UINT32_MAX, "abcdef"},
    };
    for (size_t i = 0; i < LEN(table); i++) {
        struct ms_str got = ms_str_sub(z("abcdef"), table[i].from, table[i].to);
        ck_assert_msg(ms_str_is(got, table[i].part), "row %zu: %.*s", i, MS_STR_ARG(got));
    }
}
END_TEST

START_TEST(byte_order_puts_the_shorter_first_and_counts_bytes_unsigned)
{
    static const struct {
        const char *a, *b;
        int order;
    } table[] = {
        {"", "", 0},      {"", "a", -1},       {"a", "ab", -1},         {"ab", "aa", 1},
        {"b", "aaaa", 1}, {"\x80", "\x7f", 1}, {"rank10", "rank2", -1},
    };
    for (size_t i = 0; i < LEN(table); i++) {
        ck_assert_int_eq(sign(ms_str_cmp(z(table[i].a), z(table[i].b))), table[i].order);
        ck_assert_int_eq(sign(ms_str_cmp(z(table[i].b), z(table[i].a))), -table[i].order);
    }
    ck_assert_int_eq(ms_str_cmp(MS_STR_NONE, z("")), 0);
}
END_TEST

/* Already in order: every pair of the list is checked both ways, which is also
 * what makes the order fit for sorting. */
START_TEST(natural_order_compares_digits_by_value)
{
    static const char *const sorted[] = {
        "",
        "-1",
        "0",
        "00",
        "01",
        "1",
        "2",
        "10",
        "99999999999999999999999998",
        "99999999999999999999999999",
        "100000000000000000000000000",
        "Rank1",
        "a",
        "a0b",
        "a01",
        "a1",
        "a1.2",
        "a1.10",
        "a01b02",
        "a1b2",
        "a01b3",
        "a1c",
        "rank",
        "rank0",
        "rank1",
        "rank2",
        "rank2/step9",
        "rank2/step10",
        "rank10",
        "rank10x",
        "rankx",
        "\xc3\xa4",
    };
    for (size_t i = 0; i < LEN(sorted); i++) {
        for (size_t j = 0; j < LEN(sorted); j++)
            ck_assert_msg(sign(ms_str_cmp_natural(z(sorted[i]), z(sorted[j]))) == (i > j) - (i < j),
                          "'%s' and '%s'", sorted[i], sorted[j]);
    }
}
END_TEST

START_TEST(finding_tells_the_position_or_minus_one)
{
    struct ms_str s = MS_STR("a/b/c\0d");
    ck_assert_int_eq(ms_str_find(s, '/'), 1);
    ck_assert_int_eq(ms_str_rfind(s, '/'), 3);
    ck_assert_int_eq(ms_str_find(s, '\0'), 5);
    ck_assert_int_eq(ms_str_find(s, 'x'), -1);
    ck_assert_int_eq(ms_str_rfind(s, 'x'), -1);
    ck_assert_int_eq(ms_str_find_str(s, MS_STR("/c\0d")), 3);
    ck_assert_int_eq(ms_str_find_str(s, MS_STR("/d")), -1);
    ck_assert_int_eq(ms_str_find_str(s, z("")), 0);
    ck_assert_int_eq(ms_str_find_str(z("ab"), z("abc")), -1);
    ck_assert_int_eq(ms_str_find(MS_STR_NONE, 'x'), -1);
    ck_assert_int_eq(ms_str_rfind(MS_STR_NONE, 'x'), -1);
    ck_assert_int_eq(ms_str_find_str(MS_STR_NONE, z("x")), -1);
}
END_TEST

START_TEST(splitting_gives_every_part_also_empty_ones)
{
    static const struct {
        const char *text, *parts;
    } table[] = {
        {"", "[]"}, {"a", "[a]"}, {"a,b", "[a][b]"}, {",", "[][]"}, {"a,,b,", "[a][][b][]"}};
    for (size_t i = 0; i < LEN(table); i++) {
        struct ms_buf b = {.max = 100};
        struct ms_str rest = z(table[i].text);
        struct ms_str part;
        while (ms_str_split(&rest, ',', &part))
            ms_buf_printf(&b, "[%.*s]", MS_STR_ARG(part));
        ck_assert_str_eq(ms_buf_z(&b), table[i].parts);
        ck_assert_ptr_null(rest.p);
        ms_buf_free(&b);
    }
}
END_TEST

START_TEST(a_copy_ends_in_nul_and_is_independent)
{
    char text[] = "abcdef";
    char *copy = ms_str_dup(ms_str_sub(z(text), 1, 3));
    text[1] = 'x';
    ck_assert_str_eq(copy, "bc");
    ms_free(copy);
    copy = ms_str_dup(MS_STR_NONE);
    ck_assert_str_eq(copy, "");
    ms_free(copy);
    ms_mem_fail_at(1);
    ck_assert_ptr_null(ms_str_dup(z(text)));
    ms_mem_fail_at(0);
}
END_TEST

/* ---- numbers ---------------------------------------------------------- */

START_TEST(unsigned_numbers_are_whole_or_refused)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } table[] = {
        {"0", true, 0},
        {"007", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x10", false, 0},
        {"1e3", false, 0},
        {"\xd9\xa1", false, 0}, /* ARABIC-INDIC DIGIT ONE */
    };
    for (size_t i = 0; i < LEN(table); i++) {
        uint64_t v = 42;
        ck_assert_msg(ms_str_u64(z(table[i].text), &v) == table[i].good, "%s", table[i].text);
        ck_assert_uint_eq(v, table[i].good ? table[i].value : 42);
    }
}
END_TEST

START_TEST(signed_numbers_reach_both_ends)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } table[] = {
        {"-0", true, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"-18446744073709551616", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < LEN(table); i++) {
        int64_t v = 42;
        ck_assert_msg(ms_str_i64(z(table[i].text), &v) == table[i].good, "%s", table[i].text);
        ck_assert_int_eq(v, table[i].good ? table[i].value : 42);
    }
}
END_TEST

START_TEST(all_digits_means_at_least_one)
{
    ck_assert(ms_str_all_digits(z("0123456789")));
    ck_assert(!ms_str_all_digits(z("")));
    ck_assert(!ms_str_all_digits(z("12a")));
    ck_assert(!ms_str_all_digits(z("/0:")));
    ck_assert(!ms_str_all_digits(MS_STR_NONE));
}
END_TEST

/* ---- hash ------------------------------------------------------------- */

START_TEST(the_hash_depends_on_every_byte_and_the_length)
{
    char text[80];
    memset(text, 'a', sizeof text);
    for (uint32_t n = 1; n <= sizeof text; n++) {
        struct ms_str s = {text, n};
        uint64_t h = ms_str_hash(s);
        ck_assert_uint_eq(ms_str_hash(s), h);
        ck_assert_uint_ne(ms_str_hash(ms_str_sub(s, 0, n - 1)), h);
        for (uint32_t i = 0; i < n; i++) {
            text[i] ^= 1;
            ck_assert_uint_ne(ms_str_hash(s), h);
            text[i] ^= 1;
        }
    }
    ck_assert_uint_ne(ms_str_hash(MS_STR("a")), ms_str_hash(MS_STR("a\0")));
    ck_assert_uint_eq(ms_str_hash(MS_STR_NONE), ms_str_hash(z("")));
}
END_TEST

/* Names as dumps have them: low and high bits, both used as table positions,
 * fill 4096 buckets about as evenly as chance does (expected 16 in each). */
START_TEST(the_hash_spreads_similar_names)
{
    enum { BUCKETS = 4096, NAMES = BUCKETS * 16 };
    static unsigned low[BUCKETS], high[BUCKETS];
    memset(low, 0, sizeof low);
    memset(high, 0, sizeof high);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[80];
        snprintf(name, sizeof name, "Module.layers.%u.mlp.linear.Linear.forward.%u", i / 64,
                 i % 64);
        uint64_t h = ms_str_hash(z(name));
        low[h % BUCKETS]++;
        high[h >> 52]++;
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        ck_assert_uint_lt(low[i], 48);
        ck_assert_uint_lt(high[i], 48);
    }
}
END_TEST

/* ---- UTF-8 ------------------------------------------------------------ */

START_TEST(utf8_takes_the_well_formed_and_nothing_else)
{
    static const struct {
        const char *bytes;
        unsigned n, len;
    } table[] = {
        {"", 0, 0},
        {"\0", 1, 1},
        {"\x7f", 1, 1},
        {"\x80", 1, 0}, /* continuation alone */
        {"\xbf", 1, 0},
        {"\xc0\x80", 2, 0}, /* overlong NUL */
        {"\xc1\xbf", 2, 0}, /* overlong U+007F */
        {"\xc2\x80", 2, 2}, /* U+0080, the first of two bytes */
        {"\xc2", 1, 0},     /* cut */
        {"\xc2\x7f", 2, 0},
        {"\xc2\xc0", 2, 0},
        {"\xdf\xbf", 2, 2},     /* U+07FF */
        {"\xe0\x80\x80", 3, 0}, /* overlong */
        {"\xe0\x9f\xbf", 3, 0}, /* overlong U+07FF */
        {"\xe0\xa0\x80", 3, 3}, /* U+0800 */
        {"\xe0\xa0", 2, 0},     /* cut */
        {"\xe1\x80\x28", 3, 0}, /* bad third byte */
        {"\xed\x9f\xbf", 3, 3}, /* U+D7FF */
        {"\xed\xa0\x80", 3, 0}, /* surrogates */
        {"\xed\xbf\xbf", 3, 0},
        {"\xee\x80\x80", 3, 3},     /* U+E000 */
        {"\xef\xbf\xbf", 3, 3},     /* U+FFFF */
        {"\xf0\x80\x80\x80", 4, 0}, /* overlong */
        {"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong U+FFFF */
        {"\xf0\x90\x80\x80", 4, 4}, /* U+10000 */
        {"\xf0\x90\x80", 3, 0},     /* cut */
        {"\xf4\x8f\xbf\xbf", 4, 4}, /* U+10FFFF */
        {"\xf4\x90\x80\x80", 4, 0}, /* past the end of Unicode */
        {"\xf5\x80\x80\x80", 4, 0},
        {"\xf8\x88\x80\x80\x80", 5, 0}, /* five bytes */
        {"\xfe", 1, 0},
        {"\xff", 1, 0},
        {"a\xff", 2, 1}, /* only the first sequence counts */
    };
    for (size_t i = 0; i < LEN(table); i++)
        ck_assert_msg(ms_utf8_len(table[i].bytes, table[i].n) == table[i].len, "row %zu", i);
}
END_TEST

/* The encoder is the specification's table; decoding must accept just its image. */
START_TEST(utf8_takes_every_code_point_but_surrogates)
{
    for (uint32_t c = 0; c <= 0x110000; c++) {
        unsigned char u[4];
        unsigned len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
        for (unsigned i = 0; i < len; i++)
            u[i] = (unsigned char)(0x80 | ((c >> (6 * (len - 1 - i))) & 0x3F));
        u[0] = len == 1 ? (unsigned char)c : (unsigned char)(lead[len] | (c >> (6 * (len - 1))));
        bool good = (c < 0xD800 || c > 0xDFFF) && c <= 0x10FFFF;
        if (ms_utf8_len((const char *)u, len) != (good ? len : 0))
            ck_abort_msg("U+%04X", c);
    }
}
END_TEST

/* ---- buffer ----------------------------------------------------------- */

START_TEST(puts_append)
{
    struct ms_buf b = {.max = 1000};
    ck_assert_str_eq(ms_buf_z(&b), "");
    ms_buf_puts(&b, "one ");
    ms_buf_str(&b, z("two "));
    ms_buf_putc(&b, '3');
    ms_buf_put(&b, " 4\0 5", 5);
    ms_buf_printf(&b, " %s-%d", "six", 7);
    struct ms_err e = {0};
    ck_ok(ms_buf_check(&b, &e), e);
    ck_assert(ms_str_eq(ms_buf_slice(&b), MS_STR("one two 3 4\0 5 six-7")));
    ck_assert_uint_eq(ms_buf_z(&b)[b.n], 0);
    ms_buf_free(&b);
    ck_assert_uint_eq(b.max, 1000);
}
END_TEST

START_TEST(nothing_may_be_put)
{
    struct ms_buf b = {.max = 10};
    ms_buf_put(&b, NULL, 0);
    ms_buf_puts(&b, "");
    ms_buf_str(&b, MS_STR_NONE);
    ms_buf_printf(&b, "%s", "");
    ck_assert_int_eq(b.bad, MS_OK);
    ck_assert_str_eq(ms_buf_z(&b), "");
    ms_buf_free(&b);
}
END_TEST

START_TEST(the_maximum_is_reached_exactly_and_never_passed)
{
    struct ms_err e = {0};
    struct ms_buf b = {.max = 5};
    ms_buf_puts(&b, "12345");
    ck_ok(ms_buf_check(&b, &e), e);
    ck_assert_str_eq(ms_buf_z(&b), "12345");
    ck_assert_ptr_nonnull(ms_buf_room(&b, 0));
    ck_ok(ms_buf_check(&b, &e), e);
    ms_buf_putc(&b, '6');
    ck_assert_int_eq(ms_buf_check(&b, &e), MS_E_LIMIT);
    ck_says(e, "5 bytes");
    ck_assert_uint_eq(b.n, 5);
    ms_buf_free(&b);

    b = (struct ms_buf){.max = 5};
    ms_buf_printf(&b, "%d", 123456);
    ck_assert_int_eq(b.bad, MS_E_LIMIT);
    ck_assert_uint_eq(b.n, 0);
    ms_buf_free(&b);
}
END_TEST

START_TEST(a_kept_failure_makes_later_puts_do_nothing)
{
    struct ms_buf b = {.max = 4};
    ms_buf_puts(&b, "abcde");
    ms_buf_puts(&b, "x");
    ck_assert_uint_eq(b.n, 0);
    ck_assert_ptr_null(ms_buf_room(&b, 1));
    ms_buf_clear(&b);
    ms_buf_puts(&b, "x");
    ck_assert_str_eq(ms_buf_z(&b), "x");
    ms_buf_free(&b);
}
END_TEST

START_TEST(room_is_there_to_be_written)
{
    struct ms_buf b = {.max = 1 << 20};
    for (size_t n = 1; n < 2000; n += 37) {
        char *to = ms_buf_room(&b, n);
        memset(to, 'r', n);
        b.n += n;
    }
    ck_assert_uint_eq(strlen(ms_buf_z(&b)), b.n);
    ms_buf_free(&b);
}
END_TEST

START_TEST(out_of_memory_is_kept_and_nothing_leaks)
{
    size_t live = ms_mem_live();
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        struct ms_buf b = {.max = 1 << 20};
        struct ms_err e = {0};
        ms_mem_fail_at(n);
        for (int i = 0; i < 1000; i++)
            ms_buf_printf(&b, "line %d\n", i);
        failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert_int_eq(ms_buf_check(&b, &e), failed ? MS_E_NOMEM : MS_OK);
        ms_buf_free(&b);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    ck_assert_uint_gt(n, 3);
}
END_TEST

START_TEST(no_slice_is_an_empty_slice_everywhere)
{
    struct ms_str none = MS_STR_NONE;
    ck_assert_uint_eq(ms_str_sub(none, 0, 5).n, 0);
    ck_assert(ms_str_starts(none, none));
    ck_assert(ms_str_starts(z("a"), none));
    ck_assert(ms_str_ends(none, z("")));
    ck_assert(!ms_str_ends(none, z("a")));
    ck_assert_int_eq(ms_str_cmp_natural(none, z("")), 0);
}
END_TEST

START_TEST(a_buffer_without_a_maximum_grows_too)
{
    struct ms_buf b = {.max = SIZE_MAX};
    for (int i = 0; i < 100; i++)
        ms_buf_puts(&b, "0123456789");
    ck_assert_int_eq(b.bad, MS_OK);
    ck_assert_uint_eq(strlen(ms_buf_z(&b)), 1000);
    /* The size needed does not fit a size_t, or no machine has it. */
    volatile size_t huge = SIZE_MAX - 1000;
    ck_assert_ptr_null(ms_buf_room(&b, huge));
    ck_assert_int_eq(b.bad, MS_E_LIMIT);
    ms_buf_clear(&b);
    huge = SIZE_MAX / 2 + 10;
    ck_assert_ptr_null(ms_buf_room(&b, huge));
    ck_assert_int_eq(b.bad, MS_E_NOMEM);
    ms_buf_free(&b);
}
END_TEST

START_TEST(a_bad_buffer_shows_no_half_text)
{
    struct ms_buf b = {.max = 8};
    ms_buf_puts(&b, "12345");
    ms_buf_puts(&b, "6789");
    ck_assert_str_eq(ms_buf_z(&b), "");
    ms_buf_free(&b);
}
END_TEST

START_TEST(text_that_cannot_be_formatted_is_a_failure)
{
    struct ms_buf b = {.max = 1000};
    /* No character has this number, so vsnprintf fails. */
    ms_buf_printf(&b, "a%lcb", (wint_t)0x7fffffff);
    ck_assert_int_ne(b.bad, MS_OK);
    ck_assert_uint_eq(b.n, 0);
    ms_buf_free(&b);
}
END_TEST

START_TEST(the_longest_slice_is_hashed_to_its_end)
{
    size_t n = UINT32_MAX;
    char *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return; /* an address space this small cannot hold such a slice */
    uint64_t h = ms_str_hash((struct ms_str){p, UINT32_MAX});
    p[n - 1] = 'x';
    ck_assert_uint_ne(ms_str_hash((struct ms_str){p, UINT32_MAX}), h);
    munmap(p, n);
}
END_TEST

START_TEST(what_is_shown_is_printable_ascii_and_cut_to_the_room)
{
    char shown[MS_STR_SHOWN], longer[MS_STR_SHOWN + 8];
    ck_assert_str_eq(ms_str_shown(shown, MS_STR("\x1f !a}~\x7f\x80\xff")), "? !a}~???");
    ck_assert_str_eq(ms_str_shown(shown, (struct ms_str){0}), "");
    memset(longer, 'x', sizeof longer);
    for (uint32_t n = MS_STR_SHOWN - 2; n < sizeof longer; n++) {
        ms_str_shown(shown, (struct ms_str){longer, n});
        ck_assert_uint_eq(strlen(shown), n < MS_STR_SHOWN ? n : MS_STR_SHOWN - 1);
    }
}
END_TEST

TEST_MAIN("str", equal_means_same_length_and_bytes, starts_and_ends_compare_whole_parts,
          a_part_past_the_end_is_cut, byte_order_puts_the_shorter_first_and_counts_bytes_unsigned,
          natural_order_compares_digits_by_value, finding_tells_the_position_or_minus_one,
          splitting_gives_every_part_also_empty_ones, a_copy_ends_in_nul_and_is_independent,
          unsigned_numbers_are_whole_or_refused, signed_numbers_reach_both_ends,
          all_digits_means_at_least_one, the_hash_depends_on_every_byte_and_the_length,
          the_hash_spreads_similar_names, utf8_takes_the_well_formed_and_nothing_else,
          utf8_takes_every_code_point_but_surrogates, puts_append, nothing_may_be_put,
          the_maximum_is_reached_exactly_and_never_passed,
          a_kept_failure_makes_later_puts_do_nothing, room_is_there_to_be_written,
          out_of_memory_is_kept_and_nothing_leaks, no_slice_is_an_empty_slice_everywhere,
          a_buffer_without_a_maximum_grows_too, a_bad_buffer_shows_no_half_text,
          text_that_cannot_be_formatted_is_a_failure, the_longest_slice_is_hashed_to_its_end,
          what_is_shown_is_printable_ascii_and_cut_to_the_room)
