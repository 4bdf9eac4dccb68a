/* SPDX-License-Identifier: MIT
 *
 * nvtx: what the two NVTX files share.  The structures are those of the injection
 * protocol, version 3, declared here by their layout.
 */
#ifndef MSTX_RT_NVTX_NVTX_H
#define MSTX_RT_NVTX_NVTX_H

#include "mstx/rt/mark.h"

struct nvtx_attr { /* 48 bytes; callers may give fewer */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, payload_count;
    union {
        uint64_t u64;
        const void *extended;
    } payload;
    int32_t message_type;
    int32_t pad;
    const void *message;
};
static_assert(sizeof(struct nvtx_attr) == 48, "attr");
static_assert(offsetof(struct nvtx_attr, payload) == 24, "attr");
static_assert(offsetof(struct nvtx_attr, message) == 40, "attr");

struct nvtx_payload {
    uint64_t schema;
    size_t size; /* SIZE_MAX: up to a NUL */
    const void *data;
};

enum { NVTX_COLOR_ARGB = 1, NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_WIDE, NVTX_MESSAGE_REGISTERED };
enum { NVTX_NOT_TRACKED = -2, NVTX_PAYLOADS = 8 };
#define NVTX_PAYLOAD_EXTENDED ((int32_t)0xDFBD0009)

/* Is the domain recorded? */
static inline bool nvtx_live(const struct rt_domain *d)
{
    return d != NULL && (atomic_load_explicit(&d->live, memory_order_relaxed) & RT_RECORD) != 0;
}
/* A caller's structure, of which only `size` bytes are there: what is not whole is not set. */
static inline void nvtx_copy_attr(struct nvtx_attr *to, const struct nvtx_attr *from)
{
    size_t size = from->size < sizeof *to ? from->size : sizeof *to;
    memcpy(to, from, size);
    if (size < offsetof(struct nvtx_attr, message_type))
        to->payload_type = MSTX_PAYLOAD_NONE;
    if (size < sizeof *to)
        to->message_type = 0;
}
/* Id of a text of any kind; NULL has none. */
uint32_t nvtx_text(const char *text);
/* The handle of a string that a program registers; never NULL. */
void *nvtx_text_register(const char *text);
/* The program's array as ours; how many there are room for. */
size_t nvtx_payloads(const struct nvtx_payload *from, size_t n,
                     struct rt_payload to[NVTX_PAYLOADS]);
/* UTF-8 of a wide string, NUL-terminated, cut at cap. */
const char *nvtx_narrow(const wchar_t *wide, char *to, size_t cap);
struct nvtx_field {
    uint64_t type, offset;
    const char *name; /* kept; NULL: none */
};
/* What must be known of a schema when another one contains it, and to name its events. */
struct nvtx_schema {
    uint64_t size;
    uint32_t align, name;
    bool has_strings; /* holds handles of registered strings, which are ours */
};
void nvtx_schema_add(uint64_t id, const struct nvtx_schema *what);
/* Its numbers, unless it has some: they may be in use. */
void nvtx_schema_add_fields(uint64_t id, const struct nvtx_field *found, uint32_t n);
/* Does what has this type hold handles of strings that were registered here? */
bool nvtx_type_has_strings(uint64_t type);
/* Size of one element and its alignment, by NVTX's numbers of types. */
void nvtx_type_measure(uint64_t type, uint64_t *size, uint32_t *align);
/* Text that names events which carry this schema, 0: none. */
uint32_t nvtx_schema_name(uint64_t schema);

/* A message in any of the forms it may come in: its text id, 0: none; its text, maybe in buf,
 * NULL: none. */
uint32_t nvtx_message(int32_t type, const void *message);
const char *nvtx_message_text(int32_t type, const void *message, char *buf, size_t cap);

/* ---- numbers in payloads, by NVTX's types ------------------------------------------------ */

/* Bytes of a number of that type, 0: it is none. */
size_t nvtx_number_size(uint64_t type);
/* As the bits of an int64_t or, real, of a double; false: it is no number. */
bool nvtx_number(uint64_t type, const void *at, uint64_t *bits, bool *real);
/* The numbers of a schema that was registered, and how long what it describes is. */
size_t nvtx_schema_fields(uint64_t schema, struct nvtx_field **fields, size_t *bytes);
/* The id of what is registered by that slot: the program's choice, else the next tool's, which is
 * told in any case, else one of ours, above those of programs. */
uint64_t nvtx_id_of(struct rt_domain *d, unsigned module, unsigned slot, const void *attr,
                    uint64_t chosen);

/* ---- functions by slot --------------------------------------------------------------------- */

typedef void (*nvtx_fn)(void);
typedef nvtx_fn **nvtx_table;
enum { NVTX_SYNC_SLOTS = 7, NVTX_MEMORY_SLOTS = 9, NVTX_COUNTER_SLOTS = 6 };
extern const nvtx_fn nvtx_sync_slots[NVTX_SYNC_SLOTS];
extern const intptr_t nvtx_memory_slots[NVTX_MEMORY_SLOTS];
extern const intptr_t nvtx_counter_slots[NVTX_COUNTER_SLOTS];
extern const intptr_t nvtx_counter_slots_old[NVTX_COUNTER_SLOTS];

/* ---- the next tool ------------------------------------------------------------------------- */

/* It hears what happens in every domain, recorded or not.  Its domains are its own, made by the
 * names of ours. */
extern _Atomic bool nvtx_has_next;
static inline bool nvtx_tells_next(const struct rt_domain *d)
{
    return RT_UNLIKELY(atomic_load_explicit(&nvtx_has_next, memory_order_relaxed)) && d != NULL;
}
typedef int nvtx_init_fn(const void *(*get_export_table)(uint32_t id));
/* ours: our own entry point, which is no next tool. */
void nvtx_next_find(nvtx_init_fn *ours);
void nvtx_next_mark(struct rt_domain *d, const struct nvtx_attr *a);
/* id: of the range here, 0: it is not recorded; the id that the program gets. */
uint64_t nvtx_next_start(struct rt_domain *d, const struct nvtx_attr *a, uint32_t id);
void nvtx_next_end(struct rt_domain *d, uint64_t id);
void nvtx_next_push(struct rt_domain *d, const struct nvtx_attr *a);
void nvtx_next_pop(struct rt_domain *d);
void nvtx_next_name(struct rt_domain *d, enum mstx_text_kind kind, uint64_t key, const char *name);
/* Modules that give handles names; their slots come in pairs, the short form first. */
enum { NVTX_CUDA = 2, NVTX_OPENCL, NVTX_CUDART };
/* What the next tool has in a slot; NULL: nothing, or there is none. */
nvtx_fn nvtx_next_namer(int module, int slot);
void *nvtx_next_resource(struct rt_domain *d, const void *attr);
void nvtx_next_resource_end(void *resource);
void nvtx_next_domain_end(struct rt_domain *d);
/* As it knows a domain; NULL: the default one. */
void *nvtx_next_domain(struct rt_domain *d);
/* Keeps the id it gave a range with ours; the id that the program gets. */
uint64_t nvtx_next_keep(uint64_t theirs, uint32_t id);

/* Extensions of NVTX: a module is offered to the next tool as a program offers it to us, and is
 * passed on by the function in a slot.  Ids and handles that it gives are those the program gets,
 * so what the program says later is passed on as it is. */
enum { NVTX_MODULE_MEMORY = 1, NVTX_MODULE_PAYLOAD = 2, NVTX_MODULE_COUNTERS = 4 };
enum { NVTX_COUNTERS_0102 = 0x0102 }; /* from here on batches are structures */
struct nvtx_segment {
    size_t id, count;
    intptr_t *slots;
};
struct nvtx_module {
    uint16_t nvtx_version, struct_size, id, compat;
    size_t segments;
    struct nvtx_segment *segment;
    const void *get_export, *info;
};
static_assert(sizeof(struct nvtx_segment) == 24 && sizeof(struct nvtx_module) == 40, "extension");
void nvtx_next_offer(const struct nvtx_module *m);
/* 0: there is no next tool, or it does not want to hear of this. */
intptr_t nvtx_next_slot_of(unsigned module, unsigned slot);
static inline intptr_t nvtx_next_slot(const struct rt_domain *d, unsigned module, unsigned slot)
{
    return nvtx_tells_next(d) ? nvtx_next_slot_of(module, slot) : 0;
}
bool nvtx_next_counts_by_structure(void);
#define NVTX_CALL(type, fn, ...) ((type *)(fn))(__VA_ARGS__)
/* May all of these payloads leave? Not with handles of strings that were registered here. */
bool nvtx_payloads_may_leave(const struct nvtx_payload *p, size_t n);

#endif
