/* SPDX-License-Identifier: MIT
 *
 * export_run: see the header.
 */
#include "mstx/foreign/export_run.h"

#include "mstx/foreign/to_ascend.h"
#include "mstx/foreign/to_chrome.h"
#include "mstx/foreign/to_csv.h"
#include "mstx/foreign/to_flight.h"
#include "mstx/foreign/to_perfetto.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"

typedef enum ms_rc (*stream_fn)(struct mstx_tl *tl, struct ms_out *out, struct ms_err *err);

static enum ms_rc write_file(struct mstx_tl *tl, const char *path, stream_fn write_run,
                             struct ms_err *err)
{
    struct ms_out *out;
    MS_TRY(ms_out_create(&out, path, err));
    enum ms_rc rc = write_run(tl, out, err);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

/* Writes files into a folder. One that was not there goes away again when the export fails or is interrupted. */
static enum ms_rc write_folder(struct mstx_tl *tl, const char *path,
                               enum ms_rc (*write_run)(struct mstx_tl *tl, const char *path,
                                                       struct ms_err *err),
                               struct ms_err *err)
{
    const bool is_new = ms_path_kind(path) == MS_KIND_NONE;
    if (is_new)
        (void)ms_tmp_register(path); /* a full register leaves the folder behind an interrupt */
    const enum ms_rc rc = write_run(tl, path, err);
    if (is_new)
        ms_tmp_forget(path);
    if (is_new && rc != MS_OK)
        (void)ms_tmp_remove(path);
    return rc;
}

enum ms_rc mstx_export_run(struct mstx_tl *tl, enum mstx_export_format format, const char *path,
                           struct ms_err *err)
{
    ms_assert(format <= MSTX_EXPORT_FLIGHT);
    switch (format) {
    case MSTX_EXPORT_CHROME:
        return write_file(tl, path, mstx_export_chrome, err);
    case MSTX_EXPORT_TRACE_VIEW:
        return write_file(tl, path, mstx_export_trace_view, err);
    case MSTX_EXPORT_PERFETTO:
        return write_file(tl, path, mstx_export_perfetto, err);
    case MSTX_EXPORT_CSV:
        return mstx_export_csv(tl, path, err);
    case MSTX_EXPORT_FLIGHT:
        return write_folder(tl, path, mstx_export_flight, err);
    default:
        return write_folder(tl, path, mstx_export_ascend_db, err);
    }
}
