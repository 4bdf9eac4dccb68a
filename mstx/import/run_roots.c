/* SPDX-License-Identifier: MIT
 *
 * run_roots: see the header.
 */
#include "mstx/import/run_roots.h"

#include "mstx/read/processes.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <string.h>

struct roots {
    struct ms_map ranks;           /* names of the ranks' directories */
    MS_VEC(struct ms_str) of_rank; /* the root of each, a part of its process's path */
    struct ms_str first;           /* root that was found first */
    bool is_one;                   /* all have this root */
};

/* Splits ROOT/rank_R/PROCESS; returns false for a process that lies elsewhere. */
static bool split(const char *path, struct ms_str *root, struct ms_str *rank)
{
    const char *process = strrchr(path, '/');
    if (process == NULL)
        return false;
    const char *name = memrchr(path, '/', (size_t)(process - path));
    if (name == NULL || strncmp(name + 1, "rank_", 5) != 0)
        return false;
    *root = (struct ms_str){path, (uint32_t)(name - path)};
    *rank = (struct ms_str){name + 1, (uint32_t)(process - name - 1)};
    return true;
}

/* Notes where the rank of a process lies; fails when it lies elsewhere too. */
static enum ms_rc note(struct roots *r, const char *dir, struct ms_str root, struct ms_str rank,
                       struct ms_err *err)
{
    bool is_new;
    const uint32_t at = ms_map_put(&r->ranks, rank, &is_new);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    struct ms_str *slot = is_new ? ms_vec_push(&r->of_rank) : NULL;
    if (is_new && slot == NULL)
        return ms_no_memory(err);
    if (slot != NULL)
        *slot = root;
    if (ms_str_eq(r->of_rank.p[at], root))
        return MS_OK;
    const struct ms_str other = r->of_rank.p[at];
    return ms_fail(err, MS_E_UNSUPPORTED, "%s: holds several runs, such as %.*s and %.*s; name one",
                   dir, MS_STR_ARG(other), MS_STR_ARG(root));
}

/* Looks at the places of all processes; those outside of a rank's directory make the directory itself a run.
 * Processes without a rank, which each node of a job may have, tell runs apart only where no process has one. */
static enum ms_rc look(struct roots *r, const char *dir, const struct mstx_procs *procs,
                       bool with_nameless, struct ms_err *err)
{
    struct ms_str root, rank;
    for (size_t i = 0; i < procs->list.n; i++) {
        if (!split(procs->list.p[i].dir, &root, &rank)) {
            r->is_one = false;
            continue;
        }
        r->first = r->first.p == NULL ? root : r->first;
        r->is_one = r->is_one && ms_str_eq(r->first, root);
        if (with_nameless || !ms_str_is(rank, "rank_none"))
            MS_TRY(note(r, dir, root, rank, err));
    }
    return MS_OK;
}

/* Tells whether a path below a directory is the directory itself, which may be written with slashes behind. */
static bool is_itself(struct ms_str root, const char *dir)
{
    const uint32_t n = (uint32_t)strlen(dir);
    return root.n <= n || strspn(root.p + n, "/") == root.n - n;
}

enum ms_rc mstx__want_one_run(const char *dir, struct ms_err *err)
{
    struct mstx_procs procs;
    struct roots r = {.is_one = true};
    MS_TRY(mstx__procs_find(&procs, dir, NULL, err));
    enum ms_rc rc = look(&r, dir, &procs, false, err);
    if (rc == MS_OK && r.of_rank.n == 0)
        rc = look(&r, dir, &procs, true, err);
    if (rc == MS_OK && procs.list.n != 0 && r.is_one && !is_itself(r.first, dir))
        rc = ms_fail(err, MS_E_UNSUPPORTED, "%s: is no run, but holds one; name that: %.*s", dir,
                     MS_STR_ARG(r.first));
    mstx__procs_free(&procs);
    ms_map_free(&r.ranks);
    ms_vec_free(&r.of_rank);
    return rc;
}
