/* SPDX-License-Identifier: MIT
 *
 * Files of the page and the status of an answer.
 */
#include "web/serve/route.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "web/api/api.h"

static struct ms_err err;

START_TEST(a_status_says_whose_fault_it_is)
{
    static const struct {
        enum ms_rc rc;
        unsigned status;
    } codes[] = {
        {MS_OK, 200},      {MS_E_ARG, 400},         {MS_E_FORMAT, 400},      {MS_E_NOTFOUND, 404},
        {MS_E_LIMIT, 413}, {MS_E_UNSUPPORTED, 409}, {MS_E_INTERRUPTED, 503}, {MS_E_IO, 500},
        {MS_E_NOMEM, 500}, {MS_E_INTERNAL, 500}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        ck_assert_uint_eq(web_status_of(codes[i].rc), codes[i].status);
}
END_TEST

/* The tag is another one for each content. */
START_TEST(files_of_the_page_have_their_content)
{
    const struct web_asset *a, *b;
    size_t n = 0;
    for (; (a = web_asset_at(n)) != NULL; n++) {
        struct ms_buf text = {.max = 1 << 24};
        ck_assert_ptr_eq(web_asset_find(ms_str_of(a->path)), a);
        ck_ok(web_asset_inflate(a, &text, &err), err);
        ck_assert_uint_gt(text.n, 0);
        ck_assert(strlen(a->etag) == 18 && a->etag[0] == '"' && a->etag[17] == '"');
        char want[20];
        snprintf(want, sizeof want, "\"%016llx\"", (unsigned long long)ms_str_hash(a->gz));
        ck_assert_str_eq(a->etag, want);
        if (strcmp(a->path, "/") == 0)
            ck_assert(ms_str_find_str(ms_buf_slice(&text), MS_STR("<html")) >= 0);
        for (size_t i = 0; i < n; i++) {
            b = web_asset_at(i);
            ck_assert(strcmp(a->path, b->path) != 0 && strcmp(a->etag, b->etag) != 0);
        }
        ms_buf_free(&text);
    }
    ck_assert_uint_gt(n, 20);
    ck_assert_ptr_null(web_asset_at(n));
    ck_assert_ptr_null(web_asset_at(SIZE_MAX));
    ck_assert_ptr_null(web_asset_find(MS_STR("/index.html")));
}
END_TEST

START_TEST(a_damaged_file_is_an_error)
{
    const struct web_asset *whole = web_asset_find(MS_STR("/style.css"));
    for (uint32_t n = 1; n < whole->gz.n; n += 97) {
        struct web_asset cut = *whole;
        struct ms_buf text = {.max = 1 << 24};
        cut.gz.n = n;
        ck_assert_int_eq(web_asset_inflate(&cut, &text, &err), MS_E_INTERNAL);
        ck_says(err, "/style.css: the embedded file is damaged");
        ms_err_clear(&err);
        ms_buf_free(&text);
    }
}
END_TEST

TEST_MAIN("web_route", a_status_says_whose_fault_it_is, files_of_the_page_have_their_content,
          a_damaged_file_is_an_error)
