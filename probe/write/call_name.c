/* SPDX-License-Identifier: MIT
 *
 * call_name: names of calls, and their parents.
 */
#include "probe/write/call_struct.h"

#include "probe/base/num.h"

/* ---- names ------------------------------------------------------------ */

const char *probe__module_prefix(const struct probe_dumper *d)
{
    return d->style.mindspore ? "Cell" : "Module";
}

struct ms_str probe__put_key(struct ms_buf *b, const struct probe__entry *e)
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

void probe__put_number(struct ms_buf *b, bool is_module, enum probe_dir dir, int64_t number)
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

/* Builds the text of a module's name from its index. */
static const char *put_owner(struct probe_dumper *d, struct ms_buf *b, struct probe__owner o,
                             enum probe_dir dir)
{
    ms_buf_clear(b);
    ms_buf_str(b, ms_map_key(&d->names, o.name));
    probe__put_number(b, true, dir, o.number);
    return ms_buf_z(b);
}

/* Delays a module's entry in construct.json until after the first operator inside the module, as
 * the official tool orders them. Child and parent are queued in d->modules, each ended by a NUL
 * byte. */
static void postpone_name(struct probe_dumper *d, struct ms_str child, const char *parent)
{
    ms_buf_str(&d->modules, child);
    ms_buf_putc(&d->modules, '\0');
    ms_buf_puts(&d->modules, parent != NULL ? parent : "");
    ms_buf_putc(&d->modules, '\0');
}

void probe__put_modules(struct probe_dumper *d)
{
    const char *p = d->modules.p;
    const char *end = d->modules.n != 0 ? p + d->modules.n : p;
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

void probe__put_parent(struct probe_call *c, const struct probe__thread *t, bool is_loose)
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
    else if (c->dir == PROBE_BACKWARD && !is_loose && !(d->s.strict && d->style.mindspore) &&
             (uint64_t)c->number < called->owners.n &&
             called->owners.p[c->number].name != MS_MAP_NONE)
        parent = put_owner(d, &c->record.path, called->owners.p[c->number], PROBE_BACKWARD);
    if (c->kind == PROBE__MODULE)
        postpone_name(d, ms_buf_slice(&c->name), parent);
    else
        probe__files_parent(&d->files, ms_buf_slice(&c->name), parent);
    if (c->kind == PROBE__OP)
        probe__put_modules(d);
}

void probe__note_owner(struct probe_call *c, const struct probe__thread *t)
{
    struct probe__called *called = &c->d->called.p[c->self.name];
    if (c->kind == PROBE__ROOT || !ms_vec_reserve(&called->owners, called->owners.n + 1))
        return; /* out of memory: its backward becomes a root */
    called->owners.p[called->owners.n++] = t->module != NULL && t->module->kind == PROBE__MODULE
                                               ? t->module->self
                                               : (struct probe__owner){MS_MAP_NONE, 0};
}
