/* SPDX-License-Identifier: MIT
 *
 * tensor_int: what the tensor files share.  A reader of one format gets bytes,
 * finds dtype, shape, strides and where the storage lies, and hands these to
 * probe__tensor_set and probe__tensor_place, which check them against the bytes
 * there are.  Errors carry the byte; tensor.c puts the path in front.
 */
#ifndef PROBE_TENSOR_TENSOR_INT_H
#define PROBE_TENSOR_TENSOR_INT_H

#include "probe/base/le.h"
#include "probe/tensor/tensor.h"

/* ---- layout.c ------------------------------------------------------ */

/* Element 0 is the offset-th of a storage of n bytes: check that every element lies inside, then
 * point data there, or at a copy with the bytes of each number turned round when swap is set. */
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
/* Does it begin as a .pt of the form without zip? */
bool probe__is_pt_legacy(const char *p, size_t n);

#endif
