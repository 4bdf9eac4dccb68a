/* SPDX-License-Identifier: MIT
 *
 * deepspeed: a folder global_stepN of DeepSpeed. *_model_states.pt has the module and the shapes of its
 * parameters; with ZeRO, *_optim_states.pt of each rank has a slice of the flat float32 master weights:
 *
 *     stage 1, 2   all parameters of a group behind each other, cut into one slice a rank
 *     stage 3      each parameter cut into one slice a rank, and the slices behind each other
 */
#include "probe/checkpoint/checkpoint_int.h"

#include <stdio.h>

enum { MAX_RANKS = 65536 };

struct rank {
    struct probe_ckpt *shard;
    struct ckpt_archive *archive;
};

struct reading {
    struct probe_ckpt *c;
    const char *dir;
    struct ms_err *err;
    MS_VEC(struct rank) models, optims;
    const struct ms_plain *shapes; /* a list of dictionaries, one a group */
    bool by_parameter;             /* stage 3 */
};

static enum ms_rc open_rank(struct reading *r, struct ms_str name, struct rank *rank)
{
    struct ckpt_file *f;
    char *path = ms_path_join(r->dir, name.p);
    enum ms_rc rc = path != NULL ? ckpt__new(&rank->shard, r->err) : ms_no_memory(r->err);
    if (rc == MS_OK)
        rc = ckpt__adopt(r->c, rank->shard, r->err);
    if (rc == MS_OK)
        rc = ckpt__map(rank->shard, path, &f, r->err);
    if (rc == MS_OK) {
        rc = ckpt__pt_open(&rank->archive, rank->shard, f, f->map.p, f->map.n, r->err);
        rc = rc == MS_OK ? MS_OK : ms_err_wrap(r->err, "%s", path);
    }
    ms_free(path);
    return rc;
}

static enum ms_rc open_ranks(struct reading *r)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, r->dir, r->err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < list.names.n; i++) {
        const struct ms_str name = list.names.p[i];
        const bool is_optim = ms_str_ends(name, MS_STR("_optim_states.pt"));
        if (!is_optim && !ms_str_ends(name, MS_STR("_model_states.pt")))
            continue;
        struct rank *slot = is_optim ? ms_vec_push(&r->optims) : ms_vec_push(&r->models);
        if (slot == NULL || r->optims.n > MAX_RANKS || r->models.n > MAX_RANKS)
            rc = ms_no_memory(r->err);
        if (slot != NULL)
            *slot = (struct rank){0};
        if (rc == MS_OK)
            rc = open_rank(r, name, slot);
    }
    ms_dir_free(&list);
    return rc;
}

/* ---- master weights --------------------------------------------------------------------------- */

/* Adds each flat tensor of a rank as an entry of its shard: one a group, or for stage 3 pieces of one
 * flat row. */
static enum ms_rc add_flats(struct reading *r, struct rank *rank)
{
    const struct ms_plain *state =
        ms_plain_get(ckpt__pt_root(rank->archive), "optimizer_state_dict");
    const struct ms_plain *flats = ms_plain_get(state, "single_partition_of_fp32_groups");
    if (flats == NULL) {
        flats = ms_plain_get(state, "fp32_flat_groups");
        r->by_parameter = flats != NULL;
    }
    if (flats == NULL || flats->kind != MS_PLAIN_LIST)
        return ms_fail(r->err, MS_E_NOTFOUND, "no flat master weights");
    for (uint32_t i = 0; i < flats->n; i++) {
        char name[24];
        snprintf(name, sizeof name, "%u", i);
        MS_TRY(ckpt__pt_add(rank->archive, ms_str_of(name), flats->item[i], r->err));
    }
    return MS_OK;
}

static bool read_shape(const struct ms_plain *v, uint64_t *shape, uint32_t *ndim, uint64_t *count)
{
    if (v->kind == MS_PLAIN_CALL) /* torch.Size of a tuple */
        v = ms_plain_item(ms_plain_item(v, 1), 0);
    *ndim = ms_plain_len(v);
    *count = 1;
    for (uint32_t d = 0; d < *ndim && *ndim <= PROBE_CKPT_DIMS; d++) {
        const struct ms_plain *size = ms_plain_item(v, d);
        if (size->kind != MS_PLAIN_INT || size->i < 0 ||
            __builtin_mul_overflow(*count, (uint64_t)size->i, count))
            return false;
        shape[d] = (uint64_t)size->i;
    }
    return *ndim <= PROBE_CKPT_DIMS;
}

/* Adds the elements [from, from + n) of a rank's flat row as the elements `at` .. of the last entry. */
static enum ms_rc add_slice(struct reading *r, const struct probe_ckpt *shard, uint64_t from,
                            uint64_t at, uint64_t n)
{
    for (size_t i = 0; n != 0 && i < shard->entries.n; i++) {
        const struct probe_ckpt_entry *e = &shard->entries.p[i];
        if (from >= e->count) {
            from -= e->count;
            continue;
        }
        const uint64_t take = n < e->count - from ? n : e->count - from;
        const struct ckpt_part *whole = &shard->parts.p[e->part];
        struct ckpt_part part = {.from = {at},
                                 .extent = {take},
                                 .stride = {1},
                                 .file = whole->file,
                                 .data = whole->data + from * ms_dtype_size(e->dtype)};
        MS_TRY(ckpt__add_part(r->c, &part, r->err));
        at += take;
        n -= take;
        from = 0;
    }
    return n == 0 ? MS_OK
                  : ms_fail(r->err, MS_E_FORMAT, "%.*s: flat weights shorter than the parameters",
                            MS_STR_ARG(shard->files.p[0]->path));
}

/* Stage 1 and 2: the element `from` of the group's row, which continues over the ranks. */
static enum ms_rc add_from_row(struct reading *r, size_t group, uint64_t from, uint64_t n)
{
    uint64_t at = 0;
    for (size_t k = 0; n != 0 && k < r->optims.n; k++) {
        const struct probe_ckpt *shard = r->optims.p[k].shard;
        if (group >= shard->entries.n)
            break;
        const struct probe_ckpt_entry *e = &shard->entries.p[group];
        if (from >= e->count) {
            from -= e->count;
            continue;
        }
        const uint64_t take = n < e->count - from ? n : e->count - from;
        const struct ckpt_part *whole = &shard->parts.p[e->part];
        const struct ckpt_part part = {.from = {at},
                                       .extent = {take},
                                       .stride = {1},
                                       .file = whole->file,
                                       .data = whole->data + from * ms_dtype_size(e->dtype)};
        MS_TRY(ckpt__add_part(r->c, &part, r->err));
        at += take;
        n -= take;
        from = 0;
    }
    return n == 0
               ? MS_OK
               : ms_fail(r->err, MS_E_FORMAT,
                         "the flat weights of %zu ranks are shorter than the parameters; a rank's "
                         "*_optim_states.pt may be missing",
                         r->optims.n);
}

static enum ms_rc add_parameter(struct reading *r, struct ms_str name, const struct ms_plain *size,
                                size_t group, uint64_t *at)
{
    uint64_t shape[PROBE_CKPT_DIMS], count, ranks = r->optims.n;
    uint32_t ndim;
    const struct ckpt_file *f = r->optims.p[0].shard->files.p[0];
    if (!read_shape(size, shape, &ndim, &count))
        return ms_fail(r->err, MS_E_FORMAT, "%.*s: a shape that is none", MS_STR_ARG(name));
    const enum ms_dtype dtype =
        r->optims.p[0].shard->entries.n != 0 ? r->optims.p[0].shard->entries.p[0].dtype : MS_DT_F32;
    MS_TRY(ckpt__add(r->c, name, dtype, shape, ndim, true, f, r->err));
    r->c->entries.p[r->c->entries.n - 1].role = PROBE_CKPT_WEIGHT;
    if (!r->by_parameter) {
        MS_TRY(add_from_row(r, group, *at, count));
        *at += count;
        return MS_OK;
    }
    const uint64_t slice = (count + ranks - 1) / ranks;
    for (uint64_t k = 0; k < ranks && k * slice < count; k++) {
        const uint64_t left = count - k * slice;
        MS_TRY(add_slice(r, r->optims.p[k].shard, *at, k * slice, left < slice ? left : slice));
    }
    *at += slice;
    return MS_OK;
}

static enum ms_rc add_masters(struct reading *r)
{
    uint64_t at = 0;
    for (uint32_t g = 0; g < r->shapes->n; g++) {
        const struct ms_plain *group = r->shapes->item[g];
        if (!r->by_parameter)
            at = 0;
        for (uint32_t i = 0; i + 1 < ms_plain_len(group); i += 2)
            MS_TRY(add_parameter(r, ms_plain_text(group->item[i]), group->item[i + 1], g, &at));
    }
    return MS_OK;
}

static enum ms_rc read_masters(struct reading *r)
{
    for (size_t k = 0; k < r->optims.n; k++) {
        enum ms_rc rc = add_flats(r, &r->optims.p[k]);
        if (rc != MS_OK)
            return ms_err_wrap(r->err, "%.*s", MS_STR_ARG(r->optims.p[k].shard->files.p[0]->path));
        const struct probe_ckpt *shard = r->optims.p[k].shard;
        for (size_t i = 0; i < shard->entries.n; i++) {
            const struct probe_ckpt_entry *e = &shard->entries.p[i];
            if (e->dtype != shard->entries.p[0].dtype || e->ndim != 1 || e->parts != 1 ||
                e->dtype != r->optims.p[0].shard->entries.p[0].dtype ||
                (e->count > 1 && shard->parts.p[e->part].stride[0] != 1))
                return ms_fail(r->err, MS_E_FORMAT, "%.*s: flat weights of an unknown form",
                               MS_STR_ARG(shard->files.p[0]->path));
        }
    }
    return add_masters(r);
}

/* ---- other states ------------------------------------------------------------------------------ */

/* Adds what a rank has beside the weights under its file's name; from a fresh checkpoint, as the
 * shard's entries are the flat weights. */
static enum ms_rc take_states(struct reading *r, struct rank *rank, bool weights)
{
    struct probe_ckpt *shard = rank->shard;
    const struct ms_plain *root = ckpt__pt_root(rank->archive);
    const struct ms_str file = ms_path_base(shard->files.p[0]->path.p);
    const size_t from = shard->entries.n;
    for (uint32_t i = 0; root->kind == MS_PLAIN_DICT && i + 1 < root->n; i += 2) {
        const struct ms_str key = ms_plain_text(root->item[i]);
        if (key.n != 0 && !ms_str_is(key, "module") && !ms_str_is(key, "param_shapes"))
            MS_TRY(ckpt__pt_add(rank->archive, key, root->item[i + 1], r->err));
    }
    for (size_t i = from; i < shard->entries.n; i++) {
        const struct probe_ckpt_entry *e = &shard->entries.p[i];
        char name[1000];
        if (weights && ms_str_has(e->name, "fp32_groups"))
            continue;
        snprintf(name, sizeof name, "%.*s.%.*s", (int)file.n - 3, file.p, MS_STR_ARG(e->name));
        MS_TRY(ckpt__add_like(r->c, ms_str_of(name), e, e->shape, r->err));
        r->c->entries.p[r->c->entries.n - 1].role = ckpt__role_of(e->name, e->dtype);
        MS_TRY(ckpt__add_parts_of(r->c, shard, e, 0, 0, r->err));
    }
    return MS_OK;
}

/* Without ZeRO the module's own weights are whole. */
static enum ms_rc read_module(struct reading *r)
{
    struct rank *rank = &r->models.p[0];
    const struct ms_plain *module = ms_plain_get(ckpt__pt_root(rank->archive), "module");
    if (module == NULL)
        return ms_fail(r->err, MS_E_FORMAT, "%.*s: no module in it: not of DeepSpeed",
                       MS_STR_ARG(rank->shard->files.p[0]->path));
    MS_TRY(ckpt__pt_add(rank->archive, MS_STR(""), module, r->err));
    for (size_t i = 0; i < rank->shard->entries.n; i++) {
        const struct probe_ckpt_entry *e = &rank->shard->entries.p[i];
        MS_TRY(ckpt__add_like(r->c, e->name, e, e->shape, r->err));
        if (e->dtype != MS_DT_NONE)
            r->c->entries.p[r->c->entries.n - 1].role = PROBE_CKPT_WEIGHT;
        MS_TRY(ckpt__add_parts_of(r->c, rank->shard, e, 0, 0, r->err));
    }
    return MS_OK;
}

static enum ms_rc read_all(struct reading *r)
{
    MS_TRY(open_ranks(r));
    r->shapes = ms_plain_get(ckpt__pt_root(r->models.p[0].archive), "param_shapes");
    if (r->shapes != NULL && r->shapes->kind == MS_PLAIN_LIST && r->optims.n != 0)
        MS_TRY(read_masters(r));
    else
        MS_TRY(read_module(r));
    for (size_t i = 0; i < r->models.n; i++)
        MS_TRY(take_states(r, &r->models.p[i], false));
    for (size_t i = 0; i < r->optims.n; i++)
        MS_TRY(take_states(r, &r->optims.p[i], true));
    return MS_OK;
}

enum ms_rc ckpt__deepspeed_read(struct probe_ckpt *c, const char *dir, struct ms_err *err)
{
    struct reading r = {.c = c, .dir = dir, .err = err};
    const enum ms_rc rc = read_all(&r);
    for (size_t i = 0; i < r.models.n; i++)
        ckpt__pt_close(r.models.p[i].archive);
    for (size_t i = 0; i < r.optims.n; i++)
        ckpt__pt_close(r.optims.p[i].archive);
    c->knows_weights = true;
    snprintf(c->kind, sizeof c->kind, "DeepSpeed, %zu ranks%s",
             r.optims.n != 0 ? r.optims.n : r.models.n,
             r.by_parameter    ? ", ZeRO 3"
             : r.optims.n != 0 ? ", ZeRO"
                               : "");
    ms_vec_free(&r.models);
    ms_vec_free(&r.optims);
    return rc;
}
