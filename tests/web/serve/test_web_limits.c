/* SPDX-License-Identifier: MIT
 *
 * Limits on visitors: who is ended and who is not, and how many slow answers run.  The thread that looks
 * at the visits is waited for; nothing here measures a time.
 */
#include "tests/support/check.h"

#include "web/serve/limits.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

static struct ms_err err;

/* ---- locks -------------------------------------------------------------------------- */

/* Each lock is given back by the thread that took it, one at a time, and no wait begins in the past. A
 * sanitizer has functions of its own in these places, and finds the same. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
enum { HELD_MAX = 4 };
static _Thread_local const pthread_mutex_t *of_thread[HELD_MAX];
static _Thread_local int held;

static void *next_of(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (f == NULL)
        abort();
    return f;
}

/* Whether the thread has the lock, which it took last. */
static void expect(const pthread_mutex_t *m, bool has)
{
    if (has ? held == 0 || of_thread[held - 1] != m
            : held == HELD_MAX || (held != 0 && of_thread[held - 1] == m))
        abort();
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
    int (*next)(pthread_mutex_t *);
    *(void **)&next = next_of("pthread_mutex_lock");
    expect(m, false);
    of_thread[held++] = m;
    return next(m);
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
    int (*next)(pthread_mutex_t *);
    *(void **)&next = next_of("pthread_mutex_unlock");
    expect(m, true);
    held--;
    return next(m);
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    int (*next)(pthread_cond_t *, pthread_mutex_t *);
    *(void **)&next = next_of("pthread_cond_wait");
    expect(m, true);
    return next(c, m);
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec now;
    *(void **)&next = next_of("pthread_cond_timedwait");
    expect(m, true);
    clock_gettime(CLOCK_REALTIME, &now);
    if (until->tv_sec < now.tv_sec)
        abort();
    return next(c, m, until);
}
#else
enum { held = 0 };
#endif

/* ---- visits ------------------------------------------------------------------------- */

enum { PEERS = 6 };
static int idle_seconds = 60;

/* What on_end was told, and connections over the loopback. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    unsigned slow, idle;
} told = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static struct peer {
    int ours, theirs;
    struct web_visit *visit;
} peer[PEERS];

static void note_end(void *ctx, unsigned n, const char *why)
{
    ck_assert_ptr_eq(ctx, &told);
    pthread_mutex_lock(&told.lock);
    *(strstr(why, "in time") != NULL ? &told.slow : &told.idle) += n;
    pthread_cond_signal(&told.more);
    pthread_mutex_unlock(&told.lock);
}

static void connect_peer(struct peer *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    const int door = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(door, (const struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(door, 1), 0);
    ck_assert_int_eq(getsockname(door, (struct sockaddr *)&at, &n), 0);
    p->theirs = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(p->theirs, (const struct sockaddr *)&at, sizeof at), 0);
    p->ours = accept(door, NULL, NULL);
    ck_assert_int_ge(p->ours, 0);
    close(door);
}

/* A list of so many visits, the first one last. */
static struct web_visits *visited_by(unsigned peers, int seconds, unsigned many)
{
    struct web_visits *v;
    const struct web_visits_conf conf = {seconds, idle_seconds, many, note_end, &told};
    told.slow = told.idle = 0;
    ck_ok(web_visits_new(&v, &conf, &err), err);
    for (unsigned i = 0; i < peers; i++) {
        connect_peer(&peer[i]);
        peer[i].visit = web_visits_come(v, peer[i].ours);
        ck_assert_ptr_nonnull(peer[i].visit);
    }
    return v;
}

/* A byte arrives; `how` is MSG_PEEK while the server is too busy to read it. */
static void arrive(unsigned i, int how)
{
    char byte;
    ck_assert_int_eq(write(peer[i].theirs, "G", 1), 1);
    ck_assert_int_eq(recv(peer[i].ours, &byte, 1, how), 1);
}

static void send_some(unsigned i)
{
    arrive(i, 0);
}

static void wait_for(unsigned slow, unsigned idle)
{
    pthread_mutex_lock(&told.lock);
    while (told.slow < slow || told.idle < idle)
        pthread_cond_wait(&told.more, &told.lock);
    ck_assert_uint_eq(told.slow, slow);
    ck_assert_uint_eq(told.idle, idle);
    pthread_mutex_unlock(&told.lock);
}

/* Whether our side was shut down: the peer reads the end. */
static bool is_ended(unsigned i)
{
    char byte;
    return recv(peer[i].theirs, &byte, 1, MSG_DONTWAIT) == 0;
}

static void leave(struct web_visits *v, unsigned i)
{
    web_visits_go(v, peer[i].visit);
    close(peer[i].ours);
    close(peer[i].theirs);
}

/* With no patience at all a look is enough; those that ask nothing or are answered are left alone. */
START_TEST(a_request_that_does_not_arrive_is_ended)
{
    struct web_visits *v = visited_by(5, 0, 100);
    arrive(4, MSG_PEEK); /* it waits for the server, not the server for it */
    send_some(1);
    web_visit_answers(v, peer[1].visit, true); /* being answered */
    send_some(2);
    web_visit_answers(v, peer[2].visit, true);
    web_visit_answers(v, peer[2].visit, false); /* answered; the next one is awaited */
    send_some(3);
    wait_for(1, 0);
    ck_assert(!is_ended(0) && !is_ended(1) && !is_ended(2) && is_ended(3));
    send_some(2);
    wait_for(2, 0); /* the one that was ended is not counted again */
    ck_assert(!is_ended(0) && !is_ended(1) && is_ended(2) && !is_ended(4));
    for (unsigned i = 0; i < 5; i++)
        leave(v, i);
    web_visits_free(v);
}
END_TEST

/* Up to `many` connections are not crowded; the first one more ends those that never asked. */
START_TEST(a_crowd_ends_those_that_never_asked)
{
    struct web_visits *v = visited_by(3, 60, 3), *crowd;
    struct peer few[3];
    memcpy(few, peer, sizeof few);
    crowd = visited_by(4, 60, 3);
    send_some(2);
    wait_for(0, 3);
    ck_assert(is_ended(0) && is_ended(1) && !is_ended(2) && is_ended(3));
    for (unsigned i = 0; i < 4; i++)
        leave(crowd, i);
    memcpy(peer, few, sizeof few);
    ck_assert(!is_ended(0) && !is_ended(1) && !is_ended(2));
    for (unsigned i = 0; i < 3; i++)
        leave(v, i);
    web_visits_free(crowd);
    web_visits_free(v);
}
END_TEST

/* From the middle, the end and the front of the list; whoever is left is still looked at. */
START_TEST(visits_leave_in_any_order)
{
    static const unsigned order[] = {2, 0, 5, 1, 4}, last = 3;
    struct web_visits *v = visited_by(PEERS, 0, 100);
    for (unsigned i = 0; i < PEERS - 1; i++)
        leave(v, order[i]);
    send_some(last);
    wait_for(1, 0);
    ck_assert(is_ended(last));
    leave(v, last);
    web_visits_go(v, NULL);
    web_visit_answers(v, NULL, true);
    ck_assert_int_eq(held, 0);
    web_visits_free(v);
    ck_assert_int_eq(held, 0);
    web_visits_free(NULL);
}
END_TEST

static void await_end(unsigned i)
{
    char byte;
    while (recv(peer[i].theirs, &byte, 1, 0) > 0)
        continue;
}

/* With no idle time at all the second look ends whoever's turn it is: one that asks nothing, one that was
 * answered, and one that does not read its answer; not one whose request lies unread and not one whose
 * answer is being made. None of them is told as a refusal. */
START_TEST(whoever_does_nothing_is_ended_when_it_is_its_turn)
{
    static char answer[1 << 24];
    idle_seconds = 0;
    struct web_visits *v = visited_by(5, 60, 100);
    idle_seconds = 60;
    arrive(1, MSG_PEEK);
    send_some(2);
    web_visit_answers(v, peer[2].visit, true);
    send_some(3);
    web_visit_answers(v, peer[3].visit, true);
    ck_assert_int_gt(send(peer[3].ours, answer, sizeof answer, MSG_DONTWAIT), 0);
    send_some(4);
    web_visit_answers(v, peer[4].visit, true);
    web_visit_answers(v, peer[4].visit, false);
    await_end(0);
    await_end(4);
    while (send(peer[3].ours, answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EPIPE)
        sched_yield();
    ck_assert(!is_ended(1) && !is_ended(2));
    ck_assert_uint_eq(told.slow + told.idle, 0);
    for (unsigned i = 0; i < 5; i++)
        leave(v, i);
    web_visits_free(v);
}
END_TEST

/* ---- slow answers -------------------------------------------------------------------- */

enum { MOST = 3 };
static struct web_slow *slow;
static int may_go; /* as many answers end as are counted here */
static _Atomic unsigned ended_early;

/* An answer that takes until it may go or has to end. */
static void *answer(void *arg)
{
    struct pollfd wait[] = {{.fd = may_go, .events = POLLIN},
                            {.fd = web_slow_ends(slow), .events = POLLIN}};
    eventfd_t one;
    (void)arg;
    while (poll(wait, 2, -1) < 0)
        continue;
    if (wait[1].revents != 0)
        ended_early++;
    else
        (void)eventfd_read(may_go, &one);
    web_slow_done(slow);
    return NULL;
}

static enum ms_rc begin(void)
{
    ms_err_clear(&err);
    return web_slow_begin(slow, answer, NULL, &err);
}

START_TEST(so_many_answers_run_and_all_end_with_the_server)
{
    ck_ok(web_slow_new(&slow, MOST, &err), err);
    may_go = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
    for (int i = 0; i < MOST; i++)
        ck_ok(begin(), err);
    ck_assert_int_eq(begin(), MS_E_INTERRUPTED);
    ck_says(err, "3 statements are running already");
    ck_assert_int_eq(eventfd_write(may_go, 1), 0);
    while (begin() != MS_OK)
        sched_yield();
    ck_assert_int_eq(begin(), MS_E_INTERRUPTED);
    ck_assert_uint_eq(ended_early, 0);
    ck_assert_int_eq(held, 0);
    web_slow_end(slow);
    ck_assert_int_eq(held, 0);
    ck_assert_uint_eq(ended_early, MOST);
    ck_assert_int_eq(begin(), MS_E_INTERRUPTED);
    ck_says(err, "the server ends");
    web_slow_free(slow);
    web_slow_free(NULL);
    close(may_go);
}
END_TEST

/* The end waits for each of them, and with none it returns at once. */
START_TEST(an_end_without_answers_waits_for_nothing)
{
    ck_ok(web_slow_new(&slow, 1, &err), err);
    web_slow_end(slow);
    web_slow_free(slow);
}
END_TEST

TEST_MAIN("web_limits", a_request_that_does_not_arrive_is_ended,
          a_crowd_ends_those_that_never_asked, whoever_does_nothing_is_ended_when_it_is_its_turn,
          visits_leave_in_any_order, so_many_answers_run_and_all_end_with_the_server,
          an_end_without_answers_waits_for_nothing)
