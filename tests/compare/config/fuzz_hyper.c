/* SPDX-License-Identifier: MIT
 *
 * fuzz_hyper: hyperparameters of shell scripts and YAML files.
 */
#include "compare/config/hyper_params.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_err e = {0}, f = {0};
    struct ms_arena *a = ms_arena_new(16 << 20);
    struct ms_plain *shell = ms_plain_new(a, MS_PLAIN_DICT), *yaml = ms_plain_new(a, MS_PLAIN_DICT);
    char *copy = malloc(size + 1);
    if (size != 0)
        memcpy(copy, data, size);
    const struct ms_str text = {copy, (uint32_t)size};
    if ((cfg_hyper_of_shell(shell, text, a, &e) == MS_OK) != (e.rc == MS_OK))
        abort();
    if ((cfg_hyper_of_yaml(yaml, "y", text, a, &f) == MS_OK) != (f.rc == MS_OK))
        abort();
    if (!cfg_value_equal(shell, shell))
        abort();
    ms_arena_free(a);
    free(copy);
    return 0;
}
