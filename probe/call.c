/* SPDX-License-Identifier: MIT
 *
 * call: modules and operators while they run, and what is saved by hand.
 *
 * Entering makes the name, counts the call, asks the filter and notes parent
 * and stack, all under the dumper's lock; values are described without it, in
 * the call's own record; leaving hands the text over.  A call that is not
 * wanted has a handle all the same, because it counts and others may lie in it.
 * Calls are used again, so a program that has warmed up allocates nothing.
 */
#include "probe/call_int.h"
#include "probe/dumper_int.h"

#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/tensor_int.h"

/* A tensor's elements, kept until it is known whether its record stays. */
struct held {
    struct held *next;
    struct probe_tensor t;
    size_t bytes;
    char name[]; /* behind it, aligned, the elements */
};

struct probe_call {
    struct probe_dumper *d;
    struct probe_call *all, *next; /* of the dumper; of the spare ones */
    struct probe_call *outer;      /* the module around this one */
    const void *tag;               /* whose call it is */
    uint64_t uses;                 /* how often it has been given back */
    struct probe__thread *thread;  /* NULL: detached */
    enum probe__call_kind kind;
    enum probe_dir dir;
    int64_t number;
    struct probe__owner self;
    unsigned epoch;
    bool is_wanted;
    int part;   /* the section that is open, -1: none yet */
    int is_nan; /* of task nan_check: -1 while no output could be one */
    struct ms_buf name;
    struct probe__record record;
    struct held *held;
};

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

static void free_held(struct probe_call *c)
{
    while (c->held != NULL) {
        struct held *h = c->held;
        c->held = h->next;
        atomic_fetch_sub(&c->d->held, h->bytes);
        ms_free(h);
    }
}

void probe__calls_free(struct probe_call *all)
{
    while (all != NULL) {
        struct probe_call *c = all;
        all = c->all;
        free_held(c);
        probe__record_free(&c->record);
        ms_buf_free(&c->name);
        ms_free(c);
    }
}

static struct probe_call *take_call(struct probe_dumper *d, struct probe__thread *t)
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
    free_held(c);
    probe__record_drop(&c->record);
    c->uses++;
    if (t == NULL)
        return; /* it is freed with the dumper */
    c->next = t->spare;
    t->spare = c;
}

/* A call that was open when the process was forked is none of the child's. */
static bool is_live(const struct probe_call *c)
{
    return c != NULL && probe__is_own_process(c->d);
}

/* ---- names ------------------------------------------------------------ */

static const char *module_prefix(const struct probe_dumper *d)
{
    return d->style.mindspore ? "Cell" : "Module";
}

/* The part of the name that calls are counted by. */
static struct ms_str put_key(struct ms_buf *b, const struct probe__entry *e)
{
    ms_buf_clear(b);
    if (e->prefix != NULL) {
        ms_buf_puts(b, e->prefix);
        ms_buf_putc(b, '.');
    }
    ms_buf_puts(b, e->name);
    if (e->class_name != NULL) {
        ms_buf_putc(b, '.');
        ms_buf_puts(b, e->class_name);
    }
    return ms_buf_slice(b);
}

/* An operator has its number before the direction, a module after it. */
static void put_call(struct ms_buf *b, bool is_module, enum probe_dir dir, int64_t number)
{
    static const struct ms_str word[2][2] = {{{".forward", 8}, {".backward", 9}},
                                             {{".forward.", 9}, {".backward.", 10}}};
    char digits[MS_NUM_MAX];
    struct ms_str text = word[is_module][dir == PROBE_BACKWARD];
    if (!is_module)
        ms_buf_putc(b, '.');
    else
        ms_buf_str(b, text);
    ms_buf_put(b, digits, ms_num_i64(digits, number));
    if (!is_module)
        ms_buf_str(b, text);
}

/* ---- parents ---------------------------------------------------------- */

/* Text of a module's name; the key is found by its index. */
static const char *put_owner(struct probe_dumper *d, struct ms_buf *b, struct probe__owner o,
                             enum probe_dir dir)
{
    ms_buf_clear(b);
    ms_buf_str(b, ms_map_key(&d->names, o.name));
    put_call(b, true, dir, o.number);
    return ms_buf_z(b);
}

/* A module comes into the file after the first operator in it, as the official tool has it: until
 * then child and parent wait, each with a byte of 0 behind it. */
static void postpone(struct probe_dumper *d, struct ms_str child, const char *parent)
{
    ms_buf_str(&d->modules, child);
    ms_buf_putc(&d->modules, '\0');
    ms_buf_puts(&d->modules, parent != NULL ? parent : "");
    ms_buf_putc(&d->modules, '\0');
}

void probe__put_modules(struct probe_dumper *d)
{
    const char *p = d->modules.p;
    const char *end = p + d->modules.n;
    while (d->modules.bad == MS_OK && p < end) {
        struct ms_str child = ms_str_of(p);
        const char *parent = p + child.n + 1;
        p = parent + strlen(parent) + 1;
        if (d->files.is_open)
            probe__files_parent(&d->files, child, *parent != '\0' ? parent : NULL);
    }
    d->modules.bad = MS_OK;
    ms_buf_clear(&d->modules);
}

/* A backward that lies in no open module lies where its forward did. */
static void put_parent(struct probe_call *c, const struct probe__thread *t, bool is_loose)
{
    struct probe_dumper *d = c->d;
    const struct probe__called *called = &d->called.p[c->self.name];
    const char *parent = NULL;
    if (!d->layout.extra || d->s.level == PROBE_LEVEL_L1)
        return;
    if (c->kind == PROBE__ROOT && c->number != 0)
        return; /* a root is one node however often it is entered */
    if (t->module != NULL)
        parent = ms_buf_z(&t->module->name);
    else if (c->dir == PROBE_BACKWARD && !is_loose && (uint64_t)c->number < called->owners.n &&
             called->owners.p[c->number].name != MS_MAP_NONE)
        parent = put_owner(d, &c->record.path, called->owners.p[c->number], PROBE_BACKWARD);
    if (c->kind == PROBE__MODULE)
        postpone(d, ms_buf_slice(&c->name), parent);
    else
        probe__files_parent(&d->files, ms_buf_slice(&c->name), parent);
    if (c->kind == PROBE__OP)
        probe__put_modules(d);
}

/* Remember where a forward call lies, for its backward. */
static void note_owner(struct probe_call *c, const struct probe__thread *t)
{
    struct probe__called *called = &c->d->called.p[c->self.name];
    if (c->kind == PROBE__ROOT || !ms_vec_reserve(&called->owners, called->owners.n + 1))
        return; /* without memory a backward is a root */
    called->owners.p[called->owners.n++] = t->module != NULL && t->module->kind == PROBE__MODULE
                                               ? t->module->self
                                               : (struct probe__owner){MS_MAP_NONE, 0};
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
    if (group != MS_MAP_NONE) /* else there is no memory, and the node has no stack */
        (void)!probe__stack_add(&d->files.stack, ms_buf_slice(&c->name), group, NULL);
}

/* Count the call and complete its name. */
static bool count_call(struct probe_call *c, const struct probe__entry *e)
{
    struct probe_dumper *d = c->d;
    bool added;
    struct ms_str key = put_key(&c->name, e);
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
        put_call(&c->name, e->kind == PROBE__MODULE, e->dir, c->number);
    ms_buf_z(&c->name);
    return c->name.bad == MS_OK;
}

/* All that needs the lock; the lock is held. */
static bool admit(struct probe_call *c, const struct probe__entry *e, struct probe__thread *t,
                  const struct probe__trail *walked)
{
    struct probe_dumper *d = c->d;
    if (!d->files.is_open || d->given_up || !count_call(c, e))
        return false;
    struct ms_str name = ms_buf_slice(&c->name);
    put_parent(c, t, e->is_loose);
    if (e->dir == PROBE_FORWARD)
        note_owner(c, t);
    c->epoch = d->epoch;
    c->is_wanted = e->kind != PROBE__ROOT &&
                   probe__filter_enter(&d->filter, name, e->kind == PROBE__MODULE) &&
                   !d->called.p[c->self.name].is_hidden;
    if (c->is_wanted && e->dir == PROBE_FORWARD && d->layout.extra)
        note_stack(c, walked, e);
    return true;
}

static bool save_tensor(void *ctx, const char *name, const struct probe_tensor *t);

/* Which calls get files; of the others only figures are kept. */
static bool keeps_files(const struct probe_call *c)
{
    const struct probe_settings *s = &c->d->s;
    return s->task == PROBE_TASK_TENSOR || s->task == PROBE_TASK_OVERFLOW_CHECK ||
           probe__mentions(s->tensor_list, ms_buf_slice(&c->name));
}

static bool has_part(const struct probe_call *c, enum probe_data part)
{
    return probe__has_data(&c->d->s, c->dir, part);
}

/* Does the record of this call have such a part? */
static bool fits(const struct probe_call *c, int part)
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

/* The parts before this one are there and have no more to come. */
static void pass_parts(struct probe_call *c, int part)
{
    while (c->part + 1 < part) {
        if (fits(c, ++c->part))
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
    if (c->d->s.task == PROBE_TASK_STRUCTURE ||
        (!has_part(c, PROBE_DATA_INPUT) && !has_part(c, PROBE_DATA_OUTPUT)))
        c->is_wanted = false; /* there would be nothing in the record */
    if (!c->is_wanted)
        return;
    c->record.save = keeps_files(c) ? save_tensor : NULL;
    probe__record_begin(&c->record, ms_buf_slice(&c->name));
}

/* Is there anything to collect of such a call at this level? */
static bool has_level(const struct probe_dumper *d, enum probe__call_kind kind)
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

/* What a step left open, because a call in it failed, is no part of the next one. */
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
    if (!probe__is_mine(d) || !has_level(d, kind))
        return false;
    struct probe__thread *t = probe__thread_of(d);
    return t != NULL && (t->op == NULL || t->op->epoch != d->epoch);
}

struct probe_call *probe__enter(struct probe_dumper *d, const struct probe__entry *e)
{
    struct probe__trail walked;
    walked.n = 0;
    if (!probe__is_mine(d) || !has_level(d, e->kind) || (e->dir == PROBE_BACKWARD && e->number < 0))
        return NULL;
    struct probe__thread *t = probe__thread_of(d);
    if (t == NULL)
        return NULL;
    forget_stale(d, t);
    struct probe_call *c = t->op == NULL ? take_call(d, t) : NULL;
    if (c == NULL)
        return NULL;
    c->kind = e->kind;
    c->dir = e->dir;
    c->tag = e->tag;
    if (d->layout.extra && e->dir == PROBE_FORWARD && e->place == NULL)
        probe__trail_walk(&walked, e->frame, &t->stack);
    pthread_mutex_lock(&d->lock);
    bool is_in = admit(c, e, t, &walked);
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
                                                  .prefix = module_prefix(d),
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
                                                  .prefix = module_prefix(d),
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

/* A copy that waits for the end of the record. */
static bool hold(struct probe_call *c, const char *name, const struct probe_tensor *t)
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
    bool taken = d->s.task == PROBE_TASK_OVERFLOW_CHECK
                     ? hold(c, name, t)
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
    probe__slice(&d->s, t);
    const enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    if (d->s.task == PROBE_TASK_NAN_CHECK && c->part == PROBE_SEC_OUTPUT && t->data != NULL &&
        (kind == MS_DTK_FLOAT || kind == MS_DTK_COMPLEX) && c->is_nan != 1)
        c->is_nan = probe__is_odd(t);
    probe__record_tensor(&c->record, key, t, as);
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
    probe__call_tensor(c, v->key, &t,
                       &(struct probe__leaf_as){.requires_grad = v->tensor->requires_grad});
}

static void put_value(struct probe_call *c, const struct probe_value *v)
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
            put_value(c, &v->items[i]);
        probe__record_close(r, v->kind == PROBE_LIST);
        break;
    }
}

bool probe__call_has(const struct probe_call *c, enum probe_section section)
{
    return is_live(c) && c->is_wanted && fits(c, (int)section);
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

const char *probe__call_name(struct probe_call *c)
{
    return ms_buf_z(&c->name);
}

static void put_into(struct probe_call *c, enum probe_section section, const struct probe_value *v)
{
    open_part(c, section);
    if (c->part == (int)section)
        put_value(c, v);
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

static void leave_filter(struct probe_call *c)
{
    struct probe_dumper *d = c->d;
    if (c->epoch == d->epoch && (c->kind == PROBE__OP || c->kind == PROBE__MODULE))
        probe__filter_leave(&d->filter, ms_buf_slice(&c->name), c->kind == PROBE__MODULE);
}

/* The call is over and nothing of it stays. */
static void abandon(struct probe_call *c)
{
    pthread_mutex_lock(&c->d->lock);
    leave_filter(c);
    pthread_mutex_unlock(&c->d->lock);
    give_call_back(c);
}

/* Take the call off its thread, and with it what was left open inside. */
static void pop(struct probe_call *c)
{
    struct probe__thread *t = c->thread;
    if (t == NULL)
        return;
    if (t->op != NULL) { /* c itself, or one inside c */
        struct probe_call *op = t->op;
        t->op = NULL;
        if (op == c)
            return;
        probe__note(c->d, PROBE__LEFT_OPEN, "%s: was entered and not left", ms_buf_z(&op->name));
        abandon(op);
    }
    while (t->module != NULL && t->module != c) {
        struct probe_call *inner = t->module;
        t->module = inner->outer;
        probe__note(c->d, PROBE__LEFT_OPEN, "%s: was entered and not left", ms_buf_z(&inner->name));
        abandon(inner);
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

/* Overflow checking keeps only records with something odd in them; the lock is held. */
static bool stays(struct probe_call *c)
{
    struct probe_dumper *d = c->d;
    if (c->epoch != d->epoch)
        return false;
    if (d->s.task != PROBE_TASK_OVERFLOW_CHECK)
        return true;
    if (!c->record.odd || d->overflows_left == 0)
        return false;
    if (d->overflows_left > 0 && --d->overflows_left == 0)
        atomic_store(&d->active, false);
    return true;
}

static void put_is_nan(struct probe_call *c)
{
    struct ms_jwrite *json = &c->record.json;
    probe__record_section_end(&c->record);
    ms_jwrite_key(json, MS_STR("is_nan"));
    if (c->is_nan < 0)
        ms_jwrite_null(json);
    else
        ms_jwrite_i64(json, c->is_nan);
}

/* The text of a whole record, or nothing and a note. */
static bool finish_record(struct probe_call *c, struct ms_str *text)
{
    struct ms_err err = {0};
    if (c->kind != PROBE__SAVED)
        pass_parts(c, PROBE_SEC_PARAMETERS + 1);
    if (c->d->s.task == PROBE_TASK_NAN_CHECK && has_part(c, PROBE_DATA_OUTPUT))
        put_is_nan(c);
    if (probe__record_finish(&c->record, text, &err) == MS_OK)
        return true;
    probe__note(c->d, PROBE__BAD_RECORD, "%s", err.msg);
    return false;
}

/* The held tensors of a record that stays become files. */
static void release_held(struct probe_call *c)
{
    struct probe_dumper *d = c->d;
    for (struct held *h = c->held; h != NULL; h = h->next)
        (void)!probe__spool_put(d->spool, d->files.data_dir, h->name, &h->t); /* told by drain */
}

void probe_call_exit(struct probe_call *c)
{
    struct ms_str text;
    if (!is_live(c))
        return;
    struct probe_dumper *d = c->d;
    pop(c);
    bool is_whole = c->is_wanted && finish_record(c, &text);
    pthread_mutex_lock(&d->lock);
    leave_filter(c);
    if (c->kind == PROBE__MODULE)
        probe__put_modules(d);
    if (is_whole && stays(c)) {
        release_held(c);
        probe__add_record(d, text, c->record.is_late);
    }
    pthread_mutex_unlock(&d->lock);
    give_call_back(c);
}

void probe_call_drop(struct probe_call *c)
{
    if (!is_live(c))
        return;
    pop(c);
    abandon(c);
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

/* ---- records that are no calls ---------------------------------------- */

/* A call to describe values in, which is on no thread. */
static struct probe_call *begin_alone(struct probe_dumper *d, enum probe_dir dir)
{
    struct probe__thread *t = probe__thread_of(d);
    struct probe_call *c = t != NULL ? take_call(d, t) : NULL;
    if (c == NULL)
        return NULL;
    c->kind = PROBE__SAVED;
    c->dir = dir;
    c->thread = NULL;
    c->part = c->is_nan = -1;
    c->is_wanted = false;
    return c;
}

/* "Module.fc.Linear.parameters_grad.0"; the lock is held.  false: not wanted. */
static bool name_grads(struct probe_call *c, const char *path, const char *class_name)
{
    struct probe_dumper *d = c->d;
    bool added;
    char digits[MS_NUM_MAX];
    struct ms_str key = put_key(
        &c->name,
        &(struct probe__entry){.prefix = module_prefix(d), .name = path, .class_name = class_name});
    uint32_t at = d->files.is_open ? probe__called_index(d, key, &added) : MS_MAP_NONE;
    if (at == MS_MAP_NONE)
        return false;
    ms_buf_puts(&c->name, ".parameters_grad.");
    ms_buf_put(&c->name, digits, ms_num_u64(digits, d->called.p[at].grads++));
    ms_buf_z(&c->name);
    c->epoch = d->epoch;
    return c->name.bad == MS_OK && probe__filter_enter(&d->filter, ms_buf_slice(&c->name), false) &&
           d->s.task != PROBE_TASK_STRUCTURE && d->s.task != PROBE_TASK_NAN_CHECK;
}

struct probe_call *probe__begin_grads(struct probe_dumper *d, const char *path,
                                      const char *class_name)
{
    if (!probe__is_mine(d) || !has_level(d, PROBE__MODULE) ||
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
    c->record.save = keeps_files(c) ? save_tensor : NULL;
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
        put_value(c, &(struct probe_value){
                         .kind = PROBE_LIST, .items = &leaf, .n = 1, .key = grads[i].key});
    }
    probe_call_exit(c);
}

/* "loss.0.debug"; a number below 0 is the next one, which it becomes.  The lock is held. */
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
    c->record.save = keeps_files(c) ? save_tensor : NULL;
    probe__record_begin_value(&c->record, ms_buf_slice(&c->name));
    return c;
}

static void save(struct probe_dumper *d, const char *name, const struct probe_value *v,
                 bool is_grad)
{
    int64_t number = -1;
    struct probe_call *c = probe__begin_saved(d, name, is_grad, &number);
    struct probe_value value = *v;
    if (c == NULL)
        return;
    value.key = NULL;
    put_value(c, &value);
    probe_call_exit(c);
}

void probe_save(struct probe_dumper *d, const char *name, const struct probe_value *v)
{
    save(d, name, v, false);
}

void probe_save_grad(struct probe_dumper *d, const char *name, const struct probe_value *v)
{
    save(d, name, v, true);
}
