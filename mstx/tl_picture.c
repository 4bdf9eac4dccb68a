/* SPDX-License-Identifier: MIT
 *
 * tl_picture: events for drawing.
 *
 * The levels that are stored lie wherever half of the events are gone, so the one
 * below a screen's resolution may hold several for a pixel.  They are joined here
 * by the rule the levels were made with.
 */
#include "mstx/timeline.h"
#include "mstx/tl_export.h"
#include "mstx/tl_levels.h"

/* Of the least power of two that is not below v. */
static unsigned shift_of(int64_t v)
{
    unsigned shift = 0;
    while (shift < MSTX_SHIFT_MAX && (int64_t)1 << shift < v)
        shift++;
    return shift;
}

enum ms_rc mstx_tl_picture(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                           mstx_events *out, struct ms_err *err)
{
    unsigned shift = shift_of(res_ns);
    out->n = 0;
    MS_TRY(mstx__tl_drawn(tl, track, t0, t1, (int64_t)1 << shift, out, err));
    if (shift == 0)
        return MS_OK;
    struct mstx_levels joined = {.ev = *out};
    bool good = mstx__levels_join(&joined, shift);
    *out = joined.ev;
    joined.ev = (mstx_events){0};
    mstx__levels_free(&joined);
    return good ? MS_OK : ms_no_memory(err);
}
