/* SPDX-License-Identifier: MIT
 *
 * value_shelf: the values of one side, by which a value of the other side is looked up.
 *
 * Two programs name and cut their operators differently; a value that both have was computed alike.
 */
#ifndef COMPARE_OBSERVE_VALUE_SHELF_H
#define COMPARE_OBSERVE_VALUE_SHELF_H

#include "compare/observe/value_flow.h"

/* Values sorted by size and norm. Values that differ by at most `slack` are alike. */
struct observe__shelf {
    const struct read__value **list;
    size_t n;
    double slack;
    bool hides_whole; /* some whole numbers have no figures, such as in a dump of C */
};

/* Tells whether a value can be looked up: its statistics are known and finite. */
bool observe__is_searched(const struct read__value *v);
/* Fills a shelf with the values that can be looked up among those of some rows of a side. */
enum ms_rc observe__shelf_fill(struct observe__shelf *f, const struct observe__side *s,
                               bool (*is_meant)(const struct probe_dump *d, uint32_t row),
                               struct ms_arena *arena, struct ms_err *err);
/* Tells whether a value is on the shelf. What cannot be looked up, such as truth values, is taken to be. */
bool observe__shelf_has(const struct observe__shelf *f, const struct read__value *v);
/* Returns how far a value is from the nearest of its size, at most 1. */
double observe__shelf_gap(const struct observe__shelf *f, const struct read__value *v);

#endif
