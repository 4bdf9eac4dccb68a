/* SPDX-License-Identifier: MIT
 *
 * fuzz_graph_config: a file of matches that somebody else has written.  Pairs that
 * are read, written as such a file again, are read as the same pairs.
 */
#include "compare/graph/view/graph_edit.h"
#include "probe/base/jwrite.h"

static void must(bool truth)
{
    if (!truth)
        __builtin_trap();
}

static void write_again(const struct graph__names *names, struct ms_jwrite *w)
{
    ms_jwrite_init(w, 4, 1 << 28);
    ms_jwrite_obj(w);
    for (size_t i = 0; i < names->list.n; i++) {
        ms_jwrite_key(w, names->list.p[i].target);
        ms_jwrite_str(w, names->list.p[i].golden);
    }
    ms_jwrite_obj_end(w);
    must(ms_jwrite_finish(w, NULL) == MS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph__names first, second;
    struct ms_jwrite w;
    if (graph__names_parse(&first, (struct ms_str){(const char *)data, (uint32_t)size}, NULL) !=
        MS_OK)
        return 0;
    write_again(&first, &w);
    must(graph__names_parse(&second, ms_buf_slice(&w.buf), NULL) == MS_OK);
    must(first.list.n == second.list.n);
    for (size_t i = 0; i < first.list.n; i++)
        must(ms_str_eq(first.list.p[i].target, second.list.p[i].target) &&
             ms_str_eq(first.list.p[i].golden, second.list.p[i].golden));
    ms_jwrite_free(&w);
    graph__names_free(&first);
    graph__names_free(&second);
    return 0;
}
