/* SPDX-License-Identifier: MIT
 *
 * row_key: the key by which a row is paired: its name, with calls renumbered and rewritten
 * by the user's mappings.
 */
#ifndef COMPARE_PAIR_ROW_KEY_H
#define COMPARE_PAIR_ROW_KEY_H

#include "compare/pair/cmp_rows.h"

struct cmp__keys {
    const struct cmp_rows *c;
    struct cmp__pairs cells; /* -cm FILE */
    struct cmp__api_rules rules;
    bool renumber_t, renumber_b;
};
/* Reads the mapping files that the configuration names; -dm and -lm become c->row_map. */
enum ms_rc cmp__keys_read(struct cmp__keys *keys, struct cmp_rows *c, struct ms_err *err);
void cmp__keys_free(struct cmp__keys *keys);

/* Per-thread state for making keys. */
struct cmp__keyer {
    const struct cmp__keys *keys;
    struct ms_buf name; /* the key that was made last */
    /* original: the name before renaming, or the name of its cell */
    struct ms_buf scratch, original;
};
void cmp__keyer_init(struct cmp__keyer *k, const struct cmp__keys *keys);
/* Frees the state; fails when a key was too long or memory ran out. */
enum ms_rc cmp__keyer_end(struct cmp__keyer *k, struct ms_err *err);
/* Make the key of a row of the table; false when no row of the other side can match. */
bool cmp__key_target(struct cmp__keyer *k, uint32_t row);
bool cmp__key_golden(struct cmp__keyer *k, uint32_t row);

#endif
