/* SPDX-License-Identifier: MIT
 *
 * tool_align: aligns two dumps and prints the pairs, one a line, for measuring.
 *
 *     tool_align TARGET GOLDEN          directories or dump.json files
 *     tool_align -v TARGET GOLDEN       confidence and reason as well
 *     tool_align -e NODE TARGET GOLDEN  explain a node of the target
 *     tool_align -d TARGET GOLDEN       the data mapping
 *     tool_align -s TARGET GOLDEN       time and figures alone
 */
#include "compare/align/align.h"
#include "probe/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

struct side {
    struct probe_dump *dump;
    struct probe_tree tree;
    bool has_tree;
};

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static enum ms_rc open_side(struct side *s, const char *path, struct ms_err *err)
{
    char file[4096];
    struct stat st;
    bool is_dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(file, sizeof file, is_dir ? "%s/dump.json" : "%s", path);
    MS_TRY(probe_dump_open(&s->dump, file, 0, NULL, err));
    char *slash = strrchr(file, '/');
    snprintf(slash != NULL ? slash + 1 : file, 16, "construct.json");
    struct ms_err none = {0};
    s->has_tree = probe_tree_open(&s->tree, file, 0, &none) == MS_OK;
    return MS_OK;
}

static void close_side(struct side *s)
{
    probe_dump_close(s->dump);
    if (s->has_tree)
        probe_tree_close(&s->tree);
}

static void print_pairs(const struct cmp_align *al, const struct side side[2], bool verbose)
{
    size_t n;
    const struct cmp_align_pair *p = cmp_align_pairs(al, &n);
    printf(verbose ? "golden_entry,target_entry,confidence,how\n" : "golden_entry,target_entry\n");
    for (size_t i = 0; i < n; i++) {
        struct ms_str t = probe_node_name(side[1].dump, p[i].target);
        struct ms_str g = probe_node_name(side[0].dump, p[i].golden);
        printf("%.*s,%.*s", MS_STR_ARG(g), MS_STR_ARG(t));
        if (verbose)
            printf(",%.2f,%s", (double)p[i].confidence, cmp_align_how_names[p[i].how]);
        putchar('\n');
    }
}

static void explain(const struct cmp_align *al, const struct side *side, const char *name)
{
    struct ms_buf text = {.max = 1 << 20};
    uint32_t node = probe_node_find(side->dump, ms_str_of(name));
    if (node == MS_MAP_NONE)
        ms_buf_puts(&text, "no such node\n");
    else
        cmp_align_explain(al, false, node, &text);
    fputs(ms_buf_z(&text), stdout);
    ms_buf_free(&text);
}

static enum ms_rc print_mapping(const struct cmp_align *al, struct ms_err *err)
{
    struct ms_buf text = {.max = (size_t)1 << 32};
    enum ms_rc rc = cmp_align_write_rows(al, &text, err);
    fputs(ms_buf_z(&text), stdout);
    ms_buf_free(&text);
    return rc;
}

struct spent {
    double wall, cpu;
};

static struct spent spent_since(struct spent s)
{
    return (struct spent){seconds_of(CLOCK_MONOTONIC) - s.wall,
                          seconds_of(CLOCK_PROCESS_CPUTIME_ID) - s.cpu};
}

static void print_figures(const struct cmp_align *al, struct spent spent, size_t bytes)
{
    struct cmp_align_stats s = cmp_align_stats(al);
    printf("ops %zu %zu, pairs %zu, anchors %zu, cells %llu, %s, noise %.2g, unknown names %zu, "
           "%.3f s, CPU %.3f s, peak %.1f MB\n",
           s.ops[0], s.ops[1], s.pairs, s.anchors, (unsigned long long)s.cells,
           s.by_value ? "values" : "structure", s.noise, s.unknown_names, spent.wall, spent.cpu,
           (double)bytes / 1e6);
}

int main(int argc, char **argv)
{
    char what = argc > 3 ? argv[1][1] : 0;
    struct side side[2] = {{.dump = NULL}};
    struct ms_err err = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: tool_align [-v|-s|-e NODE] TARGET GOLDEN\n");
        return 2;
    }
    enum ms_rc rc = open_side(&side[1], argv[argc - 2], &err);
    if (rc == MS_OK)
        rc = open_side(&side[0], argv[argc - 1], &err);
    struct cmp_align *al = NULL;
    struct ms_pool *pool = NULL;
    if (rc == MS_OK)
        rc = ms_pool_new(&pool, 0, &err);
    const struct spent start = spent_since((struct spent){0, 0});
    size_t before = ms_mem_live();
    ms_mem_peak_reset();
    if (rc == MS_OK) {
        const struct cmp_align_input in[2] = {
            {side[0].dump, side[0].has_tree ? &side[0].tree : NULL},
            {side[1].dump, side[1].has_tree ? &side[1].tree : NULL}};
        rc = cmp_align_new(&al, &in[1], &in[0], NULL, 0, pool, &err);
    }
    if (rc != MS_OK)
        fprintf(stderr, "tool_align: %s\n", err.msg);
    else if (what == 's')
        print_figures(al, spent_since(start), ms_mem_peak() - before);
    else if (what == 'd')
        rc = print_mapping(al, &err);
    else if (what == 'e')
        explain(al, &side[1], argv[2]);
    else
        print_pairs(al, side, what == 'v');
    cmp_align_free(al);
    ms_pool_free(pool);
    close_side(&side[0]);
    close_side(&side[1]);
    return rc == MS_OK ? 0 : 3;
}
