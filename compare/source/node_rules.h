/* SPDX-License-Identifier: MIT
 *
 * node_rules: judges every node by its inputs and by the noise before it.
 */
#ifndef COMPARE_SOURCE_NODE_RULES_H
#define COMPARE_SOURCE_NODE_RULES_H

#include "compare/source/consequences.h"

/* Applies the rules to a part and adds raw suspects to s->raws. explained: an earlier step has a
 * suspect, so different parameters are its consequence. */
enum ms_rc source__judge_part(struct cmp_source *s, uint32_t part,
                              const struct source__comms *comms, bool explained,
                              struct ms_err *err);

#endif
