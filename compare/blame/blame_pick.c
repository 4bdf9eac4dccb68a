/* SPDX-License-Identifier: MIT
 *
 * blame_pick: pairs of records to be judged.
 */
#include "compare/blame/blame_pick.h"

#include "compare/pair/ranks.h"
#include "compare/source/source.h"

#include <stdio.h>

static enum ms_rc add_pick(struct blame_picks *p, const struct cmp_couple *c, struct ms_str target,
                           struct ms_str golden, struct ms_err *err)
{
    struct blame_pick *one = ms_vec_push(&p->list);
    if (one == NULL)
        return ms_no_memory(err);
    *one = (struct blame_pick){.target_json = ms_arena_str(p->arena, ms_str_of(c->t->json)).p,
                               .golden_json = ms_arena_str(p->arena, ms_str_of(c->b->json)).p,
                               .target = ms_arena_str(p->arena, target),
                               .golden = ms_arena_str(p->arena, golden),
                               .rank = c->t->rank,
                               .step = c->t->step};
    if (one->target_json == NULL || one->golden_json == NULL || one->target.p == NULL ||
        one->golden.p == NULL)
        return ms_arena_fail(p->arena, err);
    return MS_OK;
}

static enum ms_rc begin(struct blame_picks *p, struct ms_err *err)
{
    *p = (struct blame_picks){.arena = ms_arena_new((size_t)1 << 30)};
    return p->arena != NULL ? MS_OK : ms_no_memory(err);
}

void blame_picks_free(struct blame_picks *p)
{
    ms_vec_free(&p->list);
    ms_arena_free(p->arena);
    p->arena = NULL;
}

/* ---- suspects ------------------------------------------------------------------ */

/* Both runs, compared in memory. */
struct compared {
    struct cmp_ranks ranks;
    struct cmp_source *source;
};

static void free_compared(struct compared *run)
{
    cmp_source_free(run->source);
    cmp_ranks_free(&run->ranks);
}

static enum ms_rc observe_couple(struct compared *run, const struct cmp_couple *couple,
                                 struct ms_pool *pool, struct ms_err *err)
{
    const struct cmp_conf conf = {.explain = true};
    struct cmp *c;
    MS_TRY(cmp_open(&c, &conf, couple->t->json, couple->b->json, pool, err));
    enum ms_rc rc = cmp_mode(c) == PROBE_MODE_TENSOR ? cmp_measure(c, pool, err) : MS_OK;
    if (rc == MS_OK)
        rc = cmp_source_add(run->source, c, (int)couple->t->rank, (int)couple->t->step, pool, err);
    cmp_close(c);
    return rc;
}

/* Compares the dumps of all ranks and steps and finds the suspects. */
static enum ms_rc compare_both(struct compared *run, const char *target, const char *golden,
                               struct ms_err *err)
{
    struct ms_pool *pool;
    MS_TRY(cmp_ranks_pair(&run->ranks, target, golden, false, err));
    MS_TRY(cmp_source_new(&run->source, err));
    MS_TRY(ms_pool_new(&pool, 0, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < run->ranks.list.n; i++)
        rc = observe_couple(run, &run->ranks.list.p[i], pool, err);
    ms_pool_free(pool);
    return rc == MS_OK ? cmp_source_find(run->source, err) : rc;
}

/* Finds the pair of dumps that a part of the comparison was made of. */
static const struct cmp_couple *couple_of(const struct compared *run, int rank, int step)
{
    for (size_t i = 0; i < run->ranks.list.n; i++) {
        const struct cmp_couple *c = &run->ranks.list.p[i];
        if (c->t->rank == rank && c->t->step == step)
            return c;
    }
    return run->ranks.list.n != 0 ? &run->ranks.list.p[0] : NULL;
}

static enum ms_rc take_suspect(struct blame_picks *p, const struct compared *run, uint32_t place,
                               struct ms_err *err)
{
    const struct cmp_suspect *list;
    const size_t n = cmp_source_suspects(run->source, &list);
    if (n == 0)
        return ms_fail(err, MS_E_NOTFOUND, "no suspect: nothing differs beyond noise");
    if (place == 0 || place > n)
        return ms_fail(err, MS_E_NOTFOUND, "suspect %u of %zu: there are no more", place, n);
    const struct cmp_suspect *s = &list[place - 1];
    const struct cmp_couple *c = couple_of(run, s->rank, s->step);
    if (s->target.p == NULL || s->golden.p == NULL || c == NULL)
        return ms_fail(
            err, MS_E_UNSUPPORTED,
            "suspect %u (%.*s) is on one side only, so there is nothing to compute again", place,
            MS_STR_ARG(s->target.p != NULL ? s->target : s->golden));
    MS_TRY(add_pick(p, c, s->target, s->golden, err));
    p->list.p[p->list.n - 1].place = place;
    return MS_OK;
}

/* Takes the partner that the comparison gave to an operator of the target. */
static enum ms_rc take_partner(struct blame_picks *p, const struct compared *run,
                               struct ms_str name, struct ms_err *err)
{
    struct cmp_source_place at = {0};
    struct cmp_source_node node;
    while (cmp_source_next(run->source, &at, &node))
        if (ms_str_eq(node.target, name) && node.golden.p != NULL)
            return add_pick(p, couple_of(run, node.rank, node.step), node.target, node.golden, err);
    return ms_fail(err, MS_E_NOTFOUND, "%.*s: the target has no such operator with a partner",
                   MS_STR_ARG(name));
}

static enum ms_rc pick_compared(struct blame_picks *p, const char *target, const char *golden,
                                uint32_t place, struct ms_str name, struct ms_err *err)
{
    struct compared run = {.source = NULL};
    enum ms_rc rc = compare_both(&run, target, golden, err);
    if (rc == MS_OK)
        rc = name.n != 0 ? take_partner(p, &run, name, err) : take_suspect(p, &run, place, err);
    free_compared(&run);
    return rc;
}

enum ms_rc blame_pick_suspect(struct blame_picks *p, const char *target, const char *golden,
                              uint32_t place, struct ms_err *err)
{
    MS_TRY(begin(p, err));
    return pick_compared(p, target, golden, place, MS_STR_NONE, err);
}

/* ---- names -------------------------------------------------------------------- */

/* Adds the record of this name, or all records when it is empty, that both dumps have. */
static enum ms_rc add_equal_names(struct blame_picks *p, const struct cmp_couple *c,
                                  struct ms_str name, struct ms_err *err)
{
    struct probe_dump *t = NULL, *g = NULL;
    enum ms_rc rc = probe_dump_open(&t, c->t->json, 0, NULL, err);
    if (rc == MS_OK)
        rc = probe_dump_open(&g, c->b->json, 0, NULL, err);
    for (uint32_t i = 0; rc == MS_OK && i < t->nodes.n; i++) {
        const struct ms_str own = probe_node_name(t, i);
        const bool wanted =
            name.n != 0 ? ms_str_eq(own, name) : t->nodes.p[i].kind != PROBE_NODE_DEBUG;
        if (wanted && probe_node_find(g, own) != MS_MAP_NONE)
            rc = add_pick(p, c, own, own, err);
    }
    probe_dump_close(t);
    probe_dump_close(g);
    return rc;
}

static enum ms_rc pick_equal(struct blame_picks *p, const char *target, const char *golden,
                             struct ms_str name, struct ms_err *err)
{
    struct cmp_ranks ranks;
    MS_TRY(begin(p, err));
    MS_TRY(cmp_ranks_pair(&ranks, target, golden, false, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < ranks.list.n && (name.n == 0 || p->list.n == 0); i++)
        rc = add_equal_names(p, &ranks.list.p[i], name, err);
    cmp_ranks_free(&ranks);
    return rc;
}

enum ms_rc blame_pick_name(struct blame_picks *p, const char *target, const char *golden,
                           struct ms_str name, struct ms_err *err)
{
    MS_TRY(pick_equal(p, target, golden, name, err));
    return p->list.n != 0 ? MS_OK : pick_compared(p, target, golden, 0, name, err);
}

enum ms_rc blame_pick_all(struct blame_picks *p, const char *target, const char *golden,
                          struct ms_err *err)
{
    MS_TRY(pick_equal(p, target, golden, MS_STR_NONE, err));
    return p->list.n != 0
               ? MS_OK
               : ms_fail(err, MS_E_NOTFOUND, "no operator has the same name on both sides");
}

/* ---- opening ------------------------------------------------------------------- */

void blame_close(struct blame_opened *o)
{
    probe_dump_close(o->dump);
    ms_free(o->tensors);
}

enum ms_rc blame_open(struct blame_opened *o, const char *json, struct ms_str name,
                      struct blame_record *r, struct ms_err *err)
{
    *o = (struct blame_opened){0};
    MS_TRY(probe_dump_open(&o->dump, json, 0, NULL, err));
    char *dir = ms_str_dup(ms_path_dir(json));
    o->tensors = dir != NULL ? ms_path_join(dir, "dump_tensor_data") : NULL;
    ms_free(dir);
    if (o->tensors == NULL)
        return ms_no_memory(err);
    *r = (struct blame_record){o->dump, o->tensors, probe_node_find(o->dump, name)};
    return r->node != MS_MAP_NONE
               ? MS_OK
               : ms_fail(err, MS_E_NOTFOUND, "%s: no record %.*s", json, MS_STR_ARG(name));
}

enum ms_rc blame_judge_pick(const struct blame_pick *pick, struct blame *b, size_t limit,
                            struct ms_err *err)
{
    struct blame_opened t, g = {0};
    struct blame_record rt, rg;
    enum ms_rc rc = blame_open(&t, pick->target_json, pick->target, &rt, err);
    if (rc == MS_OK)
        rc = blame_open(&g, pick->golden_json, pick->golden, &rg, err);
    if (rc == MS_OK)
        rc = blame_judge(b, &rt, &rg, limit, err);
    blame_close(&t);
    blame_close(&g);
    return rc;
}
