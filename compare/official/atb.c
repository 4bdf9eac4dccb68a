/* SPDX-License-Identifier: MIT
 *
 * atb: compares statistic.csv of both sides, line by line.
 */
#include "compare/official/atb.h"

#include "compare/official/file_pair.h"
#include "probe/base/csv.h"
#include "probe/base/map.h"

#include <math.h>

#define CSV_MAX  ((size_t)1 << 30)
#define TEXT_MAX ((size_t)1 << 32)

/* Columns of statistic.csv. */
enum {
    DEVICE,
    COUNT,
    OP_NAME,
    OP_TYPE,
    OP_ID,
    IO,
    INDEX,
    DTYPE,
    FORMAT,
    SHAPE,
    STATS,
    FILE_PATH = 14
};
enum { COLUMNS = 15 };
/* Leading parts of a file's path: atb_dump_data/data/DEVICE_PID/COUNT. */
enum { ROOT_PARTS = 4 };

struct line {
    struct ms_str field[COLUMNS];
    char *path; /* path of the saved tensor; NULL: not saved */
};
struct side {
    const char *root;
    struct ms_arena *arena;
    struct ms_map names;
    MS_VEC(struct line) lines; /* by index of the name, in the order of the file */
    bool has_files;            /* whether tensors were saved; the first line decides for all */
    struct ms_err *err;
};

/* ---- statistic.csv --------------------------------------------------------------- */

/* Builds the name: operator "a/b" with id "1_2" becomes 1_a/2_b. Returns false when the numbers of
 * names and ids differ. */
static bool put_name(struct ms_buf *out, const struct ms_str *field)
{
    struct ms_str names = field[OP_NAME], ids = field[OP_ID], name, id;
    ms_buf_clear(out);
    for (;;) {
        bool more = ms_str_split(&names, '/', &name), has_id = ms_str_split(&ids, '_', &id);
        if (more != has_id)
            return false;
        if (!more)
            break;
        ms_buf_printf(out, "%.*s_%.*s/", MS_STR_ARG(id), MS_STR_ARG(name));
    }
    ms_buf_printf(out, "%.*s.%.*s", MS_STR_ARG(field[IO]), MS_STR_ARG(field[INDEX]));
    return true;
}

/* Returns the part of the path below the directory of statistic.csv, or MS_STR_NONE for a path that
 * leads out of it. */
static struct ms_str below_root(struct ms_str path)
{
    struct ms_str part, rest = path;
    int64_t at = -1, found;
    while ((found = ms_str_find_str(rest, MS_STR("atb_dump_data"))) >= 0) {
        at = (int64_t)(rest.p - path.p) + found;
        rest = ms_str_sub(rest, (uint32_t)found + 1, rest.n);
    }
    if (at < 0 || ms_str_find_str(path, MS_STR("..")) >= 0)
        return MS_STR_NONE;
    rest = ms_str_sub(path, (uint32_t)at, path.n);
    for (unsigned i = 0; i < ROOT_PARTS; i++) {
        if (!ms_str_split(&rest, '/', &part))
            return MS_STR_NONE;
    }
    return rest.n != 0 ? rest : MS_STR_NONE;
}

static enum ms_rc take_path(struct side *s, struct line *l, struct ms_buf *text)
{
    struct ms_str below = below_root(l->field[FILE_PATH]);
    ms_buf_clear(text);
    ms_buf_printf(text, "%s/%.*s", s->root, MS_STR_ARG(below));
    MS_TRY(ms_buf_check(text, s->err));
    l->path = ms_arena_text(s->arena, text->n + 1);
    if (l->path == NULL)
        return ms_arena_fail(s->arena, s->err);
    memcpy(l->path, ms_buf_z(text), text->n + 1);
    return MS_OK;
}

/* Adds a line. Skips lines with another number of fields, or whose names and ids differ in
 * number. */
static enum ms_rc take_line(struct side *s, const struct ms_csv *r, struct ms_buf *text)
{
    struct line l = {.path = NULL};
    bool added;
    if (r->fields.n != COLUMNS || !put_name(text, r->fields.p))
        return MS_OK;
    for (unsigned i = 0; i < COLUMNS; i++) {
        l.field[i] = ms_arena_str(s->arena, r->fields.p[i]);
        if (l.field[i].p == NULL)
            return ms_arena_fail(s->arena, s->err);
    }
    uint32_t id = ms_map_put_copy(&s->names, ms_buf_slice(text), s->arena, &added);
    struct line *slot = id == MS_MAP_NONE ? NULL : added ? ms_vec_push(&s->lines) : &s->lines.p[id];
    if (slot == NULL)
        return ms_no_memory(s->err);
    bool file = !ms_str_is(l.field[FILE_PATH], "N/A");
    if (s->names.keys.n == 1 && added)
        s->has_files = file;
    if (file)
        MS_TRY(take_path(s, &l, text));
    *slot = l;
    return MS_OK;
}

static enum ms_rc read_lines(struct side *s, struct ms_str csv)
{
    struct ms_csv r;
    struct ms_buf text = {.max = 1 << 16};
    bool more, header = true;
    enum ms_rc rc;
    ms_csv_init(&r, csv.p, csv.n);
    while ((rc = ms_csv_next(&r, &more, s->err)) == MS_OK && more) {
        rc = header ? MS_OK : take_line(s, &r, &text);
        header = false;
        if (rc != MS_OK)
            break;
    }
    ms_csv_free(&r);
    ms_buf_free(&text);
    if (rc == MS_OK && s->lines.n == 0)
        rc = ms_fail(s->err, MS_E_FORMAT, "no line of %d columns; is it one of ATB?", COLUMNS);
    return rc;
}

static enum ms_rc read_side(struct side *s, const char *root, struct ms_err *err)
{
    struct ms_file f;
    *s = (struct side){.root = root, .arena = ms_arena_new(TEXT_MAX), .err = err};
    char *path = ms_path_join(root, "statistic.csv");
    if (s->arena == NULL || path == NULL) {
        ms_free(path);
        return ms_no_memory(err);
    }
    enum ms_rc rc =
        ms_path_kind(root) == MS_KIND_DIR
            ? ms_file_map(&f, path, CSV_MAX, err)
            : ms_fail(err, MS_E_ARG, "%s: --mode atb takes directories that hold a statistic.csv",
                      root);
    if (rc == MS_OK) {
        rc = read_lines(s, (struct ms_str){f.p, (uint32_t)f.n});
        ms_file_unmap(&f);
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", path);
    }
    ms_free(path);
    return rc;
}

static void side_free(struct side *s)
{
    ms_map_free(&s->names);
    ms_vec_free(&s->lines);
    ms_arena_free(s->arena);
}

/* ---- the table --------------------------------------------------------------------- */

static const char *const common[] = {"Target Data Name",
                                     "Golden Data Name",
                                     "Target Device and PID",
                                     "Golden Device and PID",
                                     "Target Execution Count",
                                     "Golden Execution Count",
                                     "Target Data Type",
                                     "Golden Data Type",
                                     "Target Data Shape",
                                     "Golden Data Shape",
                                     NULL};
static const char *const of_stats[] = {"Max Diff",
                                       "Min Diff",
                                       "Mean Diff",
                                       "Norm Diff",
                                       "Relative Err of Max(%)",
                                       "Relative Err of Min(%)",
                                       "Relative Err of Mean(%)",
                                       "Relative Err of Norm(%)",
                                       NULL};
static const char *const of_files[] = {"Cosine",
                                       "Euc Distance",
                                       "Max Absolute Err",
                                       "Max Relative Err",
                                       "One Thousandth Err Ratio",
                                       "Five Thousandth Err Ratio",
                                       NULL};
static const char *const values[] = {"Target Max",  "Golden Max",  "Target Min",
                                     "Golden Min",  "Target Mean", "Golden Mean",
                                     "Target Norm", "Golden Norm", NULL};

/* A row of the table; NULL: no line on that side. */
struct pair {
    struct ms_str name;
    const struct line *t, *b;
};

static void put_field(struct cmp__sheet *s, const struct line *l, int field)
{
    cmp__sheet_text(s, l != NULL ? l->field[field] : MS_STR("N/A"));
}

static void put_common(struct cmp__sheet *s, const struct pair *p)
{
    static const int fields[] = {DEVICE, COUNT, DTYPE, SHAPE};
    cmp__sheet_text(s, p->t != NULL ? p->name : MS_STR("N/A"));
    cmp__sheet_text(s, p->b != NULL ? p->name : MS_STR("N/A"));
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
        put_field(s, p->t, fields[i]);
        put_field(s, p->b, fields[i]);
    }
}

/* Parses a number as float() of Python; false when it is not a number. */
static bool number_of(const struct line *l, unsigned stat, double *v)
{
    struct ms_str field = l != NULL ? l->field[STATS + stat] : MS_STR_NONE;
    return field.n != 0 && !ms_str_is(field, "N/A") && ms_csv_number(field, v);
}

struct delta {
    bool known, related; /* related: the golden value is not 0, or both are 0 */
    double diff, rel;    /* rel: in per cent */
};

static struct delta delta_of(const struct pair *p, unsigned stat)
{
    double t = 0, b = 0;
    struct delta d = {.known = number_of(p->t, stat, &t) && number_of(p->b, stat, &b)};
    d.diff = t - b;
    d.related = d.known && (d.diff == 0 || b != 0);
    d.rel = d.diff == 0 ? 0 : fabs(d.diff / b * 100);
    return d;
}

static const char *verdict_of(const struct pair *p)
{
    double t, b;
    if (p->t == NULL || p->b == NULL)
        return "";
    if (!number_of(p->t, 0, &t) || !number_of(p->b, 0, &b))
        return "";
    return (t - b) / (fmax(t, b) + 1e-10) <= 0.5 || (isnan(t) && isnan(b)) ? "Yes" : "No";
}

static void put_stats(struct cmp__sheet *s, struct cmp_sheet_sum *sum, const struct pair *p)
{
    struct delta d[PROBE_STATS];
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        d[i] = delta_of(p, i);
        if (d[i].known)
            cmp__sheet_number(s, d[i].diff);
        else
            cmp__sheet_word(s, "N/A");
    }
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (d[i].related)
            cmp__sheet_number(s, d[i].rel);
        else
            cmp__sheet_word(s, "N/A");
    }
    for (int i = 0; i < PROBE_STATS; i++) {
        put_field(s, p->t, STATS + i);
        put_field(s, p->b, STATS + i);
    }
    cmp__sheet_count(sum, verdict_of(p));
}

/* Writes a value or N/A. strict: a boolean is written as the repr of its tensor, as the official
 * tool does. */
static void put_or_none(struct cmp__sheet *s, const struct probe_tensor *t, bool there, double v,
                        bool strict)
{
    if (!there || isnan(v))
        cmp__sheet_word(s, "N/A");
    else if (t->dtype == MS_DT_BOOL && strict)
        cmp__sheet_word(s, v != 0 ? "tensor(True)" : "tensor(False)");
    else if (t->dtype == MS_DT_BOOL)
        cmp__sheet_word(s, v != 0 ? "True" : "False");
    else
        cmp__sheet_number(s, v);
}

/* Computes statistics; false for scalars and empty tensors, which have none here. */
static bool has_stats(const struct probe_tensor *t, bool open, struct ms_stats *stats)
{
    if (!open || t->count == 0 || t->ndim == 0)
        return false;
    probe_tensor_stats(t, stats);
    if (stats->nan != 0)
        stats->max = stats->min = NAN;
    return true;
}

static void put_both(struct cmp__sheet *s, const struct cmp__file_pair *p, bool strict)
{
    struct ms_stats t = {0}, b = {0};
    bool has_t = has_stats(&p->n, p->has_n, &t), has_b = has_stats(&p->b, p->has_b, &b);
    bool sums_t = has_t && p->n.dtype != MS_DT_BOOL, sums_b = has_b && p->b.dtype != MS_DT_BOOL;
    put_or_none(s, &p->n, has_t, t.max, strict);
    put_or_none(s, &p->b, has_b, b.max, strict);
    put_or_none(s, &p->n, has_t, t.min, strict);
    put_or_none(s, &p->b, has_b, b.min, strict);
    put_or_none(s, &p->n, sums_t, sums_t ? ms_stats_mean(&t) : NAN, strict);
    put_or_none(s, &p->b, sums_b, sums_b ? ms_stats_mean(&b) : NAN, strict);
    put_or_none(s, &p->n, sums_t, sums_t ? ms_stats_norm(&t) : NAN, strict);
    put_or_none(s, &p->b, sums_b, sums_b ? ms_stats_norm(&b) : NAN, strict);
}

/* Returns true for types that the official tool can read. */
static bool is_known_there(enum ms_dtype t)
{
    return t == MS_DT_F32 || t == MS_DT_F16 || t == MS_DT_BF16 || t == MS_DT_I8 || t == MS_DT_I32 ||
           t == MS_DT_I64 || t == MS_DT_BOOL;
}

static void forget_unknown(struct cmp__file_pair *f)
{
    f->has_n = f->has_n && is_known_there(f->n.dtype);
    f->has_b = f->has_b && is_known_there(f->b.dtype);
    if (!f->has_n || !f->has_b)
        f->fig.state = CMP_STATE_UNREADABLE;
}

static enum ms_rc put_files(struct cmp__sheet *s, struct cmp_sheet_sum *sum, const struct pair *p,
                            bool strict)
{
    struct cmp__file_pair f;
    struct ms_buf note = {.max = 1 << 16};
    enum ms_rc rc = cmp__file_pair_open(&f, p->t != NULL ? p->t->path : NULL,
                                        p->b != NULL ? p->b->path : NULL, false, false, s->err);
    struct cmp__file_pair shown = f;
    if (strict)
        forget_unknown(&shown);
    cmp__file_figures(s, &shown, "N/A", "N/A");
    put_both(s, &shown, strict);
    cmp__sheet_count(sum, cmp__file_pair_verdict(&f, false));
    if (rc == MS_OK && p->t != NULL && p->b != NULL && !(f.has_n && f.has_b)) {
        struct ms_str why = ms_buf_slice(&f.why);
        ms_buf_printf(&note, "%.*s: %.*s", MS_STR_ARG(p->name), (int)why.n - 1, why.p);
        rc = cmp__sheet_note(sum, &note, s->err);
    }
    cmp__file_pair_close(&f);
    ms_buf_free(&note);
    return rc;
}

static enum ms_rc put_pair(struct cmp__sheet *s, struct cmp_sheet_sum *sum, const struct pair *p,
                           bool files, bool strict)
{
    put_common(s, p);
    if (files)
        MS_TRY(put_files(s, sum, p, strict));
    else
        put_stats(s, sum, p);
    cmp__sheet_end_row(s);
    return MS_OK;
}

static const struct line *line_of(const struct side *s, struct ms_str name)
{
    uint32_t id = ms_map_get(&s->names, name);
    return id != MS_MAP_NONE ? &s->lines.p[id] : NULL;
}

/* Writes all rows: those of the target in its order, then those that only the golden side has. */
static enum ms_rc put_all(struct cmp__sheet *s, struct cmp_sheet_sum *sum, const struct side *t,
                          const struct side *b, bool strict)
{
    cmp__sheet_names(s, common);
    cmp__sheet_names(s, t->has_files ? of_files : of_stats);
    cmp__sheet_names(s, values);
    cmp__sheet_end_row(s);
    for (uint32_t i = 0; i < t->lines.n; i++) {
        struct pair p = {.name = ms_map_key(&t->names, i), .t = &t->lines.p[i]};
        p.b = line_of(b, p.name);
        if (p.b != NULL || !strict)
            MS_TRY(put_pair(s, sum, &p, t->has_files, strict));
    }
    for (uint32_t i = 0; i < b->lines.n && !strict; i++) {
        struct pair p = {.name = ms_map_key(&b->names, i), .b = &b->lines.p[i]};
        if (line_of(t, p.name) == NULL)
            MS_TRY(put_pair(s, sum, &p, t->has_files, strict));
    }
    return MS_OK;
}

static enum ms_rc compare_sides(const struct side *t, const struct side *b, const char *dir,
                                const struct cmp_atb_conf *conf, struct cmp_sheet_sum *sum,
                                struct cmp_files *files, struct ms_err *err)
{
    struct cmp__sheet s;
    struct ms_buf path = {.max = 1 << 16};
    if (t->has_files != b->has_files)
        return ms_fail(err, MS_E_ARG, "%s has tensor files, %s has statistics alone",
                       t->has_files ? t->root : b->root, t->has_files ? b->root : t->root);
    ms_buf_printf(&path, "%s/atb_%s_compare_result_%s.xlsx", dir, t->has_files ? "tensor" : "stats",
                  conf->stamp);
    enum ms_rc rc = cmp_files_add(files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = cmp__sheet_open(&s, ms_buf_z(&path), true, err);
    if (rc == MS_OK)
        rc = cmp__sheet_close(&s, put_all(&s, sum, t, b, conf->strict));
    ms_buf_free(&path);
    sum->tables += rc == MS_OK;
    return rc;
}

enum ms_rc cmp_compare_atb(const char *target, const char *golden, const char *dir,
                           const struct cmp_atb_conf *conf, struct cmp_sheet_sum *sum,
                           struct cmp_files *files, struct ms_err *err)
{
    struct side t, b = {0};
    enum ms_rc rc = read_side(&t, target, err);
    if (rc == MS_OK)
        rc = read_side(&b, golden, err);
    if (rc == MS_OK)
        rc = compare_sides(&t, &b, dir, conf, sum, files, err);
    side_free(&t);
    side_free(&b);
    return rc;
}
