/* SPDX-License-Identifier: MIT
 *
 * chain: another tool, which the recorder passes marks on to: it prints what it hears.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef void (*fn)(void);

static void mark(const char *message, void *stream)
{
    (void)stream;
    printf("next mark %s\n", message);
}
static uint64_t start(const char *message, void *stream)
{
    (void)stream;
    printf("next start %s\n", message);
    return 77;
}
static void end(uint64_t id)
{
    printf("next end %d\n", (int)id);
}
static void *create(const char *name)
{
    static char domain;
    printf("next domain %s\n", name);
    return &domain;
}
static void domain_mark(void *domain, const char *message, void *stream)
{
    (void)domain;
    mark(message, stream);
}
static uint64_t domain_start(void *domain, const char *message, void *stream)
{
    (void)domain;
    return start(message, stream) + 1;
}
static void domain_end(void *domain, uint64_t id)
{
    (void)domain;
    end(id);
}

/* Memory: a handle of its own for the heap, for the first region of a batch and none for others. */
static void *heap(void *domain, const void *desc)
{
    (void)domain;
    (void)desc;
    printf("next heap\n");
    return (void *)0x4711;
}
static void unheap(void *domain, void *h)
{
    (void)domain;
    printf("next unheap %d\n", h == (void *)0x4711);
}
struct regions {
    void *heap;
    int type;
    size_t n;
    const void *ranges;
    void **handles;
};
static void regions(void *domain, const struct regions *r)
{
    (void)domain;
    printf("next regions %d of heap %d\n", (int)r->n, r->heap == (void *)0x4711);
    r->handles[0] = (void *)0x4712;
}
struct ref {
    int type;
    const void *what;
};
struct refs {
    size_t n;
    const struct ref *list;
};
static void unregions(void *domain, const struct refs *r)
{
    (void)domain;
    for (size_t i = 0; i < r->n; i++)
        printf("next unregion %d %p\n", r->list[i].type, r->list[i].what);
}
static void permit(void *domain, const void *batch)
{
    (void)domain;
    (void)batch;
    printf("next permit\n");
}

int InitInjectionMstx(int (*get)(int, fn ***, unsigned *));
__attribute__((visibility("default"))) int InitInjectionMstx(int (*get)(int, fn ***, unsigned *))
{
    fn **table;
    unsigned size;
    if (get(1, &table, &size) != 0)
        return 1;
    *table[1] = (fn)mark;
    *table[2] = (fn)start;
    *table[3] = (fn)end;
    if (get(2, &table, &size) != 0)
        return 1;
    *table[1] = (fn)create;
    *table[3] = (fn)domain_mark;
    *table[4] = (fn)domain_start;
    *table[5] = (fn)domain_end;
    if (get(3, &table, &size) != 0)
        return 1;
    *table[1] = (fn)heap;
    *table[2] = (fn)unheap;
    *table[3] = (fn)regions;
    *table[4] = (fn)unregions;
    *table[5] = (fn)permit;
    return 0;
}
