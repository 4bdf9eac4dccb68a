/* SPDX-License-Identifier: MIT
 *
 * trace_item_fast: reads an event as most are, in one pass over its bytes.
 */
#ifndef MSTX_FOREIGN_TRACE_ITEM_FAST_H
#define MSTX_FOREIGN_TRACE_ITEM_FAST_H

#include "mstx/foreign/trace_item.h"

/* Reads the event whose opening brace is at p. Returns the place behind it, or NULL for an event that
 * has anything unusual: an escape, letters beyond ASCII, a member of to_chrome.c, an error or the end
 * of the text, so that mstx__trace_item_read must read it. Zero bytes must lie at `end`
 * (trace_text.h). */
const char *mstx__trace_item_fast(struct mstx_trace_json *r, struct mstx_trace_item *it,
                                  const char *p, const char *end);

#endif
