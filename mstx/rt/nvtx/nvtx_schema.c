/* SPDX-License-Identifier: MIT
 *
 * nvtx_schema: the layouts of payloads that were registered, and the numbers that NVTX's types name.
 */
#include "mstx/rt/nvtx/nvtx.h"

enum { SCHEMAS = 2048, OWN_TYPES = 1 << 24, STRING_REGISTERED = 80 };

/* Facts about a schema for a schema that contains it, and for the names of its events. */
static struct known {
    _Atomic uint64_t id; /* written last */
    uint64_t size;
    uint32_t align, name;
    uint32_t epoch;
    uint32_t count;   /* of fields */
    bool has_strings; /* contains handles of registered strings, which are ours */
    struct nvtx_field *fields;
} known[SCHEMAS];

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

/* Returns the entry of a schema, existing or free; NULL: the table is full. Caller holds
 * schema_lock. */
static struct known *place_of(uint64_t id)
{
    ms_assert(atomic_load(&rt.schema_lock.held) == 1);
    struct known *k = find(id);
    for (uint64_t i = 0; k == NULL && i < SCHEMAS; i++) {
        struct known *at = &known[(id + i) % SCHEMAS];
        k = atomic_load(&at->id) == 0 ? at : NULL;
    }
    return k;
}

void nvtx_schema_add(uint64_t id, const struct nvtx_schema *what)
{
    ms_assert(id != 0);
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

bool nvtx_type_has_strings(uint64_t type)
{
    const struct known *k = find(type);
    return type == STRING_REGISTERED || (k != NULL && k->has_strings);
}

bool nvtx_payloads_may_leave(const struct nvtx_payload *p, size_t n)
{
    for (size_t i = 0; p != NULL && i < n; i++) {
        if (nvtx_type_has_strings(p[i].schema))
            return false;
    }
    return true;
}

void nvtx_schema_add_fields(uint64_t id, const struct nvtx_field *found, uint32_t n)
{
    rt_lock(&rt.schema_lock);
    struct known *k = find(id);
    if (n != 0 && k != NULL && k->fields == NULL) {
        k->fields = (struct nvtx_field *)(void *)rt_keep(found, n * sizeof *found);
        k->count = k->fields != NULL ? n : 0;
    }
    rt_unlock(&rt.schema_lock);
}

/* ---- numeric types -------------------------------------------------------------------------- */

/* Size and encoding of a type, by NVTX's number of the type. */
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

void nvtx_type_measure(uint64_t type, uint64_t *size, uint32_t *align)
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

/* ---- payloads ------------------------------------------------------------------------------- */

size_t nvtx_payloads(const struct nvtx_payload *from, size_t n, struct rt_payload to[NVTX_PAYLOADS])
{
    size_t kept = 0;
    for (size_t i = 0; from != NULL && i < n && kept < NVTX_PAYLOADS; i++) {
        if (from[i].data == NULL)
            continue;
        size_t size = from[i].size == SIZE_MAX ? strlen(from[i].data) : from[i].size;
        to[kept++] = (struct rt_payload){from[i].schema, size, from[i].data};
    }
    return kept;
}
