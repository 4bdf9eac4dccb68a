/* SPDX-License-Identifier: MIT
 *
 * selfcheck_ranks: compares the same value on several ranks and in several steps.
 *
 * The values of a parameter split the ranks into groups with equal values: a single group
 * (replicas), one group per rank (shards), or in between (shards that are replicated). The
 * split that most parameters of a kind have is taken as correct. A few ranks that differ
 * from a majority are always reported.
 */
#include "compare/check/selfcheck_int.h"

#include <stdlib.h>

enum { FEW = 3, LISTED = 8 };
#define USUAL 0.8

struct set { /* facts[first .. first + n), which have one key, step and shape */
    uint32_t first, n;
    uint64_t split; /* hash of the split into ranks with equal values */
    bool equal;     /* all values are equal */
};

struct sorter {
    struct self__ctx *c;
    struct self__fact *facts;
    size_t n;
    uint32_t *part; /* by fact: number of its value within the set */
    MS_VEC(struct set) sets;
};

static int64_t step_of(const struct self__ctx *c, const struct self__fact *f)
{
    return self__place(c, f->place)->step;
}
static int64_t rank_of(const struct self__ctx *c, const struct self__fact *f)
{
    return self__place(c, f->place)->rank;
}

/* Places are listed by step and rank, so their number orders both. */
static int by_key(const void *p, const void *q)
{
    const struct self__fact *x = p, *y = q;
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* ---- splits -------------------------------------------------------------------- */

/* Numbers the distinct values of a set in order of appearance; returns their number. */
static uint32_t number_values(struct sorter *s, struct set *set)
{
    uint32_t parts = 0;
    set->split = set->n;
    for (uint32_t i = 0; i < set->n; i++) {
        uint32_t k = 0;
        const struct self__fact *f = &s->facts[set->first + i];
        while (k < i && s->facts[set->first + k].value != f->value)
            k++;
        s->part[set->first + i] = k < i ? s->part[set->first + k] : parts++;
        set->split = (set->split ^ s->part[set->first + i]) * 0x9e3779b97f4a7c15U;
        set->split = (set->split ^ (uint64_t)rank_of(s->c, f)) * 0x9e3779b97f4a7c15U;
        set->split ^= set->split >> 31;
    }
    set->equal = parts <= 1;
    return parts;
}

/* Lists the sets of facts that can be compared: same key, step and shape on several ranks. */
static enum ms_rc list_sets(struct sorter *s, struct ms_err *err)
{
    for (size_t i = 0, j; i < s->n; i = j) {
        const struct self__fact *f = &s->facts[i];
        for (j = i + 1; j < s->n && s->facts[j].what == f->what && s->facts[j].key == f->key &&
                        step_of(s->c, &s->facts[j]) == step_of(s->c, f) &&
                        s->facts[j].shape == f->shape;)
            j++;
        if (j - i < 2)
            continue;
        struct set *set = ms_vec_push(&s->sets);
        if (set == NULL)
            return ms_no_memory(err);
        *set = (struct set){.first = (uint32_t)i, .n = (uint32_t)(j - i)};
        number_values(s, set);
    }
    return MS_OK;
}

/* Returns the value that more than half of the ranks have; MS_MAP_NONE when there is none. */
static uint32_t find_majority(const struct sorter *s, const struct set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < set->n; k++)
            count += s->part[set->first + k] == s->part[set->first + i];
        if (2 * count > set->n)
            return s->part[set->first + i];
    }
    return MS_MAP_NONE;
}

/* ---- habits -------------------------------------------------------------------- */

/* The most frequent split of the sets of a kind, found by a Boyer-Moore majority vote and then
 * counted. */
struct habit {
    uint32_t all, set, weight, same;
};

static void vote(struct habit *h, const struct set *sets, uint32_t i)
{
    h->all++;
    if (h->weight == 0)
        h->set = i;
    h->weight += sets[i].split == sets[h->set].split ? 1U : UINT32_MAX;
}

/* Returns the usual split, or NULL when there is none. */
static const struct set *find_usual_set(const struct sorter *s, const struct habit *h)
{
    bool is_habit = h->all >= FEW && h->same >= USUAL * h->all;
    return is_habit ? &s->sets.p[h->set] : NULL;
}

struct habits {
    struct habit *of_class; /* by number of the class */
    struct habit of_all[2]; /* by SELF__PARAMETER, SELF__OUTPUT */
};

static enum ms_rc find_habits(const struct sorter *s, struct habits *h, struct ms_err *err)
{
    h->of_class = ms_calloc(s->c->names.keys.n + 1, sizeof *h->of_class);
    if (h->of_class == NULL)
        return ms_no_memory(err);
    for (int counting = 0; counting < 2; counting++) {
        for (uint32_t i = 0; i < s->sets.n; i++) {
            const struct self__fact *f = &s->facts[s->sets.p[i].first];
            struct habit *both[2] = {&h->of_class[f->class], &h->of_all[f->what]};
            for (int k = 0; k < 2; k++) {
                if (counting)
                    both[k]->same += s->sets.p[i].split == s->sets.p[both[k]->set].split;
                else
                    vote(both[k], s->sets.p, i);
            }
        }
    }
    return MS_OK;
}

/* ---- findings -------------------------------------------------------------------- */

static void put_ranks(struct sorter *s, const struct set *set, const bool *chosen, bool which)
{
    struct ms_buf *out = &s->c->text;
    uint32_t shown = 0, all = 0;
    for (uint32_t i = 0; i < set->n; i++)
        all += chosen[i] == which;
    ms_buf_puts(out, all == 1 ? "rank" : "ranks");
    for (uint32_t i = 0; i < set->n && shown < LISTED; i++) {
        if (chosen[i] != which)
            continue;
        ms_buf_printf(out, "%s %lld",
                      shown == 0         ? ""
                      : shown + 1 == all ? " and"
                                         : ",",
                      (long long)rank_of(s->c, &s->facts[set->first + i]));
        shown++;
    }
    if (all > LISTED)
        ms_buf_printf(out, " and %u more", all - LISTED);
}

/* Reports the chosen ranks as one finding. */
static enum ms_rc report(struct sorter *s, const struct set *set, const bool *chosen,
                         struct ms_err *err)
{
    uint32_t odd = 0, even = 0, others = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        *(chosen[i] ? &odd : &even) = i;
        others += !chosen[i];
    }
    const struct self__fact *f = &s->facts[set->first + odd];
    bool parameter = f->what == SELF__PARAMETER;
    put_ranks(s, set, chosen, true);
    ms_buf_puts(&s->c->text, parameter ? " hold" : " got");
    if (others != 0) {
        ms_buf_puts(&s->c->text, " another value than ");
        put_ranks(s, set, chosen, false);
        ms_buf_printf(&s->c->text, " (norm %.6g against %.6g)", f->norm,
                      s->facts[set->first + even].norm);
    } else {
        ms_buf_puts(&s->c->text, " different values");
    }
    ms_buf_puts(&s->c->text,
                parameter ? " of a parameter that they share otherwise" : " from one collective");
    struct self_finding found = {.kind = parameter ? SELF_REPLICA : SELF_COLLECTIVE,
                                 .error = true,
                                 .pattern = others != 0 ? "differs on few ranks" : "differs",
                                 .node = f->node,
                                 .row = ms_map_key(&s->c->names, f->key),
                                 .rank = rank_of(s->c, f),
                                 .step = step_of(s->c, f),
                                 .order = f->order};
    return self__find(s->c, &found, err);
}

/* Chooses the ranks that differ from most ranks with which they usually agree; false when there is
 * none. */
static bool choose_by_habit(const struct sorter *s, const struct set *set, const struct set *habit,
                            bool *chosen)
{
    bool any = false;
    for (uint32_t i = 0; i < set->n; i++) {
        uint32_t mates = 0, agree = 0;
        for (uint32_t k = 0; k < set->n; k++) {
            if (s->part[habit->first + k] != s->part[habit->first + i])
                continue;
            mates++;
            agree += s->part[set->first + k] == s->part[set->first + i];
        }
        chosen[i] = mates > 1 && 2 * agree <= mates;
        any |= chosen[i];
    }
    return any;
}

static enum ms_rc check_set(struct sorter *s, const struct habits *h, const struct set *set,
                            bool *chosen, struct ms_err *err)
{
    const struct self__fact *f = &s->facts[set->first];
    s->c->s->scope.looked[f->what == SELF__PARAMETER ? SELF_REPLICA : SELF_COLLECTIVE]++;
    if (set->equal)
        return MS_OK;
    uint32_t most = find_majority(s, set);
    if (most != MS_MAP_NONE && set->n > 2) {
        for (uint32_t i = 0; i < set->n; i++)
            chosen[i] = s->part[set->first + i] != most;
        return report(s, set, chosen, err);
    }
    const struct set *habit = find_usual_set(s, &h->of_class[f->class]);
    if (habit == NULL)
        habit = find_usual_set(s, &h->of_all[f->what]);
    if (habit == NULL) {
        s->c->s->scope.unclear += f->what == SELF__OUTPUT;
        return MS_OK;
    }
    if (habit->n == set->n && choose_by_habit(s, set, habit, chosen))
        return report(s, set, chosen, err);
    return MS_OK;
}

static enum ms_rc check_sets(struct sorter *s, struct ms_err *err)
{
    struct habits h = {.of_class = NULL};
    bool *chosen = ms_calloc(s->n + 1, sizeof *chosen);
    enum ms_rc rc = chosen != NULL ? find_habits(s, &h, err) : ms_no_memory(err);
    for (size_t i = 0; i < s->sets.n && rc == MS_OK; i++)
        rc = check_set(s, &h, &s->sets.p[i], chosen, err);
    ms_free(chosen);
    ms_free(h.of_class);
    return rc;
}

enum ms_rc self__ranks(struct self__ctx *c, struct ms_err *err)
{
    struct sorter s = {.c = c, .facts = c->facts.p, .n = c->facts.n};
    if (s.n == 0)
        return MS_OK;
    qsort(s.facts, s.n, sizeof *s.facts, by_key);
    s.part = ms_calloc(s.n, sizeof *s.part);
    enum ms_rc rc = s.part != NULL ? list_sets(&s, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = check_sets(&s, err);
    ms_free(s.part);
    ms_vec_free(&s.sets);
    return rc;
}

/* ---- steps --------------------------------------------------------------------------- */

/* Sorts facts by parameter and place, so that those of one rank are in the order of steps. */
static int by_rank(const void *p, const void *q)
{
    const struct self__fact *const *x = p, *const *y = q;
    if ((*x)->key != (*y)->key)
        return (*x)->key < (*y)->key ? -1 : 1;
    return ((*x)->place > (*y)->place) - ((*x)->place < (*y)->place);
}

static enum ms_rc report_frozen(struct self__ctx *c, const struct self__fact *f, int64_t next,
                                struct ms_err *err)
{
    ms_buf_printf(&c->text,
                  "the parameter has a gradient but step %lld finds it as it was; most others "
                  "have changed",
                  (long long)next);
    struct self_finding found = {.kind = SELF_UNCHANGED,
                                 .pattern = "not updated",
                                 .node = f->node,
                                 .row = ms_map_key(&c->names, f->key),
                                 .rank = rank_of(c, f),
                                 .step = step_of(c, f),
                                 .order = f->order};
    return self__find(c, &found, err);
}

struct pair_of_steps {
    const struct self__fact *now, *next;
};

/* Returns a fact and that of the same parameter and rank in the next step; next is NULL when there
 * is none. */
static struct pair_of_steps next_step(const struct self__ctx *c,
                                      const struct self__fact *const *list, size_t n, size_t i)
{
    struct pair_of_steps p = {list[i], NULL};
    for (size_t k = i + 1; k < n && list[k]->key == list[i]->key && p.next == NULL; k++) {
        if (rank_of(c, list[k]) == rank_of(c, list[i]) && step_of(c, list[k]) > step_of(c, list[i]))
            p.next = list[k];
    }
    return p;
}

static enum ms_rc check_updates(struct self__ctx *c, const struct self__fact *const *list, size_t n,
                                struct ms_err *err)
{
    size_t due = 0, changed = 0;
    for (size_t i = 0; i < n; i++) {
        struct pair_of_steps p = next_step(c, list, n, i);
        if (p.next == NULL || !p.now->has_gradient)
            continue;
        due++;
        changed += p.now->value != p.next->value;
    }
    c->s->scope.looked[SELF_UNCHANGED] += due;
    for (size_t i = 0; i < n && (double)changed >= USUAL * (double)due && due >= FEW; i++) {
        struct pair_of_steps p = next_step(c, list, n, i);
        if (p.next != NULL && p.now->has_gradient && p.now->value == p.next->value)
            MS_TRY(report_frozen(c, p.now, step_of(c, p.next), err));
    }
    return MS_OK;
}

enum ms_rc self__steps(struct self__ctx *c, struct ms_err *err)
{
    const struct self__fact **list = ms_calloc(c->facts.n + 1, sizeof *list);
    size_t n = 0;
    if (list == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < c->facts.n; i++) {
        if (c->facts.p[i].what == SELF__PARAMETER)
            list[n++] = &c->facts.p[i];
    }
    if (n != 0)
        qsort(list, n, sizeof *list, by_rank);
    enum ms_rc rc = check_updates(c, list, n, err);
    ms_free(list);
    return rc;
}
