/* SPDX-License-Identifier: MIT
 *
 * old_input: {"npu_path": .., "bench_path": .., "stack_path": .., "is_print_compare_log": ..}
 *
 * The stack is looked for beside the dump, so its path says nothing new.
 */
#include "compare/old_input.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"

#define INPUT_MAX ((size_t)8 << 20)

static enum ms_rc take_path(const struct ms_jread *r, enum ms_jtok tok, char **into,
                            struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 16};
    struct ms_str text;
    if (tok != MS_J_STR)
        return ms_jread_reject(r, err, "expected a path");
    enum ms_rc rc = ms_jread_text(r, &scratch, &text, err);
    if (rc == MS_OK) {
        ms_free(*into);
        *into = ms_str_dup(text);
        rc = *into != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "out of memory");
    }
    ms_buf_free(&scratch);
    return rc;
}

static enum ms_rc take_member(struct cmp_old_input *in, struct ms_jread *r, struct ms_err *err)
{
    struct ms_str key = r->text;
    enum ms_jtok tok = ms_jread_next(r);
    if (ms_str_is(key, "npu_path"))
        return take_path(r, tok, &in->target, err);
    if (ms_str_is(key, "bench_path"))
        return take_path(r, tok, &in->golden, err);
    if (ms_str_is(key, "rank_id") || ms_str_is(key, "step_id") || ms_str_is(key, "map_dict"))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "key '%.*s': dumps of graph kernels are not supported here; use the "
                       "official tool",
                       MS_STR_ARG(key));
    return ms_jread_skip(r, tok) == MS_J_ERR ? ms_jread_fail(r, err) : MS_OK;
}

static enum ms_rc take_all(struct cmp_old_input *in, struct ms_jread *r, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_OBJ)
        return tok == MS_J_ERR ? ms_jread_fail(r, err) : ms_jread_reject(r, err, "expected '{'");
    while ((tok = ms_jread_next(r)) == MS_J_KEY)
        MS_TRY(take_member(in, r, err));
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (in->target == NULL || in->golden == NULL)
        return ms_fail(err, MS_E_FORMAT, "'%s' is missing",
                       in->target == NULL ? "npu_path" : "bench_path");
    return MS_OK;
}

enum ms_rc cmp_old_input_read(struct cmp_old_input *in, const char *path, struct ms_err *err)
{
    struct ms_file f;
    struct ms_jread r;
    *in = (struct cmp_old_input){0};
    MS_TRY(ms_file_map(&f, path, INPUT_MAX, err));
    ms_jread_init(&r, f.p, f.n, 0);
    enum ms_rc rc = take_all(in, &r, err);
    ms_file_unmap(&f);
    if (rc != MS_OK) {
        cmp_old_input_free(in);
        return ms_err_wrap(err, "%s", path), rc;
    }
    return MS_OK;
}

void cmp_old_input_free(struct cmp_old_input *in)
{
    ms_free(in->target);
    ms_free(in->golden);
    *in = (struct cmp_old_input){0};
}
