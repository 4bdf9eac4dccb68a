/* SPDX-License-Identifier: MIT
 *
 * bench_dump: opening a generated dump as flat rows, and reading every leaf of
 * it.  Two peers run over the same text: memchr for its lines, which is what
 * touching the bytes costs, and the pull reader without a model.
 *
 *     bench_dump [RECORDS [RUNS]]
 */
#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "probe/dump/dump.h"
#include "tests/gen/big_dump.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_RUNS = 50 };

static struct ms_str text;
static struct probe_dump *dump;
static struct ms_pool *pool;
static double sum; /* of all statistics: what was read was not thrown away */

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const struct ms_err *err)
{
    fprintf(stderr, "bench_dump: %s\n", err->msg);
    exit(3);
}

static char *generated(size_t records, size_t *n)
{
    char *p = NULL;
    FILE *f = open_memstream(&p, n);
    if (f == NULL)
        exit(3);
    big_dump_write(f, records, 1);
    if (fclose(f) != 0)
        exit(3);
    return p;
}

/* ---- cases ----------------------------------------------------------------------- */

static void count_lines(void)
{
    const char *end = text.p + text.n;
    size_t lines = 0;
    for (const char *p = text.p; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        lines++;
    sum = (double)lines;
}

static void read_tokens(void)
{
    struct ms_jread r;
    size_t tokens = 0;
    ms_jread_init(&r, text.p, text.n, 0);
    while (ms_jread_next(&r) > MS_J_END)
        tokens++;
    sum = (double)tokens;
}

static void open_rows(void)
{
    struct ms_err err = {0};
    probe_dump_close(dump);
    if (probe_dump_parse(&dump, "generated", text, 0, pool, &err) != MS_OK)
        die(&err);
    sum = (double)dump->rows.n;
}

static void read_leaves(void)
{
    sum = 0;
    for (size_t i = 0; i < dump->rows.n; i++) {
        struct probe_leaf leaf;
        probe_row_leaf(dump, &dump->rows.p[i], &leaf);
        for (int k = 0; k < PROBE_STATS; k++)
            sum += leaf.stat[k].v;
    }
}

/* ---- table --------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*run)(void), int runs)
{
    double cpu[MAX_RUNS];
    double wall[MAX_RUNS];
    run(); /* warm */
    for (int i = 0; i < runs; i++) {
        double c = now(CLOCK_PROCESS_CPUTIME_ID);
        double w = now(CLOCK_MONOTONIC);
        run();
        cpu[i] = now(CLOCK_PROCESS_CPUTIME_ID) - c;
        wall[i] = now(CLOCK_MONOTONIC) - w;
    }
    qsort(cpu, (size_t)runs, sizeof *cpu, by_value);
    qsort(wall, (size_t)runs, sizeof *wall, by_value);
    printf("%-28s %8.1f %8.1f %8.1f %8.1f %7.0f %7.0f %10.6g\n", name, cpu[0] * 1e3,
           cpu[runs / 2] * 1e3, wall[0] * 1e3, wall[runs / 2] * 1e3, (double)text.n / cpu[0] * 1e-6,
           (double)text.n / wall[0] * 1e-6, sum);
}

/* The most that one opening holds at a time, in bytes for each byte of text. */
static void measure_memory(const char *name)
{
    probe_dump_close(dump);
    dump = NULL;
    ms_trace_reset();
    ms_mem_peak_reset();
    size_t before = ms_mem_live();
    open_rows();
    printf("%-28s %.3f while opening, %.3f held\n", name, (double)(ms_mem_peak() - before) / text.n,
           (double)(ms_mem_live() - before) / text.n);
}

int main(int argc, char **argv)
{
    size_t records = argc > 1 ? strtoul(argv[1], NULL, 10) : 115000;
    int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    size_t n;
    struct ms_err err = {0};
    runs = runs < 1 ? 1 : runs > MAX_RUNS ? MAX_RUNS : runs;
    char *p = generated(records, &n);
    if (n > UINT32_MAX)
        return 2;
    text = (struct ms_str){p, (uint32_t)n};
    printf("dump of %.1f MB, %zu records, %d runs\n\n", (double)n * 1e-6, records, runs);
    printf("%-28s %8s %8s %8s %8s %7s %7s %10s\n", "", "cpu ms", "median", "wall ms", "median",
           "MB/cpus", "MB/s", "check");
    measure("memchr for lines", count_lines, runs);
    measure("pull reader, tokens only", read_tokens, runs);
    measure("open as rows, 1 thread", open_rows, runs);
    if (ms_pool_new(&pool, 2, &err) != MS_OK)
        die(&err);
    measure("open as rows, 2 threads", open_rows, runs);
    measure("every leaf of the rows", read_leaves, runs);
    printf("\nbytes of memory for a byte of text\n");
    measure_memory("2 threads");
    ms_pool_free(pool);
    pool = NULL;
    measure_memory("1 thread");
    probe_dump_close(dump);
    free(p);
    return isnan(sum);
}
