/* SPDX-License-Identifier: MIT
 *
 * graph_rows: an open database, its statements and their rows.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_ROWS_H
#define COMPARE_GRAPH_VIEW_GRAPH_ROWS_H

#include "compare/graph/view/graph_view.h"
#include "compare/graph/view/suspect_list.h"
#include "probe/base/store.h"

enum {
    /* of every statement that returns nodes; further columns are specific to a statement */
    ROW_COLUMNS = 13,
    GRAPH_ARENA_MAX = 1 << 30,
    GRAPH_NAME_MAX = 1 << 20,
};

/* Ranges of precision_index by state. A file states them itself, and they differ: in digest files
 * of earlier versions 1 is good and 0 is bad. */
enum { GRAPH_BANDS = 16 };

struct graph_bands {
    struct graph_band {
        double from, to; /* half-open, except for the last range and for a single value */
        enum graph_state state;
    } list[GRAPH_BANDS];
    unsigned n;
    bool usual; /* equal to the bands that msprobe writes */
};

/* Reads node_colors; returns the usual bands when the text is not such an object. */
void graph__bands_read(struct graph_bands *b, struct ms_str json);
enum graph_state graph__band_of(const struct graph_bands *b, double value);

enum query {
    Q_CHILDREN,
    Q_BY_NAME,
    Q_DETAIL,
    Q_BY_ORDER,
    Q_SEARCH,
    Q_NAMES,
    Q_NAMES_FROM,
    Q_WALK,
    Q_SCAN_UP,
    Q_SCAN_DOWN,
    Q_STATE_UP,
    Q_STATE_DOWN,
    Q_MATRIX,
    Q_ROLLUP,
    Q_ROLLUP_SLOW,
    Q_FATE,
    Q_KIN,
    Q_MOVED_UP,
    Q_MOVED_DOWN,
    Q_WRITERS,
    Q_READERS,
    Q_FINDINGS,
    Q_FINDINGS_UNSURE,
    Q_FINDINGS_OLD,
    QUERIES
};

struct graph_view {
    struct ms_store *store;
    struct ms_stmt *st[QUERIES];
    struct graph_about about;
    struct graph_bands bands;
    bool quick;  /* the x_ tables exist and are up to date */
    bool whole;  /* quick, and x_state lists passing nodes too */
    bool traced; /* x_align, x_edge and x_findings exist */
    bool kin;    /* x_kin exists */
    struct ms_arena *arena;
    struct ms_buf text;
    struct graph_shapes *shapes[2]; /* by side, for the step and rank of the last search */
    graph_suspect_rows suspects;
};

/* Empties a page and gives it a new arena. */
enum ms_rc graph__page_start(struct graph_page *p, struct ms_err *err);
/* Copies s to the memory of the page. */
enum ms_rc graph__keep(struct graph_page *p, struct ms_str s, struct ms_str *out,
                       struct ms_err *err);
/* Reads a node from the current row of the statement; texts are copied to the page. */
enum ms_rc graph__take_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct graph_row *row, struct ms_err *err);
/* Adds the current row of the statement to the page. */
enum ms_rc graph__push_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct ms_err *err);
/* Lists up to `limit` rows of a bound statement; sets `more` when there are further rows. */
enum ms_rc graph__list_rows(struct graph_view *v, struct ms_stmt *st, uint32_t limit,
                            struct graph_page *p, struct ms_err *err);
/* Adds the node with this order to the page. */
enum ms_rc graph__add_by_order(struct graph_view *v, struct graph_spot at, int64_t order,
                               struct graph_page *page, struct ms_err *err);
/* Returns a statement, which is prepared on first use. */
enum ms_rc graph__statement(struct graph_view *v, enum query q, struct ms_stmt **st,
                            struct ms_err *err);
/* Returns a statement with step, rank and side bound to its first three parameters. */
enum ms_rc graph__statement_at(struct graph_view *v, enum query q, struct graph_spot at,
                               struct ms_stmt **st, struct ms_err *err);
/* Returns the identifier "NPU_0_1", or "NPU_0_1_NAME" when a name is given; valid until the next
 * call. */
struct ms_str graph__view_id(struct graph_view *v, struct graph_spot at, struct ms_str name);

/* Fails with the name of a node that a tree does not have. */
enum ms_rc graph__not_there(struct graph_spot at, struct ms_str name, struct ms_err *err);

struct graph_shapes;
/* Frees the shapes that graph_view_ahead has collected. */
void graph__shapes_free(struct graph_shapes *s);

#endif
