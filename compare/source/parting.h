/* SPDX-License-Identifier: MIT
 *
 * parting: the suspect where the values of two programs part.
 */
#ifndef COMPARE_SOURCE_PARTING_H
#define COMPARE_SOURCE_PARTING_H

#include "compare/source/suspect.h"

/* Adds the operators at which the forward values of two programs part, if they are known; all other
 * suspects come behind them. explained: an earlier step went wrong. */
enum ms_rc source__check_parting(struct cmp_source *s, uint32_t part, bool explained,
                                 struct ms_err *err);

#endif
