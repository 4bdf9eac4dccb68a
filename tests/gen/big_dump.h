/* SPDX-License-Identifier: MIT
 *
 * big_dump: a statistics dump of any size, for benchmarks.
 */
#ifndef TESTS_GEN_BIG_DUMP_H
#define TESTS_GEN_BIG_DUMP_H

#include <stddef.h>
#include <stdio.h>

/* A dump.json with this many records, about 950 bytes each, the same for the same seed: layout,
 * names and digits as in dumps of transformer training, no NaN or infinity.  The caller checks f
 * for errors when closing it. */
void big_dump_write(FILE *f, size_t records, unsigned seed);

#endif
