/* SPDX-License-Identifier: MIT
 *
 * The prompt: what keys make of a line, and lines that come back.
 */
#include "viz/tui/prompt.h"

#include "tests/support/check.h"
#include "viz/tui/key.h"

static struct tui_prompt p;

static enum tui_typed last;

static void type(const char *keys)
{
    struct ms_str rest = ms_str_of(keys);
    struct ms_err err = {0};
    int key;
    while (rest.n != 0) {
        ck_ok(tui_key_read(&rest, &key, &err), err);
        last = tui_prompt_key(&p, key);
    }
}

static void expect(const char *keys, const char *line, size_t at)
{
    p = (struct tui_prompt){.kind = 0};
    tui_prompt_begin(&p, ':');
    type(keys);
    ck_assert_uint_eq(tui_prompt_text(&p).n, strlen(line));
    ck_assert(ms_str_is(tui_prompt_text(&p), line));
    ck_assert_uint_eq(p.at, at);
}

START_TEST(letters_go_where_the_cursor_stands)
{
    expect("abc", "abc", 3);
    expect("abc<Left><Left>x", "axbc", 2);
    expect("bc<Home>a<End>d", "abcd", 4);
    expect("bc<C-a>a<C-e>d", "abcd", 4);
    expect("ab<Right>c", "abc", 3);
    expect("a<Left><Left>b", "ba", 1);
}
END_TEST

START_TEST(letters_of_several_bytes_are_one_step)
{
    expect("你好", "你好", 6);
    expect("你好<Left>x", "你x好", 4);
    expect("你好<Left><Backspace>", "好", 0);
    expect("你好<Home><Delete>", "好", 0);
    expect("你好<Home><Right>a", "你a好", 4);
}
END_TEST

START_TEST(letters_words_and_the_rest_are_deleted)
{
    expect("abc<Backspace>", "ab", 2);
    expect("abc<Left><Backspace>", "ac", 1);
    expect("abc<Left><Delete>", "ab", 2);
    expect("abc<Delete>", "abc", 3);
    expect("goto graph  <C-w>", "goto ", 5);
    expect("goto graph<Left><C-w>", "goto h", 5);
    expect("goto graph<Home><Right><C-k>", "g", 1);
    expect("goto graph<C-u>x", "x", 1);
    expect("<C-w><C-k><C-u><Left><Right><Delete>", "", 0);
}
END_TEST

START_TEST(a_line_is_full_at_its_limit)
{
    expect("", "", 0);
    for (int i = 0; i < 2 * TUI_LINE_MAX; i++)
        last = tui_prompt_key(&p, i % 2 != 0 ? 'x' : 0x4f60);
    ck_assert_uint_lt(p.n, TUI_LINE_MAX);
    ck_assert_uint_ge(p.n, TUI_LINE_MAX - 3);
    type("<Home>yz<End><Backspace>");
    ck_assert_uint_eq(p.at, p.n);
}
END_TEST

START_TEST(enter_ends_and_escape_cancels)
{
    expect("ab<Enter>", "ab", 2);
    ck_assert_int_eq(last, TUI_DONE);
    ck_assert_int_eq(p.kind, 0);
    expect("ab<Esc>", "ab", 2);
    ck_assert_int_eq(last, TUI_CANCELLED);
    expect("a<Backspace><Backspace>", "", 0);
    ck_assert_int_eq(last, TUI_CANCELLED);
    expect("ab<Left>", "ab", 1);
    ck_assert_int_eq(last, TUI_SAME);
    expect("ab<Left><Delete>", "a", 1);
    ck_assert_int_eq(last, TUI_CHANGED);
}
END_TEST

static void again(char kind, const char *keys, const char *line)
{
    tui_prompt_begin(&p, kind);
    type(keys);
    ck_assert_msg(ms_str_is(tui_prompt_text(&p), line), "%s: %.*s", keys, (int)p.n, p.line);
}

START_TEST(lines_typed_before_come_back_by_their_kind)
{
    p = (struct tui_prompt){.kind = 0};
    again(':', "one<Enter>", "one");
    again('/', "soft<Enter>", "soft");
    again(':', "two<Enter>", "two");
    again(':', "<Enter>", "");
    again(':', "<Up>", "two");
    again(':', "<Up><Up>", "one");
    again(':', "<Up><Up><Up>", "one");
    again(':', "<Up><Up><Down>", "two");
    again(':', "<Up><Down>", "");
    again(':', "<Down>", "");
    again('/', "<Up>", "soft");
    again('/', "<Up><Up>max<Enter>", "softmax");
    again('/', "<Up>", "softmax");
    again('\\', "<Up>", "");
    for (int i = 0; i < 2 * TUI_HISTORY_MAX; i++)
        again(':', "x<Enter>", "x");
    again('/', "<Up>", "");
}
END_TEST

TEST_MAIN("prompt", letters_go_where_the_cursor_stands, letters_of_several_bytes_are_one_step,
          letters_words_and_the_rest_are_deleted, a_line_is_full_at_its_limit,
          enter_ends_and_escape_cancels, lines_typed_before_come_back_by_their_kind)
