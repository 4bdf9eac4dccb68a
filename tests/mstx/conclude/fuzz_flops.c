/* SPDX-License-Identifier: MIT
 *
 * Any text as the dump.json whose shapes tell the operations of a step: it is refused with a reason, or
 * there is a number of them that can be divided by, and the machine did at least what the model needs.
 */
#include "mstx/conclude/time_use.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[80];
    struct mstx_flops f;
    struct ms_err err = {0};
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.30s/msprobe-fuzz-flops-%d", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    FILE *file = fopen(path, "wb");
    assert(file != NULL && fwrite(data, 1, size, file) == size);
    fclose(file);
    if (mstx_flops_of_dump(&f, path, &err) != MS_OK)
        assert(err.msg[0] != '\0');
    else
        assert(f.machine > 0 && f.model >= 0 && f.machine >= f.model && !isnan(f.model));
    unlink(path);
    return 0;
}
