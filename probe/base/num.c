/* SPDX-License-Identifier: MIT
 *
 * num: decimal text to binary numbers and back.
 *
 * Both directions use one table of powers of ten cut to 128 bits (num_pow10.awk makes it).
 *
 * Reading tries three ways. Each way gives the correct result or reports that it cannot decide:
 *
 * Printing finds the shortest decimal in the interval that rounds to the value
 * (the Schubfach method of Giulietti): the interval's ends and its middle are
 * scaled by a power of ten so that it is between 2 and 20 units wide.  Then at
 * most one multiple of ten can lie in it, and one of the two integers next to
 * the value does.
 */
#include "probe/base/num.h"

#include "probe/base/num_pow10.h"
#include "probe/base/scan.h"

#include <assert.h>
#include <string.h>

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

/* floor(log2(10^k)), floor(log10(2^q)) and floor(log10(3/4 2^q)).  tests/gen/num_logarithms.py checks
 * them over the whole range.  >> of a negative number rounds down, as gcc and clang define it. */
static int log2_pow10(int k)
{
    return (k * 1741647) >> 19;
}
static int log10_pow2(int q)
{
    return (q * 1262611) >> 22;
}
static int log10_three_quarters_pow2(int q)
{
    return (q * 1262611 - 524031) >> 22;
}

static const uint64_t *pow10_bits(int k)
{
    assert(k >= MS_POW10_FIRST && k <= MS_POW10_LAST);
    return ms_num_pow10[k - MS_POW10_FIRST];
}
static bool pow10_is_exact(int k)
{
    return k >= 0 && k <= 55;
}

/* ---- decimal text ----------------------------------------------------------- */

/* A decimal number: value = w * 10^exp10, or slightly more when digits were left out. */
struct decimal {
    const char *digits, *digits_end; /* first significant digit to the end, a '.' among them */
    uint64_t w;                      /* the leading significant digits, at most 19 */
    int64_t exp10;
    bool negative, left_out;
};

enum { WORD_DIGITS = 19 }; /* always fit in 64 bits */

/* Returns the value of eight digits, the first in the lowest byte, each byte 0 to 9. Neighbouring
 * digits are joined into pairs, pairs into fours, fours into one number. */
static uint64_t value8(uint64_t v)
{
    v = v * 10 + (v >> 8);
    const uint64_t pairs = 0x000000FF000000FFU;
    const uint64_t even = 0x000F424000000064U; /* 100 and 10^6 << 32 */
    const uint64_t odd = 0x0000271000000001U;  /* 1 and 10^4 << 32 */
    return ((v & pairs) * even + ((v >> 16) & pairs) * odd) >> 32;
}

/* Reads a run of digits into *w, which wraps around when there are too many; returns the place
 * behind the run. */
static inline const char *take_digits(const char *p, const char *end, uint64_t *w)
{
    static const uint64_t pow10[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    while (end - p >= 8) {
        uint64_t v = ms_load8(p);
        unsigned n = ms_count_digits8(v);
        v ^= 0x3030303030303030U;
        if (n == 8) {
            *w = *w * 100000000 + value8(v);
            p += 8;
            continue;
        }
        /* The shift puts zeros in front of the n digits and drops the bytes behind them. */
        if (n != 0)
            *w = *w * pow10[n] + value8(v << (64 - 8 * n));
        return p + n;
    }
    while (p < end && ms_is_digit(*p))
        *w = *w * 10 + (uint64_t)(*p++ - '0');
    return p;
}

/* Reads the exponent behind 'e'; NULL when there is none. A huge exponent is limited to 10^17,
 * which has the same result. */
static const char *take_exponent(const char *p, const char *end, int64_t *exp10)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end || !ms_is_digit(*p))
        return NULL;
    int64_t e = 0;
    for (; p < end && ms_is_digit(*p); p++) {
        if (e < INT64_C(100000000000000000))
            e = e * 10 + (*p - '0');
    }
    *exp10 += negative ? -e : e;
    return p;
}

/* Handles more digits than a word holds: w keeps the leading digits, and the exponent is raised for
 * the others. */
static void keep_leading_digits(struct decimal *d, int64_t count)
{
    int64_t kept = 0;
    d->w = 0;
    for (const char *p = d->digits; kept < WORD_DIGITS; p++) {
        if (*p == '.')
            continue;
        d->w = d->w * 10 + (uint64_t)(*p - '0');
        kept++;
    }
    d->exp10 += count - kept;
    d->left_out = true;
}

/* Skips leading zeros. */
static void skip_zeros(struct decimal *d)
{
    while (d->digits < d->digits_end && (*d->digits == '0' || *d->digits == '.'))
        d->digits++;
}

/* Parses a JSON number that fills [p, end), after its sign. */
static bool take_decimal(const char *p, const char *end, struct decimal *d)
{
    const char *from = p;
    p = take_digits(p, end, &d->w);
    if (p == from || (*from == '0' && p - from > 1))
        return false;
    int64_t count = p - from;
    if (p < end && *p == '.') {
        const char *fraction = p + 1;
        p = take_digits(fraction, end, &d->w);
        if (p == fraction)
            return false;
        d->exp10 = fraction - p;
        count += p - fraction;
    }
    d->digits = from;
    d->digits_end = p;
    if (p < end && (*p | 0x20) == 'e')
        p = take_exponent(p + 1, end, &d->exp10);
    if (count > WORD_DIGITS) {
        skip_zeros(d);
        const char *point = memchr(from, '.', (size_t)(d->digits_end - from));
        count = d->digits_end - d->digits - (point != NULL && point >= d->digits);
        if (count > WORD_DIGITS)
            keep_leading_digits(d, count);
    }
    return p == end;
}

/* ---- decimal to double: the exact last resort --------------------------------- */

/* Digits that the exact comparison uses. Halfway points between doubles have at most 767
 * significant digits, so digits beyond BIG_DIGITS matter only in whether any of them is not zero.
 * 800 digits need 2658 bits; both sides of a comparison are of that size or of 5^342 (795 bits)
 * times a double's 54 and the 1075 bits below one, whichever is larger. */
enum { BIG_DIGITS = 800, BIG_LIMBS = 64 };

struct big {
    unsigned n;
    uint64_t limb[BIG_LIMBS]; /* lowest first, the highest not zero */
};

static void big_mul_add(struct big *b, uint64_t factor, uint64_t add)
{
    uint64_t carry = add;
    for (unsigned i = 0; i < b->n; i++) {
        __uint128_t t = (__uint128_t)b->limb[i] * factor + carry;
        b->limb[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
    if (carry != 0) {
        assert(b->n < BIG_LIMBS);
        b->limb[b->n++] = carry;
    }
}

static void big_mul_pow5(struct big *b, unsigned power)
{
    const uint64_t five27 = UINT64_C(7450580596923828125);
    for (; power >= 27; power -= 27)
        big_mul_add(b, five27, 0);
    uint64_t rest = 1;
    while (power-- > 0)
        rest *= 5;
    big_mul_add(b, rest, 0);
}

static void big_shift_left(struct big *b, unsigned bits)
{
    unsigned limbs = bits / 64;
    assert(b->n + limbs < BIG_LIMBS);
    if (b->n != 0)
        memmove(b->limb + limbs, b->limb, b->n * sizeof b->limb[0]);
    memset(b->limb, 0, limbs * sizeof b->limb[0]);
    b->n += limbs;
    big_mul_add(b, UINT64_C(1) << (bits % 64), 0);
}

static int big_cmp(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (unsigned i = a->n; i-- > 0;) {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    }
    return 0;
}

/* Reads the leading digits of d into b. *taken is the number of digits read, *count the number of
 * all digits. Returns whether one of the digits not read is not 0. */
static bool big_from_digits(struct big *b, const struct decimal *d, int64_t *taken, int64_t *count)
{
    bool rest = false;
    *taken = *count = 0;
    b->n = 0;
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == '.')
            continue;
        (*count)++;
        if (*taken == BIG_DIGITS) {
            rest = rest || *p != '0';
            continue;
        }
        big_mul_add(b, 10, (uint64_t)(*p - '0'));
        (*taken)++;
    }
    return rest;
}

/* Compares d with the point halfway between two doubles, odd * 2^exp2. */
static int cmp_halfway(struct decimal d, uint64_t odd, int exp2)
{
    struct big left;
    struct big right = {.n = 1, .limb = {odd}};
    int64_t taken;
    int64_t count;
    /* d.exp10 is the exponent of the last digit of w; exp10 is that of the last digit read. */
    skip_zeros(&d);
    bool rest = big_from_digits(&left, &d, &taken, &count);
    int64_t exp10 = d.exp10 - (d.left_out ? count - WORD_DIGITS : 0) + (count - taken);
    if (exp10 >= 0)
        big_mul_pow5(&left, (unsigned)exp10);
    else
        big_mul_pow5(&right, (unsigned)-exp10);
    int64_t shift = exp10 - exp2;
    big_shift_left(shift >= 0 ? &left : &right, (unsigned)(shift >= 0 ? shift : -shift));
    int c = big_cmp(&left, &right);
    return c != 0 ? c : rest;
}

/* ---- decimal to double: the product ------------------------------------------- */

enum { EXP_MIN = -1022, EXP_MAX = 1023, FRACTION_BITS = 52 };

/* A product rounded down to the bits of a double, mantissa * 2^exp2, and what is known about the
 * rest. */
struct cut_product {
    uint64_t mantissa;
    int exp2;      /* of the mantissa's last bit */
    bool above;    /* the rest is at least half a unit of it */
    bool is_sure;  /* `above` is certain, and the rest not exactly one half */
    bool overflow; /* 2^1024 or more */
};

/* Returns w * 10^q. The 128 bits hi, lo are the product rounded down. The true value is less than
 * one unit of hi above them, and after the second multiplication less than two units of lo. So the
 * bits of hi from the ninth up are certain unless all bits below are ones. Only these bits matter,
 * because at least ten bits of hi are cut off. */
static struct cut_product multiply(uint64_t w, int q)
{
    const uint64_t *g = pow10_bits(q);
    int zeros = __builtin_clzll(w);
    __uint128_t product = (__uint128_t)(w << zeros) * g[0];
    const uint64_t guard = 0x1FF;
    bool is_sure = true;
    if (((uint64_t)(product >> 64) & guard) == guard) {
        product += ((__uint128_t)(w << zeros) * g[1]) >> 64;
        is_sure =
            ((uint64_t)(product >> 64) & guard) != guard || (uint64_t)product < UINT64_MAX - 1;
    }
    uint64_t hi = (uint64_t)(product >> 64);
    uint64_t lo = (uint64_t)product;
    int top = (int)(hi >> 63);
    int exp2 = 63 + top + log2_pow10(q) - zeros; /* of the leading bit */
    int cut = 10 + top + (exp2 < EXP_MIN ? EXP_MIN - exp2 : 0);
    if (cut >= 64)
        return (struct cut_product){.exp2 = EXP_MIN - FRACTION_BITS};
    uint64_t rest = hi & ((UINT64_C(1) << cut) - 1);
    uint64_t half = UINT64_C(1) << (cut - 1);
    return (struct cut_product){
        .mantissa = hi >> cut,
        .exp2 = (exp2 < EXP_MIN ? EXP_MIN : exp2) - FRACTION_BITS,
        .above = rest >= half,
        .is_sure = is_sure && !(rest == half && lo == 0),
        .overflow = exp2 > EXP_MAX,
    };
}

/* Builds a double. The fields are added, not combined with OR, so that a mantissa that overflows in
 * rounding carries into the exponent: from subnormal to normal, and from the largest number to
 * infinity. */
static double assemble_double(const struct cut_product *c, bool up)
{
    const uint64_t infinity = UINT64_C(0x7FF) << FRACTION_BITS;
    if (c->overflow)
        return ms_f64_of_bits(infinity);
    uint64_t biased = (uint64_t)(c->exp2 + FRACTION_BITS - EXP_MIN);
    return ms_f64_of_bits((biased << FRACTION_BITS) + c->mantissa + up);
}

static double round_exactly(const struct decimal *d, const struct cut_product *c)
{
    int order = cmp_halfway(*d, 2 * c->mantissa + 1, c->exp2 - 1);
    return assemble_double(c, order > 0 || (order == 0 && (c->mantissa & 1) != 0));
}

static double round_product(const struct decimal *d)
{
    if (d->exp10 < MS_POW10_FIRST)
        return 0.0; /* below 10^19 * 10^-343, less than half the smallest number */
    if (d->exp10 > 308)
        return ms_f64_of_bits(UINT64_C(0x7FF) << FRACTION_BITS);
    struct cut_product c = multiply(d->w, (int)d->exp10);
    if (c.overflow)
        return assemble_double(&c, false);
    if (!c.is_sure)
        return round_exactly(d, &c);
    double v = assemble_double(&c, c.above);
    if (!d->left_out)
        return v;
    /* The digits left out are less than one unit of w, so the result is decided when w + 1 gives
     * the same double. */
    struct cut_product next = multiply(d->w + 1, (int)d->exp10);
    return next.is_sure && assemble_double(&next, next.above) == v ? v : round_exactly(d, &c);
}

static double to_double(const struct decimal *d)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->w == 0)
        return 0.0;
    if (d->w <= UINT64_C(1) << 53 && d->exp10 >= -22 && d->exp10 <= 22 && !d->left_out)
        return d->exp10 < 0 ? (double)d->w / exact[-d->exp10] : (double)d->w * exact[d->exp10];
    return round_product(d);
}

static bool parse_word(const char *p, size_t n, double *out)
{
    if (n == 8 && memcmp(p, "Infinity", 8) == 0)
        *out = ms_f64_of_bits(UINT64_C(0x7FF0000000000000));
    else if (n == 3 && memcmp(p, "NaN", 3) == 0)
        *out = ms_f64_of_bits(UINT64_C(0x7FF8000000000000));
    else
        return false;
    return true;
}

bool ms_num_parse_f64(const char *p, size_t n, double *out)
{
    struct decimal d = {.negative = n != 0 && *p == '-'};
    const char *from = p + d.negative;
    if (n == d.negative)
        return false;
    double v;
    if (take_decimal(from, p + n, &d))
        v = to_double(&d);
    else if ((d.negative && *from == 'N') || !parse_word(from, n - d.negative, &v))
        return false;
    *out = d.negative ? -v : v;
    return true;
}

/* ---- integers ------------------------------------------------------------------ */

static unsigned count_digits(uint64_t v)
{
    unsigned n = 1;
    if (v >= 10000000000000000) {
        v /= 10000000000000000;
        n += 16;
    }
    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* Returns the eight digits of v < 10^8 as characters, the first in the lowest byte: the reverse of
 * value8. The number is cut into fours, pairs and digits; a product with a shift divides, exactly
 * for numbers of so few digits. */
static uint64_t digits8(uint32_t v)
{
    const uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
    const uint64_t high = (fours * 10486) >> 20 & 0x0000007F0000007FU;
    const uint64_t pairs = high | (fours - 100 * high) << 16;
    const uint64_t tens = (pairs * 103) >> 10 & 0x000F000F000F000FU;
    return (tens | (pairs - 10 * tens) << 8) + 0x3030303030303030U;
}

/* Writes the last n digits of v to out[0..n). */
static void put_digits(char *out, uint64_t v, unsigned n)
{
    for (; n >= 8; v /= 100000000) {
        const uint64_t digits = digits8((uint32_t)(v % 100000000));
        n -= 8;
        memcpy(out + n, &digits, 8);
    }
    uint32_t low = (uint32_t)v; /* 32-bit division takes half the time */
    for (; n >= 2; low /= 100) {
        n -= 2;
        memcpy(out + n, digit_pairs + 2 * (low % 100), 2);
    }
    if (n != 0)
        out[0] = (char)('0' + low % 10);
}

unsigned ms_num_u64(char *out, uint64_t v)
{
    if (v < 10) { /* most sizes and indices */
        *out = (char)('0' + v);
        return 1;
    }
    unsigned n = count_digits(v);
    put_digits(out, v, n);
    return n;
}

unsigned ms_num_i64(char *out, int64_t v)
{
    if (v >= 0)
        return ms_num_u64(out, (uint64_t)v);
    *out = '-';
    return 1 + ms_num_u64(out + 1, 0 - (uint64_t)v);
}

/* ---- double to decimal ----------------------------------------------------------- */

struct shortest {
    uint64_t digits;
    int exp10; /* value = digits * 10^exp10 */
};

/* Returns the integer part of v * g / 2^128, with its last bit set when the rest is not zero. g is
 * rounded up by less than one, and that error must not count as a rest: hence "more than one". */
static uint64_t scale_to_odd(__uint128_t g, uint64_t v)
{
    __uint128_t low = (__uint128_t)(uint64_t)g * v;
    __uint128_t high = (g >> 64) * v + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* Picks one of the two integers next to v4 / 4: the one inside the interval, else the nearer one,
 * even on a tie. */
static uint64_t pick_digit(uint64_t lower, uint64_t v4, uint64_t upper)
{
    uint64_t down = v4 / 4;
    bool down_inside = lower <= 4 * down;
    bool up_inside = 4 * down + 4 <= upper;
    if (down_inside != up_inside)
        return down + up_inside;
    uint64_t middle = 4 * down + 2;
    return down + (v4 > middle || (v4 == middle && (down & 1) != 0));
}

/* Returns the shortest decimal that rounds to c * 2^q. The interval reaches half a unit to both
 * sides, and a quarter below when c is the first of its binade; its ends belong to the interval
 * when c is even. All numbers are in quarter units. */
static struct shortest find_shortest(uint64_t c, int q, bool narrow_below)
{
    int k = narrow_below ? log10_three_quarters_pow2(q) : log10_pow2(q);
    int shift = q + log2_pow10(-k) + 1;
    const uint64_t *bits = pow10_bits(-k);
    __uint128_t g = ((__uint128_t)bits[0] << 64 | bits[1]) + !pow10_is_exact(-k);
    bool open = (c & 1) != 0;
    uint64_t lower = scale_to_odd(g, (4 * c - 2 + narrow_below) << shift) + open;
    uint64_t v4 = scale_to_odd(g, (4 * c) << shift);
    uint64_t upper = scale_to_odd(g, (4 * c + 2) << shift) - open;
    uint64_t tens = v4 / 40;
    bool down_inside = lower <= 40 * tens;
    bool up_inside = 40 * tens + 40 <= upper;
    if (tens != 0 && down_inside != up_inside)
        return (struct shortest){tens + up_inside, k + 1};
    return (struct shortest){pick_digit(lower, v4, upper), k};
}

static unsigned put_zeros(char *out, int n)
{
    memset(out, '0', (size_t)n);
    return (unsigned)n;
}

/* Writes d.ddde-05, with at least two digits of exponent. */
static unsigned put_scientific(char *out, const char *digits, unsigned n, int exp10)
{
    unsigned at = 0;
    out[at++] = digits[0];
    if (n > 1) {
        out[at++] = '.';
        memcpy(out + at, digits + 1, n - 1);
        at += n - 1;
    }
    out[at++] = 'e';
    out[at++] = exp10 < 0 ? '-' : '+';
    uint64_t size = (uint64_t)(exp10 < 0 ? -exp10 : exp10);
    unsigned width = size < 100 ? 2 : 3;
    put_digits(out + at, size, width);
    return at + width;
}

/* Writes plain notation. `point` is the position of the '.', counted from the first digit: -3 to
 * 16. */
static unsigned put_plain(char *out, const char *digits, unsigned n, int point)
{
    unsigned at = 0;
    unsigned whole = point <= 0 ? 0 : (unsigned)point < n ? (unsigned)point : n;
    memcpy(out, digits, whole);
    at += whole;
    at += put_zeros(out + at, point <= 0 ? 1 : point - (int)whole);
    out[at++] = '.';
    if (point < 0)
        at += put_zeros(out + at, -point);
    if (whole == n)
        out[at++] = '0';
    memcpy(out + at, digits + whole, n - whole);
    return at + n - whole;
}

static unsigned put_shortest(char *out, struct shortest s)
{
    char digits[20];
    unsigned n = ms_num_u64(digits, s.digits);
    int point = (int)n + s.exp10;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (point <= -4 || point > 16)
        return put_scientific(out, digits, n, point - 1);
    return put_plain(out, digits, n, point);
}

/* Writes a number that is finite and not negative. */
static unsigned put_finite(char *out, uint64_t bits)
{
    uint64_t fraction = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
    int biased = (int)(bits >> FRACTION_BITS);
    double v = ms_f64_of_bits(bits);
    if (v < 9007199254740992.0 && v == (double)(int64_t)v) {
        unsigned n = ms_num_u64(out, (uint64_t)v);
        memcpy(out + n, ".0", 2);
        return n + 2;
    }
    if (biased == 0)
        return put_shortest(out, find_shortest(fraction, EXP_MIN - FRACTION_BITS, false));
    uint64_t c = fraction | UINT64_C(1) << FRACTION_BITS;
    int q = biased - 1 + EXP_MIN - FRACTION_BITS;
    return put_shortest(out, find_shortest(c, q, fraction == 0 && biased > 1));
}

unsigned ms_num_f64(char *out, double v)
{
    uint64_t bits = ms_bits_of_f64(v);
    if (v != v) {
        memcpy(out, "NaN", 3);
        return 3;
    }
    unsigned sign = (unsigned)(bits >> 63);
    if (sign != 0)
        *out++ = '-';
    bits &= UINT64_MAX >> 1;
    if (bits >> FRACTION_BITS == 0x7FF) {
        memcpy(out, "Infinity", 8);
        return sign + 8;
    }
    return sign + put_finite(out, bits);
}
