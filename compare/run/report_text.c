/* SPDX-License-Identifier: MIT
 *
 * report_text: the report of a comparison for people. Of many pairs of dumps, those with equal
 * counts are one part, so that a thousand ranks fit one screen.
 */
#include "compare/run/report.h"

#include "probe/base/human.h"
#include "probe/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- one pair of dumps ----------------------------------------------------- */

static void print_count(uint64_t n, const char *what)
{
    char text[MS_HUMAN_MAX];
    if (n != 0)
        printf(", %s %s", ms_human_count(text, n), what);
}

static void print_rows(const struct cmp_summary *s)
{
    char rows[MS_HUMAN_MAX], pass[MS_HUMAN_MAX];
    printf("%s rows: %s pass", ms_human_count(rows, s->rows),
           ms_human_count(pass, s->level[CMP_PASS]));
    print_count(s->level[CMP_WARNING], "warning");
    print_count(s->level[CMP_ERROR], "error");
    print_count(s->unmatched_target, "without a golden row");
    print_count(s->unmatched_golden, "only on the golden side");
    putchar('\n');
}

static void print_partners(const struct cmp_partners *p)
{
    struct ms_buf text = {.max = 1 << 12};
    cmp_partners_text(p, &text);
    if (text.n != 0)
        puts(ms_buf_z(&text));
    ms_buf_free(&text);
}

static void print_score(double score)
{
    if (isinf(score))
        fputs("   inf ", stdout);
    else
        printf("%6.2g ", score);
}

static void print_first(const struct cmp_told *first)
{
    printf("first difference  %s\n", first->row);
    if (first->text[0] != 0)
        printf("                  %s\n", first->text);
}

static void print_place(const struct cmp_couple *c)
{
    printf("%s%s%s", c->folder, c->folder[0] != 0 ? "/" : "", c->suffix + (c->suffix[0] == '_'));
}

static void print_counts(const struct cmp_result *r)
{
    print_partners(&r->partners);
    print_rows(&r->sum);
    if (r->sum.has_first)
        print_first(&r->first);
}

/* Prints the notes on a pair of dumps, at most so many, 0: all. */
static void print_notes(const struct cmp_result *r, size_t most)
{
    for (size_t i = 0; i < r->problems.n && (most == 0 || i < most); i++)
        printf("note: %s\n", r->problems.p[i]);
    if (most != 0 && r->problems.n > most)
        printf("note: and %zu more; --most 0 lists them\n", r->problems.n - most);
}

static void print_result(const struct cmp_result *r, bool several, size_t most)
{
    if (several) {
        print_place(r->couple);
        puts(":");
    }
    print_counts(r);
    if (r->nworst != 0)
        puts("largest relative errors");
    for (unsigned i = 0; i < r->nworst; i++) {
        fputs("  ", stdout);
        print_score(r->worst[i].score);
        puts(r->worst[i].row);
    }
    print_notes(r, most);
}

/* ---- alike ones --------------------------------------------------------------- */

/* Pairs of dumps of one folder whose counts and first difference are equal. */
struct alike {
    MS_VEC(const struct cmp_result *) list;
};
typedef MS_VEC(struct alike) alike_groups;

static bool are_alike(const struct cmp_result *a, const struct cmp_result *b)
{
    if (strcmp(a->couple->folder, b->couple->folder) != 0 || a->sum.rows != b->sum.rows ||
        a->sum.unmatched_target != b->sum.unmatched_target ||
        a->sum.unmatched_golden != b->sum.unmatched_golden ||
        a->sum.has_first != b->sum.has_first ||
        memcmp(a->sum.level, b->sum.level, sizeof a->sum.level) != 0)
        return false;
    return !a->sum.has_first || strcmp(a->first.row, b->first.row) == 0;
}

static bool put_into_group(alike_groups *groups, const struct cmp_result *r)
{
    struct alike *to = NULL;
    for (size_t i = 0; i < groups->n && to == NULL; i++) {
        if (are_alike(groups->p[i].list.p[0], r))
            to = &groups->p[i];
    }
    if (to == NULL) {
        to = ms_vec_push(groups);
        if (to == NULL)
            return false;
        *to = (struct alike){.list = {.p = NULL}};
    }
    const struct cmp_result **slot = ms_vec_push(&to->list);
    if (slot != NULL)
        *slot = r;
    return slot != NULL;
}

static uint64_t bad_rows(const struct alike *a)
{
    const struct cmp_summary *s = &a->list.p[0]->sum;
    return s->level[CMP_ERROR] + s->level[CMP_WARNING] + s->unmatched_target + s->unmatched_golden;
}

/* Those with differences first, and of these the group of few. */
static int odd_first(const void *pa, const void *pb)
{
    const struct alike *a = pa, *b = pb;
    const bool bad_a = bad_rows(a) != 0, bad_b = bad_rows(b) != 0;
    if (bad_a != bad_b)
        return bad_a ? -1 : 1;
    if (a->list.n != b->list.n)
        return a->list.n < b->list.n ? -1 : 1;
    return a->list.p[0] < b->list.p[0] ? -1 : a->list.p[0] > b->list.p[0];
}

/* A row among the largest errors of a group. */
struct bad_row {
    const struct cmp_told *row;
    const struct cmp_result *of;
};

/* Puts a row in its place in the list, largest first; of equal rows the largest stays. */
static unsigned keep_worst(struct bad_row *list, unsigned n, struct bad_row row)
{
    unsigned at = 0, same = n;
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(list[i].row->row, row.row->row) == 0)
            same = i;
    }
    if (same < n && list[same].row->score >= row.row->score)
        return n;
    while (at < same && at < n && list[at].row->score >= row.row->score)
        at++;
    if (at == CMP_WORST)
        return n;
    const unsigned end = same < n ? same : n < CMP_WORST ? n : CMP_WORST - 1;
    memmove(&list[at + 1], &list[at], (end - at) * sizeof *list);
    list[at] = row;
    return same < n || n == CMP_WORST ? n : n + 1;
}

static void print_worst_of(const struct alike *a)
{
    struct bad_row worst[CMP_WORST];
    unsigned n = 0;
    for (size_t i = 0; i < a->list.n; i++) {
        const struct cmp_result *r = a->list.p[i];
        for (unsigned k = 0; k < r->nworst; k++)
            n = keep_worst(worst, n, (struct bad_row){&r->worst[k], r});
    }
    if (n != 0)
        puts("largest relative errors");
    for (unsigned i = 0; i < n; i++) {
        fputs("  ", stdout);
        print_score(worst[i].row->score);
        printf("%s  [", worst[i].row->row);
        print_place(worst[i].of->couple);
        puts("]");
    }
}

static void print_group(const struct alike *a, size_t most)
{
    enum { NAMED = 4 };
    for (size_t i = 0; i < a->list.n && i < NAMED; i++) {
        if (i != 0)
            fputs(", ", stdout);
        print_place(a->list.p[i]->couple);
    }
    if (a->list.n > NAMED)
        printf(", ... (%zu alike)", a->list.n);
    puts(":");
    print_counts(a->list.p[0]);
    print_worst_of(a);
    size_t notes = 0;
    for (size_t i = 0; i < a->list.n; i++)
        notes += a->list.p[i]->problems.n;
    print_notes(a->list.p[0], most);
    if (notes > a->list.p[0]->problems.n)
        printf("note: %zu more notes of the others\n", notes - a->list.p[0]->problems.n);
}

static bool sort_into_groups(const struct cmp_report *r, alike_groups *groups)
{
    for (size_t i = 0; i < r->list.n; i++) {
        if (r->list.p[i]->done && !put_into_group(groups, r->list.p[i]))
            return false;
    }
    if (groups->n != 0)
        qsort(groups->p, groups->n, sizeof *groups->p, odd_first);
    return true;
}

static void print_groups(const struct cmp_report *r, size_t most)
{
    alike_groups groups = {.p = NULL};
    if (!sort_into_groups(r, &groups))
        puts("note: not enough memory to list the results");
    for (size_t i = 0; i < groups.n && i < most; i++)
        print_group(&groups.p[i], most);
    if (groups.n > most)
        printf("... %zu more groups; --most 0 lists each result\n", groups.n - most);
    for (size_t i = 0; i < groups.n; i++)
        ms_vec_free(&groups.p[i].list);
    ms_vec_free(&groups);
}

/* ---- all of them -------------------------------------------------------------- */

static void print_speed(const struct cmp_report *r)
{
    char bytes[MS_HUMAN_MAX], took[MS_HUMAN_MAX], rate[MS_HUMAN_MAX];
    uint64_t n = 0;
    for (size_t i = 0; i < r->list.n; i++)
        n += r->list.p[i]->json_bytes + r->list.p[i]->tensor_bytes;
    double seconds = (double)r->took_ns / 1e9;
    ms_human_bytes(rate, seconds > 0 ? (uint64_t)((double)n / seconds) : 0);
    printf("%s in %s, %s/s\n", ms_human_bytes(bytes, n), ms_human_time(took, r->took_ns), rate);
}

static bool has_pairs(const struct cmp_report *r)
{
    uint64_t pairs = 0;
    for (size_t i = 0; i < r->list.n; i++) {
        const struct cmp_summary *s = &r->list.p[i]->sum;
        pairs += s->rows - s->unmatched_target - s->unmatched_golden;
    }
    return pairs != 0;
}

/* Prints the paths of the tables; at most so many, 0: all. */
static void print_files(const struct cmp_report *r, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < r->list.n; i++) {
        for (size_t k = 0; k < r->list.p[i]->files.list.n; k++) {
            if (most == 0 || n < most)
                puts(r->list.p[i]->files.list.p[k]);
            n++;
        }
    }
    if (most != 0 && n > most)
        printf("... and %zu more tables beside these\n", n - most);
}

void cmp_report_text(const struct cmp_report *r, size_t most)
{
    const bool folded = most != 0 && r->list.n > most;
    if (r->source != NULL)
        cmp_report_suspects_text(r->source, r->list.n > 1, has_pairs(r));
    for (size_t i = 0; i < r->list.n && !folded; i++) {
        if (r->list.p[i]->done)
            print_result(r->list.p[i], r->list.n > 1, most);
    }
    if (folded)
        print_groups(r, most);
    print_speed(r);
    print_files(r, folded ? most : 0);
}
