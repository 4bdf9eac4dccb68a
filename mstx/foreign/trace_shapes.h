/* SPDX-License-Identifier: MIT
 *
 * trace_shapes: events that are written as one before them, but for the name and the digits.
 *
 * A profiler writes all events of a kind in one way, blanks included.  What stands between the name
 * and the runs of digits of an event is learned from the first of its kind and compared with those
 * that follow, so that no key is looked at again.  The pieces form a tree, in which events that begin
 * alike share the nodes of their beginning:
 *
 *     {"ph": "X", "cat": "kernel", "name": " ─ NAME ─ ", "pid":  ─ DIGITS ─ , "tid":  ─ DIGITS ─ ...
 */
#ifndef MSTX_FOREIGN_TRACE_SHAPES_H
#define MSTX_FOREIGN_TRACE_SHAPES_H

#include "mstx/foreign/trace_item.h"
#include "mstx/rundb/run_write.h"

#include "probe/base/vec.h"

enum { MSTX_SHAPE_RUNS = 256 };

struct mstx_shape_node;
struct mstx_shape;

/* Zero it, then set the arena, which must live as long. */
struct mstx_trace_shapes {
    struct ms_arena *arena;
    struct mstx_shape_node *first; /* of the nodes that an event begins with */
    uint32_t shapes, lessons;
    size_t bytes;                              /* of literals */
    struct mstx_text_run run[MSTX_SHAPE_RUNS]; /* of digits, in the event that was read last */
};

/* Reads the object at p as an event of a known shape and returns its end; NULL where it is of none.
 * Its args are args_runs and the form that the shape was learned with, not a text.  MSTX_TRACE_TEXT_PAD
 * zero bytes lie behind `end`. */
const char *mstx__trace_shapes_read(struct mstx_trace_shapes *s, struct mstx_trace_item *it,
                                    const char *p, const char *end);
/* Tells whether the shape of an event that mstx__trace_item_fast has read is worth learning: not of
 * rare kinds, whose other members say more, nor when many shapes were learned in vain. */
bool mstx__trace_shapes_wants(const struct mstx_trace_shapes *s, const struct mstx_trace_item *it);
/* Learns the shape of that event, which is the text from p to `end`, with the form of its args in the
 * writer.  Leaves it alone where its args hold texts that count. */
void mstx__trace_shapes_learn(struct mstx_trace_shapes *s, const struct mstx_trace_item *it,
                              const struct mstx_args_form *form, const char *p, const char *end);

#endif
