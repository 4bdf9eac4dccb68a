/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a dump of which a step is planned: the kinds of the peak add up, and more ranks never need
 * more memory each.
 */
#include "mstx/memory/dry_plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t peak_of(const struct dry_graph *g, const struct dry_layout *l)
{
    struct dry_plan p;
    uint64_t sum = 0;
    const enum ms_rc rc = mstx__dry_plan_make(g, l, &p, NULL);
    assert(rc == MS_OK);
    for (int k = 0; k < MSTX_MEM_KIND_COUNT; k++)
        sum += p.by_kind[k];
    assert(sum == p.peak);
    const uint64_t peak = p.peak;
    mstx__dry_plan_free(&p);
    return peak;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[96];
    const char *tmp = getenv("TMPDIR");
    struct dry_graph g;
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%.30s/msprobe-fuzz-dry-%d.json", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    fwrite(data, 1, size, f);
    fclose(f);
    if (mstx__dry_graph_read(&g, path, &err) == MS_OK) {
        struct dry_layout l = {.tp = 1, .pp = 1, .dp = 1};
        const uint64_t one = peak_of(&g, &l);
        l.dp = 4;
        l.zero = 2;
        assert(peak_of(&g, &l) <= one + 1);
        l.recompute = DRY_RECOMPUTE_FULL;
        (void)peak_of(&g, &l);
        l.recompute = DRY_RECOMPUTE_SELECTIVE;
        (void)peak_of(&g, &l);
    } else {
        assert(err.rc != MS_OK && err.msg[0] != '\0');
    }
    mstx__dry_graph_free(&g);
    unlink(path);
    return 0;
}
