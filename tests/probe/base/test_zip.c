/* SPDX-License-Identifier: MIT
 *
 * zip: archives that are right to the last byte, and the same ones wrong by one.
 */
#include "probe/base/zip.h"
#include "tests/support/check.h"

#include <stdint.h>
#include <sys/mman.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR = 20 };

/* An archive that is being made: members first, then the directory of those in `at`. */
static struct archive {
    char p[4096];
    size_t n;
    size_t at[8], name_n[8], data_n[8];
    const char *name[8];
    uint32_t members;
    size_t directory, directory_n, end;
} a;
static struct probe_zip z;

static void put(size_t at, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        a.p[at + i] = (char)(v >> 8 * i);
}

static void put_text(const char *text)
{
    memcpy(a.p + a.n, text, strlen(text));
    a.n += strlen(text);
}

static void begin(void)
{
    memset(&a, 0, sizeof a);
}

static void put_member(const char *name, const char *data)
{
    const uint32_t i = a.members++;
    a.at[i] = a.n;
    a.name[i] = name;
    a.name_n[i] = strlen(name);
    a.data_n[i] = strlen(data);
    put(a.n, 0x04034b50, 4);
    put(a.n + 26, strlen(name), 2);
    a.n += LOCAL;
    put_text(name);
    put_text(data);
}

/* Returns where the entry begins. */
static size_t put_entry(uint32_t i)
{
    const size_t at = a.n;
    put(at, 0x02014b50, 4);
    put(at + 16, 77 + i, 4);
    put(at + 20, a.data_n[i], 4);
    put(at + 24, a.data_n[i], 4);
    put(at + 28, a.name_n[i], 2);
    put(at + 42, a.at[i], 4);
    a.n += CENTRAL;
    put_text(a.name[i]);
    return at;
}

static void put_end(size_t directory_n)
{
    a.directory_n = directory_n;
    a.end = a.n;
    put(a.n, 0x06054b50, 4);
    put(a.n + 10, a.members, 2);
    put(a.n + 12, directory_n, 4);
    put(a.n + 16, a.directory, 4);
    a.n += END;
}

/* The directory in the order of the members, or the other way round. */
static void finish(bool backwards)
{
    a.directory = a.n;
    for (uint32_t i = 0; i < a.members; i++)
        put_entry(backwards ? a.members - 1 - i : i);
    put_end(a.n - a.directory);
}

static void put_end64(void)
{
    const size_t at = a.n;
    put(at, 0x06064b50, 4);
    put(at + 32, a.members, 8);
    put(at + 40, at - a.directory, 8);
    put(at + 48, a.directory, 8);
    put(at + END64, 0x07064b50, 4);
    put(at + END64 + 8, at, 8);
    a.n += END64 + LOCATOR;
}

/* The reader of archives of any size finds each member that the other one found, and no other. */
static void large_reads(const char *p, size_t n)
{
    struct probe_zip_large large = {0};
    struct ms_err e = {0};
    ck_ok(probe_zip_large_read(&large, p, n, 8, &e), e);
    ck_assert_uint_eq(large.members.n, z.n);
    for (uint32_t i = 0; i < z.n; i++) {
        const struct probe_zip_member *m = probe_zip_large_find(&large, z.member[i].name);
        ck_assert_ptr_nonnull(m);
        ck_assert_ptr_eq(m->data, z.member[i].data);
        ck_assert_uint_eq(m->size, z.member[i].size);
        ck_assert_uint_eq(m->begin, z.member[i].begin);
        ck_assert_uint_eq(m->end, z.member[i].end);
    }
    ck_assert_ptr_null(probe_zip_large_find(&large, MS_STR("of nobody")));
    probe_zip_large_free(&large);
}

static void large_refuses(const char *p, size_t n, const char *why)
{
    struct probe_zip_large large = {0};
    struct ms_err e = {0};
    ck_assert_int_ne(probe_zip_large_read(&large, p, n, 8, &e), MS_OK);
    ck_says(e, why);
    probe_zip_large_free(&large);
}

/* The archive between two pages that nobody may read, right behind the first or right before the second:
 * a reader that looks beyond it ends the test. */
static const char *fenced(bool is_at_end)
{
    enum { PAGE = 4096 };
    static char *room;
    if (room == NULL)
        room = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(room, MAP_FAILED);
    ck_assert_int_eq(mprotect(room + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    return memcpy(room + PAGE + (is_at_end ? PAGE - a.n : 0), a.p, a.n);
}

/* Both readers, which make the same checks. */
static void reads(uint32_t members)
{
    struct ms_err e = {0};
    ck_ok(probe_zip_read(&z, a.p, a.n, 8, &e), e);
    ck_assert_uint_eq(z.n, members);
    large_reads(a.p, a.n);
    for (int i = 0; i < 2; i++) {
        struct probe_zip fenced_in;
        ck_ok(probe_zip_read(&fenced_in, fenced(i == 1), a.n, 8, &e), e);
    }
}

static void refuses(const char *why)
{
    struct ms_err e = {0};
    ck_assert_int_ne(probe_zip_read(&z, a.p, a.n, 8, &e), MS_OK);
    ck_says(e, why);
    ck_assert_uint_eq(e.line, 0); /* an archive has bytes and no lines */
    large_refuses(a.p, a.n, why);
    for (int i = 0; i < 2; i++) {
        struct probe_zip fenced_in;
        ck_assert_int_ne(probe_zip_read(&fenced_in, fenced(i == 1), a.n, 8, &e), MS_OK);
        large_refuses(fenced(i == 1), a.n, why);
    }
}

static void two_members(void)
{
    begin();
    put_member("a/first", "one");
    put_member("a/second", "four");
    finish(false);
}

START_TEST(members_are_where_the_directory_says)
{
    two_members();
    reads(2);
    ck_assert_ptr_eq(probe_zip_find(&z, MS_STR("a/"), "first"), &z.member[0]);
    ck_assert_ptr_null(probe_zip_find(&z, MS_STR("a/"), "third"));
    const struct probe_zip_member *m = probe_zip_find(&z, MS_STR("a/"), "second");
    ck_assert_ptr_nonnull(m);
    ck_assert(memcmp(m->data, "four", 4) == 0);
    ck_assert_uint_eq(m->size, 4);
    ck_assert_uint_eq(m->unpacked, 4);
    ck_assert_uint_eq(m->crc, 78);
    ck_assert_uint_eq(m->method, 0);
    ck_assert_uint_eq(m->begin, a.at[1]);
    ck_assert_uint_eq(m->end, a.directory);
    ck_assert_ptr_null(probe_zip_find(&z, MS_STR("a/"), "secon"));
    ck_assert_ptr_null(probe_zip_find(&z, MS_STR("a/"), "x/second"));
    ck_assert_ptr_null(probe_zip_find(&z, MS_STR("b/"), "second"));
}
END_TEST

START_TEST(an_archive_may_hold_nothing_or_a_member_without_name_and_bytes)
{
    begin();
    finish(false);
    reads(0);
    begin();
    put_member("", "");
    finish(false);
    reads(1);
    begin();
    put_end64();
    put_end(0);
    put(a.end + 10, 0, 2);
    reads(0);
}
END_TEST

START_TEST(a_comment_ends_with_the_file)
{
    two_members();
    put(a.end + 20, 5, 2);
    put_text("words");
    reads(2);
    a.n--;
    refuses("no end record");
    a.n += 2;
    refuses("no end record");
    a.n = END - 1;
    refuses("no end record");
}
END_TEST

/* The most that a comment can be, and one byte more. */
START_TEST(the_longest_comment_is_searched_to_its_end)
{
    static char text[END + 65535 + 1];
    struct ms_err e = {0};
    memcpy(text, "PK\5\6", 4);
    text[20] = text[21] = '\xFF';
    ck_ok(probe_zip_read(&z, text, END + 65535, 8, &e), e);
    ck_assert_int_eq(probe_zip_read(&z, text, sizeof text, 8, &e), MS_E_FORMAT);
    ck_says(e, "no end record");
}
END_TEST

START_TEST(the_directory_lies_before_its_end_record)
{
    two_members();
    put(a.end + 16, a.end + 1, 4);
    refuses("a directory outside the file");
    put(a.end + 16, a.end, 4);
    put(a.end + 12, 0, 4);
    put(a.end + 10, 0, 2);
    reads(0);
    two_members();
    put(a.end + 12, a.directory_n + 1, 4);
    refuses("a directory outside the file");
    put(a.end + 12, a.directory_n - 1, 4);
    refuses("a directory entry that reaches past the end");
    two_members();
    put(a.end + 10, 1, 2);
    refuses("something after the last directory entry");
    put(a.end + 10, 3, 2);
    refuses("a wrong directory entry");
    put(a.end + 10, 8, 2);
    refuses("a wrong directory entry");
    put(a.end + 10, 9, 2);
    refuses("9 members in the zip archive; at most 8 are expected");
}
END_TEST

START_TEST(a_64_bit_end_record_comes_before_its_locator)
{
    begin();
    put_member("m", "bytes");
    a.directory = a.n;
    put_entry(0);
    put_end64();
    put_end(0);
    const size_t locator = a.end - LOCATOR, record = locator - END64;
    put(a.end + 10, 0xFFFF, 2);
    put(a.end + 12, 0xFFFFFFFF, 4);
    put(a.end + 16, 0xFFFFFFFF, 4);
    reads(1);
    put(locator + 8, record + 1, 8);
    refuses("a wrong zip64 locator");
    put(locator + 8, UINT64_MAX, 8);
    refuses("a wrong zip64 locator");
    put(locator + 8, record, 8);
    put(record, 0, 4);
    refuses("a wrong zip64 locator");
    put(record, 0x06064b50, 4);
    put(record + 48, UINT64_MAX, 8);
    refuses("a directory outside the file");
}
END_TEST

START_TEST(a_member_lies_between_the_start_and_the_directory)
{
    begin();
    put_member("m", "bytes");
    finish(false);
    reads(1);
    put(a.directory + 20, 6, 4);
    put(a.directory + 24, 6, 4);
    refuses("a member that reaches past the end");
    put(a.directory + 20, 5, 4);
    refuses("a member with two sizes");
    put(a.directory + 10, 8, 2);
    reads(1);
    ck_assert_uint_eq(z.member[0].unpacked, 6);
    ck_assert_uint_eq(z.member[0].method, 8);
    put(28, 5, 2);
    refuses("a member that reaches past the end");
    put(28, 6, 2);
    refuses("a member that reaches past the end");
    put(28, 0, 2);
    put(a.directory + 42, 1, 4);
    refuses("a member without a header");
    put(a.directory + 42, a.directory, 4);
    refuses("a member without a header");
    put(a.directory + 42, 0, 4);
    a.p[LOCAL] = 'n';
    refuses("a member with two names");
    put(a.directory + 8, 1, 2);
    refuses("the zip archive is encrypted");
}
END_TEST

START_TEST(a_failure_names_its_place)
{
    struct ms_err e = {0};
    two_members();
    put(a.directory + 8, 1, 2);
    ck_assert_int_eq(probe_zip_read(&z, a.p, a.n, 8, &e), MS_E_UNSUPPORTED);
    ck_assert_int_eq(e.off, (int64_t)a.directory);
    ck_assert_uint_eq(e.line, 0);
}
END_TEST

START_TEST(members_stand_side_by_side_in_any_order)
{
    begin();
    put_member("x", "12345");
    put_member("y", "12345");
    finish(true);
    reads(2);
    /* one byte less between them */
    begin();
    put_member("x", "12345");
    a.n--;
    put_member("y", "12345");
    finish(false);
    refuses("members that overlap");
    a.n = a.directory;
    finish(true);
    refuses("members that overlap");
    begin();
    put_member("x", "12345");
    put_member("x", "12345");
    finish(false);
    refuses("a name twice");
}
END_TEST

/* Sizes and place of a member behind 32 bits, in this order, of those alone that overflow. */
START_TEST(sizes_of_64_bits_are_in_the_extra_field)
{
    begin();
    put_member("m", "bytes");
    a.directory = a.n;
    const size_t at = put_entry(0), extra = a.n;
    put(at + 20, 0xFFFFFFFF, 4);
    put(at + 24, 0xFFFFFFFF, 4);
    put(at + 30, 6 + 20, 2);
    put(extra, 0x5455, 2); /* another field first, of two bytes */
    put(extra + 2, 2, 2);
    put(extra + 4, 0xFFFF, 2);
    put(extra + 6, 1, 2);
    put(extra + 8, 16, 2);
    put(extra + 10, 5, 8);
    put(extra + 18, 5, 8);
    a.n += 26;
    put_end(a.n - a.directory);
    reads(1);
    ck_assert_uint_eq(z.member[0].size, 5);
    put(extra + 18, 4, 8);
    refuses("a member with two sizes");
    put(extra + 18, 5, 8);
    put(extra + 8, 15, 2);
    refuses("a member without its zip64 sizes");
    put(extra + 8, 17, 2);
    refuses("a member without its zip64 sizes");
    put(extra + 8, 16, 2);
    put(extra + 6, 2, 2);
    refuses("a member without its zip64 sizes");
    put(extra + 6, 1, 2);
    put(at + 42, 0xFFFFFFFF, 4);
    refuses("a member without its zip64 sizes");
}
END_TEST

/* Each pair of neighbours is looked at, the first and the last one too. */
START_TEST(of_eight_members_no_two_may_overlap_or_have_one_name)
{
    static const char *const names[] = {"h", "b", "g", "a", "f", "c", "e", "d"};
    for (int wrong = -1; wrong < 7; wrong++) {
        begin();
        for (int i = 0; i < 8; i++) {
            put_member(names[i], "12345");
            a.n -= i == wrong;
        }
        finish(true);
        if (wrong < 0)
            reads(8);
        else
            refuses("members that overlap");
        begin();
        for (int i = 0; i < 8; i++)
            put_member(names[i == wrong + 1 && wrong >= 0 ? 0 : i], "12345");
        finish(false);
        if (wrong < 0)
            reads(8);
        else
            refuses("a name twice");
    }
}
END_TEST

/* An entry may end with a comment; its mode is read. */
START_TEST(an_entry_has_a_comment_and_a_mode)
{
    begin();
    put_member("m", "bytes");
    put_member("n", "bytes");
    a.directory = a.n;
    for (uint32_t i = 0; i < 2; i++) {
        const size_t at = put_entry(i);
        put(at + 32, 3, 2);
        put(at + 40, 0xA1B2, 2);
        put_text("why");
    }
    put_end(a.n - a.directory);
    reads(2);
    ck_assert_uint_eq(z.member[0].mode, 0xA1B2);
    ck_assert_uint_eq(z.member[1].mode, 0xA1B2);
    put(a.end + 12, a.directory_n - 1, 4);
    refuses("a directory entry that reaches past the end");
}
END_TEST

/* A locator at the very front has no record before it; a record need not touch its locator, and may not
 * reach into it. */
START_TEST(a_locator_points_to_a_record_before_it)
{
    begin();
    put(0, 0x07064b50, 4);
    a.n = LOCATOR;
    put_end(0);
    refuses("a wrong zip64 locator");
    put(8, (uint64_t)1 << 40, 8);
    refuses("a wrong zip64 locator");
    for (int apart = -1; apart < 3; apart++) {
        begin();
        put_member("m", "bytes");
        a.directory = a.n;
        put_entry(0);
        put_end64();
        const size_t record = a.n - LOCATOR - END64, locator = record + END64;
        memmove(a.p + locator + apart, a.p + locator, LOCATOR);
        a.n += (size_t)(ssize_t)apart;
        put_end(0);
        if (apart < 0)
            refuses("a wrong zip64 locator");
        else
            reads(1);
    }
}
END_TEST

/* What holds for a member at the front holds for one behind it. */
START_TEST(a_member_behind_another_keeps_to_its_place)
{
    two_members();
    const size_t second = a.directory + CENTRAL + a.name_n[0];
    put(a.at[1] + 28, 5, 2);
    refuses("a member that reaches past the end");
    put(a.at[1] + 28, 0, 2);
    put(second + 20, 5, 4);
    put(second + 24, 5, 4);
    refuses("a member that reaches past the end");
    two_members();
    put(second + 42, 0xFFFFFFF0, 4);
    refuses("a member without a header");
    two_members();
    put(second, 0x02014b51, 4);
    refuses("a wrong directory entry");
    two_members();
    put(a.end + 12, CENTRAL + a.name_n[0] + CENTRAL - 1, 4);
    refuses("a wrong directory entry");
    begin();
    put_member("m", "bytesPK\3\4and more");
    finish(false);
    reads(1);
    put(a.directory + 42, LOCAL + 1 + 5, 4);
    refuses("a member without a header");
}
END_TEST

START_TEST(an_archive_of_nothing_may_have_a_comment)
{
    for (size_t n = 0; n < 3; n++) {
        begin();
        finish(false);
        put(a.end + 20, n, 2);
        a.n += n;
        reads(0);
    }
    for (a.n = 0; a.n < 100; a.n++) {
        memset(a.p, 0, sizeof a.p);
        refuses("no end record");
    }
}
END_TEST

TEST_MAIN("zip", members_are_where_the_directory_says,
          an_archive_may_hold_nothing_or_a_member_without_name_and_bytes,
          a_comment_ends_with_the_file, the_longest_comment_is_searched_to_its_end,
          the_directory_lies_before_its_end_record, a_64_bit_end_record_comes_before_its_locator,
          a_member_lies_between_the_start_and_the_directory, a_failure_names_its_place,
          members_stand_side_by_side_in_any_order, sizes_of_64_bits_are_in_the_extra_field,
          of_eight_members_no_two_may_overlap_or_have_one_name, an_entry_has_a_comment_and_a_mode,
          a_locator_points_to_a_record_before_it, an_archive_of_nothing_may_have_a_comment,
          a_member_behind_another_keeps_to_its_place)
