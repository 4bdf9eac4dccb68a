/* SPDX-License-Identifier: MIT
 *
 * nvtx_next: another NVTX tool, which the recorder passes calls on to: it prints what it hears.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*fn)(void);

struct attr {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, count;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};

static char domains[8][32];
static const char *name_of(const void *domain)
{
    return domain == NULL ? "default" : domain;
}
static void say(const char *what, const void *domain, const struct attr *a)
{
    const char *text = a->message_type == 1 ? a->message : a->message_type == 2 ? "(wide)" : "-";
    printf("%s %s %s", what, name_of(domain), text);
    if (a->category != 0)
        printf(" category %u", a->category);
    printf("%s\n", a->payload_type == (int32_t)0xDFBD0009 ? " payloads"
                   : a->payload_type != 0                 ? " payload"
                                                          : "");
}

static void mark(const struct attr *a)
{
    say("mark", NULL, a);
}
static uint64_t start(const struct attr *a)
{
    say("start", NULL, a);
    return 90;
}
static void end(uint64_t id)
{
    printf("end %d\n", (int)id);
}
static void *create(const char *name)
{
    static int n;
    char *to = domains[n++ % 8];
    snprintf(to, sizeof domains[0], "%s", name);
    return to;
}
static int push(void *domain, const struct attr *a)
{
    say("push", domain, a);
    return 5; /* depths are the recorder's to tell */
}
static int pop(void *domain)
{
    printf("pop %s\n", name_of(domain));
    return 5;
}
static void category(uint32_t number, const char *name)
{
    printf("category %u %s\n", number, name);
}

static void stream(void *handle, const char *name)
{
    printf("stream %#lx %s\n", (unsigned long)(uintptr_t)handle, name);
}

struct callbacks {
    size_t size;
    int (*get)(int, fn ***, unsigned *);
};
int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t));
__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_export)(uint32_t))
{
    const struct callbacks *c = get_export(1);
    fn **table;
    unsigned size;
    if (c == NULL || c->size < sizeof *c || c->get(1, &table, &size) == 0 || get_export(2) != NULL)
        return 0;
    *table[1] = (fn)mark;
    *table[4] = (fn)start;
    *table[7] = (fn)end;
    *table[12] = (fn)category;
    if (c->get(5, &table, &size) == 0 || c->get(6, &table, &size) != 0)
        return 0;
    if (c->get(4, &table, &size) == 0 || size != 7 || table[7] != NULL)
        return 0;
    *table[3] = (fn)stream;
    c->get(5, &table, &size);
    *table[4] = (fn)push;
    *table[5] = (fn)pop;
    *table[12] = (fn)create;
    return 1;
}

/* ---- extensions: payloads, counters, memory ------------------------------------------------ */

struct payload {
    uint64_t schema;
    size_t size;
    const void *data;
};
static const uint64_t chosen = UINT64_C(1) << 32; /* ids of programs lie below */

/* The id of what is registered: that of the structure, at its place, or one of ours. */
static uint64_t id_at(const void *attr, size_t place)
{
    static uint64_t given;
    uint64_t id;
    memcpy(&id, (const char *)attr + place, sizeof id);
    return id != 0 ? id : chosen + given++;
}
static uint64_t schema(void *domain, const void *attr)
{
    uint64_t id = id_at(attr, 64);
    printf("schema %s %llu\n", name_of(domain), (unsigned long long)id % (1 << 24));
    return id;
}
static int pop_payload(void *domain, const struct payload *p, size_t n)
{
    uint64_t first = 0;
    if (n > 0)
        memcpy(&first, p->data, sizeof first);
    printf("pop %s with %zu payloads, %llx\n", name_of(domain), n, (unsigned long long)first);
    return 5;
}
static uint64_t counter(void *domain, const void *attr)
{
    uint64_t id = id_at(attr, 48);
    const char *name;
    memcpy(&name, (const char *)attr + 16, sizeof name);
    printf("counter %s %s %s\n", name_of(domain), name, id < chosen ? "chosen" : "given");
    return id;
}
static void sample(void *domain, uint64_t id, int64_t value)
{
    printf("sample %s %s %d\n", name_of(domain), id < chosen ? "chosen" : "given", (int)value);
}
static void batch(void *domain, const void *b)
{
    size_t bytes;
    memcpy(&bytes, (const char *)b + 16, sizeof bytes);
    printf("batch %s of %zu bytes\n", name_of(domain), bytes);
}
static void *heap(void *domain, const void *desc)
{
    (void)desc;
    printf("heap %s\n", name_of(domain));
    return (void *)0x700;
}
static void unheap(void *domain, const void *heap)
{
    printf("unheap %s %p\n", name_of(domain), heap);
}
static void regions(void *domain, const void *b)
{
    struct {
        uint32_t head[2];
        const void *heap;
        size_t count, element;
        const void *ranges;
        void **handles;
    } r;
    memcpy(&r, b, sizeof r);
    printf("%zu regions %s in %p\n", r.count, name_of(domain), r.heap);
    for (size_t i = 0; i < r.count; i++)
        r.handles[i] = (void *)(0x710 + i);
}
static void unregion(void *domain, const void *b)
{
    struct {
        uint32_t head[2];
        size_t count, element;
        void *const *refs;
    } r;
    memcpy(&r, b, sizeof r);
    printf("unregion %s %p\n", name_of(domain), r.refs[0]);
}

struct module {
    uint16_t version, size, id, compat;
    size_t segments;
    struct {
        size_t id, count;
        intptr_t *slots;
    } * segment;
};
int InitializeInjectionNvtxExtension(const struct module *m);
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(const struct module *m)
{
    if (m->segments != 1 || m->segment->count < 9)
        return 0;
    intptr_t *slots = m->segment->slots;
    if (m->id == 2) {
        slots[0] = (intptr_t)schema;
        slots[4] = (intptr_t)pop_payload;
    } else if (m->id == 4) {
        slots[0] = (intptr_t)counter;
        slots[1] = (intptr_t)sample;
        slots[5] = m->compat >= 0x0102 ? (intptr_t)batch : -1;
    } else if (m->id == 1) {
        slots[1] = (intptr_t)heap;
        slots[2] = (intptr_t)unheap;
        slots[4] = (intptr_t)regions;
        slots[6] = (intptr_t)unregion;
    } else
        return 0;
    printf("module %d\n", m->id);
    return 1;
}
