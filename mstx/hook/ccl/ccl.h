/* SPDX-License-Identifier: MIT
 *
 * ccl: the common part of the hooks of NCCL, RCCL and HCCL.  Their interfaces are alike: an
 * operation names a communicator and a stream, may be between the start and the end of a group, and
 * returns at once.
 *
 *     program ──ncclX, HcclX──► nccl.c, hccl.c (wrappers from tables) ──► the library
 *                                          │
 *                                          ▼
 *                 ccl.c: communicators, open groups of a thread ──► mstx/rt/comm_range
 *
 * mstx/hook/wrappers.awk makes the wrappers from nccl_calls.txt and hccl_calls.txt.
 * mstx/hook/real_function.h describes how the library's own function is found,
 * mstx/hook/library_copy.h how a copy is chosen where there are several: the communicator's copy,
 * else the caller's.
 */
#ifndef MSTX_HOOK_CCL_CCL_H
#define MSTX_HOOK_CCL_CCL_H

#include "mstx/hook/library_copy.h"
#include "mstx/mstx_device.h"
#include "mstx/rt/comm_range.h"

/* ---- communicators ----------------------------------------------------------- */

struct hook_ccl_comm {
    _Atomic(void *) handle;
    struct mstx_group *group;
    int32_t size, rank;
    _Atomic uint32_t children; /* communicators made from it: all ranks count alike */
    uint8_t copy, lib;         /* copy of the library that made it; enum mstx_comm_lib */
    char name[64];
};

/* Description of a library for the hooks. */
struct hook_ccl_lib {
    struct hook_family *family;
    enum mstx_device_kind device;     /* kind of its streams */
    enum mstx_comm_lib (*kind)(void); /* kind of the copy that the current call is for */
    /* Queries the library about a communicator whose creation was missed; false: not possible
     * now. */
    bool (*learn)(void *handle, struct mstx_group_info *info, char name[128]);
};

/* hook_ccl_find finds a known communicator, hook_ccl_of also queries the library. NULL: unknown, or
 * the library does not answer yet. */
struct hook_ccl_comm *hook_ccl_find(void *handle);
struct hook_ccl_comm *hook_ccl_of(const struct hook_ccl_lib *lib, void *handle);
/* Registers a new communicator, made by the copy of the library that the current call is for. */
void hook_ccl_made(const struct hook_ccl_lib *lib, void *handle,
                   const struct mstx_group_info *info);
/* Returns the sum of an array with a number for each rank of the communicator; 0: no array, or the
 * size is unknown. */
uint64_t hook_ccl_sum(const struct hook_ccl_lib *lib, void *handle, const void *counts);
/* Removes a communicator before its destruction, since handles are reused at once. */
void hook_ccl_gone(void *handle);

/* ---- copies of the library ----------------------------------------------------- */

/* Returns the copy that a call of `name` is for, by its communicator (NULL: none) and its return
 * address, and keeps it for the duration of the call. */
static inline unsigned hook_ccl_copy(const struct hook_ccl_lib *lib, void *handle, const char *name,
                                     const void *caller)
{
    const struct hook_ccl_comm *c = hook_ccl_find(handle);
    return c != NULL ? c->copy : hook_copy_of(lib->family, name, caller);
}
extern struct hook_family hook_nccl_family, hook_hccl_family;
extern __thread unsigned hook_ccl_copy_now __attribute__((tls_model("initial-exec")));

/* Finds a function of the library for the hooks' own use; NULL: that copy has none. */
#define HOOK_CCL_FN(ccl, name, args)                                                               \
    ({                                                                                             \
        static struct hook_fn own_fn;                                                              \
        int(*f) args;                                                                              \
        *(void **)(void *)&f = hook_copy_fn((ccl)->family, &own_fn, #name, hook_ccl_copy_now);     \
        f;                                                                                         \
    })

/* ---- one call ------------------------------------------------------------------ */

/* Begins a call; c is filled in except lib and group. Returns the id for hook_ccl_end. */
uint64_t hook_ccl_begin(const struct hook_ccl_lib *lib, void *comm, struct mstx_comm_call *c);
void hook_ccl_end(uint64_t id);
/* Records a call of which only the name and kind are known. */
void hook_ccl_count(const struct hook_ccl_lib *lib, const char *name, uint8_t op);
/* Opens a group, and closes it after its end, on this thread. Operations within end with the
 * outermost group, because only then they are submitted to the device. */
void hook_ccl_group_start(void);
void hook_ccl_group_end(void);

/* Returns the open range of this thread with that name that was not returned before; 0: none. */
uint64_t hook_ccl_running(const char *name);

/* Tells whether a call has to be described. The first call is described in any case, which
 * initializes the recorder. */
extern const _Atomic uint8_t *hook_ccl_live;
static inline bool hook_ccl_on(void)
{
    const _Atomic uint8_t *live = hook_ccl_live;
    return live == NULL || atomic_load_explicit(live, memory_order_relaxed) != 0;
}
/* Describes a call that has no parameters of interest. */
static inline struct mstx_comm_call hook_ccl_plain(const char *name, uint8_t op)
{
    return (struct mstx_comm_call){
        .name = name, .op = op, .peer = -1, .dtype = MSTX_TYPE_NA, .reduce = MSTX_REDUCE_NONE};
}
/* Counts a call that is not recorded in the sequence of its communicator. */
static inline void hook_ccl_pass(void *handle, enum mstx_comm_op op)
{
    struct hook_ccl_comm *c = hook_ccl_find(handle);
    if (c != NULL)
        mstx_comm_pass(c->group, op);
}

/* HOOK_JUMP(name) defines the function `name` with unknown parameters, of which only the call is
 * counted: code that leaves registers and stack as the caller set them, calls hook_real_NAME for
 * the library's own function, and jumps there. wrappers.awk writes hook_real_NAME. */
#if defined(__x86_64__)
#define HOOK_JUMP(name)                                                                            \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"        \
            "  endbr64\n  push %rbp\n  mov %rsp,%rbp\n"                                            \
            "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n"         \
            "  push %rax\n  push %r10\n  sub $128,%rsp\n"                                          \
            "  movups %xmm0,(%rsp)\n  movups %xmm1,16(%rsp)\n  movups %xmm2,32(%rsp)\n"            \
            "  movups %xmm3,48(%rsp)\n  movups %xmm4,64(%rsp)\n  movups %xmm5,80(%rsp)\n"          \
            "  movups %xmm6,96(%rsp)\n  movups %xmm7,112(%rsp)\n"                                  \
            "  mov 8(%rbp),%rdi\n  call hook_real_" #name "\n  mov %rax,%r11\n"                    \
            "  movups (%rsp),%xmm0\n  movups 16(%rsp),%xmm1\n  movups 32(%rsp),%xmm2\n"            \
            "  movups 48(%rsp),%xmm3\n  movups 64(%rsp),%xmm4\n  movups 80(%rsp),%xmm5\n"          \
            "  movups 96(%rsp),%xmm6\n  movups 112(%rsp),%xmm7\n  add $128,%rsp\n"                 \
            "  pop %r10\n  pop %rax\n  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n"               \
            "  pop %rsi\n  pop %rdi\n  pop %rbp\n  jmp *%r11\n"                                    \
            ".size " #name ",.-" #name "\n.popsection")
#elif defined(__aarch64__)
#define HOOK_JUMP(name)                                                                            \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ",%function\n" #name ":\n"        \
            "  stp x29,x30,[sp,#-224]!\n  mov x29,sp\n"                                            \
            "  stp x0,x1,[sp,#16]\n  stp x2,x3,[sp,#32]\n  stp x4,x5,[sp,#48]\n"                   \
            "  stp x6,x7,[sp,#64]\n  str x8,[sp,#80]\n"                                            \
            "  stp q0,q1,[sp,#96]\n  stp q2,q3,[sp,#128]\n  stp q4,q5,[sp,#160]\n"                 \
            "  stp q6,q7,[sp,#192]\n  mov x0,x30\n  bl hook_real_" #name "\n  mov x16,x0\n"        \
            "  ldp x0,x1,[sp,#16]\n  ldp x2,x3,[sp,#32]\n  ldp x4,x5,[sp,#48]\n"                   \
            "  ldp x6,x7,[sp,#64]\n  ldr x8,[sp,#80]\n"                                            \
            "  ldp q0,q1,[sp,#96]\n  ldp q2,q3,[sp,#128]\n  ldp q4,q5,[sp,#160]\n"                 \
            "  ldp q6,q7,[sp,#192]\n  ldp x29,x30,[sp],#224\n  br x16\n"                           \
            ".size " #name ",.-" #name "\n.popsection")
#else
#error "a jump that keeps the arguments is needed for this processor"
#endif

#endif
