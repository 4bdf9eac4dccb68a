/* SPDX-License-Identifier: MIT
 *
 * fuzz_npy: .npy.
 */
#include "tests/support/fuzz_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_tensor(data, size);
}
