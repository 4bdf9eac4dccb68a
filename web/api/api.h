/* SPDX-License-Identifier: MIT
 *
 * api: the requests of the page, one function for each path.
 *
 * A call has its query, a reader while it runs, and a reply to fill. The server keeps no state
 * between calls: the state of a view is sent with each request. Failures become {"error": "..."}
 * and a status.
 */
#ifndef WEB_API_API_H
#define WEB_API_API_H

#include "viz/model/session.h"
#include "web/api/request_query.h"

#include "probe/base/jwrite.h"

/* Replies are bounded; longer lists are paged. */
enum { WEB_REPLY_MAX = 64 << 20, WEB_BODY_MAX = 64 << 10 };

struct web_tables;

struct web_call {
    const struct web_query *query;
    struct viz_session *session;
    struct viz_reader *reader;
    struct web_tables *tables; /* shared by all calls */
    struct ms_jwrite *json;    /* JSON answer */
    struct ms_buf *bytes;      /* binary answer */
    int until_gone;            /* connection of the requester, for slow answers; -1: none */
    int until_readable;        /* readable when the server ends; -1: none */
};

typedef enum ms_rc (*web_api_fn)(struct web_call *c, struct ms_err *err);

struct web_route {
    const char *path;
    web_api_fn fn;
    bool writes;          /* POST with a token; all others are GET */
    bool binary;          /* the answer is binary */
    bool slow;            /* answered by a thread of its own, a limited number at once */
    bool kept;            /* the answer depends on the query and the state alone */
    bool graph, timeline; /* required input */
};

/* Returns the route of a path, or NULL. */
const struct web_route *web_route_find(struct ms_str path);
/* Answers a call after checking that the required input is open. */
enum ms_rc web_route_run(const struct web_route *r, struct web_call *c,
                         struct ms_err *err) MS_MUST_USE;
/* Reads the graph's step, rank and side from the query; the defaults are the first ones. */
enum ms_rc web_read_spot(const struct web_call *c, struct graph_spot *at,
                         struct ms_err *err) MS_MUST_USE;
/* Writes the name of a node, and the short name for a row below `parent` if different. */
void web_put_name(struct ms_jwrite *w, struct ms_str name, struct ms_str parent);
/* Returns the HTTP status of a failure. */
unsigned web_status_of(enum ms_rc rc);

/* ---- the answers ----------------------------------------------------------------- */

enum ms_rc web_api_about(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_facts(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_findings(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_step(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_steps(struct web_call *c, struct ms_err *err);

enum ms_rc web_api_sql(struct web_call *c, struct ms_err *err);

enum ms_rc web_api_lanes(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_slices(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_busy(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_strings(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_sum(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_cluster(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_collective(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_alike(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_hits(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_find(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_replay(struct web_call *c, struct ms_err *err);

enum ms_rc web_api_children(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_path(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_node(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_search(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_next(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_matrix(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_strip(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_profile(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_first(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_flow(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_figures(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_histogram(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_match(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_unmatch(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_undo(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_write(struct web_call *c, struct ms_err *err);

enum ms_rc web_api_sheet(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_flame(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_shelf(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_choose(struct web_call *c, struct ms_err *err);
enum ms_rc web_api_trend(struct web_call *c, struct ms_err *err);

enum ms_rc web_api_table(struct web_call *c, struct ms_err *err);

#endif
