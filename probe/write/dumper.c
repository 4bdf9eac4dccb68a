/* SPDX-License-Identifier: MIT
 *
 * dumper: opening, steps, ranks, and the files of a step.
 *
 * A step's directory is made when the step is first started.  When something
 * cannot be written the step is given up: nothing more is collected until the
 * next one, which tries again.
 */
#include "probe/dumper_int.h"

#define MS_LOG_DOMAIN "dumper"
#include "probe/base/io.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMORY_DEFAULT ((size_t)256 << 20)

/* ---- processes -------------------------------------------------------- */

static atomic_uint fork_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct probe_dumper *open_dumpers;

static void count_fork(void)
{
    atomic_fetch_add(&fork_count, 1);
}

static void watch_forks(void)
{
    (void)!pthread_atfork(NULL, NULL, count_fork); /* without memory a child is not told apart */
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

static void leave_thread(void *ctx)
{
    struct probe__thread *t = ctx;
    t->module = t->op = NULL;
    __atomic_store_n(&t->in_use, false, __ATOMIC_RELEASE);
}

/* One of a thread that has ended, or a new one. */
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
        leave_thread(t);
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

static void forget_calls(struct probe_dumper *d)
{
    for (size_t i = 0; i < d->called.n; i++) {
        d->called.p[i].calls = d->called.p[i].grads = 0;
        d->called.p[i].owners.n = 0;
    }
    probe__filter_reset(&d->filter);
}

/* ---- trouble ---------------------------------------------------------- */

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

/* Frames of the program, as it knows them itself or as they are found. */
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

/* The first of a step makes the file anew. */
static void write_note(const struct probe_dumper *d, bool is_first, const struct ms_buf *b)
{
    char *path = ms_path_join(d->dir, "dump_error_info.log");
    FILE *f = path != NULL ? fopen(path, is_first ? "we" : "ae") : NULL;
    ms_free(path);
    if (f == NULL)
        return; /* it is information about a failure, not data */
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

static void give_up(struct probe_dumper *d, const struct ms_err *err)
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

/* What a launcher says of the rank of this process. */
static bool rank_of_environment(uint32_t *rank)
{
    static const char *const names[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        uint64_t v;
        if (text != NULL && ms_str_u64(ms_str_of(text), &v) && v <= UINT32_MAX) {
            *rank = (uint32_t)v;
            return true;
        }
    }
    return false;
}

static char *step_dir(const struct probe_dumper *d)
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

/* A process without a rank is none of those chosen; a single one that dumps nothing should say so. */
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
    d->dir = step_dir(d);
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
    give_up(d, &err);
    return false;
}

/* Records are in the file only when their tensors are. */
static void flush(struct probe_dumper *d)
{
    struct ms_err err = {0};
    enum ms_rc rc = d->spool != NULL ? probe__spool_drain(d->spool, &err) : MS_OK;
    probe__files_flush(&d->files, &err); /* the first failure stays in err */
    if (rc != MS_OK || err.rc != MS_OK)
        give_up(d, &err);
}

static void add_now(void *ctx, struct ms_str text)
{
    struct probe_dumper *d = ctx;
    if (d->files.is_open && !d->given_up && probe__files_add(&d->files, text))
        flush(d);
}

void probe__add_record(struct probe_dumper *d, struct ms_str text, bool is_late)
{
    if (!is_late && !probe__late_any(&d->late))
        add_now(d, text);
    else if (!probe__late_add(&d->late, text))
        give_up(d, &(struct ms_err){.rc = MS_E_NOMEM,
                                    .msg = "no memory for records that wait for a device"});
}

/* The lock is held. */
static void release_late(struct probe_dumper *d, const struct probe__figure *f, size_t n)
{
    if (probe__late_any(&d->late))
        probe__late_release(&d->late, f, n, add_now, d);
}

void probe__dumper_figures(struct probe_dumper *d, const struct probe__figure *f, size_t n)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    release_late(d, f, n);
    pthread_mutex_unlock(&d->lock);
}

static void end_step(struct probe_dumper *d)
{
    struct ms_err err = {0};
    release_late(d, NULL, 0);
    probe__put_modules(d);
    if (!d->files.is_open)
        return;
    if (d->given_up) {
        probe__files_abandon(&d->files);
        return;
    }
    if (d->spool != NULL)
        probe__spool_drain(d->spool, &err);
    probe__files_close(&d->files, &err);
    if (err.rc != MS_OK)
        give_up(d, &err);
}

/* ---- steps ------------------------------------------------------------ */

void probe_dumper_start(struct probe_dumper *d)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    if (!d->files.is_open)
        probe__source_look(d);
    if (probe__begin_step(d))
        atomic_store(&d->active, true);
    pthread_mutex_unlock(&d->lock);
}

void probe_dumper_stop(struct probe_dumper *d)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    atomic_store(&d->active, false);
    probe__await_all(d, false);
    pthread_mutex_lock(&d->lock);
    release_late(d, NULL, 0);
    probe__put_modules(d);
    if (d->files.is_open && !d->given_up)
        flush(d);
    pthread_mutex_unlock(&d->lock);
}

void probe_dumper_step(struct probe_dumper *d)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    atomic_store(&d->active, false);
    probe__await_all(d, false);
    pthread_mutex_lock(&d->lock);
    end_step(d);
    forget_calls(d);
    d->given_up = false;
    d->epoch++;
    d->step++;
    pthread_mutex_unlock(&d->lock);
}

void probe_dumper_set_step(struct probe_dumper *d, uint32_t step)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    d->step = step;
    pthread_mutex_unlock(&d->lock);
}

static enum ms_rc rename_dir(struct probe_dumper *d, struct ms_err *err)
{
    char *to = step_dir(d);
    enum ms_rc rc = MS_OK;
    if (to == NULL)
        return ms_no_memory(err);
    if (d->spool != NULL)
        rc = probe__spool_drain(d->spool, err);
    if (rc == MS_OK && rename(d->dir, to) != 0)
        rc = ms_fail_sys(err, "%s: cannot become %s", d->dir, to);
    if (rc == MS_OK)
        rc = probe__files_moved(&d->files, to, err);
    ms_free(d->dir);
    d->dir = to;
    return rc;
}

void probe_dumper_set_rank(struct probe_dumper *d, uint32_t rank)
{
    struct ms_err err = {0};
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    bool was_known = d->s.rank_known;
    d->s.rank_known = true;
    d->s.my_rank = rank;
    if (d->files.is_open && !was_known && rename_dir(d, &err) != MS_OK)
        give_up(d, &err);
    if (!probe__has_rank(&d->s, rank))
        atomic_store(&d->active, false);
    pthread_mutex_unlock(&d->lock);
}

/* ---- life ------------------------------------------------------------- */

static void add_to_list(struct probe_dumper *d)
{
    pthread_mutex_lock(&list_lock);
    d->next = open_dumpers;
    open_dumpers = d;
    pthread_mutex_unlock(&list_lock);
}

static void take_off_list(struct probe_dumper *d)
{
    struct probe_dumper **at = &open_dumpers;
    pthread_mutex_lock(&list_lock);
    while (*at != NULL && *at != d)
        at = &(*at)->next;
    if (*at == d)
        *at = d->next;
    pthread_mutex_unlock(&list_lock);
}

/* A program that ends without closing: what has been collected still goes to the disk, unless a
 * thread is at it right now. */
__attribute__((destructor)) static void flush_at_exit(void)
{
    for (struct probe_dumper *d = open_dumpers; d != NULL; d = d->next) {
        if (!probe__is_own_process(d) || pthread_mutex_trylock(&d->lock) != 0)
            continue;
        atomic_store(&d->active, false);
        pthread_mutex_unlock(&d->lock);
        probe__await_all(d, true);
        if (pthread_mutex_trylock(&d->lock) != 0)
            continue;
        end_step(d);
        pthread_mutex_unlock(&d->lock);
    }
}

static bool keeps_tensors(const struct probe_settings *s)
{
    return s->task == PROBE_TASK_TENSOR || s->task == PROBE_TASK_OVERFLOW_CHECK ||
           s->tensor_list[0] != NULL;
}

static void set_style(struct probe_dumper *d)
{
    const struct probe_settings *s = &d->s;
    d->style = (struct probe__style){.summary = s->summary,
                                     .mindspore = s->framework == PROBE_FW_MINDSPORE,
                                     .bare = s->task == PROBE_TASK_NAN_CHECK,
                                     .all_numbers = s->all_numbers,
                                     .unrounded = s->high_precision};
    d->layout = (struct probe__layout){.task = s->task,
                                       .level = s->level,
                                       .framework = s->framework,
                                       .extra = !s->no_extra && s->level != PROBE_LEVEL_DEBUG,
                                       .tensors = keeps_tensors(s)};
    d->overflows_left = s->task != PROBE_TASK_OVERFLOW_CHECK ? -1
                        : s->overflow_nums != 0              ? s->overflow_nums
                                                             : 1;
}

enum ms_rc probe__adopt(struct probe_dumper *d, const struct probe_settings *s, struct ms_err *err)
{
    struct probe_settings next;
    MS_TRY(probe__settings_copy(&next, s, d->arena, err));
    if (!next.rank_known) {
        next.rank_known = d->s.rank_known;
        next.my_rank = d->s.my_rank;
    }
    if (next.memory_max == 0)
        next.memory_max = MEMORY_DEFAULT;
    if (keeps_tensors(&next) && d->spool == NULL)
        MS_TRY(probe__spool_new(
            &d->spool, next.memory_max,
            next.framework == PROBE_FW_MINDSPORE ? PROBE_FILE_NPY : PROBE_FILE_PT, err));
    d->s = next;
    set_style(d);
    probe__filter_init(&d->filter, &d->s);
    return MS_OK;
}

static enum ms_rc set_up(struct probe_dumper *d, const struct probe_settings *s, struct ms_err *err)
{
    d->modules.max = 1 << 24;
    d->arena = ms_arena_new(SIZE_MAX);
    if (d->arena == NULL)
        return ms_no_memory(err);
    if (!s->rank_known)
        d->s.rank_known = rank_of_environment(&d->s.my_rank);
    return probe__adopt(d, s, err);
}

static void free_all(struct probe_dumper *d)
{
    probe__calls_free(d->all);
    for (struct probe__thread *t = d->threads, *next; t != NULL; t = next) {
        next = t->next;
        ms_free(t);
    }
    for (size_t i = 0; i < d->called.n; i++)
        ms_vec_free(&d->called.p[i].owners);
    ms_vec_free(&d->called);
    ms_map_free(&d->names);
    probe__sites_free(&d->sites);
    probe__late_free(&d->late);
    ms_buf_free(&d->modules);
    probe__files_free(&d->files);
    ms_free(d->dir);
    ms_free(d->source.path);
    ms_free(d->source.over);
    ms_arena_free(d->arena);
    ms_free(d);
}

enum ms_rc probe_dumper_open(struct probe_dumper **out, const struct probe_settings *s,
                             struct ms_err *err)
{
    *out = NULL;
    pthread_once(&once, watch_forks);
    struct probe_dumper *d = ms_calloc(1, sizeof *d);
    if (d == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = set_up(d, s, err);
    if (rc == MS_OK && pthread_key_create(&d->key, leave_thread) != 0)
        rc = ms_fail(err, MS_E_LIMIT, "too many thread-specific keys in this process");
    if (rc != MS_OK) {
        probe__spool_free(d->spool);
        free_all(d);
        return rc;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->forks = atomic_load(&fork_count);
    add_to_list(d);
    *out = d;
    return MS_OK;
}

enum ms_rc probe_dumper_load(struct probe_dumper **d, const char *path, struct ms_err *err)
{
    struct probe_settings *s;
    *d = NULL;
    MS_TRY(probe_settings_load(&s, path, err));
    enum ms_rc rc = probe_dumper_open(d, s, err);
    if (rc == MS_OK && s->is_watched)
        probe__source_set(*d, path, MS_STR(""));
    probe_settings_free(s);
    return rc;
}

enum ms_rc probe_dumper_close(struct probe_dumper *d, struct ms_err *err)
{
    if (d == NULL)
        return MS_OK;
    take_off_list(d);
    if (probe__is_own_process(d)) {
        atomic_store(&d->active, false);
        probe__calls_forget(d->all);
        probe__await_all(d, false);
        probe__await_free(d->await, false);
        end_step(d);
        probe__spool_free(d->spool);
    } else {
        probe__await_free(d->await, true);
        if (d->files.is_open)
            probe__files_abandon(&d->files);
        probe__spool_abandon(d->spool);
    }
    pthread_key_delete(d->key);
    struct ms_err first = d->err;
    free_all(d);
    if (first.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    return first.rc;
}
