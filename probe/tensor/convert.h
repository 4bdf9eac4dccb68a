/* SPDX-License-Identifier: MIT
 *
 * convert: converts tensor files to another format, one file or a whole tree.
 */
#ifndef PROBE_TENSOR_CONVERT_H
#define PROBE_TENSOR_CONVERT_H

#include "probe/tensor/tensor.h"

struct probe_convert {
    const char *from;        /* a tensor file, or a directory, searched recursively */
    const char *to;          /* a directory, made for the first tensor; sub-directories are kept */
    enum probe_file_kind as; /* PROBE_FILE_NPY or PROBE_FILE_PT */
    /* Callbacks, which may be NULL: for a file that could not be converted, and for the number of
     * files processed so far. */
    void (*on_failure)(void *ctx, const struct ms_err *why);
    void (*on_progress)(void *ctx, uint64_t done);
    void *ctx;
};
struct probe_converted {
    uint64_t written, failed;
};

/* Converts files named .pt, .npy, and .bin with an ATB header; the format is found by content. The
 * stored CRC of a .pt is verified. A file that fails is reported and the other files are still
 * converted. The call itself fails only when there is nothing to convert, the input cannot be
 * searched, or the output directory cannot be made. */
enum ms_rc probe_convert(const struct probe_convert *how, struct probe_converted *out,
                         struct ms_err *err) MS_MUST_USE;

#endif
