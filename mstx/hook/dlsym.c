/* SPDX-License-Identifier: MIT
 *
 * dlsym: a library of its own, libmstx_dlsym.so, for programs that look communication functions up
 * with dlsym(handle, name), which a preload does not intercept.  It is preloaded only on request,
 * because it replaces dlsym for the whole process.
 *
 * glibc resolves RTLD_NEXT and RTLD_DEFAULT by the return address, so calls with those, and with
 * names that no hook defines, are passed on by a jump that keeps the caller's return address.
 *
 * The Makefile compiles this file with the NAME dlsym, into a folder of its own: no other object file of
 * the tree defines a function of the C library, so a tool that derives a call graph from object files
 * does not count every call of dlsym as a call of this file.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#ifndef NAME
#define NAME "mstx_dlsym"
#endif

typedef void *dlsym_fn(void *, const char *);

/* Returns the address to jump to; called by the code below with the caller's return address. */
dlsym_fn *mstx_dlsym_target(void *handle, const char *name, const void *caller);

static _Atomic(dlsym_fn *) real_dlsym;

static dlsym_fn *find_real(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    dlsym_fn *f = atomic_load(&real_dlsym);
    for (size_t i = 0; f == NULL && i < sizeof versions / sizeof *versions; i++)
        *(void **)(void *)&f = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    atomic_store(&real_dlsym, f);
    return f;
}

/* Our libraries that replace functions, where they are preloaded. */
static struct hooks {
    const char *file;
    const char *begins[9]; /* prefixes of the names that it may define */
    _Atomic(void *) handle;
} libraries[] = {
    {.file = "libmstx_hook.so.0",
     .begins = {"nccl", "Hccl", "aclrt", "cuStream", "cuCtxDestroy", "cuDevicePrimary",
                "cudaStream", "cudaDevice"}},
    {.file = "libmstx_mpi_openmpi.so.0", .begins = {"MPI_", "MPIX_", "mpi_", "mpix_"}},
    {.file = "libmstx_mpi_mpich.so.0", .begins = {"MPI_", "MPIX_", "mpi_", "mpix_"}},
};

static int may_define(const struct hooks *h, const char *name)
{
    for (const char *const *begin = h->begins; *begin != NULL; begin++) {
        if (strncmp(name, *begin, strlen(*begin)) == 0)
            return 1;
    }
    return 0;
}

static void *handle_of(struct hooks *h)
{
    void *lib = atomic_load(&h->handle);
    if (lib == NULL) {
        lib = dlopen(h->file, RTLD_NOLOAD | RTLD_LAZY);
        atomic_store(&h->handle, lib);
    }
    return lib;
}

/* Returns the hook for name, if handle really has the function, handle is not the hook library
 * itself, and the hook calls the same copy of the library. */
static void *hook_in(struct hooks *h, void *handle, const char *name)
{
    dlsym_fn *real = find_real();
    void *lib = handle_of(h);
    const void *wanted = lib != NULL && handle != lib ? real(handle, name) : NULL;
    if (wanted == NULL)
        return NULL;
    int (*reaches)(const char *, const void *);
    *(void **)(void *)&reaches = real(lib, "mstx_hook_reaches");
    return reaches != NULL && reaches(name, wanted) ? real(lib, name) : NULL;
}

static void *hook_of(void *handle, const char *name)
{
    void *hook = NULL;
    for (size_t i = 0; hook == NULL && i < sizeof libraries / sizeof *libraries; i++) {
        if (may_define(&libraries[i], name))
            hook = hook_in(&libraries[i], handle, name);
    }
    return hook;
}

static int may_be_ours(const char *name)
{
    int may = 0;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        may |= may_define(&libraries[i], name);
    return may;
}

/* Tells whether the caller is one of our libraries, which need the real functions. */
static int is_of_ours(const void *caller)
{
    Dl_info info;
    const char *slash;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return 0;
    slash = strrchr(info.dli_fname, '/');
    return strncmp(slash != NULL ? slash + 1 : info.dli_fname, "libmstx", 7) == 0;
}

/* Set by mstx_dlsym_target when it returns give_hook. */
static __thread void *found __attribute__((tls_model("initial-exec")));
static void *give_hook(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return found;
}

dlsym_fn *mstx_dlsym_target(void *handle, const char *name, const void *caller)
{
    static __thread int is_inside __attribute__((tls_model("initial-exec")));
    dlsym_fn *real = find_real();
    if (is_inside || handle == RTLD_NEXT || handle == RTLD_DEFAULT || name == NULL ||
        !may_be_ours(name) || is_of_ours(caller))
        return real;
    is_inside = 1;
    found = hook_of(handle, name);
    is_inside = 0;
    return found != NULL ? give_hook : real;
}

#if defined(__x86_64__)
__asm__(".text\n.globl " NAME "\n.type " NAME ",@function\n" NAME ":\n"
        "  endbr64\n  push %rbp\n  mov %rsp,%rbp\n  push %rdi\n  push %rsi\n"
        "  mov 8(%rbp),%rdx\n  call mstx_dlsym_target\n"
        "  pop %rsi\n  pop %rdi\n  pop %rbp\n  jmp *%rax\n.size " NAME ",.-" NAME);
#elif defined(__aarch64__)
__asm__(".text\n.globl " NAME "\n.type " NAME ",%function\n" NAME ":\n"
        "  stp x29,x30,[sp,#-32]!\n  mov x29,sp\n  stp x0,x1,[sp,#16]\n"
        "  mov x2,x30\n  bl mstx_dlsym_target\n  mov x16,x0\n"
        "  ldp x0,x1,[sp,#16]\n  ldp x29,x30,[sp],#32\n  br x16\n.size " NAME ",.-" NAME);
#else
#error "a jump that keeps the return address is needed for this processor"
#endif
