/* SPDX-License-Identifier: MIT
 *
 * fuzz xlsx: any bytes as a workbook, and as the XML of a sheet in one.  Rows come in
 * order and hold text of bounded length; nothing is left behind.
 */
#include "compare/write/xlsx_read.h"
#include "probe/base/mem.h"
#include "tests/support/zip_make.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum ms_rc look(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    size_t *bytes = ctx;
    (void)err;
    for (size_t i = 0; i < row->n; i++) {
        if (row->cells[i].text.p == NULL)
            abort();
        for (uint32_t k = 0; k < row->cells[i].text.n; k++)
            *bytes += (unsigned char)row->cells[i].text.p[k];
    }
    return MS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char shared[] = "<sst><si><t>one</t></si><si><t>two</t></si></sst>";
    size_t live = ms_mem_live(), bytes = 0;
    struct ms_err err = {0};
    struct zip_make z = {0};
    (void)!cmp_xlsx_parse("fuzz", (const char *)data, size, look, &bytes, &err);
    zip_add(&z, "xl/sharedStrings.xml", shared, sizeof shared - 1);
    zip_add(&z, "xl/worksheets/sheet1.xml", data, size);
    struct ms_str all = zip_end(&z);
    ms_err_clear(&err);
    enum ms_rc rc = cmp_xlsx_parse("fuzz", all.p, all.n, look, &bytes, &err);
    if (rc != MS_OK && err.msg[0] == 0)
        abort();
    zip_free(&z);
    if (ms_mem_live() != live)
        abort();
    return 0;
}
