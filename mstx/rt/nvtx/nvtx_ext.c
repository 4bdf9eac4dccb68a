/* SPDX-License-Identifier: MIT
 *
 * nvtx_ext: the extensions of NVTX, and the extension for payloads, through which NCCL reports
 * sizes, roots and communicators.  A layout ("schema") is registered once and written to strings.seg with its
 * offsets computed; an event carries the bytes unchanged.  Ids that a program chooses are below
 * 2^32; ids that we choose are above.
 */
#include "mstx/rt/nvtx/nvtx.h"

#include <string.h>

#include "mstx/rt/recorder.h"

#define API __attribute__((visibility("default")))

enum { ENTRIES_MAX = 256, NAME_BYTES_MAX = 256 };

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

/* Bits of attr.fields and of enum_attr.fields: members of the structure that are set. */
enum { HAS_NAME = 2, HAS_TYPE = 4, HAS_ENTRIES = 16, HAS_COUNT = 32, HAS_SIZE = 64, HAS_ID = 256 };
enum { ENUM_NAME = 2, ENUM_ENTRIES = 4, ENUM_COUNT = 8, ENUM_SIZE = 16, ENUM_ID = 32 };
enum { IS_POINTER = 2, ARRAY_SHIFT = 4, ARRAY_MASK = 7, ARRAY_FIXED = 1 };
enum { STRING_FIRST = 75, STRING_LAST = 80 };
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

/* ---- sizes -------------------------------------------------------------------------------- */

/* Computes the size and alignment of an entry. A text that is not an array of known length is a
 * pointer in the payload. */
static void measure_entry(const struct entry *e, uint64_t *size, uint32_t *align)
{
    unsigned array = (unsigned)(e->flags >> ARRAY_SHIFT) & ARRAY_MASK;
    bool text = e->type >= STRING_FIRST && e->type <= STRING_LAST;
    if ((e->flags & IS_POINTER) != 0 || array > ARRAY_FIXED || (text && array == 0)) {
        *size = *align = 8;
        return;
    }
    nvtx_type_measure(e->type, size, align);
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

/* Computes the offsets of all entries; returns the alignment of the whole. */
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

/* Keeps the numeric entries, for counters laid out by this schema. A schema that is registered
 * again keeps its old ones, which may be in use. */
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
    nvtx_schema_add_fields(id, found, n);
}

/* Tells whether the entries, or a schema within, have handles of registered strings. */
static bool has_strings(const struct entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (nvtx_type_has_strings(entries[i].type))
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
    nvtx_schema_add(id,
                    &(struct nvtx_schema){.size = l.head.size,
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
    nvtx_schema_add(id, &(struct nvtx_schema){.size = l.head.size,
                                              .align = (uint32_t)l.head.size,
                                              .name = l.head.name});
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

static void fill_event(struct event *to, const struct nvtx_payload *p, size_t n, bool named)
{
    size_t kept = nvtx_payloads(p, n, to->payloads);
    to->e = (struct rt_event){.payloads = to->payloads, .npayloads = kept, .flags = MSTX_F_NVTX};
    if (named && kept > 0)
        to->e.name = nvtx_schema_name(to->payloads[0].schema);
}

/* The event that a next tool without payloads receives in place of one with payloads. */
static const struct nvtx_attr bare = {.version = 3, .size = sizeof bare};

/* Returns the next tool's function for an event with these payloads; 0: it gets the event without
 * payloads. */
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
        fill_event(&e, p, n, true);
        rt_mark_event(d, &e.e);
    }
    if (next != 0)
        NVTX_CALL(next_mark_fn, next, nvtx_next_domain(d), p, n);
    else if (nvtx_passes_on(d))
        nvtx_next_mark(d, &bare);
}

static int push_payload(void *domain, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, PUSH_SLOT, p, n);
    struct event e;
    int depth = NVTX_NOT_TRACKED;
    if (nvtx_live(d)) {
        fill_event(&e, p, n, true);
        depth = rt_push(d, &e.e);
    }
    if (next != 0)
        NVTX_CALL(next_stack_fn, next, nvtx_next_domain(d), p, n);
    else if (nvtx_passes_on(d))
        nvtx_next_push(d, &bare);
    return depth;
}

/* Pops a range with payloads. NCCL pushes by the plain call and pops by this one, so both use one
 * stack. */
static int pop_payload(void *domain, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, POP_SLOT, p, n);
    struct event e;
    fill_event(&e, p, n, false);
    int depth = d == NULL ? -1 : rt_pop(d, &e.e);
    if (next != 0)
        NVTX_CALL(next_stack_fn, next, nvtx_next_domain(d), p, n);
    else if (nvtx_passes_on(d))
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
        fill_event(&e, p, n, true);
        id = rt_range_start_event(d, &e.e);
    }
    if (next != 0)
        return nvtx_next_keep(NVTX_CALL(next_start_fn, next, nvtx_next_domain(d), p, n), id);
    return nvtx_passes_on(d) ? nvtx_next_start(d, &bare, id) : id;
}

static void end_payload(void *domain, uint64_t id, const struct nvtx_payload *p, size_t n)
{
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = next_with(d, END_SLOT, p, n);
    struct event e;
    fill_event(&e, p, n, false);
    uint64_t theirs = d != NULL ? rt_range_end_event(d, id, &e.e) : 0;
    if (next != 0 && theirs != 0)
        NVTX_CALL(next_end_fn, next, nvtx_next_domain(d), theirs, p, n);
    else if (nvtx_passes_on(d))
        nvtx_next_end(d, theirs);
}

/* Tells whether the program should emit the events of a domain: a program that gets a no emits
 * nothing, so the answer is yes also when only the next tool wants the domain. */
static uint8_t domain_is_enabled(void *domain)
{
    typedef uint8_t enabled_fn(void *);
    struct rt_domain *d = rt_domain_of(domain);
    intptr_t next = nvtx_next_slot(d, NVTX_MODULE_PAYLOAD, ENABLED_SLOT);
    if (nvtx_live(d) || next == 0)
        return nvtx_live(d) || nvtx_passes_on(d);
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

/* Entry point of extensions. Other modules are accepted without filling their slots, which switches
 * them off in the program. A module has one segment; its number differs between modules. */
API int InitializeInjectionNvtxExtension(struct nvtx_module *m);
int InitializeInjectionNvtxExtension(struct nvtx_module *m)
{
    if (m == NULL || m->struct_size < sizeof *m || rt.conf.no_nvtx || !rt_recorder_start(true))
        return 0;
    if (m->segments == 1 && m->segment != NULL && m->segment->slots != NULL) {
        nvtx_next_offer(m); /* before the first call can come */
        fill_module(m, m->segment);
    }
    return 1;
}
