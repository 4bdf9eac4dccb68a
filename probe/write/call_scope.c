/* SPDX-License-Identifier: MIT
 *
 * call_scope: asks the filter for a call. A strict scope (see filter.c) is asked about the inputs
 * of a forward when it begins and about its outputs when they come; about a backward of a module
 * when it ends, and about other backwards once.
 */
#include "probe/write/call_struct.h"

enum { BOTH = PROBE_DATA_INPUT | PROBE_DATA_OUTPUT };

bool probe__scope_enter(struct probe_call *c)
{
    struct probe__filter *f = &c->d->filter;
    const struct ms_str name = ms_buf_slice(&c->name);
    const bool is_module = c->kind == PROBE__MODULE;
    c->parts = BOTH;
    c->is_scope_left = false;
    if (!f->is_strict)
        return probe__filter_enter(f, name, is_module);
    if (is_module)
        probe__filter_begin(f, name);
    bool is_later = is_module && c->dir == PROBE_BACKWARD;
    c->parts = is_later || !probe__filter_passes(f, name) ? 0
               : c->dir == PROBE_BACKWARD                 ? BOTH
                                                          : PROBE_DATA_INPUT;
    return true;
}

/* Ends the call in a strict scope and asks for its remaining parts; the lock is held. */
static void ask_at_end(struct probe_call *c, struct probe__filter *f)
{
    const struct ms_str name = ms_buf_slice(&c->name);
    const bool is_module = c->kind == PROBE__MODULE;
    if (is_module && c->dir == PROBE_BACKWARD && probe__filter_passes(f, name))
        c->parts = BOTH;
    if (is_module)
        probe__filter_end(f, name);
    if (c->dir == PROBE_FORWARD && probe__filter_passes(f, name))
        c->parts |= PROBE_DATA_OUTPUT;
}

void probe__scope_turn(struct probe_call *c)
{
    struct probe_dumper *d = c->d;
    if (c->is_scope_left || !d->filter.is_strict || c->kind == PROBE__SAVED ||
        c->kind == PROBE__ROOT)
        return;
    pthread_mutex_lock(&d->lock);
    if (c->epoch == d->epoch)
        ask_at_end(c, &d->filter);
    c->is_scope_left = true;
    pthread_mutex_unlock(&d->lock);
}

void probe__scope_leave(struct probe_call *c)
{
    struct probe_dumper *d = c->d;
    const bool is_module = c->kind == PROBE__MODULE;
    if (c->is_scope_left || c->epoch != d->epoch || (c->kind != PROBE__OP && !is_module))
        return;
    if (!d->filter.is_strict || is_module)
        probe__filter_leave(&d->filter, ms_buf_slice(&c->name), is_module);
}

bool probe__scope_has_grads(struct probe_call *c, bool has_backward)
{
    struct probe__filter *f = &c->d->filter;
    const struct ms_str name = ms_buf_slice(&c->name);
    return f->is_strict ? has_backward || probe__filter_passes(f, name)
                        : probe__filter_enter(f, name, false);
}
