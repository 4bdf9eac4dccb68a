/* SPDX-License-Identifier: MIT
 *
 * hook_ccl: what the hooks of NCCL, RCCL and HCCL share.  Their interfaces are alike: an
 * operation names a communicator and a stream, is put into a group between a start and an end
 * of such, and returns at once.
 *
 *     program ──ncclX, HcclX──► hook_nccl, hook_hccl (made from tables) ──► the library
 *                                          │
 *                                          ▼
 *                 hook_ccl: communicators, open groups of a thread ──► rt_comm
 *
 * A function of a table is made by HOOK_CALL from its parameters and a description; one that is
 * only passed on by HOOK_PASS, which needs to know nothing of its parameters.
 *
 * mstx/hook_find.h says how the library's own function is found.
 */
#ifndef MSTX_HOOK_CCL_H
#define MSTX_HOOK_CCL_H

#include "mstx/hook_find.h"
#include "mstx/mstx_device.h"
#include "mstx/rt_comm.h"

/* ---- communicators ----------------------------------------------------------- */

struct hook_ccl_comm {
    _Atomic(void *) handle;
    struct mstx_group *group;
    int32_t size, rank;
    _Atomic uint32_t children; /* made from it: all ranks count alike */
    char name[64];
};

/* What a library is to the hooks. */
struct hook_ccl_lib {
    enum mstx_comm_lib lib;
    enum mstx_device_kind device; /* of its streams */
    /* Ask the library about a communicator whose making was not seen; false: not now. */
    bool (*learn)(void *handle, struct mstx_group_info *info, char name[128]);
};

/* NULL: not introduced, or the library does not tell yet. */
struct hook_ccl_comm *hook_ccl_find(void *handle);
struct hook_ccl_comm *hook_ccl_of(const struct hook_ccl_lib *lib, void *handle);
/* A communicator was made. */
void hook_ccl_made(void *handle, const struct mstx_group_info *info);
/* It will be destroyed: handles are used again at once. */
void hook_ccl_gone(void *handle);

/* ---- one call ------------------------------------------------------------------ */

/* Call with c filled in but for lib and group; id for hook_ccl_end. */
uint64_t hook_ccl_begin(const struct hook_ccl_lib *lib, void *comm, struct mstx_comm_call *c);
void hook_ccl_end(uint64_t id);
/* A group is opened, and after its end closed, by this thread.  Operations in between end with
 * the outermost of them, because only then they are given to the device. */
void hook_ccl_group_start(void);
void hook_ccl_group_end(void);

/* The range of this thread that is named so and that nobody asked for yet; 0: none. */
uint64_t hook_ccl_running(const char *name);

/* Is a description wanted?  The first call is described in any case: it makes the recorder ready. */
extern const _Atomic uint8_t *hook_ccl_live;
static inline bool hook_ccl_on(void)
{
    const _Atomic uint8_t *live = hook_ccl_live;
    return live == NULL || atomic_load_explicit(live, memory_order_relaxed) != 0;
}
/* Of a call that says nothing more. */
static inline struct mstx_comm_call hook_ccl_plain(const char *name, uint8_t op)
{
    return (struct mstx_comm_call){
        .name = name, .op = op, .peer = -1, .dtype = MSTX_TYPE_NA, .reduce = MSTX_REDUCE_NONE};
}
/* A call that is not recorded counts in the sequence of its communicator. */
static inline void hook_ccl_pass(void *handle, enum mstx_comm_op op)
{
    struct hook_ccl_comm *c = hook_ccl_find(handle);
    if (c != NULL)
        mstx_comm_pass(c->group, op);
}

/*
 * HOOK_CALL(ccl, owners, missing, fn, kind, handle, params, args, facts): the function `fn`.
 * Its parameters and the call's arguments stand in parentheses.  handle: the communicator, or
 * NULL.  facts: assignments to the members of c, with commas in between, in parentheses; they
 * are evaluated only when something is recorded.
 */
#define HOOK_CALL(ccl, owners, missing, fn, kind, handle, params, args, facts)                     \
    HOOK_API int fn params;                                                                        \
    HOOK_API int fn params                                                                         \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        int(*real) params;                                                                         \
        *(void **)(void *)&real = hook_real(&slot, #fn, owners);                                   \
        if (real == NULL)                                                                          \
            return missing;                                                                        \
        if (hook_depth != 0)                                                                       \
            return real args;                                                                      \
        hook_depth = 1;                                                                            \
        uint64_t range = 0;                                                                        \
        if (hook_ccl_on()) {                                                                       \
            struct mstx_comm_call c = hook_ccl_plain(#fn, MSTX_COMM_##kind);                       \
            (void)facts;                                                                           \
            range = hook_ccl_begin(ccl, handle, &c);                                               \
        } else {                                                                                   \
            hook_ccl_pass(handle, MSTX_COMM_##kind);                                               \
        }                                                                                          \
        int rc = real args;                                                                        \
        hook_ccl_end(range);                                                                       \
        hook_depth = 0;                                                                            \
        return rc;                                                                                 \
    }
/* The same for what makes, ends and brackets: before and after are statements around the call,
 * whether something is recorded or not; after may look at rc. */
#define HOOK_MANAGE(ccl, owners, missing, fn, kind, handle, params, args, before, after)           \
    HOOK_API int fn params;                                                                        \
    HOOK_API int fn params                                                                         \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        int(*real) params;                                                                         \
        *(void **)(void *)&real = hook_real(&slot, #fn, owners);                                   \
        if (real == NULL)                                                                          \
            return missing;                                                                        \
        if (hook_depth != 0)                                                                       \
            return real args;                                                                      \
        hook_depth = 1;                                                                            \
        struct mstx_comm_call c = hook_ccl_plain(#fn, MSTX_COMM_##kind);                           \
        uint64_t range = hook_ccl_begin(ccl, handle, &c);                                          \
        before;                                                                                    \
        int rc = real args;                                                                        \
        after;                                                                                     \
        hook_ccl_end(range);                                                                       \
        hook_depth = 0;                                                                            \
        return rc;                                                                                 \
    }

/*
 * HOOK_PASS(name, owners, missing): a function that is not recorded, of any parameters: a jump
 * that leaves registers and stack as the caller set them.  name_real finds where to, or gives
 * the function `missing`, which returns the library's error.
 */
#if defined(__x86_64__)
#define HOOK_JUMP(name)                                                                            \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"        \
            "  endbr64\n  push %rbp\n  mov %rsp,%rbp\n"                                            \
            "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n"         \
            "  push %rax\n  push %r10\n  sub $128,%rsp\n"                                          \
            "  movups %xmm0,(%rsp)\n  movups %xmm1,16(%rsp)\n  movups %xmm2,32(%rsp)\n"            \
            "  movups %xmm3,48(%rsp)\n  movups %xmm4,64(%rsp)\n  movups %xmm5,80(%rsp)\n"          \
            "  movups %xmm6,96(%rsp)\n  movups %xmm7,112(%rsp)\n"                                  \
            "  call hook_real_" #name "\n  mov %rax,%r11\n"                                        \
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
            "  stp q6,q7,[sp,#192]\n  bl hook_real_" #name "\n  mov x16,x0\n"                      \
            "  ldp x0,x1,[sp,#16]\n  ldp x2,x3,[sp,#32]\n  ldp x4,x5,[sp,#48]\n"                   \
            "  ldp x6,x7,[sp,#64]\n  ldr x8,[sp,#80]\n"                                            \
            "  ldp q0,q1,[sp,#96]\n  ldp q2,q3,[sp,#128]\n  ldp q4,q5,[sp,#160]\n"                 \
            "  ldp q6,q7,[sp,#192]\n  ldp x29,x30,[sp],#224\n  br x16\n"                           \
            ".size " #name ",.-" #name "\n.popsection")
#else
#error "a jump that keeps the arguments is needed for this processor"
#endif
#define HOOK_PASS(name, owners, missing)                                                           \
    void *hook_real_##name(void);                                                                  \
    __attribute__((used)) void *hook_real_##name(void)                                             \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        void *p = hook_real(&slot, #name, owners);                                                 \
        return p != NULL ? p : (void *)(uintptr_t)(missing);                                       \
    }                                                                                              \
    HOOK_JUMP(name);

#endif
