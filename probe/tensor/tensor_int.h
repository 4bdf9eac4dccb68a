/* SPDX-License-Identifier: MIT
 *
 * tensor_int: interface that the tensor readers share. The reader of a format gets bytes, finds
 * dtype, shape, strides and the position of the storage, and passes them to probe__tensor_set and
 * probe__tensor_place, which check them against the size of the file. Errors carry the byte offset;
 * tensor.c adds the path.
 */
#ifndef PROBE_TENSOR_TENSOR_INT_H
#define PROBE_TENSOR_TENSOR_INT_H

#include "probe/base/le.h"
#include "probe/tensor/tensor.h"

/* ---- layout.c ------------------------------------------------------ */

/* Sets the data of a tensor whose element 0 is element `offset` of a storage of n bytes. Checks
 * that every element is inside the storage, then points data there, or at a byte-swapped copy when
 * swap is set. */
enum ms_rc probe__tensor_place(struct probe_tensor *t, const char *storage, size_t n,
                               uint64_t offset, bool swap, struct ms_err *err) MS_MUST_USE;
/* ---- the formats: p is sniffed to be of the kind -------------------------- */

enum ms_rc probe__npy_read(struct probe_tensor *t, const char *p, size_t n,
                           struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__pt_read(struct probe_tensor *t, const char *p, size_t n,
                          struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__pt_legacy_read(struct probe_tensor *t, const char *p, size_t n,
                                 struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__atb_read(struct probe_tensor *t, const char *p, size_t n,
                           struct ms_err *err) MS_MUST_USE;
/* Tells whether the bytes begin as a .pt of the form without a zip archive. */
bool probe__is_pt_legacy(const char *p, size_t n);

#endif
