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
 */
#ifndef PROBE_NAME_H
#define PROBE_NAME_H

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

#endif
