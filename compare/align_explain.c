/* SPDX-License-Identifier: MIT
 *
 * align_explain: why a node of the target is paired as it is.
 *
 * The evidence of the pair is weighed again and printed, with that of the golden
 * op that came nearest to it.  Rivals are looked for among the ops around the
 * partner, which is where order allows them.
 */
#include "compare/align_int.h"

enum { AROUND = 48 };

static struct ms_str name_of(const struct align__side *s, uint32_t node)
{
    return probe_node_name(s->dump, node);
}

static void put_evidence(const struct cmp_align *al, uint32_t a, uint32_t b,
                         const struct align__evidence *e, struct ms_buf *out)
{
    static const char *const module[] = {"elsewhere", "elsewhere for one", "unknown", "", "paired"};
    if (e->veto) {
        ms_buf_puts(out, "    ruled out: the operators do different things\n");
        return;
    }
    ms_buf_printf(
        out, "    score %.2f: operator %.2f (%s, %s), shape %.2f, modules %s", (double)e->score,
        (double)e->family, align__family_text(al->c.side[0].ops.p[a].family),
        align__family_text(al->c.side[1].ops.p[b].family), (double)e->shape, module[e->module + 2]);
    if (al->c.by_value && !e->blind)
        ms_buf_printf(out, ", outputs %.2f", (double)e->out);
    ms_buf_printf(out, ", inputs %.2f, consumers %.2f", (double)e->in, (double)e->shared_use);
    if (e->param >= 0)
        ms_buf_printf(out, ", parameters %.2f", (double)e->param);
    ms_buf_putc(out, '\n');
}

/* First golden op that may be a rival of a target op: where its neighbours' partners are. */
static uint32_t place_of(const struct align__ctx *c, uint32_t b)
{
    for (uint32_t i = b + 1; i-- > 0;) {
        if (c->op[1][i] != ALIGN__NONE)
            return c->op[1][i];
    }
    return 0;
}

static uint32_t best_rival(const struct align__ctx *c, uint32_t b, struct align__evidence *best)
{
    uint32_t at = place_of(c, b);
    uint32_t from = at > AROUND ? at - AROUND : 0;
    uint32_t to = c->side[0].ops.n - at > AROUND ? at + AROUND : (uint32_t)c->side[0].ops.n;
    uint32_t rival = ALIGN__NONE;
    for (uint32_t a = from; a < to; a++) {
        struct align__evidence e;
        if (a == c->op[1][b])
            continue;
        align__weigh(c, a, b, &e);
        if (!e.veto && (rival == ALIGN__NONE || e.score > best->score)) {
            *best = e;
            rival = a;
        }
    }
    return rival;
}

static void explain_op(const struct cmp_align *al, uint32_t b, struct ms_buf *out)
{
    const struct align__ctx *c = &al->c;
    const struct align__side *g = &c->side[0];
    struct align__evidence e;
    uint32_t a = c->op[1][b];
    if (a != ALIGN__NONE) {
        align__weigh(c, a, b, &e);
        ms_buf_printf(out, "  found by search: %.*s\n", MS_STR_ARG(name_of(g, g->ops.p[a].node)));
        put_evidence(al, a, b, &e, out);
    }
    uint32_t rival = best_rival(c, b, &e);
    if (rival == ALIGN__NONE) {
        ms_buf_puts(out, "  nothing else came near\n");
        return;
    }
    ms_buf_printf(out, "  next best: %.*s\n", MS_STR_ARG(name_of(g, g->ops.p[rival].node)));
    put_evidence(al, rival, b, &e, out);
}

static void explain_pairs(const struct cmp_align *al, uint32_t target, struct ms_buf *out)
{
    static const char *const why[CMP_ALIGN_HOWS] = {"you said so",
                                                    "their values agree",
                                                    "operator, shape and place agree",
                                                    "the best there is at this place",
                                                    "one is a part of the other",
                                                    "both read the same value first",
                                                    "it is computed again for backward",
                                                    "the same pairs lie inside both"};
    const struct cmp_align_pair *p;
    size_t n = cmp_align_of(al, target, &p);
    if (n == 0)
        ms_buf_puts(out, "  no partner\n");
    for (size_t i = 0; i < n; i++) {
        const uint32_t *nodes;
        ms_buf_printf(out, "  %s %.*s, confidence %.2f: %s\n", i == 0 ? "pair" : "also",
                      MS_STR_ARG(name_of(&al->c.side[0], p[i].golden)), (double)p[i].confidence,
                      why[p[i].how]);
        for (size_t k = cmp_align_members(al, &p[i], true, &nodes); k-- > 0;)
            ms_buf_printf(out, "    in its place also %.*s\n",
                          MS_STR_ARG(name_of(&al->c.side[0], nodes[k])));
    }
}

/* The forward op whose backward a node is, or ALIGN__NONE. */
static uint32_t forward_of(const struct align__side *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->ops.n; i++) {
        uint32_t twin = s->ops.p[i].twin;
        if (s->ops.p[i].back == node || (twin != ALIGN__NONE && s->again.p[twin].back == node))
            return i;
    }
    return ALIGN__NONE;
}

void cmp_align_explain(const struct cmp_align *al, uint32_t target, struct ms_buf *out)
{
    const struct align__side *t = &al->c.side[1];
    ms_buf_printf(out, "%.*s\n", MS_STR_ARG(name_of(t, target)));
    explain_pairs(al, target, out);
    uint32_t op = al->op_of[1][target];
    if (op == ALIGN__NONE && t->dump->nodes.p[target].dir == PROBE_BACKWARD) {
        op = forward_of(t, target);
        if (op != ALIGN__NONE)
            ms_buf_printf(out, "  follows its forward, %.*s\n",
                          MS_STR_ARG(name_of(t, t->ops.p[op].node)));
    }
    if (op != ALIGN__NONE)
        explain_op(al, op, out);
    if (!al->c.by_value)
        ms_buf_puts(out, "  the runs have no values in common: structure alone counts\n");
}
