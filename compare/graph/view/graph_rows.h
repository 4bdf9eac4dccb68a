/* SPDX-License-Identifier: MIT
 *
 * graph_rows: an open database: its statements, and the rows that they give.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_ROWS_H
#define COMPARE_GRAPH_VIEW_GRAPH_ROWS_H

#include "compare/graph/view/graph_view.h"
#include "probe/base/store.h"

enum {
    ROW_COLUMNS = 12, /* of every statement whose rows are nodes; what follows is its own */
    GRAPH_ARENA_MAX = 1 << 30,
    GRAPH_NAME_MAX = 1 << 20,
};

/* Which value of precision_index means which state.  Files state that themselves, and not all alike:
 * in digest files of earlier versions 1 is good and 0 is bad. */
enum { GRAPH_BANDS = 16 };

struct graph_bands {
    struct graph_band {
        double from, to; /* half-open but for the last and for a single value */
        enum graph_state state;
    } list[GRAPH_BANDS];
    unsigned n;
    bool usual; /* as this tool writes them */
};

/* Reads node_colors; what is no such object gives the usual bands. */
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
    Q_FINDINGS_OLD,
    QUERIES
};

struct graph_view {
    struct ms_store *store;
    struct ms_stmt *st[QUERIES];
    struct graph_about about;
    struct graph_bands bands;
    bool quick;  /* x_ tables are there and tell the truth */
    bool whole;  /* and x_state holds every state, not only what is worth a visit */
    bool traced; /* x_align, x_edge and x_findings are there */
    bool kin;    /* and x_kin */
    struct ms_arena *arena;
    struct ms_buf text;
    struct graph_shapes *shapes[2]; /* by side, of the step and rank that were asked for last */
};

/* An empty page; its arena is new. */
enum ms_rc graph__page_start(struct graph_page *p, struct ms_err *err);
/* A copy of s that lives as long as the page. */
enum ms_rc graph__keep(struct graph_page *p, struct ms_str s, struct ms_str *out,
                       struct ms_err *err);
/* The node in the row that the statement stands on; texts are kept by the page. */
enum ms_rc graph__take_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct graph_row *row, struct ms_err *err);
enum ms_rc graph__push_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct ms_err *err);
/* All rows of a statement that is bound; beyond limit only `more` is set. */
enum ms_rc graph__list_rows(struct graph_view *v, struct ms_stmt *st, uint32_t limit,
                            struct graph_page *p, struct ms_err *err);
/* A statement, prepared once. */
enum ms_rc graph__statement(struct graph_view *v, enum query q, struct ms_stmt **st,
                            struct ms_err *err);
/* Its first three values are step, rank and side. */
enum ms_rc graph__statement_at(struct graph_view *v, enum query q, struct graph_spot at,
                               struct ms_stmt **st, struct ms_err *err);
/* "NPU_0_1" and, where a name is given, "NPU_0_1_NAME": valid until the next call. */
struct ms_str graph__view_id(struct graph_view *v, struct graph_spot at, struct ms_str name);

#endif
