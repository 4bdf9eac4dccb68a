/* SPDX-License-Identifier: MIT
 *
 * zip_list: the files in a zip archive, which are read in place.
 *
 * A file in an archive has a path like one in a folder: "job.zip/rank-0.json".
 */
#ifndef MSTX_FOREIGN_ZIP_LIST_H
#define MSTX_FOREIGN_ZIP_LIST_H

#include "probe/base/str.h"

struct mstx_zip_member {
    struct ms_str name;
    uint64_t at, n; /* its bytes in the archive */
    bool is_packed; /* by deflate, else as they are */
};

/* Tells by its name whether a file is an archive. */
bool mstx__is_zip(const char *path);
/* Calls fn for each file in the archive, in the archive's order, until it fails.  Files that are
 * encrypted or packed in other ways than deflate are left out. */
typedef enum ms_rc (*mstx_zip_fn)(void *ctx, const struct mstx_zip_member *m, struct ms_err *err);
enum ms_rc mstx__zip_each(const char *path, mstx_zip_fn fn, void *ctx,
                          struct ms_err *err) MS_MUST_USE;
/* Finds the file with a path in an archive and returns the path of that on the heap. */
enum ms_rc mstx__zip_find(const char *path, char **archive, struct mstx_zip_member *m,
                          struct ms_err *err) MS_MUST_USE;

#endif
