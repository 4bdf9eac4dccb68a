/* SPDX-License-Identifier: MIT
 *
 * spool: tensors on their way to the disk.  Putting one copies its elements into
 * a ring of fixed size; a thread of its own makes files of them.
 * When the ring is full the program writes the file itself, so memory is bounded, and so it does
 * while it waits for the last of them.
 *
 *     ring   │ ... done ... │ header name elements │ header ... │ header ... │   free   │
 *                           └ tail: being written  └ done       └ next       └ head
 */
#ifndef PROBE_WRITE_SPOOL_H
#define PROBE_WRITE_SPOOL_H

#include "probe/tensor/tensor.h"

struct probe__spool;

/* The ring has `bytes`; its pages are only taken when they are used. */
enum ms_rc probe__spool_new(struct probe__spool **spool, size_t bytes, enum probe_file_kind kind,
                            struct ms_err *err) MS_MUST_USE;
/* Waits for what is on its way; NULL is fine. */
void probe__spool_free(struct probe__spool *s);
/* In a forked child there is no thread to wait for. */
void probe__spool_abandon(struct probe__spool *s);

/* Have the elements of t written to `dir`/`name`, a directory that stays until the next drain.
 * false: not taken, since an earlier file could not be written or there is no memory. */
bool probe__spool_put(struct probe__spool *s, const char *dir, const char *name,
                      const struct probe_tensor *t);
/* Wait until everything is in its file and report the first failure since the last drain. */
enum ms_rc probe__spool_drain(struct probe__spool *s, struct ms_err *err);

#endif
