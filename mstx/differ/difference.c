/* SPDX-License-Identifier: MIT
 *
 * difference: see the header.
 */
#include "mstx/differ/difference.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <string.h>

/* Places below this share of a step say nothing about the factor, nor do fewer than so many. */
static const double TELLING = 0.003;
enum { TELLING_MIN = 3 };
/* Scatter of places that is due to the host: on a quiet one, and more for each unit of `disturbed`;
 * and deviation of the factor from 1, the same with `loaded`. */
static const double SCATTER = 0.02, SCATTER_MORE = 0.03, FACTOR = 0.05, FACTOR_MORE = 0.3;
/* What makes all places longer makes some longer than others, by this share of it. */
static const double SCATTER_UNLIKE = 0.25, SCATTER_MOST = 0.3;

/* One place in both runs, of one pair of ranks; NULL: it does not occur. */
struct both {
    uint32_t place, pair;
    const struct mstx_figure *old, *new;
};

struct finding_difference {
    struct mstx_difference *d;
    MS_VEC(struct both) both;      /* by place, then pair */
    double *old_block, *new_block; /* by place, MSTX_BLOCKS each */
    double *variance;              /* by place: between runs of the old program */
    double *value;                 /* room for a number of each pair */
};

static double quiet_of(const struct mstx_figure *f)
{
    return f != NULL ? f->quiet : 0;
}

/* ---- ranks and places of both runs --------------------------------------------------------- */

static bool pair_ranks(struct mstx_difference *d)
{
    const size_t n = d->old->rank.n, m = d->new->rank.n;
    bool is_named = false;
    for (size_t k = 0; k < 2; k++) { /* by their numbers; when none fits, in their order */
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < m; j++) {
                if (k == 0 ? d->old->rank.p[i].rank != d->new->rank.p[j].rank ||
                                 d->old->rank.p[i].rank < 0
                           : i != j)
                    continue;
                struct mstx_rank_pair *slot = ms_vec_push(&d->pair);
                if (slot == NULL)
                    return false;
                *slot = (struct mstx_rank_pair){.old_rank = i, .new_rank = j};
                is_named = true;
                break;
            }
        }
        if (is_named)
            break;
    }
    return true;
}

static int by_place(const void *pa, const void *pb)
{
    const struct both *a = pa, *b = pb;
    return MS_ORDER(a->place, b->place,
                    MS_ORDER(a->pair, b->pair, MS_ORDER(a->old == NULL, b->old == NULL, 0)));
}

static bool add_figures(struct finding_difference *f, const struct mstx_profile *p, bool is_new)
{
    const size_t ranks = p->rank.n;
    uint32_t *pair_of = ms_calloc(ranks + 1, sizeof *pair_of); /* and 1 */
    if (pair_of == NULL)
        return false;
    for (uint32_t i = 0; i < f->d->pair.n; i++)
        pair_of[is_new ? f->d->pair.p[i].new_rank : f->d->pair.p[i].old_rank] = i + 1;
    bool ok = true;
    for (size_t i = 0; i < p->figure.n && ok; i++) {
        const struct mstx_figure *g = &p->figure.p[i];
        if (pair_of[g->rank] == 0)
            continue;
        struct both *slot = ms_vec_push(&f->both);
        ok = slot != NULL;
        if (ok)
            *slot = (struct both){.place = g->place,
                                  .pair = pair_of[g->rank] - 1,
                                  .old = is_new ? NULL : g,
                                  .new = is_new ? g : NULL};
    }
    ms_free(pair_of);
    return ok;
}

static bool pair_figures(struct finding_difference *f)
{
    if (!add_figures(f, f->d->old, false) || !add_figures(f, f->d->new, true))
        return false;
    ms_vec_sort(&f->both, by_place);
    size_t n = 0;
    for (size_t i = 0; i < f->both.n; i++) {
        struct both *b = &f->both.p[i];
        if (n != 0 && f->both.p[n - 1].place == b->place && f->both.p[n - 1].pair == b->pair)
            f->both.p[n - 1].new = b->new;
        else
            f->both.p[n++] = *b;
    }
    f->both.n = n;
    return true;
}

/* ---- what ranks have in common --------------------------------------------------------------- */

/* What stands for all ranks at a place. */
struct common {
    const struct mstx_figure *old, *new;
};

static double excess_of(const struct finding_difference *f, const struct both *b)
{
    return quiet_of(b->new) - f->d->factor * quiet_of(b->old);
}

/* Communication: the rank that waits least, in each run. */
static struct common least_waiting(const struct both *b, size_t n)
{
    struct common c = {b[0].old, b[0].new};
    for (size_t i = 1; i < n; i++) {
        if (b[i].old != NULL && (c.old == NULL || b[i].old->quiet < c.old->quiet))
            c.old = b[i].old;
        if (b[i].new != NULL && (c.new == NULL || b[i].new->quiet < c.new->quiet))
            c.new = b[i].new;
    }
    return c;
}

/* Work: the rank whose excess is the lower median of those of all pairs; pairs without this place
 * have none. */
static struct common middle(const struct finding_difference *f, const struct both *b, size_t n)
{
    const size_t pairs = f->d->pair.n;
    for (size_t i = 0; i < pairs; i++)
        f->value[i] = i < n ? excess_of(f, &b[i]) : 0;
    qsort(f->value, pairs, sizeof *f->value, ms_order_f64);
    const double lower = f->value[(pairs - 1) / 2];
    for (size_t i = 0; i < n; i++) {
        if (excess_of(f, &b[i]) == lower)
            return (struct common){b[i].old, b[i].new};
    }
    return (struct common){NULL, NULL};
}

static enum mstx_place_kind kind_of(const struct finding_difference *f, uint32_t place)
{
    return f->d->places->list.p[place].kind;
}

static struct common common_of(const struct finding_difference *f, const struct both *b, size_t n)
{
    return kind_of(f, b->place) == MSTX_PLACE_COMM ? least_waiting(b, n) : middle(f, b, n);
}

/* Returns how many entries have the place of entry i. */
static size_t entries_at(const struct finding_difference *f, size_t i)
{
    size_t n = 1;
    while (i + n < f->both.n && f->both.p[i + n].place == f->both.p[i].place)
        n++;
    return n;
}

/* ---- the factor -------------------------------------------------------------------------------- */

struct ratio {
    double log, weight;
};

static int by_log(const void *pa, const void *pb)
{
    const struct ratio *a = pa, *b = pb;
    return MS_ORDER(a->log, b->log, 0);
}

static double weighted_median(struct ratio *r, size_t n)
{
    double all = 0, sum = 0;
    qsort(r, n, sizeof *r, by_log);
    for (size_t i = 0; i < n; i++)
        all += r[i].weight;
    for (size_t i = 0; i < n; i++) {
        sum += r[i].weight;
        if (2 * sum >= all)
            return r[i].log;
    }
    return 0;
}

static double clip(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

/* Finds by which factor places differ when nothing else does, and how they scatter around it. */
static bool find_factor(struct finding_difference *f)
{
    struct mstx_difference *d = f->d;
    struct ratio *r = ms_calloc(f->both.n + 1, sizeof *r);
    size_t n = 0;
    if (r == NULL)
        return false;
    d->factor = 1;
    for (size_t i = 0, k; i < f->both.n; i += k) {
        k = entries_at(f, i);
        const struct common c = common_of(f, &f->both.p[i], k);
        const double old = quiet_of(c.old), new = quiet_of(c.new);
        if (kind_of(f, f->both.p[i].place) != MSTX_PLACE_COMM && new > 0 &&
            old > TELLING * d->old_quiet_ns)
            r[n++] = (struct ratio){log(new / old), old < new ? old : new};
    }
    d->compared = n;
    d->scatter = 0;
    if (n >= TELLING_MIN) {
        const double middle_log = weighted_median(r, n);
        for (size_t i = 0; i < n; i++)
            r[i] = (struct ratio){fabs(r[i].log - middle_log), r[i].weight};
        d->scatter = 1.4826 * weighted_median(r, n);
        d->factor = exp(clip(middle_log, FACTOR + FACTOR_MORE * d->loaded));
    }
    const double least =
        SCATTER + SCATTER_MORE * d->disturbed + SCATTER_UNLIKE * fabs(log(d->factor));
    d->scatter = d->scatter > least ? d->scatter : least;
    d->scatter = d->scatter < SCATTER_MOST ? d->scatter : SCATTER_MOST;
    ms_free(r);
    return true;
}

/* ---- changes ------------------------------------------------------------------------------------- */

static double block_of(const struct mstx_figure *g, size_t k)
{
    return g != NULL ? g->block[k] : 0;
}

static void set_bounds(struct mstx_excess *x, double factor, double old[MSTX_BLOCKS],
                       double new[MSTX_BLOCKS])
{
    qsort(old, MSTX_BLOCKS, sizeof *old, ms_order_f64);
    qsort(new, MSTX_BLOCKS, sizeof *new, ms_order_f64);
    x->low = fmin(new[1] - factor *old[MSTX_BLOCKS - 2], x->ns);
    x->high = fmax(new[MSTX_BLOCKS - 2] - factor *old[1], x->ns);
}

/* Sets the change at one place, without what lies in it. */
static void set_change(struct finding_difference *f, struct mstx_change *c, uint32_t place,
                       const struct mstx_figure *old, const struct mstx_figure *new)
{
    const struct mstx_difference *d = f->d;
    double before[MSTX_BLOCKS], after[MSTX_BLOCKS];
    c->old_ns = quiet_of(old);
    c->new_ns = quiet_of(new);
    /* what only one run has is there, however the places scatter that both have */
    const double scatter = old != NULL && new != NULL ? d->scatter : SCATTER;
    c->own.ns = c->new_ns - d->factor * c->old_ns;
    c->own.noise = scatter * fmax(c->new_ns, d->factor * c->old_ns) +
                   (f->variance != NULL ? sqrt(f->variance[place]) : 0);
    for (size_t k = 0; k < MSTX_BLOCKS; k++) {
        before[k] = f->old_block[place * MSTX_BLOCKS + k] = block_of(old, k);
        after[k] = f->new_block[place * MSTX_BLOCKS + k] = block_of(new, k);
    }
    set_bounds(&c->own, d->factor, before, after);
    c->all = c->own;
}

/* Adds each place to the one around it, and finds the bounds. Noise adds up as it is: what lies
 * together uses the same caches, and differs together. */
static void add_up(struct finding_difference *f, struct mstx_change *change)
{
    const struct mstx_places *p = f->d->places;
    for (size_t i = p->list.n; i-- != 0;) {
        const size_t parent = p->list.p[i].parent;
        struct mstx_change *c = &change[i];
        double *old = f->old_block + i * MSTX_BLOCKS, *new = f->new_block + i *MSTX_BLOCKS;
        for (size_t k = 0; k < MSTX_BLOCKS && i != MSTX_ROOT; k++) {
            f->old_block[parent * MSTX_BLOCKS + k] += old[k];
            f->new_block[parent * MSTX_BLOCKS + k] += new[k];
        }
        if (i != MSTX_ROOT) {
            change[parent].old_ns += c->old_ns;
            change[parent].new_ns += c->new_ns;
            change[parent].all.ns += c->all.ns;
            change[parent].all.noise += c->all.noise;
        }
        set_bounds(&c->all, f->d->factor, old, new);
    }
}

static void find_common(struct finding_difference *f)
{
    for (size_t i = 0, n; i < f->both.n; i += n) {
        const struct both *b = &f->both.p[i];
        n = entries_at(f, i);
        const struct common c = common_of(f, b, n);
        const double excess = quiet_of(c.new) - f->d->factor * quiet_of(c.old);
        set_change(f, &f->d->change[b->place], b->place, c.old, c.new);
        for (size_t k = 0; k < n; k++) {
            struct mstx_rank_pair *pair = &f->d->pair.p[b[k].pair];
            if (kind_of(f, b->place) == MSTX_PLACE_COMM)
                pair->slack_ns += quiet_of(b[k].old) - quiet_of(c.old);
            else
                pair->own_ns += excess_of(f, &b[k]) - fmax(excess, 0);
        }
    }
    add_up(f, f->d->change);
}

/* ---- both runs ------------------------------------------------------------------------------------- */

/* Returns how much longer the work of a run takes than it would undisturbed, as a logarithm. */
static double disturbance(const struct finding_difference *f, const struct mstx_profile *p,
                          double *quiet_ns)
{
    double mean = 0, quiet = 0;
    *quiet_ns = 0;
    for (size_t i = 0; i < p->figure.n; i++) {
        const struct mstx_figure *g = &p->figure.p[i];
        *quiet_ns += g->quiet / (double)p->rank.n;
        if (kind_of(f, g->place) == MSTX_PLACE_COMM)
            continue;
        mean += g->mean;
        quiet += g->quiet;
    }
    return quiet > 0 && mean > quiet ? log(mean / quiet) : 0;
}

/* Sets the means over the ranks. */
static void find_means(struct finding_difference *f)
{
    struct mstx_difference *d = f->d;
    for (size_t i = 0; i < d->old->rank.n; i++)
        d->old_step_ns += d->old->rank.p[i].step_ns / (double)d->old->rank.n;
    for (size_t i = 0; i < d->new->rank.n; i++)
        d->new_step_ns += d->new->rank.p[i].step_ns / (double)d->new->rank.n;
    d->disturbed =
        fmax(disturbance(f, d->old, &d->old_quiet_ns), disturbance(f, d->new, &d->new_quiet_ns));
    d->loaded = fmax(d->old_quiet_ns > 0 ? log(d->old_step_ns / d->old_quiet_ns) : 0,
                     d->new_quiet_ns > 0 ? log(d->new_step_ns / d->new_quiet_ns) : 0);
}

/* Finds how much each place differs between the old run and further ones of its program. */
static bool find_variance(struct finding_difference *f, const struct mstx_profile *noise, size_t n)
{
    const size_t places = f->d->places->list.n;
    double *change = ms_calloc(places, sizeof *change);
    f->variance = ms_calloc(places, sizeof *f->variance);
    const bool ok = change != NULL && f->variance != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        memset(change, 0, places * sizeof *change);
        for (size_t k = 0; k < noise[i].figure.n; k++)
            change[noise[i].figure.p[k].place] +=
                noise[i].figure.p[k].quiet / (double)noise[i].rank.n;
        for (size_t k = 0; k < f->d->old->figure.n; k++)
            change[f->d->old->figure.p[k].place] -=
                f->d->old->figure.p[k].quiet / (double)f->d->old->rank.n;
        for (size_t k = 0; k < places; k++)
            f->variance[k] += change[k] * change[k] / (double)n;
    }
    ms_free(change);
    return ok;
}

static bool begin(struct finding_difference *f)
{
    const size_t places = f->d->places->list.n;
    f->old_block = ms_calloc(places * MSTX_BLOCKS, sizeof *f->old_block);
    f->new_block = ms_calloc(places * MSTX_BLOCKS, sizeof *f->new_block);
    f->value = ms_calloc(f->d->pair.n + 1, sizeof *f->value);
    return f->old_block != NULL && f->new_block != NULL && f->value != NULL && pair_figures(f);
}

static void end(struct finding_difference *f)
{
    ms_vec_free(&f->both);
    ms_free(f->old_block);
    ms_free(f->new_block);
    ms_free(f->value);
    ms_free(f->variance);
}

bool mstx__difference_find(struct mstx_difference *d, const struct mstx_places *places,
                           const struct mstx_profile *old, const struct mstx_profile *new,
                           const struct mstx_profile *noise, size_t noises)
{
    *d = (struct mstx_difference){.places = places, .old = old, .new = new, .factor = 1};
    struct finding_difference f = {.d = d};
    d->change = ms_calloc(places->list.n, sizeof *d->change);
    bool ok = d->change != NULL && pair_ranks(d) && begin(&f) && find_variance(&f, noise, noises);
    if (ok) {
        find_means(&f);
        ok = find_factor(&f);
    }
    if (ok)
        find_common(&f);
    end(&f);
    return ok;
}

struct mstx_change *mstx__difference_of_rank(const struct mstx_difference *d, size_t pair)
{
    struct mstx_difference alone = *d;
    struct finding_difference f = {.d = &alone};
    struct mstx_change *change = ms_calloc(d->places->list.n, sizeof *change);
    const bool ok = change != NULL && begin(&f);
    for (size_t i = 0, n; i < f.both.n && ok; i += n) {
        const struct both *b = &f.both.p[i];
        n = entries_at(&f, i);
        if (kind_of(&f, b->place) == MSTX_PLACE_COMM) { /* as for all */
            const struct common c = common_of(&f, b, n);
            set_change(&f, &change[b->place], b->place, c.old, c.new);
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            if (b[k].pair == pair)
                set_change(&f, &change[b->place], b->place, b[k].old, b[k].new);
        }
    }
    if (ok)
        add_up(&f, change);
    end(&f);
    if (!ok) {
        ms_free(change);
        change = NULL;
    }
    return change;
}

void mstx__difference_free(struct mstx_difference *d)
{
    ms_vec_free(&d->pair);
    ms_free(d->change);
    d->change = NULL;
}
