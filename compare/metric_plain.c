/* SPDX-License-Identifier: MIT
 *
 * metric_plain: the operations that metric_simd.h needs, on 128-bit vectors that
 * every machine has or that the compiler makes of smaller things.
 */
#include "compare/metric_int.h"

#include <math.h>
#include <string.h>

#define TARGET
#define KERNEL cmp__metric_plain
#define BYTES  16

typedef uint16_t four_halves __attribute__((vector_size(8), aligned(1), may_alias));

#define PART(v, a, b)           __builtin_convertvector(__builtin_shufflevector(v, v, a, b), vd)
#define LOW(v)                  PART(v, 0, 1)
#define HIGH(v)                 PART(v, 2, 3)
#define LOW_INT(v)              PART(v, 0, 1)
#define HIGH_INT(v)             PART(v, 2, 3)
#define CHOOSE(where, as, a, b) (((where) & (as)(a)) | (~(where) & (as)(b)))
#define MAX_F(a, b)             (vf) CHOOSE((a) > (b), vi, a, b)
#define MAX_D(a, b)             (vd) CHOOSE((a) > (b), vl, a, b)
#define FUSED(a, b, c)          ((a) * (b) + (c))
#define HALVES(p)               __builtin_convertvector(*(const four_halves *)(p), vi)

#include "compare/metric_simd.h"
