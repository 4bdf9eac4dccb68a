/* SPDX-License-Identifier: MIT
 *
 * match: turns pairs of nodes into pairs of rows.
 *
 * A target node with one partner gives one block of rows: all of its own rows, in order,
 * each with its golden row. Each further partner (a split that replaces three projections)
 * adds a block with the rows that have a partner there. Rows that the user pinned keep the
 * partner of the pin.
 */
#include "compare/pair/match.h"

#include "compare/pair/names.h"

/* ---- pins ----------------------------------------------------------------- */

/* Pins are pairs that the user settles and the alignment has to respect:
 *     Functional.silu.3.forward: Torch.mul.7.forward        nodes
 *     Mint.split.0.forward.output.1: Torch.chunk.0.forward.output.2
 *     Functional.cast.4.forward: N/A                        has no partner
 * The grammar is that of a data mapping, so a written mapping can be edited and used as pins. A
 * pinned row with a partner also pins its node, to the node of the first such row. Unknown names
 * are reported with the most similar known name and left out. */

enum { SHOWN = 10 };

struct pin_reader {
    struct cmp_rows *c;
    const char *path;
    struct cmp__pins *out;
    struct cmp__pairs file;
    struct cmp__names names[2]; /* golden, target */
    bool *pinned;               /* by target node */
    size_t unknown;
};

static enum ms_rc report_unknown(struct pin_reader *r, bool target, struct ms_str name,
                                 struct ms_err *err)
{
    const char *file = r->path, *whose = target ? "target" : "golden side";
    char *z = ms_str_dup(name);
    if (z == NULL)
        return ms_no_memory(err);
    const char *near = cmp__names_near(&r->names[target], z);
    enum ms_rc rc;
    if (cmp__names_find(&r->names[!target], name) != NULL)
        rc =
            cmp__problem(&r->c->problems, err, "%s: '%s' is a name of the %s; write target: golden",
                         file, z, target ? "golden side" : "target");
    else if (near != NULL)
        rc = cmp__problem(&r->c->problems, err, "%s: the %s has no '%s'; did you mean '%s'?", file,
                          whose, z, near);
    else
        rc = cmp__problem(&r->c->problems, err, "%s: the %s has no '%s'", file, whose, z);
    ms_free(z);
    return rc;
}

static enum ms_rc find(struct pin_reader *r, bool target, struct ms_str name,
                       const struct cmp__named **found, struct ms_err *err)
{
    *found = cmp__names_find(&r->names[target], name);
    if (*found != NULL)
        return MS_OK;
    return r->unknown++ < SHOWN ? report_unknown(r, target, name, err) : MS_OK;
}

static enum ms_rc pin_node(struct pin_reader *r, uint32_t target, uint32_t golden,
                           struct ms_err *err)
{
    if (r->pinned[target])
        return MS_OK;
    r->pinned[target] = true;
    struct cmp_align_pin *pin = ms_vec_push(&r->out->nodes);
    if (pin == NULL)
        return ms_no_memory(err);
    pin->target = probe_node_name(r->c->t.dump, target);
    pin->golden = golden != MS_MAP_NONE ? probe_node_name(r->c->b.dump, golden) : MS_STR("");
    return MS_OK;
}

static enum ms_rc pin_row(struct pin_reader *r, uint32_t target, uint32_t golden,
                          struct ms_err *err)
{
    struct cmp_align_row *row = ms_vec_push(&r->out->rows);
    if (row == NULL)
        return ms_no_memory(err);
    *row = (struct cmp_align_row){target, golden};
    return MS_OK;
}

static enum ms_rc read_pin(struct pin_reader *r, struct ms_str target, struct ms_str golden,
                           struct ms_err *err)
{
    const struct cmp__named *t, *g = NULL;
    bool alone = golden.n == 0 || ms_str_is(golden, "N/A");
    MS_TRY(find(r, true, target, &t, err));
    if (!alone)
        MS_TRY(find(r, false, golden, &g, err));
    if (t == NULL || (g == NULL && !alone))
        return MS_OK;
    if (g != NULL && (t->row == MS_MAP_NONE) != (g->row == MS_MAP_NONE))
        return cmp__problem(&r->c->problems, err,
                            "%s: '%.*s': one is a node and the other a row of one", r->path,
                            MS_STR_ARG(target));
    if (t->row == MS_MAP_NONE)
        return pin_node(r, t->node, g != NULL ? g->node : MS_MAP_NONE, err);
    if (g != NULL)
        MS_TRY(pin_node(r, t->node, g->node, err));
    return pin_row(r, t->row, g != NULL ? g->row : CMP_ALIGN_NONE, err);
}

static enum ms_rc read_pins(struct pin_reader *r, struct ms_err *err)
{
    const struct cmp_rows *c = r->c;
    MS_TRY(cmp__names_list(&r->names[0], c->b.dump, true, err));
    MS_TRY(cmp__names_list(&r->names[1], c->t.dump, true, err));
    r->pinned = ms_calloc(c->t.dump->nodes.n + 1, sizeof *r->pinned);
    if (r->pinned == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < r->file.keys.keys.n; i++)
        MS_TRY(read_pin(r, ms_map_key(&r->file.keys, i), r->file.values.p[i], err));
    if (r->unknown > SHOWN)
        return cmp__problem(&r->c->problems, err, "%s: %zu more names that no dump has", r->path,
                            r->unknown - SHOWN);
    return MS_OK;
}

static void free_pin_reader(struct pin_reader *r)
{
    cmp__pairs_free(&r->file);
    cmp__names_free(&r->names[0]);
    cmp__names_free(&r->names[1]);
    ms_free(r->pinned);
}

enum ms_rc cmp__pins_parse(struct cmp_rows *c, const char *name, struct ms_str text,
                           struct cmp__pins *pins, struct ms_err *err)
{
    struct pin_reader r = {.c = c, .path = name, .out = pins};
    enum ms_rc rc = cmp__pairs_parse(&r.file, name, text, err);
    if (rc == MS_OK)
        rc = read_pins(&r, err);
    free_pin_reader(&r);
    return rc;
}

enum ms_rc cmp__pins_read(struct cmp_rows *c, struct cmp__pins *pins, struct ms_err *err)
{
    struct pin_reader r = {.c = c, .path = c->set->conf.pins, .out = pins};
    enum ms_rc rc = cmp__pairs_read(&r.file, r.path, err);
    if (rc == MS_OK)
        rc = read_pins(&r, err);
    free_pin_reader(&r);
    return rc;
}

void cmp__pins_free(struct cmp__pins *pins)
{
    ms_vec_free(&pins->nodes);
    ms_vec_free(&pins->rows);
}

enum { SIDE_GOLDEN, SIDE_TARGET };

struct matcher {
    struct cmp_rows *c;
    struct cmp__pins pins;
    uint32_t *listed[2]; /* by row of a dump: row of the table, or MS_MAP_NONE */
    uint32_t *pinned;    /* by target row of the dump: its golden row, CMP_ALIGN_NONE or UNPINNED */
    bool *taken;         /* by golden row of the dump: is used by a pin */
    /* by target row of the dump: has a partner in a further pair of its node */
    bool *later;
    MS_VEC(struct cmp_align_row) rows;
};
#define UNPINNED (UINT32_MAX - 1)

static const struct cmp__side *side_of(const struct cmp_rows *c, int side)
{
    return side == SIDE_TARGET ? &c->t : &c->b;
}

/* ---- aligning ---------------------------------------------------------- */

bool cmp__match_wanted(const struct cmp_rows *c)
{
    const struct cmp_conf *conf = &c->set->conf;
    bool mapped = conf->data_mapping != NULL || conf->api.on || conf->cell.on || conf->layer.on;
    if (conf->consistent != CMP_CONSISTENT_NO)
        return false;
    if (!c->set->conf.rules->aligns || conf->fuzzy || mapped || c->t.is_debug || c->b.is_debug)
        return false;
    if (conf->matching != CMP_MATCH_AUTO)
        return conf->matching == CMP_MATCH_ALWAYS;
    return conf->pins != NULL || cmp_align_wanted(c->t.dump, c->b.dump);
}

/* Opens the tree beside a dump. The alignment works without a tree that is missing or broken. */
static enum ms_rc open_tree(struct cmp_rows *c, int side, struct ms_err *err)
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
            rc = cmp__problem(&c->problems, err, "%s; aligned without it", why.msg);
        else
            rc = MS_OK;
    }
    ms_buf_free(&path);
    return rc;
}

static struct cmp_align_input input_of(const struct cmp_rows *c, int side)
{
    return (struct cmp_align_input){side_of(c, side)->dump,
                                    c->has_tree[side] ? &c->tree[side] : NULL};
}

static enum ms_rc align(struct matcher *m, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp_rows *c = m->c;
    MS_TRY(open_tree(c, SIDE_GOLDEN, err));
    MS_TRY(open_tree(c, SIDE_TARGET, err));
    if (c->set->conf.pins != NULL)
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

/* Returns the golden row that a target row is compared with: its pin, or the aligned row unless a
 * pin uses that row. */
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

/* Adds the rows of one pair of nodes. The first pair of a node lists all rows of the node except
 * those that have a partner in a further pair. */
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

enum ms_rc cmp__match(struct cmp_rows *c, struct ms_pool *pool, struct ms_err *err)
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
