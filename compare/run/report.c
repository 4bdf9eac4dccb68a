/* SPDX-License-Identifier: MIT
 *
 * report: what a comparison found, and its JSON for programs.
 */
#include "compare/run/report.h"
#include "compare/table/comparison.h"
#include "probe/base/jprint.h"
#include "probe/base/mem.h"

#include <math.h>
#include <stdio.h>

/* ---- suspects ------------------------------------------------------------- */

void cmp_report_message_text(struct ms_stored_message message)
{
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    ms_message_speak(message, &text);
    printf("%.*s", MS_STR_ARG(ms_buf_slice(&text)));
    ms_buf_free(&text);
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
    put_figure(w, "certainty", s->certainty);
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

/* Names the operators whose tensors would decide; empty where that is not needed. */
static void put_undecided(struct ms_jwrite *w, const struct cmp_source *source)
{
    const struct ms_str *names;
    size_t n = source != NULL ? cmp_source_undecided(source, &names) : 0;
    ms_jwrite_key(w, MS_STR("undecided"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_str(w, names[i]);
    ms_jwrite_arr_end(w);
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
    put_undecided(w, source);
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

bool cmp_report_compared(const struct cmp_report *r)
{
    uint64_t pairs = 0;
    for (size_t i = 0; i < r->list.n; i++) {
        const struct cmp_summary *s = &r->list.p[i]->sum;
        pairs += s->rows - s->unmatched_target - s->unmatched_golden;
    }
    return pairs != 0;
}

bool cmp_report_differs(const struct cmp_report *r)
{
    for (size_t i = 0; i < r->list.n; i++) {
        if (r->list.p[i]->sum.level[CMP_PASS] != r->list.p[i]->sum.rows)
            return true;
    }
    return false;
}

bool cmp_report_broke(const struct cmp_report *r)
{
    for (size_t i = 0; i < r->list.n; i++) {
        if (r->list.p[i]->err.rc == MS_E_IO)
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
