/* SPDX-License-Identifier: MIT
 *
 * value_flow: one dump as values and the nodes that wrote them.
 */
#ifndef COMPARE_OBSERVE_VALUE_FLOW_H
#define COMPARE_OBSERVE_VALUE_FLOW_H

#include "compare/observe/part.h"

struct observe__side {
    const struct probe_dump *dump;
    struct read__value *value; /* by row; owned by the comparison, or by own */
    struct read__values own;   /* used where the comparison keeps no values */
    /* by row: the node that wrote the value read there, or the value that a module outputs */
    uint32_t *maker;
};

/* Sets the values of a side: those of `kept`, or when `kept` is NULL values parsed here.
 * observe__side_free releases them. */
enum ms_rc observe__borrow_values(struct observe__side *s, struct read__values *kept,
                                  struct ms_pool *pool, struct ms_err *err);
void observe__side_free(struct observe__side *s);
static inline bool observe__is_input(const struct probe_row *r)
{
    return r->section <= PROBE_SEC_INPUT;
}
static inline bool observe__is_output(const struct probe_row *r)
{
    return r->section == PROBE_SEC_OUTPUT || r->section >= PROBE_SEC_PGRAD;
}

enum ms_rc observe__trace_values(struct observe__side *s, struct ms_err *err);

#endif
