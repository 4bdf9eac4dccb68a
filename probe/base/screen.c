/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for fopencookie */
#endif
#include "probe/base/screen.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LEAST_COLUMNS = 40,
    GAPS_OF_ROW = 3, /* gaps of two spaces or more in a row of a table */
    ANSWER_LINES = 4
};

/* ---- the size ------------------------------------------------------------------- */

static bool from_variable(const char *name, unsigned *out)
{
    uint64_t n;
    const char *text = getenv(name);
    if (text == NULL || !ms_str_u64(ms_str_of(text), &n) || n == 0 || n > UINT16_MAX)
        return false;
    *out = (unsigned)n;
    return true;
}

struct ms_screen_size ms_screen_size(int fd)
{
    struct ms_screen_size s = {80, 24};
    struct winsize size = {0};
    if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0) {
        s.columns = size.ws_col != 0 ? size.ws_col : s.columns;
        s.rows = size.ws_row != 0 ? size.ws_row : s.rows;
    }
    from_variable("COLUMNS", &s.columns);
    from_variable("LINES", &s.rows);
    s.columns = s.columns < LEAST_COLUMNS ? LEAST_COLUMNS : s.columns;
    return s;
}

/* Tells whether a person looks at stdout. The launcher of Open MPI gives processes a terminal without a size, and
 * copies what comes out of it, perhaps into a file. */
static bool is_looked_at(void)
{
    struct winsize size = {0};
    unsigned columns;
    return isatty(STDOUT_FILENO) &&
           (from_variable("COLUMNS", &columns) ||
            (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0));
}

/* ---- lines ---------------------------------------------------------------------- */

struct fitting {
    struct ms_buf *out;
    struct ms_screen_size size;
    unsigned lines; /* written */
    bool is_cut;
};

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static unsigned columns_of(struct ms_str s)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < s.n; i++)
        n += begins_character(s.p[i]);
    return n;
}

/* Returns how many bytes the first `columns` characters take. */
static uint32_t bytes_of(struct ms_str s, unsigned columns)
{
    uint32_t i = 0;
    for (; i < s.n; i++) {
        if (begins_character(s.p[i]) && columns-- == 0)
            break;
    }
    return i;
}

static uint32_t spaces_at(struct ms_str s, uint32_t at)
{
    uint32_t n = 0;
    while (at + n < s.n && s.p[at + n] == ' ')
        n++;
    return n;
}

static bool is_row(struct ms_str line)
{
    unsigned gaps = 0;
    for (uint32_t i = spaces_at(line, 0); i < line.n; i++) {
        const uint32_t gap = spaces_at(line, i);
        gaps += gap >= 2 && i + gap < line.n;
        i += gap;
    }
    return gaps >= GAPS_OF_ROW;
}

/* Returns the column at which prose goes on: below its first word, or below what follows a label. */
static unsigned hang_of(struct ms_str line, unsigned columns)
{
    const uint32_t indent = spaces_at(line, 0);
    for (uint32_t i = indent; i < line.n && i < columns / 3; i++) {
        const uint32_t gap = spaces_at(line, i);
        if (gap >= 2 && i + gap < columns / 2)
            return columns_of(ms_str_sub(line, 0, i + gap));
    }
    return indent < columns / 2 ? indent : 0;
}

static void put_line(struct fitting *f, unsigned indent, struct ms_str text)
{
    ms_buf_printf(f->out, "%*s%.*s\n", (int)indent, "", MS_STR_ARG(text));
    f->lines++;
}

static void cut_row(struct fitting *f, struct ms_str line)
{
    ms_buf_put(f->out, line.p, bytes_of(line, f->size.columns - 1));
    ms_buf_puts(f->out, "\xe2\x80\xa6\n");
    f->lines++;
    f->is_cut = true;
}

/* Returns where a line may end that has room for `columns`: behind a word, or inside one that is longer. */
static uint32_t end_of_line(struct ms_str text, unsigned columns)
{
    const uint32_t most = bytes_of(text, columns);
    for (uint32_t i = most; i > most / 2; i--) {
        if (i < text.n && text.p[i] == ' ')
            return i;
    }
    return most;
}

static void wrap_prose(struct fitting *f, struct ms_str line)
{
    const unsigned hang = hang_of(line, f->size.columns);
    unsigned indent = 0;
    while (columns_of(line) > f->size.columns - indent) {
        const uint32_t end = end_of_line(line, f->size.columns - indent);
        ms_assert(end > 0);
        put_line(f, indent, ms_str_sub(line, 0, end));
        line = ms_str_sub(line, end + spaces_at(line, end), line.n);
        indent = hang;
    }
    if (line.n != 0)
        put_line(f, indent, line);
}

static void put_fitted(struct fitting *f, struct ms_str line)
{
    if (columns_of(line) <= f->size.columns)
        put_line(f, 0, line);
    else if (is_row(line))
        cut_row(f, line);
    else
        wrap_prose(f, line);
}

static void put_lines(struct fitting *f, struct ms_str text)
{
    struct ms_str line, rest = text;
    while (ms_str_split(&rest, '\n', &line)) {
        if (rest.p != NULL || line.n != 0)
            put_fitted(f, line);
    }
}

/* Writes the first lines that are not empty. */
static void put_answer(struct fitting *f, struct ms_str text)
{
    struct ms_str line, rest = text;
    for (unsigned n = 0; n < ANSWER_LINES && ms_str_split(&rest, '\n', &line);) {
        if (line.n != 0)
            put_fitted(f, line);
        n += line.n != 0;
    }
}

void ms_screen_fit(struct ms_str text, struct ms_screen_size size, struct ms_buf *out)
{
    struct fitting f = {.out = out, .size = size};
    ms_assert(size.columns >= LEAST_COLUMNS);
    put_lines(&f, text);
    if (f.is_cut)
        put_fitted(&f, MS_STR("rows are cut at the width of the terminal; a file gets them whole"));
    if (f.lines <= size.rows)
        return;
    put_line(&f, 0, MS_STR(""));
    put_answer(&f, text);
}

/* ---- stdout --------------------------------------------------------------------- */

static void print_fitted(struct ms_str text)
{
    struct ms_buf out = {.max = SIZE_MAX};
    const bool is_terminal = is_looked_at();
    if (is_terminal)
        ms_screen_fit(text, ms_screen_size(STDOUT_FILENO), &out);
    const struct ms_str shown = is_terminal && out.bad == MS_OK ? ms_buf_slice(&out) : text;
    fwrite(shown.p, 1, shown.n, stdout);
    ms_buf_free(&out);
}

enum ms_rc ms_screen_print(struct ms_buf *text, struct ms_err *err)
{
    enum ms_rc rc = ms_buf_check(text, err);
    if (rc == MS_OK) {
        print_fitted(ms_buf_slice(text));
        rc = ms_stdout_finish(err);
    }
    ms_buf_free(text);
    return rc;
}

/* A function for fopencookie(3): returns the number of bytes taken, 0 after a failure. */
static ssize_t keep(void *ctx, const char *p, size_t n)
{
    struct ms_screen *s = ctx;
    ms_buf_put(&s->text, p, n);
    return s->text.bad == MS_OK ? (ssize_t)n : 0;
}

void ms_screen_begin(struct ms_screen *s)
{
    const cookie_io_functions_t io = {.write = keep};
    *s = (struct ms_screen){.text = {.max = SIZE_MAX}};
    FILE *to = is_looked_at() ? fopencookie(s, "w", io) : NULL;
    if (to == NULL)
        return;
    s->kept = stdout;
    stdout = to;
}

void ms_screen_end(struct ms_screen *s)
{
    if (s->kept == NULL)
        return;
    fclose(stdout);
    stdout = s->kept;
    s->kept = NULL;
    print_fitted(ms_buf_slice(&s->text));
    ms_buf_free(&s->text);
}
