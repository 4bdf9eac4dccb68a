/* SPDX-License-Identifier: MIT
 *
 * recipe_text: communication.json and communication_matrix.json of one rank.
 *
 *     {STEP: {"p2p" | "collective": {"OPERATION@GROUP": {...}, ...}, ...}, ...}
 */
#ifndef MSTX_RECIPE_TEXT_H
#define MSTX_RECIPE_TEXT_H

#include "probe/base/str.h"

struct mstx_text_op {
    struct ms_str step, kind, op, group; /* op is the whole key, group what is behind the last @ */
    struct ms_str text;                  /* the object, as it stands in the file */
};
typedef enum ms_rc (*mstx_text_op_fn)(void *ctx, const struct mstx_text_op *op, struct ms_err *err);
/* Call fn for every operation but the sums, which begin with Total. */
enum ms_rc mstx__text_ops(const char *p, size_t n, mstx_text_op_fn fn, void *ctx,
                          struct ms_err *err) MS_MUST_USE;

#endif
