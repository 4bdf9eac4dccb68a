/* SPDX-License-Identifier: MIT
 *
 * mem: the one allocation layer.  Counts live and peak bytes, so memory use is
 * a figure that tests can assert, and can make the n-th allocation fail, so
 * that every out-of-memory path is walked by a test.
 */
#ifndef PROBE_BASE_MEM_H
#define PROBE_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As malloc, calloc, realloc, free; NULL on failure, ms_free(NULL) is fine. */
void *ms_alloc(size_t n) __attribute__((malloc));
void *ms_calloc(size_t count, size_t size) __attribute__((malloc));
/* As ms_calloc, for a table in which places are looked at before they are written: a page that is read
 * first is mapped twice, the second time with a word to all processors. */
void *ms_calloc_written(size_t count, size_t size) __attribute__((malloc));
void *ms_realloc(void *p, size_t n);
void ms_free(void *p);

/* Bytes held now, the most ever held, and the number of allocations so far. */
size_t ms_mem_live(void);
size_t ms_mem_peak(void);
uint64_t ms_mem_calls(void);
/* Start a new peak measurement at the bytes held now. */
void ms_mem_peak_reset(void);

/* Make the n-th allocation from now fail (1 is the next one); 0 switches off. */
void ms_mem_fail_at(uint64_t n);
/* Has the requested failure happened? */
bool ms_mem_failed(void);

/* *out = a * b; false when it does not fit. */
static inline bool ms_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool ms_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
