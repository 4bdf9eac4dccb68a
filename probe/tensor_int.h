/* SPDX-License-Identifier: MIT
 *
 * tensor_int: what the tensor files share.  A reader of one format gets bytes,
 * finds dtype, shape, strides and where the storage lies, and hands these to
 * probe__tensor_set and probe__tensor_place, which check them against the bytes
 * there are.  Errors carry the byte; tensor.c puts the path in front.
 */
#ifndef PROBE_TENSOR_INT_H
#define PROBE_TENSOR_INT_H

#include "probe/le.h"
#include "probe/tensor.h"

/* ---- tensor_layout.c ------------------------------------------------------ */

/* Take dtype and shape; the strides become those of C order. Fails when the size in bytes does not
 * fit 63 bits. */
enum ms_rc probe__tensor_set(struct probe_tensor *t, enum ms_dtype dtype, const uint64_t *shape,
                             uint32_t ndim, struct ms_err *err) MS_MUST_USE;
/* Element 0 is the offset-th of a storage of n bytes: check that every element lies inside, then
 * point data there, or at a copy with the bytes of each number turned round when swap is set. */
enum ms_rc probe__tensor_place(struct probe_tensor *t, const char *storage, size_t n,
                               uint64_t offset, bool swap, struct ms_err *err) MS_MUST_USE;
/* Is the tensor a plain array of all elements, in C order? Dimensions of size 1 have any stride. */
bool probe__tensor_in_c_order(const struct probe_tensor *t);

/* As probe_tensor_write, without waiting for the disk: the file outlives the process, not the
 * machine. */
enum ms_rc probe__tensor_write_lazily(const struct probe_tensor *t, const char *path,
                                      enum probe_file_kind as, struct ms_err *err) MS_MUST_USE;

/* Text of a file as a message may show it: cut, one line, nothing a terminal would obey. */
enum { PROBE__SHOWN = 120 };
const char *probe__shown(char buf[PROBE__SHOWN], struct ms_str s);

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

/* ---- tensor_pickle.c ------------------------------------------------------ */

enum probe__pk_kind {
    PK_NONE,
    PK_BOOL,   /* i */
    PK_INT,    /* i */
    PK_STR,    /* s, into the input */
    PK_TUPLE,  /* node: items */
    PK_LIST,   /* node: items */
    PK_DICT,   /* node: keys and values in turn */
    PK_GLOBAL, /* global, dtype */
    PK_CALL,   /* node: what would be called, and its arguments as a tuple */
    PK_PERSID, /* node: the identifier of something kept outside */
    PK_MARK
};

/* Everything that a pickle of ours may name. */
enum probe__pk_global {
    PKG_NOT_ALLOWED,
    PKG_TENSOR_V2,
    PKG_TENSOR_V3,
    PKG_TENSOR_NPU,
    PKG_PARAMETER,
    PKG_ORDERED_DICT,
    PKG_STORAGE,         /* dtype says of what */
    PKG_UNTYPED_STORAGE, /* of bytes */
    PKG_DTYPE
};

struct probe__pk_value {
    uint8_t kind, global, dtype;
    union {
        int64_t i;
        struct ms_str s;
        uint32_t node;
    };
};

struct probe__pickle;

/* A machine that builds the described objects; NULL without memory, freed with ms_free. */
struct probe__pickle *probe__pickle_new(void);
/* Run the pickle at p + *at, at most to p + n, and leave *at behind it.  The values of earlier runs
 * are gone. */
enum ms_rc probe__pickle_run(struct probe__pickle *pk, const char *p, size_t n, size_t *at,
                             struct probe__pk_value *root, struct ms_err *err) MS_MUST_USE;
/* Items of a tuple or list, two for each entry of a dict; 0 for anything else. */
uint32_t probe__pk_len(const struct probe__pickle *pk, struct probe__pk_value v);
/* Item i, or a PK_NONE when there are not as many. */
struct probe__pk_value probe__pk_item(const struct probe__pickle *pk, struct probe__pk_value v,
                                      uint32_t i);

#endif
