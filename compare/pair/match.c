/* SPDX-License-Identifier: MIT
 *
 * match: from pairs of nodes to pairs of rows.
 *
 * A target node with one partner gives one block of rows: all of its own, in
 * order, each with the golden row that goes with it.  Further partners (a split
 * that stands for three projections) add a block each, of the rows that have a
 * partner there.  Rows that the user pinned go where they were told to.
 */
#include "compare/match.h"

enum { SIDE_GOLDEN, SIDE_TARGET };

struct matcher {
    struct cmp *c;
    struct cmp__pins pins;
    uint32_t *listed[2]; /* by row of a dump: the row of the table, or MS_MAP_NONE */
    uint32_t *pinned;    /* by target row of the dump: its golden row; or one of these: */
    bool *taken;         /* by golden row of the dump: a pin took it */
    bool *later;         /* by target row: a second partner of its node has one for it */
    MS_VEC(struct cmp_align_row) rows;
};
#define UNPINNED (UINT32_MAX - 1)

static const struct cmp__side *side_of(const struct cmp *c, int side)
{
    return side == SIDE_TARGET ? &c->t : &c->b;
}

/* ---- aligning ---------------------------------------------------------- */

bool cmp__match_wanted(const struct cmp *c)
{
    const struct cmp_conf *conf = &c->conf;
    bool mapped = conf->data_mapping != NULL || conf->api.on || conf->cell.on || conf->layer.on;
    if (conf->consistent != CMP_CONSISTENT_NO)
        return false;
    if (cmp__strict(c) || conf->fuzzy || mapped || c->t.is_debug || c->b.is_debug)
        return false;
    if (conf->matching != CMP_MATCH_AUTO)
        return conf->matching == CMP_MATCH_ALWAYS;
    return conf->pins != NULL || cmp_align_wanted(c->t.dump, c->b.dump);
}

/* The tree beside a dump; an alignment does without one that is missing or broken. */
static enum ms_rc open_tree(struct cmp *c, int side, struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 16};
    struct ms_err why = {0};
    struct ms_str dir = ms_path_dir(side_of(c, side)->dump->path);
    ms_buf_printf(&path, "%.*s/construct.json", MS_STR_ARG(dir));
    enum ms_rc rc = ms_buf_check(&path, err);
    if (rc == MS_OK) {
        rc = probe_tree_open(&c->tree[side], ms_buf_z(&path), PROBE_TREE_TOLERANT, &why);
        c->has_tree[side] = rc == MS_OK;
        if (rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED)
            *err = why;
        else if (rc != MS_OK && rc != MS_E_NOTFOUND)
            rc = cmp__problem(c, err, "%s; aligned without it", why.msg);
        else
            rc = MS_OK;
    }
    ms_buf_free(&path);
    return rc;
}

static struct cmp_align_input input_of(const struct cmp *c, int side)
{
    return (struct cmp_align_input){side_of(c, side)->dump,
                                    c->has_tree[side] ? &c->tree[side] : NULL};
}

static enum ms_rc align(struct matcher *m, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp *c = m->c;
    MS_TRY(open_tree(c, SIDE_GOLDEN, err));
    MS_TRY(open_tree(c, SIDE_TARGET, err));
    if (c->conf.pins != NULL)
        MS_TRY(cmp__pins_read(c, &m->pins, err));
    struct cmp_align_input golden = input_of(c, SIDE_GOLDEN), target = input_of(c, SIDE_TARGET);
    return cmp_align_new(&c->al, &target, &golden, m->pins.nodes.p, m->pins.nodes.n, pool, err);
}

/* ---- rows --------------------------------------------------------------- */

static enum ms_rc list_rows(struct matcher *m, int side, struct ms_err *err)
{
    const struct cmp__side *s = side_of(m->c, side);
    size_t n = s->dump->rows.n;
    m->listed[side] = ms_calloc(n + 1, sizeof *m->listed[side]);
    if (m->listed[side] == NULL)
        return ms_no_memory(err);
    memset(m->listed[side], 0xff, (n + 1) * sizeof *m->listed[side]);
    for (uint32_t i = 0; i < s->order.n; i++)
        m->listed[side][s->order.p[i]] = i;
    return MS_OK;
}

static enum ms_rc note_pins(struct matcher *m, struct ms_err *err)
{
    size_t nt = m->c->t.dump->rows.n, nb = m->c->b.dump->rows.n;
    m->pinned = ms_calloc(nt + 1, sizeof *m->pinned);
    m->taken = ms_calloc(nb + 1, sizeof *m->taken);
    m->later = ms_calloc(nt + 1, sizeof *m->later);
    if (m->pinned == NULL || m->taken == NULL || m->later == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < nt; i++)
        m->pinned[i] = UNPINNED;
    for (size_t i = 0; i < m->pins.rows.n; i++) {
        const struct cmp_align_row *r = &m->pins.rows.p[i];
        m->pinned[r->target] = r->golden;
        if (r->golden != CMP_ALIGN_NONE)
            m->taken[r->golden] = true;
    }
    return MS_OK;
}

/* The golden row that a target row of a pair of nodes is held against. */
static uint32_t partner_of(const struct matcher *m, const struct cmp_align_row *r)
{
    if (m->pinned[r->target] != UNPINNED)
        return m->pinned[r->target];
    return r->golden != CMP_ALIGN_NONE && m->taken[r->golden] ? CMP_ALIGN_NONE : r->golden;
}

static enum ms_rc put_row(struct matcher *m, uint32_t target, uint32_t golden, struct ms_err *err)
{
    struct cmp__pair *p = ms_vec_push(&m->c->pairs);
    if (p == NULL)
        return ms_no_memory(err);
    *p =
        (struct cmp__pair){m->listed[SIDE_TARGET][target],
                           golden != CMP_ALIGN_NONE ? m->listed[SIDE_GOLDEN][golden] : MS_MAP_NONE};
    return MS_OK;
}

static enum ms_rc rows_of(struct matcher *m, const struct cmp_align_pair *pair, size_t *n,
                          struct ms_err *err)
{
    size_t most = (size_t)m->c->t.dump->nodes.p[pair->target].nrows +
                  m->c->b.dump->nodes.p[pair->golden].nrows;
    *n = 0;
    if (!ms_vec_reserve(&m->rows, most + 1))
        return ms_no_memory(err);
    *n = cmp_align_rows(m->c->al, pair, m->rows.p);
    return MS_OK;
}

static enum ms_rc note_later(struct matcher *m, const struct cmp_align_pair *pair,
                             struct ms_err *err)
{
    size_t n;
    MS_TRY(rows_of(m, pair, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct cmp_align_row *r = &m->rows.p[i];
        if (r->target != CMP_ALIGN_NONE && r->golden != CMP_ALIGN_NONE)
            m->later[r->target] = true;
    }
    return MS_OK;
}

/* The rows of one pair of nodes; the first pair of a node shows all of its rows, but for those that
 * have a partner in another. */
static enum ms_rc put_block(struct matcher *m, const struct cmp_align_pair *pair,
                            struct ms_err *err)
{
    size_t n;
    MS_TRY(rows_of(m, pair, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct cmp_align_row *r = &m->rows.p[i];
        if (r->target == CMP_ALIGN_NONE)
            continue;
        bool pinned = m->pinned[r->target] != UNPINNED, alone = r->golden == CMP_ALIGN_NONE;
        if (pair->more ? pinned || alone : !pinned && alone && m->later[r->target])
            continue;
        MS_TRY(put_row(m, r->target, partner_of(m, r), err));
    }
    return MS_OK;
}

static enum ms_rc put_op(struct matcher *m, const struct cmp__op *op, struct ms_err *err)
{
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(m->c->al, op->node, &pairs);
    for (size_t i = 1; i < n; i++)
        MS_TRY(note_later(m, &pairs[i], err));
    for (size_t i = 0; i < n; i++)
        MS_TRY(put_block(m, &pairs[i], err));
    for (uint32_t i = op->first; i < op->first + op->n && n == 0; i++) {
        struct cmp_align_row alone = {m->c->t.order.p[i], CMP_ALIGN_NONE};
        MS_TRY(put_row(m, alone.target, partner_of(m, &alone), err));
    }
    return MS_OK;
}

static enum ms_rc put_all(struct matcher *m, struct ms_err *err)
{
    MS_TRY(list_rows(m, SIDE_GOLDEN, err));
    MS_TRY(list_rows(m, SIDE_TARGET, err));
    MS_TRY(note_pins(m, err));
    for (size_t i = 0; i < m->c->t.ops.n; i++)
        MS_TRY(put_op(m, &m->c->t.ops.p[i], err));
    return MS_OK;
}

enum ms_rc cmp__match(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    struct matcher m = {.c = c};
    enum ms_rc rc = align(&m, pool, err);
    if (rc == MS_OK)
        rc = put_all(&m, err);
    cmp__pins_free(&m.pins);
    ms_free(m.listed[0]);
    ms_free(m.listed[1]);
    ms_free(m.pinned);
    ms_free(m.taken);
    ms_free(m.later);
    ms_vec_free(&m.rows);
    return rc;
}

void cmp__match_free(struct cmp *c)
{
    cmp_align_free(c->al);
    for (int side = 0; side < 2; side++) {
        if (c->has_tree[side])
            probe_tree_close(&c->tree[side]);
    }
}

/* ---- what is told about a row --------------------------------------------- */

static struct cmp_match match_by_name(const struct cmp *c, const struct cmp_row *row)
{
    if (ms_str_eq(row->t.name, row->b.name))
        return (struct cmp_match){"exact", 1};
    bool mapped = c->row_map.arena != NULL || c->conf.api.on || c->conf.cell.on || c->conf.fuzzy ||
                  c->conf.consistent != CMP_CONSISTENT_NO;
    return (struct cmp_match){mapped ? "mapped" : "renumbered", 1};
}

struct cmp_match cmp__match_of(const struct cmp *c, const struct cmp_pairing *nodes,
                               const struct cmp_row *row)
{
    const struct cmp_align_pair *pairs;
    if (!row->t.present || !row->b.present)
        return (struct cmp_match){"none", 0};
    if (c->al == NULL)
        return match_by_name(c, row);
    size_t n = cmp_align_of(c->al, nodes->target, &pairs);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == nodes->golden)
            return (struct cmp_match){cmp_align_how_names[pairs[i].how],
                                      (double)pairs[i].confidence};
    }
    return (struct cmp_match){cmp_align_how_names[CMP_ALIGN_PINNED], 1};
}
