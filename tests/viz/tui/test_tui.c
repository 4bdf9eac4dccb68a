/* SPDX-License-Identifier: MIT
 *
 * The parts of the terminal viewer that need no terminal: cells, keys, pages, lists.
 */
#include "viz/tui/time_meet.h"
#include "viz/tui/viewer.h"

#include "tests/support/check.h"

#include <locale.h>
#include <wchar.h>

static struct ms_err err;
static struct tui_cells g;
static struct ms_buf text;

static void grid(int w, int h)
{
    ms_err_clear(&err);
    g = (struct tui_cells){0};
    text = (struct ms_buf){.max = 1 << 20};
    ck_assert(tui_cells_size(&g, w, h));
}

static const char *written(void)
{
    ms_buf_clear(&text);
    tui_cells_write(&g, false, &text);
    return ms_buf_z(&text);
}

static void done(void)
{
    tui_cells_free(&g);
    ms_buf_free(&text);
}

START_TEST(text_is_cut_with_an_ellipsis_where_its_room_ends)
{
    grid(10, 1);
    ck_assert_int_eq(tui_puts(&g, 0, 2, 5, TUI_TEXT, "abcdefgh"), 7);
    ck_assert_str_eq(written(), "  abcd…\n");
    done();
}
END_TEST

START_TEST(text_that_fits_is_left_whole)
{
    grid(10, 1);
    ck_assert_int_eq(tui_puts(&g, 0, 0, 5, TUI_TEXT, "abcde"), 5);
    ck_assert_str_eq(written(), "abcde\n");
    done();
}
END_TEST

START_TEST(nothing_is_drawn_outside_of_the_grid)
{
    grid(4, 2);
    tui_puts(&g, -1, 0, 9, TUI_TEXT, "above");
    tui_puts(&g, 2, 0, 9, TUI_TEXT, "below");
    tui_puts(&g, 0, -2, 9, TUI_TEXT, "left");
    tui_puts(&g, 1, 3, 9, TUI_TEXT, "right");
    tui_mark(&g, 0, -5, 100, TUI_REVERSE, TUI_ERROR);
    ck_assert_str_eq(written(), "ft\n   …\n");
    done();
}
END_TEST

START_TEST(a_wide_letter_takes_two_cells_and_is_never_cut_in_half)
{
    grid(5, 1);
    ck_assert_int_eq(tui_puts(&g, 0, 0, 5, TUI_TEXT, "\xe6\xbc\xa2\xe5\xad\x97"), 4);
    ck_assert_uint_eq(tui_at(&g, 0, 1)->ch, 0);
    ck_assert_int_eq(tui_puts(&g, 0, 0, 3, TUI_TEXT, "\xe6\xbc\xa2\xe5\xad\x97"), 3);
    ck_assert_str_eq(written(), "\xe6\xbc\xa2…\n");
    done();
}
END_TEST

START_TEST(control_characters_and_broken_utf8_cannot_reach_the_terminal)
{
    grid(12, 1);
    tui_puts(&g, 0, 0, 12, TUI_TEXT, "a\033[2Jb\xff\xc3\xe2\x80\xae");
    ck_assert_str_eq(written(), "a?[2Jb???\n");
    done();
}
END_TEST

START_TEST(ascii_stands_in_for_blocks_lines_and_arrows)
{
    grid(9, 1);
    g.ascii = true;
    tui_bar(&g, 0, 0, 4, TUI_TEXT, 0.5);
    tui_char(&g, 0, 5, TUI_TEXT, 0x2502);
    tui_char(&g, 0, 6, TUI_TEXT, 0x25b8);
    tui_char(&g, 0, 7, TUI_TEXT, 0x6f22);
    for (int x = 0; x < g.w; x++)
        ck_assert_uint_lt(tui_at(&g, 0, x)->ch, 0x80);
    ck_assert_str_eq(written(), "##   |>?\n");
    done();
}
END_TEST

START_TEST(a_bar_is_drawn_to_an_eighth_of_a_cell)
{
    grid(4, 3);
    tui_bar(&g, 0, 0, 4, TUI_TEXT, 0.0);
    tui_bar(&g, 1, 0, 4, TUI_TEXT, 0.40625);
    tui_bar(&g, 2, 0, 4, TUI_TEXT, 7.0);
    ck_assert_str_eq(written(), "\n█▋\n████\n");
    done();
}
END_TEST

START_TEST(a_long_name_keeps_both_of_its_ends)
{
    grid(20, 1);
    tui_put_name(&g, 0, 0, 18, TUI_TEXT, MS_STR("Module.layers.0.attention.softmax.forward.0"));
    ck_assert_str_eq(written(), "Module…x.forward.0\n");
    done();
}
END_TEST

START_TEST(looks_are_letters_below_their_line)
{
    grid(6, 1);
    tui_puts(&g, 0, 0, 1, TUI_ERROR, "E");
    tui_puts(&g, 0, 2, 2, TUI_TEXT, "ab");
    tui_mark(&g, 0, 2, 2, TUI_REVERSE, TUI_TOKENS);
    tui_cells_write(&g, true, &text);
    ck_assert_str_eq(ms_buf_z(&text), "E ab\ne TT\n");
    done();
}
END_TEST

START_TEST(the_grid_can_change_its_size_and_is_empty_then)
{
    grid(4, 2);
    tui_puts(&g, 1, 0, 4, TUI_TEXT, "abcd");
    ck_assert(tui_cells_size(&g, 2, 2));
    ck_assert_str_eq(written(), "\n\n");
    ck_assert(tui_cells_size(&g, 300, 90));
    ck_assert_ptr_nonnull(tui_at(&g, 89, 299));
    ck_assert_ptr_null(tui_at(&g, 90, 0));
    done();
}
END_TEST

/* ---- keys ---------------------------------------------------------------------- */

static int only_key(const char *script)
{
    struct ms_str s = ms_str_of(script);
    int key;
    ck_ok(tui_key_read(&s, &key, &err), err);
    ck_assert_uint_eq(s.n, 0);
    return key;
}

START_TEST(keys_of_a_script_are_letters_and_names)
{
    ms_err_clear(&err);
    ck_assert_int_eq(only_key("j"), 'j');
    ck_assert_int_eq(only_key("<Enter>"), TUI_KEY_ENTER);
    ck_assert_int_eq(only_key("<C-l>"), 12);
    ck_assert_int_eq(only_key("<lt>"), '<');
    ck_assert_int_eq(only_key(">"), '>');
    ck_assert_int_eq(only_key("\xe6\xbc\xa2"), 0x6f22);
    ck_assert_int_eq(only_key(""), TUI_KEY_NONE);
}
END_TEST

START_TEST(an_unknown_name_of_a_key_is_an_error)
{
    struct ms_str s = MS_STR("<Entre>");
    int key;
    ms_err_clear(&err);
    ck_assert_int_eq(tui_key_read(&s, &key, &err), MS_E_ARG);
    ck_says(err, "<Entre>");
}
END_TEST

START_TEST(moving_never_leaves_the_list)
{
    size_t at = 0;
    ck_assert(tui_move('k', &at, 3, 10) && at == 0);
    ck_assert(tui_move('j', &at, 3, 10) && at == 1);
    ck_assert(tui_move(TUI_KEY_PAGE_DOWN, &at, 3, 10) && at == 2);
    ck_assert(tui_move('j', &at, 3, 10) && at == 2);
    ck_assert(tui_move(TUI_KEY_PAGE_UP, &at, 3, 2) && at == 1);
    ck_assert(tui_move('g', &at, 3, 10) && at == 0);
    ck_assert(tui_move('G', &at, 3, 10) && at == 2);
    ck_assert(!tui_move('x', &at, 3, 10));
    at = 0;
    ck_assert(tui_move('G', &at, 0, 10) && at == 0);
}
END_TEST

START_TEST(scrolling_shows_the_row_and_moves_no_further_than_it_must)
{
    ck_assert_uint_eq(tui_scroll(0, 3, 5), 0);
    ck_assert_uint_eq(tui_scroll(0, 5, 5), 1);
    ck_assert_uint_eq(tui_scroll(7, 4, 5), 4);
}
END_TEST

/* ---- pages --------------------------------------------------------------------- */

START_TEST(a_page_is_filtered_as_one_types)
{
    struct tui_page p = {.open = false};
    grid(40, 8);
    ck_ok(tui_page_open(&p, "fruit", &err), err);
    ck_ok(tui_page_add(&p, TUI_TEXT, MS_STR("apple"), &err), err);
    ck_ok(tui_page_add(&p, TUI_TEXT, MS_STR("Pear"), &err), err);
    ck_ok(tui_page_add(&p, TUI_TEXT, MS_STR("plum"), &err), err);
    for (const char *k = "/pea"; *k != '\0'; k++)
        tui_page_key(&p, *k, 4);
    tui_page_draw(&p, &g);
    ck_assert_ptr_nonnull(strstr(written(), "\n Pear\n"));
    ck_assert_ptr_null(strstr(written(), "apple"));
    tui_page_key(&p, TUI_KEY_ESC, 4);
    tui_page_draw(&p, &g);
    ck_assert_ptr_nonnull(strstr(written(), "\n apple\n Pear\n plum\n"));
    tui_page_key(&p, 'q', 4);
    ck_assert(!p.open);
    done();
}
END_TEST

START_TEST(letters_are_as_wide_as_the_locale_says)
{
    static const struct {
        uint32_t ch;
        int width;
    } some[] = {{'a', 1},     {0xe9, 1},   {0x301, 0},  {0x5d0, 1},   {0x5b0, 0},   {0x64b, 0},
                {0x93e, 1},   {0x941, 0},  {0xe31, 0},  {0x1100, 2},  {0x1161, 0},  {0x200d, 0},
                {0x231a, 2},  {0x2500, 1}, {0x2588, 1}, {0x3042, 2},  {0x4e2d, 2},  {0xac00, 2},
                {0xfe0f, 0},  {0xff21, 2}, {0xff71, 1}, {0x1f600, 2}, {0x1f1e6, 1}, {0x20000, 2},
                {0xe0101, 0}, {0x3fffd, 2}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        ck_assert_msg(tui_width(some[i].ch) == some[i].width, "%x", some[i].ch);
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (utf8 == (locale_t)0)
        return;
    locale_t before = uselocale(utf8);
    unsigned known = 0, other = 0; /* its tables are of another version */
    for (uint32_t ch = 0x300; ch < 0x30000; ch++) {
        int width = ch >= 0xd800 && ch < 0xe000 ? -1 : wcwidth((wchar_t)ch);
        known += width >= 0;
        other += width >= 0 && width != tui_width(ch);
    }
    uselocale(before);
    freelocale(utf8);
    ck_assert_uint_gt(known, 50000);
    ck_assert_msg(other < known / 100, "%u of %u", other, known);
}
END_TEST

START_TEST(half_a_wide_letter_is_empty)
{
    grid(8, 1);
    tui_puts(&g, 0, 0, 8, TUI_TEXT, "漢字漢字");
    tui_puts(&g, 0, 1, 1, TUI_TEXT, "a"); /* over the right half of the first */
    tui_puts(&g, 0, 4, 1, TUI_TEXT, "b"); /* over the left half of the third */
    ck_assert_str_eq(written(), " a字b 字\n");
    tui_puts(&g, 0, 2, 6, TUI_TEXT, "漢漢漢"); /* the same place again */
    tui_puts(&g, 0, 3, 2, TUI_TEXT, "字");     /* a half and a half */
    ck_assert_str_eq(written(), " a 字 漢\n");
    done();
}
END_TEST

START_TEST(names_cannot_turn_the_direction_of_writing)
{
    grid(12, 1);
    tui_puts(&g, 0, 0, 12, TUI_TEXT, "a\u202eb\u2066c\u200fd\u061ce\u00adf");
    ck_assert_str_eq(written(), "a?b?c?d?e?f\n");
    done();
}
END_TEST

START_TEST(a_collective_shows_who_came_when)
{
    static const struct viz_arrival came[] = {{.rank = 2, .start_ns = 1000, .end_ns = 4000},
                                              {.rank = 0, .start_ns = 2000, .end_ns = 4000},
                                              {.rank = 1, .start_ns = 3000, .end_ns = 4000}};
    static const char *const wanted[] = {
        "rank 2           first  ░░░░░░░░░░░░░░░░░░░░██████████  waits 2.00 us",
        "rank 0     +   1.00 us  ··········░░░░░░░░░░██████████  waits 1.00 us",
        "rank 1    !+   2.00 us  ····················██████████  the others wait for it"};
    struct viz_collective c = {.op = "all_reduce", .bytes = 4096};
    struct tui_page p = {.open = false};
    for (size_t i = 0; i < 3; i++)
        *ms_vec_push(&c.list) = came[i];
    ms_err_clear(&err);
    ck_ok(tui_time_meet_page(&p, &c, &err), err);
    ck_assert_str_eq(p.title, "all_reduce on 3 ranks, 3.00 us, 4.10 kB");
    for (size_t i = 0; i < 3; i++)
        ck_assert_msg(ms_str_is(p.lines.p[i].text, wanted[i]), "%.*s",
                      MS_STR_ARG(p.lines.p[i].text));
    tui_page_close(&p);
    viz_collective_free(&c);
}
END_TEST

START_TEST(all_that_come_at_once_wait_for_nobody)
{
    struct viz_collective c = {.op = "barrier"};
    struct tui_page p = {.open = false};
    for (int i = 0; i < 2; i++)
        *ms_vec_push(&c.list) = (struct viz_arrival){.rank = i, .start_ns = 5, .end_ns = 5};
    ms_err_clear(&err);
    ck_ok(tui_time_meet_page(&p, &c, &err), err);
    ck_assert_int_lt(ms_str_find_str(p.lines.p[1].text, MS_STR("wait")), 0);
    tui_page_close(&p);
    viz_collective_free(&c);
}
END_TEST

TEST_MAIN("tui", text_is_cut_with_an_ellipsis_where_its_room_ends, text_that_fits_is_left_whole,
          nothing_is_drawn_outside_of_the_grid,
          a_wide_letter_takes_two_cells_and_is_never_cut_in_half,
          control_characters_and_broken_utf8_cannot_reach_the_terminal,
          ascii_stands_in_for_blocks_lines_and_arrows, a_bar_is_drawn_to_an_eighth_of_a_cell,
          a_long_name_keeps_both_of_its_ends, looks_are_letters_below_their_line,
          the_grid_can_change_its_size_and_is_empty_then, keys_of_a_script_are_letters_and_names,
          an_unknown_name_of_a_key_is_an_error, moving_never_leaves_the_list,
          scrolling_shows_the_row_and_moves_no_further_than_it_must,
          a_page_is_filtered_as_one_types, letters_are_as_wide_as_the_locale_says,
          half_a_wide_letter_is_empty, names_cannot_turn_the_direction_of_writing,
          a_collective_shows_who_came_when, all_that_come_at_once_wait_for_nobody)
