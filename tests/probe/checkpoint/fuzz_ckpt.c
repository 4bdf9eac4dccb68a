/* SPDX-License-Identifier: MIT
 *
 * fuzz_ckpt: one file of a checkpoint: .pt, safetensors, .metadata of a distributed one, MindSpore.
 */
#include "tests/support/fuzz_ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct probe_ckpt *c;
    struct ms_err e = {0};
    char *copy =
        malloc(size + 1); /* exactly as long, so that a sanitizer sees a read past the end */
    if (size != 0)
        memcpy(copy, data, size);
    const enum ms_rc rc = probe_ckpt_parse(&c, "f", copy, size, &e);
    ckpt_must((rc == MS_OK) == (e.rc == MS_OK));
    if (rc == MS_OK)
        fuzz_ckpt(c);
    else
        ckpt_must(c == NULL && strncmp(e.msg, "f: ", 3) == 0);
    free(copy);
    return 0;
}
