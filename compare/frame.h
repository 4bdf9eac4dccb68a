/* SPDX-License-Identifier: MIT
 *
 * frame: what a stack says of the framework function that called an operator.
 */
#ifndef COMPARE_FRAME_H
#define COMPARE_FRAME_H

#include "probe/base/str.h"

/* frames is a JSON list of "File F, line N, in FUNC, \n CODE", innermost first.  True when the
 * operator was called from inside the framework; *function is in scratch then. */
bool cmp__frame_function(struct ms_str frames, bool mindspore, struct ms_buf *scratch,
                         struct ms_str *function);

#endif
