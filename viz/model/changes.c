/* SPDX-License-Identifier: MIT
 *
 * changes: see the header.
 */
#include "viz/model/changes.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <pthread.h>

static const char GRAPH_ENDING[] = ".vis.db";

/* Guards creation of the copy: two requests may make the first change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static enum ms_rc make_copy(struct viz_session *s, struct ms_err *err)
{
    if (s->made == NULL)
        MS_TRY(ms_tmp_folder(&s->made, "view", err));
    char *copy = ms_path_join(s->made, "work.vis.db");
    if (copy == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_store_copy(s->graph, copy, err);
    if (rc == MS_OK)
        atomic_store(&s->work, copy);
    else
        ms_free(copy);
    return rc;
}

enum ms_rc viz_changes_begin(struct viz_session *s, const char **path, struct ms_err *err)
{
    if (s->graph == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "no graph is open");
    pthread_mutex_lock(&lock);
    enum ms_rc rc = atomic_load(&s->work) != NULL ? MS_OK : make_copy(s, err);
    pthread_mutex_unlock(&lock);
    *path = atomic_load(&s->work);
    return rc;
}

void viz_changes_made(struct viz_session *s)
{
    atomic_fetch_add(&s->changes, 1);
}

uint64_t viz_changes_count(const struct viz_session *s)
{
    return atomic_load(&s->changes);
}

/* Returns NAME.edited.vis.db for NAME.vis.db; an input NAME.edited.vis.db gives the same name. */
static enum ms_rc name_beside(const char *origin, struct ms_buf *where, struct ms_err *err)
{
    struct ms_str name = ms_str_of(origin);
    if (ms_str_ends(name, ms_str_of(GRAPH_ENDING)))
        name.n -= (uint32_t)strlen(GRAPH_ENDING);
    if (ms_str_ends(name, MS_STR(".edited")))
        name.n -= (uint32_t)strlen(".edited");
    ms_buf_printf(where, "%.*s.edited%s", MS_STR_ARG(name), GRAPH_ENDING);
    return ms_buf_check(where, err);
}

static enum ms_rc name_target(const struct viz_session *s, const char *to, bool over,
                              struct ms_buf *where, struct ms_err *err)
{
    ms_buf_clear(where);
    if (to == NULL && s->origin == NULL)
        return ms_fail(err, MS_E_ARG,
                       "this graph was made of dumps and has no file; name one to write it to");
    if (to == NULL && !over)
        return name_beside(s->origin, where, err);
    ms_buf_puts(where, to != NULL ? to : s->origin);
    return ms_buf_check(where, err);
}

static enum ms_rc write_copy(const char *work, const char *target, struct ms_err *err)
{
    struct ms_store *to;
    MS_TRY(ms_store_renew(&to, target, work, err));
    return ms_store_commit(to, err);
}

enum ms_rc viz_changes_write(struct viz_session *s, const char *to, bool over, struct ms_buf *where,
                             struct ms_err *err)
{
    const char *work = atomic_load(&s->work);
    const uint64_t before = atomic_load(&s->changes);
    if (work == NULL || (before == 0 && s->origin != NULL))
        return ms_fail(err, MS_E_NOTFOUND, "nothing was changed");
    MS_TRY(name_target(s, to, over, where, err));
    MS_TRY(write_copy(work, ms_buf_z(where), err));
    atomic_fetch_sub(&s->changes, before);
    return MS_OK;
}
