/* SPDX-License-Identifier: MIT
 *
 * Sequences of terminals: what each is as a key, whole and byte by byte, and that none leaves letters behind.
 */
#include "viz/tui/escape.h"

#include "tests/support/check.h"

enum { MOST = 32 };

static struct tui_escape e;
static int keys[MOST];
static size_t nkeys;

/* Sends the bytes; "\001" stands for a pause. */
static void send(const char *bytes)
{
    for (const char *p = bytes; *p != '\0'; p++) {
        int key = *p == '\001' ? tui_escape_end(&e) : tui_escape_byte(&e, (unsigned char)*p);
        if (key == TUI_KEY_NONE)
            continue;
        ck_assert_uint_lt(nkeys, MOST);
        keys[nkeys++] = key;
    }
}

static void begin_with(const char *bytes)
{
    e = (struct tui_escape){0};
    nkeys = 0;
    send(bytes);
}

static void expect_one(const char *bytes, int key)
{
    begin_with(bytes);
    ck_assert_msg(nkeys == 1, "%zu keys of '%s'", nkeys, bytes + 1);
    ck_assert_msg(keys[0] == key, "%x for %x of '%s'", (unsigned)keys[0], (unsigned)key, bytes + 1);
    ck_assert(!tui_escape_waits(&e));
}

static void expect_none(const char *bytes)
{
    begin_with(bytes);
    ck_assert_msg(nkeys == 0, "%zu keys of '%s', the first %x", nkeys, bytes + 1,
                  (unsigned)keys[0]);
    ck_assert_msg(!tui_escape_waits(&e), "'%s' goes on", bytes + 1);
    send("q");
    ck_assert_int_eq(keys[0], 'q');
}

START_TEST(letters_are_themselves)
{
    begin_with("q\r\n\t\177\010\003");
    const int expected[] = {
        'q', TUI_KEY_ENTER, TUI_KEY_ENTER, TUI_KEY_TAB, TUI_KEY_BACKSPACE, TUI_KEY_BACKSPACE, 3};
    ck_assert_uint_eq(nkeys, 7);
    for (size_t i = 0; i < nkeys; i++)
        ck_assert_int_eq(keys[i], expected[i]);
    begin_with("\303\274\344\275\240\360\237\230\200");
    ck_assert_uint_eq(nkeys, 3);
    ck_assert_int_eq(keys[0], 0xfc);
    ck_assert_int_eq(keys[1], 0x4f60);
    ck_assert_int_eq(keys[2], 0x1f600);
}
END_TEST

START_TEST(a_cut_letter_takes_nothing_with_it)
{
    begin_with("\344\275q\377\200x\303");
    ck_assert_uint_eq(nkeys, 2);
    ck_assert_int_eq(keys[0], 'q');
    ck_assert_int_eq(keys[1], 'x');
    send("\001z");
    ck_assert_int_eq(keys[2], 'z');
}
END_TEST

START_TEST(keys_of_all_terminals)
{
    static const struct {
        const char *bytes;
        int key;
    } known[] = {
        {"\033[A", TUI_KEY_UP},
        {"\033OA", TUI_KEY_UP},
        {"\033[1;5A", TUI_KEY_UP},
        {"\033[B", TUI_KEY_DOWN},
        {"\033OC", TUI_KEY_RIGHT},
        {"\033[D", TUI_KEY_LEFT},
        {"\033[H", TUI_KEY_HOME},
        {"\033OH", TUI_KEY_HOME},
        {"\033[1~", TUI_KEY_HOME},
        {"\033[7~", TUI_KEY_HOME},
        {"\033[F", TUI_KEY_END},
        {"\033OF", TUI_KEY_END},
        {"\033[4~", TUI_KEY_END},
        {"\033[8~", TUI_KEY_END},
        {"\033[1;2F", TUI_KEY_END},
        {"\033[5~", TUI_KEY_PAGE_UP},
        {"\033[6~", TUI_KEY_PAGE_DOWN},
        {"\033[5;3~", TUI_KEY_PAGE_UP},
        {"\033[3~", TUI_KEY_DELETE},
        {"\033[Z", TUI_KEY_BACKTAB},
        {"\033OP", TUI_KEY_F1},
        {"\033[11~", TUI_KEY_F1},
        {"\033[[A", TUI_KEY_F1},
        {"\033[P", TUI_KEY_F1},
        {"\033OM", TUI_KEY_ENTER},
        {"\033Oq", '1'},
        {"\033Oy", '9'},
        {"\033\033[A", TUI_KEY_UP},
        {"\033[1;1:1B", TUI_KEY_DOWN},
        {"\033[1;1:2B", TUI_KEY_DOWN},
        /* kitty, and xterm with modifyOtherKeys */
        {"\033[27u", TUI_KEY_ESC},
        {"\033[13u", TUI_KEY_ENTER},
        {"\033[9;2u", TUI_KEY_BACKTAB},
        {"\033[127u", TUI_KEY_BACKSPACE},
        {"\033[97;5u", 1},
        {"\033[108;5u", TUI_CTRL('l')},
        {"\033[97u", 'a'},
        {"\033[97:65;2u", 'A'},
        {"\033[97;2u", 'A'},
        {"\033[49:33;2u", '!'},
        {"\033[97;65u", 'a'},
        {"\033[27;5;99~", 3},
        {"\033[27;2;13~", TUI_KEY_ENTER},
        {"\033[20320u", 0x4f60},
        {"\033\001", TUI_KEY_ESC},
        {"\033\033\001", TUI_KEY_ESC},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        expect_one(known[i].bytes, known[i].key);
}
END_TEST

START_TEST(what_is_no_key_here_leaves_no_letters)
{
    static const char *const none[] = {
        "\033q",
        "\033x",
        "\033\r",
        "\033[I",
        "\033[O",
        "\033[24~",
        "\033[1;3S",
        "\033OQ",
        "\033[[E",
        "\033[2~",
        "\033[?1;2c",
        "\033[>0;95;0c",
        "\033[12;40R",
        "\033[?2004;1$y",
        "\033]11;rgb:00/00/00\007",
        "\033]52;c;cQ==\033\\",
        "\033P1+r544e=787465726d\033\\",
        "\033_Gi=1;OK\033\\",
        "\033[113;3u",
        "\033[113;9u",
        "\033[57441;2u",
        "\033[97;1:3u",
        "\033[1;1:3A",
        "\033[27;3;113~",
        "\033[999999999999999999999~",
        "\033[1;2;3;4;5;6;7;8q",
        "\033[;;;;;;;;;;z",
        "\033[\001",
        "\033[1;5\001",
        "\033O\001",
        "\033]0;title\001",
        "\033[<0;0;0M",
        "\033[0123456789012345678901234567890123456789012345678901234567890123456789q",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        expect_none(none[i]);
}
END_TEST

START_TEST(an_escape_inside_a_sequence_begins_another)
{
    expect_one("\033[1;\033[B", TUI_KEY_DOWN);
    begin_with("\033[1;\030j");
    ck_assert_uint_eq(nkeys, 1);
    ck_assert_int_eq(keys[0], 'j');
}
END_TEST

START_TEST(pasted_letters_are_marked)
{
    begin_with("\033[200~q\r\303\274\033[A\033[201~q");
    const int expected[] = {'q' | TUI_KEY_PASTED, TUI_KEY_ENTER | TUI_KEY_PASTED,
                            0xfc | TUI_KEY_PASTED, TUI_KEY_UP | TUI_KEY_PASTED, 'q'};
    ck_assert_uint_eq(nkeys, 5);
    for (size_t i = 0; i < nkeys; i++)
        ck_assert_int_eq(keys[i], expected[i]);
}
END_TEST

START_TEST(the_mouse_clicks_drags_and_turns)
{
    begin_with("\033[<0;13;6M\033[<32;14;6M\033[<0;14;6m\033[<35;1;1M\033[<64;1;1M\033[<65;1;"
               "1M\033[<2;3;3M\033[<66;1;1M");
    const int expected[] = {tui_key_point(TUI_CLICK, 5, 12), tui_key_point(TUI_DRAG, 5, 13),
                            tui_key_point(TUI_WHEEL_UP, 0, 0), tui_key_point(TUI_WHEEL_DOWN, 0, 0)};
    ck_assert_uint_eq(nkeys, 4);
    for (size_t i = 0; i < nkeys; i++)
        ck_assert_int_eq(keys[i], expected[i]);
}
END_TEST

START_TEST(the_old_mouse_too)
{
    begin_with("\033[M !!\033[M@\"!\033[M#\"!\033[M`!!\033[M\"!!q");
    const int expected[] = {tui_key_point(TUI_CLICK, 0, 0), tui_key_point(TUI_DRAG, 0, 1),
                            tui_key_point(TUI_WHEEL_UP, 0, 0), 'q'};
    ck_assert_uint_eq(nkeys, 4);
    for (size_t i = 0; i < nkeys; i++)
        ck_assert_int_eq(keys[i], expected[i]);
}
END_TEST

TEST_MAIN("escape", letters_are_themselves, a_cut_letter_takes_nothing_with_it,
          keys_of_all_terminals, what_is_no_key_here_leaves_no_letters,
          an_escape_inside_a_sequence_begins_another, pasted_letters_are_marked,
          the_mouse_clicks_drags_and_turns, the_old_mouse_too)
