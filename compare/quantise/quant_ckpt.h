/* SPDX-License-Identifier: MIT
 *
 * quant_ckpt: the weights of checkpoints as floats, dequantised where they are stored as codes.
 *
 * Forms that are known, by the names beside a layer NAME:
 *
 *     NAME.weight                                        floats; fp8 or int8 with a scale:
 *         NAME.weight_scale, weight_scale_inv, scale, scales, weight.scale; weight_zero_point
 *         NAME.SCB                                       bitsandbytes: scale is SCB / 127
 *         NAME.weight_scale_2                            NVFP4: two codes in a byte
 *     NAME.weight_packed, weight_scale, weight_global_scale   compressed-tensors
 *     NAME.qweight, scales, qzeros                       GPTQ, AWQ
 *     NAME_blocks, NAME_scales                           MXFP4
 */
#ifndef COMPARE_QUANTISE_QUANT_CKPT_H
#define COMPARE_QUANTISE_QUANT_CKPT_H

#include "compare/quantise/quant_run.h"
#include "probe/checkpoint/checkpoint.h"

/* Opens a checkpoint; an error says that a dump would do, too. */
enum ms_rc quant_ckpt_open(struct probe_ckpt **c, const char *path, struct ms_err *err) MS_MUST_USE;
/* Calls a function with each weight of two dimensions or more that is stored as floats. bar shows how far it is;
 * NULL: nothing does. */
typedef enum ms_rc quant_weight_fn(void *ctx, const struct probe_ckpt_entry *e,
                                   const struct quant_values *v, struct ms_err *err);
enum ms_rc quant_each_weight(const char *path, quant_weight_fn *fn, void *ctx,
                             struct ms_progress *bar, struct ms_err *err) MS_MUST_USE;

/* Reads the elements of an entry as floats. */
enum ms_rc quant_ckpt_load(const struct probe_ckpt *c, const struct probe_ckpt_entry *e,
                           struct quant_values *v, struct ms_err *err) MS_MUST_USE;
/* Reads the weight of a checkpoint that a name and shape of another, in floats, belong to; dequantises it. Without
 * values: there is none, or its form is not known. */
enum ms_rc quant_ckpt_dequantise(const struct probe_ckpt *c, const struct probe_ckpt_entry *golden,
                                 struct quant_values *v, struct ms_err *err) MS_MUST_USE;

#endif
