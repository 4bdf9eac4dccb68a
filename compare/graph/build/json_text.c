/* SPDX-License-Identifier: MIT
 *
 * json_text: JSON strings appended to a buffer, and strings read out of JSON objects.
 */
#include "compare/graph/build/json_text.h"

#include "probe/base/jread.h"
#include "probe/base/jwrite.h"
#include "probe/base/scan.h"

enum { TEXT_MAX = 1 << 28 };

static void put_escaped(struct ms_buf *out, const char *p, size_t n)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, TEXT_MAX);
    ms_jwrite_str(&w, (struct ms_str){p, (uint32_t)n});
    /* The writer adds quotes, which are not wanted here. */
    if (ms_jwrite_finish(&w, NULL) != MS_OK)
        out->bad = MS_E_NOMEM;
    else if (w.buf.n >= 2)
        ms_buf_put(out, w.buf.p + 1, w.buf.n - 2);
    ms_jwrite_free(&w);
}

void graph__put_json_inside(struct ms_buf *out, struct ms_str s)
{
    const char *end = s.p + s.n;
    if (s.n == 0)
        return;
    if (ms_scan_plain(s.p, end) == end)
        ms_buf_str(out, s);
    else
        put_escaped(out, s.p, s.n);
}

void graph__put_json(struct ms_buf *out, struct ms_str s)
{
    ms_buf_putc(out, '"');
    graph__put_json_inside(out, s);
    ms_buf_putc(out, '"');
}

struct ms_str graph__json_member(struct ms_str json, const char *key)
{
    struct ms_jread r;
    ms_jread_init(&r, json.p, json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return MS_STR("");
    while (ms_jread_next(&r) == MS_J_KEY) {
        bool here = ms_str_is(r.text, key);
        enum ms_jtok tok = ms_jread_next(&r);
        if (here && (tok == MS_J_STR || tok == MS_J_NUM))
            return r.text;
        ms_jread_skip(&r, tok);
    }
    return MS_STR("");
}
