/* SPDX-License-Identifier: MIT
 *
 * selfcheck_mirror: checks backward against forward.
 *
 *     forward   in ──► op ──► out          the gradient of out has the shape of out,
 *     backward  grad in ◄── op ◄── grad out   and comes from those that read it
 *
 * The readers of a value are found by equal values. A value that several operators write (a
 * recomputation, a constant) is not used. A compiled graph computes gradients in kernels of its own, which
 * mirror no forward calls, so nothing is checked there.
 */
#include "compare/check/selfcheck_int.h"

#include <stdio.h>

enum {
    MANY = 4,
    SOME = 2
};                /* calls needed to speak of a habit; SOME: when all others have a backward */
#define USUAL 0.8 /* share of calls with a backward that makes a habit */

struct written {    /* a value that forward operators write */
    uint32_t op;    /* the operator that writes the value; MS_MAP_NONE: several */
    uint32_t first; /* earliest backward of the operators that read the value */
    uint32_t reader;
    bool is_read;
};

struct habit { /* numbers of calls of one operator */
    uint32_t calls, with_backward;
};

struct mirror {
    struct self__ctx *c;
    const struct probe_dump *d;
    uint32_t place;
    uint32_t *back;     /* by node: its backward; MS_MAP_NONE: none */
    struct ms_map keys; /* values, by the text of their hash */
    MS_VEC(struct written) values;
    struct ms_map apis;
    MS_VEC(struct habit) habits;
    struct ms_buf text;
};

static bool is_op(const struct probe_node *n, enum probe_dir dir)
{
    return n->kind == PROBE_NODE_API && n->dir == (uint8_t)dir;
}

/* Returns the name with the opposite direction; the text is in m->text. */
static struct ms_str turn_name(struct mirror *m, struct ms_str name, const char *from,
                               const char *to)
{
    int64_t at = -1;
    size_t n = strlen(from);
    for (int64_t i = (int64_t)name.n - (int64_t)n; i >= 0 && at < 0; i--) {
        if (memcmp(name.p + i, from, n) == 0)
            at = i;
    }
    ms_buf_clear(&m->text);
    if (at >= 0) {
        ms_buf_str(&m->text, ms_str_sub(name, 0, (uint32_t)at));
        ms_buf_puts(&m->text, to);
        ms_buf_str(&m->text, ms_str_sub(name, (uint32_t)(at + (int64_t)n), name.n));
    }
    return ms_buf_slice(&m->text);
}

static enum ms_rc report(struct mirror *m, uint32_t node, bool error, const char *pattern,
                         struct ms_err *err)
{
    const struct probe_place *p = self__place(m->c, m->place);
    struct self_finding f = {.kind = SELF_MIRROR,
                             .error = error,
                             .pattern = pattern,
                             .node = probe_node_name(m->d, node),
                             .row = MS_STR(""),
                             .rank = p->rank,
                             .step = p->step,
                             .order = node};
    return self__find(m->c, &f, err);
}

/* ---- shapes --------------------------------------------------------------------- */

/* Lists the tensors of a node's sections in order; returns their number. */
static uint32_t list_shapes(const struct probe_dump *d, uint32_t node, unsigned sections,
                            struct probe_leaf *out, uint32_t room)
{
    const struct probe_node *n = &d->nodes.p[node];
    uint32_t found = 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows && found < room; i++) {
        if ((sections >> d->rows.p[i].section & 1) == 0)
            continue;
        probe_row_leaf(d, &d->rows.p[i], &out[found]);
        if (out[found].kind == PROBE_LEAF_TENSOR || out[found].kind == PROBE_LEAF_NULL)
            found++;
    }
    return found;
}

/* Writes a shape as "[2, 64]", however the file spells it. */
static void put_shape(struct ms_buf *out, const struct probe_leaf *leaf)
{
    uint64_t d[16];
    unsigned nd = 0;
    probe_leaf_shape(leaf, d, 16, &nd);
    ms_buf_putc(out, '[');
    for (unsigned i = 0; i < nd; i++)
        ms_buf_printf(out, "%s%llu", i != 0 ? ", " : "", (unsigned long long)d[i]);
    ms_buf_putc(out, ']');
}

/* Checks that the gradient of each output has the shape of the output. */
static enum ms_rc check_shapes(struct mirror *m, uint32_t forward, uint32_t backward,
                               struct ms_err *err)
{
    enum { ROOM = 16 };
    struct probe_leaf out[ROOM], grad[ROOM];
    uint32_t n = list_shapes(m->d, forward, 1U << PROBE_SEC_OUTPUT, out, ROOM);
    if (n != list_shapes(m->d, backward, 1U << PROBE_SEC_INPUT, grad, ROOM))
        return MS_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (out[i].kind != PROBE_LEAF_TENSOR || grad[i].kind != PROBE_LEAF_TENSOR)
            continue;
        m->c->s->scope.looked[SELF_MIRROR]++;
        if (self__shape(&out[i]) == self__shape(&grad[i]))
            continue;
        ms_buf_printf(&m->c->text, "output %u of the forward has shape ", i);
        put_shape(&m->c->text, &out[i]);
        ms_buf_puts(&m->c->text, ", its gradient ");
        put_shape(&m->c->text, &grad[i]);
        return report(m, backward, true, "gradient of another shape", err);
    }
    return MS_OK;
}

/* Returns the number of elements of a tensor; 0: not known. */
static uint64_t count_of(const struct probe_leaf *leaf)
{
    uint64_t d[16], n = 1;
    unsigned nd;
    if (leaf->kind != PROBE_LEAF_TENSOR || !probe_leaf_shape(leaf, d, 16, &nd))
        return 0;
    for (unsigned i = 0; i < nd; i++) {
        if (__builtin_mul_overflow(n, d[i], &n))
            return 0;
    }
    return n;
}

/* Checks that each gradient that a backward returns has as many elements as an input or output of
 * the forward. It has the size of an output when an input was broadcast and the gradients are not
 * summed yet. */
static enum ms_rc check_given(struct mirror *m, uint32_t forward, uint32_t backward,
                              struct ms_err *err)
{
    enum { ROOM = 64 };
    struct probe_leaf all[ROOM], given[ROOM];
    unsigned sections = ~0U;
    uint32_t n = list_shapes(m->d, forward, sections, all, ROOM);
    uint32_t ngiven = list_shapes(m->d, backward, 1U << PROBE_SEC_OUTPUT, given, ROOM);
    if (m->d->nodes.p[forward].kind != PROBE_NODE_API || n == ROOM || ngiven == ROOM)
        return MS_OK;
    for (uint32_t i = 0; i < ngiven; i++) {
        uint64_t want = count_of(&given[i]);
        bool met = want == 0;
        for (uint32_t k = 0; k < n && !met; k++)
            met = count_of(&all[k]) == want;
        m->c->s->scope.looked[SELF_MIRROR] += want != 0;
        if (met)
            continue;
        ms_buf_printf(&m->c->text, "gradient %u that it hands back has shape ", i);
        put_shape(&m->c->text, &given[i]);
        ms_buf_puts(&m->c->text, ", and no input of the forward is of that size");
        return report(m, backward, false, "gradient of another shape", err);
    }
    return MS_OK;
}

/* ---- readers of values --------------------------------------------------------------- */

static bool value_key(const struct probe_dump *d, const struct probe_row *row, char key[24])
{
    struct probe_leaf leaf;
    probe_row_leaf(d, row, &leaf);
    const struct probe_num *max = &leaf.stat[PROBE_STAT_MAX], *min = &leaf.stat[PROBE_STAT_MIN];
    bool constant = max->kind >= PROBE_NUM_INT && max->v == min->v;
    uint64_t v = leaf.kind == PROBE_LEAF_TENSOR && !constant ? self__value(&leaf) : 0;
    snprintf(key, 24, "%016llx", (unsigned long long)v);
    return v != 0;
}

static enum ms_rc note_output(struct mirror *m, uint32_t node, const struct probe_row *row,
                              struct ms_err *err)
{
    char key[24];
    bool added;
    if (!value_key(m->d, row, key))
        return MS_OK;
    uint32_t id = ms_map_put_copy(&m->keys, ms_str_of(key), m->c->s->arena, &added);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added) {
        m->values.p[id].op = m->values.p[id].op == node ? node : MS_MAP_NONE;
        return MS_OK;
    }
    struct written *w = ms_vec_push(&m->values);
    if (w == NULL)
        return ms_no_memory(err);
    *w = (struct written){.op = node, .first = MS_MAP_NONE, .reader = MS_MAP_NONE};
    return MS_OK;
}

static void note_input(struct mirror *m, uint32_t node, const struct probe_row *row)
{
    char key[24];
    uint32_t id = value_key(m->d, row, key) ? ms_map_get(&m->keys, ms_str_of(key)) : MS_MAP_NONE;
    if (id == MS_MAP_NONE || m->values.p[id].op == node || m->back[node] == MS_MAP_NONE)
        return;
    struct written *w = &m->values.p[id];
    if (w->is_read && w->first < m->back[node])
        return;
    w->first = m->back[node];
    w->reader = node;
    w->is_read = true;
}

static enum ms_rc note_ops(struct mirror *m, bool outputs, struct ms_err *err)
{
    for (uint32_t i = 0; i < m->d->nodes.n; i++) {
        const struct probe_node *n = &m->d->nodes.p[i];
        if (!is_op(n, PROBE_FORWARD))
            continue;
        for (uint32_t k = n->first_row; k < n->first_row + n->nrows; k++) {
            const struct probe_row *row = &m->d->rows.p[k];
            if ((row->section == PROBE_SEC_OUTPUT) != outputs)
                continue;
            if (outputs)
                MS_TRY(note_output(m, i, row, err));
            else
                note_input(m, i, row);
        }
    }
    return MS_OK;
}

/* ---- order -------------------------------------------------------------------------- */

/* Reports operators whose backward ran before every backward that can provide the gradient of the
 * operator's output. */
static enum ms_rc check_order(struct mirror *m, struct ms_err *err)
{
    for (size_t i = 0; i < m->values.n; i++) {
        const struct written *w = &m->values.p[i];
        if (w->op == MS_MAP_NONE || !w->is_read || m->back[w->op] == MS_MAP_NONE)
            continue;
        const struct probe_node *n = &m->d->nodes.p[w->op];
        uint32_t outs = 0;
        for (uint32_t k = n->first_row; k < n->first_row + n->nrows; k++)
            outs += m->d->rows.p[k].section == PROBE_SEC_OUTPUT;
        if (outs != 1) /* another output may have had its gradient already */
            continue;
        m->c->s->scope.looked[SELF_MIRROR]++;
        if (m->back[w->op] > w->first)
            continue;
        ms_buf_printf(&m->c->text,
                      "its backward ran before that of %.*s, which reads its output first",
                      MS_STR_ARG(probe_node_name(m->d, w->reader)));
        MS_TRY(report(m, m->back[w->op], true, "backward out of order", err));
    }
    return MS_OK;
}

/* ---- missing ------------------------------------------------------------------------- */

static enum ms_rc note_habit(struct mirror *m, uint32_t node, uint32_t *id, struct ms_err *err)
{
    bool added;
    *id = ms_map_put(&m->apis, probe_name_parse(probe_node_name(m->d, node)).path, &added);
    if (*id == MS_MAP_NONE)
        return ms_no_memory(err);
    struct habit *h = added ? ms_vec_push(&m->habits) : &m->habits.p[*id];
    if (h == NULL)
        return ms_no_memory(err);
    if (added)
        *h = (struct habit){0, 0};
    return MS_OK;
}

/* Tells whether a reader of the operator's output returns a gradient, so that the operator needs a
 * backward; *said: the output has requires_grad. */
static bool is_due(const struct mirror *m, uint32_t node, bool *needs_grad)
{
    const struct probe_node *n = &m->d->nodes.p[node];
    for (uint32_t k = n->first_row; k < n->first_row + n->nrows; k++) {
        char key[24];
        struct probe_leaf leaf;
        const struct probe_row *row = &m->d->rows.p[k];
        if (row->section != PROBE_SEC_OUTPUT || !value_key(m->d, row, key))
            continue;
        probe_row_leaf(m->d, row, &leaf);
        uint32_t id = ms_map_get(&m->keys, ms_str_of(key));
        if (id != MS_MAP_NONE && m->values.p[id].op == node && m->values.p[id].is_read &&
            leaf.requires_grad != 0) {
            *needs_grad = leaf.requires_grad == 1;
            return true;
        }
    }
    return false;
}

static enum ms_rc check_missing(struct mirror *m, struct ms_err *err)
{
    uint32_t id;
    for (uint32_t i = 0; i < m->d->nodes.n; i++) {
        if (!is_op(&m->d->nodes.p[i], PROBE_FORWARD))
            continue;
        MS_TRY(note_habit(m, i, &id, err));
        m->habits.p[id].calls++;
        m->habits.p[id].with_backward += m->back[i] != MS_MAP_NONE;
    }
    for (uint32_t i = 0; i < m->d->nodes.n; i++) {
        if (!is_op(&m->d->nodes.p[i], PROBE_FORWARD) || m->back[i] != MS_MAP_NONE)
            continue;
        MS_TRY(note_habit(m, i, &id, err));
        const struct habit *h = &m->habits.p[id];
        bool needs_grad = false, all_others = h->with_backward + 1 == h->calls;
        if (!(all_others || h->with_backward >= USUAL * h->calls) || !is_due(m, i, &needs_grad) ||
            h->calls < (needs_grad && all_others ? SOME : MANY))
            continue;
        ms_buf_printf(&m->c->text,
                      "it has no backward, though those that read its output have one and so have "
                      "%u of %u calls of the operator",
                      h->with_backward, h->calls);
        MS_TRY(report(m, i, false, "no backward", err));
    }
    return MS_OK;
}

/* Reports backward records without a forward record. */
static enum ms_rc check_orphans(struct mirror *m, struct ms_err *err)
{
    size_t forward = 0;
    for (uint32_t i = 0; i < m->d->nodes.n; i++)
        forward += m->d->nodes.p[i].dir == PROBE_FORWARD;
    for (uint32_t i = 0; i < m->d->nodes.n && forward != 0; i++) {
        const struct probe_node *n = &m->d->nodes.p[i];
        bool is_call = n->kind == PROBE_NODE_API || n->kind == PROBE_NODE_MODULE;
        if (!is_call || n->dir != PROBE_BACKWARD)
            continue;
        struct ms_str name = turn_name(m, probe_node_name(m->d, i), ".backward", ".forward");
        MS_TRY(ms_buf_check(&m->text, err));
        if (probe_node_find(m->d, name) != MS_MAP_NONE)
            continue;
        ms_buf_puts(&m->c->text, "it has no forward in the dump");
        MS_TRY(report(m, i, false, "no forward", err));
    }
    return MS_OK;
}

/* ---- all ----------------------------------------------------------------------------- */

static enum ms_rc find_backward(struct mirror *m, struct ms_err *err)
{
    for (uint32_t i = 0; i < m->d->nodes.n; i++) {
        m->back[i] = MS_MAP_NONE;
        if (m->d->nodes.p[i].dir != PROBE_FORWARD)
            continue;
        struct ms_str name = turn_name(m, probe_node_name(m->d, i), ".forward", ".backward");
        MS_TRY(ms_buf_check(&m->text, err));
        m->back[i] = name.n != 0 ? probe_node_find(m->d, name) : MS_MAP_NONE;
        if (m->back[i] == MS_MAP_NONE)
            continue;
        MS_TRY(check_shapes(m, i, m->back[i], err));
        MS_TRY(check_given(m, i, m->back[i], err));
    }
    return MS_OK;
}

static enum ms_rc check_mirror(struct mirror *m, struct ms_err *err)
{
    m->back = ms_calloc(m->d->nodes.n + 1, sizeof *m->back);
    if (m->back == NULL)
        return ms_no_memory(err);
    MS_TRY(find_backward(m, err));
    MS_TRY(note_ops(m, true, err));
    MS_TRY(note_ops(m, false, err));
    MS_TRY(check_order(m, err));
    MS_TRY(check_missing(m, err));
    return check_orphans(m, err);
}

enum ms_rc self__mirror(struct self__ctx *c, const struct probe_dump *d, uint32_t place,
                        struct ms_err *err)
{
    struct mirror m = {.c = c, .d = d, .place = place, .text = {.max = 1 << 20}};
    enum ms_rc rc = d->is_graph ? MS_OK : check_mirror(&m, err);
    ms_free(m.back);
    ms_map_free(&m.keys);
    ms_vec_free(&m.values);
    ms_map_free(&m.apis);
    ms_vec_free(&m.habits);
    ms_buf_free(&m.text);
    return rc;
}
