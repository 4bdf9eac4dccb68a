/* SPDX-License-Identifier: MIT
 *
 * trace_source: the bytes of a file, unpacked while they are read.
 */
#ifndef MSTX_FOREIGN_TRACE_SOURCE_H
#define MSTX_FOREIGN_TRACE_SOURCE_H

#include "probe/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mstx_trace_source;

enum ms_rc mstx__trace_source_open(struct mstx_trace_source **s, const char *path,
                                   struct ms_err *err) MS_MUST_USE;
void mstx__trace_source_close(struct mstx_trace_source *s);
/* Copies the next bytes, at most `room`; *n is 0 only at the end. */
enum ms_rc mstx__trace_source_read(struct mstx_trace_source *s, char *to, size_t room, size_t *n,
                                   struct ms_err *err) MS_MUST_USE;
/* Returns how many bytes of the file have been read, packed as they are. */
uint64_t mstx__trace_source_taken(const struct mstx_trace_source *s);
/* Tells whether compressed bytes ended early or were damaged. */
bool mstx__trace_source_is_cut(const struct mstx_trace_source *s);

#endif
