/* SPDX-License-Identifier: MIT
 *
 * run_report: reads a report from run.db and writes it as text for people or as JSON for programs,
 * with the same content in the same order.
 */
#include "mstx/conclude/run_report.h"

#include "mstx/conclude/advice.h"
#include "mstx/conclude/alike_rows.h"
#include "mstx/conclude/hang.h"

#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading ---------------------------------------------------------------- */

/* Sums the recording cost of the processes that measured it. */
static enum ms_rc read_cost(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT ifnull(sum(cost_ns), 0), ifnull(sum(end_ns - start_ns), 0)"
                            " FROM processes WHERE end_ns > start_ns AND cost_ns > 0",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more) {
        r->cost_ns = ms_stmt_get_i64(st, 0);
        r->costed_ns = ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc measure_names(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    MS_TRY(mstx_names_measure(tl, &r->names, err));
    MS_TRY(mstx_comm_measure(tl, &r->comms, err));
    MS_TRY(mstx_advice_measure(tl, &r->steps, &r->advice, err));
    return mstx_use_measure(tl, &r->use, err);
}

static enum ms_rc read_all(struct mstx_tl *tl, bool with_names, struct mstx_report *r,
                           struct ms_err *err)
{
    MS_TRY(mstx_findings_read(tl, &r->findings, err));
    /* the table steps does not record how the steps were found */
    MS_TRY(mstx_steps_find(tl, &r->steps, err));
    MS_TRY(mstx__steps_median(&r->steps, &r->step_median_ns, err));
    MS_TRY(read_cost(tl, r, err));
    if (with_names)
        MS_TRY(measure_names(tl, r, err));
    MS_TRY(mstx_clocks_measure(tl, &r->clocks, err));
    return mstx__tl_check(tl, err);
}

enum ms_rc mstx_report_read(struct mstx_tl *tl, bool with_names, struct mstx_report *r,
                            struct ms_err *err)
{
    *r = (struct mstx_report){0};
    const enum ms_rc rc = read_all(tl, with_names, r, err);
    if (rc != MS_OK)
        mstx_report_free(r);
    return rc;
}

void mstx_report_free(struct mstx_report *r)
{
    mstx_steps_free(&r->steps);
    ms_vec_free(&r->findings);
    ms_vec_free(&r->advice);
    ms_vec_free(&r->flops);
    ms_vec_free(&r->names);
    mstx_comm_rows_free(&r->comms);
    mstx_use_free(&r->use);
    mstx_breakdown_free(&r->breakdown);
}

/* ---- text ------------------------------------------------------------------- */

static const char *source_text(enum mstx_step_source s)
{
    static const char *const text[] = {"none", "ranges", "marks", "period"};
    return text[s];
}

static void text_head(struct mstx_tl *tl, const char *path, struct ms_buf *out)
{
    int64_t start, end;
    uint64_t events = 0;
    char time[MS_HUMAN_MAX];
    mstx_tl_span(tl, &start, &end);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++)
        events += mstx_tl_track(tl, i)->events;
    size_t processes = mstx_tl_process_count(tl), tracks = mstx_tl_track_count(tl);
    ms_buf_printf(out, "%s: %zu process%s, %zu track%s, %" PRIu64 " event%s in %s\n", path,
                  processes, processes == 1 ? "" : "es", tracks, tracks == 1 ? "" : "s", events,
                  events == 1 ? "" : "s", ms_human_time(time, end - start));
}

static void text_clocks(const struct mstx_report *r, struct ms_buf *out)
{
    char time[MS_HUMAN_MAX];
    if (r->clocks.hosts > 1)
        ms_buf_printf(out, "clocks of %" PRId64 " hosts brought together, sure to %s\n",
                      r->clocks.hosts, ms_human_time(time, r->clocks.uncertainty_ns));
}

static void text_cost(const struct mstx_report *r, struct ms_buf *out)
{
    if (r->costed_ns > 0)
        ms_buf_printf(out, "recording itself took about %.2g %% of the time\n",
                      100 * (double)r->cost_ns / (double)r->costed_ns);
}

static void text_finding(const struct mstx_finding *f, struct ms_buf *out)
{
    ms_buf_printf(out, "  %-7s  ", mstx_severity_text(f->severity));
    ms_message_speak(ms_message_stored(&f->message), out);
    ms_buf_putc(out, '\n');
}

/* Chooses the findings that are listed: the worst first, of one kind a few, so that a fault of
 * thousands of ranks leaves room for others. Returns their number. */
static size_t choose_findings(const mstx_findings *all, size_t most, bool *is_listed)
{
    enum { OF_KIND = 3, KINDS_MAX = 32 };
    struct {
        const char *kind;
        size_t n;
    } seen[KINDS_MAX] = {{NULL, 0}};
    size_t listed = 0;
    for (size_t i = 0; i < all->n && (most == 0 || listed < most); i++) {
        size_t k = 0;
        while (k + 1 < KINDS_MAX && seen[k].kind != NULL && seen[k].kind != all->p[i].kind)
            k++;
        seen[k].kind = all->p[i].kind;
        is_listed[i] = most == 0 || seen[k].n++ < OF_KIND;
        listed += is_listed[i];
    }
    return listed;
}

/* Counts the findings that are not listed, by severity. */
static void text_more_findings(const mstx_findings *all, const bool *is_listed, size_t more,
                               struct ms_buf *out)
{
    size_t count[MSTX_ERROR_FINDING + 1] = {0};
    const char *between = "";
    char text[MS_HUMAN_MAX];
    if (more == 0)
        return;
    for (size_t i = 0; i < all->n; i++)
        count[all->p[i].severity] += !is_listed[i];
    ms_buf_printf(out, "  ... %s more (", ms_human_count(text, more));
    for (int s = MSTX_ERROR_FINDING; s >= MSTX_INFO_FINDING; s--) {
        if (count[s] == 0)
            continue;
        ms_buf_printf(out, "%s%s %s", between, mstx_severity_text((enum mstx_severity)s),
                      ms_human_count(text, count[s]));
        between = ", ";
    }
    ms_buf_puts(out, "); --most 0 shows all\n");
}

/* Writes what would make the steps shorter, and a query that shows why. */
static void text_advice(const struct mstx_report *r, size_t most, struct ms_buf *out)
{
    if (r->advice.n == 0)
        return;
    ms_buf_puts(out, "\nadvice\n");
    for (size_t i = 0; i < r->advice.n && (most == 0 || i < most); i++) {
        text_finding(&r->advice.p[i], out);
        ms_buf_printf(out, "           %s\n", r->advice.p[i].evidence);
    }
    if (most != 0 && r->advice.n > most)
        ms_buf_printf(out, "  %zu more: --all\n", r->advice.n - most);
}

/* Writes the findings, which are stored with the worst first. */
static void text_findings(const struct mstx_report *r, size_t most, struct ms_buf *out)
{
    bool *is_listed = ms_calloc(r->findings.n + 1, sizeof *is_listed);
    if (is_listed == NULL) {
        out->bad = MS_E_NOMEM;
        return;
    }
    const size_t listed = choose_findings(&r->findings, most, is_listed);
    ms_buf_puts(out, "\nfindings\n");
    for (size_t i = 0; i < r->findings.n; i++) {
        if (is_listed[i])
            text_finding(&r->findings.p[i], out);
    }
    text_more_findings(&r->findings, is_listed, r->findings.n - listed, out);
    if (r->findings.n == 0)
        ms_buf_puts(out, "  none\n");
    ms_free(is_listed);
}

static int slower_first(const void *pa, const void *pb)
{
    const struct mstx_step *a = pa, *b = pb;
    int64_t dur_a = a->end_ns - a->start_ns, dur_b = b->end_ns - b->start_ns;
    if (dur_a != dur_b)
        return dur_a > dur_b ? -1 : 1;
    return MS_ORDER(a->start_ns, b->start_ns, 0);
}

static void text_step(struct mstx_tl *tl, const struct mstx_step *s, int64_t median,
                      struct ms_buf *out)
{
    char time[MS_HUMAN_MAX];
    int64_t dur = s->end_ns - s->start_ns;
    const struct mstx_process *p = mstx_tl_process(tl, s->process);
    if (p->rank >= 0)
        ms_buf_printf(out, "  rank %3" PRId32, p->rank);
    else if (p->host.n != 0)
        ms_buf_printf(out, "  %.*s:%" PRIu32, MS_STR_ARG(p->host), p->pid);
    else {
        ms_buf_puts(out, "  ");
        ms_human_cell(out, p->name, 16);
    }
    ms_buf_printf(out, "  step %6" PRIu32 "  %12s  %6.2f x median\n", s->number,
                  ms_human_time(time, dur), median > 0 ? (double)dur / (double)median : 0);
}

static int by_number(const void *pa, const void *pb)
{
    const struct mstx_step *a = pa, *b = pb;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return slower_first(pa, pb);
}

/* Keeps of each step the process in which it was slowest, with all steps of that number there.
 * Returns how many remain. */
static size_t keep_slowest(struct mstx_step *step, size_t n)
{
    size_t kept = 0;
    qsort(step, n, sizeof *step, by_number);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (step[i].number != step[first].number)
            first = i;
        if (step[i].process == step[first].process)
            step[kept++] = step[i];
    }
    return kept;
}

/* Writes the table of steps, slowest first; the slowest process of each unless all are wanted. */
static void text_steps(struct mstx_tl *tl, const struct mstx_report *r, size_t most,
                       struct ms_buf *out)
{
    char time[MS_HUMAN_MAX];
    size_t n = r->steps.list.n;
    if (n == 0)
        return;
    struct mstx_step *step = ms_calloc(n, sizeof *step);
    if (step == NULL) {
        out->bad = MS_E_NOMEM;
        return;
    }
    memcpy(step, r->steps.list.p, n * sizeof *step);
    const size_t listed = most != 0 ? keep_slowest(step, n) : n;
    qsort(step, listed, sizeof *step, slower_first);
    ms_buf_printf(out, "\nsteps: %zu by %s, median %s; the slowest\n", n,
                  source_text(r->steps.source), ms_human_time(time, r->step_median_ns));
    for (size_t i = 0; i < listed && (most == 0 || i < most); i++)
        text_step(tl, &step[i], r->step_median_ns, out);
    ms_human_more(out, most != 0 ? n - (listed < most ? listed : most) : 0, "");
    ms_free(step);
}

/* Ends a row, which may stand for several. */
static void end_row(size_t rows, struct ms_buf *out)
{
    char count[MS_HUMAN_MAX];
    if (rows > 1)
        ms_buf_printf(out, "  and %s alike", ms_human_count(count, rows - 1));
    ms_buf_putc(out, '\n');
}

/* Writes a row of `rows` names; only one that stands alone has percentiles. */
static void text_name(const struct mstx_name_row *r, size_t rows, struct ms_buf *out)
{
    char total[MS_HUMAN_MAX], mean[MS_HUMAN_MAX], p50[MS_HUMAN_MAX], p99[MS_HUMAN_MAX];
    char max[MS_HUMAN_MAX];
    const bool alone = rows == 1;
    ms_buf_puts(out, "  ");
    ms_human_cell(out, r->domain, 14);
    ms_buf_putc(out, ' ');
    ms_human_cell(out, r->name, 32);
    ms_buf_printf(out, " %9" PRIu64, r->events);
    if (r->marks == r->events)
        ms_buf_puts(out, "  marks");
    else
        ms_buf_printf(out, " %11s %11s %11s %11s %11s %6.2f %%", ms_human_time(total, r->total_ns),
                      ms_human_time(mean, r->mean_ns), alone ? ms_human_time(p50, r->p50_ns) : "",
                      alone ? ms_human_time(p99, r->p99_ns) : "", ms_human_time(max, r->max_ns),
                      100 * r->share);
    end_row(rows, out);
}

/* Sums up the names of a row. */
static struct mstx_name_row sum_names(const struct mstx_report *r, const struct mstx_folds *folds,
                                      const struct mstx_folded *row)
{
    struct mstx_name_row sum = r->names.p[folds->member[row->first]];
    for (uint32_t i = 1; i < row->n; i++) {
        const struct mstx_name_row *x = &r->names.p[folds->member[row->first + i]];
        sum.events += x->events;
        sum.marks += x->marks;
        sum.total_ns += x->total_ns;
        sum.max_ns = x->max_ns > sum.max_ns ? x->max_ns : sum.max_ns;
        sum.share += x->share;
    }
    const uint64_t ranges = sum.events - sum.marks;
    sum.mean_ns = ranges != 0 ? sum.total_ns / (int64_t)ranges : sum.mean_ns;
    return sum;
}

static void text_names(const struct mstx_report *r, const struct mstx_folds *folds, size_t most,
                       struct ms_buf *out)
{
    if (r->names.n == 0)
        return;
    ms_buf_printf(out, "\n  %-14s %-32s %9s %11s %11s %11s %11s %11s %8s\n", "domain", "name",
                  "count", "total", "mean", "p50", "p99", "max", "share");
    for (size_t i = 0; i < folds->rows.n && (most == 0 || i < most); i++) {
        const struct mstx_name_row sum = sum_names(r, folds, &folds->rows.p[i]);
        text_name(&sum, folds->rows.p[i].n, out);
    }
    ms_human_more(out, most != 0 && folds->rows.n > most ? folds->rows.n - most : 0, " names");
}

static void text_comm(const struct mstx_comm_row *r, size_t rows, struct ms_buf *out)
{
    char bytes[MS_HUMAN_MAX], total[MS_HUMAN_MAX], mean[MS_HUMAN_MAX], max[MS_HUMAN_MAX];
    ms_buf_puts(out, "  ");
    ms_human_cell(out, ms_str_of(r->group), 28);
    if (r->size >= 0)
        ms_buf_printf(out, " %5" PRId64 "  ", r->size);
    else
        ms_buf_puts(out, "     ?  ");
    ms_human_cell(out, ms_str_of(r->op), 18);
    ms_buf_printf(out, " %9" PRId64 " %10s %11s %11s %11s", r->calls,
                  ms_human_bytes(bytes, (uint64_t)r->bytes), ms_human_time(total, r->total_ns),
                  ms_human_time(mean, r->mean_ns), ms_human_time(max, r->max_ns));
    end_row(rows, out);
}

/* Sums up the communicators of a row. */
static struct mstx_comm_row sum_comms(const struct mstx_report *r, const struct mstx_folds *folds,
                                      const struct mstx_folded *row)
{
    struct mstx_comm_row sum = r->comms.p[folds->member[row->first]];
    for (uint32_t i = 1; i < row->n; i++) {
        const struct mstx_comm_row *x = &r->comms.p[folds->member[row->first + i]];
        sum.calls += x->calls;
        sum.bytes += x->bytes;
        sum.total_ns += x->total_ns;
        sum.max_ns = x->max_ns > sum.max_ns ? x->max_ns : sum.max_ns;
    }
    sum.mean_ns = sum.calls != 0 ? sum.total_ns / sum.calls : 0;
    return sum;
}

/* Writes the table of communication by communicator; the table of names has the functions. */
static void text_comms(const struct mstx_report *r, const struct mstx_folds *folds, size_t most,
                       struct ms_buf *out)
{
    if (r->comms.n == 0)
        return;
    ms_buf_printf(out, "\n  %-28s %5s  %-18s %9s %10s %11s %11s %11s\n", "communicator", "ranks",
                  "operation", "calls", "bytes", "total", "mean", "max");
    for (size_t i = 0; i < folds->rows.n && (most == 0 || i < most); i++) {
        const struct mstx_comm_row sum = sum_comms(r, folds, &folds->rows.p[i]);
        text_comm(&sum, folds->rows.p[i].n, out);
    }
    ms_human_more(out, most != 0 && folds->rows.n > most ? folds->rows.n - most : 0, "");
}

struct stacks_text {
    struct ms_buf *out;
    size_t most; /* lines; 0: all */
};

/* Writes the stacks of a rank; control characters become dots. */
static void text_stack(void *ctx, int32_t rank, struct ms_str name, struct ms_str stacks)
{
    const struct stacks_text *to = ctx;
    struct ms_str line;
    size_t lines = 0;
    ms_buf_puts(to->out, rank >= 0 ? "\nstacks of " : "\nstacks of a process");
    if (rank >= 0)
        ms_buf_printf(to->out, "rank %" PRId32, rank);
    ms_buf_printf(to->out, " in %.*s\n", MS_STR_ARG(name));
    while (ms_str_split(&stacks, '\n', &line)) {
        if (to->most != 0 && ++lines > to->most) {
            ms_buf_puts(to->out, "  ... more; --most 0 shows all\n");
            return;
        }
        ms_buf_puts(to->out, "  ");
        for (uint32_t i = 0; i < line.n; i++)
            ms_buf_putc(to->out,
                        (unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7F ? '.' : line.p[i]);
        ms_buf_putc(to->out, '\n');
    }
}

static void text_stacks(struct mstx_tl *tl, size_t most, struct ms_buf *out)
{
    struct stacks_text to = {out, 2 * most};
    struct ms_err err = {0};
    if (mstx__hangs_stacks(tl, text_stack, &to, &err) == MS_E_NOMEM)
        out->bad = MS_E_NOMEM;
}

/* ---- what fits -------------------------------------------------------------- */

/* Rows of the tables of communicators and of names that are alike. */
struct text_folds {
    struct mstx_folds comms, names;
};

/* Gives every communicator a family: those of one size and operation. */
static enum ms_rc fold_comms(const mstx_comm_rows *rows, bool each, struct mstx_families *families,
                             struct mstx_foldable *row, struct mstx_folds *folds,
                             struct ms_err *err)
{
    char kind[64];
    for (size_t i = 0; i < rows->n; i++) {
        const struct mstx_comm_row *r = &rows->p[i];
        row[i] = (struct mstx_foldable){(uint32_t)i, (double)r->mean_ns, (double)r->total_ns};
        snprintf(kind, sizeof kind, "%" PRId64 " %.32s", r->size, r->op);
        if (!each)
            MS_TRY(mstx__family_find(families, ms_str_of(kind), ms_str_of(r->group), &row[i].family,
                                     err));
        else
            row[i].weight = (double)(rows->n - i); /* keeps the order */
    }
    return mstx__rows_fold(row, rows->n, folds, err);
}

/* Gives every name a family: those of one domain. */
static enum ms_rc fold_names(const mstx_name_rows *rows, bool each, struct mstx_families *families,
                             struct mstx_foldable *row, struct mstx_folds *folds,
                             struct ms_err *err)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct mstx_name_row *r = &rows->p[i];
        row[i] = (struct mstx_foldable){(uint32_t)i, (double)r->mean_ns, (double)r->total_ns};
        if (!each)
            MS_TRY(mstx__family_find(families, r->domain, r->name, &row[i].family, err));
        else
            row[i].weight = (double)(rows->n - i);
    }
    return mstx__rows_fold(row, rows->n, folds, err);
}

/* Folds both tables; each: every row stays alone. */
static enum ms_rc fold_tables(const struct mstx_report *r, bool each, struct text_folds *folds,
                              struct ms_err *err)
{
    const size_t n = r->comms.n > r->names.n ? r->comms.n : r->names.n;
    struct mstx_families comms = {.arena = NULL}, names = {.arena = NULL};
    struct mstx_foldable *row = ms_calloc(n + 1, sizeof *row);
    *folds = (struct text_folds){.comms = {.member = NULL}};
    enum ms_rc rc = row != NULL ? mstx__families_begin(&comms, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = mstx__families_begin(&names, err);
    if (rc == MS_OK)
        rc = fold_comms(&r->comms, each, &comms, row, &folds->comms, err);
    if (rc == MS_OK)
        rc = fold_names(&r->names, each, &names, row, &folds->names, err);
    mstx__families_free(&comms);
    mstx__families_free(&names);
    ms_free(row);
    return rc;
}

/* Returns how many rows each table may have so that all of them together fit one screen. */
static size_t rows_of_screen(const struct mstx_report *r, const struct text_folds *folds)
{
    enum { ROWS = 26, LEAST = 3, RANK_ROWS = 8 };
    const size_t ranks = r->use.rank.n < RANK_ROWS ? r->use.rank.n : RANK_ROWS;
    const size_t n[] = {r->findings.n, r->steps.list.n, ranks, folds->comms.rows.n,
                        folds->names.rows.n};
    size_t most = LEAST;
    for (size_t sum = 0; sum <= ROWS && most < ROWS; most++) {
        sum = 0;
        for (size_t i = 0; i < sizeof n / sizeof *n; i++)
            sum += n[i] < most + 1 ? n[i] : most + 1;
        if (sum > ROWS)
            break;
    }
    return most;
}

void mstx_report_text(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      size_t most, struct ms_buf *out)
{
    const struct mstx_finding *head = mstx_findings_headline(&r->findings);
    struct text_folds folds;
    struct ms_err err = {0};
    if (fold_tables(r, most == 0, &folds, &err) != MS_OK)
        out->bad = MS_E_NOMEM;
    if (most == MSTX_REPORT_SCREEN)
        most = rows_of_screen(r, &folds);
    if (head != NULL) {
        ms_message_speak(ms_message_stored(&head->message), out);
        ms_buf_puts(out, "\n\n");
    }
    text_head(tl, path, out);
    text_clocks(r, out);
    text_cost(r, out);
    text_findings(r, most, out);
    text_advice(r, most, out);
    text_stacks(tl, most, out);
    text_steps(tl, r, most, out);
    mstx_use_text(&r->use, most, out);
    if (r->has_breakdown)
        mstx_breakdown_text(tl, &r->breakdown, most, out);
    text_comms(r, &folds.comms, most, out);
    text_names(r, &folds.names, most, out);
    mstx__folds_free(&folds.comms);
    mstx__folds_free(&folds.names);
}

/* ---- JSON ------------------------------------------------------------------- */

static void key(struct ms_jwrite *w, const char *name)
{
    ms_jwrite_key(w, ms_str_of(name));
}

static void json_run(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                     struct ms_jwrite *w)
{
    int64_t start, end;
    uint64_t events = 0;
    mstx_tl_span(tl, &start, &end);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++)
        events += mstx_tl_track(tl, i)->events;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", path);
    ms_jwrite_ki64(w, "start_ns", start);
    ms_jwrite_ki64(w, "end_ns", end);
    ms_jwrite_ki64(w, "processes", (int64_t)mstx_tl_process_count(tl));
    ms_jwrite_ki64(w, "tracks", (int64_t)mstx_tl_track_count(tl));
    ms_jwrite_ki64(w, "events", (int64_t)events);
    ms_jwrite_kstr(w, "steps_by", source_text(r->steps.source));
    ms_jwrite_ki64(w, "step_median_ns", r->step_median_ns);
    if (r->clocks.hosts > 1) {
        ms_jwrite_ki64(w, "clock_hosts", r->clocks.hosts);
        ms_jwrite_ki64(w, "clock_uncertainty_ns", r->clocks.uncertainty_ns);
    }
    ms_jwrite_obj_end(w);
}

/* Writes a text as a string, an empty text as null. */
static void json_text(const struct ms_buf *b, struct ms_jwrite *w)
{
    if (ms_buf_check(b, &w->err) == MS_OK && b->n != 0)
        ms_jwrite_str(w, ms_buf_slice(b));
    else
        ms_jwrite_null(w);
}

static void json_argument(const struct ms_message_arg *arg, const char *name, struct ms_jwrite *w)
{
    if (arg == NULL)
        return;
    key(w, name);
    if (arg->is_number)
        ms_jwrite_f64(w, arg->number);
    else
        ms_jwrite_str(w, arg->text);
}

/* Writes why a rank makes the others wait, the range in which it spends its time, or else the cause; a second
 * cause with its share; and what a step would gain. */
static void json_reason(const struct mstx_finding *f, struct ms_jwrite *w)
{
    struct ms_message_args args;
    if (!ms_message_read(&args, ms_message_stored(&f->message).args))
        return;
    const struct ms_message_arg *doing = ms_message_find(&args, MS_STR("doing"));
    json_argument(doing != NULL ? doing : ms_message_find(&args, MS_STR("why")), "reason", w);
    json_argument(ms_message_find(&args, MS_STR("second")), "second_reason", w);
    json_argument(ms_message_find(&args, MS_STR("second_part")), "second_share", w);
    json_argument(ms_message_find(&args, MS_STR("gain_ns")), "gain_ns", w);
}

/* Writes the rank at the other end of a slow connection or link. */
static void json_peer(const struct mstx_finding *f, struct ms_jwrite *w)
{
    struct ms_message_args args;
    int64_t peer;
    if (strcmp(f->kind, "slow_link") != 0 ||
        !ms_message_read(&args, ms_message_stored(&f->message).args))
        return;
    const struct ms_message_arg *found = ms_message_find(&args, MS_STR("peer"));
    found = found != NULL ? found : ms_message_find(&args, MS_STR("dst"));
    if (found != NULL && ms_str_i64(found->text, &peer))
        ms_jwrite_i64(w, peer);
}

static void json_finding(const struct mstx_finding *f, mstx_where_fn *where, struct ms_jwrite *w)
{
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    ms_message_speak(ms_message_stored(&f->message), &text);
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "kind", f->kind);
    ms_jwrite_kstr(w, "severity", mstx_severity_text(f->severity));
    key(w, "ranks");
    ms_jwrite_arr(w);
    if (f->rank >= 0)
        ms_jwrite_i64(w, f->rank);
    json_peer(f, w);
    ms_jwrite_arr_end(w);
    key(w, "steps");
    ms_jwrite_arr(w);
    if (f->first_step >= 0) {
        ms_jwrite_i64(w, f->first_step);
        ms_jwrite_i64(w, f->last_step);
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_kf64(w, "value", f->value);
    json_reason(f, w);
    key(w, "text");
    json_text(&text, w);
    key(w, "where");
    ms_buf_clear(&text);
    if (where != NULL)
        where(f, &text);
    json_text(&text, w);
    ms_buf_free(&text);
    key(w, "evidence");
    if (f->evidence[0] != '\0')
        ms_jwrite_str(w, ms_str_of(f->evidence));
    else
        ms_jwrite_null(w);
    ms_jwrite_obj_end(w);
}

static void json_steps(struct mstx_tl *tl, const struct mstx_report *r, struct ms_jwrite *w)
{
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->steps.list.n; i++) {
        const struct mstx_step *s = &r->steps.list.p[i];
        ms_jwrite_obj(w);
        ms_jwrite_ki64(w, "rank", mstx_tl_process(tl, s->process)->rank);
        ms_jwrite_ki64(w, "step", s->number);
        ms_jwrite_ki64(w, "start_ns", s->start_ns);
        ms_jwrite_ki64(w, "duration_ns", s->end_ns - s->start_ns);
        if (i < r->flops.n && r->use.peak > 0) {
            const double most = r->use.peak * (double)(s->end_ns - s->start_ns) / 1e9;
            ms_jwrite_kf64(w, "mfu", most > 0 ? r->flops.p[i].model / most : 0);
            ms_jwrite_kf64(w, "hfu", most > 0 ? r->flops.p[i].machine / most : 0);
        }
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void json_ranks(struct mstx_tl *tl, struct ms_jwrite *w)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    ms_jwrite_arr(w);
    if (ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT rank, host, pid, state, records, events, unfinished, dropped,"
                         " cost_ns FROM processes ORDER BY rank, id",
                         &w->err) == MS_OK) {
        static const char *const names[] = {"records", "events", "unfinished", "dropped",
                                            "overhead_ns"};
        while (ms_stmt_next(st, &rc, &w->err)) {
            ms_jwrite_obj(w);
            ms_jwrite_ki64(w, "rank", ms_stmt_get_i64(st, 0));
            key(w, "host");
            ms_jwrite_str(w, ms_stmt_get_str(st, 1));
            ms_jwrite_ki64(w, "pid", ms_stmt_get_i64(st, 2));
            key(w, "state");
            ms_jwrite_str(w, ms_stmt_get_str(st, 3));
            for (int i = 0; i < 5; i++)
                ms_jwrite_ki64(w, names[i], ms_stmt_get_i64(st, 4 + i));
            ms_jwrite_obj_end(w);
        }
        ms_stmt_free(st);
    }
    ms_jwrite_arr_end(w);
}

static void json_name(const struct mstx_name_row *r, struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    key(w, "domain");
    ms_jwrite_str(w, r->domain);
    key(w, "name");
    ms_jwrite_str(w, r->name);
    ms_jwrite_ki64(w, "count", (int64_t)r->events);
    ms_jwrite_ki64(w, "marks", (int64_t)r->marks);
    ms_jwrite_ki64(w, "unfinished", (int64_t)r->unfinished);
    ms_jwrite_ki64(w, "total_ns", r->total_ns);
    ms_jwrite_ki64(w, "mean_ns", r->mean_ns);
    ms_jwrite_ki64(w, "p50_ns", r->p50_ns);
    ms_jwrite_ki64(w, "p99_ns", r->p99_ns);
    ms_jwrite_ki64(w, "max_ns", r->max_ns);
    ms_jwrite_kf64(w, "share", r->share);
    ms_jwrite_obj_end(w);
}

static void json_comm(const struct mstx_comm_row *r, struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "communicator", r->group);
    ms_jwrite_ki64(w, "size", r->size);
    ms_jwrite_kstr(w, "op", r->op);
    ms_jwrite_ki64(w, "ranks", r->ranks);
    ms_jwrite_ki64(w, "calls", r->calls);
    ms_jwrite_ki64(w, "bytes", r->bytes);
    ms_jwrite_ki64(w, "total_ns", r->total_ns);
    ms_jwrite_ki64(w, "mean_ns", r->mean_ns);
    ms_jwrite_ki64(w, "max_ns", r->max_ns);
    ms_jwrite_obj_end(w);
}

void mstx_report_json(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      mstx_where_fn *where, struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    key(w, "run");
    json_run(tl, r, path, w);
    key(w, "findings");
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->findings.n; i++)
        json_finding(&r->findings.p[i], where, w);
    ms_jwrite_arr_end(w);
    key(w, "steps");
    json_steps(tl, r, w);
    if (r->advice.n != 0) {
        key(w, "advice");
        ms_jwrite_arr(w);
        for (size_t i = 0; i < r->advice.n; i++)
            json_finding(&r->advice.p[i], where, w);
        ms_jwrite_arr_end(w);
    }
    key(w, "ranks");
    json_ranks(tl, w);
    key(w, "names");
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->names.n; i++)
        json_name(&r->names.p[i], w);
    ms_jwrite_arr_end(w);
    key(w, "communication");
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->comms.n; i++)
        json_comm(&r->comms.p[i], w);
    ms_jwrite_arr_end(w);
    mstx_use_json(&r->use, w);
    if (r->has_breakdown) {
        key(w, "breakdown");
        mstx_breakdown_json(tl, &r->breakdown, w);
    }
    ms_jwrite_obj_end(w);
}
