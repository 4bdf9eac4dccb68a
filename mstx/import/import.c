/* SPDX-License-Identifier: MIT
 *
 * import: a run directory to run.db.
 *
 * Two passes over the processes: the first collects calibration, communicators and texts, as all
 * processes of a host share one clock and all ranks their communicators; the second turns records
 * into events, one process at a time, so memory is bounded by the largest process.
 */
#include "mstx/import/import_int.h"

#include "mstx/cluster/cluster.h"
#include "mstx/cluster/join.h"
#include "mstx/cluster/links.h"
#include "mstx/import/cluster_save.h"
#include "mstx/import/join_share.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/progress.h"
#include "probe/base/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* ---- problems and progress -------------------------------------------------- */

static void note_problem(void *ctx, const char *file, struct ms_err *err)
{
    struct mstx_import *im = ctx;
    if (!im->is_again || !mstx__import_has_problem(im, file))
        mstx__import_problem(im, file, err->msg);
}

/* Reports progress after a process was read. */
static void count_step(struct mstx_import *im)
{
    const double mine = (double)(im->to - im->from);
    im->done++;
    if (im->how->bar != NULL && mine > 0)
        ms_progress_show(im->how->bar, &(struct ms_pace){(double)im->done / (2 * mine),
                                                         im->done / 2, MS_PACE_RANKS});
}

/* ---- first pass -------------------------------------------------------------- */

/* Collects the communicators of a process, each with its newest name. */
static enum ms_rc learn_groups(struct mstx_import *im, const struct mstx_proc *p,
                               const struct mstx_texts *t, struct ms_err *err)
{
    for (size_t i = 0; i < t->keyed.n; i++) {
        const struct mstx_keyed *k = &t->keyed.p[i];
        struct mstx_comm_known g;
        bool is_new;
        if (k->kind != MSTX_GROUP || !mstx__texts_is_newest(t, i))
            continue;
        if (!mstx__comm_group_parse(k->text, &g)) {
            mstx__import_problem(im, p->dir, "the description of a communicator is damaged");
            continue;
        }
        MS_TRY(mstx__comm_writer_meet(im->comm, &g, &is_new, err));
        if (is_new)
            ms_put_text(&im->groups, k->text);
    }
    return MS_OK;
}

static void learn_notes(struct mstx_import *im, const struct mstx_proc *p,
                        const struct mstx_texts *t)
{
    for (size_t i = 0; i < t->notes.n; i++) {
        char text[256];
        snprintf(text, sizeof text, "%.*s", MS_STR_ARG(t->notes.p[i].text));
        mstx__import_problem(im, p->dir, text);
    }
}

static void learn_files(struct mstx_import *im, const struct mstx_proc *p, struct mstx_seen *seen)
{
    for (size_t i = 0; i < p->seg.n; i++) {
        mstx__writer_source(im->w, p->seg.p[i].path);
        seen->records += p->seg.p[i].n;
        if (p->seg.p[i].head.world_size > (int32_t)seen->size)
            seen->size = (uint32_t)p->seg.p[i].head.world_size;
    }
    if (p->has_strings)
        mstx__writer_source(im->w, p->strings.path);
    seen->id = p->seg.n != 0;
}

/* Tells whether the directory changed within CALM_S seconds.  A process that is starting or moving
 * its segments from the staging directory may have no segments for a moment.  The clock of a file
 * server may be ahead of this machine's by CLOCK_S; a time that lies farther ahead says nothing. */
static bool is_changing(const char *dir)
{
    enum { CALM_S = 3, CLOCK_S = 60 };
    struct stat st;
    const time_t now = time(NULL);
    return stat(dir, &st) == 0 && now - st.st_mtime < CALM_S && st.st_mtime - now < CLOCK_S;
}

static enum ms_rc learn_process(struct mstx_import *im, size_t place, struct ms_err *err)
{
    ms_assert(place >= im->from && place < im->to);
    struct mstx_proc *p = &im->procs.list.p[place];
    struct mstx_texts texts;
    const size_t problems = im->problem.n;
    im->at = place;
    MS_TRY(mstx__proc_open(p, &im->problems, err));
    if (p->seg.n == 0 && im->problem.n == problems && !is_changing(p->dir))
        mstx__import_problem(im, p->dir, "has no segments: what the process recorded is missing");
    learn_files(im, p, &im->seen.p[place]);
    enum ms_rc rc = mstx__import_learn_clock(im, p, err);
    if (rc == MS_OK && p->seg.n != 0) {
        rc = mstx__texts_read(&texts, p, &im->sink, &im->problems, err);
        if (rc == MS_OK) {
            im->seen.p[place].uses_mpi = texts.names_mpi;
            learn_notes(im, p, &texts);
            rc = learn_groups(im, p, &texts, err);
            mstx__texts_free(&texts);
        }
    }
    mstx__proc_close(p);
    count_step(im);
    return rc;
}

static enum ms_rc learn_all(struct mstx_import *im, struct ms_err *err)
{
    MS_TRY(mstx__comm_writer_new(&im->comm, NULL, err));
    for (size_t i = im->from; i < im->to; i++)
        MS_TRY(learn_process(im, i, err));
    mstx__comm_writer_free(im->comm);
    im->comm = NULL;
    return mstx__writer_why(im->w, err);
}

/* ---- second pass ------------------------------------------------------------- */

/* Reserves memory for the greatest possible number of calls that stay in memory, which take at least
 * three records each.  When the reservation fails, the memory grows with the calls instead. */
static void expect_calls(struct mstx_import *im)
{
    uint64_t records = 0;
    if (im->spool != NULL)
        return;
    for (size_t i = im->from; i < im->to; i++)
        records += im->seen.p[i].records;
    (void)!ms_vec_reserve(&im->cluster.coll, (size_t)(records / 3));
}

static void shift_calls(const struct mstx_host_clock *k, mstx_cl_calls *v, size_t first)
{
    for (size_t i = first; i < v->n; i++)
        v->p[i].start_ns += mstx__clock_shift(k, v->p[i].start_ns);
}

/* Reads one process.  Its rows of the cluster are made by the steady clock of its host, which
 * orders the events of a process to the nanosecond, and are then converted to the clock of all
 * hosts. */
static enum ms_rc take_process(struct mstx_import *im, size_t place, struct ms_err *err)
{
    ms_assert(place >= im->from && place < im->to);
    struct mstx_cluster *c = &im->cluster;
    const size_t process = c->process.n, step = c->step.n, coll = c->coll.n, p2p = c->p2p.n;
    const enum ms_rc rc = mstx__import_read_process(im, place, err);
    count_step(im);
    if (rc != MS_OK)
        return rc;
    mstx__import_write_process(im, place);
    ms_free(im->seen.p[place].head); /* of thousands of processes not all are kept */
    im->seen.p[place].head = NULL;
    if (c->process.n == process)
        return MS_OK;
    const struct mstx_host_clock *k = &im->clocks.host.p[c->process.p[process].clock];
    for (size_t i = step; i < c->step.n; i++) {
        const int64_t shift = mstx__clock_shift(k, c->step.p[i].start_ns);
        c->step.p[i].start_ns += shift;
        c->step.p[i].end_ns += shift;
    }
    shift_calls(k, &c->coll, coll);
    shift_calls(k, &c->p2p, p2p);
    return im->spool != NULL ? mstx__spool_take(im->spool, c, err) : MS_OK;
}

static bool has_segments(const void *ctx, size_t place)
{
    const struct mstx_import *im = ctx;
    return im->seen.p[place].id != 0;
}

static enum ms_rc read_ahead(struct mstx_import *im, struct ms_err *err)
{
    const struct mstx_ahead_how how = {.procs = &im->procs,
                                       .from = im->from,
                                       .to = im->to,
                                       .is_wanted = has_segments,
                                       .ctx = im,
                                       .no_args = im->how->summary,
                                       .threads = im->how->threads};
    if (how.threads < 2 || im->to - im->from < 2)
        return MS_OK;
    return mstx__ahead_new(&im->ahead, &how, im->w, err);
}

static enum ms_rc take_processes(struct mstx_import *im, struct ms_err *err)
{
    expect_calls(im);
    enum ms_rc rc = read_ahead(im, err);
    for (size_t i = im->from; i < im->to && rc == MS_OK && !mstx__writer_bad(im->w); i++)
        rc = take_process(im, i, err);
    mstx__ahead_free(im->ahead);
    im->ahead = NULL;
    if (rc != MS_OK)
        return rc;
    return im->cluster.no_memory ? ms_no_memory(err) : mstx__writer_why(im->w, err);
}

/* ---- all ranks together ------------------------------------------------------ */

/* Joins the calls that are in memory: all, or those that this process of an mpirun joins. */
static enum ms_rc join_calls(struct mstx_import *im, struct ms_err *err)
{
    MS_TRY(mstx__cluster_share(&im->cluster, im->par, mstx__import_alone(im), err));
    mstx__cluster_join(&im->cluster);
    if (!im->cluster.no_memory)
        mstx__cluster_paths(&im->cluster);
    if (im->cluster.no_memory)
        return ms_no_memory(err);
    return mstx__cluster_save_joins(&im->cluster, mstx__writer_store(im->w), err);
}

static enum ms_rc join_ranks(struct mstx_import *im, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("join");
    enum ms_rc rc = im->spool != NULL
                        ? mstx__spool_join(im->spool, &im->cluster, mstx__writer_store(im->w), err)
                        : join_calls(im, err);
    ms_span_end(&span);
    return ms_share_result(im->par, rc, err);
}

static enum ms_rc judge_ranks(struct mstx_import *im, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("cluster");
    mstx__cluster_judge(&im->cluster);
    enum ms_rc rc = MS_OK;
    if (im->cluster.no_memory)
        rc = ms_no_memory(err);
    else if (!mstx__writer_bad(im->w))
        rc = mstx__cluster_save(&im->cluster, mstx__writer_store(im->w), err);
    if (im->cluster.strange != 0) {
        char text[96];
        snprintf(text, sizeof text, "%" PRIu64 " calls have numbers that make no sense",
                 im->cluster.strange);
        im->at = im->procs.list.n;
        mstx__import_problem(im, "", text);
    }
    ms_span_end(&span);
    return rc;
}

/* ---- the end ------------------------------------------------------------------ */

static enum ms_rc ask_numbers(struct mstx_import *im, const char *sql, int64_t *out, int n,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx__writer_store(im->w), &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    for (int i = 0; rc == MS_OK && more && i < n; i++)
        out[i] = ms_stmt_get_i64(st, i);
    ms_stmt_free(st);
    return rc;
}

/* Counts the rows that all processes wrote into the database. */
static enum ms_rc count_rows(struct mstx_import *im, struct ms_err *err)
{
    struct mstx_import_result *r = im->result;
    int64_t p[4] = {0}, t[4] = {0}, files = 0;
    MS_TRY(ask_numbers(
        im, "SELECT count(*), sum(records), sum(unfinished), sum(dropped) FROM processes", p, 4,
        err));
    MS_TRY(ask_numbers(im, "SELECT count(*), sum(events), min(start_ns), max(end_ns) FROM tracks",
                       t, 4, err));
    MS_TRY(ask_numbers(im, "SELECT count(*) FROM sources WHERE path NOT LIKE '%/" MSTX_STRINGS "'",
                       &files, 1, err));
    *r = (struct mstx_import_result){.files = (uint64_t)files,
                                     .records = (uint64_t)p[1],
                                     .events = (uint64_t)t[1],
                                     .unfinished = (uint64_t)p[2],
                                     .dropped = (uint64_t)p[3],
                                     .problems = im->problem.n,
                                     .processes = (uint32_t)p[0],
                                     .tracks = (uint32_t)t[0],
                                     .start_ns = t[2],
                                     .end_ns = t[3]};
    return MS_OK;
}

static enum ms_rc finish_run(struct mstx_import *im, const char *dir, struct ms_err *err)
{
    char size[24];
    int64_t world = 0;
    for (size_t i = 0; i < im->seen.n; i++)
        world = im->seen.p[i].size > world ? im->seen.p[i].size : world;
    MS_TRY(judge_ranks(im, err));
    mstx__import_write_problems(im);
    MS_TRY(mstx__writer_why(im->w, err));
    MS_TRY(count_rows(im, err));
    snprintf(size, sizeof size, "%" PRId64, world);
    mstx__writer_meta(im->w, "path", dir);
    if (world > 0)
        mstx__writer_meta(im->w, "world_size", size);
    if (im->result->processes != 0)
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "%s: none of its segments can be read; the first: %s", dir,
                   im->problem.n != 0 ? im->problem.p[0].text : "they are empty");
}

/* ---- the whole import ------------------------------------------------------- */

static enum ms_rc import_all(struct mstx_import *im, const char *db, const char *dir,
                             struct ms_err *err)
{
    MS_TRY(mstx__import_exchange(im, learn_all(im, err), err));
    MS_TRY(mstx__import_fit_clocks(im, err));
    MS_TRY(ms_share_result(im->par, take_processes(im, err), err));
    MS_TRY(join_ranks(im, err));
    MS_TRY(mstx__import_merge(im, db, err));
    MS_TRY(mstx__cluster_gather(&im->cluster, im->par, err));
    return ms_par_rank(im->par) == 0 ? finish_run(im, dir, err) : MS_OK;
}

static void free_import(struct mstx_import *im)
{
    mstx__comm_writer_free(im->comm);
    mstx__cluster_free(&im->cluster);
    mstx__spool_free(im->spool);
    mstx__cluster_part_free(&im->part);
    mstx__lanes_free(&im->now.lanes);
    mstx__import_free_problems(im);
    for (size_t i = 0; i < im->seen.n; i++)
        ms_free(im->seen.p[i].head);
    ms_vec_free(&im->seen);
    ms_vec_free(&im->names);
    ms_vec_free(&im->marked);
    ms_vec_free(&im->meetings.list);
    ms_buf_free(&im->groups);
    mstx__clocks_free(&im->clocks);
    mstx__procs_free(&im->procs);
}

static uint32_t put_text(void *ctx, struct ms_str text)
{
    return mstx__writer_text(ctx, text);
}

static struct ms_str get_text(const void *ctx, uint32_t id)
{
    return mstx__writer_text_of(ctx, id);
}

static void keep_failure(void *ctx, const struct ms_err *err)
{
    mstx__writer_fail(ctx, err);
}

static enum ms_rc divide_and_import(struct mstx_import *im, const char *db, const char *dir,
                                    struct ms_err *err)
{
    MS_TRY(mstx__import_divide(im, dir, err));
    enum ms_rc rc = mstx__lanes_new(&im->now.lanes, err);
    if (rc == MS_OK)
        rc = mstx__writer_new(&im->w, db, err);
    if (rc == MS_OK && ms_par_size(im->par) == 1)
        rc = mstx__spool_new(&im->spool, db, im->how->round_calls, err);
    im->sink = (struct mstx_text_sink){im->w, put_text, get_text, keep_failure};
    rc = ms_share_result(im->par, rc, err);
    if (rc == MS_OK)
        rc = import_all(im, db, dir, err);
    if (rc == MS_OK && ms_par_rank(im->par) == 0)
        return mstx__writer_commit(im->w, err);
    mstx__writer_abort(im->w);
    return rc;
}

enum ms_rc mstx__import_capture(const char *dir, const char *db, const struct mstx_import_how *how,
                                struct mstx_import_result *result, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("import");
    struct mstx_import im = {.how = how,
                             .par = how->par,
                             .result = result,
                             .groups = {.max = MS_SHARE_MAX},
                             .reference = SIZE_MAX};
    im.problems = (struct mstx_problems){note_problem, &im};
    *result = (struct mstx_import_result){0};
    enum ms_rc rc = divide_and_import(&im, db, dir, err);
    free_import(&im);
    ms_span_end(&span);
    return ms_share_result(how->par, rc, err);
}

/* ---- what there is to import ------------------------------------------------- */

static void ignore_problem(void *ctx, const char *file, struct ms_err *err)
{
    (void)ctx;
    (void)file;
    (void)err;
}

/* Returns true also for a directory that cannot be read, so that the import reports the reason. */
bool mstx__is_capture(const char *dir)
{
    struct mstx_procs procs;
    if (mstx__procs_find(&procs, dir, NULL, NULL) != MS_OK)
        return true;
    const bool is = procs.list.n != 0;
    mstx__procs_free(&procs);
    return is;
}

size_t mstx__count_capture_files(const char *dir, bool *is_capture)
{
    struct mstx_procs procs;
    const struct mstx_problems ignore = {ignore_problem, NULL};
    size_t n = 0;
    *is_capture = false;
    if (mstx__procs_find(&procs, dir, NULL, NULL) != MS_OK)
        return 0;
    for (size_t i = 0; i < procs.list.n; i++) {
        struct mstx_proc *p = &procs.list.p[i];
        if (mstx__proc_open(p, &ignore, NULL) == MS_OK)
            n += p->seg.n + p->has_strings;
        mstx__proc_close(p);
    }
    *is_capture = procs.list.n != 0;
    mstx__procs_free(&procs);
    return n;
}
