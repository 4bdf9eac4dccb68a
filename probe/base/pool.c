/* SPDX-License-Identifier: MIT
 *
 * pool: workers sleep on a condition until a loop begins, take items from one atomic counter and
 * sleep again. Workers share only that counter; items are chunks of a file or whole tensors, so one
 * atomic increment per item costs nothing measurable.
 */
#include "probe/base/pool.h"

#include "probe/base/cpu.h"
#include "probe/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { MAX_THREADS = 1024 };

/* One loop, on the stack of ms_pool_run. */
struct loop {
    ms_pool_fn fn;
    void *ctx;
    size_t n;
    atomic_size_t next; /* the lowest item not yet taken; n or more: none left */
    pthread_mutex_t lock;
    size_t failed_item; /* under the lock, as is err; n while nothing has failed */
    struct ms_err err;
};

struct worker {
    struct ms_pool *pool;
    unsigned number;
    pthread_t thread;
};

struct ms_pool {
    unsigned threads; /* including the caller */
    pthread_mutex_t lock;
    pthread_cond_t begin, idle;
    struct loop *loop; /* the current loop; under the lock, as are all below */
    uint64_t loops;    /* loops begun so far, by which a worker recognises a new one */
    unsigned busy;     /* workers still in the loop */
    bool quit;
    struct worker workers[]; /* threads - 1 */
};

/* ---- one loop --------------------------------------------------------- */

static void note_failure(struct loop *l, size_t item, enum ms_rc rc, struct ms_err *err)
{
    ms_fail(err, rc, "%s", ms_rc_text(rc));
    pthread_mutex_lock(&l->lock);
    if (item < l->failed_item) {
        l->failed_item = item;
        l->err = *err;
        l->err.rc = rc;
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->next, l->n);
}

static void run_items(struct loop *l, unsigned worker)
{
    /* A taken item is always run, because the lowest failed item decides which failure is
     * returned. */
    for (;;) {
        size_t item = atomic_fetch_add(&l->next, 1);
        if (item >= l->n)
            return;
        struct ms_err err = {0};
        enum ms_rc rc = l->fn(l->ctx, item, worker, &err);
        if (rc != MS_OK)
            note_failure(l, item, rc, &err);
    }
}

/* ---- threads ---------------------------------------------------------- */

static void *worker_main(void *arg)
{
    const struct worker *w = arg;
    struct ms_pool *p = w->pool;
    uint64_t done = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && p->loops == done)
            pthread_cond_wait(&p->begin, &p->lock);
        if (p->quit)
            break;
        done = p->loops;
        struct loop *l = p->loop;
        pthread_mutex_unlock(&p->lock);
        run_items(l, w->number);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Blocks signals in the workers, so that the thread that made the pool handles signals sent to the
 * process. Signals that an instruction raises stay unblocked: when blocked, they kill the process
 * without running the handler. */
static void block_signals(sigset_t *before)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
        sigdelset(&all, raised[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static void start_workers(struct ms_pool *p, unsigned wanted)
{
    sigset_t before;
    block_signals(&before);
    for (p->threads = 1; p->threads < wanted; p->threads++) {
        struct worker *w = &p->workers[p->threads - 1];
        *w = (struct worker){.pool = p, .number = p->threads};
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

enum ms_rc ms_pool_new(struct ms_pool **pool, unsigned threads, struct ms_err *err)
{
    *pool = NULL;
    if (threads == 0)
        threads = ms_cpu_count();
    if (threads > MAX_THREADS)
        return ms_fail(err, MS_E_ARG, "%u threads; at most %d are possible", threads, MAX_THREADS);
    struct ms_pool *p = ms_calloc(1, sizeof *p + (threads - 1) * sizeof *p->workers);
    if (p == NULL)
        return ms_no_memory(err);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->begin, NULL);
    pthread_cond_init(&p->idle, NULL);
    start_workers(p, threads);
    *pool = p;
    return MS_OK;
}

void ms_pool_free(struct ms_pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    assert(p->busy == 0);
    p->quit = true;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i + 1 < p->threads; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->begin);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->lock);
    ms_free(p);
}

unsigned ms_pool_threads(const struct ms_pool *p)
{
    return p != NULL ? p->threads : 1;
}

static void begin(struct ms_pool *p, struct loop *l)
{
    pthread_mutex_lock(&p->lock);
    assert(p->busy == 0);
    p->loop = l;
    p->loops++;
    p->busy = p->threads - 1;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
}

static void wait_idle(struct ms_pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->busy != 0)
        pthread_cond_wait(&p->idle, &p->lock);
    p->loop = NULL;
    pthread_mutex_unlock(&p->lock);
}

enum ms_rc ms_pool_run(struct ms_pool *p, size_t n, ms_pool_fn fn, void *ctx, struct ms_err *err)
{
    struct loop l = {.fn = fn, .ctx = ctx, .n = n, .failed_item = n};
    /* For a single item, waking threads costs more than it saves. */
    bool alone = ms_pool_threads(p) == 1 || n < 2;
    pthread_mutex_init(&l.lock, NULL);
    if (!alone)
        begin(p, &l);
    run_items(&l, 0);
    if (!alone)
        wait_idle(p);
    pthread_mutex_destroy(&l.lock);
    if (l.failed_item == n)
        return MS_OK;
    if (err != NULL && err->rc == MS_OK)
        *err = l.err;
    return l.err.rc;
}
