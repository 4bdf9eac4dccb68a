/* SPDX-License-Identifier: MIT
 *
 * stacks: the stacks of the threads of this process, taken without stopping them.
 */
#ifndef MSTX_RT_STACKS_H
#define MSTX_RT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads memory of this process that may be unmapped; returns the number of bytes read. */
size_t rt_read_self(uint64_t address, void *to, size_t n);
/* Writes the stacks of all threads but the helper as text; returns its length. */
size_t rt_stacks(char *out, size_t cap);

#endif
