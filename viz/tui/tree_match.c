/* SPDX-License-Identifier: MIT
 *
 * tree_match: matching nodes by hand, and unmatching them.
 *
 * A node of one side is tagged; the node under the cursor is its new partner.
 */
#include "viz/tui/tree_match.h"

#include "compare/graph/view/graph_edit.h"
#include "viz/model/changes.h"

#include <inttypes.h>
#include <limits.h>

/* Switches the screen to the working copy, which is the only file that changes are made in. */
static enum ms_rc work_on_copy(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const char *path;
    MS_TRY(viz_changes_begin(a->session, &path, err));
    if (t->path == path)
        return MS_OK;
    MS_TRY(graph_view_move(t->v, path, err));
    t->path = a->reader.graph_path = path;
    return MS_OK;
}

/* Reads the file again to show a change. */
static enum ms_rc changed(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    viz_changes_made(a->session);
    tui_tree_forget(t);
    MS_TRY(tui_tree_unsort(t, err));
    enum ms_rc rc = viz_outline_reload(&t->rows, err);
    MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
    return rc;
}

static enum ms_rc unmatch(struct tui_app *a, struct tui_tree *t, struct ms_str target, bool below,
                          struct ms_err *err)
{
    uint64_t n = 1;
    struct graph_spot at = tui_tree_spot(t, false);
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(below ? graph_unmatch_below(t->path, at, target, &n, err)
                 : graph_unmatch(t->path, at, target, err));
    tui_say(a, "unmatched %" PRIu64 " pair%s; Z takes it back, :write keeps it", n,
            n == 1 ? "" : "s");
    return changed(a, t, err);
}

static enum ms_rc match(struct tui_app *a, struct tui_tree *t, bool below, struct ms_err *err)
{
    const struct viz_row *r = tui_tree_row(t);
    struct ms_str tagged = ms_buf_slice(&t->tagged), here = MS_STR("");
    uint64_t n = 1;
    if (r != NULL && t->tagged.n == 0 && r->pair.target.partner.n != 0)
        return unmatch(a, t, r->pair.target.name, below, err);
    if (r != NULL && t->tagged.n != 0)
        here = t->tagged_golden ? r->pair.target.name : r->pair.golden.name;
    if (here.n == 0)
        return ms_fail(err, MS_E_ARG,
                       "tag a node with Space, then press M on its match on the other side");
    struct ms_str target = t->tagged_golden ? here : tagged;
    struct ms_str golden = t->tagged_golden ? tagged : here;
    struct graph_spot at = tui_tree_spot(t, false);
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(below ? graph_match_below(t->path, at, target, golden, &n, err)
                 : graph_match(t->path, at, target, golden, err));
    ms_buf_clear(&t->tagged);
    tui_say(a, "matched %" PRIu64 " pair%s; Z takes it back, :write keeps it", n,
            n == 1 ? "" : "s");
    return changed(a, t, err);
}

static enum ms_rc undo(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(graph_undo(t->path, err));
    tui_say(a, "taken back");
    return changed(a, t, err);
}

static enum ms_rc tag(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *n;
    MS_TRY(tui_tree_need_node(t, &n, err));
    ms_buf_clear(&t->tagged);
    ms_buf_str(&t->tagged, n->name);
    t->tagged_golden = t->golden;
    tui_say(a, "tagged; M on its match on the %s side matches the two, U untags",
            t->golden ? "target" : "golden");
    return ms_buf_check(&t->tagged, err);
}

static void untag(struct tui_app *a, struct tui_tree *t)
{
    tui_say(a, t->tagged.n != 0 ? "nothing is tagged any more" : "nothing was tagged");
    ms_buf_clear(&t->tagged);
}

/* ---- matches in a file ---------------------------------------------------------------- */

static enum ms_rc need_tree(const struct tui_app *a, struct tui_tree **t, struct ms_err *err)
{
    *t = a->at == TUI_TREE ? a->state[TUI_TREE] : NULL;
    return *t != NULL ? MS_OK : ms_fail(err, MS_E_UNSUPPORTED, "only the tree has matches");
}

enum ms_rc tui_tree_save_matches(struct tui_app *a, const char *text, struct ms_err *err)
{
    struct ms_buf path = {.max = PATH_MAX};
    struct tui_tree *t;
    uint64_t n;
    (void)text;
    MS_TRY(need_tree(a, &t, err));
    if (a->session->origin == NULL)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "this graph goes away with the viewer; ':write FILE' keeps it");
    enum ms_rc rc =
        graph_save_matches(t->path, a->session->origin, tui_tree_spot(t, false), &path, &n, err);
    if (rc == MS_OK)
        tui_say(a, "wrote %" PRIu64 " pair%s to %s", n, n == 1 ? "" : "s", ms_buf_z(&path));
    ms_buf_free(&path);
    return rc;
}

enum ms_rc tui_tree_apply_matches(struct tui_app *a, const char *path, struct ms_err *err)
{
    struct tui_tree *t;
    uint64_t n;
    MS_TRY(need_tree(a, &t, err));
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(graph_match_saved(t->path, tui_tree_spot(t, false), path, &n, err));
    tui_say(a, "matched %" PRIu64 " pair%s; Z takes it back, :write keeps it", n,
            n == 1 ? "" : "s");
    return changed(a, t, err);
}

static enum ms_rc write_graph(struct tui_app *a, const char *to, bool over, struct ms_err *err)
{
    struct ms_buf where = {.max = PATH_MAX};
    enum ms_rc rc = viz_changes_write(a->session, to, over, &where, err);
    if (rc == MS_OK)
        tui_say(a, "wrote %s", ms_buf_z(&where));
    ms_buf_free(&where);
    return rc;
}

enum ms_rc tui_tree_write(struct tui_app *a, const char *path, struct ms_err *err)
{
    return write_graph(a, path != NULL && *path != '\0' ? path : NULL, false, err);
}

enum ms_rc tui_tree_write_over(struct tui_app *a, const char *text, struct ms_err *err)
{
    (void)text;
    return write_graph(a, NULL, true, err);
}

enum ms_rc tui_tree_match_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                              struct ms_err *err)
{
    *taken = true;
    switch (key) {
    case 'M':
    case 'B':
        return match(a, t, key == 'B', err);
    case 'Z':
        return undo(a, t, err);
    case 'U':
        untag(a, t);
        return MS_OK;
    case ' ':
        return tag(a, t, err);
    default:
        *taken = false;
        return MS_OK;
    }
}
