/* SPDX-License-Identifier: MIT
 *
 * call_grid: see the header.
 */
#include "compare/observe/call_grid.h"
#include "compare/align/likeness.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

#include <math.h>

/* Scores of a pair in thousandths. Without SAME_VALUES the layers of a residual network slid by
 * one. */
enum {
    LEAVES = 4,      /* tensors of a node that are compared */
    BAND = 40,       /* half width beyond the difference in length */
    BAND_MAX = 1000, /* a wider band means another program */
    SAME_OP = 500,
    SAME_NAME = 20,
    SAME_SHAPE = 100,
    SAME_VALUES = 600,
    OTHER_OP = -300,  /* needs equal values */
    OTHER_GRAD = 300, /* an evaluation before the step makes the same values without gradients */
    SKIP = -300,
    NEVER = INT32_MIN / 2
};
enum step { STOP, DIAGONAL, SKIP_GOLDEN, SKIP_TARGET };

struct item {
    uint32_t node, op, out;
    uint32_t weight; /* shape of the second tensor of an operator that multiplies by one */
    const struct read__value *leaf[LEAVES];
    unsigned n;
    int8_t grad; /* requires_grad of the first output; -1: not recorded */
    bool late;   /* it runs during backward, as a part of activation checkpointing */
};

struct grid {
    const struct probe_dump *dump[2];
    struct item *item[2];
    uint32_t n[2], band;
    int32_t *row[2];
    uint8_t *step;
    struct ms_map ops;
};

/* ---- items --------------------------------------------------------------- */

static void take_leaves(const struct observe__side *s, const struct probe_node *n, bool weighed,
                        struct item *it)
{
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct read__value *v = &s->value[i];
        if (!read__is_tensor(v))
            continue;
        if (it->n < LEAVES)
            it->leaf[it->n++] = v;
        if (observe__is_output(&s->dump->rows.p[i]) && it->out == 0) {
            it->out = v->shape | 1;
            it->grad = v->grad;
        }
    }
    if (weighed && it->n > 2)
        it->weight = it->leaf[1]->shape | 1;
}

/* Returns the number of an operator's family, or of its name where it has no family, so that two
 * spellings of one operator match. */
static uint32_t op_number(struct grid *g, struct ms_str name)
{
    struct probe_name n = probe_name_parse(name);
    struct ms_str api = ms_str_sub(name, 0, n.prefix.n + 1 + n.path.n);
    uint16_t family = align__family_find(api);
    if (family != ALIGN__FAM_UNKNOWN)
        api = ms_str_of(align__family_text(family));
    return ms_map_put(&g->ops, api, NULL);
}

static enum ms_rc list_items(struct grid *g, unsigned side, const struct observe__side *s,
                             struct ms_err *err)
{
    const struct probe_dump *d = s->dump;
    g->item[side] = ms_calloc(d->nodes.n + 1, sizeof *g->item[side]);
    if (g->item[side] == NULL)
        return ms_no_memory(err);
    bool late = false;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        const struct probe_node *n = &d->nodes.p[i];
        late |= observe__is_api(n, PROBE_BACKWARD);
        if (!observe__is_api(n, PROBE_FORWARD))
            continue;
        struct item *it = &g->item[side][g->n[side]++];
        it->node = i;
        it->grad = -1;
        it->late = late;
        it->op = op_number(g, probe_node_name(d, i));
        if (it->op == MS_MAP_NONE)
            return ms_no_memory(err);
        bool weighed = (observe__op_flags(observe__op_name(d, i)) & OBSERVE__WEIGHED) != 0;
        take_leaves(s, n, weighed, it);
    }
    return MS_OK;
}

/* ---- scoring ------------------------------------------------------------- */

static bool is_near(double a, double b, double share)
{
    return fabs(a - b) <= share * fmax(fabs(a), fabs(b));
}

static bool is_close(const struct read__value *a, const struct read__value *b)
{
    const unsigned both = a->known & b->known;
    if (a->n != b->n || a->kind != b->kind)
        return false;
    if (a->digest != 0 && b->digest != 0)
        return a->digest == b->digest;
    if ((both >> PROBE_STAT_MAX & 1) == 0)
        return false;
    bool max = is_near(a->stat[PROBE_STAT_MAX], b->stat[PROBE_STAT_MAX], 0.05);
    bool norm = (both >> PROBE_STAT_NORM & 1) == 0 ||
                is_near(a->stat[PROBE_STAT_NORM], b->stat[PROBE_STAT_NORM], 0.02);
    return max && norm;
}

/* Tells whether two operators of one family have different names and make equal values from
 * different ones: a loss of logits and a loss of probabilities are the same computation only
 * together with the operator before. */
static bool is_other_formula(const struct grid *g, const struct item *a, const struct item *b)
{
    return a->n > 1 && a->n == b->n && !is_close(a->leaf[0], b->leaf[0]) &&
           is_close(a->leaf[a->n - 1], b->leaf[b->n - 1]) &&
           !ms_str_eq(observe__op_name(g->dump[0], a->node), observe__op_name(g->dump[1], b->node));
}

/* Returns the score of two calls; NEVER: they cannot be a pair. */
static int32_t score_calls(const struct grid *g, const struct item *a, const struct item *b)
{
    unsigned most = a->n > b->n ? a->n : b->n, close = 0;
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        close += is_close(a->leaf[i], b->leaf[i]);
    int32_t values = most != 0 ? (int32_t)(SAME_VALUES * close / most) : 0;
    if (a->op != b->op)
        return most != 0 && close == most ? OTHER_OP + values : NEVER;
    if (a->weight != b->weight && a->out != b->out)
        return NEVER; /* two different linear layers, or one that replaces both */
    if (most != 0 && close < most && is_other_formula(g, a, b))
        return NEVER;
    bool name =
        ms_str_eq(probe_node_name(g->dump[0], a->node), probe_node_name(g->dump[1], b->node));
    bool other_grad = (a->grad >= 0 && b->grad >= 0 && a->grad != b->grad) || a->late != b->late;
    return SAME_OP + values + (name ? SAME_NAME : 0) + (a->out == b->out ? SAME_SHAPE : 0) -
           (other_grad ? OTHER_GRAD : 0);
}

/* ---- the grid ------------------------------------------------------------ */

/* Returns the target item of column 0 in row i. The band follows the line from the first pair of
 * items to the last. */
static int64_t column_start(const struct grid *g, uint32_t i)
{
    int64_t middle = g->n[0] != 0 ? (int64_t)i * g->n[1] / g->n[0] : 0;
    return middle - g->band;
}

static size_t grid_width(const struct grid *g)
{
    return 2 * (size_t)g->band + 1;
}

static int32_t score_at(const struct grid *g, const int32_t *row, uint32_t i, int64_t k)
{
    int64_t c = k - column_start(g, i);
    return c < 0 || c >= (int64_t)grid_width(g) ? NEVER : row[c];
}

static void fill_row(struct grid *g, uint32_t i)
{
    int32_t *now = g->row[i & 1], *before = g->row[(i + 1) & 1];
    int64_t start = column_start(g, i);
    for (size_t c = 0; c < grid_width(g); c++) {
        int64_t k = start + (int64_t)c;
        int32_t best = NEVER;
        uint8_t step = STOP;
        now[c] = NEVER;
        if (k < 0 || k > g->n[1])
            continue;
        if (i == 0 && k == 0)
            best = 0;
        if (i > 0 && k > 0) {
            int32_t base = score_at(g, before, i - 1, k - 1);
            int32_t s =
                base > NEVER ? score_calls(g, &g->item[0][i - 1], &g->item[1][k - 1]) : NEVER;
            if (s > NEVER && base + s > best)
                best = base + s, step = DIAGONAL;
        }
        int32_t up = i > 0 ? score_at(g, before, i - 1, k) : NEVER;
        if (up > NEVER && up + SKIP > best)
            best = up + SKIP, step = SKIP_GOLDEN;
        if (c > 0 && now[c - 1] > NEVER && now[c - 1] + SKIP > best)
            best = now[c - 1] + SKIP, step = SKIP_TARGET;
        now[c] = best;
        g->step[i * grid_width(g) + c] = step;
    }
}

static void walk_back(const struct grid *g, struct observe__pairing *q)
{
    uint32_t i = g->n[0], k = g->n[1];
    while (i > 0 || k > 0) {
        int64_t c = (int64_t)k - column_start(g, i);
        if (c < 0 || c >= (int64_t)grid_width(g))
            return;
        switch ((enum step)g->step[i * grid_width(g) + (size_t)c]) {
        case DIAGONAL:
            i--;
            k--;
            ms_assert(i < g->n[0] && k < g->n[1]);
            q->mate[0][g->item[0][i].node] = g->item[1][k].node;
            q->mate[1][g->item[1][k].node] = g->item[0][i].node;
            break;
        case SKIP_GOLDEN:
            i--;
            break;
        case SKIP_TARGET:
            k--;
            break;
        default:
            return;
        }
    }
}

static enum ms_rc align_grid(struct grid *g, struct observe__pairing *q, bool *done,
                             struct ms_err *err)
{
    uint32_t apart = g->n[0] > g->n[1] ? g->n[0] - g->n[1] : g->n[1] - g->n[0];
    g->band = apart + BAND;
    *done = g->band <= BAND_MAX || (uint64_t)g->n[0] * g->band < 1 << 24;
    if (!*done)
        return MS_OK;
    g->step = ms_calloc((size_t)g->n[0] + 1, grid_width(g));
    for (unsigned s = 0; s < 2; s++)
        g->row[s] = ms_alloc(grid_width(g) * sizeof *g->row[s]);
    if (g->step == NULL || g->row[0] == NULL || g->row[1] == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i <= g->n[0]; i++)
        fill_row(g, i);
    walk_back(g, q);
    return MS_OK;
}

enum ms_rc observe__align_calls(struct observe__pairing *q, bool *done, struct ms_err *err)
{
    struct grid g = {.dump = {q->dump[0], q->dump[1]}};
    enum ms_rc rc = list_items(&g, 0, q->side[0], err);
    if (rc == MS_OK)
        rc = list_items(&g, 1, q->side[1], err);
    if (rc == MS_OK)
        rc = align_grid(&g, q, done, err);
    for (unsigned s = 0; s < 2; s++) {
        ms_free(g.item[s]);
        ms_free(g.row[s]);
    }
    ms_free(g.step);
    ms_map_free(&g.ops);
    return rc;
}
