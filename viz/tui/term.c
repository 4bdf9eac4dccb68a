/* SPDX-License-Identifier: MIT
 *
 * term: ncurses, colours, keys and signals. Keys are read by `escape`, not by ncurses, which would leave the
 * letters of sequences that it does not know.
 *
 * The first signal that asks the program to end becomes a key, so that the session's files are
 * removed; a second one, like a crash, ends the program at once.
 */
#include "viz/tui/term.h"

#include "probe/base/mem.h"
#include "viz/tui/escape.h"
#include "viz/tui/paint.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

enum { RESTORE_MAX = 512, OUT_MAX = 64 << 20, TYPED_MAX = 512 };

static struct {
    SCREEN *screen;
    locale_t locale;
    bool ascii, mouse, is_gone;
    struct tui_paint paint;
    struct ms_buf out;
    struct tui_escape escape;
    unsigned char typed[TYPED_MAX]; /* bytes that were read and are no keys yet */
    size_t typed_at, typed_n;
} term;

/* ---- state for signal handlers ------------------------------------------------------ */

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
enum { STOPS = sizeof stops / sizeof *stops, CRASHES = sizeof crashes / sizeof *crashes };
static struct sigaction old_stop[STOPS], old_crash[CRASHES];
static volatile sig_atomic_t stopped, continued, resized;
static struct sigaction old_continue, old_suspend, old_resize;
static struct termios cooked;
static char restore[RESTORE_MAX];
static size_t restore_n;
static int wake[2] = {-1, -1};

/* Append a capability without its padding "$<5>". */
static void add_restore(const char *name)
{
    char cap[16];
    snprintf(cap, sizeof cap, "%s", name);
    const char *text = tigetstr(cap);
    if (text == NULL || text == (const char *)-1)
        return;
    for (const char *p = text; *p != '\0' && restore_n < sizeof restore;) {
        const char *end = p[0] == '$' && p[1] == '<' ? strchr(p, '>') : NULL;
        if (end != NULL)
            p = end + 1;
        else
            restore[restore_n++] = *p++;
    }
}

/* What the terminal shall send besides keys: where a paste begins and ends; clicks, drags and the wheel. */
static const char pastes_on[] = "\033[?2004h", pastes_off[] = "\033[?2004l";
static const char mouse_on[] = "\033[?1002h\033[?1006h", mouse_off[] = "\033[?1006l\033[?1002l";

/* Only write, since signal handlers call it. */
static void ask_for_events(bool on)
{
    (void)!write(STDOUT_FILENO, on ? pastes_on : pastes_off, sizeof pastes_on - 1);
    if (term.mouse)
        (void)!write(STDOUT_FILENO, on ? mouse_on : mouse_off, sizeof mouse_on - 1);
}

static void give_back_at_once(void)
{
    ask_for_events(false);
    (void)!write(STDOUT_FILENO, restore, restore_n);
    tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

static void end_by(int sig, const struct sigaction *old)
{
    give_back_at_once();
    sigaction(sig, old, NULL);
    raise(sig);
}

static void on_stop(int sig)
{
    int before = errno;
    if (stopped == 0) {
        stopped = sig;
        (void)!write(wake[1], "", 1);
        errno = before;
        return;
    }
    for (int i = 0; i < STOPS; i++) {
        if (stops[i] == sig)
            end_by(sig, &old_stop[i]);
    }
}

/* Marks the screen as overwritten: other programs have used the terminal. */
static void on_continue(int sig)
{
    continued = sig;
}

/* Lets ncurses stop the program, which comes back from there when it is continued. */
static void on_suspend(int sig)
{
    const int before = errno;
    ask_for_events(false);
    if (old_suspend.sa_handler != SIG_DFL && old_suspend.sa_handler != SIG_IGN)
        old_suspend.sa_handler(sig);
    ask_for_events(true);
    errno = before;
}

static void on_resize(int sig)
{
    const int before = errno;
    resized = sig;
    (void)!write(wake[1], "", 1);
    errno = before;
}

static void on_crash(int sig)
{
    for (int i = 0; i < CRASHES; i++) {
        if (crashes[i] == sig)
            end_by(sig, &old_crash[i]);
    }
}

static void take_signals(void)
{
    struct sigaction stop = {.sa_handler = on_stop};
    struct sigaction cont = {.sa_handler = on_continue};
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    struct sigaction resize = {.sa_handler = on_resize};
    restore_n = 0;
    static const char *const caps[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        add_restore(caps[i]);
    sigaction(SIGCONT, &cont, &old_continue);
    sigaction(SIGWINCH, &resize, &old_resize);
    for (int i = 0; i < STOPS; i++)
        sigaction(stops[i], &stop, &old_stop[i]);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &crash, &old_crash[i]);
}

static void give_signals_back(void)
{
    sigaction(SIGCONT, &old_continue, NULL);
    sigaction(SIGWINCH, &old_resize, NULL);
    if (old_suspend.sa_handler != SIG_DFL)
        sigaction(SIGTSTP, &old_suspend, NULL);
    for (int i = 0; i < STOPS; i++)
        sigaction(stops[i], &old_stop[i], NULL);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &old_crash[i], NULL);
}

int tui_term_stopped(void)
{
    return stopped;
}

/* ---- capabilities ------------------------------------------------------------------- */

static bool has_text(const char *capability)
{
    char name[16];
    snprintf(name, sizeof name, "%s", capability);
    const char *text = tigetstr(name);
    return text != NULL && text != (const char *)-1;
}

static bool has_flag(const char *capability)
{
    char name[16];
    snprintf(name, sizeof name, "%s", capability);
    return tigetflag(name) > 0;
}

/* Reads the capabilities. In terminfo, "AX" (colours can be reset to the default one by one)
 * identifies current terminals, which also repeat characters by "ESC [ n b". */
static struct tui_paint_can abilities_of(bool monochrome)
{
    char colors[] = "colors", width[] = "it";
    int n = tigetnum(colors);
    bool today = has_flag("AX");
    return (struct tui_paint_can){.colours = monochrome || n < 8 ? 0
                                             : n >= 256          ? 256
                                                                 : 8,
                                  .separate = today,
                                  .repeat = today && has_text("rep"),
                                  .slide = today && has_text("dch") && has_text("ich"),
                                  .tabs = has_text("ht") && tigetnum(width) == 8,
                                  .last_cell = !has_flag("am") || has_flag("xenl")};
}

/* ---- opening ----------------------------------------------------------------------- */

/* Sets the environment's locale for this thread only; "C" supports ASCII only. */
static bool take_locale(void)
{
    term.locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (term.locale == (locale_t)0)
        return false;
    uselocale(term.locale);
    return strcmp(nl_langinfo_l(CODESET, term.locale), "UTF-8") == 0;
}

static void give_locale_back(void)
{
    if (term.locale == (locale_t)0)
        return;
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(term.locale);
    term.locale = (locale_t)0;
}

/* Has the terminal told of pastes and the mouse, and none of it while the program is stopped. */
static void take_events(bool mouse)
{
    struct sigaction suspend = {.sa_handler = on_suspend};
    sigaction(SIGTSTP, NULL, &old_suspend);
    if (old_suspend.sa_handler != SIG_DFL && old_suspend.sa_handler != SIG_IGN)
        sigaction(SIGTSTP, &suspend, NULL);
    term.mouse = mouse;
    ask_for_events(true);
}

/* Lets ncurses set up the terminal and restore it; keys are read and the contents painted here. */
static void set_modes(const struct tui_term_conf *conf)
{
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    refresh(); /* from now on SIGTSTP restores the terminal first */
    take_events(conf->mouse);
    term.paint.can = abilities_of(conf->monochrome);
    term.out.max = OUT_MAX;
}

static enum ms_rc check_terminal(const char *name, struct ms_err *err)
{
    if (tcgetattr(STDIN_FILENO, &cooked) != 0)
        return ms_fail_sys(err, "terminal");
    int status = 0;
    if (name == NULL || setupterm(NULL, STDOUT_FILENO, &status) != OK)
        return ms_fail(err, MS_E_ARG, "terminal '%s' is not known here; try TERM=xterm",
                       name != NULL ? name : "");
    char cup[] = "cup";
    const char *place = tigetstr(cup);
    bool ansi = place != NULL && place != (const char *)-1 && strncmp(place, "\033[", 2) == 0;
    del_curterm(cur_term);
    return ansi ? MS_OK
                : ms_fail(err, MS_E_ARG,
                          "terminal '%s' does not understand ANSI sequences; try TERM=xterm", name);
}

enum ms_rc tui_term_open(const struct tui_term_conf *conf, struct ms_err *err)
{
    MS_TRY(check_terminal(getenv("TERM"), err));
    if (pipe2(wake, O_NONBLOCK | O_CLOEXEC) != 0)
        return ms_fail_sys(err, "pipe");
    term.ascii = !take_locale() || conf->ascii;
    term.screen = newterm(NULL, stdout, stdin);
    if (term.screen == NULL) {
        give_locale_back();
        return ms_fail(err, MS_E_ARG, "this terminal cannot be used; try TERM=xterm");
    }
    stopped = 0;
    take_signals();
    set_modes(conf);
    return MS_OK;
}

void tui_term_close(void)
{
    if (term.screen == NULL)
        return;
    int w, h;
    tui_term_size(&w, &h);
    ask_for_events(false);
    /* Without an alternate screen the shell continues in the last line. */
    fprintf(stdout, "\033[m\033[%dH\033[K", h);
    fflush(stdout);
    endwin();
    give_signals_back();
    delscreen(term.screen);
    give_locale_back();
    tui_paint_free(&term.paint);
    ms_buf_free(&term.out);
    close(wake[0]);
    close(wake[1]);
    memset(&term, 0, sizeof term);
}

void tui_term_size(int *w, int *h)
{
    struct winsize size;
    getmaxyx(stdscr, *h, *w);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        *w = size.ws_col;
        *h = size.ws_row;
    }
}

bool tui_term_ascii(void)
{
    return term.ascii;
}

void tui_term_lend(void)
{
    ask_for_events(false);
    endwin();
}

void tui_term_regain(void)
{
    refresh();
    ask_for_events(true);
    tui_term_forget();
}

/* ---- showing ----------------------------------------------------------------------- */

void tui_term_forget(void)
{
    tui_paint_forget(&term.paint);
}

/* Sends the bytes; a closed terminal is reported by the next key. */
static void send(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = write(STDOUT_FILENO, p, n);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            return;
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
}

enum ms_rc tui_term_show(const struct tui_cells *g, struct ms_err *err)
{
    if (continued)
        tui_paint_forget(&term.paint);
    continued = 0;
    ms_buf_clear(&term.out);
    if (!tui_paint_frame(&term.paint, g, &term.out))
        return ms_no_memory(err);
    send(term.out.p, term.out.n);
    return ms_buf_check(&term.out, err);
}

void tui_term_copy(struct ms_str text)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fputs("\033]52;c;", stdout);
    for (uint32_t i = 0; i < text.n; i += 3) {
        uint32_t left = text.n - i, v = 0;
        for (uint32_t k = 0; k < 3; k++)
            v = v << 8 | (k < left ? (unsigned char)text.p[i + k] : 0);
        for (uint32_t k = 0; k < 4; k++)
            putchar(k <= left ? digit[v >> (18 - 6 * k) & 63] : '=');
    }
    putchar('\a');
    fflush(stdout);
}

/* ---- keys -------------------------------------------------------------------------- */

/* Returns the next key of the bytes that were read; TUI_KEY_NONE: there is none in them. */
static int next_key(void)
{
    int key = TUI_KEY_NONE;
    while (key == TUI_KEY_NONE && term.typed_at < term.typed_n)
        key = tui_escape_byte(&term.escape, term.typed[term.typed_at++]);
    return key;
}

/* Waits for bytes and reads them. Returns 1: there are some, 0: none came, -1: the terminal is gone, or a
 * signal came. */
static int read_bytes(int timeout_ms)
{
    struct pollfd fd[2] = {{STDIN_FILENO, POLLIN, 0}, {wake[0], POLLIN, 0}};
    char drained[16];
    if (stopped != 0 || resized != 0)
        timeout_ms = 0;
    const int n = poll(fd, 2, timeout_ms);
    while (read(wake[0], drained, sizeof drained) > 0) {
    }
    if (stopped != 0 || resized != 0 || n <= 0)
        return n == 0 && stopped == 0 && resized == 0 ? 0 : -1;
    const ssize_t got = read(STDIN_FILENO, term.typed, sizeof term.typed);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
        term.is_gone = true;
    term.typed_at = 0;
    term.typed_n = got > 0 ? (size_t)got : 0;
    return got > 0 ? 1 : -1;
}

static int key_of_signal(void)
{
    if (stopped != 0 || term.is_gone)
        return TUI_KEY_CLOSED;
    const int key = resized != 0 ? TUI_KEY_RESIZE : TUI_KEY_NONE;
    resized = 0;
    return key;
}

int tui_term_key(int timeout_ms)
{
    for (;;) {
        const int key = next_key();
        if (key != TUI_KEY_NONE)
            return key;
        const bool waits = tui_escape_waits(&term.escape);
        const int n = read_bytes(waits ? TUI_ESCAPE_MS : timeout_ms);
        if (n < 0)
            return key_of_signal();
        if (n == 0)
            return waits ? tui_escape_end(&term.escape) : TUI_KEY_TICK;
    }
}
