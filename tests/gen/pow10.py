#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes probe/base/num_pow10.h: the leading 128 bits of the powers of ten.

    python3 tests/gen/pow10.py > probe/base/num_pow10.h

Each entry is 10**k scaled by a power of two into [2**127, 2**128) and rounded
down; it is exact for 0 <= k <= 55.  Reading a number needs k from -342 (below,
19 digits make zero) to 308; printing one needs -292 to 324.
"""
FIRST, LAST = -342, 324


def leading_bits(k):
    """floor(10**k * 2**s) with the s that makes 128 bits of it, and s."""
    num, den = (10**k, 1) if k >= 0 else (1, 10**-k)
    s = 128 - (num.bit_length() - den.bit_length())
    for shift in (s, s - 1, s + 1):
        value = (num << shift) // den if shift >= 0 else num // (den << -shift)
        if value.bit_length() == 128:
            return value, shift
    raise AssertionError(k)


def check_logarithms():
    """The integer logarithms that num.c uses hold over the whole range."""
    for k in range(FIRST, LAST + 1):
        assert (k * 1741647) >> 19 == 127 - leading_bits(k)[1], k
    for q in range(-1074, 972):
        for numerator, offset in ((4, 0), (3, 524031)):
            k = (q * 1262611 - offset) >> 22
            num, den = numerator, 4
            num, den = (num << q, den) if q >= 0 else (num, den << -q)
            lower = num * 10**max(-k, 0) >= den * 10**max(k, 0)
            upper = num * 10**max(-k - 1, 0) < den * 10**max(k + 1, 0)
            assert lower and upper, (q, offset)


def main():
    check_logarithms()
    print(f"""/* SPDX-License-Identifier: MIT
 *
 * num_pow10: the leading 128 bits of 10^{FIRST} to 10^{LAST}, rounded down, high half
 * first.  Written by tests/gen/pow10.py; tests/test_num.c computes it again.
 */
#ifndef PROBE_BASE_NUM_POW10_H
#define PROBE_BASE_NUM_POW10_H

#include <stdint.h>

enum {{ MS_POW10_FIRST = {FIRST}, MS_POW10_LAST = {LAST} }};

/* clang-format off */
static const uint64_t ms_num_pow10[MS_POW10_LAST - MS_POW10_FIRST + 1][2] = {{""")
    for k in range(FIRST, LAST + 1):
        value, _ = leading_bits(k)
        high, low = value >> 64, value & (2**64 - 1)
        assert low != 2**64 - 1, k  # num.c adds one to it
        print(f"    {{0x{high:016X}, 0x{low:016X}}}, /* {k} */")
    print("};\n/* clang-format on */\n\n#endif")


main()
