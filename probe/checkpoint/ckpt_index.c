/* SPDX-License-Identifier: MIT
 *
 * ckpt_index: a folder of several files, and model.safetensors.index.json or a like one, which tells the file
 * of each tensor.
 */
#include "probe/base/jread.h"
#include "probe/checkpoint/checkpoint_int.h"

struct index {
    struct probe_ckpt *c;
    const char *dir;
    struct ms_map files, names;
    MS_VEC(uint32_t) file_of; /* of a name */
};

static enum ms_rc read_name(void *of, struct ms_jread *r, struct ms_buf *scratch,
                            struct ms_err *err)
{
    struct index *x = of;
    struct ms_str name, file;
    MS_TRY(ms_jread_text(r, scratch, &name, err));
    const uint32_t at = ms_map_put_copy(&x->names, name, x->c->arena, NULL);
    if (ms_jread_next(r) != MS_J_STR)
        return ms_jread_reject(r, err, "expected the name of a file");
    MS_TRY(ms_jread_text(r, scratch, &file, err));
    if (ms_str_find(file, '/') >= 0 || ms_str_is(file, ".."))
        return ms_jread_reject(r, err, "a file outside of the folder");
    const uint32_t number = ms_map_put_copy(&x->files, file, x->c->arena, NULL);
    uint32_t *slot = at == x->file_of.n ? ms_vec_push(&x->file_of) : &x->file_of.p[at];
    if (at == MS_MAP_NONE || number == MS_MAP_NONE || slot == NULL)
        return ms_no_memory(err);
    *slot = number;
    return MS_OK;
}

static enum ms_rc read_index_member(void *of, struct ms_jread *r, struct ms_buf *scratch,
                                    struct ms_err *err)
{
    (void)scratch;
    if (!ms_str_is(r->text, "weight_map"))
        return ms_jread_skip(r, MS_J_KEY) != MS_J_ERR ? MS_OK : ms_jread_fail(r, err);
    struct ms_buf text = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    if (ms_jread_next(r) != MS_J_OBJ)
        rc = ms_jread_reject(r, err, "expected an object");
    while (rc == MS_OK) {
        const enum ms_jtok tok = ms_jread_next(r);
        if (tok == MS_J_OBJ_END)
            break;
        rc = tok == MS_J_KEY ? read_name(of, r, &text, err) : ms_jread_fail(r, err);
    }
    ms_buf_free(&text);
    return rc;
}

/* Opens the files of the index and takes their tensors over. */
static enum ms_rc read_files(struct index *x, struct ms_err *err)
{
    for (uint32_t i = 0; i < x->files.keys.n; i++) {
        const struct ms_str name = ms_map_key(&x->files, i);
        char *path = ms_path_join(x->dir, name.p);
        struct probe_ckpt *shard = NULL;
        if (path == NULL)
            return ms_no_memory(err);
        const enum ms_rc rc = ckpt__open_file(&shard, path, err);
        ms_free(path);
        MS_TRY(rc);
        MS_TRY(ckpt__adopt(x->c, shard, err));
        for (size_t k = 0; k < shard->entries.n; k++) {
            const struct probe_ckpt_entry *e = &shard->entries.p[k];
            MS_TRY(ckpt__add_like(x->c, e->name, e, e->shape, err));
            MS_TRY(ckpt__add_parts_of(x->c, shard, e, 0, 0, err));
        }
    }
    return MS_OK;
}

static enum ms_rc check_index(struct index *x, struct ms_err *err)
{
    struct ms_map have = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < x->c->entries.n; i++)
        (void)ms_map_put(&have, x->c->entries.p[i].name, NULL);
    for (uint32_t i = 0; rc == MS_OK && i < x->names.keys.n; i++) {
        const struct ms_str file = ms_map_key(&x->files, x->file_of.p[i]);
        char shown[MS_STR_SHOWN];
        if (ms_map_get(&have, ms_map_key(&x->names, i)) == MS_MAP_NONE)
            rc = ms_fail(err, MS_E_FORMAT, "the index names %s in %.*s, which is not there",
                         ms_str_shown(shown, ms_map_key(&x->names, i)), MS_STR_ARG(file));
    }
    ms_map_free(&have);
    return rc;
}

enum ms_rc ckpt__index_read(struct probe_ckpt *c, const char *dir, const char *index,
                            struct ms_err *err)
{
    struct index x = {.c = c, .dir = dir};
    struct ckpt_file *f;
    struct ms_jread r;
    MS_TRY(ckpt__map(c, index, &f, err));
    ms_jread_init(&r, f->map.p, f->map.n, 0);
    enum ms_rc rc = ms_jread_members(&r, "the index", read_index_member, &x, err);
    if (rc == MS_OK && x.files.keys.n == 0)
        rc = ms_fail(err, MS_E_FORMAT, "no weight_map in the index");
    if (rc != MS_OK)
        rc = ms_err_wrap(err, "%s", index);
    if (rc == MS_OK)
        rc = read_files(&x, err);
    if (rc == MS_OK)
        rc = check_index(&x, err);
    ms_map_free(&x.files);
    ms_map_free(&x.names);
    ms_vec_free(&x.file_of);
    return rc;
}
