/* SPDX-License-Identifier: MIT
 *
 * layer: expands layer mappings into pairs of rows and writes an alignment as a layer
 * mapping.
 */
#ifndef COMPARE_PAIR_LAYER_H
#define COMPARE_PAIR_LAYER_H

#include "compare/pair/cmp_rows.h"

/* Expands a layer mapping into pairs of row names. */
enum ms_rc cmp__layer_pairs(struct cmp_rows *c, struct cmp__pairs *out, struct ms_err *err);
/* Writes the alignment as a layer mapping; writes nothing when the modules are not known. */
enum ms_rc cmp__write_layers(const struct cmp_rows *c, struct ms_buf *out, struct ms_err *err);

#endif
