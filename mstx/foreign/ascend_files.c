/* SPDX-License-Identifier: MIT
 *
 * ascend_files: finds the files of Ascend's profilers and reads their JSON.
 */
#include "mstx/foreign/ascend_files.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ------------------------------------------------------------------- */

enum { AT_STEP = 1, AT_KIND, AT_OP, TEXT_MAX = 1 << 30 };

struct reading {
    struct ms_jread r;
    struct ms_buf key[AT_OP + 1]; /* of each level */
    mstx_ascend_op_fn fn;
    void *ctx;
};

static enum ms_rc read_op(struct reading *d, struct ms_err *err)
{
    struct mstx_ascend_op op = {ms_buf_slice(&d->key[AT_STEP]), ms_buf_slice(&d->key[AT_KIND]),
                                ms_buf_slice(&d->key[AT_OP]), MS_STR_NONE, MS_STR_NONE};
    const enum ms_jtok t = ms_jread_next(&d->r);
    const char *start = d->r.tok;
    if (t == MS_J_ERR || ms_jread_skip(&d->r, t) == MS_J_ERR)
        return ms_jread_fail(&d->r, err);
    if (t != MS_J_OBJ || ms_str_starts(op.op, MS_STR("Total")))
        return MS_OK;
    if (d->r.at - start > TEXT_MAX)
        return ms_jread_reject(&d->r, err, "an operation of more than 1 GiB");
    op.text = (struct ms_str){start, (uint32_t)(d->r.at - start)};
    op.group = ms_str_sub(op.op, (uint32_t)(ms_str_rfind(op.op, '@') + 1), op.op.n);
    return d->fn(d->ctx, &op, err);
}

/* Keeps the text of a key for the levels below.  A key whose value is not an object has no levels
 * below. */
static enum ms_rc read_key(struct reading *d, struct ms_err *err)
{
    const uint32_t level = d->r.depth;
    struct ms_buf *key = &d->key[level];
    struct ms_buf scratch = {.max = 1 << 20};
    struct ms_str text;
    ms_buf_clear(key);
    enum ms_rc rc = ms_jread_text(&d->r, &scratch, &text, err);
    if (rc == MS_OK) {
        ms_buf_str(key, text);
        rc = ms_buf_check(key, err);
    }
    ms_buf_free(&scratch);
    if (rc != MS_OK)
        return rc;
    if (level == AT_OP)
        return read_op(d, err);
    const enum ms_jtok t = ms_jread_next(&d->r);
    if (t != MS_J_OBJ && (t == MS_J_ERR || ms_jread_skip(&d->r, t) == MS_J_ERR))
        return ms_jread_fail(&d->r, err);
    return MS_OK;
}

static enum ms_rc read_all(struct reading *d, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(&d->r);
    if (t != MS_J_OBJ && t != MS_J_ERR)
        return ms_jread_reject(&d->r, err, "expected an object of steps");
    while ((t = ms_jread_next(&d->r)) > MS_J_END) {
        if (t == MS_J_KEY)
            MS_TRY(read_key(d, err));
    }
    return t == MS_J_ERR ? ms_jread_fail(&d->r, err) : MS_OK;
}

enum ms_rc mstx__ascend_json_read(const char *p, size_t n, mstx_ascend_op_fn fn, void *ctx,
                                  struct ms_err *err)
{
    struct reading d = {.fn = fn, .ctx = ctx};
    for (int i = 0; i <= AT_OP; i++)
        d.key[i].max = 1 << 20;
    ms_jread_init(&d.r, p, n, 0);
    enum ms_rc rc = read_all(&d, err);
    for (int i = 0; i <= AT_OP; i++)
        ms_buf_free(&d.key[i]);
    return rc;
}

/* ---- files ------------------------------------------------------------------ */

/*     NAME_TIME_ascend_pt/profiler_info_7.json
 *                         ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_7.db, analysis.db,
 *                                                communication.json, step_trace_time.csv
 *     PROF_N_TIME_ID/msprof_TIME.db, analyze/communication_analyzer.db, device_3/info.json.3
 *
 * The rank is in the name of a database, else in profiler_info_*.json beside the output directory,
 * else in info.json. */

enum { DEPTH_MAX = 8, NO_RANK = -1 };

/* Returns 7 of "HEAD7TAIL", or NO_RANK of any other name. */
static int64_t number_in(struct ms_str name, struct ms_str head, struct ms_str tail)
{
    uint64_t n;
    if (!ms_str_starts(name, head) || name.n <= head.n + tail.n || !ms_str_ends(name, tail))
        return NO_RANK;
    if (!ms_str_u64(ms_str_sub(name, head.n, name.n - tail.n), &n) || n > INT32_MAX)
        return NO_RANK;
    return (int64_t)n;
}

/* Returns the rank in "msmonitor_PID_TIME_RANK.db". */
static int64_t rank_of_monitor(struct ms_str name)
{
    const int64_t last = ms_str_rfind(name, '_');
    if (!ms_str_starts(name, MS_STR("msmonitor_")) || last < 0)
        return NO_RANK;
    return number_in(ms_str_sub(name, (uint32_t)last, name.n), MS_STR("_"), MS_STR(".db"));
}

static int64_t rank_of_database(struct ms_str name)
{
    int64_t rank = number_in(name, MS_STR("ascend_pytorch_profiler_"), MS_STR(".db"));
    if (rank == NO_RANK)
        rank = number_in(name, MS_STR("ascend_mindspore_profiler_"), MS_STR(".db"));
    return rank != NO_RANK ? rank : rank_of_monitor(name);
}

static bool is_msprof(struct ms_str name)
{
    return number_in(name, MS_STR("msprof_"), MS_STR(".db")) != NO_RANK ||
           (ms_str_starts(name, MS_STR("msprof_")) && ms_str_ends(name, MS_STR(".db")) &&
            ms_str_all_digits(ms_str_sub(name, 7, name.n - 3)));
}

/* ---- a directory ------------------------------------------------------------------- */

static char *file_in(const char *dir, const char *name)
{
    char *path = ms_path_join(dir, name);
    if (path != NULL && ms_path_kind(path) == MS_KIND_FILE)
        return path;
    ms_free(path);
    return NULL;
}

static char *analysis_in(const char *dir)
{
    static const char *const names[] = {"analysis.db", "communication_analyzer.db",
                                        "analyze/communication_analyzer.db"};
    char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && found == NULL; i++)
        found = file_in(dir, names[i]);
    return found;
}

/* Returns the rank of profiler_info_7.json in the directory above. */
static int64_t rank_beside(const char *dir)
{
    struct ms_dir list;
    struct ms_err ignored = {0};
    int64_t rank = NO_RANK;
    char *above = ms_str_dup(ms_path_dir(dir));
    if (above != NULL && ms_dir_list(&list, above, &ignored) == MS_OK) {
        for (size_t i = 0; i < list.names.n && rank == NO_RANK; i++)
            rank = number_in(list.names.p[i], MS_STR("profiler_info_"), MS_STR(".json"));
        ms_dir_free(&list);
    }
    ms_free(above);
    return rank;
}

static int64_t rank_in_json(const char *path)
{
    struct ms_file f;
    struct ms_jread r;
    enum ms_jtok t;
    struct ms_err ignored = {0};
    int64_t rank = NO_RANK;
    if (ms_file_map(&f, path, (size_t)1 << 26, &ignored) != MS_OK)
        return NO_RANK;
    ms_jread_init(&r, f.p, f.n, 0);
    while ((t = ms_jread_next(&r)) > MS_J_END) {
        const bool here = t == MS_J_KEY && r.depth == 1 && ms_str_is(r.text, "rank_id");
        if (here && ms_jread_next(&r) == MS_J_NUM && !ms_jread_i64(&r, &rank))
            rank = NO_RANK;
    }
    ms_file_unmap(&f);
    return rank;
}

/* Returns the rank in device_3/info.json.3 of a directory of msprof; where the file names no
 * rank, the number of the device. */
static int64_t rank_of_msprof(const char *dir)
{
    for (int device = 0; device < 64; device++) {
        char name[48];
        snprintf(name, sizeof name, "device_%d/info.json.%d", device, device);
        char *path = file_in(dir, name);
        if (path == NULL)
            continue;
        const int64_t rank = rank_in_json(path);
        ms_free(path);
        return rank >= 0 ? rank : device;
    }
    return 0;
}

/* Adds a rank and takes ownership of profiler, which may be NULL. */
static enum ms_rc add_rank(struct mstx_ascend_files *found, int64_t rank, const char *dir,
                           char *profiler, struct ms_err *err)
{
    struct mstx_rank_files *f = ms_vec_push(&found->ranks);
    if (f == NULL) {
        ms_free(profiler);
        return ms_no_memory(err);
    }
    *f = (struct mstx_rank_files){rank, profiler, analysis_in(dir), ms_str_dup(ms_str_of(dir))};
    return f->dir != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc add_database(struct mstx_ascend_files *found, const char *dir, struct ms_str name,
                               struct ms_err *err)
{
    int64_t rank = rank_of_database(name);
    if (rank == NO_RANK && is_msprof(name))
        rank = rank_of_msprof(dir);
    if (rank == NO_RANK)
        return MS_OK;
    char *path = ms_path_join(dir, name.p);
    return path != NULL ? add_rank(found, rank, dir, path, err) : ms_no_memory(err);
}

/* Tells whether the directory has files whose names do not contain the rank. */
static bool has_output(const char *dir)
{
    static const char *const names[] = {"analysis.db", "communication.json",
                                        "communication_matrix.json", "step_trace_time.csv"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !any; i++) {
        char *path = file_in(dir, names[i]);
        any = path != NULL;
        ms_free(path);
    }
    return any;
}

static enum ms_rc search_dir(struct mstx_ascend_files *found, const char *dir, int depth,
                             struct ms_err *err);

/* Searches what is at path when it is a directory that was not searched before. */
static enum ms_rc search_below(struct mstx_ascend_files *found, const char *path, int depth,
                               struct ms_err *err)
{
    bool enters;
    MS_TRY(mstx__dir_walk_enter(&found->walk, path, &enters, err));
    return enters ? search_dir(found, path, depth + 1, err) : MS_OK;
}

static enum ms_rc search_entry(struct mstx_ascend_files *found, const char *dir, struct ms_str name,
                               int depth, struct ms_err *err)
{
    if (ms_str_ends(name, MS_STR(".db")))
        return add_database(found, dir, name, err);
    if (depth >= DEPTH_MAX || ms_str_is(name, MSTX_ANALYSIS_DIR))
        return MS_OK;
    char *path = ms_path_join(dir, name.p);
    if (path == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = search_below(found, path, depth, err);
    ms_free(path);
    return rc;
}

static enum ms_rc search_dir(struct mstx_ascend_files *found, const char *dir, int depth,
                             struct ms_err *err)
{
    struct ms_dir list;
    struct ms_err aside = {0};
    const size_t before = found->ranks.n;
    if (ms_dir_list(&list, dir, &aside) != MS_OK)
        return found->note_problem(found->ctx, dir, aside.msg, err);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++)
        rc = search_entry(found, dir, list.names.p[i], depth, err);
    ms_dir_free(&list);
    if (rc != MS_OK || found->ranks.n != before || !has_output(dir))
        return rc;
    const int64_t rank = rank_beside(dir);
    return rank != NO_RANK ? add_rank(found, rank, dir, NULL, err) : MS_OK;
}

/* ---- ranks ------------------------------------------------------------------------- */

/* Orders by rank, so that only the newest of several directories of a rank is kept: names of
 * directories contain the time, so the greatest name is the newest. */
static int by_rank(const void *pa, const void *pb)
{
    const struct mstx_rank_files *a = pa, *b = pb;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return -ms_str_cmp_natural(ms_str_of(a->dir), ms_str_of(b->dir));
}

static void free_files(struct mstx_rank_files *f)
{
    ms_free(f->profiler);
    ms_free(f->analysis);
    ms_free(f->dir);
}

static bool is_wanted(int64_t rank, const char *only)
{
    struct ms_str rest = only != NULL ? ms_str_of(only) : MS_STR_NONE, part;
    uint64_t n;
    if (only == NULL || ms_str_is(rest, "all"))
        return true;
    while (ms_str_split(&rest, ',', &part)) {
        if (ms_str_u64(part, &n) && (int64_t)n == rank)
            return true;
    }
    return false;
}

/* Keeps the wanted ranks, which are in order, each once. */
static enum ms_rc keep_one_of_each(struct mstx_ascend_files *found, const char *only,
                                   struct ms_err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < found->ranks.n; i++) {
        struct mstx_rank_files *f = &found->ranks.p[i];
        const bool again = kept != 0 && found->ranks.p[kept - 1].rank == f->rank;
        enum ms_rc rc = MS_OK;
        if (!again && is_wanted(f->rank, only)) {
            found->ranks.p[kept++] = *f;
            continue;
        }
        if (again)
            rc = found->note_problem(found->ctx, f->dir,
                                     "the same rank has been found elsewhere; the "
                                     "newest directory is taken",
                                     err);
        free_files(f);
        f->profiler = f->analysis = f->dir = NULL;
        if (rc != MS_OK)
            return rc;
    }
    found->ranks.n = kept;
    return MS_OK;
}

enum ms_rc mstx__ascend_files_add(struct mstx_ascend_files *found, int64_t rank,
                                  const char *profiler, const char *analysis, struct ms_err *err)
{
    struct mstx_rank_files f = {.rank = rank,
                                .profiler = ms_str_dup(ms_str_of(profiler)),
                                .analysis =
                                    analysis != NULL ? ms_str_dup(ms_str_of(analysis)) : NULL,
                                .dir = ms_str_dup(ms_path_dir(profiler))};
    struct mstx_rank_files *slot = ms_vec_push(&found->ranks);
    if (slot != NULL)
        *slot = f;
    if (slot != NULL && f.profiler != NULL && f.dir != NULL &&
        (analysis == NULL || f.analysis != NULL))
        return MS_OK;
    if (slot == NULL)
        free_files(&f);
    return ms_no_memory(err);
}

enum ms_rc mstx__ascend_files_choose(struct mstx_ascend_files *found, const char *only,
                                     struct ms_err *err)
{
    if (found->ranks.n != 0)
        qsort(found->ranks.p, found->ranks.n, sizeof *found->ranks.p, by_rank);
    return keep_one_of_each(found, only, err);
}

bool mstx__ascend_files_has(const struct mstx_ascend_files *found, int64_t rank)
{
    size_t low = 0, high = found->ranks.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (found->ranks.p[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < found->ranks.n && found->ranks.p[low].rank == rank;
}

enum ms_rc mstx__ascend_files_find(struct mstx_ascend_files *found, const char *dir,
                                   const char *only, struct ms_err *err)
{
    ms_assert(found->note_problem != NULL && found->ranks.n == 0);
    MS_TRY(search_dir(found, dir, 0, err));
    return mstx__ascend_files_choose(found, only, err);
}

void mstx__ascend_files_free(struct mstx_ascend_files *found)
{
    for (size_t i = 0; i < found->ranks.n; i++)
        free_files(&found->ranks.p[i]);
    ms_vec_free(&found->ranks);
    mstx__dir_walk_free(&found->walk);
}
