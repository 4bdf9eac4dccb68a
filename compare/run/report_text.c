/* SPDX-License-Identifier: MIT
 *
 * report_text: what a comparison found, for people. Of many ranks, those that are alike are one row,
 * so that the worst ones and the suspects fit one screen.
 */
#include "compare/run/alike_results.h"
#include "probe/base/human.h"

#include <math.h>
#include <stdio.h>

/* ---- suspects ------------------------------------------------------------- */

enum {
    SHOWN = 5, /* suspects, ranks of one, largest errors of a group */
    NAMED = 4, /* ranks of a group */
    PATHS = 3  /* paths of tables, where ranks are folded */
};

static void print_ranks(const struct cmp_suspect *s)
{
    if (s->nranks == 0 || s->ranks[0] < 0)
        return;
    fputs(s->nranks > 1 ? " [ranks " : " [rank ", stdout);
    for (size_t i = 0; i < s->nranks && i < SHOWN; i++)
        printf("%s%d", i != 0 ? ", " : "", s->ranks[i]);
    if (s->nranks > SHOWN)
        printf(", ... %zu more", s->nranks - SHOWN);
    putchar(']');
}

static void print_suspect(const struct cmp_suspect *s, bool several)
{
    struct ms_str name = s->target.p != NULL ? s->target : s->golden;
    printf("suspect %u  %.*s", s->place, MS_STR_ARG(name));
    if (several)
        print_ranks(s);
    if (s->module.n != 0)
        printf("  in %.*s", MS_STR_ARG(s->module));
    printf("  (%.0f %% sure)\n           ", floor(100 * s->certainty));
    cmp_report_message_text(s->message);
    putchar('\n');
    if (s->pattern != NULL)
        printf("           pattern: %s\n", s->pattern);
}

/* Prints the settings of a dump that would decide, where statistics cannot. */
static void print_undecided(const struct cmp_source *source)
{
    const struct ms_str *names;
    size_t n = cmp_source_undecided(source, &names);
    if (n == 0)
        return;
    fputs("cannot be decided from these dumps: dump the tensors of both sides and compare again, "
          "with\n"
          "           \"task\": \"tensor\", \"tensor\": {\"list\": [",
          stdout);
    for (size_t i = 0; i < n; i++)
        printf("%s\"%.*s\"", i != 0 ? ", " : "", MS_STR_ARG(names[i]));
    puts("]}");
}

static void print_none(const struct cmp_source *source, bool compared)
{
    const struct ms_str *names;
    if (cmp_source_undecided(source, &names) != 0)
        return;
    puts(compared ? "no suspect: nothing differs more than the noise of this pair explains"
                  : "nothing was compared: no row has a partner on the other side");
}

/* Write the suspects only; several: with their ranks. */
static void report_suspects_text(const struct cmp_source *source, bool several, bool compared)
{
    const struct cmp_suspect *list;
    const struct ms_stored_message *notes;
    size_t n = cmp_source_suspects(source, &list), nnotes = cmp_source_notes(source, &notes);
    for (size_t i = 0; i < nnotes; i++) {
        fputs("note: ", stdout);
        cmp_report_message_text(notes[i]);
        putchar('\n');
    }
    if (n == 0)
        print_none(source, compared);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        print_suspect(&list[i], several);
    if (n > SHOWN)
        printf("and %zu more behind these; --format json lists them\n", n - SHOWN);
    print_undecided(source);
    putchar('\n');
}

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

static void print_first(const struct cmp_reported_row *first)
{
    printf("first marked row  %s\n", first->row);
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

/* A row among the largest errors of a group. */
struct bad_row {
    const struct cmp_reported_row *row;
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

static void print_worst_of(const struct cmp_alike *a)
{
    struct bad_row worst[CMP_WORST];
    unsigned n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct cmp_result *r = a->list[i];
        for (unsigned k = 0; k < r->nworst; k++)
            n = keep_worst(worst, n, (struct bad_row){&r->worst[k], r});
    }
    if (n != 0)
        puts("largest relative errors");
    for (unsigned i = 0; i < n && i < SHOWN; i++) {
        fputs("  ", stdout);
        print_score(worst[i].row->score);
        printf("%s  [", worst[i].row->row);
        print_place(worst[i].of->couple);
        puts("]");
    }
}

/* Prints the first ranks of a group and how many there are. */
static void print_members(const struct cmp_alike *a)
{
    char count[MS_HUMAN_MAX];
    for (size_t i = 0; i < a->n && i < NAMED; i++) {
        if (i != 0)
            fputs(", ", stdout);
        print_place(a->list[i]->couple);
    }
    if (a->n > NAMED)
        printf(", ... (%s alike)", ms_human_count(count, a->n));
    fputs(a->is_equal ? ":" : ", together:", stdout);
}

/* Prints a group with its largest errors. */
static void print_group(const struct cmp_alike *a, size_t most)
{
    const struct cmp_result *first = a->list[0];
    print_members(a);
    putchar('\n');
    print_partners(&first->partners);
    print_rows(&a->sum);
    if (first->sum.has_first)
        print_first(&first->first);
    print_worst_of(a);
    size_t notes = 0;
    for (size_t i = 0; i < a->n; i++)
        notes += a->list[i]->problems.n;
    print_notes(first, most);
    if (notes > first->problems.n)
        printf("note: %zu more notes of the others\n", notes - first->problems.n);
}

/* Prints a group in one line. */
static void print_group_line(const struct cmp_alike *a)
{
    print_members(a);
    putchar(' ');
    print_rows(&a->sum);
}

/* Prints how many ranks of the groups in [from, to) are not listed. */
static void print_rest(const struct cmp_alike_groups *groups, size_t from, size_t to)
{
    char count[MS_HUMAN_MAX];
    size_t ranks = 0;
    for (size_t i = from; i < to; i++)
        ranks += groups->list.p[i].n;
    if (ranks != 0)
        printf("... and %s more rank%s in %zu group%s; --most N lists more, 0 each rank\n",
               ms_human_count(count, ranks), ranks == 1 ? "" : "s", to - from,
               to - from == 1 ? "" : "s");
}

/* Prints the worst group with details, further ones in a line each, and last the ranks without a
 * difference. */
static void print_groups(const struct cmp_report *r, size_t most)
{
    struct cmp_alike_groups groups;
    if (!cmp_alike_find(&groups, r))
        puts("note: not enough memory to list the results");
    const struct cmp_alike *list = groups.list.p;
    const size_t n = groups.list.n, passes = n != 0 && !list[n - 1].differs ? 1 : 0;
    const size_t listed = n - passes < most ? n - passes : most;
    if (listed != 0)
        print_group(&list[0], most);
    for (size_t i = 1; i < listed; i++)
        print_group_line(&list[i]);
    print_rest(&groups, listed, n - passes);
    if (passes != 0)
        print_group(&list[n - 1], most);
    cmp_alike_free(&groups);
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
        report_suspects_text(r->source, r->list.n > 1, cmp_report_compared(r));
    for (size_t i = 0; i < r->list.n && !folded; i++) {
        if (r->list.p[i]->done)
            print_result(r->list.p[i], r->list.n > 1, most);
    }
    if (folded)
        print_groups(r, most);
    print_speed(r);
    print_files(r, folded && most > PATHS ? PATHS : folded ? most : 0);
}
