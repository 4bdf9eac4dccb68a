/* SPDX-License-Identifier: MIT
 *
 * Any text as communication.json and communication_matrix.json of a rank: what is well-formed is told
 * operation by operation, and the cluster's files can be made of it or a problem is noted.
 */
#include "mstx/foreign/ascend_files.h"
#include "mstx/official/cluster_texts.h"

#include "probe/base/io.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum ms_rc check(void *ctx, const struct mstx_ascend_op *op, struct ms_err *err)
{
    (void)err;
    assert(op->text.n >= 2 && op->text.p[0] == '{' && op->text.p[op->text.n - 1] == '}');
    assert(ms_str_ends(op->op, op->group));
    ++*(int *)ctx;
    return MS_OK;
}

static void put(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert(f != NULL && fwrite(data, 1, size, f) == size);
    fclose(f);
}

static void make_cluster(const char *dir)
{
    char db[128];
    struct ms_err err = {0};
    char *of_rank = ms_str_dup(ms_str_of(dir));
    struct mstx_recipe r = {.path = dir, .out = dir, .step = MSTX_ALL_STEPS};
    struct mstx_rank_files *f = ms_vec_push(&r.files.ranks);
    assert(f != NULL && of_rank != NULL);
    *f = (struct mstx_rank_files){.rank = 0, .dir = of_rank};
    snprintf(db, sizeof db, "%s/out.db", dir);
    enum ms_rc rc = ms_store_create(&r.s, db, &err);
    assert(rc == MS_OK);
    rc = mstx__merge_cluster_texts(&r, true, true, &err);
    assert(rc == MS_OK || err.msg[0] != '\0');
    mstx__recipe_free(&r);
    ms_store_close(r.s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const made[] = {"communication.json",
                                       "communication_matrix.json",
                                       "communication_group.json",
                                       "cluster_communication.json",
                                       "cluster_communication_matrix.json",
                                       "cluster_step_trace_time.csv"};
    char dir[64], path[160];
    struct ms_err err = {0};
    int n = 0;
    if (mstx__ascend_json_read((const char *)data, size, check, &n, &err) != MS_OK)
        assert(err.msg[0] != '\0');
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.30s/msprobe-fuzz-%d", tmp != NULL ? tmp : "/tmp", (int)getpid());
    ms_err_clear(&err);
    enum ms_rc rc = ms_mkdirs(dir, &err);
    assert(rc == MS_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        put(path, data, size);
    }
    make_cluster(dir);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        unlink(path);
    }
    rmdir(dir);
    return 0;
}
