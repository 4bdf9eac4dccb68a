/* SPDX-License-Identifier: MIT
 *
 * plain: see the header. A container doubles its room in the arena when it is full.
 */
#include "probe/base/plain.h"

#include "probe/base/assert.h"

static bool has_items(enum ms_plain_kind kind)
{
    return kind >= MS_PLAIN_TUPLE && kind <= MS_PLAIN_OUTSIDE;
}

struct ms_plain *ms_plain_new(struct ms_arena *a, enum ms_plain_kind kind)
{
    struct ms_plain *v = ms_arena_calloc(a, 1, sizeof *v);
    if (v != NULL)
        v->kind = kind;
    return v;
}

bool ms_plain_add(struct ms_arena *a, struct ms_plain *to, struct ms_plain *item)
{
    ms_assert(has_items(to->kind) && to->n <= to->cap);
    if (to->n == to->cap) {
        const uint32_t cap = to->cap != 0 ? 2 * to->cap : 4;
        struct ms_plain **more =
            cap > to->cap ? ms_arena_calloc(a, cap, sizeof(struct ms_plain *)) : NULL;
        if (more == NULL)
            return false;
        if (to->n != 0)
            memcpy(more, to->item, to->n * sizeof(struct ms_plain *));
        to->item = more;
        to->cap = cap;
    }
    to->item[to->n++] = item;
    return true;
}

uint32_t ms_plain_len(const struct ms_plain *v)
{
    return v != NULL && has_items(v->kind) ? v->n : 0;
}

const struct ms_plain *ms_plain_item(const struct ms_plain *v, uint32_t i)
{
    static const struct ms_plain none;
    return i < ms_plain_len(v) ? v->item[i] : &none;
}

const struct ms_plain *ms_plain_get(const struct ms_plain *v, const char *key)
{
    for (uint32_t i = 0; v != NULL && v->kind == MS_PLAIN_DICT && i + 1 < v->n; i += 2) {
        if (v->item[i]->kind == MS_PLAIN_TEXT && ms_str_is(v->item[i]->s, key))
            return v->item[i + 1];
    }
    return NULL;
}

int64_t ms_plain_int(const struct ms_plain *v, int64_t other)
{
    return v != NULL && (v->kind == MS_PLAIN_INT || v->kind == MS_PLAIN_BOOL) ? v->i : other;
}

double ms_plain_real(const struct ms_plain *v, double other)
{
    if (v != NULL && v->kind == MS_PLAIN_INT)
        return (double)v->i;
    return v != NULL && v->kind == MS_PLAIN_REAL ? v->f : other;
}

struct ms_str ms_plain_text(const struct ms_plain *v)
{
    return v != NULL && v->kind == MS_PLAIN_TEXT ? v->s : MS_STR("");
}
