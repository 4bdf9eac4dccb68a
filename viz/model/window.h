/* SPDX-License-Identifier: MIT
 *
 * window: the time range of a run that a timeline shows.
 */
#ifndef VIZ_MODEL_WINDOW_H
#define VIZ_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct viz_window {
    int64_t from, to;    /* visible range, ns; at least VIZ_SHORTEST_NS long */
    int64_t first, last; /* range of the run */
};
enum { VIZ_SHORTEST_NS = 10 };

/* Returns the whole run, with a small margin on both sides. */
struct viz_window viz_window_all(int64_t first, int64_t last);
/* Shows [from, to], limited to the run. */
void viz_window_show(struct viz_window *w, int64_t from, int64_t to);
/* Scales the window by `factor`; the time at `still` (0: left edge, 1: right) keeps its place. */
void viz_window_zoom(struct viz_window *w, double factor, double still);
/* Moves by a share of the window: 0.5 is half a window later. */
void viz_window_pan(struct viz_window *w, double share);
static inline int64_t viz_window_length(const struct viz_window *w)
{
    return w->to - w->from;
}

/* Returns the distance of the ticks of a ruler: 1, 2 or 5 times a power of ten (of the unit of
 * time below a minute), at least 1/most of the window. */
int64_t viz_ruler_step(const struct viz_window *w, unsigned most);

#endif
