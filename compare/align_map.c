/* SPDX-License-Identifier: MIT
 *
 * align_map: the alignment as a mapping of rows that the official tool reads too.
 *
 *     Cell.a.B.forward.0.output.0: Module.c.D.forward.0.output.0
 */
#include "compare/align_int.h"
#include "compare/yaml_doc.h"

static void print_row(const struct cmp_align *al, const struct cmp_align_row *r,
                      struct ms_buf *scratch, struct ms_buf *out)
{
    if (r->target == CMP_ALIGN_NONE || r->golden == CMP_ALIGN_NONE)
        return;
    for (int side = 1; side >= 0; side--) {
        const struct probe_dump *d = al->c.side[side].dump;
        ms_buf_clear(scratch);
        probe_row_name(d, &d->rows.p[side == 1 ? r->target : r->golden], scratch);
        cmp__yaml_put(out, ms_buf_slice(scratch));
        ms_buf_puts(out, side == 1 ? ": " : "\n");
    }
}

enum ms_rc cmp_align_write_rows(const struct cmp_align *al, struct ms_buf *out, struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 20};
    MS_VEC(struct cmp_align_row) rows = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < al->pairs.n && rc == MS_OK; i++) {
        const struct cmp_align_pair *p = &al->pairs.p[i];
        if (p->more)
            continue;
        size_t most = (size_t)al->c.side[0].dump->nodes.p[p->golden].nrows +
                      al->c.side[1].dump->nodes.p[p->target].nrows;
        if (!ms_vec_reserve(&rows, most + 1)) {
            rc = ms_no_memory(err);
            break;
        }
        size_t n = cmp_align_rows(al, p, rows.p);
        for (size_t k = 0; k < n; k++)
            print_row(al, &rows.p[k], &scratch, out);
    }
    ms_vec_free(&rows);
    ms_buf_free(&scratch);
    return rc == MS_OK ? ms_buf_check(out, err) : rc;
}
