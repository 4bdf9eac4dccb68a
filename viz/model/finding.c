/* SPDX-License-Identifier: MIT
 *
 * finding: reads the findings of both databases into one list.
 */
#include "viz/model/finding.h"

#include "probe/base/assert.h"
#include "probe/base/jread.h"
#include "probe/base/store.h"
#include "viz/model/session.h"

#include "probe/trend/notable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- where a difference begins ------------------------------------------------------ */

enum { TRIED_MAX = 2000, PAGE = 200 };

/* Tells whether an item of the list has a result other than "pass"; *any: whether one has a
 * result. */
static bool is_failed(struct ms_str json, const char *also, bool *any)
{
    struct ms_jread r;
    bool is_result = false, bad = false;
    enum ms_jtok tok;
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    while ((tok = ms_jread_next(&r)) > MS_J_END) {
        if (tok == MS_J_STR && is_result) {
            *any = true;
            bad |= ms_str_is(r.text, "error") || ms_str_is(r.text, also);
        }
        is_result = tok == MS_J_KEY && ms_str_is(r.text, "Result");
    }
    return bad;
}

static enum ms_rc makes_it(struct graph_view *v, struct graph_spot at, unsigned want,
                           struct ms_str name, bool *yes, struct ms_err *err)
{
    const char *also = want == GRAPH_WANT_WARNING ? "warning" : "error";
    struct graph_page page = {.more = false};
    struct graph_detail d;
    bool in = false, out = false;
    enum ms_rc rc = graph_view_node(v, at, name, &page, &d, err);
    *yes = rc == MS_OK && !is_failed(d.input, "warning", &in) && is_failed(d.output, also, &out);
    graph_page_free(&page);
    return rc;
}

/* Finds the order of the node. The items of some files have no results; then the first differing
 * node is taken. */
static enum ms_rc seek(struct graph_view *v, struct graph_spot at, unsigned want, int64_t *order,
                       struct ms_err *err)
{
    struct graph_page list = {.more = true};
    enum ms_rc rc = MS_OK;
    int64_t after = -1;
    bool yes = false;
    *order = -1;
    for (size_t tried = 0; rc == MS_OK && list.more && !yes && tried < TRIED_MAX;) {
        rc = graph_view_filter(v, at, want, after, PAGE, &list, err);
        for (size_t i = 0; rc == MS_OK && i < list.rows.n && !yes; i++, tried++) {
            after = list.rows.p[i].order;
            if (*order < 0)
                *order = after;
            rc = makes_it(v, at, want, list.rows.p[i].name, &yes, err);
            if (yes)
                *order = after;
        }
    }
    graph_page_free(&list);
    return rc;
}

enum ms_rc viz_first_divergence(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                                struct ms_err *err)
{
    unsigned want = GRAPH_WANT_ERROR;
    int64_t order;
    at.golden = false;
    MS_TRY(graph_view_suspect(v, at, page, err));
    if (page->rows.n != 0)
        return MS_OK;
    MS_TRY(seek(v, at, want, &order, err));
    if (order < 0) {
        want = GRAPH_WANT_WARNING;
        MS_TRY(seek(v, at, want, &order, err));
    }
    return graph_view_next(v, at, want, order < 0 ? INT64_MAX : order - 1, false, page, err);
}

enum { TEXT_MAX = 16 << 20, DIFFERENCES_MAX = 64, OVERFLOWS_SEEN = 256, OPERATOR = 1 };

static const char *const names[] = {"error", "warning", "info"};

bool viz_finding_has_rank(const struct viz_finding *f, int64_t rank)
{
    struct ms_str rest = f->ranks, part;
    int64_t one;
    while (ms_str_split(&rest, ',', &part)) {
        if (ms_str_i64(part, &one) && one == rank)
            return true;
    }
    return false;
}

char viz_severity_letter(enum viz_severity s)
{
    ms_assert(s <= VIZ_INFO);
    return "EWi"[s];
}

const char *viz_severity_name(enum viz_severity s)
{
    ms_assert(s <= VIZ_INFO);
    return names[s];
}

static enum viz_severity severity_of(struct ms_str name)
{
    enum viz_severity s = VIZ_ERROR;
    while (s < VIZ_INFO && !ms_str_is(name, names[s]))
        s++;
    return s;
}

/* ---- the timeline's ------------------------------------------------------------- */

#define SEVERITY "CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END"
#define TIMELINE_SQL(message)                                                                      \
    "SELECT f.severity, f.kind, f.text, ifnull(f.ranks, ''), ifnull(f.first_step, -1),"            \
    " ifnull(f.last_step, -1), f.value,"                                                           \
    " ifnull((SELECT min(s.start_ns) FROM steps s WHERE s.number >= f.first_step AND"              \
    "         s.number <= ifnull(f.last_step, f.first_step)), 0),"                                 \
    " ifnull((SELECT max(s.end_ns) FROM steps s WHERE s.number >= f.first_step AND"                \
    "         s.number <= ifnull(f.last_step, f.first_step)), 0)," message                         \
    " FROM (SELECT * FROM findings ORDER BY " SEVERITY ", id LIMIT ?1) f ORDER BY f.id"

static enum ms_rc keep_text(struct viz_findings *f, struct ms_str s, struct ms_str *out,
                            struct ms_err *err)
{
    *out = ms_arena_str(f->arena, s);
    return out->p != NULL ? MS_OK : ms_arena_fail(f->arena, err);
}

/* Formats the sentence in the viewer's language; `stored` is used when the database has no
 * message, or one of an unknown newer kind. */
static enum ms_rc keep_sentence(struct viz_findings *f, struct ms_stored_message message,
                                struct ms_str stored, struct ms_str *out, struct ms_err *err)
{
    struct ms_buf b = {.max = TEXT_MAX};
    const bool is_known = viz_words_say(f->language, message, &b);
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK)
        rc = keep_text(f, is_known ? ms_buf_slice(&b) : stored, out, err);
    ms_buf_free(&b);
    return rc;
}

bool viz_finding_place(struct viz_place *to, struct ms_str kind, int64_t rank, int64_t step,
                       int64_t from_ns, int64_t to_ns)
{
    static const char *const of_all_ranks[] = {"mismatch", "straggler", "fail_slow", "slow_link",
                                               "absent"};
    enum { AROUND_NS = 1000000 };
    bool is_of_all = false;
    for (size_t i = 0; i < sizeof of_all_ranks / sizeof *of_all_ranks; i++)
        is_of_all |= ms_str_is(kind, of_all_ranks[i]);
    *to = viz_place_of(from_ns != 0 || !is_of_all ? VIZ_TIMELINE : VIZ_CLUSTER);
    to->rank = rank;
    if (to->screen == VIZ_CLUSTER)
        return true;
    if (from_ns == 0) {
        to->step = step;
        return false;
    }
    to->from = from_ns - AROUND_NS;
    to->to = (to_ns > from_ns ? to_ns : from_ns) + AROUND_NS;
    return true;
}

/* Sets the finding's own place, or else the time range of its steps. */
static void set_place(struct viz_finding *to, struct ms_stmt *st)
{
    int64_t rank = -1;
    (void)ms_str_i64(to->ranks, &rank);
    if (viz_finding_place(&to->place, to->kind, rank, to->first_step, ms_stmt_get_i64(st, 11),
                          ms_stmt_get_i64(st, 12)))
        return;
    to->place.from = ms_stmt_get_i64(st, 7);
    to->place.to = ms_stmt_get_i64(st, 8);
}

static enum ms_rc add_timeline(struct viz_findings *f, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_finding *to = ms_vec_push(&f->list);
    if (to == NULL)
        return ms_no_memory(err);
    *to = (struct viz_finding){.severity = severity_of(ms_stmt_get_str(st, 0)),
                               .first_step = ms_stmt_get_i64(st, 4),
                               .last_step = ms_stmt_get_i64(st, 5),
                               .value = ms_stmt_get_f64(st, 6)};
    const struct ms_stored_message message = {ms_stmt_get_str(st, 9), ms_stmt_get_str(st, 10)};
    MS_TRY(keep_text(f, ms_stmt_get_str(st, 1), &to->kind, err));
    MS_TRY(keep_sentence(f, message, ms_stmt_get_str(st, 2), &to->text, err));
    MS_TRY(keep_text(f, ms_stmt_get_str(st, 3), &to->ranks, err));
    set_place(to, st);
    return MS_OK;
}

/* Counts the findings that are not listed, given the number of those that are. The most severe are
 * listed first. */
static enum ms_rc count_unlisted(struct viz_findings *f, struct ms_store *store, uint64_t listed,
                                 struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(
        store, &st, "SELECT " SEVERITY " s, count(*) FROM findings GROUP BY s ORDER BY s", err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        const uint64_t n = (uint64_t)ms_stmt_get_i64(st, 1), here = n < listed ? n : listed;
        listed -= here;
        f->unlisted[ms_stmt_get_i64(st, 0)] = n - here;
    }
    ms_stmt_free(st);
    return rc;
}

/* Ends the list with the number of those that are not in it. */
static enum ms_rc add_unlisted(struct viz_findings *f, struct ms_err *err)
{
    uint64_t more = 0;
    struct ms_message m;
    for (enum viz_severity s = VIZ_ERROR; s <= VIZ_INFO; s++)
        more += f->unlisted[s];
    if (more == 0)
        return MS_OK;
    struct viz_finding *to = ms_vec_push(&f->list);
    if (to == NULL)
        return ms_no_memory(err);
    *to = (struct viz_finding){.severity = VIZ_INFO,
                               .kind = MS_STR("unlisted"),
                               .ranks = MS_STR(""),
                               .first_step = -1,
                               .last_step = -1,
                               .value = (double)more,
                               .place = viz_place_of(VIZ_TIMELINE)};
    ms_message_begin(&m, &viz_say_unlisted);
    ms_message_i64(&m, "more", (int64_t)more);
    return keep_sentence(f, ms_message_stored(&m), MS_STR("more findings are not listed here"),
                         &to->text, err);
}

static enum ms_rc read_timeline(struct viz_findings *f, struct mstx_tl *tl, struct ms_err *err)
{
    struct ms_stmt *st;
    const size_t before = f->list.n;
    struct ms_store *store = mstx_tl_store(tl);
    if (ms_store_prepare(store, &st, TIMELINE_SQL("f.message, f.args, f.from_ns, f.to_ns"), NULL) !=
        MS_OK) /* an older database */
        MS_TRY(ms_store_prepare(store, &st, TIMELINE_SQL("NULL, NULL, 0, 0"), err));
    enum ms_rc rc = MS_OK;
    ms_stmt_i64(st, 1, VIZ_FINDINGS_MOST);
    while (ms_stmt_next(st, &rc, err))
        rc = add_timeline(f, st, err);
    ms_stmt_free(st);
    if (rc == MS_OK)
        rc = count_unlisted(f, store, f->list.n - before, err);
    return rc;
}

/* ---- the graph's ---------------------------------------------------------------- */

static enum ms_rc add_node(struct viz_findings *f, const struct viz_finding *what,
                           struct ms_stored_message message, struct graph_spot at,
                           struct ms_str node, struct ms_err *err)
{
    struct viz_finding *to = ms_vec_push(&f->list);
    if (to == NULL)
        return ms_no_memory(err);
    char rank[24];
    snprintf(rank, sizeof rank, "%" PRId64, at.rank);
    *to = *what;
    to->first_step = to->last_step = at.step;
    to->place = viz_place_of(VIZ_GRAPH);
    to->place.step = at.step;
    to->place.rank = at.rank;
    to->place.golden = at.golden;
    MS_TRY(keep_text(f, what->kind, &to->kind, err));
    MS_TRY(keep_sentence(f, message, what->text, &to->text, err));
    MS_TRY(keep_text(f, ms_str_of(rank), &to->ranks, err));
    return keep_text(f, node, &to->place.node, err);
}

/* Appends how sure it is that the suspect is the mistake, if the file tells. */
static enum ms_rc add_certainty(struct viz_findings *f, double certainty, struct ms_err *err)
{
    struct viz_finding *to = &f->list.p[f->list.n - 1];
    struct ms_message m;
    if (isnan(certainty))
        return MS_OK;
    ms_message_begin(&m, &viz_say_sure);
    ms_message_str(&m, "text", to->text);
    ms_message_i64(&m, "percent", (int64_t)(100 * certainty));
    return keep_sentence(f, ms_message_stored(&m), to->text, &to->text, err);
}

static enum ms_rc add_suspect(struct viz_findings *f, const struct graph_finding *s,
                              struct ms_err *err)
{
    const struct viz_finding what = {.severity = graph_is_likely(s) ? VIZ_ERROR : VIZ_WARNING,
                                     .kind = s->role,
                                     .text = s->text,
                                     .value = s->score};
    const struct graph_spot at = {s->step, s->rank, s->target.n == 0};
    MS_TRY(add_node(f, &what, (struct ms_stored_message){s->message, s->args}, at,
                    at.golden ? s->golden : s->target, err));
    if (s->ranks.n != 0)
        MS_TRY(keep_text(f, s->ranks, &f->list.p[f->list.n - 1].ranks, err));
    return add_certainty(f, s->certainty, err);
}

/* Adds the suspects, if the comparison computed them. */
static enum ms_rc add_suspects(struct viz_findings *f, struct graph_view *v, struct ms_err *err)
{
    struct graph_findings list = {.arena = NULL};
    enum ms_rc rc = graph_view_findings(v, &list, err);
    for (size_t i = 0; rc == MS_OK && i < list.list.n; i++)
        rc = add_suspect(f, &list.list.p[i], err);
    graph_findings_free(&list);
    return rc;
}

/* Counts the nodes of a step and rank by state, the root included. */
static enum ms_rc count_states(struct graph_view *v, struct graph_spot at, struct graph_rollup *n,
                               struct ms_err *err)
{
    struct graph_page root = {.more = false};
    enum ms_rc rc = graph_view_children(v, at, MS_STR(""), -1, -1, 1, &root, err);
    *n = (struct graph_rollup){.worst = GRAPH_NONE};
    if (rc == MS_OK && root.rows.n != 0)
        rc = graph_view_rollup(v, at, root.rows.p[0].name, n, err);
    graph_page_free(&root);
    return rc;
}

static bool has_text(struct ms_str in, const char *text)
{
    return ms_str_find_str(in, ms_str_of(text)) >= 0;
}

/* Tells whether a node gives values that are not finite; its items are JSON with figures as text. */
static enum ms_rc gives_nonfinite(struct graph_view *v, struct graph_spot at, struct ms_str node,
                                  bool *is, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_detail d;
    enum ms_rc rc = graph_view_node(v, at, node, &page, &d, err);
    *is = rc == MS_OK && (has_text(d.output, ": \"nan\"") || has_text(d.output, ": \"inf\"") ||
                          has_text(d.output, ": \"-inf\""));
    graph_page_free(&page);
    return rc;
}

/* Lists nodes of a step and rank with NaN or infinity in them. None where norms grow alone: a gradient of a mean
 * does so in a sound training, and msprobe check says nothing of it. */
static enum ms_rc list_overflow(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                                struct ms_err *err)
{
    MS_TRY(graph_view_filter(v, at, GRAPH_WANT_OVERFLOW, -1, OVERFLOWS_SEEN, page, err));
    bool is_real = page->rows.n == 0;
    for (size_t i = 0; i < page->rows.n && !is_real; i++)
        is_real = !ms_str_is(page->rows.p[i].overflow, "high");
    if (!is_real)
        MS_TRY(gives_nonfinite(v, at, page->rows.p[0].name, &is_real, err));
    if (!is_real)
        page->rows.n = 0;
    return MS_OK;
}

/* Adds one finding for a step and rank with differences. */
static enum ms_rc add_difference(struct viz_findings *f, struct graph_view *v, struct graph_spot at,
                                 struct ms_err *err)
{
    struct graph_rollup n;
    struct graph_page first = {.more = false};
    MS_TRY(count_states(v, at, &n, err));
    enum ms_rc rc = n.overflow != 0 ? list_overflow(v, at, &first, err) : MS_OK;
    n.overflow = rc == MS_OK && first.rows.n != 0 ? n.overflow : 0;
    graph_page_free(&first);
    first = (struct graph_page){.more = false};
    if (rc != MS_OK || n.error + n.warning + n.overflow == 0)
        return rc;
    rc = viz_first_divergence(v, at, &first, err);
    struct ms_str node = first.rows.n != 0 ? first.rows.p[0].name : MS_STR("");
    struct ms_message m;
    ms_message_begin(&m, &viz_say_divergence);
    ms_message_i64(&m, "step", at.step);
    ms_message_i64(&m, "rank", at.rank);
    ms_message_i64(&m, "errors", n.error);
    ms_message_i64(&m, "warnings", n.warning);
    ms_message_i64(&m, "unmatched", n.unmatched);
    if (n.overflow != 0)
        ms_message_i64(&m, "overflows", n.overflow);
    if (node.n != 0)
        ms_message_str(&m, "node", node);
    /* Where there is a suspect, that is the error, and this its extent. */
    const bool is_error =
        n.error + n.overflow != 0 && (first.rows.n == 0 || !first.rows.p[0].suspect);
    struct viz_finding what = {.severity = is_error ? VIZ_ERROR : VIZ_WARNING,
                               .kind = MS_STR("divergence"),
                               .text = MS_STR(""),
                               .value = (double)n.error};
    if (rc == MS_OK)
        rc = add_node(f, &what, ms_message_stored(&m), at, node, err);
    graph_page_free(&first);
    return rc;
}

/* Returns the first operator that makes a NaN or infinity of finite numbers, else the first operator;
 * the first module when only modules were dumped. */
static const struct graph_row *first_operator(const struct graph_page *page)
{
    for (size_t i = 0; i < page->rows.n; i++)
        if (page->rows.p[i].kind == OPERATOR && ms_str_is(page->rows.p[i].overflow, "critical"))
            return &page->rows.p[i];
    for (size_t i = 0; i < page->rows.n; i++)
        if (page->rows.p[i].kind == OPERATOR)
            return &page->rows.p[i];
    return page->rows.n != 0 ? &page->rows.p[0] : NULL;
}

/* Adds one finding for a step and rank of a single dump with overflow. */
static enum ms_rc add_overflow(struct viz_findings *f, struct graph_view *v, struct graph_spot at,
                               struct ms_err *err)
{
    struct graph_rollup n;
    struct graph_page page = {.more = false};
    MS_TRY(count_states(v, at, &n, err));
    if (n.overflow == 0)
        return MS_OK;
    enum ms_rc rc = list_overflow(v, at, &page, err);
    const struct graph_row *first = first_operator(&page);
    if (rc == MS_OK && first != NULL) {
        struct ms_message m;
        ms_message_begin(&m, &viz_say_overflow);
        ms_message_i64(&m, "nodes", n.overflow);
        ms_message_i64(&m, "step", at.step);
        ms_message_i64(&m, "rank", at.rank);
        struct viz_finding what = {.severity = VIZ_ERROR,
                                   .kind = MS_STR("overflow"),
                                   .text = MS_STR(""),
                                   .value = (double)n.overflow};
        rc = add_node(f, &what, ms_message_stored(&m), at, first->name, err);
    }
    graph_page_free(&page);
    return rc;
}

static enum ms_rc read_graph(struct viz_findings *f, struct graph_view *v, struct ms_err *err)
{
    const struct graph_about *a = graph_view_about(v);
    MS_TRY(add_suspects(f, v, err));
    size_t suspects = f->list.n;
    for (size_t s = 0; s < a->steps.n; s++) {
        for (size_t r = 0; r < a->ranks.n && f->list.n - suspects < DIFFERENCES_MAX; r++) {
            struct graph_spot at = {a->steps.p[s], a->ranks.p[r], false};
            MS_TRY(a->dual ? add_difference(f, v, at, err) : add_overflow(f, v, at, err));
        }
    }
    return MS_OK;
}

/* ---- statistics over steps ----------------------------------------------------------- */

static enum ms_rc add_notable(struct viz_findings *f, const struct probe_notable *n,
                              const char *stat, struct ms_err *err)
{
    struct ms_message m;
    char rank[24];
    struct viz_finding *to = ms_vec_push(&f->list);
    if (to == NULL)
        return ms_no_memory(err);
    const bool is_spike = n->kind == PROBE_NOTABLE_SPIKE;
    *to = (struct viz_finding){.severity = is_spike ? VIZ_WARNING : VIZ_ERROR,
                               .kind = is_spike ? MS_STR("spike") : MS_STR("overflow"),
                               .first_step = n->step - n->lead,
                               .last_step = n->step,
                               .value = n->value,
                               .place = viz_place_of(VIZ_OVERVIEW)};
    to->place.step = n->step;
    to->place.rank = n->rank;
    probe_notable_tell(n, stat, &m);
    MS_TRY(keep_sentence(f, ms_message_stored(&m), MS_STR(""), &to->text, err));
    snprintf(rank, sizeof rank, "%" PRId64, n->rank);
    MS_TRY(keep_text(f, ms_str_of(rank), &to->ranks, err));
    if (n->curve == NULL)
        return MS_OK;
    struct ms_buf query = {.max = TEXT_MAX};
    ms_buf_printf(&query, "%.*s %.*s", MS_STR_ARG(n->curve->metric), MS_STR_ARG(n->curve->name));
    enum ms_rc rc = ms_buf_check(&query, err);
    if (rc == MS_OK)
        rc = keep_text(f, ms_buf_slice(&query), &to->place.query, err);
    ms_buf_free(&query);
    return rc;
}

static enum ms_rc read_trend(struct viz_findings *f, const char *path, struct ms_err *err)
{
    struct probe_curves curves;
    struct probe_notables found;
    MS_TRY(probe_curves_read(&curves, path, NULL, NULL, err));
    enum ms_rc rc = probe_notables_find(&found, &curves, err);
    if (rc == MS_OK) {
        for (size_t i = 0; rc == MS_OK && i < found.all.n; i++)
            rc = add_notable(f, &found.all.p[i], curves.stat, err);
        probe_notables_free(&found);
    }
    probe_curves_free(&curves);
    return rc;
}

/* ---- both ------------------------------------------------------------------------ */

/* Sorts by severity. Stable: within a severity the order of the database, by weight, is kept. */
static void worst_first(struct viz_findings *f)
{
    for (size_t i = 1; i < f->list.n; i++) {
        struct viz_finding x = f->list.p[i];
        size_t at = i;
        for (; at > 0 && f->list.p[at - 1].severity > x.severity; at--)
            f->list.p[at] = f->list.p[at - 1];
        f->list.p[at] = x;
    }
}

enum ms_rc viz_findings_read(struct viz_findings *f, const struct viz_reader *r,
                             enum viz_language language, struct ms_err *err)
{
    *f = (struct viz_findings){.arena = ms_arena_new(TEXT_MAX), .language = language};
    if (f->arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = r->graph != NULL ? read_graph(f, r->graph, err) : MS_OK;
    if (rc == MS_OK && r->tl != NULL)
        rc = read_timeline(f, r->tl, err);
    if (rc == MS_OK && r->trend != NULL)
        rc = read_trend(f, r->trend, err);
    if (rc == MS_OK) {
        worst_first(f);
        rc = add_unlisted(f, err);
    }
    if (rc != MS_OK)
        viz_findings_free(f);
    return rc;
}

void viz_findings_free(struct viz_findings *f)
{
    ms_vec_free(&f->list);
    ms_arena_free(f->arena);
    *f = (struct viz_findings){.arena = NULL};
}
