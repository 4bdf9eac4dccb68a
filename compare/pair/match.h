/* SPDX-License-Identifier: MIT
 *
 * match: rows paired by the automatic alignment, and what the user pinned.
 */
#ifndef COMPARE_PAIR_MATCH_H
#define COMPARE_PAIR_MATCH_H

#include "compare/pair/cmp_rows.h"

/* What a file of pins says: nodes for the alignment, rows that it does not decide. */
struct cmp__pins {
    MS_VEC(struct cmp_align_pin) nodes;
    MS_VEC(struct cmp_align_row) rows; /* rows of the dumps; golden CMP_ALIGN_NONE: no partner */
};
/* Read c->set->conf.pins.  Names that neither dump has become problems of the comparison. */
enum ms_rc cmp__pins_read(struct cmp_rows *c, struct cmp__pins *pins, struct ms_err *err);
/* The same of text. */
enum ms_rc cmp__pins_parse(struct cmp_rows *c, const char *name, struct ms_str text,
                           struct cmp__pins *pins, struct ms_err *err);
void cmp__pins_free(struct cmp__pins *pins);

/* Are rows to be paired by the alignment rather than by name? */
bool cmp__match_wanted(const struct cmp_rows *c);
/* Align the dumps and fill c->pairs, in the target's order. */
enum ms_rc cmp__match(struct cmp_rows *c, struct ms_pool *pool, struct ms_err *err);

#endif
