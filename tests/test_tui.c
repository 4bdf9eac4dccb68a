/* SPDX-License-Identifier: MIT
 *
 * The parts of the terminal viewer that need no terminal: cells, keys, pages, lists.
 */
#include "viz/tui_app.h"

#include "tests/check.h"

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

START_TEST(a_field_of_csv_is_no_formula)
{
    text = (struct ms_buf){.max = 1000};
    tui_csv_text(&text, MS_STR("=1+\"a\""));
    ck_assert_str_eq(ms_buf_z(&text), "\"'=1+\"\"a\"\"\"");
    ms_buf_free(&text);
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
          a_page_is_filtered_as_one_types, a_field_of_csv_is_no_formula)
