/* SPDX-License-Identifier: MIT
 *
 * source_comm: what a rank hears of the others.  An output of a collective is as
 * wrong as the worst input of any rank; what is received, as the worst that was sent.
 */
#include "compare/source_int.h"

static void put_key(struct ms_buf *b, const struct source__part *p, const struct source__node *n)
{
    unsigned op = p->ops.p[n->op].flags;
    struct ms_str name = source__name(p, 1, n->id[1]);
    ms_buf_clear(b);
    ms_buf_printf(b, "%d/%u/", p->step, n->dir);
    if (op & (SOURCE__SEND | SOURCE__RECEIVE))
        ms_buf_puts(b, "sent");
    else
        ms_buf_str(b, name);
}

static struct source__context *context_at(struct source__comms *c, struct ms_str key)
{
    bool added;
    uint32_t id = ms_map_put_copy(&c->names, key, c->arena, &added);
    if (id == MS_MAP_NONE)
        return NULL;
    if (!added)
        return &c->list.p[id];
    struct source__context *slot = ms_vec_push(&c->list);
    if (slot != NULL)
        *slot = (struct source__context){0};
    return slot;
}

static void add_inputs(const struct source__part *p, const struct source__node *n,
                       struct source__context *c)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        if (l->flags & SOURCE__IS_OUT)
            continue;
        c->e = l->e > c->e ? l->e : c->e;
        c->en = l->en > c->en ? l->en : c->en;
        c->flags |= l->flags & SOURCE__FLAGGED;
        c->attrs |= l->attrs;
    }
}

static bool is_heard(const struct source__part *p, const struct source__node *n)
{
    return n->id[1] != SOURCE__NONE && (p->ops.p[n->op].flags & (SOURCE__COMM | SOURCE__SEND)) != 0;
}

enum ms_rc source__gather_comms(const struct cmp_source *s, struct source__comms *c,
                                struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 20};
    *c = (struct source__comms){.arena = ms_arena_new((size_t)1 << 32)};
    enum ms_rc rc = c->arena != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < s->parts.n && rc == MS_OK; i++) {
        const struct source__part *p = s->parts.p[i];
        for (size_t k = 0; k < p->nodes.n && rc == MS_OK; k++) {
            if (!is_heard(p, &p->nodes.p[k]))
                continue;
            put_key(&key, p, &p->nodes.p[k]);
            struct source__context *at = context_at(c, ms_buf_slice(&key));
            if (at == NULL || key.bad != MS_OK)
                rc = ms_no_memory(err);
            else
                add_inputs(p, &p->nodes.p[k], at);
        }
    }
    ms_buf_free(&key);
    return rc;
}

void source__comms_free(struct source__comms *c)
{
    ms_map_free(&c->names);
    ms_vec_free(&c->list);
    ms_arena_free(c->arena);
}

struct source__context *source__comm_of(const struct source__comms *c, const struct source__part *p,
                                        const struct source__node *n)
{
    struct ms_buf key = {.max = 1 << 20};
    if (!is_heard(p, n) || !(p->ops.p[n->op].flags & SOURCE__COMM))
        return NULL;
    put_key(&key, p, n);
    uint32_t id = key.bad == MS_OK ? ms_map_get(&c->names, ms_buf_slice(&key)) : MS_MAP_NONE;
    ms_buf_free(&key);
    return id != MS_MAP_NONE ? &c->list.p[id] : NULL;
}
