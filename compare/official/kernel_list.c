/* SPDX-License-Identifier: MIT
 *
 * kernel_list: lists the kernels in a dump of static graphs.
 */
#include "compare/official/kernel_list.h"

#include "probe/base/csv.h"
#include "probe/base/io.h"
#include "probe/base/map.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define TEXT_MAX ((size_t)1 << 32)
#define CSV_MAX  ((size_t)1 << 30)
enum { DEPTH_MAX = 32 };

/* ---- names ---------------------------------------------------------------- */

/* Format: type.op.task.stream.time[.more].(input|output).i.slot.format.npy */
bool cmp__kernel_name(struct ms_str name, struct ms_buf *key, uint64_t *time)
{
    enum { PARTS_MAX = 32 };
    struct ms_str part[PARTS_MAX];
    unsigned n = 0, io = 5;
    while (n < PARTS_MAX && ms_str_split(&name, '.', &part[n]))
        n++;
    if (n < 9 || n == PARTS_MAX || !ms_str_is(part[n - 1], "npy") || !ms_str_u64(part[4], time))
        return false;
    while (io < n && ms_str_all_digits(part[io]))
        io++;
    if (io >= n ||
        (!ms_str_starts(part[io], MS_STR("input")) && !ms_str_starts(part[io], MS_STR("output"))))
        return false;
    ms_buf_clear(key);
    ms_buf_printf(key, "%.*s.%.*s.%.*s", MS_STR_ARG(part[1]), MS_STR_ARG(part[2]),
                  MS_STR_ARG(part[io]));
    /* the name ends with slot, format, npy; the slot may be a number like the part before */
    unsigned slot = n - 3;
    for (io++; io < slot && ms_str_all_digits(part[io]); io++)
        ms_buf_printf(key, ".%.*s", MS_STR_ARG(part[io]));
    if (io != slot)
        return false;
    ms_buf_printf(key, ".%.*s", MS_STR_ARG(part[slot]));
    return key->bad == MS_OK;
}

/* ---- a directory of one step -------------------------------------------------- */

struct finder {
    struct cmp__kernel_side *s;
    const char *ranks, *steps;
    struct ms_buf key;
    struct ms_err *err;
};

static struct cmp__kernel *add(struct finder *f, struct cmp__kernel_place *p, const char *path,
                               uint64_t time)
{
    struct cmp__kernel *k = ms_vec_push(&p->list);
    if (k == NULL)
        return NULL;
    *k = (struct cmp__kernel){.key = ms_arena_str(f->s->arena, ms_buf_slice(&f->key)),
                              .time = time,
                              .listed = (uint32_t)p->list.n,
                              .path = path};
    return k->key.p != NULL ? k : NULL;
}

/* Callback for each row of a csv file in the directory; the first row is the header. */
typedef enum ms_rc (*row_fn)(struct finder *f, void *into, const struct ms_str *fields, size_t n,
                             bool header);

static enum ms_rc read_csv(struct finder *f, const char *path, row_fn visit, void *into)
{
    struct ms_file file;
    struct ms_csv r;
    bool more, header = true;
    MS_TRY(ms_file_map(&file, path, CSV_MAX, f->err));
    ms_csv_init(&r, file.p, file.n);
    enum ms_rc rc;
    while ((rc = ms_csv_next(&r, &more, f->err)) == MS_OK && more) {
        rc = visit(f, into, r.fields.p, r.fields.n, header);
        header = false;
        if (rc != MS_OK) {
            ms_fail(f->err, rc, "line %u", r.line);
            break;
        }
    }
    ms_csv_free(&r);
    ms_file_unmap(&file);
    return rc != MS_OK ? ms_err_wrap(f->err, "%s", path), rc : MS_OK;
}

/* Maps shortened file names to the full names. */
struct long_names {
    struct ms_map short_names;
    MS_VEC(struct ms_str) list;
};

static enum ms_rc take_name(struct finder *f, void *into, const struct ms_str *fields, size_t n,
                            bool header)
{
    struct long_names *names = into;
    bool added;
    if (n < 2 || header)
        return MS_OK;
    uint32_t id = ms_map_put_copy(&names->short_names, fields[0], f->s->arena, &added);
    struct ms_str *slot = id == MS_MAP_NONE ? NULL
                          : added           ? ms_vec_push(&names->list)
                                            : &names->list.p[id];
    if (slot == NULL)
        return ms_no_memory(f->err);
    *slot = ms_arena_str(f->s->arena, fields[1]);
    return slot->p != NULL ? MS_OK : ms_arena_fail(f->s->arena, f->err);
}

/* Parses a number as the official tool does, which also accepts null, False and True. */
static double number_of(struct ms_str field)
{
    double v;
    if (ms_str_is(field, "null") || ms_str_is(field, "False"))
        return 0;
    if (ms_str_is(field, "True"))
        return 1;
    return ms_csv_number(field, &v) ? (double)(float)v : NAN;
}

/* Columns of statistic.csv. */
enum { OP, TASK, TIME, IO, SLOT, DTYPE, SHAPE, MAX, MIN, MEAN, NORM, COLUMNS, ABSENT = -1 };

struct lines {
    struct cmp__kernel_place *place;
    const char *path;
    int column[COLUMNS]; /* index of the column, or ABSENT */
};

/* Sets the default columns, for files whose first line is not a header: OpType, OpName, TaskId,
 * StreamId, TimeStamp, IO, Slot, DataSize, DataType, Shape, MaxValue, MinValue, [AvgValue,]
 * L2NormValue. */
static void take_places(struct lines *l, size_t n)
{
    static const int usual[COLUMNS] = {1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13};
    for (int i = 0; i < COLUMNS; i++)
        l->column[i] = usual[i];
    if (n < 14) {
        l->column[MEAN] = ABSENT;
        l->column[NORM] = 12;
    }
}

/* Compares a header field with a name in lower case, ignoring other characters: "L2Norm Value" is
 * l2normvalue. */
static bool is_name(struct ms_str field, const char *name)
{
    for (uint32_t i = 0; i < field.n; i++) {
        char c = field.p[i] >= 'A' && field.p[i] <= 'Z' ? (char)(field.p[i] + 32) : field.p[i];
        bool counts = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (counts && c != *name++)
            return false;
    }
    return *name == 0;
}

static enum ms_rc take_header(struct lines *l, const struct ms_str *fields, size_t n,
                              struct ms_err *err)
{
    static const char *const names[COLUMNS][2] = {
        {"opname", "name"},        {"taskid", "task"},          {"timestamp", "time"},
        {"io", "inputoutput"},     {"slot", "index"},           {"datatype", "dtype"},
        {"shape", "datashape"},    {"maxvalue", "max"},         {"minvalue", "min"},
        {"avgvalue", "meanvalue"}, {"l2normvalue", "normvalue"}};
    unsigned found = 0;
    for (int i = 0; i < COLUMNS; i++) {
        l->column[i] = ABSENT;
        for (size_t k = 0; k < n && l->column[i] == ABSENT; k++) {
            if (is_name(fields[k], names[i][0]) || is_name(fields[k], names[i][1]))
                l->column[i] = (int)k;
        }
        found += i < MAX && l->column[i] != ABSENT;
    }
    if (found == MAX)
        return MS_OK;
    if (n < 13)
        return ms_fail(err, MS_E_FORMAT, "expected 13 columns or more");
    take_places(l, n);
    return MS_OK;
}

static int last_column(const struct lines *l)
{
    int last = 0;
    for (int i = 0; i < COLUMNS; i++)
        last = l->column[i] > last ? l->column[i] : last;
    return last;
}

static struct ms_str field_of(const struct lines *l, const struct ms_str *fields, size_t n, int i)
{
    return l->column[i] != ABSENT && (size_t)l->column[i] < n ? fields[l->column[i]] : MS_STR("");
}

static enum ms_rc take_line(struct finder *f, void *into, const struct ms_str *fields, size_t n,
                            bool header)
{
    static const int stats[PROBE_STATS] = {[PROBE_STAT_MAX] = MAX,
                                           [PROBE_STAT_MIN] = MIN,
                                           [PROBE_STAT_MEAN] = MEAN,
                                           [PROBE_STAT_NORM] = NORM};
    struct lines *l = into;
    uint64_t time;
    if (header)
        return take_header(l, fields, n, f->err);
    if (n <= (size_t)last_column(l))
        return ms_fail(f->err, MS_E_FORMAT, "expected %d columns or more", last_column(l) + 1);
    if (!ms_str_u64(field_of(l, fields, n, TIME), &time))
        return ms_fail(f->err, MS_E_FORMAT, "'%.*s' is no time",
                       MS_STR_ARG(field_of(l, fields, n, TIME)));
    ms_buf_clear(&f->key);
    for (int i = OP; i <= SLOT; i++) {
        if (i != TIME)
            ms_buf_printf(&f->key, "%s%.*s", i != OP ? "." : "",
                          MS_STR_ARG(field_of(l, fields, n, i)));
    }
    struct cmp__kernel *k = add(f, l->place, l->path, time);
    if (k == NULL)
        return ms_no_memory(f->err);
    k->dtype = ms_arena_str(f->s->arena, field_of(l, fields, n, DTYPE));
    k->shape = ms_arena_str(f->s->arena, field_of(l, fields, n, SHAPE));
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        bool there = l->column[stats[i]] != ABSENT;
        k->stat[i] = there ? number_of(field_of(l, fields, n, stats[i])) : (double)NAN;
    }
    return k->dtype.p != NULL && k->shape.p != NULL ? MS_OK : ms_no_memory(f->err);
}

static enum ms_rc add_file(struct finder *f, struct cmp__kernel_place *p, const char *dir,
                           struct ms_str name, const struct long_names *names)
{
    uint64_t time;
    uint32_t id = ms_map_get(&names->short_names, name);
    if (!cmp__kernel_name(id != MS_MAP_NONE ? names->list.p[id] : name, &f->key, &time))
        return MS_OK;
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_printf(&path, "%s/%.*s", dir, MS_STR_ARG(name));
    struct ms_str kept = ms_arena_str(f->s->arena, ms_buf_slice(&path));
    ms_buf_free(&path);
    struct cmp__kernel *k = kept.p != NULL ? add(f, p, kept.p, time) : NULL;
    if (k == NULL)
        return ms_no_memory(f->err);
    k->is_file = true;
    return MS_OK;
}

static enum ms_rc add_files(struct finder *f, struct cmp__kernel_place *p, const char *dir,
                            const struct ms_dir *d)
{
    struct long_names names = {0};
    char *mapping = ms_path_join(dir, "mapping.csv");
    enum ms_rc rc = mapping != NULL ? MS_OK : ms_no_memory(f->err);
    if (rc == MS_OK && ms_path_kind(mapping) == MS_KIND_FILE)
        rc = read_csv(f, mapping, take_name, &names);
    for (size_t i = 0; i < d->names.n && rc == MS_OK; i++) {
        if (ms_str_ends(d->names.p[i], MS_STR(".npy")))
            rc = add_file(f, p, dir, d->names.p[i], &names);
    }
    ms_free(mapping);
    ms_map_free(&names.short_names);
    ms_vec_free(&names.list);
    return rc;
}

static enum ms_rc add_statistics(struct finder *f, struct cmp__kernel_place *p, const char *dir)
{
    char *path = ms_path_join(dir, "statistic.csv");
    struct ms_str kept = path != NULL ? ms_arena_str(f->s->arena, ms_str_of(path)) : MS_STR_NONE;
    ms_free(path);
    if (kept.p == NULL)
        return ms_no_memory(f->err);
    if (ms_path_kind(kept.p) != MS_KIND_FILE)
        return MS_OK;
    struct lines lines = {.place = p, .path = kept.p};
    return read_csv(f, kept.p, take_line, &lines);
}

/* ---- the tree ------------------------------------------------------------------- */

/* Returns the nth part of the path from its end, counted from 1. */
static struct ms_str part_of(struct ms_str path, unsigned nth)
{
    struct ms_str last = MS_STR("");
    for (; nth > 0; nth--) {
        int64_t slash = ms_str_rfind(path, '/');
        last = ms_str_sub(path, (uint32_t)(slash + 1), path.n);
        path = ms_str_sub(path, 0, slash > 0 ? (uint32_t)slash : 0);
    }
    return last;
}

static int64_t number_in(struct ms_str part)
{
    uint64_t v;
    return ms_str_u64(part, &v) && v < INT32_MAX ? (int64_t)v : -1;
}

static int64_t rank_of(struct ms_str path)
{
    struct ms_str fourth = part_of(path, 4), third = part_of(path, 3);
    int64_t line = ms_str_rfind(fourth, '_');
    if (ms_str_find_str(path, MS_STR("rank_")) >= 0)
        return number_in(ms_str_sub(fourth, (uint32_t)(line + 1), fourth.n));
    int64_t rank = number_in(fourth);
    return rank >= 0 ? rank : number_in(third);
}

static bool is_asked_for(const char *list, int64_t number)
{
    struct ms_str rest = ms_str_of(list != NULL ? list : ""), part;
    uint64_t v;
    if (rest.n == 0)
        return true;
    while (ms_str_split(&rest, ',', &part)) {
        while (part.n != 0 && part.p[0] == ' ')
            part = ms_str_sub(part, 1, part.n);
        if (ms_str_u64(part, &v) && (int64_t)v == number)
            return true;
    }
    return false;
}

static struct cmp__kernel_place *place_of(struct finder *f, int64_t rank, int64_t step)
{
    for (size_t i = 0; i < f->s->places.n; i++) {
        struct cmp__kernel_place *p = &f->s->places.p[i];
        if (p->rank == rank && p->step == step)
            return p;
    }
    struct cmp__kernel_place *p = ms_vec_push(&f->s->places);
    if (p != NULL)
        *p = (struct cmp__kernel_place){.rank = rank, .step = step};
    return p;
}

static enum ms_rc take_leaf(struct finder *f, const char *dir, const struct ms_dir *d)
{
    struct ms_str path = ms_str_of(dir);
    int64_t rank = rank_of(path), step = number_in(part_of(path, 1));
    if (rank < 0 || step < 0 || !is_asked_for(f->ranks, rank) || !is_asked_for(f->steps, step))
        return MS_OK;
    struct cmp__kernel_place *p = place_of(f, rank, step);
    if (p == NULL)
        return ms_no_memory(f->err);
    size_t before = p->list.n;
    MS_TRY(add_files(f, p, dir, d));
    return p->list.n == before ? add_statistics(f, p, dir) : MS_OK;
}

static enum ms_rc walk(struct finder *f, const char *dir, unsigned depth)
{
    struct ms_dir d;
    bool leaf = true;
    if (depth > DEPTH_MAX)
        return ms_fail(f->err, MS_E_LIMIT, "%s: more than %d directories deep", dir, DEPTH_MAX);
    MS_TRY(ms_dir_list(&d, dir, f->err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++) {
        char *path = ms_path_join(dir, d.names.p[i].p);
        if (path == NULL)
            rc = ms_no_memory(f->err);
        else if (ms_path_kind(path) == MS_KIND_DIR) {
            leaf = false;
            rc = walk(f, path, depth + 1);
        }
        ms_free(path);
    }
    if (rc == MS_OK && leaf)
        rc = take_leaf(f, dir, &d);
    ms_dir_free(&d);
    return rc;
}

/* ---- order ------------------------------------------------------------------------ */

static int by_key(const void *a, const void *b)
{
    const struct cmp__kernel *x = a, *y = b;
    int order = ms_str_cmp(x->key, y->key);
    return order != 0 ? order : (x->time > y->time) - (x->time < y->time);
}

static int by_rank(const void *a, const void *b)
{
    const struct cmp__kernel_place *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->step > y->step) - (x->step < y->step);
}

static void put_in_order(struct cmp__kernel_side *s)
{
    if (s->places.n != 0)
        qsort(s->places.p, s->places.n, sizeof *s->places.p, by_rank);
    for (size_t i = 0; i < s->places.n; i++) {
        struct cmp__kernel_place *p = &s->places.p[i];
        if (p->list.n != 0)
            qsort(p->list.p, p->list.n, sizeof *p->list.p, by_key);
        for (size_t k = 1; k < p->list.n; k++) {
            bool same = ms_str_eq(p->list.p[k].key, p->list.p[k - 1].key);
            p->list.p[k].nth = same ? p->list.p[k - 1].nth + 1 : 0;
        }
    }
}

enum ms_rc cmp__kernels_find(struct cmp__kernel_side *s, const char *root, const char *ranks,
                             const char *steps, struct ms_err *err)
{
    *s = (struct cmp__kernel_side){.arena = ms_arena_new(TEXT_MAX)};
    struct finder f = {s, ranks, steps, {.max = 1 << 16}, err};
    char whole[PATH_MAX];
    enum ms_rc rc = MS_OK;
    if (s->arena == NULL)
        rc = ms_no_memory(err);
    else if (realpath(root, whole) == NULL)
        rc = ms_fail_sys(err, "%s", root);
    if (rc == MS_OK)
        rc = walk(&f, whole, 0);
    ms_buf_free(&f.key);
    put_in_order(s);
    if (rc == MS_OK && s->places.n == 0)
        rc = ms_fail(err, MS_E_NOTFOUND,
                     "%s: no kernels of a rank and step that are asked for; directories end in "
                     "RANK/NET/GRAPH/STEP",
                     root);
    return rc;
}

void cmp__kernels_free(struct cmp__kernel_side *s)
{
    for (size_t i = 0; i < s->places.n; i++)
        ms_vec_free(&s->places.p[i].list);
    ms_vec_free(&s->places);
    ms_arena_free(s->arena);
    *s = (struct cmp__kernel_side){0};
}
