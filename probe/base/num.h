/* SPDX-License-Identifier: MIT
 *
 * num: converts numbers to text and back, exactly and independently of the locale.
 */
#ifndef PROBE_BASE_NUM_H
#define PROBE_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MS_NUM_MAX = 32 };

/* Writes the shortest text that reads back equal, as Python's repr does: "1.0", "1e-05",
 * "5.960464477539063e-08", "NaN", "-Infinity". Writes no NUL; returns the length, at most
 * MS_NUM_MAX. */
unsigned ms_num_f64(char *out, double v);
unsigned ms_num_i64(char *out, int64_t v);
unsigned ms_num_u64(char *out, uint64_t v);
/* Parses a JSON number, or NaN, Infinity, -Infinity, which must fill [p, p + n); correctly rounded.
 * Too large becomes infinity and too small zero, as in Python. false: not a number. */
bool ms_num_parse_f64(const char *p, size_t n, double *out);

/* The same 64 bits as a double, and back. */
static inline double ms_f64_of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline uint64_t ms_bits_of_f64(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

#endif
