/* SPDX-License-Identifier: MIT
 *
 * bench_json: jread and jwrite against cJSON and Python's json on one generated
 * dump.  jread extracts every tensor where a row says so; cJSON and Python only
 * build their trees.  Sums over all statistics show that the same was read.
 *
 *     bench_json [RECORDS [RUNS]]
 */
#include "probe/base/jread.h"
#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "tests/gen/big_dump.h"
#include "tests/support/json_copy.h"

#include <cJSON.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 50, MAX_THREADS = 16 };

struct text {
    char *p;
    size_t n;
};

struct sums {
    uint64_t tensors, dims, flags;
    double stats;
};

/* ---- time ------------------------------------------------------------------------ */

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
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const char *name, size_t bytes, struct times *t, const char *note)
{
    qsort(t->cpu, (size_t)t->n, sizeof t->cpu[0], by_value);
    qsort(t->wall, (size_t)t->n, sizeof t->wall[0], by_value);
    double best = t->cpu[0];
    printf("%-34s %8.1f %8.1f %8.1f %9.0f  %s\n", name, best * 1e3, t->cpu[t->n / 2] * 1e3,
           t->wall[0] * 1e3, (double)bytes / best * 1e-6, note);
}

/* ---- our reader --------------------------------------------------------------------- */

struct leaf {
    struct ms_str type, dtype;
    int64_t shape[8];
    unsigned dims;
    double stat[4];
    bool requires_grad;
};

static enum ms_jtok take_shape(struct ms_jread *r, struct leaf *l)
{
    enum ms_jtok tok = ms_jread_next(r);
    l->dims = 0;
    while (tok != MS_J_ARR_END && tok > MS_J_END) {
        if (tok == MS_J_NUM && l->dims < 8 && ms_jread_i64(r, &l->shape[l->dims]))
            l->dims++;
        tok = ms_jread_next(r);
    }
    return tok;
}

static void take_text(struct ms_jread *r, struct ms_str *out)
{
    if (ms_jread_next(r) == MS_J_STR)
        *out = r->text;
}

/* The value of a key that leaves have; any other key is left to the caller's loop. */
static void take_member(struct ms_jread *r, struct leaf *l)
{
    static const char *const names[] = {"Max", "Min", "Mean", "Norm"};
    struct ms_str key = r->text;
    for (int i = 0; i < 4; i++) {
        if (ms_str_is(key, names[i])) {
            ms_jread_next(r);
            ms_jread_f64(r, &l->stat[i]);
            return;
        }
    }
    if (ms_str_is(key, "type"))
        take_text(r, &l->type);
    else if (ms_str_is(key, "dtype"))
        take_text(r, &l->dtype);
    else if (ms_str_is(key, "shape"))
        take_shape(r, l);
    else if (ms_str_is(key, "requires_grad"))
        l->requires_grad = ms_jread_next(r) == MS_J_TRUE;
}

static void add_leaf(struct sums *s, const struct leaf *l)
{
    s->tensors++;
    s->dims += l->dims;
    s->flags += l->requires_grad;
    s->stats += l->stat[0] + l->stat[1] + l->stat[2] + l->stat[3];
}

static struct sums extract(struct ms_jread *r)
{
    struct sums s = {0};
    struct leaf l = {0};
    for (enum ms_jtok tok = ms_jread_next(r); tok != MS_J_END; tok = ms_jread_next(r)) {
        if (tok == MS_J_KEY) {
            take_member(r, &l);
        } else if (tok == MS_J_OBJ_END && l.type.n != 0) {
            add_leaf(&s, &l);
            l = (struct leaf){0};
        } else if (tok == MS_J_ERR) {
            struct ms_err e = {0};
            ms_jread_fail(r, &e);
            fprintf(stderr, "bench_json: %s\n", e.msg);
            exit(3);
        }
    }
    return s;
}

static struct sums read_whole(struct text t)
{
    struct ms_jread r;
    ms_jread_init(&r, t.p, t.n, 0);
    return extract(&r);
}

static struct sums read_tokens(struct text t)
{
    struct ms_jread r;
    ms_jread_init(&r, t.p, t.n, 0);
    while (ms_jread_next(&r) > MS_J_END) {
    }
    return (struct sums){0};
}

/* ---- in parts ---------------------------------------------------------------------------- */

struct part {
    struct ms_jread r;
    struct sums sums;
    double cpu;
    pthread_t thread;
};

static void *read_part(void *ctx)
{
    struct part *part = ctx;
    double from = now(CLOCK_THREAD_CPUTIME_ID);
    part->sums = extract(&part->r);
    part->cpu = now(CLOCK_THREAD_CPUTIME_ID) - from;
    return NULL;
}

/* What is between the braces of "data", which is the last member. */
static struct text data_members(struct text t)
{
    struct ms_jread r;
    ms_jread_init(&r, t.p, t.n, 0);
    while (!(ms_jread_next(&r) == MS_J_KEY && ms_str_is(r.text, "data"))) {
    }
    ms_jread_next(&r);
    char *from = t.p + ms_jread_off(&r);
    char *end = memrchr(t.p, '}', t.n - 1);
    return (struct text){from, (size_t)(end - from)};
}

/* CPU time of the slowest part. */
static double read_in_parts(struct text t, unsigned threads, struct sums *out)
{
    static struct part parts[MAX_THREADS];
    size_t cut[MAX_THREADS + 1];
    struct text data = data_members(t);
    unsigned n = ms_jread_split(data.p, data.n, 2, threads, cut);
    for (unsigned i = 0; i < n; i++) {
        ms_jread_init_part(&parts[i].r, t.p, data.p + cut[i], cut[i + 1] - cut[i], i + 1 == n, 0);
        pthread_create(&parts[i].thread, NULL, read_part, &parts[i]);
    }
    double cpu = 0;
    *out = (struct sums){0};
    for (unsigned i = 0; i < n; i++) {
        pthread_join(parts[i].thread, NULL);
        cpu = parts[i].cpu > cpu ? parts[i].cpu : cpu;
        out->tensors += parts[i].sums.tensors;
        out->stats += parts[i].sums.stats;
    }
    return cpu;
}

/* ---- the rows ------------------------------------------------------------------------------ */

struct bench {
    struct text text;
    char path[64];
    int runs;
    struct sums sums; /* of the whole, to compare with */
};

static void check_sums(const struct bench *b, struct sums s, const char *who)
{
    double off = s.stats - b->sums.stats;
    if (s.tensors != b->sums.tensors || off * off > 1e-6) {
        fprintf(stderr, "bench_json: %s read other tensors\n", who);
        exit(3);
    }
}

static double row_reader(struct bench *b, const char *name, struct sums (*read)(struct text))
{
    struct times t = {.n = b->runs};
    size_t heap = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < t.n; i++) {
        double wall = now(CLOCK_MONOTONIC);
        double cpu = now(CLOCK_THREAD_CPUTIME_ID);
        struct sums s = read(b->text);
        t.cpu[i] = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
        t.wall[i] = now(CLOCK_MONOTONIC) - wall;
        if (s.tensors != 0)
            b->sums = s;
    }
    char note[64];
    snprintf(note, sizeof note, "heap growth %zu",
             mallinfo2().uordblks + mallinfo2().hblkhd - heap);
    print_row(name, b->text.n, &t, note);
    return t.cpu[0];
}

static void row_parts(struct bench *b, unsigned threads, double single)
{
    struct times t = {.n = b->runs};
    for (int i = 0; i < t.n; i++) {
        struct sums s;
        double wall = now(CLOCK_MONOTONIC);
        t.cpu[i] = read_in_parts(b->text, threads, &s);
        t.wall[i] = now(CLOCK_MONOTONIC) - wall;
        check_sums(b, s, "the parallel reader");
    }
    qsort(t.cpu, (size_t)t.n, sizeof t.cpu[0], by_value);
    char name[64];
    char note[64];
    snprintf(name, sizeof name, "jread, %u threads", threads);
    snprintf(note, sizeof note, "slowest part; %.2f x one thread", single / t.cpu[0]);
    print_row(name, b->text.n, &t, note);
}

static void add_cjson(const cJSON *item, struct sums *s)
{
    const cJSON *child;
    if (cJSON_IsObject(item) && cJSON_GetObjectItemCaseSensitive(item, "requires_grad") != NULL) {
        s->tensors++;
        cJSON_ArrayForEach(child, item)
        {
            if (cJSON_IsNumber(child))
                s->stats += child->valuedouble;
        }
        return;
    }
    cJSON_ArrayForEach(child, item) add_cjson(child, s);
}

static double row_cjson(struct bench *b)
{
    struct times t = {.n = b->runs};
    size_t heap = 0;
    for (int i = 0; i < t.n; i++) {
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        double wall = now(CLOCK_MONOTONIC);
        double cpu = now(CLOCK_THREAD_CPUTIME_ID);
        cJSON *tree = cJSON_ParseWithLength(b->text.p, b->text.n);
        t.cpu[i] = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
        t.wall[i] = now(CLOCK_MONOTONIC) - wall;
        heap = mallinfo2().uordblks + mallinfo2().hblkhd - before;
        struct sums s = {0};
        if (i == 0) {
            add_cjson(tree, &s);
            check_sums(b, s, "cJSON");
        }
        cJSON_Delete(tree);
    }
    char note[64];
    snprintf(note, sizeof note, "tree only; heap growth %zu", heap);
    print_row("cJSON_ParseWithLength", b->text.n, &t, note);
    return t.cpu[0];
}

static enum ms_rc to_nowhere(void *ctx, const char *p, size_t n, struct ms_err *err)
{
    *(size_t *)ctx += n;
    return p != NULL ? MS_OK : ms_fail(err, MS_E_INTERNAL, "nothing to drain");
}

/* Reading and writing in one; the reader's own time is known and taken off. */
static double row_writer(struct bench *b, double reading)
{
    struct times t = {.n = b->runs};
    for (int i = 0; i < t.n; i++) {
        struct ms_err e = {0};
        struct ms_jread r;
        struct ms_jwrite w;
        size_t written = 0;
        double wall = now(CLOCK_MONOTONIC);
        double cpu = now(CLOCK_THREAD_CPUTIME_ID);
        ms_jread_init(&r, b->text.p, b->text.n, 0);
        ms_jwrite_init(&w, 1, 1 << 20);
        w.drain = to_nowhere;
        w.ctx = &written;
        if (json_copy(&r, &w, &e) != MS_OK || written != b->text.n)
            fprintf(stderr, "bench_json: copy: %s\n", e.msg);
        ms_jwrite_free(&w);
        t.cpu[i] = now(CLOCK_THREAD_CPUTIME_ID) - cpu - reading;
        t.wall[i] = now(CLOCK_MONOTONIC) - wall - reading;
    }
    print_row("jwrite, values formatted", b->text.n, &t, "copy less reading");
    return t.cpu[0];
}

/* Python prints "load dump" in seconds for each run. */
static bool row_python(struct bench *b, double *load, double *dump)
{
    const char *python = getenv("PYTHON") != NULL ? getenv("PYTHON") : "/usr/bin/python3";
    if (access(python, X_OK) != 0) {
        printf("skip python: no %s\n", python);
        return false;
    }
    char cmd[512];
    snprintf(cmd, sizeof cmd,
             "%s -c 'import json, os, time\nfor i in range(%d):\n"
             " f = open(\"%s\"); a = time.process_time(); o = json.load(f)\n"
             " b = time.process_time(); json.dump(o, open(os.devnull, \"w\"), indent=1)\n"
             " print(b - a, time.process_time() - b); del o'",
             python, b->runs < 3 ? b->runs : 3, b->path);
    FILE *f = popen(cmd, "r");
    struct times loads = {0};
    struct times dumps = {0};
    while (f != NULL && fscanf(f, "%lf %lf", &loads.cpu[loads.n], &dumps.cpu[loads.n]) == 2) {
        loads.wall[loads.n] = loads.cpu[loads.n];
        dumps.wall[loads.n] = dumps.cpu[loads.n];
        dumps.n = ++loads.n;
    }
    if (f == NULL || pclose(f) != 0 || loads.n == 0) {
        printf("skip python: it failed\n");
        return false;
    }
    print_row("Python json.load", b->text.n, &loads, "");
    print_row("Python json.dump(indent=1)", b->text.n, &dumps, "");
    *load = loads.cpu[0];
    *dump = dumps.cpu[0];
    return true;
}

static void make_input(struct bench *b, size_t records)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(b->path, sizeof b->path, "%.40s/bench-json-XXXXXX", tmp != NULL ? tmp : "/tmp");
    int fd = mkstemp(b->path);
    FILE *f = fd >= 0 ? fdopen(fd, "w+b") : NULL;
    if (f == NULL) {
        perror(b->path);
        exit(3);
    }
    big_dump_write(f, records, 1);
    fflush(f);
    b->text.n = (size_t)ftell(f);
    b->text.p = mmap(NULL, b->text.n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (b->text.p == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    struct bench b = {.runs = argc > 2 ? atoi(argv[2]) : 5};
    double load;
    double dump;
    if (b.runs < 1 || b.runs > MAX_RUNS)
        b.runs = 5;
    make_input(&b, argc > 1 ? (size_t)atol(argv[1]) : 130000);
    printf("%.1f MB\n%-34s %8s %8s %8s %9s\n", (double)b.text.n * 1e-6, "", "cpu ms", "median",
           "wall ms", "MB/s");
    double tokens = row_reader(&b, "jread, tokens only", read_tokens);
    double full = row_reader(&b, "jread, every tensor extracted", read_whole);
    for (unsigned threads = 2; threads <= 4; threads *= 2)
        row_parts(&b, threads, full);
    double tree = row_cjson(&b);
    double write = row_writer(&b, tokens);
    printf("jread / cJSON %.2f\n", tree / full);
    if (row_python(&b, &load, &dump))
        printf("jread / Python %.1f, jwrite / Python %.1f\n", load / full, dump / write);
    unlink(b.path);
    return 0;
}
