/* SPDX-License-Identifier: MIT
 *
 * old_input: {"npu_path": .., "bench_path": .., "stack_path": .., "is_print_compare_log": ..,
 *             "rank_id": [0, 1], "step_id": [0], "common": true, "map_dict": {"npu": "bench"}}
 *
 * stack_path is not used: the stack is searched next to the dump.
 */
#include "compare/official/old_input.h"

#include "probe/base/conf.h"
#include "probe/base/mem.h"

enum { NAMES_MAX = 16 << 20, NUMBERS_MAX = 1 << 16 };

/* Copies a path; *into is unchanged when the key is missing. */
static enum ms_rc take_path(const struct ms_conf_value *at, const char *key, char **into,
                            struct ms_err *err)
{
    const char *text = NULL;
    MS_TRY(ms_conf_str(at, key, &text, err));
    if (text == NULL)
        return MS_OK;
    *into = ms_str_dup(ms_str_of(text));
    return *into != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc put_numbers(const struct ms_conf_value *list, struct ms_buf *out,
                              struct ms_err *err)
{
    for (size_t i = 0; i < ms_conf_len(list); i++) {
        int64_t n;
        if (!ms_conf_item_int(list, i, &n) || n < 0)
            return ms_conf_reject(ms_conf_item(list, i), err, "expected a number from 0 on");
        ms_buf_printf(out, "%s%lld", i != 0 ? "," : "", (long long)n);
    }
    return ms_buf_check(out, err);
}

/* Converts a list such as [0, 1] to "0,1". */
static enum ms_rc take_numbers(const struct ms_conf_value *at, const char *key, char **into,
                               struct ms_err *err)
{
    const struct ms_conf_value *list;
    MS_TRY(ms_conf_list(at, key, &list, err));
    if (list == NULL)
        return MS_OK;
    struct ms_buf text = {.max = NUMBERS_MAX};
    enum ms_rc rc = put_numbers(list, &text, err);
    if (rc == MS_OK) {
        *into = ms_str_dup(ms_buf_slice(&text));
        rc = *into != NULL ? MS_OK : ms_no_memory(err);
    }
    ms_buf_free(&text);
    return rc;
}

/* Adds a pair of names. */
static enum ms_rc take_name(struct cmp_old_input *in, const struct ms_conf_value *names, size_t i,
                            struct ms_err *err)
{
    const char *bench;
    bool added;
    if (!ms_conf_item_str(names, i, &bench))
        return ms_conf_reject(ms_conf_item(names, i), err, "expected a name");
    struct ms_str *slot = ms_vec_push(&in->bench_names);
    uint32_t id = slot == NULL ? MS_MAP_NONE
                               : ms_map_put_copy(&in->npu_names, ms_str_of(ms_conf_key(names, i)),
                                                 in->arena, &added);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    *slot = ms_arena_str(in->arena, ms_str_of(bench));
    return slot->p != NULL ? MS_OK : ms_arena_fail(in->arena, err);
}

static enum ms_rc take_names(struct cmp_old_input *in, const struct ms_conf_value *at,
                             struct ms_err *err)
{
    const struct ms_conf_value *names;
    MS_TRY(ms_conf_object(at, "map_dict", &names, err));
    for (size_t i = 0; names != NULL && i < ms_conf_len(names); i++)
        MS_TRY(take_name(in, names, i, err));
    return MS_OK;
}

static enum ms_rc take_all(struct cmp_old_input *in, const struct ms_conf_value *at,
                           struct ms_err *err)
{
    static const char *const known[] = {"npu_path", "bench_path", "stack_path",
                                        "rank_id",  "step_id",    "is_print_compare_log",
                                        "common",   "map_dict",   NULL};
    ms_conf_warn_unknown(at, known);
    MS_TRY(take_path(at, "npu_path", &in->target, err));
    MS_TRY(take_path(at, "bench_path", &in->golden, err));
    MS_TRY(take_path(at, "stack_path", &in->stack, err));
    MS_TRY(take_numbers(at, "rank_id", &in->ranks, err));
    MS_TRY(take_numbers(at, "step_id", &in->steps, err));
    MS_TRY(ms_conf_bool(at, "common", &in->trees, err));
    MS_TRY(take_names(in, at, err));
    if (in->target != NULL && in->golden != NULL)
        return MS_OK;
    return ms_conf_reject(at, err, "'%s' is missing",
                          in->target == NULL ? "npu_path" : "bench_path");
}

static enum ms_rc take_input(struct cmp_old_input *in, struct ms_conf *conf, struct ms_err *err)
{
    in->arena = ms_arena_new(NAMES_MAX);
    enum ms_rc rc = in->arena != NULL ? take_all(in, ms_conf_root(conf), err) : ms_no_memory(err);
    ms_conf_close(conf);
    if (rc != MS_OK)
        cmp_old_input_free(in);
    return rc;
}

enum ms_rc cmp_old_input_parse(struct cmp_old_input *in, const char *name, struct ms_str text,
                               struct ms_err *err)
{
    struct ms_conf *conf;
    *in = (struct cmp_old_input){0};
    MS_TRY(ms_conf_parse(&conf, name, text, err));
    return take_input(in, conf, err);
}

enum ms_rc cmp_old_input_read(struct cmp_old_input *in, const char *path, struct ms_err *err)
{
    struct ms_conf *conf;
    *in = (struct cmp_old_input){0};
    MS_TRY(ms_conf_open(&conf, path, err));
    return take_input(in, conf, err);
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
