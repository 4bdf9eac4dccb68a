/* SPDX-License-Identifier: MIT
 *
 * pack: writing and reading packed chunks; the layout is drawn in pack.h.
 */
#include "mstx/rundb/pack.h"

#include "mstx/rundb/varint.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

enum {
    VERSION = 1,
    HAS_ID = 1 << 0,
    HAS_ARG = 1 << 1,
    HAS_SIZE = 1 << 2,
    HAS_COUNT = 1 << 3,
    HAS_END_TID = 1 << 4,
    HAS_ARGS = 1 << 5,
    HAS_ALL = (1 << 6) - 1,
    HEAD = 2 + 8,
    SLOTS = 2 * MSTX_CHUNK_MAX,
    /* Greatest size of one event: its index, eight varints, and its shape. */
    EVENT_MAX = 2 + 8 * MSTX_VARINT_MAX + 5 + 3 + 2,
};

struct mstx_packer *mstx_packer_new(void)
{
    struct mstx_packer *p = ms_alloc(sizeof *p);
    if (p != NULL) {
        memset(p->slot, 0, sizeof p->slot);
        p->out = (struct ms_buf){.max = (size_t)EVENT_MAX * MSTX_CHUNK_MAX + 64};
        p->shapes = 0;
    }
    return p;
}

void mstx_packer_free(struct mstx_packer *p)
{
    if (p == NULL)
        return;
    ms_buf_free(&p->out);
    ms_free(p);
}

/* ---- writing ---------------------------------------------------------------- */

static uint32_t hash_shape(const struct mstx_event *e)
{
    uint64_t key =
        e->name | (uint64_t)e->depth << 32 | (uint64_t)e->kind << 48 | (uint64_t)e->flags << 56;
    return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 51) % SLOTS;
}

static bool is_shape(const struct mstx_shape *s, const struct mstx_event *e)
{
    return s->name == e->name && s->depth == e->depth && s->kind == e->kind && s->flags == e->flags;
}

static uint16_t shape_of(struct mstx_packer *p, const struct mstx_event *e)
{
    ms_assert(p->shapes <= MSTX_CHUNK_MAX);
    uint32_t at = hash_shape(e);
    while (p->slot[at] != 0) {
        if (is_shape(&p->shape[p->slot[at] - 1], e))
            return (uint16_t)(p->slot[at] - 1);
        at = (at + 1) % SLOTS;
    }
    p->shape[p->shapes] = (struct mstx_shape){e->name, e->depth, e->kind, e->flags};
    p->slot[at] = (uint16_t)++p->shapes;
    return (uint16_t)(p->shapes - 1);
}

static void find_shapes(struct mstx_packer *p, const struct mstx_event *ev, uint32_t n)
{
    ms_assert(n <= MSTX_CHUNK_MAX);
    memset(p->slot, 0, sizeof p->slot);
    p->shapes = 0;
    for (uint32_t i = 0; i < n; i++)
        p->index[i] = shape_of(p, &ev[i]);
}

static unsigned columns_of(const struct mstx_event *ev, uint32_t n)
{
    uint64_t id = 0, arg = 0, size = 0;
    uint32_t count = 0, end_tid = 0, args = 0;
    for (uint32_t i = 0; i < n; i++) {
        id |= ev[i].id;
        arg |= ev[i].arg;
        size |= ev[i].size;
        count |= ev[i].count ^ 1;
        end_tid |= ev[i].end_tid;
        args |= ev[i].args;
    }
    return (id != 0 ? HAS_ID : 0u) | (arg != 0 ? HAS_ARG : 0u) | (size != 0 ? HAS_SIZE : 0u) |
           (count != 0 ? HAS_COUNT : 0u) | (end_tid != 0 ? HAS_END_TID : 0u) |
           (args != 0 ? HAS_ARGS : 0u);
}

static uint8_t *put_head(const struct mstx_packer *p, uint8_t *at, const struct mstx_event *ev,
                         uint32_t n, unsigned columns)
{
    ms_assert(p->shapes >= 1 && p->shapes <= n);
    uint64_t first = htole64((uint64_t)ev[0].start_ns);
    *at++ = VERSION;
    *at++ = (uint8_t)columns;
    memcpy(at, &first, sizeof first);
    at = mstx_put_varint(at + sizeof first, n);
    at = mstx_put_varint(at, p->shapes);
    for (uint32_t i = 0; i < p->shapes; i++) {
        at = mstx_put_varint(at, p->shape[i].name);
        at = mstx_put_varint(at, p->shape[i].depth);
        *at++ = p->shape[i].kind;
        *at++ = p->shape[i].flags;
    }
    return at;
}

static uint8_t *put_index(const struct mstx_packer *p, uint8_t *at, uint32_t n)
{
    ms_assert(n >= 1);
    bool wide = p->shapes > 256;
    for (uint32_t i = 0; i < n; i++) {
        *at++ = (uint8_t)p->index[i];
        if (wide)
            *at++ = (uint8_t)(p->index[i] >> 8);
    }
    return at;
}

/* Writes starts and durations; the buffer has room for the longest varints (EVENT_MAX). */
static uint8_t *put_times(uint8_t *at, const struct mstx_event *ev, uint32_t n)
{
    int64_t before = ev[0].start_ns;
    for (uint32_t i = 0; i < n; i++) {
        ms_assert(ev[i].start_ns >= before);
        at = mstx_put_varint_fast(at, (uint64_t)ev[i].start_ns - (uint64_t)before);
        before = ev[i].start_ns;
    }
    for (uint32_t i = 0; i < n; i++)
        at = mstx_put_varint_fast(at, (uint64_t)ev[i].dur_ns);
    return at;
}

/* Writes a column of differences.  A macro, so that each loop reads its member directly. */
#define PUT_DIFFERENCES(at, ev, n, field)                                                          \
    do {                                                                                           \
        uint64_t before = 0;                                                                       \
        for (uint32_t i = 0; i < (n); i++) {                                                       \
            (at) = mstx_put_varint_fast((at), mstx_zigzag((ev)[i].field - before));                \
            before = (ev)[i].field;                                                                \
        }                                                                                          \
    } while (0)

static uint8_t *put_optional(uint8_t *at, const struct mstx_event *ev, uint32_t n, unsigned columns)
{
    if (columns & HAS_ID)
        PUT_DIFFERENCES(at, ev, n, id);
    if (columns & HAS_ARG)
        PUT_DIFFERENCES(at, ev, n, arg);
    if (columns & HAS_SIZE)
        PUT_DIFFERENCES(at, ev, n, size);
    for (uint32_t i = 0; columns & HAS_COUNT && i < n; i++)
        at = mstx_put_varint(at, ev[i].count);
    for (uint32_t i = 0; columns & HAS_END_TID && i < n; i++)
        at = mstx_put_varint(at, ev[i].end_tid);
    for (uint32_t i = 0; columns & HAS_ARGS && i < n; i++)
        at = mstx_put_varint(at, ev[i].args);
    return at;
}

enum ms_rc mstx_pack(struct mstx_packer *p, const struct mstx_event *ev, uint32_t n,
                     struct ms_err *err)
{
    ms_assert(n >= 1 && n <= MSTX_CHUNK_MAX);
    ms_buf_clear(&p->out);
    uint8_t *start = (uint8_t *)ms_buf_room(&p->out, (size_t)n * EVENT_MAX + 64);
    if (start == NULL)
        return ms_buf_check(&p->out, err);
    unsigned columns = columns_of(ev, n);
    find_shapes(p, ev, n);
    uint8_t *at = put_head(p, start, ev, n, columns);
    at = put_index(p, at, n);
    at = put_times(at, ev, n);
    at = put_optional(at, ev, n, columns);
    p->out.n = (size_t)(at - start);
    return MS_OK;
}

/* ---- reading ---------------------------------------------------------------- */

struct head {
    unsigned columns;
    uint64_t start;
    uint32_t n, shapes;
};

static void get_head(struct mstx_bytes *r, struct head *h)
{
    *h = (struct head){0};
    if (r->end - r->at < HEAD || r->at[0] != VERSION || r->at[1] > HAS_ALL) {
        r->bad = true;
        return;
    }
    h->columns = r->at[1];
    memcpy(&h->start, r->at + 2, sizeof h->start);
    h->start = le64toh(h->start);
    r->at += HEAD;
    h->n = (uint32_t)mstx_get_below(r, MSTX_CHUNK_MAX + 1);
    h->shapes = (uint32_t)mstx_get_below(r, h->n + 1);
    r->bad |= h->n == 0 || h->shapes == 0;
}

static struct mstx_shape get_shape(struct mstx_bytes *r)
{
    struct mstx_shape s;
    s.name = (uint32_t)mstx_get_below(r, (uint64_t)UINT32_MAX + 1);
    s.depth = (uint16_t)mstx_get_below(r, UINT16_MAX + 1);
    s.kind = mstx_get_byte(r);
    s.flags = mstx_get_byte(r);
    r->bad |= s.kind >= MSTX_EV_KINDS;
    return s;
}

/* Returns the start of the index and skips it; NULL when it is cut off. */
static const uint8_t *pass_index(struct mstx_bytes *r, const struct head *h)
{
    ms_assert(h->shapes >= 1 && h->n >= h->shapes);
    size_t bytes = (size_t)h->n * (h->shapes > 256 ? 2 : 1);
    const uint8_t *at = r->at;
    if ((size_t)(r->end - r->at) < bytes) {
        r->bad = true;
        return NULL;
    }
    r->at += bytes;
    return at;
}

/* Sets the shapes of the first n events. */
static void get_index(struct mstx_bytes *r, const uint8_t *at, const struct head *h, uint32_t n,
                      const struct mstx_shape *shape, struct mstx_event *ev)
{
    ms_assert(n <= h->n);
    unsigned width = h->shapes > 256 ? 2 : 1;
    for (uint32_t i = 0; i < n; i++) {
        unsigned k = at[i * width] | (width == 2 ? (unsigned)at[i * width + 1] << 8 : 0u);
        r->bad |= k >= h->shapes;
        const struct mstx_shape *s = &shape[k < h->shapes ? k : 0];
        ev[i] = (struct mstx_event){
            .name = s->name, .depth = s->depth, .kind = s->kind, .flags = s->flags, .count = 1};
    }
}

/* Tells whether v is within +-2^62, so that a start plus a duration cannot overflow. */
static bool is_time(uint64_t v)
{
    return v + ((uint64_t)1 << 62) <= (uint64_t)1 << 63;
}

static void get_times(struct mstx_bytes *r, const struct head *h, struct mstx_event *ev)
{
    uint64_t start = h->start;
    r->bad |= !is_time(start);
    for (uint32_t i = 0; i < h->n; i++) {
        uint64_t distance = mstx_get_varint(r);
        start += distance;
        r->bad |= distance > (uint64_t)1 << 62 || !is_time(start);
        ev[i].start_ns = (int64_t)start;
    }
    for (uint32_t i = 0; i < h->n; i++)
        ev[i].dur_ns = (int64_t)mstx_get_below(r, (uint64_t)1 << 62);
}

#define GET_DIFFERENCES(r, ev, n, field)                                                           \
    do {                                                                                           \
        uint64_t before = 0;                                                                       \
        for (uint32_t i = 0; i < (n); i++) {                                                       \
            before += mstx_unzigzag(mstx_get_varint(r));                                           \
            (ev)[i].field = before;                                                                \
        }                                                                                          \
    } while (0)

static void get_optional(struct mstx_bytes *r, const struct head *h, struct mstx_event *ev)
{
    if (h->columns & HAS_ID)
        GET_DIFFERENCES(r, ev, h->n, id);
    if (h->columns & HAS_ARG)
        GET_DIFFERENCES(r, ev, h->n, arg);
    if (h->columns & HAS_SIZE)
        GET_DIFFERENCES(r, ev, h->n, size);
    for (uint32_t i = 0; h->columns & HAS_COUNT && i < h->n; i++)
        ev[i].count = (uint32_t)mstx_get_below(r, (uint64_t)UINT32_MAX + 1);
    for (uint32_t i = 0; h->columns & HAS_END_TID && i < h->n; i++)
        ev[i].end_tid = (uint32_t)mstx_get_below(r, (uint64_t)UINT32_MAX + 1);
    for (uint32_t i = 0; h->columns & HAS_ARGS && i < h->n; i++)
        ev[i].args = (uint32_t)mstx_get_below(r, (uint64_t)UINT32_MAX + 1);
}

static enum ms_rc fail_damaged(struct ms_err *err)
{
    return ms_fail(err, MS_E_FORMAT, "a chunk of events is damaged; import the capture again");
}

enum ms_rc mstx_unpack(struct ms_str blob, struct mstx_event *ev, uint32_t *n, struct ms_err *err)
{
    ms_assert(ev != NULL);
    struct mstx_shape shape[MSTX_CHUNK_MAX];
    struct mstx_bytes r = mstx_bytes_of(blob);
    struct head h;
    *n = 0;
    get_head(&r, &h);
    for (uint32_t i = 0; i < h.shapes && !r.bad; i++)
        shape[i] = get_shape(&r);
    const uint8_t *index = r.bad ? NULL : pass_index(&r, &h);
    if (index != NULL) {
        get_index(&r, index, &h, h.n, shape, ev);
        get_times(&r, &h, ev);
        get_optional(&r, &h, ev);
    }
    if (r.bad || r.at != r.end)
        return fail_damaged(err);
    *n = h.n;
    return MS_OK;
}

/* ---- renumbering texts ---------------------------------------------------------- */

static uint8_t *put_shapes(uint8_t *at, struct mstx_bytes *r, const struct head *h,
                           mstx_text_map map, const void *ctx)
{
    for (uint32_t i = 0; i < h->shapes && !r->bad; i++) {
        const struct mstx_shape s = get_shape(r);
        at = mstx_put_varint(at, map(ctx, s.name));
        at = mstx_put_varint(at, s.depth);
        *at++ = s.kind;
        *at++ = s.flags;
    }
    return at;
}

/* Copies the columns before args, which hold no text ids. */
static uint8_t *copy_columns(uint8_t *at, struct mstx_bytes *r, const struct head *h)
{
    ms_assert(h->n >= 1 && h->n <= MSTX_CHUNK_MAX);
    const uint8_t *from = r->at;
    const unsigned present = h->columns & (HAS_ALL & ~(unsigned)HAS_ARGS);
    if (pass_index(r, h) != NULL)
        mstx_skip_varints(r, h->n * (2 + (uint32_t)__builtin_popcount(present)));
    r->bad |= (size_t)(r->at - from) > (size_t)h->n * (2 + 7 * MSTX_VARINT_MAX); /* damage */
    const size_t bytes = r->bad ? 0 : (size_t)(r->at - from);
    memcpy(at, from, bytes);
    return at + bytes;
}

enum ms_rc mstx_pack_renumber(struct mstx_packer *p, struct ms_str blob, mstx_text_map map,
                              const void *ctx, struct ms_err *err)
{
    ms_assert(map != NULL);
    struct mstx_bytes r = mstx_bytes_of(blob);
    struct head h;
    ms_buf_clear(&p->out);
    uint8_t *start = (uint8_t *)ms_buf_room(&p->out, p->out.max), *at = start;
    if (start == NULL)
        return ms_buf_check(&p->out, err);
    get_head(&r, &h);
    if (r.bad)
        return fail_damaged(err);
    memcpy(at, blob.p, HEAD);
    at = mstx_put_varint(at + HEAD, h.n);
    at = mstx_put_varint(at, h.shapes);
    at = put_shapes(at, &r, &h, map, ctx);
    at = copy_columns(at, &r, &h);
    for (uint32_t i = 0; h.columns & HAS_ARGS && i < h.n && !r.bad; i++)
        at = mstx_put_varint(at, map(ctx, (uint32_t)mstx_get_below(&r, (uint64_t)UINT32_MAX + 1)));
    if (r.bad || r.at != r.end)
        return fail_damaged(err);
    p->out.n = (size_t)(at - start);
    return MS_OK;
}

/* ---- unpacking for pictures ----------------------------------------------------- */

/* Reads the starts up to `until` and skips the others; returns the number of starts read. */
static uint32_t get_starts_until(struct mstx_bytes *r, const struct head *h, int64_t until,
                                 int64_t *start)
{
    ms_assert(h->n <= MSTX_CHUNK_MAX);
    uint64_t at = h->start;
    uint32_t n = 0;
    r->bad |= !is_time(at);
    for (uint32_t i = 0; i < h->n; i++) {
        uint64_t distance = mstx_get_varint(r);
        at += distance;
        r->bad |= distance > (uint64_t)1 << 62 || !is_time(at);
        if (r->bad || (int64_t)at > until) {
            mstx_skip_varints(r, h->n - i - 1);
            break;
        }
        start[n++] = (int64_t)at;
    }
    return n;
}

static void get_drawn(struct mstx_bytes *r, const struct head *h, uint32_t n, struct mstx_event *ev)
{
    ms_assert(n <= h->n);
    for (uint32_t i = 0; i < n; i++)
        ev[i].dur_ns = (int64_t)mstx_get_below(r, (uint64_t)1 << 62);
    mstx_skip_varints(r, h->n - n);
    if (h->columns & HAS_ID)
        mstx_skip_varints(r, h->n);
    if (h->columns & HAS_ARG) {
        GET_DIFFERENCES(r, ev, n, arg);
        mstx_skip_varints(r, h->n - n);
    }
    if (h->columns & HAS_SIZE) {
        GET_DIFFERENCES(r, ev, n, size);
        mstx_skip_varints(r, h->n - n);
    }
    for (uint32_t i = 0; h->columns & HAS_COUNT && i < n; i++)
        ev[i].count = (uint32_t)mstx_get_below(r, (uint64_t)UINT32_MAX + 1);
}

enum ms_rc mstx_unpack_drawn(struct ms_str blob, int64_t until, struct mstx_event *ev, uint32_t *n,
                             struct ms_err *err)
{
    ms_assert(ev != NULL);
    struct mstx_shape shape[MSTX_CHUNK_MAX];
    int64_t start[MSTX_CHUNK_MAX];
    struct mstx_bytes r = mstx_bytes_of(blob);
    struct head h;
    *n = 0;
    get_head(&r, &h);
    for (uint32_t i = 0; i < h.shapes && !r.bad; i++)
        shape[i] = get_shape(&r);
    const uint8_t *index = r.bad ? NULL : pass_index(&r, &h);
    uint32_t some = index != NULL ? get_starts_until(&r, &h, until, start) : 0;
    if (some != 0)
        get_index(&r, index, &h, some, shape, ev);
    for (uint32_t i = 0; i < some; i++)
        ev[i].start_ns = start[i];
    if (!r.bad)
        get_drawn(&r, &h, some, ev);
    if (r.bad)
        return fail_damaged(err);
    *n = some;
    return MS_OK;
}

bool mstx_pack_has_name(struct ms_str blob, mstx_name_test test, void *ctx)
{
    ms_assert(test != NULL);
    struct mstx_bytes r = mstx_bytes_of(blob);
    struct head h;
    get_head(&r, &h);
    for (uint32_t i = 0; i < h.shapes && !r.bad; i++) {
        if (test(ctx, get_shape(&r).name))
            return true;
    }
    return r.bad;
}
