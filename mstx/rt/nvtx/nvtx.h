/* SPDX-License-Identifier: MIT
 *
 * nvtx: declarations shared by the files of this folder.  The structures are those of the injection
 * protocol, version 3, declared here by their layout.
 */
#ifndef MSTX_RT_NVTX_NVTX_H
#define MSTX_RT_NVTX_NVTX_H

#include "mstx/rt/mark.h"

struct nvtx_attr { /* 48 bytes; callers may pass fewer */
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

/* Tells whether the domain is recorded. */
static inline bool nvtx_live(const struct rt_domain *d)
{
    return d != NULL && (atomic_load_explicit(&d->live, memory_order_relaxed) & RT_RECORD) != 0;
}
/* Copies a caller's structure, of which only `size` bytes exist; a member that is not complete
 * stays zero. */
static inline void nvtx_copy_attr(struct nvtx_attr *to, const struct nvtx_attr *from)
{
    size_t size = from->size < sizeof *to ? from->size : sizeof *to;
    memcpy(to, from, size);
    if (size < offsetof(struct nvtx_attr, message_type))
        to->payload_type = MSTX_PAYLOAD_NONE;
    if (size < sizeof *to)
        to->message_type = 0;
}
/* Returns the id of a text that mstx itself may refuse; NULL has none. */
uint32_t nvtx_text(const char *text);
/* Registers a string and returns its handle; never NULL. */
void *nvtx_text_register(const char *text);
/* Converts the program's array of payloads; returns how many fit. */
size_t nvtx_payloads(const struct nvtx_payload *from, size_t n,
                     struct rt_payload to[NVTX_PAYLOADS]);
/* Converts a wide string to UTF-8, NUL-terminated, cut at cap. */
const char *nvtx_narrow(const wchar_t *wide, char *to, size_t cap);
struct nvtx_field {
    uint64_t type, offset;
    const char *name; /* never freed; NULL: none */
};
/* Facts about a schema for a schema that contains it, and for the names of its events. */
struct nvtx_schema {
    uint64_t size;
    uint32_t align, name;
    bool has_strings; /* contains handles of registered strings, which are ours */
};
void nvtx_schema_add(uint64_t id, const struct nvtx_schema *what);
/* Sets the numeric fields of a schema, unless it has some, which may be in use. */
void nvtx_schema_add_fields(uint64_t id, const struct nvtx_field *found, uint32_t n);
/* Tells whether a value of this type contains handles of strings that were registered here. */
bool nvtx_type_has_strings(uint64_t type);
/* Returns the size of one element and its alignment, for a type of NVTX. */
void nvtx_type_measure(uint64_t type, uint64_t *size, uint32_t *align);
/* Returns the text id of the name of events with this schema, 0: none. */
uint32_t nvtx_schema_name(uint64_t schema);

/* Return the text id of a message in any of its forms (0: none), and its text, maybe in buf (NULL:
 * none). */
uint32_t nvtx_message(int32_t type, const void *message);
const char *nvtx_message_text(int32_t type, const void *message, char *buf, size_t cap);

/* ---- numbers in payloads, by NVTX's types ------------------------------------------------ */

/* Returns the size of a number of that type, 0: the type is not numeric. */
size_t nvtx_number_size(uint64_t type);
/* Converts a number to the bits of an int64_t or, with real, of a double; false: the type is not
 * numeric. */
bool nvtx_number(uint64_t type, const void *at, uint64_t *bits, bool *real);
/* Returns the numeric fields of a registered schema, and the size of its payloads. */
size_t nvtx_schema_fields(uint64_t schema, struct nvtx_field **fields, size_t *bytes);
/* Returns the id of an object registered through that slot: the program's choice, else the id of
 * the next tool, which is called in any case, else one of ours, above those of programs. */
uint64_t nvtx_id_of(struct rt_domain *d, unsigned module, unsigned slot, const void *attr,
                    uint64_t chosen);

/* ---- functions by slot --------------------------------------------------------------------- */

typedef void (*nvtx_fn)(void);
typedef nvtx_fn **nvtx_table;
enum { NVTX_SYNC_SLOTS = 7, NVTX_MEMORY_SLOTS = 9, NVTX_COUNTER_SLOTS = 6 };
extern const intptr_t nvtx_memory_slots[NVTX_MEMORY_SLOTS];
extern const intptr_t nvtx_counter_slots[NVTX_COUNTER_SLOTS];
extern const intptr_t nvtx_counter_slots_old[NVTX_COUNTER_SLOTS];

/* ---- the next tool ------------------------------------------------------------------------- */

/* The next tool receives the events of every domain, recorded or not. It has its own domains, made
 * with the names of ours. */
extern _Atomic bool nvtx_has_next;
static inline bool nvtx_passes_on(const struct rt_domain *d)
{
    return RT_UNLIKELY(atomic_load_explicit(&nvtx_has_next, memory_order_relaxed)) && d != NULL;
}
typedef int nvtx_init_fn(const void *(*get_export_table)(uint32_t id));
/* Finds the next tool. ours: our own entry point, which is skipped. */
void nvtx_next_find(nvtx_init_fn *ours);
void nvtx_next_mark(struct rt_domain *d, const struct nvtx_attr *a);
/* Passes a start on. id: of our range, 0: not recorded. Returns the id for the program. */
uint64_t nvtx_next_start(struct rt_domain *d, const struct nvtx_attr *a, uint32_t id);
void nvtx_next_end(struct rt_domain *d, uint64_t id);
void nvtx_next_push(struct rt_domain *d, const struct nvtx_attr *a);
void nvtx_next_pop(struct rt_domain *d);
void nvtx_next_name(struct rt_domain *d, enum mstx_text_kind kind, uint64_t key, const char *name);
/* Modules that name handles; their slots come in pairs, the short form first. */
enum { NVTX_CUDA = 2, NVTX_OPENCL, NVTX_CUDART };
/* Returns the function of the next tool in a slot; NULL: none. */
nvtx_fn nvtx_next_namer(int module, int slot);
void *nvtx_next_resource(struct rt_domain *d, const void *attr);
void nvtx_next_resource_end(void *resource);
void nvtx_next_domain_end(struct rt_domain *d);
/* Returns the next tool's handle of a domain; NULL: the default one. */
void *nvtx_next_domain(struct rt_domain *d);
/* Keeps the id of the next tool's range with ours; returns the id for the program. */
uint64_t nvtx_next_keep(uint64_t theirs, uint32_t id);

/* Extensions of NVTX: a module is offered to the next tool as a program offers it to us, and each
 * call is passed on to the function in its slot. The program gets the ids and handles that the next
 * tool returns, so later calls are passed on unchanged. */
enum { NVTX_MODULE_MEMORY = 1, NVTX_MODULE_PAYLOAD = 2, NVTX_MODULE_COUNTERS = 4 };
enum { NVTX_COUNTERS_0102 = 0x0102 }; /* from this version on batches are structures */
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
/* Returns the next tool's function in a slot; 0: no next tool, or the slot is empty. */
intptr_t nvtx_next_slot_of(unsigned module, unsigned slot);
static inline intptr_t nvtx_next_slot(const struct rt_domain *d, unsigned module, unsigned slot)
{
    return nvtx_passes_on(d) ? nvtx_next_slot_of(module, slot) : 0;
}
bool nvtx_next_counts_by_structure(void);
#define NVTX_CALL(type, fn, ...) ((type *)(fn))(__VA_ARGS__)
/* Tells whether all of these payloads may be passed on: not those with handles of strings
 * registered here. */
bool nvtx_payloads_may_leave(const struct nvtx_payload *p, size_t n);

#endif
