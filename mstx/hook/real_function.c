/* SPDX-License-Identifier: MIT
 *
 * real_function: see the header.
 */
#include "mstx/hook/real_function.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

__thread unsigned hook_depth __attribute__((tls_model("initial-exec")));

struct search {
    const char *const *owners;
    const char *name;
    ElfW(Addr) self;
    void *found;
};

static bool is_owner(const char *path, const char *const *owners)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    for (; *owners != NULL; owners++) {
        if (strncmp(file, *owners, strlen(*owners)) == 0)
            return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    (void)size;
    if (info->dlpi_addr == s->self || info->dlpi_name == NULL ||
        !is_owner(info->dlpi_name, s->owners))
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == NULL)
        return 0;
    s->found = dlsym(handle, s->name);
    dlclose(handle); /* the object stays loaded: its owner holds it */
    return s->found != NULL;
}

static struct {
    struct hook_lock lock;
    char *p;
    size_t left;
} keep;

void *hook_find(const char *name, const char *const *owners)
{
    void *p = dlsym(RTLD_NEXT, name);
    Dl_info me;
    if (p != NULL)
        return p;
    struct search s = {.owners = owners, .name = name};
    if (dladdr(&keep, &me) != 0) /* skip our own library */
        s.self = (ElfW(Addr))(uintptr_t)me.dli_fbase;
    dl_iterate_phdr(look_at, &s);
    return s.found;
}

void *hook_find_variable(const char *name, const char *const *owners)
{
    void *p = dlsym(RTLD_DEFAULT, name);
    return p != NULL ? p : hook_find(name, owners);
}

void *hook_keep(size_t n)
{
    enum { BLOCK = 1 << 16 };
    size_t need = (n + 15) & ~(size_t)15;
    hook_lock(&keep.lock);
    if (need > keep.left) {
        size_t size = need > BLOCK ? (need + 4095) & ~(size_t)4095 : BLOCK;
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        keep.p = p == MAP_FAILED ? NULL : p;
        keep.left = p == MAP_FAILED ? 0 : size;
    }
    void *out = NULL;
    if (need <= keep.left) {
        out = keep.p;
        keep.p += need;
        keep.left -= need;
    }
    hook_unlock(&keep.lock);
    return out;
}
