/* SPDX-License-Identifier: MIT
 *
 * real_function: where a hook library finds the function it stands in front of, and the few bytes of
 * memory and order that hooks need.  Each hook library has its own copy of real_function.c.
 *
 * A library that was opened RTLD_LOCAL is not seen by RTLD_NEXT: then the loaded objects are
 * searched for one whose file name begins with an owner's.
 */
#ifndef MSTX_HOOK_REAL_FUNCTION_H
#define MSTX_HOOK_REAL_FUNCTION_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOOK_API       __attribute__((visibility("default")))
#define HOOK_LIKELY(x) __builtin_expect(!!(x), 1)
#define HOOK_COLD      __attribute__((noinline, cold))
#define HOOK_HOT       __attribute__((hot)) /* side by side in memory */

/* The definition of `name` behind this library, or one in a loaded object whose file name begins
 * with one of owners (NULL ends them); NULL when there is none yet. */
void *hook_find(const char *name, const char *const *owners);
/* The same for a variable, which a program may hold a copy of that all others use. */
void *hook_find_variable(const char *name, const char *const *owners);

/* A found function is kept: one load and a branch. */
typedef _Atomic(void *) hook_slot;
static inline void *hook_real(hook_slot *slot, const char *name, const char *const *owners)
{
    void *p = atomic_load_explicit(slot, memory_order_relaxed);
    if (HOOK_LIKELY(p != NULL))
        return p;
    p = hook_find(name, owners);
    atomic_store_explicit(slot, p, memory_order_relaxed);
    return p;
}

/* Not zero while a hook of this thread is at work: calls that a library makes to itself, or a
 * signal handler in the middle, go straight through. */
extern __thread unsigned hook_depth __attribute__((tls_model("initial-exec")));

/* A lock for some instructions, with hook_depth raised so that no signal handler meets it. */
struct hook_lock {
    atomic_int held;
};
static inline void hook_lock(struct hook_lock *l)
{
    while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire) != 0)
        sched_yield();
}
static inline void hook_unlock(struct hook_lock *l)
{
    atomic_store_explicit(&l->held, 0, memory_order_release);
}

/* Zeroed memory that is never given back; NULL: none. */
void *hook_keep(size_t n);

#endif
