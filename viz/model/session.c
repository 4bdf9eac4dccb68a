/* SPDX-License-Identifier: MIT
 *
 * session: detects the kind of a path and prepares its data for the viewers.
 */
#include "viz/model/session.h"
#include "viz/model/path_kind.h"
#include "viz/model/sheet_made.h"
#include "viz/model/shelf.h"

#include "mstx/conclude/run_ready.h"
#include "probe/base/clock.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"
#include "probe/base/store.h"

#include <pthread.h>
#include <stdio.h>
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

/* Makes a private copy, shared by all readers, of a database with a journal or WAL beside it, to
 * which the pending changes are applied. */
static enum ms_rc settle_graph(struct viz_session *s, struct ms_err *err)
{
    bool made = false;
    MS_TRY(ms_tmp_folder(&s->made, "view", err));
    char *copy = ms_path_join(s->made, "copy.vis.db");
    enum ms_rc rc = copy != NULL ? ms_store_settle(s->origin, copy, &made, err) : ms_no_memory(err);
    if (rc == MS_OK && made) {
        ms_free(s->graph);
        s->graph = copy;
        return MS_OK;
    }
    ms_free(copy);
    return rc;
}

/* Opens a graph database; takes ownership of the path. */
static enum ms_rc take_graph(struct viz_session *s, char *path, struct ms_err *err)
{
    s->origin = path;
    s->graph = path != NULL ? ms_str_dup(ms_str_of(path)) : NULL;
    if (s->graph == NULL)
        return ms_no_memory(err);
    return ms_store_is_settled(path) ? MS_OK : settle_graph(s, err);
}

static void drop_graph(struct viz_session *s)
{
    ms_free(s->graph);
    ms_free(s->origin);
    s->graph = s->origin = NULL;
    ms_tmp_folder_remove(s->made);
    s->made = NULL;
}

/* Takes the opened file as a graph if it is one. A journal or WAL is applied before the look, so
 * that the same copy is looked at and read. */
static bool is_taken_as_graph(struct viz_session *s)
{
    if (take_graph(s, ms_str_dup(ms_str_of(s->path)), NULL) == MS_OK && is_graph_database(s->graph))
        return true;
    drop_graph(s);
    return false;
}

/* Picks the last graph by name, as names begin with the time of creation. */
static enum ms_rc graph_in_directory(struct viz_session *s, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, s->path, err));
    const char *last = NULL;
    for (size_t i = 0; i < list.names.n; i++) {
        if (ms_str_ends(list.names.p[i], ms_str_of(GRAPH_ENDING)))
            last = list.names.p[i].p;
    }
    enum ms_rc rc = last != NULL ? take_graph(s, ms_path_join(s->path, last), err) : MS_OK;
    ms_dir_free(&list);
    return rc;
}

static enum ms_rc make_graph(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    struct graph_made made;
    struct ms_pool *pool;
    MS_TRY(ms_tmp_folder(&s->made, "view", err));
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
    /* The file is private, so it is its own working copy. */
    s->graph = ms_str_dup(ms_str_of(made.path));
    char *work = ms_str_dup(ms_str_of(made.path));
    atomic_store(&s->work, work);
    return s->graph != NULL && work != NULL ? MS_OK : ms_no_memory(err);
}

/* ---- tables ---------------------------------------------------------------------- */

static bool is_table(struct ms_str name)
{
    return ms_str_ends(name, MS_STR(".csv")) || ms_str_ends(name, MS_STR(".xlsx"));
}

/* Opens the last table of a folder by name; fails without one. */
static enum ms_rc open_table_or_fail(struct viz_session *s, struct ms_err *err)
{
    struct ms_dir list;
    const char *last = NULL;
    MS_TRY(ms_dir_list(&list, s->path, err));
    for (size_t i = 0; i < list.names.n; i++) {
        if (is_table(list.names.p[i]))
            last = list.names.p[i].p;
    }
    char *table = last != NULL ? ms_path_join(s->path, last) : NULL;
    ms_dir_free(&list);
    if (table != NULL) {
        const enum ms_rc rc = viz_sheet_open(&s->sheet, table, err);
        ms_free(table);
        return rc;
    }
    return ms_fail(err, MS_E_NOTFOUND,
                   "%s: nothing to show here; looked for captures (*.seg), dumps (dump.json) and "
                   "graphs (*%s)",
                   s->path, GRAPH_ENDING);
}

static enum ms_rc keep(char **out, const char *path, struct ms_err *err)
{
    *out = ms_str_dup(ms_str_of(path));
    return *out != NULL ? MS_OK : ms_no_memory(err);
}

/* Picks the last database of statistics; without one the folder is that of a monitor. */
static enum ms_rc trend_in_directory(struct viz_session *s, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, s->path, err));
    const char *last = NULL;
    for (size_t i = 0; i < list.names.n; i++) {
        if (ms_str_ends(list.names.p[i], MS_STR(".trend.db")))
            last = list.names.p[i].p;
    }
    if (last != NULL)
        s->trend = ms_path_join(s->path, last);
    enum ms_rc rc = last == NULL       ? keep(&s->trend, s->path, err)
                    : s->trend != NULL ? MS_OK
                                       : ms_no_memory(err);
    ms_dir_free(&list);
    return rc;
}

/* Tells whether the folder is no run and no dump, but holds several that are. */
static bool is_shelf(const struct viz_session *s, const struct viz_conf *conf)
{
    const enum viz_path_kind kind = viz_path_kind_of(s->path);
    const bool may_be = kind == VIZ_PATH_FOLDER || kind == VIZ_PATH_GRAPH ||
                        kind == VIZ_PATH_TABLE || kind == VIZ_PATH_TREND;
    return conf->can_choose && s->golden == NULL && may_be && viz_shelf_is_one(s->path);
}

/* ---- opening ------------------------------------------------------------------- */

/* Tells whether a path is a run or a trace; a run that holds a dump is compared as a dump. */
static bool is_run(const char *path)
{
    const enum viz_path_kind kind = viz_path_kind_of(path);
    const bool is = kind == VIZ_PATH_RUN || kind == VIZ_PATH_TRACE || kind == VIZ_PATH_PROFILE;
    return is && (ms_path_kind(path) != MS_KIND_DIR || !viz_path_holds_dump(path));
}

static bool is_pair_of_runs(const struct viz_session *s)
{
    return s->golden != NULL && is_run(s->path) && is_run(s->golden);
}

/* Fails for a second path that is nothing, or of another sort than the first. */
static enum ms_rc check_golden(const struct viz_session *s, struct ms_err *err)
{
    if (s->golden == NULL)
        return MS_OK;
    if (ms_path_kind(s->golden) == MS_KIND_NONE)
        return ms_fail_kind(s->golden, err);
    if (is_run(s->path) == is_run(s->golden))
        return MS_OK;
    return ms_fail(err, MS_E_ARG, "%s is %s and %s is %s; two runs or two dumps are compared",
                   s->path, viz_path_what(viz_path_kind_of(s->path)), s->golden,
                   viz_path_what(viz_path_kind_of(s->golden)));
}

/* Makes the table of by what the first run is slower than the second. Runs without steps have none, and that is
 * noted. */
static enum ms_rc compare_runs(struct viz_session *s, const struct viz_conf *conf,
                               struct ms_err *err)
{
    struct ms_err why = {0};
    const enum ms_rc rc = viz_sheet_of_runs(&s->sheet, &s->flame, s->path, s->golden, &why);
    if (rc == MS_E_NOTFOUND) {
        if (conf->note != NULL)
            conf->note(conf->ctx, why.msg);
        return MS_OK;
    }
    if (rc != MS_OK && err != NULL)
        *err = why;
    return rc;
}

/* Opens the timelines of both, and by what the first is slower than the second as a table. */
static enum ms_rc open_pair_of_runs(struct viz_session *s, const struct viz_conf *conf,
                                    struct ms_err *err)
{
    MS_TRY(mstx_db_prepare(s->path, &s->timeline, err));
    MS_TRY(compare_runs(s, conf, err));
    s->older = ms_calloc(1, sizeof *s->older);
    if (s->older == NULL)
        return ms_no_memory(err);
    *s->older = (struct viz_session){.version = 1, .opened_ns = s->opened_ns};
    MS_TRY(keep(&s->older->path, s->golden, err));
    return mstx_db_prepare(s->golden, &s->older->timeline, err);
}

static enum ms_rc open_file(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    struct ms_str base = ms_path_base(s->path);
    if (is_taken_as_graph(s))
        return MS_OK;
    if (is_pair_of_runs(s))
        return open_pair_of_runs(s, conf, err);
    if (s->golden != NULL || ms_str_is(base, "dump.json") || ms_str_is(base, "construct.json"))
        return make_graph(s, conf, err);
    const enum viz_path_kind kind = viz_path_kind_of(s->path);
    if (kind == VIZ_PATH_MEMORY)
        return viz_sheet_of_memory(&s->sheet, s->path, err);
    if (is_table(base) && kind != VIZ_PATH_TRACE)
        return viz_sheet_open(&s->sheet, s->path, err);
    if (kind == VIZ_PATH_TREND)
        return keep(&s->trend, s->path, err);
    return mstx_db_prepare(s->path, &s->timeline, err);
}

static enum ms_rc open_directory(struct viz_session *s, const struct viz_conf *conf,
                                 struct ms_err *err)
{
    struct ms_err no_timeline = {0};
    if (is_pair_of_runs(s))
        return open_pair_of_runs(s, conf, err);
    if (viz_path_kind_of(s->path) == VIZ_PATH_MEMORY)
        return viz_sheet_of_memory(&s->sheet, s->path, err);
    if (is_shelf(s, conf)) /* before runs in it would be read as one */
        return keep(&s->shelf, s->path, err);
    enum ms_rc rc = mstx_db_prepare(s->path, &s->timeline, &no_timeline);
    if (rc != MS_OK && rc != MS_E_NOTFOUND) {
        if (err != NULL && err->rc == MS_OK)
            *err = no_timeline;
        return rc;
    }
    if (s->timeline == NULL && viz_path_kind_of(s->path) == VIZ_PATH_TREND)
        return trend_in_directory(s, err);
    if (s->golden == NULL)
        MS_TRY(graph_in_directory(s, err));
    if (s->graph == NULL && (s->golden != NULL || viz_path_holds_dump(s->path)))
        MS_TRY(make_graph(s, conf, err));
    if (s->timeline == NULL && s->graph == NULL)
        return open_table_or_fail(s, err);
    return MS_OK;
}

static enum ms_rc open_path(struct viz_session *s, const struct viz_conf *conf, struct ms_err *err)
{
    s->path = ms_str_dup(ms_str_of(conf->path));
    s->on_choice = conf->on_choice;
    if (conf->shelf != NULL)
        MS_TRY(keep(&s->shelf, conf->shelf, err));
    s->golden = conf->golden != NULL ? ms_str_dup(ms_str_of(conf->golden)) : NULL;
    if (s->path == NULL || (conf->golden != NULL && s->golden == NULL))
        return ms_no_memory(err);
    MS_TRY(check_golden(s, err));
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
    *s = (struct viz_session){.version = 1, .opened_ns = ms_clock_read(CLOCK_REALTIME)};
    enum ms_rc rc = open_path(s, conf, err);
    if (rc != MS_OK)
        viz_session_close(s);
    return rc;
}

void viz_session_close(struct viz_session *s)
{
    if (s->older != NULL)
        viz_session_close(s->older);
    ms_free(s->older);
    ms_free(s->flame);
    ms_tmp_folder_remove(s->made);
    ms_free(s->path);
    ms_free(s->golden);
    ms_free(s->timeline);
    viz_sheet_free(s->sheet);
    ms_free(s->trend);
    ms_free(s->shelf);
    ms_free(s->chosen);
    ms_free(s->chosen_golden);
    ms_free(s->graph);
    ms_free(s->origin);
    ms_free(atomic_load(&s->work));
    *s = (struct viz_session){.version = 0};
}

enum ms_rc viz_session_refresh(struct viz_session *s, struct ms_err *err)
{
    if (s->timeline == NULL || !mstx_db_is_stale(s->path, s->timeline))
        return MS_OK;
    struct mstx_import_result ignored;
    struct ms_err first = {0};
    enum ms_rc rc = mstx_import(s->path, s->timeline, &ignored, &first);
    if (rc != MS_OK && mstx_db_is_stale(s->path, s->timeline)) {
        if (err != NULL && err->rc == MS_OK)
            *err = first;
        return rc;
    } /* otherwise another process has made it */
    s->version++;
    return MS_OK;
}

const char *viz_session_graph(const struct viz_session *s)
{
    const char *work = atomic_load(&s->work);
    return work != NULL ? work : s->graph;
}

struct ms_str viz_session_title(const struct viz_session *s)
{
    return ms_path_base(s->path);
}

/* ---- readers --------------------------------------------------------------------- */

static enum ms_rc open_older(struct viz_reader *r, const struct viz_session *older,
                             struct ms_err *err)
{
    r->older = ms_calloc(1, sizeof *r->older);
    return r->older != NULL ? viz_reader_open(r->older, older, err) : ms_no_memory(err);
}

enum ms_rc viz_reader_open(struct viz_reader *r, const struct viz_session *s, struct ms_err *err)
{
    *r = (struct viz_reader){
        .graph_path = viz_session_graph(s), .trend = s->trend, .version = s->version};
    enum ms_rc rc = MS_OK;
    if (s->timeline != NULL)
        rc = mstx_tl_open(&r->tl, s->timeline, err);
    if (rc == MS_OK && s->older != NULL)
        rc = open_older(r, s->older, err);
    if (rc == MS_OK && r->graph_path != NULL)
        rc = atomic_load(&s->work) != NULL ? graph_view_open_work(&r->graph, r->graph_path, err)
                                           : graph_view_open(&r->graph, r->graph_path, err);
    if (rc != MS_OK)
        viz_reader_close(r);
    return rc;
}

void viz_reader_close(struct viz_reader *r)
{
    if (r->older != NULL)
        viz_reader_close(r->older);
    ms_free(r->older);
    mstx_tl_close(r->tl);
    graph_view_close(r->graph);
    *r = (struct viz_reader){.version = 0};
}

/* ---- changes by hand ---------------------------------------------------------------- */

/* Guards creation of the copy: two requests may make the first change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void viz_session_choose(struct viz_session *s, char *path, char *golden)
{
    pthread_mutex_lock(&lock);
    ms_free(s->chosen);
    ms_free(s->chosen_golden);
    s->chosen = path;
    s->chosen_golden = golden;
    s->has_choice = true;
    pthread_mutex_unlock(&lock);
    if (s->on_choice != NULL)
        s->on_choice();
}

bool viz_session_chosen(struct viz_session *s, char **path, char **golden)
{
    pthread_mutex_lock(&lock);
    const bool has = s->has_choice;
    *path = s->chosen;
    *golden = s->chosen_golden;
    s->chosen = s->chosen_golden = NULL;
    s->has_choice = false;
    pthread_mutex_unlock(&lock);
    return has;
}

static enum ms_rc make_copy(struct viz_session *s, struct ms_err *err)
{
    if (s->made == NULL)
        MS_TRY(ms_tmp_folder(&s->made, "view", err));
    char *copy = ms_path_join(s->made, "work.vis.db");
    if (copy == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_store_copy(s->graph, copy, err);
    if (rc == MS_OK)
        atomic_store(&s->work, copy);
    else
        ms_free(copy);
    return rc;
}

enum ms_rc viz_changes_begin(struct viz_session *s, const char **path, struct ms_err *err)
{
    if (s->graph == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "no graph is open");
    pthread_mutex_lock(&lock);
    enum ms_rc rc = atomic_load(&s->work) != NULL ? MS_OK : make_copy(s, err);
    pthread_mutex_unlock(&lock);
    *path = atomic_load(&s->work);
    return rc;
}

void viz_changes_made(struct viz_session *s)
{
    atomic_fetch_add(&s->changes, 1);
}

uint64_t viz_changes_count(const struct viz_session *s)
{
    return atomic_load(&s->changes);
}

/* Returns NAME.edited.vis.db for NAME.vis.db; an input NAME.edited.vis.db gives the same name. */
static enum ms_rc name_beside(const char *origin, struct ms_buf *where, struct ms_err *err)
{
    struct ms_str name = ms_str_of(origin);
    if (ms_str_ends(name, ms_str_of(GRAPH_ENDING)))
        name.n -= (uint32_t)strlen(GRAPH_ENDING);
    if (ms_str_ends(name, MS_STR(".edited")))
        name.n -= (uint32_t)strlen(".edited");
    ms_buf_printf(where, "%.*s.edited%s", MS_STR_ARG(name), GRAPH_ENDING);
    MS_TRY(ms_buf_check(where, err));
    return ms_want_no_link(ms_buf_z(where), err);
}

static enum ms_rc name_target(const struct viz_session *s, const char *to, bool over,
                              struct ms_buf *where, struct ms_err *err)
{
    ms_buf_clear(where);
    if (to == NULL && s->origin == NULL)
        return ms_fail(err, MS_E_ARG,
                       "this graph was made of dumps and has no file; name one to write it to");
    if (to == NULL && !over)
        return name_beside(s->origin, where, err);
    ms_buf_puts(where, to != NULL ? to : s->origin);
    return ms_buf_check(where, err);
}

static enum ms_rc write_copy(const char *work, const char *target, struct ms_err *err)
{
    struct ms_store *to;
    MS_TRY(ms_store_renew(&to, target, work, err));
    return ms_store_commit(to, err);
}

enum ms_rc viz_changes_write(struct viz_session *s, const char *to, bool over, struct ms_buf *where,
                             struct ms_err *err)
{
    const char *work = atomic_load(&s->work);
    const uint64_t before = atomic_load(&s->changes);
    if (work == NULL || (before == 0 && s->origin != NULL))
        return ms_fail(err, MS_E_NOTFOUND, "nothing was changed");
    MS_TRY(name_target(s, to, over, where, err));
    MS_TRY(write_copy(work, ms_buf_z(where), err));
    atomic_fetch_sub(&s->changes, before);
    return MS_OK;
}

/* ---- progress and notes on standard error ------------------------------------------- */

void viz_print_progress(void *ctx, int percent)
{
    static struct ms_progress bar = {.what = "reading the dump"};
    (void)ctx;
    ms_progress_show(&bar, &(struct ms_pace){.share = percent / 100.0});
}

void viz_print_note(void *ctx, const char *line)
{
    ms_cmd_note(ctx, "%s", line);
}
