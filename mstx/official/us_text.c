/* SPDX-License-Identifier: MIT
 *
 * us_text: see the header.
 */
#include "mstx/official/us_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *mstx__us_text(int64_t ns, char out[MSTX_US_TEXT])
{
    const double us = rint((double)ns * 0.001 * 1000) / 1000;
    int decimals = 1;
    for (double scale = 10; decimals < 3 && rint(us * scale) / scale != us; scale *= 10)
        decimals++;
    snprintf(out, MSTX_US_TEXT, "%.*f", decimals, us);
    return out;
}

struct ms_str mstx__us_text_exact(int64_t ns, char out[MSTX_US_TEXT])
{
    int n = snprintf(out, MSTX_US_TEXT, "%s%lld.%03lld", ns < 0 ? "-" : "", llabs(ns / 1000),
                     llabs(ns % 1000));
    while (out[n - 1] == '0')
        n--;
    n -= out[n - 1] == '.';
    return (struct ms_str){out, (uint32_t)n};
}
