/* SPDX-License-Identifier: MIT
 *
 * readers: a list of idle handles under a lock.
 */
#define MS_LOG_DOMAIN "serve"
#include "web/api/readers.h"

#include "probe/base/assert.h"
#include "probe/base/clock.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <malloc.h>
#include <pthread.h>

static const int64_t REFRESH_NS = 1000000000;

struct web_readers {
    struct viz_session *session;
    pthread_mutex_t lock;    /* guards the list and the session's version */
    pthread_mutex_t refresh; /* held during a refresh */
    int64_t refreshed_ns;
    MS_VEC(struct viz_reader *) idle;
};

enum ms_rc web_readers_new(struct web_readers **out, struct viz_session *session,
                           struct ms_err *err)
{
    struct web_readers *r = ms_calloc(1, sizeof *r);
    *out = r;
    if (r == NULL)
        return ms_no_memory(err);
    r->session = session;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->refresh, NULL);
    return MS_OK;
}

static void close_reader(struct viz_reader *reader)
{
    viz_reader_close(reader);
    ms_free(reader);
}

void web_readers_free(struct web_readers *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->idle.n; i++)
        close_reader(r->idle.p[i]);
    ms_vec_free(&r->idle);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->refresh);
    ms_free(r);
}

/* Tells whether a reader is current: since it was opened, the run has not grown and the graph
 * has had no first change. */
static bool is_current(const struct web_readers *r, const struct viz_reader *reader)
{
    return reader->version == r->session->version &&
           reader->graph_path == viz_session_graph(r->session);
}

uint64_t web_readers_state(const struct web_readers *r)
{
    return r->session->version;
}

static struct viz_reader *take_idle(struct web_readers *r)
{
    pthread_mutex_lock(&r->lock);
    struct viz_reader *reader = r->idle.n != 0 ? r->idle.p[--r->idle.n] : NULL;
    pthread_mutex_unlock(&r->lock);
    return reader;
}

enum ms_rc web_readers_take(struct web_readers *r, struct viz_reader **reader, struct ms_err *err)
{
    while ((*reader = take_idle(r)) != NULL) {
        if (is_current(r, *reader))
            return MS_OK;
        close_reader(*reader);
    }
    *reader = ms_calloc(1, sizeof **reader);
    if (*reader == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = viz_reader_open(*reader, r->session, err);
    if (rc != MS_OK) {
        ms_free(*reader);
        *reader = NULL;
    }
    return rc;
}

void web_readers_give(struct web_readers *r, struct viz_reader *reader)
{
    ms_assert(reader != NULL);
    pthread_mutex_lock(&r->lock);
    struct viz_reader **slot = is_current(r, reader) ? ms_vec_push(&r->idle) : NULL;
    if (slot != NULL)
        *slot = reader;
    pthread_mutex_unlock(&r->lock);
    if (slot == NULL)
        close_reader(reader);
}

/* Closes the idle readers, which are of an older state. */
static void drop_idle(struct web_readers *r)
{
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->idle.n; i++)
        close_reader(r->idle.p[i]);
    r->idle.n = 0;
    pthread_mutex_unlock(&r->lock);
}

void web_readers_refresh(struct web_readers *r)
{
    struct ms_err err = {0};
    if (pthread_mutex_trylock(&r->refresh) != 0)
        return;
    int64_t now = ms_clock_ns();
    if (now - r->refreshed_ns >= REFRESH_NS) {
        uint64_t before = r->session->version;
        if (viz_session_refresh(r->session, &err) != MS_OK)
            ms_warn("cannot read what the run has written since: %s", err.msg);
        if (r->session->version != before) {
            drop_idle(r);
            malloc_trim(0); /* else each thread that once imported keeps what it took */
        }
        r->refreshed_ns = ms_clock_ns();
    }
    pthread_mutex_unlock(&r->refresh);
}
