/* SPDX-License-Identifier: MIT
 *
 * distributed: a folder of torch.distributed.checkpoint: .metadata, a pickle that tells the boxes of
 * each tensor and where each lies, and files __RANK_N.distcp, in which a box is a small archive of
 * torch.save.
 */
#include "probe/checkpoint/checkpoint_int.h"
#include "probe/tensor/pt_place.h"

#include <stdio.h>

struct reading {
    struct probe_ckpt *c;
    const char *dir; /* NULL: the files are not opened */
    const struct ms_plain *states, *places;
    struct ms_map files, index; /* index: of places, by their key as text */
    MS_VEC(struct ckpt_file *) open;
    struct ms_buf key;
    struct ms_err *err;
};

/* Returns a field of an object, which has them in its state; or an entry of a dictionary. */
static const struct ms_plain *field_of(const struct ms_plain *object, const char *name)
{
    static const struct ms_plain none;
    for (uint32_t i = 2; object->kind == MS_PLAIN_CALL && i < object->n; i++) {
        const struct ms_plain *v = ms_plain_get(object->item[i], name);
        if (v != NULL)
            return v;
    }
    const struct ms_plain *v = ms_plain_get(object, name);
    return v != NULL ? v : &none;
}

/* Reads a torch.Size, a call with one tuple. */
static bool read_size(const struct ms_plain *v, uint64_t *out, uint32_t *n)
{
    if (v->kind == MS_PLAIN_CALL)
        v = ms_plain_item(ms_plain_item(v, 1), 0);
    *n = ms_plain_len(v);
    if ((v->kind != MS_PLAIN_TUPLE && v->kind != MS_PLAIN_LIST) || *n > PROBE_CKPT_DIMS)
        return false;
    for (uint32_t i = 0; i < *n; i++) {
        if (v->item[i]->kind != MS_PLAIN_INT || v->item[i]->i < 0)
            return false;
        out[i] = (uint64_t)v->item[i]->i;
    }
    return true;
}

static enum ms_rc report_bad(struct reading *r, struct ms_str name, const char *what)
{
    char shown[MS_STR_SHOWN];
    return ms_fail(r->err, MS_E_FORMAT, ".metadata: %s: %s", ms_str_shown(shown, name), what);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The key of a place: the name, and the box's offsets when it has some. */
static struct ms_str key_text(struct reading *r, struct ms_str name, const uint64_t *offset,
                              uint32_t n)
{
    ms_buf_clear(&r->key);
    ms_buf_str(&r->key, name);
    for (uint32_t i = 0; i < n; i++)
        ms_buf_printf(&r->key, "|%llu", (unsigned long long)offset[i]);
    return ms_buf_slice(&r->key);
}

static enum ms_rc index_places(struct reading *r)
{
    for (uint32_t i = 0; i + 1 < ms_plain_len(r->places); i += 2) {
        const struct ms_plain *key = r->places->item[i];
        uint64_t offset[PROBE_CKPT_DIMS];
        uint32_t n = 0;
        const struct ms_str name = ms_plain_text(field_of(key, "fqn"));
        if (!read_size(field_of(key, "offset"), offset, &n))
            n = 0;
        if (ms_map_put_copy(&r->index, key_text(r, name, offset, n), r->c->arena, NULL) != i / 2)
            return report_bad(r, name, "two places of one box");
    }
    return MS_OK;
}

static const struct ms_plain *place_of(struct reading *r, struct ms_str name,
                                       const uint64_t *offset, uint32_t n)
{
    uint32_t i = ms_map_get(&r->index, key_text(r, name, offset, n));
    if (i == MS_MAP_NONE)
        i = ms_map_get(&r->index, name);
    return i != MS_MAP_NONE ? r->places->item[2 * i + 1] : NULL;
}

static enum ms_rc open_file(struct reading *r, struct ms_str name, struct ckpt_file **f)
{
    bool added;
    const uint32_t i = ms_map_put_copy(&r->files, name, r->c->arena, &added);
    if (i == MS_MAP_NONE)
        return ms_no_memory(r->err);
    if (!added) {
        *f = r->open.p[i];
        return MS_OK;
    }
    struct ckpt_file **slot = ms_vec_push(&r->open);
    if (slot == NULL)
        return ms_no_memory(r->err);
    *slot = NULL;
    char *path = ms_path_join(r->dir, ms_map_key(&r->files, i).p);
    if (path == NULL)
        return ms_no_memory(r->err);
    const enum ms_rc rc = ckpt__map(r->c, path, f, r->err);
    ms_free(path);
    *slot = rc == MS_OK ? *f : NULL;
    return rc;
}

/* Finds the bytes of a place. */
static enum ms_rc find_bytes(struct reading *r, struct ms_str name, const struct ms_plain *place,
                             struct ckpt_file **f, const char **p, size_t *n)
{
    const struct ms_str file = ms_plain_text(field_of(place, "relative_path"));
    const int64_t at = ms_plain_int(field_of(place, "offset"), -1);
    const int64_t size = ms_plain_int(field_of(place, "length"), -1);
    if (file.n == 0 || file.n > 200 || ms_str_find(file, '/') >= 0 || at < 0 || size < 0)
        return report_bad(r, name, "no place, or one outside of the folder");
    MS_TRY(open_file(r, file, f));
    if ((uint64_t)at > (*f)->map.n || (uint64_t)size > (*f)->map.n - (uint64_t)at)
        return ms_fail_at(r->err, MS_E_FORMAT, 0, at,
                          "%.*s is cut short: %.*s takes %lld bytes there, the file has %zu",
                          MS_STR_ARG((*f)->path), MS_STR_ARG(name), (long long)size, (*f)->map.n);
    *p = (*f)->map.p + at;
    *n = (size_t)size;
    return MS_OK;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

static enum ms_rc add_box(struct reading *r, struct ms_str name, const struct ms_plain *chunk,
                          uint64_t *have)
{
    struct ckpt_part part = {0};
    uint32_t n, m;
    if (!read_size(field_of(chunk, "offsets"), part.from, &n) ||
        !read_size(field_of(chunk, "sizes"), part.extent, &m) || n != m)
        return report_bad(r, name, "a box without offsets or sizes");
    const struct probe_ckpt_entry *e = &r->c->entries.p[r->c->entries.n - 1];
    uint64_t count = 1;
    for (uint32_t d = 0; d < n; d++) {
        if (n != e->ndim || part.from[d] > e->shape[d] ||
            part.extent[d] > e->shape[d] - part.from[d])
            return report_bad(r, name, "a box outside of the tensor");
        count *= part.extent[d];
    }
    *have += count;
    if (count == 0 || r->dir == NULL)
        return MS_OK;
    const struct ms_plain *place = place_of(r, name, part.from, n);
    struct ckpt_file *f = NULL;
    struct probe_tensor t;
    const char *p;
    size_t bytes;
    if (place == NULL)
        return report_bad(r, name, "a box that lies nowhere");
    MS_TRY(find_bytes(r, name, place, &f, &p, &bytes));
    enum ms_rc rc = probe_tensor_parse(&t, name.p, p, bytes, r->err);
    if (rc != MS_OK)
        return ms_err_wrap(r->err, "%.*s", MS_STR_ARG(f->path));
    bool same = t.ndim == n && t.dtype == e->dtype && t.copy == NULL;
    for (uint32_t d = 0; same && d < n; d++) {
        same = t.shape[d] == part.extent[d];
        part.stride[d] = t.stride[d];
    }
    part.data = t.data;
    part.file = &f->map;
    probe_tensor_close(&t);
    return same ? ckpt__add_part(r->c, &part, r->err)
                : report_bad(r, name, "a box that has another shape or type in its file");
}

static enum ms_rc add_tensor(struct reading *r, struct ms_str name, const struct ms_plain *v)
{
    const struct ms_plain *chunks = field_of(v, "chunks");
    const struct ms_plain *properties = field_of(v, "properties");
    const struct ckpt_file f = {.path = MS_STR(".metadata")};
    enum ms_dtype dtype = MS_DT_NONE;
    uint64_t shape[PROBE_CKPT_DIMS], have = 0;
    uint32_t ndim;
    if (!read_size(field_of(v, "size"), shape, &ndim))
        return report_bad(r, name, "no size, or more than 8 dimensions");
    /* The state of the properties is a tuple that begins with the type. */
    const struct ms_plain *state = ms_plain_item(properties, 2);
    if (!probe_pt_dtype(ms_plain_item(state, 0), &dtype) &&
        !probe_pt_dtype(field_of(properties, "dtype"), &dtype))
        return report_bad(r, name, "no type");
    MS_TRY(ckpt__add(r->c, name, dtype, shape, ndim, false, &f, r->err));
    for (uint32_t i = 0; i < ms_plain_len(chunks); i++)
        MS_TRY(add_box(r, name, chunks->item[i], &have));
    if (have != r->c->entries.p[r->c->entries.n - 1].count)
        return report_bad(r, name, "boxes that do not add up to the tensor");
    return MS_OK;
}

static enum ms_rc add_bytes(struct reading *r, struct ms_str name)
{
    struct ckpt_file *f = NULL;
    const struct ms_plain *place = place_of(r, name, NULL, 0);
    const char *p;
    size_t n;
    if (place == NULL)
        return report_bad(r, name, "a value that lies nowhere");
    if (r->dir == NULL)
        return MS_OK;
    MS_TRY(find_bytes(r, name, place, &f, &p, &n));
    const enum ms_rc rc = ckpt__pt_read(r->c, f, name, p, n, r->err);
    return rc == MS_OK ? MS_OK
                       : ms_err_wrap(r->err, "%.*s: %.*s", MS_STR_ARG(f->path), MS_STR_ARG(name));
}

static enum ms_rc add_states(struct reading *r)
{
    for (uint32_t i = 0; i + 1 < ms_plain_len(r->states); i += 2) {
        const struct ms_str key = ms_plain_text(r->states->item[i]);
        const struct ms_plain *v = r->states->item[i + 1];
        const struct ms_str name = ms_arena_str(r->c->arena, key);
        if (name.p == NULL)
            return ms_arena_fail(r->c->arena, r->err);
        if (v->kind == MS_PLAIN_CALL && field_of(v, "chunks")->kind == MS_PLAIN_LIST)
            MS_TRY(add_tensor(r, name, v));
        else
            MS_TRY(add_bytes(r, name));
    }
    return MS_OK;
}

static enum ms_rc read_metadata(struct reading *r, const char *p, size_t n)
{
    const struct ms_plain *root;
    MS_TRY(ckpt__pickle_read(&root, r->c, p, n, r->err));
    r->states = field_of(root, "state_dict_metadata");
    r->places = field_of(root, "storage_data");
    if (r->states->kind != MS_PLAIN_DICT || r->places->kind != MS_PLAIN_DICT)
        return ms_fail(r->err, MS_E_FORMAT, "no state_dict_metadata or storage_data in .metadata");
    enum ms_rc rc = index_places(r);
    return rc == MS_OK ? add_states(r) : rc;
}

static void free_reading(struct reading *r)
{
    ms_map_free(&r->files);
    ms_map_free(&r->index);
    ms_vec_free(&r->open);
    ms_buf_free(&r->key);
}

enum ms_rc ckpt__metadata_parse(struct probe_ckpt *c, const char *p, size_t n, struct ms_err *err)
{
    struct reading r = {.c = c, .key = {.max = 1 << 20}, .err = err};
    const enum ms_rc rc = read_metadata(&r, p, n);
    free_reading(&r);
    return rc;
}

enum ms_rc ckpt__distributed_read(struct probe_ckpt *c, const char *dir, struct ms_err *err)
{
    struct reading r = {.c = c, .dir = dir, .key = {.max = 1 << 20}, .err = err};
    struct ckpt_file *f = NULL;
    char *path = ms_path_join(dir, ".metadata");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ckpt__map(c, path, &f, err);
    if (rc != MS_OK)
        ms_err_hint(err, "a distributed checkpoint is complete when .metadata is written");
    if (rc == MS_OK) {
        rc = read_metadata(&r, f->map.p, f->map.n);
        rc = rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", dir);
    }
    ms_free(path);
    c->is_tree = true;
    snprintf(c->kind, sizeof c->kind, "distributed, %zu files", r.open.n);
    free_reading(&r);
    return rc;
}
