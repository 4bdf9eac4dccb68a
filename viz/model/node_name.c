/* SPDX-License-Identifier: MIT
 *
 * node_name: short names of nodes for rows.
 */
#include "viz/model/node_name.h"

#include "probe/dump/name.h"

static struct ms_str without_end(struct ms_str s, const char *end)
{
    struct ms_str e = ms_str_of(end);
    return ms_str_ends(s, e) ? ms_str_sub(s, 0, s.n - e.n) : s;
}

/* Returns the part after "Module." or "Cell.", the prefixes of PyTorch and MindSpore for
 * modules; "" for an operator. */
static struct ms_str module_of(struct ms_str name)
{
    static const struct ms_str heads[] = {{"Module.", 7}, {"Cell.", 5}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (ms_str_starts(name, heads[i]))
            return ms_str_sub(name, heads[i].n, name.n);
    return MS_STR("");
}

/* Returns "layers.0" of "Module.layers.0.TransformerLayer.forward.0"; "" unless a module. */
static struct ms_str path_of(struct ms_str name)
{
    struct probe_name n = probe_name_parse(name);
    return n.kind == PROBE_NODE_MODULE ? probe_name_cut(n.path, 1) : MS_STR("");
}

struct ms_str viz_node_short(struct ms_str name, struct ms_str parent)
{
    struct ms_str path = path_of(parent);
    struct ms_str s = without_end(without_end(name, ".forward.0"), ".forward");
    s = ms_str_ends(s, MS_STR(".backward.0")) ? without_end(s, ".0") : s;
    struct ms_str module = module_of(s);
    if (module.n == 0)
        return s;
    bool within = path.n != 0 && module.n > path.n + 1 && ms_str_starts(module, path) &&
                  module.p[path.n] == '.';
    return within ? ms_str_sub(module, path.n + 1, module.n) : module;
}
