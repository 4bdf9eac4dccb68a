/* SPDX-License-Identifier: MIT
 *
 * config_pack: collects what a run is started with. No Python is started: installed packages are folders
 * NAME-VERSION.dist-info in the folders that Python searches.
 */
#include "compare/config/config_pack.h"

#include "compare/config/config_zip.h"
#include "compare/config/hyper_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *const cfg_secret_words[] = {"password",   "passwd",  "secret", "token",
                                        "credential", "api_key", "apikey", "private_key",
                                        "access_key", "auth",    NULL};

/* ---- environment ------------------------------------------------------------------------------ */

static bool has_secret_word(struct ms_str name)
{
    const char *own = getenv("MSPROBE_SECRETS");
    struct ms_str rest = ms_str_of(own != NULL ? own : ""), word;
    for (const char *const *w = cfg_secret_words; own == NULL && *w != NULL; w++) {
        if (ms_str_has_folded(name, ms_str_of(*w)))
            return true;
    }
    while (own != NULL && ms_str_split(&rest, ',', &word)) {
        if (word.n != 0 && ms_str_has_folded(name, word))
            return true;
    }
    return false;
}

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
        if (has_secret_word(name)) {
            sum->hidden++;
            continue;
        }
        sum->variables++;
        MS_TRY(cfg_set(a, dict, name, cfg_text(a, value), err));
    }
    return put_json(z, "env", dict, err);
}

/* ---- packages ----------------------------------------------------------------------------------- */

struct packages {
    struct ms_buf text;
    uint64_t n;
    struct ms_err *err;
};

/* Takes "Name: x" out of a package's METADATA. */
static struct ms_str header_of(struct ms_str text, const char *name)
{
    struct ms_str line;
    while (ms_str_split(&text, '\n', &line) && line.n != 0) {
        if (!ms_str_skip(&line, name))
            continue;
        while (line.n != 0 && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
            line.n--;
        return line;
    }
    return MS_STR_NONE;
}

static enum ms_rc add_package(struct packages *p, const char *dir, struct ms_str folder)
{
    static const char *const files[] = {"METADATA", "PKG-INFO", ""};
    char path[4096];
    for (int i = 0; i < 3; i++) {
        struct ms_err unused = {0};
        struct ms_file f;
        snprintf(path, sizeof path, "%s/%.*s%s%s", dir, MS_STR_ARG(folder), i < 2 ? "/" : "",
                 files[i]);
        if (ms_file_map(&f, path, 64 << 20, &unused) != MS_OK)
            continue;
        const struct ms_str text = {f.p, (uint32_t)f.n};
        const struct ms_str name = header_of(text, "Name: "),
                            version = header_of(text, "Version: ");
        if (name.n != 0) {
            ms_buf_printf(&p->text, "%.*s=%.*s\n", MS_STR_ARG(name), MS_STR_ARG(version));
            p->n++;
        }
        ms_file_unmap(&f);
        break;
    }
    return ms_buf_check(&p->text, p->err);
}

static enum ms_rc add_folder(struct packages *p, const char *dir)
{
    struct ms_dir list;
    struct ms_err unused = {0};
    if (ms_path_kind(dir) != MS_KIND_DIR || ms_dir_list(&list, dir, &unused) != MS_OK)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < list.names.n; i++) {
        if (ms_str_ends(list.names.p[i], MS_STR(".dist-info")) ||
            ms_str_ends(list.names.p[i], MS_STR(".egg-info")))
            rc = add_package(p, dir, list.names.p[i]);
    }
    ms_dir_free(&list);
    return rc;
}

/* Adds PREFIX/lib/python3.N/site-packages, and Debian's folders below /usr. */
static enum ms_rc add_prefix(struct packages *p, const char *prefix)
{
    struct ms_dir list;
    struct ms_err unused = {0};
    char lib[4096], path[5000];
    snprintf(lib, sizeof lib, "%s/lib", prefix);
    if (ms_path_kind(lib) != MS_KIND_DIR || ms_dir_list(&list, lib, &unused) != MS_OK)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < list.names.n; i++) {
        if (!ms_str_starts(list.names.p[i], MS_STR("python3")) || list.names.p[i].n > 100)
            continue;
        static const char *const inner[] = {"site-packages", "dist-packages"};
        for (int k = 0; rc == MS_OK && k < 2; k++) {
            snprintf(path, sizeof path, "%s/%s/%s", lib, list.names.p[i].p, inner[k]);
            rc = add_folder(p, path);
        }
    }
    ms_dir_free(&list);
    return rc;
}

/* Finds the folder above the bin of the first python3 in PATH: a virtual environment, or /usr. */
static bool find_python(char *prefix, size_t n)
{
    const char *path = getenv("PATH");
    struct ms_str rest = ms_str_of(path != NULL ? path : "/usr/bin"), dir;
    char program[4096];
    while (ms_str_split(&rest, ':', &dir)) {
        snprintf(program, sizeof program, "%.*s/python3", MS_STR_ARG(dir));
        if (dir.n == 0 || access(program, X_OK) != 0 || !ms_str_ends(dir, MS_STR("/bin")))
            continue;
        snprintf(prefix, n, "%.*s", (int)dir.n - 4, dir.p);
        return true;
    }
    return false;
}

static enum ms_rc put_packages(struct cfg_zip_out *z, struct cfg_pack_sum *sum, struct ms_err *err)
{
    struct packages p = {.text = {.max = 16 << 20}, .err = err};
    struct ms_str paths = ms_str_of(getenv("PYTHONPATH") != NULL ? getenv("PYTHONPATH") : ""), one;
    char prefix[4096];
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && ms_str_split(&paths, ':', &one)) {
        snprintf(prefix, sizeof prefix, "%.*s", MS_STR_ARG(one));
        rc = one.n != 0 ? add_folder(&p, prefix) : MS_OK;
    }
    if (rc == MS_OK && find_python(prefix, sizeof prefix)) {
        rc = add_prefix(&p, prefix);
        if (rc == MS_OK && strcmp(prefix, "/usr") == 0) {
            rc = add_prefix(&p, "/usr/local");
            if (rc == MS_OK)
                rc = add_folder(&p, "/usr/lib/python3/dist-packages");
        }
    }
    if (rc == MS_OK)
        rc = cfg_zip_add(z, "pip", ms_buf_slice(&p.text), err);
    sum->packages = p.n;
    ms_buf_free(&p.text);
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
