/* SPDX-License-Identifier: MIT
 *
 * Programs that use what kernels have got of late, and those that look at how they are laid out: ranges of
 * descriptors, rings, faults in user space, pidfds, keys of memory, functions that are chosen at load time, notes of
 * their own threads and mappings.  As odd.c, these are recorded and not, and must do the same.
 *
 *   odd_kernel WAY      see ways[] at the end; odd_kernel list prints their names
 */
#include "tests/programs/odd.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

/* ---- descriptors ------------------------------------------------------------------------------ */

/* Descriptors where a program's own are; those of the recorder are far above. */
static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < 128; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int ranges_of_descriptors_are_closed(void)
{
    mark_often(10);
    printf("%ld\n", syscall(SYS_close_range, 3, ~0U, 0));
    mark_often(10000);
    printf("%d open\n", count_open());
    int made = open("/dev/null", O_RDONLY);
    printf("%d\n", made);
    printf("%ld\n", syscall(SYS_close_range, 3, ~0U, 4)); /* CLOSE_RANGE_CLOEXEC */
    mark_often(10);
    char *argv[] = {"sh", "-c", "ls /proc/self/fd | wc -l", NULL};
    fflush(stdout);
    return execvp("sh", argv);
}

static int descriptors_that_travel_through_a_socket(void)
{
    int pair[2], found = -1;
    printf("%d\n", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    fflush(stdout);
    pid_t pid = fork();
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    char byte = 'x';
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    if (pid == 0) {
        mark_often(100);
        int file = open("/etc/hostname", O_RDONLY);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &file, sizeof file);
        _exit(sendmsg(pair[1], &m, 0) == 1 ? 0 : 1);
    }
    printf("received %zd\n", recvmsg(pair[0], &m, 0));
    memcpy(&found, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof found);
    mark_often(100);
    printf("descriptor %d reads %d\n", found, read(found, &byte, 1) >= 0);
    wait_for("sender", pid);
    return 0;
}

static int events_timers_and_watches(void)
{
    int ready = epoll_create1(0), event = eventfd(3, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0),
        watch = inotify_init1(0);
    struct itimerspec soon = {.it_value = {0, 1000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    printf("%d %d %d %d %d\n", ready, event, timer, watch,
           inotify_add_watch(watch, "/", IN_CREATE));
    int fds[] = {event, timer};
    for (int i = 0; i < 2; i++) {
        struct epoll_event about = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(ready, EPOLL_CTL_ADD, fds[i], &about);
    }
    uint64_t value = 0;
    for (int left = 2; left > 0;) {
        mark_often(100);
        struct epoll_event come;
        if (epoll_wait(ready, &come, 1, 1000) == 1 && read(come.data.fd, &value, sizeof value) == 8)
            printf("%d: %llu\n", come.data.fd == event, (unsigned long long)value), left--;
    }
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* A ring of the kernel whose one request does nothing. */
static int a_ring_of_requests(void)
{
    struct io_uring_params p = {0};
    mark_often(10);
    long ring = syscall(SYS_io_uring_setup, 4, &p);
    if (ring < 0) {
        printf("no ring\n");
        return 0;
    }
    char *sq = mmap(NULL, p.sq_off.array + 4 * sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED,
                    (int)ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *e =
        mmap(NULL, 4 * sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED, (int)ring, IORING_OFF_SQES);
    e[0].opcode = IORING_OP_NOP;
    ((unsigned *)(void *)(sq + p.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(void *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    printf("ring %ld, entered %ld\n", ring,
           syscall(SYS_io_uring_enter, (int)ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    mark_often(1000);
    return 0;
}

struct faults {
    int fd;
    char *page;
    long size;
};

static void *answer_faults(void *arg)
{
    struct faults *f = arg;
    struct uffd_msg m;
    mark_often(10);
    if (read(f->fd, &m, sizeof m) != sizeof m || m.event != UFFD_EVENT_PAGEFAULT)
        return NULL;
    char *filled = aligned_alloc((size_t)f->size, (size_t)f->size);
    memset(filled, 'a', (size_t)f->size);
    struct uffdio_copy copy = {
        .dst = (uintptr_t)f->page, .src = (uintptr_t)filled, .len = (uint64_t)f->size};
    mark_often(10);
    ioctl(f->fd, UFFDIO_COPY, &copy);
    free(filled);
    return NULL;
}

static int faults_answered_by_a_thread(void)
{
    struct faults f = {.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */),
                       .size = sysconf(_SC_PAGESIZE)};
    struct uffdio_api api = {.api = UFFD_API};
    if (f.fd < 0 || ioctl(f.fd, UFFDIO_API, &api) != 0) {
        printf("no faults\n");
        return 0;
    }
    f.page = mmap(NULL, (size_t)f.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register r = {.range = {(uintptr_t)f.page, (uint64_t)f.size},
                                .mode = UFFDIO_REGISTER_MODE_MISSING};
    printf("%d\n", ioctl(f.fd, UFFDIO_REGISTER, &r));
    pthread_t t;
    pthread_create(&t, NULL, answer_faults, &f);
    printf("%c\n", f.page[7]);
    pthread_join(t, NULL);
    return 0;
}

static int memory_that_is_unmapped_and_protected_around_marks(void)
{
    size_t size = 64 << 20;
    for (int i = 0; i < 20; i++) {
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        mark_often(100);
        mprotect(p, size / 2, PROT_NONE);
        madvise(p + size / 2, size / 2, MADV_DONTNEED);
        p = mremap(p, size, size / 4, MREMAP_MAYMOVE);
        munmap(p, size / 4);
    }
    printf("%d\n", mlockall(MCL_FUTURE) == 0 || errno == EPERM || errno == ENOMEM);
    mark_often(10);
    munlockall();
    return 0;
}

static int an_object_that_gets_its_memory_elsewhere(void)
{
    struct rlimit little = {.rlim_cur = 8192, .rlim_max = 8192},
                  data = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    printf("%d\n", setrlimit(RLIMIT_MEMLOCK, &little));
    mark_often(10);
    printf("%d\n", setrlimit(RLIMIT_DATA, &data));
    void *p = malloc(64 << 20);
    printf("%d\n", p == NULL);
    mark_often(10000);
    data.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_DATA, &data);
    free(p);
    return 0;
}

/* ---- processes and threads ---------------------------------------------------------------------- */

static int children_made_by_clone3_and_awaited_by_descriptor(void)
{
    mark_often(10);
    fflush(stdout);
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        mark_often(100);
        _exit(9);
    }
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    printf("%d\n", poll(&wait, 1, 10000));
    siginfo_t info;
    printf("%d %d\n", waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), info.si_status);
    mark_often(10);
    printf("%d\n", syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH);
    return 0;
}

static int not_to_be_looked_at(void)
{
    mark_often(10);
    printf("%d %d\n", prctl(PR_SET_DUMPABLE, 0), prctl(PR_GET_DUMPABLE));
    mark_often(10000);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        prctl(PR_SET_NAME, "a child");
        mark_often(10000);
        raise(SIGSEGV);
    }
    wait_for("child", pid);
    return 0;
}

static int a_limit_of_processes_and_of_priority(void)
{
    struct rlimit one = {.rlim_cur = 1, .rlim_max = 1}, none = {0, 0};
    setrlimit(RLIMIT_NPROC, &one);
    setrlimit(RLIMIT_MSGQUEUE, &none);
    setrlimit(RLIMIT_SIGPENDING, &none);
    printf("%d\n", nice(19));
    mark_often(10000);
    pthread_t t;
    int rc = pthread_create(&t, NULL, (void *(*)(void *))count_open, NULL);
    printf("%d\n", rc == 0 || rc == EAGAIN);
    if (rc == 0)
        pthread_join(t, NULL);
    return 0;
}

/* Signals that mark on stacks of 16 KiB, in threads whose own are small. */
static volatile sig_atomic_t came;
static void marks_deep(int signal)
{
    (void)signal;
    mark_often(50);
    came++;
}
static void *on_a_small_stack(void *arg)
{
    stack_t own = {.ss_sp = malloc(16 << 10), .ss_size = 16 << 10};
    sigaltstack(&own, NULL);
    for (int i = 0; i < 50; i++) {
        raise(SIGUSR1);
        mark_often(5);
    }
    own.ss_flags = SS_DISABLE;
    void *room = own.ss_sp;
    sigaltstack(&own, NULL);
    free(room);
    return arg;
}
static int signals_on_small_stacks_of_threads(void)
{
    struct sigaction act = {.sa_handler = marks_deep, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGUSR1, &act, NULL);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], &attr, on_a_small_stack, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    printf("%d\n", (int)came);
    return 0;
}

static int a_futex_and_a_robust_mutex(void)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_t *m =
        mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_init(m, &attr);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_mutex_lock(m);
        mark_often(100);
        _exit(0);
    }
    wait_for("owner", pid);
    mark_often(10);
    printf("%d\n", pthread_mutex_lock(m) == EOWNERDEAD);
    int word = 1;
    printf("%d\n", syscall(SYS_futex, &word, FUTEX_WAIT, 2, NULL) < 0 && errno == EAGAIN);
    return 0;
}

/* ---- how it is laid out -------------------------------------------------------------------------- */

static int plain(void)
{
    return 1;
}
static int (*choose(void))(void)
{
    return plain;
}
int chosen(void) __attribute__((ifunc("choose")));

static int functions_chosen_as_the_program_loads(void)
{
    mark_often(10);
    printf("%d %d\n", chosen(), dlsym(RTLD_DEFAULT, "strlen") != NULL);
    printf("%ld %ld %d\n", getauxval(AT_PAGESZ), getauxval(AT_SECURE),
           getauxval(AT_SYSINFO_EHDR) != 0);
    return 0;
}

static int find_itself(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (info->dlpi_name[0] == 0)
        *(int *)found = info->dlpi_phnum;
    return 0;
}
static int mappings_of_the_program_itself(void)
{
    int found = 0, with_code = 0;
    char line[1024], name[512];
    mark_often(10);
    dl_iterate_phdr(find_itself, &found);
    ssize_t n = readlink("/proc/self/exe", name, sizeof name - 1);
    name[n < 0 ? 0 : n] = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        with_code += strstr(line, name) != NULL && strstr(line, "r-xp") != NULL;
    fclose(f);
    printf("%d %d\n", found > 5, with_code);
    Dl_info about;
    printf("%d %d\n", dladdr((void *)mappings_of_the_program_itself, &about) != 0,
           about.dli_sname == NULL);
    return 0;
}

static int names_and_arguments_overwritten(void)
{
    char text[256] = {0};
    mark_often(10);
    prctl(PR_SET_NAME, "renamed");
    environ = NULL;
    clearenv();
    setenv("ONLY", "this", 1);
    mark_often(10);
    FILE *f = fopen("/proc/self/comm", "r");
    printf("%s", fgets(text, sizeof text, f));
    fclose(f);
    int count = 0;
    for (char **e = environ; *e != NULL; e++)
        count++;
    char *argv[] = {"sh", "-c", "echo \"$ONLY\"; exit 3", NULL};
    pid_t pid;
    printf("%d\n", count);
    fflush(stdout);
    printf("%d\n", posix_spawnp(&pid, "sh", NULL, NULL, argv, environ));
    wait_for("sh", pid);
    return 0;
}

static sigjmp_buf back;
static void jump(int signal)
{
    siglongjmp(back, signal);
}
/* An access that fails is caught and left, as conservative collectors and loaders of tables do. */
static int faults_that_are_caught_and_left(void)
{
    struct sigaction act = {.sa_handler = jump};
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
    volatile int caught = 0;
    for (volatile int i = 0; i < 100; i++) {
        int which = sigsetjmp(back, 1);
        if (which != 0) {
            caught += which == SIGSEGV;
            mark_often(10);
            continue;
        }
        mark_often(1);
        *(volatile char *)(uintptr_t)(16 + i) = 1;
    }
    printf("%d\n", caught);
    return 0;
}

static const struct odd_way ways[] = {
    WAY(ranges_of_descriptors_are_closed),
    WAY(descriptors_that_travel_through_a_socket),
    WAY(events_timers_and_watches),
    WAY(a_ring_of_requests),
    WAY(faults_answered_by_a_thread),
    WAY(memory_that_is_unmapped_and_protected_around_marks),
    WAY(an_object_that_gets_its_memory_elsewhere),
    WAY(children_made_by_clone3_and_awaited_by_descriptor),
    WAY(not_to_be_looked_at),
    WAY(a_limit_of_processes_and_of_priority),
    WAY(signals_on_small_stacks_of_threads),
    WAY(a_futex_and_a_robust_mutex),
    WAY(functions_chosen_as_the_program_loads),
    WAY(mappings_of_the_program_itself),
    WAY(names_and_arguments_overwritten),
    WAY(faults_that_are_caught_and_left),
};

int main(int argc, char **argv)
{
    return odd_main(ways, sizeof ways / sizeof *ways, argc, argv);
}
