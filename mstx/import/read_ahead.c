/* SPDX-License-Identifier: MIT
 *
 * read_ahead: see the header.
 */
#include "mstx/import/read_ahead.h"

#include "mstx/read/records.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <pthread.h>

enum { READERS_MOST = 7 };

struct problem {
    char *file, *text;
};

struct slot {
    struct mstx_read_proc proc;
    struct mstx_ahead *of;
    struct mstx_text_sink sink;
    struct ms_map text; /* texts that only this slot has; index + known + 1 is the id */
    struct ms_arena *arena;
    MS_VEC(struct problem) problem;
    bool is_read, no_memory;
};

struct mstx_ahead {
    struct mstx_ahead_how how;
    struct ms_map known; /* texts of run.db when the threads began; index + 1 is the id */
    struct slot *slot;
    size_t slots;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread[READERS_MOST];
    unsigned threads;
    size_t next;  /* place that the next free thread reads */
    size_t taken; /* place whose slot is in use; later ones are read ahead */
    bool stops;
};

/* ---- one process ------------------------------------------------------------- */

void mstx__proc_read(struct mstx_read_proc *r, struct mstx_proc *p,
                     const struct mstx_text_sink *sink, const struct mstx_problems *to,
                     bool no_args)
{
    r->err = (struct ms_err){0};
    r->has_texts = false;
    r->rc = mstx__proc_open(p, to, &r->err);
    if (r->rc != MS_OK || p->seg.n == 0)
        return;
    r->rc = mstx__texts_read(&r->texts, p, sink, to, &r->err);
    if (r->rc != MS_OK)
        return;
    r->has_texts = true;
    r->lanes.no_args = no_args;
    mstx__lanes_read(&r->lanes, p, &r->texts);
    if (r->lanes.no_memory)
        r->rc = ms_fail(&r->err, MS_E_NOMEM, "%s: %s", p->dir, ms_rc_text(MS_E_NOMEM));
}

void mstx__proc_done(struct mstx_read_proc *r, struct mstx_proc *p)
{
    if (r->has_texts)
        mstx__texts_free(&r->texts);
    r->has_texts = false;
    mstx__proc_close(p);
}

/* ---- texts and problems of a slot ------------------------------------------------ */

static uint32_t put_text(void *ctx, struct ms_str text)
{
    struct slot *s = ctx;
    if (text.n == 0)
        return 0;
    const uint32_t known = ms_map_get(&s->of->known, text);
    if (known != MS_MAP_NONE)
        return known + 1;
    const uint32_t at = ms_map_put_copy(&s->text, text, s->arena, NULL);
    s->no_memory |= at == MS_MAP_NONE;
    return at != MS_MAP_NONE ? (uint32_t)s->of->known.keys.n + at + 1 : 0;
}

static struct ms_str get_text(const void *ctx, uint32_t id)
{
    const struct slot *s = ctx;
    const size_t known = s->of->known.keys.n;
    if (id == 0 || id > known + s->text.keys.n)
        return MS_STR("");
    return id <= known ? ms_map_key(&s->of->known, id - 1)
                       : ms_map_key(&s->text, id - (uint32_t)known - 1);
}

static void keep_failure(void *ctx, const struct ms_err *err)
{
    struct slot *s = ctx;
    (void)err;
    s->no_memory = true; /* the only failure of reading texts */
}

static void keep_problem(void *ctx, const char *file, struct ms_err *err)
{
    struct slot *s = ctx;
    struct problem *p = ms_vec_push(&s->problem);
    if (p != NULL)
        *p = (struct problem){ms_str_dup(ms_str_of(file)), ms_str_dup(ms_str_of(err->msg))};
    s->no_memory |= p == NULL || p->file == NULL || p->text == NULL;
}

static void tell_problems(struct slot *s, const struct mstx_problems *to)
{
    for (size_t i = 0; i < s->problem.n; i++) {
        struct ms_err err = {0};
        const struct problem *p = &s->problem.p[i];
        if (p->file != NULL && p->text != NULL &&
            ms_fail(&err, MS_E_FORMAT, "%s", p->text) != MS_OK)
            to->fn(to->ctx, p->file, &err);
        ms_err_clear(&err);
    }
}

static void forget_slot(struct slot *s)
{
    for (size_t i = 0; i < s->problem.n; i++) {
        ms_free(s->problem.p[i].file);
        ms_free(s->problem.p[i].text);
    }
    s->problem.n = 0;
    ms_map_free(&s->text);
    s->text = (struct ms_map){0};
    ms_arena_free(s->arena);
    s->arena = NULL;
    s->no_memory = false;
}

/* ---- new texts ------------------------------------------------------------------------ */

static void renumber(uint32_t *id, size_t known, const uint32_t *to)
{
    if (*id > known)
        *id = to[*id - known - 1];
}

/* Gives the texts that only this slot has their ids in run.db. */
static bool renumber_texts(struct slot *s, struct mstx_writer *w)
{
    const size_t known = s->of->known.keys.n, n = s->text.keys.n;
    struct mstx_lanes *l = &s->proc.lanes;
    if (n == 0)
        return true;
    uint32_t *to = ms_alloc(n * sizeof *to);
    for (size_t i = 0; i < n && to != NULL; i++)
        to[i] = mstx__writer_text(w, ms_map_key(&s->text, (uint32_t)i));
    for (size_t i = 0; i < l->lane.n && to != NULL; i++) {
        struct mstx_lane *lane = &l->lane.p[i];
        renumber(&lane->domain, known, to);
        renumber(&lane->name, known, to);
        renumber(&lane->unit, known, to);
        for (size_t k = 0; k < lane->ev.n; k++)
            renumber(&lane->ev.p[k].name, known, to);
    }
    for (size_t i = 0; i < l->extra.n && to != NULL; i++)
        renumber(&l->extra.p[i].args, known, to);
    if (to != NULL)
        renumber(&s->proc.texts.process_name, known, to);
    ms_free(to);
    return to != NULL;
}

/* ---- threads ---------------------------------------------------------------------------- */

static void read_slot(struct mstx_ahead *a, struct slot *s, size_t place)
{
    const struct mstx_problems problems = {keep_problem, s};
    forget_slot(s);
    s->proc.rc = MS_OK;
    if (!a->how.is_wanted(a->how.ctx, place))
        return;
    s->arena = ms_arena_new((size_t)1 << 34);
    if (s->arena != NULL)
        mstx__proc_read(&s->proc, &a->how.procs->list.p[place], &s->sink, &problems,
                        a->how.no_args);
    if ((s->arena == NULL || s->no_memory) && s->proc.rc == MS_OK)
        s->proc.rc = ms_no_memory(&s->proc.err);
}

/* Waits for a place whose slot is free; false: there is none any more. */
static bool next_place(struct mstx_ahead *a, size_t *place)
{
    pthread_mutex_lock(&a->lock);
    while (!a->stops && a->next < a->how.to && a->next >= a->taken + a->slots)
        pthread_cond_wait(&a->changed, &a->lock);
    const bool more = !a->stops && a->next < a->how.to;
    *place = a->next;
    a->next += more;
    pthread_mutex_unlock(&a->lock);
    return more;
}

static void *read_places(void *arg)
{
    struct mstx_ahead *a = arg;
    size_t place;
    while (next_place(a, &place)) {
        struct slot *s = &a->slot[place % a->slots];
        read_slot(a, s, place);
        pthread_mutex_lock(&a->lock);
        s->is_read = true;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

struct mstx_read_proc *mstx__ahead_take(struct mstx_ahead *a, size_t place,
                                        const struct mstx_problems *to, struct mstx_writer *w)
{
    struct slot *s = &a->slot[place % a->slots];
    pthread_mutex_lock(&a->lock);
    ms_assert(place >= a->taken && place < a->how.to);
    a->taken = place;
    pthread_cond_broadcast(&a->changed);
    while (!s->is_read)
        pthread_cond_wait(&a->changed, &a->lock);
    s->is_read = false;
    pthread_mutex_unlock(&a->lock);
    tell_problems(s, to);
    if (s->proc.rc == MS_OK && !renumber_texts(s, w))
        s->proc.rc = ms_no_memory(&s->proc.err);
    return &s->proc;
}

/* ---- life --------------------------------------------------------------------------------- */

static enum ms_rc make_slots(struct mstx_ahead *a, const struct mstx_writer *w, struct ms_err *err)
{
    for (uint32_t i = 1; i <= mstx__writer_texts(w); i++) {
        if (ms_map_put(&a->known, mstx__writer_text_of(w, i), NULL) == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    a->slot = ms_calloc(a->slots, sizeof *a->slot);
    if (a->slot == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < a->slots; i++) {
        struct slot *s = &a->slot[i];
        s->of = a;
        s->sink = (struct mstx_text_sink){s, put_text, get_text, keep_failure};
        MS_TRY(mstx__lanes_new(&s->proc.lanes, err));
    }
    return MS_OK;
}

/* Starts as many threads as the system allows, at least one. */
static enum ms_rc start_threads(struct mstx_ahead *a, unsigned n, struct ms_err *err)
{
    while (a->threads < n && pthread_create(&a->thread[a->threads], NULL, read_places, a) == 0)
        a->threads++;
    return a->threads != 0 ? MS_OK : ms_fail(err, MS_E_NOMEM, "no thread could be started");
}

enum ms_rc mstx__ahead_new(struct mstx_ahead **out, const struct mstx_ahead_how *how,
                           const struct mstx_writer *w, struct ms_err *err)
{
    ms_assert(how->threads >= 2);
    struct mstx_ahead *a = ms_calloc(1, sizeof *a);
    *out = NULL;
    if (a == NULL)
        return ms_no_memory(err);
    const unsigned readers = how->threads - 1 < READERS_MOST ? how->threads - 1 : READERS_MOST;
    a->how = *how;
    a->next = a->taken = how->from;
    a->slots = readers + 1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    enum ms_rc rc = make_slots(a, w, err);
    if (rc == MS_OK)
        rc = start_threads(a, readers, err);
    if (rc == MS_OK)
        *out = a;
    else
        mstx__ahead_free(a);
    return rc;
}

void mstx__ahead_free(struct mstx_ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->stops = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    for (unsigned i = 0; i < a->threads; i++)
        pthread_join(a->thread[i], NULL);
    for (size_t i = a->taken; i < a->next; i++)
        mstx__proc_done(&a->slot[i % a->slots].proc, &a->how.procs->list.p[i]);
    for (size_t i = 0; a->slot != NULL && i < a->slots; i++) {
        forget_slot(&a->slot[i]);
        mstx__lanes_free(&a->slot[i].proc.lanes);
        ms_vec_free(&a->slot[i].problem);
    }
    ms_free(a->slot);
    ms_map_free(&a->known);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    ms_free(a);
}
