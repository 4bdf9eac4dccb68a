/* SPDX-License-Identifier: MIT
 *
 * term: ncurses, colours, keys and signals.
 *
 * The first signal that asks the program to end becomes a key, so that the session's files are
 * removed; a second one, like a crash, ends the program at once.
 */
#include "viz/tui/term.h"

#include "probe/base/mem.h"
#include "viz/tui/paint.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

enum { ESC_WAIT_MS = 25, RESTORE_MAX = 512, OUT_MAX = 64 << 20 };

static struct {
    SCREEN *screen;
    locale_t locale;
    WINDOW *input; /* a pad: reading a key from a pad draws nothing */
    bool ascii;
    struct tui_paint paint;
    struct ms_buf out;
    bool mouse, held; /* mouse events are on; the button is down */
} term;

/* ---- state for signal handlers ------------------------------------------------------ */

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
enum { STOPS = sizeof stops / sizeof *stops, CRASHES = sizeof crashes / sizeof *crashes };
static struct sigaction old_stop[STOPS], old_crash[CRASHES];
static volatile sig_atomic_t stopped, continued;
static struct sigaction old_continue;
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

static void give_back_at_once(void)
{
    static const char all_off[] = "\033[?1006;1002;1000l";
    (void)!(term.mouse ? write(STDOUT_FILENO, all_off, sizeof all_off - 1) : 0);
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
    restore_n = 0;
    static const char *const caps[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        add_restore(caps[i]);
    sigaction(SIGCONT, &cont, &old_continue);
    for (int i = 0; i < STOPS; i++)
        sigaction(stops[i], &stop, &old_stop[i]);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &crash, &old_crash[i]);
}

static void give_signals_back(void)
{
    sigaction(SIGCONT, &old_continue, NULL);
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

/* ncurses enables clicks but not the motion events while the button is held. */
static const char drags_on[] = "\033[?1002h", drags_off[] = "\033[?1002l";

static void take_mouse(void)
{
    mouseinterval(0);
    if (mousemask(BUTTON1_PRESSED | BUTTON1_RELEASED | BUTTON4_PRESSED | BUTTON5_PRESSED |
                      REPORT_MOUSE_POSITION,
                  NULL) == 0)
        return;
    fputs(drags_on, stdout);
    fflush(stdout);
    term.mouse = true;
}

/* Lets ncurses set up the terminal, read keys and restore it; the contents are painted here. */
static bool set_modes(const struct tui_term_conf *conf)
{
    cbreak();
    noecho();
    nonl();
    term.input = newpad(1, 1);
    if (term.input == NULL)
        return false;
    keypad(term.input, TRUE);
    wtimeout(term.input, 0);
    set_escdelay(ESC_WAIT_MS);
    curs_set(0);
    if (conf->mouse)
        take_mouse();
    refresh(); /* from now on SIGTSTP restores the terminal first */
    term.paint.can = abilities_of(conf->monochrome);
    term.out.max = OUT_MAX;
    return true;
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
    if (pipe(wake) != 0)
        return ms_fail_sys(err, "pipe");
    term.ascii = !take_locale() || conf->ascii;
    term.screen = newterm(NULL, stdout, stdin);
    if (term.screen == NULL) {
        give_locale_back();
        return ms_fail(err, MS_E_ARG, "this terminal cannot be used; try TERM=xterm");
    }
    stopped = 0;
    take_signals();
    if (set_modes(conf))
        return MS_OK;
    tui_term_close();
    return ms_no_memory(err);
}

void tui_term_close(void)
{
    if (term.screen == NULL)
        return;
    /* Without an alternate screen the shell continues in the last line. */
    fprintf(stdout, "%s\033[m\033[%dH\033[K", term.mouse ? drags_off : "", LINES);
    fflush(stdout);
    endwin();
    give_signals_back();
    if (term.input != NULL)
        delwin(term.input);
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
    getmaxyx(stdscr, *h, *w);
}

bool tui_term_ascii(void)
{
    return term.ascii;
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

static int named_key(wint_t key)
{
    static const struct {
        wint_t curses;
        int key;
    } map[] = {{KEY_UP, TUI_KEY_UP},         {KEY_DOWN, TUI_KEY_DOWN},
               {KEY_LEFT, TUI_KEY_LEFT},     {KEY_RIGHT, TUI_KEY_RIGHT},
               {KEY_HOME, TUI_KEY_HOME},     {KEY_END, TUI_KEY_END},
               {KEY_PPAGE, TUI_KEY_PAGE_UP}, {KEY_NPAGE, TUI_KEY_PAGE_DOWN},
               {KEY_BTAB, TUI_KEY_BACKTAB},  {KEY_DC, TUI_KEY_DELETE},
               {KEY_ENTER, TUI_KEY_ENTER},   {KEY_BACKSPACE, TUI_KEY_BACKSPACE},
               {KEY_F(1), TUI_KEY_F1},       {KEY_RESIZE, TUI_KEY_RESIZE}};
    for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
        if (map[i].curses == key)
            return map[i].key;
    }
    return TUI_KEY_NONE;
}

static int letter_key(wint_t key)
{
    if (key == '\r')
        return TUI_KEY_ENTER;
    return key == 8 ? TUI_KEY_BACKSPACE : (int)key;
}

static int mouse_key(void)
{
    MEVENT m;
    if (getmouse(&m) != OK)
        return TUI_KEY_NONE;
    if ((m.bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED)) != 0)
        return tui_key_point((m.bstate & BUTTON4_PRESSED) != 0 ? TUI_WHEEL_UP : TUI_WHEEL_DOWN, m.y,
                             m.x);
    bool drag = term.held && (m.bstate & REPORT_MOUSE_POSITION) != 0;
    term.held = drag || (m.bstate & BUTTON1_PRESSED) != 0;
    return term.held ? tui_key_point(drag ? TUI_DRAG : TUI_CLICK, m.y, m.x) : TUI_KEY_NONE;
}

/* Reads a key without waiting; TUI_KEY_TICK: none. */
static int take_key(void)
{
    wint_t key;
    int kind = wget_wch(term.input, &key);
    if (kind == ERR)
        return TUI_KEY_TICK;
    if (kind != KEY_CODE_YES)
        return letter_key(key);
    return key == KEY_MOUSE ? mouse_key() : named_key(key);
}

int tui_term_key(int timeout_ms)
{
    struct pollfd fd[2] = {{STDIN_FILENO, POLLIN, 0}, {wake[0], POLLIN, 0}};
    int key = take_key();
    if (key != TUI_KEY_TICK)
        return key;
    int n = stopped != 0 ? 0 : poll(fd, 2, timeout_ms);
    if (stopped != 0 || (n > 0 && (fd[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0))
        return TUI_KEY_CLOSED;
    if (n == 0)
        return TUI_KEY_TICK;
    /* A signal: the size changed, or the program was stopped and continued. */
    key = take_key();
    return key == TUI_KEY_TICK ? TUI_KEY_NONE : key;
}
