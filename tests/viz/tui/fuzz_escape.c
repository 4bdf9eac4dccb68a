/* SPDX-License-Identifier: MIT
 *
 * fuzz_escape: bytes of a terminal become keys of the range that the viewer knows, and nothing stays begun.
 */
#include "viz/tui/escape.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(int key)
{
    const int plain = key & ~TUI_KEY_PASTED;
    const bool is_letter = plain >= 0 && plain <= 0x10ffff;
    const bool is_named = plain >= TUI_KEY_UP && plain <= TUI_KEY_F1;
    const bool is_point = plain >= TUI_KEY_POINT && plain < 2 * TUI_KEY_POINT;
    if (!is_letter && !is_named && !is_point)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tui_escape e = {0};
    for (size_t i = 0; i < size; i++) {
        check_key(data[i] == 1 ? tui_escape_end(&e) : tui_escape_byte(&e, data[i]));
        if (e.n > TUI_SEQUENCE_MAX && e.state != TUI_ESCAPE_SEQUENCE)
            abort();
    }
    check_key(tui_escape_end(&e));
    if (tui_escape_waits(&e) ||
        tui_escape_byte(&e, 'q') != ('q' | (e.is_pasting ? TUI_KEY_PASTED : 0)))
        abort();
    return 0;
}
