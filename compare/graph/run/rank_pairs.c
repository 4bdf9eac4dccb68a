/* SPDX-License-Identifier: MIT
 *
 * rank_pairs: finds the dumps that are compared with each other.
 */
#include "compare/graph/run/rank_pairs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool graph__is_dual(const struct graph_conf *c)
{
    return c->golden != NULL && c->golden[0] != '\0';
}

void graph__note_line(const struct graph_conf *c, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    if (c->note == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    c->note(c->ctx, line);
}

const char *graph__path_below(const struct probe_place *p, const char *top)
{
    size_t n = strlen(top);
    while (n > 0 && top[n - 1] == '/')
        n--;
    return strlen(p->dir) > n ? p->dir + n : "";
}

struct graph__rank_pair graph__numbers_of(const struct probe_place *p, const char *top)
{
    const char *rest = graph__path_below(p, top);
    bool step = strstr(rest, "step") != NULL;
    struct graph__rank_pair c = {.step = step && p->step > 0 ? p->step : 0};
    struct ms_str last = ms_path_base(rest);
    bool rank = last.n != 0 && !ms_str_starts(last, MS_STR("step"));
    c.rank = rank && p->rank > 0 ? p->rank : 0;
    return c;
}

static enum ms_rc list_target(struct graph__rank_pairs *r, struct ms_err *err)
{
    MS_TRY(probe_find(&r->places[0], r->conf->target, err));
    for (size_t i = 0; i < r->places[0].list.n; i++) {
        const struct probe_place *p = &r->places[0].list.p[i];
        struct graph__rank_pair *c = ms_vec_push(&r->list);
        if (c == NULL)
            return ms_no_memory(err);
        *c = graph__numbers_of(p, r->conf->target);
        c->dir[0] = p->dir;
    }
    return MS_OK;
}

static const char *golden_for(const struct graph__rank_pairs *r, const struct graph__rank_pair *c)
{
    const struct probe_places *g = &r->places[1];
    for (size_t i = 0; i < g->list.n; i++) {
        struct graph__rank_pair other = graph__numbers_of(&g->list.p[i], r->conf->golden);
        if ((other.step == c->step && (other.rank == c->rank || r->conf->merge != NULL)) ||
            (g->list.n == 1 && r->list.n == 1))
            return g->list.p[i].dir;
    }
    return NULL;
}

/* Keeps the ranks and steps that both sides have. */
static enum ms_rc meet_golden(struct graph__rank_pairs *r, struct ms_err *err)
{
    size_t kept = 0;
    MS_TRY(probe_find(&r->places[1], r->conf->golden, err));
    for (size_t i = 0; i < r->list.n; i++) {
        struct graph__rank_pair c = r->list.p[i];
        c.dir[1] = golden_for(r, &c);
        if (c.dir[1] == NULL)
            graph__note_line(r->conf, "%s: the golden side has no such rank and step", c.dir[0]);
        else
            r->list.p[kept++] = c;
    }
    size_t alone = r->places[1].list.n - kept;
    if (alone != 0 && r->conf->merge == NULL)
        graph__note_line(r->conf, "%zu ranks of the golden side have no counterpart in the target",
                         alone);
    r->list.n = kept;
    if (kept != 0)
        return MS_OK;
    ms_fail(err, MS_E_ARG, "%s and %s have no rank and step in common", r->conf->target,
            r->conf->golden);
    ms_err_hint(err, "give two directories of one kind: of a rank, of ranks, or of steps");
    return MS_E_ARG;
}

static int by_place(const void *a, const void *b)
{
    const struct graph__rank_pair *x = a;
    const struct graph__rank_pair *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The dump.json of a rank stands for its directory. */
static enum ms_rc check_dir(const char *path, struct ms_err *err)
{
    if (ms_path_kind(path) == MS_KIND_FILE && ms_str_is(ms_path_base(path), "dump.json"))
        return MS_OK;
    enum ms_rc rc = ms_want_dir(path, err);
    if (rc != MS_OK)
        ms_err_hint(err, "give the directory that holds construct.json, or one of ranks or steps");
    return rc;
}

enum ms_rc graph__find_rank_pairs(struct graph__rank_pairs *r, const struct graph_conf *conf,
                                  struct ms_err *err)
{
    *r = (struct graph__rank_pairs){.conf = conf};
    MS_TRY(check_dir(r->conf->target, err));
    MS_TRY(list_target(r, err));
    if (graph__is_dual(r->conf)) {
        MS_TRY(check_dir(r->conf->golden, err));
        MS_TRY(meet_golden(r, err));
    }
    qsort(r->list.p, r->list.n, sizeof *r->list.p, by_place);
    for (size_t i = 1; i < r->list.n; i++) {
        if (by_place(&r->list.p[i - 1], &r->list.p[i]) == 0)
            return ms_fail(err, MS_E_ARG, "%s and %s are both rank %lld of step %lld",
                           r->list.p[i - 1].dir[0], r->list.p[i].dir[0],
                           (long long)r->list.p[i].rank, (long long)r->list.p[i].step);
    }
    return MS_OK;
}

void graph__free_rank_pairs(struct graph__rank_pairs *r)
{
    ms_vec_free(&r->list);
    for (unsigned i = 0; i < 2; i++) {
        if (r->places[i].arena != NULL)
            probe_places_free(&r->places[i]);
    }
}

/* ---- lists -------------------------------------------------------------------- */

uint32_t graph__count_steps(const struct graph__rank_pairs *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->list.n; i++)
        n += i == 0 || r->list.p[i].step != r->list.p[i - 1].step;
    return n;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

enum ms_rc graph__put_numbers(struct ms_buf *out, const struct graph__rank_pairs *r, bool steps,
                              struct ms_err *err)
{
    int64_t *list = ms_calloc(r->list.n, sizeof *list);
    if (list == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < r->list.n; i++)
        list[i] = steps ? r->list.p[i].step : r->list.p[i].rank;
    qsort(list, r->list.n, sizeof *list, by_number);
    ms_buf_putc(out, '[');
    for (size_t i = 0; i < r->list.n; i++) {
        if (i == 0 || list[i] != list[i - 1])
            ms_buf_printf(out, "%s%lld", i != 0 ? ", " : "", (long long)list[i]);
    }
    ms_buf_putc(out, ']');
    ms_free(list);
    return ms_buf_check(out, err);
}
