/* SPDX-License-Identifier: MIT
 *
 * plain_values: a Flight Recorder dump, which is a pickle or JSON, as plain values.
 *
 * Nothing in a pickle is executed: the few functions that PyTorch's pickler names give lists a type
 * and return their argument; every other name is an error.  Memory is proportional to the size of
 * the input, whatever its bytes.
 */
#ifndef MSTX_FOREIGN_PLAIN_VALUES_H
#define MSTX_FOREIGN_PLAIN_VALUES_H

#include "probe/base/pickle.h"

/* Reads the bytes of a dump; values are in the arena, their texts in the arena or in bytes. */
enum ms_rc mstx_plain_read(struct ms_plain **out, struct ms_str bytes, struct ms_arena *a,
                           struct ms_err *err) MS_MUST_USE;
/* Tells whether bytes begin like a pickle of protocol 2 to 5. */
bool mstx_plain_is_pickle(struct ms_str bytes);

#endif
