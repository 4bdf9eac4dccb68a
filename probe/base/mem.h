/* SPDX-License-Identifier: MIT
 *
 * mem: the one allocation layer. Counts live and peak bytes, so that tests can check memory use,
 * and can make the n-th allocation fail, so that tests reach every out-of-memory path.
 */
#ifndef PROBE_BASE_MEM_H
#define PROBE_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As malloc, calloc, realloc and free; NULL on failure, and ms_free(NULL) does nothing. */
void *ms_alloc(size_t n) __attribute__((malloc));
void *ms_calloc(size_t count, size_t size) __attribute__((malloc));
/* As ms_calloc, but writes the zeros. For a table whose entries are read before they are written:
 * the first read of an untouched page maps the shared zero page, and the first write maps the page
 * again, with a TLB shootdown on all processors. */
void *ms_calloc_written(size_t count, size_t size) __attribute__((malloc));
void *ms_realloc(void *p, size_t n);
void ms_free(void *p);

/* Bytes allocated now, the peak, and the number of allocations so far. */
/* Makes freed memory go back to the system from now on. By default glibc raises both thresholds with each large
 * block that is freed, up to 64 MB at the top of each thread's arena, which malloc_trim does not
 * reach. A server that followed a recorder of 180,000 marks a second kept 28 to 58 MB between two
 * imports; with fixed thresholds it keeps 5 to 8 MB ("make load" prints the curve). An import of 1,024 ranks
 * takes 252 MB instead of 296. */
void ms_mem_give_back(void);
size_t ms_mem_live(void);
size_t ms_mem_peak(void);
uint64_t ms_mem_calls(void);
/* Resets the peak to the bytes allocated now. */
void ms_mem_peak_reset(void);

/* Makes the n-th allocation from now fail (1 is the next one); 0 switches off. */
void ms_mem_fail_at(uint64_t n);
/* Tells whether the requested failure has happened. */
bool ms_mem_failed(void);

/* Sets *out to a * b; false when the product does not fit. */
static inline bool ms_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool ms_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
