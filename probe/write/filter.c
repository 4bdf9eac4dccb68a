/* SPDX-License-Identifier: MIT
 *
 * filter: scope, list, data_mode, slices and risk.
 *
 * A scope lasts from the start of its first record to the end of its last, both included with all
 * records inside them.
 *
 * A strict scope is that of the official tool, which asks about the inputs of a record and again
 * about its outputs. The inputs of the last record end the scope, its outputs and what it calls are
 * outside; at level L0 the module's end does so, before its outputs. A record that began before the
 * scope and ends in it has outputs alone, one that began in it and ends behind it inputs alone.
 */
#include "probe/write/filter.h"

#include "probe/tensor/tensor.h"
#include "probe/write/risk.h"

#include <stdlib.h>

/* ---- risk ------------------------------------------------------------- */

static int compare_word(const void *key, const void *word)
{
    return ms_str_cmp(*(const struct ms_str *)key, ms_str_of(*(const char *const *)word));
}

static bool is_among(const char *const *sorted, size_t n, struct ms_str name)
{
    return bsearch(&name, sorted, n, sizeof *sorted, compare_word) != NULL;
}

/* Communication and the vendor's own operators are always kept: they compute or carry results. */
static bool is_core_prefix(struct ms_str prefix)
{
    return ms_str_is(prefix, "Distributed") || ms_str_is(prefix, "NPU") ||
           ms_str_is(prefix, "MindSpeed");
}

bool probe__filter_hides(const struct probe__filter *f, struct ms_str prefix, struct ms_str name)
{
    if (!f->by_risk)
        return false;
    if (f->s->risk == PROBE_RISK_FOCUS)
        return is_among(moves_data, sizeof moves_data / sizeof *moves_data, name);
    return !is_core_prefix(prefix) && !is_among(computes, sizeof computes / sizeof *computes, name);
}

/* ---- scope and list --------------------------------------------------- */

void probe__filter_init(struct probe__filter *f, const struct probe_settings *s)
{
    *f = (struct probe__filter){.s = s,
                                .has_scope = s->scope != NULL && s->scope[0] != NULL,
                                .has_list = s->list != NULL && s->list[0] != NULL};
    f->is_strict = f->has_scope && s->strict;
    f->by_risk = !f->has_scope && !f->has_list && s->risk != PROBE_RISK_ALL &&
                 s->level != PROBE_LEVEL_L0 && s->framework <= PROBE_FW_PYTORCH;
}

void probe__filter_reset(struct probe__filter *f)
{
    f->in_scope = false;
    f->in_list = 0;
}

bool probe__mentions(const char *const *list, struct ms_str name)
{
    for (; list != NULL && *list != NULL; list++) {
        if (ms_str_find_str(name, ms_str_of(*list)) >= 0)
            return true;
    }
    return false;
}

/* Tells whether all records inside this module are wanted: it is on the list, at level mix. */
static bool opens_list(const struct probe__filter *f, struct ms_str name, bool is_module)
{
    return f->has_list && is_module && f->s->level == PROBE_LEVEL_MIX &&
           probe__mentions(f->s->list, name);
}

bool probe__filter_enter(struct probe__filter *f, struct ms_str name, bool is_module)
{
    if (f->has_scope && ms_str_is(name, f->s->scope[0]))
        f->in_scope = true;
    if (opens_list(f, name, is_module))
        f->in_list++;
    if (f->has_scope && !f->in_scope)
        return false;
    return !f->has_list || f->in_list != 0 || probe__mentions(f->s->list, name);
}

void probe__filter_leave(struct probe__filter *f, struct ms_str name, bool is_module)
{
    if (f->has_scope && ms_str_is(name, f->s->scope[1]))
        f->in_scope = false;
    if (opens_list(f, name, is_module) && f->in_list != 0)
        f->in_list--;
}

void probe__filter_begin(struct probe__filter *f, struct ms_str name)
{
    if (ms_str_is(name, f->s->scope[0]))
        f->in_scope = true;
    if (opens_list(f, name, true))
        f->in_list++;
}

void probe__filter_end(struct probe__filter *f, struct ms_str name)
{
    probe__filter_leave(f, name, true);
}

bool probe__filter_passes(struct probe__filter *f, struct ms_str name)
{
    const bool by_modules = f->s->level == PROBE_LEVEL_L0;
    if (!by_modules && ms_str_is(name, f->s->scope[0]))
        f->in_scope = true;
    bool passes =
        f->in_scope && (!f->has_list || f->in_list != 0 || probe__mentions(f->s->list, name));
    if (!by_modules && ms_str_is(name, f->s->scope[1]))
        f->in_scope = false;
    return passes;
}

/* ---- steps, ranks, parts ---------------------------------------------- */

static bool in_ranges(const struct probe_range *r, size_t n, uint32_t v)
{
    for (size_t i = 0; i < n; i++) {
        if (v >= r[i].first && v <= r[i].last)
            return true;
    }
    return n == 0;
}

bool probe__has_step(const struct probe_settings *s, uint32_t step)
{
    return in_ranges(s->step, s->nsteps, step);
}

bool probe__has_rank(const struct probe_settings *s, uint32_t rank)
{
    return in_ranges(s->rank, s->nranks, rank);
}

bool probe__has_data(const struct probe_settings *s, enum probe_dir dir, enum probe_data part)
{
    const unsigned dirs = PROBE_DATA_FORWARD | PROBE_DATA_BACKWARD;
    const unsigned parts = PROBE_DATA_INPUT | PROBE_DATA_OUTPUT;
    unsigned mode = s->data_mode;
    mode |= (mode & dirs) == 0 ? dirs : 0;
    mode |= (mode & parts) == 0 ? parts : 0;
    unsigned wanted = (dir == PROBE_BACKWARD ? PROBE_DATA_BACKWARD : PROBE_DATA_FORWARD) | part;
    return (mode & wanted) == wanted;
}

/* ---- slices ----------------------------------------------------------- */

/* Converts a Python index: negative counts from the end; clamped to the size. */
static uint64_t position_of(int64_t at, uint64_t size)
{
    if (at >= 0)
        return (uint64_t)at < size ? (uint64_t)at : size;
    uint64_t back = -(uint64_t)at;
    return back < size ? size - back : 0;
}

static void narrow(const struct probe_slice *slice, struct probe_tensor *t)
{
    if (slice->dim >= t->ndim)
        return;
    uint64_t size = t->shape[slice->dim];
    if (slice->has_size && slice->size != size)
        return;
    uint64_t from = position_of(slice->begin, size);
    uint64_t to = slice->has_end ? position_of(slice->end, size) : size;
    to = to > from ? to : from;
    t->shape[slice->dim] = to - from;
    if (to - from != 0 && t->data != NULL)
        t->data = (const char *)t->data + from * t->stride[slice->dim] * ms_dtype_size(t->dtype);
}

void probe__slice(const struct probe_settings *s, const struct probe_slice *request,
                  struct probe_tensor *t)
{
    if (s->nslices == 0 && request == NULL)
        return;
    for (size_t i = 0; i < s->nslices; i++)
        narrow(&s->slice[i], t);
    if (request != NULL)
        narrow(request, t);
    t->count = 1;
    for (uint32_t i = 0; i < t->ndim; i++)
        t->count *= t->shape[i]; /* cannot overflow: no dimension has grown */
    t->contiguous = probe__tensor_in_c_order(t);
}
