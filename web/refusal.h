/* SPDX-License-Identifier: MIT
 *
 * refusal: what is refused is counted and said in the log, some of each second: a flood of requests
 * must not fill the disk.
 */
#ifndef WEB_REFUSAL_H
#define WEB_REFUSAL_H

#include "web/metrics.h"

struct web_refusals {
    struct web_metrics *metrics;
    _Atomic int64_t second;
    _Atomic unsigned said; /* in that second */
};

/* `what` comes from outside and is shortened to what is safe to print; "" says nothing. */
void web_refusal(struct web_refusals *r, const char *why, struct ms_str what);

#endif
