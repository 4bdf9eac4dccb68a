/* SPDX-License-Identifier: MIT
 *
 * rt_nvtx_ext: the extensions of NVTX, and of them the one for payloads, through which NCCL tells
 * sizes, roots and communicators.  A layout ("schema") is registered once and written to strings.seg with its
 * offsets worked out; an event carries the bytes as they are.  Ids a program chooses lie below
 * 2^32; those we give out lie above.
 */
#include "mstx/rt_nvtx.h"

#include <string.h>

#define API __attribute__((visibility("default")))

enum { SCHEMAS = 2048, ENTRIES_MAX = 256, NAME_BYTES_MAX = 256 };

struct attr { /* 80 bytes */
    uint64_t fields;
    const char *name;
    uint64_t type, flags;
    const struct entry *entries;
    size_t count, static_size, alignment;
    uint64_t id;
    const void *extension;
};
struct entry { /* 64 bytes */
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset;
    const void *semantics, *reserved;
};
struct enum_attr { /* 56 bytes */
    uint64_t fields;
    const char *name;
    const struct enum_entry *entries;
    size_t count, size;
    uint64_t id;
    const void *extension;
};
struct enum_entry { /* 24 bytes */
    const char *name;
    uint64_t value;
    int8_t is_flag;
};
static_assert(sizeof(struct attr) == 80 && sizeof(struct entry) == 64, "schema");
static_assert(sizeof(struct enum_attr) == 56 && sizeof(struct enum_entry) == 24, "enum");

/* Bits of attr.fields and of enum_attr.fields: what of the structure is set. */
enum { HAS_NAME = 2, HAS_TYPE = 4, HAS_ENTRIES = 16, HAS_COUNT = 32, HAS_SIZE = 64, HAS_ID = 256 };
enum { ENUM_NAME = 2, ENUM_ENTRIES = 4, ENUM_COUNT = 8, ENUM_SIZE = 16, ENUM_ID = 32 };
enum { IS_POINTER = 2, ARRAY_SHIFT = 4, ARRAY_MASK = 7, ARRAY_FIXED = 1 };
enum { OWN_TYPES = 1 << 24, STRING_FIRST = 75, STRING_REGISTERED = 80, STRING_LAST = 80 };
enum {
    SCHEMA_SLOT,
    ENUM_SLOT,
    MARK_SLOT,
    PUSH_SLOT,
    POP_SLOT,
    START_SLOT,
    END_SLOT,
    ENABLED_SLOT,
    SCOPE_SLOT = 12,
    PAYLOAD_SLOTS
};

/* What must be known of a schema when another one contains it, and to name its events. */
static struct known {
    _Atomic uint64_t id; /* written last */
    uint64_t size;
    uint32_t align, name;
    uint32_t epoch;
    uint32_t count;   /* of fields */
    bool has_strings; /* holds handles of registered strings, which are ours */
    struct nvtx_field *fields;
} known[SCHEMAS];
static _Atomic uint64_t ids_given;

static struct known *find(uint64_t id)
{
    for (uint64_t i = 0; id != 0 && i < SCHEMAS; i++) {
        struct known *k = &known[(id + i) % SCHEMAS];
        uint64_t here = atomic_load_explicit(&k->id, memory_order_acquire);
        if (here == id)
            return k;
        if (here == 0)
            return NULL;
    }
    return NULL;
}

/* Its place in the table, known or free; NULL: the table is full.  Under schema_lock. */
static struct known *place_of(uint64_t id)
{
    struct known *k = find(id);
    for (uint64_t i = 0; k == NULL && i < SCHEMAS; i++) {
        struct known *at = &known[(id + i) % SCHEMAS];
        k = atomic_load(&at->id) == 0 ? at : NULL;
    }
    return k;
}

static void remember(uint64_t id, const struct known *what)
{
    rt_lock(&rt.schema_lock);
    struct known *k = place_of(id);
    if (k != NULL) {
        k->size = what->size;
        k->align = what->align;
        k->name = what->name;
        k->has_strings = what->has_strings;
        k->epoch = rt.epoch;
        atomic_store_explicit(&k->id, id, memory_order_release);
    }
    rt_unlock(&rt.schema_lock);
}

uint32_t nvtx_schema_name(uint64_t schema)
{
    const struct known *k = find(schema);
    return k != NULL && k->epoch == rt.epoch ? k->name : 0;
}

bool nvtx_payloads_may_leave(const struct nvtx_payload *p, size_t n)
{
    for (size_t i = 0; p != NULL && i < n; i++) {
        const struct known *k = find(p[i].schema);
        if (p[i].schema == STRING_REGISTERED || (k != NULL && k->has_strings))
            return false;
    }
    return true;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* By NVTX's number of the type: how many bytes, and how they are to be read. */
static const struct {
    uint8_t bytes;
    char kind; /* i signed, u unsigned, f real, b upper half of a float */
} numbers[] = {[1] = {1, 'i'},  [2] = {1, 'u'},  [3] = {2, 'i'},  [4] = {2, 'u'},  [5] = {4, 'i'},
               [6] = {4, 'u'},  [7] = {8, 'i'},  [8] = {8, 'u'},  [9] = {8, 'i'},  [10] = {8, 'u'},
               [11] = {1, 'i'}, [12] = {1, 'u'}, [13] = {2, 'i'}, [14] = {2, 'u'}, [15] = {4, 'i'},
               [16] = {4, 'u'}, [17] = {8, 'i'}, [18] = {8, 'u'}, [19] = {4, 'f'}, [20] = {8, 'f'},
               [22] = {8, 'u'}, [23] = {8, 'u'}, [32] = {1, 'u'}, [43] = {4, 'f'}, [44] = {8, 'f'},
               [50] = {2, 'b'}};

size_t nvtx_number_size(uint64_t type)
{
    return type < sizeof numbers / sizeof *numbers ? numbers[type].bytes : 0;
}

static double real_of(const void *at, size_t bytes, char kind)
{
    float f;
    double d;
    if (kind == 'b') {
        uint16_t half;
        memcpy(&half, at, sizeof half);
        const uint32_t whole = (uint32_t)half << 16;
        memcpy(&f, &whole, sizeof f);
        return (double)f;
    }
    if (bytes == sizeof f) {
        memcpy(&f, at, sizeof f);
        return (double)f;
    }
    memcpy(&d, at, sizeof d);
    return d;
}

bool nvtx_number(uint64_t type, const void *at, uint64_t *bits, bool *real)
{
    size_t bytes = nvtx_number_size(type);
    if (bytes == 0)
        return false;
    char kind = numbers[type].kind;
    *real = kind == 'f' || kind == 'b';
    *bits = 0;
    if (*real) {
        double v = real_of(at, bytes, kind);
        memcpy(bits, &v, sizeof v);
        return true;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(bits, at, bytes);
#else
    memcpy((char *)bits + sizeof *bits - bytes, at, bytes);
#endif
    unsigned unused = 64 - 8 * (unsigned)bytes;
    if (kind == 'i')
        *bits = (uint64_t)((int64_t)(*bits << unused) >> unused);
    return true;
}

size_t nvtx_schema_fields(uint64_t schema, struct nvtx_field **fields, size_t *bytes)
{
    const struct known *k = find(schema);
    if (k == NULL || k->fields == NULL)
        return 0;
    *fields = k->fields;
    *bytes = k->size;
    return k->count;
}

/* ---- sizes -------------------------------------------------------------------------------- */

/* Size of one element and its alignment, by NVTX's numbers of types. */
static void measure(uint64_t type, uint64_t *size, uint32_t *align)
{
    static const uint8_t sizes[] = {
        [1] = 1,  [2] = 1,  [3] = 2,  [4] = 2,  [5] = 4,   [6] = 4,  [7] = 8,  [8] = 8,
        [9] = 8,  [10] = 8, [11] = 1, [12] = 1, [13] = 2,  [14] = 2, [15] = 4, [16] = 4,
        [17] = 8, [18] = 8, [19] = 4, [20] = 8, [21] = 16, [22] = 8, [23] = 8, [24] = 4,
        [25] = 1, [26] = 2, [27] = 4, [32] = 1, [42] = 2,  [43] = 4, [44] = 8, [45] = 16,
        [50] = 2, [52] = 4, [68] = 4, [69] = 4, [70] = 8,  [73] = 4, [74] = 8, [75] = 1,
        [76] = 1, [77] = 2, [78] = 4, [80] = 8, [100] = 8};
    const struct known *k = type >= OWN_TYPES ? find(type) : NULL;
    if (k != NULL) {
        *size = k->size;
        *align = k->align;
        return;
    }
    *size = type < sizeof sizes ? sizes[type] : 0;
    *align = *size > 0 ? (uint32_t)*size : 1;
}

/* A text that is no array of known length is a pointer in the payload. */
static void measure_entry(const struct entry *e, uint64_t *size, uint32_t *align)
{
    unsigned array = (unsigned)(e->flags >> ARRAY_SHIFT) & ARRAY_MASK;
    bool text = e->type >= STRING_FIRST && e->type <= STRING_LAST;
    if ((e->flags & IS_POINTER) != 0 || array > ARRAY_FIXED || (text && array == 0)) {
        *size = *align = 8;
        return;
    }
    measure(e->type, size, align);
    if (array == ARRAY_FIXED && __builtin_mul_overflow(*size, e->detail, size))
        *size = 0;
}

/* ---- registering ----------------------------------------------------------------------------- */

struct layout {
    struct mstx_schema head;
    struct mstx_schema_item items[ENTRIES_MAX];
};

static uint32_t name_of(const char *name)
{
    const struct mstx_text *e =
        name == NULL ? NULL : rt_text_intern(name, strnlen(name, NAME_BYTES_MAX));
    return e != NULL ? e->id : 0;
}

/* Far above those of a next tool, which are given out where it gives some. */
static uint64_t own_id(void)
{
    uint64_t first = atomic_load(&nvtx_has_next) ? UINT64_C(1) << 62 : UINT64_C(1) << 32;
    return first + atomic_fetch_add(&ids_given, 1);
}

typedef uint64_t register_fn(void *, const void *);

uint64_t nvtx_id_of(struct rt_domain *d, unsigned module, unsigned slot, const void *attr,
                    uint64_t chosen)
{
    intptr_t next = nvtx_next_slot(d, module, slot);
    uint64_t theirs =
        next != 0 ? NVTX_CALL(register_fn, next, nvtx_next_domain(d), attr) : UINT64_C(0);
    if (chosen != 0)
        return chosen;
    return theirs != 0 && theirs != UINT64_MAX ? theirs : own_id();
}

/* Offsets of all entries; the alignment of the whole. */
static uint32_t lay_out(struct layout *to, const struct entry *entries, size_t n)
{
    uint64_t end = 0, size;
    uint32_t align, most = 1;
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &entries[i];
        measure_entry(e, &size, &align);
        uint64_t at =
            e->offset != 0 || i == 0 ? e->offset : (end + align - 1) & ~(uint64_t)(align - 1);
        to->items[i] = (struct mstx_schema_item){.type = e->type,
                                                 .offset = at,
                                                 .array = e->detail,
                                                 .flags = (uint32_t)e->flags,
                                                 .name = name_of(e->name)};
        end = at + size;
        most = align > most ? align : most;
    }
    to->head.size = (end + most - 1) & ~(uint64_t)(most - 1);
    return most;
}

static void define(enum mstx_text_kind kind, void *domain, uint64_t id, const struct layout *l)
{
    const struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL || !rt_is_running())
        return;
    rt_text_define(kind, d->number, id, l, sizeof l->head + l->head.count * sizeof l->items[0]);
}

/* Entries that are numbers, for counters laid out by this schema.  A schema that is registered
 * again keeps those it had: they may be in use. */
static void remember_fields(uint64_t id, const struct layout *l, const struct entry *e)
{
    struct nvtx_field found[ENTRIES_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->head.count; i++) {
        bool plain = (e[i].flags & (IS_POINTER | ARRAY_MASK << ARRAY_SHIFT)) == 0;
        if (!plain || nvtx_number_size(e[i].type) == 0)
            continue;
        const char *name = e[i].name;
        found[n++] =
            (struct nvtx_field){e[i].type, l->items[i].offset,
                                name != NULL ? rt_keep(name, strnlen(name, NAME_BYTES_MAX)) : NULL};
    }
    rt_lock(&rt.schema_lock);
    struct known *k = find(id);
    if (n != 0 && k != NULL && k->fields == NULL) {
        k->fields = (struct nvtx_field *)(void *)rt_keep(found, n * sizeof found[0]);
        k->count = k->fields != NULL ? n : 0;
    }
    rt_unlock(&rt.schema_lock);
}

/* Here or in a schema inside. */
static bool has_strings(const struct entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct known *k = entries[i].type >= OWN_TYPES ? find(entries[i].type) : NULL;
        if (entries[i].type == STRING_REGISTERED || (k != NULL && k->has_strings))
            return true;
    }
    return false;
}

static uint64_t schema_register(void *domain, const struct attr *a)
{
    struct layout l = {0};
    if (a == NULL || (a->fields & HAS_ENTRIES) == 0 || a->entries == NULL || a->count > ENTRIES_MAX)
        return 0;
    uint64_t id = nvtx_id_of(rt_domain_of(domain), NVTX_MODULE_PAYLOAD, SCHEMA_SLOT, a,
                             (a->fields & HAS_ID) != 0 ? a->id : 0);
    l.head.type = (a->fields & HAS_TYPE) != 0 ? (uint32_t)a->type : 1;
    l.head.count = (a->fields & HAS_COUNT) != 0 ? (uint32_t)a->count : 0;
    l.head.name = (a->fields & HAS_NAME) != 0 ? name_of(a->name) : 0;
    uint32_t align = lay_out(&l, a->entries, l.head.count);
    if ((a->fields & HAS_SIZE) != 0 && a->static_size != 0)
        l.head.size = a->static_size;
    remember(id, &(struct known){.size = l.head.size,
                                 .align = align,
                                 .name = l.head.name,
                                 .has_strings = has_strings(a->entries, l.head.count)});
    remember_fields(id, &l, a->entries);
    define(MSTX_SCHEMA, domain, id, &l);
    return id;
}

static uint64_t enum_register(void *domain, const struct enum_attr *a)
{
    struct layout l = {0};
    if (a == NULL || (a->fields & ENUM_ENTRIES) == 0 || a->entries == NULL ||
        a->count > ENTRIES_MAX)
        return 0;
    uint64_t id = nvtx_id_of(rt_domain_of(domain), NVTX_MODULE_PAYLOAD, ENUM_SLOT, a,
                             (a->fields & ENUM_ID) != 0 ? a->id : 0);
    l.head.count = (a->fields & ENUM_COUNT) != 0 ? (uint32_t)a->count : 0;
    l.head.size = (a->fields & ENUM_SIZE) != 0 && a->size != 0 ? a->size : 4;
    l.head.name = (a->fields & ENUM_NAME) != 0 ? name_of(a->name) : 0;
    for (uint32_t i = 0; i < l.head.count; i++)
        l.items[i] = (struct mstx_schema_item){.type = a->entries[i].value,
                                               .flags = a->entries[i].is_flag != 0,
                                               .name = name_of(a->entries[i].name)};
    remember(id, &(struct known){
                     .size = l.head.size, .align = (uint32_t)l.head.size, .name = l.head.name});
    define(MSTX_ENUM, domain, id, &l);
    return id;
}

static uint64_t scope_register(void *domain, const void *attr)
{
    return nvtx_id_of(rt_domain_of(domain), NVTX_MODULE_PAYLOAD, SCOPE_SLOT, attr, 0);
}

/* ---- events with payloads ---------------------------------------------------------------------- */

struct event {
    struct rt_event e;
    struct rt_payload payloads[NVTX_PAYLOADS];
};

static void take(struct event *to, const struct nvtx_payload *p, size_t n, bool named)
{
    size_t kept = nvtx_payloads(p, n, to->payloads);
    to->e = (struct rt_event){.payloads = to->payloads, .npayloads = kept, .flags = MSTX_F_NVTX};
    if (named && kept > 0)
        to->e.name = nvtx_schema_name(to->payloads[0].schema);
}

/* What a next tool without payloads is told of such an event: that it is there. */
static const struct nvtx_attr bare = {.version = 3, .size = sizeof bare};

/* Its function for an event with these payloads; 0: it gets the event alone. */
static intptr_t next_with(const struct rt_domain *d, unsigned slot, const struct nvtx_payload *p,
                          size_t n)
{
    intptr_t fn = nvtx_next_slot(d, NVTX_MODULE_PAYLOAD, slot);
    return fn != 0 && nvtx_payloads_may_leave(p, n) ? fn : 0;
}

typedef void next_mark_fn(void *, const struct nvtx_payload *, size_t);
typedef int next_stack_fn(void *, const struct nvtx_payload *, size_t);
typedef uint64_t next_start_fn(void *, const struct nvtx_payload *, size_t);
typedef void next_end_fn(void *, uint64_t, const struct nvtx_payload *, size_t);

static void mark_payload(void *domain, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, MARK_SLOT, p, n);
    struct event e;
    if (nvtx_live(d)) {
        take(&e, p, n, true);
        rt_mark_event(d, &e.e);
    }
    if (next != 0)
        NVTX_CALL(next_mark_fn, next, nvtx_next_domain(d), p, n);
    else if (nvtx_tells_next(d))
        nvtx_next_mark(d, &bare);
}

static int push_payload(void *domain, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, PUSH_SLOT, p, n);
    struct event e;
    int depth = NVTX_NOT_TRACKED;
    if (nvtx_live(d)) {
        take(&e, p, n, true);
        depth = rt_push(d, &e.e);
    }
    if (next != 0)
        NVTX_CALL(next_stack_fn, next, nvtx_next_domain(d), p, n);
    else if (nvtx_tells_next(d))
        nvtx_next_push(d, &bare);
    return depth;
}

/* NCCL pushes with the plain call and pops with this one: it is the same stack. */
static int pop_payload(void *domain, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, POP_SLOT, p, n);
    struct event e;
    take(&e, p, n, false);
    int depth = d == NULL ? -1 : rt_pop(d, &e.e);
    if (next != 0)
        NVTX_CALL(next_stack_fn, next, nvtx_next_domain(d), p, n);
    else if (nvtx_tells_next(d))
        nvtx_next_pop(d);
    return depth < 0 && !nvtx_live(d) ? NVTX_NOT_TRACKED : depth;
}

static uint64_t start_payload(void *domain, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, START_SLOT, p, n);
    struct event e;
    uint32_t id = 0;
    if (nvtx_live(d)) {
        take(&e, p, n, true);
        id = rt_range_start_event(d, &e.e);
    }
    if (next != 0)
        return nvtx_next_keep(NVTX_CALL(next_start_fn, next, nvtx_next_domain(d), p, n), id);
    return nvtx_tells_next(d) ? nvtx_next_start(d, &bare, id) : id;
}

static void end_payload(void *domain, uint64_t id, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, END_SLOT, p, n);
    struct event e;
    take(&e, p, n, false);
    uint64_t theirs = d != NULL ? rt_range_end_event(d, id, &e.e) : 0;
    if (next != 0 && theirs != 0)
        NVTX_CALL(next_end_fn, next, nvtx_next_domain(d), theirs, p, n);
    else if (nvtx_tells_next(d))
        nvtx_next_end(d, theirs);
}

/* A program that asks stays silent otherwise: the next tool may want a domain that we leave out. */
static uint8_t domain_is_enabled(void *domain)
{
    typedef uint8_t enabled_fn(void *);
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = nvtx_next_slot(d, NVTX_MODULE_PAYLOAD, ENABLED_SLOT);
    if (nvtx_live(d) || next == 0)
        return nvtx_live(d) || nvtx_tells_next(d);
    return NVTX_CALL(enabled_fn, next, nvtx_next_domain(d));
}

/* ---- the entry point ------------------------------------------------------------------------------ */

static void fill(const struct nvtx_segment *s, const intptr_t *ours, size_t n)
{
    for (size_t i = 0; i < n && i < s->count; i++) {
        if (ours[i] != 0)
            __atomic_store_n(&s->slots[i], ours[i], __ATOMIC_RELEASE);
    }
}

static void fill_module(const struct nvtx_module *m, const struct nvtx_segment *s)
{
    static const intptr_t payload[PAYLOAD_SLOTS] = {
        [SCHEMA_SLOT] = (intptr_t)schema_register, [ENUM_SLOT] = (intptr_t)enum_register,
        [MARK_SLOT] = (intptr_t)mark_payload,      [PUSH_SLOT] = (intptr_t)push_payload,
        [POP_SLOT] = (intptr_t)pop_payload,        [START_SLOT] = (intptr_t)start_payload,
        [END_SLOT] = (intptr_t)end_payload,        [ENABLED_SLOT] = (intptr_t)domain_is_enabled,
        [SCOPE_SLOT] = (intptr_t)scope_register};
    bool old = m->compat < NVTX_COUNTERS_0102;
    if (m->id == NVTX_MODULE_PAYLOAD)
        fill(s, payload, PAYLOAD_SLOTS);
    else if (m->id == NVTX_MODULE_COUNTERS)
        fill(s, old ? nvtx_counter_slots_old : nvtx_counter_slots, NVTX_COUNTER_SLOTS);
    else if (m->id == NVTX_MODULE_MEMORY)
        fill(s, nvtx_memory_slots, NVTX_MEMORY_SLOTS);
}

/* Other modules are let through unfilled, which switches them off in the program.  A module has
 * one segment, whose number is not the same in all of them. */
API int InitializeInjectionNvtxExtension(struct nvtx_module *m);
int InitializeInjectionNvtxExtension(struct nvtx_module *m)
{
    if (m == NULL || m->struct_size < sizeof *m || rt.conf.no_nvtx || !rt_start(true))
        return 0;
    if (m->segments == 1 && m->segment != NULL && m->segment->slots != NULL) {
        nvtx_next_offer(m); /* before the first call can come */
        fill_module(m, m->segment);
    }
    return 1;
}
