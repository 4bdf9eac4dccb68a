/* SPDX-License-Identifier: MIT
 *
 * packed_recorded: the bytes of drawn chunks of events and of drawn rows, as they are on record, and
 * what the readers make of every byte of them that is wrong.
 */
#include "mstx/rundb/pack.h"
#include "mstx/rundb/packed_rows.h"
#include "tests/support/recorded.h"

#include <inttypes.h>

static struct mstx_event events[MSTX_CHUNK_MAX], read_back[MSTX_CHUNK_MAX];
static struct mstx_packer *packer;
static struct ms_err err;

static void set_up(void)
{
    packer = mstx_packer_new();
    ck_assert_ptr_nonnull(packer);
}

static void tear_down(void)
{
    mstx_packer_free(packer);
}

/* ---- events ---------------------------------------------------------------------- */

/* `columns` has a bit for each optional column that is used. */
static uint32_t draw_events(uint64_t seed, uint32_t n, unsigned columns)
{
    int64_t t = (int64_t)recorded_below(&seed, 1000) - 500;
    for (uint32_t i = 0; i < n; i++) {
        const unsigned wide = recorded_below(&seed, 40);
        t += (int64_t)recorded_below(&seed, 1 << (wide / 2 + 1));
        events[i] = (struct mstx_event){
            .start_ns = t,
            .dur_ns = (int64_t)recorded_below(&seed, 1 << 20) << recorded_below(&seed, 30),
            .id = columns & 1 ? (uint64_t)recorded_below(&seed, 300) << wide : 0,
            .arg = columns & 2 ? (uint64_t)recorded_below(&seed, 1 << 20) << wide : 0,
            .size = columns & 4 ? recorded_below(&seed, 9) : 0,
            .count = columns & 8 ? recorded_below(&seed, 500) : 1,
            .end_tid = columns & 16 ? recorded_below(&seed, 500) : 0,
            .args = columns & 32 ? recorded_below(&seed, 500) : 0,
            .name = recorded_below(&seed, n > 256 ? 9000 : 4),
            .depth = (uint16_t)recorded_below(&seed, 3),
            .kind = (uint8_t)recorded_below(&seed, MSTX_EV_KINDS),
            .flags = (uint8_t)recorded_below(&seed, 2)};
    }
    return n;
}

static void put_events(struct ms_buf *b, const struct mstx_event *ev, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ms_buf_printf(
            b, " %" PRId64 "+%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u %u %u %u %u",
            ev[i].start_ns, ev[i].dur_ns, ev[i].id, ev[i].arg, ev[i].size, ev[i].name, ev[i].args,
            ev[i].count, ev[i].end_tid, ev[i].depth, ev[i].kind, ev[i].flags);
}

static uint32_t triple(const void *ctx, uint32_t id)
{
    (void)ctx;
    return id * 3 + 1;
}

static bool is_three(void *ctx, uint32_t name)
{
    ++*(unsigned *)ctx;
    return name == 3;
}

static void answer_chunk(struct ms_buf *b, const char *p, size_t n)
{
    const struct ms_str blob = {p, (uint32_t)n};
    static const int64_t until[] = {INT64_MIN, -400, 0, 300, 5000, INT64_MAX};
    unsigned asked = 0;
    uint32_t got;
    ms_buf_printf(b, "%d", mstx_unpack(blob, read_back, &got, &err));
    put_events(b, read_back, got);
    for (size_t i = 0; i < sizeof until / sizeof *until; i++) {
        ms_buf_printf(b, "; %d", mstx_unpack_drawn(blob, until[i], read_back, &got, &err));
        put_events(b, read_back, got);
    }
    const bool three = mstx_pack_has_name(blob, is_three, &asked);
    ms_buf_printf(b, "; %d %u", three, asked);
    const enum ms_rc rc = mstx_pack_renumber(packer, blob, triple, NULL, &err);
    ms_buf_printf(b, "; %d %08x", rc, ms_crc32(0, packer->out.p, rc == MS_OK ? packer->out.n : 0));
    ms_err_clear(&err);
}

START_TEST(chunks_and_every_wrong_byte)
{
    struct ms_buf b = {.max = 1 << 20};
    for (unsigned columns = 0; columns < 64; columns++) {
        char name[16];
        const uint32_t n = draw_events(columns, 1 + columns % 7, columns);
        snprintf(name, sizeof name, "columns %u", columns);
        ck_ok(mstx_pack(packer, events, n, &err), err);
        const size_t size = packer->out.n;
        char *bytes = malloc(size); /* the answers pack again */
        ck_assert_ptr_nonnull(bytes);
        memcpy(bytes, packer->out.p, size);
        recorded_file(&b, name, bytes, size, answer_chunk);
        free(bytes);
    }
    recorded_check(&b, "chunks");
}
END_TEST

START_TEST(large_chunks_have_these_bytes)
{
    static const uint32_t sizes[] = {64, 255, 256, 257, 300, 4095, 4096};
    struct ms_buf b = {.max = 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t got;
        const uint32_t n = draw_events(i, sizes[i], 63);
        ck_ok(mstx_pack(packer, events, n, &err), err);
        ms_buf_printf(&b, "%u events: %08x, %u shapes\n", n,
                      ms_crc32(0, packer->out.p, packer->out.n), packer->shapes);
        ck_ok(mstx_unpack(ms_buf_slice(&packer->out), read_back, &got, &err), err);
        ck_assert_uint_eq(got, n);
        for (uint32_t k = 0; k < n; k++)
            ck_assert(read_back[k].start_ns == events[k].start_ns &&
                      read_back[k].dur_ns == events[k].dur_ns && read_back[k].id == events[k].id &&
                      read_back[k].name == events[k].name && read_back[k].arg == events[k].arg);
    }
    recorded_check(&b, "large_chunks");
}
END_TEST

/* Times and numbers at the limits of what a chunk may hold. */
START_TEST(limits_are_accepted_and_one_more_is_refused)
{
    const int64_t most = (int64_t)1 << 62;
    static const struct mstx_event plain = {.count = 1};
    const struct {
        int64_t start, dur;
        bool good;
    } cases[] = {{0, most - 1, true},   {0, most, false},      {most, 0, true},
                 {most + 1, 0, false},  {-most, 0, true},      {-most - 1, 0, false},
                 {INT64_MIN, 0, false}, {most, most - 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mstx_event e = plain;
        uint32_t n;
        e.start_ns = cases[i].start;
        e.dur_ns = cases[i].dur;
        ck_ok(mstx_pack(packer, &e, 1, &err), err);
        ck_assert_msg((mstx_unpack(ms_buf_slice(&packer->out), read_back, &n, &err) == MS_OK) ==
                          cases[i].good,
                      "case %zu", i);
        ck_assert_msg((mstx_unpack_drawn(ms_buf_slice(&packer->out), INT64_MAX, read_back, &n,
                                         &err) == MS_OK) == cases[i].good,
                      "case %zu, drawn", i);
    }
    /* A distance of 2^62 between two starts, and of one more. */
    for (int more = 0; more < 2; more++) {
        struct mstx_event e[2] = {plain, plain};
        uint32_t n;
        e[0].start_ns = -1 - more;
        e[1].start_ns = most - 1;
        ck_ok(mstx_pack(packer, e, 2, &err), err);
        ck_assert_int_eq(mstx_unpack(ms_buf_slice(&packer->out), read_back, &n, &err) == MS_OK,
                         more == 0);
        ck_assert_int_eq(
            mstx_unpack_drawn(ms_buf_slice(&packer->out), INT64_MAX, read_back, &n, &err) == MS_OK,
            more == 0);
    }
    ms_err_clear(&err);
}
END_TEST

/* ---- rows -------------------------------------------------------------------------- */

enum { COLUMNS = 5 };

/* Even, with a hole, with NULLs, all NULL, differences. */
static int64_t draw_cell(uint64_t *seed, unsigned form, uint32_t i)
{
    switch (form) {
    case 0:
        return 100 - 3 * (int64_t)i;
    case 1:
        return i == 2 ? 77 : 5 * (int64_t)i;
    case 2:
        return recorded_below(seed, 3) == 0 ? MSTX_ROWS_NULL : (int64_t)recorded_below(seed, 99);
    case 3:
        return MSTX_ROWS_NULL;
    default:
        return ((int64_t)recorded_below(seed, 1 << 20) << recorded_below(seed, 40)) -
               ((int64_t)1 << 30);
    }
}

static void pack_rows(struct mstx_rows_out *out, uint64_t seed, uint32_t n)
{
    for (out->n = 0; out->n < n; out->n++) {
        for (unsigned c = 0; c < COLUMNS; c++)
            mstx__rows_put(out, c, draw_cell(&seed, (unsigned)(c + seed % 2) % COLUMNS, out->n));
    }
    ck_ok(mstx__rows_pack(out, &err), err);
    ck_assert_uint_eq(out->n, 0);
}

static void answer_rows(struct ms_buf *b, const char *p, size_t n)
{
    struct mstx_rows rows;
    struct ms_err e = {0};
    ck_ok(mstx__rows_new(&rows, &e), e);
    ms_buf_printf(b, "%d", mstx__rows_look(&rows, (struct ms_str){p, (uint32_t)n}, COLUMNS, &e));
    ms_buf_printf(b, " %s %u", e.msg, rows.n);
    for (unsigned c = 0; rows.n != 0 && c < COLUMNS; c++) {
        ms_err_clear(&e);
        const int64_t *cell = mstx__rows_column(&rows, c, &e);
        ms_buf_printf(b, "; %" PRId64 "..%" PRId64 " %s", rows.column[c].low, rows.column[c].high,
                      e.msg);
        for (uint32_t i = 0; cell != NULL && i < rows.n; i++)
            ms_buf_printf(b, " %" PRId64, cell[i]);
        ck_assert(cell == NULL || mstx__rows_column(&rows, c, &e) == cell);
    }
    mstx__rows_free(&rows);
}

START_TEST(rows_and_every_wrong_byte)
{
    struct ms_buf b = {.max = 1 << 20};
    struct mstx_rows_out out;
    ck_ok(mstx__rows_out_new(&out, COLUMNS, &err), err);
    for (uint32_t n = 1; n < 20; n++) {
        char name[16];
        pack_rows(&out, n, n);
        snprintf(name, sizeof name, "%u rows", n);
        recorded_file(&b, name, out.packed.p, out.packed.n, answer_rows);
    }
    mstx__rows_out_free(&out);
    recorded_check(&b, "rows");
}
END_TEST

/* A column that counts up but for one cell, which may be any: where cells are looked at in
 * stretches, none is left out. */
START_TEST(one_odd_cell_is_kept_wherever_it_is)
{
    static const uint32_t sizes[] = {2, 3, 63, 64, 65, 66, 128, 129, 130, 193};
    struct mstx_rows_out out;
    struct mstx_rows rows;
    ck_ok(mstx__rows_out_new(&out, 1, &err), err);
    ck_ok(mstx__rows_new(&rows, &err), err);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (uint32_t odd = 0; odd <= sizes[k]; odd++) {
            for (out.n = 0; out.n < sizes[k]; out.n++)
                mstx__rows_put(&out, 0, 7 * (int64_t)out.n + (out.n == odd ? 1 : 0));
            ck_ok(mstx__rows_pack(&out, &err), err);
            ck_ok(mstx__rows_look(&rows, ms_buf_slice(&out.packed), 1, &err), err);
            const int64_t *cell = mstx__rows_column(&rows, 0, &err);
            ck_assert_uint_eq(rows.n, sizes[k]);
            for (uint32_t i = 0; i < sizes[k]; i++)
                ck_assert_int_eq(cell[i], 7 * (int64_t)i + (i == odd ? 1 : 0));
            ck_assert_int_eq(rows.column[0].low, odd == 0 ? 1 : 0);
            const int64_t last = 7 * ((int64_t)sizes[k] - 1);
            ck_assert_int_eq(rows.column[0].high, last + (odd == sizes[k] - 1 ? 1 : 0));
            ck_assert_int_eq(out.packed.n <= 7, odd == sizes[k] || sizes[k] == 2);
        }
    }
    mstx__rows_free(&rows);
    mstx__rows_out_free(&out);
}
END_TEST

/* The range of an even column holds its cells, also where they go round 64 bits. */
START_TEST(ranges_of_even_columns_hold_their_cells)
{
    static const int64_t first[] = {0, -5, 100, MSTX_ROWS_NULL, INT64_MAX - 3, INT64_MIN + 3},
                         step[] = {0,
                                   1,
                                   -1,
                                   7,
                                   -7,
                                   (int64_t)1 << 40,
                                   -((int64_t)1 << 40),
                                   ((int64_t)1 << 40) + 1,
                                   ((int64_t)1 << 62) + 5};
    struct ms_buf b = {.max = 1 << 20};
    struct mstx_rows_out out;
    struct mstx_rows rows;
    ck_ok(mstx__rows_out_new(&out, 1, &err), err);
    ck_ok(mstx__rows_new(&rows, &err), err);
    for (size_t k = 0; k < 6 * 9; k++) {
        uint64_t v = (uint64_t)first[k / 9];
        for (out.n = 0; out.n < 4; out.n++, v += (uint64_t)step[k % 9])
            mstx__rows_put(&out, 0, (int64_t)v);
        ck_ok(mstx__rows_pack(&out, &err), err);
        ck_ok(mstx__rows_look(&rows, ms_buf_slice(&out.packed), 1, &err), err);
        const int64_t *cell = mstx__rows_column(&rows, 0, &err);
        ms_buf_printf(&b, "%" PRId64 " + %" PRId64 ": %" PRId64 " .. %" PRId64 "\n", first[k / 9],
                      step[k % 9], rows.column[0].low, rows.column[0].high);
        for (uint32_t i = 0; i < rows.n; i++)
            ck_assert(cell[i] == MSTX_ROWS_NULL ||
                      (cell[i] >= rows.column[0].low && cell[i] <= rows.column[0].high));
    }
    mstx__rows_free(&rows);
    mstx__rows_out_free(&out);
    recorded_check(&b, "even_rows");
}
END_TEST

RECORDED_MAIN_AROUND(set_up, tear_down, "packed_recorded", chunks_and_every_wrong_byte,
                     large_chunks_have_these_bytes, limits_are_accepted_and_one_more_is_refused,
                     rows_and_every_wrong_byte, one_odd_cell_is_kept_wherever_it_is,
                     ranges_of_even_columns_hold_their_cells)
