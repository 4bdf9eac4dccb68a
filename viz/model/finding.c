/* SPDX-License-Identifier: MIT
 *
 * finding: reads the findings of both databases into one list.
 */
#include "viz/model/finding.h"

#include "viz/model/session.h"

#include "probe/base/store.h"

#include <stdlib.h>

enum { TEXT_MAX = 16 << 20 };

static const char *const names[] = {"error", "warning", "info"};

char viz_severity_letter(enum viz_severity s)
{
    return "EWi"[s];
}

const char *viz_severity_name(enum viz_severity s)
{
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

static const char TIMELINE_SQL[] =
    "SELECT f.severity, f.kind, f.text, ifnull(f.ranks, ''), ifnull(f.first_step, -1),"
    " ifnull(f.last_step, -1), f.value, ifnull(f.place, ''),"
    " ifnull((SELECT min(s.start_ns) FROM steps s WHERE s.number >= f.first_step AND"
    "         s.number <= ifnull(f.last_step, f.first_step)), 0),"
    " ifnull((SELECT max(s.end_ns) FROM steps s WHERE s.number >= f.first_step AND"
    "         s.number <= ifnull(f.last_step, f.first_step)), 0)"
    " FROM findings f ORDER BY f.id";

static enum ms_rc keep(struct viz_findings *f, struct ms_str s, struct ms_str *out,
                       struct ms_err *err)
{
    *out = ms_arena_str(f->arena, s);
    return out->p != NULL ? MS_OK : ms_arena_fail(f->arena, err);
}

/* The place that the database says, or else the steps and the rank in question. */
static enum ms_rc place_of(struct viz_findings *f, struct viz_finding *to, struct ms_stmt *st,
                           struct ms_err *err)
{
    struct ms_str said = ms_stmt_get_str(st, 7);
    struct ms_buf scratch = {.max = TEXT_MAX};
    to->place = viz_place_of(VIZ_TIMELINE);
    if (said.n != 0 && viz_place_read(&to->place, said, &scratch, NULL) == MS_OK) {
        enum ms_rc rc = keep(f, to->place.node, &to->place.node, err);
        if (rc == MS_OK)
            rc = keep(f, to->place.query, &to->place.query, err);
        ms_buf_free(&scratch);
        return rc;
    }
    ms_buf_free(&scratch);
    to->place = viz_place_of(VIZ_TIMELINE);
    (void)ms_str_i64(to->ranks, &to->place.rank);
    to->place.step = to->first_step;
    to->place.from = ms_stmt_get_i64(st, 8);
    to->place.to = ms_stmt_get_i64(st, 9);
    return MS_OK;
}

static enum ms_rc take(struct viz_findings *f, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_finding *to = ms_vec_push(&f->list);
    if (to == NULL)
        return ms_no_memory(err);
    *to = (struct viz_finding){.severity = severity_of(ms_stmt_get_str(st, 0)),
                               .first_step = ms_stmt_get_i64(st, 4),
                               .last_step = ms_stmt_get_i64(st, 5),
                               .value = ms_stmt_get_f64(st, 6)};
    MS_TRY(keep(f, ms_stmt_get_str(st, 1), &to->kind, err));
    MS_TRY(keep(f, ms_stmt_get_str(st, 2), &to->text, err));
    MS_TRY(keep(f, ms_stmt_get_str(st, 3), &to->ranks, err));
    return place_of(f, to, st, err);
}

static enum ms_rc read_timeline(struct viz_findings *f, struct mstx_tl *tl, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more = true;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, TIMELINE_SQL, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = take(f, st, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- the comparison's ------------------------------------------------------------ */

/* A place says one side: that of the target where it has the node. */
static enum ms_rc take_suspect(struct viz_findings *f, const struct graph_finding *g,
                               struct ms_err *err)
{
    struct viz_finding *to = ms_vec_push(&f->list);
    if (to == NULL)
        return ms_no_memory(err);
    *to =
        (struct viz_finding){.severity = ms_str_is(g->role, "introduces") ? VIZ_ERROR : VIZ_WARNING,
                             .ranks = MS_STR(""),
                             .first_step = g->step,
                             .last_step = g->step,
                             .value = g->score,
                             .place = viz_place_of(VIZ_GRAPH)};
    to->place.step = g->step;
    to->place.rank = g->rank;
    to->place.golden = g->target.n == 0;
    MS_TRY(keep(f, g->role, &to->kind, err));
    MS_TRY(keep(f, g->text, &to->text, err));
    return keep(f, to->place.golden ? g->golden : g->target, &to->place.node, err);
}

static enum ms_rc read_graph(struct viz_findings *f, struct graph_view *v, struct ms_err *err)
{
    struct graph_findings list = {.arena = NULL};
    enum ms_rc rc = graph_view_findings(v, &list, err);
    for (size_t i = 0; rc == MS_OK && i < list.list.n; i++)
        rc = take_suspect(f, &list.list.p[i], err);
    graph_findings_free(&list);
    return rc;
}

/* ---- both ------------------------------------------------------------------------ */

/* Stable: within a severity the order of the database, which is the order of weight. */
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

enum ms_rc viz_findings_read(struct viz_findings *f, const struct viz_reader *r, struct ms_err *err)
{
    *f = (struct viz_findings){.arena = ms_arena_new(TEXT_MAX)};
    if (f->arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = r->graph != NULL ? read_graph(f, r->graph, err) : MS_OK;
    if (rc == MS_OK && r->tl != NULL)
        rc = read_timeline(f, r->tl, err);
    if (rc != MS_OK)
        viz_findings_free(f);
    else
        worst_first(f);
    return rc;
}

void viz_findings_free(struct viz_findings *f)
{
    ms_vec_free(&f->list);
    ms_arena_free(f->arena);
    *f = (struct viz_findings){.arena = NULL};
}
