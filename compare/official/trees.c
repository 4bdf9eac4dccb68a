/* SPDX-License-Identifier: MIT
 *
 * trees: compares directories of .npy files.
 */
#include "compare/official/trees.h"

#include "compare/official/file_pair.h"
#include "compare/read/pytext.h"

#define TEXT_MAX ((size_t)1 << 32)
enum { DEPTH_MAX = 10 };

static const char *const columns[] = {"Name",
                                      "NPU Dtype",
                                      "Bench Dtype",
                                      "NPU Tensor Shape",
                                      "Bench Tensor Shape",
                                      "Cosine",
                                      "EucDist",
                                      "MaxAbsErr",
                                      "MaxRelativeErr",
                                      "One Thousandth Err Ratio",
                                      "Five Thousandths Err Ratio",
                                      "NPU max",
                                      "NPU min",
                                      "NPU mean",
                                      "NPU l2norm",
                                      "Bench max",
                                      "Bench min",
                                      "Bench mean",
                                      "Bench l2norm",
                                      "Accuracy Reached or Not",
                                      "Err_message",
                                      "Data_name",
                                      NULL};

/* ---- the files of a directory and below ------------------------------------------- */

struct file {
    struct ms_str path;
    uint32_t key, nth; /* nth: index among the files of the key */
};
struct list {
    struct ms_arena *arena;
    struct ms_map keys;
    MS_VEC(struct file) files;
    MS_VEC(uint32_t) count;  /* number of files by key */
    uint32_t *start, *order; /* the nth file of a key is files[order[start[key] + nth]] */
};

static void list_free(struct list *l)
{
    ms_map_free(&l->keys);
    ms_vec_free(&l->files);
    ms_vec_free(&l->count);
    ms_free(l->start);
    ms_free(l->order);
    ms_arena_free(l->arena);
}

/* Returns the key of a file name: a_b for a_b_0_1.npy. */
static struct ms_str key_of(struct ms_str name)
{
    name = ms_str_sub(name, 0, name.n - (uint32_t)strlen(".npy"));
    for (unsigned i = 0; i < 2; i++) {
        int64_t line = ms_str_rfind(name, '_');
        if (line < 0)
            return MS_STR("");
        name = ms_str_sub(name, 0, (uint32_t)line);
    }
    return name;
}

static enum ms_rc add_file(struct list *l, const char *dir, struct ms_str name, struct ms_err *err)
{
    bool added;
    struct ms_str key = key_of(name);
    if (key.n == 0)
        return MS_OK;
    char *path = ms_path_join(dir, name.p);
    struct ms_str kept = path != NULL ? ms_arena_str(l->arena, ms_str_of(path)) : MS_STR_NONE;
    ms_free(path);
    uint32_t id = ms_map_put_copy(&l->keys, key, l->arena, &added);
    struct file *f = kept.p != NULL && id != MS_MAP_NONE ? ms_vec_push(&l->files) : NULL;
    if (f == NULL || (added && ms_vec_push(&l->count) == NULL))
        return ms_no_memory(err);
    if (added)
        l->count.p[id] = 0;
    *f = (struct file){kept, id, l->count.p[id]++};
    return MS_OK;
}

static bool is_npy(struct ms_str name)
{
    return ms_str_ends(name, MS_STR(".npy"));
}

static enum ms_rc list_files(struct list *l, const char *dir, unsigned depth, struct ms_err *err)
{
    struct ms_dir d;
    MS_TRY(ms_dir_list(&d, dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++) {
        if (is_npy(d.names.p[i]))
            rc = add_file(l, dir, d.names.p[i], err);
    }
    for (size_t i = 0; i < d.names.n && rc == MS_OK && depth < DEPTH_MAX; i++) {
        char *path = ms_path_join(dir, d.names.p[i].p);
        if (path == NULL)
            rc = ms_no_memory(err);
        else if (ms_path_kind(path) == MS_KIND_DIR)
            rc = list_files(l, path, depth + 1, err);
        ms_free(path);
    }
    ms_dir_free(&d);
    return rc;
}

static enum ms_rc order_files(struct list *l, struct ms_err *err)
{
    l->start = ms_calloc(l->count.n + 1, sizeof *l->start);
    l->order = ms_calloc(l->files.n + 1, sizeof *l->order);
    if (l->start == NULL || l->order == NULL)
        return ms_no_memory(err);
    for (size_t i = 1; i < l->count.n; i++)
        l->start[i] = l->start[i - 1] + l->count.p[i - 1];
    for (uint32_t i = 0; i < l->files.n; i++)
        l->order[l->start[l->files.p[i].key] + l->files.p[i].nth] = i;
    return MS_OK;
}

/* ---- the table of a directory ------------------------------------------------------ */

struct walker {
    const struct cmp_tree_names *names;
    struct cmp_sheet_sum *sum;
    struct cmp_files *files;
    struct ms_err *err;
};

/* Builds the name of a row from key and index: "a_b_0". */
static struct ms_str row_name(struct cmp__sheet *s, struct ms_str key, uint32_t nth)
{
    ms_buf_clear(&s->text);
    ms_buf_printf(&s->text, "%.*s_%u", MS_STR_ARG(key), nth);
    return cmp__sheet_keep(s, ms_buf_slice(&s->text));
}

/* Builds the cell of both paths: ['npu path', 'bench path']. */
static struct ms_str data_name(struct cmp__sheet *s, const char *n, const char *b)
{
    ms_buf_clear(&s->text);
    ms_buf_puts(&s->text, "[");
    cmp__py_repr_text(&s->text, ms_str_of(n != NULL ? n : "N/A"));
    ms_buf_puts(&s->text, ", ");
    cmp__py_repr_text(&s->text, ms_str_of(b != NULL ? b : "N/A"));
    ms_buf_puts(&s->text, "]");
    return cmp__sheet_keep(s, ms_buf_slice(&s->text));
}

static enum ms_rc put_pair(struct walker *w, struct cmp__sheet *s, struct ms_str name,
                           const char *n, const char *b)
{
    struct cmp__file_pair p;
    MS_TRY(cmp__file_pair_open(&p, n, b, false, false, w->err));
    const char *verdict = cmp__file_pair_verdict(&p, false);
    cmp__sheet_text(s, name);
    cmp__sheet_word(s, p.has_n ? ms_dtype_torch(p.n.dtype) : "N/A");
    cmp__sheet_word(s, p.has_b ? ms_dtype_torch(p.b.dtype) : "N/A");
    cmp__sheet_word(s, p.has_n ? cmp__file_shape(s, &p.n, '(', ')').p : "N/A");
    cmp__sheet_word(s, p.has_b ? cmp__file_shape(s, &p.b, '(', ')').p : "N/A");
    cmp__file_figures(s, &p, p.fig.state == CMP_STATE_SHAPE ? "shape unmatched" : "N/A", "Nan");
    cmp__file_stats(s, &p.n, p.has_n, "N/A", false);
    cmp__file_stats(s, &p.b, p.has_b, "N/A", false);
    cmp__sheet_count(w->sum, verdict);
    cmp__sheet_word(s, verdict);
    cmp__sheet_text(s, cmp__sheet_keep(s, ms_buf_slice(&p.why)));
    cmp__sheet_text(s, data_name(s, n, b));
    cmp__sheet_end_row(s);
    cmp__file_pair_close(&p);
    return MS_OK;
}

static const struct file *find_file(const struct list *l, uint32_t key, uint32_t nth)
{
    bool there = key != MS_MAP_NONE && nth < l->count.p[key];
    return there ? &l->files.p[l->order[l->start[key] + nth]] : NULL;
}

static uint32_t golden_key(const struct walker *w, const struct list *b, struct ms_str key)
{
    uint32_t id = ms_map_get(&b->keys, key);
    uint32_t renamed = id == MS_MAP_NONE ? ms_map_get(w->names->target, key) : MS_MAP_NONE;
    return renamed != MS_MAP_NONE ? ms_map_get(&b->keys, w->names->golden[renamed]) : id;
}

static enum ms_rc put_all(struct walker *w, struct cmp__sheet *s, const struct list *t,
                          const struct list *b, bool *taken)
{
    cmp__sheet_names(s, columns);
    cmp__sheet_end_row(s);
    for (size_t i = 0; i < t->files.n; i++) {
        const struct file *f = &t->files.p[t->order[i]];
        struct ms_str key = ms_map_key(&t->keys, f->key);
        const struct file *g = find_file(b, golden_key(w, b, key), f->nth);
        if (g != NULL)
            taken[g - b->files.p] = true;
        MS_TRY(put_pair(w, s, row_name(s, key, f->nth), f->path.p, g != NULL ? g->path.p : NULL));
    }
    for (size_t i = 0; i < b->files.n; i++) {
        const struct file *g = &b->files.p[i];
        if (!taken[i])
            MS_TRY(
                put_pair(w, s, row_name(s, ms_map_key(&b->keys, g->key), g->nth), NULL, g->path.p));
    }
    return MS_OK;
}

static enum ms_rc write_table(struct walker *w, const char *out, const struct list *t,
                              const struct list *b)
{
    struct cmp__sheet s;
    char *path = ms_path_join(out, "result.csv");
    bool *taken = ms_calloc(b->files.n + 1, sizeof *taken);
    enum ms_rc rc = path != NULL && taken != NULL ? cmp_files_add(w->files, ms_str_of(path), w->err)
                                                  : ms_no_memory(w->err);
    if (rc == MS_OK)
        rc = cmp__sheet_open(&s, path, false, w->err);
    if (rc == MS_OK)
        rc = cmp__sheet_close(&s, put_all(w, &s, t, b, taken));
    w->sum->tables += rc == MS_OK;
    ms_free(path);
    ms_free(taken);
    return rc;
}

static enum ms_rc compare_files(struct walker *w, const char *target, const char *golden,
                                const char *out)
{
    struct list t = {.arena = ms_arena_new(TEXT_MAX)}, b = {.arena = ms_arena_new(TEXT_MAX)};
    enum ms_rc rc = t.arena != NULL && b.arena != NULL ? MS_OK : ms_no_memory(w->err);
    if (rc == MS_OK)
        rc = list_files(&t, target, 0, w->err);
    if (rc == MS_OK)
        rc = list_files(&b, golden, 0, w->err);
    if (rc == MS_OK)
        rc = order_files(&t, w->err);
    if (rc == MS_OK)
        rc = order_files(&b, w->err);
    if (rc == MS_OK && t.files.n + b.files.n != 0)
        rc = write_table(w, out, &t, &b);
    list_free(&t);
    list_free(&b);
    return rc;
}

/* ---- the tree --------------------------------------------------------------------------- */

static enum ms_rc note_missing(struct walker *w, const char *target)
{
    struct ms_buf note = {.max = 1 << 16};
    ms_buf_printf(&note, "%s is on the target side alone", target);
    enum ms_rc rc = cmp__sheet_note(w->sum, &note, w->err);
    ms_buf_free(&note);
    return rc;
}

static enum ms_rc walk(struct walker *w, const char *target, const char *golden, const char *out,
                       unsigned depth);

static enum ms_rc walk_below(struct walker *w, const char *target, const char *golden,
                             const char *out, const char *name, unsigned depth)
{
    char *t = ms_path_join(target, name), *b = ms_path_join(golden, name);
    char *o = ms_path_join(out, name);
    enum ms_rc rc = t != NULL && b != NULL && o != NULL ? MS_OK : ms_no_memory(w->err);
    if (rc == MS_OK && ms_path_kind(t) == MS_KIND_DIR)
        rc = walk(w, t, b, o, depth + 1);
    ms_free(t);
    ms_free(b);
    ms_free(o);
    return rc;
}

static enum ms_rc walk(struct walker *w, const char *target, const char *golden, const char *out,
                       unsigned depth)
{
    struct ms_dir d;
    bool npy = false;
    MS_TRY(ms_dir_list(&d, target, w->err));
    for (size_t i = 0; i < d.names.n; i++)
        npy |= is_npy(d.names.p[i]);
    bool both = ms_path_kind(golden) == MS_KIND_DIR;
    enum ms_rc rc = !npy   ? MS_OK
                    : both ? compare_files(w, target, golden, out)
                           : note_missing(w, target);
    for (size_t i = 0; i < d.names.n && rc == MS_OK && depth < DEPTH_MAX; i++)
        rc = walk_below(w, target, golden, out, d.names.p[i].p, depth);
    ms_dir_free(&d);
    return rc;
}

enum ms_rc cmp_compare_trees(const char *target, const char *golden, const char *dir,
                             const struct cmp_tree_names *names, struct cmp_sheet_sum *sum,
                             struct cmp_files *files, struct ms_err *err)
{
    struct walker w = {names, sum, files, err};
    MS_TRY(walk(&w, target, golden, dir, 0));
    if (sum->tables == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no directory with .npy files named NAME_STEP_ID.npy is on both sides");
    return MS_OK;
}
