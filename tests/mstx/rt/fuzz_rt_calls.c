/* SPDX-License-Identifier: MIT
 *
 * Any calls of a program to the recorder in its process: tables of headers, domains and filters,
 * mstx and NVTX events, schemas, payloads, counters, memory, locks, the environment.  An input is
 * a list of calls.  What a call hands over has the size it says and not a byte more, so that a
 * sanitizer sees what is read behind it.
 */
#define MSTX_NO_IMPL
#include "mstx/ms_tools_ext.h"
#include "mstx/rt/domain.h"
#include "mstx/rt/recorder.h"

#include <string.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));
int InitializeInjectionNvtxExtension(void *module);
int InitInjectionMstx(mstxGetModuleFuncTableFunc get_table);

enum { CALLS_MAX = 64, KEEP = 8, STATIC_ID = 1 << 24 };

/* ---- input ------------------------------------------------------------------------------ */

struct input {
    const uint8_t *p;
    size_t n;
};

static uint64_t number(struct input *in, size_t bytes)
{
    uint64_t v = 0;
    bytes = bytes < in->n ? bytes : in->n;
    memcpy(&v, in->p, bytes);
    in->p += bytes;
    in->n -= bytes;
    return v;
}

static void *bytes_of(struct input *in, size_t n)
{
    uint8_t *p = malloc(n > 0 ? n : 1);
    assert(p != NULL);
    memset(p, 0, n);
    size_t there = n < in->n ? n : in->n;
    memcpy(p, in->p, there);
    in->p += there;
    in->n -= there;
    return p;
}

/* NULL now and then. */
static char *text_of(struct input *in)
{
    size_t n = number(in, 1) & 0x3f;
    if (n == 0x3f)
        return NULL;
    char *p = bytes_of(in, n + 1);
    p[n] = '\0';
    return p;
}

static wchar_t *wide_of(struct input *in)
{
    size_t n = number(in, 1) & 0x1f;
    wchar_t *p = bytes_of(in, (n + 1) * sizeof *p);
    p[n] = L'\0';
    return p;
}

/* ---- tables ------------------------------------------------------------------------------- */

typedef void (*fn)(void);
static fn nvtx_fn[7][16];
static intptr_t ext[5][64];
static void *domains[KEEP], *strings[KEEP], *locks[KEEP], *heaps[KEEP];
static uint64_t ranges[KEEP], counters[KEEP];

static int nvtx_table(int module, fn ***table, unsigned *size)
{
    static fn *slots[7][17];
    for (int i = 1; i < 16; i++)
        slots[module][i] = &nvtx_fn[module][i];
    *table = slots[module];
    *size = 16;
    return 1;
}

static const void *nvtx_export(uint32_t id)
{
    static const struct {
        size_t size;
        int (*get)(int, fn ***, unsigned *);
    } callbacks = {16, nvtx_table};
    return id == 1 ? &callbacks : NULL;
}

struct segment {
    size_t id, count;
    intptr_t *slots;
};
struct module {
    uint16_t version, size, id, compat;
    size_t segments;
    struct segment *segment;
    const void *get, *info;
};

static void extend(uint16_t id, uint16_t compat)
{
    struct segment s = {0, 63, ext[id]};
    struct module m = {3, sizeof m, id, compat, 1, &s, NULL, NULL};
    assert(InitializeInjectionNvtxExtension(&m) == 1);
}

static char out[64];
static void remove_out(void)
{
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", out);
    if (system(cmd) != 0)
        perror(out);
}

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, sizeof out, "%.30s/msprobe-fuzz-rt-%d", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    snprintf(rt.conf.out, sizeof rt.conf.out, "%s", out);
    rt.conf.quiet = 2;
    rt.conf.flight_s = 0.01;
    rt.conf.segment_bytes = 32 << 10;
    rt.conf.max_bytes = 64 << 20;
    atomic_store(&rt.recording, 1);
    rt_domain_refresh();
    assert(InitializeInjectionNvtx2(nvtx_export) == 1);
    extend(1, 0x0102);
    extend(2, 0x0103);
    extend(4, 0x0102);
    atexit(remove_out);
}

#define NVTX(module, slot, type) ((type)nvtx_fn[module][slot])
#define EXT(module, slot, type)  ((type)ext[module][slot])
#define PICK(array, in)          (array)[number(in, 1) % KEEP]

/* A header's table of some size; some slots are missing. */
static unsigned table_size[4];
static uint64_t table_holes;
static int header_table(mstxFuncModule module, mstxFuncTable *table, unsigned *size)
{
    static mstxFuncPointer fns[4][64];
    static mstxFuncPointer **all[4];
    if (module < 1 || module > 3 || table_size[module] == 0)
        return MSTX_FAIL;
    free(all[module]);
    mstxFuncPointer **slots = calloc(table_size[module] + 1, sizeof *slots);
    assert(slots != NULL);
    all[module] = slots;
    for (unsigned i = 1; i < table_size[module]; i++)
        slots[i] = (table_holes >> i & 1) != 0 ? NULL : &fns[module][i];
    *table = slots;
    *size = table_size[module];
    return MSTX_SUCCESS;
}

/* ---- calls --------------------------------------------------------------------------------- */

static void call_header(struct input *in)
{
    for (int i = 1; i < 4; i++)
        table_size[i] = number(in, 1) % 16;
    table_holes = number(in, 2);
    InitInjectionMstx(header_table);
}

static void call_domain(struct input *in)
{
    char *name = text_of(in);
    uint64_t how = number(in, 1);
    void **d = &PICK(domains, in);
    if (how % 4 == 0)
        mstxDomainDestroy(*d);
    else if (how % 4 == 1)
        *d = NVTX(5, 12, void *(*)(const char *))(name);
    else
        *d = mstxDomainCreateA(name);
    free(name);
}

static void call_filter(struct input *in)
{
    char *include = text_of(in), *exclude = text_of(in);
    rt_domain_filter(include, exclude);
    if (number(in, 1) % 2 == 0)
        rt_domain_filter("", "");
    free(include);
    free(exclude);
}

static void call_environment(struct input *in)
{
    static const char *const names[] = {"MSTX_OUT",     "MSTX_MAX_SIZE", "MSTX_FLIGHT",
                                        "MSTX_SEGMENT", "RANK",          "WORLD_SIZE",
                                        "MSTX_QUIET",   "MSTX_POLICY",   "PMI_RANK"};
    static struct rt_config c;
    const char *name = names[number(in, 1) % (sizeof names / sizeof *names)];
    char *value = text_of(in);
    if (value != NULL)
        setenv(name, value, 1);
    rt_read_env(&c);
    assert(c.flight_s >= 0 && c.rank >= -1 && c.segment_bytes >= 2 * MSTX_SEG_HEADER);
    unsetenv(name);
    free(value);
}

static void call_mark(struct input *in)
{
    char *text = text_of(in);
    void *stream = (void *)(uintptr_t)number(in, 8);
    uint64_t *range = &PICK(ranges, in);
    switch (number(in, 1) % 4) {
    case 0:
        mstxDomainMarkA(PICK(domains, in), text, stream);
        break;
    case 1:
        *range = mstxDomainRangeStartA(PICK(domains, in), text, stream);
        break;
    case 2:
        mstxDomainRangeEnd(PICK(domains, in), *range);
        break;
    default:
        mstxRangeEnd(number(in, 8));
    }
    free(text);
}

struct attr {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, payload_count;
    const void *payload;
    int32_t message_type, pad;
    const void *message;
};
struct payload {
    uint64_t schema;
    size_t size;
    const void *data;
};

static uint64_t schema_id(struct input *in)
{
    uint64_t v = number(in, 1);
    return v < 128 ? v : STATIC_ID + v % KEEP;
}

static void call_event(struct input *in)
{
    struct attr *a = bytes_of(in, 16);
    char *text = text_of(in);
    wchar_t *wide = wide_of(in);
    size_t n = number(in, 2) % 9000;
    void *data = bytes_of(in, n);
    const struct payload p = {schema_id(in), n, data};
    a = realloc(a, sizeof *a);
    memset((char *)a + 16, 0, sizeof *a - 16);
    a->message_type = (int32_t)(number(in, 1) % 5);
    a->message = a->message_type == 1   ? (const void *)text
                 : a->message_type == 2 ? (const void *)wide
                                        : PICK(strings, in);
    a->payload_type = (int32_t)(number(in, 1) % 9);
    a->payload = (const void *)(uintptr_t)number(in, 4);
    if (a->payload_type == 8) {
        a->payload_type = (int32_t)0xDFBD0009;
        a->payload_count = 1;
        a->payload = &p;
    }
    a->size = (uint16_t)(4 + number(in, 1) % 45); /* what is there ends here */
    struct attr *exact = malloc(a->size);
    assert(exact != NULL);
    memcpy(exact, a, a->size);
    void *d = PICK(domains, in);
    switch (number(in, 1) % 5) {
    case 0:
        NVTX(5, 1, void (*)(void *, const void *))(d, exact);
        break;
    case 1:
        PICK(ranges, in) = NVTX(5, 2, uint64_t(*)(void *, const void *))(d, exact);
        break;
    case 2:
        NVTX(5, 3, void (*)(void *, uint64_t))(d, PICK(ranges, in));
        break;
    case 3:
        NVTX(5, 4, int (*)(void *, const void *))(d, exact);
        break;
    default:
        NVTX(5, 5, int (*)(void *))(d);
    }
    free(exact);
    free(a);
    free(data);
    free(wide);
    free(text);
}

static void call_string(struct input *in)
{
    char *text = text_of(in);
    void *d = PICK(domains, in);
    uint32_t key = (uint32_t)number(in, 4);
    switch (number(in, 1) % 4) {
    case 0:
        PICK(strings, in) = NVTX(5, 10, void *(*)(void *, const char *))(d, text);
        break;
    case 1:
        NVTX(5, 8, void (*)(void *, uint32_t, const char *))(d, key, text);
        break;
    case 2:
        NVTX(1, 14, void (*)(uint32_t, const char *))(key, text);
        break;
    default:
        NVTX(2, 5, void (*)(void *, const char *))(d, text);
    }
    free(text);
}

struct entry {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset;
    const void *semantics, *reserved;
};
struct schema {
    uint64_t fields;
    const char *name;
    uint64_t type, flags;
    const void *entries;
    size_t count, size, align;
    uint64_t id;
    const void *extension;
};

static void call_schema(struct input *in)
{
    size_t n = number(in, 1) % 40;
    struct entry *e = calloc(n + 1, sizeof *e);
    assert(e != NULL);
    e = realloc(e, n * sizeof *e + (n == 0));
    char *name = text_of(in);
    for (size_t i = 0; i < n; i++) {
        e[i] = (struct entry){.flags = number(in, 2), .type = schema_id(in), .name = name};
        e[i].detail = number(in, 8);
        e[i].offset = number(in, 4);
    }
    struct schema s = {number(in, 2), name,          number(in, 1), 0,   e, n,
                       number(in, 4), number(in, 2), schema_id(in), NULL};
    s.count = number(in, 1) == 0 ? SIZE_MAX : n;
    EXT(2, 0, uint64_t(*)(void *, const void *))(PICK(domains, in), &s);
    free(name);
    free(e);
}

static void call_enum(struct input *in)
{
    struct value {
        const char *name;
        uint64_t value;
        int8_t flag;
    };
    size_t n = number(in, 1) % 20;
    struct value *v = calloc(n + 1, sizeof *v);
    assert(v != NULL);
    char *name = text_of(in);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct value){name, number(in, 8), (int8_t)number(in, 1)};
    const struct {
        uint64_t fields;
        const char *name;
        const struct value *values;
        size_t count, size;
        uint64_t id;
        const void *extension;
    } a = {number(in, 1), name, v, n, number(in, 1), schema_id(in), NULL};
    EXT(2, 1, uint64_t(*)(void *, const void *))(PICK(domains, in), &a);
    free(name);
    free(v);
}

static void call_payload(struct input *in)
{
    size_t n = number(in, 1) % 11;
    struct payload p[11];
    void *data[11];
    for (size_t i = 0; i < n; i++) {
        size_t size = number(in, 1);
        data[i] = bytes_of(in, size);
        p[i] = (struct payload){schema_id(in), size, size == 7 ? NULL : data[i]};
    }
    void *d = PICK(domains, in);
    switch (number(in, 1) % 5) {
    case 0:
        EXT(2, 2, void (*)(void *, const void *, size_t))(d, p, n);
        break;
    case 1:
        EXT(2, 3, int (*)(void *, const void *, size_t))(d, p, n);
        break;
    case 2:
        EXT(2, 4, int (*)(void *, const void *, size_t))(d, p, n);
        break;
    case 3:
        PICK(ranges, in) = EXT(2, 5, uint64_t(*)(void *, const void *, size_t))(d, p, n);
        break;
    default:
        EXT(2, 6, void (*)(void *, uint64_t, const void *, size_t))(d, PICK(ranges, in), p, n);
    }
    for (size_t i = 0; i < n; i++)
        free(data[i]);
}

static void call_counter(struct input *in)
{
    struct attr56 {
        size_t size;
        uint64_t schema;
        const char *name, *description;
        uint64_t scope;
        const void *semantics;
        uint64_t id;
    } a = {number(in, 1) % 57, schema_id(in), NULL, NULL, 0, NULL, schema_id(in)};
    char *name = text_of(in);
    a.name = name;
    void *d = PICK(domains, in);
    size_t n = number(in, 1);
    void *sample = bytes_of(in, n), *exact = malloc(a.size > 8 ? a.size : 8);
    assert(exact != NULL);
    memcpy(exact, &a, a.size > 8 ? a.size : 8);
    const struct {
        uint64_t id;
        const void *at;
        size_t bytes, flags;
        const void *times;
        size_t n;
    } batch = {PICK(counters, in), sample, n, 0, NULL, 0};
    switch (number(in, 1) % 5) {
    case 0:
        PICK(counters, in) = EXT(4, 0, uint64_t(*)(void *, const void *))(d, exact);
        break;
    case 1:
        EXT(4, 1, void (*)(void *, uint64_t, int64_t))(d, PICK(counters, in), 5);
        break;
    case 2:
        EXT(4, 3, void (*)(void *, uint64_t, const void *, size_t))
        (d, PICK(counters, in), sample, n);
        break;
    case 3:
        EXT(4, 4, void (*)(void *, uint64_t, uint8_t))(d, PICK(counters, in), 0);
        break;
    default:
        EXT(4, 5, void (*)(void *, const void *))(d, &batch);
    }
    free(exact);
    free(sample);
    free(name);
}

/* The batches of the memory module begin alike: compat, size, a word, then words. */
static void call_memory(struct input *in)
{
    size_t n = number(in, 1) % 8, stride = number(in, 1) % 40;
    void *list = bytes_of(in, n * stride), *handles[8] = {NULL};
    struct {
        uint16_t compat, size;
        uint32_t kind;
        const void *words[5];
    } b = {0x0102, (uint16_t)number(in, 1), (uint32_t)number(in, 1) % 4, {NULL}};
    unsigned slot = number(in, 1) % 9;
    void *d = PICK(domains, in), *heap = PICK(heaps, in);
    unsigned at = slot == 4 || slot == 8; /* a handle comes first */
    b.words[0] = heap;
    b.words[at] = (const void *)n;
    b.words[at + 1] = (const void *)stride;
    b.words[at + 2] = list;
    b.words[at + 3] = slot == 4 ? handles : NULL;
    const struct {
        uint16_t compat, size;
        uint32_t reserved, usage, type;
        size_t n;
        const void *range;
        uint32_t category;
        int32_t message_type;
        const void *message;
    } desc = {0x0102, b.size, 0, 1, b.kind, n * stride, list, 0, 0, NULL};
    if (slot == 1)
        PICK(heaps, in) = EXT(1, 1, void *(*)(void *, const void *))(d, &desc);
    else if (slot == 2 || slot == 3)
        EXT(1, slot, void (*)(void *, void *))(d, heap);
    else if (slot != 0 && (slot != 7 || stride < 32)) /* names are pointers: not from bytes */
        EXT(1, slot, void (*)(void *, const void *))(d, &b);
    free(list);
}

static void call_lock(struct input *in)
{
    char *name = text_of(in);
    const struct {
        uint16_t version, size;
        int32_t type;
        const char *name;
    } a = {3, (uint16_t)(number(in, 1) % 17), 1, name};
    unsigned slot = 1 + number(in, 1) % 6;
    if (slot == 1)
        PICK(locks, in) = NVTX(6, 1, void *(*)(void *, const void *))(PICK(domains, in), &a);
    else
        NVTX(6, slot, void (*)(void *))(PICK(locks, in));
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const calls[])(struct input *) = {
        call_header,  call_domain, call_filter, call_environment, call_mark,
        call_event,   call_string, call_schema, call_enum,        call_payload,
        call_counter, call_memory, call_lock};
    struct input in = {data, size};
    if (out[0] == '\0')
        begin();
    for (int i = 0; in.n > 0 && i < CALLS_MAX; i++)
        calls[number(&in, 1) % (sizeof calls / sizeof *calls)](&in);
    rt_domain_filter("", "");
    return 0;
}
