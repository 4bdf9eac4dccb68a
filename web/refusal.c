/* SPDX-License-Identifier: MIT
 *
 * refusal: counting by seconds.
 */
#define MS_LOG_DOMAIN "serve"
#include "web/refusal.h"

#include "probe/base/clock.h"
#include "probe/base/log.h"

#include <stdio.h>

enum { LINES_A_SECOND = 5, SHOWN_MAX = 80 };

static bool may_say(struct web_refusals *r)
{
    int64_t second = ms_clock_ns() / 1000000000;
    if (atomic_exchange(&r->second, second) != second) {
        unsigned left = atomic_exchange(&r->said, 0);
        if (left > LINES_A_SECOND)
            ms_warn("%u more like these", left - LINES_A_SECOND);
    }
    return atomic_fetch_add(&r->said, 1) < LINES_A_SECOND;
}

/* Nothing that a terminal would act upon. */
static const char *printable(char *to, struct ms_str from)
{
    uint32_t n = from.n < SHOWN_MAX ? from.n : SHOWN_MAX;
    for (uint32_t i = 0; i < n; i++)
        to[i] = from.p[i] > ' ' && from.p[i] < 127 ? from.p[i] : '?';
    snprintf(to + n, 4, "%s", from.n > n ? "..." : "");
    return to;
}

void web_refusal(struct web_refusals *r, const char *why, struct ms_str what)
{
    char shown[SHOWN_MAX + 4];
    web_metrics_refused(r->metrics);
    if (may_say(r))
        ms_warn("refused: %s%s%s", why, what.n != 0 ? ": " : "", printable(shown, what));
}
