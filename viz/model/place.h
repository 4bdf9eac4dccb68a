/* SPDX-License-Identifier: MIT
 *
 * place: a link to something shown, as one line of text.
 *
 *     graph?step=0&rank=1&node=Functional.linear.3.forward
 *     timeline?from=1700000000123&to=1700000000456&rank=2&track=14
 *
 * A finding has a place, the address bar of the page is one, the terminal takes one after ":goto".
 * Parts that a place does not give keep their current value.
 */
#ifndef VIZ_MODEL_PLACE_H
#define VIZ_MODEL_PLACE_H

#include "probe/base/str.h"

enum viz_screen { VIZ_OVERVIEW, VIZ_TIMELINE, VIZ_GRAPH, VIZ_TABLE, VIZ_CLUSTER, VIZ_SCREENS };
/* "overview", "timeline", ... */
extern const char *const viz_screen_names[VIZ_SCREENS];

struct viz_place {
    enum viz_screen screen;
    int64_t step, rank;  /* -1: not given */
    int64_t from, to;    /* ns; of the timeline; both 0: not given */
    int64_t track;       /* id; -1: not given */
    int64_t call;        /* ns: start of a communication call of the track; 0: not given */
    bool golden;         /* node is on the golden side */
    struct ms_str node;  /* "" when not given */
    struct ms_str query; /* search or filter terms; "" when not given */
};

/* Returns a place that gives only the screen. */
struct viz_place viz_place_of(enum viz_screen screen);
/* Appends the text of a place without the parts not given. */
void viz_place_write(const struct viz_place *p, struct ms_buf *out);
/* Parses a place. Texts are decoded into scratch, which must live as long as the place. */
enum ms_rc viz_place_read(struct viz_place *p, struct ms_str text, struct ms_buf *scratch,
                          struct ms_err *err) MS_MUST_USE;

/* Appends s as part of a URL; bytes other than letters, digits and "-._~" become %XX. */
void viz_percent_encode(struct ms_str s, struct ms_buf *out);
/* Appends s with its %XX decoded; false for a malformed one or a zero byte. */
bool viz_percent_decode(struct ms_str s, struct ms_buf *out);

#endif
