/* SPDX-License-Identifier: MIT
 *
 * graph_view: questions that a viewer asks of a .vis.db, ours or the official one.
 *
 * No state of a view is kept here: a caller that wants the next page says where the
 * last one ended.  Rows are listed by node_order, the order in which calls ended.
 * Our files answer from tables of their own; for others, and after a change that
 * those tables do not know of, the same answer is found more slowly.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_VIEW_H
#define COMPARE_GRAPH_VIEW_GRAPH_VIEW_H

#include "compare/graph/graph.h"
#include "probe/base/arena.h"
#include "probe/base/vec.h"

struct graph_view;

struct graph_spot { /* a tree among ranks and steps */
    int64_t step, rank;
    bool golden;
};

struct graph_about {
    bool dual, overflow;
    struct ms_str task; /* "summary", "md5", "all", "structure"; "" for a single graph */
    struct ms_str tool, framework, target, golden; /* as our files say; "" where a file does not */
    int64_t micro_steps;
    MS_VEC(int64_t) ranks, steps;
};

struct graph_row {
    int64_t step, rank, order, micro;
    struct ms_str name, parent, partner; /* "" where there is none */
    int kind;                            /* node_type: 0 module, 1 operator, 9 collection */
    enum graph_state state;
    struct ms_str overflow; /* "medium", "high", "critical" or "" */
    bool unmatched;         /* of a comparison */
    bool has_children, modified;
};

/* Rows and the memory of their text. Zero it, fill it as often as you like, free it. */
struct graph_page {
    MS_VEC(struct graph_row) rows;
    bool more; /* there are rows behind the last one */
    int64_t
        reached; /* of a search that stopped before its limit: go on behind this order; else -1 */
    struct ms_arena *arena;
};
void graph_page_free(struct graph_page *p);

struct graph_detail {
    struct graph_row row;
    struct ms_str input, output, stack, links, merged; /* JSON as stored */
};

struct graph_rollup { /* nodes below a node, itself not counted */
    int64_t error, warning, unmatched, overflow;
    enum graph_state worst;
};

/* What is looked for; bits may be combined. */
enum graph_want {
    GRAPH_WANT_PASS = 1 << GRAPH_PASS,
    GRAPH_WANT_WARNING = 1 << GRAPH_WARNING,
    GRAPH_WANT_ERROR = 1 << GRAPH_ERROR,
    GRAPH_WANT_UNMATCHED = 1 << 4,
    GRAPH_WANT_OVERFLOW = 1 << 5, /* any level */
    GRAPH_WANT_MOVED = 1 << 6,    /* its partner lies elsewhere; our files alone tell */
};

/* Open for reading, also in a directory that may not be written. */
enum ms_rc graph_view_open(struct graph_view **v, const char *path, struct ms_err *err) MS_MUST_USE;
/* The same for a working copy that is changed while it is read; see ms_store_open_work. */
enum ms_rc graph_view_open_work(struct graph_view **v, const char *path,
                                struct ms_err *err) MS_MUST_USE;
/* Goes on with a working copy that holds the same. */
enum ms_rc graph_view_move(struct graph_view *v, const char *path, struct ms_err *err) MS_MUST_USE;
void graph_view_close(struct graph_view *v);
/* Borrowed until close. */
const struct graph_about *graph_view_about(const struct graph_view *v);

/* Children of a node, all of its micro steps when micro is -1, behind node_order `after` (-1: from
 * the first).  parent "" is the root itself. */
enum ms_rc graph_view_children(struct graph_view *v, struct graph_spot at, struct ms_str parent,
                               int64_t micro, int64_t after, uint32_t limit,
                               struct graph_page *page, struct ms_err *err) MS_MUST_USE;
/* The node and what it lies in, the root first. MS_E_NOTFOUND. */
enum ms_rc graph_view_path(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct ms_err *err) MS_MUST_USE;
/* The page holds the text of *d. MS_E_NOTFOUND. */
enum ms_rc graph_view_node(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_detail *d,
                           struct ms_err *err) MS_MUST_USE;
/* Names that hold the text, whatever the case of its letters.  One call looks at some ten thousand
 * names; when there are more, the page is short and says what was reached. */
enum ms_rc graph_view_search(struct graph_view *v, struct graph_spot at, struct ms_str text,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err) MS_MUST_USE;
/* Get ready for searches of one side, some ten thousand names a call: until *more is false, and on
 * another side, they take longer. */
enum ms_rc graph_view_ahead(struct graph_view *v, struct graph_spot at, bool *more,
                            struct ms_err *err) MS_MUST_USE;
/* Nodes in one of the wanted states. */
enum ms_rc graph_view_filter(struct graph_view *v, struct graph_spot at, unsigned want,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err) MS_MUST_USE;
/* The next such node behind node_order `from`, or before it; an empty page when there is none. */
enum ms_rc graph_view_next(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                           bool backwards, struct graph_page *page, struct ms_err *err) MS_MUST_USE;
/* Every node of a tree in order, with its items as stored, for what needs them all.  The row's text
 * and the items are borrowed until fn returns; what it returns other than MS_OK ends the walk. */
typedef enum ms_rc (*graph_walk_fn)(void *ctx, const struct graph_row *row, struct ms_str input,
                                    struct ms_str output, struct ms_err *err);
enum ms_rc graph_view_walk(struct graph_view *v, struct graph_spot at, graph_walk_fn fn, void *ctx,
                           struct ms_err *err) MS_MUST_USE;
enum ms_rc graph_view_rollup(struct graph_view *v, struct graph_spot at, struct ms_str name,
                             struct graph_rollup *r, struct ms_err *err) MS_MUST_USE;
/* The node on every rank and step that has it. */
enum ms_rc graph_view_matrix(struct graph_view *v, bool golden, struct ms_str name,
                             struct graph_page *page, struct ms_err *err) MS_MUST_USE;

/* What became of a node in the comparison. */
struct graph_fate {
    struct ms_str kind;    /* "matched", "moved", "part", "extra", "missing" */
    struct ms_str partner; /* or what it is a part of; empty when there is none */
    struct ms_str how;     /* why they belong together: "name", "value", ... */
    double confidence;
};
/* The page holds the text.  Files of others tell no more than matched, extra or missing. */
enum ms_rc graph_view_fate(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_fate *fate,
                           struct ms_err *err) MS_MUST_USE;
/* Who else of the other side goes with a node: "pair"s, and "member"s that run in its place together
 * with its partner.  Empty where there are none, or nobody knows. */
struct graph_kins {
    MS_VEC(struct graph_fate) list; /* partner: the name */
    struct graph_page page;         /* holds the text */
};
/* Zero it before. */
enum ms_rc graph_view_kin(struct graph_view *v, struct graph_spot at, struct ms_str name,
                          struct graph_kins *k, struct ms_err *err) MS_MUST_USE;
void graph_kins_free(struct graph_kins *k);
/* Which nodes wrote what a node of the target reads, or with `readers` which read what it wrote.
 * Inferred from values; an empty page when nothing is known. */
enum ms_rc graph_view_flow(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           bool readers, struct graph_page *page, struct ms_err *err) MS_MUST_USE;

struct graph_finding { /* a suspect */
    int64_t place, step, rank;
    struct ms_str target, golden, role, why, text;
    struct ms_str message, args; /* "": a file of an older version has the sentence alone */
    double score;
};
struct graph_findings {
    MS_VEC(struct graph_finding) list;
    struct ms_arena *arena;
};
/* Zero it before; empty when nobody asked for suspects. */
enum ms_rc graph_view_findings(struct graph_view *v, struct graph_findings *f,
                               struct ms_err *err) MS_MUST_USE;
void graph_findings_free(struct graph_findings *f);

#endif
