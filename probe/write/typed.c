/* SPDX-License-Identifier: MIT
 *
 * typed: reads JSON by tables of keys.
 */
#include "probe/write/typed.h"

#define MS_LOG_DOMAIN "config"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/base/nearest.h"
#include "probe/base/vec.h"

#include <stdio.h>

enum { TEXT_MAX = 1 << 16, KEYS_MAX = 64 };

/* ---- messages --------------------------------------------------------- */

enum ms_rc probe__typed_reject(struct probe__typed *t, struct ms_err *err, const char *fmt, ...)
{
    char why[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return ms_jread_reject(&t->r, err, "%s%s%s", ms_buf_z(&t->path), t->path.n != 0 ? ": " : "",
                           why);
}

static const char *kind_of(enum ms_jtok tok)
{
    switch (tok) {
    case MS_J_OBJ:
        return "an object";
    case MS_J_ARR:
        return "a list";
    case MS_J_STR:
        return "a string";
    case MS_J_NUM:
        return "a number";
    case MS_J_NULL:
        return "null";
    default:
        return "true or false";
    }
}

enum ms_rc probe__typed_mismatch(struct probe__typed *t, enum ms_jtok tok, const char *expected,
                                 struct ms_err *err)
{
    if (tok == MS_J_ERR)
        return ms_jread_fail(&t->r, err);
    if (tok == MS_J_NUM)
        return probe__typed_reject(t, err, "expected %s, found the number %.*s", expected,
                                   (int)(t->r.text.n < 40 ? t->r.text.n : 40), t->r.text.p);
    return probe__typed_reject(t, err, "expected %s, found %s", expected, kind_of(tok));
}

/* ---- objects ---------------------------------------------------------- */

/* Warns about an unknown key, with the nearest known spelling. */
static void warn_unknown(struct probe__typed *t, const char *key, const struct probe__key *keys)
{
    struct ms_near near = {.word = key};
    for (; keys->name != NULL; keys++)
        ms_near_offer(&near, keys->name);
    struct ms_err at = {0};
    ms_jread_reject(&t->r, &at, "unknown key '%s'%s%s%s", ms_buf_z(&t->path),
                    near.best != NULL ? "; did you mean '" : "", near.best != NULL ? near.best : "",
                    near.best != NULL ? "'?" : "");
    ms_err_wrap(&at, "%s", t->name);
    ms_warn("%s", at.msg);
}

static enum ms_rc skip_value(struct probe__typed *t, enum ms_jtok tok, struct ms_err *err)
{
    return ms_jread_skip(&t->r, tok) != MS_J_ERR ? MS_OK : ms_jread_fail(&t->r, err);
}

static enum ms_rc read_value(struct probe__typed *t, const struct probe__key *key, char *into,
                             struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(&t->r);
    if (tok == MS_J_ERR)
        return ms_jread_fail(&t->r, err);
    if (tok == MS_J_NULL)
        return MS_OK;
    return key->read(t, tok, into + key->offset, key->with, err);
}

/* Reads the current key; *seen has a bit for each key of the table. */
static enum ms_rc read_member(struct probe__typed *t, const struct probe__key *keys, char *into,
                              uint64_t *seen, struct ms_err *err)
{
    const size_t path_n = t->path.n;
    const char *name;
    MS_TRY(probe__keep_text(t, &name, err));
    ms_buf_printf(&t->path, "%s%s", path_n != 0 ? "." : "", name);
    MS_TRY(ms_buf_check(&t->path, err));
    size_t k = 0;
    while (keys[k].name != NULL && strcmp(keys[k].name, name) != 0)
        k++;
    if (keys[k].name == NULL) {
        warn_unknown(t, name, keys);
        MS_TRY(skip_value(t, MS_J_KEY, err));
    } else if ((*seen >> k & 1) != 0) {
        return probe__typed_reject(t, err, "for the second time in one object");
    } else {
        MS_TRY(read_value(t, &keys[k], into, err));
        *seen |= UINT64_C(1) << k;
    }
    t->path.n = path_n;
    return MS_OK;
}

PROBE__READER(probe__read_object)
{
    uint64_t seen = 0;
    if (tok != MS_J_OBJ)
        return probe__typed_mismatch(t, tok, "an object in { }", err);
    while ((tok = ms_jread_next(&t->r)) == MS_J_KEY)
        MS_TRY(read_member(t, with, at, &seen, err));
    return tok != MS_J_ERR ? MS_OK : ms_jread_fail(&t->r, err);
}

static enum ms_rc read_file(struct probe__typed *t, const struct probe__key *keys, void *into,
                            struct ms_err *err)
{
    MS_TRY(probe__read_object(t, ms_jread_next(&t->r), into, keys, err));
    return ms_jread_next(&t->r) == MS_J_END ? MS_OK : ms_jread_fail(&t->r, err);
}

/* Moves to the value of a key of the text's object or of its member `section`. */
static bool find_key(struct ms_jread *r, struct ms_str text, const char *section, struct ms_str key)
{
    bool in_section = false;
    ms_jread_init(r, text.p, text.n, 0);
    for (enum ms_jtok tok = ms_jread_next(r); tok > MS_J_END; tok = ms_jread_next(r)) {
        if (tok != MS_J_KEY || r->depth > (in_section ? 2U : 1U))
            continue;
        if (ms_str_eq(r->text, key))
            return ms_jread_next(r) > MS_J_END;
        if (r->depth == 1)
            in_section = ms_str_is(r->text, section);
    }
    return false;
}

bool probe__typed_locate(struct ms_str text, const char *section, struct ms_err *err)
{
    struct ms_err placed = {0};
    struct ms_jread r;
    struct ms_str key = {err->msg, (uint32_t)strcspn(err->msg, ":[")};
    int64_t dot = ms_str_rfind(key, '.');
    if (dot >= 0)
        key = ms_str_sub(key, (uint32_t)dot + 1, key.n);
    if (!find_key(&r, text, section, key))
        return false;
    ms_jread_reject(&r, &placed, "%s", err->msg);
    *err = placed;
    return true;
}

/* Removes the byte order mark that some editors put at the start of a file. */
static struct ms_str without_mark(struct ms_str text)
{
    struct ms_str mark = MS_STR(MS_UTF8_MARK);
    return ms_str_starts(text, mark) ? ms_str_sub(text, mark.n, text.n) : text;
}

enum ms_rc probe__typed_read(const char *name, struct ms_str text, struct ms_arena *arena,
                             const struct probe__key *keys, void *into, struct ms_err *err)
{
    struct probe__typed t = {
        .name = name, .arena = arena, .scratch.max = TEXT_MAX, .path.max = TEXT_MAX};
    text = without_mark(text);
    ms_jread_init(&t.r, text.p, text.n, 0);
    enum ms_rc rc = read_file(&t, keys, into, err);
    ms_buf_free(&t.scratch);
    ms_buf_free(&t.path);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", name);
    return rc;
}

/* ---- plain values ----------------------------------------------------- */

enum ms_rc probe__keep_text(struct probe__typed *t, const char **out, struct ms_err *err)
{
    struct ms_str text;
    MS_TRY(ms_jread_text(&t->r, &t->scratch, &text, err));
    if (memchr(text.p, '\0', text.n) != NULL)
        return ms_jread_reject(&t->r, err, "text holds \\u0000");
    text = ms_arena_str(t->arena, text);
    *out = text.p;
    return text.p != NULL ? MS_OK : ms_no_memory(err);
}

PROBE__READER(probe__read_int)
{
    const struct probe__bounds *b = with;
    int64_t v;
    if (tok != MS_J_NUM || !ms_jread_i64(&t->r, &v))
        return probe__typed_mismatch(t, tok, "a whole number", err);
    if (v < b->min || v > b->max)
        return probe__typed_reject(t, err, "expected a number from %lld to %lld, found %lld",
                                   (long long)b->min, (long long)b->max, (long long)v);
    *(int64_t *)at = v;
    return MS_OK;
}

PROBE__READER(probe__read_bool)
{
    (void)with;
    if (tok != MS_J_TRUE && tok != MS_J_FALSE)
        return probe__typed_mismatch(t, tok, "true or false", err);
    *(bool *)at = tok == MS_J_TRUE;
    return MS_OK;
}

PROBE__READER(probe__read_str)
{
    (void)with;
    if (tok != MS_J_STR)
        return probe__typed_mismatch(t, tok, "a string", err);
    return probe__keep_text(t, at, err);
}

static enum ms_rc not_a_choice(struct probe__typed *t, const char *found,
                               const char *const *choices, struct ms_err *err)
{
    char list[256] = "";
    size_t n = 0;
    for (int i = 0; choices[i] != NULL && n < sizeof list; i++)
        n +=
            (size_t)snprintf(list + n, sizeof list - n, "%s\"%s\"", i != 0 ? ", " : "", choices[i]);
    probe__typed_reject(t, err, "expected one of %s, found \"%.40s\"", list, found);
    const char *near = ms_nearest(found, choices);
    if (near != NULL)
        ms_err_hint(err, "did you mean \"%s\"?", near);
    return MS_E_FORMAT;
}

static enum ms_rc find_choice(struct probe__typed *t, const char *found, const char *const *choices,
                              int *index, struct ms_err *err)
{
    for (*index = 0; choices[*index] != NULL; ++*index) {
        if (strcmp(choices[*index], found) == 0)
            return MS_OK;
    }
    return not_a_choice(t, found, choices, err);
}

PROBE__READER(probe__read_choice)
{
    const char *found;
    MS_TRY(probe__read_str(t, tok, &found, NULL, err));
    return find_choice(t, found, with, at, err);
}

PROBE__READER(probe__ignore)
{
    (void)at;
    (void)with;
    return skip_value(t, tok, err);
}

PROBE__READER(probe__unused)
{
    (void)at;
    ms_warn("%s: %s: %s", t->name, ms_buf_z(&t->path), (const char *)with);
    return skip_value(t, tok, err);
}

PROBE__READER(probe__refused)
{
    (void)tok;
    (void)at;
    return probe__typed_reject(t, err, "%s", (const char *)with);
}

/* ---- lists ------------------------------------------------------------ */

enum ms_rc probe__read_list(struct probe__typed *t, enum ms_jtok tok, const char *of,
                            probe__read_item item, void *ctx, struct ms_err *err)
{
    const size_t path_n = t->path.n;
    if (tok != MS_J_ARR)
        return probe__typed_mismatch(t, tok, of, err);
    for (unsigned i = 0; (tok = ms_jread_next(&t->r)) > MS_J_END && tok != MS_J_ARR_END; i++) {
        ms_buf_printf(&t->path, "[%u]", i);
        MS_TRY(ms_buf_check(&t->path, err));
        MS_TRY(item(t, tok, ctx, err));
        t->path.n = path_n;
    }
    return tok != MS_J_ERR ? MS_OK : ms_jread_fail(&t->r, err);
}

struct words {
    MS_VEC(const char *) v;
    const char *const *allowed;
};

static enum ms_rc read_word(struct probe__typed *t, enum ms_jtok tok, void *ctx, struct ms_err *err)
{
    struct words *w = ctx;
    const char *text;
    int index;
    MS_TRY(probe__read_str(t, tok, &text, NULL, err));
    if (w->allowed != NULL)
        MS_TRY(find_choice(t, text, w->allowed, &index, err));
    const char **slot = ms_vec_push(&w->v);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = text;
    return MS_OK;
}

PROBE__READER(probe__read_words)
{
    struct words w = {.allowed = with};
    enum ms_rc rc = probe__read_list(t, tok, "a list of strings", read_word, &w, err);
    const char **kept = rc == MS_OK ? ms_arena_calloc(t->arena, w.v.n + 1, sizeof *kept) : NULL;
    if (rc == MS_OK && kept == NULL)
        rc = ms_no_memory(err);
    if (rc == MS_OK && w.v.n != 0)
        memcpy(kept, w.v.p, w.v.n * sizeof *kept);
    ms_vec_free(&w.v);
    if (rc == MS_OK)
        *(const char *const **)at = kept;
    return rc;
}
