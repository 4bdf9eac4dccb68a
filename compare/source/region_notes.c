/* SPDX-License-Identifier: MIT
 *
 * region_notes: reports operators that only one side runs, without effect on values.
 *
 * A model has the same variation in every layer, so regions with the same operators
 * share one note. Only the first rank and step with a harmless region is described.
 */
#include "compare/source/region_notes.h"
#include "compare/source/suspect_kinds.h"

#include "probe/base/assert.h"

#include <math.h>

#define KIND(name, args) static const struct ms_message_kind say_##name = {#name, args};
CMP_REGION_KINDS(KIND)

enum { NOTES_MAX = 10, SHOWN_OPS = 4 };

/* Regions with the same operators. */
struct group {
    uint32_t first; /* first node of the first region */
    uint32_t count;
    float e; /* largest difference after the region; NaN: no node reads the results */
    struct ms_str names[2]; /* of the operators on each side */
};

struct groups {
    const struct observe__part *p;
    struct ms_arena *arena;
    struct ms_map keys;
    MS_VEC(struct group) list;
    /* next node of the region, by node; last node of the region, by first node */
    uint32_t *next, *last;
};

static bool is_harmless(const struct observe__node *n)
{
    return n->structure == OBSERVE__HARMLESS && n->region != OBSERVE__NONE;
}

/* ---- groups -------------------------------------------------------------- */

/* The first different operators of a region and how often each is called. */
struct shown {
    uint32_t op[SHOWN_OPS];
    unsigned calls[SHOWN_OPS], count;
    bool has_more; /* further operators follow */
};

static void count_call(struct shown *s, uint32_t op)
{
    unsigned i = 0;
    while (i < s->count && s->op[i] != op)
        i++;
    if (i == SHOWN_OPS) {
        s->has_more = true;
        return;
    }
    if (i == s->count) {
        s->op[s->count++] = op;
        s->calls[i] = 0;
    }
    s->calls[i]++;
}

/* Writes the different operators of one side of a region, the first few by name.  One pass: a region
 * may hold tens of thousands of calls of one operator. */
static void write_names(const struct groups *g, uint32_t first, unsigned side, struct ms_buf *b)
{
    struct shown shown = {.count = 0};
    for (uint32_t i = first; i != OBSERVE__NONE; i = g->next[i]) {
        const struct observe__node *n = &g->p->nodes.p[i];
        if (n->id[side] != OBSERVE__NONE)
            count_call(&shown, n->op);
    }
    for (unsigned i = 0; i < shown.count; i++) {
        ms_buf_puts(b, i != 0 ? ", " : "");
        if (shown.calls[i] > 1)
            ms_buf_printf(b, "%u ", shown.calls[i]);
        ms_buf_str(b, probe_name_last(g->p->ops.p[shown.op[i]].name));
    }
    if (shown.has_more)
        ms_buf_puts(b, ", ...");
}

static enum ms_rc add_region(struct groups *g, uint32_t first, struct ms_err *err)
{
    struct ms_buf b = {.max = 1 << 16};
    const struct observe__node *n = &g->p->nodes.p[first];
    bool added = false;
    write_names(g, first, 0, &b);
    size_t golden = b.n;
    ms_buf_putc(&b, '|');
    struct ms_buf target = {.max = 1 << 16};
    write_names(g, first, 1, &target);
    ms_buf_str(&b, ms_buf_slice(&target));
    ms_buf_free(&target);
    uint32_t id = b.bad == MS_OK ? ms_map_put_copy(&g->keys, ms_buf_slice(&b), g->arena, &added)
                                 : MS_MAP_NONE;
    struct group *slot = id == MS_MAP_NONE ? NULL : added ? ms_vec_push(&g->list) : &g->list.p[id];
    ms_buf_free(&b);
    if (slot == NULL)
        return ms_no_memory(err);
    if (added) {
        struct ms_str key = ms_map_key(&g->keys, id);
        *slot = (struct group){.first = first, .e = n->border};
        slot->names[0] = ms_str_sub(key, 0, (uint32_t)golden);
        slot->names[1] = ms_str_sub(key, (uint32_t)golden + 1, key.n);
    }
    slot->count++;
    slot->e = fmaxf(slot->e, n->border); /* a number wins over NaN */
    return MS_OK;
}

/* Links the nodes of each region in execution order. */
static void link_regions(struct groups *g)
{
    for (uint32_t i = 0; i < g->p->nodes.n; i++) {
        const struct observe__node *n = &g->p->nodes.p[i];
        g->next[i] = g->last[i] = OBSERVE__NONE;
        if (!is_harmless(n))
            continue;
        ms_assert(n->region <= i);
        if (n->region != i)
            g->next[g->last[n->region]] = i;
        g->last[n->region] = i;
    }
}

/* ---- notes --------------------------------------------------------------- */

/* Replaces the numbers of a path: layers.3.attn becomes layers.*.attn. */
static void write_pattern(struct ms_str path, struct ms_buf *out)
{
    struct ms_str rest = path, part;
    for (bool first = true; ms_str_split(&rest, '.', &part); first = false) {
        bool number = part.n != 0 && part.p[0] >= '0' && part.p[0] <= '9';
        if (!first)
            ms_buf_putc(out, '.');
        ms_buf_str(out, number ? MS_STR("*") : part);
    }
}

static enum ms_rc say_module(struct cmp_source *s, const struct observe__part *p,
                             const struct group *group, struct ms_message *m, struct ms_err *err)
{
    const struct observe__node *n = &p->nodes.p[group->first];
    unsigned side = n->id[1] != OBSERVE__NONE;
    struct ms_str module;
    struct ms_buf b = {.max = 1 << 16};
    MS_TRY(
        source__find_module(p, side, observe__name(p, side, n->id[side]), s->arena, &module, err));
    if (group->count > 1)
        write_pattern(module, &b);
    else
        ms_buf_str(&b, module);
    if (b.n != 0 && b.bad == MS_OK)
        ms_message_str(m, "module", ms_buf_slice(&b));
    ms_buf_free(&b);
    return MS_OK;
}

static enum ms_rc keep_note(struct cmp_source *s, const struct ms_message *m, struct ms_err *err)
{
    struct ms_stored_message *slot = ms_vec_push(&s->notes);
    return slot != NULL ? source__keep_message(s, m, slot, err) : ms_no_memory(err);
}

static enum ms_rc say_group(struct cmp_source *s, const struct observe__part *p,
                            const struct group *group, struct ms_err *err)
{
    static const char *const side[] = {"golden", "target"};
    struct ms_message m;
    ms_message_begin(&m, &say_other_operators);
    MS_TRY(say_module(s, p, group, &m, err));
    for (unsigned i = 0; i < 2; i++) {
        if (group->names[i].n != 0)
            ms_message_str(&m, side[i], group->names[i]);
    }
    ms_message_i64(&m, "count", group->count);
    if (!isnan(group->e))
        ms_message_f64(&m, "e", group->e);
    return keep_note(s, &m, err);
}

static enum ms_rc say_groups(struct cmp_source *s, struct groups *g, struct ms_err *err)
{
    for (uint32_t i = 0; i < g->p->nodes.n; i++) {
        if (is_harmless(&g->p->nodes.p[i]) && g->p->nodes.p[i].region == i)
            MS_TRY(add_region(g, i, err));
    }
    for (size_t i = 0; i < g->list.n && i < NOTES_MAX; i++)
        MS_TRY(say_group(s, g->p, &g->list.p[i], err));
    return MS_OK;
}

static enum ms_rc say_repeats(struct cmp_source *s, const struct observe__part *p,
                              struct ms_err *err)
{
    uint32_t count[2] = {0, 0};
    for (size_t i = 0; i < p->nodes.n && p->batches == 0; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        count[n->id[1] != OBSERVE__NONE] += n->structure == OBSERVE__REPEATED;
    }
    for (unsigned side = 0; side < 2; side++) {
        struct ms_message m;
        if (count[side] == 0)
            continue;
        ms_message_begin(&m, &say_recomputed);
        ms_message_str(&m, "side", side == 0 ? MS_STR("golden") : MS_STR("target"));
        ms_message_i64(&m, "count", count[side]);
        MS_TRY(keep_note(s, &m, err));
    }
    return MS_OK;
}

static enum ms_rc say_batches(struct cmp_source *s, const struct observe__part *p,
                              struct ms_err *err)
{
    struct ms_message m;
    if (p->batches == 0)
        return MS_OK;
    ms_message_begin(&m, &say_micro_batches);
    ms_message_str(&m, "side", p->batches_side == 0 ? MS_STR("golden") : MS_STR("target"));
    ms_message_i64(&m, "count", p->batches);
    return keep_note(s, &m, err);
}

static enum ms_rc note_part(struct cmp_source *s, const struct observe__part *p, struct ms_err *err)
{
    struct groups g = {.p = p, .arena = s->arena};
    g.next = ms_alloc((p->nodes.n + 1) * sizeof *g.next);
    g.last = ms_alloc((p->nodes.n + 1) * sizeof *g.last);
    enum ms_rc rc = g.next != NULL && g.last != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK) {
        link_regions(&g);
        rc = say_groups(s, &g, err);
    }
    if (rc == MS_OK)
        rc = say_repeats(s, p, err);
    if (rc == MS_OK)
        rc = say_batches(s, p, err);
    ms_map_free(&g.keys);
    ms_vec_free(&g.list);
    ms_free(g.next);
    ms_free(g.last);
    return rc;
}

enum ms_rc source__note_regions(struct cmp_source *s, struct ms_err *err)
{
    size_t before = s->notes.n;
    for (size_t i = 0; i < s->parts.n && s->notes.n == before; i++)
        MS_TRY(note_part(s, s->parts.p[i], err));
    return MS_OK;
}
