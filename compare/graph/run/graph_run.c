/* SPDX-License-Identifier: MIT
 *
 * graph_run: all ranks and steps of one or two runs, one after the other, into
 * one database.
 *
 * The path says what is compared: one rank's files, a directory of ranks, or one
 * of steps.  What both sides have is compared, told by the numbers below the path;
 * two single ranks go together whatever their numbers are.
 */
#include "compare/graph_int.h"
#include "compare/graph_merge.h"

#include "probe/base/clock.h"
#include "probe/base/trace.h"
#include "probe/find.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

struct couple { /* dumps of one rank and step */
    const char *dir[2];
    int64_t step, rank;
};

struct run {
    const struct graph_conf *conf;
    struct ms_pool *pool;
    struct graph_made *made;
    struct probe_places places[2];
    MS_VEC(struct couple) couples;
    struct graph__db *db;
    struct graph__comm *comm;
    struct cmp_source *source; /* NULL: nobody asked */
    enum probe_mode mode;
    uint32_t micro_steps;     /* of the graph written first */
    size_t done, total;       /* couples, or steps whose ranks are merged */
    int shown;                /* per cent that have been told */
    double from, to;          /* share of the couple that the current stage covers */
    const char *framework[2]; /* of the first couple; the second NULL without a golden side */
    uint32_t repaired[2];     /* detached subtrees, gradients without a place */
};

static bool is_dual(const struct graph_conf *c)
{
    return c->golden != NULL && c->golden[0] != '\0';
}

/* ---- progress ----------------------------------------------------------------- */

static void tell(void *ctx, double share)
{
    struct run *r = ctx;
    double couple = r->from + (r->to - r->from) * share;
    int percent = (int)(98 * ((double)r->done + couple) / (double)r->total);
    if (percent <= r->shown || r->conf->progress == NULL)
        return;
    r->shown = percent;
    r->conf->progress(r->conf->ctx, percent);
}

static void stage(struct run *r, double from, double to)
{
    r->from = from;
    r->to = to;
    tell(r, 0);
}

static void tell_end(struct run *r, int percent)
{
    if (r->conf->progress != NULL)
        r->conf->progress(r->conf->ctx, percent);
}

static void note(struct run *r, const char *fmt, ...) MS_PRINTF(2, 3);
static void note(struct run *r, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (r->conf->note != NULL)
        r->conf->note(r->conf->ctx, line);
}

/* ---- what is compared ----------------------------------------------------------- */

/* The part of the dump's directory below the path that was given. */
static const char *below(const struct probe_place *p, const char *top)
{
    size_t n = strlen(top);
    while (n > 0 && top[n - 1] == '/')
        n--;
    return strlen(p->dir) > n ? p->dir + n : "";
}

static struct couple numbers_of(const struct probe_place *p, const char *top)
{
    const char *rest = below(p, top);
    bool step = strstr(rest, "step") != NULL;
    struct couple c = {.step = step && p->step > 0 ? p->step : 0};
    struct ms_str last = ms_path_base(rest);
    bool rank = last.n != 0 && !ms_str_starts(last, MS_STR("step"));
    c.rank = rank && p->rank > 0 ? p->rank : 0;
    return c;
}

static enum ms_rc list_target(struct run *r, struct ms_err *err)
{
    MS_TRY(probe_find(&r->places[0], r->conf->target, err));
    for (size_t i = 0; i < r->places[0].list.n; i++) {
        const struct probe_place *p = &r->places[0].list.p[i];
        struct couple *c = ms_vec_push(&r->couples);
        if (c == NULL)
            return ms_no_memory(err);
        *c = numbers_of(p, r->conf->target);
        c->dir[0] = p->dir;
    }
    return MS_OK;
}

static const char *golden_for(const struct run *r, const struct couple *c)
{
    const struct probe_places *g = &r->places[1];
    for (size_t i = 0; i < g->list.n; i++) {
        struct couple other = numbers_of(&g->list.p[i], r->conf->golden);
        if ((other.step == c->step && (other.rank == c->rank || r->conf->merge != NULL)) ||
            (g->list.n == 1 && r->couples.n == 1))
            return g->list.p[i].dir;
    }
    return NULL;
}

/* Ranks and steps that both sides have. */
static enum ms_rc meet_golden(struct run *r, struct ms_err *err)
{
    size_t kept = 0;
    MS_TRY(probe_find(&r->places[1], r->conf->golden, err));
    for (size_t i = 0; i < r->couples.n; i++) {
        struct couple c = r->couples.p[i];
        c.dir[1] = golden_for(r, &c);
        if (c.dir[1] == NULL)
            note(r, "%s: the golden side has no such rank and step", c.dir[0]);
        else
            r->couples.p[kept++] = c;
    }
    size_t alone = r->places[1].list.n - kept;
    if (alone != 0 && r->conf->merge == NULL)
        note(r, "%zu ranks of the golden side have no counterpart in the target", alone);
    r->couples.n = kept;
    if (kept != 0)
        return MS_OK;
    ms_fail(err, MS_E_ARG, "%s and %s have no rank and step in common", r->conf->target,
            r->conf->golden);
    ms_err_hint(err, "give two directories of one kind: of a rank, of ranks, or of steps");
    return MS_E_ARG;
}

static int by_place(const void *a, const void *b)
{
    const struct couple *x = a;
    const struct couple *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum ms_rc check_dir(const char *path, struct ms_err *err)
{
    enum ms_rc rc = ms_want_dir(path, err);
    if (rc != MS_OK)
        ms_err_hint(err, "give the directory that holds construct.json, or one of ranks or steps");
    return rc;
}

static enum ms_rc find_couples(struct run *r, struct ms_err *err)
{
    MS_TRY(check_dir(r->conf->target, err));
    MS_TRY(list_target(r, err));
    if (is_dual(r->conf)) {
        MS_TRY(check_dir(r->conf->golden, err));
        MS_TRY(meet_golden(r, err));
    }
    qsort(r->couples.p, r->couples.n, sizeof *r->couples.p, by_place);
    for (size_t i = 1; i < r->couples.n; i++) {
        if (by_place(&r->couples.p[i - 1], &r->couples.p[i]) == 0)
            return ms_fail(err, MS_E_ARG, "%s and %s are both rank %lld of step %lld",
                           r->couples.p[i - 1].dir[0], r->couples.p[i].dir[0],
                           (long long)r->couples.p[i].rank, (long long)r->couples.p[i].step);
    }
    return MS_OK;
}

/* ---- one couple ------------------------------------------------------------------- */

static enum ms_rc check_together(const struct run *r, const struct graph__pair *p,
                                 struct ms_err *err)
{
    const struct probe_dump *t = p->t.side.dump, *b = p->b.side.dump;
    bool t_ms = t->framework == PROBE_FW_MINDSPORE, b_ms = b->framework == PROBE_FW_MINDSPORE;
    bool aligned = !r->conf->strict && !r->conf->fuzzy && r->conf->matching != CMP_MATCH_EXACT;
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

static enum ms_rc match_layers(struct graph__pair *p, struct ms_err *err)
{
    struct cmp__pairs names;
    enum ms_rc rc = graph__map_layers(p, &names, err);
    if (rc == MS_OK)
        rc = graph__match_mapped(&p->t, &p->b, &names, err);
    ms_map_free(&names.keys);
    ms_vec_free(&names.values);
    return rc;
}

static enum ms_rc match(struct run *r, struct graph__pair *p, struct ms_err *err)
{
    const struct graph_conf *c = r->conf;
    if (c->map_layers && c->merge == NULL && !(c->strict && c->fuzzy))
        return match_layers(p, err);
    if (c->fuzzy || c->merge != NULL)
        return graph__match_fuzzy(&p->t, &p->b, err);
    bool align =
        c->matching == CMP_MATCH_ALWAYS ||
        (c->matching == CMP_MATCH_AUTO && cmp_align_wanted(p->t.side.dump, p->b.side.dump));
    if (align && !c->strict)
        return graph__match_aligned(p, r->pool, err);
    MS_TRY(graph__match_same(&p->t, &p->b, err));
    if (!c->strict && c->matching == CMP_MATCH_AUTO)
        graph__match_moved(&p->t, &p->b);
    return MS_OK;
}

static void set_rules(struct run *r, struct graph__pair *p)
{
    struct cmp_conf *c = &p->cmp.conf;
    c->compat = r->conf->strict ? CMP_STRICT : CMP_CUR;
    c->layer.on = r->conf->map_layers;
    c->layer.file = r->conf->layer_file;
    p->cmp.mode = p->t.side.dump->mode;
    p->cmp.is_graph = true;
    p->red_empty = r->conf->strict || r->conf->md5_index;
}

static enum ms_rc compare(struct run *r, struct graph__pair *p, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("match");
    MS_TRY(check_together(r, p, err));
    MS_TRY(match(r, p, err));
    graph__share_micro_steps(&p->t, &p->b);
    ms_span_end(&span);
    span = ms_span_begin("measure");
    enum ms_rc rc = graph__measure(p, r->pool, err);
    ms_span_end(&span);
    return rc;
}

struct opening {
    struct run *r;
    const struct couple *c;
    struct graph__pair *p;
};

/* Two sides are read side by side, one in parts. */
static enum ms_rc open_side(void *ctx, size_t side, unsigned worker, struct ms_err *err)
{
    const struct opening *o = ctx;
    (void)worker;
    return graph__open(side == 0 ? &o->p->t : &o->p->b, o->c->dir[side], o->r->conf->strict, NULL,
                       err);
}

static enum ms_rc open_couple(struct run *r, const struct couple *c, struct graph__pair *p,
                              struct ms_err *err)
{
    struct ms_span span = ms_span_begin("read");
    struct opening o = {r, c, p};
    if (!p->dual)
        MS_TRY(graph__open(&p->t, c->dir[0], r->conf->strict, r->pool, err));
    else
        MS_TRY(ms_pool_run(r->pool, 2, open_side, &o, err));
    stage(r, 0.2, 0.3);
    if (r->conf->overflow)
        graph__find_overflows(&p->t);
    if (r->conf->overflow && p->dual)
        graph__find_overflows(&p->b);
    ms_span_end(&span);
    set_rules(r, p);
    return p->dual ? compare(r, p, err) : MS_OK;
}

static enum ms_rc put_side(struct run *r, struct graph__pair *p, struct graph__place place,
                           struct ms_err *err)
{
    const struct graph__tree *g = place.golden ? &p->b : &p->t;
    int64_t first_row = graph__db_rows(r->db);
    MS_TRY(graph__db_put(r->db, p, place, r->pool, tell, r, err));
    r->made->nodes[place.golden] += g->order.n;
    r->repaired[0] += g->detached;
    r->repaired[1] += g->dropped;
    bool together = r->couples.n > 1 && r->conf->merge == NULL;
    return together ? graph__comm_note(r->comm, g, place, first_row, err) : MS_OK;
}

static enum ms_rc write_couple(struct run *r, const struct couple *c, struct graph__pair *p,
                               struct ms_err *err)
{
    struct ms_span span = ms_span_begin("write");
    struct graph__place place = {c->step, c->rank, false};
    if (r->made->nodes[0] == 0) { /* the first tells what all of them are */
        r->mode = p->cmp.mode;
        r->micro_steps = p->t.micro_steps;
        r->framework[0] = probe_framework_text(p->t.side.dump->framework);
        r->framework[1] = p->dual ? probe_framework_text(p->b.side.dump->framework) : NULL;
    }
    stage(r, 0.3, p->dual ? 0.7 : 1);
    MS_TRY(put_side(r, p, place, err));
    for (size_t i = 0; i < p->t.order.n; i++) {
        const struct graph__node *n = &p->t.nodes.p[p->t.order.p[i]];
        r->made->states[n->state]++;
        r->made->matched += n->match != GRAPH_NO;
    }
    place.golden = true;
    stage(r, 0.7, 1);
    enum ms_rc rc = p->dual ? put_side(r, p, place, err) : MS_OK;
    ms_span_end(&span);
    return rc;
}

static void close_pair(struct graph__pair *p)
{
    ms_vec_free(&p->cmp.pairs);
    ms_vec_free(&p->cmp.figures);
    ms_vec_free(&p->cmp.problems);
    ms_arena_free(p->cmp.arena);
    cmp_align_free(p->cmp.al);
    ms_free(p->part_of[0]);
    ms_free(p->part_of[1]);
    ms_vec_free(&p->first_pair);
    graph__close(&p->t);
    graph__close(&p->b);
}

/* Suspects are found in the dumps themselves, tensors by their statistics. */
static enum ms_rc observe_dumps(struct run *r, const struct couple *c, struct ms_err *err)
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

/* A graph is worth having without them. */
static enum ms_rc observe(struct run *r, const struct couple *c, struct ms_err *err)
{
    struct ms_err why = {0};
    enum ms_rc rc = r->mode != PROBE_MODE_STRUCTURE ? observe_dumps(r, c, &why) : MS_OK;
    if (rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED) {
        *err = why;
        return rc;
    }
    if (rc != MS_OK)
        note(r, "no suspects are looked for: %s", why.msg);
    return MS_OK;
}

static enum ms_rc put_findings(struct run *r, struct ms_err *err)
{
    const struct cmp_suspect *list;
    if (r->source == NULL)
        return MS_OK;
    MS_TRY(cmp_source_find(r->source, err));
    r->made->suspects = cmp_source_suspects(r->source, &list);
    if (r->made->suspects != 0)
        snprintf(r->made->suspect, sizeof r->made->suspect, "%.*s: %.*s",
                 MS_STR_ARG(list[0].target.p != NULL ? list[0].target : list[0].golden),
                 MS_STR_ARG(list[0].text));
    return graph__db_findings(r->db, r->source, err);
}

/* One line for every row whose tensors were compared. */
static void log_items(struct run *r, const struct graph__pair *p)
{
    struct ms_buf line = {.max = 1 << 20};
    for (size_t i = 0; p->cmp.mode == PROBE_MODE_TENSOR && i < p->cmp.pairs.n; i++) {
        const struct cmp__pair *pair = &p->cmp.pairs.p[i];
        if (pair->b == GRAPH_NO)
            continue;
        ms_buf_clear(&line);
        ms_buf_puts(&line, "compared ");
        cmp__side_name(&p->t.side, pair->t, false, &line);
        ms_buf_puts(&line, " with ");
        cmp__side_name(&p->b.side, pair->b, false, &line);
        note(r, "%s", ms_buf_z(&line));
    }
    ms_buf_free(&line);
}

/* Files that were cut off are read as far as they go, but not in silence. */
static void note_problems(struct run *r, const struct graph__pair *p)
{
    const struct graph__tree *const both[] = {&p->t, &p->b};
    for (int k = 0; k < (p->dual ? 2 : 1); k++) {
        const struct probe_dump *d = both[k]->side.dump;
        for (size_t i = 0; i < d->problems.n; i++)
            note(r, "%s: %.*s", d->path, MS_STR_ARG(d->problems.p[i]));
    }
}

static enum ms_rc make_couple(struct run *r, const struct couple *c, struct ms_err *err)
{
    struct graph__pair p = {.dual = is_dual(r->conf)};
    p.t.built.file.p = p.t.stacks.file.p = p.b.built.file.p = p.b.stacks.file.p = "";
    enum ms_rc rc = open_couple(r, c, &p, err);
    if (rc == MS_OK)
        note_problems(r, &p);
    if (rc == MS_OK && r->conf->log_items)
        log_items(r, &p);
    if (rc == MS_OK)
        rc = write_couple(r, c, &p, err);
    close_pair(&p);
    if (rc == MS_OK && r->source != NULL)
        rc = observe(r, c, err);
    r->done++;
    return rc;
}

/* ---- merged ranks ------------------------------------------------------------------- */

/* Rank directories of one step and side, in order. */
static enum ms_rc list_dumps(const struct run *r, bool golden, int64_t step, struct graph__dumps *d,
                             const char **dirs, int64_t *ranks, struct ms_err *err)
{
    const struct probe_places *places = &r->places[golden];
    const char *top = golden ? r->conf->golden : r->conf->target;
    *d = (struct graph__dumps){
        .dirs = dirs, .ranks = ranks, .what = golden ? "golden side" : "target"};
    for (size_t i = 0; i < places->list.n; i++) {
        const struct probe_place *p = &places->list.p[i];
        struct couple c = numbers_of(p, top);
        if (c.step != step)
            continue;
        if (below(p, top)[0] == '\0') {
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
    size_t n = r->places[golden].list.n;
    const char **dirs = ms_calloc(n, sizeof *dirs);
    int64_t *ranks = ms_calloc(n, sizeof *ranks);
    enum ms_rc rc = dirs != NULL && ranks != NULL
                        ? list_dumps(r, golden, step, &d, dirs, ranks, err)
                        : ms_no_memory(err);
    struct ms_span span = ms_span_begin("merge");
    if (rc == MS_OK)
        rc = graph__merge(&d, &r->conf->merge[golden], r->conf->strict, r->pool, out, err);
    ms_span_end(&span);
    ms_free(dirs);
    ms_free(ranks);
    return rc;
}

/* STEP/RANK below the output directory. */
static enum ms_rc write_dump(struct run *r, const struct couple *c, const struct graph__merged *m,
                             struct ms_err *err)
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
    MS_TRY(graph__open_merged(&p->t, t, r->conf->strict, err));
    if (b == NULL) {
        set_rules(r, p);
        return MS_OK;
    }
    MS_TRY(graph__open_merged(&p->b, b, r->conf->strict, err));
    set_rules(r, p);
    p->cmp.merged = true;
    graph__number_micro_steps(&p->t);
    return compare(r, p, err);
}

static enum ms_rc make_merged(struct run *r, struct couple *c, int64_t step,
                              const struct graph__merged *t, const struct graph__merged *b,
                              struct ms_err *err)
{
    struct graph__pair p = {.dual = b != NULL};
    struct couple *slot = ms_vec_push(&r->couples);
    p.t.built.file.p = p.t.stacks.file.p = p.b.built.file.p = p.b.stacks.file.p = "";
    if (slot == NULL)
        return ms_no_memory(err);
    c->rank = t->rank;
    *slot = (struct couple){.step = step, .rank = t->rank};
    if (r->conf->json)
        return write_dump(r, c, t, err);
    enum ms_rc rc = open_merged_pair(r, t, b, &p, err);
    if (rc == MS_OK)
        rc = write_couple(r, c, &p, err);
    close_pair(&p);
    return rc;
}

static enum ms_rc make_all_merged(struct run *r, int64_t step, const struct graph__merges *t,
                                  const struct graph__merges *b, struct ms_err *err)
{
    struct couple c = {.step = step};
    /* The official tool takes the step from the directory's name, but only here. */
    if (!is_dual(r->conf) && (r->conf->strict || r->conf->json) &&
        r->places[0].list.p[0].step > 0 && step == 0)
        c.step = r->places[0].list.p[0].step;
    if (is_dual(r->conf) && t->list.n != b->list.n)
        return ms_fail(err, MS_E_ARG,
                       "the target merges into %zu graphs, the golden side into %zu: their "
                       "data parallelism differs",
                       t->list.n, b->list.n);
    for (size_t i = 0; i < t->list.n; i++)
        MS_TRY(
            make_merged(r, &c, step, &t->list.p[i], is_dual(r->conf) ? &b->list.p[i] : NULL, err));
    return MS_OK;
}

static enum ms_rc make_step(struct run *r, int64_t step, struct ms_err *err)
{
    struct graph__merges t = {.list = {0}}, b = {.list = {0}};
    stage(r, 0, 0.4);
    enum ms_rc rc = merge_side(r, false, step, &t, err);
    if (rc == MS_OK && is_dual(r->conf))
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
    struct couple *steps = r->couples.p;
    size_t n = r->couples.n;
    r->couples.p = NULL;
    r->couples.n = r->couples.cap = 0;
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

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Ranks or steps that occur, each once. */
static enum ms_rc put_numbers(struct ms_buf *out, const struct run *r, bool steps,
                              struct ms_err *err)
{
    int64_t *list = ms_calloc(r->couples.n, sizeof *list);
    if (list == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < r->couples.n; i++)
        list[i] = steps ? r->couples.p[i].step : r->couples.p[i].rank;
    qsort(list, r->couples.n, sizeof *list, by_number);
    ms_buf_putc(out, '[');
    for (size_t i = 0; i < r->couples.n; i++) {
        if (i == 0 || list[i] != list[i - 1])
            ms_buf_printf(out, "%s%lld", i != 0 ? ", " : "", (long long)list[i]);
    }
    ms_buf_putc(out, ']');
    ms_free(list);
    return ms_buf_check(out, err);
}

static enum ms_rc put_lists(struct run *r, struct ms_buf *ranks, struct ms_buf *steps,
                            struct ms_err *err)
{
    MS_TRY(put_numbers(ranks, r, false, err));
    MS_TRY(put_numbers(steps, r, true, err));
    struct graph__config c = {.dual = is_dual(r->conf),
                              .overflow = r->conf->overflow,
                              .strict = r->conf->strict,
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

/* What a reader of the file should know about how it differs from the official one. */
static enum ms_rc put_meta(struct run *r, struct ms_err *err)
{
    char number[32];
    MS_TRY(graph__db_meta(r->db, "tool", "msprobe " MS_VERSION, err));
    MS_TRY(graph__db_meta(r->db, "states", "all", err)); /* x_state lists passing nodes too */
    MS_TRY(graph__db_meta(r->db, "target", r->conf->target, err));
    MS_TRY(graph__db_meta(r->db, "golden", is_dual(r->conf) ? r->conf->golden : "", err));
    MS_TRY(put_framework(r, err));
    MS_TRY(put_repairs(r, err));
    MS_TRY(
        graph__db_meta(r->db, "modified", "0", err)); /* rows changed by hand that x_ tables know */
    snprintf(number, sizeof number, "%u", r->repaired[0]);
    MS_TRY(graph__db_meta(r->db, "attached_subtrees", number, err));
    snprintf(number, sizeof number, "%u", r->repaired[1]);
    return graph__db_meta(r->db, "dropped_gradients", number, err);
}

static enum ms_rc fill(struct run *r, struct ms_err *err)
{
    r->total = r->couples.n;
    if (r->conf->merge != NULL)
        MS_TRY(make_steps(r, err));
    for (size_t i = 0; i < r->couples.n && r->conf->merge == NULL; i++)
        MS_TRY(make_couple(r, &r->couples.p[i], err));
    if (r->conf->json)
        return MS_OK;
    MS_TRY(put_config(r, err));
    MS_TRY(put_meta(r, err));
    MS_TRY(put_findings(r, err));
    if (r->repaired[0] != 0)
        note(r, "parents without an entry of their own in construct.json: %u; %s", r->repaired[0],
             r->conf->strict ? "what lies below is left out" : "they hang below the root");
    tell_end(r, 98);
    MS_TRY(graph__comm_write(r->comm, r->db, err));
    tell_end(r, 99);
    struct ms_span span = ms_span_begin("index");
    struct graph__db *db = r->db;
    r->db = NULL;
    enum ms_rc rc = graph__db_commit(db, err);
    ms_span_end(&span);
    return rc;
}

/* OUT/build_20260102030405.vis.db */
static enum ms_rc name_file(struct run *r, struct ms_err *err)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &tm);
    int n = snprintf(r->made->path, sizeof r->made->path, "%s/%s_%s.vis.db", r->conf->out_dir,
                     is_dual(r->conf) ? "compare" : "build", stamp);
    if (n < 0 || n >= (int)sizeof r->made->path)
        return ms_fail(err, MS_E_LIMIT, "%.100s...: the path is too long", r->conf->out_dir);
    return MS_OK;
}

/* The plugin refuses what others than the owner can write. */
static enum ms_rc make_dir(const struct graph_conf *c, struct ms_err *err)
{
    bool there = ms_path_kind(c->out_dir) != MS_KIND_NONE;
    MS_TRY(ms_mkdirs(c->out_dir, err));
    if (!there && chmod(c->out_dir, 0750) != 0)
        return ms_fail_sys(err, "%s", c->out_dir);
    return MS_OK;
}

static enum ms_rc make(struct run *r, struct ms_err *err)
{
    MS_TRY(find_couples(r, err));
    MS_TRY(make_dir(r->conf, err));
    MS_TRY(name_file(r, err));
    MS_TRY(graph__comm_new(&r->comm, r->conf, err));
    if (r->conf->suspects && is_dual(r->conf) && !r->conf->strict && r->conf->merge == NULL)
        MS_TRY(cmp_source_new(&r->source, err));
    if (r->conf->json)
        return fill(r, err);
    MS_TRY(graph__db_new(&r->db, r->conf, r->made->path, err));
    MS_TRY(fill(r, err));
    if (chmod(r->made->path, 0640) != 0)
        return ms_fail_sys(err, "%s", r->made->path);
    return MS_OK;
}

static uint32_t count_steps(const struct run *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->couples.n; i++)
        n += i == 0 || r->couples.p[i].step != r->couples.p[i - 1].step;
    return n;
}

enum ms_rc graph_make(const struct graph_conf *conf, struct ms_pool *pool, struct graph_made *made,
                      struct ms_err *err)
{
    struct run r = {.conf = conf, .pool = pool, .made = made};
    *made = (struct graph_made){.ranks = 0};
    enum ms_rc rc = make(&r, err);
    made->ranks = (uint32_t)r.couples.n;
    made->steps = count_steps(&r);
    graph__db_free(r.db);
    graph__comm_free(r.comm);
    cmp_source_free(r.source);
    ms_vec_free(&r.couples);
    for (unsigned i = 0; i < 2; i++) {
        if (r.places[i].arena != NULL)
            probe_places_free(&r.places[i]);
    }
    if (rc == MS_OK)
        tell_end(&r, 100);
    return rc;
}
