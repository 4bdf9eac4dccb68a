/* SPDX-License-Identifier: MIT
 *
 * proto: the injection protocol as a program sees it, written from its description and not
 * from our header, so that the tests show what a foreign header meets.  The layout of the
 * table that is offered can be that of other generations:
 *
 *   PROTO_OLD      memory calls inside CORE (size 8), no module MEM, no GetToolId
 *   PROTO_ROUTER   sizes one larger than the last slot, DOMAIN reports the size of CORE
 */
#ifndef TESTS_PROGRAMS_PROTO_H
#define TESTS_PROGRAMS_PROTO_H

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void (*p_fn)(void);
typedef p_fn **p_table;

enum { P_MARK = 1, P_START, P_END, P_TOOL, P_HEAP_OLD = 4 };
enum { P_CREATE = 1, P_DESTROY, P_DMARK, P_DSTART, P_DEND };
enum { P_HEAP = 1, P_UNHEAP, P_REGIONS, P_UNREGIONS, P_PERMIT };

static p_fn p_core[8], p_domain[6], p_mem[6];
static p_fn *p_core_slots[9], *p_domain_slots[7], *p_mem_slots[7];
static atomic_int p_state;
static int p_inits;

static int p_get(int module, p_table *table, unsigned *size)
{
    if (table == NULL || size == NULL)
        return 1;
    switch (module) {
    case 1:
        *table = p_core_slots;
#if defined(PROTO_OLD)
        *size = 8;
#elif defined(PROTO_ROUTER)
        *size = 6;
#else
        *size = 5;
#endif
        return 0;
    case 2:
        *table = p_domain_slots;
#if defined(PROTO_ROUTER)
        *size = 6;
#else
        *size = 6;
#endif
        return 0;
#if !defined(PROTO_OLD)
    case 3:
        *table = p_mem_slots;
        *size = 6;
        return 0;
#endif
    default:
        return 1;
    }
}

static void p_attach(void)
{
    const char *path = getenv("MSTX_INJECTION_PATH");
    void *lib = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    int (*init)(int (*)(int, p_table *, unsigned *)) =
        (int (*)(int (*)(int, p_table *, unsigned *)))dlsym(lib, "InitInjectionMstx");
    int core = 4;
#if defined(PROTO_OLD)
    core = 7;
#endif
    for (int i = 1; i <= core; i++)
        p_core_slots[i] = &p_core[i];
    for (int i = 1; i <= 5; i++) {
        p_domain_slots[i] = &p_domain[i];
        p_mem_slots[i] = &p_mem[i];
    }
    if (init != NULL) {
        p_inits++;
        if (init(p_get) != 0)
            abort();
    }
}

static void p_init(void)
{
    int fresh = 0;
    if (atomic_load(&p_state) == 2)
        return;
    if (atomic_compare_exchange_strong(&p_state, &fresh, 1)) {
        p_attach();
        atomic_store(&p_state, 2);
    }
    while (atomic_load(&p_state) != 2)
        sched_yield();
}

#define P_CALL(type, fn, none, ...) (p_init(), (fn) != NULL ? ((type)(fn))(__VA_ARGS__) : none)

static inline void p_mark(const char *m, void *s)
{
    P_CALL(void (*)(const char *, void *), p_core[P_MARK], (void)0, m, s);
}
static inline uint64_t p_start(const char *m, void *s)
{
    return P_CALL(uint64_t(*)(const char *, void *), p_core[P_START], 0, m, s);
}
static inline void p_end(uint64_t id)
{
    P_CALL(void (*)(uint64_t), p_core[P_END], (void)0, id);
}
static inline void *p_create(const char *n)
{
    return P_CALL(void *(*)(const char *), p_domain[P_CREATE], NULL, n);
}
static inline void p_destroy(void *d)
{
    P_CALL(void (*)(void *), p_domain[P_DESTROY], (void)0, d);
}
static inline void p_dmark(void *d, const char *m, void *s)
{
    P_CALL(void (*)(void *, const char *, void *), p_domain[P_DMARK], (void)0, d, m, s);
}
static inline uint64_t p_dstart(void *d, const char *m, void *s)
{
    return P_CALL(uint64_t(*)(void *, const char *, void *), p_domain[P_DSTART], 0, d, m, s);
}
static inline void p_dend(void *d, uint64_t id)
{
    P_CALL(void (*)(void *, uint64_t), p_domain[P_DEND], (void)0, d, id);
}

#endif
