/* SPDX-License-Identifier: MIT
 *
 * window: zooming and panning within the bounds of the run.
 */
#include "viz/model/window.h"

#include "probe/base/assert.h"

#include <math.h>

static const double ROOM = 0.02; /* margin on each side of the whole run */

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the margin beside the run: times are so far from the ends of int64 that this does not
 * overflow. */
static int64_t room(const struct viz_window *w)
{
    double length = (double)w->last - (double)w->first;
    return at_least((int64_t)(length * ROOM), VIZ_SHORTEST_NS);
}

struct viz_window viz_window_all(int64_t first, int64_t last)
{
    struct viz_window w = {.first = first, .last = at_least(last, first)};
    viz_window_show(&w, w.first - room(&w), w.last + room(&w));
    return w;
}

void viz_window_show(struct viz_window *w, int64_t from, int64_t to)
{
    int64_t low = w->first - room(w), high = w->last + room(w);
    int64_t length = at_least(to - from, VIZ_SHORTEST_NS);
    length = at_most(length, high - low);
    w->from = at_most(at_least(from, low), high - length);
    w->to = w->from + length;
    ms_assert(low <= w->from && w->from < w->to && w->to <= high);
}

void viz_window_zoom(struct viz_window *w, double factor, double still)
{
    ms_assert(factor > 0 && still >= 0 && still <= 1);
    double length = (double)viz_window_length(w);
    double wanted = fmin(fmax(length * factor, VIZ_SHORTEST_NS), (double)INT64_MAX / 4);
    int64_t from = w->from + (int64_t)((length - wanted) * still);
    viz_window_show(w, from, from + (int64_t)llround(wanted));
}

void viz_window_pan(struct viz_window *w, double share)
{
    int64_t by = (int64_t)((double)viz_window_length(w) * share);
    viz_window_show(w, w->from + by, w->to + by);
}

int64_t viz_ruler_step(const struct viz_window *w, unsigned most)
{
    static const int64_t minute = INT64_C(60000000000);
    static const int64_t long_steps[] = {1, 2, 5, 10, 30, 60, 120, 360, 720, 1440};
    int64_t parts = most != 0 ? most : 1;
    int64_t least = (viz_window_length(w) + parts - 1) / parts;
    for (int64_t unit = 1; unit < minute / 2; unit *= 10) {
        for (int64_t k = 1; k <= 5; k += k == 1 ? 1 : 3) {
            if (unit * k >= least && unit * k < minute / 2)
                return unit * k;
        }
    }
    for (unsigned i = 0; i < sizeof long_steps / sizeof *long_steps; i++) {
        if (long_steps[i] * minute >= least)
            return long_steps[i] * minute;
    }
    return (least / (1440 * minute) + 1) * 1440 * minute;
}
