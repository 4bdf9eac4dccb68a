/* SPDX-License-Identifier: MIT
 *
 * graph_view: queries of a viewer on a .vis.db, from msprobe or from the official tool.
 *
 * The reader keeps no cursor: for the next page, a caller passes where the last one
 * ended. Rows are listed by node_order, the order in which calls ended. Our files answer
 * from the x_ tables; for other files, and after a change that the x_ tables do not
 * include, the same answer is computed more slowly.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_VIEW_H
#define COMPARE_GRAPH_VIEW_GRAPH_VIEW_H

#include "compare/graph/graph.h"
#include "probe/base/arena.h"
#include "probe/base/vec.h"

struct graph_view;

struct graph_spot { /* identifies a tree among ranks and steps */
    int64_t step, rank;
    bool golden;
};
static inline bool graph_is_same_spot(struct graph_spot a, struct graph_spot b)
{
    return a.step == b.step && a.rank == b.rank && a.golden == b.golden;
}

struct graph_about {
    bool dual, overflow;
    struct ms_str task; /* "summary", "md5", "all", "structure"; "" for a single graph */
    /* from x_meta; "" when the file does not record it */
    struct ms_str tool, framework, target, golden;
    int64_t micro_steps;
    MS_VEC(int64_t) ranks, steps;
};

struct graph_row {
    int64_t step, rank, order, micro;
    struct ms_str name, parent, partner; /* "": none */
    int kind;                            /* node_type: 0 module, 1 operator, 9 collection */
    enum graph_state state;              /* GRAPH_ERROR for a suspect, else as rated */
    enum graph_state rated;              /* by the official thresholds */
    bool suspect;                        /* it introduces a difference and was not matched anew */
    struct ms_str overflow;              /* "medium", "high", "critical" or "" */
    bool unmatched;                      /* has no partner; false for a single graph */
    bool has_children, modified;
};

/* Rows and the memory of their text. Initialise to zero; may be filled repeatedly; free at
 * the end. */
struct graph_page {
    MS_VEC(struct graph_row) rows;
    bool more; /* more rows follow */
    /* order at which a search stopped before its limit, to continue from; else -1 */
    int64_t reached;
    struct ms_arena *arena;
};
void graph_page_free(struct graph_page *p);

struct graph_detail {
    struct graph_row row;
    struct ms_str input, output, stack, links, merged; /* JSON as stored */
};

struct graph_rollup { /* counts over the nodes below a node, excluding the node */
    int64_t error, warning, unmatched, overflow;
    enum graph_state worst;
};

/* States to search for; bits may be combined. */
enum graph_want {
    GRAPH_WANT_PASS = 1 << GRAPH_PASS,
    GRAPH_WANT_WARNING = 1 << GRAPH_WARNING,
    GRAPH_WANT_ERROR = 1 << GRAPH_ERROR,
    GRAPH_WANT_UNMATCHED = 1 << 4,
    GRAPH_WANT_OVERFLOW = 1 << 5, /* any level */
    /* the partner is at another place in the tree; only recorded in our files */
    GRAPH_WANT_MOVED = 1 << 6,
};

/* Opens a database for reading, even in a directory without write permission. */
enum ms_rc graph_view_open(struct graph_view **v, const char *path, struct ms_err *err) MS_MUST_USE;
/* Opens a working copy that is changed while it is read; see ms_store_open_work. */
enum ms_rc graph_view_open_work(struct graph_view **v, const char *path,
                                struct ms_err *err) MS_MUST_USE;
/* Switches to a working copy with the same content. */
enum ms_rc graph_view_move(struct graph_view *v, const char *path, struct ms_err *err) MS_MUST_USE;
void graph_view_close(struct graph_view *v);
/* Borrowed until close. */
const struct graph_about *graph_view_about(const struct graph_view *v);

/* Lists the children of a node after node_order `after` (-1: from the first), of one micro step or,
 * when micro is -1, of all. parent "" lists the root itself. */
enum ms_rc graph_view_children(struct graph_view *v, struct graph_spot at, struct ms_str parent,
                               int64_t micro, int64_t after, uint32_t limit,
                               struct graph_page *page, struct ms_err *err) MS_MUST_USE;
/* Lists the ancestors of a node and the node, the root first. MS_E_NOTFOUND: no such node. */
enum ms_rc graph_view_path(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct ms_err *err) MS_MUST_USE;
/* Reads a node with its items; the page holds the text of *d. MS_E_NOTFOUND: no such node. */
enum ms_rc graph_view_node(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_detail *d,
                           struct ms_err *err) MS_MUST_USE;
/* Lists nodes whose name contains the text, ignoring case. One call searches about ten thousand
 * names; if more remain, the page is short and `reached` says where to continue. */
enum ms_rc graph_view_search(struct graph_view *v, struct graph_spot at, struct ms_str text,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err) MS_MUST_USE;
/* Prepares searches of one side, about ten thousand names per call. Searches are slower until *more
 * is false, and on the other side. */
enum ms_rc graph_view_ahead(struct graph_view *v, struct graph_spot at, bool *more,
                            struct ms_err *err) MS_MUST_USE;
/* Lists nodes in one of the wanted states. */
enum ms_rc graph_view_filter(struct graph_view *v, struct graph_spot at, unsigned want,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err) MS_MUST_USE;
/* Finds the next node in a wanted state after node_order `from`, or before it; the page is empty
 * when there is none. */
enum ms_rc graph_view_next(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                           bool backwards, struct graph_page *page, struct ms_err *err) MS_MUST_USE;
/* Calls fn for every node of a tree in order, with its items as stored. The text of the row and the
 * items are borrowed until fn returns; a result other than MS_OK ends the walk. */
typedef enum ms_rc (*graph_walk_fn)(void *ctx, const struct graph_row *row, struct ms_str input,
                                    struct ms_str output, struct ms_err *err);
enum ms_rc graph_view_walk(struct graph_view *v, struct graph_spot at, graph_walk_fn fn, void *ctx,
                           struct ms_err *err) MS_MUST_USE;
enum ms_rc graph_view_rollup(struct graph_view *v, struct graph_spot at, struct ms_str name,
                             struct graph_rollup *r, struct ms_err *err) MS_MUST_USE;
/* Lists the node on every rank and step that has it. */
enum ms_rc graph_view_matrix(struct graph_view *v, bool golden, struct ms_str name,
                             struct graph_page *page, struct ms_err *err) MS_MUST_USE;

/* Result of matching a node. */
struct graph_fate {
    struct ms_str kind;    /* "matched", "moved", "part", "extra", "missing" */
    struct ms_str partner; /* or the node of which it is a part; empty when there is none */
    struct ms_str how;     /* evidence for the match: "name", "value", ... */
    double confidence;
};
/* Reads how a node was matched; the page holds the text. Files of other tools only give matched,
 * extra or missing. */
enum ms_rc graph_view_fate(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_fate *fate,
                           struct ms_err *err) MS_MUST_USE;
/* Further nodes of the other side that belong to a node: "pair"s, and "member"s that run in its
 * place together with its partner. Empty when there are none or the file does not record them. */
struct graph_kins {
    MS_VEC(struct graph_fate) list; /* partner: name of the further node */
    struct graph_page page;         /* holds the text */
};
/* Fills k, which the caller has set to zero. */
enum ms_rc graph_view_kin(struct graph_view *v, struct graph_spot at, struct ms_str name,
                          struct graph_kins *k, struct ms_err *err) MS_MUST_USE;
void graph_kins_free(struct graph_kins *k);
/* Lists the nodes that wrote the inputs of a target node, or with `readers` the nodes that read its
 * outputs. Inferred from values; the page is empty when nothing is known. */
enum ms_rc graph_view_flow(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           bool readers, struct graph_page *page, struct ms_err *err) MS_MUST_USE;

struct graph_finding { /* a suspect */
    int64_t place, step, rank;
    struct ms_str ranks; /* all ranks on which it is one: "0,1"; "" in a file of an older version */
    double certainty;    /* probability that this is the mistake; NaN in such a file */
    struct ms_str target, golden, role, why, text;
    struct ms_str message, args; /* "": a file of an older version only has the text */
    double score;
};
struct graph_findings {
    MS_VEC(struct graph_finding) list;
    struct ms_arena *arena;
};
/* Reads the suspects into f, which the caller has set to zero; empty when they were not
 * searched. */
enum ms_rc graph_view_findings(struct graph_view *v, struct graph_findings *f,
                               struct ms_err *err) MS_MUST_USE;
void graph_findings_free(struct graph_findings *f);
/* Tells whether a suspect is shown as an error; the others are possible, but unlikely. */
bool graph_is_likely(const struct graph_finding *f);
/* Sets the page to the row of the first likely suspect of a tree; without one, to no row. */
enum ms_rc graph_view_suspect(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                              struct ms_err *err) MS_MUST_USE;

#endif
