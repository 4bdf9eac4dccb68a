/* SPDX-License-Identifier: MIT
 *
 * yaml_doc: loads YAML, and fails with the line of an unexpected node.
 */
#ifndef COMPARE_READ_YAML_DOC_H
#define COMPARE_READ_YAML_DOC_H

#include "probe/base/str.h"

#include <yaml.h>

#define CMP__YAML_MAX ((size_t)1 << 30)

/* Reads a document from its root node. Texts of the nodes are valid during the call. */
typedef enum ms_rc (*cmp__yaml_fn)(void *into, yaml_document_t *doc, yaml_node_t *root,
                                   struct ms_err *err);
enum ms_rc cmp__yaml_load(const char *name, struct ms_str text, cmp__yaml_fn visit, void *into,
                          struct ms_err *err);
enum ms_rc cmp__yaml_load_file(const char *path, cmp__yaml_fn visit, void *into,
                               struct ms_err *err);

/* Fails with "line 3: expected WHAT". */
enum ms_rc cmp__yaml_refuse(const yaml_node_t *node, const char *what, struct ms_err *err);
enum ms_rc cmp__yaml_scalar(const yaml_node_t *node, struct ms_str *out, struct ms_err *err);

/* Appends a text as a scalar; in quotes where YAML could read it as something else. */
void cmp__yaml_put(struct ms_buf *out, struct ms_str s);
/* Appends a text in quotes. */
void cmp__yaml_quote(struct ms_buf *out, struct ms_str s);

#endif
