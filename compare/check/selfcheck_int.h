/* SPDX-License-Identifier: MIT
 *
 * selfcheck_int: shared by the stages of a self check.
 *
 *     selfcheck_scan     one dump ──► findings in it, facts for the others
 *     selfcheck_mirror   one dump ──► backward against forward
 *     selfcheck_ranks    facts of all ranks and steps ──► findings between them
 */
#ifndef COMPARE_CHECK_SELFCHECK_INT_H
#define COMPARE_CHECK_SELFCHECK_INT_H

#include "compare/check/selfcheck.h"
#include "probe/base/map.h"

enum { SELF__PARAMETER, SELF__OUTPUT };

/* A value that is compared between ranks or steps. */
struct self__fact {
    uint32_t key;   /* the parameter, or the call of a collective and its group */
    uint32_t class; /* the same without numbers, so that all layers or all calls share it */
    uint32_t place; /* index of the dump */
    uint32_t order; /* position of the record in the dump */
    uint64_t value; /* hash of the content: equal values have equal numbers */
    uint64_t shape;
    double norm;
    uint8_t what;
    bool has_gradient; /* of a parameter: has a gradient that is not zero */
    struct ms_str node;
};

struct self__ctx {
    struct self_check *s;
    unsigned flags; /* for opening dumps */
    MS_VEC(struct self__fact) facts;
    struct ms_map names; /* keys and classes */
    struct ms_buf text;
};

static inline const struct probe_place *self__place(const struct self__ctx *c, uint32_t place)
{
    return &c->s->places.list.p[place];
}

/* Returns a hash of a tensor's content; 0 when the content is not comparable (no statistics, not
 * finite, a constant). */
uint64_t self__value(const struct probe_leaf *leaf);
uint64_t self__shape(const struct probe_leaf *leaf);

/* Adds a finding of a place; its text is taken from c->text, which is cleared. */
enum ms_rc self__find(struct self__ctx *c, const struct self_finding *f, struct ms_err *err);
/* Returns the number of a name in c->names. */
enum ms_rc self__name(struct self__ctx *c, struct ms_str name, uint32_t *id, struct ms_err *err);

enum ms_rc self__scan(struct self__ctx *c, const struct probe_dump *d, uint32_t place,
                      struct ms_err *err);
enum ms_rc self__mirror(struct self__ctx *c, const struct probe_dump *d, uint32_t place,
                        struct ms_err *err);
enum ms_rc self__ranks(struct self__ctx *c, struct ms_err *err);
enum ms_rc self__steps(struct self__ctx *c, struct ms_err *err);

#endif
