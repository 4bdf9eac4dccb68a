/* SPDX-License-Identifier: MIT
 *
 * files: the documents of one rank's directory.
 */
#include "probe/files.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <limits.h>
#include <stdlib.h>

enum { FLUSH_BYTES = 256 * 1024 };

static const char *const task_text[] = {"statistics", "tensor", "structure", "nan_check",
                                        "overflow_check"};
static const char *const level_text[] = {"mix", "L0", "L1", "debug"};
static const char *const framework_text[] = {"pytorch", "pytorch", "mindspore", "mindtorch"};

/* ---- opening ---------------------------------------------------------- */

static void put_head(struct probe__files *f)
{
    struct ms_jwrite *json = &f->dump.json;
    ms_jwrite_obj(json);
    ms_jwrite_kstr(json, "task", task_text[f->layout.task]);
    ms_jwrite_kstr(json, "level", level_text[f->layout.level]);
    ms_jwrite_kstr(json, "framework", framework_text[f->layout.framework]);
    ms_jwrite_key(json, MS_STR("dump_data_dir"));
    if (f->data_dir != NULL)
        ms_jwrite_str(json, ms_str_of(f->data_dir));
    else
        ms_jwrite_null(json);
    ms_jwrite_key(json, MS_STR("data"));
    ms_jwrite_obj(json);
}

static enum ms_rc open_document(const struct probe__files *f, struct probe__append *a,
                                const char *name, const char *tail_0, const char *tail,
                                struct ms_err *err)
{
    char *path = ms_path_join(f->dir, name);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe__append_open(a, path, tail_0, tail, err);
    ms_free(path);
    return rc;
}

static enum ms_rc open_dump(struct probe__files *f, struct ms_err *err)
{
    const char *name = f->layout.level == PROBE_LEVEL_DEBUG ? "debug.json" : "dump.json";
    MS_TRY(open_document(f, &f->dump, name, "}\n}", "\n }\n}", err));
    put_head(f);
    return probe__append_flush(&f->dump, err);
}

static enum ms_rc open_extra(struct probe__files *f, struct ms_err *err)
{
    MS_TRY(open_document(f, &f->construct, "construct.json", "}", "\n}", err));
    ms_jwrite_obj(&f->construct.json);
    MS_TRY(probe__append_flush(&f->construct, err));
    char *path = ms_path_join(f->dir, "stack.json");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe__stack_open(&f->stack, path, err);
    ms_free(path);
    return rc;
}

/* The directory of tensor files, as the absolute path that the head names. */
static enum ms_rc set_data_dir(struct probe__files *f, struct ms_err *err)
{
    char *rel = ms_path_join(f->dir, "dump_tensor_data");
    char absolute[PATH_MAX];
    enum ms_rc rc = rel == NULL ? ms_no_memory(err) : ms_mkdirs(rel, err);
    if (rc == MS_OK && realpath(rel, absolute) == NULL)
        rc = ms_fail_sys(err, "%s", rel);
    ms_free(rel);
    MS_TRY(rc);
    ms_free(f->data_dir);
    f->data_dir = ms_str_dup(ms_str_of(absolute));
    return f->data_dir != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc set_dir(struct probe__files *f, const char *dir, struct ms_err *err)
{
    char *copy = ms_str_dup(ms_str_of(dir));
    if (copy == NULL)
        return ms_no_memory(err);
    ms_free(f->dir);
    f->dir = copy;
    return f->layout.tensors ? set_data_dir(f, err) : MS_OK;
}

static enum ms_rc open_all(struct probe__files *f, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_mkdirs(dir, err));
    MS_TRY(set_dir(f, dir, err));
    MS_TRY(open_dump(f, err));
    return f->layout.extra ? open_extra(f, err) : MS_OK;
}

enum ms_rc probe__files_open(struct probe__files *f, const char *dir,
                             const struct probe__layout *layout, struct ms_err *err)
{
    f->layout = *layout;
    enum ms_rc rc = open_all(f, dir, err);
    f->is_open = rc == MS_OK;
    if (rc != MS_OK)
        probe__files_abandon(f);
    return rc;
}

/* ---- writing ---------------------------------------------------------- */

bool probe__files_add(struct probe__files *f, struct ms_str member)
{
    probe__append_member(&f->dump, member);
    return f->dump.json.buf.n >= FLUSH_BYTES;
}

void probe__files_parent(struct probe__files *f, struct ms_str child, const char *parent)
{
    struct ms_jwrite *json = &f->construct.json;
    ms_jwrite_key(json, child);
    if (parent != NULL)
        ms_jwrite_str(json, ms_str_of(parent));
    else
        ms_jwrite_null(json);
    f->construct.members = true;
}

enum ms_rc probe__files_flush(struct probe__files *f, struct ms_err *err)
{
    if (!f->is_open)
        return MS_OK;
    MS_TRY(probe__append_flush(&f->dump, err));
    if (!f->layout.extra)
        return MS_OK;
    MS_TRY(probe__append_flush(&f->construct, err));
    return probe__stack_flush(&f->stack, err);
}

/* A document's path is for messages and, of stack.json, for writing it once more. */
static enum ms_rc follow(const struct probe__files *f, struct probe__append *a, struct ms_err *err)
{
    if (a->path == NULL)
        return MS_OK;
    char *path = ms_path_join(f->dir, ms_path_base(a->path).p);
    if (path == NULL)
        return ms_no_memory(err);
    ms_free(a->path);
    a->path = path;
    return MS_OK;
}

enum ms_rc probe__files_moved(struct probe__files *f, const char *dir, struct ms_err *err)
{
    MS_TRY(set_dir(f, dir, err));
    MS_TRY(follow(f, &f->dump, err));
    MS_TRY(follow(f, &f->construct, err));
    return follow(f, &f->stack.out, err);
}

/* ---- closing ---------------------------------------------------------- */

enum ms_rc probe__files_close(struct probe__files *f, struct ms_err *err)
{
    struct ms_err first = {0};
    if (!f->is_open)
        return MS_OK;
    probe__append_flush(&f->dump, &first); /* all failures end up in `first` */
    if (f->layout.extra) {
        probe__append_flush(&f->construct, &first);
        probe__stack_finish(&f->stack, &first);
    }
    probe__files_abandon(f);
    if (first.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    return first.rc;
}

void probe__files_abandon(struct probe__files *f)
{
    probe__append_close(&f->dump);
    probe__append_close(&f->construct);
    probe__append_close(&f->stack.out);
    f->is_open = false;
}

void probe__files_free(struct probe__files *f)
{
    probe__append_free(&f->dump);
    probe__append_free(&f->construct);
    probe__stack_free(&f->stack);
    ms_free(f->dir);
    ms_free(f->data_dir);
}
