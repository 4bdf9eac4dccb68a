/* SPDX-License-Identifier: MIT
 *
 * dump_flat: turns records into rows, in one pass over the tokens.
 *
 * An object is a leaf if it has a member `type` with a string, which may be its last member. So an
 * object is first read as a container whose members make rows; if it turns out to be a leaf, those
 * rows are dropped and one row for the whole object is added.
 */
#include "probe/dump/dump_int.h"

#include "probe/base/num.h"

#include <stdlib.h>

const char *const probe_section_names[PROBE_SECTIONS] = {
    "input_args", "input_kwargs", "input", "output", "parameters", "parameters_grad", "debug"};

/* First part of a row's path in each section. */
static const char *const path_start[PROBE_SECTIONS] = {"input",      "input", "input", "output",
                                                       "parameters", "",      ""};

enum { PATH_MAX_BYTES = 1 << 20 };

enum ms_rc probe__flat_init(struct probe__flat *f, const char *file, bool debug_level,
                            struct ms_err *err)
{
    *f = (struct probe__flat){.file = file, .debug_level = debug_level};
    f->path.max = PATH_MAX_BYTES;
    f->scratch.max = PATH_MAX_BYTES;
    f->arena = ms_arena_new(SIZE_MAX);
    return f->arena != NULL ? MS_OK : ms_no_memory(err);
}

void probe__flat_free(struct probe__flat *f)
{
    ms_vec_free(&f->nodes);
    ms_vec_free(&f->rows);
    ms_map_free(&f->paths);
    ms_arena_free(f->arena);
    ms_buf_free(&f->path);
    ms_buf_free(&f->scratch);
}

/* ---- rows ------------------------------------------------------------- */

static enum ms_rc add_row(struct probe__flat *f, enum probe_section section, const char *from,
                          const char *to, enum probe_leaf_kind kind, uint8_t flags,
                          struct ms_err *err)
{
    if (to - from > UINT32_MAX || f->rows.n >= UINT32_MAX)
        return ms_fail(err, MS_E_LIMIT, "a value or the number of values is beyond 32 bits");
    MS_TRY(ms_buf_check(&f->path, err));
    struct ms_str path = ms_buf_slice(&f->path);
    if (path.n != 0 && path.p[0] == '.')
        path = ms_str_sub(path, 1, path.n);
    uint32_t id = ms_map_put_copy(&f->paths, path, f->arena, NULL);
    struct probe_row *row = id != MS_MAP_NONE ? ms_vec_push(&f->rows) : NULL;
    if (row == NULL)
        return ms_no_memory(err);
    *row = (struct probe_row){.off = (uint64_t)(from - f->file),
                              .len = (uint32_t)(to - from),
                              .node = (uint32_t)f->nodes.n,
                              .path = id,
                              .section = (uint8_t)section,
                              .kind = (uint8_t)kind,
                              .flags = flags};
    return MS_OK;
}

static void push_index(struct probe__flat *f, uint64_t i)
{
    char digits[MS_NUM_MAX];
    ms_buf_putc(&f->path, '.');
    ms_buf_put(&f->path, digits, ms_num_u64(digits, i));
}

static enum ms_rc push_key(struct probe__flat *f, const struct ms_jread *r, struct ms_err *err)
{
    struct ms_str key;
    MS_TRY(ms_jread_text(r, &f->scratch, &key, err));
    ms_buf_putc(&f->path, '.');
    ms_buf_str(&f->path, key);
    if (f->path.bad != MS_E_LIMIT)
        return MS_OK;
    return ms_jread_reject(r, err, "keys that lead to a value are longer than %d bytes",
                           PATH_MAX_BYTES);
}

/* ---- values ----------------------------------------------------------- */

static enum ms_rc read_value(struct probe__flat *f, struct ms_jread *r, enum ms_jtok tok,
                             enum probe_section section, struct ms_err *err);

static enum ms_rc read_array(struct probe__flat *f, struct ms_jread *r, enum probe_section section,
                             struct ms_err *err)
{
    size_t path_n = f->path.n;
    enum ms_jtok tok;
    for (uint64_t i = 0; (tok = ms_jread_next(r)) != MS_J_ARR_END; i++) {
        if (tok == MS_J_ERR)
            return ms_jread_fail(r, err);
        if (!f->pgrad)
            push_index(f, i);
        MS_TRY(read_value(f, r, tok, section, err));
        f->path.n = path_n;
    }
    return MS_OK;
}

/* Reads one member of an object that may still turn out to be a leaf. */
static enum ms_rc read_member(struct probe__flat *f, struct ms_jread *r, enum probe_section section,
                              struct probe_leaf_scan *scan, struct ms_err *err)
{
    struct ms_str key = r->text;
    size_t path_n = f->path.n;
    if (!scan->typed)
        MS_TRY(push_key(f, r, err));
    enum ms_jtok tok = ms_jread_next(r);
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    probe_leaf_note(scan, key, tok, r);
    if (!scan->typed)
        MS_TRY(read_value(f, r, tok, section, err));
    else if (ms_jread_skip(r, tok) == MS_J_ERR)
        return ms_jread_fail(r, err);
    f->path.n = path_n;
    return MS_OK;
}

/* Returns the flags of a point-to-point operation from its JSON, because its tensor was skipped
 * with the other members. */
static uint8_t flags_of_p2p(struct ms_str json)
{
    struct probe_leaf leaf;
    probe_leaf_parse(&leaf, json, PROBE_LEAF_P2P);
    return leaf.data_name.n != 0 ? PROBE_LEAF_HAS_DATA_NAME : 0;
}

static enum ms_rc read_object(struct probe__flat *f, struct ms_jread *r, enum probe_section section,
                              struct ms_err *err)
{
    const char *from = r->tok;
    size_t first_row = f->rows.n;
    struct probe_leaf_scan scan = {0};
    enum ms_jtok tok;
    while ((tok = ms_jread_next(r)) == MS_J_KEY)
        MS_TRY(read_member(f, r, section, &scan, err));
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (!scan.typed)
        return MS_OK;
    f->rows.n = first_row;
    enum probe_leaf_kind kind = probe_leaf_kind_of(&scan);
    uint8_t flags = probe_leaf_flags_of(&scan, kind);
    if (kind == PROBE_LEAF_P2P)
        flags |= flags_of_p2p((struct ms_str){from, (uint32_t)(r->at - from)});
    return add_row(f, section, from, r->at, kind, flags, err);
}

static enum ms_rc read_value(struct probe__flat *f, struct ms_jread *r, enum ms_jtok tok,
                             enum probe_section section, struct ms_err *err)
{
    switch (tok) {
    case MS_J_ARR:
        return read_array(f, r, section, err);
    case MS_J_OBJ:
        return read_object(f, r, section, err);
    case MS_J_NULL:
        return add_row(f, section, r->tok, r->at, PROBE_LEAF_NULL, 0, err);
    case MS_J_STR:
    case MS_J_NUM:
    case MS_J_TRUE:
    case MS_J_FALSE:
        return add_row(f, section, r->tok, r->at, PROBE_LEAF_OTHER, 0, err);
    default:
        return ms_jread_fail(r, err);
    }
}

/* ---- records ---------------------------------------------------------- */

static void note_flag(struct probe_node *node, struct ms_str key, const struct ms_jread *r,
                      enum ms_jtok tok)
{
    bool set = tok == MS_J_TRUE || (tok == MS_J_NUM && !ms_str_is(r->text, "0"));
    if (tok != MS_J_TRUE && tok != MS_J_FALSE && tok != MS_J_NUM)
        return;
    if (ms_str_is(key, "is_recompute"))
        node->flags |= (uint8_t)(PROBE_NODE_RECOMPUTE_SAID | (set ? PROBE_NODE_RECOMPUTE : 0));
    else if (ms_str_is(key, "is_nan"))
        node->flags |= (uint8_t)(PROBE_NODE_NAN_SAID | (set ? PROBE_NODE_NAN : 0));
}

static enum probe_section section_of(struct ms_str key)
{
    for (int s = 0; s < PROBE_SEC_PGRAD; s++) {
        if (ms_str_is(key, probe_section_names[s]))
            return (enum probe_section)s;
    }
    return PROBE_SECTIONS;
}

static enum ms_rc read_section(struct probe__flat *f, struct ms_jread *r, enum ms_jtok tok,
                               enum probe_section section, struct ms_err *err)
{
    unsigned bit = 1U << section;
    if (f->sections & bit)
        return ms_jread_reject(r, err, "key '%s' appears twice in one record",
                               probe_section_names[section]);
    f->sections_in_order &= f->sections < bit;
    f->sections |= bit;
    f->path.n = 0;
    ms_buf_puts(&f->path, path_start[section]);
    return read_value(f, r, tok, section, err);
}

/* Reads the members of a forward or backward record. */
static enum ms_rc read_sections(struct probe__flat *f, struct ms_jread *r, struct probe_node *node,
                                struct ms_err *err)
{
    enum ms_jtok tok;
    f->sections = 0;
    f->sections_in_order = true;
    while ((tok = ms_jread_next(r)) == MS_J_KEY) {
        struct ms_str key = r->text;
        enum probe_section section = section_of(key);
        tok = ms_jread_next(r);
        if (tok == MS_J_ERR)
            break;
        if (section != PROBE_SECTIONS) {
            MS_TRY(read_section(f, r, tok, section, err));
            continue;
        }
        note_flag(node, key, r, tok);
        if (ms_jread_skip(r, tok) == MS_J_ERR)
            break;
    }
    return tok == MS_J_OBJ_END ? MS_OK : ms_jread_fail(r, err);
}

static int by_section(const void *a, const void *b)
{
    const struct probe_row *x = a;
    const struct probe_row *y = b;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    return (x->off > y->off) - (x->off < y->off);
}

/* Sorts the rows of a record by section, whatever the order in the file. Within a section rows keep
 * the order of the file. */
static void order_sections(struct probe__flat *f, size_t first)
{
    if (f->rows.n != first)
        qsort(f->rows.p + first, f->rows.n - first, sizeof *f->rows.p, by_section);
}

static enum ms_rc read_body(struct probe__flat *f, struct ms_jread *r, struct probe_node *node,
                            struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(r);
    f->path.n = 0;
    f->pgrad = node->kind == PROBE_NODE_PGRAD;
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (f->pgrad)
        return read_value(f, r, tok, PROBE_SEC_PGRAD, err);
    if (tok != MS_J_OBJ || f->debug_level || node->kind == PROBE_NODE_DEBUG)
        return read_value(f, r, tok, PROBE_SEC_DEBUG, err);
    size_t first = f->rows.n;
    MS_TRY(read_sections(f, r, node, err));
    if (!f->sections_in_order)
        order_sections(f, first);
    return MS_OK;
}

/* Reads the record's name: a slice of the file or, with escapes, a copy in the arena. */
static enum ms_rc take_name(struct probe__flat *f, const struct ms_jread *r, struct ms_str *name,
                            struct ms_err *err)
{
    MS_TRY(ms_jread_text(r, &f->scratch, name, err));
    if (r->escaped)
        *name = ms_arena_str(f->arena, *name);
    return name->p != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_record(struct probe__flat *f, struct ms_jread *r, struct ms_err *err)
{
    struct probe__named_node n = {.node.off = (uint64_t)(r->text.p - 1 - f->file)};
    MS_TRY(take_name(f, r, &n.name, err));
    struct probe_name parsed = probe_name_parse(n.name);
    n.node.kind = (uint8_t)parsed.kind;
    n.node.dir = (uint8_t)parsed.dir;
    n.node.first_row = (uint32_t)f->rows.n;
    MS_TRY(read_body(f, r, &n.node, err));
    if (r->truncated) { /* incomplete: drop the record */
        f->rows.n = n.node.first_row;
        return MS_OK;
    }
    n.node.nrows = (uint32_t)f->rows.n - n.node.first_row;
    struct probe__named_node *slot = ms_vec_push(&f->nodes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = n;
    return MS_OK;
}

enum ms_rc probe__flat_read(struct probe__flat *f, struct ms_jread *r, enum ms_jtok *stop,
                            struct ms_err *err)
{
    while ((*stop = ms_jread_next(r)) == MS_J_KEY)
        MS_TRY(read_record(f, r, err));
    return *stop == MS_J_ERR ? ms_jread_fail(r, err) : MS_OK;
}
