/* SPDX-License-Identifier: MIT
 *
 * Programs that do what few programs do.  Each prints what it sees of itself, and marks; its output,
 * its exit status and the signal that ends it must be the same whether it is recorded or not.
 *
 *   odd WAY      see ways[] at the end; odd list prints their names
 */
#include "tests/programs/odd.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *self;

/* ---- processes ------------------------------------------------------------------------------ */

static int forks(void)
{
    mark_often(10);
    for (int i = 0; i < 5; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            mark_often(1000);
            if (i == 2)
                raise(SIGKILL);
            if (i == 3)
                abort();
            _exit(i);
        }
        wait_for("child", pid);
    }
    return 0;
}

/* Pauses, because marks without a pause fill a disk faster than children are made and waited for. */
static void *mark_until_told(void *told)
{
    while (!*(volatile bool *)told) {
        mark_often(10);
        usleep(100);
    }
    return NULL;
}

static int forks_while_threads_mark(void)
{
    bool told = false;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, mark_until_told, &told);
    fflush(stdout);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            mark_often(10);
            exit(3);
        }
        wait_for("child", pid);
    }
    told = true;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int spawns(void)
{
    pid_t pid;
    char *argv[] = {"sh", "-c", "exit 7", NULL};
    mark_often(1);
    printf("spawn %d\n", posix_spawnp(&pid, "sh", NULL, NULL, argv, environ));
    wait_for("spawned", pid);
    fflush(stdout);
    pid = vfork();
    if (pid == 0)
        _exit(9);
    wait_for("vforked", pid);
    printf("system %d\n", system("exit 4"));
    return 0;
}

static int replaces_itself(void)
{
    mark_often(100);
    fflush(stdout);
    execl(self, self, "descriptors", (char *)NULL);
    return 1;
}

static int replaces_itself_without_an_environment(void)
{
    char *const argv[] = {(char *)self, "descriptors", NULL}, *const empty[] = {NULL};
    mark_often(100);
    fflush(stdout);
    execve(self, argv, empty);
    return 1;
}

static int becomes_a_daemon(void)
{
    mark_often(10);
    fflush(stdout);
    if (fork() != 0)
        return 0;
    setsid();
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    mark_often(1000);
    _exit(0);
}

static int is_traced(void)
{
    pid_t pid = fork();
    int status, stops = 0;
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        mark_often(100);
        raise(SIGUSR2);
        _exit(5);
    }
    while (waitpid(pid, &status, 0) > 0 && WIFSTOPPED(status)) {
        int sig = WSTOPSIG(status);
        stops++;
        printf("stopped by %d\n", sig);
        ptrace(PTRACE_CONT, pid, NULL, (void *)(long)(sig == SIGSTOP || sig == SIGUSR2 ? 0 : sig));
    }
    tell_status("traced", status);
    return stops;
}

/* ---- what is open, set and limited ----------------------------------------------------------- */

static int descriptors(void)
{
    struct stat st;
    int first = open("/dev/null", O_RDONLY);
    mark_often(100);
    for (int fd = 0; fd < 3; fd++)
        printf("%d is open: %d\n", fd, fstat(fd, &st) == 0);
    printf("the next is the lowest: %d\n", first <= open("/dev/null", O_RDONLY));
    return 0;
}

/* The recorder has the lowest number for some microseconds while it opens a file of its own, so the
 * program asks again. */
static int open_lowest(int wanted)
{
    int fd = open("/dev/null", O_RDONLY);
    for (int i = 0; i < 1000 && fd > wanted; i++) {
        close(fd);
        usleep(100);
        fd = open("/dev/null", O_RDONLY);
    }
    return fd;
}

static int closes_what_it_does_not_know(void)
{
    mark_often(10);
    for (int fd = 3; fd < 4096; fd++)
        close(fd);
    mark_often(10000);
    int a = open_lowest(3);
    mark_often(10000);
    printf("lowest %d, still open %d\n", a, fcntl(a, F_GETFD) >= 0);
    return 0;
}

/* Opens a file of the program's own at every number up to 1023, those of the recorder included. */
static int fill_numbers(int fd)
{
    int taken = 0;
    for (int other = 3; other < 1024; other++)
        taken += other == fd || dup2(fd, other) == other;
    return taken;
}

/* Calls the recorder as a hook of communication does at its borders; plain runs have none. */
static void sample_use(int count)
{
    void (*sample)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "mstx_use_sample");
    for (int i = 0; sample != NULL && i < count; i++) {
        sample();
        usleep(500);
    }
}

static void *sample_and_end(void *unused)
{
    sample_use(20);
    return unused;
}

/* The file is a pipe: it has neither a place nor a size, and what is read is gone. */
static int takes_the_numbers_of_others(void)
{
    int ends[2];
    char text[16] = "";
    pthread_t t;
    mark_often(10);
    sample_use(3);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    if (pipe(ends) != 0 || write(ends[1], "mine", 4) != 4)
        return 1;
    dup2(ends[1], 1023);
    int taken = fill_numbers(ends[0]);
    mark_often(100000);
    sample_use(20);
    pthread_create(&t, NULL, sample_and_end, NULL);
    pthread_join(t, NULL);
    int open = 0, n = (int)read(ends[0], text, sizeof text);
    for (int fd = 3; fd < 1023; fd++)
        open += fcntl(fd, F_GETFD) >= 0;
    printf("taken %d, still open %d, read %d: %s\n", taken, open, n, text);
    return 0;
}

/* Names of the files that are open at the lowest numbers, which the program may count on. */
static int lowest_numbers(void)
{
    char name[64], file[256];
    mark_often(10000);
    sample_use(3);
    usleep(300000); /* the recorder's own threads have begun */
    for (int fd = 0; fd < 100; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, file, sizeof file - 1);
        if (n > 0)
            printf("%d: %.*s\n", fd, fd < 3 ? 0 : (int)n, file);
    }
    return 0;
}

static int no_more_descriptors(void)
{
    struct rlimit none = {3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    mark_often(1000);
    printf("errno is %d\n", open("/dev/null", O_RDONLY) < 0 ? errno : 0);
    return 0;
}

static int no_more_files(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    mark_often(100000);
    printf("goes on\n");
    return 0;
}

static int no_more_memory(void)
{
    struct rlimit little = {64 << 20, 64 << 20};
    setrlimit(RLIMIT_AS, &little);
    mark_often(100000);
    printf("goes on\n");
    return 0;
}

static void *mark_little(void *unused)
{
    mark_often(100);
    return unused;
}

static int no_more_threads(void)
{
    pthread_t t;
    mark_often(10);
    for (int i = 0; i < 300; i++) {
        if (pthread_create(&t, NULL, mark_little, NULL) != 0)
            return 1;
        pthread_join(t, NULL);
    }
    printf("300 threads\n");
    return 0;
}

static int small_stacks(void)
{
    pthread_attr_t attr;
    pthread_t t;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384 + 8192);
    for (int i = 0; i < 10; i++) {
        printf("%d\n", pthread_create(&t, &attr, mark_little, NULL));
        pthread_join(t, NULL);
    }
    return 0;
}

static int an_empty_environment(void)
{
    clearenv();
    mark_often(10);
    printf("%d\n", environ == NULL || environ[0] == NULL);
    return 0;
}

static int folder_and_mask(void)
{
    char here[4096];
    umask(077);
    printf("%d\n", chdir("/"));
    mark_often(100);
    printf("%s %o\n", getcwd(here, sizeof here), (unsigned)umask(0));
    return 0;
}

/* ---- signals ------------------------------------------------------------------------------ */

static int dispositions(void)
{
    sigset_t mask;
    mark_often(100);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int s = 1; s < 65; s++) {
        struct sigaction a;
        if (sigaction(s, NULL, &a) == 0)
            printf("%d: %d %x %d\n", s,
                   a.sa_handler == SIG_DFL   ? 0
                   : a.sa_handler == SIG_IGN ? 1
                                             : 2,
                   (unsigned)a.sa_flags, sigismember(&mask, s));
    }
    return 0;
}

static volatile sig_atomic_t heard;

static void hear(int s)
{
    (void)s;
    int before = errno;
    mark_often(1);
    heard += errno == before;
}

static int handlers_that_mark(void)
{
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, hear);
    setitimer(ITIMER_REAL, &often, NULL);
    while (heard < 50)
        mark_often(10);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("heard\n");
    return 0;
}

static int handlers_on_a_stack_of_their_own(void)
{
    static char stack[32768];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction a = {.sa_handler = hear, .sa_flags = SA_ONSTACK};
    sigaltstack(&own, NULL);
    sigaction(SIGUSR1, &a, NULL);
    raise(SIGUSR1);
    printf("heard %d\n", (int)heard);
    return 0;
}

static void *mark_and_tell_errno(void *unused)
{
    errno = 77;
    mstxMarkA("the first", NULL);
    printf("errno %d\n", errno);
    mark_often(100000); /* more than one segment */
    printf("errno %d\n", errno);
    mstxDomainMarkA(mstxDomainCreateA("domain"), "mark", NULL);
    printf("errno %d\n", errno);
    return unused;
}

static int errors_are_left_alone(void)
{
    pthread_t t;
    mark_and_tell_errno(NULL);
    pthread_create(&t, NULL, mark_and_tell_errno, NULL);
    return pthread_join(t, NULL);
}

static int dies_by(int sig)
{
    mark_often(100);
    printf("last words\n");
    fflush(stdout);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    raise(sig);
    return 0;
}
static int is_killed(void)
{
    return dies_by(SIGKILL);
}
static int is_ended(void)
{
    return dies_by(SIGTERM);
}
static int is_aborted(void)
{
    return dies_by(SIGABRT);
}
static int breaks_a_pipe(void)
{
    return dies_by(SIGPIPE);
}

static int reads_nothing(void)
{
    mark_often(100);
    fflush(stdout);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    volatile int *volatile nothing = NULL;
    return *nothing;
}

/* ---- threads ------------------------------------------------------------------------------ */

static pthread_key_t key;

static void mark_at_the_end(void *value)
{
    mark_often(10);
    if ((uintptr_t)value > 1)
        pthread_setspecific(key, (void *)((uintptr_t)value - 1));
}

static void *live_shortly(void *number)
{
    long n = (long)number;
    pthread_setspecific(key, (void *)4);
    mark_often(100);
    if (n % 3 == 0)
        pthread_exit(NULL);
    if (n % 3 == 1)
        pthread_cancel(pthread_self());
    pthread_testcancel();
    return NULL;
}

static int threads_that_die(void)
{
    pthread_t threads[60];
    void *how;
    int cancelled = 0;
    pthread_key_create(&key, mark_at_the_end);
    for (long i = 0; i < 60; i++)
        pthread_create(&threads[i], NULL, live_shortly, (void *)i);
    for (int i = 0; i < 60; i++) {
        pthread_join(threads[i], &how);
        cancelled += how == PTHREAD_CANCELED;
    }
    printf("cancelled %d\n", cancelled);
    return 0;
}

static void *end_all(void *unused)
{
    mark_often(10);
    exit(12);
    return unused;
}

static int a_thread_that_ends_the_process(void)
{
    pthread_t t;
    bool told = false;
    pthread_create(&t, NULL, mark_until_told, &told);
    pthread_create(&t, NULL, end_all, NULL);
    for (;;)
        pause();
}

static int the_first_thread_leaves(void)
{
    pthread_t t;
    mark_often(10);
    pthread_create(&t, NULL, end_all, NULL);
    pthread_exit(NULL);
}

static void say_goodbye(void)
{
    mark_often(100);
    printf("goodbye\n");
}

static int functions_at_exit(void)
{
    atexit(say_goodbye);
    mark_often(10);
    return 21;
}

static int leaves_quickly(void)
{
    at_quick_exit(say_goodbye);
    mark_often(10);
    quick_exit(22);
}

/* ---- libraries and memory --------------------------------------------------------------------- */

static int libraries_that_come_and_go(void)
{
    for (int i = 0; i < 100; i++) {
        void *lib = dlopen("libm.so.6", RTLD_NOW | (i % 2 ? RTLD_LOCAL : RTLD_GLOBAL));
        double (*cosine)(double) = (double (*)(double))dlsym(lib, "cos");
        mark_often(10);
        if (i == 99)
            printf("%g\n", cosine(0));
        dlclose(lib);
    }
    printf("missing: %d\n", dlopen("no-such-library.so", RTLD_NOW) == NULL && dlerror() != NULL &&
                                dlerror() == NULL);
    return 0;
}

static int memory_locked_and_forbidden(void)
{
    mark_often(10);
    printf("%d\n", mprotect(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096,
                            PROT_NONE));
    char *p = malloc(1000000);
    memset(p, 1, 1000000);
    mark_often(10);
    free(p);
    return 0;
}

static int sums_in_parallel(void)
{
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(4)
    for (int i = 0; i < 1000; i++) {
        mstxMarkA("in parallel", NULL);
        sum += i;
    }
    printf("%ld\n", sum);
    return 0;
}

static const struct odd_way ways[] = {
    WAY(forks),
    WAY(forks_while_threads_mark),
    WAY(spawns),
    WAY(replaces_itself),
    WAY(replaces_itself_without_an_environment),
    WAY(becomes_a_daemon),
    WAY(is_traced),
    WAY(descriptors),
    WAY(closes_what_it_does_not_know),
    WAY(takes_the_numbers_of_others),
    WAY(lowest_numbers),
    WAY(no_more_descriptors),
    WAY(no_more_files),
    WAY(no_more_memory),
    WAY(no_more_threads),
    WAY(small_stacks),
    WAY(an_empty_environment),
    WAY(folder_and_mask),
    WAY(dispositions),
    WAY(handlers_that_mark),
    WAY(handlers_on_a_stack_of_their_own),
    WAY(errors_are_left_alone),
    WAY(is_killed),
    WAY(is_ended),
    WAY(is_aborted),
    WAY(breaks_a_pipe),
    WAY(reads_nothing),
    WAY(threads_that_die),
    WAY(a_thread_that_ends_the_process),
    WAY(the_first_thread_leaves),
    WAY(functions_at_exit),
    WAY(leaves_quickly),
    WAY(libraries_that_come_and_go),
    WAY(memory_locked_and_forbidden),
    WAY(sums_in_parallel),
};

int main(int argc, char **argv)
{
    self = "/proc/self/exe";
    return odd_main(ways, sizeof ways / sizeof *ways, argc, argv);
}
