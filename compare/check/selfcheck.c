/* SPDX-License-Identifier: MIT
 *
 * selfcheck: checks dump after dump, then all of them together.
 */
#include "compare/check/selfcheck_int.h"

#include <stdlib.h>

enum { TEXT_MAX = 1 << 20 };

const char *const self_kind_names[SELF_KINDS] = {"finite", "replica", "collective", "unchanged",
                                                 "mirror"};

static enum ms_rc note_failure(struct self_check *s, const struct ms_err *why, struct ms_err *err)
{
    struct ms_str *slot = ms_vec_push(&s->failures);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(s->arena, ms_str_of(why->msg));
    return slot->p != NULL ? MS_OK : ms_arena_fail(s->arena, err);
}

static enum ms_rc check_place(struct self__ctx *c, uint32_t place, struct ms_err *err)
{
    struct probe_dump *d;
    struct ms_err why = {0};
    enum ms_rc rc = probe_dump_open(&d, self__place(c, place)->json, c->flags, c->pool, &why);
    if (rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED) {
        *err = why;
        return rc;
    }
    if (rc != MS_OK)
        return note_failure(c->s, &why, err);
    c->s->scope.dumps++;
    rc = self__scan(c, d, place, err);
    if (rc == MS_OK)
        rc = self__mirror(c, d, place, err);
    probe_dump_close(d);
    return rc;
}

/* Sorts errors before warnings, then in order of execution, so that causes precede consequences. */
static int by_weight(const void *p, const void *q)
{
    const struct self_finding *x = p, *y = q;
    if (x->error != y->error)
        return x->error ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static enum ms_rc check_places(struct self__ctx *c, uint32_t from, uint32_t to, struct ms_err *err)
{
    for (uint32_t i = from; i < to; i++) {
        ms_progress_part(c->bar, i - from, to - from, MS_PACE_DUMPS);
        MS_TRY(check_place(c, i, err));
    }
    return MS_OK;
}

/* Checks what dumps of different ranks and steps say of each other. */
static enum ms_rc check_together(struct self__ctx *c, struct ms_err *err)
{
    struct self_check *s = c->s;
    if (s->scope.dumps == 0)
        return ms_fail(err, MS_E_FORMAT, "%.*s", MS_STR_ARG(s->failures.p[0]));
    MS_TRY(self__ranks(c, err));
    MS_TRY(self__steps(c, err));
    if (s->findings.n != 0)
        qsort(s->findings.p, s->findings.n, sizeof *s->findings.p, by_weight);
    return MS_OK;
}

static enum ms_rc check_all(struct self__ctx *c, const char *path, struct ms_par *par,
                            struct ms_err *err)
{
    struct self_check *s = c->s;
    s->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = s->arena != NULL ? probe_find(&s->places, path, err) : ms_no_memory(err);
    if (ms_par_size(par) > 1)
        rc = self__share_places(c, par, check_places, rc, err);
    else if (rc == MS_OK)
        rc = check_places(c, 0, (uint32_t)s->places.list.n, err);
    return rc == MS_OK && ms_par_rank(par) == 0 ? check_together(c, err) : rc;
}

enum ms_rc self_check_run(struct self_check *s, const char *path, unsigned flags,
                          struct ms_pool *pool, struct ms_par *par, struct ms_progress *bar,
                          struct ms_err *err)
{
    *s = (struct self_check){.arena = NULL};
    struct self__ctx c = {
        .s = s, .flags = flags, .pool = pool, .bar = bar, .text = {.max = TEXT_MAX}};
    enum ms_rc rc = check_all(&c, path, par, err);
    ms_vec_free(&c.facts);
    ms_map_free(&c.names);
    ms_buf_free(&c.text);
    if (rc != MS_OK)
        self_check_free(s);
    return rc;
}

void self_check_free(struct self_check *s)
{
    if (s->places.arena != NULL)
        probe_places_free(&s->places);
    ms_vec_free(&s->findings);
    ms_vec_free(&s->failures);
    ms_arena_free(s->arena);
    *s = (struct self_check){.arena = NULL};
}
