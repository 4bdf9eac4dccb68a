/* SPDX-License-Identifier: MIT
 *
 * mem_kinds: what each block is for, where its reader does not know, and the steps of a training
 * whose record has none.
 *
 * A block's kind follows from the phases in which it was made and given back:
 *
 *     made in         given back in             kind
 *     build           never                     parameter
 *     forward         forward of the same step  temporary
 *     forward         later                     activation
 *     backward        the same backward         temporary
 *     backward        later                     gradient
 *     optimizer       the same call             temporary
 *     optimizer       later                     optimizer state
 *     communication   any                       communication buffer
 */
#ifndef MSTX_MEMORY_MEM_KINDS_H
#define MSTX_MEMORY_MEM_KINDS_H

#include "mstx/memory/mem_log.h"

/* Finds steps in spaces without any, by the phases of their blocks, and sets the kind of every
 * block that is unknown. */
enum ms_rc mstx__mem_set_kinds(struct mstx_mem_log *log, struct ms_err *err) MS_MUST_USE;
/* Returns the index of the step that a time lies in; -1: none. */
int64_t mstx__mem_step_at(const struct mstx_mem_space *s, int64_t at_ns);
/* Tells whether a block outlives the steps. When a program ends it gives back what it kept. */
bool mstx__mem_is_kept(const struct mstx_mem_space *s, const struct mstx_mem_block *b);

/* One frame of a stack, the innermost first. */
struct mstx_mem_frame {
    struct ms_str file, function;
    int64_t line;
};
/* Splits a frame as PyTorch's profiler names it, "torch/optim/adam.py(20): step". */
struct mstx_mem_frame mstx__mem_frame_of_name(struct ms_str name);
/* Fills a site from a stack: its phase, operator, innermost module and the innermost line of the
 * user, and the folded stack. A stack without frames is that of a thread of the backward pass when
 * the record has frames elsewhere, which the caller says by `backward_if_empty`. */
enum ms_rc mstx__mem_site_of_stack(struct mstx_mem_log *log, const struct mstx_mem_frame *frame,
                                   size_t n, bool backward_if_empty, struct mstx_mem_site *site,
                                   struct ms_err *err) MS_MUST_USE;

#endif
