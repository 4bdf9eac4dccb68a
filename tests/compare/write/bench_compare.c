/* SPDX-License-Identifier: MIT
 *
 * bench_compare: a comparison against what the official tool was measured to take
 * for as many records, and tensor figures against merely reading the same bytes.
 *
 *     bench_compare [RECORDS [RUNS]]
 *
 * The official figures are those of 100,033 records a side on a machine like this
 * one: 81.9 s of CPU for csv, 137 s for xlsx; 71.2 s for 10,041 records with -fm;
 * beyond 2 s of starting up they grow with the number of records (with -fm faster).
 */
#include "compare/measure/metric.h"
#include "compare/write/out.h"
#include "probe/base/mem.h"
#include "tests/gen/big_dump.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 50, ELEMENTS = 16 << 20 };
static const double official_csv = 81.9, official_xlsx = 137, official_fuzzy = 71.2;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct times {
    int n;
    double cpu[MAX_RUNS], wall[MAX_RUNS];
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_times(struct times *t)
{
    qsort(t->cpu, (size_t)t->n, sizeof t->cpu[0], by_value);
    qsort(t->wall, (size_t)t->n, sizeof t->wall[0], by_value);
}

/* ---- whole comparisons ----------------------------------------------------- */

enum kind { CSV, XLSX, FUZZY };

static _Noreturn void die(const struct ms_err *err)
{
    fprintf(stderr, "bench_compare: %s\n", err->msg);
    exit(1);
}

static void compare_once(const char *dir, enum kind kind)
{
    char t[96], b[96], stem[96];
    struct ms_err err = {0};
    struct cmp_conf conf = {.fuzzy = kind == FUZZY};
    struct cmp_summary sum = {0};
    struct cmp_files files = {0};
    struct ms_pool *pool;
    struct cmp *c;
    snprintf(t, sizeof t, "%s/t.json", dir);
    snprintf(b, sizeof b, "%s/b.json", dir);
    snprintf(stem, sizeof stem, "%s/out", dir);
    if (ms_pool_new(&pool, 0, &err) != MS_OK || cmp_open(&c, &conf, t, b, pool, &err) != MS_OK)
        die(&err);
    enum ms_rc rc = kind == XLSX ? cmp_write_xlsx(c, stem, &sum, &files, &err)
                                 : cmp_write_csv(c, stem, pool, &sum, &files, &err);
    if (rc != MS_OK)
        die(&err);
    cmp_close(c);
    ms_pool_free(pool);
    cmp_files_free(&files);
}

static double bench_kind(const char *dir, enum kind kind, size_t records, int runs,
                         const char *name, double official)
{
    struct times t = {.n = runs};
    ms_mem_peak_reset();
    for (int i = 0; i < runs; i++) {
        double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
        compare_once(dir, kind);
        t.cpu[i] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        t.wall[i] = now(CLOCK_MONOTONIC) - wall;
    }
    sort_times(&t);
    printf("%-8s %8zu %9.3f %9.3f %9.3f %8.1f", name, records, t.cpu[0], t.cpu[runs / 2], t.wall[0],
           (double)ms_mem_peak() / 1e6);
    if (official > 0)
        printf(" %7.0fx", official / t.cpu[0]);
    putchar('\n');
    return t.cpu[0];
}

static void write_side(const char *dir, char side, size_t records, unsigned seed)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%c.json", dir, side);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    big_dump_write(f, records, seed);
    if (fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void remove_files(const char *dir)
{
    static const char *const names[] = {"t.json", "b.json", "out.csv", "out.xlsx"};
    char path[96];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void bench_dumps(size_t records, int runs)
{
    char dir[] = "/tmp/msprobe-XXXXXX";
    double share = (double)records / 100033;
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        exit(1);
    }
    puts("kind      records   CPU min    median  wall min     MB at  official");
    puts("a side                  s         s         s      peak  CPU");
    write_side(dir, 't', records / 10, 1);
    write_side(dir, 'b', records / 10, 2);
    double tenth = bench_kind(dir, FUZZY, records / 10, runs, "fuzzy", official_fuzzy * share);
    write_side(dir, 't', records, 1);
    write_side(dir, 'b', records, 2);
    double whole = bench_kind(dir, FUZZY, records, runs, "fuzzy", 0);
    printf("         ten times the records take %.1f times as long\n", whole / tenth);
    bench_kind(dir, CSV, records, runs, "csv", official_csv * share);
    bench_kind(dir, XLSX, records, 1, "xlsx", official_xlsx * share);
    remove_files(dir);
}

/* ---- the pass over two tensors ---------------------------------------------- */

/* What reading alone takes: eight sums of the words. */
static uint64_t read_words(const void *p, size_t bytes)
{
    uint64_t sum[8] = {0}, word[8];
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(word, (const char *)p + i, sizeof word);
        for (int k = 0; k < 8; k++)
            sum[k] += word[k];
    }
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

static void bench_type(enum ms_dtype type, bool ext, const void *x, const void *y, int runs)
{
    size_t bytes = 2 * ELEMENTS * ms_dtype_size(type);
    struct times pass = {.n = runs}, reading = {.n = runs};
    volatile uint64_t sink = 0;
    for (int i = 0; i < runs; i++) {
        struct cmp_facts f = {0};
        double at = now(CLOCK_THREAD_CPUTIME_ID);
        cmp_facts_add(&f, type, x, type, y, ELEMENTS, ext);
        pass.cpu[i] = now(CLOCK_THREAD_CPUTIME_ID) - at;
        at = now(CLOCK_THREAD_CPUTIME_ID);
        sink = sink + read_words(x, bytes / 2) + read_words(y, bytes / 2);
        reading.cpu[i] = now(CLOCK_THREAD_CPUTIME_ID) - at;
    }
    sort_times(&pass);
    sort_times(&reading);
    printf("%-9s %-4s %7.2f %7.2f %9.2f\n", ms_dtype_torch(type), ext ? "ext" : "",
           (double)bytes / pass.cpu[0] / 1e9, (double)bytes / pass.cpu[runs / 2] / 1e9,
           pass.cpu[0] / reading.cpu[0]);
}

static void bench_tensors(int runs)
{
    static const enum ms_dtype types[] = {MS_DT_F32, MS_DT_F16, MS_DT_BF16, MS_DT_F64,
                                          MS_DT_I64, MS_DT_I32, MS_DT_I16,  MS_DT_U16,
                                          MS_DT_I8,  MS_DT_U8,  MS_DT_BOOL};
    size_t bytes = (size_t)ELEMENTS * 8;
    uint16_t *x = ms_alloc(bytes), *y = ms_alloc(bytes);
    if (x == NULL || y == NULL) {
        fputs("bench_compare: out of memory\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < bytes / 2; i++) { /* no type makes a NaN of these */
        x[i] = (uint16_t)(0x3800 | (i * 2654435761U >> 16 & 0x3ff));
        y[i] = (uint16_t)(x[i] ^ (i % 7 == 0));
    }
    puts("\ntype          GB/s  median  time over reading, both sides in memory, one thread");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bench_type(types[i], false, x, y, runs);
        bench_type(types[i], true, x, y, runs);
    }
    ms_free(x);
    ms_free(y);
}

int main(int argc, char **argv)
{
    uint64_t records = 100000, runs = 5;
    if ((argc > 1 && !ms_str_u64(ms_str_of(argv[1]), &records)) ||
        (argc > 2 && !ms_str_u64(ms_str_of(argv[2]), &runs)) || records < 10 || runs == 0 ||
        runs > MAX_RUNS) {
        fputs("usage: bench_compare [RECORDS [RUNS]]\n", stderr);
        return 2;
    }
    bench_dumps(records, (int)runs);
    bench_tensors((int)runs);
    return 0;
}
