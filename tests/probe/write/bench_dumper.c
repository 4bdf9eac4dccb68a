/* SPDX-License-Identifier: MIT
 *
 * bench_dumper: what dumping from C costs: figures of a large tensor against a
 * plain sum over it, the fixed cost of an operator, and tensor files against
 * writing the same bytes in one go.
 *
 *     bench_dumper [DIR]     where to write; $TMPDIR or /tmp when not given
 */
#include "probe/base/clock.h"
#include "probe/base/mem.h"
#include "probe/dumper.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUNS = 7, LARGE = 64 << 20, OPS = 20000, FILES = 24, FILE_BYTES = 16 << 20 };

static char dir[256];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figures {
    double min, median;
};
static struct figures of(double v[RUNS])
{
    qsort(v, RUNS, sizeof *v, compare);
    return (struct figures){v[0], v[RUNS / 2]};
}

static void remove_dir(void)
{
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    if (system(cmd) != 0)
        fprintf(stderr, "cannot remove %s\n", dir);
}

static struct probe_dumper *open_dumper(enum probe_task task, bool no_extra)
{
    struct ms_err err = {0};
    struct probe_settings s = {
        .dump_path = dir, .task = task, .risk = PROBE_RISK_ALL, .no_extra = no_extra};
    struct probe_dumper *d;
    if (probe_dumper_open(&d, &s, &err) != MS_OK) {
        fprintf(stderr, "bench_dumper: %s\n", err.msg);
        exit(1);
    }
    return d;
}

static struct probe_value value_of(const struct probe_tensor_desc *t)
{
    return (struct probe_value){.kind = PROBE_TENSOR, .tensor = t};
}

/* ---- a large tensor --------------------------------------------------- */

/* Eight running sums in vectors wide enough for any machine: as fast as the memory gives. */
typedef float wide __attribute__((vector_size(32)));
#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static double
plain_sum(const float *p, size_t n)
{
    wide sum[8] = {{0}};
    for (size_t i = 0; i + 64 <= n; i += 64) {
        for (int k = 0; k < 8; k++) {
            wide v;
            memcpy(&v, p + i + 8 * k, sizeof v);
            sum[k] += v;
        }
    }
    double total = 0;
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < 8; i++)
            total += (double)sum[k][i];
    }
    return total;
}

static void bench_large(void)
{
    size_t n = LARGE / sizeof(float);
    float *p = malloc(LARGE);
    double dump[RUNS], sum[RUNS];
    volatile double sink = 0; /* keeps the sum alive */
    if (p == NULL)
        exit(1);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i % 1000) * 0.01f - 5;
    struct probe_tensor_desc t = {
        .data = p, .dtype = "float32", .shape = &(uint64_t){n}, .ndim = 1};
    struct probe_value v = value_of(&t);
    struct probe_dumper *d = open_dumper(PROBE_TASK_STATISTICS, false);
    probe_dumper_start(d);
    for (int r = -1; r < RUNS; r++) {
        int64_t a = ms_clock_cpu_ns();
        sink = sink + plain_sum(p, n);
        int64_t b = ms_clock_cpu_ns();
        probe_op(d, "Functional", "large", NULL, 0, &v, 1);
        int64_t c = ms_clock_cpu_ns();
        if (r >= 0) {
            sum[r] = (double)(b - a) / 1e6;
            dump[r] = (double)(c - b) / 1e6;
        }
    }
    probe_dumper_close(d, NULL);
    free(p);
    struct figures s = of(sum), f = of(dump);
    printf("%-34s %8.2f %8.2f ms\n", "sum over 64 MiB of float32", s.min, s.median);
    printf("%-34s %8.2f %8.2f ms   %.2f of the sum\n", "operator with it as output", f.min,
           f.median, f.min / s.min);
}

/* ---- small operators -------------------------------------------------- */

static void bench_small(const char *what, bool no_extra, int nin, int nout)
{
    float x[12];
    for (int i = 0; i < 12; i++)
        x[i] = 0.3f * (float)i - 1.1f;
    struct probe_tensor_desc t = {
        .data = x, .dtype = "float32", .shape = (const uint64_t[]){3, 4}, .ndim = 2};
    struct probe_value v[2] = {value_of(&t), value_of(&t)};
    struct probe_dumper *d = open_dumper(PROBE_TASK_STATISTICS, no_extra);
    double ns[RUNS];
    uint64_t calls = 0;
    for (int r = -1; r < RUNS; r++) {
        probe_dumper_start(d);
        uint64_t before = ms_mem_calls();
        int64_t a = ms_clock_cpu_ns();
        for (int i = 0; i < OPS; i++)
            probe_op(d, "Functional", "linear", v, (size_t)nin, v, (size_t)nout);
        int64_t b = ms_clock_cpu_ns();
        if (r >= 0) {
            ns[r] = (double)(b - a) / OPS;
            calls += ms_mem_calls() - before;
        }
        probe_dumper_stop(d);
        probe_dumper_step(d);
    }
    probe_dumper_close(d, NULL);
    remove_dir();
    struct figures f = of(ns);
    printf("%-34s %8.0f %8.0f ns   %llu allocations\n", what, f.min, f.median,
           (unsigned long long)calls);
}

/* ---- files of tensors ------------------------------------------------- */

static double write_plainly(const char *p)
{
    char path[300];
    int64_t a = ms_clock_ns();
    mkdir(dir, 0777);
    snprintf(path, sizeof path, "%s/plain", dir);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    for (int i = 0; i < FILES; i++) {
        for (size_t at = 0; at < FILE_BYTES; at += 1 << 20) {
            if (write(fd, p + at, 1 << 20) != 1 << 20)
                exit(1);
        }
    }
    close(fd);
    double s = (double)(ms_clock_ns() - a) / 1e9;
    remove_dir();
    return s;
}

/* A step of a program that has run for a while: its ring has been used before. */
static double write_tensors(struct probe_dumper *d, const struct probe_value *v)
{
    int64_t a = ms_clock_ns();
    probe_dumper_start(d);
    for (int i = 0; i < FILES; i++)
        probe_op(d, "Functional", "linear", NULL, 0, v, 1);
    probe_dumper_stop(d);
    double s = (double)(ms_clock_ns() - a) / 1e9;
    probe_dumper_step(d);
    remove_dir();
    return s;
}

static void bench_files(void)
{
    char *p = malloc(FILE_BYTES);
    double plain[RUNS], tensors[RUNS];
    if (p == NULL)
        exit(1);
    memset(p, 1, FILE_BYTES);
    struct probe_tensor_desc t = {
        .data = p, .dtype = "float32", .shape = &(uint64_t){FILE_BYTES / sizeof(float)}, .ndim = 1};
    struct probe_value v = value_of(&t);
    struct probe_dumper *d = open_dumper(PROBE_TASK_TENSOR, false);
    for (int r = -1; r < RUNS; r++) {
        double one = write_plainly(p), many = write_tensors(d, &v);
        if (r >= 0) {
            plain[r] = one;
            tensors[r] = many;
        }
    }
    probe_dumper_close(d, NULL);
    remove_dir();
    free(p);
    struct figures a = of(plain), b = of(tensors);
    double mib = (double)FILES * FILE_BYTES / (1 << 20);
    printf("%-34s %8.0f %8.0f MiB/s\n", "writing one file", mib / a.min, mib / a.median);
    printf("%-34s %8.0f %8.0f MiB/s   %.0f %% of it\n", "task tensor, 24 files of 16 MiB",
           mib / b.min, mib / b.median, 100 * a.median / b.median);
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.200s/msprobe-bench-%d",
             argc > 1 ? argv[1] : (tmp != NULL ? tmp : "/tmp"), (int)getpid());
    printf("%-34s %8s %8s\n", "", "best", "median");
    bench_large();
    remove_dir();
    bench_small("operator, one tensor, no stack", true, 0, 1);
    bench_small("operator, one tensor", false, 0, 1);
    bench_small("operator, input and output", false, 1, 1);
    bench_files();
    return 0;
}
