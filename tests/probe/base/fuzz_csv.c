/* SPDX-License-Identifier: MIT
 *
 * Any text: it is refused with a place inside it, or it is rows; and rows that
 * are written with every field in quotes read back as the same rows.
 */
#include "probe/base/csv.h"

#include "probe/base/mem.h"

#include <math.h>
#include <stdlib.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

static void put_quoted(struct ms_buf *out, struct ms_str field)
{
    ms_buf_putc(out, '"');
    for (uint32_t i = 0; i < field.n; i++) {
        if (field.p[i] == '"')
            ms_buf_putc(out, '"');
        ms_buf_putc(out, field.p[i]);
    }
    ms_buf_putc(out, '"');
}

/* The rows of a text, every field in quotes. */
static enum ms_rc normal_form(struct ms_buf *out, const char *p, size_t n, struct ms_err *err)
{
    struct ms_csv r;
    bool more;
    enum ms_rc rc;
    uint32_t line = 0;
    ms_csv_init(&r, p, n);
    while ((rc = ms_csv_next(&r, &more, err)) == MS_OK && more) {
        MUST(r.fields.n != 0 && r.at <= r.end && r.line > line);
        line = r.line;
        for (size_t i = 0; i < r.fields.n; i++) {
            double v = 0;
            MUST(ms_csv_number(r.fields.p[i], &v) || isnan(v));
            ms_buf_puts(out, i == 0 ? "" : ",");
            put_quoted(out, r.fields.p[i]);
        }
        ms_buf_putc(out, '\n');
    }
    MUST(rc != MS_OK || r.at == r.end);
    ms_csv_free(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_buf once = {.max = 1 << 26}, twice = {.max = 1 << 26};
    struct ms_err err = {0};
    size_t live = ms_mem_live();
    enum ms_rc rc = normal_form(&once, (const char *)data, size, &err);
    MUST(rc == MS_OK || rc == MS_E_FORMAT || rc == MS_E_LIMIT);
    MUST(rc == MS_OK || (err.line >= 1 && err.off >= 0 && err.off <= (int64_t)size));
    if (rc == MS_OK) {
        MUST(normal_form(&twice, once.n != 0 ? once.p : "", once.n, &err) == MS_OK);
        MUST(ms_str_eq(ms_buf_slice(&once), ms_buf_slice(&twice)));
    }
    ms_buf_free(&once);
    ms_buf_free(&twice);
    MUST(ms_mem_live() == live);
    return 0;
}
