/* SPDX-License-Identifier: MIT
 *
 * num: numbers as text, both ways, exact and without a locale.
 */
#ifndef PROBE_BASE_NUM_H
#define PROBE_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MS_NUM_MAX = 32 };

/* The shortest text that reads back equal, as Python's repr writes it: "1.0", "1e-05",
 * "5.960464477539063e-08", "NaN", "-Infinity".  No NUL; returns the length, at most MS_NUM_MAX. */
unsigned ms_num_f64(char *out, double v);
unsigned ms_num_i64(char *out, int64_t v);
unsigned ms_num_u64(char *out, uint64_t v);
/* A JSON number, or NaN, Infinity, -Infinity, all of [p, p + n); correctly rounded.
 * Too large becomes infinity and too small zero, as Python does. false: not a number. */
bool ms_num_parse_f64(const char *p, size_t n, double *out);

#endif
