/* SPDX-License-Identifier: MIT
 *
 * mem_read: finds out what a path holds and calls the readers.
 */
#include "mstx/memory/mem_read.h"

#include "mstx/foreign/trace_files.h"
#include "mstx/foreign/trace_text.h"
#include "mstx/memory/mem_kinds.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/io.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 1 << 14 };

enum form {
    FORM_NONE,
    FORM_SNAPSHOT,
    FORM_TRACE,
    FORM_TIMELINE,
    FORM_MINDSPORE,
    FORM_OPERATORS,
    FORM_RECORDS,
    FORM_DATABASE,
    FORM_RUN
};

typedef enum ms_rc (*read_fn)(struct mstx_mem_log *log, const char *path, int32_t rank,
                              struct ms_err *err);
static const struct {
    read_fn read;
    const char *text;
} forms[] = {
    [FORM_NONE] = {NULL, ""},
    [FORM_SNAPSHOT] = {mstx__mem_from_snapshot, "memory snapshot of PyTorch"},
    [FORM_TRACE] = {mstx__mem_from_trace, "trace of PyTorch's profiler"},
    [FORM_TIMELINE] = {mstx__mem_from_timeline, "memory timeline of PyTorch's profiler"},
    [FORM_MINDSPORE] = {mstx__mem_from_mindspore, "memory tracker of MindSpore"},
    [FORM_OPERATORS] = {mstx__mem_from_operators, "operator memory of Ascend's profiler"},
    [FORM_RECORDS] = {mstx__mem_from_records, "memory record of Ascend's profiler"},
    [FORM_DATABASE] = {mstx__mem_from_ascend, "database of Ascend's profiler"},
    [FORM_RUN] = {mstx__mem_from_run, "run"},
};

/* ---- which form -------------------------------------------------------------------------- */

static bool is_pickle(struct ms_str head)
{
    return head.n > 2 && (uint8_t)head.p[0] == 0x80 && head.p[1] >= 2 && head.p[1] <= 5;
}

static bool has(struct ms_str text, const char *what)
{
    return memmem(text.p, text.n, what, strlen(what)) != NULL;
}

static enum form form_of_text(struct ms_str head)
{
    uint32_t at = 0;
    while (at < head.n && isspace((unsigned char)head.p[at]))
        at++;
    const struct ms_str rest = ms_str_sub(head, at, head.n);
    if (ms_str_starts(rest, MS_STR("[[")))
        return FORM_TIMELINE;
    if (rest.n != 0 && (has(rest, "\"traceEvents\"") || has(rest, "\"schemaVersion\"") ||
                        (rest.p[0] == '[' && has(rest, "\"ph\""))))
        return FORM_TRACE;
    return FORM_NONE;
}

/* Tells by its first line which table it is. */
static enum form form_of_table(struct ms_str head)
{
    struct ms_str rest = head, line;
    if (!ms_str_split(&rest, '\n', &line))
        return FORM_NONE;
    if (has(line, "start_time_stamp") && has(line, "device_addr"))
        return FORM_MINDSPORE;
    if (has(line, "Size(KB)") && has(line, "Allocation Time(us)"))
        return FORM_OPERATORS;
    return has(line, "Timestamp(us)") && has(line, "Total Reserved(MB)") ? FORM_RECORDS : FORM_NONE;
}

static enum form form_of(const char *path)
{
    if (ms_str_is(ms_path_base(path), MSTX_DB_NAME))
        return FORM_RUN;
    char *buf = ms_path_kind(path) == MS_KIND_FILE ? ms_alloc(HEAD) : NULL;
    if (buf == NULL)
        return FORM_NONE;
    const struct ms_str head = {buf, (uint32_t)mstx__trace_text_head(path, buf, HEAD)};
    enum form form = FORM_NONE;
    if (is_pickle(head))
        form = FORM_SNAPSHOT;
    else if (ms_str_starts(head, MS_STR("SQLite format 3")))
        form = FORM_DATABASE;
    else if (ms_str_ends(ms_str_of(path), MS_STR(".csv")))
        form = form_of_table(head);
    else
        form = form_of_text(head);
    ms_free(buf);
    return form;
}

/* Pickles of other endings are tensors, and lists of lists of other names are anything. */
static bool is_named_record(const char *path, enum form form)
{
    const struct ms_str name = ms_path_base(path);
    if (form == FORM_SNAPSHOT)
        return ms_str_ends(name, MS_STR(".pickle")) || ms_str_ends(name, MS_STR(".pkl"));
    return ms_str_has_folded(name, MS_STR(".raw")) || ms_str_has_folded(name, MS_STR("memory"));
}

bool mstx__mem_is_record(const char *path)
{
    const enum form form = form_of(path);
    return form == FORM_SNAPSHOT || form == FORM_TIMELINE
               ? is_named_record(path, form)
               : form > FORM_TIMELINE && form <= FORM_RECORDS;
}

/* ---- paths -------------------------------------------------------------------------------- */

static enum ms_rc read_file(struct mstx_mem_log *log, const char *path, enum form form,
                            struct ms_err *err)
{
    log->source = ms_str_of(forms[form].text);
    return forms[form].read(log, path, mstx__rank_in_name(path), err);
}

/* Reads a file of a folder. One that cannot be read is noted, and the others are read. */
static enum ms_rc read_member(struct mstx_mem_log *log, const char *path, size_t *read,
                              struct ms_err *err)
{
    struct ms_err bad = {0};
    const enum form form = form_of(path);
    if (form == FORM_NONE)
        return MS_OK;
    const enum ms_rc rc = read_file(log, path, form, &bad);
    *read += rc == MS_OK;
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    return rc == MS_OK ? MS_OK : mstx__mem_note(log, err, "%s", bad.msg);
}

static enum ms_rc read_folder(struct mstx_mem_log *log, const char *dir, struct ms_progress *bar,
                              struct ms_err *err)
{
    struct ms_dir list;
    size_t read = 0;
    MS_TRY(ms_dir_list(&list, dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++) {
        ms_progress_part(bar, i, list.names.n, MS_PACE_FILES);
        char *path = ms_path_join(dir, list.names.p[i].p);
        rc = path != NULL ? read_member(log, path, &read, err) : ms_no_memory(err);
        ms_free(path);
    }
    ms_dir_free(&list);
    if (rc != MS_OK || read != 0)
        return rc;
    if (log->notes.n != 0)
        return ms_fail(err, MS_E_FORMAT, "%.*s", MS_STR_ARG(log->notes.p[0]));
    return read_file(log, dir, FORM_RUN, err); /* it says what it misses */
}

static enum ms_rc read_path(struct mstx_mem_log *log, const char *path, struct ms_progress *bar,
                            struct ms_err *err)
{
    switch (ms_path_kind(path)) {
    case MS_KIND_DIR:
        return read_folder(log, path, bar, err);
    case MS_KIND_FILE:
        break;
    case MS_KIND_NONE:
        return ms_fail(err, MS_E_NOTFOUND, "%s: no such file or directory", path);
    default:
        return ms_fail_kind(path, err);
    }
    const enum form form = form_of(path);
    if (form == FORM_NONE && access(path, R_OK) != 0)
        return ms_fail_sys(err, "%s", path);
    if (form == FORM_NONE)
        return ms_fail(err, MS_E_FORMAT,
                       "%s: is no record of memory use; 'msprobe memory --help' lists what is read",
                       path);
    return read_file(log, path, form, err);
}

enum ms_rc mstx__mem_read(struct mstx_mem_log **log, const char *path, struct ms_progress *bar,
                          struct ms_err *err)
{
    MS_TRY(mstx__mem_log_new(log, err));
    enum ms_rc rc = read_path(*log, path, bar, err);
    if (rc == MS_OK)
        rc = mstx__mem_set_kinds(*log, err);
    if (rc != MS_OK) {
        mstx__mem_log_free(*log);
        *log = NULL;
    }
    return rc;
}
