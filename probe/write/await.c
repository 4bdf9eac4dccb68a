/* SPDX-License-Identifier: MIT
 *
 * await: a queue of records whose tensors are being copied from a device, and the thread that
 * completes them.
 *
 * A tensor whose copy is in flight leaves a mark in the record's text, which the thread replaces by
 * the description. The marks are bytes that JSON never contains, so a scan of the text finds them.
 */
#include "probe/write/await.h"

#include "probe/base/mem.h"
#include "probe/base/vec.h"
#include "probe/write/call_struct.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#define TEXT_MAX ((size_t)1 << 30)
static const char TENSOR_MARK = 2, NAN_MARK = 3;
enum {
    ROOM_MIN = 256,
    QUEUE_MAX = 1 << 16, /* records; a full queue blocks the program */
    POLL_MIN_NS = 20000,
    POLL_MAX_NS = 1000000,
    PATIENCE_S = 5 /* longest wait at the end of a process */
};

struct awaited {
    struct probe__copy *copy;
    struct probe_tensor t;
    unsigned depth;    /* nesting depth in the document */
    size_t name, file; /* offsets in `names`: the value's name, the file's name; file 0: no file */
    bool requires_grad, is_output, may_have_file;
};

struct probe__waiting {
    struct probe__waiting *next;
    struct ms_buf text, names;
    MS_VEC(struct awaited) tensors;
    struct held *held;
    unsigned epoch;
    int is_nan;
    bool is_void; /* the record was dropped */
    bool odd, is_late;
};

struct probe__await {
    struct probe_dumper *d;
    pthread_t thread;
    struct probe__record record; /* scratch of the thread: one description, and the whole text */
    struct ms_buf whole;

    pthread_mutex_t lock; /* guards all below; lock order: after the dumper's lock */
    pthread_cond_t more, fewer;
    struct probe__waiting *first, **last, *spare;
    struct probe__copy *idle;
    size_t bytes;    /* total size of all copies */
    atomic_size_t n; /* length of the queue */
    bool ends;
};

/* ---- completing a record ---------------------------------------------- */

static bool arrive(struct probe__copy *c)
{
    struct timespec pause = {.tv_nsec = POLL_MIN_NS};
    enum probe__arrival got;
    while ((got = probe__copy_ask(c)) == PROBE__UNDER_WAY) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < POLL_MAX_NS)
            pause.tv_nsec *= 2;
    }
    return got == PROBE__ARRIVED;
}

struct naming {
    struct probe__waiting *w;
    struct awaited *tensor;
};

/* Stores the file's name; the file is written once the record is known to be kept. */
static bool keep_name(void *ctx, const char *name, const struct probe_tensor *t)
{
    struct naming *n = ctx;
    (void)t;
    n->tensor->file = n->w->names.n;
    ms_buf_put(&n->w->names, name, strlen(name) + 1);
    return n->w->names.bad == MS_OK;
}

/* Returns the description of the tensor after waiting for its elements. */
static struct ms_str describe(struct probe__await *a, struct probe__waiting *w, struct awaited *t)
{
    struct probe__record *r = &a->record;
    struct naming naming = {w, t};
    struct probe__leaf_as as = {.requires_grad = t->requires_grad};
    as.is_blank = t->copy == NULL || !arrive(t->copy);
    if (as.is_blank)
        probe__note(a->d, PROBE__BAD_VALUE, "%s: a tensor could not be copied from its device",
                    w->names.p + t->name);
    else
        t->t.data = t->copy->host;
    r->save = t->may_have_file && !as.is_blank ? keep_name : NULL;
    r->ctx = &naming;
    probe__record_begin_gap(r, ms_str_of(w->names.p + t->name), t->depth);
    probe__record_tensor(r, NULL, &t->t, &as);
    w->odd |= r->odd;
    const enum ms_dtype_kind kind = ms_dtype_kind(t->t.dtype);
    if (t->is_output && !as.is_blank && w->is_nan != 1 &&
        (kind == MS_DTK_FLOAT || kind == MS_DTK_COMPLEX))
        w->is_nan = probe__is_odd(&t->t);
    return ms_buf_slice(&r->json.buf);
}

static const char *is_nan_text(const struct probe__waiting *w)
{
    return w->is_nan < 0 ? "null" : w->is_nan != 0 ? "1" : "0";
}

/* Fills in all marks of the record's text; false: out of memory. */
static bool is_complete(struct probe__await *a, struct probe__waiting *w)
{
    struct ms_buf *out = &a->whole;
    const char *p = w->text.p, *end = p + w->text.n;
    size_t next = 0;
    out->bad = MS_OK;
    ms_buf_clear(out);
    for (const char *at = p; at < end; at++) {
        if (*at != TENSOR_MARK && *at != NAN_MARK)
            continue;
        ms_buf_put(out, p, (size_t)(at - p));
        p = at + 1;
        if (*at == NAN_MARK)
            ms_buf_puts(out, is_nan_text(w));
        else
            ms_buf_str(out, describe(a, w, &w->tensors.p[next++]));
    }
    if (p < end)
        ms_buf_put(out, p, (size_t)(end - p));
    return out->bad == MS_OK;
}

/* Passes the tensors of a record to the spool; the dumper's lock is held. */
static void put_files(struct probe_dumper *d, const struct probe__waiting *w)
{
    for (size_t i = 0; i < w->tensors.n; i++) {
        const struct awaited *t = &w->tensors.p[i];
        if (t->file != 0) /* probe__spool_drain reports a failure */
            (void)!probe__spool_put(d->spool, d->files.data_dir, w->names.p + t->file, &t->t);
    }
}

static void hand_over(struct probe_dumper *d, struct probe__waiting *w, struct ms_str text)
{
    if (!d->files.is_open || !probe__stays(d, w->epoch, w->odd))
        return;
    put_files(d, w);
    probe__release_held(d, w->held);
    probe__add_record(d, text, w->is_late);
}

/* ---- the thread ------------------------------------------------------- */

static void make_idle(struct probe__await *a, struct probe__copy *c)
{
    if (c == NULL)
        return;
    probe__copy_end(c);
    c->next = a->idle;
    a->idle = c;
}

/* Removes the first record from the queue; both locks are held. */
static void retire(struct probe__await *a, struct probe__waiting *w)
{
    a->first = w->next;
    if (a->first == NULL)
        a->last = &a->first;
    for (size_t i = 0; i < w->tensors.n; i++)
        make_idle(a, w->tensors.p[i].copy);
    w->next = a->spare;
    a->spare = w;
    atomic_fetch_sub(&a->n, 1);
    pthread_cond_broadcast(&a->fewer);
}

static void finish(struct probe__await *a, struct probe__waiting *w)
{
    struct probe_dumper *d = a->d;
    bool is_whole = !w->is_void && is_complete(a, w);
    for (size_t i = 0; i < w->tensors.n && w->is_void; i++) {
        if (w->tensors.p[i].copy != NULL)
            (void)arrive(w->tensors.p[i].copy);
    }
    pthread_mutex_lock(&d->lock);
    if (is_whole)
        hand_over(d, w, ms_buf_slice(&a->whole));
    probe__free_held(d, &w->held);
    pthread_mutex_lock(&a->lock);
    retire(a, w);
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_unlock(&d->lock);
}

static void *watch_finished(void *arg)
{
    struct probe__await *a = arg;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (a->first == NULL && !a->ends)
            pthread_cond_wait(&a->more, &a->lock);
        struct probe__waiting *w = a->first;
        if (w == NULL)
            break;
        pthread_mutex_unlock(&a->lock);
        finish(a, w);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Starts the thread with all signals blocked: signals are delivered to the program's threads
 * only. */
static bool start_thread(struct probe__await *a)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&a->thread, NULL, watch_finished, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

static struct probe__await *new_await(struct probe_dumper *d)
{
    struct probe__await *a = ms_calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->d = d;
    a->last = &a->first;
    a->whole.max = TEXT_MAX;
    probe__record_init(&a->record, &d->style);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    pthread_cond_init(&a->fewer, NULL);
    if (start_thread(a))
        return a;
    probe__record_free(&a->record);
    ms_free(a);
    return NULL;
}

/* Returns the queue, created at first use: programs without devices have no such thread. */
static struct probe__await *await_of(struct probe_dumper *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->await == NULL)
        d->await = new_await(d);
    struct probe__await *a = d->await;
    pthread_mutex_unlock(&d->lock);
    return a;
}

/* ---- room for copies -------------------------------------------------- */

static struct probe__copy *take_idle(struct probe__await *a, const struct probe_stream *s,
                                     size_t room)
{
    enum { WASTE = 4 };
    for (struct probe__copy **at = &a->idle; *at != NULL; at = &(*at)->next) {
        struct probe__copy *c = *at;
        if (c->room >= room && c->room / WASTE <= room && probe__copy_suits(c, s)) {
            *at = c->next;
            return c;
        }
    }
    return NULL;
}

static bool free_idle(struct probe__await *a)
{
    struct probe__copy *c = a->idle;
    if (c == NULL)
        return false;
    a->idle = c->next;
    a->bytes -= c->room;
    probe__copy_free(c);
    return true;
}

/* Returns an idle copy of fitting size, or a new one within the memory limit. A copy larger than
 * the limit is allowed only when no other is in flight. */
static struct probe__copy *take_copy(struct probe__await *a, struct probe_stream *s, size_t bytes)
{
    const size_t limit = a->d->s.memory_max;
    struct probe__copy *c;
    size_t room = ROOM_MIN;
    while (room < bytes)
        room *= 2;
    pthread_mutex_lock(&a->lock);
    while ((c = take_idle(a, s, room)) == NULL &&
           (a->bytes + room > limit || atomic_load(&a->n) >= QUEUE_MAX)) {
        if (free_idle(a))
            continue;
        if (atomic_load(&a->n) == 0)
            break;
        pthread_cond_wait(&a->fewer, &a->lock);
    }
    if (c == NULL && (c = probe__copy_new(s, room)) != NULL)
        a->bytes += room;
    pthread_mutex_unlock(&a->lock);
    return c;
}

/* ---- queueing a record ------------------------------------------------ */

static struct probe__waiting *take_waiting(struct probe__await *a)
{
    pthread_mutex_lock(&a->lock);
    struct probe__waiting *w = a->spare;
    if (w != NULL)
        a->spare = w->next;
    pthread_mutex_unlock(&a->lock);
    if (w == NULL)
        w = ms_calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->text.max = w->names.max = TEXT_MAX;
    w->text.bad = w->names.bad = MS_OK;
    ms_buf_clear(&w->text);
    ms_buf_clear(&w->names);
    ms_buf_putc(&w->names, '\0'); /* offset 0 means no text */
    w->tensors.n = 0;
    w->is_void = w->odd = w->is_late = false;
    return w;
}

/* Computes the bytes from the first element to the end of the last; false: overflow. */
static bool extent_of(const struct probe_tensor *t, size_t *bytes)
{
    size_t last = 0;
    for (uint32_t i = 0; i < t->ndim; i++) {
        size_t way;
        if (!ms_mul_size(t->shape[i] - 1, t->stride[i], &way) || !ms_add_size(last, way, &last))
            return false;
    }
    return ms_add_size(last, 1, &last) && ms_mul_size(last, ms_dtype_size(t->dtype), bytes) &&
           *bytes <= SIZE_MAX / 4;
}

static struct probe__copy *begin_copy(struct probe__await *a, const struct probe_tensor *t,
                                      const struct probe_tensor_desc *from)
{
    size_t bytes = 0;
    struct probe__copy *c = extent_of(t, &bytes) ? take_copy(a, from->stream, bytes) : NULL;
    const uint64_t offset =
        (uint64_t)((const char *)t->data - (const char *)from->data) + from->offset;
    if (c == NULL || probe__copy_begin(c, from->stream, from->data, offset, bytes))
        return c;
    if (c->is_adrift)
        return NULL;
    pthread_mutex_lock(&a->lock);
    make_idle(a, c);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

bool probe__await_tensor(struct probe_call *c, struct probe__waiting **w, const char *key,
                         const struct probe_tensor *t, const struct probe_tensor_desc *from)
{
    struct probe__await *a = await_of(c->d);
    if (a != NULL && *w == NULL)
        *w = take_waiting(a);
    struct awaited *slot = *w != NULL ? ms_vec_push(&(*w)->tensors) : NULL;
    if (slot == NULL)
        return false;
    *slot = (struct awaited){.t = *t,
                             .depth = c->record.json.depth,
                             .name = (*w)->names.n,
                             .requires_grad = from->requires_grad,
                             .is_output = c->part == PROBE_SEC_OUTPUT &&
                                          c->d->s.task == PROBE_TASK_NAN_CHECK,
                             .may_have_file = c->record.save != NULL};
    probe__record_gap(&c->record, key, (struct ms_str){&TENSOR_MARK, 1}, &(*w)->names);
    ms_buf_putc(&(*w)->names, '\0');
    slot->copy = begin_copy(a, t, from);
    return true;
}

void probe__await_is_nan(struct probe__record *r)
{
    ms_jwrite_raw(&r->json, (struct ms_str){&NAN_MARK, 1});
}

/* ---- the queue -------------------------------------------------------- */

bool probe__await_any(const struct probe_dumper *d)
{
    return d->await != NULL && atomic_load(&d->await->n) != 0;
}

static void append(struct probe__await *a, struct probe__waiting *w)
{
    pthread_mutex_lock(&a->lock);
    w->next = NULL;
    *a->last = w;
    a->last = &w->next;
    atomic_fetch_add(&a->n, 1);
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

void probe__await_add(struct probe_call *c, struct ms_str text)
{
    struct probe__await *a = c->d->await;
    struct probe__waiting *w = c->waiting != NULL ? c->waiting : take_waiting(a);
    c->waiting = NULL;
    if (w == NULL)
        return; /* out of memory: the record is lost */
    ms_buf_str(&w->text, text);
    w->is_void = w->text.bad != MS_OK || w->names.bad != MS_OK;
    w->held = c->held;
    c->held = NULL;
    w->epoch = c->epoch;
    w->is_nan = c->is_nan;
    w->odd = c->record.odd;
    w->is_late = c->record.is_late;
    append(a, w);
}

void probe__await_drop(struct probe_dumper *d, struct probe__waiting *w)
{
    w->is_void = true;
    append(d->await, w);
}

void probe__await_all(struct probe_dumper *d, bool is_ending)
{
    pthread_mutex_lock(&d->lock);
    struct probe__await *a = d->await;
    pthread_mutex_unlock(&d->lock);
    if (a == NULL)
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&a->lock);
    while (atomic_load(&a->n) != 0) {
        if (!is_ending)
            pthread_cond_wait(&a->fewer, &a->lock);
        else if (pthread_cond_timedwait(&a->fewer, &a->lock, &until) == ETIMEDOUT)
            break;
    }
    pthread_mutex_unlock(&a->lock);
}

static void free_waiting(struct probe__waiting *w)
{
    ms_buf_free(&w->text);
    ms_buf_free(&w->names);
    ms_vec_free(&w->tensors);
    ms_free(w);
}

void probe__await_free(struct probe__await *a, bool is_child)
{
    if (a == NULL || is_child) /* the thread and the devices belong to the parent process */
        return;
    pthread_mutex_lock(&a->lock);
    a->ends = true;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    while (free_idle(a))
        ;
    while (a->spare != NULL) {
        struct probe__waiting *w = a->spare;
        a->spare = w->next;
        free_waiting(w);
    }
    probe__record_free(&a->record);
    ms_buf_free(&a->whole);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->more);
    pthread_cond_destroy(&a->fewer);
    ms_free(a);
}
