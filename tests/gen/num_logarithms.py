#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the integer logarithms of probe/base/num.c over the whole range that num.c uses.

    python3 tests/gen/num_logarithms.py

Reading a number needs powers of ten from -342 (below, 19 digits make zero) to 308;
printing one needs -292 to 324.
"""
FIRST, LAST = -342, 324


def log2_floor(num, den):
    """floor(log2(num / den))"""
    e = num.bit_length() - den.bit_length()
    return e if (num << max(-e, 0)) >= (den << max(e, 0)) else e - 1


for k in range(FIRST, LAST + 1):
    assert (k * 1741647) >> 19 == log2_floor(10**max(k, 0), 10**max(-k, 0)), k
for q in range(-1074, 972):
    for numerator, offset in ((4, 0), (3, 524031)):
        k = (q * 1262611 - offset) >> 22
        num, den = (numerator << max(q, 0)), 4 << max(-q, 0)
        lower = num * 10**max(-k, 0) >= den * 10**max(k, 0)
        upper = num * 10**max(-k - 1, 0) < den * 10**max(k + 1, 0)
        assert lower and upper, (q, offset)
print("ok")
