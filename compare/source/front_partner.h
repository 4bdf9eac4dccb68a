/* SPDX-License-Identifier: MIT
 *
 * front_partner: what nodes of two programs read and make, and which of them do the same, for the search for where
 * the values of both part.
 */
#ifndef COMPARE_SOURCE_FRONT_PARTNER_H
#define COMPARE_SOURCE_FRONT_PARTNER_H

#include "compare/source/lost_values.h"

enum { SOURCE__FRONT_MAX = 64 };

/* The search for where values part; see frontier.h. In arrays of two, index 0 is the golden side. */
struct source__front {
    struct source__part *p;
    const struct source__pairing *q;
    uint32_t list[2][SOURCE__FRONT_MAX], n[2];
    bool *weights[2];  /* by row: it is the value of a parameter */
    bool *seen;        /* by node of one side, during a walk */
    uint32_t *partner; /* the same: its partner */
};

const struct probe_dump *source__front_dump_of(const struct source__front *f, unsigned side);
struct ms_str source__front_op_of(const struct source__front *f, unsigned side, uint32_t node);
bool source__front_is_view(const struct source__front *f, unsigned side, uint32_t node);
/* Tells whether a node joins tensors, which views do not. */
bool source__front_is_join(const struct source__front *f, unsigned side, uint32_t node);
bool source__front_reads_lost(const struct source__front *f, unsigned side, uint32_t node);
bool source__front_has_parameter(const struct source__front *f, unsigned side, uint32_t node);
/* Tells whether a node differs at all. */
bool source__front_is_touched(const struct source__front *f, unsigned side, uint32_t node);
/* Tells whether values of both sides are alike. */
bool source__front_is_alike(const struct source__front *f, const struct read__value *a,
                            const struct read__value *b);
/* Tells whether a row is an input that is a parameter's value, or one that is none. */
bool source__front_is_input(const struct source__front *f, unsigned side, uint32_t row,
                            bool weights);
/* Counts the tensors of several elements that a node reads. */
unsigned source__front_count_inputs(const struct source__front *f, unsigned side, uint32_t node);
/* Tells whether a node reads a value. */
bool source__front_reads_value(const struct source__front *f, unsigned side, uint32_t node,
                               const struct read__value *v, bool weights);
/* Tells whether nodes of both sides read the same value, or the same parameter. */
bool source__front_share_input(const struct source__front *f, unsigned side, uint32_t node,
                               uint32_t other, bool weights);
/* Tells whether a node reads what another one of its side has made. */
bool source__front_reads_from(const struct source__front *f, unsigned side, uint32_t node,
                              uint32_t maker);
bool source__front_is_same_family(const struct source__front *f, unsigned side, uint32_t node,
                                  uint32_t other);
struct source__parting source__front_part_at(unsigned side, uint32_t node, uint32_t other);

/* ---- partners -------------------------------------------------------------- */

/* Tells whether partners are a function and the last of the steps inside it, as the alignment found them.
 * An operator of the same family, or with the same parameter, has other steps around it too much or too
 * little. */
bool source__front_is_whole(const struct source__front *f, unsigned side, uint32_t node,
                            uint32_t other);

/* Returns the partner of a node if it differs and does the same: it has the same operator, is the last
 * step of it, or reads a value, such as a parameter, that the node reads. Where values are lost, partners
 * are only guessed. */
uint32_t source__front_partner_of(const struct source__front *f, unsigned side, uint32_t node);

#endif
