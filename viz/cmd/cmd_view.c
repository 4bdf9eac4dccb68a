/* SPDX-License-Identifier: MIT
 *
 * view: the terminal visualizer.
 */
#include "viz/model/session.h"
#include "viz/tui/editor.h"
#include "viz/tui/term.h"
#include "viz/tui/viewer.h"

#include "probe/base/io.h"
#include "probe/base/opt.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern const struct ms_cmd viz_cmd_view;

enum { SIDE_MAX = 4096, SCRIPT_MAX = 1 << 24, TICK_MS = 1000, WAIT_NS = 300000000 };

struct args {
    struct ms_opt_list path;
    const char *golden, *script, *size;
    bool live, mouse, ascii;
};

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "a run directory, a dump, a .vis.db, a trace, a database of Ascend's profilers, a "
             "table of "
             "a comparison, statistics over steps, or a record of memory"},
    {"golden_path", "gp", MS_OPT_PATH, offsetof(struct args, golden), "PATH",
     .help = "a second dump to compare the first with; of two runs, the older one"},
    {"live", NULL, MS_OPT_FLAG, offsetof(struct args, live),
     .help = "follow a running job: steps a second, the slowest rank, what each rank is in"},
    {"mouse", NULL, MS_OPT_FLAG, offsetof(struct args, mouse),
     .help = "take clicks and the wheel; the terminal then no longer selects text with them"},
    {"ascii", NULL, MS_OPT_FLAG, offsetof(struct args, ascii),
     .help = "draw with ASCII alone, as is done where the locale is not UTF-8"},
    {"script", NULL, MS_OPT_PATH, offsetof(struct args, script), "FILE",
     .help = "press the keys in FILE without a terminal, then print the screen"},
    {"size", NULL, MS_OPT_TEXT, offsetof(struct args, size), "WxH", .dflt = "80x24",
     .help = "with --script: columns and rows of the screen"},
    {0}};

/* ---- without a terminal ----------------------------------------------------------------- */

static enum ms_rc read_size(const char *text, int *w, int *h, struct ms_err *err)
{
    struct ms_str rest = ms_str_of(text), left;
    uint64_t a, b;
    (void)ms_str_split(&rest, 'x', &left);
    if (!ms_str_u64(left, &a) || !ms_str_u64(rest, &b) || a == 0 || b == 0 || a > SIDE_MAX ||
        b > SIDE_MAX)
        return ms_fail(err, MS_E_ARG, "--size takes columns and rows such as 80x24, not '%s'",
                       text);
    *w = (int)a;
    *h = (int)b;
    return MS_OK;
}

static enum ms_rc print_screen(const struct tui_app *a, struct ms_err *err)
{
    struct ms_buf text = {.max = (size_t)SIDE_MAX * SIDE_MAX * 4};
    tui_cells_write(&a->cells, false, &text);
    enum ms_rc rc = ms_buf_check(&text, err);
    if (rc == MS_OK)
        fwrite(text.p, 1, text.n, stdout);
    ms_buf_free(&text);
    return rc;
}

/* Presses the keys of a script, and prints the screen unless they end the viewer. */
static enum ms_rc press_keys(struct tui_app *a, const struct args *args, struct ms_str script,
                             struct ms_err *err)
{
    int w = 0, h = 0;
    MS_TRY(read_size(args->size, &w, &h, err));
    if (memchr(script.p, '\0', script.n) != NULL)
        return ms_fail(err, MS_E_FORMAT, "%s: is no text, so no script of keys", args->script);
    MS_TRY(tui_app_script(a, script, w, h, err));
    if (!a->quit)
        return print_screen(a, err);
    ms_cmd_note("view", "a key of %s ended the viewer, so nothing is shown", args->script);
    return MS_OK;
}

static enum ms_rc run_script(const struct args *args, struct viz_session *s, struct ms_err *err)
{
    struct tui_app a;
    struct ms_file script;
    MS_TRY(ms_file_map(&script, args->script, SCRIPT_MAX, err));
    enum ms_rc rc = tui_app_open(&a, s, args->live ? args->path.items[0] : NULL, args->ascii, err);
    if (rc == MS_OK) {
        rc = press_keys(&a, args, (struct ms_str){script.p, (uint32_t)script.n}, err);
        tui_app_close(&a);
    }
    ms_file_unmap(&script);
    return rc;
}

/* ---- on a terminal ------------------------------------------------------------------------ */

static enum ms_rc show_viewer(struct tui_app *a, struct ms_err *err)
{
    int w, h;
    tui_term_size(&w, &h);
    if (a->redraw)
        tui_term_forget();
    a->redraw = false;
    if (a->copied.n != 0)
        tui_term_copy(ms_buf_slice(&a->copied));
    ms_buf_clear(&a->copied);
    MS_TRY(tui_app_draw(a, w, h, err));
    return tui_term_show(&a->cells, err);
}

/* Lends the terminal to the editor until it ends. */
static void edit_spot(struct tui_app *a)
{
    struct ms_err err = {0};
    tui_term_lend();
    const enum ms_rc rc = tui_editor_run(&a->edit, &err);
    tui_term_regain();
    if (rc != MS_OK)
        tui_say_error(a, &err);
    a->edit.line = 0;
}

static enum ms_rc run_loop(struct tui_app *a, struct ms_err *err)
{
    enum ms_rc rc = show_viewer(a, err);
    while (rc == MS_OK && !a->quit) {
        bool busy = tui_app_work(a);
        rc = show_viewer(a, err);
        if (rc != MS_OK)
            break;
        int key = tui_term_key(busy ? 0 : a->live != NULL ? TICK_MS : -1);
        tui_app_key(a, key);
        if (a->edit.line != 0)
            edit_spot(a);
        if (!a->quit && key != TUI_KEY_TICK)
            rc = show_viewer(a, err);
    }
    return rc;
}

static enum ms_rc run_terminal(const struct args *args, struct viz_session *s, int *signal_number,
                               struct ms_err *err)
{
    struct tui_app a;
    struct tui_term_conf conf = {args->mouse, ms_globals.no_color, args->ascii};
    MS_TRY(tui_term_open(&conf, err));
    enum ms_rc rc =
        tui_app_open(&a, s, args->live ? args->path.items[0] : NULL, tui_term_ascii(), err);
    if (rc == MS_OK) {
        a.input = STDIN_FILENO;
        rc = run_loop(&a, err);
        tui_app_close(&a);
    }
    *signal_number = tui_term_stopped();
    tui_term_close();
    return rc;
}

/* Opens the session; with --live, waits for a job that has not begun to write. */
static enum ms_rc open_session(const struct args *args, const struct viz_conf *conf,
                               struct viz_session *s, struct ms_err *err)
{
    const struct timespec while_ = {.tv_nsec = WAIT_NS};
    enum ms_rc rc = viz_session_open(s, conf, err);
    if (rc == MS_E_NOTFOUND && args->live && args->script == NULL)
        fprintf(stderr, "waiting for a job that 'msprobe run -o %s' records; Ctrl-C ends\n",
                conf->path);
    while (rc == MS_E_NOTFOUND && args->live && args->script == NULL) {
        nanosleep(&while_, NULL);
        *err = (struct ms_err){0};
        rc = viz_session_open(s, conf, err);
    }
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.size = "80x24"};
    struct viz_session session;
    struct ms_err err = {0};
    int signal_number = 0;
    bool done;
    if (ms_opt_parse(&viz_cmd_view, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&viz_cmd_view, &err);
    if (done)
        return MS_EXIT_OK;
    struct viz_conf conf = {.path = a.path.items[0],
                            .golden = a.golden,
                            .progress = viz_print_progress,
                            .note = viz_print_note,
                            .ctx = (char[]){"view"}};
    if (a.script == NULL && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
        (void)ms_fail(&err, MS_E_ARG,
                      "view needs a terminal; without one, --script FILE presses "
                      "keys and prints the screen");
        return ms_cmd_fail(&viz_cmd_view, &err);
    }
    enum ms_rc rc = open_session(&a, &conf, &session, &err);
    if (rc != MS_OK)
        return ms_cmd_fail(&viz_cmd_view, &err);
    rc = a.script != NULL ? run_script(&a, &session, &err)
                          : run_terminal(&a, &session, &signal_number, &err);
    viz_session_close(&session);
    if (signal_number != 0)
        raise(signal_number); /* cleanup is done: end with the signal */
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&viz_cmd_view, &err);
}

const struct ms_cmd viz_cmd_view = {
    .name = "view",
    .run = run_command,
    .brief = "show a run, a dump or a comparison in the terminal",
    .opts = opts,
    .usage = "[options] PATH",
    .draws = true,
    .about = "Opens PATH on the terminal: findings first, then the tree of modules, the timeline "
             "and reports.  The keys of every screen stand in its last line; ? shows all of "
             "them, : takes a command, q goes back.  Files stay as they are: pairs matched by "
             "hand last when :write writes them, into a file beside the graph.\n\n"
             "  msprobe view run1\n"
             "  msprobe view dump_npu --golden_path dump_gpu\n"
             "  msprobe view slow_run -gp fast_run     what takes longer\n"
             "  msprobe view --live run1            while the job runs",
};
