/* SPDX-License-Identifier: MIT
 *
 * segment_match: finds anchors, and pairs the operators between two anchors.
 */
#ifndef COMPARE_ALIGN_SEGMENT_MATCH_H
#define COMPARE_ALIGN_SEGMENT_MATCH_H

#include "compare/align/search.h"

/* Fills anchors with operators whose values are unique on each side and equal; sets sigma, strict
 * and by_value. */
enum ms_rc align__find_anchors(struct align__ctx *c, struct ms_err *err);
/* Pairs the operators in all segments between anchors, for one round; fills op. */
enum ms_rc align__match_segments(struct align__ctx *c, struct ms_err *err);

#endif
