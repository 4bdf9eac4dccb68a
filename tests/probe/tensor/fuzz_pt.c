/* SPDX-License-Identifier: MIT
 *
 * fuzz_pt: .pt: container, pickle, and the form without zip.
 */
#include "tests/support/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_tensor(data, size);
}
