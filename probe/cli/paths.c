/* SPDX-License-Identifier: MIT
 *
 * paths: what the program says of paths: which command reads one that this command cannot read, what lies in the
 * folder that it is called in, and how it opens a path without a command.
 */
#include "probe/cli/cmds.h"

#include "viz/model/path_kind.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- a path of another kind ----------------------------------------------------------- */

enum { NEXT_MAX = PATH_MAX * 4 + 64, NAMES_MAX = 1000, SHOWN_MAX = 20 };

#define ONE(kind) (1u << VIZ_PATH_##kind)
enum {
    DUMPS = ONE(DUMP),
    TIMELINES = ONE(RUN) | ONE(TRACE) | ONE(PROFILE),
    SHOWN = DUMPS | TIMELINES | ONE(GRAPH) | ONE(TABLE) | ONE(TREND) | ONE(MEMORY)
};

/* What each command reads; a command that is not here reads anything. */
static const struct reads {
    const char *command;
    unsigned kinds;
} reads[] = {
    {"stat", DUMPS},
    {"check", DUMPS},
    {"compare", DUMPS},
    {"judge", DUMPS},
    {"reproduce", DUMPS},
    {"calibrate", DUMPS},
    {"overflow_check", DUMPS},
    {"graph_visualize", DUMPS},
    {"parse", ONE(TENSOR) | DUMPS},
    {"data2db", DUMPS | ONE(TABLE)},
    {"merge_result", ONE(TABLE)},
    {"import", TIMELINES},
    {"report", TIMELINES},
    {"whatif", TIMELINES},
    {"cluster", TIMELINES},
    {"export", TIMELINES},
    {"sql", TIMELINES},
    {"dryrun", DUMPS},
    {"memory", TIMELINES | ONE(MEMORY)},
    {"trend", DUMPS | ONE(TREND)},
    {"monitor", ONE(TREND)},
    {"ctl", ONE(RUN)},
    {"view", SHOWN},
    {"serve", SHOWN},
};

static bool is_read_by(const char *command, enum viz_path_kind kind)
{
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        if (strcmp(reads[i].command, command) == 0)
            return (reads[i].kinds >> kind & 1) != 0;
    }
    return true;
}

/* Copies the path with which a message begins; the longest before ": " that exists, since names may have one. */
static bool path_of_message(const char *msg, char *path)
{
    size_t found = 0;
    for (const char *p = strstr(msg, ": "); p != NULL; p = strstr(p + 1, ": ")) {
        const size_t n = (size_t)(p - msg);
        if (n >= PATH_MAX)
            break;
        memcpy(path, msg, n);
        path[n] = '\0';
        found = ms_path_kind(path) != MS_KIND_NONE ? n : found;
    }
    path[found] = '\0';
    return found != 0;
}

/* Appends "; 'COMMAND' does" for a path that there is a command for. */
static void put_next(enum viz_path_kind kind, const char *path, struct ms_buf *out)
{
    if (!viz_path_has_next(kind))
        return;
    ms_buf_puts(out, "; '");
    viz_path_next(kind, path, out);
    ms_buf_printf(out, "' %s", viz_path_verb(kind));
}

/* Words of the command line. */
static struct {
    char *const *word;
    int n;
} line;

/* Tells whether a word of the command line ends with the path, as in --target_path=PATH. */
static bool is_named(const char *path)
{
    bool is = false;
    for (int i = 1; i < line.n && !is; i++)
        is = ms_str_ends(ms_str_of(line.word[i]), ms_str_of(path));
    return is;
}

/* A command that was given a dump reads its parts itself, and says what is wrong in them. */
static bool explain(const struct ms_cmd *cmd, const struct ms_err *err)
{
    char path[PATH_MAX];
    if (cmd == NULL || err->sys == EACCES || !path_of_message(err->msg, path))
        return false;
    const enum viz_path_kind kind = viz_path_kind_of(path);
    if (kind <= VIZ_PATH_FOLDER || is_read_by(cmd->name, kind) ||
        (kind == VIZ_PATH_DUMP_PART && !is_named(path)))
        return false;
    struct ms_buf next = {.max = NEXT_MAX};
    put_next(kind, path, &next);
    if (kind == VIZ_PATH_DUMP_PART)
        ms_cmd_note(cmd->name, "%s: is %s", path, viz_path_what(kind));
    else if (kind == VIZ_PATH_DAMAGED)
        ms_cmd_note(cmd->name, "%s: is %s; copy or make it again", path, viz_path_what(kind));
    else
        ms_cmd_note(cmd->name, "%s: is %s, which this command does not read%.*s", path,
                    viz_path_what(kind), (int)next.n, next.n != 0 ? next.p : "");
    ms_buf_free(&next);
    return true;
}

void cli_explain_paths(int argc, char *const *argv)
{
    line.word = argv;
    line.n = argc;
    ms_cmd_explain = explain;
}

/* ---- what lies in a folder -------------------------------------------------------------- */

/* Prints a row of the list: path, what it is, when it was changed, and the next command. */
static void show(const char *path, enum viz_path_kind kind)
{
    struct stat st;
    struct tm at;
    char when[32] = "";
    struct ms_buf next = {.max = NEXT_MAX};
    if (stat(path, &st) == 0 && localtime_r(&st.st_mtime, &at) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &at);
    viz_path_next(kind, path, &next);
    printf("  %-24s %-28s %s  %.*s\n", path, viz_path_what(kind), when, (int)next.n,
           next.n != 0 ? next.p : "");
    ms_buf_free(&next);
}

/* Shows an entry when a command reads it and not too many were shown. */
static void show_entry(const char *dir, const char *name, size_t *found)
{
    char *path = strcmp(dir, ".") == 0 ? ms_str_dup(ms_str_of(name)) : ms_path_join(dir, name);
    const enum viz_path_kind kind = path != NULL ? viz_path_kind_of(path) : VIZ_PATH_NONE;
    if (viz_path_is_read(kind) && viz_path_has_next(kind) && ++*found <= SHOWN_MAX)
        show(path, kind);
    ms_free(path);
}

size_t cli_show_folder(const char *dir)
{
    struct ms_dir list;
    size_t found = 0;
    const enum viz_path_kind whole = viz_path_kind_of(dir);
    if (viz_path_has_next(whole)) {
        show(dir, whole);
        return 1;
    }
    if (ms_dir_list(&list, dir, NULL) != MS_OK)
        return 0;
    for (size_t i = 0; i < list.names.n && i < NAMES_MAX; i++)
        show_entry(dir, list.names.p[i].p, &found);
    ms_dir_free(&list);
    if (found > SHOWN_MAX)
        printf("  ... and %zu more\n", found - SHOWN_MAX);
    return found;
}

/* ---- a path instead of a command ------------------------------------------------------ */

/* Returns the words of a command line that opens a path: in the viewer on a terminal, else by the command that
 * tells most of it. */
static const char *command_for(enum viz_path_kind kind)
{
    if ((SHOWN >> kind & 1) != 0 && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO))
        return "view";
    return (TIMELINES >> kind & 1) != 0 ? "report"
           : (DUMPS >> kind & 1) != 0   ? "stat"
           : kind == VIZ_PATH_TREND     ? "trend"
           : kind == VIZ_PATH_MEMORY    ? "memory"
                                        : NULL;
}

enum ms_rc cli_command_of_path(const char *path, const char **name, struct ms_err *err)
{
    const bool looks_like_one = strpbrk(path, "/.") != NULL;
    *name = NULL;
    if (ms_path_kind(path) == MS_KIND_NONE)
        return looks_like_one ? ms_fail(err, MS_E_NOTFOUND, "%s: no such file or directory", path)
                              : MS_OK;
    const enum viz_path_kind kind = viz_path_kind_of(path);
    *name = command_for(kind);
    if (*name != NULL)
        return MS_OK;
    if (access(path, R_OK) != 0)
        return ms_fail_sys(err, "%s", path);
    if (kind == VIZ_PATH_NONE || kind == VIZ_PATH_FOLDER || kind == VIZ_PATH_DUMP_PART)
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: is %s%s", path, viz_path_what(kind),
                       kind == VIZ_PATH_FOLDER ? " with nothing in it that msprobe reads" : "");
    struct ms_buf next = {.max = NEXT_MAX};
    put_next(kind, path, &next);
    ms_fail(err, MS_E_UNSUPPORTED, "%s: is %s, which %s%.*s", path, viz_path_what(kind),
            viz_path_is_read(kind) ? "does not open without a command" : "msprobe does not open",
            (int)next.n, next.n != 0 ? next.p : "");
    ms_buf_free(&next);
    return MS_E_UNSUPPORTED;
}
