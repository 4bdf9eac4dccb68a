/* SPDX-License-Identifier: MIT
 *
 * run_settings: collects what a program is started with.
 */
#include "probe/settings/run_settings.h"

#include "probe/base/io.h"
#include "probe/base/jwrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- secrets ---------------------------------------------------------------------------------- */

const char *const ms_secret_words[] = {"password",   "passwd",  "secret",  "token",
                                       "credential", "api_key", "apikey",  "private_key",
                                       "access_key", "auth",    "api-key", NULL};

bool ms_is_secret(struct ms_str name)
{
    const char *own = getenv("MSPROBE_SECRETS");
    struct ms_str rest = ms_str_of(own != NULL ? own : ""), word;
    for (const char *const *w = ms_secret_words; own == NULL && *w != NULL; w++) {
        if (ms_str_has_folded(name, ms_str_of(*w)))
            return true;
    }
    while (own != NULL && ms_str_split(&rest, ',', &word)) {
        if (word.n != 0 && ms_str_has_folded(name, word))
            return true;
    }
    return false;
}

/* ---- packages ----------------------------------------------------------------------------------- */

struct packages {
    ms_package_fn *fn;
    void *ctx;
    uint64_t *n;
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
        *p->n += name.n != 0;
        const enum ms_rc rc = name.n != 0 ? p->fn(p->ctx, name, version, p->err) : MS_OK;
        ms_file_unmap(&f);
        return rc;
    }
    return MS_OK;
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

enum ms_rc ms_packages_each(ms_package_fn *fn, void *ctx, uint64_t *n, struct ms_err *err)
{
    struct packages p = {.fn = fn, .ctx = ctx, .n = n, .err = err};
    struct ms_str paths = ms_str_of(getenv("PYTHONPATH") != NULL ? getenv("PYTHONPATH") : ""), one;
    char prefix[4096];
    while (ms_str_split(&paths, ':', &one)) {
        snprintf(prefix, sizeof prefix, "%.*s", MS_STR_ARG(one));
        if (one.n != 0)
            MS_TRY(add_folder(&p, prefix));
    }
    if (!find_python(prefix, sizeof prefix))
        return MS_OK;
    MS_TRY(add_prefix(&p, prefix));
    if (strcmp(prefix, "/usr") != 0)
        return MS_OK;
    MS_TRY(add_prefix(&p, "/usr/local"));
    return add_folder(&p, "/usr/lib/python3/dist-packages");
}

/* ---- the file ------------------------------------------------------------------------------------ */

static enum ms_rc put_package(void *ctx, struct ms_str name, struct ms_str version,
                              struct ms_err *err)
{
    struct ms_jwrite *w = ctx;
    (void)err;
    ms_jwrite_key(w, name);
    ms_jwrite_str(w, version);
    return MS_OK;
}

static void put_pair(struct ms_jwrite *w, struct ms_str name, struct ms_str value)
{
    ms_jwrite_key(w, name);
    ms_jwrite_str(w, value);
}

static void put_environment(struct ms_jwrite *w)
{
    ms_jwrite_key(w, MS_STR("environment"));
    ms_jwrite_obj(w);
    for (char **e = environ; *e != NULL; e++) {
        struct ms_str value = ms_str_of(*e), name;
        (void)ms_str_split(&value, '=', &name);
        if (value.p != NULL && !ms_is_secret(name))
            put_pair(w, name, value);
    }
    ms_jwrite_obj_end(w);
}

/* Options of the program, "--lr 0.1" and "--lr=0.1". */
static void put_options(struct ms_jwrite *w, char *const *program)
{
    ms_jwrite_key(w, MS_STR("options"));
    ms_jwrite_obj(w);
    for (int i = 1; program[i] != NULL; i++) {
        struct ms_str value = ms_str_of(program[i]), name;
        if (!ms_str_skip(&value, "--") || value.n == 0)
            continue;
        (void)ms_str_split(&value, '=', &name);
        if (value.p == NULL && program[i + 1] != NULL && program[i + 1][0] != '-')
            value = ms_str_of(program[i + 1]);
        if (ms_is_secret(name))
            continue;
        put_pair(w, name, value.p != NULL ? value : MS_STR("True"));
    }
    ms_jwrite_obj_end(w);
}

enum ms_rc ms_settings_write(const char *dir, char *const *program, struct ms_err *err)
{
    struct ms_jwrite w;
    struct ms_out *out;
    uint64_t packages = 0;
    char *path = ms_path_join(dir, MS_SETTINGS_FILE);
    enum ms_rc rc = path != NULL ? ms_out_create(&out, path, err) : ms_no_memory(err);
    ms_free(path);
    MS_TRY(rc);
    ms_out_lazy(out);
    ms_jwrite_init(&w, 2, 1 << 20);
    w.drain = ms_out_sink;
    w.ctx = out;
    ms_jwrite_obj(&w);
    put_options(&w, program);
    put_environment(&w);
    ms_jwrite_key(&w, MS_STR("packages"));
    ms_jwrite_obj(&w);
    rc = ms_packages_each(put_package, &w, &packages, err);
    ms_jwrite_obj_end(&w);
    ms_jwrite_obj_end(&w);
    if (rc == MS_OK)
        rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}
