/* SPDX-License-Identifier: MIT
 *
 * us_text: nanoseconds as microseconds in text, as Python writes them.
 */
#ifndef MSTX_OFFICIAL_US_TEXT_H
#define MSTX_OFFICIAL_US_TEXT_H

#include "probe/base/str.h"

enum { MSTX_US_TEXT = 32 };
/* Returns the float with as few digits as tell it: 12.5, 3.0. */
const char *mstx__us_text(int64_t ns, char out[MSTX_US_TEXT]);
/* Returns the exact number: 1500 is 1.5, 2000 is 2. */
struct ms_str mstx__us_text_exact(int64_t ns, char out[MSTX_US_TEXT]);

#endif
