/* SPDX-License-Identifier: MIT
 *
 * asset: the assembler takes the compressed files in.  A new file of the page is
 * one line here; the Makefile compresses everything in web/page.
 */
#include "web/asset.h"

#include <pthread.h>
#include <stdio.h>
#include <zlib.h>

#define JS  "text/javascript; charset=utf-8"
#define CSS "text/css; charset=utf-8"

/* symbol, path, type, file */
#define ASSETS(X)                                                                                  \
    X(index, "/", "text/html; charset=utf-8", "index.html")                                        \
    X(icon, "/icon.svg", "image/svg+xml", "icon.svg")                                              \
    X(style, "/style.css", CSS, "style.css")                                                       \
    X(node, "/node.js", JS, "node.js")                                                             \
    X(main, "/main.js", JS, "main.js")                                                             \
    X(mark, "/mark.js", JS, "mark.js")                                                             \
    X(api, "/api.js", JS, "api.js")                                                                \
    X(bars, "/bars.js", JS, "bars.js")                                                             \
    X(cluster, "/cluster.js", JS, "cluster.js")                                                    \
    X(graph, "/graph.js", JS, "graph.js")                                                          \
    X(keys, "/keys.js", JS, "keys.js")                                                             \
    X(outline, "/outline.js", JS, "outline.js")                                                    \
    X(overview, "/overview.js", JS, "overview.js")                                                 \
    X(palette, "/palette.js", JS, "palette.js")                                                    \
    X(picture, "/picture.js", JS, "picture.js")                                                    \
    X(place, "/place.js", JS, "place.js")                                                          \
    X(snapshot, "/snapshot.js", JS, "snapshot.js")                                                 \
    X(sql, "/sql.js", JS, "sql.js")                                                                \
    X(table, "/table.js", JS, "table.js")                                                          \
    X(timeline, "/timeline.js", JS, "timeline.js")                                                 \
    X(sentences, "/sentences.js", JS, "sentences.js")                                              \
    X(tl_data, "/tl_data.js", JS, "tl_data.js")                                                    \
    X(tl_draw, "/tl_draw.js", JS, "tl_draw.js")                                                    \
    X(tl_hands, "/tl_hands.js", JS, "tl_hands.js")                                                 \
    X(tl_marks, "/tl_marks.js", JS, "tl_marks.js")                                                 \
    X(tl_sums, "/tl_sums.js", JS, "tl_sums.js")                                                    \
    X(util, "/util.js", JS, "util.js")                                                             \
    X(words, "/words.js", JS, "words.js")

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

/* Where each lies is known to the linker alone. */
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
