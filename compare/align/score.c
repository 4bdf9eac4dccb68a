/* SPDX-License-Identifier: MIT
 *
 * score: how well two operators match.
 *
 * Evidence is collected once and scored twice: by structure alone (operator, shape,
 * module, consumers) and with values. The better score counts, because behind a fault
 * values differ while the structure still agrees. Only where inputs agree and outputs
 * do not, the score with values is final. Vetoes come first and end most comparisons.
 */
#include "compare/align/score.h"
#include "probe/base/assert.h"

/* The optimum is flat: halving or doubling nearly any of the weights below moves no figure by more
 * than 0.01 (50 pairs). Without families recall of groups falls from 0.997 to 0.986, without shapes
 * to 0.990, without modules to 0.993; without the veto of inner members precision falls from 0.998
 * to 0.988. */

/* the most tensors and the most consumers that are compared */
enum { LOOK = 8, USERS_MAX = 16 };
/* the most operators in place of a fused one, and the most values they read */
enum { RUN_MAX = 12, ENTER_MAX = 16 };

static unsigned limit_tensors(unsigned n)
{
    return n < LOOK ? n : LOOK;
}

static float value_likeness(const struct align__ctx *c, uint32_t a, uint32_t b)
{
    return align__likeness(align__distance(&c->side[0].values.p[a], &c->side[1].values.p[b]));
}

/* Likeness of two inputs; 1 where earlier pairs identify them with each other. */
static float input_likeness(const struct align__ctx *c, uint32_t a, uint32_t b)
{
    if (c->vmap[a] == b)
        return 1;
    return c->by_value ? value_likeness(c, a, b) : 0;
}

/* Returns the likeness of the best pair of outputs; sets *blind when no two can be compared. */
static float best_output(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b, bool *blind)
{
    const struct align__tensor *x = align__outs(&c->side[0], a);
    const struct align__tensor *y = align__outs(&c->side[1], b);
    float best = 0;
    *blind = true;
    for (unsigned i = 0; c->by_value && i < limit_tensors(a->nout); i++) {
        for (unsigned j = 0; j < limit_tensors(b->nout); j++) {
            float d =
                align__distance(&c->side[0].values.p[x[i].value], &c->side[1].values.p[y[j].value]);
            float like = align__likeness(d);
            if (c->side[0].values.p[x[i].value].known && c->side[1].values.p[y[j].value].known)
                *blind = false;
            best = like > best ? like : best;
        }
    }
    return best;
}

/* Weighs the inputs: by value, the mean likeness over the operator with fewer inputs; by structure,
 * whether any input is shared. */
static void weigh_inputs(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b, struct align__evidence *e)
{
    const struct align__tensor *x = align__ins(&c->side[0], a);
    const struct align__tensor *y = align__ins(&c->side[1], b);
    bool swap = a->nin > b->nin;
    unsigned n = limit_tensors(swap ? b->nin : a->nin);
    unsigned m = limit_tensors(swap ? a->nin : b->nin);
    float sum = 0;
    bool any = false;
    for (unsigned i = 0; i < n; i++) {
        float best = 0;
        for (unsigned j = 0; j < m; j++) {
            float v = swap ? input_likeness(c, x[j].value, y[i].value)
                           : input_likeness(c, x[i].value, y[j].value);
            best = v > best ? v : best;
        }
        any |= best == 1;
        sum += best;
    }
    e->in = n == 0 ? 0 : sum / (float)n;
    ms_assert(n <= m && e->in >= 0 && e->in <= 1);
    if (!c->by_value)
        e->in = any ? 1 : 0;
    e->same_in = e->in == 1;
}

/* Lists the values that enter the unpaired operators ending in `tail`, as far as these values have
 * a partner. */
static unsigned list_entering(const struct align__ctx *c, int side, uint32_t tail,
                              uint32_t values[ENTER_MAX])
{
    const struct align__side *s = &c->side[side];
    const uint32_t *map = side == 0 ? c->vmap : c->vmap_back;
    uint32_t run[RUN_MAX] = {tail};
    unsigned n = 0;
    for (unsigned at = 0, ops = 1; at < ops; at++) {
        const struct align__op *o = &s->ops.p[run[at]];
        for (unsigned i = 0; i < limit_tensors(o->nin); i++) {
            uint32_t v = align__ins(s, o)[i].value;
            uint32_t p = s->values.p[v].producer;
            if (map[v] != ALIGN__NONE && n < ENTER_MAX)
                values[n++] = map[v];
            else if (p != ALIGN__NONE && p < run[at] && c->op[side][p] == ALIGN__NONE &&
                     ops < RUN_MAX)
                run[ops++] = p;
        }
    }
    return n;
}

/* Returns the share of a fused operator's inputs whose partners enter the operators that end in
 * `tail`. */
static float weigh_entries(const struct align__ctx *c, int side, const struct align__op *fused,
                           uint32_t tail)
{
    uint32_t values[ENTER_MAX];
    const uint32_t *map = side == 0 ? c->vmap : c->vmap_back;
    unsigned n = list_entering(c, 1 - side, tail, values);
    unsigned known = 0;
    unsigned found = 0;
    for (unsigned i = 0; i < limit_tensors(fused->nin); i++) {
        uint32_t v = align__ins(&c->side[side], fused)[i].value;
        known += map[v] != ALIGN__NONE;
        for (unsigned k = 0; k < n && map[v] != ALIGN__NONE; k++) {
            if (values[k] == v) {
                found++;
                break;
            }
        }
    }
    ms_assert(found <= known && n <= ENTER_MAX);
    return known != 0 ? (float)found / (float)known : 0;
}

/* Returns the mean of the best matches over the operator with fewer parameters; below 0 when no
 * sizes are equal. */
static float weigh_params(const struct align__ctx *c, const struct align__op *a,
                          const struct align__op *b)
{
    const struct align__tensor *x = align__params(&c->side[0], a);
    const struct align__tensor *y = align__params(&c->side[1], b);
    float sum = 0;
    bool met = false;
    bool piece = false;
    for (unsigned i = 0; i < limit_tensors(a->nparam); i++) {
        float best = 0;
        for (unsigned j = 0; j < limit_tensors(b->nparam); j++) {
            float d =
                align__distance(&c->side[0].values.p[x[i].value], &c->side[1].values.p[y[j].value]);
            met |= d >= 0;
            piece |= d < 0 && align__dims_piece(&c->dims, x[i].dims, y[j].dims);
            best = align__likeness(d) > best ? align__likeness(d) : best;
        }
        sum += best;
    }
    if (met)
        return sum / (float)limit_tensors(a->nparam < b->nparam ? a->nparam : b->nparam);
    return piece ? 0.6F : -1;
}

/* Compares parameter shapes. 1: a common shape; 0.6: one could be a part of the other; -0.5:
 * different; 0: one operator has no parameter. */
static float param_shapes(const struct align__ctx *c, const struct align__op *a,
                          const struct align__op *b)
{
    const struct align__tensor *x = align__params(&c->side[0], a);
    const struct align__tensor *y = align__params(&c->side[1], b);
    float best = a->nparam != 0 && b->nparam != 0 ? -0.5F : 0;
    for (unsigned i = 0; i < limit_tensors(a->nparam); i++) {
        for (unsigned j = 0; j < limit_tensors(b->nparam); j++) {
            if (x[i].dims == y[j].dims)
                return 1;
            if (align__dims_piece(&c->dims, x[i].dims, y[j].dims))
                best = 0.6F;
        }
    }
    return best;
}

static float weigh_shape(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b)
{
    if (a->nout == 0 || b->nout == 0)
        return a->nout == b->nout ? 1 : 0;
    uint32_t x = align__outs(&c->side[0], a)->dims;
    uint32_t y = align__outs(&c->side[1], b)->dims;
    if (x == y)
        return 1;
    if (c->dims.list.p[x].n == c->dims.list.p[y].n)
        return 0.5F;
    return align__dims_piece(&c->dims, x, y) ? 0.6F : 0;
}

/* Tells whether the partner of module m is neither `with` nor a module around it. */
static bool is_elsewhere(const struct align__ctx *c, int side, uint32_t m, uint32_t with)
{
    uint32_t partner = c->mod[side][m];
    return partner != ALIGN__NONE && !align__inside(&c->side[1 - side], with, partner);
}

/* Returns twice the score of the modules around both operators. */
static int8_t weigh_modules(const struct align__ctx *c, uint32_t a, uint32_t b)
{
    if (a == ALIGN__NONE || b == ALIGN__NONE)
        return 0;
    if (c->mod[0][a] == b || c->mod[1][b] == a)
        return 2;
    return (int8_t) - (is_elsewhere(c, 0, a, b) + is_elsewhere(c, 1, b, a));
}

static bool reads_output(const struct align__side *s, const struct align__op *reader,
                         const struct align__op *writer)
{
    const struct align__tensor *in = align__ins(s, reader);
    const struct align__tensor *out = align__outs(s, writer);
    for (unsigned i = 0; i < limit_tensors(reader->nin); i++) {
        for (unsigned j = 0; j < limit_tensors(writer->nout); j++) {
            if (in[i].value == out[j].value)
                return true;
        }
    }
    return false;
}

/* Returns the share of a's consumers whose partner consumes b's output. */
static float weigh_users(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b)
{
    const struct align__side *s = &c->side[0];
    unsigned all = 0;
    unsigned shared = 0;
    for (unsigned i = 0; i < limit_tensors(a->nout); i++) {
        const struct align__value *v = &s->values.p[align__outs(s, a)[i].value];
        for (uint32_t k = 0; k < v->uses && all < USERS_MAX; k++) {
            uint32_t partner = c->op[0][s->users[v->first_use + k]];
            all++;
            shared +=
                partner != ALIGN__NONE && reads_output(&c->side[1], &c->side[1].ops.p[partner], b);
        }
    }
    ms_assert(shared <= all && all <= USERS_MAX);
    return all != 0 ? (float)shared / (float)all : 0;
}

static bool is_read(const struct align__side *s, const struct align__op *o)
{
    for (unsigned i = 0; i < limit_tensors(o->nout); i++) {
        if (s->values.p[align__outs(s, o)[i].value].uses != 0)
            return true;
    }
    return false;
}

/* Tells whether one operator is fused and the other a usual or possible tail of it. */
static bool is_tail(const struct align__evidence *e)
{
    return e->family >= 0.5F && e->family < 1;
}

static bool is_vetoed(const struct align__ctx *c, const struct align__evidence *e)
{
    if (!e->families_known)
        return false;
    if (e->out >= c->strict && c->by_value)
        return false;
    if (e->family < 0.2F)
        return true;
    return e->views[0] != e->views[1] && !is_tail(e);
}

static float score_structure(const struct align__evidence *e, float params)
{
    float mod = (float)e->module / 2;
    return 0.6F * e->family + 0.3F * e->shape + 0.4F * params + (mod > 0 ? 0.5F : 0.6F) * mod +
           0.5F * e->shared_use + (e->last ? 0.15F : 0) + (e->same_in ? 0.5F : 0) - 0.65F;
}

static float score_values(const struct align__evidence *e)
{
    float mod = (float)e->module / 2;
    float param = e->param < 0 ? 0 : 0.8F * e->param - (e->param < 0.2F ? 0.3F : 0);
    return e->out + 0.5F * e->in + 0.6F * e->family + 0.2F * e->shape + param +
           (mod > 0 ? 0.3F : 0.6F) * mod + 0.5F * e->shared_use - 0.8F;
}

/* Raises the input score of a fused operator whose inputs enter the operators that run in its
 * place. */
static void weigh_run(const struct align__ctx *c, uint32_t a, uint32_t b, struct align__evidence *e)
{
    const struct align__op *x = &c->side[0].ops.p[a];
    const struct align__op *y = &c->side[1].ops.p[b];
    bool a_fused = align__family_fuses(x->family, y->family);
    float in = a_fused ? weigh_entries(c, 0, x, b) : weigh_entries(c, 1, y, a);
    if (in > e->in)
        e->in = in;
    e->same_in |= in == 1;
}

/* Tells whether one is a view of a parameter and the other a view of data, where parameters are
 * known. */
static bool views_differ(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b)
{
    return c->side[0].owns && c->side[1].owns && (a->nin == 0) != (b->nin == 0) &&
           (a->nparam == 0) != (b->nparam == 0);
}

/* Checks for a veto by operators and values, before structure is weighed. */
static bool is_ruled_out(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b, struct align__evidence *e)
{
    bool both_views = e->views[0] && e->views[1];
    e->out = best_output(c, a, b, &e->blind);
    if (both_views && views_differ(c, a, b))
        return true;
    bool comparable = c->by_value && !e->blind;
    if (comparable && a->passes != b->passes && !is_tail(e) && e->family < 1)
        return true; /* one only passes on the value that the other computes */
    if (is_vetoed(c, e))
        return true;
    weigh_inputs(c, a, b, e);
    e->refuted = c->by_value && e->in > 0.8F && e->out < 0.3F;
    if (both_views && e->refuted)
        return true; /* equal inputs with different outputs: different views */
    return comparable && a->passes && b->passes && e->out < c->strict && !e->same_in;
}

void align__weigh_pair(const struct align__ctx *c, uint32_t ia, uint32_t ib,
                       struct align__evidence *e)
{
    ms_assert(ia < c->side[0].ops.n && ib < c->side[1].ops.n);
    const struct align__op *a = &c->side[0].ops.p[ia];
    const struct align__op *b = &c->side[1].ops.p[ib];
    *e = (struct align__evidence){
        .family = align__op_likeness(c, a, b),
        .families_known = a->family != ALIGN__FAM_UNKNOWN && b->family != ALIGN__FAM_UNKNOWN,
        .views = {align__family_is_view(a->family), align__family_is_view(b->family)},
        .param = -1,
        .score = -1};
    e->veto = is_ruled_out(c, a, b, e);
    if (e->veto)
        return;
    e->shape = weigh_shape(c, a, b);
    e->module = weigh_modules(c, a->parent, b->parent);
    e->last = a->last == b->last;
    e->ends = a->last && b->last;
    e->unread = !is_read(&c->side[0], a) || !is_read(&c->side[1], b);
    e->shared_use = c->round > 0 ? weigh_users(c, a, b) : 0;
    if (is_tail(e) && c->round > 0 && e->in < 1)
        weigh_run(c, ia, ib, e);
    e->score = score_structure(e, param_shapes(c, a, b));
    if (!c->by_value)
        return;
    e->param = weigh_params(c, a, b);
    float value = score_values(e);
    /* A factor between 0.3 and 1 does equally well; 0 costs 3 % of recall on 24 layers with an
     * early fault. */
    e->score = e->refuted || value > 0.5F * e->score ? value : 0.5F * e->score;
}

static bool accept_by_value(const struct align__evidence *e)
{
    bool view = e->views[0] || e->views[1];
    bool alike = e->family >= 0.5F;
    if (e->module == -2 && e->out < 0.8F)
        return false;
    return e->out > 0.5F || e->param > 0.5F || (alike && e->in > 0.5F) ||
           (e->shared_use > 0 && e->shape == 1) ||
           (alike && (!view || is_tail(e)) && e->module >= 0) || (e->out > 0.15F && e->shape == 1);
}

static bool accept_by_structure(const struct align__evidence *e)
{
    if (e->views[0] && e->views[1])
        return (e->shared_use > 0 && e->module >= 0) || (e->ends && e->module == 2);
    return e->family >= 0.7F || e->module == 2 || e->shared_use > 0;
}

bool align__accept_pair(const struct align__ctx *c, const struct align__evidence *e)
{
    if (e->veto)
        return false;
    ms_assert(e->family >= 0 && e->family <= 1 && e->module >= -2 && e->module <= 2);
    /* A view without a reader can only be identified by its value. */
    if (e->views[0] && e->views[1] && e->unread && !(c->by_value && e->out >= c->strict))
        return false;
    if (!c->by_value)
        return accept_by_structure(e);
    /* Where outputs are NaN, structure decides; which view a NaN was read from cannot be known. */
    bool blind = e->blind && !(e->views[0] && e->views[1]) && e->module >= 0;
    return accept_by_value(e) || (blind && accept_by_structure(e));
}
