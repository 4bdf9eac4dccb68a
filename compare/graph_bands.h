/* SPDX-License-Identifier: MIT
 *
 * graph_bands: which value of precision_index means which state.  Files say so
 * themselves, and not all alike: in digest files of old 1 is good and 0 is bad.
 */
#ifndef COMPARE_GRAPH_BANDS_H
#define COMPARE_GRAPH_BANDS_H

#include "compare/graph.h"

enum { GRAPH_BANDS = 16 };

struct graph_bands {
    struct graph_band {
        double from, to; /* half-open but for the last and for a single value */
        enum graph_state state;
    } list[GRAPH_BANDS];
    unsigned n;
    bool usual; /* as this tool writes them */
};

/* Read node_colors; what is no such object gives the usual bands. */
void graph__bands_read(struct graph_bands *b, struct ms_str json);
enum graph_state graph__band_of(const struct graph_bands *b, double value);

#endif
