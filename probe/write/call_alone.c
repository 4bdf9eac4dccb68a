/* SPDX-License-Identifier: MIT
 *
 * call_alone: gradients of parameters and values saved by hand: records that belong to no thread
 * and are never parents.
 */
#include "probe/write/call_struct.h"

#include "probe/base/num.h"

/* Takes a call that belongs to no thread. */
static struct probe_call *begin_alone(struct probe_dumper *d, enum probe_dir dir)
{
    struct probe__thread *t = probe__thread_of(d);
    struct probe_call *c = t != NULL ? probe__take_call(d, t) : NULL;
    if (c == NULL)
        return NULL;
    c->kind = PROBE__SAVED;
    c->dir = dir;
    c->thread = NULL;
    c->part = c->is_nan = -1;
    c->is_wanted = false;
    c->parts = PROBE_DATA_INPUT | PROBE_DATA_OUTPUT;
    return c;
}

/* Names the record "Module.fc.Linear.parameters_grad.0"; the lock is held. false: filtered out. */
static bool name_grads(struct probe_call *c, const char *path, const char *class_name)
{
    struct probe_dumper *d = c->d;
    bool added;
    char digits[MS_NUM_MAX];
    struct ms_str key = probe__put_key(
        &c->name, &(struct probe__entry){
                      .prefix = probe__module_prefix(d), .name = path, .class_name = class_name});
    uint32_t at = d->files.is_open ? probe__called_index(d, key, &added) : MS_MAP_NONE;
    if (at == MS_MAP_NONE)
        return false;
    ms_buf_puts(&c->name, ".parameters_grad.");
    ms_buf_put(&c->name, digits, ms_num_u64(digits, d->called.p[at].grads++));
    ms_buf_z(&c->name);
    c->epoch = d->epoch;
    return c->name.bad == MS_OK && probe__scope_has_grads(c, d->called.p[at].has_backward) &&
           d->s.task != PROBE_TASK_STRUCTURE && d->s.task != PROBE_TASK_NAN_CHECK;
}

struct probe_call *probe__begin_grads(struct probe_dumper *d, const char *path,
                                      const char *class_name)
{
    if (!probe__is_mine(d) || !probe__has_level(d, PROBE__MODULE) ||
        (!probe__has_data(&d->s, PROBE_BACKWARD, PROBE_DATA_INPUT) &&
         !probe__has_data(&d->s, PROBE_BACKWARD, PROBE_DATA_OUTPUT)))
        return NULL;
    struct probe_call *c = begin_alone(d, PROBE_BACKWARD);
    if (c == NULL)
        return NULL;
    pthread_mutex_lock(&d->lock);
    c->is_wanted = name_grads(c, path, class_name);
    pthread_mutex_unlock(&d->lock);
    if (!c->is_wanted) {
        probe_call_exit(c);
        return NULL;
    }
    probe__call_keep_files(c);
    probe__record_begin(&c->record, ms_buf_slice(&c->name));
    c->record.pgrad = true;
    return c;
}

void probe_parameters_grad(struct probe_dumper *d, const char *path, const char *class_name,
                           const struct probe_value *grads, size_t n)
{
    struct probe_call *c = probe__begin_grads(d, path, class_name);
    for (size_t i = 0; c != NULL && i < n; i++) {
        struct probe_value leaf = grads[i];
        leaf.key = NULL;
        probe__put_value(c, &(struct probe_value){
                                .kind = PROBE_LIST, .items = &leaf, .n = 1, .key = grads[i].key});
    }
    probe_call_exit(c);
}

/* Names the record "loss.0.debug". A negative *number is replaced by the next free one. The lock
 * is held. */
static bool name_saved(struct probe_call *c, const char *name, bool is_grad, int64_t *number)
{
    struct probe_dumper *d = c->d;
    bool added;
    char digits[MS_NUM_MAX];
    ms_buf_clear(&c->name);
    ms_buf_puts(&c->name, name);
    ms_buf_puts(&c->name, is_grad ? "_grad" : "");
    uint32_t at =
        probe__begin_step(d) ? probe__called_index(d, ms_buf_slice(&c->name), &added) : MS_MAP_NONE;
    if (at == MS_MAP_NONE)
        return false;
    ms_buf_putc(&c->name, '.');
    if (*number < 0)
        *number = d->called.p[at].calls++;
    ms_buf_put(&c->name, digits, ms_num_i64(digits, *number));
    ms_buf_puts(&c->name, ".debug");
    ms_buf_z(&c->name);
    c->epoch = d->epoch;
    return c->name.bad == MS_OK;
}

struct probe_call *probe__begin_saved(struct probe_dumper *d, const char *name, bool is_grad,
                                      int64_t *number)
{
    if (d == NULL || d->s.level != PROBE_LEVEL_DEBUG || !probe__is_own_process(d))
        return NULL;
    struct probe_call *c = begin_alone(d, is_grad ? PROBE_BACKWARD : PROBE_FORWARD);
    if (c == NULL)
        return NULL;
    pthread_mutex_lock(&d->lock);
    c->is_wanted = name_saved(c, name, is_grad, number);
    pthread_mutex_unlock(&d->lock);
    if (!c->is_wanted) {
        probe_call_exit(c);
        return NULL;
    }
    probe__call_keep_files(c);
    probe__record_begin_value(&c->record, ms_buf_slice(&c->name));
    return c;
}

static void save_value(struct probe_dumper *d, const char *name, const struct probe_value *v,
                       bool is_grad)
{
    int64_t number = -1;
    struct probe_call *c = probe__begin_saved(d, name, is_grad, &number);
    struct probe_value value = *v;
    if (c == NULL)
        return;
    value.key = NULL;
    probe__put_value(c, &value);
    probe_call_exit(c);
}

void probe_save(struct probe_dumper *d, const char *name, const struct probe_value *v)
{
    save_value(d, name, v, false);
}

void probe_save_grad(struct probe_dumper *d, const char *name, const struct probe_value *v)
{
    save_value(d, name, v, true);
}
