/* SPDX-License-Identifier: MIT
 *
 * checkpoint: finds out what a file or folder is and has it read.
 */
#include "probe/checkpoint/checkpoint.h"

#include "probe/checkpoint/checkpoint_int.h"

#include <stdio.h>

enum ms_rc probe_ckpt_parse(struct probe_ckpt **c, const char *name, const char *p, size_t n,
                            struct ms_err *err)
{
    struct ckpt_file *f = NULL;
    MS_TRY(ckpt__new(c, err));
    enum ms_rc rc = ckpt__borrow(*c, name, &f, err);
    if (rc == MS_OK)
        rc = n > 0 && (p[0] == '\x80') && memchr(p, 'M', n < 200 ? n : 200) != NULL
                 ? ckpt__metadata_parse(*c, p, n, err)
                 : ckpt__read_bytes(*c, f, p, n, err);
    if (rc == MS_OK)
        rc = ckpt__finish(*c, err);
    if (rc != MS_OK) {
        rc = ms_err_wrap(err, "%s", name);
        probe_ckpt_close(*c);
        *c = NULL;
    }
    return rc;
}

/* ---- folders --------------------------------------------------------------------------------- */

static bool has_ending(struct ms_str name, const char *const *endings)
{
    for (; *endings != NULL; endings++) {
        if (ms_str_ends(name, ms_str_of(*endings)))
            return true;
    }
    return false;
}

static struct ms_str stem_of(struct ms_str name)
{
    const int64_t dot = ms_str_rfind(name, '.');
    return dot > 0 ? ms_str_sub(name, 0, (uint32_t)dot) : name;
}

/* Adds the entries of a file beside others. Names of the model's tensors stay; those of other files get
 * the file's name in front: "optimizer.state.0.exp_avg". */
static enum ms_rc take_file(struct probe_ckpt *c, struct probe_ckpt *shard, struct ms_str file,
                            struct ms_err *err)
{
    const struct ms_str stem = stem_of(file);
    const bool is_model =
        ms_str_starts(file, MS_STR("model")) || ms_str_starts(file, MS_STR("pytorch_model")) ||
        ms_str_starts(file, MS_STR("adapter_model")) || ms_str_ends(file, MS_STR(".safetensors"));
    for (size_t i = 0; i < shard->entries.n; i++) {
        const struct probe_ckpt_entry *e = &shard->entries.p[i];
        struct ms_buf name = {.max = 1 << 20};
        if (!is_model)
            ms_buf_printf(&name, "%.*s%s", MS_STR_ARG(stem), e->name.n != 0 ? "." : "");
        ms_buf_str(&name, e->name);
        enum ms_rc rc = ms_buf_check(&name, err);
        if (rc == MS_OK)
            rc = ckpt__add_like(c, ms_buf_slice(&name), e, e->shape, err);
        if (rc == MS_OK)
            rc = ckpt__add_parts_of(c, shard, e, 0, 0, err);
        ms_buf_free(&name);
        MS_TRY(rc);
    }
    return MS_OK;
}

/* Reads every file of a folder that is a checkpoint by its ending. */
static enum ms_rc read_several(struct probe_ckpt *c, const char *dir, const struct ms_dir *list,
                               struct ms_err *err)
{
    static const char *const endings[] = {".safetensors", ".pt", ".pth", ".bin", ".ckpt", NULL};
    size_t files = 0;
    for (size_t i = 0; i < list->names.n; i++) {
        if (!has_ending(list->names.p[i], endings))
            continue;
        char *path = ms_path_join(dir, list->names.p[i].p);
        struct probe_ckpt *shard = NULL;
        if (path == NULL)
            return ms_no_memory(err);
        enum ms_rc rc = ckpt__open_file(&shard, path, err);
        if (rc == MS_E_UNSUPPORTED && ms_str_ends(list->names.p[i], MS_STR(".bin"))) {
            ms_err_clear(err); /* training_args.bin, a tokenizer */
            rc = MS_OK;
        }
        ms_free(path);
        MS_TRY(rc);
        if (shard == NULL)
            continue;
        MS_TRY(ckpt__adopt(c, shard, err));
        MS_TRY(take_file(c, shard, list->names.p[i], err));
        files++;
    }
    snprintf(c->kind, sizeof c->kind, "%zu file%s", files, files == 1 ? "" : "s");
    if (files != 0)
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND,
                   "%s: no checkpoint in this folder: supported are safetensors, .pt, .distcp with "
                   ".metadata, Megatron's mp_rank_*, DeepSpeed's *_model_states.pt and .ckpt",
                   dir);
}

static bool has_name(const struct ms_dir *list, const char *begin, const char *end,
                     struct ms_str *name)
{
    for (size_t i = 0; i < list->names.n; i++) {
        *name = list->names.p[i];
        if (ms_str_starts(*name, ms_str_of(begin)) && ms_str_ends(*name, ms_str_of(end)))
            return true;
    }
    return false;
}

static enum ms_rc read_dir(struct probe_ckpt *c, const char *dir, struct ms_err *err);

/* Reads the folder that a file of one line names: Megatron's latest_checkpointed_iteration.txt. */
static enum ms_rc read_latest(struct probe_ckpt *c, const char *dir, const char *tracker,
                              struct ms_err *err)
{
    char *path = ms_path_join(dir, tracker), *inner = NULL, name[128];
    struct ms_file f = {0};
    enum ms_rc rc = path == NULL ? ms_no_memory(err) : ms_file_map(&f, path, 1 << 16, err);
    if (rc == MS_OK) {
        uint32_t n = 0;
        while (n < f.n && n < 100 && f.p[n] > ' ' && f.p[n] != '/')
            n++;
        uint64_t number;
        const struct ms_str word = {f.p, n};
        if (n == 0 || (n < f.n && f.p[n] == '/') || word.p[0] == '.')
            rc = ms_fail(err, MS_E_FORMAT, "%s names no iteration", path);
        else if (ms_str_u64(word, &number))
            snprintf(name, sizeof name, "iter_%07llu", (unsigned long long)number);
        else
            snprintf(name, sizeof name, "%.*s", MS_STR_ARG(word));
        ms_file_unmap(&f);
    }
    if (rc == MS_OK && (inner = ms_path_join(dir, name)) == NULL)
        rc = ms_no_memory(err);
    if (rc == MS_OK)
        rc = ms_path_kind(inner) == MS_KIND_DIR
                 ? read_dir(c, inner, err)
                 : ms_fail(err, MS_E_NOTFOUND, "%s names %s, which is not there", path, inner);
    ms_free(path);
    ms_free(inner);
    return rc;
}

static enum ms_rc read_index(struct probe_ckpt *c, const char *dir, struct ms_str index,
                             struct ms_err *err)
{
    char *path = ms_path_join(dir, index.p);
    if (path == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = ckpt__index_read(c, dir, path, err);
    ms_free(path);
    snprintf(c->kind, sizeof c->kind, "safetensors, %zu files", c->shards.n);
    return rc;
}

static enum ms_rc read_listed(struct probe_ckpt *c, const char *dir, const struct ms_dir *list,
                              struct ms_err *err)
{
    struct ms_str name;
    if (has_name(list, ".metadata", "", &name) || has_name(list, "", ".distcp", &name))
        return ckpt__distributed_read(c, dir, err);
    if (has_name(list, "latest_checkpointed_iteration.txt", "", &name))
        return read_latest(c, dir, name.p, err);
    if (has_name(list, "", "_model_states.pt", &name))
        return ckpt__deepspeed_read(c, dir, err);
    if (has_name(list, "mp_rank_", "", &name))
        return ckpt__megatron_read(c, dir, err);
    if (has_name(list, "", ".safetensors.index.json", &name) ||
        has_name(list, "", ".bin.index.json", &name))
        return read_index(c, dir, name, err);
    if (has_name(list, "latest", "", &name) && name.n == 6 &&
        has_name(list, "global_step", "", &name))
        return read_latest(c, dir, "latest", err);
    return read_several(c, dir, list, err);
}

static enum ms_rc read_dir(struct probe_ckpt *c, const char *dir, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, dir, err));
    const enum ms_rc rc = read_listed(c, dir, &list, err);
    ms_dir_free(&list);
    return rc;
}

static enum ms_rc open_folder(struct probe_ckpt **c, const char *path, struct ms_err *err)
{
    MS_TRY(ckpt__new(c, err));
    const enum ms_rc rc = read_dir(*c, path, err);
    if (rc != MS_OK) {
        probe_ckpt_close(*c);
        *c = NULL;
    }
    return rc;
}

enum ms_rc probe_ckpt_open(struct probe_ckpt **c, const char *path, struct ms_err *err)
{
    *c = NULL;
    enum ms_rc rc = ms_path_kind(path) == MS_KIND_DIR ? open_folder(c, path, err)
                                                      : ckpt__open_file(c, path, err);
    if (rc == MS_OK)
        rc = ckpt__finish(*c, err);
    if (rc == MS_OK)
        return MS_OK;
    if (*c != NULL) {
        rc = ms_err_wrap(err, "%s", path);
        probe_ckpt_close(*c);
    }
    *c = NULL;
    return rc;
}
