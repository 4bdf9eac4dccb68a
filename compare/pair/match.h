/* SPDX-License-Identifier: MIT
 *
 * match: pairs rows by the automatic alignment and by the pins of the user.
 */
#ifndef COMPARE_PAIR_MATCH_H
#define COMPARE_PAIR_MATCH_H

#include "compare/pair/cmp_rows.h"

/* Contents of a file of pins: nodes constrain the alignment, rows override its pairs of rows. */
struct cmp__pins {
    MS_VEC(struct cmp_align_pin) nodes;
    /* rows of the dumps; golden is CMP_ALIGN_NONE for a row without a partner */
    MS_VEC(struct cmp_align_row) rows;
};
/* Reads c->set->conf.pins. Names that neither dump has become problems of the comparison. */
enum ms_rc cmp__pins_read(struct cmp_rows *c, struct cmp__pins *pins, struct ms_err *err);
/* Reads pins from text. */
enum ms_rc cmp__pins_parse(struct cmp_rows *c, const char *name, struct ms_str text,
                           struct cmp__pins *pins, struct ms_err *err);
void cmp__pins_free(struct cmp__pins *pins);

/* Tells whether rows are paired by the alignment rather than by name. */
bool cmp__match_wanted(const struct cmp_rows *c);
/* Aligns the dumps and fills c->pairs, in the order of the target. */
enum ms_rc cmp__match(struct cmp_rows *c, struct ms_pool *pool, struct ms_err *err);

#endif
