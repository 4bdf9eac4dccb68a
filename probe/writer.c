/* SPDX-License-Identifier: MIT
 *
 * writer: the public dump writer (probe.h).
 *
 * A record is formatted as it is described and joins the document when it
 * ends; the state of the JSON writer before it is kept, so a record that fails
 * or is dropped leaves no trace.  Files of tensors are written at once.
 */
#include "probe/probe.h"

#define MS_LOG_DOMAIN "writer"
#include "probe/append.h"
#include "probe/base/crc.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/leaf.h"
#include "probe/name.h"
#include "probe/stack_write.h"
#include "probe/tensor.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FLUSH_BYTES = 64 * 1024, MAX_NEST = 64, FILE_NAME_MAX = 255, PATH_BYTES = 1 << 16 };

/* One open list or dict: how long the path was outside, and the next index of a list. */
struct level {
    size_t path_n;
    uint64_t index;
    bool is_list;
};

struct probe_writer {
    struct probe_conf conf;
    char *dir, *data_dir;
    struct probe__append dump, construct;
    struct probe__stack_writer stack;
    struct ms_jwrite mark; /* state before the record that is open */
    bool in_record, in_section, extra;
    bool pgrad;         /* the record holds gradients of parameters */
    struct ms_buf path; /* name of the value that is open: item of the file name */
    struct level level[MAX_NEST];
    unsigned depth;
    MS_VEC(unsigned char) gather; /* scratch for strided tensors */
    struct ms_err err;            /* the first failure */
};

static const char *const task_text[] = {"statistics", "tensor", "structure"};
static const char *const level_text[] = {"mix", "L0", "L1", "debug"};
static const char *const framework_text[] = {"pytorch", "pytorch", "mindspore", "mindtorch"};

/* ---- life ------------------------------------------------------------- */

static void put_head(struct probe_writer *w)
{
    struct ms_jwrite *json = &w->dump.json;
    ms_jwrite_obj(json);
    ms_jwrite_kstr(json, "task", task_text[w->conf.task]);
    ms_jwrite_kstr(json, "level", level_text[w->conf.level]);
    ms_jwrite_kstr(json, "framework", framework_text[w->conf.framework]);
    ms_jwrite_key(json, MS_STR("dump_data_dir"));
    if (w->data_dir != NULL)
        ms_jwrite_str(json, ms_str_of(w->data_dir));
    else
        ms_jwrite_null(json);
    ms_jwrite_key(json, MS_STR("data"));
    ms_jwrite_obj(json);
}

static enum ms_rc open_dump(struct probe_writer *w, struct ms_err *err)
{
    const char *name = w->conf.level == PROBE_LEVEL_DEBUG ? "debug.json" : "dump.json";
    char *path = ms_path_join(w->dir, name);
    if (path == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM));
    enum ms_rc rc = probe__append_open(&w->dump, path, "}\n}", "\n }\n}", err);
    ms_free(path);
    MS_TRY(rc);
    put_head(w);
    return probe__append_flush(&w->dump, err);
}

static enum ms_rc open_extra(struct probe_writer *w, struct ms_err *err)
{
    char *construct = ms_path_join(w->dir, "construct.json");
    char *stack = ms_path_join(w->dir, "stack.json");
    enum ms_rc rc = construct == NULL || stack == NULL
                        ? ms_fail(err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM))
                        : probe__append_open(&w->construct, construct, "}", "\n}", err);
    if (rc == MS_OK) {
        ms_jwrite_obj(&w->construct.json);
        rc = probe__append_flush(&w->construct, err);
    }
    if (rc == MS_OK) {
        rc = probe__stack_open(&w->stack, stack, err);
        w->extra = rc == MS_OK;
    }
    ms_free(construct);
    ms_free(stack);
    return rc;
}

/* The directory of tensor files, as the absolute path that the head names. */
static enum ms_rc open_data_dir(struct probe_writer *w, struct ms_err *err)
{
    char *rel = ms_path_join(w->dir, "dump_tensor_data");
    char absolute[PATH_MAX];
    enum ms_rc rc =
        rel == NULL ? ms_fail(err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM)) : ms_mkdirs(rel, err);
    if (rc == MS_OK && realpath(rel, absolute) == NULL)
        rc = ms_fail_sys(err, "%s", rel);
    ms_free(rel);
    MS_TRY(rc);
    w->data_dir = ms_str_dup(ms_str_of(absolute));
    return w->data_dir != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM));
}

static enum ms_rc open_files(struct probe_writer *w, struct ms_err *err)
{
    MS_TRY(ms_mkdirs(w->dir, err));
    if (w->conf.task == PROBE_TASK_TENSOR)
        MS_TRY(open_data_dir(w, err));
    MS_TRY(open_dump(w, err));
    bool extra = !w->conf.no_extra && w->conf.level != PROBE_LEVEL_DEBUG;
    return extra ? open_extra(w, err) : MS_OK;
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
    struct probe_writer *w = ms_calloc(1, sizeof *w);
    if (w == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM));
    w->conf = *conf;
    w->path.max = PATH_BYTES;
    w->dump.fd = w->construct.fd = -1;
    w->dir = ms_str_dup(ms_str_of(conf->dir));
    enum ms_rc rc = w->dir != NULL ? open_files(w, err)
                                   : ms_fail(err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM));
    if (rc != MS_OK) {
        probe_writer_close(w, NULL);
        return rc;
    }
    *out = w;
    return MS_OK;
}

static enum ms_rc flush_all(struct probe_writer *w, struct ms_err *err)
{
    MS_TRY(probe__append_flush(&w->dump, err));
    if (!w->extra)
        return MS_OK;
    MS_TRY(probe__append_flush(&w->construct, err));
    return probe__stack_flush(&w->stack, err);
}

/* Report the first failure, of now or before. */
static enum ms_rc report(const struct probe_writer *w, struct ms_err *err)
{
    if (w->err.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = w->err;
    return w->err.rc;
}

enum ms_rc probe_writer_flush(struct probe_writer *w, struct ms_err *err)
{
    if (!w->in_record)
        flush_all(w, &w->err);
    return report(w, err);
}

/* Put the JSON writer back to where it was before the record. */
static void roll_back(struct probe_writer *w)
{
    struct ms_buf buf = w->dump.json.buf;
    buf.n = w->mark.buf.n;
    buf.bad = MS_OK;
    w->dump.json = w->mark;
    w->dump.json.buf = buf;
}

void probe_record_drop(struct probe_writer *w)
{
    if (!w->in_record)
        return;
    roll_back(w);
    w->in_record = false;
}

/* A record that was begun and neither ended nor dropped. */
static void lose_open_record(struct probe_writer *w)
{
    if (!w->in_record)
        return;
    ms_fail(&w->err, MS_E_ARG, "record '%s' left out: it was not ended", ms_buf_z(&w->path));
    probe_record_drop(w);
}

enum ms_rc probe_writer_close(struct probe_writer *w, struct ms_err *err)
{
    if (w == NULL)
        return MS_OK;
    lose_open_record(w);
    if (w->dump.fd >= 0)
        probe__append_flush(&w->dump, &w->err);
    if (w->extra) {
        probe__append_flush(&w->construct, &w->err);
        probe__stack_close(&w->stack, &w->err);
    }
    enum ms_rc rc = report(w, err);
    probe__append_close(&w->dump);
    probe__append_close(&w->construct);
    ms_buf_free(&w->path);
    ms_vec_free(&w->gather);
    ms_free(w->dir);
    ms_free(w->data_dir);
    ms_free(w);
    return rc;
}

/* ---- records ---------------------------------------------------------- */

void probe_record_begin(struct probe_writer *w, const char *name)
{
    lose_open_record(w);
    w->in_record = true;
    w->in_section = false;
    w->pgrad = probe_name_parse(ms_str_of(name)).kind == PROBE_NODE_PGRAD;
    w->depth = 0;
    w->mark = w->dump.json;
    ms_buf_clear(&w->path);
    ms_buf_puts(&w->path, name);
    ms_jwrite_key(&w->dump.json, ms_str_of(name));
    ms_jwrite_obj(&w->dump.json);
}

static void end_section(struct probe_writer *w)
{
    if (!w->in_section)
        return;
    w->in_section = false;
    if (w->level[0].is_list)
        probe_list_end(w);
    else
        probe_dict_end(w);
}

void probe_record_end(struct probe_writer *w)
{
    if (!w->in_record)
        return;
    end_section(w);
    ms_jwrite_obj_end(&w->dump.json);
    enum ms_rc rc = w->dump.json.err.rc;
    if (rc != MS_OK || w->depth != 0) {
        ms_fail(&w->err, rc != MS_OK ? rc : MS_E_ARG, "record '%s' left out: %s",
                ms_buf_z(&w->path), rc != MS_OK ? w->dump.json.err.msg : "a list is not ended");
        probe_record_drop(w);
        return;
    }
    w->in_record = false;
    w->dump.members = true;
    if (w->conf.task == PROBE_TASK_STRUCTURE) { /* such a dump names nodes, not values */
        roll_back(w);
        w->dump.members = false;
    }
    if (w->dump.json.buf.n >= FLUSH_BYTES)
        flush_all(w, &w->err);
}

/* ---- the path to a value ---------------------------------------------- */

static bool has_record(struct probe_writer *w)
{
    if (!w->in_record)
        ms_fail(&w->err, MS_E_ARG, "a value outside of a record");
    return w->in_record;
}

/* Names of gradients stop at the parameter, whose list has one item. */
static void put_index(struct probe_writer *w, uint64_t index)
{
    char digits[MS_NUM_MAX];
    if (w->pgrad)
        return;
    ms_buf_putc(&w->path, '.');
    ms_buf_put(&w->path, digits, ms_num_u64(digits, index));
}

/* Write the key, or count the index, of the value that follows, and add it to the path.  *path_n is
 * the length of the path before, to cut it back to.  false: there is no record to put it in. */
static bool enter(struct probe_writer *w, const char *key, size_t *path_n)
{
    struct level *in = w->depth != 0 ? &w->level[w->depth - 1] : NULL;
    *path_n = w->path.n;
    if (!has_record(w))
        return false;
    if (in != NULL && in->is_list) {
        put_index(w, in->index++);
    } else if (key != NULL) {
        ms_buf_putc(&w->path, '.');
        ms_buf_puts(&w->path, key);
        ms_jwrite_key(&w->dump.json, ms_str_of(key));
    }
    return true;
}

static void open_level(struct probe_writer *w, size_t path_n, bool is_list)
{
    if (w->depth == MAX_NEST) {
        ms_fail(&w->dump.json.err, MS_E_LIMIT, "values nested deeper than %d levels", MAX_NEST);
        return;
    }
    w->level[w->depth++] = (struct level){path_n, 0, is_list};
    if (is_list)
        ms_jwrite_arr(&w->dump.json);
    else
        ms_jwrite_obj(&w->dump.json);
}

static void close_level(struct probe_writer *w, bool is_list)
{
    if (w->depth == 0) {
        ms_fail(&w->dump.json.err, MS_E_ARG, "the end of a list that was not begun");
        return;
    }
    w->path.n = w->level[--w->depth].path_n;
    if (is_list)
        ms_jwrite_arr_end(&w->dump.json);
    else
        ms_jwrite_obj_end(&w->dump.json);
}

void probe_list_begin(struct probe_writer *w, const char *key)
{
    size_t path_n;
    if (enter(w, key, &path_n))
        open_level(w, path_n, true);
}

void probe_dict_begin(struct probe_writer *w, const char *key)
{
    size_t path_n;
    if (enter(w, key, &path_n))
        open_level(w, path_n, false);
}

void probe_list_end(struct probe_writer *w)
{
    if (has_record(w))
        close_level(w, true);
}

void probe_dict_end(struct probe_writer *w)
{
    if (has_record(w))
        close_level(w, false);
}

void probe_section(struct probe_writer *w, enum probe_section section)
{
    static const struct {
        const char *key, *path; /* in the record, in the names of files */
        bool is_list;
    } part[] = {{"input_args", "input", true},
                {"input_kwargs", "kwargs", false},
                {"input", "input", true},
                {"output", "output", true},
                {"parameters", "parameters", false}};
    if (!has_record(w))
        return;
    end_section(w);
    if ((unsigned)section >= sizeof part / sizeof *part) {
        ms_fail(&w->dump.json.err, MS_E_ARG, "no such part of a record");
        return;
    }
    size_t path_n = w->path.n;
    ms_buf_putc(&w->path, '.');
    ms_buf_puts(&w->path, part[section].path);
    ms_jwrite_key(&w->dump.json, ms_str_of(part[section].key));
    open_level(w, path_n, part[section].is_list);
    w->in_section = true;
}

/* ---- plain values ----------------------------------------------------- */

static bool begin_value(struct probe_writer *w, const char *key, const char *type, size_t *path_n)
{
    if (!enter(w, key, path_n))
        return false;
    ms_jwrite_obj(&w->dump.json);
    ms_jwrite_kstr(&w->dump.json, "type", type);
    return true;
}

static void end_value(struct probe_writer *w, size_t path_n)
{
    ms_jwrite_obj_end(&w->dump.json);
    w->path.n = path_n;
}

void probe_put_int(struct probe_writer *w, const char *key, int64_t v)
{
    size_t path_n;
    if (!begin_value(w, key, "int", &path_n))
        return;
    ms_jwrite_ki64(&w->dump.json, "value", v);
    end_value(w, path_n);
}

void probe_put_float(struct probe_writer *w, const char *key, double v)
{
    size_t path_n;
    if (!begin_value(w, key, "float", &path_n))
        return;
    ms_jwrite_kf64(&w->dump.json, "value", v);
    end_value(w, path_n);
}

void probe_put_bool(struct probe_writer *w, const char *key, bool v)
{
    size_t path_n;
    if (!begin_value(w, key, "bool", &path_n))
        return;
    ms_jwrite_kbool(&w->dump.json, "value", v);
    end_value(w, path_n);
}

void probe_put_str(struct probe_writer *w, const char *key, const char *v)
{
    size_t path_n;
    if (!begin_value(w, key, "str", &path_n))
        return;
    ms_jwrite_kstr(&w->dump.json, "value", v);
    end_value(w, path_n);
}

void probe_put_none(struct probe_writer *w, const char *key)
{
    size_t path_n;
    if (!enter(w, key, &path_n))
        return;
    ms_jwrite_null(&w->dump.json);
    w->path.n = path_n;
}

/* ---- tensors ---------------------------------------------------------- */

static bool is_mindspore(const struct probe_writer *w)
{
    return w->conf.framework == PROBE_FW_MINDSPORE;
}

static enum ms_rc describe(const struct probe_tensor_desc *d, struct probe_tensor *t,
                           struct ms_err *err)
{
    uint64_t dense = 1;
    *t = (struct probe_tensor){.ndim = d->ndim, .data = d->data, .count = 1, .contiguous = true};
    t->dtype = d->dtype != NULL ? ms_dtype_parse(ms_str_of(d->dtype)) : MS_DT_NONE;
    if (t->dtype == MS_DT_NONE)
        return ms_fail(err, MS_E_ARG, "unknown dtype '%s'", d->dtype != NULL ? d->dtype : "");
    if (d->ndim > PROBE_MAX_DIMS)
        return ms_fail(err, MS_E_LIMIT, "%u dimensions, more than %d", d->ndim, PROBE_MAX_DIMS);
    for (uint32_t i = d->ndim; i-- > 0;) {
        t->shape[i] = d->shape[i];
        t->stride[i] = d->stride != NULL ? d->stride[i] : dense;
        t->contiguous &= t->stride[i] == dense || t->shape[i] == 1;
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count) ||
            __builtin_mul_overflow(dense, t->shape[i] != 0 ? t->shape[i] : 1, &dense))
            return ms_fail(err, MS_E_LIMIT, "the sizes of a shape multiply beyond 64 bits");
    }
    if (t->count != 0 && t->data == NULL)
        return ms_fail(err, MS_E_ARG, "a tensor without data");
    return MS_OK;
}

/* Contiguous bytes of t: its own, or gathered.  NULL when it is empty, or, with the record lost,
 * without memory. */
static const void *bytes_of(struct probe_writer *w, const struct probe_tensor *t)
{
    size_t n;
    if (t->count == 0 || t->contiguous)
        return t->data;
    if (ms_mul_size(t->count, ms_dtype_size(t->dtype), &n) && ms_vec_reserve(&w->gather, n))
        return probe_tensor_elements(t, 0, t->count, w->gather.p);
    ms_fail(&w->dump.json.err, MS_E_NOMEM, "%s", ms_rc_text(MS_E_NOMEM));
    return NULL;
}

/* What to write for Max, Min, Mean and Norm. */
struct figure {
    enum { NO_FIGURE, TRUTH, WHOLE, NATURAL, REAL } kind;
    double v;
    uint64_t bits; /* of WHOLE, an int64_t, and NATURAL */
};

static bool is_whole(enum ms_dtype_kind kind)
{
    return kind == MS_DTK_INT || kind == MS_DTK_UINT;
}

/* Largest and smallest of 64-bit integers, most of which no double holds. */
static void whole_range(struct probe_writer *w, const struct probe_tensor *t, uint64_t *max,
                        uint64_t *min)
{
    uint64_t flip = t->dtype == MS_DT_I64 ? UINT64_C(1) << 63 : 0; /* orders the bits */
    uint64_t hi = 0;
    uint64_t lo = UINT64_MAX;
    const unsigned char *p = bytes_of(w, t);
    for (uint64_t i = 0; p != NULL && i < t->count; i++, p += sizeof hi) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        v ^= flip;
        hi = v > hi ? v : hi;
        lo = v < lo ? v : lo;
    }
    *max = hi ^ flip;
    *min = lo ^ flip;
}

static void set_range(struct probe_writer *w, const struct probe_tensor *t,
                      const struct ms_stats *s, struct figure *max, struct figure *min)
{
    enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    max->kind = kind == MS_DTK_BOOL     ? TRUTH
                : t->dtype == MS_DT_U64 ? NATURAL
                : is_whole(kind)        ? WHOLE
                                        : REAL;
    min->kind = max->kind;
    max->v = s->nan != 0 ? NAN : s->max;
    min->v = s->nan != 0 ? NAN : s->min;
    if (!is_whole(kind))
        return;
    if (ms_dtype_size(t->dtype) == sizeof max->bits) {
        whole_range(w, t, &max->bits, &min->bits);
    } else {
        max->bits = (uint64_t)(int64_t)s->max;
        min->bits = (uint64_t)(int64_t)s->min;
    }
}

/* Which of the four the official tool has for a type: the table of the format's statistics rules.
 * It reduces in the tensor's own type, so mean and norm are rounded to that. */
static void figures_of(struct probe_writer *w, const struct probe_tensor *t,
                       struct figure f[PROBE_STATS])
{
    enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    struct ms_stats s;
    memset(f, 0, PROBE_STATS * sizeof *f);
    if (t->count == 0 || (kind == MS_DTK_FLOAT && ms_dtype_size(t->dtype) == 1))
        return;
    probe_tensor_stats(t, &s);
    set_range(w, t, &s, &f[PROBE_STAT_MAX], &f[PROBE_STAT_MIN]);
    if (t->ndim == 0 && (is_whole(kind) || kind == MS_DTK_FLOAT)) {
        f[PROBE_STAT_MEAN] = f[PROBE_STAT_NORM] = f[PROBE_STAT_MAX];
        return;
    }
    bool reduced = kind == MS_DTK_FLOAT && t->dtype != MS_DT_F64;
    bool all = reduced || (w->conf.all_numbers && kind != MS_DTK_BOOL);
    bool complex = kind == MS_DTK_COMPLEX;
    if (all || complex)
        f[PROBE_STAT_MEAN] = (struct figure){REAL, ms_dtype_round(t->dtype, ms_stats_mean(&s)), 0};
    if (all || (complex && is_mindspore(w)))
        f[PROBE_STAT_NORM] = (struct figure){REAL, ms_dtype_round(t->dtype, ms_stats_norm(&s)), 0};
}

static void put_figure(struct ms_jwrite *json, struct figure f)
{
    switch (f.kind) {
    case NO_FIGURE:
        ms_jwrite_null(json);
        break;
    case TRUTH:
        ms_jwrite_bool(json, f.v != 0);
        break;
    case WHOLE:
        ms_jwrite_i64(json, (int64_t)f.bits);
        break;
    case NATURAL:
        ms_jwrite_u64(json, f.bits);
        break;
    case REAL:
        ms_jwrite_f64(json, f.v);
        break;
    }
}

static void put_stats(struct probe_writer *w, const struct probe_tensor *t)
{
    struct figure f[PROBE_STATS];
    figures_of(w, t, f);
    for (int i = 0; i < PROBE_STATS; i++) {
        ms_jwrite_key(&w->dump.json, ms_str_of(probe_stat_names[i]));
        put_figure(&w->dump.json, f[i]);
    }
}

static void put_crc(struct probe_writer *w, const struct probe_tensor *t)
{
    char text[16];
    const void *p = bytes_of(w, t);
    size_t n = p != NULL ? (size_t)t->count * ms_dtype_size(t->dtype) : 0;
    snprintf(text, sizeof text, "%08x", ms_crc32(0, p, n));
    ms_jwrite_kstr(&w->dump.json, "md5", text);
}

/* Nothing of an empty tensor, a real number without dimensions as itself, all else in hex. */
static void put_xor(struct probe_writer *w, const struct probe_tensor *t)
{
    char text[24];
    struct ms_jwrite *json = &w->dump.json;
    const void *p = bytes_of(w, t);
    ms_jwrite_key(json, MS_STR("md5"));
    if (p == NULL || t->count == 0) {
        ms_jwrite_null(json);
    } else if (t->ndim == 0 && ms_dtype_kind(t->dtype) == MS_DTK_FLOAT) {
        double v;
        ms_dtype_to_f64(t->dtype, p, 1, &v);
        ms_jwrite_f64(json, v);
    } else {
        uint64_t v = ms_xor64(p, (size_t)t->count * ms_dtype_size(t->dtype));
        snprintf(text, sizeof text, "0x%016llx", (unsigned long long)v);
        ms_jwrite_str(json, ms_str_of(text));
    }
}

/* Write the tensor's file and name it; a tensor without a file is described all the same. */
static void put_file(struct probe_writer *w, const struct probe_tensor *t)
{
    struct ms_err err = {0};
    const void *p = bytes_of(w, t);
    size_t item = w->path.n;
    ms_buf_puts(&w->path, is_mindspore(w) ? ".npy" : ".pt");
    const char *name = ms_buf_z(&w->path);
    if (w->path.bad != MS_OK || w->path.n > FILE_NAME_MAX || strchr(name, '/') != NULL) {
        ms_warn("no file for '%s': the name cannot be one of a file", name);
        w->path.n = item;
        return;
    }
    char *path = p != NULL ? ms_path_join(w->data_dir, name) : NULL;
    enum ms_rc rc = path == NULL ? ms_fail(&err, MS_E_NOMEM, "%s: %s", name, ms_rc_text(MS_E_NOMEM))
                                 : (is_mindspore(w) ? probe_npy_write : probe_pt_write)(
                                       path, t->dtype, t->shape, t->ndim, p, &err);
    if (rc == MS_OK)
        ms_jwrite_kstr(&w->dump.json, "data_name", name);
    else if (w->err.rc == MS_OK)
        w->err = err;
    ms_free(path);
    w->path.n = item;
}

static void put_type(struct probe_writer *w, const struct probe_tensor *t)
{
    struct ms_jwrite *json = &w->dump.json;
    char dtype[64];
    snprintf(dtype, sizeof dtype, "torch.%s", ms_dtype_torch(t->dtype));
    ms_jwrite_kstr(json, "type", is_mindspore(w) ? "mindspore.Tensor" : "torch.Tensor");
    ms_jwrite_kstr(json, "dtype", is_mindspore(w) ? ms_dtype_mindspore(t->dtype) : dtype);
    ms_jwrite_key(json, MS_STR("shape"));
    ms_jwrite_arr(json);
    for (uint32_t i = 0; i < t->ndim; i++)
        ms_jwrite_u64(json, t->shape[i]);
    ms_jwrite_arr_end(json);
}

void probe_put_tensor(struct probe_writer *w, const char *key, const struct probe_tensor_desc *d)
{
    struct ms_jwrite *json = &w->dump.json;
    struct probe_tensor t;
    size_t path_n;
    if (!enter(w, key, &path_n) || describe(d, &t, &json->err) != MS_OK)
        return;
    bool md5 = w->conf.summary == PROBE_SUMMARY_MD5;
    bool xor = w->conf.summary == PROBE_SUMMARY_XOR;
    ms_jwrite_obj(json);
    put_type(w, &t);
    if (!xor)
        put_stats(w, &t);
    else
        put_xor(w, &t); /* before requires_grad, and a CRC after it */
    if (!is_mindspore(w))
        ms_jwrite_kbool(json, "requires_grad", d->requires_grad);
    if (md5)
        put_crc(w, &t);
    if (w->conf.task == PROBE_TASK_TENSOR && t.count != 0)
        put_file(w, &t);
    ms_jwrite_obj_end(json);
    w->path.n = path_n;
}

/* ---- construct and stack ---------------------------------------------- */

void probe_parent(struct probe_writer *w, const char *child, const char *parent)
{
    if (!w->extra || w->conf.level == PROBE_LEVEL_L1)
        return;
    ms_jwrite_key(&w->construct.json, ms_str_of(child));
    if (parent != NULL)
        ms_jwrite_str(&w->construct.json, ms_str_of(parent));
    else
        ms_jwrite_null(&w->construct.json);
    w->construct.members = true;
}

void probe_stack(struct probe_writer *w, const char *node, const char *const *frames, unsigned n)
{
    if (w->extra)
        probe__stack_add(&w->stack, node, frames, n, &w->err);
}
