/* SPDX-License-Identifier: MIT
 *
 * whatif_report: see the header.
 */
#include "mstx/conclude/whatif_report.h"

#include "mstx/cluster/whatif.h"
#include "mstx/conclude/op_rows.h"
#include "mstx/conclude/whatif_calls.h"

#include "probe/base/assert.h"
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/order.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct mstx_whatif_run {
    struct mstx_ops ops;
    struct mstx_whatif w;
    struct mstx_whatif_how how;
    mstx_shares share[MSTX_SHARE_KINDS];
    double *other;      /* by operation: the durations that the user asked for */
    double other_ns;    /* mean step with these durations; 0: the user asked for none */
    int32_t last_stage; /* -1: the layout is unknown */
    bool *worst;        /* by rank: among the worst workers */
    struct mstx_group_share of_last_stage, of_worst;
    double *critical; /* by rank, ns on the critical path */
    bool is_capture;  /* operations are calls and local work; steps depend on each other */
    mstx_shares step; /* by step, worst first */
};

/* ---- options -------------------------------------------------------------------- */

static enum ms_rc parse_rank(struct ms_str text, int32_t *rank, struct ms_err *err)
{
    uint64_t v;
    if (!ms_str_u64(text, &v) || v > INT32_MAX)
        return ms_fail(err, MS_E_ARG, "'%.*s' is not the number of a rank", MS_STR_ARG(text));
    *rank = (int32_t)v;
    return MS_OK;
}

static enum ms_rc parse_link(struct mstx_without *w, struct ms_str text, struct ms_err *err)
{
    struct ms_str src = MS_STR(""), rest = text;
    ms_str_split(&rest, '-', &src);
    MS_TRY(parse_rank(src, &w->rank, err));
    return parse_rank(rest.p != NULL ? rest : MS_STR(""), &w->dst, err);
}

static enum ms_rc keep_name(struct mstx_without *w, struct ms_str name, struct ms_err *err)
{
    if (name.n == 0 || name.n >= sizeof w->op)
        return ms_fail(err, MS_E_ARG, "'%.*s' is not the name of operations", MS_STR_ARG(name));
    memcpy(w->op, name.p, name.n);
    return MS_OK;
}

enum ms_rc mstx_without_parse(struct mstx_without *w, struct ms_str text, struct ms_err *err)
{
    struct ms_str rest = text, what = MS_STR("");
    *w = (struct mstx_without){0};
    ms_str_split(&rest, ':', &what);
    const struct ms_str value = rest.p != NULL ? rest : MS_STR("");
    if (ms_str_is(what, "rank")) {
        w->kind = MSTX_WITHOUT_RANK;
        return parse_rank(value, &w->rank, err);
    }
    if (ms_str_is(what, "link")) {
        w->kind = MSTX_WITHOUT_LINK;
        return parse_link(w, value, err);
    }
    w->kind = MSTX_WITHOUT_OP;
    if (ms_str_is(what, "op"))
        return keep_name(w, value, err);
    return ms_fail(err, MS_E_ARG, "'%.*s' is not rank:N, op:NAME or link:FROM-TO",
                   MS_STR_ARG(text));
}

enum ms_rc mstx_scale_parse(struct mstx_without *w, struct ms_str text, struct ms_err *err)
{
    struct ms_str rest = text, name = MS_STR("");
    *w = (struct mstx_without){.kind = MSTX_SCALE};
    ms_str_split(&rest, '=', &name);
    if (rest.p == NULL || !ms_num_parse_f64(rest.p, rest.n, &w->factor) ||
        !(w->factor >= 0 && w->factor <= 1000))
        return ms_fail(err, MS_E_ARG, "'%.*s' is not NAME=FACTOR with a factor of 0 to 1000",
                       MS_STR_ARG(text));
    return keep_name(w, name, err);
}

/* ---- analysis ---------------------------------------------------------------------- */

static enum ms_rc find_rank(const struct mstx_whatif_run *r, int32_t rank, uint32_t *place,
                            struct ms_err *err)
{
    for (size_t i = 0; i < r->ops.rank.n; i++) {
        if (r->ops.rank.p[i].rank == rank) {
            *place = (uint32_t)i;
            return MS_OK;
        }
    }
    return ms_fail(err, MS_E_ARG, "the run has no operations of rank %" PRId32, rank);
}

static enum ms_rc find_op(struct mstx_whatif_run *r, const char *name, uint32_t *class,
                          struct ms_err *err)
{
    uint32_t count;
    if (!mstx__whatif_classes(&r->w, MSTX_BY_OP, &count))
        return ms_no_memory(err);
    for (size_t i = 0; i < r->w.op_name.n; i++) {
        if (ms_str_is(ms_str_of(name), r->w.op_name.p[i])) {
            *class = (uint32_t)i;
            return MS_OK;
        }
    }
    return ms_fail(err, MS_E_ARG, "the run has no operation '%s'", name);
}

static enum ms_rc find_class(struct mstx_whatif_run *r, const struct mstx_without *a,
                             enum mstx_share_kind *kind, uint32_t *class, struct ms_err *err)
{
    uint32_t dst = 0;
    switch (a->kind) {
    case MSTX_WITHOUT_RANK:
        *kind = MSTX_BY_RANK;
        return find_rank(r, a->rank, class, err);
    case MSTX_WITHOUT_LINK:
        *kind = MSTX_BY_LINK;
        MS_TRY(find_rank(r, a->rank, class, err));
        MS_TRY(find_rank(r, a->dst, &dst, err));
        *class = *class * (uint32_t)r->ops.rank.n + dst;
        return MS_OK;
    default:
        *kind = MSTX_BY_OP;
        return find_op(r, a->op, class, err);
    }
}

static bool is_scaled(const struct mstx_whatif_run *r, const struct mstx_without *a, size_t op)
{
    const struct mstx_op_type *t = &r->ops.type.p[r->ops.op.p[op].type];
    const struct ms_str name = ms_str_of(a->op);
    return (ms_str_is(name, "compute") && !t->is_comm) || (ms_str_is(name, "comm") && t->is_comm) ||
           ms_str_is(name, t->name);
}

static enum ms_rc scale_durations(struct mstx_whatif_run *r, const struct mstx_without *a,
                                  struct ms_err *err)
{
    size_t count = 0;
    for (size_t i = 0; i < r->ops.op.n; i++) {
        const bool is = is_scaled(r, a, i);
        r->other[i] *= is ? a->factor : 1;
        count += is;
    }
    return count != 0 ? MS_OK : ms_fail(err, MS_E_ARG, "the run has no operation '%s'", a->op);
}

/* Marks the operations of a rank or link.  All marked operations get peer durations together later,
 * so that none of them is the peer of another. */
static enum ms_rc mark(struct mstx_whatif_run *r, const struct mstx_without *a, bool *marked,
                       struct ms_err *err)
{
    enum mstx_share_kind kind;
    uint32_t class = 0, classes;
    if (a->kind == MSTX_SCALE)
        return MS_OK;
    MS_TRY(find_class(r, a, &kind, &class, err));
    if (!mstx__whatif_classes(&r->w, kind, &classes))
        return ms_no_memory(err);
    const bool by_ideal = kind == MSTX_BY_OP || r->is_capture;
    size_t count = 0;
    for (size_t i = 0; i < r->ops.op.n; i++) {
        const bool is_meant = r->w.class_of[i] == class;
        if (is_meant && by_ideal)
            r->other[i] = r->w.ideal[i];
        marked[i] |= is_meant && !by_ideal;
        count += is_meant;
    }
    return count != 0 ? MS_OK
                      : ms_fail(err, MS_E_ARG,
                                "the run has no link from rank %" PRId32 " to rank %" PRId32,
                                a->rank, a->dst);
}

static enum ms_rc change_durations(struct mstx_whatif_run *r, bool *marked, struct ms_err *err)
{
    memcpy(r->other, r->w.recorded, r->ops.op.n * sizeof *r->other);
    for (size_t i = 0; i < r->how.count; i++)
        MS_TRY(mark(r, &r->how.without[i], marked, err));
    if (!r->is_capture && !mstx__whatif_heal(&r->w, marked, r->other))
        return ms_no_memory(err);
    for (size_t i = 0; i < r->how.count; i++) {
        if (r->how.without[i].kind == MSTX_SCALE)
            MS_TRY(scale_durations(r, &r->how.without[i], err));
    }
    return MS_OK;
}

static enum ms_rc replay_wishes(struct mstx_whatif_run *r, struct ms_err *err)
{
    if (r->how.count == 0)
        return MS_OK;
    bool *marked = ms_calloc(r->ops.op.n + 1, sizeof *marked);
    r->other = ms_calloc(r->ops.op.n + 1, sizeof *r->other);
    enum ms_rc rc =
        marked != NULL && r->other != NULL ? change_durations(r, marked, err) : ms_no_memory(err);
    if (rc == MS_OK)
        r->other_ns = mstx__whatif_mean(&r->w, r->other);
    ms_free(marked);
    return rc;
}

static bool find_steps(struct mstx_whatif_run *r)
{
    for (size_t s = 0; s < r->w.steps; s++) {
        struct mstx_share *slot = ms_vec_push(&r->step);
        if (slot == NULL)
            return false;
        const double ideal = r->w.ideal_ns[s];
        *slot = (struct mstx_share){(uint32_t)s, ideal > 0 ? r->w.step_ns[s] / ideal : 1};
    }
    qsort(r->step.p, r->step.n, sizeof *r->step.p, mstx_share_worst_first);
    return true;
}

/* Builds the model from the operations of a production trace, or else from the calls of a
 * capture. */
static enum ms_rc build(struct mstx_whatif_run *r, struct mstx_tl *tl, struct ms_err *err)
{
    MS_TRY(mstx_op_rows_read(tl, &r->ops, err));
    r->is_capture = r->ops.op.n == 0;
    if (r->is_capture) {
        mstx__ops_free(&r->ops);
        return mstx__whatif_calls(tl, &r->ops, &r->w, err);
    }
    const bool staged = !r->how.is_generic && mstx__ops_are_staged(&r->ops);
    return mstx__whatif_new(&r->w, &r->ops, staged ? MSTX_GRAPH_STAGED : MSTX_GRAPH_GENERIC, true)
               ? MS_OK
               : ms_no_memory(err);
}

static bool measure_last_stage(struct mstx_whatif_run *r, bool *marked)
{
    r->last_stage = 0;
    for (size_t i = 0; i < r->ops.rank.n; i++) {
        const int32_t stage = r->ops.rank.p[i].stage;
        r->last_stage = stage > r->last_stage ? stage : r->last_stage;
    }
    for (size_t i = 0; i < r->ops.op.n; i++)
        marked[i] = r->ops.rank.p[r->ops.op.p[i].rank].stage == r->last_stage;
    return mstx__whatif_group(&r->w, marked, &r->of_last_stage);
}

static bool measure_worst(struct mstx_whatif_run *r, bool *marked)
{
    r->worst = ms_calloc(r->ops.rank.n + 1, sizeof *r->worst);
    if (r->worst == NULL || !mstx__whatif_worst(&r->w, r->worst))
        return false;
    for (size_t i = 0; i < r->ops.op.n; i++)
        marked[i] = r->worst[r->ops.op.p[i].rank];
    return mstx__whatif_group(&r->w, marked, &r->of_worst);
}

/* Shows how many kinds of shares are done. All kinds together take about as long as the graph before
 * them, which is 54 % of the time on 64 ranks with 2,700,000 operations. */
static void show_progress(const struct mstx_whatif_run *r, int kinds)
{
    ms_progress_part(r->how.bar, (uint64_t)(MSTX_SHARE_KINDS + kinds), 2 * MSTX_SHARE_KINDS + 1,
                     MS_PACE_NONE);
}

/* Measures the shares of the slowdown that the last stage and the worst workers explain. */
static bool measure_groups(struct mstx_whatif_run *r)
{
    bool *marked = ms_calloc(r->ops.op.n + 1, sizeof *marked);
    r->last_stage = -1;
    const bool ok = marked != NULL && (!r->ops.has_layout ||
                                       (measure_last_stage(r, marked) && measure_worst(r, marked)));
    ms_free(marked);
    return ok;
}

static enum ms_rc analyse(struct mstx_whatif_run *r, struct mstx_tl *tl, struct ms_err *err)
{
    show_progress(r, -MSTX_SHARE_KINDS);
    MS_TRY(build(r, tl, err));
    bool ok = find_steps(r);
    for (int k = 0; k < MSTX_SHARE_KINDS && ok; k++) {
        show_progress(r, k);
        ok = mstx__whatif_shares(&r->w, (enum mstx_share_kind)k, &r->share[k]);
    }
    show_progress(r, MSTX_SHARE_KINDS);
    r->critical = ms_calloc(r->ops.rank.n + 1, sizeof *r->critical);
    ok =
        ok && measure_groups(r) && r->critical != NULL && mstx__whatif_critical(&r->w, r->critical);
    return ok ? replay_wishes(r, err) : ms_no_memory(err);
}

enum ms_rc mstx_whatif_open(struct mstx_whatif_run **out, struct mstx_tl *tl,
                            const struct mstx_whatif_how *how, struct ms_err *err)
{
    struct mstx_whatif_run *r = ms_calloc(1, sizeof *r);
    *out = NULL;
    if (r == NULL)
        return ms_no_memory(err);
    r->how = *how;
    const enum ms_rc rc = analyse(r, tl, err);
    if (rc == MS_OK)
        *out = r;
    else
        mstx_whatif_close(r);
    return rc;
}

void mstx_whatif_close(struct mstx_whatif_run *r)
{
    if (r == NULL)
        return;
    mstx__whatif_free(&r->w);
    mstx__ops_free(&r->ops);
    for (int k = 0; k < MSTX_SHARE_KINDS; k++)
        ms_vec_free(&r->share[k]);
    ms_vec_free(&r->step);
    ms_free(r->other);
    ms_free(r->critical);
    ms_free(r->worst);
    ms_free(r);
}

/* ---- names of classes ---------------------------------------------------------------- */

enum { CLASS_NAME = 96 };

/* Returns the name of a class in a table. */
static const char *class_text(const struct mstx_whatif_run *r, int kind, uint32_t class,
                              char to[CLASS_NAME])
{
    int32_t src, dst;
    if (kind == MSTX_BY_OP)
        return r->w.op_name.p[class];
    if (kind == MSTX_BY_LINK) {
        mstx__whatif_link(&r->w, class, &src, &dst);
        snprintf(to, CLASS_NAME, "%" PRId32 "-%" PRId32, src, dst);
    } else {
        const int64_t number = kind == MSTX_BY_RANK ? r->ops.rank.p[class].rank : (int64_t) class;
        snprintf(to, CLASS_NAME, "%" PRId64, number);
    }
    return to;
}

static const struct {
    const char *list, *key, *head;
} kinds[MSTX_SHARE_KINDS] = {
    [MSTX_BY_RANK] = {"by_rank", "rank", "rank"},
    [MSTX_BY_DP_RANK] = {"by_dp_rank", "dp_rank", "data-parallel rank"},
    [MSTX_BY_STAGE] = {"by_stage", "stage", "stage"},
    [MSTX_BY_TP_RANK] = {"by_tp_rank", "tp_rank", "tensor-parallel rank"},
    [MSTX_BY_OP] = {"by_op", "op", "operation"},
    [MSTX_BY_LINK] = {"by_link", "link", "link"},
};

static const char pooled[] =
    "pooled over all stages, ranks and steps: mean of computing, median of communication";
static const char others[] = "as recorded, but the local work of a rank in a step, its waits for a "
                             "CPU aside, is at most the "
                             "median of the other ranks in the steps around it";

static const char *definition_text(const struct mstx_whatif_run *r)
{
    return r->is_capture ? others : pooled;
}

/* Returns a time per step; the times of a capture are those of the whole job, because its steps
 * depend on each other. */
static double of_step(const struct mstx_whatif_run *r, double ns)
{
    return r->is_capture && r->w.steps != 0 ? ns / (double)r->w.steps : ns;
}

static int64_t step_number(const struct mstx_whatif_run *r, uint32_t step)
{
    return r->is_capture ? (int64_t)step : r->ops.step.p[step].number;
}

/* ---- text ---------------------------------------------------------------------------- */

static void text_head(const struct mstx_whatif_run *r, const char *path, struct ms_buf *out)
{
    char record[MS_HUMAN_MAX], replay[MS_HUMAN_MAX], ideal[MS_HUMAN_MAX];
    const struct mstx_whatif *w = &r->w;
    const size_t steps = w->steps;
    ms_buf_printf(out, "%s: %zu step%s of %zu rank%s, %zu operations\n", path, steps,
                  steps == 1 ? "" : "s", r->ops.rank.n, r->ops.rank.n == 1 ? "" : "s", r->ops.op.n);
    ms_buf_printf(
        out, "slowdown %.3f (%.3f to %.3f over resampled steps): a step takes %s, ideally %s\n",
        w->slowdown, w->low, w->high, ms_human_time(replay, (int64_t)of_step(r, w->replay_ns)),
        ms_human_time(ideal, (int64_t)of_step(r, w->mean_ideal_ns)));
    ms_buf_printf(out, "  ideal durations are %s\n", definition_text(r));
    if (!r->is_capture)
        ms_buf_printf(out, "  against peers of the same stage alone: slowdown %.3f\n",
                      w->peers_slowdown);
    ms_buf_printf(out, "model error %.2f %%: recorded steps take %s\n", 100 * w->model_error,
                  ms_human_time(record, (int64_t)of_step(r, w->record_ns)));
    if (w->left_out != 0)
        ms_buf_printf(out, "%zu operations wait for each other in a circle and are left out\n",
                      w->left_out);
}

static void text_groups(const struct mstx_whatif_run *r, struct ms_buf *out)
{
    if (r->last_stage < 0)
        return;
    ms_buf_printf(
        out, "the last stage explains %.1f %% of the slowdown, the worst workers %.1f %%: rank",
        100 * r->of_last_stage.removes, 100 * r->of_worst.removes);
    for (size_t i = 0; i < r->ops.rank.n; i++) {
        if (r->worst[i])
            ms_buf_printf(out, " %" PRId32, r->ops.rank.p[i].rank);
    }
    ms_buf_putc(out, '\n');
}

static void text_wishes(const struct mstx_whatif_run *r, struct ms_buf *out)
{
    char then[MS_HUMAN_MAX];
    if (r->how.count == 0)
        return;
    ms_buf_printf(out, "with these changes a step takes %s, %.2f %% less\n",
                  ms_human_time(then, (int64_t)of_step(r, r->other_ns)),
                  100 * (1 - r->other_ns / r->w.replay_ns));
}

static size_t shown_rows(const struct mstx_whatif_run *r, size_t n)
{
    return r->how.most != 0 && n > r->how.most ? r->how.most : n;
}

static void text_shares(const struct mstx_whatif_run *r, int kind, struct ms_buf *out)
{
    const mstx_shares *v = &r->share[kind];
    const size_t shown = shown_rows(r, v->n);
    char name[CLASS_NAME];
    if (v->n < 2)
        return;
    ms_buf_printf(out, "\n  %-30s  slowdown\n", kinds[kind].head);
    for (size_t i = 0; i < shown; i++)
        ms_buf_printf(out, "  %-30s  %8.4f\n", class_text(r, kind, v->p[i].class, name),
                      v->p[i].slowdown);
    ms_human_more(out, v->n - shown, "");
}

static void text_steps(const struct mstx_whatif_run *r, struct ms_buf *out)
{
    const size_t shown = shown_rows(r, r->step.n);
    ms_buf_printf(out, "\n  %-30s  slowdown\n", "step");
    for (size_t i = 0; i < shown; i++)
        ms_buf_printf(out, "  %-30" PRId64 "  %8.4f\n", step_number(r, r->step.p[i].class),
                      r->step.p[i].slowdown);
    ms_human_more(out, r->step.n - shown, "");
}

static void text_critical(const struct mstx_whatif_run *r, struct ms_buf *out)
{
    double all = 0;
    for (size_t i = 0; i < r->ops.rank.n; i++)
        all += r->critical[i];
    ms_buf_printf(out, "\n  %-30s  of the critical path\n", "rank");
    for (size_t i = 0; i < r->ops.rank.n; i++) {
        if (r->critical[i] > 0)
            ms_buf_printf(out, "  %-30" PRId32 "  %6.2f %%\n", r->ops.rank.p[i].rank,
                          100 * r->critical[i] / all);
    }
}

enum ms_rc mstx_whatif_text(struct mstx_whatif_run *r, const char *path, struct ms_buf *out,
                            struct ms_err *err)
{
    static const enum mstx_share_kind order[] = {MSTX_BY_STAGE, MSTX_BY_DP_RANK, MSTX_BY_TP_RANK,
                                                 MSTX_BY_RANK,  MSTX_BY_OP,      MSTX_BY_LINK};
    text_head(r, path, out);
    text_groups(r, out);
    text_wishes(r, out);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        text_shares(r, order[i], out);
    text_steps(r, out);
    text_critical(r, out);
    return ms_buf_check(out, err);
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void json_key(const struct mstx_whatif_run *r, int kind, uint32_t class,
                     struct ms_jwrite *out)
{
    char name[CLASS_NAME];
    int64_t number;
    const char *text = class_text(r, kind, class, name);
    if (kind != MSTX_BY_OP && ms_str_i64(ms_str_of(text), &number))
        ms_jwrite_ki64(out, kinds[kind].key, number);
    else
        ms_jwrite_kstr(out, kinds[kind].key, text);
}

static void json_shares(const struct mstx_whatif_run *r, int kind, struct ms_jwrite *out)
{
    ms_jwrite_key(out, ms_str_of(kinds[kind].list));
    ms_jwrite_arr(out);
    for (size_t i = 0; i < r->share[kind].n; i++) {
        ms_jwrite_obj(out);
        json_key(r, kind, r->share[kind].p[i].class, out);
        ms_jwrite_kf64(out, "slowdown", r->share[kind].p[i].slowdown);
        ms_jwrite_obj_end(out);
    }
    ms_jwrite_arr_end(out);
}

static void json_steps(const struct mstx_whatif_run *r, struct ms_jwrite *out)
{
    ms_jwrite_key(out, MS_STR("by_step"));
    ms_jwrite_arr(out);
    for (size_t i = 0; i < r->step.n; i++) {
        const uint32_t s = r->step.p[i].class;
        ms_jwrite_obj(out);
        ms_jwrite_ki64(out, "step", step_number(r, s));
        ms_jwrite_kf64(out, "slowdown", r->step.p[i].slowdown);
        ms_jwrite_kf64(out, "seconds", r->w.step_ns[s] / 1e9);
        ms_jwrite_kf64(out, "ideal_seconds", r->w.ideal_ns[s] / 1e9);
        ms_jwrite_obj_end(out);
    }
    ms_jwrite_arr_end(out);
}

static void json_group(const struct mstx_group_share *g, struct ms_jwrite *out)
{
    ms_jwrite_kf64(out, "adds", g->adds);
    ms_jwrite_kf64(out, "removes", g->removes);
    ms_jwrite_kf64(out, "added_seconds", g->added_ns / 1e9);
    ms_jwrite_kf64(out, "removed_seconds", g->removed_ns / 1e9);
    ms_jwrite_obj_end(out);
}

static void json_groups(const struct mstx_whatif_run *r, struct ms_jwrite *out)
{
    if (r->last_stage < 0)
        return;
    ms_jwrite_key(out, MS_STR("last_stage"));
    ms_jwrite_obj(out);
    ms_jwrite_ki64(out, "stage", r->last_stage);
    json_group(&r->of_last_stage, out);
    ms_jwrite_key(out, MS_STR("worst_workers"));
    ms_jwrite_obj(out);
    ms_jwrite_key(out, MS_STR("ranks"));
    ms_jwrite_arr(out);
    for (size_t i = 0; i < r->ops.rank.n; i++) {
        if (r->worst[i])
            ms_jwrite_i64(out, r->ops.rank.p[i].rank);
    }
    ms_jwrite_arr_end(out);
    json_group(&r->of_worst, out);
}

static void json_critical(const struct mstx_whatif_run *r, struct ms_jwrite *out)
{
    ms_jwrite_key(out, MS_STR("critical_path"));
    ms_jwrite_arr(out);
    for (size_t i = 0; i < r->ops.rank.n; i++) {
        ms_jwrite_obj(out);
        ms_jwrite_ki64(out, "rank", r->ops.rank.p[i].rank);
        ms_jwrite_kf64(out, "seconds", r->critical[i] / 1e9);
        ms_jwrite_obj_end(out);
    }
    ms_jwrite_arr_end(out);
}

enum ms_rc mstx_whatif_json(struct mstx_whatif_run *r, struct ms_jwrite *out, struct ms_err *err)
{
    const struct mstx_whatif *w = &r->w;
    ms_jwrite_obj(out);
    ms_jwrite_kf64(out, "slowdown", w->slowdown);
    ms_jwrite_kstr(out, "definition", definition_text(r));
    ms_jwrite_key(out, MS_STR("interval"));
    ms_jwrite_arr(out);
    ms_jwrite_f64(out, w->low);
    ms_jwrite_f64(out, w->high);
    ms_jwrite_arr_end(out);
    ms_jwrite_kf64(out, "model_error", w->model_error);
    if (!r->is_capture)
        ms_jwrite_kf64(out, "slowdown_to_peers", w->peers_slowdown);
    ms_jwrite_ki64(out, "steps", (int64_t)w->steps);
    ms_jwrite_kf64(out, "recorded_seconds", of_step(r, w->record_ns) / 1e9);
    ms_jwrite_kf64(out, "replayed_seconds", of_step(r, w->replay_ns) / 1e9);
    ms_jwrite_kf64(out, "ideal_seconds", of_step(r, w->mean_ideal_ns) / 1e9);
    if (r->how.count != 0)
        ms_jwrite_kf64(out, "changed_seconds", of_step(r, r->other_ns) / 1e9);
    for (int k = 0; k < MSTX_SHARE_KINDS; k++)
        json_shares(r, k, out);
    json_steps(r, out);
    json_groups(r, out);
    json_critical(r, out);
    ms_jwrite_obj_end(out);
    return out->err.rc != MS_OK && err != NULL ? (*err = out->err).rc : out->err.rc;
}

/* ---- ideal timeline ---------------------------------------------------------------------- */

/* Steps are drawn as in published traces: each at 1.1 times the sum of all steps before it after
 * the first step.  Each rank has five tracks, whose names give its stage. */
static const double STEPS_APART = 1.1;
static const char *const tracks[] = {"compute", "pp-comm", "tp-comm", "dp-comm", "misc"};
enum { TRACKS = sizeof tracks / sizeof *tracks };
static_assert((int)TRACKS == (int)MSTX_OP_TRACKS, "each track has a name");

static void name_track(const struct mstx_op_rank *rank, int track, struct ms_jwrite *out)
{
    char name[CLASS_NAME];
    snprintf(name, sizeof name, "PP rank %" PRId32 ", TP rank %" PRId32 ", %s",
             rank->stage >= 0 ? rank->stage : 0, rank->tp >= 0 ? rank->tp : 0, tracks[track]);
    ms_jwrite_obj(out);
    ms_jwrite_kstr(out, "name", "thread_name");
    ms_jwrite_ki64(out, "pid", rank->dp >= 0 ? rank->dp : 0);
    ms_jwrite_ki64(out, "tid", (int64_t)rank->rank * TRACKS + track);
    ms_jwrite_kstr(out, "ph", "M");
    ms_jwrite_key(out, MS_STR("args"));
    ms_jwrite_obj(out);
    ms_jwrite_kstr(out, "name", name);
    ms_jwrite_obj_end(out);
    ms_jwrite_obj_end(out);
}

static void draw_op(const struct mstx_whatif_run *r, size_t step, size_t i, double end_ns,
                    struct ms_jwrite *out)
{
    const struct mstx_op *op = &r->ops.op.p[i];
    const struct mstx_op_rank *rank = &r->ops.rank.p[op->rank];
    ms_jwrite_obj(out);
    ms_jwrite_kstr(out, "name", r->ops.type.p[op->type].name);
    ms_jwrite_kstr(out, "ph", "X");
    ms_jwrite_ki64(out, "pid", rank->dp >= 0 ? rank->dp : 0);
    ms_jwrite_ki64(out, "tid",
                   (int64_t)rank->rank * TRACKS + mstx__op_track(&r->ops.type.p[op->type]));
    ms_jwrite_kf64(out, "ts", (end_ns - r->w.ideal[i]) / 1e3);
    ms_jwrite_kf64(out, "dur", r->w.ideal[i] / 1e3);
    ms_jwrite_key(out, MS_STR("args"));
    ms_jwrite_obj(out);
    ms_jwrite_ki64(out, "step", r->ops.step.p[step].number);
    ms_jwrite_ki64(out, "seq_id", op->seq);
    ms_jwrite_obj_end(out);
    ms_jwrite_obj_end(out);
}

static void draw_steps(struct mstx_whatif_run *r, struct ms_jwrite *out)
{
    const struct mstx_deps *d = &r->w.deps;
    double origin = 0;
    for (size_t s = 0; s < mstx__ops_steps(&r->ops); s++) {
        const size_t from = d->step.p[s], to = d->step.p[s + 1];
        const double step = mstx__deps_replay_one(d, from, to, r->w.ideal, r->w.t);
        for (size_t v = from; v < to; v++) {
            if (d->op.p[v] != MSTX_NO_OP)
                draw_op(r, s, d->op.p[v], origin + r->w.t[v - from], out);
        }
        origin += STEPS_APART * step;
    }
}

enum ms_rc mstx_whatif_ideal(struct mstx_whatif_run *r, const char *file, struct ms_err *err)
{
    struct ms_out *o;
    struct ms_jwrite w;
    MS_TRY(ms_out_create(&o, file, err));
    ms_jwrite_init(&w, 0, 1 << 18);
    w.drain = ms_out_sink;
    w.ctx = o;
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < r->ops.rank.n * TRACKS; i++)
        name_track(&r->ops.rank.p[i / TRACKS], (int)(i % TRACKS), &w);
    draw_steps(r, &w);
    ms_jwrite_arr_end(&w);
    const enum ms_rc rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(o, err);
    ms_out_abort(o);
    return rc;
}
