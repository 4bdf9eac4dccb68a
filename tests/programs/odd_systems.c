/* SPDX-License-Identifier: MIT
 *
 * Programs that ask the kernel for more than most do: namespaces, processes made without the C library,
 * jumps and cancellations out of a mark, traps of floating point, signals with values.  As odd.c, these
 * are recorded and not, and must do the same.
 *
 *   odd_systems WAY      see ways[] at the end; odd_systems list prints their names
 */
#include "tests/programs/odd.h"

#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- namespaces and processes ------------------------------------------------------------------ */

/* In each of several namespaces the process is number 1, as programs in containers are. */
static int first_in_their_own_namespaces(void)
{
    mark_often(100);
    fflush(stdout);
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            const int made = unshare(CLONE_NEWPID);
            pid_t inner = fork();
            if (inner == 0) {
                mark_often(10000);
                _exit(made == 0 && getpid() == 1 ? 5 : 6);
            }
            int status = 0;
            waitpid(inner, &status, 0);
            _exit(WEXITSTATUS(status) + i);
        }
        wait_for("namespace", pid);
    }
    mark_often(100);
    return 0;
}

static int folders_and_names_of_its_own(void)
{
    mark_often(1000);
    printf("%d %d %d\n", unshare(CLONE_FS), unshare(CLONE_NEWNS), unshare(CLONE_NEWUTS));
    printf("%d\n", unshare(CLONE_FILES));
    mark_often(200000);
    return 0;
}

/* The C library, and whoever asks it to be told of forks, learns nothing of these children. */
static int forks_without_the_library(void)
{
    mark_often(100);
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0) {
            mark_often(100000);
            _exit(10 + i);
        }
        mark_often(100000);
        wait_for("child", pid);
    }
    return 0;
}

static int end_with(void *status)
{
    return (int)(intptr_t)status;
}

static int children_in_the_same_memory(void)
{
    static char stack[4][65536];
    pid_t pid[4];
    mark_often(100);
    fflush(stdout);
    for (int i = 0; i < 4; i++)
        pid[i] = clone(end_with, stack[i] + sizeof stack[i], CLONE_VM | CLONE_FILES | SIGCHLD,
                       (void *)(intptr_t)(20 + i));
    mark_often(100000);
    for (int i = 0; i < 4; i++)
        wait_for("sharer", pid[i]);
    return 0;
}

static int a_child_of_vfork_marks(void)
{
    mark_often(100);
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            mark_often(1000);
            execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
            _exit(1);
        }
        wait_for("vfork", pid);
        mark_often(1000);
    }
    return 0;
}

static int says_hello(void)
{
    mark_often(1000);
    printf("hello\n");
    return 0;
}

static int fails_to_become_another(void)
{
    static char long_word[1 << 18], *many[64];
    mark_often(1000);
    memset(long_word, 'a', sizeof long_word - 1);
    for (int i = 0; i < 63; i++)
        many[i] = long_word;
    errno = 0;
    printf("%d", execl("/nowhere", "nowhere", (char *)NULL));
    printf(" %d\n", errno);
    printf("%d", execl("/", "folder", (char *)NULL));
    printf(" %d\n", errno);
    printf("%d", execv("/bin/true", many));
    printf(" %d\n", errno);
    mark_often(100000);
    int self = open("/proc/self/exe", O_RDONLY);
    int copy = memfd_create("program", MFD_CLOEXEC);
    char buffer[65536];
    for (ssize_t n; (n = read(self, buffer, sizeof buffer)) > 0;) {
        if (write(copy, buffer, (size_t)n) != n)
            return 1;
    }
    char *argv[] = {"odd_systems", "says_hello", NULL};
    extern char **environ;
    fflush(stdout);
    fexecve(copy, argv, environ);
    return 1;
}

/* ---- what a program may read of itself ------------------------------------------------------------ */

static void tell_attributes(void)
{
    char name[17] = "";
    int child = 0, reaper = 0;
    cpu_set_t cpus;
    prctl(PR_GET_NAME, name);
    prctl(PR_GET_PDEATHSIG, &child);
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("%s %d %d %d %d %d %d %d %d %d\n", name, child, reaper, prctl(PR_GET_DUMPABLE),
           prctl(PR_GET_KEEPCAPS), (int)prctl(PR_GET_TIMERSLACK), CPU_COUNT(&cpus),
           getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    for (int which = 0; which < RLIMIT_NLIMITS; which++) {
        struct rlimit limit = {0, 0};
        getrlimit((__rlimit_resource_t)which, &limit);
        printf("%llu %llu\n", (unsigned long long)limit.rlim_cur,
               (unsigned long long)limit.rlim_max);
    }
}

static int attributes(void)
{
    tell_attributes();
    prctl(PR_SET_NAME, "odd name");
    prctl(PR_SET_TIMERSLACK, 12345);
    mark_often(100000);
    usleep(50000);
    tell_attributes();
    return 0;
}

static int streams_that_are_closed(void)
{
    mark_often(1000);
    printf("before\n");
    fflush(stdout);
    int kept = dup(1);
    fclose(stdout);
    fclose(stderr);
    fclose(stdin);
    mark_often(100000);
    usleep(50000);
    const int fd = open("/dev/null", O_RDONLY);
    const int n = dprintf(kept, "lowest %d\n", fd);
    return n > 0 ? 4 : 5;
}

static int a_full_device_is_told_at_the_end(void)
{
    mark_often(1000);
    if (freopen("/dev/full", "w", stdout) == NULL)
        return 1;
    printf("nobody reads this\n");
    mark_often(1000);
    return fflush(stdout) == 0 ? 0 : 10 + (errno == ENOSPC);
}

/* ---- floating point ---------------------------------------------------------------------------------- */

static int traps_of_floating_point(void)
{
    feenableexcept(FE_ALL_EXCEPT);
    mark_often(200000);
    usleep(300000);
    mark_often(1000);
    fedisableexcept(FE_ALL_EXCEPT);
    printf("flags %d\n", fetestexcept(FE_ALL_EXCEPT));
    return 0;
}

static int numbers_rounded_upward(void)
{
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    mark_often(100000);
    printf("%d %d\n", fegetround() == FE_UPWARD, fetestexcept(FE_ALL_EXCEPT));
    return 0;
}

/* ---- out of the middle of a mark ------------------------------------------------------------------------ */

static sigjmp_buf out;
static volatile sig_atomic_t jumps;

static void jump(int sig)
{
    (void)sig;
    jumps++;
    siglongjmp(out, 1);
}

/* A time limit as old programs have it: the handler jumps out of whatever runs. */
static int jumps_out_of_marks(void)
{
    struct itimerval soon = {{0, 0}, {0, 300}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, jump);
    mark_often(1000);
    for (volatile int i = 0; i < 400; i++) {
        if (sigsetjmp(out, 1) == 0) {
            soon.it_value.tv_usec = 200 + i % 50;
            setitimer(ITIMER_REAL, &soon, NULL);
            for (;;)
                mark_often(1);
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("jumps %d\n", (int)jumps);
    return 0;
}

static void *mark_until_cancelled(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        mark_often(1);
    return unused;
}

static int cancelled_in_the_middle_of_marks(void)
{
    int cancelled = 0;
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        void *how = NULL;
        if (pthread_create(&t, NULL, mark_until_cancelled, NULL) != 0)
            return 1;
        usleep((useconds_t)(100 + i));
        pthread_cancel(t);
        pthread_join(t, &how);
        cancelled += how == PTHREAD_CANCELED;
    }
    mark_often(1000);
    printf("cancelled %d\n", cancelled);
    return 0;
}

/* ---- signals ------------------------------------------------------------------------------------------------ */

static volatile int values[64], value_count;

static void keep_value(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    mark_often(3);
    if (value_count < 64)
        values[value_count++] = info->si_value.sival_int;
}

static int queued_signals_with_values(void)
{
    struct sigaction a = {.sa_sigaction = keep_value, .sa_flags = SA_SIGINFO};
    sigset_t all;
    mark_often(1000);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        sigaction(s, &a, NULL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 40; i++)
        sigqueue(getpid(), SIGRTMIN + i % 4, (union sigval){.sival_int = i});
    mark_often(1000);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    for (int i = 0; i < value_count; i++)
        printf("%d ", values[i]);
    printf("of %d, %d to %d\n", value_count, SIGRTMIN, SIGRTMAX);
    return 0;
}

enum { PAGES = 64 };
static char *barrier;
static volatile int faults;

static void let_write(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)4095;
    if (page < (uintptr_t)barrier || page >= (uintptr_t)barrier + PAGES * 4096)
        _exit(99);
    mark_often(10);
    faults++;
    mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
}

static void *write_all(void *unused)
{
    static _Thread_local char stack[65536];
    stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&s, NULL);
    for (int i = 0; i < PAGES; i++) {
        barrier[i * 4096] = 1;
        mark_often(10);
    }
    return unused;
}

/* As a collector of garbage or a cache over a file does: the handler of SIGSEGV, on a stack of its own, lets it be. */
static int pages_that_are_written_late(void)
{
    struct sigaction a = {.sa_sigaction = let_write, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    pthread_t t;
    mark_often(10);
    sigaction(SIGSEGV, &a, NULL);
    barrier = mmap(NULL, PAGES * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    write_all(NULL);
    mprotect(barrier, PAGES * 4096, PROT_READ);
    pthread_create(&t, NULL, write_all, NULL);
    pthread_join(t, NULL);
    printf("faults %d\n", faults);
    return 0;
}

static volatile int late;

static void is_late(int sig)
{
    (void)sig;
    mark_often(10);
    late = 1;
}

static int no_more_time_of_the_processor(void)
{
    struct rlimit little = {1, 5};
    signal(SIGXCPU, is_late);
    mark_often(1000);
    setrlimit(RLIMIT_CPU, &little);
    while (!late)
        mark_often(1000);
    printf("late\n");
    return 0;
}

static pthread_key_t key;

static void mark_at_the_end(void *round)
{
    mark_often(100);
    if ((intptr_t)round < 3)
        pthread_setspecific(key, (void *)((intptr_t)round + 1));
}

static void *hold_a_value(void *unused)
{
    pthread_setspecific(key, (void *)1);
    return unused;
}

/* Threads whose first mark comes when their values are freed. */
static int marks_of_threads_that_are_over(void)
{
    pthread_key_create(&key, mark_at_the_end);
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        pthread_create(&t, NULL, hold_a_value, NULL);
        pthread_join(t, NULL);
    }
    mark_often(10);
    printf("over\n");
    return 0;
}

__attribute__((constructor(101))) static void mark_before_main(void)
{
    mark_often(10);
}

__attribute__((destructor(101))) static void mark_after_main(void)
{
    mark_often(10);
}

static const struct odd_way ways[] = {
    WAY(first_in_their_own_namespaces),
    WAY(folders_and_names_of_its_own),
    WAY(forks_without_the_library),
    WAY(children_in_the_same_memory),
    WAY(a_child_of_vfork_marks),
    WAY(says_hello),
    WAY(fails_to_become_another),
    WAY(attributes),
    WAY(streams_that_are_closed),
    WAY(a_full_device_is_told_at_the_end),
    WAY(traps_of_floating_point),
    WAY(numbers_rounded_upward),
    WAY(jumps_out_of_marks),
    WAY(cancelled_in_the_middle_of_marks),
    WAY(queued_signals_with_values),
    WAY(pages_that_are_written_late),
    WAY(no_more_time_of_the_processor),
    WAY(marks_of_threads_that_are_over),
};

int main(int argc, char **argv)
{
    return odd_main(ways, sizeof ways / sizeof *ways, argc, argv);
}
