/* SPDX-License-Identifier: MIT
 *
 * route: the table of questions, and the files of the page, embedded by .incbin.
 */
#include "web/serve/route.h"

#include "probe/base/assert.h"
#include "web/api/api.h"

#include <pthread.h>
#include <stdio.h>
#include <zlib.h>

/* ---- questions ---------------------------------------------------------------------- */

static const struct web_route routes[] = {
    {"/api/about", web_api_about, .kept = true},
    {"/api/facts", web_api_facts, .writes = false},
    {"/api/sheet", web_api_sheet, .writes = false},
    {"/api/flame", web_api_flame, .writes = false},
    {"/api/shelf", web_api_shelf, .slow = true},
    {"/api/choose", web_api_choose, .writes = true},
    {"/api/trend", web_api_trend, .kept = true},
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
    {"/api/alike", web_api_alike, .kept = true, .timeline = true},
    {"/api/hits", web_api_hits, .kept = true, .timeline = true},
    {"/api/replay", web_api_replay, .timeline = true},
    {"/api/children", web_api_children, .graph = true},
    {"/api/path", web_api_path, .graph = true},
    {"/api/node", web_api_node, .graph = true},
    {"/api/search", web_api_search, .graph = true},
    {"/api/next", web_api_next, .graph = true},
    {"/api/matrix", web_api_matrix, .graph = true},
    {"/api/strip", web_api_strip, .graph = true},
    {"/api/profile", web_api_profile, .graph = true},
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

/* ---- files of the page -------------------------------------------------------------- */

/* A new file of the page is one line in ASSETS; the Makefile compresses everything in web/page. The
 * path of a request is compared with the paths of this table and never opened as a file. */
#define MODULE(X, symbol, file) X(symbol, "/" file, "text/javascript; charset=utf-8", file)
/* symbol, path, type, file */
#define ASSETS(X)                                                                                  \
    X(index, "/", "text/html; charset=utf-8", "index.html")                                        \
    X(icon, "/icon.svg", "image/svg+xml", "icon.svg")                                              \
    X(style, "/style.css", "text/css; charset=utf-8", "style.css")                                 \
    MODULE(X, main, "main.js")                                                                     \
    MODULE(X, overview, "overview.js")                                                             \
    MODULE(X, flame, "flame.js")                                                                   \
    MODULE(X, graph_boxes, "graph/boxes.js")                                                       \
    MODULE(X, graph_graph, "graph/graph.js")                                                       \
    MODULE(X, graph_node, "graph/node.js")                                                         \
    MODULE(X, graph_outline, "graph/outline.js")                                                   \
    MODULE(X, shared_api, "shared/api.js")                                                         \
    MODULE(X, shared_bars, "shared/bars.js")                                                       \
    MODULE(X, shared_csv, "shared/csv.js")                                                         \
    MODULE(X, shared_heat, "shared/heat.js")                                                       \
    MODULE(X, shared_keys, "shared/keys.js")                                                       \
    MODULE(X, shared_mark, "shared/mark.js")                                                       \
    MODULE(X, shared_palette, "shared/palette.js")                                                 \
    MODULE(X, shared_picture, "shared/picture.js")                                                 \
    MODULE(X, shared_place, "shared/place.js")                                                     \
    MODULE(X, shared_snapshot, "shared/snapshot.js")                                               \
    MODULE(X, shared_util, "shared/util.js")                                                       \
    MODULE(X, shared_words, "shared/words.js")                                                     \
    MODULE(X, table_sql, "table/sql.js")                                                           \
    MODULE(X, table_table, "table/table.js")                                                       \
    MODULE(X, shelf, "shelf.js")                                                                   \
    MODULE(X, trend, "trend.js")                                                                   \
    MODULE(X, timeline_cluster, "timeline/cluster.js")                                             \
    MODULE(X, timeline_evidence, "timeline/evidence.js")                                           \
    MODULE(X, timeline_found, "timeline/found.js")                                                 \
    MODULE(X, timeline_folds, "timeline/folds.js")                                                 \
    MODULE(X, timeline_glimpse, "timeline/glimpse.js")                                             \
    MODULE(X, timeline_hands, "timeline/hands.js")                                                 \
    MODULE(X, timeline_marks, "timeline/marks.js")                                                 \
    MODULE(X, timeline_painter, "timeline/painter.js")                                             \
    MODULE(X, timeline_pair, "timeline/pair.js")                                                   \
    MODULE(X, timeline_replay, "timeline/replay.js")                                               \
    MODULE(X, timeline_slices, "timeline/slices.js")                                               \
    MODULE(X, timeline_sums, "timeline/sums.js")                                                   \
    MODULE(X, timeline_counters, "timeline/counters.js")                                           \
    MODULE(X, timeline_timeline, "timeline/timeline.js")

#define EMBED(symbol, path, type, file)                                                            \
    __asm__(".pushsection .rodata\n"                                                               \
            "web_asset_" #symbol ":\n"                                                             \
            ".incbin \"" WEB_PAGE "/" file ".gz\"\n"                                               \
            "web_asset_" #symbol "_end:\n"                                                         \
            ".popsection\n");                                                                      \
    extern const char web_asset_##symbol[] __attribute__((visibility("hidden")));                  \
    extern const char web_asset_##symbol##_end[] __attribute__((visibility("hidden")));
ASSETS(EMBED)

enum { FILE_MAX = 16 << 20 };

#define ENTRY(symbol, where, mime, file) {.path = (where), .type = (mime)},
static struct web_asset assets[] = {ASSETS(ENTRY)};
enum { COUNT = sizeof assets / sizeof *assets };

/* Sets address and size of each file, which only the linker knows. */
static void measure(void)
{
#define PLACE(symbol, path, type, file)                                                            \
    {web_asset_##symbol, (uint32_t)(web_asset_##symbol##_end - web_asset_##symbol)},
    const struct ms_str content[] = {ASSETS(PLACE)};
    for (size_t i = 0; i < COUNT; i++) {
        assets[i].gz = content[i];
        snprintf(assets[i].etag, sizeof assets[i].etag, "\"%016llx\"",
                 (unsigned long long)ms_str_hash(content[i]));
    }
}

const struct web_asset *web_asset_at(size_t i)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, measure);
    return i < COUNT ? &assets[i] : NULL;
}

const struct web_asset *web_asset_find(struct ms_str path)
{
    const struct web_asset *a;
    for (size_t i = 0; (a = web_asset_at(i)) != NULL; i++) {
        if (ms_str_is(path, a->path))
            return a;
    }
    return NULL;
}

enum ms_rc web_asset_inflate(const struct web_asset *a, struct ms_buf *out, struct ms_err *err)
{
    enum { GZIP = 16 };
    z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)a->gz.p, .avail_in = a->gz.n};
    char part[16 << 10];
    ms_assert(a->gz.n != 0);
    if (inflateInit2(&z, GZIP + MAX_WBITS) != Z_OK)
        return ms_no_memory(err);
    int rc = Z_OK;
    while (rc == Z_OK && out->n < FILE_MAX) {
        z.next_out = (Bytef *)part;
        z.avail_out = sizeof part;
        rc = inflate(&z, Z_NO_FLUSH);
        ms_buf_put(out, part, sizeof part - z.avail_out);
    }
    inflateEnd(&z);
    if (rc != Z_STREAM_END)
        return ms_fail(err, MS_E_INTERNAL, "%s: the embedded file is damaged", a->path);
    return ms_buf_check(out, err);
}
