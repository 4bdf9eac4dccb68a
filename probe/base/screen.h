/* SPDX-License-Identifier: MIT
 *
 * screen: answers on a terminal, fitted to its size.
 *
 *     struct ms_screen s;
 *     ms_screen_begin(&s);          what is printed to stdout is kept
 *     ...
 *     ms_screen_end(&s);            and shown as it fits
 *
 * Prose that is wider than the terminal goes on at a word, below its beginning; rows of tables are cut, and
 * the last line says so. Where the text is higher than the terminal, its first lines, which are the answer,
 * come once more at its end. A file or a pipe gets the text as it is.
 */
#ifndef PROBE_BASE_SCREEN_H
#define PROBE_BASE_SCREEN_H

#include "probe/base/str.h"

#include <stdio.h>

struct ms_screen {
    FILE *kept; /* stdout; NULL: it is no terminal */
    struct ms_buf text;
};

struct ms_screen_size {
    unsigned columns, rows;
};

/* Returns the size of the terminal at fd, or what COLUMNS and LINES say; 80 x 24 where nothing does. */
struct ms_screen_size ms_screen_size(int fd);

/* s stays where it is until ms_screen_end. */
void ms_screen_begin(struct ms_screen *s);
void ms_screen_end(struct ms_screen *s);
/* Prints a text that was gathered, and frees it. Fails when memory ran out for it, or the disk is full. */
enum ms_rc ms_screen_print(struct ms_buf *text, struct ms_err *err) MS_MUST_USE;

/* Appends the text as ms_screen_end shows it. */
void ms_screen_fit(struct ms_str text, struct ms_screen_size size, struct ms_buf *out);

#endif
