/* SPDX-License-Identifier: MIT
 *
 * config_pack: collects what a run is started with.
 */
#include "compare/config/config_pack.h"

#include "compare/config/config_zip.h"
#include "compare/config/hyper_params.h"

#include "probe/settings/run_settings.h"

#include <unistd.h>

/* ---- environment ------------------------------------------------------------------------------ */

static enum ms_rc put_json(struct cfg_zip_out *z, const char *name, const struct ms_plain *v,
                           struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 4, 64 << 20);
    cfg_value_json(&w, v);
    enum ms_rc rc = ms_jwrite_finish(&w, err);
    if (rc == MS_OK)
        rc = cfg_zip_add(z, name, ms_buf_slice(&w.buf), err);
    ms_jwrite_free(&w);
    return rc;
}

static enum ms_rc put_environment(struct cfg_zip_out *z, struct ms_arena *a,
                                  struct cfg_pack_sum *sum, struct ms_err *err)
{
    struct ms_plain *dict = ms_plain_new(a, MS_PLAIN_DICT);
    if (dict == NULL)
        return ms_arena_fail(a, err);
    for (char **e = environ; *e != NULL; e++) {
        struct ms_str value = ms_str_of(*e), name;
        (void)ms_str_split(&value, '=', &name);
        if (value.p == NULL)
            continue;
        if (ms_is_secret(name)) {
            sum->hidden++;
            continue;
        }
        sum->variables++;
        MS_TRY(cfg_set(a, dict, name, cfg_text(a, value), err));
    }
    return put_json(z, "env", dict, err);
}

/* ---- packages ----------------------------------------------------------------------------------- */

static enum ms_rc add_package(void *ctx, struct ms_str name, struct ms_str version,
                              struct ms_err *err)
{
    struct ms_buf *text = ctx;
    ms_buf_printf(text, "%.*s=%.*s\n", MS_STR_ARG(name), MS_STR_ARG(version));
    return ms_buf_check(text, err);
}

static enum ms_rc put_packages(struct cfg_zip_out *z, struct cfg_pack_sum *sum, struct ms_err *err)
{
    struct ms_buf text = {.max = 16 << 20};
    enum ms_rc rc = ms_packages_each(add_package, &text, &sum->packages, err);
    if (rc == MS_OK)
        rc = cfg_zip_add(z, "pip", ms_buf_slice(&text), err);
    ms_buf_free(&text);
    return rc;
}

/* ---- hyperparameters --------------------------------------------------------------------------- */

static enum ms_rc put_hyperparameters(struct cfg_zip_out *z, char *const *scripts, size_t n,
                                      struct ms_arena *a, struct cfg_pack_sum *sum,
                                      struct ms_err *err)
{
    struct cfg_hyper_files files = {.all = ms_plain_new(a, MS_PLAIN_DICT),
                                    .yaml = ms_plain_new(a, MS_PLAIN_DICT)};
    if (files.all == NULL || files.yaml == NULL)
        return ms_arena_fail(a, err);
    for (size_t i = 0; i < n; i++)
        MS_TRY(cfg_hyper_of_file(&files, scripts[i], a, err));
    sum->parameters = files.all->n / 2;
    return files.all->n == 0
               ? MS_OK
               : put_json(z, "hyperparameters/hyperparameters_static.json", files.all, err);
}

enum ms_rc cfg_pack(const char *path, char *const *scripts, size_t n, struct cfg_pack_sum *sum,
                    struct ms_err *err)
{
    enum { MEMORY = 512 << 20 };
    struct cfg_zip_out z;
    struct ms_arena *a = ms_arena_new(MEMORY);
    *sum = (struct cfg_pack_sum){0};
    if (a == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = cfg_zip_create(&z, path, err);
    if (rc == MS_OK) {
        rc = put_environment(&z, a, sum, err);
        if (rc == MS_OK)
            rc = put_packages(&z, sum, err);
        if (rc == MS_OK)
            rc = put_hyperparameters(&z, scripts, n, a, sum, err);
        rc = cfg_zip_finish(&z, rc, err);
    }
    ms_arena_free(a);
    return rc;
}
