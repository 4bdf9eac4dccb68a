/* SPDX-License-Identifier: MIT
 *
 * real_function: finds the real function behind a hook, and provides the memory and the lock that
 * hooks need.  Each hook library has its own copy of real_function.c.
 *
 * RTLD_NEXT does not find a library that was opened with RTLD_LOCAL: then the loaded objects are
 * searched for one whose file name begins with an owner.
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
#define HOOK_HOT       __attribute__((hot)) /* placed side by side in memory */

/* Finds the definition of `name` behind this library, or in a loaded object whose file name begins
 * with one of owners (ended by NULL); NULL when there is none yet. */
void *hook_find(const char *name, const char *const *owners);
/* Finds a variable. A program may contain a copy of it, which all objects then use (copy
 * relocation). */
void *hook_find_variable(const char *name, const char *const *owners);

/* Returns the real function, cached in slot: one load and a branch. */
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

/* Not zero while a hook of this thread is at work: calls that a library makes to itself, and calls
 * of a signal handler that interrupts the hook, are passed on without recording. */
extern __thread unsigned hook_depth __attribute__((tls_model("initial-exec")));

/* A lock held for a few instructions, with hook_depth raised so that hooks in a signal handler do
 * not take it. */
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

/* Allocates zeroed memory that is never freed; NULL: none. */
void *hook_keep(size_t n);

#endif
