/* SPDX-License-Identifier: MIT
 *
 * alloc_stack: the stack of the calling thread as a folded text.
 *
 * A stack is formatted once: the text of an equal stack is found by a hash of its frames.
 */
#ifndef MSTX_HOOK_ALLOC_STACK_H
#define MSTX_HOOK_ALLOC_STACK_H

/* Returns the text of the current stack, which is never freed or changed; NULL: no stack is known. */
const char *alloc_stack_text(void);

#endif
