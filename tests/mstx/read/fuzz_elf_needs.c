/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a program: whether they name a library is told without reading beyond them.
 */
#include "mstx/read/elf_needs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1); /* aligned otherwise than the input, and an end of its own */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    char *exact = realloc(copy, size != 0 ? size : 1);
    const struct ms_file f = {.p = exact, .n = size};
    const bool any = mstx_elf_needs(f, "");
    /* what names a library of MPI names a library */
    if (mstx_elf_needs(f, "libmpi") && !any)
        abort();
    free(exact);
    return 0;
}
