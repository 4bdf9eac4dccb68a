/* SPDX-License-Identifier: MIT
 *
 * yaml_doc: loads a YAML file as libyaml's tree of nodes.
 */
#include "compare/read/yaml_doc.h"

#include "probe/base/io.h"

static enum ms_rc yaml_failed(const yaml_parser_t *y, const char *name, struct ms_err *err)
{
    if (y->error == YAML_MEMORY_ERROR)
        return ms_no_memory(err);
    ms_fail_at(err, MS_E_FORMAT, (uint32_t)y->problem_mark.line + 1, (int64_t)y->problem_mark.index,
               "%s", y->problem != NULL ? y->problem : "not YAML");
    return ms_err_wrap(err, "%s", name);
}

enum ms_rc cmp__yaml_load(const char *name, struct ms_str text, cmp__yaml_fn visit, void *into,
                          struct ms_err *err)
{
    yaml_parser_t parser;
    yaml_document_t doc;
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

enum ms_rc cmp__yaml_scalar(const yaml_node_t *node, struct ms_str *out, struct ms_err *err)
{
    if (node == NULL || node->type != YAML_SCALAR_NODE)
        return node == NULL ? ms_fail(err, MS_E_FORMAT, "a value is missing")
                            : cmp__yaml_refuse(node, "a name", err);
    if (node->data.scalar.length > UINT32_MAX / 2)
        return cmp__yaml_refuse(node, "a shorter name", err);
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
