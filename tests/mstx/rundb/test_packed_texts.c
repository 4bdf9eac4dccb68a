/* SPDX-License-Identifier: MIT
 *
 * Packed texts: what goes in comes out, texts that differ in numbers take little room, blobs of older
 * databases are read, and damage gives no text.
 */
#include "mstx/rundb/packed_texts.h"
#include "mstx/rundb/run_schema.h"
#include "tests/support/check.h"

#include "probe/base/mem.h"

enum { TEXTS = 6000 };

static char dir[64];
static struct ms_store *store;
static struct mstx_texts_out out;
static struct mstx_texts_in in;
static uint32_t ids[TEXTS];
static uint64_t seed = 0x9E3779B97F4A7C15u;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void begin(void)
{
    char path[96];
    struct ms_err e = {0};
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.db", dir);
    ck_ok(ms_store_create_interim(&store, path, &e), e);
    ck_ok(ms_store_exec(store, mstx_db_schema, &e), e);
    ck_ok(mstx__texts_out_new(&out, store, &e), e);
}

static void flush(void)
{
    struct ms_err e = {0};
    ck_ok(mstx__texts_flush(&out, &e), e);
    in = (struct mstx_texts_in){.store = store, .arena = ms_arena_new((size_t)1 << 30)};
}

static void end(void)
{
    mstx__texts_in_free(&in);
    ms_arena_free(in.arena);
    mstx__texts_out_free(&out);
    ms_store_close(store);
}

/* Draws a text: of a few kinds whose numbers vary in length, sign and zeros, or of any bytes. */
static struct ms_str draw(struct ms_buf *b, unsigned kind)
{
    static const char *const words[] = {"",
                                        "0",
                                        "00",
                                        "007",
                                        "-1",
                                        "1.50",
                                        "2e-05",
                                        "999999999999999999",
                                        "1000000000000000000",
                                        "18446744073709551615"};
    ms_buf_clear(b);
    if (kind == 0)
        ms_buf_printf(b, "{\"External id\": %d, \"x\": [%d, %d]}", (int)(rnd() % 100000),
                      (int)(rnd() % 3), -(int)(rnd() % 50));
    else if (kind == 1)
        ms_buf_printf(b, "{\"a\": \"%s\", \"b%d\": %s}", words[rnd() % 10], (int)(rnd() % 12),
                      words[rnd() % 10]);
    else if (kind == 2)
        for (uint64_t n = 1 + rnd() % 90; n != 0; n--)
            ms_buf_putc(b, (char)rnd());
    else
        for (uint64_t n = 1 + rnd() % 90; n != 0; n--)
            ms_buf_putc(b, (char)('0' + rnd() % 10));
    return ms_buf_slice(b);
}

START_TEST(texts_read_back_in_any_order)
{
    struct ms_buf b[TEXTS] = {0};
    struct ms_err e = {0};
    begin();
    for (unsigned i = 0; i < TEXTS; i++) {
        b[i].max = 1 << 20;
        const unsigned draws = (unsigned)(rnd() % 16);
        ck_ok(mstx__texts_put(&out,
                              draw(&b[i], draws < 10    ? 0
                                          : draws < 13  ? 1
                                          : draws == 13 ? 2
                                                        : 3),
                              &ids[i], &e),
              e);
    }
    flush();
    for (unsigned k = 0; k < TEXTS; k++) {
        const unsigned i = (unsigned)(rnd() % TEXTS);
        const struct ms_str got = mstx__texts_get(&in, ids[i]), want = ms_buf_slice(&b[i]);
        ck_assert_msg(ms_str_eq(got, want), "%.*s instead of %.*s", MS_STR_ARG(got),
                      MS_STR_ARG(want));
    }
    for (unsigned i = 0; i < TEXTS; i++)
        ms_buf_free(&b[i]);
    end();
}
END_TEST

static int64_t bytes_stored(void)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more;
    ck_ok(ms_store_prepare(store, &st, "SELECT sum(length(data)) FROM packed_texts", &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    const int64_t n = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return n;
}

START_TEST(numbers_that_count_up_take_a_byte)
{
    char text[160];
    struct ms_err e = {0};
    begin();
    for (unsigned i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof text, "{\"External id\": %u, \"stream\": 7, \"correlation\": %u}",
                 5000 + i, 900000 + i);
        ck_ok(mstx__texts_put(&out, ms_str_of(text), &ids[i], &e), e);
    }
    flush();
    ck_assert_int_lt(bytes_stored(), 5 * TEXTS);
    ck_assert(ms_str_is(mstx__texts_get(&in, ids[4321]),
                        "{\"External id\": 9321, \"stream\": 7, \"correlation\": 904321}"));
    end();
}
END_TEST

/* More forms than are kept, forms that are too long, and runs that are. */
START_TEST(texts_without_a_form_are_kept_as_they_are)
{
    enum { FORMS = 5000, LONG = 5000 };
    char text[32], *lengthy = ms_alloc(LONG);
    uint32_t id;
    struct ms_err e = {0};
    begin();
    ck_assert_ptr_nonnull(lengthy);
    for (unsigned i = 0; i < FORMS; i++) {
        snprintf(text, sizeof text, "%c%c%c%c=1", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676,
                 'x');
        ck_ok(mstx__texts_put(&out, ms_str_of(text), &ids[i], &e), e);
    }
    memset(lengthy, '7', LONG);
    ck_assert_uint_eq(mstx__texts_form(&out, (struct ms_str){lengthy, LONG}), MSTX_TEXT_FORMLESS);
    ck_ok(mstx__texts_put(&out, (struct ms_str){lengthy, LONG}, &id, &e), e);
    memset(lengthy, 'x', LONG);
    ck_assert_uint_eq(mstx__texts_form(&out, (struct ms_str){lengthy, LONG}), MSTX_TEXT_FORMLESS);
    flush();
    for (unsigned i = 0; i < FORMS; i++) {
        snprintf(text, sizeof text, "%c%c%c%c=1", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676,
                 'x');
        ck_assert(ms_str_is(mstx__texts_get(&in, ids[i]), text));
    }
    ck_assert_uint_eq(mstx__texts_get(&in, id).n, LONG);
    ms_free(lengthy);
    end();
}
END_TEST

START_TEST(blobs_of_version_1_are_read)
{
    struct ms_str text[2];
    const struct ms_str blob = {"\x01\x02\x03"
                                "ab"
                                "cde",
                                8};
    ck_assert(mstx__texts_split(blob, text, 2, NULL));
    ck_assert(ms_str_is(text[0], "ab"));
    ck_assert(ms_str_is(text[1], "cde"));
    ck_assert(!mstx__texts_split((struct ms_str){blob.p, 7}, text, 2, NULL));
    ck_assert(!mstx__texts_split((struct ms_str){"\x03", 1}, text, 0, NULL));
}
END_TEST

/* Two forms of one run each; every shorter blob and every other head is refused or gives texts. */
START_TEST(damage_gives_no_text)
{
    static const char whole[] = "\x02\x01\x04\x03"
                                "a0b"
                                "\x01\x14\x00\x01z";
    struct ms_arena *a = ms_arena_new(1 << 16);
    struct ms_str text[2];
    ck_assert(mstx__texts_split((struct ms_str){whole, sizeof whole - 1}, text, 2, a));
    ck_assert(ms_str_is(text[0], "a5b"));
    ck_assert(ms_str_is(text[1], "z"));
    for (uint32_t n = 0; n < sizeof whole - 1; n++)
        ck_assert(!mstx__texts_split((struct ms_str){whole, n}, text, 2, a));
    char small[sizeof whole];
    memcpy(small, whole, sizeof whole);
    small[2] = 2; /* fewer bytes than the texts have */
    ck_assert(!mstx__texts_split((struct ms_str){small, sizeof whole - 1}, text, 2, a));
    ms_arena_free(a);
}
END_TEST

TEST_MAIN("packed_texts", texts_read_back_in_any_order, numbers_that_count_up_take_a_byte,
          texts_without_a_form_are_kept_as_they_are, blobs_of_version_1_are_read,
          damage_gives_no_text)
