/* SPDX-License-Identifier: MIT
 *
 * args: continuation records to JSON.
 *
 * Schemas come from the program and payloads from its memory, so every offset is
 * checked against the available bytes; values that do not fit are left out.
 */
#include "mstx/read/args.h"

#include "probe/base/jwrite.h"
#include "probe/base/num.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ARGS_MAX = 1 << 16,
    NESTED_MAX = 6,    /* schemas within schemas */
    ELEMENTS_MAX = 64, /* elements of an array that are shown */
    ENTRY_POINTER = 2,
    ENTRY_ARRAY_SHIFT = 4,
    ENTRY_HIDE = 0x200,
    ARRAY_FIXED = 1,
    ARRAY_ZERO_ENDED = 2,
    ARRAY_LENGTH_AT = 3,
    SCHEMA_IDS = 1 << 24, /* type numbers from here on are ids of schemas */
};

struct bytes {
    const uint8_t *p;
    size_t n;
};

struct args {
    struct mstx_texts *t;
    struct ms_jwrite w;
    uint16_t domain;
    bool any; /* something has been written */
};

/* ---- plain values ----------------------------------------------------------- */

enum form { FORM_NONE, FORM_SIGNED, FORM_UNSIGNED, FORM_REAL, FORM_HEX, FORM_CHAR, FORM_TEXT };

static const struct plain {
    uint8_t type, size;
    enum form form;
} plains[] = {
    {1, 1, FORM_CHAR},      {2, 1, FORM_UNSIGNED},  {3, 2, FORM_SIGNED},    {4, 2, FORM_UNSIGNED},
    {5, 4, FORM_SIGNED},    {6, 4, FORM_UNSIGNED},  {7, 8, FORM_SIGNED},    {8, 8, FORM_UNSIGNED},
    {9, 8, FORM_SIGNED},    {10, 8, FORM_UNSIGNED}, {11, 1, FORM_SIGNED},   {12, 1, FORM_UNSIGNED},
    {13, 2, FORM_SIGNED},   {14, 2, FORM_UNSIGNED}, {15, 4, FORM_SIGNED},   {16, 4, FORM_UNSIGNED},
    {17, 8, FORM_SIGNED},   {18, 8, FORM_UNSIGNED}, {19, 4, FORM_REAL},     {20, 8, FORM_REAL},
    {22, 8, FORM_UNSIGNED}, {23, 8, FORM_HEX},      {25, 1, FORM_CHAR},     {32, 1, FORM_UNSIGNED},
    {43, 4, FORM_REAL},     {44, 8, FORM_REAL},     {68, 4, FORM_UNSIGNED}, {69, 4, FORM_HEX},
    {70, 8, FORM_UNSIGNED}, {73, 4, FORM_UNSIGNED}, {74, 8, FORM_UNSIGNED}, {75, 1, FORM_TEXT},
    {76, 1, FORM_TEXT},
};

static const struct plain *plain_of(uint64_t type)
{
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++) {
        if (plains[i].type == type)
            return &plains[i];
    }
    return NULL;
}

static uint64_t load_bytes(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static int64_t sign_extend(uint64_t v, size_t n)
{
    const unsigned unused = 64 - 8 * (unsigned)n;
    return (int64_t)(v << unused) >> unused;
}

static void put_hex(struct ms_jwrite *w, uint64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof text, "0x%" PRIx64, v);
    ms_jwrite_str(w, (struct ms_str){text, (uint32_t)n});
}

static void put_real(struct ms_jwrite *w, uint64_t bits, size_t size)
{
    double real;
    float single;
    uint32_t low = (uint32_t)bits;
    memcpy(&real, &bits, sizeof real);
    memcpy(&single, &low, sizeof single);
    double v = size == 4 ? (double)single : real;
    /* JSON has no NaN and no infinity. */
    if (v - v == 0)
        ms_jwrite_f64(w, v);
    else
        ms_jwrite_null(w);
}

static void put_plain(struct ms_jwrite *w, const struct plain *k, const uint8_t *p)
{
    uint64_t v = load_bytes(p, k->size);
    if (k->form == FORM_SIGNED)
        ms_jwrite_i64(w, sign_extend(v, k->size));
    else if (k->form == FORM_REAL)
        put_real(w, v, k->size);
    else if (k->form == FORM_HEX)
        put_hex(w, v);
    else if (k->form == FORM_CHAR || k->form == FORM_TEXT)
        ms_jwrite_str(w, (struct ms_str){(const char *)p, v != 0});
    else
        ms_jwrite_u64(w, v);
}

/* ---- schemas ---------------------------------------------------------------- */

static bool read_schema(const struct mstx_keyed *k, struct mstx_schema *s)
{
    if (k == NULL || k->text.n < sizeof *s)
        return false;
    memcpy(s, k->text.p, sizeof *s);
    return s->count <= (k->text.n - sizeof *s) / sizeof(struct mstx_schema_item);
}

static struct mstx_schema_item read_item(const struct mstx_keyed *k, uint32_t i)
{
    struct mstx_schema_item item;
    memcpy(&item, k->text.p + sizeof(struct mstx_schema) + i * sizeof item, sizeof item);
    return item;
}

static struct ms_str item_name(struct args *a, const struct mstx_schema_item *item)
{
    return a->t->to->get(a->t->to->ctx, mstx__text_id(a->t, item->name));
}

/* Writes the name of an enumeration value, or its number when the enumeration has no name for
 * it. */
static void put_enum(struct args *a, const struct mstx_keyed *k, const struct mstx_schema *s,
                     struct bytes b)
{
    size_t size = s->size >= 1 && s->size <= 8 ? (size_t)s->size : 4;
    if (b.n < size) {
        ms_jwrite_null(&a->w);
        return;
    }
    uint64_t v = load_bytes(b.p, size);
    for (uint32_t i = 0; i < s->count; i++) {
        struct mstx_schema_item item = read_item(k, i);
        if (item.type == v) {
            ms_jwrite_str(&a->w, item_name(a, &item));
            return;
        }
    }
    ms_jwrite_u64(&a->w, v);
}

static void put_members(struct args *a, const struct mstx_keyed *k, const struct mstx_schema *s,
                        struct bytes b, int nested);

/* Writes a value whose type is another schema or an enumeration. */
static void put_other(struct args *a, uint64_t type, struct bytes b, int nested)
{
    struct mstx_schema s;
    const struct mstx_keyed *k = mstx__texts_find(a->t, MSTX_ENUM, a->domain, type);
    if (read_schema(k, &s)) {
        put_enum(a, k, &s, b);
        return;
    }
    k = mstx__texts_find(a->t, MSTX_SCHEMA, a->domain, type);
    if (nested >= NESTED_MAX || !read_schema(k, &s)) {
        ms_jwrite_null(&a->w);
        return;
    }
    ms_jwrite_obj(&a->w);
    put_members(a, k, &s, b, nested + 1);
    ms_jwrite_obj_end(&a->w);
}

/* Returns the number of elements of an array entry that are within the payload. */
static uint64_t array_length(const struct mstx_keyed *k, const struct mstx_schema *s,
                             const struct mstx_schema_item *item, size_t size, struct bytes all,
                             struct bytes at)
{
    unsigned form = item->flags >> ENTRY_ARRAY_SHIFT & 7;
    uint64_t most = at.n / size;
    if (form == ARRAY_FIXED)
        return item->array < most ? item->array : most;
    if (form == ARRAY_LENGTH_AT && item->array < s->count) {
        struct mstx_schema_item other = read_item(k, (uint32_t)item->array);
        const struct plain *p = plain_of(other.type);
        if (p == NULL || other.offset > all.n || all.n - other.offset < p->size)
            return 0;
        uint64_t n = load_bytes(all.p + other.offset, p->size);
        return n < most ? n : most;
    }
    uint64_t n = 0;
    while (form == ARRAY_ZERO_ENDED && n < most && load_bytes(at.p + n * size, size) != 0)
        n++;
    return n;
}

static void put_array(struct args *a, const struct plain *p, struct bytes at, uint64_t n)
{
    if (p->form == FORM_CHAR || p->form == FORM_TEXT) {
        const void *end = memchr(at.p, 0, (size_t)n);
        size_t len = end != NULL ? (size_t)((const uint8_t *)end - at.p) : (size_t)n;
        ms_jwrite_str(&a->w, (struct ms_str){(const char *)at.p, (uint32_t)len});
        return;
    }
    ms_jwrite_arr(&a->w);
    for (uint64_t i = 0; i < n && i < ELEMENTS_MAX; i++)
        put_plain(&a->w, p, at.p + i * p->size);
    ms_jwrite_arr_end(&a->w);
}

static void put_item(struct args *a, const struct mstx_keyed *k, const struct mstx_schema *s,
                     const struct mstx_schema_item *item, struct bytes b, int nested)
{
    struct bytes at = {b.p + item->offset, b.n - item->offset};
    const struct plain *p = plain_of(item->type);
    bool is_array = (item->flags >> ENTRY_ARRAY_SHIFT & 7) != 0;
    if (item->flags & ENTRY_POINTER && at.n >= 8)
        put_hex(&a->w, load_bytes(at.p, 8));
    else if (p == NULL && item->type >= SCHEMA_IDS)
        put_other(a, item->type, at, nested);
    else if (p == NULL || at.n < p->size)
        ms_jwrite_null(&a->w);
    else if (is_array)
        put_array(a, p, at, array_length(k, s, item, p->size, b, at));
    else
        put_plain(&a->w, p, at.p);
}

static void put_members(struct args *a, const struct mstx_keyed *k, const struct mstx_schema *s,
                        struct bytes b, int nested)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct mstx_schema_item item = read_item(k, i);
        if (item.offset > b.n || item.flags & ENTRY_HIDE)
            continue;
        ms_jwrite_key(&a->w, item_name(a, &item));
        put_item(a, k, s, &item, b, nested);
        a->any = true;
    }
}

/* ---- records ---------------------------------------------------------------- */

static void put_payload(struct args *a, uint64_t schema, struct bytes b)
{
    struct mstx_schema s;
    const struct plain *p = plain_of(schema);
    const struct mstx_keyed *k = mstx__texts_find(a->t, MSTX_SCHEMA, a->domain, schema);
    if (read_schema(k, &s)) {
        put_members(a, k, &s, b, 0);
    } else if (p != NULL && b.n >= p->size) {
        ms_jwrite_key(&a->w, MS_STR("payload"));
        if (b.n >= 2u * p->size)
            put_array(a, p, b, b.n / p->size);
        else
            put_plain(&a->w, p, b.p);
        a->any = true;
    }
}

static void put_attr_payload(struct args *a, const struct mstx_rec_attr *r)
{
    static const uint8_t type_of[] = {0, 18, 17, 20, 16, 15, 19};
    if (r->payload_type == MSTX_PAYLOAD_NONE || r->payload_type > MSTX_PAYLOAD_F32)
        return;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(r->payload >> 8 * i);
    const struct plain *p = plain_of(type_of[r->payload_type]);
    ms_jwrite_key(&a->w, MS_STR("payload"));
    put_plain(&a->w, p, bytes);
    a->any = true;
}

static void put_attr(struct args *a, const struct mstx_rec_attr *r)
{
    if (r->fields & MSTX_ATTR_CATEGORY) {
        const struct mstx_keyed *k = mstx__texts_find(a->t, MSTX_CATEGORY, a->domain, r->category);
        ms_jwrite_key(&a->w, MS_STR("category"));
        if (k != NULL)
            ms_jwrite_str(&a->w, k->text);
        else
            ms_jwrite_u64(&a->w, r->category);
        a->any = true;
    }
    if (r->fields & MSTX_ATTR_COLOR) {
        char text[16];
        int n = snprintf(text, sizeof text, "#%06" PRIx32, r->argb & 0xFFFFFF);
        ms_jwrite_key(&a->w, MS_STR("color"));
        ms_jwrite_str(&a->w, (struct ms_str){text, (uint32_t)n});
        a->any = true;
    }
    if (r->fields & MSTX_ATTR_PAYLOAD)
        put_attr_payload(a, r);
}

/* Collects the DATA records that follow a PAYLOAD into out; returns the number of these records. */
static size_t gather_data(const struct mstx_rec *cont, size_t n, uint64_t want, uint8_t *out,
                          size_t *filled)
{
    size_t i = 0;
    *filled = 0;
    for (; i < n && cont[i].type == MSTX_REC_DATA; i++) {
        struct mstx_rec_data d;
        memcpy(&d, &cont[i], sizeof d);
        uint64_t take = d.n <= MSTX_DATA_BYTES ? d.n : MSTX_DATA_BYTES;
        take = take < want - *filled ? take : want - *filled;
        size_t front = take < sizeof d.bytes ? (size_t)take : sizeof d.bytes;
        memcpy(out + *filled, d.bytes, front);
        memcpy(out + *filled + front, d.more, (size_t)take - front);
        *filled += (size_t)take;
    }
    return i;
}

/* Writes the members that describe a call to a viewer; group may be "". */
static void put_call(struct ms_jwrite *w, const struct mstx_rec_comm *c, struct ms_str group)
{
    const enum mstx_comm_class class = mstx_comm_op_class(c->op);
    ms_jwrite_kstr(w, "op", mstx_comm_op_text(c->op));
    if (group.n != 0) {
        ms_jwrite_key(w, MS_STR("communicator"));
        ms_jwrite_str(w, group);
    }
    if (class == MSTX_CLASS_WAIT || class == MSTX_CLASS_ADMIN)
        return;
    ms_jwrite_kstr(w, "type", mstx_comm_type_text(c->dtype));
    ms_jwrite_key(w, MS_STR("count"));
    ms_jwrite_u64(w, c->count);
    ms_jwrite_key(w, MS_STR("bytes"));
    ms_jwrite_u64(w, c->count * c->elem);
    if (c->reduce != MSTX_REDUCE_NONE)
        ms_jwrite_kstr(w, "reduce", mstx_comm_reduce_text(c->reduce));
    if (c->peer >= 0)
        ms_jwrite_ki64(w, class == MSTX_CLASS_COLL ? "root" : "peer", c->peer);
}

static void put_comm(struct args *a, const struct mstx_rec_comm *c)
{
    struct mstx_comm_known g = {0};
    const struct mstx_keyed *k = mstx__texts_find(a->t, MSTX_GROUP, 0, c->group);
    if (k == NULL || !mstx__comm_group_parse(k->text, &g))
        g.name = MS_STR("");
    put_call(&a->w, c, g.name);
    a->any = true;
}

static void put_polls(struct args *a, uint32_t polls)
{
    if (polls == 0)
        return;
    ms_jwrite_key(&a->w, MS_STR("polls"));
    ms_jwrite_u64(&a->w, polls);
    a->any = true;
}

static void put_records(struct args *a, const struct mstx_rec *cont, size_t n)
{
    uint8_t bytes[MSTX_PAYLOAD_MAX];
    for (size_t i = 0; i < n; i++) {
        if (cont[i].type == MSTX_REC_ATTR) {
            struct mstx_rec_attr r;
            memcpy(&r, &cont[i], sizeof r);
            put_attr(a, &r);
        } else if (cont[i].type == MSTX_REC_COMM) {
            struct mstx_rec_comm r;
            memcpy(&r, &cont[i], sizeof r);
            put_comm(a, &r);
        } else if (cont[i].type == MSTX_REC_COMM_PART) {
            struct mstx_rec_comm_part r;
            memcpy(&r, &cont[i], sizeof r);
            put_polls(a, r.polls);
        } else if (cont[i].type == MSTX_REC_PAYLOAD) {
            struct mstx_rec_payload r;
            memcpy(&r, &cont[i], sizeof r);
            uint64_t want = r.bytes < sizeof bytes ? r.bytes : sizeof bytes;
            size_t filled;
            i += gather_data(cont + i + 1, n - i - 1, want, bytes, &filled);
            put_payload(a, r.schema, (struct bytes){bytes, filled});
        }
    }
}

static uint32_t make_object(struct mstx_texts *t, const struct mstx_rec *cont, size_t n,
                            uint16_t domain)
{
    struct args a = {.t = t, .domain = domain};
    uint32_t id = 0;
    ms_jwrite_init(&a.w, 0, ARGS_MAX);
    ms_jwrite_obj(&a.w);
    put_records(&a, cont, n);
    ms_jwrite_obj_end(&a.w);
    struct ms_err err = {0};
    enum ms_rc rc = ms_jwrite_finish(&a.w, &err);
    if (rc == MS_OK && a.any)
        id = t->to->intern(t->to->ctx, ms_buf_slice(&a.w.buf));
    else if (rc == MS_E_NOMEM)
        t->to->fail(t->to->ctx, &err);
    ms_jwrite_free(&a.w);
    return id;
}

/* Caches the text without sequence number and tag, because thousands of calls differ only in
 * these. */
static uint32_t args_of_comm(struct mstx_texts *t, struct mstx_args_cache *cache,
                             const struct mstx_rec *cont, uint16_t domain)
{
    struct mstx_rec_comm r;
    memcpy(&r, cont, sizeof r);
    r.seq = 0;
    r.tag_code = 0;
    r.flags &= (uint8_t)~MSTX_F_MORE;
    uint64_t mix = r.count ^ (uint64_t)r.group << 40 ^ (uint64_t)(uint32_t)r.peer << 20 ^
                   (uint64_t)r.op << 8 ^ r.dtype;
    size_t slot = mix * 0x9E3779B97F4A7C15u >> 56;
    if (cache->comm[slot].id == 0 || memcmp(&cache->comm[slot].rec, &r, sizeof r) != 0) {
        cache->comm[slot].rec = r;
        cache->comm[slot].id = make_object(t, cont, 1, domain);
    }
    return cache->comm[slot].id;
}

uint32_t mstx__args_asked(struct mstx_texts *t, const struct mstx_rec_comm *c, uint32_t polls)
{
    struct mstx_rec cont[2];
    const struct mstx_rec_comm_part part = {.type = MSTX_REC_COMM_PART, .polls = polls};
    memcpy(&cont[0], c, sizeof *c);
    memcpy(&cont[1], &part, sizeof part);
    return make_object(t, cont, 2, 0);
}

uint32_t mstx__args(struct mstx_texts *t, struct mstx_args_cache *cache,
                    const struct mstx_rec *cont, size_t n, uint16_t domain)
{
    if (cont->type == MSTX_REC_COMM_PART)
        return 0;
    if (cont->type == MSTX_REC_COMM)
        return args_of_comm(t, cache, cont, domain);
    if (n != 1 || cont->type != MSTX_REC_ATTR)
        return make_object(t, cont, n, domain);
    struct mstx_rec_attr r;
    memcpy(&r, cont, sizeof r);
    uint64_t mix = (r.payload ^ (uint64_t)r.argb << 32 ^ r.category) * 0x9E3779B97F4A7C15u;
    size_t slot = mix >> 58;
    if (cache->id[slot] == 0 || cache->domain[slot] != domain ||
        memcmp(&cache->attr[slot], &r, sizeof r) != 0) {
        cache->attr[slot] = r;
        cache->domain[slot] = domain;
        cache->id[slot] = make_object(t, cont, n, domain);
    }
    return cache->id[slot];
}
