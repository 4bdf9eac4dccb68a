/* SPDX-License-Identifier: MIT
 *
 * fuzz_log_params: logs of verl and slime.
 */
#include "compare/config/log_params.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_err e = {0}, f = {0};
    struct ms_arena *a = ms_arena_new(16 << 20);
    const struct ms_plain *v;
    char *copy = malloc(size + 1);
    if (size != 0)
        memcpy(copy, data, size);
    const struct ms_str text = {copy, (uint32_t)size};
    if ((cfg_params_of_slime(&v, text, a, &e) == MS_OK) != (e.rc == MS_OK))
        abort();
    if ((cfg_params_of_verl(&v, text, a, &f) == MS_OK) != (f.rc == MS_OK))
        abort();
    if (f.rc == MS_OK && v->kind != MS_PLAIN_DICT)
        abort();
    ms_arena_free(a);
    free(copy);
    return 0;
}
