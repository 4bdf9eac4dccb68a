/* SPDX-License-Identifier: MIT
 *
 * order_rules: finds what put values in another order before an operator whose inputs seem to agree.
 *
 * Maximum, minimum, mean and norm do not show the order of elements, nor which truth values of a mask
 * are set. A roll, a window that is too wide, or token ids shifted by one therefore differ nowhere
 * until an operator combines elements of different positions. Two things give the order away: an
 * operator without a partner that moves elements or makes truth values, on the way to the inputs; and
 * an addition or a product of two tensors whose inputs agree while its result does not, which no
 * mistake in the operator itself explains.
 */
#include "compare/source/order_rules.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

#include <math.h>

/* Statistics of permuted values may differ by their order of summation. */
static const double slight = 1e-6;

static const char *const movers[] = {
    "roll",      "flip",         "fliplr",   "flipud",   "rot90",    "permute",
    "transpose", "transpose_",   "swapaxes", "swapdims", "movedim",  "t",
    "gather",    "index_select", "take",     "sort",     "randperm", "reverse",
    "einsum",    "triu",         "tril",     "tile",     "repeat",   "repeat_interleave",
    NULL};

static bool moves_elements(const struct observe__part *p, const struct observe__node *n)
{
    return observe__is_named(p, n, movers);
}

static bool is_alone(const struct observe__node *n)
{
    return n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE;
}

/* Tells whether one side runs an operator that moves elements where the other runs one that moves none, as a reshape in
 * the place of a transpose. */
static bool moves_on_one_side(const struct observe__part *p, const struct observe__node *n)
{
    bool moves[2] = {false, false};
    if (is_alone(n) || !observe__is_other_operator(p, n))
        return false;
    for (unsigned side = 0; side < 2; side++) {
        const struct ms_str path = probe_name_parse(observe__name(p, side, n->id[side])).path;
        for (const char *const *m = movers; *m != NULL; m++)
            moves[side] |= ms_str_is(probe_name_last(path), *m);
    }
    return moves[0] != moves[1];
}

/* Tells whether an operator of one side alone can change an order by taking a value apart or joining parts. */
static bool joins_parts(const struct observe__part *p, const struct observe__node *n)
{
    static const char *const names[] = {"cat",    "concat", "stack",       "chunk", "split",
                                        "unbind", "where",  "__getitem__", NULL};
    return observe__is_named(p, n, names);
}

/* Tells whether a result is off by one factor, which no order of its inputs explains. */
static bool is_off_by_factor(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) && l->count > 1 && !isnan(l->scale))
            return true;
    }
    return false;
}

/* Tells whether a result is off by one factor or shift, or cut, which no order of its inputs explains. */
static bool is_own_mistake(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) &&
            (!isnan(l->scale) ||
             l->flags & (OBSERVE__CLIPPED | OBSERVE__SHIFTED | OBSERVE__FLAGGED)))
            return true;
    }
    return false;
}

/* Tells whether an operator combines the elements of two tensors pair by pair. */
static bool is_pairwise(const struct observe__part *p, const struct observe__node *n)
{
    static const char *const names[] = {"__add__", "__iadd__", "__mul__", "__imul__",
                                        "__sub__", "add",      "add_",    "mul",
                                        "mul_",    "sub",      NULL};
    unsigned tensors = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool whole = (l->flags & OBSERVE__REAL) && l->count > 1;
        tensors += whole && !(l->flags & OBSERVE__IS_OUT);
    }
    return tensors >= 2 && observe__is_named(p, n, names) && !is_own_mistake(p, n);
}

/* ---- the way to the inputs ----------------------------------------------- */

struct way {
    const struct observe__part *p;
    bool *on;            /* by node: the inputs depend on it */
    uint32_t mover;      /* the last operator on it that moves elements and has no partner */
    uint32_t scalar;     /* leaf of the last argument on it that differs; or OBSERVE__NONE */
    uint32_t root, leaf; /* the first node on it that reads data from outside, and the input */
};

static bool is_data(const struct observe__leaf *l)
{
    unsigned shun = OBSERVE__IS_OUT | OBSERVE__IS_PARAM | OBSERVE__PLAINLY;
    return (l->flags & OBSERVE__ROOT) && (l->flags & shun) == 0 && l->count > 1 &&
           l->row[0] != OBSERVE__NONE && l->row[1] != OBSERVE__NONE;
}

/* Follows the inputs of a node to their makers on both sides. */
static void step_back(struct way *w, uint32_t i)
{
    const struct observe__node *n = &w->p->nodes.p[i];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &w->p->leaves.p[k];
        if (l->flags & OBSERVE__IS_OUT)
            continue;
        if (is_data(l))
            w->root = i, w->leaf = k;
        for (unsigned s = 0; s < 2; s++) {
            if (l->maker[s] != OBSERVE__NONE && l->maker[s] < i)
                w->on[l->maker[s]] = true;
        }
    }
}

/* Returns a plain argument that differs between the sides, of an operator that moves elements. */
static uint32_t other_argument(const struct observe__part *p, const struct observe__node *n)
{
    const bool paired = !is_alone(n);
    static const char *const pads[] = {"pad", NULL};
    bool moves = moves_elements(p, n) || observe__is_named(p, n, pads) ||
                 (p->ops.p[n->op].flags & OBSERVE__VIEW);
    for (uint32_t i = n->leaf; paired && moves && i < n->leaf + n->nleaf; i++) {
        if (p->leaves.p[i].attrs & OBSERVE__SCALAR)
            return i;
    }
    return OBSERVE__NONE;
}

/* Notes what may have moved elements in a node on the way, if nothing behind it did. */
static void look_for_mover(struct way *w, uint32_t i)
{
    const struct observe__node *n = &w->p->nodes.p[i];
    const bool alone = is_alone(n);
    if (w->mover != OBSERVE__NONE)
        return;
    w->scalar = !alone && n->kind == PROBE_NODE_API && !observe__is_other_operator(w->p, n)
                    ? other_argument(w->p, n)
                    : OBSERVE__NONE;
    if (w->scalar != OBSERVE__NONE ||
        (alone && (moves_elements(w->p, n) || joins_parts(w->p, n))) ||
        (n->kind == PROBE_NODE_API && moves_on_one_side(w->p, n)))
        w->mover = i;
}

static void walk_back(struct way *w, uint32_t from)
{
    step_back(w, from);
    for (uint32_t i = from; i-- > 0;) {
        if (!w->on[i])
            continue;
        look_for_mover(w, i);
        step_back(w, i);
    }
}

/* Returns the number of elements of a node's largest tensor. */
static float whole_of(const struct observe__part *p, const struct observe__node *n)
{
    float whole = 0;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++)
        whole = fmaxf(whole, p->leaves.p[k].count);
    return whole;
}

/* Tells whether an input has no more numbers than one element of the data becomes, as a weight of channels. */
static bool is_vector(const struct observe__part *p, const struct observe__node *n,
                      const struct observe__leaf *l, uint32_t data)
{
    return whole_of(p, n) >= l->count * p->leaves.p[data].count;
}

/* Tells whether a node reads numbers that no recorded operator made, a slice of what it was made of: indexing is often
 * not recorded. Other inputs are what one element of the data is multiplied by. */
static bool is_cut(const struct observe__part *p, uint32_t reader, uint32_t data)
{
    const struct observe__node *n = &p->nodes.p[reader];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &p->leaves.p[k];
        if (is_data(l) && (l->flags & OBSERVE__REAL) && !is_vector(p, n, l, data))
            return true;
    }
    return false;
}

/* Returns the last operator of one side alone before a node that moves elements; OBSERVE__NONE: there is none. */
static uint32_t find_mover_before(const struct observe__part *p, uint32_t reader)
{
    for (uint32_t i = reader; i-- > 0;) {
        const struct observe__node *n = &p->nodes.p[i];
        if (is_alone(n) && n->kind == PROBE_NODE_API && moves_elements(p, n))
            return i;
    }
    return OBSERVE__NONE;
}

/* Where nothing on the way moves elements: notes the last operator before a node that moves them and has another
 * argument, as the diagonal of a mask has: the values of masks do not tell who made them. */
static void find_argument_before(struct way *w, uint32_t reader)
{
    for (uint32_t i = reader; i-- > 0 && w->mover == OBSERVE__NONE;) {
        const struct observe__node *n = &w->p->nodes.p[i];
        if (n->kind != PROBE_NODE_API || !moves_elements(w->p, n))
            continue;
        w->scalar = other_argument(w->p, n);
        w->mover = w->scalar != OBSERVE__NONE ? i : OBSERVE__NONE;
    }
}

/* Returns the number of elements of a node's tensor of truth values, an input or an output; 0: it has
 * none. */
static float truths_of(const struct observe__part *p, const struct observe__node *n, unsigned place)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool truths = l->dtype[0] == MS_DT_BOOL || l->dtype[1] == MS_DT_BOOL;
        if (truths && (l->flags & OBSERVE__IS_OUT) == place && l->count > 1)
            return l->count;
    }
    return 0;
}

/* Returns the last operator that makes a mask of the size that a node reads, if it has no partner.
 * Statistics of a mask do not tell who made it. */
static uint32_t find_mask(const struct observe__part *p, uint32_t reader)
{
    float count = truths_of(p, &p->nodes.p[reader], 0);
    for (uint32_t i = reader; i-- > 0 && count > 0;) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->kind == PROBE_NODE_API && truths_of(p, n, OBSERVE__IS_OUT) == count)
            return is_alone(n) ? i : OBSERVE__NONE;
    }
    return OBSERVE__NONE;
}

/* Tells whether a leaf is a tensor of whole numbers or truth values on a side. */
static bool is_whole(const struct observe__leaf *l, unsigned side)
{
    const enum ms_dtype type = (enum ms_dtype)l->dtype[side];
    return l->row[side] != OBSERVE__NONE && l->count > 1 && ms_dtype_is_whole(type);
}

/* Tells whether an operator computes `count` whole numbers from others. A cast changes none. */
static bool computes_whole(const struct observe__part *p, const struct observe__node *n,
                           float count)
{
    bool reads = false, makes = false;
    if (n->kind != PROBE_NODE_API || n->dir != PROBE_FORWARD ||
        (p->ops.p[n->op].flags & OBSERVE__CAST))
        return false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        const bool whole = is_whole(l, 0) || is_whole(l, 1);
        reads |= whole && (l->flags & OBSERVE__IS_OUT) == 0;
        makes |= whole && (l->flags & OBSERVE__IS_OUT) && l->count == count;
    }
    return reads && makes;
}

/* Returns the number of whole numbers that a node reads on both sides; 0: it reads none. */
static float wholes_read(const struct observe__part *p, const struct observe__node *n)
{
    float most = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0 && is_whole(l, 0) && is_whole(l, 1))
            most = fmaxf(most, l->count);
    }
    return most;
}

/* Returns the last operator of one side alone, or with another one in its place, that computes as many whole numbers as
 * a node reads. Of whole numbers, as of the tokens that an expert takes, a dump holds only the largest and the smallest:
 * neither shows who made them, nor that they differ. */
static uint32_t find_whole(const struct observe__part *p, uint32_t reader)
{
    const float count = wholes_read(p, &p->nodes.p[reader]);
    for (uint32_t i = reader; i-- > 0 && count > 0;) {
        const struct observe__node *n = &p->nodes.p[i];
        if (computes_whole(p, n, count) && (is_alone(n) || observe__is_other_operator(p, n)))
            return i;
    }
    return OBSERVE__NONE;
}

static struct source__raw raw_of_mover(const struct source__judge *j, const struct way *w)
{
    const struct observe__node *n = &j->p->nodes.p[w->mover];
    enum cmp_why why = w->scalar != OBSERVE__NONE  ? CMP_WHY_SCALAR
                       : n->id[1] != OBSERVE__NONE ? CMP_WHY_EXTRA
                                                   : CMP_WHY_MISSING;
    struct source__raw raw = source__raw_of(n, why, SOURCE__NUM, 0);
    raw.leaf = w->scalar;
    return raw;
}

/* Tells whether the tensors that a node reads could all be compared: those of other sizes cannot. */
static bool is_input_known(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        unsigned flags =
            p->leaves.p[i].flags & (OBSERVE__IS_OUT | OBSERVE__REAL | OBSERVE__MEASURED);
        if (flags == OBSERVE__REAL)
            return false;
    }
    return true;
}

/* ---- what else may be in another order ------------------------------------- */

/* Share of the strength of a suspect that those have which explain it as well: they come behind it. Data is in
 * another order more often than parameters. */
static const double share_of_data = 0.25, share_of_owners = 0.2;
enum { OWNERS_MAX = 2 };

/* Returns the leaf of a parameter whose rows can be in another order; OBSERVE__NONE: the node reads none. */
static uint32_t owned_leaf(const struct observe__part *p, const struct observe__node *n)
{
    if (n->kind != PROBE_NODE_API || n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE)
        return OBSERVE__NONE;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_PARAM) && (l->flags & OBSERVE__IS_OUT) == 0 && l->count > 1)
            return i;
    }
    return OBSERVE__NONE;
}

static enum ms_rc add_other(struct source__judge *j, uint32_t reader, uint32_t node, uint32_t leaf,
                            struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[reader];
    bool owned = (j->p->leaves.p[leaf].flags & OBSERVE__IS_PARAM) != 0;
    double s = (owned ? share_of_owners : share_of_data) * log10(fmax(n->rho, 1));
    struct source__raw raw =
        source__raw_of(n, owned ? CMP_WHY_PARAMETER : CMP_WHY_INPUT, SOURCE__NUM, s);
    raw.leaf = leaf;
    raw.in = j->p->leaves.p[leaf].e;
    raw.reader = reader;
    raw.is_other = true;
    return source__add_suspect(j, node, raw, err);
}

/* Returns the first operator before a node that reads data from outside the dump, and the input. The way
 * to the data is cut where no dump records what slices a value. */
static uint32_t first_reader(const struct observe__part *p, uint32_t before, uint32_t *leaf)
{
    for (uint32_t i = 0; i < before; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; n->kind == PROBE_NODE_API && k < n->leaf + n->nleaf; k++) {
            if (!is_data(&p->leaves.p[k]))
                continue;
            *leaf = k;
            return i;
        }
    }
    return OBSERVE__NONE;
}

/* Returns the nearest operator before a node that reads other data than this input, and the input: on the way to the
 * node, else anywhere before it, because whole numbers have no way. OBSERVE__NONE: there is none. */
static uint32_t find_other_data(const struct way *w, uint32_t reader, uint32_t data, uint32_t *leaf)
{
    uint32_t off = OBSERVE__NONE;
    for (uint32_t i = reader; i-- > 0;) {
        const struct observe__node *n = &w->p->nodes.p[i];
        for (uint32_t k = n->leaf; n->kind == PROBE_NODE_API && k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &w->p->leaves.p[k];
            if (!is_data(l) || l->value == w->p->leaves.p[data].value ||
                (off != OBSERVE__NONE && !w->on[i]))
                continue;
            *leaf = k;
            off = i;
            if (w->on[i])
                return i;
        }
    }
    return off;
}

static bool is_marked(const bool *mark, const struct observe__leaf *l, uint32_t before)
{
    bool is = false;
    for (unsigned s = 0; s < 2; s++)
        is |= l->maker[s] < before && mark[l->maker[s]];
    return is;
}

/* Tells whether a node reads data itself, which may be in another order as well as what else it reads. */
static bool reads_any_data(const struct observe__part *p, const struct observe__node *n,
                           uint32_t data)
{
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &p->leaves.p[k];
        if (is_data(l) && !is_vector(p, n, l, data))
            return true;
    }
    return false;
}

/* Tells whether a node reads the data in question. */
static bool reads_data(const struct way *w, const struct observe__leaf *l, uint32_t data)
{
    return data != OBSERVE__NONE && is_data(l) && l->value == w->p->leaves.p[data].value;
}

/* Tells whether an operator combines elements of different positions and has nothing of its own that may be another:
 * no parameter and no other argument. Equal inputs in equal order then give an equal result. */
static bool is_combination(const struct observe__part *p, const struct observe__node *n)
{
    static const char *const names[] = {"matmul",
                                        "__matmul__",
                                        "bmm",
                                        "baddbmm",
                                        "addmm",
                                        "softmax",
                                        "log_softmax",
                                        "logsumexp",
                                        "cdist",
                                        "cosine_similarity",
                                        "scaled_dot_product_attention",
                                        NULL};
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        if (p->leaves.p[i].attrs & OBSERVE__SCALAR)
            return false;
    }
    return observe__is_named(p, n, names) && !observe__is_other_operator(p, n) &&
           owned_leaf(p, n) == OBSERVE__NONE;
}

/* How a value depends on data that may be in another order. */
enum dependence {
    FREE,     /* it depends on no data */
    OTHER,    /* on other data alone */
    TOGETHER, /* on this data alone: it is in another order as a whole */
    MIXED,    /* on both, so that its parts no longer belong together */
};

static enum dependence join(enum dependence a, enum dependence b)
{
    if (a == FREE || b == FREE || a == b)
        return a > b ? a : b;
    return MIXED;
}

/* Returns the dependence of an input of node i. */
static enum dependence of_input(const struct way *w, const enum dependence *made, uint32_t i,
                                uint32_t k, uint32_t data)
{
    const struct observe__leaf *l = &w->p->leaves.p[k];
    enum dependence d = FREE;
    if ((l->flags & OBSERVE__IS_OUT) || l->count <= 1)
        return FREE;
    for (unsigned s = 0; s < 2; s++)
        d = join(d, l->maker[s] < i ? made[l->maker[s]] : FREE);
    if (is_data(l) && !is_vector(w->p, &w->p->nodes.p[i], l, data))
        d = join(d, reads_data(w, l, data) ? TOGETHER : OTHER);
    return d;
}

/* Tells whether another order of the data explains that a node makes other values: it reads, besides what depends on
 * this data, what depends on other data, or what such a node has made, and no combination of them before it makes the
 * same as on the golden side. */
static enum ms_rc is_torn(const struct way *w, uint32_t data, uint32_t reader, bool *out,
                          struct ms_err *err)
{
    const struct observe__part *p = w->p;
    enum dependence *made = ms_calloc(reader + 1, sizeof *made);
    if (made == NULL)
        return ms_no_memory(err);
    bool is_refuted = false;
    for (uint32_t i = 0; i <= reader; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; n->kind == PROBE_NODE_API && k < n->leaf + n->nleaf; k++)
            made[i] = join(made[i], of_input(w, made, i, k, data));
        is_refuted |= i < reader && made[i] == MIXED && is_combination(p, n);
    }
    *out = made[reader] == MIXED && !is_refuted;
    ms_free(made);
    return MS_OK;
}

/* Tells whether another order of what a node makes, and of the data that it reads, explains that a later one combines
 * its inputs otherwise. Where all of them are computed from it, or are the same for all elements of the data, they are
 * in another order together. data: OBSERVE__NONE, or the input. */
static enum ms_rc explains(const struct way *w, uint32_t node, uint32_t data, uint32_t reader,
                           bool *out, struct ms_err *err)
{
    const struct observe__part *p = w->p;
    const struct observe__node *n = &p->nodes.p[reader];
    bool *behind = ms_calloc(reader + 1, sizeof *behind);
    if (behind == NULL)
        return ms_no_memory(err);
    behind[node] = true;
    for (uint32_t i = node + 1; i < reader; i++) {
        const struct observe__node *o = &p->nodes.p[i];
        for (uint32_t k = o->leaf; k < o->leaf + o->nleaf && !behind[i]; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            behind[i] = (l->flags & OBSERVE__IS_OUT) == 0 &&
                        (reads_data(w, l, data) || is_marked(behind, l, i));
        }
    }
    *out = false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &p->leaves.p[k];
        bool is_input = (l->flags & OBSERVE__IS_OUT) == 0 && l->count > 1;
        bool is_same = data != OBSERVE__NONE && is_vector(p, n, l, data);
        *out |= is_input && !is_same && !is_marked(behind, l, reader);
    }
    ms_free(behind);
    return MS_OK;
}

/* Finds the nearest operator on the way that multiplies by a parameter whose order explains a node; OBSERVE__NONE: there
 * is none. */
static enum ms_rc find_owner(const struct way *w, uint32_t reader, uint32_t *node, uint32_t *leaf,
                             struct ms_err *err)
{
    unsigned asked = 0;
    bool is_it = false;
    *node = OBSERVE__NONE;
    for (uint32_t i = reader; i-- > 0 && !is_it && asked < OWNERS_MAX;) {
        *leaf = w->on[i] ? owned_leaf(w->p, &w->p->nodes.p[i]) : OBSERVE__NONE;
        if (*leaf == OBSERVE__NONE)
            continue;
        asked++;
        MS_TRY(explains(w, i, OBSERVE__NONE, reader, &is_it, err));
        *node = is_it ? i : OBSERVE__NONE;
    }
    return MS_OK;
}

/* Adds the nearest parameters on the way, and the data: each may be in another order just as well, and
 * only tensors can decide. */
static enum ms_rc add_others(struct source__judge *j, const struct way *w, uint32_t reader,
                             uint32_t blamed, struct ms_err *err)
{
    unsigned owners = 0;
    if (is_off_by_factor(j->p, &j->p->nodes.p[reader]))
        return MS_OK;
    for (uint32_t i = reader; i-- > 0 && owners < OWNERS_MAX;) {
        uint32_t leaf = w->on[i] ? owned_leaf(j->p, &j->p->nodes.p[i]) : OBSERVE__NONE;
        if (leaf == OBSERVE__NONE || i == blamed)
            continue;
        owners++;
        MS_TRY(add_other(j, reader, i, leaf, err));
    }
    uint32_t leaf = w->leaf;
    uint32_t root =
        w->root == OBSERVE__NONE || w->root == reader ? first_reader(j->p, reader, &leaf) : w->root;
    if (root == OBSERVE__NONE)
        return MS_OK;
    uint32_t other_leaf = OBSERVE__NONE, other = find_other_data(w, reader, leaf, &other_leaf);
    if (other != OBSERVE__NONE && other != blamed)
        MS_TRY(add_other(j, reader, other, other_leaf, err));
    return root != blamed ? add_other(j, reader, root, leaf, err) : MS_OK;
}

/* Tells whether a node reads a few numbers that no recorded operator made, which are in another order more often than a
 * parameter. */
static bool reads_constant(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        if (is_data(&p->leaves.p[k]) && (p->leaves.p[k].flags & OBSERVE__REAL))
            return true;
    }
    return false;
}

/* Finds what is blamed where an operator combines elements pair by pair, or what depends on several data: the data,
 * or where that explains nothing, the nearest parameter of a pair. OBSERVE__NONE: nothing is. An operator that reads
 * data itself is as likely to read them in another order as what else it reads. */
static enum ms_rc blame_pairwise(const struct way *w, uint32_t i, uint32_t *blamed,
                                 struct source__raw *raw, struct ms_err *err)
{
    const struct observe__node *n = &w->p->nodes.p[i];
    const bool is_pair = is_pairwise(w->p, n);
    uint32_t leaf = w->leaf;
    bool by_data = false;
    *blamed = OBSERVE__NONE;
    if (w->root == OBSERVE__NONE || w->root == i || reads_any_data(w->p, n, w->leaf))
        return MS_OK;
    if (!is_pair && (is_own_mistake(w->p, n) || !is_combination(w->p, n)))
        return MS_OK;
    if (is_pair)
        MS_TRY(explains(w, w->root, w->leaf, i, &by_data, err));
    else
        MS_TRY(is_torn(w, w->leaf, i, &by_data, err));
    if (!is_pair && !by_data)
        return MS_OK;
    if (by_data)
        *blamed = w->root;
    else
        MS_TRY(find_owner(w, i, blamed, &leaf, err));
    if (!by_data && reads_constant(w->p, n))
        *blamed = OBSERVE__NONE;
    *raw = source__raw_of(n, by_data ? CMP_WHY_INPUT : CMP_WHY_PARAMETER, SOURCE__NUM, 0);
    raw->leaf = leaf;
    raw->in = *blamed != OBSERVE__NONE ? w->p->leaves.p[leaf].e : 0;
    return MS_OK;
}

/* Adds what has moved elements on the way; else what an operator that combines elements pair by pair
 * shows; and what explains the node as well. */
static enum ms_rc blame_order(struct source__judge *j, const struct way *w, uint32_t i,
                              struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    struct source__raw raw;
    uint32_t blamed = w->mover;
    if (w->mover != OBSERVE__NONE)
        raw = raw_of_mover(j, w);
    else
        MS_TRY(blame_pairwise(w, i, &blamed, &raw, err));
    if (blamed == OBSERVE__NONE)
        return add_others(j, w, i, OBSERVE__NONE, err);
    raw.s = (float)log10(fmax(n->rho, 1));
    raw.reader = i;
    MS_TRY(source__add_suspect(j, blamed, raw, err));
    return w->mover != OBSERVE__NONE ? MS_OK : add_others(j, w, i, blamed, err);
}

enum ms_rc source__check_reordered(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    bool usable = n->dir == PROBE_FORWARD && n->kind == PROBE_NODE_API && !j->p->cross &&
                  j->p->mode == PROBE_MODE_SUMMARY && i < j->after_backward;
    if (!usable || n->in > slight || j->dirtiest > slight || j->flag_seen ||
        !is_input_known(j->p, n))
        return MS_OK;
    struct way w = {j->p, NULL, OBSERVE__NONE, OBSERVE__NONE, OBSERVE__NONE, OBSERVE__NONE};
    w.on = ms_calloc(j->p->nodes.n + 1, sizeof *w.on);
    if (w.on == NULL)
        return ms_no_memory(err);
    w.mover = find_mask(j->p, i);
    walk_back(&w, i);
    find_argument_before(&w, i);
    if (w.mover == OBSERVE__NONE)
        w.mover = find_whole(j->p, i);
    uint32_t leaf, first = first_reader(j->p, i, &leaf);
    if (first != OBSERVE__NONE && is_cut(j->p, i, leaf)) {
        w.root = first, w.leaf = leaf;
        w.mover = w.mover == OBSERVE__NONE ? find_mover_before(j->p, i) : w.mover;
    }
    enum ms_rc rc = blame_order(j, &w, i, err);
    ms_free(w.on);
    return rc;
}

/* Tells whether an operator of the same kind agrees that runs between the one that reads data and a node: another order
 * of the data would have shown there. */
static bool has_agreed_before(const struct observe__part *p, uint32_t data, uint32_t i)
{
    for (uint32_t k = data + 1; k < i; k++) {
        const struct observe__node *n = &p->nodes.p[k];
        if (n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD && n->op == p->nodes.p[i].op &&
            !is_alone(n) && (n->flags & OBSERVE__OUT_MEASURED) && n->rho <= 1)
            return true;
    }
    return false;
}

bool source__may_read_other_order(const struct source__judge *j, uint32_t i)
{
    const size_t n = j->s->raws.n;
    const struct source__raw *last = n > 0 ? &j->s->raws.p[n - 1] : NULL;
    return last != NULL && last->is_other && last->reader == i && last->part == j->part &&
           !has_agreed_before(j->p, last->node, i);
}

/* ---- operands that changed places ------------------------------------------- */

/* Factor of a suspect whose operands changed places; their shapes may differ, so that no difference
 * is measured. */
static const double permuted = 1e4;

static bool is_whole_input(const struct observe__leaf *l)
{
    return (l->flags & (OBSERVE__IS_OUT | OBSERVE__REAL)) == OBSERVE__REAL && l->count > 1 &&
           l->row[0] != OBSERVE__NONE && l->row[1] != OBSERVE__NONE;
}

/* Tells whether two inputs that follow one another have changed places. Between two programs, inputs are
 * paired by value, so their rows are in another order; else each is made by the maker of the other. */
static bool is_swapped(const struct source__judge *j, const struct observe__leaf *x,
                       const struct observe__leaf *y)
{
    if (j->p->cross)
        return is_whole_input(x) && is_whole_input(y) && x->norm != y->norm &&
               (x->row[0] < y->row[0]) != (x->row[1] < y->row[1]);
    bool are_made = ((x->flags | y->flags) & OBSERVE__IS_OUT) == 0 &&
                    x->maker[0] != OBSERVE__NONE && y->maker[0] != OBSERVE__NONE;
    return are_made && x->maker[0] != y->maker[0] && x->maker[0] == y->maker[1] &&
           x->maker[1] == y->maker[0] && source__is_clean(j, x->maker[0]) &&
           source__is_clean(j, y->maker[0]);
}

/* Tells whether a node that reads an output of this node differs. Another implementation may join parts
 * in another order and read them so. */
static bool is_wrong_behind(const struct source__judge *j, uint32_t i)
{
    for (uint32_t r = i + 1; r < j->p->nodes.n; r++) {
        const struct observe__node *n = &j->p->nodes.p[r];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &j->p->leaves.p[k];
            if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[1] == i &&
                n->out > observe__rule.unexplained_input)
                return true;
        }
    }
    return false;
}

/* Tells whether an input has the value that another one has on the golden side, and its golden value is another's:
 * parts were joined in another order. */
static bool is_displaced(const struct observe__part *p, const struct observe__node *n,
                         uint32_t leaf)
{
    enum { PARTS = 32 };
    const struct observe__leaf *x = &p->leaves.p[leaf];
    bool is_found = false, is_lost = true;
    if (x->value == x->target || !is_whole_input(x))
        return false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf && k < leaf + PARTS; k++) {
        const struct observe__leaf *y = &p->leaves.p[k];
        const bool is_other = k != leaf && is_whole_input(y);
        is_found |= is_other && y->value == x->target;
        is_lost &= !is_other || y->target != x->value;
    }
    return is_found && !is_lost;
}

enum ms_rc source__check_permutation(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    struct ms_str name = probe_name_last(j->p->ops.p[n->op].name);
    bool joins = ms_str_eq(name, MS_STR("cat")) || ms_str_eq(name, MS_STR("stack")) ||
                 ms_str_eq(name, MS_STR("concat")) || ms_str_eq(name, MS_STR("Concat")) ||
                 ms_str_eq(name, MS_STR("Stack"));
    if (!joins || n->dir != PROBE_FORWARD || j->p->mode == PROBE_MODE_MD5)
        return MS_OK;
    for (uint32_t a = n->leaf; a + 1 < n->leaf + n->nleaf; a++) {
        const struct observe__leaf *x = &j->p->leaves.p[a];
        const bool is_other = is_swapped(j, x, x + 1) || (!j->p->cross && is_displaced(j->p, n, a));
        if (!is_other || (j->p->cross && !is_wrong_behind(j, i)))
            continue;
        double s = log10(fmax(x->e / n->floor, permuted));
        struct source__raw raw = source__raw_of(n, CMP_WHY_WIRING, SOURCE__NUM, s);
        raw.leaf = a;
        return source__add_suspect(j, i, raw, err);
    }
    return MS_OK;
}
