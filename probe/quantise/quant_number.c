/* SPDX-License-Identifier: MIT
 *
 * quant_number: see the header.
 */
#include "probe/quantise/quant_number.h"

#include "probe/base/assert.h"
#include "probe/base/num.h"

#include <math.h>

static const struct quant_facts all_facts[QUANT_NUMBERS] = {
    [QUANT_E4M3] = {"e4m3", 8, 3, 7, false, 448, 0x1p-9, 8, 126, 0, 0},
    [QUANT_E5M2] = {"e5m2", 8, 2, 15, false, 57344, 0x1p-16, 15, 123, 0, 0},
    [QUANT_E4M3Z] = {"e4m3fnuz", 8, 3, 8, false, 240, 0x1p-10, 7, 127, 0, 0},
    [QUANT_E5M2Z] = {"e5m2fnuz", 8, 2, 16, false, 57344, 0x1p-17, 15, 127, 0, 0},
    [QUANT_E3M2] = {"e3m2", 6, 2, 3, false, 28, 0x1p-4, 4, 31, 0, 0},
    [QUANT_E2M3] = {"e2m3", 6, 3, 1, false, 7.5, 0x1p-3, 2, 31, 0, 0},
    [QUANT_E2M1] = {"e2m1", 4, 1, 1, false, 6, 0x1p-1, 2, 7, 0, 0},
    [QUANT_INT8] = {"int8", 8, 0, 0, true, 127, 1, 6, 127, -128, 127},
    [QUANT_INT4] = {"int4", 4, 0, 0, true, 7, 1, 2, 7, -8, 7},
};

const struct quant_facts *quant_facts(enum quant_number n)
{
    ms_assert((unsigned)n < QUANT_NUMBERS);
    return &all_facts[n];
}

/* ---- rounding ----------------------------------------------------------------------- */

/* Exponent of a normal double. */
static int exponent_of(double v)
{
    return (int)(ms_bits_of_f64(v) >> 52 & 0x7ff) - 1023;
}
static double power_of_two(int e)
{
    return ms_f64_of_bits((uint64_t)(e + 1023) << 52);
}

double quant_step(enum quant_number n, double magnitude)
{
    const struct quant_facts *f = quant_facts(n);
    const int least = 1 - f->bias, e = exponent_of(magnitude);
    return f->is_integer ? 1 : power_of_two((e > least ? e : least) - f->fraction);
}

/* Rounds to a multiple of a power of two: the sum has no bit below the step, and the addition rounds to
 * nearest even. */
static double round_to(double magnitude, double step)
{
    const double shift = step * 0x1p52;
    return magnitude >= shift ? magnitude : magnitude + shift - shift;
}

double quant_round_unbounded(enum quant_number n, double v)
{
    const double a = fabs(v);
    if (!(a < (double)INFINITY) || a == 0)
        return v;
    return copysign(round_to(a, quant_step(n, a)), v);
}

static bool has_no_negative_zero(enum quant_number n)
{
    return n == QUANT_E4M3Z || n == QUANT_E5M2Z || quant_facts(n)->is_integer;
}

double quant_round(enum quant_number n, double v, enum quant_overflow o)
{
    const struct quant_facts *f = quant_facts(n);
    const double r = quant_round_unbounded(n, v);
    if (f->is_integer && r < 0)
        return r > f->from ? r : f->from;
    if (r == 0 && has_no_negative_zero(n))
        return 0;
    if (!(fabs(r) > f->most))
        return r;
    if (o == QUANT_SATURATES || f->is_integer)
        return copysign(f->most, r);
    return n == QUANT_E5M2 ? copysign((double)INFINITY, r) : (double)NAN;
}

/* ---- codes ---------------------------------------------------------------------------- */

static uint8_t sign_bit(const struct quant_facts *f)
{
    return (uint8_t)(1u << (f->bits - 1));
}
static uint8_t nan_code(enum quant_number n)
{
    return n == QUANT_E4M3 || n == QUANT_E5M2     ? 0x7f
           : n == QUANT_E4M3Z || n == QUANT_E5M2Z ? 0x80
                                                  : 0;
}

/* Returns the code of a finite magnitude of the type. */
static uint8_t magnitude_code(const struct quant_facts *f, double a)
{
    if (a < power_of_two(1 - f->bias))
        return (uint8_t)(a / f->least);
    const int e = exponent_of(a);
    const double fraction = a / power_of_two(e) - 1;
    return (uint8_t)((e + f->bias) << f->fraction | (int)(fraction * (1 << f->fraction)));
}

uint8_t quant_encode(enum quant_number n, double v, enum quant_overflow o)
{
    const struct quant_facts *f = quant_facts(n);
    const double r = quant_round(n, v, o);
    if (isnan(r))
        return nan_code(n);
    if (f->is_integer)
        return (uint8_t)((int)r & ((1 << f->bits) - 1));
    const uint8_t sign = signbit(r) ? sign_bit(f) : 0;
    return isinf(r) ? sign | 0x7c : sign | magnitude_code(f, fabs(r));
}

static double decode_integer(const struct quant_facts *f, uint8_t code)
{
    const int v = code & ((1 << f->bits) - 1);
    return v >= 1 << (f->bits - 1) ? v - (1 << f->bits) : v;
}

static bool is_nan_code(enum quant_number n, uint8_t code)
{
    switch (n) {
    case QUANT_E4M3:
        return (code & 0x7f) == 0x7f;
    case QUANT_E5M2:
        return (code & 0x7f) > 0x7c;
    case QUANT_E4M3Z:
    case QUANT_E5M2Z:
        return code == 0x80;
    default:
        return false;
    }
}

double quant_decode(enum quant_number n, uint8_t code)
{
    const struct quant_facts *f = quant_facts(n);
    if (f->is_integer)
        return decode_integer(f, code);
    if (is_nan_code(n, code))
        return (double)NAN;
    const int magnitude = code & (sign_bit(f) - 1);
    const int e = magnitude >> f->fraction, fraction = magnitude & ((1 << f->fraction) - 1);
    const double a = n == QUANT_E5M2 && magnitude == 0x7c ? (double)INFINITY
                     : e == 0
                         ? fraction * f->least
                         : (fraction | 1 << f->fraction) * power_of_two(e - f->bias - f->fraction);
    return (code & sign_bit(f)) != 0 ? -a : a;
}

unsigned quant_magnitudes_above(enum quant_number n, double v)
{
    const struct quant_facts *f = quant_facts(n);
    const double a = fabs(v) < f->most ? fabs(v) : f->most;
    const unsigned below = f->is_integer ? (unsigned)a : magnitude_code(f, a);
    return below < f->magnitudes ? f->magnitudes - below : 0;
}

/* ---- scales that are powers of two ---------------------------------------------------------- */

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

enum { FRACTION = 23, EXPONENT_BIAS = 127, NO_POWER = 255 };

/* Exponent, with float32's bias, that the fraction of the largest magnitude rounds up or not. */
static int biased_exponent(const struct quant_facts *f, uint32_t bits, enum quant_power how)
{
    const uint32_t fraction = bits & ((1u << FRACTION) - 1);
    if (how == QUANT_EVEN)
        bits += 1u << (FRACTION - f->fraction - 1);
    const int e = (int)(bits >> FRACTION);
    return how == QUANT_CEIL && fraction != 0 && e > 0 ? e + 1 : e;
}

/* Smallest power of two that is not below largest / most. */
static int least_power(const struct quant_facts *f, float largest)
{
    const uint32_t bits = bits_of(largest * (1.0f / (float)f->most));
    const uint32_t fraction = bits & ((1u << FRACTION) - 1);
    const int e = (int)(bits >> FRACTION);
    return fraction != 0 && !(e == 0 && fraction <= 1u << (FRACTION - 1)) ? e + 1 : e;
}

uint8_t quant_power_code(enum quant_number n, float largest, enum quant_power how)
{
    const struct quant_facts *f = quant_facts(n);
    ms_assert(!(largest < 0) && !f->is_integer);
    if (!isfinite(largest))
        return NO_POWER;
    if (how == QUANT_RCEIL)
        return (uint8_t)least_power(f, largest);
    const int code = biased_exponent(f, bits_of(largest), how) - f->most_exponent;
    return (uint8_t)(code < 0 ? 0 : code > 254 ? 254 : code);
}

float quant_power_value(uint8_t code)
{
    if (code == NO_POWER)
        return NAN;
    return (float)power_of_two((code == 0 ? 1 : code) - EXPONENT_BIAS);
}
