/* SPDX-License-Identifier: MIT
 *
 * call: modules and operators while they run.
 *
 * Entering a call makes its name, counts it, asks the filter, and notes parent and stack, all under
 * the dumper's lock. Values are described without the lock, in the call's own record. Leaving the
 * call hands the text over. A call that the filter rejects has a handle all the same, because it is
 * counted and may be the parent of others. Handles are reused, so a program in steady state
 * allocates nothing.
 */
#include "probe/write/call_struct.h"

#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/tensor/tensor.h"

/* ---- calls and threads ------------------------------------------------ */

static struct probe_call *new_call(struct probe_dumper *d)
{
    struct probe_call *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->d = d;
    c->name.max = 1 << 16;
    probe__record_init(&c->record, &d->style);
    c->record.ctx = c;
    pthread_mutex_lock(&d->lock);
    c->all = d->all;
    d->all = c;
    pthread_mutex_unlock(&d->lock);
    return c;
}

void probe__calls_forget(struct probe_call *all)
{
    for (struct probe_call *c = all; c != NULL; c = c->all) {
        if (c->waiting != NULL)
            probe__await_drop(c->d, c->waiting);
        c->waiting = NULL;
    }
}

void probe__calls_free(struct probe_call *all)
{
    while (all != NULL) {
        struct probe_call *c = all;
        all = c->all;
        probe__free_held(c->d, &c->held);
        probe__record_free(&c->record);
        ms_buf_free(&c->name);
        ms_free(c);
    }
}

struct probe_call *probe__take_call(struct probe_dumper *d, struct probe__thread *t)
{
    struct probe_call *c = t->spare;
    if (c != NULL)
        t->spare = c->next;
    else
        c = new_call(d);
    return c;
}

static void give_call_back(struct probe_call *c)
{
    struct probe__thread *t = probe__thread_of(c->d);
    probe__free_held(c->d, &c->held);
    if (c->waiting != NULL)
        probe__await_drop(c->d, c->waiting);
    c->waiting = NULL;
    probe__record_drop(&c->record);
    c->uses++;
    if (t == NULL)
        return; /* freed with the dumper */
    c->next = t->spare;
    t->spare = c;
}

/* Tells whether a call belongs to this process; calls open at a fork belong to the parent alone. */
static bool is_live(const struct probe_call *c)
{
    return c != NULL && probe__is_own_process(c->d);
}

/* ---- entering --------------------------------------------------------- */

static uint32_t name_stack(void *ctx, const char *const *frames, unsigned n)
{
    struct probe_dumper *d = ctx;
    return probe__stack_group(&d->files.stack, frames, n, NULL);
}

static uint32_t group_of_place(struct probe_dumper *d, struct probe__place *place)
{
    if (place->group == MS_MAP_NONE)
        place->group = name_stack(d, place->frames, place->n);
    return place->group;
}

static void note_stack(struct probe_call *c, const struct probe__trail *walked,
                       const struct probe__entry *e)
{
    struct probe_dumper *d = c->d;
    uint32_t group = e->place != NULL ? group_of_place(d, e->place)
                                      : probe__site_id(&d->sites, walked, e->frame, name_stack, d);
    if (group != MS_MAP_NONE) /* else out of memory, and the node has no stack */
        (void)!probe__stack_add(&d->files.stack, ms_buf_slice(&c->name), group, NULL);
}

/* Counts the call and completes its name. */
static bool count_call(struct probe_call *c, const struct probe__entry *e)
{
    struct probe_dumper *d = c->d;
    bool added;
    struct ms_str key = probe__put_key(&c->name, e);
    uint32_t at = probe__called_index(d, key, &added);
    if (at == MS_MAP_NONE)
        return false;
    struct probe__called *called = &d->called.p[at];
    if (added && e->kind == PROBE__OP)
        called->is_hidden =
            probe__filter_hides(&d->filter, ms_str_of(e->prefix), ms_str_of(e->name));
    c->number = e->dir == PROBE_BACKWARD ? e->number : (int64_t)called->calls++;
    c->self = (struct probe__owner){at, (uint32_t)c->number};
    if (e->kind != PROBE__ROOT)
        probe__put_number(&c->name, e->kind == PROBE__MODULE, e->dir, c->number);
    ms_buf_z(&c->name);
    return c->name.bad == MS_OK;
}

/* Names, counts and filters the call; the lock is held. */
static bool is_admitted(struct probe_call *c, const struct probe__entry *e, struct probe__thread *t,
                        const struct probe__trail *walked)
{
    struct probe_dumper *d = c->d;
    if (!d->files.is_open || d->given_up || !count_call(c, e))
        return false;
    probe__put_parent(c, t, e->is_loose);
    if (e->dir == PROBE_FORWARD)
        probe__note_owner(c, t);
    c->epoch = d->epoch;
    c->ends_first = e->ends_first;
    c->is_wanted =
        e->kind != PROBE__ROOT && probe__scope_enter(c) && !d->called.p[c->self.name].is_hidden;
    if (c->is_wanted && e->dir == PROBE_FORWARD && d->layout.extra &&
        (c->parts & PROBE_DATA_INPUT) != 0)
        note_stack(c, walked, e);
    return true;
}

static bool save_tensor(void *ctx, const char *name, const struct probe_tensor *t);

/* Tells whether tensors of this call are written to files; of other calls only statistics are
 * kept. */
static bool keeps_files(const struct probe_call *c)
{
    const struct probe_settings *s = &c->d->s;
    return s->task == PROBE_TASK_TENSOR || s->task == PROBE_TASK_OVERFLOW_CHECK ||
           probe__mentions(s->tensor_list, ms_buf_slice(&c->name));
}

void probe__call_keep_files(struct probe_call *c)
{
    c->record.save = keeps_files(c) ? save_tensor : NULL;
}

/* Tells whether the settings want this part of records, whatever the scope. */
static bool is_asked_for(const struct probe_call *c, enum probe_data part)
{
    return probe__has_data(&c->d->s, c->dir, part);
}

static bool has_part(struct probe_call *c, enum probe_data part)
{
    if (!is_asked_for(c, part))
        return false;
    if (part == PROBE_DATA_OUTPUT || c->dir == PROBE_BACKWARD)
        probe__scope_turn(c);
    return (c->parts & part) != 0;
}

/* Tells whether the record of this call has the given section. */
static bool has_place(struct probe_call *c, int part)
{
    static const struct {
        enum probe_dir dir; /* NONE: both */
        enum probe_data data;
        bool of_modules;
    } rules[] = {[PROBE_SEC_INPUT_ARGS] = {PROBE_FORWARD, PROBE_DATA_INPUT, false},
                 [PROBE_SEC_INPUT_KWARGS] = {PROBE_FORWARD, PROBE_DATA_INPUT, false},
                 [PROBE_SEC_INPUT] = {PROBE_BACKWARD, PROBE_DATA_INPUT, false},
                 [PROBE_SEC_OUTPUT] = {PROBE_DIR_NONE, PROBE_DATA_OUTPUT, false},
                 [PROBE_SEC_PARAMETERS] = {PROBE_FORWARD, PROBE_DATA_OUTPUT, true}};
    return (rules[part].dir == PROBE_DIR_NONE || rules[part].dir == c->dir) &&
           (!rules[part].of_modules || c->kind == PROBE__MODULE) && has_part(c, rules[part].data);
}

/* Writes the sections before `part` that are still missing, as empty ones. */
static void pass_parts(struct probe_call *c, int part)
{
    while (c->part + 1 < part) {
        if (has_place(c, ++c->part))
            probe__record_empty_section(&c->record, (enum probe_section)c->part);
    }
}

static void open_part(struct probe_call *c, int part)
{
    pass_parts(c, part);
    if (c->part < part)
        probe__record_section(&c->record, (enum probe_section)(c->part = part));
}

static void begin_record(struct probe_call *c)
{
    c->part = -1;
    c->is_nan = -1;
    c->has_failed = false;
    if (c->d->s.task == PROBE_TASK_STRUCTURE ||
        (!is_asked_for(c, PROBE_DATA_INPUT) && !is_asked_for(c, PROBE_DATA_OUTPUT)))
        c->is_wanted = false; /* the record would be empty */
    if (!c->is_wanted)
        return;
    probe__call_keep_files(c);
    probe__record_begin(&c->record, ms_buf_slice(&c->name));
}

/* Tells whether calls of this kind are collected at the dumper's level. */
bool probe__has_level(const struct probe_dumper *d, enum probe__call_kind kind)
{
    switch (d->s.level) {
    case PROBE_LEVEL_L0:
        return kind == PROBE__MODULE;
    case PROBE_LEVEL_L1:
        return kind == PROBE__OP;
    case PROBE_LEVEL_MIX:
        return true;
    case PROBE_LEVEL_DEBUG:
        break;
    }
    return false;
}

static void push(struct probe_call *c, struct probe__thread *t)
{
    c->thread = t;
    c->outer = NULL;
    if (c->kind == PROBE__OP) {
        t->op = c;
    } else {
        c->outer = t->module;
        t->module = c;
    }
}

/* Drops calls that an earlier step left open because a call inside them failed. */
static void forget_stale(const struct probe_dumper *d, struct probe__thread *t)
{
    while (t->module != NULL && t->module->epoch != d->epoch) {
        struct probe_call *stale = t->module;
        t->module = stale->outer;
        give_call_back(stale);
    }
    if (t->op != NULL && t->op->epoch != d->epoch) {
        give_call_back(t->op);
        t->op = NULL;
    }
}

bool probe__may_enter(struct probe_dumper *d, enum probe__call_kind kind)
{
    if (!probe__is_mine(d) || !probe__has_level(d, kind))
        return false;
    struct probe__thread *t = probe__thread_of(d);
    return t != NULL && t->hidden == 0 && (t->op == NULL || t->op->epoch != d->epoch);
}

void probe__hide(struct probe_dumper *d, int by)
{
    struct probe__thread *t = d != NULL && probe__is_own_process(d) ? probe__thread_of(d) : NULL;
    if (t != NULL)
        t->hidden += by;
}

static bool finish_record(struct probe_call *c, struct ms_str *text);
static void hand_over(struct probe_call *c, struct ms_str text);

/* Writes the record of an open module before its first inner call, when its outputs are not
 * wanted and its record is therefore complete. */
static void put_early(struct probe_call *c)
{
    struct ms_str text;
    if (c == NULL || !c->is_wanted || c->kind != PROBE__MODULE || c->dir != PROBE_FORWARD ||
        is_asked_for(c, PROBE_DATA_OUTPUT) || c->d->filter.is_strict)
        return;
    if (finish_record(c, &text)) {
        pthread_mutex_lock(&c->d->lock);
        hand_over(c, text);
        pthread_mutex_unlock(&c->d->lock);
    }
    c->is_wanted = false;
}

struct probe_call *probe__enter(struct probe_dumper *d, const struct probe__entry *e)
{
    struct probe__trail walked;
    walked.n = 0;
    if (!probe__is_mine(d) || !probe__has_level(d, e->kind) ||
        (e->dir == PROBE_BACKWARD && e->number < 0))
        return NULL;
    struct probe__thread *t = probe__thread_of(d);
    if (t == NULL)
        return NULL;
    forget_stale(d, t);
    struct probe_call *c = t->op == NULL ? probe__take_call(d, t) : NULL;
    if (c == NULL)
        return NULL;
    put_early(t->module);
    c->kind = e->kind;
    c->dir = e->dir;
    c->tag = e->tag;
    if (d->layout.extra && e->dir == PROBE_FORWARD && e->place == NULL)
        probe__trail_walk(&walked, e->frame, &t->stack);
    pthread_mutex_lock(&d->lock);
    bool is_in = is_admitted(c, e, t, &walked);
    pthread_mutex_unlock(&d->lock);
    if (!is_in) {
        give_call_back(c);
        return NULL;
    }
    push(c, t);
    begin_record(c);
    return c;
}

struct probe_call *probe_module_enter(struct probe_dumper *d, const char *path,
                                      const char *class_name)
{
    if (d == NULL)
        return NULL;
    return probe__enter(d, &(struct probe__entry){.kind = PROBE__MODULE,
                                                  .dir = PROBE_FORWARD,
                                                  .prefix = probe__module_prefix(d),
                                                  .name = path,
                                                  .class_name = class_name,
                                                  .frame = __builtin_frame_address(0)});
}

struct probe_call *probe_module_enter_backward(struct probe_dumper *d, const char *path,
                                               const char *class_name, int64_t call)
{
    if (d == NULL)
        return NULL;
    return probe__enter(d, &(struct probe__entry){.kind = PROBE__MODULE,
                                                  .dir = PROBE_BACKWARD,
                                                  .prefix = probe__module_prefix(d),
                                                  .name = path,
                                                  .class_name = class_name,
                                                  .number = call});
}

struct probe_call *probe_op_enter(struct probe_dumper *d, const char *prefix, const char *name)
{
    return probe__enter(d, &(struct probe__entry){.kind = PROBE__OP,
                                                  .dir = PROBE_FORWARD,
                                                  .prefix = prefix,
                                                  .name = name,
                                                  .frame = __builtin_frame_address(0)});
}

struct probe_call *probe_op_enter_backward(struct probe_dumper *d, const char *prefix,
                                           const char *name, int64_t call)
{
    return probe__enter(d, &(struct probe__entry){.kind = PROBE__OP,
                                                  .dir = PROBE_BACKWARD,
                                                  .prefix = prefix,
                                                  .name = name,
                                                  .number = call});
}

struct probe_call *probe_root_enter(struct probe_dumper *d, const char *name)
{
    return probe__enter(
        d, &(struct probe__entry){.kind = PROBE__ROOT, .dir = PROBE_DIR_NONE, .name = name});
}

struct probe_call *probe__open_module(struct probe_dumper *d, const void *tag)
{
    struct probe__thread *t = d != NULL && probe__is_own_process(d) ? probe__thread_of(d) : NULL;
    struct probe_call *c = t != NULL ? t->module : NULL;
    while (c != NULL && (c->tag != tag || c->epoch != d->epoch))
        c = c->outer;
    return c;
}

bool probe__in_module(struct probe_dumper *d)
{
    struct probe__thread *t = d != NULL && probe__is_own_process(d) ? probe__thread_of(d) : NULL;
    return t != NULL && t->module != NULL && t->module->epoch == d->epoch;
}

uint64_t probe__call_uses(const struct probe_call *c)
{
    return c != NULL ? c->uses : 0;
}

unsigned probe__epoch(const struct probe_dumper *d)
{
    return d->epoch;
}

int64_t probe_call_number(const struct probe_call *c)
{
    return c != NULL ? c->number : -1;
}

/* ---- files of tensors ------------------------------------------------- */

/* Copies a tensor until the end of the record decides whether its file is written. */
static bool hold_tensor(struct probe_call *c, const char *name, const struct probe_tensor *t)
{
    struct probe_dumper *d = c->d;
    const size_t limit = d->s.memory_max;
    size_t name_n = (strlen(name) + 64) / 64 * 64;
    size_t bytes;
    if (!ms_mul_size(t->count, ms_dtype_size(t->dtype), &bytes) ||
        !ms_add_size(bytes, sizeof(struct held) + name_n, &bytes) || bytes > limit)
        return false;
    bool has_room = atomic_fetch_add(&d->held, bytes) <= limit - bytes;
    struct held *h = has_room ? ms_alloc(bytes) : NULL;
    if (h == NULL) {
        atomic_fetch_sub(&d->held, bytes);
        return false;
    }
    char *elements = h->name + name_n;
    memcpy(h->name, name, strlen(name) + 1);
    h->t = *t;
    h->t.contiguous = true;
    h->t.data = elements;
    h->bytes = bytes;
    h->next = c->held;
    c->held = h;
    const void *p = probe_tensor_elements(t, 0, t->count, elements);
    if (p != elements)
        memcpy(elements, p, t->count * ms_dtype_size(t->dtype));
    return true;
}

static bool save_tensor(void *ctx, const char *name, const struct probe_tensor *t)
{
    struct probe_call *c = ctx;
    struct probe_dumper *d = c->d;
    if (probe_tensor_is_endless(t)) {
        probe__note(d, PROBE__NO_FILE, "no file for %s: an expanded tensor of more than 1 GiB",
                    name);
        return false;
    }
    bool taken = d->s.task == PROBE_TASK_OVERFLOW_CHECK
                     ? hold_tensor(c, name, t)
                     : probe__spool_put(d->spool, d->files.data_dir, name, t);
    if (!taken)
        probe__note(d, PROBE__NO_FILE, "no file for %s: no memory or no room on the disk", name);
    return taken;
}

/* ---- values ----------------------------------------------------------- */

void probe__call_tensor(struct probe_call *c, const char *key, struct probe_tensor *t,
                        const struct probe__leaf_as *as)
{
    const struct probe_dumper *d = c->d;
    probe__slice(&d->s, d->has_request ? &d->request : NULL, t);
    const enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    if (d->s.task == PROBE_TASK_NAN_CHECK && c->part == PROBE_SEC_OUTPUT && t->data != NULL &&
        (kind == MS_DTK_FLOAT || kind == MS_DTK_COMPLEX) && c->is_nan != 1)
        c->is_nan = probe__is_odd(t);
    probe__record_tensor(&c->record, key, t, as);
}

/* Tells whether the elements are needed; dtype and shape are known without them. */
static bool needs_elements(const struct probe_call *c)
{
    return c->d->s.task != PROBE_TASK_NAN_CHECK || c->part == PROBE_SEC_OUTPUT ||
           c->record.save != NULL;
}

static void await_tensor(struct probe_call *c, const struct probe_value *v, struct probe_tensor *t)
{
    probe__slice(&c->d->s, c->d->has_request ? &c->d->request : NULL, t);
    if (t->count == 0)
        probe__record_tensor(&c->record, v->key, t,
                             &(struct probe__leaf_as){.requires_grad = v->tensor->requires_grad});
    else if (!probe__await_tensor(c, &c->waiting, v->key, t, v->tensor))
        probe__record_fail(&c->record, MS_E_NOMEM, "no memory for what comes from a device");
}

static void put_tensor(struct probe_call *c, const struct probe_value *v)
{
    struct probe_dumper *d = c->d;
    struct probe_tensor t;
    struct ms_err err = {0};
    if (probe__describe(v->tensor, &t, &err) != MS_OK) {
        probe__note(d, PROBE__BAD_VALUE, "%s: a tensor is left out: %s", ms_buf_z(&c->name),
                    err.msg);
        probe__record_none(&c->record, v->key);
        return;
    }
    if (v->tensor->stream != NULL && t.count != 0 && needs_elements(c)) {
        await_tensor(c, v, &t);
        return;
    }
    probe__call_tensor(c, v->key, &t,
                       &(struct probe__leaf_as){.requires_grad = v->tensor->requires_grad});
}

void probe__put_value(struct probe_call *c, const struct probe_value *v)
{
    struct probe__record *r = &c->record;
    switch (v->kind) {
    case PROBE_NONE:
        probe__record_none(r, v->key);
        break;
    case PROBE_TENSOR:
        put_tensor(c, v);
        break;
    case PROBE_INT:
        probe__record_int(r, v->key, v->i);
        break;
    case PROBE_FLOAT:
        probe__record_float(r, v->key, v->f);
        break;
    case PROBE_BOOL:
        probe__record_bool(r, v->key, v->b);
        break;
    case PROBE_STR:
        probe__record_str(r, v->key, v->s);
        break;
    case PROBE_LIST:
    case PROBE_DICT:
        probe__record_open(r, v->key, v->kind == PROBE_LIST);
        for (size_t i = 0; i < v->n && r->json.err.rc == MS_OK; i++)
            probe__put_value(c, &v->items[i]);
        probe__record_close(r, v->kind == PROBE_LIST);
        break;
    }
}

bool probe__call_has(struct probe_call *c, enum probe_section section)
{
    return is_live(c) && c->is_wanted && has_place(c, (int)section);
}

struct probe__record *probe__call_part(struct probe_call *c, enum probe_section section)
{
    if (!probe__call_has(c, section))
        return NULL;
    open_part(c, (int)section);
    return c->part == (int)section ? &c->record : NULL;
}

struct probe__record *probe__call_record(struct probe_call *c)
{
    return &c->record;
}

static void put_into(struct probe_call *c, enum probe_section section, const struct probe_value *v)
{
    open_part(c, section);
    if (c->part == (int)section)
        probe__put_value(c, v);
    else
        probe__note(c->d, PROBE__OUT_OF_ORDER, "%s: a value came after those that follow it",
                    ms_buf_z(&c->name));
}

void probe_call_input(struct probe_call *c, const struct probe_value *v)
{
    if (!is_live(c) || !c->is_wanted || !has_part(c, PROBE_DATA_INPUT))
        return;
    if (c->dir == PROBE_BACKWARD)
        put_into(c, PROBE_SEC_INPUT, v);
    else
        put_into(c, v->key == NULL ? PROBE_SEC_INPUT_ARGS : PROBE_SEC_INPUT_KWARGS, v);
}

void probe_call_output(struct probe_call *c, const struct probe_value *v)
{
    if (is_live(c) && c->is_wanted && has_part(c, PROBE_DATA_OUTPUT))
        put_into(c, PROBE_SEC_OUTPUT, v);
}

void probe_call_parameter(struct probe_call *c, const struct probe_value *v)
{
    if (is_live(c) && c->is_wanted && c->kind == PROBE__MODULE && c->dir == PROBE_FORWARD &&
        has_part(c, PROBE_DATA_OUTPUT))
        put_into(c, PROBE_SEC_PARAMETERS, v);
}

/* ---- leaving ---------------------------------------------------------- */

/* Ends a call and drops its record. */
static void abandon_call(struct probe_call *c)
{
    pthread_mutex_lock(&c->d->lock);
    probe__scope_leave(c);
    pthread_mutex_unlock(&c->d->lock);
    give_call_back(c);
}

/* Removes a module from the thread's chain of open modules; modules inside it stay open. */
static void unlink_module(struct probe__thread *t, const struct probe_call *c)
{
    struct probe_call **at = &t->module;
    while (*at != NULL && *at != c)
        at = &(*at)->outer;
    if (*at != NULL)
        *at = c->outer;
}

/* Removes the call, and all calls left open inside it, from its thread. */
static void pop(struct probe_call *c)
{
    struct probe__thread *t = c->thread;
    if (t == NULL)
        return;
    if (t->op != NULL) { /* c itself, or an operator inside c */
        struct probe_call *op = t->op;
        t->op = NULL;
        if (op == c)
            return;
        probe__note(c->d, PROBE__LEFT_OPEN, "%s: was entered and not left", ms_buf_z(&op->name));
        abandon_call(op);
    }
    if (c->ends_first) {
        unlink_module(t, c);
        return;
    }
    while (t->module != NULL && t->module != c) {
        struct probe_call *inner = t->module;
        t->module = inner->outer;
        probe__note(c->d, PROBE__LEFT_OPEN, "%s: was entered and not left", ms_buf_z(&inner->name));
        abandon_call(inner);
    }
    if (t->module == c)
        t->module = c->outer;
}

void probe_call_detach(struct probe_call *c)
{
    if (!is_live(c) || c->kind != PROBE__OP || c->thread == NULL)
        return;
    c->thread->op = NULL;
    c->thread = NULL;
}

static void put_is_nan(struct probe_call *c)
{
    struct ms_jwrite *json = &c->record.json;
    probe__record_section_end(&c->record);
    ms_jwrite_key(json, MS_STR("is_nan"));
    if (c->waiting != NULL)
        probe__await_is_nan(&c->record);
    else if (c->is_nan < 0)
        ms_jwrite_null(json);
    else
        ms_jwrite_i64(json, c->is_nan);
}

/* Returns the text of a complete record; on failure notes the error and returns false. */
static bool finish_record(struct probe_call *c, struct ms_str *text)
{
    struct ms_err err = {0};
    if (c->kind != PROBE__SAVED)
        pass_parts(c, c->has_failed ? PROBE_SEC_OUTPUT : PROBE_SEC_PARAMETERS + 1);
    if (c->d->s.task == PROBE_TASK_NAN_CHECK && has_part(c, PROBE_DATA_OUTPUT))
        put_is_nan(c);
    if (probe__record_finish(&c->record, text, &err) == MS_OK)
        return true;
    probe__note(c->d, PROBE__BAD_RECORD, "%s", err.msg);
    return false;
}

/* Hands a complete record to the files, or to the queue while earlier records wait there; the
 * lock is held. */
static void hand_over(struct probe_call *c, struct ms_str text)
{
    struct probe_dumper *d = c->d;
    if (c->waiting != NULL || probe__await_any(d)) {
        probe__await_add(c, text);
    } else if (probe__stays(d, c->epoch, c->record.odd)) {
        probe__release_held(d, c->held);
        probe__add_record(d, text, c->record.is_late);
    }
}

/* Notes that the backward of a module is recorded, for the gradients of its parameters; the lock is
 * held. */
static void note_backward(struct probe_call *c)
{
    if (c->kind == PROBE__MODULE && c->dir == PROBE_BACKWARD && c->epoch == c->d->epoch)
        c->d->called.p[c->self.name].has_backward = true;
}

void probe_call_exit(struct probe_call *c)
{
    struct ms_str text;
    if (!is_live(c))
        return;
    struct probe_dumper *d = c->d;
    pop(c);
    probe__scope_turn(c);
    bool is_whole = c->is_wanted && c->parts != 0 && finish_record(c, &text);
    pthread_mutex_lock(&d->lock);
    probe__scope_leave(c);
    if (c->kind == PROBE__MODULE)
        probe__put_modules(d);
    if (is_whole) {
        note_backward(c);
        hand_over(c, text);
    }
    pthread_mutex_unlock(&d->lock);
    give_call_back(c);
}

void probe_call_drop(struct probe_call *c)
{
    if (!is_live(c))
        return;
    pop(c);
    abandon_call(c);
}

void probe__call_fail(struct probe_call *c)
{
    if (!is_live(c))
        return;
    probe__note(c->d, PROBE__LEFT_OPEN, "%s: ended by an exception", ms_buf_z(&c->name));
    c->has_failed = true;
    probe_call_exit(c);
}

int64_t probe_op(struct probe_dumper *d, const char *prefix, const char *name,
                 const struct probe_value *in, size_t nin, const struct probe_value *out,
                 size_t nout)
{
    struct probe_call *c =
        probe__enter(d, &(struct probe__entry){.kind = PROBE__OP,
                                               .dir = PROBE_FORWARD,
                                               .prefix = prefix,
                                               .name = name,
                                               .frame = __builtin_frame_address(0)});
    for (size_t i = 0; i < nin; i++)
        probe_call_input(c, &in[i]);
    for (size_t i = 0; i < nout; i++)
        probe_call_output(c, &out[i]);
    int64_t number = probe_call_number(c);
    probe_call_exit(c);
    return number;
}
