/* SPDX-License-Identifier: MIT
 *
 * show_ckpt: prints what a comparison of two checkpoints found.
 */
#ifndef COMPARE_CMD_SHOW_CKPT_H
#define COMPARE_CMD_SHOW_CKPT_H

#include "compare/checkpoint/ckpt_similarity.h"

/* Prints counts, the weights that differ most, and the weights of one side, `most` of each. */
void ckpt_show_text(const struct ckpt_similarity *s, const char *const paths[2], size_t most);
/* Prints the same as JSON, with every weight that differs; output is the file that was written. */
enum ms_rc ckpt_show_json(const struct ckpt_similarity *s, const char *output,
                          struct ms_err *err) MS_MUST_USE;

#endif
