/* SPDX-License-Identifier: MIT
 *
 * graph_name: the kind of a node by its name, with the rules of the official tool.
 */
#include "compare/graph/build/graph_name.h"

/* Prefixes that decide the kind of a node. If `more` is set, at least one more character, of any
 * kind, must follow the prefix. */
static const struct {
    struct ms_str word;
    bool more;
    enum graph__kind kind;
} prefixes[] = {
#define WORD(w, m, k)                                                                              \
    {                                                                                              \
        {(w), sizeof(w) - 1}, (m), (k)                                                             \
    }
    WORD("Module", true, GRAPH_MODULE),
    WORD("Cell", true, GRAPH_MODULE),
    WORD("optimizer", false, GRAPH_MODULE),
    WORD("clip_grad", false, GRAPH_MODULE),
    WORD("Tensor", true, GRAPH_API),
    WORD("Torch", true, GRAPH_API),
    WORD("Functional", true, GRAPH_API),
    WORD("NPU", true, GRAPH_API),
    WORD("VF", true, GRAPH_API),
    WORD("Distributed", true, GRAPH_API),
    WORD("Aten", true, GRAPH_API),
    WORD("Mint", true, GRAPH_API),
    WORD("Primitive", true, GRAPH_API),
    WORD("Jit", true, GRAPH_API),
    WORD("MindSpeed", true, GRAPH_API),
#undef WORD
};

enum graph__kind graph__kind_of(struct ms_str name)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (ms_str_starts(name, prefixes[i].word) &&
            name.n >= prefixes[i].word.n + (prefixes[i].more ? 1 : 0))
            return prefixes[i].kind;
    }
    return GRAPH_MODULE;
}

void graph__replace(struct ms_buf *out, struct ms_str name, struct ms_str from, struct ms_str to)
{
    int64_t at;
    while ((at = ms_str_find_str(name, from)) >= 0) {
        ms_buf_put(out, name.p, (size_t)at);
        ms_buf_str(out, to);
        name = ms_str_sub(name, (uint32_t)at + from.n, name.n);
    }
    ms_buf_str(out, name);
}
