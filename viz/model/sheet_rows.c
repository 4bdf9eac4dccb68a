/* SPDX-License-Identifier: MIT
 *
 * sheet_rows: see the header.
 */
#include "viz/model/sheet_rows.h"

#include "compare/write/xlsx_read.h"
#include "probe/base/arena.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <pthread.h>

enum { ROWS_MAX = 20000000, STATE_MAX = 64 };
static const size_t TEXT_MAX = (size_t)2 << 30;

struct viz_sheet {
    struct ms_file file; /* of a csv */
    struct ms_buf text;  /* of a workbook, as csv */
    struct ms_str titles[MS_CSV_COLUMNS];
    struct ms_arena *arena;
    size_t columns;
    int result; /* column of the verdict; -1: none */
    const char *p, *end;
    MS_VEC(const char *) row; /* where each begins */
    pthread_mutex_t lock;     /* guards the rest: what was asked for last */
    char *asked_text;
    struct viz_sheet_asked asked;
    bool has_index;
    MS_VEC(uint32_t) index;
};

/* ---- reading the file ------------------------------------------------------------------ */

static enum ms_rc take_workbook_row(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    struct viz_sheet *s = ctx;
    for (size_t i = 0; i < row->n && row->sheet == 0; i++) {
        if (i != 0)
            ms_buf_putc(&s->text, ',');
        ms_csv_put(&s->text, row->cells[i].text, MS_CSV_OWN);
    }
    if (row->sheet == 0)
        ms_buf_putc(&s->text, '\n');
    return ms_buf_check(&s->text, err);
}

static enum ms_rc use_text(struct viz_sheet *s)
{
    s->p = s->text.p;
    s->end = s->p + s->text.n;
    return MS_OK;
}

static enum ms_rc load(struct viz_sheet *s, const char *path, struct ms_err *err)
{
    if (path == NULL) /* the text is there */
        return use_text(s);
    if (ms_str_ends(ms_str_of(path), MS_STR(".xlsx"))) {
        s->text.max = TEXT_MAX;
        MS_TRY(cmp_xlsx_read(path, take_workbook_row, s, err));
        return use_text(s);
    }
    MS_TRY(ms_file_map(&s->file, path, TEXT_MAX, err));
    s->p = s->file.p;
    s->end = s->p + s->file.n;
    return MS_OK;
}

static enum ms_rc take_titles(struct viz_sheet *s, const struct ms_csv *r, struct ms_err *err)
{
    s->columns = r->fields.n < MS_CSV_COLUMNS ? r->fields.n : MS_CSV_COLUMNS;
    s->result = -1;
    for (size_t i = 0; i < s->columns; i++) {
        s->titles[i] = ms_arena_str(s->arena, r->fields.p[i]);
        if (s->titles[i].p == NULL)
            return ms_arena_fail(s->arena, err);
        if (ms_str_is(s->titles[i], "Result") || ms_str_is(s->titles[i], "Accuracy Reached or Not"))
            s->result = (int)i;
    }
    return MS_OK;
}

/* Notes where every row begins, and checks all of them. */
static enum ms_rc find_rows(struct viz_sheet *s, struct ms_err *err)
{
    struct ms_csv r;
    bool more = true;
    ms_csv_init(&r, s->p, (size_t)(s->end - s->p));
    enum ms_rc rc = ms_csv_next(&r, &more, err);
    if (rc == MS_OK && !more)
        rc = ms_fail(err, MS_E_FORMAT, "the table is empty");
    if (rc == MS_OK)
        rc = take_titles(s, &r, err);
    while (rc == MS_OK && more) {
        const char *at = r.at;
        rc = ms_csv_next(&r, &more, err);
        if (rc != MS_OK || !more)
            break;
        const char **slot = s->row.n < ROWS_MAX ? ms_vec_push(&s->row) : NULL;
        if (slot == NULL)
            rc = ms_no_memory(err);
        else
            *slot = at;
    }
    ms_csv_free(&r);
    return rc;
}

/* Opens a file, or the text where path is NULL. */
static enum ms_rc open_sheet(struct viz_sheet **out, const char *path, struct ms_buf text,
                             struct ms_err *err)
{
    struct viz_sheet *s = ms_calloc(1, sizeof *s);
    *out = s;
    if (s == NULL) {
        ms_buf_free(&text);
        return ms_no_memory(err);
    }
    s->text = text;
    pthread_mutex_init(&s->lock, NULL);
    s->arena = ms_arena_new((size_t)16 << 20);
    enum ms_rc rc = s->arena != NULL ? load(s, path, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = find_rows(s, err);
    if (rc != MS_OK) {
        viz_sheet_free(s);
        *out = NULL;
    }
    return rc;
}

enum ms_rc viz_sheet_open(struct viz_sheet **s, const char *path, struct ms_err *err)
{
    return open_sheet(s, path, (struct ms_buf){.max = 0}, err);
}

enum ms_rc viz_sheet_take(struct viz_sheet **s, struct ms_buf *csv, struct ms_err *err)
{
    const struct ms_buf text = *csv;
    *csv = (struct ms_buf){.max = 0};
    return open_sheet(s, NULL, text, err);
}

void viz_sheet_free(struct viz_sheet *s)
{
    if (s == NULL)
        return;
    if (s->file.p != NULL)
        ms_file_unmap(&s->file);
    ms_buf_free(&s->text);
    ms_arena_free(s->arena);
    ms_vec_free(&s->row);
    ms_vec_free(&s->index);
    ms_free(s->asked_text);
    pthread_mutex_destroy(&s->lock);
    ms_free(s);
}

size_t viz_sheet_rows(const struct viz_sheet *s)
{
    return s->row.n;
}

size_t viz_sheet_columns(const struct viz_sheet *s)
{
    return s->columns;
}

struct ms_str viz_sheet_title(const struct viz_sheet *s, size_t column)
{
    return s->titles[column];
}

/* ---- rows -------------------------------------------------------------------------- */

/* Parses a row, which find_rows has checked. */
static bool parse_row(const struct viz_sheet *s, size_t i, struct ms_csv *r)
{
    bool more = false;
    const char *end = i + 1 < s->row.n ? s->row.p[i + 1] : s->end;
    ms_csv_init(r, s->row.p[i], (size_t)(end - s->row.p[i]));
    return ms_csv_next(r, &more, NULL) == MS_OK && more;
}

static const char *state_of(const struct viz_sheet *s, const struct ms_csv *r)
{
    if (s->result < 0 || (size_t)s->result >= r->fields.n)
        return "none";
    const struct ms_str v = ms_str_sub(r->fields.p[s->result], 0, STATE_MAX);
    if (ms_str_has_folded(v, MS_STR("error")) || ms_str_has_folded(v, MS_STR("different")) ||
        (v.n == 2 && ms_str_has_folded(v, MS_STR("no"))))
        return "error";
    if (ms_str_has_folded(v, MS_STR("warn")))
        return "warning";
    return ms_str_has_folded(v, MS_STR("pass")) || ms_str_has_folded(v, MS_STR("yes")) ? "pass"
                                                                                       : "none";
}

/* A row that is sorted by a number, else by its text. */
struct keyed {
    double number;
    struct ms_str text;
    uint32_t row;
    bool descending;
};

static int by_key(const void *pa, const void *pb)
{
    const struct keyed *a = pa, *b = pb;
    const int sign = a->descending ? -1 : 1;
    if (isnan(a->number) != isnan(b->number)) /* what is no number comes last */
        return isnan(a->number) ? 1 : -1;
    if (!isnan(a->number) && a->number != b->number)
        return a->number < b->number ? -sign : sign;
    const int c = isnan(a->number) ? ms_str_cmp(a->text, b->text) : 0;
    return c != 0 ? sign * c : a->row < b->row ? -1 : a->row > b->row;
}

/* Reads what a row is sorted by: "12.5%" counts as the number 12.5. */
static void take_key(const struct viz_sheet_asked *a, const struct ms_csv *r, struct keyed *k)
{
    struct ms_str v = (size_t)a->column < r->fields.n ? r->fields.p[a->column] : MS_STR("");
    k->text = v;
    if (v.n != 0 && v.p[v.n - 1] == '%')
        v.n--;
    if (v.n == 0 || !ms_csv_number(v, &k->number))
        k->number = NAN;
}

/* Tells whether the text of a row has the text that is asked for; the row is not parsed for that. */
static bool has_text(const struct viz_sheet *s, const struct viz_sheet_asked *a, size_t i)
{
    const char *end = i + 1 < s->row.n ? s->row.p[i + 1] : s->end;
    const struct ms_str line = {s->row.p[i], (uint32_t)(end - s->row.p[i])};
    return a->text.n == 0 || ms_str_has_folded(line, a->text);
}

static bool is_failing(const struct viz_sheet *s, const struct ms_csv *r)
{
    const char *state = state_of(s, r);
    return strcmp(state, "error") == 0 || strcmp(state, "warning") == 0;
}

/* Tells whether a row is asked for and reads its key; the text of the key is kept in the arena. */
static enum ms_rc see_row(const struct viz_sheet *s, const struct viz_sheet_asked *a, size_t i,
                          struct ms_arena *arena, bool *is, struct keyed *k, struct ms_err *err)
{
    struct ms_csv r;
    *k = (struct keyed){NAN, MS_STR(""), (uint32_t)i, a->descending};
    *is = has_text(s, a, i);
    if (!*is || (a->column < 0 && !a->failing))
        return MS_OK;
    *is = parse_row(s, i, &r) && (!a->failing || is_failing(s, &r));
    if (*is && a->column >= 0)
        take_key(a, &r, k);
    if (isnan(k->number) && k->text.n != 0)
        k->text = ms_arena_str(arena, k->text);
    ms_csv_free(&r);
    return k->text.p != NULL ? MS_OK : ms_no_memory(err);
}

typedef MS_VEC(struct keyed) keyed_list;

/* Collects the rows that are asked for. */
static enum ms_rc collect(struct viz_sheet *s, const struct viz_sheet_asked *a, keyed_list *list,
                          struct ms_arena *arena, struct ms_err *err)
{
    for (size_t i = 0; i < s->row.n; i++) {
        struct keyed k;
        bool is;
        MS_TRY(see_row(s, a, i, arena, &is, &k, err));
        struct keyed *slot = is ? ms_vec_push(list) : NULL;
        if (is && slot == NULL)
            return ms_no_memory(err);
        if (is)
            *slot = k;
    }
    return MS_OK;
}

static enum ms_rc make_index(struct viz_sheet *s, const struct viz_sheet_asked *a,
                             struct ms_err *err)
{
    keyed_list list = {.n = 0};
    struct ms_arena *arena = ms_arena_new((size_t)1 << 30);
    s->has_index = false;
    s->index.n = 0;
    enum ms_rc rc = arena != NULL ? collect(s, a, &list, arena, err) : ms_no_memory(err);
    if (rc == MS_OK && a->column >= 0)
        ms_vec_sort(&list, by_key);
    if (rc == MS_OK && !ms_vec_reserve(&s->index, list.n))
        rc = ms_no_memory(err);
    for (size_t i = 0; rc == MS_OK && i < list.n; i++)
        s->index.p[s->index.n++] = list.p[i].row;
    ms_vec_free(&list);
    ms_arena_free(arena);
    ms_free(s->asked_text);
    s->asked_text = ms_str_dup(a->text);
    s->asked = *a;
    s->has_index = rc == MS_OK && s->asked_text != NULL;
    return rc;
}

static bool is_asked_again(const struct viz_sheet *s, const struct viz_sheet_asked *a)
{
    return s->has_index && s->asked.column == a->column && s->asked.failing == a->failing &&
           s->asked.descending == a->descending && ms_str_is(a->text, s->asked_text);
}

static enum ms_rc read_rows(struct viz_sheet *s, size_t first, size_t limit, viz_sheet_fn fn,
                            void *ctx, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (size_t i = first; i < s->index.n && i - first < limit && rc == MS_OK; i++) {
        struct ms_csv r;
        if (parse_row(s, s->index.p[i], &r))
            rc = fn(ctx, s->index.p[i], state_of(s, &r), r.fields.p, r.fields.n, err);
        ms_csv_free(&r);
    }
    return rc;
}

enum ms_rc viz_sheet_read(struct viz_sheet *s, const struct viz_sheet_asked *a, size_t first,
                          size_t limit, size_t *total, viz_sheet_fn fn, void *ctx,
                          struct ms_err *err)
{
    pthread_mutex_lock(&s->lock);
    enum ms_rc rc = is_asked_again(s, a) ? MS_OK : make_index(s, a, err);
    *total = s->index.n;
    if (rc == MS_OK)
        rc = read_rows(s, first, limit, fn, ctx, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
