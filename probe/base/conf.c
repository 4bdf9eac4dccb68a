/* SPDX-License-Identifier: MIT
 *
 * conf: cJSON holds the tree, but its parser is too lenient. It accepts "01", duplicate keys and
 * control characters without an error, and does not report where an error is. Therefore the text is
 * first checked with jread, which is strict and counts lines; cJSON parses only text that has
 * passed.
 *
 * A cJSON node does not know its parent. Therefore the values that callers get are small records of
 * our own with a parent, so that messages can name the whole path.
 */
#include "probe/base/conf.h"

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/nearest.h"

#define MS_LOG_DOMAIN "conf"
#include "probe/base/log.h"

#include <assert.h>
#include <cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

struct ms_conf_value {
    struct ms_conf *file;
    const cJSON *node;
    const struct ms_conf_value *parent; /* NULL: the root */
    size_t index;                       /* in the parent, when the parent is a list */
    struct ms_conf_value *items;        /* items of a list or object */
    size_t nitems;
};

struct ms_conf {
    struct ms_arena *arena; /* the values */
    char *name;
    cJSON *tree;
    struct ms_conf_value root;
};

/* ---- strict reading --------------------------------------------------- */

/* State of the check for duplicate keys. One table holds the keys of all objects; each key is
 * prefixed with the number of its object. */
struct judge {
    struct ms_jread r;
    struct ms_arena *arena;
    struct ms_map keys;
    struct ms_buf text, key;
    uint32_t objects;                /* objects so far */
    uint32_t object[MS_JREAD_DEPTH]; /* number of the one open at each depth */
};

/* Rejects a NUL, which would end the text for cJSON and its callers, and half of a surrogate pair,
 * which is not a character. */
static bool is_plain_text(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n;) {
        unsigned n = ms_utf8_len(s.p + i, s.n - i);
        if (n == 0 || s.p[i] == '\0')
            return false;
        i += n;
    }
    return true;
}

static enum ms_rc judge_text(struct judge *j, struct ms_str *text, struct ms_err *err)
{
    MS_TRY(ms_jread_text(&j->r, &j->text, text, err));
    if (!is_plain_text(*text))
        return ms_jread_reject(&j->r, err, "text holds \\u0000 or half of a surrogate pair");
    return MS_OK;
}

static enum ms_rc judge_key(struct judge *j, struct ms_err *err)
{
    struct ms_str text;
    bool added;
    uint32_t object = j->object[j->r.depth - 1];
    MS_TRY(judge_text(j, &text, err));
    ms_buf_clear(&j->key);
    ms_buf_put(&j->key, &object, sizeof object);
    ms_buf_str(&j->key, text);
    MS_TRY(ms_buf_check(&j->key, err));
    if (ms_map_put_copy(&j->keys, ms_buf_slice(&j->key), j->arena, &added) == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return ms_jread_reject(&j->r, err, "key '%.*s' for the second time in one object",
                               MS_STR_ARG(text));
    return MS_OK;
}

static enum ms_rc judge_token(struct judge *j, enum ms_jtok tok, struct ms_err *err)
{
    struct ms_str text;
    double v;
    switch (tok) {
    case MS_J_OBJ:
        j->object[j->r.depth - 1] = j->objects++;
        return MS_OK;
    case MS_J_KEY:
        return judge_key(j, err);
    case MS_J_STR:
        return judge_text(j, &text, err);
    case MS_J_NUM:
        if (!ms_jread_f64(&j->r, &v) || !isfinite(v))
            return ms_jread_reject(&j->r, err, "expected a number of ordinary size, found %.*s",
                                   MS_STR_ARG(j->r.text));
        return MS_OK;
    default:
        return MS_OK;
    }
}

static enum ms_rc judge_all(struct judge *j, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(&j->r);
    if (tok > MS_J_END && tok != MS_J_OBJ)
        return ms_jread_reject(&j->r, err, "expected an object in { } at the top");
    for (; tok > MS_J_END; tok = ms_jread_next(&j->r))
        MS_TRY(judge_token(j, tok, err));
    return tok == MS_J_ERR ? ms_jread_fail(&j->r, err) : MS_OK;
}

static enum ms_rc judge_file(struct ms_str text, struct ms_err *err)
{
    /* A key with its object number and NUL is no longer than its source text: quotes, colon and
     * value. */
    struct judge j = {.arena = ms_arena_new((size_t)2 * MS_CONF_MAX),
                      .text.max = MS_CONF_MAX,
                      .key.max = MS_CONF_MAX + sizeof(uint32_t)};
    if (j.arena == NULL)
        return ms_no_memory(err);
    ms_jread_init(&j.r, text.p, text.n, 0);
    enum ms_rc rc = judge_all(&j, err);
    ms_map_free(&j.keys);
    ms_buf_free(&j.text);
    ms_buf_free(&j.key);
    ms_arena_free(j.arena);
    return rc;
}

/* ---- opening ---------------------------------------------------------- */

static void use_our_memory(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = ms_alloc, .free_fn = ms_free});
}

static enum ms_rc build_tree(struct ms_conf *c, struct ms_str text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, use_our_memory);
    char *z = ms_str_dup(text);
    if (z == NULL)
        return MS_E_NOMEM;
    /* The length includes the NUL; without it cJSON accepts text behind the value. */
    c->tree = cJSON_ParseWithLengthOpts(z, (size_t)text.n + 1, NULL, true);
    ms_free(z);
    return c->tree != NULL ? MS_OK : MS_E_NOMEM;
}

static enum ms_rc fill(struct ms_conf *c, const char *name, struct ms_str text)
{
    c->name = ms_str_dup(ms_str_of(name));
    c->arena = ms_arena_new(SIZE_MAX);
    if (c->name == NULL || c->arena == NULL)
        return MS_E_NOMEM;
    MS_TRY(build_tree(c, text));
    c->root = (struct ms_conf_value){.file = c, .node = c->tree};
    return MS_OK;
}

/* Removes the byte order mark that some editors put at the start of a file. */
static struct ms_str without_mark(struct ms_str text)
{
    struct ms_str mark = MS_STR("\xEF\xBB\xBF");
    return ms_str_starts(text, mark) ? ms_str_sub(text, mark.n, text.n) : text;
}

enum ms_rc ms_conf_parse(struct ms_conf **conf, const char *name, struct ms_str text,
                         struct ms_err *err)
{
    *conf = NULL;
    if (text.n > MS_CONF_MAX)
        return ms_fail(err, MS_E_LIMIT, "%s: %u bytes, more than the %d allowed", name, text.n,
                       MS_CONF_MAX);
    text = without_mark(text);
    enum ms_rc rc = judge_file(text, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", name);
        return rc;
    }
    struct ms_conf *c = ms_calloc(1, sizeof *c);
    rc = c != NULL ? fill(c, name, text) : MS_E_NOMEM;
    if (rc == MS_OK) {
        *conf = c;
        return MS_OK;
    }
    ms_conf_close(c);
    return ms_fail(err, rc, "%s: %s", name, ms_rc_text(rc));
}

enum ms_rc ms_conf_open(struct ms_conf **conf, const char *path, struct ms_err *err)
{
    struct ms_file f;
    *conf = NULL;
    MS_TRY(ms_file_map(&f, path, MS_CONF_MAX, err));
    enum ms_rc rc = ms_conf_parse(conf, path, (struct ms_str){f.p, (uint32_t)f.n}, err);
    ms_file_unmap(&f);
    return rc;
}

void ms_conf_close(struct ms_conf *c)
{
    if (c == NULL)
        return;
    cJSON_Delete(c->tree);
    ms_arena_free(c->arena);
    ms_free(c->name);
    ms_free(c);
}

const struct ms_conf_value *ms_conf_root(const struct ms_conf *c)
{
    return &c->root;
}

/* ---- messages --------------------------------------------------------- */

enum { PATH_TEXT = 256 };

/* Writes the path of a value, "task.ranks[2]", behind the first n bytes of buf; returns the new
 * n. */
static size_t put_path(const struct ms_conf_value *v, char *buf, size_t n)
{
    if (v->parent == NULL)
        return 0;
    n = put_path(v->parent, buf, n);
    if (n >= PATH_TEXT)
        return n;
    if (v->node->string == NULL)
        return n + (size_t)snprintf(buf + n, PATH_TEXT - n, "[%zu]", v->index);
    return n + (size_t)snprintf(buf + n, PATH_TEXT - n, "%s%s", n != 0 ? "." : "", v->node->string);
}

enum ms_rc ms_conf_reject(const struct ms_conf_value *at, struct ms_err *err, const char *fmt, ...)
{
    char path[PATH_TEXT] = "";
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    size_t n = put_path(at, path, 0);
    return ms_fail(err, MS_E_FORMAT, "%s: %s%s%s", at->file->name, path, n != 0 ? ": " : "", why);
}

static const char *kind_of(const cJSON *node)
{
    switch (node->type & 0xFF) {
    case cJSON_False:
    case cJSON_True:
        return "true or false";
    case cJSON_NULL:
        return "null";
    case cJSON_Number:
        return "a number";
    case cJSON_String:
        return "a string";
    case cJSON_Array:
        return "a list";
    default:
        return "an object";
    }
}

static enum ms_rc wrong_type(const struct ms_conf_value *v, const char *expected,
                             struct ms_err *err)
{
    return ms_conf_reject(v, err, "expected %s, found %s", expected, kind_of(v->node));
}

/* ---- getters ---------------------------------------------------------- */

/* Finds the value under a key; v has no node when the key is absent or null. */
static enum ms_rc find(const struct ms_conf_value *at, const char *key, struct ms_conf_value *v,
                       struct ms_err *err)
{
    *v = (struct ms_conf_value){.file = at->file, .parent = at};
    if (!cJSON_IsObject(at->node))
        return wrong_type(at, "an object", err);
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(at->node, key);
    if (node != NULL && !cJSON_IsNull(node))
        v->node = node;
    return MS_OK;
}

enum ms_rc ms_conf_str(const struct ms_conf_value *at, const char *key, const char **out,
                       struct ms_err *err)
{
    struct ms_conf_value v;
    MS_TRY(find(at, key, &v, err));
    if (v.node == NULL)
        return MS_OK;
    if (!cJSON_IsString(v.node))
        return wrong_type(&v, "a string", err);
    *out = v.node->valuestring;
    return MS_OK;
}

enum ms_rc ms_conf_bool(const struct ms_conf_value *at, const char *key, bool *out,
                        struct ms_err *err)
{
    struct ms_conf_value v;
    MS_TRY(find(at, key, &v, err));
    if (v.node == NULL)
        return MS_OK;
    if (!cJSON_IsBool(v.node))
        return wrong_type(&v, "true or false", err);
    *out = cJSON_IsTrue(v.node);
    return MS_OK;
}

/* Reads a whole number of at most 2^53, because above it a double cannot hold every whole
 * number. */
static bool get_whole(const cJSON *node, int64_t *out)
{
    double v = node->valuedouble;
    if (!cJSON_IsNumber(node) || fabs(v) > 0x1p53 || v != trunc(v))
        return false;
    *out = (int64_t)v;
    return true;
}

/* Copies v into memory that lives as long as the file. */
static enum ms_rc keep_value(const struct ms_conf_value *v, struct ms_conf_value **kept,
                             struct ms_err *err)
{
    *kept = ms_arena_alloc(v->file->arena, sizeof **kept);
    if (*kept == NULL)
        return ms_arena_fail(v->file->arena, err);
    **kept = *v;
    return MS_OK;
}

/* Finds the value under a key and copies it for the lifetime of the file; NULL when the key is
 * absent. Fails when the value has another type. */
static enum ms_rc find_kept(const struct ms_conf_value *at, const char *key,
                            cJSON_bool (*is_type)(const cJSON *), const char *type,
                            struct ms_conf_value **kept, struct ms_err *err)
{
    struct ms_conf_value v;
    *kept = NULL;
    MS_TRY(find(at, key, &v, err));
    if (v.node == NULL)
        return MS_OK;
    return is_type(v.node) ? keep_value(&v, kept, err) : wrong_type(&v, type, err);
}

/* Builds an array of the items, because cJSON finds item i by walking its linked list. */
static enum ms_rc number_items(struct ms_conf_value *list, struct ms_err *err)
{
    size_t n = 0;
    const cJSON *node;
    cJSON_ArrayForEach(node, list->node) n++;
    list->items = ms_arena_calloc(list->file->arena, n, sizeof *list->items);
    if (list->items == NULL)
        return ms_arena_fail(list->file->arena, err);
    cJSON_ArrayForEach(node, list->node)
    {
        list->items[list->nitems] = (struct ms_conf_value){
            .file = list->file, .node = node, .parent = list, .index = list->nitems};
        list->nitems++;
    }
    return MS_OK;
}

/* Finds a list or object and indexes its items; *out stays NULL when the key is absent. */
static enum ms_rc find_items(const struct ms_conf_value *at, const char *key,
                             cJSON_bool (*is_type)(const cJSON *), const char *type,
                             const struct ms_conf_value **out, struct ms_err *err)
{
    struct ms_conf_value *kept;
    *out = NULL;
    MS_TRY(find_kept(at, key, is_type, type, &kept, err));
    if (kept != NULL)
        MS_TRY(number_items(kept, err));
    *out = kept;
    return MS_OK;
}

enum ms_rc ms_conf_object(const struct ms_conf_value *at, const char *key,
                          const struct ms_conf_value **out, struct ms_err *err)
{
    return find_items(at, key, cJSON_IsObject, "an object", out, err);
}

enum ms_rc ms_conf_list(const struct ms_conf_value *at, const char *key,
                        const struct ms_conf_value **out, struct ms_err *err)
{
    return find_items(at, key, cJSON_IsArray, "a list", out, err);
}

size_t ms_conf_len(const struct ms_conf_value *list)
{
    return list->nitems;
}

const struct ms_conf_value *ms_conf_item(const struct ms_conf_value *list, size_t i)
{
    assert(i < list->nitems);
    return &list->items[i];
}

const char *ms_conf_key(const struct ms_conf_value *object, size_t i)
{
    return ms_conf_item(object, i)->node->string;
}

bool ms_conf_item_str(const struct ms_conf_value *list, size_t i, const char **out)
{
    const cJSON *node = ms_conf_item(list, i)->node;
    if (!cJSON_IsString(node))
        return false;
    *out = node->valuestring;
    return true;
}

bool ms_conf_item_int(const struct ms_conf_value *list, size_t i, int64_t *out)
{
    return get_whole(ms_conf_item(list, i)->node, out);
}

static bool is_known(const char *key, const char *const *known)
{
    for (; *known != NULL; known++) {
        if (strcmp(*known, key) == 0)
            return true;
    }
    return false;
}

void ms_conf_warn_unknown(const struct ms_conf_value *at, const char *const *known)
{
    const cJSON *node;
    cJSON_ArrayForEach(node, at->node)
    {
        if (node->string == NULL || is_known(node->string, known))
            continue;
        char path[PATH_TEXT] = "";
        put_path(&(struct ms_conf_value){.file = at->file, .node = node, .parent = at}, path, 0);
        const char *near = ms_nearest(node->string, known);
        ms_warn("%s: %s: unknown key, ignored%s%s%s", at->file->name, path,
                near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                near != NULL ? "'?" : "");
    }
}

const char *ms_conf_version(void)
{
    return cJSON_Version();
}
