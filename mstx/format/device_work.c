/* SPDX-License-Identifier: MIT
 *
 * device_work: see the header.
 */
#include "mstx/format/device_work.h"

#include <strings.h>

/* Parts of the names that libraries of communication give to their kernels: NCCL, RCCL, HCCL, oneCCL,
 * MSCCL, NVSHMEM, the all-reduce between devices of one host in inference servers, and DeepEP. */
static const char *const comm_parts[] = {"nccl",   "rccl",  "hccl",    "hcom_",
                                         "oneccl", "msccl", "nvshmem", "cross_device_reduce",
                                         "deep_ep"};
/* Beginnings of the names of copies and fills, by CUDA and by ROCm. */
static const char *const memory_starts[] = {"memcpy",     "memset",     "hipmemcpy",
                                            "hipmemset",  "copyhostto", "copydeviceto",
                                            "copypeerto", "fillbuffer"};

static bool starts(struct ms_str s, const char *what)
{
    const size_t n = strlen(what);
    /* All beginnings are letters, so most places are ruled out by one comparison. */
    return s.n >= n && (s.p[0] | 0x20) == what[0] && strncasecmp(s.p, what, n) == 0;
}

static bool contains(struct ms_str s, const char *what)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (starts((struct ms_str){s.p + i, s.n - i}, what))
            return true;
    }
    return false;
}

enum mstx_work mstx__work_of(struct ms_str name)
{
    for (size_t i = 0; i < sizeof memory_starts / sizeof *memory_starts; i++) {
        if (starts(name, memory_starts[i]))
            return MSTX_WORK_MEMORY;
    }
    for (size_t i = 0; i < sizeof comm_parts / sizeof *comm_parts; i++) {
        if (contains(name, comm_parts[i]))
            return MSTX_WORK_COMM;
    }
    return MSTX_WORK_COMPUTE;
}

bool mstx__work_recall(struct mstx_work_memory *m, uint32_t number, struct ms_str name,
                       enum mstx_work *work)
{
    while (m->of.n <= number) {
        uint8_t *slot = ms_vec_push(&m->of);
        if (slot == NULL)
            return false;
        *slot = 0;
    }
    if (m->of.p[number] == 0)
        m->of.p[number] = (uint8_t)(1 + mstx__work_of(name));
    *work = (enum mstx_work)(m->of.p[number] - 1);
    return true;
}

const char *mstx__work_text(enum mstx_work work)
{
    static const char *const texts[MSTX_WORKS] = {"computation", "communication", "memory"};
    return work < MSTX_WORKS ? texts[work] : "other";
}
