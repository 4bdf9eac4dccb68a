/* SPDX-License-Identifier: MIT
 *
 * tensor: tensor files, read in place. The format is found by content, never by name: .npy, .pt
 * (zip archive, or the older form without), ATB .bin.
 *
 * A file is mapped; nothing in it is executed and every size is checked before use. The data
 * pointer points into the mapping if byte order and layout allow, which is nearly always.
 */
#ifndef PROBE_TENSOR_TENSOR_H
#define PROBE_TENSOR_TENSOR_H

#include "probe/base/crc.h"
#include "probe/base/dtype.h"
#include "probe/base/io.h"
#include "probe/tensor/stats.h"

enum { PROBE_MAX_DIMS = 32 };

enum probe_file_kind {
    PROBE_FILE_UNKNOWN,
    PROBE_FILE_NPY,
    PROBE_FILE_PT,
    PROBE_FILE_PT_LEGACY,
    PROBE_FILE_ATB
};

struct probe_tensor {
    enum ms_dtype dtype;
    enum probe_file_kind kind;
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS];
    uint64_t stride[PROBE_MAX_DIMS]; /* in elements; 0 in an expanded dimension */
    uint64_t count;                  /* product of shape */
    const void *data;                /* element 0, in this machine's byte order; NULL when empty */
    bool contiguous;                 /* C order without gaps: data[0 .. count) */
    bool has_crc;                    /* crc is the file's CRC of exactly these contiguous bytes */
    uint32_t crc;
    struct ms_file file; /* internal, as are all below */
    void *copy;
};

/* Returns the format of a file that begins with these bytes; a few hundred are enough. */
enum probe_file_kind probe_tensor_sniff(const void *p, size_t n);

/* Opens a tensor file of at most max_bytes. On failure t is empty and the error names the path. */
enum ms_rc probe_tensor_open(struct probe_tensor *t, const char *path, size_t max_bytes,
                             struct ms_err *err) MS_MUST_USE;
/* Parses bytes in memory, which must outlive t; `name` replaces the path in messages. */
enum ms_rc probe_tensor_parse(struct probe_tensor *t, const char *name, const void *p, size_t n,
                              struct ms_err *err) MS_MUST_USE;
void probe_tensor_close(struct probe_tensor *t);

/* Returns the elements [from, from + n) in C order as contiguous bytes: a pointer into the mapping,
 * or gathered into `scratch` of n * size bytes. */
const void *probe_tensor_elements(const struct probe_tensor *t, uint64_t from, uint64_t n,
                                  void *scratch);

/* Iterates over a tensor as contiguous pieces: its own memory in one, or gathered copies of
 * MS_STATS_BLOCK elements. The copies lie on the heap, as a thread of a training may have a small
 * stack; without memory they are smaller, and sums may be rounded in another way. */
struct probe_pieces {
    const struct probe_tensor *t;
    uint64_t at, most; /* next element; elements of a piece */
    char *scratch;
    char few[2048];
};
void probe_pieces_start(struct probe_pieces *p, const struct probe_tensor *t);
/* Returns the next piece and its number of elements; NULL behind the last. */
const void *probe_pieces_next(struct probe_pieces *p, uint64_t *count);
void probe_pieces_end(struct probe_pieces *p);

/* Tells whether an expanded tensor repeats its memory to so many bytes that reading them all would stall the program;
 * its statistics are computed from its memory alone. */
bool probe_tensor_is_endless(const struct probe_tensor *t);
/* Computes the statistics of the tensor in one pass. */
void probe_tensor_stats(const struct probe_tensor *t, struct ms_stats *s);

/* Reads all bytes and compares them with the stored CRC; succeeds when none is stored. */
enum ms_rc probe_tensor_verify(const struct probe_tensor *t, struct ms_err *err) MS_MUST_USE;

/* Write contiguous data in C order; the file appears complete or not at all. bf16, fp8 and
 * complex32 are widened to float32 or complex64 in .npy, which has no such types. The .pt file is
 * byte for byte that of torch 1.13 for the types that torch 1.13 has, and
 * torch.load(weights_only=True) accepts it. */
enum ms_rc probe_npy_write(const char *path, enum ms_dtype t, const uint64_t *shape, uint32_t ndim,
                           const void *data, struct ms_err *err) MS_MUST_USE;
enum ms_rc probe_pt_write(const char *path, enum ms_dtype t, const uint64_t *shape, uint32_t ndim,
                          const void *data, struct ms_err *err) MS_MUST_USE;
/* Writes a tensor of any strides without copying it; `as` is PROBE_FILE_NPY or PROBE_FILE_PT. */
enum ms_rc probe_tensor_write(const struct probe_tensor *t, const char *path,
                              enum probe_file_kind as, struct ms_err *err) MS_MUST_USE;

/* ---- building a tensor ---------------------------------------------------- */

/* Sets dtype and shape of t, and the strides of C order. Fails when the size in bytes does not fit
 * 63 bits. */
enum ms_rc probe__tensor_set(struct probe_tensor *t, enum ms_dtype dtype, const uint64_t *shape,
                             uint32_t ndim, struct ms_err *err) MS_MUST_USE;
/* Tells whether the tensor is a plain array of all elements in C order. Dimensions of size 1 may
 * have any stride. */
bool probe__tensor_in_c_order(const struct probe_tensor *t);

/* As probe_tensor_write, but does not wait for the disk: the file survives the end of the process,
 * but not a crash of the machine. */
enum ms_rc probe__tensor_write_lazily(const struct probe_tensor *t, const char *path,
                                      enum probe_file_kind as, struct ms_err *err) MS_MUST_USE;

#endif
