/* SPDX-License-Identifier: MIT
 *
 * spool: tensors queued for the disk. Putting a tensor copies its elements into a ring of fixed
 * size; a thread writes them to files. When the ring is full the program writes the file itself, so
 * memory is bounded. A program that drains the spool helps with the rest.
 *
 *     ring   │ ... done ... │ header name elements │ header ... │ header ... │   free   │
 *                           └ tail: being written  └ done       └ next       └ head
 */
#ifndef PROBE_WRITE_SPOOL_H
#define PROBE_WRITE_SPOOL_H

#include "probe/tensor/tensor.h"

struct probe__spool;

/* Creates a ring of `bytes`; its pages are allocated on first use. */
enum ms_rc probe__spool_new(struct probe__spool **spool, size_t bytes, enum probe_file_kind kind,
                            struct ms_err *err) MS_MUST_USE;
/* Waits for all queued files, then frees; NULL is allowed. */
void probe__spool_free(struct probe__spool *s);
/* Frees without waiting, for a forked child, which has no thread. */
void probe__spool_abandon(struct probe__spool *s);

/* Queues the elements of t for the file `dir`/`name`; `dir` stays valid until the next drain.
 * false: refused, since an earlier file could not be written or memory is short. */
bool probe__spool_put(struct probe__spool *s, const char *dir, const char *name,
                      const struct probe_tensor *t);
/* Waits until every file is written and reports the first failure since the last drain. */
enum ms_rc probe__spool_drain(struct probe__spool *s, struct ms_err *err);

#endif
