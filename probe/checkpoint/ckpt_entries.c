/* SPDX-License-Identifier: MIT
 *
 * ckpt_entries: the entries of a checkpoint as its readers build them: files, tensors, parts, values.
 */
#include "probe/base/assert.h"
#include "probe/checkpoint/checkpoint_int.h"

#include <stdio.h>

/* Names, shapes and pickles. The largest checkpoints in use have some 100,000 tensors a rank. */
static const size_t arena_bytes = (size_t)1 << 30;

enum ms_rc ckpt__new(struct probe_ckpt **c, struct ms_err *err)
{
    *c = ms_calloc(1, sizeof **c);
    if (*c == NULL)
        return ms_no_memory(err);
    (*c)->arena = ms_arena_new(arena_bytes);
    if ((*c)->arena != NULL)
        return MS_OK;
    ms_free(*c);
    *c = NULL;
    return ms_no_memory(err);
}

void probe_ckpt_close(struct probe_ckpt *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->files.n; i++) {
        if (c->files.p[i]->map.p != NULL)
            ms_file_unmap(&c->files.p[i]->map);
        ms_free(c->files.p[i]);
    }
    for (size_t i = 0; i < c->shards.n; i++)
        probe_ckpt_close(c->shards.p[i]);
    ms_vec_free(&c->files);
    ms_vec_free(&c->entries);
    ms_vec_free(&c->flat);
    ms_vec_free(&c->parts);
    ms_vec_free(&c->notes);
    ms_vec_free(&c->shards);
    ms_map_free(&c->names);
    ms_arena_free(c->arena);
    ms_free(c);
}

/* ---- files ------------------------------------------------------------------------------ */

enum ms_rc ckpt__borrow(struct probe_ckpt *c, const char *name, struct ckpt_file **f,
                        struct ms_err *err)
{
    struct ckpt_file **slot = ms_vec_push(&c->files);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *f = ms_calloc(1, sizeof **f);
    if (*f == NULL) {
        c->files.n--;
        return ms_no_memory(err);
    }
    (*f)->path = ms_arena_str(c->arena, ms_str_of(name));
    return (*f)->path.p != NULL ? MS_OK : ms_arena_fail(c->arena, err);
}

enum ms_rc ckpt__map(struct probe_ckpt *c, const char *path, struct ckpt_file **f,
                     struct ms_err *err)
{
    MS_TRY(ckpt__borrow(c, path, f, err));
    return ms_file_map(&(*f)->map, path, CKPT_MAX_BYTES, err);
}

enum ms_rc ckpt__adopt(struct probe_ckpt *c, struct probe_ckpt *shard, struct ms_err *err)
{
    struct probe_ckpt **slot = ms_vec_push(&c->shards);
    if (slot == NULL) {
        probe_ckpt_close(shard);
        return ms_no_memory(err);
    }
    *slot = shard;
    return MS_OK;
}

enum ms_rc ckpt__note(struct probe_ckpt *c, struct ms_err *err, const char *fmt, ...)
{
    struct ms_buf text = {.max = 1000};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    const struct ms_str kept = ms_arena_str(c->arena, ms_buf_slice(&text));
    ms_buf_free(&text);
    if (kept.p == NULL)
        return ms_arena_fail(c->arena, err);
    struct ms_str *slot = ms_vec_push(&c->notes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = kept;
    return MS_OK;
}

/* ---- entries ---------------------------------------------------------------------------- */

static enum ms_rc push_entry(struct probe_ckpt *c, struct probe_ckpt_entry e, struct ms_str name,
                             bool flat, struct ms_err *err)
{
    if (c->entries.n >= CKPT_MAX_ENTRIES)
        return ms_fail(err, MS_E_LIMIT, "more than %d tensors and values", CKPT_MAX_ENTRIES);
    e.name = ms_arena_str(c->arena, name);
    if (e.name.p == NULL)
        return ms_arena_fail(c->arena, err);
    struct probe_ckpt_entry *slot = ms_vec_push(&c->entries);
    bool *flag = ms_vec_push(&c->flat);
    if (slot == NULL || flag == NULL)
        return ms_no_memory(err);
    e.part = (uint32_t)c->parts.n;
    *slot = e;
    *flag = flat;
    return MS_OK;
}

enum ms_rc ckpt__add(struct probe_ckpt *c, struct ms_str name, enum ms_dtype dtype,
                     const uint64_t *shape, uint32_t ndim, bool flat, const struct ckpt_file *f,
                     struct ms_err *err)
{
    struct probe_ckpt_entry e = {.dtype = dtype, .ndim = ndim, .count = 1, .file = f->path};
    char shown[MS_STR_SHOWN];
    if (ndim > PROBE_CKPT_DIMS)
        return ms_fail(err, MS_E_LIMIT, "%s has %u dimensions, more than the %d that are read",
                       ms_str_shown(shown, name), ndim, PROBE_CKPT_DIMS);
    uint64_t bytes = ms_dtype_size(dtype);
    for (uint32_t d = 0; d < ndim; d++) {
        if (__builtin_mul_overflow(bytes, shape[d] != 0 ? shape[d] : 1, &bytes) ||
            bytes > INT64_MAX)
            return ms_fail(err, MS_E_FORMAT, "the product of %s's shape does not fit 63 bits",
                           ms_str_shown(shown, name));
        e.shape[d] = shape[d];
        e.count *= shape[d];
    }
    return push_entry(c, e, name, flat, err);
}

enum ms_rc ckpt__add_part(struct probe_ckpt *c, const struct ckpt_part *part, struct ms_err *err)
{
    ms_assert(c->entries.n != 0);
    struct ckpt_part *slot = c->parts.n < UINT32_MAX ? ms_vec_push(&c->parts) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *part;
    c->entries.p[c->entries.n - 1].parts++;
    return MS_OK;
}

static void set_strides(struct ckpt_part *part, const uint64_t *shape, uint32_t ndim)
{
    uint64_t step = 1;
    for (uint32_t d = ndim; d-- > 0;) {
        part->extent[d] = shape[d];
        part->stride[d] = step;
        step *= shape[d] != 0 ? shape[d] : 1;
    }
}

static const struct ms_file *map_of(const struct ckpt_file *f)
{
    return f->map.p != NULL ? &f->map : NULL;
}

enum ms_rc ckpt__add_plain(struct probe_ckpt *c, struct ms_str name, enum ms_dtype dtype,
                           const uint64_t *shape, uint32_t ndim, const char *data,
                           const struct ckpt_file *f, struct ms_err *err)
{
    struct ckpt_part part = {.data = data, .file = map_of(f)};
    MS_TRY(ckpt__add(c, name, dtype, shape, ndim, false, f, err));
    set_strides(&part, shape, ndim);
    return ckpt__add_part(c, &part, err);
}

enum ms_rc ckpt__add_tensor(struct probe_ckpt *c, struct ms_str name, const struct probe_tensor *t,
                            const struct ckpt_file *f, struct ms_err *err)
{
    struct ckpt_part part = {.data = t->data, .file = map_of(f)};
    MS_TRY(ckpt__add(c, name, t->dtype, t->shape, t->ndim, false, f, err));
    for (uint32_t d = 0; d < t->ndim; d++) {
        part.extent[d] = t->shape[d];
        part.stride[d] = t->stride[d];
    }
    return ckpt__add_part(c, &part, err);
}

enum ms_rc ckpt__add_like(struct probe_ckpt *c, struct ms_str name,
                          const struct probe_ckpt_entry *e, const uint64_t *shape,
                          struct ms_err *err)
{
    const struct ckpt_file f = {.path = e->file};
    if (e->dtype == MS_DT_NONE)
        return ckpt__add_value(c, name, e->value, &f, err);
    MS_TRY(ckpt__add(c, name, e->dtype, shape, e->ndim, false, &f, err));
    c->entries.p[c->entries.n - 1].role = e->role;
    return MS_OK;
}

enum ms_rc ckpt__add_parts_of(struct probe_ckpt *c, const struct probe_ckpt *shard,
                              const struct probe_ckpt_entry *e, uint32_t dim, uint64_t by,
                              struct ms_err *err)
{
    if (e->parts != 0)
        c->flat.p[c->entries.n - 1] = ckpt__is_flat(shard, e);
    for (uint32_t i = 0; i < e->parts; i++) {
        struct ckpt_part part = shard->parts.p[e->part + i];
        part.from[dim] += by;
        MS_TRY(ckpt__add_part(c, &part, err));
    }
    return MS_OK;
}

enum ms_rc ckpt__add_value(struct probe_ckpt *c, struct ms_str name, const struct ms_plain *v,
                           const struct ckpt_file *f, struct ms_err *err)
{
    return push_entry(c, (struct probe_ckpt_entry){.value = v, .file = f->path}, name, false, err);
}

bool ckpt__is_flat(const struct probe_ckpt *c, const struct probe_ckpt_entry *e)
{
    ms_assert(e >= c->entries.p && e < c->entries.p + c->entries.n);
    return c->flat.p[e - c->entries.p];
}

/* ---- reading elements ------------------------------------------------------------------- */

/* The place of an element in the dimensions of a part. */
static void indices_of(const struct probe_ckpt_entry *e, bool flat, uint64_t at, uint64_t *index)
{
    if (flat) {
        index[0] = at;
        return;
    }
    for (uint32_t d = e->ndim; d-- > 0;) {
        index[d] = at % e->shape[d];
        at /= e->shape[d];
    }
}

static bool holds(const struct ckpt_part *part, const uint64_t *index, uint32_t ndim)
{
    for (uint32_t d = 0; d < ndim; d++) {
        if (index[d] < part->from[d] || index[d] - part->from[d] >= part->extent[d])
            return false;
    }
    return true;
}

/* Finds the part that holds an element; parts of a tensor follow each other, so that the search begins
 * with the last one found. */
static const struct ckpt_part *find_part(const struct ckpt_part *parts, uint32_t n, uint32_t ndim,
                                         const uint64_t *index, uint32_t *last)
{
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = (*last + k) % n;
        if (holds(&parts[i], index, ndim)) {
            *last = i;
            return &parts[i];
        }
    }
    return NULL;
}

/* Counts the elements from index on that lie behind each other both in the tensor and in the part. */
static uint64_t run_length(const struct ckpt_part *part, const uint64_t *shape, uint32_t ndim,
                           const uint64_t *index)
{
    uint64_t run = 1, whole = 1;
    for (uint32_t d = ndim; d-- > 0;) {
        if (part->extent[d] != 1 && part->stride[d] != whole)
            break;
        run = (part->extent[d] - (index[d] - part->from[d]) - 1) * whole + run;
        if (part->extent[d] != shape[d])
            break;
        whole *= part->extent[d];
    }
    return run;
}

static const char *element_at(const struct ckpt_part *part, const uint64_t *index, uint32_t ndim,
                              size_t size)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < ndim; d++)
        at += (index[d] - part->from[d]) * part->stride[d];
    return part->data + at * size;
}

const void *probe_ckpt_elements(const struct probe_ckpt *c, const struct probe_ckpt_entry *e,
                                uint64_t from, uint64_t n, void *scratch)
{
    ms_assert(from <= e->count && n <= e->count - from);
    const struct ckpt_part *parts = e->parts != 0 ? c->parts.p + e->part : NULL;
    const bool flat = ckpt__is_flat(c, e);
    const uint32_t ndim = flat ? 1 : e->ndim;
    const uint64_t *shape = flat ? &e->count : e->shape;
    const size_t size = ms_dtype_size(e->dtype);
    uint32_t last = 0;
    for (uint64_t done = 0; done < n;) {
        uint64_t index[PROBE_CKPT_DIMS] = {0};
        indices_of(e, flat, from + done, index);
        const struct ckpt_part *part = find_part(parts, e->parts, ndim, index, &last);
        uint64_t run = part != NULL ? run_length(part, shape, ndim, index) : 1;
        run = run < n - done ? run : n - done;
        char *to = (char *)scratch + done * size;
        if (part == NULL)
            memset(to, 0, size);
        else if (run == n)
            return element_at(part, index, ndim, size);
        else
            memcpy(to, element_at(part, index, ndim, size), run * size);
        done += run;
    }
    return scratch;
}

void probe_ckpt_release(const struct probe_ckpt *c, const struct probe_ckpt_entry *e)
{
    const size_t size = ms_dtype_size(e->dtype);
    for (uint32_t i = 0; i < e->parts; i++) {
        const struct ckpt_part *part = &c->parts.p[e->part + i];
        const uint32_t ndim = ckpt__is_flat(c, e) ? 1 : e->ndim;
        uint64_t span = 0;
        bool empty = part->file == NULL;
        for (uint32_t d = 0; d < ndim; d++) {
            empty = empty || part->extent[d] == 0;
            span += empty ? 0 : (part->extent[d] - 1) * part->stride[d];
        }
        if (!empty)
            ms_file_release_part(part->file, (size_t)(part->data - part->file->p),
                                 (size_t)(span + 1) * size);
    }
}

/* ---- questions -------------------------------------------------------------------------- */

const char *probe_ckpt_kind(const struct probe_ckpt *c)
{
    return c->kind;
}

size_t probe_ckpt_count(const struct probe_ckpt *c)
{
    return c->entries.n;
}

const struct probe_ckpt_entry *probe_ckpt_entry(const struct probe_ckpt *c, size_t i)
{
    ms_assert(i < c->entries.n);
    return &c->entries.p[i];
}

const struct probe_ckpt_entry *probe_ckpt_find(const struct probe_ckpt *c, struct ms_str name)
{
    const uint32_t i = ms_map_get(&c->names, name);
    return i != MS_MAP_NONE ? &c->entries.p[i] : NULL;
}

size_t probe_ckpt_notes(const struct probe_ckpt *c)
{
    return c->notes.n;
}

struct ms_str probe_ckpt_note(const struct probe_ckpt *c, size_t i)
{
    ms_assert(i < c->notes.n);
    return c->notes.p[i];
}
