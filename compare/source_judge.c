/* SPDX-License-Identifier: MIT
 *
 * source_judge: every node against its own context and the noise before it.
 *
 * Pass 1 settles for each node what went in (`in`), what came out (`out`) and what
 * noise explains (`floor`); pass 2 asks the rules, which need what pass 1 found out
 * about all backward operators.  Each rule is a function of (judge, node) that adds
 * a suspect or does not.
 */
#include "compare/source_floor.h"
#include "compare/source_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* All constants of the rules.  Fixed on one set of runs, reported on another. */
static const struct {
    double exact;                 /* two quanta of statistics in float32 */
    double forward[2], gradients; /* a suspect's factor: statistics, tensor */
    double backward[2], backward_low[2];
    double norm_forward, norm_backward, norm_least;
    double start;          /* more of it while there is nothing to learn from */
    double backward_least; /* smaller differences of gradients are noise */
    double parameter_norm;
    double unexplained_input;
    double systemic_share;
    double start_few;
} rule = {
    .exact = 2.4e-7,
    .forward = {4, 3},
    .gradients = 3,
    .backward = {12, 8},
    .backward_low = {30, 14},
    .norm_forward = 6,
    .norm_backward = 100,
    .norm_least = 1e-4,
    .start = 2.5,
    .backward_least = 1e-5,
    .parameter_norm = 6,
    .unexplained_input = 1e-2,
    .systemic_share = 0.2,
    .start_few = 12,
};
enum { SYSTEMIC_LEAVES = 6, CLASS_FEW = 3, PARAMETERS_FEW = 4, EXACT_CALLS_MIN = 1 };

struct judge {
    struct cmp_source *s;
    struct source__part *p;
    uint32_t part;
    const struct source__comms *comms;
    bool explained;
    unsigned tensor; /* index of the constants */
    struct source__floor floor, floor_norm;
    bool low;                            /* some values are of low precision */
    bool mixed;                          /* one side computes in another precision */
    bool systemic[MS_DT_MAX][MS_DT_MAX]; /* golden type, target type */
    double backward_factor;
    float *class_gain;           /* by op: how much more comes out of its backward than goes in */
    struct source__context seen; /* everything so far */
    float dirtiest;              /* the largest difference of all nodes so far */
    bool all_exact, attr_seen;
    uint32_t first_inexact, inexact; /* nodes with exact inputs and another output; how many */
    struct ms_map exact, scalars;
    struct ms_arena *arena;
};

/* ---- precision --------------------------------------------------------------------- */

static double unit_of(uint8_t dtype)
{
    switch ((enum ms_dtype)dtype) {
    case MS_DT_F16:
        return 0x1p-11;
    case MS_DT_BF16:
        return 0x1p-8;
    case MS_DT_F8E4M3:
    case MS_DT_F8E4M3Z:
        return 0x1p-4;
    case MS_DT_F8E5M2:
    case MS_DT_F8E5M2Z:
        return 0x1p-3;
    default:
        return 0;
    }
}

double source__roundoff(const struct source__leaf *l, bool *differ)
{
    double a = l->flags & SOURCE__FINE_GOLDEN ? 0 : unit_of(l->dtype[0]);
    double b = l->flags & SOURCE__FINE_TARGET ? 0 : unit_of(l->dtype[1]);
    *differ = a != b;
    return fmax(a, b);
}

/* What types alone explain of a difference. */
struct grain {
    double unit;
    bool differ;
    uint8_t coarse;
};

static void look_at(struct grain *g, const struct source__part *p, const struct source__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        bool differ;
        const struct source__leaf *l = &p->leaves.p[i];
        double u = source__roundoff(l, &differ);
        if (u > g->unit)
            g->coarse = l->dtype[unit_of(l->dtype[1]) >= unit_of(l->dtype[0])];
        g->unit = fmax(g->unit, u);
        g->differ |= differ;
    }
}

static struct grain grain_of(const struct source__part *p, const struct source__node *n)
{
    struct grain g = {0};
    look_at(&g, p, n);
    if (n->forward != SOURCE__NONE)
        look_at(&g, p, &p->nodes.p[n->forward]);
    return g;
}

static double tiny_of(const struct judge *j, const struct grain *g)
{
    double share = g->differ ? 2 : j->tensor ? 0.5 : 1;
    return fmax(rule.exact, share * g->unit);
}

static double tiny_norm(const struct grain *g, float count)
{
    double t = 4 * g->unit / sqrt(fmax(count, 1));
    return fmax(rule.exact, g->differ ? fmax(t, 0.1 * g->unit) : t);
}

/* ---- what holds for the pair as a whole ----------------------------------------------- */

static bool is_real_output(const struct source__leaf *l)
{
    return (l->flags & (SOURCE__IS_OUT | SOURCE__REAL)) == (SOURCE__IS_OUT | SOURCE__REAL);
}

/* The most usual pair of types of those that are systemic. */
static void note_precision(struct judge *j, uint32_t count[MS_DT_MAX][MS_DT_MAX], uint32_t all)
{
    struct source__part *p = j->p;
    uint32_t most = 0;
    for (unsigned g = 0; g < MS_DT_MAX; g++) {
        for (unsigned t = 0; t < MS_DT_MAX; t++) {
            if (g == t || !j->systemic[g][t] || count[g][t] <= most)
                continue;
            most = count[g][t];
            p->other[0] = (uint8_t)g;
            p->other[1] = (uint8_t)t;
            p->other_noise = 2 * fmax(unit_of((uint8_t)g), unit_of((uint8_t)t));
        }
    }
    p->other_share = all != 0 ? (double)most / all : 0;
}

/* A pair of types that is usual here is how the runs differ, no fault; so is any other with the
 * same low type. */
static void find_systemic(struct judge *j)
{
    bool differ;
    uint32_t count[MS_DT_MAX][MS_DT_MAX] = {{0}}, all = 0;
    bool low[MS_DT_MAX] = {false};
    for (size_t i = 0; i < j->p->leaves.n; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        j->low |= source__roundoff(l, &differ) > 0;
        if (!is_real_output(l) || l->row[0] == SOURCE__NONE)
            continue;
        count[l->dtype[0]][l->dtype[1]]++;
        all++;
    }
    for (unsigned g = 0; g < MS_DT_MAX; g++) {
        for (unsigned t = 0; t < MS_DT_MAX; t++) {
            if (g == t || count[g][t] < SYSTEMIC_LEAVES || count[g][t] < rule.systemic_share * all)
                continue;
            j->systemic[g][t] = j->mixed = true;
            low[g] |= unit_of((uint8_t)g) > 0 || t == MS_DT_F64;
            low[t] |= unit_of((uint8_t)t) > 0 || g == MS_DT_F64;
        }
    }
    for (unsigned g = 0; g < MS_DT_MAX; g++) {
        for (unsigned t = 0; t < MS_DT_MAX; t++)
            j->systemic[g][t] |= low[g] || low[t];
    }
    note_precision(j, count, all);
}

static uint8_t attrs_of(const struct judge *j, const struct source__leaf *l)
{
    bool usual = j->systemic[l->dtype[0]][l->dtype[1]];
    return usual ? (uint8_t)(l->attrs & ~SOURCE__DTYPE) : l->attrs;
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

/* Differences of distinct parameters: what the runs start with. */
static enum ms_rc find_root_floor(struct judge *j, struct ms_err *err)
{
    struct source__part *p = j->p;
    struct sample *s = ms_alloc((p->leaves.n + 1) * sizeof *s);
    float *e = ms_alloc(2 * (p->leaves.n + 1) * sizeof *e);
    size_t n = 0, m = 0;
    p->root_floor = p->root_floor_norm = NAN;
    for (size_t i = 0; s != NULL && e != NULL && i < p->leaves.n; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        unsigned want = SOURCE__IS_PARAM | SOURCE__ROOT | SOURCE__MEASURED | SOURCE__REAL;
        if ((l->flags & want) == want)
            s[n++] = (struct sample){l->value, l->e, l->en};
    }
    if (n != 0)
        qsort(s, n, sizeof *s, by_value);
    for (size_t i = 0; i < n; i++) {
        if (i != 0 && s[i].value == s[i - 1].value)
            continue;
        p->unlike += s[i].e > SOURCE__UNLIKE;
        e[m] = s[i].e;
        e[p->leaves.n + m++] = s[i].en;
    }
    p->parameters = (uint32_t)m;
    if (m >= PARAMETERS_FEW) {
        p->root_floor = source__lower(e, m, 0.75);
        p->root_floor_norm = source__lower(e + p->leaves.n, m, 0.75);
        p->other_start =
            p->root_floor > SOURCE__UNLIKE && p->mode != PROBE_MODE_MD5 && !j->explained;
    }
    bool fine = s != NULL && e != NULL;
    ms_free(s);
    ms_free(e);
    return fine ? MS_OK : ms_no_memory(err);
}

/* ---- pass 1: in, out, floor --------------------------------------------------------------- */

static void see(struct source__context *c, float e, float en, unsigned flagged, unsigned attrs)
{
    c->e = e > c->e ? e : c->e;
    c->en = en > c->en ? en : c->en;
    c->flags |= (uint8_t)flagged;
    c->attrs |= (uint8_t)attrs;
}

/* What has no partner is as wrong as who made it, or as what that one read. */
static void see_leaf(const struct judge *j, const struct source__leaf *l, struct source__context *c)
{
    see(c, l->e, l->en, l->flags & (SOURCE__FLAGGED | SOURCE__OPPOSITE), attrs_of(j, l));
    if ((l->flags & SOURCE__MEASURED) || l->maker[1] == SOURCE__NONE)
        return;
    const struct source__node *from = &j->p->nodes.p[l->maker[1]];
    bool measured = (from->flags & SOURCE__OUT_MEASURED) != 0;
    see(c, measured ? from->out : from->in, measured ? from->out_norm : from->in_norm,
        from->flags & SOURCE__OUT_FLAGGED ? SOURCE__FLAGGED : 0, 0);
}

static void see_all(const struct judge *j, const struct source__node *n, bool outputs,
                    struct source__context *c)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        if (((l->flags & SOURCE__IS_OUT) != 0) == outputs)
            see_leaf(j, l, c);
    }
}

static bool is_after_all(const struct source__node *n)
{
    return n->kind == PROBE_NODE_PGRAD || n->kind == PROBE_NODE_DEBUG;
}

static struct source__context context_of(const struct judge *j, const struct source__node *n)
{
    struct source__context c = {0};
    see_all(j, n, false, &c);
    if (is_after_all(n))
        see(&c, j->seen.e, j->seen.en, j->seen.flags, j->seen.attrs);
    const struct source__context *others = source__comm_of(j->comms, j->p, n);
    if (others != NULL)
        see(&c, others->e, others->en, others->flags, others->attrs);
    if (n->forward == SOURCE__NONE)
        return c;
    struct source__context f = {0};
    see_all(j, &j->p->nodes.p[n->forward], false, &f);
    see_all(j, &j->p->nodes.p[n->forward], true, &f);
    /* a mask made of activations that differ by e lets a share e of the elements through */
    bool mask = !j->tensor && (j->p->ops.p[n->op].flags & SOURCE__SWITCH) != 0;
    see(&c, mask && f.e < 1 ? sqrtf(f.e) : f.e, f.en, f.flags, f.attrs);
    return c;
}

static void set_outputs(const struct judge *j, struct source__node *n, const struct grain *g,
                        bool turned_before)
{
    double rho = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) == 0)
            continue;
        n->attrs_out |= attrs_of(j, l);
        if (l->flags & SOURCE__FLAGGED)
            n->flags |= SOURCE__OUT_FLAGGED;
        if ((l->flags & SOURCE__OPPOSITE) && !turned_before)
            n->flags |= SOURCE__TURNED;
        if ((l->flags & SOURCE__MEASURED) == 0)
            continue;
        n->flags |= SOURCE__OUT_MEASURED;
        n->out = fmaxf(n->out, l->e);
        n->out_norm = fmaxf(n->out_norm, l->en);
        n->floor = fmaxf(n->floor, l->noise);
        /* noise of single elements moves the norm by its root mean */
        double past =
            fmax(fmax(n->in_norm, n->floor_norm), fmax(n->in, n->floor) / sqrt(fmax(l->count, 1)));
        past = fmax(past, l->noise);
        rho = fmax(rho, l->en / fmax(past, tiny_norm(g, l->count)));
    }
    n->rho_norm = (float)rho;
}

static float floor_now(struct source__floor *f, float root)
{
    float now = source__floor_now(f);
    return f->n < SOURCE_FLOOR_FEW && root > now ? root : now;
}

static void weigh(struct judge *j, struct source__node *n)
{
    struct source__context c = context_of(j, n);
    struct grain g = grain_of(j->p, n);
    n->in = c.e;
    n->in_norm = c.en;
    n->attrs_in = c.attrs;
    n->flags = c.flags & SOURCE__FLAGGED ? SOURCE__IN_FLAGGED : 0;
    n->floor_norm = floor_now(&j->floor_norm, j->p->root_floor_norm);
    n->tiny = (float)tiny_of(j, &g);
    n->coarse = g.coarse;
    n->floor = fmaxf(n->tiny, floor_now(&j->floor, j->p->root_floor));
    n->young = j->floor.seen < rule.start_few && isnan(j->p->root_floor);
    set_outputs(j, n, &g, (c.flags & SOURCE__OPPOSITE) != 0);
    n->rho = n->out / fmaxf(n->in, n->floor);
}

static void learn(struct judge *j, const struct source__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        see_leaf(j, l, &j->seen);
        unsigned want = SOURCE__MEASURED | SOURCE__REAL;
        if ((l->flags & want) != want || (l->flags & (SOURCE__IS_OUT | SOURCE__ROOT)) == 0)
            continue;
        source__floor_add(&j->floor, l->e);
        source__floor_add(&j->floor_norm, l->en);
    }
}

static void weigh_all(struct judge *j)
{
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        struct source__node *n = &j->p->nodes.p[i];
        if (n->id[1] == SOURCE__NONE)
            continue;
        weigh(j, n);
        learn(j, n);
    }
}

/* ---- what backward operators usually do ------------------------------------------------------ */

static bool is_backward_api(const struct source__node *n)
{
    return n->dir == PROBE_BACKWARD && !is_after_all(n) && (n->flags & SOURCE__OUT_MEASURED);
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

static void take_gains(struct judge *j, struct gain *g, size_t n, float *rho)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && g[end].op == g[i].op; end++)
            rho[end - i] = g[end].rho;
        float median = source__quantile(rho, end - i, 0.5);
        if (end - i >= CLASS_FEW)
            j->class_gain[g[i].op] = fminf(fmaxf(median, 1), 5);
    }
    for (size_t i = 0; i < n; i++)
        rho[i] = g[i].rho;
    bool low = j->low;
    double usual = fmax(5, 5 * source__quantile(rho, n, 0.9));
    j->backward_factor = low ? rule.backward_low[j->tensor] : rule.backward[j->tensor];
    if (!low && n != 0)
        j->backward_factor = fmin(j->backward_factor, usual);
}

static enum ms_rc find_gains(struct judge *j, struct ms_err *err)
{
    struct source__part *p = j->p;
    struct gain *g = ms_alloc((p->nodes.n + 1) * sizeof *g);
    float *rho = ms_alloc((p->nodes.n + 1) * sizeof *rho);
    j->class_gain = ms_alloc((p->ops.n + 1) * sizeof *j->class_gain);
    bool fine = g != NULL && rho != NULL && j->class_gain != NULL;
    size_t n = 0;
    for (size_t i = 0; fine && i < p->ops.n; i++)
        j->class_gain[i] = 1;
    for (size_t i = 0; fine && i < p->nodes.n; i++) {
        if (is_backward_api(&p->nodes.p[i]))
            g[n++] = (struct gain){p->nodes.p[i].op, p->nodes.p[i].rho};
    }
    if (n != 0)
        qsort(g, n, sizeof *g, by_op);
    if (fine)
        take_gains(j, g, n, rho);
    ms_free(g);
    ms_free(rho);
    return fine ? MS_OK : ms_no_memory(err);
}

/* ---- suspects ------------------------------------------------------------------------------- */

static enum ms_rc accuse(struct judge *j, uint32_t node, struct source__raw raw, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[node];
    struct source__raw *slot = ms_vec_push(&j->s->raws);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = raw;
    slot->part = j->part;
    slot->node = node;
    slot->forward = n->dir != PROBE_BACKWARD && n->kind != PROBE_NODE_PGRAD;
    return MS_OK;
}

static struct source__raw raw_of(const struct source__node *n, enum cmp_why why,
                                 enum source__class cls, double s)
{
    return (struct source__raw){.leaf = SOURCE__NONE,
                                .why = (uint8_t)why,
                                .cls = (uint8_t)cls,
                                .s = (float)s,
                                .in = n->in,
                                .out = n->out,
                                .floor = n->floor,
                                .factor = n->rho};
}

/* Where modules stand beside operators they are there for the eye. */
static bool is_judged(const struct judge *j, const struct source__node *n)
{
    return n->kind != PROBE_NODE_MODULE || !j->p->has_apis;
}

static bool is_backward(const struct source__node *n)
{
    return n->dir == PROBE_BACKWARD && n->kind != PROBE_NODE_PGRAD;
}

static double limit_of(const struct judge *j, const struct source__node *n)
{
    if (n->kind == PROBE_NODE_PGRAD)
        return rule.gradients;
    if (is_backward(n))
        return j->backward_factor;
    return rule.forward[j->tensor] * (n->young ? rule.start : 1);
}

/* Equal calls were exact before: a hash of operator, direction and what comes out. */
static enum ms_rc remember_exact(struct judge *j, const struct source__node *n, bool *known,
                                 struct ms_err *err)
{
    char key[64];
    uint64_t shape = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        if (l->flags & SOURCE__IS_OUT)
            shape = shape * 1000003 + (uint64_t)l->count + l->dtype[1];
    }
    int len = snprintf(key, sizeof key, "%u/%u/%llx", n->op, n->dir, (unsigned long long)shape);
    struct ms_str k = {key, (uint32_t)len};
    *known = ms_map_get(&j->exact, k) != MS_MAP_NONE;
    if (n->out == 0 && !*known && ms_map_put_copy(&j->exact, k, j->arena, NULL) == MS_MAP_NONE)
        return ms_no_memory(err);
    return MS_OK;
}

/* Does all that differs of what it reads differ in the last digits of its sums alone? */
static bool reads_resummed(const struct judge *j, const struct source__node *n)
{
    bool any = false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) || l->e == 0)
            continue;
        if ((l->flags & SOURCE__RESUMMED) == 0)
            return false;
        any = true;
    }
    return any;
}

/* An operator that gives its values another order leaves the statistics as they are but for the
 * order of summation: in runs that were exact so far that much is seen, and how large it is where
 * the next operator mixes the elements. */
static enum ms_rc ask_order(struct judge *j, uint32_t i, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    uint32_t from = j->first_inexact;
    if (j->tensor || j->inexact != 1 || i == from || n->in > n->tiny || j->dirtiest > n->tiny ||
        !reads_resummed(j, n))
        return MS_OK;
    struct source__raw raw =
        raw_of(&j->p->nodes.p[from], CMP_WHY_PRECEDENT, SOURCE__NUM, log10(n->rho));
    return accuse(j, from, raw, err);
}

/* The output has few digits, and all that it is made of has more. */
static bool drops_digits(const struct judge *j, const struct source__node *n)
{
    bool coarse = false, fine = false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & SOURCE__REAL) == 0)
            continue;
        if (l->flags & SOURCE__IS_OUT)
            coarse |= (l->flags & SOURCE__COARSE) != 0;
        else if ((l->flags & SOURCE__FINE) == 0)
            return false;
        else
            fine = true;
    }
    return coarse && fine && n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD;
}

static enum ms_rc ask_output(struct judge *j, uint32_t i, struct ms_err *err)
{
    struct source__node *n = &j->p->nodes.p[i];
    bool known = false, exact_so_far = j->all_exact;
    if (j->all_exact && (n->flags & SOURCE__OUT_MEASURED))
        MS_TRY(remember_exact(j, n, &known, err));
    if (is_backward(n) && (n->flags & SOURCE__OUT_MEASURED))
        n->rho /= j->class_gain[n->op];
    if ((n->flags & SOURCE__OUT_FLAGGED) && !(n->flags & SOURCE__IN_FLAGGED))
        return accuse(j, i, raw_of(n, CMP_WHY_FLAG, SOURCE__NUM, 4), err);
    if (j->p->mode == PROBE_MODE_MD5) {
        bool differs = n->out > 0 && n->in == 0 && (n->flags & SOURCE__OUT_MEASURED);
        return differs ? accuse(j, i, raw_of(n, CMP_WHY_DIFFERS, SOURCE__NUM, 3), err) : MS_OK;
    }
    if (n->rho > limit_of(j, n) && (!is_backward(n) || n->out > rule.backward_least)) {
        MS_TRY(ask_order(j, i, err));
        return accuse(j, i, raw_of(n, CMP_WHY_VALUE, SOURCE__NUM, log10(n->rho)), err);
    }
    double norm =
        is_backward(n) || n->kind == PROBE_NODE_PGRAD ? rule.norm_backward : rule.norm_forward;
    if (n->rho_norm > norm && n->out_norm > rule.norm_least && !n->young) {
        struct source__raw raw = raw_of(n, CMP_WHY_NORM, SOURCE__NUM, log10(n->rho_norm));
        raw.factor = n->rho_norm;
        return accuse(j, i, raw, err);
    }
    if (drops_digits(j, n))
        return accuse(j, i, raw_of(n, CMP_WHY_ROUNDED, SOURCE__NUM, 2), err);
    if ((n->flags & SOURCE__TURNED) && n->rho > 2)
        return accuse(j, i, raw_of(n, CMP_WHY_VALUE, SOURCE__NUM, log10(n->rho)), err);
    if (exact_so_far && known && n->out > 0)
        return accuse(j, i, raw_of(n, CMP_WHY_PRECEDENT, SOURCE__NUM, 1), err);
    return MS_OK;
}

/* ---- roots ----------------------------------------------------------------------------------- */

static enum ms_rc ask_root(struct judge *j, uint32_t i, uint32_t leaf, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    const struct source__leaf *l = &j->p->leaves.p[leaf];
    struct grain g = {0};
    g.unit = source__roundoff(l, &g.differ);
    bool known = !isnan(j->p->root_floor);
    double t = fmax(tiny_of(j, &g), known ? j->p->root_floor : 0);
    double tn = fmax(fmax(t, 1e-6), known ? j->p->root_floor_norm : 0);
    bool off = (l->flags & SOURCE__FLAGGED) || l->e > rule.forward[j->tensor] * t ||
               l->en > rule.parameter_norm * tn;
    if (j->p->mode == PROBE_MODE_MD5)
        off = l->e > 0 && !(known && j->p->root_floor > 0);
    bool parameter = (l->flags & SOURCE__IS_PARAM) != 0;
    bool start = parameter && j->p->other_start && (l->flags & SOURCE__FLAGGED) == 0;
    if (!off || j->explained || start)
        return MS_OK;
    bool first = j->dirtiest <= l->e / 10;
    bool alone = known || l->e > rule.unexplained_input;
    bool suspect = parameter || (first && alone && n->kind != PROBE_NODE_PGRAD);
    if (!suspect)
        return MS_OK;
    double s = l->flags & SOURCE__FLAGGED ? 4 : log10(fmax(l->e / t, 1));
    if (j->p->mode == PROBE_MODE_MD5)
        s = 3;
    struct source__raw raw =
        raw_of(n, parameter ? CMP_WHY_PARAMETER : CMP_WHY_INPUT, SOURCE__NUM, s);
    raw.leaf = leaf;
    raw.in = l->e;
    raw.floor = (float)t;
    raw.factor = (float)(l->e / t);
    return accuse(j, i, raw, err);
}

/* ---- wiring ---------------------------------------------------------------------------------- */

static bool is_clean(const struct judge *j, uint32_t node)
{
    const struct source__node *n = &j->p->nodes.p[node];
    if (n->id[0] == SOURCE__NONE || n->id[1] == SOURCE__NONE)
        return true;
    return !(n->flags & SOURCE__OUT_FLAGGED) && n->out <= rule.forward[j->tensor] * n->floor;
}

/* Of operators without a partner in a row, the first. */
static uint32_t first_unmatched(const struct judge *j, uint32_t node)
{
    for (unsigned steps = 0; steps < 64; steps++) {
        const struct source__node *n = &j->p->nodes.p[node];
        uint32_t before = SOURCE__NONE;
        for (uint32_t i = n->leaf; i < n->leaf + n->nleaf && before == SOURCE__NONE; i++) {
            const struct source__leaf *l = &j->p->leaves.p[i];
            if ((l->flags & SOURCE__IS_OUT) == 0 && l->maker[1] != SOURCE__NONE &&
                l->maker[1] < node && j->p->nodes.p[l->maker[1]].id[0] == SOURCE__NONE)
                before = l->maker[1];
        }
        if (before == SOURCE__NONE)
            break;
        node = before;
    }
    return node;
}

static enum ms_rc ask_wiring(struct judge *j, uint32_t i, uint32_t leaf, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    const struct source__leaf *l = &j->p->leaves.p[leaf];
    double limit = rule.forward[j->tensor] * n->floor;
    uint32_t golden = l->maker[0], target = l->maker[1];
    bool effect = l->e > limit && n->out > limit && (l->flags & SOURCE__MEASURED) &&
                  !(l->flags & SOURCE__FLAGGED);
    if (!effect || golden == target || n->moved)
        return MS_OK;
    bool target_clean = target == SOURCE__NONE || is_clean(j, target);
    bool golden_clean = golden == SOURCE__NONE || is_clean(j, golden);
    if (!target_clean || (!golden_clean && target == SOURCE__NONE) || golden == SOURCE__NONE)
        return MS_OK;
    uint32_t blamed = i;
    enum cmp_why why = CMP_WHY_WIRING;
    if (target != SOURCE__NONE && j->p->nodes.p[target].id[0] == SOURCE__NONE) {
        blamed = first_unmatched(j, target);
        why = CMP_WHY_EXTRA;
    } else if (j->p->nodes.p[golden].id[1] == SOURCE__NONE) {
        blamed = golden;
        why = CMP_WHY_MISSING;
    }
    struct source__raw raw = raw_of(n, why, SOURCE__NUM, log10(l->e / n->floor));
    raw.leaf = leaf;
    raw.in = l->e;
    raw.factor = l->e / n->floor;
    return accuse(j, blamed, raw, err);
}

/* ---- arguments and attributes ------------------------------------------------------------------- */

/* Does the node's output differ more than what it read? */
static enum source__class weight_of(const struct judge *j, const struct source__node *n,
                                    enum source__class cls)
{
    bool effect =
        n->out > 1.5F * fmaxf(n->in, n->floor) || (j->all_exact && n->in == 0 && n->out > 0);
    return effect ? SOURCE__NUM : cls;
}

static double strength_of(const struct source__node *n)
{
    return fmax(1, log10(fmax(n->rho, 1)));
}

/* The same argument may differ in every call: the first says it for all. */
static enum ms_rc ask_scalar(struct judge *j, uint32_t i, uint32_t leaf, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    const struct source__leaf *l = &j->p->leaves.p[leaf];
    char key[64];
    bool added;
    if (!(l->attrs & SOURCE__SCALAR))
        return MS_OK;
    int len = snprintf(key, sizeof key, "%u/%u/%u/%x", n->op, n->dir, l->path, l->value);
    if (ms_map_put_copy(&j->scalars, (struct ms_str){key, (uint32_t)len}, j->arena, &added) ==
        MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct source__raw raw =
        raw_of(n, CMP_WHY_SCALAR, weight_of(j, n, SOURCE__SOFT), strength_of(n));
    raw.leaf = leaf;
    return accuse(j, i, raw, err);
}

static enum ms_rc accuse_attrs(struct judge *j, uint32_t i, unsigned attrs, uint32_t leaf,
                               struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    bool hard = (attrs & (SOURCE__SHAPE | SOURCE__DTYPE)) != 0;
    enum cmp_why why = attrs & SOURCE__SHAPE   ? CMP_WHY_SHAPE
                       : attrs & SOURCE__DTYPE ? CMP_WHY_DTYPE
                                               : CMP_WHY_GRAD;
    struct source__raw raw = raw_of(n, why, hard ? SOURCE__HARD : SOURCE__SOFT, 1);
    raw.cls = (uint8_t)weight_of(j, n, (enum source__class)raw.cls);
    raw.s = (float)strength_of(n);
    raw.leaf = leaf;
    j->attr_seen = true;
    return accuse(j, i, raw, err);
}

static enum ms_rc ask_attrs(struct judge *j, uint32_t i, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    unsigned kinds = SOURCE__SHAPE | SOURCE__DTYPE | SOURCE__GRAD;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct source__leaf *l = &j->p->leaves.p[k];
        unsigned attrs = attrs_of(j, l) & kinds;
        bool out = (l->flags & SOURCE__IS_OUT) != 0;
        if (out)
            attrs &= ~(unsigned)n->attrs_in;
        bool root = (l->flags & SOURCE__ROOT) && !j->attr_seen;
        if (attrs != 0 && (out || root))
            return accuse_attrs(j, i, attrs, k, err);
    }
    return MS_OK;
}

/* ---- pass 2 ---------------------------------------------------------------------------------------- */

static enum ms_rc ask_inputs(struct judge *j, uint32_t i, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct source__leaf *l = &j->p->leaves.p[k];
        if (l->flags & SOURCE__PLAINLY)
            MS_TRY(ask_scalar(j, i, k, err));
        if ((l->flags & SOURCE__IS_OUT) || l->row[0] == SOURCE__NONE)
            continue;
        if (l->flags & SOURCE__ROOT)
            MS_TRY(ask_root(j, i, k, err));
        else if (n->dir == PROBE_FORWARD && !j->p->cross)
            MS_TRY(ask_wiring(j, i, k, err));
    }
    return MS_OK;
}

/* The cast that the target alone has and that this one, of the target alone too, follows at once. */
static uint32_t cast_before(const struct judge *j, const struct source__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) || l->maker[1] == SOURCE__NONE)
            continue;
        const struct source__node *from = &j->p->nodes.p[l->maker[1]];
        if (from < n && from->id[0] == SOURCE__NONE && (j->p->ops.p[from->op].flags & SOURCE__CAST))
            return l->maker[1];
    }
    return SOURCE__NONE;
}

/* Where the sides compute in different types a cast more says nothing, but one that another takes
 * back at once is there for nothing but the digits that it drops. */
static enum ms_rc ask_cast(struct judge *j, uint32_t i, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    uint32_t before = n->id[0] == SOURCE__NONE ? cast_before(j, n) : SOURCE__NONE;
    if (before == SOURCE__NONE)
        return MS_OK;
    struct source__raw raw = raw_of(&j->p->nodes.p[before], CMP_WHY_EXTRA, SOURCE__HARD, 1);
    MS_TRY(accuse(j, before, raw, err));
    return accuse(j, i, raw_of(n, CMP_WHY_EXTRA, SOURCE__STRUCTURE, 0), err);
}

static enum ms_rc ask_structure(struct judge *j, uint32_t i, struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    bool extra = n->id[0] == SOURCE__NONE, missing = n->id[1] == SOURCE__NONE;
    bool cast = (j->p->ops.p[n->op].flags & SOURCE__CAST) && j->mixed;
    if (n->moved)
        return accuse(j, i, raw_of(n, CMP_WHY_MOVED, SOURCE__STRUCTURE, 0), err);
    if ((!extra && !missing) || n->dir != PROBE_FORWARD || j->p->cross ||
        (j->p->has_apis && n->kind != PROBE_NODE_API))
        return MS_OK;
    if (cast)
        return ask_cast(j, i, err);
    enum cmp_why why = extra ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    return accuse(j, i, raw_of(n, why, SOURCE__STRUCTURE, 0), err);
}

static enum ms_rc ask(struct judge *j, uint32_t i, struct ms_err *err)
{
    struct source__node *n = &j->p->nodes.p[i];
    if (!is_judged(j, n))
        return MS_OK;
    MS_TRY(ask_structure(j, i, err));
    bool told = n->id[0] != SOURCE__NONE || (n->flags & SOURCE__OUT_MEASURED);
    if (!told || n->id[1] == SOURCE__NONE)
        return MS_OK;
    MS_TRY(ask_inputs(j, i, err));
    MS_TRY(ask_output(j, i, err));
    return ask_attrs(j, i, err);
}

static enum ms_rc ask_all(struct judge *j, struct ms_err *err)
{
    j->all_exact = true;
    j->first_inexact = SOURCE__NONE;
    for (uint32_t i = 0; i < j->p->nodes.n; i++) {
        const struct source__node *n = &j->p->nodes.p[i];
        MS_TRY(ask(j, i, err));
        j->dirtiest = fmaxf(j->dirtiest, fmaxf(n->in, n->out));
        /* how many operators were the first to be inexact: where one is, the runs are exact */
        if (is_judged(j, n) && n->in == 0 && n->out > 0 && j->inexact++ == 0)
            j->first_inexact = i;
        j->all_exact &= n->in == 0 && n->out == 0;
    }
    return MS_OK;
}

static enum ms_rc judge_part(struct judge *j, struct ms_err *err)
{
    find_systemic(j);
    MS_TRY(find_root_floor(j, err));
    weigh_all(j);
    MS_TRY(find_gains(j, err));
    return ask_all(j, err);
}

enum ms_rc source__judge(struct cmp_source *s, uint32_t part, const struct source__comms *comms,
                         bool explained, struct ms_err *err)
{
    struct source__part *p = s->parts.p[part];
    struct judge *j = ms_calloc(1, sizeof *j);
    if (j == NULL)
        return ms_no_memory(err);
    j->s = s;
    j->p = p;
    j->part = part;
    j->comms = comms;
    j->explained = explained;
    j->tensor = p->mode == PROBE_MODE_TENSOR;
    j->arena = ms_arena_new((size_t)1 << 30);
    enum ms_rc rc = j->arena != NULL ? judge_part(j, err) : ms_no_memory(err);
    ms_map_free(&j->exact);
    ms_map_free(&j->scalars);
    ms_arena_free(j->arena);
    ms_free(j->class_gain);
    ms_free(j);
    return rc;
}
