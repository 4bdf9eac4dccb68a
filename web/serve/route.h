/* SPDX-License-Identifier: MIT
 *
 * route: what a path leads to: a file of the page, or a question (struct web_route in web/api/api.h).
 *
 * The files of the page are compressed and embedded in the program.
 */
#ifndef WEB_SERVE_ROUTE_H
#define WEB_SERVE_ROUTE_H

#include "probe/base/str.h"

struct web_asset {
    const char *path, *type;
    struct ms_str gz; /* the file, gzip-compressed */
    char etag[20];    /* including quotes; changes with the content */
};

/* Returns the file of a path ("/" is the page), or NULL. */
const struct web_asset *web_asset_find(struct ms_str path);
/* Appends the uncompressed content to out, for a client that does not accept gzip. */
enum ms_rc web_asset_inflate(const struct web_asset *a, struct ms_buf *out,
                             struct ms_err *err) MS_MUST_USE;
/* Returns file i, NULL after the last; for tests. */
const struct web_asset *web_asset_at(size_t i);

#endif
