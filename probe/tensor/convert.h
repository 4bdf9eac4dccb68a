/* SPDX-License-Identifier: MIT
 *
 * convert: tensor files from one form to another, one file or a whole tree.
 */
#ifndef PROBE_TENSOR_CONVERT_H
#define PROBE_TENSOR_CONVERT_H

#include "probe/tensor/tensor.h"

struct probe_convert {
    const char *from;        /* a tensor file, or a directory searched to its depth */
    const char *to;          /* a directory, made for the first tensor; sub-directories are kept */
    enum probe_file_kind as; /* PROBE_FILE_NPY or PROBE_FILE_PT */
    /* Either may be NULL.  A file that could not be converted, and how many were looked at. */
    void (*on_failure)(void *ctx, const struct ms_err *why);
    void (*on_progress)(void *ctx, uint64_t done);
    void *ctx;
};
struct probe_converted {
    uint64_t written, failed;
};

/* Files named .pt, .npy, and .bin with an ATB header are converted; their kind is found by content.
 * The stored CRC of a .pt is verified.  A file that fails is reported and the rest goes on: the
 * call itself fails only when there is nothing to convert, no way to look for it, or no directory to
 * write into. */
enum ms_rc probe_convert(const struct probe_convert *how, struct probe_converted *out,
                         struct ms_err *err) MS_MUST_USE;

#endif
