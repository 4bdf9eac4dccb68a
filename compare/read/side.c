/* SPDX-License-Identifier: MIT
 *
 * side: one dump as the official tables list it.
 *
 * Operators keep the order of the file; their rows are inputs, parameters, outputs
 * and parameter gradients. Calls of backward operators are numbered again in file
 * order, because recomputation changes the order of backward. Parameter gradients are
 * numbered again, because their own number counts up over the steps of a run.
 */
#include "compare/read/side.h"
#include "compare/read/rules.h"
#include "probe/base/assert.h"
#include "probe/base/num.h"

/* Splits a name into the operator, without direction, and the call number. */
static bool split_name(struct ms_str name, struct ms_str *base, struct ms_str *call)
{
    *base = probe_name_cut(name, 2);
    return base->n != 0 && probe_name_find_call(name, call);
}

/* Tells whether one of the last two parts of a name is a direction. The official tool does not
 * require a call number beside it. */
static bool has_direction(struct ms_str name)
{
    for (int i = 0; i < 2; i++) {
        int64_t dot = ms_str_rfind(name, '.');
        struct ms_str part = ms_str_sub(name, (uint32_t)(dot + 1), name.n);
        name = ms_str_sub(name, 0, dot > 0 ? (uint32_t)dot : 0);
        if (ms_str_is(part, "forward") || ms_str_is(part, "backward"))
            return i == 1 ? name.n != 0 : ms_str_find(name, '.') > 0;
    }
    return false;
}

static bool is_listed(const struct cmp__side *s, const struct cmp_conf *conf,
                      const struct probe_node *node)
{
    return s->is_debug || conf->rules->lists_all_records || node->dir != PROBE_DIR_NONE ||
           node->kind == PROBE_NODE_PGRAD ||
           (conf->rules->lists_named_directions &&
            has_direction(probe_node_name(s->dump, (uint32_t)(node - s->dump->nodes.p))));
}

/* Place of a section in the table: inputs and other values, parameters, outputs, gradients. */
static unsigned place_of(unsigned section)
{
    switch (section) {
    case PROBE_SEC_PARAMETERS:
        return 1;
    case PROBE_SEC_OUTPUT:
        return 2;
    case PROBE_SEC_PGRAD:
        return 3;
    default:
        return 0;
    }
}

static void order_rows(struct cmp__side *s, const struct probe_node *node)
{
    for (unsigned place = 0; place < 4; place++) {
        for (uint32_t i = node->first_row; i < node->first_row + node->nrows; i++) {
            if (place_of(s->dump->rows.p[i].section) == place)
                s->order.p[s->order.n++] = i;
        }
    }
}

/* Numbers the operator among those of its base name. Gradients of a module are numbered apart from
 * its calls. */
static enum ms_rc count_call(struct ms_map *bases, uint32_t *seen, struct ms_str name, bool pgrad,
                             int32_t *call, struct ms_err *err)
{
    struct ms_str base, digits;
    if (!split_name(name, &base, &digits))
        return MS_OK;
    if (pgrad)
        base = ms_str_sub(name, 0, (uint32_t)(digits.p - name.p));
    uint32_t id = ms_map_put(bases, base, NULL);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    *call = (int32_t)seen[id]++;
    return MS_OK;
}

static bool is_recounted(const struct probe_node *node, const struct cmp_conf *conf)
{
    if (node->kind == PROBE_NODE_PGRAD)
        return conf->rules->counts_gradients;
    return node->dir == PROBE_BACKWARD;
}

static enum ms_rc list_ops(struct cmp__side *s, const struct cmp_conf *conf, struct ms_map *bases,
                           uint32_t *seen, struct ms_err *err)
{
    const struct probe_dump *d = s->dump;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        const struct probe_node *node = &d->nodes.p[i];
        if (!is_listed(s, conf, node))
            continue;
        struct cmp__op op = {
            .node = i, .first = (uint32_t)s->order.n, .n = node->nrows, .call = -1};
        if (!s->is_debug && conf->rules->counts_calls && is_recounted(node, conf))
            MS_TRY(count_call(bases, seen, probe_node_name(d, i), node->kind == PROBE_NODE_PGRAD,
                              &op.call, err));
        if (op.n == 0) /* an operator without rows is counted but not listed */
            continue;
        order_rows(s, node);
        for (uint32_t k = 0; k < op.n; k++)
            s->op_of.p[s->op_of.n++] = (uint32_t)s->ops.n;
        s->ops.p[s->ops.n++] = op;
    }
    return MS_OK;
}

enum ms_rc cmp__side_of(struct cmp__side *s, const struct cmp_conf *conf, struct probe_dump *dump,
                        struct ms_err *err)
{
    struct ms_map bases = {0};
    *s = (struct cmp__side){.dump = dump};
    size_t nodes = s->dump->nodes.n;
    s->is_debug = ms_str_is(s->dump->level, "debug");
    uint32_t *seen = ms_calloc(nodes + 1, sizeof *seen);
    enum ms_rc rc = MS_OK;
    if (seen == NULL || !ms_vec_reserve(&s->order, s->dump->rows.n + 1) ||
        !ms_vec_reserve(&s->op_of, s->dump->rows.n + 1) || !ms_vec_reserve(&s->ops, nodes + 1))
        rc = ms_no_memory(err);
    if (rc == MS_OK)
        rc = list_ops(s, conf, &bases, seen, err);
    ms_free(seen);
    ms_map_free(&bases);
    if (rc != MS_OK)
        cmp__side_free(s);
    return rc;
}

enum ms_rc cmp__side_init(struct cmp__side *s, const struct cmp_conf *conf, const char *path,
                          struct ms_pool *pool, struct ms_err *err)
{
    struct probe_dump *dump;
    *s = (struct cmp__side){0};
    MS_TRY(probe_dump_open(&dump, path, PROBE_OPEN_TOLERANT, pool, err));
    return cmp__side_of(s, conf, dump, err);
}

void cmp__side_free(struct cmp__side *s)
{
    ms_vec_free(&s->order);
    ms_vec_free(&s->op_of);
    ms_vec_free(&s->ops);
    probe_dump_close(s->dump);
    *s = (struct cmp__side){0};
}

/* ---- names --------------------------------------------------------------- */

/* Replaces n digits at `at` by the number `call`. */
static void replace_call(struct ms_buf *out, size_t at, size_t n, int32_t call)
{
    char text[MS_NUM_MAX];
    size_t digits = ms_num_i64(text, call), rest = at + n;
    if (digits > n)
        ms_buf_put(out, text, digits - n); /* makes room for more digits */
    if (out->bad != MS_OK)
        return;
    size_t old = digits > n ? out->n - (digits - n) : out->n;
    memmove(out->p + at + digits, out->p + rest, old - rest);
    memcpy(out->p + at, text, digits);
    out->n = old - n + digits;
}

void cmp__side_name(const struct cmp__side *s, uint32_t row, bool renumber, struct ms_buf *out)
{
    ms_assert(row < s->order.n);
    const struct cmp__op *op = &s->ops.p[s->op_of.p[row]];
    struct ms_str node = probe_node_name(s->dump, op->node);
    size_t from = out->n;
    probe_row_name(s->dump, cmp__side_row(s, row), out);
    if (!renumber || op->call < 0 || out->bad != MS_OK)
        return;
    struct ms_str whole = {out->p + from, (uint32_t)(out->n - from)}, base, digits;
    if (!ms_str_starts(whole, node)) /* the row is named after its data file */
        return;
    if (split_name(node, &base, &digits))
        replace_call(out, from + (size_t)(digits.p - node.p), digits.n, op->call);
}
