/* SPDX-License-Identifier: MIT
 *
 * yaml_doc: loads a YAML file as libyaml's tree of nodes.
 */
#include "compare/read/yaml_doc.h"

#include "probe/base/io.h"

#include <string.h>

static enum ms_rc yaml_failed(const yaml_parser_t *y, const char *name, struct ms_err *err)
{
    if (y->error == YAML_MEMORY_ERROR)
        return ms_no_memory(err);
    ms_fail_at(err, MS_E_FORMAT, (uint32_t)y->problem_mark.line + 1, (int64_t)y->problem_mark.index,
               "%s", y->problem != NULL ? y->problem : "not YAML");
    return ms_err_wrap(err, "%s", name);
}

/* ---- size ---------------------------------------------------------------- */

/* The time of libyaml grows with the square of the open collections and with the square of the
 * anchors: 100,000 brackets took 32 s, 50,000 anchors 18 s. */
enum { DEPTH_MAX = 512, ANCHORS_MAX = 4096 };

struct extent {
    uint32_t depth, anchors;
};

static void add_event(struct extent *x, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        x->anchors += e->data.scalar.anchor != NULL;
        break;
    case YAML_SEQUENCE_START_EVENT:
        x->depth++;
        x->anchors += e->data.sequence_start.anchor != NULL;
        break;
    case YAML_MAPPING_START_EVENT:
        x->depth++;
        x->anchors += e->data.mapping_start.anchor != NULL;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        x->depth--;
        break;
    default:
        break;
    }
}

/* Returns the extent of the first document up to its end, its first error, or the first excess. The
 * loader meets the same error and reports it. */
static struct extent measure(yaml_parser_t *y)
{
    struct extent x = {0};
    yaml_event_t e;
    bool more = true;
    while (more && x.depth <= DEPTH_MAX && x.anchors <= ANCHORS_MAX && yaml_parser_parse(y, &e)) {
        add_event(&x, &e);
        more = e.type != YAML_DOCUMENT_END_EVENT && e.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    return x;
}

/* A mapping file without collections in brackets and without anchors is not read twice. */
static bool may_be_slow(struct ms_str text)
{
    return text.n != 0 &&
           (memchr(text.p, '[', text.n) != NULL || memchr(text.p, '{', text.n) != NULL ||
            memchr(text.p, '&', text.n) != NULL);
}

static enum ms_rc check_extent(const char *name, struct ms_str text, struct ms_err *err)
{
    yaml_parser_t parser;
    if (!may_be_slow(text))
        return MS_OK;
    if (!yaml_parser_initialize(&parser))
        return ms_no_memory(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
    const struct extent x = measure(&parser);
    yaml_parser_delete(&parser);
    if (x.depth > DEPTH_MAX)
        return ms_fail(err, MS_E_LIMIT, "%s: nested deeper than %d levels", name, DEPTH_MAX);
    if (x.anchors > ANCHORS_MAX)
        return ms_fail(err, MS_E_LIMIT, "%s: more than %d anchors", name, ANCHORS_MAX);
    return MS_OK;
}

/* ---- reading ------------------------------------------------------------- */

enum ms_rc cmp__yaml_load(const char *name, struct ms_str text, cmp__yaml_fn visit, void *into,
                          struct ms_err *err)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    MS_TRY(check_extent(name, text, err));
    if (!yaml_parser_initialize(&parser))
        return ms_no_memory(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
    enum ms_rc rc = MS_OK;
    if (!yaml_parser_load(&parser, &doc)) {
        rc = yaml_failed(&parser, name, err);
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&doc);
        if (root == NULL)
            rc = ms_fail(err, MS_E_FORMAT, "the file is empty");
        else
            rc = visit(into, &doc, root, err);
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", name);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return rc;
}

enum ms_rc cmp__yaml_load_file(const char *path, cmp__yaml_fn visit, void *into, struct ms_err *err)
{
    struct ms_file f;
    MS_TRY(ms_file_map(&f, path, CMP__YAML_MAX, err));
    enum ms_rc rc = cmp__yaml_load(path, (struct ms_str){f.p, (uint32_t)f.n}, visit, into, err);
    ms_file_unmap(&f);
    return rc;
}

enum ms_rc cmp__yaml_refuse(const yaml_node_t *node, const char *what, struct ms_err *err)
{
    return ms_fail_at(err, MS_E_FORMAT, (uint32_t)node->start_mark.line + 1,
                      (int64_t)node->start_mark.index, "expected %s", what);
}

/* No name of a dump is as long; one that is printed has room in every message. */
enum { NAME_MAX_BYTES = 1 << 15 };

enum ms_rc cmp__yaml_scalar(const yaml_node_t *node, struct ms_str *out, struct ms_err *err)
{
    if (node == NULL || node->type != YAML_SCALAR_NODE)
        return node == NULL ? ms_fail(err, MS_E_FORMAT, "a value is missing")
                            : cmp__yaml_refuse(node, "a name", err);
    if (node->data.scalar.length > NAME_MAX_BYTES)
        return cmp__yaml_refuse(node, "a name of at most 32 kB", err);
    *out =
        (struct ms_str){(const char *)node->data.scalar.value, (uint32_t)node->data.scalar.length};
    return MS_OK;
}

/* ---- writing ------------------------------------------------------------- */

static bool is_plain(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_' || ch == '.' || ch == '/' || ch == '-';
}

/* Appends one character of n bytes inside quotes. PyYAML escapes all characters outside ASCII. */
static void write_quoted(struct ms_buf *out, const char *p, unsigned n)
{
    uint32_t code = (unsigned char)*p;
    if (n > 1)
        code &= 0x7FU >> n;
    for (unsigned i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)p[i] & 0x3FU);
    if (code >= 0x20 && code < 0x7F) {
        if (code == '"' || code == '\\')
            ms_buf_putc(out, '\\');
        ms_buf_putc(out, (char)code);
    } else {
        ms_buf_printf(out, code > 0xFFFF ? "\\U%08X" : code > 0xFF ? "\\u%04X" : "\\x%02X", code);
    }
}

void cmp__yaml_quote(struct ms_buf *out, struct ms_str s)
{
    ms_buf_putc(out, '"');
    for (uint32_t i = 0; i < s.n;) {
        unsigned n = ms_utf8_len(s.p + i, s.n - i);
        write_quoted(out, s.p + i, n != 0 ? n : 1);
        i += n != 0 ? n : 1;
    }
    ms_buf_putc(out, '"');
}

void cmp__yaml_put(struct ms_buf *out, struct ms_str s)
{
    bool plain = s.n != 0 && s.p[0] != '-' && s.p[0] != '.' && !(s.p[0] >= '0' && s.p[0] <= '9');
    for (uint32_t i = 0; i < s.n; i++)
        plain &= is_plain(s.p[i]);
    if (plain)
        ms_buf_str(out, s);
    else
        cmp__yaml_quote(out, s);
}
