/* SPDX-License-Identifier: MIT
 *
 * escape: see the header.
 */
#include "viz/tui/escape.h"

#include "viz/tui/cells.h"

#include "probe/base/assert.h"

enum { ESC = 27, BELL = 7, PARAMS = 3, CTRL = 4, SHIFT = 1, RELEASED = 3 };

/* ---- what a whole sequence means ------------------------------------------------------------ */

struct params { /* "5;2:3" is {5, 2}, of which the second has the part 3 */
    unsigned value[PARAMS], part[PARAMS];
};

static struct params read_params(const struct tui_escape *e)
{
    struct params p = {0};
    unsigned at = 0, *here = &p.value[0];
    for (unsigned i = 0; i + 1 < e->n && at < PARAMS; i++) {
        const unsigned char c = e->bytes[i];
        if (c >= '0' && c <= '9')
            *here = *here < 1000000 ? *here * 10 + c - '0' : *here;
        else if (c == ':')
            here = &p.part[at];
        else if (c == ';' && ++at < PARAMS)
            here = &p.value[at];
    }
    return p;
}

/* Modifiers are counted from 1; 0: none is named. */
static unsigned modifiers_of(unsigned value)
{
    return value > 0 ? value - 1 : 0;
}

/* A key by its code point, as kitty and xterm name what has no sequence of its own. */
static int key_of_code(unsigned code, unsigned shifted, unsigned modifiers)
{
    const unsigned others = modifiers & ~(unsigned)(SHIFT | CTRL) & 0x3fU; /* not the locks */
    const bool is_letter = (code >= 'a' && code <= 'z');
    if (others != 0 || code >= 0xe000 || shifted >= 0xe000)
        return TUI_KEY_NONE;
    if ((modifiers & CTRL) != 0)
        return is_letter ? TUI_CTRL((int)code) : TUI_KEY_NONE;
    if (code == 13)
        return TUI_KEY_ENTER;
    if (code == TUI_KEY_TAB && (modifiers & SHIFT) != 0)
        return TUI_KEY_BACKTAB;
    if ((modifiers & SHIFT) != 0 && code >= ' ')
        return (int)(shifted != 0 ? shifted : is_letter ? code - 'a' + 'A' : code);
    return (int)code;
}

static int key_of_letter(unsigned char c)
{
    static const struct {
        char letter;
        int key;
    } keys[] = {{'A', TUI_KEY_UP},   {'B', TUI_KEY_DOWN},   {'C', TUI_KEY_RIGHT},
                {'D', TUI_KEY_LEFT}, {'H', TUI_KEY_HOME},   {'F', TUI_KEY_END},
                {'P', TUI_KEY_F1},   {'Z', TUI_KEY_BACKTAB}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].letter == (char)c)
            return keys[i].key;
    }
    return TUI_KEY_NONE;
}

/* "Esc [ 5 ~" and the like. */
static int key_of_number(unsigned number)
{
    static const struct {
        unsigned number;
        int key;
    } keys[] = {{1, TUI_KEY_HOME},      {7, TUI_KEY_HOME},   {4, TUI_KEY_END},
                {8, TUI_KEY_END},       {3, TUI_KEY_DELETE}, {5, TUI_KEY_PAGE_UP},
                {6, TUI_KEY_PAGE_DOWN}, {11, TUI_KEY_F1}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].number == number)
            return keys[i].key;
    }
    return TUI_KEY_NONE;
}

/* A button or the wheel; x and y from 0. */
static int key_of_point(struct tui_escape *e, unsigned button, bool is_release, unsigned x,
                        unsigned y)
{
    const bool is_wheel = (button & 64U) != 0, is_motion = (button & 32U) != 0;
    const unsigned most = (1U << TUI_POINT_BITS) - 1;
    if (x > most || y > most)
        return TUI_KEY_NONE;
    if (is_wheel)
        return (button & 3U) < 2 ? tui_key_point((button & 1U) == 0 ? TUI_WHEEL_UP : TUI_WHEEL_DOWN,
                                                 (int)y, (int)x)
                                 : TUI_KEY_NONE;
    const bool is_drag = e->is_held && is_motion;
    e->is_held = !is_release && (button & 3U) == 0 && (is_drag || !is_motion);
    return e->is_held ? tui_key_point(is_drag ? TUI_DRAG : TUI_CLICK, (int)y, (int)x)
                      : TUI_KEY_NONE;
}

static int key_of_sgr_point(struct tui_escape *e, const struct params *p, bool is_release)
{
    if (p->value[1] == 0 || p->value[2] == 0)
        return TUI_KEY_NONE;
    return key_of_point(e, p->value[0], is_release, p->value[1] - 1, p->value[2] - 1);
}

static int key_of_tilde(struct tui_escape *e, const struct params *p)
{
    if (p->value[0] == 200 || p->value[0] == 201) {
        e->is_pasting = p->value[0] == 200;
        return TUI_KEY_NONE;
    }
    if (p->value[0] == 27)
        return key_of_code(p->value[2], 0, modifiers_of(p->value[1]));
    return key_of_number(p->value[0]);
}

/* The last byte says what a sequence is, and a first one that is no digit whose it is. */
static int key_of_sequence(struct tui_escape *e)
{
    const struct params p = read_params(e);
    const unsigned char first = e->bytes[0], last = e->bytes[e->n - 1];
    if (first == '<')
        return last == 'M' || last == 'm' ? key_of_sgr_point(e, &p, last == 'm') : TUI_KEY_NONE;
    if ((first >= ':' && first <= '?') || (e->n > 1 && e->bytes[e->n - 2] < '0'))
        return TUI_KEY_NONE;
    if (p.part[1] == RELEASED)
        return TUI_KEY_NONE;
    if (last == 'u')
        return key_of_code(p.value[0], p.part[0], modifiers_of(p.value[1]));
    return last == '~' ? key_of_tilde(e, &p) : key_of_letter(last);
}

/* ---- where a sequence ends ------------------------------------------------------------------- */

static void begin(struct tui_escape *e, enum tui_escape_state state)
{
    e->state = state;
    e->n = 0;
}

/* A letter, a control key, or the first byte of something longer. */
static int take_plain(struct tui_escape *e, unsigned char byte)
{
    if (byte == ESC) {
        begin(e, TUI_ESCAPE_BEGUN);
        return TUI_KEY_NONE;
    }
    if (byte >= 0x80) {
        begin(e, byte >= 0xc2 && byte < 0xf5 ? TUI_ESCAPE_LETTER : TUI_ESCAPE_NONE);
        e->bytes[e->n++] = byte;
        return TUI_KEY_NONE;
    }
    if (byte == '\r' || byte == '\n')
        return TUI_KEY_ENTER;
    return byte == 8 ? TUI_KEY_BACKSPACE : byte;
}

static int take_letter(struct tui_escape *e, unsigned char byte)
{
    const unsigned char first = e->bytes[0];
    const unsigned whole = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((byte & 0xc0U) != 0x80U) {
        begin(e, TUI_ESCAPE_NONE);
        return take_plain(e, byte);
    }
    e->bytes[e->n++] = byte;
    if (e->n < whole)
        return TUI_KEY_NONE;
    struct ms_str text = {(const char *)e->bytes, e->n};
    begin(e, TUI_ESCAPE_NONE);
    return (int)tui_take(&text);
}

/* Behind Esc: two of them are Alt with what follows. */
static int take_begun(struct tui_escape *e, unsigned char byte)
{
    if (byte == ESC)
        return TUI_KEY_NONE;
    begin(e, byte == '['   ? TUI_ESCAPE_SEQUENCE
             : byte == 'O' ? TUI_ESCAPE_SINGLE
             : byte == ']' || byte == 'P' || byte == 'X' || byte == '^' || byte == '_'
                 ? TUI_ESCAPE_STRING
                 : TUI_ESCAPE_NONE);
    e->before = byte;
    return TUI_KEY_NONE;
}

static int take_sequence(struct tui_escape *e, unsigned char byte)
{
    if (e->n == 0 && byte == '[') {
        begin(e, TUI_ESCAPE_SINGLE);
        e->before = byte;
        return TUI_KEY_NONE;
    }
    if (e->n < TUI_SEQUENCE_MAX)
        e->bytes[e->n] = byte;
    e->n++;
    if (byte >= ' ' && byte < '@')
        return TUI_KEY_NONE;
    const bool is_whole = byte >= '@' && byte < 127 && e->n <= TUI_SEQUENCE_MAX;
    const bool is_point = is_whole && e->n == 1 && byte == 'M';
    e->state = is_point ? TUI_ESCAPE_POINT : TUI_ESCAPE_NONE;
    if (!is_whole || is_point) {
        e->n = 0;
        return TUI_KEY_NONE;
    }
    return key_of_sequence(e);
}

/* Esc O is what keypads and keys of the application mode send, Esc [ [ the Linux console's F1. */
static int take_single(struct tui_escape *e, unsigned char byte)
{
    e->state = TUI_ESCAPE_NONE;
    if (e->before == '[')
        return byte == 'A' ? TUI_KEY_F1 : TUI_KEY_NONE;
    if (byte == 'M')
        return TUI_KEY_ENTER;
    return byte >= 'j' && byte <= 'y' ? byte - 0x40 : key_of_letter(byte);
}

static int take_string(struct tui_escape *e, unsigned char byte)
{
    const bool is_end = byte == BELL || (byte == '\\' && e->before == ESC);
    e->before = byte;
    if (is_end)
        e->state = TUI_ESCAPE_NONE;
    return TUI_KEY_NONE;
}

/* Button, column and row, each with 32 added; columns and rows count from 1. */
static int take_point(struct tui_escape *e, unsigned char byte)
{
    e->bytes[e->n++] = byte;
    if (e->n < 3)
        return TUI_KEY_NONE;
    e->state = TUI_ESCAPE_NONE;
    if (e->bytes[0] < 32 || e->bytes[1] < 33 || e->bytes[2] < 33)
        return TUI_KEY_NONE;
    const unsigned button = e->bytes[0] - 32U;
    return key_of_point(e, button, (button & 67U) == RELEASED, e->bytes[1] - 33U,
                        e->bytes[2] - 33U);
}

int tui_escape_byte(struct tui_escape *e, unsigned char byte)
{
    static int (*const takes[])(struct tui_escape *, unsigned char) = {
        [TUI_ESCAPE_NONE] = take_plain,    [TUI_ESCAPE_LETTER] = take_letter,
        [TUI_ESCAPE_BEGUN] = take_begun,   [TUI_ESCAPE_SEQUENCE] = take_sequence,
        [TUI_ESCAPE_SINGLE] = take_single, [TUI_ESCAPE_STRING] = take_string,
        [TUI_ESCAPE_POINT] = take_point,
    };
    ms_assert((size_t)e->state < sizeof takes / sizeof *takes);
    /* An Esc inside a sequence begins another, as what was cut off does not go on. */
    if (byte == ESC && e->state == TUI_ESCAPE_SEQUENCE)
        begin(e, TUI_ESCAPE_NONE);
    const int key = takes[e->state](e, byte);
    return key != TUI_KEY_NONE && e->is_pasting ? key | TUI_KEY_PASTED : key;
}

int tui_escape_end(struct tui_escape *e)
{
    const int key = e->state == TUI_ESCAPE_BEGUN ? TUI_KEY_ESC : TUI_KEY_NONE;
    begin(e, TUI_ESCAPE_NONE);
    return key;
}
