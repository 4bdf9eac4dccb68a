/* SPDX-License-Identifier: MIT
 *
 * graph_run: processes all ranks and steps of one or two runs, one after the other, into
 * one database.
 */
#include "compare/graph/build/graph_db.h"
#include "compare/graph/build/node_judge.h"
#include "compare/graph/build/overflow_marks.h"
#include "compare/graph/build/rank_comm.h"
#include "compare/graph/graph_rules.h"
#include "compare/graph/merge/merged_text.h"
#include "compare/graph/merge/rank_merge.h"
#include "compare/graph/run/rank_pairs.h"
#include "probe/base/assert.h"
#include "probe/base/clock.h"
#include "probe/base/trace.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

struct run {
    const struct graph_conf *conf;
    struct ms_pool *pool;
    struct graph_made *made;
    const struct graph_rules *rules;
    struct graph__rank_pairs pairs;
    struct graph__db *db;
    struct graph__items *items; /* by worker of the pool */
    struct graph__comm *comm;
    struct cmp_source *source; /* NULL: suspects are not searched */
    enum probe_mode mode;
    uint32_t micro_steps; /* micro steps of the first graph */
    size_t done, total;   /* pairs of ranks, or steps whose ranks are merged */
    int shown;            /* last percentage reported */
    double from, to;      /* share of the pair that the current stage covers */
    /* frameworks of the first pair; the second is NULL without a golden side */
    const char *framework[2];
    /* number of detached subtrees; number of gradients that were not attached */
    uint32_t repaired[2];
    struct ms_err first_reason; /* why the first pair was left out */
};

/* ---- progress ----------------------------------------------------------------- */

static void print_progress(void *ctx, double share)
{
    struct run *r = ctx;
    double share_of_pair = r->from + (r->to - r->from) * share;
    int percent = (int)(98 * ((double)r->done + share_of_pair) / (double)r->total);
    if (percent <= r->shown || r->conf->progress == NULL)
        return;
    r->shown = percent;
    r->conf->progress(r->conf->ctx, percent);
}

static void begin_stage(struct run *r, double from, double to)
{
    r->from = from;
    r->to = to;
    print_progress(r, 0);
}

static void print_progress_end(struct run *r, int percent)
{
    if (r->conf->progress != NULL)
        r->conf->progress(r->conf->ctx, percent);
}

/* ---- one pair of ranks ------------------------------------------------------------------- */

static enum ms_rc check_together(const struct run *r, const struct graph__pair *p,
                                 struct ms_err *err)
{
    const struct probe_dump *t = p->t.side.dump, *b = p->b.side.dump;
    bool t_ms = t->framework == PROBE_FW_MINDSPORE, b_ms = b->framework == PROBE_FW_MINDSPORE;
    bool aligned = r->rules->align && !r->conf->fuzzy && r->conf->matching != CMP_MATCH_EXACT;
    if (t_ms != b_ms && !r->conf->map_layers && !aligned) {
        ms_fail(err, MS_E_ARG, "the target is of %s, the golden side of %s",
                probe_framework_text(t->framework), probe_framework_text(b->framework));
        ms_err_hint(err, "say how names correspond with --layer_mapping");
        return MS_E_ARG;
    }
    if (t->mode == b->mode)
        return MS_OK;
    ms_fail(err, MS_E_ARG, "%s compares as %s, %s as %s", t->path, probe_mode_text(t->mode),
            b->path, probe_mode_text(b->mode));
    ms_err_hint(err, "dump both sides with the same task and the same kind of summary");
    return MS_E_ARG;
}

static enum ms_rc match_nodes(struct run *r, struct graph__pair *p, struct ms_err *err)
{
    const struct graph_conf *c = r->conf;
    if (c->map_layers && c->merge == NULL && !(r->rules->fuzzy_before_layers && c->fuzzy))
        return graph__match_layers(p, err);
    if (c->fuzzy || c->merge != NULL)
        return graph__match_fuzzy(&p->t, &p->b, err);
    bool align =
        c->matching == CMP_MATCH_ALWAYS ||
        (c->matching == CMP_MATCH_AUTO && cmp_align_wanted(p->t.side.dump, p->b.side.dump));
    if (align && r->rules->align)
        return graph__match_aligned(p, r->pool, err);
    graph__match_same(&p->t, &p->b);
    if (r->rules->align && c->matching == CMP_MATCH_AUTO)
        graph__match_moved(&p->t, &p->b);
    return MS_OK;
}

static void set_rules(struct run *r, struct graph__pair *p)
{
    struct cmp_conf *c = &p->set.conf;
    c->rules = r->rules->rows;
    c->layer.on = r->conf->map_layers;
    c->layer.file = r->conf->layer_file;
    p->set.mode = p->t.side.dump->mode;
    p->set.is_graph = true;
    p->red_empty = r->rules->red_empty || r->conf->md5_index;
}

static enum ms_rc compare_trees(struct run *r, struct graph__pair *p, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("match");
    MS_TRY(check_together(r, p, err));
    MS_TRY(match_nodes(r, p, err));
    graph__share_micro_steps(&p->t, &p->b);
    ms_span_end(&span);
    span = ms_span_begin("measure");
    enum ms_rc rc = graph__measure(p, r->pool, err);
    ms_span_end(&span);
    return rc;
}

struct opening {
    struct run *r;
    const struct graph__rank_pair *c;
    struct graph__pair *p;
};

/* Opens one side. Two sides are read in parallel, each by one thread. */
static enum ms_rc open_side(void *ctx, size_t side, unsigned worker, struct ms_err *err)
{
    const struct opening *o = ctx;
    (void)worker;
    return graph__open(side == 0 ? &o->p->t : &o->p->b, o->c->dir[side], o->r->rules, NULL, err);
}

static enum ms_rc open_rank_pair(struct run *r, const struct graph__rank_pair *c,
                                 struct graph__pair *p, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("read");
    struct opening o = {r, c, p};
    if (!p->dual)
        MS_TRY(graph__open(&p->t, c->dir[0], r->rules, r->pool, err));
    else
        MS_TRY(ms_pool_run(r->pool, 2, open_side, &o, err));
    begin_stage(r, 0.2, 0.3);
    if (r->conf->overflow)
        graph__find_overflows(&p->t);
    if (r->conf->overflow && p->dual)
        graph__find_overflows(&p->b);
    ms_span_end(&span);
    set_rules(r, p);
    return p->dual ? compare_trees(r, p, err) : MS_OK;
}

static enum ms_rc put_side(struct run *r, struct graph__pair *p, struct graph__place place,
                           struct ms_err *err)
{
    const struct graph__tree *g = place.golden ? &p->b : &p->t;
    int64_t first_row = graph__db_rows(r->db);
    ms_assert(!place.golden || p->dual);
    const struct graph__db_calls calls = {graph__items_make, r->items, print_progress, r};
    MS_TRY(graph__db_put(r->db, p, place, r->pool, &calls, err));
    r->made->nodes[place.golden] += g->order.n;
    r->repaired[0] += g->detached;
    r->repaired[1] += g->dropped;
    bool together = r->pairs.list.n > 1 && r->conf->merge == NULL;
    return together ? graph__comm_note(r->comm, g, place, first_row, err) : MS_OK;
}

static enum ms_rc write_rank_pair(struct run *r, const struct graph__rank_pair *c,
                                  struct graph__pair *p, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("write");
    struct graph__place place = {c->step, c->rank, false};
    if (r->made->nodes[0] == 0) { /* the first pair determines the properties of the run */
        r->mode = p->set.mode;
        r->micro_steps = p->t.micro_steps;
        r->framework[0] = probe_framework_text(p->t.side.dump->framework);
        r->framework[1] = p->dual ? probe_framework_text(p->b.side.dump->framework) : NULL;
    }
    begin_stage(r, 0.3, p->dual ? 0.7 : 1);
    MS_TRY(put_side(r, p, place, err));
    for (size_t i = 0; i < p->t.order.n; i++) {
        const struct graph__node *n = &p->t.nodes.p[p->t.order.p[i]];
        r->made->states[n->state]++;
        r->made->matched += n->match != GRAPH_NO;
    }
    place.golden = true;
    begin_stage(r, 0.7, 1);
    enum ms_rc rc = p->dual ? put_side(r, p, place, err) : MS_OK;
    ms_span_end(&span);
    return rc;
}

/* Adds a pair of dumps to the search for suspects, which compares tensors by their statistics. */
static enum ms_rc observe_dumps(struct run *r, const struct graph__rank_pair *c, struct ms_err *err)
{
    struct cmp_conf conf = {.summarise = true, .matching = r->conf->matching};
    struct cmp *cmp = NULL;
    char *t = ms_path_join(c->dir[0], "dump.json"), *b = ms_path_join(c->dir[1], "dump.json");
    struct ms_span span = ms_span_begin("suspects");
    enum ms_rc rc =
        t != NULL && b != NULL ? cmp_open(&cmp, &conf, t, b, r->pool, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = cmp_source_add(r->source, cmp, (int)c->rank, (int)c->step, r->pool, err);
    ms_span_end(&span);
    cmp_close(cmp);
    ms_free(t);
    ms_free(b);
    return rc;
}

/* Searches suspects of a pair. Failures are reported as a note, because the graph is useful without
 * suspects. */
static enum ms_rc observe_rank_pair(struct run *r, const struct graph__rank_pair *c,
                                    struct ms_err *err)
{
    struct ms_err why = {0};
    enum ms_rc rc = r->mode != PROBE_MODE_STRUCTURE ? observe_dumps(r, c, &why) : MS_OK;
    if (rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED) {
        *err = why;
        return rc;
    }
    if (rc != MS_OK)
        graph__note_line(r->conf, "no suspects are looked for: %s", why.msg);
    return MS_OK;
}

static enum ms_rc put_findings(struct run *r, struct ms_err *err)
{
    const struct cmp_suspect *list;
    if (r->source == NULL)
        return MS_OK;
    MS_TRY(cmp_source_find(r->source, err));
    r->made->suspects = cmp_source_suspects(r->source, &list);
    if (r->made->suspects != 0) {
        struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
        ms_message_speak(list[0].message, &text);
        snprintf(r->made->suspect, sizeof r->made->suspect, "%.*s: %.*s",
                 MS_STR_ARG(list[0].target.p != NULL ? list[0].target : list[0].golden),
                 MS_STR_ARG(ms_buf_slice(&text)));
        ms_buf_free(&text);
    }
    return graph__db_findings(r->db, list, r->made->suspects, err);
}

/* Emits a note for every row whose tensors were compared. */
static void log_items(struct run *r, const struct graph__pair *p)
{
    struct ms_buf line = {.max = 1 << 20};
    for (size_t i = 0; p->set.mode == PROBE_MODE_TENSOR && i < p->rows.pairs.n; i++) {
        const struct cmp__pair *pair = &p->rows.pairs.p[i];
        if (pair->b == GRAPH_NO)
            continue;
        ms_buf_clear(&line);
        ms_buf_puts(&line, "compared ");
        cmp__side_name(&p->t.side, pair->t, false, &line);
        ms_buf_puts(&line, " with ");
        cmp__side_name(&p->b.side, pair->b, false, &line);
        graph__note_line(r->conf, "%s", ms_buf_z(&line));
    }
    ms_buf_free(&line);
}

/* Reports problems of the dumps, such as truncated files, which are read as far as possible. */
static void note_problems(struct run *r, const struct graph__pair *p)
{
    const struct graph__tree *const both[] = {&p->t, &p->b};
    for (int k = 0; k < (p->dual ? 2 : 1); k++) {
        const struct probe_dump *d = both[k]->side.dump;
        for (size_t i = 0; i < d->problems.n; i++)
            graph__note_line(r->conf, "%s: %.*s", d->path, MS_STR_ARG(d->problems.p[i]));
    }
}

/* Says whether a rank that cannot be read is left out, so that the others are still shown; keeps the
 * first reason. */
static bool leave_out(struct run *r, enum ms_rc rc, const struct ms_err *why)
{
    if (rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED || r->pairs.list.n == 1)
        return false;
    if (r->made->left_out++ == 0)
        r->first_reason = *why;
    graph__note_line(r->conf, "left out: %s", why->msg);
    return true;
}

/* Adds a pair to the database; *kept becomes false when it cannot be read and is left out. */
static enum ms_rc make_rank_pair(struct run *r, const struct graph__rank_pair *c, bool *kept,
                                 struct ms_err *err)
{
    struct graph__pair p;
    struct ms_err why = {0};
    graph__pair_init(&p, graph__is_dual(r->conf));
    enum ms_rc rc = open_rank_pair(r, c, &p, &why);
    *kept = rc == MS_OK;
    if (rc != MS_OK) {
        graph__pair_close(&p);
        r->done++;
        if (leave_out(r, rc, &why))
            return MS_OK;
        *err = why;
        return rc;
    }
    note_problems(r, &p);
    if (r->conf->log_items)
        log_items(r, &p);
    rc = write_rank_pair(r, c, &p, err);
    graph__pair_close(&p);
    if (rc == MS_OK && r->source != NULL)
        rc = observe_rank_pair(r, c, err);
    r->done++;
    return rc;
}

/* ---- merged ranks ------------------------------------------------------------------- */

/* Lists the rank directories of one step and side, in order. */
static enum ms_rc list_dumps(const struct run *r, bool golden, int64_t step, struct graph__dumps *d,
                             const char **dirs, int64_t *ranks, struct ms_err *err)
{
    const struct probe_places *places = &r->pairs.places[golden];
    const char *top = golden ? r->conf->golden : r->conf->target;
    *d = (struct graph__dumps){
        .dirs = dirs, .ranks = ranks, .what = golden ? "golden side" : "target"};
    for (size_t i = 0; i < places->list.n; i++) {
        const struct probe_place *p = &places->list.p[i];
        struct graph__rank_pair c = graph__numbers_of(p, top);
        if (c.step != step)
            continue;
        if (graph__path_below(p, top)[0] == '\0') {
            ms_fail(err, MS_E_ARG, "%s: is one rank, there is nothing to merge", p->dir);
            ms_err_hint(err, "give the directory that holds rank0, rank1 and so on");
            return MS_E_ARG;
        }
        uint32_t at = d->n++;
        for (; at > 0 && ranks[at - 1] > c.rank; at--) {
            ranks[at] = ranks[at - 1];
            dirs[at] = dirs[at - 1];
        }
        ranks[at] = c.rank;
        dirs[at] = p->dir;
    }
    return MS_OK;
}

static enum ms_rc merge_side(struct run *r, bool golden, int64_t step, struct graph__merges *out,
                             struct ms_err *err)
{
    struct graph__dumps d;
    size_t n = r->pairs.places[golden].list.n;
    const char **dirs = ms_calloc(n, sizeof *dirs);
    int64_t *ranks = ms_calloc(n, sizeof *ranks);
    enum ms_rc rc = dirs != NULL && ranks != NULL
                        ? list_dumps(r, golden, step, &d, dirs, ranks, err)
                        : ms_no_memory(err);
    struct ms_span span = ms_span_begin("merge");
    if (rc == MS_OK)
        rc = graph__merge(&d, &r->conf->merge[golden], r->rules, r->pool, out, err);
    ms_span_end(&span);
    ms_free(dirs);
    ms_free(ranks);
    return rc;
}

/* Writes a merged dump to step<N>/rank<N> below the output directory. */
static enum ms_rc write_dump(struct run *r, const struct graph__rank_pair *c,
                             const struct graph__merged *m, struct ms_err *err)
{
    int n = snprintf(r->made->path, sizeof r->made->path, "%s/step%lld/rank%lld", r->conf->out_dir,
                     (long long)c->step, (long long)c->rank);
    if (n < 0 || n >= (int)sizeof r->made->path)
        return ms_fail(err, MS_E_LIMIT, "%.100s...: the path is too long", r->conf->out_dir);
    MS_TRY(graph__write_merged(m, r->made->path, err));
    r->made->nodes[0] += m->notes.n + 1;
    snprintf(r->made->path, sizeof r->made->path, "%s", r->conf->out_dir);
    return MS_OK;
}

static enum ms_rc open_merged_pair(struct run *r, const struct graph__merged *t,
                                   const struct graph__merged *b, struct graph__pair *p,
                                   struct ms_err *err)
{
    MS_TRY(graph__open_merged(&p->t, t, r->rules, err));
    if (b == NULL) {
        set_rules(r, p);
        return MS_OK;
    }
    MS_TRY(graph__open_merged(&p->b, b, r->rules, err));
    set_rules(r, p);
    p->set.merged = true;
    graph__number_micro_steps(&p->t);
    return compare_trees(r, p, err);
}

static enum ms_rc make_merged(struct run *r, struct graph__rank_pair *c, int64_t step,
                              const struct graph__merged *t, const struct graph__merged *b,
                              struct ms_err *err)
{
    struct graph__pair p;
    struct graph__rank_pair *slot = ms_vec_push(&r->pairs.list);
    graph__pair_init(&p, b != NULL);
    if (slot == NULL)
        return ms_no_memory(err);
    c->rank = t->rank;
    *slot = (struct graph__rank_pair){.step = step, .rank = t->rank};
    if (r->conf->json)
        return write_dump(r, c, t, err);
    enum ms_rc rc = open_merged_pair(r, t, b, &p, err);
    if (rc == MS_OK)
        rc = write_rank_pair(r, c, &p, err);
    graph__pair_close(&p);
    return rc;
}

static enum ms_rc make_all_merged(struct run *r, int64_t step, const struct graph__merges *t,
                                  const struct graph__merges *b, struct ms_err *err)
{
    struct graph__rank_pair c = {.step = step};
    /* The official tool takes the step from the directory's name only here. */
    if (!graph__is_dual(r->conf) && (r->rules->step_of_directory || r->conf->json) &&
        r->pairs.places[0].list.p[0].step > 0 && step == 0)
        c.step = r->pairs.places[0].list.p[0].step;
    if (graph__is_dual(r->conf) && t->list.n != b->list.n)
        return ms_fail(err, MS_E_ARG,
                       "the target merges into %zu graphs, the golden side into %zu: their "
                       "data parallelism differs",
                       t->list.n, b->list.n);
    for (size_t i = 0; i < t->list.n; i++)
        MS_TRY(make_merged(r, &c, step, &t->list.p[i],
                           graph__is_dual(r->conf) ? &b->list.p[i] : NULL, err));
    return MS_OK;
}

static enum ms_rc make_step(struct run *r, int64_t step, struct ms_err *err)
{
    struct graph__merges t = {.list = {0}}, b = {.list = {0}};
    begin_stage(r, 0, 0.4);
    enum ms_rc rc = merge_side(r, false, step, &t, err);
    if (rc == MS_OK && graph__is_dual(r->conf))
        rc = merge_side(r, true, step, &b, err);
    if (rc == MS_OK)
        rc = make_all_merged(r, step, &t, &b, err);
    graph__merges_free(&t);
    graph__merges_free(&b);
    r->done++;
    return rc;
}

static enum ms_rc make_steps(struct run *r, struct ms_err *err)
{
    struct graph__rank_pair *steps = r->pairs.list.p;
    size_t n = r->pairs.list.n;
    r->pairs.list.p = NULL;
    r->pairs.list.n = r->pairs.list.cap = 0;
    enum ms_rc rc = MS_OK;
    r->total = 0;
    for (size_t i = 0; i < n; i++)
        r->total += i == 0 || steps[i].step != steps[i - 1].step;
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        if (i == 0 || steps[i].step != steps[i - 1].step)
            rc = make_step(r, steps[i].step, err);
    }
    ms_free(steps);
    return rc;
}

/* ---- the database ------------------------------------------------------------------- */

static enum ms_rc put_lists(struct run *r, struct ms_buf *ranks, struct ms_buf *steps,
                            struct ms_err *err)
{
    MS_TRY(graph__put_numbers(ranks, &r->pairs, false, err));
    MS_TRY(graph__put_numbers(steps, &r->pairs, true, err));
    struct graph__config c = {.dual = graph__is_dual(r->conf),
                              .mode = r->mode,
                              .micro_steps = r->micro_steps,
                              .ranks = ms_buf_slice(ranks),
                              .steps = ms_buf_slice(steps)};
    return graph__db_config(r->db, &c, err);
}

static enum ms_rc put_config(struct run *r, struct ms_err *err)
{
    struct ms_buf ranks = {.max = 1 << 24}, steps = {.max = 1 << 24};
    enum ms_rc rc = put_lists(r, &ranks, &steps, err);
    ms_buf_free(&ranks);
    ms_buf_free(&steps);
    return rc;
}

static enum ms_rc put_framework(struct run *r, struct ms_err *err)
{
    char both[64];
    const char *mine = r->framework[0], *theirs = r->framework[1];
    if (mine == NULL)
        return MS_OK;
    bool same = theirs == NULL || strcmp(mine, theirs) == 0;
    snprintf(both, sizeof both, "%s%s%s", mine, same ? "" : ", ", same ? "" : theirs);
    return graph__db_meta(r->db, "framework", both, err);
}

static enum ms_rc put_repairs(struct run *r, struct ms_err *err)
{
    struct ms_buf list = {.max = 1 << 16};
    graph__put_repairs(&list, r->conf);
    enum ms_rc rc = ms_buf_check(&list, err);
    if (rc == MS_OK)
        rc = graph__db_meta(r->db, "repaired", ms_buf_z(&list), err);
    ms_buf_free(&list);
    return rc;
}

/* Writes x_meta: how the file was made and how it differs from the official one. */
static enum ms_rc put_meta(struct run *r, struct ms_err *err)
{
    char number[32];
    MS_TRY(graph__db_meta(r->db, "tool", "msprobe " MS_VERSION, err));
    MS_TRY(graph__db_meta(r->db, "states", "all", err)); /* x_state lists passing nodes too */
    MS_TRY(graph__db_meta(r->db, "target", r->conf->target, err));
    MS_TRY(graph__db_meta(r->db, "golden", graph__is_dual(r->conf) ? r->conf->golden : "", err));
    MS_TRY(put_framework(r, err));
    MS_TRY(put_repairs(r, err));
    MS_TRY(
        /* number of manually changed rows that the x_ tables include */
        graph__db_meta(r->db, "modified", "0", err));
    snprintf(number, sizeof number, "%u", r->repaired[0]);
    MS_TRY(graph__db_meta(r->db, "attached_subtrees", number, err));
    snprintf(number, sizeof number, "%u", r->repaired[1]);
    return graph__db_meta(r->db, "dropped_gradients", number, err);
}

/* Makes the pairs in order; those that cannot be read leave the list. */
static enum ms_rc make_rank_pairs(struct run *r, struct ms_err *err)
{
    size_t kept = 0, n = r->pairs.list.n;
    struct graph__rank_pair *list = r->pairs.list.p;
    for (size_t i = 0; i < n; i++) {
        bool keep;
        MS_TRY(make_rank_pair(r, &list[i], &keep, err));
        if (keep)
            list[kept++] = list[i];
    }
    r->pairs.list.n = kept;
    if (kept != 0 || n == 0)
        return MS_OK;
    *err = r->first_reason;
    return err->rc;
}

static enum ms_rc fill_database(struct run *r, struct ms_err *err)
{
    r->total = r->pairs.list.n;
    MS_TRY(r->conf->merge != NULL ? make_steps(r, err) : make_rank_pairs(r, err));
    if (r->conf->json)
        return MS_OK;
    MS_TRY(put_config(r, err));
    MS_TRY(put_meta(r, err));
    MS_TRY(put_findings(r, err));
    if (r->repaired[0] != 0)
        graph__note_line(r->conf, "parents without an entry of their own in construct.json: %u; %s",
                         r->repaired[0],
                         r->rules->attach_detached ? "they hang below the root"
                                                   : "what lies below is left out");
    print_progress_end(r, 98);
    MS_TRY(graph__comm_find_links(r->comm, graph__db_link, r->db, err));
    print_progress_end(r, 99);
    struct ms_span span = ms_span_begin("index");
    struct graph__db *db = r->db;
    r->db = NULL;
    enum ms_rc rc = graph__db_commit(db, err);
    ms_span_end(&span);
    return rc;
}

/* Builds the path of the database: OUT/build_20260102030405.vis.db. */
static enum ms_rc name_file(struct run *r, struct ms_err *err)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &tm);
    int n = snprintf(r->made->path, sizeof r->made->path, "%s/%s_%s.vis.db", r->conf->out_dir,
                     graph__is_dual(r->conf) ? "compare" : "build", stamp);
    if (n < 0 || n >= (int)sizeof r->made->path)
        return ms_fail(err, MS_E_LIMIT, "%.100s...: the path is too long", r->conf->out_dir);
    return MS_OK;
}

/* Creates the directory with mode 0750: the plugin refuses files that others than the owner can
 * write. */
static enum ms_rc make_dir(const struct graph_conf *c, struct ms_err *err)
{
    bool there = ms_path_kind(c->out_dir) != MS_KIND_NONE;
    MS_TRY(ms_mkdirs(c->out_dir, err));
    if (!there && chmod(c->out_dir, 0750) != 0)
        return ms_fail_sys(err, "%s", c->out_dir);
    return MS_OK;
}

static enum ms_rc make_database(struct run *r, struct ms_err *err)
{
    MS_TRY(graph__find_rank_pairs(&r->pairs, r->conf, err));
    MS_TRY(make_dir(r->conf, err));
    MS_TRY(name_file(r, err));
    MS_TRY(graph__comm_new(&r->comm, r->conf, err));
    if (r->conf->suspects && graph__is_dual(r->conf) && r->rules->viewer_tables &&
        r->conf->merge == NULL)
        MS_TRY(cmp_source_new(&r->source, err));
    if (r->conf->json)
        return fill_database(r, err);
    MS_TRY(graph__db_new(&r->db, r->conf, r->made->path, err));
    MS_TRY(fill_database(r, err));
    if (chmod(r->made->path, 0640) != 0)
        return ms_fail_sys(err, "%s", r->made->path);
    return MS_OK;
}

static unsigned count_workers(const struct run *r)
{
    return r->pool != NULL ? ms_pool_threads(r->pool) : 1;
}

static enum ms_rc init_items(struct run *r, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    r->items = ms_calloc(count_workers(r), sizeof *r->items);
    if (r->items == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; i < count_workers(r) && rc == MS_OK; i++)
        rc = graph__items_init(&r->items[i], err);
    return rc;
}

static void free_items(struct run *r)
{
    for (unsigned i = 0; r->items != NULL && i < count_workers(r); i++)
        graph__items_free(&r->items[i]);
    ms_free(r->items);
}

enum ms_rc graph_run(const struct graph_conf *conf, struct ms_pool *pool, struct graph_made *made,
                     struct ms_err *err)
{
    struct graph_conf whole = *conf;
    if (whole.rules == NULL)
        whole.rules = &graph_rules_ours;
    if (ms_str_ends(ms_str_of(conf->target), MS_STR(".vis")))
        return graph_convert(conf->target, conf->out_dir, made, err);
    struct run r = {.conf = &whole, .rules = whole.rules, .pool = pool, .made = made};
    *made = (struct graph_made){.ranks = 0};
    enum ms_rc rc = init_items(&r, err);
    if (rc == MS_OK)
        rc = make_database(&r, err);
    made->ranks = (uint32_t)r.pairs.list.n;
    made->steps = graph__count_steps(&r.pairs);
    graph__db_free(r.db);
    free_items(&r);
    graph__comm_free(r.comm);
    cmp_source_free(r.source);
    graph__free_rank_pairs(&r.pairs);
    if (rc == MS_OK)
        print_progress_end(&r, 100);
    return rc;
}
