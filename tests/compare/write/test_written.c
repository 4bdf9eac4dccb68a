/* SPDX-License-Identifier: MIT
 *
 * written: drawn comparisons.  A workbook has the cells of the csv, the csv has what the comparison
 * shows, a summary is what is counted again, and the tables of suspects are what was found.
 */
#include "tests/support/cmp_fixture.h"
#include "tests/support/csv_table.h"

#include "compare/source/source.h"
#include "compare/write/out.h"
#include "compare/write/out_table_int.h"
#include "compare/write/table.h"

#include <math.h>

enum { CASES = 40, OPS = 12 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- drawn pairs --------------------------------------------------------------------------------- */

static void put_number(struct ms_buf *b, const char *key, double v)
{
    ms_buf_printf(b, ",\"%s\":", key);
    if (below(40) == 0)
        ms_buf_puts(b, below(2) == 0 ? "NaN" : below(2) == 0 ? "Infinity" : "-Infinity");
    else
        ms_buf_printf(b, "%.17g", v);
}

static void put_leaf(struct ms_buf *b, double v, bool md5)
{
    static const char *const scalars[] = {
        "{\"type\":\"int\",\"value\":3}", "{\"type\":\"str\",\"value\":\"a,b\\n\\\"c\\\"\"}",
        "{\"type\":\"bool\",\"value\":true}", "{\"type\":\"float\",\"value\":-0.25}"};
    if (below(5) == 0) {
        ms_buf_puts(b, scalars[below(4)]);
        return;
    }
    ms_buf_puts(b, "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,3]");
    put_number(b, "Max", v);
    put_number(b, "Min", -v);
    put_number(b, "Mean", v / 3);
    put_number(b, "Norm", 2 * v);
    if (md5)
        ms_buf_printf(b, ",\"md5\":\"%08x\"", (unsigned)(v * 1000));
    ms_buf_puts(b, below(3) == 0 ? ",\"requires_grad\":true}" : ",\"requires_grad\":false}");
}

static void put_op(struct ms_buf *b, unsigned i, bool differs, bool md5)
{
    ms_buf_printf(b, "%s\n\"%s.op%u.0.%s\":{\"input_args\":[", b->n != 0 ? "," : "",
                  i % 3 == 0 ? "Torch" : "Functional", i, i % 4 == 3 ? "backward" : "forward");
    const uint32_t ins = 1 + below(3), outs = 1 + below(2);
    for (uint32_t k = 0; k < ins + outs; k++) {
        ms_buf_puts(b, k == 0 ? "" : k == ins ? "],\"output\":[" : ",");
        put_leaf(b, 1.5 + i + (differs && below(2) == 0 ? (double)below(1000) / 100 : 0), md5);
    }
    ms_buf_puts(b, "]}");
}

/* Sides have the operators in common but for one in six. */
static void draw_side(struct fixture *f, char side, const char *task, bool differs)
{
    struct ms_buf text = {.max = 1 << 20}, stack = {.max = 1 << 16};
    for (unsigned i = 0; i < OPS; i++) {
        if (below(6) == 0)
            continue;
        put_op(&text, i, differs, strcmp(task, "md5") == 0);
        ms_buf_printf(&stack, "%s\"%s.op%u.0.%s\":[\"File a.py, line %u, in f, \\n x = 1\"]",
                      stack.n != 0 ? "," : "", i % 3 == 0 ? "Torch" : "Functional", i,
                      i % 4 == 3 ? "backward" : "forward", i);
    }
    fixture_dump(f, side, task, "pytorch", ms_buf_z(&text));
    if (side == 't' && below(2) == 0) {
        struct ms_buf all = {.max = 1 << 16};
        ms_buf_printf(&all, "{%s}", ms_buf_z(&stack));
        fixture_write(f, "t/stack.json", ms_buf_z(&all));
        ms_buf_free(&all);
    }
    ms_buf_free(&text);
    ms_buf_free(&stack);
}

static void draw_pair(struct fixture *f, uint64_t seed)
{
    const char *task = seed % 5 == 0 ? "md5" : "statistics";
    fixture_init(f);
    state = seed;
    f->conf.ext = seed % 2 == 0;
    f->conf.matching = CMP_MATCH_EXACT;
    draw_side(f, 't', task, true);
    draw_side(f, 'b', task, false);
    fixture_open(f);
}

/* ---- tables ---------------------------------------------------------------------------------------- */

/* In csv an infinity has a space before it, and what a spreadsheet would take as a formula a quote. */
static bool is_same_cell(const char *csv, const char *book, double slack)
{
    char *end, *stop;
    csv += csv[0] == ' ' || (csv[0] == '\'' && book[0] != '\'');
    const double a = strtod(csv, &end), b = strtod(book, &stop);
    if (*csv != 0 && *end == 0 && *book != 0 && *stop == 0)
        return a == b || fabs(a - b) <= slack * fabs(a) || (isnan(a) && isnan(b));
    if (strcmp(csv, "True") == 0 || strcmp(csv, "False") == 0)
        return strcmp(book, csv) == 0 || atoi(book) == (csv[0] == 'T') ||
               strcasecmp(csv, book) == 0;
    return strcmp(csv, book) == 0;
}

static void check_same(const struct table_text *csv, const struct table_text *book, double slack)
{
    ck_assert_uint_eq(csv->n, book->n);
    for (size_t i = 0; i < csv->n; i++) {
        for (unsigned k = 0; k < csv->line[i].n; k++) {
            const char *want = csv->line[i].cell[k];
            const char *have = k < book->line[i].n ? book->line[i].cell[k] : "";
            ck_assert_msg(is_same_cell(want, have, slack), "line %zu, %s: '%s', '%s'", i,
                          csv->line[0].cell[k], want, have);
        }
    }
}

/* The cell of a line in a column. */
static const char *cell_of(const struct table_text *t, size_t line, const char *column)
{
    for (unsigned k = 0; k < t->line[0].n; k++) {
        if (strcmp(t->line[0].cell[k], column) == 0)
            return t->line[line].cell[k];
    }
    ck_abort_msg("no column %s", column);
    return NULL;
}

static void check_value(const struct table_text *t, size_t line, const char *column,
                        const struct cmp_value *v)
{
    const char *cell = cell_of(t, line, column);
    if (v->kind == CMP_VALUE_NUMBER)
        ck_assert_msg(strtod(cell, NULL) == v->v, "%s: %s", column, cell);
    else if (v->kind == CMP_VALUE_INF || v->kind == CMP_VALUE_NINF)
        ck_assert_str_eq(cell, v->kind == CMP_VALUE_INF ? " inf" : " -inf");
    else
        ck_assert_msg(strlen(cell) == v->text.n && memcmp(cell, v->text.p, v->text.n) == 0,
                      "%s: %s", column, cell);
}

static void check_text(const struct table_text *t, size_t line, const char *column, struct ms_str s)
{
    const char *cell = cell_of(t, line, column);
    ck_assert_msg(ms_str_is(s, cell), "%s: '%s', not '%.*s'", column, cell, MS_STR_ARG(s));
}

static void check_deltas(const struct table_text *t, size_t line, const struct cmp_row *row)
{
    static const char *const names[][2] = {{"Max diff", "MaxRelativeErr"},
                                           {"Min diff", "MinRelativeErr"},
                                           {"Mean diff", "MeanRelativeErr"},
                                           {"L2norm diff", "NormRelativeErr"}};
    for (int i = 0; i < PROBE_STATS; i++) {
        check_text(t, line, names[i][0], row->delta[i].diff);
        check_text(t, line, names[i][1], row->delta[i].rel);
    }
}

static void check_statistics(const struct table_text *t, size_t line, const struct cmp_row *row)
{
    static const char *const names[] = {"max", "min", "mean", "l2norm"};
    for (int i = 0; i < PROBE_STATS; i++) {
        char column[32];
        snprintf(column, sizeof column, "NPU %s", names[i]);
        check_value(t, line, column, &row->t.stat[i]);
        snprintf(column, sizeof column, "Bench %s", names[i]);
        check_value(t, line, column, &row->b.stat[i]);
    }
}

/* Notes are a list of JSON, of the texts in their order. */
static void check_notes(const struct table_text *t, size_t line, uint32_t notes)
{
    char want[2048] = "[", *at = want + 1;
    for (unsigned i = 0; i < CMP_NOTES; i++) {
        if ((notes >> i & 1) != 0)
            at += sprintf(at, "%s\"%s\"", at != want + 1 ? ", " : "", cmp_note_texts[i]);
    }
    strcpy(at, "]");
    ck_assert_str_eq(cell_of(t, line, "Err_message"), want);
}

static void check_row(struct fixture *f, const struct table_text *t, size_t line,
                      const struct cmp_row *row, bool first)
{
    check_text(t, line, "NPU Name", row->t.name);
    check_text(t, line, "Bench Name", row->b.name);
    check_text(t, line, "NPU Tensor Shape", row->t.shape);
    check_text(t, line, "Bench Dtype", row->b.dtype);
    check_text(t, line, "Result", ms_str_of(cmp_level_names[row->level]));
    check_text(t, line, "Requires_grad Consistent",
               row->grad_same ? MS_STR("True") : MS_STR("False"));
    check_notes(t, line, row->notes);
    if (cmp_mode(f->c) == PROBE_MODE_MD5)
        check_text(t, line, "NPU MD5", row->t.md5);
    else
        check_statistics(t, line, row), check_deltas(t, line, row);
    if (cmp_has_stack(f->c))
        ck_assert((strcmp(cell_of(t, line, "NPU_Stack_Info"), "N/A") != 0) ==
                  (first && row->t.present));
    if (f->conf.ext) {
        check_text(t, line, "Match", ms_str_of(row->match.how));
        ck_assert(strtod(cell_of(t, line, "Match confidence"), NULL) == row->match.confidence);
    }
}

static void check_rows(struct fixture *f, const struct table_text *t)
{
    size_t line = 1;
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        for (size_t i = 0; i < f->v.rows.n; i++)
            check_row(f, t, line++, &f->v.rows.p[i], i == 0);
    }
    ck_assert_uint_eq(line, t->n);
}

static void write_both(struct fixture *f, struct cmp_summary sum[2], struct table_text *csv,
                       struct table_text *book)
{
    char stem[96], path[104];
    struct cmp_files files = {0};
    snprintf(stem, sizeof stem, "%s/out", f->dir);
    ck_ok(cmp_write_csv(f->c, stem, NULL, &sum[0], &files, &f->err), f->err);
    ck_ok(cmp_write_xlsx(f->c, stem, &sum[1], &files, &f->err), f->err);
    ck_assert_uint_eq(files.list.n, 2);
    snprintf(path, sizeof path, "%s.csv", stem);
    ck_assert_str_eq(files.list.p[0], path);
    *csv = table_of_csv(path);
    snprintf(path, sizeof path, "%s.xlsx", stem);
    ck_assert_str_eq(files.list.p[1], path);
    *book = table_of_xlsx(path);
    cmp_files_free(&files);
}

/* ---- summaries ------------------------------------------------------------------------------------------ */

/* By how much the norms of a row differ, relative to the golden one. */
static double distance_of(const struct cmp_row *row)
{
    const struct cmp_value *t = &row->t.stat[PROBE_STAT_NORM], *b = &row->b.stat[PROBE_STAT_NORM];
    if (t->kind != CMP_VALUE_NUMBER || b->kind != CMP_VALUE_NUMBER)
        return 0;
    return b->v != 0 ? fabs(t->v - b->v) / fabs(b->v) : 0;
}

/* Counts again, and how many rows are worse than the last that is listed. */
static void check_summary(struct fixture *f, const struct cmp_summary *s)
{
    struct cmp_summary again = {0};
    const double last = s->nworst == CMP_WORST ? s->worst[CMP_WORST - 1].score : 0;
    size_t worse = 0;
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        for (uint32_t i = 0; i < f->v.rows.n; i++) {
            const struct cmp_row *row = &f->v.rows.p[i];
            const bool bad = row->level == CMP_WARNING || row->level == CMP_ERROR;
            again.rows++;
            again.level[row->level]++;
            again.unmatched_target += !row->b.present;
            again.unmatched_golden += !row->t.present;
            if (bad && !again.has_first)
                again.has_first = true, again.first = (struct cmp_place){g, i, 0};
            worse += (row->is_output || bad) && cmp_mode(f->c) != PROBE_MODE_MD5 &&
                     distance_of(row) > last * (1 + 1e-9);
        }
    }
    ck_assert_uint_eq(s->rows, again.rows);
    ck_assert(memcmp(s->level, again.level, sizeof s->level) == 0);
    ck_assert(s->unmatched_target == again.unmatched_target &&
              s->unmatched_golden == again.unmatched_golden && s->has_first == again.has_first);
    ck_assert(s->first.group == again.first.group && s->first.row == again.first.row);
    ck_assert(s->nworst == CMP_WORST ? worse < CMP_WORST : worse <= s->nworst);
}

static void check_worst(struct fixture *f, const struct cmp_summary *s)
{
    for (unsigned i = 0; i < s->nworst; i++) {
        const struct cmp_place *p = &s->worst[i];
        ck_ok(cmp_view_group(f->c, p->group, &f->v, &f->err), f->err);
        const struct cmp_row *row = &f->v.rows.p[p->row];
        ck_assert(isinf(p->score) || fabs(p->score - distance_of(row)) <= 1e-9 * p->score);
        ck_assert(p->score > 0 && (row->is_output || row->level != CMP_PASS));
        const struct cmp_place *next = i + 1 < s->nworst ? p + 1 : NULL;
        ck_assert(next == NULL || p->score > next->score ||
                  (p->score == next->score &&
                   (p->group < next->group || (p->group == next->group && p->row < next->row))));
    }
}

/* Two parts joined are the whole, wherever the cut is. */
static void check_joins(struct fixture *f, const struct cmp_summary *whole)
{
    for (size_t cut = 0; cut <= cmp_groups(f->c); cut++) {
        struct cmp_summary part[2] = {0};
        for (size_t g = 0; g < cmp_groups(f->c); g++) {
            ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
            cmp_summary_add(&part[g >= cut], f->c, g, &f->v);
        }
        cmp_summary_join(&part[0], &part[1]);
        ck_assert_uint_eq(part[0].rows, whole->rows);
        ck_assert(memcmp(part[0].level, whole->level, sizeof whole->level) == 0);
        ck_assert(part[0].unmatched_target == whole->unmatched_target &&
                  part[0].unmatched_golden == whole->unmatched_golden);
        ck_assert(part[0].has_first == whole->has_first && part[0].nworst == whole->nworst &&
                  part[0].first.group == whole->first.group &&
                  part[0].first.row == whole->first.row);
        for (unsigned i = 0; i < whole->nworst; i++)
            ck_assert(part[0].worst[i].group == whole->worst[i].group &&
                      part[0].worst[i].row == whole->worst[i].row);
    }
}

START_TEST(a_workbook_and_a_csv_have_what_the_comparison_shows)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        struct fixture f;
        struct table_text csv, book;
        struct cmp_summary sum[2] = {0};
        draw_pair(&f, seed);
        write_both(&f, sum, &csv, &book);
        check_same(&csv, &book, 1e-12);
        check_rows(&f, &csv);
        for (int i = 0; i < 2; i++) {
            check_summary(&f, &sum[i]);
            check_worst(&f, &sum[i]);
        }
        check_joins(&f, &sum[0]);
        table_free(&csv);
        table_free(&book);
        fixture_free(&f);
    }
}
END_TEST

/* ---- large tables ------------------------------------------------------------------------------ */

static void check_same_line(const struct table_line *a, const struct table_line *b)
{
    ck_assert_uint_eq(a->n, b->n);
    for (unsigned k = 0; k < a->n; k++)
        ck_assert_str_eq(a->cell[k], b->cell[k]);
}

/* Files that were written: their lines without headers are those of the whole, at most `most` a file. */
static void check_parts(struct fixture *f, const struct table_text *whole, size_t most)
{
    char stem[96], name[120];
    struct cmp_files files = {0};
    struct cmp_summary sum = {0};
    size_t at = 1;
    snprintf(stem, sizeof stem, "%s/many", f->dir);
    cmp__table_bounds.part_rows = most;
    ck_ok(cmp_write_csv(f->c, stem, NULL, &sum, &files, &f->err), f->err);
    ck_assert_uint_eq(files.list.n, (whole->n - 2) / most + 1);
    for (size_t i = 0; i < files.list.n; i++) {
        snprintf(name, sizeof name, files.list.n > 1 ? "%s_part_%zu.csv" : "%s.csv", stem, i + 1);
        ck_assert_str_eq(files.list.p[i], name);
        struct table_text part = table_of_csv(name);
        ck_assert_uint_eq(part.n - 1, i + 1 < files.list.n ? most : whole->n - at);
        check_same_line(&part.line[0], &whole->line[0]);
        for (size_t k = 1; k < part.n; k++)
            check_same_line(&part.line[k], &whole->line[at++]);
        table_free(&part);
    }
    ck_assert_uint_eq(at, whole->n);
    cmp_files_free(&files);
}

/* Sheets of equal size, each with the header. */
static void check_sheets(struct fixture *f, const struct table_text *whole, size_t most)
{
    char stem[96], path[104];
    struct cmp_files files = {0};
    struct cmp_summary sum = {0};
    const size_t rows = whole->n - 1, sheets = (rows - 1) / most + 1,
                 each = (rows - 1) / sheets + 1;
    size_t at = 1, in_sheet = 0;
    snprintf(stem, sizeof stem, "%s/many", f->dir);
    cmp__table_bounds.sheet_rows = most;
    ck_ok(cmp_write_xlsx(f->c, stem, &sum, &files, &f->err), f->err);
    snprintf(path, sizeof path, "%s.xlsx", stem);
    struct table_text book = table_of_xlsx(path);
    for (size_t i = 0; i < book.n; i++) {
        in_sheet = i == 0 || book.line[i].sheet != book.line[i - 1].sheet ? 0 : in_sheet + 1;
        if (in_sheet == 0) {
            check_same_line(&book.line[i], &whole->line[0]);
            continue;
        }
        ck_assert_uint_eq(book.line[i].sheet, (at - 1) / each);
        ck_assert_uint_le(in_sheet, each);
        ck_assert_uint_eq(book.line[i].n, whole->line[at].n);
        ck_assert_str_eq(book.line[i].cell[0], whole->line[at].cell[0]);
        at++;
    }
    ck_assert_uint_eq(at, whole->n);
    table_free(&book);
    cmp_files_free(&files);
}

START_TEST(a_large_table_is_cut_in_parts)
{
    const struct cmp__table_bounds usual = cmp__table_bounds;
    for (uint64_t seed = 1; seed < 4; seed++) {
        struct fixture f;
        struct table_text csv, book;
        struct cmp_summary sum[2] = {0};
        draw_pair(&f, seed);
        write_both(&f, sum, &csv, &book);
        cmp__table_bounds.block_rows = seed;
        const size_t mosts[] = {1, 2, 7, csv.n - 2, csv.n - 1, csv.n};
        for (size_t i = 0; i < sizeof mosts / sizeof *mosts; i++) {
            check_parts(&f, &csv, mosts[i]);
            check_sheets(&f, &csv, mosts[i]);
        }
        cmp__table_bounds = usual;
        table_free(&csv);
        table_free(&book);
        fixture_free(&f);
    }
}
END_TEST

/* ---- suspects -------------------------------------------------------------------------------------------- */

static void check_figure(const struct table_text *t, size_t line, const char *column, double v)
{
    const char *cell = cell_of(t, line, column);
    if (!isfinite(v))
        ck_assert_str_eq(cell, "");
    else
        ck_assert_msg(fabs(strtod(cell, NULL) - v) <= 1e-5 * fabs(v) && *cell != 0, "%s: %s",
                      column, cell);
}

static void check_number(const struct table_text *t, size_t line, const char *column, int64_t n)
{
    char want[32] = "";
    if (n >= 0)
        snprintf(want, sizeof want, "%lld", (long long)n);
    ck_assert_str_eq(cell_of(t, line, column), want);
}

static void check_suspect(const struct table_text *t, size_t line, const struct cmp_suspect *s)
{
    struct ms_buf text = {.max = 1 << 16};
    check_number(t, line, "place", s->place);
    check_number(t, line, "rank", s->rank);
    check_number(t, line, "step", s->step);
    check_number(t, line, "later", (int64_t)s->later);
    check_text(t, line, "target", s->target.p != NULL ? s->target : MS_STR(""));
    check_text(t, line, "golden", s->golden.p != NULL ? s->golden : MS_STR(""));
    check_text(t, line, "module", s->module);
    check_text(t, line, "role", ms_str_of(cmp_role_names[s->role]));
    check_text(t, line, "why", ms_str_of(cmp_why_names[s->why]));
    check_figure(t, line, "in", s->in);
    check_figure(t, line, "out", s->out);
    check_figure(t, line, "floor", s->floor);
    check_figure(t, line, "factor", s->factor);
    check_text(t, line, "pattern", ms_str_of(s->pattern != NULL ? s->pattern : ""));
    ms_message_speak(s->message, &text);
    check_text(t, line, "text", ms_buf_slice(&text));
    ms_buf_free(&text);
}

static void check_suspects(const struct cmp_source *s, const struct table_text *t)
{
    const struct cmp_suspect *list;
    const size_t n = cmp_source_suspects(s, &list);
    ck_assert_uint_eq(t->n, n + 1);
    for (size_t i = 0; i < n; i++)
        check_suspect(t, i + 1, &list[i]);
}

static void check_roles(const struct cmp_source *s, const struct table_text *t)
{
    struct cmp_source_place at = {0, 0};
    struct cmp_source_node n;
    size_t line = 1;
    for (; cmp_source_next(s, &at, &n); line++) {
        check_number(t, line, "rank", n.rank);
        check_number(t, line, "step", n.step);
        check_text(t, line, "target", n.target);
        check_text(t, line, "golden", n.golden.p != NULL ? n.golden : MS_STR(""));
        check_text(t, line, "role", ms_str_of(cmp_role_names[n.verdict.role]));
        check_figure(t, line, "in", (double)n.verdict.in);
        check_figure(t, line, "out", (double)n.verdict.out);
        check_figure(t, line, "floor", (double)n.verdict.floor);
        check_number(t, line, "suspect", n.verdict.suspect != 0 ? (int64_t)n.verdict.suspect : -1);
    }
    ck_assert_uint_eq(line, t->n);
}

static struct table_text both_csv(struct fixture *f, const struct cmp_source *s,
                                  struct table_text *roles)
{
    char path[128];
    struct cmp_files files = {0};
    ck_ok(cmp_write_suspects(s, f->dir, "TIME", false, &files, &f->err), f->err);
    ck_assert_uint_eq(files.list.n, 2);
    snprintf(path, sizeof path, "%s/roles_TIME.csv", f->dir);
    ck_assert_str_eq(files.list.p[1], path);
    *roles = table_of_csv(path);
    snprintf(path, sizeof path, "%s/suspects_TIME.csv", f->dir);
    ck_assert_str_eq(files.list.p[0], path);
    cmp_files_free(&files);
    return table_of_csv(path);
}

/* The two sheets of a workbook are the two csv. */
static void check_book(struct fixture *f, const struct cmp_source *s, struct table_text csv[2])
{
    char path[128];
    struct cmp_files files = {0};
    ck_ok(cmp_write_suspects(s, f->dir, "TIME", true, &files, &f->err), f->err);
    ck_assert_uint_eq(files.list.n, 1);
    snprintf(path, sizeof path, "%s/suspects_TIME.xlsx", f->dir);
    ck_assert_str_eq(files.list.p[0], path);
    struct table_text book = table_of_xlsx(path);
    ck_assert_uint_eq(book.n, csv[0].n + csv[1].n);
    for (size_t i = 0; i < book.n; i++)
        ck_assert_uint_eq(book.line[i].sheet, i >= csv[0].n);
    struct table_text part = {book.line, csv[0].n};
    check_same(&csv[0], &part, 1e-5);
    part = (struct table_text){book.line + csv[0].n, csv[1].n};
    check_same(&csv[1], &part, 1e-5);
    table_free(&book);
    cmp_files_free(&files);
}

START_TEST(suspects_and_roles_are_written_as_they_were_found)
{
    size_t suspects = 0;
    for (uint64_t seed = 1; seed < CASES; seed++) {
        struct fixture f;
        struct cmp_source *s;
        const struct cmp_suspect *list;
        draw_pair(&f, seed);
        ck_ok(cmp_source_new(&s, &f.err), f.err);
        for (int part = 0; part < 1 + (int)(seed % 3); part++)
            ck_ok(cmp_source_add(s, f.c, seed % 4 == 0 ? -1 : part, seed % 3 == 0 ? part : -1, NULL,
                                 &f.err),
                  f.err);
        ck_ok(cmp_source_find(s, &f.err), f.err);
        struct table_text csv[2];
        csv[0] = both_csv(&f, s, &csv[1]);
        check_suspects(s, &csv[0]);
        check_roles(s, &csv[1]);
        check_book(&f, s, csv);
        suspects += cmp_source_suspects(s, &list);
        cmp_source_free(s);
        table_free(&csv[0]);
        table_free(&csv[1]);
        fixture_free(&f);
    }
    ck_assert_uint_gt(suspects, CASES / 2);
}
END_TEST

/* ---- values that are kept while a table is written ---------------------------------------------------- */

static struct cmp_source *found(struct fixture *f)
{
    struct cmp_source *s;
    ck_ok(cmp_source_new(&s, &f->err), f->err);
    ck_ok(cmp_source_add(s, f->c, -1, -1, NULL, &f->err), f->err);
    ck_ok(cmp_source_find(s, &f->err), f->err);
    return s;
}

static void check_found(struct cmp_source *s, struct cmp_source *o)
{
    struct cmp_source_place at = {0, 0}, there = {0, 0};
    struct cmp_source_node n, m;
    while (cmp_source_next(s, &at, &n)) {
        ck_assert(cmp_source_next(o, &there, &m));
        ck_assert(ms_str_eq(n.target, m.target) && ms_str_eq(n.golden, m.golden));
        ck_assert(n.verdict.role == m.verdict.role && n.verdict.suspect == m.verdict.suspect);
        ck_assert(memcmp(&n.verdict.in, &m.verdict.in, sizeof n.verdict.in) == 0 &&
                  memcmp(&n.verdict.out, &m.verdict.out, sizeof n.verdict.out) == 0);
    }
    ck_assert(!cmp_source_next(o, &there, &m));
    cmp_source_free(s);
    cmp_source_free(o);
}

/* A table that is written before lends its values to the search, which finds the same without. */
START_TEST(suspects_are_the_same_with_values_of_the_table_and_without)
{
    for (uint64_t seed = 1; seed < CASES / 2; seed++) {
        struct fixture f, plain;
        struct table_text csv, book;
        struct cmp_summary sum[2] = {0};
        draw_pair(&plain, seed);
        draw_pair(&f, seed);
        ck_assert_ptr_null(f.c->values);
        f.conf.explain = true;
        fixture_open(&f);
        ck_assert_ptr_nonnull(f.c->values);
        write_both(&f, sum, &csv, &book);
        check_rows(&f, &csv);
        check_found(found(&f), found(&plain));
        table_free(&csv);
        table_free(&book);
        fixture_free(&f);
        fixture_free(&plain);
    }
}
END_TEST

/* ---- tables of the official rules ---------------------------------------------------------------------- */

/* The verdict and its reasons are those of the rules, and a table of digests has no reasons. */
static void check_verdicts(struct fixture *f, const struct table_text *t)
{
    size_t line = 1;
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        for (size_t i = 0; i < f->v.rows.n; i++, line++) {
            struct cmp_row_verdict want;
            const struct cmp_row *row = &f->v.rows.p[i];
            ck_ok(f->conf.rules->judge_row(&f->c->set, &f->v, row, &want, &f->err), f->err);
            check_text(t, line, "Result", want.result);
            if (cmp_mode(f->c) != PROBE_MODE_MD5)
                check_text(t, line, "Err_message", want.message);
        }
    }
    for (unsigned k = 0; k < t->line[0].n && cmp_mode(f->c) == PROBE_MODE_MD5; k++)
        ck_assert_str_ne(t->line[0].cell[k], "Err_message");
    ck_assert_uint_eq(line, t->n);
}

START_TEST(verdicts_of_the_official_rules_stand_in_their_columns)
{
    for (uint64_t seed = 1; seed < CASES / 2; seed++) {
        struct fixture f;
        struct cmp_summary sum = {0};
        struct cmp_files files = {0};
        char stem[96], path[104];
        draw_pair(&f, seed);
        f.conf.rules = cmp_rules_of(CMP_OLD);
        f.conf.ext = false;
        fixture_open(&f);
        snprintf(stem, sizeof stem, "%s/old", f.dir);
        snprintf(path, sizeof path, "%s.csv", stem);
        ck_ok(cmp_write_csv(f.c, stem, NULL, &sum, &files, &f.err), f.err);
        struct table_text csv = table_of_csv(path);
        check_verdicts(&f, &csv);
        table_free(&csv);
        cmp_files_free(&files);
        fixture_free(&f);
    }
}
END_TEST

TEST_MAIN_WITHIN(60, "written", a_workbook_and_a_csv_have_what_the_comparison_shows,
                 a_large_table_is_cut_in_parts, suspects_and_roles_are_written_as_they_were_found,
                 suspects_are_the_same_with_values_of_the_table_and_without,
                 verdicts_of_the_official_rules_stand_in_their_columns)
