/* SPDX-License-Identifier: MIT
 *
 * dump: opening a dump.json.
 *
 * The header is read first; `data` is then read in one go, or, when it is large,
 * cut at record boundaries and read in parts that are joined in order:
 *
 *     one thread   join wave 0   join wave 1   ...
 *     others       read wave 1   read wave 2   ...
 *
 * Names are copied while joining, so that the pages of a part can be released: a file may be larger
 * than memory. When reading a part fails, the whole file is read again in one go, so that error
 * messages do not depend on the parts.
 */
#include "probe/dump/dump_int.h"

#define MS_LOG_DOMAIN "dump"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/base/trace.h"

#include <assert.h>

enum { MAX_PARTS = 1024, SMALL_DATA = 4 << 20, PART_BYTES = 1 << 20, PARTS_PER_THREAD = 4 };

const char *probe_framework_text(enum probe_framework f)
{
    static const char *const text[] = {"unknown", "pytorch", "mindspore", "mindtorch"};
    return text[f];
}

const char *probe_mode_text(enum probe_mode m)
{
    static const char *const text[] = {"statistics", "md5", "tensor", "structure"};
    return text[m];
}

static enum ms_rc add_problem(struct probe_dump *d, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
static enum ms_rc add_problem(struct probe_dump *d, struct ms_err *err, const char *fmt, ...)
{
    struct ms_buf b = {.max = 1 << 16};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct ms_str text = b.bad == MS_OK ? ms_arena_str(d->arena, ms_buf_slice(&b)) : MS_STR_NONE;
    ms_buf_free(&b);
    struct ms_str *slot = text.p != NULL ? ms_vec_push(&d->problems) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = text;
    return MS_OK;
}

/* ---- joining parts ---------------------------------------------------- */

/* Handles a record name that occurs twice: an error with its place, or, when tolerant, the later
 * record replaces the earlier one. */
static enum ms_rc join_twice(struct probe_dump *d, const struct probe__named_node *n, uint32_t id,
                             unsigned flags, struct ms_err *err)
{
    /* The message shows the name with its escapes, as written in the file, so that no character can
     * break the line. */
    struct ms_jread at;
    ms_jread_init(&at, d->file.p + n->node.off, d->file.n - n->node.off, 0);
    ms_jread_next(&at);
    if (!(flags & PROBE_OPEN_TOLERANT)) {
        at.file = d->file.p;
        ms_jread_reject(&at, err, "record '%.*s' appears twice", MS_STR_ARG(at.text));
        ms_err_hint(err, "two runs may have written here; --tolerant keeps the later one");
        return MS_E_FORMAT;
    }
    d->nodes.p[id] = n->node;
    return add_problem(d, err, "record '%.*s' appears twice, the later one counts",
                       MS_STR_ARG(at.text));
}

static enum ms_rc join_node(struct probe_dump *d, struct probe__named_node *n, uint32_t row_base,
                            unsigned flags, uint32_t *id, struct ms_err *err)
{
    bool added;
    n->node.first_row += row_base;
    *id = ms_map_put_copy(&d->names, n->name, d->arena, &added);
    if (*id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return join_twice(d, n, *id, flags, err);
    struct probe_node *slot = ms_vec_push(&d->nodes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = n->node;
    return MS_OK;
}

/* Maps the path ids of a part to path ids of the dump, in a new array. */
static uint32_t *join_paths(struct probe_dump *d, const struct ms_map *paths)
{
    uint32_t *map = ms_alloc((paths->keys.n + 1) * sizeof *map);
    for (size_t i = 0; map != NULL && i < paths->keys.n; i++) {
        map[i] = ms_map_put_copy(&d->paths, ms_map_key(paths, (uint32_t)i), d->arena, NULL);
        if (map[i] == MS_MAP_NONE) {
            ms_free(map);
            return NULL;
        }
    }
    return map;
}

/* Adds the rows of a part: moves them for the first part, copies them for later ones. */
static bool take_rows(struct probe_dump *d, struct probe__flat *part)
{
    if (d->rows.n == 0) {
        ms_vec_free(&d->rows);
        memcpy(&d->rows, &part->rows, sizeof d->rows);
        memset(&part->rows, 0, sizeof part->rows);
        return true;
    }
    if (part->rows.n == 0)
        return true;
    if (!ms_vec_reserve(&d->rows, d->rows.n + part->rows.n))
        return false;
    memcpy(d->rows.p + d->rows.n, part->rows.p, part->rows.n * sizeof *d->rows.p);
    d->rows.n += part->rows.n;
    return true;
}

/* Appends the records of a part to the dump; the part is left empty. */
static enum ms_rc join_part(struct probe_dump *d, struct probe__flat *part, unsigned flags,
                            struct ms_err *err)
{
    size_t row_base = d->rows.n;
    if (part->rows.n > UINT32_MAX - row_base)
        return ms_fail(err, MS_E_LIMIT, "more than 2^32 values in one dump");
    uint32_t *path_of = join_paths(d, &part->paths);
    if (path_of == NULL || !take_rows(d, part)) {
        ms_free(path_of);
        return ms_no_memory(err);
    }
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < part->nodes.n && rc == MS_OK; i++) {
        uint32_t id;
        struct probe__named_node *n = &part->nodes.p[i];
        rc = join_node(d, n, (uint32_t)row_base, flags, &id, err);
        for (uint32_t k = 0; k < n->node.nrows && rc == MS_OK; k++) {
            struct probe_row *row = &d->rows.p[n->node.first_row + k];
            row->node = id;
            row->path = path_of[row->path];
        }
    }
    ms_free(path_of);
    return rc;
}

/* Removes the rows of replaced records and closes the gaps. */
static void drop_replaced_rows(struct probe_dump *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->rows.n;) {
        struct probe_node *node = &d->nodes.p[d->rows.p[i].node];
        if (i != node->first_row) {
            i++;
            continue;
        }
        memmove(d->rows.p + kept, d->rows.p + i, node->nrows * sizeof *d->rows.p);
        node->first_row = (uint32_t)kept;
        kept += node->nrows;
        i += node->nrows;
    }
    d->rows.n = kept;
}

/* ---- reading `data` --------------------------------------------------- */

/* Returns the indentation of the first key when each key has a line of its own, else -1. */
static int indent_of(const struct ms_jread *r)
{
    const char *p = r->at;
    if (p == r->end || *p != '\n')
        return -1;
    for (p++; p != r->end && *p == ' '; p++) {
    }
    return p != r->end && *p == '"' ? (int)(p - r->at) - 1 : -1;
}

/* Returns the end of `data`, before the last two braces, if `data` is the last key, as in the files
 * of every known writer; else NULL. */
static const char *data_end(const struct ms_jread *r)
{
    const char *p = r->end;
    for (int braces = 0; p > r->at;) {
        char c = *--p;
        if (c == '}' && ++braces == 2)
            return p;
        if (c != '}' && c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return NULL;
    }
    return NULL;
}

struct parts {
    struct probe_dump *dump;
    const char *data;
    size_t cut[MAX_PARTS + 1];
    unsigned n, joined, read; /* numbers of parts: in all, joined, read */
    struct probe__flat flat[MAX_PARTS];
};

static enum ms_rc read_part(struct parts *ps, unsigned i, struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok stop;
    ms_jread_init_part(&r, ps->dump->file.p, ps->data + ps->cut[i], ps->cut[i + 1] - ps->cut[i],
                       i + 1 == ps->n, 0);
    MS_TRY(
        probe__flat_init(&ps->flat[i], ps->dump->file.p, ms_str_is(ps->dump->level, "debug"), err));
    return probe__flat_read(&ps->flat[i], &r, &stop, err);
}

/* Joins the parts that the previous wave has read. */
static enum ms_rc join_wave(struct parts *ps, struct ms_err *err)
{
    struct probe_dump *d = ps->dump;
    for (; ps->joined < ps->read; ps->joined++) {
        unsigned i = ps->joined;
        MS_TRY(join_part(d, &ps->flat[i], 0, err));
        probe__flat_free(&ps->flat[i]);
        memset(&ps->flat[i], 0, sizeof ps->flat[i]);
        if (!d->borrowed)
            ms_file_release_part(&d->file, (size_t)(ps->data - d->file.p) + ps->cut[i],
                                 ps->cut[i + 1] - ps->cut[i]);
    }
    return MS_OK;
}

static enum ms_rc work_on_wave(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct parts *ps = ctx;
    (void)worker;
    return item == 0 ? join_wave(ps, err) : read_part(ps, ps->read + (unsigned)item - 1, err);
}

static enum ms_rc run_parts(struct parts *ps, struct ms_pool *pool, struct ms_err *err)
{
    unsigned wave = pool != NULL ? ms_pool_threads(pool) * PARTS_PER_THREAD : 1;
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && ps->joined < ps->n) {
        unsigned left = ps->n - ps->read, reading = left < wave ? left : wave;
        rc = ms_pool_run(pool, 1 + (size_t)reading, work_on_wave, ps, err);
        ps->read += reading;
    }
    for (unsigned i = 0; i < ps->n; i++)
        probe__flat_free(&ps->flat[i]);
    return rc;
}

/* Reads `data`, whose opening brace was the last token, in parts. *done is set when that worked; r
 * is then before the closing brace. Otherwise r is unchanged, and the caller reads `data` in one
 * go. */
static enum ms_rc read_in_parts(struct probe_dump *d, struct ms_jread *r, struct ms_pool *pool,
                                bool *done, struct ms_err *err)
{
    int indent = indent_of(r);
    const char *end = data_end(r);
    *done = false;
    if (indent < 0 || end == NULL || end - r->at < SMALL_DATA)
        return MS_OK;
    struct parts *ps = ms_calloc(1, sizeof *ps);
    if (ps == NULL)
        return ms_no_memory(err);
    /* The parts are small, so that little memory is used for the copies of a wave and for mapped
     * pages of the file. */
    size_t want = (size_t)(end - r->at) / PART_BYTES;
    ps->dump = d;
    ps->data = r->at;
    ps->n = ms_jread_split(r->at, (size_t)(end - r->at), (unsigned)indent,
                           want < MAX_PARTS ? (unsigned)want : MAX_PARTS, ps->cut);
    struct ms_err ignored = {0};
    enum ms_rc rc = run_parts(ps, pool, &ignored);
    ms_free(ps);
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    *done = rc == MS_OK;
    if (*done)
        r->at = end;
    return MS_OK;
}

static void forget_records(struct probe_dump *d)
{
    ms_map_free(&d->names);
    ms_map_free(&d->paths);
    ms_vec_free(&d->nodes);
    ms_vec_free(&d->rows);
}

static enum ms_rc read_in_one(struct probe_dump *d, struct ms_jread *r, unsigned flags,
                              struct ms_err *err)
{
    struct probe__flat f;
    enum ms_jtok stop;
    forget_records(d);
    MS_TRY(probe__flat_init(&f, d->file.p, ms_str_is(d->level, "debug"), err));
    enum ms_rc rc = probe__flat_read(&f, r, &stop, err);
    if (rc == MS_OK)
        rc = join_part(d, &f, flags, err);
    if (rc == MS_OK && d->problems.n != 0)
        drop_replaced_rows(d);
    probe__flat_free(&f);
    return rc;
}

static enum ms_rc read_data(struct probe_dump *d, struct ms_jread *r, struct ms_pool *pool,
                            unsigned flags, struct ms_err *err)
{
    bool done;
    MS_TRY(read_in_parts(d, r, pool, &done, err));
    if (!done)
        return read_in_one(d, r, flags, err);
    enum ms_jtok end = ms_jread_next(r); /* the closing brace, behind the parts */
    assert(end == MS_J_OBJ_END);
    (void)end;
    return MS_OK;
}

/* ---- header ----------------------------------------------------------- */

static enum probe_framework framework_of(struct ms_str text)
{
    for (int f = PROBE_FW_PYTORCH; f <= PROBE_FW_MINDTORCH; f++) {
        if (ms_str_is(text, probe_framework_text((enum probe_framework)f)))
            return (enum probe_framework)f;
    }
    return PROBE_FW_UNKNOWN;
}

static enum ms_rc header_text(struct probe_dump *d, const struct ms_jread *r, struct ms_str *out,
                              struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 16};
    struct ms_str text;
    enum ms_rc rc = ms_jread_text(r, &scratch, &text, err);
    if (rc == MS_OK) {
        *out = ms_arena_str(d->arena, text);
        if (out->p == NULL)
            rc = ms_no_memory(err);
    }
    ms_buf_free(&scratch);
    return rc;
}

static enum ms_rc header_key(struct probe_dump *d, struct ms_jread *r, struct ms_str key,
                             enum ms_jtok tok, struct ms_err *err)
{
    struct ms_str source = MS_STR_NONE;
    struct {
        const char *key;
        struct ms_str *out;
    } known[] = {{"task", &d->task},
                 {"level", &d->level},
                 {"framework", &d->framework_text},
                 {"source", &source},
                 {"dump_data_dir", &d->data_dir}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_is(key, known[i].key) && tok == MS_J_STR)
            MS_TRY(header_text(d, r, known[i].out, err));
    }
    d->is_graph |= ms_str_is(source, PROBE_SOURCE_GRAPH);
    if (d->framework_text.p != NULL)
        d->framework = framework_of(d->framework_text);
    return ms_jread_skip(r, tok) != MS_J_ERR ? MS_OK : ms_jread_fail(r, err);
}

static enum ms_rc not_a_dump(const struct ms_jread *r, struct ms_err *err, const char *why)
{
    enum ms_rc rc = ms_jread_reject(r, err, "%s", why);
    ms_err_hint(err, "not a dump.json of msprobe");
    return rc;
}

static enum ms_rc read_document(struct probe_dump *d, struct ms_jread *r, struct ms_pool *pool,
                                unsigned flags, struct ms_err *err)
{
    bool has_data = false;
    enum ms_jtok tok = ms_jread_next(r);
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (tok != MS_J_OBJ && !r->truncated)
        return not_a_dump(r, err, "expected an object with the key \"data\"");
    while ((tok = ms_jread_next(r)) == MS_J_KEY) {
        struct ms_str key = r->text;
        tok = ms_jread_next(r);
        if (tok == MS_J_ERR)
            break;
        if (!ms_str_is(key, "data")) {
            MS_TRY(header_key(d, r, key, tok, err));
            continue;
        }
        if (has_data)
            return ms_jread_reject(r, err, "key \"data\" appears twice");
        if (tok != MS_J_OBJ && !r->truncated)
            return not_a_dump(r, err, "\"data\" is not an object");
        has_data = true;
        if (tok == MS_J_OBJ)
            MS_TRY(read_data(d, r, pool, flags, err));
    }
    if (tok == MS_J_OBJ_END)
        tok = ms_jread_next(r);
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    return has_data || r->truncated ? MS_OK : not_a_dump(r, err, "no key \"data\"");
}

/* ---- after reading ---------------------------------------------------- */

/* Finds the framework from the types of tensors. Dumps before about 1.2 do not name it. */
static void sniff_framework(struct probe_dump *d)
{
    for (size_t i = 0; i < d->rows.n && d->framework == PROBE_FW_UNKNOWN; i++) {
        struct probe_leaf leaf;
        if (d->rows.p[i].kind != PROBE_LEAF_TENSOR)
            continue;
        probe_row_leaf(d, &d->rows.p[i], &leaf);
        if (ms_str_starts(leaf.type, MS_STR("torch.")))
            d->framework = PROBE_FW_PYTORCH;
        else if (ms_str_starts(leaf.type, MS_STR("mindspore.")))
            d->framework = PROBE_FW_MINDSPORE;
        else if (ms_str_starts(leaf.type, MS_STR("mindtorch.")))
            d->framework = PROBE_FW_MINDTORCH;
    }
}

static enum probe_mode mode_of(const struct probe_dump *d)
{
    if (ms_str_is(d->task, "tensor"))
        return PROBE_MODE_TENSOR;
    if (ms_str_is(d->task, "structure"))
        return PROBE_MODE_STRUCTURE;
    for (size_t i = 0; i < d->rows.n; i++) {
        if (d->rows.p[i].flags & PROBE_LEAF_HAS_MD5)
            return PROBE_MODE_MD5;
    }
    return PROBE_MODE_SUMMARY;
}

/* Adds a hint for text that is not JSON. */
static void hint_at_remedy(const struct probe_dump *d, const struct ms_jread *r, struct ms_err *err)
{
    if (d->file.n == 0)
        ms_err_hint(err, "the program that dumps wrote nothing yet, or was killed; run it again");
    else if (r->truncated)
        ms_err_hint(err, "--tolerant reads the records that are complete");
    else if (d->file.n < 3 ||
             memcmp(d->file.p, MS_UTF8_MARK, 3) != 0) /* the reader's message says enough */
        ms_err_hint(err, "damaged, or written by another tool; copy or dump it again");
}

static enum ms_rc read_all(struct probe_dump *d, struct ms_pool *pool, unsigned flags,
                           struct ms_err *err)
{
    struct ms_jread r;
    const bool tolerant =
        (flags & PROBE_OPEN_TOLERANT) != 0 && d->file.n != 0; /* an empty file is not truncated */
    ms_jread_init(&r, d->file.p, d->file.n, tolerant ? MS_JREAD_TOLERANT : 0);
    enum ms_rc rc = read_document(d, &r, pool, flags, err);
    if ((rc == MS_E_FORMAT || rc == MS_E_LIMIT) && r.bad_why != NULL)
        hint_at_remedy(d, &r, err);
    MS_TRY(rc);
    if (r.truncated)
        MS_TRY(add_problem(d, err, "cut off; complete records read: %zu", d->nodes.n));
    ms_vec_trim(&d->rows);
    ms_vec_trim(&d->nodes);
    sniff_framework(d);
    d->mode = mode_of(d);
    return MS_OK;
}

/* ---- life ------------------------------------------------------------- */

static enum ms_rc open_text(struct probe_dump *d, const char *path, unsigned flags,
                            struct ms_pool *pool, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("read dump");
    d->arena = ms_arena_new(SIZE_MAX);
    d->path = ms_str_dup(ms_str_of(path));
    enum ms_rc rc =
        d->arena != NULL && d->path != NULL ? read_all(d, pool, flags, err) : ms_no_memory(err);
    ms_span_end(&span);
    if (rc != MS_OK)
        return ms_err_wrap(err, "%s", path), rc;
    ms_debug(1, "%s: %zu records, %zu rows", path, d->nodes.n, d->rows.n);
    return MS_OK;
}

enum ms_rc probe_dump_parse(struct probe_dump **dump, const char *name, struct ms_str text,
                            unsigned flags, struct ms_pool *pool, struct ms_err *err)
{
    *dump = NULL;
    struct probe_dump *d = ms_calloc(1, sizeof *d);
    if (d == NULL)
        return ms_no_memory(err);
    d->file = (struct ms_file){text.p, text.n};
    d->borrowed = true;
    enum ms_rc rc = open_text(d, name, flags, pool, err);
    if (rc != MS_OK)
        probe_dump_close(d);
    else
        *dump = d;
    return rc;
}

enum ms_rc probe_dump_open(struct probe_dump **dump, const char *path, unsigned flags,
                           struct ms_pool *pool, struct ms_err *err)
{
    *dump = NULL;
    struct probe_dump *d = ms_calloc(1, sizeof *d);
    if (d == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_file_map(&d->file, path, MS_JSON_MAX, err);
    if (rc == MS_OK)
        rc = open_text(d, path, flags, pool, err);
    if (rc != MS_OK)
        probe_dump_close(d);
    else
        *dump = d;
    return rc;
}

void probe_dump_close(struct probe_dump *d)
{
    if (d == NULL)
        return;
    forget_records(d);
    ms_vec_free(&d->problems);
    ms_arena_free(d->arena);
    ms_free(d->path);
    if (!d->borrowed)
        ms_file_unmap(&d->file);
    ms_free(d);
}

/* ---- rows ------------------------------------------------------------- */

void probe_row_leaf(const struct probe_dump *d, const struct probe_row *r, struct probe_leaf *leaf)
{
    struct ms_str json = {d->file.p + r->off, r->len};
    probe_leaf_parse(leaf, json, (enum probe_leaf_kind)r->kind);
}

/* Appends the name of the data file without its extension; false when the leaf names none, that is
 * "" or "-1". */
static bool put_file_stem(const struct probe_dump *d, const struct probe_row *r, struct ms_buf *out)
{
    struct probe_leaf leaf;
    struct ms_jread quoted;
    struct ms_buf scratch = {.max = out->max};
    struct ms_str name;
    probe_row_leaf(d, r, &leaf);
    if (leaf.data_name.n == 0 || ms_str_is(leaf.data_name, "-1"))
        return false;
    ms_jread_init(&quoted, leaf.data_name.p - 1, (size_t)leaf.data_name.n + 2, 0);
    ms_jread_next(&quoted);
    if (ms_jread_text(&quoted, &scratch, &name, NULL) == MS_OK) {
        int64_t dot = ms_str_rfind(name, '.');
        ms_buf_str(out, dot > 0 ? ms_str_sub(name, 0, (uint32_t)dot) : name);
    } else {
        out->bad = scratch.bad;
    }
    ms_buf_free(&scratch);
    return true;
}

void probe_row_name(const struct probe_dump *d, const struct probe_row *r, struct ms_buf *out)
{
    ms_buf_clear(out);
    if ((r->flags & PROBE_LEAF_HAS_DATA_NAME) != 0 && put_file_stem(d, r, out))
        return;
    struct ms_str path = probe_row_path(d, r);
    ms_buf_str(out, probe_node_name(d, r->node));
    if (path.n != 0)
        ms_buf_putc(out, '.');
    ms_buf_str(out, path);
}
