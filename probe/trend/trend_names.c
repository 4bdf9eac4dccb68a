/* SPDX-License-Identifier: MIT
 *
 * trend_names: names of targets: the user's mapping, and the tags that the viewer filters by.
 */
#include "probe/trend/trend_int.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"

enum { NAME_MAX_BYTES = 1 << 20, MAPPING_MAX = 1 << 30 };

/* ---- the mapping ------------------------------------------------------ */

static enum ms_rc keep_text(struct probe__renames *m, const struct ms_jread *r, bool is_key,
                            struct ms_err *err)
{
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    struct ms_str text;
    enum ms_rc rc = ms_jread_text(r, &scratch, &text, err);
    struct ms_str *slot = is_key ? ms_vec_push(&m->from) : ms_vec_push(&m->to);
    if (rc == MS_OK && slot != NULL)
        *slot = ms_arena_str(m->arena, text);
    ms_buf_free(&scratch);
    if (rc != MS_OK)
        return rc;
    return slot != NULL && slot->p != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_pairs(struct probe__renames *m, struct ms_jread *r, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_ERR && tok != MS_J_OBJ)
        return ms_jread_reject(r, err, "expected an object of names and what replaces them");
    while (tok != MS_J_ERR && (tok = ms_jread_next(r)) == MS_J_KEY) {
        if (r->text.n == 0)
            return ms_jread_reject(r, err, "an empty name cannot be replaced");
        MS_TRY(keep_text(m, r, true, err));
        tok = ms_jread_next(r);
        if (tok != MS_J_ERR && tok != MS_J_STR)
            return ms_jread_reject(r, err, "expected a text that replaces the name");
        if (tok == MS_J_STR)
            MS_TRY(keep_text(m, r, false, err));
    }
    if (tok == MS_J_OBJ_END)
        tok = ms_jread_next(r);
    return tok == MS_J_END ? MS_OK : ms_jread_fail(r, err);
}

enum ms_rc probe__renames_read(struct probe__renames *m, const char *path, struct ms_err *err)
{
    struct ms_file file;
    struct ms_jread r;
    *m = (struct probe__renames){0};
    if (path == NULL)
        return MS_OK;
    MS_TRY(ms_file_map(&file, path, MAPPING_MAX, err));
    ms_jread_init(&r, file.p, file.n, 0);
    m->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = m->arena != NULL ? read_pairs(m, &r, err) : ms_no_memory(err);
    ms_file_unmap(&file);
    if (rc == MS_OK)
        return MS_OK;
    probe__renames_free(m);
    return ms_err_wrap(err, "%s", path), rc;
}

void probe__renames_free(struct probe__renames *m)
{
    ms_vec_free(&m->from);
    ms_vec_free(&m->to);
    ms_arena_free(m->arena);
    m->arena = NULL;
}

void probe__put_replaced(struct ms_buf *out, struct ms_str s, struct ms_str from, struct ms_str to)
{
    for (;;) {
        int64_t at = ms_str_find_str(s, from);
        if (at < 0)
            break;
        ms_buf_str(out, ms_str_sub(s, 0, (uint32_t)at));
        ms_buf_str(out, to);
        s = ms_str_sub(s, (uint32_t)at + from.n, s.n);
    }
    ms_buf_str(out, s);
}

enum ms_rc probe__rename(const struct probe__renames *m, struct ms_str name, struct ms_buf buf[2],
                         struct ms_str *out, struct ms_err *err)
{
    int into = 0;
    for (size_t i = 0; i < m->from.n; i++) {
        if (ms_str_find_str(name, m->from.p[i]) < 0)
            continue;
        ms_buf_clear(&buf[into]);
        probe__put_replaced(&buf[into], name, m->from.p[i], m->to.p[i]);
        MS_TRY(ms_buf_check(&buf[into], err));
        name = ms_buf_slice(&buf[into]);
        into = !into;
    }
    *out = name;
    return MS_OK;
}

/* ---- tags ------------------------------------------------------------- */

/* A name split at its dots. */
struct parts {
    MS_VEC(struct ms_str) list;
};

static enum ms_rc cut(struct parts *ps, struct ms_str name, struct ms_err *err)
{
    struct ms_str part;
    while (ms_str_split(&name, '.', &part)) {
        struct ms_str *slot = ms_vec_push(&ps->list);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = part;
    }
    return MS_OK;
}

/* Returns parts [from, to) with the dots between them. */
static struct ms_str joined(const struct parts *ps, size_t from, size_t to)
{
    const char *p = ps->list.p[from].p;
    const struct ms_str *last = &ps->list.p[to - 1];
    return (struct ms_str){p, (uint32_t)(last->p + last->n - p)};
}

static bool is_number(const struct parts *ps, size_t i)
{
    return ms_str_all_digits(ps->list.p[i]);
}

struct tagger {
    probe__tag_fn fn;
    void *ctx;
    struct ms_err *err;
};

static enum ms_rc tag(const struct tagger *t, struct ms_str name, const char *category)
{
    return name.n != 0 ? t->fn(t->ctx, name, category, t->err) : MS_OK;
}

/* Tags parts [from, to) of a module: "layers.0" for a number behind a word, and the words in
 * between. */
static enum ms_rc tag_module(const struct tagger *t, const struct parts *ps, size_t from, size_t to)
{
    size_t done = from; /* start of the words without a tag */
    for (size_t i = from; i < to; i++) {
        if (!is_number(ps, i))
            continue;
        if (i > done) {
            MS_TRY(tag(t, joined(ps, i - 1, i + 1), "layer"));
            if (i - 1 > done)
                MS_TRY(tag(t, joined(ps, done, i - 1), "module"));
        }
        done = i + 1;
    }
    return done < to ? tag(t, joined(ps, done, to), "module") : MS_OK;
}

static bool has_part(const struct parts *ps, const char *word)
{
    for (size_t i = 0; i < ps->list.n; i++) {
        if (ms_str_is(ps->list.p[i], word))
            return true;
    }
    return false;
}

/* Tags a target of a dump. A leading "Module" or "Cell" is a tag of its own; without one the name
 * is that of a function. The last two parts name the tensor. */
static enum ms_rc tag_dump(const struct tagger *t, const struct parts *ps)
{
    size_t n = ps->list.n, from = 0;
    while (from + 2 < n &&
           (ms_str_is(ps->list.p[from], "Module") || ms_str_is(ps->list.p[from], "Cell")))
        from++;
    if (from + 2 >= n)
        return MS_OK;
    MS_TRY(tag(t, joined(ps, n - 2, n), "index"));
    if (has_part(ps, "parameters"))
        MS_TRY(tag(t, MS_STR("parameters"), "default"));
    for (size_t i = 0; i < from; i++)
        MS_TRY(tag(t, ps->list.p[i], "default"));
    return from == 0 ? tag(t, joined(ps, 0, n - 2), "function") : tag_module(t, ps, from, n - 2);
}

static enum ms_rc tag_monitor(const struct tagger *t, const struct parts *ps)
{
    for (size_t i = ps->list.n; i-- != 0;) {
        if (!is_number(ps, i))
            MS_TRY(tag(t, ps->list.p[i], "module"));
        else if (i != 0 && !is_number(ps, i - 1))
            MS_TRY(tag(t, joined(ps, i - 1, i + 1), "layer"));
    }
    return MS_OK;
}

enum ms_rc probe__dump_tags(struct ms_str target, probe__tag_fn fn, void *ctx, struct ms_err *err)
{
    const struct tagger t = {fn, ctx, err};
    struct parts ps = {0};
    enum ms_rc rc = cut(&ps, target, err);
    if (rc == MS_OK)
        rc = tag_dump(&t, &ps);
    ms_vec_free(&ps.list);
    return rc;
}

enum ms_rc probe__monitor_tags(struct ms_str target, probe__tag_fn fn, void *ctx,
                               struct ms_err *err)
{
    const struct tagger t = {fn, ctx, err};
    struct parts ps = {0};
    enum ms_rc rc = cut(&ps, target, err);
    if (rc == MS_OK)
        rc = tag_monitor(&t, &ps);
    ms_vec_free(&ps.list);
    return rc;
}
