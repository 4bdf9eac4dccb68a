/* SPDX-License-Identifier: MIT
 *
 * void_values: finds values without meaning, which differ even between two equal runs.
 *
 * The gradient of a bias is the sum of the output's gradient. A softmax does not change
 * with the bias of the keys, nor a batch norm with a bias before it: their sums cancel,
 * and only the rounding of the terms is left. Two runs then have nothing in common
 * although nothing is wrong. The difference of a gradient is therefore compared with the
 * norm of the gradient that it was computed from, and not with its own norm alone.
 *
 * torch.empty returns memory that was never written. The operator that fills it, such as copy_,
 * scatter_ or an assignment, has it as an input, although its output does not depend on it. MindSpore's
 * BatchNorm has five outputs; on a CPU it leaves those unwritten that no operator reads: two in training, four
 * in inference.
 */
#include "compare/observe/void_values.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

#include <math.h>

/* Units of rounding of the terms by which their sum may differ. Cancelled gradients of BERT and
 * MobileNet have norms of 1.7 and 2.9e-7 of their terms in float32, whose unit is 1.2e-7. */
static const double units = 4, units_low = 4;
static const double unit_single = 0x1p-23;
/* Terms that differ by less than this pass their difference on: the gradient behind a softmax of
 * additive attention differs by 1.2e-5 between float32 and float64, its sum by all of itself. */
static const double slight = 1e-3;

struct terms {
    double norm, unit, count;
    double e; /* the difference that they have already */
};

struct owners {
    struct ms_map names; /* names of modules */
    MS_VEC(struct terms) list;
};

static struct terms terms_of(const struct observe__part *p, const struct observe__node *n)
{
    struct terms t = {0, 0, 0, 0};
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool differ;
        if ((l->flags & OBSERVE__REAL) == 0)
            continue;
        if ((l->flags & OBSERVE__IS_OUT) == 0)
            t.norm = fmax(t.norm, l->norm), t.count = fmax(t.count, l->count),
            t.e = fmax(t.e, l->e);
        t.unit = fmax(t.unit, observe__roundoff(l, &differ));
    }
    return t;
}

/* Returns the error of sums whose result has `count` elements: rounding, or the difference that the
 * terms have already. Errors of terms that share a mean, as after a batch norm, add up. */
static double rounding_of(struct terms t, double count)
{
    double summed = sqrt(t.count / fmax(count, 1));
    double own = t.unit > 0 ? units_low * t.unit : fmax(units, summed) * unit_single;
    return t.norm * fmax(own, t.e < slight ? t.e * fmax(summed, 1) : 0);
}

static void settle_node(struct observe__part *p, const struct observe__node *n, struct terms t)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        struct observe__leaf *l = &p->leaves.p[i];
        bool out = (l->flags & OBSERVE__IS_OUT) || n->kind == PROBE_NODE_PGRAD;
        bool real = (l->flags & OBSERVE__REAL) && (l->flags & OBSERVE__FLAGGED) == 0;
        if (!out || !real || l->e <= (float)observe__rule.exact ||
            !((double)l->e * l->norm <= rounding_of(t, l->count)))
            continue;
        l->e = l->en = 0;
        l->scale = NAN;
        l->flags &= (uint16_t) ~(OBSERVE__OPPOSITE | OBSERVE__CLIPPED | OBSERVE__SHIFTED);
    }
}

/* Returns the name of a module's node up to its direction: all nodes of the module share it. */
static struct ms_str owner_of(struct ms_str name, struct ms_str direction)
{
    int64_t at = ms_str_find_str(name, direction);
    return ms_str_sub(name, 0, at > 0 ? (uint32_t)at : 0);
}

static enum ms_rc keep_owner(struct owners *o, struct ms_str name, struct terms t,
                             struct ms_err *err)
{
    bool added;
    uint32_t id = ms_map_put(&o->names, owner_of(name, MS_STR(".backward")), &added);
    struct terms *slot = id == MS_MAP_NONE ? NULL : added ? ms_vec_push(&o->list) : &o->list.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    if (!added) { /* the gradient is the sum over all calls */
        t.norm = hypot(t.norm, slot->norm);
        t.count += slot->count;
        t.e = fmax(t.e, slot->e);
        t.unit = fmax(t.unit, slot->unit);
    }
    *slot = t;
    return MS_OK;
}

static bool is_paired(const struct observe__node *n)
{
    return n->id[0] != OBSERVE__NONE && n->id[1] != OBSERVE__NONE;
}

/* Lists the terms of all modules first, because the record of a module's parameter gradients may
 * precede that of its backward. */
static enum ms_rc list_owners(const struct observe__part *p, struct owners *o, struct ms_err *err)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        if (is_paired(n) && observe__is_backward(n) && n->kind == PROBE_NODE_MODULE)
            MS_TRY(keep_owner(o, observe__name(p, 1, n->id[1]), terms_of(p, n), err));
    }
    return MS_OK;
}

/* Returns the terms of a module whose backward is not recorded, as behind reentrant checkpointing:
 * the gradient of its weight has the size of the gradient that its bias sums up. */
static struct terms own_terms(const struct observe__part *p, const struct observe__node *n)
{
    struct terms t = {0, 0, 0, 0};
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool differ;
        t.norm = fmax(t.norm, l->norm);
        t.unit = fmax(t.unit, observe__roundoff(l, &differ));
    }
    return t;
}

/* Returns the largest norm of the gradients of parameters. */
static double largest_gradient(const struct observe__part *p)
{
    double largest = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        if (p->nodes.p[i].kind == PROBE_NODE_PGRAD)
            largest = fmax(largest, own_terms(p, &p->nodes.p[i]).norm);
    }
    return largest;
}

/* Tells whether the gradients of a module are so small on both sides that they are rounding: between two
 * frameworks, the terms that cancel are often recorded on one side alone. The weight that a softmax over all
 * does not see has 2e-8 of the largest norm. */
static bool is_rounding(const struct observe__part *p, const struct observe__node *n,
                        double largest)
{
    return p->frameworks && own_terms(p, n).norm < units * unit_single * largest;
}

static void settle_nodes(struct observe__part *p, const struct owners *o)
{
    const double largest = largest_gradient(p);
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        if (!is_paired(n))
            continue;
        if (observe__is_backward(n))
            settle_node(p, n, terms_of(p, n));
        if (n->kind != PROBE_NODE_PGRAD)
            continue;
        struct ms_str name = observe__name(p, 1, n->id[1]);
        uint32_t id = ms_map_get(&o->names, owner_of(name, MS_STR(".parameters_grad")));
        ms_assert(id == MS_MAP_NONE || id < o->list.n);
        settle_node(p, n, id != MS_MAP_NONE ? o->list.p[id] : own_terms(p, n));
        if (is_rounding(p, n, largest))
            settle_node(p, n, (struct terms){.norm = largest});
    }
}

/* ---- memory that was never written ---------------------------------------- */

/* Returns the only input that differs, if it comes from outside the dump; else OBSERVE__NONE. */
static uint32_t lone_difference(const struct observe__part *p, const struct observe__node *n)
{
    uint32_t lone = OBSERVE__NONE;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) || (l->e == 0 && !(l->flags & OBSERVE__FLAGGED)))
            continue;
        if (lone != OBSERVE__NONE || !(l->flags & OBSERVE__ROOT) || (l->flags & OBSERVE__IS_PARAM))
            return OBSERVE__NONE;
        lone = i;
    }
    return lone;
}

static bool do_outputs_agree(const struct observe__part *p, const struct observe__node *n)
{
    bool any = false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0)
            continue;
        if ((l->flags & OBSERVE__FLAGGED) || l->e != 0)
            return false;
        any |= (l->flags & OBSERVE__MEASURED) != 0;
    }
    return any;
}

/* Tells whether a node returns nothing and its first input alone differs: an assignment that
 * overwrites this input, as of the rows of torch.empty that experts fill. */
static bool is_overwritten(const struct observe__part *p, const struct observe__node *n,
                           uint32_t lone)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) && (l->flags & OBSERVE__MEASURED))
            return false;
    }
    return lone == n->leaf;
}

static void settle_memory(struct observe__part *p)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->dir != PROBE_FORWARD || n->kind != PROBE_NODE_API || !is_paired(n))
            continue;
        uint32_t lone = lone_difference(p, n);
        if (lone == OBSERVE__NONE || (!do_outputs_agree(p, n) && !is_overwritten(p, n, lone)))
            continue;
        struct observe__leaf *l = &p->leaves.p[lone];
        l->e = l->en = 0;
        l->flags &= (uint16_t)~OBSERVE__FLAGGED;
    }
}

/* Tells whether a later node reads the value of an output on either side. */
static bool is_output_read(const struct observe__part *p, uint32_t node,
                           const struct observe__leaf *out)
{
    for (size_t i = node + 1; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            bool reads = (l->flags & OBSERVE__IS_OUT) == 0 && l->count == out->count &&
                         (l->maker[0] == node || l->maker[1] == node);
            if (reads && l->e == out->e && l->norm == out->norm)
                return true;
        }
    }
    return false;
}

/* Forgets outputs of MindSpore's batch norms that nothing reads, but for the first. */
static void settle_unwritten(struct observe__part *p)
{
    for (uint32_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        bool is_apt = n->dir == PROBE_FORWARD && n->kind == PROBE_NODE_API && is_paired(n) &&
                      ms_str_is(probe_name_last(p->ops.p[n->op].name), "BatchNorm");
        bool is_first = true;
        for (uint32_t k = n->leaf; is_apt && k < n->leaf + n->nleaf; k++) {
            struct observe__leaf *l = &p->leaves.p[k];
            if ((l->flags & OBSERVE__IS_OUT) == 0)
                continue;
            if (!is_first && !is_output_read(p, i, l)) {
                l->e = l->en = 0;
                l->scale = NAN;
                l->flags &= (uint16_t) ~(OBSERVE__FLAGGED | OBSERVE__OPPOSITE | OBSERVE__CLIPPED |
                                         OBSERVE__SHIFTED);
            }
            is_first = false;
        }
    }
}

enum ms_rc observe__settle_voids(struct observe__part *p, struct ms_err *err)
{
    struct owners o = {0};
    if (p->mode == PROBE_MODE_MD5)
        return MS_OK;
    enum ms_rc rc = list_owners(p, &o, err);
    if (rc == MS_OK) {
        settle_nodes(p, &o);
        settle_memory(p);
        settle_unwritten(p);
    }
    ms_map_free(&o.names);
    ms_vec_free(&o.list);
    return rc;
}
