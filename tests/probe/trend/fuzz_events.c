/* SPDX-License-Identifier: MIT
 *
 * fuzz_events: any bytes as a monitor's csv file. It is converted or told to be wrong; an event file is a whole
 * number of records whose lengths fit.
 */
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/trend/events.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], input[128], output[96], made_in[112];

static void prepare(void)
{
    if (folder[0] != '\0')
        return;
    struct ms_err err = {0};
    char rank[96];
    snprintf(folder, sizeof folder, "/tmp/msprobe-fuzz-events-XXXXXX");
    assert(mkdtemp(folder) != NULL);
    snprintf(rank, sizeof rank, "%s/Aug14_10-21-07-rank0-1a", folder);
    assert(ms_mkdirs(rank, &err) == MS_OK);
    snprintf(input, sizeof input, "%s/actv_0-9.csv", rank);
    snprintf(output, sizeof output, "%s/out", folder);
    snprintf(made_in, sizeof made_in, "%s/rank0/actv", output);
}

static void check_records(const char *path)
{
    struct ms_file file;
    struct ms_err err = {0};
    size_t at = 0;
    uint64_t n;
    assert(ms_file_map(&file, path, SIZE_MAX, &err) == MS_OK);
    for (; at < file.n; at += 16 + (size_t)n) {
        assert(file.n - at >= 16);
        memcpy(&n, file.p + at, sizeof n);
        assert(n <= file.n - at - 16);
    }
    ms_file_unmap(&file);
}

static void check_made(void)
{
    struct ms_dir d;
    struct ms_err err = {0};
    assert(ms_dir_list(&d, made_in, &err) == MS_OK);
    for (size_t i = 0; i < d.names.n; i++) {
        char *path = ms_path_join(made_in, d.names.p[i].p);
        check_records(path);
        unlink(path);
        ms_free(path);
    }
    ms_dir_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct probe_events_made made;
    struct ms_err err = {0};
    prepare();
    FILE *f = fopen(input, "w");
    assert(f != NULL && fwrite(p, 1, n, f) == n && fclose(f) == 0);
    const size_t before = ms_mem_live();
    if (probe_events_convert(&made, folder, output, NULL, NULL, &err) == MS_OK)
        check_made();
    assert(ms_mem_live() == before);
    return 0;
}
