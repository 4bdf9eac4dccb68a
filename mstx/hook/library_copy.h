/* SPDX-License-Identifier: MIT
 *
 * library_copy: finds which of several copies of a library a call is meant for.
 *
 * NCCL is distributed as a library of its own and inside of others, and a process may load both.
 * All their callers reach one hook.  The calling object determines the copy that it would have
 * reached without the hook: the first that has the function among the object itself and its
 * dependencies. Copy 0 is used for all other callers, found as described in
 * mstx/hook/real_function.h.
 *
 * A caller is identified by its return address; the copy is looked up once for each.
 */
#ifndef MSTX_HOOK_LIBRARY_COPY_H
#define MSTX_HOOK_LIBRARY_COPY_H

#include "mstx/hook/real_function.h"

enum { HOOK_COPIES = 8, HOOK_SITES = 1 << 10 };

/* A library, in one or more copies. */
struct hook_family {
    const char *name;
    const char *const *owners; /* prefixes of the file names of copy 0 */
    struct hook_lock lock;
    unsigned copies; /* beside copy 0 */
    struct {
        const void *base; /* base address of the object that has the functions */
        void *scope;      /* where its functions are looked up */
    } copy[HOOK_COPIES];
    _Atomic uint64_t site[HOOK_SITES]; /* callers and their copies */
};

/* The function of one name in each copy. */
struct hook_fn {
    hook_slot in[HOOK_COPIES];
};

/* Returns the copy that a call of `name` with this return address means. */
unsigned hook_copy_of(struct hook_family *f, const char *name, const void *caller);

/* Looks up the function in that copy; NULL: the copy has none, or is not loaded yet. */
HOOK_COLD void *hook_copy_look_up(struct hook_family *f, struct hook_fn *fn, const char *name,
                                  unsigned copy);
static inline void *hook_copy_fn(struct hook_family *f, struct hook_fn *fn, const char *name,
                                 unsigned copy)
{
    void *p = atomic_load_explicit(&fn->in[copy], memory_order_relaxed);
    return HOOK_LIKELY(p != NULL) ? p : hook_copy_look_up(f, fn, name, copy);
}

/* Tells whether any function of the library was called through the hooks. */
bool hook_copy_is_called(const struct hook_family *f);

/* Tells whether the function, which a program looked up by that name, is in copy 0. */
bool hook_copy_is_usual(const struct hook_family *f, const char *name, const void *function);

/* Returns the name of the file that contains p, without its folder; "": not known. */
const char *hook_copy_file(const void *p);

#endif
