# SPDX-License-Identifier: MIT
# num_pow10: makes the C table of num.c: the leading 128 bits of 10^-342 to 10^324, rounded down,
# high half first.  test_num.c checks the table with another method.
#
# Big numbers are limbs of 16 bits, the lowest first: awk counts in doubles, which are exact far
# beyond a limb times ten.  A negative power is 2^1296 divided by ten again and again; each
# division rounds down, and rounding down twice is rounding down once.

# big = big * 10
function multiply(    i, carry, v) {
    carry = 0
    for (i = 0; i < n; i++) {
        v = big[i] * 10 + carry
        big[i] = v % 65536
        carry = int(v / 65536)
    }
    if (carry > 0)
        big[n++] = carry
}

# big = floor(big / 10)
function divide(    i, rest, v) {
    rest = 0
    for (i = n - 1; i >= 0; i--) {
        v = rest * 65536 + big[i]
        big[i] = int(v / 10)
        rest = v % 10
    }
    while (big[n - 1] == 0)
        n--
}

function set_power_of_two(limbs,    i) {
    for (i = 0; i < limbs; i++)
        big[i] = 0
    big[limbs] = 1
    n = limbs + 1
}

# The leading 128 bits of big as an initializer.
function row(k,    up, i, hex) {
    for (up = 1; big[n - 1] * up < 32768; up *= 2)
        ;
    for (i = n - 1; i >= n - 8; i--)
        hex = hex sprintf("%04X", limb(i) * up % 65536 + int(limb(i - 1) * up / 65536))
    return "    {0x" substr(hex, 1, 16) ", 0x" substr(hex, 17) "}, /* " k " */"
}
function limb(i) { return i >= 0 ? big[i] : 0 }

BEGIN {
    first = -342
    last = 324
    print "/* Made by num_pow10.awk; change that. */"
    print "enum { MS_POW10_FIRST = " first ", MS_POW10_LAST = " last " };"
    print "static const uint64_t ms_num_pow10[MS_POW10_LAST - MS_POW10_FIRST + 1][2] = {"
    set_power_of_two(81)
    for (k = -1; k >= first; k--) {
        divide()
        rows[k] = row(k)
    }
    set_power_of_two(0)
    for (k = 0; k <= last; k++) {
        rows[k] = row(k)
        multiply()
    }
    for (k = first; k <= last; k++)
        print rows[k]
    print "};"
}
