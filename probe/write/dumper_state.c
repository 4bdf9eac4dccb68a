/* SPDX-License-Identifier: MIT
 *
 * dumper_state: the state behind records: process and thread, names and their call counts, the
 * files of the step, and the log of errors.
 *
 * Layering: calls and awaiting records call this file; dumper.c, which opens, steps and closes,
 * calls those.
 */
#include "probe/write/call_struct.h"

#define MS_LOG_DOMAIN "dumper"
#include "probe/base/io.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* ---- processes -------------------------------------------------------- */

static atomic_uint fork_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add(&fork_count, 1);
}

static void watch_forks(void)
{
    (void)!pthread_atfork(NULL, NULL, count_fork); /* without memory, forks go unnoticed */
}

unsigned probe__fork_count(void)
{
    pthread_once(&once, watch_forks);
    return atomic_load(&fork_count);
}

bool probe__is_own_process(const struct probe_dumper *d)
{
    return atomic_load_explicit(&fork_count, memory_order_relaxed) == d->forks;
}

bool probe__is_mine(const struct probe_dumper *d)
{
    return d != NULL && atomic_load_explicit(&d->active, memory_order_relaxed) &&
           probe__is_own_process(d);
}

bool probe_dumper_active(const struct probe_dumper *d)
{
    return probe__is_mine(d);
}

/* ---- threads ---------------------------------------------------------- */

void probe__leave_thread(void *ctx)
{
    struct probe__thread *t = ctx;
    t->module = t->op = NULL;
    __atomic_store_n(&t->in_use, false, __ATOMIC_RELEASE);
}

/* Reuses the state of a thread that has ended, or allocates one. */
static struct probe__thread *take_thread(struct probe_dumper *d)
{
    struct probe__thread *t = d->threads;
    while (t != NULL && __atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE))
        t = t->next;
    if (t == NULL) {
        t = ms_calloc(1, sizeof *t);
        if (t == NULL)
            return NULL;
        t->next = d->threads;
        d->threads = t;
    }
    t->in_use = true;
    t->stack = probe__stack_area_of_thread();
    return t;
}

struct probe__thread *probe__thread_of(struct probe_dumper *d)
{
    struct probe__thread *t = pthread_getspecific(d->key);
    if (t != NULL)
        return t;
    pthread_mutex_lock(&d->lock);
    t = take_thread(d);
    pthread_mutex_unlock(&d->lock);
    if (t != NULL && pthread_setspecific(d->key, t) != 0) {
        probe__leave_thread(t);
        return NULL;
    }
    return t;
}

/* ---- names ------------------------------------------------------------ */

uint32_t probe__called_index(struct probe_dumper *d, struct ms_str key, bool *added)
{
    if (!ms_vec_reserve(&d->called, d->called.n + 1))
        return MS_MAP_NONE;
    uint32_t at = ms_map_put_copy(&d->names, key, d->arena, added);
    if (at != MS_MAP_NONE && *added)
        d->called.p[d->called.n++] = (struct probe__called){0};
    return at;
}

void probe__forget_calls(struct probe_dumper *d)
{
    for (size_t i = 0; i < d->called.n; i++) {
        d->called.p[i].calls = d->called.p[i].grads = 0;
        d->called.p[i].has_backward = false;
        d->called.p[i].owners.n = 0;
    }
    probe__filter_reset(&d->filter);
}

/* ---- errors ------------------------------------------------------------ */

static void put_time(struct ms_buf *b)
{
    char text[64];
    struct tm tm;
    time_t now = time(NULL);
    localtime_r(&now, &tm);
    size_t n = strftime(text, sizeof text, "[%Y-%m-%d %H:%M:%S %z] ", &tm);
    ms_buf_put(b, text, n);
}

static void put_frames(struct ms_buf *b, const char *const *text, unsigned n)
{
    ms_buf_puts(b, "Call stack (most recent call last):\n");
    for (unsigned i = n; i-- > 0;) {
        ms_buf_puts(b, text[i]);
        ms_buf_putc(b, '\n');
    }
    ms_buf_putc(b, '\n');
}

/* Writes the frames of the program: those of `place`, or else unwound from `frame`. */
static void put_trail(struct ms_buf *b, const struct probe__place *place, const void *frame)
{
    struct probe__trail trail;
    if (place != NULL) {
        put_frames(b, place->frames, place->n);
        return;
    }
    probe__trail_unwind(&trail, frame);
    char **text = probe__trail_text(&trail);
    put_frames(b, (const char *const *)text, text != NULL ? trail.n : 0);
    ms_free(text);
}

/* Appends a note to the log; the first note of a step truncates the file. */
static void write_note(const struct probe_dumper *d, bool is_first, const struct ms_buf *b)
{
    char *path = ms_path_join(d->dir, "dump_error_info.log");
    FILE *f = path != NULL ? fopen(path, is_first ? "we" : "ae") : NULL;
    ms_free(path);
    if (f == NULL)
        return; /* the log is best effort */
    fwrite(b->p, 1, b->n, f);
    fclose(f);
}

void probe__note_at(struct probe_dumper *d, enum probe__trouble kind,
                    const struct probe__place *place, const char *text)
{
    enum { NOTE_MAX = 1 << 16 };
    struct ms_buf b = {.max = NOTE_MAX};
    pthread_mutex_lock(&d->lock);
    bool is_new = (d->troubles & kind) == 0 && d->dir != NULL;
    bool is_first = d->troubles == 0;
    d->troubles |= kind;
    if (is_new) {
        put_time(&b);
        ms_buf_puts(&b, text);
        ms_buf_putc(&b, '\n');
        put_trail(&b, place, __builtin_frame_address(0));
        if (b.bad == MS_OK)
            write_note(d, is_first, &b);
    }
    pthread_mutex_unlock(&d->lock);
    ms_buf_free(&b);
}

void probe__note(struct probe_dumper *d, enum probe__trouble kind, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    probe__note_at(d, kind, NULL, text);
}

void probe__give_up(struct probe_dumper *d, const struct ms_err *err)
{
    atomic_store(&d->active, false);
    d->given_up = true;
    if (d->err.rc == MS_OK)
        d->err = *err;
    if (!d->warned)
        ms_warn("step %u is not dumped on: %s", d->step, err->msg);
    d->warned = true;
}

/* ---- the files of a step ---------------------------------------------- */

char *probe__step_dir(const struct probe_dumper *d)
{
    struct ms_buf b = {.max = PATH_MAX};
    ms_buf_printf(&b, "%s/step%u/", d->s.dump_path, d->step);
    if (d->s.rank_known)
        ms_buf_printf(&b, "rank%u", d->s.my_rank);
    else
        ms_buf_printf(&b, "proc%d", (int)getpid());
    ms_buf_z(&b);
    if (b.bad == MS_OK)
        return b.p;
    ms_buf_free(&b);
    return NULL;
}

/* Tells whether this rank is to be dumped. A process without a rank is not, if ranks are chosen;
 * a warning says so once. */
static bool has_chosen_rank(struct probe_dumper *d)
{
    if (d->s.nranks == 0 || d->s.rank_known || d->s.level == PROBE_LEVEL_DEBUG)
        return !d->s.rank_known || probe__has_rank(&d->s, d->s.my_rank);
    if (!d->warned_of_rank)
        ms_warn("rank: this process has none yet, so it is not among those chosen; [] dumps all");
    d->warned_of_rank = true;
    return false;
}

static bool is_chosen(struct probe_dumper *d)
{
    return !d->s.disabled && !d->given_up && d->overflows_left != 0 &&
           probe__has_step(&d->s, d->step) && has_chosen_rank(d);
}

static enum ms_rc open_files(struct probe_dumper *d, struct ms_err *err)
{
    ms_free(d->dir);
    d->dir = probe__step_dir(d);
    if (d->dir == NULL)
        return ms_fail(err, MS_E_LIMIT, "dump_path: too long, or %s", ms_rc_text(MS_E_NOMEM));
    return probe__files_open(&d->files, d->dir, &d->layout, err);
}

bool probe__begin_step(struct probe_dumper *d)
{
    struct ms_err err = {0};
    if (!is_chosen(d))
        return false;
    if (d->files.is_open)
        return true;
    d->troubles = 0;
    if (open_files(d, &err) == MS_OK)
        return true;
    probe__give_up(d, &err);
    return false;
}

/* Flushes elements before records: a record in the file implies that its tensors are written. */
void probe__flush(struct probe_dumper *d)
{
    struct ms_err err = {0};
    enum ms_rc rc = d->spool != NULL ? probe__spool_drain(d->spool, &err) : MS_OK;
    probe__files_flush(&d->files, &err); /* the first failure stays in err */
    if (rc != MS_OK || err.rc != MS_OK)
        probe__give_up(d, &err);
}

static void add_now(void *ctx, struct ms_str text)
{
    struct probe_dumper *d = ctx;
    if (d->files.is_open && !d->given_up && probe__files_add(&d->files, text))
        probe__flush(d);
}

void probe__add_record(struct probe_dumper *d, struct ms_str text, bool is_late)
{
    if (!is_late && !probe__late_any(&d->late))
        add_now(d, text);
    else if (!probe__late_add(&d->late, text))
        probe__give_up(d, &(struct ms_err){.rc = MS_E_NOMEM,
                                           .msg = "no memory for records that wait for a device"});
}

void probe__release_late(struct probe_dumper *d, const struct probe__figure *f, size_t n)
{
    if (probe__late_any(&d->late))
        probe__late_release(&d->late, f, n, add_now, d);
}

void probe__dumper_figures(struct probe_dumper *d, const struct probe__figure *f, size_t n)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    probe__release_late(d, f, n);
    pthread_mutex_unlock(&d->lock);
}

/* ---- tensors that are kept until their record stays ---------------------- */

void probe__free_held(struct probe_dumper *d, struct held **first)
{
    while (*first != NULL) {
        struct held *h = *first;
        *first = h->next;
        atomic_fetch_sub(&d->held, h->bytes);
        ms_free(h);
    }
}

bool probe__stays(struct probe_dumper *d, unsigned epoch, bool is_odd)
{
    if (epoch != d->epoch)
        return false;
    if (d->s.task != PROBE_TASK_OVERFLOW_CHECK)
        return true;
    if (!is_odd || d->overflows_left == 0)
        return false;
    if (d->overflows_left > 0 && --d->overflows_left == 0)
        atomic_store(&d->active, false);
    return true;
}

void probe__release_held(struct probe_dumper *d, struct held *first)
{
    for (struct held *h = first; h != NULL; h = h->next)
        (void)!probe__spool_put(d->spool, d->files.data_dir, h->name, &h->t); /* drain reports */
}
