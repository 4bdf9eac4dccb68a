/* SPDX-License-Identifier: MIT
 *
 * await: records with tensors of devices.  They wait here, with all that come
 * after them, until the copies have arrived; a thread describes the tensors and
 * hands the records over in their order.
 *
 *     call ── text with gaps, copies under way ──► queue ── thread ── whole text ──► files
 */
#ifndef PROBE_WRITE_AWAIT_H
#define PROBE_WRITE_AWAIT_H

#include "probe/write/device_copy.h"
#include "probe/write/record.h"

struct probe__await;
struct probe__waiting;

/* The next value of the record is this tensor, described except for its elements, which `from` has
 * on a device.  false: it could not be copied.  *w is made when it is NULL. */
bool probe__await_tensor(struct probe_call *c, struct probe__waiting **w, const char *key,
                         const struct probe_tensor *t, const struct probe_tensor_desc *from);
/* The value of is_nan is known when the record's tensors are. */
void probe__await_is_nan(struct probe__record *r);

/* Does a record wait?  The dumper's lock is held. */
bool probe__await_any(const struct probe_dumper *d);
/* Have a finished record wait for its tensors and for those before it.  The dumper's lock is held. */
void probe__await_add(struct probe_call *c, struct ms_str text);
/* The record will not be: its copies are only waited for. */
void probe__await_drop(struct probe_dumper *d, struct probe__waiting *w);

/* Until all have been handed over; the dumper's lock is not held.  At the end of a process only for
 * a while, as its devices may be gone. */
void probe__await_all(struct probe_dumper *d, bool is_ending);
/* No record waits, or it is a forked child. */
void probe__await_free(struct probe__await *a, bool is_child);

#endif
