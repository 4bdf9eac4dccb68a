/* SPDX-License-Identifier: MIT
 *
 * quant_number: the tables of the OCP specifications, every code there and back, ties, and scales. Torch's own
 * types are compared in tests/suites/suite_quantise.sh.
 */
#include "probe/quantise/quant_number.h"

#include "tests/support/check.h"

#include <math.h>

/* Largest value, smallest normal and smallest value above 0, as published. */
static const struct {
    enum quant_number n;
    double most, normal, least;
} published[] = {
    {QUANT_E4M3, 448, 0x1p-6, 0x1p-9},
    {QUANT_E5M2, 57344, 0x1p-14, 0x1p-16},
    {QUANT_E4M3Z, 240, 0x1p-7, 0x1p-10},
    {QUANT_E5M2Z, 57344, 0x1p-15, 0x1p-17},
    {QUANT_E3M2, 28, 0.25, 0.0625},
    {QUANT_E2M3, 7.5, 1, 0.125},
    {QUANT_E2M1, 6, 1, 0.5},
    {QUANT_INT8, 127, 1, 1},
    {QUANT_INT4, 7, 1, 1},
};

START_TEST(limits_are_those_published)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const enum quant_number n = published[i].n;
        ck_assert_double_eq(quant_round(n, 1e9, QUANT_SATURATES), published[i].most);
        ck_assert_double_eq(quant_round(n, published[i].least, QUANT_SATURATES),
                            published[i].least);
        ck_assert_double_eq(quant_round(n, published[i].least * 0.49, QUANT_SATURATES), 0);
        ck_assert_double_eq(quant_step(n, published[i].normal),
                            quant_facts(n)->is_integer ? 1 : published[i].least);
    }
}
END_TEST

START_TEST(codes_go_there_and_back)
{
    for (int n = 0; n < QUANT_NUMBERS; n++) {
        const int bits = quant_facts((enum quant_number)n)->bits;
        unsigned above = 0;
        for (int code = 0; code < 1 << bits; code++) {
            const double v = quant_decode((enum quant_number)n, (uint8_t)code);
            above += v > 0 && isfinite(v);
            if (isfinite(v))
                ck_assert_int_eq(quant_encode((enum quant_number)n, v, QUANT_SATURATES), code);
        }
        ck_assert_uint_eq(above, quant_facts((enum quant_number)n)->magnitudes);
        ck_assert_uint_eq(quant_magnitudes_above((enum quant_number)n, 0), above);
        ck_assert_uint_eq(
            quant_magnitudes_above((enum quant_number)n, quant_facts((enum quant_number)n)->most),
            0);
    }
}
END_TEST

START_TEST(e2m1_has_eight_magnitudes)
{
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (int code = 0; code < 8; code++) {
        ck_assert_double_eq(quant_decode(QUANT_E2M1, (uint8_t)code), values[code]);
        ck_assert_double_eq(quant_decode(QUANT_E2M1, (uint8_t)(code | 8)), -values[code]);
    }
}
END_TEST

START_TEST(ties_go_to_even)
{
    ck_assert_double_eq(quant_round(QUANT_E2M1, 2.5, QUANT_SATURATES), 2);
    ck_assert_double_eq(quant_round(QUANT_E2M1, 3.5, QUANT_SATURATES), 4);
    ck_assert_double_eq(quant_round(QUANT_E2M1, 5, QUANT_SATURATES), 4);
    ck_assert_double_eq(quant_round(QUANT_E2M1, 0.25, QUANT_SATURATES), 0);
    ck_assert_double_eq(quant_round(QUANT_E2M1, -0.75, QUANT_SATURATES), -1);
    ck_assert_double_eq(quant_round(QUANT_INT8, 2.5, QUANT_SATURATES), 2);
    ck_assert_double_eq(quant_round(QUANT_INT8, -3.5, QUANT_SATURATES), -4);
}
END_TEST

START_TEST(overflow_is_the_largest_or_none)
{
    ck_assert_double_eq(quant_round(QUANT_E4M3, 464, QUANT_OVERFLOWS), 448);
    ck_assert(isnan(quant_round(QUANT_E4M3, 464.1, QUANT_OVERFLOWS)));
    ck_assert(isinf(quant_round(QUANT_E5M2, 1e6, QUANT_OVERFLOWS)));
    ck_assert_double_eq(quant_round(QUANT_E5M2, -1e6, QUANT_SATURATES), -57344);
    ck_assert_double_eq(quant_round(QUANT_INT8, -1000, QUANT_SATURATES), -128);
    ck_assert(isnan(quant_round(QUANT_E4M3, (double)NAN, QUANT_SATURATES)));
    ck_assert_int_eq(quant_encode(QUANT_E4M3, (double)NAN, QUANT_SATURATES), 0x7f);
    ck_assert_int_eq(quant_encode(QUANT_E4M3Z, -0.0, QUANT_SATURATES), 0);
    ck_assert_int_eq(quant_encode(QUANT_E4M3, -0.0, QUANT_SATURATES), 0x80);
}
END_TEST

START_TEST(shared_exponents_follow_their_rule)
{
    /* e2m1: floor(log2(7)) - 2 = 0; up: 3 - 2 = 1; rounded to one bit 7 is 8; 7 / 6 needs 2. */
    ck_assert_int_eq(quant_power_code(QUANT_E2M1, 7, QUANT_FLOOR), 127);
    ck_assert_int_eq(quant_power_code(QUANT_E2M1, 7, QUANT_CEIL), 128);
    ck_assert_int_eq(quant_power_code(QUANT_E2M1, 7, QUANT_EVEN), 128);
    ck_assert_int_eq(quant_power_code(QUANT_E2M1, 7, QUANT_RCEIL), 128);
    ck_assert_int_eq(quant_power_code(QUANT_E2M1, 6, QUANT_RCEIL), 127);
    ck_assert_int_eq(quant_power_code(QUANT_E4M3, 0, QUANT_FLOOR), 0);
    ck_assert_int_eq(quant_power_code(QUANT_E4M3, NAN, QUANT_FLOOR), 255);
    ck_assert_double_eq((double)quant_power_value(127), 1);
    ck_assert_double_eq((double)quant_power_value(0), 0x1p-126);
    ck_assert(isnan(quant_power_value(255)));
}
END_TEST

TEST_MAIN("quant_number", limits_are_those_published, codes_go_there_and_back,
          e2m1_has_eight_magnitudes, ties_go_to_even, overflow_is_the_largest_or_none,
          shared_exponents_follow_their_rule)
