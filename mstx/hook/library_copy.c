/* SPDX-License-Identifier: MIT
 *
 * library_copy: see the header.
 */
#include "mstx/hook/library_copy.h"

#include "mstx/rt/comm_range.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const void *base_of(const void *p)
{
    Dl_info info;
    return p != NULL && dladdr(p, &info) != 0 ? info.dli_fbase : NULL;
}

const char *hook_copy_file(const void *p)
{
    Dl_info info;
    if (p == NULL || dladdr(p, &info) == 0 || info.dli_fname == NULL)
        return "";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash != NULL ? slash + 1 : info.dli_fname;
}

/* Returns a handle of the calling object. The handle is never closed, because functions found by it
 * are cached. */
static void *scope_of(const void *caller)
{
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    return dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
}

static void warn(const struct hook_family *f, const void *one, const void *other, const char *so)
{
    char text[256];
    snprintf(text, sizeof text, "this process holds %s more than once, in %.64s and %.64s: %s",
             f->name, hook_copy_file(one), hook_copy_file(other), so);
    mstx_comm_note(text);
}

/* Returns the number of the copy that contains `there`; 0: the usual copy, or the table is full.
 * Caller holds the lock. */
static unsigned number_of(struct hook_family *f, void *scope, const void *there, const void *usual)
{
    const void *base = base_of(there);
    unsigned n = 1;
    if (there == NULL || base == base_of(f) || base == base_of(usual))
        return 0;
    while (n <= f->copies && f->copy[n].base != base)
        n++;
    if (n == HOOK_COPIES || n <= f->copies)
        return n % HOOK_COPIES;
    f->copy[n].base = base;
    f->copy[n].scope = scope;
    f->copies = n;
    if (usual != NULL)
        warn(f, usual, there, "calls go to the copy that their caller is linked to");
    return n;
}

HOOK_COLD static unsigned ask(struct hook_family *f, const char *name, const void *caller)
{
    void *scope = scope_of(caller);
    const void *usual = hook_find(name, f->owners);
    return scope != NULL ? number_of(f, scope, dlsym(scope, name), usual) : 0;
}

/* A site holds the caller's address, with the number of the copy in the upper bits. */
enum { ADDRESS_BITS = 56, PROBES = 16 };
static bool is_site(uint64_t site, const void *caller)
{
    return site << (64 - ADDRESS_BITS) == (uint64_t)(uintptr_t)caller << (64 - ADDRESS_BITS);
}

static size_t place_of(const void *caller)
{
    return (size_t)(((uintptr_t)caller * 0x9E3779B97F4A7C15u) >> 54);
}
_Static_assert(HOOK_SITES == 1 << 10, "the hash gives 10 bits");

/* Caches the copy of a caller. Without a free entry another caller is evicted, which will be looked
 * up again. */
static void keep_site(struct hook_family *f, const void *caller, unsigned copy)
{
    const size_t first = place_of(caller);
    size_t at = first;
    for (int i = 0; i < PROBES && atomic_load(&f->site[at]) != 0; i++)
        at = (first + (size_t)i) % HOOK_SITES;
    atomic_store(&f->site[at], (uint64_t)(uintptr_t)caller | (uint64_t)copy << ADDRESS_BITS);
}

/* Looks the copy of a caller up. A signal handler that runs meanwhile gets the usual copy. */
HOOK_COLD static unsigned learn(struct hook_family *f, const char *name, const void *caller)
{
    static __thread bool is_asking __attribute__((tls_model("initial-exec")));
    if (is_asking)
        return 0;
    is_asking = true;
    hook_lock(&f->lock);
    unsigned copy = ask(f, name, caller);
    keep_site(f, caller, copy);
    hook_unlock(&f->lock);
    is_asking = false;
    return copy;
}

unsigned hook_copy_of(struct hook_family *f, const char *name, const void *caller)
{
    size_t at = place_of(caller);
    for (int i = 0; i < PROBES; i++, at = (at + 1) % HOOK_SITES) {
        uint64_t site = atomic_load_explicit(&f->site[at], memory_order_relaxed);
        if (HOOK_LIKELY(is_site(site, caller)))
            return (unsigned)(site >> ADDRESS_BITS);
        if (site == 0)
            break;
    }
    return learn(f, name, caller);
}

void *hook_copy_look_up(struct hook_family *f, struct hook_fn *fn, const char *name, unsigned copy)
{
    void *p = copy == 0 ? hook_find(name, f->owners) : dlsym(f->copy[copy].scope, name);
    if (copy != 0 && base_of(p) == base_of(f)) /* our own library is never the copy */
        p = NULL;
    atomic_store_explicit(&fn->in[copy], p, memory_order_relaxed);
    return p;
}

bool hook_copy_is_called(const struct hook_family *f)
{
    size_t at = 0;
    while (at < HOOK_SITES && atomic_load_explicit(&f->site[at], memory_order_relaxed) == 0)
        at++;
    return at < HOOK_SITES;
}

bool hook_copy_is_usual(const struct hook_family *f, const char *name, const void *function)
{
    const void *usual = hook_find(name, f->owners);
    if (base_of(usual) == base_of(function))
        return true;
    if (usual != NULL)
        warn(f, usual, function, "calls of functions looked up in the latter are not recorded");
    return false;
}
