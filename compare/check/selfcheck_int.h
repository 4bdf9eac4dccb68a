/* SPDX-License-Identifier: MIT
 *
 * selfcheck_int: shared by the stages of a self check.
 *
 *     selfcheck_scan     one dump ──► findings in it, facts for the others
 *     selfcheck_mirror   one dump ──► backward against forward
 *     selfcheck_ranks    facts of all ranks and steps ──► findings between them
 *     selfcheck_share    the first two of all dumps, with all processes of mpirun
 */
#ifndef COMPARE_CHECK_SELFCHECK_INT_H
#define COMPARE_CHECK_SELFCHECK_INT_H

#include "compare/check/selfcheck.h"
#include "probe/base/exchange.h"
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
    struct ms_pool *pool;
    struct ms_progress *bar; /* NULL: silent */
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

/* Checks the dumps [from, to). */
typedef enum ms_rc self__places_fn(struct self__ctx *c, uint32_t from, uint32_t to,
                                   struct ms_err *err);
/* Checks the dumps by `check`, in each process of par a part of them, and brings what all of them found to
 * process 0. `found` is whether this process could list the dumps. */
enum ms_rc self__share_places(struct self__ctx *c, struct ms_par *par, self__places_fn *check,
                              enum ms_rc found, struct ms_err *err);
/* The parts of self__share_places: the first dump of a process; what its dumps gave as a message, and back,
 * appended to what is there. */
uint32_t self__share_begin(uint32_t places, unsigned process, unsigned processes);
void self__share_put(struct ms_buf *b, const struct self__ctx *c);
enum ms_rc self__share_take(struct self__ctx *c, struct ms_taker from, struct ms_err *err);

#endif
