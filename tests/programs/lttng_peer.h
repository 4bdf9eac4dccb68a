/* SPDX-License-Identifier: MIT
 *
 * lttng_peer: an event with one string, as LTTng-UST wants it declared.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/programs/lttng_peer.h"
#if !defined(TESTS_PROGRAMS_LTTNG_PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TESTS_PROGRAMS_LTTNG_PEER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(peer, mark, LTTNG_UST_TP_ARGS(const char *, text),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(text, text)))
#endif
#include <lttng/tracepoint-event.h>
