/* SPDX-License-Identifier: MIT
 *
 * nvtx_app: a program that holds NVTX, or rather what the injection library sees of one: its
 * tables, written from the description of the protocol.  Exit status 0 when every depth and
 * handle that came back is right.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef void (*fn)(void);
typedef fn **table;

static fn core[16], core2[16], cudart[7], sync_fn[7];
static fn *core_slots[17], *core2_slots[17], *cudart_slots[8], *sync_slots[8];

static int get_table(int module, table *out, unsigned *size)
{
    table list[] = {NULL, core_slots, NULL, NULL, cudart_slots, core2_slots, sync_slots};
    const unsigned sizes[] = {0, 16, 0, 0, 7, 16, 7};
    if (module < 1 || module > 6 || list[module] == NULL)
        return 0;
    *out = list[module];
    *size = sizes[module];
    return 1;
}
static const struct {
    size_t struct_size;
    int (*get)(int, table *, unsigned *);
} callbacks = {16, get_table};

static const void *get_export(uint32_t id)
{
    return id == 1 ? &callbacks : NULL;
}

struct attr {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, count;
    union {
        uint64_t u;
        double d;
        const void *p;
    } payload;
    int32_t message_type;
    const void *message;
};
struct payload {
    uint64_t schema;
    size_t size;
    const void *data;
};
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
    const struct entry *entries;
    size_t count, size, align;
    uint64_t id;
    const void *extension;
};

static int failures;
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
#define CALL(type, f, ...) ((type)(f))(__VA_ARGS__)

static void (*mark_ex)(const struct attr *);
static int (*push_a)(const char *), (*pop)(void);
static int (*dpush)(void *, const struct attr *), (*dpop)(void *);
static void *(*dcreate)(const char *), *(*dregister)(void *, const char *);

static void attach(void *lib)
{
    int (*init)(const void *(*)(uint32_t)) =
        (int (*)(const void *(*)(uint32_t)))dlsym(lib, "InitializeInjectionNvtx2");
    for (int i = 1; i < 16; i++) {
        core_slots[i] = &core[i];
        core2_slots[i] = &core2[i];
    }
    for (int i = 1; i < 7; i++) {
        cudart_slots[i] = &cudart[i];
        sync_slots[i] = &sync_fn[i];
    }
    if (init == NULL || init(get_export) != 1)
        exit(3);
    mark_ex = (void (*)(const struct attr *))core[1];
    push_a = (int (*)(const char *))core[9];
    pop = (int (*)(void))core[11];
    dpush = (int (*)(void *, const struct attr *))core2[4];
    dpop = (int (*)(void *))core2[5];
    dcreate = (void *(*)(const char *))core2[12];
    dregister = (void *(*)(void *, const char *))core2[10];
}

static void attributes(void)
{
    struct attr a = {.version = 3, .size = 48, .category = 7, .color_type = 1, .color = 0xff00aa55};
    a.payload_type = 3;
    a.payload.d = 2.5;
    a.message_type = 1;
    a.message = "full";
    mark_ex(&a);
    a.size = 40; /* an older, shorter structure: no message in it */
    a.message = (const void *)1;
    mark_ex(&a);
    a.size = 48;
    a.message_type = 2;
    a.message = L"wide \x20ac";
    mark_ex(&a);
    mark_ex(NULL);
    CALL(void (*)(uint32_t, const char *), core[12], 7, "seven");
    CALL(void (*)(void *, const char *), cudart[3], (void *)0x51, "compute");
}

static void strings_of_domains(void)
{
    void *one = dcreate("one"), *two = dcreate("two");
    EXPECT(one != NULL && two != NULL && one != two && dcreate("one") == one);
    void *s = dregister(one, "registered");
    EXPECT(s != NULL);
    struct attr a = {.version = 3, .size = 48, .message_type = 3, .message = s};
    EXPECT(dpush(two, &a) == 0); /* a string of another domain */
    EXPECT(dpop(two) == 0);
    EXPECT(dpop(two) < 0); /* empty */
    EXPECT(dpop(one) < 0);
}

static void *pop_there(void *arg)
{
    *(int *)arg = pop();
    return NULL;
}

static void stacks(void)
{
    pthread_t t;
    int there = 0;
    void *d = dcreate("other");
    struct attr a = {.version = 3, .size = 48, .message_type = 1, .message = "in other"};
    EXPECT(push_a("outer") == 0);
    EXPECT(push_a("inner") == 1);
    EXPECT(dpush(d, &a) == 0); /* a stack for each domain */
    pthread_create(&t, NULL, pop_there, &there);
    pthread_join(t, NULL);
    EXPECT(there < 0); /* and for each thread */
    EXPECT(pop() == 1);
    EXPECT(dpop(d) == 0);
    EXPECT(pop() == 0);
    uint64_t id = CALL(uint64_t(*)(const char *), core[5], "start/end");
    EXPECT(id != 0);
    CALL(void (*)(uint64_t), core[7], id);
}

/* Marks of as many records as an event may have: 193, of attributes, a payload of the largest size and
 * what else fits. */
static void largest_events(void)
{
    static char bytes[4096];
    const struct payload p[] = {{7, sizeof bytes, bytes}, {8, 18 * 24, bytes}};
    struct attr a = {.version = 3, .size = 48, .category = 7, .message_type = 1};
    memset(bytes, 'x', sizeof bytes);
    a.message = "largest";
    a.payload_type = (int32_t)0xDFBD0009;
    a.count = 2;
    a.payload.p = p;
    for (int i = 0; i < 20; i++)
        mark_ex(&a);
}

/* As NCCL does it: a schema under an id of its own, a push with the payload, and for some calls a
 * plain push that is popped by the extension. */
static void nccl(void *lib)
{
    intptr_t slots[64] = {0};
    struct {
        size_t id, count;
        intptr_t *slots;
    } segment = {0, 63, slots};
    struct {
        uint16_t version, size, id, compat;
        size_t segments;
        void *segment;
        const void *get, *info;
    } module = {3, 40, 2, 0x0103, 1, &segment, NULL, NULL};
    int (*init)(void *) = (int (*)(void *))dlsym(lib, "InitializeInjectionNvtxExtension");
    EXPECT(init != NULL && init(&module) == 1);
    const struct entry entries[] = {{.type = 18, .name = "NCCL communicator ID"},
                                    {.type = 22, .name = "Message size [bytes]"},
                                    {.type = 5, .name = "Reduction operation"}};
    const struct schema s = {.fields = 2 | 4 | 16 | 32 | 256,
                             .name = "AllReduce",
                             .type = 1,
                             .entries = entries,
                             .count = 3,
                             .id = (1 << 24) + 5};
    void *d = dcreate("NCCL");
    EXPECT(CALL(uint64_t(*)(void *, const struct schema *), slots[0], d, &s) == s.id);
    struct {
        uint64_t comm;
        size_t bytes;
        int op;
    } data = {0xABCDEF, 4096, 2};
    const struct payload p = {s.id, sizeof data, &data};
    struct attr a = {.version = 3, .size = 48, .message_type = 3};
    a.message = dregister(d, "ncclAllReduce");
    a.payload_type = (int32_t)0xDFBD0009;
    a.count = 1;
    a.payload.p = &p;
    EXPECT(dpush(d, &a) == 0);
    EXPECT(dpop(d) == 0);
    a.payload_type = 0;
    EXPECT(dpush(d, &a) == 0);
    EXPECT(CALL(int (*)(void *, const struct payload *, size_t), slots[4], d, &p, 1) == 0);
    EXPECT(dpop(d) < 0); /* no level was leaked */
    EXPECT(CALL(uint8_t(*)(void *), slots[7], d) == 1);
    module.id = 99; /* an unknown module is let through and nothing filled */
    memset(slots, 0, sizeof slots);
    EXPECT(init(&module) == 1 && slots[0] == 0);
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

/* Slots of an extension module; the number of its segment differs from module to module. */
static void extend(void *lib, uint16_t id, uint16_t compat, intptr_t slots[64])
{
    struct segment s = {id == 1, 63, slots};
    struct module m = {3, 40, id, compat, 1, &s, NULL, NULL};
    int (*init)(void *) = (int (*)(void *))dlsym(lib, "InitializeInjectionNvtxExtension");
    EXPECT(init(&m) == 1);
}

struct counter {
    size_t size;
    uint64_t schema;
    const char *name, *description;
    uint64_t scope;
    const void *semantics;
    uint64_t id;
};

static void counters(void *lib)
{
    intptr_t payload[64] = {0}, slot[64] = {0}, old[64] = {0};
    extend(lib, 2, 0x0103, payload);
    extend(lib, 4, 0x0102, slot);
    extend(lib, 4, 0x0101, old);
    void *d = dcreate("gauges");
    const struct {
        uint32_t size;
        uint16_t id, version;
        const void *next;
        uint64_t flags;
        const char *unit;
        char rest[40];
    } semantics = {.size = 72, .id = 5, .unit = "MB"};
    struct counter a = {56, 17, "queue", NULL, 0, &semantics, 0};
    uint64_t queue = CALL(uint64_t(*)(void *, const void *), slot[0], d, &a);
    EXPECT(queue >= UINT64_C(1) << 32);
    a.id = (1 << 24) + 77;
    a.name = "loss";
    a.schema = 20;
    a.semantics = NULL;
    EXPECT(CALL(uint64_t(*)(void *, const void *), slot[0], d, &a) == a.id);
    CALL(void (*)(void *, uint64_t, int64_t), slot[1], d, queue, -5);
    CALL(void (*)(void *, uint64_t, double), slot[2], d, a.id, 0.25);
    CALL(void (*)(void *, uint64_t, uint8_t), slot[4], d, queue, 0);
    CALL(void (*)(void *, uint64_t, uint8_t), slot[4], d, queue, 2);
    CALL(void (*)(void *, uint64_t, int64_t), slot[1], d, 4242, 1); /* never registered */
    const struct entry entries[] = {{.type = 16, .name = "used"}, {.type = 19, .name = "share"}};
    const struct schema s = {.fields = 4 | 16 | 32 | 256,
                             .type = 1,
                             .entries = entries,
                             .count = 2,
                             .id = (1 << 24) + 9};
    EXPECT(CALL(uint64_t(*)(void *, const void *), payload[0], d, &s) == s.id);
    struct counter group = {56, s.id, "pool", NULL, 0, NULL, (1 << 24) + 78};
    CALL(uint64_t(*)(void *, const void *), slot[0], d, &group);
    const struct {
        uint32_t used;
        float share;
    } one = {7, 0.5F}, many[3] = {{1, 1}, {2, 2}, {9, 1.5F}};
    CALL(void (*)(void *, uint64_t, const void *, size_t), slot[3], d, group.id, &one, sizeof one);
    CALL(void (*)(void *, uint64_t, const void *, size_t), slot[3], d, group.id, &one,
         3); /* short */
    const struct {
        uint64_t id;
        const void *at;
        size_t bytes;
        uint64_t flags;
        const int64_t *times;
        size_t n;
    } batch = {group.id, many, sizeof many, 0, NULL, 0};
    CALL(void (*)(void *, const void *), slot[5], d, &batch);
    CALL(void (*)(void *, uint64_t, const void *, size_t), old[5], d, group.id, many, sizeof many);
    a.size = 4;
    EXPECT(CALL(uint64_t(*)(void *, const void *), slot[0], d, &a) == 0);
    EXPECT(CALL(uint64_t(*)(void *, const void *), slot[0], d, NULL) == 0);
}

struct range {
    size_t size;
    const void *at;
};
struct memory_batch {
    uint16_t compat, size;
    uint32_t kind;
    const void *words[5];
};
#define W(n) ((const void *)(uintptr_t)(n))

static void memory(void *lib)
{
    intptr_t slot[64] = {0};
    extend(lib, 1, 0x0102, slot);
    void *d = dcreate("arena");
    const struct range whole = {4096, W(0x10000)};
    const struct {
        uint16_t compat, size;
        uint32_t reserved, usage, type;
        size_t n;
        const void *range;
        uint32_t category;
        int32_t message_type;
        const char *message;
    } heap = {0x0102, 48, 0, 1, 1, 16, &whole, 0, 1, "big block"};
    void *h = CALL(void *(*)(void *, const void *), slot[1], d, &heap);
    EXPECT(h != NULL);
    const struct range parts[2] = {{64, W(0x10000)}, {128, W(0x10040)}};
    void *given[2] = {NULL, NULL};
    struct memory_batch b = {0x0102, 48, 1, {h, W(2), W(16), parts, given}};
    CALL(void (*)(void *, const void *), slot[4], d, &b);
    EXPECT(given[0] != NULL && given[1] != NULL && given[0] != given[1]);
    const struct range larger = {256, W(0x10040)};
    const struct memory_batch resize = {0x0102, 32, 1, {W(1), W(16), &larger}};
    CALL(void (*)(void *, const void *), slot[5], d, &resize);
    const struct {
        uint32_t ref_type;
        int32_t message_type;
        const void *region;
        const char *name;
        uint32_t category, reserved;
    } name = {1, 1, W(0x10040), "activations", 0, 0};
    const struct memory_batch names = {0x0102, 40, 0, {W(1), W(32), &name}};
    CALL(void (*)(void *, const void *), slot[7], d, &names);
    const struct {
        uint32_t flags, ref_type;
        const void *region;
    } right = {4, 1, W(0x10040)};
    const struct memory_batch rights = {0x0102, 48, 0, {NULL, W(1), W(16), &right}};
    CALL(void (*)(void *, const void *), slot[8], d, &rights);
    const void *refs[1] = {given[0]};
    const struct memory_batch gone = {0x0102, 32, 2, {W(1), W(8), refs}};
    CALL(void (*)(void *, const void *), slot[6], d, &gone);
    CALL(void (*)(void *, void *), slot[3], d, h); /* reset */
    CALL(void (*)(void *, void *), slot[2], d, h);
    b.size = 8; /* a structure cut short is not read */
    b.words[3] = W(1);
    CALL(void (*)(void *, const void *), slot[4], d, &b);
    CALL(void (*)(void *, const void *), slot[4], d, NULL);
    b.size = 48;
    b.words[2] = W(4); /* elements too small */
    CALL(void (*)(void *, const void *), slot[4], d, &b);
}

static void user_lock(void)
{
    void *d = dcreate("locks");
    const struct {
        uint16_t version, size;
        int32_t type;
        const char *name;
    } attr = {3, 16, 1, "spin"};
    void *l = CALL(void *(*)(void *, const void *), sync_fn[1], d, &attr);
    EXPECT(l != NULL);
    void (*say[])(void *) = {NULL,
                             NULL,
                             (void (*)(void *))sync_fn[2],
                             (void (*)(void *))sync_fn[3],
                             (void (*)(void *))sync_fn[4],
                             (void (*)(void *))sync_fn[5],
                             (void (*)(void *))sync_fn[6]};
    say[3](l); /* wait, get, let go */
    say[5](l);
    say[6](l);
    say[3](l); /* wait in vain */
    say[4](l);
    say[6](l);            /* not held */
    say[5]((void *)0x10); /* garbage */
    say[3](NULL);
    say[2](l);
}

int main(void)
{
    void *lib = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    if (lib == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    attach(lib);
    attributes();
    largest_events();
    strings_of_domains();
    stacks();
    nccl(lib);
    counters(lib);
    memory(lib);
    user_lock();
    return failures != 0;
}
