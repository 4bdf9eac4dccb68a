/* SPDX-License-Identifier: MIT
 *
 * slice_pack: writes the columns one after the other into memory allocated once.
 */
#include "web/api/slice_pack.h"

enum {
    VERSION = 2,
    HAS_COUNTS = 1,
    HAS_LINKS = 2,
    WIDE_SHAPES = 4,
    WIDE_DURATIONS = 8,
    HEAD = 16,
    SHAPE = 8,
    SLICE_MAX = 8 + 8 + 8 + 4 + 4,
    SLOTS_MIN = 64
};

/* ---- shapes ------------------------------------------------------------------------ */

static bool same_shape(const struct mstx_event *a, const struct mstx_event *b)
{
    return a->name == b->name && a->depth == b->depth && a->kind == b->kind && a->flags == b->flags;
}

static size_t hash_shape(const struct mstx_event *e)
{
    uint64_t key =
        e->name | (uint64_t)e->depth << 32 | (uint64_t)e->kind << 48 | (uint64_t)e->flags << 56;
    return (size_t)((key * 0x9E3779B97F4A7C15u) >> 32);
}

/* Clears the hash table; it has room for twice the possible number of shapes. */
static bool clear_shapes(struct web_slices *s, size_t slices)
{
    size_t slots = SLOTS_MIN;
    while (slots < 2 * slices)
        slots *= 2;
    if (!ms_vec_reserve(&s->slot, slots) || !ms_vec_reserve(&s->shape, slices) ||
        !ms_vec_reserve(&s->first, slices))
        return false;
    memset(s->slot.p, 0, slots * sizeof *s->slot.p);
    s->slot.n = slots;
    s->first.n = 0;
    return true;
}

static uint32_t shape_of(struct web_slices *s, const mstx_events *e, uint32_t i)
{
    size_t mask = s->slot.n - 1, at = hash_shape(&e->p[i]) & mask;
    while (s->slot.p[at] != 0) {
        uint32_t known = s->slot.p[at] - 1;
        if (same_shape(&e->p[s->first.p[known]], &e->p[i]))
            return known;
        at = (at + 1) & mask;
    }
    s->first.p[s->first.n++] = i;
    s->slot.p[at] = (uint32_t)s->first.n;
    return (uint32_t)s->first.n - 1;
}

/* ---- columns ----------------------------------------------------------------------- */

static char *put_bytes(char *at, const void *p, size_t n)
{
    memcpy(at, p, n);
    return at + n;
}

static char *put_u32(char *at, uint32_t v)
{
    return put_bytes(at, &v, sizeof v);
}

static char *put_f64(char *at, double v)
{
    return put_bytes(at, &v, sizeof v);
}

static char *put_f32(char *at, double v)
{
    float f = (float)v;
    return put_bytes(at, &f, sizeof f);
}

static double duration_of(const struct mstx_event *e, bool counter)
{
    return counter ? mstx_event_value(e) : (double)e->dur_ns;
}

static bool is_rounded(double v)
{
    return v == v && (double)(float)v != v;
}

static unsigned columns_of(const struct web_slices *s, const mstx_events *e, bool counter)
{
    unsigned has = s->first.n > UINT16_MAX ? WIDE_SHAPES : 0;
    for (size_t i = 0; i < e->n; i++) {
        has |= e->p[i].count != 1 ? HAS_COUNTS : 0u;
        has |= is_rounded(duration_of(&e->p[i], counter)) ? WIDE_DURATIONS : 0u;
        has |= e->p[i].count == 1 && e->p[i].size != 0 && !counter ? HAS_LINKS : 0u;
    }
    return has;
}

static char *put_shapes(char *at, const struct web_slices *s, const mstx_events *e)
{
    for (size_t i = 0; i < s->first.n; i++) {
        const struct mstx_event *of = &e->p[s->first.p[i]];
        at = put_u32(at, of->name);
        at = put_bytes(at, &of->depth, sizeof of->depth);
        *at++ = (char)of->kind;
        *at++ = (char)of->flags;
    }
    return at;
}

static char *put_times(char *at, const mstx_events *e, int64_t first, bool counter, unsigned has)
{
    for (size_t i = 0; i < e->n; i++)
        at = put_f64(at, (double)(e->p[i].start_ns - first));
    for (size_t i = 0; has & HAS_LINKS && i < e->n; i++)
        at = put_f64(at, e->p[i].count == 1 ? (double)e->p[i].size : 0);
    for (size_t i = 0; i < e->n; i++) {
        double v = duration_of(&e->p[i], counter);
        at = has & WIDE_DURATIONS ? put_f64(at, v) : put_f32(at, v);
    }
    return at;
}

static char *put_rest(char *at, const struct web_slices *s, const mstx_events *e, unsigned has)
{
    size_t width = has & WIDE_SHAPES ? sizeof(uint32_t) : sizeof(uint16_t);
    for (size_t i = 0; has & HAS_COUNTS && i < e->n; i++)
        at = put_u32(at, e->p[i].count);
    for (size_t i = 0; i < e->n; i++) {
        uint32_t shape = s->shape.p[i];
        uint16_t narrow = (uint16_t)shape;
        at = put_bytes(at, has & WIDE_SHAPES ? (const void *)&shape : &narrow, width);
    }
    return at;
}

/* ---- tracks ------------------------------------------------------------------------ */

void web_slices_begin(struct ms_buf *b, uint32_t tracks)
{
    const uint32_t head[] = {VERSION, tracks};
    ms_buf_put(b, head, sizeof head);
}

enum ms_rc web_slices_put(struct web_slices *s, struct ms_buf *b, uint32_t track, bool counter,
                          int64_t first, const mstx_events *e, struct ms_err *err)
{
    if (e->n > UINT32_MAX / 4 || !clear_shapes(s, e->n))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < e->n; i++)
        s->shape.p[i] = shape_of(s, e, i);
    unsigned has = columns_of(s, e, counter);
    char *start = ms_buf_room(b, HEAD + s->first.n * SHAPE + e->n * SLICE_MAX + 8), *at = start;
    if (start == NULL)
        return ms_buf_check(b, err);
    at = put_u32(at, track);
    at = put_u32(at, (uint32_t)e->n);
    at = put_u32(at, (uint32_t)s->first.n);
    at = put_u32(at, has);
    at = put_shapes(at, s, e);
    at = put_times(at, e, first, counter, has);
    at = put_rest(at, s, e, has);
    while ((at - start) % 8 != 0)
        *at++ = '\0';
    b->n += (size_t)(at - start);
    return MS_OK;
}

void web_slices_free(struct web_slices *s)
{
    ms_vec_free(&s->first);
    ms_vec_free(&s->shape);
    ms_vec_free(&s->slot);
}
