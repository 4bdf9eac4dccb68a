/* SPDX-License-Identifier: MIT
 *
 * Programs in sandboxes, without folders, descriptors or stacks, with timers, contexts and signals of their own,
 * and those that end while they end.  As odd.c, these are recorded and not, and must do the same.
 *
 *   odd_ends WAY      see ways[] at the end; odd_ends list prints their names
 */
#include "tests/programs/odd.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

/* ---- sandboxes ------------------------------------------------------------------------------- */

/* Forbids what opens, makes and enlarges files, with an error or with death. */
static long forbid(unsigned action, unsigned flags)
{
#define REFUSE(nr)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_openat),
        REFUSE(SYS_mkdirat),
        REFUSE(SYS_mkdir),
        REFUSE(SYS_fallocate),
        REFUSE(SYS_ftruncate),
        REFUSE(SYS_unlinkat),
        REFUSE(SYS_renameat2),
        REFUSE(SYS_linkat),
        REFUSE(SYS_fcntl),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int may_open_nothing(void)
{
    mark_often(10);
    printf("%ld\n", forbid(SECCOMP_RET_ERRNO | EPERM, 0));
    mark_often(100000);
    printf("%d %d\n", open("/dev/null", O_RDONLY), errno);
    return 0;
}

static int no_thread_may_open_anything(void)
{
    mark_often(10);
    printf("%ld\n", forbid(SECCOMP_RET_ERRNO | EACCES, SECCOMP_FILTER_FLAG_TSYNC));
    mark_often(100000);
    usleep(100000);
    printf("%d %d\n", open("/dev/null", O_RDONLY), errno);
    return 0;
}

static void *mark_in_a_thread(void *unused)
{
    mark_often(10);
    return unused;
}

static int a_sandbox_before_the_first_mark(void)
{
    pthread_t t;
    printf("%ld\n", forbid(SECCOMP_RET_ERRNO | ENOSYS, SECCOMP_FILTER_FLAG_TSYNC));
    mark_often(1000);
    printf("%d\n", pthread_create(&t, NULL, mark_in_a_thread, NULL));
    pthread_join(t, NULL);
    return 0;
}

/* ---- folders and descriptors ------------------------------------------------------------------ */

static int in_a_folder_that_is_gone(void)
{
    char name[] = "/tmp/msprobe-gone-XXXXXX", here[4096];
    if (mkdtemp(name) == NULL || chdir(name) != 0)
        return 1;
    rmdir(name);
    mark_often(100000);
    printf("%d\n", getcwd(here, sizeof here) == NULL ? errno : 0);
    return 0;
}

static int under_another_root(void)
{
    char name[] = "/tmp/msprobe-root-XXXXXX";
    if (mkdtemp(name) == NULL)
        return 1;
    mark_often(10);
    printf("%d\n", chroot(name) == 0 ? 0 : errno);
    printf("%d\n", chdir("/"));
    mark_often(100000);
    printf("%d %d\n", open("/proc/self/maps", O_RDONLY) < 0 && geteuid() == 0, mkdir("/own", 0700));
    rmdir("/own");
    return 0;
}

/* Started by the next way, with 0 to 8 closed and a pipe at 9. */
static int says_what_is_open(void)
{
    char text[64];
    mark_often(1000);
    usleep(50000);
    int first = open("/dev/null", O_RDONLY);
    int n = snprintf(text, sizeof text, "first %d, then %d\n", first, open("/dev/null", O_RDONLY));
    if (write(9, text, (size_t)n) != n)
        return 1;
    close(first);
    mark_often(100000);
    n = snprintf(text, sizeof text, "again %d, errors %d\n", open("/dev/null", O_RDONLY),
                 fcntl(2, F_GETFD));
    return write(9, text, (size_t)n) != n;
}

static int starts_without_standard_descriptors(void)
{
    int ends[2];
    char text[256] = "";
    if (pipe(ends) != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 9);
        for (int fd = 0; fd < 9; fd++)
            close(fd);
        execl("/proc/self/exe", "odd_ends", "says_what_is_open", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    for (size_t n = 0, got = 1; got > 0 && n < sizeof text - 1; n += got) {
        ssize_t done = read(ends[0], text + n, sizeof text - 1 - n);
        got = done > 0 ? (size_t)done : 0;
    }
    wait_for("child", pid);
    fputs(text, stdout);
    return 0;
}

/* As a server does that was started by root: it becomes nobody, and may not come back. */
static int gives_up_its_user(void)
{
    pthread_t t;
    mark_often(10);
    const bool is_root = geteuid() == 0;
    printf("%d %d %d\n", is_root ? setgroups(0, NULL) : 0,
           is_root ? setresgid(65534, 65534, 65534) : 0,
           is_root ? setresuid(65534, 65534, 65534) : 0);
    mark_often(100000);
    printf("%d %d\n", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), prctl(PR_GET_DUMPABLE));
    printf("%d %d\n", is_root && setuid(0) == 0, open("/etc/shadow", O_RDONLY) < 0 ? errno : 0);
    pthread_create(&t, NULL, mark_in_a_thread, NULL);
    pthread_join(t, NULL);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        mark_often(1000);
        _exit(getuid() == 65534 || !is_root ? 4 : 1);
    }
    wait_for("child", pid);
    return 0;
}

static int has_no_children(void)
{
    int status;
    mark_often(1000);
    usleep(50000);
    printf("%d %d\n", (int)waitpid(-1, &status, WNOHANG), errno);
    return 0;
}

/* ---- signals and timers -------------------------------------------------------------------------- */

static void hear(int sig)
{
    (void)sig;
    mark_often(1);
}

/* Each signal must reach the thread that reads, which is the only one of the program. */
static int reads_that_are_interrupted(void)
{
    struct sigaction a = {.sa_handler = hear}; /* without SA_RESTART */
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    int ends[2], interrupted = 0;
    char c;
    mark_often(1000);
    sigaction(SIGALRM, &a, NULL);
    if (pipe(ends) != 0)
        return 1;
    setitimer(ITIMER_REAL, &often, NULL);
    while (interrupted < 30)
        interrupted += read(ends[0], &c, 1) < 0 && errno == EINTR;
    setitimer(ITIMER_REAL, &never, NULL);
    struct timespec rest = {0, 1000000};
    while (nanosleep(&rest, &rest) != 0) {
    }
    printf("interrupted %d\n", interrupted);
    return 0;
}

/* A signal that every thread of the program blocks waits to be read, and kills nobody. */
static int signals_that_are_read(void)
{
    sigset_t set;
    struct signalfd_siginfo info;
    mark_often(1000);
    usleep(20000);
    sigemptyset(&set);
    for (int s = SIGUSR1; s <= SIGUSR2; s += SIGUSR2 - SIGUSR1)
        sigaddset(&set, s);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, 0);
    int sent[] = {SIGUSR1, SIGTERM, SIGUSR2, SIGRTMIN};
    for (int i = 0; i < 4; i++) {
        kill(getpid(), sent[i]);
        mark_often(10);
        printf("%d\n",
               read(fd, &info, sizeof info) == sizeof info && (int)info.ssi_signo == sent[i]);
    }
    return 0;
}

static volatile int rang;

static void ring(union sigval value)
{
    mark_often(10);
    rang += value.sival_int;
}

static int timers_that_call(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_notify_function = ring,
                             .sigev_value = {.sival_int = 1}};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    mark_often(10);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &often, NULL) != 0)
        return 1;
    while (rang < 10)
        mark_often(1);
    timer_delete(timer);
    printf("rang\n");
    return 0;
}

/* ---- stacks ---------------------------------------------------------------------------------------- */

enum { TURNS = 1000, CONTEXTS = 3, STACK = 16384 };
static ucontext_t main_context, contexts[CONTEXTS];
static int turns[CONTEXTS];

static void take_turns(int which)
{
    for (int i = 0; i < TURNS; i++) {
        uint64_t r = mstxRangeStartA("turn", NULL);
        turns[which]++;
        swapcontext(&contexts[which], &main_context);
        mstxRangeEnd(r);
    }
}

static int coroutines(void)
{
    static char stacks[CONTEXTS][STACK];
    for (int i = 0; i < CONTEXTS; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))take_turns, 1, i);
    }
    for (int i = 0; i < CONTEXTS * (TURNS + 1); i++)
        swapcontext(&main_context, &contexts[i % CONTEXTS]);
    printf("%d %d %d\n", turns[0], turns[1], turns[2]);
    return 0;
}

static int the_smallest_stack(void)
{
    pthread_attr_t attr;
    pthread_t t;
    pthread_attr_init(&attr);
    printf("%d\n", pthread_attr_setstacksize(&attr, 16384));
    printf("%d\n", pthread_create(&t, &attr, mark_in_a_thread, NULL));
    pthread_join(t, NULL);
    return 0;
}

static int leave_with(void *status)
{
    _exit((int)(intptr_t)status);
}

static int children_that_share_memory(void)
{
    static char stack[STACK];
    mark_often(100);
    fflush(stdout);
    for (int i = 1; i < 4; i++)
        wait_for("clone", clone(leave_with, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD,
                                (void *)(intptr_t)i));
    mark_often(100);
    return 0;
}

static int spawned_with_signals_and_files_of_its_own(void)
{
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t actions;
    sigset_t mask, defaults;
    pid_t pid;
    char *argv[] = {
        "sh", "-c",
        "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd | head -4; exit 6", NULL};
    mark_often(10);
    fflush(stdout);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigfillset(&defaults);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attr, &mask);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    printf("%d\n", posix_spawnp(&pid, "sh", &actions, &attr, argv, environ));
    wait_for("spawned", pid);
    return 0;
}

/* ---- ends within ends ---------------------------------------------------------------------------- */

static void exit_again(void)
{
    mark_often(10);
    exit(31);
}

static int exits_while_it_exits(void)
{
    atexit(exit_again);
    mark_often(10);
    return 30;
}

static void end_at_once(void)
{
    mark_often(10);
    printf("at once\n");
    fflush(stdout);
    _exit(32);
}

static int ends_at_once_while_it_exits(void)
{
    atexit(end_at_once);
    mark_often(10);
    return 30;
}

static void abort_here(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    fflush(stdout);
    abort();
}

static int aborts_while_it_exits(void)
{
    atexit(abort_here);
    mark_often(10);
    return 30;
}

static void *load_deeply(void *unused)
{
    void *lib = dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
    double (*cosine)(double) = (double (*)(double))dlsym(lib, "cos");
    mark_often(10);
    printf("%g\n", cosine(0));
    dlclose(lib);
    return unused;
}

static int libraries_in_a_space_of_their_own(void)
{
    pthread_t t;
    pthread_create(&t, NULL, load_deeply, NULL);
    pthread_join(t, NULL);
    void *lib = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
    double (*sine)(double) = lib != NULL ? (double (*)(double))dlsym(lib, "sin") : NULL;
    mark_often(10);
    printf("%g\n", sine != NULL ? sine(0) : -1);
    if (lib != NULL)
        dlclose(lib);
    mark_often(10);
    return 0;
}

static const struct odd_way ways[] = {
    WAY(may_open_nothing),
    WAY(no_thread_may_open_anything),
    WAY(a_sandbox_before_the_first_mark),
    WAY(in_a_folder_that_is_gone),
    WAY(under_another_root),
    WAY(says_what_is_open),
    WAY(starts_without_standard_descriptors),
    WAY(gives_up_its_user),
    WAY(has_no_children),
    WAY(reads_that_are_interrupted),
    WAY(signals_that_are_read),
    WAY(timers_that_call),
    WAY(coroutines),
    WAY(the_smallest_stack),
    WAY(children_that_share_memory),
    WAY(spawned_with_signals_and_files_of_its_own),
    WAY(exits_while_it_exits),
    WAY(ends_at_once_while_it_exits),
    WAY(aborts_while_it_exits),
    WAY(libraries_in_a_space_of_their_own),
};

int main(int argc, char **argv)
{
    return odd_main(ways, sizeof ways / sizeof *ways, argc, argv);
}
