/* SPDX-License-Identifier: MIT
 *
 * row_key: the text by which a row is paired: its name, with calls counted anew,
 * rewritten by the mappings of the user.
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
/* Read the mapping files that the configuration names; -dm and -lm become c->row_map. */
enum ms_rc cmp__keys_read(struct cmp__keys *keys, struct cmp_rows *c, struct ms_err *err);
void cmp__keys_free(struct cmp__keys *keys);

/* What a thread needs to make keys. */
struct cmp__keyer {
    const struct cmp__keys *keys;
    struct ms_buf name;              /* the key that was made last */
    struct ms_buf scratch, original; /* original: what the name was, or a part of it */
};
void cmp__keyer_init(struct cmp__keyer *k, const struct cmp__keys *keys);
/* Free it; an error when a key was too much for it. */
enum ms_rc cmp__keyer_end(struct cmp__keyer *k, struct ms_err *err);
/* Keys of rows of the tables; false when no row of the other side can have it. */
bool cmp__key_target(struct cmp__keyer *k, uint32_t row);
bool cmp__key_golden(struct cmp__keyer *k, uint32_t row);

#endif
