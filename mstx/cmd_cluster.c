/* SPDX-License-Identifier: MIT
 *
 * cluster: the official analyses of all ranks of a run.
 */
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"

#include <inttypes.h>
#include <stdio.h>

struct args {
    const char *dir, *output;
    int mode, type;
};

/* A recipe, its tables and their names as text. */
static const struct recipe {
    enum ms_rc (*run)(struct ms_store *s, struct ms_err *err);
    struct {
        const char *table, *csv;
    } out[4];
} recipes[] = {
    {mstx__recipe_slow_rank,
     {{"SlowRank", "rank_stats.csv"}, {"SlowOpStats", "slow_op_stats.csv"}}},
};
static const char *const modes[] = {"slow_rank", NULL};
static const char *const types[] = {"db", "text", NULL};

static const struct ms_opt opts[] = {
    {"dir", "d", MS_OPT_PATH, offsetof(struct args, dir), "DIR", .required = true,
     .help = "directory of a run, or one below which profilers left "
             "ascend_pytorch_profiler_RANK.db files"},
    {"mode", "m", MS_OPT_CHOICE, offsetof(struct args, mode), "RECIPE", .dflt = "slow_rank",
     .choices = modes, .help = "what to find out"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dflt = "the input's",
     .help = "where to make the directory cluster_analysis_output"},
    {"export_type", NULL, MS_OPT_CHOICE, offsetof(struct args, type), "TYPE", .dflt = "db",
     .choices = types, .help = "db: cluster_analysis.db; text: CSV files"},
    {0}};

extern const struct ms_cmd mstx_cmd_cluster;

static enum ms_rc write_texts(struct ms_store *s, const struct recipe *r, const char *dir,
                              struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (int i = 0; i < 4 && r->out[i].table != NULL && rc == MS_OK; i++) {
        char *path = ms_path_join(dir, r->out[i].csv);
        rc = path != NULL ? mstx__recipe_csv(s, r->out[i].table, path, err) : ms_no_memory(err);
        if (rc == MS_OK)
            printf("%s\n", path);
        ms_free(path);
    }
    return rc;
}

/* Text is made from the same tables, whose database is then thrown away. */
static enum ms_rc analyse(const struct args *a, const char *dir, const char *db, struct ms_err *err)
{
    const struct recipe *r = &recipes[a->mode];
    struct mstx_recipe_input in;
    struct ms_store *s;
    MS_TRY(ms_store_create(&s, db, err));
    enum ms_rc rc = mstx__recipe_read(s, a->dir, &in, err);
    if (rc == MS_OK && in.bad == in.files)
        rc = ms_fail(err, MS_E_FORMAT, "%s: none of its %" PRIu64 " databases can be read", a->dir,
                     in.files);
    if (rc == MS_OK)
        rc = r->run(s, err);
    if (rc == MS_OK)
        rc = mstx__recipe_read_end(s, err);
    if (rc == MS_OK && a->type == 1)
        rc = write_texts(s, r, dir, err);
    if (rc != MS_OK || a->type == 1) {
        ms_store_close(s);
    } else {
        rc = ms_store_commit(s, err);
        if (rc == MS_OK)
            printf("%s\n", db);
    }
    if (rc == MS_OK && in.bad != 0)
        fprintf(stderr, "msprobe: %" PRIu64 " of %" PRIu64 " databases cannot be read%s\n", in.bad,
                in.files, a->type == 0 ? "; see the table ImportProblem" : "");
    return rc;
}

static int run_cluster(int argc, char **argv)
{
    struct args a = {0};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&mstx_cmd_cluster, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_cluster, &err);
    if (done)
        return MS_EXIT_OK;
    char *dir = ms_path_join(a.output != NULL ? a.output : a.dir, "cluster_analysis_output");
    char *db = dir != NULL ? ms_path_join(dir, MSTX_ANALYSIS_DB) : NULL;
    enum ms_rc rc = db != NULL ? MS_OK : ms_no_memory(&err);
    if (rc == MS_OK && ms_path_kind(a.dir) != MS_KIND_DIR)
        rc = ms_fail(&err, MS_E_NOTFOUND, "%s: there is no such directory", a.dir);
    if (rc == MS_OK)
        rc = ms_mkdirs(dir, &err);
    if (rc == MS_OK)
        rc = analyse(&a, dir, db, &err);
    ms_free(dir);
    ms_free(db);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&mstx_cmd_cluster, &err);
}

const struct ms_cmd mstx_cmd_cluster = {
    .name = "cluster",
    .run = run_cluster,
    .brief = "analyse all ranks as msprof-analyze does",
    .opts = opts,
    .usage = "[options] -d DIR",
    .about = "Reads the communication operations of all ranks, from a run or from databases of "
             "Ascend's profilers, and writes the tables of an official recipe. slow_rank: which "
             "ranks came so late to collectives that it cannot be chance.\n"
             "\n"
             "  msprobe cluster -m slow_rank -d run1\n"
             "  msprobe cluster -d profiles -o out --export_type text\n",
};
