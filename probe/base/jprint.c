/* SPDX-License-Identifier: MIT
 *
 * jprint: JSON on standard output.
 */
#include "probe/base/jprint.h"

#include <stdio.h>

enum { INDENT = 1, BUFFER_MAX = 1 << 20 };

static enum ms_rc to_stdout(void *ctx, const char *p, size_t n, struct ms_err *err)
{
    (void)ctx;
    return fwrite(p, 1, n, stdout) == n ? MS_OK : ms_fail_sys(err, "standard output");
}

void ms_jprint_begin(struct ms_jwrite *w)
{
    ms_jwrite_init(w, INDENT, BUFFER_MAX);
    w->drain = to_stdout;
}

enum ms_rc ms_jprint_end(struct ms_jwrite *w, enum ms_rc rc, struct ms_err *err)
{
    if (rc == MS_OK)
        rc = ms_jwrite_finish(w, err);
    if (rc == MS_OK)
        putchar('\n');
    ms_jwrite_free(w);
    return rc;
}
