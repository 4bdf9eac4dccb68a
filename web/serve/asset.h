/* SPDX-License-Identifier: MIT
 *
 * asset: the files of the page, compressed, as part of the program.
 */
#ifndef WEB_SERVE_ASSET_H
#define WEB_SERVE_ASSET_H

#include "probe/base/str.h"

struct web_asset {
    const char *path, *type;
    struct ms_str gz; /* the file, compressed by gzip */
    char etag[20];    /* with its quotes; changes with the content */
};

/* The file of a path ("/" is the page), or NULL. */
const struct web_asset *web_asset_find(struct ms_str path);
/* Its plain content appended to out, for a client that does not take gzip. */
enum ms_rc web_asset_inflate(const struct web_asset *a, struct ms_buf *out,
                             struct ms_err *err) MS_MUST_USE;
/* One after the other from 0 on, then NULL: for tests. */
const struct web_asset *web_asset_at(size_t i);

#endif
