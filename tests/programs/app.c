/* SPDX-License-Identifier: MIT
 *
 * app: the program that the recorder's tests run.  The first argument says what it does; its
 * exit status is 0 unless something it checks on its own is wrong.
 */
#include "tests/programs/proto.h"
#include "tests/support/settle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long arg_of(int argc, char **argv, int i, long otherwise)
{
    return argc > i ? strtol(argv[i], NULL, 10) : otherwise;
}

static void msleep(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

/* ---- plain use ------------------------------------------------------------------------ */

static int do_marks(long n)
{
    char text[32];
    for (long i = 0; i < n; i++) {
        snprintf(text, sizeof text, "mark %ld", i % 10);
        p_mark(text, NULL);
    }
    return 0;
}

/* Every mark has a text of its own, of some 200 bytes. */
static int do_texts(long n)
{
    char text[256];
    for (long i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%ld %200s", i, "text");
        p_mark(text, NULL);
    }
    return 0;
}

/* Marks whose streams are their numbers. */
static int do_numbered(long n)
{
    for (long i = 1; i <= n; i++)
        p_mark("numbered", (void *)(uintptr_t)i);
    return 0;
}

static int do_ranges(void)
{
    void *d = p_create("loader");
    uint64_t outer = p_start("outer", NULL);
    uint64_t inner = p_dstart(d, "inner", (void *)0x1234);
    p_dmark(d, "tick", (void *)0x77);
    p_dend(d, inner);
    p_end(outer);
    p_start("never ended", NULL);
    return outer == 0 || inner == 0 || outer >> 32 != 0 || p_create("loader") != d;
}

static int do_init_once(void)
{
    p_mark("one", NULL);
    p_mark("two", NULL);
    return p_inits != 1;
}

/* ---- memory ------------------------------------------------------------------------------ */

struct block {
    uint32_t device;
    const void *at;
    uint64_t size;
};
struct regions {
    void *heap;
    int type;
    size_t n;
    const struct block *blocks;
    void **handles;
};
struct ref {
    int type; /* 0 pointer, 1 handle */
    const void *what;
};

static int do_memory(void)
{
    p_mark("memory", NULL);
    void *(*heap)(void *, const void *) = (void *(*)(void *, const void *))p_mem[P_HEAP];
    void (*unheap)(void *, void *) = (void (*)(void *, void *))p_mem[P_UNHEAP];
    void (*add)(void *, const void *) = (void (*)(void *, const void *))p_mem[P_REGIONS];
    void (*drop)(void *, const void *) = (void (*)(void *, const void *))p_mem[P_UNREGIONS];
    void (*permit)(void *, const void *) = (void (*)(void *, const void *))p_mem[P_PERMIT];
    void *own = p_create("pool"), *pta = p_create("ptaCaching");
    const struct block whole = {3, (void *)0x10000, 4096};
    const struct block part[2] = {{3, (void *)0x10000, 64}, {3, (void *)0x10040, 128}};
    const struct {
        int usage, type;
        const void *desc;
    } desc = {0x55, 0x66, &whole}; /* usage and type unset, as PyTorch leaves them */
    void *h = heap(own, &desc), *given[2] = {NULL, NULL};
    add(own, &(struct regions){h, 0, 2, part, given});
    const struct ref refs[2] = {{1, given[0]}, {0, part[1].at}};
    const struct {
        uint32_t flags;
        struct ref region;
    } readable = {1, {1, given[1]}};
    permit(own, &(struct {
               size_t n;
               const void *list;
           }){1, &readable});
    drop(own, &(struct {
             size_t n;
             const void *list;
         }){2, refs});
    unheap(own, h);
    /* Garbage where handles belong must not be written through, even with a heap that exists. */
    void *h2 = heap(pta, &desc);
    add(pta, &(struct regions){h2, 0, 2, part, (void **)0x10});
    add(own, &(struct regions){(void *)0xBADBAD, 0, 2, part, (void **)0x10});
    add(own, NULL);
    return h == NULL || h2 == NULL || given[0] == NULL || given[0] == given[1] ||
           heap(own, NULL) != NULL;
}

/* ---- threads ---------------------------------------------------------------------------- */

static void *end_it(void *arg)
{
    p_end(*(uint64_t *)arg);
    return NULL;
}

static int do_other_thread(void)
{
    pthread_t t;
    uint64_t id = p_start("handed over", NULL);
    pthread_create(&t, NULL, end_it, &id);
    return pthread_join(t, NULL);
}

static pthread_barrier_t gate;
static void *race_first(void *arg)
{
    pthread_barrier_wait(&gate);
    p_mark(arg, NULL);
    return NULL;
}

static int do_race(void)
{
    enum { N = 8 };
    static char text[N][32];
    pthread_t t[N];
    pthread_barrier_init(&gate, NULL, N);
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "first %d", i);
        pthread_create(&t[i], NULL, race_first, text[i]);
    }
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    return 0;
}

static void *short_life(void *arg)
{
    uint64_t id = p_start("life", NULL);
    p_mark(arg, NULL);
    p_end(id);
    return NULL;
}

/* Many short threads, at most eight at a time. */
static int do_storm(long n)
{
    static char text[] = "storm";
    pthread_t t[8];
    for (long i = 0; i < n; i += 8) {
        for (int k = 0; k < 8; k++)
            pthread_create(&t[k], NULL, short_life, text);
        for (int k = 0; k < 8; k++)
            pthread_join(t[k], NULL);
    }
    return 0;
}

/* Marks from a destructor of thread data, before and after the recorder's own. */
static pthread_key_t late_key;
static void late(void *v)
{
    p_mark("late", NULL);
    if (v == (void *)1)
        pthread_setspecific(late_key, (void *)2);
}
static void *late_life(void *arg)
{
    pthread_setspecific(late_key, (void *)1);
    p_mark("early", NULL);
    return arg;
}
static int do_late(void)
{
    pthread_t t;
    pthread_key_create(&late_key, late);
    pthread_create(&t, NULL, late_life, NULL);
    return pthread_join(t, NULL);
}

static void *mark_much(void *arg)
{
    long n = *(long *)arg;
    for (long i = 0; i < n; i++)
        p_mark("busy", NULL);
    return NULL;
}
static int do_many(long threads, long n)
{
    pthread_t t[64];
    for (long i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, mark_much, &n);
    for (long i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    return 0;
}

/* ---- signals ------------------------------------------------------------------------------ */

static volatile sig_atomic_t handled;
static void on_signal(int s)
{
    (void)s;
    p_mark("from handler", NULL);
    handled++;
}

static int do_signal(void)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 200}, {0, 200}};
    p_mark("from handler", NULL);
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    long n = 0;
    while (handled < 300) {
        uint64_t id = p_start("main", NULL);
        p_end(id);
        n++;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    printf("%ld %d\n", n, (int)handled);
    return 0;
}

/* The handler interrupts whatever the recorder does for what it sees for the first time: a thread,
 * texts, domains. */
static void on_first(int s)
{
    char text[32];
    (void)s;
    snprintf(text, sizeof text, "handler %d", (int)handled++);
    p_mark(text, NULL);
    p_dmark(p_create(text), "inside", NULL);
}

static int do_handlers(void)
{
    struct sigaction sa = {.sa_handler = on_first, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 100}, {0, 100}};
    char text[32];
    p_init(); /* in the middle of this a handler would wait for itself, as with the vendor's header */
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (long i = 0; handled < 1000; i++) {
        snprintf(text, sizeof text, "main %ld", i % 20000);
        p_mark(text, NULL);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    return 0;
}

/* ---- kill: every mark that returned is told to the parent through shared memory ------------- */

static int do_until_killed(const char *counter)
{
    int fd = shm_open(counter, O_RDWR, 0);
    volatile uint64_t *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (seen == MAP_FAILED)
        return 1;
    char text[32];
    for (uint64_t i = 0;; i++) {
        snprintf(text, sizeof text, "k%llu", (unsigned long long)(i % 100));
        p_mark(text, (void *)(uintptr_t)(i + 1));
        *seen = i + 1;
    }
}

/* ---- fork and exec ---------------------------------------------------------------------------- */

static int do_fork(void)
{
    uint64_t id = p_start("parent range", NULL);
    p_mark("before", NULL);
    void *d = p_create("made before");
    settle();
    pid_t pid = fork();
    if (pid == 0) {
        p_mark("in child", NULL);
        p_dmark(d, "in child, domain of the parent", NULL);
        p_end(id); /* not the child's */
        exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    p_mark("after", NULL);
    p_end(id);
    return status;
}

static int do_exec(char **argv)
{
    p_mark("old image", NULL);
    execl("/proc/self/exe", argv[0], "marks", "3", (char *)NULL);
    return 1;
}

/* ---- bad input ---------------------------------------------------------------------------------- */

static int do_bad(void)
{
    char *big = malloc(100001);
    memset(big, 'x', 100000);
    big[100000] = '\0';
    p_mark(NULL, NULL);
    p_mark("", NULL);
    p_mark("=1+1", NULL);
    p_mark("@cmd", NULL);
    p_mark(big, NULL);
    p_mark("stream", (void *)0xdeadbeef1);
    int wrong = p_start(NULL, NULL) != 0;
    p_end(0);
    p_end(12345);
    p_end(UINT64_MAX);
    uint64_t id = p_start("once", NULL);
    p_end(id);
    p_end(id); /* stale */
    void *d = p_create("gone"), *e = p_create("kept");
    id = p_dstart(d, "ended elsewhere", NULL);
    p_dend(e, id);
    p_destroy(d);
    p_dmark(d, "in a destroyed domain", NULL);
    p_dmark(p_create("gone"), "revived", NULL);
    p_dmark((void *)0x1000, "garbage handle", NULL);
    wrong |= p_create(NULL) != NULL || p_create("") != NULL || p_create("=x") != NULL;
    wrong |= p_create("default") != NULL || p_create(big) != NULL;
    p_mark("good", NULL);
    free(big);
    return wrong;
}

/* A range's id is known again after its slot was used many times. */
static int do_stale(void)
{
    uint64_t old = p_start("old", NULL);
    p_end(old);
    for (int i = 0; i < 100000; i++) {
        uint64_t id = p_start("new", NULL);
        if (id == old)
            return 1;
        p_end(id);
    }
    for (int i = 0; i < 1000; i++)
        p_start("left open", NULL);
    return 0;
}

/* Mark for ms milliseconds, one each ms; text tells the time since the start in ms. */
static int do_paced(long ms, long burst)
{
    char text[32];
    for (long i = 0; i < ms; i++) {
        snprintf(text, sizeof text, "t%ld", i / 100);
        for (long k = 0; k < burst; k++)
            p_mark(text, (void *)(uintptr_t)(i * burst + k + 1));
        msleep(1);
    }
    return 0;
}

/* The capture directory is deleted while we run. */
static int do_deleted(const char *dir)
{
    char cmd[600];
    p_mark("before", NULL);
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    if (system(cmd) != 0)
        return 1;
    do_marks(300000);
    return 0;
}

/* A daemon closes what it does not know and has its own files under those numbers. */
static int do_closes(const char *dir)
{
    enum { FILES = 8 };
    char path[600];
    int fd[FILES];
    p_mark("before", NULL);
    for (int i = 3; i < 64; i++)
        close(i);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/mine%d", dir, i);
        fd[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    }
    do_texts(20000);
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        if (fstat(fd[i], &st) != 0 || st.st_size != 0 || write(fd[i], "x", 1) != 1)
            return 1;
    }
    return 0;
}

/* A daemon that has no standard input, output or errors; the descriptors that it opens are the lowest. */
static int do_without_standard(void)
{
    for (int i = 0; i <= STDERR_FILENO; i++)
        close(i);
    p_mark("before", NULL);
    settle();
    for (int i = 0; i <= STDERR_FILENO; i++) {
        if (open("/dev/null", O_RDWR) != i)
            return 1;
    }
    do_marks(20000);
    return 0;
}

/* Whether a descriptor is of a file that is neither below the folder nor one that the recorder keeps:
 * the processor time of the group, and one in whose place others may be opened. */
static bool is_of_others(int fd, const char *folder)
{
    char name[64], to[1024];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(name, to, sizeof to - 1);
    to[n > 0 ? n : 0] = '\0';
    const bool is = to[0] == '/' && strncmp(to, folder, strlen(folder)) != 0 &&
                    strcmp(to, "/dev/null") != 0 && strncmp(to, "/sys/fs/cgroup/", 15) != 0;
    if (is)
        fprintf(stderr, "%s is open\n", to);
    return is;
}

/* The status is the number of files that the recorder leaves open, but for its own. */
static int do_count_files(const char *folder)
{
    enum { FILES = 4096 };
    static bool was[FILES];
    int more = 0;
    for (int fd = 0; fd < FILES; fd++)
        was[fd] = fcntl(fd, F_GETFD) >= 0;
    p_mark("before", NULL);
    settle();
    for (int fd = 0; fd < FILES; fd++)
        more += !was[fd] && is_of_others(fd, folder);
    return more;
}

/* No file may grow beyond that many bytes: SIGXFSZ ends who tries and does not know. */
static int do_limited(long bytes)
{
    const struct rlimit r = {(rlim_t)bytes, (rlim_t)bytes};
    if (setrlimit(RLIMIT_FSIZE, &r) != 0)
        return 1;
    do_marks(200000);
    do_texts(20000);
    return 0;
}

/* What is said goes to a pipe that nobody reads. */
static int do_unheard(void)
{
    int ends[2];
    if (pipe(ends) != 0 || close(ends[0]) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        return 1;
    p_mark(NULL, NULL);
    p_mark("heard", NULL);
    return 0;
}

/* A child is forked when the capture stands; then both mark for ms milliseconds. */
static int do_forked(long ms)
{
    p_mark("before", NULL);
    settle();
    pid_t pid = fork();
    do_paced(ms, 1);
    int status = 0;
    if (pid == 0)
        exit(0);
    waitpid(pid, &status, 0);
    return status;
}

/* Marks, then runs a command and ends as that does. */
static int do_marks_then(long n, char **command)
{
    do_marks(n);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Two libraries with a context of their own, next to ours. */
static int do_images(const char *lib)
{
    void *h = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*mark)(const char *) = (void (*)(const char *))dlsym(h, "image_mark");
    mark("from the library");
    p_mark("from the program", NULL);
    dlclose(h);
    p_mark("after dlclose", NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
#define IS(word, call)                                                                             \
    if (strcmp(what, word) == 0)                                                                   \
    return call
    IS("marks", do_marks(arg_of(argc, argv, 2, 10)));
    IS("marks-then", do_marks_then(arg_of(argc, argv, 2, 10), argv + 3));
    IS("texts", do_texts(arg_of(argc, argv, 2, 10)));
    IS("numbered", do_numbered(arg_of(argc, argv, 2, 10)));
    IS("ranges", do_ranges());
    IS("once", do_init_once());
    IS("other-thread", do_other_thread());
    IS("race", do_race());
    IS("storm", do_storm(arg_of(argc, argv, 2, 800)));
    IS("late", do_late());
    IS("many", do_many(arg_of(argc, argv, 2, 8), arg_of(argc, argv, 3, 100000)));
    IS("signal", do_signal());
    IS("handlers", do_handlers());
    IS("until-killed", do_until_killed(argv[2]));
    IS("fork", do_fork());
    IS("exec", do_exec(argv));
    IS("bad", do_bad());
    IS("stale", do_stale());
    IS("memory", do_memory());
    IS("paced", do_paced(arg_of(argc, argv, 2, 100), arg_of(argc, argv, 3, 1)));
    IS("forked", do_forked(arg_of(argc, argv, 2, 100)));
    IS("closes", do_closes(argv[2]));
    IS("without-standard", do_without_standard());
    IS("count-files", do_count_files(argv[2]));
    IS("limited", do_limited(arg_of(argc, argv, 2, 300000)));
    IS("unheard", do_unheard());
    IS("deleted", do_deleted(argv[2]));
    IS("images", do_images(argv[2]));
    IS("exit", (p_mark("exit", NULL), (int)arg_of(argc, argv, 2, 0)));
    fprintf(stderr, "app: what is '%s'?\n", what);
    return 2;
}
