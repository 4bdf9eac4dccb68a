/* SPDX-License-Identifier: MIT
 *
 * tree_state: rows, cursor, search and matching of the graph screen; shared by the files tree_*.
 */
#ifndef VIZ_TUI_TREE_STATE_H
#define VIZ_TUI_TREE_STATE_H

#include "viz/model/outline.h"
#include "viz/model/terms.h"
#include "viz/tui/app.h"
#include "viz/tui/node_detail.h"

enum tui_layout { TUI_SPLIT, TUI_SINGLE, TUI_MATRIX, TUI_LAYOUTS };
enum tui_order { TUI_BY_ORDER, TUI_BY_STATE, TUI_BY_NAME, TUI_ORDERS };
enum { TUI_FIGURES = 1024 };

/* Figure of a row, cached when the row is first drawn. */
struct tui_figure {
    const char *name; /* key: address of the name in the outline */
    char text[TUI_FIGURE_MAX];
};

struct tui_tree {
    struct graph_view *v;
    const struct graph_about *about;
    const struct viz_findings *findings; /* owned by the viewer */
    const char *path;                    /* path of the database, for changes */
    struct viz_outline rows;
    int64_t step, rank;
    size_t at, top;
    bool golden; /* the side with the keyboard focus */
    bool detail;
    enum tui_layout layout;
    enum viz_sort sort; /* of siblings */
    bool upside_down;
    struct tui_figure figure[TUI_FIGURES];

    /* search or filter result: a flat list of nodes of one side */
    struct viz_terms *terms;
    struct graph_page found; /* rows in node_order, or sorted */
    int64_t reached;
    bool more, listing; /* listing: the list replaces the tree */
    enum tui_order order;
    bool inverted;
    size_t list_at, list_top, origin; /* origin: start of the search */

    struct { /* the search of n or N */
        bool on, back, round;
        int64_t from;
    } seek;
    size_t want;           /* number of hits to read */
    bool to_end;           /* afterwards the cursor moves to the last */
    struct {               /* unfolding of all rows below a row */
        bool on, children; /* children: only direct children */
        size_t at, begin;
        uint16_t depth;
    } unfold;

    struct graph_page matrix; /* for the node `matrix_of` */
    struct ms_str matrix_of;
    struct ms_buf tagged; /* name of the node to match, "" for none */
    bool tagged_golden;   /* whether it is on the golden side */
};

static inline struct graph_spot tui_tree_spot(const struct tui_tree *t, bool golden)
{
    return (struct graph_spot){t->step, t->rank, golden};
}
/* Returns the row under the cursor; NULL: none, or a row MORE. */
const struct viz_row *tui_tree_row(const struct tui_tree *t);
/* Returns the cursor's node on the side with the focus, else on the other side; NULL: none. */
const struct graph_row *tui_tree_node(const struct tui_tree *t);
enum ms_rc tui_tree_show(struct tui_tree *t, int64_t step, int64_t rank, struct ms_err *err);
enum ms_rc tui_tree_reveal(struct tui_tree *t, bool golden, struct ms_str name, struct ms_err *err);
/* Computes where a forward search from the cursor starts in node_order. */
enum ms_rc tui_tree_before(struct tui_tree *t, bool golden, int64_t *order, struct ms_err *err);
/* Tells whether a finding names a node of this step and rank. */
bool tui_tree_is_suspect(const struct tui_tree *t, const struct viz_finding *f);
/* Returns the finding about a node of this step and rank, or NULL. */
const struct viz_finding *tui_tree_suspect(const struct tui_tree *t, bool golden,
                                           struct ms_str name);
/* The first restores the natural order, which changes of the rows need; the second sorts again. */
enum ms_rc tui_tree_unsort(struct tui_tree *t, struct ms_err *err);
enum ms_rc tui_tree_resort(struct tui_tree *t, struct ms_err *err);
enum ms_rc tui_tree_need_node(const struct tui_tree *t, const struct graph_row **n,
                              struct ms_err *err);

/* Ends the search and its list. */
void tui_tree_search_end(struct tui_tree *t);

/* ---- searching and filtering -------------------------------------------------------- */

/* The first starts a search as typed, in the tree or as a list; the second is n or N. */
enum ms_rc tui_tree_search(struct tui_tree *t, struct ms_str text, bool list, struct ms_err *err);
enum ms_rc tui_tree_hit(struct tui_tree *t, bool back, struct ms_err *err);
/* Continues a search; *more: not finished. */
enum ms_rc tui_tree_search_work(struct tui_app *a, struct tui_tree *t, bool *more,
                                struct ms_err *err);
enum ms_rc tui_tree_list_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                             struct ms_err *err);

/* ---- matching nodes by hand, and unmatching them ------------------------------------ */

/* Handles the keys for matching: Space, U, M, B and Z. Space tags a node of one side; M makes the node
 * under the cursor its partner. */
enum ms_rc tui_tree_match_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                              struct ms_err *err);
/* The commands that save matches to a file beside the graph, and apply matches from one. */
enum ms_rc tui_tree_save_matches(struct tui_app *a, const char *text, struct ms_err *err);
enum ms_rc tui_tree_apply_matches(struct tui_app *a, const char *path, struct ms_err *err);
/* The first writes the changed graph to a file, by default beside the opened one; the second
 * overwrites the opened one. */
enum ms_rc tui_tree_write(struct tui_app *a, const char *path, struct ms_err *err);
enum ms_rc tui_tree_write_over(struct tui_app *a, const char *text, struct ms_err *err);

#endif
