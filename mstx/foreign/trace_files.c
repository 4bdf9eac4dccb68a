/* SPDX-License-Identifier: MIT
 *
 * trace_files: see the header.
 */
#include "mstx/foreign/trace_files.h"

#include "mstx/foreign/from_chrome.h"
#include "mstx/foreign/from_csv.h"
#include "mstx/foreign/from_perfetto.h"
#include "mstx/foreign/trace_text.h"
#include "mstx/foreign/zip_list.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/regex.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- which files are traces ---------------------------------------------------------- */

/* Writers put what tells a trace into the first kilobytes. */
enum { HEAD = 1 << 14 };

static bool has(struct ms_str text, const char *what)
{
    const size_t n = strlen(what);
    return text.n >= n && memmem(text.p, text.n, what, n) != NULL;
}

static bool is_named(const char *path, const char *end, const char *packed_end)
{
    const struct ms_str s = ms_str_of(path);
    return ms_str_ends(s, ms_str_of(end)) || ms_str_ends(s, ms_str_of(packed_end));
}

static bool is_chrome(struct ms_str text)
{
    uint32_t at = 0;
    while (at < text.n && isspace((unsigned char)text.p[at]))
        at++;
    const bool is_list = at < text.n && text.p[at] == '[' && has(text, "\"ph\"");
    return is_list || has(text, "\"traceEvents\"") || has(text, "\"schemaVersion\"");
}

enum format { NO_TRACE, CHROME, TABLE, PERFETTO };

/* Returns the format that the name of a file allows. */
static enum format format_of_name(const char *path)
{
    if (is_named(path, ".csv", ".csv.gz"))
        return TABLE;
    if (is_named(path, ".perfetto-trace", ".perfetto-trace.gz") ||
        is_named(path, ".pftrace", ".pftrace.gz") || is_named(path, ".perfetto", ".perfetto.gz"))
        return PERFETTO;
    return is_named(path, ".json", ".json.gz") ? CHROME : NO_TRACE;
}

/* Tells by its name and its beginning what a file is. */
static enum format format_of(const char *path)
{
    const enum format format = format_of_name(path);
    char *head = format != NO_TRACE && ms_path_kind(path) != MS_KIND_DIR ? ms_alloc(HEAD) : NULL;
    if (head == NULL)
        return NO_TRACE;
    const struct ms_str text = {head, (uint32_t)mstx__trace_text_head(path, head, HEAD)};
    const bool is = format == TABLE      ? mstx__is_csv_table(text)
                    : format == PERFETTO ? mstx__is_perfetto(text)
                                         : is_chrome(text);
    ms_free(head);
    return is ? format : NO_TRACE;
}

static bool is_trace_file(const char *path)
{
    return format_of(path) != NO_TRACE;
}

typedef enum ms_rc (*path_fn)(void *ctx, const char *path, struct ms_err *err);

struct archive {
    const char *path;
    path_fn fn;
    void *ctx;
};

static enum ms_rc visit_member(void *ctx, const struct mstx_zip_member *m, struct ms_err *err)
{
    const struct archive *a = ctx;
    struct ms_buf path = {.max = 1 << 17};
    ms_buf_printf(&path, "%s/%.*s", a->path, MS_STR_ARG(m->name));
    enum ms_rc rc = ms_buf_check(&path, err);
    if (rc == MS_OK && is_trace_file(ms_buf_z(&path)))
        rc = a->fn(a->ctx, ms_buf_z(&path), err);
    ms_buf_free(&path);
    return rc;
}

/* Calls fn for each trace in an archive. */
static enum ms_rc each_in_archive(const char *path, path_fn fn, void *ctx, struct ms_err *err)
{
    struct archive a = {path, fn, ctx};
    const enum ms_rc rc = mstx__zip_each(path, visit_member, &a, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    return rc;
}

/* Calls fn for each trace in a folder, in the order of names. */
static enum ms_rc each_trace(const char *dir, path_fn fn, void *ctx, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++) {
        char *path = ms_path_join(dir, list.names.p[i].p);
        if (path == NULL)
            rc = ms_no_memory(err);
        else if (is_trace_file(path))
            rc = fn(ctx, path, err);
        ms_free(path);
    }
    ms_dir_free(&list);
    return rc;
}

static enum ms_rc count_one(void *ctx, const char *path, struct ms_err *err)
{
    (void)path, (void)err;
    ++*(size_t *)ctx;
    return MS_OK;
}

size_t mstx__count_trace_files(const char *dir)
{
    size_t n = 0;
    return each_trace(dir, count_one, &n, NULL) == MS_OK ? n : 0;
}

/* ---- ranks ------------------------------------------------------------------------------ */

int32_t mstx__rank_in_name(const char *path)
{
    int32_t rank = -1;
    for (const char *p = ms_path_base(path).p; (p = strstr(p, "rank")) != NULL;) {
        p += strlen("rank");
        const char *digits = p + (*p == '-' || *p == '_' || *p == '=');
        uint64_t v;
        const struct ms_str s = {digits, (uint32_t)strspn(digits, "0123456789")};
        if (s.n != 0 && ms_str_u64(s, &v) && v <= INT32_MAX)
            rank = (int32_t)v;
    }
    return rank;
}

/* Finds the rank in a file's name by the user's expression: the digits of its first group. */
static int32_t rank_by(const regex_t *by, const char *path)
{
    regmatch_t at[2];
    uint64_t v;
    if (regexec(by, path, 2, at, 0) != 0 || at[1].rm_so < 0)
        return -1;
    const struct ms_str digits = {path + at[1].rm_so, (uint32_t)(at[1].rm_eo - at[1].rm_so)};
    return ms_str_u64(digits, &v) && v <= INT32_MAX ? (int32_t)v : -1;
}

static bool has_rank(const struct mstx_trace_ranks *all, int32_t rank)
{
    for (size_t i = 0; i < all->rank.n; i++) {
        if (all->rank.p[i] == rank)
            return true;
    }
    return false;
}

/* Notes how many ranks of the job have no trace, where traces say how many ranks it has. */
static void note_missing(struct mstx_trace_ranks *all, const char *path)
{
    enum { LOOKED_AT = 4096 };
    char text[96];
    int32_t first = -1, missing = 0;
    for (int32_t rank = 0; rank < all->world && rank < LOOKED_AT; rank++) {
        if (has_rank(all, rank))
            continue;
        first = first < 0 ? rank : first;
        missing++;
    }
    if (missing == 0 || all->files < 2)
        return;
    snprintf(text, sizeof text, "%d of %d ranks %s no trace; the first is rank %d", (int)missing,
             (int)(all->world < LOOKED_AT ? all->world : LOOKED_AT), missing == 1 ? "has" : "have",
             (int)first);
    mstx__writer_problem(all->w, path, text);
}

/* Notes ranks that several traces give, of which only one is looked at by what compares ranks. */
static void note_twice(struct mstx_trace_ranks *all, const char *path, int32_t rank)
{
    char text[96];
    if (rank < 0 || !has_rank(all, rank))
        return;
    all->repeated++;
    snprintf(text, sizeof text,
             "rank %d has another trace too; if they are of two runs, import each alone",
             (int)rank);
    mstx__writer_problem(all->w, path, text);
}

/* ---- reading ------------------------------------------------------------------------------ */

struct reading {
    struct mstx_trace_ranks all;
    const regex_t *by;   /* the user's expression for ranks; NULL: none */
    bool is_single;      /* one file was given, and its failure is that of the whole import */
    struct ms_err first; /* failure of the first file that cannot be read */
};

static enum ms_rc read_one(void *ctx, const char *path, struct ms_err *err)
{
    struct reading *r = ctx;
    struct ms_err aside = {0};
    int32_t rank = r->by != NULL  ? rank_by(r->by, path)
                   : r->is_single ? -1
                                  : mstx__rank_in_name(path);
    mstx__writer_source(r->all.w, path);
    struct ms_err *why = r->is_single ? err : &aside;
    const enum format format = format_of(path);
    enum ms_rc rc = format == TABLE ? mstx__import_csv(path, &r->all, why)
                    : format == PERFETTO
                        ? mstx__import_perfetto(path, &r->all, why)
                        : mstx__import_chrome(path, r->is_single, &rank, &r->all, why);
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    if (rc != MS_OK && !r->is_single) {
        mstx__writer_problem(r->all.w, path, aside.msg);
        r->first = r->first.rc == MS_OK ? aside : r->first;
        return mstx__writer_why(r->all.w, err);
    }
    if (rc != MS_OK || format == TABLE || format == PERFETTO)
        return rc == MS_OK ? mstx__writer_why(r->all.w, err) : rc;
    note_twice(&r->all, path, rank);
    int32_t *slot = ms_vec_push(&r->all.rank);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = rank;
    return mstx__writer_why(r->all.w, err);
}

static enum ms_rc read_path(struct reading *r, const char *path, struct ms_err *err)
{
    if (ms_path_kind(path) == MS_KIND_DIR)
        return each_trace(path, read_one, r, err);
    if (ms_path_kind(path) != MS_KIND_FILE)
        return ms_fail_kind(path, err);
    if (!mstx__is_zip(path))
        return read_one(r, path, err);
    mstx__writer_source(r->all.w, path);
    return each_in_archive(path, read_one, r, err);
}

static uint64_t bytes_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Adds the bytes of a file, or of the files in a folder whose names are those of traces. */
static enum ms_rc add_bytes(uint64_t *bytes, const char *path, struct ms_err *err)
{
    struct ms_dir list;
    if (ms_path_kind(path) != MS_KIND_DIR) {
        *bytes += bytes_of(path);
        return MS_OK;
    }
    MS_TRY(ms_dir_list(&list, path, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++) {
        char *file = ms_path_join(path, list.names.p[i].p);
        if (file == NULL)
            rc = ms_no_memory(err);
        else if (format_of_name(file) != NO_TRACE)
            *bytes += bytes_of(file);
        ms_free(file);
    }
    ms_dir_free(&list);
    return rc;
}

static enum ms_rc read_all(struct reading *r, const char *const *paths, size_t n,
                           struct ms_err *err)
{
    for (size_t i = 0; i < n; i++)
        MS_TRY(read_path(r, paths[i], err));
    if (r->all.files == 0)
        return ms_fail(err, MS_E_FORMAT, "none of the traces can be read; the first: %s",
                       r->first.rc != MS_OK ? r->first.msg : paths[0]);
    note_missing(&r->all, paths[0]);
    return mstx__trace_ranks_save(&r->all, err);
}

enum ms_rc mstx__import_traces(const char *const *paths, size_t n, const char *rank_from,
                               struct mstx_writer *w, struct ms_progress *bar,
                               struct mstx_import_result *result, struct ms_err *err)
{
    struct reading r = {.is_single = n == 1 && ms_path_kind(paths[0]) == MS_KIND_FILE &&
                                     !mstx__is_zip(paths[0])};
    regex_t by;
    if (rank_from != NULL && ms_regex_compile(&by, rank_from, 0, err) != MS_OK)
        return ms_err_wrap(err, "--rank-from");
    r.by = rank_from != NULL ? &by : NULL;
    enum ms_rc rc = mstx__trace_ranks_new(&r.all, w, err);
    r.all.bar = bar;
    for (size_t i = 0; rc == MS_OK && i < n; i++)
        rc = add_bytes(&r.all.bytes, paths[i], err);
    if (rc == MS_OK)
        rc = read_all(&r, paths, n, err);
    result->files = r.all.files;
    result->repeated = r.all.repeated;
    mstx__trace_ranks_free(&r.all);
    if (rank_from != NULL)
        regfree(&by);
    return rc;
}
