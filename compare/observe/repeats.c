/* SPDX-License-Identifier: MIT
 *
 * repeats: finds operators that activation checkpointing runs again during backward.
 *
 * A dump does not mark them. They run after the first backward and have the operator and
 * all values of an earlier call.
 */
#include "compare/observe/repeats.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

static uint32_t first_backward(const struct probe_dump *d)
{
    uint32_t i = 0;
    while (i < d->nodes.n && !observe__is_api(&d->nodes.p[i], PROBE_BACKWARD))
        i++;
    return i;
}

/* Writes a key for the computation of an operator: its name without the number, and all its values.
 * Returns false when no value is known. */
static bool write_call(const struct observe__pairing *q, unsigned side, uint32_t node,
                       struct ms_buf *key)
{
    const struct probe_node *n = &q->dump[side]->nodes.p[node];
    bool known = false;
    ms_buf_clear(key);
    ms_buf_str(key, observe__op_name(q->dump[side], node));
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct read__value *v = &q->side[side]->value[i];
        if (!read__is_tensor(v))
            continue;
        known |= v->known != 0 || v->digest != 0;
        ms_buf_put(key, v->stat, sizeof v->stat);
        ms_buf_put(key, &v->digest, sizeof v->digest);
        ms_buf_put(key, &v->shape, sizeof v->shape);
    }
    return known && key->bad == MS_OK;
}

static void note_repeat(struct observe__pairing *q, unsigned side, uint32_t node, uint32_t of)
{
    if (of == node || q->again[side][of] != OBSERVE__NONE)
        return;
    q->origin[side][node] = of;
    q->again[side][of] = node;
}

enum ms_rc observe__find_repeats(struct observe__pairing *q, unsigned side, struct ms_err *err)
{
    const struct probe_dump *d = q->dump[side];
    uint32_t start = first_backward(d);
    struct ms_arena *arena = ms_arena_new((size_t)1 << 30);
    struct ms_map calls = {0};
    MS_VEC(uint32_t) first = {0}; /* by call: the first node that made it */
    struct ms_buf key = {.max = 1 << 24};
    enum ms_rc rc = arena != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; i < d->nodes.n && rc == MS_OK && start < d->nodes.n; i++) {
        bool added = false, late = i > start;
        if (!observe__is_api(&d->nodes.p[i], PROBE_FORWARD) ||
            (late && q->mate[side][i] != OBSERVE__NONE) || !write_call(q, side, i, &key))
            continue;
        uint32_t id = late ? ms_map_get(&calls, ms_buf_slice(&key))
                           : ms_map_put_copy(&calls, ms_buf_slice(&key), arena, &added);
        uint32_t *slot = added ? ms_vec_push(&first) : NULL;
        if (added && slot == NULL)
            rc = ms_no_memory(err);
        else if (added)
            *slot = i;
        else if (late && id != MS_MAP_NONE)
            note_repeat(q, side, i, first.p[id]);
    }
    ms_buf_free(&key);
    ms_vec_free(&first);
    ms_map_free(&calls);
    ms_arena_free(arena);
    return rc;
}
