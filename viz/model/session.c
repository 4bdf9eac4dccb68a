/* SPDX-License-Identifier: MIT
 *
 * session: finds out what a path is, and makes what is needed to show it.
 */
#include "viz/model/session.h"

#include "mstx/conclude/run_ready.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"
#include "probe/dump/find.h"

#include <stdlib.h>
#include <unistd.h>

static const char GRAPH_ENDING[] = ".vis.db";

/* ---- graphs -------------------------------------------------------------------- */

static bool is_graph_database(const char *path)
{
    struct ms_store *s;
    struct ms_stmt *st = NULL;
    if (ms_store_open(&s, path, NULL) != MS_OK)
        return false;
    bool is = ms_store_prepare(s, &st, "SELECT node_name FROM tb_nodes LIMIT 0", NULL) == MS_OK;
    ms_stmt_free(st);
    ms_store_close(s);
    return is;
}

/* The last by name, which begins with the time it was made. */
static enum ms_rc graph_in_directory(struct viz_session *s, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, s->path, err));
    const char *last = NULL;
    for (size_t i = 0; i < list.names.n; i++) {
        if (ms_str_ends(list.names.p[i], ms_str_of(GRAPH_ENDING)))
            last = list.names.p[i].p;
    }
    enum ms_rc rc = MS_OK;
    if (last != NULL) {
        s->graph = ms_path_join(s->path, last);
        rc = s->graph != NULL ? MS_OK : ms_no_memory(err);
    }
    ms_dir_free(&list);
    return rc;
}

static enum ms_rc make_folder(struct viz_session *s, struct ms_err *err)
{
    const char *tmp = getenv("TMPDIR");
    s->made = ms_path_join(tmp != NULL && *tmp != '\0' ? tmp : "/tmp", "msprobe-view-XXXXXX");
    if (s->made == NULL)
        return ms_no_memory(err);
    if (mkdtemp(s->made) != NULL) {
        (void)ms_tmp_register(s->made); /* a full table only means that an interrupt leaves it */
        return MS_OK;
    }
    enum ms_rc rc = ms_fail_sys(err, "%s: cannot make a folder for the graph", s->made);
    ms_free(s->made);
    s->made = NULL;
    return rc;
}

static enum ms_rc make_graph(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    struct graph_made made;
    struct ms_pool *pool;
    MS_TRY(make_folder(s, err));
    struct graph_conf g = {.target = s->path,
                           .golden = s->golden,
                           .out_dir = s->made,
                           .overflow = s->golden == NULL,
                           .suspects = s->golden != NULL,
                           .progress = conf->progress,
                           .note = conf->note,
                           .ctx = conf->ctx};
    MS_TRY(ms_pool_new(&pool, 0, err));
    enum ms_rc rc = graph_run(&g, pool, &made, err);
    ms_pool_free(pool);
    MS_TRY(rc);
    s->graph = ms_str_dup(ms_str_of(made.path));
    return s->graph != NULL ? MS_OK : ms_no_memory(err);
}

static bool holds_dump(const char *path)
{
    struct probe_places places;
    if (probe_find(&places, path, NULL) != MS_OK)
        return false;
    probe_places_free(&places);
    return true;
}

/* ---- tables ---------------------------------------------------------------------- */

static bool is_table(struct ms_str name)
{
    return ms_str_ends(name, MS_STR(".csv")) || ms_str_ends(name, MS_STR(".xlsx"));
}

/* People come with what compare wrote; what the viewers show they make from the dumps. */
static enum ms_rc fail_table(const char *path, struct ms_err *err)
{
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "%s: tables open in a spreadsheet program; a comparison is shown of its two "
                   "dumps, PATH --golden_path PATH",
                   path);
}

static enum ms_rc fail_nothing(const char *path, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, path, err));
    bool tables = false;
    for (size_t i = 0; i < list.names.n; i++)
        tables |= is_table(list.names.p[i]);
    ms_dir_free(&list);
    if (tables)
        return fail_table(path, err);
    return ms_fail(err, MS_E_NOTFOUND,
                   "%s: nothing to show here; looked for captures (*.seg), dumps (dump.json) and "
                   "graphs (*%s)",
                   path, GRAPH_ENDING);
}

/* ---- opening ------------------------------------------------------------------- */

static enum ms_rc open_file(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    struct ms_str base = ms_path_base(s->path);
    if (is_graph_database(s->path)) {
        s->graph = ms_str_dup(ms_str_of(s->path));
        return s->graph != NULL ? MS_OK : ms_no_memory(err);
    }
    if (s->golden != NULL || ms_str_is(base, "dump.json") || ms_str_is(base, "construct.json"))
        return make_graph(s, conf, err);
    if (is_table(base))
        return fail_table(s->path, err);
    return mstx_db_prepare(s->path, &s->timeline, err);
}

static enum ms_rc open_directory(struct viz_session *s, const struct viz_conf *conf,
                                 struct ms_err *err)
{
    struct ms_err no_timeline = {0};
    enum ms_rc rc = mstx_db_prepare(s->path, &s->timeline, &no_timeline);
    if (rc != MS_OK && rc != MS_E_NOTFOUND) {
        if (err != NULL && err->rc == MS_OK)
            *err = no_timeline;
        return rc;
    }
    if (s->golden == NULL)
        MS_TRY(graph_in_directory(s, err));
    if (s->graph == NULL && (s->golden != NULL || holds_dump(s->path)))
        MS_TRY(make_graph(s, conf, err));
    if (s->timeline == NULL && s->graph == NULL)
        return fail_nothing(s->path, err);
    return MS_OK;
}

static enum ms_rc open_path(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    s->path = ms_str_dup(ms_str_of(conf->path));
    s->golden = conf->golden != NULL ? ms_str_dup(ms_str_of(conf->golden)) : NULL;
    if (s->path == NULL || (conf->golden != NULL && s->golden == NULL))
        return ms_no_memory(err);
    switch (ms_path_kind(s->path)) {
    case MS_KIND_FILE:
        return open_file(s, conf, err);
    case MS_KIND_DIR:
        return open_directory(s, conf, err);
    default:
        return ms_fail_kind(s->path, err);
    }
}

enum ms_rc viz_session_open(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    *s = (struct viz_session){.version = 1};
    enum ms_rc rc = open_path(s, conf, err);
    if (rc != MS_OK)
        viz_session_close(s);
    return rc;
}

/* The folder holds the one graph that was made. */
static void take_folder_away(struct viz_session *s)
{
    struct ms_dir list;
    if (ms_dir_list(&list, s->made, NULL) == MS_OK) {
        for (size_t i = 0; i < list.names.n; i++) {
            char *path = ms_path_join(s->made, list.names.p[i].p);
            if (path != NULL)
                unlink(path);
            ms_free(path);
        }
        ms_dir_free(&list);
    }
    rmdir(s->made);
    ms_tmp_forget(s->made);
}

void viz_session_close(struct viz_session *s)
{
    if (s->made != NULL)
        take_folder_away(s);
    ms_free(s->path);
    ms_free(s->golden);
    ms_free(s->timeline);
    ms_free(s->graph);
    ms_free(s->made);
    *s = (struct viz_session){.version = 0};
}

enum ms_rc viz_session_refresh(struct viz_session *s, struct ms_err *err)
{
    if (s->timeline == NULL || !mstx_db_is_stale(s->path, s->timeline))
        return MS_OK;
    struct mstx_import_result ignored;
    MS_TRY(mstx_import(s->path, s->timeline, &ignored, err));
    s->version++;
    return MS_OK;
}

struct ms_str viz_session_title(const struct viz_session *s)
{
    return ms_path_base(s->path);
}

/* ---- readers --------------------------------------------------------------------- */

enum ms_rc viz_reader_open(struct viz_reader *r, const struct viz_session *s, struct ms_err *err)
{
    *r = (struct viz_reader){.graph_path = s->graph, .version = s->version};
    enum ms_rc rc = MS_OK;
    if (s->timeline != NULL)
        rc = mstx_tl_open(&r->tl, s->timeline, err);
    if (rc == MS_OK && s->graph != NULL)
        rc = graph_view_open(&r->graph, s->graph, err);
    if (rc != MS_OK)
        viz_reader_close(r);
    return rc;
}

void viz_reader_close(struct viz_reader *r)
{
    mstx_tl_close(r->tl);
    graph_view_close(r->graph);
    *r = (struct viz_reader){.version = 0};
}
