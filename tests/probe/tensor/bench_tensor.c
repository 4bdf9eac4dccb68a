/* SPDX-License-Identifier: MIT
 *
 * bench_tensor: statistics and digests over mapped tensor files, against a
 * plain sum of the same mapped bytes: the speed at which this machine's memory
 * gives them.  The file's pages are in memory; each run maps it anew, so
 * both sides pay for the mapping.
 *
 *     bench_tensor [MEGABYTES]     256 when not given
 */
#include "probe/base/clock.h"
#include "probe/base/cpu.h"
#include "probe/tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUNS = 7 };

static const char *path;
static char dir[] = "/tmp/msprobe-bench-XXXXXX";

/* ---- the limit ----------------------------------------------------------------- */

/* Eight running sums in vectors wide enough for any machine; the loads are all that counts. */
typedef uint64_t wide __attribute__((vector_size(32)));
typedef uint64_t loose __attribute__((vector_size(32), aligned(1), may_alias));

#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static uint64_t
plain_sum(const char *p, size_t n)
{
    wide a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (const char *end = p + n / 256 * 256; p != end; p += 256) {
        const loose *v = (const loose *)p;
        a += v[0];
        b += v[1];
        c += v[2];
        d += v[3];
        e += v[4];
        f += v[5];
        g += v[6];
        h += v[7];
    }
    a += b + c + d + e + f + g + h;
    return a[0] + a[1] + a[2] + a[3];
}

/* ---- what is measured ------------------------------------------------------------ */

typedef uint64_t (*pass)(const struct probe_tensor *t);

static size_t bytes_of(const struct probe_tensor *t)
{
    return t->count * ms_dtype_size(t->dtype);
}
static uint64_t run_sum(const struct probe_tensor *t)
{
    return plain_sum(t->data, bytes_of(t));
}
static uint64_t run_stats(const struct probe_tensor *t)
{
    struct ms_stats s;
    probe_tensor_stats(t, &s);
    return s.zero + (uint64_t)s.sumsq;
}
static uint64_t run_crc(const struct probe_tensor *t)
{
    return ms_crc32(0, t->data, bytes_of(t));
}
static uint64_t run_xor(const struct probe_tensor *t)
{
    return ms_xor64(t->data, bytes_of(t));
}

struct time {
    int64_t cpu[RUNS], wall[RUNS];
};

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static volatile uint64_t sink;

static void once(pass run, struct time *out, int i)
{
    struct probe_tensor t;
    struct ms_err err = {0};
    const int64_t wall = ms_clock_ns(), cpu = ms_clock_cpu_ns();
    if (probe_tensor_open(&t, path, SIZE_MAX, &err) != MS_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    sink = run(&t);
    probe_tensor_close(&t);
    out->cpu[i] = ms_clock_cpu_ns() - cpu;
    out->wall[i] = ms_clock_ns() - wall;
}

/* The sum and the pass take turns, so that both meet the same disturbances. */
static void compare(const char *name, const char *cpu, pass run, size_t bytes)
{
    struct time limit, it;
    for (int i = 0; i < RUNS; i++) {
        once(run_sum, &limit, i);
        once(run, &it, i);
    }
    qsort(limit.cpu, RUNS, sizeof(int64_t), by_value);
    qsort(it.cpu, RUNS, sizeof(int64_t), by_value);
    qsort(it.wall, RUNS, sizeof(int64_t), by_value);
    printf("%-18s %-9s %8.1f %8.1f %8.1f %8.2f %8.2f %8.2f\n", name, cpu, (double)it.cpu[0] / 1e6,
           (double)it.cpu[RUNS / 2] / 1e6, (double)it.wall[0] / 1e6,
           (double)bytes / (double)it.cpu[0], (double)it.cpu[0] / (double)limit.cpu[0],
           (double)it.cpu[RUNS / 2] / (double)limit.cpu[RUNS / 2]);
}

/* ---- inputs ------------------------------------------------------------------------ */

/* Numbers between -2 and 2 that differ in all bits but those of the exponent. */
static void fill(char *p, size_t n, enum ms_dtype t)
{
    uint64_t x = 88172645463325252;
    uint64_t keep = UINT64_MAX, set = 0;
    switch (t) {
    case MS_DT_F32:
        keep = 0x80ffffff80ffffff, set = 0x3f0000003f000000;
        break;
    case MS_DT_F64:
        keep = 0x800fffffffffffff, set = 0x3ff0000000000000;
        break;
    case MS_DT_F16:
        keep = 0x83ff83ff83ff83ff, set = 0x3c003c003c003c00;
        break;
    case MS_DT_BF16:
        keep = 0x80ff80ff80ff80ff, set = 0x3f003f003f003f00;
        break;
    case MS_DT_BOOL:
        keep = 0x0101010101010101;
        break;
    default:
        break;
    }
    for (size_t i = 0; i + 8 <= n; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const uint64_t v = (x & keep) | set;
        memcpy(p + i, &v, 8);
    }
}

static void make_file(enum ms_dtype t, bool pt, char *data, size_t bytes)
{
    static char name[64];
    struct ms_err err = {0};
    const uint64_t shape[1] = {bytes / ms_dtype_size(t)};
    fill(data, bytes, t);
    snprintf(name, sizeof name, "%s/t.%s", dir, pt ? "pt" : "npy");
    path = name;
    if ((pt ? probe_pt_write : probe_npy_write)(name, t, shape, 1, data, &err) != MS_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const enum ms_dtype types[] = {MS_DT_F32, MS_DT_F16, MS_DT_BF16, MS_DT_F64,  MS_DT_I64,
                                          MS_DT_I32, MS_DT_I16, MS_DT_U8,   MS_DT_BOOL, MS_DT_C64};
    static const struct {
        const char *name;
        unsigned bits;
    } cpus[] = {{"best", ~0U}, {"avx2", MS_CPU_CLMUL | MS_CPU_AVX2}, {"baseline", 0}};
    const size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 256) << 20;
    char *data = malloc(bytes), text[64];
    if (data == NULL || mkdtemp(dir) == NULL)
        return 1;
    printf("%zu MB mapped, %s; sum: a plain sum of the same bytes\n", bytes >> 20,
           ms_cpu_text(text, sizeof text));
    printf("%-18s %-9s %8s %8s %8s %8s %8s %8s\n", "", "cpu", "min ms", "med ms", "wall ms", "GB/s",
           "min/sum", "med/sum");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char name[32];
        make_file(types[i], types[i] != MS_DT_I16, data, bytes);
        snprintf(name, sizeof name, "stats %s", ms_dtype_torch(types[i]));
        for (size_t c = 0; c < sizeof cpus / sizeof *cpus; c++) {
            if (c == 2 && i > 0)
                continue; /* one figure says how slow the plain version is */
            ms_cpu_limit(cpus[c].bits);
            compare(name, cpus[c].name, run_stats, bytes);
            if (i == 0)
                compare("crc32", cpus[c].name, run_crc, bytes);
        }
        ms_cpu_limit(~0U);
        if (i == 0)
            compare("xor64", "best", run_xor, bytes);
        unlink(path);
    }
    free(data);
    return rmdir(dir) != 0;
}
