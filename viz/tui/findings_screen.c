/* SPDX-License-Identifier: MIT
 *
 * findings_screen: the first screen: the findings of this run.
 */
#include "viz/tui/app.h"

#include "mstx/conclude/comm_measure.h"
#include "probe/base/csv.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

struct findings {
    size_t at, top;
    uint64_t events, dropped; /* of the timeline */
    struct mstx_clock_summary clocks;
    struct graph_rollup nodes; /* of the graph, all ranks and steps */
};

enum { SUM_TREES = 256 }; /* limit of ranks and steps that are added up */

static enum ms_rc add_tree(struct findings *f, struct graph_view *v, struct graph_spot at,
                           struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_rollup r = {0};
    enum ms_rc rc = graph_view_children(v, at, MS_STR(""), -1, -1, 1, &page, err);
    if (rc == MS_OK && page.rows.n != 0)
        rc = graph_view_rollup(v, at, page.rows.p[0].name, &r, err);
    f->nodes.error += r.error;
    f->nodes.warning += r.warning;
    f->nodes.unmatched += r.unmatched;
    f->nodes.overflow += r.overflow;
    graph_page_free(&page);
    return rc;
}

static enum ms_rc add_trees(struct findings *f, struct graph_view *v, struct ms_err *err)
{
    const struct graph_about *about = graph_view_about(v);
    int trees = 0;
    for (size_t s = 0; s < about->steps.n; s++) {
        for (size_t r = 0; r < about->ranks.n && trees < SUM_TREES; r++, trees++) {
            struct graph_spot at = {about->steps.p[s], about->ranks.p[r], false};
            MS_TRY(add_tree(f, v, at, err));
        }
    }
    return MS_OK;
}

static void *open_findings(struct tui_app *a, struct ms_err *err)
{
    struct findings *f = ms_calloc(1, sizeof *f);
    const struct mstx_tl *tl = a->reader.tl;
    if (f == NULL) {
        (void)ms_no_memory(err);
        return NULL;
    }
    for (size_t i = 0; tl != NULL && i < mstx_tl_track_count(tl); i++)
        f->events += mstx_tl_track(tl, i)->events;
    for (size_t i = 0; tl != NULL && i < mstx_tl_process_count(tl); i++)
        f->dropped += mstx_tl_process(tl, i)->dropped;
    if (tl != NULL && mstx_clocks_measure(a->reader.tl, &f->clocks, NULL) != MS_OK)
        f->clocks.hosts = 0;
    if (a->reader.graph != NULL && add_trees(f, a->reader.graph, err) != MS_OK) {
        ms_free(f);
        return NULL;
    }
    return f;
}

static void close_findings(void *self)
{
    ms_free(self);
}

/* ---- drawing ----------------------------------------------------------------------- */

static enum tui_token severity_token(enum viz_severity s)
{
    return s == VIZ_ERROR ? TUI_ERROR : s == VIZ_WARNING ? TUI_WARNING : TUI_INFO;
}

/* Writes the text wrapped at words; returns the row after the last. */
static int put_wrapped(struct tui_cells *g, int y, int last, int x, int w, enum tui_token t,
                       struct ms_str s)
{
    while (s.n != 0 && y < last) {
        uint32_t cut = tui_fit(s, w);
        int64_t space = cut < s.n ? ms_str_rfind(ms_str_sub(s, 0, cut + 1), ' ') : -1;
        cut = space > 0 ? (uint32_t)space : cut > 0 ? cut : s.n;
        tui_put(g, y++, x, w, t, ms_str_sub(s, 0, cut));
        s = ms_str_sub(s, cut + (cut < s.n && s.p[cut] == ' '), s.n);
    }
    return y;
}

static void draw_row(struct tui_app *a, int y, size_t i, bool at)
{
    const struct viz_finding *f = &a->findings.list.p[i];
    struct tui_cells *g = &a->cells;
    tui_char(g, y, 1, severity_token(f->severity),
             (uint32_t)(unsigned char)viz_severity_letter(f->severity));
    int x = 4;
    if (f->place.screen == VIZ_GRAPH && f->place.node.n != 0 &&
        !ms_str_is(f->kind, "divergence")) /* a divergence names its ranks */
        x = tui_put_name(g, y, 4, g->w / 2, TUI_TEXT, f->place.node) + 1;
    tui_put(g, y, x, g->w - x - 1, TUI_TEXT, f->text);
    if (at)
        tui_mark(g, y, 0, g->w, TUI_REVERSE, TUI_TEXT);
}

/* Writes the destination of Enter: the screen, then the details of the place. */
static void draw_place(struct tui_app *a, int y, const struct viz_finding *f)
{
    const struct viz_place *p = &f->place;
    struct tui_cells *g = &a->cells;
    int w = g->w - 1;
    int x =
        tui_printf(g, y, 4, w - 4, TUI_DIM, "Enter → %s", a->screens[tui_screen_of(a, p)]->name);
    if (p->step >= 0)
        x = tui_printf(g, y, x, w - x, TUI_DIM, "  step %" PRId64, p->step);
    if (p->rank >= 0)
        x = tui_printf(g, y, x, w - x, TUI_DIM, "  rank %" PRId64, p->rank);
    if (p->node.n != 0)
        tui_put_name(g, y, x + 2, w - x - 2, TUI_ACCENT, p->node);
}

static void draw_graph_facts(struct tui_app *a, const struct findings *f, int y)
{
    const struct graph_rollup *r = &f->nodes;
    const struct graph_about *about = graph_view_about(a->reader.graph);
    tui_printf(&a->cells, y, 1, a->cells.w - 2, TUI_DIM,
               "graph      %s%s%.*s, %zu step%s, %zu rank%s; %" PRId64 " E %" PRId64 " ! %" PRId64
               " W %" PRId64 " -",
               about->dual ? "comparison" : "one dump", about->task.n != 0 ? ", " : "",
               MS_STR_ARG(about->task), about->steps.n, about->steps.n == 1 ? "" : "s",
               about->ranks.n, about->ranks.n == 1 ? "" : "s", r->error, r->overflow, r->warning,
               r->unmatched);
}

static void draw_time_facts(struct tui_app *a, const struct findings *f, int y)
{
    char events[MS_HUMAN_MAX], span[MS_HUMAN_MAX], lost[MS_HUMAN_MAX];
    int64_t first, last;
    mstx_tl_span(a->reader.tl, &first, &last);
    const size_t processes = mstx_tl_process_count(a->reader.tl);
    const size_t tracks = mstx_tl_track_count(a->reader.tl);
    tui_printf(&a->cells, y, 1, a->cells.w - 2, TUI_DIM,
               "timeline   %s event%s in %s, %zu process%s, %zu track%s%s%s%s",
               ms_human_count(events, f->events), f->events == 1 ? "" : "s",
               ms_human_time(span, last - first), processes, processes == 1 ? "" : "es", tracks,
               tracks == 1 ? "" : "s", f->dropped != 0 ? ", " : "",
               f->dropped != 0 ? ms_human_count(lost, f->dropped) : "",
               f->dropped != 0 ? " lost" : "");
}

static void draw_clock_facts(struct tui_app *a, const struct findings *f, int y)
{
    char time[MS_HUMAN_MAX];
    tui_printf(&a->cells, y, 1, a->cells.w - 2, TUI_DIM,
               "clocks     of %" PRId64 " hosts brought together, sure to %s", f->clocks.hosts,
               ms_human_time(time, f->clocks.uncertainty_ns));
}

/* Writes what was checked. No finding does not mean that nothing differs: suspects are computed
 * only on request. */
static void draw_none(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    tui_puts(g, 2, 1, g->w - 2, TUI_PASS, "Nothing wrong was found.");
    tui_puts(g, 3, 1, g->w - 2, TUI_DIM,
             a->reader.tl != NULL
                 ? "Looked at: steps that are slow, ranks that make others wait, losses."
             : a->reader.trend != NULL ? "Looked at: curves whose numbers end, gradients that jump."
                                       : "Looked at: states of all nodes, overflow, suspects.");
}

static enum ms_rc draw_findings(struct tui_app *a, void *self, struct ms_err *err)
{
    struct findings *f = self;
    struct tui_cells *g = &a->cells;
    size_t n = a->findings.list.n;
    const bool has_clocks = f->clocks.hosts > 1;
    int facts = (a->reader.tl != NULL) + (a->reader.graph != NULL) + has_clocks;
    int rows = tui_body_rows(a) - facts - 4; /* heading, detail lines, rule */
    (void)err;
    rows = rows > 1 ? rows : 1;
    tui_printf(g, 1, 1, g->w - 2, TUI_DIM, "What is wrong");
    if (n == 0)
        draw_none(a);
    f->at = n > 0 && f->at >= n ? n - 1 : f->at;
    f->top = tui_scroll(f->top, f->at, (size_t)rows);
    for (size_t i = f->top; i < n && i < f->top + (size_t)rows; i++)
        draw_row(a, 2 + (int)(i - f->top), i, i == f->at);
    int y = g->h - 2 - facts;
    if (a->reader.tl != NULL)
        draw_time_facts(a, f, y++);
    if (has_clocks)
        draw_clock_facts(a, f, y++);
    if (a->reader.graph != NULL)
        draw_graph_facts(a, f, y);
    y = g->h - 2 - facts;
    tui_fill(g, y - 1, 0, g->w, TUI_DIM, 0x2500);
    int free_row = 3 + (int)(n - f->top < (size_t)rows ? n - f->top : (size_t)rows);
    if (n > 0 && free_row + 1 < y - 1) {
        const struct viz_finding *x = &a->findings.list.p[f->at];
        free_row = put_wrapped(g, free_row, y - 2, 4, g->w - 6, TUI_TEXT, x->text);
        draw_place(a, free_row, x);
    }
    return MS_OK;
}

/* ---- keys -------------------------------------------------------------------------- */

static enum ms_rc findings_key(struct tui_app *a, void *self, int key, bool *taken,
                               struct ms_err *err)
{
    struct findings *f = self;
    size_t n = a->findings.list.n;
    *taken = true;
    if (tui_move(key, &f->at, n, (size_t)(a->cells.h / 2)))
        return MS_OK;
    if (key == TUI_KEY_ENTER || key == 'l' || key == TUI_KEY_RIGHT)
        return n > 0 ? tui_go_place(a, &a->findings.list.p[f->at].place, err) : MS_OK;
    *taken = false;
    return MS_OK;
}

static bool click(struct tui_app *a, void *self, int y, int x, bool drag)
{
    struct findings *f = self;
    (void)x;
    (void)drag;
    return tui_click_row(y, 2, f->top, a->findings.list.n, &f->at);
}

static enum ms_rc export_findings(struct tui_app *a, void *self, struct ms_buf *out,
                                  struct ms_err *err)
{
    (void)self;
    (void)err;
    ms_buf_puts(out, "severity,kind,ranks,first_step,last_step,value,text\n");
    for (size_t i = 0; i < a->findings.list.n; i++) {
        const struct viz_finding *f = &a->findings.list.p[i];
        ms_buf_printf(out, "%s,%.*s,\"%.*s\",%" PRId64 ",%" PRId64 ",%.17g,",
                      viz_severity_name(f->severity), MS_STR_ARG(f->kind), MS_STR_ARG(f->ranks),
                      f->first_step, f->last_step, f->value);
        ms_csv_put(out, f->text, MS_CSV_FOREIGN);
        ms_buf_putc(out, '\n');
    }
    return MS_OK;
}

static const struct tui_hint hints[] = {
    {"list", NULL, NULL},
    {"↑↓", "choose a finding", "move"},
    {"Enter", "to the place where it shows", "go there"},
    {NULL, NULL, NULL},
};

const struct tui_screen tui_findings_screen = {
    .name = "Findings",
    .hints = hints,
    .open = open_findings,
    .close = close_findings,
    .draw = draw_findings,
    .key = findings_key,
    .click = click,
    .export = export_findings,
};
