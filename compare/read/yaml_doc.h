/* SPDX-License-Identifier: MIT
 *
 * yaml_doc: loading YAML, and refusing what is not expected with its place.
 */
#ifndef COMPARE_YAML_DOC_H
#define COMPARE_YAML_DOC_H

#include "probe/base/str.h"

#include <yaml.h>

#define CMP__YAML_MAX ((size_t)1 << 30)

/* Gets the root node; text of nodes is valid during the call. */
typedef enum ms_rc (*cmp__yaml_fn)(void *into, yaml_document_t *doc, yaml_node_t *root,
                                   struct ms_err *err);
enum ms_rc cmp__yaml_load(const char *name, struct ms_str text, cmp__yaml_fn take, void *into,
                          struct ms_err *err);
enum ms_rc cmp__yaml_load_file(const char *path, cmp__yaml_fn take, void *into, struct ms_err *err);

/* "line 3: expected WHAT" */
enum ms_rc cmp__yaml_refuse(const yaml_node_t *node, const char *what, struct ms_err *err);
enum ms_rc cmp__yaml_scalar(const yaml_node_t *node, struct ms_str *out, struct ms_err *err);

/* Text as a scalar: in quotes when it could be read as anything else. */
void cmp__yaml_put(struct ms_buf *out, struct ms_str s);
/* Text in quotes. */
void cmp__yaml_quote(struct ms_buf *out, struct ms_str s);

#endif
