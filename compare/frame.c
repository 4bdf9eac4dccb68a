/* SPDX-License-Identifier: MIT
 *
 * frame: reading the lines of a stack as the official layer mapping does.
 *
 * The lines of interest end where the model's own code begins: at the first
 * `construct` (MindSpore) or `in forward,` (PyTorch) behind a line of the template,
 * and begin at the last template line before it.
 */
#include "compare/frame.h"

#include "probe/stack.h"

static bool has(struct ms_str s, const char *word)
{
    return ms_str_find_str(s, ms_str_of(word)) >= 0;
}

static bool is_end(struct ms_str line, bool mindspore)
{
    return mindspore ? has(line, "construct")
                     : has(line, "in forward,") || has(line, "in backward,");
}

/* Lines [*from, *to) of the stack. */
static void find_range(struct ms_str frames, bool mindspore, struct ms_buf *scratch, unsigned *from,
                       unsigned *to)
{
    struct ms_jread r;
    struct ms_str line;
    bool seen = false;
    *from = 0;
    *to = UINT32_MAX;
    ms_jread_init(&r, frames.p, frames.n, 0);
    for (unsigned i = 0; probe_stack_next(&r, scratch, &line); i++) {
        if (has(line, "Template")) {
            seen = true;
            *from = i + 1;
        } else if (seen && is_end(line, mindspore)) {
            *to = i;
            return;
        }
    }
    *from = seen ? *from : 0;
}

static struct ms_str file_of(struct ms_str line)
{
    int64_t comma = ms_str_find(line, ',');
    return comma < 0 ? line : ms_str_sub(line, 0, (uint32_t)comma);
}

static struct ms_str function_of(struct ms_str line)
{
    int64_t at = ms_str_find_str(line, MS_STR(", in "));
    if (at < 0)
        return MS_STR("");
    struct ms_str rest = ms_str_sub(line, (uint32_t)at + 5, line.n);
    int64_t comma = ms_str_find(rest, ',');
    return comma < 0 ? rest : ms_str_sub(rest, 0, (uint32_t)comma);
}

static bool is_framework(struct ms_str file)
{
    return has(file, "site-packages/torch") || has(file, "package/torch") ||
           has(file, "site-packages/mindspore") || has(file, "package/mindspore");
}

bool cmp__frame_function(struct ms_str frames, bool mindspore, struct ms_buf *scratch,
                         struct ms_str *function)
{
    struct ms_jread r;
    struct ms_str line, found = MS_STR_NONE;
    unsigned from, to;
    if (frames.n == 0)
        return false;
    find_range(frames, mindspore, scratch, &from, &to);
    ms_jread_init(&r, frames.p, frames.n, 0);
    struct ms_buf last = {.max = scratch->max};
    for (unsigned i = 0; i < to && probe_stack_next(&r, scratch, &line); i++) {
        if (i < from)
            continue;
        if (!is_framework(file_of(line)))
            break;
        ms_buf_clear(&last);
        ms_buf_str(&last, line);
        found = ms_buf_slice(&last);
    }
    bool fine =
        found.p != NULL && !has(file_of(found), "msprobe") && !has(file_of(found), "MindSpeed");
    if (fine) {
        ms_buf_clear(scratch);
        ms_buf_str(scratch, function_of(found));
        *function = ms_buf_slice(scratch);
        fine = function->n != 0 && !has(*function, "construct") && !has(*function, "__call__");
    }
    ms_buf_free(&last);
    return fine;
}
