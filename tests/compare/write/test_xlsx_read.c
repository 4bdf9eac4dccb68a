/* SPDX-License-Identifier: MIT
 *
 * xlsx_read: workbooks that libxlsxwriter wrote, and XML of our own.
 */
#include "tests/support/check.h"
#include "tests/support/zip_make.h"

#include "compare/write/sheet.h"
#include "compare/write/xlsx_read.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <xlsxwriter.h>

static char dir[64], path[96];

/* Rows as text: "0:1 a|b|=3|", where = marks a number. */
static enum ms_rc take(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    struct ms_buf *b = ctx;
    (void)err;
    ms_buf_printf(b, "%u:%u ", row->sheet, row->row);
    for (size_t i = 0; i < row->n; i++)
        ms_buf_printf(b, "%s%.*s|", row->cells[i].number ? "=" : "",
                      MS_STR_ARG(row->cells[i].text));
    ms_buf_putc(b, '\n');
    return MS_OK;
}

static enum ms_rc refuse_second(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    (void)ctx;
    return row->row == 2 ? ms_fail(err, MS_E_ARG, "no second row, please") : MS_OK;
}

static void write_book(bool streamed)
{
    lxw_workbook_options how = {.constant_memory = streamed};
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/book.xlsx", dir);
    lxw_workbook *w = workbook_new_opt(path, &how);
    lxw_worksheet *s = workbook_add_worksheet(w, "One");
    worksheet_write_string(s, 0, 0, "name", NULL);
    worksheet_write_string(s, 0, 1, "a < b & \"c\"", NULL);
    worksheet_write_number(s, 1, 0, 0.1, NULL);
    worksheet_write_string(s, 1, 3, "name", NULL);
    worksheet_write_boolean(s, 3, 0, 1, NULL);
    for (int i = 0; i < 11; i++) {
        char text[32];
        snprintf(text, sizeof text, "sheet%d", i + 2);
        s = workbook_add_worksheet(w, text);
        worksheet_write_string(s, 0, 0, text, NULL);
    }
    ck_assert_int_eq(workbook_close(w), LXW_NO_ERROR);
}

static void check_book(bool streamed)
{
    struct ms_buf got = {.max = 1 << 16};
    struct ms_err err = {0};
    write_book(streamed);
    ck_ok(cmp_xlsx_read(path, take, &got, &err), err);
    ck_assert_str_eq(ms_buf_z(&got), "0:1 name|a < b & \"c\"|\n0:2 =0.1|||name|\n0:4 True|\n"
                                     "1:1 sheet2|\n2:1 sheet3|\n3:1 sheet4|\n4:1 sheet5|\n"
                                     "5:1 sheet6|\n6:1 sheet7|\n7:1 sheet8|\n8:1 sheet9|\n"
                                     "9:1 sheet10|\n10:1 sheet11|\n11:1 sheet12|\n");
    ms_buf_free(&got);
    scratch_remove(dir);
}

START_TEST(a_workbook_with_shared_strings_reads_back)
{
    check_book(false);
}
END_TEST

START_TEST(a_streamed_workbook_reads_back)
{
    check_book(true);
}
END_TEST

START_TEST(a_workbook_cut_anywhere_is_refused)
{
    struct ms_file f;
    struct ms_err err = {0};
    struct ms_buf got = {.max = 1 << 16};
    write_book(false);
    ck_ok(ms_file_map(&f, path, 1 << 20, &err), err);
    for (size_t n = 0; n < f.n; n += n < 64 ? 1 : 37) {
        ms_err_clear(&err);
        ck_assert_int_ne(cmp_xlsx_parse("cut.xlsx", f.p, n, take, &got, &err), MS_OK);
        ck_says(err, "cut.xlsx");
    }
    ms_file_unmap(&f);
    ms_buf_free(&got);
    scratch_remove(dir);
}
END_TEST

START_TEST(without_memory_there_is_an_error_and_no_leak)
{
    struct ms_err err = {0};
    struct ms_buf got = {.max = 1 << 16};
    write_book(false);
    size_t live = ms_mem_live();
    enum ms_rc rc = MS_E_NOMEM;
    for (uint64_t n = 1; rc != MS_OK; n++) {
        ms_err_clear(&err);
        ms_buf_free(&got);
        ms_mem_fail_at(n);
        rc = cmp_xlsx_read(path, take, &got, &err);
        ms_mem_fail_at(0);
        ck_assert(rc == MS_OK || rc == MS_E_NOMEM || got.bad != MS_OK);
        ck_assert_uint_lt(n, 10000);
    }
    ms_buf_free(&got);
    ck_assert_uint_eq(ms_mem_live(), live);
    scratch_remove(dir);
}
END_TEST

/* ---- XML of our own --------------------------------------------------------- */

static enum ms_rc parse_xml(const char *shared, const char *sheet, cmp_xlsx_fn fn,
                            struct ms_buf *got, struct ms_err *err)
{
    struct zip_make z = {0};
    if (shared != NULL)
        zip_add(&z, "xl/sharedStrings.xml", shared, strlen(shared));
    zip_add(&z, "xl/worksheets/sheet1.xml", sheet, strlen(sheet));
    struct ms_str all = zip_end(&z);
    enum ms_rc rc = cmp_xlsx_parse("own.xlsx", all.p, all.n, fn, got, err);
    zip_free(&z);
    return rc;
}

static void reads_as(const char *shared, const char *sheet, const char *want)
{
    struct ms_buf got = {.max = 1 << 16};
    struct ms_err err = {0};
    ck_ok(parse_xml(shared, sheet, take, &got, &err), err);
    ck_assert_str_eq(ms_buf_z(&got), want);
    ms_buf_free(&got);
}

static void is_refused(const char *shared, const char *sheet, const char *words)
{
    struct ms_buf got = {.max = 1 << 16};
    struct ms_err err = {0};
    ck_assert_int_ne(parse_xml(shared, sheet, take, &got, &err), MS_OK);
    ck_says(err, words);
    ms_buf_free(&got);
}

/* Sheets come in the order of their numbers, in whatever order the archive holds them. */
START_TEST(sheets_come_in_the_order_of_their_numbers)
{
    static const int orders[][4] = {{1, 2, 3, 10}, {10, 3, 2, 1}, {2, 10, 1, 3}, {3, 1, 10, 2}};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        struct zip_make z = {0};
        struct ms_buf got = {.max = 1 << 16};
        struct ms_err err = {0};
        for (int i = 0; i < 4; i++) {
            char name[64], sheet[128];
            snprintf(name, sizeof name, "xl/worksheets/sheet%d.xml", orders[o][i]);
            snprintf(sheet, sizeof sheet, "<worksheet><row><c><v>%d</v></c></row></worksheet>",
                     orders[o][i]);
            zip_add(&z, name, sheet, strlen(sheet));
        }
        const struct ms_str all = zip_end(&z);
        ck_ok(cmp_xlsx_parse("own.xlsx", all.p, all.n, take, &got, &err), err);
        ck_assert_str_eq(ms_buf_z(&got), "0:1 =1|\n1:1 =2|\n2:1 =3|\n3:1 =10|\n");
        ms_buf_free(&got);
        zip_free(&z);
    }
}
END_TEST

START_TEST(every_type_of_cell_is_read)
{
    reads_as(NULL,
             "<x:worksheet><x:row><x:c t='str'><x:f>A1+1</x:f><x:v>text</x:v></x:c>"
             "<x:c t='e'><x:v>#N/A</x:v></x:c><x:c t='b'><x:v>0</x:v></x:c>"
             "<x:c><x:v>1e-05</x:v></x:c><x:c t='n'/></x:row></x:worksheet>",
             "0:1 text|#N/A|False|=1e-05||\n");
    reads_as(NULL,
             "<w><row r='7'><c r='C7' t='inlineStr'><is><r><t>a</t></r><r><t>b</t></r>"
             "<rPh><t>spoken</t></rPh></is></c><c><v>2</v></c></row><row/></w>",
             "0:7 ||ab|=2|\n0:8 \n");
    reads_as("<sst><si><t>one</t></si><si><r><t>t</t></r><r><t>wo</t></r></si></sst>",
             "<w><row><c t='s'><v>1</v></c><c t='s'><v>0</v></c></row></w>", "0:1 two|one|\n");
}
END_TEST

/* How a text is spoken is no part of it, what comes behind is; so is the next text. */
START_TEST(text_behind_its_phonetic_reading_counts)
{
    reads_as(
        "<sst><si><r><t>a</t></r><rPh><t>x</t></rPh><r><t>b</t></r></si><si><t>c</t></si></sst>",
        "<w><row><c t='s'><v>0</v></c><c t='s'><v>1</v></c></row></w>", "0:1 ab|c|\n");
    reads_as(
        NULL,
        "<w><row><c t='inlineStr'><is><r><t>a</t></r><rPh><t>x</t></rPh><r><t>b</t></r></is></c>"
        "<c t='inlineStr'><is><t>c</t></is></c></row></w>",
        "0:1 ab|c|\n");
}
END_TEST

/* A member is what its sizes say, whatever stands behind it in the file. */
START_TEST(a_member_that_ends_too_early_is_refused)
{
    struct ms_file f;
    struct ms_err err = {0};
    size_t cut = 0;
    write_book(false);
    ck_ok(ms_file_map(&f, path, 1 << 20, &err), err);
    char *bytes = malloc(f.n);
    ck_assert_ptr_nonnull(bytes);
    for (size_t at = 0; at + 46 < f.n; at++) {
        static const char sheet[] = "xl/worksheets/sheet";
        if (memcmp(f.p + at, "PK\1\2", 4) != 0 ||
            memcmp(f.p + at + 46, sheet, sizeof sheet - 1) != 0)
            continue;
        struct ms_buf got = {.max = 1 << 16};
        memcpy(bytes, f.p, f.n);
        ck_assert_uint_gt((unsigned char)bytes[at + 20], 2); /* compressed bytes */
        bytes[at + 20] -= 2;
        ms_err_clear(&err);
        ck_assert_int_ne(cmp_xlsx_parse("short.xlsx", bytes, f.n, take, &got, &err), MS_OK);
        ms_buf_free(&got);
        cut++;
    }
    ck_assert_uint_eq(cut, 12);
    free(bytes);
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_is_not_a_sheet_is_refused_with_the_reason)
{
    is_refused("<sst/>", "<w><row><c t='s'><v>0</v></c></row></w>", "no shared string '0'");
    is_refused(NULL, "<w><row><c r='B1'/><c r='A1'/></row></w>", "out of its place");
    is_refused(NULL, "<w><row><c r='ZZZZZZ1'/></row></w>", "out of its place");
    is_refused(NULL, "<!DOCTYPE w [<!ENTITY a 'aaaa'>]><w>&a;</w>", "a document type");
    is_refused(NULL, "<w><row>", "no element found");
    is_refused(NULL, "<w><row></w>", "mismatched tag");
}
END_TEST

START_TEST(a_zip_archive_without_sheets_is_no_workbook)
{
    struct zip_make z = {0};
    struct ms_err err = {0};
    zip_add(&z, "data.pkl", "x", 1);
    struct ms_str all = zip_end(&z);
    ck_assert_int_ne(cmp_xlsx_parse("a.xlsx", all.p, all.n, take, NULL, &err), MS_OK);
    ck_says(err, "it has no sheets");
    zip_free(&z);
}
END_TEST

START_TEST(the_reader_of_rows_can_end_the_reading)
{
    struct ms_err err = {0};
    ck_assert_int_eq(parse_xml(NULL, "<w><row/><row/><row/></w>", refuse_second, NULL, &err),
                     MS_E_ARG);
    ck_says(err, "no second row, please");
}
END_TEST

/* ---- cells that are full ------------------------------------------------------------------ */

enum { CELL_BYTES = 32767, AROUND = 6 };

/* `n` characters of 1 to 4 bytes each behind `shift` letters. */
static struct ms_str long_text(char *room, unsigned wide, uint32_t n, uint32_t shift)
{
    static const char *const characters[] = {"x", "\xc3\xa4", "\xe8\xae\xad", "\xf0\x9f\x98\x80"};
    memset(room, 'a', shift);
    for (uint32_t i = 0; i < n; i++)
        memcpy(room + shift + i * wide, characters[wide - 1], wide);
    return (struct ms_str){room, shift + n * wide};
}

struct cut {
    uint32_t rows;
};

/* The most whole characters that a cell holds. */
static enum ms_rc check_cut(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    static char room[CELL_BYTES + 64];
    struct cut *c = ctx;
    const uint32_t i = c->rows++, wide = 1 + i / AROUND, shift = i % AROUND;
    const uint32_t fit = (CELL_BYTES - shift) / wide;
    (void)err;
    ck_assert_uint_eq(row->n, 2);
    ck_assert(ms_str_eq(row->cells[0].text, long_text(room, wide, fit, shift)));
    ck_assert(ms_str_is(row->cells[1].text, "next"));
    return MS_OK;
}

START_TEST(a_text_is_cut_between_characters)
{
    static char room[2 * CELL_BYTES];
    struct cmp__sheet s;
    struct ms_err err = {0};
    struct cut c = {0};
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/long.xlsx", dir);
    ck_ok(cmp__sheet_open(&s, path, true, &err), err);
    for (uint32_t i = 0; i < 4 * AROUND; i++) {
        const uint32_t wide = 1 + i / AROUND, shift = i % AROUND;
        cmp__sheet_text(&s, long_text(room, wide, CELL_BYTES / wide + 1, shift));
        cmp__sheet_word(&s, "next");
        cmp__sheet_end_row(&s);
    }
    ck_ok(cmp__sheet_close(&s, MS_OK), err);
    ck_ok(cmp_xlsx_read(path, check_cut, &c, &err), err);
    ck_assert_uint_eq(c.rows, 4 * AROUND);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("xlsx_read", a_text_is_cut_between_characters, a_workbook_with_shared_strings_reads_back,
          a_streamed_workbook_reads_back, a_workbook_cut_anywhere_is_refused,
          without_memory_there_is_an_error_and_no_leak, sheets_come_in_the_order_of_their_numbers,
          every_type_of_cell_is_read, text_behind_its_phonetic_reading_counts,
          a_member_that_ends_too_early_is_refused, what_is_not_a_sheet_is_refused_with_the_reason,
          a_zip_archive_without_sheets_is_no_workbook, the_reader_of_rows_can_end_the_reading)
