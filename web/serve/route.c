/* SPDX-License-Identifier: MIT
 *
 * route: the table of paths and their functions.
 */
#include "web/api/api.h"

static const struct web_route routes[] = {
    {"/api/about", web_api_about, .kept = true},
    {"/api/facts", web_api_facts, .writes = false},
    {"/api/findings", web_api_findings, .kept = true},
    {"/api/sql", web_api_sql, .slow = true},
    {"/api/steps", web_api_steps, .kept = true, .timeline = true},
    {"/api/step", web_api_step, .kept = true, .timeline = true},
    {"/api/lanes", web_api_lanes, .kept = true, .timeline = true},
    {"/api/slices", web_api_slices, .timeline = true, .binary = true},
    {"/api/busy", web_api_busy, .timeline = true, .binary = true},
    {"/api/strings", web_api_strings, .timeline = true},
    {"/api/sum", web_api_sum, .timeline = true},
    {"/api/find", web_api_find, .kept = true, .timeline = true},
    {"/api/cluster", web_api_cluster, .kept = true, .timeline = true},
    {"/api/collective", web_api_collective, .timeline = true},
    {"/api/children", web_api_children, .graph = true},
    {"/api/path", web_api_path, .graph = true},
    {"/api/node", web_api_node, .graph = true},
    {"/api/search", web_api_search, .graph = true},
    {"/api/next", web_api_next, .graph = true},
    {"/api/matrix", web_api_matrix, .graph = true},
    {"/api/strip", web_api_strip, .graph = true},
    {"/api/first", web_api_first, .graph = true},
    {"/api/flow", web_api_flow, .graph = true},
    {"/api/figures", web_api_figures, .graph = true},
    {"/api/histogram", web_api_histogram, .graph = true},
    {"/api/table", web_api_table, .graph = true},
    {"/api/match", web_api_match, .graph = true, .writes = true},
    {"/api/unmatch", web_api_unmatch, .graph = true, .writes = true},
    {"/api/undo", web_api_undo, .graph = true, .writes = true},
    {"/api/write", web_api_write, .graph = true, .writes = true},
};

const struct web_route *web_route_find(struct ms_str path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (ms_str_is(path, routes[i].path))
            return &routes[i];
    }
    return NULL;
}

enum ms_rc web_route_run(const struct web_route *r, struct web_call *c, struct ms_err *err)
{
    if (r->timeline && c->reader->tl == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no timeline is open; open a run directory made by "
                       "'msprobe run', or a trace");
    if (r->graph && c->reader->graph == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no graph is open; open a dump, two dumps, or a file "
                       "made by 'msprobe graph_visualize'");
    return r->fn(c, err);
}

unsigned web_status_of(enum ms_rc rc)
{
    switch (rc) {
    case MS_OK:
        return 200;
    case MS_E_ARG:
    case MS_E_FORMAT:
        return 400;
    case MS_E_NOTFOUND:
        return 404;
    case MS_E_LIMIT:
        return 413;
    case MS_E_UNSUPPORTED:
        return 409;
    case MS_E_INTERRUPTED:
        return 503;
    default:
        return 500;
    }
}
