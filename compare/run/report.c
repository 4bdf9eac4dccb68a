/* SPDX-License-Identifier: MIT
 *
 * report: what a comparison found, and its text for people.
 */
#include "compare/run/report.h"
#include "compare/table/comparison.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- suspects ------------------------------------------------------------- */

enum { SHOWN = 5 };

static void print_ranks(const struct cmp_suspect *s)
{
    if (s->nranks == 0 || s->ranks[0] < 0)
        return;
    fputs(s->nranks > 1 ? " [ranks " : " [rank ", stdout);
    for (size_t i = 0; i < s->nranks && i < SHOWN; i++)
        printf("%s%d", i != 0 ? ", " : "", s->ranks[i]);
    fputs(s->nranks > SHOWN ? ", ...]" : "]", stdout);
}

void cmp_report_message_text(struct ms_stored_message message)
{
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    ms_message_speak(message, &text);
    printf("%.*s", MS_STR_ARG(ms_buf_slice(&text)));
    ms_buf_free(&text);
}

static void print_suspect(const struct cmp_suspect *s, bool several)
{
    struct ms_str name = s->target.p != NULL ? s->target : s->golden;
    printf("suspect %u  %.*s", s->place, MS_STR_ARG(name));
    if (several)
        print_ranks(s);
    if (s->module.n != 0)
        printf("  in %.*s", MS_STR_ARG(s->module));
    fputs("\n           ", stdout);
    cmp_report_message_text(s->message);
    putchar('\n');
    if (s->pattern != NULL)
        printf("           pattern: %s\n", s->pattern);
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
        puts(compared ? "no suspect: nothing differs more than the noise of this pair explains"
                      : "nothing was compared: no row has a partner on the other side");
    for (size_t i = 0; i < n && i < SHOWN; i++)
        print_suspect(&list[i], several);
    if (n > SHOWN)
        printf("and %zu more behind these; --format json lists them\n", n - SHOWN);
    putchar('\n');
}

static void put_name(struct ms_jwrite *w, const char *key, struct ms_str name)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (name.p != NULL)
        ms_jwrite_str(w, name);
    else
        ms_jwrite_null(w);
}

void cmp_report_message_json(struct ms_jwrite *w, struct ms_stored_message message)
{
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    ms_message_speak(message, &text);
    if (ms_buf_check(&text, &w->err) == MS_OK)
        ms_jwrite_str(w, ms_buf_slice(&text));
    ms_buf_free(&text);
}

static void put_figure(struct ms_jwrite *w, const char *key, double x)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (isfinite(x))
        ms_jwrite_f64(w, x);
    else
        ms_jwrite_null(w);
}

static void put_suspect(struct ms_jwrite *w, const struct cmp_suspect *s)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "place", s->place);
    /* an operator that the target lacks is named by its golden name */
    put_name(w, "target", s->target.p != NULL ? s->target : s->golden);
    put_name(w, "golden", s->golden);
    ms_jwrite_kmaybe(w, "rank", s->rank);
    ms_jwrite_kmaybe(w, "step", s->step);
    ms_jwrite_kstr(w, "role", cmp_role_names[s->role]);
    ms_jwrite_key(w, MS_STR("group"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->ngroup; i++)
        ms_jwrite_str(w, s->group[i]);
    ms_jwrite_arr_end(w);
    put_figure(w, "score", s->score);
    put_name(w, "pattern", s->pattern != NULL ? ms_str_of(s->pattern) : MS_STR_NONE);
    ms_jwrite_key(w, MS_STR("text"));
    cmp_report_message_json(w, s->message);
    ms_jwrite_kstr(w, "why", cmp_why_names[s->why]);
    put_figure(w, "in", s->in);
    put_figure(w, "out", s->out);
    put_figure(w, "floor", s->floor);
    ms_jwrite_ki64(w, "later", (int64_t)s->later);
    ms_jwrite_ki64(w, "more", (int64_t)s->more);
    put_name(w, "module", s->module.n != 0 ? s->module : MS_STR_NONE);
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->nranks && s->ranks[i] >= 0; i++)
        ms_jwrite_i64(w, s->ranks[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

static void report_suspects_json(struct ms_jwrite *w, const struct cmp_source *source)
{
    const struct cmp_suspect *list = NULL;
    size_t n = source != NULL ? cmp_source_suspects(source, &list) : 0;
    ms_jwrite_key(w, MS_STR("suspects"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        put_suspect(w, &list[i]);
    ms_jwrite_arr_end(w);
    const struct ms_stored_message *notes = NULL;
    size_t nnotes = source != NULL ? cmp_source_notes(source, &notes) : 0;
    ms_jwrite_key(w, MS_STR("notes"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < nnotes; i++)
        cmp_report_message_json(w, notes[i]);
    ms_jwrite_arr_end(w);
}

struct cmp_result *cmp_report_add(struct cmp_report *r, const struct cmp_couple *couple)
{
    struct cmp_result *res = ms_calloc(1, sizeof *res);
    struct cmp_result **slot = res != NULL ? ms_vec_push(&r->list) : NULL;
    if (slot == NULL) {
        ms_free(res);
        return NULL;
    }
    *slot = res;
    res->couple = couple;
    return res;
}

/* ---- copying from a comparison ------------------------------------------------ */

static struct ms_str node_name(const struct cmp *c, bool golden, uint32_t node)
{
    return node != MS_MAP_NONE ? probe_node_name(cmp_dump(c, golden), node) : MS_STR("");
}

static enum ms_rc copy_place(const struct cmp *c, struct cmp_view *v, const struct cmp_place *p,
                             struct cmp_reported_row *told, struct ms_err *err)
{
    MS_TRY(cmp_view_group(c, p->group, v, err));
    const struct cmp_row *row = &v->rows.p[p->row];
    struct cmp_pairing nodes = cmp_group_nodes(c, p->group);
    const char *why = "";
    for (unsigned i = CMP_NOTES; i-- > 0;) {
        if (row->notes & 1U << i)
            why = cmp_note_texts[i];
    }
    told->row = ms_str_dup(row->t.present ? row->t.name : row->b.name);
    told->op = ms_str_dup(v->op);
    told->golden_op = ms_str_dup(node_name(c, true, nodes.golden));
    told->text = ms_str_dup(ms_str_of(why));
    told->score = p->score;
    bool fine =
        told->row != NULL && told->op != NULL && told->golden_op != NULL && told->text != NULL;
    return fine ? MS_OK : ms_no_memory(err);
}

static enum ms_rc copy_problems(struct cmp_result *r, const struct cmp *c, struct ms_err *err)
{
    const struct ms_str *list;
    size_t n = cmp_problems(c, &list);
    for (size_t i = 0; i < n; i++) {
        char **slot = ms_vec_push(&r->problems);
        if (slot != NULL)
            *slot = ms_str_dup(list[i]);
        if (slot == NULL || *slot == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static enum ms_rc tell_all(struct cmp_result *r, const struct cmp *c, struct cmp_view *v,
                           struct ms_err *err)
{
    if (r->sum.has_first)
        MS_TRY(copy_place(c, v, &r->sum.first, &r->first, err));
    for (; r->nworst < r->sum.nworst; r->nworst++)
        MS_TRY(copy_place(c, v, &r->sum.worst[r->nworst], &r->worst[r->nworst], err));
    return copy_problems(r, c, err);
}

static void take_size(struct cmp_result *r, const struct cmp *c)
{
    r->json_bytes = cmp_dump(c, false)->file.n + cmp_dump(c, true)->file.n;
    r->tensor_bytes = cmp_bytes_read(c);
    r->partners = cmp_partners_count(c);
    r->done = true;
}

enum ms_rc cmp_report_take(struct cmp_result *r, const struct cmp *c, struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = tell_all(r, c, &v, err);
    cmp_view_free(&v);
    if (rc == MS_OK && c->set.conf.ext)
        rc = cmp_pair_list_take(&r->pairs, c, err);
    take_size(r, c);
    return rc;
}

enum ms_rc cmp_report_count(struct cmp_result *r, const struct cmp *c, struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    for (size_t g = 0; g < cmp_groups(c) && rc == MS_OK; g++) {
        if (g % 256 == 0)
            rc = cmp_view_renew(&v, err);
        if (rc == MS_OK)
            rc = cmp_view_group(c, g, &v, err);
        if (rc == MS_OK)
            cmp_summary_add(&r->sum, c, g, &v);
    }
    cmp_view_free(&v);
    r->sum.has_first = false; /* for -da the first difference comes from the analysis */
    r->sum.nworst = 0;
    take_size(r, c);
    return rc;
}

enum ms_rc cmp_report_blame(struct cmp_result *r, const struct cmp *c, size_t group,
                            struct ms_err *err)
{
    struct cmp_view v;
    struct cmp_place place = {.group = group};
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = cmp_view_group(c, group, &v, err);
    for (uint32_t i = 0; rc == MS_OK && i < v.rows.n; i++) {
        if (v.rows.p[i].is_output)
            place.row = i;
    }
    if (rc == MS_OK)
        rc = copy_place(c, &v, &place, &r->first, err);
    cmp_view_free(&v);
    r->sum.has_first = rc == MS_OK;
    return rc;
}

bool cmp_report_differs(const struct cmp_report *r)
{
    for (size_t i = 0; i < r->list.n; i++) {
        if (r->list.p[i]->sum.level[CMP_PASS] != r->list.p[i]->sum.rows)
            return true;
    }
    return false;
}

static void told_free(struct cmp_reported_row *t)
{
    ms_free(t->row);
    ms_free(t->op);
    ms_free(t->golden_op);
    ms_free(t->text);
}

void cmp_report_free(struct cmp_report *r)
{
    for (size_t i = 0; i < r->list.n; i++) {
        struct cmp_result *res = r->list.p[i];
        told_free(&res->first);
        for (unsigned k = 0; k < CMP_WORST; k++)
            told_free(&res->worst[k]);
        for (size_t k = 0; k < res->problems.n; k++)
            ms_free(res->problems.p[k]);
        ms_vec_free(&res->problems);
        ms_vec_free(&res->trail.steps);
        cmp_files_free(&res->files);
        cmp_pair_list_free(&res->pairs);
        ms_free(res);
    }
    ms_vec_free(&r->list);
}

/* ---- JSON ------------------------------------------------------------------ */

static void put_summary(struct ms_jwrite *w, const struct cmp_report *r)
{
    struct cmp_summary all = {0};
    for (size_t i = 0; i < r->list.n; i++)
        cmp_summary_join(&all, &r->list.p[i]->sum);
    ms_jwrite_key(w, MS_STR("summary"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rows", (int64_t)all.rows);
    ms_jwrite_ki64(w, "pass", (int64_t)all.level[CMP_PASS]);
    ms_jwrite_ki64(w, "warning", (int64_t)all.level[CMP_WARNING]);
    ms_jwrite_ki64(w, "error", (int64_t)all.level[CMP_ERROR]);
    ms_jwrite_ki64(w, "unmatched_target", (int64_t)all.unmatched_target);
    ms_jwrite_ki64(w, "unmatched_golden", (int64_t)all.unmatched_golden);
    ms_jwrite_kf64(w, "seconds", (double)r->took_ns / 1e9);
    ms_jwrite_obj_end(w);
}

static void put_first(struct ms_jwrite *w, const struct cmp_report *r)
{
    ms_jwrite_key(w, MS_STR("first_difference"));
    for (size_t i = 0; i < r->list.n; i++) {
        const struct cmp_result *res = r->list.p[i];
        if (!res->done || !res->sum.has_first)
            continue;
        ms_jwrite_obj(w);
        ms_jwrite_kstr(w, "target", res->first.op);
        ms_jwrite_kstr(w, "golden", res->first.golden_op);
        ms_jwrite_kstr(w, "row", res->first.row);
        ms_jwrite_kmaybe(w, "rank", res->couple->t->rank);
        ms_jwrite_kmaybe(w, "step", res->couple->t->step);
        ms_jwrite_kstr(w, "text", res->first.text);
        ms_jwrite_obj_end(w);
        return;
    }
    ms_jwrite_null(w);
}

/* Writes the sum over all ranks; null when rows were paired by name. */
static void put_partners(struct ms_jwrite *w, const struct cmp_report *r)
{
    struct cmp_partners all = {0};
    for (size_t i = 0; i < r->list.n; i++) {
        const struct cmp_partners *p = &r->list.p[i]->partners;
        all.aligned |= p->aligned;
        all.by_value |= p->by_value;
        all.nodes += p->nodes;
        all.paired += p->paired;
        all.unsure += p->unsure;
    }
    ms_jwrite_key(w, MS_STR("alignment"));
    if (!all.aligned) {
        ms_jwrite_null(w);
        return;
    }
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "by", all.by_value ? "values" : "structure");
    ms_jwrite_ki64(w, "nodes", (int64_t)all.nodes);
    ms_jwrite_ki64(w, "paired", (int64_t)all.paired);
    ms_jwrite_ki64(w, "unsure", (int64_t)all.unsure);
    ms_jwrite_key(w, MS_STR("pairs"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->list.n; i++)
        cmp_pair_list_json(&r->list.p[i]->pairs, w);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

static void put_files(struct ms_jwrite *w, const struct cmp_report *r)
{
    ms_jwrite_key(w, MS_STR("files"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->list.n; i++) {
        for (size_t k = 0; k < r->list.p[i]->files.list.n; k++)
            ms_jwrite_str(w, ms_str_of(r->list.p[i]->files.list.p[k]));
    }
    ms_jwrite_arr_end(w);
}

enum ms_rc cmp_report_json(const struct cmp_report *r, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    put_summary(&w, r);
    report_suspects_json(&w, r->source);
    put_first(&w, r);
    put_partners(&w, r);
    put_files(&w, r);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- tables that are no comparisons of dump.json -------------------------- */

static void put_sheet_count(struct ms_jwrite *w, const char *name, uint64_t n)
{
    ms_jwrite_key(w, ms_str_of(name));
    ms_jwrite_u64(w, n);
}

static void put_texts(struct ms_jwrite *w, const char *name, char *const *list, size_t n)
{
    ms_jwrite_key(w, ms_str_of(name));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_str(w, ms_str_of(list[i]));
    ms_jwrite_arr_end(w);
}

static enum ms_rc print_sheet_json(const struct cmp_sheet_sum *sum, const struct cmp_files *files,
                                   struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    put_sheet_count(&w, "rows", sum->rows);
    put_sheet_count(&w, "accurate", sum->yes);
    put_sheet_count(&w, "inaccurate", sum->no);
    put_sheet_count(&w, "not_compared", sum->rest);
    put_texts(&w, "problems", sum->notes.p, sum->notes.n);
    put_texts(&w, "files", files->list.p, files->list.n);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

enum ms_rc cmp_sheet_print(const struct cmp_sheet_sum *sum, const struct cmp_files *files,
                           bool json, struct ms_err *err)
{
    if (json)
        return print_sheet_json(sum, files, err);
    printf("%llu rows: %llu accurate, %llu not, %llu could not be compared\n",
           (unsigned long long)sum->rows, (unsigned long long)sum->yes, (unsigned long long)sum->no,
           (unsigned long long)sum->rest);
    for (size_t i = 0; i < files->list.n; i++)
        puts(files->list.p[i]);
    return MS_OK;
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
        report_suspects_text(r->source, r->list.n > 1, has_pairs(r));
    for (size_t i = 0; i < r->list.n && !folded; i++) {
        if (r->list.p[i]->done)
            print_result(r->list.p[i], r->list.n > 1, most);
    }
    if (folded)
        print_groups(r, most);
    print_speed(r);
    print_files(r, folded ? most : 0);
}
