/* SPDX-License-Identifier: MIT
 *
 * update_order: pairs the steps of an optimizer that visits parameters in another order.
 *
 * A loop over parameters calls the same operators for each of them, so the end of a dump repeats
 * with the length of one step. With other groups of parameters the n-th step belongs to another
 * parameter, although all names agree. The first tensor of a step tells which parameter it is:
 * torch first applies the weight decay, and lr or betas do not change what that reads.
 */
#include "compare/observe/update_order.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

enum { LENGTH_MAX = 64 }; /* operators of one step; Adam's loop in torch has 8 to 12 */

/* The operators of one side's update, and the steps at their end. */
struct steps {
    const struct observe__side *s;
    uint32_t *node; /* forward operators after the last backward one */
    uint32_t n, length, first, count;
};

static enum ms_rc list_updates(struct steps *u, const struct observe__side *s, struct ms_err *err)
{
    const struct probe_dump *d = s->dump;
    uint32_t end = (uint32_t)d->nodes.n;
    while (end > 0 && d->nodes.p[end - 1].dir != PROBE_BACKWARD)
        end--;
    *u = (struct steps){.s = s};
    u->node = ms_alloc((d->nodes.n + 1) * sizeof *u->node);
    if (u->node == NULL)
        return ms_no_memory(err);
    for (uint32_t i = end; i < d->nodes.n && end != 0; i++) {
        if (observe__is_api(&d->nodes.p[i], PROBE_FORWARD))
            u->node[u->n++] = i;
    }
    return MS_OK;
}

static struct ms_str op_at(const struct steps *u, uint32_t i)
{
    ms_assert(i < u->n);
    return observe__op_name(u->s->dump, u->node[i]);
}

/* Finds how often the end of the list repeats with the length of one step. */
static void find_steps(struct steps *u)
{
    u->length = u->count = 0;
    for (uint32_t k = 1; k < LENGTH_MAX && k < u->n && u->length == 0; k++) {
        if (ms_str_eq(op_at(u, u->n - 1), op_at(u, u->n - 1 - k)))
            u->length = k;
    }
    uint32_t at = u->n;
    while (u->length != 0 && at > u->length &&
           ms_str_eq(op_at(u, at - 1), op_at(u, at - 1 - u->length)))
        at--;
    if (u->length != 0)
        u->count = 1 + (u->n - at) / u->length;
    u->first = u->n - u->count * u->length;
}

static bool same_steps(const struct steps *g, const struct steps *t)
{
    if (g->count < 2 || g->count != t->count || g->length != t->length)
        return false;
    for (uint32_t i = 0; i < g->length; i++) {
        if (!ms_str_eq(op_at(g, g->first + i), op_at(t, t->first + i)))
            return false;
    }
    return true;
}

/* The tensor that a step changes: its size, statistics and checksum. */
struct key {
    uint64_t n, digest;
    double stat[PROBE_STATS];
};

/* Returns the first tensor of several elements that an operator reads; NULL: it reads none. */
static const struct read__value *first_tensor(const struct steps *u, uint32_t node)
{
    const struct probe_node *n = &u->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct read__value *v = &u->s->value[i];
        if (read__is_tensor(v) && v->n > 1)
            return v;
    }
    return NULL;
}

/* Reads the key of a step from its first tensor of several elements: the counter of steps has one.
 * Parameters of one element have no key and keep their order. */
static void read_key(const struct steps *u, uint32_t step, struct key *key)
{
    const struct read__value *v = NULL;
    memset(key, 0, sizeof *key);
    for (uint32_t i = 0; i < u->length && v == NULL; i++)
        v = first_tensor(u, u->node[u->first + step * u->length + i]);
    if (v == NULL)
        return;
    key->n = v->n;
    key->digest = v->digest;
    memcpy(key->stat, v->stat, sizeof key->stat);
}

static struct ms_str text_of(const struct key *key)
{
    return (struct ms_str){(const char *)key, (uint32_t)sizeof *key};
}

/* Lists of golden steps by parameter; several parameters may be equal, such as weights of one. */
struct owners {
    struct ms_map keys;
    struct ms_arena *arena;
    uint32_t *first, *next; /* by key, by golden step; first of the steps not taken yet */
};

static enum ms_rc list_owners(struct owners *o, const struct steps *g, struct ms_err *err)
{
    struct key key;
    memset(o->first, 0xff, g->count * sizeof *o->first);
    for (uint32_t i = g->count; i-- > 0;) {
        read_key(g, i, &key);
        uint32_t id = ms_map_put_copy(&o->keys, text_of(&key), o->arena, NULL);
        if (id == MS_MAP_NONE)
            return ms_no_memory(err);
        o->next[i] = o->first[id];
        o->first[id] = i;
    }
    return MS_OK;
}

/* Finds the golden step of each target step; returns whether all have one and an order differs. */
static bool match_steps(struct owners *o, const struct steps *t, uint32_t *mate)
{
    struct key key;
    bool moved = false;
    for (uint32_t i = 0; i < t->count; i++) {
        read_key(t, i, &key);
        uint32_t id = ms_map_get(&o->keys, text_of(&key));
        if (id == MS_MAP_NONE || o->first[id] == OBSERVE__NONE)
            return false;
        mate[i] = o->first[id];
        o->first[id] = o->next[mate[i]];
        moved |= mate[i] != i;
    }
    return moved;
}

static void pair_steps(struct observe__pairing *q, const struct steps *g, const struct steps *t,
                       const uint32_t *mate)
{
    uint32_t all = t->count * t->length;
    for (uint32_t i = 0; i < all; i++) {
        uint32_t golden = g->node[g->first + i], target = t->node[t->first + i];
        if (q->mate[0][golden] != OBSERVE__NONE)
            q->mate[1][q->mate[0][golden]] = OBSERVE__NONE;
        if (q->mate[1][target] != OBSERVE__NONE)
            q->mate[0][q->mate[1][target]] = OBSERVE__NONE;
        q->mate[0][golden] = q->mate[1][target] = OBSERVE__NONE;
    }
    for (uint32_t i = 0; i < all; i++) {
        uint32_t step = i / t->length, at = i % t->length;
        uint32_t golden = g->node[g->first + mate[step] * g->length + at];
        uint32_t target = t->node[t->first + i];
        q->mate[0][golden] = target;
        q->mate[1][target] = golden;
    }
}

static enum ms_rc match_and_pair(struct observe__pairing *q, const struct steps *g,
                                 const struct steps *t, struct ms_err *err)
{
    struct owners o = {.arena = ms_arena_new((size_t)1 << 30)};
    o.first = ms_alloc(3 * (size_t)g->count * sizeof *o.first);
    enum ms_rc rc = o.arena != NULL && o.first != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK) {
        o.next = o.first + g->count;
        rc = list_owners(&o, g, err);
    }
    if (rc == MS_OK && match_steps(&o, t, o.first + 2 * g->count))
        pair_steps(q, g, t, o.first + 2 * g->count);
    ms_map_free(&o.keys);
    ms_arena_free(o.arena);
    ms_free(o.first);
    return rc;
}

enum ms_rc observe__pair_updates(struct observe__pairing *q, struct ms_err *err)
{
    struct steps u[2] = {{0}, {0}};
    enum ms_rc rc = MS_OK;
    for (unsigned s = 0; s < 2 && rc == MS_OK; s++) {
        rc = list_updates(&u[s], q->side[s], err);
        if (rc == MS_OK)
            find_steps(&u[s]);
    }
    if (rc == MS_OK && same_steps(&u[0], &u[1]))
        rc = match_and_pair(q, &u[0], &u[1], err);
    ms_free(u[0].node);
    ms_free(u[1].node);
    return rc;
}
