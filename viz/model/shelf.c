/* SPDX-License-Identifier: MIT
 *
 * shelf: see the header.
 */
#include "viz/model/shelf.h"

#include "compare/graph/view/graph_view.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"
#include "probe/dump/find.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    ENTRIES_MAX = 1000,
    NAMES_MAX = 20000,
    FACTS_FROM = 3,
    DEEPEST = 2,
    SIZED_MAX = 5000,
    SIZED_DEEP = 4
};

bool viz_shelf_opens(enum viz_path_kind kind)
{
    return kind == VIZ_PATH_RUN || kind == VIZ_PATH_DUMP || kind == VIZ_PATH_GRAPH ||
           kind == VIZ_PATH_TRACE || kind == VIZ_PATH_TABLE || kind == VIZ_PATH_TREND ||
           kind == VIZ_PATH_PROFILE || kind == VIZ_PATH_MEMORY;
}

bool viz_shelf_pairs(enum viz_path_kind kind)
{
    return kind == VIZ_PATH_DUMP || kind == VIZ_PATH_RUN || kind == VIZ_PATH_TRACE ||
           kind == VIZ_PATH_PROFILE;
}

/* ---- facts -------------------------------------------------------------------------- */

/* Adds up the sizes of the files below a path; *left: how many names are still looked at. */
static int64_t size_below(const char *path, unsigned deep, unsigned *left)
{
    struct stat st;
    struct ms_dir list;
    int64_t sum = 0;
    if (*left == 0 || lstat(path, &st) != 0)
        return 0;
    (*left)--;
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) ? st.st_size : 0;
    if (deep == 0 || ms_dir_list(&list, path, NULL) != MS_OK)
        return 0;
    for (size_t i = 0; i < list.names.n && *left != 0; i++) {
        char *below = ms_path_join(path, list.names.p[i].p);
        sum += below != NULL ? size_below(below, deep - 1, left) : 0;
        ms_free(below);
    }
    ms_dir_free(&list);
    return sum;
}

static int64_t count_rows(struct ms_store *s, const char *sql)
{
    struct ms_stmt *st;
    bool more;
    int64_t n = -1;
    if (ms_store_prepare(s, &st, sql, NULL) != MS_OK)
        return -1;
    if (ms_stmt_step(st, &more, NULL) == MS_OK && more)
        n = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return n;
}

/* Reads the facts of a run that was imported. */
static void look_at_run(struct viz_shelf_entry *e, const char *path)
{
    struct ms_store *s;
    char *db = ms_path_kind(path) == MS_KIND_DIR ? ms_path_join(path, "run.db")
                                                 : ms_str_dup(ms_str_of(path));
    if (db != NULL && ms_path_kind(db) == MS_KIND_FILE && ms_store_open(&s, db, NULL) == MS_OK) {
        e->ranks = count_rows(s, "SELECT count(DISTINCT rank) FROM processes WHERE rank >= 0");
        e->findings = count_rows(s, "SELECT count(*) FROM findings WHERE severity <> 'info'");
        ms_store_close(s);
    }
    ms_free(db);
}

static void look_at_graph(struct viz_shelf_entry *e, const char *path)
{
    struct graph_view *v;
    struct graph_findings found = {.arena = NULL};
    if (ms_path_kind(path) != MS_KIND_FILE || graph_view_open(&v, path, NULL) != MS_OK)
        return;
    e->ranks = (int64_t)graph_view_about(v)->ranks.n;
    if (graph_view_findings(v, &found, NULL) == MS_OK)
        e->findings = (int64_t)found.list.n;
    graph_findings_free(&found);
    graph_view_close(v);
}

static void look_at_dump(struct viz_shelf_entry *e, const char *path)
{
    struct probe_places p;
    int64_t last = -2;
    if (probe_find(&p, path, NULL) != MS_OK)
        return;
    e->ranks = 0;
    for (size_t i = 0; i < p.list.n && p.list.p[i].step == p.list.p[0].step; i++) {
        e->ranks += p.list.p[i].rank != last;
        last = p.list.p[i].rank;
    }
    probe_places_free(&p);
}

static void look_at(struct viz_shelf_entry *e, const char *path)
{
    struct stat st;
    unsigned left = SIZED_MAX;
    e->ranks = e->findings = -1;
    e->bytes = size_below(path, SIZED_DEEP, &left);
    if (stat(path, &st) == 0)
        e->changed_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    if (e->kind == VIZ_PATH_RUN)
        look_at_run(e, path);
    else if (e->kind == VIZ_PATH_GRAPH)
        look_at_graph(e, path);
    else if (e->kind == VIZ_PATH_DUMP)
        look_at_dump(e, path);
}

/* ---- the list ------------------------------------------------------------------------ */

static enum ms_rc list_folder(struct viz_shelf *s, const char *root, const char *below,
                              unsigned deep, struct ms_err *err);

static enum ms_rc add_entry(struct viz_shelf *s, const char *path, const char *name,
                            enum viz_path_kind kind, struct ms_err *err)
{
    struct viz_shelf_entry *e = ms_vec_push(&s->list);
    if (e == NULL)
        return ms_no_memory(err);
    *e = (struct viz_shelf_entry){.kind = kind, .name = ms_arena_str(s->arena, ms_str_of(name))};
    if (e->name.p == NULL)
        return ms_arena_fail(s->arena, err);
    if (s->most >= FACTS_FROM)
        look_at(e, path);
    return MS_OK;
}

/* Adds one name of a folder, or what lies below it. */
static enum ms_rc see_name(struct viz_shelf *s, const char *root, const char *name, unsigned deep,
                           struct ms_err *err)
{
    char *path = ms_path_join(root, name);
    if (path == NULL)
        return ms_no_memory(err);
    const enum viz_path_kind kind = viz_path_kind_of(path);
    const bool is_group =
        ms_path_kind(path) == MS_KIND_DIR &&
        (kind == VIZ_PATH_FOLDER || kind == VIZ_PATH_GRAPH || kind == VIZ_PATH_TABLE);
    enum ms_rc rc = MS_OK;
    s->is_cut |= s->list.n >= s->most;
    if (s->is_cut)
        rc = MS_OK;
    else if (is_group)
        rc = deep != 0 ? list_folder(s, root, name, deep - 1, err) : MS_OK;
    else if (viz_shelf_opens(kind))
        rc = add_entry(s, path, name, kind, err);
    ms_free(path);
    return rc;
}

static enum ms_rc list_folder(struct viz_shelf *s, const char *root, const char *below,
                              unsigned deep, struct ms_err *err)
{
    struct ms_dir list;
    char *path = below[0] != '\0' ? ms_path_join(root, below) : ms_str_dup(ms_str_of(root));
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_dir_list(&list, path, below[0] != '\0' ? NULL : err);
    ms_free(path);
    if (rc != MS_OK) /* a folder that may not be read hides nothing else */
        return below[0] != '\0' ? MS_OK : rc;
    for (size_t i = 0; i < list.names.n && i < NAMES_MAX && rc == MS_OK; i++) {
        char *name =
            below[0] != '\0' ? ms_path_join(below, list.names.p[i].p) : ms_str_dup(list.names.p[i]);
        rc = name != NULL ? see_name(s, root, name, deep, err) : ms_no_memory(err);
        ms_free(name);
    }
    ms_dir_free(&list);
    return rc;
}

static int latest_first(const void *pa, const void *pb)
{
    const struct viz_shelf_entry *a = pa, *b = pb;
    return MS_ORDER(b->changed_ms, a->changed_ms, ms_str_cmp(a->name, b->name));
}

static enum ms_rc read_some(struct viz_shelf *s, const char *path, size_t most, struct ms_err *err)
{
    *s = (struct viz_shelf){.arena = ms_arena_new((size_t)64 << 20), .most = most};
    if (s->arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = list_folder(s, path, "", DEEPEST, err);
    if (rc != MS_OK)
        viz_shelf_free(s);
    return rc;
}

enum ms_rc viz_shelf_read(struct viz_shelf *s, const char *path, struct ms_err *err)
{
    MS_TRY(read_some(s, path, ENTRIES_MAX, err));
    ms_vec_sort(&s->list, latest_first);
    return MS_OK;
}

bool viz_shelf_is_one(const char *path)
{
    struct viz_shelf s;
    if (read_some(&s, path, 2, NULL) != MS_OK)
        return false;
    const bool is = s.list.n > 1;
    viz_shelf_free(&s);
    return is;
}

void viz_shelf_free(struct viz_shelf *s)
{
    ms_vec_free(&s->list);
    ms_arena_free(s->arena);
    *s = (struct viz_shelf){.arena = NULL};
}

/* Tells whether a name stays below its folder: it has no part "..", and does not begin at the root. */
static bool stays_below(struct ms_str name)
{
    struct ms_str rest = name, part;
    if (name.n == 0 || name.p[0] == '/')
        return false;
    while (ms_str_split(&rest, '/', &part)) {
        if (ms_str_is(part, ".."))
            return false;
    }
    return true;
}

enum ms_rc viz_shelf_path(const char *folder, struct ms_str name, char **path, struct ms_err *err)
{
    char *z = ms_str_dup(name);
    *path = z != NULL ? ms_path_join(folder, z) : NULL;
    ms_free(z);
    if (*path == NULL)
        return ms_no_memory(err);
    if (stays_below(name) && viz_shelf_opens(viz_path_kind_of(*path)))
        return MS_OK;
    ms_free(*path);
    *path = NULL;
    return ms_fail(err, MS_E_NOTFOUND, "%.*s is nothing in this folder that can be opened",
                   MS_STR_ARG(name));
}
