/* SPDX-License-Identifier: MIT
 *
 * op_shapes: see the header.
 */
#include "mstx/foreign/op_shapes.h"

#include "probe/base/jread.h"

/* Appends the values of a list, a list of lists by commas within and semicolons between them.  The
 * opening bracket has been read. */
static void read_list(struct ms_jread *j, struct ms_buf *out)
{
    bool is_first[2] = {true, true};
    for (uint32_t depth = 1; depth != 0;) {
        const enum ms_jtok t = ms_jread_next(j);
        if (t == MS_J_ERR || t == MS_J_END || t == MS_J_OBJ)
            return;
        if (t == MS_J_ARR_END) {
            depth--;
            continue;
        }
        const uint32_t level = depth < 2 ? depth - 1 : 1;
        if (!is_first[level])
            ms_buf_putc(out, level == 0 ? ';' : ',');
        is_first[level] = false;
        if (t == MS_J_ARR) {
            depth++;
            is_first[1] = true;
        } else if (t == MS_J_NUM || t == MS_J_STR) {
            ms_buf_str(out, j->text);
        }
    }
}

void mstx__op_shapes(struct ms_str args, struct ms_buf *dims, struct ms_buf *types)
{
    struct ms_jread j;
    ms_buf_clear(dims);
    ms_buf_clear(types);
    ms_jread_init(&j, args.p, args.n, 0);
    if (args.n == 0 || ms_jread_next(&j) != MS_J_OBJ)
        return;
    while (ms_jread_next(&j) == MS_J_KEY) {
        const bool is_dims = ms_str_is(j.text, "Input Dims") || ms_str_is(j.text, "Input dims");
        const bool is_types = ms_str_is(j.text, "Input type");
        const enum ms_jtok t = ms_jread_next(&j);
        if (t == MS_J_ARR && (is_dims || is_types))
            read_list(&j, is_dims ? dims : types);
        else if (ms_jread_skip(&j, t) == MS_J_ERR)
            return;
    }
}
