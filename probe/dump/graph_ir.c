/* SPDX-License-Identifier: MIT
 *
 * graph_ir: parses MindSpore's text of a compiled graph.
 */
#include "probe/dump/graph_ir.h"

/* Returns the text between a word and the next `end`; empty when there is none. */
static struct ms_str text_between(struct ms_str s, struct ms_str word, char end)
{
    int64_t at = ms_str_find_str(s, word);
    struct ms_str rest, part;
    if (at < 0)
        return MS_STR_NONE;
    rest = ms_str_sub(s, (uint32_t)at + word.n, s.n);
    return ms_str_split(&rest, end, &part) ? part : MS_STR_NONE;
}

/* Takes the next argument off *rest, which begins behind the opening bracket; false at the closing
 * one. */
static bool next_argument(struct ms_str *rest, struct ms_str *argument)
{
    int depth = 0;
    uint32_t i = 0;
    for (; i < rest->n; i++) {
        char c = rest->p[i];
        if (depth == 0 && (c == ')' || c == ','))
            break;
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
    *argument = ms_str_sub(*rest, 0, i);
    bool is_last = i >= rest->n || rest->p[i] == ')';
    *rest = is_last ? MS_STR_NONE : ms_str_sub(*rest, i + 1, rest->n);
    while (argument->n != 0 && argument->p[0] == ' ')
        *argument = ms_str_sub(*argument, 1, argument->n);
    return argument->n != 0;
}

/* Returns the parameter that an argument names, "up.weight" for "%para6_up.weight", also through an
 * alias. */
static struct ms_str parameter_of(const struct probe__ir *ir, struct ms_str argument)
{
    if (!ms_str_starts(argument, MS_STR("%para"))) {
        uint32_t alias = ms_map_get(&ir->aliases, argument);
        return alias != MS_MAP_NONE ? ir->loaded.p[alias] : MS_STR_NONE;
    }
    int64_t at = ms_str_find(argument, '_');
    return at < 0 ? MS_STR_NONE : ms_str_sub(argument, (uint32_t)at + 1, argument.n);
}

/* Returns the kernel that makes an argument, or MS_MAP_NONE. */
static uint32_t kernel_of(const struct probe__ir *ir, struct ms_str argument)
{
    uint32_t node = ms_map_get(&ir->nodes, argument);
    return node != MS_MAP_NONE ? ir->made_by.p[node] : MS_MAP_NONE;
}

/* Notes which kernel makes the value of a node. */
static enum ms_rc add_node(struct probe__ir *ir, struct ms_str node, uint32_t kernel,
                           struct ms_err *err)
{
    bool added = false;
    uint32_t at = ms_map_put(&ir->nodes, node, &added);
    uint32_t *slot = added ? ms_vec_push(&ir->made_by) : NULL;
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    if (added)
        *slot = kernel;
    return MS_OK;
}

static enum ms_rc add_argument(struct probe__ir *ir, struct ms_str argument, struct ms_err *err)
{
    struct probe__ir_argument *a = ms_vec_push(&ir->arguments);
    if (a == NULL)
        return ms_no_memory(err);
    a->parameter = parameter_of(ir, argument);
    a->kernel = kernel_of(ir, argument);
    a->kind = a->parameter.n != 0                    ? PROBE__IR_PARAMETER
              : ms_str_starts(argument, MS_STR("%")) ? PROBE__IR_KERNEL
                                                     : PROBE__IR_CONSTANT;
    return MS_OK;
}

/* Tells whether a node only passes its first argument on. */
static bool hands_on(struct ms_str op)
{
    return ms_str_is(op, "Load") || ms_str_is(op, "Depend") || ms_str_is(op, "UpdateState");
}

static enum ms_rc add_alias(struct probe__ir *ir, struct ms_str node, struct ms_str arguments,
                            struct ms_err *err)
{
    struct ms_str argument, of = MS_STR_NONE;
    bool added = false;
    if (!next_argument(&arguments, &argument))
        return MS_OK;
    of = parameter_of(ir, argument);
    uint32_t kernel = kernel_of(ir, argument);
    if (kernel != MS_MAP_NONE)
        return add_node(ir, node, kernel, err);
    if (of.n == 0)
        return MS_OK;
    uint32_t at = ms_map_put(&ir->aliases, node, &added);
    struct ms_str *slot = added ? ms_vec_push(&ir->loaded) : NULL;
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    if (added)
        *slot = of;
    return MS_OK;
}

/* Finds the types of a node's arguments and results, between the brackets of "(...) -> (...)". */
static void find_types(struct ms_str entry, struct probe__ir_kernel *k)
{
    struct ms_str line = text_between(entry, MS_STR("\n      : ("), '\n');
    int64_t arrow = ms_str_find_str(line, MS_STR(") -> ("));
    if (arrow < 0)
        return;
    k->in = ms_str_sub(line, 0, (uint32_t)arrow);
    k->out = ms_str_sub(line, (uint32_t)arrow + 6, line.n);
}

/* Parses the shape "4, 6". */
static bool read_shape(struct ms_str text, uint64_t *shape, uint32_t *ndim, uint32_t max)
{
    struct ms_str part;
    for (*ndim = 0; ms_str_split(&text, ',', &part); (*ndim)++) {
        while (part.n != 0 && part.p[0] == ' ')
            part = ms_str_sub(part, 1, part.n);
        if (*ndim == max || !ms_str_u64(part, &shape[*ndim]))
            return false;
    }
    return true;
}

bool probe__ir_shape(struct ms_str types, uint64_t slot, uint64_t *shape, uint32_t *ndim,
                     uint32_t max)
{
    if (types.n == 0)
        return false;
    const char *at = types.p, *end = types.p + types.n;
    for (uint64_t i = 0; at < end && *at == '<'; i++) {
        int depth = 0;
        const char *from = at;
        for (; at < end && (at == from || depth > 0); at++)
            depth += (*at == '<') - (*at == '>');
        struct ms_str type = {from, (uint32_t)(at - from)};
        if (i == slot)
            return ms_str_find_str(type, MS_STR("Tensor[")) >= 0 &&
                   read_shape(text_between(type, MS_STR(", ("), ')'), shape, ndim, max);
        while (at < end && *at != '<')
            at++;
    }
    return false;
}

/* Returns the lines "# In file ..." at the end of a node. */
static struct ms_str source_of(struct ms_str entry)
{
    int64_t at = ms_str_find_str(entry, MS_STR("\n      # In file "));
    return at < 0 ? MS_STR_NONE : ms_str_sub(entry, (uint32_t)at, entry.n);
}

static enum ms_rc add_kernel(struct probe__ir *ir, struct ms_str node, struct ms_str entry,
                             struct ms_str arguments, struct ms_err *err)
{
    bool added = false;
    struct ms_str full = text_between(entry, MS_STR("# Fullname with scope: ("), ')'), argument,
                  rest;
    if (full.n == 0)
        return MS_OK;
    uint32_t at = ms_map_put(&ir->names, full, &added);
    struct probe__ir_kernel *k = added ? ms_vec_push(&ir->kernels) : NULL;
    if (at == MS_MAP_NONE || (added && k == NULL))
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct ms_str attributes = text_between(entry, MS_STR("cnode_primal_attrs: {"), '}');
    *k = (struct probe__ir_kernel){
        .instance = text_between(entry, MS_STR("{instance name: "), '}'),
        .forward_id = text_between(attributes, MS_STR("forward_unique_id: \""), '"'),
        .first = (uint32_t)ir->arguments.n};
    if (k->forward_id.n == 0)
        k->id = text_between(attributes, MS_STR("unique_id: \""), '"');
    rest = text_between(attributes, MS_STR("forward_node_name: \""), '"');
    k->forward_op =
        ms_str_sub(rest, 0, (uint32_t)(ms_str_rfind(rest, '_') < 0 ? 0 : ms_str_rfind(rest, '_')));
    k->source = source_of(entry);
    find_types(entry, k);
    while (next_argument(&arguments, &argument))
        MS_TRY(add_argument(ir, argument, err));
    k = &ir->kernels.p[at];
    k->n = (uint32_t)ir->arguments.n - k->first;
    return add_node(ir, node, at, err);
}

/* Adds a node: the text from "  %1(x) = PrimFunc_MatMul(...)" up to the next node. */
static enum ms_rc add_entry(struct probe__ir *ir, struct ms_str entry, struct ms_err *err)
{
    int64_t name_end = ms_str_find(entry, '('), equals = ms_str_find_str(entry, MS_STR(" = "));
    if (name_end < 0 || equals < 0)
        return MS_OK;
    struct ms_str call = ms_str_sub(entry, (uint32_t)equals + 3, entry.n);
    int64_t bracket = ms_str_find(call, '(');
    if (bracket < 0)
        return MS_OK;
    struct ms_str op = ms_str_sub(call, 0, (uint32_t)bracket);
    struct ms_str arguments = ms_str_sub(call, (uint32_t)bracket + 1, call.n);
    struct ms_str node = ms_str_sub(entry, 0, (uint32_t)name_end);
    return hands_on(op) ? add_alias(ir, node, arguments, err)
                        : add_kernel(ir, node, entry, arguments, err);
}

/* Returns where the next node begins: a line with two spaces and a per cent sign. */
static int64_t next_node(struct ms_str s)
{
    return ms_str_find_str(s, MS_STR("\n  %"));
}

static enum ms_rc read_nodes(struct probe__ir *ir, struct ms_err *err)
{
    struct ms_str rest = {ir->file.p, (uint32_t)ir->file.n};
    int64_t at = next_node(rest);
    while (at >= 0) {
        rest = ms_str_sub(rest, (uint32_t)at + 3, rest.n); /* from the per cent sign on */
        at = next_node(rest);
        MS_TRY(add_entry(ir, at < 0 ? rest : ms_str_sub(rest, 0, (uint32_t)at), err));
    }
    return MS_OK;
}

enum ms_rc probe__ir_open(struct probe__ir *ir, const char *path, struct ms_err *err)
{
    *ir = (struct probe__ir){0};
    if (ms_path_kind(path) != MS_KIND_FILE)
        return MS_OK;
    MS_TRY(ms_file_map(&ir->file, path, INT32_MAX, err));
    enum ms_rc rc = read_nodes(ir, err);
    if (rc != MS_OK)
        probe__ir_close(ir);
    return rc;
}

void probe__ir_close(struct probe__ir *ir)
{
    ms_map_free(&ir->names);
    ms_vec_free(&ir->kernels);
    ms_vec_free(&ir->arguments);
    ms_map_free(&ir->nodes);
    ms_vec_free(&ir->made_by);
    ms_map_free(&ir->aliases);
    ms_vec_free(&ir->loaded);
    if (ir->file.p != NULL)
        ms_file_unmap(&ir->file);
    *ir = (struct probe__ir){0};
}

const struct probe__ir_kernel *probe__ir_find(const struct probe__ir *ir, struct ms_str full)
{
    uint32_t at = ms_map_get(&ir->names, full);
    return at != MS_MAP_NONE ? &ir->kernels.p[at] : NULL;
}
