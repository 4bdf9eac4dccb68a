/* SPDX-License-Identifier: MIT
 *
 * key: names of keys.
 */
#include "viz/tui/key.h"

#include "viz/tui/cells.h"

static const struct {
    const char *name;
    int key;
} names[] = {{"Enter", TUI_KEY_ENTER},
             {"Tab", TUI_KEY_TAB},
             {"Esc", TUI_KEY_ESC},
             {"Backspace", TUI_KEY_BACKSPACE},
             {"Up", TUI_KEY_UP},
             {"Down", TUI_KEY_DOWN},
             {"Left", TUI_KEY_LEFT},
             {"Right", TUI_KEY_RIGHT},
             {"Home", TUI_KEY_HOME},
             {"End", TUI_KEY_END},
             {"PageUp", TUI_KEY_PAGE_UP},
             {"PageDown", TUI_KEY_PAGE_DOWN},
             {"S-Tab", TUI_KEY_BACKTAB},
             {"Delete", TUI_KEY_DELETE},
             {"F1", TUI_KEY_F1},
             {"Space", ' '},
             {"lt", '<'},
             {"Tick", TUI_KEY_TICK}};

/* Parses "Click:5,12": row and column, both from 0. */
static int mouse_named(struct ms_str name)
{
    static const char *const words[] = {[TUI_CLICK] = "Click",
                                        [TUI_DRAG] = "Drag",
                                        [TUI_WHEEL_UP] = "WheelUp",
                                        [TUI_WHEEL_DOWN] = "WheelDown"};
    struct ms_str rest = name, word, row;
    uint64_t y, x;
    if (ms_str_find(name, ':') < 0 || ms_str_find(name, ',') < 0)
        return TUI_KEY_NONE;
    (void)ms_str_split(&rest, ':', &word);
    (void)ms_str_split(&rest, ',', &row);
    if (!ms_str_u64(row, &y) || !ms_str_u64(rest, &x) || y >> TUI_POINT_BITS != 0 ||
        x >> TUI_POINT_BITS != 0)
        return TUI_KEY_NONE;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (ms_str_is(word, words[i]))
            return tui_key_point((enum tui_mouse)i, (int)y, (int)x);
    }
    return TUI_KEY_NONE;
}

static int key_named(struct ms_str name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_str_is(name, names[i].name))
            return names[i].key;
    }
    if (name.n == 3 && ms_str_starts(name, MS_STR("C-")) && name.p[2] >= 'a' && name.p[2] <= 'z')
        return TUI_CTRL(name.p[2]);
    return mouse_named(name);
}

enum ms_rc tui_key_read(struct ms_str *text, int *key, struct ms_err *err)
{
    *key = TUI_KEY_NONE;
    if (text->n == 0)
        return MS_OK;
    int64_t end = text->p[0] == '<' ? ms_str_find(*text, '>') : -1;
    if (end < 0) {
        *key = (int)tui_take(text);
        return MS_OK;
    }
    struct ms_str name = ms_str_sub(*text, 1, (uint32_t)end);
    *text = ms_str_sub(*text, (uint32_t)end + 1, text->n);
    *key = key_named(name);
    return *key != TUI_KEY_NONE ? MS_OK
                                : ms_fail(err, MS_E_ARG,
                                          "there is no key <%.*s>; keys are <Enter>, <Tab>, <Esc>, "
                                          "<Up>, <C-l> and the like",
                                          MS_STR_ARG(name));
}
