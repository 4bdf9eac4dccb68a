/* SPDX-License-Identifier: MIT
 *
 * writer: the public dump writer (probe.h): the files of one directory and one record at a time.
 * Tensor files are written immediately.
 */
#include "probe/probe.h"

#include "probe/base/mem.h"
#include "probe/dump/name.h"
#include "probe/write/rank_files.h"
#include "probe/write/record.h"

struct probe_writer {
    enum probe_task task;
    enum probe_level level;
    struct probe__files files;
    struct probe__style style;
    struct probe__record record;
    struct ms_err err; /* the first failure */
};

/* ---- life ------------------------------------------------------------- */

static bool save_now(void *ctx, const char *name, const struct probe_tensor *t)
{
    struct probe_writer *w = ctx;
    struct ms_err err = {0};
    char *path = ms_path_join(w->files.data_dir, name);
    enum ms_rc rc =
        path != NULL
            ? probe_tensor_write(t, path, w->style.mindspore ? PROBE_FILE_NPY : PROBE_FILE_PT, &err)
            : ms_fail(&err, MS_E_NOMEM, "%s: %s", name, ms_rc_text(MS_E_NOMEM));
    ms_free(path);
    if (rc != MS_OK && w->err.rc == MS_OK)
        w->err = err;
    return rc == MS_OK;
}

static struct probe_writer *new_writer(const struct probe_conf *conf)
{
    struct probe_writer *w = ms_calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->task = conf->task;
    w->level = conf->level;
    w->style = (struct probe__style){.summary = conf->summary,
                                     .mindspore = conf->framework == PROBE_FW_MINDSPORE,
                                     .all_numbers = conf->all_numbers};
    probe__record_init(&w->record, &w->style);
    w->record.save = conf->task == PROBE_TASK_TENSOR ? save_now : NULL;
    w->record.ctx = w;
    return w;
}

enum ms_rc probe_writer_open(struct probe_writer **out, const struct probe_conf *conf,
                             struct ms_err *err)
{
    *out = NULL;
    if (conf->dir == NULL || conf->dir[0] == '\0')
        return ms_fail(err, MS_E_ARG, "no directory to dump into");
    if ((unsigned)conf->task > PROBE_TASK_STRUCTURE ||
        (unsigned)conf->summary > PROBE_SUMMARY_XOR || (unsigned)conf->level > PROBE_LEVEL_DEBUG ||
        (unsigned)conf->framework > PROBE_FW_MINDTORCH)
        return ms_fail(err, MS_E_ARG, "no such task, summary, level or framework");
    struct probe_writer *w = new_writer(conf);
    if (w == NULL)
        return ms_no_memory(err);
    const struct probe__layout layout = {.task = conf->task,
                                         .level = conf->level,
                                         .framework = conf->framework,
                                         .extra =
                                             !conf->no_extra && conf->level != PROBE_LEVEL_DEBUG,
                                         .tensors = conf->task == PROBE_TASK_TENSOR};
    enum ms_rc rc = probe__files_open(&w->files, conf->dir, &layout, err);
    if (rc != MS_OK) {
        probe_writer_close(w, NULL);
        return rc;
    }
    *out = w;
    return MS_OK;
}

/* Reports the first failure since opening. */
static enum ms_rc report(const struct probe_writer *w, struct ms_err *err)
{
    if (w->err.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = w->err;
    return w->err.rc;
}

enum ms_rc probe_writer_flush(struct probe_writer *w, struct ms_err *err)
{
    if (!w->record.open)
        probe__files_flush(&w->files, &w->err);
    return report(w, err);
}

/* Drops a record that was begun and neither ended nor dropped, and records that as a failure. */
static void lose_open_record(struct probe_writer *w)
{
    if (w->record.open)
        ms_fail(&w->err, MS_E_ARG, "record '%s' left out: it was not ended",
                ms_buf_z(&w->record.path));
    probe__record_drop(&w->record);
}

enum ms_rc probe_writer_close(struct probe_writer *w, struct ms_err *err)
{
    if (w == NULL)
        return MS_OK;
    lose_open_record(w);
    probe__files_close(&w->files, &w->err);
    enum ms_rc rc = report(w, err);
    probe__record_free(&w->record);
    probe__files_free(&w->files);
    ms_free(w);
    return rc;
}

/* ---- records ---------------------------------------------------------- */

void probe_record_begin(struct probe_writer *w, const char *name)
{
    lose_open_record(w);
    struct ms_str text = ms_str_of(name);
    probe__record_begin(&w->record, text);
    w->record.pgrad = probe_name_parse(text).kind == PROBE_NODE_PGRAD;
}

void probe_record_drop(struct probe_writer *w)
{
    probe__record_drop(&w->record);
}

void probe_record_end(struct probe_writer *w)
{
    struct ms_str text;
    if (!w->record.open || probe__record_finish(&w->record, &text, &w->err) != MS_OK)
        return;
    if (w->task == PROBE_TASK_STRUCTURE) /* such a dump has nodes, no values */
        return;
    if (probe__files_add(&w->files, text))
        probe__files_flush(&w->files, &w->err);
}

/* Returns the open record, or NULL. */
static struct probe__record *record_of(struct probe_writer *w)
{
    if (w->record.open)
        return &w->record;
    ms_fail(&w->err, MS_E_ARG, "a value outside of a record");
    return NULL;
}

void probe_section(struct probe_writer *w, enum probe_section section)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_section(r, section);
}

void probe_list_begin(struct probe_writer *w, const char *key)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_open(r, key, true);
}

void probe_dict_begin(struct probe_writer *w, const char *key)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_open(r, key, false);
}

void probe_list_end(struct probe_writer *w)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_close(r, true);
}

void probe_dict_end(struct probe_writer *w)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_close(r, false);
}

/* ---- values ----------------------------------------------------------- */

void probe_put_tensor(struct probe_writer *w, const char *key, const struct probe_tensor_desc *d)
{
    struct probe__record *r = record_of(w);
    struct probe_tensor t;
    if (r != NULL && d->stream != NULL)
        probe__record_fail(r, MS_E_UNSUPPORTED, "a tensor of a device; a dumper takes those");
    else if (r != NULL && probe__describe(d, &t, &r->json.err) == MS_OK)
        probe__record_tensor(r, key, &t,
                             &(struct probe__leaf_as){.requires_grad = d->requires_grad});
}

void probe_put_int(struct probe_writer *w, const char *key, int64_t v)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_int(r, key, v);
}

void probe_put_float(struct probe_writer *w, const char *key, double v)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_float(r, key, v);
}

void probe_put_bool(struct probe_writer *w, const char *key, bool v)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_bool(r, key, v);
}

void probe_put_str(struct probe_writer *w, const char *key, const char *v)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_str(r, key, v);
}

void probe_put_none(struct probe_writer *w, const char *key)
{
    struct probe__record *r = record_of(w);
    if (r != NULL)
        probe__record_none(r, key);
}

/* ---- construct and stack ---------------------------------------------- */

void probe_parent(struct probe_writer *w, const char *child, const char *parent)
{
    if (w->files.layout.extra && w->level != PROBE_LEVEL_L1)
        probe__files_parent(&w->files, ms_str_of(child), parent);
}

void probe_stack(struct probe_writer *w, const char *node, const char *const *frames, unsigned n)
{
    if (!w->files.layout.extra)
        return;
    uint32_t group = probe__stack_group(&w->files.stack, frames, n, &w->err);
    if (group != MS_MAP_NONE)
        probe__stack_add(&w->files.stack, ms_str_of(node), group, &w->err);
}
