/* SPDX-License-Identifier: MIT
 *
 * dtype: element types and their names in each framework.
 */
#ifndef PROBE_BASE_DTYPE_H
#define PROBE_BASE_DTYPE_H

#include "probe/base/str.h"

/* X(NAME, bytes, kind, torch, mindspore, numpy descr without byte order or NULL) */
/* clang-format off */
#define MS_DTYPE_MAP(X)                                                        \
    X(BOOL,     1,  BOOL,    "bool",          "Bool",       "b1")              \
    X(U8,       1,  UINT,    "uint8",         "UInt8",      "u1")              \
    X(I8,       1,  INT,     "int8",          "Int8",       "i1")              \
    X(U16,      2,  UINT,    "uint16",        "UInt16",     "u2")              \
    X(I16,      2,  INT,     "int16",         "Int16",      "i2")              \
    X(U32,      4,  UINT,    "uint32",        "UInt32",     "u4")              \
    X(I32,      4,  INT,     "int32",         "Int32",      "i4")              \
    X(U64,      8,  UINT,    "uint64",        "UInt64",     "u8")              \
    X(I64,      8,  INT,     "int64",         "Int64",      "i8")              \
    X(F16,      2,  FLOAT,   "float16",       "Float16",    "f2")              \
    X(BF16,     2,  FLOAT,   "bfloat16",      "BFloat16",   NULL)              \
    X(F32,      4,  FLOAT,   "float32",       "Float32",    "f4")              \
    X(F64,      8,  FLOAT,   "float64",       "Float64",    "f8")              \
    X(F8E5M2,   1,  FLOAT,   "float8_e5m2",   "Float8E5M2", NULL)              \
    X(F8E4M3,   1,  FLOAT,   "float8_e4m3fn", "Float8E4M3FN", NULL)            \
    X(F8E5M2Z,  1,  FLOAT,   "float8_e5m2fnuz", NULL,       NULL)              \
    X(F8E4M3Z,  1,  FLOAT,   "float8_e4m3fnuz", NULL,       NULL)              \
    X(F8E8M0,   1,  FLOAT,   "float8_e8m0fnu", NULL,        NULL)              \
    X(C32,      4,  COMPLEX, "complex32",     NULL,         NULL)              \
    X(C64,      8,  COMPLEX, "complex64",     "Complex64",  "c8")              \
    X(C128,     16, COMPLEX, "complex128",    "Complex128", "c16")
/* clang-format on */

enum ms_dtype {
    MS_DT_NONE, /* unknown or not a tensor type */
#define MS_DTYPE_ENUM(name, size, kind, torch, ms, np) MS_DT_##name,
    MS_DTYPE_MAP(MS_DTYPE_ENUM)
#undef MS_DTYPE_ENUM
        MS_DT_MAX
};

enum ms_dtype_kind {
    MS_DTK_NONE,
    MS_DTK_BOOL,
    MS_DTK_UINT,
    MS_DTK_INT,
    MS_DTK_FLOAT,
    MS_DTK_COMPLEX
};

/* Bytes of one element; 0 for MS_DT_NONE. */
size_t ms_dtype_size(enum ms_dtype t);
enum ms_dtype_kind ms_dtype_kind(enum ms_dtype t);
static inline bool ms_dtype_is_whole(enum ms_dtype t)
{
    const enum ms_dtype_kind kind = ms_dtype_kind(t);
    return kind == MS_DTK_BOOL || kind == MS_DTK_INT || kind == MS_DTK_UINT;
}
/* Parses "torch.float32", "Float32", "float32" (numpy and bare), "mindspore.float32" and the old
 * aliases (torch.half, torch.long, ...); MS_DT_NONE when the name is unknown. */
enum ms_dtype ms_dtype_parse(struct ms_str name);
/* Names of a type: "float32" and "Float32"; "unknown" for MS_DT_NONE, never NULL. */
const char *ms_dtype_torch(enum ms_dtype t);
const char *ms_dtype_mindspore(enum ms_dtype t);
/* Returns the numpy descr, such as "<f4" or "|b1"; NULL when numpy has no such type. big: byte
 * order of the data. */
const char *ms_dtype_numpy(enum ms_dtype t);
/* Parses a numpy descr; *swap is set when the bytes are in big-endian order. */
enum ms_dtype ms_dtype_of_numpy(struct ms_str descr, bool *swap);

/* Type of the real and imaginary parts of a complex type; MS_DT_NONE when t is not complex. */
enum ms_dtype ms_dtype_part(enum ms_dtype t);
/* Returns the unit of rounding of a floating point type: half the distance of 1 to the next number; 0: it has
 * none. */
double ms_dtype_unit(enum ms_dtype t);
/* Converts n elements to doubles; a complex element becomes its absolute value. */
void ms_dtype_to_f64(enum ms_dtype t, const void *p, size_t n, double *out);

/* Rounds v to the precision of type t, to nearest, ties to even. Types other than float32, float16
 * and bfloat16 leave v unchanged; a complex type counts as the type of its parts. */
double ms_dtype_round(enum ms_dtype t, double v);

#endif
