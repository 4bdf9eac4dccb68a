/* SPDX-License-Identifier: MIT
 *
 * quant_tensor: quantises a tensor and says what is lost.
 *
 * A scheme is an element type, the kind of scale, and which elements share one. Arithmetic is that of
 * float32, in the order of torchao's reference functions, so that codes and scales are theirs to the
 * bit.
 */
#ifndef PROBE_QUANTISE_QUANT_TENSOR_H
#define PROBE_QUANTISE_QUANT_TENSOR_H

#include "probe/quantise/quant_number.h"

enum quant_scale {
    QUANT_SCALE_FLOAT, /* a float32 */
    QUANT_SCALE_POWER, /* E8M0 */
    QUANT_SCALE_E4M3,  /* an e4m3 for each group, and a float32 for the tensor (NVFP4) */
};

/* Elements that share a scale. */
enum quant_by {
    QUANT_BY_TENSOR,
    QUANT_BY_CHANNEL, /* those with one index on the axis */
    QUANT_BY_GROUP,   /* neighbours along the axis, `group` of them; 0: all of it */
};

struct quant_scheme {
    enum quant_number number;
    enum quant_scale scale;
    enum quant_by by;
    enum quant_power power; /* of QUANT_SCALE_POWER */
    int axis;               /* counted from the end when below 0 */
    uint64_t group;
    bool zero_point; /* of integers: the range need not be symmetric */
};

/* A named scheme: "mxfp4". */
struct quant_format {
    const char *name, *about;
    struct quant_scheme scheme;
    bool has_own_group; /* the format says how many elements share a scale */
};
extern const struct quant_format quant_formats[];
enum { QUANT_FORMATS = 14 };
/* Returns the format of a name; NULL when there is none. */
const struct quant_format *quant_format_find(const char *name);
/* Writes a scheme in words: "e2m1, blocks of 32 along axis -1, scales of powers of two". */
void quant_scheme_text(const struct quant_scheme *s, char *out, size_t n);

/* What a tensor loses. Shares are of all elements; sums are of elements that are finite. */
struct quant_loss {
    uint64_t count, special; /* elements; NaN and infinity among them */
    uint64_t nonzero;        /* elements that are not 0 */
    uint64_t underflow;      /* become 0 and were not */
    uint64_t overflow;       /* are, scaled, larger than the largest value of the type */
    uint64_t clipped;        /* would be rounded to a larger value if there was one */
    uint64_t groups;         /* that have a scale */
    double scale_min, scale_max;
    double unused; /* sum over groups: share of the type's magnitudes above the largest used one */
    double signal, noise, most; /* sums of squares of values and of errors; the largest error */
};

/* Folds a tensor's shape around an axis: outer x length x inner. */
struct quant_shape {
    uint64_t outer, length, inner;
};
/* Fails when there is no such axis. */
enum ms_rc quant_shape_of(struct quant_shape *out, const uint64_t *shape, uint32_t ndim, int axis,
                          struct ms_err *err) MS_MUST_USE;

/* Quantises x and adds to the loss, which was zeroed. `out`, which may be x or NULL, gets the values after
 * dequantisation. */
void quant_tensor(const struct quant_scheme *s, const struct quant_shape *shape, const float *x,
                  float *out, struct quant_loss *loss);

/* Signal to noise in decibels, 10 log10(signal / noise): infinite without noise, NaN without both. */
double quant_sqnr(double signal, double noise);

#endif
