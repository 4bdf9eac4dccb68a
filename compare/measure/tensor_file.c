/* SPDX-License-Identifier: MIT
 *
 * tensor_file: finds the data file of a row and the part of it that can be compared.
 */
#include "compare/measure/tensor_file.h"

#include <stdio.h>

#define FILE_MAX ((size_t)10 << 30) /* the limit of the official tool */
enum { PATH_BYTES = 4096 };

struct ms_str cmp__data_name(const struct cmp__side *s, uint32_t row)
{
    struct probe_leaf leaf;
    if (row == MS_MAP_NONE || !(cmp__side_row(s, row)->flags & PROBE_LEAF_HAS_DATA_NAME))
        return MS_STR_NONE;
    probe_row_leaf(s->dump, cmp__side_row(s, row), &leaf);
    return leaf.data_name;
}

/* Tells whether a name stays inside the dump's own folder. */
static bool is_safe(struct ms_str name)
{
    return name.n != 0 && name.p[0] != '/' && ms_str_find_str(name, MS_STR("..")) < 0 &&
           ms_str_find(name, '\\') < 0;
}

enum ms_rc cmp__open_tensor(const struct probe_dump *d, const char *dir, struct ms_str name,
                            struct probe_tensor *t, struct ms_err *err)
{
    char path[PATH_BYTES];
    if (!is_safe(name))
        return ms_fail(err, MS_E_ARG, "%.*s: not a name in the dump's own folder",
                       MS_STR_ARG(name));
    int n = snprintf(path, sizeof path, "%s/%.*s", dir, MS_STR_ARG(name));
    /* the original directory; the dump may have been moved since */
    struct ms_str folder = d->data_dir;
    if (n > 0 && (size_t)n < sizeof path && ms_path_kind(path) == MS_KIND_NONE && folder.n != 0)
        n = snprintf(path, sizeof path, "%.*s/%.*s", MS_STR_ARG(folder), MS_STR_ARG(name));
    if (n < 0 || (size_t)n >= sizeof path)
        return ms_fail(err, MS_E_LIMIT, "%s: path too long", dir);
    return probe_tensor_open(t, path, FILE_MAX, err);
}

bool cmp__same_shape(const struct probe_tensor *a, const struct probe_tensor *b)
{
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->ndim && a->shape[i] == 1)
            i++;
        while (k < b->ndim && b->shape[k] == 1)
            k++;
        if (i == a->ndim || k == b->ndim)
            return i == a->ndim && k == b->ndim;
        if (a->shape[i++] != b->shape[k++])
            return false;
    }
}

/* ---- rows that an operator wrote ------------------------------------------ */

/* Operators over groups of rows fill only the head of their output and leave the rest of the buffer
 * unwritten. One of their arguments holds the length of the head. */
static const struct {
    /* op: part of the operator's name; sizes: the argument that holds the group sizes */
    const char *op, *sizes;
} grouped[] = {
    {"npu_dequant_swiglu_quant", "input.group_index"},
    {"npu_grouped_matmul", "input.group_list"},
};
enum { GROUPED = sizeof grouped / sizeof *grouped, BLOCK = 512 };

static uint64_t sum_of(const struct probe_tensor *t)
{
    double sum = 0, value[BLOCK];
    char scratch[BLOCK * sizeof(int64_t)];
    if (!ms_dtype_is_whole(t->dtype))
        return UINT64_MAX;
    for (uint64_t at = 0; at < t->count; at += BLOCK) {
        uint64_t n = t->count - at < BLOCK ? t->count - at : BLOCK;
        ms_dtype_to_f64(t->dtype, probe_tensor_elements(t, at, n, scratch), (size_t)n, value);
        for (uint64_t i = 0; i < n; i++)
            sum += value[i];
    }
    return sum >= 0 && sum < 0x1p53 ? (uint64_t)sum : UINT64_MAX;
}

/* Returns the row of an operator with this path; MS_MAP_NONE when there is none. */
static uint32_t row_with_path(const struct cmp__side *s, const struct cmp__op *op, const char *path)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        if (ms_str_is(probe_row_path(s->dump, cmp__side_row(s, i)), path))
            return i;
    }
    return MS_MAP_NONE;
}

uint64_t cmp__used_rows(const struct cmp_rows *c, uint32_t t_row)
{
    const struct cmp__side *s = &c->t;
    const struct cmp__op *op = &s->ops.p[s->op_of.p[t_row]];
    struct ms_str name = probe_node_name(s->dump, op->node);
    struct probe_tensor sizes = {0};
    struct ms_err why = {0};
    if (cmp__side_row(s, t_row)->section != PROBE_SEC_OUTPUT || c->set->conf.rules->whole_outputs)
        return UINT64_MAX;
    unsigned k = 0;
    while (k < GROUPED && ms_str_find_str(name, ms_str_of(grouped[k].op)) < 0)
        k++;
    uint32_t row = k < GROUPED ? row_with_path(s, op, grouped[k].sizes) : MS_MAP_NONE;
    struct ms_str file = cmp__data_name(s, row);
    if (file.n == 0 || cmp__open_tensor(s->dump, c->t_dir, file, &sizes, &why) != MS_OK)
        return UINT64_MAX;
    uint64_t used = sum_of(&sizes);
    probe_tensor_close(&sizes);
    return used;
}
