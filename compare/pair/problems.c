/* SPDX-License-Identifier: MIT
 *
 * problems: warnings about the input files, kept until the comparison is reported.
 */
#include "compare/pair/problems.h"

#include "probe/base/arena.h"

#include <stdarg.h>

enum { LINE_MAX_BYTES = 1 << 16, LINES_MAX_BYTES = 1 << 24 };

static enum ms_rc keep_line(struct cmp_problems *p, const struct ms_buf *line, struct ms_err *err)
{
    MS_TRY(ms_buf_check(line, err));
    if (p->arena == NULL)
        p->arena = ms_arena_new(LINES_MAX_BYTES);
    struct ms_str *slot = p->arena != NULL ? ms_vec_push(&p->list) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(p->arena, ms_buf_slice(line));
    return slot->p != NULL ? MS_OK : ms_arena_fail(p->arena, err);
}

enum ms_rc cmp__problem(struct cmp_problems *p, struct ms_err *err, const char *fmt, ...)
{
    struct ms_buf line = {.max = LINE_MAX_BYTES};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&line, fmt, ap);
    va_end(ap);
    enum ms_rc rc = keep_line(p, &line, err);
    ms_buf_free(&line);
    return rc;
}

void cmp__problems_free(struct cmp_problems *p)
{
    ms_vec_free(&p->list);
    ms_arena_free(p->arena);
    *p = (struct cmp_problems){0};
}
