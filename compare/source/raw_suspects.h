/* SPDX-License-Identifier: MIT
 *
 * raw_suspects: makes the raw suspects that the rules add.
 */
#ifndef COMPARE_SOURCE_RAW_SUSPECTS_H
#define COMPARE_SOURCE_RAW_SUSPECTS_H

#include "compare/source/node_weigh.h"
#include "compare/source/suspect.h"

/* Returns a raw suspect with the figures of a node. s: strength, log10 of a factor. */
struct source__raw source__raw_of(const struct observe__node *n, enum cmp_why why,
                                  enum source__class cls, double s);
/* Adds a raw suspect of a node. */
enum ms_rc source__add_suspect(struct source__judge *j, uint32_t node, struct source__raw raw,
                               struct ms_err *err);
/* Returns the operator to blame for a value that comes from outside the dump: a region before it
 * whose results no recorded operator reads, or else the node itself. Sets raw->why when it blames
 * the region. */
uint32_t source__blame_loose(struct source__judge *j, uint32_t node, struct source__raw *raw);

#endif
