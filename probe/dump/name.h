/* SPDX-License-Identifier: MIT
 *
 * name: the grammar of record names.
 *
 *     Functional.linear.0.forward                 an operator: call before direction
 *     Module.layers.0.fc.Linear.forward.0         a module: call after direction
 *     Module.layers.0.fc.Linear.parameters_grad.0 gradients of its parameters
 *     loss.0.debug                                a value saved by hand
 *
 * Names are parsed from the right, so prefixes and attribute paths with dots of their own are
 * handled correctly.
 *
 * The official tool has no grammar: its rules work on the parts between dots of any text. Code that
 * follows such a rule uses the functions on parts below; all other code parses the name.
 */
#ifndef PROBE_DUMP_NAME_H
#define PROBE_DUMP_NAME_H

#include "probe/base/str.h"
#include "probe/probe.h"

enum probe_node_kind {
    PROBE_NODE_OTHER,
    PROBE_NODE_API,
    PROBE_NODE_MODULE,
    PROBE_NODE_PGRAD,
    PROBE_NODE_DEBUG,
};

struct probe_name {
    enum probe_node_kind kind;
    enum probe_dir dir;
    struct ms_str prefix; /* before the first dot: Functional, Module */
    struct ms_str path;   /* between prefix and call or direction: linear, layers.0.fc.Linear */
    int64_t call;         /* -1: the name has none */
};

struct probe_name probe_name_parse(struct ms_str name);
/* "api", "module", "parameters_grad", "debug", "other" */
const char *probe_node_kind_text(enum probe_node_kind kind);

/* ---- parts between dots -------------------------------------------------- */

/* Returns the number of parts; a text without a dot is one part. */
unsigned probe_name_parts(struct ms_str name);
/* Return part i from the left, or from the right, counted from 0; empty when there are fewer
 * parts. */
struct ms_str probe_name_part(struct ms_str name, unsigned i);
struct ms_str probe_name_part_back(struct ms_str name, unsigned i);
/* Returns the name without its last n parts; empty when it has no more. */
struct ms_str probe_name_cut(struct ms_str name, unsigned n);
/* Returns the first n parts; the whole name when it has no more. */
struct ms_str probe_name_head(struct ms_str name, unsigned n);
static inline struct ms_str probe_name_last(struct ms_str name)
{
    return ms_str_sub(name, (uint32_t)(ms_str_rfind(name, '.') + 1), name.n);
}
/* Finds the number of the call: the last part or the one before it, never the first. False when
 * neither is a number. */
bool probe_name_find_call(struct ms_str name, struct ms_str *call);
/* Tells whether the name ends with ".word.DIGITS". */
bool probe_name_is_call_of(struct ms_str name, struct ms_str word);
/* Appends the name with `word` in place of the part before the last. */
void probe_name_put_call(struct ms_buf *out, struct ms_str name, struct ms_str word);
/* Appends the name of the forward record of a backward record; false, and nothing is appended, when
 * the name is no backward record's. */
bool probe_name_put_forward(struct ms_buf *out, struct ms_str name);

#endif
