/* SPDX-License-Identifier: MIT
 *
 * mapsafe: the SIGBUS handler maps a page of zeros where a page of the file is missing, and the
 * access is repeated.
 */
#include "probe/base/mapsafe.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static __thread volatile sig_atomic_t depth, torn;
static struct sigaction before;
static size_t page_size;

static bool put_zeros(const void *address)
{
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)(page_size - 1);
    return mmap((void *)page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

/* Maps a page of zeros and returns. For any other SIGBUS the previous handler is restored; on
 * return the access faults again and reaches that handler. */
static void on_bus(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (depth > 0 && info->si_code == BUS_ADRERR && put_zeros(info->si_addr)) {
        torn = 1;
        return;
    }
    sigaction(sig, &before, NULL);
    if (info->si_code <= 0) /* sent by kill or sigqueue: does not recur by itself */
        raise(sig);
}

static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, &before);
}

void ms_mapsafe_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    if (depth++ == 0)
        torn = 0;
}

bool ms_mapsafe_end(void)
{
    depth--;
    return torn != 0;
}
