/* SPDX-License-Identifier: MIT
 *
 * json_copy: read with jread, write with jwrite.  What a test, a fuzz target and
 * a benchmark of the pair have in common.
 */
#ifndef TESTS_SUPPORT_JSON_COPY_H
#define TESTS_SUPPORT_JSON_COPY_H

#include "probe/base/jread.h"
#include "probe/base/jwrite.h"

/* A number as it would be written from its value: integers that fit as integers. */
static inline void json_copy_number(const struct ms_jread *r, struct ms_jwrite *w)
{
    int64_t i;
    double f;
    if (ms_jread_is_int(r) && ms_jread_i64(r, &i) && !(i == 0 && r->text.p[0] == '-'))
        ms_jwrite_i64(w, i);
    else if (!ms_jread_is_int(r) && ms_jread_f64(r, &f))
        ms_jwrite_f64(w, f);
    else
        ms_jwrite_raw(w, r->text);
}

/* One token; scratch holds unescaped text. */
static inline void json_copy_token(const struct ms_jread *r, enum ms_jtok tok, struct ms_jwrite *w,
                                   struct ms_buf *scratch)
{
    struct ms_str text = MS_STR_NONE;
    if ((tok == MS_J_KEY || tok == MS_J_STR) && ms_jread_text(r, scratch, &text, &w->err) != MS_OK)
        return;
    switch (tok) {
    case MS_J_OBJ:
        return ms_jwrite_obj(w);
    case MS_J_OBJ_END:
        return ms_jwrite_obj_end(w);
    case MS_J_ARR:
        return ms_jwrite_arr(w);
    case MS_J_ARR_END:
        return ms_jwrite_arr_end(w);
    case MS_J_KEY:
        return ms_jwrite_key(w, text);
    case MS_J_STR:
        return ms_jwrite_str(w, text);
    case MS_J_NUM:
        return json_copy_number(r, w);
    case MS_J_TRUE:
    case MS_J_FALSE:
        return ms_jwrite_bool(w, tok == MS_J_TRUE);
    case MS_J_NULL:
        return ms_jwrite_null(w);
    case MS_J_ERR:
    case MS_J_END:
        break;
    }
}

/* Everything r has yet to read; finishes the writer. */
static inline enum ms_rc json_copy(struct ms_jread *r, struct ms_jwrite *w, struct ms_err *err)
{
    struct ms_buf scratch = {.max = UINT32_MAX};
    enum ms_jtok tok = ms_jread_next(r);
    for (; tok > MS_J_END; tok = ms_jread_next(r))
        json_copy_token(r, tok, w, &scratch);
    ms_buf_free(&scratch);
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    return ms_jwrite_finish(w, err);
}

#endif
