/* SPDX-License-Identifier: MIT
 *
 * Any text as the json of -i: it is refused with a place inside it, or both paths are
 * there, lists are digits and commas, and every name has its other name.
 */
#include "compare/official/old_input.h"

#include "probe/base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine)
{
    if (!fine)
        abort();
}

static void check_list(const char *list)
{
    check(list == NULL || strspn(list, "0123456789,") == strlen(list));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cmp_old_input in;
    struct ms_err err = {0};
    struct ms_str text = {size != 0 ? (const char *)data : "", (uint32_t)size};
    size_t live = ms_mem_live();
    enum ms_rc rc = cmp_old_input_parse(&in, "input", text, &err);
    if (rc == MS_OK) {
        check(in.target != NULL && in.golden != NULL);
        check_list(in.ranks);
        check_list(in.steps);
        check(in.bench_names.n == in.npu_names.keys.n);
        for (size_t i = 0; i < in.bench_names.n; i++)
            check(in.bench_names.p[i].p != NULL);
        cmp_old_input_free(&in);
    } else {
        check(err.msg[0] != 0 && err.off <= (int64_t)size);
    }
    check(ms_mem_live() == live);
    return 0;
}
