/* SPDX-License-Identifier: MIT
 *
 * pt_place: where the elements of a tensor lie, from the value that a pickle of PyTorch has in place
 * of the tensor. The reader of a file with one tensor (pt.c) and the reader of checkpoints share it.
 */
#ifndef PROBE_TENSOR_PT_PLACE_H
#define PROBE_TENSOR_PT_PLACE_H

#include "probe/base/pickle.h"
#include "probe/tensor/tensor.h"

/* A tensor as its pickle describes it. */
struct probe_pt_place {
    enum ms_dtype dtype;
    struct ms_str key; /* of the storage: the member data/KEY */
    uint64_t storage_bytes, storage_unit;
    uint64_t offset; /* in elements */
    uint64_t shape[PROBE_MAX_DIMS], stride[PROBE_MAX_DIMS];
    uint32_t ndim;
};

/* Returns the number of a name that the pickle of a tensor may have, as struct ms_pickle_rules wants
 * it; MS_PICKLE_REFUSED for any other. */
uint32_t probe_pt_name(struct ms_str module, struct ms_str name);
/* Tells whether a value of a pickle read with probe_pt_name is a tensor or a parameter. */
bool probe_pt_is_tensor(const struct ms_plain *v);
/* Returns the element type that a value names ("torch.float32"); false when it names none. */
bool probe_pt_dtype(const struct ms_plain *v, enum ms_dtype *dtype);
/* Reads the description out of such a value; follows parameters to their tensor. */
enum ms_rc probe_pt_describe(const struct ms_plain *v, struct probe_pt_place *d,
                             struct ms_err *err) MS_MUST_USE;
/* Sets t from the description and the n bytes of its storage. */
enum ms_rc probe_pt_bind(struct probe_tensor *t, const struct probe_pt_place *d,
                         const char *storage, size_t n, bool swap, struct ms_err *err) MS_MUST_USE;

#endif
