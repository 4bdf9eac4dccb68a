/* SPDX-License-Identifier: MIT
 *
 * certainty: how sure it is that a suspect is the mistake.
 */
#ifndef COMPARE_SOURCE_CERTAINTY_H
#define COMPARE_SOURCE_CERTAINTY_H

#include "compare/source/suspect.h"

/* Fills the certainty of all suspects of the list, which is complete: shares of 1, and the rest is that no
 * suspect of the list is the mistake, or that there is none. Where they do not decide, it names the operators
 * whose tensors would, and removes suspects that are hardly ever right. */
void source__rate_suspects(struct cmp_source *s);

#endif
