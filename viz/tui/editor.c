/* SPDX-License-Identifier: MIT
 *
 * editor: see the header.
 */
#include "viz/tui/editor.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- frames ------------------------------------------------------------------------------------ */

bool tui_editor_read_frame(struct ms_str text, struct tui_spot *spot)
{
    const struct ms_str head = MS_STR("File "), mark = MS_STR(", line ");
    while (text.n != 0 && text.p[0] == ' ')
        text = ms_str_sub(text, 1, text.n);
    if (!ms_str_starts(text, head))
        return false;
    text = ms_str_sub(text, head.n, text.n);
    const int64_t at = ms_str_find_str(text, mark);
    if (at <= 0)
        return false;
    struct ms_str path = ms_str_sub(text, 0, (uint32_t)at), number;
    struct ms_str rest = ms_str_sub(text, (uint32_t)at + mark.n, text.n);
    if (path.n > 2 && path.p[0] == '"' && path.p[path.n - 1] == '"')
        path = ms_str_sub(path, 1, path.n - 1);
    (void)ms_str_split(&rest, ',', &number);
    if (path.n >= sizeof spot->path || !ms_str_i64(number, &spot->line) || spot->line <= 0)
        return false;
    snprintf(spot->path, sizeof spot->path, "%.*s", MS_STR_ARG(path));
    return true;
}

static bool is_installed(const char *path)
{
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strstr(path, parts[i]) != NULL)
            return true;
    }
    return false;
}

enum ms_rc tui_editor_choose(const struct tui_page *p, struct tui_spot *spot, struct ms_err *err)
{
    struct tui_spot here, first = {.line = 0};
    *spot = (struct tui_spot){.line = 0};
    for (size_t i = 0; i < p->lines.n; i++) {
        if (!tui_page_shows(p, i) || !tui_editor_read_frame(p->lines.p[i].text, &here))
            continue;
        if (first.line == 0 || is_installed(first.path))
            first = here;
        if (access(here.path, R_OK) != 0)
            continue;
        if (spot->line == 0 || (is_installed(spot->path) && !is_installed(here.path)))
            *spot = here;
    }
    if (first.line == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no line of this page names a file; S shows the stack of a node");
    return spot->line != 0 ? MS_OK
                           : ms_fail(err, MS_E_NOTFOUND,
                                     "'%s' of this stack is not on this machine", first.path);
}

/* ---- the editor --------------------------------------------------------------------------------- */

/* The variables may hold options, which a shell splits; the path is an argument of its own. */
static int spawn_editor(pid_t *pid, const struct tui_spot *spot)
{
    char line[32], path[sizeof spot->path];
    posix_spawnattr_t how;
    sigset_t defaults;
    snprintf(line, sizeof line, "+%" PRId64, spot->line);
    snprintf(path, sizeof path, "%s", spot->path);
    char *const argv[] = {(char[]){"sh"},
                          (char[]){"-c"},
                          (char[]){"exec ${VISUAL:-${EDITOR:-vi}} \"$1\" \"$2\""},
                          (char[]){"sh"},
                          line,
                          path,
                          NULL};
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGTSTP);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &defaults);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    const int rc = posix_spawn(pid, "/bin/sh", NULL, &how, argv, environ);
    posix_spawnattr_destroy(&how);
    return rc;
}

enum ms_rc tui_editor_run(const struct tui_spot *spot, struct ms_err *err)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old[2];
    pid_t pid = 0;
    int status = 0;
    sigaction(SIGINT, &ignore, &old[0]);
    sigaction(SIGQUIT, &ignore, &old[1]);
    const int rc = spawn_editor(&pid, spot);
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    sigaction(SIGINT, &old[0], NULL);
    sigaction(SIGQUIT, &old[1], NULL);
    errno = rc;
    if (rc != 0)
        return ms_fail_sys(err, "cannot start an editor");
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
        return ms_fail(err, MS_E_NOTFOUND,
                       "the editor could not be started; set EDITOR to one that is here");
    return MS_OK;
}
