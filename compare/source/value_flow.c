/* SPDX-License-Identifier: MIT
 *
 * source_flow: which node wrote what a node reads.
 *
 * Tensors of one run with as many elements and bit-equal figures are one value; it
 * was made by the nearest earlier operator that wrote it.  Modules only hand on
 * what operators made: one counts where no operator is known, and what one writes
 * has a maker too.
 */
#include "compare/source_int.h"

struct table {
    struct source__side *s;
    uint32_t *slots; /* rows + 1 */
    uint32_t mask;
};

static uint64_t hash_of(const struct source__value *v)
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

static bool same(const struct source__value *a, const struct source__value *b)
{
    if (a->digest != 0 || b->digest != 0)
        return a->digest == b->digest;
    return a->n == b->n && memcmp(a->stat, b->stat, sizeof a->stat) == 0;
}

static uint32_t *slot_of(struct table *t, const struct source__value *v)
{
    uint64_t at = hash_of(v) >> 20;
    while (t->slots[at & t->mask] != 0 && !same(&t->s->value[t->slots[at & t->mask] - 1], v))
        at++;
    return &t->slots[at & t->mask];
}

static void look_up(struct table *t, uint32_t row)
{
    const struct source__value *v = &t->s->value[row];
    uint32_t slot = source__is_traceable(v) ? *slot_of(t, v) : 0;
    t->s->maker[row] = slot != 0 ? t->s->dump->rows.p[slot - 1].node : SOURCE__NONE;
}

static void write_down(struct table *t, uint32_t row)
{
    const struct probe_dump *d = t->s->dump;
    const struct source__value *v = &t->s->value[row];
    t->s->maker[row] = SOURCE__NONE;
    if (!source__is_traceable(v))
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
        if (!source__is_output(&rows[i]))
            look_up(t, i);
    }
    for (uint32_t i = node->first_row; i < end; i++) {
        if (source__is_output(&rows[i]))
            write_down(t, i);
    }
}

enum ms_rc source__trace(struct source__side *s, struct ms_err *err)
{
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
