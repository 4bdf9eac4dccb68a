/* SPDX-License-Identifier: MIT
 *
 * rt_nvtx: what the two NVTX files share.  The structures are those of the injection
 * protocol, version 3, declared here by their layout.
 */
#ifndef MSTX_RT_NVTX_H
#define MSTX_RT_NVTX_H

#include "mstx/rt.h"

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
/* Id of a text of any kind; NULL has none. */
uint32_t nvtx_text(const char *text);
/* The program's array as ours; how many there are room for. */
size_t nvtx_payloads(const struct nvtx_payload *from, size_t n,
                     struct rt_payload to[NVTX_PAYLOADS]);
/* UTF-8 of a wide string, NUL-terminated, cut at cap. */
const char *nvtx_narrow(const wchar_t *wide, char *to, size_t cap);
/* Text that names events which carry this schema, 0: none. */
uint32_t nvtx_schema_name(uint64_t schema);

#endif
