/* SPDX-License-Identifier: MIT
 *
 * bench_mstx: what a mark costs, in nanoseconds of CPU time per call and as a ratio to one
 * bare timestamp measured in between, and beside an event of LTTng-UST with the same string.
 *
 *     bench_mstx [RUNS]
 *
 * Marks go to a directory under /dev/shm, so that the figures are of the recorder and not of
 * a disk.  Batches are smaller than a segment; a change of segment shows in the tail.
 */
#include "mstx/ms_tools_ext.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { BATCH = 10000, MAX_RUNS = 101, TAIL = 200000, THREADS = 8, THREAD_MARKS = 40000 };
static const char text[] = "forward_step_block"; /* 18 characters */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
#endif
}

/* ---- the ways to mark -------------------------------------------------------------------- */

static struct {
    void (*mark)(const char *, void *);
    uint64_t (*start)(const char *, void *);
    void (*end)(uint64_t);
    void (*dmark)(void *, const char *, void *);
    void *(*create)(const char *);
    void (*pause)(void), (*resume)(void);
    int (*push)(const char *), (*pop)(void);
    void *off;
} api;

static void bare(void)
{
    for (int i = 0; i < BATCH; i++) {
        uint64_t t = ticks();
        __asm__ volatile("" : : "r"(t));
    }
}
static void mark(void)
{
    for (int i = 0; i < BATCH; i++)
        api.mark(text, NULL);
}
static void range(void)
{
    for (int i = 0; i < BATCH; i++)
        api.end(api.start(text, NULL));
}
static void mark_header(void)
{
    for (int i = 0; i < BATCH; i++)
        mstxMarkA(text, NULL);
}
static void range_header(void)
{
    for (int i = 0; i < BATCH; i++)
        mstxRangeEnd(mstxRangeStartA(text, NULL));
}
static void push_pop(void)
{
    for (int i = 0; i < BATCH; i++) {
        api.push(text);
        api.pop();
    }
}
static void filtered(void)
{
    for (int i = 0; i < BATCH; i++)
        api.dmark(api.off, text, NULL);
}

/* ---- NVTX's table, as a program would offer it --------------------------------------------- */

static void (*nvtx_fn[16])(void);
static void (**nvtx_slots[17])(void);
static int nvtx_table(int module, void (****table)(void), unsigned *size)
{
    *table = nvtx_slots;
    *size = 16;
    return module == 1;
}
static const void *nvtx_export(uint32_t id)
{
    static const struct {
        size_t size;
        int (*get)(int, void (****)(void), unsigned *);
    } callbacks = {16, nvtx_table};
    return id == 1 ? &callbacks : NULL;
}

static bool load(const char *lib)
{
    void *h = dlopen(lib, RTLD_NOW);
    if (h == NULL) {
        printf("%s\n", dlerror());
        return false;
    }
#define GET(member, name) *(void **)&api.member = dlsym(h, name)
    GET(mark, "mstxMarkA");
    GET(start, "mstxRangeStartA");
    GET(end, "mstxRangeEnd");
    GET(dmark, "mstxDomainMarkA");
    GET(create, "mstxDomainCreateA");
    GET(pause, "mstx_record_pause");
    GET(resume, "mstx_record_resume");
    int (*init)(const void *(*)(uint32_t));
    *(void **)&init = dlsym(h, "InitializeInjectionNvtx2");
    for (int i = 1; i < 16; i++)
        nvtx_slots[i] = &nvtx_fn[i];
    if (init(nvtx_export) != 1)
        return false;
    api.push = (int (*)(const char *))nvtx_fn[9];
    api.pop = (int (*)(void))nvtx_fn[11];
    api.off = api.create("off");
    return true;
}

/* ---- measuring ----------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figure {
    double min, median, ratio; /* ratio: median of the ratios to a timestamp beside it */
};

static struct figure measure(void (*fn)(void), int runs)
{
    double ns[MAX_RUNS], ratio[MAX_RUNS];
    fn();
    for (int i = 0; i < runs; i++) {
        double a = cpu_ns();
        bare();
        double b = cpu_ns();
        fn();
        double c = cpu_ns();
        ns[i] = (c - b) / BATCH;
        ratio[i] = (c - b) / (b - a);
        usleep(2000); /* the helper prepares the next segment, as it does in a training loop */
    }
    qsort(ns, (size_t)runs, sizeof ns[0], by_value);
    qsort(ratio, (size_t)runs, sizeof ratio[0], by_value);
    return (struct figure){ns[0], ns[runs / 2], ratio[runs / 2]};
}

static struct figure row(const char *name, void (*fn)(void), int runs, const char *bar)
{
    struct figure f = measure(fn, runs);
    printf("  %-34s %8.1f %8.1f %8.2f   %s\n", name, f.min, f.median, f.ratio, bar);
    return f;
}

/* One mark at a time, a microsecond apart. */
static void tail(void)
{
    static double took[TAIL];
    struct rusage before, after;
    uint64_t c0 = ticks();
    double t0 = cpu_ns();
    while (cpu_ns() - t0 < 2e7)
        continue;
    double per_ns = (double)(ticks() - c0) / (cpu_ns() - t0);
    for (int i = 0; i < TAIL / 2; i++)
        api.mark(text, NULL);
    memset(took, 0, sizeof took);
    usleep(20000);
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < TAIL; i++) {
        uint64_t a = ticks();
        api.mark(text, NULL);
        took[i] = (double)(ticks() - a) / per_ns;
        while ((double)(ticks() - a) < 1000 * per_ns)
            continue;
    }
    getrusage(RUSAGE_THREAD, &after);
    qsort(took, TAIL, sizeof took[0], by_value);
    printf("  tail of %d marks, ns: p50 %.0f  p99 %.0f  p99.9 %.0f  max %.0f   (p99.9 <= 5000)\n",
           TAIL, took[TAIL / 2], took[TAIL / 100 * 99], took[TAIL / 1000 * 999], took[TAIL - 1]);
    printf("  page faults after warm-up: %ld   (0)\n", after.ru_minflt - before.ru_minflt);
}

static void *mark_in_thread(void *arg)
{
    for (int i = 0; i < THREAD_MARKS; i++) /* pages and segments of this thread */
        api.mark(text, NULL);
    double best = 1e9;
    for (int r = 0; r < 10; r++) {
        double a = cpu_ns();
        for (int i = 0; i < THREAD_MARKS / 10; i++)
            api.mark(text, NULL);
        double b = (cpu_ns() - a) / (THREAD_MARKS / 10);
        best = b < best ? b : best;
    }
    *(double *)arg = best;
    return NULL;
}

static double with_threads(int n)
{
    pthread_t t[THREADS];
    double ns[THREADS], sum = 0;
    for (int i = 0; i < n; i++)
        pthread_create(&t[i], NULL, mark_in_thread, &ns[i]);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < n; i++)
        sum += ns[i];
    return sum / n;
}

static void threads(void)
{
    double one = with_threads(1), many = with_threads(THREADS);
    printf("  CPU ns of a mark: 1 thread %.1f, each of %d threads %.1f, ratio %.2f   (<= 1.3)\n",
           one, THREADS, many, many / one);
}

/* The peer prints its own cost; without it a line says so. */
static void lttng(double ours)
{
    char line[64] = "";
    FILE *p = popen("sh tests/programs/lttng.sh 2>/dev/null", "r");
    if (p != NULL) {
        if (fgets(line, sizeof line, p) == NULL)
            line[0] = '\0';
        pclose(p);
    }
    double ns = strtod(line, NULL);
    if (ns > 0)
        printf("  LTTng-UST event, same string: %.1f ns; a mark is %.3f of it   (<= 0.25)\n", ns,
               ours / ns);
    else
        printf("skip LTTng-UST: liblttng-ust-dev and lttng-tools are not installed\n");
}

/* The recorder is in our environment and so in Python's. */
static void python(const char *build)
{
    char cmd[1200], line[96] = "";
    const char *py = getenv("PYTHON");
    double mark_ns = 0, range_ns = 0, domain_ns = 0;
    snprintf(cmd, sizeof cmd,
             "PYTHONPATH='%.1000s/python' %s tests/programs/py_cost.py 2>/dev/null", build,
             py != NULL ? py : "/usr/bin/python3");
    FILE *p = popen(cmd, "r");
    if (p != NULL) {
        if (fgets(line, sizeof line, p) == NULL)
            line[0] = '\0';
        pclose(p);
    }
    if (sscanf(line, "%lf %lf %lf", &mark_ns, &range_ns, &domain_ns) == 3)
        printf(
            "  Python, ns over an empty call: mark %.1f, range of two calls %.1f, mark in a domain "
            "%.1f   (<= 150 a call)\n",
            mark_ns, range_ns, domain_ns);
    else
        printf("skip Python: the module is not built\n");
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 31;
    char build[1024], lib[1100], out[64], cmd[128];
    runs = runs < 1 ? 1 : runs > MAX_RUNS ? MAX_RUNS : runs;
    snprintf(build, sizeof build, "%.1000s", argv[0]);
    for (int i = 0; i < 2 && strrchr(build, '/') != NULL; i++)
        *strrchr(build, '/') = '\0';
    snprintf(lib, sizeof lib, "%s/libmstx.so", build);
    snprintf(out, sizeof out, "/dev/shm/msprobe-bench-%d", (int)getpid());
    if (getenv("MSTX_OUT") == NULL) { /* the library reads it when it is loaded */
        setenv("MSTX_OUT", out, 1);
        setenv("MSTX_DOMAIN_EXCLUDE", "off", 1);
        setenv("MSTX_QUIET", "1", 1);
        setenv("MSTX_INJECTION_PATH", lib, 1);
    }
    if (!load(lib))
        return 1;
    printf("  %-34s %8s %8s %8s   %s\n", "CPU ns per call", "min", "median", "x stamp", "bar");
    row("timestamp", bare, runs, "");
    struct figure m = row("mstxMarkA", mark, runs, "<= 2 stamps");
    struct figure r = row("mstxRangeStartA + End", range, runs, "<= 4 stamps");
    struct figure h = row("mark through the header", mark_header, runs, "<= 1.15 of direct");
    struct figure hr = row("range through the header", range_header, runs, "<= 1.15 of direct");
    struct figure n = row("NVTX push + pop", push_pop, runs, "<= 1.3 of a range");
    row("mark in a filtered domain", filtered, runs, "<= 5 ns");
    api.pause();
    row("mark while stopped", mark, runs, "<= 5 ns");
    api.resume();
    printf("  header / direct: mark %.2f, range %.2f; NVTX / range %.2f\n", h.min / m.min,
           hr.min / r.min, n.min / r.min);
    tail();
    threads();
    lttng(m.median);
    python(build);
    snprintf(cmd, sizeof cmd, "rm -rf %s", out);
    return system(cmd) != 0;
}
