/* SPDX-License-Identifier: MIT
 *
 * tui_tree_fold: folding and unfolding of the graph screen.
 */
#include "viz/tui_tree.h"

#include "probe/base/clock.h"

enum { UNFOLD_MOST = 100000 };

static enum ms_rc fold_children(struct tui_tree *t)
{
    uint16_t depth = t->at < t->rows.rows.n ? t->rows.rows.p[t->at].depth : 0;
    for (size_t i = t->at + 1; i < t->rows.rows.n && t->rows.rows.p[i].depth > depth; i++)
        viz_outline_fold(&t->rows, i);
    return MS_OK;
}

/* All below the row (e: its children alone) is unfolded in slices of time: there may be very much. */
static void begin(struct tui_tree *t, bool children)
{
    t->unfold.on = true;
    t->unfold.children = children;
    t->unfold.at = t->unfold.begin = t->at;
    t->unfold.depth = t->rows.rows.p[t->at].depth;
}

static bool is_below(const struct tui_tree *t, size_t i)
{
    return i < t->rows.rows.n &&
           (i == t->unfold.begin || t->rows.rows.p[i].depth > t->unfold.depth);
}

enum ms_rc tui_tree_fold_work(struct tui_app *a, struct tui_tree *t, bool *more, struct ms_err *err)
{
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    size_t i = t->unfold.at;
    for (; is_below(t, i) && t->rows.rows.n < UNFOLD_MOST && ms_clock_ns() < end; i++) {
        int deep = t->rows.rows.p[i].depth - t->unfold.depth;
        if (t->rows.rows.p[i].kind == VIZ_ROW_NODE && (deep <= 1 || !t->unfold.children))
            MS_TRY(viz_outline_unfold(&t->rows, i, err));
    }
    t->unfold.at = i;
    *more = t->unfold.on = is_below(t, i) && t->rows.rows.n < UNFOLD_MOST;
    if (*more)
        tui_say(a, "unfolding, %zu rows; any key stops it", t->rows.rows.n);
    else if (t->rows.rows.n >= UNFOLD_MOST)
        tui_say(a, "stopped at %zu rows", t->rows.rows.n);
    else
        a->message[0] = '\0';
    return MS_OK;
}

enum ms_rc tui_tree_fold_key(struct tui_tree *t, int key, bool *taken, struct ms_err *err)
{
    const struct viz_row *r = t->at < t->rows.rows.n ? &t->rows.rows.p[t->at] : NULL;
    *taken = true;
    if (r == NULL) {
        *taken = false;
    } else if (key == TUI_KEY_ENTER || key == 'l' || key == TUI_KEY_RIGHT) {
        if (r->open && key == TUI_KEY_ENTER)
            viz_outline_fold(&t->rows, t->at);
        else
            return viz_outline_unfold(&t->rows, t->at, err);
    } else if (key == 'h' || key == TUI_KEY_LEFT) {
        if (r->open)
            viz_outline_fold(&t->rows, t->at);
        else
            t->at = viz_outline_parent(&t->rows, t->at);
    } else if (key == 'c') {
        return fold_children(t);
    } else if (key == 'C') {
        viz_outline_fold(&t->rows, t->at);
    } else if (key == 'e') {
        begin(t, true);
    } else if (key == 'E') {
        begin(t, false);
    } else if (key == 'u') {
        t->at = viz_outline_parent(&t->rows, t->at);
    } else if (key == 'J' || key == 'K') {
        t->at = viz_outline_sibling(&t->rows, t->at, key == 'J' ? 1 : -1);
    } else {
        *taken = false;
    }
    return MS_OK;
}
