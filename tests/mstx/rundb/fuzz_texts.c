/* SPDX-License-Identifier: MIT
 *
 * Any bytes as packed texts: they are refused, or every text lies in memory that may be read and is no
 * longer than a blob may say. The first byte is the number of rows.
 */
#include "mstx/rundb/packed_texts.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ms_str text[256];
    struct ms_arena *a = size != 0 ? ms_arena_new(1 << 22) : NULL;
    if (a == NULL)
        return 0;
    const struct ms_str blob = {(const char *)data + 1, (uint32_t)size - 1};
    unsigned sum = 0;
    if (mstx__texts_split(blob, text, data[0], a)) {
        for (unsigned i = 0; i < data[0]; i++) {
            for (uint32_t k = 0; k < text[i].n; k++)
                sum += (unsigned char)text[i].p[k];
            if (text[i].n > 1 << 20)
                abort();
        }
    }
    ms_arena_free(a);
    return sum == UINT32_MAX;
}
