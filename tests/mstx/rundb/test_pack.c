/* SPDX-License-Identifier: MIT
 *
 * Packed chunks: what goes in comes out, and damage is told, never believed.
 */
#include "mstx/rundb/pack.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static bool same(const struct mstx_event *a, const struct mstx_event *b)
{
    return a->start_ns == b->start_ns && a->dur_ns == b->dur_ns && a->id == b->id &&
           a->arg == b->arg && a->size == b->size && a->name == b->name && a->args == b->args &&
           a->count == b->count && a->end_tid == b->end_tid && a->depth == b->depth &&
           a->kind == b->kind && a->flags == b->flags;
}

/* names: how many different ones; full: every column is used. */
static void fill(struct mstx_event *ev, uint32_t n, uint32_t names, bool full)
{
    int64_t t = (int64_t)(rnd() % 1000000) - 500000;
    for (uint32_t i = 0; i < n; i++) {
        t += (int64_t)(rnd() >> (40 + rnd() % 24));
        ev[i] = (struct mstx_event){.start_ns = t,
                                    .dur_ns = (int64_t)(rnd() >> (10 + rnd() % 54)),
                                    .name = (uint32_t)(rnd() % names),
                                    .count = 1,
                                    .depth = (uint16_t)(rnd() % 5),
                                    .kind = (uint8_t)(rnd() % MSTX_EV_KINDS)};
        if (!full)
            continue;
        ev[i].id = rnd() >> (rnd() % 64);
        ev[i].arg = rnd();
        ev[i].size = rnd() >> (rnd() % 64);
        ev[i].args = (uint32_t)rnd();
        ev[i].count = (uint32_t)rnd();
        ev[i].end_tid = (uint32_t)(rnd() % 99999);
        ev[i].flags = (uint8_t)rnd();
    }
}

START_TEST(a_chunk_reads_back_as_it_was)
{
    static const struct {
        uint32_t n, names;
        bool full;
    } cases[] = {{1, 1, false},     {2, 1, true},       {255, 300, false},   {4096, 3, false},
                 {4096, 256, true}, {4096, 257, false}, {4096, 100000, true}};
    static struct mstx_event in[MSTX_CHUNK_MAX], out[MSTX_CHUNK_MAX];
    struct mstx_packer *p = mstx_packer_new();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct ms_err e = {0};
        uint32_t n;
        fill(in, cases[c].n, cases[c].names, cases[c].full);
        ck_ok(mstx_pack(p, in, cases[c].n, &e), e);
        ck_ok(mstx_unpack(ms_buf_slice(&p->out), out, &n, &e), e);
        ck_assert_uint_eq(n, cases[c].n);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_msg(same(&in[i], &out[i]), "case %zu, event %u", c, i);
    }
    mstx_packer_free(p);
}
END_TEST

START_TEST(columns_that_nobody_uses_take_no_bytes)
{
    static struct mstx_event in[1000];
    struct mstx_packer *p = mstx_packer_new();
    struct ms_err e = {0};
    for (int i = 0; i < 1000; i++)
        in[i] = (struct mstx_event){
            .start_ns = 1700000000000000000 + 100 * i, .dur_ns = 90, .name = 7, .count = 1};
    ck_ok(mstx_pack(p, in, 1000, &e), e);
    /* index, distance and duration: a byte each */
    ck_assert_uint_le(p->out.n, 3 * 1000 + 32);
    mstx_packer_free(p);
}
END_TEST

START_TEST(extreme_times_survive)
{
    const int64_t most = ((int64_t)1 << 62) - 1;
    const struct mstx_event in[] = {{.start_ns = -most, .dur_ns = most, .count = 1},
                                    {.start_ns = 0, .dur_ns = 0, .count = 1},
                                    {.start_ns = 0, .dur_ns = most, .count = UINT32_MAX}};
    static struct mstx_event out[MSTX_CHUNK_MAX];
    struct mstx_packer *p = mstx_packer_new();
    struct ms_err e = {0};
    uint32_t n;
    ck_ok(mstx_pack(p, in, 3, &e), e);
    ck_ok(mstx_unpack(ms_buf_slice(&p->out), out, &n, &e), e);
    for (int i = 0; i < 3; i++)
        ck_assert(same(&in[i], &out[i]));
    mstx_packer_free(p);
}
END_TEST

START_TEST(a_chunk_cut_off_anywhere_is_refused)
{
    static struct mstx_event in[300], out[MSTX_CHUNK_MAX];
    struct mstx_packer *p = mstx_packer_new();
    struct ms_err e = {0};
    uint32_t n;
    fill(in, 300, 40, true);
    ck_ok(mstx_pack(p, in, 300, &e), e);
    struct ms_str all = ms_buf_slice(&p->out);
    for (uint32_t cut = 0; cut < all.n; cut++) {
        struct ms_err why = {0};
        ck_assert_int_eq(mstx_unpack(ms_str_sub(all, 0, cut), out, &n, &why), MS_E_FORMAT);
        ck_assert_uint_eq(n, 0);
        ck_says(why, "damaged");
    }
    mstx_packer_free(p);
}
END_TEST

START_TEST(a_changed_byte_never_gives_times_that_overflow)
{
    static struct mstx_event in[64], out[MSTX_CHUNK_MAX];
    struct mstx_packer *p = mstx_packer_new();
    struct ms_err e = {0};
    uint32_t n;
    fill(in, 64, 9, true);
    ck_ok(mstx_pack(p, in, 64, &e), e);
    char *copy = ms_alloc(p->out.n);
    for (size_t at = 0; at < p->out.n; at++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, p->out.p, p->out.n);
            copy[at] = (char)(copy[at] ^ 1 << bit);
            struct ms_str s = {copy, (uint32_t)p->out.n};
            if (mstx_unpack_drawn(s, INT64_MAX, out, &n, NULL) == MS_OK)
                ck_assert_uint_le(n, MSTX_CHUNK_MAX);
            if (mstx_unpack(s, out, &n, NULL) != MS_OK)
                continue;
            int64_t sum;
            for (uint32_t i = 0; i < n; i++) {
                ck_assert(!__builtin_add_overflow(out[i].start_ns, out[i].dur_ns, &sum));
                ck_assert_uint_lt(out[i].kind, MSTX_EV_KINDS);
            }
        }
    }
    ms_free(copy);
    mstx_packer_free(p);
}
END_TEST

START_TEST(what_is_drawn_is_the_same_up_to_its_end)
{
    static struct mstx_event in[MSTX_CHUNK_MAX], out[MSTX_CHUNK_MAX];
    struct mstx_packer *p = mstx_packer_new();
    struct ms_err e = {0};
    uint32_t n;
    fill(in, MSTX_CHUNK_MAX, 300, true);
    ck_ok(mstx_pack(p, in, MSTX_CHUNK_MAX, &e), e);
    for (uint32_t below = 0; below < MSTX_CHUNK_MAX; below += 97) {
        uint32_t want = below + 1;
        while (want < MSTX_CHUNK_MAX && in[want].start_ns == in[below].start_ns)
            want++;
        ck_ok(mstx_unpack_drawn(ms_buf_slice(&p->out), in[below].start_ns, out, &n, &e), e);
        ck_assert_uint_eq(n, want);
        for (uint32_t i = 0; i < n; i++) {
            struct mstx_event drawn = in[i];
            drawn.id = drawn.args = drawn.end_tid = 0;
            ck_assert_msg(same(&drawn, &out[i]), "event %u of %u", i, n);
        }
    }
    ck_ok(mstx_unpack_drawn(ms_buf_slice(&p->out), in[0].start_ns - 1, out, &n, &e), e);
    ck_assert_uint_eq(n, 0);
    mstx_packer_free(p);
}
END_TEST

static bool is_name(void *ctx, uint32_t name)
{
    return name == *(const uint32_t *)ctx;
}

START_TEST(a_chunk_tells_whether_it_may_hold_a_name)
{
    static struct mstx_event in[100];
    struct mstx_packer *p = mstx_packer_new();
    struct ms_err e = {0};
    fill(in, 100, 10, false);
    in[57].name = 4711;
    ck_ok(mstx_pack(p, in, 100, &e), e);
    uint32_t there = 4711, absent = 4712;
    ck_assert(mstx_pack_has_name(ms_buf_slice(&p->out), is_name, &there));
    ck_assert(!mstx_pack_has_name(ms_buf_slice(&p->out), is_name, &absent));
    /* damaged: unpacking shall say so */
    ck_assert(mstx_pack_has_name(ms_str_sub(ms_buf_slice(&p->out), 0, 12), is_name, &absent));
    mstx_packer_free(p);
}
END_TEST

static uint32_t other_text(const void *ctx, uint32_t id)
{
    const uint32_t *by = ctx;
    return id != 0 ? id * 2 + *by : 0;
}

START_TEST(texts_get_other_numbers_and_nothing_else_changes)
{
    static struct mstx_event in[MSTX_CHUNK_MAX], out[MSTX_CHUNK_MAX];
    struct mstx_packer *p = mstx_packer_new();
    const uint32_t sizes[] = {1, 200, 1000, MSTX_CHUNK_MAX}, by = 100000;
    for (size_t c = 0; c < 8; c++) {
        struct ms_err e = {0};
        char *copy;
        uint32_t n;
        fill(in, sizes[c % 4], c == 3 ? 5000 : 20, c >= 4);
        for (uint32_t i = 0; i < sizes[c % 4]; i++)
            in[i].args %= 1000000;
        ck_ok(mstx_pack(p, in, sizes[c % 4], &e), e);
        const struct ms_str blob = {copy = ms_str_dup(ms_buf_slice(&p->out)), (uint32_t)p->out.n};
        ck_ok(mstx_pack_renumber(p, blob, other_text, &by, &e), e);
        ck_ok(mstx_unpack(ms_buf_slice(&p->out), out, &n, &e), e);
        for (uint32_t i = 0; i < sizes[c % 4]; i++) {
            in[i].name = other_text(&by, in[i].name);
            in[i].args = other_text(&by, in[i].args);
            ck_assert_msg(same(&in[i], &out[i]), "case %zu, event %u", c, i);
        }
        for (uint32_t cut = 0; cut < blob.n; cut += 1 + cut / 16)
            ck_assert_int_eq(
                mstx_pack_renumber(p, (struct ms_str){blob.p, cut}, other_text, &by, NULL),
                MS_E_FORMAT);
        ms_free(copy);
    }
    mstx_packer_free(p);
}
END_TEST

TEST_MAIN("pack", texts_get_other_numbers_and_nothing_else_changes, a_chunk_reads_back_as_it_was,
          columns_that_nobody_uses_take_no_bytes, extreme_times_survive,
          a_chunk_cut_off_anywhere_is_refused, a_changed_byte_never_gives_times_that_overflow,
          what_is_drawn_is_the_same_up_to_its_end, a_chunk_tells_whether_it_may_hold_a_name)
