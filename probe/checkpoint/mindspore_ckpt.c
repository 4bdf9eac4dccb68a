/* SPDX-License-Identifier: MIT
 *
 * mindspore_ckpt: a .ckpt of MindSpore: a protobuf message that repeats a name with a tensor.
 *
 *     Checkpoint  1: repeated Value { 1: tag, 2: TensorProto }
 *     TensorProto 1: repeated dims, 2: tensor_type, 3: tensor_content
 *
 * A large tensor is written in several values of one tag, whose contents follow each other.
 */
#include "probe/checkpoint/checkpoint_int.h"

struct wire {
    const char *p;
    size_t at, end;
};

struct value {
    struct ms_str tag, type;
    uint64_t dims[PROBE_CKPT_DIMS];
    uint32_t ndim;
    const char *content;
    size_t bytes;
    bool has_tensor;
};

struct reading {
    struct probe_ckpt *c;
    const struct ckpt_file *f;
    struct wire top;
    struct ms_err *err;
    uint64_t have; /* elements of the last tensor so far */
};

static enum ms_rc report_bad(struct reading *r, size_t at, const char *what)
{
    return ms_fail_at(r->err, MS_E_FORMAT, 0, (int64_t)at, "%s", what);
}

static bool read_varint(struct wire *w, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        const unsigned char byte = (unsigned char)w->p[w->at++];
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads a field: its number and wire type, and the number or the bytes that follow. */
static bool read_field(struct wire *w, uint32_t *field, uint64_t *number, struct wire *bytes)
{
    uint64_t key, n = 0;
    if (!read_varint(w, &key) || key >> 3 > UINT32_MAX)
        return false;
    *field = (uint32_t)(key >> 3);
    *bytes = (struct wire){w->p, w->at, w->at};
    *number = 0;
    switch (key & 7) {
    case 0:
        return read_varint(w, number);
    case 1:
        n = 8;
        break;
    case 2:
        if (!read_varint(w, &n))
            return false;
        break;
    case 5:
        n = 4;
        break;
    default:
        return false;
    }
    if (n > w->end - w->at)
        return false;
    *bytes = (struct wire){w->p, w->at, w->at + (size_t)n};
    w->at += (size_t)n;
    return true;
}

static struct ms_str text_of(const struct wire *w)
{
    const size_t n = w->end - w->at;
    return (struct ms_str){w->p + w->at, n < 1 << 20 ? (uint32_t)n : 1 << 20};
}

static enum ms_rc add_dim(struct reading *r, struct value *v, uint64_t dim, size_t at)
{
    if (v->ndim == PROBE_CKPT_DIMS)
        return report_bad(r, at, "a tensor of more than 8 dimensions");
    v->dims[v->ndim++] = dim;
    return MS_OK;
}

static enum ms_rc read_tensor(struct reading *r, struct wire w, struct value *v)
{
    uint32_t field;
    uint64_t number;
    struct wire bytes;
    v->has_tensor = true;
    while (w.at < w.end) {
        const size_t at = w.at;
        if (!read_field(&w, &field, &number, &bytes))
            return report_bad(r, at, "a tensor whose fields reach past its end");
        if (field == 1 && bytes.at == bytes.end)
            MS_TRY(add_dim(r, v, number, at));
        while (field == 1 && bytes.at < bytes.end) { /* packed numbers */
            if (!read_varint(&bytes, &number))
                return report_bad(r, at, "a dimension without end");
            MS_TRY(add_dim(r, v, number, at));
        }
        if (field == 2)
            v->type = text_of(&bytes);
        if (field == 3) {
            v->content = bytes.p + bytes.at;
            v->bytes = bytes.end - bytes.at;
        }
    }
    return MS_OK;
}

static enum ms_rc read_value(struct reading *r, struct wire w, struct value *v)
{
    uint32_t field;
    uint64_t number;
    struct wire bytes;
    while (w.at < w.end) {
        const size_t at = w.at;
        if (!read_field(&w, &field, &number, &bytes))
            return report_bad(r, at, "a value whose fields reach past its end");
        if (field == 1)
            v->tag = text_of(&bytes);
        if (field == 2)
            MS_TRY(read_tensor(r, bytes, v));
    }
    return v->tag.n != 0 ? MS_OK : report_bad(r, w.end, "a value without a name");
}

/* Checks that the last tensor got all of its elements. */
static enum ms_rc check_last(struct reading *r)
{
    char shown[MS_STR_SHOWN];
    if (r->c->entries.n == 0)
        return MS_OK;
    const struct probe_ckpt_entry *e = &r->c->entries.p[r->c->entries.n - 1];
    if (e->dtype == MS_DT_NONE || r->have == e->count)
        return MS_OK;
    return ms_fail_at(r->err, MS_E_FORMAT, 0, (int64_t)r->top.at,
                      "%s has %llu elements but its shape says %llu", ms_str_shown(shown, e->name),
                      (unsigned long long)r->have, (unsigned long long)e->count);
}

static bool continues_last(const struct reading *r, const struct value *v)
{
    if (r->c->entries.n == 0)
        return false;
    const struct probe_ckpt_entry *e = &r->c->entries.p[r->c->entries.n - 1];
    return e->dtype != MS_DT_NONE && ms_str_eq(e->name, v->tag) && r->have < e->count;
}

/* Strings and numbers of append_dict have types of their own, which no tensor has. */
static enum ms_rc add_foreign(struct reading *r, const struct value *v)
{
    struct ms_plain *text = ms_plain_new(r->c->arena, MS_PLAIN_TEXT);
    if (text == NULL)
        return ms_arena_fail(r->c->arena, r->err);
    text->s = (struct ms_str){v->content != NULL ? v->content : "",
                              v->bytes < 1 << 20 ? (uint32_t)v->bytes : 1 << 20};
    return ckpt__add_value(r->c, v->tag, text, r->f, r->err);
}

static enum ms_rc add_tensor(struct reading *r, const struct value *v, size_t at)
{
    enum ms_dtype dtype = ms_dtype_parse(v->type);
    char shown[MS_STR_SHOWN];
    if (dtype == MS_DT_NONE && ms_str_is_folded(v->type, "str"))
        return check_last(r) == MS_OK ? add_foreign(r, v) : MS_E_FORMAT;
    if (dtype == MS_DT_NONE)
        return ms_fail_at(r->err, MS_E_UNSUPPORTED, 0, (int64_t)at, "%s has the unknown type %.*s",
                          ms_str_shown(shown, v->tag), v->type.n < 32 ? (int)v->type.n : 32,
                          v->type.p != NULL ? v->type.p : "");
    const uint64_t n = v->bytes / ms_dtype_size(dtype);
    /* A scalar is written with the shape [0]. */
    const bool scalar = v->ndim == 1 && v->dims[0] == 0 && n == 1;
    if (!continues_last(r, v)) {
        MS_TRY(check_last(r));
        MS_TRY(ckpt__add(r->c, v->tag, dtype, v->dims, scalar ? 0 : v->ndim, true, r->f, r->err));
        r->have = 0;
    }
    const struct ckpt_part part = {.data = v->content,
                                   .from = {r->have},
                                   .extent = {n},
                                   .stride = {1},
                                   .file = r->f->map.p != NULL ? &r->f->map : NULL};
    r->have += n;
    return n != 0 ? ckpt__add_part(r->c, &part, r->err) : MS_OK;
}

bool ckpt__is_mindspore(const char *p, size_t n)
{
    struct wire w = {p, 0, n}, value = {0};
    uint32_t field;
    uint64_t number;
    if (n < 4 || p[0] != 0x0a || !read_field(&w, &field, &number, &value))
        return n >= 4 && p[0] == 0x0a; /* its first value may be cut short */
    return value.end - value.at > 2 && p[value.at] == 0x0a;
}

enum ms_rc ckpt__mindspore_read(struct probe_ckpt *c, const struct ckpt_file *f, const char *p,
                                size_t n, struct ms_err *err)
{
    struct reading r = {.c = c, .f = f, .top = {p, 0, n}, .err = err};
    while (r.top.at < n) {
        const size_t at = r.top.at;
        struct value v = {0};
        struct wire bytes;
        uint64_t number;
        uint32_t field;
        if (!read_field(&r.top, &field, &number, &bytes))
            return report_bad(&r, at,
                              "a value that reaches past the end; the file is cut short, or "
                              "no checkpoint of MindSpore");
        if (field != 1)
            continue;
        MS_TRY(read_value(&r, bytes, &v));
        if (v.has_tensor)
            MS_TRY(add_tensor(&r, &v, at));
    }
    return check_last(&r);
}
