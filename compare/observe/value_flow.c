/* SPDX-License-Identifier: MIT
 *
 * value_flow: finds the node that wrote each value that a node reads.
 *
 * Tensors of one run with the same number of elements and bit-equal statistics are
 * one value, written by the nearest earlier operator that outputs it. Modules only
 * pass on what operators wrote: a module counts as the writer where no operator is
 * known, and the value it outputs has a maker, too.
 */
#include "compare/observe/value_flow.h"
#include "probe/base/assert.h"

struct table {
    struct observe__side *s;
    uint32_t *slots; /* row + 1; 0: empty */
    uint32_t mask;
};

static uint64_t hash_of(const struct read__value *v)
{
    uint64_t words[PROBE_STATS + 1];
    if (v->digest != 0)
        return v->digest * 0x9E3779B97F4A7C15u;
    memcpy(words, v->stat, sizeof v->stat);
    uint64_t h = v->n;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        h = (h ^ words[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

static bool is_same_value(const struct read__value *a, const struct read__value *b)
{
    if (a->digest != 0 || b->digest != 0)
        return a->digest == b->digest;
    return a->n == b->n && memcmp(a->stat, b->stat, sizeof a->stat) == 0;
}

static uint32_t *slot_of(struct table *t, const struct read__value *v)
{
    uint64_t at = hash_of(v) >> 20;
    while (t->slots[at & t->mask] != 0 &&
           !is_same_value(&t->s->value[t->slots[at & t->mask] - 1], v))
        at++;
    return &t->slots[at & t->mask];
}

static void look_up_maker(struct table *t, uint32_t row)
{
    const struct read__value *v = &t->s->value[row];
    uint32_t slot = read__is_traceable(v) ? *slot_of(t, v) : 0;
    ms_assert(slot == 0 || slot - 1 < row);
    t->s->maker[row] = slot != 0 ? t->s->dump->rows.p[slot - 1].node : OBSERVE__NONE;
}

static void record_writer(struct table *t, uint32_t row)
{
    const struct probe_dump *d = t->s->dump;
    const struct read__value *v = &t->s->value[row];
    ms_assert(v->kind != READ__UNREAD);
    t->s->maker[row] = OBSERVE__NONE;
    if (!read__is_traceable(v))
        return;
    uint32_t *slot = slot_of(t, v);
    bool module = d->nodes.p[d->rows.p[row].node].kind == PROBE_NODE_MODULE;
    bool held = *slot != 0 && d->nodes.p[d->rows.p[*slot - 1].node].kind != PROBE_NODE_MODULE;
    if (module && *slot != 0)
        t->s->maker[row] = d->rows.p[*slot - 1].node;
    if (!module || !held)
        *slot = row + 1;
}

static void trace_node(struct table *t, const struct probe_node *node)
{
    const struct probe_row *rows = t->s->dump->rows.p;
    uint32_t end = node->first_row + node->nrows;
    for (uint32_t i = node->first_row; i < end; i++) {
        if (!observe__is_output(&rows[i]))
            look_up_maker(t, i);
    }
    for (uint32_t i = node->first_row; i < end; i++) {
        if (observe__is_output(&rows[i]))
            record_writer(t, i);
    }
}

enum ms_rc observe__borrow_values(struct observe__side *s, struct read__values *kept,
                                  struct ms_pool *pool, struct ms_err *err)
{
    struct read__values *values = kept != NULL ? kept : &s->own;
    ms_assert(kept == NULL || kept->dump == s->dump);
    if (kept == NULL)
        MS_TRY(read__values_init(&s->own, s->dump, err));
    s->maker = ms_alloc((s->dump->rows.n + 1) * sizeof *s->maker);
    if (s->maker == NULL)
        return ms_no_memory(err);
    s->value = values->list;
    return read__values_complete(values, pool, err);
}

void observe__side_free(struct observe__side *s)
{
    read__values_free(&s->own);
    ms_free(s->maker);
    *s = (struct observe__side){0};
}

enum ms_rc observe__trace_values(struct observe__side *s, struct ms_err *err)
{
    ms_assert(s->value != NULL && s->maker != NULL);
    struct table t = {.s = s, .mask = 1023};
    while (t.mask < s->dump->rows.n)
        t.mask = 2 * t.mask + 1;
    t.slots = ms_calloc_written((size_t)t.mask + 1, sizeof *t.slots);
    if (t.slots == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < s->dump->nodes.n; i++)
        trace_node(&t, &s->dump->nodes.p[i]);
    ms_free(t.slots);
    return MS_OK;
}
