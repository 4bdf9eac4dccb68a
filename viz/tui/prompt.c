/* SPDX-License-Identifier: MIT
 *
 * prompt: see the header.
 */
#include "viz/tui/prompt.h"

#include "viz/tui/key.h"
#include "viz/tui/paint.h"

#include "probe/base/assert.h"

#include <string.h>

void tui_prompt_begin(struct tui_prompt *p, char kind)
{
    ms_assert(kind != 0);
    p->kind = kind;
    p->n = p->at = p->back = 0;
}

struct ms_str tui_prompt_text(const struct tui_prompt *p)
{
    return (struct ms_str){p->line, (uint32_t)p->n};
}

/* ---- letters --------------------------------------------------------------------------- */

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t letter_before(const struct tui_prompt *p, size_t at)
{
    while (at > 0 && is_inside(p->line[--at])) {
    }
    return at;
}

static size_t letter_behind(const struct tui_prompt *p, size_t at)
{
    at += at < p->n;
    while (at < p->n && is_inside(p->line[at]))
        at++;
    return at;
}

/* Returns the beginning of the word before the cursor, with the spaces behind it. */
static size_t word_before(const struct tui_prompt *p)
{
    size_t at = p->at;
    while (at > 0 && p->line[at - 1] == ' ')
        at--;
    while (at > 0 && p->line[at - 1] != ' ')
        at--;
    return at;
}

static enum tui_typed cut(struct tui_prompt *p, size_t from, size_t to)
{
    ms_assert(from <= to && to <= p->n);
    memmove(p->line + from, p->line + to, p->n - to);
    p->n -= to - from;
    p->at = from;
    return from != to ? TUI_CHANGED : TUI_SAME;
}

static enum tui_typed put(struct tui_prompt *p, int key)
{
    struct ms_buf letter = {.max = 8};
    tui_put_utf8(&letter, (uint32_t)key);
    const bool fits = letter.n != 0 && p->n + letter.n < sizeof p->line;
    if (fits) {
        memmove(p->line + p->at + letter.n, p->line + p->at, p->n - p->at);
        memcpy(p->line + p->at, letter.p, letter.n);
        p->n += letter.n;
        p->at += letter.n;
    }
    ms_buf_free(&letter);
    return fits ? TUI_CHANGED : TUI_SAME;
}

static enum tui_typed move(struct tui_prompt *p, size_t at)
{
    p->at = at;
    return TUI_SAME;
}

/* ---- lines typed before ------------------------------------------------------------------ */

static void keep(struct tui_prompt *p)
{
    if (p->n == 0)
        return;
    const size_t slot = p->typed % TUI_HISTORY_MAX;
    p->before[slot].kind = p->kind;
    memcpy(p->before[slot].line, p->line, p->n);
    p->before[slot].line[p->n] = '\0';
    p->typed++;
}

/* Shows the next line of this kind further back, or nearer; the new line is empty again at the end. */
static enum tui_typed recall(struct tui_prompt *p, bool is_back)
{
    const size_t most = p->typed < TUI_HISTORY_MAX ? p->typed : TUI_HISTORY_MAX;
    size_t back = p->back;
    do {
        if (is_back ? back == most : back == 0)
            return TUI_SAME;
        back = is_back ? back + 1 : back - 1;
    } while (back != 0 && p->before[(p->typed - back) % TUI_HISTORY_MAX].kind != p->kind);
    p->back = back;
    const char *line = back != 0 ? p->before[(p->typed - back) % TUI_HISTORY_MAX].line : "";
    p->n = p->at = strlen(line);
    memcpy(p->line, line, p->n);
    return TUI_CHANGED;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static enum tui_typed edit(struct tui_prompt *p, int key)
{
    switch (key) {
    case TUI_KEY_LEFT:
        return move(p, letter_before(p, p->at));
    case TUI_KEY_RIGHT:
        return move(p, letter_behind(p, p->at));
    case TUI_KEY_HOME:
    case TUI_CTRL('a'):
        return move(p, 0);
    case TUI_KEY_END:
    case TUI_CTRL('e'):
        return move(p, p->n);
    case TUI_KEY_UP:
    case TUI_KEY_DOWN:
        return recall(p, key == TUI_KEY_UP);
    case TUI_KEY_BACKSPACE:
        return cut(p, letter_before(p, p->at), p->at);
    case TUI_KEY_DELETE:
        return cut(p, p->at, letter_behind(p, p->at));
    case TUI_CTRL('w'):
        return cut(p, word_before(p), p->at);
    case TUI_CTRL('k'):
        return cut(p, p->at, p->n);
    case TUI_CTRL('u'):
        return cut(p, 0, p->n);
    default:
        return key >= ' ' && key < TUI_KEY_UP ? put(p, key) : TUI_SAME;
    }
}

enum tui_typed tui_prompt_key(struct tui_prompt *p, int key)
{
    ms_assert(p->kind != 0 && p->at <= p->n && p->n < sizeof p->line);
    if (key == TUI_KEY_ENTER)
        keep(p);
    const bool is_cancelled = key == TUI_KEY_ESC || (key == TUI_KEY_BACKSPACE && p->n == 0);
    if (key != TUI_KEY_ENTER && !is_cancelled)
        return edit(p, key);
    p->kind = 0;
    return is_cancelled ? TUI_CANCELLED : TUI_DONE;
}

/* Draws what fits around the cursor: of a longer line the part that ends with it. */
void tui_prompt_draw(const struct tui_prompt *p, struct tui_cells *g)
{
    const int row = g->h - 1;
    int x = tui_char(g, row, 0, TUI_ACCENT, (uint32_t)(unsigned char)p->kind);
    struct ms_str before = {p->line, (uint32_t)p->at};
    before = tui_tail(before, g->w - 3);
    x = tui_put(g, row, x, g->w - 2, TUI_TEXT, before);
    const struct ms_str behind = {p->line + p->at, (uint32_t)(p->n - p->at)};
    if (x < g->w - 2)
        tui_put(g, row, x, g->w - 2, TUI_TEXT, behind);
    tui_mark(g, row, x, 1, TUI_REVERSE, TUI_TEXT);
}
