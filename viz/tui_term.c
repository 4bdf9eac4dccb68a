/* SPDX-License-Identifier: MIT
 *
 * tui_term: ncurses, colours, keys and signals.
 *
 * The first signal that asks the program to end becomes a key, so that files of the
 * session are taken away; a second one, like a crash, ends it at once.
 */
#include "viz/tui_term.h"

#include "probe/base/mem.h"

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

enum { ESC_WAIT_MS = 25, RESTORE_MAX = 512 };

static struct {
    SCREEN *screen;
    locale_t locale;
    bool ascii, coloured;
    struct tui_cells shown; /* what the terminal has */
    bool forget;
    MEVENT mouse;
} term;

/* ---- what signals need ------------------------------------------------------------- */

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
enum { STOPS = sizeof stops / sizeof *stops, CRASHES = sizeof crashes / sizeof *crashes };
static struct sigaction old_stop[STOPS], old_crash[CRASHES];
static volatile sig_atomic_t stopped;
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
    ssize_t ignored = write(STDOUT_FILENO, restore, restore_n);
    (void)ignored;
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
        ssize_t ignored = write(wake[1], "", 1);
        (void)ignored;
        errno = before;
        return;
    }
    for (int i = 0; i < STOPS; i++) {
        if (stops[i] == sig)
            end_by(sig, &old_stop[i]);
    }
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
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    restore_n = 0;
    static const char *const caps[] = {"sgr0", "op", "cnorm", "rmkx", "rmcup"};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        add_restore(caps[i]);
    for (int i = 0; i < STOPS; i++)
        sigaction(stops[i], &stop, &old_stop[i]);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &crash, &old_crash[i]);
}

static void give_signals_back(void)
{
    for (int i = 0; i < STOPS; i++)
        sigaction(stops[i], &old_stop[i], NULL);
    for (int i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &old_crash[i], NULL);
}

int tui_term_stopped(void)
{
    return stopped;
}

/* ---- looks ------------------------------------------------------------------------- */

/* By the table of the page's tokens; -1 is the terminal's own colour. */
static const struct {
    short c256, c8;
    attr_t mono;
} palette[TUI_TOKENS] = {
    [TUI_TEXT] = {-1, -1, 0},
    [TUI_DIM] = {245, -1, 0},
    [TUI_ACCENT] = {75, COLOR_CYAN, A_BOLD},
    [TUI_ERROR] = {203, COLOR_RED, A_BOLD},
    [TUI_WARNING] = {214, COLOR_YELLOW, A_BOLD},
    [TUI_PASS] = {78, COLOR_GREEN, 0},
    [TUI_UNMATCHED] = {141, COLOR_MAGENTA, 0},
    [TUI_INFO] = {245, COLOR_WHITE, 0},
    [TUI_OVERFLOW] = {203, COLOR_RED, A_REVERSE},
    /* Of slices there are many: numbers below 16 are half as long to send. */
    [TUI_COMPUTE] = {4, COLOR_BLUE, 0},
    [TUI_COMM] = {6, COLOR_CYAN, A_BOLD},
    [TUI_COPY] = {3, COLOR_YELLOW, 0},
    [TUI_USER] = {12, COLOR_BLUE, 0},
    [TUI_IDLE] = {240, -1, 0},
};

static void make_colours(void)
{
    term.coloured = has_colors() && start_color() == OK && COLORS >= 8;
    if (!term.coloured)
        return;
    use_default_colors();
    for (short i = 1; i < TUI_TOKENS; i++)
        init_pair(i, COLORS >= 256 ? palette[i].c256 : palette[i].c8, -1);
}

static attr_t look_of(const struct tui_cell *c)
{
    attr_t a = !term.coloured ? palette[c->token].mono : c->token == TUI_OVERFLOW ? A_REVERSE : 0;
    a ^= (c->flags & TUI_REVERSE) != 0 ? A_REVERSE : 0;
    a |= (c->flags & TUI_BOLD) != 0 ? A_BOLD : 0;
    a |= (c->flags & TUI_UNDERLINE) != 0 ? A_UNDERLINE : 0;
    return a;
}

/* ---- opening ----------------------------------------------------------------------- */

/* The locale of the environment for this thread alone; "C" knows ASCII only. */
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

static void set_modes(const struct tui_term_conf *conf)
{
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    timeout(0);
    set_escdelay(ESC_WAIT_MS);
    curs_set(0);
    if (!conf->monochrome)
        make_colours();
    if (conf->mouse)
        mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

static enum ms_rc check_terminal(const char *name, struct ms_err *err)
{
    if (tcgetattr(STDIN_FILENO, &cooked) != 0)
        return ms_fail_sys(err, "terminal");
    int status = 0;
    if (name == NULL || setupterm(NULL, STDOUT_FILENO, &status) != OK)
        return ms_fail(err, MS_E_ARG, "terminal '%s' is not known here; try TERM=xterm",
                       name != NULL ? name : "");
    del_curterm(cur_term);
    return MS_OK;
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
    set_modes(conf);
    take_signals();
    return MS_OK;
}

void tui_term_close(void)
{
    if (term.screen == NULL)
        return;
    /* Where there is no second screen to leave, the shell goes on in the last line. */
    move(LINES - 1, 0);
    clrtoeol();
    refresh();
    endwin();
    give_signals_back();
    delscreen(term.screen);
    give_locale_back();
    tui_cells_free(&term.shown);
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

static void show_cell(int y, int x, const struct tui_cell *c)
{
    wchar_t text[2] = {(wchar_t)c->ch, L'\0'};
    cchar_t cell;
    if (c->ch == 0)
        return; /* comes with its left half */
    short pair = term.coloured ? (short)c->token : 0;
    setcchar(&cell, text, look_of(c), pair, NULL);
    mvadd_wch(y, x, &cell);
}

void tui_term_forget(void)
{
    term.forget = true;
    clearok(curscr, TRUE);
}

enum ms_rc tui_term_show(const struct tui_cells *g, struct ms_err *err)
{
    bool all = term.forget || g->w != term.shown.w || g->h != term.shown.h;
    if (all && !tui_cells_size(&term.shown, g->w, g->h))
        return ms_no_memory(err);
    if (all)
        erase();
    size_t n = (size_t)g->w * (size_t)g->h;
    for (size_t i = 0; i < n; i++) {
        if (tui_cell_eq(&g->p[i], &term.shown.p[i]))
            continue;
        show_cell((int)(i / (size_t)g->w), (int)(i % (size_t)g->w), &g->p[i]);
        term.shown.p[i] = g->p[i];
    }
    term.forget = false;
    refresh();
    return MS_OK;
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
               {KEY_F(1), TUI_KEY_F1},       {KEY_RESIZE, TUI_KEY_RESIZE},
               {KEY_MOUSE, TUI_KEY_MOUSE}};
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

/* TUI_KEY_TICK: nothing there. */
static int take_key(void)
{
    wint_t key;
    int kind = get_wch(&key);
    if (kind == ERR)
        return TUI_KEY_TICK;
    if (kind != KEY_CODE_YES)
        return letter_key(key);
    if (key == KEY_MOUSE && getmouse(&term.mouse) != OK)
        return TUI_KEY_NONE;
    return named_key(key);
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
    /* A signal: it was the size, or a stop and a continue. */
    key = take_key();
    return key == TUI_KEY_TICK ? TUI_KEY_NONE : key;
}

void tui_term_mouse(int *y, int *x, int *wheel)
{
    *y = term.mouse.y;
    *x = term.mouse.x;
    *wheel = (term.mouse.bstate & BUTTON4_PRESSED) != 0   ? -1
             : (term.mouse.bstate & BUTTON5_PRESSED) != 0 ? 1
                                                          : 0;
}
