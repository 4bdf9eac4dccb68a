/* SPDX-License-Identifier: MIT */
#include "probe/base/crc.h"

#include "probe/base/cpu.h"
#include "tests/support/check.h"

#include <zlib.h>

static const unsigned variants[] = {0, MS_CPU_CLMUL, MS_CPU_CLMUL | MS_CPU_VCLMUL, ~0U};
enum { VARIANTS = sizeof variants / sizeof *variants };

enum { MOST = 70000 };
static uint8_t data[MOST];

static void fill(void)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < MOST; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint8_t)(x >> 24);
    }
}

START_TEST(every_version_equals_zlib_at_every_length)
{
    fill();
    for (int v = 0; v < VARIANTS; v++) {
        ms_cpu_limit(variants[v]);
        for (size_t n = 0; n <= 1100; n++) {
            const size_t at = n % 7;
            const uint32_t want = (uint32_t)crc32(n, data + at, (uInt)n);
            ck_assert_msg(ms_crc32((uint32_t)n, data + at, n) == want, "variant %d, %zu bytes", v,
                          n);
        }
        ck_assert_uint_eq(ms_crc32(0, data, MOST), crc32(0, data, MOST));
    }
    ms_cpu_limit(~0U);
}
END_TEST

START_TEST(pieces_in_order_equal_the_whole)
{
    fill();
    const uint32_t whole = ms_crc32(0, data, MOST);
    for (size_t cut = 0; cut <= MOST; cut += 997) {
        const uint32_t first = ms_crc32(0, data, cut);
        ck_assert_uint_eq(ms_crc32(first, data + cut, MOST - cut), whole);
    }
}
END_TEST

/* The digests that dumps of the official tool hold for these bytes. */
START_TEST(digests_of_dumped_tensors)
{
    static const float f32_8[] = {0, 1, 2, 3, 4, 5, 6, 7}, ones[] = {1, 1, 1}, scalar[] = {2.5F};
    static const int64_t i64_012[] = {0, 1, 2}, i64_123[] = {1, 2, 3};
    static const uint8_t bools[] = {0, 0, 1};
    static const uint16_t bf16[] = {0x3f80, 0x3f80, 0x3f80};
    static const struct {
        const void *p;
        size_t n;
        uint32_t crc;
        uint64_t xor ;
    } cases[] = {
        {f32_8, 32, 0x7a0a407c, 0x7f80000040400000},
        {f32_8, 24, 0x91e79017, 0x3f60000000800000},
        {ones, 12, 0xdc7c4e94, 0x3f80000000000000},
        {scalar, 4, 0xc21cba2e, 0x40200000},
        {i64_012, 24, 0x4f8c5ccc, 3},
        {i64_123, 24, 0x2bcb8d87, 0},
        {bools, 3, 0x8846e984, 0x10000},
        {bf16, 6, 0xc3883bcc, 0x00003f803f803f80},
        {"", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(ms_crc32(0, cases[i].p, cases[i].n), cases[i].crc);
        ck_assert_uint_eq(ms_xor64(cases[i].p, cases[i].n), cases[i].xor);
    }
    static const struct {
        const char *text;
        uint32_t crc;
    } texts[] = {{"[0]", 0x553403f9},
                 {"[0, 1]", 0x77849d8c},
                 {"[0, 1, 2, 3]", 0x67e9e248},
                 {"[0, 1, 2, 3, 4, 5, 6, 7]", 0x4aef6db1},
                 {"2", 0x1ad5be0d}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_uint_eq(ms_crc32(0, texts[i].text, strlen(texts[i].text)), texts[i].crc);
}
END_TEST

START_TEST(xor_equals_its_definition_at_every_length)
{
    fill();
    for (size_t n = 0; n < 300; n++) {
        uint8_t word[8] = {0};
        for (size_t i = 0; i < n; i++)
            word[i % 8] ^= data[i + 3];
        uint64_t want;
        memcpy(&want, word, sizeof want);
        ck_assert_uint_eq(ms_xor64(data + 3, n), want);
    }
}
END_TEST

TEST_MAIN("crc", every_version_equals_zlib_at_every_length, pieces_in_order_equal_the_whole,
          digests_of_dumped_tensors, xor_equals_its_definition_at_every_length)
