/* SPDX-License-Identifier: MIT
 *
 * source_note: what holds for the runs as a whole, and so is no operator's fault.
 */
#include "compare/source_int.h"

#include <math.h>

static enum ms_rc keep(struct cmp_source *s, const struct ms_buf *b, struct ms_err *err)
{
    struct ms_str *slot = ms_vec_push(&s->notes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(s->arena, ms_buf_slice(b));
    return slot->p != NULL ? MS_OK : ms_arena_fail(s->arena, err);
}

static bool tell_precision(const struct source__part *p, struct ms_buf *b)
{
    if (p->other_share == 0)
        return false;
    ms_buf_printf(b,
                  "the target computes %.0f %% of its outputs in %s where the golden side has "
                  "%s",
                  100 * p->other_share, ms_dtype_torch((enum ms_dtype)p->other[1]),
                  ms_dtype_torch((enum ms_dtype)p->other[0]));
    if (p->other_noise > 0)
        ms_buf_printf(b, ": differences below %.1e of an operator are expected", p->other_noise);
    return true;
}

static bool tell_start(const struct source__part *p, struct ms_buf *b)
{
    if (!p->other_start)
        return false;
    ms_buf_printf(b,
                  "the runs start from other weights: %u of %u parameters differ by more than "
                  "%.0f %%; none of them is listed",
                  p->unlike, p->parameters, 100 * SOURCE__UNLIKE);
    return true;
}

/* Of each kind once, for the first rank and step that has it. */
enum ms_rc source__note(struct cmp_source *s, struct ms_err *err)
{
    static bool (*const kinds[])(const struct source__part *, struct ms_buf *) = {tell_precision,
                                                                                  tell_start};
    struct ms_buf b = {.max = 1 << 12};
    enum ms_rc rc = MS_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && rc == MS_OK; k++) {
        bool told = false;
        for (size_t i = 0; i < s->parts.n && !told; i++) {
            ms_buf_clear(&b);
            told = kinds[k](s->parts.p[i], &b);
        }
        rc = ms_buf_check(&b, err);
        if (rc == MS_OK && told)
            rc = keep(s, &b, err);
    }
    ms_buf_free(&b);
    return rc;
}
