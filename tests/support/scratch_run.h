/* SPDX-License-Identifier: MIT
 *
 * scratch_run: what the tests of the reading side have in common: a scratch run that is
 * written with make_capture, opened, exported and read back.
 */
#ifndef TESTS_SUPPORT_SCRATCH_RUN_H
#define TESTS_SUPPORT_SCRATCH_RUN_H

#include "mstx/conclude/run_ready.h"
#include "mstx/foreign/to_ascend.h"
#include "mstx/foreign/to_chrome.h"
#include "mstx/foreign/to_csv.h"
#include "mstx/foreign/to_perfetto.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"
#include "tests/support/check.h"
#include "tests/support/make_capture.h"
#include "tests/support/said.h"

#include <inttypes.h>

static char dir[64], run[80];
static struct mstx_tl *tl;

/* A new run directory with the first process. */
static inline void begin_run(struct maker *m, int32_t rank)
{
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    maker_begin(m, run, rank, 4242);
}

/* The sentence of a message in English, until the next one. */
static inline const char *sentence_of(const struct ms_message *m)
{
    static char text[4 * MS_MESSAGE_MAX];
    ck_assert_msg(ms_message_is_whole(m), "%s %s", m->kind->name, m->args);
    say_in_english(ms_message_stored(m), text, sizeof text);
    return text;
}

static inline void open_path(const char *path)
{
    struct ms_err e = {0};
    viz_words_install();
    ck_ok(mstx_run_open(&tl, path, NULL, &e), e);
}

/* Close the ring and the process that m writes, and open the run. */
static inline void finish_and_open(struct maker *m)
{
    maker_end_ring(m);
    maker_end(m);
    open_path(run);
}

static inline void end_run(void)
{
    mstx_tl_close(tl);
    tl = NULL;
    scratch_remove(dir);
}

/* A whole file with a NUL behind it, on the heap. */
static inline char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    rewind(f);
    char *p = malloc((size_t)size + 1);
    ck_assert_ptr_nonnull(p);
    *n = fread(p, 1, (size_t)size, f);
    p[*n] = '\0';
    fclose(f);
    return p;
}

/* What a format that writes to one output makes of the open run, on the heap. */
typedef enum ms_rc (*stream_fn)(struct mstx_tl *tl, struct ms_out *out, struct ms_err *err);
static inline char *exported(stream_fn fn, size_t *n)
{
    char path[96];
    struct ms_err e = {0};
    struct ms_out *out;
    snprintf(path, sizeof path, "%s/out", dir);
    ck_ok(ms_out_create(&out, path, &e), e);
    ck_ok(fn(tl, out, &e), e);
    ck_ok(ms_out_commit(out, &e), e);
    return slurp(path, n);
}

/* All rows of a query as text: '|' between columns, ';' behind rows. */
static inline char *rows_of(struct ms_store *s, const char *sql)
{
    struct ms_err e = {0};
    struct ms_stmt *st;
    struct ms_buf b = {.max = 1 << 20};
    bool more;
    ck_ok(ms_store_prepare(s, &st, sql, &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    while (more) {
        for (int i = 0; i < ms_stmt_columns(st); i++) {
            if (i != 0)
                ms_buf_putc(&b, '|');
            ms_buf_str(&b, ms_stmt_get_str(st, i));
        }
        ms_buf_putc(&b, ';');
        ck_ok(ms_stmt_step(st, &more, &e), e);
    }
    ms_stmt_free(st);
    char *text = strdup(b.n != 0 ? ms_buf_z(&b) : "");
    ms_buf_free(&b);
    return text;
}

#define ck_rows(store, sql, expected)                                                              \
    do {                                                                                           \
        char *ck_text = rows_of((store), (sql));                                                   \
        ck_assert_msg(strcmp(ck_text, (expected)) == 0, "%s\n gives    %s\n expected %s", (sql),   \
                      ck_text, (expected));                                                        \
        free(ck_text);                                                                             \
    } while (0)

#endif
