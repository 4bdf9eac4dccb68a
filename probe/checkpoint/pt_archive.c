/* SPDX-License-Identifier: MIT
 *
 * pt_archive: a checkpoint of torch.save: a zip archive whose pickle holds dictionaries, objects and
 * tensors, and a member for each storage. Objects are never made; what their pickle tells of them is
 * kept as plain values.
 */
#include "probe/base/zip.h"
#include "probe/checkpoint/checkpoint_int.h"
#include "probe/tensor/pt_place.h"

#include <stdio.h>

struct ckpt_archive {
    struct probe_ckpt *c;
    const struct ckpt_file *f;
    struct probe_zip_large zip;
    struct ms_str prefix; /* folder of the members */
    const char *p;
    bool swap;
    const struct ms_plain *root;
    struct ms_buf name; /* path of the value that is added */
};

#define OPS MS_PICKLE_OBJECT_OPS
/* As many values as the largest optimizer's pickle has, some millions. */
static const struct ms_pickle_rules rules = {.of = "a checkpoint",
                                             .ops = {OPS, sizeof OPS - 1},
                                             .protocol = 5,
                                             .name_number = probe_pt_name,
                                             .keeps_objects = true,
                                             .open = 4 << 20,
                                             .remembered = 16 << 20,
                                             .objects = 16 << 20,
                                             .items = 64 << 20,
                                             .digits = 255};

enum ms_rc ckpt__pickle_read(const struct ms_plain **root, struct probe_ckpt *c, const char *p,
                             size_t n, struct ms_err *err)
{
    struct ms_plain *v;
    size_t at = 0;
    MS_TRY(ms_pickle_read(&v, p, n, &at, &rules, c->arena, err));
    *root = v;
    return MS_OK;
}

/* ---- the archive --------------------------------------------------------------------------- */

static const struct probe_zip_member *member_of(struct ckpt_archive *a, const char *rest)
{
    char name[512];
    const int n = snprintf(name, sizeof name, "%.*s%s", MS_STR_ARG(a->prefix), rest);
    if (n < 0 || (size_t)n >= sizeof name)
        return NULL;
    return probe_zip_large_find(&a->zip, (struct ms_str){name, (uint32_t)n});
}

static enum ms_rc find_pickle(struct ckpt_archive *a, const struct probe_zip_member **pkl,
                              struct ms_err *err)
{
    const struct ms_str tail = MS_STR("/data.pkl");
    *pkl = NULL;
    for (size_t i = 0; i < a->zip.members.n; i++) {
        const struct probe_zip_member *m = &a->zip.members.p[i];
        if (m->method != 0)
            return ms_fail_at(err, MS_E_UNSUPPORTED, 0, (int64_t)m->begin,
                              "the zip archive is compressed; torch.save writes it without");
        if (!ms_str_ends(m->name, tail))
            continue;
        if (*pkl != NULL)
            return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)m->begin,
                              "two members data.pkl in the zip archive");
        *pkl = m;
        a->prefix = ms_str_sub(m->name, 0, m->name.n - tail.n);
    }
    if (*pkl != NULL)
        return MS_OK;
    return ms_fail(err, MS_E_FORMAT, "no member data.pkl: a zip archive, but not of torch.save");
}

static enum ms_rc check_crc(const struct probe_zip_member *m, struct ms_err *err)
{
    const uint32_t crc = ms_crc32(0, m->data, m->size);
    if (m->crc == 0 || m->crc == crc)
        return MS_OK;
    return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)m->begin,
                      "data.pkl has CRC-32 %08x but %08x was stored; the file is damaged", crc,
                      m->crc);
}

static enum ms_rc read_order(struct ckpt_archive *a, struct ms_err *err)
{
    const struct probe_zip_member *m = member_of(a, "/byteorder");
    if (m == NULL)
        return MS_OK;
    const struct ms_str order = {m->data, m->size < 16 ? (uint32_t)m->size : 16};
    a->swap = ms_str_is(order, "big");
    if (!a->swap && !ms_str_is(order, "little"))
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)m->begin,
                          "byteorder is neither little nor big");
    return a->swap ? ms_fail(err, MS_E_UNSUPPORTED, "was written on a big-endian machine") : MS_OK;
}

static enum ms_rc open_archive(struct ckpt_archive *a, size_t n, struct ms_err *err)
{
    const struct probe_zip_member *pkl;
    struct ms_plain *root;
    if (n < 4 || memcmp(a->p, "PK", 2) != 0)
        return ms_fail_at(err, MS_E_FORMAT, 0, 0, "is no zip archive, as torch.save writes it");
    MS_TRY(probe_zip_large_read(&a->zip, a->p, n, CKPT_MAX_MEMBERS, err));
    MS_TRY(find_pickle(a, &pkl, err));
    MS_TRY(check_crc(pkl, err));
    MS_TRY(read_order(a, err));
    size_t at = (size_t)(pkl->data - a->p);
    MS_TRY(ms_pickle_read(&root, a->p, at + pkl->size, &at, &rules, a->c->arena, err));
    a->root = root;
    return MS_OK;
}

enum ms_rc ckpt__pt_open(struct ckpt_archive **out, struct probe_ckpt *c, const struct ckpt_file *f,
                         const char *p, size_t n, struct ms_err *err)
{
    struct ckpt_archive *a = ms_calloc(1, sizeof *a);
    *out = NULL;
    if (a == NULL)
        return ms_no_memory(err);
    *a = (struct ckpt_archive){.c = c, .f = f, .p = p, .name = {.max = 1 << 20}};
    const enum ms_rc rc = open_archive(a, n, err);
    if (rc != MS_OK) {
        ckpt__pt_close(a);
        return rc;
    }
    *out = a;
    return MS_OK;
}

void ckpt__pt_close(struct ckpt_archive *a)
{
    if (a == NULL)
        return;
    probe_zip_large_free(&a->zip);
    ms_buf_free(&a->name);
    ms_free(a);
}

const struct ms_plain *ckpt__pt_root(const struct ckpt_archive *a)
{
    return a->root;
}

/* ---- its values ------------------------------------------------------------------------------ */

static enum ms_rc add_value(struct ckpt_archive *a, const struct ms_plain *v, int depth,
                            struct ms_err *err);

static struct ms_str name_of(struct ckpt_archive *a)
{
    return ms_buf_slice(&a->name);
}

static enum ms_rc add_tensor(struct ckpt_archive *a, const struct ms_plain *v, struct ms_err *err)
{
    struct probe_pt_place d;
    struct probe_tensor t = {0};
    char rest[64], shown[MS_STR_SHOWN];
    enum ms_rc rc = probe_pt_describe(v, &d, err);
    if (rc != MS_OK)
        return ms_err_wrap(err, "%s", ms_str_shown(shown, name_of(a)));
    snprintf(rest, sizeof rest, "/data/%.*s", MS_STR_ARG(d.key));
    const struct probe_zip_member *m = member_of(a, rest);
    if (m == NULL)
        return ms_fail(err, MS_E_FORMAT, "no member %s with the bytes of %s", rest + 1,
                       ms_str_shown(shown, name_of(a)));
    rc = probe_pt_bind(&t, &d, m->data, m->size, a->swap, err);
    if (rc != MS_OK)
        return ms_err_wrap(err, "%s", ms_str_shown(shown, name_of(a)));
    return ckpt__add_tensor(a->c, name_of(a), &t, a->f, err);
}

static void put_key(struct ms_buf *name, const struct ms_plain *key)
{
    if (name->n != 0)
        ms_buf_putc(name, '.');
    if (key->kind == MS_PLAIN_TEXT)
        ms_buf_str(name, key->s);
    else
        probe_ckpt_value_text(key, name, 200);
}

/* Adds the items of a dictionary by their keys, those of a list by their number. */
static enum ms_rc add_items(struct ckpt_archive *a, const struct ms_plain *v, int depth,
                            struct ms_err *err)
{
    const size_t before = a->name.n;
    const bool keyed = v->kind == MS_PLAIN_DICT;
    for (uint32_t i = 0; i + (keyed ? 1 : 0) < v->n; i += keyed ? 2 : 1) {
        const struct ms_plain number = {.kind = MS_PLAIN_INT, .i = i};
        put_key(&a->name, keyed ? v->item[i] : &number);
        MS_TRY(ms_buf_check(&a->name, err));
        MS_TRY(add_value(a, v->item[i + (keyed ? 1 : 0)], depth - 1, err));
        a->name.n = before;
    }
    return MS_OK;
}

/* Of an object, its dictionaries are its fields or its entries. An object without any is a value. */
static enum ms_rc add_object(struct ckpt_archive *a, const struct ms_plain *v, int depth,
                             struct ms_err *err)
{
    const struct ms_plain *inner = ms_plain_item(v, 1);
    /* torch._tensor._rebuild_from_type_v2(function, type, arguments, state) is a tensor of a subclass. */
    if (v->item[0]->kind == MS_PLAIN_CLASS &&
        ms_str_is(v->item[0]->s, "torch._tensor._rebuild_from_type_v2") &&
        ms_plain_len(inner) > 2) {
        struct ms_plain *pair[2] = {inner->item[0], inner->item[2]};
        const struct ms_plain call = {.kind = MS_PLAIN_CALL, .n = 2, .cap = 2, .item = pair};
        if (probe_pt_is_tensor(&call))
            return add_tensor(a, &call, err);
    }
    bool added = false;
    for (uint32_t i = 2; i < v->n; i++) {
        if (v->item[i]->kind != MS_PLAIN_DICT && v->item[i]->kind != MS_PLAIN_LIST)
            continue;
        added = true;
        MS_TRY(add_items(a, v->item[i], depth, err));
    }
    return added ? MS_OK : ckpt__add_value(a->c, name_of(a), v, a->f, err);
}

/* Tells whether a list holds plain numbers or texts alone, and is a value of its own. */
static bool is_flat_list(const struct ms_plain *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->item[i]->kind >= MS_PLAIN_TUPLE && v->item[i]->kind != MS_PLAIN_NAME &&
            v->item[i]->kind != MS_PLAIN_CLASS)
            return false;
    }
    return true;
}

static enum ms_rc add_value(struct ckpt_archive *a, const struct ms_plain *v, int depth,
                            struct ms_err *err)
{
    char shown[MS_STR_SHOWN];
    if (depth == 0)
        return ms_fail(err, MS_E_LIMIT, "%s: values are nested more than %d deep",
                       ms_str_shown(shown, name_of(a)), CKPT_MAX_DEPTH);
    if (probe_pt_is_tensor(v))
        return add_tensor(a, v, err);
    switch (v->kind) {
    case MS_PLAIN_CALL:
        return add_object(a, v, depth, err);
    case MS_PLAIN_DICT:
        return add_items(a, v, depth, err);
    case MS_PLAIN_TUPLE:
    case MS_PLAIN_LIST:
        if (!is_flat_list(v))
            return add_items(a, v, depth, err);
        break;
    default:
        break;
    }
    return ckpt__add_value(a->c, name_of(a), v, a->f, err);
}

enum ms_rc ckpt__pt_add(struct ckpt_archive *a, struct ms_str prefix, const struct ms_plain *v,
                        struct ms_err *err)
{
    ms_buf_clear(&a->name);
    ms_buf_str(&a->name, prefix);
    MS_TRY(ms_buf_check(&a->name, err));
    return add_value(a, v, CKPT_MAX_DEPTH, err);
}

/* Returns the weights of a checkpoint that has them under one key beside other states; else NULL. */
static const struct ms_plain *weights_of(const struct ms_plain *root)
{
    const struct ms_plain *found = NULL;
    for (uint32_t i = 0; root->kind == MS_PLAIN_DICT && i + 1 < root->n; i += 2) {
        const struct ms_plain *v = root->item[i + 1];
        if (root->item[i]->kind != MS_PLAIN_TEXT || !ckpt__is_weight_root(root->item[i]->s) ||
            v->kind < MS_PLAIN_TUPLE || v->kind > MS_PLAIN_CALL || probe_pt_is_tensor(v))
            continue;
        if (found != NULL)
            return NULL;
        found = v;
    }
    return found;
}

static enum ms_rc add_weights(struct ckpt_archive *a, const struct ms_plain *v, struct ms_err *err)
{
    const size_t from = a->c->entries.n;
    MS_TRY(ckpt__pt_add(a, MS_STR(""), v, err));
    for (size_t i = from; i < a->c->entries.n; i++) {
        if (a->c->entries.p[i].dtype != MS_DT_NONE)
            a->c->entries.p[i].role = PROBE_CKPT_WEIGHT;
    }
    return MS_OK;
}

static enum ms_rc add_root(struct ckpt_archive *a, struct ms_err *err)
{
    const struct ms_plain *root = a->root, *weights = weights_of(root);
    if (weights == NULL)
        return ckpt__pt_add(a, MS_STR(""), root, err);
    MS_TRY(add_weights(a, weights, err));
    a->c->knows_weights = true;
    for (uint32_t i = 0; i + 1 < root->n; i += 2) {
        struct ms_buf key = {.max = 1 << 16};
        put_key(&key, root->item[i]);
        enum ms_rc rc = ms_buf_check(&key, err);
        if (rc == MS_OK && root->item[i + 1] != weights)
            rc = ckpt__pt_add(a, ms_buf_slice(&key), root->item[i + 1], err);
        ms_buf_free(&key);
        MS_TRY(rc);
    }
    return MS_OK;
}

enum ms_rc ckpt__pt_read(struct probe_ckpt *c, const struct ckpt_file *f, struct ms_str prefix,
                         const char *p, size_t n, struct ms_err *err)
{
    struct ckpt_archive *a;
    MS_TRY(ckpt__pt_open(&a, c, f, p, n, err));
    const enum ms_rc rc = prefix.n == 0 ? add_root(a, err) : ckpt__pt_add(a, prefix, a->root, err);
    ckpt__pt_close(a);
    return rc;
}
