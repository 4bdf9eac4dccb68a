/* SPDX-License-Identifier: MIT
 *
 * Any text as MindSpore's text of a compiled graph: what is read lies in the file, arguments name
 * kernels that exist, and shapes have as many numbers as there is room for.
 */
#include "probe/dump/graph_ir.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NDIM = 8 };

static void check_text(const struct probe__ir *ir, struct ms_str s)
{
    assert(s.n == 0 || (s.p >= ir->file.p && s.p + s.n <= ir->file.p + ir->file.n));
}

static void check_shapes(struct ms_str types)
{
    uint64_t shape[NDIM];
    uint32_t ndim = 0;
    for (uint64_t slot = 0; slot < 4; slot++) {
        for (uint32_t room = 0; room <= NDIM; room += NDIM)
            assert(!probe__ir_shape(types, slot, shape, &ndim, room) || ndim <= room);
    }
}

static void check_kernel(const struct probe__ir *ir, const struct probe__ir_kernel *k)
{
    const struct ms_str texts[] = {k->instance, k->id,  k->forward_id, k->forward_op,
                                   k->in,       k->out, k->source};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(ir, texts[i]);
    check_shapes(k->in);
    check_shapes(k->out);
    assert(k->first <= ir->arguments.n && k->n <= ir->arguments.n - k->first);
    for (uint32_t i = 0; i < k->n; i++) {
        const struct probe__ir_argument *a = &ir->arguments.p[k->first + i];
        assert(a->kernel == MS_MAP_NONE || a->kernel < ir->kernels.n);
        assert((a->kind == PROBE__IR_PARAMETER) == (a->parameter.n != 0));
        check_text(ir, a->parameter);
    }
}

static void check_graph(const struct probe__ir *ir)
{
    assert(ir->names.keys.n == ir->kernels.n);
    for (uint32_t i = 0; i < ir->kernels.n; i++) {
        check_kernel(ir, &ir->kernels.p[i]);
        assert(probe__ir_find(ir, ms_map_key(&ir->names, i)) == &ir->kernels.p[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *tmp = getenv("TMPDIR");
    struct probe__ir ir;
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%.30s/msprobe-fuzz-%d.ir", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    fwrite(data, 1, size, f);
    fclose(f);
    if (probe__ir_open(&ir, path, &err) == MS_OK) {
        check_graph(&ir);
        probe__ir_close(&ir);
    } else
        assert(err.msg[0] != '\0');
    unlink(path);
    return 0;
}
