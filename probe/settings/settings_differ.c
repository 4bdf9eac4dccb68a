/* SPDX-License-Identifier: MIT
 *
 * settings_differ: in what the settings of two runs differ.
 */
#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"
#include "probe/settings/run_settings.h"

#include <stdio.h>
#include <stdlib.h>

/* Settings of one run. */
struct run {
    struct ms_arena *arena;
    struct ms_map names; /* "section\nname" */
    MS_VEC(struct ms_str) values;
    struct ms_str section;
    bool has_packages;
};

/* ---- reading ----------------------------------------------------------------------------------- */

static enum ms_rc keep(struct run *r, struct ms_str name, struct ms_str value, struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 20};
    ms_buf_printf(&key, "%.*s\n%.*s", MS_STR_ARG(r->section), MS_STR_ARG(name));
    r->has_packages |= ms_str_is(r->section, "packages");
    const uint32_t i = ms_map_put_copy(&r->names, ms_buf_slice(&key), r->arena, NULL);
    ms_buf_free(&key);
    struct ms_str *slot = i == r->values.n ? ms_vec_push(&r->values) : &r->values.p[i];
    if (i == MS_MAP_NONE || slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(r->arena, value);
    return slot->p != NULL ? MS_OK : ms_arena_fail(r->arena, err);
}

/* Reads the members of a section; values that are lists or objects are left out. */
static enum ms_rc read_section(void *of, struct ms_jread *j, struct ms_buf *scratch,
                               struct ms_err *err)
{
    struct run *r = of;
    struct ms_str text;
    MS_TRY(ms_jread_text(j, scratch, &text, err));
    r->section = ms_arena_str(r->arena, text);
    enum ms_jtok tok = ms_jread_next(j);
    if (tok != MS_J_OBJ)
        return ms_jread_skip(j, tok) != MS_J_ERR ? MS_OK : ms_jread_fail(j, err);
    while ((tok = ms_jread_next(j)) == MS_J_KEY) {
        MS_TRY(ms_jread_text(j, scratch, &text, err));
        const struct ms_str name = ms_arena_str(r->arena, text);
        tok = ms_jread_next(j);
        if (tok == MS_J_STR)
            MS_TRY(ms_jread_text(j, scratch, &text, err));
        else if (tok == MS_J_NUM)
            text = j->text;
        else if (tok == MS_J_TRUE || tok == MS_J_FALSE)
            text = tok == MS_J_TRUE ? MS_STR("True") : MS_STR("False");
        else if (ms_jread_skip(j, tok) == MS_J_ERR)
            return ms_jread_fail(j, err);
        else
            continue;
        MS_TRY(keep(r, name, text, err));
    }
    return tok == MS_J_OBJ_END ? MS_OK : ms_jread_fail(j, err);
}

static enum ms_rc read_file(struct run *r, const char *path, struct ms_err *err)
{
    enum { MOST = 64 << 20 };
    struct ms_file f;
    struct ms_jread j;
    MS_TRY(ms_file_map(&f, path, MOST, err));
    ms_jread_init(&j, f.p, f.n, 0);
    const enum ms_rc rc = ms_jread_members(&j, "settings", read_section, r, err);
    ms_file_unmap(&f);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", path);
}

/* Finds settings.json in a folder, or up to three folders above; reads it and what frameworks added. */
static enum ms_rc read_run(struct run *r, const char *path, bool *found, struct ms_err *err)
{
    enum { LEVELS = 4 };
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    *found = false;
    for (int i = 0; i < LEVELS && !*found; i++) {
        char *file = ms_path_join(folder, MS_SETTINGS_FILE);
        char *more = ms_path_join(folder, "settings_python.json");
        enum ms_rc rc = file != NULL && more != NULL ? MS_OK : ms_no_memory(err);
        *found = rc == MS_OK && ms_path_kind(file) == MS_KIND_FILE;
        if (*found)
            rc = read_file(r, file, err);
        if (rc == MS_OK && *found && ms_path_kind(more) == MS_KIND_FILE)
            rc = read_file(r, more, err);
        ms_free(file);
        ms_free(more);
        MS_TRY(rc);
        const struct ms_str up = ms_path_dir(folder);
        if (up.n == 1 && up.p[0] != '.') /* the root */
            break;
        char above[4096];
        snprintf(above, sizeof above, "%.*s", MS_STR_ARG(up));
        memcpy(folder, above, sizeof folder);
    }
    return MS_OK;
}

/* ---- what explains most ------------------------------------------------------------------------- */

static bool has_one(struct ms_str name, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (ms_str_has(name, *words))
            return true;
    }
    return false;
}

enum {
    RANK_FRAMEWORK,
    RANK_SWITCH,
    RANK_OPTION,
    RANK_DEVICE,
    RANK_PACKAGE,
    RANK_REST,
    RANK_NOTHING
};

static int rank_of(struct ms_str section, struct ms_str name)
{
    static const char *const frameworks[] = {
        "torch",        "mindspore", "numpy", "megatron", "deepspeed",
        "transformers", "flash",     "apex",  "triton",   NULL};
    static const char *const switches[] = {
        "DETERMINISTIC", "SEED", "WORKSPACE_CONFIG", "TF32", "_ALGO", "LAUNCH_BLOCKING", NULL};
    static const char *const devices[] = {"NCCL_",  "HCCL_",    "ASCEND_", "CUDA_",
                                          "TORCH_", "PYTORCH_", "OMP_",    "MKL_",
                                          "MS_",    "GLOO_",    NULL};
    static const char *const volatiles[] = {
        "PWD",        "SHLVL",   "HOSTNAME",  "TERM",    "SSH_",      "MSTX_",       "MSPROBE_",
        "LD_PRELOAD", "RANK",    "TMPDIR",    "XDG_",    "INJECTION", "MASTER_PORT", "_PID",
        "PYTHONPATH", "SESSION", "LS_COLORS", "COLUMNS", "LINES",     NULL};
    if (ms_str_is(section, "packages"))
        return has_one(name, frameworks) ? RANK_FRAMEWORK : RANK_PACKAGE;
    if (ms_str_is(section, "options"))
        return RANK_OPTION;
    if (!ms_str_is(section, "environment"))
        return RANK_SWITCH;
    if (has_one(name, switches))
        return RANK_SWITCH;
    if (has_one(name, volatiles) || ms_str_is(name, "_"))
        return RANK_NOTHING;
    return has_one(name, devices) ? RANK_DEVICE : RANK_REST;
}

static enum ms_rc add_setting(struct ms_settings_diff *d, struct ms_str key, struct ms_str old,
                              struct ms_str new, struct ms_err *err)
{
    struct ms_str name = key, section;
    (void)ms_str_split(&name, '\n', &section);
    const int rank = rank_of(section, name);
    if (rank == RANK_NOTHING)
        return MS_OK;
    struct ms_setting *slot = ms_vec_push(&d->all);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct ms_setting){section, name, old, new, rank};
    return MS_OK;
}

static int compare_settings(const void *a, const void *b)
{
    const struct ms_setting *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    const int order = ms_str_cmp(x->section, y->section);
    return order != 0 ? order : ms_str_cmp(x->name, y->name);
}

/* A run without any package had no Python in reach, and that is one difference, not one for each package. */
static bool is_compared(const struct run *old, const struct run *new, struct ms_str key)
{
    return !ms_str_starts(key, MS_STR("packages\n")) || (old->has_packages && new->has_packages);
}

static enum ms_rc differ(struct ms_settings_diff *d, const struct run *old, const struct run *new,
                         struct ms_err *err)
{
    const struct ms_str none = MS_STR("");
    for (uint32_t i = 0; i < old->values.n; i++) {
        const struct ms_str key = ms_map_key(&old->names, i);
        const uint32_t k = ms_map_get(&new->names, key);
        const struct ms_str other = k != MS_MAP_NONE ? new->values.p[k] : none;
        if (!ms_str_eq(old->values.p[i], other) && is_compared(old, new, key))
            MS_TRY(add_setting(d, key, old->values.p[i], other, err));
    }
    for (uint32_t i = 0; i < new->values.n; i++) {
        const struct ms_str key = ms_map_key(&new->names, i);
        if (ms_map_get(&old->names, key) == MS_MAP_NONE && is_compared(old, new, key))
            MS_TRY(add_setting(d, key, none, new->values.p[i], err));
    }
    if (d->all.n != 0)
        qsort(d->all.p, d->all.n, sizeof *d->all.p, compare_settings);
    return MS_OK;
}

enum ms_rc ms_settings_differ(struct ms_settings_diff *d, const char *old_path,
                              const char *new_path, struct ms_err *err)
{
    enum { MEMORY = 256 << 20 };
    *d = (struct ms_settings_diff){.arena = ms_arena_new(MEMORY)};
    if (d->arena == NULL)
        return ms_no_memory(err);
    struct run old = {.arena = d->arena}, new = {.arena = d->arena};
    bool has_old, has_new = false;
    enum ms_rc rc = read_run(&old, old_path, &has_old, err);
    if (rc == MS_OK)
        rc = read_run(&new, new_path, &has_new, err);
    if (rc == MS_OK && has_old && has_new)
        rc = differ(d, &old, &new, err);
    /* Names are in the arena; the maps alone go. */
    ms_map_free(&old.names);
    ms_map_free(&new.names);
    ms_vec_free(&old.values);
    ms_vec_free(&new.values);
    if (rc != MS_OK)
        ms_settings_diff_free(d);
    return rc;
}

void ms_settings_diff_free(struct ms_settings_diff *d)
{
    ms_vec_free(&d->all);
    ms_arena_free(d->arena);
    *d = (struct ms_settings_diff){0};
}

static void put_value(struct ms_buf *out, struct ms_str v)
{
    char shown[MS_STR_SHOWN];
    ms_buf_puts(out, v.n != 0 ? ms_str_shown(shown, v) : "(not set)");
}

void ms_settings_diff_text(const struct ms_settings_diff *d, size_t most, struct ms_buf *out)
{
    if (d->all.n == 0)
        return;
    ms_buf_puts(out, "configured differently, what can explain most first:\n");
    const size_t shown = most != 0 && most < d->all.n ? most : d->all.n;
    for (size_t i = 0; i < shown; i++) {
        const struct ms_setting *s = &d->all.p[i];
        ms_buf_printf(out, "  %.*s %.*s: ", MS_STR_ARG(s->section), MS_STR_ARG(s->name));
        put_value(out, s->old);
        ms_buf_puts(out, " -> ");
        put_value(out, s->new);
        ms_buf_puts(out, "\n");
    }
    if (shown < d->all.n)
        ms_buf_printf(out, "  ... and %zu more\n", d->all.n - shown);
    ms_buf_puts(out, "\n");
}
