/* SPDX-License-Identifier: MIT
 *
 * fuzz_graph_old: .vis files that somebody else has written.  What is converted is a
 * database that viewers open.
 */
#include "compare/graph/view/graph_view.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[64], vis[96];

static void must(bool truth)
{
    if (!truth)
        __builtin_trap();
}

static void clean(void)
{
    unlink(vis);
    rmdir(dir);
}

static void set_up(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.40s/fuzz-XXXXXX", tmp != NULL ? tmp : "/tmp");
    must(mkdtemp(dir) != NULL);
    snprintf(vis, sizeof vis, "%s/x_rank1.vis", dir);
    atexit(clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct graph_made made;
    struct graph_view *v;
    if (vis[0] == '\0')
        set_up();
    int fd = open(vis, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, p, n) == (ssize_t)n && close(fd) == 0);
    if (graph_convert(vis, dir, &made, NULL) != MS_OK)
        return 0;
    must(graph_view_open(&v, made.path, NULL) == MS_OK);
    graph_view_close(v);
    unlink(made.path);
    return 0;
}
