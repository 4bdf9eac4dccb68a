/* SPDX-License-Identifier: MIT
 *
 * old_input: {"npu_path": .., "bench_path": .., "stack_path": .., "is_print_compare_log": ..,
 *             "rank_id": [0, 1], "step_id": [0], "common": true, "map_dict": {"npu": "bench"}}
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

/* [0, 1] as "0,1". */
static enum ms_rc take_numbers(struct ms_jread *r, enum ms_jtok tok, char **into,
                               struct ms_err *err)
{
    struct ms_buf list = {.max = 1 << 16};
    enum ms_rc rc = MS_OK;
    if (tok != MS_J_ARR)
        return ms_jread_reject(r, err, "expected a list of numbers");
    while (rc == MS_OK && (tok = ms_jread_next(r)) != MS_J_ARR_END) {
        if (tok == MS_J_ERR)
            rc = ms_jread_fail(r, err);
        else if (tok != MS_J_NUM || !ms_str_all_digits(r->text))
            rc = ms_jread_reject(r, err, "expected a number from 0 on");
        else
            ms_buf_printf(&list, "%s%.*s", list.n != 0 ? "," : "", MS_STR_ARG(r->text));
    }
    if (rc == MS_OK)
        rc = ms_buf_check(&list, err);
    if (rc == MS_OK) {
        ms_free(*into);
        *into = ms_str_dup(ms_buf_slice(&list));
        rc = *into != NULL ? MS_OK : ms_no_memory(err);
    }
    ms_buf_free(&list);
    return rc;
}

/* One more pair of names; text is scratch. */
static enum ms_rc take_name(struct cmp_old_input *in, struct ms_jread *r, struct ms_buf *text,
                            struct ms_err *err)
{
    struct ms_str npu, bench;
    bool added;
    MS_TRY(ms_jread_text(r, text, &npu, err));
    uint32_t id = ms_map_put_copy(&in->npu_names, npu, in->arena, &added);
    if (id != MS_MAP_NONE && added && ms_vec_push(&in->bench_names) == NULL)
        id = MS_MAP_NONE;
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (ms_jread_next(r) != MS_J_STR)
        return ms_jread_reject(r, err, "expected a name");
    MS_TRY(ms_jread_text(r, text, &bench, err));
    in->bench_names.p[id] = ms_arena_str(in->arena, bench);
    return in->bench_names.p[id].p != NULL ? MS_OK : ms_arena_fail(in->arena, err);
}

static enum ms_rc take_names(struct cmp_old_input *in, struct ms_jread *r, enum ms_jtok tok,
                             struct ms_err *err)
{
    struct ms_buf text = {.max = 1 << 16};
    enum ms_rc rc = MS_OK;
    if (tok != MS_J_OBJ)
        return ms_jread_reject(r, err, "expected {\"npu name\": \"bench name\"}");
    while (rc == MS_OK && (tok = ms_jread_next(r)) == MS_J_KEY)
        rc = take_name(in, r, &text, err);
    ms_buf_free(&text);
    return rc == MS_OK && tok == MS_J_ERR ? ms_jread_fail(r, err) : rc;
}

static enum ms_rc take_member(struct cmp_old_input *in, struct ms_jread *r, struct ms_err *err)
{
    struct ms_str key = r->text;
    enum ms_jtok tok = ms_jread_next(r);
    if (ms_str_is(key, "npu_path"))
        return take_path(r, tok, &in->target, err);
    if (ms_str_is(key, "bench_path"))
        return take_path(r, tok, &in->golden, err);
    if (ms_str_is(key, "stack_path"))
        return take_path(r, tok, &in->stack, err);
    if (ms_str_is(key, "rank_id"))
        return take_numbers(r, tok, &in->ranks, err);
    if (ms_str_is(key, "step_id"))
        return take_numbers(r, tok, &in->steps, err);
    if (ms_str_is(key, "map_dict"))
        return take_names(in, r, tok, err);
    if (ms_str_is(key, "common"))
        in->trees = tok == MS_J_TRUE;
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

enum ms_rc cmp_old_input_parse(struct cmp_old_input *in, const char *name, struct ms_str text,
                               struct ms_err *err)
{
    struct ms_jread r;
    *in = (struct cmp_old_input){.arena = ms_arena_new(2 * INPUT_MAX)};
    if (in->arena == NULL)
        return ms_no_memory(err);
    ms_jread_init(&r, text.p, text.n, 0);
    enum ms_rc rc = take_all(in, &r, err);
    if (rc == MS_OK)
        return MS_OK;
    cmp_old_input_free(in);
    return ms_err_wrap(err, "%s", name), rc;
}

enum ms_rc cmp_old_input_read(struct cmp_old_input *in, const char *path, struct ms_err *err)
{
    struct ms_file f;
    *in = (struct cmp_old_input){.arena = NULL};
    MS_TRY(ms_file_map(&f, path, INPUT_MAX, err));
    enum ms_rc rc = cmp_old_input_parse(in, path, (struct ms_str){f.p, (uint32_t)f.n}, err);
    ms_file_unmap(&f);
    return rc;
}

void cmp_old_input_free(struct cmp_old_input *in)
{
    ms_free(in->target);
    ms_free(in->golden);
    ms_free(in->stack);
    ms_free(in->ranks);
    ms_free(in->steps);
    ms_map_free(&in->npu_names);
    ms_vec_free(&in->bench_names);
    ms_arena_free(in->arena);
    *in = (struct cmp_old_input){0};
}
