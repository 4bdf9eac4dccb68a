/* SPDX-License-Identifier: MIT
 *
 * similar: how alike two texts are, by the measure of Python's difflib, which the official tool uses to
 * match parameters that two programs name differently.
 */
#ifndef COMPARE_CONFIG_SIMILAR_H
#define COMPARE_CONFIG_SIMILAR_H

#include "probe/base/str.h"

/* Returns twice the letters in matching blocks by the letters of both: SequenceMatcher(None, a,
 * b).ratio(). */
double cfg_similar(struct ms_str a, struct ms_str b);

#endif
