/* SPDX-License-Identifier: MIT
 *
 * forward_ops: reads a dump as forward operators, the values between them, and
 * modules.
 *
 * A value is identified by its statistics: tensors of one run with the same size and
 * bit-equal statistics are one value, which gives the data flow. Where statistics do
 * not identify a value (NaN, zeros, constants, no statistics), a tensor that is read
 * is taken for the last one written with the same description.
 */
#include "compare/align/forward_ops.h"
#include "compare/align/recomputed.h"
#include "probe/base/assert.h"

#include <math.h>

enum { UP_MAX = 64, SHAPE_MAX = 32, TENSORS_MAX = 4096 };

struct reader {
    struct align__side *s;
    struct align__names *names;
    struct align__dims *dims;
    const struct probe_tree *tree;
    uint32_t *slots, mask; /* hash table of values by their description */
    MS_VEC(struct align__tensor) ins, outs;
    MS_VEC(uint32_t) tree_module; /* by node of the tree: the module, or ALIGN__NONE */
    struct ms_buf text;
    uint32_t *in_tree; /* by forward node: its node in the tree, or MS_MAP_NONE */
    uint32_t *back;    /* by forward node: its backward node, or MS_MAP_NONE */
    bool *again;       /* by node: true for a recomputation */
};

/* ---- values -------------------------------------------------------------- */

static uint64_t hash_value(const struct align__value *v)
{
    uint64_t words[7];
    memcpy(words, v->stat, sizeof v->stat);
    words[4] = v->n;
    words[5] = v->digest;
    words[6] = v->cls;
    return ms_str_hash((struct ms_str){(const char *)words, sizeof words});
}

static bool same_value(const struct align__value *a, const struct align__value *b)
{
    return a->n == b->n && a->cls == b->cls && a->digest == b->digest &&
           memcmp(a->stat, b->stat, sizeof a->stat) == 0;
}

static enum ms_rc grow_slots(struct reader *rd, struct ms_err *err)
{
    ms_assert(rd->slots == NULL || (rd->mask & (rd->mask + 1)) == 0);
    uint32_t size = rd->slots == NULL ? 1024 : 2 * (rd->mask + 1);
    uint32_t *slots = ms_alloc((size_t)size * sizeof *slots);
    if (slots == NULL)
        return ms_no_memory(err);
    memset(slots, 0xff, (size_t)size * sizeof *slots);
    uint32_t old = rd->slots == NULL ? 0 : rd->mask + 1;
    for (uint32_t i = 0; i < old; i++) {
        if (rd->slots[i] == ALIGN__NONE)
            continue;
        uint64_t at = hash_value(&rd->s->values.p[rd->slots[i]]);
        while (slots[at & (size - 1)] != ALIGN__NONE)
            at++;
        slots[at & (size - 1)] = rd->slots[i];
    }
    ms_free(rd->slots);
    rd->slots = slots;
    rd->mask = size - 1;
    return MS_OK;
}

/* Tells whether a value cannot be identified by its statistics: zeros, constants and values without
 * finite statistics look alike without being the same. */
static bool is_anonymous(const struct align__value *v)
{
    if (v->digest != 0)
        return false;
    return !v->known || (v->n > 1 && v->stat[ALIGN__MAX] == v->stat[ALIGN__MIN]);
}

enum role { READ, WRITTEN, OWNED }; /* OWNED: a parameter in the record of its module */

/* Finds the number of a value. A value that has not been seen, or that is written again, gets a new
 * number. */
static enum ms_rc find_value(struct reader *rd, const struct align__value *v, enum role role,
                             uint32_t *id, struct ms_err *err)
{
    if (rd->slots == NULL || rd->s->values.n >= rd->mask / 2)
        MS_TRY(grow_slots(rd, err));
    uint64_t at = hash_value(v);
    while (rd->slots[at & rd->mask] != ALIGN__NONE &&
           !same_value(&rd->s->values.p[rd->slots[at & rd->mask]], v))
        at++;
    uint32_t *slot = &rd->slots[at & rd->mask];
    bool fresh = is_anonymous(v) && role != READ;
    if (*slot != ALIGN__NONE && !fresh) {
        *id = *slot;
        return MS_OK;
    }
    struct align__value *new = ms_vec_push(&rd->s->values);
    if (new == NULL)
        return ms_no_memory(err);
    *new = *v;
    *id = (uint32_t)(rd->s->values.n - 1);
    if (!fresh || role == WRITTEN)
        *slot = *id;
    return MS_OK;
}

static uint8_t class_of(enum ms_dtype t)
{
    switch (ms_dtype_kind(t)) {
    case MS_DTK_FLOAT:
        return ALIGN__FLOAT;
    case MS_DTK_INT:
    case MS_DTK_UINT:
        return ALIGN__INT;
    case MS_DTK_BOOL:
        return ALIGN__BOOL;
    default:
        return ALIGN__OTHER;
    }
}

static void set_statistics(struct align__value *v, const struct probe_leaf *leaf)
{
    v->known = true;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        bool there = leaf->stat[i].kind >= PROBE_NUM_BOOL && leaf->stat[i].kind <= PROBE_NUM_FLOAT;
        bool needed = i <= PROBE_STAT_MIN || v->cls == ALIGN__FLOAT;
        v->stat[i] = there ? leaf->stat[i].v : 0;
        v->known &= isfinite(v->stat[i]) && (there || !needed);
    }
    if (leaf->md5.n != 0 && leaf->stat[0].kind == PROBE_NUM_ABSENT) {
        v->digest = ms_str_hash(leaf->md5) | 1;
        v->known = true;
    }
    if (!v->known)
        return;
    double peak = fmax(fabs(v->stat[ALIGN__MAX]), fabs(v->stat[ALIGN__MIN]));
    v->ln_norm = v->stat[ALIGN__NORM] > 0 ? (float)log(v->stat[ALIGN__NORM]) : 0;
    v->ln_peak = peak > 0 ? (float)log(peak) : 0;
}

bool align__row_value(const struct probe_dump *dump, uint32_t row, struct align__value *v,
                      struct align__dim *dim)
{
    struct probe_leaf leaf;
    uint64_t d[SHAPE_MAX];
    unsigned nd;
    ms_assert(row < dump->rows.n);
    probe_row_leaf(dump, &dump->rows.p[row], &leaf);
    if (leaf.kind != PROBE_LEAF_TENSOR || !probe_leaf_shape(&leaf, d, SHAPE_MAX, &nd))
        return false;
    *dim = align__dim_of(d, nd);
    *v = (struct align__value){
        .n = dim->n, .cls = class_of(leaf.dtype), .producer = ALIGN__NONE, .module = ALIGN__NONE};
    set_statistics(v, &leaf);
    return true;
}

/* Reads the tensor of a row; *is_tensor is false when the row holds none. */
static enum ms_rc read_tensor(struct reader *rd, uint32_t row, enum role role,
                              struct align__tensor *t, bool *is_tensor, struct ms_err *err)
{
    ms_assert(row < rd->s->dump->rows.n);
    struct align__value v;
    struct align__dim dim;
    *is_tensor = align__row_value(rd->s->dump, row, &v, &dim);
    if (!*is_tensor)
        return MS_OK;
    MS_TRY(align__dims_put(rd->dims, &dim, &t->dims, err));
    t->row = row;
    return find_value(rd, &v, role, &t->value, err);
}

static enum ms_rc push_tensors(struct align__side *s, const struct align__tensor *t, size_t n,
                               struct ms_err *err)
{
    if (!ms_vec_reserve(&s->tensors, s->tensors.n + n))
        return ms_no_memory(err);
    if (n != 0)
        memcpy(s->tensors.p + s->tensors.n, t, n * sizeof *t);
    s->tensors.n += n;
    return MS_OK;
}

/* Appends the tensors of the given sections of a node's rows to a list. */
static enum ms_rc collect_tensors(struct reader *rd, uint32_t node, unsigned sections,
                                  enum role role, bool outs, struct ms_err *err)
{
    ms_assert(node < rd->s->dump->nodes.n);
    const struct probe_node *nd = &rd->s->dump->nodes.p[node];
    for (uint32_t i = nd->first_row; i < nd->first_row + nd->nrows; i++) {
        struct align__tensor t;
        bool is_tensor;
        if ((sections >> rd->s->dump->rows.p[i].section & 1) == 0)
            continue;
        MS_TRY(read_tensor(rd, i, role, &t, &is_tensor, err));
        if (!is_tensor || (outs ? rd->outs.n : rd->ins.n) >= TENSORS_MAX)
            continue;
        struct align__tensor *slot = outs ? ms_vec_push(&rd->outs) : ms_vec_push(&rd->ins);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = t;
    }
    return MS_OK;
}

/* ---- modules ------------------------------------------------------------- */

static enum ms_rc add_module(struct align__side *s, struct ms_str name, uint32_t *id,
                             struct ms_err *err)
{
    bool added;
    *id = ms_map_put(&s->index, name, &added);
    if (*id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct align__module *m = ms_vec_push(&s->modules);
    if (m == NULL)
        return ms_no_memory(err);
    struct ms_str path = probe_name_parse(name).path;
    *m = (struct align__module){.node = ALIGN__NONE,
                                .parent = ALIGN__NONE,
                                .lo = ALIGN__NONE,
                                .direct = ALIGN__NONE,
                                .twin = ALIGN__NONE,
                                .back = ALIGN__NONE,
                                .name = name,
                                .cls = probe_name_last(path),
                                .path = probe_name_part_back(path, 1)};
    return MS_OK;
}

static bool is_forward(const struct probe_node *n, enum probe_node_kind kind)
{
    return n->kind == kind && n->dir == PROBE_FORWARD;
}

static enum ms_rc list_modules(struct reader *rd, struct ms_err *err)
{
    const struct probe_dump *d = rd->s->dump;
    uint32_t id;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        if (!is_forward(&d->nodes.p[i], PROBE_NODE_MODULE))
            continue;
        MS_TRY(add_module(rd->s, probe_node_name(d, i), &id, err));
        rd->s->modules.p[id].node = i;
        rd->s->modules.p[id].again = rd->again[i];
    }
    for (uint32_t i = 0; rd->tree != NULL && i < rd->tree->nodes.n; i++) {
        struct probe_name name = probe_name_parse(probe_tree_name(rd->tree, i));
        uint32_t *slot = ms_vec_push(&rd->tree_module);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = ALIGN__NONE;
        if (name.kind == PROBE_NODE_MODULE && name.dir == PROBE_FORWARD)
            MS_TRY(add_module(rd->s, probe_tree_name(rd->tree, i), slot, err));
    }
    for (uint32_t i = 0; i < rd->tree_module.n; i++) {
        uint32_t parent = rd->tree->nodes.p[i].parent;
        if (rd->tree_module.p[i] != ALIGN__NONE && parent != MS_MAP_NONE)
            rd->s->modules.p[rd->tree_module.p[i]].parent = rd->tree_module.p[parent];
    }
    return MS_OK;
}

/* Reads the parameters of all modules. Operators are read afterwards, because a parameter among
 * their inputs is not data. */
static enum ms_rc read_parameters(struct reader *rd, struct ms_err *err)
{
    struct align__side *s = rd->s;
    for (uint32_t i = 0; i < s->modules.n; i++) {
        struct align__module *m = &s->modules.p[i];
        if (m->node == ALIGN__NONE)
            continue;
        rd->ins.n = 0;
        MS_TRY(collect_tensors(rd, m->node, 1U << PROBE_SEC_PARAMETERS, OWNED, false, err));
        m->params = (uint32_t)s->tensors.n;
        m->nparam = (uint16_t)rd->ins.n;
        s->owns |= m->nparam != 0;
        MS_TRY(push_tensors(s, rd->ins.p, rd->ins.n, err));
        for (size_t k = 0; k < rd->ins.n; k++) {
            uint32_t *owner = &s->values.p[rd->ins.p[k].value].module;
            *owner = *owner == ALIGN__NONE || *owner == i ? i : ALIGN__MANY;
        }
    }
    return MS_OK;
}

static enum ms_rc read_outputs(struct reader *rd, struct ms_err *err)
{
    for (uint32_t i = 0; i < rd->s->modules.n; i++) {
        struct align__module *m = &rd->s->modules.p[i];
        if (m->node == ALIGN__NONE)
            continue;
        rd->outs.n = 0;
        MS_TRY(collect_tensors(rd, m->node, 1U << PROBE_SEC_OUTPUT, READ, true, err));
        m->outs = (uint32_t)rd->s->tensors.n;
        m->nout = (uint16_t)rd->outs.n;
        MS_TRY(push_tensors(rd->s, rd->outs.p, rd->outs.n, err));
    }
    return MS_OK;
}

/* ---- ops ----------------------------------------------------------------- */

static uint32_t parent_of(const struct reader *rd, uint32_t node)
{
    uint32_t at = rd->in_tree[node];
    uint32_t up = at != MS_MAP_NONE ? rd->tree->nodes.p[at].parent : MS_MAP_NONE;
    return up != MS_MAP_NONE ? rd->tree_module.p[up] : ALIGN__NONE;
}

/* Tells whether t is a parameter of a module around it. A parameter without statistics is
 * identified by its shape. */
static bool is_parameter(const struct align__side *s, uint32_t parent, struct align__tensor *t)
{
    ms_assert(t->value < s->values.n);
    const struct align__value *v = &s->values.p[t->value];
    if (v->module != ALIGN__NONE)
        return true;
    if (parent == ALIGN__NONE || !is_anonymous(v) || v->producer != ALIGN__NONE)
        return false;
    const struct align__module *m = &s->modules.p[parent];
    const struct align__tensor *p = align__module_params(s, m);
    for (unsigned i = 0; i < m->nparam; i++) {
        if (p[i].dims == t->dims && is_anonymous(&s->values.p[p[i].value])) {
            t->value = p[i].value;
            return true;
        }
    }
    return false;
}

/* Appends the collected tensors of an operator: data, parameters, outputs. */
static enum ms_rc store_op(struct reader *rd, struct align__op *op, struct ms_err *err)
{
    struct align__side *s = rd->s;
    op->first = (uint32_t)s->tensors.n;
    for (int params = 0; params < 2; params++) {
        for (size_t i = 0; i < rd->ins.n; i++) {
            if (is_parameter(s, op->parent, &rd->ins.p[i]) != (params == 1))
                continue;
            MS_TRY(push_tensors(s, &rd->ins.p[i], 1, err));
            *(params ? &op->nparam : &op->nin) += 1;
        }
    }
    op->nout = (uint16_t)rd->outs.n;
    for (size_t i = 0; i < rd->ins.n && rd->outs.n != 0; i++)
        op->passes |= rd->ins.p[i].value == rd->outs.p[0].value;
    ms_assert(op->first + op->nin + op->nparam == s->tensors.n);
    return push_tensors(s, rd->outs.p, rd->outs.n, err);
}

/* Returns the offset of the last ".forward" in a name, or -1. */
static int64_t find_forward(struct ms_str name)
{
    const struct ms_str word = MS_STR(".forward");
    for (int64_t at = (int64_t)name.n - word.n; at >= 0; at--) {
        if (memcmp(name.p + at, word.p, word.n) == 0)
            return at;
    }
    return -1;
}

/* Finds the backward record of a forward record, or ALIGN__NONE. */
static enum ms_rc backward_of(struct reader *rd, struct ms_str forward, uint32_t *node,
                              struct ms_err *err)
{
    int64_t at = find_forward(forward);
    *node = ALIGN__NONE;
    if (at < 0)
        return MS_OK;
    ms_buf_clear(&rd->text);
    ms_buf_str(&rd->text, ms_str_sub(forward, 0, (uint32_t)at));
    ms_buf_puts(&rd->text, ".backward");
    ms_buf_str(&rd->text, ms_str_sub(forward, (uint32_t)at + 8, forward.n));
    MS_TRY(ms_buf_check(&rd->text, err));
    *node = probe_node_find(rd->s->dump, ms_buf_slice(&rd->text));
    return MS_OK;
}

static enum ms_rc look_up_nodes(struct reader *rd, struct ms_err *err)
{
    const struct probe_dump *d = rd->s->dump;
    size_t bytes = (d->nodes.n + 1) * sizeof *rd->in_tree;
    rd->in_tree = ms_alloc(bytes);
    rd->back = ms_alloc(bytes);
    if (rd->in_tree == NULL || rd->back == NULL)
        return ms_no_memory(err);
    memset(rd->in_tree, 0xff, bytes);
    memset(rd->back, 0xff, bytes);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        struct ms_str name = probe_node_name(d, i);
        if (d->nodes.p[i].dir != PROBE_FORWARD)
            continue;
        if (rd->tree != NULL)
            rd->in_tree[i] = probe_tree_find(rd->tree, name);
        MS_TRY(backward_of(rd, name, &rd->back[i], err));
    }
    return MS_OK;
}

/* Marks what a view makes of a parameter as a parameter, such as its cast to the type of
 * computation. */
static void pass_ownership(struct align__side *s, const struct align__op *op)
{
    if (!align__family_is_view(op->family) || op->nin != 0 || op->nparam != 1 || op->nout != 1)
        return;
    const struct align__value *from = &s->values.p[align__params(s, op)->value];
    struct align__value *to = &s->values.p[align__outs(s, op)->value];
    if (to->module == ALIGN__NONE)
        to->module = from->module;
}

static enum ms_rc read_op(struct reader *rd, uint32_t node, struct ms_err *err)
{
    ms_assert(node < rd->s->dump->nodes.n);
    struct align__side *s = rd->s;
    struct ms_str name = probe_node_name(s->dump, node);
    struct align__op op = {
        .node = node, .parent = parent_of(rd, node), .back = rd->back[node], .twin = ALIGN__NONE};
    MS_TRY(align__names_put(rd->names, probe_name_parse(name).path, &op.api, err));
    op.family = rd->names->family.p[op.api];
    if (rd->again[node]) {
        struct align__op *slot = ms_vec_push(&s->again);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = op;
        return MS_OK;
    }
    rd->ins.n = rd->outs.n = 0;
    MS_TRY(collect_tensors(rd, node, 1U << PROBE_SEC_INPUT_ARGS | 1U << PROBE_SEC_INPUT_KWARGS,
                           READ, false, err));
    /* A view passes on its input. An output that cannot be identified by its statistics is then no
     * new value. */
    enum role role = align__family_is_view(op.family) ? READ : WRITTEN;
    MS_TRY(collect_tensors(rd, node, 1U << PROBE_SEC_OUTPUT, role, true, err));
    MS_TRY(store_op(rd, &op, err));
    if (op.nparam != 0)
        op.family = align__family_with_weight(op.family);
    uint32_t id = (uint32_t)s->ops.n;
    for (size_t i = 0; i < rd->outs.n; i++) {
        struct align__value *v = &s->values.p[rd->outs.p[i].value];
        v->producer = v->producer == ALIGN__NONE ? id : v->producer;
    }
    pass_ownership(s, &op);
    struct align__op *slot = ms_vec_push(&s->ops);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = op;
    return MS_OK;
}

static enum ms_rc read_ops(struct reader *rd, struct ms_err *err)
{
    const struct probe_dump *d = rd->s->dump;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        if (is_forward(&d->nodes.p[i], PROBE_NODE_API))
            MS_TRY(read_op(rd, i, err));
        uint32_t m = d->nodes.p[i].kind == PROBE_NODE_MODULE
                         ? ms_map_get(&rd->s->index, probe_node_name(d, i))
                         : MS_MAP_NONE;
        if (m == MS_MAP_NONE)
            continue;
        rd->s->modules.p[m].place = (uint32_t)rd->s->ops.n;
        rd->s->modules.p[m].back = rd->back[i];
    }
    return MS_OK;
}

/* ---- data flow and recomputation ----------------------------------------- */

/* Tells whether each value lists its readers in execution order without duplicates. */
__attribute__((unused)) static bool are_users_sorted(const struct align__side *s)
{
    for (uint32_t v = 0; v < s->values.n; v++) {
        const uint32_t *list = s->users + s->values.p[v].first_use;
        for (uint32_t i = 0; i < s->values.p[v].uses; i++) {
            if (list[i] >= s->ops.n || (i != 0 && list[i - 1] >= list[i]))
                return false;
        }
    }
    return true;
}

static void span_modules(struct align__side *s)
{
    for (uint32_t i = 0; i < s->ops.n; i++) {
        uint32_t m = s->ops.p[i].parent;
        if (m != ALIGN__NONE)
            s->modules.p[m].direct = i;
        for (unsigned up = 0; m != ALIGN__NONE && up < UP_MAX; up++) {
            struct align__module *mod = &s->modules.p[m];
            mod->lo = mod->lo == ALIGN__NONE ? i : mod->lo;
            mod->hi = i;
            m = mod->parent;
        }
    }
    for (uint32_t i = 0; i < s->modules.n; i++) {
        if (s->modules.p[i].direct != ALIGN__NONE)
            s->ops.p[s->modules.p[i].direct].last = true;
    }
}

/* Lists the readers of every value in one array. */
static enum ms_rc list_users(struct align__side *s, struct ms_err *err)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < s->ops.n; i++) {
        const struct align__tensor *t = align__ins(s, &s->ops.p[i]);
        for (unsigned k = 0; k < s->ops.p[i].nin + s->ops.p[i].nparam; k++)
            s->values.p[t[k].value].first_use++;
    }
    for (uint32_t v = 0; v < s->values.n; v++) {
        uint32_t n = s->values.p[v].first_use;
        s->values.p[v].first_use = total;
        total += n;
    }
    s->users = ms_arena_alloc(s->arena, ((size_t)total + 1) * sizeof *s->users);
    if (s->users == NULL)
        return ms_arena_fail(s->arena, err);
    for (uint32_t i = 0; i < s->ops.n; i++) {
        const struct align__tensor *t = align__ins(s, &s->ops.p[i]);
        for (unsigned k = 0; k < s->ops.p[i].nin + s->ops.p[i].nparam; k++) {
            struct align__value *v = &s->values.p[t[k].value];
            uint32_t *list = s->users + v->first_use;
            if (v->uses == 0 || list[v->uses - 1] != i)
                list[v->uses++] = i;
        }
    }
    return MS_OK;
}

/* Builds in rd->text the key that a call and its recomputation share: path of the module without
 * call number, and operator. */
static struct ms_str repeat_key(struct reader *rd, uint32_t module, struct ms_str api)
{
    ms_buf_clear(&rd->text);
    if (module != ALIGN__NONE) {
        struct probe_name name = probe_name_parse(rd->s->modules.p[module].name);
        ms_buf_str(&rd->text, name.path);
    }
    ms_buf_putc(&rd->text, '|');
    ms_buf_str(&rd->text, api);
    return ms_buf_slice(&rd->text);
}

/* Queues of calls with the same key, in execution order. */
struct repeats {
    struct ms_map keys;
    MS_VEC(uint32_t) head, tail; /* by key */
    MS_VEC(uint32_t) next;       /* by call */
};

static void free_repeats(struct repeats *r)
{
    ms_map_free(&r->keys);
    ms_vec_free(&r->head);
    ms_vec_free(&r->tail);
    ms_vec_free(&r->next);
}

static enum ms_rc append_repeat(struct reader *rd, struct repeats *r, struct ms_str key,
                                struct ms_err *err)
{
    bool added;
    MS_TRY(ms_buf_check(&rd->text, err)); /* rd->text holds the key */
    uint32_t id = ms_map_put_copy(&r->keys, key, rd->s->arena, &added);
    uint32_t call = (uint32_t)r->next.n;
    uint32_t *next = ms_vec_push(&r->next);
    if (id == MS_MAP_NONE || next == NULL)
        return ms_no_memory(err);
    *next = ALIGN__NONE;
    if (!added) {
        /* The queue may be empty because take_repeat has consumed it; then this call starts the
         * queue anew. */
        if (r->head.p[id] == ALIGN__NONE)
            r->head.p[id] = call;
        else
            r->next.p[r->tail.p[id]] = call;
        r->tail.p[id] = call;
        return MS_OK;
    }
    uint32_t *head = ms_vec_push(&r->head);
    uint32_t *tail = ms_vec_push(&r->tail);
    if (head == NULL || tail == NULL)
        return ms_no_memory(err);
    *head = *tail = call;
    return MS_OK;
}

/* Removes the first call from the queue of a key and returns it, or ALIGN__NONE. */
static uint32_t take_repeat(struct repeats *r, struct ms_str key)
{
    uint32_t id = ms_map_get(&r->keys, key);
    uint32_t call = id != MS_MAP_NONE ? r->head.p[id] : ALIGN__NONE;
    if (call != ALIGN__NONE)
        r->head.p[id] = r->next.p[call];
    return call;
}

static struct ms_str api_of(const struct reader *rd, const struct align__op *op)
{
    return ms_map_key(&rd->names->apis, op->api);
}

/* Joins recomputed calls with the calls that they repeat: the n-th call of a key with the n-th
 * recomputation. */
static enum ms_rc join_repeats(struct reader *rd, struct ms_err *err)
{
    struct align__side *s = rd->s;
    struct repeats first = {.keys = {.slots = NULL}};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < s->ops.n && rc == MS_OK; i++)
        rc = append_repeat(rd, &first, repeat_key(rd, s->ops.p[i].parent, api_of(rd, &s->ops.p[i])),
                           err);
    for (uint32_t i = 0; i < s->again.n && rc == MS_OK; i++) {
        struct align__op *op = &s->again.p[i];
        uint32_t call = take_repeat(&first, repeat_key(rd, op->parent, api_of(rd, op)));
        rc = ms_buf_check(&rd->text, err);
        ms_assert(call == ALIGN__NONE || s->ops.p[call].twin == ALIGN__NONE);
        if (call != ALIGN__NONE)
            s->ops.p[call].twin = i;
    }
    free_repeats(&first);
    struct repeats mods = {.keys = {.slots = NULL}};
    for (uint32_t i = 0; i < s->modules.n && rc == MS_OK; i++) {
        /* A recomputation repeats an earlier call only; a call that repeats none joins the
         * queue. */
        struct ms_str key = repeat_key(rd, i, MS_STR(""));
        uint32_t call = s->modules.p[i].again ? take_repeat(&mods, key) : ALIGN__NONE;
        if (call != ALIGN__NONE)
            s->modules.p[call].twin = i;
        rc = append_repeat(rd, &mods, s->modules.p[i].again ? MS_STR("") : key, err);
    }
    free_repeats(&mods);
    return rc;
}

bool align__inside(const struct align__side *s, uint32_t m, uint32_t up)
{
    for (unsigned i = 0; m != ALIGN__NONE && i < UP_MAX; i++) {
        ms_assert(m < s->modules.n);
        if (m == up)
            return true;
        m = s->modules.p[m].parent;
    }
    return false;
}

static enum ms_rc read_side(struct reader *rd, const struct cmp_align_input *in, struct ms_err *err)
{
    struct align__side *s = rd->s;
    /* One more than needed: an empty list needs an address, too. */
    if (s->arena == NULL || !ms_vec_reserve(&s->tensors, 1))
        return ms_no_memory(err);
    MS_TRY(look_up_nodes(rd, err));
    MS_TRY(align__find_repeats(s->arena, in, rd->in_tree, rd->back, &rd->again, err));
    MS_TRY(list_modules(rd, err));
    MS_TRY(read_parameters(rd, err));
    MS_TRY(read_ops(rd, err));
    MS_TRY(read_outputs(rd, err));
    span_modules(s);
    MS_TRY(list_users(s, err));
    ms_assert(are_users_sorted(s));
    return s->again.n != 0 ? join_repeats(rd, err) : MS_OK;
}

enum ms_rc align__side_read(struct align__side *s, const struct cmp_align_input *in,
                            struct align__names *names, struct align__dims *dims,
                            struct ms_err *err)
{
    struct reader rd = {
        .s = s, .names = names, .dims = dims, .tree = in->tree, .text = {.max = 1 << 20}};
    s->dump = in->dump;
    s->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = read_side(&rd, in, err);
    ms_free(rd.slots);
    ms_free(rd.in_tree);
    ms_free(rd.back);
    ms_vec_free(&rd.ins);
    ms_vec_free(&rd.outs);
    ms_vec_free(&rd.tree_module);
    ms_buf_free(&rd.text);
    return rc;
}

enum ms_rc align__side_renumber(struct align__side *s, const struct align__names *own_names,
                                const struct align__dims *own_dims, struct align__names *names,
                                struct align__dims *dims, struct ms_err *err)
{
    uint32_t *name_of = ms_arena_alloc(s->arena, (own_names->family.n + 1) * sizeof *name_of);
    uint32_t *shape_of = ms_arena_alloc(s->arena, (own_dims->list.n + 1) * sizeof *shape_of);
    if (name_of == NULL || shape_of == NULL)
        return ms_arena_fail(s->arena, err);
    for (uint32_t i = 0; i < own_names->family.n; i++)
        MS_TRY(align__names_put(names, ms_map_key(&own_names->apis, i), &name_of[i], err));
    for (uint32_t i = 0; i < own_dims->list.n; i++)
        MS_TRY(align__dims_put(dims, &own_dims->list.p[i], &shape_of[i], err));
    for (uint32_t i = 0; i < s->ops.n; i++) {
        ms_assert(s->ops.p[i].api < own_names->family.n);
        s->ops.p[i].api = name_of[s->ops.p[i].api];
    }
    for (uint32_t i = 0; i < s->again.n; i++)
        s->again.p[i].api = name_of[s->again.p[i].api];
    for (uint32_t i = 0; i < s->tensors.n; i++)
        s->tensors.p[i].dims = shape_of[s->tensors.p[i].dims];
    return MS_OK;
}

void align__side_free(struct align__side *s)
{
    ms_vec_free(&s->ops);
    ms_vec_free(&s->again);
    ms_vec_free(&s->modules);
    ms_vec_free(&s->tensors);
    ms_vec_free(&s->values);
    ms_map_free(&s->index);
    ms_arena_free(s->arena);
}
