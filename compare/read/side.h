/* SPDX-License-Identifier: MIT
 *
 * side: one dump as the official tables list it.
 */
#ifndef COMPARE_READ_SIDE_H
#define COMPARE_READ_SIDE_H

#include "compare/compare.h"

struct cmp__op {
    uint32_t node;
    uint32_t first, n; /* rows of the table */
    int32_t call;      /* call number for keys; -1: as in the name */
};

struct cmp__side {
    struct probe_dump *dump;
    MS_VEC(uint32_t) order; /* row of the table -> row of the dump */
    MS_VEC(struct cmp__op) ops;
    MS_VEC(uint32_t) op_of;           /* row of the table -> operator */
    bool as_float[PROBE_STATS];       /* columns whose integers are printed as floats */
    bool alone_as_float[PROBE_STATS]; /* the same for rows without a partner */
    bool is_debug;
};

/* Opens the dump at path and lists its rows. */
enum ms_rc cmp__side_init(struct cmp__side *s, const struct cmp_conf *conf, const char *path,
                          struct ms_pool *pool, struct ms_err *err);
/* Lists the rows of an open dump. The side owns the dump from then on, also on failure. */
enum ms_rc cmp__side_of(struct cmp__side *s, const struct cmp_conf *conf, struct probe_dump *dump,
                        struct ms_err *err);
void cmp__side_free(struct cmp__side *s);
/* Tells whether the dump is of PyTorch. A dump that does not name its framework counts as
 * PyTorch. */
static inline bool cmp__is_pytorch(const struct cmp__side *s)
{
    return s->dump->framework == PROBE_FW_PYTORCH || s->dump->framework == PROBE_FW_UNKNOWN;
}
static inline const struct probe_row *cmp__side_row(const struct cmp__side *s, uint32_t row)
{
    return &s->dump->rows.p[s->order.p[row]];
}
/* Appends the name of a row to out; with renumber, its call number is counted in execution
 * order. */
void cmp__side_name(const struct cmp__side *s, uint32_t row, bool renumber, struct ms_buf *out);

#endif
