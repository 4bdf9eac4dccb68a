/* SPDX-License-Identifier: MIT
 *
 * app: state of the terminal viewer, the interface of its screens, and services for screens.
 *
 * A screen is a table of functions over its own state. It draws into cells and receives keys; no
 * screen knows the terminal, the frame around it or another screen.
 */
#ifndef VIZ_TUI_APP_H
#define VIZ_TUI_APP_H

#include "probe/base/arena.h"
#include "probe/base/vec.h"
#include "viz/model/finding.h"
#include "viz/model/session.h"
#include "viz/tui/cells.h"
#include "viz/tui/key.h"
#include "viz/tui/prompt.h"

/* ---- pages ------------------------------------------------------------------------- */

struct tui_line {
    struct ms_str text;
    enum tui_token token;
};

/* Lines of text that cover the screen, with scrolling and incremental filtering. */
struct tui_page {
    bool open, is_stack; /* is_stack: its lines name places in programs */
    char title[128];
    MS_VEC(struct tui_line) lines;
    struct ms_arena *arena;
    size_t top, left;
    char filter[64];
    size_t filter_n;
    bool filtering;
};

/* Opens an empty page. */
enum ms_rc tui_page_open(struct tui_page *p, const char *title, struct ms_err *err) MS_MUST_USE;
void tui_page_close(struct tui_page *p);
enum ms_rc tui_page_add(struct tui_page *p, enum tui_token t, struct ms_str s,
                        struct ms_err *err) MS_MUST_USE;
enum ms_rc tui_page_addf(struct tui_page *p, enum tui_token t, struct ms_err *err, const char *fmt,
                         ...) MS_PRINTF(4, 5) MS_MUST_USE;
void tui_page_draw(struct tui_page *p, struct tui_cells *g);
/* Handles a key of the page, including the one that closes it. */
void tui_page_key(struct tui_page *p, int key, int rows);

/* Tells whether the filter shows a line. */
bool tui_page_shows(const struct tui_page *p, size_t line);

/* ---- screens ----------------------------------------------------------------------- */

enum tui_screen_id {
    TUI_FINDINGS,
    TUI_TREE,
    TUI_TIME,
    TUI_REPORT,
    TUI_LIVE,
    TUI_TABLE,
    TUI_SCREENS
};

enum { TUI_WORK_NS = 3000000 };
enum { TUI_LEAST_W = 40, TUI_LEAST_H = 10 };
enum { TUI_ROOMY_W = 60, TUI_ROOMY_H = 16, TUI_WHERE_MAX = 48 };

struct tui_app;

/* A line of a program. */
struct tui_spot {
    char path[1024];
    int64_t line; /* from 1; 0: none */
};

struct tui_hint {
    const char *keys, *text; /* text NULL: the row is a heading */
    const char *brief;       /* for the line of hints; NULL: not shown there */
};

struct tui_screen {
    const char *name;
    const struct tui_hint *hints;                         /* ends with an empty row */
    void *(*open)(struct tui_app *a, struct ms_err *err); /* its state; NULL: see err */
    void (*close)(void *self);
    enum ms_rc (*draw)(struct tui_app *a, void *self, struct ms_err *err);
    /* *taken false: not a key of this screen. */
    enum ms_rc (*key)(struct tui_app *a, void *self, int key, bool *taken, struct ms_err *err);
    enum ms_rc (*show_place)(struct tui_app *a, void *self, const struct viz_place *p,
                             struct ms_err *err);
    /* Background work that takes longer than a key may, continued while no key is pressed, for
     * about TUI_WORK_NS a call; *more: not finished. May be NULL. */
    enum ms_rc (*work)(struct tui_app *a, void *self, bool *more, struct ms_err *err);
    /* Prepares data before the screen is first shown, in idle time; as `work`. May be NULL. */
    enum ms_rc (*ahead)(struct tui_app *a, void *self, bool *more, struct ms_err *err);
    /* Writes the current step and rank for the first row. May be NULL. */
    void (*where)(const struct tui_app *a, const void *self, char text[TUI_WHERE_MAX]);
    /* Handles a click or a drag in the body: selects the target; true when it was selected
     * already, so that the click opens it. May be NULL. */
    bool (*click)(struct tui_app *a, void *self, int y, int x, bool drag);
    /* Writes the CSV of ":export FILE". */
    enum ms_rc (*export)(struct tui_app *a, void *self, struct ms_buf *out, struct ms_err *err);
    /* Handles the line after "/" (kind '/') or "\\" while it is typed; done: Enter, or cancelled
     * with text NULL. */
    enum ms_rc (*line)(struct tui_app *a, void *self, char kind, struct ms_str text, bool done,
                       struct ms_err *err);
};

struct tui_app {
    const struct tui_screen *const *screens; /* indexed by enum tui_screen_id */
    struct viz_session *session;
    struct viz_reader reader;
    struct viz_findings findings;
    struct tui_cells cells;
    const char *live; /* directory of a running job; NULL: none */

    enum tui_screen_id at, before;
    void *state[TUI_SCREENS]; /* created when the screen is first shown */
    bool ready[TUI_SCREENS];  /* `ahead` has finished */
    struct tui_page page;     /* covers the screen while open */

    struct tui_prompt prompt;
    char message[TUI_LINE_MAX];
    bool bad; /* the message is an error */
    bool quit, redraw;
    bool is_end_asked;    /* the last key was a q that was told of changes that are not written */
    struct tui_spot edit; /* what the user's editor is to show next */
    struct ms_buf copied; /* text for the terminal's clipboard */
    int input;            /* the terminal, of which a key ends long work; -1: there is none */
    char query[TUI_LINE_MAX]; /* what is to be asked; "": nothing */
    bool is_key_spent;        /* the next key has ended a question, and is for nothing else */
};

/* Number of rows between the first and the last two. */
static inline int tui_body_rows(const struct tui_app *a)
{
    return a->cells.h - 3;
}
/* Set the message in the last row but one; the second shows an error. */
void tui_say(struct tui_app *a, const char *fmt, ...) MS_PRINTF(2, 3);
void tui_say_error(struct tui_app *a, const struct ms_err *err);
/* Fails with a hint when the data of a screen is missing. */
enum ms_rc tui_check_screen(const struct tui_app *a, enum tui_screen_id id, struct ms_err *err);
/* Shows a screen, at a place (NULL: unchanged). */
enum ms_rc tui_go(struct tui_app *a, enum tui_screen_id id, const struct viz_place *p,
                  struct ms_err *err);
/* The screen that shows a place. */
enum tui_screen_id tui_screen_of(const struct tui_app *a, const struct viz_place *p);
enum ms_rc tui_go_place(struct tui_app *a, const struct viz_place *p, struct ms_err *err);
/* Starts input of a line. */
void tui_ask(struct tui_app *a, char kind);
/* Opens the reader again after its data has changed. */
enum ms_rc tui_reopen(struct tui_app *a, struct ms_err *err);
/* Handles a click on a list whose first screen row is `row` and shows entry `top`; returns as
 * `click` of a screen. */
bool tui_click_row(int y, int row, size_t top, size_t n, size_t *at);
/* Handles a movement key in a list of n rows of which `page` fit; false: another key. */
bool tui_move(int key, size_t *at, size_t n, size_t page);
/* Returns the first row to show so that `at` is visible. */
size_t tui_scroll(size_t top, size_t at, size_t page);

void tui_copy(struct tui_app *a, struct ms_str s);

/* The screens, each in the file of that name. */
extern const struct tui_screen tui_findings_screen, tui_tree_screen, tui_time_screen,
    tui_report_screen, tui_live_screen, tui_table_screen;

#endif
