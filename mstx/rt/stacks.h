/* SPDX-License-Identifier: MIT
 *
 * stacks: the stacks of the threads of this process, taken without stopping them.
 */
#ifndef MSTX_RT_STACKS_H
#define MSTX_RT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of this process that may not be there; how many bytes of it. */
size_t rt_read_self(uint64_t address, void *to, size_t n);
/* The stacks of all threads but the helper's as text; returns its length. */
size_t rt_stacks(char *out, size_t cap);

#endif
