/* SPDX-License-Identifier: MIT
 *
 * from_ascend_text: see the header.
 */
#include "mstx/foreign/from_ascend_text.h"

#include "mstx/foreign/ascend_json.h"
#include "mstx/foreign/ascend_tables.h"
#include "mstx/foreign/sql/from_ascend_text.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#define FILE_MAX     ((size_t)10 << 30)
#define METADATA_MAX ((size_t)64 << 20)

static enum ms_rc add_op(void *ctx, const struct mstx_ascend_op *op, struct ms_err *err)
{
    struct ms_stmt *add = ctx;
    ms_stmt_str(add, 1, op->step);
    ms_stmt_str(add, 2, op->op);
    ms_stmt_str(add, 3, op->group.n != 0 ? op->group : MS_STR(""));
    ms_stmt_str(add, 4, op->text);
    return ms_stmt_run(add, err);
}

static enum ms_rc read_ops(struct ms_store *s, const char *dir, struct ms_err *err)
{
    struct ms_file f;
    struct ms_stmt *add = NULL;
    char *path = mstx__ascend_text_path(dir);
    enum ms_rc rc = path != NULL ? ms_file_map(&f, path, FILE_MAX, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        rc = ms_store_prepare(s, &add, sql_add_operation, err);
        if (rc == MS_OK)
            rc = mstx__ascend_json_read(f.p, f.n, add_op, add, err);
        ms_stmt_free(add);
        ms_file_unmap(&f);
    }
    ms_free(path);
    return rc;
}

/* Reads the names of groups from the metadata; without this file groups are shown by their
 * hashes. */
static enum ms_rc read_metadata(struct ms_store *s, const char *dir, struct ms_err *err)
{
    struct ms_file f;
    struct ms_stmt *add;
    char *path = ms_path_join(dir, "../profiler_metadata.json");
    if (path == NULL)
        return ms_no_memory(err);
    const bool is_there =
        ms_path_kind(path) == MS_KIND_FILE && ms_file_map(&f, path, METADATA_MAX, NULL) == MS_OK;
    ms_free(path);
    if (!is_there)
        return MS_OK;
    const struct ms_str text = {f.p, (uint32_t)f.n};
    enum ms_rc rc = ms_store_prepare(s, &add, sql_add_groups, err);
    if (rc == MS_OK) {
        ms_stmt_str(add, 1, text);
        rc = ms_stmt_run(add, err);
        ms_stmt_free(add);
    }
    ms_file_unmap(&f);
    return rc;
}

char *mstx__ascend_text_path(const char *dir)
{
    return ms_path_join(dir, "communication.json");
}

bool mstx__has_ascend_text(const char *dir)
{
    char *path = mstx__ascend_text_path(dir);
    const bool is = path != NULL && ms_path_kind(path) == MS_KIND_FILE;
    ms_free(path);
    return is;
}

static enum ms_rc fill_tables(struct ms_store *s, const char *dir, struct ms_err *err)
{
    MS_TRY(mstx__ascend_functions(s, err));
    MS_TRY(ms_store_exec(s, sql_create_raw_tables, err));
    MS_TRY(read_ops(s, dir, err));
    MS_TRY(read_metadata(s, dir, err));
    return ms_store_exec(s, sql_make_tables, err);
}

enum ms_rc mstx__ascend_text_open(struct ms_store **out, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_store_scratch(out, err));
    enum ms_rc rc = fill_tables(*out, dir, err);
    if (rc != MS_OK) {
        ms_store_close(*out);
        *out = NULL;
    }
    return rc;
}
