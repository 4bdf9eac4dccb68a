/* SPDX-License-Identifier: MIT
 *
 * tensor_pt: PyTorch's .pt.  A pickle describes the tensor: how its elements lie
 * in a storage, which the zip keeps as the member data/KEY.  The older form
 * has no zip: five pickles, then for each storage a count and its bytes.
 */
#include "probe/base/mem.h"
#include "probe/tensor_int.h"
#include "probe/zip.h"

#include <stdio.h>

enum { MAX_PICKLE = 64 << 10, MAX_KEY = 20, MAX_MEMBERS = 16 };

/* What the pickle says. */
struct description {
    enum ms_dtype dtype;
    struct ms_str key;
    uint64_t storage_bytes, storage_unit;
    uint64_t offset; /* in elements */
    uint64_t shape[PROBE_MAX_DIMS], stride[PROBE_MAX_DIMS];
    uint32_t ndim;
};

struct reader {
    struct probe__pickle *pk;
    struct ms_err *err;
};

static enum ms_rc bad(const struct reader *r, const char *what)
{
    return ms_fail(r->err, MS_E_FORMAT, "the tensor's description has %s", what);
}

/* ---- from pickle values to a description ---------------------------------- */

static enum ms_rc read_sizes(const struct reader *r, struct probe__pk_value v, uint64_t *out,
                             uint32_t *n)
{
    *n = probe__pk_len(r->pk, v);
    if (v.kind != PK_TUPLE)
        return bad(r, "no sizes or strides");
    if (*n > PROBE_MAX_DIMS)
        return ms_fail(r->err, MS_E_LIMIT, "%u dimensions, more than the %d that are read", *n,
                       PROBE_MAX_DIMS);
    for (uint32_t i = 0; i < *n; i++) {
        const struct probe__pk_value item = probe__pk_item(r->pk, v, i);
        if (item.kind != PK_INT)
            return bad(r, "a size that is no number");
        if (item.i < 0)
            return bad(r, "a negative size or stride");
        out[i] = (uint64_t)item.i;
    }
    return MS_OK;
}

static bool is_key(struct ms_str s)
{
    return s.n <= MAX_KEY && ms_str_all_digits(s);
}

/* ('storage', type, key, location, count [, None]).  A view into another storage, which only torch
 * before 0.4 wrote, would stand in place of None. */
static enum ms_rc read_storage(const struct reader *r, struct probe__pk_value v,
                               struct description *d, bool *untyped)
{
    const struct probe__pk_value id = probe__pk_item(r->pk, v, 0);
    const struct probe__pk_value word = probe__pk_item(r->pk, id, 0);
    const struct probe__pk_value type = probe__pk_item(r->pk, id, 1);
    const struct probe__pk_value key = probe__pk_item(r->pk, id, 2);
    const struct probe__pk_value count = probe__pk_item(r->pk, id, 4);
    const uint32_t n = probe__pk_len(r->pk, id);
    if (v.kind != PK_PERSID || id.kind != PK_TUPLE || word.kind != PK_STR ||
        !ms_str_is(word.s, "storage"))
        return bad(r, "no storage");
    if (n < 5 || n > 6 || probe__pk_item(r->pk, id, 5).kind != PK_NONE)
        return bad(r, "a storage of another form");
    if (type.kind != PK_GLOBAL ||
        (type.global != PKG_STORAGE && type.global != PKG_UNTYPED_STORAGE))
        return bad(r, "a storage without a type");
    if (key.kind != PK_STR || !is_key(key.s) || count.kind != PK_INT || count.i < 0)
        return bad(r, "a storage without key or size");
    *untyped = type.global == PKG_UNTYPED_STORAGE;
    d->dtype = (enum ms_dtype)type.dtype;
    d->key = key.s;
    d->storage_unit = *untyped ? 1 : ms_dtype_size(d->dtype);
    if (__builtin_mul_overflow((uint64_t)count.i, d->storage_unit, &d->storage_bytes))
        return bad(r, "a storage of impossible size");
    return MS_OK;
}

static bool set_in(const struct reader *r, struct probe__pk_value dict, const char *key)
{
    for (uint32_t i = 0; i + 1 < probe__pk_len(r->pk, dict); i += 2) {
        const struct probe__pk_value k = probe__pk_item(r->pk, dict, i);
        const struct probe__pk_value v = probe__pk_item(r->pk, dict, i + 1);
        if (k.kind == PK_STR && ms_str_is(k.s, key))
            return v.kind != PK_BOOL || v.i != 0;
    }
    return false;
}

/* A private layout would be named as npu_format_/NZ or the like. */
static bool has_private_format(const struct reader *r, struct probe__pk_value dict)
{
    const struct ms_str prefix = MS_STR("npu_format_/");
    for (uint32_t i = 0; i + 1 < probe__pk_len(r->pk, dict); i += 2) {
        const struct probe__pk_value k = probe__pk_item(r->pk, dict, i);
        if (k.kind == PK_STR && ms_str_starts(k.s, prefix) && !ms_str_is(k.s, "npu_format_/ND"))
            return true;
    }
    return false;
}

static enum ms_rc check_metadata(const struct reader *r, struct probe__pk_value v)
{
    if (v.kind == PK_NONE || v.kind == PK_BOOL || v.kind == PK_INT)
        return MS_OK;
    if (v.kind != PK_DICT)
        return bad(r, "unknown metadata");
    if (set_in(r, v, "conj") || set_in(r, v, "neg"))
        return ms_fail(r->err, MS_E_UNSUPPORTED,
                       "the tensor is a conjugate or negative view; save x.resolve_conj()"
                       ".resolve_neg()");
    if (has_private_format(r, v))
        return ms_fail(r->err, MS_E_UNSUPPORTED,
                       "the tensor has a private NPU layout; save x.cpu()");
    return MS_OK;
}

/* _rebuild_tensor_v2: storage, offset, size, stride, requires_grad, hooks [, metadata]
 * _rebuild_tensor_v3: the same with the dtype before the metadata */
static enum ms_rc read_tensor(const struct reader *r, struct probe__pk_value args, bool v3,
                              struct description *d)
{
    const uint32_t n = probe__pk_len(r->pk, args), need = v3 ? 7 : 6;
    const struct probe__pk_value offset = probe__pk_item(r->pk, args, 1);
    bool untyped;
    uint32_t strides;
    if (n < need || n > need + 1)
        return bad(r, "a wrong number of parts");
    MS_TRY(read_storage(r, probe__pk_item(r->pk, args, 0), d, &untyped));
    if (untyped != v3)
        return bad(r, "a storage of the wrong kind");
    if (offset.kind != PK_INT || offset.i < 0)
        return bad(r, "no offset");
    d->offset = (uint64_t)offset.i;
    MS_TRY(read_sizes(r, probe__pk_item(r->pk, args, 2), d->shape, &d->ndim));
    MS_TRY(read_sizes(r, probe__pk_item(r->pk, args, 3), d->stride, &strides));
    if (strides != d->ndim)
        return bad(r, "not as many strides as sizes");
    if (v3) {
        const struct probe__pk_value type = probe__pk_item(r->pk, args, 6);
        if (type.kind != PK_GLOBAL || type.global != PKG_DTYPE)
            return bad(r, "no dtype");
        d->dtype = (enum ms_dtype)type.dtype;
    }
    return check_metadata(r, probe__pk_item(r->pk, args, need));
}

static enum ms_rc refuse_root(const struct reader *r, struct probe__pk_value root)
{
    const char *what = root.kind == PK_DICT                            ? "a dictionary"
                       : root.kind == PK_LIST || root.kind == PK_TUPLE ? "a list"
                                                                       : NULL;
    if (what == NULL)
        return ms_fail(r->err, MS_E_UNSUPPORTED, "holds no tensor");
    return ms_fail(r->err, MS_E_UNSUPPORTED, "holds %s: a checkpoint, not a tensor", what);
}

static enum ms_rc describe(const struct reader *r, struct probe__pk_value root,
                           struct description *d)
{
    enum { PARAMETERS = 4 };
    for (int i = 0; i < PARAMETERS && root.kind == PK_CALL; i++) {
        const struct probe__pk_value callee = probe__pk_item(r->pk, root, 0);
        const struct probe__pk_value args = probe__pk_item(r->pk, root, 1);
        switch (callee.global) {
        case PKG_TENSOR_V2:
        case PKG_TENSOR_NPU:
            return read_tensor(r, args, false, d);
        case PKG_TENSOR_V3:
            return read_tensor(r, args, true, d);
        case PKG_PARAMETER: /* a tensor with a flag */
            root = probe__pk_item(r->pk, args, 0);
            break;
        default:
            return refuse_root(r, root);
        }
    }
    return refuse_root(r, root);
}

/* Give t the description and the bytes of its storage. */
static enum ms_rc take(struct probe_tensor *t, const struct description *d, const char *storage,
                       size_t n, bool swap, struct ms_err *err)
{
    if (d->storage_bytes != n)
        return ms_fail(err, MS_E_FORMAT,
                       "a storage of %zu bytes, but the tensor's description says %llu", n,
                       (unsigned long long)d->storage_bytes);
    MS_TRY(probe__tensor_set(t, d->dtype, d->shape, d->ndim, err));
    memcpy(t->stride, d->stride, d->ndim * sizeof *d->stride);
    return probe__tensor_place(t, storage, n, d->offset, swap, err);
}

/* ---- the zip form --------------------------------------------------------- */

static enum ms_rc read_archive(struct probe_zip *z, const char *p, size_t n, struct ms_err *err)
{
    enum ms_rc rc = probe_zip_read(z, p, n, MAX_MEMBERS, err);
    if (rc == MS_E_LIMIT)
        ms_err_hint(err, "is this a checkpoint?");
    return rc;
}

/* The directory all members share: that of data.pkl. */
static enum ms_rc find_pickle(const struct probe_zip *z, struct ms_str *prefix,
                              const struct probe_zip_member **pkl, struct ms_err *err)
{
    const struct ms_str tail = MS_STR("/data.pkl");
    *pkl = NULL;
    for (uint32_t i = 0; i < z->n; i++) {
        if (!ms_str_ends(z->member[i].name, tail))
            continue;
        if (*pkl != NULL)
            return ms_fail(err, MS_E_FORMAT, "two members data.pkl in the zip archive");
        *pkl = &z->member[i];
        *prefix = ms_str_sub((*pkl)->name, 0, (*pkl)->name.n - tail.n);
    }
    if (*pkl == NULL)
        return ms_fail(err, MS_E_FORMAT, "no member data.pkl: a zip archive, but not a tensor");
    return MS_OK;
}

/* A TorchScript archive holds a program, some of it compressed. */
static enum ms_rc refuse_script(const struct probe_zip *z, struct ms_err *err)
{
    for (uint32_t i = 0; i < z->n; i++) {
        const struct ms_str name = z->member[i].name;
        if (ms_str_ends(name, MS_STR("/constants.pkl")) ||
            ms_str_find_str(name, MS_STR("/code/")) >= 0)
            return ms_fail(err, MS_E_UNSUPPORTED, "is a TorchScript archive, not a tensor");
    }
    return MS_OK;
}

static enum ms_rc refuse_compressed(const struct probe_zip *z, struct ms_err *err)
{
    for (uint32_t i = 0; i < z->n; i++) {
        if (z->member[i].method != 0)
            return ms_fail_at(err, MS_E_UNSUPPORTED, 0, (int64_t)z->member[i].begin,
                              "the zip archive is compressed; torch.save writes it without");
    }
    return MS_OK;
}

static enum ms_rc read_byteorder(const struct probe_zip *z, struct ms_str prefix, bool *swap,
                                 struct ms_err *err)
{
    const struct probe_zip_member *m = probe_zip_find(z, prefix, "/byteorder");
    *swap = false;
    if (m == NULL)
        return MS_OK;
    const struct ms_str order = {m->data, m->size < 16 ? (uint32_t)m->size : 16};
    *swap = ms_str_is(order, "big");
    if (!*swap && !ms_str_is(order, "little"))
        return ms_fail(err, MS_E_FORMAT, "byteorder is neither little nor big");
    return MS_OK;
}

static enum ms_rc check_pickle_member(const struct probe_zip_member *m, struct ms_err *err)
{
    if (m->size > MAX_PICKLE) {
        ms_fail(err, MS_E_LIMIT, "data.pkl has %zu bytes; that of a tensor has at most %d", m->size,
                MAX_PICKLE);
        ms_err_hint(err, "is this a checkpoint?");
        return MS_E_LIMIT;
    }
    const uint32_t crc = ms_crc32(0, m->data, m->size);
    if (m->crc != 0 && m->crc != crc)
        return ms_fail(err, MS_E_FORMAT,
                       "data.pkl has CRC-32 %08x but %08x was stored; the file is damaged", crc,
                       m->crc);
    return MS_OK;
}

static enum ms_rc describe_member(const struct probe_zip_member *m, const char *file,
                                  struct description *d, struct ms_err *err)
{
    struct reader r = {probe__pickle_new(), err};
    struct probe__pk_value root;
    if (r.pk == NULL)
        return ms_no_memory(err);
    const size_t begin = (size_t)(m->data - file), end = begin + m->size;
    size_t at = begin;
    enum ms_rc rc = probe__pickle_run(r.pk, file, end, &at, &root, err);
    if (rc == MS_OK)
        rc = describe(&r, root, d);
    ms_free(r.pk);
    return rc;
}

/* The CRC of the storage is that of the tensor when the tensor is all of it. */
static void take_crc(struct probe_tensor *t, const struct probe_zip_member *m)
{
    t->has_crc = m->crc != 0 && t->contiguous && t->copy == NULL &&
                 t->count * ms_dtype_size(t->dtype) == m->size;
    t->crc = t->has_crc ? m->crc : 0;
}

enum ms_rc probe__pt_read(struct probe_tensor *t, const char *p, size_t n, struct ms_err *err)
{
    struct probe_zip z;
    struct ms_str prefix;
    const struct probe_zip_member *pkl;
    struct description d;
    bool swap;
    MS_TRY(read_archive(&z, p, n, err));
    MS_TRY(refuse_script(&z, err));
    MS_TRY(refuse_compressed(&z, err));
    MS_TRY(find_pickle(&z, &prefix, &pkl, err));
    MS_TRY(check_pickle_member(pkl, err));
    MS_TRY(read_byteorder(&z, prefix, &swap, err));
    MS_TRY(describe_member(pkl, p, &d, err));
    char name[8 + MAX_KEY];
    snprintf(name, sizeof name, "/data/%.*s", MS_STR_ARG(d.key));
    const struct probe_zip_member *data = probe_zip_find(&z, prefix, name);
    if (data == NULL)
        return ms_fail(err, MS_E_FORMAT, "no member %s with the tensor's bytes", name + 1);
    MS_TRY(take(t, &d, data->data, data->size, swap, err));
    take_crc(t, data);
    return MS_OK;
}

/* ---- the older form ------------------------------------------------------- */

/* The first two pickles: a magic number and a version. */
static const char legacy_magic[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
static const char legacy_version[] = "\x80\x02M\xe9\x03.";
enum { MAGIC_SIZE = sizeof legacy_magic - 1, VERSION_SIZE = sizeof legacy_version - 1 };

bool probe__is_pt_legacy(const char *p, size_t n)
{
    return n >= MAGIC_SIZE && memcmp(p, legacy_magic, MAGIC_SIZE) == 0;
}

/* The data is little-endian whatever the machine was; old writers on others are not trusted. */
static enum ms_rc check_machine(const struct reader *r, struct probe__pk_value info)
{
    if (info.kind != PK_DICT || !set_in(r, info, "little_endian"))
        return ms_fail(r->err, MS_E_UNSUPPORTED,
                       "was not written on a little-endian machine; save it with a newer torch");
    return MS_OK;
}

static enum ms_rc check_keys(const struct reader *r, struct probe__pk_value keys, struct ms_str key)
{
    const struct probe__pk_value first = probe__pk_item(r->pk, keys, 0);
    if (keys.kind != PK_LIST || probe__pk_len(r->pk, keys) != 1 || first.kind != PK_STR ||
        !ms_str_eq(first.s, key))
        return bad(r, "another list of storages than its own");
    return MS_OK;
}

/* The three pickles that follow; *at is left where the storage begins. */
static enum ms_rc read_pickles(const struct reader *r, const char *p, size_t n, size_t *at,
                               struct description *d)
{
    struct probe__pk_value v;
    MS_TRY(probe__pickle_run(r->pk, p, n, at, &v, r->err));
    MS_TRY(check_machine(r, v));
    MS_TRY(probe__pickle_run(r->pk, p, n, at, &v, r->err));
    MS_TRY(describe(r, v, d));
    MS_TRY(probe__pickle_run(r->pk, p, n, at, &v, r->err));
    return check_keys(r, v, d->key);
}

enum ms_rc probe__pt_legacy_read(struct probe_tensor *t, const char *p, size_t n,
                                 struct ms_err *err)
{
    size_t at = MAGIC_SIZE + VERSION_SIZE;
    if (n < at || memcmp(p + MAGIC_SIZE, legacy_version, VERSION_SIZE) != 0)
        return ms_fail_at(err, MS_E_FORMAT, 0, MAGIC_SIZE, "another version than 1001");
    struct reader r = {probe__pickle_new(), err};
    if (r.pk == NULL)
        return ms_no_memory(err);
    struct description d;
    const enum ms_rc rc = read_pickles(&r, p, n, &at, &d);
    ms_free(r.pk);
    MS_TRY(rc);
    if (n - at < 8)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n, "ends before the tensor's bytes");
    if (probe__le64(p + at) != d.storage_bytes / d.storage_unit)
        return ms_fail_at(
            err, MS_E_FORMAT, 0, (int64_t)at,
            "a storage of %llu elements, but the tensor's description says %llu bytes",
            (unsigned long long)probe__le64(p + at), (unsigned long long)d.storage_bytes);
    at += 8;
    return take(t, &d, p + at, n - at, false, err);
}
