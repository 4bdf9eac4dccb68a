/* SPDX-License-Identifier: MIT
 *
 * selfcheck_share: checks the dumps of a run with all processes of mpirun.
 *
 *     each process   a part of the dumps ──► findings, facts, failures ──► process 0
 *     process 0      joins them in the order of the dumps, then checks ranks and steps
 *
 * Names are numbered in the order in which a single process would meet them, so that the result does
 * not depend on the number of processes.
 */
#include "compare/check/selfcheck_int.h"

#include "probe/base/exchange.h"

uint32_t self__share_begin(uint32_t places, unsigned process, unsigned processes)
{
    return (uint32_t)((uint64_t)places * process / processes);
}

/* ---- sending ---------------------------------------------------------------- */

static void put_finding(struct ms_buf *b, const struct self_finding *f)
{
    ms_put_bytes(b, f, sizeof *f); /* its texts follow, its pointers mean nothing */
    ms_put_text(b, ms_str_of(f->pattern));
    ms_put_text(b, f->node);
    ms_put_text(b, f->row);
    ms_put_text(b, f->text);
}

void self__share_put(struct ms_buf *b, const struct self__ctx *c)
{
    const struct self_check *s = c->s;
    ms_put_bytes(b, &s->scope, sizeof s->scope);
    const uint64_t count[] = {s->findings.n, s->failures.n, c->names.keys.n, c->facts.n};
    ms_put_bytes(b, count, sizeof count);
    for (size_t i = 0; i < s->findings.n; i++)
        put_finding(b, &s->findings.p[i]);
    for (size_t i = 0; i < s->failures.n; i++)
        ms_put_text(b, s->failures.p[i]);
    for (uint32_t i = 0; i < c->names.keys.n; i++)
        ms_put_text(b, ms_map_key(&c->names, i));
    for (size_t i = 0; i < c->facts.n; i++) {
        ms_put_bytes(b, &c->facts.p[i], sizeof c->facts.p[i]);
        ms_put_text(b, c->facts.p[i].node);
    }
}

/* ---- receiving -------------------------------------------------------------- */

/* What is taken from the message of one process. */
struct joining {
    struct self__ctx *c;
    struct ms_taker from;
    MS_VEC(uint32_t) name; /* by number in that process: the number here */
};

/* Takes a text into the arena. */
static enum ms_rc take_text(struct joining *j, struct ms_str *to, struct ms_err *err)
{
    *to = ms_arena_str(j->c->s->arena, ms_take_text(&j->from));
    return to->p != NULL ? MS_OK : ms_arena_fail(j->c->s->arena, err);
}

static enum ms_rc take_finding(struct joining *j, struct ms_err *err)
{
    struct self_finding f;
    struct ms_str pattern;
    ms_take_bytes(&j->from, &f, sizeof f);
    MS_TRY(take_text(j, &pattern, err));
    MS_TRY(take_text(j, &f.node, err));
    MS_TRY(take_text(j, &f.row, err));
    MS_TRY(take_text(j, &f.text, err));
    f.pattern = pattern.p; /* ends in a zero byte, as each text of an arena */
    struct self_finding *slot = ms_vec_push(&j->c->s->findings);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = f;
    return MS_OK;
}

static enum ms_rc take_failure(struct joining *j, struct ms_err *err)
{
    struct ms_str *slot = ms_vec_push(&j->c->s->failures);
    return slot != NULL ? take_text(j, slot, err) : ms_no_memory(err);
}

static enum ms_rc take_name(struct joining *j, struct ms_err *err)
{
    uint32_t *slot = ms_vec_push(&j->name);
    return slot != NULL ? self__name(j->c, ms_take_text(&j->from), slot, err) : ms_no_memory(err);
}

static enum ms_rc take_fact(struct joining *j, struct ms_err *err)
{
    struct self__fact f;
    ms_take_bytes(&j->from, &f, sizeof f);
    MS_TRY(take_text(j, &f.node, err));
    j->from.bad |= f.key >= j->name.n || f.class >= j->name.n;
    struct self__fact *slot = ms_vec_push(&j->c->facts);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = f;
    slot->key = !j->from.bad ? j->name.p[f.key] : 0;
    slot->class = !j->from.bad ? j->name.p[f.class] : 0;
    return MS_OK;
}

static void add_scope(struct self_scope *to, const struct self_scope *of)
{
    to->dumps += of->dumps;
    to->tensors += of->tensors;
    to->bad_tensors += of->bad_tensors;
    to->unclear += of->unclear;
    for (int i = 0; i < SELF_KINDS; i++)
        to->looked[i] += of->looked[i];
}

static enum ms_rc take_part(struct joining *j, struct ms_err *err)
{
    typedef enum ms_rc take_fn(struct joining * j, struct ms_err * err);
    static take_fn *const take[] = {take_finding, take_failure, take_name, take_fact};
    struct self_scope scope;
    uint64_t count[sizeof take / sizeof *take];
    ms_take_bytes(&j->from, &scope, sizeof scope);
    ms_take_bytes(&j->from, count, sizeof count);
    add_scope(&j->c->s->scope, &scope);
    for (size_t k = 0; k < sizeof take / sizeof *take; k++) {
        for (uint64_t i = 0; i < count[k] && !j->from.bad; i++)
            MS_TRY(take[k](j, err));
    }
    return j->from.bad ? ms_fail(err, MS_E_INTERNAL, "a message between processes is damaged")
                       : MS_OK;
}

enum ms_rc self__share_take(struct self__ctx *c, struct ms_taker from, struct ms_err *err)
{
    struct joining j = {.c = c, .from = from};
    const enum ms_rc rc = take_part(&j, err);
    ms_vec_free(&j.name);
    return rc;
}

/* ---- the job ---------------------------------------------------------------- */

/* Fails in a process that does not see the dumps that process 0 sees. */
static enum ms_rc see_same(struct ms_par *par, const struct probe_places *places, enum ms_rc found,
                           struct ms_err *err)
{
    uint64_t here = places->list.n;
    for (size_t i = 0; i < places->list.n; i++)
        here = ms_hash_mix(here, ms_str_hash(ms_str_of(places->list.p[i].json)));
    uint64_t first = here;
    MS_TRY(ms_par_share(par, &first, sizeof first, err));
    if (found != MS_OK || first == here)
        return found;
    return ms_fail(err, MS_E_IO,
                   "the processes do not see the same dumps; are the paths on a file system that "
                   "they share?");
}

enum ms_rc self__share_places(struct self__ctx *c, struct ms_par *par, self__places_fn *check,
                              enum ms_rc found, struct ms_err *err)
{
    const unsigned k = ms_par_size(par), own = ms_par_rank(par);
    const uint32_t n = found == MS_OK ? (uint32_t)c->s->places.list.n : 0;
    struct ms_buf part = {.max = MS_SHARE_MAX};
    struct ms_gathered all;
    enum ms_rc rc = see_same(par, &c->s->places, found, err);
    if (rc == MS_OK)
        rc = check(c, self__share_begin(n, own, k), self__share_begin(n, own + 1, k), err);
    if (rc == MS_OK && own != 0)
        self__share_put(&part, c);
    rc = ms_share_gather(par, &part, rc, &all, err);
    for (unsigned p = 1; p < k && own == 0 && rc == MS_OK; p++)
        rc = self__share_take(c, ms_gathered_message(&all, p), err);
    ms_gathered_free(&all);
    ms_buf_free(&part);
    return rc;
}
