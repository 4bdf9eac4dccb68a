/* SPDX-License-Identifier: MIT
 *
 * overflow_marks: finds where NaN, infinity or an exploding norm originates.
 *
 *     inputs      outputs
 *     normal      abnormal    critical   it is made here
 *     abnormal    abnormal    high       it passes through
 *     abnormal    normal      medium     it is swallowed
 *     normal      normal      high       when the norm grows a hundredfold
 *
 * An argument above a hundred, such as the fill value of a mask, explains a norm that grows.
 * Buffers that an operator fills hold arbitrary values before, so they are ignored.
 */
#include "compare/graph/build/overflow_marks.h"

#include "compare/graph/graph_rules.h"

#include "probe/base/num.h"

#include <math.h>

struct side {
    bool abnormal;
    double norm;   /* the largest norm; -1: none */
    double scalar; /* the largest plain number, by size */
};

enum { GROWTH_MAX = 100 };

/* Arguments and results that are ignored, by operator. */
static const struct {
    const char *api;
    uint8_t section;
    const char *path;
} ignored[] = {
    {"torch.empty", PROBE_SEC_OUTPUT, "output.0"},
    {"torch.empty_like", PROBE_SEC_OUTPUT, "output.0"},
    {"torch.empty_strided", PROBE_SEC_OUTPUT, "output.0"},
    {"distributed.recv", PROBE_SEC_INPUT_ARGS, "input.0"},
    {"distributed.recv", PROBE_SEC_INPUT_KWARGS, "input.tensor"},
    {"distributed.all_gather", PROBE_SEC_INPUT_ARGS, "input.0"},
    {"distributed.reduce_scatter", PROBE_SEC_INPUT_ARGS, "input.0"},
    {"distributed.reduce_scatter", PROBE_SEC_INPUT_KWARGS, "input.output"},
    {"distributed._reduce_scatter_base", PROBE_SEC_INPUT_ARGS, "input.0"},
    {"distributed.all_gather_into_tensor", PROBE_SEC_INPUT_ARGS, "input.0"},
    {"distributed.reduce_scatter_tensor", PROBE_SEC_INPUT_ARGS, "input.0"},
    {"tensor.masked_fill_", PROBE_SEC_INPUT_ARGS, "input.0"},
};

/* Compares the first two parts of the name with `api`, ignoring case. */
static bool is_api(struct ms_str name, const char *api)
{
    uint32_t n = (uint32_t)strlen(api);
    if (name.n <= n || name.p[n] != '.')
        return false;
    for (uint32_t i = 0; i < n; i++) {
        char c = name.p[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + 32) : c) != api[i])
            return false;
    }
    return true;
}

static bool is_below(struct ms_str path, const char *top)
{
    uint32_t n = (uint32_t)strlen(top);
    return ms_str_starts(path, ms_str_of(top)) && (path.n == n || path.p[n] == '.');
}

static bool is_ignored(struct ms_str name, uint8_t section, struct ms_str path)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (ignored[i].section == section && is_api(name, ignored[i].api) &&
            is_below(path, ignored[i].path))
            return true;
    }
    return false;
}

static bool is_abnormal(const struct probe_num *n)
{
    return n->kind == PROBE_NUM_FLOAT && !isfinite(n->v);
}

/* The mean of finite values can overflow, as of a mask's least finite value: only the official tool
 * counts it. */
static void look_at(struct side *s, const struct probe_leaf *leaf, bool mask, unsigned last)
{
    const struct probe_num *norm = &leaf->stat[PROBE_STAT_NORM];
    double v;
    if (leaf->kind == PROBE_LEAF_VALUE) {
        if (ms_num_parse_f64(leaf->value_json.p, leaf->value_json.n, &v) && fabs(v) > s->scalar)
            s->scalar = fabs(v);
        return;
    }
    if (mask && probe_leaf_is_masked(leaf))
        return; /* minus infinity, which masks positions of a softmax */
    for (unsigned i = PROBE_STAT_MAX; i <= last; i++)
        s->abnormal |= is_abnormal(&leaf->stat[i]);
    if (ms_str_is(leaf->type, "torch.Tensor") &&
        (norm->kind == PROBE_NUM_FLOAT || norm->kind == PROBE_NUM_INT) && norm->v > s->norm)
        s->norm = norm->v;
}

static bool is_exploding(const struct side *in, const struct side *out)
{
    if (in->norm < 0 || out->norm < 0)
        return false;
    if (in->scalar > GROWTH_MAX)
        return false;
    return in->norm == 0 ? out->norm > GROWTH_MAX : out->norm / in->norm > GROWTH_MAX;
}

static enum graph__over level_of(const struct side *in, const struct side *out)
{
    if (out->abnormal)
        return in->abnormal ? GRAPH_OVER_HIGH : GRAPH_OVER_CRITICAL;
    if (in->abnormal)
        return GRAPH_OVER_MEDIUM;
    return is_exploding(in, out) ? GRAPH_OVER_HIGH : GRAPH_OVER_NONE;
}

/* Returns true for a path through lists only: the official tool does not look into objects. */
static bool is_in_lists(struct ms_str path)
{
    unsigned n = probe_name_parts(path);
    for (unsigned i = 2; i < n; i++) {
        if (!ms_str_all_digits(probe_name_part(path, i)))
            return false;
    }
    return true;
}

/* Tells whether `ignored` has an entry for this section of the operator. */
static bool has_exemption(struct ms_str name, uint8_t section)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (ignored[i].section == section && is_api(name, ignored[i].api))
            return true;
    }
    return false;
}

/* Computes the level as the official tool does, which exempts an operator as a whole: the
 * exemption fails only if a top-level tensor in an exempted section is abnormal and is not
 * the exempted one. */
static enum graph__over official_level(const struct graph__tree *g, uint32_t node,
                                       const struct probe_node *record)
{
    const struct probe_dump *d = g->side.dump;
    struct ms_str name = graph__name(g, node);
    struct side in = {.norm = -1}, out = {.norm = -1};
    bool exempt = false, fails = false;
    for (uint32_t i = record->first_row; i < record->first_row + record->nrows; i++) {
        const struct probe_row *row = &d->rows.p[i];
        struct ms_str path = probe_row_path(d, row);
        struct probe_leaf leaf;
        struct side one = {.norm = -1};
        if (row->section > PROBE_SEC_OUTPUT || !is_in_lists(path))
            continue;
        probe_row_leaf(d, row, &leaf);
        look_at(&one, &leaf, false, PROBE_STAT_MEAN);
        bool whole = probe_name_parts(path) == 2;
        fails |= whole && one.abnormal && has_exemption(name, row->section) &&
                 !is_ignored(name, row->section, path);
        struct side *side = row->section == PROBE_SEC_OUTPUT ? &out : &in;
        side->abnormal |= one.abnormal;
        side->norm = whole && one.norm > side->norm ? one.norm : side->norm;
    }
    for (uint8_t s = 0; s <= PROBE_SEC_OUTPUT; s++)
        exempt |= has_exemption(name, s);
    return exempt && !fails ? GRAPH_OVER_NONE : level_of(&in, &out);
}

/* *abnormal: an input or output of the node is abnormal. */
static enum graph__over level_of_node(const struct graph__tree *g, uint32_t node, bool *abnormal)
{
    const struct probe_dump *d = g->side.dump;
    const struct probe_node *record = &d->nodes.p[g->side.ops.p[g->nodes.p[node].op].node];
    struct side in = {.norm = -1}, out = {.norm = -1};
    if (g->rules->exempt_whole_operators)
        return official_level(g, node, record);
    for (uint32_t i = record->first_row; i < record->first_row + record->nrows; i++) {
        const struct probe_row *row = &d->rows.p[i];
        struct probe_leaf leaf;
        if (row->section > PROBE_SEC_OUTPUT ||
            is_ignored(graph__name(g, node), row->section, probe_row_path(d, row)))
            continue;
        probe_row_leaf(d, row, &leaf);
        look_at(row->section == PROBE_SEC_OUTPUT ? &out : &in, &leaf, record->dir == PROBE_FORWARD,
                PROBE_STAT_MIN);
    }
    *abnormal = in.abnormal || out.abnormal;
    return level_of(&in, &out);
}

/* A backward reads values of its forward that its record does not have: behind an abnormal forward
 * it makes nothing. */
void graph__find_overflows(struct graph__tree *g)
{
    const struct probe_dump *d = g->side.dump;
    bool abnormal_forward = false;
    for (size_t i = 0; i < g->order.n; i++) {
        struct graph__node *node = &g->nodes.p[g->order.p[i]];
        if (node->op == GRAPH_NO)
            continue;
        bool forward = d->nodes.p[g->side.ops.p[node->op].node].dir == PROBE_FORWARD;
        bool abnormal = false;
        node->over = (uint8_t)level_of_node(g, g->order.p[i], &abnormal);
        if (node->over == GRAPH_OVER_CRITICAL && !forward && abnormal_forward)
            node->over = GRAPH_OVER_HIGH;
        abnormal_forward |= forward && abnormal;
    }
}
