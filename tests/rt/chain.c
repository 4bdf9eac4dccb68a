/* SPDX-License-Identifier: MIT
 *
 * chain: another tool, which the recorder passes marks on to: it prints what it hears.
 */
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
    return 0;
}
