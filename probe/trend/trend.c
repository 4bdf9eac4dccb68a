/* SPDX-License-Identifier: MIT
 *
 * trend: finds which of the two kinds of data exists, and converts it.
 */
#include "probe/trend/trend_int.h"

#include "probe/base/io.h"

typedef enum ms_rc (*convert_fn)(struct probe__trend_job *, struct probe_trend_file *,
                                 struct ms_err *);

/* Converts one kind of data. When the kind is chosen automatically, missing data of this kind is no
 * failure. */
static enum ms_rc convert_one(struct probe__trend_job *j, convert_fn fn,
                              struct probe_trend_file *out, struct ms_err *err)
{
    struct ms_err own = {0};
    enum ms_rc rc = fn(j, out, &own);
    if (rc == MS_OK)
        return MS_OK;
    ms_buf_free(&out->path);
    bool nothing = rc == MS_E_NOTFOUND && out->failed == 0;
    if (nothing && j->conf->from == PROBE_TREND_AUTO)
        return MS_OK;
    return ms_fail(err, rc, "%s", own.msg);
}

static enum ms_rc convert_wanted(struct probe__trend_job *j, struct probe_trended *out,
                                 struct ms_err *err)
{
    const struct probe_trend_conf *conf = j->conf;
    MS_TRY(ms_want_dir(conf->data, err));
    if (conf->from != PROBE_TREND_MONITOR)
        MS_TRY(convert_one(j, probe__trend_dump, &out->dump, err));
    if (conf->from != PROBE_TREND_DUMP)
        MS_TRY(convert_one(j, probe__trend_monitor, &out->monitor, err));
    if (out->dump.path.n + out->monitor.path.n != 0)
        return MS_OK;
    ms_fail(err, MS_E_NOTFOUND, "%s: neither dumps nor monitor output in it", conf->data);
    ms_err_hint(err, "expected step*/rank*/dump.json or TIME-rankN-ID/METRIC_A-B.csv");
    return MS_E_NOTFOUND;
}

enum ms_rc probe_trend_convert(struct probe_trended *out, const struct probe_trend_conf *conf,
                               struct ms_pool *pool, struct ms_err *err)
{
    struct probe__trend_job j = {.conf = conf, .pool = pool};
    *out = (struct probe_trended){0};
    MS_TRY(probe__renames_read(&j.renames, conf->mapping, err));
    enum ms_rc rc = convert_wanted(&j, out, err);
    probe__renames_free(&j.renames);
    if (rc != MS_OK)
        probe_trended_free(out);
    return rc;
}

void probe_trended_free(struct probe_trended *out)
{
    ms_buf_free(&out->dump.path);
    ms_buf_free(&out->monitor.path);
}
