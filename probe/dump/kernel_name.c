/* SPDX-License-Identifier: MIT
 *
 * kernel_name: parses names in MindSpore's dump of a compiled graph.
 */
#include "probe/dump/kernel_name.h"

/* Takes the part behind the last `sep` off *s. */
static struct ms_str take_last(struct ms_str *s, char sep)
{
    int64_t at = ms_str_rfind(*s, sep);
    struct ms_str part = ms_str_sub(*s, (uint32_t)(at + 1), s->n);
    *s = ms_str_sub(*s, 0, at < 0 ? 0 : (uint32_t)at);
    return part;
}

bool probe__kernel_file_parse(struct ms_str name, struct probe__kernel_file *file)
{
    if (!ms_str_ends(name, MS_STR(".npy")))
        return false;
    take_last(&name, '.'); /* npy */
    take_last(&name, '.'); /* dtype */
    take_last(&name, '.'); /* format */
    struct ms_str slot = take_last(&name, '.');
    struct ms_str side = take_last(&name, '.');
    if (!ms_str_u64(take_last(&name, '.'), &file->time))
        file->time = 0;
    take_last(&name, '.'); /* stream */
    take_last(&name, '.'); /* task */
    int64_t dot = ms_str_find(name, '.');
    file->is_input = ms_str_is(side, "input");
    if (dot <= 0 || !ms_str_u64(slot, &file->slot) ||
        (!file->is_input && !ms_str_is(side, "output")))
        return false;
    file->op = ms_str_sub(name, 0, (uint32_t)dot);
    file->scope = ms_str_sub(name, (uint32_t)dot + 1, name.n);
    return file->scope.n != 0;
}

void probe__cell_split(struct ms_str cell, struct ms_str *attribute, struct ms_str *class_name)
{
    int64_t at = ms_str_rfind(cell, '-');
    *attribute = ms_str_sub(cell, 0, at < 0 ? cell.n : (uint32_t)at);
    *class_name = at < 0 ? MS_STR_NONE : ms_str_sub(cell, (uint32_t)at + 1, cell.n);
}

/* Returns the cells without the first one. */
static struct ms_str behind_first(struct ms_str cells)
{
    int64_t at = ms_str_find(cells, '/');
    return at < 0 ? MS_STR_NONE : ms_str_sub(cells, (uint32_t)at + 1, cells.n);
}

/* Removes the framework's cells around a model: the loss cell, which holds the model as
 * `_backbone`, and the cell of the whole step, which holds it as `network`. */
static struct ms_str below_model(struct ms_str cells, bool has_optimizer)
{
    struct ms_str rest = behind_first(cells);
    const bool in_network = ms_str_starts(cells, MS_STR("network-"));
    const bool has_loss = in_network && (ms_str_starts(rest, MS_STR("_backbone-")) ||
                                         ms_str_starts(rest, MS_STR("_loss_fn-")));
    if (has_loss || (in_network && has_optimizer))
        cells = rest;
    return ms_str_starts(cells, MS_STR("_backbone-")) ? behind_first(cells) : cells;
}

static bool take_word(struct ms_str *s, struct ms_str word)
{
    if (!ms_str_starts(*s, word))
        return false;
    *s = ms_str_sub(*s, word.n, s->n);
    return true;
}

/* Splits at "Grad_": sets the forward operator and drops the part behind it, which occurs in
 * operators made of several kernels. */
static void cut_at_gradient(struct probe__kernel_scope *scope)
{
    int64_t at = ms_str_starts(scope->cells, MS_STR("Grad_"))
                     ? 0
                     : ms_str_find_str(scope->cells, MS_STR("/Grad_")) + 1;
    if (at == 0 && !ms_str_starts(scope->cells, MS_STR("Grad_")))
        return;
    struct ms_str rest = ms_str_sub(scope->cells, (uint32_t)at + 5, scope->cells.n);
    ms_str_split(&rest, '/', &scope->forward);
    scope->cells = ms_str_sub(scope->cells, 0, at > 0 ? (uint32_t)at - 1 : 0);
}

void probe__kernel_scope_parse(struct ms_str full, bool has_optimizer,
                               struct probe__kernel_scope *scope)
{
    *scope = (struct probe__kernel_scope){.phase = PROBE__PHASE_FORWARD};
    scope->op = take_last(&full, '/');
    int64_t number = ms_str_find_str(scope->op, MS_STR("-op"));
    if (number > 0)
        scope->op = ms_str_sub(scope->op, 0, (uint32_t)number);
    if (take_word(&full, MS_STR("Gradients/")))
        scope->phase = PROBE__PHASE_BACKWARD;
    if (ms_str_starts(full, MS_STR("Expand")))
        scope->phase = PROBE__PHASE_EXPANDED;
    else
        scope->cells = behind_first(full); /* drops "Default" */
    if (ms_str_starts(scope->cells, MS_STR("optimizer-")) ||
        (scope->cells.n == 0 && ms_str_starts(scope->op, MS_STR("Apply"))))
        scope->phase = PROBE__PHASE_OPTIMIZER;
    else
        scope->cells = below_model(scope->cells, has_optimizer);
    cut_at_gradient(scope);
}
