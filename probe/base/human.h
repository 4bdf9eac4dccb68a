/* SPDX-License-Identifier: MIT
 *
 * human: numbers as people read them, the same in every command and view.
 */
#ifndef PROBE_BASE_HUMAN_H
#define PROBE_BASE_HUMAN_H

#include "probe/base/str.h"

#include <stdint.h>

/* Buffer size that is enough for each function below. Each function returns buf. */
enum { MS_HUMAN_MAX = 32 };

/* Writes a count with thousands separated: "1,284,112". */
const char *ms_human_count(char buf[MS_HUMAN_MAX], uint64_t n);
/* Writes a size in powers of ten with three digits: "512 B", "1.40 kB", "86.4 MB". */
const char *ms_human_bytes(char buf[MS_HUMAN_MAX], uint64_t n);
/* Writes a duration: "850 ns", "3.20 ms", "2.50 s", "4 min 10 s". */
const char *ms_human_time(char buf[MS_HUMAN_MAX], int64_t ns);
/* Writes a relative error with two digits: "0", "0.032", "3.1e-07". */
const char *ms_human_error(char buf[MS_HUMAN_MAX], double v);
/* Writes a factor with two digits: "3.2", "47", "130,000", "2,800,000". */
const char *ms_human_factor(char buf[MS_HUMAN_MAX], double v);
/* Appends a text of a program as the cell of a table: control characters become dots, a longer text
 * is cut, a shorter one is filled up with spaces. */
void ms_human_cell(struct ms_buf *out, struct ms_str s, unsigned width);
/* Appends the line below a table from which `more` rows were left out; nothing when there are none.
 * what: " names", or "". */
void ms_human_more(struct ms_buf *out, size_t more, const char *what);

#endif
