/* SPDX-License-Identifier: MIT
 *
 * foreign_told: what a run holds and what exports of it are, as text of which a record keeps a hash.
 */
#ifndef TESTS_SUPPORT_FOREIGN_TOLD_H
#define TESTS_SUPPORT_FOREIGN_TOLD_H

#include "mstx/foreign/export_run.h"
#include "tests/support/recorded.h"
#include "tests/support/scratch_run.h"

static inline unsigned low(struct ms_str s)
{
    return (unsigned)(ms_str_hash(s) & 0xffffff);
}

static inline void tell_tables(struct ms_store *s, struct ms_buf *out)
{
    char *names = rows_of(s, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    char sql[200], *save = NULL;
    for (char *name = strtok_r(names, ";", &save); name != NULL;
         name = strtok_r(NULL, ";", &save)) {
        snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", name);
        char *rows = rows_of(s, sql);
        ms_buf_printf(out, "%s: ", name);
        ms_buf_puts(out, rows);
        ms_buf_puts(out, "\n");
        free(rows);
    }
    free(names);
}

static inline void tell_file(const char *path, struct ms_buf *out)
{
    struct ms_err err = {0};
    struct ms_store *s;
    size_t n;
    if (ms_str_ends(ms_str_of(path), MS_STR(".db"))) {
        ck_ok(ms_store_open(&s, path, &err), err);
        tell_tables(s, out);
        ms_store_close(s);
        return;
    }
    char *text = slurp(path, &n);
    ms_buf_put(out, text, n);
    free(text);
}

/* A file, or the files of a directory in order of their names. */
static inline void tell_path(const char *path, struct ms_buf *out)
{
    struct ms_err err = {0};
    struct ms_dir list;
    if (ms_path_kind(path) == MS_KIND_FILE) {
        tell_file(path, out);
        return;
    }
    ck_ok(ms_dir_list(&list, path, &err), err);
    for (size_t i = 0; i < list.names.n; i++) {
        char *one = ms_path_join(path, list.names.p[i].p);
        ms_buf_printf(out, "%s\n", list.names.p[i].p);
        tell_file(one, out);
        ms_free(one);
    }
    ms_dir_free(&list);
}

static inline void tell_format(enum mstx_export_format format, const char *name,
                               struct ms_buf *record)
{
    char path[128];
    struct ms_err err = {0};
    struct ms_buf out = {.max = 1 << 24};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (mstx_export_run(tl, format, path, &err) == MS_OK)
        tell_path(path, &out);
    else
        ms_buf_puts(&out, err.msg);
    ms_buf_printf(record, " %06x", low(ms_buf_slice(&out)));
    if (getenv("FOREIGN_SHOW") != NULL && strcmp(getenv("FOREIGN_SHOW"), name) == 0)
        printf("%s\n", ms_buf_z(&out));
    ms_buf_free(&out);
}

static inline enum ms_rc tell_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    (void)err;
    const bool is_text = (e->flags & MSTX_EVF_CATEGORY) != 0;
    const struct ms_str category = mstx_tl_text(tl, is_text ? (uint32_t)e->arg : 0);
    ms_buf_printf(ctx, "%d %d %lld %lld %u %llu %.*s %llu %.*s %.*s\n", e->kind, e->flags,
                  (long long)e->start_ns, (long long)e->dur_ns, e->end_tid,
                  (unsigned long long)(is_text ? 0 : e->arg), MS_STR_ARG(category),
                  (unsigned long long)e->size, MS_STR_ARG(mstx_tl_text(tl, e->name)),
                  MS_STR_ARG(mstx_tl_text(tl, e->args)));
    return MS_OK;
}

static inline void tell_run(struct ms_buf *out)
{
    static const char *const asked[] = {"SELECT rank, pid, name, tool, state, start_ns, end_ns, "
                                        "records, events, unfinished FROM processes",
                                        "SELECT process, kind, tid, domain, name, unit FROM tracks",
                                        "SELECT text FROM problems",
                                        "SELECT id, name, size, ranks FROM comm_groups",
                                        "SELECT rank, op, type, count, seq, peer, start_ns, end_ns "
                                        "FROM comm_ops ORDER BY rank, start_ns, seq, op",
                                        "SELECT kind, text FROM findings WHERE kind <> 'problem'"};
    struct ms_err err = {0};
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const enum ms_rc rc = mstx_tl_walk(tl, i, NULL, tell_event, out, &err);
        ms_buf_printf(out, "%d\n", (int)rc);
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char *rows = rows_of(mstx_tl_store(tl), asked[i]);
        ms_buf_puts(out, rows);
        ms_buf_puts(out, "\n");
        free(rows);
    }
}

/* The directory of a test has another name each time. */
static inline void leave_out_dir(struct ms_buf *b)
{
    struct ms_buf out = {.max = 1 << 24};
    struct ms_str rest = ms_buf_slice(b), words = ms_str_of(dir);
    for (int64_t at; (at = ms_str_find_str(rest, words)) >= 0;) {
        ms_buf_str(&out, ms_str_sub(rest, 0, (uint32_t)at));
        rest = ms_str_sub(rest, (uint32_t)at + words.n, rest.n);
    }
    ms_buf_str(&out, rest);
    ms_buf_free(b);
    *b = out;
}

/* In all formats. */
static inline void tell_formats(struct ms_buf *record)
{
    tell_format(MSTX_EXPORT_CHROME, "chrome.json", record);
    tell_format(MSTX_EXPORT_TRACE_VIEW, "view.json", record);
    tell_format(MSTX_EXPORT_PERFETTO, "trace.pftrace", record);
    tell_format(MSTX_EXPORT_CSV, "marks.csv", record);
    tell_format(MSTX_EXPORT_ASCEND_DB, "ascend.db", record);
    tell_format(MSTX_EXPORT_ASCEND_DB, "ascend", record);
    tell_format(MSTX_EXPORT_FLIGHT, "flight", record);
}

#endif
