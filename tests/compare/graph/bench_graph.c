/* SPDX-License-Identifier: MIT
 *
 * bench_graph: making a graph against what the official tool was measured to take
 * for as many nodes, and the queries of viewers against the time a person notices.
 *
 *     bench_graph [NODES [RUNS [single]]]     single: no comparison
 *
 * The official figures are those of 100,033 nodes a side: 73 s, 2.0 GB and a file of
 * 517 MB for a comparison, 14.7 s and 0.93 GB for a single graph; they grow with the
 * number of nodes.
 */
#include "compare/graph/graph.h"
#include "compare/graph/view/graph_view.h"
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/dump/dump.h"
#include "tests/gen/big_dump.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RUNS = 50, QUERIES = 200, PER_BLOCK = 12 };

static void die(const struct ms_err *err)
{
    fprintf(stderr, "bench_graph: %s\n", err->msg);
    exit(1);
}

static FILE *create(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    return f;
}

static void finish(FILE *f)
{
    if (ferror(f) != 0 || fclose(f) != 0) {
        perror("bench_graph");
        exit(1);
    }
}

/* Operators lie in the module whose record follows, modules in blocks. */
static void put_construct(const char *dir)
{
    char path[256];
    struct probe_dump *d;
    struct ms_err err = {0};
    FILE *f = create(dir, "construct.json");
    snprintf(path, sizeof path, "%s/dump.json", dir);
    if (probe_dump_open(&d, path, 0, NULL, &err) != MS_OK)
        die(&err);
    uint32_t waiting = 0, modules = 0;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        bool last = i + 1 == d->nodes.n;
        if (d->nodes.p[i].kind != PROBE_NODE_MODULE && !last)
            continue;
        struct ms_str module = probe_node_name(d, i);
        for (; waiting < i; waiting++)
            fprintf(f, "%c\n \"%.*s\": \"%.*s\"", waiting == 0 ? '{' : ',',
                    MS_STR_ARG(probe_node_name(d, waiting)), MS_STR_ARG(module));
        fprintf(f, "%c\n \"%.*s\": \"Module.blocks.%u.Block.forward.0\"", i == 0 ? '{' : ',',
                MS_STR_ARG(module), modules / PER_BLOCK);
        if (modules++ % PER_BLOCK == 0)
            fprintf(f, ",\n \"Module.blocks.%u.Block.forward.0\": null", (modules - 1) / PER_BLOCK);
        waiting = i + 1;
    }
    fputs("\n}", f);
    probe_dump_close(d);
    finish(f);
}

static void put_side(const char *dir, size_t nodes, unsigned seed)
{
    struct ms_err err = {0};
    if (ms_mkdirs(dir, &err) != MS_OK)
        die(&err);
    FILE *f = create(dir, "dump.json");
    big_dump_write(f, nodes, seed);
    finish(f);
    put_construct(dir);
}

/* ---- times -------------------------------------------------------------------- */

struct times {
    int n;
    double cpu[MAX_RUNS], wall[MAX_RUNS];
};

static double now(clockid_t clock)
{
    return (double)ms_clock_read(clock) / 1e9;
}

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

static void report_memory(size_t nodes, double official_mb)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double mb = (double)u.ru_maxrss / 1e3;
    printf("  %.0f MB resident at most, %.2f of the official tool's\n", mb,
           mb / (official_mb * (double)nodes / 100033));
}

/* The last database stays. */
static void make(const char *dir, bool dual, int runs, struct times *t, struct graph_made *made)
{
    char target[96], golden[96], out[96];
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    struct graph_conf conf = {
        .target = target, .golden = dual ? golden : NULL, .out_dir = out, .suspects = true};
    for (t->n = 0; t->n < runs; t->n++) {
        struct ms_err err = {0};
        struct ms_pool *pool;
        if (t->n > 0)
            unlink(made->path);
        double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
        if (ms_pool_new(&pool, 0, &err) != MS_OK || graph_run(&conf, pool, made, &err) != MS_OK)
            die(&err);
        ms_pool_free(pool);
        t->cpu[t->n] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        t->wall[t->n] = now(CLOCK_MONOTONIC) - wall;
    }
    sort_times(t);
}

static void report_make(const char *name, size_t nodes, const struct times *t,
                        const struct graph_made *made, double official_s, double official_mb)
{
    struct stat st;
    double scale = (double)nodes / 100033;
    double mb = stat(made->path, &st) == 0 ? (double)st.st_size / 1e6 : 0;
    printf("  %-16s %8.2f %8.2f %8.2f %8.2f %8.1fx %8.0f %7.2f\n", name, t->cpu[0],
           t->cpu[t->n / 2], t->wall[0], t->wall[t->n / 2], official_s * scale / t->wall[0], mb,
           official_mb > 0 ? mb / (official_mb * scale) : 0);
}

/* ---- queries -------------------------------------------------------------------- */

enum question { CHILDREN, SEARCH_RARE, SEARCH_COMMON, NEXT, NEXT_NONE, PATH, ROLLUP, QUESTIONS };
static const char *const question_names[QUESTIONS] = {
    "children page", "search, rare", "search, common", "next by state",
    "next, none",    "path",         "roll-up"};
static const double bars_ms[QUESTIONS] = {2, 50, 50, 5, 5, 5, 5};

/* To the end, though one call may stop earlier. */
static enum ms_rc search(struct graph_view *v, struct graph_spot at, struct ms_str text,
                         int64_t after, struct graph_page *page, struct ms_err *err)
{
    do {
        MS_TRY(graph_view_search(v, at, text, after, 50, page, err));
        after = page->reached;
    } while (page->more && page->rows.n == 0 && after >= 0);
    return MS_OK;
}

static enum ms_rc ask(struct graph_view *v, enum question q, int i, int64_t last,
                      struct graph_page *page, struct ms_err *err)
{
    const struct graph_spot at = {0, 0, false};
    char text[64];
    struct graph_rollup r;
    int64_t from = last * i / QUERIES;
    snprintf(text, sizeof text, "Module.blocks.%d.Block.forward.0", i);
    switch (q) {
    case CHILDREN:
        return graph_view_children(v, at, MS_STR("DefaultModel"), -1, from, 100, page, err);
    case SEARCH_RARE:
        return search(v, at, MS_STR("NoSuchName"), -1, page, err);
    case SEARCH_COMMON:
        return search(v, at, MS_STR("linear"), from, page, err);
    case NEXT:
        return graph_view_next(v, at, GRAPH_WANT_ERROR | GRAPH_WANT_UNMATCHED, from, i % 2 != 0,
                               page, err);
    case NEXT_NONE: /* nothing overflows here; in a single graph nothing passes either */
        return graph_view_next(v, at, GRAPH_WANT_OVERFLOW, from, i % 2 != 0, page, err);
    case PATH:
        return graph_view_path(v, at, ms_str_of(text), page, err);
    default:
        return graph_view_rollup(v, at, ms_str_of(text), &r, err);
    }
}

static void report_query(struct graph_view *v, enum question q, int64_t last)
{
    static double ms[QUERIES];
    struct graph_page page = {.more = false};
    struct ms_err err = {0};
    for (int i = 0; i < QUERIES; i++) {
        double start = now(CLOCK_THREAD_CPUTIME_ID);
        if (ask(v, q, i, last, &page, &err) != MS_OK)
            die(&err);
        ms[i] = (now(CLOCK_THREAD_CPUTIME_ID) - start) * 1e3;
    }
    graph_page_free(&page);
    qsort(ms, QUERIES, sizeof ms[0], by_value);
    printf("  %-16s %8.3f %8.3f %8.3f %8.0f\n", question_names[q], ms[0], ms[QUERIES / 2],
           ms[QUERIES - 1], bars_ms[q]);
}

static void report_queries(const struct graph_made *made)
{
    struct graph_view *v;
    struct ms_err err = {0};
    double start = now(CLOCK_THREAD_CPUTIME_ID);
    if (graph_view_open(&v, made->path, &err) != MS_OK)
        die(&err);
    printf("  opening takes %.2f ms; queries, ms of CPU time\n",
           (now(CLOCK_THREAD_CPUTIME_ID) - start) * 1e3);
    printf("  %-16s %8s %8s %8s %8s\n", "", "min", "median", "max", "bar");
    for (int q = 0; q < QUESTIONS; q++)
        report_query(v, (enum question)q, (int64_t)made->nodes[0]);
    graph_view_close(v);
}

static void clean(const char *dir)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    if (system(cmd) != 0)
        fprintf(stderr, "bench_graph: %s is left behind\n", dir);
}

int main(int argc, char **argv)
{
    size_t nodes = argc > 1 ? strtoul(argv[1], NULL, 10) : 100033;
    int runs = argc > 2 ? atoi(argv[2]) : 5;
    const char *tmp = getenv("TMPDIR");
    char dir[64], side[80];
    struct times t;
    struct graph_made made;
    snprintf(dir, sizeof dir, "%.40s/msprobe-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    runs = runs < 1 ? 1 : runs > MAX_RUNS ? MAX_RUNS : runs;
    snprintf(side, sizeof side, "%s/t", dir);
    put_side(side, nodes, 1);
    snprintf(side, sizeof side, "%s/g", dir);
    if (argc <= 3)
        put_side(side, nodes, 2);
    printf("%zu nodes a side, %d runs; s\n", nodes, runs);
    printf("  %-16s %8s %8s %8s %8s %9s %8s %7s\n", "", "cpu min", "median", "wall min", "median",
           "official", "MB", "of its");
    make(dir, false, runs, &t, &made);
    report_make("single graph", nodes, &t, &made, 14.7, 0);
    report_memory(nodes, 930);
    if (argc > 3) {
        report_queries(&made);
        clean(dir);
        return 0;
    }
    unlink(made.path);
    make(dir, true, runs, &t, &made);
    report_make("comparison", nodes, &t, &made, 73, 517);
    report_memory(nodes, 2000);
    report_queries(&made);
    clean(dir);
    return 0;
}
