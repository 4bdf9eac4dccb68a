/* SPDX-License-Identifier: MIT
 *
 * slow: a count under a lock, and an event descriptor that asks all threads to end.
 */
#include "web/serve/slow.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct web_slow {
    pthread_mutex_t lock;
    pthread_cond_t none; /* signals that running is 0 */
    unsigned running, most;
    bool ends;
    int event;
};

enum ms_rc web_slow_new(struct web_slow **out, unsigned most, struct ms_err *err)
{
    struct web_slow *s = ms_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL)
        return ms_no_memory(err);
    s->most = most;
    s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event < 0) {
        ms_free(s);
        return ms_fail_sys(err, "cannot make an event");
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->none, NULL);
    *out = s;
    return MS_OK;
}

void web_slow_end(struct web_slow *s)
{
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    (void)eventfd_write(s->event, 1);
    while (s->running != 0)
        pthread_cond_wait(&s->none, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void web_slow_free(struct web_slow *s)
{
    if (s == NULL)
        return;
    ms_assert(s->running == 0);
    pthread_cond_destroy(&s->none);
    pthread_mutex_destroy(&s->lock);
    close(s->event);
    ms_free(s);
}

static int start_thread(void *(*work)(void *arg), void *arg)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    const int rc = pthread_create(&thread, &detached, work, arg);
    pthread_attr_destroy(&detached);
    return rc;
}

enum ms_rc web_slow_begin(struct web_slow *s, void *(*work)(void *arg), void *arg,
                          struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    pthread_mutex_lock(&s->lock);
    if (s->ends)
        rc = ms_fail(err, MS_E_INTERRUPTED, "the server ends");
    else if (s->running == s->most)
        rc =
            ms_fail(err, MS_E_INTERRUPTED, "%u statements are running already; try again", s->most);
    else if (start_thread(work, arg) != 0)
        rc =
            ms_fail(err, MS_E_INTERRUPTED, "no thread can be started for the statement; try again");
    else
        s->running++;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void web_slow_done(struct web_slow *s)
{
    pthread_mutex_lock(&s->lock);
    ms_assert(s->running != 0);
    if (--s->running == 0)
        pthread_cond_broadcast(&s->none);
    pthread_mutex_unlock(&s->lock);
}

int web_slow_ends(const struct web_slow *s)
{
    return s->event;
}
