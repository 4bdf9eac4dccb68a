/* SPDX-License-Identifier: MIT
 *
 * waiting_stage: see the header.
 */
#include "mstx/conclude/waiting_stage.h"

#include "mstx/cluster/whatif.h"
#include "mstx/conclude/finding_kinds.h"
#include "mstx/conclude/op_rows.h"

#include "probe/base/mem.h"

#include <inttypes.h>

/* Least share of the slowdown and least gain of a step for a finding; gain from which a finding is
 * an error.  Fewer than STEPS_LEAST steps are not judged: five steps move the slowdown by 4 %. */
static const double EXPLAINS_LEAST = 0.5, GAIN_LEAST = 0.05, GREAT_GAIN = 0.10;
enum { STEPS_LEAST = 5 };

struct asking {
    struct mstx_ops ops;
    struct mstx_whatif w;
    bool *marked; /* by operation */
    struct mstx_replay_rows *spans;
    mstx_findings *to;
};

static bool is_of(const struct asking *a, const struct mstx_op_rank *r, enum mstx_share_kind kind,
                  uint32_t class)
{
    return kind == MSTX_BY_RANK ? (size_t)(r - a->ops.rank.p) == class
                                : r->stage >= 0 && (uint32_t)r->stage == class;
}

/* Adds the argument ranks: the ranks of the class as "6, 7". */
static void put_ranks(const struct asking *a, enum mstx_share_kind kind, uint32_t class,
                      struct ms_message *m)
{
    struct ms_buf text = {.max = 64}; /* only the first ones of many ranks */
    for (size_t i = 0; i < a->ops.rank.n && text.n + 12 < text.max; i++) {
        if (is_of(a, &a->ops.rank.p[i], kind, class))
            ms_buf_printf(&text, "%s%" PRId32, text.n != 0 ? ", " : "", a->ops.rank.p[i].rank);
    }
    ms_message_str(m, "ranks", ms_buf_slice(&text));
    ms_buf_free(&text);
}

static enum ms_rc add_finding(struct asking *a, enum mstx_share_kind kind, uint32_t class,
                              const struct mstx_group_share *g, struct ms_err *err)
{
    const double gain = (a->w.replay_ns - g->removed_ns) / a->w.replay_ns;
    struct mstx_finding *f =
        mstx__finding_add(a->to, "straggler", &mstx_say_stage,
                          gain >= GREAT_GAIN ? MSTX_ERROR_FINDING : MSTX_WARNING_FINDING,
                          kind == MSTX_BY_RANK ? a->ops.rank.p[class].rank : -1, gain);
    if (f == NULL)
        return ms_no_memory(err);
    if (kind == MSTX_BY_STAGE)
        ms_message_i64(&f->message, "stage", class);
    put_ranks(a, kind, class, &f->message);
    ms_message_f64(&f->message, "part", g->removes < 1 ? g->removes : 1);
    ms_message_f64(&f->message, "cost", gain);
    ms_message_i64(&f->message, "gain_ns", (int64_t)(a->w.replay_ns - g->removed_ns));
    return MS_OK;
}

/* Replays the worst class of a kind, and adds a finding (*found) when it explains most of the
 * slowdown. */
static enum ms_rc ask_worst(struct asking *a, enum mstx_share_kind kind, bool *found,
                            struct ms_err *err)
{
    mstx_shares v = {0};
    struct mstx_group_share g = {0};
    bool ok = mstx__whatif_shares(&a->w, kind, &v);
    *found = false;
    for (size_t i = 0; i < a->ops.op.n && v.n > 1; i++)
        a->marked[i] = is_of(a, &a->ops.rank.p[a->ops.op.p[i].rank], kind, v.p[0].class);
    ok = ok && (v.n < 2 || mstx__whatif_group(&a->w, a->marked, &g));
    *found = ok && v.n > 1 && g.removes >= EXPLAINS_LEAST &&
             a->w.replay_ns - g.removed_ns >= GAIN_LEAST * a->w.replay_ns;
    enum ms_rc rc = ok ? MS_OK : ms_no_memory(err);
    if (*found)
        rc = add_finding(a, kind, v.p[0].class, &g, err);
    ms_vec_free(&v);
    return rc;
}

static enum ms_rc ask(struct asking *a, struct ms_err *err)
{
    bool found = false;
    a->marked = ms_calloc(a->ops.op.n + 1, sizeof *a->marked);
    if (a->marked == NULL)
        return ms_no_memory(err);
    MS_TRY(ask_worst(a, MSTX_BY_RANK, &found, err));
    return found ? MS_OK : ask_worst(a, MSTX_BY_STAGE, &found, err);
}

static enum ms_rc replay_and_ask(struct asking *a, struct mstx_tl *tl, struct ms_err *err)
{
    const bool staged = mstx__ops_are_staged(&a->ops);
    if (!mstx__whatif_new(&a->w, &a->ops, staged ? MSTX_GRAPH_STAGED : MSTX_GRAPH_GENERIC, true))
        return ms_no_memory(err);
    enum ms_rc rc = mstx__replay_ops(a->spans, tl, &a->w, err);
    if (rc == MS_OK && staged && mstx__ops_steps(&a->ops) >= STEPS_LEAST)
        rc = ask(a, err);
    mstx__whatif_free(&a->w);
    return rc;
}

enum ms_rc mstx__find_waiting_stage(struct mstx_tl *tl, struct mstx_replay_rows *spans,
                                    mstx_findings *to, struct ms_err *err)
{
    struct asking a = {.spans = spans, .to = to};
    MS_TRY(mstx_op_rows_read(tl, &a.ops, err));
    const enum ms_rc rc = a.ops.op.n != 0 ? replay_and_ask(&a, tl, err) : MS_OK;
    mstx__ops_free(&a.ops);
    ms_free(a.marked);
    return rc;
}
