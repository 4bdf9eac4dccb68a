/* SPDX-License-Identifier: MIT
 *
 * place: where something is shown, as one line of text.
 *
 *     graph?step=0&rank=1&node=Functional.linear.3.forward
 *     timeline?from=1700000000123&to=1700000000456&rank=2&track=14
 *
 * A finding ends in a place, the address bar of the page is one, the terminal
 * takes one after ":goto".  What a place does not say is left as it was.
 */
#ifndef VIZ_MODEL_PLACE_H
#define VIZ_MODEL_PLACE_H

#include "probe/base/str.h"

enum viz_screen { VIZ_OVERVIEW, VIZ_TIMELINE, VIZ_GRAPH, VIZ_TABLE, VIZ_CLUSTER, VIZ_SCREENS };
/* "overview", "timeline", ... */
extern const char *const viz_screen_names[VIZ_SCREENS];

struct viz_place {
    enum viz_screen screen;
    int64_t step, rank;  /* -1: not said */
    int64_t from, to;    /* ns; of the timeline; both 0: not said */
    int64_t track;       /* id; -1: not said */
    bool golden;         /* node is one of the golden side */
    struct ms_str node;  /* "" when not said */
    struct ms_str query; /* search or filter terms; "" when not said */
};

/* A place that says only which screen. */
struct viz_place viz_place_of(enum viz_screen screen);
/* Append the text of a place; what was not said is left out. */
void viz_place_write(const struct viz_place *p, struct ms_buf *out);
/* Read a place.  Texts are decoded into scratch, which must live as long as the place. */
enum ms_rc viz_place_read(struct viz_place *p, struct ms_str text, struct ms_buf *scratch,
                          struct ms_err *err) MS_MUST_USE;

/* Append s as part of an address: what is no letter, digit or one of "-._~" as %XX. */
void viz_percent_encode(struct ms_str s, struct ms_buf *out);
/* Append s with its %XX decoded; false when one is malformed or stands for a zero byte. */
bool viz_percent_decode(struct ms_str s, struct ms_buf *out);

#endif
