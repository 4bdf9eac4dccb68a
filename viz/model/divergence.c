/* SPDX-License-Identifier: MIT
 *
 * divergence: tests the differing nodes in order until one has good inputs.
 */
#include "viz/model/divergence.h"

#include "probe/base/jread.h"

enum { TRIED_MAX = 2000, PAGE = 200 };

/* Tells whether an item of the list has a result other than "pass"; *any: whether one has a
 * result. */
static bool fails(struct ms_str json, const char *also, bool *any)
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
    *yes = rc == MS_OK && !fails(d.input, "warning", &in) && fails(d.output, also, &out);
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
    MS_TRY(seek(v, at, want, &order, err));
    if (order < 0) {
        want = GRAPH_WANT_WARNING;
        MS_TRY(seek(v, at, want, &order, err));
    }
    return graph_view_next(v, at, want, order < 0 ? INT64_MAX : order - 1, false, page, err);
}
