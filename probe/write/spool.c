/* SPDX-License-Identifier: MIT
 *
 * spool: the ring and its thread.
 *
 * An item is contiguous: one that does not fit before the end of the ring starts at its beginning,
 * and the gap counts as used until the item before it is done. When the ring has no room for a
 * tensor, the caller writes the file, since it would otherwise only wait; a caller that drains the
 * spool writes remaining items as well. Items are started in order and finish in any order; the
 * room of an item is free again once all earlier items are done. Two tensors of one name, as when a
 * graph runs backward twice, are written one after the other: the file has the later one.
 */
#include "probe/write/spool.h"

#include "probe/base/mem.h"
#include "probe/tensor/tensor.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { ALIGN = 64, PAGE = 4096, NAME_MAX_BYTES = 256 };

/* Header in front of an item's elements. */
struct item {
    size_t bytes; /* including header and elements */
    enum { FILLING, READY, TAKEN, DONE } state;
    const char *dir;
    enum ms_dtype dtype;
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS];
    char name[NAME_MAX_BYTES];
};
enum { HEADER = (sizeof(struct item) + ALIGN - 1) / ALIGN * ALIGN };

/* A place in the ring, and the bytes from there to the head. */
struct mark {
    size_t at, bytes;
};

/* A file that a thread is writing; lies on the stack of that thread. */
struct writing {
    struct writing *next;
    const char *dir, *name;
};

struct probe__spool {
    enum probe_file_kind kind;
    void *memory;
    char *ring;
    size_t size, wrap; /* wrap: end of the items in front of the wrap-around */
    size_t head;
    struct mark tail, next;  /* the first item not done; the first item not yet started */
    struct writing *writing; /* files of items and of callers */
    unsigned through;        /* files that callers are writing or waiting to write */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, less; /* an item can be written; a file is finished */
    bool stop;
    struct ms_err err; /* the first failure */
};

/* ---- files ------------------------------------------------------------ */

static enum ms_rc write_file(enum probe_file_kind kind, const char *dir, const char *name,
                             const struct probe_tensor *t, struct ms_err *err)
{
    char *path = ms_path_join(dir, name);
    if (path == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", name, ms_rc_text(MS_E_NOMEM));
    enum ms_rc rc = probe__tensor_write_lazily(t, path, kind, err);
    ms_free(path);
    return rc;
}

static enum ms_rc write_item(const struct probe__spool *s, const struct item *item,
                             struct ms_err *err)
{
    struct probe_tensor t = {.kind = s->kind, .contiguous = true};
    MS_TRY(probe__tensor_set(&t, item->dtype, item->shape, item->ndim, err));
    t.data = (const char *)item + HEADER;
    return write_file(s->kind, item->dir, item->name, &t, err);
}

static bool is_file(const char *dir, const char *name, const char *dir2, const char *name2)
{
    return strcmp(name, name2) == 0 && (dir == dir2 || strcmp(dir, dir2) == 0);
}

static bool is_being_written(const struct probe__spool *s, const char *dir, const char *name)
{
    const struct writing *w = s->writing;
    while (w != NULL && !is_file(w->dir, w->name, dir, name))
        w = w->next;
    return w != NULL;
}

static void begin_writing(struct probe__spool *s, struct writing *w)
{
    w->next = s->writing;
    s->writing = w;
}

static void end_writing(struct probe__spool *s, const struct writing *w, const struct ms_err *err)
{
    struct writing **at = &s->writing;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (err->rc != MS_OK && s->err.rc == MS_OK)
        s->err = *err;
    pthread_cond_signal(&s->more); /* the next item may have waited for this file */
    pthread_cond_broadcast(&s->less);
}

/* ---- taking ----------------------------------------------------------- */

static struct item *item_at(const struct probe__spool *s, const struct mark *m)
{
    return (struct item *)(void *)(s->ring + m->at);
}

/* Advances the mark to the next item. */
static void pass_mark(const struct probe__spool *s, struct mark *m, size_t bytes)
{
    m->at += bytes;
    m->bytes -= bytes;
    if (m->at == s->wrap) {
        m->bytes -= s->size - s->wrap;
        m->at = 0;
    }
}

/* Takes the next item to write; NULL: none is ready. */
static struct item *take_next(struct probe__spool *s)
{
    struct item *item = item_at(s, &s->next);
    if (s->next.bytes == 0 || item->state != READY || is_being_written(s, item->dir, item->name))
        return NULL;
    item->state = TAKEN;
    pass_mark(s, &s->next, item->bytes);
    return item;
}

static void free_done(struct probe__spool *s)
{
    while (s->tail.bytes != s->next.bytes && item_at(s, &s->tail)->state == DONE) {
        pass_mark(s, &s->tail, item_at(s, &s->tail)->bytes);
        if (s->tail.at == 0)
            s->wrap = s->size;
    }
}

/* Writes the file of an item that the caller has taken; the lock is held before and afterwards. */
static void write_taken(struct probe__spool *s, struct item *item)
{
    struct writing file = {.dir = item->dir, .name = item->name};
    struct ms_err err = {0};
    const bool failed = s->err.rc != MS_OK;
    begin_writing(s, &file);
    pthread_mutex_unlock(&s->lock);
    if (!failed)
        write_item(s, item, &err); /* err keeps a failure */
    pthread_mutex_lock(&s->lock);
    item->state = DONE;
    free_done(s);
    end_writing(s, &file, &err);
}

/* ---- the thread ------------------------------------------------------- */

static void *write_spooled(void *ctx)
{
    struct probe__spool *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct item *item = take_next(s);
        if (item != NULL)
            write_taken(s, item);
        else if (s->stop && s->next.bytes == 0)
            break;
        else
            pthread_cond_wait(&s->more, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Starts the thread with all signals blocked: signals are delivered to the program's threads
 * only. */
static int start_thread(struct probe__spool *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&s->thread, NULL, write_spooled, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* ---- life ------------------------------------------------------------- */

enum ms_rc probe__spool_new(struct probe__spool **out, size_t bytes, enum probe_file_kind kind,
                            struct ms_err *err)
{
    struct probe__spool *s = ms_calloc(1, sizeof *s);
    *out = NULL;
    if (s != NULL)
        s->memory = ms_alloc(bytes + PAGE);
    if (s == NULL || s->memory == NULL) {
        ms_free(s);
        return ms_fail(err, MS_E_NOMEM, "%zu bytes for tensors on their way: %s", bytes,
                       ms_rc_text(MS_E_NOMEM));
    }
    s->kind = kind;
    s->ring = (char *)s->memory + (PAGE - (uintptr_t)s->memory % PAGE);
    s->size = s->wrap = bytes / ALIGN * ALIGN;
    madvise(s->ring, s->size, MADV_HUGEPAGE); /* fewer page faults where huge pages exist */
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    pthread_cond_init(&s->less, NULL);
    if (start_thread(s) == 0) {
        *out = s;
        return MS_OK;
    }
    probe__spool_abandon(s);
    return ms_fail(err, MS_E_IO, "no thread to write tensors");
}

void probe__spool_abandon(struct probe__spool *s)
{
    if (s == NULL)
        return;
    ms_free(s->memory);
    ms_free(s);
}

void probe__spool_free(struct probe__spool *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->more);
    pthread_cond_destroy(&s->less);
    probe__spool_abandon(s);
}

/* ---- putting ---------------------------------------------------------- */

/* Finds contiguous room for `bytes`; NULL while there is none. */
static char *reserve_bytes(struct probe__spool *s, size_t bytes)
{
    if (s->tail.bytes == 0) {
        s->head = s->tail.at = s->next.at = 0;
        s->wrap = s->size;
    }
    if (s->tail.bytes != 0 && s->head <= s->tail.at) /* the free part is in the middle */
        return s->tail.at - s->head >= bytes ? s->ring + s->head : NULL;
    if (s->size - s->head >= bytes)
        return s->ring + s->head;
    if (s->tail.at < bytes)
        return NULL;
    const size_t gap = s->size - s->head;
    s->wrap = s->head;
    s->tail.bytes += gap;
    s->next.bytes += gap;
    if (s->next.at == s->head) { /* no item waits: the next one starts at the beginning */
        s->next.bytes -= gap;
        s->next.at = 0;
    }
    s->head = 0;
    return s->ring;
}

/* Allocates the room; the elements are then copied without the lock. */
static void take_room(struct probe__spool *s, char *place, size_t bytes)
{
    struct item *item = (struct item *)(void *)place;
    item->bytes = bytes;
    item->state = FILLING;
    s->head = (size_t)(place - s->ring) + bytes;
    s->tail.bytes += bytes;
    s->next.bytes += bytes;
}

static void fill(char *place, const char *dir, const char *name, const struct probe_tensor *t)
{
    struct item *item = (struct item *)(void *)place;
    item->dir = dir;
    item->dtype = t->dtype;
    item->ndim = t->ndim;
    memcpy(item->shape, t->shape, t->ndim * sizeof *t->shape);
    memcpy(item->name, name, strlen(name) + 1);
    const void *p = probe_tensor_elements(t, 0, t->count, place + HEADER);
    if (p != place + HEADER)
        memcpy(place + HEADER, p, t->count * ms_dtype_size(t->dtype));
}

static void hand_over(struct probe__spool *s, char *place)
{
    pthread_mutex_lock(&s->lock);
    ((struct item *)(void *)place)->state = READY;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
}

/* Tells whether an item that has not been started is for this file. */
static bool is_waiting(const struct probe__spool *s, const char *dir, const char *name)
{
    struct mark m = s->next;
    while (m.bytes != 0) {
        const struct item *item = item_at(s, &m);
        if (item->state != FILLING && is_file(item->dir, item->name, dir, name))
            return true;
        pass_mark(s, &m, item->bytes);
    }
    return false;
}

/* Writes the file on the caller's thread, concurrently with the spool's. */
static bool write_through(struct probe__spool *s, const char *dir, const char *name,
                          const struct probe_tensor *t)
{
    struct writing file = {.dir = dir, .name = name};
    struct ms_err err = {0};
    pthread_mutex_lock(&s->lock);
    while (is_being_written(s, dir, name) || is_waiting(s, dir, name))
        pthread_cond_wait(&s->less, &s->lock);
    begin_writing(s, &file);
    pthread_mutex_unlock(&s->lock);
    const bool written = write_file(s->kind, dir, name, t, &err) == MS_OK;
    pthread_mutex_lock(&s->lock);
    s->through--;
    end_writing(s, &file, &err);
    pthread_mutex_unlock(&s->lock);
    return written;
}

bool probe__spool_put(struct probe__spool *s, const char *dir, const char *name,
                      const struct probe_tensor *t)
{
    size_t bytes = 0;
    if (strlen(name) >= NAME_MAX_BYTES || !ms_mul_size(t->count, ms_dtype_size(t->dtype), &bytes) ||
        !ms_add_size(bytes, HEADER + ALIGN - 1, &bytes))
        return false;
    bytes = bytes / ALIGN * ALIGN;
    pthread_mutex_lock(&s->lock);
    bool failed = s->err.rc != MS_OK;
    char *place = failed || bytes > s->size ? NULL : reserve_bytes(s, bytes);
    if (place != NULL)
        take_room(s, place, bytes);
    else if (!failed)
        s->through++;
    pthread_mutex_unlock(&s->lock);
    if (place == NULL)
        return !failed && write_through(s, dir, name, t);
    fill(place, dir, name, t);
    hand_over(s, place);
    return true;
}

enum ms_rc probe__spool_drain(struct probe__spool *s, struct ms_err *err)
{
    pthread_mutex_lock(&s->lock);
    while (s->tail.bytes != 0 || s->through != 0) {
        struct item *item = take_next(s);
        if (item != NULL)
            write_taken(s, item);
        else
            pthread_cond_wait(&s->less, &s->lock);
    }
    struct ms_err first = s->err;
    ms_err_clear(&s->err);
    pthread_mutex_unlock(&s->lock);
    if (first.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    return first.rc;
}
