/* SPDX-License-Identifier: MIT
 *
 * out: the files of a comparison: the same for any number of threads, cells quoted
 * where they must be, the mapping that can be read back, the summary's counts.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include "compare/check/diff.h"
#include "compare/official/advisor.h"
#include "compare/write/out.h"
#include "compare/write/sheet.h"
#include "compare/write/table.h"
#include "probe/base/csv.h"
#include "tests/gen/big_dump.h"

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *p = malloc(*n + 1);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(fread(p, 1, *n, f), *n);
    p[*n] = 0;
    fclose(f);
    return p;
}

/* The csv of f's comparison, written with so many threads. */
static char *csv_of(struct fixture *f, unsigned threads, struct cmp_summary *sum, size_t *n)
{
    char stem[96], path[104];
    struct ms_pool *pool;
    struct cmp_files files = {0};
    snprintf(stem, sizeof stem, "%s/out%u", f->dir, threads);
    snprintf(path, sizeof path, "%s.csv", stem);
    *sum = (struct cmp_summary){0};
    ck_ok(ms_pool_new(&pool, threads, &f->err), f->err);
    ck_ok(cmp_write_csv(f->c, stem, pool, sum, &files, &f->err), f->err);
    ck_assert_uint_eq(files.list.n, 1);
    ck_assert_str_eq(files.list.p[0], path);
    cmp_files_free(&files);
    ms_pool_free(pool);
    return slurp(path, n);
}

static void write_big(const char *path, unsigned seed)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    big_dump_write(f, 3000, seed);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(the_csv_is_the_same_for_any_number_of_threads)
{
    struct fixture f;
    struct cmp_summary one, four;
    size_t n1, n4;
    fixture_init(&f);
    write_big(f.t, 1);
    write_big(f.b, 2);
    fixture_open(&f);
    char *a = csv_of(&f, 1, &one, &n1), *b = csv_of(&f, 4, &four, &n4);
    ck_assert_uint_eq(n1, n4);
    ck_assert(memcmp(a, b, n1) == 0);
    ck_assert_uint_eq(one.rows, cmp_rows(f.c));
    ck_assert(memcmp(one.level, four.level, sizeof one.level) == 0);
    ck_assert_uint_eq(one.nworst, CMP_WORST);
    for (unsigned i = 0; i < CMP_WORST; i++) {
        ck_assert(one.worst[i].group == four.worst[i].group &&
                  one.worst[i].row == four.worst[i].row);
        ck_assert(i == 0 || one.worst[i - 1].score >= one.worst[i].score);
    }
    free(a);
    free(b);
    fixture_free(&f);
}
END_TEST

START_TEST(rows_of_the_csv_are_those_of_the_comparison)
{
    struct fixture f;
    struct cmp_summary sum;
    size_t n, lines = 0;
    fixture_init(&f);
    write_big(f.t, 1);
    write_big(f.b, 1);
    fixture_open(&f);
    char *text = csv_of(&f, 2, &sum, &n);
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    ck_assert_uint_eq(lines, cmp_rows(f.c) + 1);
    ck_assert_uint_eq(sum.level[CMP_PASS], sum.rows);
    ck_assert(!sum.has_first && sum.nworst == 0);
    free(text);
    fixture_free(&f);
}
END_TEST

START_TEST(cells_are_quoted_where_they_must_be_and_never_run)
{
    struct fixture f;
    struct cmp_summary sum;
    size_t n;
    fixture_init(&f);
    fixture_pair(
        &f,
        "\"@a.b.0.forward\": {\"input_args\": [" SCALAR("str", "\"x,\\\"y\\\"\\nz\"") "," SCALAR(
            "str", "\"=1+1\"") "," SCALAR("str", "\"-5\"") "," TENSOR("-Infinity", "NaN", "1e+16",
                                                                      "-0.5") "]}",
        "");
    fixture_open(&f);
    char *text = csv_of(&f, 1, &sum, &n);
    ck_assert_ptr_nonnull(strstr(text, "\n\"'@a.b.0.forward.input.0\",N/A,"));
    ck_assert_ptr_nonnull(strstr(text, ",\"x,\"\"y\"\"\nz\","));
    ck_assert_ptr_nonnull(strstr(text, ",\"'=1+1\","));
    ck_assert_ptr_nonnull(strstr(text, ",-5,"));
    ck_assert_ptr_nonnull(strstr(text, ", -inf,Nan,1e+16,-0.5,N/A"));
    ck_assert_ptr_nonnull(
        strstr(text, ",unmatched,\"[\"\"unmatched: The bench has no such row.\"\"]\""));
    ck_assert_uint_eq(sum.unmatched_target, 4);
    free(text);
    fixture_free(&f);
}
END_TEST

/* Cells go by blocks of bytes: each byte at each place of short and long ones. */
START_TEST(one_byte_anywhere_in_a_cell_decides)
{
    char text[48];
    struct ms_buf b = {.max = 1 << 10};
    for (unsigned n = 1; n < sizeof text; n++) {
        for (unsigned i = 0; i < 256 * n; i++) {
            struct cmp_cell cell = {.text = {text, n}, .foreign = i % 512 < 256};
            char c = (char)(i % 256);
            memset(text, 'a', n);
            text[i / 256] = c;
            bool formula = cell.foreign && ms_csv_is_formula(cell.text);
            bool quoted = formula || c == ',' || c == '"' || c == '\n' || c == '\r';
            ms_buf_clear(&b);
            cmp_csv_cell(&b, &cell);
            size_t want = n + (quoted ? 2 + (c == '"') + formula : 0);
            ck_assert_msg(b.n == want && (b.p[0] == '"') == quoted, "%u of %u: %02x", i / 256, n,
                          (unsigned char)c);
        }
    }
    ms_buf_free(&b);
}
END_TEST

START_TEST(a_mapping_that_was_written_reads_back)
{
    struct fixture f;
    struct cmp__pairs back;
    struct cmp_files files = {0};
    char map[96], out[96];
    fixture_init(&f);
    fixture_pair(&f, "", "");
    fixture_write(&f, "map.yaml",
                  "plain.0: other.1\n'- odd: #1': \"a\\\\b\\\"c\"\n\"tab\\there\": ' '\nx: ''\n");
    snprintf(map, sizeof map, "%s/map.yaml", f.dir);
    snprintf(out, sizeof out, "%s/out.yaml", f.dir);
    f.conf.data_mapping = map;
    fixture_open(&f);
    ck_ok(cmp_write_mapping(f.c, out, &files, &f.err), f.err);
    ck_ok(cmp__pairs_read(&back, out, &f.err), f.err);
    ck_assert_uint_eq(back.keys.keys.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(ms_str_eq(ms_map_key(&back.keys, i), ms_map_key(&f.c->rows.row_map.keys, i)));
        ck_assert(ms_str_eq(back.values.p[i], f.c->rows.row_map.values.p[i]));
    }
    cmp__pairs_free(&back);
    cmp_files_free(&files);
    fixture_free(&f);
}
END_TEST

START_TEST(the_workbook_is_written_whole_or_not_at_all)
{
    struct fixture f;
    struct cmp_summary sum = {0};
    struct cmp_files files = {0};
    char stem[96], path[104];
    size_t n;
    fixture_init(&f);
    write_big(f.t, 1);
    write_big(f.b, 2);
    fixture_open(&f);
    snprintf(stem, sizeof stem, "%s/book", f.dir);
    snprintf(path, sizeof path, "%s.xlsx", stem);
    ck_ok(cmp_write_xlsx(f.c, stem, &sum, &files, &f.err), f.err);
    char *bytes = slurp(path, &n);
    ck_assert(n > 1000 && memcmp(bytes, "PK", 2) == 0);
    ck_assert_uint_eq(sum.rows, cmp_rows(f.c));
    free(bytes);
    ck_assert_int_ne(cmp_write_xlsx(f.c, "/proc/none/book", &sum, &files, &f.err), MS_OK);
    cmp_files_free(&files);
    fixture_free(&f);
}
END_TEST

START_TEST(advice_names_the_first_bad_row)
{
    struct fixture f;
    struct cmp_files files = {0};
    char path[96];
    size_t n;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    fixture_pair(
        &f,
        "\"Torch.a.0.forward\": {\"input_args\": [" TENSOR(
            "1.0", "0.0", "0.0", "1.0") "], \"output\": [" TENSOR("9.0", "0.0", "0.0", "1.0") "]}",
        "\"Torch.a.0.forward\": {\"input_args\": [" TENSOR(
            "1.0", "0.0", "0.0", "1.0") "], \"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}");
    fixture_open(&f);
    snprintf(path, sizeof path, "%s/advisor.txt", f.dir);
    ck_ok(cmp_write_advisor(f.c, path, &files, &f.err), f.err);
    char *text = slurp(path, &n);
    ck_assert_ptr_nonnull(strstr(text, "Line: 1\nSuspect Nodes: Torch.a.0.forward.output.0\n"));
    free(text);
    cmp_files_free(&files);
    fixture_free(&f);
}
END_TEST

/* ---- the first difference over ranks ---------------------------------------- */

/* Steps of a rank: d a differing op; c a communication of both, > one that gives to the other rank, < one
 * that takes from it, l one with nobody here; C one of both whose output differs. */
static void trail(struct cmp_trail *t, int64_t rank, const char *steps)
{
    *t = (struct cmp_trail){.rank = rank};
    for (uint32_t i = 0; steps[i] != 0; i++) {
        struct cmp_step *s = ms_vec_push(&t->steps);
        ck_assert_ptr_nonnull(s);
        *s = (struct cmp_step){.group = i,
                               .segment = t->segments,
                               .differs = steps[i] == 'd' || steps[i] == 'C',
                               .communicates = steps[i] != 'd',
                               .meet = steps[i] == 'l'                      ? 10 + (uint64_t)rank
                                       : steps[i] == '>' || steps[i] == '<' ? 1
                                                                            : 0,
                               .role = steps[i] == '>'   ? CMP_STEP_GIVES
                                       : steps[i] == '<' ? CMP_STEP_TAKES
                                                         : CMP_STEP_BOTH};
        t->segments += s->communicates;
    }
}

static void check_blame(const char *rank0, const char *rank1, bool earliest, uint32_t blame0,
                        uint32_t blame1)
{
    struct cmp_trail t[2];
    struct ms_err err = {0};
    uint32_t blamed[2];
    size_t n;
    trail(&t[0], 0, rank0);
    trail(&t[1], 1, rank1);
    ck_ok(cmp_diff_blame(t, 2, earliest, blamed, &n, &err), err);
    ck_assert_msg(blamed[0] == blame0 && blamed[1] == blame1, "%s %s: %u %u", rank0, rank1,
                  blamed[0], blamed[1]);
    ck_assert_uint_eq(n, (size_t)(blamed[0] != MS_MAP_NONE) + (blamed[1] != MS_MAP_NONE));
    ms_vec_free(&t[0].steps);
    ms_vec_free(&t[1].steps);
}

START_TEST(the_earliest_stretch_between_communications_is_to_blame)
{
    static const struct {
        const char *rank0, *rank1;
        uint32_t blame0, blame1;
    } cases[] = {
        {"", "", MS_MAP_NONE, MS_MAP_NONE},
        {"dc", "dc", 0, 0},
        {"cd", "dcd", MS_MAP_NONE, 0}, /* rank 1 spoiled it before they met */
        {"cdc", "cc", 1, MS_MAP_NONE},
        {"Cd", "dCd", MS_MAP_NONE, 0}, /* what came out wrong went in wrong */
        {"Cd", "Cd", 0, 0},            /* nobody's op: the communication itself */
        {"ccd", "ccd", 2, 2},          /* after the last one */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_blame(cases[i].rank0, cases[i].rank1, true, cases[i].blame0, cases[i].blame1);
}
END_TEST

START_TEST(what_a_rank_received_explains_what_differs_on_it)
{
    enum { NONE = -1 };
    static const struct {
        const char *rank0, *rank1;
        int blame0, blame1;
    } cases[] = {
        {"lld>", "<d", 2, NONE}, /* although rank 1 differs after fewer communications */
        {"lld>", "d<", 2, 0},    /* each of them by itself */
        {">d", "<d", 1, 1},      /* what was given was right */
        {"d>>", "d<<", 0, 0},    {">d>", "<<d", 1, NONE}, /* the second of two */
        {">d>", "<d<", 1, 1},    {"<d", "", 1, NONE},     /* nobody gives: it goes on alone */
        {"d<", "d<", 0, 0},      {"dc<", "c>d", 0, NONE},
        {"<>d", "<>d", 2, 2}, /* both wait for each other */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_blame(cases[i].rank0, cases[i].rank1, false, (uint32_t)cases[i].blame0,
                    (uint32_t)cases[i].blame1);
}
END_TEST

TEST_MAIN("out", the_csv_is_the_same_for_any_number_of_threads,
          rows_of_the_csv_are_those_of_the_comparison,
          cells_are_quoted_where_they_must_be_and_never_run, one_byte_anywhere_in_a_cell_decides,
          a_mapping_that_was_written_reads_back, the_workbook_is_written_whole_or_not_at_all,
          advice_names_the_first_bad_row, the_earliest_stretch_between_communications_is_to_blame,
          what_a_rank_received_explains_what_differs_on_it)
