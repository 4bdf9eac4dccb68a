/* SPDX-License-Identifier: MIT
 *
 * viewer_findings: kinds and arguments of the findings that a viewer derives from a graph. Their
 * sentences are in viz/words.
 */
#ifndef VIZ_MODEL_VIEWER_FINDINGS_H
#define VIZ_MODEL_VIEWER_FINDINGS_H

#include "probe/base/message.h"

/* name, arguments ("?": optional) */
#define VIZ_FINDING_KINDS(X)                                                                       \
    X(divergence, "step rank errors warnings unmatched overflows? node?")                          \
    X(overflow, "nodes step rank")

#define VIZ_FINDING_KIND(name, args)                                                               \
    static const struct ms_message_kind viz_say_##name = {#name, args};
VIZ_FINDING_KINDS(VIZ_FINDING_KIND)

#endif
