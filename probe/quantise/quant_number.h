/* SPDX-License-Identifier: MIT
 *
 * quant_number: the element types of quantised tensors, to the bit.
 *
 * Small floats as the OCP specifications of 8-bit floating point and of microscaling (MX 1.0) define
 * them, and those of torch with an unsigned zero (fnuz); integers of 8 and 4 bits. Rounding is to
 * nearest, ties to even.
 */
#ifndef PROBE_QUANTISE_QUANT_NUMBER_H
#define PROBE_QUANTISE_QUANT_NUMBER_H

#include "probe/base/str.h"

enum quant_number {
    QUANT_E4M3, /* float8_e4m3fn: no infinity */
    QUANT_E5M2,
    QUANT_E4M3Z, /* float8_e4m3fnuz: neither infinity nor a negative zero */
    QUANT_E5M2Z,
    QUANT_E3M2,
    QUANT_E2M3,
    QUANT_E2M1,
    QUANT_INT8,
    QUANT_INT4,
    QUANT_NUMBERS
};

/* An element type. Values of a float with the exponent field 0 are multiples of `least`. */
struct quant_facts {
    const char *name; /* "e4m3" */
    int bits, fraction, bias;
    bool is_integer;
    double most;         /* largest finite value */
    double least;        /* smallest value above 0 */
    int most_exponent;   /* that of `most`: floor(log2(most)) */
    unsigned magnitudes; /* number of finite values above 0 */
    int from, to;        /* of an integer */
};
const struct quant_facts *quant_facts(enum quant_number n);

/* What becomes of a value above the largest: the largest itself, or what a plain cast gives, which is
 * infinity where the type has one, else NaN. */
enum quant_overflow { QUANT_SATURATES, QUANT_OVERFLOWS };

/* Rounds v to a value of the type. A NaN stays NaN. */
double quant_round(enum quant_number n, double v, enum quant_overflow o);
/* Rounds as if the type had no largest value. */
double quant_round_unbounded(enum quant_number n, double v);
/* Returns the distance between the values of the type around a magnitude. */
double quant_step(enum quant_number n, double magnitude);
/* Returns the code of v, rounded; of integers the two's complement. Types without NaN have no code of
 * NaN and give 0. */
uint8_t quant_encode(enum quant_number n, double v, enum quant_overflow o);
double quant_decode(enum quant_number n, uint8_t code);
/* Returns how many of the type's values above 0 are larger than v, a value of the type. */
unsigned quant_magnitudes_above(enum quant_number n, double v);

/* ---- scales that are powers of two (E8M0) ----------------------------------------------- */

/* How a shared exponent follows from the largest magnitude of a block: the rule of OCP MX 1.0, which cuts;
 * up to the next power of two; as after rounding to the element's fraction; and up so that nothing
 * saturates. Named as in torchao: floor, ceil, even, rceil. */
enum quant_power { QUANT_FLOOR, QUANT_CEIL, QUANT_EVEN, QUANT_RCEIL };

/* Returns the code of the scale of a block with elements of the type n; 255, NaN, when the magnitude is not
 * finite. */
uint8_t quant_power_code(enum quant_number n, float largest, enum quant_power how);
/* Returns the value of a code as float32; the smallest, 2^-127, as 2^-126, since float32 divides by no
 * subnormal reliably. */
float quant_power_value(uint8_t code);

#endif
