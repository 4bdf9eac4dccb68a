/* SPDX-License-Identifier: MIT
 *
 * rt_sample: where a thread that runs is in the program, by one sample of the kernel's
 * performance counters.  The thread is neither stopped nor signalled; where the kernel does not
 * allow it (perf_event_paranoid above 2, a strict container) there is no answer.
 */
#include "mstx/rt.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

#if defined(__x86_64__)
enum { SP = PERF_REG_X86_SP, PC = PERF_REG_X86_IP };
#elif defined(__aarch64__)
enum { SP = PERF_REG_ARM64_SP, PC = PERF_REG_ARM64_PC };
#else
enum { SP = 0, PC = 1 };
#endif

enum {
    PAGES = 1 + 8,       /* the head and a ring */
    PERIOD_NS = 1000000, /* of the thread's time between samples */
    TRIES = 50,          /* of 2 ms: it may get little of the processor */
};

/* A sample with the two registers, in ascending order of their numbers. */
struct sample {
    struct perf_event_header head;
    uint64_t abi, low, high;
};

static bool take(const struct perf_event_mmap_page *page, uint64_t *sp, uint64_t *pc)
{
    struct sample s;
    if (__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) < sizeof s)
        return false;
    memcpy(&s, (const char *)page + page->data_offset, sizeof s);
    if (s.head.type != PERF_RECORD_SAMPLE || s.abi == PERF_SAMPLE_REGS_ABI_NONE)
        return false;
    *sp = SP < PC ? s.low : s.high;
    *pc = SP < PC ? s.high : s.low;
    return true;
}

bool rt_thread_sample(uint32_t tid, uint64_t *sp, uint64_t *pc)
{
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_SW_CPU_CLOCK,
                                .sample_period = PERIOD_NS,
                                .sample_type = PERF_SAMPLE_REGS_USER,
                                .exclude_kernel = 1,
                                .exclude_hv = 1,
                                .sample_regs_user = 1ull << SP | 1ull << PC};
    const struct timespec pause = {.tv_nsec = 2000000};
    const size_t bytes = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    int fd = (int)syscall(SYS_perf_event_open, &a, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return false;
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool found = false;
    for (int i = 0; page != MAP_FAILED && i < TRIES && !found; i++) {
        nanosleep(&pause, NULL);
        found = take(page, sp, pc);
    }
    if (page != MAP_FAILED)
        munmap(page, bytes);
    close(fd);
    return found;
}
