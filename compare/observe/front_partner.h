/* SPDX-License-Identifier: MIT
 *
 * front_partner: what nodes of two programs read and make, and which of them do the same, for the search for where
 * the values of both part.
 */
#ifndef COMPARE_OBSERVE_FRONT_PARTNER_H
#define COMPARE_OBSERVE_FRONT_PARTNER_H

#include "compare/observe/lost_values.h"

enum { OBSERVE__FRONT_MAX = 64 };

/* The search for where values part; see frontier.h. In arrays of two, index 0 is the golden side. */
struct observe__front {
    struct observe__part *p;
    const struct observe__pairing *q;
    uint32_t list[2][OBSERVE__FRONT_MAX], n[2];
    bool *weights[2];  /* by row: it is the value of a parameter */
    bool *seen;        /* by node of one side, during a walk */
    uint32_t *partner; /* the same: its partner */
};

const struct probe_dump *observe__front_dump_of(const struct observe__front *f, unsigned side);
struct ms_str observe__front_op_of(const struct observe__front *f, unsigned side, uint32_t node);
bool observe__front_is_view(const struct observe__front *f, unsigned side, uint32_t node);
/* Tells whether a node joins tensors, which views do not. */
bool observe__front_is_join(const struct observe__front *f, unsigned side, uint32_t node);
bool observe__front_reads_lost(const struct observe__front *f, unsigned side, uint32_t node);
bool observe__front_has_parameter(const struct observe__front *f, unsigned side, uint32_t node);
/* Tells whether a node differs at all. */
bool observe__front_is_touched(const struct observe__front *f, unsigned side, uint32_t node);
/* Tells whether values of both sides are alike. */
bool observe__front_is_alike(const struct observe__front *f, const struct read__value *a,
                             const struct read__value *b);
/* Tells whether a row is an input that is a parameter's value, or one that is none. */
bool observe__front_is_input(const struct observe__front *f, unsigned side, uint32_t row,
                             bool weights);
/* Counts the tensors of several elements that a node reads. */
unsigned observe__front_count_inputs(const struct observe__front *f, unsigned side, uint32_t node);
/* Tells whether a node reads a value. */
bool observe__front_reads_value(const struct observe__front *f, unsigned side, uint32_t node,
                                const struct read__value *v, bool weights);
/* Tells whether nodes of both sides read the same value, or the same parameter. */
bool observe__front_share_input(const struct observe__front *f, unsigned side, uint32_t node,
                                uint32_t other, bool weights);
/* Tells whether a node reads what another one of its side has made. */
bool observe__front_reads_from(const struct observe__front *f, unsigned side, uint32_t node,
                               uint32_t maker);
bool observe__front_is_same_family(const struct observe__front *f, unsigned side, uint32_t node,
                                   uint32_t other);
struct observe__parting observe__front_part_at(unsigned side, uint32_t node, uint32_t other);

/* ---- partners -------------------------------------------------------------- */

/* Tells whether partners are a function and the last of the steps inside it, as the alignment found them.
 * An operator of the same family, or with the same parameter, has other steps around it too much or too
 * little. */
bool observe__front_is_whole(const struct observe__front *f, unsigned side, uint32_t node,
                             uint32_t other);

/* Returns the partner of a node if it differs and does the same: it has the same operator, is the last
 * step of it, or reads a value, such as a parameter, that the node reads. Where values are lost, partners
 * are only guessed. */
uint32_t observe__front_partner_of(const struct observe__front *f, unsigned side, uint32_t node);

#endif
