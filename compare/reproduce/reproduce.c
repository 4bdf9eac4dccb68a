/* SPDX-License-Identifier: MIT
 *
 * reproduce: the files beside the program.
 */
#include "compare/reproduce/reproduce.h"

#include "compare/reproduce/reproduce_int.h"

#include <stdio.h>

enum { PATH_BYTES = 4096, SCRIPT_MAX = 1 << 24 };

static enum ms_rc write_array(const char *dir, const char *before, struct ms_str name,
                              const struct tape_shape *shape, const double *v, struct ms_err *err)
{
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/%s%.*s.npy", dir, before, MS_STR_ARG(name));
    if (n < 0 || (size_t)n >= sizeof path || ms_str_find(name, '/') >= 0)
        return ms_fail(err, MS_E_LIMIT, "%s: path too long", dir);
    return probe_npy_write(path, MS_DT_F64, shape->dim, shape->ndim, v, err);
}

static enum ms_rc write_values(const struct blame_work *s, const char *dir,
                               const struct rec_value *list, size_t n, struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct rec_value *v = &list[i];
        if (v->kind == REC_LIST)
            MS_TRY(write_values(s, dir, v->items, v->n, err));
        if (v->kind != REC_TENSOR)
            continue;
        const struct tape_node *x = tape_at(&s->tape, v->node);
        MS_TRY(write_array(dir, "", v->path, &x->shape, x->v, err));
    }
    return MS_OK;
}

static enum ms_rc write_results(const struct blame_work *s, const char *dir, struct ms_err *err)
{
    for (size_t i = 0; i < s->out.n; i++) {
        const struct blame_result *r = &s->out.list[i];
        MS_TRY(write_array(dir, "", r->path, &r->shape, r->v, err));
        if (s->exact[i] != TAPE_NONE && tape_at(&s->tape, s->exact[i])->n == r->n)
            MS_TRY(write_array(dir, "exact.", r->path, &r->shape, tape_at(&s->tape, s->exact[i])->v,
                               err));
    }
    for (size_t i = 0; i < s->seeds.n; i++)
        MS_TRY(write_array(dir, "gradient.", s->seeds.list[i].path, &s->seeds.list[i].shape,
                           s->seeds.list[i].v, err));
    return MS_OK;
}

static enum ms_rc write_script(const struct blame_work *s, const char *dir, struct ms_err *err)
{
    struct ms_buf text = {.max = SCRIPT_MAX};
    char path[PATH_BYTES];
    struct ms_out *out = NULL;
    enum ms_rc rc = reproduce__script(s, &text, err);
    const int n = snprintf(path, sizeof path, "%s/reproduce.py", dir);
    if (rc == MS_OK && (n < 0 || (size_t)n >= sizeof path))
        rc = ms_fail(err, MS_E_LIMIT, "%s: path too long", dir);
    if (rc == MS_OK)
        rc = ms_out_create(&out, path, err);
    if (rc == MS_OK) {
        ms_out_write(out, text.p, text.n);
        rc = ms_out_commit(out, err);
    }
    ms_buf_free(&text);
    return rc;
}

/* Cuts the record to the row of its worst element. */
static void cut(struct blame_work *s, struct reproduced *out)
{
    if (out->side.n == 0 || s->out.n == 0 || s->out.list[0].shape.ndim == 0)
        return;
    const struct blame_outcome *o = &out->side.tensors[0].outcome;
    const uint64_t rows = s->out.list[0].shape.dim[0];
    if (rows < 2 || o->n % rows != 0 || o->n == 0)
        return;
    out->rows = rows;
    out->row = o->worst_at / (o->n / rows);
    out->is_minimised = reproduce__cut(s, out->row);
}

enum ms_rc reproduce_write(struct reproduced *out, const struct blame_record *record,
                           const char *dir, bool minimise, size_t limit, struct ms_err *err)
{
    struct blame_work s;
    *out = (struct reproduced){.row = 0};
    MS_TRY(blame_work_open(&s, record, limit, err));
    blame_work_judge(&s, &out->side);
    enum ms_rc rc = MS_OK;
    if (s.exact == NULL) /* the record itself could not be read */
        rc = ms_fail(err, out->side.why.rc, "%s", out->side.why.msg);
    if (rc == MS_OK && minimise)
        cut(&s, out);
    if (rc == MS_OK)
        rc = ms_mkdirs(dir, err);
    if (rc == MS_OK)
        rc = write_values(&s, dir, s.in.args, s.in.nargs, err);
    if (rc == MS_OK)
        rc = write_values(&s, dir, s.in.named, s.in.nnamed, err);
    if (rc == MS_OK)
        rc = write_results(&s, dir, err);
    if (rc == MS_OK) /* last, so that a script is never without its inputs */
        rc = write_script(&s, dir, err);
    blame_work_free(&s);
    return rc;
}
