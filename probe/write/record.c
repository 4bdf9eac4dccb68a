/* SPDX-License-Identifier: MIT
 *
 * record: text of one member of the document's "data", indented for its depth there.
 *
 * The path grows and shrinks with the values that are open; at a tensor it is the name of the file
 * with the elements.
 */
#include "probe/write/record.h"

#define MS_LOG_DOMAIN "record"
#include "probe/base/log.h"
#include "probe/base/num.h"

/* Most bytes of one record's text; the description of a tensor takes a few hundred. */
#define TEXT_MAX ((size_t)1 << 30)
enum { FILE_NAME_MAX = 255, PATH_BYTES = 1 << 16 };

/* ---- life ------------------------------------------------------------- */

/* Starts the text at the depth of the document's members: inside two objects. */
static void reset(struct probe__record *r)
{
    struct ms_buf buf = r->json.buf;
    ms_jwrite_init(&r->json, 1, TEXT_MAX);
    if (buf.p != NULL)
        r->json.buf = buf;
    r->json.buf.bad = MS_OK;
    ms_jwrite_obj(&r->json);
    ms_jwrite_key(&r->json, MS_STR(""));
    ms_jwrite_obj(&r->json);
}

void probe__record_init(struct probe__record *r, const struct probe__style *style)
{
    r->style = style;
    r->path.max = PATH_BYTES;
    reset(r);
}

void probe__record_free(struct probe__record *r)
{
    ms_jwrite_free(&r->json);
    ms_buf_free(&r->path);
}

void probe__record_begin_value(struct probe__record *r, struct ms_str name)
{
    if (r->json.err.rc != MS_OK || r->json.depth != 2)
        reset(r);
    ms_buf_clear(&r->json.buf);
    r->json.first = true;
    r->open = true;
    r->bare = true;
    r->in_section = r->odd = r->is_late = false;
    r->depth = 0;
    r->pgrad = false;
    ms_buf_clear(&r->path);
    ms_buf_str(&r->path, name);
    ms_jwrite_key(&r->json, name);
}

void probe__record_begin(struct probe__record *r, struct ms_str name)
{
    probe__record_begin_value(r, name);
    r->bare = false;
    ms_jwrite_obj(&r->json);
}

void probe__record_begin_gap(struct probe__record *r, struct ms_str path, unsigned depth)
{
    reset(r);
    ms_buf_clear(&r->json.buf);
    r->json.depth = depth;
    r->json.is_object = r->json.after_key = true; /* the document writes what encloses it */
    r->odd = r->is_late = false;
    r->depth = 0;
    ms_buf_clear(&r->path);
    ms_buf_str(&r->path, path);
}

void probe__record_drop(struct probe__record *r)
{
    r->open = false;
}

void probe__record_fail(struct probe__record *r, enum ms_rc rc, const char *what)
{
    ms_fail(&r->json.err, rc, "%s", what);
}

enum ms_rc probe__record_finish(struct probe__record *r, struct ms_str *text, struct ms_err *err)
{
    probe__record_section_end(r);
    if (r->depth != 0)
        probe__record_fail(r, MS_E_ARG, "a list or dict is not ended");
    if (!r->bare)
        ms_jwrite_obj_end(&r->json);
    else if (r->json.after_key)
        probe__record_fail(r, MS_E_ARG, "it has no value");
    r->open = false;
    if (r->json.err.rc != MS_OK)
        return ms_fail(err, r->json.err.rc, "record '%s' left out: %s", ms_buf_z(&r->path),
                       r->json.err.msg);
    *text = ms_buf_slice(&r->json.buf);
    return MS_OK;
}

/* ---- the path to a value ---------------------------------------------- */

/* Adds a list index to the path, except in names of gradients, which end at the parameter
 * because its list has one item. Without files the path is not needed. */
static void put_index(struct probe__record *r, uint64_t index)
{
    char digits[MS_NUM_MAX];
    if (r->pgrad || r->save == NULL)
        return;
    ms_buf_putc(&r->path, '.');
    ms_buf_put(&r->path, digits, ms_num_u64(digits, index));
}

/* Writes the key, or counts the index, of the next value and adds it to the path. Returns the
 * previous length of the path, to restore it afterwards. */
static size_t enter(struct probe__record *r, const char *key)
{
    struct probe__level *in = r->depth != 0 ? &r->level[r->depth - 1] : NULL;
    const size_t path_n = r->path.n;
    if (in != NULL && in->is_list) {
        put_index(r, in->index++);
    } else if (key != NULL) {
        struct ms_str name = ms_str_of(key);
        ms_jwrite_key(&r->json, name);
        if (r->save != NULL) {
            ms_buf_putc(&r->path, '.');
            ms_buf_str(&r->path, name);
        }
    }
    return path_n;
}

static void open_level(struct probe__record *r, size_t path_n, bool is_list)
{
    if (r->depth == PROBE__NEST) {
        probe__record_fail(r, MS_E_LIMIT, "values nested deeper than 64 levels");
        return;
    }
    r->level[r->depth++] = (struct probe__level){path_n, 0, is_list};
    if (is_list)
        ms_jwrite_arr(&r->json);
    else
        ms_jwrite_obj(&r->json);
}

void probe__record_open(struct probe__record *r, const char *key, bool is_list)
{
    open_level(r, enter(r, key), is_list);
}

void probe__record_close(struct probe__record *r, bool is_list)
{
    if (r->depth == 0) {
        probe__record_fail(r, MS_E_ARG, "the end of a list that was not begun");
        return;
    }
    r->path.n = r->level[--r->depth].path_n;
    if (is_list)
        ms_jwrite_arr_end(&r->json);
    else
        ms_jwrite_obj_end(&r->json);
}

void probe__record_section_end(struct probe__record *r)
{
    if (!r->in_section)
        return;
    r->in_section = false;
    if (r->depth > 1)
        probe__record_fail(r, MS_E_ARG, "a list or dict is not ended");
    probe__record_close(r, r->level[0].is_list);
}

static const struct {
    struct ms_str key, path; /* key in the record; part of file names */
    struct ms_str empty;
    bool is_list;
} parts[] = {
#define PART(key, path, none, is_list)                                                             \
    {                                                                                              \
        {key, sizeof(key) - 1}, {path, sizeof(path) - 1},                                          \
            {"\n   \"" key "\": " none, sizeof("\n   \"" key "\": " none) - 1}, is_list            \
    }
    PART("input_args", ".input", "[]", true),
    PART("input_kwargs", ".kwargs", "{}", false),
    PART("input", ".input", "[]", true),
    PART("output", ".output", "[]", true),
    PART("parameters", ".parameters", "{}", false),
#undef PART
};

static bool is_part(struct probe__record *r, enum probe_section section)
{
    probe__record_section_end(r);
    if ((unsigned)section < sizeof parts / sizeof *parts)
        return true;
    probe__record_fail(r, MS_E_ARG, "no such part of a record");
    return false;
}

void probe__record_section(struct probe__record *r, enum probe_section section)
{
    if (!is_part(r, section))
        return;
    const size_t path_n = r->path.n;
    if (r->save != NULL)
        ms_buf_str(&r->path, parts[section].path);
    ms_jwrite_key(&r->json, parts[section].key);
    open_level(r, path_n, parts[section].is_list);
    r->in_section = true;
}

void probe__record_empty_section(struct probe__record *r, enum probe_section section)
{
    if (is_part(r, section))
        ms_jwrite_members(&r->json, parts[section].empty);
}

/* ---- plain values ----------------------------------------------------- */

static size_t begin_value(struct probe__record *r, const char *key, const char *type)
{
    const size_t path_n = enter(r, key);
    ms_jwrite_obj(&r->json);
    ms_jwrite_kstr(&r->json, "type", type);
    ms_jwrite_key(&r->json, MS_STR("value"));
    return path_n;
}

static void end_value(struct probe__record *r, size_t path_n)
{
    ms_jwrite_obj_end(&r->json);
    r->path.n = path_n;
}

void probe__record_int(struct probe__record *r, const char *key, int64_t v)
{
    const size_t path_n = begin_value(r, key, "int");
    ms_jwrite_i64(&r->json, v);
    end_value(r, path_n);
}

void probe__record_float(struct probe__record *r, const char *key, double v)
{
    const size_t path_n = begin_value(r, key, "float");
    ms_jwrite_f64(&r->json, v);
    end_value(r, path_n);
}

void probe__record_bool(struct probe__record *r, const char *key, bool v)
{
    const size_t path_n = begin_value(r, key, "bool");
    ms_jwrite_bool(&r->json, v);
    end_value(r, path_n);
}

void probe__record_str(struct probe__record *r, const char *key, const char *v)
{
    const size_t path_n = begin_value(r, key, "str");
    ms_jwrite_str(&r->json, ms_str_of(v));
    end_value(r, path_n);
}

void probe__record_none(struct probe__record *r, const char *key)
{
    const size_t path_n = enter(r, key);
    ms_jwrite_null(&r->json);
    r->path.n = path_n;
}

struct ms_jwrite *probe__record_value(struct probe__record *r, const char *key, size_t *path_n)
{
    *path_n = enter(r, key);
    return &r->json;
}

void probe__record_value_end(struct probe__record *r, size_t path_n)
{
    r->path.n = path_n;
}

/* ---- tensors ---------------------------------------------------------- */

/* Appends an ending to the path, which is then the name of a file until the path is cut back to
 * *item; NULL: not a valid file name. */
static const char *name_file(struct probe__record *r, const char *ending, size_t *item)
{
    *item = r->path.n;
    ms_buf_puts(&r->path, ending);
    const char *name = ms_buf_z(&r->path);
    if (r->path.bad == MS_E_NOMEM) {
        ms_buf_check(&r->path, &r->json.err);
        return NULL;
    }
    if (r->path.bad == MS_OK && r->path.n <= FILE_NAME_MAX && strchr(name, '/') == NULL)
        return name;
    ms_warn("no file for '%s': the name cannot be one of a file", name);
    return NULL;
}

void probe__record_file(struct probe__record *r, const struct probe_tensor *t)
{
    size_t item;
    if (r->save == NULL || t->count == 0 || t->data == NULL)
        return;
    const char *name = name_file(r, r->style->mindspore ? ".npy" : ".pt", &item);
    if (name != NULL && r->save(r->ctx, name, t))
        ms_jwrite_kstr(&r->json, "data_name", name);
    r->path.n = item;
}

const char *probe__record_foreign_file(struct probe__record *r, const char *ending)
{
    size_t item;
    const char *name = r->save != NULL ? name_file(r, ending, &item) : NULL;
    if (name != NULL)
        ms_jwrite_kstr(&r->json, "data_name", name);
    return name;
}

void probe__record_tensor(struct probe__record *r, const char *key, const struct probe_tensor *t,
                          const struct probe__leaf_as *as)
{
    const size_t path_n = enter(r, key);
    probe__leaf_begin(&r->json, r->style, t, as, &r->odd);
    r->is_late |= as->later != 0;
    if (!as->is_blank)
        probe__record_file(r, t);
    ms_jwrite_obj_end(&r->json);
    r->path.n = path_n;
}

void probe__record_gap(struct probe__record *r, const char *key, struct ms_str mark,
                       struct ms_buf *path)
{
    const size_t path_n = enter(r, key);
    ms_jwrite_raw(&r->json, mark);
    ms_buf_str(path, ms_buf_slice(&r->path));
    r->path.n = path_n;
}
