/* SPDX-License-Identifier: MIT
 *
 * library_copy: which of several copies of a library a call is meant for.
 *
 * NCCL comes as a library of its own and inside of others, and a process may hold both.  All their
 * callers meet in one hook.  The object that calls says which copy it would have reached without
 * us: the one that its own dependencies hold, itself first.  Copy 0 is the one that everybody else
 * reaches, found as mstx/hook/real_function.h says.
 *
 * A caller is known by the address it is called back at; the answer is looked up once for each.
 */
#ifndef MSTX_HOOK_LIBRARY_COPY_H
#define MSTX_HOOK_LIBRARY_COPY_H

#include "mstx/hook/real_function.h"

enum { HOOK_COPIES = 8, HOOK_SITES = 1 << 10 };

/* One library, in however many copies. */
struct hook_family {
    const char *name;
    const char *const *owners; /* beginnings of the file names that hold copy 0 */
    struct hook_lock lock;
    unsigned copies; /* beside copy 0 */
    struct {
        const void *base; /* of the object that the functions lie in */
        void *scope;      /* where its functions are looked up */
    } copy[HOOK_COPIES];
    _Atomic uint64_t site[HOOK_SITES]; /* callers and the copies they mean */
};

/* The functions of one name, by copy. */
struct hook_fn {
    hook_slot in[HOOK_COPIES];
};

/* The copy that a call of `name` from this address means. */
unsigned hook_copy_of(struct hook_family *f, const char *name, const void *caller);

/* The function of that copy; NULL: it has none, or is not loaded yet. */
HOOK_COLD void *hook_copy_look_up(struct hook_family *f, struct hook_fn *fn, const char *name,
                                  unsigned copy);
static inline void *hook_copy_fn(struct hook_family *f, struct hook_fn *fn, const char *name,
                                 unsigned copy)
{
    void *p = atomic_load_explicit(&fn->in[copy], memory_order_relaxed);
    return HOOK_LIKELY(p != NULL) ? p : hook_copy_look_up(f, fn, name, copy);
}

/* Was any function of it called through the hooks? */
bool hook_copy_is_called(const struct hook_family *f);

/* Does the function, which a program looked up by that name, lie in copy 0? */
bool hook_copy_is_usual(const struct hook_family *f, const char *name, const void *function);

/* The file that holds the function at p, without its folder; "": not known. */
const char *hook_copy_file(const void *p);

#endif
