/* SPDX-License-Identifier: MIT
 *
 * graph_dump: finds MindSpore's own dumps of compiled graphs and converts them.
 */
#include "probe/dump/graph_dump.h"

#include "probe/dump/find.h"
#include "probe/dump/graph_write.h"

#include "probe/base/mem.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The number changes when a conversion would give other files, so that no version of msprobe reads
 * what another one has converted. */
#define CACHE_VERSION "7"
static const char CACHE[] = ".msprobe_graphs" CACHE_VERSION;

static bool join(char path[PATH_MAX], const char *dir, struct ms_str name)
{
    int n = snprintf(path, PATH_MAX, "%s/%.*s", dir, MS_STR_ARG(name));
    return n > 0 && n < PATH_MAX;
}

static bool is_folder(const char *dir, struct ms_str name)
{
    char path[PATH_MAX];
    return join(path, dir, name) && ms_path_kind(path) == MS_KIND_DIR;
}

/* ---- recognising a graph dump ------------------------------------------- */

static bool rank_of(struct ms_str name, uint64_t *rank)
{
    const struct ms_str word = MS_STR("rank_");
    return ms_str_starts(name, word) && ms_str_u64(ms_str_sub(name, word.n, name.n), rank);
}

/* Calls `then` for each subfolder until it returns false. */
typedef bool (*visit)(void *ctx, const char *path, struct ms_str name);
static bool each_folder(const char *dir, visit then, void *ctx)
{
    struct ms_dir d;
    char path[PATH_MAX];
    bool goes_on = true;
    if (ms_dir_list(&d, dir, NULL) != MS_OK)
        return true;
    for (size_t i = 0; i < d.names.n && goes_on; i++) {
        if (is_folder(dir, d.names.p[i]) && join(path, dir, d.names.p[i]))
            goes_on = then(ctx, path, d.names.p[i]);
    }
    ms_dir_free(&d);
    return goes_on;
}

static bool is_no_number(void *ctx, const char *path, struct ms_str name)
{
    (void)ctx, (void)path;
    return !ms_str_all_digits(name);
}

static bool has_no_iteration(void *ctx, const char *path, struct ms_str name)
{
    return !ms_str_all_digits(name) || each_folder(path, is_no_number, ctx);
}

static bool is_no_net(void *ctx, const char *path, struct ms_str name)
{
    (void)name;
    return each_folder(path, has_no_iteration, ctx);
}

static bool is_rank(const char *path)
{
    uint64_t rank;
    return rank_of(ms_path_base(path), &rank) && !each_folder(path, is_no_net, NULL);
}

static bool is_no_rank(void *ctx, const char *path, struct ms_str name)
{
    (void)ctx, (void)name;
    return !is_rank(path);
}

bool probe__is_graph_dump(const char *path)
{
    return is_rank(path) || !each_folder(path, is_no_rank, NULL);
}

/* ---- output folder ------------------------------------------------------ */

struct conversion {
    char root[PATH_MAX]; /* root of the converted dump */
    char net[PATH_MAX];
    uint64_t rank;
    size_t longest; /* most runs of one graph */
    char graph[24]; /* the graph with most runs; its folders number the steps */
    enum ms_rc rc;
    struct ms_err *err;
};

/* Chooses the output folder: beside the graphs or, where that is not writable, in the user's cache
 * under a hash of the path. */
static enum ms_rc choose_root(struct conversion *c, const char *path, struct ms_err *err)
{
    char full[PATH_MAX];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (realpath(path, full) == NULL)
        return ms_fail_sys(err, "%s", path);
    bool fits = join(c->root, full, ms_str_of(CACHE));
    if (access(full, W_OK) == 0 || ms_path_kind(c->root) == MS_KIND_DIR)
        return fits ? MS_OK : ms_fail(err, MS_E_LIMIT, "%s: path too long", path);
    if ((cache == NULL || *cache != '/') && (home == NULL || *home != '/'))
        return ms_fail(err, MS_E_ARG, "%s: nothing may be written beside it, and there is no HOME",
                       path);
    const bool has_cache = cache != NULL && *cache == '/';
    int n = snprintf(c->root, sizeof c->root, "%s%s/msprobe/graphs" CACHE_VERSION "/%016llx",
                     has_cache ? cache : home, has_cache ? "" : "/.cache",
                     (unsigned long long)ms_str_hash(ms_str_of(full)));
    return n > 0 && (size_t)n < sizeof c->root
               ? MS_OK
               : ms_fail(err, MS_E_LIMIT, "%s: path too long", path);
}

/* ---- converting --------------------------------------------------------- */

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Finds the latest modification time of the iteration folders. */
static bool find_newest(void *ctx, const char *path, struct ms_str name)
{
    struct timespec *newest = ctx;
    struct stat st;
    if (ms_str_all_digits(name) && stat(path, &st) == 0 && is_later(st.st_mtim, *newest))
        *newest = st.st_mtim;
    return true;
}

static bool find_newest_run(void *ctx, const char *path, struct ms_str name)
{
    return !ms_str_all_digits(name) || each_folder(path, find_newest, ctx);
}

/* Tells whether no file was added since dump.json was written. */
static bool is_up_to_date(const struct conversion *c, const char *dir)
{
    struct timespec newest = {0};
    struct stat st;
    char path[PATH_MAX];
    if (!join(path, dir, MS_STR("dump.json")) || stat(path, &st) != 0)
        return false;
    each_folder(c->net, find_newest_run, &newest);
    return is_later(st.st_mtim, newest);
}

static enum ms_rc convert_run(struct conversion *c, size_t run, struct ms_str step)
{
    char dir[PATH_MAX];
    struct probe__graph g;
    struct probe__graph_shape s = {0};
    int n = snprintf(dir, sizeof dir, "%s/step%.*s/rank%llu", c->root, MS_STR_ARG(step),
                     (unsigned long long)c->rank);
    if (n < 0 || (size_t)n >= sizeof dir)
        return ms_fail(c->err, MS_E_LIMIT, "%s: path too long", c->root);
    if (is_up_to_date(c, dir))
        return MS_OK;
    enum ms_rc rc = probe__graph_read(&g, c->net, run, c->err);
    if (rc == MS_OK)
        rc = probe__graph_shape_make(&s, &g, c->err);
    if (rc == MS_OK)
        rc = probe__graph_write(&s, dir, c->net, c->err);
    probe__graph_shape_free(&s);
    probe__graph_free(&g);
    return rc;
}

/* Finds the graph with most runs, the first one on a tie. Its runs are the steps. */
static bool look_at_graph(void *ctx, const char *path, struct ms_str name)
{
    struct conversion *c = ctx;
    struct ms_dir runs;
    (void)path;
    if (!ms_str_all_digits(name))
        return true;
    c->rc = probe__graph_runs(&runs, c->net, name, c->err);
    if (c->rc != MS_OK)
        return false;
    if (runs.names.n > c->longest) {
        c->longest = runs.names.n;
        snprintf(c->graph, sizeof c->graph, "%.*s", MS_STR_ARG(name));
    }
    ms_dir_free(&runs);
    return true;
}

static enum ms_rc convert_runs(struct conversion *c)
{
    struct ms_dir runs;
    MS_TRY(probe__graph_runs(&runs, c->net, ms_str_of(c->graph), c->err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < runs.names.n && rc == MS_OK; i++)
        rc = convert_run(c, i, runs.names.p[i]);
    ms_dir_free(&runs);
    return rc;
}

static bool convert_net(void *ctx, const char *path, struct ms_str name)
{
    struct conversion *c = ctx;
    (void)name;
    if (each_folder(path, has_no_iteration, NULL))
        return true; /* not a net: execution_order or graphs */
    snprintf(c->net, sizeof c->net, "%s", path);
    c->longest = 0;
    if (each_folder(path, look_at_graph, c) && c->longest != 0)
        c->rc = convert_runs(c);
    return c->rc == MS_OK;
}

static bool convert_rank(void *ctx, const char *path, struct ms_str name)
{
    struct conversion *c = ctx;
    (void)name;
    return !rank_of(ms_path_base(path), &c->rank) || each_folder(path, convert_net, c);
}

/* Waits until no other process converts the same dump. Where a file cannot be locked, as on some
 * network file systems, both convert: files appear whole. */
static int lock_root(const struct conversion *c)
{
    char path[PATH_MAX];
    struct ms_err ignored = {0};
    if (ms_mkdirs(c->root, &ignored) != MS_OK || !join(path, c->root, MS_STR("lock")))
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        (void)flock(fd, LOCK_EX);
    return fd;
}

enum ms_rc probe__graph_dump_convert(const char *path, char **root, struct ms_err *err)
{
    struct conversion *c = ms_calloc(1, sizeof *c);
    char full[PATH_MAX];
    if (c == NULL)
        return ms_no_memory(err);
    c->err = err;
    c->rc = choose_root(c, path, err);
    if (c->rc == MS_OK && realpath(path, full) == NULL)
        c->rc = ms_fail_sys(err, "%s", path);
    int lock = c->rc == MS_OK ? lock_root(c) : -1;
    if (c->rc == MS_OK && is_rank(full))
        convert_rank(c, full, ms_path_base(full));
    else if (c->rc == MS_OK)
        each_folder(full, convert_rank, c);
    if (lock >= 0)
        close(lock); /* releases the lock */
    enum ms_rc rc = c->rc;
    *root = rc == MS_OK ? ms_str_dup(ms_str_of(c->root)) : NULL;
    ms_free(c);
    return rc == MS_OK && *root == NULL ? ms_no_memory(err) : rc;
}

void probe_graph_dump_register(void)
{
    probe_find_foreign =
        (struct probe_find_foreign){probe__is_graph_dump, probe__graph_dump_convert};
}
