/* SPDX-License-Identifier: MIT
 *
 * name: what the name of a dump record says.
 *
 *     Functional.linear.0.forward                 an operator: call before direction
 *     Module.layers.0.fc.Linear.forward.0         a module: call after direction
 *     Module.layers.0.fc.Linear.parameters_grad.0 gradients of its parameters
 *     loss.0.debug                                a value saved by hand
 *
 * Names are taken apart from the right, so prefixes and attribute paths with
 * dots of their own do no harm.
 *
 * The official tool has no grammar: its rules look at parts between dots of any text.  What follows
 * such a rule uses the functions on parts below; everything else parses the name.
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

/* Number of parts; a text without a dot is one. */
unsigned probe_name_parts(struct ms_str name);
/* Part i from the left, or from the right, counted from 0; empty where there are fewer. */
struct ms_str probe_name_part(struct ms_str name, unsigned i);
struct ms_str probe_name_part_back(struct ms_str name, unsigned i);
/* The name without its last n parts; empty where it has no more. */
struct ms_str probe_name_cut(struct ms_str name, unsigned n);
/* The first n parts; all of the name where it has no more. */
struct ms_str probe_name_head(struct ms_str name, unsigned n);
static inline struct ms_str probe_name_last(struct ms_str name)
{
    return ms_str_sub(name, (uint32_t)(ms_str_rfind(name, '.') + 1), name.n);
}
/* The number of the call, the last part or the one before it; false: neither is a number.  The first
 * part is never one. */
bool probe_name_find_call(struct ms_str name, struct ms_str *call);
/* Whether the name ends with ".word.DIGITS". */
bool probe_name_is_call_of(struct ms_str name, struct ms_str word);
/* Appends the name of the same call with `word` in place of the part before the last. */
void probe_name_put_call(struct ms_buf *out, struct ms_str name, struct ms_str word);
/* Appends the name of the forward record that a backward record belongs to; false: the name is of no
 * backward record and nothing is appended. */
bool probe_name_put_forward(struct ms_buf *out, struct ms_str name);

#endif
