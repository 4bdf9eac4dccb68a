/* SPDX-License-Identifier: MIT
 *
 * show_overflow: the answers of `msprobe overflow_check` as text.
 */
#ifndef PROBE_CMD_SHOW_OVERFLOW_H
#define PROBE_CMD_SHOW_OVERFLOW_H

#include "probe/overflow/overflow.h"

/* Prints each answer in full; of more than `most` the first in full and `most` in one line each. most 0: all in
 * full. */
enum ms_rc overflow_show_answers(const struct probe_overflow *o, size_t most,
                                 struct ms_err *err) MS_MUST_USE;

#endif
