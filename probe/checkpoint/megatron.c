/* SPDX-License-Identifier: MIT
 *
 * megatron: a folder with mp_rank_TT[_PPP[_EEE]]/model_optim_rng.pt. Weights that tensor-parallel ranks
 * cut are joined, layers of pipeline stages and experts are numbered through, and names of older
 * versions become those of Megatron Core, all as the official tool does it. Beyond the official tool:
 * stages may have different numbers of layers, and the halves of a gated first linear layer are put
 * together, so that checkpoints of different tensor-parallel sizes agree.
 */
#include "probe/checkpoint/checkpoint_int.h"

#include <stdio.h>

enum { MAX_RANKS = 4096 };

struct layout {
    uint32_t tp, pp, ep;
    int64_t experts;
    bool gated;
};

struct joining {
    struct probe_ckpt *c;
    const char *dir;
    struct layout l;
    struct ms_err *err;
    uint64_t layers_before, layers; /* of the stages before this one, and of this one */
    uint64_t first_layers;          /* of stage 0, which virtual stages count by */
    struct ms_map done;             /* names that are joined */
};

/* Parts of older names, and what Megatron Core calls them; replaced one after the other. */
static const char *const renamed[][2] = {
    {"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
    {"language_model.", ""},
    {"encoder", "decoder"},
    {".input_norm.", ".input_layernorm."},
    {"query_key_value", "linear_qkv"},
    {".dense.", ".linear_proj."},
    {"post_attention_norm", "pre_mlp_layernorm"},
    {"dense_h_to_4h", "linear_fc1"},
    {"dense_4h_to_h", "linear_fc2"},
    {"mlp.local_experts", "mlp.experts.local_experts"},
    {"final_norm", "final_layernorm"},
    {"word_embeddings_for_head", "output_layer"},
};
static const char *const cut_by_rows[] = {"linear_qkv", "linear_fc1", "word_embeddings.weight",
                                          "output_layer.weight", NULL};
static const char *const cut_by_columns[] = {"linear_fc2.weight", "linear_proj.weight", NULL};

/* ---- names --------------------------------------------------------------------------------- */

static void replace_all(struct ms_buf *to, struct ms_str s, struct ms_str what, struct ms_str by)
{
    for (int64_t at; (at = ms_str_find_str(s, what)) >= 0;) {
        ms_buf_str(to, ms_str_sub(s, 0, (uint32_t)at));
        ms_buf_str(to, by);
        s = ms_str_sub(s, (uint32_t)at + what.n, s.n);
    }
    ms_buf_str(to, s);
}

static enum ms_rc rename_part(struct joining *j, struct ms_str *name)
{
    struct ms_buf a = {.max = 1 << 20}, b = {.max = 1 << 20};
    ms_buf_str(&a, *name);
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        ms_buf_clear(&b);
        replace_all(&b, ms_buf_slice(&a), ms_str_of(renamed[i][0]), ms_str_of(renamed[i][1]));
        const struct ms_buf swap = a;
        a = b;
        b = swap;
    }
    enum ms_rc rc = ms_buf_check(&a, j->err);
    if (rc == MS_OK) {
        *name = ms_arena_str(j->c->arena, ms_buf_slice(&a));
        rc = name->p != NULL ? MS_OK : ms_arena_fail(j->c->arena, j->err);
    }
    ms_buf_free(&a);
    ms_buf_free(&b);
    return rc;
}

/* Finds "WORD.N." in a name; false when there is none. */
static bool find_number(struct ms_str name, const char *word, uint64_t *number, uint32_t *at,
                        uint32_t *n)
{
    const struct ms_str w = ms_str_of(word);
    for (uint32_t i = 0; i + w.n < name.n; i++) {
        if (memcmp(name.p + i, w.p, w.n) != 0)
            continue;
        *at = i + w.n;
        *n = ms_str_digits(name, *at);
        if (*n != 0 && *at + *n < name.n && name.p[*at + *n] == '.' &&
            ms_str_u64(ms_str_sub(name, *at, *at + *n), number) && *number < INT32_MAX)
            return true;
    }
    return false;
}

/* Adds `by` to the number behind a word. */
static enum ms_rc renumber(struct joining *j, struct ms_str *name, const char *word, uint64_t by)
{
    uint64_t number;
    uint32_t at, n;
    if (by == 0 || !find_number(*name, word, &number, &at, &n))
        return MS_OK;
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_str(&b, ms_str_sub(*name, 0, at));
    ms_buf_printf(&b, "%llu", (unsigned long long)(number + by));
    ms_buf_str(&b, ms_str_sub(*name, at + n, name->n));
    enum ms_rc rc = ms_buf_check(&b, j->err);
    if (rc == MS_OK) {
        *name = ms_arena_str(j->c->arena, ms_buf_slice(&b));
        rc = name->p != NULL ? MS_OK : ms_arena_fail(j->c->arena, j->err);
    }
    ms_buf_free(&b);
    return rc;
}

static bool is_one_of(struct ms_str name, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (ms_str_has(name, *words))
            return true;
    }
    return false;
}

/* ---- a rank ---------------------------------------------------------------------------------- */

static const struct ms_plain *field_of(const struct ms_plain *object, const char *name)
{
    for (uint32_t i = 2; i < ms_plain_len(object); i++) {
        const struct ms_plain *v = ms_plain_get(object->item[i], name);
        if (v != NULL)
            return v;
    }
    return ms_plain_get(object, name);
}

/* Adds the weights of a rank with the number of their virtual stage in front: "0/decoder...". */
static enum ms_rc add_models(struct ckpt_archive *a, struct probe_ckpt *rank, struct ms_err *err)
{
    const struct ms_plain *root = ckpt__pt_root(a);
    const struct ms_plain *whole = ms_plain_get(root, "model");
    for (int stage = 0; stage < MAX_RANKS; stage++) {
        char key[24];
        snprintf(key, sizeof key, "model%d", stage);
        const struct ms_plain *v = whole != NULL && stage == 0 ? whole : ms_plain_get(root, key);
        if (v == NULL)
            return MS_OK;
        snprintf(key, sizeof key, "%d/", stage);
        const size_t from = rank->entries.n;
        MS_TRY(ckpt__pt_add(a, ms_str_of(key), v, err));
        for (size_t i = from; i < rank->entries.n; i++)
            rank->entries.p[i].role = PROBE_CKPT_WEIGHT;
        if (whole != NULL)
            return MS_OK;
    }
    return MS_OK;
}

/* Adds what a rank has beside weights. */
static enum ms_rc add_states(struct ckpt_archive *a, struct ms_err *err)
{
    const struct ms_plain *root = ckpt__pt_root(a);
    for (uint32_t i = 0; root->kind == MS_PLAIN_DICT && i + 1 < root->n; i += 2) {
        const struct ms_str key = ms_plain_text(root->item[i]);
        if (key.n != 0 && !ckpt__is_weight_root(key))
            MS_TRY(ckpt__pt_add(a, key, root->item[i + 1], err));
    }
    return MS_OK;
}

static enum ms_rc read_layout(const struct ckpt_archive *a, struct layout *l, struct ms_err *err)
{
    const struct ms_plain *args = ms_plain_get(ckpt__pt_root(a), "args");
    const struct ms_plain *root = ckpt__pt_root(a);
    if (ms_plain_get(root, "model") == NULL && ms_plain_get(root, "model0") == NULL)
        return ms_fail(err, MS_E_FORMAT, "no model in it: not of Megatron");
    l->tp = l->pp = l->ep = 1;
    if (args == NULL)
        return MS_OK;
    const int64_t tp = ms_plain_int(field_of(args, "tensor_model_parallel_size"), 1);
    const int64_t pp = ms_plain_int(field_of(args, "pipeline_model_parallel_size"), 1);
    const int64_t ep = ms_plain_int(field_of(args, "expert_model_parallel_size"), 1);
    if (tp < 1 || pp < 1 || ep < 1 || tp > MAX_RANKS || pp > MAX_RANKS || ep > MAX_RANKS)
        return ms_fail(err, MS_E_FORMAT, "args has impossible parallel sizes %lld, %lld, %lld",
                       (long long)tp, (long long)pp, (long long)ep);
    *l = (struct layout){.tp = (uint32_t)tp,
                         .pp = (uint32_t)pp,
                         .ep = (uint32_t)ep,
                         .experts = ms_plain_int(field_of(args, "num_experts"), 0),
                         .gated = ms_plain_int(field_of(args, "swiglu"), 0) != 0};
    return MS_OK;
}

static enum ms_rc read_rank(struct probe_ckpt *rank, const char *path, struct layout *l,
                            struct ms_err *err)
{
    struct ckpt_file *f;
    struct ckpt_archive *a;
    MS_TRY(ckpt__map(rank, path, &f, err));
    enum ms_rc rc = ckpt__pt_open(&a, rank, f, f->map.p, f->map.n, err);
    if (rc == MS_OK && l != NULL)
        rc = read_layout(a, l, err);
    if (rc == MS_OK)
        rc = add_models(a, rank, err);
    if (rc == MS_OK)
        rc = add_states(a, err);
    ckpt__pt_close(a);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", path);
}

static enum ms_rc open_rank(struct joining *j, const char *folder, struct layout *l,
                            struct probe_ckpt **rank)
{
    static const char *const names[] = {"model_optim_rng.pt", "model_rng.pt"};
    struct ms_buf path = {.max = 1 << 16};
    for (int i = 0; i < 2; i++) {
        ms_buf_clear(&path);
        ms_buf_printf(&path, "%s/%s/%s", j->dir, folder, names[i]);
        if (ms_path_kind(ms_buf_z(&path)) == MS_KIND_FILE)
            break;
        if (i == 1) {
            ms_buf_clear(&path);
            ms_buf_printf(&path, "%s/%s/%s", j->dir, folder, names[0]);
        }
    }
    enum ms_rc rc = ckpt__new(rank, j->err);
    if (rc == MS_OK)
        rc = ckpt__adopt(j->c, *rank, j->err);
    if (rc == MS_OK)
        rc = read_rank(*rank, ms_buf_z(&path), l, j->err);
    ms_buf_free(&path);
    return rc;
}

/* ---- joining the ranks of a stage ---------------------------------------------------------- */

/* Finds the entry of the same name, usually at the same place. */
static const struct probe_ckpt_entry *entry_like(const struct probe_ckpt *rank, size_t at,
                                                 struct ms_str name)
{
    if (at < rank->entries.n && ms_str_eq(rank->entries.p[at].name, name))
        return &rank->entries.p[at];
    for (size_t i = 0; i < rank->entries.n; i++) {
        if (ms_str_eq(rank->entries.p[i].name, name))
            return &rank->entries.p[i];
    }
    return NULL;
}

static enum ms_rc check_shape(struct joining *j, const struct probe_ckpt_entry *e,
                              const struct probe_ckpt_entry *first, uint32_t free_dim)
{
    char shown[MS_STR_SHOWN];
    bool same = e->ndim == first->ndim && e->dtype == first->dtype;
    for (uint32_t d = 0; same && d < e->ndim; d++)
        same = d == free_dim || e->shape[d] == first->shape[d];
    return same ? MS_OK
                : ms_fail(j->err, MS_E_FORMAT, "%.*s: %s has another shape or type than in %.*s",
                          MS_STR_ARG(e->file), ms_str_shown(shown, e->name),
                          MS_STR_ARG(first->file));
}

/* Puts the halves of gated layers together: all ranks' first halves, then all second ones. */
static enum ms_rc add_halves(struct joining *j, struct probe_ckpt *const *ranks,
                             const struct probe_ckpt_entry *const *e)
{
    uint64_t at = 0;
    for (int half = 0; half < 2; half++) {
        for (uint32_t r = 0; r < j->l.tp; r++) {
            struct ckpt_part part = ranks[r]->parts.p[e[r]->part];
            const uint64_t rows = part.extent[0] / 2;
            part.data += half * rows * part.stride[0] * ms_dtype_size(e[r]->dtype);
            part.extent[0] = rows;
            part.from[0] = at;
            at += rows;
            MS_TRY(ckpt__add_part(j->c, &part, j->err));
        }
    }
    return MS_OK;
}

static bool same_bytes(struct joining *j, struct probe_ckpt *const *ranks,
                       const struct probe_ckpt_entry *const *e, uint32_t r)
{
    enum { STEP = 1 << 16 };
    char *scratch = ms_alloc(2 * STEP * 16);
    const size_t size = ms_dtype_size(e[0]->dtype);
    bool same = scratch != NULL;
    (void)j;
    for (uint64_t at = 0; same && at < e[0]->count; at += STEP) {
        const uint64_t n = e[0]->count - at < STEP ? e[0]->count - at : STEP;
        const void *a = probe_ckpt_elements(ranks[0], e[0], at, n, scratch);
        const void *b = probe_ckpt_elements(ranks[r], e[r], at, n, scratch + STEP * 16);
        same = memcmp(a, b, (size_t)n * size) == 0;
    }
    ms_free(scratch);
    return same;
}

static enum ms_rc note_unlike(struct joining *j, struct probe_ckpt *const *ranks,
                              const struct probe_ckpt_entry *const *e, struct ms_str name)
{
    for (uint32_t r = 1; r < j->l.tp; r++) {
        if (!same_bytes(j, ranks, e, r))
            return ckpt__note(j->c, j->err, "%.*s is not the same in %.*s and %.*s",
                              MS_STR_ARG(name), MS_STR_ARG(e[0]->file), MS_STR_ARG(e[r]->file));
    }
    return MS_OK;
}

static enum ms_rc join_tensor(struct joining *j, struct probe_ckpt *const *ranks,
                              const struct probe_ckpt_entry *const *e, struct ms_str name)
{
    const uint32_t dim = is_one_of(name, cut_by_rows)      ? 0
                         : is_one_of(name, cut_by_columns) ? 1
                                                           : UINT32_MAX;
    uint64_t shape[PROBE_CKPT_DIMS];
    memcpy(shape, e[0]->shape, sizeof shape);
    const bool cut = dim < e[0]->ndim && j->l.tp > 1;
    bool even = true;
    for (uint32_t r = 0; r < j->l.tp; r++) {
        MS_TRY(check_shape(j, e[r], e[0], cut ? dim : UINT32_MAX));
        shape[0] += cut && dim == 0 && r > 0 ? e[r]->shape[0] : 0;
        if (cut && dim == 1 && r > 0)
            shape[1] += e[r]->shape[1];
        even = even && e[r]->ndim != 0 && e[r]->shape[0] % 2 == 0 && e[r]->parts == 1;
    }
    MS_TRY(ckpt__add_like(j->c, name, e[0], shape, j->err));
    if (!cut) {
        MS_TRY(ckpt__add_parts_of(j->c, ranks[0], e[0], 0, 0, j->err));
        return j->l.tp > 1 ? note_unlike(j, ranks, e, name) : MS_OK;
    }
    if (j->l.gated && even && ms_str_has(name, "linear_fc1"))
        return add_halves(j, ranks, e);
    for (uint32_t r = 0, at = 0; r < j->l.tp; at += (uint32_t)e[r++]->shape[dim])
        MS_TRY(ckpt__add_parts_of(j->c, ranks[r], e[r], dim, at, j->err));
    return MS_OK;
}

/* Joins one weight of a stage's ranks under its final name. */
static enum ms_rc join_weight(struct joining *j, struct probe_ckpt *const *ranks, size_t at,
                              uint32_t pp, uint32_t ep)
{
    const struct probe_ckpt_entry *first = &ranks[0]->entries.p[at], **e;
    struct ms_str name = first->name, stage;
    uint64_t vpp = 0;
    bool added;
    (void)ms_str_split(&name, '/', &stage);
    (void)ms_str_u64(stage, &vpp);
    if (name.n != 0 && name.p[0] == '.')
        name = ms_str_sub(name, 1, name.n);
    MS_TRY(rename_part(j, &name));
    const uint64_t by = vpp == 0 && j->first_layers == 0 ? j->layers_before
                                                         : (j->l.pp * vpp + pp) * j->first_layers;
    MS_TRY(renumber(j, &name, "layers.", by));
    if (j->l.experts > 0)
        MS_TRY(renumber(j, &name, "experts.", (uint64_t)j->l.experts / j->l.ep * ep));
    if (ms_map_put(&j->done, name, &added) == MS_MAP_NONE)
        return ms_no_memory(j->err);
    if (!added) /* every expert-parallel rank has what is not an expert's */
        return MS_OK;
    e = ms_calloc(j->l.tp, sizeof *e);
    if (e == NULL)
        return ms_no_memory(j->err);
    enum ms_rc rc = MS_OK;
    for (uint32_t r = 0; rc == MS_OK && r < j->l.tp; r++) {
        e[r] = entry_like(ranks[r], at, first->name);
        if (e[r] == NULL)
            rc = ms_fail(j->err, MS_E_FORMAT, "%.*s: no %.*s, which %.*s has",
                         MS_STR_ARG(ranks[r]->files.p[0]->path), MS_STR_ARG(name),
                         MS_STR_ARG(first->file));
    }
    if (rc == MS_OK)
        rc = join_tensor(j, ranks, e, name);
    ms_free(e);
    return rc;
}

/* Adds the other states of a rank under the name of its folder. */
static enum ms_rc take_states(struct joining *j, const struct probe_ckpt *rank, const char *folder)
{
    for (size_t i = 0; i < rank->entries.n; i++) {
        const struct probe_ckpt_entry *e = &rank->entries.p[i];
        char name[1000];
        if (e->role == PROBE_CKPT_WEIGHT)
            continue;
        snprintf(name, sizeof name, "%s.%.*s", folder, MS_STR_ARG(e->name));
        MS_TRY(ckpt__add_like(j->c, ms_str_of(name), e, e->shape, j->err));
        j->c->entries.p[j->c->entries.n - 1].role = ckpt__role_of(e->name, e->dtype);
        MS_TRY(ckpt__add_parts_of(j->c, rank, e, 0, 0, j->err));
    }
    return MS_OK;
}

static void folder_of(const struct layout *l, uint32_t tp, uint32_t pp, uint32_t ep, char *to,
                      size_t n)
{
    int at = snprintf(to, n, "mp_rank_%02u", tp);
    if (l->pp > 1)
        at += snprintf(to + at, n - (size_t)at, "_%03u", pp);
    if (l->ep > 1)
        snprintf(to + at, n - (size_t)at, "_%03u", ep);
}

static uint64_t count_layers(const struct probe_ckpt *rank)
{
    uint64_t layers = 0, number;
    uint32_t at, n;
    for (size_t i = 0; i < rank->entries.n; i++) {
        if (rank->entries.p[i].role == PROBE_CKPT_WEIGHT &&
            find_number(rank->entries.p[i].name, "layers.", &number, &at, &n) && number >= layers)
            layers = number + 1;
    }
    return layers;
}

static bool has_virtual_stages(const struct probe_ckpt *rank)
{
    for (size_t i = 0; i < rank->entries.n; i++) {
        if (ms_str_starts(rank->entries.p[i].name, MS_STR("1/")))
            return true;
    }
    return false;
}

static enum ms_rc join_stage(struct joining *j, struct probe_ckpt **ranks, uint32_t pp, uint32_t ep)
{
    char folder[64];
    for (uint32_t tp = 0; tp < j->l.tp; tp++) {
        folder_of(&j->l, tp, pp, ep, folder, sizeof folder);
        MS_TRY(open_rank(j, folder, NULL, &ranks[tp]));
        MS_TRY(take_states(j, ranks[tp], folder));
    }
    j->layers = count_layers(ranks[0]);
    if (pp == 0)
        j->first_layers = has_virtual_stages(ranks[0]) ? (j->layers != 0 ? j->layers : 1) : 0;
    for (size_t i = 0; i < ranks[0]->entries.n; i++) {
        const struct probe_ckpt_entry *e = &ranks[0]->entries.p[i];
        if (e->role == PROBE_CKPT_WEIGHT && e->dtype != MS_DT_NONE)
            MS_TRY(join_weight(j, ranks, i, pp, ep));
    }
    j->layers_before += j->layers;
    return MS_OK;
}

static enum ms_rc find_layout(struct joining *j)
{
    struct ms_dir list;
    struct probe_ckpt *rank;
    MS_TRY(ms_dir_list(&list, j->dir, j->err));
    enum ms_rc rc = MS_E_NOTFOUND;
    for (size_t i = 0; i < list.names.n && rc == MS_E_NOTFOUND; i++) {
        if (!ms_str_starts(list.names.p[i], MS_STR("mp_rank_")))
            continue;
        rc = open_rank(j, list.names.p[i].p, &j->l, &rank);
        if (rc == MS_E_NOTFOUND)
            rc = MS_E_IO;
    }
    ms_dir_free(&list);
    return rc;
}

enum ms_rc ckpt__megatron_read(struct probe_ckpt *c, const char *dir, struct ms_err *err)
{
    struct joining j = {.c = c, .dir = dir, .err = err};
    MS_TRY(find_layout(&j));
    struct probe_ckpt **ranks = ms_calloc(j.l.tp, sizeof(struct probe_ckpt *));
    enum ms_rc rc = ranks != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t ep = 0; rc == MS_OK && ep < j.l.ep; ep++) {
        j.layers_before = 0;
        for (uint32_t pp = 0; rc == MS_OK && pp < j.l.pp; pp++)
            rc = join_stage(&j, ranks, pp, ep);
    }
    ms_free(ranks);
    ms_map_free(&j.done);
    c->knows_weights = true;
    snprintf(c->kind, sizeof c->kind, "Megatron, %u x %u x %u ranks (tensor, pipeline, expert)",
             j.l.tp, j.l.pp, j.l.ep);
    return rc;
}
