/* SPDX-License-Identifier: MIT
 *
 * show_ckpt: prints what a comparison of two checkpoints found.
 */
#ifndef COMPARE_CMD_SHOW_CKPT_H
#define COMPARE_CMD_SHOW_CKPT_H

#include "compare/checkpoint/ckpt_similarity.h"

/* Prints counts, the weights that differ most, and the weights of one side, `most` of each. */
void ckpt_show_text(const struct ckpt_similarity *s, const char *const paths[2], size_t most);

#endif
