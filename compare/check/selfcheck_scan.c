/* SPDX-License-Identifier: MIT
 *
 * selfcheck_scan: checks one dump, record by record.
 *
 * A record whose outputs are not finite although its inputs are is the origin of the fault;
 * later records only pass the fault on. Negative infinity is normal in attention masks and
 * no fault of a forward output.
 */
#include "compare/check/selfcheck_int.h"

#include "probe/base/num.h"
#include "probe/overflow/overflow.h"

#include <math.h>

enum ms_rc self__find(struct self__ctx *c, const struct self_finding *f, struct ms_err *err)
{
    struct ms_arena *a = c->s->arena;
    struct self_finding *slot = ms_vec_push(&c->s->findings);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *f;
    slot->node = ms_arena_str(a, f->node);
    slot->row = ms_arena_str(a, f->row.p != NULL ? f->row : MS_STR(""));
    slot->text = ms_arena_str(a, ms_buf_slice(&c->text));
    enum ms_rc rc = ms_buf_check(&c->text, err);
    if (rc == MS_OK && (slot->node.p == NULL || slot->row.p == NULL || slot->text.p == NULL))
        rc = ms_arena_fail(a, err);
    if (rc != MS_OK)
        c->s->findings.n--;
    ms_buf_clear(&c->text);
    return rc;
}

enum ms_rc self__name(struct self__ctx *c, struct ms_str name, uint32_t *id, struct ms_err *err)
{
    *id = ms_map_put_copy(&c->names, name, c->s->arena, NULL);
    return *id != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

struct scan {
    struct self__ctx *c;
    const struct probe_dump *d;
    uint32_t place;
    /* parameters by name; first_fact has the index of the fact of the first call */
    struct ms_map seen;
    MS_VEC(uint32_t) first_fact;
    struct ms_buf name;
};

/* ---- values ---------------------------------------------------------------- */

uint64_t self__shape(const struct probe_leaf *leaf)
{
    uint64_t d[16], h = 1;
    unsigned nd;
    if (!probe_leaf_shape(leaf, d, 16, &nd))
        return 0;
    for (unsigned i = 0; i < nd; i++)
        h = ms_hash_mix(h, d[i] + 1);
    return h;
}

uint64_t self__value(const struct probe_leaf *leaf)
{
    uint64_t h = self__shape(leaf);
    if (leaf->md5.n != 0 && leaf->stat[PROBE_STAT_MAX].kind == PROBE_NUM_ABSENT)
        return ms_hash_mix(h, ms_str_hash(leaf->md5)) | 1;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct probe_num *n = &leaf->stat[i];
        double v = n->v;
        if (n->kind < PROBE_NUM_INT || n->kind > PROBE_NUM_FLOAT)
            v = 0; /* not a number, such as the mean of integers */
        else if (!isfinite(v))
            return 0;
        h = ms_hash_mix(h, ms_bits_of_f64(v));
    }
    return leaf->stat[PROBE_STAT_MAX].kind >= PROBE_NUM_INT ? h | 1 : 0;
}

/* ---- finite ------------------------------------------------------------------ */

static unsigned badness_of(const struct probe_dump *d, const struct probe_row *row, bool forward)
{
    struct probe_leaf leaf;
    probe_row_leaf(d, row, &leaf);
    return leaf.kind == PROBE_LEAF_TENSOR ? probe_leaf_fault(&leaf, forward) : 0;
}

static enum ms_rc report_bad(struct scan *s, uint32_t node, const struct probe_row *row,
                             unsigned bad, struct ms_err *err)
{
    const struct probe_place *p = self__place(s->c, s->place);
    const struct probe_node *n = &s->d->nodes.p[node];
    bool nan = (bad & PROBE_BAD_NAN) != 0;
    const char *what = nan ? "NaN" : "infinity";
    ms_buf_clear(&s->name);
    probe_row_name(s->d, row, &s->name);
    if (n->kind == PROBE_NODE_PGRAD)
        ms_buf_printf(&s->c->text, "the gradient of a parameter holds %s", what);
    else if (row->section != PROBE_SEC_OUTPUT)
        ms_buf_printf(&s->c->text, "%s goes in, and no earlier record made it", what);
    else
        ms_buf_printf(&s->c->text, "%s comes out and none went in%s", what,
                      n->dir == PROBE_BACKWARD ? ": a gradient is lost here" : "");
    struct self_finding f = {.kind = SELF_FINITE,
                             .error = true,
                             .pattern = nan ? "nan" : "inf",
                             .node = probe_node_name(s->d, node),
                             .row = ms_buf_slice(&s->name),
                             .rank = p->rank,
                             .step = p->step,
                             .order = node};
    return self__find(s->c, &f, err);
}

/* Faults in the inputs and outputs of a node, and the first faulty output row. */
struct flow {
    unsigned in, out;
    const struct probe_row *first, *first_in;
};

static struct flow flow_of(struct scan *s, uint32_t node)
{
    const struct probe_node *n = &s->d->nodes.p[node];
    struct flow f = {0};
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct probe_row *row = &s->d->rows.p[i];
        bool out = row->section == PROBE_SEC_OUTPUT || row->section == PROBE_SEC_PGRAD;
        unsigned bad = badness_of(s->d, row, n->dir == PROBE_FORWARD);
        s->c->s->scope.bad_tensors += bad != 0;
        if (out && bad != 0 && f.first == NULL)
            f.first = row;
        if (!out && bad != 0 && f.first_in == NULL)
            f.first_in = row;
        *(out ? &f.out : &f.in) |= bad;
    }
    return f;
}

/* Reports the origins of values that are not finite. A module follows the records inside it,
 * gradients follow the forward that they are computed from, and gradients of parameters come last:
 * these are reported only when no earlier record was faulty. Values that no record made, of data or a
 * parameter, are reported where the first record passes them on. */
static enum ms_rc check_finite(struct scan *s, struct ms_err *err)
{
    bool bad_before = false, bad_forward = false;
    size_t before = s->c->s->findings.n;
    struct flow passes = {0};
    uint32_t passes_at = 0;
    for (int pgrad = 0; pgrad < 2; pgrad++) {
        for (uint32_t i = 0; i < s->d->nodes.n; i++) {
            const struct probe_node *n = &s->d->nodes.p[i];
            if ((n->kind == PROBE_NODE_PGRAD) != (pgrad == 1))
                continue;
            s->c->s->scope.looked[SELF_FINITE]++;
            struct flow f = flow_of(s, i);
            bool follows =
                n->kind == PROBE_NODE_API ? n->dir == PROBE_BACKWARD && bad_forward : bad_before;
            if (f.out != 0 && f.in == 0 && !follows)
                MS_TRY(report_bad(s, i, f.first, f.out, err));
            if (f.out != 0 && f.in != 0 && passes.in == 0) {
                passes = f;
                passes_at = i;
            }
            bad_before |= f.out != 0;
            bad_forward |= f.out != 0 && n->dir == PROBE_FORWARD;
        }
    }
    bool came_in = passes.in != 0 && s->c->s->findings.n == before;
    return came_in ? report_bad(s, passes_at, passes.first_in, passes.in, err) : MS_OK;
}

/* ---- facts --------------------------------------------------------------------- */

/* Appends the name with every run of digits replaced by '#'. */
static void put_without_numbers(struct ms_buf *out, struct ms_str name)
{
    for (uint32_t i = 0; i < name.n; i++) {
        bool digit = name.p[i] >= '0' && name.p[i] <= '9';
        if (!digit)
            ms_buf_putc(out, name.p[i]);
        else if (out->n == 0 || out->p[out->n - 1] != '#')
            ms_buf_putc(out, '#');
    }
}

/* Sets key and class of a fact from the name in s->name. */
static enum ms_rc name_fact(struct scan *s, struct self__fact *f, struct ms_err *err)
{
    struct ms_buf class = {.max = 1 << 20};
    MS_TRY(ms_buf_check(&s->name, err));
    put_without_numbers(&class, ms_buf_slice(&s->name));
    enum ms_rc rc = ms_buf_check(&class, err);
    if (rc == MS_OK)
        rc = self__name(s->c, ms_buf_slice(&s->name), &f->key, err);
    if (rc == MS_OK)
        rc = self__name(s->c, ms_buf_slice(&class), &f->class, err);
    ms_buf_free(&class);
    return rc;
}

static enum ms_rc put_fact(struct scan *s, struct self__fact f, uint32_t node, struct ms_err *err)
{
    f.node = ms_arena_str(s->c->s->arena, probe_node_name(s->d, node));
    f.place = s->place;
    f.order = node;
    if (f.node.p == NULL)
        return ms_arena_fail(s->c->s->arena, err);
    struct self__fact *slot = ms_vec_push(&s->c->facts);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = f;
    return MS_OK;
}

static enum ms_rc report_changed(struct scan *s, const struct self__fact *before,
                                 const struct self__fact *now, uint32_t node, struct ms_err *err)
{
    const struct probe_place *p = self__place(s->c, s->place);
    ms_buf_printf(&s->c->text, "the parameter had another value in %.*s (norm %.6g, now %.6g)",
                  MS_STR_ARG(before->node), before->norm, now->norm);
    struct self_finding f = {.kind = SELF_UNCHANGED,
                             .error = true,
                             .pattern = "changed within a step",
                             .node = probe_node_name(s->d, node),
                             .row = ms_map_key(&s->c->names, now->key),
                             .rank = p->rank,
                             .step = p->step,
                             .order = node};
    return self__find(s->c, &f, err);
}

/* Records the parameter named in s->name; all calls of a module within a step must see the same
 * value. */
static enum ms_rc take_parameter(struct scan *s, uint32_t node, const struct probe_leaf *leaf,
                                 struct ms_err *err)
{
    struct self__fact f = {.what = SELF__PARAMETER,
                           .value = self__value(leaf),
                           .shape = self__shape(leaf),
                           .norm = leaf->stat[PROBE_STAT_NORM].v};
    bool added;
    if (f.value == 0)
        return MS_OK;
    MS_TRY(name_fact(s, &f, err));
    uint32_t id = ms_map_put(&s->seen, ms_map_key(&s->c->names, f.key), &added);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added) {
        const struct self__fact before = s->c->facts.p[s->first_fact.p[id]];
        s->c->s->scope.looked[SELF_UNCHANGED]++;
        return before.value != f.value ? report_changed(s, &before, &f, node, err) : MS_OK;
    }
    uint32_t *slot = ms_vec_push(&s->first_fact);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (uint32_t)s->c->facts.n;
    return put_fact(s, f, node, err);
}

static enum ms_rc take_parameters(struct scan *s, uint32_t node, struct ms_err *err)
{
    const struct probe_node *n = &s->d->nodes.p[node];
    struct probe_name name = probe_name_parse(probe_node_name(s->d, node));
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct probe_row *row = &s->d->rows.p[i];
        struct probe_leaf leaf;
        if (row->section != PROBE_SEC_PARAMETERS)
            continue;
        probe_row_leaf(s->d, row, &leaf);
        if (leaf.kind != PROBE_LEAF_TENSOR)
            continue;
        ms_buf_clear(&s->name);
        ms_buf_str(&s->name, name.path);
        ms_buf_putc(&s->name, '.');
        ms_buf_str(&s->name, probe_row_path(s->d, row));
        MS_TRY(take_parameter(s, node, &leaf, err));
    }
    return MS_OK;
}

/* Marks the parameter of a gradient as one that has to change. */
static enum ms_rc take_gradient(struct scan *s, uint32_t node, struct ms_err *err)
{
    const struct probe_node *n = &s->d->nodes.p[node];
    struct probe_name name = probe_name_parse(probe_node_name(s->d, node));
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct probe_row *row = &s->d->rows.p[i];
        struct probe_leaf leaf;
        struct ms_str path = probe_row_path(s->d, row);
        probe_row_leaf(s->d, row, &leaf);
        if (leaf.kind != PROBE_LEAF_TENSOR || !(leaf.stat[PROBE_STAT_NORM].v > 0))
            continue;
        ms_buf_clear(&s->name);
        ms_buf_str(&s->name, name.path);
        ms_buf_puts(&s->name, ".parameters.");
        ms_buf_str(&s->name, probe_name_part(path, 0));
        MS_TRY(ms_buf_check(&s->name, err));
        uint32_t id = ms_map_get(&s->seen, ms_buf_slice(&s->name));
        if (id != MS_MAP_NONE)
            s->c->facts.p[s->first_fact.p[id]].has_gradient = true;
    }
    return MS_OK;
}

/* ---- collectives ----------------------------------------------------------------- */

/* Tells whether every rank of the group gets the same result from the collective. */
static bool hands_out_one(struct ms_str name)
{
    static const char *const ops[] = {".all_reduce.", ".all_gather.", ".all_gather_into_tensor.",
                                      "._all_gather_base.", ".broadcast."};
    if (!ms_str_starts(name, MS_STR("Distributed.")) &&
        !ms_str_starts(name, MS_STR("MintDistributed.")) &&
        !ms_str_starts(name, MS_STR("communication.")))
        return false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (ms_str_find_str(name, ms_str_of(ops[i])) >= 0)
            return true;
    }
    return false;
}

struct collective {
    struct ms_str group;
    uint64_t value;
    double norm;
    bool later; /* asynchronous: the recorded output may be incomplete */
};

static void look_at(const struct probe_dump *d, const struct probe_row *row, struct collective *co)
{
    struct probe_leaf leaf;
    probe_row_leaf(d, row, &leaf);
    struct ms_str path = probe_row_path(d, row);
    if (leaf.kind == PROBE_LEAF_GROUP)
        co->group = leaf.value_json;
    if (ms_str_find_str(path, MS_STR("async_op")) >= 0 && ms_str_is(leaf.value_json, "true"))
        co->later = true;
    if (row->section != PROBE_SEC_OUTPUT || leaf.kind != PROBE_LEAF_TENSOR)
        return;
    uint64_t v = self__value(&leaf);
    co->value = ms_hash_mix(co->value, v);
    co->norm = leaf.stat[PROBE_STAT_NORM].v;
    co->later |= v == 0;
}

static enum ms_rc take_collective(struct scan *s, uint32_t node, struct ms_err *err)
{
    const struct probe_node *n = &s->d->nodes.p[node];
    struct collective co = {.group = MS_STR("")};
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++)
        look_at(s->d, &s->d->rows.p[i], &co);
    if (co.value == 0 || co.later)
        return MS_OK;
    struct self__fact f = {.what = SELF__OUTPUT, .value = co.value, .norm = co.norm};
    ms_buf_clear(&s->name);
    ms_buf_str(&s->name, probe_node_name(s->d, node));
    MS_TRY(name_fact(s, &f, err));
    /* The same call in another group is another collective; the class is common to all groups. */
    ms_buf_putc(&s->name, '|');
    ms_buf_str(&s->name, co.group);
    MS_TRY(ms_buf_check(&s->name, err));
    MS_TRY(self__name(s->c, ms_buf_slice(&s->name), &f.key, err));
    return put_fact(s, f, node, err);
}

static enum ms_rc take_facts(struct scan *s, struct ms_err *err)
{
    for (uint32_t i = 0; i < s->d->nodes.n; i++) {
        const struct probe_node *n = &s->d->nodes.p[i];
        if (n->kind == PROBE_NODE_MODULE && n->dir == PROBE_FORWARD)
            MS_TRY(take_parameters(s, i, err));
        else if (n->kind == PROBE_NODE_PGRAD)
            MS_TRY(take_gradient(s, i, err));
        else if (n->dir == PROBE_FORWARD && hands_out_one(probe_node_name(s->d, i)))
            MS_TRY(take_collective(s, i, err));
    }
    return MS_OK;
}

enum ms_rc self__scan(struct self__ctx *c, const struct probe_dump *d, uint32_t place,
                      struct ms_err *err)
{
    struct scan s = {.c = c, .d = d, .place = place, .name = {.max = 1 << 20}};
    for (uint32_t i = 0; i < d->rows.n; i++)
        c->s->scope.tensors += d->rows.p[i].kind == PROBE_LEAF_TENSOR;
    enum ms_rc rc = check_finite(&s, err);
    if (rc == MS_OK)
        rc = take_facts(&s, err);
    ms_map_free(&s.seen);
    ms_vec_free(&s.first_fact);
    ms_buf_free(&s.name);
    return rc;
}
