/* SPDX-License-Identifier: MIT
 *
 * pool: worker threads and a parallel loop. Work is handed out by index, so results stored by index
 * do not depend on the number of threads.
 */
#ifndef PROBE_BASE_POOL_H
#define PROBE_BASE_POOL_H

#include "probe/base/err.h"

#include <stddef.h>

struct ms_pool;

/* Creates a pool. `threads` includes the caller; 0 means one per processor that this process may
 * use, 1 makes no thread. When the system refuses a thread, the pool works with the threads it
 * got. */
enum ms_rc ms_pool_new(struct ms_pool **pool, unsigned threads, struct ms_err *err) MS_MUST_USE;
void ms_pool_free(struct ms_pool *pool);
unsigned ms_pool_threads(const struct ms_pool *pool);

/* Processes one item of a loop. worker is 0 .. threads - 1, so scratch space per worker needs no
 * lock. */
typedef enum ms_rc (*ms_pool_fn)(void *ctx, size_t item, unsigned worker, struct ms_err *err);
/* Runs fn for 0 .. n - 1 and waits. Items are started in order. After a failure no new items start,
 * so an item that returns MS_E_INTERRUPTED ends the loop early; the failure of the lowest failed
 * item is returned. A NULL pool runs in the caller alone. Not reentrant. */
enum ms_rc ms_pool_run(struct ms_pool *pool, size_t n, ms_pool_fn fn, void *ctx,
                       struct ms_err *err) MS_MUST_USE;

#endif
