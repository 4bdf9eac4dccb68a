/* SPDX-License-Identifier: MIT
 *
 * human: numbers as people read them, the same in every command and view.
 */
#ifndef PROBE_BASE_HUMAN_H
#define PROBE_BASE_HUMAN_H

#include <stdint.h>

/* Enough for each of these; they return buf. */
enum { MS_HUMAN_MAX = 32 };

/* "1,284,112" */
const char *ms_human_count(char buf[MS_HUMAN_MAX], uint64_t n);
/* "512 B", "1.40 kB", "86.4 MB": powers of ten, three digits */
const char *ms_human_bytes(char buf[MS_HUMAN_MAX], uint64_t n);
/* "850 ns", "3.20 ms", "2.50 s", "4 min 10 s" */
const char *ms_human_time(char buf[MS_HUMAN_MAX], int64_t ns);
/* An error as a relative difference: "0", "0.032", "3.1e-07": two digits */
const char *ms_human_error(char buf[MS_HUMAN_MAX], double v);
/* How many times as much: "3.2", "47", "130,000", "2,800,000": two digits */
const char *ms_human_factor(char buf[MS_HUMAN_MAX], double v);

#endif
