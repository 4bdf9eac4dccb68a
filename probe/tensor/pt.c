/* SPDX-License-Identifier: MIT
 *
 * pt: reads PyTorch's .pt. A pickle describes where the tensor's elements are in a storage, which
 * the zip archive has as the member data/KEY. The older form has no zip archive: five pickles, then
 * for each storage a count and its bytes.
 */
#include "probe/base/assert.h"
#include "probe/base/pickle.h"
#include "probe/base/zip.h"
#include "probe/tensor/pt_place.h"
#include "probe/tensor/tensor_int.h"

#include <stdio.h>

/* PICKLE_MEMORY is enough for the limits below: 512 + 1024 values of 32 bytes, and the items of
 * containers. */
enum { MAX_PICKLE = 64 << 10, PICKLE_MEMORY = 4 << 20, MAX_KEY = 20, MAX_MEMBERS = 16 };

static enum ms_rc report_bad(struct ms_err *err, const char *what)
{
    return ms_fail(err, MS_E_FORMAT, "the tensor's description has %s", what);
}

/* ---- names allowed in the pickle of a tensor ------------------------------- */

enum {
    TENSOR_V2 = MS_PICKLE_OWN,
    TENSOR_V3,
    TENSOR_NPU,
    PARAMETER,
    STORAGE,
    UNTYPED_STORAGE,
    DTYPE
};

/* A name's number has a type above these bits: the type of a storage, or the type itself. */
enum { TYPE_SHIFT = 8 };

static uint32_t kind_of(const struct ms_plain *v)
{
    return v->kind == MS_PLAIN_NAME ? (uint32_t)v->i & ((1U << TYPE_SHIFT) - 1) : MS_PICKLE_REFUSED;
}

static enum ms_dtype type_of(const struct ms_plain *v)
{
    ms_assert(v->kind == MS_PLAIN_NAME);
    return (enum ms_dtype)(v->i >> TYPE_SHIFT);
}

static const struct {
    const char *module, *name;
    uint8_t kind, dtype;
} names[] = {
    {"torch._utils", "_rebuild_tensor_v2", TENSOR_V2, 0},
    {"torch._utils", "_rebuild_tensor_v3", TENSOR_V3, 0},
    {"torch._utils", "_rebuild_parameter", PARAMETER, 0},
    {"torch_npu.utils.storage", "_rebuild_npu_tensor", TENSOR_NPU, 0},
    {"collections", "OrderedDict", MS_PICKLE_NEW_DICT, 0},
    {"torch.storage", "UntypedStorage", UNTYPED_STORAGE, 0},
    {"torch", "DoubleStorage", STORAGE, MS_DT_F64},
    {"torch", "FloatStorage", STORAGE, MS_DT_F32},
    {"torch", "HalfStorage", STORAGE, MS_DT_F16},
    {"torch", "BFloat16Storage", STORAGE, MS_DT_BF16},
    {"torch", "LongStorage", STORAGE, MS_DT_I64},
    {"torch", "IntStorage", STORAGE, MS_DT_I32},
    {"torch", "ShortStorage", STORAGE, MS_DT_I16},
    {"torch", "CharStorage", STORAGE, MS_DT_I8},
    {"torch", "ByteStorage", STORAGE, MS_DT_U8},
    {"torch", "BoolStorage", STORAGE, MS_DT_BOOL},
    {"torch", "ComplexDoubleStorage", STORAGE, MS_DT_C128},
    {"torch", "ComplexFloatStorage", STORAGE, MS_DT_C64},
};

uint32_t probe_pt_name(struct ms_str module, struct ms_str name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_str_is(module, names[i].module) && ms_str_is(name, names[i].name))
            return names[i].kind | (uint32_t)names[i].dtype << TYPE_SHIFT;
    }
    /* A name with a dot is refused: "torch.half" in module "torch" would otherwise pass as well. */
    enum ms_dtype dtype = MS_DT_NONE;
    if (ms_str_is(module, "torch") && ms_str_find(name, '.') < 0)
        dtype = ms_dtype_parse(name);
    return dtype != MS_DT_NONE ? DTYPE | (uint32_t)dtype << TYPE_SHIFT : MS_PICKLE_REFUSED;
}

#define OPS "()]}NJKMXUaeutscRQhjqr\x80\x85\x86\x87\x88\x89\x8a"

static const struct ms_pickle_rules rules = {.of = "a tensor",
                                             .ops = {OPS, sizeof OPS - 1},
                                             .protocol = 2,
                                             .name_number = probe_pt_name,
                                             .open = 512,
                                             .remembered = 512,
                                             .objects = 256,
                                             .items = 1024,
                                             .digits = 8};

/* Reads one pickle. When that fails on a checkpoint, which uses many operations that a tensor does
 * not, the error says that the file is a checkpoint. */
static enum ms_rc read_pickle(struct ms_plain **root, const char *p, size_t n, size_t *at,
                              struct ms_arena *a, struct ms_err *err)
{
    const enum ms_rc rc = ms_pickle_read(root, p, n, at, &rules, a, err);
    if (rc != MS_OK && *root != NULL &&
        ((*root)->kind == MS_PLAIN_DICT || (*root)->kind == MS_PLAIN_LIST))
        ms_err_hint(err, "the file holds a %s: a checkpoint, not a tensor",
                    (*root)->kind == MS_PLAIN_DICT ? "dictionary" : "list");
    return rc;
}

/* ---- from pickle values to a description ---------------------------------- */

static enum ms_rc read_sizes(const struct ms_plain *v, uint64_t *out, uint32_t *n,
                             struct ms_err *err)
{
    *n = ms_plain_len(v);
    if (v->kind != MS_PLAIN_TUPLE)
        return report_bad(err, "no sizes or strides");
    if (*n > PROBE_MAX_DIMS)
        return ms_fail(err, MS_E_LIMIT, "%u dimensions, more than the %d that are read", *n,
                       PROBE_MAX_DIMS);
    for (uint32_t i = 0; i < *n; i++) {
        const struct ms_plain *item = ms_plain_item(v, i);
        if (item->kind != MS_PLAIN_INT)
            return report_bad(err, "a size that is no number");
        if (item->i < 0)
            return report_bad(err, "a negative size or stride");
        out[i] = (uint64_t)item->i;
    }
    return MS_OK;
}

static bool is_key(struct ms_str s)
{
    return s.n <= MAX_KEY && ms_str_all_digits(s);
}

/* Reads ('storage', type, key, location, count [, None]). Only torch before 0.4 wrote a view into
 * another storage in place of None. */
static enum ms_rc read_storage(const struct ms_plain *v, struct probe_pt_place *d, bool *untyped,
                               struct ms_err *err)
{
    const struct ms_plain *id = ms_plain_item(v, 0);
    const struct ms_plain *word = ms_plain_item(id, 0);
    const struct ms_plain *type = ms_plain_item(id, 1);
    const struct ms_plain *key = ms_plain_item(id, 2);
    const struct ms_plain *count = ms_plain_item(id, 4);
    const uint32_t n = ms_plain_len(id);
    if (v->kind != MS_PLAIN_OUTSIDE || id->kind != MS_PLAIN_TUPLE || word->kind != MS_PLAIN_TEXT ||
        !ms_str_is(word->s, "storage"))
        return report_bad(err, "no storage");
    if (n < 5 || n > 6 || ms_plain_item(id, 5)->kind != MS_PLAIN_NONE)
        return report_bad(err, "a storage of another form");
    if (kind_of(type) != STORAGE && kind_of(type) != UNTYPED_STORAGE)
        return report_bad(err, "a storage without a type");
    if (key->kind != MS_PLAIN_TEXT || !is_key(key->s) || count->kind != MS_PLAIN_INT ||
        count->i < 0)
        return report_bad(err, "a storage without key or size");
    *untyped = kind_of(type) == UNTYPED_STORAGE;
    d->dtype = type_of(type);
    d->key = key->s;
    d->storage_unit = *untyped ? 1 : ms_dtype_size(d->dtype);
    if (__builtin_mul_overflow((uint64_t)count->i, d->storage_unit, &d->storage_bytes))
        return report_bad(err, "a storage of impossible size");
    return MS_OK;
}

static bool is_set(const struct ms_plain *dict, const char *key)
{
    const struct ms_plain *v = ms_plain_get(dict, key);
    return v != NULL && (v->kind != MS_PLAIN_BOOL || v->i != 0);
}

/* Tells whether the tensor has a private layout, which is named as npu_format_/NZ or similar. */
static bool has_private_format(const struct ms_plain *dict)
{
    const struct ms_str prefix = MS_STR("npu_format_/");
    for (uint32_t i = 0; i + 1 < ms_plain_len(dict); i += 2) {
        const struct ms_plain *k = ms_plain_item(dict, i);
        if (k->kind == MS_PLAIN_TEXT && ms_str_starts(k->s, prefix) &&
            !ms_str_is(k->s, "npu_format_/ND"))
            return true;
    }
    return false;
}

static enum ms_rc check_metadata(const struct ms_plain *v, struct ms_err *err)
{
    if (v->kind == MS_PLAIN_NONE || v->kind == MS_PLAIN_BOOL || v->kind == MS_PLAIN_INT)
        return MS_OK;
    if (v->kind != MS_PLAIN_DICT)
        return report_bad(err, "unknown metadata");
    if (is_set(v, "conj") || is_set(v, "neg"))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "the tensor is a conjugate or negative view; save x.resolve_conj()"
                       ".resolve_neg()");
    if (has_private_format(v))
        return ms_fail(err, MS_E_UNSUPPORTED, "the tensor has a private NPU layout; save x.cpu()");
    return MS_OK;
}

/* Reads the arguments of _rebuild_tensor_v2: storage, offset, size, stride, requires_grad, hooks [,
 * metadata], or of _rebuild_tensor_v3: the same with the dtype before the metadata. */
static enum ms_rc read_tensor(const struct ms_plain *args, bool v3, struct probe_pt_place *d,
                              struct ms_err *err)
{
    const uint32_t n = ms_plain_len(args), need = v3 ? 7 : 6;
    const struct ms_plain *offset = ms_plain_item(args, 1);
    bool untyped;
    uint32_t strides;
    if (n < need || n > need + 1)
        return report_bad(err, "a wrong number of parts");
    MS_TRY(read_storage(ms_plain_item(args, 0), d, &untyped, err));
    if (untyped != v3)
        return report_bad(err, "a storage of the wrong kind");
    if (offset->kind != MS_PLAIN_INT || offset->i < 0)
        return report_bad(err, "no offset");
    d->offset = (uint64_t)offset->i;
    MS_TRY(read_sizes(ms_plain_item(args, 2), d->shape, &d->ndim, err));
    MS_TRY(read_sizes(ms_plain_item(args, 3), d->stride, &strides, err));
    if (strides != d->ndim)
        return report_bad(err, "not as many strides as sizes");
    if (v3) {
        const struct ms_plain *type = ms_plain_item(args, 6);
        if (kind_of(type) != DTYPE)
            return report_bad(err, "no dtype");
        d->dtype = type_of(type);
    }
    return check_metadata(ms_plain_item(args, need), err);
}

static enum ms_rc refuse_root(const struct ms_plain *root, struct ms_err *err)
{
    const char *what = root->kind == MS_PLAIN_DICT ? "a dictionary"
                       : root->kind == MS_PLAIN_LIST || root->kind == MS_PLAIN_TUPLE ? "a list"
                                                                                     : NULL;
    if (what == NULL)
        return ms_fail(err, MS_E_UNSUPPORTED, "holds no tensor");
    return ms_fail(err, MS_E_UNSUPPORTED, "holds %s: a checkpoint, not a tensor", what);
}

bool probe_pt_is_tensor(const struct ms_plain *v)
{
    const uint32_t kind = v->kind == MS_PLAIN_CALL ? kind_of(ms_plain_item(v, 0)) : 0;
    return kind == TENSOR_V2 || kind == TENSOR_NPU || kind == TENSOR_V3 || kind == PARAMETER;
}

bool probe_pt_dtype(const struct ms_plain *v, enum ms_dtype *dtype)
{
    if (kind_of(v) != DTYPE)
        return false;
    *dtype = type_of(v);
    return true;
}

/* Follows parameters to their tensor. Arguments are older than their call, so none leads back. */
enum ms_rc probe_pt_describe(const struct ms_plain *root, struct probe_pt_place *d,
                             struct ms_err *err)
{
    while (root->kind == MS_PLAIN_CALL) {
        const struct ms_plain *callee = ms_plain_item(root, 0);
        const struct ms_plain *args = ms_plain_item(root, 1);
        switch (kind_of(callee)) {
        case TENSOR_V2:
        case TENSOR_NPU:
            return read_tensor(args, false, d, err);
        case TENSOR_V3:
            return read_tensor(args, true, d, err);
        case PARAMETER: /* a tensor with a flag */
            root = ms_plain_item(args, 0);
            break;
        default:
            return refuse_root(root, err);
        }
    }
    return refuse_root(root, err);
}

/* Sets t from the description and the bytes of its storage. */
enum ms_rc probe_pt_bind(struct probe_tensor *t, const struct probe_pt_place *d,
                         const char *storage, size_t n, bool swap, struct ms_err *err)
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

/* Finds data.pkl and its directory, which all members share. */
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

/* Refuses a TorchScript archive, which holds a program, some of it compressed. */
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
                                  struct probe_pt_place *d, struct ms_err *err)
{
    struct ms_arena *a = ms_arena_new(PICKLE_MEMORY);
    struct ms_plain *root;
    if (a == NULL)
        return ms_no_memory(err);
    const size_t begin = (size_t)(m->data - file), end = begin + m->size;
    size_t at = begin;
    enum ms_rc rc = read_pickle(&root, file, end, &at, a, err);
    if (rc == MS_OK)
        rc = probe_pt_describe(root, d, err);
    ms_arena_free(a);
    return rc;
}

/* Takes the CRC of the storage, which is that of the tensor when the tensor is the whole
 * storage. */
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
    struct probe_pt_place d;
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
    MS_TRY(probe_pt_bind(t, &d, data->data, data->size, swap, err));
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

/* Refuses files of big-endian machines. The data is specified as little-endian on every machine,
 * but old writers on big-endian machines did not follow that. */
static enum ms_rc check_machine(const struct ms_plain *info, struct ms_err *err)
{
    if (info->kind != MS_PLAIN_DICT || !is_set(info, "little_endian"))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "was not written on a little-endian machine; save it with a newer torch");
    return MS_OK;
}

static enum ms_rc check_keys(const struct ms_plain *keys, struct ms_str key, struct ms_err *err)
{
    const struct ms_plain *first = ms_plain_item(keys, 0);
    if (keys->kind != MS_PLAIN_LIST || ms_plain_len(keys) != 1 || first->kind != MS_PLAIN_TEXT ||
        !ms_str_eq(first->s, key))
        return report_bad(err, "another list of storages than its own");
    return MS_OK;
}

/* Reads the three pickles that follow; *at is then where the storage begins. */
static enum ms_rc read_pickles(const char *p, size_t n, size_t *at, struct probe_pt_place *d,
                               struct ms_arena *a, struct ms_err *err)
{
    struct ms_plain *v;
    MS_TRY(read_pickle(&v, p, n, at, a, err));
    MS_TRY(check_machine(v, err));
    MS_TRY(read_pickle(&v, p, n, at, a, err));
    MS_TRY(probe_pt_describe(v, d, err));
    MS_TRY(read_pickle(&v, p, n, at, a, err));
    return check_keys(v, d->key, err);
}

enum ms_rc probe__pt_legacy_read(struct probe_tensor *t, const char *p, size_t n,
                                 struct ms_err *err)
{
    size_t at = MAGIC_SIZE + VERSION_SIZE;
    if (n < at || memcmp(p + MAGIC_SIZE, legacy_version, VERSION_SIZE) != 0)
        return ms_fail_at(err, MS_E_FORMAT, 0, MAGIC_SIZE, "another version than 1001");
    struct ms_arena *a = ms_arena_new(PICKLE_MEMORY);
    if (a == NULL)
        return ms_no_memory(err);
    struct probe_pt_place d;
    const enum ms_rc rc = read_pickles(p, n, &at, &d, a, err);
    ms_arena_free(a);
    MS_TRY(rc);
    if (n - at < 8)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n, "ends before the tensor's bytes");
    if (probe__le64(p + at) != d.storage_bytes / d.storage_unit)
        return ms_fail_at(
            err, MS_E_FORMAT, 0, (int64_t)at,
            "a storage of %llu elements, but the tensor's description says %llu bytes",
            (unsigned long long)probe__le64(p + at), (unsigned long long)d.storage_bytes);
    at += 8;
    return probe_pt_bind(t, &d, p + at, n - at, false, err);
}
