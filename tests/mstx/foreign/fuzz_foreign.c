/* SPDX-License-Identifier: MIT
 *
 * Any bytes as the file of another tool - a Chrome or Perfetto trace, a table in CSV, a dump of PyTorch's
 * Flight Recorder, a database of Ascend's profilers: the import ends, and what it took can be read back.
 */
#include "mstx/conclude/run_ready.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum ms_rc count(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    (void)err;
    assert(ev->dur_ns >= 0 && ev->kind < MSTX_EV_KINDS);
    ++*(uint64_t *)ctx;
    return MS_OK;
}

static void check_database(const char *db)
{
    struct mstx_tl *tl;
    struct ms_err err = {0};
    enum ms_rc rc = mstx_tl_open(&tl, db, &err);
    assert(rc == MS_OK);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        uint64_t n = 0;
        rc = mstx_tl_walk(tl, i, NULL, count, &n, &err);
        assert(rc == MS_OK && n == mstx_tl_track(tl, i)->events);
    }
    mstx_tl_close(tl);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], db[80];
    const char *tmp = getenv("TMPDIR");
    const char *end = size != 0 && data[0] == 'r'    ? "csv"
                      : size != 0 && data[0] == '\n' ? "pftrace" /* the tag of a packet */
                                                     : "json";
    snprintf(path, sizeof path, "%.30s/msprobe-fuzz-%d.%s", tmp != NULL ? tmp : "/tmp",
             (int)getpid(), end);
    snprintf(db, sizeof db, "%s.db", path);
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    fwrite(data, 1, size, f);
    fclose(f);
    struct mstx_import_result r;
    struct ms_err err = {0};
    if (mstx_import(path, db, &r, &err) == MS_OK)
        check_database(db);
    else
        assert(err.rc != MS_OK && err.msg[0] != '\0');
    unlink(path);
    unlink(db);
    return 0;
}
