/* SPDX-License-Identifier: MIT
 *
 * limits: a list of connections that a thread checks every second; a count of slow answers.
 */
#include "web/serve/limits.h"

#include "probe/base/assert.h"
#include "probe/base/clock.h"
#include "probe/base/mem.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- connections -------------------------------------------------------------------- */

static const int64_t SECOND_NS = 1000000000, SILENT_NS = 2000000000;

struct web_visit {
    struct web_visit *before, *next;
    int64_t came_ns;
    uint64_t bytes_in; /* bytes received when the last request was complete */
    int64_t begun_ns;  /* time at which further bytes were first seen; 0: none */
    uint64_t moved;    /* bytes received and acknowledged at the last look */
    int64_t moved_ns;  /* last look at which they had grown, or the server had to act */
    int fd;
    bool answers, ended;
};

struct web_visits {
    struct web_visits_conf conf;
    pthread_mutex_t lock;
    pthread_cond_t end;
    pthread_t thread;
    struct web_visit *first;
    unsigned n;
    bool ends;
};

/* What the system counted on a connection so far; all 0 when it does not tell. */
static struct tcp_info traffic_of(int fd)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
        return (struct tcp_info){0};
    return info;
}

/* Returns the bytes received on a connection so far. */
static uint64_t bytes_in(int fd)
{
    return traffic_of(fd).tcpi_bytes_received;
}

/* Tells whether bytes have arrived that the server has not read yet: then the visitor waits for the
 * server, which on a full machine may take longer than a request is given. */
static bool waits_for_us(int fd)
{
    int unread = 0;
    return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

/* Tells whether a request is too slow. A connection that sends nothing is idle; the time counts
 * from the first byte seen of a request. */
static bool is_slow(struct web_visit *x, int64_t patience_ns, int64_t now)
{
    if (x->answers || bytes_in(x->fd) <= x->bytes_in)
        return false;
    if (x->begun_ns == 0)
        x->begun_ns = now;
    return now - x->begun_ns >= patience_ns && !waits_for_us(x->fd);
}

static bool never_asked(const struct web_visit *x, int64_t now)
{
    return now - x->came_ns >= SILENT_NS && bytes_in(x->fd) == 0;
}

/* Tells whether a part of the reply waits for the visitor to read it. */
static bool is_unsent(int fd)
{
    int unsent = 0;
    return ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0;
}

/* Tells whether a visitor has neither sent nor read anything for the idle limit while it was its
 * turn. The HTTP library counts the time since its own last read, so with its limit a thread that
 * was busy for long closed connections whose next request had already arrived. */
static bool is_idle(struct web_visit *x, int64_t idle_ns, int64_t now)
{
    const struct tcp_info info = traffic_of(x->fd);
    const uint64_t moved = info.tcpi_bytes_received + info.tcpi_bytes_acked;
    const bool our_turn = waits_for_us(x->fd) || (x->answers && !is_unsent(x->fd));
    if (moved != x->moved || our_turn) {
        x->moved = moved;
        x->moved_ns = now;
        return false;
    }
    return now - x->moved_ns >= idle_ns;
}

/* Shuts a connection down. The descriptor cannot have been reused: it is closed only after its
 * visit has left the list. */
static void end_visit(struct web_visit *x)
{
    x->ended = true;
    shutdown(x->fd, SHUT_RDWR);
}

static void end_bad_visits(struct web_visits *v, unsigned *slow, unsigned *idle)
{
    int64_t now = ms_clock_ns();
    bool crowded = v->n > v->conf.many;
    for (struct web_visit *x = v->first; x != NULL; x = x->next) {
        if (x->ended)
            continue;
        const bool too_slow = is_slow(x, v->conf.seconds * SECOND_NS, now);
        const bool too_many = !too_slow && crowded && never_asked(x, now);
        *slow += too_slow;
        *idle += too_many;
        if (is_idle(x, v->conf.idle_seconds * SECOND_NS, now) || too_slow || too_many)
            end_visit(x);
    }
}

static void *watch_connections(void *arg)
{
    struct web_visits *v = arg;
    pthread_mutex_lock(&v->lock);
    while (!v->ends) {
        unsigned slow = 0, idle = 0;
        struct timespec at;
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec++;
        pthread_cond_timedwait(&v->end, &v->lock, &at);
        end_bad_visits(v, &slow, &idle);
        pthread_mutex_unlock(&v->lock);
        if (slow != 0)
            v->conf.on_end(v->conf.ctx, slow, "a request that did not arrive in time");
        if (idle != 0)
            v->conf.on_end(v->conf.ctx, idle, "too many connections that ask nothing");
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

enum ms_rc web_visits_new(struct web_visits **out, const struct web_visits_conf *conf,
                          struct ms_err *err)
{
    struct web_visits *v = ms_calloc(1, sizeof *v);
    *out = NULL;
    if (v == NULL)
        return ms_no_memory(err);
    v->conf = *conf;
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->end, NULL);
    int rc = pthread_create(&v->thread, NULL, watch_connections, v);
    if (rc != 0) {
        ms_free(v);
        return ms_fail(err, MS_E_IO, "cannot start a thread (error %d)", rc);
    }
    *out = v;
    return MS_OK;
}

void web_visits_free(struct web_visits *v)
{
    if (v == NULL)
        return;
    pthread_mutex_lock(&v->lock);
    v->ends = true;
    pthread_cond_signal(&v->end);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    pthread_cond_destroy(&v->end);
    pthread_mutex_destroy(&v->lock);
    ms_free(v);
}

struct web_visit *web_visits_come(struct web_visits *v, int fd)
{
    struct web_visit *x = ms_calloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->fd = fd;
    x->came_ns = x->moved_ns = ms_clock_ns();
    pthread_mutex_lock(&v->lock);
    x->next = v->first;
    if (v->first != NULL)
        v->first->before = x;
    v->first = x;
    v->n++;
    pthread_mutex_unlock(&v->lock);
    return x;
}

void web_visits_go(struct web_visits *v, struct web_visit *x)
{
    if (x == NULL)
        return;
    pthread_mutex_lock(&v->lock);
    ms_assert(v->n > 0 && (x->before != NULL || v->first == x));
    if (x->next != NULL)
        x->next->before = x->before;
    *(x->before != NULL ? &x->before->next : &v->first) = x->next;
    v->n--;
    pthread_mutex_unlock(&v->lock);
    ms_free(x);
}

void web_visit_answers(struct web_visits *v, struct web_visit *x, bool answers)
{
    if (x == NULL)
        return;
    uint64_t n = bytes_in(x->fd);
    pthread_mutex_lock(&v->lock);
    x->answers = answers;
    x->begun_ns = 0;
    x->bytes_in = n;
    pthread_mutex_unlock(&v->lock);
}

/* ---- answers that take seconds ------------------------------------------------------ */

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
