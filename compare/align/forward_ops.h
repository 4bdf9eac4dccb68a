/* SPDX-License-Identifier: MIT
 *
 * forward_ops: represents a dump as forward operators, the values between them, and
 * modules.
 */
#ifndef COMPARE_ALIGN_FORWARD_OPS_H
#define COMPARE_ALIGN_FORWARD_OPS_H

#include "compare/align/align.h"
#include "compare/align/likeness.h"
#include "probe/base/arena.h"

struct align__tensor {
    uint32_t value, dims, row;
};

struct align__op {
    uint32_t node, parent, api;
    uint32_t first; /* first of its tensors: inputs, parameters, outputs */
    uint32_t twin;  /* the recomputation of this call, or ALIGN__NONE */
    uint32_t back;  /* node of its backward, or ALIGN__NONE */
    uint16_t family, nin, nparam, nout;
    bool last;   /* the last operator directly in its module */
    bool passes; /* the output is the unchanged input */
};

struct align__module {
    uint32_t node; /* node of the dump; ALIGN__NONE: only construct.json has it */
    uint32_t parent;
    uint32_t lo, hi;       /* first and last operator inside; lo > hi: none */
    uint32_t direct;       /* last operator directly inside, or ALIGN__NONE */
    uint32_t place;        /* number of operators before its record */
    uint32_t params, outs; /* first tensor of each kind */
    uint32_t twin;         /* the recomputation of this call, or ALIGN__NONE */
    uint32_t back;         /* node of its backward, or ALIGN__NONE */
    uint16_t nparam, nout;
    bool again;              /* the module call is itself a recomputation */
    struct ms_str name;      /* full name */
    struct ms_str path, cls; /* last part of the name; class name */
};

struct align__side {
    const struct probe_dump *dump;
    MS_VEC(struct align__op) ops;
    MS_VEC(struct align__op) again; /* recomputed operators; the search ignores them */
    MS_VEC(struct align__module) modules;
    MS_VEC(struct align__tensor) tensors;
    MS_VEC(struct align__value) values;
    uint32_t *users;     /* readers of all values: from value.first_use, value.uses of them */
    bool owns;           /* the dump records which tensors are parameters */
    struct ms_map index; /* module name -> module */
    struct ms_arena *arena;
};

/* Reads one side of the alignment; adds its names and shapes to names and dims. */
enum ms_rc align__side_read(struct align__side *s, const struct cmp_align_input *in,
                            struct align__names *names, struct align__dims *dims,
                            struct ms_err *err);
/* Replaces the numbers of names and shapes in a side by those of the other side's tables, and adds
 * what these tables lack. */
enum ms_rc align__side_renumber(struct align__side *s, const struct align__names *own_names,
                                const struct align__dims *own_dims, struct align__names *names,
                                struct align__dims *dims, struct ms_err *err);
void align__side_free(struct align__side *s);
/* Describes the tensor in a row; returns false when the row holds none. */
bool align__row_value(const struct probe_dump *dump, uint32_t row, struct align__value *v,
                      struct align__dim *dim);

static inline const struct align__tensor *align__ins(const struct align__side *s,
                                                     const struct align__op *o)
{
    return s->tensors.p + o->first;
}
static inline const struct align__tensor *align__params(const struct align__side *s,
                                                        const struct align__op *o)
{
    return s->tensors.p + o->first + o->nin;
}
static inline const struct align__tensor *align__outs(const struct align__side *s,
                                                      const struct align__op *o)
{
    return s->tensors.p + o->first + o->nin + o->nparam;
}
static inline const struct align__tensor *align__module_params(const struct align__side *s,
                                                               const struct align__module *m)
{
    return s->tensors.p + m->params;
}
static inline const struct align__tensor *align__module_outs(const struct align__side *s,
                                                             const struct align__module *m)
{
    return s->tensors.p + m->outs;
}
/* Tells whether `up` is the module m or a module around m. */
bool align__inside(const struct align__side *s, uint32_t m, uint32_t up);

#endif
