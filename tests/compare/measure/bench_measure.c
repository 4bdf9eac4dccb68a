/* SPDX-License-Identifier: MIT
 *
 * bench_measure: comparisons of tensor dumps whose files lie in the page cache, against
 * only reading both sides' files with as many threads.
 *
 *     bench_measure [MEGABYTES [TYPE]]     a side, 256 when not given; float16 and so on
 *
 * Two sets of files of 10 MB are written for each type below TMPDIR, about half of the
 * elements a little different, and taken away again.  Reading is read() into a buffer of
 * 1 MiB that stays in the processor's cache; a comparison is all of it, from opening the
 * dumps to the table.  Runs of both take turns; the quickest of each count.
 */
#include "compare/write/out.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/tensor/tensor.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, RUNS = 5, FILE_BYTES = 10 << 20, BUFFER = 1 << 20, PATH_BYTES = 512 };

static char dir[PATH_BYTES / 2];
static struct ms_err err;

static _Noreturn void die(void)
{
    fprintf(stderr, "bench_measure: %s\n", err.msg);
    exit(1);
}

/* ---- the files ------------------------------------------------------------------ */

static uint64_t state = 0x9e3779b97f4a7c15;

static double next_random(void) /* from -1 to 1 */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(int64_t)state * 0x1p-63;
}

static uint16_t half_of(double v)
{
    int exponent;
    double mantissa = frexp(fabs(v), &exponent);
    if (exponent < -13)
        return 0;
    return (uint16_t)((v < 0 ? 0x8000 : 0) + ((exponent + 14) << 10) +
                      (int)lrint(mantissa * 2048 - 1024));
}

static uint16_t brain_of(double v)
{
    float single = (float)v;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Floats as they come; whole numbers up to 100, without a sign where the type has none. */
static void write_number(enum ms_dtype t, double v, char *out)
{
    const float pair[2] = {(float)v, (float)-v};
    const double wide[2] = {v, -v};
    const int64_t whole = (int64_t)(fabs(v) * 30);
    const uint16_t half = t == MS_DT_F16 ? half_of(v) : brain_of(v);
    const uint8_t byte = (uint8_t)(half_of(v * 64) >> 8); /* some float8, no NaN */
    const bool flag = v > 0;
    const void *from = &whole;
    if (t == MS_DT_F32 || t == MS_DT_C64)
        from = pair;
    else if (t == MS_DT_F64 || t == MS_DT_C128)
        from = wide;
    else if (t == MS_DT_F16 || t == MS_DT_BF16)
        from = &half;
    else if (t == MS_DT_F8E4M3)
        from = &byte;
    else if (t == MS_DT_BOOL)
        from = &flag;
    memcpy(out, from, ms_dtype_size(t));
}

static void name_of(char path[PATH_BYTES], char side, size_t i)
{
    snprintf(path, PATH_BYTES, "%s/%c/dump_tensor_data/Torch.mul.%zu.forward.output.0.pt", dir,
             side, i);
}

static void write_dump(char side, enum ms_dtype t, size_t files)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%c/dump.json", dir, side);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    fputs("{\"task\": \"tensor\", \"level\": \"L1\", \"framework\": \"pytorch\", "
          "\"dump_data_dir\": null, \"data\": {",
          f);
    for (size_t i = 0; i < files; i++)
        fprintf(f,
                "%s\"Torch.mul.%zu.forward\": {\"input_args\": [], \"input_kwargs\": {}, "
                "\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": \"%s\", \"shape\": [%zu], "
                "\"Max\": 1.0, \"Min\": -1.0, \"Mean\": 0.0, \"Norm\": 1.0, "
                "\"requires_grad\": false, "
                "\"data_name\": \"Torch.mul.%zu.forward.output.0.pt\"}]}",
                i == 0 ? "" : ", ", i, ms_dtype_torch(t), FILE_BYTES / ms_dtype_size(t), i);
    fputs("}}", f);
    if (fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void fill(enum ms_dtype t, char *target, char *golden)
{
    const size_t size = ms_dtype_size(t);
    for (size_t i = 0; i < FILE_BYTES / size; i++) {
        double v = 3 * next_random(), by = next_random() > 0 ? 1e-2 * next_random() : 0;
        write_number(t, v, golden + i * size);
        write_number(t, v + v * by, target + i * size);
    }
}

static void write_files(enum ms_dtype t, size_t files, char *target, char *golden)
{
    const uint64_t shape = FILE_BYTES / ms_dtype_size(t);
    char path[PATH_BYTES];
    fill(t, target, golden);
    for (size_t i = 0; i < 2 * files; i++) {
        char side = i % 2 != 0 ? 't' : 'g';
        name_of(path, side, i / 2);
        if (probe_pt_write(path, t, &shape, 1, side == 't' ? target : golden, &err) != MS_OK)
            die();
    }
    write_dump('t', t, files);
    write_dump('g', t, files);
}

static void remove_files(size_t files)
{
    char path[PATH_BYTES];
    for (size_t i = 0; i < 2 * files; i++) {
        name_of(path, i % 2 != 0 ? 't' : 'g', i / 2);
        unlink(path);
    }
}

/* ---- both ways ------------------------------------------------------------------- */

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static enum ms_rc read_one(void *ctx, size_t item, unsigned worker, struct ms_err *e)
{
    static char buffer[THREADS][BUFFER];
    char path[PATH_BYTES];
    (void)ctx;
    name_of(path, item % 2 != 0 ? 't' : 'g', item / 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ms_fail(e, MS_E_IO, "%s: cannot be opened", path);
    while (read(fd, buffer[worker], BUFFER) > 0)
        ;
    close(fd);
    return MS_OK;
}

static void read_all(size_t files, struct ms_pool *pool)
{
    if (ms_pool_run(pool, 2 * files, read_one, NULL, &err) != MS_OK)
        die();
}

static void compare_all(struct ms_pool *pool)
{
    char t[PATH_BYTES], g[PATH_BYTES], stem[PATH_BYTES];
    const struct cmp_conf conf = {0};
    struct cmp_summary sum = {0};
    struct cmp_files written = {0};
    struct cmp *c;
    snprintf(t, sizeof t, "%s/t/dump.json", dir);
    snprintf(g, sizeof g, "%s/g/dump.json", dir);
    snprintf(stem, sizeof stem, "%s/out", dir);
    if (cmp_open(&c, &conf, t, g, pool, &err) != MS_OK || cmp_measure(c, pool, &err) != MS_OK ||
        cmp_write_csv(c, stem, pool, &sum, &written, &err) != MS_OK)
        die();
    cmp_close(c);
    cmp_files_free(&written);
}

struct best {
    double wall, cpu;
};

static void take_time(struct best *best, double wall, double cpu)
{
    wall = now(CLOCK_MONOTONIC) - wall;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    best->wall = best->wall == 0 || wall < best->wall ? wall : best->wall;
    best->cpu = best->cpu == 0 || cpu < best->cpu ? cpu : best->cpu;
}

static void bench_type(enum ms_dtype t, size_t files, struct ms_pool *pool)
{
    static char target[FILE_BYTES], golden[FILE_BYTES];
    struct best reading = {0}, comparing = {0};
    write_files(t, files, target, golden);
    read_all(files, pool);
    for (int i = 0; i < RUNS; i++) {
        double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        read_all(files, pool);
        take_time(&reading, wall, cpu);
        wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        compare_all(pool);
        take_time(&comparing, wall, cpu);
    }
    remove_files(files);
    printf("%-14s %6.3f %6.3f %7.2f   %6.3f %6.3f %7.2f %8.1f\n", ms_dtype_torch(t), reading.wall,
           comparing.wall, comparing.wall / reading.wall, reading.cpu, comparing.cpu,
           comparing.cpu / reading.cpu, 2 * (double)files * FILE_BYTES / comparing.wall / 1e9);
    fflush(stdout);
}

/* ---- the program ------------------------------------------------------------------ */

static void make_folders(void)
{
    static const char *const below[] = {"/t", "/t/dump_tensor_data", "/g", "/g/dump_tensor_data"};
    const char *top = getenv("TMPDIR");
    char path[PATH_BYTES];
    snprintf(dir, sizeof dir, "%s/msprobe-bench-XXXXXX", top != NULL ? top : "/tmp");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        exit(1);
    }
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(path, sizeof path, "%s%s", dir, below[i]);
        if (ms_mkdirs(path, &err) != MS_OK)
            die();
    }
}

static void remove_folders(void)
{
    static const char *const inside[] = {
        "/t/dump_tensor_data", "/t/dump.json", "/t",       "/g/dump_tensor_data",
        "/g/dump.json",        "/g",           "/out.csv", ""};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(path, sizeof path, "%s%s", dir, inside[i]);
        remove(path);
    }
}

int main(int argc, char **argv)
{
    static const enum ms_dtype types[] = {MS_DT_F32, MS_DT_BF16, MS_DT_F16, MS_DT_F64, MS_DT_F8E4M3,
                                          MS_DT_I64, MS_DT_I32,  MS_DT_I16, MS_DT_U16, MS_DT_I8,
                                          MS_DT_U8,  MS_DT_BOOL, MS_DT_C64, MS_DT_C128};
    uint64_t megabytes = 256;
    struct ms_pool *pool;
    if ((argc > 1 && !ms_str_u64(ms_str_of(argv[1]), &megabytes)) || megabytes < 20) {
        fputs("usage: bench_measure [MEGABYTES [TYPE]]    20 or more\n", stderr);
        return 2;
    }
    if (ms_pool_new(&pool, THREADS, &err) != MS_OK)
        die();
    make_folders();
    printf("%llu MB a side, %d threads\n", (unsigned long long)megabytes, (int)THREADS);
    puts("type              wall s         over   CPU s           over     GB/s");
    puts("                reading compare reading reading compare reading compare");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (argc < 3 || strcmp(argv[2], ms_dtype_torch(types[i])) == 0)
            bench_type(types[i], (size_t)megabytes * 1000000 / FILE_BYTES, pool);
    }
    remove_folders();
    ms_pool_free(pool);
    return 0;
}
