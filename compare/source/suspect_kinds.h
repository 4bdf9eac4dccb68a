/* SPDX-License-Identifier: MIT
 *
 * suspect_kinds: the messages of suspects and of notes about a pair of runs, and
 * their arguments. Their sentences are in viz/words.
 *
 * in, out, floor and factor are the fields of struct cmp_suspect; they are part of
 * every message of a suspect, so that a reader can check it. path names a tensor of
 * the node; maker and golden_maker are the nodes that wrote it (absent: no recorded
 * node), instead the golden node in whose place an operator runs, reader the node whose result
 * shows that values have another order, e is the relative
 * difference of the tensor, here and there its texts on the target and golden side;
 * later is the number of later nodes that carry the difference on, more the number of other nodes
 * that are suspects for the same reason and not listed.
 */
#ifndef COMPARE_SOURCE_SUSPECT_KINDS_H
#define COMPARE_SOURCE_SUSPECT_KINDS_H

#include "probe/base/message.h"

/* In the order of enum cmp_why: kind, arguments. */
#define CMP_SUSPECT_KINDS(X)                                                                       \
    X(suspect_flag, "exact later more?")                                                           \
    X(suspect_differs, "later more?")                                                              \
    X(suspect_value, "measured out factor excuse in floor order? later more?")                     \
    X(suspect_norm, "norm factor out in later more?")                                              \
    X(suspect_precedent, "out later more?")                                                        \
    X(suspect_rounded, "out in later more?")                                                       \
    X(suspect_parameter, "path state? reader? in factor later more?")                              \
    X(suspect_input, "path state? reader? in factor later more?")                                  \
    X(suspect_wiring, "path maker? golden_maker? e? later more?")                                  \
    X(suspect_missing, "effect? reader? path? maker? e? later more?")                              \
    X(suspect_extra, "instead? effect? reader? path? maker? e? later more?")                       \
    X(suspect_moved, "effect? reader? path? maker? e? later more?")                                \
    X(suspect_shape, "path here? there? out? in? later more?")                                     \
    X(suspect_dtype, "path here? there? out? in? later more?")                                     \
    X(suspect_grad, "path here? there? out? in? later more?")                                      \
    X(suspect_scalar, "path here? there? out? in? later more?")                                    \
    X(suspect_update, "e later more?")                                                             \
    X(suspect_branch, "later more?")
#define CMP_NOTE_KINDS(X)                                                                          \
    X(other_precision, "share type golden_type noise?")                                            \
    X(other_start, "unlike parameters limit")
/* golden and target: names of the operators of a region on each side; e: difference of the values
 * after the region, absent when no node reads them. */
#define CMP_REGION_KINDS(X)                                                                        \
    X(other_operators, "module? golden? target? count e?")                                         \
    X(recomputed, "side count")                                                                    \
    X(micro_batches, "side count")

#endif
