/* SPDX-License-Identifier: MIT
 *
 * await: records with tensors of devices. A record waits here, together with all later records,
 * until its copies have arrived; a thread describes the tensors and hands the records over in
 * order.
 *
 *     call ── text with gaps, copies in flight ──► queue ── thread ── whole text ──► files
 */
#ifndef PROBE_WRITE_AWAIT_H
#define PROBE_WRITE_AWAIT_H

#include "probe/write/device_copy.h"
#include "probe/write/record.h"

struct probe__await;
struct probe__waiting;

/* Adds the tensor as the record's next value. *t describes everything but the elements, which
 * `from` locates on a device. false: the copy could not be started. *w is allocated when it is
 * NULL. */
bool probe__await_tensor(struct probe_call *c, struct probe__waiting **w, const char *key,
                         const struct probe_tensor *t, const struct probe_tensor_desc *from);
/* Leaves a gap for is_nan, whose value is known once the record's tensors have arrived. */
void probe__await_is_nan(struct probe__record *r);

/* Tells whether any record waits; the dumper's lock is held. */
bool probe__await_any(const struct probe_dumper *d);
/* Queues a finished record behind all waiting records; the dumper's lock is held. */
void probe__await_add(struct probe_call *c, struct ms_str text);
/* Queues a dropped record: its copies are waited for, and nothing is written. */
void probe__await_drop(struct probe_dumper *d, struct probe__waiting *w);

/* Waits until all records have been handed over; the dumper's lock is not held. With is_ending
 * the wait has a time limit, because the devices may already be shut down. */
void probe__await_all(struct probe_dumper *d, bool is_ending);
/* Frees the queue; no record waits, or this is a forked child. */
void probe__await_free(struct probe__await *a, bool is_child);

#endif
