/* SPDX-License-Identifier: MIT
 *
 * ascend_json: reads communication.json and communication_matrix.json of one rank.
 *
 *     {STEP: {"p2p" | "collective": {"OPERATION@GROUP": {...}, ...}, ...}, ...}
 */
#ifndef MSTX_FOREIGN_ASCEND_JSON_H
#define MSTX_FOREIGN_ASCEND_JSON_H

#include "probe/base/str.h"

struct mstx_ascend_op {
    struct ms_str step, kind, op, group; /* op is the whole key, group the part after the last @ */
    struct ms_str text;                  /* JSON text of the object in the file */
};
typedef enum ms_rc (*mstx_ascend_op_fn)(void *ctx, const struct mstx_ascend_op *op,
                                        struct ms_err *err);
/* Calls fn for every operation except the sums, whose names begin with Total. */
enum ms_rc mstx__ascend_json_read(const char *p, size_t n, mstx_ascend_op_fn fn, void *ctx,
                                  struct ms_err *err) MS_MUST_USE;

#endif
