/* SPDX-License-Identifier: MIT
 *
 * side_file: see the header.
 */
#include "mstx/rundb/side_file.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum ms_rc mstx__side_open(struct mstx_side_file *f, const char *beside, struct ms_err *err)
{
    *f = (struct mstx_side_file){.beside = beside, .fd = -1, .from = -1};
    MS_TRY(ms_tmp_open(&f->fd, &f->path, beside, err));
    f->from = open(f->path, O_RDONLY | O_CLOEXEC);
    return f->from >= 0 ? MS_OK : ms_fail_sys(err, "%s", f->path);
}

enum ms_rc mstx__side_append(struct mstx_side_file *f, const void *p, size_t n, struct ms_err *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = write(f->fd, (const char *)p + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ms_fail_sys(err, "%s: writing into a file beside it", f->beside);
        done += (size_t)got;
    }
    f->length += n;
    return MS_OK;
}

enum ms_rc mstx__side_read(const struct mstx_side_file *f, uint64_t at, void *p, size_t n,
                           struct ms_err *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(f->from, (char *)p + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            return ms_fail(err, MS_E_IO, "%s: a file beside it has ended", f->beside);
        if (got < 0)
            return ms_fail_sys(err, "%s: reading from a file beside it", f->beside);
        done += (size_t)got;
    }
    return MS_OK;
}

void mstx__side_close(struct mstx_side_file *f)
{
    if (f->path == NULL)
        return;
    if (f->from >= 0)
        close(f->from);
    ms_tmp_discard(f->fd, f->path);
    ms_free(f->path);
    f->path = NULL;
}
