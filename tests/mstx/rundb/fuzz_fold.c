/* SPDX-License-Identifier: MIT
 *
 * Any bytes as the folded blobs of a run.db: they are refused with an error, or give events whose times and
 * kinds exist, and rows whose columns can all be read.
 *
 *     records { u8 0 part, 1 chunk, 2 rows; u16 bytes; the bytes }     parts are not compressed
 */
#include "mstx/rundb/fold_read.h"
#include "mstx/rundb/packed_rows.h"

#include <assert.h>
#include <string.h>

static struct mstx_event event[MSTX_CHUNK_MAX];

static bool is_name(void *ctx, uint32_t name)
{
    return name == *(const uint32_t *)ctx;
}

static void read_chunk(struct mstx_fold *f, struct ms_str blob)
{
    struct ms_err err = {0};
    uint32_t n = 0;
    const enum ms_rc rc = mstx__fold_events(f, blob, event, &n, &err);
    assert((rc == MS_OK) == (err.rc == MS_OK) && n <= MSTX_CHUNK_MAX);
    for (uint32_t i = 0; i < n; i++) {
        assert(event[i].dur_ns >= 0 && event[i].kind < MSTX_EV_KINDS);
        assert(event[i].start_ns <= INT64_MAX - event[i].dur_ns);
        assert(i == 0 || event[i - 1].start_ns <= event[i].start_ns);
        uint32_t name = event[i].name;
        assert(i % 512 != 0 || mstx__fold_has_name(f, blob, is_name, &name));
    }
}

static void read_rows(struct mstx_fold *f, struct ms_str blob)
{
    struct mstx_rows rows;
    struct ms_err err = {0};
    const unsigned columns = blob.n > 1 ? (uint8_t)blob.p[1] % (MSTX_ROWS_COLUMNS + 1u) : 0;
    const enum ms_rc rc = mstx__rows_new(&rows, &err);
    assert(rc == MS_OK);
    rows.folded = mstx__fold_columns(f);
    if (mstx__rows_look(&rows, blob, columns, &err) == MS_OK) {
        for (unsigned c = 0; c < columns; c++) {
            ms_err_clear(&err);
            const int64_t *cell = mstx__rows_column(&rows, c, &err);
            assert((cell != NULL) == (err.rc == MS_OK));
        }
    }
    mstx__rows_free(&rows);
}

static void add_row(struct ms_stmt *add, int64_t *id, const void *p, size_t n)
{
    ms_stmt_i64(add, 1, ++*id);
    ms_stmt_blob(add, 2, p, n);
    const enum ms_rc rc = ms_stmt_run(add, NULL);
    assert(rc == MS_OK);
}

/* Calls fn for each record; for parts and chunks, when it is NULL, fills the tables. */
static void for_records(struct ms_store *s, struct mstx_fold *f, const uint8_t *p, size_t size)
{
    struct ms_stmt *part = NULL, *chunk = NULL;
    struct ms_buf packed = {.max = 1 << 20};
    int64_t parts = 0, chunks = 0;
    enum ms_rc rc = ms_store_prepare(s, &part, "INSERT INTO fold_parts VALUES(?,?)", NULL);
    if (rc == MS_OK)
        rc = ms_store_prepare(s, &chunk, "INSERT INTO blobs VALUES(?,?)", NULL);
    assert(rc == MS_OK);
    while (size >= 3) {
        const size_t n = p[1] | (size_t)p[2] << 8;
        const size_t some = n < size - 3 ? n : size - 3;
        const struct ms_str text = {(const char *)p + 3, (uint32_t)some};
        if (f != NULL && p[0] == 1)
            read_chunk(f, text);
        else if (f != NULL && p[0] == 2)
            read_rows(f, text);
        else if (f == NULL && p[0] == 1)
            add_row(chunk, &chunks, text.p, text.n);
        else if (f == NULL && p[0] == 0 && mstx__part_pack(&packed, text, NULL) == MS_OK)
            add_row(part, &parts, packed.p, packed.n);
        p += 3 + some;
        size -= 3 + some;
    }
    ms_buf_free(&packed);
    ms_stmt_free(part);
    ms_stmt_free(chunk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_store *s;
    struct mstx_fold *f;
    enum ms_rc rc = ms_store_scratch(&s, NULL);
    assert(rc == MS_OK);
    rc = ms_store_exec(s,
                       "CREATE TABLE fold_parts(id INTEGER PRIMARY KEY, data BLOB);"
                       "CREATE TABLE blobs(chunk INTEGER PRIMARY KEY, data BLOB)",
                       NULL);
    assert(rc == MS_OK);
    for_records(s, NULL, data, size);
    rc = mstx__fold_new(&f, s, NULL);
    assert(rc == MS_OK);
    for_records(s, f, data, size);
    mstx__fold_free(f);
    ms_store_close(s);
    return 0;
}
