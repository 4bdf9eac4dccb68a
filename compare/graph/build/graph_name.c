/* SPDX-License-Identifier: MIT
 *
 * graph_name: what the tree needs to know about names, by the rules of the
 * official tool, which works on parts between dots and takes any name.
 */
#include "compare/graph_int.h"

#include "probe/base/scan.h"

/* The kind of a node is told by how its name begins.  What follows the word must be one character
 * more, any one, where `more` is set. */
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

unsigned graph__parts(struct ms_str name)
{
    unsigned n = 1;
    for (uint32_t i = 0; i < name.n; i++)
        n += name.p[i] == '.';
    return n;
}

struct ms_str graph__cut(struct ms_str name, unsigned n)
{
    uint32_t at = name.n;
    while (n > 0 && at > 0) {
        at--;
        n -= name.p[at] == '.';
    }
    return ms_str_sub(name, 0, n == 0 ? at : 0);
}

struct ms_str graph__part(struct ms_str name, unsigned i)
{
    struct ms_str part = {name.p, 0};
    for (unsigned k = 0; k <= i; k++) {
        if (!ms_str_split(&name, '.', &part))
            return (struct ms_str){"", 0};
    }
    return part;
}

bool graph__is_number(struct ms_str part)
{
    return ms_str_all_digits(part);
}

static struct ms_str last_part(struct ms_str name)
{
    return ms_str_sub(name, (uint32_t)(ms_str_rfind(name, '.') + 1), name.n);
}

bool graph__is_call_of(struct ms_str name, struct ms_str word)
{
    struct ms_str rest = graph__cut(name, 1);
    return graph__is_number(last_part(name)) && rest.n > word.n && ms_str_ends(rest, word) &&
           rest.p[rest.n - word.n - 1] == '.';
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

void graph__turn_call(struct ms_buf *out, struct ms_str name, struct ms_str to)
{
    struct ms_str head = graph__cut(name, 2);
    ms_buf_str(out, head);
    ms_buf_putc(out, '.');
    ms_buf_str(out, to);
    ms_buf_putc(out, '.');
    ms_buf_str(out, last_part(name));
}
