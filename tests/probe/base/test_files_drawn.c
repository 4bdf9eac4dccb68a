/* SPDX-License-Identifier: MIT
 *
 * files_drawn: drawn calls of the file writer, of arenas and of maps against a simple model of each;
 * zip archives of the corpora with every byte wrong, and paths of every sequence of their parts, give
 * the answers on record.
 */
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/zip.h"
#include "tests/support/closes.h"
#include "tests/support/recorded.h"

#include <inttypes.h>
#include <stdalign.h>

static struct ms_err err;
static uint64_t state;

#define below(n) recorded_below(&state, (n))

/* ---- zip ------------------------------------------------------------------------------- */

static void answer_zip(struct ms_buf *b, const char *p, size_t n)
{
    for (uint32_t most = 2; most <= PROBE_ZIP_MEMBERS; most *= 32) {
        struct probe_zip z;
        struct ms_err e = {0};
        const enum ms_rc rc = probe_zip_read(&z, p, n, most, &e);
        ms_buf_printf(b, "%d %s;", rc, e.msg);
        for (uint32_t i = 0; rc == MS_OK && i < z.n; i++) {
            const struct probe_zip_member *m = &z.member[i];
            recorded_text(b, "name", m->name);
            ms_buf_printf(b, " %td+%zu %" PRIu64 " %08x %u %zu..%zu", m->data - p, m->size,
                          m->unpacked, m->crc, m->method, m->begin, m->end);
            ms_buf_printf(b, " %d", probe_zip_find(&z, MS_STR("x"), "/data.pkl") == m);
        }
    }
}

START_TEST(archives)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "pt", answer_zip);
    recorded_corpus(&b, "xlsx", answer_zip);
    recorded_check(&b, "zip");
}
END_TEST

/* ---- paths ------------------------------------------------------------------------------- */

static void answer_path(struct ms_buf *b, const char *p, size_t n)
{
    char z[64];
    snprintf(z, sizeof z, "%.*s", (int)n, p);
    recorded_text(b, "base", ms_path_base(z));
    recorded_text(b, "dir", ms_path_dir(z));
    for (int i = 0; i < 2; i++) {
        char *joined = i == 0 ? ms_path_join(z, "name") : ms_path_join("dir", z);
        ms_buf_printf(b, " %s", joined);
        ms_free(joined);
    }
    ms_buf_printf(b, " %d", ms_str_cmp_natural((struct ms_str){p, (uint32_t)n}, MS_STR("a10/b2")));
}

START_TEST(paths)
{
    static const char *const word[] = {"", "/", "//", "a", "b.c", ".", "..", "a9", "a010", "10"};
    struct ms_buf b = {.max = 1 << 20};
    recorded_words(&b, word, sizeof word / sizeof *word, 4, "", answer_path);
    recorded_check(&b, "paths");
}
END_TEST

/* ---- writing ------------------------------------------------------------------------------ */

enum { BUFFER = 256 << 10, LONGEST = 3 << 20 };
static char bytes[LONGEST], *wanted;

static size_t write_drawn(struct ms_out *o, size_t at)
{
    static const size_t sizes[] = {0,          1,      2,          4095,   4096,
                                   4097,       70000,  BUFFER - 1, BUFFER, BUFFER + 1,
                                   BUFFER * 2, 100000, 131072,     5};
    const size_t n = sizes[below(14)];
    const char *from = bytes + at % 1000;
    switch (below(6)) {
    case 0:
        ms_out_putc(o, from[0]);
        memcpy(wanted + at, from, 1);
        return 1;
    case 1: {
        const size_t few = n < MS_OUT_ROOM ? n : MS_OUT_ROOM;
        memcpy(ms_out_room(o, MS_OUT_ROOM), from, few);
        ms_out_used(o, few);
        memcpy(wanted + at, from, few);
        return few;
    }
    case 2: {
        const size_t few = n < LONGEST / 4 ? n : LONGEST / 4;
        ms_out_printf(o, "%.*s!", (int)few, from);
        memcpy(wanted + at, from, few);
        wanted[at + few] = '!';
        return few + 1;
    }
    case 3:
        ck_ok(ms_out_sink(o, from, n, &err), err);
        break;
    case 4:
        ms_out_str(o, (struct ms_str){from, (uint32_t)n});
        break;
    default:
        ms_out_write(o, from, n);
    }
    memcpy(wanted + at, from, n);
    return n;
}

START_TEST(drawn_writes_arrive_in_order)
{
    char dir[64], path[100];
    wanted = malloc(LONGEST * 8);
    ck_assert_ptr_nonnull(wanted);
    for (size_t i = 0; i < LONGEST; i++)
        bytes[i] = (char)('a' + i * 7 % 23);
    snprintf(path, sizeof path, "%s/out", scratch_dir(dir));
    for (unsigned seed = 0; seed < 40; seed++) {
        struct ms_out *o;
        struct ms_file f;
        size_t n = 0;
        state = seed;
        ck_ok(ms_out_create(&o, path, &err), err);
        if (seed % 2 == 0)
            ms_out_lazy(o);
        for (uint32_t i = below(30); i > 0; i--) {
            n += write_drawn(o, n);
            ck_assert_uint_eq(ms_out_size(o), n);
            if (below(9) == 0)
                ck_ok(ms_out_flush(o, &err), err);
        }
        ck_ok(ms_out_commit(o, &err), err);
        ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
        ck_assert_uint_eq(f.n, n);
        ck_assert(memcmp(f.p, wanted, n) == 0);
        ms_file_unmap(&f);
    }
    free(wanted);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_file_has_at_most_as_many_bytes_as_are_allowed)
{
    char dir[64], path[100];
    struct ms_file f;
    snprintf(path, sizeof path, "%s/f", scratch_dir(dir));
    write_file(path, "12345", 5);
    ck_assert_int_eq(ms_file_map(&f, path, 4, &err), MS_E_LIMIT);
    ck_says(err, ": 5 bytes, more than the 4 allowed");
    ms_err_clear(&err);
    ck_ok(ms_file_map(&f, path, 5, &err), err);
    ms_file_unmap(&f);
    scratch_remove(dir);
}
END_TEST

/* ---- arenas --------------------------------------------------------------------------------- */

static bool is_all(const char *p, size_t n, char c)
{
    return n == 0 || (p[0] == c && memcmp(p, p + 1, n - 1) == 0);
}

/* What an arena says of drawn calls: sizes, and that no block lies in another. */
static void draw_arena(struct ms_buf *b, unsigned seed)
{
    static const size_t sizes[] = {0,    1,    3,    16,   17,    1000,   1024,   1025,
                                   4095, 4096, 4097, 9000, 65536, 262144, 262145, 300000};
    enum { BLOCKS = 60 };
    struct {
        char *p;
        size_t n;
    } block[BLOCKS];
    state = seed;
    struct ms_arena *a = ms_arena_new(seed % 3 == 0 ? 100000 + below(100) : SIZE_MAX);
    ck_assert_ptr_nonnull(a);
    for (unsigned i = 0; i < BLOCKS; i++) {
        const size_t n = sizes[below(16)] + below(2);
        const unsigned how = below(3);
        char *p = how == 0   ? ms_arena_text(a, n)
                  : how == 1 ? ms_arena_alloc(a, n)
                             : ms_arena_calloc(a, n, 1);
        ck_assert(p == NULL || how == 0 || (uintptr_t)p % alignof(max_align_t) == 0);
        ck_assert(p == NULL || how != 2 || is_all(p, n, 0));
        if (p != NULL)
            memset(p, (int)i, n);
        block[i].p = p;
        block[i].n = p != NULL ? n : 0;
        struct ms_err e = {0};
        ms_buf_printf(b, " %zu%s", ms_arena_used(a), p == NULL ? "-" : "");
        if (p == NULL)
            ms_buf_printf(b, "%d %s", ms_arena_fail(a, &e), e.msg);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        ck_assert(is_all(block[i].p, block[i].n, (char)i));
    ms_buf_putc(b, '\n');
    ms_arena_free(a);
}

START_TEST(drawn_blocks_of_arenas)
{
    struct ms_buf all = {.max = 1 << 20};
    for (unsigned seed = 0; seed < 60; seed++) {
        struct ms_buf b = {.max = 1 << 20};
        const size_t live = ms_mem_live();
        char *room = ms_buf_room(&b, 1 << 16); /* so that it does not grow meanwhile */
        ck_assert_ptr_nonnull(room);
        draw_arena(&b, seed);
        if (recorded_shows)
            printf("%u:%s", seed, ms_buf_z(&b));
        ms_buf_printf(&all, "arena %u: %08x\n", seed, ms_crc32(0, b.p, b.n));
        ms_buf_free(&b);
        ck_assert_uint_ge(ms_mem_live(), live);
    }
    recorded_check(&all, "arenas");
}
END_TEST

/* ---- maps ------------------------------------------------------------------------------------ */

START_TEST(drawn_keys_are_found_as_by_a_search_through_all)
{
    for (unsigned seed = 0; seed < 30; seed++) {
        struct ms_map m = {0};
        char key[400][12];
        uint32_t n = 0;
        struct ms_arena *a = ms_arena_new(SIZE_MAX);
        state = seed;
        for (int i = 0; i < 600; i++) {
            char text[12];
            uint32_t at = 0;
            bool added;
            snprintf(text, sizeof text, "%.*u", 1 + (int)below(3), below(seed % 2 == 0 ? 40 : 900));
            while (at < n && strcmp(key[at], text) != 0)
                at++;
            ck_assert_uint_eq(ms_map_get(&m, ms_str_of(text)), at < n ? at : MS_MAP_NONE);
            if (n == 399 && at == n)
                continue;
            if (below(20) == 0)
                ck_assert(ms_map_reserve(&m, n + below(300)));
            ck_assert_uint_eq(ms_map_put_copy(&m, ms_str_of(text), a, &added), at);
            ck_assert_int_eq(added, at == n);
            if (added)
                snprintf(key[n++], sizeof key[0], "%s", text);
            ck_assert(ms_str_is(ms_map_key(&m, at), key[at]));
            ck_assert_uint_ge(2 * ((uint64_t)m.mask + 1), 3 * (uint64_t)m.keys.n);
        }
        ms_map_free(&m);
        ms_arena_free(a);
    }
}
END_TEST

RECORDED_MAIN_AROUND(count_open_files, ck_all_closed, "files_drawn", archives, paths,
                     drawn_writes_arrive_in_order, a_file_has_at_most_as_many_bytes_as_are_allowed,
                     drawn_blocks_of_arenas, drawn_keys_are_found_as_by_a_search_through_all)
