/* SPDX-License-Identifier: MIT
 *
 * window: the part of a run's time that a timeline shows.
 */
#ifndef VIZ_MODEL_WINDOW_H
#define VIZ_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct viz_window {
    int64_t from, to;    /* shown, ns; never shorter than VIZ_SHORTEST_NS */
    int64_t first, last; /* of the run */
};
enum { VIZ_SHORTEST_NS = 10 };

/* The whole run, with a little room on both sides. */
struct viz_window viz_window_all(int64_t first, int64_t last);
/* Show [from, to] as far as the run goes. */
void viz_window_show(struct viz_window *w, int64_t from, int64_t to);
/* The window `factor` times as long, with what is at `still` (0: left edge, 1: right) kept in place. */
void viz_window_zoom(struct viz_window *w, double factor, double still);
/* Move by a share of the window: 0.5 is half a screen to later. */
void viz_window_pan(struct viz_window *w, double share);
static inline int64_t viz_window_length(const struct viz_window *w)
{
    return w->to - w->from;
}

/* Distance of the ticks of a ruler: 1, 2 or 5 times a power of ten (of the unit of time below a
 * minute), at least 1/most of the window. */
int64_t viz_ruler_step(const struct viz_window *w, unsigned most);

#endif
