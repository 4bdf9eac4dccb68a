/* SPDX-License-Identifier: MIT
 *
 * seam: see the header.
 */
#include "tests/mstx/simulate/seam.h"

#include "mstx/rt/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { FIRST_PID = 4000 };

struct sim sim;

/* ---- chance --------------------------------------------------------------------- */

/* splitmix64 */
uint64_t sim_random(void)
{
    uint64_t x = sim.random += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

uint32_t sim_below(uint32_t n)
{
    return (uint32_t)((sim_random() >> 32) * n >> 32);
}

bool sim_chance(uint32_t of_1024)
{
    return of_1024 != 0 && sim_below(1024) < of_1024;
}

void sim_reset(uint64_t seed)
{
    memset(&sim, 0, offsetof(struct sim, said));
    sim.random = seed * 0xD1342543DE82EF95u + 1;
    sim.free_bytes = INT64_MAX;
    sim.reading_ns = 25;
    sim.steady_ns = 1000000000 + (int64_t)(sim_random() >> 24);
    sim.wall_offset_ns = INT64_C(1700000000) * 1000000000;
    sim.pid = sim.tid = FIRST_PID;
    sim.said_bytes = 0;
    sim.said[0] = '\0';
}

bool sim_has_said(const char *text)
{
    return strstr(sim.said, text) != NULL;
}

/* ---- the helper ------------------------------------------------------------------- */

enum { STACK = 256 << 10 };
static struct {
    ucontext_t self, others;
    void *(*work)(void *);
    bool there, runs, killed;
    struct rt_ring *ring; /* of the thread that waits for the helper */
    _Alignas(16) char stack[STACK];
} helper;

static void helper_begins(void)
{
    helper.work(NULL);
    helper.there = false;
}

bool sim_helper_is_there(void)
{
    return helper.there;
}

void sim_helper_forget(void)
{
    helper.there = helper.runs = helper.killed = false;
}

void sim_helper_run(void)
{
    if (!helper.there || helper.runs)
        return;
    helper.ring = rt_tls;
    rt_tls = NULL;
    helper.runs = true;
    swapcontext(&helper.others, &helper.self);
    helper.runs = false;
    rt_tls = helper.ring;
    if (helper.killed)
        longjmp(sim.death, 1);
}

/* Lets the other side run: the threads when the helper asks, else the helper. */
static void let_others_run(void)
{
    if (helper.runs)
        swapcontext(&helper.self, &helper.others);
    else
        sim_helper_run();
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
    if (!sim.on)
        return __real_pthread_create(t, a, fn, arg);
    if (sim.is_single || sim_chance(sim.faults.open))
        return EAGAIN;
    memset(t, 0, sizeof *t);
    getcontext(&helper.self);
    helper.self.uc_stack.ss_sp = helper.stack;
    helper.self.uc_stack.ss_size = STACK;
    helper.self.uc_link = &helper.others;
    helper.work = fn;
    helper.there = true;
    makecontext(&helper.self, helper_begins, 0);
    return 0;
}

int __wrap_pthread_join(pthread_t t, void **result);
int __real_pthread_join(pthread_t t, void **result);
int __wrap_pthread_join(pthread_t t, void **result)
{
    if (!sim.on)
        return __real_pthread_join(t, result);
    for (int i = 0; helper.there && i < 100000; i++)
        sim_helper_run();
    return helper.there ? EDEADLK : 0;
}

int __wrap_pthread_setname_np(pthread_t t, const char *name);
int __wrap_pthread_setname_np(pthread_t t, const char *name)
{
    (void)t, (void)name;
    return 0;
}

static void (*thread_end)(void *);
int __wrap_pthread_key_create(pthread_key_t *key, void (*fn)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*fn)(void *))
{
    thread_end = fn;
    *key = 0;
    return 0;
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    (void)key, (void)value;
    return 0;
}

void sim_thread_ends(void *ring)
{
    if (ring != NULL)
        thread_end(ring);
}

/* ---- faults ----------------------------------------------------------------------- */

/* A jump is to a caller of its own stack alone: the helper leaves its own first. */
static void die(void)
{
    helper.killed = true;
    if (helper.runs)
        swapcontext(&helper.self, &helper.others);
    longjmp(sim.death, 1);
}

/* Every call on the system is a place where the process may die or another thread may run.
 * Returns whether the call fails by this chance. */
static bool meets(uint32_t fault)
{
    if (!sim.on)
        return false;
    sim.calls++;
    if (sim_chance(sim.faults.kill))
        die();
    if (sim_chance(sim.faults.preempt))
        let_others_run();
    const bool met = sim_chance(fault);
    sim.faults_met += met;
    return met;
}

static int fails(const int *errors, uint32_t n)
{
    errno = errors[sim_below(n)];
    return -1;
}
static const int on_open[] = {EIO, EMFILE, ENOSPC, EACCES, EROFS};
static const int on_write[] = {EIO, ENOSPC, EDQUOT};
static const int on_name[] = {EIO, ENOSPC, EROFS};
#define FAILS(errors) fails(errors, sizeof(errors) / sizeof *(errors))

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;
}

int __wrap_open64(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return meets(sim.faults.open) ? FAILS(on_open) : __real_open64(path, flags, mode);
}

int __wrap_openat64(int dir, const char *path, int flags, ...);
int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return meets(sim.faults.open) ? FAILS(on_open) : __real_openat64(dir, path, flags, mode);
}

int __wrap_mkdir(const char *path, mode_t mode);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return meets(sim.faults.open) ? FAILS(on_name) : __real_mkdir(path, mode);
}

/* A disk has so many bytes left; a file system without room says so before it writes. */
static bool takes_space(int64_t bytes)
{
    if (sim.free_bytes < bytes)
        return false;
    sim.free_bytes -= bytes;
    return true;
}

int __wrap_posix_fallocate64(int fd, off_t at, off_t n);
int __real_posix_fallocate64(int fd, off_t at, off_t n);
int __wrap_posix_fallocate64(int fd, off_t at, off_t n)
{
    struct stat st;
    if (meets(sim.faults.space))
        return sim_chance(512) ? ENOSPC : EIO;
    if (sim.on && fstat(fd, &st) == 0 && !takes_space(at + n - st.st_size))
        return ENOSPC;
    return __real_posix_fallocate64(fd, at, n);
}

/* How much of a write is done: all, some, none (EINTR), or -1 with errno. */
static ssize_t part_of(size_t n)
{
    if (meets(sim.faults.write))
        return FAILS(on_write);
    if (sim.on && sim_chance(sim.faults.interrupt)) {
        errno = EINTR;
        return -1;
    }
    if (sim.on && !takes_space((int64_t)n)) {
        errno = ENOSPC;
        return -1;
    }
    return sim.on && n > 1 && sim_chance(sim.faults.shorter)
               ? 1 + (ssize_t)sim_below((uint32_t)n - 1)
               : (ssize_t)n;
}

static ssize_t hear(const void *p, size_t n)
{
    size_t room = SIM_SAID - 1 - sim.said_bytes;
    room = n < room ? n : room;
    memcpy(sim.said + sim.said_bytes, p, room);
    sim.said_bytes += room;
    sim.said[sim.said_bytes] = '\0';
    return (ssize_t)n;
}

ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (sim.on && fd == STDERR_FILENO)
        return hear(p, n);
    const ssize_t part = part_of(n);
    return part < 0 ? part : __real_write(fd, p, (size_t)part);
}

ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __real_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at)
{
    const ssize_t part = part_of(n);
    return part < 0 ? part : __real_pwrite64(fd, p, (size_t)part, at);
}

ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at)
{
    if (meets(sim.faults.interrupt)) {
        errno = EINTR;
        return -1;
    }
    if (sim.on && sim.faults.read != 0 && sim_chance(sim.faults.read)) {
        sim.faults_met++;
        errno = EIO;
        return -1;
    }
    const bool some = sim.on && n > 1 && sim_chance(sim.faults.shorter);
    return __real_pread64(fd, p, some ? 1 + sim_below((uint32_t)n - 1) : n, at);
}

void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t from);
void *__real_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
    if (fd >= 0 && (prot & PROT_WRITE) != 0 && meets(sim.faults.space)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap64(at, n, prot, flags, fd, from);
}

int __wrap_renameat(int a, const char *from, int b, const char *to);
int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    return meets(sim.faults.name) ? FAILS(on_name) : __real_renameat(a, from, b, to);
}

int __wrap_rename(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return meets(sim.faults.name) ? FAILS(on_name) : __real_rename(from, to);
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
    return meets(sim.faults.name) ? FAILS(on_name) : __real_linkat(a, from, b, to, flags);
}

int __wrap_unlinkat(int dir, const char *name, int flags);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
    meets(0); /* a file that cannot be removed is never the only copy */
    return __real_unlinkat(dir, name, flags);
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd; /* nothing here outlives the machine, and a disk would set the pace */
    return meets(sim.faults.sync) ? FAILS(on_write) : 0;
}

static int sqlite_opens(const char *path, int flags, int mode)
{
    return __wrap_open64(path, flags, (mode_t)mode);
}

static int sqlite_truncates(int fd, off_t n)
{
    return meets(sim.faults.space) ? FAILS(on_write) : ftruncate(fd, n);
}

static int sqlite_removes(const char *path)
{
    return __wrap_unlinkat(AT_FDCWD, path, 0);
}

void sim_wrap_sqlite(void)
{
    static const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {{"open", (sqlite3_syscall_ptr)sqlite_opens},
                 {"write", (sqlite3_syscall_ptr)__wrap_write},
                 {"pwrite", (sqlite3_syscall_ptr)__wrap_pwrite64},
                 {"pwrite64", (sqlite3_syscall_ptr)__wrap_pwrite64},
                 {"pread", (sqlite3_syscall_ptr)__wrap_pread64},
                 {"pread64", (sqlite3_syscall_ptr)__wrap_pread64},
                 {"ftruncate", (sqlite3_syscall_ptr)sqlite_truncates},
                 {"unlink", (sqlite3_syscall_ptr)sqlite_removes}};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
}

/* Zeros are written and pages made present for speed alone. */
int __wrap_fstatfs64(int fd, struct statfs64 *fs);
int __wrap_fstatfs64(int fd, struct statfs64 *fs)
{
    (void)fd;
    memset(fs, 0, sizeof *fs);
    fs->f_type = TMPFS_MAGIC;
    return 0;
}

int __wrap_madvise(void *p, size_t n, int advice);
int __real_madvise(void *p, size_t n, int advice);
int __wrap_madvise(void *p, size_t n, int advice)
{
    return sim.on ? 0 : __real_madvise(p, n, advice);
}

/* ---- clock and threads -------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    if (!sim.on)
        return __real_clock_gettime(id, t);
    sim.steady_ns += sim.reading_ns;
    const int64_t ns = sim.steady_ns + (id == CLOCK_REALTIME ? sim.wall_offset_ns : 0);
    t->tv_sec = ns / 1000000000;
    t->tv_nsec = ns % 1000000000;
    return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!sim.on)
        return __real_nanosleep(t, left);
    sim.steady_ns += t->tv_sec * 1000000000 + t->tv_nsec;
    let_others_run();
    return 0;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    if (sim.on)
        let_others_run();
    return 0;
}

pid_t __wrap_getpid(void);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void)
{
    return sim.on ? (pid_t)sim.pid : __real_getpid();
}

pid_t __wrap_gettid(void);
pid_t __real_gettid(void);
pid_t __wrap_gettid(void)
{
    return sim.on ? (pid_t)sim.tid : __real_gettid();
}

/* Signals are blocked and unblocked for real threads; here one real thread plays all of them. */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    if (!sim.on)
        return __real_pthread_sigmask(how, set, old);
    if (old != NULL)
        sigemptyset(old);
    return 0;
}

/* futex: the helper's sleep, and its bell. */
long __wrap_syscall(long number, ...);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, ...)
{
    va_list ap;
    long a[6];
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (!sim.on || number != SYS_futex)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (helper.runs)
        swapcontext(&helper.self, &helper.others);
    return 0;
}
