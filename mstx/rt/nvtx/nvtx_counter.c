/* SPDX-License-Identifier: MIT
 *
 * nvtx_counter: the counter module of NVTX's extension.  A counter is a number, or a group of
 * numbers laid out by a schema; each number of a group is recorded as a counter named
 * "group.number".  Names outlive captures and forks, text ids do not, so each id is looked up once
 * in a capture.
 */
#include "mstx/rt/nvtx/nvtx.h"

#include <stdio.h>
#include <string.h>

enum { COUNTERS = 4096, NUMBERS_MAX = 64, TEXT_MAX = 512, SEMANTICS_MAX = 8, COUNTER_SEMANTIC = 5 };

struct semantic { /* entry of a list; that of a counter begins with it */
    uint32_t struct_size;
    uint16_t id, version;
    const struct semantic *next;
};
struct counter_semantic {
    struct semantic head;
    uint64_t flags;
    const char *unit;
};
struct attr { /* 56 bytes */
    size_t struct_size;
    uint64_t schema;
    const char *name, *description;
    uint64_t scope;
    const struct semantic *semantics;
    uint64_t id;
};
static_assert(sizeof(struct attr) == 56 && offsetof(struct counter_semantic, unit) == 24, "attr");

struct batch { /* 48 bytes */
    uint64_t id;
    const void *samples;
    size_t bytes;
    uint64_t flags;
    const int64_t *times;
    size_t times_bytes;
};

enum { REGISTER_SLOT, INT_SLOT, REAL_SLOT, BYTES_SLOT, NOTHING_SLOT, BATCH_SLOT };

struct number {
    struct nvtx_field field; /* its name is the full name of the counter */
    _Atomic uint32_t epoch, text;
};
static struct counter {
    _Atomic uint64_t id; /* written last; 0: free */
    uint16_t domain;
    uint16_t count;
    size_t bytes; /* of one sample */
    const char *unit;
    struct number *numbers;
} counters[COUNTERS];

/* ---- the table ------------------------------------------------------------------------- */

static size_t place_of(uint64_t id, uint16_t domain)
{
    return (size_t)((id ^ (uint64_t)domain << 40) * 0x9E3779B97F4A7C15u >> 52) % COUNTERS;
}

/* Returns the counter, or the free entry for it; NULL: the table is full. */
static struct counter *find(uint64_t id, uint16_t domain)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        struct counter *c = &counters[(place_of(id, domain) + i) % COUNTERS];
        uint64_t here = atomic_load_explicit(&c->id, memory_order_acquire);
        if (here == 0 || (here == id && c->domain == domain))
            return c;
    }
    return NULL;
}

/* ---- registering ----------------------------------------------------------------------- */

static const char *unit_of(const struct semantic *s)
{
    for (int i = 0; s != NULL && i < SEMANTICS_MAX; i++, s = s->next) {
        if (s->id == COUNTER_SEMANTIC && s->struct_size >= sizeof(struct counter_semantic)) {
            const char *unit = ((const struct counter_semantic *)(const void *)s)->unit;
            return unit != NULL ? rt_keep(unit, strnlen(unit, TEXT_MAX)) : NULL;
        }
    }
    return NULL;
}

static const char *whole_name(const char *group, const char *number)
{
    char text[TEXT_MAX];
    int n = snprintf(text, sizeof text, "%s%s%s", group != NULL ? group : "counter",
                     number != NULL ? "." : "", number != NULL ? number : "");
    return rt_keep(text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* Lays out the sample: the fields of its schema, or its one number. */
static bool lay_out(struct counter *c, const struct attr *a)
{
    ms_assert(atomic_load(&rt.schema_lock.held) == 1);
    struct nvtx_field plain = {.type = a->schema}, *fields = &plain;
    size_t n = nvtx_schema_fields(a->schema, &fields, &c->bytes);
    if (n == 0) {
        fields = &plain;
        n = nvtx_number_size(a->schema) != 0;
        c->bytes = nvtx_number_size(a->schema);
    }
    n = n < NUMBERS_MAX ? n : NUMBERS_MAX;
    static const struct number zero[NUMBERS_MAX];
    c->numbers = (struct number *)(void *)rt_keep(zero, n * sizeof *c->numbers);
    for (size_t i = 0; c->numbers != NULL && i < n; i++) {
        c->numbers[i].field = fields[i];
        c->numbers[i].field.name =
            whole_name(a->name, n > 1 || fields[i].name ? fields[i].name : NULL);
    }
    c->count = c->numbers != NULL ? (uint16_t)n : 0;
    return c->numbers != NULL;
}

/* Registers a counter. A second registration does not change it. */
static uint64_t counter_register(void *domain, const struct attr *given)
{
    struct rt_domain *d = rt_domain_of(domain);
    struct attr a = {0};
    if (d == NULL || given == NULL || given->struct_size < offsetof(struct attr, description))
        return 0;
    size_t size = given->struct_size < sizeof a ? given->struct_size : sizeof a;
    memcpy(&a, given, size);
    /* The pointer semantics is not complete. */
    if (size < offsetof(struct attr, id))
        a.semantics = NULL;
    if (size < sizeof a)
        a.id = 0;
    uint64_t id = nvtx_id_of(d, NVTX_MODULE_COUNTERS, REGISTER_SLOT, given, a.id);
    rt_lock(&rt.schema_lock);
    struct counter *c = find(id, d->number);
    if (c != NULL && atomic_load(&c->id) == 0) {
        c->domain = d->number;
        c->unit = unit_of(a.semantics);
        if (lay_out(c, &a))
            atomic_store_explicit(&c->id, id, memory_order_release);
    }
    rt_unlock(&rt.schema_lock);
    if (c == NULL)
        rt_say(RT_SAY_NVTX, 0, "more than %d NVTX counters; the rest is not recorded", COUNTERS);
    return id;
}

/* ---- samples ---------------------------------------------------------------------------- */

/* Calls the next tool's function in that slot, with that tool's ids. */
#define PASS_ON(domain, slot, type, ...)                                                           \
    do {                                                                                           \
        struct rt_domain *told = rt_domain_of(domain);                                             \
        intptr_t fn = nvtx_next_slot(told, NVTX_MODULE_COUNTERS, slot);                            \
        if (RT_UNLIKELY(fn != 0))                                                                  \
            NVTX_CALL(type, fn, nvtx_next_domain(told), __VA_ARGS__);                              \
    } while (0)
typedef void next_int_fn(void *, uint64_t, int64_t);
typedef void next_real_fn(void *, uint64_t, double);
typedef void next_bytes_fn(void *, uint64_t, const void *, size_t);
typedef void next_nothing_fn(void *, uint64_t, uint8_t);
typedef void next_batch_fn(void *, const struct batch *);

static struct counter *find_recorded(void *domain, uint64_t id, struct rt_domain **d)
{
    *d = rt_domain_of(domain);
    if (!nvtx_live(*d) || id == 0)
        return NULL;
    struct counter *c = find(id, (*d)->number);
    return c != NULL && atomic_load_explicit(&c->id, memory_order_acquire) == id ? c : NULL;
}

static uint32_t text_of(const struct counter *c, struct number *n)
{
    if (RT_LIKELY(atomic_load_explicit(&n->epoch, memory_order_acquire) == rt.epoch))
        return atomic_load_explicit(&n->text, memory_order_relaxed);
    uint32_t id = nvtx_text(n->field.name);
    uint32_t epoch = rt.epoch; /* read after nvtx_text, which may have begun a capture */
    if (c->unit != NULL && id != 0)
        rt_text_define(MSTX_COUNTER, c->domain, id, c->unit, strlen(c->unit));
    atomic_store_explicit(&n->text, id, memory_order_relaxed);
    atomic_store_explicit(&n->epoch, epoch, memory_order_release);
    return id;
}

static void record_number(struct rt_domain *d, const struct counter *c, size_t i, uint64_t bits,
                          bool real)
{
    uint32_t name = i < c->count ? text_of(c, &c->numbers[i]) : 0;
    if (name != 0)
        rt_counter(d, name, bits, real);
}

static void sample_int(void *domain, uint64_t id, int64_t value)
{
    struct rt_domain *d;
    const struct counter *c = find_recorded(domain, id, &d);
    if (c != NULL)
        record_number(d, c, 0, (uint64_t)value, false);
    PASS_ON(domain, INT_SLOT, next_int_fn, id, value);
}

static void sample_real(void *domain, uint64_t id, double value)
{
    struct rt_domain *d;
    uint64_t bits;
    const struct counter *c = find_recorded(domain, id, &d);
    memcpy(&bits, &value, sizeof bits);
    if (c != NULL)
        record_number(d, c, 0, bits, true);
    PASS_ON(domain, REAL_SLOT, next_real_fn, id, value);
}

static void sample_bytes(struct rt_domain *d, const struct counter *c, const char *p, size_t bytes)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct nvtx_field *f = &c->numbers[i].field;
        uint64_t bits;
        bool real;
        size_t size = nvtx_number_size(f->type);
        if (f->offset > bytes || size > bytes - f->offset)
            continue;
        if (nvtx_number(f->type, p + f->offset, &bits, &real))
            record_number(d, c, i, bits, real);
    }
}

static void sample_values(void *domain, uint64_t id, const void *values, size_t bytes)
{
    struct rt_domain *d;
    const struct counter *c = find_recorded(domain, id, &d);
    if (c != NULL && values != NULL)
        sample_bytes(d, c, values, bytes);
    PASS_ON(domain, BYTES_SLOT, next_bytes_fn, id, values, bytes);
}

/* Records a sample without a number: zero is a value; "unchanged" and "unavailable" leave the
 * counter as it is. */
static void sample_nothing(void *domain, uint64_t id, uint8_t reason)
{
    struct rt_domain *d;
    const struct counter *c = find_recorded(domain, id, &d);
    for (size_t i = 0; c != NULL && reason == 0 && i < c->count; i++)
        record_number(d, c, i, 0, false);
    PASS_ON(domain, NOTHING_SLOT, next_nothing_fn, id, reason);
}

/* Records the newest sample of a batch at the current time, since the times of a batch are of the
 * program's own clock. */
static void record_newest(void *domain, uint64_t id, const char *samples, size_t bytes)
{
    struct rt_domain *d;
    const struct counter *c = find_recorded(domain, id, &d);
    if (c == NULL || samples == NULL || c->bytes == 0 || bytes < c->bytes)
        return;
    if (bytes >= 2 * c->bytes)
        rt_say(RT_SAY_BATCH, 0, "of batches of NVTX counters the newest sample alone is recorded");
    sample_bytes(d, c, samples + (bytes / c->bytes - 1) * c->bytes, c->bytes);
}

/* Passes a batch on in the form in which the module was offered. */
static void tell_next_batch(void *domain, const struct batch *b)
{
    if (nvtx_next_counts_by_structure())
        PASS_ON(domain, BATCH_SLOT, next_batch_fn, b);
    else
        PASS_ON(domain, BATCH_SLOT, next_bytes_fn, b->id, b->samples, b->bytes);
}

static void submit_batch(void *domain, const struct batch *b)
{
    if (b == NULL)
        return;
    record_newest(domain, b->id, b->samples, b->bytes);
    tell_next_batch(domain, b);
}

static void submit_batch_old(void *domain, uint64_t id, const void *samples, size_t bytes)
{
    submit_batch(domain, &(struct batch){.id = id, .samples = samples, .bytes = bytes});
}

const intptr_t nvtx_counter_slots[NVTX_COUNTER_SLOTS] = {
    (intptr_t)counter_register, (intptr_t)sample_int,     (intptr_t)sample_real,
    (intptr_t)sample_values,    (intptr_t)sample_nothing, (intptr_t)submit_batch};

/* Slots of versions before 0x0102, where a batch has four arguments, and a seventh function has
 * times. */
const intptr_t nvtx_counter_slots_old[NVTX_COUNTER_SLOTS] = {
    (intptr_t)counter_register, (intptr_t)sample_int,     (intptr_t)sample_real,
    (intptr_t)sample_values,    (intptr_t)sample_nothing, (intptr_t)submit_batch_old};
