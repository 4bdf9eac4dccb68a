/* SPDX-License-Identifier: MIT
 *
 * against_words: see the header.
 */
#include "mstx/differ/against_words.h"

#include "mstx/format/step_name.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int32_t mstx__against_rank(const struct mstx_against *a, size_t pair)
{
    const int32_t rank = a->new.rank.p[a->difference.pair.p[pair].new_rank].rank;
    return rank < 0 ? (int32_t)pair : rank;
}

double mstx_against_slower(const struct mstx_against *a)
{
    double sum = 0;
    for (size_t i = 0; i < a->causes.list.n; i++)
        sum += a->causes.list.p[i].cost_ns;
    return a->difference.old_quiet_ns > 0 ? sum / a->difference.old_quiet_ns : 0;
}

bool mstx__against_fails(const struct mstx_against *a, double gate)
{
    return gate < 0 ? a->causes.list.n != 0 : mstx_against_slower(a) > gate;
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* The place in words: its own name and those around it, without those that repeat. */
static void put_place(const struct mstx_against *a, uint32_t place, struct ms_buf *out)
{
    const struct mstx_places *p = &a->places;
    const struct mstx_place *at = &p->list.p[place];
    if (place == MSTX_ROOT) {
        ms_buf_puts(out, "what no range or operator covers");
        return;
    }
    ms_buf_str(out, mstx__places_text(p, place));
    if (at->parent != MSTX_ROOT) {
        ms_buf_puts(out, " in ");
        mstx__places_path(p, at->parent, out);
    }
}

static void put_change(const struct mstx_against *a, const struct mstx_cause *c, struct ms_buf *out)
{
    char old[MS_HUMAN_MAX], new[MS_HUMAN_MAX];
    put_place(a, c->place, out);
    ms_human_time(old, (int64_t)c->old_ns);
    ms_human_time(new, (int64_t)c->new_ns);
    if (c->others != 0)
        ms_buf_printf(out, " and %" PRIu32 " more are new there and take %s", c->others, new);
    else if (c->old_ns <= 0)
        ms_buf_printf(out, " is new and takes %s", new);
    else
        ms_buf_printf(out, " takes %s instead of %s", new, old);
}

void mstx__against_sentence(const struct mstx_against *a, const struct mstx_cause *c,
                            struct ms_buf *out)
{
    char cost[MS_HUMAN_MAX], low[MS_HUMAN_MAX], high[MS_HUMAN_MAX];
    ms_human_time(cost, (int64_t)c->cost_ns);
    ms_human_time(low, (int64_t)fabs(c->low_ns));
    ms_human_time(high, (int64_t)c->high_ns);
    ms_buf_printf(out, "+%s a step [%s%s, %s], %s", cost, c->low_ns < 0 ? "-" : "", low, high,
                  mstx__cause_word(c->kind));
    if (c->pair >= 0)
        ms_buf_printf(out, " of rank %" PRId32, mstx__against_rank(a, (size_t)c->pair));
    ms_buf_puts(out, ": ");
    if (c->kind == MSTX_CAUSE_HOST)
        ms_buf_puts(out, "steps are disturbed for much longer than before, by other programs or by "
                         "threads of this one");
    else
        put_change(a, c, out);
}

/* ---- the split ------------------------------------------------------------------------------- */

struct mstx_split mstx__against_split(const struct mstx_against *a)
{
    const struct mstx_difference *d = &a->difference;
    const struct mstx_change *all = &d->change[MSTX_ROOT];
    struct mstx_split s = {0};
    double common = 0, host = 0;
    for (size_t i = 0; i < a->causes.list.n; i++) {
        const struct mstx_cause *c = &a->causes.list.p[i];
        s.causes += c->cost_ns;
        common += c->pair < 0 && c->kind != MSTX_CAUSE_HOST ? c->cost_ns : 0;
        host += c->kind == MSTX_CAUSE_HOST ? c->cost_ns : 0;
    }
    s.alike = (d->factor - 1) * all->old_ns;
    s.below = all->all.ns - common;
    s.disturbed = (d->new_step_ns - d->new_quiet_ns) - (d->old_step_ns - d->old_quiet_ns) - host;
    s.waiting = d->new_step_ns - d->old_step_ns - s.causes - s.alike - s.below - s.disturbed;
    return s;
}

/* ---- names ----------------------------------------------------------------------------------- */

static size_t steps_of(const struct mstx_profile *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->rank.n; i++)
        n += p->rank.p[i].steps;
    return n;
}

static struct mstx_profile_name name_at(const mstx_profile_names *list, uint32_t name)
{
    return name < list->n ? list->p[name] : (struct mstx_profile_name){0};
}

static bool add_name(const struct mstx_against *a, uint32_t name, bool on_device,
                     mstx_name_changes *out)
{
    const struct mstx_profile_name old = name_at(on_device ? &a->old.device : &a->old.host, name),
                                   new = name_at(on_device ? &a->new.device : &a->new.host, name);
    if (old.count == 0 && new.count == 0)
        return true;
    struct mstx_name_change *slot = ms_vec_push(out);
    if (slot != NULL)
        *slot =
            (struct mstx_name_change){.name = name,
                                      .on_device = on_device,
                                      .old_count = old.count,
                                      .new_count = new.count,
                                      .old_ns = (double)old.ns,
                                      .new_ns = (double)new.ns,
                                      .old_step_ns = (double)old.ns / (double)steps_of(&a->old),
                                      .new_step_ns = (double)new.ns / (double)steps_of(&a->new)};
    return slot != NULL;
}

static int most_changed_first(const void *pa, const void *pb)
{
    const struct mstx_name_change *a = pa, *b = pb;
    const double x = fabs(a->new_step_ns - a->old_step_ns),
                 y = fabs(b->new_step_ns - b->old_step_ns);
    return MS_ORDER(y, x, MS_ORDER(a->name, b->name, MS_ORDER(a->on_device, b->on_device, 0)));
}

bool mstx__against_names(const struct mstx_against *a, mstx_name_changes *out)
{
    bool ok = true;
    for (uint32_t i = 0; i < a->places.names.keys.n && ok; i++)
        ok = add_name(a, i, false, out) && add_name(a, i, true, out);
    ms_vec_sort(out, most_changed_first);
    if (!ok)
        ms_vec_free(out);
    return ok;
}

size_t mstx__against_drop_steps(const struct mstx_against *a, mstx_name_changes *c)
{
    size_t n = 0;
    int64_t number;
    for (size_t i = 0; i < c->n; i++) {
        if (!mstx_is_step_name(ms_map_key(&a->places.names, c->p[i].name), &number))
            c->p[n++] = c->p[i];
    }
    return c->n = n;
}

/* ---- what is hidden -------------------------------------------------------------------------- */

/* A name is hidden when the steps feel less than this share of what it takes longer. */
static const double FELT = 0.25, HIDDEN_LEAST = 0.012, HIDDEN_NOISE = 4;

/* Adds up, by name, the excess of what devices executed on the trails of the steps. */
static double *felt_by_name(const struct mstx_against *a)
{
    double *felt = ms_calloc(a->places.names.keys.n + 1, sizeof *felt);
    for (size_t i = 0; felt != NULL && i < a->places.list.n; i++) {
        const struct mstx_place *p = &a->places.list.p[i];
        if (p->kind == MSTX_PLACE_KERNEL || p->kind == MSTX_PLACE_COPY ||
            p->kind == MSTX_PLACE_COMM)
            felt[p->name] += a->difference.change[i].own.ns;
    }
    return felt;
}

static bool is_hidden(const struct mstx_against *a, const struct mstx_name_change *c, double felt)
{
    const struct mstx_difference *d = &a->difference;
    const double more = c->new_step_ns - c->old_step_ns;
    return c->on_device && more >= HIDDEN_LEAST * d->old_quiet_ns &&
           more >= HIDDEN_NOISE * d->scatter * c->old_step_ns && felt < FELT * more;
}

bool mstx__against_hidden(const struct mstx_against *a, mstx_name_changes *out)
{
    double *felt = felt_by_name(a);
    const bool ok = felt != NULL && mstx__against_names(a, out);
    size_t n = 0;
    for (size_t i = 0; i < out->n && ok; i++) {
        if (is_hidden(a, &out->p[i], felt[out->p[i].name]))
            out->p[n++] = out->p[i];
    }
    out->n = n;
    ms_free(felt);
    return ok;
}
