/* SPDX-License-Identifier: MIT
 *
 * side_file: a file without a name beside a database, for what is too large to wait in memory.
 */
#ifndef MSTX_RUNDB_SIDE_FILE_H
#define MSTX_RUNDB_SIDE_FILE_H

#include "probe/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct mstx_side_file {
    const char *beside; /* the database */
    char *path;         /* NULL: not open */
    int fd, from;       /* to write and to read; -1: none */
    uint64_t length;    /* bytes written */
};
enum ms_rc mstx__side_open(struct mstx_side_file *f, const char *beside,
                           struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__side_append(struct mstx_side_file *f, const void *p, size_t n,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__side_read(const struct mstx_side_file *f, uint64_t at, void *p, size_t n,
                           struct ms_err *err) MS_MUST_USE;
/* Closes and removes the file; a file that is not open is fine. */
void mstx__side_close(struct mstx_side_file *f);

#endif
