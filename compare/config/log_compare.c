/* SPDX-License-Identifier: MIT
 *
 * log_compare: parameters of two logs side by side, with the official columns.
 */
#include "compare/config/hyper_params.h"
#include "compare/config/log_params.h"

#include "probe/base/csv.h"
#include "probe/base/io.h"

#include <stdlib.h>

/* Parameters of verl that change results, and the values they should have. */
static const char wanted[] =
    "{\"trainer\": {\"balance_batch\": false}, \"critic\": {\"shuffle\": false, "
    "\"use_dynamic_bsz\": false, \"model\": {\"use_remove_padding\": true}}, \"data\": "
    "{\"shuffle\": "
    "false}, \"actor_rollout_ref\": {\"actor\": {\"shuffle\": false, \"load_weight\": true, "
    "\"use_dynamic_bsz\": false, \"use_remove_padding\": true, \"megatron\": "
    "{\"override_transformer_config\": {\"use_ascend_mc2\": false}}, "
    "\"override_transformer_config\": "
    "{\"calculate_per_token_loss\": false}}, \"ref\": {\"load_weight\": true, "
    "\"log_prob_use_dynamic_bsz\": false}, \"rollout\": {\"log_prob_use_dynamic_bsz\": false}, "
    "\"model\": {\"use_remove_padding\": true}}, \"algorithm\": {\"filter_groups\": {\"enable\": "
    "false}}, \"VLLM_ASCEND_ENABLE_NZ\": 0}";

struct comparing {
    enum cfg_params_what what;
    struct ms_arena *a;
    struct ms_plain *flat[2];
    struct ms_err *err;
};

/* ---- flat lists ----------------------------------------------------------------------------------- */

/* Adds values by their path of keys, "a/b"; an empty dictionary is a value. */
static enum ms_rc flatten(struct comparing *c, struct ms_plain *to, const struct ms_plain *v,
                          struct ms_buf *path)
{
    if (v->kind != MS_PLAIN_DICT || v->n == 0) {
        struct ms_plain *copy = ms_plain_new(c->a, v->kind);
        if (copy == NULL)
            return ms_arena_fail(c->a, c->err);
        *copy = *v;
        return cfg_set(c->a, to, ms_buf_slice(path), copy, c->err);
    }
    const size_t before = path->n;
    for (uint32_t i = 0; i + 1 < v->n; i += 2) {
        ms_buf_puts(path, before != 0 ? "/" : "");
        ms_buf_str(path, v->item[i]->s);
        MS_TRY(ms_buf_check(path, c->err));
        MS_TRY(flatten(c, to, v->item[i + 1], path));
        path->n = before;
    }
    return MS_OK;
}

static enum ms_rc flatten_root(struct comparing *c, int side, const struct ms_plain *v)
{
    struct ms_buf path = {.max = 1 << 16};
    c->flat[side] = ms_plain_new(c->a, MS_PLAIN_DICT);
    const enum ms_rc rc =
        c->flat[side] != NULL ? flatten(c, c->flat[side], v, &path) : ms_arena_fail(c->a, c->err);
    ms_buf_free(&path);
    return rc;
}

/* ---- input ------------------------------------------------------------------------------------------ */

static enum ms_rc write_json(const struct ms_plain *v, const char *dir, const char *name,
                             struct ms_err *err)
{
    struct ms_jwrite w;
    struct ms_out *out;
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? ms_out_create(&out, path, err) : ms_no_memory(err);
    ms_free(path);
    MS_TRY(rc);
    ms_jwrite_init(&w, 2, (size_t)1 << 30);
    cfg_value_json(&w, v);
    rc = ms_jwrite_finish(&w, err);
    if (rc == MS_OK)
        ms_out_str(out, ms_buf_slice(&w.buf));
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

static enum ms_rc read_log(struct comparing *c, int side, const char *path, const char *dir,
                           const char *name)
{
    struct ms_file f;
    const struct ms_plain *v;
    MS_TRY(ms_file_map(&f, path, UINT32_MAX, c->err));
    const struct ms_str text = {f.p, (uint32_t)f.n};
    enum ms_rc rc = c->what == CFG_PARAMS_SLIME ? cfg_params_of_slime(&v, text, c->a, c->err)
                                                : cfg_params_of_verl(&v, text, c->a, c->err);
    ms_file_unmap(&f);
    if (rc != MS_OK)
        return ms_err_wrap(c->err, "%s", path);
    MS_TRY(write_json(v, dir, name, c->err));
    return flatten_root(c, side, v);
}

/* Reads the values that are wanted; paths of a YAML file are joined by dots. */
static enum ms_rc read_wanted(struct comparing *c, const char *path)
{
    const struct ms_plain *v;
    if (path == NULL) {
        MS_TRY(cfg_value_parse(&v, "wanted", MS_STR(wanted), c->a, c->err));
        return flatten_root(c, 0, v);
    }
    struct ms_file f;
    MS_TRY(ms_file_map(&f, path, UINT32_MAX, c->err));
    c->flat[0] = ms_plain_new(c->a, MS_PLAIN_DICT);
    const enum ms_rc rc =
        c->flat[0] != NULL
            ? cfg_hyper_of_yaml(c->flat[0], path, (struct ms_str){f.p, (uint32_t)f.n}, c->a, c->err)
            : ms_arena_fail(c->a, c->err);
    ms_file_unmap(&f);
    for (uint32_t i = 0; rc == MS_OK && i < c->flat[0]->n; i += 2) {
        const struct ms_str key = c->flat[0]->item[i]->s;
        for (uint32_t k = 0; k < key.n; k++) {
            char *letter = (char *)(uintptr_t)key.p + k;
            *letter = *letter == '.' ? '/' : *letter;
        }
    }
    return rc;
}

/* ---- output ------------------------------------------------------------------------------------------ */

static int compare_keys(const void *a, const void *b)
{
    return ms_str_cmp(*(const struct ms_str *)a, *(const struct ms_str *)b);
}

static bool is_left_out(const struct comparing *c, struct ms_str key)
{
    if (c->what == CFG_PARAMS_SLIME)
        return ms_str_has(key, "profile");
    return c->what == CFG_PARAMS_VERL && (ms_str_has(key, "profiler/") || ms_str_has(key, "ray_"));
}

static void put_value(struct ms_out *out, const struct ms_plain *v)
{
    struct ms_buf text = {.max = 1 << 24};
    if (v != NULL)
        cfg_value_repr(&text, v);
    else
        ms_buf_puts(&text, "NA");
    ms_csv_write(out, ms_buf_slice(&text), MS_CSV_FOREIGN);
    ms_buf_free(&text);
}

static void put_row(const struct comparing *c, struct ms_out *out, struct ms_str key,
                    struct cfg_params_sum *sum)
{
    const struct ms_plain *v[2] = {cfg_get(c->flat[0], key), cfg_get(c->flat[1], key)};
    const bool same = v[0] != NULL && v[1] != NULL && cfg_value_equal(v[0], v[1]);
    ms_csv_write(out, key, MS_CSV_FOREIGN);
    for (int side = 0; side < 2; side++) {
        ms_out_putc(out, ',');
        put_value(out, v[side]);
    }
    ms_out_puts(out, same ? ",是\n" : ",否\n");
    sum->rows++;
    sum->differ += !same;
}

static enum ms_rc collect_keys(const struct comparing *c, struct ms_str **keys, size_t *n)
{
    const int sides = c->what == CFG_PARAMS_VERIFY ? 1 : 2;
    *keys = ms_alloc((c->flat[0]->n + c->flat[1]->n + 1) * sizeof **keys);
    *n = 0;
    if (*keys == NULL)
        return ms_no_memory(c->err);
    for (int side = 0; side < sides; side++) {
        for (uint32_t i = 0; i + 1 < c->flat[side]->n; i += 2) {
            const struct ms_str key = c->flat[side]->item[i]->s;
            if ((side == 0 || cfg_get(c->flat[0], key) == NULL) && !is_left_out(c, key))
                (*keys)[(*n)++] = key;
        }
    }
    qsort(*keys, *n, sizeof **keys, compare_keys);
    return MS_OK;
}

static enum ms_rc write_table(const struct comparing *c, const char *dir,
                              struct cfg_params_sum *sum)
{
    const bool verify = c->what == CFG_PARAMS_VERIFY;
    struct ms_str *keys;
    struct ms_out *out;
    size_t n;
    char *path = ms_path_join(dir, verify ? "hyper_params_verify.csv" : "hyper_params_compare.csv");
    enum ms_rc rc = path != NULL ? ms_out_create(&out, path, c->err) : ms_no_memory(c->err);
    ms_free(path);
    MS_TRY(rc);
    ms_out_puts(out, MS_UTF8_MARK);
    ms_out_puts(out, verify ? "关键参数名称,bench生效值,target生效值,是否一致\n"
                            : "超参名称,NPU生效值,bench生效值,是否一致\n");
    rc = collect_keys(c, &keys, &n);
    for (size_t i = 0; rc == MS_OK && i < n; i++)
        put_row(c, out, keys[i], sum);
    ms_free(keys);
    if (rc == MS_OK)
        return ms_out_commit(out, c->err);
    ms_out_abort(out);
    return rc;
}

enum ms_rc cfg_params_compare(enum cfg_params_what what, const char *first, const char *second,
                              const char *dir, struct cfg_params_sum *sum, struct ms_err *err)
{
    enum { MEMORY = 1 << 30 };
    struct comparing c = {.what = what, .a = ms_arena_new(MEMORY), .err = err};
    *sum = (struct cfg_params_sum){0};
    if (c.a == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_mkdirs(dir, err);
    if (rc == MS_OK)
        rc = what == CFG_PARAMS_VERIFY ? read_wanted(&c, first)
                                       : read_log(&c, 0, first, dir, "NPU_config.json");
    if (rc == MS_OK)
        rc = read_log(&c, 1, second, dir,
                      what == CFG_PARAMS_VERIFY ? "tgt_config.json" : "bench_config.json");
    if (rc == MS_OK)
        rc = write_table(&c, dir, sum);
    ms_arena_free(c.a);
    return rc;
}
