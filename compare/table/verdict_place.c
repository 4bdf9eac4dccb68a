/* SPDX-License-Identifier: MIT
 *
 * verdict_place: finds the row where the official tool writes each verdict.
 *
 * The official tool judges all rows of an operator together, wherever they are in the table,
 * but writes the verdicts operator by operator from the top. If rows of inference alone are
 * between those of an operator, each row below shows the verdict of another row:
 *
 *     row       q.input  v.input  q.output       of ops q, v
 *     verdict   q.input  q.output v.input
 *
 * Rules with judges_by_place reproduce this.
 */
#include "compare/table/comparison.h"

/* ---- operators ------------------------------------------------------------ */

struct owners {
    struct ms_map names;    /* names of operators; rows with the same name are judged together */
    MS_VEC(uint32_t) of;    /* by pair: index of its operator */
    MS_VEC(uint32_t) first; /* by operator: place of its first verdict */
    uint32_t *twin;         /* by golden operator: target operator of the last pair that has both */
};

static struct ms_str op_name(const struct cmp__side *s, uint32_t op)
{
    return probe_node_name(s->dump, s->ops.p[op].node);
}

static enum ms_rc find_twins(struct owners *o, const struct cmp *c, struct ms_err *err)
{
    o->twin = ms_alloc((c->rows.b.ops.n + 1) * sizeof *o->twin);
    if (o->twin == NULL)
        return ms_no_memory(err);
    memset(o->twin, 0xff, (c->rows.b.ops.n + 1) * sizeof *o->twin);
    for (size_t i = 0; i < c->rows.pairs.n; i++) {
        const struct cmp__pair *p = &c->rows.pairs.p[i];
        if (p->t != MS_MAP_NONE && p->b != MS_MAP_NONE)
            o->twin[c->rows.b.op_of.p[p->b]] = c->rows.t.op_of.p[p->t];
    }
    return MS_OK;
}

/* Returns the operator of a pair. A row of inference alone belongs to the training operator that
 * other rows of its operator were paired with. */
static struct ms_str owner_of(const struct owners *o, const struct cmp *c,
                              const struct cmp__pair *p)
{
    if (p->t != MS_MAP_NONE)
        return op_name(&c->rows.t, c->rows.t.op_of.p[p->t]);
    uint32_t golden = c->rows.b.op_of.p[p->b];
    return o->twin[golden] != MS_MAP_NONE ? op_name(&c->rows.t, o->twin[golden])
                                          : op_name(&c->rows.b, golden);
}

static enum ms_rc list_owners(struct owners *o, const struct cmp *c, struct ms_err *err)
{
    if (!ms_vec_reserve(&o->of, c->rows.pairs.n + 1) ||
        !ms_vec_reserve(&o->first, c->rows.pairs.n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < c->rows.pairs.n; i++) {
        bool added;
        uint32_t id = ms_map_put(&o->names, owner_of(o, c, &c->rows.pairs.p[i]), &added);
        if (id == MS_MAP_NONE)
            return ms_no_memory(err);
        o->of.p[o->of.n++] = id;
        if (added)
            o->first.p[o->first.n++] = 0;
        o->first.p[id]++; /* counts rows; turned into places below */
    }
    uint32_t place = 0;
    for (size_t id = 0; id < o->first.n; id++) {
        uint32_t rows = o->first.p[id];
        o->first.p[id] = place;
        place += rows;
    }
    return MS_OK;
}

/* ---- places --------------------------------------------------------------- */

static enum ms_rc fill_places(const struct owners *o, struct cmp *c, struct ms_err *err)
{
    uint32_t *next = ms_alloc((o->first.n + 1) * sizeof *next);
    if (next == NULL || !ms_vec_reserve(&c->places, c->rows.pairs.n + 1)) {
        ms_free(next);
        return ms_no_memory(err);
    }
    for (size_t id = 0; id < o->first.n; id++)
        next[id] = o->first.p[id];
    for (uint32_t i = 0; i < c->rows.pairs.n; i++) {
        uint32_t id = o->of.p[i];
        c->places.p[next[id]++] = (struct cmp__place){i, o->first.p[id]};
    }
    c->places.n = c->rows.pairs.n;
    ms_free(next);
    return MS_OK;
}

enum ms_rc cmp__place_verdicts(struct cmp *c, struct ms_err *err)
{
    struct owners o = {0};
    enum ms_rc rc = find_twins(&o, c, err);
    if (rc == MS_OK)
        rc = list_owners(&o, c, err);
    if (rc == MS_OK)
        rc = fill_places(&o, c, err);
    ms_map_free(&o.names);
    ms_vec_free(&o.of);
    ms_vec_free(&o.first);
    ms_free(o.twin);
    return rc;
}
