/* SPDX-License-Identifier: MIT
 *
 * node_weigh: computes for each node the difference of its inputs (`in`), of its outputs
 * (`out`) and the difference that noise explains (`floor`).
 */
#include "compare/source/node_weigh.h"
#include "compare/observe/leaf_distance.h"
#include "compare/source/second_pass.h"
#include "probe/base/assert.h"

#include <math.h>
#include <stdlib.h>

enum { SYSTEMIC_LEAVES = 6, CLASS_FEW = 3, PARAMETERS_FEW = 4 };

/* ---- precision ----------------------------------------------------------- */

/* The difference that the types of a node explain. */
struct grain {
    double unit;
    bool differ;
    uint8_t coarse;
};

static void widen_grain(struct grain *g, const struct source__judge *j,
                        const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        bool differ;
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if (j->unmeant[l->dtype[0]][l->dtype[1]])
            continue;
        double u = observe__roundoff(l, &differ);
        if (u > g->unit)
            g->coarse = l->dtype[observe__unit(l->dtype[1]) >= observe__unit(l->dtype[0])];
        g->unit = fmax(g->unit, u);
        g->differ |= differ;
    }
}

static struct grain grain_of(const struct source__judge *j, const struct observe__node *n)
{
    struct grain g = {0};
    widen_grain(&g, j, n);
    if (n->forward != OBSERVE__NONE)
        widen_grain(&g, j, &j->p->nodes.p[n->forward]);
    return g;
}

double source__tiny(const struct source__judge *j, double unit, bool differ)
{
    double share = differ ? 2 : j->tensor ? 0.5 : 1;
    double exact = j->p->frameworks ? observe__rule.exact_kernels : observe__rule.exact;
    return fmax(exact, share * unit);
}

/* Returns the unit of rounding that a node's inputs carry: elements differ by it although
 * statistics of single values may agree by chance. The rounding of operators that the target alone
 * has does not count. */
static double inherited_unit(const struct source__judge *j, const struct observe__node *n,
                             double own)
{
    double unit = own;
    if (n->id[0] == OBSERVE__NONE)
        return 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[1] != OBSERVE__NONE)
            unit = fmax(unit, j->p->nodes.p[l->maker[1]].unit);
    }
    if (n->forward != OBSERVE__NONE)
        unit = fmax(unit, j->p->nodes.p[n->forward].unit);
    return unit;
}

static double tiny_norm(const struct grain *g, float count)
{
    double t = 4 * g->unit / sqrt(fmax(count, 1));
    /* The rounding of a weight is the same in all elements: norms behind the first convolution of
     * MobileNet move by 0.9 units. */
    return fmax(observe__rule.exact, g->differ ? fmax(t, 0.25 * g->unit) : t);
}

/* ---- the pair of runs as a whole ----------------------------------------- */

static bool is_real_output(const struct observe__leaf *l)
{
    return (l->flags & (OBSERVE__IS_OUT | OBSERVE__REAL)) == (OBSERVE__IS_OUT | OBSERVE__REAL);
}

/* Notes the most frequent systemic pair of types. */
static void note_precision(struct source__judge *j, uint32_t count[MS_DT_MAX][MS_DT_MAX],
                           uint32_t all)
{
    struct observe__part *p = j->p;
    uint32_t most = 0;
    for (unsigned g = 0; g < MS_DT_MAX; g++) {
        for (unsigned t = 0; t < MS_DT_MAX; t++) {
            if (g == t || !j->systemic[g][t] || count[g][t] <= most)
                continue;
            most = count[g][t];
            p->other[0] = (uint8_t)g;
            p->other[1] = (uint8_t)t;
            p->other_noise = 2 * fmax(observe__unit((uint8_t)g), observe__unit((uint8_t)t));
        }
    }
    p->other_share = all != 0 ? (double)most / all : 0;
    ms_assert(p->other_share >= 0 && p->other_share <= 1);
}

/* For an operator: its outputs of the forward pass, and those with a pair of types. */
struct usage {
    uint32_t all, meant;
};

static void count_usage(const struct observe__part *p, unsigned g, unsigned t, struct usage *use)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *node = &p->nodes.p[i];
        for (uint32_t k = node->leaf; k < node->leaf + node->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            if (!is_real_output(l) || l->row[0] == OBSERVE__NONE || l->row[1] == OBSERVE__NONE ||
                node->dir == PROBE_BACKWARD)
                continue;
            use[node->op].all++;
            use[node->op].meant += l->dtype[0] == g && l->dtype[1] == t;
        }
    }
}

/* Tells whether an operator with several calls, such as linear, has this pair of types in nearly
 * all of them, or two operators in most, or all that multiply by parameters: mixed precision is chosen per
 * operator. */
static bool is_usual(const struct observe__part *p, const struct usage *use)
{
    enum { CALLS_FEW = 6, CALLS_MOST = 3 };
    bool usual = false;
    unsigned most = 0, weighed = 0, kinds = 0;
    for (size_t i = 0; i < p->ops.n; i++) {
        const struct usage *u = &use[i];
        usual |= u->meant >= CALLS_FEW && 10 * u->meant >= 9 * u->all;
        most += u->meant >= CALLS_MOST && 2 * u->meant > u->all;
        bool weighs = (p->ops.p[i].flags & (OBSERVE__WEIGHED | OBSERVE__NORMS)) == OBSERVE__WEIGHED;
        kinds += weighs && u->all != 0;
        weighed += weighs && u->all != 0 && u->meant == u->all;
    }
    return usual || most > 1 || (kinds > 1 && weighed == kinds);
}

/* Tells whether normalizations alone have a low type on one side. Mixed precision chooses it for products first, and
 * for normalizations last. */
static bool is_of_norms(const struct observe__part *p, const struct usage *use)
{
    unsigned norms = 0, others = 0;
    for (size_t i = 0; i < p->ops.n; i++) {
        norms += (p->ops.p[i].flags & OBSERVE__NORMS) != 0 && use[i].meant != 0;
        others += (p->ops.p[i].flags & (OBSERVE__NORMS | OBSERVE__CAST)) == 0 && use[i].meant != 0;
    }
    return norms != 0 && others == 0;
}

/* Tells whether a pair of types, of so many outputs among all, is a choice of the runs; notes it where it is
 * none. */
static bool is_chosen(struct source__judge *j, unsigned g, unsigned t, uint32_t count, uint32_t all)
{
    const struct observe__part *p = j->p;
    bool low = observe__unit((uint8_t)g) > 0 || observe__unit((uint8_t)t) > 0;
    if (g == t || count < SYSTEMIC_LEAVES)
        return false;
    struct usage *use = ms_calloc(p->ops.n + 1, sizeof *use);
    if (use == NULL)
        return false;
    count_usage(p, g, t, use);
    bool chosen = count >= observe__rule.systemic_share * all || is_usual(p, use);
    j->unmeant[g][t] = low && is_of_norms(p, use);
    ms_free(use);
    return chosen && !j->unmeant[g][t];
}

/* Finds pairs of types that are so frequent that they are a systemic difference of the runs, not a
 * fault. Other pairs with the same low type are then systemic, too. */
static void find_systemic(struct source__judge *j)
{
    bool differ;
    uint32_t count[MS_DT_MAX][MS_DT_MAX] = {{0}}, all = 0;
    bool low[MS_DT_MAX] = {false};
    for (size_t i = 0; i < j->p->leaves.n; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        j->low |= observe__roundoff(l, &differ) > 0;
        if (!is_real_output(l) || l->row[0] == OBSERVE__NONE)
            continue;
        count[l->dtype[0]][l->dtype[1]]++;
        all++;
    }
    for (unsigned g = 0; g < MS_DT_MAX; g++) {
        for (unsigned t = 0; t < MS_DT_MAX; t++) {
            if (!is_chosen(j, g, t, count[g][t], all))
                continue;
            j->systemic[g][t] = j->mixed = true;
            low[g] |= observe__unit((uint8_t)g) > 0 || t == MS_DT_F64;
            low[t] |= observe__unit((uint8_t)t) > 0 || g == MS_DT_F64;
        }
    }
    for (unsigned g = 0; g < MS_DT_MAX; g++) {
        for (unsigned t = 0; t < MS_DT_MAX; t++)
            j->systemic[g][t] |= low[g] || low[t];
    }
    note_precision(j, count, all);
}

uint8_t source__attrs(const struct source__judge *j, const struct observe__leaf *l)
{
    bool usual = j->systemic[l->dtype[0]][l->dtype[1]];
    return usual ? (uint8_t)(l->attrs & ~OBSERVE__DTYPE) : l->attrs;
}

struct sample {
    uint32_t value;
    float e, en;
};

static int by_value(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Computes the difference that the runs start with, from distinct parameters. */
static enum ms_rc find_root_floor(struct source__judge *j, struct ms_err *err)
{
    struct observe__part *p = j->p;
    struct sample *s = ms_alloc((p->leaves.n + 1) * sizeof *s);
    float *e = ms_alloc(2 * (p->leaves.n + 1) * sizeof *e);
    size_t n = 0, m = 0;
    p->root_floor = p->root_floor_norm = NAN;
    for (size_t i = 0; s != NULL && e != NULL && i < p->leaves.n; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        unsigned want = OBSERVE__IS_PARAM | OBSERVE__ROOT | OBSERVE__MEASURED | OBSERVE__REAL;
        if ((l->flags & want) == want)
            s[n++] = (struct sample){l->value, l->e, l->en};
    }
    if (n != 0)
        qsort(s, n, sizeof *s, by_value);
    for (size_t i = 0; i < n; i++) {
        if (i != 0 && s[i].value == s[i - 1].value)
            continue;
        p->unlike += s[i].e > OBSERVE__UNLIKE;
        e[m] = s[i].e;
        e[p->leaves.n + m++] = s[i].en;
    }
    p->parameters = (uint32_t)m;
    if (m >= PARAMETERS_FEW) {
        p->root_floor = observe__lower(e, m, 0.75);
        p->root_floor_norm = observe__lower(e + p->leaves.n, m, 0.75);
        p->other_start =
            p->root_floor > OBSERVE__UNLIKE && p->mode != PROBE_MODE_MD5 && !j->explained;
    }
    bool fine = s != NULL && e != NULL;
    ms_free(s);
    ms_free(e);
    return fine ? MS_OK : ms_no_memory(err);
}

/* ---- pass 1: in, out, floor ---------------------------------------------- */

static void widen_context(struct source__context *c, float e, float en, unsigned flagged,
                          unsigned attrs)
{
    c->e = e > c->e ? e : c->e;
    c->en = en > c->en ? en : c->en;
    c->flags |= (uint8_t)flagged;
    c->attrs |= (uint8_t)attrs;
}

/* Returns the difference of a leaf's norm. With few elements the norm may change as much as one of
 * them. */
static float norm_of(const struct observe__leaf *l)
{
    bool few = l->count < OBSERVE__NORM_COUNT && (l->flags & OBSERVE__REAL);
    return few ? l->e : l->en;
}

/* Adds a leaf to a context. A leaf without a partner gets the difference of its maker's output, or
 * else of its maker's input. */
static void add_leaf(const struct source__judge *j, const struct observe__leaf *l,
                     struct source__context *c)
{
    widen_context(c, l->e, norm_of(l), l->flags & (OBSERVE__FLAGGED | OBSERVE__OPPOSITE),
                  source__attrs(j, l));
    if ((l->flags & OBSERVE__MEASURED) || l->maker[1] == OBSERVE__NONE)
        return;
    ms_assert(l->maker[1] < j->p->nodes.n);
    const struct observe__node *from = &j->p->nodes.p[l->maker[1]];
    bool measured = (from->flags & OBSERVE__OUT_MEASURED) != 0;
    widen_context(c, measured ? from->out : from->in, measured ? from->out_norm : from->in_norm,
                  from->flags & OBSERVE__OUT_FLAGGED ? OBSERVE__FLAGGED : 0, 0);
}

static void add_leaves(const struct source__judge *j, const struct observe__node *n, bool outputs,
                       struct source__context *c)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if (((l->flags & OBSERVE__IS_OUT) != 0) == outputs)
            add_leaf(j, l, c);
    }
}

static bool is_after_all(const struct observe__node *n)
{
    return n->kind == PROBE_NODE_PGRAD || n->kind == PROBE_NODE_DEBUG;
}

/* Returns the size of the terms of a sum: the norm of the largest, which has as many elements as the sum; of a sum over
 * elements their root mean square for each of its own, so often as they are added. 0: it is no such sum. */
static float size_of_terms(unsigned op, const struct observe__leaf *term,
                           const struct observe__leaf *sum)
{
    if (op & OBSERVE__CANCELS)
        return term->count == sum->count ? term->norm : 0;
    const float each = term->norm * sqrtf(sum->count / fmaxf(term->count, 1));
    if (op & OBSERVE__SUMS)
        return each * term->count / fmaxf(sum->count, 1);
    return op & OBSERVE__MEANS ? each : 0;
}

/* Returns by how much a sum whose terms cancel widens their difference: the size of its terms by its own, which a
 * rounded value less the value itself makes as great as the digits of the rounding. 1: by nothing. */
static float cancelled(const struct source__judge *j, const struct observe__node *n)
{
    const unsigned op = j->p->ops.p[n->op].flags;
    const struct observe__leaf *leaves = j->p->leaves.p, *sum = NULL;
    float terms = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++)
        sum = leaves[i].flags & OBSERVE__IS_OUT ? &leaves[i] : sum;
    if (sum == NULL || !(sum->norm > 0) || n->dir != PROBE_FORWARD)
        return 1;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        if ((leaves[i].flags & (OBSERVE__IS_OUT | OBSERVE__MEASURED)) == OBSERVE__MEASURED)
            terms = fmaxf(terms, size_of_terms(op, &leaves[i], sum));
    }
    return fmaxf(terms / sum->norm, 1);
}

/* Widens a difference of single values; each is at least rounded in its type, or in float32. Noise of r times the
 * size of a sum makes the norm of the sum greater by r * r at most. */
static void widen_by_cancellation(struct source__context *c, float unit, float times)
{
    if (times <= 1 || !(c->e > 0))
        return;
    c->e = fmaxf(c->e, fmaxf(unit, 0x1p-24F)) * times;
    c->en = fmaxf(c->en, c->e * c->e);
}

static struct source__context context_of(const struct source__judge *j,
                                         const struct observe__node *n)
{
    struct source__context c = {0};
    add_leaves(j, n, false, &c);
    if (is_after_all(n)) {
        /* At low precision masks such as relu's select other elements; see below. */
        bool flips = j->low && !j->tensor && j->seen.e < 1;
        widen_context(&c, flips ? sqrtf(j->seen.e) : j->seen.e, j->seen.en, j->seen.flags,
                      j->seen.attrs);
    }
    const struct source__context *others = source__comm_of(j->comms, j->p, n);
    if (others != NULL)
        widen_context(&c, others->e, others->en, others->flags, others->attrs);
    if (n->forward == OBSERVE__NONE)
        return c;
    struct source__context f = {0};
    add_leaves(j, &j->p->nodes.p[n->forward], false, &f);
    add_leaves(j, &j->p->nodes.p[n->forward], true, &f);
    /* Activations that differ by e make the mask select different elements in a share e of the
     * positions. */
    bool mask = !j->tensor && (j->p->ops.p[n->op].flags & OBSERVE__SWITCH) != 0;
    widen_context(&c, mask && f.e < 1 ? sqrtf(f.e) : f.e, f.en, f.flags, f.attrs);
    return c;
}

/* Returns the divisor for the learned noise of norms: 1 for most backward nodes, because gradients
 * cancel and their norms change by more than was seen before. */
static double learned_share(const struct source__judge *j, const struct observe__node *n)
{
    bool calm = n->dir != PROBE_BACKWARD || observe__is_even(j->p, n);
    return calm ? observe__rule.norm_learned : 1;
}

static void set_outputs(const struct source__judge *j, struct observe__node *n,
                        const struct grain *g, bool turned_before)
{
    double rho = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0)
            continue;
        n->attrs_out |= source__attrs(j, l);
        if (l->flags & OBSERVE__FLAGGED)
            n->flags |= OBSERVE__OUT_FLAGGED;
        if ((l->flags & OBSERVE__OPPOSITE) && !turned_before)
            n->flags |= OBSERVE__TURNED;
        if ((l->flags & OBSERVE__MEASURED) == 0)
            continue;
        n->flags |= OBSERVE__OUT_MEASURED;
        n->out = fmaxf(n->out, l->e);
        n->out_norm = fmaxf(n->out_norm, l->en);
        n->floor = fmaxf(n->floor, l->noise);
        /* Noise of single elements changes the norm by its root mean square. */
        double past =
            fmax(fmax(n->in_norm, n->floor_norm), fmax(n->in, n->floor) / sqrt(fmax(l->count, 1)));
        past = fmax(past / learned_share(j, n), l->noise);
        rho = fmax(rho, l->en / fmax(past, tiny_norm(g, l->count)));
    }
    n->rho_norm = (float)rho;
}

static float floor_now(struct observe__floor *f, float root)
{
    float now = observe__floor_now(f);
    return f->n < SOURCE_FLOOR_FEW && root > now ? root : now;
}

/* Returns the initial noise of norms: that of single values until norms have been measured. */
static float first_norm(const struct source__judge *j)
{
    const struct observe__part *p = j->p;
    bool early = j->floor.seen < observe__rule.start_few;
    return early ? fmaxf(p->root_floor, p->root_floor_norm) : p->root_floor_norm;
}

static void weigh_node(struct source__judge *j, struct observe__node *n)
{
    struct source__context c = context_of(j, n);
    struct grain g = grain_of(j, n);
    widen_by_cancellation(&c, (float)g.unit, cancelled(j, n));
    n->in = c.e;
    n->in_norm = c.en;
    n->attrs_in = c.attrs;
    n->flags = c.flags & OBSERVE__FLAGGED ? OBSERVE__IN_FLAGGED : 0;
    n->floor_norm = floor_now(&j->floor_norm, first_norm(j));
    n->tiny = (float)source__tiny(j, g.unit, g.differ);
    bool is_series = j->p->frameworks && j->p->ops.p[n->op].flags & OBSERVE__SERIES;
    n->tiny = fmaxf(n->tiny, is_series ? (float)observe__rule.exact_series : j->series);
    n->unit = (float)inherited_unit(j, n, g.unit);
    if (!j->tensor && j->seen.e > 0)
        n->tiny = fmaxf(n->tiny, (float)observe__rule.inherited * n->unit);
    n->coarse = g.coarse;
    n->floor = fmaxf(n->tiny, floor_now(&j->floor, j->p->root_floor));
    n->young = j->floor.seen < observe__rule.start_few && isnan(j->p->root_floor);
    set_outputs(j, n, &g, (c.flags & OBSERVE__OPPOSITE) != 0);
    ms_assert(n->floor > 0 && n->out >= 0);
    if (is_series)
        j->series = fmaxf(j->series, fminf(n->out, (float)observe__rule.exact_series));
    n->rho = n->out / fmaxf(n->in, n->floor);
}

static void learn_noise(struct source__judge *j, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        add_leaf(j, l, &j->seen);
        unsigned want = OBSERVE__MEASURED | OBSERVE__REAL;
        if ((l->flags & want) != want || (l->flags & (OBSERVE__IS_OUT | OBSERVE__ROOT)) == 0)
            continue;
        observe__floor_add(&j->floor, l->e);
        observe__floor_add(&j->floor_norm, l->en);
    }
}

bool source__is_comparable(const struct source__judge *j, uint32_t node)
{
    const struct observe__node *n = &j->p->nodes.p[node];
    bool whole = j->p->batches == 0 || node >= j->after_backward || n->kind == PROBE_NODE_PGRAD;
    return whole && !n->second_pass && node <= j->p->broken;
}

bool source__is_clean(const struct source__judge *j, uint32_t node)
{
    const struct observe__node *n = &j->p->nodes.p[node];
    if (n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE)
        return true;
    return !(n->flags & OBSERVE__OUT_FLAGGED) &&
           n->out <= observe__rule.forward[j->tensor] * n->floor;
}

/* Gradients of parameters whose module has no hook of its own are recorded at the end of the step, so
 * they do not tell where backward ends. */
static void find_end_of_backward(struct source__judge *j)
{
    j->after_backward = (uint32_t)j->p->nodes.n;
    for (uint32_t i = 0; i < j->p->nodes.n; i++) {
        if (observe__is_backward(&j->p->nodes.p[i]))
            j->after_backward = i + 1;
    }
}

static void weigh_nodes(struct source__judge *j)
{
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        struct observe__node *n = &j->p->nodes.p[i];
        if (n->id[1] == OBSERVE__NONE)
            continue;
        weigh_node(j, n);
        if (source__is_comparable(j, (uint32_t)i))
            learn_noise(j, n);
    }
}

/* ---- gain of backward operators ------------------------------------------ */

static bool is_backward_api(const struct observe__node *n)
{
    return n->dir == PROBE_BACKWARD && !is_after_all(n) && (n->flags & OBSERVE__OUT_MEASURED);
}

struct gain {
    uint32_t op;
    float rho;
};

static int by_op(const void *a, const void *b)
{
    const struct gain *x = a, *y = b;
    return x->op != y->op ? (x->op > y->op) - (x->op < y->op)
                          : (x->rho > y->rho) - (x->rho < y->rho);
}

static void set_gains(struct source__judge *j, struct gain *g, size_t n, float *rho)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && g[end].op == g[i].op; end++)
            rho[end - i] = g[end].rho;
        ms_assert(g[i].op < j->p->ops.n);
        float median = observe__quantile(rho, end - i, 0.5);
        if (end - i >= CLASS_FEW)
            j->class_gain[g[i].op] = fminf(fmaxf(median, 1), 5);
    }
    for (size_t i = 0; i < n; i++)
        rho[i] = g[i].rho;
    bool low = j->low;
    double usual = fmax(5, 5 * observe__quantile(rho, n, 0.9));
    j->backward_factor =
        low ? observe__rule.backward_low[j->tensor] : observe__rule.backward[j->tensor];
    if (!low && n != 0)
        j->backward_factor = fmin(j->backward_factor, usual);
}

/* Sets for each operator the ratio that nine in ten of its forward calls stay below: in noisy runs,
 * sums that cancel show more noise than other operators. */
static void set_usual(struct source__judge *j, struct gain *g, size_t n)
{
    enum { CALLS_FEW = 8 };
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && g[end].op == g[i].op; end++)
            ;
        size_t calls = end - i;
        if (calls >= CALLS_FEW)
            j->usual[g[i].op] = g[i + (calls - 1) * 9 / 10].rho;
    }
}

static enum ms_rc find_gains(struct source__judge *j, struct ms_err *err)
{
    struct observe__part *p = j->p;
    struct gain *g = ms_alloc((p->nodes.n + 1) * sizeof *g);
    float *rho = ms_alloc((p->nodes.n + 1) * sizeof *rho);
    j->class_gain = ms_alloc((p->ops.n + 1) * sizeof *j->class_gain);
    j->usual = ms_calloc(p->ops.n + 1, sizeof *j->usual);
    bool fine = g != NULL && rho != NULL && j->class_gain != NULL && j->usual != NULL;
    size_t n = 0;
    for (size_t i = 0; fine && i < p->ops.n; i++)
        j->class_gain[i] = 1;
    for (size_t i = 0; fine && i < p->nodes.n; i++) {
        const struct observe__node *one = &p->nodes.p[i];
        if (one->dir == PROBE_FORWARD && (one->flags & OBSERVE__OUT_MEASURED))
            g[n++] = (struct gain){one->op, one->rho};
    }
    if (n != 0)
        qsort(g, n, sizeof *g, by_op);
    if (fine)
        set_usual(j, g, n);
    n = 0;
    for (size_t i = 0; fine && i < p->nodes.n; i++) {
        if (is_backward_api(&p->nodes.p[i]))
            g[n++] = (struct gain){p->nodes.p[i].op, p->nodes.p[i].rho};
    }
    if (n != 0)
        qsort(g, n, sizeof *g, by_op);
    if (fine)
        set_gains(j, g, n, rho);
    ms_free(g);
    ms_free(rho);
    return fine ? MS_OK : ms_no_memory(err);
}

enum ms_rc source__weigh_part(struct source__judge *j, struct ms_err *err)
{
    find_end_of_backward(j);
    source__mark_second_passes(j);
    find_systemic(j);
    MS_TRY(find_root_floor(j, err));
    weigh_nodes(j);
    return find_gains(j, err);
}
