/* SPDX-License-Identifier: MIT
 *
 * span_kinds: the parts of replayed timelines, as numbers in run.db.
 */
#ifndef MSTX_FORMAT_SPAN_KINDS_H
#define MSTX_FORMAT_SPAN_KINDS_H

/* The critical path at recorded times, or the timeline with ideal durations. */
enum mstx_span_of { MSTX_SPAN_CRITICAL, MSTX_SPAN_IDEAL };
enum mstx_span_kind { MSTX_SPAN_WORK, MSTX_SPAN_WAIT, MSTX_SPAN_COMM, MSTX_SPAN_KINDS };

#endif
