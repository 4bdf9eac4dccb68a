/* SPDX-License-Identifier: MIT
 *
 * dumper: opening, steps, ranks, and settings that change while the program runs.
 *
 * A step's directory is made when the step is first started. When a file cannot be written the step
 * is given up: nothing more is collected until the next step, which tries again.
 */
#include "probe/write/dumper_state.h"

#define MS_LOG_DOMAIN "dumper"
#include "probe/base/clock.h"
#include "probe/base/io.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/write/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_DEFAULT ((size_t)256 << 20)
enum { FILE_MAX = 1 << 20 };
#define WHILE_ON_NS  INT64_C(500000000)
#define WHILE_OFF_NS INT64_C(3000000000)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct probe_dumper *open_dumpers;

/* ---- settings --------------------------------------------------------- */

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

/* Makes a relative dump_path absolute: the program may change its directory later. The directory
 * is that of the first settings; where it has no name, the path stays as it is. */
static enum ms_rc fix_dump_path(struct probe_dumper *d, struct probe_settings *s,
                                struct ms_err *err)
{
    char here[PATH_MAX];
    if (s->dump_path[0] == '/')
        return MS_OK;
    if (d->home == NULL && getcwd(here, sizeof here) == NULL)
        return MS_OK;
    if (d->home == NULL)
        d->home = ms_arena_str(d->arena, ms_str_of(here)).p;
    bool is_dotted = strncmp(s->dump_path, "./", 2) == 0;
    char *path = d->home != NULL ? ms_path_join(d->home, s->dump_path + (is_dotted ? 2 : 0)) : NULL;
    if (path == NULL)
        return ms_fail(err, MS_E_NOMEM, "dump_path: %s", ms_rc_text(MS_E_NOMEM));
    s->dump_path = ms_arena_str(d->arena, ms_str_of(path)).p;
    ms_free(path);
    return s->dump_path != NULL ? MS_OK
                                : ms_fail(err, MS_E_NOMEM, "dump_path: %s", ms_rc_text(MS_E_NOMEM));
}

/* Puts new settings into effect; the lock is held and no step is open. */
static enum ms_rc adopt_settings(struct probe_dumper *d, const struct probe_settings *s,
                                 struct ms_err *err)
{
    struct probe_settings next;
    MS_TRY(probe__settings_copy(&next, s, d->arena, err));
    MS_TRY(fix_dump_path(d, &next, err));
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

/* ---- the file of the settings --------------------------------------------
 * A config.json with the key dump_enable is polled while the program runs, so that a dump can be
 * switched on and off, or reconfigured, from outside. A file that cannot be read switches the
 * dump off. */

/* Tells whether the file has changed since the last look. */
static bool has_changed(struct probe__source *source)
{
    struct stat st;
    if (stat(source->path, &st) != 0)
        return false; /* removed and not yet replaced */
    int64_t changed = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    bool is_other = changed != source->changed_ns || (uint64_t)st.st_size != source->size;
    source->changed_ns = changed;
    source->size = (uint64_t)st.st_size;
    return is_other;
}

void probe__source_set(struct probe_dumper *d, const char *path, struct ms_str over)
{
    d->source.over = ms_str_dup(over);
    if (d->source.over != NULL)
        d->source.path = ms_str_dup(ms_str_of(path)); /* out of memory: the file is not polled */
    if (d->source.path != NULL)
        has_changed(&d->source);
}

static enum ms_rc read_again(struct probe_dumper *d, struct ms_err *err)
{
    struct probe_settings *s;
    struct ms_file f;
    MS_TRY(ms_file_map(&f, d->source.path, FILE_MAX, err));
    enum ms_rc rc =
        probe__settings_parse_over(&s, d->source.path, f.p, f.n, ms_str_of(d->source.over), err);
    ms_file_unmap(&f);
    MS_TRY(rc);
    if (!s->is_watched) /* the key is gone: the switch keeps its state */
        s->disabled = d->s.disabled;
    rc = adopt_settings(d, s, err);
    probe_settings_free(s);
    return rc;
}

static void look_at_source(struct probe_dumper *d)
{
    struct ms_err err = {0};
    int64_t now = ms_clock_ns();
    if (d->source.path == NULL ||
        now - d->source.looked_ns < (d->s.disabled ? WHILE_OFF_NS : WHILE_ON_NS))
        return;
    d->source.looked_ns = now;
    if (!has_changed(&d->source))
        return;
    if (read_again(d, &err) == MS_OK)
        return;
    ms_warn("nothing is dumped until it is mended: %s", err.msg);
    d->s.disabled = true;
}

/* ---- steps ------------------------------------------------------------ */

static void end_step(struct probe_dumper *d)
{
    struct ms_err err = {0};
    probe__release_late(d, NULL, 0);
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
        probe__give_up(d, &err);
}

void probe_dumper_start(struct probe_dumper *d)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    if (!d->files.is_open)
        look_at_source(d);
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
    probe__release_late(d, NULL, 0);
    probe__put_modules(d);
    if (d->files.is_open && !d->given_up)
        probe__flush(d);
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
    probe__forget_calls(d);
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

void probe__dumper_request(struct probe_dumper *d, uint64_t begin, uint64_t end, uint64_t size)
{
    if (d == NULL || !probe__is_own_process(d))
        return;
    pthread_mutex_lock(&d->lock);
    d->has_request = size != 0;
    d->request = (struct probe_slice){.has_end = true,
                                      .has_size = true,
                                      .begin = (int64_t)begin,
                                      .end = (int64_t)end,
                                      .size = size};
    pthread_mutex_unlock(&d->lock);
}

static enum ms_rc rename_dir(struct probe_dumper *d, struct ms_err *err)
{
    char *to = probe__step_dir(d);
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
        probe__give_up(d, &err);
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

/* Flushes all open dumpers when the program ends without closing them, except one whose lock is
 * held by a thread at that moment. */
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

/* Reads the rank of this process from the variables that launchers set. */
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

static enum ms_rc set_up(struct probe_dumper *d, const struct probe_settings *s, struct ms_err *err)
{
    d->modules.max = 1 << 24;
    d->arena = ms_arena_new(SIZE_MAX);
    if (d->arena == NULL)
        return ms_no_memory(err);
    if (!s->rank_known)
        d->s.rank_known = rank_of_environment(&d->s.my_rank);
    return adopt_settings(d, s, err);
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
    struct probe_dumper *d = ms_calloc(1, sizeof *d);
    if (d == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = set_up(d, s, err);
    if (rc == MS_OK && pthread_key_create(&d->key, probe__leave_thread) != 0)
        rc = ms_fail(err, MS_E_LIMIT, "too many thread-specific keys in this process");
    if (rc != MS_OK) {
        probe__spool_free(d->spool);
        free_all(d);
        return rc;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->forks = probe__fork_count();
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
